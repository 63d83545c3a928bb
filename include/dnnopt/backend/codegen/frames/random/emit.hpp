// Owns the kernels of operators that draw random numbers: the stream of the reference backend, and what is made of it.
#ifndef DNNOPT_BACKEND_CODEGEN_FRAMES_RANDOM_EMIT_HPP
#define DNNOPT_BACKEND_CODEGEN_FRAMES_RANDOM_EMIT_HPP

#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dnnopt/backend/codegen/choice.hpp>
#include <dnnopt/backend/codegen/frames/random/parameters.hpp>
#include <dnnopt/backend/codegen/frames/selection/selected.hpp>

namespace dnnopt::codegen {

/// The element at flat index `i` of an output, of the numbers that `stream` (OpenCL C, 53 random bits each) holds.
using random_element = std::string (*)(const element_site& s, const std::string& stream, const index_expr& i);

namespace detail {

/// Attribute `seed` as the generator takes it: whole numbers as themselves, others by their bits; absent: 0.
[[nodiscard]] inline std::uint32_t seed_of(const attribute_map& attributes) {
  const attribute* held = attributes.find("seed");
  if (held == nullptr) return 0;
  if (const std::int64_t* whole = std::get_if<std::int64_t>(held)) return static_cast<std::uint32_t>(*whole);
  const float seed = attributes.get_float("seed", 0.0F);
  const bool whole = seed >= 0.0F && seed < 4294967296.0F && seed == std::floor(seed);
  return whole ? static_cast<std::uint32_t>(seed) : std::bit_cast<std::uint32_t>(seed);
}

[[nodiscard]] inline std::string bits_at(const std::string& stream, const index_expr& i) {
  return stream + "[" + index_source(i) + "]";
}
/// The number in [0, 1), rounded to the type.
[[nodiscard]] inline std::string number_at(const element_site& s, const std::string& bits) {
  const std::string type(name_of(s.compute() == compute_type::real64 ? compute_type::real64 : compute_type::real));
  return "((" + type + ")" + bits + " * (" + type + ")1.1102230246251565e-16f)";
}
[[nodiscard]] inline std::string attribute_number(const element_site& s, std::string_view name, float fallback) {
  return literal(s.compute(), static_cast<double>(s.attributes().get_float(name, fallback)));
}

inline std::string uniform_element(const element_site& s, const std::string& stream, const index_expr& i) {
  const std::string low = attribute_number(s, "low", 0.0F);
  return s.result(low + " + (" + attribute_number(s, "high", 1.0F) + " - " + low + ") * " +
                  number_at(s, bits_at(stream, i)));
}
/// Box and Muller: two numbers give two elements.
inline std::string normal_element(const element_site& s, const std::string& stream, const index_expr& i) {
  const index_expr first = floordiv(i, 2) * 2;
  const std::string radius = s.b.let(s.compute(), "sqrt(-2 * log(1 - " + number_at(s, bits_at(stream, first)) + "))");
  const std::string turn = s.b.let(s.compute(), "2 * " + number_at(s, bits_at(stream, first + 1)));
  return s.result(attribute_number(s, "mean", 0.0F) + " + " + attribute_number(s, "scale", 1.0F) + " * " + radius +
                  " * (" + index_source(mod(i, 2)) + " == 0 ? cospi(" + turn + ") : sinpi(" + turn + "))");
}
/// 1 where the number is below the input's element: compared as integers, so that no rounding decides.
inline std::string bernoulli_element(const element_site& s, const std::string& stream, const index_expr& i) {
  const std::string p = s.b.let(s.input_compute(), s.read(0, s.b.index_at(s.dims(0), i)));
  return s.result("(" + p + " >= 1 || (" + p + " > 0 && " + bits_at(stream, i) + " < (ulong)ceil(" + p +
                  " * 9007199254740992.0f))) ? 1 : 0");
}
/// Dropout in training: kept elements are scaled; the second output says which ones are kept.
inline std::string dropped_element(const element_site& s, const std::string& stream, const index_expr& i) {
  const double ratio = s.has(1) ? s.numbers(1)->at(0) : 0.5;
  const double least = std::ceil(ratio * 9007199254740992.0);
  if (!(least >= 0 && least <= 9007199254740992.0)) throw s.refuse("a ratio that is not from 0 to 1");
  const std::string kept =
      "(" + bits_at(stream, i) + " >= " + std::to_string(static_cast<std::uint64_t>(least)) + "UL)";
  if (s.output == 1) return s.b.let(compute_type::integer, kept + " ? 1 : 0");
  return s.result(kept + " ? " + s.read(0, s.b.index_at(s.dims(0), i)) + " * " +
                  literal(s.compute(), 1.0 / (1.0 - ratio)) + " : 0");
}

struct random_row {
  std::string_view name;
  random_element element;
};
inline constexpr std::array random_rows{
    random_row{"RandomUniform", uniform_element},     random_row{"RandomNormal", normal_element},
    random_row{"RandomUniformLike", uniform_element}, random_row{"RandomNormalLike", normal_element},
    random_row{"Bernoulli", bernoulli_element},       random_row{"Dropout", dropped_element},
};
[[nodiscard]] inline const random_row* find_random(const node& n) {
  for (const random_row& row : random_rows)
    if (row.name == n.op->name && n.op->domain.empty()) return &row;
  return nullptr;
}

}  // namespace detail

/// An operator by itself; Dropout where it is known to be in training.
[[nodiscard]] inline choice_or_reason choose_random(const lowering_site& site) {
  const block_view& block = site.block;
  if (block.members.size() != 1) return "something is joined to it";
  const node& n = block.g.node_at(block.members[0]);
  if (detail::find_random(n) == nullptr) return "draws no numbers";
  if (n.op->kind != computation_kind::random) {
    const value_facts* const mode =
        n.inputs.size() > 2 && n.inputs[2] != no_value ? &block.g.facts(n.inputs[2]) : nullptr;
    if (mode == nullptr || !mode->is_constant() || integers_of(mode->constant).at(0) == 0) return "draws no numbers";
  }
  if (!bounded_count(block.g, n.outputs[0])) return "dims of the output depend on data and have no bound";
  return choice("random_elements");
}

[[nodiscard]] inline lowered_node emit_random(const lowering_site& any, const choice&) {
  lowering_site site = any;
  site.anchor = any.block.members[0];
  const node& n = site.anchor_node();
  lowered_node result;
  const std::size_t stream = add_scratch(result, *bounded_count(site.block.g, n.outputs[0]) + 1, 8);
  {
    kernel_builder b(site.block, site.options.emitters);
    // A pair of numbers gives two normal ones, of which the last may not be wanted.
    const index_expr count = element_count(b.dims(n.outputs[0]));
    b.define("DNNOPT_COUNT", count + mod(count, 2));
    b.define("DNNOPT_SEED", std::to_string(detail::seed_of(n.attributes)) + "u");
    b.define("DNNOPT_STREAM", b.scratch(stream, dtype::uint64, true));
    kernel_plan plan = b.finish(kernels::prelude, random_stream_frame, "random_stream");
    result.kernels.push_back(std::move(plan));
  }
  for (std::size_t o = 0; o < n.outputs.size(); ++o)
    add_output_kernel(site, result, o, "random_elements",
                      [&](const element_site& s, const std::vector<index_expr>& at) {
                        index_expr flat = 0;
                        for (std::size_t k = 0; k < at.size(); ++k) flat = flat * s.out_dims()[k] + at[k];
                        return detail::find_random(n)->element(s, s.b.scratch(stream, dtype::uint64, false), flat);
                      });
  return result;
}

}  // namespace dnnopt::codegen

#endif  // DNNOPT_BACKEND_CODEGEN_FRAMES_RANDOM_EMIT_HPP

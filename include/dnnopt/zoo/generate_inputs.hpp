// Owns generated inputs of a model: made from a seed by what the graph does with each input.
#ifndef DNNOPT_ZOO_GENERATE_INPUTS_HPP
#define DNNOPT_ZOO_GENERATE_INPUTS_HPP

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <dnnopt/counter_random.hpp>
#include <dnnopt/error.hpp>
#include <dnnopt/graph.hpp>
#include <dnnopt/ops/facts.hpp>
#include <dnnopt/shape.hpp>
#include <dnnopt/small_float.hpp>
#include <dnnopt/tensor.hpp>

namespace dnnopt {

/// What generated elements of an input are.
enum class input_kind : std::uint8_t { numbers, ids, ones, lengths };

namespace detail {

/// The rows of the smallest table that `id` indexes, followed through operators that move elements or change their
/// type.
inline std::optional<std::int64_t> indexed_rows(const graph& g, value_id id) {
  std::optional<std::int64_t> rows;
  std::vector<bool> seen(g.value_count(), false);
  std::vector<value_id> work{id};
  const auto reach = [&](value_id v) {
    if (v == no_value || seen[v]) return;
    seen[v] = true;
    work.push_back(v);
  };
  while (!work.empty()) {
    const value_id read = work.back();
    work.pop_back();
    for (const value_use& use : g.value_at(read).uses) {
      const node& n = g.node_at(use.node);
      if (n.op->kind == computation_kind::indexed_read && use.slot == 1 && n.inputs[0] != no_value) {
        const value_facts& table = g.facts(n.inputs[0]);
        if (!table.dims || table.dims->empty() || !is_floating(table.type)) continue;
        const auto dim =
            (*table.dims)[normalize_axis(n.attributes.get_int("axis", 0), table.dims->size())].as_constant();
        if (dim) rows = std::min(rows.value_or(std::numeric_limits<std::int64_t>::max()), *dim);
      } else if (n.op->kind == computation_kind::view ||
                 (n.op->kind == computation_kind::element_wise && n.formal_inputs() == 1)) {
        for (const value_id out : n.outputs) reach(out);
      }
    }
  }
  return rows;
}

/// The number that the graph compares `id` with for equality, followed through operators that move elements or change
/// their type; where it compares with several the first, and 0 and 1 do not count.
inline std::optional<std::int64_t> compared_number(const graph& g, value_id id) {
  std::vector<bool> seen(g.value_count(), false);
  std::vector<value_id> work{id};
  seen[id] = true;
  for (std::size_t next = 0; next < work.size(); ++next)
    for (const value_use& use : g.value_at(work[next]).uses) {
      const node& n = g.node_at(use.node);
      const bool compares = n.op->scalar == "x0 == x1" && n.inputs.size() == 2;
      if (compares && n.inputs[1 - use.slot] != no_value) {
        const value_facts& other = g.facts(n.inputs[1 - use.slot]);
        if (!other.is_constant() || other.constant.size() != 1 || !is_integer(other.type)) continue;
        const std::int64_t number = integers_of(other.constant)[0];
        if (number != 0 && number != 1) return number;
      } else if (n.op->kind == computation_kind::view ||
                 (n.op->kind == computation_kind::element_wise && n.formal_inputs() == 1)) {
        for (const value_id out : n.outputs)
          if (out != no_value && !seen[out]) {
            seen[out] = true;
            work.push_back(out);
          }
      }
    }
  return std::nullopt;
}

/// Noise over waves from a few pixels to the whole image, so that neighbours are alike as in photographs.
inline void fill_image(std::span<float> out, const dim_list& dims, const counter_random& random) {
  const std::size_t rank = dims.size();
  const bool image = rank >= 2 && dims[rank - 1] >= 8 && dims[rank - 2] >= 8;
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = random.normal(i) * (image ? 0.5f : 1.0f);
  if (!image) return;
  const auto width = static_cast<std::size_t>(dims[rank - 1]);
  const auto height = static_cast<std::size_t>(dims[rank - 2]);
  constexpr float turn = 6.2831853f;
  for (std::size_t plane = 0; plane * width * height < out.size(); ++plane)
    for (std::size_t wave = 0; wave < 6; ++wave) {
      const std::size_t at = out.size() + (plane * 6 + wave) * 3;
      const float across = (random.uniform(at) - 0.5f) * 16;
      const float down = (random.uniform(at + 1) - 0.5f) * 16;
      const float phase = random.uniform(at + 2);
      for (std::size_t y = 0; y < height; ++y)
        for (std::size_t x = 0; x < width; ++x)
          out[(plane * height + y) * width + x] +=
              0.5f * std::cos(turn * (phase + across * static_cast<float>(x) / static_cast<float>(width) +
                                      down * static_cast<float>(y) / static_cast<float>(height)));
    }
}

template <class T>
void fill_integers(tensor& t, input_kind kind, std::int64_t limit, const counter_random& random) {
  const auto out = t.mutable_data<T>();
  for (std::size_t i = 0; i < out.size(); ++i) {
    std::int64_t v = limit;
    if (kind == input_kind::ids) v = random.below(i, limit);
    // Of several sequences the first has the full length.
    if (kind == input_kind::lengths) v = i == 0 ? limit : limit - random.below(i, limit / 2 + 1);
    out[i] = static_cast<T>(v);
  }
}

template <class T>
tensor narrowed(const tensor& numbers) {
  tensor result(dtype_of<T>, numbers.dims());
  const auto from = numbers.data<float>();
  const auto to = result.mutable_data<T>();
  for (std::size_t i = 0; i < from.size(); ++i) to[i] = static_cast<T>(from[i]);
  return result;
}

/// Integers of an input's element type. Errors: unsupported for element types without numbers.
inline tensor integers(const value& v, const dim_list& dims, input_kind kind, std::int64_t limit,
                       const counter_random& random) {
  tensor t(v.facts.type, dims);
  switch (v.facts.type) {
    case dtype::int64:
      fill_integers<std::int64_t>(t, kind, limit, random);
      break;
    case dtype::int32:
      fill_integers<std::int32_t>(t, kind, limit, random);
      break;
    case dtype::int16:
      fill_integers<std::int16_t>(t, kind, limit, random);
      break;
    case dtype::int8:
      fill_integers<std::int8_t>(t, kind, limit, random);
      break;
    case dtype::uint64:
      fill_integers<std::uint64_t>(t, kind, limit, random);
      break;
    case dtype::uint32:
      fill_integers<std::uint32_t>(t, kind, limit, random);
      break;
    case dtype::uint16:
      fill_integers<std::uint16_t>(t, kind, limit, random);
      break;
    case dtype::uint8:
      fill_integers<std::uint8_t>(t, kind, limit, random);
      break;
    case dtype::boolean:
      fill_integers<bool>(t, kind, limit, random);
      break;
    default:
      throw error(errc::unsupported,
                  "input '" + v.name + "' is " + std::string(name_of(v.facts.type)) + "; give its content");
  }
  return t;
}

}  // namespace detail

/// What is generated for graph input `id`: numbers for floats; ids below a table's rows where it indexes one; lengths
/// for other integers of rank 1 beside an input of rank 2 or more; ones (masks) for the rest.
[[nodiscard]] inline input_kind kind_of_input(const graph& g, value_id id) {
  const value_facts& facts = g.facts(id);
  if (is_floating(facts.type)) return input_kind::numbers;
  if (is_integer(facts.type) && detail::indexed_rows(g, id)) return input_kind::ids;
  const auto longer = [&](value_id other) { return g.facts(other).dims && g.facts(other).dims->size() > 1; };
  if (is_integer(facts.type) && facts.dims && facts.dims->size() == 1 &&
      std::any_of(g.inputs().begin(), g.inputs().end(), longer))
    return input_kind::lengths;
  return input_kind::ones;
}

/// The number that fills integers of kind `ones`: 1, or for a single number the one that the graph compares it with
/// (a sampling rate that chooses a branch).
[[nodiscard]] inline std::int64_t generated_constant(const graph& g, value_id id) {
  const value_facts& facts = g.facts(id);
  const bool single = facts.dims && facts.dims->size() <= 1 && is_static(*facts.dims) &&
                      element_count(evaluate(*facts.dims, {})) == 1 && is_integer(facts.type);
  return single ? detail::compared_number(g, id).value_or(1) : 1;
}

/// One tensor per graph input, in order. `values` binds the symbolic dims of the inputs.
///
/// Images are noise over waves, other floats are noise (mean 0, deviation 1); ids lie within every table that they
/// index; masks are ones; a single integer is 1, or what the graph compares it with; lengths lie between half of and
/// the whole second dim of the first input of rank 2 or more.
/// Errors: unbound_symbol where a dim has no value; unsupported for strings, sequences and element types without
/// numbers.
[[nodiscard]] inline std::vector<tensor> generate_inputs(const graph& g, std::uint64_t seed,
                                                         const symbol_values& values = {}) {
  std::vector<tensor> inputs;
  std::int64_t longest = 1;
  for (const value_id id : g.inputs())
    if (g.facts(id).dims && g.facts(id).dims->size() > 1) {
      longest = (*g.facts(id).dims)[1].evaluate(values);
      break;
    }
  for (const value_id id : g.inputs()) {
    const value& v = g.value_at(id);
    if (v.facts.kind != value_kind::tensor || !v.facts.dims)
      throw error(errc::unsupported, "input '" + v.name + "' is no tensor of known rank; give its content");
    const counter_random random(seed, inputs.size());
    const dim_list dims = evaluate(*v.facts.dims, values);
    const input_kind kind = kind_of_input(g, id);
    if (kind == input_kind::numbers) {
      tensor numbers(dtype::float32, dims);
      detail::fill_image(numbers.mutable_data<float>(), dims, random);
      switch (v.facts.type) {
        case dtype::float32:
          break;
        case dtype::float64:
          numbers = detail::narrowed<double>(numbers);
          break;
        case dtype::float16:
          numbers = detail::narrowed<float16>(numbers);
          break;
        case dtype::bfloat16:
          numbers = detail::narrowed<bfloat16>(numbers);
          break;
        default:
          throw error(errc::unsupported,
                      "input '" + v.name + "' is " + std::string(name_of(v.facts.type)) + "; give its content");
      }
      inputs.push_back(std::move(numbers));
      continue;
    }
    const std::int64_t limit =
        kind == input_kind::ids
            ? std::min<std::int64_t>(*detail::indexed_rows(g, id), std::numeric_limits<std::int32_t>::max())
        : kind == input_kind::ones ? generated_constant(g, id)
                                   : longest;
    inputs.push_back(detail::integers(v, dims, kind, limit, random));
  }
  return inputs;
}

}  // namespace dnnopt

#endif  // DNNOPT_ZOO_GENERATE_INPUTS_HPP

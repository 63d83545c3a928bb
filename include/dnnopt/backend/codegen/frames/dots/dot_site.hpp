// Owns what products of bytes know of their operands: signs, zero points, and quads of four neighbours.
#ifndef DNNOPT_BACKEND_CODEGEN_FRAMES_DOTS_DOT_SITE_HPP
#define DNNOPT_BACKEND_CODEGEN_FRAMES_DOTS_DOT_SITE_HPP

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <dnnopt/backend/codegen/frames/convolutions/convolution_shape.hpp>
#include <dnnopt/backend/codegen/frames/products/contraction.hpp>

namespace dnnopt::codegen {

/// Bytes of a quad: neighbours along the summed index whose products an instruction adds up.
inline constexpr std::int64_t quad_width = 4;

/// Why a node is no product of bytes with sums in int32; empty where it is one.
[[nodiscard]] inline std::string reject_bytes(const lowering_site& site) {
  if (site.options.dot == nullptr) return "nothing was found that multiplies bytes";
  const node& n = site.anchor_node();
  if (n.inputs.size() < 2 || !site.has_input(0) || !site.has_input(1)) return "no product of two operands";
  for (std::size_t i = 0; i < 2; ++i)
    if (!is_byte(site.input(i).type))
      return "multiplies bytes, input " + std::to_string(i) + " is " + std::string(dnnopt::name_of(site.input(i).type));
  return site.output().type == dtype::int32
             ? std::string()
             : "sums bytes in int32, the output is " + std::string(dnnopt::name_of(site.output().type));
}

/// How the bytes of two operands reach an instruction that takes those of one as 0 .. 255 and of the other as
/// -128 .. 127: which is which, and what bits turn the bytes of an operand over where both are of one kind.
struct byte_signs {
  bool a_natural = false;
  std::int64_t a_flip = 0;
  std::int64_t b_flip = 0;
};

/// The operand that is turned over is the constant one, where that costs nothing at run time.
[[nodiscard]] constexpr byte_signs signs_of(dtype a, dtype b, bool a_constant) noexcept {
  byte_signs signs{a == dtype::uint8};
  if (a != b) return signs;
  (a_constant ? signs.a_flip : signs.b_flip) = 128;
  signs.a_natural = a_constant ? a != dtype::uint8 : a == dtype::uint8;
  return signs;
}

/// The zero point of an operand whose bytes are turned over by `flip`: what is added to the model's own.
[[nodiscard]] constexpr std::int64_t turned_zero(dtype type, std::int64_t flip) noexcept {
  return type == dtype::uint8 ? -flip : flip;
}

/// The one number that all elements of a constant are, or nothing. Precondition: bytes, or nothing there (then 0).
[[nodiscard]] inline std::optional<std::int64_t> uniform_byte(const lowering_site& site, std::size_t input) {
  if (!site.has_input(input)) return 0;
  const value_facts& facts = site.input(input);
  if (!facts.is_constant() || !is_one_byte_all_over(facts.constant)) return std::nullopt;
  return static_cast<std::int64_t>(number_at(facts.constant, 0));
}

/// An operand of a product of bytes: an input of the node, and the one with its zero point.
struct byte_operand {
  std::size_t input = 0;
  std::size_t zero_input = 0;
  std::int64_t flip = 0;

  /// Whether its zero point, as the frame sees it, may be other than 0.
  [[nodiscard]] bool may_have_zero(const lowering_site& site) const {
    const std::optional<std::int64_t> zero = uniform_byte(site, zero_input);
    return !zero || *zero + turned_zero(site.input(input).type, flip) != 0;
  }
};

/// A kernel that writes a constant operand once in quads, in the order of its panels: [batch][panel][quad][width][4],
/// zero beyond `extent` and where an element is missing of a quad. `read(b, z, i, quad, r)` emits an element's number
/// where `within(quad, r)`, a test or nothing, holds; the extents must be numbers.
template <class Within, class Read>
[[nodiscard]] kernel_plan pack_quads_kernel(const lowering_site& site, std::int64_t batch, std::int64_t extent,
                                            std::int64_t quads, std::int64_t width, std::int64_t flip, Within&& within,
                                            Read&& read) {
  kernel_builder b(site.block, site.options.emitters);
  const std::int64_t panels = (extent + width - 1) / width;
  const index_expr count = batch * panels * quads * width * quad_width;
  const index_expr i = b.index("i", count);
  b.begin({i});
  const index_expr lane = floordiv(i, quad_width);
  const index_expr row = mod(lane, width) + mod(floordiv(lane, width * quads), panels) * width;
  const index_expr quad = mod(floordiv(lane, width), quads);
  const index_expr r = mod(i, quad_width);
  const std::string element = b.variable(compute_type::integer, "0");
  const element_site s(b, site.anchor, 0, {});
  s.when(kernel_builder::within(row, extent), [&] {
    const index_expr own = b.define_index("r", row, extent);
    s.when(within(quad, r), [&] {
      b.line(element + " = " + read(b, floordiv(lane, width * quads * panels), own, quad, r) + ";");
      if (flip != 0) b.line(element + " ^= " + std::to_string(flip) + ";");
    });
  });
  b.line(b.scratch(0, dtype::int8, true) + "[i] = (char)" + element + ";");
  const std::string statements = b.take();
  return b.finish_items(kernels::prelude, statements, i, count, "pack");
}

}  // namespace dnnopt::codegen

#endif  // DNNOPT_BACKEND_CODEGEN_FRAMES_DOTS_DOT_SITE_HPP

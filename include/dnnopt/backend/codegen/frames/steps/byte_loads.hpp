// Owns the choice of how operands of codes come to local memory for steps of bytes.
#ifndef DNNOPT_BACKEND_CODEGEN_FRAMES_STEPS_BYTE_LOADS_HPP
#define DNNOPT_BACKEND_CODEGEN_FRAMES_STEPS_BYTE_LOADS_HPP

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include <dnnopt/backend/codegen/frames/steps/image_lines.hpp>
#include <dnnopt/backend/codegen/frames/steps/step_loads.hpp>
#include <dnnopt/backend/codegen/frames/steps/step_product.hpp>
#include <dnnopt/backend/codegen/frames/steps/turned_codes.hpp>

namespace dnnopt::codegen {

/// Inner elements of which bytes have products that an int32 sums: 255 * 255 each, and as much for zero points.
inline constexpr std::int64_t most_summed_bytes = 16384;

/// Whether the zero point of an operand's codes may be another than 0. Precondition: has_one_zero_point(b, o).
[[nodiscard]] inline bool is_shifted(kernel_builder& b, const step_operand& o) {
  const node& n = b.g().node_at(o.dequantizer);
  if (n.inputs.size() < 3 || n.inputs[2] == no_value) return false;
  const tensor& zero = b.g().facts(n.inputs[2]).constant;
  const std::span<const std::byte> bytes = zero.bytes();
  return std::any_of(bytes.begin(), bytes.end(), [](std::byte one) { return one != std::byte{0}; });
}

/// How the codes of an operand are loaded for steps of bytes, in whose tiles lines run along inner elements; `which` 0
/// is the first. Precondition: has_one_zero_point.
[[nodiscard]] inline step_loads choose_byte_loads(kernel_builder& b, const step_product& p, std::size_t which) {
  const step_operand& o = p.operands[which];
  const index_expr z = b.index("z", p.extents.batch);
  const index_expr& extent = which == 0 ? p.extents.rows : p.extents.columns;
  const index_expr outer = b.index(which == 0 ? "m" : "n", extent);
  const index_expr k = b.index("k", p.extents.inner);
  const std::string name = which == 0 ? "a" : "b";
  step_loads found{.inner_first = o.inner_first, .codes = 1, .shifted = is_shifted(b, o)};
  if (const std::optional<step_operand> codes = whole_codes(b, o)) {
    const dtype held = b.g().facts(codes->id).type;
    const int along = address_of(b, *codes, held, z, outer, k, k, p.extents.inner, name + "ck").width;
    // What is copied is zero beyond the matrix, which no zero point else is: so that nothing is beyond it.
    if (along > 0 && (!found.shifted || mod(p.extents.inner, 128) == index_expr(0)))
      return {.inner_first = true, .copy = along, .shifted = found.shifted};
    if (turns_codes(b, *codes, p.extents, which) && (!found.shifted || mod(p.extents.inner, 128) == index_expr(0)))
      return {.inner_first = true, .copy = turned_line, .shifted = found.shifted, .turned = true};
    if (address_of(b, *codes, held, z, outer, k, outer, extent, name + "co").width >= 4)
      return {.inner_first = false, .codes = 4, .shifted = found.shifted};
  }
  if (which == 1 && !o.inner_first && mod(extent, 4) == index_expr(0)) {
    found.codes = 4;
    found.gathered = true;
  }
  return found;
}

/// The lines that the image of a convolution is brought to (image_lines.hpp), and how both operands are loaded then;
/// nothing, and `loads` as they are, where it is not. Precondition: has_one_zero_point of both.
[[nodiscard]] inline std::optional<image_lines> choose_lines(kernel_builder& b, const lowering_site& site,
                                                             const step_product& p, std::array<step_loads, 2>& loads) {
  const std::array<bool, 2> shifted{is_shifted(b, p.operands[0]), is_shifted(b, p.operands[1])};
  const std::optional<image_lines> lines = lines_of_image(b, site, shifted[0] || shifted[1]);
  if (lines)
    loads = {step_loads{.inner_first = true, .copy = turned_line, .shifted = shifted[0]},
             step_loads{.inner_first = true, .copy = lines->copy, .shifted = shifted[1]}};
  return lines;
}

}  // namespace dnnopt::codegen

#endif  // DNNOPT_BACKEND_CODEGEN_FRAMES_STEPS_BYTE_LOADS_HPP

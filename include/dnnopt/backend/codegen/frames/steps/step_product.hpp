// Owns what products of matrices and convolutions are to the frame of matrix steps: two operands, their memory, a
// store.
#ifndef DNNOPT_BACKEND_CODEGEN_FRAMES_STEPS_STEP_PRODUCT_HPP
#define DNNOPT_BACKEND_CODEGEN_FRAMES_STEPS_STEP_PRODUCT_HPP

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dnnopt/backend/codegen/frames/convolutions/choose.hpp>
#include <dnnopt/backend/codegen/frames/convolutions/texel_patches.hpp>
#include <dnnopt/backend/codegen/frames/products/choose.hpp>

namespace dnnopt::codegen {

/// An operand of a product in the symbols of one kernel. The outer index is the row of the first operand, the column of
/// the second.
struct step_operand {
  value_id id = no_value;
  node_id dequantizer = no_node;  ///< of codes that are multiplied without their scale (dequantizer_of)
  bool inner_first = false;       ///< whether its neighbours are inner elements where it is loaded singly
  /// The index of an element at (matrix, outer, inner); empty where no element stands for zero or another computation.
  std::function<std::vector<index_expr>(const index_expr&, const index_expr&, const index_expr&)> at;
  /// Emits an element and returns its name; used where `at` is empty. Where no element stands it is `outside`.
  std::function<std::string(const index_expr&, const index_expr&, const index_expr&, std::string_view outside)> emit;
};

/// A product in the symbols of one kernel.
struct step_product {
  product_extents extents;
  index_expr summed = 0;  ///< inner elements that are no filling
  std::array<step_operand, 2> operands;
  /// The index of the anchor's element at (matrix, row, column), and that element made of the sum `value`.
  std::function<std::vector<index_expr>(const index_expr&, const index_expr&, const index_expr&)> result_at;
  std::function<std::string(std::span<const index_expr>)> finish;
};

/// The member of the block that makes a value of codes which can be multiplied instead, and their sums be scaled: of at
/// most eight bits, so that a code less its zero point is exact in a half, with one scale for all that is summed.
/// `labels` name the value's dims, and `inner` those that are summed. no_node where it is none. O(rank).
[[nodiscard]] inline node_id dequantizer_of(kernel_builder& b, value_id id, std::span<const int> labels,
                                            std::span<const int> inner) {
  if (!b.is_member_value(id)) return no_node;
  const value& meant = b.g().value_at(id);
  const node& n = b.g().node_at(meant.producer);
  // A model's own halves are rounded one by one.
  if (!n.op->dequantizes || !(meant.facts.type == dtype::float32 || meant.facts.narrowed)) return no_node;
  const value_facts& codes = b.g().facts(n.inputs[0]);
  if (!is_integer(codes.type) || row_of(codes.type).packed_bits > 8 || codes.texels) return no_node;
  const value_facts& scale = b.g().facts(n.inputs[1]);
  if (!scale.dims) return no_node;
  if (element_count(*scale.dims) == index_expr(1)) return meant.producer;
  const auto rank = static_cast<std::int64_t>(labels.size());
  const std::int64_t axis = n.attributes.get_int("axis", 1);
  if (scale.dims->size() != 1 || axis >= rank || axis < -rank || n.attributes.get_int("block_size", 0) != 0)
    return no_node;
  const int label = labels[normalize_axis(axis, labels.size())];
  return label < 0 || std::find(inner.begin(), inner.end(), label) != inner.end() ? no_node : meant.producer;
}

/// The C name of the sum `value` times the scales that the operands' codes were multiplied without, at an element of
/// the anchor whose dims `output` names; "value" where there are none.
[[nodiscard]] inline std::string scaled_sum(kernel_builder& b, const std::array<node_id, 2>& dequantizers,
                                            const std::array<std::vector<int>, 2>& labels, std::span<const int> output,
                                            std::span<const index_expr> at) {
  std::string scales;
  for (std::size_t which = 0; which < 2; ++which) {
    if (dequantizers[which] == no_node) continue;
    const node& n = b.g().node_at(dequantizers[which]);
    const shape& d = b.dims(n.inputs[1]);
    std::vector<index_expr> place(d.size(), index_expr(0));
    if (!(element_count(d) == index_expr(1))) {
      const std::size_t axis = normalize_axis(n.attributes.get_int("axis", 1), labels[which].size());
      const auto along = std::find(output.begin(), output.end(), labels[which][axis]) - output.begin();
      place[0] = kernel_builder::broadcast_index(d[0], b.dims(n.outputs[0])[axis], at[static_cast<std::size_t>(along)]);
    }
    scales += (scales.empty() ? "" : " * ") + b.emit(n.inputs[1], place);
  }
  return scales.empty() ? std::string("value") : b.let(compute_type::real, "value * (" + scales + ")");
}

/// A matrix product's. Precondition: reject_matrix_product(site) is empty. `b` outlives the result.
[[nodiscard]] inline step_product matrix_step_product(kernel_builder& b, const lowering_site& site) {
  const contraction c = contraction_of(b, site).value();
  step_product p;
  p.extents = {element_count(c.extents_of(c.batch)), element_count(c.extents_of(c.rows)),
               element_count(c.extents_of(c.columns)), element_count(c.extents_of(c.inner))};
  p.summed = p.extents.inner;
  for (std::size_t which = 0; which < 2; ++which) {
    step_operand& o = p.operands[which];
    o.id = site.anchor_node().inputs[c.slots[which]];
    o.inner_first = inner_first(c, which);
    o.dequantizer = dequantizer_of(b, o.id, c.operands[which], c.inner);
    o.at = [&b, c, which](const index_expr& z, const index_expr& outer, const index_expr& k) {
      return c.operand_index(b, which, z, outer, k);
    };
  }
  p.result_at = [&b, c](const index_expr& z, const index_expr& m, const index_expr& n) {
    return c.output_index(b, z, m, n);
  };
  const std::array<node_id, 2> dequantizers{p.operands[0].dequantizer, p.operands[1].dequantizer};
  p.finish = [&b, &site, c, dequantizers](std::span<const index_expr> at) {
    const std::string sum = scaled_sum(b, dequantizers, c.operands, c.output, at);
    return finished_product(b, site, {at.begin(), at.end()}, sum);
  };
  return p;
}

/// Whether the image of a convolution lies in texels along its channels in a buffer, which patches copy as they are.
[[nodiscard]] inline bool copies_texels(const lowering_site& site) {
  const node& n = site.anchor_node();
  if (n.op->kind != computation_kind::convolution) return false;
  const value& image = site.block.g.value_at(n.inputs[0]);
  const bool computed = image.producer != no_node && std::find(site.block.members.begin(), site.block.members.end(),
                                                               image.producer) != site.block.members.end();
  // What fills the last texel of the caller's channels may be anything.
  if (site.block.g.is_input(n.inputs[0]) && !(mod((*image.facts.dims)[1], texel_width) == index_expr(0))) return false;
  return !computed && image.facts.texels && image.facts.texels->packed == 1 &&
         image.facts.texels->object == memory_object::buffer && image.facts.type == dtype::float16;
}

/// A convolution's: weights times patches of the image, per image and group, or of all images where `joined`. Of an
/// image in texels inner elements count (window element, channel), channels in whole texels.
[[nodiscard]] inline step_product convolution_step_product(kernel_builder& b, const lowering_site& site, bool joined) {
  const element_site s(b, site.anchor, 0, {});
  const convolution_shape c = convolution_of(s);
  step_product p;
  p.extents = product_of_patches(c, copies_texels(site));
  p.summed = c.channels * c.window();
  if (joined) p.extents = joined_images(c, p.extents);
  p.operands[0].id = site.anchor_node().inputs[1];
  p.operands[0].inner_first = true;
  p.operands[0].at = [s, c](const index_expr& z, const index_expr& row, const index_expr& k) {
    return weight_index(s, c, mod(z, c.group), row, k);
  };
  step_operand& image = p.operands[1];
  image.id = site.anchor_node().inputs[0];
  if (c.pointwise) {
    image.at = [&b, s, c, joined](const index_expr& z, const index_expr& column, const index_expr& k) {
      const shape& x = s.dims(0);
      std::vector<index_expr> at{joined ? floordiv(column, c.positions()) : floordiv(z, c.group),
                                 mod(z, c.group) * c.channels + k};
      const index_expr place = joined ? mod(column, c.positions()) : column;
      for (const index_expr& i : b.index_at(shape(x.begin() + 2, x.end()), place)) at.push_back(i);
      return at;
    };
  } else {
    image.emit = [&b, s, c, joined](const index_expr& z, const index_expr& column, const index_expr& k,
                                    std::string_view outside) {
      return emit_patch_element(b, s, c, z, k, column, joined, outside);
    };
  }
  p.result_at = [&b, s, c, joined](const index_expr&, const index_expr& m, const index_expr& n) {
    return output_index(b, s, c, m, n, joined);
  };
  // The dims of images, weights and results by their names: image 0, output channel 1, and what is summed.
  const std::size_t rank = s.dims(0).size();
  std::array<std::vector<int>, 2> labels{std::vector<int>(rank, 2), std::vector<int>(rank, 2)};
  std::vector<int> output(rank, 3);
  labels[0][0] = 1;
  labels[1][0] = 0;
  output[0] = 0;
  output[1] = 1;
  constexpr std::array<int, 1> inner{2};
  if (!copies_texels(site))
    for (std::size_t which = 0; which < 2; ++which)
      p.operands[which].dequantizer = dequantizer_of(b, p.operands[which].id, labels[which], inner);
  const std::array<node_id, 2> dequantizers{p.operands[0].dequantizer, p.operands[1].dequantizer};
  p.finish = [&b, s, dequantizers, labels, output](std::span<const index_expr> at) {
    return biased(b, s, at[1], scaled_sum(b, dequantizers, labels, output, at));
  };
  return p;
}

/// The product that the anchor of a site computes; `joined` as above.
[[nodiscard]] inline step_product step_product_of(kernel_builder& b, const lowering_site& site, bool joined) {
  return site.anchor_node().op->kind == computation_kind::convolution ? convolution_step_product(b, site, joined)
                                                                      : matrix_step_product(b, site);
}

/// Why an operand is not one of halves: what it is computed of is stored in halves but for small constants, which bound
/// nothing that halves would cut, so that to round it to halves is no more than to have stored it. Empty where it is.
/// O(members).
[[nodiscard]] inline std::string reject_operand(const block_view& block, value_id id) {
  bool halves = false;
  const std::function<std::string(value_id)> walk = [&](value_id v) -> std::string {
    const value& one = block.g.value_at(v);
    const bool member = one.producer != no_node &&
                        std::find(block.members.begin(), block.members.end(), one.producer) != block.members.end();
    if (one.facts.texels) return "'" + one.name + "' holds texels";
    if (one.facts.type == dtype::float16) {
      halves = true;
      if (!one.facts.narrowed || !member) return {};
    }
    const c_type_row* row = find_c_type(one.facts.type);
    if (!member) {
      // narrow_storage leaves constants of fewer elements as they are.
      constexpr std::int64_t small = 256;
      const bool few = one.facts.is_constant() && one.facts.constant.size() < small;
      if (one.facts.type == dtype::float16 || few || row == nullptr || row->compute == compute_type::integer) return {};
      return "'" + one.name + "' is stored as " + std::string(dnnopt::name_of(one.facts.type));
    }
    for (const value_id in : block.g.node_at(one.producer).inputs)
      if (in != no_value)
        if (std::string why = walk(in); !why.empty()) return why;
    return {};
  };
  if (std::string why = walk(id); !why.empty()) return why;
  return halves ? std::string() : "'" + block.g.value_at(id).name + "' is computed of no halves";
}

/// Why an operand cannot be multiplied as floats: steps of floats take what kernels compute in float. Empty where it
/// can. O(1).
[[nodiscard]] inline std::string reject_float_operand(const block_view& block, value_id id) {
  const value& one = block.g.value_at(id);
  if (one.facts.texels) return "'" + one.name + "' holds texels";
  const c_type_row* row = find_c_type(one.facts.type);
  if (row == nullptr || row->compute != compute_type::real)
    return "'" + one.name + "' is of " + std::string(dnnopt::name_of(one.facts.type));
  return {};
}

/// Where neighbours of an operand lie side by side in memory.
struct step_address {
  /// Neighbours that begin at multiples of as many: of bytes 16, 8 or 4, of halves 8, 4 or 2, of floats 4, 2 or 1; 0:
  /// none.
  int width = 0;
  value_id stored = no_value;
  index_expr offset;       ///< of the element, in elements
  std::string statements;  ///< that name parts of `offset`
};

/// The address of an operand's element at (matrix, outer, inner), of which `running` counts neighbours below `extent`,
/// where it is stored as `type` (float16, float32 or a byte).
[[nodiscard]] inline step_address address_of(kernel_builder& b, const step_operand& o, dtype type, const index_expr& z,
                                             const index_expr& outer, const index_expr& k, const index_expr& running,
                                             const index_expr& extent, std::string_view name) {
  step_address found;
  if (!b.are_stored_as(o.id, type)) return found;
  // What one element is loaded from, behind views that only move it: one load that no test guards.
  const std::size_t before = b.loads().size();
  b.begin();
  (void)(o.at ? b.emit(o.id, o.at(z, outer, k)) : o.emit(z, outer, k, "0"));
  found.statements = b.take();
  if (b.loads().size() != before + 1) return found;
  const element_load& load = b.loads().back();
  if (load.depth != 1 || !b.views_lead_to(o.id, load.id)) return found;
  // Neither the load nor what follows it: an address may be asked for that is beyond the operand.
  found.statements.resize(load.place);
  found.stored = load.id;
  found.offset = b.offset_of(load.id, load.index);
  if (!b.fits_offset(load.id, found.offset)) return found;
  const std::int64_t element_bytes = is_byte(type) ? 1 : type == dtype::float16 ? 2 : 4;
  if (element_bytes == 4) found.width = 1;
  for (const std::int64_t bytes : {16, 8, 4}) {
    const std::int64_t width = bytes / element_bytes;
    if (!(mod(extent, width) == index_expr(0))) continue;
    const index_expr part = b.index("part_" + std::string(name) + std::to_string(width), floordiv(extent, width));
    const auto at = [&](std::int64_t j) {
      return substitute(found.offset,
                        [&](const index_expr& symbol) { return symbol == running ? part * width + j : symbol; });
    };
    const index_expr first = at(0);
    bool side_by_side = mod(first, width) == index_expr(0);
    for (std::int64_t j = 1; side_by_side && j < width; ++j) side_by_side = at(j) == first + j;
    if (!side_by_side) continue;
    found.width = static_cast<int>(width);
    return found;
  }
  return found;
}

/// Whether an operand's codes are bytes with one zero point, so that they are loaded as they are.
[[nodiscard]] inline bool has_one_zero_point(kernel_builder& b, const step_operand& o) {
  if (o.dequantizer == no_node) return false;
  const node& n = b.g().node_at(o.dequantizer);
  if (!is_byte(b.g().facts(n.inputs[0]).type)) return false;
  if (n.inputs.size() < 3 || n.inputs[2] == no_value) return true;
  const value_facts& zero = b.g().facts(n.inputs[2]);
  return zero.is_constant() && is_one_byte_all_over(zero.constant);
}

/// The one zero point of an operand's codes, as an int.
[[nodiscard]] inline std::string zero_code_of(kernel_builder& b, const step_operand& o) {
  const std::vector<value_id>& from = b.g().node_at(o.dequantizer).inputs;
  if (from.size() < 3 || from[2] == no_value) return "0";
  b.begin();
  const std::string code = b.emit(from[2], std::vector<index_expr>(b.dims(from[2]).size(), index_expr(0)));
  (void)b.take();
  return "((int)" + code + ")";
}

/// The codes of such an operand where each element's place is known, so that several are loaded at once; else nothing.
[[nodiscard]] inline std::optional<step_operand> whole_codes(kernel_builder& b, const step_operand& o) {
  if (!has_one_zero_point(b, o) || !o.at) return std::nullopt;
  const node& n = b.g().node_at(o.dequantizer);
  step_operand made = o;
  made.id = n.inputs[0];
  made.dequantizer = no_node;
  return made;
}

}  // namespace dnnopt::codegen

#endif  // DNNOPT_BACKEND_CODEGEN_FRAMES_STEPS_STEP_PRODUCT_HPP

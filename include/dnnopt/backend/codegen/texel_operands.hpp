// Owns the operands and results of frames that lie in texels: constants packed once, loads of four, stores of four.
#ifndef DNNOPT_BACKEND_CODEGEN_TEXEL_OPERANDS_HPP
#define DNNOPT_BACKEND_CODEGEN_TEXEL_OPERANDS_HPP

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dnnopt/backend/codegen/frames/products/matrix_frame.hpp>
#include <dnnopt/inexpressible.hpp>

namespace dnnopt::codegen {

/// Whether an element of a value is computed in the block from texels.
[[nodiscard]] inline bool reads_texels(const block_view& block, value_id id) {
  const value& v = block.g.value_at(id);
  if (v.producer == no_node || std::find(block.members.begin(), block.members.end(), v.producer) == block.members.end())
    return v.facts.texels.has_value();
  const auto& inputs = block.g.node_at(v.producer).inputs;
  return std::any_of(inputs.begin(), inputs.end(),
                     [&](value_id in) { return in != no_value && reads_texels(block, in); });
}

/// The element type in which a constant of the block is packed: float16 where it is stored so, all else float32.
[[nodiscard]] inline dtype packed_type(const block_view& block, value_id id) {
  const value& v = block.g.value_at(id);
  if (v.facts.is_constant()) return v.facts.type == dtype::float16 ? dtype::float16 : dtype::float32;
  for (const value_id in : block.g.node_at(v.producer).inputs)
    if (in != no_value && packed_type(block, in) == dtype::float16) return dtype::float16;
  return dtype::float32;
}

/// A constant matrix operand: `outer` rows or columns by `inner` elements, for each of `batch`.
struct constant_operand {
  value_id id = no_value;
  std::int64_t batch = 1;
  std::int64_t outer = 1;
  std::int64_t inner = 1;

  /// Texels hold four neighbours of the outer index, so that a work-item keeps what it reads as one vector of its tile.
  [[nodiscard]] texel_extents extents() const { return {(outer + 3) / 4, batch * inner}; }
};

/// Texels that a constant operand is packed in: their scratch buffer and what they are.
struct packed_operand {
  std::size_t scratch = 0;
  texel_storage storage;

  /// Where four neighbours of `outer` (a multiple of four) stand at `inner` of matrix `batch`.
  [[nodiscard]] texel_place place(const constant_operand& operand, const index_expr& batch, const index_expr& outer,
                                  const index_expr& inner) const {
    return {floordiv(outer, 4), batch * operand.inner + inner, storage.extents.width};
  }
};

/// Packs a constant operand as texels of `type` once, by a kernel of `result.prepare`. `read(b, z, i, k)` emits an
/// element.
template <class Read>
[[nodiscard]] packed_operand pack_texel_constant(lowered_node& result, const lowering_site& site,
                                                 const constant_operand& operand, dtype type, Read&& read) {
  std::string why;
  const texel_storage storage = choose_object(operand.extents(), type, site.options.memory, site.options.device, why);
  if (!why.empty())
    result.notes.push_back("'" + site.block.g.value_at(operand.id).name + "' is packed in a buffer: " + why);
  const std::size_t number = result.scratch.size();
  result.scratch.push_back({texel_bytes(storage.extents, type), true, storage});

  kernel_builder own(site.block, site.options.emitters);
  const index_expr width = storage.extents.width;
  const index_expr count = width * storage.extents.height;
  const index_expr i = own.index("i", count);
  own.begin();
  const std::string four = own.fresh("o");
  own.line("float4 " + four + " = (float4)(0.0f);");
  const index_expr row = floordiv(i, width);
  const element_site s(own, site.anchor, 0, {});
  for (std::int64_t j = 0; j < 4; ++j) {
    const index_expr at = mod(i, width) * 4 + j;
    own.open("{");
    s.when(kernel_builder::within(at, operand.outer), [&] {
      const index_expr r = own.define_index("r", at, operand.outer);
      own.line(four + ".s" + std::to_string(j) + " = " +
               read(own, floordiv(row, operand.inner), r, mod(row, operand.inner)) + ";");
    });
    own.close();
  }
  own.line(texel_write(own.scratch_texels(number, storage, true), {mod(i, width), row, width}, storage.object,
                       storage.layer_rows, type, four));
  const std::string statements = own.take();
  result.prepare.push_back(own.finish_items(kernels::prelude, statements, i, count, "pack"));
  return {number, storage};
}

/// Packs a constant operand as texels once and defines `name`(names...), which reads four neighbours of `outer_index`
/// (a multiple of four) at `inner_index` of matrix `batch_index`. `read(b, z, i, k)` emits an element. The function
/// returns a float4; where `as_bits`, and halves are packed in a buffer, their bits as uint2: returns whether it does.
template <class Read>
bool define_texel_constant(lowered_node& result, kernel_builder& b, const lowering_site& site,
                           const constant_operand& operand, std::string_view name, std::span<const std::string> names,
                           const index_expr& batch_index, const index_expr& outer_index, const index_expr& inner_index,
                           Read&& read, bool as_bits = false) {
  const dtype type = packed_type(site.block, operand.id);
  const packed_operand packed = pack_texel_constant(result, site, operand, type, std::forward<Read>(read));
  const texel_storage& storage = packed.storage;
  const texel_place place = packed.place(operand, batch_index, outer_index, inner_index);
  const std::string held = b.scratch_texels(packed.scratch, storage, false);
  const bool bits = as_bits && type == dtype::float16 && storage.object == memory_object::buffer;
  std::string text =
      std::string("static inline ") + (bits ? "uint2 " : "float4 ") + std::string(name) + "(DNNOPT_PARAMETERS";
  for (const std::string& n : names) text += ", const int " + n;
  b.add_function(text + ") { return " +
                 (bits ? "((__global const uint2*)" + held + ")[" +
                             texel_coordinates(place, storage.object, storage.layer_rows) + "]"
                       : texel_read(held, place, storage.object, storage.layer_rows, type)) +
                 "; }\n");
  return bits;
}

/// Defines `name`(names...), which returns four elements of `id` as the index named `running` (of `extent` values, a
/// multiple of four where it is called) counts on: `at(i)` is the index in `id` where it is i. Returns 4, or 1 where
/// the extent is no multiple of four.
template <class At>
[[nodiscard]] int define_emitted_load4(kernel_builder& b, std::string_view name, value_id id, std::string_view running,
                                       const index_expr& extent, std::span<const std::string> names, At&& at) {
  if (!(mod(extent, 4) == index_expr(0))) return 1;
  b.begin();
  const std::string quarter = "q_" + std::string(name);
  const index_expr q = b.index(quarter, floordiv(extent, 4));
  b.line("const int " + quarter + " = " + std::string(running) + " >> 2;");
  std::string four;
  for (std::int64_t j = 0; j < 4; ++j) four += (j == 0 ? "" : ", ") + b.emit(id, at(q * 4 + j));
  b.line("return (float4)(" + four + ");");
  std::string text = "static inline float4 " + std::string(name) + "(DNNOPT_PARAMETERS";
  for (const std::string& n : names) text += ", const int " + n;
  b.add_function(text + ") {\n" + b.take() + "}\n");
  return 4;
}

/// Which of a frame's four results stand in one texel.
enum class store_direction : std::uint8_t { single, rows, columns };

/// The direction in which results of an anchor are the texels of its block's outputs; `single` where none holds texels.
/// `at(m, n)` is the index of the anchor's element in row m, column n. Errors: unsupported where there is none.
template <class At>
[[nodiscard]] store_direction direction_of_texels(kernel_builder& b, const block_view& block, value_id anchor,
                                                  const index_expr& rows, const index_expr& columns, At&& at) {
  store_direction found = store_direction::single;
  const index_expr m = b.index("m", rows);
  const index_expr n = b.index("n", columns);
  for (const value_id out : block.outputs) {
    const auto& texels = block.g.facts(out).texels;
    if (!texels) continue;
    // An output of other dims is checked when its store is written.
    const std::size_t packed = b.dims(out) == b.dims(anchor) ? texels->packed : 1;
    const auto fits = [&](bool along_rows) {
      const index_expr q = b.index(along_rows ? "quarter_m" : "quarter_n", ceildiv(along_rows ? rows : columns, 4));
      std::array<std::vector<index_expr>, 4> four;
      for (std::int64_t j = 0; j < 4; ++j)
        four[static_cast<std::size_t>(j)] = along_rows ? at(q * 4 + j, n) : at(m, q * 4 + j);
      return are_one_texel(four, packed);
    };
    const store_direction own = fits(true)    ? store_direction::rows
                                : fits(false) ? store_direction::columns
                                              : store_direction::single;
    if (own == store_direction::single || (found != store_direction::single && found != own))
      throw inexpressible("the frame owns no four neighbours along the packed dim of '" + block.g.value_at(out).name +
                          "'");
    found = own;
  }
  return found;
}

/// The parameters of a frame's store of four.
[[nodiscard]] inline std::vector<std::string> names_of_store4(store_direction along) {
  if (along == store_direction::rows) return {"z", "quarter", "n"};
  return {"z", "m", "quarter"};
}

/// The four results that a frame stores along a direction; `at(m, n)` as in direction_of_texels.
template <class At>
[[nodiscard]] four_results results_along(kernel_builder& b, store_direction along, const index_expr& rows,
                                         const index_expr& columns, At&& at) {
  const bool by_rows = along == store_direction::rows;
  const index_expr extent = by_rows ? rows : columns;
  const index_expr q = b.index("quarter", ceildiv(extent, 4));
  const index_expr other = by_rows ? b.index("n", columns) : b.index("m", rows);
  four_results four;
  for (std::int64_t j = 0; j < 4; ++j) {
    const index_expr own = q * 4 + j;
    four.at[static_cast<std::size_t>(j)] = by_rows ? at(own, other) : at(other, own);
    four.within[static_cast<std::size_t>(j)] = kernel_builder::within(own, extent);
  }
  return four;
}

}  // namespace dnnopt::codegen

#endif  // DNNOPT_BACKEND_CODEGEN_TEXEL_OPERANDS_HPP

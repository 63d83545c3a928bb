// Owns how the output of element expressions is cut into tiles that pass through local memory.
#ifndef DNNOPT_BACKEND_CODEGEN_FRAMES_MAPS_TRANSPOSED_TILES_HPP
#define DNNOPT_BACKEND_CODEGEN_FRAMES_MAPS_TRANSPOSED_TILES_HPP

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dnnopt/backend/codegen/lowering_row.hpp>

namespace dnnopt::codegen {

/// How a block's output is cut into tiles that pass through local memory: dims of the output joined where the staged
/// operands allow it, and which of them go with a tile.
struct transposed_tiles {
  std::vector<shape> groups;        ///< dims of the output that make one index; together all dims, in order
  std::size_t across = 0;           ///< the group along which the operands are contiguous; the last one is the output's
  std::vector<std::size_t> staged;  ///< numbers of the operand reads that pass through local memory
};

namespace detail {

/// By how much `offset` grows with the symbol of `index`; nothing where that is no constant.
[[nodiscard]] inline std::optional<std::int64_t> stride_along(const index_expr& offset, const index_expr& index) {
  const auto symbol = index.as_symbol();
  if (!symbol) return 0;
  const index_expr next =
      substitute(offset, [&](const index_expr& one) { return *one.as_symbol() == *symbol ? one + 1 : one; });
  return (next - offset).as_constant();
}

}  // namespace detail

/// Work-items of a tile's side.
inline constexpr std::int64_t transposed_side = 32;

/// The tiles for a block's output, or why there are none: `why` is set.
[[nodiscard]] inline std::optional<transposed_tiles> transposed_tiles_of(const lowering_site& site, std::string& why) {
  const auto none = [&](std::string_view reason) {
    why = reason;
    return std::nullopt;
  };
  if (site.block.outputs.size() != 1) return none("more than one output");
  const value_id out = site.block.outputs.front();
  const value_facts& facts = site.block.g.facts(out);
  if (facts.texels) return none("the output holds texels");
  const auto known = static_dims(*facts.dims);
  if (!known) return none("dims are not known before execution");
  const std::int64_t count = element_count(*known);
  if (count < std::int64_t{16384} || !fits_int({0, count})) return none("too few elements, or too many");
  kernel_builder b(site.block, site.options.emitters);
  b.write_indices_whole();
  std::vector<index_expr> at;
  for (std::size_t d = 0; d < known->size(); ++d) {
    const std::int64_t extent = (*known)[d];
    at.push_back(extent == 1 ? index_expr(0) : b.index("o" + std::to_string(d), extent));
  }
  b.begin();
  const std::size_t depth = b.depth();
  try {
    (void)b.emit(out, at);
  } catch (const inexpressible& e) {
    return none(e.what());
  }
  (void)b.take();
  std::size_t last = known->size();
  while (last > 0 && (*known)[last - 1] == 1) --last;
  if (last == 0) return none("one element");
  --last;
  transposed_tiles tiles;
  std::optional<std::size_t> contiguous;
  std::vector<std::vector<std::optional<std::int64_t>>> strides;
  for (std::size_t i = 0; i < b.loads().size(); ++i) {
    const element_load& load = b.loads()[i];
    const auto dims = static_dims(b.dims(load.id));
    // Small operands stay in caches; what stands under a condition is not read for all elements.
    if (load.depth != depth || !dims || element_count(*dims) * 2 < count) continue;
    const index_expr offset = b.offset_of(load.id, load.index);
    std::vector<std::optional<std::int64_t>> own;
    for (const index_expr& index : at) own.push_back(detail::stride_along(offset, index));
    if (own[last] == 1) continue;
    std::optional<std::size_t> side;
    for (std::size_t d = 0; d < last; ++d)
      if ((*known)[d] > 1 && own[d] == 1) side = d;
    if (!side || (contiguous && *contiguous != *side)) continue;
    contiguous = side;
    tiles.staged.push_back(i);
    strides.push_back(std::move(own));
  }
  if (!contiguous) return none("no operand is read across");
  // Neighbouring dims are one where the staged operands have them as one.
  std::vector<std::size_t> innermost;
  for (std::size_t d = 0; d < known->size(); ++d) {
    const std::int64_t extent = (*known)[d];
    const bool joins = d > 0 && (extent == 1 || std::all_of(strides.begin(), strides.end(), [&](const auto& own) {
                                   const auto& outer = own[innermost.back()];
                                   return outer && own[d] && *outer == *own[d] * extent;
                                 }));
    if (!joins) {
      tiles.groups.emplace_back();
      innermost.push_back(d);
    }
    tiles.groups.back().emplace_back(extent);
    if (extent != 1) innermost.back() = d;
    if (d == *contiguous) tiles.across = tiles.groups.size() - 1;
  }
  if (tiles.across + 1 >= tiles.groups.size()) return none("the output's dims are one for the operands");
  const auto used = [&](const shape& group) {
    const std::int64_t extent = element_count(group).constant();
    const std::int64_t whole = (extent + transposed_side - 1) / transposed_side * transposed_side;
    return static_cast<double>(extent) / static_cast<double>(whole);
  };
  if (used(tiles.groups[tiles.across]) * used(tiles.groups.back()) < 0.4) return none("tiles would be mostly empty");
  if (tiles.staged.size() > 4) return none("more than four operands are read across");
  return tiles;
}

}  // namespace dnnopt::codegen

#endif  // DNNOPT_BACKEND_CODEGEN_FRAMES_MAPS_TRANSPOSED_TILES_HPP

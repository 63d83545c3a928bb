// Owns the kernel of element expressions whose neighbours in memory are not those of their operands: transpositions.
#ifndef DNNOPT_BACKEND_CODEGEN_FRAMES_MAPS_LOWER_TRANSPOSED_MAP_HPP
#define DNNOPT_BACKEND_CODEGEN_FRAMES_MAPS_LOWER_TRANSPOSED_MAP_HPP

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <dnnopt/backend/codegen/frames/maps/lower_map.hpp>

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
  std::vector<index_expr> at;
  for (std::size_t d = 0; d < known->size(); ++d) {
    const std::int64_t extent = (*known)[d];
    at.push_back(extent == 1 ? index_expr(0) : b.index("o" + std::to_string(d), extent));
  }
  b.begin();
  const std::size_t depth = b.depth();
  try {
    (void)b.emit(out, at);
  } catch (const error& e) {
    if (e.code() != errc::unsupported) throw;
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

/// Why the tiles do not suit: a device without work-items in step, or nothing that is read across.
[[nodiscard]] inline std::string reject_transposed_map(const lowering_site& site) {
  const device_info* device = site.options.device;
  if (device == nullptr || site.prefers_vectors() || device->max_work_group_size < 32)
    return "the device has no large work-groups in step";
  for (const node_id id : site.block.members) {
    const computation_kind kind = site.block.g.node_at(id).op->kind;
    if (kind != computation_kind::element_wise && kind != computation_kind::view)
      return "a member is more than an element-wise operator or a view";
  }
  std::string why;
  (void)transposed_tiles_of(site, why);
  return why;
}

/// A work-group computes a tile of 32 x 32 elements of the output. It reads the operands along their own neighbours
/// into local memory, and writes the output along its neighbours, so that both sides move whole cache lines (Ruetsch
/// and Micikevicius, Optimizing Matrix Transpose in CUDA, 2009). Work: four elements per work-item of 256.
/// Precondition: reject_transposed_map is empty. Errors: unsupported where a member has no element expression.
[[nodiscard]] inline lowered_node lower_transposed_map(const lowering_site& site) {
  std::string why;
  const transposed_tiles tiles = *transposed_tiles_of(site, why);
  const value_id out = site.block.outputs.front();
  kernel_builder b(site.block, site.options.emitters);
  const index_expr across_extent = element_count(tiles.groups[tiles.across]);
  const index_expr along_extent = element_count(tiles.groups.back());
  shape others;
  for (std::size_t g = 0; g + 1 < tiles.groups.size(); ++g)
    if (g != tiles.across) others.push_back(element_count(tiles.groups[g]));
  const index_expr across = b.index("across", across_extent);
  const index_expr along = b.index("along", along_extent);
  const std::vector<index_expr> rest = b.index_at(others, b.index("rest", element_count(others)));
  std::vector<index_expr> at;
  std::size_t other = 0;
  for (std::size_t g = 0; g < tiles.groups.size(); ++g) {
    const index_expr whole = g == tiles.across ? across : g + 1 == tiles.groups.size() ? along : rest[other++];
    for (const index_expr& one : b.index_at(tiles.groups[g], whole)) at.push_back(one);
  }
  // Once for the places that are read, which come in the same order as above.
  b.begin();
  (void)b.emit(out, at);
  (void)b.take();
  const std::vector<element_load> loads(b.loads().begin(), b.loads().end());

  const std::size_t group = std::min<std::size_t>(std::bit_floor(site.options.device->max_work_group_size), 256);
  const std::string side = std::to_string(transposed_side);
  const std::string pitch = std::to_string(transposed_side + 1);  // one more: a column is in as many banks as a row
  std::string locals;
  b.begin();
  for (std::size_t k = 0; k < tiles.staged.size(); ++k) {
    const element_load& load = loads[tiles.staged[k]];
    const std::string tile = "tile" + std::to_string(k);
    locals +=
        "  __local " + std::string(name_of(b.computed_as(load.id))) + " " + tile + "[" + side + " * " + pitch + "];\n";
    b.line(tile + "[(first + part) * " + pitch + " + column] = " + b.emit(load.id, load.index) + ";");
  }
  const std::string reading = b.take();
  b.begin();
  for (std::size_t k = 0; k < tiles.staged.size(); ++k) {
    const element_load& load = loads[tiles.staged[k]];
    const std::string element = "staged" + std::to_string(k);
    b.line("const " + std::string(name_of(b.computed_as(load.id))) + " " + element + " = tile" + std::to_string(k) +
           "[column * " + pitch + " + first + part];");
    b.bind(load.id, load.index, element);
  }
  const std::string element = b.emit(out, at);
  b.store(out, b.offset_of(out, at), element);
  const std::string writing = b.take();

  const index_expr tiles_along = ceildiv(along_extent, transposed_side);
  const index_expr tiles_across = ceildiv(across_extent, transposed_side);
  const auto pass = [&](const std::string& across_part, const std::string& along_part, const std::string& body) {
    return "  for (int part = 0; part < " + side +
           "; part += " + std::to_string(static_cast<std::int64_t>(group) / transposed_side) +
           ") {\n    const int across = across_tile * " + side + " + " + across_part +
           ";\n    const int along = along_tile * " + side + " + " + along_part + ";\n    if (across < " +
           index_source(across_extent) + " && along < " + index_source(along_extent) + ") {\n" + body + "    }\n  }\n";
  };
  kernel_plan plan = b.finish(
      kernels::prelude,
      "__kernel __attribute__((reqd_work_group_size(" + std::to_string(group) +
          ", 1, 1))) void dnnopt_kernel(DNNOPT_PARAMETERS) {\n" + locals +
          "  const int column = (int)get_local_id(0) % " + side + ";\n  const int first = (int)get_local_id(0) / " +
          side + ";\n  const int along_tile = (int)get_group_id(0) % " + index_source(tiles_along) +
          ";\n  const int across_tile = (int)get_group_id(0) / " + index_source(tiles_along) + " % " +
          index_source(tiles_across) + ";\n  const int rest = (int)get_group_id(0) / " +
          index_source(tiles_along * tiles_across) + ";\n" + pass("column", "first + part", reading) +
          "  barrier(CLK_LOCAL_MEM_FENCE);\n" + pass("first + part", "column", writing) + "}\n",
      "map_transposed");
  plan.global[0] = tiles_along * tiles_across * element_count(others) * static_cast<std::int64_t>(group);
  plan.local = {group, 1, 1};
  lowered_node result;
  result.kernels.push_back(std::move(plan));
  return result;
}

}  // namespace dnnopt::codegen

#endif  // DNNOPT_BACKEND_CODEGEN_FRAMES_MAPS_LOWER_TRANSPOSED_MAP_HPP

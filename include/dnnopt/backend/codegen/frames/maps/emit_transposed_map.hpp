// Owns the kernel of element expressions whose neighbours in memory are not those of their operands: transpositions.
#ifndef DNNOPT_BACKEND_CODEGEN_FRAMES_MAPS_EMIT_TRANSPOSED_MAP_HPP
#define DNNOPT_BACKEND_CODEGEN_FRAMES_MAPS_EMIT_TRANSPOSED_MAP_HPP

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <dnnopt/backend/codegen/frames/maps/choose.hpp>
#include <dnnopt/backend/codegen/frames/sources.hpp>

namespace dnnopt::codegen {

/// A work-group computes a tile of 32 x 32 elements of the output. It reads the operands along their own neighbours
/// into local memory, and writes the output along its neighbours, so that both sides move whole cache lines (Ruetsch
/// and Micikevicius, Optimizing Matrix Transpose in CUDA, 2009). Work: four elements per work-item of 256.
/// Errors: unsupported where a member has no element expression.
[[nodiscard]] inline lowered_node emit_transposed_map(const lowering_site& site, const choice& chosen) {
  std::string why;
  const transposed_tiles tiles = *transposed_tiles_of(site, why);
  const value_id out = site.block.outputs.front();
  kernel_builder b(site.block, site.options.emitters);
  b.write_indices_whole();
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

  const auto group = static_cast<std::size_t>(chosen["group"]);
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
          ", 1, 1))) void dnnopt_kernel(DNNOPT_KERNEL_PARAMETERS) {\n" + locals +
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

#endif  // DNNOPT_BACKEND_CODEGEN_FRAMES_MAPS_EMIT_TRANSPOSED_MAP_HPP

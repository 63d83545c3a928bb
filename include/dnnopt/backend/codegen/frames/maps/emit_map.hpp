// Owns the kernel of blocks without an anchor: one work-item per output element, whose value is an element expression.
#ifndef DNNOPT_BACKEND_CODEGEN_FRAMES_MAPS_EMIT_MAP_HPP
#define DNNOPT_BACKEND_CODEGEN_FRAMES_MAPS_EMIT_MAP_HPP

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <dnnopt/backend/codegen/frames/maps/choose.hpp>
#include <dnnopt/backend/codegen/frames/sources.hpp>

namespace dnnopt::codegen {

/// The kernel that computes a block's output `out` texel by texel, each element by its expression.
[[nodiscard]] inline kernel_plan lower_texel_map(const block_view& block, std::span<const emitter_row> emitters,
                                                 value_id out) {
  kernel_builder b(block, emitters);
  const std::size_t packed = block.g.facts(out).texels->packed;
  const shape dims = b.dims(out);
  const shape texels = texel_dims(dims, packed);
  const index_expr count = element_count(texels);
  const index_expr i = b.index("i", count);
  b.begin({i});
  std::vector<index_expr> at = b.index_at(texels, i);
  const index_expr slice = at[packed];
  const std::string four = b.fresh("o");
  b.line("float4 " + four + " = (float4)(0.0f);");
  for (std::int64_t j = 0; j < texel_width; ++j) {
    at[packed] = slice * texel_width + j;
    const std::string test = kernel_builder::within(at[packed], dims[packed]);
    if (test == kernel_builder::nowhere) break;
    if (!test.empty()) b.open("if (" + test + ") {");
    const std::string element = b.emit(out, at);
    b.line(four + ".s" + std::to_string(j) + " = " +
           (block.g.facts(out).narrowed ? "dnnopt_within_half(" + element + ")" : element) + ";");
    if (!test.empty()) b.close();
  }
  at[packed] = slice;
  b.write_texel(out, at, four);
  const std::string statements = b.take();
  return b.finish_items(kernels::prelude, statements, i, count, "map");
}

/// Outputs that one kernel of a map stores: each is an argument, and these are bounded.
inline constexpr std::size_t most_outputs = 32;

/// Lowers a block whose outputs are all element expressions (emitters, scalar expressions, views). Outputs of as many
/// elements share a kernel, `most_outputs` at most; each further count, and each output in texels, gets a kernel of its
/// own. Where there are at least `many` elements a work-item computes four, a work-group (of `group`) apart, so that
/// more reads are under way at a time. Errors: unsupported where a member has no element expression.
[[nodiscard]] inline lowered_node lower_map(const block_view& block, std::span<const emitter_row> emitters,
                                            std::int64_t many = unbounded, std::int64_t group = 64) {
  lowered_node result;
  std::vector<value_id> pending = block.outputs;
  while (!pending.empty()) {
    if (block.g.facts(pending.front()).texels) {
      result.kernels.push_back(lower_texel_map(block, emitters, pending.front()));
      pending.erase(pending.begin());
      continue;
    }
    kernel_builder b(block, emitters);
    const shape first = b.dims(pending.front());
    const index_expr count = element_count(first);
    if (count == index_expr(0)) {
      pending.erase(pending.begin());
      continue;
    }
    const index_expr i = b.index("i", count);
    std::vector<value_id> later;
    b.begin({i});
    std::size_t stored = 0;
    for (const value_id out : pending) {
      if (stored == most_outputs || !(element_count(b.dims(out)) == count) || block.g.facts(out).texels) {
        later.push_back(out);
        continue;
      }
      const std::string element = b.emit(out, b.index_at(b.dims(out), i));
      b.store(out, i, element);
      ++stored;
    }
    const std::string statements = b.take();
    const bool several = count.is_constant() && count.constant() >= many && fits_int(count.range());
    kernel_plan plan =
        several ? b.finish(kernels::prelude,
                           "__kernel __attribute__((reqd_work_group_size(" + std::to_string(group) +
                               ", 1, 1))) void "
                               "dnnopt_kernel(DNNOPT_KERNEL_PARAMETERS) {\n"
                               "  _Pragma(\"unroll\") for (int part = 0; part < 4; ++part) {\n"
                               "    const int i = ((int)get_group_id(0) * 4 + part) * " +
                               std::to_string(group) + " + (int)get_local_id(0);\n" +
                               (count.constant() % (4 * group) == 0 ? "    {\n"
                                                                    : "    if (i < " + index_source(count) + ") {\n") +
                               statements + "    }\n  }\n}\n",
                           "map")
                : b.finish_items(kernels::prelude, statements, i, count, "map");
    if (several) {
      plan.global[0] = ceildiv(count, 4 * group) * group;
      plan.local = {static_cast<std::size_t>(group), 1, 1};
    }
    result.kernels.push_back(std::move(plan));
    pending = std::move(later);
  }
  return result;
}

[[nodiscard]] inline lowered_node emit_map(const lowering_site& site, const choice& chosen) {
  return lower_map(site.block, site.options.emitters, chosen.find("many").value_or(unbounded),
                   chosen.find("group").value_or(64));
}

}  // namespace dnnopt::codegen

#endif  // DNNOPT_BACKEND_CODEGEN_FRAMES_MAPS_EMIT_MAP_HPP

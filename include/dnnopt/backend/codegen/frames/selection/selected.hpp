// Owns what kernels of selections share: places and count of the chosen candidates, in memory between their kernels.
#ifndef DNNOPT_BACKEND_CODEGEN_FRAMES_SELECTION_SELECTED_HPP
#define DNNOPT_BACKEND_CODEGEN_FRAMES_SELECTION_SELECTED_HPP

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <dnnopt/backend/codegen/elements/element_site.hpp>
#include <dnnopt/backend/codegen/frames/selection/choose.hpp>
#include <dnnopt/backend/codegen/frames/sources.hpp>
#include <dnnopt/backend/codegen/lowering_row.hpp>

namespace dnnopt::codegen {

/// Whether the block stores that output of the node.
[[nodiscard]] inline bool stores_output(const block_view& block, const node& n, std::size_t output) {
  return output < n.outputs.size() && n.outputs[output] != no_value &&
         std::find(block.outputs.begin(), block.outputs.end(), n.outputs[output]) != block.outputs.end();
}

/// Adds a scratch buffer of `count` elements and returns its number.
inline std::size_t add_scratch(lowered_node& to, const index_expr& count, std::int64_t element_bytes) {
  to.scratch.push_back({max(count, 1) * element_bytes});
  return to.scratch.size() - 1;
}

/// Candidates that one work-item counts.
inline constexpr std::int64_t candidates_per_item = 64;

/// Numbers of scratch buffers: the places (int32) of what is chosen, in their order, and how many there are (int64),
/// which is known when kernel `after` has run.
struct selected_places {
  std::size_t places = 0;
  std::size_t count = 0;
  std::size_t after = 0;
};

/// Adds kernels that keep the candidates 0 .. `count` - 1 for which `chosen(site, candidate)`, an integer expression in
/// OpenCL C, is not 0: counted in pieces, summed up by one work-item, then written where their piece begins. `most`
/// bounds `count` over the graph's symbols.
template <class Count, class Chosen>
selected_places keep_chosen(const lowering_site& site, lowered_node& to, const index_expr& most, Count&& count_of,
                            Chosen&& chosen) {
  const std::size_t begins = add_scratch(to, ceildiv(most, candidates_per_item), 4);
  selected_places made{add_scratch(to, most, 4), add_scratch(to, 1, 8)};
  const auto pieces = [&](const char* version, bool writes) {
    kernel_builder b(site.block, site.options.emitters);
    const element_site s(b, site.anchor, 0, {});
    const index_expr count = count_of(s);
    if (count == index_expr(0)) return;
    const index_expr parts = ceildiv(count, candidates_per_item);
    const index_expr i = b.index("i", parts);
    b.begin({i});
    const std::string begin = b.scratch(begins, dtype::int32, !writes);
    const std::string total = b.variable(compute_type::integer, writes ? begin + "[i]" : "0");
    s.loop("r", candidates_per_item, [&](const index_expr& r) {
      const index_expr at = i * candidates_per_item + r;
      s.when(kernel_builder::within(at, count), [&] {
        const index_expr candidate = b.define_index("c", at, count);
        const std::string is_chosen = chosen(s, candidate);
        if (!writes) {
          b.line(total + " += (" + is_chosen + ") != 0;");
          return;
        }
        b.open("if ((" + is_chosen + ") != 0) {");
        b.line(b.scratch(made.places, dtype::int32, true) + "[" + total + "] = " + index_source(candidate) + ";");
        b.line("++" + total + ";");
        b.close();
      });
    });
    if (!writes) b.line(begin + "[i] = (int)" + total + ";");
    const std::string statements = b.take();
    to.kernels.push_back(b.finish_items(kernels::prelude, statements, i, parts, version));
  };
  pieces("select_count", false);
  {
    kernel_builder b(site.block, site.options.emitters);
    const element_site s(b, site.anchor, 0, {});
    const index_expr i = b.index("i", 1);
    b.begin();
    const std::string begin = b.scratch(begins, dtype::int32, true);
    const std::string total = b.variable(compute_type::integer, "0");
    s.loop("r", ceildiv(count_of(s), candidates_per_item), [&](const index_expr& r) {
      const std::string part = b.let(compute_type::integer, begin + "[" + index_source(r) + "]");
      b.line(begin + "[" + index_source(r) + "] = (int)" + total + ";");
      b.line(total + " += " + part + ";");
    });
    b.line(b.scratch(made.count, dtype::int64, true) + "[0] = " + total + ";");
    const std::string statements = b.take();
    made.after = to.kernels.size();
    to.kernels.push_back(b.finish_items(kernels::prelude, statements, i, 1, "select_sum"));
  }
  pieces("select_places", true);
  return made;
}

/// Adds a kernel that computes the elements of an output of the site's node: `element(site, index)` returns the C name.
template <class Element>
void add_output_kernel(const lowering_site& site, lowered_node& to, std::size_t output, const char* version,
                       Element&& element) {
  const node& n = site.anchor_node();
  if (!stores_output(site.block, n, output)) return;
  kernel_builder b(site.block, site.options.emitters);
  const element_site s(b, site.anchor, output, {});
  const index_expr count = element_count(s.out_dims());
  if (count == index_expr(0)) return;
  const index_expr i = b.index("i", count);
  b.begin({i});
  const std::vector<index_expr> at = b.index_at(s.out_dims(), i);
  b.store(n.outputs[output], i, element(s, at));
  const std::string statements = b.take();
  to.kernels.push_back(b.finish_items(kernels::prelude, statements, i, count, version));
}

/// The place that a scratch buffer of integers holds at `at`, as an index below `extent`.
[[nodiscard]] inline index_expr place_at(const element_site& s, std::size_t scratch, const index_expr& at,
                                         const index_expr& extent) {
  const std::int64_t high = extent.range().high >= unbounded ? (std::int64_t{1} << 31) - 1
                                                             : std::max<std::int64_t>(extent.range().high - 1, 0);
  return s.b.define_integer("place", s.b.scratch(scratch, dtype::int32, false) + "[" + index_source(at) + "]",
                            {0, high});
}

}  // namespace dnnopt::codegen

#endif  // DNNOPT_BACKEND_CODEGEN_FRAMES_SELECTION_SELECTED_HPP

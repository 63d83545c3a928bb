// Owns the kernels of TopK of long rows: sorted runs, which are merged, of each no more elements than are asked for.
#ifndef DNNOPT_BACKEND_CODEGEN_FRAMES_INDEXED_EMIT_TOP_K_RUNS_HPP
#define DNNOPT_BACKEND_CODEGEN_FRAMES_INDEXED_EMIT_TOP_K_RUNS_HPP

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <dnnopt/backend/codegen/elements/element_site.hpp>
#include <dnnopt/backend/codegen/frames/indexed/choose.hpp>
#include <dnnopt/backend/codegen/frames/selection/selected.hpp>
#include <dnnopt/backend/codegen/frames/sources.hpp>

namespace dnnopt::codegen {

/// What TopK orders by.
struct top_k_order {
  const node& n;
  value_id x;
  dtype type;
  std::size_t axis;
  bool largest;
  value_id stored = no_value;  ///< the first output that there is

  explicit top_k_order(const lowering_site& site)
      : n(site.anchor_node()),
        x(n.inputs[0]),
        type(site.input(0).type),
        axis(normalize_axis(n.attributes.get_int("axis", -1), site.input(0).dims->size())),
        largest(n.attributes.get_int("largest", 1) != 0) {
    for (const value_id out : n.outputs)
      if (out != no_value && stored == no_value) stored = out;
  }
  /// The test in OpenCL C whether `a` comes before `c`. NaN comes first among the largest and last among the smallest,
  /// as in numpy's order.
  [[nodiscard]] std::string before(const std::string& a, const std::string& c) const {
    if (!element_site::is_real(c_type_of(type).compute)) return "(" + a + (largest ? " > " : " < ") + c + ")";
    return largest ? "(" + a + " > " + c + " || (" + a + " != " + a + " && " + c + " == " + c + "))"
                   : "(" + a + " < " + c + " || (" + c + " != " + c + " && " + a + " == " + a + "))";
  }
};

namespace detail {

/// How rows become sorted: elements of the first runs, and how many runs become one.
struct top_k_stages {
  std::int64_t first = 0;
  std::int64_t merged = 0;
};
/// Few runs at a time compare least. Where only a run tells the length, each stage that rows might need is a launch to
/// be looked at, and six serve all lengths.
[[nodiscard]] inline top_k_stages stages_of(const index_expr& length) {
  return length.is_constant() ? top_k_stages{64, 4} : top_k_stages{256, 16};
}

/// Numbers of the scratch buffers of a stage: keys, and where they stand in their row (int32). A row has as many places
/// as elements, and run r of those of `length` elements begins at place r * min(k, length) of it.
struct top_k_buffers {
  std::size_t keys = 0;
  std::size_t places = 0;
};

/// Writes the kernels of one TopK.
struct top_k_writer {
  const lowering_site& site;
  top_k_order order;
  index_expr length;  ///< of a row, over the graph's symbols
  index_expr rows;
  index_expr k;
  top_k_stages stages;
  std::array<top_k_buffers, 2> buffers;

  explicit top_k_writer(const lowering_site& of) : site(of), order(of) {
    shape lanes = *site.input(0).dims;
    length = std::exchange(lanes[order.axis], index_expr(1));
    rows = element_count(lanes);
    stages = stages_of(length);
    k = (*site.block.g.facts(order.stored).dims)[order.axis];
  }

  /// The statements that give element `mine`, which stands at `index` of row number `row` and comes to `place` of its
  /// run of `reach` elements, to the outputs where that is the row, else to the buffers. All in OpenCL C but `row` and
  /// `reach`.
  void hand_on(kernel_builder& b, const index_expr& row, const std::string& run, const std::string& place,
               const std::string& mine, const std::string& index, const index_expr& reach,
               const top_k_buffers& to) const {
    const std::string whole = index_source(b.argument(length));
    const std::string kept = index_source(min(b.argument(k), reach));
    b.open("if (" + place + " < " + kept + ") {");
    b.open("if (" + whole + " <= " + index_source(reach) + ") {");
    shape lanes = b.dims(order.x);
    lanes[order.axis] = 1;
    std::vector<index_expr> at = b.index_at(lanes, row);
    at[order.axis] = b.define_integer("q", place, {0, std::max<std::int64_t>(b.argument(k).range().high - 1, 0)});
    for (std::size_t o = 0; o < order.n.outputs.size(); ++o)
      if (const value_id out = order.n.outputs[o]; out != no_value)
        b.store(out, b.offset_of(out, at), o == 0 ? mine : index);
    b.close("} else {");
    b.line("  const long to = (long)" + index_source(row) + " * " + whole + " + (long)(" + run + ") * " + kept + " + " +
           place + ";");
    b.line("  " + fill_pattern(c_type_of(order.type).store, b.scratch(to.keys, order.type, true), "to", mine));
    b.line("  " + b.scratch(to.places, dtype::int32, true) + "[to] = (int)" + index + ";");
    b.line("}");
    b.close();
  }

  /// Each element counts how many of its run come before it.
  [[nodiscard]] kernel_plan runs() const {
    kernel_builder b(site.block, site.options.emitters);
    const element_site s(b, site.anchor, 0, {});
    const shape& x = s.dims(0);
    const index_expr n = x[order.axis];
    const index_expr count = element_count(x);
    const index_expr i = b.index("i", count);
    b.begin({i});
    shape lanes = x;
    lanes[order.axis] = 1;
    const index_expr all = element_count(lanes);
    const auto highest = [](const index_expr& extent) {
      return extent.range().high >= unbounded ? (std::int64_t{1} << 31) - 1
                                              : std::max<std::int64_t>(extent.range().high - 1, 0);
    };
    const index_expr row = b.define_integer("row", index_source(floordiv(i, n)), {0, highest(all)});
    const index_expr along = b.define_integer("along", index_source(mod(i, n)), {0, highest(n)});
    std::vector<index_expr> own = b.index_at(lanes, row);
    own[order.axis] = along;
    // Keys are what the type holds, also where members of the block compute them with more digits.
    const auto read = [&](const std::vector<index_expr>& at) {
      const c_type_row& type = c_type_of(order.type);
      const std::string key = s.read(0, at);
      return b.is_member_value(order.x) && type.narrow != "$v"
                 ? b.let(type.compute, fill_pattern(type.narrow, "", "", key))
                 : key;
    };
    const std::string mine = read(own);
    const std::string place = b.variable(compute_type::integer, "0");
    s.loop("r", stages.first, [&](const index_expr& r) {
      const index_expr at = along - mod(along, stages.first) + r;
      s.when(kernel_builder::within(at, n), [&] {
        std::vector<index_expr> from = own;
        from[order.axis] = b.define_index("c", at, n);
        const std::string other = read(from);
        b.line(place + " += " + order.before(other, mine) + " || (" + index_source(from[order.axis]) + " < " +
               index_source(along) + " && !" + order.before(mine, other) + ") ? 1 : 0;");
      });
    });
    hand_on(b, row, index_source(floordiv(along, stages.first)), b.let(compute_type::integer, place), mine,
            index_source(along), stages.first, buffers[0]);
    const std::string statements = b.take();
    return b.finish_items(kernels::prelude, statements, i, count, "top_k_runs");
  }

  /// Each element finds its place among those of the runs that are merged with its own, by a binary search in each. One
  /// source serves all stages. A stage has no work-items where its runs are rows already.
  [[nodiscard]] kernel_plan merge(std::int64_t run_length, const top_k_buffers& from, const top_k_buffers& to) const {
    kernel_builder b(site.block, site.options.emitters);
    const index_expr items = rows * ceildiv(length, run_length) * min(k, run_length) * is_less(run_length, length);
    constexpr std::int64_t longest = (std::int64_t{1} << 31) - 1;
    const index_expr count = b.argument(items);
    const std::string n = index_source(b.argument(length));
    const index_expr run_argument = b.argument(run_length);
    const std::string run = index_source(run_argument);
    const index_expr reach = b.argument(std::min(run_length * stages.merged, longest));
    const std::string keys = b.scratch(from.keys, order.type, false);
    const std::string places = b.scratch(from.places, dtype::int32, false);
    const c_type_row& type = c_type_of(order.type);
    const std::string key_type(name_of(type.compute));
    const std::string merged = std::to_string(stages.merged);
    const auto key_at = [&](const std::string& at) { return fill_pattern(type.load, keys, at, ""); };
    const index_expr i = b.index("i", count);
    b.begin({i});
    b.line("const int kept = " + index_source(min(b.argument(k), run_argument)) + ";");
    b.line("const int runs = (" + n + " - 1) / " + run + " + 1;");
    b.line("const int own = (int)(i / kept % runs);");
    const index_expr row = b.define_integer("row", "i / kept / runs", {0, longest});
    b.line("const int before = (int)(i % kept);");
    b.line("if (before >= " + n + " - own * " + run + ") return;");
    b.line("const long begin = (long)" + index_source(row) + " * " + n + ";");
    b.line("const long at = begin + (long)own * kept + before;");
    b.line("const " + key_type + " mine = " + key_at("at") + ";");
    b.line("const int first = own - own % " + merged + ";");
    b.line("int place = before;");
    b.open("for (int other = first; other < min(first + " + merged + ", runs); ++other) {");
    b.line("if (other == own) continue;");
    b.line("const long base = begin + (long)other * kept;");
    b.line("int low = 0;");
    // Where only a run tells the length, it may be of another type than the rest.
    b.line("int high = (int)min((long)kept, (long)" + n + " - (long)other * " + run + ");");
    b.open("while (low < high) {");
    b.line("const int middle = low + (high - low) / 2;");
    b.line("const " + key_type + " key = " + key_at("base + middle") + ";");
    // Of equal elements those of the run before come first.
    b.line("if (other < own ? !" + order.before("mine", "key") + " : " + order.before("key", "mine") + ")");
    b.line("  low = middle + 1;");
    b.line("else");
    b.line("  high = middle;");
    b.close();
    b.line("place += low;");
    b.close();
    hand_on(b, row, "own / " + merged, "place", "mine", places + "[at]", reach, to);
    const std::string statements = b.take();
    return b.finish_items(kernels::prelude, statements, i, count, "top_k_merge");
  }
};

}  // namespace detail

/// Short runs are sorted by counting, then some at a time are merged until one is left, and of each no more elements
/// are kept than the operator gives. Equal elements keep their order. Work grows with n log(n) log(k). Source: Satish,
/// Harris and Garland 2009, "Designing efficient sorting algorithms for manycore GPUs", merge sort.
[[nodiscard]] inline lowered_node emit_top_k_runs(const lowering_site& site) {
  detail::top_k_writer writer(site);
  lowered_node result;
  const index_expr most = bounded_count(site.block.g, writer.order.x).value_or(element_count(*site.input(0).dims));
  const auto key_bytes = static_cast<std::int64_t>(size_of(writer.order.type));
  for (detail::top_k_buffers& buffer : writer.buffers)
    buffer = {add_scratch(result, most, key_bytes), add_scratch(result, most, 4)};
  result.kernels.push_back(writer.runs());
  const std::int64_t longest = std::min(writer.length.range().high, (std::int64_t{1} << 31) - 1);
  std::size_t from = 0;
  for (std::int64_t run = writer.stages.first; run < longest; run *= writer.stages.merged) {
    result.kernels.push_back(writer.merge(run, writer.buffers[from], writer.buffers[1 - from]));
    from = 1 - from;
  }
  return result;
}

}  // namespace dnnopt::codegen

#endif  // DNNOPT_BACKEND_CODEGEN_FRAMES_INDEXED_EMIT_TOP_K_RUNS_HPP

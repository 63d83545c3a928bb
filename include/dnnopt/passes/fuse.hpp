// Owns the fusion pass: the plan of which nodes run as one kernel.
#ifndef DNNOPT_PASSES_FUSE_HPP
#define DNNOPT_PASSES_FUSE_HPP

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include <dnnopt/graph.hpp>
#include <dnnopt/ops/mapping_table.hpp>
#include <dnnopt/passes/fusion/anchor_joins.hpp>
#include <dnnopt/passes/fusion/join_judge.hpp>
#include <dnnopt/passes/fusion/join_rules.hpp>
#include <dnnopt/passes/fusion/planner.hpp>
#include <dnnopt/passes/fusion/successor_joins.hpp>
#include <dnnopt/passes/pass.hpp>

namespace dnnopt {

/// What fusion may do; each switch off is a row of an ablation.
struct fuse_options {
  bool views = true;      ///< views become index maps of who reads or stores (SmartMem section 3.2)
  bool prologues = true;  ///< element expressions join the anchor or expression that reads them
  bool stores = true;     ///< a block stores its result as its only reader wants it (SmartMem section 3.2.2)
};

/// Before: a graph of operators. After: the same graph with a fusion plan (graph::blocks): blocks of one anchor with
/// element-wise operators and index maps around it, or of element expressions alone, each of which becomes one kernel.
///
/// Nodes are visited in topological order, so that each joins the block that computes its operand when it can
/// (DNNFusion section 4.3, successor fusion), then blocks of expressions join their only reader (predecessor fusion).
/// DNNFusion's table judges each pair of mapping types; where it says that it depends, or a join computes elements
/// again, the cost table of fusion/join_rules.hpp does, unless `judge` knows or measures better. A join never closes a
/// cycle between blocks. Precondition: rdp has run. O((V + E) log V) but for the searches for such cycles, each of
/// which looks at no more than 256 blocks.
class fuse_blocks {
 public:
  static constexpr std::string_view name = "fuse";

  fuse_options options{};
  fusion::join_judge* judge = nullptr;  ///< answers what depends; null: the shipped rule alone

  pass_result run(graph& g) const {
    work w(g, options, judge);
    // What must be stored of them is seen to with the views.
    if (options.prologues && options.views) w.leave_wide_results();
    w.joins += fusion::successor_joins(g, w.p, w.derived).run();
    if (options.views) w.store_views_that_must_be();
    if (options.prologues) w.join_predecessors();
    if (options.prologues) w.joins += fusion::anchor_joins(g, w.p, w.derived).run();
    if (options.views && options.stores) w.store_through_views();
    if (judge != nullptr && options.prologues) w.join_spread_results();
    if (judge != nullptr && options.views) w.store_views_where_that_pays();
    pass_result result;
    result.edits = w.joins;
    std::vector<fused_block> plan = w.p.finish();
    for (const fused_block& block : plan)
      for (const std::string& why : block.why_not)
        result.remarks.push_back("'" + g.node_at(block.members.back()).name + "': " + why);
    g.set_blocks(std::move(plan));
    return result;
  }

 private:
  using block_id = fusion::block_id;

  struct work {
    work(const graph& graph_, const fuse_options& options_, fusion::join_judge* judge_)
        : g(graph_), options(options_), judge(judge_), p(graph_, !options_.views) {
      for (block_id b = 0; b < p.block_count(); ++b)
        if (p.at(b).anchor != no_node)
          for (const value_id out : g.node_at(p.at(b).anchor).outputs)
            if (out != no_value) derived.emplace(out, no_node);
    }

    const graph& g;
    fuse_options options;
    fusion::join_judge* judge;
    fusion::planner p;
    std::size_t joins = 0;
    std::optional<fusion::join_times> times;  ///< what the last answer rests on
    /// For values that an anchor's result made: the last view on the way, so that equal ways mean equal indices.
    std::unordered_map<value_id, node_id> derived;

    /// What makes floats of bytes, element by element, is computed by whoever reads it: bytes are stored, a fourth of
    /// the memory, and products of integers and of floats may read the same ones.
    void leave_wide_results() {
      for (const node_id id : p.order()) {
        const node& n = g.node_at(id);
        if (p.role_at(id) != fusion::role::element || n.op->kind != computation_kind::element_wise ||
            n.outputs.size() != 1 || n.inputs.empty() || n.inputs[0] == no_value || p.is_output(n.outputs[0]))
          continue;
        const dtype from = g.facts(n.inputs[0]).type;
        if ((from != dtype::int8 && from != dtype::uint8) || g.facts(n.inputs[0]).is_constant() ||
            !is_floating(g.facts(n.outputs[0]).type) || size_of(g.facts(n.outputs[0]).type) == 1 ||
            !(*g.facts(n.inputs[0]).dims == *g.facts(n.outputs[0]).dims))
          continue;
        if (std::all_of(n.inputs.begin() + 1, n.inputs.end(),
                        [&](value_id in) { return in == no_value || g.facts(in).is_constant(); }))
          p.leave_to_readers(id);
      }
    }

    std::set<block_id> kept;  ///< blocks of views that end a long way: no reader computes them for itself
    /// How far an element of a view is from memory: views on the way, and places that it may come from.
    struct view_way {
      std::size_t views = 0;
      std::size_t places = 1;
    };
    static constexpr view_way longest_way{24, 31};

    /// Graph outputs and what runs alone read memory: views before them are stored, by who computes their input where
    /// that goes. So are views at the end of a long way: each reader would go it for every element.
    void store_views_that_must_be() {
      std::unordered_map<node_id, view_way> ways;
      for (const node_id id : p.order()) {
        if (!p.is_virtual(id)) continue;
        view_way way_of_view{1, 0};
        for (const value_id in : g.node_at(id).inputs) {
          if (in == no_value || g.facts(in).is_constant() || g.facts(in).elements) continue;
          const auto before = g.value_at(in).producer == no_node ? ways.end() : ways.find(g.value_at(in).producer);
          way_of_view.views = std::max(way_of_view.views, before == ways.end() ? 1 : before->second.views + 1);
          way_of_view.places += before == ways.end() ? 1 : before->second.places;
        }
        bool must = way_of_view.views > longest_way.views || way_of_view.places > longest_way.places;
        for (const value_id out : g.node_at(id).outputs) {
          if (out == no_value) continue;
          must = must || p.is_output(out);
          for (const value_use& use : g.value_at(out).uses)
            must = must || (p.owner(use.node) != fusion::no_block && p.at(p.owner(use.node)).fixed);
        }
        if (!must) {
          ways.emplace(id, way_of_view);
          continue;
        }
        const node& n = g.node_at(id);
        const bool flat = n.op->mapping == mapping_type::reorganize;
        const fusion::planner::path way = p.trace(n.inputs[0]);
        const block_id b = p.owner_of_value(way.root);
        if (!flat && n.op->unview != nullptr && n.outputs.size() == 1 && way.invertible && b != fusion::no_block &&
            can_store(b, way.root)) {
          adopt_chain(n.outputs[0], way.root, b);
          continue;
        }
        const block_id stored = p.make_block(id);
        if (way_of_view.views > longest_way.views || way_of_view.places > longest_way.places) kept.insert(stored);
      }
    }

    [[nodiscard]] bool can_store(block_id b, value_id root) const {
      const fusion::planner::block& block = p.at(b);
      if (block.fixed) return false;
      if (block.anchor == no_node) return true;
      return fusion::takes_epilogue(g.node_at(block.anchor).op->kind) && derived.contains(root);
    }

    /// Gives the views between `root` and `v` to the block that computes `root`.
    void adopt_chain(value_id v, value_id root, block_id b) {
      std::vector<node_id> chain;
      for (value_id at = v; at != root; at = g.node_at(g.value_at(at).producer).inputs[0])
        chain.push_back(g.value_at(at).producer);
      for (auto id = chain.rbegin(); id != chain.rend(); ++id) {
        p.adopt(*id, b);
        if (derived.contains(root)) derived.emplace(g.node_at(*id).outputs[0], *id);
      }
      ++joins;
    }

    /// Blocks of expressions join their only reader, latest first.
    void join_predecessors() {
      std::vector<block_id> sorted;
      for (block_id b = 0; b < p.block_count(); ++b)
        if (p.at(b).alive) sorted.push_back(b);
      std::sort(sorted.begin(), sorted.end(), [&](block_id x, block_id y) { return p.at(x).last > p.at(y).last; });
      for (const block_id b : sorted) {
        const fusion::planner::block& block = p.at(b);
        if (!block.alive || block.fixed || block.anchor != no_node) continue;
        join_reader(b);
      }
    }

    void join_reader(block_id b) {
      std::vector<value_id> values;
      std::vector<block_id> readers;
      bool outputs = false;
      for (const node_id id : p.at(b).members) {
        for (const value_id out : g.node_at(id).outputs) {
          if (out == no_value) continue;
          std::vector<node_id> nodes;
          p.readers(out, nodes);
          bool outside = p.reaches_output(out);
          outputs = outputs || outside;
          for (const node_id reader : nodes) {
            if (p.owner(reader) == fusion::no_block || p.owner(reader) == b) continue;
            outside = true;
            if (std::find(readers.begin(), readers.end(), p.owner(reader)) == readers.end())
              readers.push_back(p.owner(reader));
          }
          if (outside) values.push_back(out);
        }
      }
      std::sort(readers.begin(), readers.end(), [&](block_id x, block_id y) { return p.at(x).first < p.at(y).first; });
      if (readers.size() > 1 && !outputs && spreads(b, values) && every_reader_takes(b, readers)) {
        p.inline_block(b);
        ++joins;
        return;
      }
      for (const block_id reader : readers) {
        const bool only = readers.size() == 1 && !outputs;
        std::string why = reject_before(b, reader, values, only);
        if (why.empty()) why = reject_by_profile(b, reader, values);
        if (why.empty()) {
          p.merge(b, reader);
          ++joins;
          return;
        }
        p.remark(b, "does not join '" + g.node_at(p.at(reader).members.front()).name + "': " + why);
        if (only) return;
      }
    }

    /// Whether a block is cheap and made of far fewer elements than it stores.
    [[nodiscard]] bool spreads(block_id b, const std::vector<value_id>& values) const {
      const fusion::planner::block& block = p.at(b);
      if (block.cost > fusion::inline_limit || values.size() != 1) return false;
      for (const node_id id : block.members)
        if (p.role_at(id) != fusion::role::element) return false;
      const auto stored = element_count(*g.facts(values[0]).dims).as_constant();
      std::int64_t read = 0;
      for (const node_id id : block.members)
        for (const value_id in : g.node_at(id).inputs) {
          if (in == no_value || p.owner_of_value(in) == b) continue;
          const auto count = element_count(*g.facts(in).dims).as_constant();
          if (!count) return false;
          read += *count;
        }
      return stored && (read * 2 <= *stored || *stored <= fusion::few_elements);
    }
    [[nodiscard]] bool every_reader_takes(block_id b, const std::vector<block_id>& readers) const {
      if (readers.size() > fusion::most_inlining_readers) return false;
      return std::all_of(readers.begin(), readers.end(), [&](block_id r) {
        if (p.at(r).fixed) return false;
        if (p.at(r).anchor == no_node) return true;
        const fusion::prologue_row* row = fusion::find_prologue(g.node_at(p.at(r).anchor).op->kind);
        return row != nullptr && row->reads * p.at(b).cost <= fusion::prologue_limit;
      });
    }

    [[nodiscard]] std::string reject_before(block_id b, block_id reader, const std::vector<value_id>& values,
                                            bool only) const {
      const fusion::planner::block& to = p.at(reader);
      if (to.fixed) return "it runs alone";
      if (kept.contains(b)) return "the way to its elements is long";
      if (to.anchor != no_node) {
        const fusion::prologue_row* row = fusion::find_prologue(g.node_at(to.anchor).op->kind);
        if (row == nullptr) return "the frame has no prologue";
        if (!only) {
          if (!row->stores_before) return "others read it too";
          const node& anchor = g.node_at(to.anchor);
          for (const value_id v : values)
            if (v != anchor.inputs[0] || !(*g.facts(v).dims == *g.facts(anchor.outputs[0]).dims))
              return "others read it too";
          std::vector<block_id> sources = p.sources(reader);
          if (p.depends_on(sources, b)) return "another operand depends on it";
        }
      } else if (!only) {
        return "others read it too";
      }
      return p.reject_size(b, reader);
    }

    /// How often a block's elements are computed, about, where its only reader computes them for itself.
    [[nodiscard]] int reads_of(block_id b, block_id reader, const std::vector<value_id>& values) const {
      const fusion::planner::block& to = p.at(reader);
      if (to.anchor != no_node) return fusion::find_prologue(g.node_at(to.anchor).op->kind)->reads;
      // An expression that is read for many elements of the reader is computed once for each.
      const auto own = element_count(*g.facts(values.front()).dims).as_constant();
      const auto whole = element_count(*g.facts(g.node_at(to.members.back()).outputs[0]).dims).as_constant();
      if (!own || !whole) return p.at(b).cost > 8 ? 1000 : 1;
      if (*own <= 0) return 1;
      return static_cast<int>(std::min<std::int64_t>(std::max<std::int64_t>(*whole / *own, 1), 1000));
    }

    /// A join that computes elements again pays or not: the judge says, or the shipped rule by what it costs.
    [[nodiscard]] std::string reject_by_profile(block_id b, block_id reader, const std::vector<value_id>& values) {
      const int reads = reads_of(b, reader, values);
      if (reads <= 1) return {};
      const bool usual = reads * p.at(b).cost <= fusion::prologue_limit;
      return pays(b, reader, usual) ? std::string()
                                    : why_not(usual ? "" : "computing it again costs more than storing it");
    }

    /// Asks whether two blocks are better off as one.
    [[nodiscard]] bool pays(block_id first, block_id second, bool usual) {
      times.reset();
      if (judge == nullptr) return usual;
      return judge->ask(
          {g, p.as_one(std::array{first, second}), {p.as_one(std::array{first}), p.as_one(std::array{second})}}, usual,
          times);
    }
    /// The reason of an answer: what was measured, else the rule's.
    [[nodiscard]] std::string why_not(std::string rule) const {
      if (!times) return rule;
      const auto rounded = [](double us) { return std::to_string(static_cast<std::int64_t>(us + 0.5)); };
      return times->joined_us >= fusion::join_times::no_kernel
                 ? "it has no kernel"
                 : "measured: " + rounded(times->joined_us) + " us as one, " + rounded(times->apart_us) + " us apart";
    }

    /// A frame's result that its only reader spreads over more elements: by the shipped rule it is stored once, but a
    /// small sum may be computed again for each element that reads it (a Many-to-Many operator before a One-to-Many
    /// one).
    void join_spread_results() {
      for (block_id b = 0; b < p.block_count(); ++b) {
        const fusion::planner::block& block = p.at(b);
        if (!block.alive || block.fixed || block.anchor == no_node || !block.before.empty() || !block.after.empty())
          continue;
        const fused_block own = p.as_one(std::array{b});
        if (own.outputs.size() != 1 || p.reaches_output(own.outputs[0])) continue;
        std::vector<node_id> nodes;
        p.readers(own.outputs[0], nodes);
        const block_id reader = nodes.empty() ? fusion::no_block : p.owner(nodes[0]);
        if (reader == fusion::no_block || reader == b || p.at(reader).fixed || p.at(reader).anchor != no_node ||
            std::any_of(nodes.begin(), nodes.end(), [&](node_id id) { return p.owner(id) != reader; }))
          continue;
        const int reads = reads_of(b, reader, own.outputs);
        if (reads < 2 || reads > fusion::most_repeats || !pays(b, reader, false)) {
          if (reads > 1) p.remark(b, "is not computed again by its reader: " + why_not("it is stored once"));
          continue;
        }
        for (const value_id out : g.node_at(block.anchor).outputs) derived.erase(out);
        p.merge(b, reader);
        ++joins;
      }
    }

    /// Views before an anchor are index maps of its reads; where the frame is faster on moved elements they are stored.
    void store_views_where_that_pays() {
      for (const node_id anchor : p.order()) {
        const block_id b = p.owner(anchor);
        if (b == fusion::no_block || p.at(b).anchor != anchor || p.at(b).fixed) continue;
        for (const value_id in : g.node_at(anchor).inputs) {
          const node_id view = in == no_value ? no_node : g.value_at(in).producer;
          if (view == no_node || !p.is_virtual(view) || p.role_at(view) != fusion::role::view ||
              g.node_at(view).outputs.size() != 1)
            continue;
          // A block cannot wait for a view of its own result.
          std::vector<value_id> sources;
          std::vector<node_id> nodes;
          p.stored_sources(in, sources);
          p.readers(in, nodes);
          if (std::any_of(nodes.begin(), nodes.end(), [&](node_id reader) {
                return std::any_of(sources.begin(), sources.end(),
                                   [&](value_id v) { return p.owner_of_value(v) == p.owner(reader); });
              }))
            continue;
          const fused_block joined = p.as_one(std::array{b});
          const block_id stored = p.make_block(view);
          const fused_block moved = p.as_one(std::array{stored});
          const bool moves = std::any_of(moved.members.begin(), moved.members.end(), [&](node_id id) {
            return g.node_at(id).op->mapping != mapping_type::reorganize;
          });
          times.reset();
          if (moves && !judge->ask({g, joined, {moved, p.as_one(std::array{b})}}, true, times))
            p.remark(stored, "'" + g.node_at(anchor).name + "' does not read through it: " + why_not(""));
          else
            p.inline_block(stored);
        }
      }
    }

    /// Where a value is read through one view only, its block stores it as the reader wants it.
    void store_through_views() {
      for (const node_id id : p.order()) {
        if (!p.is_virtual(id)) continue;
        const node& n = g.node_at(id);
        if (n.op->unview == nullptr || n.outputs.size() != 1) continue;
        const value_id from = n.inputs[0];
        const block_id b = p.owner_of_value(from);
        if (b == fusion::no_block || !can_store(b, from) || p.is_output(from)) continue;
        bool alone = true;
        for (const value_use& use : g.value_at(from).uses) alone = alone && (use.node == id || !p.reads(use.node));
        if (!alone) continue;
        p.adopt(id, b);
        if (derived.contains(from)) derived.emplace(n.outputs[0], id);
        ++joins;
      }
    }
  };
};

static_assert(Pass<fuse_blocks>);

/// Element-wise epilogues alone, as the peers have them: views stay launches or aliases of their own.
struct fuse_epilogue {
  static constexpr std::string_view name = "fuse_epilogue";
  pass_result run(graph& g) const {
    fuse_blocks pass;
    pass.options.views = false;
    pass.options.prologues = false;
    return pass.run(g);
  }
};

static_assert(Pass<fuse_epilogue>);

}  // namespace dnnopt

#endif  // DNNOPT_PASSES_FUSE_HPP

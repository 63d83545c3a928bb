// Owns where the units of a program run: which have kernels, which only share memory, and what the host does.
#ifndef DNNOPT_BACKEND_PROGRAM_PLACE_UNITS_HPP
#define DNNOPT_BACKEND_PROGRAM_PLACE_UNITS_HPP

#include <algorithm>
#include <cstddef>
#include <deque>
#include <limits>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include <dnnopt/backend/codegen/builder/shared_text.hpp>
#include <dnnopt/backend/codegen/lower.hpp>
#include <dnnopt/backend/program/program.hpp>
#include <dnnopt/error.hpp>
#include <dnnopt/graph.hpp>
#include <dnnopt/ops/state_view.hpp>
#include <dnnopt/passes/enter_body.hpp>
#include <dnnopt/passes/fusion/roles.hpp>
#include <dnnopt/passes/rdp.hpp>
#include <dnnopt/passes/remove_identity.hpp>

namespace dnnopt::detail {

/// Whether the node's only wanted output holds its first input's elements in the same row-major order and number, so
/// that it can share the input's memory; never where one of them holds texels.
[[nodiscard]] inline bool is_flat_view(const graph& g, node_id id) {
  const node& n = g.node_at(id);
  if (n.op->view == nullptr || n.outputs.size() != 1 || n.outputs[0] == no_value) return false;
  for (const value_id in : n.inputs)
    if (in != no_value && !g.facts(in).dims) return false;
  if (!g.facts(n.outputs[0]).dims || g.facts(n.outputs[0]).type != g.facts(n.inputs[0]).type) return false;
  if (g.facts(n.outputs[0]).texels || g.facts(n.inputs[0]).texels) return false;
  const codegen::block_view block{g, {id}, {n.outputs[0]}};
  codegen::kernel_builder b(block, {});
  const shape out = b.dims(n.outputs[0]);
  if (element_count(out) == index_expr(0)) return false;
  const index_expr i = b.index("i", element_count(out));
  std::vector<const value_facts*> storage;
  const node_facts facts = b.facts_of(id, storage);
  single_piece view;
  if (!state_view(view, *n.op, facts, 0, b.index_at(out, i)) || !view.valid || !view.found) return false;
  const value_id source = n.inputs.at(view.found->first);
  if (source == no_value || view.found->first != 0) return false;
  if (!(element_count(b.dims(source)) == element_count(out))) return false;
  return b.offset_of(source, view.found->second) == i;
}

/// The value whose memory a block of views shares: nothing where one of them moves elements, or where it computes.
[[nodiscard]] inline std::optional<value_id> flat_source(const graph& g, const std::vector<node_id>& members,
                                                         const std::vector<value_id>& outputs) {
  if (outputs.size() != 1) return std::nullopt;
  value_id at = outputs[0];
  std::size_t walked = 0;
  while (true) {
    const node_id producer = g.value_at(at).producer;
    if (producer == no_node || std::find(members.begin(), members.end(), producer) == members.end()) break;
    if (!is_flat_view(g, producer)) return std::nullopt;
    at = g.node_at(producer).inputs[0];
    ++walked;
  }
  return walked == members.size() ? std::optional<value_id>(at) : std::nullopt;
}

/// Sources would be most of a large program's memory, were equal ones not shared.
inline void share_sources(codegen::lowered_node& made, codegen::text_pool& sources) {
  for (auto* plans : {&made.prepare, &made.kernels})
    for (codegen::kernel_plan& plan : *plans) plan.source = sources.shared(plan.source);
}

/// The kernels of a unit, in work-groups as large as its kernels were found to allow, or why it has none. Errors: those
/// of codegen::try_lower.
[[nodiscard]] inline codegen::lowering lower_unit(const graph& g, const placed_node& unit,
                                                  codegen::lower_options options) {
  device_info limited;
  if (options.work_group_limits != nullptr && options.device != nullptr)
    if (const auto found = options.work_group_limits->find(unit.id); found != options.work_group_limits->end()) {
      limited = *options.device;
      limited.max_work_group_size = found->second;
      options.device = &limited;
    }
  return codegen::try_lower(codegen::block_view{g, unit.members, unit.outputs, unit.anchor}, options);
}

/// Places units on demand, from the graph's outputs back, so that what nobody reads takes no place.
class placer {
 public:
  /// `order` and `late` are the graph's topological order and late symbols, and outlive this object.
  placer(const graph& g, const std::vector<node_id>& order, const std::unordered_map<std::uint32_t, node_id>& late,
         const codegen::lower_options& options)
      : g_(g),
        options_(options),
        order_(order),
        brings_(fusion::bringers_of_symbols(g, late)),
        tellers_(fusion::size_tellers(g, late)) {
    stored_by_.assign(g_.value_count(), none);
    placed_node_.assign(g_.node_limit(), false);
    told_.assign(g_.node_limit(), false);
    blocks_ = &g_.blocks();
    for (std::size_t i = 0; i < blocks_->size(); ++i)
      for (const value_id out : (*blocks_)[i].outputs) stored_by_[out] = i;
    failed_.assign(blocks_->size(), false);
    placed_value_.assign(g_.value_count(), false);
  }

  /// The placed units in no particular order; `refused` names operators without a kernel.
  [[nodiscard]] std::vector<placed_node> place(std::string& refused) {
    for (const node_id id : order_) {
      if (!fusion::is_known(g_, id)) continue;
      placed_node unit = single(id);
      unit.where = placement::known;
      unit.reason = "its outputs are expressions of dims";
      finish(std::move(unit));
    }
    for (const value_id out : g_.outputs()) work_.push_back(out);
    while (!work_.empty()) {
      const value_id v = work_.back();
      work_.pop_back();
      need(v, refused);
    }
    return std::move(units_);
  }

 private:
  static constexpr std::size_t none = std::numeric_limits<std::size_t>::max();

  [[nodiscard]] placed_node single(node_id id) const {
    placed_node unit;
    unit.id = id;
    unit.members = {id};
    for (const value_id out : g_.node_at(id).outputs)
      if (out != no_value && (!g_.value_at(out).uses.empty() || g_.is_output(out))) unit.outputs.push_back(out);
    return unit;
  }

  /// Gives a unit its kernels; where it has none, why.
  [[nodiscard]] std::optional<std::string> why_not_lowered(placed_node& unit) {
    codegen::lowering found = lower_unit(g_, unit, options_);
    if (!found.made) return std::move(found.why);
    unit.lowered = std::move(*found.made);
    share_sources(unit.lowered, sources_);
    return std::nullopt;
  }

  void finish(placed_node unit) {
    for (const value_id out : unit.outputs) placed_value_[out] = true;
    for (const node_id id : unit.members) placed_node_[id] = true;
    for (const node_id id : unit.members) demand_sizes(id);
    units_.push_back(std::move(unit));
  }

  /// Who tells a size that only data tell must run, also where nobody reads its elements.
  void demand_sizes(node_id id) {
    for (const node_id source : fusion::size_sources(g_, id, tellers_)) {
      if (told_[source] || placed_node_[source]) continue;
      told_[source] = true;
      if (const std::vector<value_id> wanted = single(source).outputs; !wanted.empty()) work_.push_back(wanted.front());
    }
  }

  /// Whatever the unit reads from outside must be stored.
  void demand_sources(const placed_node& unit) {
    for (const node_id id : unit.members)
      for (const value_id in : g_.node_at(id).inputs) {
        if (in == no_value || placed_value_[in]) continue;
        const node_id producer = g_.value_at(in).producer;
        if (producer != no_node && std::find(unit.members.begin(), unit.members.end(), producer) == unit.members.end())
          work_.push_back(in);
      }
  }

  void need(value_id v, std::string& refused) {
    const node_id producer = g_.value_at(v).producer;
    if (producer == no_node || placed_value_[v]) return;
    const std::size_t b = stored_by_[v];
    if (b != none && !failed_[b] && block_at(b).members.size() > 1) {
      const fused_block& block = block_at(b);  // splitting appends, which leaves it in place
      placed_node unit;
      unit.members = block.members;
      unit.outputs = block.outputs;
      unit.anchor = block.anchor;
      unit.id = block.anchor != no_node ? block.anchor : g_.value_at(block.outputs.back()).producer;
      unit.why_not = block.why_not;
      if (const auto source = flat_source(g_, unit.members, unit.outputs)) {
        place_alias(unit, *source);
      } else if (const auto why = why_not_lowered(unit)) {
        failed_[b] = true;
        why_split_[v] = *why;
        if (!block.before.empty() || !block.after.empty()) split(block, *why);
        for (const value_id out : block.outputs) work_.push_back(out);
        return;
      } else {
        unit.where = placement::device;
      }
      demand_sources(unit);
      finish(std::move(unit));
      return;
    }
    placed_node unit = single(producer);
    if (b != none) {
      if (!failed_[b])
        unit.why_not = block_at(b).why_not;
      else if (const auto why = why_split_.find(v); why != why_split_.end())
        unit.why_not.push_back("the block has no kernel: " + why->second);
    }
    place_single(unit, refused);
    demand_sources(unit);
    finish(std::move(unit));
  }

  /// Makes two blocks of one: the members that stand before, and the rest; what stands behind goes first.
  void split(const fused_block& block, const std::string& why) {
    const bool behind = !block.after.empty();
    std::vector<node_id> early = block.before;
    if (behind) {
      early.clear();
      for (const node_id id : block.members)
        if (std::find(block.after.begin(), block.after.end(), id) == block.after.end()) early.push_back(id);
    }
    const auto stands_before = [&](node_id id) { return is_in(early, id); };
    fused_block first;
    fused_block second;
    (behind ? first : second).anchor = block.anchor;
    if (behind) first.before = block.before;
    second.why_not = block.why_not;
    second.why_not.push_back("in one kernel with the block before it: " + why);
    // What each reader computes for itself, such as views, may be wanted on both sides.
    const std::vector<node_id> wanted_early = read_by(early, block.members, early);
    std::vector<node_id> late;
    for (const node_id id : block.members)
      if (!stands_before(id) && !is_in(wanted_early, id)) late.push_back(id);
    const std::vector<node_id> wanted_late = read_by(late, wanted_early, {});
    for (const node_id id : block.members) {
      if (stands_before(id) || is_in(wanted_early, id)) first.members.push_back(id);
      if (is_in(late, id) || is_in(wanted_late, id)) second.members.push_back(id);
    }
    for (const value_id out : block.outputs)
      (is_in(first.members, g_.value_at(out).producer) ? first : second).outputs.push_back(out);
    for (const node_id id : early)
      for (const value_id out : g_.node_at(id).outputs) {
        if (out == no_value || std::find(first.outputs.begin(), first.outputs.end(), out) != first.outputs.end())
          continue;
        const auto& uses = g_.value_at(out).uses;
        if (std::any_of(uses.begin(), uses.end(),
                        [&](const value_use& use) { return is_in(second.members, use.node); }))
          first.outputs.push_back(out);
      }
    split_.push_back(std::move(first));
    split_.push_back(std::move(second));
    for (std::size_t i = split_.size() - 2; i < split_.size(); ++i) {
      failed_.push_back(false);
      for (const value_id out : split_[i].outputs) stored_by_[out] = blocks_->size() + i;
    }
  }
  [[nodiscard]] static bool is_in(const std::vector<node_id>& nodes, node_id id) {
    return std::find(nodes.begin(), nodes.end(), id) != nodes.end();
  }
  /// The nodes of `among`, without those of `but`, that the nodes `by` read, directly or through each other.
  [[nodiscard]] std::vector<node_id> read_by(const std::vector<node_id>& by, const std::vector<node_id>& among,
                                             const std::vector<node_id>& but) const {
    std::vector<node_id> found;
    std::vector<node_id> work = by;
    while (!work.empty()) {
      const node_id id = work.back();
      work.pop_back();
      for (const value_id in : g_.node_at(id).inputs) {
        const node_id producer = in == no_value ? no_node : g_.value_at(in).producer;
        if (producer == no_node || !is_in(among, producer) || is_in(but, producer) || is_in(found, producer)) continue;
        found.push_back(producer);
        work.push_back(producer);
      }
    }
    return found;
  }
  [[nodiscard]] const fused_block& block_at(std::size_t b) const {
    return b < blocks_->size() ? (*blocks_)[b] : split_[b - blocks_->size()];
  }

  static void place_alias(placed_node& unit, value_id source) {
    unit.where = placement::alias;
    unit.reason = "its output is its input under another shape";
    unit.alias_of = source;
  }

  /// Lowers a unit whose kernels compute the sizes that data decide; whether it has such kernels.
  [[nodiscard]] bool computes_its_size(placed_node& unit) {
    if (why_not_lowered(unit)) return false;
    if (!unit.lowered.size) {
      unit.lowered = {};
      return false;
    }
    unit.where = placement::device;
    return true;
  }

  /// Whether the node's bodies can be programs: what goes in and out are tensors that a device holds.
  [[nodiscard]] bool has_device_bodies(const node& n) const {
    if (n.op->flow == flow_form::none || n.op->flow == flow_form::map) return false;
    const auto is_tensor = [&](value_id v) {
      return g_.facts(v).kind == value_kind::tensor && g_.facts(v).type != dtype::string;
    };
    const body_layout l = layout_of_bodies(n);
    for (std::size_t i = 0; i < n.inputs.size(); ++i)
      if (n.inputs[i] == no_value ? i >= l.first && i < l.captured_begin : !is_tensor(n.inputs[i])) return false;
    return std::all_of(n.outputs.begin(), n.outputs.end(), [&](value_id v) { return v == no_value || is_tensor(v); });
  }

  void place_single(placed_node& unit, std::string& refused) {
    const node& n = g_.node_at(unit.id);
    if (has_device_bodies(n)) {
      unit.where = placement::bodies;
      unit.reason = "its bodies are programs of their own, made when they are first entered";
      return;
    }
    if (brings_[unit.id]) {
      if (computes_its_size(unit)) return;
      // Integers generated or spread up to a computed limit are arithmetic of sizes.
      const bool sizes = n.op->kind == computation_kind::generator ||
                         (n.op->kind == computation_kind::view && is_integer(g_.facts(n.outputs[0]).type));
      unit.where = sizes ? placement::sizes : placement::host;
      unit.reason = "the size of its output depends on data";
      if (unit.where == placement::host) refused += "\n  " + describe(n) + ": " + unit.reason;
      return;
    }
    if (is_flat_view(g_, unit.id)) {
      place_alias(unit, n.inputs[0]);
      return;
    }
    const auto why = why_not_lowered(unit);
    unit.where = why ? placement::host : placement::device;
    if (!why) return;
    unit.reason = *why;
    refused += "\n  node '" + n.name + "' (" + std::string(n.op->name) + "): " + *why;
  }

  const graph& g_;
  const codegen::lower_options& options_;
  const std::vector<node_id>& order_;
  std::vector<bool> brings_;
  std::vector<std::vector<node_id>> tellers_;
  std::vector<bool> placed_node_;
  std::vector<bool> told_;  ///< nodes that were demanded for a size
  std::vector<std::size_t> stored_by_;
  const std::vector<fused_block>* blocks_ = nullptr;
  std::deque<fused_block> split_;  ///< numbered on from `blocks_`
  std::vector<bool> failed_;
  std::unordered_map<value_id, std::string> why_split_;
  std::vector<bool> placed_value_;
  std::vector<value_id> work_;
  codegen::text_pool sources_;
  std::vector<placed_node> units_;
};

}  // namespace dnnopt::detail

#endif  // DNNOPT_BACKEND_PROGRAM_PLACE_UNITS_HPP

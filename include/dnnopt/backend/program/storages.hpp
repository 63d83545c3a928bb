// Owns which memory a program's steps touch: storages with their sizes as expressions, and what may share them.
#ifndef DNNOPT_BACKEND_PROGRAM_STORAGES_HPP
#define DNNOPT_BACKEND_PROGRAM_STORAGES_HPP

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include <dnnopt/backend/program/program.hpp>
#include <dnnopt/guessed_value.hpp>
#include <dnnopt/memory/order/order_graph.hpp>
#include <dnnopt/passes/fusion/roles.hpp>

namespace dnnopt {

/// Who a storage is for, and how long it is needed.
enum class storage_role : std::uint8_t {
  intermediate,  ///< from the first step that touches it to the last
  scratch,       ///< within one step
  whole_run,     ///< expressions of dims, brought to the device once for each binding of the symbols
  caller,        ///< inputs and outputs of the graph
};

/// Memory that values share, or scratch of a step.
struct program_storage {
  value_id held = no_value;      ///< the root of all that lies in it; no_value for scratch
  node_id scratch_of = no_node;  ///< the node whose scratch it is
  std::size_t scratch = 0;       ///< which one
  storage_role role = storage_role::intermediate;
  std::optional<index_expr> bytes;  ///< nothing where the rank is unknown, or handed; 0 may come out
  bool handed = false;              ///< a body gives its memory, or takes it: it is another one in each run
};

/// First and last step that touch a value; -1 for none.
struct touched_steps {
  std::int64_t first = -1;
  std::int64_t last = -1;
};

/// All memory that the steps of a program touch on the device, constants and packed weights left out.
struct program_storages {
  static constexpr std::uint32_t none = std::numeric_limits<std::uint32_t>::max();

  std::vector<program_storage> all;     ///< values by id, then scratch by node: the same for every order of steps
  std::vector<std::uint32_t> of_value;  ///< by value: index into `all`, or none
  std::vector<touched_steps> touched;   ///< by root: by device and host steps
  std::vector<std::vector<std::uint32_t>> by_step;  ///< storages (intermediate and scratch) that each step touches
  std::vector<std::vector<memory::in_place_pair>> in_place;  ///< by step
};

/// Whether a value is no part of an arena of bytes, but an image.
[[nodiscard]] inline bool lies_in_image(const value_facts& facts) noexcept {
  return facts.texels && facts.texels->object != memory_object::buffer;
}

namespace detail {

/// The root in whose storage a root lies: the whole of its part, and so on.
[[nodiscard]] inline value_id outermost(const program& p, value_id root) {
  for (auto part = p.parts.find(root); part != p.parts.end(); part = p.parts.find(root)) root = part->second.whole;
  return root;
}

/// Bytes of a value from the start of its storage.
[[nodiscard]] inline std::size_t offset_in_storage(const program& p, value_id root) {
  std::size_t offset = 0;
  for (auto part = p.parts.find(root); part != p.parts.end(); part = p.parts.find(part->second.whole))
    offset += part->second.offset;
  return offset;
}

[[nodiscard]] inline std::optional<index_expr> bytes_of(const value_facts& facts) {
  if (!facts.dims) return std::nullopt;
  if (facts.texels)
    return element_count(texel_dims(*facts.dims, facts.texels->packed)) *
           (texel_width * static_cast<std::int64_t>(size_of(facts.type)));
  return element_count(*facts.dims) * static_cast<std::int64_t>(size_of(facts.type));
}

/// Pairs of storages of one step where a kernel may write its output over an input, as the kernels state it: no other
/// kernel of the step touches either, and no other argument lies in them. Of a step with versions each must allow it.
inline void find_in_place(const program& p, const program_storages& s, std::size_t step,
                          std::vector<memory::in_place_pair>& pairs) {
  const auto& kernels = p.steps[step].lowered.kernels;
  const auto uses_of = [&](std::uint32_t storage, std::size_t version) {
    std::size_t uses = 0;
    for (const codegen::kernel_plan& plan : kernels)
      for (const codegen::pointer_argument& a : plan.pointers)
        uses += plan.alternative == version && a.held != no_value && s.of_value[p.roots[a.held]] == storage ? 1U : 0U;
    return uses;
  };
  const auto allows = [&](std::size_t version, std::uint32_t from, std::uint32_t to) {
    const auto is_pair = [&](const codegen::kernel_plan& plan, const codegen::overwrite_pair& pair) {
      return s.of_value[p.roots[plan.pointers.at(pair.input).held]] == from &&
             s.of_value[p.roots[plan.pointers.at(pair.output).held]] == to;
    };
    return uses_of(from, version) == 1 && uses_of(to, version) == 1 &&
           std::any_of(kernels.begin(), kernels.end(), [&](const codegen::kernel_plan& plan) {
             return plan.alternative == version &&
                    std::any_of(plan.overwrites.begin(), plan.overwrites.end(),
                                [&](const codegen::overwrite_pair& pair) { return is_pair(plan, pair); });
           });
  };
  const auto all_allow = [&](std::uint32_t from, std::uint32_t to) {
    for (std::size_t version = 0; version < p.steps[step].lowered.versions; ++version)
      if (!allows(version, from, to)) return false;
    return true;
  };
  for (const codegen::kernel_plan& plan : kernels) {
    if (plan.alternative != 0) continue;
    for (const codegen::overwrite_pair& pair : plan.overwrites) {
      const value_id from_root = p.roots[plan.pointers.at(pair.input).held];
      const value_id to_root = p.roots[plan.pointers.at(pair.output).held];
      const std::uint32_t from = s.of_value[from_root];
      const std::uint32_t to = s.of_value[to_root];
      if (from == program_storages::none || to == program_storages::none || from == to) continue;
      const program_storage& source = s.all[from];
      const program_storage& target = s.all[to];
      if (source.role != storage_role::intermediate || target.role != storage_role::intermediate) continue;
      // A part of another value never has the size of the whole.
      if (source.held != from_root || target.held != to_root) continue;
      if (!source.bytes || !target.bytes || !(*source.bytes == *target.bytes)) continue;
      if (all_allow(from, to)) pairs.push_back({from, to});
    }
  }
}

/// By root, what the steps of a program do with it.
struct root_uses {
  std::vector<bool> on_device;  ///< it has memory there
  std::vector<bool> written;    ///< by a step; else the program is given it
  std::vector<bool> handed;     ///< by a body, so that it is other memory in each run
};

/// What steps do with each root, and in `touched` the first and the last of them. Precondition: `touched` has an entry
/// for each value.
[[nodiscard]] inline root_uses find_uses(const program& p, std::vector<touched_steps>& touched) {
  const graph& g = *p.g;
  root_uses uses{std::vector<bool>(g.value_count(), false), std::vector<bool>(g.value_count(), false),
                 std::vector<bool>(g.value_count(), false)};
  const auto touch = [&](value_id v, std::size_t step) {
    touched_steps& t = touched[p.roots[v]];
    if (t.first < 0) t.first = static_cast<std::int64_t>(step);
    t.last = static_cast<std::int64_t>(step);
  };
  for (std::size_t step = 0; step < p.steps.size(); ++step) {
    const placed_node& placed = p.steps[step];
    if (placed.where == placement::device) {
      for (const codegen::kernel_plan& plan : placed.lowered.kernels)
        for (const codegen::pointer_argument& a : plan.pointers) {
          if (a.held == no_value) continue;
          touch(a.held, step);
          uses.on_device[p.roots[a.held]] = true;
          if (a.written) uses.written[p.roots[a.held]] = true;
        }
    } else if (is_steered(placed.where)) {
      const bool hands = placed.where == placement::bodies;
      for (const value_id in : g.node_at(placed.id).inputs)
        if (in != no_value) touch(in, step);
      for (const value_id out : g.node_at(placed.id).outputs)
        if (out != no_value) {
          touch(out, step);
          uses.written[p.roots[out]] = true;
          if (hands) uses.on_device[p.roots[out]] = uses.handed[p.roots[out]] = true;
        }
    }
  }
  // A whole that only its parts' steps touch on the device is a storage all the same.
  for (const auto& [part, place] : p.parts)
    if (uses.on_device[part]) uses.on_device[outermost(p, part)] = uses.written[outermost(p, part)] = true;
  return uses;
}

/// Adds the storages of values, and says in which of them each value lies.
inline void add_value_storages(const program& p, const root_uses& uses, program_storages& s) {
  const graph& g = *p.g;
  std::set<value_id> kept;
  for (const value_id v : g.inputs()) kept.insert(p.roots[v]);
  for (const value_id v : g.outputs()) kept.insert(p.roots[v]);
  for (value_id v = 0; v < g.value_count(); ++v) {
    const value_facts& facts = g.facts(v);
    if (p.roots[v] != v || p.parts.contains(v) || !uses.on_device[v] || facts.is_constant() || lies_in_image(facts))
      continue;
    program_storage storage;
    storage.held = v;
    if (kept.contains(v))
      storage.role = storage_role::caller;
    else if (!uses.written[v])
      storage.role = storage_role::whole_run;
    storage.handed = uses.handed[v] || (p.is_body && storage.role == storage_role::caller);
    if (!storage.handed) storage.bytes = bytes_of(facts);
    s.of_value[v] = static_cast<std::uint32_t>(s.all.size());
    s.all.push_back(storage);
  }
  for (value_id v = 0; v < g.value_count(); ++v) {
    const value_id whole = outermost(p, p.roots[v]);
    if (whole != v) s.of_value[v] = s.of_value[whole];
  }
}

/// Adds the scratch of each step, as storages that it alone touches.
inline void add_scratch_storages(const program& p, program_storages& s) {
  std::vector<std::size_t> with_scratch;
  for (std::size_t step = 0; step < p.steps.size(); ++step)
    if (!p.steps[step].lowered.scratch.empty()) with_scratch.push_back(step);
  std::sort(with_scratch.begin(), with_scratch.end(),
            [&](std::size_t a, std::size_t b) { return p.steps[a].id < p.steps[b].id; });
  for (const std::size_t step : with_scratch)
    for (std::size_t j = 0; j < p.steps[step].lowered.scratch.size(); ++j) {
      const codegen::scratch_buffer& scratch = p.steps[step].lowered.scratch[j];
      // Packed weights live as long as the weights, not as long as a run.
      if (scratch.persistent) continue;
      s.by_step[step].push_back(static_cast<std::uint32_t>(s.all.size()));
      s.all.push_back({no_value, p.steps[step].id, j, storage_role::scratch, scratch.bytes});
    }
}

/// Says which intermediates each step touches, and which of them it may write over each other. Precondition: the
/// storages of values and scratch are there.
inline void assign_to_steps(const program& p, program_storages& s) {
  const graph& g = *p.g;
  for (std::size_t step = 0; step < p.steps.size(); ++step) {
    const placed_node& placed = p.steps[step];
    const auto add = [&](value_id v) {
      if (v == no_value) return;
      const std::uint32_t storage = s.of_value[p.roots[v]];
      if (storage == program_storages::none || s.all[storage].role != storage_role::intermediate) return;
      auto& mine = s.by_step[step];
      if (std::find(mine.begin(), mine.end(), storage) == mine.end()) mine.push_back(storage);
    };
    if (placed.where == placement::device) {
      for (const codegen::kernel_plan& plan : placed.lowered.kernels)
        for (const codegen::pointer_argument& a : plan.pointers) add(a.held);
      find_in_place(p, s, step, s.in_place[step]);
    } else if (is_steered(placed.where)) {
      for (const value_id in : g.node_at(placed.id).inputs) add(in);
      for (const value_id out : g.node_at(placed.id).outputs) add(out);
    }
  }
}

}  // namespace detail

/// The storages of a program in the order of its steps. O(V + E), and arguments squared within a step.
[[nodiscard]] inline program_storages storages_of(const program& p) {
  program_storages s;
  s.of_value.assign(p.g->value_count(), program_storages::none);
  s.touched.resize(p.g->value_count());
  s.by_step.resize(p.steps.size());
  s.in_place.resize(p.steps.size());
  const detail::root_uses uses = detail::find_uses(p, s.touched);
  detail::add_value_storages(p, uses, s);
  detail::add_scratch_storages(p, s);
  detail::assign_to_steps(p, s);
  return s;
}

/// The bytes of each storage that a plan places, under values of the symbols; 0 where the values do not tell them, and
/// no more than can be summed, for values that nobody asked for may make much of a size.
[[nodiscard]] inline std::vector<std::int64_t> planned_bytes(const program_storages& s, const symbol_values& symbols) {
  constexpr std::int64_t most = std::int64_t{1} << 48;
  std::vector<std::int64_t> sizes;
  sizes.reserve(s.all.size());
  for (const program_storage& storage : s.all) {
    const bool counted = storage.role == storage_role::intermediate || storage.role == storage_role::scratch;
    const auto bytes = storage.bytes ? guessed_value(*storage.bytes, symbols) : std::nullopt;
    sizes.push_back(counted && bytes ? std::clamp<std::int64_t>(*bytes, 1, most) : 0);
  }
  return sizes;
}

/// The order graph of a program's steps under values of the symbols: operation i is step i. Sizes that the values do
/// not tell are 0. Steps that the host steers are barriers: what they compute may decide sizes (SoD2 section 4.3
/// partitions there), and each crossing of the bus costs. A step whose sizes or operands' values are expressions of
/// sizes that a launch decides comes after that launch. O(V + E).
[[nodiscard]] inline memory::order_graph order_graph_of(const program& p, const program_storages& s,
                                                        const symbol_values& symbols) {
  const graph& g = *p.g;
  memory::order_graph order;
  order.bytes = planned_bytes(s, symbols);
  std::vector<std::uint32_t> stored_by(g.value_count(), program_storages::none);
  for (std::uint32_t step = 0; step < p.steps.size(); ++step)
    for (const value_id out : p.steps[step].outputs)
      if (out != no_value) stored_by[out] = step;
  const auto tellers = fusion::size_tellers(g, fusion::late_symbols(g, g.topological_order()));
  std::vector<std::uint32_t> step_of(g.node_limit(), program_storages::none);
  if (!tellers.empty())
    for (std::uint32_t step = 0; step < p.steps.size(); ++step)
      for (const node_id id : p.steps[step].members) step_of[id] = step;
  std::optional<std::uint32_t> barrier;
  std::vector<std::uint32_t> since;  // steps since the barrier
  for (std::uint32_t step = 0; step < p.steps.size(); ++step) {
    memory::order_operation operation;
    operation.storages = s.by_step[step];
    operation.in_place = s.in_place[step];
    const std::vector<node_id>& members = p.steps[step].members;
    const auto reads = [&](value_id v) {
      if (v != no_value && stored_by[v] != program_storages::none && stored_by[v] != step)
        operation.after.push_back(stored_by[v]);
    };
    // What is known from dims waits for nobody's elements.
    if (p.steps[step].where != placement::known)
      for (const node_id id : members)
        for (const value_id in : g.node_at(id).inputs) {
          // What a member computes may be stored by another step too.
          const node_id producer = in == no_value ? no_node : g.value_at(in).producer;
          if (std::find(members.begin(), members.end(), producer) == members.end()) reads(in);
        }
    for (const codegen::kernel_plan& plan : p.steps[step].lowered.kernels)
      for (const codegen::pointer_argument& a : plan.pointers)
        if (!a.written) reads(a.held);
    if (!tellers.empty())
      for (const node_id id : members)
        for (const node_id source : fusion::size_sources(g, id, tellers))
          if (step_of[source] != program_storages::none && step_of[source] != step)
            operation.after.push_back(step_of[source]);
    if (barrier) operation.after.push_back(*barrier);
    if (is_steered(p.steps[step].where)) {
      operation.after.insert(operation.after.end(), since.begin(), since.end());
      since.clear();
      barrier = step;
    } else {
      since.push_back(step);
    }
    std::sort(operation.after.begin(), operation.after.end());
    operation.after.erase(std::unique(operation.after.begin(), operation.after.end()), operation.after.end());
    order.operations.push_back(std::move(operation));
  }
  return order;
}

/// Usage records of a program's memory in the order of its steps, as one arena holds them.
struct program_records {
  std::vector<memory::buffer_usage> usages;
  std::vector<std::uint32_t> of_storage;  ///< index into usages; program_storages::none where no record is made
};

/// The records of all storages whose size the values of the symbols tell; storages that a kernel may write over each
/// other share a record. What is needed for the whole run comes last. Callers' storages have none. O(V + E).
[[nodiscard]] inline program_records records_of(const program& p, const program_storages& s,
                                                const symbol_values& symbols, std::size_t alignment) {
  const memory::order_graph graph = order_graph_of(p, s, symbols);
  std::vector<std::uint32_t> own(p.steps.size());
  for (std::uint32_t i = 0; i < own.size(); ++i) own[i] = i;
  const memory::order_usages all = memory::usages_of_order(graph, own);
  const auto aligned = static_cast<std::int64_t>(std::max<std::size_t>(alignment, 1));
  program_records result;
  std::vector<std::uint32_t> index(all.usages.size(), program_storages::none);
  for (std::uint32_t r = 0; r < all.usages.size(); ++r) {
    if (all.usages[r].size == 0) continue;
    index[r] = static_cast<std::uint32_t>(result.usages.size());
    result.usages.push_back(all.usages[r]);
    result.usages.back().alignment = aligned;
  }
  for (const std::uint32_t record : all.record_of_storage) result.of_storage.push_back(index[record]);
  for (std::uint32_t i = 0; i < s.all.size(); ++i) {
    if (s.all[i].role != storage_role::whole_run || !s.all[i].bytes) continue;
    const auto bytes = guessed_value(*s.all[i].bytes, symbols);
    if (!bytes) continue;
    result.of_storage[i] = static_cast<std::uint32_t>(result.usages.size());
    result.usages.push_back({0, std::max<std::int64_t>(static_cast<std::int64_t>(p.steps.size()), 1),
                             std::max<std::int64_t>(*bytes, 1), aligned});
  }
  return result;
}

}  // namespace dnnopt

#endif  // DNNOPT_BACKEND_PROGRAM_STORAGES_HPP

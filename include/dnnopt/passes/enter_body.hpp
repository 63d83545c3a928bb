// Owns what the bodies of control flow know of what they are given: a copy of a body as its node enters it, and what
// the node's outputs then are.
#ifndef DNNOPT_PASSES_ENTER_BODY_HPP
#define DNNOPT_PASSES_ENTER_BODY_HPP

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <dnnopt/expr_symbols.hpp>
#include <dnnopt/graph.hpp>
#include <dnnopt/ops/structure_transfer.hpp>

namespace dnnopt {

/// Where the inputs and outputs of a body lie among those of its node.
///
/// Body inputs: `counters` (the number of the turn and the condition of a Loop), then carried values, then slices of
/// scanned inputs, then captured values. Body outputs: `conditions`, then carried values, then parts of stacks.
struct body_layout {
  std::size_t counters = 0;
  std::size_t first = 0;  ///< the node's input that is the first carried value
  std::size_t carried = 0;
  std::size_t scanned = 0;
  std::size_t captured_begin = 0;  ///< the node's first captured input
  std::size_t conditions = 0;
  std::size_t stacks = 0;  ///< outputs of the node that collect what each turn gives
};

/// The layout of a node's bodies. Errors: bad_attribute for a Scan whose num_scan_inputs its inputs contradict;
/// bad_arity for fewer outputs than carried values or inputs than the operator needs.
[[nodiscard]] inline body_layout layout_of_bodies(const node& n) {
  body_layout l;
  l.captured_begin = n.formal_inputs();
  if (l.captured_begin < n.op->arity.least_inputs) throw error(errc::bad_arity, "too few inputs");
  if (n.op->flow == flow_form::loop) {
    l.counters = 2;
    l.conditions = 1;
    l.first = 2;
    l.carried = l.captured_begin - 2;
  } else if (n.op->flow == flow_form::scan) {
    const auto scanned = n.attributes.require<std::int64_t>("num_scan_inputs");
    if (scanned < 1 || scanned > static_cast<std::int64_t>(l.captured_begin))
      throw error(errc::bad_attribute, "num_scan_inputs is " + std::to_string(scanned));
    l.scanned = static_cast<std::size_t>(scanned);
    l.carried = l.captured_begin - l.scanned;
  }
  if (n.outputs.size() > l.carried) l.stacks = n.outputs.size() - l.carried;
  return l;
}

/// Attribute `name` of a Scan: one number for each of `count` inputs or outputs, 0 where it says nothing.
[[nodiscard]] inline std::vector<std::int64_t> scan_numbers(const node& n, std::string_view name, std::size_t count) {
  std::vector<std::int64_t> values = n.attributes.get_ints(name, std::vector<std::int64_t>(count, 0));
  values.resize(count, 0);
  return values;
}

/// What a body may be told before it is settled.
struct body_entry {
  /// By input of the node, the rank that a run has found where the graph knows none; may be empty.
  std::vector<std::optional<std::size_t>> ranks{};
  /// The same for dims, and for elements that are expressions: a body for one turn with exactly these. Both empty: for
  /// any.
  std::vector<std::optional<std::vector<std::int64_t>>> dims{};
  std::vector<std::optional<std::vector<std::int64_t>>> elements{};
  /// The number of a Loop's turn is an expression, so that dims may depend on it; else data.
  bool turn_is_symbol = true;

  [[nodiscard]] bool is_exact() const noexcept { return !dims.empty(); }
  friend bool operator==(const body_entry&, const body_entry&) = default;
};

/// A body as its node enters it.
struct entered_body {
  graph g;
  std::set<std::uint32_t> fresh;      ///< symbols for dims of carried values that turns change
  std::optional<std::uint32_t> turn;  ///< the symbol of the turn's number
};

namespace detail {

/// The facts that a value keeps from turn to turn, where its elements do not.
[[nodiscard]] inline value_facts lasting_facts(const value_facts& given) {
  value_facts facts;
  facts.kind = given.kind;
  facts.type = given.type;
  facts.dims = given.dims;
  facts.origin = given.origin;
  if (given.narrowed) facts.type = dtype::float32;
  return facts;
}

/// What enters a body as it is: constants that the device stores in halves are passed as values, not as facts.
[[nodiscard]] inline value_facts captured_facts(const value_facts& given) {
  value_facts facts = given.narrowed ? lasting_facts(given) : given;
  facts.texels.reset();
  return facts;
}

/// The new symbol of a dim of a body's input.
class fresh_dims {
 public:
  fresh_dims(const graph& outer, node_id id, std::set<std::uint32_t>& made) : made_(made) {
    const node& n = outer.node_at(id);
    scope_ = (!n.outputs.empty() && n.outputs[0] != no_value ? outer.value_at(n.outputs[0]).name : n.name) + ".turn.";
    expressions_ = &outer.expressions();
  }
  [[nodiscard]] index_expr operator()(std::size_t input, std::size_t axis) {
    const index_expr dim = expressions_->symbol(scope_ + std::to_string(input) + "." + std::to_string(axis),
                                                {0, unbounded}, symbol_kind::body_dim);
    made_.insert(*dim.as_symbol());
    return dim;
  }
  [[nodiscard]] index_expr turn() const {
    return expressions_->symbol(scope_ + "number", {0, unbounded}, symbol_kind::turn);
  }
  [[nodiscard]] shape all(std::size_t input, std::size_t rank) {
    shape dims;
    for (std::size_t axis = 0; axis < rank; ++axis) dims.push_back((*this)(input, axis));
    return dims;
  }

 private:
  std::string scope_;
  expr_context* expressions_;
  std::set<std::uint32_t>& made_;
};

/// Gives an input of a body, where it has it, facts; the type that the body declares stays where nothing else is known.
inline void set_input_facts(graph& body, std::size_t input, value_facts facts) {
  if (input >= body.inputs().size()) return;
  value_facts& held = body.facts(body.inputs()[input]);
  if (facts.type == dtype::undefined) facts.type = held.type;
  held = std::move(facts);
}

/// Forgets dims and elements that follow from what the body declares of its inputs: a hint, which carried values need
/// not keep to.
inline void forget_inferred(graph& body) {
  for (value_id v = 0; v < body.value_count(); ++v) {
    value_facts& facts = body.facts(v);
    if (body.value_at(v).producer == no_node || facts.origin == dims_origin::declared) continue;
    facts.dims.reset();
    facts.elements.reset();
    facts.origin = dims_origin::computed;
  }
}

[[nodiscard]] inline value_facts scalar_facts(dtype type) {
  value_facts facts;
  facts.type = type;
  facts.dims = shape{};
  return facts;
}

/// Facts of a slice of a scanned value.
[[nodiscard]] inline value_facts slice_facts(const value_facts& whole, std::int64_t axis) {
  value_facts facts = lasting_facts(whole);
  if (!facts.dims || facts.dims->empty()) return facts;
  const std::size_t at = ops::axis_of(axis, facts.dims->size(), "Scan");
  facts.dims->erase(facts.dims->begin() + static_cast<std::ptrdiff_t>(at));
  return facts;
}

/// The facts of an input with the numbers that `entry` has of it.
[[nodiscard]] inline value_facts exact_facts(value_facts facts, const body_entry& entry, std::size_t input) {
  const auto numbers = [](const std::vector<std::int64_t>& from) {
    std::vector<index_expr> made;
    for (const std::int64_t number : from) made.emplace_back(number);
    return made;
  };
  if (const auto& dims = entry.dims.at(input)) {
    const std::vector<index_expr> made = numbers(*dims);
    facts.dims = shape(made.begin(), made.end());
  }
  if (const auto& elements = entry.elements.at(input); elements && facts.elements) facts.elements = numbers(*elements);
  return facts;
}

/// Widens what is assumed of carried values to what a turn gives; whether something changed.
inline bool widen(std::vector<value_facts>& assumed, const graph& settled, const body_layout& l,
                  const std::vector<std::optional<std::size_t>>& ranks, fresh_dims& fresh,
                  const std::set<std::uint32_t>& made) {
  bool changed = false;
  for (std::size_t k = 0; k < l.carried; ++k) {
    std::optional<shape>& have = assumed[k].dims;
    if (!have || l.conditions + k >= settled.outputs().size()) continue;
    const std::optional<shape>& given = settled.facts(settled.outputs()[l.conditions + k]).dims;
    if (!given || given->size() != have->size()) {
      // The rank that a run has found holds for the program made for it; a turn with another rank gets another one.
      const bool told = l.first + k < ranks.size() && ranks[l.first + k];
      std::optional<shape> next;
      if (told) next = fresh.all(k, *ranks[l.first + k]);
      if (next == have) continue;
      have = std::move(next);
      changed = true;
      continue;
    }
    for (std::size_t axis = 0; axis < have->size(); ++axis) {
      index_expr& dim = (*have)[axis];
      const bool general = dim.as_symbol() && made.contains(*dim.as_symbol());
      if (general || dim == (*given)[axis]) continue;
      dim = fresh(k, axis);
      changed = true;
    }
  }
  return changed;
}

}  // namespace detail

/// A copy of `body`, a subgraph of node `id`, in which inputs have the facts of what the node gives: captured values
/// theirs (constants, elements, dims), slices theirs, and carried values the type and dims that hold in every turn. A
/// dim that turns change becomes a symbol of the body alone. `settle` is RDP over a graph, and has run on the result.
/// Errors: those of layout_of_bodies and of `settle`. Complexity: one run of `settle` for each change of what is
/// assumed, of which there are at most as many as dims of carried values.
template <class Settle>
[[nodiscard]] entered_body enter_body(const graph& outer, node_id id, const graph& body, const Settle& settle,
                                      const body_entry& entry = {}) {
  const node& n = outer.node_at(id);
  const body_layout l = layout_of_bodies(n);
  entered_body result{graph(outer.shared_expressions()), {}, std::nullopt};
  detail::fresh_dims fresh(outer, id, result.fresh);
  const auto facts_of = [&](std::size_t input) {
    value_facts facts = n.inputs[input] == no_value ? value_facts{} : outer.facts(n.inputs[input]);
    if (entry.is_exact()) return detail::exact_facts(std::move(facts), entry, input);
    if (facts.dims && input < entry.ranks.size() && entry.ranks[input] && facts.dims->size() != *entry.ranks[input])
      facts.dims.reset();
    if (!facts.dims && input < entry.ranks.size() && entry.ranks[input])
      facts.dims = fresh.all(input - std::min(input, l.first), *entry.ranks[input]);
    return facts;
  };
  std::vector<value_facts> assumed;
  for (std::size_t k = 0; k < l.carried; ++k) assumed.push_back(detail::lasting_facts(facts_of(l.first + k)));
  const std::vector<std::int64_t> axes = scan_numbers(n, "scan_input_axes", l.scanned);
  while (true) {
    result.g = body;
    detail::forget_inferred(result.g);
    if (l.counters == 2) {
      value_facts number = detail::scalar_facts(dtype::int64);
      if (entry.turn_is_symbol) {
        number.elements = std::vector<index_expr>{fresh.turn()};
        result.turn = fresh.turn().as_symbol();
      }
      detail::set_input_facts(result.g, 0, std::move(number));
      value_facts proceed = detail::scalar_facts(dtype::boolean);
      proceed.elements = std::vector<index_expr>{index_expr(1)};  // a turn runs where it holds
      detail::set_input_facts(result.g, 1, std::move(proceed));
    }
    for (std::size_t k = 0; k < l.carried; ++k) detail::set_input_facts(result.g, l.counters + k, assumed[k]);
    for (std::size_t k = 0; k < l.scanned; ++k)
      detail::set_input_facts(result.g, l.counters + l.carried + k,
                              detail::slice_facts(facts_of(l.carried + k), axes[k]));
    for (std::size_t i = l.captured_begin; i < n.inputs.size(); ++i)
      detail::set_input_facts(result.g, l.counters + l.carried + l.scanned + i - l.captured_begin,
                              detail::captured_facts(facts_of(i)));
    settle(result.g);
    // Another turn enters another body.
    if (entry.is_exact() || !detail::widen(assumed, result.g, l, entry.ranks, fresh, result.fresh)) break;
  }
  return result;
}

namespace detail {

/// The symbols that the values which a node reads bring.
[[nodiscard]] inline std::set<std::uint32_t> symbols_given(const graph& outer, const node& n) {
  std::set<std::uint32_t> symbols;
  const auto collect = [&](const index_expr& e) { collect_symbols(e, symbols); };
  for (const value_id in : n.inputs) {
    if (in == no_value) continue;
    if (outer.facts(in).dims) std::for_each(outer.facts(in).dims->begin(), outer.facts(in).dims->end(), collect);
    if (outer.facts(in).elements)
      std::for_each(outer.facts(in).elements->begin(), outer.facts(in).elements->end(), collect);
  }
  return symbols;
}

/// Whether an expression is made of those symbols alone.
[[nodiscard]] inline bool is_made_of(const index_expr& e, const std::set<std::uint32_t>& symbols) {
  const std::set<std::uint32_t> own = symbols_of(e);
  return std::includes(symbols.begin(), symbols.end(), own.begin(), own.end());
}

/// How many turns a Loop makes, or a Scan, where that is known before it runs.
[[nodiscard]] inline std::optional<index_expr> turns_of(const graph& outer, const node& n, const body_layout& l,
                                                        const graph& body) {
  if (n.op->flow == flow_form::scan) {
    const value_facts& whole = outer.facts(n.inputs[l.carried]);
    if (!whole.dims || whole.dims->empty()) return std::nullopt;
    return (*whole.dims)[ops::axis_of(scan_numbers(n, "scan_input_axes", l.scanned)[0], whole.dims->size(), "Scan")];
  }
  const auto holds = [](const graph& g, value_id v) {
    if (v == no_value) return true;
    const value_facts& facts = g.facts(v);
    if (facts.is_constant()) return facts.type == dtype::boolean && facts.constant.data<bool>()[0];
    return facts.elements && facts.elements->size() == 1 && (*facts.elements)[0] == index_expr(1);
  };
  if (body.outputs().empty() || !holds(outer, n.inputs[1]) || !holds(body, body.outputs()[0])) return std::nullopt;
  if (n.inputs[0] == no_value) return std::nullopt;
  const facts_of_node facts(outer, outer.value_at(n.outputs[0]).producer);
  const auto count = facts->elements(0);
  if (!count || count->size() != 1) return std::nullopt;
  return max((*count)[0], 0);
}

}  // namespace detail

/// What a Loop's or Scan's outputs are, by its body as it is entered: types, and dims as expressions of what the node
/// reads, or `data_dim` of the node where turns decide them. Precondition: `entered` is enter_body's.
inline void infer_turns(const graph& outer, node_id id, const entered_body& entered, const node_facts& facts,
                        std::vector<value_facts>& outputs) {
  const node& n = outer.node_at(id);
  const body_layout l = layout_of_bodies(n);
  const std::set<std::uint32_t> known = detail::symbols_given(outer, n);
  const std::vector<std::int64_t> axes = scan_numbers(n, "scan_output_axes", l.stacks);
  for (std::size_t o = 0; o < outputs.size() && l.conditions + o < entered.g.outputs().size(); ++o) {
    const value_facts& result = entered.g.facts(entered.g.outputs()[l.conditions + o]);
    outputs[o].kind = result.kind;
    outputs[o].type = result.type;
    // What a carried value is after some turns is what its input is assumed to be before each.
    const value_facts& lasting = o < l.carried ? entered.g.facts(entered.g.inputs().at(l.counters + o)) : result;
    if (!lasting.dims || result.kind != value_kind::tensor) continue;
    shape dims = *lasting.dims;
    std::size_t stacked = dims.size() + 1;
    if (o >= l.carried) {
      stacked = ops::axis_of(axes[o - l.carried], dims.size() + 1, n.op->name);
      const auto turns = n.outputs[o] == no_value ? std::nullopt : detail::turns_of(outer, n, l, entered.g);
      dims.insert(dims.begin() + static_cast<std::ptrdiff_t>(stacked), turns ? *turns : facts.data_dim(o, stacked));
    }
    for (std::size_t axis = 0; axis < dims.size(); ++axis)
      if (axis != stacked && !detail::is_made_of(dims[axis], known)) dims[axis] = facts.data_dim(o, axis);
    outputs[o].dims = std::move(dims);
  }
}

}  // namespace dnnopt

#endif  // DNNOPT_PASSES_ENTER_BODY_HPP

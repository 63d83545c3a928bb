// Owns the choice of values for symbolic dims of generated inputs: small ones that the graph's own conditions allow.
#ifndef DNNOPT_ZOO_CHOOSE_DIMS_HPP
#define DNNOPT_ZOO_CHOOSE_DIMS_HPP

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <dnnopt/counter_random.hpp>
#include <dnnopt/error.hpp>
#include <dnnopt/expr_symbols.hpp>
#include <dnnopt/graph.hpp>
#include <dnnopt/guard.hpp>
#include <dnnopt/index_expr.hpp>
#include <dnnopt/model.hpp>
#include <dnnopt/passes/derive_guards.hpp>
#include <dnnopt/passes/pipeline.hpp>
#include <dnnopt/passes/rdp.hpp>
#include <dnnopt/reference/evaluate_node.hpp>
#include <dnnopt/zoo/generate_inputs.hpp>

namespace dnnopt {

namespace detail {

/// A condition that a choice must meet: a guard, and the symbols of it that are to be chosen.
struct dim_condition {
  guard what;
  std::set<std::uint32_t> symbols;
};

/// Whether a condition holds, or nothing while a symbol of it has no value.
[[nodiscard]] inline std::optional<bool> meets(const guard& condition, const symbol_values& values) {
  const auto left = condition.left.try_evaluate(values);
  const auto right = left ? condition.right.try_evaluate(values) : std::nullopt;
  if (!right) return std::nullopt;
  return guard::holds(condition.relation, *left, *right);
}

/// Symbols of the inputs' dims that stand alone, in order, each with whether it is a side of an image wherever it
/// stands: one of the two dims of a plane, beside a dim of one to four channels.
[[nodiscard]] inline std::vector<std::pair<std::uint32_t, bool>> symbols_of_inputs(const graph& g) {
  std::vector<std::pair<std::uint32_t, bool>> result;
  const auto is_channels = [](const index_expr& dim) { return dim.range().low >= 1 && dim.range().high <= 4; };
  for (const value_id id : g.inputs()) {
    const value_facts& facts = g.facts(id);
    if (!facts.dims) continue;
    for (std::size_t k = 0; k < facts.dims->size(); ++k) {
      const auto symbol = (*facts.dims)[k].as_symbol();
      if (!symbol) continue;
      const bool rows_first = facts.dims->size() == 4 && k >= 2 && is_channels((*facts.dims)[1]);
      const bool channels_last = facts.dims->size() == 4 && (k == 1 || k == 2) && is_channels((*facts.dims)[3]);
      const bool square = std::count(facts.dims->begin(), facts.dims->end(), (*facts.dims)[k]) > 1;
      const bool side = is_floating(facts.type) && !square && (rows_first || channels_last);
      const auto known =
          std::find_if(result.begin(), result.end(), [&](const auto& row) { return row.first == *symbol; });
      if (known == result.end())
        result.emplace_back(*symbol, side);
      else
        known->second = known->second && side;
    }
  }
  return result;
}

/// Values to try for a symbol, the best first: sizes of images for the sides of one, small numbers for others.
[[nodiscard]] inline std::vector<std::int64_t> values_to_try(bool side, const dim_range& range) {
  constexpr std::array sides{224, 256, 320, 192, 128, 96, 64, 48, 32};
  constexpr std::array small{1, 2, 3, 4, 8, 16, 32, 48, 64, 80, 96, 128, 160, 192, 224, 256, 320, 384, 512, 640, 1024};
  constexpr std::int64_t most = 2048;
  std::vector<std::int64_t> result;
  const auto add = [&](std::int64_t number) {
    if (number >= std::max<std::int64_t>(range.low, 1) && number <= range.high && number % range.multiple == 0 &&
        std::find(result.begin(), result.end(), number) == result.end())
      result.push_back(number);
  };
  if (side)
    for (const int number : sides) add(number);
  for (const int number : small) add(number);
  // A range may lie beyond what is small.
  add((std::max<std::int64_t>(range.low, 1) + range.multiple - 1) / range.multiple * range.multiple);
  const std::size_t first = result.size();
  for (std::int64_t number = 1; number <= most; ++number) add(number);
  if (result.size() - first > most) result.resize(first + most);
  return result;
}

/// Searches values for symbols that meet conditions, best first.
class dim_search {
 public:
  dim_search(std::vector<std::pair<std::uint32_t, std::vector<std::int64_t>>> symbols,
             std::vector<dim_condition> conditions)
      : symbols_(std::move(symbols)), conditions_(std::move(conditions)) {
    for (auto& [tried, values] : symbols_) {
      const std::uint32_t symbol = tried;  // lambdas of Clang 14 do not capture structured bindings
      std::vector<std::int64_t> lawful;
      for (const std::int64_t number : values) {
        symbol_values alone;
        alone.bind(symbol, number);
        const bool meets_all = std::all_of(conditions_.begin(), conditions_.end(), [&](const dim_condition& one) {
          return one.symbols.size() != 1 || *one.symbols.begin() != symbol || meets(one.what, alone).value_or(true);
        });
        if (meets_all) lawful.push_back(number);
        if (lawful.size() == most_values) break;
      }
      values = std::move(lawful);
    }
  }

  /// The first values for which `is_lawful(values)` too, or nothing after `most_asked` questions.
  template <class Lawful>
  [[nodiscard]] std::optional<symbol_values> find(Lawful&& is_lawful) {
    std::size_t asked = 0;
    std::size_t visited = 0;
    symbol_values values;
    return extend(0, values, asked, visited, is_lawful) ? std::optional(values) : std::nullopt;
  }

 private:
  static constexpr std::size_t most_values = 48;  ///< lawful values of one symbol alone
  static constexpr std::size_t most_asked = 32;   ///< whole choices that are propagated through the graph
  static constexpr std::size_t most_visited = 20000;

  template <class Lawful>
  bool extend(std::size_t next, symbol_values& values, std::size_t& asked, std::size_t& visited, Lawful& is_lawful) {
    if (next == symbols_.size()) return ++asked <= most_asked && is_lawful(values);
    const auto& [symbol, candidates] = symbols_[next];
    for (const std::int64_t number : candidates) {
      if (asked >= most_asked || ++visited > most_visited) return false;
      symbol_values longer = values;
      longer.bind(symbol, number);
      const std::uint32_t bound = symbol;
      const bool meets_all = std::all_of(conditions_.begin(), conditions_.end(), [&](const dim_condition& one) {
        return !one.symbols.contains(bound) || meets(one.what, longer).value_or(true);
      });
      if (meets_all && extend(next + 1, longer, asked, visited, is_lawful)) {
        values = longer;
        return true;
      }
    }
    return false;
  }

  std::vector<std::pair<std::uint32_t, std::vector<std::int64_t>>> symbols_;
  std::vector<dim_condition> conditions_;
};

/// Every dim of a node's output that consists of symbols to choose, as the condition that it is not empty.
[[nodiscard]] inline std::vector<guard> not_empty(const graph& g) {
  std::vector<guard> result;
  for (const node_id id : g.nodes())
    for (const value_id out : g.node_at(id).outputs) {
      if (out == no_value || !g.facts(out).dims) continue;
      for (const index_expr& dim : *g.facts(out).dims) {
        guard one{guard_relation::at_least, dim, 1, {}, {}};
        if (dim.range().low < 1 && std::find(result.begin(), result.end(), one) == result.end())
          result.push_back(std::move(one));
      }
    }
  return result;
}

}  // namespace detail

/// Values for the symbolic dims of the graph's inputs, by name, with which generated inputs (generate_inputs) run:
/// what shape propagation requires of them holds (derive_guards), no tensor is empty where that can be had, and the
/// shapes that follow contradict nothing. Small scalars that are generated (flags, rates) count as what they will be,
/// so that the branch that they choose has its say. Sides of images are 224 where the graph allows it, other dims 1;
/// else the first lawful value of a list, else the least up to 2,048. Values stay within `ranges`.
///
/// Nothing where no such values were found. No error for a graph without symbols: the answer is empty.
/// Errors: those of passes for a graph that is wrong whatever its dims are. Time: some propagations through the graph.
[[nodiscard]] inline std::optional<dim_bindings> choose_dims(const graph& g, const dim_ranges& ranges = {}) {
  const auto wanted = detail::symbols_of_inputs(g);
  if (wanted.empty()) return dim_bindings{};
  graph whole = g;
  std::vector<value_id> left;
  for (const value_id id : g.inputs()) {
    const value_facts& facts = g.facts(id);
    const bool whole_number = is_integer(facts.type) || facts.type == dtype::boolean;
    const bool single = facts.kind == value_kind::tensor && whole_number && facts.dims && facts.dims->size() <= 1 &&
                        is_static(*facts.dims) && element_count(evaluate(*facts.dims, {})) == 1;
    if (single && kind_of_input(g, id) == input_kind::ones)
      whole.make_constant(id, detail::integers(g.value_at(id), evaluate(*facts.dims, {}), input_kind::ones,
                                               generated_constant(g, id), counter_random(0, 0)));
    else
      left.push_back(id);
  }
  whole.set_inputs(std::move(left));
  pass_environment environment;
  environment.evaluate = &reference::evaluate_node;
  (void)run_passes(whole, {"rdp", "fold_constants", "inline_branches", "rdp", "fold_constants", "rdp"}, environment);

  std::vector<std::pair<std::uint32_t, std::vector<std::int64_t>>> symbols;
  std::set<std::uint32_t> chosen;
  for (const auto& [symbol, side] : wanted) {
    const auto range = ranges.find(g.expressions().symbol_name(symbol));
    symbols.emplace_back(symbol, detail::values_to_try(side, range == ranges.end() ? dim_range{} : range->second));
    chosen.insert(symbol);
  }
  std::vector<detail::dim_condition> conditions;
  const auto add = [&](std::vector<guard> guards) {
    for (guard& one : guards) {
      std::set<std::uint32_t> in = symbols_of(one.left);
      in.merge(symbols_of(one.right));
      if (!in.empty() && std::includes(chosen.begin(), chosen.end(), in.begin(), in.end()))
        conditions.push_back({std::move(one), std::move(in)});
    }
  };
  add(derive_guards(whole));
  const std::vector<detail::dim_condition> needed = conditions;
  add(detail::not_empty(whole));

  const auto bindings_of = [&](const symbol_values& values) {
    dim_bindings result;
    for (const std::uint32_t symbol : chosen) result[g.expressions().symbol_name(symbol)] = *values.find(symbol);
    return result;
  };
  const auto is_lawful = [&](const symbol_values& values) {
    graph bound = whole;
    bind_dims(bound, bindings_of(values));
    try {
      (void)run_passes(bound, {"rdp", "fold_constants", "inline_branches", "rdp"}, environment);
    } catch (const error& e) {
      if (e.code() != errc::shape_mismatch && e.code() != errc::bad_attribute && e.code() != errc::contradiction) throw;
      return false;
    }
    return true;
  };
  std::optional<symbol_values> found = detail::dim_search(symbols, conditions).find(is_lawful);
  if (!found) found = detail::dim_search(symbols, needed).find(is_lawful);
  if (!found) return std::nullopt;
  return bindings_of(*found);
}

}  // namespace dnnopt

#endif  // DNNOPT_ZOO_CHOOSE_DIMS_HPP

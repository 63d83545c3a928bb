// Owns the elements of integers that a model computes in floating point, as exporters write sizes: ceil(width / 2.0).
#ifndef DNNOPT_PASSES_EXACT_SIZES_HPP
#define DNNOPT_PASSES_EXACT_SIZES_HPP

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <dnnopt/error.hpp>
#include <dnnopt/graph.hpp>
#include <dnnopt/guard.hpp>
#include <dnnopt/ops/arithmetic.hpp>
#include <dnnopt/ops/exact_quotient.hpp>
#include <dnnopt/ops/structure_transfer.hpp>

namespace dnnopt {

/// Follows numbers of floating point back to the integers that they are computed of. What is found holds as long as
/// numerators are small enough for the type's digits: `bounds` says what that asks of them.
class exact_sizes {
 public:
  explicit exact_sizes(const graph& g) : g_(g) {}

  /// What must not be larger in magnitude than a limit.
  struct bound {
    index_expr numerator;
    std::int64_t limit;
  };

  /// The elements of output 0, of type `to`, of a node that converts numbers of floating point to integers, which cuts
  /// them towards zero; nothing where they are not such numbers, or where `to` may not hold them. O(nodes between).
  [[nodiscard]] std::optional<std::vector<index_expr>> elements_of(node_id id, dtype to) {
    const node& n = g_.node_at(id);
    if (!n.op->converts || n.inputs[0] == no_value || (to != dtype::int64 && to != dtype::int32)) return std::nullopt;
    if (to == dtype::int32 && g_.facts(n.inputs[0]).type == dtype::float64) return std::nullopt;
    bounds_.clear();
    visits_ = 0;
    try {
      return cut(quotients_of(n.inputs[0]));
    } catch (const error& e) {
      // What 64 bits cannot hold is no size.
      if (e.code() != errc::overflow) throw;
      return std::nullopt;
    }
  }
  /// What the elements found last rely on.
  [[nodiscard]] std::span<const bound> bounds() const noexcept { return bounds_; }

 private:
  using quotients = std::vector<exact_quotient>;
  static constexpr std::int64_t most_numbers = 16;
  static constexpr std::size_t most_visits = 256;
  static constexpr std::size_t most_bounds = 64;

  [[nodiscard]] static std::optional<std::vector<index_expr>> cut(const std::optional<quotients>& numbers) {
    if (!numbers) return std::nullopt;
    std::vector<index_expr> result;
    for (const exact_quotient& q : *numbers) {
      const std::optional<index_expr> integer = ops::truncated_quotient(q.numerator, q.divisor);
      if (!integer) return std::nullopt;
      result.push_back(*integer);
    }
    return result;
  }
  [[nodiscard]] static quotients whole(const std::vector<index_expr>& integers) {
    quotients made;
    for (const index_expr& e : integers) made.push_back({e, 1, 0});
    return made;
  }

  /// The numbers of a value, row-major; nothing where they are not followed.
  [[nodiscard]] std::optional<quotients> quotients_of(value_id id) {
    if (id == no_value || ++visits_ > most_visits) return std::nullopt;
    const value_facts& facts = g_.facts(id);
    if ((facts.type != dtype::float32 && facts.type != dtype::float64) || !facts.dims) return std::nullopt;
    const auto dims = static_dims(*facts.dims);
    if (!dims || element_count(*dims) > most_numbers) return std::nullopt;
    if (facts.is_constant()) return of_constant(facts.constant);
    const node_id producer = g_.value_at(id).producer;
    if (producer == no_node || g_.node_at(producer).outputs[0] != id) return std::nullopt;
    const node& n = g_.node_at(producer);
    std::optional<quotients> found = n.op->converts                         ? of_integers(n)
                                     : n.op->exact != nullptr               ? computed(n, element_count(*dims))
                                     : n.op->kind == computation_kind::view ? moved(producer, element_count(*dims))
                                                                            : std::nullopt;
    if (!found || static_cast<std::int64_t>(found->size()) != element_count(*dims)) return std::nullopt;
    for (const exact_quotient& q : *found)
      if (!is_bounded(q, facts.type)) return std::nullopt;
    return found;
  }

  /// Notes what a number asks of its numerator; whether that can hold.
  [[nodiscard]] bool is_bounded(const exact_quotient& q, dtype type) {
    // Of what may be rounded an eighth: so many operations, each off by half of the last digit at most.
    const int digits = (type == dtype::float32 ? 24 : 53) - (is_exact(q) ? 0 : 3);
    const std::int64_t limit = std::int64_t{1} << static_cast<unsigned>(digits);
    const expr_range range = q.numerator.range();
    if (range.low > limit || range.high < -limit) return false;
    if (range.low >= -limit && range.high <= limit) return true;
    const auto known = std::ranges::find_if(bounds_, [&](const bound& b) { return b.numerator == q.numerator; });
    if (known != bounds_.end()) {
      known->limit = std::min(known->limit, limit);
      return true;
    }
    if (bounds_.size() == most_bounds) return false;
    bounds_.push_back({q.numerator, limit});
    return true;
  }

  /// Numbers whose fractions end within a few binary digits.
  [[nodiscard]] static std::optional<quotients> of_constant(const tensor& t) {
    quotients found;
    for (std::int64_t i = 0; i < t.size(); ++i) {
      const auto at = static_cast<std::size_t>(i);
      const double number =
          t.type() == dtype::float32 ? static_cast<double>(t.data<float>()[at]) : t.data<double>()[at];
      const double scaled = number * static_cast<double>(largest_divisor);
      if (!(std::abs(number) < 1e9) || scaled != std::floor(scaled)) return std::nullopt;
      std::int64_t divisor = 1;
      while (number * static_cast<double>(divisor) != std::floor(number * static_cast<double>(divisor))) divisor *= 2;
      found.push_back({static_cast<std::int64_t>(number * static_cast<double>(divisor)), divisor, 0});
    }
    return found;
  }

  [[nodiscard]] std::optional<quotients> of_integers(const node& n) const {
    const facts_of_node facts(g_, g_.value_at(n.outputs[0]).producer);
    const auto elements = facts->elements(0);
    return elements ? std::optional(whole(*elements)) : std::nullopt;
  }

  /// Of operands with as many elements as the result, or one.
  [[nodiscard]] std::optional<quotients> computed(const node& n, std::int64_t count) {
    std::vector<quotients> operands;
    for (const value_id in : n.inputs) {
      std::optional<quotients> numbers = quotients_of(in);
      const bool fits = numbers && (numbers->size() == 1 || static_cast<std::int64_t>(numbers->size()) == count);
      if (!fits) return std::nullopt;
      operands.push_back(std::move(*numbers));
    }
    quotients found;
    for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
      quotients each;
      for (const quotients& one : operands) each.push_back(one[one.size() == 1 ? 0 : i]);
      const std::optional<exact_quotient> made = n.op->exact(each);
      if (!made) return std::nullopt;
      found.push_back(*made);
    }
    return found;
  }

  /// What a view makes of whole numbers, of which it adds none.
  [[nodiscard]] std::optional<quotients> moved(node_id id, std::int64_t count) {
    const node& n = g_.node_at(id);
    if (n.op->view == nullptr || n.outputs.size() != 1) return std::nullopt;
    std::vector<value_facts> stand_ins;
    std::vector<const value_facts*> inputs;
    std::int64_t read = 0;
    stand_ins.reserve(n.inputs.size());
    for (const value_id in : n.inputs) {
      inputs.push_back(in == no_value ? nullptr : &g_.facts(in));
      if (in == no_value || !is_floating(g_.facts(in).type)) continue;
      const std::optional<quotients> numbers = quotients_of(in);
      if (!numbers) return std::nullopt;
      value_facts& integers = stand_ins.emplace_back();
      integers.type = dtype::int64;
      integers.dims = g_.facts(in).dims;
      integers.elements.emplace();
      for (const exact_quotient& q : *numbers) {
        if (q.divisor != 1) return std::nullopt;
        integers.elements->push_back(q.numerator);
      }
      read += static_cast<std::int64_t>(numbers->size());
      inputs.back() = &integers;
    }
    if (count > read) return std::nullopt;
    const facts_of_node held(g_, id);
    node_facts facts = *held;
    facts.inputs = inputs;
    std::vector<value_facts> outputs(1);
    outputs[0].type = dtype::int64;
    outputs[0].dims = g_.facts(n.outputs[0]).dims;
    ops::carry_elements(facts, outputs, n.op->view);
    return outputs[0].elements ? std::optional(whole(*outputs[0].elements)) : std::nullopt;
  }

  const graph& g_;
  std::vector<bound> bounds_;
  std::size_t visits_ = 0;
};

/// The conditions under which elements of a node that exact_sizes tells are right, as guards; none for other nodes.
[[nodiscard]] inline std::vector<guard> bounds_of_sizes(const graph& g, node_id id) {
  std::vector<guard> found;
  const node& n = g.node_at(id);
  exact_sizes sizes(g);
  if (!n.op->converts || n.outputs[0] == no_value || !sizes.elements_of(id, g.facts(n.outputs[0]).type)) return found;
  const std::string what = "what floating point counts exactly";
  for (const auto& [numerator, limit] : sizes.bounds()) {
    const expr_range range = numerator.range();
    if (range.high > limit) found.push_back({guard_relation::at_least, limit, numerator, what, {}});
    if (range.low < -limit) found.push_back({guard_relation::at_least, numerator, -limit, what, {}});
  }
  return found;
}

}  // namespace dnnopt

#endif  // DNNOPT_PASSES_EXACT_SIZES_HPP

// Owns the printed form of index expressions.
#ifndef DNNOPT_INDEX_EXPR_IO_HPP
#define DNNOPT_INDEX_EXPR_IO_HPP

#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include <dnnopt/detail/implementation.hpp>
#include <dnnopt/index_expr.hpp>

namespace dnnopt {

/// The expression in a readable form, for example "4*batch + 1" or "floordiv(n, 2)". Equal expressions of one context
/// print alike, others do not. What would be longer than some 400 parts names those that stand in several places:
/// "min(#1, n) + #1, where #1 = floordiv(n, 2)". O(nodes of the expression, shared ones once).
[[nodiscard]] std::string to_string(const index_expr& e);

#if DNNOPT_IMPLEMENT_GRAPH
namespace detail {

/// The text of a node whose operands are written as `operand(node, constant)`.
template <class Operand>
std::string text_of(const expr_node& n, Operand&& operand) {
  switch (n.op) {
    case expr_op::constant:
      return std::to_string(n.value);
    case expr_op::symbol:
      return n.owner->symbol_name(static_cast<std::uint32_t>(n.value));
    case expr_op::sum: {
      std::string text;
      for (const auto& t : n.terms) {
        const bool negative = t.coefficient < 0;
        const std::string atom = operand(t.atom, 0);
        text += text.empty() ? (negative ? "-" : "") : (negative ? " - " : " + ");
        const std::string magnitude = std::to_string(t.coefficient);
        if (t.coefficient != 1 && t.coefficient != -1) text += (negative ? magnitude.substr(1) : magnitude) + "*";
        text += atom;
      }
      if (n.value != 0)
        text += n.value < 0 ? " - " + std::to_string(n.value).substr(1) : " + " + std::to_string(n.value);
      return text;
    }
    case expr_op::product: {
      std::string text;
      for (const auto* f : n.factors) {
        const std::string factor = operand(f, 0);
        const bool enclosed = f->op == expr_op::sum && factor.front() != '#';
        text += (text.empty() ? "" : "*") + (enclosed ? "(" + factor + ")" : factor);
      }
      return text;
    }
    case expr_op::floordiv:
    case expr_op::mod:
    case expr_op::min:
    case expr_op::max: {
      const char* name = n.op == expr_op::floordiv ? "floordiv"
                         : n.op == expr_op::mod    ? "mod"
                         : n.op == expr_op::min    ? "min"
                                                   : "max";
      return std::string(name) + "(" + operand(n.left, n.left_constant) + ", " + operand(n.right, n.right_constant) +
             ")";
    }
  }
  return {};
}

inline std::string text_in_full(const expr_node* node, std::int64_t constant) {
  return node == nullptr ? std::to_string(constant) : text_of(*node, text_in_full);
}

/// Writes each part that stands in more than one place once.
class shared_text {
 public:
  explicit shared_text(const expr_node& whole) {
    count(&whole);
    text_ = text_of(whole, [this](const expr_node* n, std::int64_t constant) { return part(n, constant); });
    for (std::size_t i = 0; i < definitions_.size(); ++i)
      text_ += (i == 0 ? ", where #" : ", #") + std::to_string(i + 1) + " = " + definitions_[i];
  }
  [[nodiscard]] const std::string& text() const noexcept { return text_; }

 private:
  void count(const expr_node* n) {
    if (n == nullptr || ++places_[n] > 1) return;
    for (const linear_term& t : n->terms) count(t.atom);
    for (const expr_node* f : n->factors) count(f);
    count(n->left);
    count(n->right);
  }
  std::string part(const expr_node* n, std::int64_t constant) {
    if (n == nullptr) return std::to_string(constant);
    const auto known = names_.find(n);
    if (known != names_.end()) return known->second;
    std::string text = text_of(*n, [this](const expr_node* o, std::int64_t number) { return part(o, number); });
    if (places_.at(n) == 1 || n->size == 1) return text;
    definitions_.push_back(std::move(text));
    return names_[n] = "#" + std::to_string(definitions_.size());
  }

  std::unordered_map<const expr_node*, std::size_t> places_;
  std::unordered_map<const expr_node*, std::string> names_;
  std::vector<std::string> definitions_;
  std::string text_;
};

}  // namespace detail

DNNOPT_BODY std::string to_string(const index_expr& e) {
  constexpr std::uint32_t most_in_full = 400;
  if (e.is_constant() || e.size() <= most_in_full)
    return detail::text_in_full(e.node(), e.is_constant() ? e.constant() : 0);
  return detail::shared_text(*e.node()).text();
}
#endif

}  // namespace dnnopt

#endif  // DNNOPT_INDEX_EXPR_IO_HPP

// Owns the printed form of index expressions.
#ifndef DNNOPT_INDEX_EXPR_IO_HPP
#define DNNOPT_INDEX_EXPR_IO_HPP

#include <string>

#include <dnnopt/detail/implementation.hpp>
#include <dnnopt/index_expr.hpp>

namespace dnnopt {

/// The expression in a readable form, for example "4*batch + 1" or "floordiv(n, 2)". Equal expressions of one context
/// print alike.
[[nodiscard]] std::string to_string(const index_expr& e);

#if DNNOPT_IMPLEMENT_GRAPH
DNNOPT_BODY std::string to_string(const index_expr& e) {
  if (e.is_constant()) return std::to_string(e.constant());
  const detail::expr_node& n = *e.node();
  const auto operand = [](const detail::expr_node* node, std::int64_t constant) {
    return to_string(index_expr::from_node(node, constant));
  };
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
        text += (text.empty() ? "" : "*") + (f->op == expr_op::sum ? "(" + factor + ")" : factor);
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
#endif

}  // namespace dnnopt

#endif  // DNNOPT_INDEX_EXPR_IO_HPP

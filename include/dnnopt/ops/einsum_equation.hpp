// Owns the equation of Einsum: its labels per operand and output, with ellipses made explicit.
#ifndef DNNOPT_OPS_EINSUM_EQUATION_HPP
#define DNNOPT_OPS_EINSUM_EQUATION_HPP

#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <dnnopt/error.hpp>

namespace dnnopt {

/// Labels of an equation; letters stand for themselves, the dims of an ellipsis are numbered from 0 (outermost).
struct einsum_equation {
  using labels = std::vector<int>;  ///< one per dim
  std::vector<labels> operands;
  labels output;
};

namespace detail {
inline constexpr std::string_view einsum_ellipsis = "...";

/// The labels of one term whose ellipsis stands for `ellipsis_rank` dims, the last of `broadcast_rank`.
inline einsum_equation::labels einsum_term(std::string_view term, std::size_t ellipsis_rank,
                                           std::size_t broadcast_rank) {
  einsum_equation::labels result;
  for (std::size_t i = 0; i < term.size(); ++i) {
    const char c = term[i];
    if (term.substr(i, 3) == einsum_ellipsis) {
      for (std::size_t d = 0; d < ellipsis_rank; ++d)
        result.push_back(static_cast<int>(broadcast_rank - ellipsis_rank + d));
      i += 2;
    } else if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')) {
      result.push_back(c);
    } else {
      throw error(errc::bad_attribute, "Einsum term '" + std::string(term) + "' holds '" + std::string(1, c) + "'");
    }
  }
  return result;
}
}  // namespace detail

/// Parses an equation for operands of these ranks. Numbers of ellipsis dims are below 64, letters above.
/// Errors: bad_attribute for a malformed equation, shape_mismatch where a term does not fit its operand's rank.
[[nodiscard]] inline einsum_equation parse_einsum(std::string_view text, std::span<const std::size_t> ranks) {
  std::string equation;
  for (const char c : text)
    if (c != ' ') equation += c;
  const std::size_t arrow = equation.find("->");
  const std::string left = equation.substr(0, arrow);
  std::vector<std::string> terms(1);
  for (const char c : left) {
    if (c == ',')
      terms.emplace_back();
    else
      terms.back() += c;
  }
  if (terms.size() != ranks.size())
    throw error(errc::bad_attribute, "Einsum equation '" + equation + "' has " + std::to_string(terms.size()) +
                                         " terms for " + std::to_string(ranks.size()) + " inputs");
  std::vector<std::size_t> ellipsis_ranks(terms.size(), 0);
  std::size_t broadcast_rank = 0;
  for (std::size_t i = 0; i < terms.size(); ++i) {
    const bool has_ellipsis = terms[i].find(detail::einsum_ellipsis) != std::string::npos;
    const std::size_t letters = terms[i].size() - (has_ellipsis ? 3 : 0);
    if (letters > ranks[i] || (!has_ellipsis && letters != ranks[i]))
      throw error(errc::shape_mismatch, "Einsum term '" + terms[i] + "' does not fit rank " + std::to_string(ranks[i]));
    ellipsis_ranks[i] = ranks[i] - letters;
    broadcast_rank = ellipsis_ranks[i] > broadcast_rank ? ellipsis_ranks[i] : broadcast_rank;
  }
  einsum_equation result;
  std::map<int, int> uses;
  for (std::size_t i = 0; i < terms.size(); ++i) {
    result.operands.push_back(detail::einsum_term(terms[i], ellipsis_ranks[i], broadcast_rank));
    for (const int label : result.operands.back()) ++uses[label];
  }
  if (arrow != std::string::npos) {
    result.output = detail::einsum_term(equation.substr(arrow + 2), broadcast_rank, broadcast_rank);
    for (const int label : result.output)
      if (!uses.contains(label))
        throw error(errc::bad_attribute, "Einsum equation '" + equation + "' has an output label that no input has");
  } else {
    // The map is in order of labels: ellipsis dims first, then letters by ASCII value.
    for (const auto& [label, count] : uses)
      if (label < static_cast<int>(broadcast_rank) || count == 1) result.output.push_back(label);
  }
  return result;
}

}  // namespace dnnopt

#endif  // DNNOPT_OPS_EINSUM_EQUATION_HPP

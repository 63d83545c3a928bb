// Owns what a pass is: a named value that edits a graph and tells how often.
#ifndef DNNOPT_PASSES_PASS_HPP
#define DNNOPT_PASSES_PASS_HPP

#include <concepts>
#include <cstddef>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <dnnopt/graph.hpp>
#include <dnnopt/passes/rewriting/rewrite_options.hpp>
#include <dnnopt/warning.hpp>

namespace dnnopt {

/// What one run of a pass did.
struct pass_result {
  std::size_t edits = 0;             ///< rewrites, removals or facts raised, by the pass's own count
  std::vector<std::string> remarks;  ///< what could not be done and why, for --explain
  std::vector<warning> warnings{};   ///< what the user should know about the model
  std::map<std::string, std::size_t, std::less<>> rules{};  ///< how often each named rule fired, where a pass has rules
};

/// A pass: a value without globals that edits a graph and never prints.
template <class P>
concept Pass = requires(const P& pass, graph& g) {
  { P::name } -> std::convertible_to<std::string_view>;
  { pass.run(g) } -> std::same_as<pass_result>;
};

/// Evaluates one node on host tensors; passes that need values take it as a parameter, so that they do not depend on a
/// backend. Absent optional inputs are empty tensors. Errors: unsupported where the node cannot be evaluated.
using node_evaluator = std::vector<tensor> (*)(const graph& g, node_id id, std::span<const tensor> inputs);

/// Passes of a user's own by the names that lists of passes may hold, such as one that applies a table of rules. Shapes
/// are known before each (rdp ran).
using own_passes = std::map<std::string, std::function<pass_result(graph&)>, std::less<>>;

namespace fusion {
class join_judge;
}

/// What passes may use besides the graph.
struct pass_environment {
  node_evaluator evaluate = nullptr;  ///< null: nothing is folded by evaluation
  const op_set* ops = nullptr;        ///< where rules find their operators; null: standard_ops()
  rewriting::rewrite_options rewriting{};
  /// Whether products of quantized operands become products of integers, where the device computes these sooner.
  bool integer_products = false;
  /// Whether operands that are dequantized stay codes up to their products, where the device multiplies those as they
  /// are and scales the sums.
  bool code_products = false;
  fusion::join_judge* judge = nullptr;  ///< joins that a profile decides; null: the shipped rule
  const own_passes* own = nullptr;      ///< passes beside those of pass_table; null: none
};

}  // namespace dnnopt

#endif  // DNNOPT_PASSES_PASS_HPP

// Owns decision trees as the reference backend walks them, read from the attributes of both of ONNX's forms.
#ifndef DNNOPT_REFERENCE_ML_FOREST_HPP
#define DNNOPT_REFERENCE_ML_FOREST_HPP

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <dnnopt/attribute.hpp>
#include <dnnopt/error.hpp>
#include <dnnopt/ops/facts.hpp>
#include <dnnopt/reference/elements.hpp>
#include <dnnopt/tensor.hpp>

namespace dnnopt::reference::ml {

/// How a node compares a feature with its split; the numbers are those of TreeEnsemble's nodes_modes.
enum class split_mode : std::uint8_t { leq, lt, gte, gt, eq, neq, member, leaf };

/// What a leaf adds to one target or class.
struct leaf_weight {
  std::size_t target = 0;
  double weight = 0;
};

struct tree_node {
  split_mode mode = split_mode::leaf;
  std::size_t feature = 0;
  double split = 0;
  std::vector<double> members;  ///< of a membership test
  bool missing_is_true = false;
  std::size_t when_true = 0;
  std::size_t when_false = 0;
  std::vector<leaf_weight> weights;  ///< of a leaf
};

/// Trees, each a root among all nodes.
struct forest {
  std::vector<tree_node> nodes;
  std::vector<std::size_t> roots;
  std::size_t features = 0;  ///< one more than the largest feature that a node reads

  /// The leaf that `row` reaches from `root`. O(depth). Precondition: the row has `features` elements.
  [[nodiscard]] const tree_node& leaf_of(std::size_t root, const double* row) const {
    const tree_node* n = &nodes[root];
    while (n->mode != split_mode::leaf) n = &nodes[holds(*n, row[n->feature]) ? n->when_true : n->when_false];
    return *n;
  }

 private:
  static bool holds(const tree_node& n, double v) {
    if (n.missing_is_true && std::isnan(v)) return true;
    switch (n.mode) {
      case split_mode::leq:
        return v <= n.split;
      case split_mode::lt:
        return v < n.split;
      case split_mode::gte:
        return v >= n.split;
      case split_mode::gt:
        return v > n.split;
      case split_mode::eq:
        return v == n.split;
      case split_mode::neq:
        return v != n.split;
      default:
        for (const double member : n.members)
          if (v == member) return true;
        return false;
    }
  }
};

namespace detail {

/// The floats of attribute `name`, or those of the tensor `name`_as_tensor.
[[nodiscard]] inline std::vector<double> numbers_of(const attribute_map& a, const std::string& name) {
  if (const tensor* held = a.find_as<tensor>(name + "_as_tensor"))
    if (held->size() != 0) return load_all<double>(*held);
  const std::vector<float> floats = a.get_floats(name);
  return {floats.begin(), floats.end()};
}

[[nodiscard]] inline split_mode mode_of(std::string_view name) {
  constexpr std::array<std::string_view, 8> names{"BRANCH_LEQ", "BRANCH_LT",  "BRANCH_GTE",    "BRANCH_GT",
                                                  "BRANCH_EQ",  "BRANCH_NEQ", "BRANCH_MEMBER", "LEAF"};
  for (std::size_t i = 0; i < names.size(); ++i)
    if (names[i] == name) return static_cast<split_mode>(i);
  throw error(errc::bad_attribute, "a tree's node has mode '" + std::string(name) + "'");
}

/// Errors: bad_attribute unless `list` has `count` entries.
template <class List>
void check_count(const List& list, std::size_t count, std::string_view name) {
  if (list.size() != count)
    throw error(errc::bad_attribute, "attribute '" + std::string(name) + "' has " + std::to_string(list.size()) +
                                         " entries for " + std::to_string(count));
}

/// Errors: bad_attribute where a walk from some root would not end, or where no root leads to a node of `all_reached`.
inline void check_trees(const forest& f, bool all_reached) {
  // 0: not seen, 1: on the way from the root, 2: done.
  std::vector<std::uint8_t> state(f.nodes.size(), 0);
  for (const std::size_t root : f.roots) {
    std::vector<std::pair<std::size_t, int>> stack{{root, 0}};
    while (!stack.empty()) {
      auto& [at, next] = stack.back();
      const tree_node& n = f.nodes[at];
      if (next == 0) {
        if (state[at] == 1) throw error(errc::bad_attribute, "a tree's nodes lead to each other in a circle");
        if (state[at] == 2 || n.mode == split_mode::leaf) {
          state[at] = 2;
          stack.pop_back();
          continue;
        }
        state[at] = 1;
      }
      if (next == 2) {
        state[at] = 2;
        stack.pop_back();
        continue;
      }
      const std::size_t child = next++ == 0 ? n.when_true : n.when_false;
      stack.emplace_back(child, 0);
    }
  }
  for (std::size_t i = 0; all_reached && i < f.nodes.size(); ++i)
    if (state[i] == 0) throw error(errc::bad_attribute, "a tree's nodes lead to each other in a circle without a root");
}

}  // namespace detail

/// The trees of TreeEnsembleRegressor ("target") or TreeEnsembleClassifier ("class"), with `targets` targets.
/// Errors: bad_attribute where lists have different lengths, name nodes or targets that do not exist, or go in circles.
[[nodiscard]] inline forest forest_of_lists(const attribute_map& a, const std::string& leaves, std::size_t targets) {
  using key = std::pair<std::int64_t, std::int64_t>;
  const std::vector<std::int64_t> trees = a.get_ints("nodes_treeids");
  const std::vector<std::int64_t> ids = a.get_ints("nodes_nodeids");
  const std::vector<std::int64_t> features = a.get_ints("nodes_featureids");
  const auto modes = a.get<std::vector<std::string>>("nodes_modes", {});
  const std::vector<double> splits = detail::numbers_of(a, "nodes_values");
  const std::vector<std::int64_t> trues = a.get_ints("nodes_truenodeids");
  const std::vector<std::int64_t> falses = a.get_ints("nodes_falsenodeids");
  const std::vector<std::int64_t> missing = a.get_ints("nodes_missing_value_tracks_true");
  const std::size_t count = trees.size();
  detail::check_count(ids, count, "nodes_nodeids");
  detail::check_count(features, count, "nodes_featureids");
  detail::check_count(modes, count, "nodes_modes");
  detail::check_count(splits, count, "nodes_values");
  detail::check_count(trues, count, "nodes_truenodeids");
  detail::check_count(falses, count, "nodes_falsenodeids");
  if (!missing.empty()) detail::check_count(missing, count, "nodes_missing_value_tracks_true");
  forest f;
  f.nodes.resize(count);
  std::map<key, std::size_t> index;
  for (std::size_t i = 0; i < count; ++i)
    if (!index.emplace(key(trees[i], ids[i]), i).second)
      throw error(errc::bad_attribute,
                  "node " + std::to_string(ids[i]) + " of tree " + std::to_string(trees[i]) + " is given twice");
  const auto find = [&](std::int64_t tree, std::int64_t id) {
    const auto found = index.find(key(tree, id));
    if (found == index.end())
      throw error(errc::bad_attribute, "tree " + std::to_string(tree) + " has no node " + std::to_string(id));
    return found->second;
  };
  std::vector<bool> has_parent(count, false);
  for (std::size_t i = 0; i < count; ++i) {
    tree_node& n = f.nodes[i];
    n.mode = detail::mode_of(modes[i]);
    n.split = splits[i];
    n.missing_is_true = !missing.empty() && missing[i] != 0;
    if (n.mode == split_mode::leaf) continue;
    if (n.mode == split_mode::member || features[i] < 0)
      throw error(errc::bad_attribute,
                  "a tree's node tests feature " + std::to_string(features[i]) + " by " + modes[i]);
    n.feature = static_cast<std::size_t>(features[i]);
    f.features = std::max(f.features, n.feature + 1);
    n.when_true = find(trees[i], trues[i]);
    n.when_false = find(trees[i], falses[i]);
    has_parent[n.when_true] = has_parent[n.when_false] = true;
  }
  for (std::size_t i = 0; i < count; ++i)
    if (!has_parent[i]) f.roots.push_back(i);
  const std::vector<std::int64_t> leaf_trees = a.get_ints(leaves + "_treeids");
  const std::vector<std::int64_t> leaf_ids = a.get_ints(leaves + "_nodeids");
  const std::vector<std::int64_t> leaf_targets = a.get_ints(leaves + "_ids");
  const std::vector<double> weights = detail::numbers_of(a, leaves + "_weights");
  detail::check_count(leaf_ids, leaf_trees.size(), leaves + "_nodeids");
  detail::check_count(leaf_targets, leaf_trees.size(), leaves + "_ids");
  detail::check_count(weights, leaf_trees.size(), leaves + "_weights");
  for (std::size_t i = 0; i < leaf_trees.size(); ++i) {
    if (leaf_targets[i] < 0 || static_cast<std::size_t>(leaf_targets[i]) >= targets)
      throw error(errc::bad_attribute,
                  leaves + " " + std::to_string(leaf_targets[i]) + " of " + std::to_string(targets));
    f.nodes[find(leaf_trees[i], leaf_ids[i])].weights.push_back(
        {static_cast<std::size_t>(leaf_targets[i]), weights[i]});
  }
  detail::check_trees(f, true);
  return f;
}

/// The trees of TreeEnsemble: interior nodes in lists, then leaves of one target each. Errors: as forest_of_lists.
[[nodiscard]] inline forest forest_of_arrays(const attribute_map& a, std::size_t targets) {
  const std::vector<std::int64_t> features = a.get_ints("nodes_featureids");
  const std::size_t interior = features.size();
  const std::vector<std::int64_t> modes = integers_of(a.require<tensor>("nodes_modes"));
  const std::vector<double> splits = load_all<double>(a.require<tensor>("nodes_splits"));
  const std::vector<double> weights = load_all<double>(a.require<tensor>("leaf_weights"));
  const std::vector<std::int64_t> leaf_targets = a.get_ints("leaf_targetids");
  const std::vector<std::int64_t> missing = a.get_ints("nodes_missing_value_tracks_true");
  const std::array<std::vector<std::int64_t>, 2> children{a.get_ints("nodes_truenodeids"),
                                                          a.get_ints("nodes_falsenodeids")};
  const std::array<std::vector<std::int64_t>, 2> leaf_flags{a.get_ints("nodes_trueleafs"),
                                                            a.get_ints("nodes_falseleafs")};
  detail::check_count(modes, interior, "nodes_modes");
  detail::check_count(splits, interior, "nodes_splits");
  detail::check_count(leaf_targets, weights.size(), "leaf_targetids");
  if (!missing.empty()) detail::check_count(missing, interior, "nodes_missing_value_tracks_true");
  std::vector<double> members;
  if (const tensor* held = a.find_as<tensor>("membership_values")) members = load_all<double>(*held);
  forest f;
  f.nodes.resize(interior + weights.size());
  const auto child_of = [&](std::size_t i, std::size_t side) {
    detail::check_count(children[side], interior, "nodes_truenodeids or nodes_falsenodeids");
    detail::check_count(leaf_flags[side], interior, "nodes_trueleafs or nodes_falseleafs");
    const std::int64_t at = children[side][i];
    const bool leaf = leaf_flags[side][i] != 0;
    if (at < 0 || static_cast<std::size_t>(at) >= (leaf ? weights.size() : interior))
      throw error(errc::bad_attribute, "a tree has no " + std::string(leaf ? "leaf " : "node ") + std::to_string(at));
    return static_cast<std::size_t>(at) + (leaf ? interior : 0);
  };
  std::size_t next_member = 0;
  for (std::size_t i = 0; i < interior; ++i) {
    tree_node& n = f.nodes[i];
    if (modes[i] < 0 || modes[i] > static_cast<std::int64_t>(split_mode::member) || features[i] < 0)
      throw error(errc::bad_attribute,
                  "a tree's node has mode " + std::to_string(modes[i]) + " of feature " + std::to_string(features[i]));
    n.mode = static_cast<split_mode>(modes[i]);
    n.feature = static_cast<std::size_t>(features[i]);
    n.split = splits[i];
    n.missing_is_true = !missing.empty() && missing[i] != 0;
    f.features = std::max(f.features, n.feature + 1);
    n.when_true = child_of(i, 0);
    n.when_false = child_of(i, 1);
    if (n.mode != split_mode::member) continue;
    // A NaN ends each node's set.
    while (next_member < members.size() && !std::isnan(members[next_member]))
      n.members.push_back(members[next_member++]);
    ++next_member;
  }
  for (std::size_t l = 0; l < weights.size(); ++l) {
    if (leaf_targets[l] < 0 || static_cast<std::size_t>(leaf_targets[l]) >= targets)
      throw error(errc::bad_attribute, "target " + std::to_string(leaf_targets[l]) + " of " + std::to_string(targets));
    f.nodes[interior + l].weights.push_back({static_cast<std::size_t>(leaf_targets[l]), weights[l]});
  }
  for (const std::int64_t root : a.get_ints("tree_roots")) {
    if (root < 0 || static_cast<std::size_t>(root) >= interior)
      throw error(errc::bad_attribute, "a tree has no root " + std::to_string(root));
    f.roots.push_back(static_cast<std::size_t>(root));
  }
  detail::check_trees(f, false);
  return f;
}

}  // namespace dnnopt::reference::ml

#endif  // DNNOPT_REFERENCE_ML_FOREST_HPP

// Owns the reference evaluation of ai.onnx.ml's tree ensembles.
#ifndef DNNOPT_REFERENCE_ML_TREE_ENSEMBLE_HPP
#define DNNOPT_REFERENCE_ML_TREE_ENSEMBLE_HPP

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <dnnopt/reference/ml/forest.hpp>
#include <dnnopt/reference/ml/scores.hpp>
#include <dnnopt/reference/reference_row.hpp>

namespace dnnopt::reference::ml {

/// How leaves of several trees become one number; the numbers are those of TreeEnsemble's aggregate_function.
enum class aggregate : std::uint8_t { average, sum, least, largest };

/// Errors: bad_attribute.
[[nodiscard]] inline aggregate aggregate_of(std::string_view name) {
  if (name == "AVERAGE") return aggregate::average;
  if (name == "SUM") return aggregate::sum;
  if (name == "MIN") return aggregate::least;
  if (name == "MAX") return aggregate::largest;
  throw error(errc::bad_attribute, "aggregate_function is '" + std::string(name) + "'");
}

/// The aggregated leaves of one row per target, and which targets got any.
struct votes {
  std::vector<double> scores;
  std::vector<bool> given;
};

[[nodiscard]] inline votes votes_of(const forest& f, const double* row, std::size_t targets, aggregate how) {
  votes v{std::vector<double>(targets, 0.0), std::vector<bool>(targets, false)};
  for (const std::size_t root : f.roots)
    for (const leaf_weight& w : f.leaf_of(root, row).weights) {
      double& score = v.scores[w.target];
      if (how == aggregate::least)
        score = v.given[w.target] ? std::min(score, w.weight) : w.weight;
      else if (how == aggregate::largest)
        score = v.given[w.target] ? std::max(score, w.weight) : w.weight;
      else
        score += w.weight;
      v.given[w.target] = true;
    }
  if (how == aggregate::average)
    for (double& score : v.scores) score /= static_cast<double>(std::max<std::size_t>(f.roots.size(), 1));
  return v;
}

/// Errors: shape_mismatch where a tree reads a feature that rows lack.
inline void check_features(const forest& f, const feature_rows& x) {
  if (x.features < f.features)
    throw error(errc::shape_mismatch,
                "a tree reads feature " + std::to_string(f.features - 1) + " of rows of " + std::to_string(x.features));
}

/// Scores [rows, targets] of a regressor. One base value counts for every target where there is one target alone.
[[nodiscard]] inline tensor regress(const forest& f, const tensor& input, std::size_t targets, aggregate how,
                                    transform after, const std::vector<double>& base, dtype type) {
  const feature_rows x = rows_of(input);
  check_features(f, x);
  std::vector<double> all;
  for (std::size_t r = 0; r < x.rows; ++r) {
    std::vector<double> scores = votes_of(f, x.row(r), targets, how).scores;
    if (base.size() == targets)
      for (std::size_t t = 0; t < targets; ++t) scores[t] += base[t];
    // The only target of a regressor is transformed by PROBIT alone, as in ONNX Runtime.
    if (targets > 1 || after == transform::probit) transform_scores(scores, after);
    all.insert(all.end(), scores.begin(), scores.end());
  }
  return store_all<double>(type, {static_cast<std::int64_t>(x.rows), static_cast<std::int64_t>(targets)}, all);
}

[[nodiscard]] inline std::size_t target_count(const attribute_map& a) {
  const std::int64_t targets = a.get_int("n_targets", 1);
  if (targets < 1) throw error(errc::bad_attribute, "n_targets is " + std::to_string(targets));
  return static_cast<std::size_t>(targets);
}

/// A leaf votes once for the only target, by the first weight that it is given, as in ONNX Runtime: skl2onnx writes the
/// leaves of a tree of several classes so, with one weight for each class, to tell which leaf a row comes to.
inline void keep_first_votes(forest& f) {
  for (tree_node& n : f.nodes)
    if (n.weights.size() > 1) n.weights.erase(n.weights.begin() + 1, n.weights.end());
}

inline void tree_ensemble_regressor(const attribute_map& a, std::span<const tensor> inputs, std::span<tensor> outputs) {
  const std::size_t targets = target_count(a);
  forest trees = forest_of_lists(a, "target", targets);
  if (targets == 1) keep_first_votes(trees);
  outputs[0] = regress(trees, inputs[0], targets, aggregate_of(a.get_string("aggregate_function", "SUM")),
                       transform_of(a.get_string("post_transform", "NONE")), detail::numbers_of(a, "base_values"),
                       dtype::float32);
}

inline void tree_ensemble(const attribute_map& a, std::span<const tensor> inputs, std::span<tensor> outputs) {
  const std::size_t targets = target_count(a);
  const std::int64_t how = a.get_int("aggregate_function", 1);
  const std::int64_t after = a.get_int("post_transform", 0);
  if (how < 0 || how > 3 || after < 0 || after > 4)
    throw error(errc::bad_attribute,
                "aggregate_function is " + std::to_string(how) + ", post_transform " + std::to_string(after));
  outputs[0] = regress(forest_of_arrays(a, targets), inputs[0], targets, static_cast<aggregate>(how),
                       static_cast<transform>(after), {}, inputs[0].type());
}

/// The scores and the class of one row whose leaves all vote for one of two classes, as ONNX Runtime decides them.
/// `positive`: no weight is negative, so that scores are probabilities of the second class, else margins.
[[nodiscard]] inline std::size_t decide_binary(votes& v, const std::vector<double>& base, bool positive,
                                               transform after) {
  std::vector<double>& s = v.scores;
  if (!base.empty() && v.given[0]) s[0] += base[0];
  const bool second = (v.given[1] ? s[1] : s[0]) > (positive ? 0.5 : 0.0);
  if (v.given[1]) {
    transform_scores(s, after);
  } else {
    s.resize(1);
    add_second_score(s, after, !positive);
  }
  return second ? 1 : 0;
}

/// The scores and the class of one row: the class with the largest score of those that leaves or base values vote for.
[[nodiscard]] inline std::size_t decide(votes& v, const std::vector<double>& base, transform after) {
  for (std::size_t c = 0; c < base.size() && c < v.scores.size(); ++c) {
    v.scores[c] += base[c];
    v.given[c] = true;
  }
  std::size_t best = 0;
  bool found = false;
  for (std::size_t c = 0; c < v.scores.size(); ++c)
    if (v.given[c] && (!found || v.scores[c] > v.scores[best])) {
      best = c;
      found = true;
    }
  transform_scores(v.scores, after);
  return best;
}

inline void tree_ensemble_classifier(const attribute_map& a, std::span<const tensor> inputs,
                                     std::span<tensor> outputs) {
  const class_labels labels = labels_of(a, "classlabels_int64s");
  const forest f = forest_of_lists(a, "class", labels.size());
  const feature_rows x = rows_of(inputs[0]);
  check_features(f, x);
  bool positive = true;
  std::set<std::size_t> voted;
  for (const tree_node& n : f.nodes)
    for (const leaf_weight& w : n.weights) {
      voted.insert(w.target);
      positive = positive && w.weight >= 0;
    }
  const transform after = transform_of(a.get_string("post_transform", "NONE"));
  const std::vector<double> base = detail::numbers_of(a, "base_values");
  const bool binary = labels.size() == 2 && voted.size() == 1 && base.size() < 2;
  std::vector<std::size_t> chosen;
  std::vector<double> all;
  for (std::size_t r = 0; r < x.rows; ++r) {
    votes v = votes_of(f, x.row(r), labels.size(), aggregate::sum);
    chosen.push_back(binary ? decide_binary(v, base, positive, after) : decide(v, base, after));
    all.insert(all.end(), v.scores.begin(), v.scores.end());
  }
  outputs[0] = labels.of_rows(chosen);
  if (outputs.size() > 1)
    outputs[1] = store_all<double>(dtype::float32,
                                   {static_cast<std::int64_t>(x.rows), static_cast<std::int64_t>(labels.size())}, all);
}

inline constexpr std::array tree_ensemble_rows{
    reference_row{"ai.onnx.ml", "TreeEnsemble", tree_ensemble},
    reference_row{"ai.onnx.ml", "TreeEnsembleClassifier", tree_ensemble_classifier},
    reference_row{"ai.onnx.ml", "TreeEnsembleRegressor", tree_ensemble_regressor},
};

}  // namespace dnnopt::reference::ml

#endif  // DNNOPT_REFERENCE_ML_TREE_ENSEMBLE_HPP

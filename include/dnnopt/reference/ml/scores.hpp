// Owns what predictors of ai.onnx.ml share: rows of features, and the transforms of scores.
#ifndef DNNOPT_REFERENCE_ML_SCORES_HPP
#define DNNOPT_REFERENCE_ML_SCORES_HPP

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dnnopt/attribute.hpp>
#include <dnnopt/error.hpp>
#include <dnnopt/reference/elements.hpp>
#include <dnnopt/tensor.hpp>

namespace dnnopt::reference::ml {

/// The transform of attribute `post_transform`.
enum class transform { none, softmax, logistic, softmax_zero, probit };

/// Errors: bad_attribute.
[[nodiscard]] inline transform transform_of(std::string_view name) {
  if (name == "NONE") return transform::none;
  if (name == "SOFTMAX") return transform::softmax;
  if (name == "LOGISTIC") return transform::logistic;
  if (name == "SOFTMAX_ZERO") return transform::softmax_zero;
  if (name == "PROBIT") return transform::probit;
  throw error(errc::bad_attribute, "post_transform is '" + std::string(name) + "'");
}

[[nodiscard]] inline double logistic(double v) { return 1.0 / (1.0 + std::exp(-v)); }

/// The quantile of the standard normal distribution, by Winitzki's approximation of the inverse error function, which
/// ONNX Runtime uses.
[[nodiscard]] inline double probit(double p) {
  const double x = 2.0 * p - 1.0;
  constexpr double a = 0.147;
  constexpr double pi = 3.14159;
  const double log = std::log((1.0 - x) * (1.0 + x));
  const double half = 2.0 / (pi * a) + 0.5 * log;
  const double inner = std::sqrt(half * half - log / a) - half;
  return std::sqrt(2.0) * (x < 0 ? -1.0 : 1.0) * std::sqrt(inner);
}

/// SOFTMAX_ZERO leaves zeros as they are.
inline void softmax(std::vector<double>& scores, bool zeros_stay) {
  constexpr double zero = 1e-7;
  const double largest = *std::max_element(scores.begin(), scores.end());
  double total = 0;
  for (double& s : scores) {
    if (zeros_stay && std::fabs(s) <= zero) {
      s *= std::exp(-largest);
      continue;
    }
    s = std::exp(s - largest);
    total += s;
  }
  for (double& s : scores) s /= total;
}

/// Transforms the scores of one row, of which there are several or which is the only target's.
inline void transform_scores(std::vector<double>& scores, transform how) {
  switch (how) {
    case transform::none:
      return;
    case transform::softmax:
    case transform::softmax_zero:
      softmax(scores, how == transform::softmax_zero);
      return;
    case transform::logistic:
      for (double& s : scores) s = logistic(s);
      return;
    case transform::probit:
      for (double& s : scores) s = probit(s);
      return;
  }
}

/// Two scores from the one of a binary classifier: both through the logistic function where that is asked for, else of
/// margins (`signed_margin`) the negative, of probabilities the complement.
inline void add_second_score(std::vector<double>& scores, transform how, bool signed_margin) {
  const double s = scores.at(0);
  if (how == transform::probit)
    scores = {1.0 - probit(s), probit(s)};
  else if (how == transform::logistic)
    scores = {logistic(-s), logistic(s)};
  else
    scores = {signed_margin ? -s : 1.0 - s, s};
}

/// The input as rows of features.
struct feature_rows {
  std::vector<double> values;
  std::size_t rows = 0;
  std::size_t features = 0;

  [[nodiscard]] const double* row(std::size_t r) const { return values.data() + r * features; }
};

/// Errors: shape_mismatch for ranks other than 1 (one row) and 2, unsupported for strings.
[[nodiscard]] inline feature_rows rows_of(const tensor& x) {
  if (x.rank() < 1 || x.rank() > 2) throw error(errc::shape_mismatch, "features of shape " + to_string(x.dims()));
  feature_rows result;
  result.values = load_all<double>(x);
  result.rows = x.rank() == 1 ? 1 : static_cast<std::size_t>(x.dims()[0]);
  result.features = static_cast<std::size_t>(x.dims().back());
  return result;
}

/// The labels of classes, integers or strings.
struct class_labels {
  std::vector<std::int64_t> integers;
  std::vector<std::string> strings;

  [[nodiscard]] std::size_t size() const { return integers.size() + strings.size(); }
  /// The labels at `chosen`, one per row.
  [[nodiscard]] tensor of_rows(const std::vector<std::size_t>& chosen) const {
    const dim_list dims{static_cast<std::int64_t>(chosen.size())};
    if (!strings.empty()) {
      tensor result(dtype::string, dims);
      for (std::size_t r = 0; r < chosen.size(); ++r) result.mutable_strings()[r] = strings.at(chosen[r]);
      return result;
    }
    std::vector<std::int64_t> labels;
    for (const std::size_t c : chosen) labels.push_back(integers.at(c));
    return tensor::of<std::int64_t>(dims, labels);
  }
};

/// Errors: bad_attribute where there are no labels, or of both kinds.
[[nodiscard]] inline class_labels labels_of(const attribute_map& attributes, const char* integers) {
  class_labels result{attributes.get_ints(integers),
                      attributes.get<std::vector<std::string>>("classlabels_strings", {})};
  if (result.integers.empty() == result.strings.empty())
    throw error(errc::bad_attribute, "class labels are strings or integers, one of both");
  return result;
}

}  // namespace dnnopt::reference::ml

#endif  // DNNOPT_REFERENCE_ML_SCORES_HPP

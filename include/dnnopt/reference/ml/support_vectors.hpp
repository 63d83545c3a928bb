// Owns the reference evaluation of ai.onnx.ml's support vector machines.
#ifndef DNNOPT_REFERENCE_ML_SUPPORT_VECTORS_HPP
#define DNNOPT_REFERENCE_ML_SUPPORT_VECTORS_HPP

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <dnnopt/reference/ml/scores.hpp>
#include <dnnopt/reference/reference_row.hpp>

namespace dnnopt::reference::ml {

/// The kernel function of two rows, by attributes kernel_type and kernel_params (gamma, coef0, degree).
class svm_kernel {
 public:
  /// Errors: bad_attribute.
  explicit svm_kernel(const attribute_map& a) : type_(a.get_string("kernel_type", "LINEAR")) {
    if (type_ != "LINEAR" && type_ != "POLY" && type_ != "RBF" && type_ != "SIGMOID")
      throw error(errc::bad_attribute, "kernel_type is '" + type_ + "'");
    const std::vector<float> given = a.get_floats("kernel_params");
    for (std::size_t k = 0; k < std::min<std::size_t>(given.size(), 3); ++k)
      parameters_[k] = static_cast<double>(given[k]);
  }

  [[nodiscard]] double operator()(const double* a, const float* b, std::size_t count) const {
    const auto [gamma, coef0, degree] = parameters_;
    double sum = 0;
    for (std::size_t k = 0; k < count; ++k) {
      const auto other = static_cast<double>(b[k]);
      sum += type_ == "RBF" ? (a[k] - other) * (a[k] - other) : a[k] * other;
    }
    if (type_ == "RBF") return std::exp(-gamma * sum);
    if (type_ == "POLY") return std::pow(gamma * sum + coef0, degree);
    if (type_ == "SIGMOID") return std::tanh(gamma * sum + coef0);
    return sum;
  }

 private:
  std::string type_;
  std::array<double, 3> parameters_{};
};

/// Errors: bad_attribute unless attribute `name` has at least `count` numbers.
[[nodiscard]] inline std::vector<float> floats_at_least(const attribute_map& a, const char* name, std::size_t count) {
  std::vector<float> list = a.get_floats(name);
  if (list.size() < count)
    throw error(errc::bad_attribute, std::string("attribute '") + name + "' has " + std::to_string(list.size()) +
                                         " numbers where " + std::to_string(count) + " are needed");
  return list;
}

inline void svm_regressor(const attribute_map& a, std::span<const tensor> inputs, std::span<tensor> outputs) {
  const feature_rows x = rows_of(inputs[0]);
  const std::int64_t given = a.get_int("n_supports", 0);
  const std::size_t supports = given < 0 ? 0 : static_cast<std::size_t>(given);
  const double rho = static_cast<double>(floats_at_least(a, "rho", 1)[0]);
  const std::vector<float> coefficients = floats_at_least(a, "coefficients", supports == 0 ? x.features : supports);
  const std::vector<float> vectors = floats_at_least(a, "support_vectors", supports * x.features);
  const svm_kernel kernel(a);
  std::vector<double> scores;
  for (std::size_t r = 0; r < x.rows; ++r) {
    double sum = rho;
    for (std::size_t s = 0; s < supports; ++s)
      sum += static_cast<double>(coefficients[s]) * kernel(x.row(r), &vectors[s * x.features], x.features);
    // Without support vectors the machine is linear in the features.
    for (std::size_t k = 0; supports == 0 && k < x.features; ++k)
      sum += x.row(r)[k] * static_cast<double>(coefficients[k]);
    scores.push_back(a.get_int("one_class", 0) == 0 ? sum : sum > 0 ? 1.0 : -1.0);
  }
  outputs[0] = store_all<double>(dtype::float32, {static_cast<std::int64_t>(x.rows), 1}, scores);
}

/// Probabilities of classes from those of pairs, `pairs[i * classes + j]` being that of i against j: the second method
/// of Wu, Lin and Weng, "Probability Estimates for Multi-class Classification by Pairwise Coupling" (2004), to the
/// tolerance of LIBSVM.
[[nodiscard]] inline std::vector<double> couple(const std::vector<double>& pairs, std::size_t classes) {
  std::vector<double> q(classes * classes, 0.0);
  for (std::size_t i = 0; i < classes; ++i)
    for (std::size_t j = 0; j < classes; ++j) {
      if (i == j) continue;
      q[i * classes + i] += pairs[j * classes + i] * pairs[j * classes + i];
      q[i * classes + j] = -pairs[j * classes + i] * pairs[i * classes + j];
    }
  constexpr int most_turns = 100;
  const double tolerance = 0.005 / static_cast<double>(classes);
  std::vector<double> p(classes, 1.0 / static_cast<double>(classes));
  std::vector<double> qp(classes, 0.0);
  for (int turn = 0; turn < most_turns; ++turn) {
    double pqp = 0;
    double worst = 0;
    for (std::size_t i = 0; i < classes; ++i) {
      qp[i] = 0;
      for (std::size_t j = 0; j < classes; ++j) qp[i] += q[i * classes + j] * p[j];
      pqp += p[i] * qp[i];
    }
    for (std::size_t i = 0; i < classes; ++i) worst = std::max(worst, std::fabs(qp[i] - pqp));
    if (worst < tolerance) break;
    for (std::size_t i = 0; i < classes; ++i) {
      const double step = (pqp - qp[i]) / q[i * classes + i];
      const double scale = 1.0 + step;
      p[i] += step;
      pqp = (pqp + step * (step * q[i * classes + i] + 2.0 * qp[i])) / scale / scale;
      for (std::size_t j = 0; j < classes; ++j) {
        qp[j] = (qp[j] + step * q[i * classes + j]) / scale;
        p[j] /= scale;
      }
    }
  }
  return p;
}

/// A classifier of one class against each other: margins of pairs, votes, and probabilities where it has them.
class pairwise_machine {
 public:
  /// Errors: bad_attribute where attributes do not belong together.
  pairwise_machine(const attribute_map& a, std::size_t classes, std::size_t features)
      : classes_(classes), pairs_(classes * (classes - 1) / 2), features_(features), kernel_(a) {
    for (const std::int64_t count : a.get_ints("vectors_per_class")) {
      if (count < 0) throw error(errc::bad_attribute, "vectors_per_class holds " + std::to_string(count));
      starts_.push_back(supports_);
      counts_.push_back(static_cast<std::size_t>(count));
      supports_ += counts_.back();
    }
    if (counts_.size() != classes)
      throw error(errc::bad_attribute, "vectors_per_class is of " + std::to_string(counts_.size()) + " classes, not " +
                                           std::to_string(classes));
    vectors_ = floats_at_least(a, "support_vectors", supports_ * features);
    coefficients_ = floats_at_least(a, "coefficients", (classes - 1) * supports_);
    rho_ = floats_at_least(a, "rho", pairs_);
    if (a.get_floats("prob_a").empty()) return;
    prob_a_ = floats_at_least(a, "prob_a", pairs_);
    prob_b_ = floats_at_least(a, "prob_b", pairs_);
  }

  [[nodiscard]] bool has_probabilities() const { return !prob_a_.empty(); }

  /// The margin of each pair of classes, and the class with the most votes.
  [[nodiscard]] std::vector<double> margins(const double* row, std::size_t& winner) const {
    std::vector<double> values(supports_);
    for (std::size_t s = 0; s < supports_; ++s) values[s] = kernel_(row, &vectors_[s * features_], features_);
    std::vector<std::size_t> won(classes_, 0);
    std::vector<double> result;
    for (std::size_t i = 0; i < classes_; ++i)
      for (std::size_t j = i + 1; j < classes_; ++j) {
        // Row k of the coefficients holds those against the class k, or k + 1 for classes up to k.
        const double sum = part(values, i, j - 1) + part(values, j, i) + static_cast<double>(rho_[result.size()]);
        result.push_back(sum);
        ++won[sum > 0 ? i : j];
      }
    winner = static_cast<std::size_t>(std::max_element(won.begin(), won.end()) - won.begin());
    return result;
  }
  [[nodiscard]] std::vector<double> probabilities(const std::vector<double>& margins) const {
    constexpr double least = 1e-7;
    std::vector<double> pairs(classes_ * classes_, 0.0);
    std::size_t at = 0;
    for (std::size_t i = 0; i < classes_; ++i)
      for (std::size_t j = i + 1; j < classes_; ++j, ++at) {
        const double p =
            1.0 - logistic(margins[at] * static_cast<double>(prob_a_[at]) + static_cast<double>(prob_b_[at]));
        pairs[i * classes_ + j] = std::clamp(p, least, 1.0 - least);
        pairs[j * classes_ + i] = 1.0 - pairs[i * classes_ + j];
      }
    return couple(pairs, classes_);
  }

 private:
  [[nodiscard]] double part(const std::vector<double>& values, std::size_t own, std::size_t row) const {
    double sum = 0;
    for (std::size_t s = starts_[own]; s < starts_[own] + counts_[own]; ++s)
      sum += static_cast<double>(coefficients_[row * supports_ + s]) * values[s];
    return sum;
  }

  std::size_t classes_;
  std::size_t pairs_;
  std::size_t features_;
  svm_kernel kernel_;
  std::size_t supports_ = 0;
  std::vector<std::size_t> starts_;
  std::vector<std::size_t> counts_;
  std::vector<float> vectors_;
  std::vector<float> coefficients_;
  std::vector<float> rho_;
  std::vector<float> prob_a_;
  std::vector<float> prob_b_;
};

/// One score per class, linear in the features; the class with the largest one, or of two classes the second where
/// scores are positive enough.
[[nodiscard]] inline std::vector<double> linear_machine(const attribute_map& a, std::size_t classes, const double* row,
                                                        std::size_t features, std::size_t& winner) {
  const std::vector<float> coefficients = floats_at_least(a, "coefficients", classes * features);
  const double rho = static_cast<double>(floats_at_least(a, "rho", 1)[0]);
  std::vector<double> scores(classes, rho);
  for (std::size_t c = 0; c < classes; ++c)
    for (std::size_t k = 0; k < features; ++k)
      scores[c] += row[k] * static_cast<double>(coefficients[c * features + k]);
  winner = static_cast<std::size_t>(std::max_element(scores.begin(), scores.end()) - scores.begin());
  if (classes == 2 && a.get_floats("prob_a").empty()) {
    const bool positive = std::all_of(coefficients.begin(), coefficients.end(), [](float c) { return c >= 0; });
    if (scores[winner] > 0 && (!positive || scores[winner] >= 0.5)) winner = 1;
  }
  return scores;
}

inline void svm_classifier(const attribute_map& a, std::span<const tensor> inputs, std::span<tensor> outputs) {
  const class_labels labels = labels_of(a, "classlabels_ints");
  const feature_rows x = rows_of(inputs[0]);
  const transform after = transform_of(a.get_string("post_transform", "NONE"));
  const std::size_t classes = labels.size();
  if (classes < 2) throw error(errc::bad_attribute, "a classifier of one class");
  const bool linear = a.get_ints("vectors_per_class").empty();
  std::vector<std::size_t> chosen;
  std::vector<double> all;
  std::size_t columns = classes;
  for (std::size_t r = 0; r < x.rows; ++r) {
    std::size_t winner = 0;
    std::vector<double> scores;
    if (linear) {
      scores = linear_machine(a, classes, x.row(r), x.features, winner);
      transform_scores(scores, after);
    } else {
      const pairwise_machine machine(a, classes, x.features);
      scores = machine.margins(x.row(r), winner);
      // The votes decide, also where probabilities say otherwise, as in LIBSVM and ONNX Runtime.
      if (machine.has_probabilities()) scores = machine.probabilities(scores);
      if (scores.size() == 1)
        add_second_score(scores, after, after == transform::none);
      else
        transform_scores(scores, after);
    }
    columns = scores.size();
    chosen.push_back(winner);
    all.insert(all.end(), scores.begin(), scores.end());
  }
  outputs[0] = labels.of_rows(chosen);
  if (outputs.size() > 1)
    outputs[1] =
        store_all<double>(dtype::float32, {static_cast<std::int64_t>(x.rows), static_cast<std::int64_t>(columns)}, all);
}

inline constexpr std::array support_vector_rows{
    reference_row{"ai.onnx.ml", "SVMClassifier", svm_classifier},
    reference_row{"ai.onnx.ml", "SVMRegressor", svm_regressor},
};

}  // namespace dnnopt::reference::ml

#endif  // DNNOPT_REFERENCE_ML_SUPPORT_VECTORS_HPP

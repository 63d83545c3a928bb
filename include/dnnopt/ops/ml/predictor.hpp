// Owns the tree ensembles and support vector machines of ai.onnx.ml.
#ifndef DNNOPT_OPS_ML_PREDICTOR_HPP
#define DNNOPT_OPS_ML_PREDICTOR_HPP

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <dnnopt/ops/structure_transfer.hpp>

namespace dnnopt::ops::ml {

/// What predictors share: rows of features [rows, features], or one row [features], become rows of scores.
struct predictor_traits {
  static constexpr std::string_view domain = "ai.onnx.ml";
  static constexpr mapping_type mapping = mapping_type::many_to_many;
  static constexpr layout_class layout = layout_class::ild_fixed;
  static constexpr dynamism_class dynamism = dynamism_class::isdos;
  static constexpr computation_kind kind = computation_kind::other;

  /// The number of rows of input 0, or nothing where its rank is not known. Errors: shape_mismatch for other ranks than
  /// 1 and 2.
  static std::optional<index_expr> rows_of(const node_facts& facts, std::string_view op) {
    const shape* dims = facts.dims(0);
    if (dims == nullptr) return std::nullopt;
    if (dims->empty() || dims->size() > 2)
      throw error(errc::shape_mismatch, std::string(op) + ": the input is " + to_string(*dims));
    return dims->size() == 1 ? index_expr(1) : (*dims)[0];
  }
  static void infer_scores(const node_facts& facts, std::span<value_facts> outputs, std::string_view op,
                           std::size_t output, std::int64_t columns, dtype type) {
    set_type(outputs, output, type);
    if (const auto rows = rows_of(facts, op)) set_dims(outputs, output, {*rows, columns});
  }
  /// The number of class labels, and the type of output 0. Errors: bad_attribute where there are none.
  static std::int64_t infer_labels(const node_facts& facts, std::span<value_facts> outputs, std::string_view op,
                                   const char* integers) {
    const auto strings = facts.attributes->get<std::vector<std::string>>("classlabels_strings", {});
    const std::vector<std::int64_t> numbers = facts.attributes->get_ints(integers);
    if (strings.empty() == numbers.empty())
      throw error(errc::bad_attribute, std::string(op) + ": class labels are strings or integers, one of both");
    set_type(outputs, 0, strings.empty() ? dtype::int64 : dtype::string);
    if (const auto rows = rows_of(facts, op)) set_dims(outputs, 0, {*rows});
    return static_cast<std::int64_t>(strings.size() + numbers.size());
  }
};

/// TreeEnsembleRegressor: per row and target, the sum (average, least, largest) of the leaves that the row reaches.
struct tree_ensemble_regressor_op : predictor_traits {
  static constexpr std::string_view name = "TreeEnsembleRegressor";
  static constexpr int since = 5;
  static constexpr op_arity arity{1, 1};
  static void infer(const node_facts& facts, std::span<value_facts> outputs) {
    infer_scores(facts, outputs, name, 0, facts.attributes->get_int("n_targets", 1), dtype::float32);
  }
};

/// TreeEnsembleClassifier: the label of the class whose leaves sum up to most, and the scores of all classes.
struct tree_ensemble_classifier_op : predictor_traits {
  static constexpr std::string_view name = "TreeEnsembleClassifier";
  static constexpr int since = 5;
  static constexpr op_arity arity{1, 1, 2, 2};
  static void infer(const node_facts& facts, std::span<value_facts> outputs) {
    const std::int64_t classes = infer_labels(facts, outputs, name, "classlabels_int64s");
    infer_scores(facts, outputs, name, 1, classes, dtype::float32);
  }
};

/// TreeEnsemble: the form of opset 5, whose leaves are listed apart from the nodes and whose splits may test
/// membership.
struct tree_ensemble_op : predictor_traits {
  static constexpr std::string_view name = "TreeEnsemble";
  static constexpr int since = 5;
  static constexpr op_arity arity{1, 1};
  static void infer(const node_facts& facts, std::span<value_facts> outputs) {
    infer_scores(facts, outputs, name, 0, facts.attributes->get_int("n_targets", 1), facts.type(0));
  }
};

/// SVMRegressor: kernel values with the support vectors, weighted and summed.
struct svm_regressor_op : predictor_traits {
  static constexpr std::string_view name = "SVMRegressor";
  static constexpr op_arity arity{1, 1};
  static void infer(const node_facts& facts, std::span<value_facts> outputs) {
    infer_scores(facts, outputs, name, 0, 1, dtype::float32);
  }
};

/// SVMClassifier: one against one; scores per class where probabilities are given or the machine is linear, else one
/// per pair of classes.
struct svm_classifier_op : predictor_traits {
  static constexpr std::string_view name = "SVMClassifier";
  static constexpr op_arity arity{1, 1, 2, 2};
  static void infer(const node_facts& facts, std::span<value_facts> outputs) {
    const std::int64_t classes = infer_labels(facts, outputs, name, "classlabels_ints");
    const bool pairs = !facts.attributes->get_ints("vectors_per_class").empty() &&
                       facts.attributes->get_floats("prob_a").empty() && classes > 2;
    infer_scores(facts, outputs, name, 1, pairs ? classes * (classes - 1) / 2 : classes, dtype::float32);
  }
};

}  // namespace dnnopt::ops::ml

#endif  // DNNOPT_OPS_ML_PREDICTOR_HPP

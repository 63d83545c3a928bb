// Owns the expansions of ai.onnx.ml's linear and feature-wise operators into standard ones.
#ifndef DNNOPT_ONNX_CONTRIB_ML_HPP
#define DNNOPT_ONNX_CONTRIB_ML_HPP

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <dnnopt/error.hpp>
#include <dnnopt/onnx/contrib/expansion.hpp>
#include <dnnopt/tensor.hpp>

namespace dnnopt::onnx::contrib {

[[nodiscard]] inline tensor float_list(const std::vector<float>& values) {
  return tensor::of<float>({static_cast<std::int64_t>(values.size())}, values);
}

/// Input 0 as float32 rows of features; a single row of rank 1 gets a dim of 1 in front.
[[nodiscard]] inline value_id float_rows(expansion& x) {
  const value_id v = x.cast(x.in(0), dtype::float32);
  return x.rank(x.in(0), "X") == 1 ? x.unsqueeze(v, {0}) : v;
}

/// Writes the transform of attribute post_transform of `scores` [rows, columns] to `target`. Errors: unsupported for
/// PROBIT and SOFTMAX_ZERO.
inline void add_post_transform(expansion& x, value_id scores, value_id target) {
  const std::string how = x.attributes().get_string("post_transform", "NONE");
  if (how == "NONE")
    x.add("Identity", {scores}, {}, target);
  else if (how == "SOFTMAX")
    x.add("Softmax", {scores}, with({{"axis", std::int64_t{-1}}}), target);
  else if (how == "LOGISTIC")
    x.add("Sigmoid", {scores}, {}, target);
  else
    x.refuse("post_transform " + how);
}

/// Products of rows with the rows of attribute `coefficients`, plus intercepts: [rows, targets].
[[nodiscard]] inline value_id linear_scores(expansion& x, std::size_t targets) {
  const auto& coefficients = x.attributes().require<std::vector<float>>("coefficients");
  const std::vector<float> intercepts = x.attributes().get_floats("intercepts");
  if (targets == 0 || coefficients.size() % targets != 0 || (!intercepts.empty() && intercepts.size() != targets))
    throw error(errc::bad_attribute, std::to_string(coefficients.size()) + " coefficients and " +
                                         std::to_string(intercepts.size()) + " intercepts for " +
                                         std::to_string(targets) + " targets");
  const auto rows = static_cast<std::int64_t>(targets);
  const auto columns = static_cast<std::int64_t>(coefficients.size() / targets);
  std::vector<value_id> inputs{float_rows(x),
                               x.constant("coefficients", tensor::of<float>({rows, columns}, coefficients))};
  if (!intercepts.empty()) inputs.push_back(x.constant("intercepts", float_list(intercepts)));
  return x.add("Gemm", std::move(inputs), with({{"transB", std::int64_t{1}}}));
}

inline void expand_linear_regressor(expansion& x) {
  const std::int64_t targets = x.attributes().get_int("targets", 1);
  if (targets < 1) throw error(errc::bad_attribute, "targets is " + std::to_string(targets));
  // The only target is transformed by PROBIT alone, as in ONNX Runtime.
  if (targets == 1 && x.attributes().get_string("post_transform", "NONE") != "PROBIT") {
    x.add("Identity", {linear_scores(x, 1)}, {}, x.out(0));
    return;
  }
  add_post_transform(x, linear_scores(x, static_cast<std::size_t>(targets)), x.out(0));
}

/// The labels at the indices `chosen` of int64.
inline void give_labels(expansion& x, value_id chosen) {
  const auto strings = x.attributes().get<std::vector<std::string>>("classlabels_strings", {});
  const std::vector<std::int64_t> integers = x.attributes().get_ints("classlabels_ints");
  if (strings.empty() == integers.empty())
    throw error(errc::bad_attribute, "class labels are strings or integers, one of both");
  tensor labels = tensor::of<std::int64_t>({static_cast<std::int64_t>(integers.size())}, integers);
  if (!strings.empty()) {
    labels = tensor(dtype::string, {static_cast<std::int64_t>(strings.size())});
    labels.mutable_strings() = strings;
  }
  x.give(0, "Gather", {x.constant("labels", std::move(labels)), chosen});
}

/// The class of the largest score, and scores. A single score above 0 stands for the second of two classes.
inline void expand_linear_classifier(expansion& x) {
  const std::size_t labels = x.attributes().get<std::vector<std::string>>("classlabels_strings", {}).size() +
                             x.attributes().get_ints("classlabels_ints").size();
  const std::size_t intercepts = x.attributes().get_floats("intercepts").size();
  const std::size_t targets = intercepts == 0 ? labels : intercepts;
  const value_id scores = linear_scores(x, targets);
  if (targets > 1) {
    if (targets > labels) throw error(errc::bad_attribute, std::to_string(labels) + " labels of more scores");
    const value_id best = x.add("ArgMax", {scores}, with({{"axis", std::int64_t{1}}, {"keepdims", std::int64_t{0}}}));
    give_labels(x, best);
    add_post_transform(x, scores, x.out(1));
    return;
  }
  if (labels != 2) x.refuse("one score for " + std::to_string(labels) + " labels");
  const value_id second = x.add("Greater", {scores, x.number(scores, 0)});
  give_labels(x, x.cast(x.add("Squeeze", {second, x.integers({1})}), dtype::int64));
  // Two scores from one: both through the logistic function where that is asked for, else the complement.
  const std::string how = x.attributes().get_string("post_transform", "NONE");
  if (how == "PROBIT") x.refuse("post_transform PROBIT");
  const bool logistic = how == "LOGISTIC";
  const value_id other = x.add("Sub", {x.number(scores, logistic ? 0 : 1), scores});
  const value_id both = x.add("Concat", {other, scores}, with({{"axis", std::int64_t{1}}}));
  x.add(logistic ? "Sigmoid" : "Identity", {both}, {}, x.out(1));
}

/// (x - offset) * scale in float32.
inline void expand_scaler(expansion& x) {
  const value_id v = x.cast(x.in(0), dtype::float32);
  const std::vector<float> offset = x.attributes().get_floats("offset", {0.0F});
  const std::vector<float> scale = x.attributes().get_floats("scale", {1.0F});
  const value_id moved = x.add("Sub", {v, x.constant("offset", float_list(offset))});
  x.give(0, "Mul", {moved, x.constant("scale", float_list(scale))});
}

inline void expand_binarizer(expansion& x) {
  const double threshold = static_cast<double>(x.attributes().get_float("threshold", 0.0F));
  x.cast(x.add("Greater", {x.in(0), x.number(x.in(0), threshold)}), x.type(x.in(0)), x.out(0));
}

/// Elements equal to replaced_value (NaN too) become imputed_value, one for all columns or one each.
inline void expand_imputer(expansion& x) {
  const value_id v = x.in(0);
  value_id replaced = no_value;
  value_id imputed = no_value;
  if (is_floating(x.type(v))) {
    const std::vector<float> values = x.attributes().get_floats("imputed_value_floats");
    const double old = static_cast<double>(x.attributes().get_float("replaced_value_float", 0.0F));
    imputed = x.cast(x.constant("imputed", float_list(values)), x.type(v));
    replaced = std::isnan(old) ? x.add("IsNaN", {v}) : x.add("Equal", {v, x.number(v, old)});
  } else {
    const std::vector<std::int64_t> values = x.attributes().get_ints("imputed_value_int64s");
    const std::int64_t old = x.attributes().get_int("replaced_value_int64", 0);
    imputed = x.cast(x.integers(values), x.type(v));
    replaced = x.add("Equal", {v, x.cast(x.integer(old), x.type(v))});
  }
  if (x.facts(imputed).constant.size() == 0 && x.extent(imputed, 0, "imputed_value") == index_expr(0))
    throw error(errc::bad_attribute, "Imputer without values to impute");
  x.give(0, "Where", {replaced, imputed, v});
}

/// Each row divided by its largest element, its sum of magnitudes or its length, where that is not 0.
inline void expand_normalizer(expansion& x) {
  const std::string norm = x.attributes().get_string("norm", "MAX");
  if (norm != "MAX" && norm != "L1" && norm != "L2") throw error(errc::bad_attribute, "norm is '" + norm + "'");
  const value_id v = x.cast(x.in(0), dtype::float32);
  const char* reduction = norm == "MAX" ? "ReduceMax" : norm == "L1" ? "ReduceL1" : "ReduceL2";
  const value_id size = x.add(reduction, {v, x.integers({-1})});
  const value_id none = x.add("Equal", {size, x.number(v, 0)});
  x.give(0, "Div", {v, x.add("Where", {none, x.number(v, 1), size})});
}

/// The columns at the indices of input 1; a row of rank 1 gets a dim of 1 in front.
inline void expand_array_feature_extractor(expansion& x) {
  const value_id rows = x.rank(x.in(0), "X") == 1 ? x.unsqueeze(x.in(0), {0}) : x.in(0);
  x.give(0, "Gather", {rows, x.reshape(x.in(1), {-1})}, with({{"axis", std::int64_t{-1}}}));
}

/// The inputs side by side in float32. Errors: unsupported where an input has another width than attribute
/// inputdimensions says, or is known to have.
inline void expand_feature_vectorizer(expansion& x) {
  const std::vector<std::int64_t> widths = x.attributes().get_ints("inputdimensions");
  std::vector<value_id> parts;
  for (std::size_t i = 0; i < x.input_count(); ++i) {
    const value_id v = x.cast(x.in(i), dtype::float32);
    const shape& dims = x.dims(x.in(i), "X");
    if (dims.empty()) x.refuse("an input of rank 0");
    const auto width = dims.back().as_constant();
    if (i < widths.size() && width && *width != widths[i])
      x.refuse("input " + std::to_string(i) + " of " + std::to_string(*width) + " columns where " +
               std::to_string(widths[i]) + " are stated");
    parts.push_back(dims.size() == 1 ? x.unsqueeze(v, {0}) : v);
  }
  x.give(0, "Concat", std::move(parts), with({{"axis", std::int64_t{-1}}}));
}

inline constexpr std::array ml_rows{
    contrib_row{"ai.onnx.ml", "ArrayFeatureExtractor", {2, 2}, expand_array_feature_extractor},
    contrib_row{"ai.onnx.ml", "Binarizer", {1, 1}, expand_binarizer},
    contrib_row{"ai.onnx.ml", "FeatureVectorizer", {1, variadic}, expand_feature_vectorizer},
    contrib_row{"ai.onnx.ml", "Imputer", {1, 1}, expand_imputer},
    contrib_row{"ai.onnx.ml", "LinearClassifier", {1, 1, 2, 2}, expand_linear_classifier},
    contrib_row{"ai.onnx.ml", "LinearRegressor", {1, 1}, expand_linear_regressor},
    contrib_row{"ai.onnx.ml", "Normalizer", {1, 1}, expand_normalizer},
    contrib_row{"ai.onnx.ml", "Scaler", {1, 1}, expand_scaler},
};

}  // namespace dnnopt::onnx::contrib

#endif  // DNNOPT_ONNX_CONTRIB_ML_HPP

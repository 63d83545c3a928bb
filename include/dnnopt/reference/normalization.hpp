// Owns the reference evaluation of softmax and its kin, of normalizations, and of loss functions.
#ifndef DNNOPT_REFERENCE_NORMALIZATION_HPP
#define DNNOPT_REFERENCE_NORMALIZATION_HPP

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <dnnopt/reference/broadcast.hpp>
#include <dnnopt/reference/reduction.hpp>
#include <dnnopt/reference/reference_row.hpp>

namespace dnnopt::reference {

namespace normalization {
using inputs = std::span<const tensor>;
using outputs = std::span<tensor>;

/// Where the groups of elements lie that are normalized together: element k of group g is at bases[g] + offsets[k].
struct grouping {
  std::vector<std::int64_t> bases;
  std::vector<std::int64_t> offsets;
};
[[nodiscard]] inline grouping group_dims(const dim_list& dims, const std::vector<bool>& together) {
  return {reduction::offsets_along(dims, together, false), reduction::offsets_along(dims, together, true)};
}
[[nodiscard]] inline grouping group_axis(const tensor& x, std::int64_t axis) {
  std::vector<bool> together(x.rank(), false);
  together[normalize_axis(axis, x.rank())] = true;
  return group_dims(x.dims(), together);
}

/// Calls `f(data, offsets, group)` for each group; `data` starts at the group's base and may be overwritten. Calls come
/// from several threads.
template <class F>
void for_each_group(std::vector<double>& data, const grouping& groups, const F& f) {
  const auto size = std::max<std::int64_t>(1, static_cast<std::int64_t>(groups.offsets.size()));
  if (groups.offsets.empty()) return;
  parallel_ranges(static_cast<std::int64_t>(groups.bases.size()), std::max<std::int64_t>(1, (1 << 14) / size),
                  [&](std::int64_t begin, std::int64_t end) {
                    for (std::int64_t g = begin; g < end; ++g)
                      f(data.data() + groups.bases[static_cast<std::size_t>(g)],
                        std::span<const std::int64_t>(groups.offsets), static_cast<std::size_t>(g));
                  });
}

/// Softmax of one group in place; with `logarithm`, its logarithm. A group whose greatest element is not finite gives
/// NaN as the formula does.
inline void softmax_group(double* data, std::span<const std::int64_t> offsets, bool logarithm) {
  double greatest = -std::numeric_limits<double>::infinity();
  for (const std::int64_t o : offsets) greatest = std::max(greatest, data[o]);
  double total = 0;
  for (const std::int64_t o : offsets) total += std::exp(data[o] - greatest);
  // The logarithm is small beside a large element, and would be lost in a sum with it.
  const double log_total = std::log(total);
  for (const std::int64_t o : offsets)
    data[o] = logarithm ? data[o] - greatest - log_total : std::exp(data[o] - greatest) / total;
}
/// Softmax of one group in place, each step of ONNX's function body (ReduceMax, Sub, Exp, ReduceSum) rounded to T.
template <class T>
void stepwise_softmax_group(double* data, std::span<const std::int64_t> offsets) {
  const auto rounded = [](double v) { return widen<double>(narrow<T>(v)); };
  double greatest = -std::numeric_limits<double>::infinity();
  for (const std::int64_t o : offsets) greatest = std::max(greatest, data[o]);
  double total = 0;
  for (const std::int64_t o : offsets) {
    data[o] = rounded(std::exp(rounded(data[o] - greatest)));
    total += data[o];
  }
  for (const std::int64_t o : offsets) data[o] /= rounded(total);
}
inline void softmax(const attribute_map& attributes, inputs x, outputs y) {
  std::vector<double> data = load_all<double>(x[0]);
  const dtype type = x[0].type();
  for_each_group(data, group_axis(x[0], attributes.get_int("axis", -1)),
                 [type](double* d, std::span<const std::int64_t> o, std::size_t) {
                   if (type == dtype::float16)
                     stepwise_softmax_group<float16>(d, o);
                   else if (type == dtype::bfloat16)
                     stepwise_softmax_group<bfloat16>(d, o);
                   else
                     softmax_group(d, o, false);
                 });
  y[0] = store_all<double>(x[0].type(), x[0].dims(), data);
}
inline void log_softmax(const attribute_map& attributes, inputs x, outputs y) {
  std::vector<double> data = load_all<double>(x[0]);
  for_each_group(data, group_axis(x[0], attributes.get_int("axis", -1)),
                 [](double* d, std::span<const std::int64_t> o, std::size_t) { softmax_group(d, o, true); });
  y[0] = store_all<double>(x[0].type(), x[0].dims(), data);
}
inline void hardmax(const attribute_map& attributes, inputs x, outputs y) {
  std::vector<double> data = load_all<double>(x[0]);
  for_each_group(data, group_axis(x[0], attributes.get_int("axis", -1)),
                 [](double* d, std::span<const std::int64_t> o, std::size_t) {
                   const auto best = std::max_element(o.begin(), o.end(),
                                                      [d](std::int64_t a, std::int64_t b) { return d[a] < d[b]; });
                   const std::int64_t chosen = *best;
                   for (const std::int64_t at : o) d[at] = at == chosen ? 1.0 : 0.0;
                 });
  y[0] = store_all<double>(x[0].type(), x[0].dims(), data);
}

/// Mean and population variance of a group, in two passes.
struct moments {
  double mean = 0;
  double variance = 0;
};
[[nodiscard]] inline moments moments_of(const double* data, std::span<const std::int64_t> offsets) {
  moments m;
  const double count = static_cast<double>(offsets.size());
  for (const std::int64_t o : offsets) m.mean += data[o];
  m.mean /= count;
  for (const std::int64_t o : offsets) m.variance += (data[o] - m.mean) * (data[o] - m.mean);
  m.variance /= count;
  return m;
}

/// Scales and shifts by parameters that broadcast to the data.
[[nodiscard]] inline tensor scale_and_shift(const tensor& x, const tensor& scale, const tensor* shift) {
  if (shift == nullptr)
    return map_scalars<double>(x.type(), x.dims(), std::array<const tensor*, 2>{&x, &scale},
                               [](double v, double s) { return v * s; });
  return map_scalars<double>(x.type(), x.dims(), std::array<const tensor*, 3>{&x, &scale, shift},
                             [](double v, double s, double b) { return v * s + b; });
}
/// A parameter with one element per channel, shaped to broadcast along axis 1. Errors: shape_mismatch.
[[nodiscard]] inline tensor per_channel(const tensor& parameter, const tensor& x) {
  const std::int64_t channels = x.rank() > 1 ? x.dims()[1] : 1;
  if (parameter.size() != channels)
    throw error(errc::shape_mismatch,
                std::to_string(parameter.size()) + " parameters for " + std::to_string(channels) + " channels");
  dim_list dims(x.rank(), 1);
  if (x.rank() > 1) dims[1] = channels;
  return parameter.reshaped(dims);
}
[[nodiscard]] inline tensor in_double(const tensor& x, const std::vector<double>& data) {
  return store_all<double>(dtype::float64, x.dims(), data);
}
/// The double tensor with the element type of `like`.
[[nodiscard]] inline tensor as_type(const tensor& x, dtype type) {
  return map_scalars<double>(type, x.dims(), std::array{&x}, [](double v) { return v; });
}

inline void batch_normalization(const attribute_map& attributes, inputs x, outputs y) {
  const double epsilon = attributes.get_float("epsilon", 1e-5F);
  std::vector<double> data = load_all<double>(x[0]);
  const std::vector<double> scale = load_all<double>(x[1]);
  const std::vector<double> shift = load_all<double>(x[2]);
  std::vector<double> mean = load_all<double>(x[3]);
  std::vector<double> variance = load_all<double>(x[4]);
  const std::size_t channels = x[0].rank() > 1 ? static_cast<std::size_t>(x[0].dims()[1]) : 1;
  if (scale.size() != channels || shift.size() != channels || mean.size() != channels || variance.size() != channels)
    throw error(errc::shape_mismatch, "BatchNormalization of " + to_string(x[0].dims()) + " with " +
                                          std::to_string(scale.size()) + " channels");
  std::vector<bool> together(x[0].rank(), true);
  if (x[0].rank() > 1) together[1] = false;
  const grouping groups = group_dims(x[0].dims(), together);
  const bool training = attributes.get_int("training_mode", 0) != 0;
  const double momentum = attributes.get_float("momentum", 0.9F);
  for_each_group(data, groups, [&](double* d, std::span<const std::int64_t> offsets, std::size_t c) {
    moments m{mean[c], variance[c]};
    if (training) {
      m = moments_of(d, offsets);
      mean[c] = mean[c] * momentum + m.mean * (1 - momentum);
      variance[c] = variance[c] * momentum + m.variance * (1 - momentum);
    }
    const double factor = scale[c] / std::sqrt(m.variance + epsilon);
    for (const std::int64_t o : offsets) d[o] = (d[o] - m.mean) * factor + shift[c];
  });
  // Nothing has no mean, as in ONNX Runtime.
  if (training && groups.offsets.empty())
    for (std::vector<double>* const running : {&mean, &variance})
      std::fill(running->begin(), running->end(), std::numeric_limits<double>::quiet_NaN());
  y[0] = store_all<double>(x[0].type(), x[0].dims(), data);
  if (y.size() > 1) y[1] = store_all<double>(x[3].type(), x[3].dims(), mean);
  if (y.size() > 2) y[2] = store_all<double>(x[4].type(), x[4].dims(), variance);
}

/// Zero mean and unit variance within each group.
inline void standardize(std::vector<double>& data, const grouping& groups, double epsilon) {
  for_each_group(data, groups, [epsilon](double* d, std::span<const std::int64_t> offsets, std::size_t) {
    const moments m = moments_of(d, offsets);
    const double factor = 1.0 / std::sqrt(m.variance + epsilon);
    for (const std::int64_t o : offsets) d[o] = (d[o] - m.mean) * factor;
  });
}

inline void instance_normalization(const attribute_map& attributes, inputs x, outputs y) {
  std::vector<bool> together(x[0].rank(), true);
  std::fill(together.begin(), together.begin() + static_cast<std::ptrdiff_t>(std::min<std::size_t>(2, together.size())),
            false);
  std::vector<double> data = load_all<double>(x[0]);
  standardize(data, group_dims(x[0].dims(), together), attributes.get_float("epsilon", 1e-5F));
  const tensor shift = per_channel(x[2], x[0]);
  y[0] = as_type(scale_and_shift(in_double(x[0], data), per_channel(x[1], x[0]), &shift), x[0].type());
}

inline void group_normalization(const attribute_map& attributes, inputs x, outputs y) {
  const std::int64_t group = attributes.require<std::int64_t>("num_groups");
  if (x[0].rank() < 2 || group < 1 || x[0].dims()[1] % group != 0)
    throw error(errc::shape_mismatch,
                "GroupNormalization of " + to_string(x[0].dims()) + " in " + std::to_string(group) + " groups");
  std::vector<double> data = load_all<double>(x[0]);
  const dim_list grouped{x[0].dims()[0], group, x[0].size() / std::max<std::int64_t>(1, x[0].dims()[0] * group)};
  standardize(data, group_dims(grouped, {false, false, true}), attributes.get_float("epsilon", 1e-5F));
  const tensor shift = per_channel(x[2], x[0]);
  y[0] = as_type(scale_and_shift(in_double(x[0], data), per_channel(x[1], x[0]), &shift), x[0].type());
}

/// The dims from attribute `axis` on are normalized together.
[[nodiscard]] inline std::vector<bool> from_axis(const attribute_map& attributes, const tensor& x) {
  std::vector<bool> together(x.rank(), false);
  const std::size_t axis = normalize_axis(attributes.get_int("axis", -1), x.rank());
  std::fill(together.begin() + static_cast<std::ptrdiff_t>(axis), together.end(), true);
  return together;
}

inline void layer_normalization(const attribute_map& attributes, inputs x, outputs y) {
  const double epsilon = attributes.get_float("epsilon", 1e-5F);
  const std::vector<bool> together = from_axis(attributes, x[0]);
  const grouping groups = group_dims(x[0].dims(), together);
  std::vector<double> data = load_all<double>(x[0]);
  std::vector<double> means(groups.bases.size());
  std::vector<double> factors(groups.bases.size());
  for_each_group(data, groups, [&](double* d, std::span<const std::int64_t> offsets, std::size_t g) {
    const moments m = moments_of(d, offsets);
    means[g] = m.mean;
    factors[g] = 1.0 / std::sqrt(m.variance + epsilon);
    for (const std::int64_t o : offsets) d[o] = (d[o] - m.mean) * factors[g];
  });
  y[0] = as_type(scale_and_shift(in_double(x[0], data), x[1], has_input(x, 2) ? &x[2] : nullptr), x[0].type());
  const auto stash = static_cast<dtype>(attributes.get_int("stash_type", 1));
  const dim_list dims = reduction::kept_dims(x[0].dims(), together, true);
  if (y.size() > 1) y[1] = store_all<double>(stash, dims, means);
  if (y.size() > 2) y[2] = store_all<double>(stash, dims, factors);
}

inline void rms_normalization(const attribute_map& attributes, inputs x, outputs y) {
  const double epsilon = attributes.get_float("epsilon", 1e-5F);
  std::vector<double> data = load_all<double>(x[0]);
  for_each_group(data, group_dims(x[0].dims(), from_axis(attributes, x[0])),
                 [epsilon](double* d, std::span<const std::int64_t> offsets, std::size_t) {
                   double total = 0;
                   for (const std::int64_t o : offsets) total += d[o] * d[o];
                   const double factor = 1.0 / std::sqrt(total / static_cast<double>(offsets.size()) + epsilon);
                   for (const std::int64_t o : offsets) d[o] *= factor;
                 });
  y[0] = as_type(scale_and_shift(in_double(x[0], data), x[1], nullptr), x[0].type());
}

inline void lrn(const attribute_map& attributes, inputs x, outputs y) {
  const std::int64_t size = attributes.require<std::int64_t>("size");
  const double alpha = attributes.get_float("alpha", 1e-4F);
  const double beta = attributes.get_float("beta", 0.75F);
  const double bias = attributes.get_float("bias", 1.0F);
  if (x[0].rank() < 2 || size < 1)
    throw error(errc::shape_mismatch,
                "LRN of " + to_string(x[0].dims()) + " over " + std::to_string(size) + " channels");
  std::vector<double> data = load_all<double>(x[0]);
  const std::int64_t before = (size - 1) / 2;
  const std::int64_t after = size / 2;
  for_each_group(data, group_axis(x[0], 1), [&](double* d, std::span<const std::int64_t> offsets, std::size_t) {
    const auto channels = static_cast<std::int64_t>(offsets.size());
    std::vector<double> values(offsets.size());
    for (std::size_t c = 0; c < values.size(); ++c) values[c] = d[offsets[c]];
    for (std::int64_t c = 0; c < channels; ++c) {
      double total = 0;
      for (std::int64_t i = std::max<std::int64_t>(0, c - before); i <= std::min(channels - 1, c + after); ++i)
        total += values[static_cast<std::size_t>(i)] * values[static_cast<std::size_t>(i)];
      d[offsets[static_cast<std::size_t>(c)]] /= std::pow(bias + alpha / static_cast<double>(size) * total, beta);
    }
  });
  y[0] = store_all<double>(x[0].type(), x[0].dims(), data);
}

inline void lp_normalization(const attribute_map& attributes, inputs x, outputs y) {
  const bool absolute = attributes.get_int("p", 2) == 1;
  std::vector<double> data = load_all<double>(x[0]);
  for_each_group(data, group_axis(x[0], attributes.get_int("axis", -1)),
                 [absolute](double* d, std::span<const std::int64_t> offsets, std::size_t) {
                   double total = 0;
                   for (const std::int64_t o : offsets) total += absolute ? std::fabs(d[o]) : d[o] * d[o];
                   const double norm = absolute ? total : std::sqrt(total);
                   for (const std::int64_t o : offsets) d[o] = norm == 0 ? 0.0 : d[o] / norm;
                 });
  y[0] = store_all<double>(x[0].type(), x[0].dims(), data);
}

inline void mean_variance_normalization(const attribute_map& attributes, inputs x, outputs y) {
  std::vector<double> data = load_all<double>(x[0]);
  const std::vector<bool> together = ops::reduced_dims(attributes.get_ints("axes", {0, 2, 3}), x[0].rank(), false);
  for_each_group(data, group_dims(x[0].dims(), together),
                 [](double* d, std::span<const std::int64_t> offsets, std::size_t) {
                   const moments m = moments_of(d, offsets);
                   // ONNX's function body adds this to the deviation.
                   const double deviation = std::sqrt(m.variance) + 1e-9;
                   for (const std::int64_t o : offsets) d[o] = (d[o] - m.mean) / deviation;
                 });
  y[0] = store_all<double>(x[0].type(), x[0].dims(), data);
}

/// The losses of log-probabilities [batch, class, ...] against labels, reduced as attribute `reduction` says.
[[nodiscard]] inline tensor losses(const attribute_map& attributes, inputs x,
                                   const std::vector<double>& log_probabilities) {
  const std::string how = attributes.get_string("reduction", "mean");
  if (how != "none" && how != "sum" && how != "mean")
    throw error(errc::bad_attribute, "attribute 'reduction' is '" + how + "'");
  const std::vector<std::int64_t> labels = integers_of(x[1]);
  const std::int64_t batch = x[0].dims().at(0);
  const std::int64_t classes = x[0].dims().at(1);
  const std::int64_t inner = x[0].size() / std::max<std::int64_t>(1, batch * classes);
  if (static_cast<std::int64_t>(labels.size()) != batch * inner)
    throw error(errc::shape_mismatch, "labels " + to_string(x[1].dims()) + " for scores " + to_string(x[0].dims()));
  const std::vector<double> weights =
      has_input(x, 2) ? load_all<double>(x[2]) : std::vector<double>(static_cast<std::size_t>(classes), 1.0);
  const bool ignores = attributes.contains("ignore_index");
  const std::int64_t ignored = attributes.get_int("ignore_index", 0);
  std::vector<double> result(labels.size(), 0.0);
  double total = 0;
  double weight_total = 0;
  for (std::size_t i = 0; i < labels.size(); ++i) {
    const std::int64_t label = labels[i];
    if (ignores && label == ignored) continue;
    if (label < 0 || label >= classes)
      throw error(errc::invalid_argument,
                  "label " + std::to_string(label) + " of " + std::to_string(classes) + " classes");
    const std::int64_t entry = static_cast<std::int64_t>(i) / inner;
    const std::int64_t at = (entry * classes + label) * inner + static_cast<std::int64_t>(i) % inner;
    const double weight = weights.at(static_cast<std::size_t>(label));
    result[i] = -log_probabilities[static_cast<std::size_t>(at)] * weight;
    total += result[i];
    weight_total += weight;
  }
  if (how == "none") return store_all<double>(x[0].type(), x[1].dims(), result);
  return store_all<double>(x[0].type(), {}, std::vector<double>{how == "sum" ? total : total / weight_total});
}
inline void negative_log_likelihood_loss(const attribute_map& attributes, inputs x, outputs y) {
  y[0] = losses(attributes, x, load_all<double>(x[0]));
}
inline void softmax_cross_entropy_loss(const attribute_map& attributes, inputs x, outputs y) {
  std::vector<double> data = load_all<double>(x[0]);
  for_each_group(data, group_axis(x[0], 1),
                 [](double* d, std::span<const std::int64_t> o, std::size_t) { softmax_group(d, o, true); });
  y[0] = losses(attributes, x, data);
  if (y.size() > 1) y[1] = store_all<double>(x[0].type(), x[0].dims(), data);
}
}  // namespace normalization

/// Evaluations of softmax and its kin, normalizations and losses.
inline constexpr std::array normalization_rows{
    reference_row{"", "BatchNormalization", normalization::batch_normalization},
    reference_row{"", "GroupNormalization", normalization::group_normalization},
    reference_row{"", "Hardmax", normalization::hardmax},
    reference_row{"", "InstanceNormalization", normalization::instance_normalization},
    reference_row{"", "LRN", normalization::lrn},
    reference_row{"", "LayerNormalization", normalization::layer_normalization},
    reference_row{"", "LogSoftmax", normalization::log_softmax},
    reference_row{"", "LpNormalization", normalization::lp_normalization},
    reference_row{"", "MeanVarianceNormalization", normalization::mean_variance_normalization},
    reference_row{"", "NegativeLogLikelihoodLoss", normalization::negative_log_likelihood_loss},
    reference_row{"", "RMSNormalization", normalization::rms_normalization},
    reference_row{"", "Softmax", normalization::softmax},
    reference_row{"", "SoftmaxCrossEntropyLoss", normalization::softmax_cross_entropy_loss},
};

}  // namespace dnnopt::reference

#endif  // DNNOPT_REFERENCE_NORMALIZATION_HPP

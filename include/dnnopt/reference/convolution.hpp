// Owns the reference evaluation of convolutions and Col2Im: windows gathered into matrices, products on Eigen in
// double.
#ifndef DNNOPT_REFERENCE_CONVOLUTION_HPP
#define DNNOPT_REFERENCE_CONVOLUTION_HPP

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <dnnopt/reference/broadcast.hpp>
#include <dnnopt/reference/conversion.hpp>
#include <dnnopt/reference/dense_product.hpp>
#include <dnnopt/reference/reference_row.hpp>
#include <dnnopt/reference/window_offsets.hpp>

namespace dnnopt::reference {

namespace convolution {
using inputs = std::span<const tensor>;
using outputs = std::span<tensor>;

/// Channels per group and groups of a convolution.
struct channel_split {
  std::int64_t group, in, out;  ///< groups; input and output channels of one group
};

/// Errors: shape_mismatch where ranks or channels do not fit.
[[nodiscard]] inline channel_split split_channels(const attribute_map& attributes, const tensor& x, const tensor& w,
                                                  bool transposed) {
  const std::int64_t group = attributes.get_int("group", 1);
  const bool fits = x.rank() >= 3 && w.rank() == x.rank() && group > 0 &&
                    (transposed ? w.dims()[0] == x.dims()[1] && x.dims()[1] % group == 0
                                : x.dims()[1] == w.dims()[1] * group && w.dims()[0] % group == 0);
  if (!fits)
    throw error(errc::shape_mismatch, "a convolution of " + to_string(x.dims()) + " with weights " +
                                          to_string(w.dims()) + " in " + std::to_string(group) + " groups");
  return transposed ? channel_split{group, w.dims()[0] / group, w.dims()[1]}
                    : channel_split{group, w.dims()[1], w.dims()[0] / group};
}

/// The weights' spatial dims, which a given kernel_shape must equal.
[[nodiscard]] inline std::vector<std::int64_t> kernel_dims(const attribute_map& attributes, const tensor& w) {
  const std::vector<std::int64_t> own(w.dims().begin() + 2, w.dims().end());
  const auto stated = kernel_of(attributes, own);
  if (stated != own)
    throw error(errc::shape_mismatch, "kernel_shape differs from the weights' dims " + to_string(w.dims()));
  return own;
}

/// The convolution of [batch, channel, ...] with weights [out, in / group, ...], each output element through
/// `finish(channel, sum)`. Complexity: one product per output element and weight of its channel; per thread, memory for
/// one block of windows.
template <class Finish>
[[nodiscard]] tensor convolve(const attribute_map& attributes, const tensor& x, const tensor& w, dtype type,
                              const Finish& finish) {
  const channel_split split = split_channels(attributes, x, w, false);
  const auto axes = fixed(windows(attributes, spatial_dims(x.dims()), kernel_dims(attributes, w)));
  const window_sizes sizes = sizes_of(axes);
  const std::int64_t batch = x.dims()[0];
  const std::int64_t channels = x.dims()[1];
  const std::int64_t out_channels = w.dims()[0];
  const std::int64_t depth = split.in * sizes.elements;
  dim_list dims{batch, out_channels};
  for (const fixed_axis& a : axes) dims.push_back(a.output);
  tensor result(type, dims);
  if (result.size() == 0) return result;
  std::byte* const out = result.mutable_bytes().data();
  const store_function<double> store = storer<double>(type);
  const std::vector<double> data = load_all<double>(x);
  const std::vector<double> weights = load_all<double>(w);
  const std::int64_t block = std::clamp<std::int64_t>((sizes.outputs + 1) / 2, 1, 256);
  const std::int64_t blocks = (sizes.outputs + block - 1) / block;
  const std::int64_t work = std::max<std::int64_t>(1, out_channels * depth * block);
  parallel_ranges(
      batch * blocks, std::max<std::int64_t>(1, (1 << 18) / work), [&](std::int64_t begin, std::int64_t end) {
        std::vector<double> columns;
        std::vector<double> product;
        for (std::int64_t task = begin; task < end; ++task) {
          const std::int64_t entry = task / blocks;
          const std::int64_t first = task % blocks * block;
          const std::int64_t count = std::min(block, sizes.outputs - first);
          const std::vector<std::int64_t> offsets = window_offsets(axes, first, count);
          columns.resize(static_cast<std::size_t>(depth * count));
          product.resize(static_cast<std::size_t>(split.out * count));
          for (std::int64_t g = 0; g < split.group; ++g) {
            for (std::int64_t c = 0; c < split.in; ++c) {
              const double* const channel = data.data() + (entry * channels + g * split.in + c) * sizes.inputs;
              double* const rows = columns.data() + c * sizes.elements * count;
              for (std::size_t i = 0; i < offsets.size(); ++i) rows[i] = offsets[i] < 0 ? 0.0 : channel[offsets[i]];
            }
            dense_product(weights.data() + g * split.out * depth, columns.data(), product.data(), split.out, depth,
                          count);
            for (std::int64_t o = 0; o < split.out; ++o) {
              const std::int64_t out_channel = g * split.out + o;
              double* const line = product.data() + o * count;
              for (std::int64_t i = 0; i < count; ++i) line[i] = finish(out_channel, line[i]);
              store(out, (entry * out_channels + out_channel) * sizes.outputs + first, static_cast<std::size_t>(count),
                    line);
            }
          }
        }
      });
  return result;
}

/// Biases per output channel, zeros where the input is absent. Errors: shape_mismatch.
[[nodiscard]] inline std::vector<double> bias_of(inputs x, std::size_t input, std::int64_t channels) {
  std::vector<double> bias(static_cast<std::size_t>(channels), 0.0);
  if (!has_input(x, input)) return bias;
  if (x[input].size() != channels)
    throw error(errc::shape_mismatch,
                std::to_string(x[input].size()) + " biases for " + std::to_string(channels) + " channels");
  return load_all<double>(x[input]);
}

inline void conv(const attribute_map& attributes, inputs x, outputs y) {
  const std::vector<double> bias = bias_of(x, 2, x[1].rank() > 0 ? x[1].dims()[0] : 0);
  y[0] = convolve(attributes, x[0], x[1], x[0].type(),
                  [&](std::int64_t c, double v) { return v + bias[static_cast<std::size_t>(c)]; });
}

/// Errors: shape_mismatch where input `input` has neither one element nor one per output channel of weights `w`.
inline void require_per_output_channel(const tensor& w, inputs x, std::size_t input) {
  if (w.rank() == 0) throw error(errc::shape_mismatch, "weights of a convolution have rank 0");
  if (has_input(x, input) && x[input].size() != 1 && x[input].size() != w.dims()[0])
    throw error(errc::shape_mismatch,
                "a parameter " + to_string(x[input].dims()) + " of weights " + to_string(w.dims()));
}

/// Weights less a zero point that is a scalar or one per output channel.
[[nodiscard]] inline tensor weights_less_zero(const tensor& w, inputs x, std::size_t input) {
  require_per_output_channel(w, x, input);
  tensor zero = tensor::scalar<float>(0.0F);
  if (has_input(x, input)) {
    dim_list dims(w.rank(), 1);
    if (x[input].size() != 1) dims[0] = x[input].size();
    zero = x[input].reshaped(dims);
  }
  return map_scalars<double>(dtype::float64, w.dims(), std::array<const tensor*, 2>{&w, &zero},
                             [](double v, double z) { return v - z; });
}
[[nodiscard]] inline tensor data_less_zero(const tensor& data, inputs x, std::size_t input) {
  const double zero = scalar_or(x, input, 0.0);
  return map_scalars<double>(dtype::float64, data.dims(), std::array{&data}, [zero](double v) { return v - zero; });
}
inline void conv_integer(const attribute_map& attributes, inputs x, outputs y) {
  y[0] = convolve(attributes, data_less_zero(x[0], x, 2), weights_less_zero(x[1], x, 3), dtype::int32,
                  [](std::int64_t, double v) { return v; });
}
inline void qlinear_conv(const attribute_map& attributes, inputs x, outputs y) {
  require_per_output_channel(x[3], x, 4);
  const std::vector<double> bias = bias_of(x, 8, x[3].dims()[0]);
  const double zero = scalar_or(x, 7, 0.0);
  const auto [low, high] = conversion::limits_of(x[7].type());
  // In the order and precision of engines: they decide what a sum becomes that lies between two codes.
  std::vector<float> scales = load_all<float>(x[4]);
  for (float& scale : scales)
    scale = static_cast<float>(scalar_or(x, 1, 1.0)) * scale / static_cast<float>(scalar_or(x, 6, 1.0));
  y[0] = convolve(attributes, data_less_zero(x[0], x, 2), weights_less_zero(x[3], x, 5), x[7].type(),
                  [&, low = low, high = high](std::int64_t c, double v) {
                    const float scale = scales[scales.size() == 1 ? 0 : static_cast<std::size_t>(c)];
                    const float scaled = static_cast<float>(v + bias[static_cast<std::size_t>(c)]) * scale;
                    return std::clamp(static_cast<double>(std::nearbyint(scaled)) + zero, low, high);
                  });
}

inline void conv_transpose(const attribute_map& attributes, inputs x, outputs y) {
  const channel_split split = split_channels(attributes, x[0], x[1], true);
  const auto axes = fixed(transposed_windows(attributes, spatial_dims(x[0].dims()), kernel_dims(attributes, x[1])));
  // Seen from the output, the input's positions are windows: the offsets say where each contribution goes.
  std::vector<fixed_axis> inverse = axes;
  for (fixed_axis& a : inverse) {
    std::swap(a.input, a.output);
    a.pad_end = std::max<std::int64_t>(0, (a.output - 1) * a.stride + (a.kernel - 1) * a.dilation + 1);
  }
  const window_sizes sizes = sizes_of(inverse);
  const std::vector<std::int64_t> offsets = window_offsets(inverse, 0, sizes.outputs);
  const std::int64_t batch = x[0].dims()[0];
  const std::int64_t out_channels = split.out * split.group;
  const std::vector<double> data = load_all<double>(x[0]);
  const std::vector<double> weights = load_all<double>(x[1]);
  const std::vector<double> bias = bias_of(x, 2, out_channels);
  dim_list dims{batch, out_channels};
  for (const fixed_axis& a : axes) dims.push_back(a.output);
  std::vector<double> result(static_cast<std::size_t>(element_count(dims)));
  parallel_ranges(batch * split.group, 1, [&](std::int64_t begin, std::int64_t end) {
    const std::int64_t depth = split.out * sizes.elements;
    std::vector<double> columns(static_cast<std::size_t>(depth * sizes.outputs));
    for (std::int64_t task = begin; task < end; ++task) {
      const std::int64_t entry = task / split.group;
      const std::int64_t g = task % split.group;
      const std::vector<double> filter = transposed(weights.data() + g * split.in * depth, split.in, depth);
      dense_product(filter.data(), data.data() + task * split.in * sizes.outputs, columns.data(), depth, split.in,
                    sizes.outputs);
      for (std::int64_t o = 0; o < split.out; ++o) {
        double* const to = result.data() + (entry * out_channels + g * split.out + o) * sizes.inputs;
        std::fill(to, to + sizes.inputs, bias[static_cast<std::size_t>(g * split.out + o)]);
        const double* const from = columns.data() + o * sizes.elements * sizes.outputs;
        for (std::size_t i = 0; i < offsets.size(); ++i)
          if (offsets[i] >= 0) to[offsets[i]] += from[i];
      }
    }
  });
  y[0] = store_all<double>(x[0].type(), std::move(dims), result);
}

/// The element at a fractional position of a 2-D channel, zero outside.
[[nodiscard]] inline double bilinear(const double* channel, std::int64_t height, std::int64_t width, double row,
                                     double column) {
  if (row <= -1.0 || row >= static_cast<double>(height) || column <= -1.0 || column >= static_cast<double>(width))
    return 0.0;
  const auto top = integer_below(row);
  const auto left = integer_below(column);
  const double down = row - static_cast<double>(top);
  const double right = column - static_cast<double>(left);
  const auto at = [&](std::int64_t r, std::int64_t c) {
    return r < 0 || r >= height || c < 0 || c >= width ? 0.0 : channel[r * width + c];
  };
  return (1 - down) * ((1 - right) * at(top, left) + right * at(top, left + 1)) +
         down * ((1 - right) * at(top + 1, left) + right * at(top + 1, left + 1));
}

inline void deform_conv(const attribute_map& attributes, inputs x, outputs y) {
  const channel_split split = split_channels(attributes, x[0], x[1], false);
  if (x[0].rank() != 4)
    throw error(errc::unsupported, "DeformConv of " + to_string(x[0].dims()) + ": two spatial dims are computed");
  const auto axes = fixed(windows(attributes, spatial_dims(x[0].dims()), kernel_dims(attributes, x[1])));
  const window_sizes sizes = sizes_of(axes);
  const std::int64_t offset_groups = attributes.get_int("offset_group", 1);
  const std::int64_t batch = x[0].dims()[0];
  const std::int64_t channels = x[0].dims()[1];
  const std::int64_t out_channels = x[1].dims()[0];
  const std::int64_t height = axes[0].input;
  const std::int64_t width = axes[1].input;
  if (offset_groups < 1 || channels % offset_groups != 0 ||
      x[2].size() != batch * offset_groups * sizes.elements * 2 * sizes.outputs)
    throw error(errc::shape_mismatch,
                "DeformConv of " + to_string(x[0].dims()) + " with offsets " + to_string(x[2].dims()));
  const std::vector<double> data = load_all<double>(x[0]);
  const std::vector<double> weights = load_all<double>(x[1]);
  const std::vector<double> offsets = load_all<double>(x[2]);
  const std::vector<double> bias = bias_of(x, 3, out_channels);
  const std::vector<double> mask = has_input(x, 4) ? load_all<double>(x[4]) : std::vector<double>{};
  std::vector<double> result(static_cast<std::size_t>(batch * out_channels * sizes.outputs));
  std::vector<double> columns(static_cast<std::size_t>(channels * sizes.elements));
  for (std::int64_t n = 0; n < batch; ++n)
    for (std::int64_t o = 0; o < sizes.outputs; ++o) {
      const std::int64_t out_row = o / axes[1].output;
      const std::int64_t out_column = o % axes[1].output;
      for (std::int64_t c = 0; c < channels; ++c)
        for (std::int64_t k = 0; k < sizes.elements; ++k) {
          const std::int64_t slot = (n * offset_groups + c / (channels / offset_groups)) * sizes.elements + k;
          const auto at = static_cast<std::size_t>(slot * 2 * sizes.outputs + o);
          const double row = static_cast<double>(out_row * axes[0].stride - axes[0].pad_begin +
                                                 k / axes[1].kernel * axes[0].dilation) +
                             offsets[at];
          const double column = static_cast<double>(out_column * axes[1].stride - axes[1].pad_begin +
                                                    k % axes[1].kernel * axes[1].dilation) +
                                offsets[at + static_cast<std::size_t>(sizes.outputs)];
          const double scale = mask.empty() ? 1.0 : mask.at(static_cast<std::size_t>(slot * sizes.outputs + o));
          columns[static_cast<std::size_t>(c * sizes.elements + k)] =
              scale * bilinear(data.data() + (n * channels + c) * height * width, height, width, row, column);
        }
      const std::int64_t depth = split.in * sizes.elements;
      for (std::int64_t m = 0; m < out_channels; ++m) {
        double total = bias[static_cast<std::size_t>(m)];
        const double* const filter = weights.data() + m * depth;
        const double* const from = columns.data() + m / split.out * depth;
        for (std::int64_t k = 0; k < depth; ++k) total += filter[k] * from[k];
        result[static_cast<std::size_t>((n * out_channels + m) * sizes.outputs + o)] = total;
      }
    }
  y[0] = store_all<double>(x[0].type(), {batch, out_channels, axes[0].output, axes[1].output}, result);
}

inline void causal_conv_with_state(const attribute_map& attributes, inputs x, outputs y) {
  if (x[0].rank() != 3 || x[1].rank() != 3 || x[1].dims()[0] != x[0].dims()[1] || x[1].dims()[1] != 1)
    throw error(errc::shape_mismatch,
                "CausalConvWithState of " + to_string(x[0].dims()) + " with weights " + to_string(x[1].dims()));
  const std::string activation = attributes.get_string("activation", "none");
  if (activation != "none" && activation != "silu" && activation != "swish")
    throw error(errc::bad_attribute, "attribute 'activation' is '" + activation + "'");
  const std::int64_t rows = x[0].dims()[0] * x[0].dims()[1];
  const std::int64_t channels = x[0].dims()[1];
  const std::int64_t length = x[0].dims()[2];
  const std::int64_t kernel = x[1].dims()[2];
  const std::int64_t carried = kernel - 1;
  const std::vector<double> data = load_all<double>(x[0]);
  const std::vector<double> weights = load_all<double>(x[1]);
  const std::vector<double> bias = bias_of(x, 2, channels);
  std::vector<double> past(static_cast<std::size_t>(rows * carried), 0.0);
  if (has_input(x, 3)) {
    if (x[3].size() != rows * carried) throw error(errc::shape_mismatch, "a past state of " + to_string(x[3].dims()));
    past = load_all<double>(x[3]);
  }
  std::vector<double> result(data.size());
  std::vector<double> present(past.size());
  std::vector<double> line(static_cast<std::size_t>(carried + length));
  for (std::int64_t r = 0; r < rows; ++r) {
    std::copy_n(past.begin() + r * carried, carried, line.begin());
    std::copy_n(data.begin() + r * length, length, line.begin() + carried);
    for (std::int64_t i = 0; i < length; ++i) {
      double total = bias[static_cast<std::size_t>(r % channels)];
      for (std::int64_t k = 0; k < kernel; ++k)
        total += line[static_cast<std::size_t>(i + k)] * weights[static_cast<std::size_t>(r % channels * kernel + k)];
      result[static_cast<std::size_t>(r * length + i)] =
          activation == "none" ? total : total / (1.0 + std::exp(-total));
    }
    std::copy_n(line.end() - carried, carried, present.begin() + r * carried);
  }
  y[0] = store_all<double>(x[0].type(), x[0].dims(), result);
  if (y.size() > 1) y[1] = store_all<double>(x[0].type(), {x[0].dims()[0], channels, carried}, present);
}

inline void col2im(const attribute_map& attributes, inputs x, outputs y) {
  const std::vector<std::int64_t> image = integers_of(x[1]);
  const std::vector<std::int64_t> block = integers_of(x[2]);
  const std::vector<index_expr> spatial(image.begin(), image.end());
  const auto axes = fixed(windows(attributes, spatial, block));
  const window_sizes sizes = sizes_of(axes);
  if (x[0].rank() != 3 || sizes.elements == 0 || x[0].dims()[1] % sizes.elements != 0 ||
      x[0].dims()[2] != sizes.outputs)
    throw error(errc::shape_mismatch,
                "Col2Im of " + to_string(x[0].dims()) + " into " + to_string(image) + " by blocks " + to_string(block));
  const std::vector<double> data = load_all<double>(x[0]);
  const std::vector<std::int64_t> offsets = window_offsets(axes, 0, sizes.outputs);
  const std::int64_t channels = x[0].dims()[1] / sizes.elements;
  std::vector<double> result(static_cast<std::size_t>(x[0].dims()[0] * channels * sizes.inputs), 0.0);
  for (std::int64_t c = 0; c < x[0].dims()[0] * channels; ++c)
    for (std::size_t i = 0; i < offsets.size(); ++i)
      if (offsets[i] >= 0)
        result[static_cast<std::size_t>(c * sizes.inputs + offsets[i])] +=
            data[static_cast<std::size_t>(c) * offsets.size() + i];
  dim_list dims{x[0].dims()[0], channels};
  dims.insert(dims.end(), image.begin(), image.end());
  y[0] = store_all<double>(x[0].type(), std::move(dims), result);
}
}  // namespace convolution

/// Evaluations of convolutions and Col2Im.
inline constexpr std::array convolution_rows{
    reference_row{"", "CausalConvWithState", convolution::causal_conv_with_state},
    reference_row{"", "Col2Im", convolution::col2im},
    reference_row{"", "Conv", convolution::conv},
    reference_row{"", "ConvInteger", convolution::conv_integer},
    reference_row{"", "ConvTranspose", convolution::conv_transpose},
    reference_row{"", "DeformConv", convolution::deform_conv},
    reference_row{"", "QLinearConv", convolution::qlinear_conv},
};

}  // namespace dnnopt::reference

#endif  // DNNOPT_REFERENCE_CONVOLUTION_HPP

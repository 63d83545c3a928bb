// Owns the reference evaluation of pools: sliding, global, inverted and over regions.
#ifndef DNNOPT_REFERENCE_POOLING_HPP
#define DNNOPT_REFERENCE_POOLING_HPP

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include <dnnopt/ops/facts.hpp>
#include <dnnopt/reference/elements.hpp>
#include <dnnopt/reference/parallel.hpp>
#include <dnnopt/reference/reference_row.hpp>
#include <dnnopt/reference/window_offsets.hpp>

namespace dnnopt::reference {

namespace pooling {
using inputs = std::span<const tensor>;
using outputs = std::span<tensor>;

/// The windows of a sliding pool over [batch, channel, ...].
[[nodiscard]] inline std::vector<fixed_axis> pool_axes(const attribute_map& attributes, const tensor& x) {
  if (x.rank() < 3) throw error(errc::shape_mismatch, "a pool slides over " + to_string(x.dims()));
  return fixed(windows(attributes, spatial_dims(x.dims()),
                       attributes.require<std::vector<std::int64_t>>("kernel_shape"),
                       attributes.get_int("ceil_mode", 0) != 0));
}

/// [batch, channel] of `x` followed by the windows' output extents.
[[nodiscard]] inline dim_list pooled_dims(const tensor& x, const std::vector<fixed_axis>& axes) {
  dim_list dims{x.dims()[0], x.dims()[1]};
  for (const fixed_axis& a : axes) dims.push_back(a.output);
  return dims;
}

/// Calls `f(channel_data, channel, window, offsets, stride)` for each window of each channel; element k of the window
/// has offset offsets[k * stride]. Calls come from several threads.
template <class F>
void for_each_window(const std::vector<double>& data, std::int64_t channels, const std::vector<fixed_axis>& axes,
                     const F& f) {
  const window_sizes sizes = sizes_of(axes);
  const std::vector<std::int64_t> offsets = window_offsets(axes, 0, sizes.outputs);
  const std::int64_t work = std::max<std::int64_t>(1, sizes.outputs * sizes.elements);
  parallel_ranges(channels, std::max<std::int64_t>(1, (1 << 16) / work), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t c = begin; c < end; ++c)
      for (std::int64_t w = 0; w < sizes.outputs; ++w)
        f(data.data() + c * sizes.inputs, c, w, offsets.data() + w, sizes.outputs);
  });
}

/// A pool of means that are summed in `Sum`.
template <class Sum>
void average_windows(const attribute_map& attributes, inputs x, outputs y) {
  const auto axes = pool_axes(attributes, x[0]);
  const window_sizes sizes = sizes_of(axes);
  const bool count_padding = attributes.get_int("count_include_pad", 0) != 0;
  const std::vector<double> data = load_all<double>(x[0]);
  const std::int64_t channels = x[0].dims()[0] * x[0].dims()[1];
  std::vector<double> result(static_cast<std::size_t>(channels * sizes.outputs));
  for_each_window(
      data, channels, axes,
      [&](const double* channel, std::int64_t c, std::int64_t w, const std::int64_t* offsets, std::int64_t stride) {
        Sum total = 0;
        std::int64_t count = 0;
        for (std::int64_t k = 0; k < sizes.elements; ++k) {
          const std::int64_t at = offsets[k * stride];
          if (at >= 0) total += static_cast<Sum>(channel[at]);
          if (at >= 0 || (count_padding && at == in_padding)) ++count;
        }
        result[static_cast<std::size_t>(c * sizes.outputs + w)] = total / static_cast<Sum>(count);
      });
  y[0] = store_all<double>(x[0].type(), pooled_dims(x[0], axes), result);
}

/// Sums of floats are floats, element after element: a mean of few codes often lies between two others, and then the
/// precision of engines decides which of them it becomes.
inline void average_pool(const attribute_map& attributes, inputs x, outputs y) {
  if (x[0].type() == dtype::float64)
    average_windows<double>(attributes, x, y);
  else
    average_windows<float>(attributes, x, y);
}

/// The p-norm of magnitudes: a running sum of powers and its root.
struct p_norm {
  double p;
  [[nodiscard]] double power(double v) const {
    return p == 1 ? std::fabs(v) : p == 2 ? v * v : std::pow(std::fabs(v), p);
  }
  [[nodiscard]] double root(double total) const {
    return p == 1 ? total : p == 2 ? std::sqrt(total) : std::pow(total, 1.0 / p);
  }
};

inline void lp_pool(const attribute_map& attributes, inputs x, outputs y) {
  const auto axes = pool_axes(attributes, x[0]);
  const window_sizes sizes = sizes_of(axes);
  const p_norm norm{static_cast<double>(attributes.get_int("p", 2))};
  const std::vector<double> data = load_all<double>(x[0]);
  const std::int64_t channels = x[0].dims()[0] * x[0].dims()[1];
  std::vector<double> result(static_cast<std::size_t>(channels * sizes.outputs));
  for_each_window(
      data, channels, axes,
      [&](const double* channel, std::int64_t c, std::int64_t w, const std::int64_t* offsets, std::int64_t stride) {
        double total = 0;
        for (std::int64_t k = 0; k < sizes.elements; ++k)
          if (const std::int64_t at = offsets[k * stride]; at >= 0) total += norm.power(channel[at]);
        result[static_cast<std::size_t>(c * sizes.outputs + w)] = norm.root(total);
      });
  y[0] = store_all<double>(x[0].type(), pooled_dims(x[0], axes), result);
}

inline void max_pool(const attribute_map& attributes, inputs x, outputs y) {
  const auto axes = pool_axes(attributes, x[0]);
  const window_sizes sizes = sizes_of(axes);
  const bool column_major = attributes.get_int("storage_order", 0) != 0;
  const std::vector<double> data = load_all<double>(x[0]);
  const std::int64_t channels = x[0].dims()[0] * x[0].dims()[1];
  std::vector<double> result(static_cast<std::size_t>(channels * sizes.outputs));
  std::vector<std::int64_t> places(y.size() > 1 ? result.size() : 0);
  for_each_window(
      data, channels, axes,
      [&](const double* channel, std::int64_t c, std::int64_t w, const std::int64_t* offsets, std::int64_t stride) {
        double best = -std::numeric_limits<double>::infinity();
        std::int64_t place = -1;
        for (std::int64_t k = 0; k < sizes.elements; ++k) {
          const std::int64_t at = offsets[k * stride];
          if (at < 0 || (place >= 0 && !(channel[at] > best) && !std::isnan(channel[at]))) continue;
          best = channel[at];
          place = at;
          if (std::isnan(best)) break;
        }
        result[static_cast<std::size_t>(c * sizes.outputs + w)] = best;
        if (places.empty()) return;
        if (column_major) {
          // The same element counted with the first spatial dim fastest.
          std::int64_t rest = place;
          std::int64_t scale = sizes.inputs;
          std::int64_t turned = 0;
          for (std::size_t d = axes.size(); d-- > 0;) {
            scale /= axes[d].input;
            turned += rest % axes[d].input * scale;
            rest /= axes[d].input;
          }
          place = turned;
        }
        places[static_cast<std::size_t>(c * sizes.outputs + w)] = c * sizes.inputs + place;
      });
  y[0] = store_all<double>(x[0].type(), pooled_dims(x[0], axes), result);
  if (y.size() > 1) y[1] = tensor::of<std::int64_t>(pooled_dims(x[0], axes), places);
}

/// Folds all spatial elements of each channel: `f(channel_data, count)`.
template <class F>
[[nodiscard]] tensor fold_channels(const tensor& x, const F& f) {
  if (x.rank() < 2) throw error(errc::shape_mismatch, "a global pool over " + to_string(x.dims()));
  dim_list dims(x.rank(), 1);
  dims[0] = x.dims()[0];
  dims[1] = x.dims()[1];
  const std::vector<double> data = load_all<double>(x);
  std::vector<double> result(static_cast<std::size_t>(dims[0] * dims[1]));
  if (result.empty()) return tensor(x.type(), dims);
  const std::size_t count = data.size() / result.size();
  for (std::size_t c = 0; c < result.size(); ++c) result[c] = f(data.data() + c * count, count);
  return store_all<double>(x.type(), std::move(dims), result);
}
inline void global_average_pool(const attribute_map&, inputs x, outputs y) {
  y[0] = fold_channels(x[0], [](const double* data, std::size_t count) {
    double total = 0;
    for (std::size_t i = 0; i < count; ++i) total += data[i];
    return total / static_cast<double>(count);
  });
}
inline void global_max_pool(const attribute_map&, inputs x, outputs y) {
  y[0] = fold_channels(x[0], [](const double* data, std::size_t count) {
    double best = -std::numeric_limits<double>::infinity();
    for (std::size_t i = 0; i < count; ++i)
      if (data[i] > best || std::isnan(data[i])) best = data[i];
    return best;
  });
}
inline void global_lp_pool(const attribute_map& attributes, inputs x, outputs y) {
  const p_norm norm{static_cast<double>(attributes.get_int("p", 2))};
  y[0] = fold_channels(x[0], [norm](const double* data, std::size_t count) {
    double total = 0;
    for (std::size_t i = 0; i < count; ++i) total += norm.power(data[i]);
    return norm.root(total);
  });
}

inline void max_unpool(const attribute_map& attributes, inputs x, outputs y) {
  const auto kernel = attributes.require<std::vector<std::int64_t>>("kernel_shape");
  if (x[0].rank() < 3 || x[0].dims() != x[1].dims())
    throw error(errc::shape_mismatch, "MaxUnpool of " + to_string(x[0].dims()) + " at " + to_string(x[1].dims()));
  // Indices count within the tensor that the attributes imply, also where input 2 asks for a larger one.
  dim_list implied = pooled_dims(x[0], fixed(transposed_windows(attributes, spatial_dims(x[0].dims()), kernel)));
  dim_list dims = has_input(x, 2) ? integers_of(x[2]) : implied;
  if (dims.size() != implied.size()) throw error(errc::shape_mismatch, "MaxUnpool to " + to_string(dims));
  const std::vector<double> data = load_all<double>(x[0]);
  const auto places = x[1].data<std::int64_t>();
  std::vector<double> result(static_cast<std::size_t>(element_count(dims)), 0.0);
  for (std::size_t i = 0; i < data.size(); ++i) {
    std::int64_t rest = places[i];
    std::int64_t at = 0;
    std::int64_t stride = 1;
    for (std::size_t d = dims.size(); d-- > 0;) {
      const std::int64_t index = d == 0 ? rest : rest % implied[d];
      if (index < 0 || index >= dims[d])
        throw error(errc::invalid_argument,
                    "MaxUnpool index " + std::to_string(places[i]) + " lies outside " + to_string(dims));
      at += index * stride;
      stride *= dims[d];
      rest /= implied[d];
    }
    result[static_cast<std::size_t>(at)] = data[i];
  }
  y[0] = store_all<double>(x[0].type(), std::move(dims), result);
}

/// MaxRoiPool. Corners and bins are computed in float, as ONNX Runtime does, for their rounding decides what a bin
/// holds.
inline void max_roi_pool(const attribute_map& attributes, inputs x, outputs y) {
  const auto pooled = attributes.require<std::vector<std::int64_t>>("pooled_shape");
  const float scale = attributes.get_float("spatial_scale", 1.0F);
  if (x[0].rank() != 4 || x[1].rank() != 2 || x[1].dims()[1] != 5 || pooled.size() != 2)
    throw error(errc::shape_mismatch,
                "MaxRoiPool of " + to_string(x[0].dims()) + " with regions " + to_string(x[1].dims()));
  const std::vector<double> data = load_all<double>(x[0]);
  const std::vector<double> regions = load_all<double>(x[1]);
  const std::int64_t channels = x[0].dims()[1];
  const std::int64_t height = x[0].dims()[2];
  const std::int64_t width = x[0].dims()[3];
  const std::int64_t count = x[1].dims()[0];
  std::vector<double> result;
  for (std::int64_t r = 0; r < count; ++r) {
    const double* const region = regions.data() + r * 5;
    const std::int64_t entry = integer_below(region[0]);
    if (entry < 0 || entry >= x[0].dims()[0])
      throw error(errc::invalid_argument, "a region names batch entry " + std::to_string(entry));
    const auto corner = [&](int i) { return integer_below(std::round(static_cast<float>(region[i]) * scale)); };
    const float bin_height =
        static_cast<float>(std::max<std::int64_t>(corner(4) - corner(2) + 1, 1)) / static_cast<float>(pooled[0]);
    const float bin_width =
        static_cast<float>(std::max<std::int64_t>(corner(3) - corner(1) + 1, 1)) / static_cast<float>(pooled[1]);
    const auto bound = [](float v, std::int64_t start, std::int64_t most) {
      return std::clamp<std::int64_t>(static_cast<std::int64_t>(v) + start, 0, most);
    };
    for (std::int64_t c = 0; c < channels; ++c)
      for (std::int64_t p = 0; p < pooled[0]; ++p)
        for (std::int64_t q = 0; q < pooled[1]; ++q) {
          const std::int64_t top = bound(std::floor(static_cast<float>(p) * bin_height), corner(2), height);
          const std::int64_t bottom = bound(std::ceil(static_cast<float>(p + 1) * bin_height), corner(2), height);
          const std::int64_t left = bound(std::floor(static_cast<float>(q) * bin_width), corner(1), width);
          const std::int64_t right = bound(std::ceil(static_cast<float>(q + 1) * bin_width), corner(1), width);
          double best = bottom <= top || right <= left ? 0.0 : -std::numeric_limits<double>::infinity();
          for (std::int64_t h = top; h < bottom; ++h)
            for (std::int64_t w = left; w < right; ++w)
              best = std::max(best, data[static_cast<std::size_t>(((entry * channels + c) * height + h) * width + w)]);
          result.push_back(best);
        }
  }
  y[0] = store_all<double>(x[0].type(), {count, channels, pooled[0], pooled[1]}, result);
}

/// The four products of weight and element whose sum is the bilinear sample at a position of a region; positions more
/// than one element outside count as zero, others are moved to the border.
[[nodiscard]] inline std::array<double, 4> bilinear_terms(const double* channel, std::int64_t height,
                                                          std::int64_t width, double row, double column) {
  if (row < -1.0 || row > static_cast<double>(height) || column < -1.0 || column > static_cast<double>(width))
    return {0, 0, 0, 0};
  row = std::max(row, 0.0);
  column = std::max(column, 0.0);
  auto top = static_cast<std::int64_t>(row);
  auto left = static_cast<std::int64_t>(column);
  if (top >= height - 1) top = height - 1, row = static_cast<double>(top);
  if (left >= width - 1) left = width - 1, column = static_cast<double>(left);
  const std::int64_t bottom = std::min(top + 1, height - 1);
  const std::int64_t right = std::min(left + 1, width - 1);
  const double down = row - static_cast<double>(top);
  const double across = column - static_cast<double>(left);
  return {(1 - down) * (1 - across) * channel[top * width + left], (1 - down) * across * channel[top * width + right],
          down * (1 - across) * channel[bottom * width + left], down * across * channel[bottom * width + right]};
}

/// RoiAlign with coordinates in `Coordinate`, in the order of ONNX Runtime's operations: whether a sample at a border
/// counts is decided by their rounding.
template <class Coordinate>
void roi_align_in(const attribute_map& attributes, inputs x, outputs y) {
  const std::string mode = attributes.get_string("mode", "avg");
  const bool half_pixel = attributes.get_string("coordinate_transformation_mode", "half_pixel") == "half_pixel";
  const std::int64_t out_height = attributes.get_int("output_height", 1);
  const std::int64_t out_width = attributes.get_int("output_width", 1);
  const std::int64_t sampling = attributes.get_int("sampling_ratio", 0);
  const Coordinate scale = attributes.get_float("spatial_scale", 1.0F);
  const std::int64_t channels = x[0].dims()[1];
  const std::int64_t height = x[0].dims()[2];
  const std::int64_t width = x[0].dims()[3];
  const std::int64_t count = x[1].dims()[0];
  const std::vector<double> data = load_all<double>(x[0]);
  const std::vector<Coordinate> regions = load_all<Coordinate>(x[1]);
  const std::vector<std::int64_t> entries = integers_of(x[2]);
  if (static_cast<std::int64_t>(entries.size()) != count)
    throw error(errc::shape_mismatch, "RoiAlign has " + std::to_string(entries.size()) + " batch indices");
  std::vector<double> result(static_cast<std::size_t>(count * channels * out_height * out_width));
  const auto real = [](std::int64_t number) { return static_cast<Coordinate>(number); };
  const Coordinate shift = half_pixel ? Coordinate(0.5) : Coordinate(0);
  parallel_ranges(count, 4, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t r = begin; r < end; ++r) {
      const std::int64_t entry = entries[static_cast<std::size_t>(r)];
      if (entry < 0 || entry >= x[0].dims()[0])
        throw error(errc::invalid_argument, "a region names batch entry " + std::to_string(entry));
      const Coordinate* const region = regions.data() + r * 4;
      const Coordinate left = region[0] * scale - shift;
      const Coordinate top = region[1] * scale - shift;
      Coordinate region_width = region[2] * scale - shift - left;
      Coordinate region_height = region[3] * scale - shift - top;
      if (!half_pixel) {
        region_width = std::max(region_width, Coordinate(1));
        region_height = std::max(region_height, Coordinate(1));
      }
      const Coordinate bin_height = region_height / real(out_height);
      const Coordinate bin_width = region_width / real(out_width);
      // A region whose corners are exchanged has no samples.
      const auto samples_of = [&](Coordinate bin) {
        const std::int64_t sampled = sampling > 0 ? sampling : std::max<std::int64_t>(integer_below(std::ceil(bin)), 0);
        constexpr std::int64_t most = std::int64_t{1} << 20;
        if (sampled > most)
          throw error(errc::invalid_argument, "a bin of a region is sampled " + std::to_string(sampled) + " times");
        return sampled;
      };
      const std::int64_t rows = samples_of(bin_height);
      const std::int64_t columns = samples_of(bin_width);
      const auto position = [&](Coordinate from, std::int64_t bin, Coordinate size, std::int64_t sample,
                                std::int64_t samples) {
        return from + real(bin) * size + (real(sample) + Coordinate(0.5)) * size / real(samples);
      };
      for (std::int64_t c = 0; c < channels; ++c) {
        const double* const channel = data.data() + (entry * channels + c) * height * width;
        for (std::int64_t o = 0; o < out_height * out_width; ++o) {
          double total = 0;
          bool first = true;
          for (std::int64_t s = 0; s < rows * columns; ++s) {
            const Coordinate row = position(top, o / out_width, bin_height, s / columns, rows);
            const Coordinate column = position(left, o % out_width, bin_width, s % columns, columns);
            const auto terms =
                bilinear_terms(channel, height, width, static_cast<double>(row), static_cast<double>(column));
            if (mode == "avg") {
              total += terms[0] + terms[1] + terms[2] + terms[3];
            } else {
              // ONNX's definition takes the maximum of the four weighted neighbours, not of their sum.
              const double greatest = std::max(std::max(terms[0], terms[1]), std::max(terms[2], terms[3]));
              total = first ? greatest : std::max(total, greatest);
            }
            first = false;
          }
          if (mode == "avg") total /= static_cast<double>(std::max<std::int64_t>(rows * columns, 1));
          result[static_cast<std::size_t>((r * channels + c) * out_height * out_width + o)] = total;
        }
      }
    }
  });
  y[0] = store_all<double>(x[0].type(), {count, channels, out_height, out_width}, result);
}

inline void roi_align(const attribute_map& attributes, inputs x, outputs y) {
  if (x[0].rank() != 4 || x[1].rank() != 2 || x[1].dims()[1] != 4)
    throw error(errc::shape_mismatch,
                "RoiAlign of " + to_string(x[0].dims()) + " with regions " + to_string(x[1].dims()));
  if (x[0].type() == dtype::float64)
    roi_align_in<double>(attributes, x, y);
  else
    roi_align_in<float>(attributes, x, y);
}
}  // namespace pooling

/// Evaluations of pools.
inline constexpr std::array pooling_rows{
    reference_row{"", "AveragePool", pooling::average_pool},
    reference_row{"", "GlobalAveragePool", pooling::global_average_pool},
    reference_row{"", "GlobalLpPool", pooling::global_lp_pool},
    reference_row{"", "GlobalMaxPool", pooling::global_max_pool},
    reference_row{"", "LpPool", pooling::lp_pool},
    reference_row{"", "MaxPool", pooling::max_pool},
    reference_row{"", "MaxRoiPool", pooling::max_roi_pool},
    reference_row{"", "MaxUnpool", pooling::max_unpool},
    reference_row{"", "RoiAlign", pooling::roi_align},
};

}  // namespace dnnopt::reference

#endif  // DNNOPT_REFERENCE_POOLING_HPP

// Owns the reference evaluation of sampling at computed coordinates: GridSample, AffineGrid.
#ifndef DNNOPT_REFERENCE_SAMPLING_GRID_HPP
#define DNNOPT_REFERENCE_SAMPLING_GRID_HPP

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <dnnopt/reference/resize.hpp>

namespace dnnopt::reference {

namespace resampling {

/// What GridSample's attributes say.
struct sampling_mode {
  std::string interpolation;  ///< nearest, linear, cubic
  std::string padding;        ///< zeros, border, reflection
  bool corners = false;
};

/// The index of a tap within 0 and `dim` - 1 by the padding mode; -1 where it reads zero. Reflection is at the centres
/// of the outermost elements with `corners`, else at their outer edges.
[[nodiscard]] inline std::int64_t padded_index(const sampling_mode& mode, std::int64_t index, std::int64_t dim) {
  if (index >= 0 && index < dim) return index;
  if (mode.padding == "zeros") return -1;
  if (mode.padding == "border") return std::clamp<std::int64_t>(index, 0, dim - 1);
  const std::int64_t period = mode.corners ? 2 * (dim - 1) : 2 * dim;
  if (period == 0) return 0;
  const std::int64_t rest = (mode.corners || index >= 0 ? std::abs(index) : -index - 1) % period;
  return rest < dim ? rest : period - rest - (mode.corners ? 0 : 1);
}

/// The taps along one dim at the normalized coordinate `given`, computed in T: which taps an element has decides a
/// rounding. Taps that read zero are left out.
template <class T>
[[nodiscard]] std::vector<std::pair<std::int64_t, double>> sampling_taps(const sampling_mode& mode, T given,
                                                                         std::int64_t dim) {
  const auto length = static_cast<T>(dim);
  T at = mode.corners ? (given + T(1)) / T(2) * (length - T(1)) : ((given + T(1)) * length - T(1)) / T(2);
  // Far away every tap is padded alike; integers hold what is left.
  constexpr T far = T(1.0e9F);
  at = at > far ? far : at < -far ? -far : at;
  if (mode.interpolation == "nearest") at = std::nearbyint(at);
  const bool cubic = mode.interpolation == "cubic";
  const auto first = integer_below(static_cast<double>(at)) - (cubic ? 1 : 0);
  const std::int64_t count = cubic ? 4 : mode.interpolation == "linear" ? 2 : 1;
  std::vector<std::pair<std::int64_t, double>> taps;
  for (std::int64_t k = first; k < first + count; ++k) {
    const std::int64_t index = padded_index(mode, k, dim);
    if (index < 0) continue;
    const T distance = std::fabs(static_cast<T>(k) - at);
    taps.emplace_back(index, cubic        ? static_cast<double>(cubic_weight(static_cast<float>(distance), -0.75F))
                             : count == 2 ? static_cast<double>(T(1) - distance)
                                          : 1.0);
  }
  return taps;
}

inline void grid_sample(const attribute_map& attributes, std::span<const tensor> inputs, std::span<tensor> outputs) {
  const tensor& x = inputs[0];
  const tensor& grid = inputs[1];
  const std::size_t spatial = x.rank() < 3 ? 0 : x.rank() - 2;
  if (spatial == 0 || grid.rank() != x.rank() || grid.dims().back() != static_cast<std::int64_t>(spatial) ||
      grid.dims()[0] != x.dims()[0])
    throw error(errc::shape_mismatch, "GridSample: a grid " + to_string(grid.dims()) + " over " + to_string(x.dims()));
  sampling_mode mode{attributes.get_string("mode", "linear"), attributes.get_string("padding_mode", "zeros"),
                     attributes.get_int("align_corners", 0) != 0};
  if (mode.interpolation == "bilinear") mode.interpolation = "linear";
  if (mode.interpolation == "bicubic") mode.interpolation = "cubic";
  if ((mode.interpolation != "linear" && mode.interpolation != "cubic" && mode.interpolation != "nearest") ||
      (mode.padding != "zeros" && mode.padding != "border" && mode.padding != "reflection"))
    throw error(errc::bad_attribute,
                "GridSample: mode '" + mode.interpolation + "', padding_mode '" + mode.padding + "'");
  const std::vector<double> values = load_all<double>(x);
  const std::vector<double> coordinates = load_all<double>(grid);
  dim_list dims{x.dims()[0], x.dims()[1]};
  dims.insert(dims.end(), grid.dims().begin() + 1, grid.dims().end() - 1);
  std::int64_t points = 1;
  for (std::size_t k = 1; k + 1 < grid.rank(); ++k) points *= grid.dims()[k];
  const dim_list strides = row_major_strides(x.dims());
  std::vector<double> result(static_cast<std::size_t>(element_count(dims)), 0.0);
  struct tap {
    std::int64_t offset;
    double weight;
  };
  for (std::int64_t n = 0; n < x.dims()[0]; ++n)
    for (std::int64_t p = 0; p < points; ++p) {
      std::vector<tap> reads{{0, 1.0}};
      for (std::size_t s = 0; s < spatial; ++s) {
        // The grid holds the innermost coordinate first.
        const double given =
            coordinates[static_cast<std::size_t>((n * points + p) * static_cast<std::int64_t>(spatial)) + spatial - 1 -
                        s];
        const auto along = x.type() == dtype::float64 ? sampling_taps(mode, given, x.dims()[2 + s])
                                                      : sampling_taps(mode, static_cast<float>(given), x.dims()[2 + s]);
        std::vector<tap> next;
        for (const auto& [index, weight] : along)
          for (const tap& read : reads) next.push_back({read.offset + index * strides[2 + s], read.weight * weight});
        reads = std::move(next);
      }
      for (std::int64_t c = 0; c < x.dims()[1]; ++c) {
        double total = 0.0;
        for (const tap& read : reads)
          total += read.weight * values[static_cast<std::size_t>(n * strides[0] + c * strides[1] + read.offset)];
        result[static_cast<std::size_t>((n * x.dims()[1] + c) * points + p)] = total;
      }
    }
  outputs[0] = store_all<double>(x.type(), dims, result);
}

inline void affine_grid(const attribute_map& attributes, std::span<const tensor> inputs, std::span<tensor> outputs) {
  const std::vector<double> theta = load_all<double>(inputs[0]);
  const std::vector<std::int64_t> size = integers_of(inputs[1]);
  const bool corners = attributes.get_int("align_corners", 0) != 0;
  const std::size_t spatial = size.size() < 4 ? 0 : size.size() - 2;
  const auto width = static_cast<std::int64_t>(spatial);
  if ((spatial != 2 && spatial != 3) || inputs[0].dims() != dim_list{size[0], width, width + 1})
    throw error(errc::shape_mismatch,
                "AffineGrid: maps " + to_string(inputs[0].dims()) + " for size " + to_string(size));
  dim_list dims{size[0]};
  dims.insert(dims.end(), size.begin() + 2, size.end());
  const std::int64_t points = element_count(dims) / std::max<std::int64_t>(1, size[0]);
  dims.push_back(width);
  std::vector<double> result;
  for (std::int64_t n = 0; n < size[0]; ++n)
    for (std::int64_t p = 0; p < points; ++p) {
      std::vector<double> at(spatial + 1, 1.0);
      std::int64_t rest = p;
      for (std::size_t s = 0; s < spatial; ++s) {
        const std::int64_t dim = size[size.size() - 1 - s];
        const auto index = static_cast<double>(rest % dim);
        rest /= dim;
        if (corners)
          at[s] = dim == 1 ? -1.0 : 2.0 * index / static_cast<double>(dim - 1) - 1.0;
        else
          at[s] = (2.0 * index + 1.0) / static_cast<double>(dim) - 1.0;
      }
      for (std::size_t row = 0; row < spatial; ++row) {
        double total = 0.0;
        for (std::size_t k = 0; k <= spatial; ++k)
          total += theta[(static_cast<std::size_t>(n) * spatial + row) * (spatial + 1) + k] * at[k];
        result.push_back(total);
      }
    }
  outputs[0] = store_all<double>(inputs[0].type(), dims, result);
}

}  // namespace resampling

inline constexpr std::array sampling_grid_rows{
    reference_row{"", "GridSample", resampling::grid_sample},
    reference_row{"", "AffineGrid", resampling::affine_grid},
};

}  // namespace dnnopt::reference

#endif  // DNNOPT_REFERENCE_SAMPLING_GRID_HPP

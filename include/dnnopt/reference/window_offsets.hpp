// Owns where the elements of sliding windows lie: for each window and each of its elements, the input's flat offset.
#ifndef DNNOPT_REFERENCE_WINDOW_OFFSETS_HPP
#define DNNOPT_REFERENCE_WINDOW_OFFSETS_HPP

#include <cstddef>
#include <cstdint>
#include <vector>

#include <dnnopt/ops/window.hpp>
#include <dnnopt/tensor.hpp>

namespace dnnopt::reference {

/// A window whose extents are numbers.
struct fixed_axis {
  std::int64_t kernel, stride, dilation, pad_begin, pad_end, input, output;
};

/// Windows over known dims as numbers. Precondition: every expression is a constant.
[[nodiscard]] inline std::vector<fixed_axis> fixed(const std::vector<window_axis>& axes) {
  std::vector<fixed_axis> result;
  for (const window_axis& a : axes)
    result.push_back({a.kernel, a.stride, a.dilation, a.pad_begin.constant(), a.pad_end.constant(), a.input.constant(),
                      a.output.constant()});
  return result;
}

/// The spatial dims of [batch, channel, ...] as expressions.
[[nodiscard]] inline std::vector<index_expr> spatial_dims(const dim_list& dims) {
  return std::vector<index_expr>(dims.begin() + 2, dims.end());
}

struct window_sizes {
  std::int64_t inputs = 1;    ///< input elements of one channel
  std::int64_t outputs = 1;   ///< windows of one channel
  std::int64_t elements = 1;  ///< elements of one window
};
[[nodiscard]] inline window_sizes sizes_of(const std::vector<fixed_axis>& axes) {
  window_sizes s;
  for (const fixed_axis& a : axes) s.inputs *= a.input, s.outputs *= a.output, s.elements *= a.kernel;
  return s;
}

/// What an offset of -1 tells apart: a position in the padding, and one beyond even that (ceil_mode).
inline constexpr std::int64_t in_padding = -1;
inline constexpr std::int64_t beyond_padding = -2;

/// Offsets within one channel of element k of windows [first, first + count), as table[k * count + window]; in_padding
/// or beyond_padding where there is no input. Complexity: count times window elements times rank.
[[nodiscard]] inline std::vector<std::int64_t> window_offsets(const std::vector<fixed_axis>& axes, std::int64_t first,
                                                              std::int64_t count) {
  const window_sizes sizes = sizes_of(axes);
  std::vector<std::int64_t> table(static_cast<std::size_t>(sizes.elements * count));
  std::vector<std::int64_t> window(axes.size());
  std::vector<std::int64_t> element(axes.size());
  for (std::int64_t w = 0; w < count; ++w) {
    std::int64_t rest = first + w;
    for (std::size_t d = axes.size(); d-- > 0;) {
      window[d] = rest % axes[d].output * axes[d].stride - axes[d].pad_begin;
      rest /= axes[d].output;
    }
    for (std::int64_t k = 0; k < sizes.elements; ++k) {
      rest = k;
      for (std::size_t d = axes.size(); d-- > 0;) {
        element[d] = rest % axes[d].kernel;
        rest /= axes[d].kernel;
      }
      std::int64_t offset = 0;
      for (std::size_t d = 0; d < axes.size(); ++d) {
        const std::int64_t at = window[d] + element[d] * axes[d].dilation;
        if (at >= axes[d].input + axes[d].pad_end) {
          offset = beyond_padding;
          break;
        }
        if (at < 0 || at >= axes[d].input)
          offset = in_padding;
        else if (offset >= 0)
          offset = offset * axes[d].input + at;
      }
      table[static_cast<std::size_t>(k * count + w)] = offset;
    }
  }
  return table;
}

}  // namespace dnnopt::reference

#endif  // DNNOPT_REFERENCE_WINDOW_OFFSETS_HPP

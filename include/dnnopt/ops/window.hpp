// Owns sliding windows: kernel, stride, dilation, padding and output extent per spatial dim of convolutions and pools.
#ifndef DNNOPT_OPS_WINDOW_HPP
#define DNNOPT_OPS_WINDOW_HPP

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <dnnopt/attribute.hpp>
#include <dnnopt/error.hpp>
#include <dnnopt/index_expr.hpp>
#include <dnnopt/ops/facts.hpp>
#include <dnnopt/shape.hpp>

namespace dnnopt {

/// The window of one spatial dim. Window element k of output o reads input o * stride + k * dilation - pad_begin; of a
/// transposed window, input i with element k adds to output i * stride + k * dilation - pad_begin.
struct window_axis {
  std::int64_t kernel = 1;
  std::int64_t stride = 1;
  std::int64_t dilation = 1;
  index_expr pad_begin;
  index_expr pad_end;
  index_expr input;   ///< input extent
  index_expr output;  ///< output extent
  /// Elements that the padded input may have less than the window, below zero: one less would make `output` negative.
  std::int64_t least_slack = 0;

  /// Input elements from the first to the last of a window.
  [[nodiscard]] std::int64_t extent() const noexcept { return (kernel - 1) * dilation + 1; }
};

namespace detail {
inline std::vector<std::int64_t> window_ints(const attribute_map& attributes, std::string_view name, std::size_t count,
                                             std::int64_t fallback, std::int64_t least) {
  std::vector<std::int64_t> values = attributes.get_ints(name);
  if (values.empty()) values.assign(count, fallback);
  if (values.size() != count)
    throw error(errc::bad_attribute, "attribute '" + std::string(name) + "' has " + std::to_string(values.size()) +
                                         " values, " + std::to_string(count) + " are needed");
  for (const std::int64_t v : values)
    if (v < least) throw error(errc::bad_attribute, "attribute '" + std::string(name) + "' holds " + std::to_string(v));
  return values;
}

inline std::vector<window_axis> window_axes(const attribute_map& attributes, std::span<const index_expr> spatial,
                                            std::span<const std::int64_t> kernel) {
  if (kernel.size() != spatial.size())
    throw error(errc::shape_mismatch, "a window of rank " + std::to_string(kernel.size()) + " slides over " +
                                          std::to_string(spatial.size()) + " spatial dims");
  const auto strides = window_ints(attributes, "strides", spatial.size(), 1, 1);
  const auto dilations = window_ints(attributes, "dilations", spatial.size(), 1, 1);
  std::vector<window_axis> axes(spatial.size());
  for (std::size_t i = 0; i < axes.size(); ++i) {
    if (kernel[i] < 1) throw error(errc::bad_attribute, "a window's extent is " + std::to_string(kernel[i]));
    axes[i].kernel = kernel[i];
    axes[i].stride = strides[i];
    axes[i].dilation = dilations[i];
    axes[i].least_slack = -strides[i];
    axes[i].input = spatial[i];
  }
  return axes;
}

/// Whether padding is computed from shapes: auto_pad other than NOTSET. Errors: bad_attribute for an unknown word.
inline bool pads_automatically(const std::string& auto_pad) {
  if (auto_pad.empty() || auto_pad == "NOTSET") return false;
  if (auto_pad == "SAME_UPPER" || auto_pad == "SAME_LOWER" || auto_pad == "VALID") return true;
  throw error(errc::bad_attribute, "attribute 'auto_pad' is '" + auto_pad + "'");
}
}  // namespace detail

/// The windows of a convolution or pool over `spatial` input dims, from attributes strides, dilations, pads and
/// auto_pad. With `ceil_mode` a last window may reach beyond the padded input, unless it would start in the end
/// padding. Errors: bad_attribute, shape_mismatch.
[[nodiscard]] inline std::vector<window_axis> windows(const attribute_map& attributes,
                                                      std::span<const index_expr> spatial,
                                                      std::span<const std::int64_t> kernel, bool ceil_mode = false) {
  std::vector<window_axis> axes = detail::window_axes(attributes, spatial, kernel);
  const std::string auto_pad = attributes.get_string("auto_pad", "NOTSET");
  const bool automatic = detail::pads_automatically(auto_pad);
  const auto pads = automatic ? std::vector<std::int64_t>(2 * axes.size(), 0)
                              : detail::window_ints(attributes, "pads", 2 * axes.size(), 0, 0);
  for (std::size_t i = 0; i < axes.size(); ++i) {
    window_axis& axis = axes[i];
    if (automatic && auto_pad != "VALID") {
      axis.output = ceildiv(axis.input, axis.stride);
      const index_expr total = max((axis.output - 1) * axis.stride + axis.extent() - axis.input, 0);
      const index_expr smaller = floordiv(total, 2);
      axis.pad_begin = auto_pad == "SAME_UPPER" ? smaller : total - smaller;
      axis.pad_end = total - axis.pad_begin;
      continue;
    }
    axis.pad_begin = pads[i];
    axis.pad_end = pads[i + axes.size()];
    const index_expr slack = axis.input + axis.pad_begin + axis.pad_end - axis.extent();
    axis.output = floordiv(slack, axis.stride) + 1;
    if (ceil_mode) axis.least_slack = 1 - 2 * axis.stride;
    if (ceil_mode && axis.stride > 1)
      axis.output = min(ceildiv(slack, axis.stride) + 1, floordiv(axis.input + axis.pad_begin - 1, axis.stride) + 1);
    if (axis.output.range().high < 0)
      throw error(errc::shape_mismatch,
                  "a window of " + std::to_string(axis.extent()) + " elements exceeds the padded input");
    axis.output = max(axis.output, 0);
  }
  return axes;
}

/// Requires that the input of an axis of `windows` is not too short for its window. Errors: shape_mismatch.
inline void require_window(const node_facts& facts, const window_axis& axis) {
  if (axis.output.range().low > 0 || !axis.pad_begin.is_constant() || !axis.pad_end.is_constant()) return;
  // SAME pads as much as one window needs; whatever pads stated may leave less than one.
  const index_expr slack = axis.input + axis.pad_begin + axis.pad_end - axis.extent();
  facts.require(guard_relation::at_least, slack, axis.least_slack, "the padded input of a window, less the window");
}

/// The windows of a transposed convolution, from attributes strides, dilations, pads, auto_pad, output_padding and
/// output_shape (which decides the padding where it is given). Errors: bad_attribute, shape_mismatch.
[[nodiscard]] inline std::vector<window_axis> transposed_windows(const attribute_map& attributes,
                                                                 std::span<const index_expr> spatial,
                                                                 std::span<const std::int64_t> kernel) {
  std::vector<window_axis> axes = detail::window_axes(attributes, spatial, kernel);
  const std::string auto_pad = attributes.get_string("auto_pad", "NOTSET");
  const bool automatic = detail::pads_automatically(auto_pad);
  const auto pads = detail::window_ints(attributes, "pads", 2 * axes.size(), 0, 0);
  const auto extra = detail::window_ints(attributes, "output_padding", axes.size(), 0, 0);
  std::vector<std::int64_t> wanted = attributes.get_ints("output_shape");
  if (wanted.size() > axes.size())
    wanted.erase(wanted.begin(), wanted.end() - static_cast<std::ptrdiff_t>(axes.size()));
  if (!wanted.empty() && wanted.size() != axes.size())
    throw error(errc::bad_attribute, "attribute 'output_shape' has " + std::to_string(wanted.size()) + " values");
  for (std::size_t i = 0; i < axes.size(); ++i) {
    window_axis& axis = axes[i];
    const index_expr full = (axis.input - 1) * axis.stride + extra[i] + axis.extent();
    if (wanted.empty() && (!automatic || auto_pad == "VALID")) {
      axis.pad_begin = automatic ? 0 : pads[i];
      axis.pad_end = automatic ? 0 : pads[i + axes.size()];
      axis.output = full - axis.pad_begin - axis.pad_end;
      continue;
    }
    axis.output = wanted.empty() ? axis.input * axis.stride : index_expr(wanted[i]);
    const index_expr total = max(full - axis.output, 0);
    const index_expr smaller = floordiv(total, 2);
    axis.pad_begin = auto_pad == "SAME_UPPER" ? smaller : total - smaller;
    axis.pad_end = total - axis.pad_begin;
  }
  return axes;
}

/// Attribute kernel_shape, or `fallback` where it is absent.
[[nodiscard]] inline std::vector<std::int64_t> kernel_of(const attribute_map& attributes,
                                                         std::vector<std::int64_t> fallback = {}) {
  std::vector<std::int64_t> kernel = attributes.get_ints("kernel_shape");
  return kernel.empty() ? fallback : kernel;
}

}  // namespace dnnopt

#endif  // DNNOPT_OPS_WINDOW_HPP

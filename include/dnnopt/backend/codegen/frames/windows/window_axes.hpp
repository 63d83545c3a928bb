// Owns how windows of one to three spatial dims are brought to three, and how frames name them.
#ifndef DNNOPT_BACKEND_CODEGEN_FRAMES_WINDOWS_WINDOW_AXES_HPP
#define DNNOPT_BACKEND_CODEGEN_FRAMES_WINDOWS_WINDOW_AXES_HPP

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include <dnnopt/backend/codegen/builder/kernel_builder.hpp>
#include <dnnopt/ops/window.hpp>

namespace dnnopt::codegen {

/// Depth, height and width of a window.
using three_axes = std::array<window_axis, 3>;

/// Windows over one to three spatial dims as windows over three: axes of one element come first. `out` is the shape
/// [batch, channel, ...] of what the windows give, which tells the output extents.
[[nodiscard]] inline three_axes brought_to_three(std::span<const window_axis> own, const shape& out) {
  three_axes axes;
  for (window_axis& axis : axes) {
    axis.pad_begin = 0;
    axis.pad_end = 0;
    axis.input = 1;
    axis.output = 1;
  }
  for (std::size_t i = 0; i < own.size(); ++i) {
    window_axis& axis = axes[axes.size() - own.size() + i];
    axis = own[i];
    axis.output = out[2 + i];
  }
  return axes;
}

/// Defines <prefix>KD, ...KH and ...KW (elements of the window), and the same with S (stride), D (dilation), P (padding
/// before), I (input extent) and O (output extent), those of them that the frame reads.
inline void define_axes(kernel_builder& b, const kernel_frame& frame, const three_axes& axes, std::string_view prefix) {
  const std::array<std::string_view, 3> letters{"D", "H", "W"};
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const window_axis& a = axes[i];
    const auto define = [&](std::string_view quantity, const index_expr& value) {
      const std::string name = std::string(prefix) + std::string(quantity) + std::string(letters[i]);
      if (frame.find(name) != nullptr) b.define(name, value);
    };
    define("K", a.kernel);
    define("S", a.stride);
    define("D", a.dilation);
    define("P", a.pad_begin);
    define("I", a.input);
    define("O", a.output);
  }
}

}  // namespace dnnopt::codegen

#endif  // DNNOPT_BACKEND_CODEGEN_FRAMES_WINDOWS_WINDOW_AXES_HPP

// Owns the element expressions of convolutions: Conv, ConvTranspose, the integer, quantized and causal ones,
// DeformConv; and of Col2Im.
#ifndef DNNOPT_BACKEND_CODEGEN_ELEMENTS_CONVOLUTION_HPP
#define DNNOPT_BACKEND_CODEGEN_ELEMENTS_CONVOLUTION_HPP

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <dnnopt/backend/codegen/elements/element_site.hpp>
#include <dnnopt/backend/codegen/elements/quantization.hpp>
#include <dnnopt/ops/window.hpp>

namespace dnnopt::codegen {

/// The kernel extents of a convolution whose weights are input `slot`. Errors: unsupported where they are not
/// constants.
[[nodiscard]] inline std::vector<std::int64_t> kernel_extents(const element_site& s, std::size_t slot) {
  std::vector<std::int64_t> kernel = kernel_of(s.attributes());
  if (!kernel.empty()) return kernel;
  const shape& w = s.dims(slot);
  for (std::size_t i = 2; i < w.size(); ++i) {
    if (!w[i].is_constant()) throw s.refuse("the window's extent is not known before execution");
    kernel.push_back(w[i].constant());
  }
  return kernel;
}

/// Windows whose padding is an argument where a run tells it (SAME of symbolic dims).
[[nodiscard]] inline std::vector<window_axis> with_settled_padding(const element_site& s,
                                                                   std::vector<window_axis> axes) {
  for (window_axis& axis : axes) axis.pad_begin = s.b.settled(axis.pad_begin);
  return axes;
}

/// The windows of the spatial dims of input 0.
[[nodiscard]] inline std::vector<window_axis> windows_of(const element_site& s, std::size_t weight_slot) {
  const shape& x = s.dims(0);
  const shape spatial(x.begin() + 2, x.end());
  return with_settled_padding(s, windows(s.attributes(), spatial, kernel_extents(s, weight_slot)));
}

/// Loops over the elements of input 0 of a window: calls `body(input spatial index, kernel index)` where they are
/// inside. With `zero_outside` the body may be called elsewhere too, where input 0 gives zero by itself.
template <class Body>
void window_loops(const element_site& s, std::span<const window_axis> axes, std::span<const index_expr> output,
                  Body&& body, bool zero_outside = false) {
  std::vector<index_expr> extents;
  for (const window_axis& axis : axes) extents.emplace_back(axis.kernel);
  s.loops("w", extents, [&](const std::vector<index_expr>& k) {
    std::string test;
    std::vector<index_expr> at;
    std::vector<bool> bounded;
    for (std::size_t i = 0; i < axes.size(); ++i) {
      at.push_back(output[i] * axes[i].stride + k[i] * axes[i].dilation - axes[i].pad_begin);
      if (!kernel_builder::always_within(at[i], axes[i].input)) at[i] = s.b.divided_outside(at[i]);
      const kernel_builder::border_test within =
          zero_outside ? s.b.within_or_zero(s.n().inputs[0], 2 + i, at[i])
                       : kernel_builder::border_test{kernel_builder::within(at[i], axes[i].input)};
      test = both(std::move(test), within.text);
      bounded.push_back(within.bounded);
    }
    s.when(test, [&] {
      for (std::size_t i = 0; i < axes.size(); ++i)
        if (bounded[i]) at[i] = s.b.define_index("x", at[i], axes[i].input);
      body(std::as_const(at), k);
    });
  });
}

/// Sums `term(x index, w index)` over the inputs of output element s.index; `weight_slot` is the weights' input;
/// `zero_outside` as in window_loops.
template <class Term>
void convolution_loops(const element_site& s, std::size_t weight_slot, Term&& term, bool zero_outside = false) {
  const std::int64_t group = s.attributes().get_int("group", 1);
  const shape& w = s.dims(weight_slot);
  const std::vector<window_axis> axes = windows_of(s, weight_slot);
  const std::vector<index_expr> spatial(s.index.begin() + 2, s.index.end());
  const index_expr first = group == 1 ? index_expr(0) : floordiv(s.index[1], floordiv(w[0], group)) * w[1];
  s.loop("c", w[1], [&](const index_expr& c) {
    window_loops(
        s, axes, spatial,
        [&](const std::vector<index_expr>& at, const std::vector<index_expr>& k) {
          std::vector<index_expr> xi{s.index[0], first + c};
          std::vector<index_expr> wi{s.index[1], c};
          xi.insert(xi.end(), at.begin(), at.end());
          wi.insert(wi.end(), k.begin(), k.end());
          term(std::as_const(xi), std::as_const(wi));
        },
        zero_outside);
  });
}

inline std::string emit_convolution(kernel_builder& b, node_id id, std::size_t output,
                                    std::span<const index_expr> index) {
  const element_site s(b, id, output, index);
  const std::string a = b.variable(s.compute(), s.has(2) ? s.read(2, {s.index[1]}) : "0");
  convolution_loops(
      s, 1,
      [&](const std::vector<index_expr>& x, const std::vector<index_expr>& w) {
        const std::string element = s.read(0, x);
        b.line(a + " += " + element + " * " + s.read(1, w) + ";");
      },
      true);
  return s.result(a);
}

/// The scale or zero point of the weights: one, or one per output channel.
[[nodiscard]] inline std::string per_channel(const element_site& s, std::size_t slot, std::string absent) {
  if (!s.has(slot)) return absent;
  return s.read_one_or_each(slot, s.out_dims()[1], s.index[1]);
}

inline std::string emit_integer_convolution(kernel_builder& b, node_id id, std::size_t output,
                                            std::span<const index_expr> index) {
  const element_site s(b, id, output, index);
  const std::string zero_x = s.has(2) ? s.read_scalar(2) : "0";
  const std::string zero_w = per_channel(s, 3, "0");
  const std::string a = b.variable(compute_type::integer, "0");
  convolution_loops(s, 1, [&](const std::vector<index_expr>& x, const std::vector<index_expr>& w) {
    const std::string element = s.read(0, x);
    b.line(a + " += (" + element + " - " + zero_x + ") * (" + s.read(1, w) + " - " + zero_w + ");");
  });
  return s.result(a);
}

inline std::string emit_qlinear_convolution(kernel_builder& b, node_id id, std::size_t output,
                                            std::span<const index_expr> index) {
  const element_site s(b, id, output, index);
  const std::string zero_x = s.read_scalar(2);
  const std::string zero_w = per_channel(s, 5, "0");
  const std::string a = b.variable(compute_type::integer, s.has(8) ? s.read(8, {s.index[1]}) : "0");
  convolution_loops(s, 3, [&](const std::vector<index_expr>& x, const std::vector<index_expr>& w) {
    const std::string element = s.read(0, x);
    b.line(a + " += (" + element + " - " + zero_x + ") * (" + s.read(3, w) + " - " + zero_w + ");");
  });
  // The quotient decides what a sum becomes that lies between two codes.
  const std::string scale = b.let(compute_type::real, "dnnopt_quotient(" + s.read_scalar(1) + " * " +
                                                          per_channel(s, 4, "1") + ", " + s.read_scalar(6) + ")");
  return quantized(s, "(float)" + a + " * " + scale, s.has(7) ? s.read_scalar(7) : "0");
}

inline std::string emit_transposed_convolution(kernel_builder& b, node_id id, std::size_t output,
                                               std::span<const index_expr> index) {
  const element_site s(b, id, output, index);
  const shape& x = s.dims(0);
  const shape& w = s.dims(1);
  const std::int64_t group = s.attributes().get_int("group", 1);
  std::vector<window_axis> axes =
      with_settled_padding(s, transposed_windows(s.attributes(), shape(x.begin() + 2, x.end()), kernel_extents(s, 1)));
  const std::string a = b.variable(s.compute(), s.has(2) ? s.read(2, {s.index[1]}) : "0");
  const index_expr in_group = floordiv(x[1], group);
  const index_expr which = group == 1 ? index_expr(0) : floordiv(s.index[1], w[1]);
  std::vector<index_expr> extents;
  for (const window_axis& axis : axes) extents.emplace_back(axis.kernel);
  s.loops("w", extents, [&](const std::vector<index_expr>& k) {
    // Output o gets input i with kernel element k where o + pad = i * stride + k * dilation.
    std::string test;
    std::vector<index_expr> at;
    for (std::size_t i = 0; i < axes.size(); ++i) {
      const index_expr reach = s.index[2 + i] + axes[i].pad_begin - k[i] * axes[i].dilation;
      if (axes[i].stride != 1) test = both(std::move(test), index_source(mod(reach, axes[i].stride)) + " == 0");
      at.push_back(floordiv(reach, axes[i].stride));
      test = both(std::move(test), kernel_builder::within(at.back(), axes[i].input));
    }
    s.when(test, [&] {
      for (std::size_t i = 0; i < axes.size(); ++i) at[i] = b.define_index("x", at[i], axes[i].input);
      s.loop("c", in_group, [&](const index_expr& c) {
        const index_expr channel = which * in_group + c;
        std::vector<index_expr> xi{s.index[0], channel};
        std::vector<index_expr> wi{channel, group == 1 ? s.index[1] : mod(s.index[1], w[1])};
        xi.insert(xi.end(), at.begin(), at.end());
        wi.insert(wi.end(), k.begin(), k.end());
        const std::string element = s.read(0, xi);
        b.line(a + " += " + element + " * " + s.read(1, wi) + ";");
      });
    });
  });
  return s.result(a);
}

/// Causal convolution of single rows behind the elements that a past call left, and what is left for the next one.
inline std::string emit_causal_convolution(kernel_builder& b, node_id id, std::size_t output,
                                           std::span<const index_expr> index) {
  const element_site s(b, id, output, index);
  const std::optional<std::int64_t> kernel = s.dims(1)[2].as_constant();
  if (!kernel) throw s.refuse("the window's extent is not known before execution");
  const index_expr carried = *kernel - 1;
  const compute_type type = s.compute();
  // Element `at` of the past elements and input 0, one behind the other.
  const auto element = [&](const index_expr& at, const std::string& into) {
    const index_expr own = at - carried;
    if (own.range().low >= 0) {
      b.line(into + " = " + s.read(0, {s.index[0], s.index[1], own}) + ";");
      return;
    }
    b.open("if (" + index_source(own) + " >= 0) {");
    b.line(into + " = " + s.read(0, {s.index[0], s.index[1], b.define_index("x", own, s.dims(0)[2])}) + ";");
    b.close();
    b.open("else {");
    b.line(into + " = " +
           (s.has(3) ? s.read(3, {s.index[0], s.index[1], b.define_index("x", at, carried)}) : std::string("0")) + ";");
    b.close();
  };
  const std::string read = b.variable(type, "0");
  if (output == 1) {
    element(s.index[2] + s.dims(0)[2], read);
    return read;
  }
  const std::string a = b.variable(type, s.has(2) ? s.read(2, {s.index[1]}) : "0");
  s.loop("k", *kernel, [&](const index_expr& k) {
    element(s.index[2] + k, read);
    b.line(a + " += " + read + " * " + s.read(1, {s.index[1], 0, k}) + ";");
  });
  return s.result(s.attributes().get_string("activation", "none") == "none" ? a
                                                                            : a + " / (1 + dnnopt_exp(-" + a + "))");
}

/// The sum of all elements of columns that belong to one of the image's.
inline std::string emit_column_sum(kernel_builder& b, node_id id, std::size_t output,
                                   std::span<const index_expr> index) {
  const element_site s(b, id, output, index);
  const std::vector<std::int64_t> kernel = *s.integers(2);
  const shape& image = s.out_dims();
  const std::vector<window_axis> axes =
      with_settled_padding(s, windows(s.attributes(), shape(image.begin() + 2, image.end()), kernel));
  const std::string a = b.variable(s.compute(), "0");
  const std::vector<index_expr> extents(kernel.begin(), kernel.end());
  s.loops("w", extents, [&](const std::vector<index_expr>& k) {
    std::string test;
    std::vector<index_expr> at;
    for (std::size_t i = 0; i < axes.size(); ++i) {
      const index_expr reach = s.index[2 + i] + axes[i].pad_begin - k[i] * axes[i].dilation;
      if (axes[i].stride != 1) test = both(std::move(test), index_source(mod(reach, axes[i].stride)) + " == 0");
      at.push_back(floordiv(reach, axes[i].stride));
      test = both(std::move(test), kernel_builder::within(at.back(), axes[i].output));
    }
    s.when(test, [&] {
      index_expr element = 0;
      index_expr block = 0;
      std::int64_t elements = 1;
      for (std::size_t i = 0; i < axes.size(); ++i) {
        element = element * kernel[i] + k[i];
        block = block * axes[i].output + b.define_index("x", at[i], axes[i].output);
        elements *= kernel[i];
      }
      b.line(a + " += " + s.read(0, {s.index[0], s.index[1] * elements + element, block}) + ";");
    });
  });
  return s.result(a);
}

/// Deformable convolution, 2-D: each kernel element reads by bilinear interpolation at an offset read from input 2.
inline std::string emit_deformable_convolution(kernel_builder& b, node_id id, std::size_t output,
                                               std::span<const index_expr> index) {
  const element_site s(b, id, output, index);
  const shape& x = s.dims(0);
  if (x.size() != 4) throw s.refuse("only two spatial dims");
  const shape& w = s.dims(1);
  const std::int64_t group = s.attributes().get_int("group", 1);
  const std::int64_t offset_group = s.attributes().get_int("offset_group", 1);
  const std::vector<window_axis> axes = windows_of(s, 1);
  const compute_type type = s.compute();
  const std::string real(name_of(type));
  const std::string a = b.variable(type, s.has(3) ? s.read(3, {s.index[1]}) : "0");
  const index_expr first = group == 1 ? index_expr(0) : floordiv(s.index[1], floordiv(w[0], group)) * w[1];
  const std::int64_t elements = axes[0].kernel * axes[1].kernel;
  s.loops("w", std::vector<index_expr>{w[1], axes[0].kernel, axes[1].kernel}, [&](const std::vector<index_expr>& k) {
    const index_expr channel = first + k[0];
    const index_expr offset_of_group = floordiv(channel, floordiv(x[1], offset_group));
    const index_expr element = k[1] * axes[1].kernel + k[2];
    const index_expr plane = offset_of_group * elements + element;
    std::string position[2];
    for (std::size_t i = 0; i < 2; ++i) {
      const index_expr base = s.index[2 + i] * axes[i].stride + k[1 + i] * axes[i].dilation - axes[i].pad_begin;
      position[i] =
          b.let(type, "(" + real + ")" + index_source(base) + " + " +
                          s.read(2, {s.index[0], plane * 2 + static_cast<std::int64_t>(i), s.index[2], s.index[3]}));
    }
    const std::string value = b.variable(type, "0");
    const std::string low_y = b.let(compute_type::integer, "(long)floor(" + position[0] + ")");
    const std::string low_x = b.let(compute_type::integer, "(long)floor(" + position[1] + ")");
    s.loops("t", std::vector<index_expr>{2, 2}, [&](const std::vector<index_expr>& t) {
      const std::string y = low_y + " + " + index_source(t[0]);
      const std::string z = low_x + " + " + index_source(t[1]);
      b.open("if (" + y + " >= 0 && " + y + " < " + index_source(x[2]) + " && " + z + " >= 0 && " + z + " < " +
             index_source(x[3]) + ") {");
      const index_expr iy = b.define_integer("y", y, {0, x[2].range().high - 1});
      const index_expr ix = b.define_integer("x", z, {0, x[3].range().high - 1});
      const std::string pixel = s.read(0, {s.index[0], channel, iy, ix});
      b.line(value + " += " + pixel + " * (1 - fabs(" + position[0] + " - " + index_source(iy) + ")) * (1 - fabs(" +
             position[1] + " - " + index_source(ix) + "));");
      b.close();
    });
    std::string factor = s.read(1, {s.index[1], k[0], k[1], k[2]});
    if (s.has(4)) factor += " * " + s.read(4, {s.index[0], plane, s.index[2], s.index[3]});
    b.line(a + " += " + value + " * " + factor + ";");
  });
  return s.result(a);
}

inline constexpr std::array convolution_emitters{
    emitter_row{"", "Conv", emit_convolution},
    emitter_row{"", "ConvInteger", emit_integer_convolution},
    emitter_row{"", "QLinearConv", emit_qlinear_convolution},
    emitter_row{"", "ConvTranspose", emit_transposed_convolution},
    emitter_row{"", "DeformConv", emit_deformable_convolution},
    emitter_row{"", "CausalConvWithState", emit_causal_convolution},
    emitter_row{"", "Col2Im", emit_column_sum},
};

}  // namespace dnnopt::codegen

#endif  // DNNOPT_BACKEND_CODEGEN_ELEMENTS_CONVOLUTION_HPP

// Owns the element expressions of pooling: maxima with indices, averages, p-norms, global pools, unpooling, regions.
#ifndef DNNOPT_BACKEND_CODEGEN_ELEMENTS_POOLING_HPP
#define DNNOPT_BACKEND_CODEGEN_ELEMENTS_POOLING_HPP

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <dnnopt/backend/codegen/elements/convolution.hpp>
#include <dnnopt/backend/codegen/elements/reduction.hpp>

namespace dnnopt::codegen {

/// The windows of a pool over input 0.
[[nodiscard]] inline std::vector<window_axis> pool_windows(const element_site& s) {
  const shape& x = s.dims(0);
  return with_settled_padding(s, windows(s.attributes(), shape(x.begin() + 2, x.end()),
                                         s.attributes().require<std::vector<std::int64_t>>("kernel_shape"),
                                         s.attributes().get_int("ceil_mode", 0) != 0));
}

[[nodiscard]] inline std::vector<index_expr> pixel(const element_site& s, std::span<const index_expr> spatial) {
  std::vector<index_expr> at{s.index[0], s.index[1]};
  at.insert(at.end(), spatial.begin(), spatial.end());
  return at;
}

inline std::string emit_max_pool(kernel_builder& b, node_id id, std::size_t output, std::span<const index_expr> index) {
  const element_site s(b, id, output, index);
  const std::vector<window_axis> axes = pool_windows(s);
  const shape& x = s.dims(0);
  const std::string best = b.variable(s.input_compute(), extreme_of(s.type_of(0), true));
  const bool real = element_site::is_real(s.input_compute());
  const std::string where = output == 1 ? b.variable(compute_type::integer, "-1") : "";
  window_loops(s, axes, std::span<const index_expr>(s.index).subspan(2),
               [&](const std::vector<index_expr>& at, const std::vector<index_expr>&) {
                 const std::string element = s.read(0, pixel(s, at));
                 if (output == 0) {
                   b.line(best + " = " + element + " > " + best + (real ? " || " + element + " != " + element : "") +
                          " ? " + element + " : " + best + ";");
                   return;
                 }
                 // Indices count all elements of the input; column-major order applies to the spatial dims.
                 index_expr offset = 0;
                 if (s.attributes().get_int("storage_order", 0) == 0) {
                   for (std::size_t i = 0; i < at.size(); ++i) offset = offset * x[2 + i] + at[i];
                 } else {
                   for (std::size_t i = at.size(); i-- > 0;) offset = offset * x[2 + i] + at[i];
                 }
                 const index_expr plane = element_count(shape(x.begin() + 2, x.end()));
                 b.line("if (" + where + " < 0 || " + element + " > " + best + ") { " + best + " = " + element + "; " +
                        where + " = " + index_source((s.index[0] * x[1] + s.index[1]) * plane + offset) + "; }");
               });
  return output == 0 ? best : where;
}

/// How many elements of the window of an average at spatial index `at` count, in OpenCL C: it follows per dim, those
/// inside the input, or inside its padding as well.
[[nodiscard]] inline std::string pooled_count(const element_site& s, std::span<const window_axis> axes,
                                              std::span<const index_expr> at) {
  const bool padding_counts = s.attributes().get_int("count_include_pad", 0) != 0;
  std::string count;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const window_axis& axis = axes[i];
    const index_expr first = at[i] * axis.stride - axis.pad_begin;
    const index_expr low = padding_counts ? index_expr(0) - axis.pad_begin : index_expr(0);
    const index_expr high = padding_counts ? axis.input + axis.pad_end : axis.input;
    const index_expr skipped = max(ceildiv(low - first, axis.dilation), 0);
    const index_expr reached = min(ceildiv(high - first, axis.dilation), axis.kernel);
    count += (count.empty() ? "" : " * ") + index_source(reached - skipped);
  }
  return count;
}

/// The mean of a window whose elements have the `sum`, at spatial index `at`, in OpenCL C. A mean of few codes often
/// lies between two others, so what quantizes it wants it rounded as engines round it.
[[nodiscard]] inline std::string window_mean(const element_site& s, std::span<const window_axis> axes,
                                             std::span<const index_expr> at, std::string_view sum, compute_type type) {
  return "dnnopt_quotient(" + std::string(sum) + ", (" + std::string(name_of(type)) + ")(" + pooled_count(s, axes, at) +
         "))";
}

inline std::string emit_average_pool(kernel_builder& b, node_id id, std::size_t output,
                                     std::span<const index_expr> index) {
  const element_site s(b, id, output, index);
  const std::vector<window_axis> axes = pool_windows(s);
  const compute_type type = s.compute();
  const std::string sum = b.variable(type, "0");
  window_loops(
      s, axes, std::span<const index_expr>(s.index).subspan(2),
      [&](const std::vector<index_expr>& at, const std::vector<index_expr>&) {
        b.line(sum + " += " + s.read(0, pixel(s, at)) + ";");
      },
      true);
  return s.result(window_mean(s, axes, std::span<const index_expr>(s.index).subspan(2), sum, type));
}

inline std::string emit_lp_pool(kernel_builder& b, node_id id, std::size_t output, std::span<const index_expr> index) {
  const element_site s(b, id, output, index);
  const std::vector<window_axis> axes = pool_windows(s);
  const compute_type type = s.compute();
  const std::string p = literal(type, static_cast<double>(s.attributes().get_int("p", 2)));
  const std::string sum = b.variable(type, "0");
  window_loops(
      s, axes, std::span<const index_expr>(s.index).subspan(2),
      [&](const std::vector<index_expr>& at, const std::vector<index_expr>&) {
        b.line(sum + " += pow(fabs(" + s.read(0, pixel(s, at)) + "), " + p + ");");
      },
      true);
  return s.result("pow(" + sum + ", 1 / " + p + ")");
}

inline std::string emit_global_pool(kernel_builder& b, node_id id, std::size_t output,
                                    std::span<const index_expr> index) {
  const element_site s(b, id, output, index);
  const shape& x = s.dims(0);
  const shape extents(x.begin() + 2, x.end());
  const compute_type type = s.compute();
  const std::string_view name = s.n().op->name;
  if (name == "GlobalMaxPool") {
    const std::string best = b.variable(type, extreme_of(s.type_of(0), true));
    s.loops("r", extents, [&](const std::vector<index_expr>& at) {
      const std::string element = s.read(0, pixel(s, at));
      b.line(best + " = " + element + " > " + best + " || " + element + " != " + element + " ? " + element + " : " +
             best + ";");
    });
    return best;
  }
  const std::string sum = b.variable(type, "0");
  const std::string p = literal(type, static_cast<double>(s.attributes().get_int("p", 2)));
  s.loops("r", extents, [&](const std::vector<index_expr>& at) {
    const std::string element = s.read(0, pixel(s, at));
    b.line(sum + " += " + (name == "GlobalLpPool" ? "pow(fabs(" + element + "), " + p + ")" : element) + ";");
  });
  if (name == "GlobalLpPool") return s.result("pow(" + sum + ", 1 / " + p + ")");
  return s.result(sum + " / " + index_source(element_count(extents)));
}

/// Each output element looks for the pooled element whose index names it; the last one wins, as in a sequential
/// scatter.
inline std::string emit_max_unpool(kernel_builder& b, node_id id, std::size_t output,
                                   std::span<const index_expr> index) {
  const element_site s(b, id, output, index);
  const shape& x = s.dims(0);
  const shape extents(x.begin() + 2, x.end());
  // Indices count the elements of the tensor that was pooled, whose dims follow from the window.
  shape pooled{x[0], x[1]};
  const auto kernel = s.attributes().require<std::vector<std::int64_t>>("kernel_shape");
  const auto strides = s.attributes().get_ints("strides", std::vector<std::int64_t>(kernel.size(), 1));
  const auto pads = s.attributes().get_ints("pads", std::vector<std::int64_t>(2 * kernel.size(), 0));
  for (std::size_t i = 0; i < kernel.size(); ++i)
    pooled.push_back((x[2 + i] - 1) * strides[i] + kernel[i] - pads[i] - pads[i + kernel.size()]);
  index_expr wanted = 0;
  std::string test;
  for (std::size_t i = 0; i < pooled.size(); ++i) {
    wanted = wanted * pooled[i] + s.index[i];
    test = both(std::move(test), kernel_builder::within(s.index[i], pooled[i]));
  }
  const std::string result = b.variable(s.compute(), "0");
  s.loops("r", extents, [&](const std::vector<index_expr>& at) {
    const std::string where = s.read(1, pixel(s, at));
    b.open("if (" + both(test, where + " == " + index_source(wanted)) + ") {");
    b.line(result + " = " + s.read(0, pixel(s, at)) + ";");
    b.close();
  });
  return result;
}

/// The name of a function f(a, b, c) = a * b + c with both roundings, which no compiler makes one, for the type.
[[nodiscard]] inline std::string rounded_product_sum(kernel_builder& b, compute_type type) {
  if (type == compute_type::real) return "dnnopt_rounded_product_sum";
  b.add_function(
      "#ifndef DNNOPT_ROUNDED_PRODUCT_SUM_DOUBLE\n#define DNNOPT_ROUNDED_PRODUCT_SUM_DOUBLE\n"
      "static inline double dnnopt_rounded_product_sum_double(double a, double b, double c) {\n"
      "#pragma OPENCL FP_CONTRACT OFF\n  const double product = a * b;\n  return product + c;\n}\n#endif\n");
  return "dnnopt_rounded_product_sum_double";
}

/// RoiAlign: averages (or takes the maximum of) bilinear samples in each bin of a region. Coordinates are rounded after
/// each operation, in ONNX Runtime's order, because a sample at a border counts or not by their last bit.
inline std::string emit_roi_align(kernel_builder& b, node_id id, std::size_t output,
                                  std::span<const index_expr> index) {
  const element_site s(b, id, output, index);
  const shape& x = s.dims(0);
  const compute_type type = s.compute();
  const std::string real(name_of(type));
  const bool half = s.attributes().get_string("coordinate_transformation_mode", "half_pixel") == "half_pixel";
  const bool average = s.attributes().get_string("mode", "avg") == "avg";
  const std::int64_t ratio = s.attributes().get_int("sampling_ratio", 0);
  const std::string scale = literal(type, static_cast<double>(s.attributes().get_float("spatial_scale", 1.0f)));
  const index_expr batch = s.read_index(2, std::vector<index_expr>{s.index[0]}, x[0]);
  const std::string product_sum = rounded_product_sum(b, type);
  const auto corner = [&](std::int64_t i) {
    return b.let(type, product_sum + "(" + s.read(1, {s.index[0], i}) + ", " + scale + (half ? ", -0.5f)" : ", 0)"));
  };
  const std::string x1 = corner(0);
  const std::string y1 = corner(1);
  const std::string x2 = corner(2);
  const std::string y2 = corner(3);
  const auto extent = [&](const std::string& low, const std::string& high) {
    return b.let(type, half ? high + " - " + low : "fmax(" + high + " - " + low + ", (" + real + ")1)");
  };
  const auto quotient = [&](const std::string& of, const index_expr& by) {
    return "dnnopt_quotient(" + of + ", (" + real + ")" + index_source(by) + ")";
  };
  const index_expr out_h = s.out_dims()[2];
  const index_expr out_w = s.out_dims()[3];
  const std::string bin_h = b.let(type, quotient(extent(y1, y2), out_h));
  const std::string bin_w = b.let(type, quotient(extent(x1, x2), out_w));
  const expr_range grid_range{0, 1 << 20};
  const auto samples = [&](const std::string& bin) {
    return ratio > 0 ? index_expr(ratio) : b.define_integer("s", "(int)ceil(" + bin + ")", grid_range);
  };
  const index_expr grid_h = samples(bin_h);
  const index_expr grid_w = samples(bin_w);
  const std::string sum = b.variable(type, average ? "0" : "-INFINITY");
  s.loops("r", std::vector<index_expr>{grid_h, grid_w}, [&](const std::vector<index_expr>& g) {
    const auto position = [&](const std::string& low, const index_expr& at, const std::string& bin,
                              const index_expr& sample, const index_expr& grid) {
      return b.let(type, product_sum + "(" + index_source(at) + ", " + bin + ", " + low + ") + " +
                             quotient("(" + index_source(sample) + " + 0.5f) * " + bin, grid));
    };
    const std::string y = position(y1, s.index[2], bin_h, g[0], grid_h);
    const std::string z = position(x1, s.index[3], bin_w, g[1], grid_w);
    const std::string height = index_source(x[2]);
    const std::string width = index_source(x[3]);
    b.open("if (" + y + " >= -1 && " + y + " <= " + height + " && " + z + " >= -1 && " + z + " <= " + width + ") {");
    const auto taps = [&](const std::string& p, const index_expr& dim) {
      const std::string clamped =
          b.let(type, "clamp(" + p + ", (" + real + ")0, (" + real + ")(" + index_source(dim) + " - 1))");
      const index_expr low =
          b.define_integer("l", "(int)" + clamped, {0, std::max<std::int64_t>(dim.range().high - 1, 0)});
      const index_expr high = b.define_integer("h", index_source(min(low + 1, dim - 1)),
                                               {0, std::max<std::int64_t>(dim.range().high - 1, 0)});
      const std::string part = b.let(type, clamped + " - " + index_source(low));
      return std::tuple{low, high, part};
    };
    const auto [ylow, yhigh, yp] = taps(y, x[2]);
    const auto [xlow, xhigh, xp] = taps(z, x[3]);
    const auto weighted = [&](const index_expr& yi, const index_expr& xi, const std::string& weight) {
      return b.let(type, "(" + weight + ") * " + s.read(0, {batch, s.index[1], yi, xi}));
    };
    const std::string w00 = weighted(ylow, xlow, "(1 - " + yp + ") * (1 - " + xp + ")");
    const std::string w01 = weighted(ylow, xhigh, "(1 - " + yp + ") * " + xp);
    const std::string w10 = weighted(yhigh, xlow, yp + " * (1 - " + xp + ")");
    const std::string w11 = weighted(yhigh, xhigh, yp + " * " + xp);
    if (average)
      b.line(sum + " += " + w00 + " + " + w01 + " + " + w10 + " + " + w11 + ";");
    else
      b.line(sum + " = fmax(" + sum + ", fmax(fmax(" + w00 + ", " + w01 + "), fmax(" + w10 + ", " + w11 + ")));");
    b.close();
    if (!average) {
      b.open("else {");
      b.line(sum + " = fmax(" + sum + ", (" + real + ")0);");
      b.close();
    }
  });
  if (average) {
    const std::string samples_taken = index_source(grid_h * grid_w);
    return s.result(sum + " / (" + samples_taken + " > 1 ? (" + real + ")" + samples_taken + " : (" + real + ")1)");
  }
  return s.result(sum + " == -INFINITY ? 0 : " + sum);
}

inline constexpr std::array pooling_emitters{
    emitter_row{"", "MaxPool", emit_max_pool},
    emitter_row{"", "AveragePool", emit_average_pool},
    emitter_row{"", "LpPool", emit_lp_pool},
    emitter_row{"", "GlobalAveragePool", emit_global_pool},
    emitter_row{"", "GlobalMaxPool", emit_global_pool},
    emitter_row{"", "GlobalLpPool", emit_global_pool},
    emitter_row{"", "MaxUnpool", emit_max_unpool},
    emitter_row{"", "RoiAlign", emit_roi_align},
};

}  // namespace dnnopt::codegen

#endif  // DNNOPT_BACKEND_CODEGEN_ELEMENTS_POOLING_HPP

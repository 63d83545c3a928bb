// Owns the element expressions of pooling: maxima with indices, averages, p-norms, global pools, unpooling, regions.
#ifndef DNNOPT_BACKEND_CODEGEN_ELEMENTS_POOLING_HPP
#define DNNOPT_BACKEND_CODEGEN_ELEMENTS_POOLING_HPP

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
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

/// GlobalMaxPool.
inline std::string emit_global_maximum(kernel_builder& b, node_id id, std::size_t output,
                                       std::span<const index_expr> index) {
  const element_site s(b, id, output, index);
  const shape extents(s.dims(0).begin() + 2, s.dims(0).end());
  const std::string best = b.variable(s.compute(), extreme_of(s.type_of(0), true));
  s.loops("r", extents, [&](const std::vector<index_expr>& at) {
    const std::string element = s.read(0, pixel(s, at));
    b.line(best + " = " + element + " > " + best + " || " + element + " != " + element + " ? " + element + " : " +
           best + ";");
  });
  return best;
}

/// GlobalLpPool: the root of the sum of powers of magnitudes.
inline std::string emit_global_norm(kernel_builder& b, node_id id, std::size_t output,
                                    std::span<const index_expr> index) {
  const element_site s(b, id, output, index);
  const shape extents(s.dims(0).begin() + 2, s.dims(0).end());
  const compute_type type = s.compute();
  const std::string sum = b.variable(type, "0");
  const std::string p = literal(type, static_cast<double>(s.attributes().get_int("p", 2)));
  s.loops("r", extents, [&](const std::vector<index_expr>& at) {
    b.line(sum + " += pow(fabs(" + s.read(0, pixel(s, at)) + "), " + p + ");");
  });
  return s.result("pow(" + sum + ", 1 / " + p + ")");
}

/// GlobalAveragePool.
inline std::string emit_global_mean(kernel_builder& b, node_id id, std::size_t output,
                                    std::span<const index_expr> index) {
  const element_site s(b, id, output, index);
  const shape extents(s.dims(0).begin() + 2, s.dims(0).end());
  const std::string sum = b.variable(s.compute(), "0");
  s.loops("r", extents,
          [&](const std::vector<index_expr>& at) { b.line(sum + " += " + s.read(0, pixel(s, at)) + ";"); });
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

namespace detail {

/// One spatial dim of the bin of RoiAlign that an output element stands for; texts are OpenCL C.
struct region_axis {
  std::string begin;   ///< where the region begins
  std::string length;  ///< of each of its bins
  index_expr bin;      ///< which of its bins
  index_expr dim;      ///< of the input
  index_expr samples;  ///< in a bin
};

/// The two elements of a spatial dim between which a sample lies, and how far it is from the lower to the higher one.
struct sample_taps {
  index_expr low;
  index_expr high;
  std::string part;  ///< in OpenCL C
};

/// Writes an output element of RoiAlign: the samples of one bin of a region. Coordinates are rounded after each
/// operation, in ONNX Runtime's order, because a sample at a border counts or not by their last bit.
class region_bin {
 public:
  /// Precondition: the site's node is a RoiAlign, and the site outlives the bin.
  explicit region_bin(const element_site& site)
      : s_(site),
        b_(site.b),
        type_(site.compute()),
        real_(name_of(type_)),
        half_(site.attributes().get_string("coordinate_transformation_mode", "half_pixel") == "half_pixel"),
        average_(site.attributes().get_string("mode", "avg") == "avg"),
        ratio_(site.attributes().get_int("sampling_ratio", 0)),
        scale_(literal(type_, static_cast<double>(site.attributes().get_float("spatial_scale", 1.0f)))),
        batch_(site.read_index(2, std::vector<index_expr>{site.index[0]}, site.dims(0)[0])),
        product_sum_(rounded_product_sum(b_, type_)) {}

  /// The average or the maximum of the bin's samples, in OpenCL C.
  [[nodiscard]] std::string value() const {
    const std::array<region_axis, 2> axes = measured_axes();
    const std::string sum = b_.variable(type_, average_ ? "0" : "-INFINITY");
    s_.loops("r", std::vector<index_expr>{axes[0].samples, axes[1].samples}, [&](const std::vector<index_expr>& at) {
      const std::string y = position(axes[0], at[0]);
      const std::string x = position(axes[1], at[1]);
      b_.open("if (" + reaches(y, axes[0]) + " && " + reaches(x, axes[1]) + ") {");
      add_sample(sum, y, x, axes);
      b_.close();
      if (!average_) {
        b_.open("else {");
        b_.line(sum + " = fmax(" + sum + ", (" + real_ + ")0);");
        b_.close();
      }
    });
    if (!average_) return s_.result(sum + " == -INFINITY ? 0 : " + sum);
    const std::string taken = index_source(axes[0].samples * axes[1].samples);
    return s_.result(sum + " / (" + taken + " > 1 ? (" + real_ + ")" + taken + " : (" + real_ + ")1)");
  }

 private:
  /// Rows and columns, whose places and lengths are computed from the region's corners.
  [[nodiscard]] std::array<region_axis, 2> measured_axes() const {
    const shape& dims = s_.dims(0);
    const std::string left = corner(0);
    const std::string top = corner(1);
    const std::string right = corner(2);
    const std::string bottom = corner(3);
    const std::string height = bin_length(top, bottom, s_.out_dims()[2]);
    const std::string width = bin_length(left, right, s_.out_dims()[3]);
    const index_expr rows = samples(height);
    const index_expr columns = samples(width);
    return {region_axis{top, height, s_.index[2], dims[2], rows},
            region_axis{left, width, s_.index[3], dims[3], columns}};
  }
  /// A coordinate of the region's corners, in elements of the input.
  [[nodiscard]] std::string corner(std::int64_t i) const {
    return b_.let(type_,
                  product_sum_ + "(" + s_.read(1, {s_.index[0], i}) + ", " + scale_ + (half_ ? ", -0.5f)" : ", 0)"));
  }
  /// The length of each of `count` bins between two coordinates.
  [[nodiscard]] std::string bin_length(const std::string& low, const std::string& high, const index_expr& count) const {
    const std::string whole =
        b_.let(type_, half_ ? high + " - " + low : "fmax(" + high + " - " + low + ", (" + real_ + ")1)");
    return b_.let(type_, quotient(whole, count));
  }
  /// A quotient rounded as engines round it.
  [[nodiscard]] std::string quotient(const std::string& of, const index_expr& by) const {
    return "dnnopt_quotient(" + of + ", (" + real_ + ")" + index_source(by) + ")";
  }
  /// How many samples a bin of that length has along its dim.
  [[nodiscard]] index_expr samples(const std::string& length) const {
    const expr_range range{0, 1 << 20};
    return ratio_ > 0 ? index_expr(ratio_) : b_.define_integer("s", "(int)ceil(" + length + ")", range);
  }
  /// The coordinate of a sample of the bin.
  [[nodiscard]] std::string position(const region_axis& axis, const index_expr& sample) const {
    return b_.let(type_, product_sum_ + "(" + index_source(axis.bin) + ", " + axis.length + ", " + axis.begin + ") + " +
                             quotient("(" + index_source(sample) + " + 0.5f) * " + axis.length, axis.samples));
  }
  /// The test that a sample is at most one element outside the input.
  [[nodiscard]] static std::string reaches(const std::string& at, const region_axis& axis) {
    return at + " >= -1 && " + at + " <= " + index_source(axis.dim);
  }
  /// Adds the sample at row `y` and column `x`, interpolated between four elements, to `sum`.
  void add_sample(const std::string& sum, const std::string& y, const std::string& x,
                  const std::array<region_axis, 2>& axes) const {
    const sample_taps row = taps(y, axes[0].dim);
    const sample_taps column = taps(x, axes[1].dim);
    const std::string w00 = weighted(row.low, column.low, "(1 - " + row.part + ") * (1 - " + column.part + ")");
    const std::string w01 = weighted(row.low, column.high, "(1 - " + row.part + ") * " + column.part);
    const std::string w10 = weighted(row.high, column.low, row.part + " * (1 - " + column.part + ")");
    const std::string w11 = weighted(row.high, column.high, row.part + " * " + column.part);
    if (average_)
      b_.line(sum + " += " + w00 + " + " + w01 + " + " + w10 + " + " + w11 + ";");
    else
      b_.line(sum + " = fmax(" + sum + ", fmax(fmax(" + w00 + ", " + w01 + "), fmax(" + w10 + ", " + w11 + ")));");
  }
  /// The elements beside coordinate `at` of a dim, to whose first and last one it is clamped.
  [[nodiscard]] sample_taps taps(const std::string& at, const index_expr& dim) const {
    const expr_range inside{0, std::max<std::int64_t>(dim.range().high - 1, 0)};
    const std::string clamped =
        b_.let(type_, "clamp(" + at + ", (" + real_ + ")0, (" + real_ + ")(" + index_source(dim) + " - 1))");
    const index_expr low = b_.define_integer("l", "(int)" + clamped, inside);
    const index_expr high = b_.define_integer("h", index_source(min(low + 1, dim - 1)), inside);
    return {low, high, b_.let(type_, clamped + " - " + index_source(low))};
  }
  /// The element of the region's image and the output's channel at a row and a column, times `weight`.
  [[nodiscard]] std::string weighted(const index_expr& row, const index_expr& column, const std::string& weight) const {
    return b_.let(type_, "(" + weight + ") * " + s_.read(0, {batch_, s_.index[1], row, column}));
  }

  const element_site& s_;
  kernel_builder& b_;
  compute_type type_;
  std::string real_;  ///< the type's name
  bool half_;         ///< whether coordinates count from the middle of the first element
  bool average_;
  std::int64_t ratio_;       ///< samples of a bin along each dim; 0: as many as it has elements
  std::string scale_;        ///< from the coordinates of regions to elements
  index_expr batch_;         ///< the image of the region
  std::string product_sum_;  ///< the name of rounded_product_sum
};

}  // namespace detail

/// RoiAlign: averages (or takes the maximum of) bilinear samples in each bin of a region.
inline std::string emit_roi_align(kernel_builder& b, node_id id, std::size_t output,
                                  std::span<const index_expr> index) {
  const element_site s(b, id, output, index);
  return detail::region_bin(s).value();
}

inline constexpr std::array pooling_emitters{
    emitter_row{"", "MaxPool", emit_max_pool},
    emitter_row{"", "AveragePool", emit_average_pool},
    emitter_row{"", "LpPool", emit_lp_pool},
    emitter_row{"", "GlobalAveragePool", emit_global_mean},
    emitter_row{"", "GlobalMaxPool", emit_global_maximum},
    emitter_row{"", "GlobalLpPool", emit_global_norm},
    emitter_row{"", "MaxUnpool", emit_max_unpool},
    emitter_row{"", "RoiAlign", emit_roi_align},
};

}  // namespace dnnopt::codegen

#endif  // DNNOPT_BACKEND_CODEGEN_ELEMENTS_POOLING_HPP

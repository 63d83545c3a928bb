// Owns the element expressions of resampling: Resize, Upsample.
#ifndef DNNOPT_BACKEND_CODEGEN_ELEMENTS_RESAMPLING_HPP
#define DNNOPT_BACKEND_CODEGEN_ELEMENTS_RESAMPLING_HPP

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dnnopt/backend/codegen/elements/element_site.hpp>

namespace dnnopt::codegen {

/// How one axis is resampled: C expressions of the scale and of the bounds of a crop.
struct resized_axis {
  std::size_t axis = 0;
  std::optional<float> scale;  ///< known before execution; else `scale_source` is output / input
  std::string scale_source;
  double crop_low = 0;
  double crop_high = 1;
};

/// Taps of an interpolation along one axis: the weight and the input index of each.
struct resample_taps {
  std::int64_t count = 1;
  /// Names of arrays that hold them; empty where each has a name of its own, for compilers for processors do not
  /// vectorize loops over arrays inside a work-item.
  std::string weights;
  std::string positions;
  std::vector<std::string> weight_of;
  std::vector<index_expr> position_of;
};

/// At most so many products of taps are written out one by one.
inline constexpr std::int64_t most_written_taps = 16;

/// What an operator that resizes leaves out of Resize's attributes and inputs.
struct resizing_rules {
  std::string_view op;
  std::size_t scales = 2;              ///< the input that holds scales
  std::string_view coordinates = {};   ///< of the operator; empty: its attribute says
  std::string_view nearest_mode = {};  ///< the same
};
inline constexpr std::array resizing_table{resizing_rules{"Resize"},
                                           resizing_rules{"Upsample", 1, "asymmetric", "floor"}};

/// Those of a site's operator. Precondition: it is one of the table.
[[nodiscard]] inline const resizing_rules& rules_of(const element_site& s) {
  return *std::find_if(resizing_table.begin(), resizing_table.end(),
                       [&](const resizing_rules& row) { return row.op == s.n().op->name; });
}

/// The axes whose coordinates change. Errors: unsupported where neither scales nor sizes are known.
[[nodiscard]] inline std::vector<resized_axis> resized_axes(const element_site& s) {
  const shape& in = s.dims(0);
  const shape& out = s.out_dims();
  std::vector<std::size_t> axes;
  if (s.attributes().contains("axes"))
    for (const std::int64_t a : s.attributes().get_ints("axes")) axes.push_back(normalize_axis(a, in.size()));
  else
    for (std::size_t k = 0; k < in.size(); ++k) axes.push_back(k);
  const std::size_t scale_slot = rules_of(s).scales;
  std::vector<double> scales;
  const bool by_scale = s.has(scale_slot) && !(element_count(s.dims(scale_slot)) == index_expr(0));
  if (by_scale) scales = *s.numbers(scale_slot);
  const bool crops = s.attributes().get_string("coordinate_transformation_mode", "") == "tf_crop_and_resize";
  std::vector<double> roi;
  if (crops) roi = s.numbers(1).value_or(std::vector<double>());
  if (crops && roi.size() != 2 * axes.size())
    throw s.refuse("the region has another number of bounds than there are axes");
  if (by_scale && scales.size() != axes.size()) throw s.refuse("there are other scales than axes");
  const std::string policy = s.attributes().get_string("keep_aspect_ratio_policy", "stretch");
  std::optional<float> common;
  if (!by_scale && policy != "stretch") {
    // The policy takes one scale for all axes: the smallest or largest of what the sizes ask for.
    const auto sizes = s.integers(3);
    if (!sizes || sizes->size() != axes.size()) throw s.refuse("there are other sizes than axes");
    for (std::size_t k = 0; k < axes.size(); ++k) {
      if (!in[axes[k]].is_constant()) throw s.refuse("an aspect ratio is kept over dims that are not known");
      const float own = static_cast<float>((*sizes)[k]) / static_cast<float>(in[axes[k]].constant());
      common = !common ? own : policy == "not_larger" ? std::min(*common, own) : std::max(*common, own);
    }
  }
  std::vector<resized_axis> result;
  for (std::size_t k = 0; k < axes.size(); ++k) {
    resized_axis a;
    a.axis = axes[k];
    if (by_scale)
      a.scale = static_cast<float>(scales.at(k));
    else if (common)
      a.scale = common;
    else if (in[a.axis].is_constant() && out[a.axis].is_constant())
      a.scale = static_cast<float>(out[a.axis].constant()) /
                static_cast<float>(std::max<std::int64_t>(in[a.axis].constant(), 1));
    if (crops) {
      a.crop_low = roi[k];
      a.crop_high = roi[k + axes.size()];
    } else if (a.scale == 1.0F && in[a.axis] == out[a.axis]) {
      continue;
    }
    a.scale_source = a.scale ? literal(compute_type::real, static_cast<double>(*a.scale))
                             : s.b.let(compute_type::real, "dnnopt_quotient((float)" + index_source(out[a.axis]) +
                                                               ", (float)" + index_source(in[a.axis]) + ")");
    result.push_back(std::move(a));
  }
  return result;
}

/// Where all lengths stay as they are, all elements do, whatever the scales: a test of that in OpenCL C; empty where it
/// is known not to hold, "1" where it is known to.
[[nodiscard]] inline std::string test_of_equal_lengths(const element_site& s) {
  const shape& in = s.dims(0);
  const shape& out = s.out_dims();
  std::string test;
  for (std::size_t k = 0; k < in.size(); ++k) {
    if (in[k] == out[k]) continue;
    const expr_range apart = (out[k] - in[k]).range();
    if (apart.low > 0 || apart.high < 0) return "";
    test = both(std::move(test), index_source(in[k]) + " == " + index_source(out[k]));
  }
  return test.empty() ? "1" : test;
}

/// The coordinate in the input, as a C name: in the order of operations of ops::source_coordinate. Source: ONNX
/// operator documentation, Resize.
[[nodiscard]] inline std::string original_coordinate(const element_site& s, const resized_axis& a,
                                                     const std::string& unchanged = "") {
  const std::string x = "(float)" + index_source(s.index[a.axis]);
  const std::string in = "(float)" + index_source(s.dims(0)[a.axis]);
  const std::string out = "(float)" + index_source(s.out_dims()[a.axis]);
  const std::string& scale = a.scale_source;
  const std::string_view fixed = rules_of(s).coordinates;
  const std::string mode =
      fixed.empty() ? s.attributes().get_string("coordinate_transformation_mode", "half_pixel") : std::string(fixed);
  const std::string centre = "dnnopt_quotient(" + x + " + 0.5f, " + scale + ")";
  std::string text;
  if (mode == "half_pixel") {
    text = centre + " - 0.5f";
  } else if (mode == "pytorch_half_pixel") {
    text = "(" + out + " > 1.0f ? " + centre + " - 0.5f : 0.0f)";
  } else if (mode == "half_pixel_symmetric") {
    text = "dnnopt_rounded_product_sum(" + in + " * 0.5f, 1.0f - dnnopt_quotient(" + out + ", " + scale + " * " + in +
           "), " + centre + ") - 0.5f";
  } else if (mode == "asymmetric") {
    text = "dnnopt_quotient(" + x + ", " + scale + ")";
  } else if (mode == "align_corners") {
    text = "(" + out + " == 1.0f ? 0.0f : dnnopt_quotient(" + x + " * (" + in + " - 1.0f), " + out + " - 1.0f))";
  } else if (mode == "tf_half_pixel_for_nn") {
    // The one mode that moves an axis of unchanged length; where only the run tells the lengths, it tells that too.
    text = a.scale ? centre : "(" + out + " == " + in + " ? " + x + " : " + centre + ")";
  } else if (mode == "tf_crop_and_resize") {
    const std::string low = literal(compute_type::real, a.crop_low);
    const std::string high = literal(compute_type::real, a.crop_high);
    text = "(" + out + " > 1.0f ? dnnopt_rounded_product_sum(" + low + ", " + in + " - 1.0f, dnnopt_quotient(" + x +
           " * (" + high + " - " + low + ") * (" + in + " - 1.0f), " + out + " - 1.0f)) : 0.5f * (" + low + " + " +
           high + ") * (" + in + " - 1.0f))";
  } else {
    throw s.refuse("coordinate mode " + mode);
  }
  return s.b.let(compute_type::real, unchanged.empty() ? text : unchanged + " ? " + x + " : " + text);
}

/// The weight of a tap at distance `d`: linear for a `support` of 1, cubic for 2.
[[nodiscard]] inline std::string tap_weight(const element_site& s, int support, const std::string& d) {
  if (support == 1) return "fmax(1.0f - " + d + ", 0.0f)";
  const std::string a =
      literal(compute_type::real, static_cast<double>(s.attributes().get_float("cubic_coeff_a", -0.75f)));
  return d + " <= 1.0f ? ((" + a + " + 2.0f) * " + d + " - (" + a + " + 3.0f)) * " + d + " * " + d + " + 1.0f : " + d +
         " < 2.0f ? ((" + a + " * " + d + " - 5.0f * " + a + ") * " + d + " + 8.0f * " + a + ") * " + d + " - 4.0f * " +
         a + " : 0.0f";
}

[[nodiscard]] inline expr_range below(const index_expr& extent) {
  return {0, extent.range().high >= unbounded ? (std::int64_t{1} << 31) - 1
                                              : std::max<std::int64_t>(extent.range().high - 1, 0)};
}

/// Emits the two taps around `coordinate`, each under a name of its own. Each weighs as far as the other is away, which
/// has no rounding where 1 - distance would have one.
[[nodiscard]] inline resample_taps emit_linear_taps(const element_site& s, const resized_axis& a,
                                                    const std::string& coordinate) {
  kernel_builder& b = s.b;
  resample_taps taps;
  taps.count = 2;
  const index_expr& in = s.dims(0)[a.axis];
  const std::string last = index_source(in - 1);
  const std::string inside = b.let(compute_type::real, "dnnopt_clip(" + coordinate + ", 0.0f, (float)" + last + ")");
  taps.position_of.push_back(b.define_integer("q", "(int)" + inside, below(in)));
  const std::string low = index_source(taps.position_of[0]);
  taps.position_of.push_back(b.define_integer("q", low + " + (" + low + " < " + last + ")", below(in)));
  const std::string high = index_source(taps.position_of[1]);
  const std::string alone = low + " == " + high + " ? 0.5f : ";
  taps.weight_of = {b.let(compute_type::real, alone + "(float)" + high + " - " + inside),
                    b.let(compute_type::real, alone + inside + " - (float)" + low)};
  return taps;
}

/// Emits weights and clamped positions of the 2 * support taps around `coordinate`, each under a name of its own.
[[nodiscard]] inline resample_taps emit_named_taps(const element_site& s, const resized_axis& a,
                                                   const std::string& coordinate, int support) {
  kernel_builder& b = s.b;
  resample_taps taps;
  taps.count = 2 * support;
  const std::string in = index_source(s.dims(0)[a.axis]);
  const bool exclude = s.attributes().get_int("exclude_outside", 0) != 0;
  const std::string base = b.fresh("f");
  b.line("const int " + base + " = dnnopt_floor_to_int(" + coordinate + ");");
  std::string total;
  for (std::int64_t t = 0; t < taps.count; ++t) {
    const std::string q = b.fresh("t");
    b.line("const int " + q + " = " + base + " + " + std::to_string(t + 1 - support) + ";");
    const std::string d = b.let(compute_type::real, "fabs(" + coordinate + " - (float)" + q + ")");
    std::string weight = tap_weight(s, support, d);
    if (exclude) weight = q + " < 0 || " + q + " >= " + in + " ? 0.0f : " + weight;
    taps.weight_of.push_back(b.let(compute_type::real, weight));
    taps.position_of.push_back(
        b.define_integer("q", "clamp(" + q + ", 0, (int)" + in + " - 1)", below(s.dims(0)[a.axis])));
    total += (t == 0 ? "" : " + ") + taps.weight_of.back();
  }
  if (exclude) {
    const std::string sum = b.let(compute_type::real, total);
    for (std::string& weight : taps.weight_of) weight = b.let(compute_type::real, weight + " / " + sum);
  }
  return taps;
}

/// Emits weights and clamped positions of the taps around `coordinate` as arrays. `support` is 1 (linear) or 2 (cubic);
/// scales below 1 widen it where `antialias`.
[[nodiscard]] inline resample_taps emit_taps(const element_site& s, const resized_axis& a,
                                             const std::string& coordinate, int support, bool antialias) {
  kernel_builder& b = s.b;
  double stretch = 1;
  if (antialias) {
    if (!a.scale) throw s.refuse("antialiasing needs a scale known before execution");
    stretch = static_cast<double>(std::min(*a.scale, 1.0F));
  }
  resample_taps taps;
  const auto first = static_cast<std::int64_t>(std::floor(-support / stretch)) + 1;
  taps.count = 2 - 2 * first;
  taps.weights = b.fresh("w");
  taps.positions = b.fresh("q");
  const std::string count = std::to_string(taps.count);
  const std::string in = index_source(s.dims(0)[a.axis]);
  const bool exclude = s.attributes().get_int("exclude_outside", 0) != 0;
  b.line("float " + taps.weights + "[" + count + "];");
  b.line("int " + taps.positions + "[" + count + "];");
  const std::string total = b.variable(compute_type::real, "0");
  b.open("for (int t = 0; t < " + count + "; ++t) {");
  b.line("const int q = dnnopt_floor_to_int(" + coordinate + ") + t + (" + std::to_string(first) + ");");
  b.line("const float d = fabs(" + coordinate + " - (float)q) * " + literal(compute_type::real, stretch) + ";");
  b.line("float w = " + tap_weight(s, support, "d") + ";");
  if (exclude) b.line("if (q < 0 || q >= " + in + ") w = 0.0f;");
  b.line(taps.weights + "[t] = w;");
  b.line(taps.positions + "[t] = clamp(q, 0, (int)" + in + " - 1);");
  b.line(total + " += w;");
  b.close();
  if (exclude || antialias) b.line("for (int t = 0; t < " + count + "; ++t) " + taps.weights + "[t] /= " + total + ";");
  return taps;
}

/// The integer position nearest to a coordinate, by `nearest_mode`. What floor leaves of a coordinate is exact.
[[nodiscard]] inline std::string nearest_position(const element_site& s, const std::string& coordinate) {
  const std::string_view fixed = rules_of(s).nearest_mode;
  const std::string mode =
      fixed.empty() ? s.attributes().get_string("nearest_mode", "round_prefer_floor") : std::string(fixed);
  const std::string low = "dnnopt_floor_to_int(" + coordinate + ")";
  if (mode == "floor") return low;
  if (mode == "ceil") return "dnnopt_ceil_to_int(" + coordinate + ")";
  const std::string rest = coordinate + " - (float)" + low;
  if (mode == "round_prefer_ceil") return low + " + (" + rest + " >= 0.5f)";
  if (mode == "round_prefer_floor") return low + " + (" + rest + " > 0.5f)";
  throw s.refuse("nearest mode " + mode);
}

/// Why no image's linear filter computes a linear interpolation along `axes`; empty where one does: of a tensor in an
/// image whose planes lie apart, along rows and columns, on a device whose filter is as exact as sums in fp32.
[[nodiscard]] inline std::string reject_filter(const element_site& s, std::span<const resized_axis> axes) {
  constexpr int needed = 20;  // errs by less than 1e-6
  const value_id x = s.n().inputs[0];
  const auto& texels = s.b.g().facts(x).texels;
  if (s.b.is_member_value(x)) return "the same kernel computes what it reads";
  if (!texels) return "what it reads lies in rows";
  if (texels->object == memory_object::buffer || texels->object == memory_object::image1d_buffer)
    return "what it reads lies in an object without samplers: " + std::string(name_of(texels->object));
  if (texels->filter_bits <= 0) return "how exact the device's filter is is not known";
  if (texels->filter_bits < needed) {
    char bits[32];
    std::snprintf(bits, sizeof(bits), "%.1f", texels->filter_bits);
    return "the device's filter is exact to " + std::string(bits) + " bits, " + std::to_string(needed) + " are needed";
  }
  for (const char* const other : {"antialias", "exclude_outside"})
    if (s.attributes().get_int(other, 0) != 0) return "a filter knows no " + std::string(other);
  if (s.attributes().get_string("coordinate_transformation_mode", "") == "tf_crop_and_resize")
    return "a filter knows no value beyond a crop";
  const std::size_t rank = s.dims(0).size();
  for (const resized_axis& a : axes)
    if (a.axis + 2 < rank) return "it interpolates along other dims than rows and columns";
  if (texels->packed + 2 >= rank) return "it interpolates along the packed dim";
  if (!s.b.planes_apart(x)) return "rows of other planes lie beside a plane's own in the image";
  return {};
}

/// The element of a linear interpolation that an image's filter computes. Precondition: reject_filter says nothing.
[[nodiscard]] inline std::string emit_filtered(const element_site& s, std::span<const resized_axis> axes) {
  kernel_builder& b = s.b;
  const value_id x = s.n().inputs[0];
  const std::size_t packed = b.g().facts(x).texels->packed;
  std::vector<index_expr> at = s.index;
  at[packed] = floordiv(at[packed], texel_width);
  const std::string texel = b.read_between(x, s.n().outputs.at(s.output), at, [&] {
    const std::size_t rank = at.size();
    std::pair<std::string, std::string> place{"(float)" + index_source(at[rank - 1]),
                                              "(float)" + index_source(at[rank - 2])};
    for (const resized_axis& a : axes) (a.axis + 1 == rank ? place.first : place.second) = original_coordinate(s, a);
    return place;
  });
  const index_expr component = mod(s.index[packed], texel_width);
  return component.is_constant()
             ? texel + ".s" + std::to_string(component.constant())
             : b.let(compute_type::real, "dnnopt_component(" + texel + ", " + index_source(component) + ")");
}

/// The sum over all products of taps, one along each of `axes`, of weights and elements; `at` is the output's index.
[[nodiscard]] inline std::string emit_interpolation(const element_site& s, std::span<const resized_axis> axes,
                                                    std::span<const resample_taps> taps, std::vector<index_expr> at,
                                                    compute_type type) {
  kernel_builder& b = s.b;
  const std::string sum = b.variable(type, "0");
  // Of integers the sum is cut off: each product rounds as on the host.
  const bool cut = !element_site::is_real(s.compute());
  const auto add = [&](const std::string& weight, const std::string& element) {
    if (cut)
      b.line(sum + " = dnnopt_rounded_product_sum(" + weight + ", (float)" + element + ", " + sum + ");");
    else
      b.line(sum + " += " + element + " * (" + weight + ");");
  };
  if (!taps.empty() && !taps.front().weight_of.empty()) {
    std::int64_t products = 1;
    for (const resample_taps& t : taps) products *= t.count;
    for (std::int64_t product = 0; product < products; ++product) {
      std::string weight;
      std::int64_t rest = product;
      for (std::size_t k = axes.size(); k-- > 0; rest /= taps[k].count) {
        const auto t = static_cast<std::size_t>(rest % taps[k].count);
        at[axes[k].axis] = taps[k].position_of[t];
        weight += (weight.empty() ? "" : " * ") + taps[k].weight_of[t];
      }
      add(weight, s.read(0, at));
    }
    return sum;
  }
  std::vector<index_expr> extents;
  for (const resample_taps& t : taps) extents.emplace_back(t.count);
  s.loops("t", extents, [&](const std::vector<index_expr>& t) {
    std::string weight;
    for (std::size_t k = 0; k < axes.size(); ++k) {
      const std::string number = "[" + index_source(t[k]) + "]";
      at[axes[k].axis] = b.define_integer("q", taps[k].positions + number, below(s.dims(0)[axes[k].axis]));
      weight = taps[k].weights + number + (weight.empty() ? "" : " * ") + weight;
    }
    add(weight, s.read(0, at));
  });
  return sum;
}

inline std::string emit_resize(kernel_builder& b, node_id id, std::size_t output, std::span<const index_expr> index) {
  const element_site s(b, id, output, index);
  const std::string mode = s.attributes().get_string("mode", "nearest");
  const bool crops = s.attributes().get_string("coordinate_transformation_mode", "") == "tf_crop_and_resize";
  if (mode == "nearest" && !crops && s.n().op->view != nullptr) {
    // Exact rational arithmetic, where the operator can state it.
    try {
      return b.emit_by_view(id, output, index);
    } catch (const inexpressible&) {
    }
  }
  const compute_type type = s.compute();
  const std::string equal_lengths = crops ? "" : test_of_equal_lengths(s);
  if (equal_lengths == "1") return s.read(0, s.index);
  const std::vector<resized_axis> axes = resized_axes(s);
  // By given sizes equal lengths have a scale of 1, by whose formulas elements stay.
  bool may_stay = true;
  for (const resized_axis& a : axes) may_stay = may_stay && a.scale && *a.scale >= 1.0F && *a.scale < 2.0F;
  const std::string unchanged = may_stay && !equal_lengths.empty() ? b.let(compute_type::integer, equal_lengths) : "";
  if (mode == "linear" && !axes.empty()) {
    const std::string why = unchanged.empty() ? reject_filter(s, axes) : "its lengths may stay as they are";
    if (why.empty()) return emit_filtered(s, axes);
    b.note("'" + s.n().name + "' interpolates without an image's filter: " + why);
  }
  std::vector<index_expr> at = s.index;
  std::string outside;
  std::vector<resample_taps> taps;
  const int support = mode == "linear" ? 1 : 2;
  const bool antialias = s.attributes().get_int("antialias", 0) != 0;
  if (antialias && mode != "nearest" && !element_site::is_real(type))
    throw s.refuse("an antialiased integer rounds after each axis");
  const bool written =
      !antialias && std::pow(2.0 * support, static_cast<double>(axes.size())) <= static_cast<double>(most_written_taps);
  for (const resized_axis& a : axes) {
    const std::string x = original_coordinate(s, a, unchanged);
    const index_expr& in = s.dims(0)[a.axis];
    if (crops) outside += (outside.empty() ? "" : " || ") + x + " < 0 || " + x + " > " + index_source(in) + " - 1";
    if (mode == "nearest") {
      at[a.axis] = b.define_integer("q", "clamp(" + nearest_position(s, x) + ", 0, (int)" + index_source(in) + " - 1)",
                                    below(in));
    } else if (mode == "linear" || mode == "cubic") {
      taps.push_back(!written           ? emit_taps(s, a, x, support, antialias)
                     : mode == "linear" ? emit_linear_taps(s, a, x)
                                        : emit_named_taps(s, a, x, support));
    } else {
      throw s.refuse("interpolation mode " + mode);
    }
  }
  std::string result;
  if (mode == "nearest") {
    result = s.read(0, at);
  } else {
    const compute_type sum_type = element_site::is_real(type) ? type : compute_type::real;
    const std::string sum = emit_interpolation(s, axes, taps, at, sum_type);
    result = element_site::is_real(type) ? sum : s.result("(" + std::string(name_of(type)) + ")" + sum);
  }
  if (outside.empty()) return result;
  return b.let(type, outside + " ? " +
                         literal(type, static_cast<double>(s.attributes().get_float("extrapolation_value", 0.0f))) +
                         " : " + result);
}

inline constexpr std::array resampling_emitters{
    emitter_row{"", "Resize", emit_resize},
    emitter_row{"", "Upsample", emit_resize},
};

}  // namespace dnnopt::codegen

#endif  // DNNOPT_BACKEND_CODEGEN_ELEMENTS_RESAMPLING_HPP

// Owns the kernels of convolutions: image patches times weights, and rows of thin groups.
#ifndef DNNOPT_BACKEND_CODEGEN_LOWER_CONVOLUTION_HPP
#define DNNOPT_BACKEND_CODEGEN_LOWER_CONVOLUTION_HPP

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <dnnopt/backend/codegen/emitters/convolution.hpp>
#include <dnnopt/backend/codegen/plane_totals.hpp>
#include <dnnopt/backend/codegen/tile_frame.hpp>

namespace dnnopt::codegen {

/// A convolution in the kernel's symbols, its spatial dims brought to three (depth, height, width) by leading ones.
struct convolution_shape {
  index_expr batch;
  std::int64_t group = 1;
  index_expr channels;   ///< input channels per group
  index_expr outputs;    ///< output channels per group
  std::size_t rank = 2;  ///< spatial dims that the operator has
  std::array<window_axis, 3> axes;
  bool pointwise = false;  ///< windows of one element, stride 1, no padding: width counts all positions

  [[nodiscard]] index_expr window() const { return axes[0].kernel * axes[1].kernel * axes[2].kernel; }
  [[nodiscard]] index_expr positions() const { return axes[0].output * axes[1].output * axes[2].output; }
};

[[nodiscard]] inline convolution_shape convolution_of(const element_site& s) {
  convolution_shape c;
  const shape& x = s.dims(0);
  const shape& w = s.dims(1);
  c.batch = x[0];
  c.group = s.attributes().get_int("group", 1);
  c.channels = w[1];
  c.outputs = floordiv(w[0], c.group);
  const std::vector<window_axis> own = windows_of(s, 1);
  c.rank = own.size();
  for (window_axis& axis : c.axes) {
    axis.pad_begin = 0;
    axis.pad_end = 0;
    axis.input = 1;
    axis.output = 1;
  }
  c.pointwise = true;
  for (std::size_t i = 0; i < own.size(); ++i) {
    c.axes[3 - own.size() + i] = own[i];
    c.axes[3 - own.size() + i].output = s.out_dims()[2 + i];
    c.pointwise = c.pointwise && own[i].kernel == 1 && own[i].stride == 1 && own[i].pad_begin == index_expr(0) &&
                  own[i].pad_end == index_expr(0);
  }
  if (c.pointwise) {
    window_axis flat;
    flat.pad_begin = 0;
    flat.pad_end = 0;
    flat.input = c.positions();
    flat.output = flat.input;
    c.axes[2] = flat;
    for (std::size_t i = 0; i < 2; ++i) {
      c.axes[i].input = 1;
      c.axes[i].output = 1;
    }
  }
  return c;
}

[[nodiscard]] inline std::string reject_convolution(const lowering_site& site) {
  const node& n = site.anchor_node();
  if (n.op->arity.most_inputs != 3 || n.op->arity.least_inputs != 2 || n.attributes.contains("output_padding") ||
      n.op->name == "ConvTranspose")
    return "no plain convolution";
  if (std::string why = reject_element_types(site, 3); !why.empty()) return why;
  const auto& dims = site.input(0).dims;
  if (!dims || dims->size() < 3 || dims->size() > 5) return "other than one to three spatial dims";
  const auto& w = site.input(1).dims;
  if (!w || !(*w)[0].is_constant() || !(*w)[1].is_constant())
    return "the numbers of channels are not known before execution";
  return {};
}

/// Defines DNNOPT_<letter>D, ...H and ...W for each of the quantities that the frames name.
inline void define_windows(kernel_builder& b, const convolution_shape& c) {
  const std::array<std::string, 3> letters{"D", "H", "W"};
  for (std::size_t i = 0; i < 3; ++i) {
    const window_axis& a = c.axes[i];
    b.define("DNNOPT_K" + letters[i], a.kernel);
    b.define("DNNOPT_S" + letters[i], a.stride);
    b.define("DNNOPT_D" + letters[i], a.dilation);
    b.define("DNNOPT_P" + letters[i], a.pad_begin);
    b.define("DNNOPT_I" + letters[i], a.input);
    b.define("DNNOPT_O" + letters[i], a.output);
  }
}

/// Defines dnnopt_load_x(z, c, d, h, w): the input element where z counts (batch, group).
inline void define_image_load(kernel_builder& b, const element_site& s, const convolution_shape& c) {
  const std::vector<std::string> names{"z", "c", "d", "h", "w"};
  const index_expr z = b.index("z", c.batch * c.group);
  const index_expr channel = b.index("c", c.channels);
  const std::array<index_expr, 3> position{b.index("d", c.axes[0].input), b.index("h", c.axes[1].input),
                                           b.index("w", c.axes[2].input)};
  std::vector<index_expr> at{floordiv(z, c.group), mod(z, c.group) * c.channels + channel};
  if (c.pointwise) {
    const shape& x = s.dims(0);
    for (const index_expr& i : b.index_at(shape(x.begin() + 2, x.end()), position[2])) at.push_back(i);
  } else {
    at.insert(at.end(), position.end() - static_cast<std::ptrdiff_t>(c.rank), position.end());
  }
  b.define_load("dnnopt_load_x", s.n().inputs[0], at, names);
}

/// The anchor's element: the sum and the bias.
[[nodiscard]] inline std::string biased(kernel_builder& b, const element_site& s, const index_expr& channel) {
  return s.has(2) ? b.let(compute_type::real, "value + " + s.read(2, {channel})) : std::string("value");
}

/// Product of weights [outputs, channels * window] and patches [channels * window, positions], per image and group.
[[nodiscard]] inline lowered_node lower_patches(const lowering_site& site, bool panels) {
  const node& n = site.anchor_node();
  kernel_builder b(site.block, site.options.emitters);
  const element_site s(b, site.anchor, 0, {});
  const convolution_shape c = convolution_of(s);
  const product_extents e{c.batch * c.group, c.outputs, c.positions(), c.channels * c.window()};
  const std::int64_t window = c.window().constant();
  const index_expr z = b.index("z", e.batch);
  const index_expr m = b.index("m", e.rows);
  const index_expr k = b.index("k", e.inner);
  const index_expr position = b.index("n", e.columns);
  lowered_node result;
  const auto weight_index = [](const element_site& own, const convolution_shape& shape_of, const index_expr& group,
                               const index_expr& row, const index_expr& inner) {
    std::vector<index_expr> at{group * shape_of.outputs + row};
    const shape& w = own.dims(1);
    for (const index_expr& i : own.b.index_at(shape(w.begin() + 1, w.end()), inner)) at.push_back(i);
    return at;
  };
  const std::optional<plane_total> total = plane_total_in(site.block);
  const bool packed = panels && packs_constant(site.block, n.inputs[1]);
  panel_sizes p;
  if (panels) {
    p = choose_panels(site, e, packed, false);
    if (total) cover_columns(p, site, e, packed, false);
    b.define("DNNOPT_CONVOLUTION", 1);
    define_panels(b, p, e);
    define_windows(b, c);
    define_image_load(b, s, c);
  }
  if (packed) {
    result.scratch.push_back({c.group * round_up(e.rows.constant(), p.rows) * e.inner.constant() * 4, true});
    result.prepare.push_back(
        pack_kernel(site, 0, c.group, e.rows.constant(), e.inner.constant(), p.rows,
                    [&](kernel_builder& own, const index_expr& pz, const index_expr& i, const index_expr& pk) {
                      const element_site own_site(own, site.anchor, 0, {});
                      return own.emit(n.inputs[1], weight_index(own_site, convolution_of(own_site), pz, i, pk));
                    }));
    b.define("DNNOPT_A_PACKED", 1);
    b.define("DNNOPT_A", b.scratch(0, dtype::float32, false));
    b.define("DNNOPT_A_BATCH", c.group == 1 ? std::string("0") : "(z % " + std::to_string(c.group) + ")");
  } else {
    b.define_load("dnnopt_load_a", n.inputs[1], weight_index(s, c, mod(z, c.group), m, k),
                  std::vector<std::string>{"z", "m", "k"});
  }
  if (!panels) {
    b.define_function("dnnopt_load_b", compute_type::real, std::vector<std::string>{"z", "k", "n"}, [&] {
      const std::vector<index_expr> window_at =
          b.index_at(shape{c.axes[0].kernel, c.axes[1].kernel, c.axes[2].kernel}, mod(k, window));
      const std::vector<index_expr> out_at =
          b.index_at(shape{c.axes[0].output, c.axes[1].output, c.axes[2].output}, position);
      const std::string element = b.variable(compute_type::real, "0");
      std::vector<index_expr> at{floordiv(z, c.group), mod(z, c.group) * c.channels + floordiv(k, window)};
      std::string test;
      std::array<index_expr, 3> own;
      for (std::size_t i = 0; i < 3; ++i) {
        const window_axis& a = c.axes[i];
        own[i] = out_at[i] * a.stride + window_at[i] * a.dilation - a.pad_begin;
        test = both(std::move(test), kernel_builder::within(own[i], a.input));
      }
      s.when(test, [&] {
        for (std::size_t i = 0; i < 3; ++i) own[i] = b.define_index("x", own[i], c.axes[i].input);
        if (c.pointwise) {
          const shape& x = s.dims(0);
          for (const index_expr& i : b.index_at(shape(x.begin() + 2, x.end()), own[2])) at.push_back(i);
        } else {
          at.insert(at.end(), own.end() - static_cast<std::ptrdiff_t>(c.rank), own.end());
        }
        b.line(element + " = " + s.read(0, at) + ";");
      });
      return element;
    });
  }
  const auto define_store = [&](kernel_builder& own) {
    const element_site site_of(own, site.anchor, 0, {});
    const convolution_shape x = convolution_of(site_of);
    const product_extents extents{x.batch * x.group, x.outputs, x.positions(), x.channels * x.window()};
    const index_expr image = own.index("z", extents.batch);
    const index_expr channel = mod(image, x.group) * x.outputs + own.index("m", extents.rows);
    const shape& out = site_of.out_dims();
    std::vector<index_expr> at{floordiv(image, x.group), channel};
    for (const index_expr& i : own.index_at(shape(out.begin() + 2, out.end()), own.index("n", extents.columns)))
      at.push_back(i);
    own.define_store(
        "dnnopt_store", n.outputs[0], at, std::vector<std::string>{"z", "m", "n"}, compute_type::real,
        [&] { return biased(own, site_of, channel); }, total ? total->result : no_value,
        total ? total->planes : no_value);
    if (total) define_plane_total(own, *total, at, std::vector<std::string>{"z", "m"});
    return extents;
  };
  if (!panels) {
    if (total) throw error(errc::unsupported, "tiles do not reduce planes");
    b.define("DNNOPT_A_INNER_FIRST", 1);
    b.define("DNNOPT_B_INNER_FIRST", 0);
    b.define("DNNOPT_A_WIDTH", define_load4(b, "dnnopt_load4_a", n.inputs[1],
                                            b.offset_of(n.inputs[1], weight_index(s, c, mod(z, c.group), m, k)), k,
                                            e.inner, std::vector<std::string>{"z", "m", "k"}));
    if (c.pointwise) {
      const shape& x = s.dims(0);
      std::vector<index_expr> at{floordiv(z, c.group), mod(z, c.group) * c.channels + k};
      for (const index_expr& i : b.index_at(shape(x.begin() + 2, x.end()), position)) at.push_back(i);
      b.define("DNNOPT_B_WIDTH", define_load4(b, "dnnopt_load4_b", n.inputs[0], b.offset_of(n.inputs[0], at), position,
                                              e.columns, std::vector<std::string>{"z", "k", "n"}));
    }
    finish_tiles(result, b, site, choose_tiles(site, e), e, "convolution_tiles", define_store);
    return result;
  }
  (void)define_store(b);
  kernel_plan plan =
      b.finish(kernels::prelude, kernels::matrix_panels, packed ? "convolution_panels_packed" : "convolution_panels");
  launch_panels(plan, p, e, packed, false);
  result.kernels.push_back(std::move(plan));
  return result;
}

[[nodiscard]] inline std::string reject_convolution_panels(const lowering_site& site) {
  return site.prefers_vectors() ? reject_convolution(site) : "the device does not prefer wide vectors";
}
/// Thin groups have no tiles to speak of: an element per work-item reads its few inputs itself.
[[nodiscard]] inline std::string reject_convolution_tiles(const lowering_site& site) {
  if (std::string why = reject_convolution(site); !why.empty()) return why;
  const shape& w = *site.input(1).dims;
  const std::int64_t group = site.anchor_node().attributes.get_int("group", 1);
  if (group > 1 && w[0].constant() / group < 4) return "fewer than four output channels per group";
  return {};
}
[[nodiscard]] inline lowered_node lower_convolution_panels(const lowering_site& site) {
  return lower_patches(site, true);
}
[[nodiscard]] inline lowered_node lower_convolution_tiles(const lowering_site& site) {
  return lower_patches(site, false);
}

/// Defines dnnopt_load_weight(z, m, c, kd, kh, kw).
inline void define_plane_weights(kernel_builder& b, const element_site& s, const convolution_shape& c) {
  const index_expr z = b.index("z", c.batch * c.group);
  const index_expr channel = mod(z, c.group) * c.outputs + b.index("m", c.outputs);
  const std::array<index_expr, 3> k{b.index("kd", c.axes[0].kernel), b.index("kh", c.axes[1].kernel),
                                    b.index("kw", c.axes[2].kernel)};
  b.define_function("dnnopt_load_weight", compute_type::real, std::vector<std::string>{"z", "m", "c", "kd", "kh", "kw"},
                    [&] {
                      std::vector<index_expr> at{channel, b.index("c", c.channels)};
                      at.insert(at.end(), k.end() - static_cast<std::ptrdiff_t>(c.rank), k.end());
                      return b.emit(s.n().inputs[1], at);
                    });
}

/// Thin groups: so little is summed per output channel that packing patches costs more than it saves.
[[nodiscard]] inline std::string reject_convolution_rows(const lowering_site& site) {
  if (std::string why = reject_convolution_panels(site); !why.empty()) return why;
  const shape& w = *site.input(1).dims;
  const std::int64_t group = site.anchor_node().attributes.get_int("group", 1);
  if (w[1].constant() != 1 || group == 1) return "more than one input channel per group";
  return {};
}
[[nodiscard]] inline lowered_node lower_convolution_rows(const lowering_site& site) {
  const node& n = site.anchor_node();
  kernel_builder b(site.block, site.options.emitters);
  const element_site s(b, site.anchor, 0, {});
  const convolution_shape c = convolution_of(s);
  b.define("DNNOPT_M", c.outputs);
  b.define("DNNOPT_C", c.channels);
  define_windows(b, c);
  const index_expr rows = c.axes[0].output * c.axes[1].output;
  const std::int64_t width = c.axes[2].output.as_constant().value_or(64);
  b.define("DNNOPT_RUN", width >= 48 ? 64 : width >= 24 ? 32 : 16);
  const std::int64_t units = std::max<std::int64_t>(site.options.device->compute_units, 1);
  const std::int64_t planes = (c.batch * c.group * c.outputs).as_constant().value_or(1);
  // A work-item takes whole planes where there are many, so that its weights serve many rows.
  std::int64_t per_item = planes >= 4 * units ? rows.as_constant().value_or(64) : 8;
  const std::optional<plane_total> total = plane_total_in(site.block);
  if (total) {
    if (!rows.is_constant()) throw error(errc::unsupported, "the extent of planes is not known before execution");
    per_item = rows.constant();
  }
  per_item = std::max<std::int64_t>(per_item, 1);
  b.define("DNNOPT_ROWS", per_item);
  define_image_load(b, s, c);
  const index_expr z = b.index("z", c.batch * c.group);
  const index_expr m = b.index("m", c.outputs);
  const index_expr channel = mod(z, c.group) * c.outputs + m;
  define_plane_weights(b, s, c);
  const std::array<index_expr, 3> o{b.index("od", c.axes[0].output), b.index("oh", c.axes[1].output),
                                    b.index("ow", c.axes[2].output)};
  std::vector<index_expr> at{floordiv(z, c.group), channel};
  if (c.pointwise) {
    const shape& out = s.out_dims();
    for (const index_expr& i : b.index_at(shape(out.begin() + 2, out.end()), o[2])) at.push_back(i);
  } else {
    at.insert(at.end(), o.end() - static_cast<std::ptrdiff_t>(c.rank), o.end());
  }
  b.define_store(
      "dnnopt_store", n.outputs[0], at, std::vector<std::string>{"z", "m", "od", "oh", "ow"}, compute_type::real,
      [&] { return biased(b, s, channel); }, total ? total->result : no_value, total ? total->planes : no_value);
  if (total) define_plane_total(b, *total, at, std::vector<std::string>{"z", "m"});
  kernel_plan plan = b.finish(kernels::prelude, kernels::convolution_rows, "convolution_rows");
  plan.global = {ceildiv(rows, per_item), c.outputs, c.batch * c.group};
  plan.local = {1, 1, 1};
  plan.flops = c.batch * c.group * c.outputs * c.positions() * c.channels * c.window() * 2;
  lowered_node result;
  result.kernels.push_back(std::move(plan));
  return result;
}

}  // namespace dnnopt::codegen

#endif  // DNNOPT_BACKEND_CODEGEN_LOWER_CONVOLUTION_HPP

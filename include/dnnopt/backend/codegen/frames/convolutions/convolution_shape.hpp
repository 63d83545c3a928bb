// Owns what all kernels of convolutions share: extents, windows, and where elements of image, weights and result stand.
#ifndef DNNOPT_BACKEND_CODEGEN_FRAMES_CONVOLUTIONS_CONVOLUTION_SHAPE_HPP
#define DNNOPT_BACKEND_CODEGEN_FRAMES_CONVOLUTIONS_CONVOLUTION_SHAPE_HPP

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <dnnopt/backend/codegen/choice.hpp>
#include <dnnopt/backend/codegen/elements/convolution.hpp>
#include <dnnopt/backend/codegen/frames/products/matrix_frame.hpp>
#include <dnnopt/backend/codegen/frames/windows/window_axes.hpp>

namespace dnnopt::codegen {

/// A convolution in the kernel's symbols, its spatial dims brought to three (depth, height, width) by leading ones.
struct convolution_shape {
  index_expr batch;
  std::int64_t group = 1;
  index_expr channels;   ///< input channels per group
  index_expr outputs;    ///< output channels per group
  std::size_t rank = 2;  ///< spatial dims that the operator has
  three_axes axes;
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
  c.axes = brought_to_three(own, s.out_dims());
  c.pointwise = true;
  for (const window_axis& axis : own)
    c.pointwise = c.pointwise && axis.kernel == 1 && axis.stride == 1 && axis.pad_begin == index_expr(0) &&
                  axis.pad_end == index_expr(0);
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

/// Why no frame takes a convolution; empty where some may. Precondition: the anchor is a Conv, as the rows of these
/// frames say (lowering_row::op).
[[nodiscard]] inline std::string reject_convolution(const lowering_site& site) {
  if (std::string why = reject_element_types(site, 3); !why.empty()) return why;
  const auto& dims = site.input(0).dims;
  if (!dims || dims->size() < 3 || dims->size() > 5) return "other than one to three spatial dims";
  const auto& w = site.input(1).dims;
  if (!w || !(*w)[0].is_constant() || !(*w)[1].is_constant())
    return "the numbers of channels are not known before execution";
  return {};
}

/// Defines the windows of a convolution by the names that its frames know.
inline void define_windows(kernel_builder& b, const kernel_frame& frame, const convolution_shape& c) {
  define_axes(b, frame, c.axes, "DNNOPT_");
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
[[nodiscard]] inline std::string biased(kernel_builder& b, const element_site& s, const index_expr& channel,
                                        const std::string& sum = "value") {
  return s.has(2) ? b.let(compute_type::real, sum + " + " + s.read(2, {channel})) : sum;
}

/// The index of a weight: output channel `row` of a group, and its element (channel, window element).
[[nodiscard]] inline std::vector<index_expr> weight_index(const element_site& s, const convolution_shape& c,
                                                          const index_expr& group, const index_expr& row,
                                                          const index_expr& inner) {
  std::vector<index_expr> at{group * c.outputs + row};
  const shape& w = s.dims(1);
  for (const index_expr& i : s.b.index_at(shape(w.begin() + 1, w.end()), inner)) at.push_back(i);
  return at;
}

/// The index of the result at output channel `row` of the group that z counts, and position `column`; `joined`: columns
/// count the positions of all images.
[[nodiscard]] inline std::vector<index_expr> output_index(kernel_builder& b, const element_site& s,
                                                          const convolution_shape& c, const index_expr& row,
                                                          const index_expr& column, bool joined = false) {
  const shape& out = s.out_dims();
  const index_expr image = joined ? index_expr(0) : b.index("z", c.batch * c.group);
  std::vector<index_expr> at{joined ? floordiv(column, c.positions()) : floordiv(image, c.group),
                             mod(image, c.group) * c.outputs + row};
  const index_expr place = joined ? mod(column, c.positions()) : column;
  for (const index_expr& i : b.index_at(shape(out.begin() + 2, out.end()), place)) at.push_back(i);
  return at;
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

/// Memory that packed weights take, in panels of `rows` output channels.
inline void settle_packed_weights(choice& made, const convolution_shape& c, std::int64_t rows) {
  const std::int64_t outputs = c.outputs.constant();
  made.taken.push_back({1, operand_form::packed});
  settle_kept(made, c.group * c.channels.constant() * c.window().constant(), outputs, round_up(outputs, rows));
}

/// Floats behind packed weights that may be read and are not used: a whole vector may begin at the last channel.
inline constexpr std::int64_t behind_packed_weights = 16;

/// Packs constant weights once in panels of `rows` output channels, and defines DNNOPT_A and DNNOPT_A_BATCH, where the
/// frames read them; the memory goes on for a vector behind them (convolution_points.cl). Precondition: the numbers of
/// channels are known, and nothing else takes scratch memory.
inline void define_packed_weights(lowered_node& result, kernel_builder& b, const lowering_site& site,
                                  const convolution_shape& c, std::int64_t rows) {
  const std::int64_t inner = c.channels.constant() * c.window().constant();
  result.scratch.push_back(
      {(c.group * round_up(c.outputs.constant(), rows) * inner + behind_packed_weights) * 4, true});
  result.prepare.push_back(
      pack_kernel(site, 0, c.group, c.outputs.constant(), inner, rows,
                  [&](kernel_builder& own, const index_expr& group, const index_expr& row, const index_expr& k) {
                    const element_site s(own, site.anchor, 0, {});
                    return own.emit(site.anchor_node().inputs[1], weight_index(s, convolution_of(s), group, row, k));
                  }));
  b.define("DNNOPT_A", b.scratch(0, dtype::float32, false));
  b.define("DNNOPT_A_BATCH", c.group == 1 ? std::string("0") : "(z % " + std::to_string(c.group) + ")");
}

/// The element of the result that a frame over planes stores at "od", "oh", "ow" of image and group `z`.
[[nodiscard]] inline std::vector<index_expr> plane_element(kernel_builder& b, const element_site& s,
                                                           const convolution_shape& c, const index_expr& z,
                                                           const index_expr& channel) {
  const std::array<index_expr, 3> o{b.index("od", c.axes[0].output), b.index("oh", c.axes[1].output),
                                    b.index("ow", c.axes[2].output)};
  std::vector<index_expr> at{floordiv(z, c.group), channel};
  if (c.pointwise) {
    const shape& out = s.out_dims();
    for (const index_expr& i : b.index_at(shape(out.begin() + 2, out.end()), o[2])) at.push_back(i);
  } else {
    at.insert(at.end(), o.end() - static_cast<std::ptrdiff_t>(c.rank), o.end());
  }
  return at;
}

}  // namespace dnnopt::codegen

#endif  // DNNOPT_BACKEND_CODEGEN_FRAMES_CONVOLUTIONS_CONVOLUTION_SHAPE_HPP

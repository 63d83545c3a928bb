// Owns images of codes whose channels are brought side by side before a convolution multiplies them in steps of bytes:
// patches are copied as they are then, many codes at once, instead of gathered code by code for every window.
#ifndef DNNOPT_BACKEND_CODEGEN_FRAMES_STEPS_IMAGE_LINES_HPP
#define DNNOPT_BACKEND_CODEGEN_FRAMES_STEPS_IMAGE_LINES_HPP

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <dnnopt/backend/codegen/frames/sources.hpp>
#include <dnnopt/backend/codegen/frames/steps/step_product.hpp>

namespace dnnopt::codegen {

/// How an axis of a window runs over the lines of an image: what no window reads is left out where a window has one
/// element, and padding is part of the lines.
struct line_axis {
  index_expr extent;  ///< of the lines
  index_expr step;    ///< from one output position to the next, in lines
  index_expr spread;  ///< from one window element to the next, in lines
  index_expr stride;  ///< from one line to the next, in the image
};

/// The lines of an image: for each image and group, spatial place (padding included) and channel. Inner elements count
/// (window element, channel), up to a whole number of copies and tiles.
struct image_lines {
  std::array<line_axis, 3> axes;
  std::int64_t channels = 0;  ///< of a group, filled up to whole copies
  int copy = 0;               ///< codes that are copied at once: 16, 8 or 4
  std::int64_t inner = 0;

  [[nodiscard]] index_expr places() const { return axes[0].extent * axes[1].extent * axes[2].extent; }
};

/// The codes that a convolution's image or weights are made of (`slot` of its inputs). Precondition: a member of the
/// block dequantizes them.
[[nodiscard]] inline value_id codes_of(kernel_builder& b, const lowering_site& site, std::size_t slot) {
  return b.g().node_at(b.g().value_at(site.anchor_node().inputs[slot]).producer).inputs[0];
}

/// The lines of a convolution's image, where its weights are constant codes that can be put in their order, and its
/// channels fill copies well enough; nothing for products of matrices, and where four positions of a plane are loaded
/// at once as they are. Precondition: both operands' codes have one zero point; `shifted` says whether either may be
/// another than 0.
[[nodiscard]] inline std::optional<image_lines> lines_of_image(kernel_builder& b, const lowering_site& site,
                                                               bool shifted) {
  if (site.anchor_node().op->kind != computation_kind::convolution) return std::nullopt;
  const element_site s(b, site.anchor, 0, {});
  const convolution_shape c = convolution_of(s);
  const bool computed = b.is_member_value(codes_of(b, site, 0));
  if (c.pointwise && !computed && mod(c.positions(), 4) == index_expr(0)) return std::nullopt;
  if (!b.g().facts(codes_of(b, site, 1)).is_constant()) return std::nullopt;
  if (!c.channels.is_constant() || !c.window().is_constant()) return std::nullopt;
  const std::int64_t channels = c.channels.constant();
  image_lines lines;
  lines.copy = channels % 16 == 0 ? 16 : channels % 8 == 0 ? 8 : 4;
  if (channels == 0 || (c.group != 1 && lines.copy != 16)) return std::nullopt;
  lines.channels = round_up(channels, lines.copy);
  // Copies put zeros beyond the last inner element, which no zero point else is, so that none is beyond it.
  lines.inner = round_up(lines.channels * c.window().constant(), shifted ? 128 : 16);
  for (std::size_t i = 0; i < 3; ++i) {
    const window_axis& a = c.axes[i];
    if (a.kernel == index_expr(1)) {
      lines.axes[i] = {a.output, 1, 0, a.stride};
      continue;
    }
    // Of no output positions there may be less than no line.
    const index_expr extent = (a.output - 1) * a.stride + (a.kernel - 1) * a.dilation + 1;
    lines.axes[i] = {extent.range().low >= 0 ? extent : max(extent, 0), a.stride, a.dilation, 1};
  }
  return lines;
}

/// Adds the scratch buffer of an image's lines and the kernel that fills them: with the zero point in padding. Returns
/// the buffer's number.
[[nodiscard]] inline std::size_t add_image_lines(lowered_node& result, const lowering_site& site) {
  const std::size_t number = result.scratch.size();
  kernel_builder b(site.block, site.options.emitters);
  const step_product p = step_product_of(b, site, false);
  const image_lines lines = lines_of_image(b, site, false).value();
  const std::string zero_code = zero_code_of(b, p.operands[1]);
  const element_site s(b, site.anchor, 0, {});
  const convolution_shape c = convolution_of(s);
  const std::int64_t copies = lines.channels / lines.copy;
  const index_expr places = lines.places();
  result.scratch.push_back({b.translate_back(c.batch * c.group * places * lines.channels), false});
  // Neighbouring work-items read neighbours of a plane.
  const index_expr count = c.batch * c.group * copies * places;
  const index_expr i = b.index("i", count);
  b.begin({i});
  const std::vector<index_expr> place =
      b.index_at(shape{lines.axes[0].extent, lines.axes[1].extent, lines.axes[2].extent}, mod(i, places));
  const index_expr z = floordiv(i, places * copies);
  const index_expr first = mod(floordiv(i, places), copies) * lines.copy;
  std::vector<std::string> words;
  for (int word = 0; word < lines.copy / 4; ++word) {
    words.push_back(b.fresh("w"));
    b.line("uint " + words.back() + " = ((uint)(" + zero_code + ") & 255u) * 0x01010101u;");
  }
  std::string test;
  std::array<index_expr, 3> own;
  for (std::size_t axis = 0; axis < 3; ++axis) {
    own[axis] = place[axis] * lines.axes[axis].stride - c.axes[axis].pad_begin;
    test = both(std::move(test), kernel_builder::within(own[axis], c.axes[axis].input));
  }
  s.when(test, [&] {
    for (std::size_t axis = 0; axis < 3; ++axis) own[axis] = b.define_index("x", own[axis], c.axes[axis].input);
    for (int j = 0; j < lines.copy; ++j) {
      const std::string& word = words[static_cast<std::size_t>(j / 4)];
      const index_expr channel = first + j;
      s.when(kernel_builder::within(channel, c.channels), [&] {
        std::vector<index_expr> at{floordiv(z, c.group), mod(z, c.group) * c.channels + channel};
        if (c.pointwise) {
          const shape& x = s.dims(0);
          for (const index_expr& one : b.index_at(shape(x.begin() + 2, x.end()), own[2])) at.push_back(one);
        } else {
          at.insert(at.end(), own.end() - static_cast<std::ptrdiff_t>(c.rank), own.end());
        }
        const std::string code = b.emit(codes_of(b, site, 0), at);
        const std::string shift = std::to_string(8 * (j % 4));
        b.line(word + " = (" + word + " & ~(255u << " + shift + ")) | ((uint)(" + code + ") & 255u) << " + shift + ";");
      });
    }
  });
  const index_expr to = (z * places + mod(i, places)) * (lines.channels / 4) + floordiv(first, 4);
  const std::string held = b.scratch(number, dtype::uint32, true);
  for (std::size_t word = 0; word < words.size(); ++word)
    b.line(held + "[" + index_source(to + static_cast<std::int64_t>(word)) + "] = " + words[word] + ";");
  const std::string statements = b.take();
  result.kernels.push_back(b.finish_items(kernels::prelude, statements, i, count, "convolution_lines"));
  return number;
}

/// Where in the lines of images inner element k of the patch of output `position` lies, in codes: of the image and
/// group that z counts, or where `joined` of the image that `position` counts. What is beyond the window, where weights
/// are their zero points, is where its last element is.
[[nodiscard]] inline index_expr place_in_lines(kernel_builder& b, const convolution_shape& c, const image_lines& lines,
                                               const index_expr& z, const index_expr& k, const index_expr& position,
                                               bool joined) {
  const std::vector<index_expr> out = b.index_at(shape{c.axes[0].output, c.axes[1].output, c.axes[2].output},
                                                 joined ? mod(position, c.positions()) : position);
  const index_expr element = min(floordiv(k, lines.channels), c.window() - 1);
  const std::vector<index_expr> at = b.index_at(shape{c.axes[0].kernel, c.axes[1].kernel, c.axes[2].kernel}, element);
  index_expr place = joined ? floordiv(position, c.positions()) : z;
  for (std::size_t i = 0; i < 3; ++i)
    place = place * lines.axes[i].extent + out[i] * lines.axes[i].step + at[i] * lines.axes[i].spread;
  return place * lines.channels + mod(k, lines.channels);
}

/// The scratch buffer of constant weights in the order of lines, (group, output channel, inner element), which a kernel
/// of `result.prepare` fills once: the zero point where there is no weight.
[[nodiscard]] inline std::size_t turn_weights_for_lines(lowered_node& result, const lowering_site& site,
                                                        const image_lines& lines) {
  const std::size_t number = result.scratch.size();
  kernel_builder b(site.block, site.options.emitters);
  const std::string zero_code = zero_code_of(b, step_product_of(b, site, false).operands[0]);
  const element_site s(b, site.anchor, 0, {});
  const convolution_shape c = convolution_of(s);
  const std::int64_t rows = c.outputs.constant();
  const std::int64_t count = c.group * rows * lines.inner;
  result.scratch.push_back({count, true});
  const index_expr i = b.index("i", count);
  b.begin({i});
  const index_expr k = mod(i, lines.inner);
  const index_expr row = floordiv(i, lines.inner);
  const index_expr element = floordiv(k, lines.channels);
  const index_expr channel = mod(k, lines.channels);
  const std::string code = b.variable(compute_type::integer, zero_code);
  s.when(both(kernel_builder::within(channel, c.channels), kernel_builder::within(element, c.window())), [&] {
    const index_expr inner =
        b.define_index("c", channel, c.channels) * c.window() + b.define_index("e", element, c.window());
    b.line(code + " = " + b.emit(codes_of(b, site, 1), weight_index(s, c, floordiv(row, rows), mod(row, rows), inner)) +
           ";");
  });
  b.line(b.scratch(number, dtype::int8, true) + "[" + index_source(i) + "] = (char)(" + code + ");");
  const std::string statements = b.take();
  result.prepare.push_back(b.finish_items(kernels::prelude, statements, i, count, "pack"));
  return number;
}

}  // namespace dnnopt::codegen

#endif  // DNNOPT_BACKEND_CODEGEN_FRAMES_STEPS_IMAGE_LINES_HPP

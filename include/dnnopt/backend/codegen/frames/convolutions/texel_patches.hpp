// Owns how convolutions read patches of an image: one element, or four channels at a time from texels.
#ifndef DNNOPT_BACKEND_CODEGEN_FRAMES_CONVOLUTIONS_TEXEL_PATCHES_HPP
#define DNNOPT_BACKEND_CODEGEN_FRAMES_CONVOLUTIONS_TEXEL_PATCHES_HPP

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <dnnopt/backend/codegen/frames/convolutions/convolution_shape.hpp>

namespace dnnopt::codegen {

/// In how many bits the place of a window's element along an axis is computed: none lies behind the last window.
[[nodiscard]] inline index_width width_of_place(kernel_builder& b, const window_axis& a, const index_expr& place) {
  return b.width_below(place, a.output * a.stride + a.kernel * a.dilation);
}

/// The element of the patch of output `position` that is number `k` of (channel, window element), of the image and
/// group that `z` counts; `joined`: positions count those of all images. Zero in padding.
[[nodiscard]] inline std::string emit_patch_element(kernel_builder& b, const element_site& s,
                                                    const convolution_shape& c, const index_expr& z,
                                                    const index_expr& k, const index_expr& position, bool joined,
                                                    std::string_view outside = "0") {
  const std::int64_t window = c.window().constant();
  const std::vector<index_expr> window_at =
      b.index_at(shape{c.axes[0].kernel, c.axes[1].kernel, c.axes[2].kernel}, mod(k, window));
  const std::vector<index_expr> out_at = b.index_at(shape{c.axes[0].output, c.axes[1].output, c.axes[2].output},
                                                    joined ? mod(position, c.positions()) : position);
  const std::string element = b.variable(compute_type::real, outside);
  std::vector<index_expr> at{joined ? floordiv(position, c.positions()) : floordiv(z, c.group),
                             mod(z, c.group) * c.channels + floordiv(k, window)};
  std::string test;
  std::array<index_expr, 3> own;
  for (std::size_t i = 0; i < 3; ++i) {
    const window_axis& a = c.axes[i];
    own[i] = out_at[i] * a.stride + window_at[i] * a.dilation - a.pad_begin;
    test = both(std::move(test), b.within_dim(own[i], a.input, width_of_place(b, a, own[i])));
  }
  s.when(test, [&] {
    for (std::size_t i = 0; i < 3; ++i)
      own[i] = b.define_index("x", own[i], c.axes[i].input, width_of_place(b, c.axes[i], own[i]));
    if (c.pointwise) {
      const shape& x = s.dims(0);
      for (const index_expr& i : b.index_at(shape(x.begin() + 2, x.end()), own[2])) at.push_back(i);
    } else {
      at.insert(at.end(), own.end() - static_cast<std::ptrdiff_t>(c.rank), own.end());
    }
    b.line(element + " = " + s.read(0, at) + ";");
  });
  return element;
}

/// Four channels of an image: `group_first + first` and on, of which those count whose place in the group, `first` and
/// on (`first` a multiple of four), is below `channels`.
struct texel_channels {
  index_expr image;
  index_expr group_first;
  index_expr first;
  index_expr channels;
};

/// Declares `float4 four` and fills it with four channels of an element of a patch: that of output `position` at
/// `window_at`; zero in padding, by the border of an image where there is one (kernel_builder::within_or_zero).
inline void emit_texel_patch(kernel_builder& b, const element_site& s, const convolution_shape& c,
                             const texel_channels& from, const index_expr& position,
                             std::span<const index_expr> window_at) {
  const value_id x = s.n().inputs[0];
  const bool member = b.is_member_value(x);
  const std::vector<index_expr> out_at =
      b.index_at(shape{c.axes[0].output, c.axes[1].output, c.axes[2].output}, position);
  b.line("float4 four = (float4)(0.0f);");
  std::string test;
  std::array<index_expr, 3> own;
  std::array<bool, 3> bounded{true, true, true};
  for (std::size_t i = 0; i < 3; ++i) {
    const window_axis& a = c.axes[i];
    own[i] = out_at[i] * a.stride + window_at[i] * a.dilation - a.pad_begin;
    const index_width width = width_of_place(b, a, own[i]);
    kernel_builder::border_test within{b.within_dim(own[i], a.input, width)};
    if (!c.pointwise && i + c.rank >= 3) within = b.within_or_zero(x, 2 + i + c.rank - 3, own[i], width);
    test = both(std::move(test), within.text);
    bounded[i] = within.bounded;
  }
  s.when(test, [&] {
    for (std::size_t i = 0; i < 3; ++i)
      if (bounded[i]) own[i] = b.define_index("x", own[i], c.axes[i].input, width_of_place(b, c.axes[i], own[i]));
    std::vector<index_expr> at{from.image, 0};
    if (c.pointwise) {
      const shape& d = s.dims(0);
      for (const index_expr& i : b.index_at(shape(d.begin() + 2, d.end()), own[2])) at.push_back(i);
    } else {
      at.insert(at.end(), own.end() - static_cast<std::ptrdiff_t>(c.rank), own.end());
    }
    for (std::int64_t j = 0; j < texel_width; ++j) {
      const index_expr channel = from.first + j;
      at[1] = from.group_first + channel;
      // Beyond the last channel a texel holds zeros; what is computed from them may be anything.
      s.when(member ? kernel_builder::within(channel, from.channels) : std::string(),
             [&] { b.line("four.s" + std::to_string(j) + " = " + s.read(0, at) + ";"); });
    }
  });
}

/// Whether a frame that packs weights in the order of an image's texels may ask for its image in them: weights are
/// constant, the image is no result of the block, and no texel is filled up. `inner` are the elements that are summed.
[[nodiscard]] inline bool may_ask_for_texels(kernel_builder& b, const lowering_site& site, const convolution_shape& c,
                                             const index_expr& inner) {
  const node& n = site.anchor_node();
  return is_constant_in(site.block, n.inputs[1]) && inner.is_constant() && !b.is_member_value(n.inputs[0]) &&
         mod(c.channels, texel_width) == index_expr(0);
}

/// The weight of output channel `row` of a group at inner element (window element, channel), channels in whole texels:
/// zero for those that only fill a texel.
[[nodiscard]] inline std::string emit_weight_of_texels(kernel_builder& b, const element_site& s,
                                                       const convolution_shape& c, value_id weights,
                                                       const index_expr& group, const index_expr& row,
                                                       const index_expr& inner) {
  const index_expr padded = ceildiv(c.channels, texel_width) * texel_width;
  const index_expr channel = mod(inner, padded);
  const std::string element = b.variable(compute_type::real, "0");
  s.when(kernel_builder::within(channel, c.channels), [&] {
    const index_expr real = b.define_index("c", channel, c.channels) * c.window() + floordiv(inner, padded);
    b.line(element + " = " + b.emit(weights, weight_index(s, c, group, row, real)) + ";");
  });
  return element;
}

/// Where four channels of one element of a patch stand in a buffer of texels, in elements, and the test that they are
/// no padding (empty: always).
struct texel_of_patch {
  index_expr offset;
  std::string within;
};

/// That of inner element k, which counts (window element, channel), at output `position` of the image and group that
/// `z` counts; `joined`: positions count those of all images. Precondition: the image holds texels along its channels.
[[nodiscard]] inline texel_of_patch find_texel_of_patch(kernel_builder& b, const element_site& s,
                                                        const convolution_shape& c, const index_expr& z,
                                                        const index_expr& k, const index_expr& position, bool joined) {
  const index_expr slices = ceildiv(c.channels, texel_width);
  const index_expr quarter = floordiv(k, texel_width);
  const std::vector<index_expr> window_at =
      b.index_at(shape{c.axes[0].kernel, c.axes[1].kernel, c.axes[2].kernel}, floordiv(quarter, slices));
  const std::vector<index_expr> out_at = b.index_at(shape{c.axes[0].output, c.axes[1].output, c.axes[2].output},
                                                    joined ? mod(position, c.positions()) : position);
  texel_of_patch found;
  std::array<index_expr, 3> own;
  for (std::size_t i = 0; i < 3; ++i) {
    const window_axis& a = c.axes[i];
    own[i] = out_at[i] * a.stride + window_at[i] * a.dilation - a.pad_begin;
    found.within = both(std::move(found.within), b.within_dim(own[i], a.input, width_of_place(b, a, own[i])));
  }
  const value_id x = s.n().inputs[0];
  const index_expr group_slices = floordiv(c.channels, texel_width);
  std::vector<index_expr> at{joined ? floordiv(position, c.positions()) : floordiv(z, c.group),
                             mod(z, c.group) * group_slices + mod(quarter, slices)};
  if (c.pointwise) {
    const shape& d = s.dims(0);
    for (const index_expr& i : b.index_at(shape(d.begin() + 2, d.end()), own[2])) at.push_back(i);
  } else {
    at.insert(at.end(), own.end() - static_cast<std::ptrdiff_t>(c.rank), own.end());
  }
  found.offset = place_in(texel_dims(b.dims(x), 1), at).linear() * texel_width;
  return found;
}

/// Defines dnnopt_load4_b(z, k, n): four channels of one element of a patch, where k counts (window element, channel).
inline void define_texel_patches(kernel_builder& b, const element_site& s, const convolution_shape& c,
                                 const product_extents& e) {
  const index_expr slices = ceildiv(c.channels, texel_width);
  b.begin();
  const index_expr q = b.index("quarter_k", floordiv(e.inner, texel_width));
  b.line("const int quarter_k = k >> 2;");
  const index_expr z = b.index("z", e.batch);
  emit_texel_patch(b, s, c,
                   {floordiv(z, c.group), mod(z, c.group) * c.channels, mod(q, slices) * texel_width, c.channels},
                   b.index("n", e.columns),
                   b.index_at(shape{c.axes[0].kernel, c.axes[1].kernel, c.axes[2].kernel}, floordiv(q, slices)));
  b.line("return four;");
  b.add_function("static inline float4 dnnopt_load4_b(DNNOPT_PARAMETERS, const int z, const int k, const int n) {\n" +
                 b.take() + "}\n");
}

}  // namespace dnnopt::codegen

#endif  // DNNOPT_BACKEND_CODEGEN_FRAMES_CONVOLUTIONS_TEXEL_PATCHES_HPP

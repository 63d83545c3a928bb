// Owns the sizes of the kernel of windows over single planes: rows of a block, planes of a work-item.
#ifndef DNNOPT_BACKEND_CODEGEN_FRAMES_WINDOWS_CHOOSE_HPP
#define DNNOPT_BACKEND_CODEGEN_FRAMES_WINDOWS_CHOOSE_HPP

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <dnnopt/backend/codegen/choice.hpp>
#include <dnnopt/backend/codegen/elements/pooling.hpp>
#include <dnnopt/backend/codegen/frames/convolutions/convolution_shape.hpp>
#include <dnnopt/backend/codegen/frames/rows/plane_totals.hpp>

namespace dnnopt::codegen {

/// The numbers that window_planes.cl knows families by (DNNOPT_FAMILY).
enum class window_family : std::uint8_t { weighted_sum = 0, greatest = 1, sum = 2 };

struct window_operator {
  std::string_view name;
  window_family family;
};

inline constexpr std::array window_operators{
    window_operator{"Conv", window_family::weighted_sum},
    window_operator{"MaxPool", window_family::greatest},
    window_operator{"AveragePool", window_family::sum},
};

[[nodiscard]] constexpr const window_operator* find_window_operator(std::string_view domain,
                                                                    std::string_view name) noexcept {
  if (!domain.empty()) return nullptr;
  for (const window_operator& row : window_operators)
    if (row.name == name) return &row;
  return nullptr;
}

/// A window over planes as a convolution of one input channel per group. Precondition: the number of channels is known.
[[nodiscard]] inline convolution_shape planes_of(const element_site& s, window_family family) {
  if (family == window_family::weighted_sum) return convolution_of(s);
  convolution_shape c;
  const shape& x = s.dims(0);
  c.batch = x[0];
  c.group = x[1].constant();
  c.channels = 1;
  c.outputs = 1;
  const std::vector<window_axis> own = pool_windows(s);
  c.rank = own.size();
  c.axes = brought_to_three(own, s.out_dims());
  return c;
}

/// Why windows of an anchor are not computed plane by plane; empty where they may be.
[[nodiscard]] inline std::string reject_planes(const lowering_site& site) {
  const node& n = site.anchor_node();
  const window_operator* op = find_window_operator(n.op->domain, n.op->name);
  if (op == nullptr) return "no window over planes";
  if (std::string why = reject_element_types(site, n.inputs.size()); !why.empty()) return why;
  const auto& dims = site.input(0).dims;
  const auto& out = site.output().dims;
  if (!dims || !out || dims->size() < 3 || dims->size() > 4) return "other than one or two spatial dims";
  if (!(*dims)[1].is_constant()) return "the number of channels is not known before execution";
  if (op->family == window_family::weighted_sum) {
    if (std::string why = reject_convolution(site); !why.empty()) return why;
    if ((*site.input(1).dims)[1].constant() != 1) return "more than one input channel per group";
    if (n.attributes.get_int("group", 1) == 1) return "one input channel in all";
  } else if (n.outputs.size() > 1 && n.outputs[1] != no_value) {
    return "places of the maxima are asked for";
  }
  kernel_builder b(site.block, site.options.emitters);
  const convolution_shape c = planes_of(element_site(b, site.anchor, 0, {}), op->family);
  for (const window_axis& axis : c.axes)
    if (!axis.pad_begin.is_constant() || axis.pad_begin.constant() < 0) return "the padding is not known or negative";
  if (c.axes[2].output == index_expr(0) || c.axes[1].output == index_expr(0)) return "the output is empty";
  return {};
}

/// Whether all extents of the planes are numbers.
[[nodiscard]] inline bool has_known_planes(const convolution_shape& c) {
  return std::all_of(c.axes.begin(), c.axes.end(),
                     [](const window_axis& axis) { return axis.input.is_constant() && axis.output.is_constant(); });
}

/// Planes that the rows and columns of the image are staged in, one for each remainder by the stride.
[[nodiscard]] inline std::int64_t phases_of(const convolution_shape& c) {
  const auto& [depth, height, width] = c.axes;
  return std::min(height.stride, (height.kernel - 1) * height.dilation + 1) *
         std::min(width.stride, (width.kernel - 1) * width.dilation + 1);
}

/// Bytes of a block of planes that are staged and computed: they stay in the first-level cache.
inline constexpr std::int64_t window_block_bytes = 24576;

/// Sizes of blocks that follow from the extents of a run, in the symbols of `c`. None is below 1.
struct window_blocks {
  index_expr across;   ///< blocks side by side
  index_expr columns;  ///< of a block
  index_expr rows;     ///< of a block
  index_expr in_plane;
  index_expr planes;  ///< of a work-item
};

/// Blocks of at most `span` columns whose rows, with those that windows reach below, take `capacity` elements. Planes
/// of few rows in all are cut until every core has some, unless a work-item computes `whole_planes`; several small
/// ones share a work-item.
[[nodiscard]] inline window_blocks window_blocks_of(const convolution_shape& c, std::int64_t span,
                                                    std::int64_t capacity, std::int64_t units, bool whole_planes) {
  const auto& [depth, height, width] = c.axes;
  const auto some = [](const index_expr& e) { return max(e, 1); };
  const std::int64_t phases = phases_of(c);
  const std::int64_t below = (height.kernel - 1) * height.dilation / height.stride;
  const std::int64_t beside = (width.kernel - 1) * width.dilation / width.stride;
  window_blocks made;
  made.across = some(ceildiv(width.output, span));
  made.columns = some(ceildiv(width.output, made.across));
  const index_expr pitch = made.columns + beside;
  const index_expr planes = some(c.batch * c.group * c.outputs);
  const index_expr most = some(floordiv(floordiv(capacity, pitch) - below * phases, phases + 1));
  index_expr down = ceildiv(height.output, most);
  if (!whole_planes) down = max(down, min(height.output, ceildiv(4 * units, planes * made.across)));
  made.rows = some(ceildiv(height.output, some(down)));
  made.in_plane = made.across * ceildiv(height.output, made.rows);
  const index_expr work = made.rows * pitch * made.in_plane * (height.kernel * width.kernel);
  made.planes = some(min(floordiv(65536, some(work)), floordiv(planes, 6 * units)));
  return made;
}

/// Sizes for planes whose extents only a run tells: the columns that a block may have, so that at least four rows of
/// them fit, and what the local memory holds.
[[nodiscard]] inline choice_or_reason choose_window_blocks(const lowering_site& site, const convolution_shape& c) {
  const auto& [depth, height, width] = c.axes;
  const std::int64_t capacity =
      std::min<std::int64_t>(window_block_bytes, static_cast<std::int64_t>(site.local_memory()) / 3) / 4;
  const std::int64_t phases = phases_of(c);
  const std::int64_t rows = height.output.range().high == 1 ? 1 : 4;
  const std::int64_t below = (height.kernel - 1) * height.dilation / height.stride;
  const std::int64_t beside = (width.kernel - 1) * width.dilation / width.stride;
  const std::int64_t span =
      std::min<std::int64_t>((capacity / ((rows + below) * phases + rows) - beside) / 16 * 16, 512);
  if (span < 16) return "a vector of windows takes more than the local memory";
  constexpr std::int64_t unroll = 4;
  choice made("window_planes");
  made.with("span", span).with("capacity", capacity).with("unroll", unroll);
  const std::int64_t results = capacity / (phases + 1);
  made.local_bytes = static_cast<std::uint64_t>(4 * (capacity + results + 2 * 16 * unroll + beside + 16 * phases));
  return made;
}

/// Rows of a block: what is staged stays in the first-level cache, and halos are read twice only where planes are
/// large. Several small planes share a work-item, as long as every core has some.
[[nodiscard]] inline choice_or_reason choose_window_planes(const lowering_site& site) {
  if (!site.prefers_vectors()) return "the device does not prefer wide vectors";
  if (std::string why = reject_planes(site); !why.empty()) return why;
  const node& n = site.anchor_node();
  kernel_builder b(site.block, site.options.emitters);
  const window_family family = find_window_operator(n.op->domain, n.op->name)->family;
  const convolution_shape c = planes_of(element_site(b, site.anchor, 0, {}), family);
  if (!has_known_planes(c)) return choose_window_blocks(site, c);
  const bool total = plane_total_in(site.block).has_value();
  const window_axis& height = c.axes[1];
  const window_axis& width = c.axes[2];
  const std::int64_t pitch = width.output.constant() + (width.kernel - 1) * width.dilation / width.stride;
  const std::int64_t phases = phases_of(c);
  const std::int64_t halo = (height.kernel - 1) * height.dilation / height.stride;
  const std::int64_t out_rows = height.output.constant();
  const std::int64_t units = site.compute_units();
  const std::int64_t planes = (c.batch * c.group * c.outputs).as_constant().value_or(64);
  // Rows that end in single elements are loaded and finished as one run (docs/measurements/kernels.md); strided windows
  // read more than they write. Means count what each window covers.
  constexpr std::int64_t vector = 8;
  const std::int64_t in_width = width.input.constant();
  const std::int64_t out_width = width.output.constant();
  const bool flat =
      family != window_family::sum && (in_width % vector != 0 || (width.stride == 1 && out_width % vector != 0));
  const auto bytes = [&](std::int64_t rows) {
    const std::int64_t runs = ((rows + halo) * height.stride) * in_width + rows * out_width;
    return 4 * (pitch * ((rows + halo) * phases + rows) + (flat ? runs : 0));
  };
  std::int64_t rows = out_rows;
  // Whoever reduces planes computes them whole, block after block.
  while (rows > 1 &&
         (bytes(rows) > window_block_bytes || (!total && planes * ((out_rows + rows - 1) / rows) < 4 * units)))
    rows = (rows + 1) / 2;
  const std::int64_t window = height.kernel * width.kernel;
  const auto planes_for = [&] {
    return rows < out_rows ? 1
                           : std::clamp<std::int64_t>(65536 / std::max<std::int64_t>(rows * pitch * window, 1), 1,
                                                      std::max<std::int64_t>(1, planes / (6 * units)));
  };
  std::int64_t per_item = planes_for();
  std::int64_t unroll = std::clamp<std::int64_t>((rows * pitch + 15) / 16, 1, 4);
  choice made("window_planes");
  made.tuning = shape_class(
      "window_planes", std::array{c.batch * c.group * c.outputs, height.output, width.output, index_expr(height.kernel),
                                  index_expr(width.kernel), index_expr(height.stride), index_expr(width.stride)});
  if (const auto* values = site.tuned(made.tuning); values != nullptr) {
    rows = std::min(out_rows, (*values)[0]);
    per_item = (*values)[1];
    unroll = (*values)[2];
  }
  // Vectors read and write beyond the last lane: `unroll` of 16 each, the reads as far right as a window reaches.
  const std::int64_t beyond = 4 * (2 * 16 * unroll + pitch - out_width + (flat ? 32 : 0));
  made.local_bytes = static_cast<std::uint64_t>(bytes(rows) + beyond);
  if (made.local_bytes > site.local_memory()) return "one row of windows takes more than the local memory";
  made.with("flat", flat ? 1 : 0);
  made.with("rows", rows).with("blocks", total ? blocks_of(out_rows, rows) : 1);
  made.with("planes", per_item).with("unroll", unroll);
  return made;
}

}  // namespace dnnopt::codegen

#endif  // DNNOPT_BACKEND_CODEGEN_FRAMES_WINDOWS_CHOOSE_HPP

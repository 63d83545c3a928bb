// Owns the kernels of windows that slide over single planes: depthwise convolution, maximum and average pooling.
#ifndef DNNOPT_BACKEND_CODEGEN_FRAMES_WINDOWS_LOWER_WINDOWS_HPP
#define DNNOPT_BACKEND_CODEGEN_FRAMES_WINDOWS_LOWER_WINDOWS_HPP

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dnnopt/backend/codegen/elements/pooling.hpp>
#include <dnnopt/backend/codegen/frames/convolutions/lower_convolution.hpp>

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

[[nodiscard]] inline std::string reject_window_planes(const lowering_site& site) {
  if (!site.prefers_vectors()) return "the device does not prefer wide vectors";
  const node& n = site.anchor_node();
  const window_operator* op = find_window_operator(n.op->domain, n.op->name);
  if (op == nullptr) return "no window over planes";
  if (std::string why = reject_element_types(site, n.inputs.size()); !why.empty()) return why;
  const auto& dims = site.input(0).dims;
  const auto& out = site.output().dims;
  if (!dims || !out || dims->size() < 3 || dims->size() > 4) return "other than one or two spatial dims";
  if (!(*dims)[1].is_constant()) return "the number of channels is not known before execution";
  for (std::size_t i = 2; i < dims->size(); ++i)
    if (!(*dims)[i].is_constant() || !(*out)[i].is_constant()) return "the extents are not known before execution";
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

[[nodiscard]] inline lowered_node lower_window_planes(const lowering_site& site) {
  const node& n = site.anchor_node();
  const window_family family = find_window_operator(n.op->domain, n.op->name)->family;
  kernel_builder b(site.block, site.options.emitters);
  const element_site s(b, site.anchor, 0, {});
  const convolution_shape c = planes_of(s, family);
  b.define("DNNOPT_FAMILY", static_cast<std::int64_t>(family));
  b.define("DNNOPT_Z", c.batch * c.group);
  b.define("DNNOPT_M", c.outputs);
  define_windows(b, c);
  define_image_load(b, s, c);
  const index_expr z = b.index("z", c.batch * c.group);
  const index_expr m = b.index("m", c.outputs);
  const index_expr channel = mod(z, c.group) * c.outputs + m;
  if (family == window_family::weighted_sum) define_plane_weights(b, s, c);
  const std::optional<plane_total> total = plane_total_in(site.block);
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
      [&] {
        if (family == window_family::weighted_sum) return biased(b, s, channel);
        if (family == window_family::greatest) return std::string("value");
        return b.let(compute_type::real,
                     "value / (float)(" + pooled_count(s, pool_windows(s), std::span(at).subspan(2)) + ")");
      },
      total ? total->result : no_value, total ? total->planes : no_value);
  if (total) define_plane_total(b, *total, at, std::vector<std::string>{"z", "m"});

  // Rows of a block: what is staged stays in the first-level cache, and halos are read twice only where planes are
  // large. Several small planes share a work-item, as long as every core has some.
  const window_axis& height = c.axes[1];
  const window_axis& width = c.axes[2];
  const std::int64_t pitch = width.output.constant() + (width.kernel - 1) * width.dilation / width.stride;
  const std::int64_t phases = std::min(height.stride, (height.kernel - 1) * height.dilation + 1) *
                              std::min(width.stride, (width.kernel - 1) * width.dilation + 1);
  const std::int64_t halo = (height.kernel - 1) * height.dilation / height.stride;
  const std::int64_t out_rows = height.output.constant();
  const std::int64_t units = std::max<std::int64_t>(site.options.device->compute_units, 1);
  const std::int64_t planes = (c.batch * c.group * c.outputs).as_constant().value_or(64);
  const auto bytes = [&](std::int64_t rows) { return 4 * pitch * ((rows + halo) * phases + rows); };
  std::int64_t rows = out_rows;
  // Whoever reduces planes computes them whole, block after block.
  while (rows > 1 && (bytes(rows) > 24576 || (!total && planes * ((out_rows + rows - 1) / rows) < 4 * units)))
    rows = (rows + 1) / 2;
  const std::int64_t window = height.kernel * width.kernel;
  const auto planes_for = [&] {
    return rows < out_rows ? 1
                           : std::clamp<std::int64_t>(65536 / std::max<std::int64_t>(rows * pitch * window, 1), 1,
                                                      std::max<std::int64_t>(1, planes / (6 * units)));
  };
  std::int64_t per_item = planes_for();
  std::int64_t unroll = std::clamp<std::int64_t>((rows * pitch + 15) / 16, 1, 4);
  const std::string shape_name = shape_class(
      "window_planes", std::array{c.batch * c.group * c.outputs, height.output, width.output, index_expr(height.kernel),
                                  index_expr(width.kernel), index_expr(height.stride), index_expr(width.stride)});
  if (const auto* values = site.tuned(shape_name); values != nullptr) {
    rows = std::min(out_rows, (*values)[0]);
    per_item = (*values)[1];
    unroll = (*values)[2];
  }
  const std::int64_t blocks = (out_rows + rows - 1) / rows;
  b.define("DNNOPT_ROWS", rows);
  b.define("DNNOPT_BLOCKS", total ? blocks : 1);
  b.define("DNNOPT_PLANES", per_item);
  b.define("DNNOPT_UNROLL", unroll);
  // Vectors read and write beyond the last lane: `unroll` of 16 each, the reads as far right as a window reaches.
  const std::int64_t beyond = 4 * (2 * 16 * unroll + pitch - width.output.constant());
  if (static_cast<std::uint64_t>(bytes(rows) + beyond) > site.local_memory())
    throw error(errc::unsupported, "one row of windows takes more than the local memory");
  kernel_plan plan = b.finish(kernels::prelude, kernels::window_planes, "window_planes");
  plan.global = {index_expr(total ? 1 : blocks), ceildiv(c.batch * c.group * c.outputs, per_item), index_expr(1)};
  plan.local = {1, 1, 1};
  plan.tuning = shape_name;
  plan.flops = c.batch * c.group * c.outputs * c.positions() * c.window() * 2;
  lowered_node result;
  result.kernels.push_back(std::move(plan));
  return result;
}

}  // namespace dnnopt::codegen

#endif  // DNNOPT_BACKEND_CODEGEN_FRAMES_WINDOWS_LOWER_WINDOWS_HPP

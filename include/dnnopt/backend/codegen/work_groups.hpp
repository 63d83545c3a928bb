// Owns work-groups for grids of (columns, rows, slices of four channels): published ones by device, as data.
//
// Sizes are those of TFLite GPU (Lee et al. 2019, section 3.3 and Table 2) and of its source (ideal_workgroup_picker
// and default_calculator, 2019), which differ in two places: for depthwise convolutions on the Adreno 509 the paper
// prints (8, 4, 2), and the source, taken here, has (8, 8, 2); sizes by case of the Adreno 540, equal to those of the
// 510, stand in the source and are not used there, nor here.
#ifndef DNNOPT_BACKEND_CODEGEN_WORK_GROUPS_HPP
#define DNNOPT_BACKEND_CODEGEN_WORK_GROUPS_HPP

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include <dnnopt/device_info.hpp>

namespace dnnopt::codegen {

/// Work-items along columns, rows and slices.
using grid_size = std::array<std::int64_t, 3>;

/// What a kernel computes for each place of its grid, as the published sizes tell it apart.
enum class grid_work : std::uint8_t { convolution, depthwise_convolution };

/// A size that was the best, or within 10% of it, on a device (Table 2).
struct work_group_row {
  std::string_view device;  ///< part of what the driver calls the device
  grid_work work = grid_work::convolution;
  std::int64_t window = 0;  ///< of both directions; 0: any
  std::int64_t stride = 0;  ///< likewise
  grid_size group{};
};

/// The first row that fits counts: sizes by case stand before those by kind of work.
inline constexpr std::array work_group_table{
    work_group_row{"Adreno(TM) 630", grid_work::convolution, 1, 1, {4, 8, 4}},
    work_group_row{"Adreno(TM) 630", grid_work::convolution, 3, 2, {8, 4, 4}},
    work_group_row{"Adreno(TM) 630", grid_work::depthwise_convolution, 1, 1, {8, 4, 4}},
    work_group_row{"Adreno(TM) 630", grid_work::depthwise_convolution, 3, 2, {4, 4, 4}},
    work_group_row{"Adreno(TM) 630", grid_work::convolution, 0, 0, {4, 8, 4}},
    work_group_row{"Adreno(TM) 630", grid_work::depthwise_convolution, 0, 0, {4, 4, 8}},
    work_group_row{"Adreno(TM) 540", grid_work::convolution, 0, 0, {8, 2, 2}},
    work_group_row{"Adreno(TM) 540", grid_work::depthwise_convolution, 0, 0, {8, 8, 2}},
    work_group_row{"Adreno(TM) 510", grid_work::convolution, 1, 1, {4, 2, 8}},
    work_group_row{"Adreno(TM) 510", grid_work::convolution, 3, 2, {8, 2, 8}},
    work_group_row{"Adreno(TM) 510", grid_work::depthwise_convolution, 1, 1, {8, 4, 8}},
    work_group_row{"Adreno(TM) 510", grid_work::depthwise_convolution, 3, 2, {4, 4, 8}},
    work_group_row{"Adreno(TM) 510", grid_work::convolution, 0, 0, {8, 4, 4}},
    work_group_row{"Adreno(TM) 510", grid_work::depthwise_convolution, 0, 0, {8, 4, 4}},
    work_group_row{"Adreno(TM) 509", grid_work::convolution, 0, 0, {8, 4, 8}},
    work_group_row{"Adreno(TM) 509", grid_work::depthwise_convolution, 0, 0, {8, 8, 2}},
    work_group_row{"Adreno(TM) 508", grid_work::convolution, 0, 0, {8, 4, 8}},
    work_group_row{"Adreno(TM) 508", grid_work::depthwise_convolution, 0, 0, {8, 4, 8}},
    work_group_row{"Adreno(TM) 506", grid_work::convolution, 0, 0, {8, 4, 8}},
    work_group_row{"Adreno(TM) 506", grid_work::depthwise_convolution, 0, 0, {8, 4, 8}},
    work_group_row{"Adreno(TM) 505", grid_work::convolution, 0, 0, {8, 4, 8}},
    work_group_row{"Adreno(TM) 505", grid_work::depthwise_convolution, 0, 0, {8, 4, 8}},
    work_group_row{"Adreno(TM) 418", grid_work::convolution, 0, 0, {8, 4, 8}},
    work_group_row{"Adreno(TM) 418", grid_work::depthwise_convolution, 0, 0, {8, 4, 8}},
    work_group_row{"Adreno(TM) 405", grid_work::convolution, 0, 0, {8, 4, 8}},
    work_group_row{"Adreno(TM) 405", grid_work::depthwise_convolution, 0, 0, {8, 4, 8}},
};

/// A size for grids of at least so many slices.
struct default_group {
  std::int64_t slices = 1;
  grid_size group{};
};

inline constexpr std::array default_groups{
    default_group{64, {4, 4, 64}}, default_group{32, {8, 4, 32}}, default_group{16, {8, 8, 16}},
    default_group{8, {16, 8, 8}},  default_group{4, {16, 16, 4}}, default_group{2, {32, 16, 2}},
    default_group{1, {32, 32, 1}},
};
inline constexpr std::array default_groups_for_mali{
    default_group{32, {2, 2, 32}}, default_group{16, {4, 2, 16}}, default_group{8, {4, 4, 8}},
    default_group{4, {8, 4, 4}},   default_group{2, {8, 8, 2}},   default_group{1, {16, 8, 1}},
};

/// Devices that the published sizes are for, by what their drivers call them, with the sizes where no row fits.
struct work_group_family {
  std::string_view device;
  std::span<const default_group> groups;
};

inline constexpr std::array work_group_families{
    work_group_family{"Adreno", default_groups},
    work_group_family{"Mali", default_groups_for_mali},
};

/// Rows are for grids with more columns and rows than this, and at least so many channels; others take the defaults.
inline constexpr std::int64_t thin_grid = 5;
inline constexpr std::int64_t few_channels = 32;

/// The largest size of at most `most` work-items: the longest side is halved until it fits. Precondition: most > 0.
[[nodiscard]] constexpr grid_size shrink_group(grid_size group, std::int64_t most) noexcept {
  while (group[0] * group[1] * group[2] > most) {
    auto longest = std::max_element(group.begin(), group.end());
    *longest = (*longest + 1) / 2;
  }
  return group;
}

/// The published work-group for a grid of such work on a device, at most what the device allows; nothing for devices
/// that nothing was published for. `window` and `stride` are of both directions, 0 where they differ. A launch rounds
/// its grid up to whole work-groups, and work-items beyond it return at once (section 3.3, Fig. 3).
[[nodiscard]] inline std::optional<grid_size> find_work_group(const device_info& device, grid_work work,
                                                              std::int64_t window, std::int64_t stride,
                                                              const grid_size& grid, std::int64_t channels) {
  const std::string words = device.name + " / " + device.version + " / " + device.language_version;
  const auto called = [&](std::string_view part) { return words.find(part) != std::string::npos; };
  const auto family = std::find_if(work_group_families.begin(), work_group_families.end(),
                                   [&](const work_group_family& one) { return called(one.device); });
  if (family == work_group_families.end()) return std::nullopt;
  const auto most = static_cast<std::int64_t>(device.max_work_group_size == 0 ? 64 : device.max_work_group_size);
  if (channels >= few_channels && grid[0] > thin_grid && grid[1] > thin_grid)
    for (const work_group_row& row : work_group_table)
      if (row.work == work && (row.window == 0 || row.window == window) && (row.stride == 0 || row.stride == stride) &&
          called(row.device))
        return shrink_group(row.group, most);
  for (const default_group& row : family->groups)
    if (grid[2] >= row.slices) return shrink_group(row.group, most);
  return shrink_group(family->groups.back().group, most);
}

}  // namespace dnnopt::codegen

#endif  // DNNOPT_BACKEND_CODEGEN_WORK_GROUPS_HPP

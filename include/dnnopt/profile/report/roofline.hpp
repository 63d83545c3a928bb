// Owns the roofline of a profile: how far each launch is from the device's measured ceilings, and which one is near.
//
// Williams, Waterman and Patterson, "Roofline: an insightful visual performance model for multicore architectures"
// (CACM 52(4), 2009): work of `flops` operations on `bytes` bytes takes at least the longer of flops / peak and
// bytes / bandwidth. Their ridge point, peak / bandwidth, divides the launches that memory bounds from the others.
#ifndef DNNOPT_PROFILE_REPORT_ROOFLINE_HPP
#define DNNOPT_PROFILE_REPORT_ROOFLINE_HPP

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dnnopt/profile/report/report.hpp>
#include <dnnopt/profile/report/text.hpp>

namespace dnnopt::profile {

/// Which ceiling bounds a launch.
enum class ceiling : std::uint8_t {
  none,        ///< its work is not known, or no ceiling was measured for it
  bandwidth,   ///< moving its bytes takes the longer time
  arithmetic,  ///< its operations take the longer time
};

/// "-", "bandwidth" or "arithmetic".
[[nodiscard]] constexpr std::string_view to_string(ceiling which) noexcept {
  constexpr std::string_view names[] = {"-", "bandwidth", "arithmetic"};
  return names[static_cast<std::size_t>(which)];
}

/// A launch beneath the roof. Figures are of one call, times are means as in the profile's table.
struct roofline_row {
  std::string name;
  std::string type;
  double calls = 0.0;  ///< per inference
  double flops = 0.0;  ///< multiplications and additions of products; 0 where a kernel states none (element-wise work)
  double bytes = 0.0;  ///< of all memory that the kernel is given, weights and scratch included, each once
  double time_ns = 0.0;
  double flops_per_second = 0.0;
  double bytes_per_second = 0.0;
  ceiling nearest = ceiling::none;
  double least_ns = 0.0;  ///< the time at that ceiling; 0 without one
  double share = 0.0;     ///< least_ns / time_ns; above 1 where caches give more than the measured copies got
};

/// All kernels of a profile beneath its ceilings.
struct roofline {
  device_ceilings ceilings;
  std::vector<roofline_row> rows;  ///< in the order of profile_report::by_kernel: longest in an inference first
  double time_ns = 0.0;            ///< per inference, of the rows that have a ceiling
  double least_ns = 0.0;           ///< the same at their ceilings

  [[nodiscard]] bool measured() const noexcept { return ceilings.flops_per_second > 0.0 || ceilings.bandwidth() > 0.0; }
  [[nodiscard]] double share() const noexcept { return time_ns > 0.0 ? least_ns / time_ns : 0.0; }
};

/// The roofline of a report's kernels beneath report.ceilings; without ceilings, rows have none. O(kernels).
[[nodiscard]] inline roofline roofline_of(const profile_report& report) {
  roofline result;
  result.ceilings = report.ceilings;
  const double peak = report.ceilings.flops_per_second;
  const double bandwidth = report.ceilings.bandwidth();
  for (const statistic_row& from : report.by_kernel) {
    roofline_row row;
    row.name = from.name;
    row.type = from.type;
    row.calls = from.calls;
    row.flops = from.flops;
    row.bytes = from.bytes;
    row.time_ns = from.mean_ns;
    row.flops_per_second = from.flops_per_second;
    row.bytes_per_second = from.bytes_per_second;
    const double computing = peak > 0.0 ? row.flops / peak * 1e9 : 0.0;
    const double moving = bandwidth > 0.0 ? row.bytes / bandwidth * 1e9 : 0.0;
    row.least_ns = std::max(computing, moving);
    if (row.least_ns > 0.0 && row.time_ns > 0.0) {
      row.nearest = computing > moving ? ceiling::arithmetic : ceiling::bandwidth;
      row.share = row.least_ns / row.time_ns;
      result.time_ns += row.time_ns * row.calls;
      result.least_ns += row.least_ns * row.calls;
    }
    result.rows.push_back(std::move(row));
  }
  return result;
}

/// The roofline as a table for people: one line per kernel, none left out.
[[nodiscard]] inline std::string to_table(const roofline& roof, int name_width = 36) {
  const auto known = [](double number) { return number > 0.0 ? text::scaled(number) : std::string("-"); };
  std::string out =
      "roofline: arithmetic " + known(roof.ceilings.flops_per_second) + "FLOP/s (fp32 multiply-adds), bandwidth " +
      known(roof.ceilings.bandwidth()) + "B/s (copies between buffers or images), ridge at " +
      (roof.ceilings.ridge() > 0.0 ? text::fixed(roof.ceilings.ridge(), 2) : std::string("-")) + " FLOP per byte\n";
  out += text::padded("name", -name_width) + text::padded(" type", -18) + text::padded("calls", 7) +
         text::padded("FLOPs", 9) + text::padded("bytes", 9) + text::padded("us", 11) + text::padded("FLOP/s", 9) +
         text::padded("B/s", 9) + text::padded("% of", 9) + "  ceiling\n";
  std::vector<std::string> names;
  for (const roofline_row& row : roof.rows) names.push_back(row.name);
  names = text::shortened(names, static_cast<std::size_t>(name_width));
  for (const roofline_row& row : roof.rows) {
    const bool bounded = row.nearest != ceiling::none;
    out += text::padded(names[static_cast<std::size_t>(&row - roof.rows.data())], -name_width) +
           text::padded(" " + row.type, -18) + text::padded(text::fixed(row.calls, 1), 7) +
           text::padded(known(row.flops), 9) + text::padded(known(row.bytes), 9) +
           text::padded(text::fixed(row.time_ns * 1e-3, 2), 11) + text::padded(known(row.flops_per_second), 9) +
           text::padded(known(row.bytes_per_second), 9) +
           text::padded(bounded ? text::fixed(100.0 * row.share, 1) : std::string("-"), 9) + "  " +
           std::string(to_string(row.nearest)) + "\n";
  }
  if (roof.time_ns > 0.0)
    out += "of " + text::fixed(roof.time_ns * 1e-3, 2) + " us per inference in kernels, " +
           text::fixed(roof.least_ns * 1e-3, 2) +
           " us would do at the ceilings: " + text::fixed(100.0 * roof.share(), 1) + "%\n";
  return out;
}

}  // namespace dnnopt::profile

#endif  // DNNOPT_PROFILE_REPORT_ROOFLINE_HPP

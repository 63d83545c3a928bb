// Owns the knowledge of whether a driver compiles much sooner without its optimizer, and the small file that keeps it.
#ifndef DNNOPT_BACKEND_MEASURE_FACTS_QUICK_FACTS_HPP
#define DNNOPT_BACKEND_MEASURE_FACTS_QUICK_FACTS_HPP

#include <filesystem>
#include <optional>
#include <sstream>
#include <string>

#include <dnnopt/backend/measure/facts/identified_file.hpp>
#include <dnnopt/device_info.hpp>

namespace dnnopt::opencl {

/// Seconds from the first program built to the end of the first inference, of the kernels of one model on one device.
struct quick_facts {
  double quick = 0;      ///< without the driver's optimizer
  double optimized = 0;  ///< with it

  /// Whether a first start is worth being quick: it takes at most two thirds of the time.
  [[nodiscard]] bool pays() const noexcept { return quick <= optimized * 2 / 3; }
};

namespace detail {

[[nodiscard]] inline identified_file quick_file(const device_info& info, const std::filesystem::path& folder) {
  return {info, folder, "quick", 1};
}

}  // namespace detail

/// What the last quick start on the device taught; nothing where there was none, or no folder.
[[nodiscard]] inline std::optional<quick_facts> read_quick_facts(const device_info& info,
                                                                 const std::filesystem::path& folder) {
  const std::optional<std::string> text = detail::quick_file(info, folder).read();
  if (!text) return std::nullopt;
  std::istringstream in(*text);
  quick_facts facts;
  if (!(in >> facts.quick >> facts.optimized) || !(facts.quick >= 0) || !(facts.optimized > 0)) return std::nullopt;
  return facts;
}

/// Keeps them for the next start. A folder that cannot be written keeps nothing: the next quick start finds out again.
inline void write_quick_facts(const device_info& info, const std::filesystem::path& folder, const quick_facts& facts) {
  std::ostringstream text;
  text << facts.quick << ' ' << facts.optimized << '\n';
  detail::quick_file(info, folder).write(text.str());
}

}  // namespace dnnopt::opencl

#endif  // DNNOPT_BACKEND_MEASURE_FACTS_QUICK_FACTS_HPP

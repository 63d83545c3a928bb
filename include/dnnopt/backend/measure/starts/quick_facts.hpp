// Owns the knowledge of whether a driver compiles much sooner without its optimizer, and the small file that keeps it.
#ifndef DNNOPT_BACKEND_MEASURE_STARTS_QUICK_FACTS_HPP
#define DNNOPT_BACKEND_MEASURE_STARTS_QUICK_FACTS_HPP

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <system_error>

#include <dnnopt/backend/opencl/program_cache.hpp>
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

/// The text that a file of quick_facts begins with: of the device, its driver and this version.
[[nodiscard]] inline std::string quick_identity(const device_info& info) {
  return program_cache::identity_of(info) + "quick 1\n";
}

[[nodiscard]] inline std::filesystem::path quick_file(const std::string& identity,
                                                      const std::filesystem::path& folder) {
  char name[64];
  std::snprintf(name, sizeof(name), "quick-%016llx.txt", static_cast<unsigned long long>(hash_bytes(identity)));
  return folder / name;
}

}  // namespace detail

/// What the last quick start on the device taught; nothing where there was none, or no folder.
[[nodiscard]] inline std::optional<quick_facts> read_quick_facts(const device_info& info,
                                                                 const std::filesystem::path& folder) {
  if (folder.empty()) return std::nullopt;
  const std::string identity = detail::quick_identity(info);
  std::ifstream in(detail::quick_file(identity, folder), std::ios::binary);
  std::string head(identity.size(), '\0');
  quick_facts facts;
  if (!in.read(head.data(), static_cast<std::streamsize>(head.size())) || head != identity ||
      !(in >> facts.quick >> facts.optimized) || !(facts.quick >= 0) || !(facts.optimized > 0))
    return std::nullopt;
  return facts;
}

/// Keeps them for the next start. A folder that cannot be written keeps nothing: the next quick start finds out again.
inline void write_quick_facts(const device_info& info, const std::filesystem::path& folder, const quick_facts& facts) {
  if (folder.empty()) return;
  std::error_code problem;
  std::filesystem::create_directories(folder, problem);
  const std::string identity = detail::quick_identity(info);
  const std::filesystem::path path = detail::quick_file(identity, folder);
  const std::filesystem::path temporary =
      path.string() + "." + std::to_string(std::chrono::steady_clock::now().time_since_epoch().count()) + ".tmp";
  bool whole = false;
  {
    std::ofstream out(temporary, std::ios::binary);
    out << identity << facts.quick << ' ' << facts.optimized << '\n';
    out.close();
    whole = static_cast<bool>(out);
  }
  if (whole) std::filesystem::rename(temporary, path, problem);
  if (!whole || problem) std::filesystem::remove(temporary, problem);
}

}  // namespace dnnopt::opencl

#endif  // DNNOPT_BACKEND_MEASURE_STARTS_QUICK_FACTS_HPP

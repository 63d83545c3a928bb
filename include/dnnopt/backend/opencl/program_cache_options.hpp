// Owns where compiled programs are kept between starts.
#ifndef DNNOPT_BACKEND_OPENCL_PROGRAM_CACHE_OPTIONS_HPP
#define DNNOPT_BACKEND_OPENCL_PROGRAM_CACHE_OPTIONS_HPP

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <functional>

namespace dnnopt::opencl {

/// XDG_CACHE_HOME/dnnopt, else HOME/.cache/dnnopt (LOCALAPPDATA\dnnopt on Windows); empty when neither is set.
[[nodiscard]] inline std::filesystem::path default_cache_folder() {
  const auto variable = [](const char* name) -> std::filesystem::path {
    const char* value = std::getenv(name);
    return value == nullptr ? std::filesystem::path() : std::filesystem::path(value);
  };
#if defined(_WIN32)
  const std::filesystem::path local = variable("LOCALAPPDATA");
  return local.empty() ? local : local / "dnnopt";
#else
  // The XDG specification: a relative path is to be ignored.
  if (const std::filesystem::path cache = variable("XDG_CACHE_HOME"); cache.is_absolute()) return cache / "dnnopt";
  if (const std::filesystem::path home = variable("HOME"); home.is_absolute()) return home / ".cache" / "dnnopt";
  return {};
#endif
}

struct program_cache_options {
  bool on_disk = true;
  std::filesystem::path folder = default_cache_folder();  ///< empty keeps programs in memory only
  std::uint64_t max_bytes = std::uint64_t{256} << 20;     ///< of the device's file; the longest unused leave first
  unsigned threads = 0;  ///< that compile programs side by side; 0: as many as the machine has cores
  /// Told before each program of several: how many are ready, and of how many. It is called from the threads that
  /// compile, one at a time. What it throws ends compiling, once the programs under way are done, and comes out of
  /// compile(): so a caller cancels.
  std::function<void(std::size_t ready, std::size_t all)> progress{};
  /// Whether the driver keeps what it compiled by itself, asked when there is something to write: the file then notes
  /// which programs it keeps, and holds no binaries of them. Without it: no; an opened_device finds it out
  /// (backend/measure/facts/driver_programs.hpp).
  std::function<bool()> driver_keeps{};
  /// What building a program took at least, in seconds, that the driver is taken to have lost, though the file notes
  /// that it keeps it; it took half of the noted time too. Below it nobody cares, and a busy machine may be the reason.
  double least_loss = 0.05;
  /// Lets the driver's compiler warn about kernels, which some drivers print on standard error.
  bool driver_warnings = false;
};

}  // namespace dnnopt::opencl

#endif  // DNNOPT_BACKEND_OPENCL_PROGRAM_CACHE_OPTIONS_HPP

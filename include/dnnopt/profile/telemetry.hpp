// Owns the reading of clock, power, energy and temperature of GPU and CPU where the system lets them be read.
#ifndef DNNOPT_PROFILE_TELEMETRY_HPP
#define DNNOPT_PROFILE_TELEMETRY_HPP

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#if defined(__unix__) || defined(__APPLE__)
#include <dlfcn.h>
#endif

namespace dnnopt::profile {

/// One reading; empty where the system does not tell.
struct telemetry_sample {
  std::optional<double> gpu_clock_mhz{};
  std::optional<double> gpu_temperature_c{};
  std::optional<double> gpu_power_w{};
  std::optional<double> gpu_energy_j{};   ///< since the driver was loaded; differences have a meaning
  std::optional<double> cpu_clock_mhz{};  ///< of the first processor
  std::optional<double> cpu_temperature_c{};
  std::optional<double> cpu_energy_j{};  ///< of the package; wraps
};

/// NVIDIA's management library, loaded while the object lives. Absent library, driver or device: every reading is
/// empty.
class nvml_reader {
 public:
  /// The device whose name contains `name_part`, or the first.
  explicit nvml_reader(std::string_view name_part = {}) {
#if defined(__unix__) || defined(__APPLE__)
    library_.reset(::dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL));
    if (!library_) return;
    const auto init = function<status()>("nvmlInit_v2");
    const auto count = function<status(unsigned*)>("nvmlDeviceGetCount_v2");
    const auto handle = function<status(unsigned, void**)>("nvmlDeviceGetHandleByIndex_v2");
    const auto name = function<status(void*, char*, unsigned)>("nvmlDeviceGetName");
    shutdown_ = function<status()>("nvmlShutdown");
    clock_ = function<status(void*, int, unsigned*)>("nvmlDeviceGetClockInfo");
    temperature_ = function<status(void*, int, unsigned*)>("nvmlDeviceGetTemperature");
    power_ = function<status(void*, unsigned*)>("nvmlDeviceGetPowerUsage");
    energy_ = function<status(void*, unsigned long long*)>("nvmlDeviceGetTotalEnergyConsumption");
    if (init == nullptr || count == nullptr || handle == nullptr || init() != 0) return;
    initialized_ = true;
    unsigned devices = 0;
    if (count(&devices) != 0) return;
    for (unsigned i = 0; i < devices; ++i) {
      void* candidate = nullptr;
      if (handle(i, &candidate) != 0) continue;
      std::array<char, 96> text{};
      if (name != nullptr) static_cast<void>(name(candidate, text.data(), static_cast<unsigned>(text.size())));
      if (name_part.empty() || std::string_view(text.data()).find(name_part) != std::string_view::npos) {
        device_ = candidate;
        return;
      }
    }
#else
    static_cast<void>(name_part);
#endif
  }
  nvml_reader(const nvml_reader&) = delete;
  nvml_reader& operator=(const nvml_reader&) = delete;
  ~nvml_reader() {
    if (initialized_ && shutdown_ != nullptr) static_cast<void>(shutdown_());
  }

  /// True where a device was found.
  [[nodiscard]] bool available() const noexcept { return device_ != nullptr; }

  /// Fills the GPU's members; about 20 us to some milliseconds, by driver.
  void read(telemetry_sample& into) const {
    if (device_ == nullptr) return;
    constexpr int sm_clock = 1;
    constexpr int gpu_sensor = 0;
    unsigned value = 0;
    unsigned long long energy = 0;
    if (clock_ != nullptr && clock_(device_, sm_clock, &value) == 0) into.gpu_clock_mhz = value;
    if (temperature_ != nullptr && temperature_(device_, gpu_sensor, &value) == 0) into.gpu_temperature_c = value;
    if (power_ != nullptr && power_(device_, &value) == 0) into.gpu_power_w = value * 1e-3;
    if (energy_ != nullptr && energy_(device_, &energy) == 0) into.gpu_energy_j = static_cast<double>(energy) * 1e-3;
  }

 private:
  using status = int;
  struct close_library {
    void operator()(void* library) const noexcept {
#if defined(__unix__) || defined(__APPLE__)
      if (library != nullptr) ::dlclose(library);
#else
      static_cast<void>(library);
#endif
    }
  };
  template <class F>
  [[nodiscard]] F* function(const char* name) const noexcept {
#if defined(__unix__) || defined(__APPLE__)
    return reinterpret_cast<F*>(::dlsym(library_.get(), name));
#else
    static_cast<void>(name);
    return nullptr;
#endif
  }

  std::unique_ptr<void, close_library> library_;
  bool initialized_ = false;
  void* device_ = nullptr;
  status (*shutdown_)() = nullptr;
  status (*clock_)(void*, int, unsigned*) = nullptr;
  status (*temperature_)(void*, int, unsigned*) = nullptr;
  status (*power_)(void*, unsigned*) = nullptr;
  status (*energy_)(void*, unsigned long long*) = nullptr;
};

/// Files of Linux's /sys: Adreno (kgsl), devfreq GPUs such as Mali, AMD and Intel GPUs (drm, hwmon), thermal zones,
/// cpufreq and RAPL. The files are looked for once; a reading opens those found.
class sysfs_reader {
 public:
  explicit sysfs_reader(std::filesystem::path root = "/sys") {
    const auto use = [](std::vector<source>& list, const std::filesystem::path& file, double scale) {
      std::error_code ignored;
      if (list.empty() && std::filesystem::is_regular_file(file, ignored)) list.push_back({file, scale});
    };
    use(gpu_clock_, root / "class/kgsl/kgsl-3d0/gpuclk", 1e-6);
    use(gpu_clock_, root / "class/kgsl/kgsl-3d0/devfreq/cur_freq", 1e-6);
    use(gpu_temperature_, root / "class/kgsl/kgsl-3d0/temp", 1e-3);
    for (const auto& entry : folders(root / "class/devfreq"))
      if (contains_any(entry.filename().string(), {"gpu", "mali", "kgsl"})) use(gpu_clock_, entry / "cur_freq", 1e-6);
    for (const auto& card : folders(root / "class/drm")) {
      use(gpu_clock_, card / "gt_act_freq_mhz", 1.0);
      for (const auto& monitor : folders(card / "device/hwmon")) {
        use(gpu_clock_, monitor / "freq1_input", 1e-6);
        use(gpu_power_, monitor / "power1_average", 1e-6);
        use(gpu_temperature_, monitor / "temp1_input", 1e-3);
      }
    }
    for (const auto& zone : folders(root / "class/thermal")) {
      const std::string type = line(zone / "type");
      if (contains_any(type, {"gpu"})) use(gpu_temperature_, zone / "temp", 1e-3);
      if (contains_any(type, {"cpu", "x86_pkg", "soc"})) use(cpu_temperature_, zone / "temp", 1e-3);
    }
    use(cpu_clock_, root / "devices/system/cpu/cpu0/cpufreq/scaling_cur_freq", 1e-3);
    use(cpu_energy_, root / "class/powercap/intel-rapl:0/energy_uj", 1e-6);
  }

  /// Fills what has files and is still empty.
  void read(telemetry_sample& into) const {
    fill(gpu_clock_, into.gpu_clock_mhz);
    fill(gpu_temperature_, into.gpu_temperature_c);
    fill(gpu_power_, into.gpu_power_w);
    fill(cpu_clock_, into.cpu_clock_mhz);
    fill(cpu_temperature_, into.cpu_temperature_c);
    fill(cpu_energy_, into.cpu_energy_j);
  }

 private:
  struct source {
    std::filesystem::path file;
    double scale;
  };

  /// The entries of a folder in order of their names; none where it is absent or closed to us.
  [[nodiscard]] static std::vector<std::filesystem::path> folders(const std::filesystem::path& parent) {
    std::vector<std::filesystem::path> found;
    std::error_code failed;
    for (std::filesystem::directory_iterator it(parent, failed), end; !failed && it != end; it.increment(failed))
      found.push_back(it->path());
    std::sort(found.begin(), found.end());
    return found;
  }
  [[nodiscard]] static bool contains_any(std::string_view whole, std::initializer_list<std::string_view> parts) {
    return std::any_of(parts.begin(), parts.end(),
                       [&](std::string_view part) { return whole.find(part) != std::string_view::npos; });
  }
  [[nodiscard]] static std::string line(const std::filesystem::path& file) {
    std::string text;
    std::ifstream in(file);
    std::getline(in, text);
    return text;
  }
  static void fill(const std::vector<source>& from, std::optional<double>& into) {
    if (into || from.empty()) return;
    const std::string text = line(from.front().file);
    double value = 0.0;
    if (std::from_chars(text.data(), text.data() + text.size(), value).ec == std::errc{})
      into = value * from.front().scale;
  }

  std::vector<source> gpu_clock_, gpu_temperature_, gpu_power_, cpu_clock_, cpu_temperature_, cpu_energy_;
};

/// All that can be read on this machine.
class telemetry_reader {
 public:
  /// `device` is part of the GPU's name, for machines with several.
  explicit telemetry_reader(std::string_view device = {}) : nvml_(device) {}
  [[nodiscard]] telemetry_sample read() const {
    telemetry_sample sample;
    nvml_.read(sample);
    sysfs_.read(sample);
    return sample;
  }

 private:
  nvml_reader nvml_;
  sysfs_reader sysfs_;
};

}  // namespace dnnopt::profile

#endif  // DNNOPT_PROFILE_TELEMETRY_HPP

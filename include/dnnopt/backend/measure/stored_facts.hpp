// Owns the facts of a device as text and as files, so that a device is measured once.
#ifndef DNNOPT_BACKEND_MEASURE_STORED_FACTS_HPP
#define DNNOPT_BACKEND_MEASURE_STORED_FACTS_HPP

#include <charconv>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>

#include <dnnopt/backend/measure/device_facts.hpp>
#include <dnnopt/backend/opencl/context.hpp>
#include <dnnopt/device_info.hpp>

namespace dnnopt::opencl {

namespace detail {

struct fact_field {
  std::string_view name;
  double device_facts::*member;
};

inline constexpr fact_field fact_fields[] = {
    {"launch_us", &device_facts::launch_us},
    {"launch_with_event_us", &device_facts::launch_with_event_us},
    {"recorded_launch_us", &device_facts::recorded_launch_us},
    {"round_trip_us", &device_facts::round_trip_us},
    {"buffer_copy_gbs", &device_facts::buffer_copy_gbs},
    {"image_copy_fp32_gbs", &device_facts::image_copy_fp32_gbs},
    {"image_copy_fp16_gbs", &device_facts::image_copy_fp16_gbs},
    {"buffer_window_gbs", &device_facts::buffer_window_gbs},
    {"image_window_gbs", &device_facts::image_window_gbs},
    {"buffer_window_fp16_gbs", &device_facts::buffer_window_fp16_gbs},
    {"image_window_fp16_gbs", &device_facts::image_window_fp16_gbs},
    {"image_filter_bits_fp32", &device_facts::image_filter_bits_fp32},
    {"image_filter_bits_fp16", &device_facts::image_filter_bits_fp16},
    {"cached_read_gbs", &device_facts::cached_read_gbs},
    {"fma_gflops", &device_facts::fma_gflops},
    {"upload_gbs", &device_facts::upload_gbs},
    {"download_gbs", &device_facts::download_gbs},
};

}  // namespace detail

/// Facts as lines "name value", every field once; what parse_facts() reads. For files and for printing.
[[nodiscard]] inline std::string print_facts(const device_facts& facts) {
  std::string text;
  for (const detail::fact_field& field : detail::fact_fields) {
    char line[96];
    std::snprintf(line, sizeof(line), "%.*s %.9g\n", static_cast<int>(field.name.size()), field.name.data(),
                  facts.*field.member);
    text += line;
  }
  return text + "wave_size " + std::to_string(facts.wave_size) + "\n";
}

/// The facts of print_facts(); nothing when a field is missing or is no number, so that a damaged file is measured
/// anew.
[[nodiscard]] inline std::optional<device_facts> parse_facts(std::string_view text) {
  device_facts facts;
  const auto value_of = [&](std::string_view name, auto& value) {
    const std::string start = std::string(name) + " ";
    std::size_t at = text.substr(0, start.size()) == start ? 0 : text.find("\n" + start);
    if (at == std::string_view::npos) return false;
    at = text.find(' ', at) + 1;
    const std::size_t end = text.find('\n', at);
    if (end == std::string_view::npos) return false;
    const auto [stop, failure] = std::from_chars(text.data() + at, text.data() + end, value);
    return failure == std::errc() && stop == text.data() + end;
  };
  for (const detail::fact_field& field : detail::fact_fields) {
    double& value = facts.*field.member;
    if (!value_of(field.name, value) || !(value >= 0)) return std::nullopt;
  }
  if (!value_of("wave_size", facts.wave_size)) return std::nullopt;
  return facts;
}

/// The facts of the device: from the file in `folder` when it was measured before with the same driver and library
/// version, else measured now and written there. An empty folder, or one that cannot be written, measures each time.
[[nodiscard]] inline device_facts facts_of(context& where,
                                           const std::filesystem::path& folder = default_cache_folder()) {
  if (folder.empty()) return measure_facts(where);
  const std::string identity = program_cache::identity_of(where.info()) + "facts 3\n";
  char name[64];
  std::snprintf(name, sizeof(name), "facts-%016llx.txt", static_cast<unsigned long long>(hash_bytes(identity)));
  const std::filesystem::path path = folder / name;
  {
    std::ifstream in(path, std::ios::binary);
    std::ostringstream text;
    if (in && text << in.rdbuf()) {
      const std::string whole = text.str();
      if (whole.starts_with(identity)) {
        if (const auto facts = parse_facts(std::string_view(whole).substr(identity.size()))) return *facts;
      }
    }
  }
  const device_facts facts = measure_facts(where);
  std::error_code problem;
  std::filesystem::create_directories(folder, problem);
  const std::filesystem::path temporary =
      path.string() + "." + std::to_string(std::chrono::steady_clock::now().time_since_epoch().count()) + ".tmp";
  bool whole = false;
  {
    std::ofstream out(temporary, std::ios::binary);
    out << identity << print_facts(facts);
    out.close();
    whole = static_cast<bool>(out);
  }
  if (whole) std::filesystem::rename(temporary, path, problem);
  if (!whole || problem) std::filesystem::remove(temporary, problem);
  return facts;
}

}  // namespace dnnopt::opencl

#endif  // DNNOPT_BACKEND_MEASURE_STORED_FACTS_HPP

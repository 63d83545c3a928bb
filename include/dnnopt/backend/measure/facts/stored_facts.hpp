// Owns the facts of a device as text and as files, so that a device is measured once.
#ifndef DNNOPT_BACKEND_MEASURE_FACTS_STORED_FACTS_HPP
#define DNNOPT_BACKEND_MEASURE_FACTS_STORED_FACTS_HPP

#include <charconv>
#include <cstddef>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include <dnnopt/backend/measure/facts/device_facts.hpp>
#include <dnnopt/backend/measure/facts/identified_file.hpp>
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
  const identified_file file(where.info(), folder, "facts", 3);
  if (const auto text = file.read())
    if (const auto facts = parse_facts(*text)) return *facts;
  const device_facts facts = measure_facts(where);
  file.write(print_facts(facts));
  return facts;
}

}  // namespace dnnopt::opencl

#endif  // DNNOPT_BACKEND_MEASURE_FACTS_STORED_FACTS_HPP

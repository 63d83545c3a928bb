// Owns the JSON form of device_info and device_facts: what `dnnopt devices --json` prints for each device.
#ifndef DNNOPT_DEVICE_INFO_JSON_HPP
#define DNNOPT_DEVICE_INFO_JSON_HPP

#include <nlohmann/json.hpp>
#include <string>

#include <dnnopt/device_info.hpp>

namespace dnnopt {

/// Found by nlohmann::json(limits); sizes in texels.
inline void to_json(nlohmann::json& json, const image_limits& limits) {
  json = {{"supported", limits.supported},
          {"rgba_fp32", limits.rgba_fp32},
          {"rgba_fp16", limits.rgba_fp16},
          {"max_2d", {limits.max_width_2d, limits.max_height_2d}},
          {"max_3d", {limits.max_width_3d, limits.max_height_3d, limits.max_depth_3d}},
          {"max_array_layers", limits.max_array_layers},
          {"max_buffer_texels", limits.max_buffer_texels},
          {"max_read_arguments", limits.max_read_arguments},
          {"max_write_arguments", limits.max_write_arguments},
          {"max_samplers", limits.max_samplers},
          {"buffer_pitch_alignment", limits.buffer_pitch_alignment},
          {"buffer_base_alignment", limits.buffer_base_alignment}};
}

inline void to_json(nlohmann::json& json, const vector_widths& widths) {
  json = {{"char", widths.char_width},    {"short", widths.short_width}, {"int", widths.int_width},
          {"long", widths.long_width},    {"half", widths.half_width},   {"float", widths.float_width},
          {"double", widths.double_width}};
}

/// One element of `devices[]`; sizes in bytes, `spec` is what --device takes.
inline void to_json(nlohmann::json& json, const device_info& info) {
  json = {{"spec", "opencl:" + std::to_string(info.index)},
          {"name", info.name},
          {"vendor", info.vendor},
          {"vendor_id", info.vendor_id},
          {"platform", info.platform},
          {"platform_version", info.platform_version},
          {"version", info.version},
          {"language_version", info.language_version},
          {"driver_version", info.driver_version},
          {"type", std::string(name_of(info.type))},
          {"compute_units", info.compute_units},
          {"clock_mhz", info.clock_mhz},
          {"address_bits", info.address_bits},
          {"global_memory_bytes", info.global_memory_bytes},
          {"max_allocation_bytes", info.max_allocation_bytes},
          {"global_cache_bytes", info.global_cache_bytes},
          {"cache_line_bytes", info.cache_line_bytes},
          {"local_memory_bytes", info.local_memory_bytes},
          {"dedicated_local_memory", info.dedicated_local_memory},
          {"constant_memory_bytes", info.constant_memory_bytes},
          {"max_parameter_bytes", info.max_parameter_bytes},
          {"max_work_group_size", info.max_work_group_size},
          {"max_work_item_sizes", info.max_work_item_sizes},
          {"base_address_alignment_bytes", info.base_address_alignment_bytes},
          {"preferred_widths", info.preferred_widths},
          {"native_widths", info.native_widths},
          {"images", info.images},
          {"fp16", info.fp16},
          {"fp64", info.fp64},
          {"subgroups", info.subgroups},
          {"host_unified_memory", info.host_unified_memory},
          {"rounded_division", info.rounded_division},
          {"shared_virtual_memory", info.shared_virtual_memory},
          {"profiling", info.profiling},
          {"command_buffers", info.command_buffers},
          {"recordable_queues", info.recordable_queues},
          {"timer_resolution_ns", info.timer_resolution_ns},
          {"extensions", info.extensions}};
}

/// Measured facts, times in microseconds, rates in 1e9 per second.
inline void to_json(nlohmann::json& json, const device_facts& facts) {
  json = {{"launch_us", facts.launch_us},
          {"launch_with_event_us", facts.launch_with_event_us},
          {"recorded_launch_us", facts.recorded_launch_us},
          {"round_trip_us", facts.round_trip_us},
          {"buffer_copy_gbs", facts.buffer_copy_gbs},
          {"image_copy_fp32_gbs", facts.image_copy_fp32_gbs},
          {"image_copy_fp16_gbs", facts.image_copy_fp16_gbs},
          {"buffer_window_gbs", facts.buffer_window_gbs},
          {"image_window_gbs", facts.image_window_gbs},
          {"buffer_window_fp16_gbs", facts.buffer_window_fp16_gbs},
          {"image_window_fp16_gbs", facts.image_window_fp16_gbs},
          {"image_filter_bits_fp32", facts.image_filter_bits_fp32},
          {"image_filter_bits_fp16", facts.image_filter_bits_fp16},
          {"cached_read_gbs", facts.cached_read_gbs},
          {"fma_gflops", facts.fma_gflops},
          {"upload_gbs", facts.upload_gbs},
          {"download_gbs", facts.download_gbs},
          {"wave_size", facts.wave_size},
          {"images_fast_fp32", facts.images_fast(false)},
          {"images_fast_fp16", facts.images_fast(true)}};
}

}  // namespace dnnopt

#endif  // DNNOPT_DEVICE_INFO_JSON_HPP

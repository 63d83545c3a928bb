// dnnopt devices
#include <dnnopt/backend/opencl/device.hpp>
#include <dnnopt/error.hpp>

#include "command.hpp"

namespace tool {

int devices(const options& o) {
  json result;
  result["devices"] = json::array();
  std::string text;
  try {
    for (const dnnopt::opencl::device& d : dnnopt::opencl::list_devices()) {
      const dnnopt::device_info& i = d.info;
      json row;
      row["spec"] = "opencl:" + std::to_string(i.index);
      row["name"] = i.name;
      row["vendor"] = i.vendor;
      row["platform"] = i.platform;
      row["version"] = i.version;
      row["driver_version"] = i.driver_version;
      row["type"] = dnnopt::name_of(i.type);
      row["compute_units"] = i.compute_units;
      row["clock_mhz"] = i.clock_mhz;
      row["global_memory_bytes"] = i.global_memory_bytes;
      row["max_allocation_bytes"] = i.max_allocation_bytes;
      row["local_memory_bytes"] = i.local_memory_bytes;
      row["dedicated_local_memory"] = i.dedicated_local_memory;
      row["max_work_group_size"] = i.max_work_group_size;
      row["base_address_alignment_bytes"] = i.base_address_alignment_bytes;
      row["images"] = {{"supported", i.images.supported},
                       {"rgba_fp32", i.images.rgba_fp32},
                       {"rgba_fp16", i.images.rgba_fp16},
                       {"max_width_2d", i.images.max_width_2d},
                       {"max_height_2d", i.images.max_height_2d},
                       {"max_array_layers", i.images.max_array_layers},
                       {"max_buffer_texels", i.images.max_buffer_texels}};
      row["fp16"] = i.fp16;
      row["fp64"] = i.fp64;
      row["subgroups"] = i.subgroups;
      row["command_buffers"] = i.command_buffers;
      row["recordable_queues"] = i.recordable_queues;
      row["timer_resolution_ns"] = i.timer_resolution_ns;
      row["extensions"] = i.extensions;
      text += row["spec"].get<std::string>() + "  " + i.name + " (" + i.platform + ", " + i.version + ", driver " +
              i.driver_version + ")\n";
      text +=
          "  " + std::string(dnnopt::name_of(i.type)) + ", " + std::to_string(i.compute_units) + " compute units, " +
          std::to_string(i.global_memory_bytes >> 20U) + " MiB global, " + std::to_string(i.local_memory_bytes >> 10U) +
          " KiB local, work-groups up to " + std::to_string(i.max_work_group_size) + "\n  images " +
          (i.images.supported ? std::to_string(i.images.max_width_2d) + " x " + std::to_string(i.images.max_height_2d)
                              : "no") +
          ", fp16 arithmetic " + (i.fp16 ? "yes" : "no") + ", command buffers " + (i.command_buffers ? "yes" : "no") +
          ", timer resolution " + std::to_string(i.timer_resolution_ns) + " ns\n";
      result["devices"].push_back(std::move(row));
    }
  } catch (const dnnopt::error& e) {
    if (e.code() != dnnopt::errc::opencl_unavailable) throw;
    result["why_none"] = e.what();
    text = std::string(e.what()) + "\n";
  }
  write_json(o, result);
  if (!result["devices"].empty()) {
    say(o, text);
    return 0;
  }
  // A script that asks for devices has to notice that there are none.
  std::fputs(("dnnopt: " + (text.empty() ? "no OpenCL device\n" : text)).c_str(), stderr);
  return 2;
}

}  // namespace tool

// Owns what lowering is told of a device: its limits, what a tuner chose for it, memory objects, and what is measured.
#ifndef DNNOPT_BACKEND_MEASURE_DEVICE_LOWERING_HPP
#define DNNOPT_BACKEND_MEASURE_DEVICE_LOWERING_HPP

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <dnnopt/backend/codegen/lower.hpp>
#include <dnnopt/backend/measure/opened_device.hpp>
#include <dnnopt/backend/measure/tuning_store.hpp>
#include <dnnopt/backend/program/texel_images.hpp>

namespace dnnopt {

/// Options of lowering for a device, and what could not be learned of it.
struct device_lowering {
  std::shared_ptr<const device_info> seen;  ///< what `options` point to: the device with the form that was asked for
  codegen::lower_options options;
  std::vector<std::string> notes;
};

/// Whether a graph resamples: only an image's filter asks for what is measured of a device, which takes seconds once.
[[nodiscard]] inline bool resamples(const graph& g) {
  for (const node_id id : g.nodes())
    if (g.node_at(id).op->kind == computation_kind::resampling) return true;
  return false;
}

/// Of a device that is not opened: what its driver lists, and nothing measured. Precondition: `tuned`, which may be
/// null, outlives the result.
[[nodiscard]] inline device_lowering lowering_for(const device_info& info, memory_objects wanted,
                                                  const tuning_store* tuned, kernel_form form = kernel_form::native) {
  auto seen = std::make_shared<const device_info>(with_form(info, form));
  device_lowering result{seen, codegen::default_lower_options(seen.get()), {}};
  if (tuned != nullptr) result.options.tuned = tuned->find(*seen);
  result.options.memory = wanted;
  return result;
}

/// Whether tensors between kernels are to lie in images, or inputs and outputs of the caller do.
[[nodiscard]] inline bool wants_images(memory_objects wanted, const std::map<std::string, texel_layout>& exchanged) {
  return wanted == memory_objects::images || std::any_of(exchanged.begin(), exchanged.end(), [](const auto& stated) {
           return stated.second.object != memory_object::buffer;
         });
}

/// Of an opened device; it is measured where `g` resamples and images are wanted, and a note says so where it could not
/// be. `exchanged` is what exchange_texels is told. Preconditions: `device` and `tuned`, which may be null, outlive the
/// result.
[[nodiscard]] inline device_lowering lowering_for(opened_device& device, const graph& g, memory_objects wanted,
                                                  const tuning_store* tuned,
                                                  const std::map<std::string, texel_layout>& exchanged = {},
                                                  kernel_form form = kernel_form::native) {
  device_lowering result = lowering_for(device.context.info(), wanted, tuned, form);
  if (wants_images(wanted, exchanged) && resamples(g)) {
    try {
      result.options.facts = &device.facts();
    } catch (const error& e) {
      result.notes.push_back(std::string("the device could not be measured: ") + e.what());
    }
  }
  return result;
}

}  // namespace dnnopt

#endif  // DNNOPT_BACKEND_MEASURE_DEVICE_LOWERING_HPP

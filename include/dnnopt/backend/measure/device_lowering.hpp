// Owns what lowering is told of a device: its limits, what a tuner chose for it, memory objects, and what is measured.
#ifndef DNNOPT_BACKEND_MEASURE_DEVICE_LOWERING_HPP
#define DNNOPT_BACKEND_MEASURE_DEVICE_LOWERING_HPP

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <dnnopt/backend/codegen/lower.hpp>
#include <dnnopt/backend/measure/opened_device.hpp>
#include <dnnopt/backend/measure/tuning_store.hpp>
#include <dnnopt/backend/program/texel_images.hpp>
#include <dnnopt/storage.hpp>

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

/// What multiplies in matrix steps on a device, by compile_options::matrix_steps. Finds out what works where that is
/// "automatic". A provider's name gives that alone; one from tiles has beside it, for what does not multiply from
/// tiles, the device's own or, in plain OpenCL C, the plain one. Errors: invalid_argument for a name that no provider
/// has; those of devices.
[[nodiscard]] inline codegen::step_providers steps_of(opened_device& device, std::string_view wanted) {
  if (wanted == "automatic") return device.steps();
  if (wanted == "none") return {};
  const codegen::matrix_step* named = codegen::find_matrix_step(wanted);
  if (named == nullptr)
    throw error(errc::invalid_argument, "'" + std::string(wanted) + "' is not among the matrix steps: automatic, none" +
                                            codegen::matrix_step_names(", "));
  codegen::step_providers given;
  given.place_of(*named) = named;
  if (named->from_tiles()) given.of_waves = is_plain(*named) ? &codegen::plain_step : device.steps().of_waves;
  return given;
}

/// Whether a graph, or a body in it, holds bytes that products may read.
[[nodiscard]] inline bool holds_bytes(const graph& g) {
  for (value_id v = 0; v < g.value_count(); ++v)
    if (g.facts(v).type == dtype::int8 || g.facts(v).type == dtype::uint8) return true;
  for (const node_id id : g.nodes())
    for (const auto& [key, held] : g.node_at(id).attributes)
      if (const auto* body = std::get_if<subgraph>(&held); body != nullptr && *body && holds_bytes(**body)) return true;
  return false;
}

/// What multiplies bytes on a device, by compile_options::integer_dots; null: nothing shall. Finds out what works where
/// that is "automatic". Errors: invalid_argument for a name that no provider has; those of devices.
[[nodiscard]] inline const codegen::integer_dot* integer_dot_of(opened_device& device, std::string_view wanted) {
  if (wanted == "automatic") return &device.dot();
  if (wanted == "none") return nullptr;
  const codegen::integer_dot* named = codegen::find_integer_dot(wanted);
  if (named == nullptr)
    throw error(errc::invalid_argument, "'" + std::string(wanted) + "' is not among the integer dots: automatic, none" +
                                            codegen::integer_dot_names(", "));
  return named;
}

/// Whether products of quantized operands are computed in integers: where `g` holds bytes, kernels are those for wide
/// vectors, and the device multiplies bytes sooner than floats, or is told what shall. Errors: as integer_dot_of.
[[nodiscard]] inline bool computes_in_integers(opened_device& device, const graph& g, kernel_form form,
                                               std::string_view wanted) {
  if (!with_form(device.context.info(), form).prefers_vectors() || !holds_bytes(g)) return false;
  const codegen::integer_dot* const dot = integer_dot_of(device, wanted);
  return dot != nullptr && (dot->pays || wanted != "automatic");
}

/// Whether products of dequantized operands multiply their codes: where `g` holds bytes, kernels are not those for wide
/// vectors, and the device multiplies bytes in matrix steps, or halves, in which such codes are exact. Errors: as
/// steps_of, but for a device that cannot be measured, which multiplies none.
[[nodiscard]] inline bool computes_in_codes(opened_device& device, const graph& g, kernel_form form,
                                            std::string_view matrix_steps) {
  if (with_form(device.context.info(), form).prefers_vectors() || !holds_bytes(g)) return false;
  try {
    const codegen::step_providers steps = steps_of(device, matrix_steps);
    return steps.of_waves != nullptr || steps.of_tiles != nullptr || steps.of_bytes != nullptr;
  } catch (const error& e) {
    if (e.code() == errc::invalid_argument) throw;
    return false;
  }
}

/// Of an opened device; what multiplies in matrix steps on it is `matrix_steps` (steps_of) where the kernels are not
/// those for wide vectors; bytes, `integer_dots` (integer_dot_of) where `g` has some and they are. The device is
/// measured where `g` resamples and images are wanted, and a note says so where it could not be. `exchanged` is what
/// exchange_texels is told. Preconditions: `device` and `tuned`, which may be null, outlive the result.
[[nodiscard]] inline device_lowering lowering_for(opened_device& device, const graph& g, memory_objects wanted,
                                                  const tuning_store* tuned,
                                                  const std::map<std::string, texel_layout>& exchanged = {},
                                                  kernel_form form = kernel_form::native,
                                                  std::string_view matrix_steps = "automatic",
                                                  std::string_view integer_dots = "automatic") {
  device_lowering result = lowering_for(device.context.info(), wanted, tuned, form);
  if (!result.seen->prefers_vectors()) {
    try {
      result.options.steps = steps_of(device, matrix_steps);
    } catch (const error& e) {
      if (e.code() == errc::invalid_argument) throw;
      result.notes.push_back(std::string("matrix steps could not be looked for: ") + e.what());
    }
  }
  if (result.seen->prefers_vectors() && holds_bytes(g)) result.options.dot = integer_dot_of(device, integer_dots);
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

// Owns a program made of a graph with the storage that was asked for: precision, texels and memory objects.
#ifndef DNNOPT_BACKEND_STORAGE_STORED_PROGRAM_HPP
#define DNNOPT_BACKEND_STORAGE_STORED_PROGRAM_HPP

#include <map>
#include <memory>
#include <string>
#include <utility>

#include <dnnopt/backend/program/make_program.hpp>
#include <dnnopt/backend/storage/exchange_texels.hpp>
#include <dnnopt/backend/storage/narrow.hpp>
#include <dnnopt/backend/storage/pack.hpp>
#include <dnnopt/storage.hpp>

namespace dnnopt {

/// A program, and how its tensors are stored.
struct stored_program {
  program placed;
  storage_figures figures;
};

/// Lets the inputs and outputs named in `exchanged` hold the caller's texels, narrows and packs as `wanted` and
/// `how.memory` say, then lowers. `g` itself is not changed.
/// Errors: no_kernel (with `require_device`); unsupported where arithmetic in fp16 is wanted of a device without
/// cl_khr_fp16; those of exchange_texels.
[[nodiscard]] inline stored_program make_stored_program(std::shared_ptr<const graph> g, precision wanted,
                                                        codegen::lower_options how, bool require_device,
                                                        const std::map<std::string, texel_layout>& exchanged = {}) {
  storage_figures figures;
  how.half_products = wanted == precision::fp16_arithmetic;
  if (how.half_products && how.device != nullptr && !how.device->fp16)
    throw error(errc::unsupported, "'" + how.device->name +
                                       "' has no arithmetic in fp16 (cl_khr_fp16); precision fp16 stores in it and "
                                       "computes in fp32");
  if (!exchanged.empty()) {
    exchanged_graph made = exchange_texels(g, exchanged, how);
    figures.exchanged_values = made.values;
    figures.conversions = made.conversions;
    figures.notes = std::move(made.notes);
    g = std::move(made.g);
  }
  if (stores_halves(wanted)) {
    narrowed_graph narrow = narrow_storage(g, how);
    figures.narrowed_intermediates = narrow.intermediates;
    figures.narrowed_constants = narrow.constants;
    g = std::move(narrow.g);
  }
  program placed = make_program(g, how, require_device);
  if (how.memory != memory_objects::buffers && (how.memory != memory_objects::automatic || gains_by_texels(placed))) {
    packed_graph packed = pack_storage(placed, how);
    figures.packed_values = packed.values;
    figures.image_values = packed.images;
    figures.copy_bytes = packed.copy_bytes;
    figures.notes.insert(figures.notes.end(), packed.notes.begin(), packed.notes.end());
    placed = make_program(std::move(packed.g), how, require_device);
  }
  stored_program made{std::move(placed), std::move(figures)};
  for (const placed_node& step : made.placed.steps)
    for (const codegen::kernel_plan& plan : step.lowered.kernels) {
      made.figures.product_kernels += plan.flops == index_expr(0) ? 0 : 1;
      made.figures.half_products += plan.half_products ? 1 : 0;
      if (plan.step.empty()) continue;
      ++made.figures.step_kernels;
      std::string& providers = made.figures.step_provider;
      if (providers.find(plan.step) == std::string::npos)
        providers += (providers.empty() ? "" : ", ") + std::string(plan.step);
    }
  for (const placed_node& step : made.placed.steps)
    made.figures.notes.insert(made.figures.notes.end(), step.lowered.notes.begin(), step.lowered.notes.end());
  // Nobody who wants no images asks what they would have given.
  if (how.memory == memory_objects::images || !exchanged.empty())
    for (const placed_node& step : made.placed.steps)
      for (const codegen::kernel_plan& plan : step.lowered.kernels)
        made.figures.notes.insert(made.figures.notes.end(), plan.notes.begin(), plan.notes.end());
  return made;
}

}  // namespace dnnopt

#endif  // DNNOPT_BACKEND_STORAGE_STORED_PROGRAM_HPP

// Owns a program made of a graph with the storage that was asked for: precision, texels and memory objects.
#ifndef DNNOPT_BACKEND_STORAGE_STORED_PROGRAM_HPP
#define DNNOPT_BACKEND_STORAGE_STORED_PROGRAM_HPP

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include <dnnopt/backend/program/lower_again.hpp>
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

namespace detail {

/// Adds to `figures` what the kernels of `placed` tell of themselves.
inline void add_kernel_figures(const program& placed, bool wants_images, storage_figures& figures) {
  for (const placed_node& step : placed.steps)
    for (const codegen::kernel_plan& plan : step.lowered.kernels) {
      figures.product_kernels += plan.flops == index_expr(0) ? 0 : 1;
      figures.half_products += plan.half_products ? 1 : 0;
      if (plan.step.empty()) continue;
      ++figures.step_kernels;
      std::string& providers = figures.step_provider;
      if (providers.find(plan.step) == std::string::npos)
        providers += (providers.empty() ? "" : ", ") + std::string(plan.step);
    }
  for (const placed_node& step : placed.steps)
    figures.notes.insert(figures.notes.end(), step.lowered.notes.begin(), step.lowered.notes.end());
  // Nobody who wants no images asks what they would have given.
  if (!wants_images) return;
  for (const placed_node& step : placed.steps)
    for (const codegen::kernel_plan& plan : step.lowered.kernels)
      figures.notes.insert(figures.notes.end(), plan.notes.begin(), plan.notes.end());
}

/// Gives `placed` the graph `g`, in which some values hold other types or texels than before. A block that cannot carry
/// them makes the graph be placed anew.
inline void store_otherwise(program& placed, std::shared_ptr<const graph> g, const codegen::lower_options& how,
                            bool require_device) {
  const graph& before = *placed.g;
  const auto differs = [&](value_id v) {
    return before.facts(v).type != g->facts(v).type || before.facts(v).texels != g->facts(v).texels;
  };
  if (!lower_again(placed, g, how, [&](const placed_node& step) { return touches(*g, step, differs); }))
    placed = make_program(std::move(g), how, require_device);
}

/// The program of make_stored_program with the figures of its storage, without those of its kernels.
[[nodiscard]] inline stored_program store_program(std::shared_ptr<const graph> g, precision wanted,
                                                  const codegen::lower_options& how, bool require_device,
                                                  const std::map<std::string, texel_layout>& exchanged) {
  stored_program made{make_program(std::move(g), how, require_device), {}};
  program& placed = made.placed;
  storage_figures& figures = made.figures;
  if (!exchanged.empty()) {
    exchanged_graph held = exchange_texels(placed, exchanged, how);
    figures.exchanged_values = held.values;
    figures.conversions = held.conversions;
    figures.notes = std::move(held.notes);
    if (!place_exchange(placed, held, how)) placed = make_program(std::move(held.g), how, require_device);
  }
  if (stores_halves(wanted)) {
    narrowed_graph narrow = narrow_storage(placed);
    figures.narrowed_intermediates = narrow.intermediates;
    figures.narrowed_constants = narrow.constants;
    store_otherwise(placed, std::move(narrow.g), how, require_device);
  }
  if (how.memory != memory_objects::buffers && (how.memory != memory_objects::automatic || gains_by_texels(placed))) {
    packed_graph packed = pack_storage(placed, how);
    figures.packed_values = packed.values;
    figures.image_values = packed.images;
    figures.copy_bytes = packed.copy_bytes;
    figures.notes.insert(figures.notes.end(), packed.notes.begin(), packed.notes.end());
    store_otherwise(placed, std::move(packed.g), how, require_device);
  }
  return made;
}

}  // namespace detail

/// Lets the inputs and outputs named in `exchanged` hold the caller's texels, and narrows and packs as `wanted` and
/// `how.memory` say. The graph is placed once; what storage changes is lowered again in its place. `g` itself is not
/// changed.
/// Errors: no_kernel (with `require_device`); unsupported where arithmetic in fp16 is wanted of a device without
/// cl_khr_fp16; those of exchange_texels.
class stored_program_maker {
 public:
  /// `how` without what precision decides. What it points to must outlive this object.
  stored_program_maker(std::shared_ptr<const graph> g, precision wanted, codegen::lower_options how,
                       bool require_device, std::map<std::string, texel_layout> exchanged = {})
      : g_(std::move(g)),
        wanted_(wanted),
        how_(std::move(how)),
        require_device_(require_device),
        exchanged_(std::move(exchanged)) {
    how_.half_products = wanted == precision::fp16_arithmetic;
    if (how_.half_products && how_.device != nullptr && !how_.device->fp16)
      throw error(errc::unsupported, "'" + how_.device->name +
                                         "' has no arithmetic in fp16 (cl_khr_fp16); precision fp16 stores in it and "
                                         "computes in fp32");
    usual_ = detail::store_program(g_, wanted_, how_, require_device_, exchanged_);
  }

  [[nodiscard]] const program& placed() const noexcept { return usual_.placed; }
  [[nodiscard]] const codegen::lower_options& options() const noexcept { return how_; }

  /// The program with all figures.
  [[nodiscard]] stored_program usual() const { return counted(usual_); }
  /// The same where packed weights may take `growth` times the memory of the weights: kernels that pack are lowered
  /// again.
  [[nodiscard]] stored_program with_growth(double growth) const {
    codegen::lower_options options = how_;
    options.weight_growth = std::min(how_.weight_growth, growth);
    stored_program made = usual_;
    if (!lower_again(made.placed, made.placed.g, options,
                     [](const placed_node& step) { return !step.lowered.prepare.empty(); }))
      made = detail::store_program(g_, wanted_, options, require_device_, exchanged_);
    return counted(std::move(made));
  }
  /// Lowers those steps again that have a limit in how.work_group_limits, for these have changed.
  void follow_limits() {
    if (!lower_again(usual_.placed, usual_.placed.g, how_,
                     [&](const placed_node& step) { return how_.work_group_limits->contains(step.id); }))
      usual_ = detail::store_program(g_, wanted_, how_, require_device_, exchanged_);
  }

 private:
  [[nodiscard]] stored_program counted(stored_program made) const {
    detail::add_kernel_figures(made.placed, how_.memory == memory_objects::images || !exchanged_.empty(), made.figures);
    return made;
  }

  std::shared_ptr<const graph> g_;
  precision wanted_;
  codegen::lower_options how_;
  bool require_device_;
  std::map<std::string, texel_layout> exchanged_;
  stored_program usual_;  ///< without the figures of its kernels
};

/// The program that stored_program_maker makes. Errors: its.
[[nodiscard]] inline stored_program make_stored_program(std::shared_ptr<const graph> g, precision wanted,
                                                        codegen::lower_options how, bool require_device,
                                                        const std::map<std::string, texel_layout>& exchanged = {}) {
  return stored_program_maker(std::move(g), wanted, std::move(how), require_device, exchanged).usual();
}

}  // namespace dnnopt

#endif  // DNNOPT_BACKEND_STORAGE_STORED_PROGRAM_HPP

// Owns the tuning of a model: its blocks as compile would make them, searched on the device into a tuning_store.
#ifndef DNNOPT_TUNE_HPP
#define DNNOPT_TUNE_HPP

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include <dnnopt/backend/measure/opened_device.hpp>
#include <dnnopt/backend/measure/tuner.hpp>
#include <dnnopt/backend/measure/tuning_store.hpp>
#include <dnnopt/backend/program/lower_again.hpp>
#include <dnnopt/backend/program/program.hpp>
#include <dnnopt/detail/placed_graph.hpp>
#include <dnnopt/device_options.hpp>
#include <dnnopt/session.hpp>

namespace dnnopt {

namespace detail {

/// Whether sizes and arguments of a step follow from `symbols`, and not from what a run computes.
[[nodiscard]] inline bool sizes_known(const program& p, const placed_node& step, const symbol_values& symbols) {
  const auto known = [&](const index_expr& e) { return e.try_evaluate(symbols).has_value(); };
  for (const auto* plans : {&step.lowered.prepare, &step.lowered.kernels})
    for (const codegen::kernel_plan& plan : *plans) {
      if (!std::all_of(plan.parameters.begin(), plan.parameters.end(), known)) return false;
      for (const codegen::pointer_argument& pointer : plan.pointers) {
        if (pointer.held == no_value) continue;
        const auto& dims = p.g->facts(pointer.held).dims;
        if (!dims || !std::all_of(dims->begin(), dims->end(), known)) return false;
      }
    }
  return std::all_of(step.lowered.scratch.begin(), step.lowered.scratch.end(),
                     [&](const auto& scratch) { return known(scratch.bytes); });
}

/// Whether the kernels of a step can be timed alone, on memory of their own: rows, of sizes that `symbols` tell.
[[nodiscard]] inline bool can_tune(const program& p, const placed_node& step, const symbol_values& symbols) {
  const auto is_image = [](const auto& scratch) { return scratch.image.object != memory_object::buffer; };
  return !touches(*p.g, step, [&](value_id v) { return p.g->facts(v).texels.has_value(); }) &&
         std::none_of(step.lowered.scratch.begin(), step.lowered.scratch.end(), is_image) &&
         sizes_known(p, step, symbols);
}

}  // namespace detail

/// Searches kernel configurations for the shape classes of `source` and keeps what is faster in `store`, under the
/// device and form that `options` name; hand the store to compile as compile_options::tuned. `inputs` bind symbolic
/// dims (their contents do not matter: times do not depend on them). What holds texels is not tuned. Precondition: the
/// device is an OpenCL device. Errors: invalid_argument for the reference backend; those of compile; missing_input,
/// shape_mismatch.
[[nodiscard]] inline tuning_result tune(const model& source, compile_options options, const named_tensors& inputs,
                                        const tuner_options& search, tuning_store& store) {
  if (options.device == "reference")
    throw error(errc::invalid_argument, "the reference backend has no kernels to tune; name an OpenCL device");
  if (!options.opened) options.opened = std::make_shared<opened_device>(options.device, options.programs);
  opencl::context& where = options.opened->context;
  decide_products(options, *options.opened, source.main);
  compile_report report;
  const auto optimized = std::make_shared<const graph>(optimize(source, options, report));
  symbol_values symbols;
  for (const value_id id : optimized->inputs()) {
    const value& v = optimized->value_at(id);
    const tensor* given = inputs.find(v.name);
    if (given == nullptr) throw error(errc::missing_input, "input '" + v.name + "' is not given");
    if (!v.facts.dims) continue;
    if (v.facts.dims->size() != given->rank())
      throw error(errc::shape_mismatch,
                  "'" + v.name + "' has shape " + to_string(given->dims()) + ", not " + to_string(*v.facts.dims));
    for (std::size_t k = 0; k < given->rank(); ++k)
      if (const auto symbol = (*v.facts.dims)[k].as_symbol()) symbols.bind(*symbol, given->dims()[k]);
  }
  const detail::placed_graph placed(*options.opened, optimized, options, nullptr, options.require_device);
  const program& made = placed.maker->placed();
  std::vector<codegen::block_view> blocks;
  for (const placed_node& step : made.steps)
    if (step.where == placement::device && detail::can_tune(made, step, symbols))
      blocks.push_back({*made.g, step.members, step.outputs, step.anchor});
  return kernel_tuner(where, search)
      .tune(blocks, placed.maker->options(), symbols, store.table_of(*placed.lowering.seen));
}

}  // namespace dnnopt

#endif  // DNNOPT_TUNE_HPP

// Owns a graph's program as compile makes it for a device, before its memory is arranged: what runs, and what tune
// times.
#ifndef DNNOPT_DETAIL_PLACED_GRAPH_HPP
#define DNNOPT_DETAIL_PLACED_GRAPH_HPP

#include <chrono>
#include <cstddef>
#include <map>
#include <memory>
#include <optional>

#include <dnnopt/backend/measure/device_lowering.hpp>
#include <dnnopt/backend/measure/opened_device.hpp>
#include <dnnopt/backend/measure/tuning_store.hpp>
#include <dnnopt/backend/storage/stored_program.hpp>
#include <dnnopt/compile_options.hpp>
#include <dnnopt/graph.hpp>

namespace dnnopt::detail {

/// How a graph is lowered on a device under `options`, with what `tuned`, which may be null, tells. Errors: those of
/// lowering_for.
[[nodiscard]] inline device_lowering lowering_of(opened_device& device, const graph& g, const compile_options& options,
                                                 const tuning_store* tuned) {
  return lowering_for(device, g, options.memory_objects, tuned, options.texels, options.form, options.matrix_steps,
                      options.integer_dots);
}

/// A graph's program and what it was made by. Not movable, for the maker's options point into it.
struct placed_graph {
  /// `device` and `tuned` must outlive it. Errors: those of lowering_for and stored_program_maker.
  placed_graph(opened_device& device, const std::shared_ptr<const graph>& g, const compile_options& options,
               const tuning_store* tuned, bool require_device)
      : lowering(lowering_of(device, *g, options, tuned)) {
    lowering.options.work_group_limits = &limits;
    const auto begin = std::chrono::steady_clock::now();
    maker.emplace(g, options.precision, lowering.options, require_device, options.texels);
    seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  }
  placed_graph(const placed_graph&) = delete;
  placed_graph& operator=(const placed_graph&) = delete;

  device_lowering lowering;
  std::map<node_id, std::size_t> limits;  ///< as codegen::lower_options::work_group_limits
  std::optional<stored_program_maker> maker;
  double seconds = 0;  ///< that making it took
};

}  // namespace dnnopt::detail

#endif  // DNNOPT_DETAIL_PLACED_GRAPH_HPP

// Owns the program of a graph before it meets a device: where each node runs and why, its kernels, and their order.
#ifndef DNNOPT_BACKEND_PROGRAM_PROGRAM_HPP
#define DNNOPT_BACKEND_PROGRAM_PROGRAM_HPP

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <dnnopt/backend/codegen/builder/kernel_plan.hpp>
#include <dnnopt/graph.hpp>
#include <dnnopt/memory/objects/shared_images.hpp>

namespace dnnopt {

/// Where a node runs.
enum class placement : std::uint8_t {
  device,  ///< as kernels
  host,    ///< on the reference backend: a fallback, with a reason
  known,   ///< nowhere: RDP knows its outputs as expressions of symbols, and they are evaluated where they are read
  alias,   ///< nowhere: its output is its input's memory under another shape
  sizes,   ///< on the host, to learn a size that only data tells (a Range up to a computed limit): no fallback
  bodies,  ///< control flow: the host decides which bodies run, which are programs of their own on the device
};

/// Whether the host computes the node during a run.
[[nodiscard]] constexpr bool is_on_host(placement where) noexcept {
  return where == placement::host || where == placement::sizes;
}

/// Whether the host has a part in the node during a run, so that what follows may wait for it.
[[nodiscard]] constexpr bool is_steered(placement where) noexcept {
  return is_on_host(where) || where == placement::bodies;
}

/// "device", "host", "known", "alias", "sizes" or "bodies".
[[nodiscard]] constexpr std::string_view name_of(placement where) noexcept {
  constexpr std::string_view names[] = {"device", "host", "known", "alias", "sizes", "bodies"};
  return names[static_cast<unsigned>(where)];
}

/// One node or fused block with its place and, on the device, its kernels.
struct placed_node {
  node_id id = no_node;           ///< the node, or of a block its anchor or last member
  std::vector<node_id> members;   ///< the nodes that run as one, in topological order; `id` alone outside a block
  std::vector<value_id> outputs;  ///< the values that it stores
  node_id anchor = no_node;       ///< as block_view::anchor
  placement where = placement::host;
  std::string reason;                ///< why it is not on the device; empty there
  std::vector<std::string> why_not;  ///< what does not run with it, and why
  codegen::lowered_node lowered;
  value_id alias_of = no_value;  ///< whose memory an alias shares
};

/// A place within another value's memory.
struct value_part {
  value_id whole = no_value;  ///< a root; it may itself be a part
  std::size_t offset = 0;     ///< bytes
};

/// Nodes in execution order over a graph that must not be edited meanwhile.
struct program {
  std::shared_ptr<const graph> g;
  std::vector<placed_node> steps;
  std::vector<value_id> roots;  ///< for every value, the value whose memory holds it
  /// Roots that are written in their place within another root (inputs of a concatenation within its output).
  std::map<value_id, value_part> parts;
  /// A body of control flow: whoever enters it hands memory for its inputs and takes that of its outputs.
  bool is_body = false;
  /// How tensors in images share them.
  memory::image_strategy image_strategy = memory::image_strategy::best;
  std::size_t crossings = 0;  ///< changes from device to host operators or back along the order

  /// The device commands of one inference in which no dim that only a run tells is 0.
  [[nodiscard]] std::size_t kernel_count() const {
    std::size_t count = 0;
    for (const placed_node& step : steps)
      for (const codegen::kernel_plan& plan : step.lowered.kernels) count += plan.guard.empty() ? 1U : 0U;
    return count;
  }
  /// The device commands of an inference under `values` of the symbols: launches over nothing are left out. What the
  /// values do not tell counts as something. O(kernels).
  [[nodiscard]] std::size_t kernel_count(const symbol_values& values) const {
    std::size_t count = 0;
    for (const placed_node& step : steps)
      for (const codegen::kernel_plan& plan : step.lowered.kernels) count += launches(step, plan, values) ? 1U : 0U;
    return count;
  }
  /// Whether a kernel of a step has anything to do: it is of the version that the dims take, the step has a result with
  /// elements, and the kernel work-items.
  [[nodiscard]] bool launches(const placed_node& step, const codegen::kernel_plan& plan,
                              const symbol_values& values) const {
    if (plan.when.try_evaluate(values) == std::int64_t{0}) return false;
    const auto is_empty = [&](value_id v) {
      const std::optional<shape>& dims = g->facts(v).dims;
      return dims && std::any_of(dims->begin(), dims->end(),
                                 [&](const index_expr& d) { return d.try_evaluate(values) == std::int64_t{0}; });
    };
    // How many elements the results have is what the first kernels find out.
    const std::optional<codegen::computed_size>& size = step.lowered.size;
    const bool finds_size = size && &plan - step.lowered.kernels.data() <= static_cast<std::ptrdiff_t>(size->after);
    if (!finds_size && !step.outputs.empty() && std::all_of(step.outputs.begin(), step.outputs.end(), is_empty))
      return false;
    if (std::all_of(plan.global.begin(), plan.global.end(), [](const index_expr& e) { return e.is_constant(); }))
      return true;
    symbol_values own;
    for (std::size_t i = 0; i < plan.parameters.size(); ++i)
      if (const auto value = plan.parameters[i].try_evaluate(values)) own.bind(plan.parameter_symbols[i], *value);
    return std::none_of(plan.global.begin(), plan.global.end(),
                        [&](const index_expr& e) { return e.try_evaluate(own) == std::int64_t{0}; });
  }
  /// Nodes that fall back to the host.
  [[nodiscard]] std::size_t host_count() const {
    return static_cast<std::size_t>(
        std::count_if(steps.begin(), steps.end(), [](const auto& s) { return s.where == placement::host; }));
  }
};

}  // namespace dnnopt

#endif  // DNNOPT_BACKEND_PROGRAM_PROGRAM_HPP

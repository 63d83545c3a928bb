// Owns the row type of the lowering table and what its conditions and functions see.
#ifndef DNNOPT_BACKEND_CODEGEN_LOWERING_ROW_HPP
#define DNNOPT_BACKEND_CODEGEN_LOWERING_ROW_HPP

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <dnnopt/backend/codegen/builder/kernel_builder.hpp>
#include <dnnopt/backend/codegen/choice.hpp>
#include <dnnopt/backend/codegen/integer_dot.hpp>
#include <dnnopt/backend/codegen/matrix_step.hpp>
#include <dnnopt/backend/codegen/tuning.hpp>
#include <dnnopt/device_info.hpp>

namespace dnnopt::codegen {

struct lowering_row;

/// What a user or the caller decides about lowering.
struct lower_options {
  const device_info* device = nullptr;              ///< null: nothing is assumed of the device
  const device_facts* facts = nullptr;              ///< null: nothing was measured of the device
  std::span<const emitter_row> emitters;            ///< element expressions by operator
  const tuning_table* tuned = nullptr;              ///< what a tuner chose; null: the default choices
  memory_objects memory = memory_objects::buffers;  ///< for a kernel `automatic` means buffers (storage/pack.hpp)
  std::span<const lowering_row> rows;               ///< tried before dnnopt's own lowerings
  /// Times their memory that weights may take in a form that saves arithmetic; a memory limit lowers it
  /// (backend/storage/fit_program.hpp). Rows that only fill up a vector do not count.
  double weight_growth = std::numeric_limits<double>::infinity();
  /// Whether frames multiply in halves where both operands are stored in them (precision::fp16_arithmetic).
  bool half_products = false;
  /// What multiplies on the device in matrix steps; none: nothing does, or nobody looked.
  step_providers steps{};
  /// What multiplies bytes on the device; null: nothing does, or nobody looked.
  const integer_dot* dot = nullptr;
  /// By a block's node (placed_node::id), the most work-items of its work-groups where its kernels were found to allow
  /// fewer than the device does (backend/run/refused_work_groups.hpp); null: nothing was found.
  const std::map<node_id, std::size_t>* work_group_limits = nullptr;
};

/// A block while a lowering is chosen.
struct lowering_site {
  const block_view& block;
  const lower_options& options;
  /// The one member that element-wise operators and views surround; no_node where there is none or more than one.
  node_id anchor = no_node;

  [[nodiscard]] const node& anchor_node() const { return block.g.node_at(anchor); }
  [[nodiscard]] const value_facts& input(std::size_t i) const { return block.g.facts(anchor_node().inputs.at(i)); }
  [[nodiscard]] bool has_input(std::size_t i) const {
    return i < anchor_node().inputs.size() && anchor_node().inputs[i] != no_value;
  }
  [[nodiscard]] const value_facts& output(std::size_t i = 0) const {
    return block.g.facts(anchor_node().outputs.at(i));
  }
  /// What a tuner chose for a shape class; null where it did not.
  [[nodiscard]] const std::vector<std::int64_t>* tuned(std::string_view shape) const {
    return options.tuned == nullptr ? nullptr : options.tuned->find(shape);
  }
  /// Whether constants that frames read in vectors of four are packed as texels.
  [[nodiscard]] bool packs_texels() const {
    return options.memory == memory_objects::packed || options.memory == memory_objects::images;
  }
  /// Bytes of local memory that a work-group may use; where the device is not known, what OpenCL promises.
  [[nodiscard]] std::uint64_t local_memory() const {
    constexpr std::uint64_t promised = 32768;
    return options.device == nullptr || options.device->local_memory_bytes == 0 ? promised
                                                                                : options.device->local_memory_bytes;
  }
  /// The most work-items of a work-group; where the device is not known, what few devices fall below.
  [[nodiscard]] std::size_t work_group() const {
    return options.device == nullptr || options.device->max_work_group_size == 0 ? 256
                                                                                 : options.device->max_work_group_size;
  }
  /// Cores or multiprocessors of the device; where it is not known, a low number that few devices fall below.
  [[nodiscard]] std::int64_t compute_units() const {
    return options.device == nullptr ? 4 : std::max<std::int64_t>(options.device->compute_units, 1);
  }
  /// Work-items that keep a device busy that runs them in step: what the multiprocessors of today's GPUs hold each.
  [[nodiscard]] std::int64_t busy_items() const { return 2048 * compute_units(); }
  /// device_info::prefers_vectors; no where the device is not known.
  [[nodiscard]] bool prefers_vectors() const { return options.device != nullptr && options.device->prefers_vectors(); }
};

/// One way to lower blocks with an anchor of a kind: `choose` decides, `emit` writes the kernels of what was chosen.
struct lowering_row {
  std::optional<computation_kind> kind;  ///< of the anchor; nothing: any block
  std::string_view version;              ///< the family's name, for reasons and logs
  /// What the family decides about the block, or why it does not take it. Writes no source.
  choice_or_reason (*choose)(const lowering_site&) = nullptr;
  /// The kernels of what `choose` returned for the same site. Errors: unsupported where an element expression turns out
  /// not to be one.
  lowered_node (*emit)(const lowering_site&, const choice&) = nullptr;
  /// Whether it computes two products, one of the other's result; the other rows take one each.
  bool two_products = false;
  /// The operator of ONNX's own domain that the anchor must be; empty: any of the kind.
  std::string_view op = {};

  /// Whether the row is for blocks with this anchor; null: with none.
  [[nodiscard]] bool is_for(const node* anchor) const {
    if (kind && (anchor == nullptr || anchor->op->kind != *kind)) return false;
    return op.empty() || (anchor != nullptr && anchor->op->name == op && anchor->op->domain.empty());
  }
};

/// Defines those of the frame's parameters that a choice settles, in the order of its sizes.
inline void define_sizes(kernel_builder& b, const kernel_frame& frame, const choice& chosen) {
  for (const chosen_size& size : chosen.sizes)
    if (const frame_parameter* const parameter = frame.find_size(size.name); parameter != nullptr)
      b.define(parameter->name, size.value);
}

/// The names of all kernels that dnnopt's own lowerings make: kernel_plan::version, and with "dnnopt_" before it the
/// name of the kernel in profiles and logs.
inline constexpr auto kernel_versions = std::to_array<std::string_view>({
    "map",
    "map_transposed",
    "map_rows",
    "pack",
    "scatter_copy",
    "scatter",
    "top_k",
    "top_k_runs",
    "top_k_merge",
    "row_items",
    "row_groups",
    "matrix_panels",
    "matrix_panels_packed",
    "matrix_panels_codes",
    "matrix_tiles",
    "matrix_partials",
    "matrix_steps",
    "gemv",
    "dot_panels",
    "dot_panels_packed",
    "dot_convolution",
    "convolution_panels",
    "convolution_panels_packed",
    "convolution_tiles",
    "convolution_lines",
    "convolution_steps",
    "convolution_texels",
    "convolution_rows",
    "convolution_shifts",
    "convolution_points",
    "convolution_winograd",
    "window_planes",
    "vector_chain",
    "product_chain",
    "attention_items",
    "attention_tiles",
    "attention_steps",
    "attention_groups",
    "attention_output",
    "linear_attention",
    "select_count",
    "select_sum",
    "select_places",
    "select_coordinates",
    "select_slices",
    "unique_first",
    "unique_order",
    "unique_count",
    "unique_slices",
    "unique_numbers",
    "sort_boxes",
    "suppress_boxes",
    "suppress_sum",
    "suppress_rows",
    "random_stream",
    "random_elements",
    "recurrent_groups",
});

/// Whether operators of the kind are computed as element expressions of their own, without a frame.
[[nodiscard]] constexpr bool is_element_kind(computation_kind kind) noexcept {
  return kind == computation_kind::element_wise || kind == computation_kind::view ||
         kind == computation_kind::indexed_read || kind == computation_kind::generator ||
         kind == computation_kind::shape_query;
}

/// Whether `v` is computed from `source` by members of the block. O(members * log members).
[[nodiscard]] inline bool stands_behind(const block_view& block, value_id v, value_id source) {
  const std::set<node_id> members(block.members.begin(), block.members.end());
  std::vector<value_id> work{v};
  std::set<value_id> seen{v};
  while (!work.empty()) {
    const value_id at = work.back();
    work.pop_back();
    if (at == source) return true;
    const node_id producer = block.g.value_at(at).producer;
    if (producer == no_node || !members.contains(producer)) continue;
    for (const value_id in : block.g.node_at(producer).inputs)
      if (in != no_value && seen.insert(in).second) work.push_back(in);
  }
  return false;
}

/// Whether a block holds more than one product (of matrices, of patches, of attention).
[[nodiscard]] inline bool has_two_products(const block_view& block) {
  std::size_t products = 0;
  for (const node_id id : block.members) {
    const computation_kind kind = block.g.node_at(id).op->kind;
    products += kind == computation_kind::convolution || kind == computation_kind::matrix_product ||
                        kind == computation_kind::attention
                    ? 1
                    : 0;
  }
  return products > 1;
}

/// What a row decides about a block whose anchor is of its kind.
[[nodiscard]] inline choice_or_reason choice_of_row(const lowering_site& site, const lowering_row& row) {
  if (const bool two = has_two_products(site.block); two != row.two_products)
    return two ? "one product at a time" : "one product only";
  choice_or_reason chosen = row.choose(site);
  if (!chosen) return chosen;
  // What serves where no other version does must hold for all values of the symbols.
  for (const choice_guard& guard : chosen->guards)
    if (!guard.is_settled()) return guard.otherwise;
  const auto never = [](const choice& version) {
    return std::any_of(version.guards.begin(), version.guards.end(),
                       [](const choice_guard& guard) { return guard.slack.range().high < 0; });
  };
  if (std::none_of(chosen->narrower.begin(), chosen->narrower.end(), never)) return chosen;
  choice made = *chosen;
  std::erase_if(made.narrower, never);
  return made;
}

/// Finds the anchor of a block.
[[nodiscard]] inline lowering_site make_lowering_site(const block_view& block, const lower_options& options) {
  lowering_site site{block, options, block.anchor};
  if (block.anchor != no_node) return site;
  std::size_t anchors = 0;
  for (const node_id id : block.members)
    if (!is_element_kind(block.g.node_at(id).op->kind)) {
      site.anchor = id;
      ++anchors;
    }
  if (anchors != 1) site.anchor = no_node;
  return site;
}

}  // namespace dnnopt::codegen

#endif  // DNNOPT_BACKEND_CODEGEN_LOWERING_ROW_HPP

// Owns storage as texels: which intermediate tensors of a program lie packed, in buffers or images, as layout selection
// asks and kernels can.
#ifndef DNNOPT_BACKEND_STORAGE_PACK_HPP
#define DNNOPT_BACKEND_STORAGE_PACK_HPP

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <dnnopt/backend/codegen/builder/texel_access.hpp>
#include <dnnopt/backend/program/make_program.hpp>
#include <dnnopt/backend/storage/narrow.hpp>
#include <dnnopt/backend/storage/select_layouts.hpp>

namespace dnnopt {

/// A graph with texel layouts, and what was decided.
struct packed_graph {
  std::shared_ptr<const graph> g;
  std::size_t values = 0;          ///< that hold texels
  std::size_t images = 0;          ///< of them in images
  std::uint64_t copy_bytes = 0;    ///< that second copies would take for readers whose reduction dim is not served
  std::vector<std::string> notes;  ///< tensors that stay rows, or in a buffer, against what was asked for, and why
};

namespace detail {

/// Whether kernels are the same families as before, or ones that are made for texels: no frame was given up, nor the
/// steps that multiply in one.
[[nodiscard]] inline bool keeps_frames(const codegen::lowered_node& before, const codegen::lowered_node& now) {
  const auto maps = [](const codegen::lowered_node& lowered) {
    return std::count_if(lowered.kernels.begin(), lowered.kernels.end(),
                         [](const codegen::kernel_plan& plan) { return plan.version == "map"; });
  };
  const auto steps = [](const codegen::lowered_node& lowered) {
    return std::count_if(lowered.kernels.begin(), lowered.kernels.end(),
                         [](const codegen::kernel_plan& plan) { return !plan.step.empty(); });
  };
  // Kernels that add the sums of splits are no frames.
  const auto frames = [](const codegen::lowered_node& lowered) {
    return std::count_if(lowered.kernels.begin(), lowered.kernels.end(),
                         [](const codegen::kernel_plan& plan) { return !plan.adds_partials; });
  };
  return frames(now) <= frames(before) && maps(now) <= maps(before) && steps(now) >= steps(before);
}

/// The kernels of a step whose values hold what `g` says, where they keep their frames; else nothing, and `why` says
/// what stands against it. `step` was lowered with rows.
[[nodiscard]] inline std::optional<codegen::lowered_node> lower_in_texels(const graph& g, const placed_node& step,
                                                                          const codegen::lower_options& options,
                                                                          std::string& why) {
  try {
    codegen::lowered_node now = lower_unit(g, step, options);
    if (keeps_frames(step.lowered, now)) return now;
    why = "the kernel that reads or writes it has no form for texels there";
  } catch (const error& e) {
    if (e.code() != errc::unsupported && e.code() != errc::shape_mismatch) throw;
    why = e.what();
  }
  return std::nullopt;
}

}  // namespace detail

/// Whether a kernel of the program would read an operand sooner as texels.
[[nodiscard]] inline bool gains_by_texels(const program& rows) {
  return std::any_of(rows.steps.begin(), rows.steps.end(),
                     [](const placed_node& step) { return !step.lowered.sooner_as_texels.empty(); });
}

/// A copy of the graph of `rows` in which intermediate tensors between kernels hold texels: packed along the dim that
/// layout selection chose (backend/storage/select_layouts.hpp), in images where `options.memory` asks for them and the
/// device's limits allow it, else in buffers; with memory_objects::automatic those alone that a kernel reads sooner so,
/// in buffers, and no notes. An image's planes become layers where a kernel that reads it then leaves rows in padding
/// to the border. A tensor keeps its rows where the caller or a host operator sees it, where its memory is another
/// tensor's too, where its dims are not numbers, and where the kernel that writes or reads it would lose its frame;
/// `notes` tell. Preconditions: `rows` was made with `options`; narrow_storage goes first. Errors: those of
/// make_program. Complexity: one lowering of each block that touches a candidate for each time that a mark near it
/// falls, and one for each image that it touches.
[[nodiscard]] inline packed_graph pack_storage(const program& rows, const codegen::lower_options& options) {
  const std::shared_ptr<const graph>& g = rows.g;
  const bool automatic = options.memory == memory_objects::automatic;
  std::set<value_id> gaining;
  for (const placed_node& step : rows.steps)
    gaining.insert(step.lowered.sooner_as_texels.begin(), step.lowered.sooner_as_texels.end());
  const detail::seen_outside outside = detail::roots_seen_outside(rows);
  std::vector<std::size_t> sharers(g->value_count(), 0);
  for (const placed_node& step : rows.steps)
    for (const value_id v : step.outputs) ++sharers[rows.roots[v]];
  packed_graph result;
  std::vector<layout_block> blocks;
  std::vector<std::size_t> step_of_block;
  std::vector<value_id> candidates;
  for (std::size_t s = 0; s < rows.steps.size(); ++s) {
    const placed_node& step = rows.steps[s];
    if (step.where != placement::device) continue;
    blocks.push_back({step.members, step.outputs, step.anchor});
    step_of_block.push_back(s);
    for (const value_id v : step.outputs) {
      const value_facts& facts = g->facts(v);
      const bool real = facts.type == dtype::float32 || facts.type == dtype::float16;
      if (!real || facts.kind != value_kind::tensor || !facts.dims || facts.dims->size() < 2 || facts.is_constant() ||
          outside.any(rows.roots[v]) || (automatic && !gaining.contains(v)))
        continue;
      if (!is_static(*facts.dims) || element_count(*facts.dims) == index_expr(0))
        result.notes.push_back("'" + g->value_at(v).name + "' keeps its rows: its dims are not known");
      else if (rows.roots[v] != v || sharers[v] > 1)
        result.notes.push_back("'" + g->value_at(v).name + "' keeps its rows: its memory is another tensor's too");
      else
        candidates.push_back(v);
    }
  }
  auto copy = std::make_shared<graph>(*g);
  std::map<value_id, layout_choice> marked;
  for (layout_choice& choice : select_layouts(*g, blocks, candidates)) {
    value_facts& facts = copy->facts(choice.held);
    std::string why;
    const codegen::texel_storage storage = codegen::choose_object(image_of(texel_dims(*facts.dims, choice.packed)),
                                                                  facts.type, options.memory, options.device, why);
    if (!why.empty()) result.notes.push_back("'" + g->value_at(choice.held).name + "' is packed in a buffer: " + why);
    facts.texels = texel_layout{choice.packed, storage.object, storage.layer_rows};
    if (options.facts != nullptr)
      facts.texels->filter_bits =
          facts.type == dtype::float16 ? options.facts->image_filter_bits_fp16 : options.facts->image_filter_bits_fp32;
    marked.emplace(choice.held, std::move(choice));
  }

  // Marks fall where a kernel cannot carry them, until all blocks can.
  const auto unmark = [&](value_id v, const std::string& why) {
    copy->facts(v).texels.reset();
    marked.erase(v);
    result.notes.push_back("'" + g->value_at(v).name + "' keeps its rows: " + why);
  };
  const auto lowered = [&](std::size_t b, std::string& why) {
    return detail::lower_in_texels(*copy, rows.steps[step_of_block[b]], options, why);
  };
  const auto fails = [&](std::size_t b) -> std::optional<std::string> {
    std::string why;
    if (lowered(b, why)) return std::nullopt;
    return why;
  };
  const auto touches = [&](std::size_t b, value_id v) {
    if (std::find(blocks[b].outputs.begin(), blocks[b].outputs.end(), v) != blocks[b].outputs.end()) return true;
    return std::any_of(blocks[b].members.begin(), blocks[b].members.end(), [&](node_id id) {
      const auto& inputs = g->node_at(id).inputs;
      return std::find(inputs.begin(), inputs.end(), v) != inputs.end();
    });
  };
  const auto written = [&](std::size_t b) {
    std::vector<value_id> values;
    for (const value_id v : blocks[b].outputs)
      if (marked.contains(v)) values.push_back(v);
    return values;
  };
  const auto read = [&](std::size_t b) {
    std::vector<value_id> values;
    for (const node_id id : blocks[b].members)
      for (const value_id v : g->node_at(id).inputs)
        if (v != no_value && marked.contains(v) && std::find(values.begin(), values.end(), v) == values.end() &&
            std::find(blocks[b].outputs.begin(), blocks[b].outputs.end(), v) == blocks[b].outputs.end())
          values.push_back(v);
    return values;
  };
  std::set<std::size_t> open;
  for (std::size_t b = 0; b < blocks.size(); ++b) open.insert(b);
  while (!open.empty()) {
    const std::size_t b = *open.begin();
    open.erase(open.begin());
    const std::vector<value_id> out = written(b);
    const std::vector<value_id> in = read(b);
    if (out.empty() && in.empty()) continue;
    const std::optional<std::string> why = fails(b);
    if (!why) continue;
    // Results fall first: whoever wrote the operands may be able to.
    std::vector<std::optional<texel_layout>> kept;
    for (const value_id v : out) kept.push_back(std::exchange(copy->facts(v).texels, std::nullopt));
    const bool only_results = !out.empty() && !fails(b);
    std::vector<value_id> fallen = out;
    if (!only_results) {
      for (std::size_t i = 0; i < out.size(); ++i) copy->facts(out[i]).texels = kept[i];
      std::vector<std::optional<texel_layout>> operands;
      for (const value_id v : in) operands.push_back(std::exchange(copy->facts(v).texels, std::nullopt));
      const bool only_operands = !in.empty() && !fails(b);
      fallen = in;
      if (!only_operands) fallen.insert(fallen.end(), out.begin(), out.end());
    }
    for (const value_id v : fallen) unmark(v, *why);
    for (std::size_t other = 0; other < blocks.size(); ++other)
      if (std::any_of(fallen.begin(), fallen.end(), [&](value_id v) { return touches(other, v); })) open.insert(other);
  }
  // Planes are layers where a reader then has no rows to test.
  for (const auto& [v, choice] : marked) {
    value_facts& facts = copy->facts(v);
    const std::size_t along = facts.dims->size() - 2;
    const texel_extents extents = image_of(texel_dims(*facts.dims, choice.packed));
    const std::int64_t plane_rows = (*facts.dims)[along].constant();
    if (along == choice.packed || extents.height == index_expr(plane_rows)) continue;
    const std::optional<codegen::texel_storage> layers = codegen::planes_as_layers(
        {facts.texels->object, extents, facts.texels->layer_rows, facts.type}, plane_rows, options.device);
    if (!layers) continue;
    const texel_layout before = *facts.texels;
    facts.texels->object = layers->object;
    facts.texels->layer_rows = layers->layer_rows;
    bool relied_on = false;
    bool carried = true;
    for (std::size_t b = 0; b < blocks.size() && carried; ++b) {
      if (!touches(b, v)) continue;
      std::string why;
      const std::optional<codegen::lowered_node> now = lowered(b, why);
      carried = now.has_value();
      if (!carried) break;
      for (const codegen::kernel_plan& plan : now->kernels)
        for (const codegen::pointer_argument& a : plan.pointers)
          relied_on = relied_on || (a.held == v && a.ends_planes);
    }
    if (!relied_on || !carried) facts.texels = before;
  }
  for (const auto& [v, choice] : marked) {
    ++result.values;
    if (copy->facts(v).texels->object != memory_object::buffer) ++result.images;
    result.copy_bytes += choice.copy_bytes;
  }
  if (automatic) result.notes.clear();
  result.g = std::move(copy);
  return result;
}

/// The same of a graph, which it lowers first.
[[nodiscard]] inline packed_graph pack_storage(const std::shared_ptr<const graph>& g,
                                               const codegen::lower_options& options) {
  return pack_storage(make_program(g, options, false), options);
}

}  // namespace dnnopt

#endif  // DNNOPT_BACKEND_STORAGE_PACK_HPP

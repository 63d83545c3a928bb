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

/// Whether kernels are the same families as before, or ones that are made for texels: no frame was given up in any
/// version, nor the steps that multiply in most of them.
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
  const auto no_more = [&](std::ptrdiff_t few, std::size_t versions, std::ptrdiff_t many, std::size_t others) {
    return few * static_cast<std::ptrdiff_t>(others) <= many * static_cast<std::ptrdiff_t>(versions);
  };
  const auto versions = static_cast<std::ptrdiff_t>(before.versions);
  const auto versions_now = static_cast<std::ptrdiff_t>(now.versions);
  const std::ptrdiff_t lost_steps = steps(before) * versions_now - steps(now) * versions;
  return no_more(frames(now), now.versions, frames(before), before.versions) &&
         no_more(maps(now), now.versions, maps(before), before.versions) && 2 * lost_steps < versions * versions_now;
}

/// The kernels of a step whose values hold what `g` says, where they keep their frames; else nothing, and `why` says
/// what stands against it. `step` was lowered with rows.
[[nodiscard]] inline std::optional<codegen::lowered_node> lower_in_texels(const graph& g, const placed_node& step,
                                                                          const codegen::lower_options& options,
                                                                          std::string& why) {
  codegen::lowering now = lower_unit(g, step, options);
  if (now.made && keeps_frames(step.lowered, *now.made)) return std::move(now.made);
  why = now.made ? "the kernel that reads or writes it has no form for texels there" : std::move(now.why);
  return std::nullopt;
}

/// The blocks of a program on the device, and which of their results may hold texels.
struct texel_candidates {
  std::vector<layout_block> blocks;
  std::vector<std::size_t> step_of_block;
  std::vector<value_id> values;
  std::vector<std::string> notes;  ///< results that keep their rows, and why
};

/// The device's blocks, and which of their results may hold texels: real tensors of two dims or more that kernels alone
/// see and that have their memory for themselves; of images the dims must be known, and where it is left to what suits
/// the device, those alone may that a kernel reads sooner so.
[[nodiscard]] inline texel_candidates find_texel_candidates(const program& rows, memory_objects wanted) {
  const graph& g = *rows.g;
  const bool automatic = wanted == memory_objects::automatic;
  const bool in_images = wanted == memory_objects::images;
  std::set<value_id> gaining;
  for (const placed_node& step : rows.steps)
    gaining.insert(step.lowered.sooner_as_texels.begin(), step.lowered.sooner_as_texels.end());
  const seen_outside outside = roots_seen_outside(rows);
  std::vector<std::size_t> sharers(g.value_count(), 0);
  for (const placed_node& step : rows.steps)
    for (const value_id v : step.outputs) ++sharers[rows.roots[v]];
  texel_candidates found;
  for (std::size_t s = 0; s < rows.steps.size(); ++s) {
    const placed_node& step = rows.steps[s];
    if (step.where != placement::device) continue;
    found.blocks.push_back({step.members, step.outputs, step.anchor});
    found.step_of_block.push_back(s);
    for (const value_id v : step.outputs) {
      const value_facts& facts = g.facts(v);
      const bool real = facts.type == dtype::float32 || facts.type == dtype::float16;
      if (!real || facts.kind != value_kind::tensor || !facts.dims || facts.dims->size() < 2 || facts.is_constant() ||
          outside.any(rows.roots[v]) || (automatic && !gaining.contains(v)))
        continue;
      if (element_count(*facts.dims) == index_expr(0) || (in_images && !is_static(*facts.dims)))
        found.notes.push_back("'" + g.value_at(v).name + "' keeps its rows: its dims are not known");
      else if (rows.roots[v] != v || sharers[v] > 1)
        found.notes.push_back("'" + g.value_at(v).name + "' keeps its rows: its memory is another tensor's too");
      else
        found.values.push_back(v);
    }
  }
  return found;
}

/// The marks of a program's tensors as texels: those that layout selection wants, and of these the ones that all
/// kernels can carry. A copy of the graph holds them.
class texel_marking {
 public:
  /// Preconditions: `rows` was made with `options`, the candidates are its own, and both outlive this object.
  texel_marking(const program& rows, const codegen::lower_options& options, texel_candidates candidates)
      : rows_(rows),
        g_(*rows.g),
        options_(options),
        candidates_(std::move(candidates)),
        copy_(std::make_shared<graph>(g_)) {}

  /// Marks candidates as layout selection and the device's limits have it.
  void mark_chosen() {
    for (layout_choice& choice : select_layouts(g_, candidates_.blocks, candidates_.values)) {
      value_facts& facts = copy_->facts(choice.held);
      if (!(*facts.dims)[choice.packed].is_constant()) {
        note("'" + g_.value_at(choice.held).name + "' keeps its rows: how long its packed dim is only a run tells");
        continue;
      }
      std::string why;
      const codegen::texel_storage storage = codegen::choose_object(image_of(texel_dims(*facts.dims, choice.packed)),
                                                                    facts.type, options_.memory, options_.device, why);
      if (!why.empty()) note("'" + g_.value_at(choice.held).name + "' is packed in a buffer: " + why);
      facts.texels = texel_layout{choice.packed, storage.object, storage.layer_rows};
      if (options_.facts != nullptr)
        facts.texels->filter_bits = facts.type == dtype::float16 ? options_.facts->image_filter_bits_fp16
                                                                 : options_.facts->image_filter_bits_fp32;
      marked_.emplace(choice.held, std::move(choice));
    }
  }

  /// Lets marks fall where a kernel cannot carry them, until all blocks can.
  void drop_uncarried() {
    std::set<std::size_t> open;
    for (std::size_t b = 0; b < candidates_.blocks.size(); ++b) open.insert(b);
    while (!open.empty()) {
      const std::size_t b = *open.begin();
      open.erase(open.begin());
      const fallen_marks fallen = fall_at(b);
      for (const value_id v : fallen.values) unmark(v, fallen.why);
      for (std::size_t other = 0; other < candidates_.blocks.size(); ++other)
        if (std::any_of(fallen.values.begin(), fallen.values.end(), [&](value_id v) { return touches(other, v); }))
          open.insert(other);
    }
  }

  /// Makes planes of images layers where a reader then has no rows to test.
  void turn_planes_into_layers() {
    for (const auto& [v, choice] : marked_) {
      value_facts& facts = copy_->facts(v);
      if (facts.texels->object == memory_object::buffer) continue;
      const std::size_t along = facts.dims->size() - 2;
      const texel_extents extents = image_of(texel_dims(*facts.dims, choice.packed));
      const std::int64_t plane_rows = (*facts.dims)[along].constant();
      if (along == choice.packed || extents.height == index_expr(plane_rows)) continue;
      const std::optional<codegen::texel_storage> layers = codegen::planes_as_layers(
          {facts.texels->object, extents, facts.texels->layer_rows, facts.type}, plane_rows, options_.device);
      if (!layers) continue;
      const texel_layout before = *facts.texels;
      facts.texels->object = layers->object;
      facts.texels->layer_rows = layers->layer_rows;
      if (!gains_by_layers(v)) facts.texels = before;
    }
  }

  /// The marks that are left. Nothing can be asked of this object afterwards.
  [[nodiscard]] packed_graph finish() {
    packed_graph result;
    for (const auto& [v, choice] : marked_) {
      ++result.values;
      if (copy_->facts(v).texels->object != memory_object::buffer) ++result.images;
      result.copy_bytes += choice.copy_bytes;
    }
    result.notes = std::move(candidates_.notes);
    result.g = std::move(copy_);
    return result;
  }

 private:
  /// Values that lose their texels together, and why.
  struct fallen_marks {
    std::vector<value_id> values;
    std::string why;
  };

  /// Tells of a tensor that is not as it was asked for.
  void note(std::string text) { candidates_.notes.push_back(std::move(text)); }

  /// Gives a value its rows back and tells why.
  void unmark(value_id v, const std::string& why) {
    copy_->facts(v).texels.reset();
    marked_.erase(v);
    note("'" + g_.value_at(v).name + "' keeps its rows: " + why);
  }

  /// The kernels of a block with the marks as they are; else nothing, and `why` says what stands against it.
  [[nodiscard]] std::optional<codegen::lowered_node> lowered(std::size_t b, std::string& why) const {
    return lower_in_texels(*copy_, rows_.steps[candidates_.step_of_block[b]], options_, why);
  }

  /// What stands against the marks at a block; nothing where its kernels carry them.
  [[nodiscard]] std::optional<std::string> objection_of(std::size_t b) const {
    std::string why;
    if (lowered(b, why)) return std::nullopt;
    return why;
  }

  /// Whether a block has kernels once `values` have lost their texels, which this takes from them.
  [[nodiscard]] bool carries_without(const std::vector<value_id>& values, std::size_t b) {
    for (const value_id v : values) copy_->facts(v).texels.reset();
    return !values.empty() && !objection_of(b);
  }

  /// The marks that must fall for a block to have kernels, and why; none where it carries all. Their texels may be gone
  /// already.
  [[nodiscard]] fallen_marks fall_at(std::size_t b) {
    const std::vector<value_id> out = marks_written(b);
    const std::vector<value_id> in = marks_read(b);
    if (out.empty() && in.empty()) return {};
    const std::optional<std::string> why = objection_of(b);
    if (!why) return {};
    // Results fall first: whoever wrote the operands may be able to.
    std::vector<std::optional<texel_layout>> kept;
    for (const value_id v : out) kept.push_back(copy_->facts(v).texels);
    if (carries_without(out, b)) return {out, *why};
    for (std::size_t i = 0; i < out.size(); ++i) copy_->facts(out[i]).texels = kept[i];
    fallen_marks fallen{in, *why};
    if (!carries_without(in, b)) fallen.values.insert(fallen.values.end(), out.begin(), out.end());
    return fallen;
  }

  /// Whether a block stores a value.
  [[nodiscard]] bool writes(std::size_t b, value_id v) const {
    const std::vector<value_id>& outputs = candidates_.blocks[b].outputs;
    return std::find(outputs.begin(), outputs.end(), v) != outputs.end();
  }

  /// Whether a block stores or reads a value.
  [[nodiscard]] bool touches(std::size_t b, value_id v) const {
    const std::vector<node_id>& members = candidates_.blocks[b].members;
    return writes(b, v) || std::any_of(members.begin(), members.end(), [&](node_id id) {
             const auto& inputs = g_.node_at(id).inputs;
             return std::find(inputs.begin(), inputs.end(), v) != inputs.end();
           });
  }

  /// The marked values that a block stores.
  [[nodiscard]] std::vector<value_id> marks_written(std::size_t b) const {
    std::vector<value_id> values;
    for (const value_id v : candidates_.blocks[b].outputs)
      if (marked_.contains(v)) values.push_back(v);
    return values;
  }

  /// The marked values that a block reads and does not write itself, each once.
  [[nodiscard]] std::vector<value_id> marks_read(std::size_t b) const {
    std::vector<value_id> values;
    for (const node_id id : candidates_.blocks[b].members)
      for (const value_id v : g_.node_at(id).inputs)
        if (v != no_value && marked_.contains(v) && std::find(values.begin(), values.end(), v) == values.end() &&
            !writes(b, v))
          values.push_back(v);
    return values;
  }

  /// Whether a kernel leaves rows to the border now that the planes of a value are layers, and all that touch the value
  /// carry them.
  [[nodiscard]] bool gains_by_layers(value_id v) const {
    bool relied_on = false;
    for (std::size_t b = 0; b < candidates_.blocks.size(); ++b) {
      if (!touches(b, v)) continue;
      std::string why;
      const std::optional<codegen::lowered_node> now = lowered(b, why);
      if (!now) return false;
      for (const codegen::kernel_plan& plan : now->kernels)
        for (const codegen::pointer_argument& a : plan.pointers)
          relied_on = relied_on || (a.held == v && a.ends_planes);
    }
    return relied_on;
  }

  const program& rows_;
  const graph& g_;
  const codegen::lower_options& options_;
  texel_candidates candidates_;
  std::shared_ptr<graph> copy_;
  std::map<value_id, layout_choice> marked_;
};

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
/// tensor's too, where its packed dim is no number, nor in images any other, and where the kernel that writes or reads
/// it would lose its frame; `notes` tell. Preconditions: `rows` was made with `options`; narrow_storage goes first.
/// Errors: those of make_program. Complexity: one lowering of each block that touches a candidate for each time that a
/// mark near it falls, and one for each image that it touches.
[[nodiscard]] inline packed_graph pack_storage(const program& rows, const codegen::lower_options& options) {
  const bool automatic = options.memory == memory_objects::automatic;
  detail::texel_marking marking(rows, options, detail::find_texel_candidates(rows, options.memory));
  marking.mark_chosen();
  marking.drop_uncarried();
  marking.turn_planes_into_layers();
  packed_graph result = marking.finish();
  if (automatic) result.notes.clear();
  return result;
}

/// The same of a graph, which it lowers first.
[[nodiscard]] inline packed_graph pack_storage(const std::shared_ptr<const graph>& g,
                                               const codegen::lower_options& options) {
  return pack_storage(make_program(g, options, false), options);
}

}  // namespace dnnopt

#endif  // DNNOPT_BACKEND_STORAGE_PACK_HPP

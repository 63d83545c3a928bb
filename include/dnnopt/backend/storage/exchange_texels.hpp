// Owns inputs and outputs that the caller exchanges as texels: which values carry them, and the conversions where a
// kernel cannot.
#ifndef DNNOPT_BACKEND_STORAGE_EXCHANGE_TEXELS_HPP
#define DNNOPT_BACKEND_STORAGE_EXCHANGE_TEXELS_HPP

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
#include <dnnopt/backend/program/lower_again.hpp>
#include <dnnopt/backend/program/make_program.hpp>
#include <dnnopt/backend/storage/pack.hpp>
#include <dnnopt/ops/reshape.hpp>

namespace dnnopt {

/// A graph whose named inputs and outputs hold texels, and what that took.
struct exchanged_graph {
  std::shared_ptr<const graph> g;
  std::size_t values = 0;           ///< that the caller exchanges as texels
  std::size_t conversions = 0;      ///< kernels that only convert between texels and rows
  std::vector<std::string> notes;   ///< which these are, and why
  std::vector<node_id> converting;  ///< nodes that convert an input to rows or rows to an output
};

namespace detail {

/// The layout that the caller stated for a value, complete: without stated rows the layers of an image2d_array are
/// planes. Errors: invalid_argument, unsupported (see exchange_texels).
[[nodiscard]] inline texel_layout complete_layout(const value& v, texel_layout layout,
                                                  const codegen::lower_options& options) {
  const value_facts& facts = v.facts;
  const std::string who = "'" + v.name + "' cannot be exchanged as texels: ";
  if (facts.kind != value_kind::tensor || (facts.type != dtype::float32 && facts.type != dtype::float16))
    throw error(errc::unsupported,
                who + (facts.kind != value_kind::tensor ? std::string("it is no tensor")
                                                        : "it is of type " + std::string(name_of(facts.type))));
  if (!facts.dims || !is_static(*facts.dims))
    throw error(errc::unsupported, who + "its dims are not known" + (facts.dims ? ": " + to_string(*facts.dims) : ""));
  if (layout.packed >= facts.dims->size())
    throw error(errc::invalid_argument, who + "dim " + std::to_string(layout.packed) + " of " + to_string(*facts.dims));
  if (element_count(*facts.dims) == index_expr(0)) throw error(errc::unsupported, who + "it has no elements");
  layout.filter_bits = 0;
  if (layout.object == memory_object::buffer) {
    layout.layer_rows = 0;
    return layout;
  }
  const texel_extents extents = image_of(texel_dims(*facts.dims, layout.packed));
  const auto width = static_cast<std::size_t>(extents.width.constant());
  const auto height = static_cast<std::size_t>(extents.height.constant());
  const image_limits none;
  const image_limits& limits = options.device == nullptr ? none : options.device->images;
  if (!limits.supported || !(facts.type == dtype::float16 ? limits.rgba_fp16 : limits.rgba_fp32))
    throw error(errc::unsupported,
                who + "the device has no images of RGBA " + (facts.type == dtype::float16 ? "fp16" : "fp32"));
  const auto refuse = [&](const std::string& limit) {
    return error(errc::unsupported, who + "an " + std::string(name_of(layout.object)) + " of " + std::to_string(width) +
                                        " x " + std::to_string(height) + " texels is beyond the device's " + limit);
  };
  if (layout.object == memory_object::image1d_buffer) {
    layout.layer_rows = 0;
    if (width * height > limits.max_buffer_texels) throw refuse(std::to_string(limits.max_buffer_texels) + " texels");
  } else {
    std::size_t rows = height;
    if (layout.object == memory_object::image2d) {
      layout.layer_rows = 0;
    } else {
      if (layout.layer_rows <= 0) {
        const shape texels = texel_dims(*facts.dims, layout.packed);
        layout.layer_rows = texels.size() < 2 ? 1 : texels[texels.size() - 2].constant();
      }
      rows = static_cast<std::size_t>(layout.layer_rows);
      if ((height + rows - 1) / rows > limits.max_array_layers)
        throw refuse(std::to_string(limits.max_array_layers) + " layers");
    }
    if (width > limits.max_width_2d || rows > limits.max_height_2d)
      throw refuse(std::to_string(limits.max_width_2d) + " x " + std::to_string(limits.max_height_2d));
  }
  if (options.facts != nullptr)
    layout.filter_bits =
        facts.type == dtype::float16 ? options.facts->image_filter_bits_fp16 : options.facts->image_filter_bits_fp32;
  return layout;
}

/// What of an exchange stays rows.
struct exchange_plan {
  std::map<value_id, texel_layout> layouts;           ///< of the inputs and outputs that are exchanged
  std::map<value_id, std::set<std::size_t>> readers;  ///< of inputs: the steps that read rows
  std::map<value_id, std::string> why_rows;           ///< of these inputs, and of outputs that are written as rows

  /// Whether a step reads or writes rows of it: of an input some steps may, of an output all do.
  [[nodiscard]] bool in_rows(const graph& g, value_id v, std::size_t step) const {
    if (g.is_output(v)) return why_rows.contains(v);
    const auto found = readers.find(v);
    return found != readers.end() && found->second.contains(step);
  }
};

/// The values of those names with their layouts. Errors: see exchange_texels.
[[nodiscard]] inline std::map<value_id, texel_layout> exchanged_values(
    const graph& graph_of, const std::map<std::string, texel_layout>& wanted, const codegen::lower_options& options) {
  const graph* const g = &graph_of;
  std::map<value_id, texel_layout> layouts;
  for (const auto& [name, layout] : wanted) {
    std::set<value_id> found;
    for (const auto* ids : {&g->inputs(), &g->outputs()})
      for (const value_id v : *ids)
        if (g->value_at(v).name == name) found.insert(v);
    if (found.empty()) throw error(errc::missing_input, "the model has no input or output '" + name + "'");
    if (found.size() > 1 || (g->is_input(*found.begin()) && g->is_output(*found.begin())))
      throw error(errc::unsupported, "'" + name + "' is an input and an output of the model");
    layouts.emplace(*found.begin(), detail::complete_layout(g->value_at(*found.begin()), layout, options));
  }
  return layouts;
}

/// Finds out which steps of `rows` cannot carry texels, by lowering them on a copy of its graph.
inline void settle_exchange(const program& rows, const codegen::lower_options& options, exchange_plan& plan) {
  const std::shared_ptr<const graph>& g = rows.g;
  const auto copy = std::make_shared<graph>(*g);
  for (bool settled = false; !settled;) {
    settled = true;
    for (std::size_t s = 0; s < rows.steps.size(); ++s) {
      const placed_node& step = rows.steps[s];
      if (step.where != placement::device) continue;
      std::vector<value_id> in;
      std::vector<value_id> out;
      const auto add = [&](std::vector<value_id>& to, value_id v) {
        if (v != no_value && plan.layouts.contains(v) && !plan.in_rows(*g, v, s) &&
            std::find(to.begin(), to.end(), v) == to.end())
          to.push_back(v);
      };
      for (const value_id v : step.outputs) add(out, v);
      for (const node_id id : step.members)
        for (const value_id v : g->node_at(id).inputs)
          if (std::find(step.outputs.begin(), step.outputs.end(), v) == step.outputs.end()) add(in, v);
      if (in.empty() && out.empty()) continue;
      std::string why;
      const auto carries = [&](const std::vector<value_id>& marked) {
        for (const value_id v : marked) copy->facts(v).texels = plan.layouts.at(v);
        const bool lowered = detail::lower_in_texels(*copy, step, options, why).has_value();
        for (const value_id v : marked) copy->facts(v).texels.reset();
        return lowered;
      };
      std::vector<value_id> all = in;
      all.insert(all.end(), out.begin(), out.end());
      if (carries(all)) continue;
      settled = false;
      const std::string first = std::exchange(why, std::string());
      const bool reads = !in.empty() && carries(in);
      const bool writes = !reads && !out.empty() && carries(out);
      const auto give_up = [&](const std::vector<value_id>& values) {
        for (const value_id v : values) {
          plan.why_rows.emplace(v, first);
          if (!g->is_output(v)) plan.readers[v].insert(s);
        }
      };
      if (!reads) give_up(in);
      if (!writes) give_up(out);
    }
  }
}

}  // namespace detail

/// A copy of the graph of `rows` in which the inputs and outputs named in `wanted` hold texels of these layouts:
/// kernels read and write them as they are. Where the kernel that does cannot, or would lose its frame, a kernel that
/// only converts stands between, and `notes` tell; likewise for outputs that no kernel of their own writes, and for
/// inputs that are read under another shape. Precondition: as narrow_storage; it goes before narrow_storage and
/// pack_storage. Errors: missing_input, no input or output has a name; unsupported, a value is an input and an output,
/// no tensor of float32 or float16, has symbolic dims or no elements, or the device has no such image;
/// invalid_argument, a layout's packed dim is none of the value's. Complexity: one lowering of the graph, and up to
/// three of each block that touches such a value for each value that stays rows.
[[nodiscard]] inline exchanged_graph exchange_texels(const program& rows,
                                                     const std::map<std::string, texel_layout>& wanted,
                                                     const codegen::lower_options& options) {
  const std::shared_ptr<const graph>& g = rows.g;
  exchanged_graph result;
  auto copy = std::make_shared<graph>(*g);
  detail::exchange_plan plan{detail::exchanged_values(*g, wanted, options), {}, {}};
  result.values = plan.layouts.size();
  std::set<value_id> written;
  for (const placed_node& step : rows.steps)
    if (step.where == placement::device) written.insert(step.outputs.begin(), step.outputs.end());
  for (const auto& [v, layout] : plan.layouts)
    if (g->is_output(v) && (!written.contains(v) || rows.roots[v] != v))
      plan.why_rows.emplace(v, "no kernel of its own writes it");
  detail::settle_exchange(rows, options, plan);
  for (const placed_node& step : rows.steps)
    if (const auto stated = plan.layouts.find(step.alias_of);
        step.where == placement::alias && stated != plan.layouts.end() &&
        !(g->is_output(stated->first) && plan.why_rows.contains(stated->first))) {
      // What shared the memory becomes a kernel.
      ++result.conversions;
      result.notes.push_back("a kernel converts '" + g->value_at(step.alias_of).name + "' from texels to rows: node '" +
                             g->node_at(step.id).name + "' reads it under another shape");
    }

  // Edits forget the plan, which holds: conversions are blocks of their own.
  std::vector<fused_block> blocks = g->blocks();
  std::vector<value_id> outputs = g->outputs();
  for (const auto& [v, layout] : plan.layouts) {
    const auto why = plan.why_rows.find(v);
    if (why == plan.why_rows.end()) {
      copy->facts(v).texels = layout;
      continue;
    }
    const std::string name = g->value_at(v).name;
    const bool output = g->is_output(v);
    const value_id other = copy->add_value(name, g->facts(v).type, g->facts(v).dims);
    copy->rename_value(output ? v : other, name + "/rows");
    if (output) {
      result.converting.push_back(copy->add_node(op_row<ops::identity_op>, name + "/texels", {v}, {other}));
      copy->facts(other).texels = layout;
      std::replace(outputs.begin(), outputs.end(), v, other);
    } else {
      copy->facts(v).texels = layout;
      std::set<node_id> ids;
      for (const std::size_t step : plan.readers.at(v))
        ids.insert(rows.steps[step].members.begin(), rows.steps[step].members.end());
      for (const node_id id : ids)
        for (std::size_t slot = 0; slot < g->node_at(id).inputs.size(); ++slot)
          if (g->node_at(id).inputs[slot] == v) copy->set_node_input(id, slot, other);
      result.converting.push_back(copy->add_node(op_row<ops::identity_op>, name + "/rows", {v}, {other}));
    }
    ++result.conversions;
    result.notes.push_back("a kernel converts '" + name + "' " +
                           (output ? "from rows to texels: " : "from texels to rows: ") + why->second);
  }
  copy->set_outputs(std::move(outputs));
  copy->set_blocks(std::move(blocks));
  result.g = std::move(copy);
  return result;
}

/// Puts what exchange_texels made of the program's graph in its place, with a step for each conversion: one of an input
/// comes first, one of an output behind the step that stores its rows. Whether that goes; no, with the program as it
/// was, where a step has no kernel then. Errors: as lower_again.
[[nodiscard]] inline bool place_exchange(program& p, const exchanged_graph& made,
                                         const codegen::lower_options& options) {
  const graph& before = *p.g;
  const graph& g = *made.g;
  program next = p;
  const auto is_other = [&](value_id v) {
    return v >= before.value_count() || g.facts(v).texels != before.facts(v).texels;
  };
  // What shares memory with an input in texels becomes a kernel.
  for (placed_node& step : next.steps)
    if (step.where == placement::alias && g.facts(step.alias_of).texels) {
      step.where = placement::device;
      step.reason.clear();
      step.alias_of = no_value;
    }
  if (!lower_again(next, made.g, options, [&](const placed_node& step) { return touches(g, step, is_other); }))
    return false;
  for (const node_id id : made.converting) {
    placed_node step;
    step.id = id;
    step.members = {id};
    step.outputs = {g.node_at(id).outputs[0]};
    step.where = placement::device;
    codegen::lowering found = detail::lower_unit(g, step, options);
    if (!found.made) return false;
    step.lowered = std::move(*found.made);
    const value_id from = g.node_at(id).inputs[0];
    const auto stores = std::find_if(next.steps.begin(), next.steps.end(), [&](const placed_node& one) {
      return std::find(one.outputs.begin(), one.outputs.end(), from) != one.outputs.end();
    });
    next.steps.insert(stores == next.steps.end() ? next.steps.begin() : stores + 1, std::move(step));
  }
  next.roots.resize(g.value_count());
  for (value_id v = 0; v < g.value_count(); ++v) next.roots[v] = v;
  for (const placed_node& step : next.steps)
    if (step.where == placement::alias) next.roots[step.outputs[0]] = next.roots[step.alias_of];
  p = std::move(next);
  return true;
}

/// exchange_texels of a graph, which it lowers first.
[[nodiscard]] inline exchanged_graph exchange_texels(const std::shared_ptr<const graph>& g,
                                                     const std::map<std::string, texel_layout>& wanted,
                                                     const codegen::lower_options& options) {
  return exchange_texels(make_program(g, options, false), wanted, options);
}

}  // namespace dnnopt

#endif  // DNNOPT_BACKEND_STORAGE_EXCHANGE_TEXELS_HPP

// dnnopt optimize
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>

#include <dnnopt/backend/measure/device_lowering.hpp>
#include <dnnopt/backend/measure/opened_device.hpp>
#include <dnnopt/backend/program/subgraphs.hpp>
#include <dnnopt/backend/storage/fit_program.hpp>
#include <dnnopt/device_options.hpp>
#include <dnnopt/graph_io.hpp>
#include <dnnopt/memory/memory_io.hpp>
#include <dnnopt/memory/memory_svg.hpp>
#include <dnnopt/onnx/export.hpp>
#include <dnnopt/passes/fusion/extended_graph.hpp>

#include "support.hpp"

namespace tool {

namespace {

/// A hash of what a kernel is compiled from, the same on every machine: FNV-1a of 64 bits (Fowler, Noll, Vo) over build
/// options, entry and source, as 16 hexadecimal digits. Two trees whose launches have equal hashes generate equal code.
std::string source_hash(const dnnopt::codegen::kernel_plan& plan) {
  std::uint64_t hash = 14695981039346656037U;
  for (const std::string_view part :
       {std::string_view(plan.options), std::string_view(plan.entry), std::string_view(plan.source.str())}) {
    for (const char c : part) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211U;
    hash = (hash ^ 0U) * 1099511628211U;
  }
  char digits[17];
  std::snprintf(digits, sizeof(digits), "%016llx", static_cast<unsigned long long>(hash));
  return digits;
}

/// Whether the node only moves or repeats elements by an index map.
bool is_layout_operator(const dnnopt::graph& g, dnnopt::node_id id) {
  const dnnopt::node& n = g.node_at(id);
  if (n.op->kind == dnnopt::computation_kind::view) return true;
  // A gather by constant indices is an index map too.
  if (n.op->kind != dnnopt::computation_kind::indexed_read) return false;
  for (std::size_t i = 1; i < n.inputs.size(); ++i)
    if (n.inputs[i] == dnnopt::no_value || !g.facts(n.inputs[i]).is_constant()) return false;
  return true;
}

/// A count where symbols are 1. Dims that come of them may be 0 then, or below: what has such a dim, or one that is
/// divided by it, has no elements.
std::int64_t figure_of(const dnnopt::index_expr& e, const dnnopt::symbol_values& ones) {
  return std::max<std::int64_t>(e.try_evaluate(ones).value_or(0), 0);
}

std::int64_t bytes_of(const dnnopt::graph& g, dnnopt::value_id v, const dnnopt::symbol_values& ones) {
  if (v == dnnopt::no_value || g.value_at(v).uses.empty() || !g.facts(v).dims || g.facts(v).elements) return 0;
  return figure_of(dnnopt::element_count(*g.facts(v).dims), ones) *
         static_cast<std::int64_t>(dnnopt::size_of(g.facts(v).type));
}

/// Bytes of intermediate results: outputs of nodes that other nodes read. Symbolic dims count as 1.
std::int64_t intermediate_bytes(const dnnopt::graph& g, const dnnopt::symbol_values& ones) {
  std::int64_t bytes = 0;
  for (const dnnopt::node_id id : g.nodes())
    for (const dnnopt::value_id out : g.node_at(id).outputs) bytes += bytes_of(g, out, ones);
  return bytes;
}

/// The same of what a program stores: aliases take no memory of their own.
std::int64_t intermediate_bytes(const dnnopt::program& placed, const dnnopt::symbol_values& ones) {
  std::int64_t bytes = 0;
  for (const dnnopt::placed_node& step : placed.steps)
    for (const dnnopt::value_id out : step.outputs)
      if (placed.roots[out] == out) bytes += bytes_of(*placed.g, out, ones);
  return bytes;
}

/// Whether a step only moves or repeats elements.
bool is_layout_step(const dnnopt::graph& g, const dnnopt::placed_node& step) {
  return std::all_of(step.members.begin(), step.members.end(),
                     [&](dnnopt::node_id id) { return is_layout_operator(g, id); });
}

std::int64_t macs_of(const dnnopt::graph& g, const dnnopt::symbol_values& ones) {
  std::int64_t macs = 0;
  for (const dnnopt::node_id id : g.nodes()) {
    const dnnopt::facts_of_node facts(g, id);
    if (g.node_at(id).op->macs != nullptr) macs += figure_of(g.node_at(id).op->macs(*facts), ones);
  }
  return macs;
}

/// What compile would lower for. Images ask for a context: which formats there are, and what is measured; so do devices
/// that may have matrix steps, which are looked for. A device whose context is refused is planned for by what its
/// driver lists, and a note says so.
struct device_to_plan_for {
  device_to_plan_for(const dnnopt::compile_options& compiling, const dnnopt::graph& g)
      : listed(dnnopt::opencl::select_device(compiling.device)) {
    const dnnopt::memory_objects objects = compiling.memory_objects;
    std::string why_closed;
    const bool may_step = !dnnopt::with_form(listed.info, compiling.form).prefers_vectors();
    opened = compiling.opened;
    if (!opened && (dnnopt::wants_images(objects, compiling.texels) || may_step)) {
      try {
        opened = std::make_shared<dnnopt::opened_device>(listed, compiling.programs);
      } catch (const dnnopt::error& e) {
        why_closed = e.what();
      }
    }
    lowering = opened ? dnnopt::lowering_for(*opened, g, objects, compiling.tuned.get(), compiling.texels,
                                             compiling.form, compiling.matrix_steps, compiling.integer_dots)
                      : dnnopt::lowering_for(listed.info, objects, compiling.tuned.get(), compiling.form);
    if (!why_closed.empty())
      lowering.notes.push_back("planned by what the driver lists of the device, which could not be opened: " +
                               why_closed);
  }
  device_to_plan_for(const device_to_plan_for&) = delete;
  device_to_plan_for& operator=(const device_to_plan_for&) = delete;

  dnnopt::opencl::device listed;
  std::shared_ptr<dnnopt::opened_device> opened;
  dnnopt::device_lowering lowering;
};

/// The bodies of control flow in the graph: a run makes a program of each when it first enters it.
json bodies_in(const dnnopt::graph& g) {
  json rows = json::array();
  for (const dnnopt::node_id id : g.nodes()) {
    const dnnopt::node& n = g.node_at(id);
    if (n.op->flow == dnnopt::flow_form::none) continue;
    json bodies = json::array();
    for (const auto& [key, held] : n.attributes)
      if (const auto* body = std::get_if<dnnopt::subgraph>(&held); body != nullptr && *body)
        bodies.push_back({{"body", key}, {"nodes", (*body)->node_count()}});
    rows.push_back({{"node", n.name}, {"op", std::string(n.op->name)}, {"bodies", bodies}});
  }
  return rows;
}

json to_json(const dnnopt::graph& g, const std::vector<dnnopt::fusion::extended_node>& nodes,
             const dnnopt::symbol_values& ones) {
  json rows = json::array();
  for (const dnnopt::fusion::extended_node& one : nodes) {
    json inputs = json::array();
    for (const auto& mapping : one.input_mappings)
      inputs.push_back(mapping ? json(std::string(name_of(*mapping))) : json());
    rows.push_back({{"node", g.node_at(one.id).name},
                    {"op", std::string(g.node_at(one.id).op->name)},
                    {"mapping", std::string(name_of(one.mapping))},
                    {"inputs", inputs},
                    {"result_bytes", one.result_bytes ? json(figure_of(*one.result_bytes, ones)) : json()},
                    {"removable", one.removable},
                    {"properties", dnnopt::fusion::properties_text(one.properties)}});
  }
  return rows;
}

/// What a box of the drawn graph says of its node.
std::unordered_map<dnnopt::node_id, std::string> notes_of(const std::vector<dnnopt::fusion::extended_node>& nodes) {
  std::unordered_map<dnnopt::node_id, std::string> notes;
  for (const dnnopt::fusion::extended_node& one : nodes) {
    std::string& note = notes[one.id] = name_of(one.mapping);
    if (one.result_bytes) note += ", " + to_string(*one.result_bytes) + " bytes" + (one.removable ? ", removable" : "");
    if (one.properties != dnnopt::algebra::none) note += "\n" + dnnopt::fusion::properties_text(one.properties);
  }
  return notes;
}

/// The compile options that the flags state. Of a model with bytes the device is opened, as compile would, for what
/// multiplies them decides which products become products of integers; one that cannot be opened multiplies none.
dnnopt::compile_options options_for(const options& o, const dnnopt::model& m) {
  dnnopt::compile_options compiling = compile_options_of(o, m);
  if (o.device == "reference" || !dnnopt::holds_bytes(m.main)) return compiling;
  try {
    compiling.opened = std::make_shared<dnnopt::opened_device>(compiling.device, compiling.programs);
  } catch (const dnnopt::error&) {
    return compiling;
  }
  dnnopt::decide_products(compiling, *compiling.opened, m.main);
  return compiling;
}

}  // namespace

int optimize(const options& o) {
  dnnopt::load_options loading;
  loading.missing_data = dnnopt::onnx::missing_data::zeros;
  const dnnopt::model m = load_model(o, std::move(loading));
  const dnnopt::compile_options compiling = options_for(o, m);

  // Counts "before" are of the imported graph once shapes are known and constants are folded.
  dnnopt::compile_report folded_report;
  dnnopt::compile_options folding = compiling;
  folding.passes = "rdp,fold_constants,rdp,remove_dead";
  const dnnopt::graph folded = dnnopt::optimize(m, folding, folded_report);
  dnnopt::graph imported = bound_graph(m, compiling);
  dnnopt::rdp{}.run(imported);

  dnnopt::compile_report report;
  const auto g = std::make_shared<const dnnopt::graph>(dnnopt::optimize(m, compiling, report));
  const dnnopt::symbol_values ones = g->expressions().all_bound_to(1);

  keep_profiles(o, compiling);

  json result;
  result["profile"] = profile_figures(compiling);
  tell_warnings(o, m, report, result);
  result["nodes_imported"] = report.nodes_imported;
  result["nodes_folded"] = report.nodes_folded;
  std::size_t layout_before = 0;
  for (const dnnopt::node_id id : imported.nodes()) layout_before += is_layout_operator(imported, id) ? 1 : 0;
  std::size_t kernels = 0;
  std::size_t host_ops = g->node_count();
  std::size_t layout_after = 0;
  dnnopt::run_memory memory;
  dnnopt::memory_report arranged;
  std::vector<std::string> record_names;
  double lower_seconds = 0;
  dnnopt::storage_figures storage;
  json launches = json::array();
  std::int64_t ir_after = 0;
  std::vector<dnnopt::program_subgraph> subgraphs;
  bool late = false;
  json planned_for;
  if (o.device != "reference") {
    const device_to_plan_for device(compiling, *g);
    const dnnopt::codegen::lower_options& lowering = device.lowering.options;
    dnnopt::fitted_program fitted = dnnopt::fit_program(g, compiling.precision, lowering, o.require_device,
                                                        compiling.memory, o.memory_limit, compiling.texels);
    const dnnopt::program& placed = fitted.stored.placed;
    planned_for = lowering.device->name;
    storage = std::move(fitted.stored.figures);
    storage.notes.insert(storage.notes.end(), device.lowering.notes.begin(), device.lowering.notes.end());
    lower_seconds = fitted.lower_seconds;
    arranged = fitted.memory;
    const std::size_t alignment = lowering.device->base_address_alignment_bytes;
    // Parts are those of the order before it was searched.
    subgraphs = dnnopt::subgraphs_of(dnnopt::make_program(placed.g, lowering, false));
    kernels = placed.kernel_count();
    host_ops = placed.host_count();
    // Conversions of what the caller exchanges as texels are nodes of the placed graph alone.
    const dnnopt::graph& run = *placed.g;
    for (const dnnopt::placed_node& step : placed.steps) {
      const dnnopt::node& n = run.node_at(step.id);
      if (step.where == dnnopt::placement::host) {
        late = true;
        if (is_layout_step(run, step)) ++layout_after;
      }
      for (std::size_t k = 0; k < step.lowered.kernels.size(); ++k) {
        if (is_layout_step(run, step)) ++layout_after;
        json ops = json::array();
        for (const dnnopt::node_id id : step.members) ops.push_back(std::string(run.node_at(id).op->name));
        launches.push_back({{"name", n.name + dnnopt::codegen::part_of_node(step.lowered, k)},
                            {"ops", ops},
                            {"version", step.lowered.kernels[k].version},
                            {"versions", step.lowered.versions},
                            {"guard", step.lowered.kernels[k].guard},
                            {"source_hash", source_hash(step.lowered.kernels[k])},
                            {"why_not", step.why_not},
                            {"passed_over", step.lowered.passed_over}});
      }
    }
    // Memory is planned for the given dims; what stays symbolic counts as 1. Sizes that the host tells stay open.
    dnnopt::symbol_values given;
    for (const dnnopt::value_id in : run.inputs())
      for (const std::uint32_t symbol : dnnopt::fusion::symbols_given_by(run.facts(in)))
        if (!given.find(symbol)) given.bind(symbol, 1);
    memory = dnnopt::plan_run_memory(placed, late ? given : ones, alignment, dnnopt::planner_of(compiling.memory));
    dnnopt::require_memory(placed, memory, o.memory_limit);
    record_names = dnnopt::record_names(placed, memory);
    keep_plans(o, *compiling.memory.store);
    ir_after = intermediate_bytes(placed, ones);
  } else {
    storage.notes.push_back("planned without a device: kernels, storage and memory are for one to tell");
    subgraphs = dnnopt::subgraphs_of(dnnopt::make_program(g, dnnopt::codegen::default_lower_options(nullptr), false));
    for (const dnnopt::node_id id : g->nodes()) layout_after += is_layout_operator(*g, id) ? 1 : 0;
    ir_after = intermediate_bytes(*g, ones);
  }
  result["device"] = planned_for;
  result["form"] = form_of(o);
  result["kernels"] = kernels;
  result["host_ops"] = host_ops;
  result["layout_ops_before"] = layout_before;
  result["layout_ops_after"] = layout_after;
  result["ir_bytes_before"] = intermediate_bytes(folded, ones);
  result["ir_bytes_after"] = ir_after;
  result["macs_before"] = macs_of(imported, ones);
  result["macs_after"] = macs_of(*g, ones);
  result["naive_bytes"] = memory.naive_bytes;
  result["arena_bytes"] = memory.arena_bytes;
  result["arena_lower_bound_bytes"] = memory.lower_bound_bytes;
  result["memory_strategy"] = memory.strategy;
  result["shared_objects"] = memory.plan.objects.size();
  result["storage"] = {{"narrowed_intermediates", storage.narrowed_intermediates},
                       {"narrowed_constants", storage.narrowed_constants},
                       {"product_kernels", storage.product_kernels},
                       {"half_products", storage.half_products},
                       {"matrix_steps", {{"kernels", storage.step_kernels}, {"provider", storage.step_provider}}},
                       {"exchanged_values", storage.exchanged_values},
                       {"conversions", storage.conversions},
                       {"packed_values", storage.packed_values},
                       {"image_values", storage.image_values},
                       {"copy_bytes", storage.copy_bytes},
                       {"notes", storage.notes}};
  result["precision"] = o.precision;
  result["matrix_steps"] = result["storage"]["matrix_steps"];
  result["images"] = storage.image_values;
  result["seconds"] = report.pass_seconds + lower_seconds;
  result["plan_seconds"] = arranged.schedule.seconds + memory.seconds;
  result["order"] = {{"decision", std::string(name_of(arranged.schedule.decision))},
                     {"peak_bytes_before", arranged.schedule.peak_before},
                     {"peak_bytes", arranged.schedule.peak},
                     {"proved", arranged.schedule.proved},
                     {"joined_in_place", arranged.parts.joined}};
  // In the form that plan-memory reads.
  result["usage_records"] = json::parse(
      dnnopt::memory::usages_to_json({record_names, memory.usages, memory.plan.offsets}).at("usage_records").dump());
  result["passes"] = json::array();
  result["rules_fired"] = json::object();
  text_table passes({"pass", "edits", "ms"});
  for (const dnnopt::pass_report& pass : report.passes) {
    json row{{"name", pass.name}, {"edits", pass.edits}, {"seconds", pass.seconds}};
    if (!pass.rules.empty()) row["rules"] = pass.rules;
    for (const auto& [rule, times] : pass.rules)
      result["rules_fired"][rule] = result["rules_fired"].value(rule, std::size_t{0}) + times;
    result["passes"].push_back(std::move(row));
    passes.add({pass.name, std::to_string(pass.edits), fixed(pass.seconds * 1e3, 2)});
  }
  result["launches"] = launches;
  result["control_flow"] = bodies_in(*g);
  result["guards"] = json::array();
  for (const dnnopt::guard& one : g->guards())
    result["guards"].push_back({{"node", one.node}, {"what", one.what}, {"condition", dnnopt::to_string(one)}});
  const dnnopt::subgraph_counts parts = dnnopt::count_subgraphs(subgraphs);
  result["subgraphs"] = {{"known", parts.known},
                         {"mixed_1", parts.mixed_1},
                         {"mixed_2_4", parts.mixed_2_4},
                         {"mixed_5_8", parts.mixed_5_8},
                         {"nac", parts.nac}};

  std::vector<dnnopt::fusion::extended_node> extended;
  if (o.extended_graph) {
    extended = dnnopt::fusion::extended_graph(*g);
    result["extended_graph"] = to_json(*g, extended, ones);
  }

  std::string text =
      passes.str() + "\n" + std::to_string(report.nodes_imported) + " nodes imported, " +
      std::to_string(report.nodes_folded) + " folded, " + std::to_string(g->node_count()) + " left\n" +
      std::to_string(kernels) + " device commands, " + std::to_string(host_ops) + " host operators" + form_text(o) +
      "\nlayout operators " + std::to_string(layout_before) + " -> " + std::to_string(layout_after) +
      ", intermediate bytes " + result["ir_bytes_before"].dump() + " -> " + result["ir_bytes_after"].dump() +
      "\narena " + std::to_string(memory.arena_bytes) + " bytes, lower bound " +
      std::to_string(memory.lower_bound_bytes) + ", one buffer each " + std::to_string(memory.naive_bytes) +
      "\norder " + std::string(name_of(arranged.schedule.decision)) + ": live bytes at the peak " +
      std::to_string(arranged.schedule.peak_before) + " -> " + std::to_string(arranged.schedule.peak) + "\n";
  if (!g->guards().empty())
    text +=
        std::to_string(g->guards().size()) + " conditions on symbolic dims are checked when dims are new (--explain)\n";
  if (dnnopt::stores_halves(compiling.precision))
    text += "stored in fp16: " + std::to_string(storage.narrowed_intermediates) + " intermediate tensors, " +
            std::to_string(storage.narrowed_constants) + " constants\n";
  if (compiling.precision == dnnopt::precision::fp16_arithmetic)
    text += "multiply in fp16: " + std::to_string(storage.half_products) + " of " +
            std::to_string(storage.product_kernels) + " kernels with products\n";
  if (storage.step_kernels > 0)
    text += "multiply in matrix steps (" + storage.step_provider + "): " + std::to_string(storage.step_kernels) +
            " of " + std::to_string(storage.product_kernels) + " kernels with products\n";
  if (storage.packed_values > 0 || (compiling.memory_objects != dnnopt::memory_objects::buffers &&
                                    compiling.memory_objects != dnnopt::memory_objects::automatic))
    text += "texels: " + std::to_string(storage.packed_values) + " intermediate tensors, " +
            std::to_string(storage.image_values) + " of them in images; copies not made " +
            std::to_string(storage.copy_bytes) + " bytes\n";
  for (const std::string& note : storage.notes) text += "  " + note + "\n";
  if (compiling.judge)
    text += "joins asked of the profile database " + result["profile"]["asked"].dump() + ": known " +
            result["profile"]["known"].dump() + ", measured " + result["profile"]["measured"].dump() +
            ", answered against the shipped rule " + result["profile"]["against_default"].dump() + "\n";
  if (o.explain) {
    for (const dnnopt::pass_report& pass : report.passes)
      for (const std::string& remark : pass.remarks) text += pass.name + ": " + remark + "\n";
    for (const dnnopt::guard& one : g->guards())
      text += "checked by runs: " + one.node + ": " + one.what + ": " + dnnopt::to_string(one) + "\n";
  }
  if (!o.dot.empty()) {
    std::ofstream file(o.dot);
    file << dnnopt::to_dot(*g,
                           o.extended_graph ? notes_of(extended) : std::unordered_map<dnnopt::node_id, std::string>{});
    file.close();
    if (!file) throw dnnopt::error(dnnopt::errc::file_io, "cannot write '" + o.dot + "'");
  }
  if (!o.output.empty()) {
    // Weights that the file refers to must be there to be written: this import reads them, unlike the one above.
    const dnnopt::model whole = dnnopt::load(o.model);
    dnnopt::compile_report again;
    dnnopt::export_options writing;
    writing.files = whole.files;
    writing.references = whole.references;
    writing.folder = whole.path.parent_path();
    dnnopt::export_onnx(dnnopt::optimize(whole, compiling, again), o.output, writing);
  }
  if (!o.memory_plan.empty()) {
    dnnopt::memory::svg_options drawing;
    drawing.title = o.model;
    drawing.names = record_names;
    std::ofstream file(o.memory_plan);
    file << dnnopt::memory::draw_memory_plan(memory.usages, memory.plan, drawing);
    file.close();
    if (!file) throw dnnopt::error(dnnopt::errc::file_io, "cannot write '" + o.memory_plan + "'");
  }
  say(o, text);
  write_json(o, result);
  return 0;
}

}  // namespace tool

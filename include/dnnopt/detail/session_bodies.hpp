// Owns the bodies of <dnnopt/session.hpp>: the composition of passes, lowering, memory and executor.
#ifndef DNNOPT_DETAIL_SESSION_BODIES_HPP
#define DNNOPT_DETAIL_SESSION_BODIES_HPP

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dnnopt/backend/measure/device_lowering.hpp>
#include <dnnopt/backend/measure/opened_device.hpp>
#include <dnnopt/backend/program/program.hpp>
#include <dnnopt/backend/run/executor.hpp>
#include <dnnopt/backend/run/refused_work_groups.hpp>
#include <dnnopt/backend/run/values.hpp>
#include <dnnopt/backend/storage/fit_program.hpp>
#include <dnnopt/passes/derive_guards.hpp>
#include <dnnopt/passes/folding/fold_constants.hpp>
#include <dnnopt/passes/rdp.hpp>
#include <dnnopt/reference/evaluate_node.hpp>
#include <dnnopt/session.hpp>

namespace dnnopt {

struct session::state {
  std::shared_ptr<const graph> optimized;
  std::shared_ptr<opened_device> device;      ///< null on the reference backend
  std::unique_ptr<opencl_executor> executor;  ///< null on the reference backend
  compile_report report;
  std::vector<std::string> default_inputs;  ///< inputs that became constants
  bool saved = false;

  // Shared devices hold programs of several sessions; each writes what it brought in.
  ~state() { (void)save_programs(); }

  [[nodiscard]] opencl_executor& with_device(std::string_view name) const {
    if (!executor)
      throw error(errc::unsupported,
                  "'" + std::string(name) + "' cannot be bound: the reference backend has no device memory");
    return *executor;
  }

  bool save_programs() noexcept {
    if (!device || report.builds == 0 || saved) return true;
    saved = true;
    try {
      // A cache that cannot be written costs the next start its builds, nothing else.
      (void)device->programs.save();
      return true;
    } catch (const std::exception&) {
      return false;
    }
  }
};

DNNOPT_BODY session::session(std::unique_ptr<state> made) noexcept : state_(std::move(made)) {}
DNNOPT_BODY session::session(session&& other) noexcept = default;
DNNOPT_BODY session& session::operator=(session&& other) noexcept = default;
DNNOPT_BODY session::~session() = default;

DNNOPT_BODY bool session::save_programs() noexcept { return state_->save_programs(); }
DNNOPT_BODY const graph& session::optimized() const noexcept { return *state_->optimized; }
DNNOPT_BODY const compile_report& session::report() const noexcept { return state_->report; }
DNNOPT_BODY opencl_executor* session::executor() const noexcept { return state_->executor.get(); }
DNNOPT_BODY const opencl::context* session::context() const noexcept {
  return state_->device ? &state_->device->context : nullptr;
}
DNNOPT_BODY std::size_t session::kernels() const { return state_->executor ? state_->executor->figures().kernels : 0; }
DNNOPT_BODY std::size_t session::host_ops() const {
  return state_->executor ? state_->executor->figures().host_ops : state_->optimized->node_count();
}

DNNOPT_BODY std::vector<placement_row> session::placements() const {
  const graph& g = *state_->optimized;
  std::vector<placement_row> rows;
  if (!state_->executor) {
    for (const node_id id : g.nodes()) {
      const node& n = g.node_at(id);
      rows.push_back({n.name, std::string(n.op->name), "host", "the reference backend was asked for"});
    }
    return rows;
  }
  const program& executed = state_->executor->executed();
  for (const placed_node& step : executed.steps)
    for (const node_id id : step.members) {
      const node& n = executed.g->node_at(id);
      rows.push_back({n.name, std::string(n.op->name), std::string(name_of(step.where)), step.reason});
    }
  return rows;
}

DNNOPT_BODY named_tensors session::run(const named_tensors& inputs, run_observer* observer) {
  const graph& g = *state_->optimized;
  std::vector<tensor> ordered;
  for (const value_id id : g.inputs()) {
    const std::string& name = g.value_at(id).name;
    const tensor* given = inputs.find(name);
    const bool bound = state_->executor && state_->executor->bound().is_input_bound(ordered.size());
    if (given == nullptr && !bound) throw error(errc::missing_input, "input '" + name + "' is not given");
    ordered.push_back(given == nullptr ? tensor() : *given);
  }
  for (const auto& [name, content] : inputs) {
    bool known = false;
    for (const value_id id : g.inputs()) known = known || g.value_at(id).name == name;
    if (known) continue;
    const auto& defaults = state_->default_inputs;
    if (std::find(defaults.begin(), defaults.end(), name) != defaults.end())
      throw error(errc::missing_input, "input '" + name +
                                           "' has a default value, which is compiled in; name it in "
                                           "load_options::overridden_inputs to give it");
    throw error(errc::missing_input, "the model has no input '" + name + "'");
  }
  if (!state_->executor && !g.guards().empty()) {
    symbol_values symbols;
    std::vector<bool> checked;
    for (std::size_t i = 0; i < ordered.size(); ++i)
      if (!ordered[i].empty()) bind_symbols(g.value_at(g.inputs()[i]), ordered[i], symbols);
    check_guards(g.guards(), symbols, checked);
  }
  std::vector<tensor> outputs =
      state_->executor ? state_->executor->run(ordered, observer) : reference::evaluate(g, ordered);
  named_tensors result;
  for (std::size_t i = 0; i < outputs.size(); ++i)
    if (!state_->executor || !state_->executor->bound().is_output_bound(i))
      result.add(g.value_at(g.outputs()[i]).name, std::move(outputs[i]));
  return result;
}

DNNOPT_BODY bound_value session::bind(std::string_view name, _cl_mem* memory, std::optional<dim_list> dims) {
  return state_->with_device(name).bind(name, memory, std::move(dims));
}
DNNOPT_BODY bool session::unbind(std::string_view name) { return state_->with_device(name).unbind(name); }
DNNOPT_BODY std::vector<bound_value> session::bindings() const {
  return state_->executor ? state_->executor->bound().rows() : std::vector<bound_value>();
}

/// Whether a dim of a value is no constant.
[[nodiscard]] inline bool has_symbols(const graph& g) {
  for (value_id v = 0; v < g.value_count(); ++v)
    if (const auto& dims = g.facts(v).dims; dims && !is_static(*dims)) return true;
  return false;
}

DNNOPT_BODY graph optimize(const model& source, const compile_options& options, compile_report& report) {
  graph g = source.main;
  bind_dims(g, options.dims);
  for (const auto& [input, dims] : options.shapes) bind_input_shape(g, input, dims);
  report.nodes_imported = g.node_count() + source.constant_nodes;
  const auto begin = std::chrono::steady_clock::now();
  if (has_symbols(g)) {
    (void)rdp{}.run(g);
    g.set_guards(derive_guards(g));
  }
  pass_environment environment;
  environment.evaluate = &reference::evaluate_node;
  environment.judge = options.judge.get();
  report.passes = run_passes(g, pass_names(options.passes), environment, options.after_pass);
  g.compact();
  report.pass_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  report.warnings = source.warnings;
  for (const pass_report& pass : report.passes) add_new_warnings(report.warnings, pass.warnings);
  for (const pass_report& pass : report.passes)
    if (pass.name == fold_constants::name) report.nodes_folded += pass.edits;
  report.nodes_folded += source.constant_nodes;
  return g;
}

DNNOPT_BODY session compile(const model& source, const compile_options& options) {
  auto result = std::make_unique<session::state>();
  result->optimized = std::make_shared<const graph>(optimize(source, options, result->report));
  result->default_inputs = source.default_inputs;
  if (options.device == "reference") {
    for (const auto& [name, layout] : options.texels)
      result->report.storage.notes.push_back("'" + name + "' keeps its rows: the reference backend has no texels");
    return session(std::move(result));
  }
  result->device = options.opened ? options.opened : std::make_shared<opened_device>(options.device, options.programs);
  opened_device& device = *result->device;
  if (options.memory_limit != 0) device.context.memory().set_limit(options.memory_limit);
  device_lowering lowering = lowering_for(device, *result->optimized, options.memory_objects, options.tuned.get(),
                                          options.texels, options.form);
  result->report.form = lowering.seen->form;
  memory_options arranging = options.memory;
  if (!arranging.store) arranging.store = std::make_shared<memory::plan_store>();
  std::map<node_id, std::size_t> limits;
  lowering.options.work_group_limits = &limits;
  const std::uint64_t built_before = device.programs.figures().builds;
  // What a compiled kernel allows is known only once it is compiled: what is refused is lowered again.
  while (!result->executor) {
    fitted_program fitted = fit_program(result->optimized, options.precision, lowering.options, options.require_device,
                                        arranging, options.memory_limit, options.texels);
    result->report.lower_seconds += fitted.lower_seconds;
    result->report.memory = fitted.memory;
    result->report.storage = std::move(fitted.stored.figures);
    const auto made = std::make_shared<program>(std::move(fitted.stored.placed));
    const auto building = std::chrono::steady_clock::now();
    try {
      result->executor = std::make_unique<opencl_executor>(device.context, device.programs, made,
                                                           &reference::evaluate_node, planner_of(arranging));
    } catch (const work_groups_refused& refused) {
      if (!lower_limits(limits, refused, *made->g, result->report.smaller_work_groups)) throw;
    }
    result->report.build_seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - building).count();
  }
  if (options.memory_objects != memory_objects::automatic)
    result->report.memory_objects = options.memory_objects;
  else if (result->report.storage.packed_values > 0)
    result->report.memory_objects = memory_objects::packed;
  result->report.storage.notes.insert(result->report.storage.notes.end(), lowering.notes.begin(), lowering.notes.end());
  result->executor->wait_by(options.wait);
  result->report.builds = device.programs.figures().builds - built_before;
  return session(std::move(result));
}

}  // namespace dnnopt

#endif  // DNNOPT_DETAIL_SESSION_BODIES_HPP

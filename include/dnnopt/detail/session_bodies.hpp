// Owns the bodies of <dnnopt/session.hpp>: what a session is asked, and how it is made of a model.
// Before the guard: that header ends with its bodies, in their order, whichever of them is included first.
#include <dnnopt/session.hpp>

#ifndef DNNOPT_DETAIL_SESSION_BODIES_HPP
#define DNNOPT_DETAIL_SESSION_BODIES_HPP

#include <algorithm>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dnnopt/backend/program/structural_inputs.hpp>
#include <dnnopt/backend/run/executor.hpp>
#include <dnnopt/backend/run/list_bodies.hpp>
#include <dnnopt/backend/run/values.hpp>
#include <dnnopt/detail/bound_graph.hpp>
#include <dnnopt/detail/placed_graph.hpp>
#include <dnnopt/detail/session_programs.hpp>
#include <dnnopt/detail/session_state.hpp>
#include <dnnopt/device_options.hpp>
#include <dnnopt/passes/derive_guards.hpp>
#include <dnnopt/passes/inline_branches.hpp>
#include <dnnopt/reference/evaluator.hpp>

namespace dnnopt {

DNNOPT_BODY session::session(std::unique_ptr<state> made) noexcept : state_(std::move(made)) {}
DNNOPT_BODY session::session(session&& other) noexcept = default;
DNNOPT_BODY session& session::operator=(session&& other) noexcept = default;
DNNOPT_BODY session::~session() = default;

DNNOPT_BODY session session::clone() { return session(state_->clone()); }
DNNOPT_BODY bool session::save_programs() noexcept { return state_->save_programs(); }
DNNOPT_BODY optimizing_state session::optimizing() const { return state_->optimizing(); }
DNNOPT_BODY const graph& session::optimized() const noexcept {
  return state_->last != nullptr ? *state_->last->optimized : *state_->general.optimized;
}
DNNOPT_BODY const compile_report& session::report() const noexcept { return state_->report; }
DNNOPT_BODY opencl_executor* session::executor() const noexcept {
  return state_->last != nullptr ? state_->last->executor.get() : state_->general.executor.get();
}
DNNOPT_BODY const opencl::context* session::context() const noexcept {
  return state_->device ? &state_->device->context : nullptr;
}
DNNOPT_BODY std::size_t session::kernels() const { return executor() != nullptr ? executor()->figures().kernels : 0; }
DNNOPT_BODY std::size_t session::host_ops() const {
  if (executor() != nullptr) return executor()->figures().host_ops;
  return state_->device ? 0 : state_->general.optimized->node_count();
}

DNNOPT_BODY std::vector<placement_row> session::placements() const {
  std::vector<placement_row> rows;
  if (!state_->device) {
    const graph& g = optimized();
    for (const node_id id : g.nodes()) {
      const node& n = g.node_at(id);
      rows.push_back({n.name, std::string(n.op->name), "host", "the reference backend was asked for"});
    }
    return rows;
  }
  const program& executed = executor() != nullptr ? executor()->executed() : *state_->generally;
  for (const placed_node& step : executed.steps)
    for (const node_id id : step.members) {
      const node& n = executed.g->node_at(id);
      rows.push_back({n.name, std::string(n.op->name), std::string(name_of(step.where)), step.reason});
    }
  return rows;
}

DNNOPT_BODY std::vector<body_row> session::bodies() const {
  return executor() == nullptr ? std::vector<body_row>() : list_bodies(*executor());
}

DNNOPT_BODY named_tensors session::run(const named_tensors& inputs, run_observer* observer) {
  const graph& whole = *state_->general.optimized;
  const auto is_bound = [&](std::size_t i) {
    return state_->general.executor && state_->general.executor->bound().is_input_bound(i);
  };
  for (std::size_t i = 0; i < whole.inputs().size(); ++i) {
    const std::string& name = whole.value_at(whole.inputs()[i]).name;
    if (inputs.find(name) == nullptr && !is_bound(i))
      throw error(errc::missing_input, "input '" + name + "' is not given");
  }
  for (const auto& [name, content] : inputs) {
    bool known = false;
    for (const value_id id : whole.inputs()) known = known || whole.value_at(id).name == name;
    if (known) continue;
    const auto& defaults = state_->default_inputs;
    if (std::find(defaults.begin(), defaults.end(), name) != defaults.end())
      throw error(errc::missing_input, "input '" + name +
                                           "' has a default value, which is compiled in; name it in "
                                           "load_options::overridden_inputs to give it");
    if (state_->options.values.contains(name))
      throw error(errc::missing_input, "the value of '" + name + "' is compiled in (compile_options::values)");
    throw error(errc::missing_input, "the model has no input '" + name + "'" + detail::list_inputs(whole));
  }
  state_->last = &state_->program_for(inputs);
  const graph& g = *state_->last->optimized;
  opencl_executor* const executor = state_->last->executor.get();
  std::vector<tensor> ordered;
  for (const value_id id : g.inputs()) {
    const tensor* given = inputs.find(g.value_at(id).name);
    ordered.push_back(given == nullptr ? tensor() : *given);
  }
  if (executor == nullptr) {
    symbol_values symbols;
    std::vector<bool> checked;
    for (std::size_t i = 0; i < ordered.size(); ++i)
      if (!ordered[i].empty()) bind_symbols(g.value_at(g.inputs()[i]), ordered[i], symbols);
    check_guards(g.guards(), symbols, checked);
  }
  std::vector<tensor> outputs =
      executor != nullptr ? state_->run_last(ordered, observer) : reference::evaluate(g, ordered);
  named_tensors result;
  for (std::size_t i = 0; i < outputs.size(); ++i)
    if (executor == nullptr || !executor->bound().is_output_bound(i))
      result.add(g.value_at(g.outputs()[i]).name, std::move(outputs[i]));
  return result;
}

DNNOPT_BODY bound_value session::bind(std::string_view name, _cl_mem* memory, std::optional<dim_list> dims) {
  return state_->with_device(name).bind(name, memory, std::move(dims));
}
DNNOPT_BODY bool session::unbind(std::string_view name) { return state_->with_device(name).unbind(name); }
DNNOPT_BODY std::vector<bound_value> session::bindings() const {
  return state_->general.executor ? state_->general.executor->bound().rows() : std::vector<bound_value>();
}

DNNOPT_BODY graph optimize(const model& source, const compile_options& options, compile_report& report) {
  return detail::optimize_bound(detail::bound_graph(source, options, {}), source, options, report);
}

DNNOPT_BODY session compile(const model& source, const compile_options& options) {
  auto result = std::make_unique<session::state>();
  compile_report& report = result->report;
  result->options = options;
  const bool on_device = options.device != "reference";
  if (on_device) {
    result->device =
        options.opened ? options.opened : std::make_shared<opened_device>(options.device, options.programs);
    decide_products(result->options, *result->device, source.main);
  }
  result->general.optimized = std::make_shared<const graph>(optimize(source, result->options, report));
  result->default_inputs = source.default_inputs;
  if (!on_device) {
    for (const auto& [name, layout] : options.texels)
      report.storage.notes.push_back("'" + name + "' keeps its rows: the reference backend has no texels");
    return session(std::move(result));
  }
  if (options.memory_limit != 0) result->device->context.memory().set_limit(options.memory_limit);
  if (auto& store = result->options.memory.store; !store) store = std::make_shared<memory::plan_store>();
  // Most graphs have no input that decides structure, and are lowered once. Where nothing may fall back to the host,
  // a node that has a kernel for numbers alone gets one for the dims of a run.
  const bool open_dims = options.require_device && detail::has_symbols(*result->general.optimized);
  const bool decides_branches =
      detail::takes_branches(options) && !detail::open_conditions(*result->general.optimized).empty();
  if (open_dims || decides_branches ||
      !structural_inputs_of(*result->general.optimized, [](node_id) { return true; }).empty()) {
    auto generally = result->place(result->general.optimized, false);
    report.specialized_inputs = structural_inputs_of_fallbacks(generally->maker->placed());
    result->specializes_dims = open_dims && !decides_branches && generally->maker->placed().host_count() > 0;
    if (!report.specialized_inputs.empty() || result->specializes_dims || decides_branches) {
      result->generally = std::make_shared<const program>(generally->maker->placed());
      result->source = std::make_shared<const model>(source);
    } else {
      result->general.executor = result->make_placed(std::move(generally), result->general.optimized);
    }
  }
  if (!result->specializes()) (void)result->general_executor();
  return session(std::move(result));
}

}  // namespace dnnopt

#endif  // DNNOPT_DETAIL_SESSION_BODIES_HPP

// Owns the bodies of <dnnopt/session.hpp>: the composition of passes, lowering, memory and executor.
#ifndef DNNOPT_DETAIL_SESSION_BODIES_HPP
#define DNNOPT_DETAIL_SESSION_BODIES_HPP

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dnnopt/backend/program/structural_inputs.hpp>
#include <dnnopt/backend/run/executor.hpp>
#include <dnnopt/backend/run/list_bodies.hpp>
#include <dnnopt/backend/run/refused_work_groups.hpp>
#include <dnnopt/backend/run/values.hpp>
#include <dnnopt/backend/storage/fit_program.hpp>
#include <dnnopt/detail/bound_graph.hpp>
#include <dnnopt/detail/placed_graph.hpp>
#include <dnnopt/passes/derive_guards.hpp>
#include <dnnopt/passes/folding/fold_constants.hpp>
#include <dnnopt/passes/rdp.hpp>
#include <dnnopt/passes/separate_body.hpp>
#include <dnnopt/reference/evaluate_node.hpp>
#include <dnnopt/session.hpp>

namespace dnnopt {

struct session::state {
  /// A program for certain values of some inputs, which are constants in it; for none: the general one.
  struct compiled {
    std::vector<std::pair<std::string, tensor>> fixed;
    std::map<std::string, dim_list> shapes;  ///< of inputs, where it is for certain dims only
    std::shared_ptr<const graph> optimized;
    std::unique_ptr<opencl_executor> executor;  ///< null on the reference backend
  };

  compiled general;                          ///< its executor is built when a run needs it
  std::shared_ptr<const program> generally;  ///< what the general one runs, where programs are specialized
  std::list<compiled> specialized;           ///< the most recently used first
  compiled* last = nullptr;                  ///< what the last run used
  std::shared_ptr<opened_device> device;     ///< null on the reference backend
  std::unique_ptr<model> source;             ///< where programs are specialized
  bool specializes_dims = false;             ///< symbolic dims leave a node without a kernel, and it must have one
  compile_options options;
  compile_report report;
  std::vector<std::string> default_inputs;  ///< inputs that became constants
  bool saved = false;

  // Shared devices hold programs of several sessions; each writes what it brought in.
  ~state() { (void)save_programs(); }

  template <class Visit>
  void each_executor(const Visit& visit) const {
    if (general.executor) visit(*general.executor);
    for (const compiled& one : specialized)
      if (one.executor) visit(*one.executor);
  }

  [[nodiscard]] optimizing_state optimizing() const {
    optimizing_state all;
    each_executor([&](const opencl_executor& one) {
      const optimizing_state its = one.optimizing();
      all.ready += its.ready;
      all.all += its.all;
      all.done = all.done && its.done;
      if (all.failure.empty()) all.failure = its.failure;
    });
    return all;
  }

  [[nodiscard]] bool specializes() const noexcept { return source != nullptr; }

  /// The general program's executor. Errors: those of compile.
  [[nodiscard]] opencl_executor& general_executor() {
    if (!general.executor) general.executor = make_executor(place(general.optimized, options.require_device));
    return *general.executor;
  }

  [[nodiscard]] opencl_executor& with_device(std::string_view name) {
    if (!device)
      throw error(errc::unsupported,
                  "'" + std::string(name) + "' cannot be bound: the reference backend has no device memory");
    return general_executor();
  }

  bool save_programs() noexcept {
    // Quick programs without the optimized ones would serve nobody.
    if (!device || report.builds == 0 || saved || !optimizing().done) return true;
    // Nobody starts twice with what others are held against, and a driver that compiles anew for a binary, for all
    // sizes of work-groups, takes many minutes for its long kernels.
    const codegen::matrix_step* const named = codegen::find_matrix_step(options.matrix_steps);
    if (named != nullptr && is_plain(*named)) return true;
    saved = true;
    try {
      // A cache that cannot be written costs the next start its builds, nothing else.
      return device->programs.file().empty() || device->programs.save().failure.empty();
    } catch (const std::exception&) {
      return false;
    }
  }

  void check_lawful(const named_tensors& inputs) const;
  [[nodiscard]] compiled& program_for(const named_tensors& inputs);
  [[nodiscard]] compiled specialize(const named_tensors& inputs);
  [[nodiscard]] std::unique_ptr<detail::placed_graph> place(const std::shared_ptr<const graph>& g,
                                                            bool require_device) {
    return std::make_unique<detail::placed_graph>(*device, g, options, options.tuned.get(), require_device);
  }
  [[nodiscard]] std::unique_ptr<opencl_executor> make_executor(std::unique_ptr<detail::placed_graph> of,
                                                               bool is_body = false);
  /// The same of what was placed without asking for the device. Errors: no_kernel where it is asked for and lacks some.
  [[nodiscard]] std::unique_ptr<opencl_executor> make_placed(std::unique_ptr<detail::placed_graph> of,
                                                             const std::shared_ptr<const graph>& g,
                                                             bool is_body = false) {
    if (options.require_device && of->maker->placed().host_count() != 0) of = place(g, true);
    return make_executor(std::move(of), is_body);
  }
  [[nodiscard]] body_program make_body(const graph& outer, node_id id, std::string_view key, const body_entry& entry,
                                       bool may_be_exact);
};

DNNOPT_BODY session::session(std::unique_ptr<state> made) noexcept : state_(std::move(made)) {}
DNNOPT_BODY session::session(session&& other) noexcept = default;
DNNOPT_BODY session& session::operator=(session&& other) noexcept = default;
DNNOPT_BODY session::~session() = default;

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
      executor != nullptr ? executor->run(ordered, observer) : reference::evaluate(g, ordered);
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

DNNOPT_BODY std::unique_ptr<opencl_executor> session::state::make_executor(std::unique_ptr<detail::placed_graph> of,
                                                                           bool is_body) {
  report.form = of->lowering.seen->form;
  report.lower_seconds += of->seconds;
  const std::uint64_t built_before = device->programs.figures().builds;
  quick_start quick;
  if (options.first_start == first_start::quick && !is_body && options.memory_limit == 0) {
    quick.allowed = [on = device.get()] { return on->quick_pays(); };
    quick.learned = [on = device](double quickly, double optimized) { on->learn({quickly, optimized}); };
  }
  std::unique_ptr<opencl_executor> made;
  // What a compiled kernel allows is known only once it is compiled: what is refused is lowered again.
  while (!made) {
    fitted_program fitted = fit_program(*of->maker, options.memory, options.memory_limit);
    report.lower_seconds += fitted.lower_seconds;
    if (!is_body) {  // a body has its own in its executor
      report.memory = fitted.memory;
      report.storage = std::move(fitted.stored.figures);
    }
    const auto placed = std::make_shared<program>(std::move(fitted.stored.placed));
    placed->is_body = is_body;
    const auto building = std::chrono::steady_clock::now();
    try {
      made = std::make_unique<opencl_executor>(
          device->context, device->programs, placed, &reference::evaluate_values, planner_of(options.memory),
          [this](const graph& outer, node_id id, std::string_view key, const body_entry& entry, bool may_be_exact) {
            return make_body(outer, id, key, entry, may_be_exact);
          },
          quick);
    } catch (const work_groups_refused& refused) {
      if (!lower_limits(of->limits, refused, *placed->g, report.smaller_work_groups)) throw;
      of->maker->follow_limits();
    }
    report.build_seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - building).count();
  }
  const std::vector<std::string>& found = of->lowering.notes;
  if (!is_body) report.storage.notes.insert(report.storage.notes.end(), found.begin(), found.end());
  if (options.memory_objects != memory_objects::automatic)
    report.memory_objects = options.memory_objects;
  else if (report.storage.packed_values > 0)
    report.memory_objects = memory_objects::packed;
  made->wait_by(options.wait);
  made->poison_freed(options.poison_freed);
  report.builds += device->programs.figures().builds - built_before;
  saved = false;
  return made;
}

/// The program of a body, by the same passes, storage, limits and kernels as the model's own. Where symbols leave some
/// of a general body without kernels (an exporter's If on a dim, of branches with different ranks, leaves ranks open),
/// dims that are numbers may do better.
DNNOPT_BODY body_program session::state::make_body(const graph& outer, node_id id, std::string_view key,
                                                   const body_entry& entry, bool may_be_exact) {
  separate_body body = make_separate_body(outer, id, key, entry);
  const auto begin = std::chrono::steady_clock::now();
  for (const pass_report& pass : detail::run_wanted_passes(body.g, options))
    add_new_warnings(report.warnings, pass.warnings);
  report.pass_seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  const auto optimized = std::make_shared<const graph>(std::move(body.g));
  auto placed = place(optimized, false);
  if (may_be_exact && detail::has_symbols(*optimized) && placed->maker->placed().host_count() != 0)
    return {nullptr, std::move(body.arguments)};
  ++report.body_programs;
  return {make_placed(std::move(placed), optimized, true), std::move(body.arguments)};
}

/// Checks the guards of the general graph and the ranges of its symbols, so that an error names symbols whatever
/// program would run.
DNNOPT_BODY void session::state::check_lawful(const named_tensors& inputs) const {
  const graph& g = *general.optimized;
  symbol_values symbols;
  for (const value_id in : g.inputs())
    if (const tensor* const given = inputs.find(g.value_at(in).name)) bind_symbols(g.value_at(in), *given, symbols);
  std::vector<bool> checked;
  check_guards(g.guards(), symbols, checked);
}

/// The program for these inputs. Where too many were made, or memory is bound, whose values the host does not see, the
/// general one.
DNNOPT_BODY session::state::compiled& session::state::program_for(const named_tensors& inputs) {
  if (device && (!specializes() || (general.executor && !general.executor->bound().rows().empty()))) {
    (void)general_executor();
    return general;
  }
  if (!device) return general;
  check_lawful(inputs);
  const auto fits = [&](const compiled& one) {
    const bool has_dims = std::ranges::all_of(one.shapes, [&](const auto& row) {
      const tensor* const given = inputs.find(row.first);
      return given != nullptr && given->dims() == row.second;
    });
    return has_dims && std::ranges::all_of(one.fixed, [&](const auto& fixed) {
             const tensor* const given = inputs.find(fixed.first);
             return given != nullptr && are_same(*given, fixed.second);
           });
  };
  const auto found = std::find_if(specialized.begin(), specialized.end(), fits);
  if (found != specialized.end()) {
    specialized.splice(specialized.begin(), specialized, found);
    return specialized.front();
  }
  const bool is_full = specialized.size() >= std::max<std::size_t>(options.specialized_programs, 1);
  if (is_full && !options.require_device) {
    (void)general_executor();
    return general;
  }
  compiled made = specialize(inputs);
  if (is_full) specialized.pop_back();
  specialized.push_front(std::move(made));
  ++report.specialized_programs;
  return specialized.front();
}

/// A program with the inputs that decide its structure as constants. What these values let come to light may name
/// more of them.
DNNOPT_BODY session::state::compiled session::state::specialize(const named_tensors& inputs) {
  compiled made;
  compile_options bound = options;
  if (specializes_dims)
    for (const value_id in : source->main.inputs())
      if (const tensor* const given = inputs.find(source->main.value_at(in).name))
        made.shapes[source->main.value_at(in).name] = given->dims();
  for (const auto& [name, dims] : made.shapes) bound.shapes[name] = dims;
  std::vector<std::string> wanted = report.specialized_inputs;
  std::unique_ptr<detail::placed_graph> placed;
  while (true) {
    for (const std::string& name : wanted) made.fixed.emplace_back(name, inputs[name]);
    compile_report own;
    made.optimized = std::make_shared<const graph>(
        detail::optimize_bound(detail::bound_graph(*source, bound, made.fixed), *source, bound, own));
    report.pass_seconds += own.pass_seconds;
    add_new_warnings(report.warnings, own.warnings);
    placed = place(made.optimized, false);
    wanted = structural_inputs_of_fallbacks(placed->maker->placed());
    if (wanted.empty()) break;
    for (const std::string& name : wanted)
      if (std::ranges::find(report.specialized_inputs, name) == report.specialized_inputs.end())
        report.specialized_inputs.push_back(name);
  }
  made.executor = make_placed(std::move(placed), made.optimized);
  return made;
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
    result->options.integer_products =
        computes_in_integers(*result->device, source.main, options.form, options.integer_dots);
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
  if (open_dims || !structural_inputs_of(*result->general.optimized, [](node_id) { return true; }).empty()) {
    auto generally = result->place(result->general.optimized, false);
    report.specialized_inputs = structural_inputs_of_fallbacks(generally->maker->placed());
    result->specializes_dims = open_dims && generally->maker->placed().host_count() > 0;
    if (!report.specialized_inputs.empty() || result->specializes_dims) {
      result->generally = std::make_shared<const program>(generally->maker->placed());
      result->source = std::make_unique<model>(source);
    } else {
      result->general.executor = result->make_placed(std::move(generally), result->general.optimized);
    }
  }
  if (!result->specializes()) (void)result->general_executor();
  return session(std::move(result));
}
}  // namespace dnnopt

#endif  // DNNOPT_DETAIL_SESSION_BODIES_HPP

// Owns how a session makes programs: of graphs, of bodies, and for values and dims of a run.
// Before the guard: that header ends with its bodies, in their order, whichever of them is included first.
#include <dnnopt/session.hpp>

#ifndef DNNOPT_DETAIL_SESSION_PROGRAMS_HPP
#define DNNOPT_DETAIL_SESSION_PROGRAMS_HPP

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dnnopt/backend/program/structural_inputs.hpp>
#include <dnnopt/backend/run/executor.hpp>
#include <dnnopt/backend/run/refused_work_groups.hpp>
#include <dnnopt/backend/run/values.hpp>
#include <dnnopt/backend/storage/fit_program.hpp>
#include <dnnopt/detail/bound_graph.hpp>
#include <dnnopt/detail/placed_graph.hpp>
#include <dnnopt/detail/session_state.hpp>
#include <dnnopt/passes/derive_guards.hpp>
#include <dnnopt/passes/inline_branches.hpp>
#include <dnnopt/passes/separate_body.hpp>
#include <dnnopt/reference/evaluate_node.hpp>

namespace dnnopt {

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
      made = std::make_unique<opencl_executor>(device->context, device->programs, placed, &reference::evaluate_values,
                                               planner_of(options.memory), maker_of_bodies(), quick);
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

/// What the dims of these inputs are for the symbols of the general graph. Errors: of dims that contradict each other
/// or their ranges.
DNNOPT_BODY symbol_values session::state::symbols_of(const named_tensors& inputs) const {
  const graph& g = *general.optimized;
  symbol_values symbols;
  for (const value_id in : g.inputs())
    if (const tensor* const given = inputs.find(g.value_at(in).name)) {
      bind_symbols(g.value_at(in), *given, symbols);
      bind_elements(g.value_at(in), *given, symbols);
    }
  return symbols;
}

/// Takes the conditions that `g` leaves open as these dims answer them; whether there was one that had no answer yet.
DNNOPT_BODY bool session::state::decide_branches(const graph& g, const symbol_values& symbols, compiled& of) {
  if (!detail::takes_branches(options)) return false;
  const std::size_t before = of.decided.size();
  for (const index_expr& condition : detail::open_conditions(g)) {
    const std::optional<std::int64_t> answer = condition.try_evaluate(symbols);
    const bool is_known = std::ranges::any_of(of.decided, [&](const guard& one) { return one.left == condition; });
    if (!answer || is_known) continue;  // without an answer it is of what data decide
    of.decided.push_back({guard_relation::equal, condition, *answer, "the condition of a branch", g.name});
    std::string text = to_string(condition);
    auto& listed = report.decided_conditions;
    if (std::ranges::find(listed, text) == listed.end()) listed.push_back(std::move(text));
  }
  return of.decided.size() != before;
}

/// The program for these inputs. Where too many were made, or memory is bound, whose values the host does not see, the
/// general one. Where memory does not suffice for one more, those for other values make room.
DNNOPT_BODY session::state::compiled& session::state::program_for(const named_tensors& inputs) {
  if (device && (!specializes() || (general.executor && !general.executor->bound().rows().empty()))) {
    (void)general_executor();
    return general;
  }
  if (!device) return general;
  // By the general graph, so that an error names symbols whatever program would run.
  const symbol_values symbols = symbols_of(inputs);
  std::vector<bool> checked;
  check_guards(general.optimized->guards(), symbols, checked);
  const auto fits = [&](const compiled& one) {
    const bool has_dims = std::ranges::all_of(one.shapes, [&](const auto& row) {
      const tensor* const given = inputs.find(row.first);
      return given != nullptr && given->dims() == row.second;
    });
    const bool has_values = std::ranges::all_of(one.fixed, [&](const auto& fixed) {
      const tensor* const given = inputs.find(fixed.first);
      return given != nullptr && are_same(*given, fixed.second);
    });
    return has_dims && has_values && std::ranges::all_of(one.decided, [&](const guard& answered) {
             return answered.left.try_evaluate(symbols) == answered.right.constant();
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
  compiled made;
  try {
    made = specialize(inputs, symbols);
  } catch (const error& refused) {
    if (!lacks_memory(refused) || specialized.empty()) throw;
    last = nullptr;
    specialized.clear();
    made = specialize(inputs, symbols);
  }
  if (is_full && !specialized.empty()) specialized.pop_back();
  specialized.push_front(std::move(made));
  ++report.specialized_programs;
  return specialized.front();
}

/// A program with the inputs that decide its structure as constants, and with the branches that its dims take. What
/// these let come to light may name more of them.
DNNOPT_BODY session::state::compiled session::state::specialize(const named_tensors& inputs,
                                                                const symbol_values& symbols) {
  compiled made;
  compile_options bound = options;
  const auto bind_dims_of_run = [&] {
    made.decided.clear();  // numbers decide them
    for (const value_id in : source->main.inputs())
      if (const tensor* const given = inputs.find(source->main.value_at(in).name))
        made.shapes[source->main.value_at(in).name] = given->dims();
    for (const auto& [name, dims] : made.shapes) bound.shapes[name] = dims;
  };
  bool has_numbers = specializes_dims;
  if (has_numbers) bind_dims_of_run();
  const auto fix = [&](const std::string& name) { made.fixed.emplace_back(name, inputs[name]); };
  std::ranges::for_each(report.specialized_inputs, fix);
  std::unique_ptr<detail::placed_graph> placed;
  while (!placed) {
    compile_report own;
    made.optimized = std::make_shared<const graph>(
        detail::optimize_bound(detail::bound_graph(*source, bound, made.fixed), *source, bound, own, made.decided));
    report.pass_seconds += own.pass_seconds;
    add_new_warnings(report.warnings, own.warnings);
    if (decide_branches(*made.optimized, symbols, made)) continue;
    placed = place(made.optimized, false);
    const std::vector<std::string> wanted = structural_inputs_of_fallbacks(placed->maker->placed());
    std::ranges::for_each(wanted, fix);
    for (const std::string& name : wanted)
      if (std::ranges::find(report.specialized_inputs, name) == report.specialized_inputs.end())
        report.specialized_inputs.push_back(name);
    const bool lacks_numbers = !has_numbers && options.require_device && wanted.empty() &&
                               placed->maker->placed().host_count() > 0 && detail::has_symbols(*made.optimized);
    if (lacks_numbers) {
      has_numbers = specializes_dims = true;
      bind_dims_of_run();
    }
    if (lacks_numbers || !wanted.empty()) placed.reset();
  }
  made.executor = make_placed(std::move(placed), made.optimized);
  return made;
}

}  // namespace dnnopt

#endif  // DNNOPT_DETAIL_SESSION_PROGRAMS_HPP

// Owns what a session holds: its device, its programs, and what was told of them.
// Before the guard: that header ends with its bodies, in their order, whichever of them is included first.
#include <dnnopt/session.hpp>

#ifndef DNNOPT_DETAIL_SESSION_STATE_HPP
#define DNNOPT_DETAIL_SESSION_STATE_HPP

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

#include <dnnopt/backend/program/arrange_memory.hpp>
#include <dnnopt/backend/run/executor.hpp>
#include <dnnopt/backend/run/values.hpp>
#include <dnnopt/detail/bound_graph.hpp>
#include <dnnopt/detail/placed_graph.hpp>
#include <dnnopt/error.hpp>
#include <dnnopt/guard.hpp>

namespace dnnopt {

struct session::state {
  /// A program for certain values of some inputs, which are constants in it, and for certain answers to the conditions
  /// of branches that depend on dims alone; for none of both: the general one.
  struct compiled {
    std::vector<std::pair<std::string, tensor>> fixed;
    std::vector<guard> decided;              ///< the conditions with their answers
    std::map<std::string, dim_list> shapes;  ///< of inputs, where it is for certain dims only
    std::shared_ptr<const graph> optimized;
    std::unique_ptr<opencl_executor> executor;  ///< null on the reference backend
  };

  std::shared_ptr<opened_device> device;     ///< null on the reference backend; executors end before it
  compiled general;                          ///< its executor is built when a run needs it
  std::shared_ptr<const program> generally;  ///< what the general one runs, where programs are specialized
  std::list<compiled> specialized;           ///< the most recently used first
  compiled* last = nullptr;                  ///< what the last run used
  std::shared_ptr<const model> source;       ///< where programs are specialized
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

  /// What session::clone makes a session of. Errors: as opencl_executor::beside.
  [[nodiscard]] std::unique_ptr<state> clone() {
    auto made = std::make_unique<state>();
    const auto copied = [&](const compiled& one) {
      compiled copy{one.fixed, one.decided, one.shapes, one.optimized, nullptr};
      if (one.executor) copy.executor = one.executor->beside(planner_of(options.memory), made->maker_of_bodies());
      return copy;
    };
    made->device = device;
    made->source = source;
    made->specializes_dims = specializes_dims;
    made->options = options;
    made->report = report;
    made->report.builds = 0;
    made->default_inputs = default_inputs;
    made->generally = generally;
    made->general = copied(general);
    for (const compiled& one : specialized) made->specialized.push_back(copied(one));
    return made;
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

  [[nodiscard]] symbol_values symbols_of(const named_tensors& inputs) const;
  [[nodiscard]] bool decide_branches(const graph& g, const symbol_values& symbols, compiled& of);
  [[nodiscard]] compiled& program_for(const named_tensors& inputs);
  [[nodiscard]] static bool lacks_memory(const error& refused) noexcept {
    return refused.code() == errc::memory_limit || refused.code() == errc::out_of_device_memory;
  }
  /// One inference by the program that is the last one. Each program has constants and an arena of its own: where
  /// memory does not suffice, programs for other values make room, once.
  [[nodiscard]] std::vector<tensor> run_last(const std::vector<tensor>& ordered, run_observer* observer) {
    try {
      return last->executor->run(ordered, observer);
    } catch (const error& refused) {
      if (!lacks_memory(refused) || specialized.size() < 2 || last != &specialized.front()) throw;
      specialized.resize(1);
      return last->executor->run(ordered, observer);
    }
  }
  [[nodiscard]] compiled specialize(const named_tensors& inputs, const symbol_values& symbols);
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
  /// Makes bodies of the executors of this session, and belongs to it.
  [[nodiscard]] body_maker maker_of_bodies() {
    return [this](const graph& outer, node_id id, std::string_view key, const body_entry& entry, bool may_be_exact) {
      return make_body(outer, id, key, entry, may_be_exact);
    };
  }
  [[nodiscard]] body_program make_body(const graph& outer, node_id id, std::string_view key, const body_entry& entry,
                                       bool may_be_exact);
};

}  // namespace dnnopt

#endif  // DNNOPT_DETAIL_SESSION_STATE_HPP

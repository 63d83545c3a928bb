// Owns the order of one inference: inputs, steps, outputs, and what is checked on the way.
#ifndef DNNOPT_BACKEND_RUN_EXECUTOR_INFERENCE_HPP
#define DNNOPT_BACKEND_RUN_EXECUTOR_INFERENCE_HPP

#include <dnnopt/backend/run/executor.hpp>

namespace dnnopt {

inline std::vector<tensor> opencl_executor::run_once(std::span<const tensor> inputs, opencl::command_queue& queue,
                                                     run_observer* observer) {
  const graph& g = *program_->g;
  const auto begin = std::chrono::steady_clock::now();
  parts_ = {};
  take_optimized_kernels();
  const kernel_optimizer::turn turn(kernels_.quick ? optimizer_.get() : nullptr);
  symbol_values symbols;
  {
    const timed_part timed(parts_.evaluate);
    symbols = bind_inputs(g, inputs);
    read_bound_elements(queue, symbols);
    bound_.check(symbols);
  }
  instance& made = instance_for(symbols);
  {
    const timed_part timed(parts_.allocate);
    enter(made, queue);
  }
  const opencl::command_counts before = queue.counts();
  pending_memory pending;
  run_state state = begin_run(made, queue, symbols, observer, pending);
  std::vector<tensor> outputs;
  // Behind all that commands under way read and write, so that these end before it, whatever is thrown.
  const finish_on_error guard(queue);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (bound_.is_input_bound(i)) continue;
    take_host_input(state, g.inputs()[i], inputs[i]);
  }
  run_steps(state);
  for (std::size_t i = 0; i < g.outputs().size(); ++i) {
    if (bound_.is_output_bound(i)) {
      deliver(state, i);
      outputs.emplace_back();
    } else {
      outputs.push_back(fetch(state, g.outputs()[i], false));
    }
  }
  wait(state);
  bound_.ran(symbols);
  last_symbols_ = symbols;
  const opencl::command_counts counted = queue.counts() - before;
  figures_ = {static_cast<std::size_t>(counted.device_commands()),
              state.host_ops,
              static_cast<std::size_t>(counted.events),
              static_cast<std::size_t>(counted.uploads),
              static_cast<std::size_t>(counted.downloads),
              parts_,
              kernels_.quick};
  const double all = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  run_parts& parts = figures_.parts;
  served(inputs, all);
  parts.infer = all - parts.evaluate - parts.plan - parts.allocate - parts.bind;
  return outputs;
}

inline opencl_executor::run_state opencl_executor::begin_run(instance& made, opencl::command_queue& queue,
                                                             symbol_values& symbols, run_observer* observer,
                                                             pending_memory& pending) {
  run_state state{made, queue, symbols, observer, pending};
  state.checked_guards = made.checked_guards;
  state.unchecked_guards =
      std::find(state.checked_guards.begin(), state.checked_guards.end(), false) != state.checked_guards.end();
  return state;
}

inline void opencl_executor::run_steps(run_state& state) {
  for (std::size_t s = 0; s < program_->steps.size(); ++s) {
    const placed_node& step = program_->steps[s];
    state.step = s;
    if (step.where == placement::device)
      launch(state, s);
    else if (step.where == placement::bodies)
      run_bodies(state, s);
    else if (is_on_host(step.where))
      evaluate_on_host(state, s);
    release_after(state, s);
    if (poison_) poison_after(state, s);
  }
}

inline void opencl_executor::take_host_input(run_state& state, value_id in, const tensor& content) {
  state.host[in] = content;
  if (device_values_[program_->roots[in]]) upload(state, in, content);
}

inline void opencl_executor::wait(run_state& state) {
  const std::int64_t begin = state.observer == nullptr ? 0 : state.observer->now();
  state.queue.finish(wait_);
  state.pending.reached();
  if (state.observer != nullptr) state.observer->waited(begin);
}

inline void opencl_executor::check_new_guards(run_state& state) const {
  if (!state.unchecked_guards) return;
  check_guards(program_->g->guards(), state.symbols, state.checked_guards);
  state.unchecked_guards =
      std::find(state.checked_guards.begin(), state.checked_guards.end(), false) != state.checked_guards.end();
}

}  // namespace dnnopt

#endif  // DNNOPT_BACKEND_RUN_EXECUTOR_INFERENCE_HPP

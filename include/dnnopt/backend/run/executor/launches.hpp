// Owns how a step is launched: its kernel objects, their arguments, and what the host must bring before.
#ifndef DNNOPT_BACKEND_RUN_EXECUTOR_LAUNCHES_HPP
#define DNNOPT_BACKEND_RUN_EXECUTOR_LAUNCHES_HPP

#include <dnnopt/backend/run/executor.hpp>

namespace dnnopt {

inline void opencl_executor::launch(run_state& state, std::size_t s) {
  const placed_node& step = program_->steps[s];
  if (!state.waiting.empty()) upload_waiting(state, step);
  for (std::size_t k = 0; k < step.lowered.kernels.size(); ++k) {
    prepared_kernel& prepared = state.own.kernels[s][k];
    if (!prepared.ready) prepare(state, s, k);
    if (prepared.idle) {
      if (state.own.memory.is_late(s)) prepared.ready = false;
      continue;
    }
    if (state.observer != nullptr) state.observer->before(s, k, state.queue);
    for (std::size_t times = state.observer == nullptr ? 1 : state.observer->launches(s, k); times != 0; --times) {
      opencl::event_sink* const sink =
          state.observer == nullptr ? nullptr : state.observer->kernel(s, k, prepared.flops, prepared.bytes);
      state.queue.launch(prepared.kernel(), prepared.size, program_->g->node_at(step.id).name, sink, s);
    }
    if (state.own.memory.is_late(s)) prepared.ready = false;
    if (step.lowered.size && step.lowered.size->after == k) learn_size(state, s);
  }
}

inline void opencl_executor::learn_size(run_state& state, std::size_t s) {
  const codegen::computed_size& size = *program_->steps[s].lowered.size;
  std::array<std::int64_t, 1> count{};
  const bool polled = wait_ != wait_mode::blocking;
  state.queue.download(state.own.scratch[s].at(size.scratch), std::as_writable_bytes(std::span(count)), 0, !polled,
                       sink_of(state, run_observer::direction::download));
  if (polled) state.queue.finish(wait_);
  for (const auto& [v, axis] : size.dims) {
    const value& sized = program_->g->value_at(v);
    const index_expr& dim = (*sized.facts.dims).at(axis);
    if (const auto symbol = dim.as_symbol(); symbol && !state.symbols.find(*symbol))
      state.symbols.bind(*symbol, count[0]);
    else if (dim.evaluate(state.symbols) != count[0])
      throw error(errc::shape_mismatch, "dim " + std::to_string(axis) + " of '" + sized.name + "' is " +
                                            std::to_string(count[0]) + ", not " + to_string(dim));
  }
  check_new_guards(state);
}

inline void opencl_executor::upload_waiting(run_state& state, const placed_node& step) {
  for (const codegen::kernel_plan& plan : step.lowered.kernels)
    for (const codegen::pointer_argument& argument : plan.pointers) {
      if (argument.held == no_value) continue;
      const auto found = state.waiting.find(program_->roots[argument.held]);
      if (found == state.waiting.end()) continue;
      upload(state, found->second, state.host.at(found->second));
      state.waiting.erase(found);
    }
}

inline argument_memory opencl_executor::memory_of(run_state& state, std::size_t s,
                                                  const codegen::pointer_argument& pointer) {
  if (pointer.held == no_value)
    return program_->steps[s].lowered.scratch.at(pointer.scratch).persistent
               ? weights_.packed(s, pointer.scratch)
               : argument_memory(state.own.scratch[s].at(pointer.scratch));
  if (pointer.object != memory_object::buffer) {
    const auto shared = image_memory_.object_of.find(pointer.held);
    return shared == image_memory_.object_of.end() ? image_of(pointer.held) : images_[shared->second];
  }
  materialize(state, pointer.held);
  return buffer_of(state, pointer.held);
}

inline void opencl_executor::make_object_for(prepared_kernel& prepared, const built_kernel& from,
                                             std::span<const argument_memory> memory) {
  bool fresh = prepared.kernel() == nullptr;
  for (std::size_t i = 0; i < prepared.addresses.size(); ++i)
    fresh = fresh || (prepared.addresses[i] && !memory[i].is_address());
  if (fresh) prepared.kernel = from.make();
  if (fresh || prepared.addresses.empty()) prepared.addresses.assign(memory.size(), false);
  for (std::size_t i = 0; i < memory.size(); ++i)
    prepared.addresses[i] = prepared.addresses[i] || memory[i].is_address();
}

inline void opencl_executor::prepare(run_state& state, std::size_t s, std::size_t k) {
  const timed_part timed(parts_.bind);
  const placed_node& step = program_->steps[s];
  const codegen::kernel_plan& plan = step.lowered.kernels[k];
  prepared_kernel& prepared = state.own.kernels[s][k];
  prepared.idle = !program_->launches(step, plan, state.symbols);
  prepared.ready = true;
  if (prepared.idle) return;
  prepared.ready = false;
  prepared.bytes = 0;
  std::vector<argument_memory> memory;
  for (const codegen::pointer_argument& pointer : plan.pointers) {
    memory.push_back(memory_of(state, s, pointer));
    prepared.bytes += pointer.held == no_value ? memory.back().bytes() : bytes_of(pointer.held, state.symbols);
  }
  make_object_for(prepared, kernels_.launched[s][k], memory);
  auto next = memory.begin();
  set_arguments(prepared.kernel, plan, program_->g->node_at(step.id).name, state.symbols,
                [&](const codegen::pointer_argument&) { return *next++; });
  const symbol_values own = plan.bind(state.symbols);
  prepared.flops = static_cast<std::uint64_t>(std::max<std::int64_t>(plan.flops.evaluate(own), 0));
  prepared.size = work_size(plan, own, prepared.kernel(), where_->where().handle());
  prepared.ready = true;
}

inline void opencl_executor::materialize(run_state& state, value_id v) {
  const graph& g = *program_->g;
  const value_id root = program_->roots[v];
  const value& held = g.value_at(root);
  if (held.facts.is_constant() || !held.facts.elements || state.host.contains(root)) return;
  if (state.own.materialized[root] && !state.own.memory.is_late(state.step)) return;
  tensor content = evaluate_elements(held, state.symbols);
  upload(state, root, content);
  state.own.materialized[root] = true;
  state.pending.tensors.push_back(std::move(content));
}

}  // namespace dnnopt

#endif  // DNNOPT_BACKEND_RUN_EXECUTOR_LAUNCHES_HPP

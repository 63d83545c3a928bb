// Owns how a step is launched: its kernel objects, their arguments, and what the host must bring before.
#ifndef DNNOPT_BACKEND_RUN_EXECUTOR_LAUNCHES_HPP
#define DNNOPT_BACKEND_RUN_EXECUTOR_LAUNCHES_HPP

#include <algorithm>
#include <cstdint>
#include <optional>

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
  if (pointer.held == no_value) {
    const codegen::scratch_buffer& scratch = program_->steps[s].lowered.scratch.at(pointer.scratch);
    if (scratch.persistent) return weights_->packed(s, pointer.scratch);
    opencl::device_buffer& buffer = state.own.scratch[s].at(pointer.scratch);
    // What a failed run of a smaller size left behind is too small.
    const auto bytes = static_cast<std::size_t>(std::max<std::int64_t>(scratch.bytes.evaluate(state.symbols), 1));
    if (buffer.empty() || buffer.bytes() < bytes)
      buffer = late_buffer(state, bytes, program_->g->node_at(program_->steps[s].id).name);
    return argument_memory(buffer);
  }
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

inline std::uint64_t opencl_executor::bytes_read(const run_state& state, const placed_node& step, value_id held) const {
  const graph& g = *program_->g;
  const std::uint64_t all = bytes_of(held, state.symbols);
  const auto elements_of = [&](value_id v) -> std::optional<std::uint64_t> {
    if (v == no_value || !g.facts(v).dims) return std::nullopt;
    std::uint64_t elements = 1;
    for (const index_expr& dim : *g.facts(v).dims) {
      const auto size = dim.try_evaluate(state.symbols);
      if (!size) return std::nullopt;
      elements *= static_cast<std::uint64_t>(std::max<std::int64_t>(*size, 0));
    }
    return elements;
  };
  const auto whole = elements_of(held);
  if (!whole || *whole == 0) return all;
  std::uint64_t read = 0;
  for (const node_id id : step.members) {
    const node& n = g.node_at(id);
    for (std::size_t i = 0; i < n.inputs.size(); ++i) {
      if (n.inputs[i] == no_value || program_->roots[n.inputs[i]] != program_->roots[held]) continue;
      // Of a table a Gather reads as many elements as it gives, and so does a view of what it shows.
      const bool picks = n.op->kind == computation_kind::indexed_read || n.op->kind == computation_kind::view;
      const auto given = picks && i == 0 && n.outputs.size() == 1 ? elements_of(n.outputs[0]) : std::nullopt;
      if (!given) return all;
      read += *given;
    }
  }
  return read == 0 || read >= *whole ? all : all * read / *whole;
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
    prepared.bytes += pointer.held == no_value ? memory.back().bytes()
                      : pointer.written        ? bytes_of(pointer.held, state.symbols)
                                               : bytes_read(state, step, pointer.held);
  }
  make_object_for(prepared, kernels_.launched[s][k], memory);
  auto next = memory.begin();
  set_arguments(prepared.kernel, plan, program_->g->node_at(step.id).name, kernels_.launched[s][k].numbers,
                state.symbols, [&](const codegen::pointer_argument&) { return *next++; });
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

// Owns how values come to the device and back: uploads, downloads, bound memory, and operators on the host.
#ifndef DNNOPT_BACKEND_RUN_EXECUTOR_VALUES_HPP
#define DNNOPT_BACKEND_RUN_EXECUTOR_VALUES_HPP

#include <dnnopt/backend/run/executor.hpp>

namespace dnnopt {

inline symbol_values opencl_executor::bind_inputs(const graph& g, std::span<const tensor> inputs) const {
  if (inputs.size() != g.inputs().size())
    throw error(errc::missing_input,
                std::to_string(inputs.size()) + " inputs given, " + std::to_string(g.inputs().size()) + " needed");
  symbol_values symbols;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const value& v = g.value_at(g.inputs()[i]);
    if (!bound_.is_input_bound(i)) {
      if (inputs[i].empty()) throw error(errc::missing_input, "input '" + v.name + "' is neither given nor bound");
      bind_symbols(v, inputs[i], symbols);
      // Where its branches are taken already, nothing depends on the number.
      if (!v.uses.empty()) bind_elements(v, inputs[i], symbols);
      continue;
    }
    if (!inputs[i].empty())
      throw error(errc::invalid_argument, "input '" + v.name + "' is bound to device memory, and given as well");
    if (const dim_list* const dims = bound_.stated_dims(i)) bind_symbols(v, *dims, symbols);
  }
  return symbols;
}

inline void opencl_executor::read_bound_elements(opencl::command_queue& queue, symbol_values& symbols) const {
  const graph& g = *program_->g;
  for (std::size_t i = 0; i < g.inputs().size(); ++i) {
    const value& v = g.value_at(g.inputs()[i]);
    if (!bound_.is_input_bound(i) || !v.facts.elements || v.uses.empty()) continue;
    tensor held(v.facts.type, evaluate(*v.facts.dims, symbols));
    queue.download(bound_.input(i), held.mutable_bytes());
    bind_elements(v, held, symbols);
  }
}

inline const opencl::device_image& opencl_executor::image_of(value_id v) {
  if (const opencl::device_image* const bound = bound_.image_of_root(v)) return *bound;
  opencl::device_image& own = callers_images_[v];
  const value& held = program_->g->value_at(v);
  if (own.empty())
    own = where_->memory().allocate_image(image_shape_of(texel_storage_of(held.facts), symbol_values()), held.name);
  return own;
}

inline texel_memory opencl_executor::texels_of(run_state& state, value_id v) {
  if (lies_in_image(program_->g->facts(v))) return {nullptr, &image_of(v), image_of(v).bytes()};
  return {&buffer_of(state, v), nullptr, bytes_of(v, state.symbols)};
}

inline void opencl_executor::upload(run_state& state, value_id v, const tensor& content) {
  if (const auto& layout = program_->g->facts(v).texels) {
    state.pending.texels.push_back(upload_texels(state.queue, texels_of(state, v), content, layout->packed,
                                                 sink_of(state, run_observer::direction::upload)));
    return;
  }
  // What the host computed may have another size at every run.
  const value_id root = program_->roots[v];
  if (opencl::device_buffer* const shared = caller_buffer(state, root, content.byte_size())) {
    state.queue.upload(*shared, content.bytes(), 0, false, sink_of(state, run_observer::direction::upload));
    return;
  }
  opencl::device_buffer& buffer = state.own.buffers[state.own.memory.homes[root]];
  if (!buffer.empty() && buffer.bytes() < content.byte_size())
    state.pending.buffers.push_back(std::exchange(buffer, opencl::device_buffer()));
  if (buffer.empty())
    buffer = late_buffer(state, std::max<std::size_t>(content.byte_size(), 1), program_->g->value_at(root).name);
  state.queue.upload(buffer, content.bytes(), 0, false, sink_of(state, run_observer::direction::upload));
}

inline std::optional<tensor> opencl_executor::on_host(const run_state& state, value_id v) const {
  const graph& g = *program_->g;
  const value_facts& facts = g.facts(v);
  if (facts.is_constant()) return facts.constant;
  if (const auto held = state.host.find(v); held != state.host.end()) return held->second;
  if (facts.elements) return evaluate_elements(g.value_at(v), state.symbols);
  const value_id root = program_->roots[v];
  if (g.facts(root).is_constant()) return g.facts(root).constant.reshaped(evaluate(*facts.dims, state.symbols));
  if (const auto held = state.host.find(root); held != state.host.end())
    return held->second.reshaped(evaluate(*facts.dims, state.symbols));
  return std::nullopt;
}

inline tensor opencl_executor::fetch(run_state& state, value_id v, bool blocking) {
  if (std::optional<tensor> held = on_host(state, v)) return std::move(*held);
  if (state.containers.contains(v))
    throw error(errc::unsupported, "'" + program_->g->value_at(v).name + "' is no tensor");
  const value_facts& facts = program_->g->facts(v);
  const handed_value* const given = handed_at(state, v);
  tensor out =
      given != nullptr ? tensor(given->type, given->dims) : tensor(facts.type, evaluate(*facts.dims, state.symbols));
  if (out.size() == 0) return out;
  if (facts.texels) {
    download_texels(state.queue, texels_of(state, v), facts.texels->packed, out, wait_,
                    sink_of(state, run_observer::direction::download));
    return out;
  }
  const bool polled = blocking && wait_ != wait_mode::blocking;
  state.queue.download(buffer_of(state, v), out.mutable_bytes(), 0, blocking && !polled,
                       sink_of(state, run_observer::direction::download));
  if (polled) state.queue.finish(wait_);
  // The host computes in fp32; the caller's outputs are never narrowed.
  return facts.narrowed && blocking ? widened(out) : out;
}

inline void opencl_executor::deliver(run_state& state, std::size_t position) {
  const value_id out = program_->g->outputs()[position];
  const value_id root = program_->roots[out];
  bound_.check_late(root, state.symbols);
  if (bound_.has_in_place(position)) return;
  const opencl::device_buffer& memory = bound_.output(position);
  if (std::optional<tensor> held = on_host(state, out)) {
    state.queue.upload(memory, held->bytes(), 0, false, sink_of(state, run_observer::direction::upload));
    state.pending.tensors.push_back(std::move(*held));
    return;
  }
  const auto bytes = static_cast<std::size_t>(detail::bytes_of(program_->g->facts(out))->evaluate(state.symbols));
  if (bytes == 0) return;
  state.queue.copy(buffer_of(state, out), 0, memory, 0, bytes, sink_of(state, run_observer::direction::within));
}

inline void opencl_executor::evaluate_on_host(run_state& state, std::size_t s) {
  const graph& g = *program_->g;
  const node& n = g.node_at(program_->steps[s].id);
  std::vector<reference::host_value> inputs;
  for (const value_id in : n.inputs) {
    if (in == no_value) {
      inputs.emplace_back();
      continue;
    }
    if (const auto held = state.containers.find(in); held != state.containers.end()) {
      inputs.push_back(held->second);
      continue;
    }
    inputs.emplace_back(fetch(state, in, true));
    state.host[in] = inputs.back().content;
  }
  const std::int64_t begin = state.observer == nullptr ? 0 : state.observer->now();
  std::vector<reference::host_value> outputs = evaluate_(g, program_->steps[s].id, inputs);
  if (state.observer != nullptr) state.observer->host_operator(s, begin);
  if (program_->steps[s].where == placement::host) ++state.host_ops;
  for (std::size_t i = 0; i < n.outputs.size(); ++i) {
    const value_id out = n.outputs[i];
    if (out == no_value) continue;
    if (outputs.at(i).kind != value_kind::tensor) {
      state.containers[out] = std::move(outputs[i]);
      continue;
    }
    bind_symbols(g.value_at(out), outputs[i].content, state.symbols);
    if (device_values_[program_->roots[out]]) state.waiting[program_->roots[out]] = out;
    state.host[out] = std::move(outputs[i].content);
  }
  check_new_guards(state);
}

}  // namespace dnnopt

#endif  // DNNOPT_BACKEND_RUN_EXECUTOR_VALUES_HPP

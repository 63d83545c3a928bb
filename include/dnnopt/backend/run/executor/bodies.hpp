// Owns what an executor and the bodies of its control flow hand to each other.
#ifndef DNNOPT_BACKEND_RUN_EXECUTOR_BODIES_HPP
#define DNNOPT_BACKEND_RUN_EXECUTOR_BODIES_HPP

#include <dnnopt/backend/run/executor.hpp>

namespace dnnopt {

inline std::vector<handed_value> opencl_executor::run_body(std::span<const handed_value> inputs,
                                                           const symbol_values& outer, opencl::command_queue& queue,
                                                           pending_memory& pending, run_observer* observer) {
  const graph& g = *program_->g;
  parts_ = {};
  symbol_values symbols;
  for (const std::uint32_t symbol : input_symbols_)
    if (const auto known = outer.find(symbol)) symbols.bind(symbol, *known);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const value& v = g.value_at(g.inputs()[i]);
    if (inputs[i].absent()) throw error(errc::missing_input, "'" + v.name + "' of a body is not given");
    if (v.facts.type != dtype::undefined && inputs[i].type != v.facts.type)
      throw error(errc::type_mismatch, "'" + v.name + "' is " + std::string(name_of(inputs[i].type)) + ", not " +
                                           std::string(name_of(v.facts.type)));
    bind_symbols(v, inputs[i].dims, symbols);
    // The number of a turn, where sizes depend on it.
    if (v.facts.elements && v.facts.elements->size() == 1 && !inputs[i].host.empty())
      if (const auto symbol = v.facts.elements->front().as_symbol(); symbol && !symbols.find(*symbol))
        symbols.bind(*symbol, integers_of(inputs[i].host).at(0));
  }
  instance& made = instance_for(symbols);
  enter(made, queue);
  run_state state = begin_run(made, queue, symbols, observer, pending);
  const finish_on_error guard(queue);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const value_id in = g.inputs()[i];
    if (inputs[i].memory)
      state.handed[program_->roots[in]] = inputs[i];
    else
      take_host_input(state, in, inputs[i].host);
  }
  run_steps(state);
  std::vector<handed_value> outputs;
  std::unordered_map<value_id, std::shared_ptr<opencl::device_buffer>> taken;
  for (const value_id out : g.outputs()) outputs.push_back(take_output(state, out, taken));
  // Uploads under way read these.
  for (auto& [v, content] : state.host) pending.tensors.push_back(std::move(content));
  host_ops_in_bodies_ = state.host_ops;
  served({}, 0);
  return outputs;
}

/// What control flow asks for while step `s` runs.
class opencl_executor::step_bodies final : public body_caller {
 public:
  step_bodies(opencl_executor& owner, run_state& state, std::size_t s)
      : owner_(owner), state_(state), id_(owner.program_->steps[s].id) {}
  std::vector<handed_value> enter(std::string_view key, std::span<const handed_value> arguments) override {
    return owner_.enter_body(state_, id_, key, arguments);
  }
  std::int64_t number(const handed_value& value) override {
    const tensor read = owner_.read_back(state_, value);
    if (read.size() != 1)
      throw error(errc::shape_mismatch, "a condition or count has " + std::to_string(read.size()) + " elements");
    return integers_of(read)[0];
  }
  turn_stack stack(std::int64_t axis, bool backwards, std::optional<std::size_t> turns) override {
    return {state_.queue,
            state_.pending,
            [this](std::size_t bytes) { return owner_.late_buffer(state_, bytes, "what turns give"); },
            axis,
            backwards,
            turns};
  }
  handed_value empty_stack(std::size_t o, std::int64_t axis) override {
    return owner_.empty_stack(state_, id_, o, axis);
  }

 private:
  opencl_executor& owner_;
  run_state& state_;
  node_id id_;
};

inline bool opencl_executor::takes_given(run_state& state, const node& n) {
  bool all = false;
  for (const value_id out : n.outputs) {
    if (out == no_value) continue;
    const auto given = given_by_bodies_.find(out);
    if (given == given_by_bodies_.end()) return false;
    take_over(state, out, handed_value(tensor(given->second.first, given->second.second)));
    all = true;
  }
  return all;
}

inline void opencl_executor::run_bodies(run_state& state, std::size_t s) {
  const graph& g = *program_->g;
  const node& n = g.node_at(program_->steps[s].id);
  if (!bodies_.any() && takes_given(state, n)) return;
  const bool contained = std::any_of(n.inputs.begin(), n.inputs.end(),
                                     [&](value_id v) { return v != no_value && state.containers.contains(v); });
  if (!bodies_.any() || contained) {
    evaluate_on_host(state, s);
    ++state.host_ops;
    return;
  }
  std::vector<handed_value> results;
  try {
    std::vector<handed_value> inputs;
    for (const value_id in : n.inputs) inputs.push_back(in == no_value ? handed_value() : hand(state, in));
    step_bodies caller(*this, state, s);
    results = run_control_flow(n, inputs, caller);
  } catch (const error& e) {
    const std::string_view text = e.what();
    const std::size_t after = text.find("] ");
    throw error(e.code(), detail::describe(n) + ": " +
                              std::string(after == std::string_view::npos ? text : text.substr(after + 2)));
  }
  for (std::size_t o = 0; o < n.outputs.size(); ++o) {
    if (n.outputs[o] == no_value) continue;
    if (!served_ && kernels_.quick) given_by_bodies_[n.outputs[o]] = {results.at(o).type, results[o].dims};
    take_over(state, n.outputs[o], std::move(results[o]));
  }
  check_new_guards(state);
}

inline handed_value opencl_executor::hand(run_state& state, value_id v) {
  if (std::optional<tensor> held = on_host(state, v)) return handed_value(std::move(*held));
  if (const handed_value* const given = handed_at(state, v)) return *given;
  const value_facts& facts = program_->g->facts(v);
  if (facts.texels) return handed_value(fetch(state, v, true));
  dim_list dims = evaluate(*facts.dims, state.symbols);
  if (element_count(dims) == 0) return handed_value(tensor(facts.type, std::move(dims)));
  if (const auto root = state.handed.find(program_->roots[v]); root != state.handed.end()) {
    handed_value reshaped = root->second;
    reshaped.type = facts.type;
    reshaped.dims = std::move(dims);
    return reshaped;
  }
  handed_value given(facts.type, std::move(dims), lent(buffer_of(state, v)));
  const value_id root = program_->roots[v];
  if (weights_->find(root) == nullptr && !program_->g->is_input(root)) given.lender = this;
  return given;
}

inline void opencl_executor::keep_handed_through(run_state& state, handed_value& result) {
  if (!result.memory || result.lender != this) return;
  const opencl::device_buffer& from = *result.memory;
  opencl::device_buffer to =
      from.address() == nullptr
          ? late_buffer(state, result.bytes(), "a value that a body hands through")
          : where_->memory().allocate(result.bytes(), "a value that a body hands through",
                                      opencl::memory_access::read_write, opencl::memory_placement::addressed);
  state.queue.copy(from, 0, to, 0, result.bytes(), sink_of(state, run_observer::direction::within));
  result.memory = handed_over(std::move(to), state.pending);
  result.lender = nullptr;
}

inline void opencl_executor::take_over(run_state& state, value_id out, handed_value result) {
  const value& v = program_->g->value_at(out);
  if (v.facts.type != dtype::undefined && result.type != v.facts.type)
    throw error(errc::type_mismatch, "'" + v.name + "' is " + std::string(name_of(result.type)) + ", not " +
                                         std::string(name_of(v.facts.type)));
  bind_symbols(v, result.dims, state.symbols);
  const value_id root = program_->roots[out];
  keep_handed_through(state, result);
  if (result.memory) {
    state.handed[root] = std::move(result);
    return;
  }
  if (device_values_[root]) state.waiting[root] = out;
  state.host[out] = std::move(result.host);
}

inline handed_value opencl_executor::take_output(
    run_state& state, value_id out, std::unordered_map<value_id, std::shared_ptr<opencl::device_buffer>>& taken) {
  const value_id root = program_->roots[out];
  const bool own = !state.handed.contains(root) && !taken.contains(root);
  const value_facts& facts = program_->g->facts(out);
  if (on_host(state, out) || handed_at(state, out) != nullptr) return hand(state, out);
  if (state.containers.contains(out))
    throw error(errc::unsupported, "'" + program_->g->value_at(out).name + "' is no tensor");
  dim_list dims = evaluate(*facts.dims, state.symbols);
  if (!own || element_count(dims) == 0) {
    if (const auto found = taken.find(root); found != taken.end() && element_count(dims) != 0)
      return {facts.type, std::move(dims), found->second};
    return hand(state, out);
  }
  (void)buffer_of(state, out);
  opencl::device_buffer& buffer = state.own.buffers[state.own.memory.homes[root]];
  auto memory = handed_over(std::exchange(buffer, opencl::device_buffer()), state.pending);
  taken.emplace(root, memory);
  return {facts.type, std::move(dims), std::move(memory)};
}

inline std::vector<handed_value> opencl_executor::enter_body(run_state& state, node_id id, std::string_view key,
                                                             std::span<const handed_value> arguments) {
  const graph& g = *program_->g;
  const node& n = g.node_at(id);
  const body_layout l = layout_of_bodies(n);
  // The node's inputs as they are in this turn.
  body_entry general;
  general.ranks.resize(n.inputs.size());
  body_entry exact;
  exact.dims.resize(n.inputs.size());
  exact.elements.resize(n.inputs.size());
  const auto tell = [&](std::size_t input, const handed_value& given) {
    general.ranks[input] = given.dims.size();
    exact.dims[input] = given.dims;
    if (n.inputs[input] != no_value && g.facts(n.inputs[input]).elements && !given.host.empty())
      exact.elements[input] = integers_of(given.host);
  };
  for (std::size_t i = 0; i < l.carried + l.scanned; ++i) tell(l.first + i, arguments[l.counters + i]);
  for (std::size_t i = l.captured_begin; i < n.inputs.size(); ++i)
    tell(i, arguments[l.counters + l.carried + l.scanned + i - l.captured_begin]);
  body_programs::entry& body = bodies_.at(g, id, key, general, exact, state.pending.programs);
  const body_program& made = body.made.front().second;
  std::vector<handed_value> inputs;
  for (const std::size_t a : made.arguments) inputs.push_back(arguments[a]);
  const opencl::command_counts before = state.queue.counts();
  run_observer* const observer =
      state.observer == nullptr ? nullptr : state.observer->body(n, key, made.executor->executed());
  std::vector<handed_value> results =
      made.executor->run_body(inputs, state.symbols, state.queue, state.pending, observer);
  ++body.figures.entered;
  body.figures.kernels += static_cast<std::uint64_t>((state.queue.counts() - before).device_commands());
  body.figures.host_ops += made.executor->host_ops_of_body();
  state.host_ops += made.executor->host_ops_of_body();
  return results;
}

inline tensor opencl_executor::read_back(run_state& state, const handed_value& value) {
  if (!value.memory) return value.host;
  tensor read(value.type, value.dims);
  const bool polled = wait_ != wait_mode::blocking;
  state.queue.download(*value.memory, read.mutable_bytes(), 0, !polled,
                       sink_of(state, run_observer::direction::download));
  if (polled) state.queue.finish(wait_);
  // Whatever was enqueued before is done; buffers stay for what comes.
  state.pending.tensors.clear();
  state.pending.texels.clear();
  return read;
}

inline handed_value opencl_executor::empty_stack(const run_state& state, node_id id, std::size_t o,
                                                 std::int64_t axis) const {
  const graph& g = *program_->g;
  const node& n = g.node_at(id);
  const graph& body = *n.attributes.require<subgraph>("body");
  const value_facts* facts = n.outputs.at(o) == no_value ? nullptr : &g.facts(n.outputs[o]);
  const body_layout l = layout_of_bodies(n);
  const value_facts& part = body.facts(body.outputs().at(l.conditions + o));
  dim_list dims;
  if (facts != nullptr && facts->dims) {
    for (const index_expr& dim : *facts->dims) dims.push_back(dim.try_evaluate(state.symbols).value_or(0));
    dims[ops::axis_of(axis, dims.size(), n.op->name)] = 0;
  } else {
    if (part.dims)
      for (const index_expr& dim : *part.dims) dims.push_back(dim.as_constant().value_or(0));
    dims.insert(dims.begin() + static_cast<std::ptrdiff_t>(ops::axis_of(axis, dims.size() + 1, n.op->name)), 0);
  }
  dtype type = facts != nullptr && facts->type != dtype::undefined ? facts->type : part.type;
  if (type == dtype::undefined) type = dtype::float32;
  return handed_value(tensor(type, std::move(dims)));
}

}  // namespace dnnopt

#endif  // DNNOPT_BACKEND_RUN_EXECUTOR_BODIES_HPP

// Owns the memory that one binding of the symbols needs: its plan, its regions of the arena, and what data size.
#ifndef DNNOPT_BACKEND_RUN_EXECUTOR_MEMORY_HPP
#define DNNOPT_BACKEND_RUN_EXECUTOR_MEMORY_HPP

#include <dnnopt/backend/run/executor.hpp>

namespace dnnopt {

inline void opencl_executor::find_device_values() {
  device_values_.assign(program_->g->value_count(), false);
  for (const placed_node& step : program_->steps)
    for (const codegen::kernel_plan& plan : step.lowered.kernels)
      for (const codegen::pointer_argument& argument : plan.pointers)
        if (argument.held != no_value) device_values_[program_->roots[argument.held]] = true;
}

inline void opencl_executor::make_images() {
  image_memory_ = plan_image_memory(*program_);
  for (const opencl::image_shape& one : image_memory_.objects)
    images_.push_back(where_->memory().allocate_image(one, "an image of intermediate tensors"));
}

inline void opencl_executor::exchange_memory() {
  const std::set<value_id> changed = bound_.take_changed();
  if (changed.empty()) return;
  for (const value_id root : changed) {
    if (bound_.image_of_root(root) != nullptr) callers_images_.erase(root);
    if (bound_.of_root(root) != nullptr && !callers_.empty()) callers_[root] = {};
  }
  for (instance& made : instances_) {
    for (const value_id root : changed)
      if (bound_.of_root(root) != nullptr) made.buffers[root] = {};
  }
  forget_arguments(changed);
}

inline void opencl_executor::forget_arguments(const std::set<value_id>& roots) {
  for (instance& made : instances_)
    for (std::size_t s = 0; s < made.kernels.size(); ++s)
      for (std::size_t k = 0; k < made.kernels[s].size(); ++k)
        for (const codegen::pointer_argument& argument : program_->steps[s].lowered.kernels[k].pointers)
          if (argument.held != no_value && roots.contains(program_->roots[argument.held]))
            made.kernels[s][k].ready = false;
}

inline std::size_t opencl_executor::grown(std::size_t bytes, std::size_t before) const {
  const std::size_t more = before + before / 8;
  return where_->memory().limit() == 0 && bytes > before && bytes < more ? more : bytes;
}

inline void opencl_executor::grow_callers(const run_memory& memory) {
  callers_.resize(program_->g->value_count());
  std::set<value_id> replaced;
  for (const planned_value& separate : memory.separate) {
    opencl::device_buffer& buffer = callers_[separate.held];
    if (bound_.of_root(separate.held) != nullptr || buffer.bytes() >= separate.bytes) continue;
    const std::size_t bytes = grown(separate.bytes, buffer.bytes());
    buffer = {};
    buffer = where_->memory().allocate(bytes, program_->g->value_at(separate.held).name);
    replaced.insert(separate.held);
  }
  if (!replaced.empty()) forget_arguments(replaced);
}

inline opencl_executor::instance& opencl_executor::instance_for(const symbol_values& symbols) {
  for (auto at = instances_.begin(); at != instances_.end(); ++at)
    if (at->symbols == symbols) {
      instances_.splice(instances_.begin(), instances_, at);
      return *(last_ = &instances_.front());
    }
  // Before anything is enqueued or allocated for them.
  std::vector<bool> checked;
  {
    const timed_part timed(parts_.evaluate);
    check_guards(program_->g->guards(), symbols, checked);
  }
  // The least recently used binding makes room before the new one asks for memory.
  instance made;
  if (instances_.size() >= kept_instances) {
    // Its kernel objects serve on: only their arguments are of its dims.
    made.kernels = std::move(instances_.back().kernels);
    instances_.pop_back();
  }
  made.symbols = symbols;
  made.checked_guards = std::move(checked);
  {
    const timed_part timed(parts_.plan);
    made.memory = plan_run_memory(*program_, storages_, symbols, where_->info().base_address_alignment_bytes, planner_);
  }
  const timed_part timed(parts_.allocate);
  refuse_beyond_limit(made.memory);
  made.materialized.assign(program_->g->value_count(), false);
  made.buffers.resize(program_->g->value_count());
  made.kernels.resize(program_->steps.size());
  made.scratch.resize(program_->steps.size());
  for (std::size_t s = 0; s < program_->steps.size(); ++s)
    made.scratch[s].resize(program_->steps[s].lowered.scratch.size());
  if (!program_->is_body) {
    grow_callers(made.memory);
  } else {
    for (const planned_value& separate : made.memory.separate)
      made.buffers[separate.held] =
          where_->memory().allocate(separate.bytes, program_->g->value_at(separate.held).name);
  }
  for (std::size_t s = 0; s < program_->steps.size(); ++s) {
    made.kernels[s].resize(program_->steps[s].lowered.kernels.size());
    for (prepared_kernel& kernel : made.kernels[s]) kernel.ready = false;
  }
  instances_.push_front(std::move(made));
  last_ = &instances_.front();
  return *last_;
}

inline void opencl_executor::refuse_beyond_limit(const run_memory& memory) const {
  const std::uint64_t limit = where_->memory().limit();
  if (limit == 0) return;
  device_share share;
  share.weights = where_->memory().figures().live_bytes - arena_.bytes();
  for (const planned_value& separate : memory.separate) {
    if (bound_.of_root(separate.held) != nullptr) continue;
    const std::size_t held = callers_.empty() ? 0 : callers_[separate.held].bytes();
    share.caller += std::max(separate.bytes, held) - held;
  }
  std::uint64_t arena = 0;
  for (const std::size_t bytes : arena_sizes(memory)) arena += bytes;
  if (share.weights + share.caller + arena > limit) refuse_memory(*program_, memory, share, limit);
}

inline std::vector<std::size_t> opencl_executor::arena_sizes(const run_memory& memory) const {
  const std::vector<std::size_t> needed = memory.object_bytes();
  std::vector<std::size_t> sizes;
  for (std::size_t i = 0; i < std::max(needed.size(), arena_.objects().size()); ++i) {
    const std::size_t before = arena_.bytes_of(i);
    sizes.push_back(i < needed.size() && needed[i] > before ? grown(needed[i], before) : before);
  }
  return sizes;
}

inline void opencl_executor::enter(instance& made, opencl::command_queue& queue) {
  // Who has regions of the arena found it large enough, and it does not shrink.
  const std::vector<std::size_t> sizes = made.cut ? std::vector<std::size_t>() : arena_sizes(made.memory);
  if (!made.cut &&
      !std::equal(sizes.begin(), sizes.end(), arena_.objects().begin(), arena_.objects().end(),
                  [](std::size_t bytes, const opencl::device_buffer& object) { return bytes == object.bytes(); })) {
    // Commands of the turns before may be under way.
    if (program_->is_body && !arena_.empty()) queue.finish(wait_);
    for (instance& other : instances_) leave_arena(other);
    arena_ = {};
    std::vector<opencl::device_buffer> objects;
    for (const std::size_t bytes : sizes)
      objects.push_back(where_->memory().allocate(bytes, "the arena of intermediate tensors",
                                                  opencl::memory_access::read_write, placement_of_arena_));
    arena_ = opencl::arena(std::move(objects));
  }
  // Bindings that came and went leave their regions behind.
  if (!made.cut && arena_.part_count() > kept_regions) {
    for (instance& other : instances_) leave_arena(other);
    arena_.clear_parts();
  }
  if (!made.cut) {
    for (const planned_value& planned : made.memory.planned) {
      const auto [object, offset] = made.memory.place_of(planned.offset);
      if (planned.held == no_value)
        made.scratch[planned.step].at(planned.scratch) = arena_.part(object, offset, planned.bytes);
      else if (made.memory.homes[planned.held] == planned.held)
        made.buffers[planned.held] = arena_.part(object, offset, planned.bytes);
    }
    made.cut = true;
  }
  const bool overwritten = poison_ || entered_ != &made;
  entered_ = &made;
  if (poison_)
    for (const opencl::device_buffer& object : arena_.objects()) queue.fill(object, poison, 0, object.bytes());
  if (!overwritten) return;
  bool stale = !made.memory.whole_run.empty();
  for (const value_id v : made.memory.whole_run) made.materialized[v] = false;
  // Buffers of inputs and outputs are those of all dims.
  std::vector<bool> shared(made.memory.homes.size(), false);
  for (const planned_value& separate : made.memory.separate) shared[separate.held] = true;
  for (value_id v = 0; v < made.memory.homes.size(); ++v)
    if (made.materialized[v] && made.memory.homes[v] != no_value && shared[made.memory.homes[v]]) {
      stale = true;
      made.materialized[v] = false;
    }
  if (!stale) return;
  for (auto& step : made.kernels)
    for (prepared_kernel& kernel : step) kernel.ready = false;
}

inline void opencl_executor::leave_arena(instance& other) {
  for (auto& step : other.kernels)
    for (prepared_kernel& kernel : step) kernel = prepared_kernel();
  for (const planned_value& planned : other.memory.planned) {
    if (planned.held == no_value)
      other.scratch[planned.step].at(planned.scratch) = {};
    else
      other.buffers[planned.held] = {};
  }
  other.cut = false;
}

inline void opencl_executor::poison_after(run_state& state, std::size_t s) {
  const run_memory& memory = state.own.memory;
  for (std::size_t r = 0; r < memory.usages.size(); ++r) {
    const memory::buffer_usage& usage = memory.usages[r];
    if (usage.upper != static_cast<std::int64_t>(s) + 1 || is_whole_run(memory, r)) continue;
    const auto [object, offset] = memory.place_of(static_cast<std::size_t>(memory.plan.offsets[r]));
    state.queue.fill(arena_.objects().at(object), poison, offset, static_cast<std::size_t>(usage.size));
  }
}

inline bool opencl_executor::is_whole_run(const run_memory& memory, std::size_t record) {
  return std::any_of(memory.planned.begin(), memory.planned.end(), [&](const planned_value& planned) {
    return planned.record == record && planned.held != no_value &&
           std::find(memory.whole_run.begin(), memory.whole_run.end(), planned.held) != memory.whole_run.end();
  });
}

inline opencl::device_buffer* opencl_executor::caller_buffer(run_state& state, value_id root, std::size_t bytes) {
  // What was bound while the dims were new has memory of the binding's own.
  const value_id home = state.own.memory.homes[root];
  return callers_.empty() || callers_[home].empty() || callers_[home].bytes() < bytes ? nullptr : &callers_[home];
}

inline const opencl::device_buffer& opencl_executor::buffer_of(run_state& state, value_id v) {
  const value_id root = program_->roots[v];
  if (const opencl::device_buffer* const constant = weights_->find(root)) return *constant;
  if (const auto given = state.handed.find(root); given != state.handed.end()) return *given->second.memory;
  if (const opencl::device_buffer* const bound = bound_.of_root(root)) {
    bound_.check_late(root, state.symbols);
    return *bound;
  }
  const std::size_t bytes = bytes_of(root, state.symbols);
  if (const opencl::device_buffer* const shared = caller_buffer(state, root, bytes)) return *shared;
  opencl::device_buffer& buffer = state.own.buffers[state.own.memory.homes[root]];
  // An output whose size data decide is still held from the last run, which may have told a smaller one.
  if (!buffer.empty() && buffer.bytes() < bytes)
    state.pending.buffers.push_back(std::exchange(buffer, opencl::device_buffer()));
  if (buffer.empty()) buffer = late_buffer(state, bytes, program_->g->value_at(root).name);
  return buffer;
}

inline opencl::device_buffer opencl_executor::late_buffer(run_state& state, std::size_t bytes, std::string_view name) {
  std::vector<opencl::device_buffer>& free = state.pending.buffers;
  auto best = free.end();
  for (auto at = free.begin(); at != free.end(); ++at)
    if (at->bytes() >= bytes && at->bytes() <= 2 * bytes + small_waste &&
        (best == free.end() || at->bytes() < best->bytes()))
      best = at;
  if (best == free.end()) return where_->memory().allocate(bytes, name);
  opencl::device_buffer reused = std::move(*best);
  free.erase(best);
  return reused;
}

inline void opencl_executor::release_after(run_state& state, std::size_t s) {
  for (const std::size_t late : state.own.memory.late_scratch[s])
    if (opencl::device_buffer& buffer = state.own.scratch[s].at(late); !buffer.empty())
      state.pending.buffers.push_back(std::exchange(buffer, opencl::device_buffer()));
  for (const value_id v : state.own.memory.released_after(s)) {
    state.handed.erase(v);
    if (!state.own.buffers[v].empty())
      state.pending.buffers.push_back(std::exchange(state.own.buffers[v], opencl::device_buffer()));
    if (const auto held = state.host.find(v); held != state.host.end()) {
      state.pending.tensors.push_back(std::move(held->second));
      state.host.erase(held);
    }
  }
}

}  // namespace dnnopt

#endif  // DNNOPT_BACKEND_RUN_EXECUTOR_MEMORY_HPP

// Owns the execution of a program on an OpenCL device: memory of values, prepared launches, transfers, host operators.
#ifndef DNNOPT_BACKEND_RUN_EXECUTOR_HPP
#define DNNOPT_BACKEND_RUN_EXECUTOR_HPP

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include <dnnopt/backend/flow/body_programs.hpp>
#include <dnnopt/backend/flow/control_flow.hpp>
#include <dnnopt/backend/flow/handed_value.hpp>
#include <dnnopt/backend/opencl/context.hpp>
#include <dnnopt/backend/opencl/program_cache.hpp>
#include <dnnopt/backend/program/memory_limit.hpp>
#include <dnnopt/backend/program/program.hpp>
#include <dnnopt/backend/program/run_memory.hpp>
#include <dnnopt/backend/program/texel_images.hpp>
#include <dnnopt/backend/run/arena.hpp>
#include <dnnopt/backend/run/bound_memory.hpp>
#include <dnnopt/backend/run/built_kernels.hpp>
#include <dnnopt/backend/run/device_weights.hpp>
#include <dnnopt/backend/run/image_memory.hpp>
#include <dnnopt/backend/run/observer.hpp>
#include <dnnopt/backend/run/refused_work_groups.hpp>
#include <dnnopt/backend/run/run_figures.hpp>
#include <dnnopt/backend/run/texel_transfers.hpp>
#include <dnnopt/backend/run/values.hpp>
#include <dnnopt/backend/storage/narrow.hpp>
#include <dnnopt/reference/host_value.hpp>
#include <dnnopt/wait_mode.hpp>

namespace dnnopt {

/// Evaluates one node on the host, for all kinds of values.
using host_evaluator = std::vector<reference::host_value> (*)(const graph& g, node_id id,
                                                              std::span<const reference::host_value> inputs);

/// Runs a program for any values of its symbols; what one binding needs is prepared once and kept.
///
/// Not thread-safe: one executor runs one inference at a time. `where` and `programs` must outlive it.
class opencl_executor {
 public:
  /// Builds all kernels (in parallel, from the cache where it has them) and uploads constants that kernels read.
  /// `bodies` makes the programs of control flow when they are first entered; without it, control flow runs on the
  /// host as one operator. Errors: kernel_build (work_groups_refused where a kernel object allows fewer work-items than
  /// it was lowered for); out_of_device_memory.
  opencl_executor(opencl::context& where, opencl::program_cache& programs, std::shared_ptr<const program> p,
                  host_evaluator evaluate, offset_planner planner = plan_by_default, body_maker bodies = nullptr)
      : where_(&where),
        program_(std::move(p)),
        storages_(storages_of(*program_)),
        evaluate_(evaluate),
        planner_(std::move(planner)),
        queues_(where),
        kernels_(with_allowed_work_groups(build_kernels(programs, *program_), *program_, where.where().handle())),
        weights_(where, queues_.use(false), *program_, kernels_.prepare),
        placement_of_arena_(opencl::arena_placement(where.info())),
        bound_(where, *program_),
        bodies_(std::move(bodies)) {
    find_device_values();
    for (const value_id in : program_->g->inputs())
      input_symbols_.merge(fusion::symbols_given_by(program_->g->facts(in)));
    for (const placed_node& step : program_->steps)
      if (step.where == placement::bodies) bodies_.add(*program_->g, step.id);
    make_images();
  }
  opencl_executor(const opencl_executor&) = delete;
  opencl_executor& operator=(const opencl_executor&) = delete;

  /// One inference. `inputs` are the graph's inputs in order, tensor() for bound ones; outputs come back in order,
  /// tensor() for bound ones. Everything that it enqueued is done when it returns or throws.
  /// Errors: type_mismatch, shape_mismatch of an input; missing_input; invalid_argument for a tensor given for a bound
  /// input, and what bound_memory::check refuses; out_of_device_memory; memory_limit; what host operators throw.
  [[nodiscard]] std::vector<tensor> run(std::span<const tensor> inputs, run_observer* observer = nullptr) {
    if (observer != nullptr && !observer->observes()) observer = nullptr;
    opencl::command_queue& queue = queues_.use(observer != nullptr && observer->wants_events());
    return run_once(inputs, queue, observer);
  }

  /// From the next inference on `memory` stands in the place of the input or output `name`; bound_memory::bind says
  /// what it must be, and its errors. Where kernels use it as it is, nothing is uploaded, downloaded or converted for
  /// it; else the answer says why not. Commands that the caller enqueued on it elsewhere must be done before a run.
  bound_value bind(std::string_view name, cl_mem memory, std::optional<dim_list> dims = std::nullopt) {
    bound_value row = bound_.bind(name, memory, std::move(dims));
    exchange_memory();
    return row;
  }
  /// Ends a binding; the next run allocates memory of its own again. Whether something was bound. Errors:
  /// missing_input for a name that the graph does not have.
  bool unbind(std::string_view name) {
    const bool was = bound_.unbind(name);
    exchange_memory();
    return was;
  }
  /// All that is bound.
  [[nodiscard]] const bound_memory& bound() const noexcept { return bound_; }

  /// How runs wait for the device; blocking unless told. Spinning creates one event per wait, no matter who observes.
  void wait_by(wait_mode how) noexcept { wait_ = how; }
  [[nodiscard]] wait_mode waits_by() const noexcept { return wait_; }

  /// For finding faults: regions of the arena are filled with 0xFF (NaN as floats) before a run, and as soon as nothing
  /// reads them any more. The fills count as device commands. Outputs are the same as without, or a plan is wrong.
  void poison_freed(bool on) noexcept { poison_ = on; }

  /// Where the arena lies from its next allocation on; opencl::arena_placement of the device unless told. Errors of the
  /// next run: unsupported for addressed memory on a device without it.
  void place_arena(opencl::memory_placement placement) noexcept { placement_of_arena_ = placement; }

  /// One inference of a body within a run of the program around it: `inputs` are the graph's in order, `outer` what
  /// symbols are outside. Everything goes to `queue` and may be under way when this returns; `pending` keeps what it
  /// uses, and outlives the outputs. Precondition: the program is_body. Errors: as run.
  [[nodiscard]] std::vector<handed_value> run_body(std::span<const handed_value> inputs, const symbol_values& outer,
                                                   opencl::command_queue& queue, pending_memory& pending) {
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
    run_state state = begin_run(made, queue, symbols, nullptr, pending);
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
    return outputs;
  }
  /// Operators on the host in the last run_body, those of bodies inside included.
  [[nodiscard]] std::size_t host_ops_of_body() const noexcept { return host_ops_in_bodies_; }
  /// The bodies of control flow: what was made for them, and how often they were entered.
  [[nodiscard]] const body_programs& bodies() const noexcept { return bodies_; }

  /// What the last run enqueued.
  [[nodiscard]] const run_figures& figures() const noexcept { return figures_; }
  /// Bytes on the device that stay from run to run: constants that kernels read, and packed weights.
  [[nodiscard]] std::uint64_t weight_bytes() const { return weights_.bytes(); }
  /// Bytes of the images that hold intermediate tensors; they stay from run to run, outside the arena.
  [[nodiscard]] std::uint64_t image_bytes() const noexcept { return image_memory_.bytes; }
  /// Bytes of buffers and images for the graph's inputs and outputs, of all values of the symbols that are kept; bound
  /// memory is the caller's and counts nothing.
  [[nodiscard]] std::uint64_t caller_bytes() const {
    std::uint64_t bytes = 0;
    for (const instance& made : instances_)
      for (const planned_value& separate : made.memory.separate) bytes += made.buffers[separate.held].bytes();
    for (const auto& [v, image] : callers_images_) bytes += image.bytes();
    return bytes;
  }
  /// The memory plan of the last run's binding.
  [[nodiscard]] const run_memory& memory() const { return last_->memory; }
  [[nodiscard]] const program& executed() const noexcept { return *program_; }
  /// Number of device commands that a run enqueues, as the program predicts it: for the values that symbols had in the
  /// last run; before the first, for dims none of which is 0.
  [[nodiscard]] std::size_t predicted_kernels() const {
    return last_ == nullptr ? program_->kernel_count() : program_->kernel_count(last_symbols_);
  }

 private:
  /// Waits for the queue when an exception leaves its scope. What a failed wait says is dropped: the first error tells.
  class finish_on_error {
   public:
    explicit finish_on_error(const opencl::command_queue& queue) : queue_(queue), before_(std::uncaught_exceptions()) {}
    finish_on_error(const finish_on_error&) = delete;
    finish_on_error& operator=(const finish_on_error&) = delete;
    ~finish_on_error() {
      if (std::uncaught_exceptions() > before_) (void)::clFinish(queue_.handle());
    }

   private:
    const opencl::command_queue& queue_;
    int before_;
  };

  [[nodiscard]] std::vector<tensor> run_once(std::span<const tensor> inputs, opencl::command_queue& queue,
                                             run_observer* observer) {
    const graph& g = *program_->g;
    const auto begin = std::chrono::steady_clock::now();
    parts_ = {};
    symbol_values symbols;
    {
      const timed_part timed(parts_.evaluate);
      symbols = bind_inputs(g, inputs);
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
                parts_};
    const double all = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    run_parts& parts = figures_.parts;
    parts.infer = all - parts.evaluate - parts.plan - parts.allocate - parts.bind;
    return outputs;
  }

  struct prepared_kernel {
    cl::Kernel kernel;
    opencl::launch_size size;
    std::uint64_t flops = 0;
    std::uint64_t bytes = 0;
    std::vector<bool> addresses{};  // of the pointers: set as an address in this kernel object
    bool ready = false;
    bool idle = false;  // nothing to compute: it is not launched
  };

  /// All that one binding of the symbols needs.
  struct instance {
    symbol_values symbols;
    std::vector<bool> checked_guards;  // the others wait for symbols that data bind
    run_memory memory;
    bool cut = false;                                         // buffers and scratch have their regions of the arena
    std::vector<bool> materialized;                           // by value id: expressions of dims that are there
    std::vector<opencl::device_buffer> buffers;               // by value id (home_of alone)
    std::vector<std::vector<opencl::device_buffer>> scratch;  // by step
    // Last, so that they end before the memory that their arguments name: OpenCL does not retain it for them.
    std::vector<std::vector<prepared_kernel>> kernels;  // by step
  };

  struct run_state {
    instance& own;
    opencl::command_queue& queue;
    symbol_values& symbols;
    run_observer* observer;
    pending_memory& pending;
    std::size_t host_ops = 0;
    std::size_t step = 0;
    std::unordered_map<value_id, tensor> host{};          // values at hand on the host
    std::unordered_map<value_id, value_id> waiting{};     // of them, by root, those that kernels read later in the run
    std::unordered_map<value_id, handed_value> handed{};  // by root: what bodies handed, or whoever entered this one
    std::unordered_map<value_id, reference::host_value> containers{};  // sequences and optionals: on the host alone
    // Guards whose symbols are bound during the run.
    std::vector<bool> checked_guards{};
    bool unchecked_guards = false;
  };

  /// Guards that wait for symbols which data bind are checked on the way.
  [[nodiscard]] static run_state begin_run(instance& made, opencl::command_queue& queue, symbol_values& symbols,
                                           run_observer* observer, pending_memory& pending) {
    run_state state{made, queue, symbols, observer, pending};
    state.checked_guards = made.checked_guards;
    state.unchecked_guards =
        std::find(state.checked_guards.begin(), state.checked_guards.end(), false) != state.checked_guards.end();
    return state;
  }

  void run_steps(run_state& state) {
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

  void take_host_input(run_state& state, value_id in, const tensor& content) {
    state.host[in] = content;
    if (device_values_[program_->roots[in]]) upload(state, in, content);
  }

  static constexpr std::size_t kept_instances = 8;
  static constexpr std::size_t kept_regions = 16384;

  void find_device_values() {
    device_values_.assign(program_->g->value_count(), false);
    for (const placed_node& step : program_->steps)
      for (const codegen::kernel_plan& plan : step.lowered.kernels)
        for (const codegen::pointer_argument& argument : plan.pointers)
          if (argument.held != no_value) device_values_[program_->roots[argument.held]] = true;
  }

  void make_images() {
    image_memory_ = plan_image_memory(*program_);
    for (const opencl::image_shape& one : image_memory_.objects)
      images_.push_back(where_->memory().allocate_image(one, "an image of intermediate tensors"));
  }

  /// Arguments that name memory which another one replaced are set again, and the session's own is given back where
  /// the caller's stands in for it.
  void exchange_memory() {
    const std::set<value_id> changed = bound_.take_changed();
    if (changed.empty()) return;
    for (const value_id root : changed)
      if (bound_.image_of_root(root) != nullptr) callers_images_.erase(root);
    for (instance& made : instances_) {
      for (const value_id root : changed)
        if (bound_.of_root(root) != nullptr) made.buffers[root] = {};
      for (std::size_t s = 0; s < made.kernels.size(); ++s)
        for (std::size_t k = 0; k < made.kernels[s].size(); ++k)
          for (const codegen::pointer_argument& argument : program_->steps[s].lowered.kernels[k].pointers)
            if (argument.held != no_value && changed.contains(program_->roots[argument.held]))
              made.kernels[s][k].ready = false;
    }
  }

  [[nodiscard]] symbol_values bind_inputs(const graph& g, std::span<const tensor> inputs) const {
    if (inputs.size() != g.inputs().size())
      throw error(errc::missing_input,
                  std::to_string(inputs.size()) + " inputs given, " + std::to_string(g.inputs().size()) + " needed");
    symbol_values symbols;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const value& v = g.value_at(g.inputs()[i]);
      if (!bound_.is_input_bound(i)) {
        if (inputs[i].empty()) throw error(errc::missing_input, "input '" + v.name + "' is neither given nor bound");
        bind_symbols(v, inputs[i], symbols);
        continue;
      }
      if (!inputs[i].empty())
        throw error(errc::invalid_argument, "input '" + v.name + "' is bound to device memory, and given as well");
      if (const dim_list* const dims = bound_.stated_dims(i)) bind_symbols(v, *dims, symbols);
    }
    return symbols;
  }

  instance& instance_for(const symbol_values& symbols) {
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
      made.memory =
          plan_run_memory(*program_, storages_, symbols, where_->info().base_address_alignment_bytes, planner_);
    }
    const timed_part timed(parts_.allocate);
    refuse_beyond_limit(made.memory);
    made.materialized.assign(program_->g->value_count(), false);
    made.buffers.resize(program_->g->value_count());
    made.kernels.resize(program_->steps.size());
    made.scratch.resize(program_->steps.size());
    for (std::size_t s = 0; s < program_->steps.size(); ++s)
      made.scratch[s].resize(program_->steps[s].lowered.scratch.size());
    for (const planned_value& separate : made.memory.separate)
      if (bound_.of_root(separate.held) == nullptr)
        made.buffers[separate.held] =
            where_->memory().allocate(separate.bytes, program_->g->value_at(separate.held).name);
    for (std::size_t s = 0; s < program_->steps.size(); ++s) {
      made.kernels[s].resize(program_->steps[s].lowered.kernels.size());
      for (prepared_kernel& kernel : made.kernels[s]) kernel.ready = false;
    }
    instances_.push_front(std::move(made));
    last_ = &instances_.front();
    return *last_;
  }

  /// What is on the device already, without the arena that a larger one would replace, and the new binding's share.
  void refuse_beyond_limit(const run_memory& memory) const {
    const std::uint64_t limit = where_->memory().limit();
    if (limit == 0) return;
    device_share share;
    share.weights = where_->memory().figures().live_bytes - arena_.bytes();
    for (const planned_value& separate : memory.separate)
      if (bound_.of_root(separate.held) == nullptr) share.caller += separate.bytes;
    const std::size_t arena = std::max(memory.arena_bytes, arena_.bytes());
    if (share.weights + share.caller + arena > limit) refuse_memory(*program_, memory, share, limit);
  }

  /// Gives a binding its regions of the arena, which all bindings share: it is as large as the largest of them needs.
  void enter(instance& made, opencl::command_queue& queue) {
    if (made.memory.arena_bytes > arena_.bytes()) {
      // Commands of the turns before may be under way.
      if (program_->is_body && !arena_.empty()) queue.finish(wait_);
      for (instance& other : instances_) leave_arena(other);
      arena_ = {};
      arena_ = opencl::arena(where_->memory().allocate(made.memory.arena_bytes, "the arena of intermediate tensors",
                                                       opencl::memory_access::read_write, placement_of_arena_));
    }
    // Bindings that came and went leave their regions behind.
    if (!made.cut && arena_.part_count() > kept_regions) {
      for (instance& other : instances_) leave_arena(other);
      arena_.clear_parts();
    }
    if (!made.cut) {
      for (const planned_value& planned : made.memory.planned) {
        if (planned.held == no_value)
          made.scratch[planned.step].at(planned.scratch) = arena_.part(planned.offset, planned.bytes);
        else if (made.memory.homes[planned.held] == planned.held)
          made.buffers[planned.held] = arena_.part(planned.offset, planned.bytes);
      }
      made.cut = true;
    }
    const bool overwritten = poison_ || entered_ != &made;
    entered_ = &made;
    if (poison_ && !arena_.empty()) queue.fill(arena_.whole(), poison, 0, arena_.bytes());
    if (!overwritten || made.memory.whole_run.empty()) return;
    for (const value_id v : made.memory.whole_run) made.materialized[v] = false;
    for (auto& step : made.kernels)
      for (prepared_kernel& kernel : step) kernel.ready = false;
  }

  static void leave_arena(instance& other) {
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

  void poison_after(run_state& state, std::size_t s) {
    const run_memory& memory = state.own.memory;
    for (std::size_t r = 0; r < memory.usages.size(); ++r) {
      const memory::buffer_usage& usage = memory.usages[r];
      if (usage.upper != static_cast<std::int64_t>(s) + 1 || is_whole_run(memory, r)) continue;
      state.queue.fill(arena_.whole(), poison, static_cast<std::size_t>(memory.plan.offsets[r]),
                       static_cast<std::size_t>(usage.size));
    }
  }
  static bool is_whole_run(const run_memory& memory, std::size_t record) {
    return std::any_of(memory.planned.begin(), memory.planned.end(), [&](const planned_value& planned) {
      return planned.record == record && planned.held != no_value &&
             std::find(memory.whole_run.begin(), memory.whole_run.end(), planned.held) != memory.whole_run.end();
    });
  }

  [[nodiscard]] std::size_t bytes_of(value_id v, const symbol_values& symbols) const {
    return static_cast<std::size_t>(
        std::max<std::int64_t>(detail::bytes_of(program_->g->facts(v))->evaluate(symbols), 1));
  }

  /// The buffer of a value: the caller's where it is bound; made now where its size was not known before the run.
  const opencl::device_buffer& buffer_of(run_state& state, value_id v) {
    const value_id root = program_->roots[v];
    if (opencl::device_buffer* const constant = weights_.find(root)) return *constant;
    if (const auto given = state.handed.find(root); given != state.handed.end()) return *given->second.memory;
    if (const opencl::device_buffer* const bound = bound_.of_root(root)) {
      bound_.check_late(root, state.symbols);
      return *bound;
    }
    opencl::device_buffer& buffer = state.own.buffers[state.own.memory.homes[root]];
    const std::size_t bytes = bytes_of(root, state.symbols);
    // An output whose size data decide is still held from the last run, which may have told a smaller one.
    if (!buffer.empty() && buffer.bytes() < bytes)
      state.pending.buffers.push_back(std::exchange(buffer, opencl::device_buffer()));
    if (buffer.empty()) buffer = late_buffer(state, bytes, program_->g->value_at(root).name);
    return buffer;
  }

  /// Memory for a value whose size this run has told: that of one which no command to come reads, where one is large
  /// enough and not much larger (commands under way read it before those to come write it), else new. Linear in the
  /// values of this kind that ended since the device was waited for.
  opencl::device_buffer late_buffer(run_state& state, std::size_t bytes, std::string_view name) {
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

  /// The image of an input or output: the caller's where it is bound.
  const opencl::device_image& image_of(value_id v) {
    if (const opencl::device_image* const bound = bound_.image_of_root(v)) return *bound;
    opencl::device_image& own = callers_images_[v];
    const value& held = program_->g->value_at(v);
    if (own.empty())
      own = where_->memory().allocate_image(image_shape_of(texel_storage_of(held.facts), symbol_values()), held.name);
    return own;
  }
  /// Where the texels of an input or output lie.
  texel_memory texels_of(run_state& state, value_id v) {
    if (lies_in_image(program_->g->facts(v))) return {nullptr, &image_of(v), image_of(v).bytes()};
    return {&buffer_of(state, v), nullptr, bytes_of(v, state.symbols)};
  }

  void upload(run_state& state, value_id v, const tensor& content) {
    if (const auto& layout = program_->g->facts(v).texels) {
      state.pending.texels.push_back(upload_texels(state.queue, texels_of(state, v), content, layout->packed,
                                                   sink_of(state, run_observer::direction::upload)));
      return;
    }
    // What the host computed may have another size at every run.
    const value_id root = program_->roots[v];
    opencl::device_buffer& buffer = state.own.buffers[state.own.memory.homes[root]];
    if (!buffer.empty() && buffer.bytes() < content.byte_size())
      state.pending.buffers.push_back(std::exchange(buffer, opencl::device_buffer()));
    if (buffer.empty())
      buffer = late_buffer(state, std::max<std::size_t>(content.byte_size(), 1), program_->g->value_at(root).name);
    state.queue.upload(buffer, content.bytes(), 0, false, sink_of(state, run_observer::direction::upload));
  }

  static opencl::event_sink* sink_of(const run_state& state, run_observer::direction way) {
    return state.observer == nullptr ? nullptr : state.observer->transfer(way);
  }

  void launch(run_state& state, std::size_t s) {
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

  /// Reads the size that a step's kernels computed, for those that follow.
  void learn_size(run_state& state, std::size_t s) {
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

  /// Brings what the host computed to the device when the first kernel reads it: as late as that, because a detector's
  /// host operators come one after the other, and their results would all lie there at once.
  void upload_waiting(run_state& state, const placed_node& step) {
    for (const codegen::kernel_plan& plan : step.lowered.kernels)
      for (const codegen::pointer_argument& argument : plan.pointers) {
        if (argument.held == no_value) continue;
        const auto found = state.waiting.find(program_->roots[argument.held]);
        if (found == state.waiting.end()) continue;
        upload(state, found->second, state.host.at(found->second));
        state.waiting.erase(found);
      }
  }

  /// What a pointer of a step's kernel points to.
  [[nodiscard]] argument_memory memory_of(run_state& state, std::size_t s, const codegen::pointer_argument& pointer) {
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

  /// A kernel object that takes `memory`: a new one where an argument that was an address becomes an object of OpenCL,
  /// which NVIDIA's driver (seen with the one of an H200) answers by CL_INVALID_KERNEL_ARGS at every launch. The other
  /// way round is no fault there. Turns of a loop meet it: what a body gave lies in objects, what came in in an arena.
  static void make_object_for(prepared_kernel& prepared, const built_kernel& from,
                              std::span<const argument_memory> memory) {
    bool fresh = prepared.kernel() == nullptr;
    for (std::size_t i = 0; i < prepared.addresses.size(); ++i)
      fresh = fresh || (prepared.addresses[i] && !memory[i].is_address());
    if (fresh) prepared.kernel = from.make();
    if (fresh || prepared.addresses.empty()) prepared.addresses.assign(memory.size(), false);
    for (std::size_t i = 0; i < memory.size(); ++i)
      prepared.addresses[i] = prepared.addresses[i] || memory[i].is_address();
  }

  void prepare(run_state& state, std::size_t s, std::size_t k) {
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

  /// Brings a value that no kernel wrote to the device: expressions of dims, and what the host computed.
  void materialize(run_state& state, value_id v) {
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

  /// The value where the host has it or can tell it.
  [[nodiscard]] std::optional<tensor> on_host(const run_state& state, value_id v) const {
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

  /// The value on the host, downloaded where only the device has it.
  tensor fetch(run_state& state, value_id v, bool blocking) {
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

  /// The value as bodies handed it under its own shape, or null.
  [[nodiscard]] static const handed_value* handed_at(const run_state& state, value_id v) {
    const auto found = state.handed.find(v);
    return found == state.handed.end() ? nullptr : &found->second;
  }

  /// A bound output: kernels wrote it where it is bound, or it is copied now, as bound_value::reason tells.
  void deliver(run_state& state, std::size_t position) {
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

  void wait(run_state& state) {
    const std::int64_t begin = state.observer == nullptr ? 0 : state.observer->now();
    state.queue.finish(wait_);
    state.pending.reached();
    if (state.observer != nullptr) state.observer->waited(begin);
  }

  void evaluate_on_host(run_state& state, std::size_t s) {
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

  /// What control flow asks for while step `s` runs.
  class step_bodies final : public body_caller {
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

  /// A step of control flow: its operands stay where they are, and results are taken from its bodies as they are.
  void run_bodies(run_state& state, std::size_t s) {
    const graph& g = *program_->g;
    const node& n = g.node_at(program_->steps[s].id);
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
    for (std::size_t o = 0; o < n.outputs.size(); ++o)
      if (n.outputs[o] != no_value) take_over(state, n.outputs[o], std::move(results.at(o)));
    check_new_guards(state);
  }

  /// The value for a body: where it lies, and nothing of it is copied.
  [[nodiscard]] handed_value hand(run_state& state, value_id v) {
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
    if (weights_.find(root) == nullptr && !program_->g->is_input(root)) given.lender = this;
    return given;
  }

  /// A value of this program that a body hands through would end with its last reader here: the result is a copy.
  void keep_handed_through(run_state& state, handed_value& result) {
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

  void take_over(run_state& state, value_id out, handed_value result) {
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

  /// An output of a body: on the host where the host has it; memory that kernels wrote goes to whoever entered.
  [[nodiscard]] handed_value take_output(run_state& state, value_id out,
                                         std::unordered_map<value_id, std::shared_ptr<opencl::device_buffer>>& taken) {
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

  [[nodiscard]] std::vector<handed_value> enter_body(run_state& state, node_id id, std::string_view key,
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
    std::vector<handed_value> results = made.executor->run_body(inputs, state.symbols, state.queue, state.pending);
    ++body.figures.entered;
    body.figures.kernels += static_cast<std::uint64_t>((state.queue.counts() - before).device_commands());
    body.figures.host_ops += made.executor->host_ops_of_body();
    state.host_ops += made.executor->host_ops_of_body();
    return results;
  }

  [[nodiscard]] tensor read_back(run_state& state, const handed_value& value) {
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

  /// No turn ran: dims that nothing tells count 0.
  [[nodiscard]] handed_value empty_stack(const run_state& state, node_id id, std::size_t o, std::int64_t axis) const {
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

  /// Guards whose symbols were bound since the last look. Errors: as check_guards.
  void check_new_guards(run_state& state) const {
    if (!state.unchecked_guards) return;
    check_guards(program_->g->guards(), state.symbols, state.checked_guards);
    state.unchecked_guards =
        std::find(state.checked_guards.begin(), state.checked_guards.end(), false) != state.checked_guards.end();
  }

  void release_after(run_state& state, std::size_t s) {
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

  static constexpr std::array<std::byte, 1> poison{std::byte{0xFF}};
  static constexpr std::size_t small_waste = 4096;

  opencl::context* where_;
  std::shared_ptr<const program> program_;
  program_storages storages_;  // the same for all values of the symbols
  host_evaluator evaluate_;
  offset_planner planner_;
  opencl::session_queues queues_;
  built_kernels kernels_;
  device_weights weights_;
  std::vector<bool> device_values_;  // by root: some kernel reads or writes it
  image_memory image_memory_;
  std::vector<opencl::device_image> images_;                 // by object
  std::map<value_id, opencl::device_image> callers_images_;  // of inputs and outputs that are not bound
  opencl::memory_placement placement_of_arena_;
  opencl::arena arena_;  // before what holds shares of it
  bound_memory bound_;   // before the kernels that it is an argument of
  body_programs bodies_;
  std::set<std::uint32_t> input_symbols_;  // that the graph's inputs tell, by dims or elements
  std::size_t host_ops_in_bodies_ = 0;
  std::list<instance> instances_;
  instance* last_ = nullptr;
  symbol_values last_symbols_;         // of the last run, those that data decided among them
  const instance* entered_ = nullptr;  // whose contents the arena holds
  bool poison_ = false;
  wait_mode wait_ = wait_mode::blocking;
  run_parts parts_;  // of the run under way
  run_figures figures_;
};

}  // namespace dnnopt

#endif  // DNNOPT_BACKEND_RUN_EXECUTOR_HPP

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
#include <dnnopt/backend/run/kernel_optimizer.hpp>
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
  ///
  /// Where `quick` allows it, kernels that are in no cache are quick ones at first; those of bodies of control flow are
  /// not. Behind its first inference a thread makes the optimized ones.
  opencl_executor(opencl::context& where, opencl::program_cache& programs, std::shared_ptr<const program> p,
                  host_evaluator evaluate, offset_planner planner = plan_by_default, body_maker bodies = nullptr,
                  quick_start quick = {})
      : where_(&where),
        programs_(&programs),
        program_(std::move(p)),
        storages_(storages_of(*program_)),
        evaluate_(evaluate),
        planner_(std::move(planner)),
        queues_(where),
        quick_(std::move(quick)),
        kernels_(with_allowed_work_groups(timed_build(), *program_, where.where().handle())),
        weights_(std::make_shared<const device_weights>(where, queues_.use(false), *program_, kernels_.prepare)),
        placement_of_arena_(opencl::arena_placement(where.info())),
        bound_(where, *program_),
        bodies_(std::move(bodies)) {
    find_what_runs();
  }
  /// Another executor of the program and its weights, with kernels, queue, arena and bound memory of its own, and with
  /// optimized kernels of its own where these are quick still. `planner` and `bodies` must belong to no other.
  /// Precondition: no run is under way. Errors: out_of_device_memory; memory_limit.
  [[nodiscard]] std::unique_ptr<opencl_executor> beside(offset_planner planner, body_maker bodies);
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
                                                   opencl::command_queue& queue, pending_memory& pending,
                                                   run_observer* observer);
  /// Operators on the host in the last run_body, those of bodies inside included.
  [[nodiscard]] std::size_t host_ops_of_body() const noexcept { return host_ops_in_bodies_; }
  /// The bodies of control flow: what was made for them, and how often they were entered.
  [[nodiscard]] const body_programs& bodies() const noexcept { return bodies_; }

  /// How far the optimized kernels are, where quick ones serve. Any thread may ask while no run begins or ends.
  [[nodiscard]] optimizing_state optimizing() const;

  /// What the last run enqueued.
  [[nodiscard]] const run_figures& figures() const noexcept { return figures_; }
  /// Bytes on the device that stay from run to run: constants that kernels read, and packed weights.
  [[nodiscard]] std::uint64_t weight_bytes() const { return weights_->bytes(); }
  /// Bytes of the images that hold intermediate tensors; they stay from run to run, outside the arena.
  [[nodiscard]] std::uint64_t image_bytes() const noexcept { return image_memory_.bytes; }
  /// Bytes of buffers and images for the graph's inputs and outputs, which all values of the symbols share; bound
  /// memory is the caller's and counts nothing.
  [[nodiscard]] std::uint64_t caller_bytes() const {
    std::uint64_t bytes = 0;
    for (const opencl::device_buffer& buffer : callers_) bytes += buffer.bytes();
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
                                             run_observer* observer);

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
                                           run_observer* observer, pending_memory& pending);

  void run_steps(run_state& state);

  void take_host_input(run_state& state, value_id in, const tensor& content);

  friend class kernel_optimizer;
  /// The same program with these builds of its kernels, for inferences beside `of`, whose weights both use.
  opencl_executor(const opencl_executor& of, built_kernels kernels, offset_planner planner, body_maker bodies);

  [[nodiscard]] built_kernels timed_build();
  void find_what_runs();

  /// Inputs that stay as they are, whatever the caller does with memory; zeros for those that are bound.
  [[nodiscard]] std::vector<tensor> copies_of(std::span<const tensor> inputs, const symbol_values& symbols) const;
  /// An inference came to its end for the first time, after `seconds`.
  void served(std::span<const tensor> inputs, double seconds);
  /// One inference for what the driver leaves for a kernel's first launch. Errors: those of run(), but none where zeros
  /// stand for what bodies give.
  void rehearse(std::span<const tensor> inputs, run_observer& observer);
  /// Lets optimized kernels that are there take the place of quick ones. No command may be under way.
  void take_optimized_kernels();

  static constexpr std::size_t kept_instances = 8;
  static constexpr std::size_t kept_regions = 16384;

  void find_device_values();

  void make_images();

  /// Arguments that name memory which another one replaced are set again, and the session's own is given back where
  /// the caller's stands in for it.
  void exchange_memory();

  [[nodiscard]] symbol_values bind_inputs(const graph& g, std::span<const tensor> inputs) const;
  /// Binds the symbols that elements of inputs are (name_deciding_inputs) where these lie in the caller's memory.
  void read_bound_elements(opencl::command_queue& queue, symbol_values& symbols) const;

  instance& instance_for(const symbol_values& symbols);

  /// Kernels that name memory of one of the values set their arguments again.
  void forget_arguments(const std::set<value_id>& roots);

  /// Bytes to allocate where `bytes` are needed and `before` were there: an eighth more where it grows by little, as in
  /// a decoder that grows by a token a run, for which the next ones then find room. As many as needed under a limit.
  [[nodiscard]] std::size_t grown(std::size_t bytes, std::size_t before) const;

  /// Makes the buffers of inputs and outputs, which all dims share, as large as these dims need them.
  void grow_callers(const run_memory& memory);

  /// What is on the device already, without the arena that a larger one would replace, and the new binding's share.
  void refuse_beyond_limit(const run_memory& memory) const;

  /// Bytes of the arena, or of each shared object, that serve a binding and those before it.
  [[nodiscard]] std::vector<std::size_t> arena_sizes(const run_memory& memory) const;
  /// Gives a binding its regions of the arena, which all bindings share: it is as large as the largest of them needs.
  void enter(instance& made, opencl::command_queue& queue);

  static void leave_arena(instance& other);

  void poison_after(run_state& state, std::size_t s);
  static bool is_whole_run(const run_memory& memory, std::size_t record);

  [[nodiscard]] std::size_t bytes_of(value_id v, const symbol_values& symbols) const {
    return static_cast<std::size_t>(
        std::max<std::int64_t>(detail::bytes_of(program_->g->facts(v))->evaluate(symbols), 1));
  }

  /// The buffer that all dims share for an input or output, where it has `bytes`; null for other values.
  [[nodiscard]] opencl::device_buffer* caller_buffer(run_state& state, value_id root, std::size_t bytes);

  /// The buffer of a value: the caller's where it is bound; made now where its size was not known before the run.
  const opencl::device_buffer& buffer_of(run_state& state, value_id v);

  /// Memory for a value whose size this run has told: that of one which no command to come reads, where one is large
  /// enough and not much larger (commands under way read it before those to come write it), else new. Linear in the
  /// values of this kind that ended since the device was waited for.
  opencl::device_buffer late_buffer(run_state& state, std::size_t bytes, std::string_view name);

  /// The image of an input or output: the caller's where it is bound.
  const opencl::device_image& image_of(value_id v);
  /// Where the texels of an input or output lie.
  texel_memory texels_of(run_state& state, value_id v);

  void upload(run_state& state, value_id v, const tensor& content);

  static opencl::event_sink* sink_of(const run_state& state, run_observer::direction way) {
    return state.observer == nullptr ? nullptr : state.observer->transfer(way);
  }

  void launch(run_state& state, std::size_t s);

  /// Reads the size that a step's kernels computed, for those that follow.
  void learn_size(run_state& state, std::size_t s);

  /// Brings what the host computed to the device when the first kernel reads it: as late as that, because a detector's
  /// host operators come one after the other, and their results would all lie there at once.
  void upload_waiting(run_state& state, const placed_node& step);

  /// What a pointer of a step's kernel points to.
  [[nodiscard]] argument_memory memory_of(run_state& state, std::size_t s, const codegen::pointer_argument& pointer);

  /// A kernel object that takes `memory`: a new one where an argument that was an address becomes an object of OpenCL,
  /// which NVIDIA's driver (seen with the one of an H200) answers by CL_INVALID_KERNEL_ARGS at every launch. The other
  /// way round is no fault there. Turns of a loop meet it: what a body gave lies in objects, what came in in an arena.
  static void make_object_for(prepared_kernel& prepared, const built_kernel& from,
                              std::span<const argument_memory> memory);

  void prepare(run_state& state, std::size_t s, std::size_t k);

  /// Bytes of the value `held` that a step reads: all of it, or what its gathers and views pick. For profiles.
  [[nodiscard]] std::uint64_t bytes_read(const run_state& state, const placed_node& step, value_id held) const;

  /// Brings a value that no kernel wrote to the device: expressions of dims, and what the host computed.
  void materialize(run_state& state, value_id v);

  /// The value where the host has it or can tell it.
  [[nodiscard]] std::optional<tensor> on_host(const run_state& state, value_id v) const;

  /// The value on the host, downloaded where only the device has it.
  tensor fetch(run_state& state, value_id v, bool blocking);

  /// The value as bodies handed it under its own shape, or null.
  [[nodiscard]] static const handed_value* handed_at(const run_state& state, value_id v) {
    const auto found = state.handed.find(v);
    return found == state.handed.end() ? nullptr : &found->second;
  }

  /// A bound output: kernels wrote it where it is bound, or it is copied now, as bound_value::reason tells.
  void deliver(run_state& state, std::size_t position);

  void wait(run_state& state);

  void evaluate_on_host(run_state& state, std::size_t s);

  class step_bodies;

  /// A step of control flow: its operands stay where they are, and results are taken from its bodies as they are.
  void run_bodies(run_state& state, std::size_t s);
  /// Takes zeros for what the node's bodies gave in the first inference; whether that is known.
  bool takes_given(run_state& state, const node& n);

  /// The value for a body: where it lies, and nothing of it is copied.
  [[nodiscard]] handed_value hand(run_state& state, value_id v);

  /// A value of this program that a body hands through would end with its last reader here: the result is a copy.
  void keep_handed_through(run_state& state, handed_value& result);

  void take_over(run_state& state, value_id out, handed_value result);

  /// An output of a body: on the host where the host has it; memory that kernels wrote goes to whoever entered.
  [[nodiscard]] handed_value take_output(run_state& state, value_id out,
                                         std::unordered_map<value_id, std::shared_ptr<opencl::device_buffer>>& taken);

  [[nodiscard]] std::vector<handed_value> enter_body(run_state& state, node_id id, std::string_view key,
                                                     std::span<const handed_value> arguments);

  [[nodiscard]] tensor read_back(run_state& state, const handed_value& value);

  /// No turn ran: dims that nothing tells count 0.
  [[nodiscard]] handed_value empty_stack(const run_state& state, node_id id, std::size_t o, std::int64_t axis) const;

  /// Guards whose symbols were bound since the last look. Errors: as check_guards.
  void check_new_guards(run_state& state) const;

  void release_after(run_state& state, std::size_t s);

  static constexpr std::array<std::byte, 1> poison{std::byte{0xFF}};
  static constexpr std::size_t small_waste = 4096;

  opencl::context* where_;
  opencl::program_cache* programs_;
  std::shared_ptr<const program> program_;
  program_storages storages_;  // the same for all values of the symbols
  host_evaluator evaluate_;
  offset_planner planner_;
  opencl::session_queues queues_;
  quick_start quick_;
  double built_seconds_ = 0;
  built_kernels kernels_;
  bool served_ = false;  // an inference came to its end
  /// What bodies gave in the first inference, where quick kernels served it: a rehearsal takes zeros of that shape.
  std::map<value_id, std::pair<dtype, dim_list>> given_by_bodies_;
  std::shared_ptr<const device_weights> weights_;
  std::vector<bool> device_values_;  // by root: some kernel reads or writes it
  image_memory image_memory_;
  std::vector<opencl::device_image> images_;                 // by object
  std::map<value_id, opencl::device_image> callers_images_;  // of inputs and outputs that are not bound
  std::vector<opencl::device_buffer>
      callers_;  // the same by root, of the largest dims so far; none of a body's program
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
  std::string not_optimized_;                    // why no thread makes optimized kernels
  std::unique_ptr<kernel_optimizer> optimizer_;  // last: its thread reads what stands above
};

}  // namespace dnnopt

// What the declarations above do, by what it is about.
#include <dnnopt/backend/run/executor/bodies.hpp>
#include <dnnopt/backend/run/executor/inference.hpp>
#include <dnnopt/backend/run/executor/launches.hpp>
#include <dnnopt/backend/run/executor/memory.hpp>
#include <dnnopt/backend/run/executor/optimizing.hpp>
#include <dnnopt/backend/run/executor/values.hpp>

#endif  // DNNOPT_BACKEND_RUN_EXECUTOR_HPP

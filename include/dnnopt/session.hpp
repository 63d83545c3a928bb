// Owns compile and session: a model made ready for one device, and its inferences.
#ifndef DNNOPT_SESSION_HPP
#define DNNOPT_SESSION_HPP

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dnnopt/backend/opencl/program_cache_options.hpp>
#include <dnnopt/backend/program/memory_options.hpp>
#include <dnnopt/body_row.hpp>
#include <dnnopt/bound_value.hpp>
#include <dnnopt/compile_options.hpp>
#include <dnnopt/compile_report.hpp>
#include <dnnopt/detail/implementation.hpp>
#include <dnnopt/first_start.hpp>
#include <dnnopt/graph.hpp>
#include <dnnopt/kernel_form.hpp>
#include <dnnopt/layout.hpp>
#include <dnnopt/model.hpp>
#include <dnnopt/named_tensors.hpp>
#include <dnnopt/passes/pipeline.hpp>
#include <dnnopt/storage.hpp>
#include <dnnopt/wait_mode.hpp>
#include <dnnopt/warning.hpp>

struct _cl_mem;  // OpenCL's: cl_mem is a pointer to it

namespace dnnopt {

// Who asks a session for its executor or context includes backend/run/executor.hpp or backend/opencl/context.hpp.
// Others do not pay for OpenCL's headers.
class opencl_executor;
class run_observer;
namespace opencl {
class context;
}

/// Where a node runs, for people.
struct placement_row {
  std::string node;
  std::string op;
  std::string where;
  std::string reason;
};

/// A model compiled for one device. Move-only; one thread runs it at a time, and sessions are independent of each
/// other, clones too. A moved-from session can only be destroyed or assigned to.
class session {
 public:
  session(session&& other) noexcept;
  session& operator=(session&& other) noexcept;
  /// Keeps the programs that this session compiled for the next start; blocks while the driver hands out binaries,
  /// where it does not keep programs itself: on PoCL 3.1 no other session of the process may launch kernels meanwhile
  /// (docs/concepts/opencl_runtime.md). Ends the making of optimized kernels (optimizing()) after the one it is at.
  ~session();

  /// Another session of the same model on the same device, for a thread of its own. Both use one optimized graph, one
  /// set of compiled programs and one copy of the weights, which end with the last of them; nothing is compiled, packed
  /// or uploaded. Queue, arena, bound memory and profiles are each one's own; nothing is bound in the new one. Programs
  /// that either makes later (of bodies of control flow, which are made when they are first entered, and for new values
  /// of compile_report::specialized_inputs) are its own, with their weights. Its report is this session's, with no
  /// builds. Precondition: this session does not run meanwhile. Errors: out_of_device_memory; memory_limit.
  [[nodiscard]] session clone();

  /// Writes compiled programs to the cache now instead of at the end. Some drivers compile at the first launch, so that
  /// a call before the first inference would miss their work. Whether nothing had to be written or it was written.
  /// Optimized kernels that are still being made are left to a later call or to the end. What the destructor says of
  /// other sessions holds here too.
  bool save_programs() noexcept;

  /// How far optimized kernels are where quick ones serve (compile_options::first_start): of all programs that this
  /// session made so far. They are compiled from a moment behind the first inference on, and serve from the inference
  /// on that begins when they are there.
  [[nodiscard]] optimizing_state optimizing() const;

  /// One inference. Inputs are found by name, those that are bound must not be given; outputs that are bound are left
  /// out of the result. Compiles a program where inputs decide structure and their values are new
  /// (compile_report::specialized_inputs), or where dims take other branches than before (decided_conditions), with the
  /// errors of compile. Errors: missing_input (also for an input with a
  /// default value that the model was not loaded to have given: load_options::overridden_inputs), type_mismatch,
  /// shape_mismatch, invalid_argument (a bound input is given too, or bound memory overlaps or is too small:
  /// docs/concepts/opencl_runtime.md), and those of devices.
  [[nodiscard]] named_tensors run(const named_tensors& inputs, run_observer* observer = nullptr);

  /// Makes the input or output `name` lie in the caller's OpenCL buffer from the next inference on: dense, row-major,
  /// of the model's element type, in the session's own context (session::context()); or in the texels that
  /// compile_options::texels states for it, in a buffer or an image (docs/concepts/layouts.md). The session keeps the
  /// memory alive until it is unbound or another one takes its place. The answer says whether kernels use it in place,
  /// or what makes every inference copy it. Where an input has symbolic dims, `dims` says which ones it has there.
  ///
  /// Synchronization: whatever the caller enqueued on the buffer, on whatever queue, must be done when run() is called,
  /// and nothing else may touch it before run() returns; then everything that the inference enqueued is done.
  /// Errors: those of bound_memory::bind; unsupported on the reference backend.
  bound_value bind(std::string_view name, _cl_mem* memory, std::optional<dim_list> dims = std::nullopt);
  /// The same for an object of OpenCL's C++ bindings, such as cl::Buffer.
  template <class Memory>
  requires requires(const Memory& memory) {
    { memory() } -> std::convertible_to<_cl_mem*>;
  }
  bound_value bind(std::string_view name, const Memory& memory, std::optional<dim_list> dims = std::nullopt) {
    return bind(name, static_cast<_cl_mem*>(memory()), std::move(dims));
  }
  /// Gives the input or output memory of the session again; it must then be given to run(), or is in its result.
  /// Whether something was bound. Errors: missing_input for an unknown name; unsupported on the reference backend.
  bool unbind(std::string_view name);
  /// All that is bound, inputs first, with the dims of the last inference; nothing on the reference backend.
  [[nodiscard]] std::vector<bound_value> bindings() const;

  /// The optimized graph: of the program that the last run used.
  [[nodiscard]] const graph& optimized() const noexcept;
  [[nodiscard]] const compile_report& report() const noexcept;
  /// The executor that the last run used on an OpenCL device; null on the reference backend, and before the first run
  /// where programs are specialized.
  [[nodiscard]] opencl_executor* executor() const noexcept;
  /// The device, or null on the reference backend.
  [[nodiscard]] const opencl::context* context() const noexcept;
  /// Device commands of the last run (on the reference backend: 0).
  [[nodiscard]] std::size_t kernels() const;
  /// Operators that ran on the host in the last run; on the reference backend all of them.
  [[nodiscard]] std::size_t host_ops() const;
  /// Where every node runs and why.
  [[nodiscard]] std::vector<placement_row> placements() const;
  /// The bodies of control flow of the program that the last run used, each before those inside of it; those inside of
  /// a body that was never entered are left out. Nothing on the reference backend.
  [[nodiscard]] std::vector<body_row> bodies() const;

 private:
  friend session compile(const model& source, const compile_options& options);
  struct state;
  explicit session(std::unique_ptr<state> made) noexcept;

  std::unique_ptr<state> state_;
};

/// The graph of a model after binding and passes, with a report: compile without a device.
/// Errors: those of passes; unknown_pass.
[[nodiscard]] graph optimize(const model& source, const compile_options& options, compile_report& report);

/// Makes a session: the composition of the public passes, lowering, and the device's preparation.
/// Errors: unknown_device, opencl_unavailable, no_kernel (with require_device), kernel_build, out_of_device_memory,
/// memory_limit, and those of passes.
[[nodiscard]] session compile(const model& source, const compile_options& options = {});

}  // namespace dnnopt

#if DNNOPT_IMPLEMENT_SESSION
#include <dnnopt/detail/session_bodies.hpp>
#endif

#endif  // DNNOPT_SESSION_HPP

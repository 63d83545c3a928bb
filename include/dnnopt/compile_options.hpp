// Owns what compile is told about a model, a device and how both meet.
#ifndef DNNOPT_COMPILE_OPTIONS_HPP
#define DNNOPT_COMPILE_OPTIONS_HPP

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include <dnnopt/backend/opencl/program_cache_options.hpp>
#include <dnnopt/backend/program/memory_options.hpp>
#include <dnnopt/first_start.hpp>
#include <dnnopt/graph.hpp>
#include <dnnopt/kernel_form.hpp>
#include <dnnopt/layout.hpp>
#include <dnnopt/model.hpp>
#include <dnnopt/passes/pipeline.hpp>
#include <dnnopt/storage.hpp>
#include <dnnopt/tensor.hpp>
#include <dnnopt/wait_mode.hpp>

namespace dnnopt {

// Who makes an opened_device includes backend/measure/opened_device.hpp, a tuning_store, backend/measure/
// tuning_store.hpp, a join_judge, backend/measure/join_timer.hpp. Others do not pay for OpenCL's headers.
struct opened_device;
class tuning_store;
namespace fusion {
class join_judge;
}

/// What compile is told.
struct compile_options {
  std::string device = "opencl";  ///< "reference", "opencl", "opencl:N" or "opencl:part of a name"
  dnnopt::precision precision = dnnopt::precision::fp32;
  kernel_form form = kernel_form::native;  ///< of the kernels; `native` is that of `opened`, or the device's own
  /// What multiplies halves, floats and bytes in matrix steps: "automatic" is the best for each that the device runs,
  /// "none", or a provider of codegen::matrix_step_table, which is then not tried before kernels are built of it
  /// ("plain" works everywhere and is slow: tests of what stands around steps use it; "mma_sync_tf32" rounds operands
  /// to 11 bits). Kernels for wide vectors never take steps.
  std::string matrix_steps = "automatic";
  /// What multiplies bytes in kernels for wide vectors: "automatic" is the best that works on the device, "none", or a
  /// provider of codegen::integer_dot_table, which is then not tried before kernels are built of it ("plain" works
  /// everywhere). Products of bytes without one are element expressions.
  std::string integer_dots = "automatic";
  /// Whether products of quantized operands become products of integers (recognize_integer_products). compile() and
  /// tune() decide it by the device; optimize(), which knows of none, takes what is said here.
  bool integer_products = false;
  /// Whether dequantized operands stay codes up to their products (pass_environment::code_products), decided likewise.
  bool code_products = false;
  /// What holds packed weights on an OpenCL device.
  dnnopt::memory_objects memory_objects = dnnopt::memory_objects::automatic;
  /// Inputs and outputs that lie as texels in what the caller binds: an image, or a buffer of vectors of four. Their
  /// dims must be known. Kernels use them as they are, or the report's notes say what converts them and why; tensors
  /// given to run() and returned by it stay rows. The reference backend has rows alone, and says so.
  std::map<std::string, texel_layout> texels{};
  bool require_device = false;     ///< a host fallback is an error naming the operators
  std::string passes = "default";  ///< "default", "none", "epilogue", or names separated by commas
  dnnopt::own_passes
      own_passes{};     ///< passes that `passes` can name too: "default,mine" runs `mine` behind the default
  dim_bindings dims{};  ///< values for symbolic dims; what stays symbolic is bound by each run's inputs
  std::map<std::string, dim_list> shapes{};  ///< shapes of inputs, binding the symbols in them
  /// Inputs whose values are known, such as a sampling rate: they are constants, what depends on them alone is folded
  /// (branches of If are chosen), and no run gives them. Errors: missing_input for a name that the model lacks,
  /// type_mismatch, shape_mismatch.
  std::map<std::string, tensor> values{};
  dim_ranges ranges{};             ///< what dims that stay symbolic may be; a run refuses what lies outside
  std::uint64_t memory_limit = 0;  ///< bytes of device memory; 0: none
  opencl::program_cache_options programs{};
  std::shared_ptr<opened_device> opened{};      ///< a device to share; null: the session opens `device` for itself
  std::shared_ptr<const tuning_store> tuned{};  ///< what tune() chose, by device; null: the default choices
  std::shared_ptr<fusion::join_judge> judge{};  ///< joins that a profile decides; null: the shipped rule
  memory_options memory{};                      ///< how intermediate tensors are ordered and placed
  wait_mode wait = wait_mode::blocking;  ///< how a run waits for an OpenCL device; the reference backend has no waits
  /// What kernels that are in no cache are compiled as. `quick` shortens a first start where the driver's optimizer
  /// takes long: see first_start, and session::optimizing for how far its end is. It is taken for `optimized` where
  /// nothing is gained (a quick start on this device found that the driver compiles no sooner), in bodies of control
  /// flow, and with a memory_limit, for optimized kernels are tried on memory of their own.
  dnnopt::first_start first_start = dnnopt::first_start::optimized;
  /// The most programs for certain values of inputs that decide structure (compile_report::specialized_inputs). For
  /// further values the general program runs, with operators on the host; with `require_device` the program that was
  /// not used for longest makes room.
  std::size_t specialized_programs = 8;
  bool poison_freed = false;  ///< for finding faults: opencl_executor::poison_freed of every program
  std::function<void(const graph&, const pass_report&)> after_pass{};  ///< sees every pass
};

}  // namespace dnnopt

#endif  // DNNOPT_COMPILE_OPTIONS_HPP

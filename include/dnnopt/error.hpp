// Owns the exception type of the library and the stable codes that it carries.
#ifndef DNNOPT_ERROR_HPP
#define DNNOPT_ERROR_HPP

#include <stdexcept>
#include <string>
#include <string_view>

namespace dnnopt {

/// Stable error codes; docs/reference/errors.md has a section for each. Hundreds group them by the layer at fault.
enum class errc : int {
  // 1xx: values and core types
  invalid_argument = 101,  ///< a precondition of a public function does not hold
  overflow = 102,          ///< an integer computation (dims, bytes, offsets) leaves its range
  type_mismatch = 103,     ///< an element type differs from the one required
  shape_mismatch = 104,    ///< ranks or dims contradict each other
  unbound_symbol = 105,    ///< an expression is evaluated without a value for one of its symbols
  division_by_zero = 106,  ///< an index expression divides by zero
  // 2xx: files and import
  file_not_found = 201,      ///< the file cannot be opened
  file_io = 202,             ///< reading, mapping or writing fails part-way
  malformed_protobuf = 203,  ///< truncated or random bytes, wrong wire types
  malformed_model = 204,  ///< protobuf is well formed, the model is not (missing graph, missing name, bad field value)
  duplicate_name = 205,   ///< two values or initializers of one graph share a name
  missing_name = 206,     ///< a node reads a value that nothing defines
  graph_cycle = 207,      ///< nodes depend on each other
  unsupported_opset = 208,      ///< an opset newer (or older) than the operator tables know
  unknown_operator = 209,       ///< no operator of that name in that domain and opset
  bad_attribute = 210,          ///< an attribute is missing, of another type, or out of its range
  bad_tensor_data = 211,        ///< tensor data shorter or longer than its dims say
  external_data_missing = 212,  ///< the external data file does not exist
  external_data_short = 213,    ///< the external data file ends before offset + length
  external_data_path = 214,     ///< an external data location is absolute or escapes the model's folder
  bad_arity = 215,              ///< a node has too few or too many inputs or outputs
  // 3xx: passes
  verification_failed = 301,  ///< the graph breaks an invariant; names node, rule and pass
  contradiction = 302,        ///< forward and backward shape propagation disagree
  unknown_pass = 303,         ///< a pass name that the pass list does not hold
  // 4xx: devices and execution
  opencl_unavailable = 401,    ///< no OpenCL library, platform or device
  unknown_device = 402,        ///< no device fits the given specification
  opencl_call = 403,           ///< an OpenCL call failed; the text has its name and status
  kernel_build = 404,          ///< a kernel does not build; the text has the log, options and kernel name
  out_of_device_memory = 405,  ///< device memory is exhausted or a limit is exceeded
  no_kernel = 406,             ///< an operator has no kernel and the host fallback is forbidden
  unsupported = 407,           ///< a combination of operator, type or attribute that the backend does not compute
  missing_input = 408,         ///< a graph input was not given
  memory_limit = 409,          ///< what the plan needs exceeds the memory limit
  cancelled = 410,             ///< an inference was taken back before it started
  // 5xx: tools
  usage = 501,     ///< wrong command line
  bad_file = 502,  ///< a data file (CSV, JSON, npy, cache) is malformed
};

/// Every exception of the library. what() is "[dnnopt.<code>] <text>"; the text holds the offending values.
class error : public std::runtime_error {
 public:
  error(errc code, std::string_view text)
      : std::runtime_error("[dnnopt." + std::to_string(static_cast<int>(code)) + "] " + std::string(text)),
        code_(code) {}

  /// The stable code.
  [[nodiscard]] errc code() const noexcept { return code_; }

 private:
  errc code_;
};

}  // namespace dnnopt

#endif  // DNNOPT_ERROR_HPP

// Owns what one inference on a device tells of itself: commands, and what its dims cost beside them.
#ifndef DNNOPT_BACKEND_RUN_RUN_FIGURES_HPP
#define DNNOPT_BACKEND_RUN_RUN_FIGURES_HPP

#include <chrono>
#include <cstddef>

namespace dnnopt {

/// Seconds of one inference on the host, by what they were for. Dims that the session has met before cost little of the
/// first four (SoD2, section 4.4, calls them shape inference, memory planning and allocation).
struct run_parts {
  double evaluate = 0;  ///< symbols from the inputs, guards
  double plan = 0;      ///< lifetimes and offsets of intermediate tensors
  double allocate = 0;  ///< buffers and the arena
  double bind = 0;      ///< kernel objects, arguments and work-group sizes
  double infer = 0;     ///< all else: transfers, launches, host operators, waiting
};

/// Adds to a part the seconds of a scope.
class timed_part {
 public:
  explicit timed_part(double& part) : part_(part), begin_(clock::now()) {}
  timed_part(const timed_part&) = delete;
  timed_part& operator=(const timed_part&) = delete;
  ~timed_part() { part_ += std::chrono::duration<double>(clock::now() - begin_).count(); }

 private:
  using clock = std::chrono::steady_clock;
  double& part_;
  clock::time_point begin_;
};

/// What one inference enqueued, and where its time went.
struct run_figures {
  std::size_t kernels = 0;   ///< launches, copies and fills between inputs being there and outputs being read
  std::size_t host_ops = 0;  ///< operators that the reference backend computed
  std::size_t events = 0;    ///< OpenCL events created
  std::size_t uploads = 0;   ///< transfers from the host to the device
  std::size_t downloads = 0;
  run_parts parts;
  bool quick_kernels = false;  ///< some kernels were built without the driver's optimizer
};

}  // namespace dnnopt

#endif  // DNNOPT_BACKEND_RUN_RUN_FIGURES_HPP

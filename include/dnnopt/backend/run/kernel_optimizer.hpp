// Owns the thread that compiles a program's optimized kernels while quick ones serve.
//
// Some drivers compile a kernel at its first launch, for the sizes that it is launched with. So the thread ends with an
// inference of its own, on memory of its own, beside the weights that both use: whatever the driver leaves for later is
// done then. It waits for each kernel before the next, so that it can be ended between two of them.
//
// It asks the driver for no binaries: inferences launch kernels meanwhile, and a driver may not bear both at once
// (PoCL 3.1 compiles anew to give a binary, and then asserts that no other thread has let go of the same kernel). Who
// keeps programs does so when the session ends, or when it is told to (session::save_programs).
#ifndef DNNOPT_BACKEND_RUN_KERNEL_OPTIMIZER_HPP
#define DNNOPT_BACKEND_RUN_KERNEL_OPTIMIZER_HPP

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <dnnopt/backend/opencl/program_cache.hpp>
#include <dnnopt/backend/run/built_kernels.hpp>
#include <dnnopt/first_start.hpp>
#include <dnnopt/tensor.hpp>

namespace dnnopt {

class opencl_executor;

/// What an executor is told about a quick start; nothing: its kernels are optimized from the start.
struct quick_start {
  /// Whether kernels that are in no cache may be quick ones: asked when there are some.
  std::function<bool()> allowed{};
  /// Told, by the thread, what both ways took: seconds from the first program built to the end of the first inference.
  std::function<void(double quick, double optimized)> learned{};
};

/// Makes optimized kernels for `owner`, which must outlive it, as must `programs`.
class kernel_optimizer {
 public:
  /// How long after the first inference the thread begins: a session that ends with it has nothing to wait for.
  static constexpr std::chrono::milliseconds pause{200};

  /// `inputs` are of an inference that `owner` did, and belong to nobody else. `quick_seconds` are those of
  /// quick_start::learned.
  kernel_optimizer(const opencl_executor& owner, opencl::program_cache& programs, std::vector<tensor> inputs,
                   double quick_seconds, std::function<void(double, double)> learned);
  kernel_optimizer(const kernel_optimizer&) = delete;
  kernel_optimizer& operator=(const kernel_optimizer&) = delete;
  /// Ends the thread: after the kernel, or the joined program, that it is at.
  ~kernel_optimizer();

  /// Whether there are kernels to take. Any thread may ask.
  [[nodiscard]] bool has_kernels() const noexcept { return ready_.load(std::memory_order_acquire); }
  /// The kernels, once. Precondition: has_kernels().
  [[nodiscard]] built_kernels take() { return std::move(made_); }
  /// Any thread may ask.
  [[nodiscard]] optimizing_state state() const;

  /// An inference of the owner, for as long as this lives. Some drivers compile and launch under one lock, so that each
  /// launch of an inference would wait for a kernel of the thread: it leaves at least every other turn to inferences.
  class turn {
   public:
    explicit turn(kernel_optimizer* optimizer) : optimizer_(optimizer) {
      if (optimizer_ != nullptr) optimizer_->inferences(1, 0);
    }
    turn(const turn&) = delete;
    turn& operator=(const turn&) = delete;
    ~turn() {
      if (optimizer_ != nullptr) optimizer_->inferences(0, 1);
    }

   private:
    kernel_optimizer* optimizer_;
  };

 private:
  class launch_by_launch;
  struct ended {};

  void work();
  void inferences(std::size_t begun, std::size_t done) {
    {
      const std::lock_guard lock(mutex_);
      begun_ += begun;
      ended_ += done;
    }
    wake_.notify_all();
  }
  /// Comes before each program and each launch: lets an inference that is under way come to its end, unless one did
  /// since the last call. Errors: ended, once the destructor was called.
  void go_on() {
    std::unique_lock lock(mutex_);
    wake_.wait(lock, [&] { return end_ || begun_ == ended_ || ended_ != seen_; });
    seen_ = ended_;
    if (end_) throw ended();
  }

  const opencl_executor& owner_;
  opencl::program_cache& programs_;
  std::vector<tensor> inputs_;
  double quick_seconds_;
  std::function<void(double, double)> learned_;
  built_kernels made_;
  std::atomic<bool> ready_{false};
  std::atomic<std::size_t> launched_{0};
  std::size_t all_ = 0;
  mutable std::mutex mutex_;  // of what follows
  std::condition_variable wake_;
  bool end_ = false;
  std::size_t begun_ = 0;  // inferences of the owner
  std::size_t ended_ = 0;
  std::size_t seen_ = 0;  // of ended_, by the thread
  bool done_ = false;
  std::string failure_;
  std::thread thread_;  // last: it uses all of these
};

}  // namespace dnnopt

#endif  // DNNOPT_BACKEND_RUN_KERNEL_OPTIMIZER_HPP

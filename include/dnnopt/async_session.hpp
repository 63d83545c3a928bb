// Owns inferences that an application begins and waits for later.
#ifndef DNNOPT_ASYNC_SESSION_HPP
#define DNNOPT_ASYNC_SESSION_HPP

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <exception>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

#include <dnnopt/error.hpp>
#include <dnnopt/named_tensors.hpp>
#include <dnnopt/session.hpp>

namespace dnnopt {

/// A session with a thread of its own, which runs what was begun, one inference after the other in the order of
/// beginning, while the application prepares the next inputs or draws the last outputs. Any thread may begin, cancel
/// and wait. Not copyable, not movable.
class async_session {
 public:
  /// Called on the session's thread when an inference ended: with its outputs, or with none and what was thrown. It may
  /// begin further inferences and cancel, not wait for all. It must not throw.
  using ended = std::function<void(named_tensors outputs, std::exception_ptr failure)>;

  /// Takes a session over, which has run or not. Errors: std::system_error where no thread can be started.
  explicit async_session(session taken) : session_(std::move(taken)), thread_([this] { serve(); }) {}
  async_session(const async_session&) = delete;
  async_session& operator=(const async_session&) = delete;

  /// Waits for the inference that is under way; those that have not started are cancelled.
  ~async_session() {
    (void)cancel();
    {
      const std::lock_guard lock(lock_);
      ending_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }

  /// Begins an inference and returns at once; the inputs' memory is kept until it ended. The future gives what
  /// session::run gives and throws what it throws, or errc::cancelled.
  [[nodiscard]] std::future<named_tensors> begin(named_tensors inputs) {
    auto promise = std::make_shared<std::promise<named_tensors>>();
    std::future<named_tensors> result = promise->get_future();
    begin(std::move(inputs), [promise](named_tensors outputs, std::exception_ptr failure) {
      if (failure)
        promise->set_exception(std::move(failure));
      else
        promise->set_value(std::move(outputs));
    });
    return result;
  }

  /// The same with a function that is called when it ended; where it is cancelled, on the thread that cancels, with
  /// errc::cancelled.
  void begin(named_tensors inputs, ended then) {
    {
      const std::lock_guard lock(lock_);
      begun_.push_back({std::move(inputs), std::move(then)});
    }
    changed_.notify_all();
  }

  /// Takes back what was begun and has not started; how many that were. What is under way ends as it would: OpenCL
  /// commands cannot be taken back.
  std::size_t cancel() {
    std::deque<inference> taken;
    {
      const std::lock_guard lock(lock_);
      taken.swap(begun_);
    }
    changed_.notify_all();
    for (inference& one : taken)
      one.then({}, std::make_exception_ptr(error(errc::cancelled, "the inference was taken back before it started")));
    return taken.size();
  }

  /// Inferences that were begun and have not ended.
  [[nodiscard]] std::size_t waiting() const {
    const std::lock_guard lock(lock_);
    return begun_.size() + (running_ ? 1 : 0);
  }

  /// Returns when all that was begun has ended.
  void wait() {
    std::unique_lock lock(lock_);
    changed_.wait(lock, [this] { return begun_.empty() && !running_; });
  }

  /// The session, for its report or to bind memory. Precondition: nothing is waiting, and nothing is begun meanwhile.
  [[nodiscard]] session& idle() noexcept { return session_; }

 private:
  struct inference {
    named_tensors inputs;
    ended then;
  };

  void serve() {
    std::unique_lock lock(lock_);
    while (true) {
      changed_.wait(lock, [this] { return ending_ || !begun_.empty(); });
      if (begun_.empty()) return;
      inference one = std::move(begun_.front());
      begun_.pop_front();
      running_ = true;
      lock.unlock();
      serve_one(one);
      // What was given is freed before the application hears of the end of all.
      one = {};
      lock.lock();
      running_ = false;
      changed_.notify_all();
    }
  }
  void serve_one(inference& one) {
    named_tensors outputs;
    std::exception_ptr failure;
    try {
      outputs = session_.run(one.inputs);
    } catch (...) {
      failure = std::current_exception();
    }
    one.then(std::move(outputs), std::move(failure));
  }

  session session_;
  mutable std::mutex lock_;  ///< of what follows
  std::condition_variable changed_;
  std::deque<inference> begun_;
  bool running_ = false;
  bool ending_ = false;
  std::thread thread_;  ///< the last member: it uses the others
};

}  // namespace dnnopt

#endif  // DNNOPT_ASYNC_SESSION_HPP

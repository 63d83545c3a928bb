// Owns the division of independent work of the reference backend among threads.
#ifndef DNNOPT_REFERENCE_PARALLEL_HPP
#define DNNOPT_REFERENCE_PARALLEL_HPP

#include <algorithm>
#include <cstdint>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace dnnopt::reference {

/// A callable of (begin, end) by reference, its type erased: threads are instantiated once, not for every caller.
struct range_task {
  void* callable;
  void (*call)(void* callable, std::int64_t begin, std::int64_t end);

  void operator()(std::int64_t begin, std::int64_t end) const { call(callable, begin, end); }
};

/// As parallel_ranges.
inline void run_parallel_ranges(std::int64_t count, std::int64_t grain, range_task task) {
  const std::int64_t cores = std::max<std::int64_t>(1, std::thread::hardware_concurrency());
  const std::int64_t threads = std::min(cores, count / std::max<std::int64_t>(1, grain));
  if (threads < 2) {
    if (count > 0) task(0, count);
    return;
  }
  std::mutex mutex;
  std::exception_ptr failure;
  const auto work = [&](std::int64_t part) {
    try {
      task(count * part / threads, count * (part + 1) / threads);
    } catch (...) {
      const std::lock_guard lock(mutex);
      if (!failure) failure = std::current_exception();
    }
  };
  std::vector<std::thread> helpers;
  helpers.reserve(static_cast<std::size_t>(threads - 1));
  for (std::int64_t part = 1; part < threads; ++part) helpers.emplace_back(work, part);
  work(0);
  for (std::thread& helper : helpers) helper.join();
  if (failure) std::rethrow_exception(failure);
}

/// Calls `f(begin, end)` for ranges that together are [0, count), each once, on as many threads as the machine has
/// where there are at least two ranges of `grain`. `f` is called concurrently. The first exception is thrown on.
template <class F>
void parallel_ranges(std::int64_t count, std::int64_t grain, F f) {
  run_parallel_ranges(count, grain, {&f, [](void* callable, std::int64_t begin, std::int64_t end) {
                                       (*static_cast<F*>(callable))(begin, end);
                                     }});
}

}  // namespace dnnopt::reference

#endif  // DNNOPT_REFERENCE_PARALLEL_HPP

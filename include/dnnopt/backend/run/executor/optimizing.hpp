// Owns how optimized kernels are made beside an executor, and how they take the place of its quick ones.
#ifndef DNNOPT_BACKEND_RUN_EXECUTOR_OPTIMIZING_HPP
#define DNNOPT_BACKEND_RUN_EXECUTOR_OPTIMIZING_HPP

#include <dnnopt/backend/run/executor.hpp>

namespace dnnopt {

inline opencl_executor::opencl_executor(const opencl_executor& of, built_kernels kernels, offset_planner planner,
                                        body_maker bodies)
    : where_(of.where_),
      programs_(of.programs_),
      program_(of.program_),
      storages_(of.storages_),
      evaluate_(of.evaluate_),
      planner_(std::move(planner)),
      queues_(*of.where_),
      kernels_(std::move(kernels)),
      weights_(of.weights_),
      placement_of_arena_(of.placement_of_arena_),
      bound_(*of.where_, *of.program_),
      bodies_(std::move(bodies)) {
  find_what_runs();
}

inline std::unique_ptr<opencl_executor> opencl_executor::beside(offset_planner planner, body_maker bodies) {
  take_optimized_kernels();
  std::unique_ptr<opencl_executor> made(new opencl_executor(*this, kernels_, std::move(planner), std::move(bodies)));
  made->placement_of_arena_ = placement_of_arena_;
  made->wait_ = wait_;
  made->poison_ = poison_;
  return made;
}

inline built_kernels opencl_executor::timed_build() {
  const auto begin = std::chrono::steady_clock::now();
  built_kernels built = build_kernels(*programs_, *program_, quick_.allowed);
  built_seconds_ = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return built;
}

inline void opencl_executor::find_what_runs() {
  find_device_values();
  for (const value_id in : program_->g->inputs())
    input_symbols_.merge(fusion::symbols_given_by(program_->g->facts(in)));
  for (const placed_node& step : program_->steps)
    if (step.where == placement::bodies) bodies_.add(*program_->g, step.id);
  make_images();
}

inline std::vector<tensor> opencl_executor::copies_of(std::span<const tensor> inputs,
                                                      const symbol_values& symbols) const {
  std::vector<tensor> copies;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (bound_.is_input_bound(i)) {
      // What the caller's memory holds is the caller's: numbers do not matter here, and zeros are lawful indices.
      const value& in = program_->g->value_at(program_->g->inputs()[i]);
      dim_list dims;
      for (const index_expr& dim : in.facts.dims.value()) dims.push_back(dim.evaluate(symbols));
      copies.emplace_back(in.facts.type, std::move(dims));
      continue;
    }
    copies.push_back(inputs[i]);
    if (copies.back().empty()) continue;
    if (copies.back().type() == dtype::string)
      (void)copies.back().mutable_strings();
    else
      (void)copies.back().mutable_bytes();
  }
  return copies;
}

inline void opencl_executor::served(std::span<const tensor> inputs, double seconds) {
  if (served_) return;
  served_ = true;
  if (!kernels_.quick) {
    programs_->served(kernels_.requests);
    return;
  }
  try {
    // What bodies took, whose kernels are never quick, tells nothing of quick ones.
    optimizer_ = std::make_unique<kernel_optimizer>(*this, *programs_, copies_of(inputs, last_symbols_),
                                                    built_seconds_ + seconds,
                                                    given_by_bodies_.empty() ? quick_.learned : nullptr);
  } catch (const std::exception& e) {
    // The inference did what it should; no memory for a copy, or no thread, leaves the kernels that serve.
    not_optimized_ = e.what();
  }
}

inline void opencl_executor::rehearse(std::span<const tensor> inputs, run_observer& observer) {
  try {
    (void)run(inputs, &observer);
  } catch (const error&) {
    // Zeros may be unlawful where a body gave sizes or indices. What was not launched is compiled when it is, no worse
    // than without a rehearsal.
    if (given_by_bodies_.empty()) throw;
  }
}

inline void opencl_executor::take_optimized_kernels() {
  if (!kernels_.quick || optimizer_ == nullptr || !optimizer_->has_kernels()) return;
  kernels_ = optimizer_->take();
  for (instance& made : instances_)
    for (std::vector<prepared_kernel>& step : made.kernels)
      for (prepared_kernel& prepared : step) prepared = {};
}

inline optimizing_state opencl_executor::optimizing() const {
  if (optimizer_ != nullptr) return optimizer_->state();
  if (!not_optimized_.empty()) return {0, 1, true, not_optimized_};
  // It begins behind the first inference.
  return {0, kernels_.quick ? 1u : 0u, !kernels_.quick};
}

/// Waits for each launch before the next.
class kernel_optimizer::launch_by_launch final : public run_observer {
 public:
  explicit launch_by_launch(kernel_optimizer& owner) : owner_(owner) {}
  [[nodiscard]] bool wants_events() const override { return false; }
  [[nodiscard]] opencl::event_sink* kernel(std::size_t, std::size_t, std::uint64_t, std::uint64_t) override {
    return nullptr;
  }
  void before(std::size_t, std::size_t, opencl::command_queue& queue) override {
    queue.finish();
    owner_.go_on();
    ++owner_.launched_;
  }

 private:
  kernel_optimizer& owner_;
};

inline kernel_optimizer::kernel_optimizer(const opencl_executor& owner, opencl::program_cache& programs,
                                          std::vector<tensor> inputs, double quick_seconds,
                                          std::function<void(double, double)> learned)
    : owner_(owner),
      programs_(programs),
      inputs_(std::move(inputs)),
      quick_seconds_(quick_seconds),
      learned_(std::move(learned)) {
  for (const placed_node& step : owner.executed().steps)
    all_ += step.lowered.kernels.size() + step.lowered.prepare.size();
  thread_ = std::thread([this] { work(); });
}

inline kernel_optimizer::~kernel_optimizer() {
  {
    const std::lock_guard lock(mutex_);
    end_ = true;
  }
  wake_.notify_all();
  thread_.join();
}

inline optimizing_state kernel_optimizer::state() const {
  const std::lock_guard lock(mutex_);
  return {done_ && failure_.empty() ? all_ : launched_.load(), all_, done_, failure_};
}

inline void kernel_optimizer::work() {
  std::string failure;
  try {
    {
      std::unique_lock lock(mutex_);
      wake_.wait_for(lock, pause, [&] { return end_; });
    }
    const auto begin = std::chrono::steady_clock::now();
    const program& p = owner_.executed();
    kernels_to_build wanted = kernels_of(p);
    const std::vector<opencl::program_request> requests = wanted.requests;
    std::vector<cl::Program> built;
    for (const opencl::program_request& request : requests) {
      go_on();
      built.push_back(programs_.build(request));
    }
    go_on();
    built_kernels made =
        with_allowed_work_groups(kernels_by_step(p, std::move(wanted), built), p, owner_.where_->where().handle());
    {
      opencl_executor rehearsal(owner_, made, planner_at_run_time(), nullptr);
      rehearsal.served_ = true;
      rehearsal.given_by_bodies_ = owner_.given_by_bodies_;
      owner_.weights_->rehearse(rehearsal.queues_.use(false), made.prepare, [&] {
        go_on();
        ++launched_;
      });
      launch_by_launch observer(*this);
      rehearsal.rehearse(inputs_, observer);
    }
    made_ = std::move(made);
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    ready_.store(true, std::memory_order_release);
    programs_.served(requests);
    if (learned_) learned_(quick_seconds_, took.count());
  } catch (const ended&) {
    failure = "ended before optimized kernels were there";
  } catch (const std::exception& e) {
    failure = e.what();
  }
  const std::lock_guard lock(mutex_);
  failure_ = std::move(failure);
  done_ = true;
}

}  // namespace dnnopt

#endif  // DNNOPT_BACKEND_RUN_EXECUTOR_OPTIMIZING_HPP

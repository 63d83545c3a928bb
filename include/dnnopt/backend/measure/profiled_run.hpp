// Owns the connection of an executor to the profiler: descriptions of launches, and a run observer that times commands.
#ifndef DNNOPT_BACKEND_MEASURE_PROFILED_RUN_HPP
#define DNNOPT_BACKEND_MEASURE_PROFILED_RUN_HPP

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dnnopt/backend/measure/event_timer.hpp>
#include <dnnopt/backend/measure/kernel_injector.hpp>
#include <dnnopt/backend/opencl/command_queue.hpp>
#include <dnnopt/backend/opencl/context.hpp>
#include <dnnopt/backend/program/program.hpp>
#include <dnnopt/backend/run/executor.hpp>
#include <dnnopt/backend/run/observer.hpp>
#include <dnnopt/profile/clocks/host_clock.hpp>
#include <dnnopt/profile/profiler.hpp>

namespace dnnopt {

/// The name of a node, or its operator's where it has none.
[[nodiscard]] inline std::string name_or_operator(const node& n) {
  return n.name.empty() ? std::string(n.op->name) : n.name;
}

/// What stays the same of kernel `k` of a step, or of its host operator. `within` stands before its name: the bodies of
/// control flow that it is in.
[[nodiscard]] inline profile::launch_info describe_launch(const program& p, const placed_node& step, std::size_t k,
                                                          const std::string& within = {}) {
  const std::string part = step.lowered.kernels.empty() ? std::string() : codegen::part_of_node(step.lowered, k);
  const graph& g = *p.g;
  const node& n = g.node_at(step.id);
  profile::launch_info info;
  info.name = within + name_or_operator(n) + part;
  bool moves_only = true;
  for (std::size_t i = 0; i < step.members.size(); ++i) {
    const node& member = g.node_at(step.members[i]);
    info.ops.push_back({member.name, std::string(member.op->name)});
    if (step.members[i] == step.id) info.anchor = i;
    moves_only = moves_only && member.op->kind == computation_kind::view;
  }
  info.work = moves_only ? profile::work_class::layout : profile::work_class::compute;
  info.layout = "buffer";
  for (const value_id in : n.inputs)
    if (in != no_value && g.facts(in).dims)
      info.shapes += (info.shapes.empty() ? "" : ",") + to_string(*g.facts(in).dims);
  info.shapes += "->";
  for (std::size_t i = 0; i < n.outputs.size(); ++i)
    if (n.outputs[i] != no_value && g.facts(n.outputs[i]).dims)
      info.shapes += (i == 0 ? "" : ",") + to_string(*g.facts(n.outputs[i]).dims);
  for (const auto& [name, held] : n.attributes) {
    std::string text;
    if (const auto* number = std::get_if<std::int64_t>(&held)) text = std::to_string(*number);
    if (const auto* list = std::get_if<std::vector<std::int64_t>>(&held))
      text = to_string(std::span<const std::int64_t>(*list));
    if (!text.empty()) info.attributes += (info.attributes.empty() ? "" : " ") + name + "=" + text;
  }
  return info;
}

/// Times the runs of one executor into one profiler. The profiler and the program must outlive it.
///
///     profiled_run observer(profiler, executor.executed());
///     observer.begin();
///     outputs = session.run(inputs, &observer);
///     observer.end();
class profiled_run final : public run_observer {
 public:
  /// Describes every launch of the program to the profiler once; those of bodies of control flow when they are first
  /// entered.
  profiled_run(profile::profiler& into, const program& p,
               profile::event_collection how = profile::event_collection::blocking)
      : into_(&into), timer_(into, how), whole_(*this, p, {}) {
    upload_ = into.describe(plain("upload"));
    download_ = into.describe(plain("download"));
    copy_ = into.describe(plain("copy to a bound output"));
    wait_ = into.describe(plain("wait"));
  }

  /// Starts the next inference's record; call right before the run.
  void begin() { recorder_ = into_->begin_run(); }
  /// Hands over the run's events; call right after the run.
  void end() {
    const bool taken = recorder_.taken();
    // The inference ends here; reading stamps is the profiler's own time. The writer is woken when it has them: beside
    // it a probe's call would return later than the commands' before.
    recorder_.end(false);
    if (!taken) return;
    const std::int64_t begin = now();
    if (injector_ != nullptr && into_->wants_arrival()) injector_->inject_arrival(*arrivals_, *into_);
    timer_.collect();
    into_->add_collection_time(now() - begin);
    into_->wake_writer();
  }

  /// From now on an empty kernel on the profiling queue `queue` follows inferences that were timed, where the profiler
  /// wants to see when it arrives. Both must outlive this.
  void follow_arrivals(profile::kernel_injector& injector, opencl::command_queue& queue) noexcept {
    injector_ = &injector;
    arrivals_ = &queue;
  }

  /// Waits until the driver has called back for every command that was timed.
  void wait_for_callbacks() noexcept { timer_.wait_for_callbacks(); }

  [[nodiscard]] bool observes() const override { return recorder_.taken(); }
  [[nodiscard]] opencl::event_sink* kernel(std::size_t s, std::size_t k, std::uint64_t flops,
                                           std::uint64_t bytes) override {
    return whole_.kernel(s, k, flops, bytes);
  }
  [[nodiscard]] run_observer* body(const node& by, std::string_view key, const program& executed) override {
    return whole_.body(by, key, executed);
  }
  [[nodiscard]] opencl::event_sink* transfer(direction way) override {
    switch (way) {
      case direction::upload:
        return timer_.watch(recorder_, profile::event_kind::upload, upload_);
      case direction::download:
        return timer_.watch(recorder_, profile::event_kind::download, download_);
      case direction::within:
        return timer_.watch(recorder_, profile::event_kind::copy, copy_);
    }
    return nullptr;
  }
  [[nodiscard]] std::int64_t now() const override { return profile::host_now_ns(); }
  void host_operator(std::size_t s, std::int64_t begin) override { whole_.host_operator(s, begin); }
  void waited(std::int64_t begin) override { interval(profile::event_kind::wait, wait_, begin); }

 private:
  /// The launches of one program: the model's, or that of a body.
  class program_run final : public run_observer {
   public:
    program_run(profiled_run& owner, const program& p, std::string within)
        : owner_(&owner), within_(std::move(within)), g_(p.g) {
      launches_.resize(p.steps.size());
      for (std::size_t s = 0; s < p.steps.size(); ++s) {
        const placed_node& step = p.steps[s];
        const auto describe = [&](std::size_t k) {
          launches_[s].push_back(owner.into_->describe(describe_launch(p, step, k, within_)));
        };
        if (is_on_host(step.where)) describe(0);
        for (std::size_t k = 0; k < step.lowered.kernels.size(); ++k) describe(k);
      }
    }

    [[nodiscard]] opencl::event_sink* kernel(std::size_t s, std::size_t k, std::uint64_t flops,
                                             std::uint64_t bytes) override {
      return owner_->timer_.watch(owner_->recorder_, profile::event_kind::kernel, launches_[s][k], bytes, flops);
    }
    [[nodiscard]] opencl::event_sink* transfer(direction way) override { return owner_->transfer(way); }
    [[nodiscard]] std::int64_t now() const override { return owner_->now(); }
    void host_operator(std::size_t s, std::int64_t begin) override {
      owner_->interval(profile::event_kind::host_operator, launches_[s][0], begin);
    }
    void waited(std::int64_t begin) override { owner_->waited(begin); }
    [[nodiscard]] run_observer* body(const node& by, std::string_view key, const program& executed) override {
      std::unique_ptr<program_run>& seen = bodies_[{&by, executed.g.get()}];
      if (!seen)
        seen = std::make_unique<program_run>(*owner_, executed,
                                             within_ + name_or_operator(by) + "." + std::string(key) + "/");
      return seen.get();
    }

   private:
    profiled_run* owner_;
    std::string within_;
    std::shared_ptr<const graph> g_;  // keeps its address from being another's
    std::vector<std::vector<std::uint32_t>> launches_;
    std::map<std::pair<const node*, const graph*>, std::unique_ptr<program_run>> bodies_;
  };

  static profile::launch_info plain(const char* name) {
    profile::launch_info info;
    info.name = name;
    info.work = profile::work_class::not_of_model;
    return info;
  }

  void interval(profile::event_kind kind, std::uint32_t launch, std::int64_t begin) {
    if (!recorder_.timed(kind)) return;
    profile::raw_event event;
    event.launch = launch;
    event.kind = kind;
    event.host_begin_ns = begin;
    event.host_end_ns = profile::host_now_ns();
    recorder_.record(event);
  }

  profile::profiler* into_;
  profile::command_timer timer_;
  profile::run_recorder recorder_;
  profile::kernel_injector* injector_ = nullptr;
  opencl::command_queue* arrivals_ = nullptr;
  program_run whole_;
  std::uint32_t upload_ = 0;
  std::uint32_t download_ = 0;
  std::uint32_t copy_ = 0;
  std::uint32_t wait_ = 0;
};

}  // namespace dnnopt

#endif  // DNNOPT_BACKEND_MEASURE_PROFILED_RUN_HPP

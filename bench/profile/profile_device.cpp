// Measures the profiler on a device with kernels of its own, without a model.
//
//   profile_device DEVICE clock              methods of clock synchronization and their residuals; quality by injected
//                                            kernels
//   profile_device DEVICE timeline SECONDS [best|fitting|both [alone|amid|held|all]]   100 equal layers: error of start
//                                            times, alone, amid other layers and behind a long kernel, each idle and
//                                            beside a load, with the best method and with dynamic fitting alone
//   profile_device DEVICE overhead SECONDS   small launches with the profiler on and off in turn
//   profile_device DEVICE copies             event times against the slope over injected copies
//
// DEVICE is a device specification such as opencl or opencl:NVIDIA.
#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <dnnopt/backend/measure/event_timer.hpp>
#include <dnnopt/backend/measure/kernel_injector.hpp>
#include <dnnopt/backend/opencl/context.hpp>
#include <dnnopt/backend/opencl/device.hpp>
#include <dnnopt/profile/host_timer.hpp>
#include <dnnopt/profile/injected_copies.hpp>
#include <dnnopt/profile/statistics.hpp>
#include <dnnopt/profile/telemetry.hpp>

using namespace dnnopt;
using namespace dnnopt::profile;

namespace {

constexpr const char* layer_source = R"CLC(
__kernel void layer(__global const float* x, __global float* y, int n, int rounds) {
  const int i = get_global_id(0);
  float v = x[i % n];
  for (int r = 0; r < rounds; ++r) v = fma(v, 0.9999f, 0.0001f * r);
  y[i % n] = v * fmin(fmax(v / 6.0f + 0.5f, 0.0f), 1.0f);  // HardSwish
}
)CLC";

struct bench_device {
  opencl::context context;
  cl::Program program;
  cl::Kernel kernel;
  cl::Buffer in, out;
  cl_int rounds = 64;
  std::size_t items = 1 << 16;

  explicit bench_device(const std::string& spec) : context(opencl::select_device(spec)) {
    cl_int status = 0;
    const char* source = layer_source;
    const cl_device_id device = context.where().handle();
    program = cl::Program(::clCreateProgramWithSource(context.handle(), 1, &source, nullptr, &status), false);
    opencl::check(::clBuildProgram(program(), 1, &device, "", nullptr, nullptr), "clBuildProgram");
    kernel = cl::Kernel(::clCreateKernel(program(), "layer", &status), false);
    opencl::check(status, "clCreateKernel");
    for (cl::Buffer* buffer : {&in, &out}) {
      *buffer =
          cl::Buffer(::clCreateBuffer(context.handle(), CL_MEM_READ_WRITE, (1 << 16) * 4, nullptr, &status), false);
      opencl::check(status, "clCreateBuffer");
    }
    set(rounds);
  }
  void set(cl_int count) {
    rounds = count;
    const cl_int n = 1 << 16;
    cl_mem x = in(), y = out();
    ::clSetKernelArg(kernel(), 0, sizeof(x), &x);
    ::clSetKernelArg(kernel(), 1, sizeof(y), &y);
    ::clSetKernelArg(kernel(), 2, sizeof(n), &n);
    ::clSetKernelArg(kernel(), 3, sizeof(rounds), &rounds);
  }
  void launch(opencl::command_queue& queue, opencl::event_sink* sink) {
    queue.launch(kernel(), {1, {items, 1, 1}, {64, 0, 0}}, "layer", sink);
  }
  [[nodiscard]] clock_sync_options clock() const { return clock_options_of(context.where().handle()); }

  /// Sets rounds so that a kernel takes about `ns`.
  void calibrate(opencl::command_queue& queue, double ns) {
    const auto each = [&](cl_int count) {
      set(count);
      std::vector<double> times;
      for (int r = 0; r < 5; ++r) {
        const std::int64_t begin = host_now_ns();
        for (int i = 0; i < 20; ++i) launch(queue, nullptr);
        queue.finish();
        times.push_back(static_cast<double>(host_now_ns() - begin) / 20.0);
      }
      return exact_quantile(times, 0.5);
    };
    cl_int count = 64;
    while (each(count) < ns && count < (1 << 22)) count *= 2;
    const double slow = each(count);
    set(std::max<cl_int>(1, static_cast<cl_int>(count * ns / slow)));
  }
};

void print_clock(const profile_report& report) {
  for (const clock_report& c : report.clock_candidates)
    std::printf("  %-34s %8llu pairs %6llu outliers  residual p50 %7.0f p90 %7.0f ns  drift %+.4f ppm\n",
                c.method.c_str(), static_cast<unsigned long long>(c.pairs), static_cast<unsigned long long>(c.outliers),
                c.residual_p50_ns, c.residual_p90_ns, c.drift_ppm);
  std::printf("chosen: %s, offset %.0f ns, %llu order violations\n", report.clock.method.c_str(),
              report.clock.offset_ns, static_cast<unsigned long long>(report.clock.violations));
}

/// One inference of `count` layers; `timer` collects. `ahead` and `behind` enqueue what comes before and after them.
void infer(
    bench_device& device, opencl::command_queue& queue, profiler& profile, command_timer& timer, std::uint32_t launch,
    std::uint32_t wait, int count, const std::function<void(run_recorder&)>& ahead = [](run_recorder&) {},
    const std::function<void(run_recorder&)>& behind = [](run_recorder&) {}) {
  run_recorder run = profile.begin_run();
  ahead(run);
  for (int i = 0; i < count; ++i) device.launch(queue, timer.watch(run, event_kind::kernel, launch));
  behind(run);
  {
    const host_timer waiting(run, wait, event_kind::wait);
    queue.finish();
  }
  run.end();
  timer.collect();
}

int clock_command(bench_device& device) {
  opencl::command_queue queue = device.context.make_queue({true, 0});
  const clock_sync_options clock = device.clock();
  std::printf("timer resolution %lld ns, device and host timer %s\n", static_cast<long long>(clock.tick_ns),
              clock.timer ? "yes" : "no");
  device.calibrate(queue, 20e3);
  profiler_options options;
  options.clock = clock;
  profiler profile(options);
  kernel_injector injector(device.context.handle(), device.context.where().handle());
  const std::vector<clock_pair> probes = injector.probe(queue, 64);
  for (const clock_pair& pair : probes) profile.record_probe(pair);
  const std::uint32_t layer = profile.describe({.name = "layer", .ops = {{"layer", "Conv"}}});
  const std::uint32_t wait = profile.describe({.name = "wait", .work = work_class::not_of_model});
  command_timer timer(profile);
  for (int r = 0; r < 300; ++r) infer(device, queue, profile, timer, layer, wait, 50);
  const profile_report report = profile.report();
  print_clock(report);

  // What n injected kernels alone would have said of the later ones, against the whole profile's map.
  std::printf("injected kernels: median error of the first 100 starts, by dynamic fitting from them alone\n");
  std::printf("  0, 1: no line, so nothing can be mapped\n");
  for (const std::size_t count : {2, 3, 4, 6, 8, 12, 16, 24, 32, 48}) {
    dynamic_fit fit({.group_size = std::max<std::size_t>(count, 3),
                     .injected_kernels = count,
                     .tick_ns = static_cast<double>(clock.tick_ns)});
    for (std::size_t i = 0; i < count; ++i) fit.add(probes[i]);
    std::vector<double> errors;
    for (const kernel_event& event : report.events)
      if (event.kind == event_kind::kernel && errors.size() < 100)
        errors.push_back(std::abs(static_cast<double>(fit.map()(event.device_start_ns) - event.start_ns)));
    std::printf("  %3zu: %.0f ns\n", count, exact_quantile(errors, 0.5));
  }

  // k: what each pair's enqueue is off from the fit of the groups before it, which has not seen the pair.
  std::vector<clock_pair> pairs;
  for (int burst = 0; burst < 300; ++burst)
    for (const clock_pair& pair : injector.probe(queue, 50)) pairs.push_back(pair);
  std::printf("group size k: residual of %zu enqueues to the fit of the groups before\n", pairs.size());
  for (const std::size_t k : {4, 8, 16, 32, 64, 128}) {
    dynamic_fit fit({.group_size = k, .tick_ns = static_cast<double>(clock.tick_ns)});
    std::vector<double> errors;
    for (std::size_t i = 0; i < pairs.size(); ++i) {
      if (i >= 256)
        errors.push_back(std::abs(static_cast<double>(fit.map()(pairs[i].device_ns) - pairs[i].host_middle_ns())));
      fit.add(pairs[i]);
    }
    std::printf("  %3zu: p50 %.0f p90 %.0f ns\n", k, exact_quantile(errors, 0.5), exact_quantile(errors, 0.9));
  }
  return 0;
}

/// Start errors of equal layers as an application sees them while it runs: layer i of n should start at the first one's
/// start plus i n-ths of the whole (nnPerf section 5.3). The whole ends with the last layer, as in the paper, or where
/// a layer behind it starts: the pause between two layers belongs to all n of them, but the former has n - 1. Called on
/// the profiler's writer thread alone.
class equal_layers final : public observer {
 public:
  explicit equal_layers(std::size_t layers) : deviations(layers), durations(layers), pauses(layers), layers_(layers) {}

  void on_kernel(const kernel_event& event, const launch_info& info) override {
    if (event.kind != event_kind::kernel || info.name != "layer") return;
    if (event.run != run_) seen_.clear();
    run_ = event.run;
    seen_.push_back({event.start_ns, event.end_ns, event.device_start_ns, event.device_end_ns});
    if (seen_.size() <= layers_) return;
    judge(0, seen_[layers_ - 1][1], errors);
    judge(0, seen_[layers_][0], period_errors);
    judge(2, seen_[layers_ - 1][3], device_errors);
    judge(2, seen_[layers_][2], device_period_errors);
    if (event.run == 0) first_inference = errors;
    const double period = static_cast<double>(seen_[layers_][2] - seen_[0][2]) / static_cast<double>(layers_);
    for (std::size_t i = 0; i < layers_; ++i) {
      deviations[i].push_back(static_cast<double>(seen_[i][2] - seen_[0][2]) - period * static_cast<double>(i));
      durations[i].push_back(static_cast<double>(seen_[i][3] - seen_[i][2]));
      pauses[i].push_back(static_cast<double>(seen_[i + 1][2] - seen_[i][3]));
    }
    seen_.clear();
  }

  std::vector<double> errors, period_errors, device_errors, device_period_errors, first_inference;
  std::vector<std::vector<double>> deviations, durations, pauses;  ///< by layer, of the device's own stamps

 private:
  void judge(std::size_t stamp, std::int64_t end, std::vector<double>& into) const {
    const double begin = static_cast<double>(seen_.front()[stamp]);
    const double whole = static_cast<double>(end) - begin;
    for (std::size_t i = 1; i < layers_; ++i)
      into.push_back(std::abs(static_cast<double>(seen_[i][stamp]) - begin -
                              whole * static_cast<double>(i) / static_cast<double>(layers_)));
  }

  std::size_t layers_;
  std::uint32_t run_ = ~0U;
  std::vector<std::array<std::int64_t, 4>> seen_;
};

/// How the layers of the timeline come to the device.
enum class feeding : std::uint8_t {
  as_enqueued,  ///< behind one layer without event, which wakes the device
  amid,         ///< amid other timed layers: the ends of a queue are no equal layers on every device
  held          ///< the same behind a kernel so long that the host has enqueued all of them when it ends
};

constexpr const char* to_string(feeding how) noexcept {
  return how == feeding::held ? "amid layers behind a long kernel" : how == feeding::amid ? "amid layers" : "alone";
}

void timeline_of(bench_device& device, double seconds, bool fitting_only, bool loaded, feeding how) {
  constexpr int layer_count = 100;
  constexpr int layers_ahead = 10;
  constexpr int layers_behind = 30;
  opencl::command_queue queue = device.context.make_queue({true, 0});
  device.calibrate(queue, 60e3);
  profiler_options options;
  options.clock = device.clock();
  if (fitting_only) {
    options.clock.known_clocks = false;
    options.clock.timer = {};
  }
  profiler profile(options);
  const auto layers = std::make_shared<equal_layers>(layer_count);
  profile.add_observer(layers);
  kernel_injector injector(device.context.handle(), device.context.where().handle());
  injector.inject(queue, profile, profile.probes_wanted());
  if (how == feeding::held) injector.prepare_hold(queue, 2e6);
  const std::uint32_t layer = profile.describe({.name = "layer", .ops = {{"layer", "Conv"}, {"act", "HardSwish"}}});
  const std::uint32_t other = profile.describe({.name = "other", .ops = {{"other", "Conv"}}});
  const std::uint32_t wait = profile.describe({.name = "wait", .work = work_class::not_of_model});
  command_timer timer(profile);
  std::atomic<bool> stop{false};
  std::vector<std::thread> load;
  if (loaded)
    for (unsigned i = 0; i < std::max(1U, std::thread::hardware_concurrency() / 2); ++i)
      load.emplace_back([&] {
        std::vector<double> memory(1 << 21, 1.0);
        while (!stop)
          for (double& v : memory) v = v * 0.999 + 0.5;
      });
  const std::int64_t until = host_now_ns() + static_cast<std::int64_t>(seconds * 1e9);
  int runs = 0;
  const auto others = [&](run_recorder& run, int count) {
    for (int i = 0; i < count; ++i) device.launch(queue, timer.watch(run, event_kind::kernel, other));
  };
  const auto ahead = [&](run_recorder& run) {
    if (how == feeding::as_enqueued) return device.launch(queue, nullptr);
    if (how == feeding::held) injector.hold(queue);
    others(run, layers_ahead);
  };
  const auto behind = [&](run_recorder& run) {
    if (how != feeding::as_enqueued) others(run, layers_behind);
  };
  for (; host_now_ns() < until; ++runs)
    infer(device, queue, profile, timer, layer, wait, layer_count + 1, ahead, behind);
  stop = true;
  for (std::thread& t : load) t.join();
  const profile_report report = profile.report();
  if (layers->errors.empty()) throw error(errc::invalid_argument, "no inference ended in the seconds given");
  const auto told = [](std::vector<double>& values) {
    std::array<char, 64> text{};
    std::snprintf(text.data(), text.size(), "p50 %.0f p90 %.0f p99 %.0f", exact_quantile(values, 0.5),
                  exact_quantile(values, 0.9), exact_quantile(values, 0.99));
    return std::string(text.data());
  };
  const auto row = std::find_if(report.by_kernel.begin(), report.by_kernel.end(),
                                [](const statistic_row& r) { return r.name == "layer"; });
  std::printf(
      "timeline, %s, %s, %s: %d inferences in %.0f s, kernel %.1f us; method %s, residual p90 %.0f ns, %llu "
      "violations (%llu as stamped, moved by up to %.1f us), %llu dropped\n",
      fitting_only ? "dynamic fitting alone" : "best method", loaded ? "loaded" : "idle", to_string(how), runs, seconds,
      row->mean_ns * 1e-3, report.clock.method.c_str(), report.clock.residual_p90_ns,
      static_cast<unsigned long long>(report.clock.violations),
      static_cast<unsigned long long>(report.clock.violations_as_stamped),
      static_cast<double>(report.clock.moved_most_ns) * 1e-3, static_cast<unsigned long long>(report.dropped));
  std::printf("  start error ns, whole to the last end:   %s, first inference p90 %.0f; before any mapping %s\n",
              told(layers->errors).c_str(),
              layers->first_inference.empty() ? 0.0 : exact_quantile(layers->first_inference, 0.9),
              told(layers->device_errors).c_str());
  std::printf("  start error ns, whole to the next start: %s; before any mapping %s\n",
              told(layers->period_errors).c_str(), told(layers->device_period_errors).c_str());
  std::printf("  layer: median deviation, duration, pause after it, ns by the device's stamps\n");
  for (const std::size_t i : {0, 1, 2, 3, 5, 10, 25, 50, 75, 90, 95, 98, 99})
    std::printf("  %4zu: %8.0f %8.0f %8.0f\n", i, exact_quantile(layers->deviations[i], 0.5),
                exact_quantile(layers->durations[i], 0.5), exact_quantile(layers->pauses[i], 0.5));
  const time_split& s = report.split;
  std::printf("  gpu %.2f%% enqueue %.2f%% wait %.2f%% unexplained %.2f%%\n", 100 * s.gpu_ns / s.e2e_ns,
              100 * s.enqueue_ns / s.e2e_ns, 100 * s.wait_ns / s.e2e_ns, 100 * s.unexplained_ns / s.e2e_ns);
  std::fflush(stdout);
}

/// `which` methods and what is `fed`; anything else than the names of the command's usage stands for all of them.
int timeline_command(bench_device& device, double seconds, const std::string& which, const std::string& fed) {
  for (const bool fitting_only : {false, true}) {
    if ((which == "best" && fitting_only) || (which == "fitting" && !fitting_only)) continue;
    for (const auto& [name, how] :
         {std::pair{"alone", feeding::as_enqueued}, {"amid", feeding::amid}, {"held", feeding::held}}) {
      if ((fed == "alone" || fed == "amid" || fed == "held") && fed != name) continue;
      for (const bool loaded : {false, true}) timeline_of(device, seconds, fitting_only, loaded, how);
    }
  }
  return 0;
}

int overhead_command(bench_device& device, double seconds) {
  opencl::command_queue plain = device.context.make_queue();
  opencl::command_queue queue = device.context.make_queue({true, 0});
  kernel_injector injector(device.context.handle(), device.context.where().handle());
  const double cost = injector.measure_event_cost(queue);
  std::printf("an event costs %.0f ns per empty launch\n", cost);
  device.items = 4096;
  device.calibrate(plain, 11.4e3);
  enum way { off, off_profiling_queue, bare, blocking, callback, monitor, ways };
  const char* names[ways] = {"off",    "off, profiling queue", "bare events", "full, blocking", "full, callback",
                             "monitor"};
  struct bare_sink final : opencl::event_sink {
    std::vector<cl::Event> events;
    void on_command(const opencl::command_record&, cl::Event event) override { events.push_back(std::move(event)); }
  } sink;
  std::vector<std::unique_ptr<profiler>> profilers;
  std::vector<std::unique_ptr<command_timer>> timers;
  std::uint32_t layer = 0, wait = 0;
  for (int w = 0; w < ways; ++w) {
    profiler_options options;
    options.mode = w == monitor                     ? profile_mode::monitor
                   : w == blocking || w == callback ? profile_mode::full
                                                    : profile_mode::off;
    options.clock = device.clock();
    options.monitor.event_cost_ns = std::max(cost, 500.0);
    profilers.push_back(std::make_unique<profiler>(options));
    layer = profilers.back()->describe({.name = "layer", .ops = {{"layer", "Conv"}}});
    wait = profilers.back()->describe({.name = "wait", .work = work_class::not_of_model});
    timers.push_back(std::make_unique<command_timer>(
        *profilers.back(), w == callback ? event_collection::callback : event_collection::blocking));
  }
  std::vector<std::vector<double>> times(ways);
  const std::int64_t until = host_now_ns() + static_cast<std::int64_t>(seconds * 1e9);
  const auto one = [&](int w) {
    const std::int64_t begin = host_now_ns();
    if (w == bare) {
      for (int i = 0; i < 60; ++i) device.launch(queue, &sink);
      queue.finish();
      raw_event raw;
      for (const cl::Event& event : sink.events) read_event_stamps(event, raw);
      sink.events.clear();
    } else {
      infer(device, w == off ? plain : queue, *profilers[static_cast<std::size_t>(w)],
            *timers[static_cast<std::size_t>(w)], layer, wait, 60);
    }
    return static_cast<double>(host_now_ns() - begin);
  };
  for (int w = 0; w < ways; ++w)
    for (int i = 0; i < 50; ++i) static_cast<void>(one(w));
  std::vector<int> order;
  for (int w = 0; w < ways; ++w) order.push_back(w);
  // In random order, and after what an inference has left behind (callbacks, the writer's work) is done.
  std::mt19937_64 random(1);
  while (host_now_ns() < until) {
    std::shuffle(order.begin(), order.end(), random);
    for (const int w : order) {
      times[static_cast<std::size_t>(w)].push_back(one(w));
      timers[static_cast<std::size_t>(w)]->wait_for_callbacks();
      if (w == blocking || w == callback) profilers[static_cast<std::size_t>(w)]->flush();
    }
  }
  std::vector<double> base = times[off];
  const double reference = exact_quantile(base, 0.5);
  for (std::size_t w = 0; w < ways; ++w) {
    // Ratio of paired inferences: both sides of a turn ran within milliseconds of each other.
    std::vector<double> ratios;
    for (std::size_t i = 0; i < times[w].size() && i < times[off].size(); ++i)
      ratios.push_back(times[w][i] / times[off][i]);
    std::sort(ratios.begin(), ratios.end());
    const double n = static_cast<double>(ratios.size());
    const auto at = [&](double rank) { return ratios[static_cast<std::size_t>(std::clamp(rank, 0.0, n - 1.0))]; };
    std::vector<double> copy = times[w];
    std::printf("%-22s median %9.2f us  ratio to off %.4f, 95%% interval %.4f to %.4f  (%zu inferences)\n", names[w],
                exact_quantile(copy, 0.5) * 1e-3, at(n / 2), at(n / 2 - 0.98 * std::sqrt(n)),
                at(n / 2 + 0.98 * std::sqrt(n)), times[w].size());
  }
  std::printf("off: %.2f us per inference of 60 launches\n", reference * 1e-3);
  for (const int w : {static_cast<int>(blocking), static_cast<int>(callback), static_cast<int>(monitor)}) {
    timers[static_cast<std::size_t>(w)]->wait_for_callbacks();
    const profile_report report = profilers[static_cast<std::size_t>(w)]->report();
    const auto row = std::find_if(report.by_kernel.begin(), report.by_kernel.end(),
                                  [](const statistic_row& r) { return r.name == "layer"; });
    if (row != report.by_kernel.end())
      std::printf(
          "%-22s kernel mean %.3f us [%.3f, %.3f] of %llu samples; estimated event cost %.2f us, overhead %.4f%%\n",
          names[w], row->mean_ns * 1e-3, row->mean_interval_ns.lower * 1e-3, row->mean_interval_ns.upper * 1e-3,
          static_cast<unsigned long long>(row->count), report.event_cost_ns * 1e-3, report.overhead * 100.0);
  }
  return 0;
}

/// Profiled times of kernels of known lengths, as they come behind a long kernel, one enqueue after the other, and far
/// apart, against what a copy of them adds to a stream behind a long kernel. 1 if one errs by more than a microsecond
/// and 5%, else 0. Empty kernels tell how long commands were waited for.
int copies_command(bench_device& device) {
  opencl::command_queue queue = device.context.make_queue({true, 0});
  kernel_injector injector(device.context.handle(), device.context.where().handle());
  const copy_slope empty = injector.measure_empty_slope(queue);
  const event_bias bias = injector.measure_event_bias(queue);
  // Where an event has a part of its own, the gap that it was measured with.
  const double gap = bias.launch_ns > 0.0 ? bias.launch_ns : injector.measure_gap(queue);
  std::printf(
      "an empty kernel adds %.0f ns [%.0f, %.0f] to a busy device, gap between kernels %.0f ns\n"
      "an event is %.0f ns too long, %.0f ns with %d commands or more behind it, %.0f ns where the device waits for "
      "the "
      "command (a pause of more than %.0f ns, then more or less by when its "
      "enqueue call returned)\n",
      empty.ns_per_copy, empty.low_ns, empty.high_ns, gap, bias.busy_ns, bias.deep_ns, bias.depth, bias.starved_ns,
      1.25 * bias.pause_ns);
  std::printf("profiled times against copies less the gap, us; in brackets how many of them the device waited for\n");
  std::printf("%10s %18s %24s %24s %24s\n", "copies", "95%% interval", "behind a long kernel", "as enqueued", "apart");
  device.items = 1 << 14;
  device.calibrate(queue, 60e3);
  const double rounds_of_us = device.rounds / 60.0;
  double worst = 0.0;
  for (const double wanted : {0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 11.0, 15.0, 30.0, 60.0, 120.0}) {
    device.set(static_cast<cl_int>(wanted * rounds_of_us));
    // Short kernels would be as fast as the host enqueues them: a long one lets it run ahead.
    injector.prepare_hold(queue, 800e3);
    const auto stream = [&](std::size_t copies) {
      const std::int64_t begin = host_now_ns();
      injector.hold(queue);
      for (std::size_t i = 0; i < 10 + copies; ++i) device.launch(queue, nullptr);
      queue.finish();
      return static_cast<double>(host_now_ns() - begin);
    };
    std::vector<double> slopes;
    std::mt19937_64 random(1);
    for (int turn = 0; turn < 20; ++turn) measure_pair_slopes(stream, 40, random, slopes);
    const location slope = pseudo_median(slopes);
    const double truth = slope.value - gap;
    std::printf("%10.3f [%7.3f, %7.3f]", truth * 1e-3, (slope.low - gap) * 1e-3, (slope.high - gap) * 1e-3);
    enum class pacing : std::uint8_t { held, enqueued, apart };
    for (const pacing how : {pacing::held, pacing::enqueued, pacing::apart}) {
      profiler_options options;
      options.clock = device.clock();
      options.clock.bias = bias;
      profiler profile(options);
      injector.inject(queue, profile, profile.probes_wanted());
      const std::uint32_t layer = profile.describe({.name = "layer", .ops = {{"layer", "Conv"}}});
      const std::uint32_t wait = profile.describe({.name = "wait", .work = work_class::not_of_model});
      command_timer timer(profile);
      for (int r = 0; r < 40; ++r) {
        run_recorder run = profile.begin_run();
        if (how == pacing::held) injector.hold(queue, timer.watch(run, event_kind::kernel, wait));
        for (int i = 0; i < 20; ++i) {
          const std::int64_t until = host_now_ns() + static_cast<std::int64_t>(2e4 + 2.0 * truth);
          device.launch(queue, timer.watch(run, event_kind::kernel, layer));
          while (how == pacing::apart && host_now_ns() < until) {
          }
        }
        queue.finish();
        run.end();
        injector.inject_arrival(queue, profile);
        timer.collect();
      }
      std::vector<double> times;
      std::size_t starved = 0;
      for (const kernel_event& event : profile.report().events)
        if (event.launch == layer) {
          times.push_back(event.duration_ns());
          starved += bias.waited(static_cast<double>(event.bias_ns)) ? 1 : 0;
        }
      const double share = 100.0 * static_cast<double>(starved) / static_cast<double>(times.size());
      const double error = middle_mean(times) - truth;
      worst = std::max(worst, std::abs(error) / std::max(1000.0, 0.05 * truth));
      std::printf("   %8.3f %+7.3f (%3.0f%%)", (truth + error) * 1e-3, error * 1e-3, share);
    }
    std::printf("\n");
  }
  std::printf("worst error: %.2f of the larger of 1 us and 5%%\n", worst);
  return worst > 1.0 ? 1 : 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const std::string spec = argc > 1 ? argv[1] : "opencl";
    const std::string command = argc > 2 ? argv[2] : "clock";
    const double seconds = argc > 3 ? std::atof(argv[3]) : 10.0;
    bench_device device(spec);
    std::printf("device: %s, driver %s\n", device.context.info().name.c_str(),
                device.context.info().driver_version.c_str());
    const telemetry_sample telemetry = telemetry_reader().read();
    if (telemetry.gpu_clock_mhz) std::printf("GPU clock %.0f MHz\n", *telemetry.gpu_clock_mhz);
    if (telemetry.gpu_power_w) std::printf("GPU power %.1f W\n", *telemetry.gpu_power_w);
    if (telemetry.gpu_temperature_c) std::printf("GPU temperature %.0f C\n", *telemetry.gpu_temperature_c);
    if (command == "clock") return clock_command(device);
    if (command == "timeline")
      return timeline_command(device, seconds, argc > 4 ? argv[4] : "both", argc > 5 ? argv[5] : "all");
    if (command == "overhead") return overhead_command(device, seconds);
    if (command == "copies") return copies_command(device);
    std::fprintf(stderr, "unknown command '%s'\n", command.c_str());
    return 2;
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "%s\n", failure.what());
    return 1;
  }
}

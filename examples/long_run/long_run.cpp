// Watches inferences that go on for long.
//
//   long_run [DEVICE] coload [SECONDS] [MODEL]   other work loads the CPU in the middle third: the monitor of long runs
//       says when, and which kernels, got slower and faster again, with clock, temperature and power where they are
//       told
//   long_run [DEVICE] blocked [SECONDS] [MODEL]  every command is timed and the sink of events blocks: memory stays
//       constant, inference is not delayed, and each event is delivered or counted as lost
//
// Without MODEL a small network of its own is run.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <unistd.h>

#include <dnnopt/backend/measure/event_timer.hpp>
#include <dnnopt/backend/measure/kernel_injector.hpp>
#include <dnnopt/backend/measure/profiled_run.hpp>
#include <dnnopt/backend/run/executor.hpp>
#include <dnnopt/dnnopt.hpp>
#include <dnnopt/profile/clocks/host_clock.hpp>
#include <dnnopt/profile/long_run.hpp>
#include <dnnopt/profile/profiler.hpp>
#include <dnnopt/profile/statistics.hpp>
#include <dnnopt/profile/telemetry.hpp>
#include <dnnopt/zoo/generate_inputs.hpp>

#include "../latency_search/mobile_network.hpp"

namespace {

using dnnopt::profile::host_now_ns;

/// A session with inputs, and a profiler that sees its inferences.
class watched_session {
 public:
  watched_session(const std::string& device, const std::optional<std::string>& file,
                  dnnopt::profile::profiler_options options)
      : source_(file ? dnnopt::load(*file) : small_network()),
        session_(dnnopt::compile(source_, compile_options_of(device))) {
    const dnnopt::graph& g = source_.main;
    dnnopt::symbol_values ones;
    for (std::uint32_t symbol = 0; symbol < g.expressions().symbol_count(); ++symbol) ones.bind(symbol, 1);
    const std::vector<dnnopt::tensor> made = dnnopt::generate_inputs(g, 1, ones);
    for (std::size_t i = 0; i < g.inputs().size(); ++i) inputs_.add(g.value_at(g.inputs()[i]).name, made.at(i));

    const dnnopt::opencl::context& where = *session_.context();
    dnnopt::opencl::command_queue queue = where.make_queue({true, 0});
    dnnopt::profile::kernel_injector injector(where.handle(), where.where().handle());
    options.clock = dnnopt::profile::clock_options_of(where.where().handle());
    options.kept_events = 4096;
    profiler_ = std::make_unique<dnnopt::profile::profiler>(options);
    injector.inject(queue, *profiler_, profiler_->probes_wanted());
    profiler_->set_event_cost(injector.measure_event_cost(queue));
    observer_ = std::make_unique<dnnopt::profiled_run>(*profiler_, session_.executor()->executed());
    std::printf("device: %s\n", where.info().name.c_str());
    for (int i = 0; i < 10; ++i) (void)session_.run(inputs_);
  }

  dnnopt::profile::profiler& profiler() { return *profiler_; }
  /// One profiled inference; its nanoseconds.
  double run() {
    const std::int64_t begin = host_now_ns();
    observer_->begin();
    (void)session_.run(inputs_, observer_.get());
    observer_->end();
    return static_cast<double>(host_now_ns() - begin);
  }

 private:
  static dnnopt::compile_options compile_options_of(const std::string& device) {
    dnnopt::compile_options options;
    options.device = device;
    return options;
  }
  static dnnopt::model small_network() {
    search::space of;
    of.resolution = 96;
    search::network_builder builder;
    builder.output(builder.network(of, search::architecture(of.stages.size(), std::vector<search::block_choice>(2))));
    return std::move(builder).take();
  }

  dnnopt::model source_;
  dnnopt::session session_;
  dnnopt::named_tensors inputs_;
  std::unique_ptr<dnnopt::profile::profiler> profiler_;
  std::unique_ptr<dnnopt::profiled_run> observer_;
};

/// Work on all processors: arithmetic over more memory than caches hold.
class cpu_load {
 public:
  cpu_load() {
    for (unsigned i = 0; i < std::max(1U, std::thread::hardware_concurrency()); ++i)
      threads_.emplace_back([this] {
        std::vector<double> memory(std::size_t{1} << 21, 1.0);
        while (!stop_)
          for (double& v : memory) v = v * 0.999 + 0.5;
      });
  }
  cpu_load(const cpu_load&) = delete;
  cpu_load& operator=(const cpu_load&) = delete;
  ~cpu_load() {
    stop_ = true;
    for (std::thread& t : threads_) t.join();
  }

 private:
  std::atomic<bool> stop_{false};
  std::vector<std::thread> threads_;
};

std::string told(const dnnopt::profile::telemetry_sample& sample) {
  std::string text;
  const auto add = [&](const std::optional<double>& value, const char* unit) {
    if (value) text += " " + std::to_string(static_cast<long long>(*value)) + " " + unit;
  };
  add(sample.gpu_clock_mhz, "MHz GPU");
  add(sample.gpu_temperature_c, "C GPU");
  add(sample.gpu_power_w, "W GPU");
  add(sample.cpu_clock_mhz, "MHz CPU");
  add(sample.cpu_temperature_c, "C CPU");
  return text;
}

int coload(const std::string& device, double seconds, const std::optional<std::string>& file) {
  watched_session watched(device, file, {.mode = dnnopt::profile::profile_mode::monitor});
  const dnnopt::profile::telemetry_reader telemetry;
  const auto monitor = std::make_shared<dnnopt::profile::long_run_monitor>(dnnopt::profile::long_run_options{},
                                                                           [&] { return telemetry.read(); });
  watched.profiler().add_observer(monitor);

  const std::int64_t begin = host_now_ns();
  const auto since = [&](std::int64_t at) { return static_cast<double>(at - begin) * 1e-9; };
  std::unique_ptr<cpu_load> load;
  const char* const phases[] = {"alone", "beside a loaded CPU", "alone again"};
  for (int phase = 0; phase < 3; ++phase) {
    if (phase == 1) load = std::make_unique<cpu_load>();
    if (phase == 2) load.reset();
    const double from = since(host_now_ns());
    std::vector<double> times;
    while (since(host_now_ns()) < seconds * (phase + 1) / 3.0) times.push_back(watched.run());
    if (times.empty()) times.push_back(watched.run());
    watched.profiler().flush();
    std::printf("%7.2f s to %7.2f s, %-20s %6zu inferences, median %9.1f us, rolling p90 %9.1f us\n", from,
                since(host_now_ns()), phases[phase], times.size(), dnnopt::profile::exact_quantile(times, 0.5) * 1e-3,
                monitor->quantile("end to end", 0.9) * 1e-3);
  }

  // Kernels that moved within a quarter of a second of each other are one line, with those that moved most.
  const std::vector<dnnopt::profile::shift_record> shifts = monitor->shifts();
  const auto change = [](const dnnopt::profile::shift_record& s) { return s.after_ns / s.before_ns; };
  std::printf("\n%zu shifts of kernels and of end to end\n", shifts.size());
  for (std::size_t i = 0; i < shifts.size();) {
    std::vector<dnnopt::profile::shift_record> kernels;
    const dnnopt::profile::shift_record& first = shifts[i];
    std::printf("%8.2f s, inference %u:", since(first.at_ns), first.run);
    for (; i < shifts.size() && since(shifts[i].at_ns) < since(first.at_ns) + 0.25; ++i) {
      if (shifts[i].name == "end to end")
        std::printf(" end to end %.1f -> %.1f us (%+.0f%%);", shifts[i].before_ns * 1e-3, shifts[i].after_ns * 1e-3,
                    100.0 * (change(shifts[i]) - 1.0));
      else
        kernels.push_back(shifts[i]);
    }
    std::stable_sort(kernels.begin(), kernels.end(), [&](const auto& x, const auto& y) {
      return std::abs(std::log(change(x))) > std::abs(std::log(change(y)));
    });
    std::printf(" %zu kernels", kernels.size());
    for (std::size_t k = 0; k < std::min<std::size_t>(3, kernels.size()); ++k)
      std::printf("%s %s %.1f -> %.1f us", k == 0 ? ":" : ",", kernels[k].name.c_str(), kernels[k].before_ns * 1e-3,
                  kernels[k].after_ns * 1e-3);
    std::printf("%s\n", told(first.telemetry).c_str());
  }
  return 0;
}

/// Counts what it is given; while `blocked`, the first call does not return.
class blocking_sink final : public dnnopt::profile::observer {
 public:
  void on_kernel(const dnnopt::profile::kernel_event&, const dnnopt::profile::launch_info&) override { take(); }
  void on_run(const dnnopt::profile::run_event&) override { take(); }
  void block(bool on) {
    blocked_ = on;
    blocked_.notify_all();
  }
  [[nodiscard]] std::uint64_t taken() const noexcept { return taken_; }

 private:
  void take() {
    blocked_.wait(true);
    ++taken_;
  }
  std::atomic<bool> blocked_{false};
  std::atomic<std::uint64_t> taken_{0};
};

/// Resident bytes of this process; zero where /proc does not tell.
double resident_bytes() {
  std::ifstream file("/proc/self/statm");
  double pages = 0.0;
  double resident = 0.0;
  file >> pages >> resident;
  return file ? resident * static_cast<double>(::sysconf(_SC_PAGESIZE)) : 0.0;
}

int blocked(const std::string& device, double seconds, const std::optional<std::string>& file) {
  watched_session watched(device, file, {.queue_capacity = std::size_t{1} << 11});
  const auto sink = std::make_shared<blocking_sink>();
  watched.profiler().add_observer(sink);
  (void)watched.run();
  watched.profiler().flush();
  const std::uint64_t per_run = sink->taken();
  std::printf("%llu events per inference, one of them the inference itself\n",
              static_cast<unsigned long long>(per_run));

  constexpr int parts = 10;
  const std::int64_t begin = host_now_ns();
  std::uint64_t runs = 1;
  std::vector<double> resident;
  std::printf("%9s %9s %12s %11s %11s %11s %12s\n", "s", "sink", "inferences", "p50 us", "p99 us", "lost",
              "resident MB");
  for (int part = 0; part < parts; ++part) {
    const bool on = part % 2 == 1;
    sink->block(on);
    dnnopt::profile::series times;
    do {
      times.add(watched.run());
      ++runs;
    } while (static_cast<double>(host_now_ns() - begin) * 1e-9 < seconds * (part + 1) / parts);
    resident.push_back(resident_bytes());
    std::printf("%9.1f %9s %12llu %11.1f %11.1f %11llu %12.2f\n", static_cast<double>(host_now_ns() - begin) * 1e-9,
                on ? "blocked" : "free", static_cast<unsigned long long>(times.count()), times.quantile(0.5) * 1e-3,
                times.quantile(0.99) * 1e-3, static_cast<unsigned long long>(watched.profiler().dropped()),
                resident.back() * 1e-6);
    std::fflush(stdout);
  }
  sink->block(false);
  watched.profiler().flush();
  const std::uint64_t accounted = sink->taken() + watched.profiler().dropped();
  const double grown = resident.back() - resident[3];
  std::printf("%llu events made, %llu delivered, %llu lost and counted\n",
              static_cast<unsigned long long>(runs * per_run), static_cast<unsigned long long>(sink->taken()),
              static_cast<unsigned long long>(watched.profiler().dropped()));
  std::printf("resident memory grew by %.2f MB in the last six tenths of the time\n", grown * 1e-6);
  if (accounted != runs * per_run) std::printf("events are missing\n");
  return accounted == runs * per_run && grown < 4e6 ? 0 : 1;
}

}  // namespace

int main(int count, char** values) {
  try {
    const std::string device = count > 1 ? values[1] : "opencl";
    const std::string command = count > 2 ? values[2] : "coload";
    const double seconds = count > 3 ? std::atof(values[3]) : 30.0;
    const std::optional<std::string> file = count > 4 ? std::optional<std::string>(values[4]) : std::nullopt;
    if (command == "coload") return coload(device, seconds, file);
    if (command == "blocked") return blocked(device, seconds, file);
    std::fprintf(stderr, "usage: long_run [DEVICE] coload|blocked [SECONDS] [MODEL]\n");
    return 2;
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "long_run: %s\n", failure.what());
    return 2;
  }
}

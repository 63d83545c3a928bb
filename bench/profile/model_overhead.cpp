// What profiling costs a model's inferences: the ways of profiling in random order on one session, until the interval
// of the median ratio is narrow.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <limits>
#include <memory>
#include <optional>
#include <random>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <dnnopt/backend/measure/kernel_injector.hpp>
#include <dnnopt/backend/measure/profiled_run.hpp>
#include <dnnopt/profile/report/csv.hpp>
#include <dnnopt/profile/statistics.hpp>
#include <dnnopt/profile/telemetry.hpp>

#include "profile_model.hpp"

namespace measure {

namespace {

using namespace dnnopt;
using namespace dnnopt::profile;

enum way : std::size_t { off, again, watched, bare, monitor, blocking, callback, ways };
constexpr std::array<const char*, ways> way_names{"off",     "off, again",     "observer, no event", "bare events",
                                                  "monitor", "full, blocking", "full, callback"};

/// Keeps an event of every command and reads its stamps after the run: the least that timing all commands can cost.
class bare_events final : public silent_observer, private opencl::event_sink {
 public:
  opencl::event_sink* kernel(std::size_t, std::size_t, std::uint64_t, std::uint64_t) override { return this; }
  opencl::event_sink* transfer(direction) override { return this; }
  void read() {
    raw_event raw;
    for (const cl::Event& event : events_) read_event_stamps(event, raw);
    events_.clear();
  }

 private:
  void on_command(const opencl::command_record&, cl::Event event) override { events_.push_back(std::move(event)); }
  std::vector<cl::Event> events_;
};

struct timed_ways {
  prepared_model& model;
  std::array<std::unique_ptr<profiler>, ways> profilers{};
  std::array<std::unique_ptr<profiled_run>, ways> observers{};
  bare_events bare_observer{};
  silent_observer silent{};
  std::uint64_t events_while_off = 0;
  double event_cost_ns = 0.0;
  std::size_t kept_events = 4096;  // statistics are what is wanted here, not timelines
  event_bias bias{};
  opencl::command_queue queue;
  kernel_injector injector;

  explicit timed_ways(prepared_model& of)
      : model(of),
        queue(of.session.context()->make_queue({true, 0})),
        injector(of.session.context()->handle(), of.session.context()->where().handle()) {
    event_cost_ns = injector.measure_event_cost(queue);
    bias = injector.measure_event_bias(queue);
    std::printf("an event's own part: %.2f us, %.2f us where the device waited, by arrivals: %s\n", bias.busy_ns * 1e-3,
                bias.starved_ns * 1e-3, bias.arrival_ns ? "yes" : "no");
    for (const way w : {monitor, blocking, callback}) make_profiler(w);
  }

  /// A profiler of its own for `w`, which has seen nothing yet.
  void make_profiler(way w) {
    observers[w].reset();
    profiler_options options;
    options.mode = w == monitor ? profile_mode::monitor : profile_mode::full;
    options.clock = clock_options_of(model.session.context()->where().handle());
    options.clock.bias = bias;
    options.kept_events = kept_events;
    profilers[w] = std::make_unique<profiler>(options);
    injector.inject(queue, *profilers[w], profilers[w]->probes_wanted());
    profilers[w]->set_event_cost(event_cost_ns);
    observers[w] =
        std::make_unique<profiled_run>(*profilers[w], model.session.executor()->executed(),
                                       w == callback ? event_collection::callback : event_collection::blocking);
    observers[w]->follow_arrivals(injector, queue);
  }

  /// One inference; returns its nanoseconds as the caller sees them, collection of events included.
  double run(way w) {
    const std::int64_t begin = host_now_ns();
    switch (w) {
      case off:
      case again:
        (void)model.session.run(model.inputs);
        break;
      case watched:
        (void)model.session.run(model.inputs, &silent);
        break;
      case bare:
        (void)model.session.run(model.inputs, &bare_observer);
        bare_observer.read();
        break;
      default:
        observers[w]->begin();
        (void)model.session.run(model.inputs, observers[w].get());
        observers[w]->end();
        break;
    }
    const double ns = static_cast<double>(host_now_ns() - begin);
    if (w == off || w == again) events_while_off += model.session.executor()->figures().events;
    return ns;
  }

  /// Lets what an inference left behind (callbacks, the writer's work) end before another way is timed.
  void settle(way w) {
    if (w != blocking && w != callback) return;
    observers[w]->wait_for_callbacks();
    profilers[w]->flush();
  }
};

/// Of the time, what all ways share in turns; the rest is monitor's and off's.
constexpr double share_of_all_ways = 0.08;

/// What one way takes in a turn: the mean of `count` inferences.
double turn_of(timed_ways& timed, way w, int count) {
  // The first one after another way pays for the change of queues and for cold caches.
  (void)timed.run(w);
  double sum = 0.0;
  for (int i = 0; i < count; ++i) sum += timed.run(w);
  timed.settle(w);
  return sum / count;
}

/// All ways in turns of two inferences, in random order, for `seconds`; prints the table.
void compare_all_ways(timed_ways& timed, double seconds) {
  std::array<std::vector<double>, ways> times;
  std::vector<way> order;
  for (std::size_t w = 0; w < ways; ++w) order.push_back(static_cast<way>(w));
  for (const way w : order)
    for (int i = 0; i < 20; ++i) (void)timed.run(w);
  std::mt19937_64 random(1);
  const auto ratios = [&](way w, way to) {
    std::vector<double> result;
    for (std::size_t i = 0; i < std::min(times[w].size(), times[to].size()); ++i)
      result.push_back(times[w][i] / times[to][i]);
    return median_of(std::move(result));
  };
  const std::int64_t until = host_now_ns() + static_cast<std::int64_t>(seconds * 1e9);
  while (host_now_ns() < until || times[off].empty()) {
    std::shuffle(order.begin(), order.end(), random);
    for (const way w : order) times[w].push_back(turn_of(timed, w, 2));
  }
  std::printf("%-18s %12s %9s %20s %9s %20s\n", "", "median us", "to off", "95% interval", "to bare", "95% interval");
  for (std::size_t i = 0; i < ways; ++i) {
    const way w = static_cast<way>(i);
    const median_interval to_off = ratios(w, off);
    const median_interval to_bare = ratios(w, bare);
    std::printf("%-18s %12.2f %9.4f [%8.4f, %8.4f] %9.4f [%8.4f, %8.4f]\n", way_names[w],
                median_of(times[w]).median * 1e-3, to_off.median, to_off.low, to_off.high, to_bare.median, to_bare.low,
                to_bare.high);
  }
  std::printf("%zu turns of all ways, two inferences each\n", times[off].size());
}

/// Half of the 95% interval of the location of `values` from those of `segments` stretches of them: unlike the interval
/// of ranks it widens where neighbours in time are alike. Infinite for too few values.
double half_by_segments(const std::vector<double>& values) {
  constexpr std::size_t segments = 40;
  constexpr double students_t = 2.0227;  // 39 degrees of freedom, 97.5%
  if (values.size() < 16 * segments) return std::numeric_limits<double>::infinity();
  running_moments medians;
  for (std::size_t s = 0; s < segments; ++s) {
    const auto edge = [&](std::size_t i) {
      return values.begin() + static_cast<std::ptrdiff_t>(values.size() * i / segments);
    };
    medians.add(median_of(std::vector<double>(edge(s), edge(s + 1))).median);
  }
  return students_t * medians.stddev() / std::sqrt(static_cast<double>(segments));
}

/// Monitor and off alone on one model, inference by inference in pairs of neighbours.
class monitored_pairs {
 public:
  explicit monitored_pairs(timed_ways& timed) : timed_(&timed) {}

  /// Goes on for `seconds`, and at least some pairs, after inferences that are not counted.
  void run(double seconds) {
    const std::int64_t begin = host_now_ns();
    for (const way w : {off, monitor, off}) (void)timed_->run(w);
    for (int pair = 0; pair < 20 || static_cast<double>(host_now_ns() - begin) * 1e-9 < seconds; ++pair) {
      // Either first: what lasts longer than two inferences is in both alike.
      std::array<double, 2> took{};
      const std::size_t first = (random_() >> 20) % 2;
      for (const std::size_t side : {first, 1 - first}) took[side] = timed_->run(side == 1 ? monitor : off);
      ratios_.push_back(took[1] / took[0]);
      pairs_.push_back({took[0], took[1], static_cast<double>(first)});
      all_plain_.add(took[0]);
      all_monitored_.add(took[1]);
    }
    seconds_ += static_cast<double>(host_now_ns() - begin) * 1e-9;
  }
  /// Infinite before the first pairs.
  [[nodiscard]] double width() const {
    return ratios_.size() < 32 ? std::numeric_limits<double>::infinity() : median_of(ratios_).width();
  }
  void print(double wanted) const {
    if (ratios_.empty()) return;
    const median_interval ratio = median_of(ratios_);
    std::printf(
        "monitor to off, %zu pairs of inferences in %.1f s: %.5f [%.5f, %.5f], %.5f wide (%s %.4f; by stretches of "
        "time %.5f wide); means of all inferences, sampled ones too: %.5f\n",
        ratios_.size(), seconds_, ratio.median, ratio.low, ratio.high, ratio.width(),
        ratio.width() <= wanted ? "reached" : "the time ended before", wanted, 2.0 * half_by_segments(ratios_),
        all_monitored_.mean() / all_plain_.mean());
  }
  void dump(std::FILE* to, const std::string& model) const {
    for (const auto& pair : pairs_) std::fprintf(to, "%s,%.0f,%.0f,%.0f\n", model.c_str(), pair[0], pair[1], pair[2]);
  }

 private:
  timed_ways* timed_;
  std::mt19937_64 random_{2};
  std::vector<double> ratios_;
  std::vector<std::array<double, 3>> pairs_;  // off, monitor, which was first
  running_moments all_plain_, all_monitored_;
  double seconds_ = 0.0;
};

/// Monitor's means against full's after many inferences of each, in turns: fewer of full's would leave its own means as
/// uncertain as what is judged by them, and earlier ones would be of another moment of the host's and the device's.
/// Kernels that differ by more than is allowed have a line each. The last million events of either go to files that
/// begin with `events`, unless that is empty.
void compare_means(timed_ways& timed, std::size_t inferences, const std::string& events) {
  if (!events.empty()) timed.kept_events = 1'000'000;
  // Turns of 30 ms, for the pace of a processor that others use too stays alike for no longer.
  const double one_ns = std::min(timed.run(monitor), timed.run(blocking));
  const auto turn = static_cast<std::size_t>(std::clamp(30e6 / one_ns, 2.0, 20.0));
  for (const way w : {monitor, blocking}) timed.make_profiler(w);
  for (std::size_t done = 0; done < inferences; done += turn) {
    for (std::size_t i = 0; i < turn; ++i) (void)timed.run(monitor);
    for (std::size_t i = 0; i < turn; ++i) (void)timed.run(blocking);
  }
  const profile_report sampled = timed.profilers[monitor]->report();
  const profile_report whole = timed.profilers[blocking]->report();
  for (const auto& [report, name] : {std::pair(&sampled, ".monitor.csv"), std::pair(&whole, ".full.csv")}) {
    if (events.empty()) continue;
    std::ofstream to(events + name);
    write_csv(to, *report);
    if (!to.flush()) throw std::runtime_error("cannot write '" + events + name + "'");
  }
  std::size_t within = 0, medians_within = 0, kernels = 0, missing = 0;
  double worst = 0.0;
  std::string worst_name;
  double sum_sampled = 0.0, sum_whole = 0.0;
  for (const statistic_row& row : whole.by_kernel) {
    ++kernels;
    const auto found = std::find_if(sampled.by_kernel.begin(), sampled.by_kernel.end(),
                                    [&](const statistic_row& other) { return other.name == row.name; });
    if (found == sampled.by_kernel.end()) {
      ++missing;
      continue;
    }
    sum_sampled += found->mean_ns;
    sum_whole += row.mean_ns;
    const double difference = found->mean_ns - row.mean_ns;
    const double share = std::abs(difference) / std::max(0.05 * row.mean_ns, 500.0);
    if (share <= 1.0)
      ++within;
    else
      std::printf("  %s: mean %.3f, full %.3f us; median %.3f, full %.3f us; %llu samples\n", row.name.c_str(),
                  found->mean_ns * 1e-3, row.mean_ns * 1e-3, found->p50_ns * 1e-3, row.p50_ns * 1e-3,
                  static_cast<unsigned long long>(found->count));
    // A mean of some twenty samples moves by half a microsecond where one of them is ten longer; a median does not.
    if (std::abs(found->p50_ns - row.p50_ns) <= std::max(0.05 * row.p50_ns, 500.0)) ++medians_within;
    if (share <= worst) continue;
    worst = share;
    worst_name = row.name + ": " + std::to_string(found->mean_ns * 1e-3) + " against " +
                 std::to_string(row.mean_ns * 1e-3) + " us, " + std::to_string(found->count) + " samples";
  }
  std::printf(
      "monitor after %llu inferences against full after %llu: means of %zu of %zu kernels within 5%% or 0.5 us\n",
      static_cast<unsigned long long>(sampled.runs), static_cast<unsigned long long>(whole.runs), within, kernels);
  std::printf("  worst: %s (%.2f of what is allowed); never sampled: %zu; medians of %zu\n", worst_name.c_str(), worst,
              missing, medians_within);
  std::printf("  all kernels: monitor %.2f us, full %.2f us (%+.2f%%: what watching all adds to kernel times)\n",
              sum_sampled * 1e-3, sum_whole * 1e-3, 100.0 * (sum_whole / sum_sampled - 1.0));
  for (const auto& [report, name] : {std::pair(&sampled, "monitor"), std::pair(&whole, "full")})
    if (report->waiting_samples > 0)
      std::printf(
          "  %s learned where the device waited: %.2f us, %.2f for each that a call is later, from %llu kernels\n",
          name, report->waiting.at_usual_ns * 1e-3, report->waiting.slope,
          static_cast<unsigned long long>(report->waiting_samples));
  std::printf("  monitor's own estimate: an event costs %.2f us, monitoring %.3f%% of the time\n",
              sampled.event_cost_ns * 1e-3, sampled.overhead * 100.0);
}

/// Energy of one inference off, monitored and in full, in turns of `seconds`; silent where no counter can be read.
void compare_energy(timed_ways& timed, double seconds) {
  const telemetry_reader telemetry;
  const auto joules = [&]() -> std::optional<double> {
    const telemetry_sample sample = telemetry.read();
    return sample.gpu_energy_j ? sample.gpu_energy_j : sample.cpu_energy_j;
  };
  if (!joules()) {
    std::printf("energy: no counter can be read on this machine\n");
    return;
  }
  std::array<double, ways> energy{};
  std::array<double, ways> inferences{};
  constexpr int rounds = 4;
  for (int round = 0; round < rounds; ++round)
    for (const way w : {off, monitor, blocking}) {
      const double before = *joules();
      const std::int64_t until = host_now_ns() + static_cast<std::int64_t>(seconds / (3 * rounds) * 1e9);
      while (host_now_ns() < until) {
        (void)timed.run(w);
        inferences[w] += 1.0;
      }
      energy[w] += *joules() - before;
    }
  for (const way w : {off, monitor, blocking})
    std::printf("energy, %-15s %.4f mJ per inference (%.0f inferences), ratio to off %.4f\n", way_names[w],
                energy[w] / inferences[w] * 1e3, inferences[w],
                energy[w] / inferences[w] / (energy[off] / inferences[off]));
}

/// A model with all ways of running it.
struct measured_model {
  prepared_model model;
  timed_ways timed;
  monitored_pairs pairs;

  measured_model(const std::string& path, const std::shared_ptr<opened_device>& device)
      : model(path, device), timed(model), pairs(timed) {}
};

/// Monitor and off alone, in stretches of a few seconds of the model whose interval is widest, until all are narrow or
/// `seconds` are over: time goes where it is needed, and each model's pairs come from all of it.
void compare_monitor(std::vector<std::unique_ptr<measured_model>>& models, double width, double seconds) {
  const double stretch = std::clamp(seconds / 100.0, 0.2, 5.0);
  const std::int64_t until = host_now_ns() + static_cast<std::int64_t>(seconds * 1e9);
  while (host_now_ns() < until) {
    measured_model* widest = nullptr;
    double most = width;
    for (const auto& one : models)
      if (const double now = one->pairs.width(); now > most) {
        widest = one.get();
        most = now;
      }
    if (widest == nullptr) return;
    widest->pairs.run(stretch);
  }
}

}  // namespace

int overhead(const std::vector<std::string>& arguments) {
  if (arguments.size() < 5) throw std::invalid_argument("overhead DEVICE SECONDS WIDTH INFERENCES [DUMP.csv] MODEL...");
  const auto device = std::make_shared<opened_device>(arguments[0]);
  const double seconds = std::stod(arguments[1]);
  const double width = std::stod(arguments[2]);
  const std::size_t inferences = std::stoul(arguments[3]);
  const std::string dump = arguments[4].ends_with(".csv") ? arguments[4] : "";
  std::printf("device: %s, driver %s\n", device->context.info().name.c_str(),
              device->context.info().driver_version.c_str());
  const std::int64_t begin = host_now_ns();
  const auto elapsed = [&] { return static_cast<double>(host_now_ns() - begin) * 1e-9; };
  std::vector<std::unique_ptr<measured_model>> models;
  const std::size_t count = arguments.size() - (dump.empty() ? 4 : 5);
  for (std::size_t i = arguments.size() - count; i < arguments.size(); ++i) {
    models.push_back(std::make_unique<measured_model>(arguments[i], device));
    (void)models.back()->timed.run(off);
    std::printf("\n%s, %zu device commands\n", models.back()->model.name().c_str(),
                models.back()->model.session.kernels());
    compare_all_ways(models.back()->timed, share_of_all_ways * seconds / static_cast<double>(count));
    std::fflush(stdout);
  }
  compare_monitor(models, width, seconds - elapsed());
  bool held = true;
  for (const auto& one : models) {
    std::printf("\n%s\n", one->model.name().c_str());
    one->pairs.print(width);
    std::printf("events while off: %llu; an event costs %.2f us by empty kernels\n",
                static_cast<unsigned long long>(one->timed.events_while_off), one->timed.event_cost_ns * 1e-3);
  }
  std::printf("all of this in %.1f s\n", elapsed());
  if (!dump.empty()) {
    std::FILE* const to = std::fopen(dump.c_str(), "w");
    if (to == nullptr) throw std::runtime_error("cannot write '" + dump + "'");
    std::fprintf(to, "model,off_ns,monitor_ns,monitor_first\n");
    for (const auto& one : models) one->pairs.dump(to, one->model.name());
    if (std::fclose(to) != 0) throw std::runtime_error("cannot write '" + dump + "'");
  }
  std::fflush(stdout);
  for (const auto& one : models) {
    if (inferences > 0) {
      std::printf("\n%s\n", one->model.name().c_str());
      compare_means(one->timed, inferences,
                    dump.empty() ? "" : dump.substr(0, dump.size() - 4) + "." + one->model.name());
      compare_energy(one->timed, std::min(20.0, seconds / 2.0));
      std::fflush(stdout);
    }
    held = held && one->timed.events_while_off == 0;
  }
  if (!held) std::printf("an event was created although the profiler was off\n");
  return held ? 0 : 1;
}

}  // namespace measure

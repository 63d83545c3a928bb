// Searches a space of MobileNetV3 networks for the best one under a latency limit, with tables of latencies that were
// profiled block by block: of operators, each run by itself, and of kernels, as dnnopt fuses them (nnPerf section 6,
// Fig. 15). Then it measures its choices.
//
//   latency_search [DEVICE] [RESOLUTION]     the whole space: about 90 kinds of blocks are profiled
//   latency_search [DEVICE] medium           the same network with two kernels and two expansions: about 40 kinds
//   latency_search [DEVICE] small            a space of a few blocks, done soon
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <dnnopt/backend/measure/lone_kernels.hpp>
#include <dnnopt/backend/measure/opened_device.hpp>
#include <dnnopt/backend/run/executor.hpp>
#include <dnnopt/profile/clocks/host_clock.hpp>
#include <dnnopt/profile/report/latency_table.hpp>
#include <dnnopt/profile/statistics.hpp>
#include <dnnopt/zoo/generate_inputs.hpp>

#include "mobile_network.hpp"

namespace {

using namespace search;
using dnnopt::profile::latency_level;

/// A compiled network with an input.
struct ready_network {
  dnnopt::session session;
  dnnopt::named_tensors inputs;

  ready_network(const dnnopt::model& source, std::shared_ptr<dnnopt::opened_device> device, const char* passes)
      : session(dnnopt::compile(source, options_of(std::move(device), passes))) {
    const std::vector<dnnopt::tensor> made = dnnopt::generate_inputs(source.main, 1, dnnopt::symbol_values());
    inputs.add("x", made.at(0));
    (void)session.run(inputs);
  }

  /// Median end-to-end nanoseconds of `runs` inferences.
  double measure(std::size_t runs) {
    std::vector<double> times;
    for (std::size_t i = 0; i < runs; ++i) {
      const std::int64_t begin = dnnopt::profile::host_now_ns();
      (void)session.run(inputs);
      if (i >= runs / 10) times.push_back(static_cast<double>(dnnopt::profile::host_now_ns() - begin));
    }
    return dnnopt::profile::exact_quantile(times, 0.5);
  }

 private:
  static dnnopt::compile_options options_of(std::shared_ptr<dnnopt::opened_device> device, const char* passes) {
    dnnopt::compile_options options;
    options.opened = std::move(device);
    options.passes = passes;
    return options;
  }
};

/// Latencies at one level: the table, and the times of each part's launches in order.
class part_times {
 public:
  part_times(std::shared_ptr<dnnopt::opened_device> device, latency_level level)
      : device_(std::move(device)), level_(level), meter_(device_->context, options_of(*device_, level)) {}

  [[nodiscard]] const char* passes() const { return level() == latency_level::kernel ? "default" : "none"; }
  [[nodiscard]] const char* name() const { return level() == latency_level::kernel ? "kernel" : "operator"; }
  [[nodiscard]] latency_level level() const noexcept { return level_; }
  dnnopt::profile::latency_table table;

  /// What an inference of this network costs besides its kernels, as fast as the host is now.
  [[nodiscard]] dnnopt::profile::launch_model launches_of(ready_network& ready) {
    return meter_.measure_launches(ready.session.executor()->executed(), [&](dnnopt::run_observer* observer) {
      (void)ready.session.run(ready.inputs, observer);
    });
  }
  /// Measures what such a network costs besides its kernels again, and takes the median of all such measurements so
  /// far: a host's pace changes within seconds, and what is predicted is to hold for the minutes to come.
  void measure_launches(const dnnopt::model& network, int times) {
    ready_network ready(network, device_, passes());
    // Kernels so short that the host decides.
    const std::vector<double> short_ones(64, 1000.0);
    for (int i = 0; i < times; ++i) {
      const dnnopt::profile::launch_model now = launches_of(ready);
      paces_.emplace_back(now.predict(short_ones), now);
    }
    const auto middle = paces_.begin() + static_cast<std::ptrdiff_t>(paces_.size() / 2);
    std::nth_element(paces_.begin(), middle, paces_.end(),
                     [](const auto& one, const auto& other) { return one.first < other.first; });
    table.launches = middle->second;
  }

  /// Parts are to be profiled as they run in such a network: its weights and intermediate tensors pass through the
  /// caches between two runs of a kernel, of which a part alone has a hundredth.
  void live_in(const dnnopt::model& network) {
    const ready_network ready(network, device_, passes());
    const dnnopt::opencl_executor& executor = *ready.session.executor();
    network_bytes_ = executor.weight_bytes() + executor.memory().arena_bytes;
  }

  /// Profiles a part's kernels one by one and returns their keys in order of execution.
  std::vector<dnnopt::profile::latency_key> profile(const dnnopt::model& part) { return profile_into(part, table); }

  /// Profiles the kernels of a whole network again, adds that to the table, and returns the new times alone, in order
  /// of execution.
  std::vector<double> profile_again(const dnnopt::model& network) {
    dnnopt::profile::latency_table again;
    std::vector<double> times;
    for (const auto& key : profile_into(network, again)) times.push_back(again.find(key).value().p50_ns);
    for (const auto& [key, entry] : again.entries()) table.add(key, entry);
    return times;
  }

 private:
  static dnnopt::lone_kernel_options options_of(const dnnopt::opened_device& device, latency_level level) {
    dnnopt::lone_kernel_options options;
    options.level = level;
    // A processor's caches keep a lone kernel's data, which an inference would have pushed out of them.
    if (device.context.info().type == dnnopt::device_type::cpu) options.sweep_bytes = std::size_t{2} << 20;
    return options;
  }
  std::vector<dnnopt::profile::latency_key> profile_into(const dnnopt::model& network,
                                                         dnnopt::profile::latency_table& into) {
    ready_network ready(network, device_, passes());
    const dnnopt::program& executed = ready.session.executor()->executed();
    const dnnopt::opencl_executor& executor = *ready.session.executor();
    meter_.measure_kernels(
        executed, [&](dnnopt::run_observer* observer) { (void)ready.session.run(ready.inputs, observer); },
        std::max(network_bytes_, executor.weight_bytes() + executor.memory().arena_bytes), into);
    return dnnopt::launch_keys(executed, device_->context.info().name, level());
  }

  std::shared_ptr<dnnopt::opened_device> device_;
  latency_level level_;
  dnnopt::lone_kernel_meter meter_;
  std::size_t network_bytes_ = 0;
  std::vector<std::pair<double, dnnopt::profile::launch_model>>
      paces_;  // of the host, by what it makes of short kernels
};

/// Times of all parts of a space's networks.
class space_times {
 public:
  space_times(const space& of, part_times& by) : by_(by) {
    {
      const block_choice usual{of.kernels[of.kernels.size() / 2], of.expansions[of.expansions.size() / 2]};
      network_builder whole;
      whole.output(whole.network(
          of,
          architecture(of.stages.size(), std::vector<block_choice>((of.least_depth + of.most_depth + 1) / 2, usual))));
      by_.live_in(std::move(whole).take());
    }
    {
      network_builder stem;
      stem.output(stem.stem(stem.input(3, of.resolution), of));
      stem_.keys = by_.profile(std::move(stem).take());
    }
    std::int64_t channels = of.stem;
    std::int64_t side = (of.resolution + 1) / 2;
    for (std::size_t s = 0; s < of.stages.size(); ++s) {
      const stage& here = of.stages[s];
      for (const bool first : {true, false}) {
        const std::int64_t stride = first ? here.stride : 1;
        for (const int kernel : of.kernels)
          for (const int expansion : of.expansions) {
            network_builder alone;
            const auto in = alone.input(first ? channels : here.channels, side);
            alone.output(alone.block(in, here, {kernel, expansion}, stride));
            blocks_[{s, first, {kernel, expansion}}].keys = by_.profile(std::move(alone).take());
          }
        side = (side + stride - 1) / stride;
      }
      channels = here.channels;
    }
    {
      network_builder head;
      head.output(head.head(head.input(channels, side), of));
      head_.keys = by_.profile(std::move(head).take());
    }
    take_times();
  }

  /// Takes the table's times, after it has changed.
  void take_times() {
    for (part* p : all_parts()) {
      p->times.clear();
      for (const auto& key : p->keys) p->times.push_back(by_.table.find(key).value().p50_ns);
    }
  }

  /// Profiles the network's kernels again and returns what it is predicted by these times alone. The search prefers
  /// what the table takes for faster than it is: among hundreds of times some came out too small, and those are chosen.
  [[nodiscard]] double predict_again(const space& of, const architecture& chosen) {
    network_builder whole;
    whole.output(whole.network(of, chosen));
    const std::vector<double> times = by_.profile_again(std::move(whole).take());
    take_times();
    return by_.table.launches.predict(times);
  }

  /// Transfers and waiting as a whole network has them: its input, its output.
  void measure_launches(const space& of, int times) {
    architecture any(of.stages.size(), std::vector<block_choice>(of.least_depth, {of.kernels[0], of.expansions[0]}));
    network_builder whole;
    whole.output(whole.network(of, any));
    by_.measure_launches(std::move(whole).take(), times);
  }

  [[nodiscard]] std::size_t parts() const noexcept { return blocks_.size() + 2; }
  [[nodiscard]] double predict(const architecture& chosen) const { return predict(chosen, by_.table.launches); }
  [[nodiscard]] double predict(const architecture& chosen, const dnnopt::profile::launch_model& launches) const {
    std::vector<double> times = stem_.times;
    for (std::size_t s = 0; s < chosen.size(); ++s)
      for (std::size_t b = 0; b < chosen[s].size(); ++b) {
        const std::vector<double>& of_block = blocks_.at({s, b == 0, chosen[s][b]}).times;
        times.insert(times.end(), of_block.begin(), of_block.end());
      }
    times.insert(times.end(), head_.times.begin(), head_.times.end());
    return launches.predict(times);
  }

 private:
  /// Launches in order of execution.
  struct part {
    std::vector<dnnopt::profile::latency_key> keys;
    std::vector<double> times;
  };

  [[nodiscard]] std::vector<part*> all_parts() {
    std::vector<part*> all{&stem_, &head_};
    for (auto& [which, block] : blocks_) all.push_back(&block);
    return all;
  }

  part_times& by_;
  part stem_, head_;
  std::map<std::tuple<std::size_t, bool, block_choice>, part> blocks_;
};

/// Evolution as Once-for-all searches: the better half lives on, children are mutated or crossed.
class evolution {
 public:
  evolution(const space& of, std::uint64_t seed) : of_(of), random_(seed) {}

  [[nodiscard]] architecture draw() {
    architecture made(of_.stages.size());
    for (auto& blocks : made) {
      blocks.resize(of_.least_depth + pick(of_.most_depth - of_.least_depth + 1));
      for (block_choice& b : blocks) b = draw_block();
    }
    return made;
  }

  /// The network of the largest proxy that `predict` puts under `limit_ns`; none where drawing found none.
  template <class Predict>
  [[nodiscard]] std::optional<architecture> search(const Predict& predict, double limit_ns) {
    constexpr std::size_t population = 80;
    constexpr int generations = 40;
    std::vector<std::pair<double, architecture>> living;
    const auto admit = [&](architecture candidate) {
      if (predict(candidate) > limit_ns) return;
      const double proxy = accuracy_proxy(candidate);
      living.emplace_back(proxy, std::move(candidate));
    };
    // The smallest network first: near the lower end of the space drawing alone finds nothing.
    admit(architecture(of_.stages.size(),
                       std::vector<block_choice>(of_.least_depth, {of_.kernels.front(), of_.expansions.front()})));
    for (int i = 0; i < 2000 && living.size() < population; ++i) admit(draw());
    if (living.empty()) return std::nullopt;
    const auto better = [](const auto& a, const auto& b) { return a.first > b.first; };
    for (int generation = 0; generation < generations; ++generation) {
      std::stable_sort(living.begin(), living.end(), better);
      living.resize(std::min(living.size(), population / 2));
      const std::size_t parents = living.size();
      for (int tries = 0; tries < 400 && living.size() < population; ++tries) {
        architecture child = living[pick(parents)].second;
        if (pick(2) == 0) {
          const architecture& other = living[pick(parents)].second;
          for (std::size_t s = 0; s < child.size(); ++s)
            if (pick(2) == 0) child[s] = other[s];
        }
        mutate(child);
        admit(std::move(child));
      }
    }
    return std::max_element(living.begin(), living.end(),
                            [](const auto& a, const auto& b) { return a.first < b.first; })
        ->second;
  }

 private:
  std::size_t pick(std::size_t count) { return static_cast<std::size_t>(random_() % count); }
  block_choice draw_block() {
    return {of_.kernels[pick(of_.kernels.size())], of_.expansions[pick(of_.expansions.size())]};
  }
  void mutate(architecture& a) {
    auto& blocks = a[pick(a.size())];
    if (pick(4) == 0) blocks.resize(of_.least_depth + pick(of_.most_depth - of_.least_depth + 1), draw_block());
    blocks[pick(blocks.size())] = draw_block();
  }

  const space& of_;
  std::mt19937_64 random_;
};

double milliseconds(double ns) { return ns * 1e-6; }

/// The best network under a limit whose prediction holds when its kernels are measured again and the host's pace once
/// more: searched for anew, with the better table, until it does. The last one found where none is under the limit any
/// more. Each round adds to what all former ones have measured: the median of single rounds until one agrees would
/// prefer the fast ones.
std::optional<architecture> confirmed(const space& of, space_times& by, double limit_ns) {
  constexpr int most_rounds = 8;
  std::optional<architecture> found;
  for (int round = 0; round < most_rounds; ++round) {
    const auto next = evolution(of, 7).search([&](const architecture& a) { return by.predict(a); }, limit_ns);
    if (!next) {
      if (found)
        std::printf("  search %d: at the host's usual pace no network is under the limit; the last one stays\n",
                    round + 1);
      return found;
    }
    found = next;
    const double before = by.predict(*found);
    by.measure_launches(of, 3);
    const double again = by.predict_again(of, *found);
    std::printf(
        "  search %d: predicted %.3f ms; with its kernels and the host's pace measured again %.3f ms (%+.1f%%)\n",
        round + 1, milliseconds(before), milliseconds(again), 100.0 * (again / before - 1.0));
    if (std::abs(again - before) <= 0.05 * before && again <= 1.02 * limit_ns) break;
  }
  return found;
}

int run(const std::string& spec, const std::string& size) {
  // Profiling takes minutes on some devices: who waits sees each line when it is there.
  (void)std::setvbuf(stdout, nullptr, _IOLBF, BUFSIZ);
  const bool small = size == "small";
  space of;
  if (small) {
    of = {32, 8, {{16, 2, true, true}}, 48, 64, 10, 1, 2, {3, 5}, {2}};
  } else if (size == "medium") {
    of.kernels = {3, 5};
    of.expansions = {3, 6};
  } else {
    of.resolution = std::max(32, std::atoi(size.c_str()));
  }
  const auto device = std::make_shared<dnnopt::opened_device>(spec);
  std::printf("device: %s, driver %s\nnetworks of %lld x %lld\n", device->context.info().name.c_str(),
              device->context.info().driver_version.c_str(), static_cast<long long>(of.resolution),
              static_cast<long long>(of.resolution));

  part_times by_kernel(device, latency_level::kernel);
  part_times by_operator(device, latency_level::operator_);
  const std::int64_t begin = dnnopt::profile::host_now_ns();
  const auto seconds = [&] { return static_cast<double>(dnnopt::profile::host_now_ns() - begin) * 1e-9; };
  space_times kernels(of, by_kernel);
  std::printf("profiled kernels in %.1f s\n", seconds());
  space_times operators(of, by_operator);
  kernels.measure_launches(of, small ? 2 : 5);
  operators.measure_launches(of, small ? 2 : 5);
  std::printf("profiled %zu parts in %.1f s: %zu keys of kernels, %zu of operators\n\n", kernels.parts(), seconds(),
              by_kernel.table.size(), by_operator.table.size());

  // Limits between the space's ends, as the two tables see them: what is not fused seems slower to the one of
  // operators.
  const architecture least(of.stages.size(),
                           std::vector<block_choice>(of.least_depth, {of.kernels.front(), of.expansions.front()}));
  const architecture most(of.stages.size(),
                          std::vector<block_choice>(of.most_depth, {of.kernels.back(), of.expansions.back()}));
  const double low = kernels.predict(least);
  const double high = std::max(kernels.predict(most), operators.predict(most));
  const auto by_kernels = [&](const architecture& a) { return kernels.predict(a); };
  const auto by_operators = [&](const architecture& a) { return operators.predict(a); };
  std::printf("the fronts: proxy of the best network under each limit\n%10s %16s %16s\n", "limit ms", "kernel table",
              "operator table");
  constexpr int limits = 8;
  constexpr int chosen_limit = 3;
  // The best network lies as near to its limit as the table allows, and a prediction may be some percent off: what is
  // to be used is searched for with so much room that it keeps the limit while predictions are within a tenth.
  constexpr double room = 1.0 - 1.0 / 1.1;
  double limit_ns = 0.0;
  for (int i = 1; i <= limits; ++i) {
    const double limit = low + (high - low) * i / limits;
    const auto a = evolution(of, 7).search(by_kernels, limit);
    const auto b = evolution(of, 7).search(by_operators, limit);
    const auto shown = [](const std::optional<architecture>& found) {
      char text[32] = "none";
      if (found) std::snprintf(text, sizeof text, "%.3f", accuracy_proxy(*found));
      return std::string(text);
    };
    std::printf("%10.3f %16s %16s\n", milliseconds(limit), shown(a).c_str(), shown(b).c_str());
    if (i == chosen_limit) limit_ns = limit;
  }

  // A space whose ends lie near each other has no such network but its least.
  const double sought_ns = std::max((1.0 - room) * limit_ns, low);
  std::printf("\nunder %.3f ms, predicted to be under %.3f ms:\n", milliseconds(limit_ns), milliseconds(sought_ns));
  const std::optional<architecture> best_by_kernels = confirmed(of, kernels, sought_ns);
  const std::optional<architecture> best_by_operators = evolution(of, 7).search(by_operators, sought_ns);
  bool covered = best_by_kernels.has_value();
  bool kept = true;
  const auto check = [&](const char* table, const std::optional<architecture>& found, const auto& predict,
                         part_times& times) {
    if (!found) {
      std::printf("%s table: no network of the space\n", table);
      return;
    }
    network_builder whole;
    whole.output(whole.network(of, *found));
    ready_network ready(std::move(whole).take(), device, "default");
    const double predicted = predict(*found);
    // In turns with what it costs besides its kernels, for the host's pace of these seconds is the one that counts.
    std::vector<double> inferences, paced;
    for (int turn = 0; turn < (small ? 2 : 11); ++turn) {
      inferences.push_back(ready.measure(small ? 10 : 40));
      if (times.level() == latency_level::kernel) paced.push_back(kernels.predict(*found, times.launches_of(ready)));
    }
    const double measured = dnnopt::profile::exact_quantile(inferences, 0.5);
    std::printf("%s table: %s, proxy %.3f\n  predicted %.3f ms, measured %.3f ms (%+.1f%%), %s the limit\n", table,
                to_string(*found).c_str(), accuracy_proxy(*found), milliseconds(predicted), milliseconds(measured),
                100.0 * (measured / predicted - 1.0), measured <= limit_ns ? "under" : "OVER");
    if (times.level() != latency_level::kernel) return;
    kept = measured <= limit_ns;
    const double then = dnnopt::profile::exact_quantile(paced, 0.5);
    std::printf("  with the host's pace while it was measured: %.3f ms (%+.1f%%)\n", milliseconds(then),
                100.0 * (measured / then - 1.0));
    const auto whole_keys =
        times.table.predict(dnnopt::launch_keys(ready.session.executor()->executed(), device->context.info().name));
    std::printf("  from the whole network's own keys: %.3f ms, %zu keys not in the table\n",
                milliseconds(whole_keys.e2e_ns), whole_keys.missing.size());
    covered = covered && whole_keys.missing.empty();
  };
  check("kernel", best_by_kernels, by_kernels, by_kernel);
  check("operator", best_by_operators, by_operators, by_operator);
  // The small space tests this program, on machines that have other work too.
  return covered && (kept || small) ? 0 : 1;
}

}  // namespace

int main(int count, char** values) {
  try {
    return run(count > 1 ? values[1] : "opencl", count > 2 ? values[2] : "224");
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "latency_search: %s\n", failure.what());
    return 2;
  }
}

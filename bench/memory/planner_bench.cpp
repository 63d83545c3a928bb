// Measures the memory planner on bench/data/memory: planner_bench [hard|anytime|open|large|strategies|order|objects]...
// Times are wall and processor seconds of one process; medians over repeats where a line says so.
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "dnnopt/memory/memory_io.hpp"
#include "dnnopt/memory/objects/min_cost_flow.hpp"
#include "dnnopt/memory/order/schedule_memory.hpp"
#include "dnnopt/memory/plan.hpp"
#include "dnnopt/memory/plan_check.hpp"

namespace {

using namespace dnnopt::memory;
using usages = std::vector<buffer_usage>;

const std::vector<std::string> hard_names{"A", "B", "C", "D", "E", "F", "G", "H", "I", "J", "K"};

std::filesystem::path folder() { return std::filesystem::path(DNNOPT_SOURCE_DIR) / "bench" / "data" / "memory"; }

std::string text_of(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error("cannot open " + path.string());
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

usages hard(const std::string& name) {
  return read_usages(text_of(folder() / "minimalloc" / (name + ".1048576.csv"))).usages;
}

struct timed {
  offset_plan plan;
  double processor = 0.0;
};

timed run(const usages& records, const offset_options& options) {
  const std::clock_t before = std::clock();
  timed result{plan_offsets(records, options), 0.0};
  result.processor = static_cast<double>(std::clock() - before) / CLOCKS_PER_SEC;
  check_plan(records, result.plan);
  return result;
}

double ratio(const usages& records, const offset_plan& plan) {
  return static_cast<double>(plan.bytes) / static_cast<double>(largest_live_sum(records));
}

void print_processor() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (line.rfind("model name", 0) == 0) {
      std::printf("processor%s\n", line.substr(line.find(':')).c_str());
      return;
    }
  }
}

/// The closed instances: median of 5 seeds, rows as given, shuffled, time reversed; one thread, no capacity.
void measure_hard() {
  std::printf("%-4s %-9s %9s %9s %7s %10s %10s %10s\n", "", "rows", "bytes", "bound", "proved", "cpu median", "cpu max",
              "wall med.");
  for (const std::string& name : hard_names) {
    if (name == "D" || name == "J") continue;
    for (const char* rows : {"given", "shuffled", "reversed"}) {
      std::vector<double> processor;
      std::vector<double> wall;
      bool proved = true;
      timed last;
      usages records;
      for (unsigned repeat = 0; repeat < 5; ++repeat) {
        records = hard(name);
        if (rows[0] == 's') {
          std::mt19937 random(repeat);
          std::shuffle(records.begin(), records.end(), random);
        }
        if (rows[0] == 'r') {
          for (auto& r : records) r = {-r.upper, -r.lower, r.size, r.alignment};
        }
        offset_options options;
        options.seed = repeat + 1;
        last = run(records, options);
        processor.push_back(last.processor);
        wall.push_back(last.plan.seconds);
        proved = proved && last.plan.proved;
      }
      std::sort(processor.begin(), processor.end());
      std::sort(wall.begin(), wall.end());
      std::printf("%-4s %-9s %9lld %9lld %7s %10.4f %10.4f %10.4f\n", name.c_str(), rows,
                  static_cast<long long>(last.plan.bytes), static_cast<long long>(largest_live_sum(records)),
                  proved ? "yes" : "no", processor[2], processor[4], wall[2]);
    }
  }
}

void measure_anytime() {
  for (const double budget : {0.001, 0.005, 0.02, 0.1, 1.0, 3.0}) {
    double sum = 0.0;
    std::printf("budget %.3f s:", budget);
    for (const std::string& name : hard_names) {
      offset_options options;
      options.budget = budget;
      const auto records = hard(name);
      const double r = ratio(records, run(records, options).plan);
      sum += std::log(r);
      std::printf(" %s %.4f", name.c_str(), r);
    }
    std::printf(" geomean %.4f\n", std::exp(sum / static_cast<double>(hard_names.size())));
  }
}

void measure_open(double budget) {
  for (const char* name : {"D", "J"}) {
    offset_options options;
    options.budget = budget;
    const auto records = hard(name);
    const auto result = run(records, options);
    std::printf("%s: %lld bytes, bound %lld, ratio %.4f, proved %s, wall %.2f s, cpu %.2f s\n", name,
                static_cast<long long>(result.plan.bytes), static_cast<long long>(result.plan.lower_bound),
                ratio(records, result.plan), result.plan.proved ? "yes" : "no", result.plan.seconds, result.processor);
  }
}

void measure_large() {
  for (const char* name : {"resnet50", "G_1", "pangu_2.6B", "S_1", "Y_1"}) {
    const auto records = read_usages(text_of(folder() / "large" / (std::string(name) + ".csv"))).usages;
    for (const auto strategy : {offset_strategy::quick, offset_strategy::exact}) {
      offset_options options;
      options.strategy = strategy;
      options.budget = 15.0;
      const auto result = run(records, options);
      std::printf("%-10s %6zu buffers, %-5s: %lld bytes, ratio %.5f, proved %s, wall %.3f s, cpu %.3f s\n", name,
                  records.size(), std::string(to_string(strategy)).c_str(), static_cast<long long>(result.plan.bytes),
                  ratio(records, result.plan), result.plan.proved ? "yes" : "no", result.plan.seconds,
                  result.processor);
    }
  }
}

void measure_strategies() {
  for (const auto& [strategy, name] : offset_strategies) {
    double sum = 0.0;
    double processor = 0.0;
    for (const std::string& instance : hard_names) {
      offset_options options;
      options.strategy = strategy;
      options.budget = 1.0;
      const auto records = hard(instance);
      const auto result = run(records, options);
      sum += std::log(ratio(records, result.plan));
      processor += result.processor;
    }
    std::printf("%-22s geomean over the bound %.4f, cpu %.4f s for all\n", std::string(name).c_str(),
                std::exp(sum / static_cast<double>(hard_names.size())), processor);
  }
}

std::map<std::string, order_graph> graphs() {
  std::map<std::string, order_graph> result;
  for (const auto& entry : std::filesystem::directory_iterator(folder() / "graphs")) {
    const auto document = nlohmann::json::parse(text_of(entry.path()));
    std::vector<simple_operation> operations;
    for (const auto& node : document.at("nodes")) {
      operations.push_back(
          {node.at("inputs").get<std::vector<std::uint32_t>>(), node.at("out_bytes").get<std::int64_t>()});
    }
    result.emplace(document.at("name").get<std::string>(), make_order_graph(operations));
  }
  return result;
}

void measure_order() {
  for (const auto& [name, graph] : graphs()) {
    const std::clock_t before = std::clock();
    const auto plan = plan_schedule(graph);
    const double processor = static_cast<double>(std::clock() - before) / CLOCKS_PER_SEC;
    check_plan(plan.records.usages, plan.offsets);
    const auto program = order_by(graph, order_strategy::program);
    std::printf(
        "%-32s program order %lld, order %lld (%s), arena %lld, states %zu, cpu %.4f s, wall of the order %.4f s\n",
        name.c_str(), static_cast<long long>(cost_of_order(graph, program).peak),
        static_cast<long long>(plan.order.peak), plan.order.proved ? "proved" : "open",
        static_cast<long long>(plan.offsets.bytes), plan.order.states, processor, plan.order.seconds);
  }
}

void measure_objects() {
  for (const auto& [name, graph] : graphs()) {
    const auto records = usages_of_order(graph, order_by(graph, order_strategy::program)).usages;
    std::printf("%-32s bound %lld:", name.c_str(), static_cast<long long>(shared_objects_lower_bound(records)));
    for (const auto strategy : {object_strategy::naive, object_strategy::equality, object_strategy::greedy_in_order,
                                object_strategy::greedy_by_size, object_strategy::greedy_by_size_improved,
                                object_strategy::greedy_by_breadth, object_strategy::best}) {
      const auto plan = plan_objects(records, strategy);
      check_plan(records, plan);
      std::printf(" %s %lld", std::string(to_string(strategy)).substr(8).c_str(), static_cast<long long>(plan.bytes));
    }
    if (records.size() <= 400)
      std::printf(" min_cost_flow %lld", static_cast<long long>(plan_objects_by_flow(records).bytes));
    std::printf("\n");
  }
}

}  // namespace

int main(int count, char** arguments) {
  const std::map<std::string, std::function<void()>> parts{{"hard", measure_hard},
                                                           {"anytime", measure_anytime},
                                                           {"open", [] { measure_open(60.0); }},
                                                           {"open300", [] { measure_open(300.0); }},
                                                           {"large", measure_large},
                                                           {"strategies", measure_strategies},
                                                           {"order", measure_order},
                                                           {"objects", measure_objects}};
  try {
    print_processor();
    for (int i = 1; i < count; ++i) {
      const auto part = parts.find(arguments[i]);
      if (part == parts.end()) throw std::runtime_error("unknown part " + std::string(arguments[i]));
      part->second();
    }
    if (count < 2) std::printf("usage: planner_bench hard|anytime|open|open300|large|strategies|order|objects ...\n");
  } catch (const std::exception& fault) {
    std::fprintf(stderr, "%s\n", fault.what());
    return 1;
  }
  return 0;
}

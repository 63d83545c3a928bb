// Draws operators and graphs from seeds and compares a device, in every form of kernels, with the reference backend.
//
// usage: random_nets operators|graphs|mutants --first SEED --count N [--batch N] [--device SPEC] [--form FORM] [--row
// NAME] [--integer-dots NAME] [--matrix-steps NAME] [--describe] [--save FOLDER]
//
// operators: one operator, at up to three shapes, --batch of them in a model; graphs: 5 to 60 operators, with symbolic
// dims at several shapes in one session; mutants: such graphs after rewriting rules run backwards, which the reference
// backend must find equal to the original before a device sees them. With --device reference they are only optimized
// and evaluated there, some hundred times as fast.
// --save writes each graph as FOLDER/SEED.onnx, and the inputs of its first trial as FOLDER/SEED_NAME.npy, for
// `dnnopt verify`. Prints a line for each fault, a line "at SEED COUNT" before each batch, and counts at the end. Exit
// status 1 where there is a fault. random_nets.py runs it for long, in processes of their own, so that a crash costs
// one case.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include <dnnopt/graph_io.hpp>
#include <dnnopt/npy.hpp>
#include <dnnopt/onnx/export.hpp>

#include "property/graph_cases.hpp"
#include "property/mutated_graph.hpp"
#include "property/operator_cases.hpp"

namespace {

struct arguments {
  std::string what;
  std::uint64_t first = 1;
  std::uint64_t count = 100;
  std::uint64_t batch = 8;
  std::string device = "opencl";
  std::string row;
  std::string integer_dots = "automatic";
  std::string matrix_steps = "automatic";
  std::vector<dnnopt::kernel_form> forms{dnnopt::kernel_form::vectors, dnnopt::kernel_form::groups};
  bool describe = false;
  std::string folder;
};

arguments parsed(int count, char** texts) {
  arguments a;
  if (count < 2) throw std::runtime_error("usage: random_nets operators --first SEED --count N ...");
  a.what = texts[1];
  for (int i = 2; i < count; ++i) {
    const std::string flag = texts[i];
    if (flag == "--describe") {
      a.describe = true;
      continue;
    }
    if (++i == count) throw std::runtime_error(flag + " wants a value");
    const std::string value = texts[i];
    if (flag == "--first")
      a.first = std::stoull(value);
    else if (flag == "--count")
      a.count = std::stoull(value);
    else if (flag == "--batch")
      a.batch = std::max<std::uint64_t>(1, std::stoull(value));
    else if (flag == "--device")
      a.device = value;
    else if (flag == "--row")
      a.row = value;
    else if (flag == "--integer-dots")
      a.integer_dots = value;
    else if (flag == "--matrix-steps")
      a.matrix_steps = value;
    else if (flag == "--save")
      a.folder = value;
    else if (flag == "--form")
      a.forms = {dnnopt::find_kernel_form(value).value()};
    else
      throw std::runtime_error("unknown flag " + flag);
  }
  // Without a device there are no kernels.
  if (a.device == "reference") a.forms.clear();
  return a;
}

int operators(const arguments& a) {
  if (testing::rows_named(a.row).empty()) throw std::runtime_error("no row is named " + a.row);
  dnnopt::opencl::program_cache_options programs;
  programs.on_disk = false;
  testing::case_checker checker(std::make_shared<dnnopt::opened_device>(a.device, programs), a.forms,
                                [](const std::string& line) { std::printf("FAULT %s\n", line.c_str()); });
  checker.integer_dots = a.integer_dots;
  checker.matrix_steps = a.matrix_steps;
  for (std::uint64_t at = a.first; at < a.first + a.count; at += a.batch) {
    const std::uint64_t count = std::min(a.batch, a.first + a.count - at);
    std::printf("at %llu %llu\n", static_cast<unsigned long long>(at), static_cast<unsigned long long>(count));
    std::fflush(stdout);
    std::vector<testing::operator_case> cases;
    for (std::uint64_t seed = at; seed < at + count; ++seed) cases.push_back(testing::drawn_case(seed, a.row));
    if (a.describe)
      for (const testing::operator_case& c : cases) {
        dnnopt::graph g;
        (void)testing::add_case(g, dnnopt::standard_ops(), c);
        std::printf("%s", dnnopt::to_string(g).c_str());
      }
    checker.check(cases);
  }
  const testing::case_counts& n = checker.counts;
  std::printf("done %zu cases %zu runs %zu refused %zu on_host %zu wrong\n", n.cases, n.runs, n.refused, n.on_host,
              n.wrong);
  return n.wrong == 0 ? 0 : 1;
}

std::string without_line_ends(std::string text) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

/// Writes a graph and the inputs of a trial as files that begin with `path`.
void save(const dnnopt::graph& g, const testing::trial& values, const std::string& path) {
  dnnopt::export_onnx(g, path + ".onnx");
  for (std::size_t i = 0; i < g.inputs().size(); ++i)
    dnnopt::write_npy(path + "_" + g.value_at(g.inputs()[i]).name + ".npy", values.plain.at(g.inputs()[i]));
}

int graphs(const arguments& a, bool mutated) {
  dnnopt::opencl::program_cache_options programs;
  programs.on_disk = false;
  const auto device = a.forms.empty() ? nullptr : std::make_shared<dnnopt::opened_device>(a.device, programs);
  const dnnopt::op_set ops = dnnopt::standard_ops();
  const testing::reversed_rules rules(ops);
  std::size_t wrong = 0;
  std::size_t runs = 0;
  std::size_t steps = 0;
  std::size_t unequal = 0;
  const testing::graph_checker checker([&](const std::string& line) {
    ++wrong;
    std::printf("FAULT %s\n", without_line_ends(line).c_str());
  });
  for (std::uint64_t seed = a.first; seed < a.first + a.count; ++seed) {
    std::printf("at %llu 1\n", static_cast<unsigned long long>(seed));
    std::fflush(stdout);
    const testing::random_graph made = testing::grown_graph(static_cast<std::uint32_t>(seed));
    const dnnopt::model original = made.model();
    dnnopt::model m = original;
    std::string what = "seed " + std::to_string(seed);
    if (mutated) {
      std::mt19937 random(static_cast<std::uint32_t>(seed));
      for (const std::string& name : rules.mutate(m.main, random, 8)) what += " " + name, ++steps;
      // Rules that hold only where nothing overflows or is NaN may not hold backwards.
      dnnopt::compile_options plain;
      plain.device = "reference";
      plain.passes = "none";
      bool equal = true;
      testing::graph_checker([&](const std::string&) { equal = false; }).check(what, original, m, made.trials(), plain);
      if (!equal) {
        ++unequal;
        continue;
      }
    }
    if (a.describe) std::printf("%s", dnnopt::to_string(m.main).c_str());
    if (!a.folder.empty()) save(m.main, made.trials().front(), a.folder + "/" + std::to_string(seed));
    dnnopt::compile_options passes;
    passes.device = "reference";
    checker.check(what + " on the reference", original, m, made.trials(), passes);
    for (const dnnopt::kernel_form form : a.forms) {
      dnnopt::compile_options options;
      options.opened = device;
      options.form = form;
      options.integer_dots = a.integer_dots;
      options.matrix_steps = a.matrix_steps;
      // Quick kernels have other texts: several in one, with numbers as arguments.
      options.first_start = seed % 2 == 0 ? dnnopt::first_start::optimized : dnnopt::first_start::quick;
      checker.check(what + " --form " + std::string(dnnopt::name_of(form)), original, m, made.trials(), options);
      runs += made.trials().size();
    }
  }
  std::printf("done %llu cases %zu runs %zu steps %zu unequal %zu wrong\n", static_cast<unsigned long long>(a.count),
              runs, steps, unequal, wrong);
  return wrong == 0 ? 0 : 1;
}

}  // namespace

int main(int count, char** texts) {
  try {
    const arguments a = parsed(count, texts);
    if (a.what == "operators") return operators(a);
    if (a.what == "graphs" || a.what == "mutants") return graphs(a, a.what == "mutants");
    throw std::runtime_error("nothing is named " + a.what);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "random_nets: %s\n", e.what());
    return 2;
  }
}

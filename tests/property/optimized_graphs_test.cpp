// Random graphs give the same outputs with and without passes, on the reference backend and as kernels of both forms;
// the verifier holds after every pass, and what is optimized once more stays the same.
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>

#include <catch2/catch.hpp>

#include <dnnopt/backend/measure/opened_device.hpp>

#include "property/graph_cases.hpp"
#include "property/mutated_graph.hpp"
#include "property/operator_cases.hpp"

namespace {

/// How many graphs: what the environment says, for long runs, or the number that belongs to every test run.
std::uint32_t graph_count(const char* variable, std::uint32_t usual) {
  const char* const given = std::getenv(variable);
  return given == nullptr ? usual : static_cast<std::uint32_t>(std::strtoul(given, nullptr, 10));
}
std::uint32_t first_seed() { return graph_count("DNNOPT_FIRST_SEED", 1); }

std::shared_ptr<dnnopt::opened_device> shared_device() {
  static const auto device =
      std::make_shared<dnnopt::opened_device>("opencl", dnnopt::opencl::program_cache_options{.on_disk = false});
  return device;
}

void tell(const std::string& line) { FAIL_CHECK(line); }

/// The reference backend, or kernels of a form.
dnnopt::compile_options options_of(std::optional<dnnopt::kernel_form> form) {
  dnnopt::compile_options options;
  if (form) {
    options.opened = shared_device();
    options.form = *form;
    options.require_device = true;
  } else {
    options.device = "reference";
  }
  return options;
}

/// Graphs from the first seed on; one that fails does not hide the next.
void compare_all(std::uint32_t count, std::optional<dnnopt::kernel_form> form) {
  const testing::graph_checker checker(tell);
  for (std::uint32_t seed = first_seed(); seed < first_seed() + count; ++seed) {
    const std::string what =
        "seed " + std::to_string(seed) + " on " + (form ? std::string(dnnopt::name_of(*form)) : "the reference");
    const testing::random_graph made = testing::grown_graph(seed);
    const dnnopt::model m = made.model();
    dnnopt::compile_options options = options_of(form);
    // Quick kernels have other texts: several in one, with numbers as arguments.
    if (form && seed % 2 == 1) options.first_start = dnnopt::first_start::quick;
    checker.check(what, m, m, made.trials(), options);
    // Where dims are symbols, one program serves all trials, and one is made for the first trial's numbers.
    if (made.trials().size() > 1 && seed % 4 == 0) {
      dnnopt::compile_options bound = options;
      for (const dnnopt::value_id id : m.main.inputs())
        bound.shapes[m.main.value_at(id).name] = made.trials()[0].plain[id].dims();
      checker.check(what + ", dims bound", m, m, {made.trials()[0]}, bound);
    }
    if (!form) {
      dnnopt::compile_report first;
      dnnopt::compile_report second;
      dnnopt::model once = m;
      once.main = dnnopt::optimize(m, options, first);
      INFO(what);
      CHECK(dnnopt::to_string(once.main) == dnnopt::to_string(dnnopt::optimize(once, options, second)));
    }
  }
}

}  // namespace

TEST_CASE("random graphs keep their outputs under passes") {
  compare_all(graph_count("DNNOPT_RANDOM_GRAPHS", 200), std::nullopt);
}

TEST_CASE("random graphs keep their outputs as fused kernels") {
  compare_all(graph_count("DNNOPT_RANDOM_KERNEL_GRAPHS", 30), dnnopt::kernel_form::vectors);
}

TEST_CASE("random graphs keep their outputs as fused kernels in the form for GPUs") {
  compare_all(graph_count("DNNOPT_RANDOM_KERNEL_GRAPHS", 30), dnnopt::kernel_form::groups);
}

TEST_CASE("graphs that rules run backwards made keep their outputs under passes") {
  const dnnopt::op_set ops = dnnopt::standard_ops();
  const testing::reversed_rules rules(ops);
  CHECK(rules.size() >= 40);
  const testing::graph_checker checker(tell);
  std::size_t applied = 0;
  for (std::uint32_t seed = first_seed(); seed < first_seed() + graph_count("DNNOPT_MUTATED_GRAPHS", 60); ++seed) {
    const testing::random_graph made = testing::grown_graph(seed);
    const dnnopt::model m = made.model();
    dnnopt::model mutant = m;
    std::mt19937 random(seed);
    std::string names;
    for (const std::string& name : rules.mutate(mutant.main, random, 6)) names += " " + name, ++applied;
    checker.check("seed " + std::to_string(seed) + ", by" + names, m, mutant, made.trials(), options_of(std::nullopt));
  }
  CHECK(applied >= 50);
}

TEST_CASE("graphs that rules run backwards made keep their outputs as fused kernels") {
  const dnnopt::op_set ops = dnnopt::standard_ops();
  const testing::reversed_rules rules(ops);
  const testing::graph_checker checker(tell);
  // Of the first a block is split whose first part needs a node that each reader computes for itself and that is no
  // view.
  for (const std::uint32_t seed : {22000019U, 1U, 2U}) {
    const testing::random_graph made = testing::grown_graph(seed);
    const dnnopt::model m = made.model();
    dnnopt::model mutant = m;
    std::mt19937 random(seed);
    std::string names;
    for (const std::string& name : rules.mutate(mutant.main, random, 8)) names += " " + name;
    for (const std::string dots : {"automatic", "none"}) {
      dnnopt::compile_options options = options_of(dnnopt::kernel_form::groups);
      options.integer_dots = dots;
      checker.check("seed " + std::to_string(seed) + ", by" + names, m, mutant, made.trials(), options);
    }
  }
}

// Feeds arbitrary models to what stands behind the importer: shape propagation, passes, lowering in both forms of
// kernels, and evaluation on the reference backend. Each gives a result or a dnnopt::error; the verifier holds after
// every pass.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <dnnopt/backend/codegen/lower.hpp>
#include <dnnopt/backend/program/make_program.hpp>
#include <dnnopt/onnx/import.hpp>
#include <dnnopt/ops/standard.hpp>
#include <dnnopt/passes/pipeline.hpp>
#include <dnnopt/passes/rdp.hpp>
#include <dnnopt/passes/verify.hpp>
#include <dnnopt/reference/evaluate_node.hpp>
#include <dnnopt/zoo/generate_inputs.hpp>

#include "support/assumed_devices.hpp"

namespace {

using namespace dnnopt;

/// A fault that no input may cause: libFuzzer keeps the input.
[[noreturn]] void fault(const std::string& what) {
  std::fprintf(stderr, "%s\n", what.c_str());
  std::abort();
}

/// Runs `step`; false where it ends in an error of ours. What the verifier finds is a fault.
template <class Step>
bool runs(const char* name, const Step& step) {
  try {
    step();
    return true;
  } catch (const error& e) {
    if (e.code() == errc::verification_failed) fault(std::string(name) + ": " + e.what());
    return false;
  }
}

/// Whether evaluation is quick: known small dims everywhere, and no loop, whose trips only data tells.
bool is_small(const graph& g, const symbol_values& twos) {
  if (g.node_count() > 60) return false;
  std::int64_t elements = 0;
  for (const node_id id : g.nodes()) {
    const node& n = g.node_at(id);
    for (const auto& [name, held] : n.attributes)
      if (std::holds_alternative<subgraph>(held)) return false;
    std::int64_t read = 1;
    for (const auto* ends : {&n.inputs, &n.outputs})
      for (const value_id v : *ends) {
        if (v == no_value) continue;
        if (!g.facts(v).dims) return false;
        std::int64_t count = 1;
        for (const index_expr& d : *g.facts(v).dims) {
          const auto extent = d.try_evaluate(twos);
          if (!extent || *extent < 0 || *extent > 4096) return false;
          count *= *extent + 1;
          if (count > 65536) return false;
        }
        read *= count;
        if (read > (std::int64_t{1} << 26)) return false;
      }
    elements += read;
    if (elements > (std::int64_t{1} << 27)) return false;
  }
  return true;
}

/// What passes are told of the device, and which of them run.
struct pipeline {
  pass_environment environment;
  std::string passes;
};

/// By choice: 1 wants products of integers, 2 products of codes, 3 joins as DNNFusion published it; all else the
/// default.
pipeline pipeline_of(std::size_t choice, bool folds) {
  pipeline result;
  result.environment.evaluate = &reference::evaluate_node;
  result.environment.integer_products = choice == 1;
  result.environment.code_products = choice == 2;
  result.passes = "default";
  if (choice == 3) result.passes += ",-fuse,fuse_published";
  // Folding evaluates what is constant: only what is small.
  if (!folds) result.passes += ",-fold_constants";
  return result;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const import_options options = [] {
    import_options o;
    o.ops = standard_ops();
    o.limits.nodes = 200;
    o.limits.dense_bytes = std::size_t{1} << 20;
    o.missing_data = onnx::missing_data::zeros;
    return o;
  }();
  graph g;
  if (!runs("import", [&] {
        g = import_onnx({reinterpret_cast<const std::byte*>(data), size}, "/nonexistent", options);
      }))
    return 0;
  graph plain = g;
  const bool propagated = runs("rdp", [&] { rdp{}.run(plain); });
  const symbol_values twos = plain.expressions().all_bound_to(2);
  const bool small = propagated && is_small(plain, twos);
  const pipeline run = pipeline_of(size % 8, small);
  graph optimized = g;
  const bool passed = runs("passes", [&] {
    (void)run_passes(optimized, pass_names(run.passes), run.environment,
                     [](const graph& now, const pass_report& pass) { verify(now, pass.name); });
  });
  if (!passed) return 0;
  optimized.compact();
  const auto shared = std::make_shared<const graph>(std::move(optimized));
  for (const device_info& device : testing::assumed_devices())
    (void)runs("lowering", [&] { (void)make_program(shared, codegen::default_lower_options(&device), false); });
  if (!small) return 0;
  (void)runs("evaluation", [&] {
    const std::vector<tensor> inputs = generate_inputs(g, 0, twos);
    (void)reference::evaluate(g, inputs);
    (void)reference::evaluate(*shared, inputs);
  });
  return 0;
}

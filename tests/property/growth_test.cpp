// What compile makes of a graph grows no faster than the graph: characters of sources, sizes of index expressions,
// arguments of a kernel, and time, at 10, 100 and 1,000 nodes of each kind. No device is needed.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <catch2/catch.hpp>

#include <dnnopt/backend/codegen/frames/sources.hpp>
#include <dnnopt/backend/program/make_program.hpp>
#include <dnnopt/backend/program/subgraphs.hpp>
#include <dnnopt/ops/standard.hpp>
#include <dnnopt/passes/pipeline.hpp>
#include <dnnopt/reference/evaluate_node.hpp>

namespace {

using namespace dnnopt;
using ints = std::vector<std::int64_t>;

/// A graph that grows node by node.
struct grown {
  op_set ops = standard_ops();
  graph g;
  std::size_t count = 0;

  value_id input(std::vector<index_expr> dims) {
    return g.add_input("x" + std::to_string(count++), dtype::float32, shape(dims.begin(), dims.end()));
  }
  value_id integers(const ints& held) {
    return g.add_constant("c" + std::to_string(count++),
                          tensor::of<std::int64_t>({static_cast<std::int64_t>(held.size())}, held));
  }
  std::vector<value_id> add(std::string_view op, std::vector<value_id> reads, std::size_t outputs = 1,
                            attribute_map attributes = {}) {
    std::vector<value_id> out;
    for (std::size_t i = 0; i < outputs; ++i) out.push_back(g.add_value("v" + std::to_string(count++)));
    g.add_node(ops.at("", op), std::string(op) + std::to_string(count++), std::move(reads), out, std::move(attributes));
    return out;
  }
  value_id one(std::string_view op, std::vector<value_id> reads, attribute_map attributes = {}) {
    return add(op, std::move(reads), 1, std::move(attributes))[0];
  }
  static attribute_map with(const char* name, attribute held) {
    attribute_map a;
    a.set(name, std::move(held));
    return a;
  }
};

struct figures {
  double characters = 0;   ///< of the sources without what all have in common
  double expressions = 0;  ///< operators and operands of dims, arguments and work sizes
  double kernels = 0;
  double most_argument_bytes = 0;
  double seconds = 0;
};

figures lowered(grown made, device_type type) {
  const auto begin = std::chrono::steady_clock::now();
  pass_environment environment;
  environment.evaluate = &reference::evaluate_node;
  (void)run_passes(made.g, pass_names("default"), environment);
  made.g.compact();
  device_info device;
  device.type = type;
  device.max_work_group_size = 256;
  device.compute_units = 4;
  device.local_memory_bytes = 32768;
  device.max_parameter_bytes = 1024;
  const auto g = std::make_shared<const graph>(std::move(made.g));
  const program p = make_program(g, codegen::default_lower_options(&device), true);
  figures f;
  for (value_id v = 0; v < g->value_count(); ++v)
    if (g->facts(v).dims)
      for (const index_expr& d : *g->facts(v).dims) f.expressions += d.size();
  for (const placed_node& step : p.steps)
    for (const codegen::kernel_plan& plan : step.lowered.kernels) {
      f.kernels += 1;
      f.characters += static_cast<double>(plan.source.str().size() - kernels::prelude.size());
      double bytes = static_cast<double>(plan.pointers.size()) * 8;
      bytes += 8 * static_cast<double>(plan.divisors.size());
      for (const bool is_long : plan.parameter_is_long) bytes += is_long ? 8 : 4;
      f.most_argument_bytes = std::max(f.most_argument_bytes, bytes);
      for (const index_expr& e : plan.global) f.expressions += e.size();
      for (const index_expr& e : plan.parameters) f.expressions += e.size();
    }
  (void)subgraphs_of(p, 0);
  f.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return f;
}

struct growth_row {
  std::string name;
  std::function<void(grown&, std::int64_t)> grow;
};

std::vector<growth_row> growth_rows() {
  std::vector<growth_row> rows;
  const auto chain = [&](std::string name, std::vector<index_expr> dims,
                         std::function<value_id(grown&, value_id, std::int64_t)> step) {
    rows.push_back({std::move(name), [dims, step](grown& b, std::int64_t n) {
                      value_id v = b.input(dims);
                      for (std::int64_t i = 0; i < n; ++i) v = step(b, v, i);
                      b.g.add_output(v);
                    }});
  };
  for (const char* op : {"Sum", "Max", "Min", "Mean", "Concat"})
    rows.push_back({"wide " + std::string(op), [op](grown& b, std::int64_t n) {
                      std::vector<value_id> reads;
                      for (std::int64_t i = 0; i < n; ++i) reads.push_back(b.input({3, 4}));
                      const bool joins = std::string_view(op) == "Concat";
                      b.g.add_output(b.one(op, reads, joins ? grown::with("axis", std::int64_t{1}) : attribute_map()));
                    }});
  rows.push_back({"wide Split", [](grown& b, std::int64_t n) {
                    const value_id parts = b.integers(ints(static_cast<std::size_t>(n), 2));
                    for (const value_id out : b.add("Split", {b.input({3, 2 * n}), parts}, static_cast<std::size_t>(n),
                                                    grown::with("axis", std::int64_t{1})))
                      b.g.add_output(out);
                  }});
  rows.push_back({"many outputs", [](grown& b, std::int64_t n) {
                    value_id v = b.input({3, 4});
                    for (std::int64_t i = 0; i < n; ++i) b.g.add_output(v = b.one(i % 2 == 0 ? "Sin" : "Cos", {v}));
                  }});
  chain("element-wise chain", {3, 4},
        [](grown& b, value_id v, std::int64_t i) { return b.one(i % 2 == 0 ? "Sin" : "Cos", {v}); });
  chain("chain of sums with inputs", {3, 4}, [](grown& b, value_id v, std::int64_t i) {
    return b.one(i % 2 == 0 ? "Sub" : "Max", {v, b.input({3, 4})});
  });
  chain("doubled", {3, 4}, [](grown& b, value_id v, std::int64_t) { return b.one("Atan", {b.one("Add", {v, v})}); });
  chain("deep broadcasts", {3, 4}, [](grown& b, value_id v, std::int64_t i) {
    return b.one("Sub", {b.one("Sin", {v}), b.input({i % 2 == 0 ? 3 : 1, i % 2 == 0 ? 1 : 4})});
  });
  chain("reshape and transpose", {2, 3, 4}, [](grown& b, value_id v, std::int64_t) {
    const value_id t = b.one("Transpose", {v}, grown::with("perm", ints{2, 0, 1}));
    return b.one("Reshape", {t, b.integers({2, 3, 4})});
  });
  chain("transposes of symbols", {}, [](grown&, value_id v, std::int64_t) { return v; });
  rows.back().grow = [](grown& b, std::int64_t n) {
    const index_expr s = b.g.expressions().symbol("s");
    value_id v = b.input({s, 3, 4});
    for (std::int64_t i = 0; i < n; ++i)
      v = b.one("Reshape", {b.one("Transpose", {v}, grown::with("perm", ints{2, 0, 1})), b.integers({-1, 3, 4})});
    b.g.add_output(v);
  };
  chain("slices and pads", {5, 7}, [](grown& b, value_id v, std::int64_t) {
    const value_id s = b.one("Slice", {v, b.integers({1}), b.integers({5}), b.integers({0})});
    return b.one("Pad", {s, b.integers({0, 0, 1, 0})});
  });
  chain("concatenations", {3, 4}, [](grown& b, value_id v, std::int64_t) {
    return b.one("Slice", {b.one("Concat", {v, v}, grown::with("axis", std::int64_t{0})), b.integers({2}),
                           b.integers({5}), b.integers({0})});
  });
  chain("expressions of concatenations", {4, 4}, [](grown& b, value_id v, std::int64_t i) {
    const value_id joined = b.one("Concat", {b.one("Sin", {v}), v}, grown::with("axis", std::int64_t{0}));
    return b.one("Slice", {joined, b.integers({1 + i % 2}), b.integers({5 + i % 2}), b.integers({0})});
  });
  chain("splits", {4, 4}, [](grown& b, value_id v, std::int64_t) {
    const auto parts = b.add("Split", {v, b.integers({1, 3})}, 2, grown::with("axis", std::int64_t{0}));
    return b.one("Concat", {parts[1], parts[0]}, grown::with("axis", std::int64_t{0}));
  });
  chain("expands and reductions", {4, 4}, [](grown& b, value_id v, std::int64_t) {
    const value_id total = b.one("ReduceMax", {v, b.integers({1})});
    return b.one("Expand", {total, b.integers({4, 4})});
  });
  chain("choices", {3, 4}, [](grown& b, value_id v, std::int64_t) {
    const value_id test = b.one("Greater", {v, b.input({3, 4})});
    return b.one("Where", {test, b.one("Neg", {v}), v});
  });
  rows.push_back(
      {"shape arithmetic", [](grown& b, std::int64_t n) {
         const index_expr s = b.g.expressions().symbol("s");
         value_id v = b.input({s, 6});
         for (std::int64_t i = 0; i < n; ++i) {
           const value_id dims = b.one("Shape", {v});
           const value_id first = b.one("Gather", {dims, b.integers({0})});
           const value_id twice = b.one("Mul", {first, b.integers({i % 2 == 0 ? 2 : 3})});
           const value_id to = b.one("Concat", {twice, b.integers({-1})}, grown::with("axis", std::int64_t{0}));
           v = b.one("Sin", {b.one("Reshape", {v, to})});
           const value_id back = b.one("Concat", {first, b.integers({6})}, grown::with("axis", std::int64_t{0}));
           v = b.one("Reshape", {v, back});
         }
         b.g.add_output(v);
       }});
  rows.push_back({"sizes that data tell", [](grown& b, std::int64_t n) {
                    for (std::int64_t i = 0; i < n / 5; ++i) {
                      const value_id places = b.one("NonZero", {b.input({3, 4})});
                      const value_id floats = b.one("Cast", {places}, grown::with("to", std::int64_t{1}));
                      b.g.add_output(b.one("MatMul", {b.input({3, 2}), b.one("Sin", {floats})}));
                    }
                  }});
  rows.push_back({"diamonds behind a product", [](grown& b, std::int64_t n) {
                    value_id v = b.one("MatMul", {b.input({16, 16}), b.input({16, 16})});
                    for (std::int64_t i = 0; i < n; ++i) v = b.one("Add", {v, b.one("Sin", {v})});
                    b.g.add_output(v);
                  }});
  return rows;
}

}  // namespace

namespace {

void check_growth(const growth_row& row, device_type type, std::int64_t nodes) {
  const auto at = [&](std::int64_t n) {
    grown made;
    row.grow(made, n);
    return lowered(std::move(made), type);
  };
  const figures few = at(nodes / 10);
  const figures many = at(nodes);
  INFO(row.name << ", " << nodes << (type == device_type::cpu ? " nodes, vectors" : " nodes, groups"));
  INFO("characters " << few.characters << " -> " << many.characters << ", expressions " << few.expressions << " -> "
                     << many.expressions << ", kernels " << few.kernels << " -> " << many.kernels << ", seconds "
                     << few.seconds << " -> " << many.seconds);
  constexpr double allowed = 20;  // for ten times as many nodes
  CHECK(many.characters <= allowed * few.characters);
  CHECK(many.expressions <= allowed * few.expressions);
  CHECK(many.most_argument_bytes <= 1024);
  // A machine that is busy with other work takes some of the time; what is looked at per pair of nodes takes more.
  CHECK(many.seconds <= 30 * few.seconds + 1);
  // Far beyond what it takes on any machine, and far below what exponential growth takes.
  CHECK(many.seconds < 120);
}

void check_all(device_type type, std::int64_t nodes) {
  for (const growth_row& row : growth_rows()) {
    try {
      check_growth(row, type, nodes);
    } catch (const error& e) {
      FAIL_CHECK(row.name << ": " << e.what());
    }
  }
}

}  // namespace

TEST_CASE("what compile makes of 1,000 nodes is that of 100, ten times") { check_all(device_type::cpu, 1000); }

TEST_CASE("what compile makes of 100 nodes is that of 10, ten times") {
  check_all(device_type::cpu, 100);
  check_all(device_type::gpu, 100);
}

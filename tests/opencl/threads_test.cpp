// Sessions of one model in several threads, as docs/how_to/threads.md promises.
#include <catch2/catch.hpp>

#include <atomic>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include <dnnopt/dnnopt.hpp>

#include "../support/small_network.hpp"

using namespace dnnopt;
using dnnopt::testing::network;

namespace {

/// Calls `work(thread)` in each of `count` threads at once.
template <class Work>
void in_threads(int count, Work&& work) {
  std::atomic<int> ready = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < count; ++t)
    threads.emplace_back([&, t] {
      ++ready;
      while (ready < count) std::this_thread::yield();
      work(t);
    });
  for (std::thread& t : threads) t.join();
}

}  // namespace

TEST_CASE("threads make the same expressions of one context, and symbols of their own") {
  expr_context context;
  const index_expr n = context.symbol("n");
  constexpr int count = 4;
  constexpr int rounds = 2000;
  std::vector<std::vector<index_expr>> made(count);
  std::vector<std::vector<index_expr>> fresh(count);
  in_threads(count, [&](int t) {
    for (std::int64_t i = 1; i < rounds; ++i) {
      made[static_cast<std::size_t>(t)].push_back(floordiv(n * i + 7, index_expr(i + 1)) + mod(n, i + 2));
      fresh[static_cast<std::size_t>(t)].push_back(context.fresh("own"));
    }
  });
  for (int t = 1; t < count; ++t)
    for (std::size_t i = 0; i + 1 < rounds; ++i) {
      REQUIRE(made[static_cast<std::size_t>(t)][i] == made[0][i]);
      REQUIRE_FALSE(fresh[static_cast<std::size_t>(t)][i] == fresh[0][i]);
    }
  CHECK(context.symbol_count() == 1 + count * (rounds - 1));
}

TEST_CASE("one model is compiled and run in several threads at once") {
  network n;
  const index_expr rows = n.g.expressions().symbol("rows");
  const value_id in = n.input("x", {rows, 12});
  const value_id product = n.node("MatMul", {in, n.weights({12, 5})});
  const model m = n.finish(n.node("Softmax", {n.node("Add", {product, n.weights({5})})}));
  compile_options options;
  options.device = "reference";
  session judge = compile(m, options);
  std::vector<named_tensors> inputs;
  std::vector<named_tensors> want;
  for (std::int64_t r = 1; r <= 4; ++r) {
    inputs.push_back({{"x", dnnopt::testing::ramp({r, 12})}});
    want.push_back(judge.run(inputs.back()));
  }
  std::atomic<int> wrong = 0;
  in_threads(4, [&](int t) {
    for (int round = 0; round < 20; ++round) {
      compile_options own;
      own.device = round % 5 == 0 ? "opencl" : "reference";
      session s = compile(m, own);
      const auto k = static_cast<std::size_t>((t + round) % 4);
      const named_tensors got = s.run(inputs[k]);
      for (std::size_t i = 0; i < static_cast<std::size_t>(want[k][0].size()); ++i)
        if (std::abs(got[0].data<float>()[i] - want[k][0].data<float>()[i]) > 1e-6F) ++wrong;
    }
  });
  CHECK(wrong == 0);
}

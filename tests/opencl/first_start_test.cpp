// First starts: notes on programs that the driver keeps, quick kernels, and the optimized ones that follow them.
#include <catch2/catch.hpp>

#include <atomic>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <dnnopt/backend/measure/opened_device.hpp>
#include <dnnopt/backend/run/executor.hpp>
#include <dnnopt/dnnopt.hpp>

#include <support/onnx_writer.hpp>
#include <support/written_model.hpp>

#include "../support/small_network.hpp"
#include "optimized_kernels.hpp"
#include "runtime_fixture.hpp"

using namespace dnnopt;
using dnnopt::opencl::command_queue;
using dnnopt::opencl::event_sink;
using dnnopt::opencl::testing::kept_by_driver;
using dnnopt::opencl::testing::temporary_folder;
using dnnopt::opencl::testing::wait_for_optimized;
using dnnopt::testing::network;
using dnnopt::testing::ramp;
namespace written = dnnopt_tests;

namespace {

/// Weights that are packed, rows that are gathered by an input, and dims that a run tells.
model some_model() {
  network n;
  const index_expr rows = n.g.expressions().symbol("rows");
  const value_id ids = n.g.add_input("ids", dtype::int64, shape{rows});
  const value_id in = n.input("x", {rows, 8, 12, 12});
  attribute_map pads;
  pads.set("pads", std::vector<std::int64_t>{1, 1, 1, 1});
  const value_id image = n.node("Relu", {n.node("Conv", {in, n.weights({16, 8, 3, 3})}, pads)});
  const value_id pooled = n.node("Flatten", {n.node("GlobalAveragePool", {image})});
  const value_id looked_up = n.node("Gather", {n.weights({20, 16}), ids});
  const value_id sum = n.node("Add", {pooled, looked_up});
  return n.finish(n.node("Softmax", {n.node("MatMul", {sum, n.weights({16, 7})})}));
}

named_tensors inputs_of(std::int64_t rows) {
  tensor ids(dtype::int64, {rows});
  for (std::int64_t i = 0; i < rows; ++i) ids.mutable_data<std::int64_t>()[static_cast<std::size_t>(i)] = 19 - i;
  return {{"ids", ids}, {"x", ramp({rows, 8, 12, 12})}};
}

/// A device of its own with programs in `folder`, as a process has it that starts.
std::shared_ptr<opened_device> started(const temporary_folder& folder) {
  return std::make_shared<opened_device>("opencl", kept_by_driver(folder));
}

session quick_session(const model& m, const std::shared_ptr<opened_device>& device) {
  compile_options options;
  options.opened = device;
  options.first_start = first_start::quick;
  return compile(m, options);
}

bool are_near(const tensor& a, const tensor& b) {
  if (a.dims() != b.dims()) return false;
  for (std::size_t i = 0; i < a.data<float>().size(); ++i)
    if (!(std::abs(a.data<float>()[i] - b.data<float>()[i]) <= 1e-6F)) return false;
  return true;
}

/// Holds up an inference before its first launch until the optimizing thread has launched more than its turn, or until
/// it would have: two seconds.
class long_inference final : public run_observer {
 public:
  explicit long_inference(const session& s) : session_(s) {}
  [[nodiscard]] bool wants_events() const override { return false; }
  [[nodiscard]] event_sink* kernel(std::size_t, std::size_t, std::uint64_t, std::uint64_t) override { return nullptr; }
  void before(std::size_t, std::size_t, command_queue&) override {
    if (held_) return;
    held_ = true;
    before_it = behind_it = session_.optimizing().ready;
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(2);
    while (behind_it <= before_it + 2 && std::chrono::steady_clock::now() < end) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
      behind_it = session_.optimizing().ready;
    }
  }

  std::size_t before_it = 0;  // launches of the thread
  std::size_t behind_it = 0;

 private:
  const session& session_;
  bool held_ = false;
};

/// Sums of x beside a Loop that an input tells the turns of; what it counts is a size behind it.
model looped_model() {
  const auto body =
      written::graph({written::node("Add", {"sum", "relu"}, {"more"}), written::node("Add", {"count", "one"}, {"next"}),
                      written::node("Identity", {"going"}, {"goes"})},
                     {written::info("turn", 7, {}), written::info("going", 9, {}), written::info("sum", 1, {"N", "8"}),
                      written::info("count", 7, {"1"})},
                     {written::untyped("goes"), written::untyped("more"), written::untyped("next")});
  const auto whole = written::graph(
      {written::node("Relu", {"x"}, {"relu"}),
       written::node("Loop", {"turns", "", "relu", "one"}, {"summed", "counted"},
                     {written::graph_attribute("body", body)}),
       written::node("Concat", {"counted", "ones"}, {"sizes"}, {written::int_attribute("axis", 0)}),
       written::node("Softmax", {"summed"}, {"soft"}), written::node("Expand", {"soft", "sizes"}, {"y"})},
      {written::info("turns", 7, {}), written::info("x", 1, {"N", "8"})}, {written::untyped("y")},
      {written::int_tensor("one", {1}), written::int_tensor("ones", {1, 1})});
  return written::loaded(written::model(whole));
}

opencl::program_request fresh_request() {
  std::random_device random;
  return {"scale", "kernel void scale(global float* x) { x[get_global_id(0)] *= " + std::to_string(random()) + ".0f; }",
          ""};
}

}  // namespace

TEST_CASE("where the driver keeps programs the file has a note on those that served, and no binary") {
  const temporary_folder folder;
  opencl::context where = opencl::testing::first_context();
  const opencl::program_request request = fresh_request();
  const opencl::program_request unserved = fresh_request();
  {
    opencl::program_cache cache(where, kept_by_driver(folder));
    CHECK_FALSE(cache.has(request));
    (void)cache.build(request);
    (void)cache.build(unserved);
    // A driver that compiles at the first launch has not compiled yet.
    CHECK_FALSE(cache.has(request));
    CHECK_FALSE(cache.save().written);
    cache.served({&request, 1});
    CHECK(cache.has(request));
    const opencl::program_file_result saved = cache.save();
    CHECK(saved.written);
    CHECK(saved.entries == 1);
    CHECK(saved.bytes < 1000);
    CHECK(cache.figures().builds == 2);
  }
  opencl::program_cache next(where, kept_by_driver(folder));
  CHECK(next.has(request));
  CHECK_FALSE(next.has(unserved));
  CHECK(next.build(request)() != nullptr);
  CHECK(next.figures().driver_hits == 1);
  CHECK(next.figures().builds == 0);
  CHECK(next.figures().disk_hits == 0);
  CHECK(next.figures().refused == 0);
}

TEST_CASE("a driver that lost what it is noted to keep is not believed again") {
  const temporary_folder folder;
  opencl::context where = opencl::testing::first_context();
  const opencl::program_request request = fresh_request();
  const opencl::program_request other = fresh_request();
  opencl::program_cache cache(where, kept_by_driver(folder));
  opencl::program_file forged(cache.file(), opencl::program_cache::identity_of(where.info()));
  const std::string note = "dnnopt: the driver keeps this program, which it built in seconds: 0.000001";
  REQUIRE(forged
              .write({{opencl::key_of(request.source, request.options), note},
                      {opencl::key_of(other.source, other.options), note}},
                     {}, 1 << 20)
              .written);
  for (const bool slow : {false, true}) {
    opencl::program_cache_options programs = kept_by_driver(folder);
    if (slow) programs.least_loss = 0;
    opencl::program_cache next(where, programs);
    CHECK(next.has(other));
    (void)next.build(request);
    CHECK(next.figures().lost == (slow ? 1 : 0));
    CHECK(next.figures().builds == (slow ? 1 : 0));
    CHECK(next.has(other) == !slow);
  }
}

TEST_CASE("passing programs are never written") {
  const temporary_folder folder;
  opencl::context where = opencl::testing::first_context();
  opencl::program_cache cache(where, {.folder = folder.path()});
  opencl::program_request request = fresh_request();
  request.passing = true;
  (void)cache.build(request);
  CHECK_FALSE(cache.save().written);
}

TEST_CASE("whether the driver keeps programs is found out by what it takes") {
  opencl::context where = opencl::testing::first_context();
  const bool keeps = opencl::driver_keeps_programs(where);
  CHECK(keeps == opencl::driver_keeps_programs(where));
  const opencl::detail::driver_program_times times = opencl::detail::time_driver_programs(where);
  CHECK(times.first > 0);
  // One that takes a text at once costs nothing again, whatever its binaries cost.
  if (keeps) CHECK(times.again < times.first);
}

TEST_CASE("a driver keeps programs where the text is ready at once and its binary is not") {
  using times = opencl::detail::driver_program_times;
  CHECK(times{0.06, 0.001, 0.05}.are_kept());          // compiles anew for a binary
  CHECK_FALSE(times{0.06, 0.001, 0.0001}.are_kept());  // gives what it compiled
  CHECK_FALSE(times{0.06, 0.05, 0.05}.are_kept());     // compiles each time
  CHECK_FALSE(times{0.06, 0.05, 0.0001}.are_kept());
  CHECK_FALSE(times{}.are_kept());  // refused something
}

TEST_CASE("quick kernels serve until optimized ones are there, and a later start has these at once") {
  const temporary_folder folder;
  const model m = some_model();
  const named_tensors inputs = inputs_of(3);
  compile_options optimized;
  optimized.programs.on_disk = false;
  session judge = compile(m, optimized);
  const tensor want = judge.run(inputs)[0];
  CHECK(judge.optimizing().done);
  CHECK(judge.optimizing().all == 0);
  std::uint64_t programs = 0;
  {
    const auto device = started(folder);
    session s = quick_session(m, device);
    programs = device->programs.figures().builds;
    REQUIRE(programs > 0);
    CHECK_FALSE(s.optimizing().done);
    CHECK(are_near(s.run(inputs)[0], want));
    CHECK(s.executor()->figures().quick_kernels);
    // The caller's memory is its own again behind a run.
    named_tensors others = inputs_of(2);
    CHECK(are_near(s.run(others)[0], judge.run(others)[0]));
    REQUIRE(wait_for_optimized(s));
    CHECK(s.optimizing().all > 0);
    CHECK(s.optimizing().ready == s.optimizing().all);
    CHECK(device->programs.figures().builds == 2 * programs);
    // The very kernels of the judge, for dims from before and for new ones.
    for (const std::int64_t rows : {3, 2, 5}) {
      const named_tensors given = inputs_of(rows);
      CHECK(are_same(s.run(given)[0], judge.run(given)[0]));
      CHECK_FALSE(s.executor()->figures().quick_kernels);
    }
  }
  const auto again = started(folder);
  session second = quick_session(m, again);
  CHECK(second.optimizing().done);
  CHECK(second.optimizing().all == 0);
  CHECK(are_same(second.run(inputs)[0], want));
}

TEST_CASE("a session that ends early leaves nothing that a later start would take for optimized") {
  const temporary_folder folder;
  const model m = some_model();
  {
    session s = quick_session(m, started(folder));
    (void)s.run(inputs_of(3));
    CHECK_FALSE(s.optimizing().done);
  }
  const auto again = started(folder);
  session second = quick_session(m, again);
  CHECK_FALSE(second.optimizing().done);
}

TEST_CASE("the thread that optimizes asks for nothing to be kept") {
  // A driver may not bear that a program's binary is asked for while other threads launch its kernels.
  const temporary_folder folder;
  const auto device = started(folder);
  {
    session s = quick_session(some_model(), device);
    (void)s.run(inputs_of(3));
    REQUIRE(wait_for_optimized(s));
    CHECK_FALSE(std::filesystem::exists(device->programs.file()));
  }
  CHECK(std::filesystem::exists(device->programs.file()));
}

TEST_CASE("no inference fails while optimized kernels take over, in several threads on one device") {
  const temporary_folder folder;
  const model m = some_model();
  compile_options optimized;
  optimized.programs.on_disk = false;
  session judge = compile(m, optimized);
  std::vector<named_tensors> inputs;
  std::vector<tensor> want;
  for (std::int64_t rows = 1; rows <= 3; ++rows) {
    inputs.push_back(inputs_of(rows));
    want.push_back(judge.run(inputs.back())[0]);
  }
  const auto device = started(folder);
  std::atomic<int> wrong = 0;
  std::atomic<int> swapped = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t)
    threads.emplace_back([&] {
      session s = quick_session(m, device);
      const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(2);
      // A round more, on what was taken.
      for (bool last = false; !last && std::chrono::steady_clock::now() < end;) {
        last = s.optimizing().done;
        for (std::size_t k = 0; k < inputs.size(); ++k) wrong += are_near(s.run(inputs[k])[0], want[k]) ? 0 : 1;
      }
      bool same = s.optimizing().done && s.optimizing().failure.empty();
      for (std::size_t k = 0; k < inputs.size(); ++k)
        same = same && are_same(s.run(inputs[k])[0], want[k]) && !s.executor()->figures().quick_kernels;
      swapped += same ? 1 : 0;
    });
  for (std::thread& t : threads) t.join();
  CHECK(wrong == 0);
  CHECK(swapped == 3);
}

TEST_CASE("inferences and the kernels of the thread take turns") {
  const model m = some_model();
  const named_tensors inputs = inputs_of(3);
  // The thread may have come far before the second inference begins, where the machine has other work.
  std::size_t before = 0;
  std::size_t all = 0;
  for (int attempt = 0; attempt < 5; ++attempt) {
    const temporary_folder folder;
    session s = quick_session(m, started(folder));
    (void)s.run(inputs);
    long_inference slow(s);
    (void)s.run(inputs, &slow);
    before = slow.before_it;
    all = s.optimizing().all;
    if (before + 3 > all) continue;
    // One launch may have had its turn before the inference began, and one more is the thread's.
    CHECK(slow.behind_it <= before + 2);
    REQUIRE(wait_for_optimized(s));
    CHECK(s.optimizing().ready == all);
    return;
  }
  FAIL("the thread had launched " << before << " of " << all << " kernels before an inference began");
}

TEST_CASE("what is bound stays bound when optimized kernels take over") {
  const temporary_folder folder;
  const model m = some_model();
  const named_tensors inputs = inputs_of(3);
  compile_options optimized;
  optimized.programs.on_disk = false;
  const tensor want = compile(m, optimized).run(inputs)[0];
  const auto device = started(folder);
  session s = quick_session(m, device);
  command_queue queue = device->context.make_queue();
  const tensor& x = *inputs.find("x");
  const opencl::device_buffer buffer = device->context.memory().allocate(x.byte_size());
  queue.upload(buffer, x.bytes(), 0, true);
  s.bind("x", buffer.handle());
  named_tensors rest;
  rest.add("ids", *inputs.find("ids"));
  CHECK(are_near(s.run(rest)[0], want));
  REQUIRE(wait_for_optimized(s));
  CHECK(are_same(s.run(rest)[0], want));
  CHECK_FALSE(s.executor()->figures().quick_kernels);
  CHECK(s.bindings().size() == 1);
}

TEST_CASE("quick kernels serve around bodies, and optimized ones take over") {
  const model m = looped_model();
  const temporary_folder folder;
  compile_options optimized;
  optimized.programs.on_disk = false;
  session judge = compile(m, optimized);
  session s = quick_session(m, started(folder));
  for (const std::int64_t turns : {3, 5}) {
    const named_tensors inputs{{"turns", tensor::scalar(turns)}, {"x", ramp({2, 8})}};
    const tensor want = judge.run(inputs)[0];
    CHECK(are_near(s.run(inputs)[0], want));
    CHECK(s.executor()->figures().quick_kernels == (turns == 3));
    REQUIRE(wait_for_optimized(s));
    CHECK(are_same(s.run(inputs)[0], want));
    CHECK_FALSE(s.executor()->figures().quick_kernels);
  }
}

TEST_CASE("kernels are quick only where that is wanted, pays, and memory is not limited") {
  const model m = some_model();
  const auto is_quick = [&](const std::shared_ptr<opened_device>& device, std::uint64_t limit = 0) {
    compile_options options;
    options.opened = device;
    options.first_start = first_start::quick;
    options.memory_limit = limit;
    return !compile(m, options).optimizing().done;
  };
  const temporary_folder folder;
  const device_info info = started(folder)->context.info();
  CHECK(is_quick(started(folder)));
  CHECK_FALSE(is_quick(started(folder), std::uint64_t{1} << 30));
  opencl::write_quick_facts(info, folder.path(), {2, 2.5});
  CHECK_FALSE(is_quick(started(folder)));
  opencl::write_quick_facts(info, folder.path(), {2, 20});
  CHECK(is_quick(started(folder)));
  const auto device = started(folder);
  device->learn({3, 3});
  CHECK_FALSE(device->quick_pays());
  CHECK_FALSE(started(folder)->quick_pays());
}

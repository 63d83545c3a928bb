// Inferences that are begun and waited for later, against those that are run.
#include <catch2/catch.hpp>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <future>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <dnnopt/async_session.hpp>
#include <dnnopt/dnnopt.hpp>

#include "../support/shared_device.hpp"
#include "../support/small_network.hpp"
#include "runtime_fixture.hpp"

using namespace dnnopt;
using dnnopt::opencl::testing::code;
using dnnopt::opencl::testing::code_of;
using dnnopt::testing::network;
using dnnopt::testing::shared_device;

namespace {

/// Softmax of x [2, 3].
model small() {
  network n;
  return n.finish(n.node("Softmax", {n.input("x", {2, 3})}));
}
session made(const std::string& device = "opencl") {
  compile_options options;
  if (device == "opencl") options.opened = shared_device();
  options.device = device;
  return compile(small(), options);
}
named_tensors frame(float brightness) {
  tensor x(dtype::float32, {2, 3});
  float next = 0;
  for (float& v : x.mutable_data<float>()) v = brightness * (next += 1);
  named_tensors inputs;
  inputs.add("x", std::move(x));
  return inputs;
}
bool same(const named_tensors& a, const named_tensors& b) { return std::ranges::equal(a[0].bytes(), b[0].bytes()); }

}  // namespace

TEST_CASE("inferences that are begun give what runs give, in their order, from several threads") {
  for (const std::string device : {"reference", "opencl"}) {
    session plain = made(device);
    async_session begun(made(device));
    std::vector<std::future<named_tensors>> results;
    for (int i = 0; i < 20; ++i) results.push_back(begun.begin(frame(0.1F * static_cast<float>(i))));
    for (int i = 0; i < 20; ++i)
      CHECK(same(results[static_cast<std::size_t>(i)].get(), plain.run(frame(0.1F * static_cast<float>(i)))));

    std::atomic<int> right{0};
    std::vector<std::thread> threads;
    const named_tensors want = plain.run(frame(0.5F));
    for (int t = 0; t < 4; ++t)
      threads.emplace_back([&] {
        for (int i = 0; i < 8; ++i) right += same(begun.begin(frame(0.5F)).get(), want) ? 1 : 0;
      });
    for (std::thread& t : threads) t.join();
    CHECK(right == 32);
    begun.wait();
    CHECK(begun.waiting() == 0);
    CHECK(same(begun.idle().run(frame(0.5F)), want));
  }
}

TEST_CASE("an inference that fails says so where it is waited for, and the next one is right") {
  async_session begun(made());
  auto failed = begun.begin({});
  auto next = begun.begin(frame(1.0F));
  CHECK(code_of([&] { (void)failed.get(); }) == code(errc::missing_input));
  CHECK(same(next.get(), made().run(frame(1.0F))));
}

TEST_CASE("what has not started is taken back, what is under way ends") {
  std::promise<void> started;
  std::promise<void> release;
  std::vector<std::future<named_tensors>> later;
  std::size_t frames = 0;
  std::optional<int> told;
  {
    async_session begun(made());
    // The session's thread is held in the function that hears of the first inference.
    begun.begin(frame(1.0F), [&](named_tensors outputs, std::exception_ptr failure) {
      frames += outputs.size() == 1 && failure == nullptr ? 1 : 0;
      started.set_value();
      release.get_future().wait();
    });
    started.get_future().wait();
    for (int i = 0; i < 3; ++i) later.push_back(begun.begin(frame(2.0F)));
    CHECK(begun.waiting() == 4);
    CHECK(begun.cancel() == 3);
    CHECK(begun.cancel() == 0);
    CHECK(begun.waiting() == 1);
    for (auto& one : later) CHECK(code_of([&] { (void)one.get(); }) == code(errc::cancelled));
    begun.begin(frame(3.0F), [&](const named_tensors&, const std::exception_ptr& failure) {
      told = failure == nullptr ? 0 : code_of([&] { std::rethrow_exception(failure); });
    });
    // Destroyed with one that has not started, or starts just then.
    release.set_value();
  }
  CHECK(frames == 1);
  REQUIRE(told);
  CHECK((*told == code(errc::cancelled) || *told == 0));
}

TEST_CASE("a function that hears of an end may begin the next inference") {
  async_session begun(made());
  std::promise<int> ended;
  int frames = 0;
  async_session::ended next;
  next = [&](named_tensors, std::exception_ptr failure) {
    if (failure != nullptr || ++frames == 10)
      ended.set_value(frames);
    else
      begun.begin(frame(static_cast<float>(frames)), next);
  };
  begun.begin(frame(0.0F), next);
  CHECK(ended.get_future().get() == 10);
  begun.wait();
}

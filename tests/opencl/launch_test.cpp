// Prepared launches, work-group checks, recordings and their counting.
#include <dnnopt/backend/opencl/kernel_launch.hpp>
#include <dnnopt/backend/opencl/program_cache.hpp>
#include <dnnopt/backend/opencl/recording.hpp>

#include <catch2/catch.hpp>

#include <array>

#include "runtime_fixture.hpp"

using namespace dnnopt;
using namespace dnnopt::opencl;
using testing::bytes_of;
using testing::code;
using testing::code_of;
using testing::writable_bytes_of;

namespace {

constexpr const char* source = R"(
kernel void axpy(global const float* x, global float* y, float a, int n) {
  int i = get_global_id(0);
  if (i < n) y[i] = y[i] * 2.0f + a * x[i];
}
kernel __attribute__((reqd_work_group_size(4, 2, 1))) void fixed(global int* y) {
  y[get_global_id(1) * get_global_size(0) + get_global_id(0)] = get_local_id(1) * 4 + get_local_id(0);
}
kernel void sums(global float* y, local float* scratch) {
  int l = get_local_id(0);
  scratch[l] = y[get_global_id(0)];
  barrier(CLK_LOCAL_MEM_FENCE);
  float sum = 0.0f;
  for (int i = 0; i < get_local_size(0); ++i) sum += scratch[i];
  y[get_global_id(0)] = sum;
}
)";

struct fixture {
  context where = testing::first_context();
  command_queue queue = where.make_queue();
  program_cache cache{where, {.on_disk = false}};
  cl::Program program = cache.build({"launch_test", source, ""});

  prepared_launch axpy(const device_buffer& x, const device_buffer& y, float a, std::size_t n, std::size_t local) {
    prepared_launch launch(program, where.where(), "axpy");
    launch.set(0, x);
    launch.set(1, y);
    launch.set(2, cl_float{a});
    launch.set(3, static_cast<cl_int>(n));
    launch.set_size(cover({n, 1, 1}, {local, 1, 1}));
    return launch;
  }
};

struct name_sink : event_sink {
  std::vector<std::string> names;
  std::vector<std::uint64_t> tags;
  std::vector<std::array<std::size_t, 3>> globals;
  void on_command(const command_record& record, cl::Event) override {
    names.emplace_back(record.name);
    tags.push_back(record.tag);
    globals.push_back(record.global);
  }
};

static_assert(cover({10, 1, 1}, {4, 1, 1}).global[0] == 12);
static_assert(cover({10, 1, 1}, {4, 1, 1}).dimensions == 1);
static_assert(cover({10, 3, 1}, {4, 2, 1}).global[1] == 4);
static_assert(cover({8, 1, 5}, {8, 1, 1}).dimensions == 3);
static_assert(cover({0, 1, 1}, {4, 1, 1}).global[0] == 0);
static_assert(cover({3, 0, 1}, {4, 1, 1}).empty() && !cover({3, 1, 1}, {4, 1, 1}).empty());

}  // namespace

TEST_CASE("a prepared launch keeps its arguments, each launch its own") {
  fixture f;
  const std::vector<float> ones(100, 1.0f);
  const device_buffer x = f.where.memory().allocate(400);
  const device_buffer y = f.where.memory().allocate(400);
  f.queue.upload(x, bytes_of(ones));
  f.queue.upload(y, bytes_of(ones));
  const prepared_launch first = f.axpy(x, y, 3.0f, 100, 8);
  const prepared_launch second = f.axpy(x, y, 5.0f, 50, 8);
  first.enqueue(f.queue);
  second.enqueue(f.queue);
  first.enqueue(f.queue);
  std::vector<float> out(100);
  f.queue.download(y, writable_bytes_of(out));
  CHECK(out[0] == ((1.0f * 2 + 3) * 2 + 5) * 2 + 3);
  CHECK(out[99] == (1.0f * 2 + 3) * 2 + 3);
  CHECK(f.queue.counts().kernels == 3);
  CHECK(f.queue.counts().device_commands() == 3);
  CHECK(f.queue.counts().events == 0);
}

TEST_CASE("a changed argument takes effect, local memory is an argument") {
  fixture f;
  const device_buffer y = f.where.memory().allocate(64);
  const std::vector<float> values{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};
  f.queue.upload(y, bytes_of(values));
  prepared_launch launch(f.program, f.where.where(), "sums");
  launch.set(0, y);
  launch.set_local(1, 16);
  launch.set_size(cover({16, 1, 1}, {4, 1, 1}));
  launch.enqueue(f.queue);
  launch.set_local(1, 64);
  launch.set_size(cover({16, 1, 1}, {16, 1, 1}));
  launch.enqueue(f.queue);
  std::vector<float> out(16);
  f.queue.download(y, writable_bytes_of(out));
  CHECK(out == std::vector<float>(16, 4.0f * 136.0f));

  const device_buffer x = f.where.memory().allocate(64);
  f.queue.upload(x, bytes_of(values));
  prepared_launch axpy = f.axpy(x, y, 0.0f, 16, 4);
  axpy.enqueue(f.queue);
  axpy.set(2, cl_float{1.0f});
  axpy.set(2, cl_float{1.0f});
  axpy.enqueue(f.queue);
  f.queue.download(y, writable_bytes_of(out));
  CHECK(out[15] == 4.0f * 136.0f * 4.0f + 16.0f);
}

TEST_CASE("sizes are checked against what the kernel reports") {
  fixture f;
  prepared_launch launch(f.program, f.where.where(), "axpy");
  CHECK(launch.limits().max_work_group_size >= 1);
  CHECK(launch.limits().preferred_multiple >= 1);
  const std::size_t most = launch.limits().max_work_group_size;
  const auto set = [&](launch_size size) { return code_of([&] { launch.set_size(size); }); };
  CHECK(set({1, {most, 1, 1}, {most, 1, 1}}) == 0);
  CHECK(set({1, {2 * most, 1, 1}, {2 * most, 1, 1}}) == code(errc::invalid_argument));
  CHECK(set({2, {most, 2, 1}, {most, 2, 1}}) == code(errc::invalid_argument));
  CHECK(set({1, {10, 1, 1}, {4, 1, 1}}) == code(errc::invalid_argument));
  CHECK(set({1, {0, 1, 1}, {0, 0, 0}}) == 0);  // nothing to do: it is not enqueued
  CHECK(set({4, {4, 1, 1}, {0, 0, 0}}) == code(errc::invalid_argument));
  CHECK(set({2, {8, 8, 1}, {4, 0, 0}}) == code(errc::invalid_argument));
  CHECK(set({1, {10, 1, 1}, {0, 0, 0}}) == 0);

  prepared_launch fixed(f.program, f.where.where(), "fixed");
  CHECK(fixed.limits().required_work_group == std::array<std::size_t, 3>{4, 2, 1});
  CHECK(code_of([&] { fixed.set_size({2, {8, 8, 1}, {8, 1, 1}}); }) == code(errc::invalid_argument));
  CHECK(fit_work_group({64, 64, 1}, fixed.limits()) == std::array<std::size_t, 3>{4, 2, 1});
  fixed.set_size({2, {8, 8, 1}, {4, 2, 1}});
  const device_buffer y = f.where.memory().allocate(256);
  fixed.set(0, y);
  fixed.enqueue(f.queue);
  std::vector<cl_int> out(64);
  f.queue.download(y, writable_bytes_of(out));
  CHECK(out[9] == 5);
}

TEST_CASE("a work-group is cut to the limits and stays a work-group") {
  kernel_limits limits;
  limits.max_work_group_size = 96;
  limits.max_work_item_sizes = {1024, 64, 4};
  for (std::size_t x = 1; x <= 300; x += 13) {
    for (std::size_t y = 1; y <= 100; y += 9) {
      for (const std::size_t z : {std::size_t{0}, std::size_t{1}, std::size_t{7}}) {
        const auto fit = fit_work_group({x, y, z}, limits);
        CHECK(fit[0] * fit[1] * fit[2] <= 96);
        CHECK(fit[0] * fit[1] * fit[2] >= 1);
        CHECK((fit[0] <= x && fit[1] <= std::min<std::size_t>(y, 64) && fit[2] <= 4));
        if (x * y * std::max<std::size_t>(z, 1) <= 96 && y <= 64 && z <= 4) {
          CHECK(fit == std::array<std::size_t, 3>{x, y, std::max<std::size_t>(z, 1)});
        }
      }
    }
  }
}

TEST_CASE("an unknown kernel and a wrong argument are named") {
  fixture f;
  std::string text;
  CHECK(code_of([&] { prepared_launch launch(f.program, f.where.where(), "axpi"); }, &text) ==
        code(errc::kernel_build));
  CHECK(text.find("'axpi'") != std::string::npos);
  CHECK(text.find("axpy") != std::string::npos);
  prepared_launch launch(f.program, f.where.where(), "axpy");
  CHECK(code_of([&] { launch.set(9, cl_int{1}); }, &text) == code(errc::opencl_call));
  CHECK(text.find("argument 9") != std::string::npos);
  CHECK(text.find("CL_INVALID_ARG_INDEX") != std::string::npos);
  CHECK(code_of([&] { launch.set(2, cl_double{1}); }) == code(errc::opencl_call));
}

TEST_CASE("a sink sees name, tag and sizes of each launch") {
  fixture f;
  const device_buffer x = f.where.memory().allocate(400);
  prepared_launch launch(f.program, f.where.where(), "sums", "block 7", 42);
  launch.set(0, x);
  launch.set_local(1, 16);
  launch.set_size(cover({100, 1, 1}, {4, 1, 1}));
  name_sink sink;
  launch.enqueue(f.queue, &sink);
  f.queue.finish();
  CHECK(sink.names == std::vector<std::string>{"block 7"});
  CHECK(sink.tags == std::vector<std::uint64_t>{42});
  CHECK(sink.globals[0] == std::array<std::size_t, 3>{100, 1, 1});
  CHECK(f.queue.counts().events == 1);
}

TEST_CASE("a recording computes what its commands do one by one, and counts them") {
  fixture f;
  std::vector<recording_method> methods{recording_method::plain};
  if (offered_method(f.where.info()) != recording_method::plain) methods.push_back(offered_method(f.where.info()));
  for (const recording_method method : methods) {
    CAPTURE(std::string(name_of(method)));
    const std::vector<float> ones(100, 1.0f);
    const device_buffer x = f.where.memory().allocate(400);
    const device_buffer y = f.where.memory().allocate(400);
    const device_buffer z = f.where.memory().allocate(400);
    f.queue.upload(x, bytes_of(ones));
    f.queue.upload(y, bytes_of(ones));
    const prepared_launch first = f.axpy(x, y, 1.0f, 100, 4);
    const prepared_launch second = f.axpy(x, y, 2.0f, 100, 4);
    const prepared_launch third = f.axpy(y, z, 1.0f, 100, 4);
    command_recorder recorder;
    recorder.add(first);
    recorder.add(second);
    recorder.add(first);
    recorder.add([&](command_queue& queue, event_sink* sink) { queue.copy(y, 0, z, 0, 400, sink); });
    recorder.add(third);
    recording sequence = recorder.finish(f.where, f.queue, method);
    CHECK(sequence.commands() == 5);
    const command_counts before = f.queue.counts();
    sequence.replay(f.queue);
    sequence.replay(f.queue);
    f.queue.finish();
    const command_counts counts = f.queue.counts() - before;
    CHECK(counts.kernels == 8);
    CHECK(counts.copies == 2);
    CHECK(counts.device_commands() == 10);
    CHECK(counts.events == 0);
    CHECK(counts.recordings == (method == recording_method::plain ? 0u : 2u));
    float y_expected = 1.0f;
    float z_expected = 0.0f;
    for (int i = 0; i < 2; ++i) {
      y_expected = ((y_expected * 2 + 1) * 2 + 2) * 2 + 1;
      z_expected = y_expected * 2 + y_expected;
    }
    std::vector<float> out(100);
    f.queue.download(y, writable_bytes_of(out));
    CHECK(out == std::vector<float>(100, y_expected));
    f.queue.download(z, writable_bytes_of(out));
    CHECK(out == std::vector<float>(100, z_expected));

    // With a sink every command has its event, on any queue.
    command_queue profiled = f.where.make_queue({.profiling = true});
    name_sink sink;
    sequence.replay(profiled, &sink);
    profiled.finish();
    CHECK(sink.names == std::vector<std::string>{"axpy", "axpy", "axpy", "copy", "axpy"});
    CHECK(profiled.counts().recordings == 0);
    CHECK(profiled.counts().device_commands() == 5);
    if (method != recording_method::plain) {
      CHECK(code_of([&] { sequence.replay(profiled); }) == code(errc::invalid_argument));
    }
  }
}

TEST_CASE("a method that the device lacks is refused, plain is the default without measured gain") {
  fixture f;
  for (const recording_method method : {recording_method::command_buffer, recording_method::recordable_queue}) {
    if (method == offered_method(f.where.info())) continue;
    command_recorder recorder;
    CHECK(code_of([&] { (void)recorder.finish(f.where, f.queue, method); }) == code(errc::unsupported));
  }
  device_info info;
  info.command_buffers = true;
  device_facts facts;
  facts.launch_us = 5.0;
  CHECK(best_method(info, facts) == recording_method::plain);
  facts.recorded_launch_us = 4.8;
  CHECK(best_method(info, facts) == recording_method::plain);
  facts.recorded_launch_us = 1.0;
  CHECK(best_method(info, facts) == recording_method::command_buffer);
  info.command_buffers = false;
  info.recordable_queues = true;
  CHECK(best_method(info, facts) == recording_method::recordable_queue);
}

namespace {

/// A stand-in for Qualcomm's driver: what is enqueued on `recorder` after "new" is the recording.
struct recordable_driver {
  int created = 0;
  int ended = 0;
  int released = 0;
  int enqueued = 0;
  bool refuse = false;
};
recordable_driver* active_driver = nullptr;

opencl::detail::recordable_queue_functions::recording CL_API_CALL fake_new(cl_command_queue queue, cl_int* status) {
  *status = active_driver->refuse ? CL_INVALID_COMMAND_QUEUE : queue != nullptr ? CL_SUCCESS : CL_INVALID_VALUE;
  if (active_driver->refuse) return nullptr;
  ++active_driver->created;
  return reinterpret_cast<opencl::detail::recordable_queue_functions::recording>(active_driver);
}
cl_int CL_API_CALL fake_end(opencl::detail::recordable_queue_functions::recording) {
  ++active_driver->ended;
  return CL_SUCCESS;
}
cl_int CL_API_CALL fake_release(opencl::detail::recordable_queue_functions::recording) {
  ++active_driver->released;
  return CL_SUCCESS;
}
cl_int CL_API_CALL fake_enqueue(cl_command_queue, opencl::detail::recordable_queue_functions::recording, std::size_t,
                                const void*, std::size_t, const void*, std::size_t, const void*, std::size_t,
                                const void*, cl_uint, const cl_event*, cl_event*) {
  ++active_driver->enqueued;
  return CL_SUCCESS;
}

void* fake_function(const char* name) {
  const std::string_view wanted = name;
  if (wanted == "clNewRecordingQCOM") return reinterpret_cast<void*>(&fake_new);
  if (wanted == "clEndRecordingQCOM") return reinterpret_cast<void*>(&fake_end);
  if (wanted == "clReleaseRecordingQCOM") return reinterpret_cast<void*>(&fake_release);
  if (wanted == "clEnqueueRecordingQCOM") return reinterpret_cast<void*>(&fake_enqueue);
  return nullptr;
}

}  // namespace

TEST_CASE("recordable queues are driven in the order that their extension wants") {
  fixture f;
  recordable_driver driver;
  active_driver = &driver;
  const device_buffer x = f.where.memory().allocate(400);
  const prepared_launch launch = f.axpy(x, x, 1.0f, 100, 4);
  cl_command_queue_properties asked = 0;
  const recording_driver functions{fake_function, [&](cl_command_queue_properties bits) {
                                     asked = bits;
                                     return f.where.make_raw_queue(0);
                                   }};
  {
    command_recorder recorder;
    for (int i = 0; i < 3; ++i) recorder.add(launch);
    recorder.add([](command_queue&, event_sink*) {});
    recorder.add(launch);
    recorder.add([](command_queue&, event_sink*) {});
    for (int i = 0; i < 2; ++i) recorder.add(launch);
    recording sequence = recorder.finish(f.where, f.queue, recording_method::recordable_queue, 2, functions);
    CHECK(asked == cl_command_queue_properties{1} << 30);
    CHECK(driver.created == 2);
    CHECK(driver.ended == 2);
    sequence.replay(f.queue);
    f.queue.finish();
    CHECK(driver.enqueued == 2);
    CHECK(f.queue.counts().kernels == 6);
    CHECK(f.queue.counts().recordings == 2);
    CHECK(driver.released == 0);
  }
  CHECK(driver.released == 2);
  driver.refuse = true;
  command_recorder recorder;
  recorder.add(launch);
  recorder.add(launch);
  CHECK(code_of([&] { (void)recorder.finish(f.where, f.queue, recording_method::recordable_queue, 2, functions); }) ==
        code(errc::opencl_call));
  command_recorder missing;
  CHECK(code_of([&] {
          (void)missing.finish(f.where, f.queue, recording_method::recordable_queue, 2,
                               {[](const char*) -> void* { return nullptr; }, functions.make_queue});
        }) == code(errc::unsupported));
  active_driver = nullptr;
}

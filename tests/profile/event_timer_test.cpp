#include <cmath>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include <dnnopt/backend/measure/event_timer.hpp>
#include <dnnopt/backend/measure/kernel_injector.hpp>
#include <dnnopt/backend/opencl/context.hpp>
#include <dnnopt/backend/opencl/device.hpp>
#include <dnnopt/profile/host_timer.hpp>

using namespace dnnopt;
using namespace dnnopt::profile;

namespace {

/// A kernel whose time grows with its argument, on the first OpenCL device.
struct device_fixture {
  opencl::context context{opencl::select_device("opencl")};
  cl::Program program;
  cl::Kernel kernel;
  cl::Buffer buffer;

  device_fixture() {
    const char* source =
        "__kernel void spin(__global float* x, int rounds) {\n"
        "  float v = x[get_global_id(0)];\n"
        "  for (int i = 0; i < rounds; ++i) v = v * 0.999f + 0.001f;\n"
        "  x[get_global_id(0)] = v;\n"
        "}\n";
    cl_int status = 0;
    const cl_device_id device = context.where().handle();
    program = cl::Program(::clCreateProgramWithSource(context.handle(), 1, &source, nullptr, &status), false);
    REQUIRE(status == CL_SUCCESS);
    REQUIRE(::clBuildProgram(program(), 1, &device, "", nullptr, nullptr) == CL_SUCCESS);
    kernel = cl::Kernel(::clCreateKernel(program(), "spin", &status), false);
    REQUIRE(status == CL_SUCCESS);
    buffer = cl::Buffer(::clCreateBuffer(context.handle(), CL_MEM_READ_WRITE, 1024 * 4, nullptr, &status), false);
    REQUIRE(status == CL_SUCCESS);
    set_rounds(2000);
  }
  void set_rounds(cl_int rounds) {
    cl_mem memory = buffer();
    ::clSetKernelArg(kernel(), 0, sizeof(memory), &memory);
    ::clSetKernelArg(kernel(), 1, sizeof(rounds), &rounds);
  }
};

}  // namespace

TEST_CASE("kernels of an OpenCL device land on the host clock, by both ways of collection", "[profile][opencl]") {
  device_fixture device;
  const event_collection how = GENERATE(event_collection::blocking, event_collection::callback);
  opencl::command_queue queue = device.context.make_queue({.profiling = true});
  profiler_options options;
  options.clock = clock_options_of(device.context.where().handle());
  profiler profile(options);
  kernel_injector injector(device.context.handle(), device.context.where().handle());
  injector.inject(queue, profile, profile.probes_wanted());
  const std::uint32_t spin = profile.describe({.name = "spin", .ops = {{"node", "Conv"}}});
  const std::uint32_t wait = profile.describe({.name = "wait", .work = work_class::not_of_model});
  command_timer timer(profile, how);
  std::vector<std::int64_t> finished;
  for (int r = 0; r < 30; ++r) {
    run_recorder run = profile.begin_run();
    for (int k = 0; k < 5; ++k)
      queue.launch(device.kernel(), {1, {1024, 1, 1}, {64, 0, 0}}, "spin",
                   timer.watch(run, event_kind::kernel, spin, 8192, 1000));
    {
      const host_timer waiting(run, wait, event_kind::wait);
      queue.finish();
    }
    finished.push_back(host_now_ns());
    timer.collect();
    run.end();
  }
  timer.wait_for_callbacks();
  const profile_report report = profile.report();
  CAPTURE(report.clock.method, report.clock.residual_p90_ns);
  CHECK(report.kernels == 5);
  CHECK(report.by_kernel.at(0).count == 150);
  CHECK(report.dropped == 0);
  CHECK(timer.failed() == 0);
  CHECK(report.clock.method != "none");
  for (const kernel_event& event : report.events) {
    CHECK(event.start_ns <= event.end_ns);
    if (event.kind != event_kind::kernel) continue;
    CHECK(event.gws[0] == 1024);
    CHECK(event.lws[0] == 64);
    CHECK(event.bytes == 8192);
    CHECK(event.start_ns >= event.host_begin_ns);
    // The host saw the queue finish after the kernel's end; half a call's length is what the clock may err by.
    CHECK(event.end_ns <= finished.at(event.run) + 200'000);
  }
}

TEST_CASE("a command knows how many were enqueued behind it when it ended", "[profile][opencl]") {
  device_fixture device;
  opencl::command_queue queue = device.context.make_queue({.profiling = true});
  kernel_injector injector(device.context.handle(), device.context.where().handle());
  injector.prepare_hold(queue, 5e6);
  profiler_options options;
  options.clock = clock_options_of(device.context.where().handle());
  options.clock.bias = {.busy_ns = 1.0, .deep_ns = 2.0, .depth = 3};
  profiler profile(options);
  const std::uint32_t spin = profile.describe({.name = "spin"});
  command_timer timer(profile);
  run_recorder run = profile.begin_run();
  // Nothing begins before all is enqueued, however busy the machine is; the hold keeps the ends apart from that moment.
  cl_int status = CL_SUCCESS;
  const cl_event all_enqueued = clCreateUserEvent(device.context.handle(), &status);
  REQUIRE(status == CL_SUCCESS);
  REQUIRE(clEnqueueBarrierWithWaitList(queue.handle(), 1, &all_enqueued, nullptr) == CL_SUCCESS);
  injector.hold(queue);
  for (int k = 0; k < 6; ++k)
    queue.launch(device.kernel(), {1, {1024, 1, 1}, {64, 0, 0}}, "spin", timer.watch(run, event_kind::kernel, spin));
  REQUIRE(clSetUserEventStatus(all_enqueued, CL_COMPLETE) == CL_SUCCESS);
  queue.finish();
  REQUIRE(clReleaseEvent(all_enqueued) == CL_SUCCESS);
  run.end();
  timer.collect();
  const profile_report report = profile.report();
  REQUIRE(report.events.size() == 6);
  CHECK(report.deep == Approx(0.5));
  for (std::size_t k = 0; k < 6; ++k) CHECK(report.events[k].bias_ns == (k < 3 ? 2.0F : 1.0F));
}

TEST_CASE("a run without profiling makes no event", "[profile][opencl]") {
  device_fixture device;
  opencl::command_queue queue = device.context.make_queue();
  profiler profile({.mode = profile_mode::off});
  command_timer timer(profile);
  run_recorder run = profile.begin_run();
  queue.launch(device.kernel(), {1, {1024, 1, 1}, {64, 0, 0}}, "spin", timer.watch(run, event_kind::kernel, 0));
  queue.finish();
  timer.collect();
  CHECK(queue.counts().events == 0);
}

TEST_CASE("event stamps without a profiling queue are an error that names the call", "[profile][opencl]") {
  device_fixture device;
  opencl::command_queue queue = device.context.make_queue();
  profiler profile;
  const std::uint32_t spin = profile.describe({.name = "spin"});
  command_timer timer(profile);
  run_recorder run = profile.begin_run();
  queue.launch(device.kernel(), {1, {1024, 1, 1}, {64, 0, 0}}, "spin", timer.watch(run, event_kind::kernel, spin));
  queue.finish();
  CHECK_THROWS_WITH(timer.collect(), Catch::Contains("clGetEventProfilingInfo"));
}

TEST_CASE("the cost of an event is measured", "[profile][opencl]") {
  device_fixture device;
  opencl::command_queue queue = device.context.make_queue({.profiling = true});
  kernel_injector injector(device.context.handle(), device.context.where().handle());
  const double cost = injector.measure_event_cost(queue, 20, 7);
  CHECK(cost >= 0.0);
  CHECK(cost < 1e6);
  const event_bias bias = injector.measure_event_bias(queue);
  CHECK(bias.busy_ns >= 0.0);
  CHECK(bias.busy_ns < 1e7);
  CHECK((bias.busy_ns == 0.0 ? bias.starved_ns == 0.0 : bias.starved_ns >= bias.busy_ns));
}

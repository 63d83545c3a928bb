// Buffers of the caller in the place of a session's inputs and outputs, and the two ways of waiting.
#include <catch2/catch.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dnnopt/backend/measure/opened_device.hpp>
#include <dnnopt/backend/measure/profiled_run.hpp>
#include <dnnopt/backend/run/executor.hpp>
#include <dnnopt/dnnopt.hpp>
#include <dnnopt/ops/selection.hpp>

#include "../support/host_operator.hpp"
#include "../support/shared_device.hpp"
#include "../support/small_network.hpp"
#include "runtime_fixture.hpp"

using namespace dnnopt;
using dnnopt::opencl::testing::code;
using dnnopt::opencl::testing::code_of;
using dnnopt::testing::network;
using dnnopt::testing::ramp;
using dnnopt::testing::shared_device;

namespace {

session compiled(const model& m, compile_options options = {}) {
  if (!options.opened) options.opened = shared_device();
  return compile(m, options);
}

cl::Buffer buffer_of(std::size_t bytes, cl_mem_flags flags = CL_MEM_READ_WRITE, void* host = nullptr,
                     cl_context where = shared_device()->context.handle()) {
  cl_int status = CL_SUCCESS;
  cl::Buffer made(::clCreateBuffer(where, flags, bytes, host, &status), false);
  REQUIRE(status == CL_SUCCESS);
  return made;
}

void write(const cl::Memory& memory, const tensor& content) {
  const opencl::device_buffer target = shared_device()->context.memory().wrap(memory());
  opencl::command_queue queue = shared_device()->context.make_queue();
  queue.upload(target, content.bytes(), 0, true);
}

std::vector<float> read(const cl::Memory& memory, std::size_t elements) {
  std::vector<float> values(elements);
  const opencl::device_buffer source = shared_device()->context.memory().wrap(memory());
  opencl::command_queue queue = shared_device()->context.make_queue();
  queue.download(source, opencl::testing::writable_bytes_of(values));
  return values;
}

std::vector<float> values_of(const tensor& t) { return {t.data<float>().begin(), t.data<float>().end()}; }

/// The same numbers in another order.
tensor reversed(const tensor& t) {
  std::vector<float> values = values_of(t);
  std::reverse(values.begin(), values.end());
  return tensor::of<float>(t.dims(), values);
}

std::string name_of_output(const session& s, std::size_t i = 0) {
  return s.optimized().value_at(s.optimized().outputs()[i]).name;
}

/// Softmax(Relu(x W) V): x is 16 x 24, the output 16 x 8.
model products(const index_expr& rows = 16, std::optional<network> given = std::nullopt) {
  network n = given ? std::move(*given) : network();
  const value_id x = n.input("x", {rows, 24});
  const value_id h = n.node("Relu", {n.node("MatMul", {x, n.weights({24, 32}, 0.3F)})});
  return n.finish(n.node("Softmax", {n.node("MatMul", {h, n.weights({32, 8}, 0.3F)})}));
}

model of_symbolic_rows() {
  network n;
  const index_expr rows = n.g.expressions().symbol("rows");
  return products(rows, std::move(n));
}

constexpr std::size_t input_bytes = 16 * 24 * 4;
constexpr std::size_t output_bytes = 16 * 8 * 4;

}  // namespace

TEST_CASE("bound buffers are used in place: no transfer, and another one between runs", "[opencl][bind]") {
  const model m = products();
  const tensor one = ramp({16, 24});
  const tensor other = reversed(one);
  struct storage {
    precision stored;
    memory_objects objects;
  };
  for (const storage& how :
       {storage{precision::fp32, memory_objects::automatic}, storage{precision::fp16, memory_objects::automatic},
        storage{precision::fp32, memory_objects::packed}, storage{precision::fp32, memory_objects::images}}) {
    compile_options options;
    options.precision = how.stored;
    options.memory_objects = how.objects;
    session plain = compiled(m, options);
    const std::vector<float> want_one = values_of(plain.run({{"x", one}})[0]);
    const std::vector<float> want_other = values_of(plain.run({{"x", other}})[0]);
    CHECK(plain.executor()->figures().uploads == 1);
    CHECK(plain.executor()->figures().downloads == 1);

    session s = compiled(m, options);
    const std::string y = name_of_output(s);
    const std::array in{buffer_of(input_bytes), buffer_of(input_bytes, CL_MEM_READ_ONLY)};
    const std::array out{buffer_of(output_bytes), buffer_of(output_bytes + 64)};
    write(in[0], one);
    write(in[1], other);
    const bound_value bound = s.bind("x", in[0]);
    CHECK(bound.use == bound_use::in_place);
    CHECK(bound.reason.empty());
    CHECK_FALSE(bound.is_output);
    CHECK(bound.type == dtype::float32);
    CHECK(bound.bytes == input_bytes);
    CHECK(bound.dims == dim_list{16, 24});
    CHECK(s.bind(y, out[0]()).use == bound_use::in_place);
    CHECK(s.bindings().size() == 2);

    CHECK(s.run({}).size() == 0);
    CHECK(s.executor()->figures().uploads == 0);
    CHECK(s.executor()->figures().downloads == 0);
    CHECK(s.executor()->figures().events == 0);
    CHECK(s.kernels() == plain.kernels());
    CHECK(s.executor()->caller_bytes() == 0);
    CHECK(read(out[0], 128) == want_one);

    // Another input, then another output; what was bound before stays as it was.
    (void)s.bind("x", in[1]);
    (void)s.run({});
    CHECK(read(out[0], 128) == want_other);
    (void)s.bind("x", in[0]);
    CHECK(s.bind(y, out[1]).bytes == output_bytes + 64);
    (void)s.run({});
    CHECK(read(out[0], 128) == want_other);
    CHECK(read(out[1], 128) == want_one);
    // The same buffer with other content.
    write(in[0], other);
    (void)s.run({});
    CHECK(read(out[1], 128) == want_other);

    CHECK(s.unbind("x"));
    CHECK_FALSE(s.unbind("x"));
    CHECK(s.run({{"x", one}}).size() == 0);
    CHECK(s.executor()->figures().uploads == 1);
    CHECK(s.executor()->figures().downloads == 0);
    CHECK(read(out[1], 128) == want_one);
    CHECK(s.unbind(y));
    CHECK(values_of(s.run({{"x", other}})[y]) == want_other);
    CHECK(read(out[1], 128) == want_one);
    CHECK(s.bindings().empty());
  }
}

TEST_CASE("a session that never had memory of its own for a value gets it when it is unbound", "[opencl][bind]") {
  session s = compiled(products());
  const std::string y = name_of_output(s);
  const cl::Buffer in = buffer_of(input_bytes);
  write(in, ramp({16, 24}));
  std::vector<float> first;
  {
    const cl::Buffer out = buffer_of(output_bytes);
    (void)s.bind("x", in);
    (void)s.bind(y, out);
    (void)s.run({});
    first = read(out, 128);
    (void)s.unbind("x");
    (void)s.unbind(y);
  }
  CHECK(values_of(s.run({{"x", ramp({16, 24})}})[0]) == first);
  CHECK(s.executor()->caller_bytes() == input_bytes + output_bytes);
}

TEST_CASE("a session keeps bound buffers alive", "[opencl][bind]") {
  session s = compiled(products());
  const cl::Buffer out = buffer_of(output_bytes);
  {
    const cl::Buffer in = buffer_of(input_bytes);
    write(in, ramp({16, 24}));
    (void)s.bind("x", in);
  }
  (void)s.bind(name_of_output(s), out);
  (void)s.run({});
  const std::vector<float> got = read(out, 128);
  CHECK(values_of(compiled(products()).run({{"x", ramp({16, 24})}})[0]) == got);
}

TEST_CASE("parts of a buffer can be bound, one as input and one as output", "[opencl][bind]") {
  const std::size_t step = std::max<std::size_t>(shared_device()->context.info().base_address_alignment_bytes, 4096);
  const cl::Buffer whole = buffer_of(3 * step);
  const auto part = [&](std::size_t at) {
    const cl_buffer_region region{at, step};
    cl_int status = CL_SUCCESS;
    cl::Buffer made(::clCreateSubBuffer(whole(), 0, CL_BUFFER_CREATE_TYPE_REGION, &region, &status), false);
    REQUIRE(status == CL_SUCCESS);
    return made;
  };
  const cl::Buffer in = part(0), out = part(2 * step);
  write(in, ramp({16, 24}));
  session s = compiled(products());
  (void)s.bind("x", in);
  (void)s.bind(name_of_output(s), out);
  (void)s.run({});
  CHECK(read(out, 128) == values_of(compiled(products()).run({{"x", ramp({16, 24})}})[0]));
  // The whole has the output's bytes too.
  (void)s.bind("x", whole);
  CHECK(code_of([&] { (void)s.run({}); }) == code(errc::invalid_argument));
}

TEST_CASE("two buffers take turns as input and output", "[opencl][bind]") {
  network n;
  const value_id x = n.input("x", {16, 24});
  const model m = n.finish(n.node("Tanh", {x}));
  session s = compiled(m);
  const std::string y = name_of_output(s);
  const cl::Buffer a = buffer_of(input_bytes), b = buffer_of(input_bytes);
  tensor state = ramp({16, 24});
  write(a, state);
  session plain = compiled(m);
  for (int turn = 0; turn < 3; ++turn) {
    (void)s.bind("x", turn % 2 == 0 ? a : b);
    (void)s.bind(y, turn % 2 == 0 ? b : a);
    (void)s.run({});
    state = plain.run({{"x", state}})[0];
    CHECK(read(turn % 2 == 0 ? b : a, 16 * 24) == values_of(state));
  }
}

TEST_CASE("what cannot be bound is refused with names and values", "[opencl][bind]") {
  session s = compiled(products());
  const std::string y = name_of_output(s);
  std::string text;
  const auto refused = [&](const auto& call) {
    text.clear();
    return code_of(call, &text);
  };
  const auto says = [&](const std::string& part) { return text.find(part) != std::string::npos; };
  const cl::Buffer good = buffer_of(input_bytes);

  CHECK(refused([&] { (void)s.bind("z", good); }) == code(errc::missing_input));
  CHECK(says("'z'"));
  CHECK(refused([&] { (void)s.unbind("z"); }) == code(errc::missing_input));
  CHECK(refused([&] { (void)s.bind("x", nullptr); }) == code(errc::invalid_argument));
  CHECK(says("'x'"));

  const opencl::context other = opencl::testing::first_context();
  const cl::Buffer foreign = buffer_of(input_bytes, CL_MEM_READ_WRITE, nullptr, other.handle());
  CHECK(refused([&] { (void)s.bind("x", foreign); }) == code(errc::invalid_argument));
  CHECK(says("another OpenCL context"));
  CHECK(says("'x'"));

  if (shared_device()->context.info().images.supported) {
    const opencl::device_image image = shared_device()->context.memory().allocate_image(
        {opencl::image_kind::image2d, opencl::texel_type::rgba_fp32, 32, 32, 1});
    CHECK(refused([&] { (void)s.bind("x", image.handle()); }) == code(errc::invalid_argument));
    CHECK(says("no buffer"));
  }

  const cl::Buffer small = buffer_of(input_bytes - 4);
  CHECK(refused([&] { (void)s.bind("x", small); }) == code(errc::invalid_argument));
  CHECK(says(std::to_string(input_bytes - 4)));
  CHECK(says(std::to_string(input_bytes)));
  CHECK(says("'x'"));

  const cl::Buffer write_only = buffer_of(input_bytes, CL_MEM_WRITE_ONLY);
  const cl::Buffer read_only = buffer_of(input_bytes, CL_MEM_READ_ONLY);
  CHECK(refused([&] { (void)s.bind("x", write_only); }) == code(errc::invalid_argument));
  CHECK(says("CL_MEM_WRITE_ONLY"));
  CHECK(refused([&] { (void)s.bind(y, write_only); }) == code(errc::invalid_argument));
  CHECK(says("CL_MEM_WRITE_ONLY"));
  CHECK(refused([&] { (void)s.bind(y, read_only); }) == code(errc::invalid_argument));
  CHECK(says("CL_MEM_READ_ONLY"));
  CHECK(says(y));

  alignas(64) static std::array<std::byte, input_bytes + 4> host;
  const cl::Buffer askew = buffer_of(input_bytes, CL_MEM_USE_HOST_PTR, host.data() + 4);
  void* told = nullptr;
  REQUIRE(::clGetMemObjectInfo(askew(), CL_MEM_HOST_PTR, sizeof told, &told, nullptr) == CL_SUCCESS);
  if (told == host.data() + 4) {
    CHECK(refused([&] { (void)s.bind("x", askew); }) == code(errc::invalid_argument));
    CHECK(says("16 bytes"));
  }

  CHECK(refused([&] { (void)s.bind(y, good, dim_list{16, 8}); }) == code(errc::invalid_argument));
  CHECK(refused([&] { (void)s.bind("x", good, dim_list{8, 24}); }) == code(errc::shape_mismatch));
  CHECK(says("8x24"));

  // Nothing of all this was taken.
  CHECK(s.bindings().empty());
  const tensor x = ramp({16, 24});
  CHECK(s.run({{"x", x}}).size() == 1);

  (void)s.bind("x", good);
  CHECK(refused([&] { (void)s.run({{"x", x}}); }) == code(errc::invalid_argument));
  CHECK(says("given as well"));
  (void)s.bind(y, good);
  CHECK(refused([&] { (void)s.run({}); }) == code(errc::invalid_argument));
  CHECK(says("'x'"));
  CHECK(says("'" + y + "'"));
  (void)s.unbind("x");
  CHECK(refused([&] { (void)s.run({}); }) == code(errc::missing_input));
  CHECK(s.run({{"x", x}}).size() == 0);

  session reference = compile(products(), {.device = "reference"});
  CHECK(refused([&] { (void)reference.bind("x", good); }) == code(errc::unsupported));
  CHECK(says("reference"));
  CHECK(refused([&] { (void)reference.unbind("x"); }) == code(errc::unsupported));
  CHECK(reference.bindings().empty());
}

TEST_CASE("a name that is an input and an output is not bound", "[opencl][bind]") {
  network n;
  const value_id x = n.input("x", {4, 4});
  n.g.add_output(x);
  session s = compiled(n.finish(n.node("Tanh", {x})));
  const cl::Buffer memory = buffer_of(64);
  CHECK(code_of([&] { (void)s.bind("x", memory); }) == code(errc::unsupported));
}

TEST_CASE("symbolic dims: stated with the buffer or told by other inputs, sizes seen at the run", "[opencl][bind]") {
  session s = compiled(of_symbolic_rows());
  session plain = compiled(of_symbolic_rows());
  const std::string y = name_of_output(s);
  const cl::Buffer in = buffer_of(64 * 24 * 4), out = buffer_of(16 * 8 * 4);
  write(in, ramp({64, 24}));
  CHECK_FALSE(s.bind("x", in).dims.has_value());
  (void)s.bind(y, out);
  std::string text;
  CHECK(code_of([&] { (void)s.run({}); }, &text) == code(errc::unbound_symbol));
  CHECK(text.find("'x'") != std::string::npos);
  CHECK(code_of([&] { (void)s.bind("x", in, dim_list{16, 23}); }) == code(errc::shape_mismatch));
  CHECK(code_of([&] { (void)s.bind("x", in, dim_list{16}); }) == code(errc::shape_mismatch));
  for (const std::int64_t rows : {16, 5, 16}) {
    CHECK(s.bind("x", in, dim_list{rows, 24}).dims == dim_list{rows, 24});
    (void)s.run({});
    CHECK(s.bindings()[1].dims == dim_list{rows, 8});
    std::vector<float> part = values_of(ramp({64, 24}));
    part.resize(static_cast<std::size_t>(rows) * 24);
    CHECK(read(out, static_cast<std::size_t>(rows) * 8) ==
          values_of(plain.run({{"x", tensor::of<float>({rows, 24}, part)}})[0]));
  }
  // The output's buffer is too small for this many, then the input's.
  (void)s.bind("x", in, dim_list{17, 24});
  CHECK(code_of([&] { (void)s.run({}); }, &text) == code(errc::invalid_argument));
  CHECK(text.find("17x8") != std::string::npos);
  CHECK(text.find(std::to_string(17 * 8 * 4)) != std::string::npos);
  (void)s.bind("x", in, dim_list{65, 24});
  CHECK(code_of([&] { (void)s.run({}); }, &text) == code(errc::invalid_argument));
  CHECK(text.find("65x24") != std::string::npos);
  (void)s.bind("x", in, dim_list{16, 24});
  CHECK(s.run({}).size() == 0);

  network n;
  const index_expr rows = n.g.expressions().symbol("rows");
  const value_id a = n.input("a", {rows, 4});
  const value_id b = n.input("b", {rows, 4});
  session sum = compiled(n.finish(n.node("Add", {a, b})));
  const cl::Buffer held = buffer_of(6 * 4 * 4);
  write(held, ramp({6, 4}));
  (void)sum.bind("b", held);
  const tensor got = sum.run({{"a", ramp({6, 4})}})[0];
  CHECK(got.data<float>()[5] == 2 * ramp({6, 4}).data<float>()[5]);
  CHECK(sum.bindings()[0].dims == dim_list{6, 4});
  CHECK(code_of([&] { (void)sum.run({{"a", ramp({7, 4})}}); }) == code(errc::invalid_argument));
}

TEST_CASE("what kernels cannot use in place is copied, and the binding says why", "[opencl][bind]") {
  network n;
  const value_id x = n.input("x", {4, 6});
  attribute_map flat;
  flat.set("axis", std::int64_t{0});
  const value_id view = n.node("Flatten", {x}, flat);
  const value_id tanh = n.node("Tanh", {x});
  const value_id again = n.node("Flatten", {tanh}, flat);
  const value_id relu = n.node("Relu", {n.weights({2, 2})});
  for (const value_id out : {view, tanh, again}) n.g.add_output(out);
  session s = compiled(n.finish(relu));
  REQUIRE(s.optimized().outputs().size() == 4);
  const tensor content = ramp({4, 6});
  const named_tensors plain = s.run({{"x", content}});

  std::vector<cl::Buffer> out;
  std::vector<bound_value> rows;
  for (std::size_t i = 0; i < 4; ++i) {
    out.push_back(buffer_of(4 * 6 * 4));
    rows.push_back(s.bind(name_of_output(s, i), out[i]));
  }
  CHECK(rows[0].use == bound_use::copied);
  CHECK(rows[0].reason.find("input 'x'") != std::string::npos);
  CHECK(rows[1].use == bound_use::in_place);
  CHECK(rows[2].use == bound_use::copied);
  CHECK(rows[2].reason.find("another bound output") != std::string::npos);
  CHECK(rows[3].use == bound_use::copied);
  CHECK(rows[3].reason.find("constant") != std::string::npos);
  const auto right = [&] {
    for (std::size_t i = 0; i < 4; ++i) {
      const std::vector<float> expected = values_of(plain[i]);
      CHECK(read(out[i], expected.size()) == expected);
    }
  };
  const std::size_t kernels = s.kernels();
  CHECK(s.run({{"x", content}}).size() == 0);
  right();
  // x and its view from the host, and the constant; Tanh's other shape by a copy on the device.
  CHECK(s.executor()->figures().uploads == 3);
  CHECK(s.executor()->figures().downloads == 0);
  CHECK(s.kernels() == kernels + 1);

  const cl::Buffer in = buffer_of(4 * 6 * 4);
  write(in, content);
  CHECK(s.bind("x", in).use == bound_use::in_place);
  (void)s.run({});
  right();
  CHECK(s.executor()->figures().uploads == 1);
  CHECK(s.kernels() == kernels + 2);

  // The one of the two that is bound alone has the kernel's memory.
  (void)s.unbind(name_of_output(s, 1));
  CHECK(s.bindings()[2].use == bound_use::in_place);
  const named_tensors left = s.run({});
  REQUIRE(left.size() == 1);
  CHECK(values_of(left[0]) == values_of(plain[1]));
  CHECK(s.kernels() == kernels + 1);
  CHECK(read(out[2], 24) == values_of(plain[2]));

  // A profile shows the copies.
  (void)s.bind(name_of_output(s, 1), out[1]);
  profile::profiler profiler;
  profiled_run observer(profiler, s.executor()->executed());
  observer.begin();
  (void)s.run({}, &observer);
  observer.end();
  const profile::profile_report report = profiler.report();
  CHECK(std::count_if(report.events.begin(), report.events.end(),
                      [](const auto& event) { return event.kind == profile::event_kind::copy; }) == 2);
}

TEST_CASE("host operators read and write bound memory by transfers, which the binding tells", "[opencl][bind]") {
  network n;
  const value_id x = n.input("x", {4, 6});
  const value_id relu = n.node("Relu", {x});
  n.g.add_output(relu);
  n.ops.add<dnnopt::testing::host_non_zero_op>();
  const model m = n.finish(n.node("HostNonZero", {x}));
  session plain = compiled(m);
  const named_tensors want = plain.run({{"x", ramp({4, 6})}});
  REQUIRE(plain.host_ops() == 1);
  for (const wait_mode wait : {wait_mode::blocking, wait_mode::spinning}) {
    compile_options options;
    options.wait = wait;
    session s = compiled(m, options);
    const cl::Buffer in = buffer_of(4 * 6 * 4), out = buffer_of(4 * 6 * 4), found = buffer_of(2 * 24 * 8);
    write(in, ramp({4, 6}));
    const bound_value read_by_host = s.bind("x", in);
    CHECK(read_by_host.use == bound_use::copied);
    CHECK(read_by_host.reason.find("NonZero") != std::string::npos);
    CHECK(s.bind(name_of_output(s, 0), out).use == bound_use::in_place);
    const bound_value written_by_host = s.bind(name_of_output(s, 1), found);
    CHECK(written_by_host.use == bound_use::copied);
    CHECK(written_by_host.reason.find("NonZero") != std::string::npos);
    CHECK(s.run({}).size() == 0);
    CHECK(s.executor()->figures().downloads == 1);
    CHECK(s.executor()->figures().uploads == 1);
    CHECK(s.executor()->figures().events == (wait == wait_mode::spinning ? 2U : 0U));
    CHECK(read(out, 24) == values_of(want[0]));
    CHECK(s.bindings()[2].dims == want[1].dims());
    std::vector<std::int64_t> indices(static_cast<std::size_t>(want[1].size()));
    opencl::command_queue queue = shared_device()->context.make_queue();
    queue.download(shared_device()->context.memory().wrap(found()), opencl::testing::writable_bytes_of(indices));
    CHECK(std::equal(indices.begin(), indices.end(), want[1].data<std::int64_t>().begin()));

    // As many as there are is known when they were found.
    const cl::Buffer few = buffer_of(16);
    (void)s.bind(name_of_output(s, 1), few);
    CHECK(code_of([&] { (void)s.run({}); }) == code(errc::invalid_argument));
    // The host must be let in.
    const cl::Buffer closed = buffer_of(4 * 6 * 4, CL_MEM_READ_WRITE | CL_MEM_HOST_NO_ACCESS);
    (void)s.bind("x", closed);
    std::string text;
    CHECK(code_of([&] { (void)s.run({}); }, &text) == code(errc::invalid_argument));
    CHECK(text.find("'x'") != std::string::npos);
  }
}

TEST_CASE("blocking and spinning give the same outputs; spinning costs a marker's event", "[opencl][wait]") {
  CHECK(find_wait_mode("spinning") == wait_mode::spinning);
  CHECK(find_wait_mode("blocking") == wait_mode::blocking);
  CHECK_FALSE(find_wait_mode("sleeping").has_value());
  const tensor x = ramp({16, 24});
  std::vector<float> outputs[2];
  for (const wait_mode wait : {wait_mode::blocking, wait_mode::spinning}) {
    compile_options options;
    options.wait = wait;
    session s = compiled(products(), options);
    CHECK(s.executor()->waits_by() == wait);
    for (int again = 0; again < 3; ++again) {
      outputs[static_cast<std::size_t>(wait)] = values_of(s.run({{"x", x}})[0]);
      CHECK(s.executor()->figures().events == (wait == wait_mode::spinning ? 1U : 0U));
    }
    // The choice can change between runs.
    s.executor()->wait_by(wait_mode::blocking);
    (void)s.run({{"x", x}});
    CHECK(s.executor()->figures().events == 0);
  }
  CHECK(outputs[0] == outputs[1]);
}

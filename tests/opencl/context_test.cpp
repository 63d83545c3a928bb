// Context, queues, buffers and images on the first OpenCL device.
#include <dnnopt/backend/opencl/context.hpp>
#include <dnnopt/backend/run/arena.hpp>
#include <dnnopt/mapped_file.hpp>

#include <catch2/catch.hpp>

#include <fstream>
#include <limits>
#include <numeric>
#include <type_traits>

#include "runtime_fixture.hpp"

using namespace dnnopt;
using namespace dnnopt::opencl;
using testing::bytes_of;
using testing::code;
using testing::code_of;
using testing::writable_bytes_of;

static_assert(!std::is_copy_constructible_v<device_buffer> && std::is_nothrow_move_constructible_v<device_buffer>);
static_assert(!std::is_copy_constructible_v<device_image> && std::is_nothrow_move_constructible_v<device_image>);
static_assert(!std::is_copy_constructible_v<command_queue> && std::is_nothrow_destructible_v<command_queue>);
static_assert(!std::is_copy_constructible_v<mapped_region> && std::is_nothrow_destructible_v<mapped_region>);

namespace {

std::vector<float> counting(std::size_t n) {
  std::vector<float> values(n);
  std::iota(values.begin(), values.end(), 1.0f);
  return values;
}

struct recording_sink : event_sink {
  std::vector<command_kind> kinds;
  std::vector<std::uint64_t> bytes;
  std::vector<cl::Event> events;
  void on_command(const command_record& record, cl::Event event) override {
    CHECK(record.host_begin <= record.host_end);
    kinds.push_back(record.kind);
    bytes.push_back(record.bytes);
    events.push_back(std::move(event));
  }
};

}  // namespace

TEST_CASE("bytes go up, across and down unchanged") {
  context where = testing::first_context();
  command_queue queue = where.make_queue();
  const std::vector<float> values = counting(1000);
  const device_buffer a = where.memory().allocate(4000, "a");
  const device_buffer b = where.memory().allocate(4000, "b");
  queue.upload(a, bytes_of(values));
  queue.copy(a, 0, b, 2000, 2000);
  queue.copy(a, 2000, b, 0, 2000);
  std::vector<float> back(1000);
  queue.download(b, writable_bytes_of(back));
  for (std::size_t i = 0; i < 500; ++i) {
    REQUIRE(back[i] == values[500 + i]);
    REQUIRE(back[500 + i] == values[i]);
  }
  const command_counts counts = queue.counts();
  CHECK(counts.uploads == 1);
  CHECK(counts.copies == 2);
  CHECK(counts.downloads == 1);
  CHECK(counts.device_commands() == 2);
  CHECK(counts.events == 0);
  CHECK(counts.waits == 1);
}

TEST_CASE("a rectangle is one copy command") {
  context where = testing::first_context();
  command_queue queue = where.make_queue();
  const std::vector<float> values = counting(6 * 8);
  const device_buffer a = where.memory().allocate(values.size() * 4);
  const device_buffer b = where.memory().allocate(3 * 4 * 4);
  queue.upload(a, bytes_of(values));
  queue.copy_rectangle(a, {{8, 2, 0}, 32, 0}, b, {{0, 0, 0}, 16, 0}, {16, 3, 1});
  std::vector<float> back(12);
  queue.download(b, writable_bytes_of(back));
  for (std::size_t r = 0; r < 3; ++r) {
    for (std::size_t c = 0; c < 4; ++c) CHECK(back[r * 4 + c] == values[(r + 2) * 8 + c + 2]);
  }
  CHECK(queue.counts().device_commands() == 1);
}

TEST_CASE("fill repeats its pattern") {
  context where = testing::first_context();
  command_queue queue = where.make_queue();
  const device_buffer buffer = where.memory().allocate(64);
  const std::vector<float> zero{0.0f};
  const std::vector<float> pattern{1.5f, -2.0f};
  queue.fill(buffer, bytes_of(zero), 0, 64);
  queue.fill(buffer, bytes_of(pattern), 16, 32);
  std::vector<float> back(16);
  queue.download(buffer, writable_bytes_of(back));
  for (std::size_t i = 0; i < 16; ++i) CHECK(back[i] == (i < 4 || i >= 12 ? 0.0f : pattern[i % 2]));
  CHECK(queue.counts().fills == 2);
}

TEST_CASE("transfers outside of a buffer are refused before OpenCL sees them") {
  context where = testing::first_context();
  command_queue queue = where.make_queue();
  const device_buffer buffer = where.memory().allocate(64);
  std::vector<float> values(17);
  CHECK(code_of([&] { queue.upload(buffer, bytes_of(values)); }) == code(errc::invalid_argument));
  CHECK(code_of([&] { queue.download(buffer, writable_bytes_of(values)); }) == code(errc::invalid_argument));
  values.resize(4);
  std::string text;
  CHECK(code_of([&] { queue.upload(buffer, bytes_of(values), 60); }, &text) == code(errc::invalid_argument));
  CHECK(text.find("16 bytes at byte 60 of a buffer of 64 bytes") != std::string::npos);
  CHECK(code_of([&] { queue.copy(buffer, 0, buffer, 32, 33); }) == code(errc::invalid_argument));
  CHECK(code_of([&] { (void)queue.map(buffer, map_access::read, 1, 64); }) == code(errc::invalid_argument));
  CHECK(queue.counts().device_commands() == 0);
}

TEST_CASE("zero bytes are no command and need no memory") {
  context where = testing::first_context();
  command_queue queue = where.make_queue();
  const device_buffer empty = where.memory().allocate(0);
  CHECK(empty.empty());
  CHECK(empty.bytes() == 0);
  queue.upload(empty, {});
  queue.download(empty, {});
  queue.copy(empty, 0, empty, 0, 0);
  CHECK(queue.map(empty, map_access::read, 0, 0).bytes().empty());
  CHECK(queue.counts().uploads + queue.counts().downloads + queue.counts().copies + queue.counts().maps == 0);
  CHECK(where.memory().figures().allocations == 0);
}

TEST_CASE("device bytes are counted where they are allocated") {
  context where = testing::first_context();
  device_memory& memory = where.memory();
  {
    device_buffer a = memory.allocate(1000);
    CHECK(memory.figures().live_bytes == 1000);
    {
      const device_buffer b = memory.allocate(500);
      CHECK(memory.figures().live_bytes == 1500);
    }
    CHECK(memory.figures().live_bytes == 1000);
    const device_buffer moved = std::move(a);
    CHECK(memory.figures().live_bytes == 1000);
    device_buffer target = memory.allocate(10);
    target = memory.allocate(20);
    CHECK(memory.figures().live_bytes == 1020);
    const device_buffer part = moved.sub_buffer(0, 100);
    CHECK(memory.figures().live_bytes == 1020);
  }
  CHECK(memory.figures().live_bytes == 0);
  CHECK(memory.figures().peak_bytes == 1500);
  CHECK(memory.figures().allocations == 4);
  memory.reset_peak();
  CHECK(memory.figures().peak_bytes == 0);
}

TEST_CASE("memory may outlive its context") {
  device_buffer buffer;
  command_queue queue;
  {
    context where = testing::first_context();
    buffer = where.memory().allocate(256);
    queue = where.make_queue();
  }
  const std::vector<float> values = counting(64);
  queue.upload(buffer, bytes_of(values));
  std::vector<float> back(64);
  queue.download(buffer, writable_bytes_of(back));
  CHECK(back == values);
}

TEST_CASE("more memory than the device has is an error with the sizes") {
  context where = testing::first_context();
  std::string text;
  const std::size_t wanted = static_cast<std::size_t>(where.info().global_memory_bytes) * 64;
  CHECK(code_of([&] { (void)where.memory().allocate(wanted, "weights"); }, &text) == code(errc::out_of_device_memory));
  CHECK(text.find(std::to_string(wanted)) != std::string::npos);
  CHECK(text.find("weights") != std::string::npos);
  CHECK(where.memory().figures().live_bytes == 0);
}

TEST_CASE("the allocator keeps a limit") {
  context where = testing::first_context();
  where.memory().set_limit(1000);
  const device_buffer a = where.memory().allocate(600);
  CHECK(code_of([&] { (void)where.memory().allocate(401); }) == code(errc::memory_limit));
  const device_buffer b = where.memory().allocate(400);
  where.memory().set_limit(0);
  const device_buffer c = where.memory().allocate(4000);
  CHECK(where.memory().figures().live_bytes == 5000);
}

TEST_CASE("sub-buffers share memory and keep the alignment") {
  context where = testing::first_context();
  command_queue queue = where.make_queue();
  const std::size_t step = where.info().base_address_alignment_bytes;
  device_buffer part_of_part;
  std::vector<float> values = counting(step);
  {
    const device_buffer arena = where.memory().allocate(4 * step);
    queue.upload(arena, bytes_of(values));
    const device_buffer part = arena.sub_buffer(step, 3 * step);
    CHECK(part.offset() == step);
    part_of_part = part.sub_buffer(step, step);
    CHECK(part_of_part.offset() == 2 * step);
    CHECK(code_of([&] { (void)arena.sub_buffer(step / 2, step); }) == code(errc::invalid_argument));
    CHECK(code_of([&] { (void)arena.sub_buffer(2 * step, 3 * step); }) == code(errc::invalid_argument));
    CHECK(code_of([&] { (void)arena.sub_buffer(0, 0); }) == code(errc::invalid_argument));
  }
  std::vector<float> back(step / 4);
  queue.download(part_of_part, writable_bytes_of(back));
  for (std::size_t i = 0; i < back.size(); ++i) CHECK(back[i] == values[step / 2 + i]);
}

TEST_CASE("an arena cuts equal parts once and outlives no share") {
  context where = testing::first_context();
  command_queue queue = where.make_queue();
  const std::size_t step = where.info().base_address_alignment_bytes;
  const std::uint64_t before = where.memory().figures().live_bytes;
  const std::vector<float> values = counting(step);
  {
    std::vector<device_buffer> objects;
    for (const std::size_t bytes : {4 * step, step}) objects.push_back(where.memory().allocate(bytes));
    opencl::arena cut(std::move(objects));
    CHECK(cut.bytes() == 5 * step);
    queue.upload(cut.objects()[0], bytes_of(values));
    // Overlapping, and released here in the order of their creation, which some drivers do not survive.
    std::vector<device_buffer> shares;
    for (std::size_t i = 0; i < 4; ++i) shares.push_back(cut.part(0, i % 3 * step, 4 * step - i * step));
    const device_buffer twice = cut.part(0, 0, 4 * step);
    CHECK(cut.part_count() == 4);
    CHECK(twice.handle() == shares[0].handle());
    CHECK(shares[1].handle() != shares[0].handle());
    shares.push_back(cut.part(1, 0, step));
    CHECK(cut.part_count() == 5);
    CHECK(shares[4].handle() != shares[0].handle());
    CHECK(code_of([&] { (void)cut.part(0, 1, step); }) == code(errc::invalid_argument));
    CHECK(cut.part_count() == 5);
    std::vector<float> back(step / 4);
    queue.download(shares[2], writable_bytes_of(back));
    for (std::size_t i = 0; i < back.size(); ++i) CHECK(back[i] == values[step / 2 + i]);
    CHECK(where.memory().figures().live_bytes == before + 5 * step);
    shares.clear();
  }
  CHECK(where.memory().figures().live_bytes == before);
}

TEST_CASE("addressed memory: parts are addresses, transfers and kernels work on them") {
  context where = testing::first_context();
  if (!where.info().shared_virtual_memory) {
    CHECK(code_of([&] {
            (void)where.memory().allocate(64, "a", memory_access::read_write, memory_placement::addressed);
          }) == code(errc::unsupported));
    return;
  }
  command_queue queue = where.make_queue();
  const std::size_t step = where.info().base_address_alignment_bytes;
  const std::uint64_t before = where.memory().figures().live_bytes;
  {
    const device_buffer whole =
        where.memory().allocate(4 * step, "a", memory_access::read_write, memory_placement::addressed);
    CHECK(where.memory().figures().live_bytes == before + 4 * step);
    CHECK_FALSE(whole.empty());
    CHECK(whole.handle() == nullptr);
    const std::vector<float> values = counting(step);
    queue.upload(whole, bytes_of(values));
    const device_buffer part = whole.sub_buffer(step, 2 * step);
    CHECK(part.is_part());
    CHECK(part.address() == whole.address() + step);
    CHECK(code_of([&] { (void)whole.sub_buffer(step / 2, step); }) == code(errc::invalid_argument));
    std::vector<float> back(step / 4);
    queue.download(part, writable_bytes_of(back));
    for (std::size_t i = 0; i < back.size(); ++i) CHECK(back[i] == values[step / 4 + i]);
    queue.copy(part, 0, whole, 3 * step, step);
    queue.download(whole, writable_bytes_of(back), 3 * step);
    for (std::size_t i = 0; i < back.size(); ++i) CHECK(back[i] == values[step / 4 + i]);
    const std::array<std::byte, 1> zero{};
    queue.fill(part, zero, step, step);
    queue.download(whole, writable_bytes_of(back), 2 * step);
    for (const float value : back) CHECK(value == 0.0F);
    const device_buffer object = where.memory().allocate(step);
    CHECK(code_of([&] { queue.copy(part, 0, object, 0, step); }) == code(errc::unsupported));
    CHECK(code_of([&] { (void)queue.map(part, map_access::read, 0, step); }) == code(errc::unsupported));
    queue.finish();
  }
  CHECK(where.memory().figures().live_bytes == before);
}

TEST_CASE("mapped memory is the buffer's memory") {
  context where = testing::first_context();
  command_queue queue = where.make_queue();
  const device_buffer buffer =
      where.memory().allocate(64, "in", memory_access::read_write, memory_placement::host_visible);
  {
    const mapped_region region = queue.map(buffer, map_access::write, 0, 64);
    REQUIRE(region.bytes().size() == 64);
    for (std::size_t i = 0; i < 64; ++i) region.bytes()[i] = static_cast<std::byte>(i);
  }
  mapped_region region = queue.map(buffer, map_access::read, 16, 8);
  for (std::size_t i = 0; i < 8; ++i) CHECK(region.bytes()[i] == static_cast<std::byte>(16 + i));
  region.unmap();
  CHECK(region.bytes().empty());
  CHECK(queue.counts().maps == 2);
}

TEST_CASE("the caller's memory is used in place") {
  context where = testing::first_context();
  command_queue queue = where.make_queue();
  alignas(4096) static float host[1024];
  for (std::size_t i = 0; i < 1024; ++i) host[i] = static_cast<float>(i);
  const device_buffer wrapped = where.memory().wrap_host(host, sizeof(host), memory_access::read_write, "host");
  CHECK(where.memory().figures().live_bytes == 0);
  CHECK(where.memory().figures().wrapped_bytes == sizeof(host));
  const std::vector<float> pattern{7.0f};
  queue.fill(wrapped, bytes_of(pattern), 0, 64);
  {
    const mapped_region region = queue.map(wrapped, map_access::read, 0, sizeof(host));
    CHECK(static_cast<void*>(region.bytes().data()) == static_cast<void*>(host));
    CHECK(host[0] == 7.0f);
    CHECK(host[16] == 16.0f);
  }
  queue.finish();
  CHECK(code_of([&] { (void)where.memory().wrap_host(nullptr, 4, memory_access::read_only); }) ==
        code(errc::invalid_argument));
}

TEST_CASE("what is lent is read in place, also where nobody can write it") {
  context where = testing::first_context();
  const testing::temporary_folder folder;
  const std::vector<float> values = counting(4096);
  std::ofstream(folder.path() / "weights", std::ios::binary)
      .write(reinterpret_cast<const char*>(values.data()), std::streamsize{4096 * sizeof(float)});
  const auto file = mapped_file::open(folder.path() / "weights");
  const std::span<const std::byte> content = file->bytes();
  CHECK(where.memory().reads_in_place(content) == is_host_processor(where.info()));
  CHECK_FALSE(where.memory().reads_in_place(content.subspan(4)));
  CHECK_FALSE(where.memory().reads_in_place({}));
  device_info other = where.info();
  other.type = device_type::gpu;
  CHECK_FALSE(is_host_processor(other));
  if (!where.memory().reads_in_place(content)) return;

  command_queue queue = where.make_queue();
  {
    const device_buffer lent = where.memory().lend(content, "weights");
    CHECK(where.memory().figures().live_bytes == content.size());
    CHECK(where.memory().figures().wrapped_bytes == 0);
    cl_mem_flags flags = 0;
    REQUIRE(::clGetMemObjectInfo(lent.handle(), CL_MEM_FLAGS, sizeof(flags), &flags, nullptr) == CL_SUCCESS);
    CHECK((flags & CL_MEM_USE_HOST_PTR) != 0);
    const device_buffer copy = where.memory().allocate(content.size(), "copy");
    queue.copy(lent, 0, copy, 0, content.size());
    std::vector<float> back(4096);
    queue.download(copy, writable_bytes_of(back));
    CHECK(back == values);
  }
  queue.finish();
  CHECK(where.memory().figures().live_bytes == 0);
  where.memory().set_limit(content.size() - 1);
  CHECK(code_of([&] { (void)where.memory().lend(content); }) == code(errc::memory_limit));
}

TEST_CASE("large buffers of a processor's own memory ask for huge pages, and end with their last command") {
  context where = testing::first_context();
  const std::size_t least = huge_pages_from(where.info());
  CHECK((least == huge_page_bytes || least == std::numeric_limits<std::size_t>::max()));
  device_info other = where.info();
  other.type = device_type::gpu;
  CHECK(huge_pages_from(other) == std::numeric_limits<std::size_t>::max());

  const std::size_t bytes = huge_page_bytes + 12;
  command_queue queue = where.make_queue();
  const std::vector<float> pattern{3.0f};
  std::vector<float> back(bytes / sizeof(float));
  for (int round = 0; round < 3; ++round) {
    const device_buffer buffer = where.memory().allocate(bytes, "large");
    CHECK(where.memory().figures().live_bytes == bytes);
    CHECK(where.memory().figures().wrapped_bytes == 0);
    cl_mem_flags flags = 0;
    REQUIRE(::clGetMemObjectInfo(buffer.handle(), CL_MEM_FLAGS, sizeof(flags), &flags, nullptr) == CL_SUCCESS);
    CHECK(((flags & CL_MEM_USE_HOST_PTR) != 0) == (bytes >= least));
    queue.fill(buffer, bytes_of(pattern), 0, bytes);
    const device_buffer part = buffer.sub_buffer(huge_page_bytes, 12);
    queue.download(part, writable_bytes_of(back).first(12));
    CHECK(back[2] == 3.0f);
    // Commands that are under way keep the memory of a buffer that has ended.
    queue.fill(buffer, bytes_of(pattern), 0, bytes);
  }
  queue.finish();
  CHECK(where.memory().figures().live_bytes == 0);
}

TEST_CASE("the caller's cl_mem is retained, checked and not counted") {
  context where = testing::first_context();
  command_queue queue = where.make_queue();
  cl_int status = CL_SUCCESS;
  cl_mem own = clCreateBuffer(where.handle(), CL_MEM_READ_WRITE, 128, nullptr, &status);
  REQUIRE(status == CL_SUCCESS);
  const device_buffer wrapped = where.memory().wrap(own);
  clReleaseMemObject(own);
  CHECK(wrapped.bytes() == 128);
  CHECK(where.memory().figures().allocations == 0);
  const std::vector<float> values = counting(32);
  queue.upload(wrapped, bytes_of(values));
  std::vector<float> back(32);
  queue.download(wrapped, writable_bytes_of(back));
  CHECK(back == values);
  CHECK(code_of([&] { (void)where.memory().wrap(nullptr); }) == code(errc::invalid_argument));
  const context other = testing::first_context();
  CHECK(code_of([&] { (void)other.memory().wrap(wrapped.handle()); }) == code(errc::invalid_argument));
  CHECK(code_of([&] { (void)where.memory().wrap_image(wrapped.handle()); }) == code(errc::invalid_argument));
}

TEST_CASE("images hold texels in both precisions and all kinds") {
  context where = testing::first_context();
  if (!where.info().images.supported) {
    WARN("the device has no images");
    return;
  }
  command_queue queue = where.make_queue();
  for (const image_kind kind : {image_kind::image2d, image_kind::image2d_array, image_kind::image1d_buffer}) {
    for (const texel_type texel : {texel_type::rgba_fp32, texel_type::rgba_fp16}) {
      const image_shape shape{kind, texel, 5, kind == image_kind::image1d_buffer ? 1u : 3u,
                              kind == image_kind::image2d_array ? 2u : 1u};
      CAPTURE(static_cast<int>(kind), static_cast<int>(texel));
      const device_image image = where.memory().allocate_image(shape, "texels");
      CHECK(where.memory().figures().live_bytes == shape.bytes());
      if (kind == image_kind::image1d_buffer) continue;
      std::vector<std::uint16_t> values(shape.bytes() / 2);
      for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<std::uint16_t>(0x3c00 + i);
      queue.upload_image(image, bytes_of(values));
      const device_buffer buffer = where.memory().allocate(shape.bytes() + 16);
      queue.copy(image, buffer, 16);
      const device_image second = where.memory().allocate_image(shape);
      queue.copy(buffer, 16, second);
      const device_image third = where.memory().allocate_image(shape);
      queue.copy(second, third);
      std::vector<std::uint16_t> back(values.size());
      queue.download_image(third, writable_bytes_of(back));
      CHECK(back == values);
    }
  }
  CHECK(where.memory().figures().live_bytes == 0);
  CHECK(queue.counts().device_commands() == 12);
}

TEST_CASE("an image can lie over a buffer, and over a part of an arena where the device allows") {
  context where = testing::first_context();
  const device_info& info = where.info();
  if (!info.images.supported) return;
  command_queue queue = where.make_queue();
  const std::size_t step = info.base_address_alignment_bytes;
  const device_buffer arena = where.memory().allocate(step + 1024);
  const device_buffer part = arena.sub_buffer(step, 1024);
  const image_shape linear{image_kind::image1d_buffer, texel_type::rgba_fp32, 64, 1, 1};
  REQUIRE(where.memory().shares_buffer(linear, 0, false));
  const device_image image = where.memory().image_over(arena, linear);
  CHECK(image.bytes() == 1024);
  CHECK(where.memory().figures().live_bytes == step + 1024);
  CHECK(code_of([&] {
          (void)where.memory().image_over(arena, {image_kind::image1d_buffer, texel_type::rgba_fp32, 1024, 1, 1});
        }) == code(errc::invalid_argument));
  const image_shape flat{image_kind::image2d, texel_type::rgba_fp32, 8, 8, 1};
  for (const image_shape& shape : {linear, flat}) {
    const std::size_t pitch = shape.kind == image_kind::image2d ? 128 : 0;
    if (where.memory().shares_buffer(shape, pitch, true)) {
      CHECK(where.memory().image_over(part, shape, pitch).bytes() == 1024);
    } else {
      CHECK(code_of([&] { (void)where.memory().image_over(part, shape, pitch); }) == code(errc::unsupported));
    }
  }
}

TEST_CASE("an image past the limits is an error with the limits") {
  context where = testing::first_context();
  const image_limits& limits = where.info().images;
  if (!limits.supported) return;
  std::string text;
  CHECK(code_of(
            [&] {
              (void)where.memory().allocate_image(
                  {image_kind::image2d, texel_type::rgba_fp16, limits.max_width_2d + 1, 1, 1}, "wide");
            },
            &text) == code(errc::out_of_device_memory));
  CHECK(text.find("wide") != std::string::npos);
  CHECK(text.find(std::to_string(limits.max_width_2d)) != std::string::npos);
  CHECK(code_of([&] {
          (void)where.memory().allocate_image({image_kind::image2d, texel_type::rgba_fp16, 0, 1, 1});
        }) == code(errc::invalid_argument));
}

TEST_CASE("events are made for a sink and for nobody else") {
  context where = testing::first_context();
  command_queue queue = where.make_queue({.profiling = true});
  const device_buffer buffer = where.memory().allocate(64);
  const std::vector<float> values = counting(16);
  recording_sink sink;
  queue.upload(buffer, bytes_of(values));
  queue.finish();
  CHECK(queue.counts().events == 0);
  queue.upload(buffer, bytes_of(values), 0, false, &sink);
  queue.fill(buffer, bytes_of(values).first(4), 0, 64, &sink);
  queue.finish();
  CHECK(queue.counts().events == 2);
  REQUIRE(sink.kinds == std::vector<command_kind>{command_kind::upload, command_kind::fill});
  CHECK(sink.bytes == std::vector<std::uint64_t>{64, 64});
  cl_ulong start = 0;
  cl_ulong end = 0;
  REQUIRE(clGetEventProfilingInfo(sink.events[1](), CL_PROFILING_COMMAND_START, sizeof(start), &start, nullptr) ==
          CL_SUCCESS);
  REQUIRE(clGetEventProfilingInfo(sink.events[1](), CL_PROFILING_COMMAND_END, sizeof(end), &end, nullptr) ==
          CL_SUCCESS);
  CHECK(start <= end);
}

TEST_CASE("finish waits, sleeping or spinning") {
  context where = testing::first_context();
  command_queue queue = where.make_queue({.profiling = false, .flush_interval = 2});
  const device_buffer buffer = where.memory().allocate(1 << 20);
  const std::vector<float> one{1.0f};
  for (const wait_mode mode : {wait_mode::blocking, wait_mode::spinning}) {
    const std::uint64_t events = queue.counts().events;
    for (int i = 0; i < 5; ++i) queue.fill(buffer, bytes_of(one), 0, 1 << 20);
    queue.finish(mode);
    CHECK(queue.counts().events - events == (mode == wait_mode::spinning ? 1u : 0u));
  }
  CHECK(queue.counts().waits == 2);
}

TEST_CASE("a session makes its profiling queue when it is asked for") {
  context where = testing::first_context();
  session_queues queues(where);
  const device_buffer buffer = where.memory().allocate(4);
  const std::vector<float> one{1.0f};
  const std::vector<float> two{2.0f};
  queues.use(false).fill(buffer, bytes_of(one), 0, 4);
  CHECK(!queues.has_profiling_queue());
  CHECK(!queues.use(false).profiling());
  queues.use(true).fill(buffer, bytes_of(two), 0, 4);
  CHECK(queues.has_profiling_queue());
  CHECK(queues.use(true).profiling());
  std::vector<float> back(1);
  queues.use(false).download(buffer, writable_bytes_of(back));
  CHECK(back[0] == 2.0f);
}

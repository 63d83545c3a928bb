// Inputs and outputs that the caller exchanges as texels: its images and buffers of vectors, used without conversion.
#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dnnopt/backend/measure/opened_device.hpp>
#include <dnnopt/backend/run/executor.hpp>
#include <dnnopt/backend/run/texel_bytes.hpp>
#include <dnnopt/dnnopt.hpp>

#include "../support/small_network.hpp"
#include "runtime_fixture.hpp"

using namespace dnnopt;
using dnnopt::opencl::testing::code;
using dnnopt::opencl::testing::code_of;
using dnnopt::testing::network;
using dnnopt::testing::ramp;

namespace {

/// One device for all sessions, lowered for as a GPU where that is asked for.
std::shared_ptr<opened_device> device(device_type type = device_type::gpu) {
  static std::map<device_type, std::shared_ptr<opened_device>> made;
  std::shared_ptr<opened_device>& one = made[type];
  if (!one) {
    opencl::device selected = opencl::select_device("opencl");
    selected.info.type = type;
    opencl::program_cache_options programs;
    programs.on_disk = false;
    one = std::make_shared<opened_device>(std::move(selected), programs);
  }
  return one;
}

using wishes = std::map<std::string, texel_layout>;

session compiled(const model& m, wishes texels, const std::shared_ptr<opened_device>& where,
                 compile_options options = {}) {
  options.opened = where;
  options.texels = std::move(texels);
  return compile(m, options);
}

std::string output_of(const session& s, std::size_t i = 0) {
  return s.optimized().value_at(s.optimized().outputs()[i]).name;
}

double largest_difference(const tensor& a, const tensor& b) {
  REQUIRE(a.dims() == b.dims());
  double most = 0;
  for (std::size_t i = 0; i < a.data<float>().size(); ++i)
    most = std::max(most, std::fabs(static_cast<double>(a.data<float>()[i]) - static_cast<double>(b.data<float>()[i])));
  return most;
}

/// The same numbers, less of them.
tensor quieter(const tensor& t) {
  tensor made(dtype::float32, t.dims());
  for (std::size_t i = 0; i < t.data<float>().size(); ++i) made.mutable_data<float>()[i] = t.data<float>()[i] / -4;
  return made;
}

/// Two convolutions, the first with padding; 3 channels come, `outputs` leave, or what `last` makes of them.
model convolutions(std::int64_t outputs = 10, const char* last = nullptr) {
  network n;
  attribute_map padding;
  padding.set("pads", std::vector<std::int64_t>{1, 1, 1, 1});
  const value_id x = n.input("x", shape{2, 3, 9, 7});
  const value_id stem = n.node("Relu", {n.node("Conv", {x, n.weights({12, 3, 3, 3}, 0.3F)}, padding)});
  const value_id made = n.node("Conv", {stem, n.weights({outputs, 12, 1, 1}, 0.3F)});
  return n.finish(last == nullptr ? made : n.node(last, {made}));
}

/// Memory of the caller that holds texels: a buffer or an image.
struct callers_memory {
  opencl::device_buffer buffer;
  opencl::device_image image;

  [[nodiscard]] cl_mem handle() const { return image.empty() ? buffer.handle() : image.handle(); }
  [[nodiscard]] std::size_t bytes() const { return image.empty() ? buffer.bytes() : image.bytes(); }
};

/// As the layout wants it for float32 dims; planes are layers where it states no rows.
callers_memory memory_for(opened_device& where, const dim_list& dims, texel_layout layout) {
  const shape texels = texel_dims(to_shape(dims), layout.packed);
  if (layout.layer_rows == 0) layout.layer_rows = texels[texels.size() - 2].constant();
  const codegen::texel_storage storage{layout.object, image_of(texels), layout.layer_rows, dtype::float32};
  callers_memory made;
  if (layout.object == memory_object::buffer)
    made.buffer = where.context.memory().allocate(static_cast<std::size_t>(element_count(texels).constant()) * 16);
  else
    made.image = where.context.memory().allocate_image(image_shape_of(storage, symbol_values()));
  return made;
}

/// Writes a tensor as texels; what lies beyond the packed dim becomes `beyond`.
void write(opened_device& where, const callers_memory& memory, const tensor& content, std::size_t packed,
           float beyond) {
  std::vector<std::byte> texels = texels_of_rows(content, packed, memory.bytes());
  tensor ones(dtype::float32, content.dims());
  for (float& one : ones.mutable_data<float>()) one = 1.0F;
  const std::vector<std::byte> inside = texels_of_rows(ones, packed, memory.bytes());
  for (std::size_t at = 0; at < texels.size(); at += sizeof(float))
    if (inside[at] == std::byte{0} && inside[at + 3] == std::byte{0}) std::memcpy(&texels[at], &beyond, sizeof beyond);
  opencl::command_queue queue = where.context.make_queue();
  if (memory.image.empty())
    queue.upload(memory.buffer, texels, 0, true);
  else
    queue.upload_image(memory.image, texels, true);
}

tensor read(opened_device& where, const callers_memory& memory, const dim_list& dims, std::size_t packed) {
  std::vector<std::byte> texels(memory.bytes());
  opencl::command_queue queue = where.context.make_queue();
  if (memory.image.empty())
    queue.download(memory.buffer, texels);
  else
    queue.download_image(memory.image, texels);
  tensor rows(dtype::float32, dims);
  rows_of_texels(texels, packed, rows);
  return rows;
}

constexpr memory_object objects[] = {memory_object::buffer, memory_object::image2d, memory_object::image2d_array,
                                     memory_object::image1d_buffer};

}  // namespace

TEST_CASE("texels of rows and back, whichever dim is packed") {
  const tensor rows = ramp({3, 5, 2, 6});
  for (std::size_t packed = 0; packed < 4; ++packed) {
    const auto texels = static_cast<std::size_t>(element_count(texel_dims(to_shape(rows.dims()), packed)).constant());
    const std::vector<std::byte> bytes = texels_of_rows(rows, packed, texels * 16 + 32);
    tensor again(dtype::float32, rows.dims());
    rows_of_texels(bytes, packed, again);
    CHECK(largest_difference(again, rows) == 0);
    float sum = 0;
    float want = 0;
    for (std::size_t i = 0; i < bytes.size(); i += 4) {
      float element = 0;
      std::memcpy(&element, &bytes[i], 4);
      sum += std::fabs(element);
    }
    for (const float element : rows.data<float>()) want += std::fabs(element);
    CHECK(sum == Approx(want));
  }
}

TEST_CASE("the caller's texels are read and written where they lie") {
  const model m = convolutions();
  const tensor x = ramp({2, 3, 9, 7});
  for (const device_type type : {device_type::gpu, device_type::cpu}) {
    const std::shared_ptr<opened_device> where = device(type);
    const tensor want = compiled(m, {}, where).run({{"x", x}})[0];
    const std::string y = output_of(compiled(m, {}, where));
    for (const memory_object object : objects) {
      const texel_layout layout{1, object, 0, 0};
      INFO(name_of(object) << (type == device_type::gpu ? ", frames for GPUs" : ", frames for CPUs"));
      session s = compiled(m, {{"x", layout}, {y, layout}}, where);
      const storage_figures& storage = s.report().storage;
      CHECK(storage.exchanged_values == 2);
      CHECK(storage.conversions == storage.notes.size());
      if (type == device_type::gpu) CHECK(storage.conversions == 0);
      // Tensors given and returned are rows, whatever lies on the device.
      for (int again = 0; again < 2; ++again) CHECK(largest_difference(s.run({{"x", x}})[0], want) <= 1e-5);

      const callers_memory in = memory_for(*where, x.dims(), layout);
      const callers_memory out = memory_for(*where, want.dims(), layout);
      write(*where, in, x, 1, std::numeric_limits<float>::quiet_NaN());
      for (const auto& [name, memory] : {std::pair(std::string("x"), &in), std::pair(y, &out)}) {
        const bound_value row = s.bind(name, memory->handle());
        CHECK(row.use == bound_use::in_place);
        CHECK(row.bytes == memory->bytes());
      }
      CHECK(s.run({}).size() == 0);
      CHECK(s.executor()->figures().uploads == 0);
      CHECK(s.executor()->figures().downloads == 0);
      CHECK(largest_difference(read(*where, out, want.dims(), 1), want) <= 1e-5);
      // Other contents, and then memory of the session's own again.
      write(*where, in, quieter(x), 1, 1e30F);
      (void)s.run({});
      const tensor other = compiled(m, {}, where).run({{"x", quieter(x)}})[0];
      CHECK(largest_difference(read(*where, out, want.dims(), 1), other) <= 1e-5);
      CHECK(s.unbind("x"));
      CHECK(s.unbind(y));
      CHECK(largest_difference(s.run({{"x", x}})[0], want) <= 1e-5);
    }
  }
}

TEST_CASE("outputs as texels that other kernels read") {
  network n;
  attribute_map padding;
  padding.set("pads", std::vector<std::int64_t>{1, 1, 1, 1});
  const value_id x = n.input("x", shape{1, 5, 9, 7});
  const value_id middle = n.node("Relu", {n.node("Conv", {x, n.weights({6, 5, 3, 3}, 0.3F)}, padding)});
  const value_id soft = n.node("Softmax", {middle});
  const value_id last = n.node("Conv", {middle, n.weights({9, 6, 3, 3}, 0.3F)}, padding);
  n.g.add_output(middle);
  n.g.add_output(soft);
  const model m = n.finish(last);
  const tensor given = ramp({1, 5, 9, 7});
  for (const device_type type : {device_type::gpu, device_type::cpu}) {
    const std::shared_ptr<opened_device> where = device(type);
    session rows = compiled(m, {}, where);
    const named_tensors want = rows.run({{"x", given}});
    for (const memory_object object : objects) {
      INFO(name_of(object) << (type == device_type::gpu ? ", frames for GPUs" : ", frames for CPUs"));
      wishes all;
      for (std::size_t o = 0; o < 3; ++o) all[output_of(rows, o)] = {1, object, 0, 0};
      session s = compiled(m, all, where);
      CHECK(s.report().storage.conversions == s.report().storage.notes.size());
      CHECK(s.host_ops() == rows.host_ops());
      const named_tensors got = s.run({{"x", given}});
      for (std::size_t o = 0; o < 3; ++o) CHECK(largest_difference(got[o], want[o]) <= 1e-5);
    }
  }
}

TEST_CASE("a picture of a camera is an input as it is") {
  network n;
  const value_id x = n.input("x", shape{1, 3, 12, 20});
  attribute_map padding;
  padding.set("pads", std::vector<std::int64_t>{1, 1, 1, 1});
  const model m = n.finish(n.node("Conv", {x, n.weights({8, 3, 3, 3}, 0.3F)}, padding));
  for (const device_type type : {device_type::gpu, device_type::cpu}) {
    const std::shared_ptr<opened_device> where = device(type);
    for (const bool swapped : {false, true}) {
      const cl_image_format format{static_cast<cl_channel_order>(swapped ? CL_BGRA : CL_RGBA), CL_UNORM_INT8};
      cl_image_desc description{};
      description.image_type = CL_MEM_OBJECT_IMAGE2D;
      description.image_width = 20;
      description.image_height = 12;
      cl_int status = CL_SUCCESS;
      const cl::Memory picture(
          ::clCreateImage(where->context.handle(), CL_MEM_READ_ONLY, &format, &description, nullptr, &status), false);
      if (status != CL_SUCCESS) {
        WARN("left out: the device has no images of such integers");
        continue;
      }
      std::vector<unsigned char> pixels(12 * 20 * 4);
      tensor content(dtype::float32, {1, 3, 12, 20});
      for (std::size_t i = 0; i < 240; ++i) {
        for (std::size_t c = 0; c < 3; ++c) {
          const auto level = static_cast<unsigned char>((i * 37 + c * 91) % 256);
          pixels[i * 4 + (swapped ? 2 - c : c)] = level;
          content.mutable_data<float>()[c * 240 + i] = static_cast<float>(level) / 255.0F;
        }
        pixels[i * 4 + 3] = 255;  // opaque, which must not count
      }
      const std::size_t origin[3] = {0, 0, 0};
      const std::size_t region[3] = {20, 12, 1};
      opencl::command_queue queue = where->context.make_queue();
      REQUIRE(::clEnqueueWriteImage(queue.handle(), picture(), CL_TRUE, origin, region, 0, 0, pixels.data(), 0, nullptr,
                                    nullptr) == CL_SUCCESS);
      session s = compiled(m, {{"x", {1, memory_object::image2d, 0, 0}}}, where);
      CHECK(s.bind("x", picture).use == bound_use::in_place);
      CHECK(largest_difference(s.run({})[0], compiled(m, {}, where).run({{"x", content}})[0]) <= 1e-5);
    }
  }
}

TEST_CASE("what kernels cannot exchange as texels is converted, and told") {
  const std::shared_ptr<opened_device> where = device();
  const tensor x = ramp({2, 3, 9, 7});
  // Softmax stores single elements.
  const model soft = convolutions(10, "Softmax");
  const std::string y = output_of(compiled(soft, {}, where));
  const texel_layout layout{1, memory_object::image2d, 0, 0};
  session s = compiled(soft, {{y, layout}}, where);
  REQUIRE(s.report().storage.notes.size() == 1);
  CHECK(s.report().storage.conversions == 1);
  CHECK(s.report().storage.notes[0].find("converts '" + y + "' from rows to texels") != std::string::npos);
  const tensor want = compiled(soft, {}, where).run({{"x", x}})[0];
  CHECK(largest_difference(s.run({{"x", x}})[0], want) <= 1e-6);
  const callers_memory out = memory_for(*where, want.dims(), layout);
  CHECK(s.bind(y, out.handle()).use == bound_use::in_place);
  (void)s.run({{"x", x}});
  CHECK(largest_difference(read(*where, out, want.dims(), 1), want) <= 1e-6);

  // An input under another shape, which would be no kernel in rows.
  network flattened;
  attribute_map flat;
  flat.set("axis", std::int64_t{1});
  const value_id wide = flattened.node("Flatten", {flattened.input("x", shape{2, 3, 4})}, flat);
  const model product = flattened.finish(flattened.node("MatMul", {wide, flattened.weights({12, 5})}));
  compile_options alone;
  alone.passes = "none";
  session reshaped = compiled(product, {{"x", layout}}, where, alone);
  CHECK(reshaped.report().storage.conversions == 1);
  for (const std::string& note : reshaped.report().storage.notes)
    CHECK(note.find("under another shape") != std::string::npos);
  const tensor shorter = ramp({2, 3, 4});
  const tensor sums = compiled(product, {}, where).run({{"x", shorter}})[0];
  CHECK(largest_difference(reshaped.run({{"x", shorter}})[0], sums) <= 1e-6);

  // A view of an input.
  network n;
  const value_id in = n.input("x", shape{2, 3, 4});
  attribute_map turned;
  turned.set("perm", std::vector<std::int64_t>{0, 2, 1});
  const model views = n.finish(n.node("Transpose", {in}, turned));
  const std::string view = output_of(compiled(views, {}, where));
  for (const memory_object object : objects) {
    session both = compiled(views, {{"x", {0, object, 0, 0}}, {view, {2, object, 0, 0}}}, where);
    const tensor given = ramp({2, 3, 4});
    CHECK(largest_difference(both.run({{"x", given}})[0], compiled(views, {}, where).run({{"x", given}})[0]) == 0);
  }
}

TEST_CASE("texels of the caller with storage in fp16 and texels between kernels") {
  const model m = convolutions();
  const tensor x = ramp({2, 3, 9, 7});
  const std::shared_ptr<opened_device> where = device();
  const tensor want = compiled(m, {}, where).run({{"x", x}})[0];
  const std::string y = output_of(compiled(m, {}, where));
  for (const precision stored : {precision::fp32, precision::fp16})
    for (const memory_objects inside : {memory_objects::packed, memory_objects::images}) {
      compile_options options;
      options.precision = stored;
      options.memory_objects = inside;
      const texel_layout layout{1, memory_object::image2d, 0, 0};
      session s = compiled(m, {{"x", layout}, {y, layout}}, where, options);
      CHECK(s.report().storage.packed_values == 1);
      CHECK(s.report().storage.conversions == 0);
      CHECK(largest_difference(s.run({{"x", x}})[0], want) <= (stored == precision::fp16 ? 2e-2 : 1e-5));
    }
}

TEST_CASE("texels that cannot be, and memory that is not what was stated") {
  const model m = convolutions();
  const std::shared_ptr<opened_device> where = device();
  const auto wrong = [&](wishes texels, errc expected) {
    CHECK(code_of([&] { (void)compiled(m, texels, where); }) == code(expected));
  };
  wrong({{"nobody", {}}}, errc::missing_input);
  wrong({{"x", {4, memory_object::buffer, 0, 0}}}, errc::invalid_argument);
  network open;
  const value_id any = open.input("x", shape{open.g.expressions().symbol("n"), 8});
  const model symbolic = open.finish(open.node("Relu", {any}));
  CHECK(code_of([&] {
          (void)compiled(symbolic, {{"x", {1, memory_object::buffer, 0, 0}}}, where);
        }) == code(errc::unsupported));

  const texel_layout planar{1, memory_object::image2d, 0, 0};
  session s = compiled(m, {{"x", planar}}, where);
  const auto refused = [&](cl_mem memory) {
    CHECK(code_of([&] { (void)s.bind("x", memory); }) == code(errc::invalid_argument));
  };
  refused(where->context.memory().allocate(4096).handle());
  refused(memory_for(*where, {2, 3, 9, 8}, planar).handle());
  refused(memory_for(*where, {2, 3, 9, 7}, {1, memory_object::image2d_array, 0, 0}).handle());
  refused(where->context.memory()
              .allocate_image({opencl::image_kind::image2d, opencl::texel_type::rgba_fp32, 7, 18, 1}, "x",
                              opencl::memory_access::write_only)
              .handle());
  // An image for a value in rows.
  session rows = compiled(m, {}, where);
  CHECK(code_of([&] {
          (void)rows.bind("x", memory_for(*where, {2, 3, 9, 7}, planar).handle());
        }) == code(errc::invalid_argument));
  // Too few texels in a buffer: rows would fit.
  session packed = compiled(m, {{"x", {1, memory_object::buffer, 0, 0}}}, where);
  CHECK(code_of([&] { (void)packed.bind("x", where->context.memory().allocate(2 * 3 * 9 * 7 * 4).handle()); }) ==
        code(errc::invalid_argument));
  // Half texels are read as floats are.
  const opencl::device_image halves =
      where->context.memory().allocate_image({opencl::image_kind::image2d, opencl::texel_type::rgba_fp16, 7, 18, 1});
  CHECK(s.bind("x", halves.handle()).use == bound_use::in_place);
}

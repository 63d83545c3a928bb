// Whole programs over texels: layouts that were selected, images that were shared, results as those of rows.
#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <dnnopt/backend/measure/opened_device.hpp>
#include <dnnopt/backend/run/executor.hpp>
#include <dnnopt/backend/storage/pack.hpp>
#include <dnnopt/dnnopt.hpp>

#include "../support/small_network.hpp"

using namespace dnnopt;
using dnnopt::testing::network;
using dnnopt::testing::ramp;

namespace {

attribute_map same_padding(std::int64_t group = 1) {
  attribute_map attributes;
  attributes.set("pads", std::vector<std::int64_t>{1, 1, 1, 1});
  attributes.set("group", group);
  return attributes;
}

/// Convolutions, one of them depthwise, a residual, pooled, then a product; `symbolic`: images and their sides are
/// symbols.
model small_model(bool symbolic = false) {
  network n;
  expr_context& e = n.g.expressions();
  const value_id x =
      n.input("x", symbolic ? shape{e.symbol("images"), 3, e.symbol("height"), e.symbol("width")} : shape{2, 3, 9, 7});
  const value_id stem = n.node("Relu", {n.node("Conv", {x, n.weights({10, 3, 3, 3}, 0.3F)}, same_padding())});
  const value_id wide = n.node("Relu", {n.node("Conv", {stem, n.weights({24, 10, 1, 1}, 0.3F)})});
  const value_id deep = n.node("Conv", {wide, n.weights({24, 1, 3, 3}, 0.3F)}, same_padding(24));
  const value_id back = n.node("Conv", {n.node("Relu", {deep}), n.weights({10, 24, 3, 3}, 0.2F)}, same_padding());
  const value_id sum = n.node("Add", {back, stem});
  const value_id last = n.node("Conv", {n.node("Relu", {sum}), n.weights({8, 10, 3, 3}, 0.2F)}, same_padding());
  attribute_map flat;
  flat.set("axis", std::int64_t{1});
  return n.finish(
      n.node("MatMul", {n.node("Flatten", {n.node("GlobalAveragePool", {last})}, flat), n.weights({8, 5}, 0.5F)}));
}

double largest_difference(const tensor& a, const tensor& b) {
  double most = 0;
  for (std::size_t i = 0; i < a.data<float>().size(); ++i)
    most = std::max(most, std::fabs(static_cast<double>(a.data<float>()[i]) - static_cast<double>(b.data<float>()[i])));
  return most;
}

/// The first device, lowered for as a GPU.
std::shared_ptr<opened_device> as_gpu(const image_limits* limits = nullptr) {
  opencl::device device = opencl::select_device("opencl");
  device.info.type = device_type::gpu;
  if (limits != nullptr) device.info.images = *limits;
  opencl::program_cache_options programs;
  programs.on_disk = false;
  return std::make_shared<opened_device>(std::move(device), programs);
}

session compiled(const model& m, memory_objects objects, precision stored = precision::fp32,
                 std::shared_ptr<opened_device> device = as_gpu()) {
  compile_options options;
  options.opened = std::move(device);
  options.memory_objects = objects;
  options.precision = stored;
  return compile(m, options);
}

}  // namespace

TEST_CASE("tensors between kernels hold texels where kernels can, and results stay") {
  const model m = small_model();
  const tensor x = ramp({2, 3, 9, 7});
  for (const precision stored : {precision::fp32, precision::fp16}) {
    session rows = compiled(m, memory_objects::buffers, stored);
    CHECK(rows.report().storage.packed_values == 0);
    const tensor want = rows.run({{"x", x}})[0];
    const double bound = stored == precision::fp16 ? 2e-2 : 1e-5;
    session packed = compiled(m, memory_objects::packed, stored);
    CHECK(packed.report().storage.packed_values >= 4);
    CHECK(packed.report().storage.image_values == 0);
    CHECK(packed.executor()->predicted_kernels() == rows.executor()->predicted_kernels());
    CHECK(largest_difference(packed.run({{"x", x}})[0], want) <= bound);
    session images = compiled(m, memory_objects::images, stored);
    CHECK(images.report().storage.image_values == packed.report().storage.packed_values);
    CHECK(images.executor()->image_bytes() > 0);
    for (int again = 0; again < 2; ++again) CHECK(largest_difference(images.run({{"x", x}})[0], want) <= bound);
    CHECK(images.kernels() == images.executor()->predicted_kernels());
  }
}

TEST_CASE("by default those tensors alone hold texels that a kernel reads sooner so") {
  network n;
  const value_id x = n.input("x", shape{2, 3, 12, 10});
  const value_id stem = n.node("Relu", {n.node("Conv", {x, n.weights({8, 3, 3, 3}, 0.3F)}, same_padding())});
  const value_id thin = n.node("Relu", {n.node("Conv", {stem, n.weights({12, 8, 1, 1}, 0.3F)})});
  const value_id wide = n.node("Relu", {n.node("Conv", {thin, n.weights({10, 12, 3, 3}, 0.2F)}, same_padding())});
  const value_id odd = n.node("Relu", {n.node("Conv", {wide, n.weights({8, 10, 3, 3}, 0.2F)}, same_padding())});
  const value_id grouped = n.node("Conv", {odd, n.weights({8, 4, 3, 3}, 0.3F)}, same_padding(2));
  const model m = n.finish(n.node("Add", {grouped, odd}));
  const tensor input = ramp({2, 3, 12, 10});
  for (const precision stored : {precision::fp32, precision::fp16}) {
    session rows = compiled(m, memory_objects::buffers, stored);
    CHECK(rows.report().memory_objects == memory_objects::buffers);
    session chosen = compiled(m, memory_objects::automatic, stored);
    CHECK(chosen.report().memory_objects == memory_objects::packed);
    CHECK(chosen.report().storage.packed_values == 2);
    CHECK(chosen.report().storage.image_values == 0);
    CHECK(chosen.report().storage.notes.empty());
    const program& p = chosen.executor()->executed();
    std::size_t held = 0;
    for (const value_id v : {thin, odd}) held += p.g->facts(v).texels ? 1 : 0;
    CHECK(held == 2);
    CHECK(chosen.executor()->predicted_kernels() == rows.executor()->predicted_kernels());
    CHECK(largest_difference(chosen.run({{"x", input}})[0], rows.run({{"x", input}})[0]) <=
          (stored == precision::fp16 ? 2e-2 : 1e-5));
  }
  // Nothing gains: windows over the caller's own rows, or a device that keeps to vectors.
  network lone;
  const value_id only = lone.input("x", shape{1, 8, 6, 6});
  const model direct = lone.finish(lone.node("Conv", {only, lone.weights({8, 8, 3, 3})}, same_padding()));
  CHECK(compiled(direct, memory_objects::automatic).report().memory_objects == memory_objects::buffers);
  opencl::device device = opencl::select_device("opencl");
  device.info.type = device_type::cpu;
  const session vectors =
      compiled(m, memory_objects::automatic, precision::fp32,
               std::make_shared<opened_device>(std::move(device), opencl::program_cache_options{.on_disk = false}));
  CHECK(vectors.report().memory_objects == memory_objects::buffers);
  CHECK(vectors.report().storage.packed_values == 0);
}

TEST_CASE("tensors hold texels in buffers where symbols are their sides, and one session serves all sizes") {
  const model m = small_model(true);
  // Extents of images must be numbers.
  CHECK(compiled(m, memory_objects::images).report().storage.packed_values == 0);
  session host = compile(m, {.device = "reference"});
  for (const memory_objects objects : {memory_objects::automatic, memory_objects::packed}) {
    CAPTURE(name_of(objects));
    session device = compiled(m, objects);
    const storage_figures& stored = device.report().storage;
    CHECK(stored.packed_values > 0);
    CHECK(stored.packed_values == compiled(small_model(), objects).report().storage.packed_values);
    CHECK(stored.image_values == 0);
    for (const dim_list& dims :
         {dim_list{2, 3, 9, 7}, dim_list{1, 3, 1, 1}, dim_list{0, 3, 4, 4}, dim_list{3, 3, 5, 8}}) {
      CAPTURE(to_string(dims));
      named_tensors given;
      given.add("x", ramp(dims));
      const named_tensors right = host.run(given);
      const named_tensors got = device.run(given);
      REQUIRE(got[0].dims() == right[0].dims());
      CHECK(largest_difference(got[0], right[0]) < 1e-4);
    }
  }
}

TEST_CASE("images of tensors never alive together are one") {
  const session s = compiled(small_model(), memory_objects::images);
  const image_memory plan = plan_image_memory(s.executor()->executed());
  CHECK(plan.bytes == s.executor()->image_bytes());
  CHECK(plan.bytes < plan.naive_bytes);
  CHECK(plan.objects.size() < plan.object_of.size());
}

TEST_CASE("images end where a reader leaves padding to their border, and their planes are layers for it") {
  network n;
  attribute_map halving = same_padding();
  halving.set("strides", std::vector<std::int64_t>{1, 2});
  const value_id x = n.input("x", shape{1, 3, 9, 9});
  const value_id wide = n.node("Relu", {n.node("Conv", {x, n.weights({20, 3, 3, 3}, 0.3F)}, same_padding())});
  const value_id thin = n.node("Relu", {n.node("Conv", {wide, n.weights({20, 20, 1, 1}, 0.3F)})});
  const value_id half = n.node("Relu", {n.node("Conv", {thin, n.weights({8, 20, 3, 3}, 0.2F)}, halving)});
  const value_id next = n.node("Relu", {n.node("Conv", {half, n.weights({9, 8, 3, 3}, 0.3F)}, same_padding())});
  const value_id more = n.node("Relu", {n.node("Conv", {next, n.weights({8, 9, 3, 3}, 0.3F)}, same_padding())});
  const model m = n.finish(n.node("Conv", {more, n.weights({7, 8, 3, 3}, 0.3F)}, same_padding()));
  const tensor input = ramp({1, 3, 9, 9});
  for (const precision stored : {precision::fp32, precision::fp16}) {
    session rows = compiled(m, memory_objects::buffers, stored);
    session images = compiled(m, memory_objects::images, stored);
    const tensor want = rows.run({{"x", input}})[0];
    CHECK(largest_difference(images.run({{"x", input}})[0], want) <= (stored == precision::fp16 ? 2e-2 : 1e-5));
    const program& p = images.executor()->executed();
    const image_memory plan = plan_image_memory(p);
    CHECK(plan.objects.size() < plan.object_of.size());
    std::size_t layers = 0;
    for (const auto& [v, object] : plan.object_of) {
      const value_facts& facts = p.g->facts(v);
      const std::int64_t width = facts.dims->back().constant();
      INFO(p.g->value_at(v).name << " is " << width << " wide, its object " << plan.objects[object].width);
      // What a pointwise convolution reads has no padding; it may lie in an object of another tensor.
      const bool padded = p.g->facts(v).texels->object == memory_object::image2d_array;
      if (padded) CHECK(plan.objects[object].width == static_cast<std::size_t>(width));
      if (padded) CHECK(facts.texels->layer_rows == (*facts.dims)[2].constant());
      layers += padded ? 1 : 0;
    }
    CHECK(layers == 4);
    CHECK(plan.object_of.size() == 5);
  }
}

TEST_CASE("a device without images gets texels in buffers, and is told why") {
  image_limits none;
  const session s = compiled(small_model(), memory_objects::images, precision::fp32, as_gpu(&none));
  CHECK(s.report().storage.image_values == 0);
  CHECK(s.report().storage.packed_values >= 4);
  const auto& notes = s.report().storage.notes;
  CHECK(std::any_of(notes.begin(), notes.end(),
                    [](const std::string& n) { return n.find("no images of RGBA fp32") != std::string::npos; }));
}

TEST_CASE("layout selection packs along reduction dims, and followers as those they meet") {
  network n;
  const value_id x = n.input("x", shape{1, 8, 6, 6});
  const value_id relu = n.node("Relu", {x});
  const value_id first = n.node("Conv", {relu, n.weights({8, 8, 1, 1})});
  const value_id sum = n.node("Add", {first, relu});
  attribute_map rows;
  rows.set("axis", std::int64_t{2});
  const value_id softmax = n.node("Softmax", {sum}, rows);
  const value_id second = n.node("Conv", {sum, n.weights({8, 8, 1, 1})});
  attribute_map last_dim;
  last_dim.set("perm", std::vector<std::int64_t>{0, 2, 3, 1});
  const value_id moved = n.node("Transpose", {n.node("Add", {softmax, second})}, last_dim);
  const value_id product = n.node("MatMul", {moved, n.weights({8, 5})});
  compile_options options;
  options.passes = "rdp";
  compile_report report;
  const graph g = optimize(n.finish(product), options, report);
  std::vector<layout_block> blocks;
  std::vector<value_id> values;
  for (const node_id id : g.nodes()) {
    const value_id out = g.node_at(id).outputs[0];
    // The transposition is computed by the product that reads it.
    if (g.node_at(id).op->kind == computation_kind::view) continue;
    std::vector<node_id> members{id};
    const node_id before = g.value_at(g.node_at(id).inputs[0]).producer;
    if (before != no_node && g.node_at(before).op->kind == computation_kind::view)
      members.insert(members.begin(), before);
    blocks.push_back({members, {out}, id});
    values.push_back(out);
  }
  const std::vector<layout_choice> choices = select_layouts(g, blocks, values);
  const auto chosen = [&](const std::string& prefix) {
    for (const layout_choice& choice : choices)
      if (g.value_at(choice.held).name.starts_with(prefix)) return choice;
    FAIL("no choice for " << prefix);
    return layout_choice{};
  };
  CHECK(chosen("Relu").packed == 1);
  CHECK(chosen("Relu").asked);
  // Nobody reduces what the first convolution writes: it follows what it is added to.
  CHECK(chosen("Conv1").packed == 1);
  CHECK_FALSE(chosen("Conv1").asked);
  // The convolution outweighs the softmax, whose dim is neither packed nor last.
  CHECK(chosen("Add2").packed == 1);
  CHECK(chosen("Add2").unserved == std::vector<std::size_t>{2});
  CHECK(chosen("Add2").copy_bytes == 8 * 2 * 6 * 16);
  // Through the transposition the product sums along channels.
  CHECK(chosen("Add5").packed == 1);
  CHECK(chosen("Add5").asked);
}

TEST_CASE("an image's filter resizes between convolutions where the device's is exact, and the report says why not") {
  network n;
  const value_id x = n.input("x", shape{1, 3, 7, 5});
  const value_id first = n.node("Relu", {n.node("Conv", {x, n.weights({10, 3, 3, 3}, 0.3F)}, same_padding())});
  attribute_map linear;
  linear.set("mode", std::string("linear"));
  tensor scales(dtype::float32, {4});
  const std::vector<float> factors{1, 1, 2, 2};
  std::copy(factors.begin(), factors.end(), scales.mutable_data<float>().begin());
  const value_id wide = n.node("Resize", {first, no_value, n.g.add_constant("scales", scales)}, linear);
  const model m = n.finish(n.node("Conv", {wide, n.weights({8, 10, 3, 3}, 0.2F)}, same_padding()));
  const tensor input = ramp({1, 3, 7, 5});
  for (const precision stored : {precision::fp32, precision::fp16})
    for (const double bits : {0.0, 9.0, 23.0}) {
      auto device = as_gpu();
      device_facts facts;
      (stored == precision::fp16 ? facts.image_filter_bits_fp16 : facts.image_filter_bits_fp32) = bits;
      device->set_facts(facts);
      session rows = compiled(m, memory_objects::buffers, stored);
      session images = compiled(m, memory_objects::images, stored, device);
      bool filtered = false;
      for (const placed_node& step : images.executor()->executed().steps)
        for (const codegen::kernel_plan& plan : step.lowered.kernels)
          filtered = filtered || std::string(plan.source).find("dnnopt_between_texels, (") != std::string::npos;
      CHECK(filtered == (bits > 20));
      const auto& notes = images.report().storage.notes;
      const std::string why = bits == 0 ? "filter is is not known" : "exact to 9.0 bits, 20 are needed";
      CHECK(std::any_of(notes.begin(), notes.end(),
                        [&](const std::string& note) { return note.find(why) != std::string::npos; }) == (bits < 20));
      CHECK(largest_difference(images.run({{"x", input}})[0], rows.run({{"x", input}})[0]) <=
            (stored == precision::fp16 ? 2e-2 : 1e-5));
    }
  // What the device itself was measured to do decides where nobody said.
  auto device = as_gpu();
  session measured = compiled(m, memory_objects::images, precision::fp32, device);
  const bool exact = device->facts().image_filter_bits_fp32 >= 20;
  const auto& notes = measured.report().storage.notes;
  CHECK(std::none_of(notes.begin(), notes.end(), [](const std::string& note) {
          return note.find("without an image's filter") != std::string::npos;
        }) == exact);
}

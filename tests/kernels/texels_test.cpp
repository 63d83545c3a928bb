// Texels in buffers and images: packed weights, activations packed along their reduction dim, whole texels as results.
#include "kernel_fixture.hpp"

#include <catch2/catch.hpp>

using namespace dnnopt;
using namespace dnnopt::testing;

namespace {

struct texels : kernel_bench {
  /// Runs the case for GPUs and compares; returns the versions of the kernels.
  std::vector<std::string> check(const node_case& c) {
    const std::vector<tensor> want = expect(c);
    const kernel_run got = run(c, device_form::groups, want);
    INFO(c.op << " of " << to_string(c.inputs[0].dims()));
    CHECK(relative_difference(got.outputs[0], want[0]) <= tolerance_of(want[0].type()));
    return got.versions;
  }
};

tensor f32(dim_list dims, std::uint32_t seed) { return random_tensor(dtype::float32, std::move(dims), seed); }

node_case convolution(dim_list x, dim_list w, std::vector<std::int64_t> pads, std::vector<std::int64_t> strides,
                      std::int64_t group) {
  node_case c{"Conv", {f32(x, 1), f32(w, 2), f32({w[0]}, 3)}, {false, true, true}, {}, 1};
  c.attributes.set("pads", std::move(pads));
  c.attributes.set("strides", std::move(strides));
  c.attributes.set("group", group);
  return c;
}

const std::vector<node_case>& convolutions() {
  static const std::vector<node_case> cases{
      convolution({1, 8, 7, 13}, {5, 8, 1, 1}, {0, 0, 0, 0}, {1, 1}, 1),
      convolution({2, 8, 9, 6}, {13, 8, 3, 3}, {1, 1, 1, 1}, {1, 1}, 1),
      convolution({1, 5, 13, 7}, {8, 5, 3, 5}, {0, 2, 1, 3}, {2, 1}, 1),
      convolution({1, 16, 9, 9}, {8, 8, 3, 3}, {2, 2, 2, 2}, {2, 2}, 2),
      convolution({1, 3, 13}, {5, 3, 3}, {1, 0}, {1}, 1),
      convolution({1, 4, 6, 1}, {6, 4, 3, 3}, {1, 1, 1, 1}, {1, 1}, 1),
      convolution({2, 6, 9, 7}, {6, 1, 3, 3}, {1, 1, 1, 1}, {2, 1}, 6),
      convolution({1, 8, 5, 6}, {8, 1, 5, 3}, {2, 1, 2, 1}, {1, 1}, 8),
      convolution({1, 40, 7, 7}, {13, 40, 3, 3}, {1, 1, 1, 1}, {1, 1}, 1),
  };
  return cases;
}

/// A pool of 3 x 3 windows with padding of one all around.
node_case pool(const std::string& op, tensor x, std::int64_t stride) {
  node_case c{op, {std::move(x)}, {}, {}, 1};
  c.attributes.set("kernel_shape", std::vector<std::int64_t>{3, 3});
  c.attributes.set("strides", std::vector<std::int64_t>{stride, stride});
  c.attributes.set("pads", std::vector<std::int64_t>{1, 1, 1, 1});
  return c;
}

/// Where the results of `c` are tested to lie inside an image, in the kernel that reads input 0: how often.
std::size_t border_tests(const codegen::kernel_plan& plan) {
  // What the prelude holds is no test of this kernel.
  const std::string source = plan.source;
  std::size_t count = 0;
  for (std::size_t at = source.find("#define DNNOPT_PARAMETERS"); (at = source.find(" >= 0", at)) != std::string::npos;
       ++at)
    ++count;
  return count;
}

node_case matmul(dim_list a, dim_list b, bool constant, dtype type = dtype::float32) {
  return {
      "MatMul", {random_tensor(type, std::move(a), 1), random_tensor(type, std::move(b), 2)}, {false, constant}, {}, 1};
}

}  // namespace

TEST_CASE_METHOD(texels, "weights as texels equal the reference, in buffers and in images") {
  for (const memory_objects objects : {memory_objects::packed, memory_objects::images}) {
    memory = objects;
    for (const node_case& c : convolutions()) {
      const std::vector<std::string> versions = check(c);
      const bool thin = c.inputs[1].dims()[1] == 1;
      CHECK(versions[0] == (thin ? "map" : "pack"));
      CHECK(notes.empty());
    }
    for (const dtype type : {dtype::float32, dtype::float16})
      for (const auto& [a, b] : std::vector<std::pair<dim_list, dim_list>>{
               {{5, 13}, {13, 7}}, {{2, 3, 36, 20}, {20, 68}}, {{1, 13}, {13, 33}}, {{25, 700}, {700, 37}}})
        if (!left_out(b[0] > 100)) CHECK(check(matmul(a, b, true, type))[0] == "pack");
  }
}

TEST_CASE_METHOD(texels, "images beyond a device's limits become layers, rows of texels, and buffers with a reason") {
  memory = memory_objects::images;
  const node_case c = matmul({5, 37}, {37, 30}, true);
  images.max_height_2d = 10;
  images.max_array_layers = 4;
  check(c);
  CHECK(notes.empty());
  images.max_array_layers = 2;
  images.max_buffer_texels = 1 << 16;
  check(c);
  CHECK(notes.empty());
  images.max_buffer_texels = 100;
  check(c);
  REQUIRE(notes.size() == 1);
  CHECK(notes[0].find("8 x 37 texels is beyond the device's limits") != std::string::npos);
  images.rgba_fp32 = false;
  check(c);
  REQUIRE(notes.size() == 1);
  CHECK(notes[0].find("no images of RGBA fp32") != std::string::npos);
}

TEST_CASE_METHOD(texels, "activations packed along channels equal the reference, read and written") {
  for (const memory_object object :
       {memory_object::buffer, memory_object::image2d, memory_object::image2d_array, memory_object::image1d_buffer}) {
    memory = object == memory_object::buffer ? memory_objects::packed : memory_objects::images;
    const texel_layout layout{1, object, object == memory_object::image2d_array ? 3 : 0};
    const bool plain = object == memory_object::buffer || object == memory_object::image2d;
    for (const bool read : {false, true})
      for (const bool written : {false, true}) {
        if (!plain && !(read && written)) continue;
        for (std::size_t i = plain ? 0 : 1; i < convolutions().size(); i += plain ? 1 : 3) {
          node_case c = convolutions()[i];
          if (read) c.texels = {layout};
          if (written) c.result_texels = {layout};
          const std::string kernel = check(c).back();
          if (c.inputs[1].dims()[1] == 1)
            CHECK(kernel == (read ? "convolution_texels" : "map"));
          else
            CHECK((kernel == "convolution_tiles" || kernel == "matrix_partials"));
        }
      }
  }
}

TEST_CASE_METHOD(texels, "element kernels read and write whole texels beside rows") {
  for (const memory_object object : {memory_object::buffer, memory_object::image2d, memory_object::image1d_buffer})
    for (const std::size_t packed : {std::size_t{0}, std::size_t{1}, std::size_t{2}}) {
      node_case sum{"Add", {f32({6, 5, 7}, 1), f32({5, 1}, 2)}, {}, {}, 1};
      sum.texels = {texel_layout{packed, object, 0}};
      sum.result_texels = sum.texels;
      CHECK(check(sum) == std::vector<std::string>{"map"});
      sum.result_texels = {texel_layout{2 - packed, object, 0}};
      check(sum);
      node_case pool{"MaxPool", {f32({2, 5, 9, 7}, 1)}, {}, {}, 1};
      pool.attributes.set("kernel_shape", std::vector<std::int64_t>{3, 3});
      pool.attributes.set("strides", std::vector<std::int64_t>{2, 2});
      pool.attributes.set("pads", std::vector<std::int64_t>{1, 1, 1, 1});
      pool.texels = {texel_layout{packed, object, 0}};
      pool.result_texels = pool.texels;
      CHECK(check(pool) == std::vector<std::string>{"map"});
    }
}

TEST_CASE_METHOD(texels, "texels that their dim does not fill read no constant beyond it") {
  for (const memory_object object : {memory_object::buffer, memory_object::image2d})
    for (const std::int64_t extent : {1, 2, 3, 5}) {
      memory = object == memory_object::buffer ? memory_objects::packed : memory_objects::images;
      node_case sum{"Add", {f32({2, extent, 7}, 1), f32({extent, 1}, 2)}, {false, true}, {}, 1};
      sum.texels = {texel_layout{1, object, 0}};
      sum.result_texels = sum.texels;
      CHECK(check(sum) == std::vector<std::string>{"map"});
      sum.texels.clear();
      CHECK(check(sum) == std::vector<std::string>{"map"});
      node_case thin = convolution({1, 8, 5, 6}, {extent, 8, 3, 3}, {1, 1, 1, 1}, {1, 1}, 1);
      thin.result_texels = {texel_layout{1, object, 0}};
      check(thin);
      node_case narrow = convolution({1, extent, 5, 6}, {4, extent, 3, 3}, {1, 1, 1, 1}, {1, 1}, 1);
      narrow.texels = thin.result_texels;
      check(narrow);
    }
}

TEST_CASE_METHOD(texels, "rows are read from texels, and a frame that stores single elements refuses them") {
  node_case c{"Softmax", {f32({3, 6, 9}, 1)}, {}, {}, 1};
  c.attributes.set("axis", std::int64_t{2});
  c.texels = {texel_layout{2, memory_object::image2d, 0}};
  CHECK(check(c) == std::vector<std::string>{"row_groups"});
  c.result_texels = c.texels;
  CHECK(check(c) == std::vector<std::string>{"map"});
}

TEST_CASE_METHOD(texels, "matrix products of activations in texels equal the reference") {
  for (const memory_object object : {memory_object::buffer, memory_object::image2d}) {
    memory = object == memory_object::buffer ? memory_objects::packed : memory_objects::images;
    for (const std::size_t packed : {std::size_t{1}, std::size_t{2}})
      for (const bool constant : {false, true})
        for (const auto& [a, b] : std::vector<std::pair<dim_list, dim_list>>{
                 {{3, 36, 20}, {20, 68}}, {{1, 13, 7}, {7, 9}}, {{1, 9, 700}, {700, 8}}}) {
          if (left_out(b[0] > 100 && constant)) continue;
          node_case c = matmul(a, b, constant);
          c.texels = {texel_layout{packed, object, 0}};
          check(c);
          c.result_texels = {texel_layout{packed, object, 0}};
          check(c);
        }
  }
}

TEST_CASE_METHOD(texels, "windows over images leave padding to the border where it serves, and equal the reference") {
  memory = memory_objects::images;
  struct held {
    memory_object object;
    bool planes;  // layers are planes
  };
  for (const dtype type : {dtype::float32, dtype::float16})
    for (const dim_list& dims :
         std::vector<dim_list>{{1, 5, 5, 7}, {2, 3, 1, 7}, {1, 8, 5, 1}, {2, 6, 1, 1}, {1, 3, 4, 6}})
      for (const auto [object, planes] :
           {held{memory_object::buffer, false}, held{memory_object::image2d, false},
            held{memory_object::image2d_array, false}, held{memory_object::image2d_array, true},
            held{memory_object::image1d_buffer, false}}) {
        const std::int64_t channels = dims[1];
        const bool first = dims == dim_list{1, 5, 5, 7};
        const bool bordered = object == memory_object::image2d || planes;
        if (!first && (!bordered || type == dtype::float16)) continue;
        const auto random = [&](dim_list d, std::uint32_t seed) { return random_tensor(type, std::move(d), seed); };
        const texel_layout layout{1, object,
                                  object != memory_object::image2d_array ? 0
                                  : planes                               ? dims[2]
                                  : dims[2] == 2                         ? 3
                                                                         : 2};
        std::vector<node_case> cases{{"Conv", {random(dims, 1), random({6, channels, 3, 3}, 2)}, {false, true}, {}, 1},
                                     {"Conv", {random(dims, 1), random({channels, 1, 3, 3}, 2)}, {false, true}, {}, 1},
                                     pool("AveragePool", random(dims, 1), 1),
                                     pool("LpPool", random(dims, 1), 1),
                                     pool("MaxPool", random(dims, 1), 2)};
        for (std::size_t i = 0; i < 2; ++i) cases[i].attributes.set("pads", std::vector<std::int64_t>{1, 1, 1, 1});
        cases[1].attributes.set("group", channels);
        // Weights that are computed: each element by itself.
        cases.push_back(cases[1]);
        cases.back().constant.clear();
        cases[2].attributes.set("count_include_pad", std::int64_t{1});
        // Below zero, so that a maximum over padding would show.
        for (float16& v : cases[4].inputs[0].type() == dtype::float16 ? cases[4].inputs[0].mutable_data<float16>()
                                                                      : std::span<float16>())
          v = float16(-1.0F - std::fabs(static_cast<float>(v)));
        for (float& v : cases[4].inputs[0].type() == dtype::float32 ? cases[4].inputs[0].mutable_data<float>()
                                                                    : std::span<float>())
          v = -1.0F - std::fabs(v);
        for (node_case& c : cases) {
          c.texels = {layout};
          INFO(name_of(object) << (planes ? " of planes, " : ", ") << name_of(type));
          const std::string kernel = check(c).back();
          INFO(kernel);
          const codegen::kernel_plan& plan = plans.back();
          const bool image = object == memory_object::image2d || object == memory_object::image2d_array;
          const bool one_plane = dims[0] == 1 && channels <= 4 && object == memory_object::image2d;
          const bool columns = image && dims[3] > 1 && c.op != "MaxPool";
          const bool rows = (planes || one_plane) && dims[2] > 1 && c.op != "MaxPool";
          for (const codegen::pointer_argument& a : plan.pointers) {
            if (a.written || a.object != object || object == memory_object::buffer || a.held == no_value) continue;
            CHECK(a.ends_rows == columns);
            CHECK(a.ends_planes == rows);
          }
          CHECK((border_tests(plan) == 0) == (columns && rows));
        }
      }
}

TEST_CASE_METHOD(texels,
                 "an image's filter interpolates where it is exact and planes lie apart, as the reference does") {
  memory = memory_objects::images;
  struct resize {
    dim_list dims;
    std::vector<float> scales;
    std::string coordinates;
  };
  const std::vector<resize> resizes{{{1, 5, 5, 7}, {1, 1, 2, 2}, "half_pixel"},
                                    {{2, 6, 1, 1}, {1, 1, 3, 2}, "half_pixel"},
                                    {{1, 3, 4, 9}, {1, 1, 1.7F, 0.5F}, "pytorch_half_pixel"},
                                    {{2, 5, 6, 5}, {1, 1, 1, 2.5F}, "asymmetric"},
                                    {{1, 9, 3, 4}, {1, 1, 3, 1.3F}, "align_corners"}};
  for (const dtype type : {dtype::float32, dtype::float16})
    for (const resize& r : resizes)
      for (const bool planes : {false, true})
        for (const bool written : {false, true}) {
          node_case c{"Resize",
                      {random_tensor(type, r.dims, 1), tensor(), tensor(dtype::float32, {4})},
                      {false, true, true},
                      {},
                      1};
          std::copy(r.scales.begin(), r.scales.end(), c.inputs[2].mutable_data<float>().begin());
          c.attributes.set("mode", std::string("linear"));
          c.attributes.set("coordinate_transformation_mode", r.coordinates);
          texel_layout layout{1, memory_object::image2d, 0, 24};
          if (planes) layout.object = memory_object::image2d_array, layout.layer_rows = r.dims[2];
          c.texels = {layout};
          if (written) c.result_texels = {texel_layout{1, memory_object::image2d, 0}};
          INFO(name_of(type) << ", " << r.coordinates << (planes ? ", planes" : ""));
          CHECK(check(c) == std::vector<std::string>{"map"});
          const auto filtered = [&] {
            const std::string source = plans.back().source;
            return source.find("dnnopt_between_texels, (") != std::string::npos;
          };
          const bool one_plane = r.dims[0] == 1 && r.dims[1] <= 4;
          CHECK(filtered() == (planes || one_plane));
          CHECK(plans.back().notes.empty() == filtered());
          if (filtered()) {
            CHECK(plans.back().pointers[0].ends_rows);
            CHECK(plans.back().pointers[0].ends_planes);
            // One read serves the four channels of a texel.
            const std::string source = plans.back().source;
            const std::size_t first = source.find("dnnopt_between_texels, (");
            CHECK(source.find("dnnopt_between_texels, (", first + 1) == std::string::npos);
          }
          if (!planes || r.coordinates != "half_pixel") continue;
          c.texels[0]->filter_bits = 9;
          check(c);
          CHECK_FALSE(filtered());
          REQUIRE(plans.back().notes.size() == 1);
          CHECK(plans.back().notes[0].find("exact to 9.0 bits, 20 are needed") != std::string::npos);
          c.texels[0]->filter_bits = 24;
          for (const char* const other : {"antialias", "exclude_outside"}) {
            node_case more = c;
            more.attributes.set(other, std::int64_t{1});
            check(more);
            CHECK_FALSE(filtered());
          }
        }
}

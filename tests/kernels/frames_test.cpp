// Every kernel version against the reference backend: odd extents, symbolic dims, element types, prologue and epilogue.
#include "kernel_fixture.hpp"

#include <catch2/catch.hpp>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>

#include <dnnopt/backend/codegen/frames/products/tile_frame.hpp>

#include "../support/host_operator.hpp"

using namespace dnnopt;
using namespace dnnopt::testing;

namespace {

/// A device of its own per test case.
struct frames : kernel_bench {
  /// Runs the case in a form and compares; the version of the last kernel is the one expected.
  void check(const node_case& c, device_form form, const std::string& version) {
    const std::vector<tensor> want = expect(c);
    const kernel_run got = run(c, form, want);
    INFO(c.op << " as " << version);
    REQUIRE_FALSE(got.versions.empty());
    // Sums of split inner elements are added by a kernel of their own.
    const bool split = got.versions.back() == "matrix_partials" && got.versions.size() > 1;
    const std::string& last = got.versions.back();
    // Which of the two is expected to end first depends on the device; a tuning table decides where one is set.
    const bool tiled = version == "convolution_shifts" && last == "convolution_winograd" && tuned == nullptr;
    CAPTURE(last);
    CHECK((last == version || tiled || (split && got.versions[got.versions.size() - 2] == version)));
    for (const std::string& ran : got.versions)
      CHECK(std::find(codegen::kernel_versions.begin(), codegen::kernel_versions.end(), ran) !=
            codegen::kernel_versions.end());
    for (std::size_t o = 0; o < c.outputs; ++o) {
      INFO("output " << o << " of " << to_string(want[o].dims()));
      CHECK(relative_difference(got.outputs[o], want[o]) <= tolerance_of(want[o].type()));
    }
  }
};

tensor f32(dim_list dims, std::uint32_t seed) { return random_tensor(dtype::float32, std::move(dims), seed); }

node_case matmul(dim_list a, dim_list b, bool constant, dtype type = dtype::float32) {
  return {
      "MatMul", {random_tensor(type, std::move(a), 1), random_tensor(type, std::move(b), 2)}, {false, constant}, {}, 1};
}

}  // namespace

TEST_CASE_METHOD(frames, "matrix products in panels and tiles equal the reference") {
  const std::vector<std::pair<dim_list, dim_list>> shapes{
      {{1, 1}, {1, 1}},          {{3, 5}, {5, 7}},        {{13, 7}, {7, 1}},
      {{1, 13}, {13, 33}},       {{2, 3, 5, 7}, {7, 13}}, {{2, 3, 5, 7}, {2, 3, 7, 13}},
      {{3, 1, 5, 7}, {2, 7, 5}}, {{7}, {7, 5}},           {{5, 7}, {7}},
  };
  for (const auto& [a, b] : shapes) {
    check(matmul(a, b, false), device_form::vectors, "matrix_panels");
    check(matmul(a, b, true), device_form::vectors, "matrix_panels_packed");
    check(matmul(a, b, false), device_form::groups, "matrix_tiles");
    memory = memory_objects::packed;
    check(matmul(a, b, true), device_form::groups, "matrix_tiles");
    memory = memory_objects::buffers;
  }
}

TEST_CASE_METHOD(frames, "matrix products longer than one block of inner elements keep partial sums") {
  check(matmul({25, 700}, {700, 37}, false), device_form::vectors, "matrix_panels");
  check(matmul({25, 700}, {700, 37}, true), device_form::vectors, "matrix_panels_packed");
  // In tiles, several work-groups share the inner elements.
  check(matmul({25, 700}, {700, 37}, true), device_form::groups, "matrix_partials");
  check(matmul({3, 5, 1999}, {3, 1999, 7}, false), device_form::groups, "matrix_partials");
}

TEST_CASE_METHOD(frames, "teams of a work-group share the inner elements") {
  work_group = 256;
  memory = memory_objects::packed;
  // Results are stored four columns at a time, singly, and in texels along rows.
  struct row {
    node_case product;
    std::string shape;
    std::int64_t inner;
  };
  std::vector<row> rows{{matmul({36, 77}, {77, 68}, true), "matrix_tiles 1 36 68 77", 77},
                        {matmul({2, 17, 5}, {2, 5, 7}, false), "matrix_tiles 2 17 7 5", 5},
                        {matmul({1, 20, 33}, {33, 13}, true), "matrix_tiles 1 20 13 33", 33}};
  rows.back().product.result_texels = {texel_layout{1, memory_object::buffer, 0}};
  for (const auto& [product, shape, inner] : rows)
    for (const std::int64_t tile : {5, 6, 7})
      for (const std::int64_t splits : {1, 2})
        for (const std::int64_t teams : {2, 4}) {
          CAPTURE(shape, tile, splits, teams);
          codegen::tuning_table table;
          table.set(shape, {tile, splits, teams});
          tuned = &table;
          const std::vector<tensor> want = expect(product);
          const kernel_run got = run(product, device_form::groups, want);
          tuned = nullptr;
          CHECK(relative_difference(got.outputs[0], want[0]) <= tolerance_of(dtype::float32));
          // Splits of fewer inner elements than a tile has are refused, and tiles of all teams that are too large.
          codegen::tile_sizes sizes = codegen::tile_table.at(static_cast<std::size_t>(tile));
          sizes.teams = teams;
          const bool taken = (splits == 1 || inner >= 32) &&
                             static_cast<std::uint64_t>(sizes.local_bytes()) <= where().info().local_memory_bytes;
          if (taken) CHECK(plans.front().local[2] == static_cast<std::size_t>(teams));
        }
  // Two teams of 256 are too many, also where the device has room for them.
  work_group = 512;
  codegen::tuning_table table;
  table.set(rows.front().shape, {4, 1, 2});
  tuned = &table;
  run(rows.front().product, device_form::groups, expect(rows.front().product));
  tuned = nullptr;
  CHECK(plans.front().local[0] * plans.front().local[1] * plans.front().local[2] <= 256);
}

TEST_CASE_METHOD(frames, "matrix products in tiles read four neighbours at once where they can") {
  for (const auto& [a, b] : std::vector<std::pair<dim_list, dim_list>>{
           {{68, 64}, {64, 132}}, {{2, 36, 20}, {2, 20, 68}}, {{130, 12}, {12, 130}}, {{64, 7}, {7, 64}}})
    check(matmul(a, b, false), device_form::groups, "matrix_tiles");
  for (const std::int64_t left : {0, 1})
    for (const std::int64_t right : {0, 1}) {
      node_case c{"Gemm",
                  {f32(left != 0 ? dim_list{40, 36} : dim_list{36, 40}, 1),
                   f32(right != 0 ? dim_list{68, 40} : dim_list{40, 68}, 2)},
                  {},
                  {},
                  1};
      c.attributes.set("transA", left);
      c.attributes.set("transB", right);
      check(c, device_form::groups, "matrix_tiles");
    }
}

TEST_CASE_METHOD(frames, "tiles fetch halves as bits and widen them where they are kept") {
  const auto fetches = [&](std::string_view operand) {
    return plans[0].source.str().find("#define DNNOPT_" + std::string(operand) + "_BITS 1") != std::string::npos;
  };
  for (const auto& [a, b] : std::vector<std::pair<dim_list, dim_list>>{{{68, 64}, {64, 132}},
                                                                       {{2, 36, 20}, {2, 20, 68}},
                                                                       {{130, 12}, {12, 130}},
                                                                       {{64, 7}, {7, 64}},
                                                                       {{5, 13}, {13, 7}}})
    for (const bool constant : {false, true}) {
      check(matmul(a, b, constant, dtype::float16), device_form::groups, "matrix_tiles");
      CHECK(fetches("A"));
      CHECK(fetches("B"));
    }
  // An element that stands in the source does so as its bits.
  check(matmul({5, 1}, {1, 1}, true, dtype::float16), device_form::groups, "matrix_tiles");
  CHECK(fetches("B"));
  for (const std::int64_t left : {0, 1})
    for (const std::int64_t right : {0, 1}) {
      node_case c{"Gemm",
                  {random_tensor(dtype::float16, left != 0 ? dim_list{40, 36} : dim_list{36, 40}, 1),
                   random_tensor(dtype::float16, right != 0 ? dim_list{68, 40} : dim_list{40, 68}, 2)},
                  {},
                  {},
                  1};
      c.attributes.set("transA", left);
      c.attributes.set("transB", right);
      check(c, device_form::groups, "matrix_tiles");
    }
  for (const auto& [x, w] : std::vector<std::pair<dim_list, dim_list>>{
           {{2, 5, 9, 7}, {13, 5, 3, 3}}, {{1, 8, 6, 10}, {12, 8, 1, 1}}, {{1, 7, 5, 5}, {3, 7, 1, 1}}})
    for (const bool constant : {false, true}) {
      node_case c{
          "Conv", {random_tensor(dtype::float16, x, 1), random_tensor(dtype::float16, w, 2)}, {false, constant}, {}, 1};
      const std::int64_t pad = w[2] / 2;
      c.attributes.set("pads", std::vector<std::int64_t>{pad, pad, pad, pad});
      check(c, device_form::groups, "convolution_tiles");
      CHECK(fetches("B"));
    }
  // Both zeros, what is less than normal, the largest, infinities and what is no number go through unchanged.
  tensor one(dtype::float16, {1, 1});
  one.mutable_data<float16>()[0] = float16(1.0F);
  tensor special(dtype::float16, {1, 12});
  const std::uint16_t bits[] = {0x0000, 0x8000, 0x0001, 0x83ff, 0x0400, 0x7bff,
                                0xfbff, 0x7c00, 0xfc00, 0x7e00, 0x3555, 0xb555};
  std::memcpy(special.mutable_bytes().data(), bits, sizeof bits);
  const node_case c{"MatMul", {one, special}, {}, {}, 1};
  const std::vector<tensor> got = run(c, device_form::groups, expect(c)).outputs;
  std::uint16_t back[12];
  std::memcpy(back, got[0].bytes().data(), sizeof back);
  for (std::size_t i = 0; i < 12; ++i) {
    CAPTURE(i);
    // A sum that starts at zero has no negative zero.
    CHECK((bits[i] == 0x7e00 ? (back[i] & 0x7fff) > 0x7c00 : back[i] == (bits[i] == 0x8000 ? 0 : bits[i])));
  }
}

TEST_CASE_METHOD(frames, "matrix products of other element types") {
  for (const dtype type : {dtype::float16, dtype::bfloat16}) {
    check(matmul({5, 13}, {13, 7}, true, type), device_form::vectors, "matrix_panels_packed");
    check(matmul({5, 13}, {13, 7}, false, type), device_form::groups, "matrix_tiles");
  }
  for (const dtype type : {dtype::float64, dtype::int32, dtype::int64, dtype::uint32, dtype::uint64})
    check(matmul({5, 13}, {13, 7}, false, type), device_form::vectors, "map");
}

TEST_CASE_METHOD(frames, "Gemm with factors, transpositions and a broadcast operand") {
  for (const std::int64_t left : {0, 1})
    for (const std::int64_t right : {0, 1}) {
      node_case c{"Gemm",
                  {f32(left != 0 ? dim_list{5, 3} : dim_list{3, 5}, 1),
                   f32(right != 0 ? dim_list{7, 5} : dim_list{5, 7}, 2), f32({7}, 3)},
                  {false, right != 0, true},
                  {},
                  1};
      c.attributes.set("transA", left);
      c.attributes.set("transB", right);
      c.attributes.set("alpha", 0.5f);
      c.attributes.set("beta", 2.0f);
      check(c, device_form::vectors, right != 0 ? "matrix_panels_packed" : "matrix_panels");
      check(c, device_form::groups, "matrix_tiles");
    }
}

TEST_CASE_METHOD(frames, "Einsum that is a matrix product, and one that is not") {
  node_case product{"Einsum", {f32({2, 3, 5, 7}, 1), f32({3, 13, 7}, 2)}, {}, {}, 1};
  product.attributes.set("equation", std::string("bhwc,hkc->bhwk"));
  check(product, device_form::vectors, "matrix_panels");
  check(product, device_form::groups, "matrix_tiles");
  node_case trace{"Einsum", {f32({3, 5, 5}, 1)}, {}, {}, 1};
  trace.attributes.set("equation", std::string("bii->b"));
  check(trace, device_form::vectors, "map");
}

TEST_CASE_METHOD(frames, "convolutions in shifts, panels, rows and tiles equal the reference") {
  struct form {
    dim_list x, w;
    std::vector<std::int64_t> pads, strides, dilations;
    std::int64_t group;
    std::string vectors;  ///< kernel version on devices with wide vectors; empty: shifts, panels where weights vary
  };
  const std::vector<form> forms{
      {{1, 3, 7, 13}, {5, 3, 1, 1}, {0, 0, 0, 0}, {1, 1}, {1, 1}, 1, "convolution_panels"},
      {{2, 6, 3, 11}, {26, 3, 1, 1}, {0, 0, 0, 0}, {1, 1}, {1, 1}, 2, "convolution_panels"},
      {{1, 40, 5, 6}, {13, 40, 1, 1}, {0, 0, 0, 0}, {1, 1}, {1, 1}, 1, "convolution_panels"},
      {{1, 2, 4, 4}, {3, 2, 3, 7}, {1, 3, 1, 3}, {1, 1}, {1, 1}, 1, "convolution_panels"},
      {{1, 3, 9, 11}, {5, 3, 1, 1}, {0, 0, 0, 0}, {2, 3}, {1, 1}, 1, ""},
      {{2, 5, 31, 37}, {25, 5, 3, 3}, {0, 2, 1, 0}, {3, 2}, {2, 3}, 1, ""},
      {{2, 3, 7, 13}, {13, 3, 3, 3}, {1, 1, 1, 1}, {1, 1}, {1, 1}, 1, ""},
      {{1, 5, 13, 7}, {7, 5, 3, 5}, {0, 2, 1, 3}, {2, 1}, {1, 1}, 1, ""},
      {{1, 4, 13, 13}, {6, 2, 3, 3}, {2, 2, 2, 2}, {1, 2}, {2, 2}, 2, ""},
      {{1, 40, 7, 7}, {13, 40, 3, 3}, {1, 1, 1, 1}, {1, 1}, {1, 1}, 1, ""},
      {{1, 3, 13}, {5, 3, 3}, {1, 0}, {1}, {1}, 1, ""},
      {{1, 2, 3, 5, 7}, {3, 2, 3, 3, 3}, {1, 1, 1, 1, 1, 1}, {1, 2, 1}, {1, 1, 1}, 1, ""},
      {{1, 5, 13, 33}, {5, 1, 3, 3}, {1, 1, 1, 1}, {1, 1}, {1, 1}, 5, "window_planes"},
      {{2, 3, 13, 13}, {6, 1, 5, 5}, {2, 2, 2, 2}, {2, 2}, {1, 1}, 3, "window_planes"},
      {{1, 3, 5, 70}, {3, 1, 1, 1}, {0, 0, 0, 0}, {1, 1}, {1, 1}, 3, "window_planes"},
      {{1, 3, 13}, {3, 1, 3}, {2, 2}, {1}, {2}, 3, "window_planes"},
      {{1, 4, 9, 11}, {8, 1, 3, 5}, {1, 4, 2, 0}, {3, 2}, {1, 2}, 4, "window_planes"},
      {{1, 2, 90, 97}, {2, 1, 7, 7}, {3, 3, 3, 3}, {1, 1}, {1, 1}, 2, "window_planes"},
      {{1, 67, 7, 7}, {67, 1, 3, 3}, {1, 1, 1, 1}, {2, 2}, {1, 1}, 67, "window_planes"},
      // One lane more than four vectors: the last vectors begin as far back as they can.
      {{1, 67, 5, 11}, {67, 1, 3, 3}, {1, 1, 1, 1}, {1, 1}, {1, 1}, 67, "window_planes"},
      {{1, 3, 3, 5, 7}, {6, 1, 3, 3, 3}, {1, 1, 1, 1, 1, 1}, {1, 2, 1}, {1, 1, 1}, 3, "convolution_rows"},
      {{1, 42, 7, 9}, {6, 42, 5, 5}, {2, 2, 2, 2}, {1, 1}, {1, 1}, 1, ""},
      {{1, 60, 11, 9}, {14, 60, 3, 2}, {1, 1, 1, 0}, {1, 1}, {1, 1}, 1, ""},
  };
  // The last ones have less local memory than their channels want at once.
  for (const form& f : forms) {
    if (left_out(element_count(f.x) * element_count(f.w) / (f.w[1] * f.group) > 450'000)) continue;
    local_memory = f.w[1] > 40 ? 16384 : 0;
    node_case c{"Conv", {f32(f.x, 1), f32(f.w, 2), f32({f.w[0]}, 3)}, {false, true, true}, {}, 1};
    c.attributes.set("pads", f.pads);
    c.attributes.set("strides", f.strides);
    c.attributes.set("dilations", f.dilations);
    c.attributes.set("group", f.group);
    check(c, device_form::vectors,
          f.vectors.empty()                   ? "convolution_shifts"
          : f.vectors == "convolution_panels" ? f.vectors + "_packed"
                                              : f.vectors);
    // Each way to stage the image, whichever is chosen.
    for (std::int64_t staging = 0; f.vectors.empty() && f.w[1] <= 40 && staging < 3; ++staging) {
      codegen::tuning_table table;
      set_shifts(table, shape_classes.back(), {4, 2, 24, 32, staging});
      tuned = &table;
      CAPTURE(f.x, f.w, staging);
      check(c, device_form::vectors, "convolution_shifts");
      tuned = nullptr;
    }
    check(c, device_form::groups, f.w[0] / f.group < 4 && f.group > 1 ? "map" : "convolution_tiles");
    c.constant = {};
    check(c, device_form::vectors, f.vectors.empty() ? "convolution_panels" : f.vectors);
  }
}

TEST_CASE_METHOD(frames, "convolutions of few positions have vectors of output channels") {
  struct form {
    dim_list x, w;
    std::vector<std::int64_t> pads, strides, dilations;
    std::int64_t group;
  };
  const std::vector<form> forms{
      {{1, 3, 5}, {19, 3, 5}, {0, 0}, {1}, {1}, 1},
      // Padding is more than the image, and what is beyond the last window is not read.
      {{1, 4, 2}, {17, 4, 3}, {3, 2}, {1}, {1}, 1},
      {{2, 5, 40}, {16, 5, 3}, {1, 0}, {7}, {4}, 1},
      {{2, 6, 3, 3}, {40, 3, 3, 3}, {0, 0, 0, 0}, {1, 1}, {1, 1}, 2},
      {{1, 10, 4, 4}, {24, 10, 3, 3}, {0, 1, 0, 0}, {1, 2}, {1, 1}, 1},
      {{3, 5, 7, 3}, {16, 5, 3, 2}, {1, 0, 1, 1}, {3, 2}, {2, 1}, 1},
      {{1, 3, 3, 3, 4}, {18, 3, 2, 3, 3}, {0, 0, 0, 0, 0, 0}, {1, 1, 1}, {1, 1, 1}, 1},
      {{1, 1500, 3}, {16, 1500, 3}, {1, 1}, {1}, {1}, 1},
  };
  for (const form& f : forms) {
    local_memory = f.w[1] > 40 ? 16384 : 0;
    node_case c{"Conv", {f32(f.x, 1), f32(f.w, 2), f32({f.w[0]}, 3)}, {false, true, true}, {}, 1};
    c.attributes.set("pads", f.pads);
    c.attributes.set("strides", f.strides);
    c.attributes.set("dilations", f.dilations);
    c.attributes.set("group", f.group);
    CAPTURE(f.x, f.w);
    check(c, device_form::vectors, "convolution_points");
    check(c, device_form::groups, "convolution_tiles");
  }
}

TEST_CASE_METHOD(frames, "pools in planes equal the reference") {
  struct form {
    dim_list x;
    std::vector<std::int64_t> window, pads, strides, dilations;
    std::int64_t ceil, counts;
  };
  const std::vector<form> forms{
      {{1, 3, 13, 7}, {3, 3}, {1, 1, 1, 1}, {2, 2}, {1, 1}, 0, 0},
      {{2, 5, 7, 33}, {2, 3}, {0, 1, 0, 2}, {1, 1}, {1, 1}, 1, 1},
      {{1, 2, 14, 15}, {3, 2}, {1, 0, 0, 0}, {2, 3}, {1, 1}, 1, 0},
      {{1, 1, 9, 17}, {2, 3}, {0, 0, 0, 0}, {1, 2}, {2, 3}, 0, 0},
      {{3, 2, 31}, {5}, {2, 2}, {1}, {1}, 0, 0},
      {{1, 130, 1, 1}, {1, 1}, {0, 0, 0, 0}, {1, 1}, {1, 1}, 0, 0},
  };
  for (const form& f : forms)
    for (const char* const op : {"MaxPool", "AveragePool"}) {
      node_case c{op, {f32(f.x, 1)}, {}, {}, 1};
      if (f.x.size() == 4 && f.x[1] == 3) c.inputs[0].mutable_data<float>()[20] = std::nanf("");
      c.attributes.set("kernel_shape", f.window);
      c.attributes.set("pads", f.pads);
      c.attributes.set("strides", f.strides);
      c.attributes.set("dilations", f.dilations);
      c.attributes.set("ceil_mode", f.ceil);
      if (std::string(op) == "AveragePool") c.attributes.set("count_include_pad", f.counts);
      check(c, device_form::vectors, "window_planes");
      check(c, device_form::groups, "map");
    }
}

TEST_CASE_METHOD(frames, "windows over planes whose extents only a run tells are blocks of rows and columns") {
  struct form {
    dim_list x, w;
    std::vector<std::int64_t> pads, strides, dilations;
  };
  const std::vector<form> forms{
      {{1, 5, 13, 33}, {5, 1, 3, 3}, {1, 1, 1, 1}, {1, 1}, {1, 1}},
      {{2, 3, 13, 13}, {6, 1, 5, 5}, {2, 2, 2, 2}, {2, 2}, {1, 1}},
      {{1, 3, 5, 70}, {3, 1, 1, 1}, {0, 0, 0, 0}, {1, 1}, {1, 1}},
      {{1, 3, 13}, {3, 1, 3}, {2, 2}, {1}, {2}},
      {{1, 4, 9, 11}, {8, 1, 3, 5}, {1, 4, 2, 0}, {3, 2}, {1, 2}},
      {{1, 2, 90, 97}, {2, 1, 7, 7}, {3, 3, 3, 3}, {1, 1}, {1, 1}},
      {{1, 67, 7, 7}, {67, 1, 3, 3}, {1, 1, 1, 1}, {2, 2}, {1, 1}},
      {{1, 1100, 7, 7}, {1100, 1, 3, 3}, {1, 1, 1, 1}, {1, 1}, {1, 1}},
      // Wider than a block of columns, whose halos are neighbours and padding.
      {{1, 2, 6, 1300}, {2, 1, 3, 3}, {1, 3, 1, 3}, {1, 1}, {1, 1}},
      {{1, 2, 7, 1301}, {2, 1, 3, 5}, {1, 2, 1, 2}, {2, 2}, {1, 1}},
      {{1, 2, 5, 1400}, {2, 1, 2, 3}, {0, 1, 0, 1}, {1, 3}, {1, 2}},
      {{2, 4, 1201}, {4, 1, 31}, {15, 15}, {1}, {1}},
  };
  symbolic = true;
  for (const form& f : forms) {
    CAPTURE(f.x, f.w);
    node_case c{"Conv", {f32(f.x, 1), f32(f.w, 2), f32({f.w[0]}, 3)}, {false, true, true}, {}, 1};
    c.attributes.set("pads", f.pads);
    c.attributes.set("strides", f.strides);
    c.attributes.set("dilations", f.dilations);
    c.attributes.set("group", f.x[1]);
    check(c, device_form::vectors, "window_planes");
    // Less local memory: narrower blocks.
    local_memory = 16384;
    check(c, device_form::vectors, "window_planes");
    local_memory = 0;
    for (const char* const op : {"MaxPool", "AveragePool"}) {
      node_case pool{op, {f32(f.x, 1)}, {}, {}, 1};
      pool.attributes.set("kernel_shape", std::vector<std::int64_t>(f.w.begin() + 2, f.w.end()));
      pool.attributes.set("strides", f.strides);
      check(pool, device_form::vectors, "window_planes");
    }
  }
}

TEST_CASE_METHOD(frames, "Winograd's tiles cover images whose extents only a run tells") {
  symbolic = true;
  // Where the blocks have no room, as on a simulator, which is slow besides, few cases go another way.
  const bool room = where().info().local_memory_bytes > 32768;
  std::vector<dim_list> shapes{{1, 64, 1, 1}, {2, 64, 7, 9}};
  if (room) shapes.insert(shapes.end(), {{1, 64, 56, 56}, {1, 64, 13, 130}, {1, 64, 91, 3}});
  for (const dim_list& x : shapes) {
    CAPTURE(x);
    node_case c{"Conv", {f32(x, 1), f32({48, 64, 3, 3}, 2), f32({48}, 3)}, {false, true, true}, {}, 1};
    c.attributes.set("pads", std::vector<std::int64_t>{1, 1, 1, 1});
    check(c, device_form::vectors, room ? "convolution_winograd" : "convolution_panels_packed");
  }
}

TEST_CASE_METHOD(frames, "convolution with padding from shapes") {
  for (const char* const how : {"SAME_UPPER", "SAME_LOWER", "VALID"}) {
    node_case c{"Conv", {f32({1, 3, 7, 13}, 1), f32({5, 3, 3, 2}, 2)}, {false, true}, {}, 1};
    c.attributes.set("auto_pad", std::string(how));
    c.attributes.set("strides", std::vector<std::int64_t>{2, 3});
    check(c, device_form::vectors, "convolution_shifts");
  }
}

TEST_CASE_METHOD(frames, "tiles of convolutions span images whose positions would fill them badly") {
  compute_units = 2;
  node_case c{"Conv", {f32({7, 12, 7, 7}, 1), f32({40, 12, 3, 3}, 2), f32({40}, 3)}, {false, true, true}, {}, 1};
  c.attributes.set("pads", std::vector<std::int64_t>{1, 1, 1, 1});
  check(c, device_form::groups, "convolution_tiles");
  CHECK(shape_classes.front() == "matrix_tiles 1 40 343 108");
  // Four neighbours at once, within an image each.
  node_case pointwise{"Conv", {f32({32, 20, 6, 6}, 1), f32({24, 20, 1, 1}, 2)}, {false, true}, {}, 1};
  check(pointwise, device_form::groups, "convolution_tiles");
  CHECK(shape_classes.front() == "matrix_tiles 1 24 1152 20");
  node_case grouped{"Conv", {f32({5, 16, 5, 5}, 1), f32({24, 8, 3, 3}, 2)}, {false, true}, {}, 1};
  grouped.attributes.set("group", std::int64_t{2});
  check(grouped, device_form::groups, "convolution_tiles");
}

TEST_CASE_METHOD(frames, "long sums are stored singly where a unit has more work-items than can be there") {
  codegen::tile_sizes tiles = codegen::tile_table[1];
  tiles.unit_items = 512;
  CHECK(codegen::direction_of_rows(tiles, {1, 2048, 2048, 2048}) == codegen::store_direction::single);
  CHECK(codegen::direction_of_rows(tiles, {1, 2048, 2048, 288}) == codegen::store_direction::columns);
  tiles.unit_items = 128;
  CHECK(codegen::direction_of_rows(tiles, {1, 2048, 2048, 2048}) == codegen::store_direction::columns);
  CHECK(codegen::direction_of_rows(tiles, {1, 2048, 2047, 2048}) == codegen::store_direction::single);
  tiles.splits = 2;
  CHECK(codegen::direction_of_rows(tiles, {1, 2048, 2048, 2048}) == codegen::store_direction::single);
  compute_units = 1;
  const dim_list left = is_simulated() ? dim_list{132, 260} : dim_list{260, 1028};
  const dim_list right = is_simulated() ? dim_list{260, 68} : dim_list{1028, 132};
  check(matmul(left, right, false), device_form::groups, "matrix_tiles");
}

TEST_CASE_METHOD(frames, "softmax, normalizations and reductions by rows equal the reference") {
  const auto attributes = [](std::initializer_list<std::pair<const char*, attribute>> list) {
    attribute_map map;
    for (const auto& [name, held] : list) map.set(name, held);
    return map;
  };
  std::vector<node_case> cases;
  for (const std::int64_t axis : {0, 1, 2}) {
    cases.push_back({"Softmax", {f32({3, 5, 33}, 1)}, {}, attributes({{"axis", axis}}), 1});
    cases.push_back({"LogSoftmax", {f32({3, 5, 33}, 1)}, {}, attributes({{"axis", axis}}), 1});
  }
  cases.push_back({"LayerNormalization", {f32({3, 5, 13}, 1), f32({13}, 2), f32({13}, 3)}, {}, {}, 3});
  cases.push_back(
      {"LayerNormalization", {f32({3, 5, 13}, 1), f32({5, 13}, 2)}, {}, attributes({{"axis", std::int64_t{1}}}), 1});
  cases.push_back({"RMSNormalization", {f32({3, 7, 13}, 1), f32({13}, 2)}, {}, {}, 1});
  cases.push_back({"InstanceNormalization", {f32({2, 3, 5, 7}, 1), f32({3}, 2), f32({3}, 3)}, {}, {}, 1});
  cases.push_back({"GroupNormalization",
                   {f32({2, 6, 5, 7}, 1), f32({6}, 2), f32({6}, 3)},
                   {},
                   attributes({{"num_groups", std::int64_t{3}}}),
                   1});
  cases.push_back({"LpNormalization", {f32({3, 13}, 1)}, {}, attributes({{"p", std::int64_t{1}}}), 1});
  cases.push_back({"GlobalAveragePool", {f32({2, 3, 7, 13}, 1)}, {}, {}, 1});
  cases.push_back({"GlobalMaxPool", {f32({2, 3, 7, 13}, 1)}, {}, {}, 1});
  const tensor last = tensor::of<std::int64_t>({1}, std::vector<std::int64_t>{-1});
  for (const char* const op :
       {"ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2", "ReduceSumSquare"})
    cases.push_back({op, {f32({3, 5, 17}, 1), last}, {false, true}, attributes({{"keepdims", std::int64_t{0}}}), 1});
  for (const node_case& c : cases) {
    check(c, device_form::vectors, "row_items");
    check(c, device_form::groups, "row_groups");
  }
  // So many rows that a work-item reads four neighbours at a time.
  compute_units = 1;
  for (const auto& [rows, length] :
       std::initializer_list<std::pair<std::int64_t, std::int64_t>>{{263, 96}, {260, 100}, {67, 384}, {33, 1024}}) {
    check({"LayerNormalization", {f32({1, rows, length}, 1), f32({length}, 2), f32({length}, 3)}, {}, {}, 1},
          device_form::groups, "row_groups");
    check({"RMSNormalization", {f32({rows, length}, 1), f32({length}, 2)}, {}, {}, 1}, device_form::groups,
          "row_groups");
  }
  // Longer than one block of a row.
  check({"Softmax", {f32({2, 5000}, 1)}, {}, {}, 1}, device_form::vectors, "row_items");
  check({"LayerNormalization", {f32({2, 5000}, 1), f32({5000}, 2), f32({5000}, 3)}, {}, {}, 1}, device_form::vectors,
        "row_items");
}

TEST_CASE_METHOD(frames, "attention equals the reference: masks, groups of heads, a past, packed heads") {
  const auto both = [&](const node_case& c) {
    const std::string last = c.outputs > 1 ? "attention_output" : "";
    check(c, device_form::vectors, last.empty() ? "attention_items" : last);
    check(c, device_form::groups, last.empty() ? "attention_tiles" : last);
  };
  both({"Attention", {f32({2, 3, 5, 7}, 1), f32({2, 3, 37, 7}, 2), f32({2, 3, 37, 13}, 3)}, {}, {}, 1});
  both({"Attention", {f32({1, 2, 67, 16}, 1), f32({1, 2, 131, 16}, 2), f32({1, 2, 131, 83}, 3)}, {}, {}, 1});
  both({"Attention", {f32({1, 1, 1, 33}, 1), f32({1, 1, 300, 33}, 2), f32({1, 1, 300, 64}, 3)}, {}, {}, 1});
  both({"Attention", {f32({3, 1, 100, 8}, 1), f32({3, 1, 1, 8}, 2), f32({3, 1, 1, 1}, 3)}, {}, {}, 1});
  // A row of keys or values that does not fit beside the others.
  check({"Attention", {f32({1, 1, 3, 5}, 1), f32({1, 1, 7, 5}, 2), f32({1, 1, 7, 300}, 3)}, {}, {}, 1},
        device_form::groups, "attention_groups");
  node_case masked{
      "Attention", {f32({1, 4, 5, 8}, 1), f32({1, 2, 7, 8}, 2), f32({1, 2, 7, 8}, 3), f32({5, 7}, 4)}, {}, {}, 1};
  masked.attributes.set("is_causal", std::int64_t{1});
  masked.attributes.set("softcap", 2.0f);
  both(masked);
  node_case past{"Attention",
                 {f32({2, 3, 12}, 1), f32({2, 3, 12}, 2), f32({2, 3, 12}, 3), tensor{}, f32({2, 3, 5, 4}, 4),
                  f32({2, 3, 5, 4}, 5)},
                 {},
                 {},
                 4};
  past.attributes.set("q_num_heads", std::int64_t{3});
  past.attributes.set("kv_num_heads", std::int64_t{3});
  for (const std::int64_t stage : {0, 1, 2, 3}) {
    past.attributes.set("qk_matmul_output_mode", stage);
    both(past);
  }
}

TEST_CASE_METHOD(frames,
                 "attention takes four neighbours at a time, in blocks that registers hold ahead and in others") {
  const auto groups = [&](std::int64_t queries, std::int64_t keys, std::int64_t size, std::int64_t value_size) {
    CAPTURE(queries, keys, size, value_size);
    check({"Attention",
           {f32({1, 2, queries, size}, 1), f32({1, 2, keys, size}, 2), f32({1, 2, keys, value_size}, 3)},
           {},
           {},
           1},
          device_form::groups, "attention_tiles");
    const std::string source = plans.back().source.str();
    CHECK((source.find("dnnopt_load4_key(DNNOPT_PARAMETERS") != std::string::npos) == (size % 4 == 0));
    CHECK((source.find("dnnopt_load4_value(DNNOPT_PARAMETERS") != std::string::npos) == (value_size % 4 == 0));
  };
  groups(17, 67, 16, 36);
  groups(19, 33, 20, 64);
  groups(5, 40, 72, 7);
  groups(3, 31, 13, 100);
  // Blocks of 32 rows.
  compute_units = 1;
  groups(37, 65, 24, 28);
  groups(33, 34, 132, 12);
}

TEST_CASE_METHOD(frames, "maps of many elements compute several per work-item") {
  check({"Tanh", {f32({131, 257}, 1)}, {}, {}, 1}, device_form::groups, "map");
  node_case transposed{"Transpose", {f32({7, 331, 19}, 1)}, {}, {}, 1};
  transposed.attributes.set("perm", std::vector<std::int64_t>{1, 0, 2});
  check(transposed, device_form::groups, "map");
}

TEST_CASE_METHOD(frames, "scatter and selection kernels equal the reference") {
  const tensor indices = tensor::of<std::int64_t>({2, 3}, std::vector<std::int64_t>{0, -1, 2, 1, 0, 0});
  for (const char* const reduction : {"none", "add", "mul", "max", "min"}) {
    node_case c{"ScatterElements", {f32({3, 5}, 1), indices, f32({2, 3}, 2)}, {}, {}, 1};
    c.attributes.set("axis", std::int64_t{0});
    c.attributes.set("reduction", std::string(reduction));
    check(c, device_form::vectors, "scatter");
  }
  const tensor tuples = tensor::of<std::int64_t>({3, 1}, std::vector<std::int64_t>{4, 0, -2});
  check({"ScatterND", {f32({5, 3, 7}, 1), tuples, f32({3, 3, 7}, 2)}, {}, {}, 1}, device_form::vectors, "scatter");
  for (const std::int64_t largest : {0, 1}) {
    node_case c{
        "TopK",
        {random_tensor(dtype::int32, {3, 13, 5}, 1), tensor::of<std::int64_t>({1}, std::vector<std::int64_t>{4})},
        {false, true},
        {},
        2};
    c.attributes.set("axis", std::int64_t{1});
    c.attributes.set("largest", largest);
    check(c, device_form::vectors, "top_k");
    // Long rows are sorted in runs that are merged.
    for (const std::int64_t k : {3, 70, 1030}) {
      node_case rows{
          "TopK",
          {random_tensor(dtype::int32, {2, 1030}, 1), tensor::of<std::int64_t>({1}, std::vector<std::int64_t>{k})},
          {false, true},
          {},
          2};
      rows.attributes.set("largest", largest);
      check(rows, device_form::vectors, "top_k_merge");
    }
  }
}

TEST_CASE_METHOD(frames, "recurrent layers equal the reference") {
  struct layer {
    const char* op;
    std::int64_t gates;
    std::size_t states;
    const char* variant;
  };
  constexpr std::int64_t steps = 5, batch = 3, width = 11, hidden = 9;
  const tensor lengths = tensor::of<std::int32_t>({batch}, std::vector<std::int32_t>{5, 0, 2});
  for (const layer& l :
       {layer{"RNN", 1, 1, ""}, layer{"GRU", 3, 1, "linear_before_reset"}, layer{"LSTM", 4, 2, "input_forget"}})
    for (const auto& [direction, batch_first] :
         {std::pair<const char*, std::int64_t>{"forward", 0}, {"reverse", 0}, {"bidirectional", 1}}) {
      const std::int64_t directions = std::string(direction) == "bidirectional" ? 2 : 1;
      const auto f = [&](dim_list dims, std::uint32_t seed) { return f32(std::move(dims), seed); };
      const dim_list state =
          batch_first != 0 ? dim_list{batch, directions, hidden} : dim_list{directions, batch, hidden};
      node_case c{l.op,
                  {f(batch_first != 0 ? dim_list{batch, steps, width} : dim_list{steps, batch, width}, 1),
                   f({directions, l.gates * hidden, width}, 2), f({directions, l.gates * hidden, hidden}, 3),
                   f({directions, 2 * l.gates * hidden}, 4), lengths, f(state, 5)},
                  {false, true, true, true, false, false},
                  {},
                  1 + l.states};
      c.attributes.set("hidden_size", hidden);
      c.attributes.set("direction", std::string(direction));
      c.attributes.set("layout", batch_first);
      if (l.states == 2) {
        c.inputs.push_back(f(state, 6));
        c.inputs.push_back(f({directions, 3 * hidden}, 7));
        c.constant.push_back(false);
        c.constant.push_back(true);
      }
      if (batch_first != 0) {
        if (*l.variant != 0) c.attributes.set(l.variant, std::int64_t{1});
        c.attributes.set("clip", 0.75F);
        std::vector<std::string> activations;
        for (std::int64_t d = 0; d < directions; ++d) {
          activations.emplace_back("HardSigmoid");
          if (l.gates > 1) activations.emplace_back("ScaledTanh");
          if (l.gates > 3) activations.emplace_back("Softsign");
        }
        c.attributes.set("activations", activations);
        c.attributes.set("activation_alpha", std::vector<float>{0.3F, 0.7F});
        c.attributes.set("activation_beta", std::vector<float>{0.4F, 1.1F});
      }
      for (const device_form form : {device_form::vectors, device_form::groups}) check(c, form, "recurrent_groups");
    }
}

TEST_CASE_METHOD(frames, "an anchor with element-wise neighbours is one kernel, also with symbolic dims") {
  for (const device_form how : {device_form::vectors, device_form::groups}) {
    graph g;
    const index_expr rows = g.expressions().symbol("rows", {1, 4096});
    const tensor x = f32({13, 7}, 1);
    const tensor w = f32({7, 5}, 2);
    const tensor bias = f32({5}, 3);
    const value_id in = g.add_input("x", dtype::float32, shape{rows, 7});
    const value_id weight = g.add_constant("w", w);
    const value_id shift = g.add_constant("b", bias);
    const value_id relu = g.add_value("relu", dtype::float32, shape{rows, 7});
    const value_id product = g.add_value("product", dtype::float32, shape{rows, 5});
    const value_id sum = g.add_value("sum", dtype::float32, shape{rows, 5});
    const value_id out = g.add_value("out", dtype::float32, shape{5, rows});
    const op_set& rows_of_ops = ops();
    attribute_map perm;
    perm.set("perm", std::vector<std::int64_t>{1, 0});
    const node_id n0 = g.add_node(rows_of_ops.at("", "Relu"), "relu", {in}, {relu});
    const node_id n1 = g.add_node(rows_of_ops.at("", "MatMul"), "product", {relu, weight}, {product});
    const node_id n2 = g.add_node(rows_of_ops.at("", "Add"), "sum", {product, shift}, {sum});
    const node_id n3 = g.add_node(rows_of_ops.at("", "Transpose"), "out", {sum}, {out}, perm);
    symbol_values symbols;
    symbols.bind(*rows.as_symbol(), 13);
    std::vector<std::pair<value_id, tensor>> values{
        {in, x}, {weight, w}, {shift, bias}, {out, tensor(dtype::float32, {5, 13})}};
    const std::vector<std::string> versions = run({g, {n0, n1, n2, n3}, {out}}, how, values, symbols);
    CHECK(versions.back() == (how == device_form::vectors ? "matrix_panels_packed" : "matrix_tiles"));
    const auto step = [&](const char* op, std::vector<tensor> inputs, const attribute_map& a) {
      return reference::evaluate_operator(rows_of_ops.at("", op), a, inputs, 1)[0];
    };
    const tensor want =
        step("Transpose", {step("Add", {step("MatMul", {step("Relu", {x}, {}), w}, {}), bias}, {})}, perm);
    CHECK(relative_difference(values.back().second, want) <= tolerance_of(dtype::float32));
  }
}

// An index that data gives may be anything: no kernel touches memory that is not its own.
TEST_CASE_METHOD(frames, "indices outside of their dim stay inside") {
  const tensor indices = tensor::of<std::int64_t>({4}, std::vector<std::int64_t>{3000000, -3000000, 2, -1});
  const tensor inside = tensor::of<std::int64_t>({4}, std::vector<std::int64_t>{4, 0, 2, 4});
  for (const device_form form : {device_form::vectors, device_form::groups}) {
    const std::vector<tensor> want = expect({"Gather", {f32({5, 3}, 1), inside}, {}, {}, 1});
    const kernel_run got = run({"Gather", {f32({5, 3}, 1), indices}, {}, {}, 1}, form, want);
    CHECK(relative_difference(got.outputs[0], want[0]) == 0);
    const node_case scatter{"ScatterElements", {f32({5}, 1), inside, f32({4}, 2)}, {}, {}, 1};
    const std::vector<tensor> placed = expect(scatter);
    node_case outside = scatter;
    outside.inputs[1] = indices;
    CHECK(relative_difference(run(outside, form, placed).outputs[0], placed[0]) == 0);
  }
}

/// The share of elements that are not the same.
double differing(const tensor& got, const tensor& want) {
  const auto count = static_cast<std::size_t>(want.size());
  std::size_t other = 0;
  for (std::size_t i = 0; i < count; ++i) other += codegen::number_at(got, i) != codegen::number_at(want, i);
  return static_cast<double>(other) / static_cast<double>(count);
}

// Float arithmetic between the roundings moves an element over one of them now and then. Where a rounding is left out,
// a quarter of the elements and more differ.
TEST_CASE_METHOD(frames, "softmax of halves rounds each step as ONNX's function body does") {
  for (const dtype type : {dtype::float16, dtype::bfloat16})
    for (const std::int64_t length : {5, 33, 3000}) {
      CAPTURE(name_of(type), length);
      const node_case c{"Softmax", {random_tensor(type, {40, length}, 1)}, {}, {}, 1};
      const std::vector<tensor> want = expect(c);
      for (const device_form form : {device_form::vectors, device_form::groups})
        CHECK(differing(run(c, form, want).outputs[0], want[0]) < 0.03);
    }
}

TEST_CASE_METHOD(frames, "a value that the model declares narrow is rounded where its kernel does not store it") {
  for (const dtype type : {dtype::float16, dtype::bfloat16})
    for (const device_form form : {device_form::vectors, device_form::groups}) {
      graph g;
      const tensor x = random_tensor(type, {13, 7}, 1);
      const tensor w = random_tensor(type, {7, 5}, 2);
      const tensor bias = random_tensor(type, {13, 5}, 3);
      const value_id in = g.add_input("x", type, shape{13, 7});
      const value_id weight = g.add_input("w", type, shape{7, 5});
      const value_id shift = g.add_input("b", type, shape{13, 5});
      const value_id product = g.add_value("product", type, shape{13, 5});
      const value_id sum = g.add_value("sum", type, shape{13, 5});
      const value_id out = g.add_value("out", type, shape{13, 5});
      const node_id n0 = g.add_node(ops().at("", "MatMul"), "product", {in, weight}, {product});
      const node_id n1 = g.add_node(ops().at("", "Add"), "sum", {product, shift}, {sum});
      const node_id n2 = g.add_node(ops().at("", "Mul"), "out", {sum, shift}, {out});
      std::vector<std::pair<value_id, tensor>> values{
          {in, x}, {weight, w}, {shift, bias}, {out, tensor(type, {13, 5})}};
      (void)run({g, {n0, n1, n2}, {out}}, form, values, symbol_values{});
      const auto step = [&](const char* op, std::vector<tensor> inputs) {
        return reference::evaluate_operator(ops().at("", op), {}, inputs, 1)[0];
      };
      const tensor want = step("Mul", {step("Add", {step("MatMul", {x, w}), bias}), bias});
      CAPTURE(name_of(type));
      CHECK(differing(values.back().second, want) < 0.05);
    }
}

TEST_CASE_METHOD(frames, "a block that no lowering takes is refused with a reason for each") {
  graph g;
  op_set with_host = standard_ops();
  with_host.add<dnnopt::testing::host_non_zero_op>();
  const value_id in = g.add_input("x", dtype::float32, shape{3});
  const value_id out = g.add_value("y", dtype::int64, shape{1, g.expressions().symbol("found")});
  const node_id n = g.add_node(with_host.at("", "HostNonZero"), "n", {in}, {out});
  const auto why = codegen::why_not_lowered({g, {n}, {out}});
  REQUIRE(why.has_value());
  CHECK(why->find("map: ") != std::string::npos);
  CHECK(why->find("HostNonZero") != std::string::npos);
  CHECK_FALSE(codegen::can_lower({g, {n}, {out}}));
  const codegen::lowering tried = codegen::try_lower({g, {n}, {out}});
  CHECK_FALSE(tried.made);
  CHECK(tried.why == *why);
  // A rank that nobody knows is an error of lower() and a reason of try_lower().
  g.facts(out).dims.reset();
  CHECK_FALSE(codegen::try_lower({g, {n}, {out}}).made);
  CHECK_THROWS_WITH(codegen::lower({g, {n}, {out}}), Catch::Contains("rank"));
}

// tests/oclgrind.sh compares this list with the kernels that ran.
TEST_CASE("names of all kernel versions", "[.][versions]") {
  for (const std::string_view name : codegen::kernel_versions)
    std::printf("dnnopt_%.*s\n", static_cast<int>(name.size()), name.data());
  SUCCEED();
}

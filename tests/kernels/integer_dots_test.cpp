// Products of bytes: each provider of dot products against the reference, whatever the types, zero points, which
// operand is constant, and the shapes; sums are whole numbers, so that they are equal to the bit.
#include "kernel_fixture.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <dnnopt/backend/measure/facts/dot_facts.hpp>
#include <dnnopt/dnnopt.hpp>

using namespace dnnopt;
using namespace dnnopt::testing;

namespace {

/// Bytes of all values, so that sums that are taken for another sign differ.
tensor bytes_of(dtype type, dim_list dims, std::uint32_t seed) {
  tensor t(type, std::move(dims));
  std::mt19937 engine(seed);
  for (std::byte& one : t.mutable_bytes()) one = static_cast<std::byte>(engine() & 255U);
  return t;
}

struct products_of_bytes : kernel_bench {
  products_of_bytes() {
    opencl::program_cache_options in_memory;
    in_memory.on_disk = false;
    opencl::program_cache programs(where(), in_memory);
    found = &opencl::measure_integer_dot(where(), programs);
  }
  /// Runs a node with each provider that works here, and holds the sums against the reference.
  void check(const node_case& c, std::string_view version) {
    const std::vector<tensor> want = expect(c);
    // What every device has takes turns with what this one has besides, which is run always.
    for (const codegen::integer_dot* provider : {found, &codegen::plain_dot}) {
      if (provider != found && ++checked % 4 != 0) break;
      CAPTURE(provider->name);
      dot = provider;
      const kernel_run got = run(c, device_form::vectors, want);
      CAPTURE(passed_over);
      CHECK(got.versions.back() == version);
      REQUIRE(std::ranges::equal(got.outputs[0].bytes(), want[0].bytes()));
      if (found == &codegen::plain_dot) break;
    }
  }
  const codegen::integer_dot* found = nullptr;
  int checked = 0;
};

constexpr std::array byte_types{dtype::uint8, dtype::int8};

}  // namespace

TEST_CASE_METHOD(products_of_bytes, "products of bytes of all signs, zero points and constants") {
  std::uint32_t seed = 1;
  for (const dtype a : byte_types)
    for (const dtype b : byte_types)
      for (const int zeros : {0, 1, 2}) {
        // Each operand is constant by turns.
        const auto constant = static_cast<int>(seed % 4);
        CAPTURE(name_of(a), name_of(b), zeros, constant);
        node_case c{"MatMulInteger",
                    {bytes_of(a, {7, 19}, ++seed), bytes_of(b, {19, 37}, ++seed)},
                    {constant % 2 != 0, constant >= 2, constant % 2 != 0, constant >= 2},
                    {},
                    1};
        if (zeros != 0) {
          c.inputs.push_back(bytes_of(a, zeros == 1 ? dim_list{} : dim_list{7}, ++seed));
          c.inputs.push_back(bytes_of(b, zeros == 1 ? dim_list{} : dim_list{37}, ++seed));
        }
        check(c, constant == 0 ? "dot_panels" : "dot_panels_packed");
      }
}

TEST_CASE_METHOD(products_of_bytes, "products of bytes of all shapes") {
  const std::vector<std::pair<dim_list, dim_list>> shapes{
      {{1, 1}, {1, 1}},          {{1, 3}, {3, 5}},         {{13, 4}, {4, 33}},
      {{25, 1027}, {1027, 40}},  {{64, 64}, {64, 64}},     {{2, 5, 9}, {2, 9, 17}},
      {{3, 1, 5, 7}, {2, 7, 6}}, {{2, 3, 4, 11}, {11, 3}}, {{100, 8}, {8, 2}},
  };
  std::uint32_t seed = 100;
  for (const auto& [a, b] : shapes)
    for (const bool constant : {false, true}) {
      CAPTURE(a, b, constant);
      const node_case c{
          "MatMulInteger",
          {bytes_of(dtype::uint8, a, ++seed), bytes_of(dtype::int8, b, ++seed), bytes_of(dtype::uint8, {}, ++seed)},
          {false, constant, false},
          {},
          1};
      check(c, constant ? "dot_panels_packed" : "dot_panels");
    }
}

TEST_CASE_METHOD(products_of_bytes, "products of bytes whose panels hold a part of what is summed") {
  local_memory = 8192;
  for (const bool constant : {false, true}) {
    const node_case c{"MatMulInteger",
                      {bytes_of(dtype::int8, {30, 3001}, 1), bytes_of(dtype::int8, {3001, 50}, 2),
                       bytes_of(dtype::int8, {}, 3), bytes_of(dtype::int8, {50}, 4)},
                      {false, constant, true, true},
                      {},
                      1};
    check(c, constant ? "dot_panels_packed" : "dot_panels");
  }
}

TEST_CASE_METHOD(products_of_bytes, "convolutions of bytes whose panels hold a part of what is summed") {
  local_memory = 8192;
  node_case c{"ConvInteger",
              {bytes_of(dtype::uint8, {1, 90, 9, 9}, 1), bytes_of(dtype::int8, {20, 90, 3, 3}, 2),
               bytes_of(dtype::uint8, {}, 3)},
              {false, true, true},
              {},
              1};
  c.attributes.set("pads", std::vector<std::int64_t>{1, 1, 1, 1});
  check(c, "dot_convolution");
}

TEST_CASE_METHOD(products_of_bytes, "convolutions of bytes") {
  struct convolution {
    dim_list x;
    dim_list w;
    std::vector<std::int64_t> pads;
    std::vector<std::int64_t> strides;
    std::vector<std::int64_t> dilations;
    std::int64_t group = 1;
  };
  const std::vector<convolution> all{
      {{1, 3, 9, 11}, {5, 3, 3, 3}, {1, 1, 1, 1}, {2, 2}, {1, 1}},
      {{2, 8, 7, 7}, {13, 8, 1, 1}, {0, 0, 0, 0}, {1, 1}, {1, 1}},
      {{1, 6, 5, 40}, {4, 6, 3, 5}, {0, 2, 1, 3}, {1, 3}, {2, 1}},
      {{2, 10, 6, 6}, {14, 5, 3, 3}, {1, 1, 1, 1}, {1, 1}, {1, 1}, 2},
      {{3, 4, 17}, {7, 4, 4}, {3, 0}, {1}, {1}},
      {{1, 5, 4, 5, 6}, {6, 5, 2, 2, 3}, {1, 0, 1, 0, 1, 1}, {1, 2, 1}, {1, 1, 1}},
      {{1, 1, 3, 3}, {2, 1, 3, 3}, {4, 4, 4, 4}, {1, 1}, {1, 1}},
      // Rows of the image that are longer than a panel, of one position, and far apart.
      {{1, 7, 6, 75}, {3, 7, 2, 3}, {0, 1, 0, 1}, {1, 1}, {1, 1}},
      {{2, 4, 40, 3}, {6, 4, 3, 3}, {1, 0, 1, 0}, {1, 1}, {1, 1}},
      {{1, 9, 31, 33}, {4, 9, 3, 5}, {2, 3, 2, 3}, {4, 5}, {3, 2}},
      {{1, 8, 14, 14}, {30, 8, 3, 3}, {1, 1, 1, 1}, {1, 1}, {1, 1}},
      {{1, 3, 30, 30}, {8, 3, 7, 7}, {3, 3, 3, 3}, {2, 2}, {1, 1}},
  };
  std::uint32_t seed = 200;
  int turn = 0;
  for (const convolution& one : all)
    for (const dtype w : byte_types) {
      // Types and kinds of zero points by turns.
      const dtype x = byte_types[static_cast<std::size_t>(turn / 2 % 2)];
      const int zeros = turn++ % 3;
      CAPTURE(one.x, one.w, name_of(x), name_of(w), zeros);
      node_case c{
          "ConvInteger", {bytes_of(x, one.x, ++seed), bytes_of(w, one.w, ++seed)}, {false, true, false, true}, {}, 1};
      if (zeros != 0) {
        c.inputs.push_back(bytes_of(x, {}, ++seed));
        c.inputs.push_back(bytes_of(w, zeros == 1 ? dim_list{} : dim_list{one.w[0]}, ++seed));
      }
      c.attributes.set("pads", one.pads);
      c.attributes.set("strides", one.strides);
      c.attributes.set("dilations", one.dilations);
      c.attributes.set("group", one.group);
      check(c, "dot_convolution");
    }
}

TEST_CASE_METHOD(products_of_bytes, "bytes of symbolic extents") {
  symbolic = true;
  for (const std::int64_t rows : {1, 3, 70}) {
    node_case c{"MatMulInteger",
                {bytes_of(dtype::uint8, {1, 2, rows, 21}, 1), bytes_of(dtype::int8, {21, 33}, 2),
                 bytes_of(dtype::uint8, {}, 3)},
                {false, true, true},
                {},
                1};
    check(c, "dot_panels_packed");
  }
  node_case c{"ConvInteger",
              {bytes_of(dtype::uint8, {2, 6, 9, 13}, 4), bytes_of(dtype::int8, {10, 6, 3, 3}, 5),
               bytes_of(dtype::uint8, {}, 6)},
              {false, true, true},
              {},
              1};
  c.attributes.set("pads", std::vector<std::int64_t>{1, 1, 1, 1});
  check(c, "dot_convolution");
}

TEST_CASE_METHOD(products_of_bytes, "nothing multiplies bytes where a device is told so") {
  const node_case c{
      "MatMulInteger", {bytes_of(dtype::uint8, {3, 5}, 1), bytes_of(dtype::int8, {5, 2}, 2)}, {false, true}, {}, 1};
  const kernel_run got = run(c, device_form::vectors, expect(c));
  CHECK(got.versions.back() == "map");
  CHECK(std::any_of(passed_over.begin(), passed_over.end(), [](const std::string& why) {
    return why.find("nothing was found that multiplies bytes") != std::string::npos;
  }));
}

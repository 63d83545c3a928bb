// Products of few rows with a constant matrix, of codes and of reals, and products of any number of rows with codes:
// each type of codes, what shares a scale, and shapes of all kinds, in both device forms.
#include "block_fixture.hpp"

#include <catch2/catch.hpp>

#include <array>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <dnnopt/backend/run/executor.hpp>
#include <dnnopt/session.hpp>

#include "../support/small_network.hpp"

using namespace dnnopt;
using namespace dnnopt::testing;

namespace {

/// All codes of a type at random.
tensor codes_of(dtype type, dim_list dims, std::uint32_t seed) {
  tensor t(type, std::move(dims));
  std::mt19937 random(seed);
  const unsigned bits = static_cast<unsigned>(row_of(type).packed_bits);
  const bool natural = kind_of(type) == dtype_kind::unsigned_integer;
  for (std::byte& one : t.mutable_bytes()) {
    const int code = static_cast<int>(random() & ((1U << bits) - 1U));
    one = static_cast<std::byte>(natural ? code : code - (1 << (bits - 1)));
  }
  return t;
}

/// What a matrix of codes [K, N] is dequantized by.
struct scaling {
  std::int64_t axis = 1;   ///< along which scales differ; 2: there is one for all
  std::int64_t block = 0;  ///< elements along it that share one
  bool zeros = true;
};

/// The node that dequantizes codes, in a graph that `add` and `constant` grow.
template <class Grow>
value_id dequantized(Grow&& grow, dtype type, const dim_list& dims, const scaling& s, dtype real, std::uint32_t seed) {
  dim_list each;
  attribute_map attributes;
  if (s.axis < 2) {
    each = s.block > 0 ? dims : dim_list{dims[static_cast<std::size_t>(s.axis)]};
    if (s.block > 0) {
      std::int64_t& blocks = each[static_cast<std::size_t>(s.axis)];
      blocks = (blocks + s.block - 1) / s.block;
      attributes.set("block_size", s.block);
    }
    attributes.set("axis", s.axis);
  }
  const tensor scale = random_tensor(real, each, seed + 1);
  std::vector<tensor> in{codes_of(type, dims, seed), scale};
  if (s.zeros) in.push_back(codes_of(type, each, seed + 2));
  return grow(in, attributes);
}

struct coded_products : blocks {
  coded_products() { work_group = 128; }
  /// Runs rows [m, K] times codes [K, N] (or their transpose, by Gemm) and holds the result against the reference.
  void check_product(device_form form, std::int64_t m, dtype type, const dim_list& dims, const scaling& s, bool turned,
                     const std::string& kernel) {
    CAPTURE(m, name_of(type), dims, s.axis, s.block, s.zeros, turned);
    g = graph();
    inputs.clear();
    const value_id x = input({m, turned ? dims[1] : dims[0]});
    const value_id w = dequantized(
        [&](std::vector<tensor>& in, const attribute_map& attributes) {
          std::vector<value_id> ids;
          for (tensor& t : in) ids.push_back(g.add_constant("w" + std::to_string(++seed), std::move(t)));
          return add("DequantizeLinear", ids, attributes);
        },
        type, dims, s, dtype::float32, ++seed);
    const value_id y = turned ? add("Gemm", {x, w}, with("transB", std::int64_t{1})) : add("MatMul", {x, w});
    g.add_output(add("Relu", {y}));
    check(form, {kernel});
  }
};

constexpr std::array all_code_types{dtype::int8, dtype::uint8, dtype::int4, dtype::uint4, dtype::int2, dtype::uint2};

}  // namespace

TEST_CASE_METHOD(coded_products, "few rows by codes of every type and scale, as natural and turned matrices") {
  for (const device_form form : {device_form::groups, device_form::vectors})
    for (const dtype type : all_code_types) {
      // A simulator takes its time, and types differ in how many codes a word has.
      if (left_out(type != dtype::uint4 && type != dtype::int8)) continue;
      const std::string kernel = form == device_form::groups ? "gemv" : "matrix_panels_codes";
      check_product(form, 1, type, {96, 37}, {1, 0, true}, false, kernel);
      check_product(form, 3, type, {200, 41}, {2, 0, true}, false, kernel);
      check_product(form, 2, type, {100, 33}, {0, 32, true}, false, kernel);
      check_product(form, 1, type, {70, 64}, {0, 16, false}, false, kernel);
      check_product(form, 5, type, {29, 130}, {1, 64, true}, true, kernel);
      check_product(form, 8, type, {40, 64}, {0, 0, false}, true, kernel);
    }
}

TEST_CASE_METHOD(coded_products, "codes are multiplied whatever the extents, and as many rows as there are") {
  const std::vector<std::pair<std::int64_t, dim_list>> shapes{{1, {1, 1}},     {1, {3000, 5}}, {8, {2049, 9}},
                                                              {4, {31, 1000}}, {7, {513, 66}}, {1, {8, 2}}};
  for (const auto& [m, dims] : shapes) {
    // Fewer inner elements than keep four shares of the sum busy are as well off in tiles.
    check_product(device_form::groups, m, dtype::int4, dims, {1, 0, true}, false, "gemv");
    check_product(device_form::vectors, m, dtype::int4, dims, {1, 0, true}, false, "matrix_panels_codes");
  }
  check_product(device_form::vectors, 100, dtype::uint4, {300, 70}, {0, 32, true}, false, "matrix_panels_codes");
  // A scale for each inner element, or for some that are no whole words, is dequantized before.
  check_product(device_form::groups, 1, dtype::int8, {12, 9}, {0, 0, true}, false, "matrix_tiles");
  check_product(device_form::groups, 1, dtype::int8, {12, 9}, {0, 3, true}, false, "matrix_tiles");
  // So is what has scales for blocks of columns, which differ from inner element to inner element.
  check_product(device_form::groups, 1, dtype::int8, {12, 16}, {1, 8, true}, false, "matrix_tiles");
  check_product(device_form::groups, 3, dtype::uint4, {16, 24}, {0, 8, false}, true, "matrix_tiles");
  check_product(device_form::vectors, 3, dtype::int8, {12, 16}, {1, 8, true}, false, "matrix_panels_packed");
  check_product(device_form::vectors, 2, dtype::uint8, {8, 40}, {0, 4, true}, true, "matrix_panels_packed");
  // One inner element has one.
  check_product(device_form::vectors, 2, dtype::int8, {1, 16}, {1, 4, true}, false, "matrix_panels_codes");
}

TEST_CASE_METHOD(coded_products, "few rows by reals are one kernel, more are not") {
  for (const dtype type : {dtype::float32, dtype::float16})
    for (const std::int64_t m : {1, 2}) {
      const std::vector<std::pair<std::int64_t, std::int64_t>> shapes{{1, 9}, {300, 77}, {64, 64}, {4099, 3}};
      for (const auto& [k, n] : shapes) {
        CAPTURE(name_of(type), m, k, n);
        const node_case c{
            "MatMul", {random_tensor(type, {m, k}, ++seed), random_tensor(type, {k, n}, ++seed)}, {false, true}, {}, 1};
        const std::vector<tensor> want = expect(c);
        const kernel_run got = run(c, device_form::groups, want);
        CHECK(got.versions.back() == "gemv");
        CHECK(relative_difference(got.outputs[0], want[0]) <= tolerance_of(type));
      }
    }
  const node_case many{"MatMul",
                       {random_tensor(dtype::float32, {3, 64}, 1), random_tensor(dtype::float32, {64, 64}, 2)},
                       {false, true},
                       {},
                       1};
  CHECK(run(many, device_form::groups, expect(many)).versions.back() == "matrix_tiles");
}

TEST_CASE("rows that only a run tells take the version for as many", "[versions][opencl][unsimulated]") {
  for (const dtype real : {dtype::float32, dtype::float16}) {
    network n;
    const value_id x = n.g.add_input("x", real, shape{n.g.expressions().symbol("rows"), 300});
    const value_id w = dequantized(
        [&](std::vector<tensor>& in, const attribute_map& attributes) {
          std::vector<value_id> ids;
          for (tensor& t : in) ids.push_back(n.g.add_constant("c" + std::to_string(ids.size()), std::move(t)));
          return n.node("DequantizeLinear", ids, attributes);
        },
        dtype::uint4, {300, 70}, {0, 32, true}, real, 7);
    const model m = n.finish(n.node("Relu", {n.node("MatMul", {x, w})}));
    session host = compile(m, {.device = "reference"});
    for (const kernel_form form : {kernel_form::vectors, kernel_form::groups}) {
      session device = compile(m, {.device = "opencl", .form = form});
      for (const std::int64_t rows : {1, 8, 9, 40, 2, 1}) {
        CAPTURE(name_of(real), rows);
        named_tensors given;
        given.add("x", random_tensor(real, {rows, 300}, 3));
        CHECK(relative_difference(device.run(given)[0], host.run(given)[0]) <= tolerance_of(real));
      }
    }
  }
}

TEST_CASE("weights in codes take the memory of their bits", "[opencl][unsimulated]") {
  network n;
  const value_id x = n.input("x", {4, 512});
  const value_id w = dequantized(
      [&](std::vector<tensor>& in, const attribute_map& attributes) {
        std::vector<value_id> ids;
        for (tensor& t : in) ids.push_back(n.g.add_constant("c" + std::to_string(ids.size()), std::move(t)));
        return n.node("DequantizeLinear", ids, attributes);
      },
      dtype::uint4, {512, 1024}, {0, 64, false}, dtype::float32, 7);
  const model m = n.finish(n.node("MatMul", {x, w}));
  for (const kernel_form form : {kernel_form::vectors, kernel_form::groups}) {
    session s = compile(m, {.device = "opencl", .form = form});
    // Half a byte for each code, four for each scale of 64.
    CHECK(static_cast<double>(s.executor()->weight_bytes()) <= 512 * 1024 * (0.5 + 4.0 / 64) * 1.01);
  }
}

// Element types of at most eight bits, and bfloat16, against the reference: conversions, reinterpreted bits,
// quantization.
#include "kernel_fixture.hpp"

#include <catch2/catch.hpp>

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include <dnnopt/reference/conversion.hpp>

using namespace dnnopt;
using namespace dnnopt::testing;

namespace {

constexpr std::array small_floats{dtype::float8e4m3fn,   dtype::float8e4m3fnuz, dtype::float8e5m2,
                                  dtype::float8e5m2fnuz, dtype::float4e2m1,     dtype::float8e8m0};
constexpr std::array small_integers{dtype::int4, dtype::uint4, dtype::int2, dtype::uint2};

/// Numbers around the borders of the small formats: each code's value, halves between codes, what overflows, specials.
tensor telling_floats() {
  std::vector<float> values{0.0F,
                            -0.0F,
                            std::numeric_limits<float>::infinity(),
                            -std::numeric_limits<float>::infinity(),
                            std::numeric_limits<float>::quiet_NaN(),
                            1e-45F,
                            5.8774717541114375e-39F,
                            8.8e-39F,
                            2.9e-39F,
                            3.4e38F,
                            -3.4e38F};
  for (int exponent = -20; exponent <= 18; ++exponent)
    for (int step = 0; step < 32; ++step) {
      const float value = std::ldexp(1.0F + static_cast<float>(step) / 32.0F, exponent);
      values.push_back(value);
      values.push_back(-value);
      values.push_back(std::nextafter(value, 0.0F));
    }
  tensor t(dtype::float32, {static_cast<std::int64_t>(values.size())});
  std::copy(values.begin(), values.end(), t.mutable_data<float>().begin());
  return t;
}

/// Every code that an element of the type may have.
tensor every_code(dtype type) {
  const int bits = row_of(type).packed_bits;
  tensor codes(dtype::uint8, {std::int64_t{1} << bits});
  for (std::size_t i = 0; i < codes.mutable_data<std::uint8_t>().size(); ++i) {
    const auto code = static_cast<unsigned>(i);
    const bool negative = kind_of(type) == dtype_kind::signed_integer && (code >> (bits - 1)) != 0;
    codes.mutable_data<std::uint8_t>()[i] = static_cast<std::uint8_t>(negative ? code | (0xFFU << bits) : code);
  }
  tensor t(type, codes.dims());
  std::copy(codes.bytes().begin(), codes.bytes().end(), t.mutable_bytes().begin());
  return t;
}

struct small_types : kernel_bench {
  void check(const node_case& c) {
    const std::vector<tensor> want = expect(c);
    const kernel_run got = run(c, device_form::vectors, want);
    CHECK(relative_difference(got.outputs[0], want[0]) <= 0);
  }
  void check_cast(const tensor& x, dtype to, std::int64_t saturate, const std::string& rounding) {
    CAPTURE(name_of(x.type()), name_of(to), saturate, rounding);
    node_case c{"Cast", {x}, {}, {}, 1};
    c.attributes.set("to", static_cast<std::int64_t>(to));
    c.attributes.set("saturate", saturate);
    c.attributes.set("round_mode", rounding);
    check(c);
  }
};

}  // namespace

TEST_CASE_METHOD(small_types, "floats become floats of at most eight bits as in the reference, and these floats") {
  const tensor floats = telling_floats();
  for (const dtype type : small_floats) {
    for (const std::int64_t saturate : {0, 1}) check_cast(floats, type, saturate, "up");
    check_cast(every_code(type), dtype::float32, 1, "up");
    check_cast(reference::conversion::cast(floats, dtype::float16), type, 1, "up");
  }
  for (const std::string rounding : {"down", "nearest"})
    for (const std::int64_t saturate : {0, 1}) check_cast(floats, dtype::float8e8m0, saturate, rounding);
  check_cast(floats, dtype::bfloat16, 1, "up");
  check_cast(floats, dtype::float16, 1, "up");
}

TEST_CASE_METHOD(small_types, "integers of four and two bits wrap") {
  const tensor wide = every_code(dtype::int8);
  for (const dtype type : small_integers) {
    check_cast(wide, type, 1, "up");
    check_cast(every_code(type), dtype::float32, 1, "up");
    check_cast(every_code(type), dtype::int8, 1, "up");
  }
}

TEST_CASE_METHOD(small_types, "bits are read as another type, of memory and of what a kernel computes") {
  const auto reinterpret = [&](const tensor& x, dtype to) {
    CAPTURE(name_of(x.type()), name_of(to));
    node_case c{"BitCast", {x}, {}, {}, 1};
    c.attributes.set("to", static_cast<std::int64_t>(to));
    check(c);
  };
  const tensor bytes = every_code(dtype::uint8);
  for (const dtype type : small_floats)
    if (row_of(type).packed_bits == 8) {
      reinterpret(bytes, type);
      reinterpret(every_code(type), dtype::int8);
    }
  reinterpret(every_code(dtype::uint4), dtype::float4e2m1);
  reinterpret(every_code(dtype::float4e2m1), dtype::int4);
  reinterpret(every_code(dtype::int2), dtype::uint2);
  const tensor floats = telling_floats();
  reinterpret(floats, dtype::int32);
  reinterpret(reference::conversion::cast(floats, dtype::bfloat16), dtype::uint16);
  reinterpret(reference::conversion::cast(floats, dtype::float16), dtype::int16);

  // Cast to bfloat16, and its bits, in one kernel.
  graph g;
  const value_id x = g.add_input("x", dtype::float32, to_shape(floats.dims()));
  const value_id narrow = g.add_value("narrow", dtype::bfloat16, to_shape(floats.dims()));
  const value_id bits = g.add_value("bits", dtype::uint16, to_shape(floats.dims()));
  attribute_map to_bfloat16;
  to_bfloat16.set("to", static_cast<std::int64_t>(dtype::bfloat16));
  attribute_map to_bits;
  to_bits.set("to", static_cast<std::int64_t>(dtype::uint16));
  const node_id cast = g.add_node(ops().at("", "Cast"), "cast", {x}, {narrow}, to_bfloat16);
  const node_id read = g.add_node(ops().at("", "BitCast"), "read", {narrow}, {bits}, to_bits);
  std::vector<std::pair<value_id, tensor>> values{{x, floats}, {bits, tensor(dtype::uint16, floats.dims())}};
  (void)run({g, {cast, read}, {bits}}, device_form::vectors, values);
  const tensor want = reference::conversion::cast(floats, dtype::bfloat16);
  std::size_t different = 0;
  for (std::size_t i = 0; i < want.data<bfloat16>().size(); ++i) {
    if (std::isnan(static_cast<float>(want.data<bfloat16>()[i]))) continue;
    different += values[1].second.data<std::uint16_t>()[i] != want.data<bfloat16>()[i].bits ? 1 : 0;
  }
  CHECK(different == 0);
}

TEST_CASE_METHOD(small_types, "a conversion and back in one kernel loses what the small type loses") {
  const tensor floats = telling_floats();
  for (const dtype type :
       {dtype::float8e4m3fn, dtype::float8e5m2fnuz, dtype::float4e2m1, dtype::bfloat16, dtype::float16}) {
    CAPTURE(name_of(type));
    graph g;
    const value_id x = g.add_input("x", dtype::float32, to_shape(floats.dims()));
    const value_id narrow = g.add_value("narrow", type, to_shape(floats.dims()));
    const value_id wide = g.add_value("wide", dtype::float32, to_shape(floats.dims()));
    attribute_map there;
    there.set("to", static_cast<std::int64_t>(type));
    attribute_map back;
    back.set("to", static_cast<std::int64_t>(dtype::float32));
    const node_id first = g.add_node(ops().at("", "Cast"), "first", {x}, {narrow}, there);
    const node_id second = g.add_node(ops().at("", "Cast"), "second", {narrow}, {wide}, back);
    std::vector<std::pair<value_id, tensor>> values{{x, floats}, {wide, tensor(dtype::float32, floats.dims())}};
    (void)run({g, {first, second}, {wide}}, device_form::vectors, values);
    const tensor want = reference::conversion::cast(reference::conversion::cast(floats, type), dtype::float32);
    CHECK(relative_difference(values[1].second, want) <= 0);
  }
}

TEST_CASE_METHOD(small_types, "quantization to and from small types, per tensor, per axis and in blocks") {
  const tensor x = random_tensor(dtype::float32, {3, 6, 5}, 7);
  const auto positive = [](dim_list dims) {
    tensor t(dtype::float32, std::move(dims));
    for (std::size_t i = 0; i < t.mutable_data<float>().size(); ++i)
      t.mutable_data<float>()[i] = 0.25F + 0.125F * static_cast<float>(i % 5);
    return t;
  };
  for (const dtype type : {dtype::float8e4m3fn, dtype::float8e4m3fnuz, dtype::float8e5m2, dtype::float8e5m2fnuz,
                           dtype::float4e2m1, dtype::int4, dtype::uint4, dtype::int2, dtype::uint2})
    for (const dim_list& dims : {dim_list{}, dim_list{6}, dim_list{3, 2, 5}}) {
      CAPTURE(name_of(type), dims);
      node_case there{"QuantizeLinear", {x, positive(dims), tensor(type, dims)}, {}, {}, 1};
      if (dims.size() > 1) there.attributes.set("block_size", std::int64_t{3});
      check(there);
      node_case back{"DequantizeLinear", {expect(there)[0], positive(dims), tensor(type, dims)}, {}, {}, 1};
      if (dims.size() > 1) back.attributes.set("block_size", std::int64_t{3});
      check(back);
    }
}

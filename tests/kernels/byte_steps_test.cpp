// Products and convolutions of codes in matrix steps of bytes, with the provider in plain OpenCL C, against the
// reference.
#include "block_fixture.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <dnnopt/backend/codegen/frames/steps/emit.hpp>
#include <dnnopt/backend/codegen/tuning.hpp>

using namespace dnnopt;
using namespace dnnopt::testing;

namespace {

/// An operand: the type of its codes, and a zero point that is 0 or one far from it.
struct code_kind {
  dtype type = dtype::int8;
  bool shifted = false;
};

struct byte_steps : blocks {
  byte_steps() {
    work_group = 256;
    providers.of_bytes = &codegen::plain_bytes;
  }
  value_id scale(float held) { return g.add_constant("scale" + std::to_string(++seed), tensor::scalar(held)); }
  value_id zero(code_kind kind) {
    tensor held(kind.type, {});
    if (kind.type == dtype::uint8) held.mutable_data<std::uint8_t>()[0] = kind.shifted ? 219 : 0;
    if (kind.type == dtype::int8) held.mutable_data<std::int8_t>()[0] = kind.shifted ? -97 : 0;
    return g.add_constant("zero" + std::to_string(++seed), std::move(held));
  }
  value_id dequantized(code_kind kind, dim_list dims, bool constant) {
    ++seed;
    tensor held = random_tensor(kind.type, std::move(dims), seed);
    // Codes of all values, the outermost too.
    std::uint8_t next = static_cast<std::uint8_t>(seed);
    for (std::byte& code : held.mutable_bytes())
      code = static_cast<std::byte>(next = static_cast<std::uint8_t>(next * 5 + 91));
    value_id codes = no_value;
    if (constant) {
      codes = g.add_constant("codes" + std::to_string(seed), std::move(held));
    } else {
      codes = g.add_input("x" + std::to_string(seed), kind.type, to_shape(held.dims()));
      inputs.push_back(std::move(held));
    }
    return add("DequantizeLinear", {codes, scale(1.0F / 64), zero(kind)});
  }
  [[nodiscard]] bool defines(const std::string& name, std::int64_t value) const {
    return std::string(plans.front().source).find("#define " + name + " " + std::to_string(value) + "\n") !=
           std::string::npos;
  }
  void check_steps(const char* version) {
    check(device_form::groups, {version});
    CHECK(plans.front().step == "plain_bytes");
  }
};

}  // namespace

TEST_CASE_METHOD(byte_steps, "products of codes in steps of bytes equal the reference, whatever their signs and zeros",
                 "[matrix_steps]") {
  const code_kind plain{dtype::int8, false};
  const code_kind shifted{dtype::int8, true};
  const code_kind natural{dtype::uint8, false};
  const code_kind both{dtype::uint8, true};
  // Copied by sixteens; by fours, or where zero points forbid it one by one; and such as no four divides. A processor's
  // compiler takes seconds for each.
  const auto [a, b, inner] =
      GENERATE_COPY(std::tuple{plain, plain, std::int64_t{128}}, std::tuple{shifted, shifted, std::int64_t{128}},
                    std::tuple{natural, shifted, std::int64_t{36}}, std::tuple{both, plain, std::int64_t{36}},
                    std::tuple{shifted, both, std::int64_t{36}}, std::tuple{both, both, std::int64_t{37}});
  CAPTURE(name_of(a.type), a.shifted, name_of(b.type), b.shifted, inner);
  if (left_out(inner == 128)) return;
  const value_id x = dequantized(a, {18, inner}, false);
  // Constant codes are turned once where lines of them divide into copies.
  const bool constant_codes = b.shifted || inner != 128;
  const value_id w = dequantized(b, {inner, 20}, constant_codes);
  g.add_output(add("MatMul", {x, w}));
  check_steps("matrix_steps");
  const bool turned = constant_codes && inner == 128;
  const bool copied = inner % 4 == 0 && (!a.shifted || inner == 128);
  CHECK(defines("DNNOPT_A_COPY", copied ? (inner == 128 ? 16 : 4) : 0));
  CHECK(defines("DNNOPT_A_CODES", copied ? 0 : 1));
  CHECK(defines("DNNOPT_B_CODES", turned ? 0 : 4));
  CHECK(defines("DNNOPT_B_COPY", turned ? 16 : 0));
  CHECK(defines("DNNOPT_A_SHIFTED", a.shifted ? 1 : 0));
  CHECK(defines("DNNOPT_B_SHIFTED", b.shifted ? 1 : 0));
}

TEST_CASE_METHOD(byte_steps, "small tiles and splits of products of codes in steps of bytes equal the reference",
                 "[matrix_steps]") {
  const std::size_t tile = GENERATE(range(std::size_t{0}, codegen::step_tile_table.size()));
  const std::int64_t splits = GENERATE(1, 3);
  const codegen::step_tile& sizes = codegen::step_tile_table[tile];
  // Fat tiles take a processor's compiler half a minute.
  const bool fat = sizes.row_steps * sizes.column_steps > 4;
  // What splits add is the same whatever the tile.
  if (sizes.operands != dtype::int8 || fat || (splits == 3 && sizes.stages != 2)) return;
  // Without room for it the choice is made as if nothing were tuned, and does not split so few.
  const bool fits =
      static_cast<std::uint64_t>(sizes.local_bytes(codegen::plain_bytes)) <= where().info().local_memory_bytes;
  if (left_out(splits == 1 || !fits) || (splits == 3 && !fits)) return;
  CAPTURE(tile, splits);
  // Both zero points, and a last tile that is not whole.
  const value_id x = dequantized({dtype::uint8, true}, {36, 300}, false);
  const value_id w = dequantized({dtype::int8, true}, {300, 72}, true);
  g.add_output(add("MatMul", {x, w}));
  codegen::tuning_table table;
  table.set("byte_steps 1 36 72 300", {static_cast<std::int64_t>(tile), splits});
  tuned = &table;
  if (splits == 1)
    check_steps("matrix_steps");
  else
    check(device_form::groups, {"matrix_steps", "matrix_partials"});
  tuned = nullptr;
  if (fits) CHECK(plans.front().local[0] == static_cast<std::size_t>(sizes.items(codegen::plain_bytes)));
}

TEST_CASE_METHOD(byte_steps, "the tiles of bytes are those that a tuner chooses among", "[matrix_steps]") {
  const codegen::tuning_space* const space = codegen::find_tuning_space("byte_steps");
  REQUIRE(space != nullptr);
  std::vector<std::int64_t> rows;
  for (std::size_t tile = 0; tile < codegen::step_tile_table.size(); ++tile)
    if (codegen::step_tile_table[tile].operands == dtype::int8) rows.push_back(static_cast<std::int64_t>(tile));
  const auto choices = space->parameters[0].choices();
  CHECK(std::equal(choices.begin(), choices.end(), rows.begin(), rows.end()));
}

TEST_CASE_METHOD(byte_steps, "operands of codes are read along either index", "[matrix_steps]") {
  const bool across = GENERATE(false, true);
  const std::int64_t m = GENERATE(16, 18);
  CAPTURE(across, m);
  if (left_out(m == 18)) return;
  const value_id x = dequantized({dtype::uint8, false}, across ? dim_list{48, m} : dim_list{m, 48}, false);
  const value_id w = dequantized({dtype::int8, false}, across ? dim_list{40, 48} : dim_list{48, 40}, across);
  attribute_map turned;
  turned.set("transA", std::int64_t{across ? 1 : 0});
  turned.set("transB", std::int64_t{across ? 1 : 0});
  g.add_output(add("Gemm", {x, w, constant({40})}, turned));
  check_steps("matrix_steps");
  CHECK(defines("DNNOPT_A_COPY", across ? 0 : 16));
  CHECK(defines("DNNOPT_A_CODES", !across ? 0 : m == 16 ? 4 : 1));
  CHECK(defines("DNNOPT_B_COPY", across ? 16 : 0));
}

TEST_CASE_METHOD(byte_steps, "convolutions of codes in steps of bytes equal the reference", "[matrix_steps]") {
  // Weights that are computed are not turned, so that windows are gathered; where fours divide planes they are copied.
  const std::int64_t kernel = GENERATE(1, 3);
  const std::int64_t side = GENERATE(7, 8);
  const std::int64_t group = GENERATE(1, 2);
  const code_kind image = kernel == 3 ? code_kind{dtype::uint8, true} : code_kind{dtype::int8, false};
  if (group == 2 && (kernel == 1 || side == 7)) return;
  CAPTURE(kernel, side, group, name_of(image.type));
  if (left_out(group == 2)) return;
  const value_id x = dequantized(image, {2, 12, 5, side}, false);
  const bool constant_weights = kernel == 1 && side == 8;
  const value_id w = dequantized({dtype::int8, false}, {10, 12 / group, kernel, kernel}, constant_weights);
  const value_id y = add("Conv", {x, w, constant({10})}, window(kernel, kernel / 2, 1, group));
  g.add_output(add("QuantizeLinear", {add("Relu", {y}), scale(4), zero(image)}));
  check_steps("convolution_steps");
  CHECK(defines("DNNOPT_B_GATHERED", kernel == 3 && 5 * side % 4 == 0 ? 1 : 0));
}

TEST_CASE_METHOD(byte_steps, "windows of codes are copied from lines of an image's channels", "[matrix_steps]") {
  struct row {
    dim_list x;
    std::int64_t outputs, kernel, pad, stride, dilation, group;
    bool shifted, computed;
    int copy;
  };
  // Channels that fill copies of sixteen, eight and four, or leave one to fill up; with zero points and without;
  // groups; windows of one element that leave places out; an image that is quantized on its way; one and three spatial
  // dims.
  const row r = GENERATE(
      row{{2, 16, 5, 8}, 10, 3, 1, 1, 1, 1, true, false, 16}, row{{1, 8, 7, 6}, 5, 3, 2, 2, 2, 1, false, false, 8},
      row{{3, 3, 9, 7}, 12, 5, 2, 2, 1, 1, true, true, 4}, row{{2, 32, 5, 4}, 10, 3, 1, 1, 1, 2, true, false, 16},
      row{{2, 20, 6, 7}, 9, 1, 0, 2, 1, 1, true, false, 4}, row{{1, 5, 11}, 7, 4, 3, 1, 1, 1, true, false, 4},
      row{{1, 6, 4, 3, 5}, 4, 2, 1, 1, 1, 1, false, false, 4});
  CAPTURE(r.x, r.kernel, r.group, r.shifted);
  if (left_out(r.x.size() != 4 || r.copy == 16 || r.computed)) return;
  const code_kind image{dtype::uint8, r.shifted};
  const value_id x = r.computed
                         ? add("DequantizeLinear", {add("QuantizeLinear", {input(r.x), scale(1.0F / 64), zero(image)}),
                                                    scale(1.0F / 64), zero(image)})
                         : dequantized(image, r.x, false);
  dim_list weights(r.x.size(), r.kernel);
  weights[0] = r.outputs;
  weights[1] = r.x[1] / r.group;
  const value_id w = dequantized({dtype::int8, false}, weights, true);
  const std::size_t rank = r.x.size() - 2;
  attribute_map a;
  a.set("pads", std::vector<std::int64_t>(2 * rank, r.pad));
  a.set("strides", std::vector<std::int64_t>(rank, r.stride));
  a.set("dilations", std::vector<std::int64_t>(rank, r.dilation));
  a.set("group", r.group);
  g.add_output(add("Conv", {x, w, constant({r.outputs})}, a));
  check(device_form::groups, {"convolution_lines", "convolution_steps"});
  CHECK(plans.back().step == "plain_bytes");
  CHECK(std::string(plans.back().source).find("#define DNNOPT_B_COPY " + std::to_string(r.copy) + "\n") !=
        std::string::npos);
}

TEST_CASE_METHOD(byte_steps, "codes that are computed with the product are multiplied as bytes too", "[matrix_steps]") {
  if (left_out(false)) return;
  const code_kind kind{dtype::uint8, true};
  const value_id codes = add("QuantizeLinear", {input({18, 40}), scale(1.0F / 64), zero(kind)});
  const value_id x = add("DequantizeLinear", {codes, scale(1.0F / 64), zero(kind)});
  g.add_output(add("MatMul", {x, dequantized({dtype::int8, false}, {40, 24}, true)}));
  check_steps("matrix_steps");
}

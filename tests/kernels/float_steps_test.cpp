// Products and convolutions of floats in matrix steps, with the provider in plain OpenCL C, against the reference.
#include "block_fixture.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <dnnopt/backend/codegen/frames/steps/emit.hpp>
#include <dnnopt/backend/codegen/tuning.hpp>

using namespace dnnopt;
using namespace dnnopt::testing;

namespace {

tensor f32(dim_list dims, std::uint32_t seed) { return random_tensor(dtype::float32, std::move(dims), seed); }

struct float_steps : kernel_bench {
  float_steps() {
    work_group = 256;
    providers.of_floats = &codegen::plain_floats;
  }
  /// Runs the case; the last kernel is of that version, or adds the sums of one that is.
  kernel_run check(const node_case& c, const std::string& version) {
    const std::vector<tensor> want = expect(c);
    kernel_run got = run(c, device_form::groups, want);
    std::vector<std::string> ran = got.versions;
    if (ran.size() > 1 && ran.back() == "matrix_partials") ran.pop_back();
    REQUIRE_FALSE(ran.empty());
    CAPTURE(passed_over);
    CHECK(ran.back() == version);
    CHECK(plans.front().step == "plain_floats");
    CHECK(relative_difference(got.outputs[0], want[0]) <= tolerance_of(want[0].type()));
    return got;
  }
  [[nodiscard]] bool defines(const std::string& name, std::int64_t value) const {
    return std::string(plans.front().source).find("#define " + name + " " + std::to_string(value) + "\n") !=
           std::string::npos;
  }
};

node_case matmul(dim_list a, dim_list b, bool constant = false) {
  return {"MatMul", {f32(std::move(a), 1), f32(std::move(b), 2)}, {false, constant}, {}, 1};
}

}  // namespace

TEST_CASE_METHOD(float_steps, "products of floats in steps equal the reference, whatever their extents",
                 "[matrix_steps]") {
  const std::vector<std::pair<dim_list, dim_list>> shapes{
      {{1, 1}, {1, 1}}, {{2, 3, 5, 7}, {2, 3, 7, 13}}, {{7}, {7, 5}}, {{36, 64}, {64, 68}}, {{3, 1, 5, 7}, {2, 7, 5}}};
  for (const auto& [a, b] : shapes) {
    if (left_out(a.back() > 7)) continue;
    CAPTURE(a, b);
    check(matmul(a, b), "matrix_steps");
  }
  if (!is_simulated()) check(matmul({25, 300}, {300, 37}, true), "matrix_steps");
}

TEST_CASE_METHOD(float_steps, "every tile and split of products of floats in steps equals the reference",
                 "[matrix_steps]") {
  const std::vector<std::pair<node_case, std::string>> products{
      {matmul({36, 96}, {96, 72}), "float_steps 1 36 72 96"},
      {matmul({2, 17, 77}, {2, 77, 35}), "float_steps 2 17 35 77"}};
  for (const auto& [product, shape] : products)
    for (std::size_t tile = 0; tile < codegen::step_tile_table.size(); ++tile)
      for (const std::int64_t splits : {1, 3}) {
        const codegen::step_tile& sizes = codegen::step_tile_table[tile];
        // Fat tiles take a processor's compiler seconds.
        const bool fat = sizes.row_steps * sizes.column_steps > 4;
        if (sizes.operands != dtype::float32 || (fat && (splits == 3 || product.inputs[0].rank() == 3))) continue;
        // What splits add is the same whatever the tile: one for each product.
        if (splits == 3 && sizes.wave_rows != 1) continue;
        if (left_out(sizes.row_steps * sizes.column_steps > 1 || product.inputs[0].rank() == 3)) continue;
        CAPTURE(shape, tile, splits);
        codegen::tuning_table table;
        table.set(shape, {static_cast<std::int64_t>(tile), splits});
        tuned = &table;
        check(product, "matrix_steps");
        tuned = nullptr;
        const std::int64_t inner = product.inputs[0].dims().back();
        if ((splits == 1 || inner > (splits - 1) * codegen::round_up((inner + splits - 1) / splits, sizes.inner)) &&
            static_cast<std::uint64_t>(sizes.local_bytes(codegen::plain_floats)) <= where().info().local_memory_bytes)
          CHECK(plans.front().local[0] == static_cast<std::size_t>(sizes.items(codegen::plain_floats)));
      }
  CHECK(codegen::find_tuning_space("float_steps")->parameters[0].count ==
        static_cast<std::size_t>(
            std::count_if(codegen::step_tile_table.begin(), codegen::step_tile_table.end(),
                          [](const codegen::step_tile& tile) { return tile.operands == dtype::float32; })));
  for (const std::int64_t row : codegen::find_tuning_space("float_steps")->parameters[0].choices())
    CHECK(codegen::step_tile_table.at(static_cast<std::size_t>(row)).operands == dtype::float32);
}

TEST_CASE_METHOD(float_steps, "operands of floats are read along either index, several at once where they may be",
                 "[matrix_steps]") {
  // Both along their rows and both across them, of extents that fours, twos and nothing divide.
  for (const bool across : {false, true})
    for (const std::int64_t m : {16, 7})
      for (const std::int64_t k : {48, 22}) {
        if (left_out((m == 16) != (k == 22))) continue;
        CAPTURE(across, m, k);
        node_case c{"Gemm",
                    {f32(across ? dim_list{k, m} : dim_list{m, k}, 1),
                     f32(across ? dim_list{40, k} : dim_list{k, 40}, 2), f32({40}, 3)},
                    {false, true, true},
                    {},
                    1};
        c.attributes.set("transA", std::int64_t{across ? 1 : 0});
        c.attributes.set("transB", std::int64_t{across ? 1 : 0});
        c.attributes.set("alpha", 0.5f);
        check(c, "matrix_steps");
        const std::int64_t along = across ? m : k;
        CHECK(defines("DNNOPT_A_COPY", along % 4 == 0 ? 4 : along % 2 == 0 ? 2 : 1));
        CHECK(defines("DNNOPT_A_INNER_FIRST", across ? 0 : 1));
      }
}

TEST_CASE_METHOD(float_steps, "convolutions of floats in steps equal the reference", "[matrix_steps]") {
  struct row {
    dim_list x, w;
    std::int64_t pad, stride, dilation, group;
  };
  const std::vector<row> rows{
      {{1, 16, 9, 11}, {20, 16, 1, 1}, 0, 1, 1, 1},
      {{2, 5, 13, 13}, {25, 5, 3, 3}, 1, 1, 1, 1},
      {{3, 8, 8, 8}, {24, 8, 1, 1}, 0, 1, 1, 1},
      {{1, 8, 12, 9}, {16, 4, 3, 3}, 2, 1, 2, 2},
  };
  for (const row& r : rows) {
    if (left_out(r.x[1] != 8)) continue;
    CAPTURE(r.x, r.w);
    node_case c{"Conv", {f32(r.x, 1), f32(r.w, 2), f32({r.w[0]}, 3)}, {false, true, true}, {}, 1};
    c.attributes.set("pads", std::vector<std::int64_t>{r.pad, r.pad, r.pad, r.pad});
    c.attributes.set("strides", std::vector<std::int64_t>{r.stride, r.stride});
    c.attributes.set("dilations", std::vector<std::int64_t>{r.dilation, r.dilation});
    c.attributes.set("group", r.group);
    check(c, "convolution_steps");
  }
}

TEST_CASE_METHOD(float_steps, "infinities, NaN and what overflows are as in sums of floats", "[matrix_steps]") {
  constexpr float inf = std::numeric_limits<float>::infinity();
  for (const std::int64_t splits : {1, 3}) {
    CAPTURE(splits);
    node_case c = matmul({20, 96}, {96, 24});
    for (float& x : c.inputs[0].mutable_data<float>()) x = std::fabs(x) + 0.1f;
    for (float& x : c.inputs[1].mutable_data<float>()) x = std::fabs(x) + 0.1f;
    c.inputs[0].mutable_data<float>()[3 * 96 + 5] = inf;
    c.inputs[0].mutable_data<float>()[7 * 96 + 90] = std::numeric_limits<float>::quiet_NaN();
    c.inputs[0].mutable_data<float>()[9 * 96] = 1e30f;
    c.inputs[1].mutable_data<float>()[11] = 1e30f;
    c.inputs[1].mutable_data<float>()[50 * 24 + 17] = -inf;
    codegen::tuning_table table;
    table.set("float_steps 1 20 24 96", {22, splits});
    tuned = &table;
    const std::vector<tensor> want = expect(c);
    const kernel_run got = run(c, device_form::groups, want);
    tuned = nullptr;
    CHECK(plans.front().step == "plain_floats");
    for (std::size_t i = 0; i < static_cast<std::size_t>(want[0].size()); ++i) {
      CAPTURE(i);
      const float w = want[0].data<float>()[i];
      const float g = got.outputs[0].data<float>()[i];
      if (std::isfinite(w)) {
        CHECK(std::fabs(w - g) <= 2e-5f * std::fabs(w));
      } else {
        CHECK(std::isnan(w) == std::isnan(g));
        if (!std::isnan(w)) CHECK(w == g);
      }
    }
  }
}

TEST_CASE_METHOD(float_steps, "halves go to steps of halves, and integers to none", "[matrix_steps]") {
  providers = {&codegen::plain_step, nullptr, &codegen::plain_floats};
  const node_case halves{
      "MatMul", {random_tensor(dtype::float16, {20, 24}, 1), random_tensor(dtype::float16, {24, 28}, 2)}, {}, {}, 1};
  (void)run(halves, device_form::groups, expect(halves));
  CHECK(plans.front().step == "plain");
  (void)check(matmul({20, 24}, {24, 28}), "matrix_steps");
  const node_case integers{
      "MatMul", {random_tensor(dtype::int32, {20, 24}, 1), random_tensor(dtype::int32, {24, 28}, 2)}, {}, {}, 1};
  (void)run(integers, device_form::groups, expect(integers));
  CHECK(plans.front().step.empty());
}

namespace {

struct stepped_float_blocks : blocks {
  stepped_float_blocks() {
    work_group = 256;
    providers.of_floats = &codegen::plain_floats;
  }
};

}  // namespace

TEST_CASE_METHOD(stepped_float_blocks, "what stands around a product of floats in steps runs in its kernel",
                 "[matrix_steps]") {
  const value_id x = input({2, 24, 48});
  const value_id r = input({2, 24, 64});
  const value_id w = constant({48, 64});
  const value_id bias = constant({64});
  const value_id before = add("Mul", {add("Relu", {x}), constant({48})});
  const value_id y = add("Add", {add("Add", {add("MatMul", {before, w}), bias}), r});
  const value_id heads = add("Reshape", {y, integers({2, 24, 4, 16})});
  g.add_output(add("Transpose", {heads}, with("perm", std::vector<std::int64_t>{0, 2, 1, 3})));
  check(device_form::groups, {"matrix_steps"});
}

TEST_CASE_METHOD(stepped_float_blocks, "results that a run tells are computed in steps where these take less",
                 "[matrix_steps]") {
  const index_expr rows = g.expressions().symbol("rows");
  const std::int64_t count = GENERATE(5, 3000);
  if (left_out(count > 5)) return;
  inputs.push_back(random_tensor(dtype::float32, {count, 20}, 1));
  const value_id x = g.add_input("x", dtype::float32, shape{rows, 20});
  symbols.bind(*rows.as_symbol(), count);
  g.add_output(add("MatMul", {x, constant({20, 24})}));
  check(device_form::groups, {"matrix_steps"});
}

TEST_CASE_METHOD(stepped_float_blocks, "few positions that a run tells are convolved in tiles, many in steps",
                 "[matrix_steps]") {
  const index_expr side = g.expressions().symbol("side");
  const std::int64_t count = GENERATE(3, 64);
  if (left_out(count > 3)) return;
  inputs.push_back(random_tensor(dtype::float32, {1, 8, count, count}, 1));
  const value_id x = g.add_input("x", dtype::float32, shape{1, 8, side, side});
  symbols.bind(*side.as_symbol(), count);
  g.add_output(add("Conv", {x, constant({24, 8, 1, 1})}));
  check(device_form::groups, {count == 3 ? "convolution_tiles" : "convolution_steps"});
}

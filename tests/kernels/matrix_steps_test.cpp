// Products and convolutions of halves in matrix steps, with the provider in plain OpenCL C, against the reference.
#include "../support/largest_difference.hpp"
#include "block_fixture.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <dnnopt/backend/codegen/frames/gemv/choose.hpp>
#include <dnnopt/backend/codegen/frames/steps/attention.hpp>
#include <dnnopt/backend/codegen/frames/steps/emit.hpp>
#include <dnnopt/backend/measure/facts/step_facts.hpp>
#include <dnnopt/backend/run/combine_sources.hpp>

using namespace dnnopt;
using namespace dnnopt::testing;

namespace {

tensor f16(dim_list dims, std::uint32_t seed) { return random_tensor(dtype::float16, std::move(dims), seed); }

struct steps : kernel_bench {
  steps() {
    work_group = 256;
    providers = {&codegen::plain_step, nullptr};
  }
  /// Runs the case with plain steps, those from tiles too where `tiles`, and compares; the last kernel is of that
  /// version, or adds the sums of one that is.
  void check(const node_case& c, const std::string& version, bool tiles = true) {
    const std::vector<tensor> want = expect(c);
    const codegen::step_providers wanted = providers;
    if (tiles && wanted.of_waves != nullptr && !is_simulated()) {
      providers = {nullptr, &codegen::plain_tiles};
      compare(c, version, want);
      if (version.ends_with("steps")) CHECK(plans.front().step == "plain_tiles");
    }
    providers = wanted;
    compare(c, version, want);
  }
  void compare(const node_case& c, const std::string& version, const std::vector<tensor>& want) {
    const kernel_run got = run(c, device_form::groups, want);
    std::vector<std::string> ran = got.versions;
    if (ran.size() > 1 && ran.back() == "matrix_partials") ran.pop_back();
    REQUIRE_FALSE(ran.empty());
    CAPTURE(passed_over);
    CHECK(ran.back() == version);
    CHECK(largest_difference(got.outputs[0], want[0]) <= tolerance_of(want[0].type()));
  }
  void check_tuned(const node_case& c, const std::string& shape, std::vector<std::int64_t> values,
                   const std::string& version) {
    codegen::tuning_table table;
    table.set(shape, std::move(values));
    tuned = &table;
    compare(c, version, expect(c));
    tuned = nullptr;
  }
};

node_case matmul(dim_list a, dim_list b, bool constant = false) {
  return {"MatMul", {f16(std::move(a), 1), f16(std::move(b), 2)}, {false, constant}, {}, 1};
}

}  // namespace

TEST_CASE_METHOD(steps, "products of halves in steps equal the reference, whatever their extents", "[matrix_steps]") {
  const std::vector<std::pair<dim_list, dim_list>> shapes{
      {{1, 1}, {1, 1}},     {{13, 7}, {7, 1}},      {{2, 3, 5, 7}, {2, 3, 7, 13}}, {{3, 1, 5, 7}, {2, 7, 5}},
      {{7}, {7, 5}},        {{5, 7}, {7}},          {{36, 64}, {64, 68}},          {{2, 36, 24}, {2, 24, 40}},
      {{70, 12}, {12, 70}}, {{25, 300}, {300, 37}}, {{17, 40}, {40, 16}},          {{2, 3, 5, 7}, {7, 13}},
  };
  for (const auto& [a, b] : shapes)
    for (const bool constant : {false, true}) {
      // Few rows by a constant matrix are another kernel.
      if (constant && (a.size() != 2 || a[0] <= codegen::most_real_gemv_rows)) continue;
      if (left_out(a.back() > 64)) continue;
      CAPTURE(a, b, constant);
      check(matmul(a, b, constant), "matrix_steps", !constant);
      CHECK(plans.front().step == "plain");
    }
}

TEST_CASE_METHOD(steps, "every tile and split of products in steps equals the reference", "[matrix_steps]") {
  const std::int64_t summed = is_simulated() ? 48 : 96;
  const std::vector<std::pair<node_case, std::string>> products{
      {matmul({36, summed}, {summed, 72}), "matrix_steps 1 36 72 " + std::to_string(summed)},
      {matmul({2, 17, 77}, {2, 77, 35}), "matrix_steps 2 17 35 77"}};
  for (const auto& [product, shape] : products)
    for (std::size_t tile = 0; tile < codegen::step_tile_table.size(); ++tile)
      for (const std::int64_t splits : {1, 3}) {
        const codegen::step_tile& sizes = codegen::step_tile_table[tile];
        if (sizes.operands != dtype::float16) continue;
        // Fat tiles take a processor's compiler seconds.
        const bool fat = sizes.row_steps * sizes.column_steps > 4 && !sizes.from_tiles;
        if (left_out(sizes.from_tiles)) continue;
        const bool wide = sizes.from_tiles && sizes.column_steps > 4;
        if ((fat || wide || splits == 3) && product.inputs[0].rank() == 3) continue;
        if (left_out(product.inputs[0].rank() == 3 && sizes.row_steps * sizes.column_steps > 1)) continue;
        if (left_out(splits == 3 && sizes.row_steps * sizes.column_steps > 2)) continue;
        if (fat && splits == 3) continue;
        CAPTURE(shape, tile, splits);
        providers = {&codegen::plain_step, sizes.from_tiles ? &codegen::plain_tiles : nullptr};
        check_tuned(product, shape, {static_cast<std::int64_t>(tile), splits}, "matrix_steps");
        const std::int64_t inner = product.inputs[0].dims().back();
        const bool taken =
            (splits == 1 || inner > (splits - 1) * codegen::round_up((inner + splits - 1) / splits, sizes.inner)) &&
            static_cast<std::uint64_t>(sizes.local_bytes(codegen::plain_step)) <= where().info().local_memory_bytes;
        if (taken) {
          CHECK(plans.front().local[0] == static_cast<std::size_t>(sizes.items(codegen::plain_step)));
          CHECK(plans.front().step == (sizes.from_tiles ? "plain_tiles" : "plain"));
        }
      }
}

TEST_CASE_METHOD(steps, "a product from tiles equals the reference", "[matrix_steps]") {
  providers = {nullptr, &codegen::plain_tiles};
  const node_case product = matmul({5, 20}, {20, 9});
  compare(product, "matrix_steps", expect(product));
  CHECK(plans.front().step == "plain_tiles");
}

TEST_CASE_METHOD(steps, "operands of products in steps are read along either index, several at once where they may be",
                 "[matrix_steps]") {
  for (const bool first : {false, true})
    for (const bool second : {false, true})
      for (const std::int64_t m : {16, 20, 34, 7})
        for (const std::int64_t k : {48, 36, 22, 9}) {
          // One row and one column of that table tell the accesses apart.
          if (left_out((m != 7 && k != 22) || first != second)) continue;
          CAPTURE(first, second, m, k);
          node_case c{"Gemm",
                      {f16(first ? dim_list{k, m} : dim_list{m, k}, 1),
                       f16(second ? dim_list{40, k} : dim_list{k, 40}, 2), f16({40}, 3)},
                      {false, true, true},
                      {},
                      1};
          c.attributes.set("transA", std::int64_t{first ? 1 : 0});
          c.attributes.set("transB", std::int64_t{second ? 1 : 0});
          c.attributes.set("alpha", 0.5f);
          // A processor's compiler takes most of the time.
          check(c, "matrix_steps", (m == 16 || m == 7) && (k == 48 || k == 9));
          const std::string source = std::string(plans.front().source);
          const std::int64_t along = first ? m : k;
          const std::int64_t width = along % 8 == 0 ? 8 : along % 4 == 0 ? 4 : along % 2 == 0 ? 2 : 0;
          CHECK(source.find("#define DNNOPT_A_COPY " + std::to_string(width) + "\n") != std::string::npos);
          // Single loads follow the operand's last dim, which Gemm's transposition moves.
          const std::string direction = "#define DNNOPT_A_INNER_FIRST " + std::string(first ? "0" : "1") + "\n";
          CHECK(source.find(direction) != std::string::npos);
        }
}

namespace {

/// A convolution's operands and attributes, the same along both spatial dims.
struct shape_row {
  dim_list x, w;
  std::int64_t pad, stride, dilation, group;

  [[nodiscard]] node_case convolution(bool constant) const {
    node_case c{"Conv", {f16(x, 1), f16(w, 2), f16({w[0]}, 3)}, {false, constant, true}, {}, 1};
    c.attributes.set("pads", std::vector<std::int64_t>{pad, pad, pad, pad});
    c.attributes.set("strides", std::vector<std::int64_t>{stride, stride});
    c.attributes.set("dilations", std::vector<std::int64_t>{dilation, dilation});
    c.attributes.set("group", group);
    return c;
  }
};

}  // namespace

TEST_CASE_METHOD(steps, "convolutions of halves in steps equal the reference", "[matrix_steps]") {
  const std::vector<shape_row> rows{
      {{1, 16, 9, 11}, {20, 16, 1, 1}, 0, 1, 1, 1}, {{2, 5, 13, 13}, {25, 5, 3, 3}, 1, 1, 1, 1},
      {{1, 64, 7, 7}, {16, 64, 3, 3}, 1, 2, 1, 1},  {{3, 8, 8, 8}, {24, 8, 1, 1}, 0, 1, 1, 1},
      {{1, 8, 12, 9}, {16, 4, 3, 3}, 2, 1, 2, 2},   {{2, 12, 7, 7}, {36, 12, 1, 1}, 0, 2, 1, 1},
      {{1, 3, 21, 17}, {18, 3, 7, 7}, 3, 2, 1, 1},
  };
  for (const shape_row& r : rows)
    for (const bool constant : {true, false}) {
      CAPTURE(r.x, r.w, constant);
      // The largest are left out, and of weights that are no constants all but two.
      if (left_out(constant ? r.x[1] == 64 || r.w[2] == 7 : r.x[1] != 5 && r.group == 1)) continue;
      const node_case c = r.convolution(constant);
      check(c, "convolution_steps");
    }
  node_case line{"Conv", {f16({2, 8, 37}, 1), f16({12, 8, 5}, 2)}, {false, true}, {}, 1};
  check(line, "convolution_steps");
}

TEST_CASE_METHOD(steps, "convolutions in steps read and write texels along channels", "[matrix_steps]") {
  const std::vector<shape_row> rows{
      {{2, 8, 9, 11}, {20, 8, 3, 3}, 1, 1, 1, 1},  {{1, 40, 7, 7}, {13, 40, 3, 3}, 1, 2, 1, 1},
      {{3, 6, 8, 8}, {24, 6, 1, 1}, 0, 1, 1, 1},   {{1, 16, 12, 9}, {16, 8, 3, 3}, 2, 1, 2, 2},
      {{2, 12, 7, 7}, {36, 12, 1, 1}, 0, 2, 1, 1}, {{1, 3, 21, 17}, {18, 3, 7, 7}, 3, 2, 1, 1},
  };
  const texel_layout layout{1, memory_object::buffer, 0};
  for (const shape_row& r : is_simulated() ? std::vector(rows.begin() + 3, rows.begin() + 4) : rows)
    for (const bool read : {true, false})
      for (const bool written : {true, false}) {
        if (!read && !written) continue;
        CAPTURE(r.x, r.w, read, written);
        node_case c = r.convolution(true);
        if (read) c.texels = {layout};
        // Texels of a group's results hold no others.
        if (written && (r.group == 1 || r.w[0] / r.group % 4 == 0)) c.result_texels = {layout};
        // What fills the caller's texels may be anything, so that it is not multiplied.
        if (read && r.x[1] % 4 != 0) {
          compare(c, "convolution_tiles", expect(c));
          continue;
        }
        check(c, "convolution_steps");
        const std::string source = std::string(plans.front().source);
        CHECK((source.find("#define DNNOPT_B_TESTED 1\n") != std::string::npos) == read);
      }
  // What steps cannot copy takes other frames: weights that are computed, texels along another dim.
  node_case computed{"Conv", {f16({1, 8, 6, 6}, 1), f16({8, 8, 3, 3}, 2)}, {false, false}, {}, 1};
  CHECK_NOTHROW(compare(computed, "convolution_steps", expect(computed)));
  node_case c{"Conv", {f16({1, 8, 6, 6}, 1), f16({8, 8, 3, 3}, 2)}, {false, true}, {}, 1};
  c.texels = {texel_layout{2, memory_object::buffer, 0}};
  const std::vector<std::string> ran = run(c, device_form::groups, expect(c)).versions;
  CHECK(std::find(ran.begin(), ran.end(), "convolution_steps") == ran.end());
}

TEST_CASE_METHOD(steps, "kernels in steps build beside each other in one program", "[matrix_steps]") {
  std::vector<codegen::kernel_plan> all;
  const node_case attention{
      "Attention", {f16({1, 2, 20, 16}, 1), f16({1, 2, 24, 16}, 2), f16({1, 2, 24, 16}, 3)}, {}, {}, 1};
  for (const node_case& c :
       {matmul({16, 32}, {32, 24}), matmul({16, 33}, {33, 24}), matmul({24, 32}, {32, 24}), attention}) {
    (void)run(c, device_form::groups, expect(c));
    all.push_back(plans.front());
  }
  std::vector<const codegen::kernel_plan*> handed;
  for (const codegen::kernel_plan& plan : all) handed.push_back(&plan);
  const joined_programs joined = join_sources(handed);
  REQUIRE(joined.programs.size() == 1);
  opencl::program_cache programs(where(), {.on_disk = false, .folder = {}});
  // Nothing may be declared implicitly or twice, which some compilers only warn of.
  const std::string options = joined.programs[0].options + " -Werror";
  CHECK_NOTHROW(programs.build({"joined", joined.programs[0].source, options}));
}

TEST_CASE_METHOD(steps, "products that hold no halves, or on other devices, run without steps", "[matrix_steps]") {
  const node_case wide{
      "MatMul", {random_tensor(dtype::float32, {20, 24}, 1), random_tensor(dtype::float32, {24, 28}, 2)}, {}, {}, 1};
  check(wide, "matrix_tiles");
  const node_case mixed{"MatMul", {f16({20, 24}, 1), f16({24, 28}, 2)}, {}, {}, 1};
  check(mixed, "matrix_steps");
  const std::vector<tensor> want = expect(mixed);
  CHECK(run(mixed, device_form::vectors, want).versions.back() == "matrix_panels");
  providers = {};
  check(mixed, "matrix_tiles");
  providers = {&codegen::plain_step, nullptr};
  work_group = 64;
  check(mixed, "matrix_tiles");
}

namespace {

/// A graph of floats whose values are stored in halves where `narrow_storage` would.
struct stepped_blocks : blocks {
  stepped_blocks() {
    work_group = 256;
    providers = {&codegen::plain_step, nullptr};
  }
  /// Stores a value in halves, and gives every input and constant elements that halves hold.
  void narrow(value_id v) {
    value_facts& facts = g.facts(v);
    if (facts.is_constant()) {
      tensor half(dtype::float16, facts.constant.dims());
      std::transform(facts.constant.data<float>().begin(), facts.constant.data<float>().end(),
                     half.mutable_data<float16>().begin(), [](float x) { return float16(x); });
      facts.constant = std::move(half);
    }
    facts.type = dtype::float16;
    facts.narrowed = true;
  }
  /// Runs the only block with inputs, weights and result in halves; returns the largest difference to the reference.
  double difference(const std::vector<value_id>& narrowed, const std::string& version) {
    for (std::size_t i = 0; i < inputs.size(); ++i)
      for (float& x : inputs[i].mutable_data<float>()) x = static_cast<float>(float16(x));
    for (value_id v = 0; v < g.value_count(); ++v)
      if (g.facts(v).is_constant() && g.facts(v).constant.type() == dtype::float32)
        for (float& x : g.facts(v).constant.mutable_data<float>()) x = static_cast<float>(float16(x));
    rdp{}.run(g);
    fuse_blocks{}.run(g);
    REQUIRE(g.blocks().size() == 1);
    const std::vector<tensor> all = evaluate_all();
    for (const value_id v : narrowed) narrow(v);
    const fused_block& block = g.blocks()[0];
    std::vector<std::pair<value_id, tensor>> values;
    for (value_id v = 0; v < g.value_count(); ++v) {
      if (all[v].empty()) continue;
      const bool out = std::find(block.outputs.begin(), block.outputs.end(), v) != block.outputs.end();
      tensor held = all[v];
      if (g.facts(v).type == dtype::float16 && all[v].type() == dtype::float32) {
        held = tensor(dtype::float16, all[v].dims());
        std::transform(all[v].data<float>().begin(), all[v].data<float>().end(), held.mutable_data<float16>().begin(),
                       [](float x) { return float16(x); });
      }
      values.emplace_back(v, out ? tensor(held.type(), held.dims()) : held);
    }
    const std::vector<std::string> ran =
        run({g, block.members, block.outputs, block.anchor}, device_form::groups, values, symbols);
    CHECK(std::find(ran.begin(), ran.end(), version) != ran.end());
    double worst = 0;
    for (const auto& [v, content] : values)
      if (std::find(block.outputs.begin(), block.outputs.end(), v) != block.outputs.end())
        worst = std::max(worst, largest_difference(content, all[v]));
    return worst;
  }
};

}  // namespace

TEST_CASE_METHOD(stepped_blocks, "what stands around a product in steps runs in its kernel", "[matrix_steps]") {
  // Before it an activation and a scale, behind it a bias, a residual and heads.
  const value_id x = input({2, 24, 48});
  const value_id r = input({2, 24, 64});
  const value_id w = constant({48, 64});
  const value_id bias = constant({64});
  const value_id before = add("Mul", {add("Relu", {x}), constant({48})});
  const value_id y = add("Add", {add("Add", {add("MatMul", {before, w}), bias}), r});
  const value_id heads = add("Reshape", {y, integers({2, 24, 4, 16})});
  const value_id out = add("Transpose", {heads}, with("perm", std::vector<std::int64_t>{0, 2, 1, 3}));
  g.add_output(out);
  CHECK(difference({x, r, w, out}, "matrix_steps") <= tolerance_of(dtype::float16));
}

TEST_CASE_METHOD(stepped_blocks, "heads are read through the views that part them, several halves at once",
                 "[matrix_steps]") {
  const value_id x = input({2, 24, 64});
  const value_id y = input({2, 24, 64});
  const auto heads = [&](value_id v) {
    return add("Transpose", {add("Reshape", {v, integers({2, 24, 4, 16})})},
               with("perm", std::vector<std::int64_t>{0, 2, 1, 3}));
  };
  const value_id across = add("Transpose", {heads(y)}, with("perm", std::vector<std::int64_t>{0, 1, 3, 2}));
  const value_id out = add("MatMul", {heads(x), across});
  g.add_output(out);
  CHECK(difference({x, y, out}, "matrix_steps") <= tolerance_of(dtype::float16));
  const std::string source = std::string(plans.front().source);
  CHECK(source.find("#define DNNOPT_A_COPY 8\n") != std::string::npos);
  CHECK(source.find("#define DNNOPT_B_COPY 8\n") != std::string::npos);
  CHECK(source.find("#define DNNOPT_B_INNER_FIRST 1\n") != std::string::npos);
}

TEST_CASE_METHOD(stepped_blocks, "what is computed before a product in steps saturates as a store would",
                 "[matrix_steps]") {
  const value_id x = input({16, 32});
  inputs[0].mutable_data<float>()[5] = 60000.0f;
  const value_id w = constant({32, 16});
  const value_id out = add("MatMul", {add("Mul", {x, constant({32})}), w});
  g.add_output(out);
  (void)difference({x, w}, "matrix_steps");
  CHECK(std::string(plans.front().source).find("#define DNNOPT_A_SATURATES 1\n") != std::string::npos);
}

TEST_CASE_METHOD(stepped_blocks, "an operand of floats is not rounded to halves", "[matrix_steps]") {
  const value_id x = input({16, 32});
  const value_id w = constant({32, 16});
  const value_id out = add("MatMul", {x, w});
  g.add_output(out);
  CHECK(difference({w}, "matrix_tiles") <= tolerance_of(dtype::float32));
}

TEST_CASE_METHOD(stepped_blocks, "products in steps take extents that a run tells", "[matrix_steps]") {
  const index_expr rows = g.expressions().symbol("rows");
  const index_expr inner = g.expressions().symbol("inner");
  inputs.push_back(random_tensor(dtype::float32, {3, 37, 50}, 1));
  const value_id x = g.add_input("x", dtype::float32, shape{3, rows, inner});
  inputs.push_back(random_tensor(dtype::float32, {3, 50, 24}, 2));
  const value_id y = g.add_input("y", dtype::float32, shape{3, inner, 24});
  symbols.bind(*rows.as_symbol(), 37);
  symbols.bind(*inner.as_symbol(), 50);
  const value_id out = add("MatMul", {x, y});
  g.add_output(out);
  CHECK(difference({x, y, out}, "matrix_steps") <= tolerance_of(dtype::float16));
}

TEST_CASE("the table of matrix steps ends with the plain one, and its tiles fit what the frame asks for",
          "[matrix_steps]") {
  CHECK(codegen::find_matrix_step("plain") == &codegen::plain_step);
  CHECK(codegen::find_matrix_step("none") == nullptr);
  const auto of_halves = std::count_if(codegen::step_tile_table.begin(), codegen::step_tile_table.end(),
                                       [](const codegen::step_tile& tile) { return tile.operands == dtype::float16; });
  CHECK(codegen::find_tuning_space("matrix_steps")->parameters[0].count == static_cast<std::size_t>(of_halves));
  for (const codegen::matrix_step& step : codegen::matrix_step_table)
    for (const codegen::step_tile& tile : codegen::step_tile_table) {
      if (tile.from_tiles != step.from_tiles() || tile.operands != step.operands) continue;
      CHECK(tile.wave_rows % step.waves == 0);
      // Columns of waves side by side begin at a panel.
      if (tile.from_tiles) CHECK((tile.wave_columns == 1 || tile.column_steps % 4 == 0));
      CHECK(tile.stages >= 2);
      CHECK(tile.inner % step.inner == 0);
      // Lines of a tile are powers of two, by which chunks are exchanged.
      for (const std::int64_t extent : {tile.rows(step), tile.columns(step), tile.inner})
        CHECK((extent & (extent - 1)) == 0);
      if (step.exchange_bytes == 0) CHECK(tile.local_bytes(step) <= 49152);
    }
}

TEST_CASE_METHOD(kernel_bench, "the probe tells a provider that works from one that does not", "[matrix_steps]") {
  CHECK(opencl::step_works(where(), codegen::plain_step));
  CHECK(opencl::step_works(where(), codegen::plain_floats));
  CHECK(opencl::step_works(where(), codegen::plain_bytes));
  // The probe's tiles take 48 KiB; a device with less has no use for them.
  CHECK(opencl::step_works(where(), codegen::plain_tiles) == (where().info().local_memory_bytes >= 49152));
  // The extension of another device's compiler.
  codegen::matrix_step other = codegen::plain_step;
  other.extension = "cl_nobody_has_this";
  CHECK_FALSE(opencl::step_works(where(), other));
  // A text that does not build, and one that multiplies what it should not.
  other.extension = "";
  other.text = "this is no OpenCL C";
  CHECK_FALSE(opencl::step_works(where(), other));
  std::string wrong(codegen::plain_step.text);
  const std::size_t at = wrong.find("column < 8 ? from_b.x");
  REQUIRE(at != std::string::npos);
  wrong.replace(at, 21, "column < 9 ? from_b.x");
  other.text = wrong;
  CHECK_FALSE(opencl::step_works(where(), other));
  // One that leaves out bits of floats, as tf32 does.
  other = codegen::plain_floats;
  std::string narrow(codegen::plain_floats.text);
  const std::size_t factor = narrow.find("as_float(word_b)");
  REQUIRE(factor != std::string::npos);
  narrow.replace(factor, 16, "as_float(word_b & 0xffffe000u)");
  other.text = narrow;
  CHECK_FALSE(opencl::step_works(where(), other));
  other.rounds = true;
  CHECK(opencl::step_works(where(), other));
  // One that takes natural numbers for others.
  other = codegen::plain_bytes;
  std::string signs(codegen::plain_bytes.text);
  const std::size_t natural = signs.find("s, sum, DNNOPT_A_NATURAL, DNNOPT_B_NATURAL)");
  REQUIRE(natural != std::string::npos);
  signs.replace(natural, 43, "s, sum, DNNOPT_A_NATURAL, DNNOPT_A_NATURAL)");
  other.text = signs;
  CHECK_FALSE(opencl::step_works(where(), other));
  other = codegen::plain_tiles;
  std::string wrong_tiles(codegen::plain_tiles.text);
  const std::size_t along = wrong_tiles.find("along / 8, chunks, lines");
  REQUIRE(along != std::string::npos);
  wrong_tiles.replace(along, 24, "along / 8, chunks, line");
  other.text = wrong_tiles;
  CHECK_FALSE(opencl::step_works(where(), other));
}

TEST_CASE("what multiplies in steps on a device is kept in a file beside its programs", "[matrix_steps]") {
  opencl::context where(opencl::select_device("opencl"));
  const std::filesystem::path folder = std::filesystem::temp_directory_path() / "dnnopt_step_facts";
  std::filesystem::remove_all(folder);
  const codegen::step_providers found = opencl::steps_of(where, folder);
  CHECK(found == opencl::measure_steps(where));
  REQUIRE(std::distance(std::filesystem::directory_iterator(folder), std::filesystem::directory_iterator()) == 1);
  const std::filesystem::path file = std::filesystem::directory_iterator(folder)->path();
  // What the file says is believed; a damaged one is measured anew.
  std::string text;
  {
    std::ifstream in(file, std::ios::binary);
    std::ostringstream whole;
    whole << in.rdbuf();
    text = whole.str();
  }
  const std::string identity = text.substr(0, text.rfind('\n', text.size() - 2) + 1);
  std::ofstream(file, std::ios::binary) << identity << "plain plain_tiles plain_floats plain_bytes\n";
  CHECK(opencl::steps_of(where, folder) == codegen::step_providers{&codegen::plain_step, &codegen::plain_tiles,
                                                                   &codegen::plain_floats, &codegen::plain_bytes});
  // A provider in the place of another kind.
  std::ofstream(file, std::ios::binary) << identity << "plain none plain_tiles none\n";
  CHECK(opencl::steps_of(where, folder) == found);
  std::ofstream(file, std::ios::binary) << identity << "plain pla";
  CHECK(opencl::steps_of(where, folder) == found);
  std::filesystem::remove_all(folder);
}

namespace {

tensor halves_of_heads(dim_list dims, std::uint32_t seed) {
  tensor t = f16(std::move(dims), seed);
  for (float16& x : t.mutable_data<float16>()) x = float16(static_cast<float>(x) * 0.5f);
  return t;
}

}  // namespace

TEST_CASE_METHOD(steps,
                 "attention of halves in steps equals the reference: masks, groups of heads, a past, packed heads",
                 "[matrix_steps]") {
  struct row {
    dim_list query, key, value;
    bool causal = false;
    std::optional<dim_list> mask{};
    std::int64_t heads = 0;  ///< of packed operands
    std::int64_t past = 0;
  };
  const std::vector<row> rows{
      {{1, 3, 41, 8}, {1, 3, 67, 8}, {1, 3, 67, 16}},
      {{2, 2, 33, 64}, {2, 2, 33, 64}, {2, 2, 33, 64}, true},
      {{1, 4, 70, 32}, {1, 2, 70, 32}, {1, 2, 70, 24}},
      {{1, 2, 5, 7}, {1, 2, 9, 7}, {1, 2, 9, 5}},
      {{1, 2, 20, 128}, {1, 2, 40, 128}, {1, 2, 40, 128}},
      {{1, 2, 17, 16}, {1, 2, 50, 16}, {1, 2, 50, 16}, false, dim_list{17, 50}},
      {{2, 19, 48}, {2, 35, 48}, {2, 35, 48}, false, std::nullopt, 3},
      {{1, 2, 3, 16}, {1, 2, 6, 16}, {1, 2, 6, 16}, true, std::nullopt, 0, 40},
  };
  for (const row& r : rows) {
    if (left_out(element_count(r.query) * r.key[r.key.size() - 2] > 70'000)) continue;
    CAPTURE(r.query, r.key, r.value, r.causal, r.past);
    node_case c{
        "Attention", {halves_of_heads(r.query, 1), halves_of_heads(r.key, 2), halves_of_heads(r.value, 3)}, {}, {}, 1};
    if (r.mask) c.inputs.push_back(halves_of_heads(*r.mask, 4));
    if (r.past > 0) {
      c.inputs.resize(4);
      c.inputs.push_back(halves_of_heads({r.key[0], r.key[1], r.past, r.key[3]}, 5));
      c.inputs.push_back(halves_of_heads({r.value[0], r.value[1], r.past, r.value[3]}, 6));
      c.outputs = 3;
    }
    c.attributes.set("is_causal", std::int64_t{r.causal ? 1 : 0});
    if (r.heads > 0) {
      c.attributes.set("q_num_heads", r.heads);
      c.attributes.set("kv_num_heads", r.heads);
    }
    const std::vector<tensor> want = expect(c);
    const kernel_run got = run(c, device_form::groups, want);
    // Heads of 128 elements want more local memory than OpenCL promises.
    const std::int64_t heads = std::max<std::int64_t>(r.heads, 1);
    const std::int64_t bytes =
        codegen::detail::attention_step_bytes(codegen::plain_step, 1, 32, r.key.back() / heads, r.value.back() / heads);
    const bool fits = bytes <= static_cast<std::int64_t>(info(device_form::groups).local_memory_bytes);
    CHECK(got.versions.front() == (fits ? "attention_steps" : "attention_tiles"));
    // Half a step of a half, and what sums in another order differ by: weights are not rounded to halves.
    CHECK(largest_difference(got.outputs[0], want[0]) <= 0.0006);
  }
}

TEST_CASE_METHOD(steps, "attention in steps takes every number of waves and keys of a block", "[matrix_steps]") {
  const std::int64_t heads = is_simulated() ? 1 : 2;
  const node_case c{"Attention",
                    {halves_of_heads({1, heads, 37, 32}, 1), halves_of_heads({1, heads, 90, 32}, 2),
                     halves_of_heads({1, heads, 90, 32}, 3)},
                    {},
                    {},
                    1};
  for (const std::int64_t waves : {1, 2, 4})
    for (const std::int64_t keys : {32, 64}) {
      CAPTURE(waves, keys);
      if (left_out((waves == 2) != (keys == 64))) continue;
      check_tuned(c, "attention_steps " + std::to_string(heads) + " 37 90 32 32", {waves, keys}, "attention_steps");
      CHECK(plans.front().local[0] == static_cast<std::size_t>(waves * 32));
    }
}

namespace {

/// Graphs of quantized operands, whose sums and quotients are exact: scales are powers of two.
struct coded_blocks : blocks {
  coded_blocks() {
    work_group = 256;
    providers = {&codegen::plain_step, nullptr};
  }
  value_id scale(float held) { return g.add_constant("scale" + std::to_string(++seed), tensor::scalar(held)); }
  value_id zero(dtype type) {
    tensor held(type, {});
    if (type == dtype::uint8) held.mutable_data<std::uint8_t>()[0] = 119;
    if (type == dtype::int8) held.mutable_data<std::int8_t>()[0] = -7;
    return g.add_constant("zero" + std::to_string(++seed), std::move(held));
  }
  value_id dequantized(dtype type, dim_list dims, bool constant) {
    ++seed;
    tensor held = random_tensor(type, std::move(dims), seed);
    value_id codes = no_value;
    if (constant) {
      codes = g.add_constant("codes" + std::to_string(seed), std::move(held));
    } else {
      codes = g.add_input("x" + std::to_string(seed), type, to_shape(held.dims()));
      inputs.push_back(std::move(held));
    }
    return add("DequantizeLinear", {codes, scale(1.0F / 64), zero(type)});
  }
};

}  // namespace

TEST_CASE_METHOD(coded_blocks, "codes of dequantized operands are multiplied in steps, and their sums scaled",
                 "[matrix_steps]") {
  const std::int64_t inner = GENERATE(35, 36);
  CAPTURE(inner);
  const value_id x = dequantized(dtype::uint8, {18, inner}, false);
  const value_id w = dequantized(dtype::int8, {inner, 20}, true);
  g.add_output(add("MatMul", {x, w}));
  check(device_form::groups, {"matrix_steps"});
  const std::string text = plans.front().source.str();
  CHECK((text.find("dnnopt_codes_a(DNNOPT_PARAMETERS") != std::string::npos) == (inner % 4 == 0));
  CHECK(text.find("dnnopt_codes_b(DNNOPT_PARAMETERS") != std::string::npos);
}

TEST_CASE_METHOD(coded_blocks, "codes of windows are gathered by fours, and so are results stored that are quantized",
                 "[matrix_steps]") {
  const dtype type = GENERATE(dtype::int8, dtype::uint8);
  const std::int64_t side = GENERATE(7, 8);
  CAPTURE(name_of(type), side);
  const value_id x = dequantized(type, {2, 3, 3, side}, false);
  const value_id w = dequantized(dtype::int8, {10, 3, 3, 3}, true);
  const value_id y = add("Conv", {x, w}, with("pads", std::vector<std::int64_t>{1, 1, 1, 1}));
  g.add_output(add("QuantizeLinear", {y, scale(2), zero(type)}));
  check(device_form::groups, {"convolution_steps"});
  const std::string text = plans.front().source.str();
  CHECK((text.find("dnnopt_gather_b(DNNOPT_PARAMETERS") != std::string::npos) == (side % 4 == 0));
  const std::string four = type == dtype::int8 ? "*(__global char4*)(" : "*(__global uchar4*)(";
  CHECK((text.find(four) != std::string::npos) == (side % 4 == 0));
}

// Versions of one launch: what choosers make of symbolic extents, and that a run takes the one that its dims allow.
#include "choose_fixture.hpp"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <catch2/catch.hpp>

#include <dnnopt/backend/codegen/versions.hpp>
#include <dnnopt/session.hpp>

#include "../support/small_network.hpp"

using namespace dnnopt;
using namespace dnnopt::testing;

namespace {

/// One session through several dims of the input "x": outputs are those of the reference backend.
void agree(const model& m, kernel_form form, const std::vector<dim_list>& runs) {
  session host = compile(m, {.device = "reference"});
  session device = compile(m, {.device = "opencl", .form = form});
  // Forth and back: the version of the run before must not serve the next.
  std::vector<dim_list> all(runs);
  all.insert(all.end(), runs.rbegin(), runs.rend());
  for (const dim_list& dims : all) {
    named_tensors given;
    given.add("x", ramp(dims));
    const named_tensors right = host.run(given);
    const named_tensors got = device.run(given);
    CAPTURE(to_string(dims));
    REQUIRE(got[0].dims() == right[0].dims());
    const auto a = got[0].data<float>();
    const auto b = right[0].data<float>();
    for (std::size_t i = 0; i < b.size(); ++i) REQUIRE(a[i] == Approx(b[i]).margin(1e-4));
  }
}

attribute_map pads_of_one() {
  attribute_map a;
  a.set("pads", std::vector<std::int64_t>{1, 1, 1, 1});
  return a;
}

}  // namespace

TEST_CASE("a product of rows that only a run tells is right for few and for many", "[versions][opencl][unsimulated]") {
  network n;
  const value_id x = n.input("x", {n.g.expressions().symbol("rows"), 300});
  const value_id product = n.node("MatMul", {x, n.weights({300, 70}, 0.1F)});
  const model m = n.finish(n.node("Relu", {n.node("Add", {product, n.weights({70})})}));
  for (const kernel_form form : {kernel_form::vectors, kernel_form::groups})
    agree(m, form, {{1, 300}, {4, 300}, {5, 300}, {40, 300}, {700, 300}});
}

TEST_CASE("convolutions of images that only a run tells are right for small and large ones",
          "[versions][opencl][unsimulated]") {
  network n;
  expr_context& symbols = n.g.expressions();
  const value_id x = n.input("x", {symbols.symbol("batch"), 24, symbols.symbol("height"), symbols.symbol("width")});
  // The sum may be written over an operand: then by each version or by none.
  const value_id same = n.node("Conv", {n.node("Relu", {x}), n.weights({24, 24, 1, 1}, 0.2F)});
  const value_id sum = n.node("Add", {same, n.node("Tanh", {x})});
  const value_id split = n.node("Conv", {sum, n.weights({8, 24, 3, 3}, 0.1F)}, pads_of_one());
  const model m = n.finish(n.node("Relu", {split}));
  for (const kernel_form form : {kernel_form::vectors, kernel_form::groups})
    agree(m, form, {{1, 24, 1, 1}, {1, 24, 3, 5}, {2, 24, 9, 8}, {3, 24, 31, 70}});
}

TEST_CASE("convolutions of a stream are right for a few elements and for many", "[versions][opencl][unsimulated]") {
  network n;
  expr_context& symbols = n.g.expressions();
  const value_id x = n.input("x", {symbols.symbol("batch"), 12, symbols.symbol("length")});
  attribute_map strided;
  strided.set("pads", std::vector<std::int64_t>{1, 1});
  strided.set("strides", std::vector<std::int64_t>{2});
  attribute_map grouped;
  grouped.set("pads", std::vector<std::int64_t>{0, 2});
  grouped.set("group", std::int64_t{2});
  const value_id first = n.node("Relu", {n.node("Conv", {x, n.weights({32, 12, 3}, 0.2F)}, strided)});
  const value_id sum = n.node("Add", {n.node("Conv", {first, n.weights({32, 16, 3}, 0.2F)}, grouped), first});
  const model m = n.finish(n.node("Tanh", {sum}));
  for (const kernel_form form : {kernel_form::vectors, kernel_form::groups})
    agree(m, form, {{1, 12, 1}, {2, 12, 3}, {1, 12, 8}, {3, 12, 9}, {1, 12, 64}, {2, 12, 131}});
}

TEST_CASE("convolutions of a stream have a version for few positions, which reads the same packed weights") {
  chooser c;
  const value_id out = c.add("Conv", {c.input({1, 64, c.symbol("length")}), c.constant({96, 64, 3})});
  const codegen::choice_or_reason made = c.choose(out, "convolution_panels");
  REQUIRE(made);
  REQUIRE(made->narrower.size() == 1);
  const codegen::choice& few = made->narrower[0];
  CHECK(few.version == "convolution_points");
  CHECK(few["rows"] == (*made)["rows"]);
  CHECK(few["points"] == 4);
  CHECK(few["staged"] == 6);
  CHECK(codegen::text_of(few.guards) == "0 <= -max(length - 2, 0) + 4, 0 <= max(length - 2, 0) - 1");
  CHECK(few.kept_bytes == made->kept_bytes);
  // Images are seldom so small, and each version is a kernel more to build.
  chooser images;
  const value_id image = images.add(
      "Conv", {images.input({1, 64, images.symbol("h"), images.symbol("w")}), images.constant({96, 64, 5, 5})});
  CHECK(images.choose(image, "convolution_panels")->narrower.empty());
}

TEST_CASE("convolutions of few positions have panels as wide as a vector, and work for each core") {
  const auto told = [](dim_list x, dim_list w) {
    chooser c;
    return c.told(c.add("Conv", {c.input(shape(x.begin(), x.end())), c.constant(std::move(w))}), "convolution_points");
  };
  CHECK(told({1, 64, 3, 3}, {1024, 64, 3, 3}) ==
        "convolution_points rows=16 vector=16 vectors=8 points=1 staged=9 block_channels=64, input 1 in packed, 2304 "
        "bytes of local memory, 2359296 bytes kept");
  CHECK(
      told({1, 600, 4, 4}, {100, 600, 3, 3}) ==
      "convolution_points rows=16 vector=16 vectors=1 points=4 staged=16 block_channels=256, input 1 in packed, 16384 "
      "bytes of local memory, 2419200 bytes kept");
  CHECK(told({1, 64, 5, 5}, {96, 64, 3, 3}) == "more positions than a register tile has");
  CHECK(told({1, 64, 3, 3}, {15, 64, 3, 3}) == "fewer output channels than a vector has elements");
  CHECK(told({1, 64, 1, 2}, {96, 64, 1, 1}) == "a window of one element is a product of matrices");
}

TEST_CASE("sums of inner elements that are split keep memory in runs of their version alone",
          "[versions][opencl][unsimulated]") {
  network n;
  const value_id x = n.input("x", {n.g.expressions().symbol("rows"), 4000});
  const model m = n.finish(n.node("MatMul", {x, n.weights({4000, 24}, 0.05F)}));
  agree(m, kernel_form::groups, {{1, 4000}, {33, 4000}, {900, 4000}});
}

namespace {

/// The version of a choice that a run takes with that value of its only symbol.
const codegen::choice& taken(const codegen::choice& made, const index_expr& only, std::int64_t value) {
  symbol_values values;
  values.bind(*only.as_symbol(), value);
  for (const codegen::choice& one : made.narrower)
    if (codegen::all_hold(one.guards).evaluate(values) == 1) return one;
  return made;
}

}  // namespace

TEST_CASE("tiles of symbolic rows have versions that cost about what the same rows cost where they are known") {
  // 3072 inner elements; with 100 multiprocessors and 768 columns all of them are full with 533 rows.
  chooser c;
  c.device = gpu_device();
  const index_expr rows = c.symbol("m");
  const value_id out = c.add("MatMul", {c.input({rows, 3072}), c.constant({3072, 768})});
  const codegen::choice_or_reason made = c.choose(out, "matrix_tiles");
  REQUIRE(made);
  REQUIRE(made->narrower.size() > 1);
  CHECK(made->narrower.size() < codegen::most_versions);
  double sum = 0;
  double count = 0;
  for (std::int64_t m = 1; m <= 4 * 533; m += 1 + m / 10) {
    const codegen::choice& one = taken(*made, rows, m);
    REQUIRE(&one != &*made);
    const codegen::tile_estimate estimate(&c.device, {1, m, 768, 3072});
    // A choice does not hold what is fitted of its tiles.
    const codegen::tile_sizes tiles = codegen::tiles_of(one);
    const auto row = std::find_if(codegen::tile_table.begin(), codegen::tile_table.end(), [&](const auto& t) {
      return t.group_rows == tiles.group_rows && t.group_columns == tiles.group_columns &&
             t.item_rows == tiles.item_rows && t.item_columns == tiles.item_columns;
    });
    REQUIRE(row != codegen::tile_table.end());
    const double excess = estimate.shared(*row, tiles.teams, tiles.splits).cost / estimate.cost(estimate.best());
    CAPTURE(m, excess);
    CHECK(excess < 1.35);
    sum += excess;
    ++count;
  }
  CHECK(sum / count < 1.06);
  // Beyond that sums are never split, for their parts would have no bound.
  CHECK(&taken(*made, rows, 4 * 534) == &*made);
  CHECK((*made)["splits"] == 1);
  CHECK((*made)["teams"] == 1);
}

TEST_CASE("sizes are covered by as few candidates as their number costs") {
  const std::vector<std::int64_t> sizes = codegen::compared_sizes(3, 100);
  CHECK(sizes.front() == 3);
  CHECK(sizes.back() == 100);
  CHECK(std::is_sorted(sizes.begin(), sizes.end()));
  CHECK(codegen::compared_sizes(7, 7) == std::vector<std::int64_t>{7});
  // One that starts late, one that grows fast, and one that is always a little worse than the best of these.
  std::vector<std::vector<double>> costs(3);
  for (const std::int64_t size : sizes) {
    const auto n = static_cast<double>(size);
    costs[0].push_back(20 + n);
    costs[1].push_back(2 * n);
    costs[2].push_back(1.01 * std::min(20 + n, 2 * n));
  }
  const auto dear = codegen::cover_sizes(sizes, costs, 6, 1);
  REQUIRE(dear.size() == 1);
  CHECK(dear[0].candidate == 2);
  CHECK(dear[0].most == 100);
  const auto free = codegen::cover_sizes(sizes, costs, 6, 0);
  REQUIRE(free.size() >= 2);
  for (const codegen::size_run& run : free) CHECK(run.candidate == (run.most <= 20 ? 1U : 0U));
  CHECK(free.back().most == 100);
  CHECK(codegen::cover_sizes(sizes, costs, 1, 0).size() == 1);
}

TEST_CASE("a convolution of one pixel splits its sums in a run of one image") {
  // A squeeze and excitation: for each image one column, whose sum is long.
  const auto in_tiles = [](chooser& c, const index_expr& images) {
    c.device = gpu_device();
    const value_id out = c.add("Conv", {c.input({images, 960, 1, 1}), c.constant({240, 960, 1, 1})});
    return *c.choose(out, "convolution_tiles");
  };
  chooser one;
  chooser any;
  const index_expr batch = any.symbol("batch");
  REQUIRE(in_tiles(one, 1)["splits"] > 1);
  const codegen::choice made = in_tiles(any, batch);
  CHECK(taken(made, batch, 1)["splits"] > 1);
  CHECK(taken(made, batch, 1 << 20)["splits"] == 1);
}

TEST_CASE("ranges settle guards: what no run can take is no version") {
  chooser c;
  c.device = gpu_device();
  const index_expr rows = c.g.expressions().symbol("m", {2200, 4096});
  const value_id out = c.add("MatMul", {c.input({rows, 3072}), c.constant({3072, 768})});
  const codegen::choice_or_reason made = c.choose(out, "matrix_tiles");
  REQUIRE(made);
  CHECK(made->narrower.empty());
  // On processors: image rows that are always as long as a panel are read where they are, and never few.
  chooser p;
  const index_expr side = p.g.expressions().symbol("side", {8, 512});
  const value_id image = p.add("Conv", {p.input({1, 64, side, 8}), p.constant({64, 64, 1, 1})});
  const codegen::choice_or_reason panels = p.choose(image, "convolution_panels");
  REQUIRE(panels);
  CHECK(panels->form_of(0) == codegen::operand_form::straight);
  CHECK(panels->narrower.empty());
}

TEST_CASE("versions share weights that they pack alike, and at most one runs") {
  chooser c;
  const index_expr height = c.symbol("h");
  const value_id out = c.add("Conv", {c.input({1, 64, height, 3}), c.constant({64, 64, 1, 1})});
  const codegen::choice_or_reason made = c.choose(out, "convolution_panels");
  REQUIRE(made);
  REQUIRE(made->narrower.size() == 1);
  const fused_block& block = c.g.blocks().at(0);
  const codegen::lowered_node lowered =
      codegen::lower({c.g, block.members, block.outputs, block.anchor}, codegen::default_lower_options(&c.device));
  CHECK(lowered.versions == 2);
  CHECK(lowered.prepare.size() == 1);
  CHECK(lowered.scratch.size() == 1);
  REQUIRE(lowered.kernels.size() == 2);
  CHECK(lowered.kernels[0].guard.empty());
  CHECK(lowered.kernels[1].guard == "0 <= 3*h - 32");
  for (const std::int64_t rows : {1, 10, 11, 50}) {
    symbol_values values;
    values.bind(*height.as_symbol(), rows);
    CHECK(lowered.kernels[0].when.evaluate(values) == (3 * rows < 32 ? 1 : 0));
    CHECK(lowered.kernels[1].when.evaluate(values) == (3 * rows < 32 ? 0 : 1));
  }
}

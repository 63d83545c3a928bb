// The worked figures of SmartMem (ASPLOS 2024): index comprehension in Fig. 3, layouts by reduction dimensions in Fig.
// 4 and 5, and what remains between a normalization and a product in Fig. 6.
#include "figure.hpp"
#include "support/layout_table.hpp"

#include <dnnopt/backend/storage/select_layouts.hpp>
#include <dnnopt/passes/remove_identity.hpp>

#include <catch2/catch.hpp>

#include <algorithm>
#include <string>
#include <vector>

using namespace dnnopt;
using namespace dnnopt::testing;

namespace {

using indices = std::vector<index_expr>;

/// Where the element of `from` at `at` stands in `to`, through the views between.
indices written(const graph& g, value_id from, const indices& at, value_id to) {
  if (from == to) return at;
  const node_id id = g.value_at(to).producer;
  const node& n = g.node_at(id);
  return n.op->unview(*facts_of_node(g, id), *g.facts(to).dims, written(g, from, at, n.inputs[0]));
}

/// Which element of `from` is the element of `to` at `at`, through the views between.
indices read(const graph& g, value_id from, const indices& at, value_id to) {
  if (from == to) return at;
  const node_id id = g.value_at(to).producer;
  detail::single_piece view;
  REQUIRE(detail::state_view(view, *g.node_at(id).op, *facts_of_node(g, id), 0, at));
  REQUIRE(view.valid);
  return read(g, from, view.found->second, g.node_at(id).inputs[0]);
}

/// The row-major place of an index.
index_expr place(const shape& dims, const indices& at) {
  index_expr offset = 0;
  for (std::size_t k = 0; k < dims.size(); ++k) offset = offset * dims[k] + at[k];
  return offset;
}

/// The launches and host operators of a program that only move elements.
std::size_t layout_steps(const program& p) {
  std::size_t count = 0;
  for (const placed_node& step : p.steps) {
    const bool runs = step.where == placement::device || is_on_host(step.where);
    count += runs && std::all_of(step.members.begin(), step.members.end(),
                                 [&](node_id id) { return p.g->node_at(id).op->kind == computation_kind::view; })
                 ? 1
                 : 0;
  }
  return count;
}

}  // namespace

TEST_CASE("SmartMem Fig. 3: Reshape and Transpose as identity, split and merge of indices", "[golden]") {
  figure f;
  const value_id x = f.input("x", {2, 256, 4});
  const value_id cut = f.node("Reshape", {x, f.numbers({16, 8, 4, 4})});
  const value_id turned = f.node("Transpose", {cut}, with("perm", std::vector<std::int64_t>{0, 2, 1, 3}));
  f.g.add_output(turned);
  rdp{}.run(f.g);
  CHECK(f.dims(turned) == "[16, 4, 8, 4]");
  const auto index = [&](std::string_view name, std::int64_t extent) {
    return f.g.expressions().symbol(name, {0, extent - 1});
  };
  const index_expr i = index("i", 2);
  const index_expr j = index("j", 256);
  const index_expr k = index("k", 4);
  const indices to = written(f.g, x, {i, j, k}, turned);
  CHECK(to == indices{i * 8 + floordiv(j, 4 * 8), mod(j, 4), floordiv(mod(j, 4 * 8), 4), k});

  // Read from the other end: merges only, no division but that of the split dim.
  const index_expr i1 = index("i1", 16);
  const index_expr j1 = index("j1", 4);
  const index_expr k1 = index("k1", 8);
  const index_expr l1 = index("l1", 4);
  const indices from = read(f.g, x, {i1, j1, k1, l1}, turned);
  CHECK(from == indices{floordiv(i1, 8), mod(i1, 8) * 32 + k1 * 4 + j1, l1});
  // The two maps are inverse, which only the rules for quotients and remainders can tell.
  CHECK(read(f.g, x, to, turned) == indices{i, j, k});

  // The strength reduction of section 3.2.1: i % Ca % Cb is i % Cb where Cb divides Ca.
  CHECK(mod(mod(j, 32), 4) == mod(j, 4));
  CHECK_FALSE(mod(mod(j, 32), 5) == mod(j, 5));
}

TEST_CASE("SmartMem Fig. 4: the product writes what three consumers read, its views are gone", "[golden]") {
  constexpr std::int64_t d0 = 24;
  constexpr std::int64_t d1 = 8;
  constexpr std::int64_t d2 = 6;
  constexpr std::int64_t d3 = 4;
  figure f;
  const value_id product = f.node("MatMul", {f.input("x", {d0, 16}), f.weights({16, d1})});
  const value_id turned = f.node("Transpose", {product}, with("perm", std::vector<std::int64_t>{1, 0}));
  const value_id cut = f.node("Reshape", {turned, f.numbers({1, d1, d2, d3})});
  const value_id rows = f.node("ReduceMean", {cut, f.numbers({3})});
  const value_id planes = f.node("ReduceMean", {cut, f.numbers({1})});
  const value_id filtered = f.node("Conv", {cut, f.weights({d1, d1, 1, 1})});
  f.g.add_output(f.node("Add", {f.node("Add", {filtered, rows}), planes}));
  // Table 5: the product stays, Transpose and Reshape go; Table 6: the product's layout is searched for.
  for (const std::string_view view : {"Transpose", "Reshape"}) {
    const layout_combination& pair = combine(f.ops.at("", "MatMul").layout, f.ops.at("", view).layout);
    CHECK(pair.action == layout_action::eliminate_second);
    CHECK(pair.search == layout_search::first);
  }
  const program p = placed(f.g);
  CHECK(layout_steps(p) == 0);
  CHECK(launches_of(p) ==
        std::vector<std::vector<std::string>>{
            {"MatMul", "Transpose", "Reshape"}, {"ReduceMean"}, {"ReduceMean"}, {"Conv", "Add", "Add"}});
  // What is stored is L0 in the form that all three read: [D1, D2, D3].
  const placed_node& stores = p.steps.front();
  REQUIRE(stores.outputs.size() == 1);
  CHECK(to_string(*p.g->facts(stores.outputs[0]).dims) == "[1, 8, 6, 4]");
}

TEST_CASE("SmartMem Fig. 5: texels of four along one reduction dimension, rows of texels along the other", "[golden]") {
  constexpr std::int64_t d1 = 8;
  constexpr std::int64_t d2 = 6;
  constexpr std::int64_t d3 = 12;
  figure f;
  const value_id product = f.node("MatMul", {f.input("x", {d2 * d3, 16}), f.weights({16, d1})});
  const value_id turned = f.node("Transpose", {product}, with("perm", std::vector<std::int64_t>{1, 0}));
  const value_id held = f.node("Reshape", {turned, f.numbers({1, d1, d2, d3})});
  const value_id rows = f.node("ReduceMean", {held, f.numbers({3})});
  const value_id planes = f.node("ReduceMean", {held, f.numbers({1})});
  const value_id filtered = f.node("Conv", {held, f.weights({d1, d1, 1, 1})});
  f.g.add_output(f.node("Add", {f.node("Add", {filtered, rows}), planes}));
  rdp{}.run(f.g);
  fuse_blocks{}.run(f.g);
  std::vector<layout_block> blocks;
  for (const fused_block& block : f.g.blocks()) blocks.push_back({block.members, block.outputs, block.anchor});
  // L0 has two reduction dimensions: D1 of the convolution and of one reduction, D3 of the other. Both are served.
  const auto choices = select_layouts(f.g, blocks, std::vector<value_id>{held});
  REQUIRE(choices.size() == 1);
  CHECK(choices[0].packed == 1);
  CHECK(choices[0].asked);
  CHECK(choices[0].unserved.empty());
  CHECK(choices[0].copy_bytes == 0);
  // Memory of one direction would need a second copy for D3.
  const auto narrow = select_layouts(f.g, blocks, std::vector<value_id>{held}, 1);
  REQUIRE(narrow.size() == 1);
  CHECK(narrow[0].unserved == std::vector<std::size_t>{3});
  CHECK(narrow[0].copy_bytes == d1 * d2 * d3 * 4);
  const auto image = [&](value_id v, std::size_t packed) { return image_of(texel_dims(*f.g.facts(v).dims, packed)); };
  // The figure puts L0's groups of D1 side by side, D2 x (D1/4 * D3); here they lie one below the other, each D2 rows
  // of D3 texels, so that both dimensions are as direct.
  CHECK(image(held, 1).width == index_expr(d3));
  CHECK(image(held, 1).height == index_expr(d1 / 4 * d2));
  // L1 is D2 x D1/4 in texels of D1, L2 is D2 x D3/4 in texels of D3.
  CHECK(image(rows, 1).width * image(rows, 1).height == index_expr(d2 * (d1 / 4)));
  CHECK(image(planes, 3).width == index_expr(d3 / 4));
  CHECK(image(planes, 3).height == index_expr(d2));
}

TEST_CASE("SmartMem Fig. 6: a product reads a normalization's rows with stride 1", "[golden]") {
  // A window partition: LayerNorm, Reshape, Reshape, Transpose, Reshape, MatMul.
  constexpr std::int64_t size = 8;
  constexpr std::int64_t part = 4;
  constexpr std::int64_t channels = 16;
  figure f;
  const value_id x = f.input("x", {1, size * size, channels});
  const value_id normal = f.node("LayerNormalization", {x, f.weights({channels}), f.weights({channels})});
  const value_id image = f.node("Reshape", {normal, f.numbers({1, size, size, channels})});
  const value_id cut = f.node("Reshape", {image, f.numbers({1, size / part, part, size / part, part, channels})});
  const value_id turned = f.node("Transpose", {cut}, with("perm", std::vector<std::int64_t>{0, 1, 3, 2, 4, 5}));
  const value_id parts = f.node("Reshape", {turned, f.numbers({size * size / part / part, part * part, channels})});
  f.g.add_output(f.node("MatMul", {parts, f.weights({channels, 12})}));
  const program p = placed(f.g);
  CHECK(layout_steps(p) == 0);
  for (const auto& launch : launches_of(p))
    CHECK(std::any_of(launch.begin(), launch.end(),
                      [](const std::string& op) { return op == "LayerNormalization" || op == "MatMul"; }));
  CHECK(launches_of(p).size() <= 2);

  rdp{}.run(f.g);
  const index_expr window = f.g.expressions().symbol("window", {0, size * size / part / part - 1});
  const index_expr position = f.g.expressions().symbol("position", {0, part * part - 1});
  const index_expr k = f.g.expressions().symbol("k", {0, channels - 1});
  const auto place_of = [&](const index_expr& at) {
    return place(*f.g.facts(normal).dims, read(f.g, normal, {window, position, at}, parts));
  };
  // The reduction dimension is the innermost of what the normalization writes.
  CHECK(place_of(k) - place_of(0) == k);
  CHECK(place_of(0) ==
        (floordiv(window, 2) * 32 + mod(window, 2) * 4 + floordiv(position, 4) * 8 + mod(position, 4)) * channels);
}

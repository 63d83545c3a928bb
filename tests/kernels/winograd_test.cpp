// Winograd's minimal filtering against the reference: planes of odd sizes, blocks of every kind, fused neighbours, and
// where it is chosen.
#include "block_fixture.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <dnnopt/backend/codegen/frames/convolutions/staged/winograd_shape.hpp>

using namespace dnnopt;
using namespace dnnopt::testing;

namespace {

/// Blocks that a tuner may choose: tiles and vectors of a register tile, output channels and positions of a block.
struct chosen_blocks {
  std::int64_t rows, vectors, block_rows, block_columns;
};

struct winograd_blocks : blocks {
  /// A convolution with windows of 3 x 3 of `x`, with a bias.
  value_id convolution(value_id x, std::int64_t channels, std::int64_t outputs, std::vector<std::int64_t> pads) {
    attribute_map a;
    a.set("pads", std::move(pads));
    return add("Conv", {x, constant({outputs, channels, 3, 3}), constant({outputs})}, a);
  }
  /// Runs all that was grown as one block with tiles of `tile` in each of `ways`; a tile of 0 asks for what
  /// convolution_shifts does. Returns how many inputs results may be written over.
  std::size_t check_tiles(std::int64_t tile, const std::vector<chosen_blocks>& ways) {
    rdp{}.run(g);
    const std::vector<node_id> members = g.topological_order();
    const auto anchor = std::find_if(members.begin(), members.end(), [&](node_id id) {
      return g.node_at(id).op->kind == computation_kind::convolution;
    });
    REQUIRE(anchor != members.end());
    const std::vector<value_id> outputs = g.outputs();
    const codegen::block_view view{g, members, outputs, *anchor};
    const std::vector<tensor> all = evaluate_all();
    const device_info facts = info(device_form::vectors);
    const codegen::kernel_plan usual = codegen::lower(view, codegen::default_lower_options(&facts)).kernels.back();
    const std::string shape = usual.tuning;
    for (const chosen_blocks& way : ways) {
      codegen::tuning_table table;
      table.set(shape, {tile, way.rows, way.vectors, way.block_rows, way.block_columns, 0});
      tuned = &table;
      CAPTURE(shape, tile, way.rows, way.vectors, way.block_rows, way.block_columns);
      CHECK(check_block(view, device_form::vectors, all) ==
            std::vector<std::string>{tile == 0 ? "convolution_shifts" : "convolution_winograd"});
      tuned = nullptr;
    }
    return usual.overwrites.size();
  }
  /// The kernel of what was grown by default on a device of two cores with vectors of 16 and 1 MiB of local memory.
  std::string source_by_default() {
    rdp{}.run(g);
    fuse_blocks{}.run(g);
    const fused_block& block = g.blocks().back();
    device_info facts = info(device_form::vectors);
    facts.native_widths.float_width = 16;
    facts.compute_units = 2;
    facts.local_memory_bytes = 1048576;
    const codegen::lowered_node lowered =
        codegen::lower({g, block.members, block.outputs, block.anchor}, codegen::default_lower_options(&facts));
    return lowered.kernels.back().version + "\n" + lowered.kernels.back().source.str();
  }
};

}  // namespace

TEST_CASE_METHOD(winograd_blocks, "tiles of both sizes equal the reference on planes of odd sizes") {
  struct plane {
    dim_list x;
    std::int64_t outputs;
    std::vector<std::int64_t> pads;
    std::uint64_t local;  ///< bytes of local memory; 0: the device's
  };
  // Planes of one element, odd and prime ones, one that tiles fill, one whose channels come in parts, and one whose
  // rows do.
  const auto p = GENERATE(plane{{1, 1, 1, 1}, 1, {1, 1, 1, 1}, 0}, plane{{2, 3, 5, 7}, 5, {1, 1, 1, 1}, 0},
                          plane{{1, 5, 13, 17}, 33, {0, 2, 1, 0}, 0}, plane{{2, 16, 14, 14}, 16, {1, 1, 1, 1}, 0},
                          plane{{1, 64, 56, 56}, 24, {1, 1, 1, 1}, 0}, plane{{1, 67, 7, 9}, 20, {2, 0, 0, 2}, 65536},
                          plane{{1, 5, 6, 150}, 7, {1, 1, 1, 1}, 65536});
  const std::int64_t tile = GENERATE(2, 4);
  if (left_out(element_count(p.x) > 10'000)) return;
  local_memory = p.local;
  CAPTURE(p.x, p.outputs);
  g.add_output(convolution(input(p.x), p.x[1], p.outputs, p.pads));
  (void)check_tiles(tile, {{2, 1, 24, 32}, {6, 2, 768, 1024}});
}

TEST_CASE_METHOD(winograd_blocks, "tiles take what stands before a convolution and behind it") {
  const std::int64_t tile = GENERATE(2, 4);
  const bool scaled = GENERATE(true, false);
  const value_id x = input({2, 6, 11, 15});
  const value_id read = scaled ? add("Mul", {add("Tanh", {x}), constant({6, 1, 1})}) : x;
  const value_id y = convolution(read, 6, 19, {1, 1, 1, 1});
  std::size_t overwrites = 0;
  SECTION("a rectifier") { g.add_output(add("Relu", {y})); }
  SECTION("a residual, which may be written over") {
    g.add_output(add("Relu", {add("Add", {y, input({2, 19, 11, 15})})}));
    overwrites = 1;
  }
  SECTION("two results, of which one is a gate") {
    const value_id sum = add("Add", {y, input({2, 19, 11, 15})});
    g.add_output(sum);
    g.add_output(add("Mul", {sum, add("Sigmoid", {sum})}));
    overwrites = 2;
  }
  SECTION("a view") { g.add_output(add("Reshape", {y, integers({2, 19, 165})})); }
  CHECK(check_tiles(tile, {{4, 2, 96, 128}}) == overwrites);
}

TEST_CASE_METHOD(winograd_blocks, "tiles read the parts of a concatenation") {
  const value_id joined = add("Concat", {input({1, 5, 9, 10}), input({1, 8, 9, 10})}, with("axis", std::int64_t{1}));
  g.add_output(convolution(joined, 13, 9, {1, 1, 1, 1}));
  (void)check_tiles(GENERATE(2, 4), {{4, 1, 96, 64}});
}

TEST_CASE_METHOD(winograd_blocks, "windows side by side are reduced by the tiles that compute them") {
  struct row {
    dim_list dims;
    std::int64_t outputs;
    std::string pool;
    std::int64_t side;
    std::uint64_t local;
  };
  // Planes that windows fill, that they leave a row and a column of, and rows in several blocks.
  const auto r = GENERATE(row{{2, 3, 14, 14}, 5, "MaxPool", 2, 0}, row{{1, 6, 9, 11}, 18, "AveragePool", 2, 0},
                          row{{1, 4, 17, 21}, 7, "MaxPool", 4, 0}, row{{1, 5, 6, 150}, 7, "AveragePool", 2, 65536});
  const std::int64_t tile = GENERATE(2, 4);
  local_memory = r.local;
  CAPTURE(r.pool, r.dims, r.outputs);
  const value_id sum = convolution(input(r.dims), r.dims[1], r.outputs, {1, 1, 1, 1});
  // An operand that is another at each position tells whether positions are the convolution's.
  const value_id active = add("Relu", {add("Add", {sum, constant({1, 1, r.dims[2], r.dims[3]})})});
  attribute_map pooled = window(r.side, 0, r.side, 1);
  pooled.erase("group");
  g.add_output(add("Tanh", {add(r.pool, {active}, pooled)}));
  // Windows of four rows are in no tile of two.
  (void)check_tiles(r.side > tile ? 0 : tile, {{2, 1, 24, 32}, {6, 2, 768, 1024}});
}

TEST_CASE_METHOD(winograd_blocks, "tiles are chosen where their products save more than transforms cost") {
  struct row {
    std::int64_t channels, outputs, side, stride;
    const char* chosen;
  };
  const auto r = GENERATE(row{64, 64, 56, 1, "DNNOPT_TILE 4\n"}, row{256, 256, 14, 1, "DNNOPT_TILE 4\n"},
                          row{512, 512, 7, 1, "DNNOPT_TILE 2\n"}, row{64, 64, 56, 2, "convolution_shifts\n"},
                          row{1, 8, 28, 1, "convolution_shifts\n"}, row{3000, 16, 28, 1, "DNNOPT_TILE 2\n"});
  CAPTURE(r.channels, r.outputs, r.side);
  g.add_output(add("Conv", {input({1, r.channels, r.side, r.side}), constant({r.outputs, r.channels, 3, 3})},
                   window(3, 1, r.stride, 1)));
  const std::string source = source_by_default();
  CAPTURE(source.substr(0, 1500));
  CHECK(source.find(r.chosen) != std::string::npos);
}

TEST_CASE_METHOD(winograd_blocks, "groups, reduced planes and computed weights have no tiles") {
  const value_id x = input({1, 64, 28, 28});
  SECTION("groups") { g.add_output(add("Conv", {x, constant({64, 32, 3, 3})}, window(3, 1, 1, 2))); }
  SECTION("computed weights") { g.add_output(add("Conv", {x, input({64, 64, 3, 3})}, window(3, 1, 1, 1))); }
  SECTION("reduced planes") {
    const value_id y = add("Conv", {x, constant({64, 64, 3, 3})}, window(3, 1, 1, 1));
    g.add_output(y);
    g.add_output(add("GlobalAveragePool", {y}));
  }
  CHECK(source_by_default().find("convolution_winograd") == std::string::npos);
}

TEST_CASE("errors of tiles grow with the channels, and with the tile") {
  CHECK(codegen::winograd_error(4, 512) > codegen::winograd_error(4, 64));
  CHECK(codegen::winograd_error(4, 64) > codegen::winograd_error(2, 64));
  CHECK(codegen::winograd_error(4, 1024) < codegen::most_winograd_error);
  CHECK(codegen::winograd_error(4, 4096) > codegen::most_winograd_error);
}

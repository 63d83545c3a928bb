// Blocks that the fusion pass plans, as kernels in both forms, against the reference: what stands before a product,
// what reduces a convolution's planes, and products of one vector.
#include "block_fixture.hpp"

#include <array>
#include <span>

#include <dnnopt/backend/codegen/frames/convolutions/staged/emit_staged.hpp>

using namespace dnnopt;
using namespace dnnopt::testing;

TEST_CASE_METHOD(blocks, "a normalization of rows runs in the product that reads it") {
  for (const std::string_view norm : {"LayerNormalization", "RMSNormalization"}) {
    for (const std::int64_t length : {7, 33, 300}) {
      g = graph();
      inputs.clear();
      const value_id x = input({2, 13, length});
      std::vector<value_id> in{x, constant({length})};
      if (norm == "LayerNormalization") in.push_back(constant({length}));
      const value_id normal = add(norm, in, with("axis", std::int64_t{-1}));
      const value_id product = add("MatMul", {normal, constant({length, 21})});
      g.add_output(add("Relu", {add("Add", {product, constant({21})})}));
      check(device_form::vectors, {"matrix_panels_packed"});
    }
  }
}

TEST_CASE_METHOD(blocks, "rows of a normalization are found through views") {
  const value_id x = input({1, 6, 6, 8});
  const value_id normal = add("LayerNormalization", {x, constant({8}), constant({8})}, with("axis", std::int64_t{-1}));
  const value_id padded = add("Pad", {normal, integers({0, 1, 0, 0, 0, 0, 1, 0})});
  const value_id cut = add("Reshape", {padded, integers({1, 7, 7, 8})});
  g.add_output(add("MatMul", {cut, constant({8, 15})}));
  check(device_form::vectors, {"matrix_panels_packed"});
}

TEST_CASE_METHOD(blocks,
                 "halves are fetched as bits through views, what is filled in too, but not through arithmetic") {
  const auto halves = [&](dim_list dims) {
    inputs.push_back(random_tensor(dtype::float16, dims, ++seed));
    return g.add_input("x" + std::to_string(inputs.size()), dtype::float16, to_shape(dims));
  };
  const auto weights = [&](dim_list dims) {
    ++seed;
    return g.add_constant("w" + std::to_string(seed), random_tensor(dtype::float16, std::move(dims), seed));
  };
  const bool computed = GENERATE(false, true);
  CAPTURE(computed);
  const value_id x = halves({9, 12});
  const value_id turned = add("Transpose", {halves({12, 2})}, with("perm", std::vector<std::int64_t>{1, 0}));
  value_id rows = add("Concat", {x, turned, weights({1, 12})}, with("axis", std::int64_t{0}));
  rows = add("Pad", {rows, integers({1, 0, 0, 0}), weights({})});
  rows = add("Pad", {rows, integers({0, 1, 2, 2})});
  if (computed) rows = add("Neg", {rows});
  const value_id columns = add("Reshape", {weights({3, 5, 7}), integers({15, 7})});
  g.add_output(add("MatMul", {rows, columns}));
  check(device_form::groups, {"matrix_tiles"});
  const fused_block& block = g.blocks().back();
  const device_info facts = info(device_form::groups);
  const std::string source =
      codegen::lower({g, block.members, block.outputs, block.anchor}, codegen::default_lower_options(&facts))
          .kernels.back()
          .source.str();
  CHECK((source.find("#define DNNOPT_A_BITS 1") == std::string::npos) == computed);
  CHECK(source.find("#define DNNOPT_B_BITS 1") != std::string::npos);
}

TEST_CASE_METHOD(blocks, "a product is stored by heads, whose elements lie side by side in the kernel as well") {
  struct row {
    std::int64_t rows, heads, size;
    bool panels;  ///< all columns are whole panels of whatever device
    bool whole;   ///< each head is
  };
  const auto r = GENERATE(row{13, 3, 64, true, true}, row{7, 2, 128, true, true}, row{13, 16, 36, true, false},
                          row{5, 3, 7, false, false});
  CAPTURE(r.rows, r.heads, r.size);
  const value_id product = add("MatMul", {input({2, r.rows, 19}), constant({19, r.heads * r.size})});
  const value_id biased = add("Add", {product, constant({r.heads * r.size})});
  const value_id heads = add("Reshape", {biased, integers({2, r.rows, r.heads, r.size})});
  g.add_output(add("Transpose", {heads}, with("perm", std::vector<std::int64_t>{0, 2, 1, 3})));
  check(device_form::vectors, {"matrix_panels_packed"});
  const fused_block& block = g.blocks().back();
  const device_info facts = info(device_form::vectors);
  const std::string source =
      codegen::lower({g, block.members, block.outputs, block.anchor}, codegen::default_lower_options(&facts))
          .kernels.back()
          .source.str();
  const std::string stored = source.substr(source.find(" dnnopt_store(DNNOPT_PARAMETERS"));
  const std::string function = stored.substr(0, stored.find("\n}"));
  INFO(function);
  CHECK((function.find("const int lane") != std::string::npos) == r.panels);
  CHECK((function.find("(uint)(lane") == std::string::npos) == (r.whole || !r.panels));
  if (r.whole) CHECK(function.find("(uint)panel % ") != std::string::npos);
}

TEST_CASE_METHOD(blocks, "attention reads four neighbours through the views that part a product and its heads") {
  const std::int64_t size = GENERATE(16, 20, 6);
  CAPTURE(size);
  const std::int64_t all = 3 * size;
  const value_id joined = input({2, 21, 3 * all});
  std::array<value_id, 3> parts{};
  for (std::int64_t i = 0; i < 3; ++i) {
    const value_id part =
        add("Slice", {joined, integers({i * all}), integers({(i + 1) * all}), integers({2}), integers({1})});
    const value_id heads = add("Reshape", {part, integers({2, 21, 3, size})});
    parts[static_cast<std::size_t>(i)] = add("Transpose", {heads}, with("perm", std::vector<std::int64_t>{0, 2, 1, 3}));
  }
  g.add_output(add("Attention", {parts[0], parts[1], parts[2]}));
  check(device_form::groups, {"attention_tiles"});
  const std::string source = plans.back().source.str();
  for (const char* const load : {"query", "key", "value"})
    CHECK((source.find("dnnopt_load4_" + std::string(load) + "(DNNOPT_PARAMETERS") != std::string::npos) ==
          (size % 4 == 0));
}

TEST_CASE_METHOD(blocks, "planes are reduced by the convolution that computes them") {
  struct row {
    std::int64_t channels, outputs, size, pad, group, extent;
    const char* version;
  };
  for (const row& r :
       {row{5, 11, 1, 0, 1, 7, "convolution_panels_packed"}, row{4, 6, 3, 1, 1, 13, "convolution_shifts"},
        row{6, 6, 3, 1, 6, 15, "window_planes"}, row{6, 6, 5, 2, 6, 56, "window_planes"}}) {
    g = graph();
    inputs.clear();
    const value_id x = input({2, r.channels, r.extent, r.extent});
    const value_id y =
        add("Conv", {x, constant({r.outputs, r.channels / r.group, r.size, r.size}), constant({r.outputs})},
            window(r.size, r.pad, 1, r.group));
    const value_id active = add("HardSwish", {y});
    g.add_output(active);
    g.add_output(add("GlobalAveragePool", {active}));
    check(device_form::vectors, {r.version});
  }
}

TEST_CASE_METHOD(blocks, "planes of another rank than the convolution's are reduced apart") {
  g = graph();
  inputs.clear();
  const value_id y = add("Conv", {input({8, 3, 2, 4}), constant({1, 3, 1, 1})}, window(1, 0, 1, 1));
  // As many elements, of which what was the batch is the channels.
  const value_id moved = add("Add", {y, constant({1, 1, 1, 2, 4})});
  g.add_output(moved);
  g.add_output(add("GlobalAveragePool", {moved}));
  check(device_form::vectors, {"convolution_panels_packed", "row_items"});
}

TEST_CASE_METHOD(blocks, "two products of one vector run as one kernel") {
  for (const device_form form : {device_form::vectors, device_form::groups}) {
    for (const std::int64_t channels : {1, 19, 130}) {
      g = graph();
      inputs.clear();
      const value_id x = input({3, channels, 1, 1});
      const value_id first =
          add("Relu", {add("Conv", {x, constant({9, channels, 1, 1}), constant({9})}, window(1, 0, 1, 1))});
      const value_id second =
          add("Conv", {first, constant({channels, 9, 1, 1}), constant({channels})}, window(1, 0, 1, 1));
      g.add_output(add("Sigmoid", {second}));
      check(form, {"vector_chain"});
    }
  }
}

TEST_CASE_METHOD(blocks, "what is read across passes through local memory") {
  const auto transposed = [&](dim_list dims, std::vector<std::int64_t> order) {
    return add("Transpose", {input(std::move(dims))}, with("perm", std::move(order)));
  };
  const std::vector<std::string> tiles{"map_transposed"};
  const auto fresh = [&] {
    g = graph();
    inputs.clear();
  };
  SECTION("a matrix of odd sizes") {
    g.add_output(add("Relu", {transposed({131, 130}, {1, 0})}));
    check(device_form::groups, tiles);
  }
  SECTION("channels to the end and back, two spatial dims as one") {
    g.add_output(add("Relu", {transposed({2, 120, 9, 9}, {0, 2, 3, 1})}));
    check(device_form::groups, tiles);
    fresh();
    g.add_output(add("Neg", {transposed({3, 7, 11, 80}, {0, 3, 1, 2})}));
    check(device_form::groups, tiles);
  }
  SECTION("beside an operand that is read along, and a small one") {
    const value_id across = transposed({1, 150, 13, 11}, {0, 2, 3, 1});
    const value_id sum = add("Add", {across, input({1, 13, 11, 150})});
    g.add_output(add("Mul", {sum, constant({150})}));
    check(device_form::groups, tiles);
  }
  SECTION("two operands across, a reversal of three dims") {
    g.add_output(add("Mul", {transposed({29, 21, 33}, {2, 1, 0}), transposed({29, 21, 33}, {2, 1, 0})}));
    check(device_form::groups, tiles);
  }
  SECTION("not where the last dim stays, tiles would be empty, or elements are few") {
    for (const auto& [dims, order] : {std::pair<dim_list, std::vector<std::int64_t>>{{2, 30, 20, 17}, {0, 2, 1, 3}},
                                      {{5, 4000}, {1, 0}},
                                      {{60, 70}, {1, 0}}}) {
      fresh();
      g.add_output(add("Relu", {transposed(dims, order)}));
      check(device_form::groups, {"map"});
    }
  }
  SECTION("not on a device of wide vectors") {
    g.add_output(add("Relu", {transposed({131, 130}, {1, 0})}));
    check(device_form::vectors, {"map"});
  }
}

TEST_CASE_METHOD(blocks, "windows side by side are reduced by the convolution that computes them") {
  struct row {
    dim_list dims;
    std::int64_t outputs, kernel, stride;
    std::string pool;
    std::int64_t side;
  };
  // Planes of 14x14, 9x11 (a row and a column are in no window), 8x17 in windows of four, and 22x22 in blocks for many
  // cores.
  compute_units = 8;
  const auto r = GENERATE(row{{2, 3, 14, 14}, 5, 3, 1, "MaxPool", 2}, row{{1, 6, 9, 11}, 16, 3, 1, "AveragePool", 2},
                          row{{1, 2, 16, 34}, 7, 3, 2, "MaxPool", 4}, row{{1, 5, 22, 22}, 20, 5, 1, "MaxPool", 2});
  CAPTURE(r.pool, r.dims, r.outputs);
  const value_id sum =
      add("Conv", {input(r.dims), constant({r.outputs, r.dims[1], r.kernel, r.kernel}), constant({r.outputs})},
          window(r.kernel, r.kernel / 2, r.stride, 1));
  // An operand that is another at each position tells whether positions are the convolution's.
  const value_id active = add(
      "Relu", {add("Add", {sum, constant({1, 1, (r.dims[2] - 1) / r.stride + 1, (r.dims[3] - 1) / r.stride + 1})})});
  attribute_map pooled = window(r.side, 0, r.side, 1);
  pooled.erase("group");
  g.add_output(add("Tanh", {add(r.pool, {active}, pooled)}));
  check(device_form::vectors, {"convolution_shifts"});
  const fused_block& block = g.blocks().at(0);
  for (std::int64_t staging = 0; staging < 3; ++staging) {
    codegen::tuning_table table;
    set_shifts(table, shape_classes.back(), {4, 2, 24, 32, staging});
    tuned = &table;
    CAPTURE(staging);
    check_block({g, block.members, block.outputs, block.anchor}, device_form::vectors, evaluate_all());
    tuned = nullptr;
  }
}

TEST_CASE_METHOD(blocks, "an image is staged so that little is computed between rows of positions") {
  struct row {
    std::int64_t width;
    bool in_windows;
    std::int64_t row_vectors, columns_apart;
  };
  // Vectors of 16: rows of 14 with two positions between are whole ones, as are rows of 112 by themselves, and four
  // rows of 56 with nothing between.
  const auto r = GENERATE(row{14, false, 0, 0}, row{112, false, 7, 0}, row{56, true, 0, 1});
  value_id last = add("Conv", {input({1, 256, r.width, r.width}), constant({256, 256, 3, 3})}, window(3, 1, 1, 1));
  attribute_map side_by_side = window(2, 0, 2, 1);
  side_by_side.erase("group");
  if (r.in_windows) last = add("MaxPool", {last}, side_by_side);
  g.add_output(last);
  rdp{}.run(g);
  fuse_blocks{}.run(g);
  const fused_block& block = g.blocks().at(0);
  device_info facts = info(device_form::vectors);
  facts.native_widths.float_width = 16;
  facts.compute_units = 2;
  facts.local_memory_bytes = 1048576;
  // Winograd's tiles are expected to end before.
  const codegen::lowering_row staged =
      codegen::lowering_row{computation_kind::convolution, "convolution_shifts", codegen::choose_convolution_shifts,
                            codegen::emit_convolution_shifts};
  codegen::lower_options options = codegen::default_lower_options(&facts);
  options.rows = std::span(&staged, 1);
  const codegen::lowered_node lowered = codegen::lower({g, block.members, block.outputs, block.anchor}, options);
  const std::string& source = lowered.kernels.back().source;
  CAPTURE(r.width);
  CHECK(source.find("#define DNNOPT_ROW_VECTORS " + std::to_string(r.row_vectors) + "\n") != std::string::npos);
  CHECK(source.find("#define DNNOPT_COLUMNS_APART " + std::to_string(r.columns_apart) + "\n") != std::string::npos);
}

TEST_CASE_METHOD(blocks, "windows that overlap, or that others see through, stay apart") {
  const value_id planes = add("Conv", {input({1, 3, 15, 15}), constant({4, 3, 3, 3})}, window(3, 1, 1, 1));
  const bool overlap = GENERATE(true, false);
  attribute_map pooled = window(overlap ? 3 : 2, 0, 2, 1);
  pooled.erase("group");
  g.add_output(add("MaxPool", {planes}, pooled));
  if (!overlap) g.add_output(planes);
  check(device_form::vectors, {"convolution_shifts", "window_planes"});
}

TEST_CASE_METHOD(blocks, "windows that do not divide a panel run with constant weights, and with others not") {
  attribute_map pooled = window(3, 0, 3, 1);
  pooled.erase("group");
  const bool constant_weights = GENERATE(true, false);
  const value_id weights = constant_weights ? constant({4, 3, 3, 3}) : input({4, 3, 3, 3});
  const value_id planes = add("Conv", {input({1, 3, 13, 14}), weights}, window(3, 1, 1, 1));
  if (constant_weights) {
    g.add_output(add("MaxPool", {planes}, pooled));
    check(device_form::vectors, {"convolution_shifts"});
    return;
  }
  g.add_output(add("MaxPool", {planes}, pooled));
  CHECK_FALSE(one_block_lowers(device_form::vectors));
}

TEST_CASE_METHOD(blocks, "shape arithmetic that never runs keeps no reader away") {
  const index_expr batch = g.expressions().symbol("batch", {1, 64});
  const value_id x = g.add_input("x", dtype::float32, shape{batch, 4, 16});
  const value_id normal = add("LayerNormalization", {x, constant({16}), constant({16})});
  const value_id extents =
      add("Concat", {add("Slice", {add("Shape", {normal}), integers({0}), integers({1})}), integers({48})},
          with("axis", std::int64_t{0}));
  g.add_output(add("Reshape", {add("MatMul", {normal, constant({16, 12})}), extents}));
  rdp{}.run(g);
  fuse_blocks{}.run(g);
  // The product with the normalization in it, and the reshape, which is another name of its result.
  REQUIRE(g.blocks().size() == 2);
  CHECK(g.node_at(g.blocks()[0].anchor).op->name == "MatMul");
  CHECK(g.blocks()[0].members.size() == 2);
}

TEST_CASE_METHOD(blocks, "views that meet again and again are followed once") {
  const auto rungs = GENERATE(4, 40);
  value_id v = add("Relu", {input({2, 3})});
  for (int rung = 0; rung < rungs; ++rung) {
    const value_id twice = add("Concat", {v, v}, with("axis", std::int64_t{0}));
    v = add("Slice", {twice, integers({1}), integers({3})});
  }
  g.add_output(add("Neg", {v}));
  rdp{}.run(g);
  fuse_blocks{}.run(g);
  // Each rung doubles the places that an element may come from; what has 32 of them is stored.
  CHECK(g.blocks().size() <= static_cast<std::size_t>(2 + (rungs >= 5 ? rungs / 5 : 0)));
}

// What each family of kernels decides about a site: stated, without a kernel being written.
#include "choose_fixture.hpp"

#include <dnnopt/backend/codegen/frames/selection/choose.hpp>

#include <catch2/catch.hpp>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

using namespace dnnopt;
using namespace dnnopt::testing;

TEST_CASE("a choice is a value that compares and prints") {
  codegen::choice one("row_groups");
  one.with("group", 64).with("vector", 1);
  one.local_bytes = 256;
  codegen::choice other = one;
  CHECK(one == other);
  CHECK(one["group"] == 64);
  CHECK_FALSE(one.find("rows").has_value());
  CHECK_THROWS_AS(one["rows"], error);
  CHECK(codegen::to_string(one) == "row_groups group=64 vector=1, 256 bytes of local memory");
  other.taken.push_back({0, codegen::operand_form::packed});
  CHECK_FALSE(one == other);
  CHECK(other.form_of(0) == codegen::operand_form::packed);
  CHECK(other.form_of(1) == codegen::operand_form::elements);
  CHECK(codegen::to_string(other).find("input 0 in packed") != std::string::npos);
  const codegen::choice_or_reason refused = "too large";
  CHECK_FALSE(refused);
  CHECK(refused.reason() == "too large");
}

TEST_CASE("a guard that is not settled for all values of the symbols is a reason") {
  static index_expr slack = 0;
  const codegen::lowering_row row = codegen::lowering_row{
      std::nullopt, "map",
      [](const codegen::lowering_site&) -> codegen::choice_or_reason {
        codegen::choice made("map");
        made.guards.push_back({slack, "there may be too few"});
        return made;
      },
      [](const codegen::lowering_site&, const codegen::choice&) { return codegen::lowered_node{}; }};
  chooser c;
  const value_id out = c.add("Relu", {c.input({c.symbol("n")})});
  c.g.add_output(out);
  const codegen::block_view view{c.g, {c.g.value_at(out).producer}, {out}};
  const codegen::lower_options options;
  const codegen::lowering_site site = codegen::make_lowering_site(view, options);
  slack = c.symbol("n") - 1;
  CHECK(codegen::choice_of_row(site, row));
  slack = c.symbol("n") - 2;
  CHECK(codegen::choice_of_row(site, row).reason() == "there may be too few");
  slack = 0;
}

TEST_CASE("a count of elements whose bound is no number has none") {
  chooser c;
  // Two bounds that are numbers, whose product is none; two without bound.
  const std::int64_t high = GENERATE(std::int64_t{1} << 60, unbounded);
  const auto dim = [&](std::size_t axis) { return c.g.expressions().data_dim("a", 0, axis, {0, high}); };
  CHECK_FALSE(codegen::bounded_count(c.g, c.input({dim(0), dim(1)})));
}

TEST_CASE("a dim that the model declares is known before the run, whatever its name") {
  chooser c;
  const index_expr dim = c.g.expressions().symbol("input.1_0");
  CHECK(codegen::bounded_count(c.g, c.input({dim, 2})) == dim * 2);
}

TEST_CASE("rows of processors: as many for a work-item as are worth its launch") {
  chooser c;
  const std::int64_t rows = GENERATE(4096, 32);
  const value_id out = c.add("Softmax", {c.input({rows, 100})});
  // Of 4096 rows 4096 / 100 to an item, of 32 one for each of four items on eight cores.
  CHECK(c.told(out, "row_items") ==
        (rows == 4096 ? "row_items block=112 rows_per_item=40" : "row_items block=112 rows_per_item=1"));
  c.tuned.set("row_items " + std::to_string(rows) + " 100", {16});
  CHECK(c.choose(out, "row_items")->find("rows_per_item") == 16);
  c.device = gpu_device();
  CHECK(c.told(out, "row_items") == "the device does not prefer wide vectors");
}

TEST_CASE("rows of work-groups: few work-items for many rows, and vectors where memory allows") {
  chooser c;
  c.device = gpu_device();
  SECTION("softmax") {
    const value_id out = c.add("Softmax", {c.input({64, 1000})});
    CHECK(c.told(out, "row_groups") == "row_groups group=128 group_rows=1 vector=1 own=8, 512 bytes of local memory");
  }
  SECTION("many rows that are normalized") {
    const value_id x = c.input({65536, 1024});
    const value_id out = c.add("LayerNormalization", {x, c.constant({1024}), c.constant({1024})});
    CHECK(c.told(out, "row_groups") ==
          "row_groups group=64 group_rows=2 vector=4 own=4, input 0 in vectors, 512 bytes of local memory");
  }
  SECTION("rows that are no multiple of a vector") {
    const value_id x = c.input({65536, 1022});
    const value_id out = c.add("LayerNormalization", {x, c.constant({1022}), c.constant({1022})});
    CHECK(c.told(out, "row_groups") == "row_groups group=32 group_rows=1 vector=1 own=0, 128 bytes of local memory");
  }
  SECTION("symbols choose for what is usual") {
    const value_id out = c.add("Softmax", {c.input({c.symbol("n"), c.symbol("m")})});
    const codegen::choice_or_reason made = c.choose(out, "row_groups");
    REQUIRE(made);
    CHECK(made->tuning == "row_groups s s");
    CHECK(codegen::to_string(*made) == "row_groups group=128 group_rows=1 vector=1 own=0, 512 bytes of local memory");
  }
  SECTION("a work-group never has more work-items than the device allows") {
    c.device.max_work_group_size = 48;
    const value_id out = c.add("Softmax", {c.input({64, 1000})});
    const codegen::choice_or_reason made = c.choose(out, "row_groups");
    REQUIRE(made);
    CHECK((*made)["group"] * (*made)["group_rows"] <= 48);
    // A tuner's choice that does not fit leaves the default in place.
    const codegen::choice before = *made;
    c.tuned.set("row_groups 64 1000", {64, 1, 1});
    CHECK(*c.choose(out, "row_groups") == before);
    c.tuned.set("row_groups 64 1000", {16, 2, 1});
    CHECK((*c.choose(out, "row_groups"))["group_rows"] == 2);
  }
  SECTION("rows that are spread in memory are left to elements") {
    const value_id out = c.add("GlobalAveragePool", {c.input({1, 8, 7, 7})});
    CHECK(c.choose(out, "row_groups"));
    chooser other;
    other.device = gpu_device();
    tensor axes(dtype::int64, {1});
    axes.mutable_data<std::int64_t>()[0] = 0;
    const value_id spread = other.add("ReduceMean", {other.input({16, 32}), other.g.add_constant("axes", axes)});
    CHECK(other.told(spread, "row_groups") == "a row is spread in memory");
  }
}

TEST_CASE("windows over planes: rows of a block, and planes of a work-item") {
  chooser c;
  attribute_map pooled = attribute_of("kernel_shape", std::vector<std::int64_t>{3, 3});
  pooled.set("strides", std::vector<std::int64_t>{2, 2});
  SECTION("large planes in blocks of rows, small ones whole") {
    // Half as many rows until what is staged and computed is below 24 KiB: 4 phases of 7 + 1 rows, and 7, of 112
    // floats.
    const std::int64_t extent = GENERATE(224, 15);
    const value_id out = c.add("MaxPool", {c.input({1, 64, extent, extent})}, pooled);
    CHECK(c.told(out, "window_planes") ==
          (extent == 224 ? "window_planes flat=0 rows=7 blocks=1 planes=1 unroll=4, 17988 bytes of local memory"
                         : "window_planes flat=1 rows=7 blocks=1 planes=1 unroll=4, 3048 bytes of local memory"));
    c.device = gpu_device();
    CHECK(c.told(out, "window_planes") == "the device does not prefer wide vectors");
  }
  SECTION("what does not fit is a reason") {
    c.device.local_memory_bytes = 1024;
    const value_id out = c.add("MaxPool", {c.input({1, 64, 224, 224})}, pooled);
    CHECK(c.told(out, "window_planes") == "one row of windows takes more than the local memory");
  }
  SECTION("a tuner's rows are no more than there are") {
    const value_id out = c.add("MaxPool", {c.input({1, 64, 15, 15})}, pooled);
    c.tuned.set("window_planes 64 7 7 3 3 2 2", {64, 2, 3});
    const codegen::choice_or_reason made = c.choose(out, "window_planes");
    REQUIRE(made);
    CHECK((*made)["rows"] == 7);
    CHECK((*made)["planes"] == 2);
    CHECK((*made)["unroll"] == 3);
  }
  SECTION("of planes whose extents only a run tells, it says how large a block may be") {
    const value_id out = c.add("MaxPool", {c.input({1, 64, c.symbol("h"), 15})}, pooled);
    CHECK(c.told(out, "window_planes") == "window_planes span=240 capacity=6144 unroll=4, 30260 bytes of local memory");
    c.device.local_memory_bytes = 1024;
    CHECK(c.told(out, "window_planes") == "a vector of windows takes more than the local memory");
  }
}

TEST_CASE("elements: several for each work-item of devices that run them in step, where they are many") {
  chooser c;
  const value_id out = c.add("Relu", {c.input({1024, 1024})});
  CHECK(c.told(out, "map") == "map");
  c.device = gpu_device();
  CHECK(c.told(out, "map") == "map many=819200 group=256");
  CHECK(c.told(out, "map_transposed") == "no operand is read across");
  c.device.max_work_group_size = 64;
  CHECK(c.choose(out, "map")->find("group") == 64);
}

TEST_CASE("elements of dims of unknown sizes are read where they are written, without a division") {
  // What lies as the result does, what is broadcast along the first dims alone, and what a Reshape merges and splits.
  const auto divisions = [](auto&& grow) {
    chooser c;
    const auto dim = [&](std::string_view name) { return c.g.expressions().symbol(name); };
    const value_id x = c.input({dim("n"), 8, dim("h"), dim("w")});
    const value_id out = grow(c, x);
    c.g.add_output(out);
    rdp{}.run(c.g);
    fuse_blocks{}.run(c.g);
    const fused_block& block = c.g.blocks().at(0);
    const codegen::lowered_node lowered =
        codegen::lower({c.g, block.members, block.outputs, block.anchor}, codegen::default_lower_options(&c.device));
    const std::string source = lowered.kernels.at(0).source.str();
    const std::string own = source.substr(source.find("dnnopt_kernel(DNNOPT_KERNEL_PARAMETERS)"));
    INFO(own);
    CHECK(own.find("dnnopt_floor") == std::string::npos);
    CHECK(std::count(own.begin(), own.end(), '/') + std::count(own.begin(), own.end(), '%') == 0);
    // By what a run tells kernels divide with a reciprocal.
    std::size_t found = 0;
    for (const std::string_view division : {"dnnopt_over(", "dnnopt_rest("})
      for (std::size_t at = own.find(division); at != std::string::npos; at = own.find(division, at + 1)) ++found;
    return found;
  };
  CHECK(divisions([](chooser& c, value_id x) { return c.add("Relu", {x}); }) == 0);
  CHECK(divisions([](chooser& c, value_id x) { return c.add("Add", {c.add("Abs", {x}), x}); }) == 0);
  CHECK(divisions([](chooser& c, value_id x) {
          const auto dim = [&](std::string_view name) { return c.g.expressions().symbol(name); };
          return c.add("Mul", {x, c.input({8, dim("h"), dim("w")})});
        }) == 1);
}

TEST_CASE("a transposition passes through tiles in local memory") {
  chooser c;
  c.device = gpu_device();
  const bool known = GENERATE(true, false);
  const value_id x = c.input({known ? index_expr(256) : c.symbol("n"), 512});
  const value_id out = c.add("Relu", {c.add("Transpose", {x}, attribute_of("perm", std::vector<std::int64_t>{1, 0}))});
  CHECK(c.told(out, "map_transposed") ==
        (known ? "map_transposed group=256, 4224 bytes of local memory" : "dims are not known before execution"));
}

TEST_CASE("interpolation goes along rows where they are long and many") {
  chooser c;
  const std::int64_t width = GENERATE(64, 7);
  const value_id x = c.input({1, 3, 16, 16});
  tensor sizes(dtype::int64, {4});
  const std::vector<std::int64_t> held{1, 3, 64, width};
  std::copy(held.begin(), held.end(), sizes.mutable_data<std::int64_t>().begin());
  const value_id out = c.add("Resize", {x, no_value, no_value, c.g.add_constant("sizes", sizes)},
                             attribute_of("mode", std::string("linear")));
  CHECK(c.told(out, "map_rows") == (width == 64 ? "map_rows group=8" : "rows are shorter than a vector"));
}

TEST_CASE("rows of symbolic extents are as long as all operands share them") {
  chooser c;
  const index_expr h = c.symbol("h");
  const index_expr w = c.symbol("w");
  const value_id x = c.input({1, 64, h, w});
  value_id out = c.add("Mul", {x, c.input({1, 64, 1, 1})});
  SECTION("planes") { CHECK(c.told(out, "map_rows") == "map_rows group=8 axis=2"); }
  SECTION("lines") {
    out = c.add("Add", {out, c.input({h, 1})});
    CHECK(c.told(out, "map_rows") == "map_rows group=8 axis=3");
  }
}

TEST_CASE("selections keep memory for all that may be chosen, and say where that has no bound") {
  chooser c;
  SECTION("Compress: conditions beyond the slices are a guard that symbols may not settle") {
    const bool equal = GENERATE(true, false);
    const value_id x = c.input({c.symbol("n"), 4});
    const value_id chosen = c.input({equal ? c.symbol("n") : c.symbol("m")}, dtype::boolean);
    const value_id out = c.add("Compress", {x, chosen}, attribute_of("axis", std::int64_t{0}));
    CHECK(c.told(out, "compress") == (equal ? "select_slices" : "there may be more conditions than slices"));
  }
  SECTION("Unique compares some thousand slices") {
    const std::int64_t count = GENERATE(1000, 100000);
    const value_id out = c.add("Unique", {c.input({count})});
    CHECK(c.told(out, "unique") == (count == 1000 ? "unique_slices" : "more than 16384 slices are to be compared"));
  }
}

TEST_CASE("recurrent layers: a work-item for each hidden unit of devices that run them in step") {
  chooser c;
  const value_id x = c.input({10, 2, 16});
  const std::int64_t hidden = GENERATE(100, 3000);
  const value_id out = c.add("LSTM", {x, c.constant({1, 4 * hidden, 16}), c.constant({1, 4 * hidden, hidden})},
                             attribute_of("hidden_size", hidden));
  const std::string refused = "hidden units: none, or more than 2048";
  CHECK(c.told(out, "recurrent_groups") == (hidden == 100 ? "recurrent_groups group=1" : refused));
  c.device = gpu_device();
  CHECK(c.told(out, "recurrent_groups") == (hidden == 100 ? "recurrent_groups group=128" : refused));
}

TEST_CASE("attention: blocks for processors, tiles or a query for each work-group else") {
  chooser c;
  const index_expr heads = GENERATE(true, false) ? index_expr(12) : c.symbol("heads");
  const std::int64_t keys = heads.is_constant() ? 197 : 64;
  const value_id q = c.input({1, heads, keys, 64});
  const value_id out = c.add("Attention", {q, c.input({1, heads, keys, 64}), c.input({1, heads, keys, 64})});
  CAPTURE(heads.is_constant());
  const codegen::choice_or_reason items = c.choose(out, "attention_items");
  REQUIRE(items);
  CHECK((*items)["rows"] == 12);
  CHECK((*items)["keys"] == (keys == 197 ? 224 : 64));
  CHECK(items->local_bytes <= c.device.local_memory_bytes);
  CHECK(items->tuning == (keys == 197 ? "attention_items 12 197 197 64 64" : "attention_items s 64 64 64 64"));
  c.device.local_memory_bytes = 4096;
  CHECK(c.told(out, "attention_items") == "a block of keys takes more than the local memory");
  c.device = gpu_device();
  CHECK(c.told(out, "attention_items") == "the device does not prefer wide vectors");
  const codegen::choice_or_reason tiles = c.choose(out, "attention_tiles");
  REQUIRE(tiles);
  CHECK((*tiles)["rows"] == 16);
  CHECK((*tiles)["rows"] * 2 * (*tiles)["splits"] <= 1024);
  CHECK(tiles->local_bytes <= c.device.local_memory_bytes);
  c.device.max_work_group_size = 16;
  CHECK(c.told(out, "attention_tiles") == "a block takes more than the local memory or work-groups");
  CHECK(c.told(out, "attention_groups") == "attention_groups group=16, 320 bytes of local memory");
}

TEST_CASE("products of processors pack a constant in panels, and say what it takes") {
  chooser c;
  const bool known = GENERATE(true, false);
  const value_id x = c.input({known ? index_expr(128) : c.symbol("n"), 768});
  const value_id out = c.add("MatMul", {x, c.constant({768, 1000})});
  const codegen::choice_or_reason panels = c.choose(out, "matrix_panels");
  REQUIRE(panels);
  CHECK(panels->version == "matrix_panels_packed");
  CHECK(panels->form_of(1) == codegen::operand_form::packed);
  CHECK(panels->tuning == (known ? "matrix_panels 1 128 1000 768 b" : "matrix_panels 1 s 1000 768 b"));
  const std::int64_t width = (*panels)["vector"] * (*panels)["vectors"];
  const std::int64_t padded = (1000 + width - 1) / width * width;
  CHECK(panels->kept_bytes == static_cast<std::uint64_t>(4 * 768 * padded));
  CHECK(panels->weight_growth == Approx(static_cast<double>(padded) / 1000));
  CHECK(panels->local_bytes <= c.device.local_memory_bytes);
  c.tuned.set(panels->tuning, {4, 1, 96, 128, 256});
  CHECK((*c.choose(out, "matrix_panels"))["rows"] == 4);
  c.device = gpu_device();
  CHECK(c.told(out, "matrix_panels") == "the device does not prefer wide vectors");
  const codegen::choice_or_reason tiles = c.choose(out, "matrix_tiles");
  REQUIRE(tiles);
  CHECK(tiles->taken.empty());
  CHECK((known || (*tiles)["splits"] == 1));
  c.memory = memory_objects::packed;
  CHECK(c.choose(out, "matrix_tiles")->form_of(1) == codegen::operand_form::texels);
}

TEST_CASE("an operand that no constant is stays where it is, and what no product is has a reason") {
  chooser c;
  const value_id out = c.add("MatMul", {c.input({4, 8}), c.input({8, 16})});
  const codegen::choice_or_reason panels = c.choose(out, "matrix_panels");
  REQUIRE(panels);
  CHECK(panels->version == "matrix_panels");
  CHECK(panels->kept_bytes == 0);
  chooser integers;
  const value_id whole =
      integers.add("MatMul", {integers.input({4, 8}, dtype::int32), integers.input({8, 16}, dtype::int32)});
  CHECK(integers.told(whole, "matrix_panels") == "computes in float, input 0 is int32");
}

TEST_CASE("two products of one vector: only where the weights are few, or the device takes vectors one by one") {
  chooser c;
  const std::int64_t hidden = GENERATE(16, 256);
  const value_id x = c.input({1, 256});
  const value_id between = c.add("Relu", {c.add("Gemm", {x, c.constant({256, hidden})})});
  const value_id out = c.add("Gemm", {between, c.constant({hidden, 256})});
  CHECK(c.choose(out, "vector_chain"));
  CHECK((*c.choose(out, "vector_chain"))["group"] == 1);
  c.device = gpu_device();
  CHECK(c.told(out, "vector_chain") == (hidden == 16 ? "vector_chain group=1024 team=32, 5184 bytes of local memory"
                                                     : "one work-group would read 524288 bytes of weights alone"));
  CHECK(c.told(out, "matrix_tiles") == "one product at a time");
}

namespace {

value_id convolution(chooser& c, shape x, dim_list w, std::int64_t pad, std::int64_t group = 1) {
  attribute_map a = attribute_of("pads", std::vector<std::int64_t>{pad, pad, pad, pad});
  a.set("kernel_shape", std::vector<std::int64_t>{w[2], w[3]});
  a.set("group", group);
  return c.add("Conv", {c.input(std::move(x)), c.constant(std::move(w))}, a);
}

}  // namespace

TEST_CASE("convolutions of 3 x 3: tiles while weights may grow, else shifts, else patches") {
  chooser c;
  const value_id out = convolution(c, {1, 128, 28, 28}, {128, 128, 3, 3}, 1);
  const codegen::choice_or_reason tiles = c.choose(out, "convolution_winograd");
  REQUIRE(tiles);
  CHECK((*tiles)["tile"] == 4);
  CHECK(tiles->form_of(1) == codegen::operand_form::packed);
  CHECK(tiles->weight_growth >= 4);
  CHECK(tiles->local_bytes <= c.device.local_memory_bytes);
  c.weight_growth = 3;
  CHECK((*c.choose(out, "convolution_winograd"))["tile"] == 2);
  c.weight_growth = 1.5;
  CHECK(c.told(out, "convolution_winograd") == "the memory limit has no room for transformed weights");
  const codegen::choice_or_reason shifts = c.choose(out, "convolution_shifts");
  REQUIRE(shifts);
  CHECK(shifts->weight_growth < 1.2);
  c.device.local_memory_bytes = 256;
  CHECK(c.told(out, "convolution_shifts") == "what a block reads of the image takes more than the local memory");
  c.device = gpu_device();
  for (const std::string_view one : {"convolution_winograd", "convolution_shifts", "convolution_panels"})
    CHECK(c.told(out, one) == "the device does not prefer wide vectors");
  CHECK(c.choose(out, "convolution_tiles"));
}

TEST_CASE("convolutions of symbolic images have the tiles of a usual one, or patches") {
  chooser c;
  const value_id out = convolution(c, {1, 64, c.symbol("h"), c.symbol("w")}, {64, 64, 3, 3}, 1);
  const codegen::choice_or_reason tiles = c.choose(out, "convolution_winograd");
  REQUIRE(tiles);
  CHECK(tiles->tuning.empty());
  chooser usual;
  codegen::choice known = *usual.choose(convolution(usual, {1, 64, 56, 56}, {64, 64, 3, 3}, 1), "convolution_winograd");
  known.tuning.clear();
  CHECK(*tiles == known);
  CHECK(c.told(out, "convolution_shifts") == "extents that are not known before execution");
  const codegen::choice_or_reason panels = c.choose(out, "convolution_panels");
  REQUIRE(panels);
  CHECK(panels->tuning == "matrix_panels 1 64 s 576 a");
  CHECK(panels->form_of(0) == codegen::operand_form::elements);
}

TEST_CASE("rows of a pointwise convolution's image are read where they are") {
  chooser c;
  const value_id out = convolution(c, {1, 64, 28, 28}, {128, 64, 1, 1}, 0);
  const codegen::choice_or_reason panels = c.choose(out, "convolution_panels");
  REQUIRE(panels);
  CHECK(panels->form_of(0) == codegen::operand_form::straight);
  CHECK(panels->form_of(1) == codegen::operand_form::packed);
  CHECK((*panels)["block_inner"] == 64);
  CHECK(c.told(out, "convolution_shifts") == "a window of one element needs no shifts");
}

TEST_CASE("convolutions of single channels go by rows, and have no tiles") {
  chooser c;
  const value_id out = convolution(c, {1, 32, 40, 40}, {32, 1, 3, 3}, 1, 32);
  CHECK(c.told(out, "convolution_rows") == "convolution_rows run=32 rows=40");
  CHECK(c.told(out, "convolution_tiles") == "fewer than four output channels per group");
  CHECK(c.told(out, "convolution_texels") == "what it reads are no texels");
}

TEST_CASE("what stores or reads a sequence has no kernel on any device") {
  for (const device_info& device : {cpu_device(), gpu_device()}) {
    chooser c;
    const value_id made = c.add("SequenceConstruct", {c.input({4, 8})});
    const value_id same = c.add("Identity", {made});
    const value_id length = c.add("SequenceLength", {same});
    rdp{}.run(c.g);
    const codegen::lower_options options = codegen::default_lower_options(&device);
    for (const value_id out : {made, same, length}) {
      const node_id n = c.g.value_at(out).producer;
      const auto why = codegen::why_not_lowered({c.g, {n}, {out}, n}, options);
      REQUIRE(why.has_value());
      CHECK_THAT(*why, Catch::Contains("is no tensor"));
    }
  }
}

TEST_CASE("NonMaxSuppression of no boxes has memory for a number of each image and class") {
  chooser c;
  const index_expr boxes = c.g.expressions().symbol("boxes", {0, 1 << 20});
  const value_id most = c.g.add_constant("most", tensor::of<std::int64_t>({1}, std::vector<std::int64_t>{3}));
  const value_id out = c.add("NonMaxSuppression", {c.input({40, boxes, 4}), c.input({40, 100, boxes}), most});
  rdp{}.run(c.g);
  const codegen::lowered_node made =
      codegen::lower({c.g, {c.g.value_at(out).producer}, {out}}, codegen::default_lower_options());
  std::vector<std::int64_t> bytes;
  for (const codegen::scratch_buffer& one : made.scratch)
    bytes.push_back(substitute(one.bytes, [&](const index_expr& symbol) {
                      return symbol == boxes ? index_expr(0) : symbol;
                    }).constant());
  // Boxes in their order, boxes that are taken, their number, the number of all; boxes while they are sorted, corners.
  CHECK(bytes == std::vector<std::int64_t>{4, 4, 40 * 100 * 4, 8, 4, 16});
}

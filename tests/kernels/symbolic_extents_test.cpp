// Kernels whose extents a run tells: sizes of sizes come as arguments, an element's own place is not divided for, and
// element-wise operators with operands of fewer axes go along rows.
#include "block_fixture.hpp"
#include "choose_fixture.hpp"

#include <algorithm>
#include <cctype>
#include <sstream>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include <dnnopt/backend/run/built_kernels.hpp>

using namespace dnnopt;
using namespace dnnopt::testing;

namespace {

struct symbolic_blocks : blocks {
  /// An input whose dims are `dims`, of which a run has `held`.
  value_id input_of(const shape& dims, dim_list held) {
    for (std::size_t k = 0; k < held.size(); ++k)
      if (const auto symbol = dims[k].as_symbol()) symbols.bind(*symbol, held[k]);
    inputs.push_back(random_tensor(dtype::float32, std::move(held), ++seed));
    return g.add_input("x" + std::to_string(inputs.size()), dtype::float32, dims);
  }
  index_expr symbol(std::string_view name) { return g.expressions().symbol(name, {1, 4096}); }

  /// The one kernel of the one block.
  codegen::kernel_plan plan(device_form form) {
    REQUIRE(g.blocks().size() == 1);
    const fused_block& block = g.blocks()[0];
    const device_info facts = info(form);
    codegen::lowered_node lowered =
        codegen::lower({g, block.members, block.outputs, block.anchor}, codegen::default_lower_options(&facts));
    REQUIRE(lowered.kernels.size() == 1);
    return lowered.kernels[0];
  }
};

/// The text of a kernel behind the prelude.
std::string own_text(const codegen::kernel_plan& plan) {
  const std::string text = plan.source.str();
  return text.substr(text.find("#define DNNOPT_PARAMETERS"));
}
bool has(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

/// Blocks of products, of whose kernels the versions differ by what a run has.
struct symbolic_products : symbolic_blocks {
  /// Plans, runs each block, and compares what it stores.
  void agree(device_form form) {
    rdp{}.run(g);
    fuse_blocks{}.run(g);
    const std::vector<tensor> all = evaluate_all();
    for (const fused_block& block : g.blocks())
      (void)check_block({g, block.members, block.outputs, block.anchor}, form, all);
  }
  /// The texts of all versions of the first block's kernel in tiles.
  std::vector<std::string> tiles() {
    const fused_block& block = g.blocks()[0];
    const device_info facts = info(device_form::groups);
    std::vector<std::string> found;
    for (const codegen::kernel_plan& one :
         codegen::lower({g, block.members, block.outputs, block.anchor}, codegen::default_lower_options(&facts))
             .kernels)
      if (one.version == "matrix_tiles" || one.version == "convolution_tiles") found.push_back(own_text(one));
    REQUIRE(!found.empty());
    return found;
  }
};

}  // namespace

TEST_CASE_METHOD(symbolic_blocks, "a gate of planes with symbolic sides is applied along planes") {
  const auto form = GENERATE(device_form::vectors, device_form::groups);
  // A side of 1 is what the operand's own 1 must not be taken for.
  const auto [height, width] = GENERATE(std::pair{5, 7}, std::pair{1, 9}, std::pair{6, 1}, std::pair{1, 1});
  const index_expr h = symbol("height");
  const index_expr w = symbol("width");
  const index_expr n = symbol("batch");
  const value_id x = input_of({n, 64, h, w}, {2, 64, height, width});
  const value_id gate = input_of({n, 64, 1, 1}, {2, 64, 1, 1});
  const value_id bias = input_of({64, 1, 1}, {64, 1, 1});
  g.add_output(add("Add", {add("Mul", {x, gate}), bias}));
  check(form, {form == device_form::vectors ? "map_rows" : "map"});
  if (form == device_form::vectors) {
    // One loop over the whole plane, whose index is not divided: what is, depends on the row alone.
    const std::string text = own_text(plan(form));
    CHECK(text.find("for (int x0 = 0;") != std::string::npos);
    CHECK(text.find("(uint)x0") == std::string::npos);
    CHECK(text.find("dnnopt_floor") == std::string::npos);
  }
}

TEST_CASE_METHOD(symbolic_blocks, "operands that share some of the last axes are read along those") {
  const auto form = GENERATE(device_form::vectors, device_form::groups);
  const auto [height, width] = GENERATE(std::pair{5, 7}, std::pair{1, 9}, std::pair{6, 1});
  const index_expr h = symbol("height");
  const index_expr w = symbol("width");
  const value_id x = input_of({64, h, w}, {64, height, width});
  const value_id line = input_of({w}, {width});
  const value_id column = input_of({h, 1}, {height, 1});
  const bool columns = GENERATE(false, true);
  value_id y = add("Mul", {x, line});
  if (columns) y = add("Add", {y, column});
  g.add_output(y);
  check(form, {form == device_form::vectors ? "map_rows" : "map"});
}

TEST_CASE_METHOD(symbolic_blocks, "rows along which operands differ stay single elements") {
  const index_expr h = symbol("height");
  const index_expr w = symbol("width");
  SECTION("too few rows are certain") {
    const value_id x = input_of({h, w}, {6, 5});
    g.add_output(add("Mul", {x, input_of({h, 1}, {6, 1})}));
  }
  SECTION("the last axis may be broadcast, which a run tells") {
    const value_id x = input_of({64, h, w}, {64, 6, 1});
    g.add_output(add("Mul", {x, input_of({64, h, symbol("other")}, {64, 6, 4})}));
  }
  check(device_form::vectors, {"map"});
}

TEST_CASE_METHOD(symbolic_blocks, "an element finds operands of its own shape without division") {
  const auto form = GENERATE(device_form::vectors, device_form::groups);
  const shape dims{symbol("batch"), 3, symbol("height"), symbol("width")};
  const value_id x = input_of(dims, {2, 3, 5, 7});
  const value_id y = input_of(dims, {2, 3, 5, 7});
  g.add_output(add("Relu", {add("Add", {x, y})}));
  check(form, {"map"});
  const std::string text = own_text(plan(form));
  CHECK(text.find("b0[i]") != std::string::npos);
  CHECK(text.find("b1[i]") != std::string::npos);
  CHECK(text.find(" / ") == std::string::npos);
}

TEST_CASE_METHOD(symbolic_blocks, "sizes of sizes are arguments of the kernel") {
  const auto form = GENERATE(device_form::vectors, device_form::groups);
  const index_expr h = symbol("height");
  const index_expr w = symbol("width");
  const value_id x = input_of({1, 8, h, w}, {1, 8, 13, 9});
  attribute_map attributes;
  attributes.set("kernel_shape", std::vector<std::int64_t>{2, 2});
  attributes.set("strides", std::vector<std::int64_t>{2, 2});
  g.add_output(add("MaxPool", {x}, attributes));
  rdp{}.run(g);
  fuse_blocks{}.run(g);
  const codegen::kernel_plan made = plan(form);
  const auto is_argument = [&](const index_expr& e) {
    return std::find(made.parameters.begin(), made.parameters.end(), e) != made.parameters.end();
  };
  CHECK(is_argument(floordiv(h, 2)));
  CHECK(is_argument(floordiv(w, 2)));
  check(form, {made.version});
}

TEST_CASE_METHOD(symbolic_blocks, "an extent in many steps that share their parts is one argument") {
  const auto form = GENERATE(device_form::vectors, device_form::groups);
  // Windows of windows: each step has the one before three times, and a divisor that is 0 for some sizes.
  const index_expr x = symbol("x");
  const index_expr y = symbol("y");
  const index_expr z = g.expressions().symbol("z", {0, 4096});
  index_expr length = x;
  for (int step = 0; step < 12; ++step)
    length = min(min(floordiv(length * y, z) + 1, max(length + z, 2 * mod(length, z) + step)), 4096);
  for (const auto& [named, held] : {std::pair{x, 5}, std::pair{y, 2}, std::pair{z, 2}})
    symbols.bind(*named.as_symbol(), held);
  const value_id in = input_of({3, length}, {3, length.evaluate(symbols)});
  g.add_output(add("Softmax", {in}));
  rdp{}.run(g);
  fuse_blocks{}.run(g);
  const codegen::kernel_plan made = plan(form);
  CHECK(std::find(made.parameters.begin(), made.parameters.end(), divided_by_one_at_least(length)) !=
        made.parameters.end());
  CHECK(own_text(made).size() < 20000);
  check(form, {made.version});
}

TEST_CASE_METHOD(symbolic_blocks, "how far a crop or padding moves is told to a kernel, not computed by it") {
  const auto form = GENERATE(device_form::vectors, device_form::groups);
  const std::int64_t target = 8;
  const std::int64_t held = GENERATE(2, 3, 5, 8, 9, 11);
  CAPTURE(held);
  const value_id x = input_of({symbol("rows"), symbol("columns"), symbol("depth")}, {held, 3, 1});
  attribute_map along;
  along.set("axes", std::vector<std::int64_t>{-3});
  g.add_output(add("CenterCropPad", {x, integers({target})}, along));
  check(form, {"map"});
  const std::string text = own_text(plan(form));
  CHECK(text.find("dnnopt_floordiv") == std::string::npos);
  CHECK(text.find("max(") == std::string::npos);
}

namespace {

/// Whether a line of OpenCL C divides by something else than a number.
bool divides(const std::string& line) {
  for (const std::string_view division : {" / (uint)", " % (uint)", " / (ulong)", " % (ulong)"})
    for (std::size_t at = line.find(division); at != std::string::npos; at = line.find(division, at + 1))
      if (std::isdigit(static_cast<unsigned char>(line[at + division.size()])) == 0) return true;
  return line.find("dnnopt_floor") != std::string::npos;
}

/// Lines of a kernel that stand behind a test and divide.
std::vector<std::string> divisions_behind_tests(const std::string& text) {
  std::vector<std::string> found;
  std::vector<bool> tested;
  std::istringstream lines(text.substr(text.find("__kernel")));
  for (std::string line; std::getline(lines, line);) {
    if (line.find('}') != std::string::npos && !tested.empty()) tested.pop_back();
    const bool behind = !tested.empty() && tested.back();
    if (behind && divides(line)) found.push_back(line);
    if (line.ends_with("{")) tested.push_back(behind || line.find("if (") != std::string::npos);
  }
  return found;
}

}  // namespace

TEST_CASE("no kernel divides an element's number behind a test") {
  chooser c;
  c.device = GENERATE(cpu_device(), gpu_device());
  const shape four{c.symbol("n"), c.symbol("c"), c.symbol("h"), c.symbol("w")};
  const std::string op = GENERATE("MaxPool", "Pad", "Concat", "CenterCropPad", "Resize", "RotaryEmbedding", "LRN");
  CAPTURE(op);
  const auto x =
      c.input(four, op == "Resize" || op == "RotaryEmbedding" || op == "LRN" ? dtype::float32 : dtype::uint8);
  attribute_map attributes;
  std::vector<value_id> operands{x};
  std::vector<node_id> members;
  if (op == "Resize") {
    // What interpolates goes along rows, and stands behind the test of what is padded after it.
    attribute_map linear;
    linear.set("mode", std::string("linear"));
    const value_id none = c.g.add_constant("none", tensor(dtype::float32, {0}));
    const std::vector<float> factors{1, 1, 2, 3};
    operands = {c.add(op, {x, none, c.g.add_constant("scales", tensor::of<float>({4}, factors))}, linear)};
    members.push_back(c.g.value_at(operands[0]).producer);
    const std::vector<std::int64_t> pads{1, 0, 2, 3, 0, 1, 2, 1};
    operands.push_back(c.g.add_constant("pads", tensor::of<std::int64_t>({8}, pads)));
  } else if (op == "RotaryEmbedding") {
    for (const char* const cache : {"cosines", "sines"})
      operands.push_back(c.g.add_input(cache, dtype::float32, shape{c.symbol("positions"), floordiv(four[3], 2)}));
    operands.push_back(c.g.add_input("place", dtype::int64, shape{four[0], four[2]}));
  } else if (op == "LRN") {
    attributes.set("size", std::int64_t{3});
  } else if (op == "MaxPool") {
    attributes.set("kernel_shape", std::vector<std::int64_t>{5, 5});
    attributes.set("pads", std::vector<std::int64_t>{2, 2, 2, 2});
  } else if (op == "Pad") {
    const std::vector<std::int64_t> pads{1, 0, 2, 3, 0, 1, 2, 1};
    operands.push_back(c.g.add_constant("pads", tensor::of<std::int64_t>({8}, pads)));
  } else if (op == "Concat") {
    attributes.set("axis", std::int64_t{1});
    for (const char* const channels : {"d", "e"})
      operands.push_back(c.input({four[0], c.symbol(channels), four[2], four[3]}, dtype::uint8));
  } else {
    attributes.set("axes", std::vector<std::int64_t>{1});
    operands.push_back(c.g.add_constant("target", tensor::of<std::int64_t>({1}, std::vector<std::int64_t>{9})));
  }
  const value_id out = c.add(op == "Resize" ? "Pad" : op, operands, attributes);
  members.push_back(c.g.value_at(out).producer);
  rdp{}.run(c.g);
  const codegen::lowered_node made = codegen::lower({c.g, members, {out}}, codegen::default_lower_options(&c.device));
  REQUIRE(made.kernels.size() == 1);
  const std::string text = own_text(made.kernels[0]);
  CAPTURE(text);
  REQUIRE(text.find("if (") != std::string::npos);
  CHECK(divisions_behind_tests(text) == std::vector<std::string>{});
}

TEST_CASE("a reciprocal divides every number of 31 bits exactly") {
  const auto over = [](std::int64_t n, std::int64_t reciprocal) {
    const std::uint64_t product =
        static_cast<std::uint64_t>(n << 1) * (static_cast<std::uint64_t>(reciprocal) & 0xffffffffU);
    return static_cast<std::int64_t>((product >> 32U) >> static_cast<std::uint64_t>(reciprocal >> 32));
  };
  constexpr std::int64_t most = (std::int64_t{1} << 31) - 1;
  std::vector<std::int64_t> divisors{most - 1, most};
  for (std::int64_t d = 1; d < 2000; ++d) divisors.push_back(d);
  for (std::int64_t power = 2048; power < most; power *= 2)
    for (const std::int64_t d : {power - 1, power, power + 1, 3 * (power / 2) + 1})
      divisors.push_back(std::min(d, most));
  bool exact = true;
  for (const std::int64_t d : divisors)
    for (const std::int64_t multiple :
         {std::int64_t{0}, std::int64_t{1}, std::int64_t{2}, std::int64_t{7}, most / d / 2, most / d})
      for (const std::int64_t n : {multiple * d - 1, multiple * d, multiple * d + d / 2, multiple * d + d - 1, most})
        if (n >= 0 && n <= most) exact = exact && over(n, codegen::reciprocal_of(d)) == n / d;
  CHECK(exact);
  for (const std::int64_t none : {std::int64_t{0}, std::int64_t{-3}, most + 1, std::int64_t{1} << 62})
    CHECK(over(most, codegen::reciprocal_of(none)) == 0);
}

TEST_CASE_METHOD(symbolic_blocks, "kernels divide by what a run tells with a reciprocal that it tells too") {
  const auto form = GENERATE(device_form::vectors, device_form::groups);
  const auto [rows, columns] = GENERATE(std::pair{1, 1}, std::pair{5, 7}, std::pair{64, 1}, std::pair{33, 130});
  const value_id x = input_of({symbol("batch"), symbol("rows"), symbol("columns")}, {3, rows, columns});
  attribute_map reversed;
  reversed.set("perm", std::vector<std::int64_t>{2, 1, 0});
  g.add_output(add("Transpose", {x}, reversed));
  check(form, {"map"});
  const codegen::kernel_plan made = plan(form);
  CHECK(!made.divisors.empty());
  const std::string text = own_text(made);
  CHECK(text.find("dnnopt_rest(") != std::string::npos);
  CHECK(text.find(" / (") == std::string::npos);
  CHECK(text.find(" % (") == std::string::npos);
}

TEST_CASE_METHOD(symbolic_blocks, "a run of more elements than a kernel's int counts is refused") {
  const auto form = GENERATE(device_form::vectors, device_form::groups);
  const index_expr rows = g.expressions().symbol("rows");
  const index_expr columns = g.expressions().symbol("columns");
  g.add_output(add("Neg", {input_of({rows, columns}, {2, 3})}));
  rdp{}.run(g);
  fuse_blocks{}.run(g);
  const codegen::kernel_plan made = plan(form);
  CHECK(own_text(made).find("const long i") == std::string::npos);
  CHECK_NOTHROW(check_counts(made, "turned", symbols));
  symbols.bind(*rows.as_symbol(), std::int64_t{1} << 16);
  symbols.bind(*columns.as_symbol(), (std::int64_t{1} << 15) - 1);
  CHECK_NOTHROW(check_counts(made, "turned", symbols));
  symbols.bind(*columns.as_symbol(), std::int64_t{1} << 15);
  try {
    check_counts(made, "turned", symbols);
    FAIL("2^31 elements are counted in 31 bits");
  } catch (const error& refused) {
    CHECK(refused.code() == errc::overflow);
    CHECK(std::string(refused.what()).find("turned") != std::string::npos);
    CHECK(std::string(refused.what()).find("2147483648") != std::string::npos);
  }
}

TEST_CASE_METHOD(symbolic_products, "offsets into a value of symbolic dims are of 32 bits, and four are read at once") {
  const index_expr batch = g.expressions().symbol("batch");
  const value_id x = input_of({batch, 9, 32}, {GENERATE(1, 3, 40), 9, 32});
  g.add_output(add("Relu", {add("MatMul", {x, constant({32, 20})})}));
  agree(GENERATE(device_form::vectors, device_form::groups));
  for (const std::string& text : tiles()) {
    CHECK(has(text, "#define DNNOPT_A_WIDTH 4"));
    const std::string functions = text.substr(0, text.find("#define dnnopt_kernel"));
    CHECK(!has(functions.substr(0, functions.find("#define DNNOPT_M")), "(long)"));
    CHECK(!has(functions.substr(functions.find("DNNOPT_STORE_ALONG")), "(long)"));
  }
}

TEST_CASE_METHOD(symbolic_products, "a run of a value of more elements than an int counts is refused") {
  const index_expr batch = g.expressions().symbol("batch");
  g.add_output(add("MatMul", {input_of({batch, 9, 32}, {2, 9, 32}), constant({32, 20})}));
  rdp{}.run(g);
  fuse_blocks{}.run(g);
  const fused_block& block = g.blocks()[0];
  const device_info facts = info(device_form::groups);
  const codegen::kernel_plan made =
      codegen::lower({g, block.members, block.outputs, block.anchor}, codegen::default_lower_options(&facts))
          .kernels.back();
  symbols.bind(*batch.as_symbol(), ((std::int64_t{1} << 31) - 1) / (9 * 32));
  CHECK_NOTHROW(check_counts(made, "product", symbols));
  symbols.bind(*batch.as_symbol(), ((std::int64_t{1} << 31) - 1) / (9 * 32) + 1);
  CHECK_THROWS_WITH(check_counts(made, "product", symbols), Catch::Matchers::Contains("product"));
}

TEST_CASE_METHOD(symbolic_products, "columns of a run are read four at once where they are a multiple of four") {
  const auto form = GENERATE(device_form::vectors, device_form::groups);
  SECTION("of a pointwise convolution, whose image may end with a part of four") {
    const auto [height, width] = GENERATE(std::pair{4, 4}, std::pair{5, 7}, std::pair{1, 1}, std::pair{1, 3},
                                          std::pair{2, 7}, std::pair{12, 12}, std::pair{9, 11});
    const value_id x = input_of(
        {g.expressions().symbol("batch"), 8, g.expressions().symbol("height"), g.expressions().symbol("width")},
        {2, 8, height, width});
    g.add_output(add("Conv", {x, constant({12, 8, 1, 1})}));
  }
  SECTION("of a product, along the inner elements too") {
    const auto [rows, inner, columns] = GENERATE(std::tuple{5, 4, 8}, std::tuple{4, 7, 5}, std::tuple{1, 1, 1},
                                                 std::tuple{3, 3, 4}, std::tuple{70, 66, 67}, std::tuple{8, 68, 2});
    const auto dim = [&](std::string_view name) { return g.expressions().symbol(name); };
    const value_id a = input_of({dim("batch"), dim("rows"), dim("inner")}, {2, rows, inner});
    const value_id b = input_of({dim("batch"), dim("inner"), dim("columns")}, {2, inner, columns});
    g.add_output(add("MatMul", {a, b}));
  }
  agree(form);
  for (const std::string& text : tiles()) {
    CHECK(has(text, "#define DNNOPT_B_WIDTH 4"));
    CHECK(has(text, "if (extent % 4 == 0) return *(__global const float4*)at;"));
  }
}

// Symbolic shapes and values through structure operators: the chains that exporters write, backward transfer, and
// errors.
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <catch2/catch.hpp>

#include <dnnopt/index_expr_io.hpp>
#include <dnnopt/ops/extend.hpp>
#include <dnnopt/ops/gather.hpp>
#include <dnnopt/ops/generator.hpp>
#include <dnnopt/ops/permute.hpp>
#include <dnnopt/ops/reshape.hpp>
#include <dnnopt/ops/resize.hpp>
#include <dnnopt/ops/selection.hpp>
#include <dnnopt/ops/shape_query.hpp>
#include <dnnopt/ops/slice.hpp>

namespace {

using namespace dnnopt;
using ints = std::vector<std::int64_t>;

value_facts of_dims(dtype type, shape dims) {
  value_facts f;
  f.type = type;
  f.dims = std::move(dims);
  return f;
}
value_facts constant(const ints& values) {
  value_facts f;
  f.constant = tensor::of<std::int64_t>({static_cast<std::int64_t>(values.size())}, values);
  f.type = dtype::int64;
  f.dims = to_shape(f.constant.dims());
  return f;
}
value_facts scalar(std::int64_t v) {
  value_facts f;
  f.constant = tensor::scalar(v);
  f.type = dtype::int64;
  f.dims = shape{};
  return f;
}

/// Runs inference of one operator.
class inference {
 public:
  explicit inference(expr_context& context) : context_(&context) {}

  template <class Op>
  std::vector<value_facts> run(const std::vector<value_facts>& inputs, attribute_map attributes = {},
                               std::size_t outputs = 1) const {
    std::vector<const value_facts*> pointers;
    for (const value_facts& f : inputs) pointers.push_back(&f);
    std::vector<value_facts> found(outputs);
    Op::infer(node_facts{&attributes, pointers, outputs, context_, "node"}, found);
    return found;
  }
  template <class Op>
  std::vector<value_facts> back(std::vector<value_facts> inputs, const std::vector<value_facts>& outputs,
                                attribute_map attributes = {}) const {
    std::vector<const value_facts*> pointers;
    for (const value_facts& f : inputs) pointers.push_back(&f);
    std::vector<value_facts> raised = inputs;
    Op::infer_backward(node_facts{&attributes, pointers, outputs.size(), context_, "node"}, outputs, raised);
    return raised;
  }

 private:
  expr_context* context_;
};

attribute_map with(std::string name, attribute value) {
  attribute_map map;
  map.set(std::move(name), std::move(value));
  return map;
}

template <class F>
std::optional<errc> code_of(F f) {
  try {
    f();
  } catch (const error& e) {
    return e.code();
  }
  return std::nullopt;
}

}  // namespace

TEST_CASE("a head split with a shape computed from Shape, Gather, Unsqueeze and Concat stays symbolic") {
  expr_context context;
  const inference infer(context);
  const index_expr batch = context.symbol("batch");
  const index_expr sequence = context.symbol("sequence");
  const value_facts x = of_dims(dtype::float32, {batch, sequence, 768});
  const value_facts dims = infer.run<ops::shape_op>({x})[0];
  REQUIRE(dims.elements);
  CHECK((*dims.elements)[1] == sequence);
  const value_facts first = infer.run<ops::gather_op>({dims, scalar(0)})[0];
  const value_facts second = infer.run<ops::gather_op>({dims, scalar(-2)})[0];
  CHECK(first.dims == shape{});
  const value_facts a = infer.run<ops::unsqueeze_op>({first, constant({0})})[0];
  const value_facts b = infer.run<ops::unsqueeze_op>({second, constant({0})})[0];
  const value_facts wanted =
      infer.run<ops::concat_op>({a, b, constant({12}), constant({-1})}, with("axis", std::int64_t{0}))[0];
  REQUIRE(wanted.elements);
  const value_facts heads = infer.run<ops::reshape_op>({x, wanted})[0];
  CHECK(heads.dims == shape{batch, sequence, 12, 64});
  const value_facts swapped = infer.run<ops::transpose_op>({heads}, with("perm", ints{0, 2, 1, 3}))[0];
  CHECK(swapped.dims == shape{batch, 12, sequence, 64});
}

TEST_CASE("Reshape: -1 cancels equal dims before it divides") {
  expr_context context;
  const inference infer(context);
  const index_expr n = context.symbol("n");
  const index_expr s = context.symbol("s");
  CHECK(infer.run<ops::reshape_op>({of_dims(dtype::float32, {n, s, 8}), constant({-1, 8})})[0].dims == shape{n * s, 8});
  CHECK(infer.run<ops::reshape_op>({of_dims(dtype::float32, {n, s, 8}), constant({0, -1})})[0].dims == shape{n, s * 8});
  CHECK(infer.run<ops::reshape_op>({of_dims(dtype::float32, {n, 4, 8}), constant({-1, 16})})[0].dims ==
        shape{n * 2, 16});
}

TEST_CASE("index maps of Reshape split, merge or keep dims, and linearize no more than they must") {
  expr_context context;
  const index_expr batch = context.symbol("batch");
  const index_expr i = context.symbol("i", {0, unbounded});
  const index_expr j = context.symbol("j", {0, 15});
  const index_expr k = context.symbol("k", {0, 7});
  const index_expr l = context.symbol("l", {0, 3});
  // SmartMem's example (Fig. 3) without its transpose: [2, 256, 4] as [16, 8, 4, 4].
  const index_expr a = context.symbol("a", {0, 15});
  const auto source =
      ops::regrouped({2, 256, 4}, {16, 8, 4, 4}, std::vector<index_expr>{a, k, l, context.symbol("m", {0, 3})});
  CHECK(source[2] == context.symbol("m"));
  CHECK(source[0] == floordiv(a, 8));
  CHECK(source[1] == mod(a, 8) * 32 + k * 4 + l);
  // A dim in common does not take part, also where it is symbolic.
  const auto merged = ops::regrouped({batch, 4, 8}, {batch, 32}, std::vector<index_expr>{i, j});
  CHECK(merged[0] == i);
  CHECK(merged[1] == floordiv(j, 8));
  CHECK(merged[2] == mod(j, 8));
  const auto split = ops::regrouped({batch, 32}, {1, batch, 4, 8}, std::vector<index_expr>{0, i, l, k});
  CHECK(split == std::vector<index_expr>{i, l * 8 + k});
}

TEST_CASE("Slice clamps, wraps and steps over symbolic dims") {
  expr_context context;
  const inference infer(context);
  const index_expr n = context.symbol("n", {4, unbounded});
  const auto length = [&](std::int64_t start, std::int64_t end, std::int64_t step) {
    return infer
        .run<ops::slice_op>(
            {of_dims(dtype::float32, {n}), constant({start}), constant({end}), constant({0}), constant({step})})[0]
        .dims->front();
  };
  CHECK(length(0, 9223372036854775807, 1) == n);
  CHECK(length(1, 2147483647, 1) == n - 1);
  CHECK(length(0, -1, 1) == n - 1);
  CHECK(length(-2, 9223372036854775807, 1) == index_expr(2));
  CHECK(length(0, 4, 1) == index_expr(4));
  CHECK(length(0, 9223372036854775807, 2) == floordiv(n + 1, 2));
  CHECK(length(-1, -9223372036854775807, -1) == n);
  symbol_values values;
  values.bind(*n.as_symbol(), 5);
  CHECK(length(1, 100, 3).evaluate(values) == 2);
  CHECK(length(7, 9, 1).evaluate(values) == 0);
}

TEST_CASE("dims that execution decides are symbols that do not change from call to call") {
  expr_context context;
  const inference infer(context);
  const value_facts x = of_dims(dtype::float32, {3, 4});
  const shape once = *infer.run<ops::non_zero_op>({x})[0].dims;
  const shape again = *infer.run<ops::non_zero_op>({x})[0].dims;
  CHECK(once == again);
  CHECK(once[0] == index_expr(2));
  CHECK(once[1].as_symbol());
  CHECK(once[1].range() == expr_range{0, 12});
}

TEST_CASE("Range, ConstantOfShape and Expand over symbolic sizes") {
  expr_context context;
  const inference infer(context);
  const index_expr n = context.symbol("n");
  value_facts limit = scalar(0);
  limit.constant = tensor();
  limit.elements = std::vector<index_expr>{n};
  CHECK(infer.run<ops::range_op>({scalar(0), limit, scalar(1)})[0].dims == shape{n});
  value_facts wanted = of_dims(dtype::int64, {2});
  wanted.elements = std::vector<index_expr>{n, 3};
  CHECK(infer.run<ops::constant_of_shape_op>({wanted})[0].dims == shape{n, 3});
  CHECK(infer.run<ops::expand_op>({of_dims(dtype::float32, {1, 3}), wanted})[0].dims == shape{n, 3});
  const auto counted = infer.run<ops::range_op>({scalar(2), scalar(8), scalar(3)})[0];
  REQUIRE(counted.elements);
  CHECK(*counted.elements == std::vector<index_expr>{2, 5});
}

TEST_CASE("Resize scales symbolic dims by fractions that a float holds") {
  expr_context context;
  const inference infer(context);
  const index_expr h = context.symbol("h");
  value_facts scales;
  scales.constant = tensor::of<float>({4}, std::vector<float>{1, 1, 2, 0.5F});
  scales.type = dtype::float32;
  scales.dims = shape{4};
  value_facts none = of_dims(dtype::float32, {0});
  const auto out = infer.run<ops::resize_op>({of_dims(dtype::float32, {1, 3, h, h}), none, scales})[0];
  CHECK(out.dims == shape{1, 3, h * 2, floordiv(h, 2)});
}

TEST_CASE("backward transfer raises inputs from outputs") {
  expr_context context;
  const inference infer(context);
  const index_expr a = context.symbol("a");
  const index_expr b = context.symbol("b");
  const value_facts unknown;
  const std::vector<value_facts> out{of_dims(dtype::float32, {a * 2, b * 4})};
  // SoD2's Fig. 3(b): the transposed output of a product gives its input.
  CHECK(infer.back<ops::transpose_op>({unknown}, out, with("perm", ints{1, 0}))[0].dims == shape{b * 4, a * 2});
  CHECK(infer.back<ops::transpose_op>({unknown}, out, with("perm", ints{1, 0}))[0].type == dtype::float32);
  CHECK(infer.back<ops::identity_op>({unknown}, out)[0].dims == out[0].dims);
  CHECK(infer.back<ops::unsqueeze_op>({unknown, constant({0})}, {of_dims(dtype::float32, {1, a})})[0].dims == shape{a});
  CHECK(infer.back<ops::squeeze_op>({unknown, constant({1})}, out)[0].dims == shape{a * 2, 1, b * 4});
  CHECK_FALSE(infer.back<ops::reshape_op>({unknown, constant({2, 3})}, out)[0].dims);
}

TEST_CASE("constant inputs make operators less dynamic") {
  expr_context context;
  const attribute_map none;
  const value_facts x = of_dims(dtype::float32, {2, 3});
  const value_facts known = constant({3, 2});
  const value_facts open = of_dims(dtype::int64, {2});
  const value_facts* with_known[] = {&x, &known};
  const value_facts* with_open[] = {&x, &open};
  const op_info& reshape = op_row<ops::reshape_op>;
  CHECK(dynamism_of(reshape, {&none, with_known, 1, &context, "n"}) == dynamism_class::isdos);
  CHECK(dynamism_of(reshape, {&none, with_open, 1, &context, "n"}) == dynamism_class::isvdos);
}

TEST_CASE("contradictions are errors that name the operator") {
  expr_context context;
  const inference infer(context);
  const value_facts x = of_dims(dtype::float32, {2, 3});
  CHECK(code_of([&] { (void)infer.run<ops::reshape_op>({x, constant({4, 2})}); }) == errc::shape_mismatch);
  CHECK(code_of([&] { (void)infer.run<ops::reshape_op>({x, constant({-1, -1})}); }) == errc::shape_mismatch);
  CHECK(code_of([&] { (void)infer.run<ops::reshape_op>({x, constant({-2, 3})}); }) == errc::shape_mismatch);
  CHECK(code_of([&] { (void)infer.run<ops::transpose_op>({x}, with("perm", ints{0, 0})); }) == errc::bad_attribute);
  CHECK(code_of([&] { (void)infer.run<ops::transpose_op>({x}, with("perm", ints{0})); }) == errc::bad_attribute);
  CHECK(code_of([&] {
          (void)infer.run<ops::concat_op>({x, of_dims(dtype::float32, {3, 3})}, with("axis", std::int64_t{1}));
        }) == errc::shape_mismatch);
  CHECK(code_of([&] {
          (void)infer.run<ops::concat_op>({x, of_dims(dtype::int64, {2, 3})}, with("axis", std::int64_t{1}));
        }) == errc::type_mismatch);
  CHECK(code_of([&] { (void)infer.run<ops::concat_op>({x, x}); }) == errc::bad_attribute);
  CHECK(code_of([&] { (void)infer.run<ops::gather_op>({x, of_dims(dtype::float32, {1})}); }) == errc::type_mismatch);
  CHECK(code_of([&] { (void)infer.run<ops::squeeze_op>({x, constant({0})}); }) == errc::shape_mismatch);
  CHECK(code_of([&] {
          (void)infer.run<ops::slice_op>({x, constant({0}), constant({1}), constant({5})});
        }) == errc::bad_attribute);
  CHECK(code_of([&] {
          (void)infer.run<ops::slice_op>({x, constant({0}), constant({1}), constant({0}), constant({0})});
        }) == errc::shape_mismatch);
  CHECK(code_of([&] {
          (void)infer.run<ops::split_op>({x, constant({1, 2})}, with("axis", std::int64_t{0}), 2);
        }) == errc::shape_mismatch);
  CHECK(code_of([&] { (void)infer.run<ops::expand_op>({x, constant({2, 4})}); }) == errc::shape_mismatch);
  CHECK(code_of([&] { (void)infer.run<ops::tile_op>({x, constant({2})}); }) == errc::shape_mismatch);
  CHECK(code_of([&] { (void)infer.run<ops::top_k_op>({x, constant({4})}, {}, 2); }) == errc::shape_mismatch);
}

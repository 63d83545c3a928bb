// Two products of computed matrices with a small one between, as one kernel, against the reference.
#include "block_fixture.hpp"

using namespace dnnopt;
using namespace dnnopt::testing;

namespace {

struct linear_attention : blocks {
  value_id across(value_id v) { return add("Transpose", {v}, with("perm", std::vector<std::int64_t>{0, 1, 3, 2})); }
  /// [batch, heads, tokens, width + 1] of three inputs [batch, heads, width, tokens], or with tokens before width.
  value_id attend(std::int64_t batch, std::int64_t heads, std::int64_t tokens, std::int64_t width, bool tokens_last) {
    const auto part = [&] {
      return tokens_last ? across(input({batch, heads, width, tokens})) : input({batch, heads, tokens, width});
    };
    const value_id q = add("Relu", {part()});
    const value_id k = add("Relu", {part()});
    const value_id v = add("Pad", {part(), integers({0, 0, 0, 0, 0, 0, 0, 1}), one()});
    return add("MatMul", {q, add("MatMul", {across(k), v})});
  }
  value_id one() {
    tensor t(dtype::float32, {});
    t.mutable_data<float>()[0] = 1.0f;
    return g.add_constant("one" + std::to_string(++seed), std::move(t));
  }
};

}  // namespace

TEST_CASE_METHOD(linear_attention, "linear attention is one kernel") {
  struct row {
    std::int64_t batch, heads, tokens, width;
  };
  // Few tokens, more than a block of them, widths of less than a vector, of one panel and of more.
  const auto r = GENERATE(row{1, 4, 5, 3}, row{2, 2, 19, 32}, row{1, 4, 40, 33}, row{1, 5, 300, 5});
  const bool tokens_last = GENERATE(true, false);
  CAPTURE(r.batch, r.heads, r.tokens, r.width, tokens_last);
  g.add_output(attend(r.batch, r.heads, r.tokens, r.width, tokens_last));
  check(device_form::vectors, {"product_chain"});
}

TEST_CASE_METHOD(linear_attention, "the small matrix may stand on either side, with expressions around it") {
  const bool first = GENERATE(true, false);
  const bool turned = GENERATE(true, false);
  const value_id x = input({5, 9, 21});
  const value_id y = input({5, 21, 13});
  value_id small = add("MatMul", {x, y});
  small = add("Add", {add("Tanh", {small}), input({5, 9, 13})});
  const value_id wide = first ? input({5, 13, 40}) : input({5, 40, 9});
  value_id out = add("MatMul", first ? std::vector<value_id>{small, wide} : std::vector<value_id>{wide, small});
  out = add("Sigmoid", {out});
  if (turned) out = add("Transpose", {out}, with("perm", std::vector<std::int64_t>{0, 2, 1}));
  g.add_output(out);
  check(device_form::vectors, {"product_chain"});
}

TEST_CASE_METHOD(linear_attention, "sums over labelled dims chain as well") {
  const value_id small =
      add("Einsum", {input({2, 7, 3, 6}), input({2, 7, 3, 5})}, with("equation", std::string("bthi,bthj->bhij")));
  g.add_output(add("Einsum", {input({2, 11, 3, 6}), small}, with("equation", std::string("bnhi,bhij->bnhj"))));
  check(device_form::vectors, {"product_chain"});
}

TEST_CASE_METHOD(linear_attention, "tokens that only a run counts, and images") {
  const index_expr tokens = g.expressions().symbol("tokens");
  const index_expr batch = g.expressions().symbol("batch");
  symbols.bind(*tokens.as_symbol(), 150);
  symbols.bind(*batch.as_symbol(), 2);
  const auto part = [&] {
    inputs.push_back(random_tensor(dtype::float32, {2, 4, 150, 10}, ++seed));
    return g.add_input("x" + std::to_string(seed), dtype::float32, shape{batch, 4, tokens, 10});
  };
  const value_id small = add("MatMul", {across(part()), part()});
  g.add_output(add("MatMul", {part(), small}));
  check(device_form::vectors, {"product_chain"});
}

TEST_CASE_METHOD(linear_attention,
                 "products stay apart where the matrix between is read twice, large, one, or constant") {
  const std::string why = GENERATE("read twice", "stored", "large", "few", "constant", "turned");
  CAPTURE(why);
  const std::int64_t heads = why == "few" ? 2 : 4;
  const std::int64_t width = why == "large" ? 80 : 8;
  const value_id x = input({heads, width, 20});
  const value_id y = why == "constant" ? constant({heads, 20, width}) : input({heads, 20, width});
  const value_id small = add("MatMul", {x, y});
  const value_id read =
      why == "turned" ? add("Transpose", {small}, with("perm", std::vector<std::int64_t>{0, 2, 1})) : small;
  g.add_output(add("MatMul", {input({heads, 30, width}), read}));
  if (why == "read twice") g.add_output(add("MatMul", {input({heads, 31, width}), small}));
  if (why == "stored") g.add_output(small);
  rdp{}.run(g);
  fuse_blocks{}.run(g);
  CHECK(g.blocks().size() == (why == "read twice" ? 3U : 2U));
}

TEST_CASE_METHOD(linear_attention, "a device of work-groups has no kernel for two products of matrices") {
  g.add_output(attend(1, 4, 20, 8, true));
  CHECK_FALSE(one_block_lowers(device_form::groups));
}

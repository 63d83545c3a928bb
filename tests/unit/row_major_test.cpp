// Row-major offsets whose quotients and remainders meet again, also by dims of unknown sizes: the laws by form, and by
// numbers over drawn shapes.
#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include <dnnopt/index_expr_io.hpp>
#include <dnnopt/ops/reshape.hpp>
#include <dnnopt/row_major.hpp>

using namespace dnnopt;

namespace {

/// The index in dims `d` of a row-major offset, as kernels take it apart.
std::vector<index_expr> index_in(const shape& d, const index_expr& offset) {
  std::vector<index_expr> index(d.size(), index_expr(0));
  index_expr stride = 1;
  std::size_t outermost = 0;
  while (outermost < d.size() && d[outermost] == index_expr(1)) ++outermost;
  for (std::size_t k = d.size(); k-- > outermost;) {
    if (d[k] == index_expr(1)) continue;
    const index_expr q = floordiv(offset, stride);
    index[k] = k == outermost ? q : mod(q, d[k]);
    stride *= d[k];
  }
  return index;
}

/// An offset, and dims of unknown sizes.
struct symbolic_dims {
  expr_context context;
  index_expr i = context.symbol("i", {0, (std::int64_t{1} << 31) - 1});
  index_expr n = context.symbol("n");
  index_expr h = context.symbol("h");
  index_expr w = context.symbol("w");
};

}  // namespace

TEST_CASE_METHOD(symbolic_dims, "the index of an offset is that offset again, whatever the dims are") {
  const index_expr rows = ceildiv(ceildiv(h, 2), 2);
  const index_expr columns = ceildiv(ceildiv(w, 2), 2);
  for (const shape& d : {shape{n, h, w}, shape{1, 256, rows, columns}, shape{n, 8, h, 1, w}, shape{h, w, 64},
                         shape{n, 4, 6, 6}, shape{h + 1, w - h, h * w}}) {
    INFO(to_string(d));
    CHECK(row_major_offset(d, index_in(d, i)) == i);
  }
}

TEST_CASE_METHOD(symbolic_dims, "offsets in a part of the dims are one quotient and one remainder") {
  const std::vector<index_expr> at = index_in({n, 8, h, w}, i);
  // Operands that are broadcast along the first dims, along the last, and in the middle.
  CHECK(row_major_offset(shape{h, w}, std::vector{at[2], at[3]}) == mod(i, h * w));
  CHECK(row_major_offset(shape{n, 8}, std::vector{at[0], at[1]}) == floordiv(i, h * w));
  CHECK(row_major_offset(shape{8, h}, std::vector{at[1], at[2]}) == mod(floordiv(i, w), h * 8));
  // Dims in another order are no number.
  CHECK(row_major_offset(shape{w, h}, std::vector{at[3], at[2]}) == at[3] * h + at[2]);
}

TEST_CASE_METHOD(symbolic_dims, "a reshape of dims of unknown sizes keeps the offset") {
  const shape apart{n, 8, h, w};
  const shape merged{n, 8, h * w};
  CHECK(row_major_offset(apart, ops::regrouped(apart, merged, index_in(merged, i))) == i);
  CHECK(row_major_offset(merged, ops::regrouped(merged, apart, index_in(apart, i))) == i);
}

TEST_CASE_METHOD(symbolic_dims, "the offset of an element that was moved along the outermost dim is moved") {
  const index_expr moved = context.symbol("moved", {-100, 100});
  std::vector<index_expr> at = index_in({n, h, w}, i);
  at[0] += moved;
  CHECK(row_major_offset(shape{n + 8, h, w}, at) == i + moved * h * w);
  // Of a dim further in, only what is below it joins.
  at = index_in({n, h, w}, i);
  at[1] += moved;
  CHECK(row_major_offset(shape{h, w}, std::vector{at[1], at[2]}) == mod(i, h * w) + moved * w);
}

TEST_CASE("offsets that were joined are those of the sums") {
  std::mt19937 random(11);
  const auto draw = [&](int below) { return static_cast<std::int64_t>(random() % static_cast<unsigned>(below)); };
  for (int turn = 0; turn < 2000; ++turn) {
    expr_context context;
    symbol_values values;
    const auto dim = [&](std::size_t k) {
      const std::int64_t size = 1 + draw(5);
      if (draw(3) == 0) return index_expr(size);
      const index_expr symbol = context.symbol("d" + std::to_string(k));
      values.bind(*symbol.as_symbol(), size);
      return draw(3) == 0 ? ceildiv(symbol, 2) : symbol;
    };
    shape from;
    for (std::size_t k = 0; k < 4; ++k) from.push_back(dim(k));
    const index_expr i = context.symbol("i", {0, 1000});
    const std::vector<index_expr> at = index_in(from, i);
    values.bind(*i.as_symbol(), draw(static_cast<int>(element_count(from).evaluate(values))));
    // Some of the dims, in any order, one of them perhaps of another size.
    shape d;
    std::vector<index_expr> index;
    for (std::size_t k = 0; k < 4; ++k) {
      if (draw(4) == 0) continue;
      const auto from_k = static_cast<std::size_t>(draw(6) == 0 ? draw(4) : static_cast<std::int64_t>(k));
      d.push_back(draw(6) == 0 ? from[from_k] + 1 : from[from_k]);
      index.push_back(draw(6) == 0 ? at[from_k] + (draw(5) - 2) : at[from_k]);
    }
    std::int64_t wanted = 0;
    for (std::size_t k = 0; k < d.size(); ++k) wanted = wanted * d[k].evaluate(values) + index[k].evaluate(values);
    // A dim of 1 takes no part.
    bool ones = false;
    for (std::size_t k = 0; k < d.size(); ++k) ones = ones || (d[k] == index_expr(1) && index[k].evaluate(values) != 0);
    if (ones) continue;
    INFO(to_string(from) << " as " << to_string(d) << ", turn " << turn);
    REQUIRE(row_major_offset(d, index).evaluate(values) == wanted);
  }
}

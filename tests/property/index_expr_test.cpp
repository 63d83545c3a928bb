// Index expressions mean what their arithmetic means: canonical forms keep the value, and what is built anew from a
// canonical form is the same expression.
#include <catch2/catch.hpp>

#include <dnnopt/backend/codegen/builder/index_source.hpp>
#include <dnnopt/index_expr.hpp>
#include <dnnopt/index_expr_io.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

using namespace dnnopt;

namespace {

constexpr std::size_t symbols = 3;
constexpr std::array<std::int64_t, symbols> extents{48, 7, 120};

/// A random expression, as the library simplifies it and as plain numbers at every point of `points`.
struct drawn {
  index_expr e;
  std::vector<std::int64_t> values;
};

class drawer {
 public:
  drawer(expr_context& context, std::uint32_t seed) : engine_(seed) {
    for (std::size_t p = 0; p < 40; ++p)
      for (std::size_t s = 0; s < symbols; ++s)
        points_[p][s] = static_cast<std::int64_t>(below(static_cast<std::uint32_t>(extents[s])));
    for (std::size_t s = 0; s < symbols; ++s)
      symbols_.push_back(context.symbol("s" + std::to_string(s), {0, extents[s] - 1}));
  }

  drawn draw(int depth) {
    const std::uint32_t which = below(depth == 0 ? 2 : 13);
    if (which == 0) return number(static_cast<std::int64_t>(below(9)) - 2);
    if (which == 1) return symbol(below(symbols));
    const drawn a = draw(depth - 1);
    // Divisors of extents are what index maps divide by.
    constexpr std::array<std::int64_t, 8> divisors{2, 3, 4, 5, 6, 8, 12, 24};
    if (which <= 5) {
      const std::int64_t d = divisors[below(divisors.size())];
      return which <= 3 ? combine(
                              a, number(d), [](auto x, auto y) { return floordiv(x, y); }, floor_quotient)
                        : combine(
                              a, number(d), [](auto x, auto y) { return mod(x, y); }, floor_remainder);
    }
    if (which == 6) {
      const drawn d = number(divisors[below(divisors.size())]);
      return combine(
          a, d, [](auto x, auto y) { return x * y; }, [](auto x, auto y) { return x * y; });
    }
    const drawn b = draw(depth - 1);
    if (which == 7)
      return combine(
          a, b, [](auto x, auto y) { return min(x, y); }, [](auto x, auto y) { return std::min(x, y); });
    if (which == 8)
      return combine(
          a, b, [](auto x, auto y) { return x - y; }, [](auto x, auto y) { return x - y; });
    if (which == 9)
      return combine(
          a, b, [](auto x, auto y) { return max(x, y); }, [](auto x, auto y) { return std::max(x, y); });
    if (which == 10)
      return combine(
          a, b, [](auto x, auto y) { return x * min(y, 1); },
          [](auto x, auto y) { return x * std::min<std::int64_t>(y, 1); });
    if (which == 11)
      return combine(
          a, a, [](auto x, auto y) { return x * min(y, 1); },
          [](auto x, auto y) { return x * std::min<std::int64_t>(y, 1); });
    return combine(
        a, b, [](auto x, auto y) { return x + y; }, [](auto x, auto y) { return x + y; });
  }

  [[nodiscard]] std::int64_t evaluate(const index_expr& e, std::size_t point) const {
    symbol_values values;
    for (std::size_t s = 0; s < symbols; ++s) values.bind(*symbols_[s].as_symbol(), points_[point][s]);
    return e.evaluate(values);
  }

 private:
  std::uint32_t below(std::size_t limit) { return static_cast<std::uint32_t>(engine_() % limit); }
  static std::int64_t floor_quotient(std::int64_t x, std::int64_t y) { return (x - ((x % y) + y) % y) / y; }
  static std::int64_t floor_remainder(std::int64_t x, std::int64_t y) { return ((x % y) + y) % y; }
  drawn number(std::int64_t n) const { return {n, std::vector<std::int64_t>(points_.size(), n)}; }
  drawn symbol(std::size_t s) const {
    drawn made{symbols_[s], {}};
    for (const auto& point : points_) made.values.push_back(point[s]);
    return made;
  }
  template <class Symbolic, class Plain>
  static drawn combine(const drawn& a, const drawn& b, Symbolic symbolic, Plain plain) {
    drawn made{symbolic(a.e, b.e), {}};
    for (std::size_t p = 0; p < a.values.size(); ++p) made.values.push_back(plain(a.values[p], b.values[p]));
    return made;
  }

  std::mt19937 engine_;
  std::array<std::array<std::int64_t, symbols>, 40> points_{};
  std::vector<index_expr> symbols_;
};

}  // namespace

TEST_CASE("index expressions keep their values and ranges, and simplify once for all") {
  for (std::uint32_t seed = 1; seed <= 3000; ++seed) {
    expr_context context;
    drawer draws(context, seed);
    const drawn made = draws.draw(6);
    INFO("seed " << seed << ": " << to_string(made.e));
    const expr_range range = made.e.range();
    for (std::size_t p = 0; p < made.values.size(); ++p) {
      REQUIRE(draws.evaluate(made.e, p) == made.values[p]);
      REQUIRE(range.low <= made.values[p]);
      REQUIRE(made.values[p] <= range.high);
    }
    REQUIRE(substitute(made.e, [](const index_expr& symbol) { return symbol; }) == made.e);
  }
}

TEST_CASE("atoms that are replaced by symbols of their values leave a sum of products of the same value") {
  std::size_t replaced = 0;
  for (std::uint32_t seed = 1; seed <= 2000; ++seed) {
    expr_context context;
    drawer draws(context, seed);
    const drawn made = draws.draw(6);
    INFO("seed " << seed << ": " << to_string(made.e));
    REQUIRE(always_has_value(made.e));
    // Every second atom at most stays and is replaced within.
    const bool all = seed % 2 == 0;
    std::vector<index_expr> atoms;
    std::size_t asked = 0;
    const index_expr e = substitute_atoms(made.e, [&](const index_expr& atom) -> std::optional<index_expr> {
      if (!all && !atom.as_symbol() && ++asked % 2 == 0) return std::nullopt;
      atoms.push_back(atom);
      return context.symbol("atom" + std::to_string(atoms.size() - 1), atom.range());
    });
    replaced += atoms.size();
    for (std::size_t p = 0; p < made.values.size(); ++p) {
      symbol_values values;
      for (std::size_t a = 0; a < atoms.size(); ++a)
        values.bind(*context.symbol("atom" + std::to_string(a)).as_symbol(), draws.evaluate(atoms[a], p));
      REQUIRE(e.evaluate(values) == made.values[p]);
    }
  }
  CHECK(replaced > 1000);
}

TEST_CASE("an expression has no value for certain where a divisor may be 0 or less") {
  expr_context context;
  const index_expr x = context.symbol("x");
  const index_expr y = context.symbol("y", {1, 9});
  CHECK(always_has_value(index_expr(3)));
  CHECK(always_has_value(floordiv(x, 3) * mod(x, y) + min(x, floordiv(x + 1, y + 1))));
  CHECK_FALSE(always_has_value(floordiv(y, x)));
  CHECK_FALSE(always_has_value(2 * max(min(x, mod(y, x)), y) + 1));
  CHECK_FALSE(always_has_value(mod(x, y - 1)));
}

TEST_CASE("expressions that share parts are looked through and printed without writing them out in full") {
  expr_context c;
  const index_expr x = c.symbol("x", {1, 1 << 20});
  const index_expr y = c.symbol("y", {1, 1 << 20});
  const index_expr z = c.symbol("z", {1, 1 << 20});
  CHECK(codegen::takes_division(floordiv(x, y) + 1));
  CHECK(codegen::takes_division(y * max(mod(x, 7), z)));
  CHECK_FALSE(codegen::takes_division(x * y + 3));
  CHECK_FALSE(codegen::takes_division(5));
  // Each step has the one before twice: written out in full, the last one would have more parts than can be walked.
  index_expr e = x;
  for (int step = 0; step < 60; ++step) e = min(e * y, max(e + z, z * z + step));
  REQUIRE(e.size() > 1U << 30U);
  CHECK_FALSE(codegen::takes_division(e));
  CHECK(codegen::takes_division(max(e, floordiv(x, y))));
  const std::string text = to_string(e);
  CHECK(text.size() < 10000);
  CHECK(text.find(", where #1 = ") != std::string::npos);
  CHECK(text == to_string(min(e, e)));
  CHECK(text != to_string(max(e, floordiv(x, y))));
}

TEST_CASE("a divisor that may be 0 counts as 1 where a value is wanted always") {
  expr_context c;
  const index_expr n = c.symbol("n", {0, 100});
  const index_expr m = c.symbol("m", {1, 100});
  const index_expr signed_one = c.symbol("s", {-5, 100});
  const auto at = [&](const index_expr& e, std::int64_t of_n) {
    symbol_values values;
    values.bind(*n.as_symbol(), of_n);
    values.bind(*m.as_symbol(), 21);
    values.bind(*signed_one.as_symbol(), -2);
    return e.try_evaluate(values);
  };
  const index_expr e = 2 * max(floordiv(m, n), mod(m + n, n + 0 * m)) + floordiv(m, 5);
  CHECK_FALSE(at(e, 0));
  const index_expr made = divided_by_one_at_least(e);
  CHECK(always_has_value(made));
  CHECK(at(made, 0) == 2 * 21 + 4);
  for (const std::int64_t of_n : {1, 2, 4, 50}) CHECK(at(made, of_n) == at(e, of_n));
  // What may be below 0 stays as it is, and so does what has a value anyway.
  const index_expr may_be_negative = floordiv(m, signed_one);
  CHECK(divided_by_one_at_least(may_be_negative) == may_be_negative);
  CHECK(divided_by_one_at_least(floordiv(n, m)) == floordiv(n, m));
}

TEST_CASE("a quotient by what may be 0 is bounded by the divisors that divide") {
  expr_context context;
  const index_expr n = context.symbol("n", {0, 50});
  const index_expr m = context.symbol("m", {0, 200});
  CHECK(floordiv(m, n).range() == expr_range{0, 200});
  CHECK(mod(m, n).range() == expr_range{0, 49});
  CHECK(floordiv(floordiv(m, n), n + 1).range().low == 0);
  CHECK_FALSE(always_has_value(floordiv(m, n)));
}

TEST_CASE("digits of an index recombine") {
  expr_context context;
  const index_expr i = context.symbol("i", {0, 239});
  const index_expr q = floordiv(i, 30);
  const index_expr r = mod(i, 30);
  CHECK(floordiv(r, 5) == mod(floordiv(i, 5), 6));
  CHECK(floordiv(r, 5) * 5 + mod(r, 5) == r);
  CHECK(floordiv(q, 4) * 120 + mod(q, 4) * 30 + floordiv(r, 5) * 5 + mod(r, 5) == i);
}

TEST_CASE("what is filled up to a multiple is one") {
  expr_context context;
  const index_expr x = context.symbol("x");
  const index_expr filled = x + mod(64 - mod(x, 64), 64);
  CHECK(filled == floordiv(0 - x, 64) * -64);
  CHECK(mod(filled, 64) == index_expr(0));
  CHECK(floordiv(filled, 64).range().low == 0);
  CHECK(x - mod(x, 8) == 8 * floordiv(x, 8));
  CHECK(3 + x - 8 * floordiv(x + 1, 8) == 2 + mod(x + 1, 8));
  CHECK(min(x, filled) == x);
}

TEST_CASE("sizes that are cut and broadcast become what they are") {
  expr_context context;
  const index_expr x = context.symbol("x");
  const index_expr y = context.symbol("y");
  const index_expr z = context.symbol("z", {-9, 9});
  // What a factor of 0 or 1 says is said by the other factors.
  CHECK(x * min(x, 1) == x);
  CHECK(x * max(0 - x, -1) == 0 - x);
  CHECK(3 * x * y * min(4 * x * y, 1) == 3 * x * y);
  CHECK((floordiv(x, 2) + floordiv(y, 3)) * min(floordiv(x, 2) + floordiv(y, 3), 1) == floordiv(x, 2) + floordiv(y, 3));
  CHECK(min(6 * x * y, 1) == min(min(x, 1), y));
  CHECK(min(floordiv(0 - x, 64) * y * -160, 1) == min(min(y, 0 - floordiv(0 - x, 64)), 1));
  CHECK((y - min(floordiv(0 - x, 64) * y * -160, 1)).range().low == 0);
  CHECK_FALSE(x * min(y, 1) == x);
  CHECK_FALSE(x * min(min(x, y), 1) == x);
  CHECK_FALSE(z * min(z, 1) == z);
  // A slice from -x to the end of x elements: ONNX's start is x - x where x is not 0, and 0 where it is.
  CHECK(max(0 - x - x * max(0 - x, -1), 0) == index_expr(0));
  // No slice is longer than what it is taken from, nor shorter than nothing.
  CHECK(max(x - min(x, y), 0) == x - min(x, y));
  CHECK(max(max(x, min(y, 7)) - x, 0) == max(x, min(y, 7)) - x);
  CHECK((2 * x - min(x, y)).range().low == 0);
  CHECK((x - 2 * min(x, y)).range().low < 0);
  CHECK(max(0 - z, 2 - y) == 0 - min(z, y - 2));
  // Distances of x places to x places are 2 * x - 1, of which x are taken.
  CHECK(min(x, max(2 * x - 1, 0)) == x);
  CHECK(min(floordiv(x, 2), max(3 * floordiv(x, 2) - 2, 0)) == floordiv(x, 2));
  CHECK_FALSE(min(x, max(2 * x - 2, 0)) == x);
  CHECK_FALSE(min(x, max(2 * x - 1, -1)) == x);
  // All but the first, and one before them.
  CHECK(x - min(x, 1) + 1 == max(x, 1));
  CHECK(max(x - 1, 0) + 1 == max(x, 1));
  CHECK(2 * x + y - 2 * min(x, 3) == y + 2 * max(x - 3, 0));
  CHECK(max(x, 1) * min(x, 1) == x);
  CHECK(max(max(x, y), 1) * min(x, 1) == max(x, y) * min(x, 1));
  CHECK(min(y, 1) * min(y, 1) == min(y, 1));
  CHECK_FALSE(max(x, 1) * min(y, 1) == x * min(y, 1));
  CHECK(min(min(x, 5), y) == min(min(x, y), 5));
  CHECK(min(min(x, 5), min(y, 3)) == min(min(x, y), 3));
}

TEST_CASE("what a symbol stands for does not follow from its name") {
  expr_context context;
  const index_expr declared = context.symbol("y.0.1");
  const index_expr decided = context.data_dim("y", 0, 1, {0, 8});
  CHECK(declared.kind() == symbol_kind::dim);
  CHECK(decided.kind() == symbol_kind::data_dim);
  CHECK_FALSE(declared == decided);
  CHECK(decided == context.data_dim("y", 0, 1));
  CHECK(context.is_data_dim(decided, "y", 0, 1));
  CHECK_FALSE(context.is_data_dim(declared, "y", 0, 1));
  CHECK_FALSE(context.is_data_dim(decided, "y", 1, 0));
  CHECK_FALSE(context.is_data_dim(decided + 1, "y", 0, 1));
  const std::size_t made = context.symbol_count();
  CHECK_FALSE(context.is_data_dim(decided, "z", 0, 1));
  CHECK(context.symbol_count() == made);
  CHECK(to_string(context.data_dim("z", 0, 1)) == "z.0.1");
}

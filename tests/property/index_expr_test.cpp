// Index expressions mean what their arithmetic means: canonical forms keep the value, and what is built anew from a
// canonical form is the same expression.
#include <catch2/catch.hpp>

#include <dnnopt/index_expr.hpp>
#include <dnnopt/index_expr_io.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <random>
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
    const std::uint32_t which = below(depth == 0 ? 2 : 10);
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

TEST_CASE("digits of an index recombine") {
  expr_context context;
  const index_expr i = context.symbol("i", {0, 239});
  const index_expr q = floordiv(i, 30);
  const index_expr r = mod(i, 30);
  CHECK(floordiv(r, 5) == mod(floordiv(i, 5), 6));
  CHECK(floordiv(r, 5) * 5 + mod(r, 5) == r);
  CHECK(floordiv(q, 4) * 120 + mod(q, 4) * 30 + floordiv(r, 5) * 5 + mod(r, 5) == i);
}

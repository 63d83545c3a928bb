// Holds SmartMem's combination tables to the paper's Tables 5 and 6, cell by cell in the paper's order.
#include <optional>

#include <catch2/catch.hpp>

#include "support/layout_table.hpp"

namespace {

using enum dnnopt::layout_class;
using action = dnnopt::layout_action;
using search = dnnopt::layout_search;

consteval bool cell(dnnopt::layout_class first, dnnopt::layout_class second, action wanted,
                    std::optional<dnnopt::layout_class> result, search where) {
  const auto& found = dnnopt::combine(first, second);
  return found.action == wanted && found.result == result && found.search == where;
}

static_assert(cell(ild_variable, ild_variable, action::keep_both, ild_variable, search::both));
static_assert(cell(ild_variable, ili_variable, action::try_fuse, ild_variable, search::fused));
static_assert(cell(ild_variable, ild_fixed, action::eliminate_second, ild_variable, search::first));
static_assert(cell(ild_variable, ili_fixed, action::eliminate_second, ild_variable, search::first));
static_assert(cell(ili_variable, ild_variable, action::try_fuse, ild_variable, search::fused));
static_assert(cell(ili_variable, ili_variable, action::try_fuse, ili_variable, search::none));
static_assert(cell(ili_variable, ild_fixed, action::eliminate_second, ili_variable, search::none));
static_assert(cell(ili_variable, ili_fixed, action::eliminate_second, ili_variable, search::none));
static_assert(cell(ild_fixed, ild_variable, action::eliminate_first, ild_variable, search::second));
static_assert(cell(ild_fixed, ili_variable, action::eliminate_first, ili_variable, search::none));
static_assert(cell(ild_fixed, ild_fixed, action::eliminate_both, std::nullopt, search::none));
static_assert(cell(ild_fixed, ili_fixed, action::eliminate_both, std::nullopt, search::none));
static_assert(cell(ili_fixed, ild_variable, action::eliminate_first, ild_variable, search::second));
static_assert(cell(ili_fixed, ili_variable, action::eliminate_first, ili_variable, search::none));
static_assert(cell(ili_fixed, ild_fixed, action::eliminate_both, std::nullopt, search::none));
static_assert(cell(ili_fixed, ili_fixed, action::eliminate_both, std::nullopt, search::none));

constexpr dnnopt::layout_class all[] = {ild_variable, ili_variable, ild_fixed, ili_fixed};

constexpr bool is_fixed(dnnopt::layout_class c) { return c == ild_fixed || c == ili_fixed; }

}  // namespace

TEST_CASE("operators with a fixed layout, and only they, are eliminated") {
  for (const auto first : all)
    for (const auto second : all) {
      CAPTURE(dnnopt::name_of(first), dnnopt::name_of(second));
      const auto found = dnnopt::combine(first, second).action;
      CHECK((found == action::eliminate_first || found == action::eliminate_both) == is_fixed(first));
      CHECK((found == action::eliminate_second || found == action::eliminate_both) == is_fixed(second));
    }
}

TEST_CASE("a layout is searched where, and only where, something layout dependent remains") {
  for (const auto first : all)
    for (const auto second : all) {
      CAPTURE(dnnopt::name_of(first), dnnopt::name_of(second));
      const auto& found = dnnopt::combine(first, second);
      CHECK((found.search != search::none) == (found.result == ild_variable));
      CHECK(found.result.has_value() == !(is_fixed(first) && is_fixed(second)));
    }
}

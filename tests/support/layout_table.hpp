// Owns SmartMem's tables of operator pairs: what to do with two layout classes, what results, and where to search
// layouts.
#ifndef DNNOPT_TESTS_SUPPORT_LAYOUT_TABLE_HPP
#define DNNOPT_TESTS_SUPPORT_LAYOUT_TABLE_HPP

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include <dnnopt/ops/classes.hpp>

namespace dnnopt {

/// What SmartMem's Table 5 does with a pair of operators.
enum class layout_action : std::uint8_t {
  keep_both,         ///< red
  try_fuse,          ///< orange
  eliminate_first,   ///< yellow
  eliminate_second,  ///< yellow
  eliminate_both,    ///< green
};

/// Whose layout SmartMem's Table 6 searches for.
enum class layout_search : std::uint8_t { none, both, fused, first, second };

/// One cell of SmartMem's Tables 5 and 6.
struct layout_combination {
  layout_action action;
  std::optional<layout_class> result;  ///< the class of what remains; nothing where nothing does
  layout_search search;
};

namespace detail {
inline constexpr std::size_t layout_class_count = 4;

// Row: first operator; column: second; both in the order ILD-Variable, ILI-Variable, ILD-Fixed, ILI-Fixed.
inline constexpr auto layout_table = [] {
  using a = layout_action;
  using s = layout_search;
  constexpr auto ild = std::optional(layout_class::ild_variable);
  constexpr auto ili = std::optional(layout_class::ili_variable);
  constexpr std::optional<layout_class> gone = std::nullopt;
  return std::array<std::array<layout_combination, layout_class_count>, layout_class_count>{{
      {{{a::keep_both, ild, s::both},
        {a::try_fuse, ild, s::fused},
        {a::eliminate_second, ild, s::first},
        {a::eliminate_second, ild, s::first}}},
      {{{a::try_fuse, ild, s::fused},
        {a::try_fuse, ili, s::none},
        {a::eliminate_second, ili, s::none},
        {a::eliminate_second, ili, s::none}}},
      {{{a::eliminate_first, ild, s::second},
        {a::eliminate_first, ili, s::none},
        {a::eliminate_both, gone, s::none},
        {a::eliminate_both, gone, s::none}}},
      {{{a::eliminate_first, ild, s::second},
        {a::eliminate_first, ili, s::none},
        {a::eliminate_both, gone, s::none},
        {a::eliminate_both, gone, s::none}}},
  }};
}();
}  // namespace detail

/// The cell of SmartMem's Tables 5 and 6 for `first` followed by `second`.
[[nodiscard]] constexpr const layout_combination& combine(layout_class first, layout_class second) noexcept {
  return detail::layout_table[static_cast<std::size_t>(first)][static_cast<std::size_t>(second)];
}

/// The table's wording of an action.
[[nodiscard]] constexpr std::string_view name_of(layout_action action) noexcept {
  switch (action) {
    case layout_action::keep_both:
      return "keep both";
    case layout_action::try_fuse:
      return "try fuse";
    case layout_action::eliminate_first:
      return "eliminate 1st";
    case layout_action::eliminate_second:
      return "eliminate 2nd";
    case layout_action::eliminate_both:
      return "eliminate both";
  }
  return "";
}

}  // namespace dnnopt

#endif  // DNNOPT_TESTS_SUPPORT_LAYOUT_TABLE_HPP

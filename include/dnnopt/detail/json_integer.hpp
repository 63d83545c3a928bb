// Owns the reading of integers from JSON, whose numbers may be of any size.
#ifndef DNNOPT_DETAIL_JSON_INTEGER_HPP
#define DNNOPT_DETAIL_JSON_INTEGER_HPP

#include <cmath>
#include <concepts>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dnnopt/error.hpp>

namespace dnnopt::detail {

/// The integer that a JSON number is, also one with a point behind which nothing stands. Errors: bad_file, whose
/// message begins with `where`: it is no number, no integer, or beyond what the type holds, which nlohmann::json
/// converts without a look.
template <std::integral Integer>
[[nodiscard]] Integer integer_of(const nlohmann::json& number, std::string_view where) {
  constexpr double exact = 0x1p53;
  if (number.is_number_unsigned()) {
    if (const auto held = number.get<std::uint64_t>(); std::in_range<Integer>(held)) return static_cast<Integer>(held);
  } else if (number.is_number_integer()) {
    if (const auto held = number.get<std::int64_t>(); std::in_range<Integer>(held)) return static_cast<Integer>(held);
  } else if (number.is_number_float()) {
    const auto held = number.get<double>();
    if (std::fabs(held) <= exact && held == std::floor(held) && std::in_range<Integer>(static_cast<std::int64_t>(held)))
      return static_cast<Integer>(held);
  }
  throw error(errc::bad_file,
              std::string(where) + ": '" + number.dump().substr(0, 64) + "' is no integer of the range that it needs");
}

/// The same of an array's elements. Errors: also bad_file where it is no array.
template <std::integral Integer>
[[nodiscard]] std::vector<Integer> integers_of(const nlohmann::json& numbers, std::string_view where) {
  if (!numbers.is_array()) throw error(errc::bad_file, std::string(where) + ": an array of integers is needed");
  std::vector<Integer> result;
  for (const nlohmann::json& number : numbers) result.push_back(integer_of<Integer>(number, where));
  return result;
}

}  // namespace dnnopt::detail

#endif  // DNNOPT_DETAIL_JSON_INTEGER_HPP

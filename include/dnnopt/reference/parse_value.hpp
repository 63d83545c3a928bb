// Owns the reading of an input's value from text, for command lines and option lists.
#ifndef DNNOPT_REFERENCE_PARSE_VALUE_HPP
#define DNNOPT_REFERENCE_PARSE_VALUE_HPP

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <dnnopt/graph.hpp>
#include <dnnopt/reference/conversion.hpp>

namespace dnnopt::reference {

/// The dims of `count` numbers for a value of these facts: its own, where at most one of them is open and the numbers
/// fill them; else a scalar for one number of unknown dims, or a list.
[[nodiscard]] inline dim_list dims_for(const value_facts& facts, std::int64_t count) {
  if (!facts.dims) return count == 1 ? dim_list{} : dim_list{count};
  dim_list dims;
  std::int64_t known = 1;
  std::size_t open = facts.dims->size();
  std::size_t opened = 0;
  for (const index_expr& dim : *facts.dims) {
    if (dim.is_constant()) {
      known *= dim.constant();
    } else {
      open = dims.size();
      ++opened;
    }
    dims.push_back(dim.is_constant() ? dim.constant() : 1);
  }
  if (opened > 1 || known < 1 || count % known != 0) return {count};
  if (opened == 1) dims[open] = count / known;
  return opened == 0 && known != count ? dim_list{count} : dims;
}

/// The value of an input that `text` states, "16000" or "1,2.5,-3", in the type of `facts` and of dims_for.
/// Errors: usage where a part is no number.
[[nodiscard]] inline tensor parse_value(const value_facts& facts, std::string_view text) {
  std::vector<double> numbers;
  for (bool more = true; more;) {
    const std::size_t cut = std::min(text.find(','), text.size());
    const std::string_view part = text.substr(0, cut);
    double number = 0;
    const auto [end, problem] = std::from_chars(part.data(), part.data() + part.size(), number);
    if (problem != std::errc() || end != part.data() + part.size())
      throw error(errc::usage, "'" + std::string(part) + "' is no number");
    numbers.push_back(number);
    more = cut < text.size();
    text.remove_prefix(more ? cut + 1 : cut);
  }
  tensor whole(dtype::float64, dims_for(facts, static_cast<std::int64_t>(numbers.size())));
  std::copy(numbers.begin(), numbers.end(), whole.mutable_data<double>().begin());
  return facts.type == dtype::undefined ? whole : conversion::cast(whole, facts.type);
}

}  // namespace dnnopt::reference

#endif  // DNNOPT_REFERENCE_PARSE_VALUE_HPP

// Owns what a user is warned about: a file that contradicts itself, or holds what takes no part, and how it was read.
#ifndef DNNOPT_WARNING_HPP
#define DNNOPT_WARNING_HPP

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace dnnopt {

/// Why there is a warning; docs/reference/models_as_found.md has a row for each.
enum class warning_code : std::uint8_t {
  stale_shape,            ///< a value is declared with other dims than its operator computes; what is computed counts
  negative_dim,           ///< a declared dim is negative; it counts as unknown
  dead_node,              ///< a node that cannot be imported leads to no output; it is left out
  inconsistent_body,      ///< shapes in a branch or a loop's body contradict each other; an error only where it runs
  duplicate_initializer,  ///< two initializers have one name; the last one counts
  unnamed_initializer,    ///< an initializer without a name, which nothing can read, is left out
  missing_opset,          ///< a file of the first IR versions states no opset; it counts as opset 1
};

/// The code's name in JSON and for people, such as "stale_shape".
[[nodiscard]] inline std::string_view name_of(warning_code code) noexcept {
  constexpr std::array<std::string_view, 7> names{"stale_shape",       "negative_dim",          "dead_node",
                                                  "inconsistent_body", "duplicate_initializer", "unnamed_initializer",
                                                  "missing_opset"};
  return names[static_cast<std::size_t>(code)];
}

/// One warning.
struct warning {
  warning_code code = warning_code::stale_shape;
  std::string node;  ///< the node or value that it is about
  std::string text;  ///< the values, and how they were read
  friend bool operator==(const warning&, const warning&) = default;
};

/// Appends what `all` does not hold yet. O(all * more).
inline void add_new_warnings(std::vector<warning>& all, const std::vector<warning>& more) {
  for (const warning& one : more) {
    bool known = false;
    for (const warning& held : all) known = known || held == one;
    if (!known) all.push_back(one);
  }
}

}  // namespace dnnopt

#endif  // DNNOPT_WARNING_HPP

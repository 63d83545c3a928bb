// Owns what a session tells of device memory that the caller bound to one of its inputs or outputs.
#ifndef DNNOPT_BOUND_VALUE_HPP
#define DNNOPT_BOUND_VALUE_HPP

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <dnnopt/tensor.hpp>

namespace dnnopt {

/// How an inference uses memory of the caller.
enum class bound_use : std::uint8_t {
  in_place,  ///< kernels alone read and write it: nothing is copied or converted
  copied,    ///< every inference copies it within the device or through the host; bound_value::reason says why
};

/// "in place" or "copied".
[[nodiscard]] constexpr std::string_view name_of(bound_use use) noexcept {
  constexpr std::string_view names[] = {"in place", "copied"};
  return names[static_cast<unsigned>(use)];
}

/// An input or output whose elements lie in memory of the caller: dense rows in a buffer, or the texels that
/// compile_options::texels states.
struct bound_value {
  std::string name;
  bool is_output = false;
  dtype type = dtype::undefined;  ///< of the elements: the model's, whatever precision the session stores
  bound_use use = bound_use::in_place;
  std::string reason;              ///< why it is copied; empty in place
  std::uint64_t bytes = 0;         ///< that the memory has; elements take the first of a buffer's
  std::optional<dim_list> dims{};  ///< the value's dims where the model or the last inference tells them
};

}  // namespace dnnopt

#endif  // DNNOPT_BOUND_VALUE_HPP

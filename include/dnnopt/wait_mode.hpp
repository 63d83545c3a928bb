// Owns the ways in which a host thread may wait for a device.
#ifndef DNNOPT_WAIT_MODE_HPP
#define DNNOPT_WAIT_MODE_HPP

#include <cstdint>
#include <optional>
#include <string_view>

namespace dnnopt {

/// How the end of device commands is awaited: `blocking` sleeps in the driver (clFinish); `spinning` polls the state of
/// a marker, which answers sooner where waking a thread takes long, keeps one core busy and costs one event per wait.
enum class wait_mode : std::uint8_t { blocking, spinning };

/// "blocking" or "spinning".
[[nodiscard]] constexpr std::string_view name_of(wait_mode mode) noexcept {
  constexpr std::string_view names[] = {"blocking", "spinning"};
  return names[static_cast<unsigned>(mode)];
}

/// The way of that name; nothing for other names.
[[nodiscard]] constexpr std::optional<wait_mode> find_wait_mode(std::string_view name) noexcept {
  for (const wait_mode one : {wait_mode::blocking, wait_mode::spinning})
    if (name_of(one) == name) return one;
  return std::nullopt;
}

}  // namespace dnnopt

#endif  // DNNOPT_WAIT_MODE_HPP

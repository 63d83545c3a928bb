// Owns the forms in which kernels may be written for a device.
#ifndef DNNOPT_KERNEL_FORM_HPP
#define DNNOPT_KERNEL_FORM_HPP

#include <cstdint>
#include <optional>
#include <string_view>

namespace dnnopt {

/// Which kernels a device gets: `native`, those that suit it; `vectors`, those for work-items that run one after the
/// other, each with wide vectors (CPUs); `groups`, those for many work-items in step with local memory (GPUs). A form
/// that is not the device's own is slower there and computes the same, so that one kind of device can check what
/// another one runs. Limits (work-group sizes, local memory) are the device's in every form.
enum class kernel_form : std::uint8_t { native, vectors, groups };

/// "native", "vectors" or "groups".
[[nodiscard]] constexpr std::string_view name_of(kernel_form form) noexcept {
  constexpr std::string_view names[] = {"native", "vectors", "groups"};
  return names[static_cast<unsigned>(form)];
}

/// The form of that name; nothing for other names.
[[nodiscard]] constexpr std::optional<kernel_form> find_kernel_form(std::string_view name) noexcept {
  for (const kernel_form one : {kernel_form::native, kernel_form::vectors, kernel_form::groups})
    if (name_of(one) == name) return one;
  return std::nullopt;
}

}  // namespace dnnopt

#endif  // DNNOPT_KERNEL_FORM_HPP

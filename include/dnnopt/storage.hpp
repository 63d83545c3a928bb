// Owns how the tensors of a program are stored on a device: what may be asked for, and what became of it.
#ifndef DNNOPT_STORAGE_HPP
#define DNNOPT_STORAGE_HPP

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace dnnopt {

/// How float32 tensors are stored on an OpenCL device and what kernels multiply in; the reference backend stores and
/// computes in fp32. narrow_storage (backend/storage/narrow.hpp) says which tensors fp16 means.
enum class precision : std::uint8_t {
  fp32,
  fp16,             ///< storage alone: kernels compute in fp32
  fp16_arithmetic,  ///< products of matrices and convolutions multiply in fp16 too; the device needs cl_khr_fp16
};

/// Whether tensors are stored in fp16.
[[nodiscard]] constexpr bool stores_halves(precision wanted) noexcept { return wanted != precision::fp32; }

/// "fp32", "fp16" or "fp16-arithmetic", as the command line names them.
[[nodiscard]] constexpr std::string_view name_of(precision wanted) noexcept {
  constexpr std::string_view names[] = {"fp32", "fp16", "fp16-arithmetic"};
  return names[static_cast<std::size_t>(wanted)];
}

/// The precision of a name; empty for other names.
[[nodiscard]] constexpr std::optional<precision> find_precision(std::string_view name) noexcept {
  for (const precision one : {precision::fp32, precision::fp16, precision::fp16_arithmetic})
    if (name == name_of(one)) return one;
  return std::nullopt;
}

/// What became of the wishes for precision, memory objects (layout.hpp) and a memory limit.
struct storage_figures {
  std::size_t narrowed_intermediates = 0;  ///< values stored in fp16 (precision::fp16)
  std::size_t narrowed_constants = 0;
  std::size_t product_kernels = 0;  ///< kernels that multiply and add products (their plans state FLOPs)
  std::size_t half_products = 0;    ///< of them those that multiply in fp16 (precision::fp16_arithmetic)
  std::size_t step_kernels = 0;     ///< of them those that multiply in matrix steps
  std::string step_provider;  ///< of these steps (backend/codegen/matrix_step.hpp), several after commas; or empty
  std::size_t exchanged_values = 0;  ///< inputs and outputs that the caller exchanges as texels
  std::size_t conversions = 0;       ///< kernels that convert these to rows or back; notes say why
  std::size_t packed_values = 0;     ///< intermediate tensors that hold texels
  std::size_t image_values = 0;      ///< of them in images
  std::uint64_t copy_bytes = 0;      ///< that second copies would take for readers whose reduction dim is not served
  /// What lies in other memory or another form than was asked for or is usual, and why.
  std::vector<std::string> notes;
};

}  // namespace dnnopt

#endif  // DNNOPT_STORAGE_HPP

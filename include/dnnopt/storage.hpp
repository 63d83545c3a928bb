// Owns how the tensors of a program are stored on a device: what may be asked for, and what became of it.
#ifndef DNNOPT_STORAGE_HPP
#define DNNOPT_STORAGE_HPP

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace dnnopt {

/// How float32 tensors are stored on an OpenCL device; kernels compute in fp32 either way, the reference backend stores
/// fp32. narrow_storage (backend/narrow_storage.hpp) says which tensors fp16 means.
enum class precision : std::uint8_t { fp32, fp16 };

/// What became of the wishes for precision, memory objects (layout.hpp) and a memory limit.
struct storage_figures {
  std::size_t narrowed_intermediates = 0;  ///< values stored in fp16 (precision::fp16)
  std::size_t narrowed_constants = 0;
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

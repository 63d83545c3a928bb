// Owns transfers between rows of the host and memory that holds texels.
#ifndef DNNOPT_BACKEND_RUN_TEXEL_TRANSFERS_HPP
#define DNNOPT_BACKEND_RUN_TEXEL_TRANSFERS_HPP

#include <cstddef>
#include <vector>

#include <dnnopt/backend/opencl/command_queue.hpp>
#include <dnnopt/backend/opencl/device_memory.hpp>
#include <dnnopt/backend/run/texel_bytes.hpp>
#include <dnnopt/wait_mode.hpp>

namespace dnnopt {

/// Texels in a buffer or in an image, whichever is not null.
struct texel_memory {
  const opencl::device_buffer* buffer = nullptr;
  const opencl::device_image* image = nullptr;
  std::size_t bytes = 0;  ///< of all texels
};

/// Enqueues the upload of a tensor as texels packed along dim `packed`, converted by the host. The bytes returned must
/// live until the command is done. Errors: those of command_queue. O(bytes).
[[nodiscard]] inline std::vector<std::byte> upload_texels(opencl::command_queue& queue, const texel_memory& to,
                                                          const tensor& rows, std::size_t packed,
                                                          opencl::event_sink* sink = nullptr) {
  std::vector<std::byte> texels = texels_of_rows(rows, packed, to.bytes);
  if (to.image != nullptr)
    queue.upload_image(*to.image, texels, false, sink);
  else
    queue.upload(*to.buffer, texels, 0, false, sink);
  return texels;
}

/// Downloads texels packed along dim `packed` into `rows`, whose type and dims say what they are; waits for all that
/// was enqueued, as `wait` says. Errors: those of command_queue. O(bytes).
inline void download_texels(opencl::command_queue& queue, const texel_memory& from, std::size_t packed, tensor& rows,
                            wait_mode wait, opencl::event_sink* sink = nullptr) {
  const bool polled = wait != wait_mode::blocking;
  std::vector<std::byte> texels(from.bytes);
  if (from.image != nullptr)
    queue.download_image(*from.image, texels, !polled, sink);
  else
    queue.download(*from.buffer, texels, 0, !polled, sink);
  if (polled) queue.finish(wait);
  rows_of_texels(texels, packed, rows);
}

}  // namespace dnnopt

#endif  // DNNOPT_BACKEND_RUN_TEXEL_TRANSFERS_HPP

// Owns what a queue tells of its commands: kinds, counts, records for sinks, sizes of launches, and mapped memory.
#ifndef DNNOPT_BACKEND_OPENCL_COMMANDS_HPP
#define DNNOPT_BACKEND_OPENCL_COMMANDS_HPP

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>

#include <dnnopt/backend/opencl/loader.hpp>
#include <dnnopt/backend/opencl/memory_objects.hpp>
#include <dnnopt/backend/opencl/status.hpp>
#include <dnnopt/error.hpp>
#include <dnnopt/wait_mode.hpp>

namespace dnnopt::opencl {

enum class command_kind : std::uint8_t { kernel, copy, fill, upload, download, map, unmap, recording };

/// "kernel", "copy", "fill", "upload", "download", "map", "unmap" or "recording".
[[nodiscard]] constexpr std::string_view name_of(command_kind kind) noexcept {
  constexpr std::string_view names[] = {"kernel", "copy", "fill", "upload", "download", "map", "unmap", "recording"};
  return names[static_cast<std::size_t>(kind)];
}

/// What a queue has enqueued since it was made. Kernels, copies and fills that a recording replays count each.
struct command_counts {
  std::uint64_t kernels = 0;
  std::uint64_t copies = 0;  ///< buffer, rectangle and image copies on the device
  std::uint64_t fills = 0;
  std::uint64_t uploads = 0;    ///< host memory to device memory
  std::uint64_t downloads = 0;  ///< device memory to host memory
  std::uint64_t maps = 0;
  std::uint64_t recordings = 0;  ///< replays; their commands are counted above
  std::uint64_t events = 0;      ///< events that OpenCL was asked for
  std::uint64_t waits = 0;       ///< times the host waited for the device: finish, blocking transfers and maps

  /// The figure that the command line calls `kernels`: what an inference enqueues between upload and download.
  [[nodiscard]] constexpr std::uint64_t device_commands() const noexcept { return kernels + copies + fills; }

  friend constexpr command_counts operator-(const command_counts& a, const command_counts& b) noexcept {
    return {a.kernels - b.kernels,       a.copies - b.copies,       a.fills - b.fills,
            a.uploads - b.uploads,       a.downloads - b.downloads, a.maps - b.maps,
            a.recordings - b.recordings, a.events - b.events,       a.waits - b.waits};
  }
};

/// One enqueued command as an event_sink sees it. `name` is valid during the call only.
struct command_record {
  command_kind kind = command_kind::kernel;
  std::string_view name;
  std::array<std::size_t, 3> global{};               ///< kernels: global work size, 1 for unused dimensions
  std::array<std::size_t, 3> local{};                ///< kernels: work-group size, 0 when the driver chose it
  std::uint64_t bytes = 0;                           ///< transfers, copies and fills
  std::uint64_t tag = 0;                             ///< the caller's own number, for kernels: that of the launch
  std::chrono::steady_clock::time_point host_begin;  ///< before and after the enqueue call
  std::chrono::steady_clock::time_point host_end;
};

/// Receives the event of each command that it is passed with. Called in the enqueuing thread, in order.
class event_sink {
 public:
  virtual ~event_sink() = default;
  virtual void on_command(const command_record& record, cl::Event event) = 0;
};

/// How finish() waits.
using dnnopt::wait_mode;

/// One kernel enqueue. `local` of zeros leaves the work-group size to the driver; a zero in `global` is a launch over
/// nothing, which is never enqueued (OpenCL before 2.1 refuses it).
struct launch_size {
  cl_uint dimensions = 1;
  std::array<std::size_t, 3> global{1, 1, 1};
  std::array<std::size_t, 3> local{0, 0, 0};

  [[nodiscard]] constexpr bool empty() const noexcept { return global[0] == 0 || global[1] == 0 || global[2] == 0; }
};

enum class map_access : std::uint8_t { read, write, read_write };

/// A mapped range of device memory; unmapped when destroyed (the unmap is enqueued, not waited for, its failure is
/// dropped: call unmap() to see it). Keeps queue and memory alive.
class mapped_region {
 public:
  mapped_region() = default;
  mapped_region(mapped_region&& other) noexcept
      : queue_(std::move(other.queue_)), memory_(std::move(other.memory_)), bytes_(std::exchange(other.bytes_, {})) {}
  mapped_region& operator=(mapped_region&& other) noexcept {
    std::swap(queue_, other.queue_);
    std::swap(memory_, other.memory_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~mapped_region() { release(); }

  [[nodiscard]] std::span<std::byte> bytes() const noexcept { return bytes_; }

  /// Enqueues the unmap now. Errors: opencl_call when the driver refuses.
  void unmap() { check(release(), "clEnqueueUnmapMemObject"); }

 private:
  friend class command_queue;
  cl_int release() noexcept {
    if (bytes_.data() == nullptr) return CL_SUCCESS;
    void* pointer = std::exchange(bytes_, {}).data();
    return ::clEnqueueUnmapMemObject(queue_(), memory_(), pointer, 0, nullptr, nullptr);
  }
  cl::CommandQueue queue_;
  cl::Memory memory_;
  std::span<std::byte> bytes_;
};

}  // namespace dnnopt::opencl

#endif  // DNNOPT_BACKEND_OPENCL_COMMANDS_HPP

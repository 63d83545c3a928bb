// Owns the memory of intermediate tensors: an arena, which is one buffer on the device, or several buffers that are
// shared objects, and the sub-buffers that cut them.
#ifndef DNNOPT_BACKEND_RUN_ARENA_HPP
#define DNNOPT_BACKEND_RUN_ARENA_HPP

#include <array>
#include <cstddef>
#include <map>
#include <utility>
#include <vector>

#include <dnnopt/backend/opencl/device_memory.hpp>
#include <dnnopt/backend/opencl/loader.hpp>
#include <dnnopt/error.hpp>

namespace dnnopt::opencl {

/// How an arena's parts become kernel arguments: as addresses where memory is the device's own and has them, else as
/// sub-buffers. NVIDIA's driver orders commands on overlapping sub-buffers at a cost per launch that grows with their
/// number (docs/measurements/opencl_runtime.md has figures); addresses cost what separate buffers do. Where host and
/// device share memory, sub-buffers stay: there they cost nothing, and images can lie over them.
[[nodiscard]] inline memory_placement arena_placement(const device_info& info) noexcept {
  return info.shared_virtual_memory && !info.host_unified_memory && info.type != device_type::cpu
             ? memory_placement::addressed
             : memory_placement::device;
}

/// One buffer, or one for each shared object, and the parts of each, which may overlap. Equal parts are one sub-buffer.
/// Move-only.
///
/// Parts end in the reverse order of their creation, with the arena: NVIDIA's OpenCL driver (seen with the one of an
/// H200) ends in a segmentation fault inside clReleaseMemObject when overlapping sub-buffers of one buffer are released
/// in another order. So part() hands out shares, and the arena's own reference is the last.
/// Precondition: every share has ended before the arena.
class arena {
 public:
  arena() = default;
  explicit arena(std::vector<device_buffer> objects) : objects_(std::move(objects)) {}
  arena(arena&&) noexcept = default;
  arena& operator=(arena&& other) noexcept {
    clear();
    objects_ = std::move(other.objects_);
    parts_ = std::move(other.parts_);
    known_ = std::move(other.known_);
    return *this;
  }
  ~arena() { clear(); }

  [[nodiscard]] const std::vector<device_buffer>& objects() const noexcept { return objects_; }
  /// Of an object; 0 of one that is not there.
  [[nodiscard]] std::size_t bytes_of(std::size_t object) const noexcept {
    return object < objects_.size() ? objects_[object].bytes() : 0;
  }
  /// Of all objects.
  [[nodiscard]] std::size_t bytes() const noexcept {
    std::size_t sum = 0;
    for (const device_buffer& object : objects_) sum += object.bytes();
    return sum;
  }
  [[nodiscard]] bool empty() const noexcept { return objects_.empty(); }
  /// Number of sub-buffers.
  [[nodiscard]] std::size_t part_count() const noexcept { return parts_.size(); }

  /// A share of the part [offset, offset + bytes) of an object. Errors: those of device_buffer::sub_buffer. Complexity:
  /// O(log parts).
  [[nodiscard]] device_buffer part(std::size_t object, std::size_t offset, std::size_t bytes) {
    const auto [at, is_new] = known_.try_emplace({object, offset, bytes}, parts_.size());
    if (is_new) {
      try {
        parts_.push_back(objects_.at(object).sub_buffer(offset, bytes));
      } catch (const error&) {
        known_.erase(at);
        throw;
      }
    }
    return parts_[at->second].share();
  }

  /// Ends all parts. Precondition: every share has ended.
  void clear_parts() noexcept {
    known_.clear();
    while (!parts_.empty()) parts_.pop_back();
  }

 private:
  void clear() noexcept {
    clear_parts();
    objects_.clear();
  }

  std::vector<device_buffer> objects_;
  std::vector<device_buffer> parts_;
  std::map<std::array<std::size_t, 3>, std::size_t> known_;  // by object, offset and bytes
};

}  // namespace dnnopt::opencl

#endif  // DNNOPT_BACKEND_RUN_ARENA_HPP

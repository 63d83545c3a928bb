// Owns buffers and images of device memory: what they are made of, who keeps them alive, and what they count.
#ifndef DNNOPT_BACKEND_OPENCL_MEMORY_OBJECTS_HPP
#define DNNOPT_BACKEND_OPENCL_MEMORY_OBJECTS_HPP

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include <dnnopt/backend/opencl/loader.hpp>
#include <dnnopt/backend/opencl/status.hpp>
#include <dnnopt/device_info.hpp>
#include <dnnopt/error.hpp>

namespace dnnopt::opencl {

/// What kernels may do with a memory object.
enum class memory_access : std::uint8_t { read_write, read_only, write_only };

/// Where the bytes of a new buffer live: `device` leaves it to the driver; `host_visible` asks for memory that maps
/// without a copy (CL_MEM_ALLOC_HOST_PTR: pinned on discrete devices, shared on unified ones); `addressed` is a
/// coarse-grained allocation of shared virtual memory, whose parts are plain addresses instead of sub-buffers.
enum class memory_placement : std::uint8_t { device, host_visible, addressed };

enum class image_kind : std::uint8_t { image2d, image2d_array, image1d_buffer };
/// What images are made of; those of the caller may also be of integers that kernels see as 0 to 1, as cameras give.
enum class texel_type : std::uint8_t { rgba_fp32, rgba_fp16, rgba_unorm8, rgba_unorm16, bgra_unorm8 };

/// "RGBA fp32" and so on.
[[nodiscard]] constexpr std::string_view name_of(texel_type texel) noexcept {
  constexpr std::string_view names[] = {"RGBA fp32", "RGBA fp16", "RGBA unorm8", "RGBA unorm16", "BGRA unorm8"};
  return names[static_cast<unsigned>(texel)];
}

/// Bytes of one texel of four components.
[[nodiscard]] constexpr std::size_t texel_bytes(texel_type texel) noexcept {
  constexpr std::size_t bytes[] = {16, 8, 4, 8, 4};
  return bytes[static_cast<unsigned>(texel)];
}

/// OpenCL's words for a texel type.
struct texel_format {
  texel_type texel;
  cl_channel_order order;
  cl_channel_type type;
};

inline constexpr std::array texel_formats{
    texel_format{texel_type::rgba_fp32, CL_RGBA, CL_FLOAT},
    texel_format{texel_type::rgba_fp16, CL_RGBA, CL_HALF_FLOAT},
    texel_format{texel_type::rgba_unorm8, CL_RGBA, CL_UNORM_INT8},
    texel_format{texel_type::rgba_unorm16, CL_RGBA, CL_UNORM_INT16},
    texel_format{texel_type::bgra_unorm8, CL_BGRA, CL_UNORM_INT8},
};

/// Extent of an image in texels. image1d_buffer uses `width` alone, image2d has one layer.
struct image_shape {
  image_kind kind = image_kind::image2d;
  texel_type texel = texel_type::rgba_fp32;
  std::size_t width = 0;
  std::size_t height = 1;
  std::size_t layers = 1;

  [[nodiscard]] std::size_t bytes() const noexcept { return width * height * layers * texel_bytes(texel); }
  friend bool operator==(const image_shape&, const image_shape&) = default;
};

/// Figures of one allocator. Bytes are those asked of OpenCL: wrapped host memory and the user's own memory objects are
/// not device memory of ours and stand apart.
struct memory_figures {
  std::uint64_t live_bytes = 0;
  std::uint64_t peak_bytes = 0;
  std::uint64_t wrapped_bytes = 0;  ///< host memory that buffers use in place
  std::uint64_t allocations = 0;    ///< calls that created a memory object, sub-buffers and wrappers left out
};

namespace detail {

struct memory_account {
  std::atomic<std::uint64_t> live{0};
  std::atomic<std::uint64_t> peak{0};
  std::atomic<std::uint64_t> wrapped{0};
  std::atomic<std::uint64_t> allocations{0};
  std::atomic<std::uint64_t> limit{0};

  void add(std::uint64_t bytes) noexcept {
    const std::uint64_t now = live.fetch_add(bytes) + bytes;
    std::uint64_t seen = peak.load();
    while (seen < now && !peak.compare_exchange_weak(seen, now)) {
    }
    allocations.fetch_add(1);
  }
};

/// A share of an account: gives its bytes back when it is destroyed. Empty for objects that count nothing.
class counted_bytes {
 public:
  counted_bytes() = default;
  counted_bytes(std::shared_ptr<memory_account> account, std::uint64_t bytes, bool wrapped) noexcept
      : account_(std::move(account)), bytes_(bytes), wrapped_(wrapped) {
    if (wrapped_) {
      account_->wrapped.fetch_add(bytes_);
    } else {
      account_->add(bytes_);
    }
  }
  counted_bytes(counted_bytes&& other) noexcept
      : account_(std::exchange(other.account_, nullptr)), bytes_(other.bytes_), wrapped_(other.wrapped_) {}
  counted_bytes& operator=(counted_bytes&& other) noexcept {
    std::swap(account_, other.account_);
    std::swap(bytes_, other.bytes_);
    std::swap(wrapped_, other.wrapped_);
    return *this;
  }
  ~counted_bytes() {
    if (account_ != nullptr) (wrapped_ ? account_->wrapped : account_->live).fetch_sub(bytes_);
  }

 private:
  std::shared_ptr<memory_account> account_;
  std::uint64_t bytes_ = 0;
  bool wrapped_ = false;
};

constexpr cl_mem_flags access_flags(memory_access access) noexcept {
  switch (access) {
    case memory_access::read_only:
      return CL_MEM_READ_ONLY;
    case memory_access::write_only:
      return CL_MEM_WRITE_ONLY;
    case memory_access::read_write:
      break;
  }
  return CL_MEM_READ_WRITE;
}

}  // namespace detail

/// A linear range of device memory. Move-only; an empty one (handle null) holds nothing and may be a kernel's argument.
class device_buffer {
 public:
  device_buffer() = default;
  device_buffer(device_buffer&&) noexcept = default;
  device_buffer& operator=(device_buffer&&) noexcept = default;

  /// Bytes asked for, which may be 0.
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }
  [[nodiscard]] bool empty() const noexcept { return handle_() == nullptr && addressed_ == nullptr; }
  /// The OpenCL object; this buffer keeps it alive. Null for addressed memory.
  [[nodiscard]] cl_mem handle() const noexcept { return handle_(); }
  /// The device's address of the first byte of addressed memory, else null.
  [[nodiscard]] std::byte* address() const noexcept {
    return addressed_ == nullptr ? nullptr : addressed_.get() + offset_;
  }
  /// Makes this buffer the argument `index` of a kernel; an empty one sets a null pointer. Returns OpenCL's status.
  [[nodiscard]] cl_int set_as_argument(cl_kernel kernel, cl_uint index) const noexcept {
#ifdef CL_VERSION_2_0
    if (addressed_ != nullptr) return ::clSetKernelArgSVMPointer(kernel, index, address());
#endif
    const cl_mem object = handle_();
    return ::clSetKernelArg(kernel, index, sizeof object, &object);
  }
  /// True for a sub_buffer().
  [[nodiscard]] bool is_part() const noexcept { return part_; }
  /// Byte offset in the buffer that owns the memory; 0 unless this is a sub-buffer.
  [[nodiscard]] std::size_t offset() const noexcept { return offset_; }

  /// The part [offset, offset + bytes) as a buffer of its own; it keeps the memory alive and counts no new bytes.
  /// `offset` (plus the offset of this, for a part of a part) must be a multiple of the device's
  /// base_address_alignment_bytes. Errors: invalid_argument on a wrong range or alignment. Parts that overlap are
  /// to be released in the reverse order of their creation; opencl::arena sees to it, and says why.
  [[nodiscard]] device_buffer sub_buffer(std::size_t offset, std::size_t bytes) const {
    if (empty() || bytes == 0 || offset > bytes_ || bytes > bytes_ - offset) {
      throw error(errc::invalid_argument, "sub-buffer of " + std::to_string(bytes) + " bytes at offset " +
                                              std::to_string(offset) + " of a buffer of " + std::to_string(bytes_) +
                                              " bytes");
    }
    const std::size_t start = offset_ + offset;
    if (alignment_ != 0 && start % alignment_ != 0) {
      throw error(errc::invalid_argument, "sub-buffer at byte " + std::to_string(start) +
                                              ": the device needs a multiple of " + std::to_string(alignment_));
    }
    if (addressed_ != nullptr) {
      device_buffer result = share();
      result.bytes_ = bytes;
      result.offset_ = start;
      result.part_ = true;
      return result;
    }
    const cl_buffer_region region{start, bytes};
    cl_int status = CL_SUCCESS;
    cl_mem part = ::clCreateSubBuffer(root_(), 0, CL_BUFFER_CREATE_TYPE_REGION, &region, &status);
    check(status, "clCreateSubBuffer",
          [&] { return std::to_string(bytes) + " bytes at byte " + std::to_string(start); });
    device_buffer result;
    result.handle_ = cl::Memory(part, false);
    result.root_ = root_;
    result.bytes_ = bytes;
    result.offset_ = start;
    result.alignment_ = alignment_;
    result.part_ = true;
    return result;
  }

  /// Whether both have bytes of one memory object in common; two objects over the same host memory are not seen.
  [[nodiscard]] bool overlaps(const device_buffer& other) const noexcept {
    const bool same =
        addressed_ != nullptr ? addressed_ == other.addressed_ : root_() != nullptr && root_() == other.root_();
    return same && offset_ < other.offset_ + other.bytes_ && other.offset_ < offset_ + bytes_;
  }

  /// Another holder of the same OpenCL object: it keeps the memory alive and counts no bytes.
  [[nodiscard]] device_buffer share() const {
    device_buffer result;
    result.handle_ = handle_;
    result.root_ = root_;
    result.addressed_ = addressed_;
    result.bytes_ = bytes_;
    result.offset_ = offset_;
    result.alignment_ = alignment_;
    result.part_ = part_;
    return result;
  }

 private:
  friend class device_memory;
  cl::Memory handle_;
  cl::Memory root_;  ///< the buffer whose part this is, or the same as handle_
  std::shared_ptr<std::byte> addressed_;
  std::size_t bytes_ = 0;
  std::size_t offset_ = 0;
  std::size_t alignment_ = 0;
  bool part_ = false;
  detail::counted_bytes counted_;
};

/// An image of RGBA texels. Move-only.
class device_image {
 public:
  device_image() = default;
  device_image(device_image&&) noexcept = default;
  device_image& operator=(device_image&&) noexcept = default;

  [[nodiscard]] const image_shape& shape() const noexcept { return shape_; }
  [[nodiscard]] std::size_t bytes() const noexcept { return shape_.bytes(); }
  [[nodiscard]] bool empty() const noexcept { return handle_() == nullptr; }
  [[nodiscard]] cl_mem handle() const noexcept { return handle_(); }
  /// Makes this image the argument `index` of a kernel. Returns OpenCL's status.
  [[nodiscard]] cl_int set_as_argument(cl_kernel kernel, cl_uint index) const noexcept {
    const cl_mem object = handle_();
    return ::clSetKernelArg(kernel, index, sizeof object, &object);
  }

 private:
  friend class device_memory;
  cl::Memory handle_;
  image_shape shape_;
  detail::counted_bytes counted_;
};

}  // namespace dnnopt::opencl

#endif  // DNNOPT_BACKEND_OPENCL_MEMORY_OBJECTS_HPP

// Owns the one allocator of a context with its accounting.
//
// Every byte of device memory is taken through device_memory, so that its figures are counted at the API. Handles are
// reference-counted by OpenCL: a buffer may outlive the context object and may be destroyed while commands that use it
// are under way; neither blocks.
#ifndef DNNOPT_BACKEND_OPENCL_DEVICE_MEMORY_HPP
#define DNNOPT_BACKEND_OPENCL_DEVICE_MEMORY_HPP

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include <dnnopt/backend/opencl/huge_pages.hpp>
#include <dnnopt/backend/opencl/loader.hpp>
#include <dnnopt/backend/opencl/memory_objects.hpp>
#include <dnnopt/backend/opencl/status.hpp>
#include <dnnopt/device_info.hpp>
#include <dnnopt/error.hpp>

namespace dnnopt::opencl {

/// The allocator of one context. Its functions may be called from several threads.
class device_memory {
 public:
  /// For `context` on the device that `info` describes; context (context.hpp) makes it.
  device_memory(cl::Context context, const device_info& info)
      : context_(std::move(context)),
        images_(info.images),
        huge_pages_from_(huge_pages_from(info)),
        in_place_(is_host_processor(info)),
        addressable_(info.shared_virtual_memory),
        alignment_(info.base_address_alignment_bytes),
        device_bytes_(info.global_memory_bytes),
        largest_bytes_(info.max_allocation_bytes),
        account_(std::make_shared<detail::memory_account>()) {}

  /// A new buffer of uninitialized bytes; `bytes` 0 gives an empty buffer. `name` appears in errors alone. Errors:
  /// out_of_device_memory with the sizes when the device refuses and memory_limit past set_limit(), and
  /// unsupported for addressed memory on a device without it. Addressed memory is given back at once when its
  /// last holder ends: commands that use it must be done by then.
  [[nodiscard]] device_buffer allocate(std::size_t bytes, std::string_view name = {},
                                       memory_access access = memory_access::read_write,
                                       memory_placement placement = memory_placement::device) {
    if (bytes == 0) return {};
    within_limit(bytes, name);
    if (placement == memory_placement::addressed) return make_addressed(bytes, name);
    cl_mem_flags flags = detail::access_flags(access);
    if (placement == memory_placement::host_visible) flags |= CL_MEM_ALLOC_HOST_PTR;
    if (placement == memory_placement::device && bytes >= huge_pages_from_) return make_paged(flags, bytes, name);
    return make_buffer(flags, nullptr, bytes, name, false);
  }

  /// A new buffer that uses `bytes` of the caller's memory in place where the device can (CL_MEM_USE_HOST_PTR). The
  /// memory must stay valid until the buffer is gone and all commands on it are done, and must be touched by the host
  /// only while it is mapped. Counts as wrapped_bytes.
  [[nodiscard]] device_buffer wrap_host(void* memory, std::size_t bytes, memory_access access,
                                        std::string_view name = {}) {
    if (memory == nullptr || bytes == 0) {
      throw error(errc::invalid_argument, "host memory to wrap for '" + std::string(name) + "' is null or empty");
    }
    return make_buffer(detail::access_flags(access) | CL_MEM_USE_HOST_PTR, memory, bytes, name, true);
  }

  /// Whether lend() takes these bytes: kernels on this device run on the host's own processor and read host memory as
  /// fast as the driver's, and they lie where a buffer of the driver could begin.
  [[nodiscard]] bool reads_in_place(std::span<const std::byte> content) const noexcept {
    return in_place_ && !content.empty() && alignment_ != 0 &&
           reinterpret_cast<std::uintptr_t>(content.data()) % alignment_ == 0;
  }

  /// A buffer for kernels to read, of host memory in place (CL_MEM_USE_HOST_PTR): nothing is copied. The bytes must
  /// stay as they are until the buffer is gone and all commands on it are done; they may be memory that nobody can
  /// write. It counts as a copy would, so that figures and limits are those of devices that need one. Precondition:
  /// reads_in_place(content). Errors: as allocate().
  [[nodiscard]] device_buffer lend(std::span<const std::byte> content, std::string_view name = {}) {
    within_limit(content.size(), name);
    // Such a buffer is never written: it is read-only for kernels, and who lends hands it to kernels alone.
    return make_buffer(detail::access_flags(memory_access::read_only) | CL_MEM_USE_HOST_PTR,
                       const_cast<std::byte*>(content.data()), content.size(), name, false);
  }

  /// The caller's own buffer; it is retained, not copied, and counts nothing. Errors: invalid_argument when it is
  /// no buffer or belongs to another context, with `name`.
  [[nodiscard]] device_buffer wrap(cl_mem memory, std::string_view name = {}) const {
    belongs_here(memory, {CL_MEM_OBJECT_BUFFER}, "buffer", name);
    device_buffer result;
    check(::clGetMemObjectInfo(memory, CL_MEM_SIZE, sizeof(result.bytes_), &result.bytes_, nullptr),
          "clGetMemObjectInfo");
    result.handle_ = cl::Memory(memory, true);
    cl_mem parent = nullptr;
    check(::clGetMemObjectInfo(memory, CL_MEM_ASSOCIATED_MEMOBJECT, sizeof(parent), &parent, nullptr),
          "clGetMemObjectInfo");
    check(::clGetMemObjectInfo(memory, CL_MEM_OFFSET, sizeof(result.offset_), &result.offset_, nullptr),
          "clGetMemObjectInfo");
    if (parent != nullptr && is_buffer(parent)) {
      result.root_ = cl::Memory(parent, true);
      result.part_ = true;
    } else {
      result.root_ = result.handle_;
    }
    result.alignment_ = alignment_;
    return result;
  }

  /// The caller's own image of one of the texel types, retained; errors as wrap(), and invalid_argument for others.
  [[nodiscard]] device_image wrap_image(cl_mem memory, std::string_view name = {}) const {
    const cl_mem_object_type type = belongs_here(
        memory, {CL_MEM_OBJECT_IMAGE2D, CL_MEM_OBJECT_IMAGE2D_ARRAY, CL_MEM_OBJECT_IMAGE1D_BUFFER}, "image", name);
    const auto number = [&](cl_image_info parameter) {
      std::size_t value = 0;
      check(::clGetImageInfo(memory, parameter, sizeof(value), &value, nullptr), "clGetImageInfo");
      return value;
    };
    cl_image_format format{};
    check(::clGetImageInfo(memory, CL_IMAGE_FORMAT, sizeof(format), &format, nullptr), "clGetImageInfo");
    const auto row = std::find_if(texel_formats.begin(), texel_formats.end(), [&](const texel_format& one) {
      return one.order == format.image_channel_order && one.type == format.image_channel_data_type;
    });
    if (row == texel_formats.end()) {
      throw error(errc::invalid_argument,
                  "an image of the caller must be CL_RGBA of CL_FLOAT, CL_HALF_FLOAT, "
                  "CL_UNORM_INT8 or CL_UNORM_INT16, or CL_BGRA of CL_UNORM_INT8" +
                      of(name));
    }
    device_image result;
    result.handle_ = cl::Memory(memory, true);
    image_shape& shape = result.shape_;
    shape.texel = row->texel;
    shape.width = number(CL_IMAGE_WIDTH);
    if (type == CL_MEM_OBJECT_IMAGE1D_BUFFER) {
      shape.kind = image_kind::image1d_buffer;
    } else {
      shape.height = number(CL_IMAGE_HEIGHT);
      if (type == CL_MEM_OBJECT_IMAGE2D_ARRAY) {
        shape.kind = image_kind::image2d_array;
        shape.layers = number(CL_IMAGE_ARRAY_SIZE);
      }
    }
    return result;
  }

  /// A new image of uninitialized texels. An image1d_buffer gets a buffer of its own. Errors:
  /// out_of_device_memory with the sizes when `shape` exceeds the device's limits or its memory, and
  /// unsupported when the device has no images or not that texel.
  [[nodiscard]] device_image allocate_image(const image_shape& shape, std::string_view name = {},
                                            memory_access access = memory_access::read_write) {
    require_image(shape, name);
    within_limit(shape.bytes(), name);
    if (shape.kind == image_kind::image1d_buffer) {
      device_buffer texels = allocate(shape.bytes(), name, access);
      device_image result = image_over(texels, shape, 0, name);
      result.counted_ = std::move(texels.counted_);
      return result;
    }
    return make_image(shape, nullptr, 0, detail::access_flags(access), name, true);
  }

  /// True when image_over() takes this shape and row pitch (bytes, 0 means rows without gaps): over a whole buffer, or
  /// with `part` over a sub_buffer().
  [[nodiscard]] bool shares_buffer(const image_shape& shape, std::size_t row_pitch_bytes, bool part) const noexcept {
    if (!images_.supported || (part && !images_.over_sub_buffer)) return false;
    if (shape.kind == image_kind::image1d_buffer) return true;
    const std::size_t row = shape.width * texel_bytes(shape.texel);
    const std::size_t pitch = images_.buffer_pitch_alignment * texel_bytes(shape.texel);
    const std::size_t wanted = row_pitch_bytes == 0 ? row : row_pitch_bytes;
    return shape.kind == image_kind::image2d && pitch != 0 && wanted % pitch == 0 && wanted >= row;
  }

  /// An image over the bytes of `buffer` (an arena's part is a sub_buffer()), without memory of its own. It keeps the
  /// buffer alive. `row_pitch_bytes` is for image2d, 0 means rows without gaps. Errors: unsupported where
  /// shares_buffer() is false and invalid_argument when the buffer is too small.
  [[nodiscard]] device_image image_over(const device_buffer& buffer, const image_shape& shape,
                                        std::size_t row_pitch_bytes = 0, std::string_view name = {}) {
    require_image(shape, name);
    const std::size_t row = shape.width * texel_bytes(shape.texel);
    const std::size_t pitch = row_pitch_bytes == 0 ? row : row_pitch_bytes;
    if (!shares_buffer(shape, pitch, buffer.is_part())) {
      throw error(errc::unsupported, "the device makes no " + describe(shape) + " over a " +
                                         (buffer.is_part() ? "part of a buffer" : "buffer") + " with a row pitch of " +
                                         std::to_string(pitch) + " bytes" + of(name));
    }
    const std::size_t needed = shape.height == 0 ? 0 : (shape.height - 1) * pitch + row;
    if (needed > buffer.bytes()) {
      throw error(errc::invalid_argument, "an image of " + std::to_string(needed) + " bytes over a buffer of " +
                                              std::to_string(buffer.bytes()) + " bytes" + of(name));
    }
    // Flags 0 inherit the buffer's access.
    return make_image(shape, buffer.handle(), shape.kind == image_kind::image2d ? pitch : 0, 0, name, false);
  }

  /// An image for people, as "image2d of 7 x 9 RGBA fp32 texels".
  [[nodiscard]] static std::string describe(const image_shape& shape) {
    constexpr std::string_view kinds[] = {"image2d", "image2d_array", "image1d_buffer"};
    std::string text(kinds[static_cast<std::size_t>(shape.kind)]);
    text += " of " + std::to_string(shape.width);
    if (shape.kind != image_kind::image1d_buffer) text += " x " + std::to_string(shape.height);
    if (shape.kind == image_kind::image2d_array) text += " x " + std::to_string(shape.layers) + " layers";
    return text + " " + std::string(name_of(shape.texel)) + " texels";
  }

  /// Refuses every allocation that would bring live_bytes above `bytes` (errc::memory_limit); 0 is no limit.
  void set_limit(std::uint64_t bytes) noexcept { account_->limit = bytes; }
  /// The bytes that set_limit() stated; 0: none.
  [[nodiscard]] std::uint64_t limit() const noexcept { return account_->limit; }

  [[nodiscard]] memory_figures figures() const noexcept {
    return {account_->live, account_->peak, account_->wrapped, account_->allocations};
  }

  /// Sets peak_bytes to live_bytes, to measure a part of a program.
  void reset_peak() noexcept { account_->peak = account_->live.load(); }

 private:
  static std::string of(std::string_view name) {
    return name.empty() ? std::string() : " ('" + std::string(name) + "')";
  }

  static bool is_buffer(cl_mem memory) {
    cl_mem_object_type type = 0;
    check(::clGetMemObjectInfo(memory, CL_MEM_TYPE, sizeof(type), &type, nullptr), "clGetMemObjectInfo");
    return type == CL_MEM_OBJECT_BUFFER;
  }

  cl_mem_object_type belongs_here(cl_mem memory, std::initializer_list<cl_mem_object_type> allowed,
                                  std::string_view what, std::string_view name = {}) const {
    cl_mem_object_type type = 0;
    cl_context owner = nullptr;
    if (memory == nullptr || ::clGetMemObjectInfo(memory, CL_MEM_TYPE, sizeof(type), &type, nullptr) != CL_SUCCESS ||
        ::clGetMemObjectInfo(memory, CL_MEM_CONTEXT, sizeof(owner), &owner, nullptr) != CL_SUCCESS ||
        std::find(allowed.begin(), allowed.end(), type) == allowed.end()) {
      throw error(errc::invalid_argument, "the caller's memory object is no " + std::string(what) + of(name));
    }
    if (owner != context_()) {
      throw error(errc::invalid_argument,
                  "the caller's " + std::string(what) + " belongs to another OpenCL context" + of(name));
    }
    return type;
  }

  std::string situation(std::size_t bytes, std::string_view name) const {
    return std::to_string(bytes) + " bytes" + of(name) + ", " + std::to_string(account_->live.load()) +
           " bytes live, the device has " + std::to_string(device_bytes_) + " and gives at most " +
           std::to_string(largest_bytes_) + " at once";
  }

  void within_limit(std::size_t bytes, std::string_view name) const {
    if (device_bytes_ != 0 && bytes > device_bytes_) {
      throw error(errc::out_of_device_memory, "more than the device's memory: " + situation(bytes, name));
    }
    const std::uint64_t limit = account_->limit;
    const std::uint64_t live = account_->live;
    if (limit != 0 && (live > limit || bytes > limit - live)) {
      throw error(errc::memory_limit,
                  "the memory limit of " + std::to_string(limit) + " bytes forbids " + situation(bytes, name));
    }
  }

  device_buffer make_buffer(cl_mem_flags flags, void* host, std::size_t bytes, std::string_view name, bool wrapped) {
    cl_int status = CL_SUCCESS;
    cl_mem memory = ::clCreateBuffer(context_(), flags, bytes, host, &status);
    check(status, "clCreateBuffer", [&] { return situation(bytes, name); });
    device_buffer result;
    result.handle_ = cl::Memory(memory, false);
    result.root_ = result.handle_;
    result.bytes_ = bytes;
    result.alignment_ = alignment_;
    result.counted_ = detail::counted_bytes(account_, bytes, wrapped);
    return result;
  }

  /// A buffer over huge_pages(), which end with the OpenCL object: commands under way keep both. Without such memory a
  /// buffer as the driver makes it.
  device_buffer make_paged(cl_mem_flags flags, std::size_t bytes, std::string_view name) {
    page_memory pages = huge_pages(bytes);
    if (pages == nullptr) return make_buffer(flags, nullptr, bytes, name, false);
    device_buffer result = make_buffer(flags | CL_MEM_USE_HOST_PTR, pages.get(), bytes, name, false);
    const auto end = [](cl_mem, void* memory) CL_CALLBACK { free_pages()(memory); };
    check(::clSetMemObjectDestructorCallback(result.handle(), end, pages.get()), "clSetMemObjectDestructorCallback",
          [&] { return situation(bytes, name); });
    (void)pages.release();
    return result;
  }

  device_buffer make_addressed(std::size_t bytes, std::string_view name) {
    device_buffer result;
#ifdef CL_VERSION_2_0
    if (addressable_) {
      void* made = ::clSVMAlloc(context_(), CL_MEM_READ_WRITE, bytes, 0);
      if (made == nullptr) throw error(errc::out_of_device_memory, "clSVMAlloc: " + situation(bytes, name));
      result.addressed_ = std::shared_ptr<std::byte>(static_cast<std::byte*>(made),
                                                     [context = context_](std::byte* p) { ::clSVMFree(context(), p); });
      result.bytes_ = bytes;
      result.alignment_ = alignment_;
      result.counted_ = detail::counted_bytes(account_, bytes, false);
      return result;
    }
#endif
    throw error(errc::unsupported,
                "the device has no shared virtual memory for " + std::to_string(bytes) + " bytes" + of(name));
  }

  void require_image(const image_shape& shape, std::string_view name) const {
    const bool made = (shape.texel == texel_type::rgba_fp32 && images_.rgba_fp32) ||
                      (shape.texel == texel_type::rgba_fp16 && images_.rgba_fp16);
    if (!images_.supported || !made) {
      throw error(errc::unsupported, "the device has no " + describe(shape) + of(name));
    }
    const bool linear = shape.kind == image_kind::image1d_buffer;
    const std::size_t width = linear ? images_.max_buffer_texels : images_.max_width_2d;
    const std::size_t height = linear ? 1 : images_.max_height_2d;
    const std::size_t layers = shape.kind == image_kind::image2d_array ? images_.max_array_layers : 1;
    if (shape.width == 0 || shape.height == 0 || shape.layers == 0) {
      throw error(errc::invalid_argument, "an image without texels: " + describe(shape) + of(name));
    }
    if (shape.width > width || shape.height > height || shape.layers > layers) {
      throw error(errc::out_of_device_memory, describe(shape) + of(name) + " exceeds the device's limit of " +
                                                  std::to_string(width) + " x " + std::to_string(height) + " x " +
                                                  std::to_string(layers) + " layers");
    }
  }

  device_image make_image(const image_shape& shape, cl_mem buffer, std::size_t row_pitch_bytes, cl_mem_flags flags,
                          std::string_view name, bool counted) {
    const cl_image_format format{
        CL_RGBA, static_cast<cl_channel_type>(shape.texel == texel_type::rgba_fp32 ? CL_FLOAT : CL_HALF_FLOAT)};
    cl_image_desc description{};
    description.image_width = shape.width;
    description.image_row_pitch = row_pitch_bytes;
    description.buffer = buffer;
    switch (shape.kind) {
      case image_kind::image1d_buffer:
        description.image_type = CL_MEM_OBJECT_IMAGE1D_BUFFER;
        break;
      case image_kind::image2d_array:
        description.image_array_size = shape.layers;
        description.image_type = CL_MEM_OBJECT_IMAGE2D_ARRAY;
        description.image_height = shape.height;
        break;
      case image_kind::image2d:
        description.image_type = CL_MEM_OBJECT_IMAGE2D;
        description.image_height = shape.height;
        break;
    }
    cl_int status = CL_SUCCESS;
    cl_mem memory = ::clCreateImage(context_(), flags, &format, &description, nullptr, &status);
    check(status, "clCreateImage", [&] { return describe(shape) + ": " + situation(shape.bytes(), name); });
    device_image result;
    result.handle_ = cl::Memory(memory, false);
    result.shape_ = shape;
    if (counted) result.counted_ = detail::counted_bytes(account_, shape.bytes(), false);
    return result;
  }

  cl::Context context_;
  image_limits images_;
  std::size_t huge_pages_from_;
  bool in_place_;
  bool addressable_;
  std::size_t alignment_;
  std::uint64_t device_bytes_;
  std::uint64_t largest_bytes_;
  std::shared_ptr<detail::memory_account> account_;
};

}  // namespace dnnopt::opencl

#endif  // DNNOPT_BACKEND_OPENCL_DEVICE_MEMORY_HPP

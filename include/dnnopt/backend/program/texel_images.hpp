// Owns the images that kernels of a program name: their shapes on a device, and arguments that are buffers or images.
#ifndef DNNOPT_BACKEND_PROGRAM_TEXEL_IMAGES_HPP
#define DNNOPT_BACKEND_PROGRAM_TEXEL_IMAGES_HPP

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include <dnnopt/backend/codegen/builder/kernel_plan.hpp>
#include <dnnopt/backend/opencl/device_memory.hpp>

namespace dnnopt {

/// The image that holds texels of such a storage under values of the symbols. Precondition: it is no buffer.
[[nodiscard]] inline opencl::image_shape image_shape_of(const codegen::texel_storage& storage,
                                                        const symbol_values& symbols) {
  const auto extent = [&](const index_expr& e) {
    return static_cast<std::size_t>(std::max<std::int64_t>(e.evaluate(symbols), 1));
  };
  opencl::image_shape made;
  made.texel = storage.type == dtype::float16 ? opencl::texel_type::rgba_fp16 : opencl::texel_type::rgba_fp32;
  made.width = extent(storage.extents.width);
  made.height = extent(storage.extents.height);
  switch (storage.object) {
    case memory_object::image2d_array: {
      const auto rows = static_cast<std::size_t>(storage.layer_rows);
      made.kind = opencl::image_kind::image2d_array;
      made.layers = (made.height + rows - 1) / rows;
      made.height = std::min(made.height, rows);
      break;
    }
    case memory_object::image1d_buffer:
      made.kind = opencl::image_kind::image1d_buffer;
      made.width *= made.height;
      made.height = 1;
      break;
    default:
      made.kind = opencl::image_kind::image2d;
      break;
  }
  return made;
}

/// The storage of a value that holds texels. Precondition: its facts have texels and dims.
[[nodiscard]] inline codegen::texel_storage texel_storage_of(const value_facts& facts) {
  return {facts.texels->object, image_of(texel_dims(*facts.dims, facts.texels->packed)), facts.texels->layer_rows,
          facts.type};
}

/// Memory as a kernel's argument: a buffer or an image, kept alive by somebody else.
class argument_memory {
 public:
  argument_memory(const opencl::device_buffer& buffer) noexcept : buffer_(&buffer) {}
  argument_memory(const opencl::device_image& image) noexcept : image_(&image) {}

  /// Makes it the argument `index` of a kernel. Returns OpenCL's status.
  [[nodiscard]] cl_int set(cl_kernel kernel, cl_uint index) const noexcept {
    return image_ != nullptr ? image_->set_as_argument(kernel, index) : buffer_->set_as_argument(kernel, index);
  }
  /// Whether it is set as an address, not as an object of OpenCL.
  [[nodiscard]] bool is_address() const noexcept { return buffer_ != nullptr && buffer_->address() != nullptr; }
  /// Bytes of the memory.
  [[nodiscard]] std::size_t bytes() const noexcept { return image_ != nullptr ? image_->bytes() : buffer_->bytes(); }

 private:
  const opencl::device_buffer* buffer_ = nullptr;
  const opencl::device_image* image_ = nullptr;
};

}  // namespace dnnopt

#endif  // DNNOPT_BACKEND_PROGRAM_TEXEL_IMAGES_HPP

// Owns how kernels address texels: coordinates, reads and writes by memory object, and which object a device allows.
#ifndef DNNOPT_BACKEND_CODEGEN_BUILDER_TEXEL_ACCESS_HPP
#define DNNOPT_BACKEND_CODEGEN_BUILDER_TEXEL_ACCESS_HPP

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <dnnopt/backend/codegen/builder/index_source.hpp>
#include <dnnopt/backend/codegen/builder/kernel_plan.hpp>
#include <dnnopt/device_info.hpp>
#include <dnnopt/layout.hpp>

namespace dnnopt::codegen {

/// A texel of an image of `width` texels in a row: texel `x` of row `y`, which is row `row` of a plane of `rows`.
struct texel_place {
  index_expr x;
  index_expr y;
  index_expr width;
  index_expr row = 0;
  index_expr plane = 0;
  index_expr rows = 0;  ///< 0: rows are not told apart by planes

  [[nodiscard]] index_expr linear() const { return y * width + x; }
};

/// The texel at an index of a tensor of `texels` (see texel_dims) whose packed entry counts texels already.
[[nodiscard]] inline texel_place place_in(const shape& texels, std::span<const index_expr> index) {
  texel_place place{0, 0, 1};
  if (texels.empty()) return place;
  const std::size_t last = texels.size() - 1;
  const auto count = [&](std::size_t dims) {
    index_expr at = 0;
    index_expr stride = 1;
    for (std::size_t d = dims; d-- > 0;) {
      if (!(texels[d] == index_expr(1))) at += index[d] * stride;
      stride *= texels[d];
    }
    return at;
  };
  place.width = texels[last];
  place.y = count(last);
  if (last > 0) {
    place.rows = texels[last - 1];
    place.plane = count(last - 1);
    if (!(place.rows == index_expr(1))) place.row = index[last - 1];
  }
  if (!(place.width == index_expr(1))) place.x = index[last];
  return place;
}

/// The C type of an image argument, without its access.
[[nodiscard]] constexpr std::string_view image_type(memory_object object) noexcept {
  constexpr std::string_view names[] = {"", "image2d_t", "image2d_array_t", "image1d_buffer_t"};
  return names[static_cast<unsigned>(object)];
}

/// Coordinates of a texel as its object takes them, computed in so many bits.
[[nodiscard]] inline std::string texel_coordinates(const texel_place& at, memory_object object, std::int64_t layer_rows,
                                                   index_width width = index_width::by_range) {
  const auto narrow = [width](const index_expr& e) {
    return (fits_int(e.range()) || width == index_width::int32 ? "" : "(int)") + index_source(e, width);
  };
  switch (object) {
    case memory_object::image2d:
      return "(int2)(" + narrow(at.x) + ", " + narrow(at.y) + ")";
    case memory_object::image2d_array: {
      // A row outside its plane stays outside its layer, where the border is, instead of in the next layer.
      const bool planes = at.rows == index_expr(layer_rows);
      return "(int4)(" + narrow(at.x) + ", " + narrow(planes ? at.row : mod(at.y, layer_rows)) + ", " +
             narrow(planes ? at.plane : floordiv(at.y, layer_rows)) + ", 0)";
    }
    default:
      return narrow(at.linear());
  }
}

/// A float4 expression that reads a texel of the argument `name`.
[[nodiscard]] inline std::string texel_read(std::string_view name, const texel_place& at, memory_object object,
                                            std::int64_t layer_rows, dtype type,
                                            index_width width = index_width::by_range) {
  const std::string where = texel_coordinates(at, object, layer_rows, width);
  const std::string from(name);
  if (object == memory_object::image1d_buffer) return "read_imagef(" + from + ", " + where + ")";
  if (object != memory_object::buffer) return "read_imagef(" + from + ", dnnopt_texels, " + where + ")";
  return type == dtype::float16 ? "dnnopt_load_half4(" + where + ", " + from + ")"
                                : "((__global const float4*)" + from + ")[" + where + "]";
}

/// A float4 expression that reads between the texels of the argument `name`, an image2d of one plane or an
/// image2d_array whose layers are planes: `x` and `row` are floats in OpenCL C, the middle of texel 0 at 0.5.
[[nodiscard]] inline std::string texel_between(std::string_view name, std::string_view x, std::string_view row,
                                               const index_expr& plane, memory_object object) {
  const std::string where = std::string(x) + ", " + std::string(row);
  return "read_imagef(" + std::string(name) + ", dnnopt_between_texels, " +
         (object == memory_object::image2d ? "(float2)(" + where + ")"
                                           : "(float4)(" + where + ", (float)" + index_source(plane) + ", 0.0f)") +
         ")";
}

/// A statement that writes the float4 `value` to a texel of the argument `name`.
[[nodiscard]] inline std::string texel_write(std::string_view name, const texel_place& at, memory_object object,
                                             std::int64_t layer_rows, dtype type, std::string_view value,
                                             index_width width = index_width::by_range) {
  const std::string where = texel_coordinates(at, object, layer_rows, width);
  const std::string to(name);
  const std::string held(value);
  if (object != memory_object::buffer) return "write_imagef(" + to + ", " + where + ", " + held + ");";
  return type == dtype::float16 ? "dnnopt_store_half4(" + held + ", " + where + ", " + to + ");"
                                : "((__global float4*)" + to + ")[" + where + "] = " + held + ";";
}

/// Bytes of texels of a type.
[[nodiscard]] inline index_expr texel_bytes(const texel_extents& extents, dtype type) {
  return extents.width * extents.height * (texel_width * static_cast<std::int64_t>(size_of(type)));
}

/// The object that holds an image of such extents on a device: image2d; past its height an image2d_array of layers,
/// past its width an image1d_buffer; past these limits, or where the extents have no known bound, a buffer, and `why`
/// says so.
[[nodiscard]] inline texel_storage choose_object(const texel_extents& extents, dtype type, memory_objects wanted,
                                                 const device_info* device, std::string& why) {
  texel_storage storage{memory_object::buffer, extents, 0, type};
  if (wanted != memory_objects::images) return storage;
  const image_limits none;
  const image_limits& limits = device == nullptr ? none : device->images;
  if (!limits.supported || !(type == dtype::float16 ? limits.rgba_fp16 : limits.rgba_fp32)) {
    why = std::string("the device has no images of RGBA ") + (type == dtype::float16 ? "fp16" : "fp32");
    return storage;
  }
  const auto within = [](const index_expr& extent, std::size_t most) {
    return extent.range().high < unbounded && static_cast<std::size_t>(extent.range().high) <= most;
  };
  if (within(extents.width, limits.max_width_2d)) {
    if (within(extents.height, limits.max_height_2d)) {
      storage.object = memory_object::image2d;
      return storage;
    }
    if (within(extents.height, limits.max_height_2d * limits.max_array_layers)) {
      storage.object = memory_object::image2d_array;
      storage.layer_rows = static_cast<std::int64_t>(limits.max_height_2d);
      return storage;
    }
  }
  if (within(extents.width * extents.height, limits.max_buffer_texels)) {
    storage.object = memory_object::image1d_buffer;
    return storage;
  }
  why = "an image of " + std::to_string(extents.width.range().high) + " x " +
        std::to_string(extents.height.range().high) + " texels is beyond the device's limits";
  return storage;
}

/// The same texels in an image2d_array whose layers are planes of `rows` rows, so that what lies above and below a
/// plane is border; nothing where they lie in no image or the device's limits do not allow it.
[[nodiscard]] inline std::optional<texel_storage> planes_as_layers(texel_storage storage, std::int64_t rows,
                                                                   const device_info* device) {
  if (device == nullptr || storage.object == memory_object::buffer || rows < 1 ||
      !storage.extents.width.is_constant() || !storage.extents.height.is_constant() ||
      storage.extents.height.constant() % rows != 0)
    return std::nullopt;
  const image_limits& limits = device->images;
  if (static_cast<std::size_t>(storage.extents.width.constant()) > limits.max_width_2d ||
      static_cast<std::size_t>(rows) > limits.max_height_2d ||
      static_cast<std::size_t>(storage.extents.height.constant() / rows) > limits.max_array_layers)
    return std::nullopt;
  storage.object = memory_object::image2d_array;
  storage.layer_rows = rows;
  return storage;
}

/// Four results at once, as they stand side by side in a texel.
struct four_results {
  std::array<std::vector<index_expr>, 4> at;  ///< of the anchor's elements
  std::array<std::string, 4> within;          ///< the test that one of them is an element (kernel_facts::within)
};

/// Whether four offsets stand side by side in a buffer, the first at a multiple of four.
[[nodiscard]] inline bool are_four_neighbours(const std::array<index_expr, 4>& offsets) {
  if (!(mod(offsets[0], 4) == index_expr(0))) return false;
  for (std::size_t j = 1; j < 4; ++j)
    if (!(offsets[j] == offsets[0] + static_cast<std::int64_t>(j))) return false;
  return true;
}

/// Whether a value's elements at four indices are the components of one texel, in order.
[[nodiscard]] inline bool are_one_texel(const std::array<std::vector<index_expr>, 4>& at, std::size_t packed) {
  if (packed >= at[0].size() || !(mod(at[0][packed], texel_width) == index_expr(0))) return false;
  for (std::size_t j = 1; j < 4; ++j)
    for (std::size_t d = 0; d < at[0].size(); ++d)
      if (!(at[j][d] == (d == packed ? at[0][d] + static_cast<std::int64_t>(j) : at[0][d]))) return false;
  return true;
}

}  // namespace dnnopt::codegen

#endif  // DNNOPT_BACKEND_CODEGEN_BUILDER_TEXEL_ACCESS_HPP

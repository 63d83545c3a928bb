// Owns where the elements of a tensor lie: row by row, or as texels of four neighbours along one dim, and in what.
//
// SmartMem's 2.5D memory (section 3.2.2) has two directions of direct access: the four components of a texel and the
// texels of a row. TFLite GPU's PHWC4 is the case of a packed channel dim.
#ifndef DNNOPT_LAYOUT_HPP
#define DNNOPT_LAYOUT_HPP

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include <dnnopt/shape.hpp>

namespace dnnopt {

/// What holds packed weights and the intermediate tensors that layout selection packs.
enum class memory_objects : std::uint8_t {
  buffers,    ///< rows of elements in buffers, nothing is packed
  packed,     ///< texels, in buffers
  images,     ///< texels, in images wherever the device's limits allow it
  automatic,  ///< the default: rows, but texels in buffers where a kernel reads them sooner (docs/concepts/layouts.md)
};

/// "buffers", "packed", "images" or "automatic".
[[nodiscard]] constexpr std::string_view name_of(memory_objects objects) noexcept {
  constexpr std::string_view names[] = {"buffers", "packed", "images", "automatic"};
  return names[static_cast<unsigned>(objects)];
}

/// The choice of that name; nothing for other names.
[[nodiscard]] constexpr std::optional<memory_objects> find_memory_objects(std::string_view name) noexcept {
  for (const memory_objects one :
       {memory_objects::buffers, memory_objects::packed, memory_objects::images, memory_objects::automatic})
    if (name_of(one) == name) return one;
  return std::nullopt;
}

/// An OpenCL memory object that holds texels.
enum class memory_object : std::uint8_t { buffer, image2d, image2d_array, image1d_buffer };

/// "buffer", "image2d", "image2d_array" or "image1d_buffer".
[[nodiscard]] constexpr std::string_view name_of(memory_object object) noexcept {
  constexpr std::string_view names[] = {"buffer", "image2d", "image2d_array", "image1d_buffer"};
  return names[static_cast<unsigned>(object)];
}

/// The memory object of that name; nothing for other names.
[[nodiscard]] constexpr std::optional<memory_object> find_memory_object(std::string_view name) noexcept {
  for (const memory_object one :
       {memory_object::buffer, memory_object::image2d, memory_object::image2d_array, memory_object::image1d_buffer})
    if (name_of(one) == name) return one;
  return std::nullopt;
}

/// Components of a texel (RGBA).
inline constexpr std::int64_t texel_width = 4;

/// A tensor as texels: elements 4s .. 4s + 3 along dim `packed` are one, what lies beyond the dim's extent is zero. The
/// last dim of `texel_dims` runs along the rows of an image, all dims before it together count its rows.
struct texel_layout {
  std::size_t packed = 0;
  memory_object object = memory_object::buffer;
  std::int64_t layer_rows = 0;  ///< of an image2d_array: rows of one layer; 0 where a caller states it: a plane's
  double filter_bits = 0;       ///< of an image: those of the device's linear filter (device_facts), 0: not known

  friend bool operator==(const texel_layout&, const texel_layout&) = default;
};

/// Extents in texels: `dims` with dim `packed` cut in groups of four. Precondition: packed < dims.size().
[[nodiscard]] inline shape texel_dims(const shape& dims, std::size_t packed) {
  shape texels = dims;
  texels[packed] = ceildiv(texels[packed], texel_width);
  return texels;
}

/// Texels in a row of an image, and its rows.
struct texel_extents {
  index_expr width = 1;
  index_expr height = 1;
};

/// The image of a tensor of `texels` (see texel_dims): the last dim along a row.
[[nodiscard]] inline texel_extents image_of(const shape& texels) {
  texel_extents extents;
  for (std::size_t d = 0; d < texels.size(); ++d)
    (d + 1 == texels.size() ? extents.width : extents.height) *= texels[d];
  return extents;
}

}  // namespace dnnopt

#endif  // DNNOPT_LAYOUT_HPP

// Owns the copying of tensor elements of any type, strings included, by strides or by lists of positions.
#ifndef DNNOPT_REFERENCE_ELEMENT_COPY_HPP
#define DNNOPT_REFERENCE_ELEMENT_COPY_HPP

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <dnnopt/error.hpp>
#include <dnnopt/tensor.hpp>

namespace dnnopt::reference {

/// Row-major strides in elements.
[[nodiscard]] inline dim_list row_major_strides(const dim_list& dims) {
  dim_list strides(dims.size(), 1);
  for (std::size_t k = dims.size(); k-- > 1;) strides[k - 1] = strides[k] * dims[k];
  return strides;
}

/// An axis counted from the end where negative. Errors: bad_attribute.
[[nodiscard]] inline std::size_t axis_at(std::int64_t axis, std::size_t rank) {
  const auto r = static_cast<std::int64_t>(rank);
  if (axis < -r || axis >= r)
    throw error(errc::bad_attribute, "axis " + std::to_string(axis) + " is outside rank " + std::to_string(rank));
  return static_cast<std::size_t>(axis < 0 ? axis + r : axis);
}

/// An index counted from the end where negative. Errors: invalid_argument outside [-dim, dim).
[[nodiscard]] inline std::int64_t index_at(std::int64_t index, std::int64_t dim) {
  if (index < -dim || index >= dim)
    throw error(errc::invalid_argument,
                "index " + std::to_string(index) + " is outside a dim of " + std::to_string(dim));
  return index < 0 ? index + dim : index;
}

/// A box of elements: `dims` of them, read and written with these strides from these offsets.
struct strided_box {
  dim_list dims;
  dim_list read_strides;
  std::int64_t read_offset = 0;
  dim_list write_strides;
  std::int64_t write_offset = 0;
};

namespace detail {

struct sixteen_bytes {
  std::uint64_t low;
  std::uint64_t high;
};

/// Calls f(read, write) with the offsets of every element of a box. O(elements).
template <class F>
void for_each_position(const strided_box& box, F&& f) {
  std::int64_t count = 1;
  for (const std::int64_t dim : box.dims) count *= dim;
  std::vector<std::int64_t> index(box.dims.size(), 0);
  std::int64_t read = box.read_offset;
  std::int64_t write = box.write_offset;
  for (; count > 0; --count) {
    f(read, write);
    for (std::size_t axis = box.dims.size(); axis-- > 0;) {
      read += box.read_strides[axis];
      write += box.write_strides[axis];
      if (++index[axis] < box.dims[axis]) break;
      read -= box.read_strides[axis] * box.dims[axis];
      write -= box.write_strides[axis] * box.dims[axis];
      index[axis] = 0;
    }
  }
}

/// Two axes of a box, which are copied for each position of the others: the last one, and one whose elements lie side
/// by side in what is read where those of the last one do not. Without such an axis its dim is 1.
struct box_plane {
  std::int64_t rows = 1;
  std::int64_t columns = 1;
  std::int64_t read_row = 0;
  std::int64_t read_column = 0;
  std::int64_t write_row = 0;
  std::int64_t write_column = 0;

  /// Takes them out of `box`. Precondition: its rank is not 0.
  [[nodiscard]] static box_plane taken_from(strided_box& box) {
    box_plane plane;
    const auto take = [&box](std::size_t axis, std::int64_t& dim, std::int64_t& read, std::int64_t& write) {
      const auto take_one = [axis](dim_list& list, std::int64_t& number) {
        number = list[axis];
        list.erase(list.begin() + static_cast<std::ptrdiff_t>(axis));
      };
      take_one(box.dims, dim);
      take_one(box.read_strides, read);
      take_one(box.write_strides, write);
    };
    take(box.dims.size() - 1, plane.columns, plane.read_column, plane.write_column);
    if (plane.read_column == 1) return plane;
    for (std::size_t axis = box.dims.size(); axis-- > 0;)
      if (box.read_strides[axis] == 1 && box.dims[axis] > 1) {
        take(axis, plane.rows, plane.read_row, plane.write_row);
        break;
      }
    return plane;
  }

  /// Copies in tiles, so that a line of the cache that is read for one row is there for those beside it.
  template <class T>
  void copy(const T* from, T* to) const {
    constexpr std::int64_t tile = 16;
    const std::int64_t step = rows == 1 ? columns : tile;
    for (std::int64_t row = 0; row < rows; row += tile)
      for (std::int64_t column = 0; column < columns; column += step)
        for (std::int64_t i = row; i < std::min(row + tile, rows); ++i)
          for (std::int64_t k = column; k < std::min(column + step, columns); ++k)
            to[i * write_row + k * write_column] = from[i * read_row + k * read_column];
  }
};

template <class T>
void copy_box(const T* from, T* to, strided_box box) {
  if (box.dims.empty()) {
    to[box.write_offset] = from[box.read_offset];
    return;
  }
  const box_plane plane = box_plane::taken_from(box);
  if (plane.rows == 0 || plane.columns == 0) return;
  for_each_position(box, [&](std::int64_t read, std::int64_t write) { plane.copy(from + read, to + write); });
}

/// Calls f(from, to) with pointers of the type that stores elements of both tensors. Errors: type_mismatch.
template <class F>
void with_storage(const tensor& from, tensor& to, F&& f) {
  if (from.type() != to.type())
    throw error(errc::type_mismatch, "elements of " + std::string(name_of(from.type())) + " are copied to " +
                                         std::string(name_of(to.type())));
  if (from.type() == dtype::string) {
    f(from.strings().data(), to.mutable_strings().data());
    return;
  }
  const std::byte* source = from.bytes().data();
  std::byte* target = to.mutable_bytes().data();
  switch (size_of(from.type())) {
    case 1:
      f(reinterpret_cast<const std::uint8_t*>(source), reinterpret_cast<std::uint8_t*>(target));
      return;
    case 2:
      f(reinterpret_cast<const std::uint16_t*>(source), reinterpret_cast<std::uint16_t*>(target));
      return;
    case 4:
      f(reinterpret_cast<const std::uint32_t*>(source), reinterpret_cast<std::uint32_t*>(target));
      return;
    case 8:
      f(reinterpret_cast<const std::uint64_t*>(source), reinterpret_cast<std::uint64_t*>(target));
      return;
    case 16:
      f(reinterpret_cast<const sixteen_bytes*>(source), reinterpret_cast<sixteen_bytes*>(target));
      return;
    default:
      throw error(errc::type_mismatch, "elements of type " + std::string(name_of(from.type())) + " cannot be copied");
  }
}

}  // namespace detail

/// Copies a box of elements of `from` into `to`. Precondition: every position lies inside its tensor and `to` does not
/// share storage with `from`. Errors: type_mismatch where types differ. O(elements of the box).
inline void copy_elements(const tensor& from, tensor& to, const strided_box& box) {
  detail::with_storage(from, to, [&box](const auto* read, auto* write) { detail::copy_box(read, write, box); });
}

/// Sets element k of `to` to element positions[k] of `from` where that is not negative. Precondition and errors as
/// copy_elements; as many positions as `to` has elements.
inline void pick_elements(const tensor& from, tensor& to, std::span<const std::int64_t> positions) {
  detail::with_storage(from, to, [positions](const auto* read, auto* write) {
    for (std::size_t k = 0; k < positions.size(); ++k)
      if (positions[k] >= 0) write[k] = read[positions[k]];
  });
}

/// Sets elements [position, position + count) of `to` to those from `read_position` on of `from`.
inline void copy_run(const tensor& from, std::int64_t read_position, tensor& to, std::int64_t position,
                     std::int64_t count) {
  copy_elements(from, to, {{count}, {1}, read_position, {1}, position});
}

/// Sets every element of `to` to element 0 of `from`. Errors: type_mismatch; shape_mismatch where `from` has none.
inline void fill_elements(const tensor& from, tensor& to) {
  if (from.size() == 0) throw error(errc::shape_mismatch, "a fill value has no element");
  copy_elements(from, to, {{to.size()}, {0}, 0, {1}, 0});
}

}  // namespace dnnopt::reference

#endif  // DNNOPT_REFERENCE_ELEMENT_COPY_HPP

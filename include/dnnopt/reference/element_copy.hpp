// Owns the copying of tensor elements of any type, strings included, by strides or by lists of positions.
#ifndef DNNOPT_REFERENCE_ELEMENT_COPY_HPP
#define DNNOPT_REFERENCE_ELEMENT_COPY_HPP

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

template <class T>
void copy_box(const T* from, T* to, const strided_box& box) {
  const std::size_t rank = box.dims.size();
  if (rank == 0) {
    to[box.write_offset] = from[box.read_offset];
    return;
  }
  std::int64_t rows = 1;
  for (const std::int64_t dim : box.dims) rows *= dim;
  if (rows == 0) return;
  rows /= box.dims.back();
  const std::int64_t count = box.dims.back();
  const std::int64_t read_step = box.read_strides.back();
  const std::int64_t write_step = box.write_strides.back();
  std::vector<std::int64_t> index(rank, 0);
  std::int64_t read = box.read_offset;
  std::int64_t write = box.write_offset;
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t k = 0; k < count; ++k) to[write + k * write_step] = from[read + k * read_step];
    for (std::size_t axis = rank - 1; axis-- > 0;) {
      read += box.read_strides[axis];
      write += box.write_strides[axis];
      if (++index[axis] < box.dims[axis]) break;
      read -= box.read_strides[axis] * box.dims[axis];
      write -= box.write_strides[axis] * box.dims[axis];
      index[axis] = 0;
    }
  }
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

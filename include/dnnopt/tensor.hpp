// Owns the host tensor: element type, dims, and storage that is owned, viewed or memory-mapped.
#ifndef DNNOPT_TENSOR_HPP
#define DNNOPT_TENSOR_HPP

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <dnnopt/detail/implementation.hpp>
#include <dnnopt/dtype.hpp>
#include <dnnopt/error.hpp>
#include <dnnopt/small_float.hpp>

#if DNNOPT_IMPLEMENT_GRAPH
#include <cstdlib>
#include <cstring>
#include <new>
#endif

namespace dnnopt {

/// The element type that C++ type `T` stores.
template <class T>
inline constexpr dtype dtype_of = dtype::undefined;
template <>
inline constexpr dtype dtype_of<float> = dtype::float32;
template <>
inline constexpr dtype dtype_of<double> = dtype::float64;
template <>
inline constexpr dtype dtype_of<std::uint8_t> = dtype::uint8;
template <>
inline constexpr dtype dtype_of<std::int8_t> = dtype::int8;
template <>
inline constexpr dtype dtype_of<std::uint16_t> = dtype::uint16;
template <>
inline constexpr dtype dtype_of<std::int16_t> = dtype::int16;
template <>
inline constexpr dtype dtype_of<std::uint32_t> = dtype::uint32;
template <>
inline constexpr dtype dtype_of<std::int32_t> = dtype::int32;
template <>
inline constexpr dtype dtype_of<std::uint64_t> = dtype::uint64;
template <>
inline constexpr dtype dtype_of<std::int64_t> = dtype::int64;
template <>
inline constexpr dtype dtype_of<bool> = dtype::boolean;
template <>
inline constexpr dtype dtype_of<float16> = dtype::float16;
template <>
inline constexpr dtype dtype_of<bfloat16> = dtype::bfloat16;
template <>
inline constexpr dtype dtype_of<float8e4m3fn> = dtype::float8e4m3fn;
template <>
inline constexpr dtype dtype_of<float8e4m3fnuz> = dtype::float8e4m3fnuz;
template <>
inline constexpr dtype dtype_of<float8e5m2> = dtype::float8e5m2;
template <>
inline constexpr dtype dtype_of<float8e5m2fnuz> = dtype::float8e5m2fnuz;
template <>
inline constexpr dtype dtype_of<float4e2m1> = dtype::float4e2m1;
template <>
inline constexpr dtype dtype_of<float8e8m0> = dtype::float8e8m0;

/// Dims of a host tensor, outermost first, row-major.
using dim_list = std::vector<std::int64_t>;

/// The product of dims; 1 for rank 0.
/// Errors: invalid_argument for a negative dim, overflow where the product leaves int64.
[[nodiscard]] std::int64_t element_count(std::span<const std::int64_t> dims);

/// "2x3x224x224"; "scalar" for rank 0.
[[nodiscard]] std::string to_string(std::span<const std::int64_t> dims);

[[nodiscard]] std::string to_string(const dim_list& dims);

/// A dense row-major array of one element type on the host.
///
/// Copies share storage; the first write through `mutable_data` of a shared or viewed tensor copies it (copy on write),
/// so a tensor behaves as a value. Types narrower than a byte take one byte an element. Strings have their own storage.
class tensor {
 public:
  /// No element type, rank 0, no storage; `empty()` is true.
  tensor() = default;

  /// An owned, zeroed tensor (empty strings for `string`).
  /// Errors: as element_count; overflow where the bytes leave size_t.
  tensor(dtype type, dim_list dims);

  /// A tensor over bytes that `keep_alive` keeps valid (a memory map, another owner); it is never written.
  /// Precondition: `bytes` holds exactly the elements; errors: bad_tensor_data otherwise.
  [[nodiscard]] static tensor view(dtype type, dim_list dims, std::span<const std::byte> bytes,
                                   std::shared_ptr<const void> keep_alive);

  /// An owned tensor of `values`. Precondition: as many values as dims say (errors: bad_tensor_data).
  template <class T>
  [[nodiscard]] static tensor of(dim_list dims, std::span<const T> values) {
    tensor result(dtype_of<T>, std::move(dims));
    if (static_cast<std::size_t>(result.count_) != values.size()) result.refuse_count(values.size());
    auto out = result.mutable_data<T>();
    for (std::size_t i = 0; i < values.size(); ++i) out[i] = values[i];
    return result;
  }
  template <class T>
  [[nodiscard]] static tensor of(dim_list dims, const std::vector<T>& values) {
    return of<T>(std::move(dims), std::span<const T>(values));
  }

  /// A rank-0 tensor of one value.
  template <class T>
  [[nodiscard]] static tensor scalar(T value) {
    return of<T>({}, std::span<const T>(&value, 1));
  }

  [[nodiscard]] dtype type() const noexcept { return type_; }
  [[nodiscard]] const dim_list& dims() const noexcept { return dims_; }
  [[nodiscard]] std::size_t rank() const noexcept { return dims_.size(); }
  /// The number of elements.
  [[nodiscard]] std::int64_t size() const noexcept { return count_; }
  /// Whether this is the default-constructed tensor (no type), which stands for an absent optional input.
  [[nodiscard]] bool empty() const noexcept { return type_ == dtype::undefined; }
  /// Bytes of storage; 0 for strings.
  [[nodiscard]] std::size_t byte_size() const;

  /// All storage bytes (not for strings).
  [[nodiscard]] std::span<const std::byte> bytes() const { return {data_, byte_size()}; }
  /// Writable bytes; copies shared or viewed storage first.
  [[nodiscard]] std::span<std::byte> mutable_bytes() {
    make_unique();
    return {owned_.get(), byte_size()};
  }

  /// The elements as `T`. Errors: type_mismatch where T does not store this element type.
  template <class T>
  [[nodiscard]] std::span<const T> data() const {
    check<T>();
    return {reinterpret_cast<const T*>(data_), static_cast<std::size_t>(count_)};
  }
  /// Writable elements; copies shared or viewed storage first.
  template <class T>
  [[nodiscard]] std::span<T> mutable_data() {
    check<T>();
    make_unique();
    return {reinterpret_cast<T*>(owned_.get()), static_cast<std::size_t>(count_)};
  }

  /// The elements of a string tensor. Errors: type_mismatch for other types.
  [[nodiscard]] const std::vector<std::string>& strings() const;
  /// Writable strings; copies shared storage first.
  [[nodiscard]] std::vector<std::string>& mutable_strings();

  /// The same elements under other dims; storage is shared. Errors: shape_mismatch where the counts differ.
  [[nodiscard]] tensor reshaped(dim_list dims) const;

 private:
  // Of OpenCL's widest vector, as devices ask it of memory that they read in place.
  static constexpr std::size_t alignment = 128;

  template <class T>
  void check() const {
    // Integers of 4 and 2 bits are stored one per byte and read through the byte type of their sign.
    const bool narrow = (std::is_same_v<T, std::uint8_t> && (type_ == dtype::uint4 || type_ == dtype::uint2)) ||
                        (std::is_same_v<T, std::int8_t> && (type_ == dtype::int4 || type_ == dtype::int2));
    if (dtype_of<T> != type_ && !narrow) refuse(dtype_of<T>);
  }

  [[noreturn]] void refuse(dtype read_as) const;
  [[noreturn]] void refuse_count(std::size_t given) const;
  void make_unique();

  dtype type_ = dtype::undefined;
  dim_list dims_;
  std::int64_t count_ = 0;
  const std::byte* data_ = nullptr;
  std::shared_ptr<std::byte> owned_;
  std::shared_ptr<const void> keep_;
  std::shared_ptr<std::vector<std::string>> strings_;
};

/// Whether two tensors of plain bytes are the same to the bit. O(bytes).
[[nodiscard]] bool are_same(const tensor& a, const tensor& b);

#if DNNOPT_IMPLEMENT_GRAPH
DNNOPT_BODY std::int64_t element_count(std::span<const std::int64_t> dims) {
  std::int64_t count = 1;
  bool empty = false;
  for (const std::int64_t dim : dims) {
    if (dim < 0) throw error(errc::invalid_argument, "a tensor has a negative dim: " + std::to_string(dim));
    if (dim == 0) empty = true;
  }
  if (empty) return 0;
  for (const std::int64_t dim : dims)
    if (__builtin_mul_overflow(count, dim, &count))
      throw error(errc::overflow, "the product of a tensor's dims leaves 64 bits at dim " + std::to_string(dim));
  return count;
}

DNNOPT_BODY std::string to_string(std::span<const std::int64_t> dims) {
  if (dims.empty()) return "scalar";
  std::string text;
  for (const std::int64_t dim : dims) text += (text.empty() ? "" : "x") + std::to_string(dim);
  return text;
}

DNNOPT_BODY std::string to_string(const dim_list& dims) { return to_string(std::span<const std::int64_t>(dims)); }

DNNOPT_BODY tensor::tensor(dtype type, dim_list dims)
    : type_(type), dims_(std::move(dims)), count_(element_count(dims_)) {
  if (type == dtype::string) {
    strings_ = std::make_shared<std::vector<std::string>>(static_cast<std::size_t>(count_));
    return;
  }
  // A large calloc() is fresh pages of the system, which are zero until somebody writes: nothing is written twice.
  const std::size_t bytes = byte_size();
  void* whole = nullptr;
  std::size_t room = 0;
  if (!__builtin_add_overflow(bytes, alignment, &room)) whole = std::calloc(room, 1);
  if (whole == nullptr) throw std::bad_alloc();
  const std::shared_ptr<void> holder(whole, [](void* p) { std::free(p); });
  void* aligned = whole;
  (void)std::align(alignment, bytes, aligned, room);
  owned_ = std::shared_ptr<std::byte>(holder, static_cast<std::byte*>(aligned));
  data_ = owned_.get();
}

DNNOPT_BODY tensor tensor::view(dtype type, dim_list dims, std::span<const std::byte> bytes,
                                std::shared_ptr<const void> keep_alive) {
  tensor result;
  result.type_ = type;
  result.dims_ = std::move(dims);
  result.count_ = element_count(result.dims_);
  if (bytes.size() != result.byte_size())
    throw error(errc::bad_tensor_data, "a view of " + to_string(result.dims_) + " " + std::string(name_of(type)) +
                                           " needs " + std::to_string(result.byte_size()) + " bytes, got " +
                                           std::to_string(bytes.size()));
  result.data_ = bytes.data();
  result.keep_ = std::move(keep_alive);
  return result;
}

DNNOPT_BODY std::size_t tensor::byte_size() const {
  std::size_t bytes = 0;
  if (__builtin_mul_overflow(static_cast<std::size_t>(count_), size_of(type_), &bytes))
    throw error(errc::overflow, "a tensor of " + to_string(dims_) + " exceeds the address space");
  return bytes;
}

DNNOPT_BODY const std::vector<std::string>& tensor::strings() const {
  if (type_ != dtype::string)
    throw error(errc::type_mismatch, "strings() of a " + std::string(name_of(type_)) + " tensor");
  return *strings_;
}

DNNOPT_BODY std::vector<std::string>& tensor::mutable_strings() {
  (void)strings();
  if (strings_.use_count() != 1) strings_ = std::make_shared<std::vector<std::string>>(*strings_);
  return *strings_;
}

DNNOPT_BODY bool are_same(const tensor& a, const tensor& b) {
  if (a.type() != b.type() || a.dims() != b.dims()) return false;
  return a.byte_size() == 0 || std::memcmp(a.bytes().data(), b.bytes().data(), a.byte_size()) == 0;
}

DNNOPT_BODY tensor tensor::reshaped(dim_list dims) const {
  if (element_count(dims) != count_)
    throw error(errc::shape_mismatch, "cannot view " + to_string(dims_) + " as " + to_string(dims));
  tensor result = *this;
  result.dims_ = std::move(dims);
  return result;
}

DNNOPT_BODY void tensor::make_unique() {
  if (type_ == dtype::string) throw error(errc::type_mismatch, "a string tensor has no plain bytes");
  if (owned_ && owned_.use_count() == 1) return;
  tensor copy(type_, dims_);
  if (byte_size() != 0) std::memcpy(copy.owned_.get(), data_, byte_size());
  *this = std::move(copy);
}

DNNOPT_BODY void tensor::refuse(dtype read_as) const {
  throw error(errc::type_mismatch,
              "a " + std::string(name_of(type_)) + " tensor is read as " + std::string(name_of(read_as)));
}

DNNOPT_BODY void tensor::refuse_count(std::size_t given) const {
  throw error(errc::bad_tensor_data,
              "a tensor of " + to_string(dims_) + " was given " + std::to_string(given) + " values");
}
#endif

}  // namespace dnnopt

#endif  // DNNOPT_TENSOR_HPP

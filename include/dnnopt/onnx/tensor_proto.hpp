// Owns ONNX's tensor messages: their fields as read from the file, and their conversion to tensors from every encoding.
#ifndef DNNOPT_ONNX_TENSOR_PROTO_HPP
#define DNNOPT_ONNX_TENSOR_PROTO_HPP

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dnnopt/dtype.hpp>
#include <dnnopt/error.hpp>
#include <dnnopt/onnx/wire_reader.hpp>
#include <dnnopt/tensor.hpp>

namespace dnnopt::onnx {

/// TensorProto. Spans and views point into the file; typed data fields stay encoded until they are converted.
struct tensor_proto {
  using chunks = std::vector<std::span<const std::byte>>;

  std::string_view name;
  std::vector<std::int64_t> dims;
  std::int64_t data_type = 0;
  std::optional<std::span<const std::byte>> raw_data;
  chunks float_data, int32_data, int64_data, double_data, uint64_data;
  std::vector<std::span<const std::byte>> string_data;
  std::vector<std::pair<std::string_view, std::string_view>> external_data;
  bool external = false;
  bool segmented = false;
  std::size_t position = 0;  ///< byte of the file where the message's first field starts
};

/// SparseTensorProto: `values` (whose name is the tensor's), `indices`, and the dims of the dense tensor.
struct sparse_tensor_proto {
  tensor_proto values;
  tensor_proto indices;
  std::vector<std::int64_t> dims;
};

/// Reads a StringStringEntryProto.
[[nodiscard]] inline std::pair<std::string_view, std::string_view> read_entry(wire_reader in) {
  std::pair<std::string_view, std::string_view> entry;
  while (in.next()) {
    if (in.field() == 1)
      entry.first = in.text();
    else if (in.field() == 2)
      entry.second = in.text();
    else
      in.skip();
  }
  return entry;
}

/// Reads a TensorProto. Errors: malformed_protobuf.
[[nodiscard]] inline tensor_proto read_tensor_proto(wire_reader in) {
  using protozero::pbf_wire_type;
  tensor_proto t;
  bool first = true;
  while (in.next()) {
    if (std::exchange(first, false)) t.position = in.position();
    switch (in.field()) {
      case 1:
        in.integers(t.dims);
        break;
      case 2:
        t.data_type = in.integer();
        break;
      case 3:
        t.segmented = true;
        in.skip();
        break;
      case 4:
        in.elements(pbf_wire_type::fixed32, t.float_data);
        break;
      case 5:
        in.elements(pbf_wire_type::varint, t.int32_data);
        break;
      case 6:
        t.string_data.push_back(in.bytes());
        break;
      case 7:
        in.elements(pbf_wire_type::varint, t.int64_data);
        break;
      case 8:
        t.name = in.text();
        break;
      case 9:
        t.raw_data = in.bytes();
        break;
      case 10:
        in.elements(pbf_wire_type::fixed64, t.double_data);
        break;
      case 11:
        in.elements(pbf_wire_type::varint, t.uint64_data);
        break;
      case 13:
        t.external_data.push_back(read_entry(in.message()));
        break;
      case 14:
        t.external = in.integer() == 1;
        break;
      default:
        in.skip();
    }
  }
  return t;
}

/// Reads a SparseTensorProto. Errors: malformed_protobuf.
[[nodiscard]] inline sparse_tensor_proto read_sparse_tensor_proto(wire_reader in) {
  sparse_tensor_proto t;
  while (in.next()) {
    switch (in.field()) {
      case 1:
        t.values = read_tensor_proto(in.message());
        break;
      case 2:
        t.indices = read_tensor_proto(in.message());
        break;
      case 3:
        in.integers(t.dims);
        break;
      default:
        in.skip();
    }
  }
  return t;
}

/// Gives the bytes of external data; implemented by the importer's table of mapped files.
class external_source {
 public:
  virtual ~external_source() = default;
  /// The `size` bytes that tensor `t` refers to, and who keeps them.
  [[nodiscard]] virtual std::pair<std::span<const std::byte>, std::shared_ptr<const void>> read(const tensor_proto& t,
                                                                                                std::size_t size) = 0;
};

/// Where tensor data comes from, and how much of it may be made.
struct tensor_source {
  std::shared_ptr<const void> keep_alive;                  ///< keeps the file's bytes, which the tensors view
  external_source* external = nullptr;                     ///< null: external data is an error
  std::size_t largest_dense_bytes = std::size_t{1} << 31;  ///< of a densified sparse tensor
};

namespace detail {

[[noreturn]] inline void fail(const tensor_proto& t, errc code, const std::string& why) {
  throw error(code, "tensor '" + std::string(t.name) + "' at byte " + std::to_string(t.position) + ": " + why);
}

inline std::string dims_text(const tensor_proto& t) {
  return dnnopt::to_string(std::span<const std::int64_t>(t.dims)) + " " +
         std::string(name_of(static_cast<dtype>(t.data_type)));
}

/// Copies fixed-width elements of a typed field.
inline void copy_chunks(const tensor_proto& t, const tensor_proto::chunks& from, std::span<std::byte> to) {
  std::size_t at = 0;
  for (const auto chunk : from) {
    if (chunk.size() > to.size() - at) fail(t, errc::bad_tensor_data, "more data than " + dims_text(t) + " holds");
    if (!chunk.empty()) std::memcpy(to.data() + at, chunk.data(), chunk.size());
    at += chunk.size();
  }
  if (at != to.size())
    fail(t, errc::bad_tensor_data,
         std::to_string(at) + " bytes of data where " + dims_text(t) + " needs " + std::to_string(to.size()));
}

/// Writes the integers of a typed field as `T`, whose values lie between `low` and `high`.
template <class T>
void copy_integers(const tensor_proto& t, const tensor_proto::chunks& from, std::span<std::byte> to, std::int64_t low,
                   std::int64_t high) {
  const std::size_t count = to.size() / sizeof(T);
  std::size_t at = 0;
  const wire_reader any({}, nullptr);
  any.for_each_varint(from, [&](std::int64_t v) {
    if (at == count) fail(t, errc::bad_tensor_data, "more data than " + dims_text(t) + " holds");
    if (v < low || v > high)
      fail(t, errc::bad_tensor_data, "element " + std::to_string(v) + " does not fit " + dims_text(t));
    const auto element = static_cast<T>(v);
    std::memcpy(to.data() + at * sizeof(T), &element, sizeof(T));
    ++at;
  });
  if (at != count)
    fail(t, errc::bad_tensor_data,
         std::to_string(at) + " elements of data where " + dims_text(t) + " needs " + std::to_string(count));
}

/// Unpacks elements of 4 or 2 bits, lowest bits first, to one byte each; signed ones are sign-extended.
inline void unpack(std::span<const std::byte> packed, unsigned bits, bool is_signed, std::span<std::byte> to) {
  const unsigned per_byte = 8 / bits;
  const unsigned mask = (1u << bits) - 1;
  const unsigned sign = 1u << (bits - 1);
  for (std::size_t i = 0; i < to.size(); ++i) {
    unsigned v = std::to_integer<unsigned>(packed[i / per_byte]) >> (bits * static_cast<unsigned>(i % per_byte)) & mask;
    if (is_signed && (v & sign) != 0) v |= ~mask;
    to[i] = static_cast<std::byte>(v & 0xFFu);
  }
}

inline void check_dims(const tensor_proto& t) {
  for (const std::int64_t dim : t.dims)
    if (dim < 0) fail(t, errc::bad_tensor_data, "negative dim " + std::to_string(dim));
}

inline dtype checked_type(const tensor_proto& t) {
  if (t.data_type <= 0 || t.data_type >= static_cast<std::int64_t>(dtype_table.size()))
    fail(t, errc::bad_tensor_data, "unknown element type " + std::to_string(t.data_type));
  return static_cast<dtype>(t.data_type);
}

/// The tensor over bytes laid out as in a file (raw_data or external data): viewed where that is possible.
inline tensor from_raw(const tensor_proto& t, dtype type, std::span<const std::byte> raw,
                       std::shared_ptr<const void> keep) {
  const dtype_row& row = row_of(type);
  if (row.packed_bits < 8) {
    tensor result(type, t.dims);
    unpack(raw, row.packed_bits, row.kind == dtype_kind::signed_integer, result.mutable_bytes());
    return result;
  }
  bool viewable = reinterpret_cast<std::uintptr_t>(raw.data()) % std::min<std::size_t>(row.bytes, alignof(double)) == 0;
  // Any byte but 0 and 1 in a C++ bool is undefined behaviour.
  if (type == dtype::boolean)
    for (const std::byte b : raw) viewable = viewable && std::to_integer<unsigned>(b) <= 1;
  if (viewable && !raw.empty()) return tensor::view(type, t.dims, raw, std::move(keep));
  tensor result(type, t.dims);
  const auto to = result.mutable_bytes();
  if (type == dtype::boolean)
    for (std::size_t i = 0; i < raw.size(); ++i) to[i] = static_cast<std::byte>(raw[i] != std::byte{0});
  else if (!raw.empty())
    std::memcpy(to.data(), raw.data(), raw.size());
  return result;
}

inline std::size_t file_bytes(const tensor_proto& t, dtype type, std::int64_t count) {
  std::size_t bits = 0;
  if (__builtin_mul_overflow(static_cast<std::size_t>(count), row_of(type).packed_bits, &bits))
    fail(t, errc::overflow, dims_text(t) + " exceeds the address space");
  return bits / 8 + static_cast<std::size_t>(bits % 8 != 0);
}

inline tensor from_typed_fields(const tensor_proto& t, dtype type, std::int64_t count) {
  // Each element takes a byte of the file or more (4-bit ones half), so a tensor is not made before its data is seen.
  const auto need_chunks = [&](const tensor_proto::chunks& chunks, std::size_t least_bytes) {
    std::size_t bytes = 0;
    for (const auto chunk : chunks) bytes += chunk.size();
    if (bytes < least_bytes)
      fail(t, errc::bad_tensor_data, std::to_string(bytes) + " bytes of data are too few for " + dims_text(t));
  };
  const auto elements = static_cast<std::size_t>(count);
  const auto integers = [&]<class T>(const tensor_proto::chunks& chunks, T) {
    need_chunks(chunks, elements);
    tensor result(type, t.dims);
    constexpr bool wide = sizeof(T) == 8;
    copy_integers<T>(
        t, chunks, result.mutable_bytes(),
        wide ? std::numeric_limits<std::int64_t>::min() : static_cast<std::int64_t>(std::numeric_limits<T>::min()),
        wide ? std::numeric_limits<std::int64_t>::max() : static_cast<std::int64_t>(std::numeric_limits<T>::max()));
    return result;
  };
  const auto fixed = [&](const tensor_proto::chunks& chunks) {
    need_chunks(chunks, file_bytes(t, type, count));
    tensor result(type, t.dims);
    copy_chunks(t, chunks, result.mutable_bytes());
    return result;
  };
  switch (type) {
    case dtype::float32:
    case dtype::complex64:
      return fixed(t.float_data);
    case dtype::float64:
    case dtype::complex128:
      return fixed(t.double_data);
    case dtype::int64:
      return integers(t.int64_data, std::int64_t{});
    case dtype::uint64:
      return integers(t.uint64_data, std::uint64_t{});
    case dtype::uint32:
      return integers(t.uint64_data, std::uint32_t{});
    case dtype::int32:
      return integers(t.int32_data, std::int32_t{});
    case dtype::int16:
      return integers(t.int32_data, std::int16_t{});
    case dtype::int8:
      return integers(t.int32_data, std::int8_t{});
    case dtype::uint16:
    case dtype::float16:
    case dtype::bfloat16:
      return integers(t.int32_data, std::uint16_t{});
    case dtype::boolean: {
      need_chunks(t.int32_data, elements);
      tensor result(type, t.dims);
      copy_integers<std::uint8_t>(t, t.int32_data, result.mutable_bytes(), 0, 1);
      return result;
    }
    case dtype::uint4:
    case dtype::int4:
    case dtype::float4e2m1:
    case dtype::uint2:
    case dtype::int2: {
      const std::size_t bytes = file_bytes(t, type, count);
      need_chunks(t.int32_data, bytes);
      std::vector<std::byte> packed(bytes);
      copy_integers<std::uint8_t>(t, t.int32_data, packed, 0, 255);
      return from_raw(t, type, packed, nullptr);
    }
    default:
      return integers(t.int32_data, std::uint8_t{});
  }
}

}  // namespace detail

/// The tensor that `t` describes: a view of the file where its encoding is the storage's, else a copy.
///
/// Errors: bad_tensor_data (negative dims, unknown type, data shorter or longer than dims say, elements out of range),
/// overflow, and the external_* codes of `source.external`; each names the tensor and its position.
[[nodiscard]] inline tensor to_tensor(const tensor_proto& t, const tensor_source& source) {
  detail::check_dims(t);
  const dtype type = detail::checked_type(t);
  std::int64_t count = 0;
  try {
    count = element_count(t.dims);
  } catch (const error& e) {
    detail::fail(t, e.code(),
                 "the product of dims " + dnnopt::to_string(std::span<const std::int64_t>(t.dims)) + " leaves 64 bits");
  }
  if (t.segmented) detail::fail(t, errc::bad_tensor_data, "segmented tensors are not supported");
  if (type == dtype::string) {
    if (t.raw_data || t.external) detail::fail(t, errc::bad_tensor_data, "strings must be in string_data");
    if (t.string_data.size() != static_cast<std::size_t>(count))
      detail::fail(t, errc::bad_tensor_data,
                   std::to_string(t.string_data.size()) + " strings where " + detail::dims_text(t) + " needs " +
                       std::to_string(count));
    tensor result(type, t.dims);
    auto& out = result.mutable_strings();
    for (std::size_t i = 0; i < out.size(); ++i)
      out[i].assign(reinterpret_cast<const char*>(t.string_data[i].data()), t.string_data[i].size());
    return result;
  }
  const std::size_t bytes = detail::file_bytes(t, type, count);
  if (t.external) {
    if (source.external == nullptr)
      detail::fail(t, errc::external_data_missing, "external data, but no folder to find it in");
    auto [raw, keep] = source.external->read(t, bytes);
    return detail::from_raw(t, type, raw, std::move(keep));
  }
  if (t.raw_data) {
    if (t.raw_data->size() != bytes)
      detail::fail(t, errc::bad_tensor_data,
                   std::to_string(t.raw_data->size()) + " bytes of data where " + detail::dims_text(t) + " needs " +
                       std::to_string(bytes));
    return detail::from_raw(t, type, *t.raw_data, source.keep_alive);
  }
  return detail::from_typed_fields(t, type, count);
}

/// The dense tensor of a sparse one: zeros but for `values` at `indices` (linear [n], or coordinates [n, rank]).
/// Errors: bad_tensor_data, overflow, as to_tensor; memory_limit where the dense tensor exceeds the source's limit.
[[nodiscard]] inline tensor to_tensor(const sparse_tensor_proto& sparse, const tensor_source& source) {
  const tensor_proto& t = sparse.values;
  tensor_proto dense;
  dense.name = t.name;
  dense.dims = sparse.dims;
  dense.data_type = t.data_type;
  dense.position = t.position;
  detail::check_dims(dense);
  const dtype type = detail::checked_type(dense);
  const tensor values = to_tensor(t, source);
  const tensor indices = to_tensor(sparse.indices, source);
  const std::int64_t count = element_count(dense.dims);
  if (detail::file_bytes(dense, type, count) > source.largest_dense_bytes)
    detail::fail(dense, errc::memory_limit,
                 "the dense form " + detail::dims_text(dense) + " is larger than " +
                     std::to_string(source.largest_dense_bytes) + " bytes");
  const std::size_t rank = dense.dims.size();
  const bool coordinates = indices.rank() == 2;
  if (type == dtype::string || indices.type() != dtype::int64 || values.rank() != 1 || indices.rank() == 0 ||
      indices.rank() > 2 || indices.dims()[0] != values.size() ||
      (coordinates && static_cast<std::size_t>(indices.dims()[1]) != rank))
    detail::fail(dense, errc::bad_tensor_data, "sparse values and indices do not belong together");
  tensor result(type, dense.dims);
  const auto at = indices.data<std::int64_t>();
  const auto from = values.bytes();
  const auto to = result.mutable_bytes();
  const std::size_t width = size_of(type);
  for (std::size_t i = 0; i < static_cast<std::size_t>(values.size()); ++i) {
    std::int64_t linear = 0;
    for (std::size_t d = 0; coordinates && d < rank; ++d) {
      const std::int64_t c = at[i * rank + d];
      if (c < 0 || c >= dense.dims[d])
        detail::fail(dense, errc::bad_tensor_data, "a sparse index is out of range: " + std::to_string(c));
      linear = linear * dense.dims[d] + c;
    }
    if (!coordinates) linear = at[i];
    if (linear < 0 || linear >= count)
      detail::fail(dense, errc::bad_tensor_data, "a sparse index is out of range: " + std::to_string(linear));
    std::memcpy(to.data() + static_cast<std::size_t>(linear) * width, from.data() + i * width, width);
  }
  return result;
}

}  // namespace dnnopt::onnx

#endif  // DNNOPT_ONNX_TENSOR_PROTO_HPP

// Owns NumPy's .npy files: tensors read from and written to them.
#ifndef DNNOPT_NPY_HPP
#define DNNOPT_NPY_HPP

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include <dnnopt/dtype.hpp>
#include <dnnopt/error.hpp>
#include <dnnopt/mapped_file.hpp>
#include <dnnopt/small_float.hpp>
#include <dnnopt/tensor.hpp>

namespace dnnopt {

namespace detail {

struct npy_row {
  dtype type;
  std::string_view code;  ///< NumPy's kind and bytes per element
};
inline constexpr std::array<npy_row, 14> npy_types{{
    {dtype::float32, "f4"},
    {dtype::float64, "f8"},
    {dtype::float16, "f2"},
    {dtype::boolean, "b1"},
    {dtype::int8, "i1"},
    {dtype::int16, "i2"},
    {dtype::int32, "i4"},
    {dtype::int64, "i8"},
    {dtype::uint8, "u1"},
    {dtype::uint16, "u2"},
    {dtype::uint32, "u4"},
    {dtype::uint64, "u8"},
    {dtype::complex64, "c8"},
    {dtype::complex128, "c16"},
}};

/// The fields of the header, a Python dict literal as NumPy writes it.
class npy_header {
 public:
  npy_header(std::string_view text, std::string_view file) : text_(text), file_(file) {}

  [[nodiscard]] std::string_view description() const {
    const std::string_view value = after("descr");
    const std::size_t end = value.size() > 1 ? value.find(value[0], 1) : std::string_view::npos;
    if (value.empty() || (value[0] != '\'' && value[0] != '"') || end == std::string_view::npos)
      fail("'descr' is no plain element type");
    return value.substr(1, end - 1);
  }
  [[nodiscard]] bool fortran_order() const {
    const std::string_view value = after("fortran_order");
    if (value.starts_with("True")) return true;
    if (!value.starts_with("False")) fail("'fortran_order' is neither True nor False");
    return false;
  }
  [[nodiscard]] dim_list dims() const {
    std::string_view value = after("shape");
    if (!value.starts_with('(')) fail("'shape' is no tuple");
    value.remove_prefix(1);
    dim_list result;
    while (true) {
      while (!value.empty() && (value[0] == ' ' || value[0] == ',')) value.remove_prefix(1);
      if (value.starts_with(')')) return result;
      std::int64_t dim = 0;
      const auto [end, status] = std::from_chars(value.data(), value.data() + value.size(), dim);
      if (status != std::errc{} || dim < 0) fail("'shape' holds something else than sizes");
      result.push_back(dim);
      value.remove_prefix(static_cast<std::size_t>(end - value.data()));
    }
  }
  [[noreturn]] void fail(const std::string& why) const {
    throw error(errc::bad_file, "'" + std::string(file_) + "': " + why);
  }

 private:
  [[nodiscard]] std::string_view after(std::string_view key) const {
    for (const char quote : {'\'', '"'}) {
      const std::string quoted = quote + std::string(key) + quote;
      const std::size_t at = text_.find(quoted);
      if (at == std::string_view::npos) continue;
      std::string_view rest = text_.substr(at + quoted.size());
      while (!rest.empty() && (rest[0] == ' ' || rest[0] == ':')) rest.remove_prefix(1);
      return rest;
    }
    fail("the header has no '" + std::string(key) + "'");
  }

  std::string_view text_;
  std::string_view file_;
};

template <class T>
tensor widened(const tensor& t) {
  tensor result(dtype::float32, t.dims());
  const auto from = t.data<T>();
  const auto to = result.mutable_data<float>();
  for (std::size_t i = 0; i < from.size(); ++i) to[i] = static_cast<float>(from[i]);
  return result;
}

}  // namespace detail

/// Reads the tensor in a .npy file; C order of the host's byte order is viewed in place, other layouts are copied.
/// Errors: file_not_found, file_io; bad_file naming what the header holds or how much data is missing.
[[nodiscard]] inline tensor read_npy(const std::filesystem::path& path) {
  const auto file = mapped_file::open(path);
  const auto bytes = file->bytes();
  const std::string name = path.string();
  const detail::npy_header no_header({}, name);
  constexpr std::string_view magic = "\x93NUMPY";
  if (bytes.size() < 10 || std::memcmp(bytes.data(), magic.data(), magic.size()) != 0)
    no_header.fail("is no .npy file");
  const auto byte_at = [&](std::size_t i) { return std::to_integer<std::size_t>(bytes[i]); };
  const bool long_header = byte_at(6) >= 2;
  const std::size_t start = long_header ? 12 : 10;
  if (bytes.size() < start) no_header.fail("ends in its header");
  std::size_t length = byte_at(8) | byte_at(9) << 8;
  if (long_header) length |= byte_at(10) << 16 | byte_at(11) << 24;
  if (length > bytes.size() - start) no_header.fail("ends in its header");
  const detail::npy_header header({reinterpret_cast<const char*>(bytes.data()) + start, length}, name);

  const std::string_view code = header.description();
  const auto row = std::find_if(detail::npy_types.begin(), detail::npy_types.end(),
                                [&](const detail::npy_row& r) { return code.size() > 1 && r.code == code.substr(1); });
  if (row == detail::npy_types.end() || std::string_view("<>|=").find(code[0]) == std::string_view::npos)
    header.fail("element type '" + std::string(code) + "' is not a number of a known size");
  const dim_list dims = header.dims();
  const std::int64_t count = element_count(dims);
  const auto data = bytes.subspan(start + length);
  std::size_t needed = 0;
  if (__builtin_mul_overflow(static_cast<std::size_t>(count), size_of(row->type), &needed) || data.size() < needed)
    header.fail(std::to_string(data.size()) + " bytes of data are too few for " +
                to_string(std::span<const std::int64_t>(dims)));

  const bool swapped = code[0] == (std::endian::native == std::endian::little ? '>' : '<');
  const bool reordered = header.fortran_order() && dims.size() > 1;
  const bool aligned = reinterpret_cast<std::uintptr_t>(data.data()) % 16 == 0;
  if (!swapped && !reordered && aligned && needed != 0 && row->type != dtype::boolean)
    return tensor::view(row->type, dims, data.first(needed), file);

  tensor result(row->type, dims);
  const auto to = result.mutable_bytes();
  const std::size_t width = size_of(row->type);
  const std::size_t unit = row->type == dtype::complex64 || row->type == dtype::complex128 ? width / 2 : width;
  dim_list index(dims.size(), 0);
  for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
    std::size_t from = i;
    if (reordered) {
      std::int64_t linear = 0;
      for (std::size_t d = dims.size(); d-- > 0;) linear = linear * dims[d] + index[d];
      from = static_cast<std::size_t>(linear);
      for (std::size_t d = dims.size(); d-- > 0 && ++index[d] == dims[d];) index[d] = 0;
    }
    std::memcpy(to.data() + i * width, data.data() + from * width, width);
    if (swapped)
      for (std::size_t u = 0; u < width; u += unit)
        std::reverse(to.begin() + static_cast<std::ptrdiff_t>(i * width + u),
                     to.begin() + static_cast<std::ptrdiff_t>(i * width + u + unit));
    if (row->type == dtype::boolean) to[i] = static_cast<std::byte>(to[i] != std::byte{0});
  }
  return result;
}

/// Writes a tensor as .npy, format 1.0. Types that NumPy lacks are written as numbers that hold the same values:
/// bfloat16 and floats of 8 and 4 bits as float32, integers of 4 and 2 bits as 8-bit ones. Errors: unsupported for
/// strings, file_io where the file cannot be written.
inline void write_npy(const std::filesystem::path& path, const tensor& t) {
  switch (t.type()) {
    case dtype::bfloat16:
      return write_npy(path, detail::widened<bfloat16>(t));
    case dtype::float8e4m3fn:
      return write_npy(path, detail::widened<float8e4m3fn>(t));
    case dtype::float8e4m3fnuz:
      return write_npy(path, detail::widened<float8e4m3fnuz>(t));
    case dtype::float8e5m2:
      return write_npy(path, detail::widened<float8e5m2>(t));
    case dtype::float8e5m2fnuz:
      return write_npy(path, detail::widened<float8e5m2fnuz>(t));
    case dtype::float4e2m1:
      return write_npy(path, detail::widened<float4e2m1>(t));
    case dtype::float8e8m0:
      return write_npy(path, detail::widened<float8e8m0>(t));
    default:
      break;
  }
  const dtype type = t.type() == dtype::int4 || t.type() == dtype::int2     ? dtype::int8
                     : t.type() == dtype::uint4 || t.type() == dtype::uint2 ? dtype::uint8
                                                                            : t.type();
  const auto row = std::find_if(detail::npy_types.begin(), detail::npy_types.end(),
                                [&](const detail::npy_row& r) { return r.type == type; });
  if (row == detail::npy_types.end())
    throw error(errc::unsupported, "a " + std::string(name_of(t.type())) + " tensor cannot be written as .npy");
  std::string header = std::string("{'descr': '") + (size_of(type) == 1 ? "|" : "<") + std::string(row->code) +
                       "', 'fortran_order': False, 'shape': (";
  for (const std::int64_t dim : t.dims()) header += std::to_string(dim) + ", ";
  if (t.rank() > 1) header.resize(header.size() - 2);
  if (t.rank() == 1) header.pop_back();
  header += "), }";
  // The data starts at a multiple of 64 bytes, after a newline.
  header.append(63 - (10 + header.size()) % 64, ' ');
  header += '\n';
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  const std::array<char, 10> start{'\x93',
                                   'N',
                                   'U',
                                   'M',
                                   'P',
                                   'Y',
                                   1,
                                   0,
                                   static_cast<char>(header.size() & 0xFF),
                                   static_cast<char>(header.size() >> 8)};
  out.write(start.data(), start.size());
  out.write(header.data(), static_cast<std::streamsize>(header.size()));
  out.write(reinterpret_cast<const char*>(t.bytes().data()), static_cast<std::streamsize>(t.byte_size()));
  out.close();
  if (!out) throw error(errc::file_io, "cannot write '" + path.string() + "'");
}

}  // namespace dnnopt

#endif  // DNNOPT_NPY_HPP

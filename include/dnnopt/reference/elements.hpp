// Owns the conversion between stored tensor elements and the wide types that the reference backend computes in.
#ifndef DNNOPT_REFERENCE_ELEMENTS_HPP
#define DNNOPT_REFERENCE_ELEMENTS_HPP

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include <dnnopt/dtype.hpp>
#include <dnnopt/error.hpp>
#include <dnnopt/small_float.hpp>
#include <dnnopt/tensor.hpp>

namespace dnnopt::reference {

/// Names a type in a call.
template <class T>
struct type_tag {
  using type = T;
};

/// Calls `f(type_tag<T>)` with the C++ type that stores elements of `type`.
/// Errors: unsupported for strings and complex numbers.
template <class F>
decltype(auto) visit_type(dtype type, F&& f) {
  switch (type) {
    case dtype::float32:
      return f(type_tag<float>{});
    case dtype::float64:
      return f(type_tag<double>{});
    case dtype::float16:
      return f(type_tag<float16>{});
    case dtype::bfloat16:
      return f(type_tag<bfloat16>{});
    case dtype::int64:
      return f(type_tag<std::int64_t>{});
    case dtype::int32:
      return f(type_tag<std::int32_t>{});
    case dtype::int16:
      return f(type_tag<std::int16_t>{});
    case dtype::int8:
    case dtype::int4:
    case dtype::int2:
      return f(type_tag<std::int8_t>{});
    case dtype::uint64:
      return f(type_tag<std::uint64_t>{});
    case dtype::uint32:
      return f(type_tag<std::uint32_t>{});
    case dtype::uint16:
      return f(type_tag<std::uint16_t>{});
    case dtype::uint8:
    case dtype::uint4:
    case dtype::uint2:
      return f(type_tag<std::uint8_t>{});
    case dtype::boolean:
      return f(type_tag<bool>{});
    case dtype::float8e4m3fn:
      return f(type_tag<float8e4m3fn>{});
    case dtype::float8e4m3fnuz:
      return f(type_tag<float8e4m3fnuz>{});
    case dtype::float8e5m2:
      return f(type_tag<float8e5m2>{});
    case dtype::float8e5m2fnuz:
      return f(type_tag<float8e5m2fnuz>{});
    case dtype::float4e2m1:
      return f(type_tag<float4e2m1>{});
    case dtype::float8e8m0:
      return f(type_tag<float8e8m0>{});
    default:
      throw error(errc::unsupported, "the reference backend computes no numbers of type " + std::string(name_of(type)));
  }
}

/// The stored element as a number of type `C` (double, int64 or uint64).
template <class C, class T>
[[nodiscard]] C widen(T value) {
  if constexpr (std::is_arithmetic_v<T>)
    return static_cast<C>(value);
  else
    return static_cast<C>(static_cast<float>(value));
}

/// The number as a stored element: integers wrap, floating point rounds to nearest even. Numbers are cut to integers as
/// ONNX Runtime does on x86: through 32 bits for the narrower ones, through 64 for the others; what these cannot hold,
/// and NaN, becomes the value of all zero bits but the highest.
template <class T, class C>
[[nodiscard]] T narrow(C value) {
  if constexpr (std::is_same_v<T, bool>) {
    return value != C{0};
  } else if constexpr (std::is_integral_v<T> && std::is_floating_point_v<C>) {
    constexpr double limit = 9223372036854775808.0;
    if constexpr (sizeof(T) < 4 || std::is_same_v<T, std::int32_t>) {
      if (!(value > -2147483649.0 && value < 2147483648.0))
        return static_cast<T>(std::numeric_limits<std::int32_t>::min());
    }
    if constexpr (std::is_same_v<T, std::uint64_t>) {
      if (value >= 2 * limit) return 0;
      if (value >= limit) return static_cast<T>(value);
    }
    if (!(value >= -limit && value < limit)) return static_cast<T>(std::numeric_limits<std::int64_t>::min());
    return static_cast<T>(static_cast<std::int64_t>(value));
  } else if constexpr (std::is_arithmetic_v<T>) {
    return static_cast<T>(value);
  } else {
    return T(static_cast<float>(value));
  }
}

/// Reads `count` elements at `offset`, `offset + stride`, ... of a tensor's storage.
template <class C>
using load_function = void (*)(const std::byte* data, std::int64_t offset, std::int64_t stride, std::size_t count,
                               C* out);
/// Writes `count` elements from `offset` on.
template <class C>
using store_function = void (*)(std::byte* data, std::int64_t offset, std::size_t count, const C* in);

/// How elements of `type` are read as `C`. Errors: as visit_type.
template <class C>
[[nodiscard]] load_function<C> loader(dtype type) {
  return visit_type(type, []<class T>(type_tag<T>) -> load_function<C> {
    return [](const std::byte* data, std::int64_t offset, std::int64_t stride, std::size_t count, C* out) {
      const T* from = reinterpret_cast<const T*>(data) + offset;
      if (stride == 1)
        for (std::size_t i = 0; i < count; ++i) out[i] = widen<C>(from[i]);
      else
        for (std::size_t i = 0; i < count; ++i) out[i] = widen<C>(from[static_cast<std::int64_t>(i) * stride]);
    };
  });
}

/// How elements of `type` are written from `C`. Errors: as visit_type.
template <class C>
[[nodiscard]] store_function<C> storer(dtype type) {
  if (type == dtype::int4 || type == dtype::int2 || type == dtype::uint4 || type == dtype::uint2) {
    // Narrow integers live one per byte; their value must stay what their few bits say.
    const auto wrap = []<int Bits, bool Signed>(std::integral_constant<int, Bits>,
                                                std::bool_constant<Signed>) -> store_function<C> {
      return [](std::byte* data, std::int64_t offset, std::size_t count, const C* in) {
        auto* to = reinterpret_cast<std::uint8_t*>(data) + offset;
        for (std::size_t i = 0; i < count; ++i) {
          const unsigned low = static_cast<unsigned>(narrow<std::int64_t>(in[i])) & ((1U << Bits) - 1U);
          const bool negative = Signed && ((low >> (Bits - 1)) & 1U) != 0;
          to[i] = static_cast<std::uint8_t>(negative ? low | (0xFFU << Bits) : low);
        }
      };
    };
    using wide = std::integral_constant<int, 4>;
    using thin = std::integral_constant<int, 2>;
    if (type == dtype::int4) return wrap(wide{}, std::true_type{});
    if (type == dtype::uint4) return wrap(wide{}, std::false_type{});
    if (type == dtype::int2) return wrap(thin{}, std::true_type{});
    return wrap(thin{}, std::false_type{});
  }
  return visit_type(type, []<class T>(type_tag<T>) -> store_function<C> {
    return [](std::byte* data, std::int64_t offset, std::size_t count, const C* in) {
      T* to = reinterpret_cast<T*>(data) + offset;
      for (std::size_t i = 0; i < count; ++i) to[i] = narrow<T>(in[i]);
    };
  });
}

/// All elements as `C`, row-major. Errors: as visit_type.
template <class C>
[[nodiscard]] std::vector<C> load_all(const tensor& t) {
  std::vector<C> out(static_cast<std::size_t>(t.size()));
  loader<C>(t.type())(t.bytes().data(), 0, 1, out.size(), out.data());
  return out;
}

/// A tensor of `type` and `dims` with these elements. Precondition: as many values as dims say. Errors: as visit_type.
template <class C>
[[nodiscard]] tensor store_all(dtype type, dim_list dims, std::span<const C> values) {
  tensor out(type, std::move(dims));
  storer<C>(type)(out.mutable_bytes().data(), 0, values.size(), values.data());
  return out;
}
template <class C>
[[nodiscard]] tensor store_all(dtype type, dim_list dims, const std::vector<C>& values) {
  return store_all<C>(type, std::move(dims), std::span<const C>(values));
}

/// Input `i`, or an empty tensor where the node gives fewer inputs.
[[nodiscard]] inline const tensor& input_or_empty(std::span<const tensor> inputs, std::size_t i, const tensor& empty) {
  return i < inputs.size() ? inputs[i] : empty;
}

/// Whether input `i` is given.
[[nodiscard]] inline bool has_input(std::span<const tensor> inputs, std::size_t i) {
  return i < inputs.size() && !inputs[i].empty();
}

/// The first element of input `i` as a number, or `fallback` where the input is absent.
[[nodiscard]] inline double scalar_or(std::span<const tensor> inputs, std::size_t i, double fallback) {
  if (!has_input(inputs, i)) return fallback;
  if (inputs[i].size() < 1) throw error(errc::shape_mismatch, "a scalar input is empty");
  double value = 0;
  loader<double>(inputs[i].type())(inputs[i].bytes().data(), 0, 1, 1, &value);
  return value;
}

/// The integer at or below a real number; what lies beyond 62 bits becomes the next of these, and what is no number the
/// least.
[[nodiscard]] inline std::int64_t integer_below(double value) {
  constexpr double limit = 0x1p62;
  return static_cast<std::int64_t>(std::isnan(value) ? -limit : std::clamp(std::floor(value), -limit, limit));
}

/// scalar_or as an integer.
[[nodiscard]] inline std::int64_t integer_or(std::span<const tensor> inputs, std::size_t i, std::int64_t fallback) {
  return has_input(inputs, i) ? integer_below(scalar_or(inputs, i, 0)) : fallback;
}

}  // namespace dnnopt::reference

#endif  // DNNOPT_REFERENCE_ELEMENTS_HPP

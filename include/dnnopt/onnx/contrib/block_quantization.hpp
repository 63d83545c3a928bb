// Owns the expansions of operators whose weights are quantized in blocks, several codes to a byte.
#ifndef DNNOPT_ONNX_CONTRIB_BLOCK_QUANTIZATION_HPP
#define DNNOPT_ONNX_CONTRIB_BLOCK_QUANTIZATION_HPP

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <dnnopt/onnx/contrib/expansion.hpp>
#include <dnnopt/ops/facts.hpp>

namespace dnnopt::onnx::contrib {

/// The codes of `bits` bits that lie in each byte of rows of `row_bytes` bytes, low bits first, as one byte each: the
/// first `count` of every row. Preconditions: bits divides 8, count * bits fits a row.
inline tensor unpacked_rows(const tensor& packed, std::int64_t row_bytes, int bits, std::int64_t count) {
  const std::int64_t rows = row_bytes == 0 ? 0 : packed.size() / row_bytes;
  const std::int64_t per_byte = 8 / bits;
  const unsigned mask = (1U << bits) - 1U;
  tensor result(dtype::uint8, {rows, count});
  const auto from = packed.data<std::uint8_t>();
  const auto to = result.mutable_data<std::uint8_t>();
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t i = 0; i < count; ++i) {
      const unsigned byte = from[static_cast<std::size_t>(r * row_bytes + i / per_byte)];
      const auto shift = static_cast<unsigned>(i % per_byte * bits);
      to[static_cast<std::size_t>(r * count + i)] = static_cast<std::uint8_t>((byte >> shift) & mask);
    }
  return result;
}

/// [rows, columns] as [columns, rows].
template <class T>
[[nodiscard]] tensor transposed_matrix(const tensor& m) {
  const std::int64_t rows = m.dims()[0];
  const std::int64_t columns = m.dims()[1];
  tensor result(m.type(), {columns, rows});
  const auto from = m.data<T>();
  const auto to = result.template mutable_data<T>();
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t c = 0; c < columns; ++c)
      to[static_cast<std::size_t>(c * rows + r)] = from[static_cast<std::size_t>(r * columns + c)];
  return result;
}

/// The codes of a constant as bytes, those of a row of its last dim behind each other. Errors: unsupported where the
/// value is only known at execution.
inline tensor constant_codes(const expansion& x, value_id v, std::string_view what, std::int64_t row_bytes, int bits,
                             std::int64_t count) {
  if (!x.facts(v).is_constant()) x.refuse("'" + std::string(what) + "' that is no constant");
  const tensor& packed = x.facts(v).constant;
  if (packed.type() != dtype::uint8)
    throw error(errc::type_mismatch, std::string(what) + " is " + std::string(name_of(packed.type())));
  if (packed.dims().empty() || row_bytes < 1 || packed.size() % row_bytes != 0 || count * bits > row_bytes * 8)
    throw error(errc::shape_mismatch, std::string(what) + " of " + to_string(packed.dims()) + " holds no rows of " +
                                          std::to_string(count) + " codes of " + std::to_string(bits) + " bits");
  return unpacked_rows(packed, row_bytes, bits, count);
}

/// The product of input 0 and `w`, plus input 5 where given, in at least float32: what ONNX Runtime rounds once.
inline void give_product(expansion& x, value_id w) {
  const value_id a = x.widened(x.in(0));
  const bool narrow = a != x.in(0);
  value_id y = x.add("MatMul", {a, w}, {}, x.has(5) || narrow ? no_value : x.out(0));
  if (x.has(5)) y = x.add("Add", {y, x.widened(x.in(5))}, {}, narrow ? no_value : x.out(0));
  if (narrow) x.cast(y, x.type(x.in(0)), x.out(0));
}

/// The element type of codes of `bits` bits. Precondition: 2, 4 or 8.
[[nodiscard]] constexpr dtype type_of_codes(std::int64_t bits, bool is_signed) noexcept {
  return bits == 2   ? is_signed ? dtype::int2 : dtype::uint2
         : bits == 4 ? is_signed ? dtype::int4 : dtype::uint4
         : is_signed ? dtype::int8
                     : dtype::uint8;
}

/// Codes [rows, columns], one to a byte, as [columns, rows] of the type that has so many bits. `is_signed`: less the
/// middle code, which is what they mean where no zero points are given.
[[nodiscard]] inline tensor transposed_codes(const tensor& codes, std::int64_t bits, bool is_signed) {
  const tensor turned = transposed_matrix<std::uint8_t>(codes);
  tensor result(type_of_codes(bits, is_signed), turned.dims());
  const auto from = turned.data<std::uint8_t>();
  if (is_signed) {
    const int middle = 1 << (bits - 1);
    const auto to = result.mutable_data<std::int8_t>();
    for (std::size_t i = 0; i < from.size(); ++i) to[i] = static_cast<std::int8_t>(static_cast<int>(from[i]) - middle);
  } else {
    const auto to = result.mutable_data<std::uint8_t>();
    std::copy(from.begin(), from.end(), to.begin());
  }
  return result;
}

/// A has K columns; B holds N rows of ceil(K / block_size) blocks. The weights become codes [K, N] of an element type
/// of their bits with scales and zero points [blocks, N], so that the product is that of two matrices in their natural
/// order.
inline void expand_matmul_n_bits(expansion& x) {
  x.refuse_attribute("weight_prepacked", 0);
  x.refuse_input(4, "g_idx");
  const std::int64_t n = x.count_attribute("N");
  const std::int64_t k = x.count_attribute("K");
  const std::int64_t block = x.count_attribute("block_size");
  const std::int64_t bits = x.attributes().get_int("bits", 4);
  if (bits != 2 && bits != 4 && bits != 8) x.refuse("bits = " + std::to_string(bits));
  const std::int64_t blocks = (k + block - 1) / block;
  const std::int64_t row_bytes = blocks * (block * bits / 8);
  const tensor codes = constant_codes(x, x.in(1), "B", row_bytes, static_cast<int>(bits), k);
  if (codes.dims()[0] != n)
    throw error(errc::shape_mismatch,
                "B has " + std::to_string(codes.dims()[0]) + " rows for N = " + std::to_string(n));
  const auto per_block = [&](value_id v) { return x.transpose(x.reshape(x.widened(v), {n, blocks}), {1, 0}); };
  const value_id scales = per_block(x.in(2));
  const attribute_map along = with({{"axis", std::int64_t{0}}, {"block_size", block}});
  value_id w = no_value;
  if (x.has(3) && is_floating(x.type(x.in(3)))) {
    // Zero points between codes: both parts are scaled by themselves.
    const value_id weights = x.constant("weights", transposed_matrix<std::uint8_t>(codes));
    const value_id zeros = per_block(x.in(3));
    const auto repeated = [&](value_id v) {
      const value_id rows = x.add("Expand", {x.unsqueeze(v, {1}), x.integers({1, block, 1})});
      const value_id all = x.reshape(rows, {blocks * block, n});
      return blocks * block == k ? all : x.add("Slice", {all, x.integers({0}), x.integers({k}), x.integers({0})});
    };
    const value_id centered = x.add("Sub", {x.cast(weights, x.type(zeros)), repeated(zeros)});
    w = x.add("Mul", {centered, repeated(scales)});
  } else if (x.has(3)) {
    const value_id weights = x.constant("weights", transposed_codes(codes, bits, false));
    const tensor packed =
        constant_codes(x, x.in(3), "zero_points", (blocks * bits + 7) / 8, static_cast<int>(bits), blocks);
    w = x.add("DequantizeLinear", {weights, scales, x.constant("zero_points", transposed_codes(packed, bits, false))},
              along);
  } else {
    w = x.add("DequantizeLinear", {x.constant("weights", transposed_codes(codes, bits, true)), scales}, along);
  }
  give_product(x, w);
}

/// What the codes of MatMulBnb4 mean: eight numbers and their negatives with exponents of three bits, and sixteen
/// between which a normal distribution is alike often (https://arxiv.org/abs/2305.14314, appendix E).
inline constexpr std::array<std::array<float, 16>, 2> bnb4_numbers{
    {{0.0F, 1.0F / 192, 2.0F / 3, 1.0F, 1.0F / 3, 0.5F, 1.0F / 6, 0.25F,  //
      -0.0F, -1.0F / 192, -2.0F / 3, -1.0F, -1.0F / 3, -0.5F, -1.0F / 6, -0.25F},
     {-1.0F, -0.6961928009986877F, -0.5250730514526367F, -0.39491748809814453F, -0.28444138169288635F,
      -0.18477343022823334F, -0.09105003625154495F, 0.0F, 0.07958029955625534F, 0.16093020141124725F,
      0.24611230194568634F, 0.33791524171829224F, 0.44070982933044434F, 0.5626170039176941F, 0.7229568362236023F,
      1.0F}}};

/// B holds the codes of [N, K], flattened, high bits first; absmax the scale of each block of the flattened weights.
/// The weights become float32, for no code of integers means the same.
/// Training's other direction is refused, for ONNX Runtime does not compute there what it specifies.
inline void expand_matmul_bnb4(expansion& x) {
  x.refuse_attribute("transB", 1);
  const std::int64_t n = x.count_attribute("N");
  const std::int64_t k = x.count_attribute("K");
  const std::int64_t block = std::min(x.count_attribute("block_size"), n * k);
  const auto kind = x.attributes().require<std::int64_t>("quant_type");
  if (kind != 0 && kind != 1) x.refuse("quant_type = " + std::to_string(kind));
  const std::int64_t blocks = (n * k + block - 1) / block;
  const std::int64_t bytes = (n * k + 1) / 2;
  const tensor codes = constant_codes(x, x.in(1), "B", bytes, 4, 2 * bytes);
  if (codes.dims()[0] != 1)
    throw error(errc::shape_mismatch, "B holds no " + std::to_string(bytes) + " bytes for N * K codes");
  tensor units(dtype::float32, {blocks, block});
  const auto from = codes.data<std::uint8_t>();
  const auto to = units.mutable_data<float>();
  for (std::size_t i = 0; i < static_cast<std::size_t>(n * k); ++i)
    to[i] = bnb4_numbers[static_cast<std::size_t>(kind)][from[i ^ 1U]];
  const value_id scales = x.reshape(x.cast(x.in(2), dtype::float32), {blocks, 1});
  const value_id scaled = x.reshape(x.add("Mul", {x.constant("units", std::move(units)), scales}), {blocks * block});
  const value_id whole = blocks * block == n * k
                             ? scaled
                             : x.add("Slice", {scaled, x.integers({0}), x.integers({n * k}), x.integers({0})});
  const value_id w = x.reshape(whole, {n, k});
  give_product(x, x.transpose(w, {1, 0}));
}

/// Rows of a table are gathered as codes, with their scales and zero points, and dequantized then. An index out of
/// range is an error, where ONNX Runtime gives zeros.
inline void expand_gather_block_quantized(expansion& x) {
  const value_id data = x.in(0);
  const auto rank = static_cast<std::int64_t>(x.rank(data, "data"));
  const auto axis_of = [&](const char* name, std::int64_t fallback) {
    return static_cast<std::int64_t>(
        normalize_axis(x.attributes().get_int(name, fallback), static_cast<std::size_t>(rank)));
  };
  const std::int64_t gathered = axis_of("gather_axis", 0);
  const std::int64_t quantized = axis_of("quantize_axis", 1);
  const std::int64_t block = x.attributes().get_int("block_size", 128);
  if (block < 1) x.refuse("block_size = " + std::to_string(block));
  const dtype type = x.type(data);
  if (!is_integer(type)) x.refuse("data of type " + std::string(name_of(type)));
  const std::int64_t bits = type == dtype::uint8 ? x.attributes().get_int("bits", 4) : 8;
  if (bits != 2 && bits != 4 && bits != 8) x.refuse("bits = " + std::to_string(bits));
  const auto codes = [&](value_id v, std::string_view what, std::int64_t count) {
    if (type != dtype::uint8 || bits == 8) return v;
    const auto last = static_cast<std::size_t>(rank - 1);
    const std::int64_t row_bytes = x.fixed_dim(v, last, what);
    tensor rows = constant_codes(x, v, what, row_bytes, static_cast<int>(bits), count);
    dim_list dims = x.facts(v).constant.dims();
    dims[last] = count;
    return x.constant(what, rows.reshaped(std::move(dims)));
  };
  const auto last = static_cast<std::size_t>(rank - 1);
  const value_id table = codes(data, "data", x.fixed_dim(data, last, "data") * (8 / bits));
  value_id zeros = x.has(3) ? codes(x.in(3), "zero_points", x.fixed_dim(x.in(2), last, "scales")) : no_value;
  const auto gather = [&](value_id v, value_id indices) {
    return x.add("Gather", {v, indices}, with({{"axis", gathered}}));
  };
  if (gathered == quantized) {
    // Blocks lie along the gathered dim: each index has the scale of its own block, so that nothing is a block behind.
    const value_id index = x.cast(x.in(1), dtype::int64);
    const value_id size = x.reshape(x.dim(table, static_cast<std::size_t>(gathered)), {});
    const value_id from_end = x.add("Less", {index, x.integer(0)});
    const value_id counted = x.add("Where", {from_end, x.add("Add", {index, size}), index});
    const value_id blocks = x.add("Div", {counted, x.integer(block)});
    const value_id scale = gather(x.in(2), blocks);
    const dtype computed = x.type(scale);
    const value_id zero = zeros != no_value      ? x.cast(gather(zeros, blocks), computed)
                          : type == dtype::uint8 ? x.number(scale, 1U << (bits - 1))
                                                 : no_value;
    value_id code = x.cast(gather(table, x.in(1)), computed);
    if (zero != no_value) code = x.add("Sub", {code, zero});
    x.give(0, "Mul", {code, scale});
    return;
  }
  const auto rows = [&](value_id v) { return gather(v, x.in(1)); };
  const value_id scales = rows(x.in(2));
  if (zeros != no_value) {
    zeros = rows(zeros);
  } else if (type == dtype::uint8) {
    const value_id middle = x.constant("middle", tensor::scalar(static_cast<std::uint8_t>(1U << (bits - 1))));
    zeros = x.add("Expand", {middle, x.add("Shape", {scales})});
  }
  const auto indices = static_cast<std::int64_t>(x.rank(x.in(1), "indices"));
  const std::int64_t axis = quantized < gathered ? quantized : quantized + indices - 1;
  x.give(0, "DequantizeLinear", {rows(table), scales, zeros}, with({{"axis", axis}, {"block_size", block}}));
}

inline constexpr std::array block_quantization_rows{
    contrib_row{"com.microsoft", "GatherBlockQuantized", {3, 4}, expand_gather_block_quantized},
    contrib_row{"com.microsoft", "MatMulBnb4", {3, 3}, expand_matmul_bnb4},
    contrib_row{"com.microsoft", "MatMulNBits", {3, 6}, expand_matmul_n_bits},
};

}  // namespace dnnopt::onnx::contrib

#endif  // DNNOPT_ONNX_CONTRIB_BLOCK_QUANTIZATION_HPP

// Owns the element expression of rotary embedding.
#ifndef DNNOPT_BACKEND_CODEGEN_ELEMENTS_ROTARY_HPP
#define DNNOPT_BACKEND_CODEGEN_ELEMENTS_ROTARY_HPP

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <dnnopt/backend/codegen/elements/element_site.hpp>

namespace dnnopt::codegen {

/// RotaryEmbedding: pairs of elements turned by an angle per position.
inline std::string emit_rotary_embedding(kernel_builder& b, node_id id, std::size_t output,
                                         std::span<const index_expr> index) {
  const element_site s(b, id, output, index);
  const bool packed = s.dims(0).size() == 3;
  const std::int64_t heads = s.attributes().get_int("num_heads", 0);
  if (packed && heads < 1) throw s.refuse("num_heads is not given");
  const index_expr size = packed ? floordiv(s.dims(0)[2], heads) : s.dims(0)[3];
  const index_expr e = packed ? mod(s.index[2], size) : s.index[3];
  const index_expr position = packed ? s.index[1] : s.index[2];
  const std::int64_t stated = s.attributes().get_int("rotary_embedding_dim", 0);
  const index_expr rotated = stated == 0 ? size : index_expr(stated);
  const index_expr half = floordiv(rotated, 2);
  const bool interleaved = s.attributes().get_int("interleaved", 0) != 0;
  const std::string x = s.read(0, s.index);
  const std::string result = b.variable(s.compute(), x);
  s.when(kernel_builder::within(e, rotated), [&] {
    const std::string source = index_source(e);
    const std::int64_t high = std::max<std::int64_t>(size.range().high - 1, 0);
    const std::string second = interleaved ? source + " % 2 == 1" : source + " >= " + index_source(half);
    const index_expr pair = b.define_integer(
        "r", interleaved ? source + " / 2" : second + " ? " + source + " - " + index_source(half) + " : " + source,
        {0, std::max<std::int64_t>(half.range().high - 1, 0)});
    const std::string distance = interleaved ? std::string("1") : index_source(half);
    const index_expr other = b.define_integer(
        "r", second + " ? " + source + " - " + distance + " : " + source + " + " + distance, {0, high});
    std::vector<index_expr> at = s.index;
    if (packed)
      at[2] = floordiv(s.index[2], size) * size + other;
    else
      at[3] = other;
    const std::string partner = s.read(0, at);
    std::vector<index_expr> angle{s.index[0], position, pair};
    if (s.has(3)) angle = {s.read_index(3, std::vector<index_expr>{s.index[0], position}, s.dims(1)[0]), pair};
    const std::string cosine = s.read(1, angle);
    const std::string sine = s.read(2, angle);
    b.line(result + " = " + second + " ? " + sine + " * " + partner + " + " + cosine + " * " + x + " : " + cosine +
           " * " + x + " - " + sine + " * " + partner + ";");
  });
  return result;
}

inline constexpr std::array rotary_emitters{emitter_row{"", "RotaryEmbedding", emit_rotary_embedding}};

}  // namespace dnnopt::codegen

#endif  // DNNOPT_BACKEND_CODEGEN_ELEMENTS_ROTARY_HPP

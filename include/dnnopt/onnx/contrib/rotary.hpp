// Owns the expansions of rotary embeddings.
#ifndef DNNOPT_ONNX_CONTRIB_ROTARY_HPP
#define DNNOPT_ONNX_CONTRIB_ROTARY_HPP

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

#include <dnnopt/onnx/contrib/expansion.hpp>

namespace dnnopt::onnx::contrib {

/// Rotates `data`, [batch, position, heads * size] or [batch, head, position, size], by the rows of the caches at
/// `positions`, int64 [batch, position]. As many elements of a head are rotated as the caches have columns twice.
inline value_id add_rotation(expansion& x, value_id data, value_id positions, value_id cosines, value_id sines,
                             std::int64_t heads, std::int64_t size, bool interleaved, value_id target = no_value) {
  const std::int64_t rotated = 2 * x.fixed_dim(cosines, 1, "cos_cache");
  if (rotated > size)
    throw error(errc::shape_mismatch,
                "a cache for " + std::to_string(rotated) + " elements rotates heads of " + std::to_string(size));
  attribute_map a = with({{"interleaved", std::int64_t{interleaved ? 1 : 0}}});
  if (x.rank(data, "input") == 3) a.set("num_heads", heads);
  if (rotated != size) a.set("rotary_embedding_dim", rotated);
  return x.add("RotaryEmbedding", {data, cosines, sines, positions}, std::move(a), target);
}

/// position_ids is [1], the position of the first row, or [batch, position].
inline void expand_rotary_embedding(expansion& x) {
  x.refuse_attribute("is_packed_batching", 0);
  if (const float scale = x.attributes().get_float("scale", 1.0F); scale != 1.0F)
    x.refuse("scale = " + std::to_string(scale));
  const std::size_t rank = x.rank(x.in(0), "input");
  if (rank != 3 && rank != 4) x.refuse("an input of shape " + to_string(x.dims(x.in(0), "input")));
  const std::int64_t stated = x.attributes().get_int("rotary_embedding_dim", 0);
  std::int64_t heads = x.attributes().get_int("num_heads", 0);
  if (stated > 0 && heads < 1) throw error(errc::bad_attribute, "num_heads is needed beside rotary_embedding_dim");
  const std::int64_t last = x.fixed_dim(x.in(0), rank - 1, "input");
  const std::int64_t width = x.fixed_dim(x.in(2), 1, "cos_cache");
  std::int64_t size = last;
  if (rank == 3) {
    size = heads > 0 ? last / heads : 2 * width;
    if (size < 1 || last % size != 0)
      throw error(errc::shape_mismatch, std::to_string(last) + " elements are no heads of " + std::to_string(size));
    heads = last / size;
  }
  if (stated > 0 && stated != 2 * width)
    throw error(errc::shape_mismatch, "rotary_embedding_dim is " + std::to_string(stated) + ", cos_cache has " +
                                          std::to_string(width) + " columns");
  value_id positions = x.in(1);
  if (x.rank(positions, "position_ids") == 1) {
    const std::size_t along = rank == 3 ? 1 : 2;
    const value_id row = x.add("Add", {x.counting(x.dim(x.in(0), along)), positions});
    positions = x.add("Expand", {row, x.list({x.dim(x.in(0), 0), x.dim(x.in(0), along)})});
  }
  add_rotation(x, x.in(0), positions, x.in(2), x.in(3), heads, size, x.attributes().get_int("interleaved", 0) != 0,
               x.out(0));
}

/// q cos(emb) + q_rot sin(emb), and the same of k; emb has no dim for heads.
inline void expand_gemma_rotary_embedding(expansion& x) {
  const auto factor = [&](const char* function) {
    return x.unsqueeze(x.cast(x.add(function, {x.in(0)}), x.type(x.in(1))), {1});
  };
  const value_id cosines = factor("Cos");
  const value_id sines = factor("Sin");
  for (const std::size_t i : {std::size_t{0}, std::size_t{1}})
    x.give(i, "Add", {x.add("Mul", {x.in(1 + 2 * i), cosines}), x.add("Mul", {x.in(2 + 2 * i), sines})});
}

inline constexpr std::array rotary_rows{
    contrib_row{"com.microsoft", "GemmaRotaryEmbedding", {5, 5, 2, 2}, expand_gemma_rotary_embedding},
    contrib_row{"com.microsoft", "RotaryEmbedding", {4, 4}, expand_rotary_embedding},
};

}  // namespace dnnopt::onnx::contrib

#endif  // DNNOPT_ONNX_CONTRIB_ROTARY_HPP

// Owns constants that frames of products keep as words in their own order: codes of few bits, which are dequantized
// where they are multiplied, and reals.
#ifndef DNNOPT_BACKEND_CODEGEN_FRAMES_CODES_CODED_OPERAND_HPP
#define DNNOPT_BACKEND_CODEGEN_FRAMES_CODES_CODED_OPERAND_HPP

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <dnnopt/backend/codegen/elements/quantization.hpp>
#include <dnnopt/backend/codegen/frames/products/contraction.hpp>

namespace dnnopt::kernels {

inline constexpr std::string_view unpack_codes =
    "#ifdef __cplusplus\n"
#include <dnnopt/backend/codegen/frames/codes/unpack_codes.cl>
    "#endif\n";

}  // namespace dnnopt::kernels

namespace dnnopt::codegen {

/// A constant operand of a product, [inner][columns], that is kept in words of 32 bits: `per_word()` neighbours along
/// the inner elements of one column in each, the first in the lowest bits, and panels of neighbouring columns, in each
/// of which the words of all its columns follow each other ([panel][word][column]).
struct coded_operand {
  value_id kept = no_value;       ///< what the words hold: codes, or the operand itself
  node_id dequantizer = no_node;  ///< makes the operand of codes; no_node: reals
  int bits = 0;                   ///< of an element: 2, 4 or 8 of codes, 16 or 32 of reals
  std::int64_t middle = 0;        ///< what is added to signed codes, which makes them natural numbers
  bool has_zeros = false;         ///< of codes: zero points are given
  bool rounds = false;            ///< of codes: the model's own type of what they mean is float16
  std::int64_t block = 0;         ///< inner elements that share a scale; 0: all do

  [[nodiscard]] bool is_coded() const noexcept { return dequantizer != no_node; }
  [[nodiscard]] std::int64_t per_word() const noexcept { return 32 / bits; }
  /// The element type of the buffer that holds the words.
  [[nodiscard]] dtype stored() const noexcept {
    return is_coded() ? dtype::uint8 : bits == 16 ? dtype::float16 : dtype::float32;
  }
  /// Words of a column of `inner` elements, of which `unit` are read together. Precondition: per_word divides unit.
  [[nodiscard]] std::int64_t words(std::int64_t inner, std::int64_t unit) const noexcept {
    return round_up(inner, unit) / per_word();
  }
};

namespace detail {

/// The inner elements of `c` that share a scale of input `slot` of `n`, whose data are the second operand; 0: all;
/// nothing where none or some that are no block do.
[[nodiscard]] inline std::optional<std::int64_t> block_of_scales(const graph& g, const node& n, std::size_t slot,
                                                                 const contraction& c) {
  const value_facts& scale = g.facts(n.inputs[slot]);
  const shape& data = *g.facts(n.inputs[0]).dims;
  if (!scale.dims || !is_static(*scale.dims)) return std::nullopt;
  if (element_count(*scale.dims) == index_expr(1)) return 0;
  const std::int64_t stated = n.attributes.get_int("axis", 1);
  const auto rank = static_cast<std::int64_t>(data.size());
  if (stated >= rank || stated < -rank) return std::nullopt;
  const std::size_t axis = normalize_axis(stated, data.size());
  const bool along_inner = c.operands[1][axis] == c.inner[0];
  const std::int64_t block = n.attributes.get_int("block_size", 0);
  if (scale.dims->size() == 1 && (block <= 0 || data.size() != 1))
    return along_inner ? std::nullopt : std::optional<std::int64_t>(0);
  if (block <= 0) return std::nullopt;
  if (along_inner) return block;
  // Blocks of columns have a scale for each inner element.
  return element_count(c.extents_of(c.inner)) == index_expr(1) ? std::optional<std::int64_t>(0) : std::nullopt;
}

}  // namespace detail

/// The second operand of a framed product as words, or nothing where it is none: a constant matrix whose element is
/// that of a dequantized code of at most eight bits with scales for all, for each column, or for whole words along a
/// column; or, with `reals`, float32 or float16. The product must be of one batch.
[[nodiscard]] inline std::optional<coded_operand> coded_operand_of(const lowering_site& site, const framed_product& p,
                                                                   bool reals) {
  const graph& g = site.block.g;
  const contraction& c = p.c;
  if (!(p.e.batch == index_expr(1)) || !p.e.columns.is_constant() || !p.e.inner.is_constant()) return std::nullopt;
  if (c.inner.size() != 1 || c.columns.size() != 1 || c.operands[1].size() != 2) return std::nullopt;
  if (p.e.columns.constant() < 1 || p.e.inner.constant() < 1) return std::nullopt;
  const value_id id = p.operand(site.anchor_node(), 1);
  coded_operand made;
  if (g.facts(id).is_constant()) {
    const dtype type = g.facts(id).type;
    if (!reals || (type != dtype::float32 && type != dtype::float16) || g.facts(id).texels) return std::nullopt;
    made.kept = id;
    made.bits = type == dtype::float32 ? 32 : 16;
    return made;
  }
  const node_id producer = g.value_at(id).producer;
  if (producer == no_node || !g.node_at(producer).op->dequantizes ||
      std::find(site.block.members.begin(), site.block.members.end(), producer) == site.block.members.end())
    return std::nullopt;
  const node& n = g.node_at(producer);
  const value_facts& codes = g.facts(n.inputs[0]);
  const int bits = row_of(codes.type).packed_bits;
  if (!codes.is_constant() || !is_integer(codes.type) || bits > 8) return std::nullopt;
  const value_facts& meant = g.facts(id);
  if (meant.type != dtype::float32 && meant.type != dtype::float16) return std::nullopt;
  made.rounds = meant.type == dtype::float16 && !meant.narrowed;
  made.kept = n.inputs[0];
  made.dequantizer = producer;
  made.bits = bits;
  made.middle = kind_of(codes.type) == dtype_kind::unsigned_integer ? 0 : std::int64_t{1} << (bits - 1);
  for (const std::size_t slot : {std::size_t{1}, std::size_t{2}}) {
    if (slot >= n.inputs.size() || n.inputs[slot] == no_value) continue;
    made.has_zeros = slot == 2;
    const std::optional<std::int64_t> block = detail::block_of_scales(g, n, slot, c);
    if (!block) return std::nullopt;
    if (*block != 0) made.block = made.block == 0 ? *block : std::gcd(made.block, *block);
  }
  if (made.block % made.per_word() != 0) return std::nullopt;
  return made;
}

/// Defines dnnopt_scale(k, n) and, where zero points are given, dnnopt_zero(k, n), both as floats: those of the code of
/// inner element k in column n.
inline void define_scales(kernel_builder& b, const framed_product& p, const coded_operand& o) {
  if (!o.is_coded()) return;
  const index_expr k = b.index("k", p.e.inner);
  const index_expr column = b.index("n", p.e.columns);
  const std::vector<std::string> names{"k", "n"};
  const auto define = [&](std::string_view name, std::size_t slot) {
    b.define_function(name, compute_type::real, names, [&] {
      const std::vector<index_expr> at = p.c.operand_index(b, 1, 0, column, k);
      const element_site s(b, o.dequantizer, 0, at);
      return b.let(compute_type::real, "(float)(" + s.read(slot, scale_index(s, slot, at)) + ")");
    });
  };
  define("dnnopt_scale", 1);
  if (o.has_zeros) define("dnnopt_zero", 2);
}

/// The kernel that writes the words of an operand once into the first scratch buffer, in panels of `width` columns;
/// what lies beyond the matrix is 0. O(inner * columns).
[[nodiscard]] inline kernel_plan pack_words_kernel(const lowering_site& site, const coded_operand& o,
                                                   std::int64_t columns, std::int64_t inner, std::int64_t words,
                                                   std::int64_t width) {
  kernel_builder b(site.block, site.options.emitters);
  const std::int64_t per_word = o.per_word();
  const std::int64_t panels = blocks_of(columns, width);
  const std::int64_t each = std::max(8 / o.bits, 1);
  const index_expr count = panels * words * width * per_word / each;
  const index_expr i = b.index("i", count);
  b.begin({i});
  const element_site s(b, site.anchor, 0, {});
  const bool coded = o.is_coded();
  const std::string element = b.variable(coded ? compute_type::integer : compute_type::real, "0");
  for (std::int64_t t = 0; t < each; ++t) {
    const index_expr at = i * each + t;
    const index_expr word = floordiv(at, per_word);
    const index_expr column = mod(word, width) + floordiv(word, width * words) * width;
    const index_expr k = mod(floordiv(word, width), words) * per_word + mod(at, per_word);
    s.when(kernel_builder::within(column, columns), [&] {
      s.when(kernel_builder::within(k, inner), [&] {
        const framed_product again = product_of(b, site, true);
        const index_expr own_column = b.define_index("n", column, columns);
        const index_expr own_k = b.define_index("k", k, inner);
        const std::string read = b.emit(o.kept, again.c.operand_index(b, 1, 0, own_column, own_k));
        b.line(coded ? element + " |= (" + read + " + " + std::to_string(o.middle) + ") << " +
                           std::to_string(t * o.bits) + ";"
                     : element + " = " + read + ";");
      });
    });
  }
  const std::string buffer = b.scratch(0, o.stored(), true);
  b.line(fill_pattern(c_type_of(o.stored()).store, buffer, "i", element));
  const std::string statements = b.take();
  return b.finish_items(kernels::prelude, statements, i, count, "pack");
}

/// The bytes of the words of an operand.
[[nodiscard]] inline std::int64_t bytes_of_words(std::int64_t columns, std::int64_t words, std::int64_t width) {
  return 4 * words * round_up(columns, width);
}

/// Packs codes in panels of `width` columns, and defines dnnopt_pack_b of matrix_panels.cl, which dequantizes them.
/// Preconditions: the sizes of panels are defined, and elements are not rounded.
inline void define_unpacked_codes(lowered_node& result, kernel_builder& b, const lowering_site& site,
                                  const framed_product& p, const coded_operand& o, std::int64_t width) {
  const std::int64_t columns = p.e.columns.constant();
  const std::int64_t inner = p.e.inner.constant();
  const std::int64_t words = o.words(inner, o.per_word());
  result.scratch.push_back({bytes_of_words(columns, words, width), true});
  result.prepare.push_back(pack_words_kernel(site, o, columns, inner, words, width));
  define_scales(b, p, o);
  std::string text = "#define DNNOPT_CODES " + b.scratch(0, o.stored(), false) + "\n";
  const auto define = [&](std::string_view name, std::int64_t value) {
    text += "#define DNNOPT_CODE_" + std::string(name) + " " + std::to_string(value) + "\n";
  };
  define("BITS", o.bits);
  define("WORDS", words);
  define("BLOCK", o.block == 0 ? inner : o.block);
  define("MIDDLE", o.middle);
  define("ZEROS", o.has_zeros ? 1 : 0);
  b.add_function(text + std::string(kernels::unpack_codes));
  b.define("DNNOPT_B_CODES", 1);
}

}  // namespace dnnopt::codegen

#endif  // DNNOPT_BACKEND_CODEGEN_FRAMES_CODES_CODED_OPERAND_HPP

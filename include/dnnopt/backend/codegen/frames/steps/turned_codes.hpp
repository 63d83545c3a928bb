// Owns constant operands of products of bytes whose codes lie across the inner elements: they are turned once, so that
// lines of them are copied as they are.
#ifndef DNNOPT_BACKEND_CODEGEN_FRAMES_STEPS_TURNED_CODES_HPP
#define DNNOPT_BACKEND_CODEGEN_FRAMES_STEPS_TURNED_CODES_HPP

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include <dnnopt/backend/codegen/frames/sources.hpp>
#include <dnnopt/backend/codegen/frames/steps/step_product.hpp>

namespace dnnopt::codegen {

/// Codes that are copied at once of a line; the inner extent is a multiple of it.
inline constexpr int turned_line = 16;

/// Whether the `codes` of operand `which` are turned once: they are constant, lines of them divide into copies, and all
/// matrices of a batch share them. O(rank).
[[nodiscard]] inline bool turns_codes(kernel_builder& b, const step_operand& codes, const product_extents& e,
                                      std::size_t which) {
  const index_expr& extent = which == 0 ? e.rows : e.columns;
  if (!b.g().facts(codes.id).is_constant() || !extent.is_constant() || !e.inner.is_constant()) return false;
  if (e.inner.constant() % turned_line != 0 || e.inner.constant() == 0) return false;
  if (!fits_int((extent * e.inner).range())) return false;
  const index_expr z = b.index("z", e.batch);
  const index_expr outer = b.index(which == 0 ? "m" : "n", extent);
  const index_expr k = b.index("k", e.inner);
  bool shared = true;
  b.begin();
  const index_expr offset = b.offset_of(codes.id, codes.at(z, outer, k));
  (void)b.take();
  (void)substitute(offset, [&](const index_expr& symbol) {
    shared = shared && (symbol == outer || symbol == k);
    return symbol;
  });
  return shared;
}

/// The scratch buffer of the turned codes, (outer, inner) in rows, which a kernel of `result.prepare` fills once.
[[nodiscard]] inline std::size_t turn_codes(lowered_node& result, const lowering_site& site, std::size_t which,
                                            bool joined) {
  const std::size_t number = result.scratch.size();
  kernel_builder own(site.block, site.options.emitters);
  const step_product p = step_product_of(own, site, joined);
  const step_operand codes = whole_codes(own, p.operands[which]).value();
  const std::int64_t inner = p.extents.inner.constant();
  const std::int64_t count = (which == 0 ? p.extents.rows : p.extents.columns).constant() * inner;
  result.scratch.push_back({count, true});
  const index_expr i = own.index("i", count);
  own.begin({i});
  const std::string code = own.emit(codes.id, codes.at(0, floordiv(i, inner), mod(i, inner)));
  own.line(own.scratch(number, dtype::int8, true) + "[" + index_source(i) + "] = (char)(" + code + ");");
  const std::string statements = own.take();
  result.prepare.push_back(own.finish_items(kernels::prelude, statements, i, count, "pack"));
  return number;
}

}  // namespace dnnopt::codegen

#endif  // DNNOPT_BACKEND_CODEGEN_FRAMES_STEPS_TURNED_CODES_HPP

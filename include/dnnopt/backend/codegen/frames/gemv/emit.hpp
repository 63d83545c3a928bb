// Owns the kernels of the product of few rows with a constant matrix.
#ifndef DNNOPT_BACKEND_CODEGEN_FRAMES_GEMV_EMIT_HPP
#define DNNOPT_BACKEND_CODEGEN_FRAMES_GEMV_EMIT_HPP

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <dnnopt/backend/codegen/frames/gemv/choose.hpp>
#include <dnnopt/backend/codegen/frames/gemv/parameters.hpp>
#include <dnnopt/backend/codegen/frames/products/emit.hpp>
#include <dnnopt/backend/codegen/frames/steps/emit.hpp>

namespace dnnopt::codegen {

/// Precondition: choose_gemv made `chosen` for the site. Errors: as of what computes any number of rows.
[[nodiscard]] inline lowered_node emit_gemv(const lowering_site& site, const choice& chosen) {
  if (chosen.version == std::string_view("matrix_steps")) return emit_steps(site, chosen);
  if (chosen.version != std::string_view("gemv")) return emit_product_tiles(site, chosen);
  const node& n = site.anchor_node();
  kernel_builder b(site.block, site.options.emitters);
  const framed_product p = product_of(b, site, true);
  const coded_operand o = coded_operand_of(site, p, true).value();
  const std::int64_t columns = p.e.columns.constant();
  const std::int64_t inner = p.e.inner.constant();
  const std::int64_t words = words_of_gemv(o, inner);
  const std::int64_t width = 4 * chosen["lanes"];
  const index_expr z = b.index("z", p.e.batch);
  const index_expr m = b.index("m", p.e.rows);
  const index_expr k = b.index("k", p.e.inner);
  lowered_node result;
  result.scratch.push_back({bytes_of_words(columns, words, width), true});
  result.prepare.push_back(pack_words_kernel(site, o, columns, inner, words, width));
  b.define("DNNOPT_M", p.e.rows);
  b.define("DNNOPT_N", p.e.columns);
  b.define("DNNOPT_K", p.e.inner);
  b.define("DNNOPT_B", b.scratch(0, o.stored(), false));
  b.define("DNNOPT_WORDS", words);
  b.define("DNNOPT_BITS", o.bits);
  if (o.is_coded()) b.define("DNNOPT_MIDDLE", o.middle);
  if (o.has_zeros) b.define("DNNOPT_ZEROS", 1);
  if (o.rounds) b.define("DNNOPT_ROUND4(x)", "dnnopt_widened4(dnnopt_narrowed4(x))");
  // Sums of units are as many as rows.
  if (o.is_coded() && (o.rounds || chosen["rows"] > 2)) b.define("DNNOPT_SCALE_FIRST", 1);
  define_sizes(b, gemv_frame, chosen);
  define_scales(b, p, o);
  b.define_load("dnnopt_load_a", p.operand(n, 0), p.c.operand_index(b, 0, z, m, k), product_names_a);
  const std::vector<index_expr> at = p.c.output_index(b, z, m, b.index("n", p.e.columns));
  b.define_store("dnnopt_store", n.outputs[0], at, product_names_store, compute_type::real,
                 [&] { return finished_product(b, site, at); });
  kernel_plan plan = b.finish(kernels::prelude, gemv_frame, chosen.version);
  plan.global = {blocks_of(columns, width) * chosen["items"], ceildiv(p.e.rows, chosen["rows"]), 1};
  plan.local = {static_cast<std::size_t>(chosen["items"]), 1, 1};
  plan.flops = p.e.rows * p.e.columns * p.e.inner * 2;
  result.kernels.push_back(std::move(plan));
  return result;
}

}  // namespace dnnopt::codegen

#endif  // DNNOPT_BACKEND_CODEGEN_FRAMES_GEMV_EMIT_HPP

// Owns the sizes of the product of few rows with a constant matrix on devices whose work-items run in step.
#ifndef DNNOPT_BACKEND_CODEGEN_FRAMES_GEMV_CHOOSE_HPP
#define DNNOPT_BACKEND_CODEGEN_FRAMES_GEMV_CHOOSE_HPP

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <optional>
#include <string>
#include <utility>

#include <dnnopt/backend/codegen/choice.hpp>
#include <dnnopt/backend/codegen/frames/codes/coded_operand.hpp>
#include <dnnopt/backend/codegen/frames/products/choose.hpp>
#include <dnnopt/backend/codegen/frames/rows/plane_totals.hpp>
#include <dnnopt/backend/codegen/frames/steps/choose.hpp>

namespace dnnopt::codegen {

/// The rows up to which a product waits for its matrix and not for its sums: of codes, and of reals, of which tiles and
/// matrix steps read as many bytes in less time from a few rows on (docs/measurements/quantized_models.md).
inline constexpr std::int64_t most_gemv_rows = 8;
inline constexpr std::int64_t most_real_gemv_rows = 2;

/// Words that a work-item fetches at a time at most: 64 bytes in flight. A column is filled up to so many, whatever a
/// version fetches, so that all versions read the same words.
inline constexpr std::int64_t gemv_words_at_once = 4;
[[nodiscard]] inline std::int64_t words_of_gemv(const coded_operand& o, std::int64_t inner) {
  return o.words(inner, gemv_words_at_once * o.per_word());
}

namespace detail {

/// Why the product of a site is none of few rows with a constant matrix, whatever its extents; empty where it may be.
[[nodiscard]] inline std::string reject_gemv(const lowering_site& site) {
  if (site.prefers_vectors()) return "the device prefers wide vectors";
  if (std::string why = reject_matrix_product(site); !why.empty()) return why;
  if (row_normalization_in(site.block) != no_node) return "it normalizes no rows";
  if (plane_total_in(site.block)) return "it reduces no planes";
  for (const value_id out : site.block.outputs)
    if (site.block.g.facts(out).texels) return "'" + site.block.g.value_at(out).name + "' holds texels";
  return {};
}

/// The choice for at most `rows` rows: as many work-groups as the device has units, if columns allow it, and work-items
/// no more than inner elements keep busy.
[[nodiscard]] inline choice gemv_of_rows(const lowering_site& site, const framed_product& p, const coded_operand& o,
                                         std::int64_t rows) {
  constexpr std::int64_t most_bytes = 32768;  // of rows in local memory
  constexpr std::int64_t most_items = 512;
  const std::int64_t columns = p.e.columns.constant();
  const std::int64_t inner = p.e.inner.constant();
  const std::int64_t units = site.compute_units();
  std::int64_t unit = std::gcd(o.block, gemv_words_at_once * o.per_word());
  std::int64_t lanes = 8;
  while (lanes > 2 && blocks_of(columns, 4 * lanes) < units) lanes /= 2;
  const auto largest = static_cast<std::int64_t>(std::bit_floor(std::max<std::size_t>(site.work_group(), 1)));
  std::int64_t items = std::min(largest, blocks_of(columns, 4 * lanes) < 2 * units ? most_items : most_items / 2);
  const auto local = std::min<std::int64_t>(most_bytes, static_cast<std::int64_t>(site.local_memory()) / 2);
  const std::int64_t held = local / 4 / rows;
  // Fewer words at a time leave more work-items, which bring the rows to local memory sooner.
  const auto too_many = [&] { return items / lanes * unit > std::min(inner, held); };
  while (too_many() && unit % 8 == 0 && unit / 2 % o.per_word() == 0) unit /= 2;
  while (items > 4 * lanes && too_many()) items /= 2;
  const std::int64_t share = items / lanes * unit;
  const std::int64_t chunk = inner <= held ? round_up(inner, unit) : held / share * share;
  choice made("gemv");
  const std::int64_t at_once = std::clamp<std::int64_t>(
      static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(local / (16 * items)))), 1, rows);
  made.with("rows", rows).with("lanes", lanes).with("items", items).with("unit", unit).with("chunk", chunk);
  made.with("rows_at_once", at_once);
  made.local_bytes = static_cast<std::uint64_t>(std::max(4 * rows * chunk, 16 * items * at_once));
  made.taken.push_back({p.c.slots[1], operand_form::packed});
  made.kept_bytes = static_cast<std::uint64_t>(bytes_of_words(columns, words_of_gemv(o, inner), 4 * lanes));
  return made;
}

}  // namespace detail

/// The product of at most eight rows with a constant matrix, which is kept in words. Where the rows are symbols and the
/// matrix is in codes, versions for one row and for few of what tiles compute for any number. O(members + tiles).
[[nodiscard]] inline choice_or_reason choose_gemv(const lowering_site& site) {
  if (std::string why = detail::reject_gemv(site); !why.empty()) return why;
  kernel_builder b(site.block, site.options.emitters);
  const framed_product p = product_of(b, site, true);
  const bool fixed = p.e.rows.is_constant();
  if ((fixed ? p.e.rows.constant() : least_extent(b.translate_back(p.e.rows))) > most_gemv_rows)
    return "it has more than " + std::to_string(most_gemv_rows) + " rows";
  const std::optional<coded_operand> o = coded_operand_of(site, p, fixed);
  if (!o) return "no operand is a constant matrix in whole words";
  if (!o->is_coded() && site.packs_texels()) return "constants are packed as texels";
  if (!o->is_coded() && p.e.rows.constant() > most_real_gemv_rows)
    return "it has more than " + std::to_string(most_real_gemv_rows) + " rows";
  const auto fits = [&](const choice& made) {
    return made["chunk"] >= made["unit"] && made.local_bytes <= site.local_memory() &&
           made["items"] >= 4 * made["lanes"];
  };
  const auto rows_of = [](std::int64_t rows) {
    return static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(rows)));
  };
  if (fixed) {
    choice made = detail::gemv_of_rows(site, p, *o, rows_of(std::max<std::int64_t>(p.e.rows.constant(), 1)));
    if (!fits(made)) return "the device has no room for its rows";
    return made;
  }
  choice_or_reason any = choose_steps(site);
  if (!any) any = choose_product_tiles(site);
  if (!any) return any.reason();
  choice made = *any;
  std::vector<choice> versions;
  for (const std::int64_t rows : {std::int64_t{1}, most_gemv_rows}) {
    choice version = detail::gemv_of_rows(site, p, *o, rows);
    if (!fits(version)) return "the device has no room for its rows";
    version.guards.push_back({rows - b.translate_back(p.e.rows), "more than " + std::to_string(rows) + " rows"});
    versions.push_back(std::move(version));
  }
  made.narrower.insert(made.narrower.begin(), versions.begin(), versions.end());
  return made;
}

}  // namespace dnnopt::codegen

#endif  // DNNOPT_BACKEND_CODEGEN_FRAMES_GEMV_CHOOSE_HPP

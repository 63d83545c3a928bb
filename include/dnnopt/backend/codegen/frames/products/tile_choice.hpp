// Owns the choice of tiles: their sizes, what a product takes in them by estimate, and versions for symbolic extents.
#ifndef DNNOPT_BACKEND_CODEGEN_FRAMES_PRODUCTS_TILE_CHOICE_HPP
#define DNNOPT_BACKEND_CODEGEN_FRAMES_PRODUCTS_TILE_CHOICE_HPP

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <dnnopt/backend/codegen/choice.hpp>
#include <dnnopt/backend/codegen/frames/products/parameters.hpp>
#include <dnnopt/backend/codegen/size_cover.hpp>
#include <dnnopt/backend/codegen/texel_operands.hpp>

namespace dnnopt::codegen {

/// Sizes of matrix_tiles.cl.
struct tile_sizes {
  std::int64_t group_rows = 16;
  std::int64_t group_columns = 16;
  std::int64_t item_rows = 4;
  std::int64_t item_columns = 4;
  std::int64_t inner = 16;
  /// Share of a compute unit's arithmetic that a full unit reaches with such tiles: what an inner element costs in
  /// reads of local memory beside its multiply-adds.
  double share = 0.5;
  double filling_items = 272;    ///< work-items on a compute unit from which on waiting is hidden
  std::int64_t teams = 1;        ///< teams that share the inner elements, each of the work-items above
  std::int64_t splits = 1;       ///< work-groups that share the inner elements of one tile
  std::int64_t split_inner = 0;  ///< inner elements of each
  double cost = 0;               ///< estimated time in multiply-adds of one compute unit
  double unit_items = 0;         ///< work-items that one compute unit gets, of all its work-groups

  /// Work-items of a work-group.
  [[nodiscard]] constexpr std::int64_t items() const noexcept { return group_rows * group_columns * teams; }
  [[nodiscard]] constexpr std::int64_t rows() const noexcept { return group_rows * item_rows; }
  [[nodiscard]] constexpr std::int64_t columns() const noexcept { return group_columns * item_columns; }
  [[nodiscard]] constexpr std::int64_t local_bytes() const noexcept {
    return teams * 2 * inner * (rows() + 4 + columns() + 4) * 4;
  }
};

/// Whether tiles are the same, shared alike.
[[nodiscard]] constexpr bool are_same(const tile_sizes& a, const tile_sizes& b) noexcept {
  return a.group_rows == b.group_rows && a.group_columns == b.group_columns && a.item_rows == b.item_rows &&
         a.item_columns == b.item_columns && a.teams == b.teams && a.splits == b.splits;
}

/// The tiles that are chosen among: for fat matrices first, for thin ones last. Work-items with 64 sums have enough to
/// do between two loads that half as many of them hide waiting. Shares and filling items are fitted, with the constants
/// of choose_tiles(), to the times of 28 products and convolutions on an H200 (docs/measurements/kernels.md).
inline constexpr std::array tile_table{
    tile_sizes{16, 16, 8, 8, 8, 0.72, 144}, tile_sizes{8, 16, 8, 8, 8, 0.69, 144},
    tile_sizes{16, 8, 8, 8, 8, 0.71, 144},  tile_sizes{8, 8, 8, 8, 8, 0.57, 144},
    tile_sizes{16, 16, 4, 4, 16, 0.68},     tile_sizes{8, 8, 4, 4, 16, 0.52},
    tile_sizes{4, 16, 4, 4, 16, 0.49},      tile_sizes{16, 4, 4, 4, 16, 0.47},
    tile_sizes{4, 8, 4, 4, 16, 0.4},        tile_sizes{4, 4, 4, 4, 16, 0.3},
};
/// Work-items from which on a work-group suits devices that run them in step.
inline constexpr std::int64_t usual_items = 64;

/// The shape class of a product in tiles.
[[nodiscard]] inline std::string shape_of_tiles(const product_extents& e) {
  return shape_class("matrix_tiles", std::array{e.batch, e.rows, e.columns, e.inner});
}

/// Teams that a work-group may have: those that leave each of a work-item's four rows to one of them.
inline constexpr std::array<std::int64_t, 3> team_counts{1, 2, 4};

/// Estimates what a product takes in tiles on the device of a site. A compute unit gets its share of the arithmetic
/// once enough work-items are on it to hide waiting. Teams bring more work-items, and cost one more exchange through
/// local memory; splits of the inner elements bring more work-groups, and cost another launch and the sums' traffic.
class tile_estimate {
 public:
  tile_estimate(const device_info* device, const product_extents& e)
      : rows_(static_cast<double>(e.rows.as_constant().value_or(1024))),
        columns_(static_cast<double>(e.columns.as_constant().value_or(1024))),
        inner_(static_cast<double>(e.inner.as_constant().value_or(1024))),
        batch_(static_cast<double>(e.batch.as_constant().value_or(1))),
        fixed_(e.rows.is_constant() && e.columns.is_constant() && e.inner.is_constant() && e.batch.is_constant()) {
    if (device == nullptr) return;
    units_ = static_cast<double>(std::max<std::uint32_t>(device->compute_units, 1));
    if (device->max_work_group_size != 0) most_items_ = static_cast<std::int64_t>(device->max_work_group_size);
    if (device->local_memory_bytes != 0) local_bytes_ = static_cast<std::int64_t>(device->local_memory_bytes);
  }

  /// These tiles with the inner elements shared among teams and splits, and their cost.
  [[nodiscard]] tile_sizes shared(tile_sizes t, std::int64_t teams, std::int64_t splits) const {
    t.teams = teams;
    t.splits = splits;
    t.split_inner = round_up(static_cast<std::int64_t>(std::ceil(inner_ / static_cast<double>(splits))), t.inner);
    set_cost(t);
    return t;
  }
  /// Tiles that were chosen for another size.
  [[nodiscard]] tile_sizes again(const tile_sizes& t) const { return shared(t, t.teams, t.splits); }
  /// What the product takes in these tiles, in multiply-adds of one compute unit.
  [[nodiscard]] double cost(tile_sizes t) const {
    set_cost(t);
    return t.cost;
  }
  /// Whether the device has room for work-groups of these tiles, and suits them.
  [[nodiscard]] bool fits(const tile_sizes& t) const {
    if (t.items() > most_items_ || t.local_bytes() > local_bytes_) return false;
    const auto least = std::min<std::int64_t>(
        usual_items, static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(most_items_))));
    if (t.group_rows * t.group_columns < least) return false;
    // Kernels with the registers of these allow no more than 256 work-items on some devices.
    return t.teams == 1 || (t.item_rows == 4 && t.item_columns == 4 && t.items() <= 256);
  }
  /// Whether the inner elements, of a product with known extents, suffice for so many parts.
  [[nodiscard]] bool may_share(const tile_sizes& t, double least_inner) const {
    return t.teams * t.splits == 1 || (fixed_ && inner_ >= least_inner);
  }
  /// The tiles of least estimated time; `shares` allows splits, which take memory, and teams.
  [[nodiscard]] tile_sizes best(bool shares = true) const {
    tile_sizes found = tile_table.back();
    for (const tile_sizes& row : tile_table) {
      for (const std::int64_t teams : team_counts) {
        for (const std::int64_t splits : {1, 2, 3, 4, 6, 8, 12, 16}) {
          if (teams * splits > 1 && !shares) break;
          const tile_sizes tried = shared(row, teams, splits);
          const std::int64_t shortest = splits * std::max<std::int64_t>(64, teams * 2 * row.inner);
          if (!fits(tried) || !may_share(tried, static_cast<double>(shortest))) break;
          if (found.cost == 0 || tried.cost < found.cost) found = tried;
        }
      }
    }
    return found;
  }

 private:
  void set_cost(tile_sizes& t) const {
    // What a launch takes, what waiting for memory costs at the start of a tile, what an element of a partial sum costs
    // that is written and read again, and what teams need to add their sums.
    constexpr double launch = 830000;
    constexpr double start = 640000;
    constexpr double partial = 0.24;
    constexpr double meeting = 95000;
    const double tiles = batch_ * std::ceil(rows_ / static_cast<double>(t.rows())) *
                         std::ceil(columns_ / static_cast<double>(t.columns()));
    const auto splits = static_cast<double>(t.splits);
    const double per_unit = std::ceil(tiles * splits / units_);
    t.unit_items = per_unit * static_cast<double>(t.items());
    const double filled = std::min(1.0, t.unit_items / t.filling_items);
    t.cost = per_unit * static_cast<double>(t.rows() * t.columns()) * static_cast<double>(t.split_inner) /
                 (t.share * filled) +
             start;
    if (t.teams > 1) t.cost += meeting;
    if (t.splits > 1) t.cost += launch + partial * batch_ * rows_ * columns_ * splits;
  }

  double rows_;
  double columns_;
  double inner_;
  double batch_;
  bool fixed_;  ///< whether all extents are known
  double units_ = 16;
  std::int64_t most_items_ = 256;
  std::int64_t local_bytes_ = 16384;
};

/// The tiles that a tuning table holds for a product, or else those of least estimated time.
[[nodiscard]] inline tile_sizes choose_tiles(const lowering_site& site, const product_extents& e) {
  const tile_estimate estimate(site.options.device, e);
  if (const auto* values = site.tuned(shape_of_tiles(e)); values != nullptr) {
    const tile_sizes chosen =
        estimate.shared(tile_table.at(static_cast<std::size_t>((*values)[0])), (*values)[2], (*values)[1]);
    const bool splittable =
        chosen.splits == 1 || estimate.may_share(chosen, static_cast<double>(chosen.splits * chosen.inner));
    if (splittable && estimate.fits(chosen)) return chosen;
  }
  return estimate.best();
}

/// The direction in which a frame of tiles stores four results at once where no output holds texels: columns, as the
/// tile holds them. Singly are stored sums of splits, which have work-items of their own, and long sums of work-items
/// with many results where a unit has more of them than can be there at once: stores have no part in such a kernel's
/// time, and with vectors, whose sums must lie in registers side by side, it took 1.1 to 1.5 times as long
/// (docs/measurements/kernels.md, 2048 and 4096).
[[nodiscard]] inline store_direction direction_of_rows(const tile_sizes& t, const product_extents& e) {
  constexpr std::int64_t long_sum = 1024;
  constexpr double crowd = 384;
  const bool crowded = t.item_rows > 4 && t.unit_items > crowd && e.inner.as_constant().value_or(0) >= long_sum;
  return t.splits == 1 && !crowded && mod(e.columns, 4) == index_expr(0) ? store_direction::columns
                                                                         : store_direction::single;
}

/// The tile frame's sizes as a choice's, and back. `split_inner` is that of splits alone.
inline void settle_tiles(choice& made, const tile_sizes& t) {
  made.with("group_rows", t.group_rows).with("group_columns", t.group_columns);
  made.with("item_rows", t.item_rows).with("item_columns", t.item_columns).with("tile_inner", t.inner);
  made.with("teams", t.teams).with("splits", t.splits).with("split_inner", t.split_inner);
  made.local_bytes = static_cast<std::uint64_t>(t.local_bytes());
}
[[nodiscard]] inline tile_sizes tiles_of(const choice& chosen) {
  tile_sizes t{chosen["group_rows"], chosen["group_columns"], chosen["item_rows"], chosen["item_columns"],
               chosen["tile_inner"]};
  t.teams = chosen["teams"];
  t.splits = chosen["splits"];
  t.split_inner = chosen["split_inner"];
  return t;
}

/// What only a run tells of a product's extents, as one size.
struct symbolic_size {
  index_expr count;        ///< the extents that are no numbers, multiplied, in the graph's symbols
  std::int64_t whole = 1;  ///< that fills the device once

  /// The sizes that versions are made for: up to four times what fills the device; none where no run has one of them.
  [[nodiscard]] std::vector<std::int64_t> compared() const {
    const std::int64_t most = std::min(4 * whole, count.range().high);
    const std::int64_t least = std::max(least_extent(count), whole / 1024);
    return least > most ? std::vector<std::int64_t>() : compared_sizes(least, most);
  }
};

/// That of a product; nothing where all extents are numbers, or the inner elements are none. `outer(e)` gives an
/// expression in the graph's symbols.
template <class Outer>
[[nodiscard]] std::optional<symbolic_size> symbolic_size_of(const lowering_site& site, const product_extents& e,
                                                            Outer&& outer) {
  constexpr std::int64_t tile = 64 * 64;  // results of a work-group that suits fat matrices
  index_expr symbolic = 1;
  std::int64_t known = 1;  // the elements of a result for each of what is symbolic
  for (const index_expr& extent : {e.batch, e.rows, e.columns}) {
    if (const auto number = extent.as_constant())
      known *= std::max<std::int64_t>(*number, 1);
    else
      symbolic = symbolic * extent;
  }
  if (symbolic.is_constant() || !e.inner.is_constant()) return std::nullopt;
  return symbolic_size{outer(symbolic), std::max<std::int64_t>(site.compute_units() * tile / known, 1)};
}

/// The extents where what only a run tells is of that size.
[[nodiscard]] inline product_extents of_size(product_extents e, std::int64_t size) {
  for (index_expr* const extent : {&e.rows, &e.columns, &e.batch})
    if (!extent->is_constant()) *extent = std::exchange(size, 1);
  return e;
}

/// The tiles that are best for one of some sizes of a product, each once.
[[nodiscard]] inline std::vector<tile_sizes> tiles_of_sizes(const lowering_site& site, const product_extents& e,
                                                            std::span<const std::int64_t> sizes) {
  std::vector<tile_sizes> found;
  for (const std::int64_t size : sizes) {
    const tile_sizes best = tile_estimate(site.options.device, of_size(e, size)).best();
    if (std::none_of(found.begin(), found.end(), [&](const tile_sizes& t) { return are_same(t, best); }))
      found.push_back(best);
  }
  return found;
}

/// The guard of a version for up to so much of a symbolic size.
[[nodiscard]] inline choice_guard up_to(const symbolic_size& symbolic, std::int64_t most) {
  return {most - symbolic.count, "more than " + std::to_string(most) + " in all"};
}

/// Versions of a launch beside the general one that sizes have, and what one has to spare: a fortieth, say, of the time
/// of each of four neighbouring sizes.
inline constexpr std::size_t most_size_versions = 7;
inline constexpr double size_version_cost = 0.1;

/// The choice that `made_of(tiles)` gives for a product. Of one whose extents are symbols the choice itself is for
/// results that fill the device many times, and its sums are never split, for parts of them would take memory without
/// a bound; up to four times what fills the device, versions have the tiles of least estimated time, or nearly so
/// (cover_sizes).
template <class Outer, class Made>
[[nodiscard]] choice choice_of_tiles(const lowering_site& site, const product_extents& e, Outer&& outer,
                                     Made&& made_of) {
  const std::string tuning = shape_of_tiles(e);
  const std::optional<symbolic_size> symbolic = symbolic_size_of(site, e, outer);
  if (!symbolic || site.tuned(tuning) != nullptr) {
    choice made = made_of(choose_tiles(site, e));
    made.tuning = tuning;
    return made;
  }
  choice made = made_of(tile_estimate(site.options.device, of_size(e, 16 * symbolic->whole)).best(false));
  made.tuning = tuning;
  const std::vector<std::int64_t> sizes = symbolic->compared();
  if (sizes.empty()) return made;
  const std::vector<tile_sizes> tiles = tiles_of_sizes(site, e, sizes);
  std::vector<std::vector<double>> costs(tiles.size());
  for (const std::int64_t size : sizes) {
    const tile_estimate estimate(site.options.device, of_size(e, size));
    for (std::size_t c = 0; c < tiles.size(); ++c) costs[c].push_back(estimate.cost(tiles[c]));
  }
  for (const size_run& run : cover_sizes(sizes, costs, most_size_versions, size_version_cost)) {
    choice version = made_of(tile_estimate(site.options.device, of_size(e, run.most)).again(tiles[run.candidate]));
    version.guards.push_back(up_to(*symbolic, run.most));
    made.narrower.push_back(std::move(version));
  }
  if (made.narrower.back().sizes == made.sizes) made.narrower.pop_back();
  return made;
}

}  // namespace dnnopt::codegen

#endif  // DNNOPT_BACKEND_CODEGEN_FRAMES_PRODUCTS_TILE_CHOICE_HPP

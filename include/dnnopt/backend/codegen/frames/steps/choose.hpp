// Owns the choice of how a product runs in matrix steps: tiles, splits, and how each operand comes to local memory.
#ifndef DNNOPT_BACKEND_CODEGEN_FRAMES_STEPS_CHOOSE_HPP
#define DNNOPT_BACKEND_CODEGEN_FRAMES_STEPS_CHOOSE_HPP

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <dnnopt/backend/codegen/frames/steps/parameters.hpp>
#include <dnnopt/backend/codegen/frames/steps/step_product.hpp>

namespace dnnopt::codegen {

/// How an operand comes to local memory.
struct step_loads {
  bool inner_first = false;  ///< lines of its tile run along inner elements
  int copy = 0;              ///< halves that are copied at once; 0: elements are loaded singly
  bool bits = false;         ///< of single loads: they give the bits of halves
  bool saturates = false;    ///< of single loads: what is computed saturates as a half
  bool tested = false;       ///< of copies: some are of zeros in place of padding
};

/// The shape class of a product in steps.
[[nodiscard]] inline std::string shape_of_steps(const product_extents& e) {
  return shape_class("matrix_steps", std::array{e.batch, e.rows, e.columns, e.inner});
}

/// Tiles and splits of a product.
struct step_blocks {
  step_tile tile;
  std::int64_t splits = 1;
  std::int64_t split_inner = 0;
  double cost = 0;     ///< estimated nanoseconds; 0: nothing fits
  bool tuned = false;  ///< chosen by a tuner
};

namespace detail {

/// Extents as numbers; what is not known before execution is taken for a usual size.
struct step_extents {
  explicit step_extents(const product_extents& e)
      : m(static_cast<double>(e.rows.as_constant().value_or(1024))),
        n(static_cast<double>(e.columns.as_constant().value_or(1024))),
        k(static_cast<double>(e.inner.as_constant().value_or(1024))),
        z(static_cast<double>(e.batch.as_constant().value_or(1))),
        fixed(e.rows.is_constant() && e.columns.is_constant() && e.inner.is_constant() && e.batch.is_constant()) {}
  double m, n, k, z;
  bool fixed;
};

}  // namespace detail

/// How the slower operand comes to local memory.
enum class step_supply : std::uint8_t {
  copied,  ///< several halves at once
  texels,  ///< four at once, each with the tests and the index of an image's window
  singly,  ///< element by element
  patches  ///< element by element, each with the tests and the index of an image's window
};

/// Nanoseconds that a product takes in such blocks, estimated by what they move, multiply and wait for
/// (docs/measurements/kernels.md).
[[nodiscard]] inline double estimate_step_blocks(const lowering_site& site, const matrix_step& step,
                                                 const detail::step_extents& x, const step_blocks& b,
                                                 step_supply supply) {
  // Fitted on an H200.
  constexpr double launch = 5000;      // of another kernel, which costs the host as much
  constexpr double partial = 0.0012;   // of an element of a partial sum that is written and read again
  constexpr double per_texel = 0.075;  // of a half that comes to a unit's local memory in texels of patches,
  constexpr double per_single = 0.1;   // of elements that are loaded one by one,
  constexpr double per_patch = 0.3;    // and of those of patches
  constexpr double registers = 65536;  // of a unit, and bytes of local memory that work-groups of it share
  constexpr double shared_bytes = 200000;
  const double per_element = supply == step_supply::copied   ? step.times.half
                             : supply == step_supply::texels ? per_texel
                             : supply == step_supply::singly ? per_single
                                                             : per_patch;
  const step_tile& t = b.tile;
  const auto rows = static_cast<double>(t.rows(step));
  const auto columns = static_cast<double>(t.columns(step));
  const auto inner = static_cast<double>(t.inner);
  const auto wave_steps = static_cast<double>(t.row_steps * t.column_steps);
  const double groups = x.z * std::ceil(x.m / rows) * std::ceil(x.n / columns) * static_cast<double>(b.splits);
  const double item_registers = 48 + (step.from_tiles() ? 8 : 12) * wave_steps;
  const double resident =
      std::max(1.0, std::floor(std::min(registers / (static_cast<double>(t.items(step)) * item_registers),
                                        shared_bytes / static_cast<double>(t.local_bytes(step)))));
  const double rounds = std::max(1.0, std::ceil(groups / static_cast<double>(site.compute_units())));
  const double together = std::min(rounds, resident);
  const double tiles = std::ceil(static_cast<double>(b.split_inner) / inner);
  const double moved = (rows + columns) * inner * per_element * together;
  const double shares = static_cast<double>(t.row_steps + t.column_steps) / wave_steps;
  const double steps = rows * columns * inner / static_cast<double>(step.rows * step.columns * step.inner) *
                       (step.times.step + step.times.share * shares) * together;
  const double waited = step.times.tile + step.times.inner * inner / static_cast<double>(step.inner);
  const double behind = t.stages == 2 ? step.times.late : 0;
  double cost = std::ceil(rounds / together) * (step.times.start + tiles * (std::max({moved, steps, waited}) + behind));
  if (b.splits > 1) cost += launch + partial * x.z * x.m * x.n * static_cast<double>(b.splits);
  return cost;
}

/// The tiles of least estimated time.
[[nodiscard]] inline step_blocks choose_step_blocks(const lowering_site& site, const matrix_step& step,
                                                    const product_extents& e, step_supply supply) {
  const auto most = static_cast<std::int64_t>(site.work_group());
  const detail::step_extents x(e);
  const auto shared = [&](const step_tile& t, std::int64_t splits) {
    const auto part = static_cast<std::int64_t>(std::ceil(x.k / static_cast<double>(splits)));
    return step_blocks{t, splits, round_up(std::max<std::int64_t>(part, 1), t.inner), 0, false};
  };
  const auto fits = [&](const step_tile& t) {
    return t.from_tiles == step.from_tiles() && t.items(step) <= most &&
           t.local_bytes(step) <= static_cast<std::int64_t>(site.local_memory());
  };
  const auto splittable = [&](const step_blocks& b) {
    return b.splits == 1 || (x.fixed && x.k > static_cast<double>((b.splits - 1) * b.split_inner));
  };
  const auto estimate = [&](step_blocks& b) { b.cost = estimate_step_blocks(site, step, x, b, supply); };
  if (const auto* values = site.tuned(shape_of_steps(e)); values != nullptr) {
    step_blocks chosen = shared(step_tile_table.at(static_cast<std::size_t>((*values)[0])), (*values)[1]);
    if (fits(chosen.tile) && splittable(chosen)) {
      estimate(chosen);
      chosen.tuned = true;
      return chosen;
    }
  }
  step_blocks best;
  for (const step_tile& tile : step_tile_table)
    for (const std::int64_t splits : {1, 2, 3, 4, 6, 8, 12, 16}) {
      step_blocks tried = shared(tile, splits);
      if (!fits(tile) || !splittable(tried) || (splits > 1 && x.k < static_cast<double>(splits * 192))) break;
      estimate(tried);
      if (best.cost == 0 || tried.cost < best.cost) best = tried;
    }
  if (best.cost == 0 && !step.from_tiles() && fits(small_step_tile)) {
    best = shared(small_step_tile, 1);
    estimate(best);
  }
  return best;
}

/// How an operand of a product is loaded; `which` 0 is the first.
[[nodiscard]] inline step_loads choose_step_loads(kernel_builder& b, const step_product& p, std::size_t which) {
  const step_operand& o = p.operands[which];
  const index_expr z = b.index("z", p.extents.batch);
  const index_expr& extent = which == 0 ? p.extents.rows : p.extents.columns;
  const index_expr outer = b.index(which == 0 ? "m" : "n", extent);
  const index_expr k = b.index("k", p.extents.inner);
  const std::string name = which == 0 ? "a" : "b";
  const int along = address_of(b, o, z, outer, k, k, p.extents.inner, name + "k").width;
  const int across = along == 8 ? 1 : address_of(b, o, z, outer, k, outer, extent, name + "o").width;
  if (std::max(along, across) > 1) return {along >= across, std::max(along, across), false, false, false};
  const bool bits = b.are_stored_halves(o.id);
  // Halves that the model itself declares know infinity.
  return {o.inner_first, 0, bits, !bits && b.g().facts(o.id).type != dtype::float16, false};
}

namespace detail {

/// Why the product of a site cannot run in matrix steps; empty where it may.
[[nodiscard]] inline std::string reject_steps(const lowering_site& site) {
  const half_steps& steps = site.options.steps;
  if (steps.of_waves == nullptr && steps.of_tiles == nullptr) return "the device has no matrix steps for halves";
  if (site.prefers_vectors()) return "the device prefers wide vectors";
  const node& n = site.anchor_node();
  const bool convolution = n.op->kind == computation_kind::convolution;
  if (std::string why = convolution ? reject_convolution_tiles(site) : reject_matrix_product(site); !why.empty())
    return why;
  const bool texels = copies_texels(site);
  if (texels) {
    const shape& w = *site.input(1).dims;
    if (!is_constant_in(site.block, n.inputs[1]) || !is_static(w)) return "weights that are computed meet texels";
    if (n.attributes.get_int("group", 1) > 1 && w[1].constant() % texel_width != 0)
      return "groups begin within a texel";
    if (site.options.memory == memory_objects::images) return "weights lie in images, which are not copied from";
  }
  for (std::size_t i = texels ? 1 : 0; i < 2; ++i)
    if (std::string why = reject_operand(site.block, n.inputs[i]); !why.empty()) return why;
  if (row_normalization_in(site.block) != no_node) return "tiles do not normalize rows";
  if (plane_total_in(site.block) ||
      (convolution && (window_total_node(site) != no_node || staged_windows_in(site) != no_node)))
    return "tiles reduce and stage nothing beside the product";
  for (const value_id out : site.block.outputs)
    if (const auto& held = site.block.g.facts(out).texels; held && (!convolution || held->packed != 1))
      return "'" + site.block.g.value_at(out).name + "' holds texels";
  return {};
}

}  // namespace detail

/// How the product of a site runs in matrix steps. O(members + tiles).
[[nodiscard]] inline choice_or_reason choose_steps(const lowering_site& site) {
  if (std::string why = detail::reject_steps(site); !why.empty()) return why;
  const node& n = site.anchor_node();
  const bool convolution = n.op->kind == computation_kind::convolution;
  const bool texels = copies_texels(site);
  struct candidate {
    const matrix_step* step = nullptr;
    step_blocks blocks;
    std::array<step_loads, 2> loads;
    bool fours = false;  ///< whether results are stored four at once
    bool joined = false;
    std::string tuning;
  };
  const auto candidate_of = [&](bool joined) {
    kernel_builder b(site.block, site.options.emitters);
    const step_product p = step_product_of(b, site, joined);
    candidate made;
    if (texels)
      made.loads = {step_loads{false, texel_width, false, false, false},
                    step_loads{true, texel_width, false, false, true}};
    else
      made.loads = {choose_step_loads(b, p, 0), choose_step_loads(b, p, 1)};
    const bool copied = made.loads[0].copy > 0 && made.loads[1].copy > 0;
    const step_supply supply = texels             ? step_supply::texels
                               : copied           ? step_supply::copied
                               : p.operands[1].at ? step_supply::singly
                                                  : step_supply::patches;
    for (const matrix_step* step : {site.options.steps.of_waves, site.options.steps.of_tiles}) {
      if (step == nullptr) continue;
      const step_blocks blocks = choose_step_blocks(site, *step, p.extents, supply);
      const auto rank = [](const step_blocks& one) { return std::pair(!one.tuned, one.cost); };
      if (blocks.cost == 0 || (made.step != nullptr && rank(made.blocks) <= rank(blocks))) continue;
      made.blocks = blocks;
      made.step = step;
    }
    made.fours = mod(p.extents.columns, 4) == index_expr(0);
    made.joined = joined;
    made.tuning = shape_of_steps(p.extents);
    return made;
  };
  kernel_builder b(site.block, site.options.emitters);
  const product_extents e = step_product_of(b, site, false).extents;
  if (!fits_int((e.rows * e.columns).range()) && e.rows.is_constant() && e.columns.is_constant())
    return "the result has more elements than 32 bits count";
  candidate best = candidate_of(false);
  if (convolution && n.attributes.get_int("group", 1) == 1 && e.batch.is_constant() && e.batch.constant() > 1 &&
      e.columns.is_constant() && fits_int((e.batch * e.columns * e.rows).range())) {
    candidate joined = candidate_of(true);
    if (joined.step != nullptr && joined.blocks.cost < 0.97 * best.blocks.cost) best = std::move(joined);
  }
  if (best.step == nullptr) return "the device has no room for its tiles";
  const step_tile& t = best.blocks.tile;
  choice chosen(convolution ? "convolution_steps" : "matrix_steps");
  chosen.with("wave_rows", t.wave_rows).with("wave_columns", t.wave_columns).with("row_steps", t.row_steps);
  chosen.with("column_steps", t.column_steps).with("tile_inner", t.inner).with("stages", t.stages);
  chosen.with("splits", best.blocks.splits);
  if (best.blocks.splits > 1) chosen.with("split_inner", best.blocks.split_inner);
  const auto& [first, second] = best.loads;
  chosen.with("a_inner_first", first.inner_first ? 1 : 0).with("b_inner_first", second.inner_first ? 1 : 0);
  chosen.with("a_copy", first.copy).with("b_copy", second.copy);
  chosen.with("a_bits", first.bits ? 1 : 0).with("b_bits", second.bits ? 1 : 0);
  chosen.with("a_saturates", first.saturates ? 1 : 0).with("b_saturates", second.saturates ? 1 : 0);
  const auto inner = e.inner.as_constant();
  chosen.with("b_tested", second.tested ? 1 : 0);
  if (texels) chosen.taken = {{0, operand_form::texels}, {1, operand_form::texels}};
  chosen.with("whole_tiles", inner && *inner % t.inner == 0 ? 1 : 0);
  const bool stores_texels = std::any_of(site.block.outputs.begin(), site.block.outputs.end(),
                                         [&](value_id out) { return site.block.g.facts(out).texels.has_value(); });
  chosen.with("store_along", static_cast<std::int64_t>(stores_texels ? store_direction::rows
                                                       : best.fours  ? store_direction::columns
                                                                     : store_direction::single));
  chosen.with("joined_images", best.joined ? 1 : 0);
  chosen.with("from_tiles", t.from_tiles ? 1 : 0);
  chosen.local_bytes = static_cast<std::uint64_t>(t.local_bytes(*best.step));
  chosen.tuning = best.tuning;
  return chosen;
}

}  // namespace dnnopt::codegen

#endif  // DNNOPT_BACKEND_CODEGEN_FRAMES_STEPS_CHOOSE_HPP

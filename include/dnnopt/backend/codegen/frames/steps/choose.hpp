// Owns the choice of how a product runs in matrix steps: tiles, splits, and how each operand comes to local memory.
#ifndef DNNOPT_BACKEND_CODEGEN_FRAMES_STEPS_CHOOSE_HPP
#define DNNOPT_BACKEND_CODEGEN_FRAMES_STEPS_CHOOSE_HPP

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <dnnopt/backend/codegen/frames/steps/byte_loads.hpp>
#include <dnnopt/backend/codegen/frames/steps/parameters.hpp>
#include <dnnopt/backend/codegen/frames/steps/step_loads.hpp>
#include <dnnopt/backend/codegen/frames/steps/step_product.hpp>

namespace dnnopt::codegen {

/// The shape class of a product in steps of float16, float32 or int8.
[[nodiscard]] inline std::string shape_of_steps(const product_extents& e, dtype operands) {
  return shape_class(operands == dtype::float32 ? "float_steps"
                     : operands == dtype::int8  ? "byte_steps"
                                                : "matrix_steps",
                     std::array{e.batch, e.rows, e.columns, e.inner});
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
  codes,   ///< four codes at once, or copied
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
  constexpr double per_single = 0.1;   // and of elements that are loaded one by one
  constexpr double per_code = 0.04;    // and of codes that are loaded four at once
  constexpr double registers = 65536;  // of a unit, and bytes of local memory that work-groups of it share
  constexpr double shared_bytes = 200000;
  const double per_element = supply == step_supply::copied   ? step.times.element
                             : supply == step_supply::texels ? per_texel
                             : supply == step_supply::codes  ? per_code
                             : supply == step_supply::singly ? per_single
                                                             : step.times.patch;
  const step_tile& t = b.tile;
  const auto rows = static_cast<double>(t.rows(step));
  const auto columns = static_cast<double>(t.columns(step));
  const auto inner = static_cast<double>(t.inner);
  const auto wave_steps = static_cast<double>(t.row_steps * t.column_steps);
  const double groups = x.z * std::ceil(x.m / rows) * std::ceil(x.n / columns) * static_cast<double>(b.splits);
  const double item_registers = std::min(255.0, 48 + step.times.registers * wave_steps);
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
  const double all_tiles = tiles * (std::max({moved, steps, waited}) + behind);
  double cost = step.times.staggered ? step.times.start + rounds / together * all_tiles
                                     : std::ceil(rounds / together) * (step.times.start + all_tiles);
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
    return t.from_tiles == step.from_tiles() && t.operands == step.operands && t.items(step) <= most &&
           t.local_bytes(step) <= static_cast<std::int64_t>(site.local_memory());
  };
  const auto splittable = [&](const step_blocks& b) {
    return b.splits == 1 || (x.fixed && x.k > static_cast<double>((b.splits - 1) * b.split_inner));
  };
  const auto estimate = [&](step_blocks& b) { b.cost = estimate_step_blocks(site, step, x, b, supply); };
  if (const auto* values = site.tuned(shape_of_steps(e, step.operands)); values != nullptr) {
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
  const step_tile& small = step.operands == dtype::float32 ? small_float_tile
                           : step.operands == dtype::int8  ? small_byte_tile
                                                           : small_step_tile;
  if (best.cost == 0 && !step.from_tiles() && fits(small)) {
    best = shared(small, 1);
    estimate(best);
  }
  return best;
}

/// How an operand of a product is loaded for steps of `type`; `which` 0 is the first.
[[nodiscard]] inline step_loads choose_step_loads(kernel_builder& b, const step_product& p, std::size_t which,
                                                  dtype type) {
  const step_operand& o = p.operands[which];
  const index_expr z = b.index("z", p.extents.batch);
  const index_expr& extent = which == 0 ? p.extents.rows : p.extents.columns;
  const index_expr outer = b.index(which == 0 ? "m" : "n", extent);
  const index_expr k = b.index("k", p.extents.inner);
  const std::string name = which == 0 ? "a" : "b";
  const int widest = type == dtype::float16 ? 8 : 4;
  const int along = address_of(b, o, type, z, outer, k, k, p.extents.inner, name + "k").width;
  const int across = along == widest ? 0 : address_of(b, o, type, z, outer, k, outer, extent, name + "o").width;
  if (along != across) return {along > across, std::max(along, across), false, false, false};
  if (along > 0) return {o.inner_first, along, false, false, false};
  if (type == dtype::float16)
    if (const std::optional<step_operand> codes = whole_codes(b, o)) {
      const dtype held = b.g().facts(codes->id).type;
      for (const bool inner : {o.inner_first, !o.inner_first})
        if (address_of(b, *codes, held, z, outer, k, inner ? k : outer, inner ? p.extents.inner : extent,
                       name + (inner ? "ck" : "co"))
                .width >= 4)
          return {.inner_first = inner, .codes = 4};
    }
  if (type == dtype::float16 && has_one_zero_point(b, o)) {
    // Elements of a window at neighbouring positions share most of their index.
    if (which == 1 && !o.inner_first && mod(extent, 4) == index_expr(0)) return {.codes = 4, .gathered = true};
    return {.inner_first = o.inner_first, .codes = 1};
  }
  // Codes become the bits of halves without being rounded.
  const bool bits = type == dtype::float16 && (o.dequantizer != no_node || b.are_stored_halves(o.id));
  // Halves that the model itself declares know infinity.
  const bool saturates = type == dtype::float16 && !bits && b.g().facts(o.id).type != dtype::float16;
  return {o.inner_first, 0, bits, saturates, false};
}

namespace detail {

/// Why the product of a site cannot run in matrix steps of any type; empty where it may.
[[nodiscard]] inline std::string reject_steps(const lowering_site& site) {
  const step_providers& steps = site.options.steps;
  if (steps == step_providers{}) return "the device has no matrix steps";
  if (site.prefers_vectors()) return "the device prefers wide vectors";
  const bool convolution = site.anchor_node().op->kind == computation_kind::convolution;
  if (std::string why = convolution ? reject_convolution_tiles(site) : reject_matrix_product(site); !why.empty())
    return why;
  if (row_normalization_in(site.block) != no_node) return "tiles do not normalize rows";
  if (plane_total_in(site.block) ||
      (convolution && (window_total_node(site) != no_node || staged_windows_in(site) != no_node)))
    return "tiles reduce and stage nothing beside the product";
  for (const value_id out : site.block.outputs)
    if (const auto& held = site.block.g.facts(out).texels; held && (!convolution || held->packed != 1))
      return "'" + site.block.g.value_at(out).name + "' holds texels";
  return {};
}

/// Why its operands cannot be multiplied as halves; empty where they can.
[[nodiscard]] inline std::string reject_half_steps(const lowering_site& site) {
  const step_providers& steps = site.options.steps;
  if (steps.of_waves == nullptr && steps.of_tiles == nullptr) return "the device has no matrix steps for halves";
  const node& n = site.anchor_node();
  const bool texels = copies_texels(site);
  if (texels) {
    const shape& w = *site.input(1).dims;
    if (!is_constant_in(site.block, n.inputs[1]) || !is_static(w)) return "weights that are computed meet texels";
    if (n.attributes.get_int("group", 1) > 1 && w[1].constant() % texel_width != 0)
      return "groups begin within a texel";
    if (site.options.memory == memory_objects::images) return "weights lie in images, which are not copied from";
  }
  kernel_builder b(site.block, site.options.emitters);
  const std::array<step_operand, 2> operands = step_product_of(b, site, false).operands;
  for (std::size_t i = texels ? 1 : 0; i < 2; ++i) {
    const auto is_coded = [&](const step_operand& o) { return o.id == n.inputs[i] && o.dequantizer != no_node; };
    if (std::any_of(operands.begin(), operands.end(), is_coded)) continue;
    if (std::string why = reject_operand(site.block, n.inputs[i]); !why.empty()) return why;
  }
  return {};
}

/// The same as codes of bytes.
[[nodiscard]] inline std::string reject_byte_steps(const lowering_site& site) {
  if (site.options.steps.of_bytes == nullptr) return "the device has no matrix steps for bytes";
  kernel_builder b(site.block, site.options.emitters);
  const step_product p = step_product_of(b, site, false);
  for (const step_operand& o : p.operands)
    if (!has_one_zero_point(b, o)) return "an operand has no codes of a byte with one zero point";
  const std::optional<image_lines> lines = lines_of_image(b, site, true);
  if ((lines ? lines->inner : p.extents.inner.range().high) > most_summed_bytes)
    return "more products are summed than 32 bits hold";
  const step_operand& image = p.operands[1];
  if (image.at || lines || (site.options.steps.of_waves == nullptr && site.options.steps.of_tiles == nullptr))
    return {};
  // Patches come code by code in either type, and blocks of them by fewer work-items (docs/measurements/
  // quantized_models.md): on an H200 halves took 0.6 to 0.85 of the time in these two cases, and 1.3 of it in others.
  if (b.is_member_value(b.g().node_at(image.dequantizer).inputs[0])) return "codes of windows are quantized here";
  const auto results = (p.extents.batch * p.extents.rows * p.extents.columns).as_constant();
  constexpr std::int64_t of_a_group = std::int64_t{64} * 64;
  if (results && *results < 2 * of_a_group * static_cast<std::int64_t>(site.compute_units()))
    return "there are few results for codes that are gathered";
  return {};
}

/// The same as floats.
[[nodiscard]] inline std::string reject_float_steps(const lowering_site& site) {
  if (site.options.steps.of_floats == nullptr) return "the device has no matrix steps for floats";
  for (std::size_t i = 0; i < 2; ++i)
    if (std::string why = reject_float_operand(site.block, site.anchor_node().inputs[i]); !why.empty()) return why;
  return {};
}

/// The choice that tiles, splits and loads of a product in steps make.
[[nodiscard]] inline choice choice_of_steps(const lowering_site& site, const product_extents& e,
                                            const step_blocks& blocks, const std::array<step_loads, 2>& loads,
                                            const matrix_step& step, bool fours) {
  const step_tile& t = blocks.tile;
  choice chosen(site.anchor_node().op->kind == computation_kind::convolution ? "convolution_steps" : "matrix_steps");
  chosen.with("wave_rows", t.wave_rows).with("wave_columns", t.wave_columns).with("row_steps", t.row_steps);
  chosen.with("column_steps", t.column_steps).with("tile_inner", t.inner).with("stages", t.stages);
  chosen.with("splits", blocks.splits);
  if (blocks.splits > 1) chosen.with("split_inner", blocks.split_inner);
  const auto& [first, second] = loads;
  chosen.with("a_inner_first", first.inner_first ? 1 : 0).with("b_inner_first", second.inner_first ? 1 : 0);
  chosen.with("a_copy", first.copy).with("b_copy", second.copy);
  chosen.with("a_codes", first.codes).with("b_codes", second.codes).with("b_gathered", second.gathered ? 1 : 0);
  chosen.with("a_bits", first.bits ? 1 : 0).with("b_bits", second.bits ? 1 : 0);
  chosen.with("a_saturates", first.saturates ? 1 : 0).with("b_saturates", second.saturates ? 1 : 0);
  chosen.with("b_tested", second.tested ? 1 : 0);
  chosen.with("a_shifted", first.shifted ? 1 : 0).with("b_shifted", second.shifted ? 1 : 0);
  chosen.with("a_turned", first.turned ? 1 : 0).with("b_turned", second.turned ? 1 : 0);
  const auto inner = e.inner.as_constant();
  chosen.with("whole_tiles", inner && *inner % t.inner == 0 ? 1 : 0);
  const bool stores_texels = std::any_of(site.block.outputs.begin(), site.block.outputs.end(),
                                         [&](value_id out) { return site.block.g.facts(out).texels.has_value(); });
  chosen.with("store_along", static_cast<std::int64_t>(stores_texels ? store_direction::rows
                                                       : fours       ? store_direction::columns
                                                                     : store_direction::single));
  chosen.with("from_tiles", t.from_tiles ? 1 : 0).with("element_bytes", step.element_bytes());
  chosen.local_bytes = static_cast<std::uint64_t>(t.local_bytes(step));
  return chosen;
}

/// Nanoseconds that a product takes in tiles of floats, by the estimate that chooses them.
[[nodiscard]] inline double estimate_float_tiles(const lowering_site& site, const product_extents& e) {
  constexpr double multiply_adds = 235;  // of a compute unit in a nanosecond: an H200's, as choose_tiles is fitted to
  return choose_tiles(site, e).cost / multiply_adds;
}

/// Whether steps of floats are expected to take clearly less than tiles, both in nanoseconds: either estimate errs by a
/// tenth or more. Convolutions in steps between others in tiles made a network slower though their kernels took less,
/// so they have to save more, as measured on an H200, where the cause was not found (docs/measurements/kernels.md).
[[nodiscard]] constexpr bool steps_save_time(double in_steps, double in_tiles, bool convolution) {
  constexpr double clearly = 0.85;
  constexpr double between = 3000;
  return in_steps + (convolution ? between : 0) <= clearly * in_tiles;
}

/// Adds the versions in tiles for few results where only a run tells how many there are: the tile of steps is chosen
/// for a usual number, and fewer leave most of a device without work.
inline void add_float_tiles_for_few(const lowering_site& site, const product_extents& e, choice& chosen) {
  if (e.batch.is_constant() && e.rows.is_constant() && e.columns.is_constant()) return;
  const bool convolution = site.anchor_node().op->kind == computation_kind::convolution;
  const choice_or_reason tiles = convolution ? choose_convolution_tiles(site) : choose_product_tiles(site);
  if (tiles) chosen.narrower = tiles->narrower;
}

/// Why the product of a site runs in steps of no type; else empty, and `type` is that of the steps: bytes where both
/// operands are codes, halves where they are such, or floats.
[[nodiscard]] inline std::string reject_step_types(const lowering_site& site, dtype& type) {
  type = dtype::int8;
  if (reject_byte_steps(site).empty()) return {};
  type = dtype::float16;
  const std::string no_halves = reject_half_steps(site);
  if (no_halves.empty()) return {};
  type = dtype::float32;
  const std::string no_floats = reject_float_steps(site);
  return no_floats.empty() ? std::string() : no_halves + "; " + no_floats;
}

}  // namespace detail

/// How the product of a site runs in matrix steps: of bytes where both operands are codes, else of halves where its
/// operands are such, else of floats where those are expected to take less than tiles. O(members + tiles).
[[nodiscard]] inline choice_or_reason choose_steps(const lowering_site& site) {
  if (std::string why = detail::reject_steps(site); !why.empty()) return why;
  dtype type = dtype::undefined;
  if (std::string why = detail::reject_step_types(site, type); !why.empty()) return why;
  const bool floats = type == dtype::float32;
  const node& n = site.anchor_node();
  const bool convolution = n.op->kind == computation_kind::convolution;
  const bool texels = type == dtype::float16 && copies_texels(site);
  struct candidate {
    const matrix_step* step = nullptr;
    step_blocks blocks{};
    std::array<step_loads, 2> loads{};
    bool fours = false;  ///< whether results are stored four at once
    bool joined = false;
    std::optional<image_lines> lines{};
    double in_tiles = 0;  ///< of floats: what tiles are estimated to take
    std::string tuning{};
  };
  const auto candidate_of = [&](bool joined) {
    kernel_builder b(site.block, site.options.emitters);
    step_product p = step_product_of(b, site, joined);
    candidate made{.joined = joined};
    if (type == dtype::int8) made.lines = choose_lines(b, site, p, made.loads);
    if (made.lines)
      p.extents.inner = made.lines->inner;
    else if (texels)
      made.loads = {step_loads{false, texel_width, false, false, false},
                    step_loads{true, texel_width, false, false, true}};
    else if (type == dtype::int8)
      made.loads = {choose_byte_loads(b, p, 0), choose_byte_loads(b, p, 1)};
    else
      made.loads = {choose_step_loads(b, p, 0, type), choose_step_loads(b, p, 1, type)};
    const bool copied = made.loads[0].copy > 0 && made.loads[1].copy > 0;
    const auto several = [](const step_loads& one) { return one.copy + one.codes > 1 && !one.gathered; };
    const step_supply supply = texels                                             ? step_supply::texels
                               : copied                                           ? step_supply::copied
                               : several(made.loads[0]) && several(made.loads[1]) ? step_supply::codes
                               : p.operands[1].at                                 ? step_supply::singly
                                                                                  : step_supply::patches;
    const step_providers& known = site.options.steps;
    const std::array<const matrix_step*, 2> of_halves{known.of_waves, known.of_tiles};
    const std::array<const matrix_step*, 2> of_one{floats ? known.of_floats : known.of_bytes, nullptr};
    for (const matrix_step* step : type == dtype::float16 ? of_halves : of_one) {
      if (step == nullptr) continue;
      const step_blocks blocks = choose_step_blocks(site, *step, p.extents, supply);
      const auto rank = [](const step_blocks& one) { return std::pair(!one.tuned, one.cost); };
      if (blocks.cost == 0 || (made.step != nullptr && rank(made.blocks) <= rank(blocks))) continue;
      made.blocks = blocks;
      made.step = step;
    }
    made.fours = mod(p.extents.columns, 4) == index_expr(0);
    if (floats) made.in_tiles = detail::estimate_float_tiles(site, p.extents);
    made.tuning = shape_of_steps(p.extents, type);
    return made;
  };
  kernel_builder b(site.block, site.options.emitters);
  product_extents e = step_product_of(b, site, false).extents;
  if (!fits_int((e.rows * e.columns).range()) && e.rows.is_constant() && e.columns.is_constant())
    return "the result has more elements than 32 bits count";
  candidate best = candidate_of(false);
  double in_tiles = best.in_tiles;
  if (convolution && n.attributes.get_int("group", 1) == 1 && e.batch.is_constant() && e.batch.constant() > 1 &&
      e.columns.is_constant() && fits_int((e.batch * e.columns * e.rows).range())) {
    candidate joined = candidate_of(true);
    in_tiles = std::min(in_tiles, joined.in_tiles);
    if (joined.step != nullptr && joined.blocks.cost < 0.97 * best.blocks.cost) best = std::move(joined);
  }
  if (best.step == nullptr) return "the device has no room for its tiles";
  if (floats && !best.blocks.tuned && !is_plain(*best.step) &&
      !detail::steps_save_time(best.blocks.cost, in_tiles, convolution))
    return "tiles are not expected to take clearly longer";
  if (best.lines) e.inner = best.lines->inner;
  choice chosen = detail::choice_of_steps(site, e, best.blocks, best.loads, *best.step, best.fours);
  if (texels) chosen.taken = {{0, operand_form::texels}, {1, operand_form::texels}};
  chosen.with("joined_images", best.joined ? 1 : 0).with("image_lines", best.lines ? 1 : 0);
  chosen.tuning = best.tuning;
  if (floats) detail::add_float_tiles_for_few(site, e, chosen);
  return chosen;
}

}  // namespace dnnopt::codegen

#endif  // DNNOPT_BACKEND_CODEGEN_FRAMES_STEPS_CHOOSE_HPP

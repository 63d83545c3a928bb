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
#include <dnnopt/backend/codegen/frames/steps/step_blocks.hpp>
#include <dnnopt/backend/codegen/frames/steps/step_loads.hpp>
#include <dnnopt/backend/codegen/frames/steps/step_product.hpp>

namespace dnnopt::codegen {

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

/// The cost of tiles of floats in nanoseconds.
[[nodiscard]] constexpr double nanoseconds_of_tiles(double cost) {
  constexpr double multiply_adds = 235;  // of a compute unit in a nanosecond: an H200's, as choose_tiles is fitted to
  return cost / multiply_adds;
}

/// Nanoseconds that a product takes in tiles of floats, by the estimate that chooses them.
[[nodiscard]] inline double estimate_float_tiles(const lowering_site& site, const product_extents& e) {
  return nanoseconds_of_tiles(choose_tiles(site, e).cost);
}

/// What a device has for steps of a type; null: nothing.
[[nodiscard]] inline std::array<const matrix_step*, 2> steps_of(const lowering_site& site, dtype type) {
  const step_providers& known = site.options.steps;
  if (type == dtype::float16) return {known.of_waves, known.of_tiles};
  return {type == dtype::float32 ? known.of_floats : known.of_bytes, nullptr};
}

/// How the slower of two operands that are not texels comes to local memory.
[[nodiscard]] inline step_supply supply_of(const std::array<step_loads, 2>& loads, const step_product& p) {
  const auto several = [](const step_loads& one) { return one.copy + one.codes > 1 && !one.gathered; };
  if (loads[0].copy > 0 && loads[1].copy > 0) return step_supply::copied;
  if (several(loads[0]) && several(loads[1])) return step_supply::codes;
  return p.operands[1].at ? step_supply::singly : step_supply::patches;
}

/// What steps of floats have to take less than, in nanoseconds, beside tiles (steps_save_time).
[[nodiscard]] constexpr double time_beside_tiles(double in_steps, bool convolution) {
  constexpr double clearly = 0.85;
  constexpr double between = 3000;
  return (in_steps + (convolution ? between : 0)) / clearly;
}

/// Whether steps of floats are expected to take clearly less than tiles, both in nanoseconds: either estimate errs by a
/// tenth or more. Convolutions in steps between others in tiles made a network slower though their kernels took less,
/// so they have to save more, as measured on an H200, where the cause was not found (docs/measurements/kernels.md).
[[nodiscard]] constexpr bool steps_save_time(double in_steps, double in_tiles, bool convolution) {
  return time_beside_tiles(in_steps, convolution) <= in_tiles;
}

/// Adds versions for the sizes of what only a run tells of a product `e` (cover_sizes): in tiles of floats, in steps
/// with other blocks, or with sums that are split, each where it is expected to take the least. `in_steps(blocks)`
/// gives the choice, `blocks_of(e)` the best blocks of known extents.
template <class Outer, class Blocks, class InSteps>
void add_versions_by_size(const lowering_site& site, const product_extents& e, const matrix_step& step,
                          step_supply supply, choice& chosen, Outer&& outer, Blocks&& blocks_of, InSteps&& in_steps) {
  const std::optional<symbolic_size> symbolic = symbolic_size_of(site, e, outer);
  if (!symbolic) return;
  const std::vector<std::int64_t> sizes = symbolic->compared();
  if (sizes.empty()) return;
  const bool convolution = site.anchor_node().op->kind == computation_kind::convolution;
  const choice_or_reason tiled = convolution ? choose_convolution_tiles(site) : choose_product_tiles(site);
  const std::vector<tile_sizes> tiles = tiled ? tiles_of_sizes(site, e, sizes) : std::vector<tile_sizes>();
  std::vector<step_blocks> blocks;
  for (const std::int64_t size : sizes) {
    const step_blocks best = blocks_of(of_size(e, size));
    if (std::none_of(blocks.begin(), blocks.end(), [&](const step_blocks& one) { return are_same(one, best); }))
      blocks.push_back(best);
  }
  std::vector<std::vector<double>> costs(tiles.size() + blocks.size());
  for (const std::int64_t size : sizes) {
    const product_extents known = of_size(e, size);
    const tile_estimate estimate(site.options.device, known);
    for (std::size_t c = 0; c < tiles.size(); ++c) costs[c].push_back(nanoseconds_of_tiles(estimate.cost(tiles[c])));
    for (std::size_t c = 0; c < blocks.size(); ++c)
      costs[tiles.size() + c].push_back(
          time_beside_tiles(estimate_step_blocks(site, step, step_extents(known), blocks[c], supply), convolution));
  }
  for (const size_run& run : cover_sizes(sizes, costs, most_size_versions, size_version_cost)) {
    const auto in_tiles = [&] {
      const tile_sizes found = tile_estimate(site.options.device, of_size(e, run.most)).again(tiles[run.candidate]);
      kernel_builder b(site.block, site.options.emitters);
      return convolution ? convolution_in_tiles(tiled_convolution_of(b, site), found)
                         : product_in_tiles(site, product_of(b, site, false), found);
    };
    choice version = run.candidate < tiles.size() ? in_tiles() : in_steps(blocks[run.candidate - tiles.size()]);
    version.guards.push_back(up_to(*symbolic, run.most));
    chosen.narrower.push_back(std::move(version));
  }
  const choice& last = chosen.narrower.back();
  if (last.version == chosen.version && last.sizes == chosen.sizes) chosen.narrower.pop_back();
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
    step_supply supply = step_supply::patches;
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
    made.supply = texels ? step_supply::texels : detail::supply_of(made.loads, p);
    for (const matrix_step* step : detail::steps_of(site, type)) {
      if (step == nullptr) continue;
      const step_blocks blocks = choose_step_blocks(site, *step, p.extents, made.supply);
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
  const auto in_steps = [&](const step_blocks& blocks) {
    choice made = detail::choice_of_steps(site, e, blocks, best.loads, *best.step, best.fours);
    if (texels) made.taken = {{0, operand_form::texels}, {1, operand_form::texels}};
    made.with("joined_images", best.joined ? 1 : 0).with("image_lines", best.lines ? 1 : 0);
    return made;
  };
  choice chosen = in_steps(best.blocks);
  chosen.tuning = best.tuning;
  if (floats && !best.blocks.tuned)
    detail::add_versions_by_size(
        site, e, *best.step, best.supply, chosen, [&](const index_expr& x) { return b.translate_back(x); },
        [&](const product_extents& known) { return choose_step_blocks(site, *best.step, known, best.supply); },
        in_steps);
  return chosen;
}

}  // namespace dnnopt::codegen

#endif  // DNNOPT_BACKEND_CODEGEN_FRAMES_STEPS_CHOOSE_HPP

// Owns the tiles and splits of a product in matrix steps, and what it takes in them by estimate.
#ifndef DNNOPT_BACKEND_CODEGEN_FRAMES_STEPS_STEP_BLOCKS_HPP
#define DNNOPT_BACKEND_CODEGEN_FRAMES_STEPS_STEP_BLOCKS_HPP

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>

#include <dnnopt/backend/codegen/frames/steps/parameters.hpp>
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

/// Whether blocks have the same tile, shared alike.
[[nodiscard]] inline bool are_same(const step_blocks& a, const step_blocks& b) {
  return a.tile == b.tile && a.splits == b.splits;
}

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

}  // namespace dnnopt::codegen

#endif  // DNNOPT_BACKEND_CODEGEN_FRAMES_STEPS_STEP_BLOCKS_HPP

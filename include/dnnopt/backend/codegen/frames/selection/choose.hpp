// Owns what is decided about operators whose sizes data decide: NonZero, Compress, Unique and NonMaxSuppression.
#ifndef DNNOPT_BACKEND_CODEGEN_FRAMES_SELECTION_CHOOSE_HPP
#define DNNOPT_BACKEND_CODEGEN_FRAMES_SELECTION_CHOOSE_HPP

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>

#include <dnnopt/backend/codegen/choice.hpp>
#include <dnnopt/backend/codegen/lowering_row.hpp>
#include <dnnopt/error.hpp>

namespace dnnopt::codegen {

/// An upper bound of a count of elements before the run, over the first `leading` dims of a value, or all: dims that
/// data decide are as large as they may be. Nothing where one has no bound, or where their product exceeds 64 bits.
[[nodiscard]] inline std::optional<index_expr> bounded_count(
    const graph& g, value_id v, std::size_t leading = std::numeric_limits<std::size_t>::max()) {
  const shape& dims = *g.facts(v).dims;
  bool bounded = true;
  index_expr count = 1;
  try {
    for (const index_expr& dim : std::span(dims).first(std::min(leading, dims.size())))
      count *= substitute(dim, [&](const index_expr& symbol) {
        if (!is_decided_in_runs(symbol.kind())) return symbol;
        bounded = bounded && symbol.range().high < unbounded;
        return index_expr(bounded ? symbol.range().high : 1);
      });
  } catch (const error& failure) {
    if (failure.code() != errc::overflow) throw;
    return std::nullopt;
  }
  return bounded ? std::optional(count) : std::nullopt;
}

/// Why there is no bound of the elements of an input of the anchor, for which memory must be kept; empty where there
/// is.
[[nodiscard]] inline std::string reject_unbounded(const lowering_site& site, std::size_t input) {
  return bounded_count(site.block.g, site.anchor_node().inputs[input])
             ? std::string()
             : "dims of input " + std::to_string(input) + " depend on data and have no bound";
}

/// Why a block is not a selection alone. Precondition: the anchor is the operator of the row that asks.
[[nodiscard]] inline std::string reject_selection(const lowering_site& site) {
  const node& n = site.anchor_node();
  if (site.block.members.size() != 1) return "something is joined to the selection";
  for (std::size_t i = 0; i < n.inputs.size(); ++i)
    if (site.has_input(i) && !site.input(i).dims) return "the rank of an input is not known";
  return {};
}

[[nodiscard]] inline choice_or_reason choose_non_zero(const lowering_site& site) {
  if (std::string why = reject_selection(site); !why.empty()) return why;
  if (std::string why = reject_unbounded(site, 0); !why.empty()) return why;
  return choice("select_coordinates");
}

/// Conditions beyond the axis may not hold, which only the reference tests.
[[nodiscard]] inline choice_or_reason choose_compress(const lowering_site& site) {
  if (std::string why = reject_selection(site); !why.empty()) return why;
  const node& n = site.anchor_node();
  if (!site.input(0).dims || !site.input(1).dims || site.input(1).dims->size() != 1) return "shapes are not known";
  const shape& x = *site.input(0).dims;
  const index_expr length =
      n.attributes.contains("axis") ? x[normalize_axis(n.attributes.get_int("axis", 0), x.size())] : element_count(x);
  const index_expr& conditions = site.input(1).dims->front();
  if (std::string why = reject_unbounded(site, 1); !why.empty()) return why;
  choice made("select_slices");
  if (!(conditions == length)) made.guards.push_back({length - conditions, "there may be more conditions than slices"});
  return made;
}

/// Slices are compared with each other: work grows with their number's square, which a sort on the host does not.
inline constexpr std::int64_t most_compared_slices = 16384;

[[nodiscard]] inline choice_or_reason choose_unique(const lowering_site& site) {
  if (std::string why = reject_selection(site); !why.empty()) return why;
  if (!site.input(0).dims) return "the shape is not known";
  const node& n = site.anchor_node();
  const shape& x = *site.input(0).dims;
  const index_expr length =
      n.attributes.contains("axis") ? x[normalize_axis(n.attributes.get_int("axis", 0), x.size())] : element_count(x);
  if (length.range().high > most_compared_slices)
    return "more than " + std::to_string(most_compared_slices) + " slices are to be compared";
  if (std::string why = reject_unbounded(site, 0); !why.empty()) return why;
  return choice("unique_slices");
}

/// A processor takes the boxes of an image and class by one work-item, other devices by a work-group.
[[nodiscard]] inline choice_or_reason choose_suppression(const lowering_site& site) {
  if (std::string why = reject_selection(site); !why.empty()) return why;
  for (const std::size_t i : {std::size_t{0}, std::size_t{1}}) {
    if (!site.input(i).dims || site.input(i).dims->size() != 3) return "other than three dims";
    if (site.input(i).type != dtype::float32) return "computes in float32";
  }
  if (std::string why = reject_unbounded(site, 1); !why.empty()) return why;
  if (!bounded_count(site.block.g, site.anchor_node().inputs[1], 2)) return "pairs of image and class have no bound";
  std::size_t group = 1;
  if (site.options.device != nullptr && !site.prefers_vectors())
    group = std::bit_floor(std::clamp<std::size_t>(site.options.device->max_work_group_size, 1, 256));
  return choice("suppress_boxes").with("group", static_cast<std::int64_t>(group));
}

}  // namespace dnnopt::codegen

#endif  // DNNOPT_BACKEND_CODEGEN_FRAMES_SELECTION_CHOOSE_HPP

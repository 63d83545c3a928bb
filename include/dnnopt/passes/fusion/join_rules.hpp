// Owns the tables that decide joins beyond DNNFusion's: what may stand before an anchor, and how often it is computed.
#ifndef DNNOPT_PASSES_FUSION_JOIN_RULES_HPP
#define DNNOPT_PASSES_FUSION_JOIN_RULES_HPP

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include <dnnopt/ops/classes.hpp>

namespace dnnopt::fusion {

/// What a frame does with what stands before its anchor.
struct prologue_row {
  computation_kind kind;  ///< of the anchor
  int reads;              ///< how often a frame computes one element of an input, about
  bool stores_before;  ///< the frame passes over each element of input 0 once more at the end, and can store it there
};

/// A join pays where `reads` times the cost of one element stays at or below this. Above, the element is computed once
/// and stored.
inline constexpr int prologue_limit = 40;

/// An expression of several readers is computed by each where it costs at most this, and is made of half the elements
/// that it would store (a mask spread from positions) or stores few.
inline constexpr int inline_limit = 3;
inline constexpr std::int64_t few_elements = 4096;
inline constexpr std::size_t most_inlining_readers = 64;

inline constexpr std::array prologue_table{
    prologue_row{computation_kind::softmax, 3, true},       prologue_row{computation_kind::normalization, 3, true},
    prologue_row{computation_kind::reduction, 1, false},    prologue_row{computation_kind::pooling, 4, false},
    prologue_row{computation_kind::convolution, 10, false}, prologue_row{computation_kind::matrix_product, 10, false},
    prologue_row{computation_kind::attention, 10, false},   prologue_row{computation_kind::resampling, 4, false},
};

/// The row of an anchor's kind, or null: nothing may stand before it.
[[nodiscard]] constexpr const prologue_row* find_prologue(computation_kind kind) noexcept {
  for (const prologue_row& row : prologue_table)
    if (row.kind == kind) return &row;
  return nullptr;
}

/// A frame's result is computed again by its reader for at most so many elements each, where that was measured.
inline constexpr int most_repeats = 64;

/// Planes of at most so many elements are reduced by the work-group that computes them, where a frame divides planes.
inline constexpr std::int64_t largest_reduced_plane = 256;

/// Two products of one vector, one after the other, take at most so many multiply-accumulates together: one work-group
/// computes both.
inline constexpr std::int64_t most_chained_macs = 600000;
inline constexpr std::int64_t most_chained_rows = 4;

/// A reduction of windows before a pointwise convolution of at most so many output channels: one work-group has them
/// all, so that each reduced element is computed once.
inline constexpr std::int64_t most_staged_outputs = 512;

/// A product's result is small enough to stay in a work-group's memory up to so many elements per matrix; a work-group
/// has one matrix, so there must be some.
inline constexpr std::int64_t most_small_elements = 4096;
inline constexpr std::int64_t least_small_matrices = 4;

/// Kinds of anchors whose frames can go on with element-wise operators and store through views: each output element is
/// finished by one work-item, which knows its index.
inline constexpr std::array epilogue_kinds{
    computation_kind::convolution, computation_kind::matrix_product, computation_kind::attention,
    computation_kind::softmax,     computation_kind::normalization,  computation_kind::reduction,
    computation_kind::pooling,     computation_kind::resampling,
};

[[nodiscard]] constexpr bool takes_epilogue(computation_kind kind) noexcept {
  for (const computation_kind known : epilogue_kinds)
    if (known == kind) return true;
  return false;
}

}  // namespace dnnopt::fusion

#endif  // DNNOPT_PASSES_FUSION_JOIN_RULES_HPP

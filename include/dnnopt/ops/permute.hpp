// Owns the operators whose output is a permutation of the input's axes or of blocks of them: Transpose, DepthToSpace,
// SpaceToDepth, ReverseSequence.
#ifndef DNNOPT_OPS_PERMUTE_HPP
#define DNNOPT_OPS_PERMUTE_HPP

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dnnopt/ops/structure_transfer.hpp>

namespace dnnopt::ops {

/// Transpose's permutation: output axis k is input axis result[k]. Errors: bad_attribute where it is none of that rank.
[[nodiscard]] inline std::vector<std::size_t> permutation_of(const attribute_map& attributes, std::size_t rank) {
  if (!attributes.contains("perm")) {
    std::vector<std::size_t> reversed(rank);
    for (std::size_t k = 0; k < rank; ++k) reversed[k] = rank - 1 - k;
    return reversed;
  }
  const auto perm = attributes.get_ints("perm");
  if (perm.size() != rank)
    throw error(errc::bad_attribute,
                "Transpose: perm has " + std::to_string(perm.size()) + " axes for rank " + std::to_string(rank));
  return axes_of(perm, rank, "Transpose");
}

/// Transpose: axes in another order.
struct transpose_op {
  static constexpr std::string_view name = "Transpose";
  static constexpr int since = 25;
  static constexpr op_arity arity{1, 1};
  static constexpr mapping_type mapping = mapping_type::shuffle;
  static constexpr layout_class layout = layout_class::ild_fixed;
  static constexpr dynamism_class dynamism = dynamism_class::isdos;
  static constexpr computation_kind kind = computation_kind::view;

  static void infer(const node_facts& facts, std::span<value_facts> outputs) {
    set_type(outputs, 0, facts.type(0));
    const shape* dims = facts.dims(0);
    if (dims == nullptr) return;
    shape result;
    for (const std::size_t axis : permutation_of(*facts.attributes, dims->size())) result.push_back((*dims)[axis]);
    set_dims(outputs, 0, std::move(result));
    carry_elements(facts, outputs, &transpose_op::view);
  }
  static void infer_backward(const node_facts& facts, std::span<const value_facts> outputs,
                             std::span<value_facts> inputs) {
    if (inputs[0].type == dtype::undefined) inputs[0].type = outputs[0].type;
    if (inputs[0].dims || !outputs[0].dims) return;
    const shape& out = *outputs[0].dims;
    const auto perm = permutation_of(*facts.attributes, out.size());
    shape dims(out.size(), index_expr(0));
    for (std::size_t k = 0; k < out.size(); ++k) dims[perm[k]] = out[k];
    inputs[0].dims = std::move(dims);
  }
  static std::vector<index_expr> unview(const node_facts& facts, const shape& to, std::span<const index_expr> index) {
    const auto perm = permutation_of(*facts.attributes, to.size());
    std::vector<index_expr> target(to.size(), index_expr(0));
    for (std::size_t k = 0; k < to.size(); ++k) target[k] = index[perm[k]];
    return target;
  }
  static void view(view_builder& builder, const node_facts& facts, std::size_t, std::span<const index_expr> index) {
    const auto perm = permutation_of(*facts.attributes, index.size());
    std::vector<index_expr> source(index.size(), index_expr(0));
    for (std::size_t k = 0; k < index.size(); ++k) source[perm[k]] = index[k];
    builder.piece(0, std::move(source));
  }
};

/// The attribute `blocksize`. Errors: bad_attribute where it is not positive.
[[nodiscard]] inline std::int64_t block_size(const node_facts& facts, std::string_view op) {
  const std::int64_t block = facts.attributes->require<std::int64_t>("blocksize");
  if (block < 1) throw error(errc::bad_attribute, std::string(op) + ": blocksize is " + std::to_string(block));
  return block;
}

/// Errors: shape_mismatch for another rank than 4.
inline void check_rank_4(const shape& dims, std::string_view op) {
  if (dims.size() != 4)
    throw error(errc::shape_mismatch, std::string(op) + ": the input " + to_string(dims) + " does not have rank 4");
}

/// DepthToSpace: blocks of channels become blocks of pixels; `mode` DCR or CRD tells which of block and channel is
/// outer.
struct depth_to_space_op {
  static constexpr std::string_view name = "DepthToSpace";
  static constexpr int since = 28;
  static constexpr op_arity arity{1, 1};
  static constexpr mapping_type mapping = mapping_type::shuffle;
  static constexpr layout_class layout = layout_class::ild_fixed;
  static constexpr dynamism_class dynamism = dynamism_class::isdos;
  static constexpr computation_kind kind = computation_kind::view;

  static void infer(const node_facts& facts, std::span<value_facts> outputs) {
    set_type(outputs, 0, facts.type(0));
    const shape* dims = facts.dims(0);
    if (dims == nullptr) return;
    check_rank_4(*dims, name);
    const std::int64_t block = block_size(facts, name);
    const shape& d = *dims;
    facts.require(guard_relation::multiple, d[1], block * block, "channels and squared blocksize of DepthToSpace");
    set_dims(outputs, 0, {d[0], floordiv(d[1], block * block), d[2] * block, d[3] * block});
  }
  static void infer_backward(const node_facts& facts, std::span<const value_facts> outputs,
                             std::span<value_facts> inputs) {
    if (inputs[0].type == dtype::undefined) inputs[0].type = outputs[0].type;
    if (inputs[0].dims || !outputs[0].dims || outputs[0].dims->size() != 4) return;
    const std::int64_t block = block_size(facts, name);
    const shape& d = *outputs[0].dims;
    inputs[0].dims = shape{d[0], d[1] * (block * block), floordiv(d[2], block), floordiv(d[3], block)};
  }
  static std::vector<index_expr> unview(const node_facts& facts, const shape& to, std::span<const index_expr> index) {
    const std::int64_t block = block_size(facts, name);
    const bool block_outer = facts.attributes->get_string("mode", "DCR") == "DCR";
    const index_expr within = block_outer ? floordiv(index[1], to[1]) : mod(index[1], block * block);
    const index_expr channel = block_outer ? mod(index[1], to[1]) : floordiv(index[1], block * block);
    return {index[0], channel, index[2] * block + floordiv(within, block), index[3] * block + mod(within, block)};
  }
  static void view(view_builder& builder, const node_facts& facts, std::size_t, std::span<const index_expr> index) {
    const shape& dims = viewed_dims(facts, 0, name);
    check_rank_4(dims, name);
    const std::int64_t block = block_size(facts, name);
    const index_expr within = mod(index[2], block) * block + mod(index[3], block);
    const bool block_outer = facts.attributes->get_string("mode", "DCR") == "DCR";
    const index_expr channel =
        block_outer ? within * floordiv(dims[1], block * block) + index[1] : index[1] * (block * block) + within;
    builder.piece(0, {index[0], channel, floordiv(index[2], block), floordiv(index[3], block)});
  }
};

/// SpaceToDepth: blocks of pixels become blocks of channels; `mode` DCR or CRD tells which of block and channel is
/// outer.
struct space_to_depth_op {
  static constexpr std::string_view name = "SpaceToDepth";
  static constexpr int since = 28;
  static constexpr op_arity arity{1, 1};
  static constexpr mapping_type mapping = mapping_type::shuffle;
  static constexpr layout_class layout = layout_class::ild_fixed;
  static constexpr dynamism_class dynamism = dynamism_class::isdos;
  static constexpr computation_kind kind = computation_kind::view;

  static void infer(const node_facts& facts, std::span<value_facts> outputs) {
    set_type(outputs, 0, facts.type(0));
    const shape* dims = facts.dims(0);
    if (dims == nullptr) return;
    check_rank_4(*dims, name);
    const std::int64_t block = block_size(facts, name);
    const shape& d = *dims;
    for (const std::size_t axis : {std::size_t{2}, std::size_t{3}})
      facts.require(guard_relation::multiple, d[axis], block, "a spatial dim and blocksize of SpaceToDepth");
    set_dims(outputs, 0, {d[0], d[1] * (block * block), floordiv(d[2], block), floordiv(d[3], block)});
  }
  static void infer_backward(const node_facts& facts, std::span<const value_facts> outputs,
                             std::span<value_facts> inputs) {
    if (inputs[0].type == dtype::undefined) inputs[0].type = outputs[0].type;
    if (inputs[0].dims || !outputs[0].dims || outputs[0].dims->size() != 4) return;
    const std::int64_t block = block_size(facts, name);
    const shape& d = *outputs[0].dims;
    inputs[0].dims = shape{d[0], floordiv(d[1], block * block), d[2] * block, d[3] * block};
  }
  static std::vector<index_expr> unview(const node_facts& facts, const shape& to, std::span<const index_expr> index) {
    const std::int64_t block = block_size(facts, name);
    const bool block_outer = facts.attributes->get_string("mode", "DCR") == "DCR";
    const index_expr within = mod(index[2], block) * block + mod(index[3], block);
    const index_expr channel =
        block_outer ? within * floordiv(to[1], block * block) + index[1] : index[1] * (block * block) + within;
    return {index[0], channel, floordiv(index[2], block), floordiv(index[3], block)};
  }
  static void view(view_builder& builder, const node_facts& facts, std::size_t, std::span<const index_expr> index) {
    const shape& dims = viewed_dims(facts, 0, name);
    check_rank_4(dims, name);
    const std::int64_t block = block_size(facts, name);
    const bool block_outer = facts.attributes->get_string("mode", "DCR") == "DCR";
    const index_expr within = block_outer ? floordiv(index[1], dims[1]) : mod(index[1], block * block);
    const index_expr channel = block_outer ? mod(index[1], dims[1]) : floordiv(index[1], block * block);
    builder.piece(
        0, {index[0], channel, index[2] * block + floordiv(within, block), index[3] * block + mod(within, block)});
  }
};

/// ReverseSequence: the first sequence_lens[b] elements along `time_axis` in reverse order, per element of
/// `batch_axis`.
struct reverse_sequence_op {
  static constexpr std::string_view name = "ReverseSequence";
  static constexpr int since = 28;
  static constexpr op_arity arity{2, 2};
  static constexpr mapping_type mapping = mapping_type::shuffle;
  static constexpr layout_class layout = layout_class::ild_fixed;
  static constexpr dynamism_class dynamism = dynamism_class::isdos;
  static constexpr computation_kind kind = computation_kind::indexed_read;

  // The lengths are read as indices, so their pair is as complex as a gather's.
  static mapping_type mapping_of(const node_facts&, std::size_t input, std::size_t) {
    return input == 0 ? mapping : mapping_type::one_to_many;
  }
  static void infer(const node_facts& facts, std::span<value_facts> outputs) {
    set_type(outputs, 0, facts.type(0));
    const shape* dims = facts.dims(0);
    if (dims == nullptr) return;
    if (dims->size() < 2)
      throw error(errc::shape_mismatch, "ReverseSequence: the input " + to_string(*dims) + " has rank below 2");
    const std::size_t batch = axis_of(facts.attributes->get_int("batch_axis", 1), dims->size(), name);
    if (const shape* lengths = facts.dims(1); lengths != nullptr && lengths->size() == 1)
      facts.require(guard_relation::equal, lengths->front(), (*dims)[batch], "lengths and batch of ReverseSequence");
    set_dims(outputs, 0, *dims);
  }
  static void infer_backward(const node_facts&, std::span<const value_facts> outputs, std::span<value_facts> inputs) {
    if (inputs[0].type == dtype::undefined) inputs[0].type = outputs[0].type;
    if (!inputs[0].dims) inputs[0].dims = outputs[0].dims;
  }
  static void view(view_builder& builder, const node_facts& facts, std::size_t, std::span<const index_expr> index) {
    const shape& dims = viewed_dims(facts, 0, name);
    const std::size_t time = axis_of(facts.attributes->get_int("time_axis", 0), dims.size(), name);
    const std::size_t batch = axis_of(facts.attributes->get_int("batch_axis", 1), dims.size(), name);
    const index_expr length =
        min(builder.load(1, std::span<const index_expr>(&index[batch], 1), {0, dims[time].range().high}), dims[time]);
    std::vector<index_expr> reversed(index.begin(), index.end());
    reversed[time] = length - 1 - index[time];
    builder.piece(0, std::move(reversed), {{index[time], 0, length}});
    builder.piece(0, {index.begin(), index.end()});
  }
};

}  // namespace dnnopt::ops

#endif  // DNNOPT_OPS_PERMUTE_HPP

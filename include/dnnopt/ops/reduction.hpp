// Owns the traits of ONNX's reductions (ReduceSum, ArgMax, ...), and the axes that a reduction names.
#ifndef DNNOPT_OPS_REDUCTION_HPP
#define DNNOPT_OPS_REDUCTION_HPP

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include <dnnopt/ops/element_wise.hpp>

namespace dnnopt::ops {

/// Which dims a reduction folds, one flag per dim. `axes` empty or absent means all of them, or none with
/// `noop_with_empty_axes`. Errors: invalid_argument for an axis outside the rank.
[[nodiscard]] inline std::vector<bool> reduced_dims(const std::optional<std::vector<std::int64_t>>& axes,
                                                    std::size_t rank, bool noop_with_empty_axes) {
  if (!axes || axes->empty()) return std::vector<bool>(rank, !noop_with_empty_axes);
  std::vector<bool> reduced(rank, false);
  for (const std::int64_t axis : *axes) reduced[normalize_axis(axis, rank)] = true;
  return reduced;
}

/// The dims left after reduction, with ones where `keepdims`.
[[nodiscard]] inline shape reduced_shape(const shape& dims, const std::vector<bool>& reduced, bool keepdims) {
  shape result;
  for (std::size_t i = 0; i < dims.size(); ++i) {
    if (!reduced[i])
      result.push_back(dims[i]);
    else if (keepdims)
      result.emplace_back(1);
  }
  return result;
}

/// The axes that input 1 of a reduction names as numbers; empty where it is absent; nothing where it is not known yet.
/// Errors: bad_attribute where an attribute names them, as it did up to opset 17 (the importer makes an input of it
/// there).
[[nodiscard]] inline std::optional<std::vector<std::int64_t>> axes_of(const node_facts& facts) {
  if (facts.attributes->contains("axes"))
    throw error(errc::bad_attribute, "axes of a reduction are its input 1, not an attribute, in this opset");
  if (!facts.has(1)) return std::vector<std::int64_t>{};
  return facts.integers(1);
}

/// Sets the shape of a reduction whose axes may come from an input.
inline void infer_reduced_shape(const node_facts& facts, value_facts& output) {
  const shape* dims = facts.dims(0);
  if (dims == nullptr) return;
  const bool keepdims = facts.attributes->get_int("keepdims", 1) != 0;
  const bool noop = facts.attributes->get_int("noop_with_empty_axes", 0) != 0;
  if (const auto axes = axes_of(facts)) {
    output.dims = reduced_shape(*dims, reduced_dims(axes, dims->size(), noop), keepdims);
    return;
  }
  // Axes that only execution tells: the rank may be known still, the dims are not.
  std::optional<std::size_t> rank;
  if (keepdims) rank = dims->size();
  if (const shape* axes_dims = facts.dims(1); !keepdims && axes_dims != nullptr && axes_dims->size() == 1)
    if (const auto count = (*axes_dims)[0].as_constant();
        count && *count > 0 && *count <= static_cast<std::int64_t>(dims->size()))
      rank = dims->size() - static_cast<std::size_t>(*count);
  if (!rank) return;
  shape result;
  for (std::size_t i = 0; i < *rank; ++i) result.push_back(facts.data_dim(0, i));
  output.dims = std::move(result);
}

/// Folds known integer elements of input 0 over the reduced dims with `Op::fold(a, b)`.
template <class Op>
void infer_reduced_elements(const node_facts& facts, value_facts& output) {
  const shape* dims = facts.dims(0);
  const auto elements = facts.elements(0);
  const auto axes = axes_of(facts);
  if (dims == nullptr || !elements || elements->empty() || !axes || !output.dims) return;
  const auto extents = static_dims(*dims);
  const auto result_dims = static_dims(*output.dims);
  if (!extents || !result_dims) return;
  const std::vector<bool> reduced =
      reduced_dims(axes, extents->size(), facts.attributes->get_int("noop_with_empty_axes", 0) != 0);
  std::vector<std::optional<index_expr>> totals(static_cast<std::size_t>(element_count(*result_dims)));
  try {
    for (std::size_t flat = 0; flat < elements->size(); ++flat) {
      std::size_t rest = flat;
      std::size_t slot = 0;
      std::size_t stride = 1;
      for (std::size_t axis = extents->size(); axis-- > 0;) {
        const auto extent = static_cast<std::size_t>((*extents)[axis]);
        if (!reduced[axis]) slot += rest % extent * stride, stride *= extent;
        rest /= extent;
      }
      totals[slot] = totals[slot] ? Op::fold(*totals[slot], (*elements)[flat]) : (*elements)[flat];
    }
  } catch (const error& e) {
    if (e.code() != errc::overflow) throw;
    return;
  }
  std::vector<index_expr> result;
  for (const auto& total : totals) result.push_back(total.value());
  output.elements = std::move(result);
}

/// Classes of operators that fold dims of input 0; axes are input 1 or absent.
template <class Op>
struct reduction {
  static constexpr op_arity arity{1, 2};
  static constexpr input_set structural_inputs{1};
  static constexpr mapping_type mapping = mapping_type::many_to_many;
  static constexpr layout_class layout = layout_class::ild_variable;
  static constexpr dynamism_class dynamism = dynamism_class::isdos;
  static constexpr computation_kind kind = computation_kind::reduction;

  /// Axes that are computed make the output shape depend on them (SoD2 Table 2 knows axes as an attribute only).
  static dynamism_class dynamism_of(const node_facts& facts) {
    return axes_of(facts) ? dynamism_class::isdos : dynamism_class::isvdos;
  }
  static void infer(const node_facts& facts, std::span<value_facts> outputs) {
    outputs[0].type = facts.type(0);
    infer_reduced_shape(facts, outputs[0]);
    if constexpr (requires(index_expr a) { Op::fold(a, a); })
      if (is_integer(outputs[0].type)) infer_reduced_elements<Op>(facts, outputs[0]);
  }
};

struct reduce_l1_op : reduction<reduce_l1_op> {
  static constexpr std::string_view name = "ReduceL1";
  static constexpr int since = 18;
};
struct reduce_l2_op : reduction<reduce_l2_op> {
  static constexpr std::string_view name = "ReduceL2";
  static constexpr int since = 18;
};
struct reduce_log_sum_op : reduction<reduce_log_sum_op> {
  static constexpr std::string_view name = "ReduceLogSum";
  static constexpr int since = 28;
};
struct reduce_log_sum_exp_op : reduction<reduce_log_sum_exp_op> {
  static constexpr std::string_view name = "ReduceLogSumExp";
  static constexpr int since = 28;
};
struct reduce_max_op : reduction<reduce_max_op> {
  static constexpr std::string_view name = "ReduceMax";
  static constexpr int since = 20;
  static index_expr fold(const index_expr& a, const index_expr& b) { return dnnopt::max(a, b); }
};
struct reduce_mean_op : reduction<reduce_mean_op> {
  static constexpr std::string_view name = "ReduceMean";
  static constexpr int since = 18;
  static constexpr algebra properties = algebra::distributive;
};
struct reduce_min_op : reduction<reduce_min_op> {
  static constexpr std::string_view name = "ReduceMin";
  static constexpr int since = 20;
  static index_expr fold(const index_expr& a, const index_expr& b) { return dnnopt::min(a, b); }
};
struct reduce_prod_op : reduction<reduce_prod_op> {
  static constexpr std::string_view name = "ReduceProd";
  static constexpr int since = 18;
  static constexpr algebra properties = algebra::distributive;
  static index_expr fold(const index_expr& a, const index_expr& b) { return a * b; }
};
struct reduce_sum_op : reduction<reduce_sum_op> {
  static constexpr std::string_view name = "ReduceSum";
  static constexpr int since = 13;
  static constexpr algebra properties = algebra::distributive;
  static index_expr fold(const index_expr& a, const index_expr& b) { return a + b; }
};
struct reduce_sum_square_op : reduction<reduce_sum_square_op> {
  static constexpr std::string_view name = "ReduceSumSquare";
  static constexpr int since = 18;
};

/// The index of the greatest or least element along attribute `axis`; ties take the first, or with select_last_index
/// the last.
struct arg_classes {
  static constexpr op_arity arity{1, 1};
  static constexpr mapping_type mapping = mapping_type::many_to_many;
  static constexpr layout_class layout = layout_class::ild_variable;
  static constexpr dynamism_class dynamism = dynamism_class::isdos;
  static constexpr computation_kind kind = computation_kind::reduction;
  static constexpr int since = 13;

  static void infer(const node_facts& facts, std::span<value_facts> outputs) {
    outputs[0].type = dtype::int64;
    const shape* dims = facts.dims(0);
    if (dims == nullptr) return;
    const std::int64_t axis = facts.attributes->get_int("axis", 0);
    const std::vector<bool> reduced = reduced_dims(std::vector{axis}, dims->size(), false);
    outputs[0].dims = reduced_shape(*dims, reduced, facts.attributes->get_int("keepdims", 1) != 0);
    facts.require(guard_relation::at_least, (*dims)[normalize_axis(axis, dims->size())],
                  min(element_count(*outputs[0].dims), 1), "a dim of which ArgMax or ArgMin takes a position, and one");
  }
};
struct arg_max_op : arg_classes {
  static constexpr std::string_view name = "ArgMax";
};
struct arg_min_op : arg_classes {
  static constexpr std::string_view name = "ArgMin";
};

/// Running totals along the axis that input 1 names; the output has the input's shape.
struct cumulative_classes {
  static constexpr op_arity arity{2, 2};
  static constexpr input_set structural_inputs{1};
  static constexpr mapping_type mapping = mapping_type::many_to_many;
  static constexpr layout_class layout = layout_class::ild_variable;
  static constexpr dynamism_class dynamism = dynamism_class::isdos;
  static constexpr computation_kind kind = computation_kind::scan;

  static void infer(const node_facts& facts, std::span<value_facts> outputs) {
    outputs[0].type = facts.type(0);
    if (const shape* dims = facts.dims(0)) outputs[0].dims = *dims;
  }
  static void infer_backward(const node_facts&, std::span<const value_facts> outputs, std::span<value_facts> inputs) {
    if (outputs[0].dims && !inputs[0].dims) inputs[0].dims = outputs[0].dims;
  }
};
struct cum_sum_op : cumulative_classes {
  static constexpr std::string_view name = "CumSum";
  static constexpr int since = 14;
};
struct cum_prod_op : cumulative_classes {
  static constexpr std::string_view name = "CumProd";
  static constexpr int since = 26;
};

/// Adds ONNX's reductions and running totals.
inline void add_reduction(op_set& set) {
  set.add<reduce_l1_op, reduce_l2_op, reduce_log_sum_op, reduce_log_sum_exp_op, reduce_max_op, reduce_mean_op,
          reduce_min_op, reduce_prod_op, reduce_sum_op, reduce_sum_square_op, arg_max_op, arg_min_op, cum_sum_op,
          cum_prod_op>();
}

static_assert(Operator<reduce_l1_op> && Operator<reduce_l2_op> && Operator<reduce_log_sum_op>);
static_assert(Operator<reduce_log_sum_exp_op> && Operator<reduce_max_op> && Operator<reduce_mean_op>);
static_assert(Operator<reduce_min_op> && Operator<reduce_prod_op> && Operator<reduce_sum_op>);
static_assert(Operator<reduce_sum_square_op> && Operator<arg_max_op> && Operator<arg_min_op>);
static_assert(Operator<cum_sum_op> && Operator<cum_prod_op>);

}  // namespace dnnopt::ops

#endif  // DNNOPT_OPS_REDUCTION_HPP

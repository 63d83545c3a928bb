// Owns the replacement of operators whose every element would reduce the same elements again.
#ifndef DNNOPT_PASSES_SHARE_REDUCTIONS_HPP
#define DNNOPT_PASSES_SHARE_REDUCTIONS_HPP

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dnnopt/graph.hpp>
#include <dnnopt/ops/arithmetic.hpp>
#include <dnnopt/ops/conversion.hpp>
#include <dnnopt/ops/extend.hpp>
#include <dnnopt/ops/generator.hpp>
#include <dnnopt/ops/normalization.hpp>
#include <dnnopt/ops/reduction.hpp>
#include <dnnopt/ops/reshape.hpp>
#include <dnnopt/ops/shape_query.hpp>
#include <dnnopt/ops/slice.hpp>
#include <dnnopt/ops/unary_math.hpp>
#include <dnnopt/passes/pass.hpp>
#include <dnnopt/passes/rewriting/edit.hpp>

namespace dnnopt {

namespace detail {

/// As many elements one kernel reduces for each of them sooner than several kernels do it once.
inline constexpr std::int64_t few_shared = 256;
/// The elements of a running total that are added up for each of them.
inline constexpr std::int64_t total_block = 32;

[[nodiscard]] inline attribute_map with_attribute(std::string name, attribute held) {
  attribute_map made;
  made.set(std::move(name), std::move(held));
  return made;
}

/// Whether that many elements may be more than a few, as far as ranges tell.
[[nodiscard]] inline bool is_worth_sharing(const index_expr& count) { return count.range().high > few_shared; }

/// The node's place, in which other nodes give its outputs.
struct shared_place {
  graph& g;
  node was;
  std::vector<value_facts> facts;  ///< of the outputs, which stay

  shared_place(graph& in, node_id id) : g(in), was(in.node_at(id)) {
    for (const value_id out : was.outputs) facts.push_back(out == no_value ? value_facts() : g.facts(out));
    g.remove_node(id);
  }
  value_id add(const op_info& op, std::vector<value_id> inputs, attribute_map attributes = {}) {
    return rewriting::append(g, op, was.name, std::move(inputs), std::move(attributes));
  }
  value_id ints(const std::vector<std::int64_t>& numbers) { return rewriting::add_integers(g, was.name, numbers); }
  value_id number(float content) {
    return g.add_constant(rewriting::fresh_value_name(g, was.name), tensor::scalar(content));
  }
  /// The node gives one of its outputs; nothing where it has not got it.
  void give(const op_info& op, std::vector<value_id> inputs, attribute_map attributes = {}, std::size_t output = 0) {
    if (output >= was.outputs.size() || was.outputs[output] == no_value) return;
    const value_id out = was.outputs[output];
    g.add_node(op, was.name, std::move(inputs), {out}, std::move(attributes));
    g.facts(out) = facts[output];
  }
};

/// y, scale, zero = DynamicQuantizeLinear(x) becomes
/// _, scale, zero = DynamicQuantizeLinear([Min(ReduceMin(x), 0), Max(ReduceMax(x), 0)]), y = QuantizeLinear(x, scale,
/// zero): for the scale only the least and the greatest element count, so the numbers are the same.
/// Source: ONNX's operators, DynamicQuantizeLinear, function body.
inline bool share_quantization(graph& g, node_id id) {
  const value_id x = g.node_at(id).inputs[0];
  if (const auto& dims = g.facts(x).dims; !dims || !is_worth_sharing(element_count(*dims))) return false;
  shared_place at(g, id);
  const value_id none = at.number(0.0F);
  std::vector<value_id> limits;
  for (const auto& [of_all, of_two] : {std::pair{&op_row<ops::reduce_min_op>, &op_row<ops::min_op>},
                                       std::pair{&op_row<ops::reduce_max_op>, &op_row<ops::max_op>}}) {
    const value_id found = at.add(*of_all, {x}, with_attribute("keepdims", std::int64_t{0}));
    limits.push_back(at.add(op_row<ops::reshape_op>, {at.add(*of_two, {found, none}), at.ints({1})}));
  }
  const value_id both = at.add(op_row<ops::concat_op>, std::move(limits), with_attribute("axis", std::int64_t{0}));
  const auto output = [&](std::size_t i) {
    const bool is_wanted = i != 0 && i < at.was.outputs.size() && at.was.outputs[i] != no_value;
    return is_wanted ? at.was.outputs[i] : g.add_value(rewriting::fresh_value_name(g, at.was.name));
  };
  const std::vector<value_id> shared{output(0), output(1), output(2)};
  rewriting::infer_outputs(g, g.add_node(op_row<ops::dynamic_quantize_linear_op>, at.was.name, {both}, shared));
  at.give(op_row<ops::quantize_linear_op>, {x, shared[1], shared[2]});
  return true;
}

/// Hardmax(x) becomes OneHot(ArgMax(x)): the first of the greatest elements along the axis is found once.
inline bool share_hardmax(graph& g, node_id id) {
  const node& n = g.node_at(id);
  const value_id x = n.inputs[0];
  const auto& dims = g.facts(x).dims;
  const dtype type = g.facts(x).type;
  if (!dims || dims->empty() || type == dtype::undefined) return false;
  const auto axis = static_cast<std::int64_t>(ops::axis_of(n.attributes.get_int("axis", -1), dims->size(), n.op->name));
  const index_expr& length = (*dims)[static_cast<std::size_t>(axis)];
  // Hardmax of nothing is nothing; ArgMax of nothing is an error.
  if (length.range().low < 1 || !is_worth_sharing(length)) return false;
  shared_place at(g, id);
  attribute_map along = with_attribute("axis", axis);
  along.set("keepdims", std::int64_t{0});
  attribute_map extent = with_attribute("start", axis);
  extent.set("end", axis + 1);
  const value_id best = at.add(op_row<ops::arg_max_op>, {x}, std::move(along));
  const value_id depth = at.add(op_row<ops::shape_op>, {x}, std::move(extent));
  const value_id off_on = g.add_constant(rewriting::fresh_value_name(g, at.was.name),
                                         tensor::of<float>({2}, std::vector<float>{0.0F, 1.0F}));
  const value_id hot = at.add(op_row<ops::one_hot_op>, {best, depth, off_on}, with_attribute("axis", axis));
  at.give(op_row<ops::cast_op>, {hot}, with_attribute("to", static_cast<std::int64_t>(type)));
  return true;
}

/// MeanVarianceNormalization(x) becomes d / (Sqrt(ReduceMean(d * d)) + 1e-9) of d = x - ReduceMean(x), in fp32.
/// Source: ONNX's operators, MeanVarianceNormalization, function body.
inline bool share_mean_variance(graph& g, node_id id) {
  const node& n = g.node_at(id);
  const value_id x = n.inputs[0];
  const auto& dims = g.facts(x).dims;
  if (!dims || g.facts(x).type != dtype::float32) return false;
  const std::vector<std::int64_t> axes = n.attributes.get_ints("axes", {0, 2, 3});
  index_expr count = 1;
  for (const std::int64_t axis : axes) count = count * (*dims)[ops::axis_of(axis, dims->size(), n.op->name)];
  if (!is_worth_sharing(count)) return false;
  shared_place at(g, id);
  const value_id over = at.ints(axes);
  const value_id difference = at.add(op_row<ops::sub_op>, {x, at.add(op_row<ops::reduce_mean_op>, {x, over})});
  const value_id square = at.add(op_row<ops::mul_op>, {difference, difference});
  const value_id deviation = at.add(op_row<ops::sqrt_op>, {at.add(op_row<ops::reduce_mean_op>, {square, over})});
  at.give(op_row<ops::div_op>, {difference, at.add(op_row<ops::add_op>, {deviation, at.number(1e-9F)})});
  return true;
}

/// BatchNormalization(x, scale, shift, mean, variance) in training mode becomes d * (scale / Sqrt(v + epsilon)) + shift
/// of d = x - m, m = ReduceMean(x) and v = ReduceMean(d * d) over all but the channels, in fp32 or fp64; the statistics
/// that run on are mean * momentum + m * (1 - momentum) and the same of variance and v. Source: ONNX's operators,
/// BatchNormalization, function body.
inline bool share_batch_statistics(graph& g, node_id id) {
  const node& n = g.node_at(id);
  if (n.attributes.get_int("training_mode", 0) == 0) return false;
  const auto& dims = g.facts(n.inputs[0]).dims;
  if (!dims || dims->empty()) return false;
  dtype wide = dtype::float32;
  for (const value_id in : n.inputs) {
    if (!is_floating(g.facts(in).type)) return false;
    if (g.facts(in).type == dtype::float64) wide = dtype::float64;
  }
  std::vector<std::int64_t> axes;
  index_expr count = 1;
  for (std::size_t axis = 0; axis < dims->size(); ++axis) {
    if (axis == 1) continue;
    axes.push_back(static_cast<std::int64_t>(axis));
    count = count * (*dims)[axis];
  }
  if (!is_worth_sharing(count)) return false;
  const bool has_channels = dims->size() > 1;
  const double momentum = static_cast<double>(n.attributes.get_float("momentum", 0.9F));
  const double epsilon = static_cast<double>(n.attributes.get_float("epsilon", 1e-5F));
  shared_place at(g, id);
  const value_id over = at.ints(axes);
  const auto widened = [&](std::size_t i) {
    const value_id in = at.was.inputs[i];
    if (g.facts(in).type == wide) return in;
    return at.add(op_row<ops::cast_op>, {in}, with_attribute("to", static_cast<std::int64_t>(wide)));
  };
  const auto number = [&](double content) {
    return g.add_constant(rewriting::fresh_value_name(g, at.was.name),
                          wide == dtype::float64 ? tensor::scalar(content) : tensor::scalar(float(content)));
  };
  const auto for_channels = [&](value_id parameter) {
    return has_channels ? at.add(op_row<ops::unsqueeze_op>, {parameter, over}) : parameter;
  };
  const auto give = [&](std::size_t output, value_id a, value_id b) {
    const dtype type = at.facts[output].type;
    if (type == wide) return at.give(op_row<ops::add_op>, {a, b}, {}, output);
    at.give(op_row<ops::cast_op>, {at.add(op_row<ops::add_op>, {a, b})},
            with_attribute("to", static_cast<std::int64_t>(type)), output);
  };
  const value_id x = widened(0);
  const value_id mean = at.add(op_row<ops::reduce_mean_op>, {x, over});
  const value_id difference = at.add(op_row<ops::sub_op>, {x, mean});
  const value_id square = at.add(op_row<ops::mul_op>, {difference, difference});
  const value_id variance = at.add(op_row<ops::reduce_mean_op>, {square, over});
  const value_id deviation = at.add(op_row<ops::sqrt_op>, {at.add(op_row<ops::add_op>, {variance, number(epsilon)})});
  const value_id factor = at.add(op_row<ops::div_op>, {for_channels(widened(1)), deviation});
  give(0, at.add(op_row<ops::mul_op>, {difference, factor}), for_channels(widened(2)));
  for (const auto& [output, found] : {std::pair{std::size_t{1}, mean}, std::pair{std::size_t{2}, variance}}) {
    if (output >= at.was.outputs.size() || at.was.outputs[output] == no_value) continue;
    const value_id own = has_channels ? at.add(op_row<ops::squeeze_op>, {found, over}) : found;
    give(output, at.add(op_row<ops::mul_op>, {widened(output + 2), number(momentum)}),
         at.add(op_row<ops::mul_op>, {own, number(1 - momentum)}));
  }
  return true;
}

/// The dims of x with `middle` in place of the one along `axis`, as Reshape takes them; nothing where more than one dim
/// behind it is a symbol, or one is while a dim before it may be 0, for then -1 says nothing.
[[nodiscard]] inline std::optional<std::vector<std::int64_t>> blocked_dims(const shape& dims, std::size_t axis,
                                                                           std::vector<std::int64_t> middle) {
  std::vector<std::int64_t> made(axis, 0);  // as they are
  made.insert(made.end(), middle.begin(), middle.end());
  // One symbol follows from the rest, where this is not 0.
  bool is_taken = std::any_of(dims.begin(), dims.begin() + static_cast<std::ptrdiff_t>(axis),
                              [](const index_expr& dim) { return dim.range().low < 1; });
  for (std::size_t k = axis + 1; k < dims.size(); ++k) {
    if (!dims[k].is_constant() && std::exchange(is_taken, true)) return std::nullopt;
    // A dim of 0 would say "as it is" of another one.
    if (dims[k].is_constant() && dims[k].constant() == 0) return std::nullopt;
    made.push_back(dims[k].is_constant() ? dims[k].constant() : -1);
  }
  return made;
}

/// CumSum(x) along n elements becomes running totals within blocks of total_block, plus the totals of the blocks
/// before: n log(n) sums for n * n / 2. Sums of floats are taken in another order. Source: Blelloch 1990, "Prefix sums
/// and their applications".
inline bool share_running_totals(graph& g, node_id id) {
  const node& n = g.node_at(id);
  const value_id x = n.inputs[0];
  const auto& dims = g.facts(x).dims;
  const facts_of_node facts(g, id);
  const auto stated = facts->integers(1);
  if (!dims || dims->empty() || !stated || stated->size() != 1) return false;
  const std::size_t axis = ops::axis_of(stated->front(), dims->size(), n.op->name);
  const auto length = (*dims)[axis].as_constant();
  if (!length || *length <= few_shared) return false;
  const std::int64_t blocks = (*length + total_block - 1) / total_block;
  const std::int64_t padding = blocks * total_block - *length;
  const auto inside = blocked_dims(*dims, axis, {blocks, total_block});
  const auto whole = blocked_dims(*dims, axis, {blocks * total_block});
  if (!inside || !whole) return false;
  const std::size_t rank = dims->size();
  const attribute_map direction = with_attribute("reverse", n.attributes.get_int("reverse", 0));
  attribute_map before = direction;
  before.set("exclusive", std::int64_t{1});
  attribute_map own = direction;
  own.set("exclusive", n.attributes.get_int("exclusive", 0));
  const auto along = static_cast<std::int64_t>(axis);
  shared_place at(g, id);
  value_id source = x;
  if (padding > 0) {
    std::vector<std::int64_t> pads(2 * rank, 0);
    pads[rank + axis] = padding;
    source = at.add(op_row<ops::pad_op>, {x, at.ints(pads)});
  }
  const value_id parts = at.add(op_row<ops::reshape_op>, {source, at.ints(*inside)});
  const value_id within = at.add(op_row<ops::cum_sum_op>, {parts, at.ints({along + 1})}, std::move(own));
  const value_id sums = at.add(op_row<ops::reduce_sum_op>, {parts, at.ints({along + 1})});
  const value_id earlier = at.add(op_row<ops::cum_sum_op>, {sums, at.ints({along})}, std::move(before));
  const value_id totals = at.add(op_row<ops::add_op>, {within, earlier});
  if (padding > 0) {
    const value_id all = at.add(op_row<ops::reshape_op>, {totals, at.ints(*whole)});
    at.give(op_row<ops::slice_op>, {all, at.ints({0}), at.ints({*length}), at.ints({along})});
  } else {
    at.give(op_row<ops::reshape_op>, {totals, at.ints(*whole)});
  }
  (void)share_running_totals(g, g.value_at(earlier).producer);
  return true;
}

/// An operator, and what takes its place; whether it did.
struct shared_reduction {
  const op_info* op;
  bool (*share)(graph& g, node_id id);
};
inline constexpr std::array shared_reductions{
    shared_reduction{&op_row<ops::dynamic_quantize_linear_op>, share_quantization},
    shared_reduction{&op_row<ops::hardmax_op>, share_hardmax},
    shared_reduction{&op_row<ops::mean_variance_normalization_op>, share_mean_variance},
    shared_reduction{&op_row<ops::batch_normalization_op>, share_batch_statistics},
    shared_reduction{&op_row<ops::cum_sum_op>, share_running_totals},
};

}  // namespace detail

/// Before: an operator whose elements each need a reduction that others need too, and that has no kernel of its own:
/// its time grows with the square of what is reduced.
/// After:  reductions, once, and an element-wise rest; for a running total, those of blocks.
/// Conditions: what is reduced is not known to be few elements, which one kernel does sooner.
struct share_reductions {
  static constexpr std::string_view name = "share_reductions";

  pass_result run(graph& g) const {
    pass_result result;
    for (const node_id id : g.topological_order()) {
      const op_info* const op = g.node_at(id).op;
      for (const detail::shared_reduction& row : detail::shared_reductions)
        if (row.op == op && row.share(g, id)) {
          ++result.edits;
          break;
        }
    }
    return result;
  }
};

static_assert(Pass<share_reductions>);

}  // namespace dnnopt

#endif  // DNNOPT_PASSES_SHARE_REDUCTIONS_HPP

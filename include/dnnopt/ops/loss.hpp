// Owns the traits of ONNX's loss functions.
#ifndef DNNOPT_OPS_LOSS_HPP
#define DNNOPT_OPS_LOSS_HPP

#include <span>
#include <string_view>

#include <dnnopt/ops/element_wise.hpp>

namespace dnnopt::ops {

/// Scores [batch, class, ...] against labels [batch, ...] with optional weights per class; a scalar, or one loss per
/// label with reduction=none.
struct loss_classes {
  static constexpr op_arity arity{2, 3};
  static constexpr mapping_type mapping = mapping_type::many_to_many;
  static constexpr layout_class layout = layout_class::ild_variable;
  static constexpr dynamism_class dynamism = dynamism_class::isdos;
  static constexpr computation_kind kind = computation_kind::other;

  static void infer(const node_facts& facts, std::span<value_facts> outputs) {
    outputs[0].type = facts.type(0);
    (void)facts.attributes->find_as<std::int64_t>("ignore_index");
    require_labels(facts);
    if (facts.attributes->get_string("reduction", "mean") != "none")
      outputs[0].dims = shape{};
    else if (const shape* labels = facts.dims(1))
      outputs[0].dims = *labels;
    if (outputs.size() < 2) return;
    outputs[1].type = facts.type(0);
    if (const shape* scores = facts.dims(0)) outputs[1].dims = *scores;
  }
  /// Errors: shape_mismatch where labels have other dims than the scores beside the class.
  static void require_labels(const node_facts& facts) {
    const shape* scores = facts.dims(0);
    const shape* labels = facts.dims(1);
    if (scores == nullptr || labels == nullptr) return;
    if (scores->size() < 2 || labels->size() + 1 != scores->size())
      throw error(errc::shape_mismatch, "a loss of scores " + to_string(*scores) + " and labels " + to_string(*labels));
    for (std::size_t k = 0; k < labels->size(); ++k)
      facts.require(guard_relation::equal, (*scores)[k == 0 ? 0 : k + 1], (*labels)[k], "dims of scores and labels");
    if (const shape* weights = facts.dims(2); weights != nullptr && weights->size() == 1)
      facts.require(guard_relation::equal, weights->front(), (*scores)[1], "weights and classes of a loss");
  }
};
struct negative_log_likelihood_loss_op : loss_classes {
  static constexpr std::string_view name = "NegativeLogLikelihoodLoss";
  static constexpr int since = 22;
};
/// Output 1 is the logarithm of the scores' softmax.
struct softmax_cross_entropy_loss_op : loss_classes {
  static constexpr std::string_view name = "SoftmaxCrossEntropyLoss";
  static constexpr int since = 13;
  static constexpr op_arity arity{2, 3, 1, 2};
};

/// Adds ONNX's loss functions.
inline void add_loss(op_set& set) { set.add<negative_log_likelihood_loss_op, softmax_cross_entropy_loss_op>(); }

static_assert(Operator<negative_log_likelihood_loss_op> && Operator<softmax_cross_entropy_loss_op>);

}  // namespace dnnopt::ops

#endif  // DNNOPT_OPS_LOSS_HPP

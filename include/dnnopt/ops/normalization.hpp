// Owns the traits of softmax and its kin and of ONNX's normalizations.
#ifndef DNNOPT_OPS_NORMALIZATION_HPP
#define DNNOPT_OPS_NORMALIZATION_HPP

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include <dnnopt/ops/element_wise.hpp>

namespace dnnopt::ops {

/// Output 0 has the type and shape of input 0, every element of which may reach many output elements; further inputs
/// are parameters that broadcast.
struct aggregating_classes {
  static constexpr mapping_type mapping = mapping_type::many_to_many;
  static constexpr layout_class layout = layout_class::ild_variable;
  static constexpr dynamism_class dynamism = dynamism_class::isdos;
  static constexpr computation_kind kind = computation_kind::normalization;

  static mapping_type mapping_of(const node_facts&, std::size_t input, std::size_t) {
    return input == 0 ? mapping_type::many_to_many : mapping_type::one_to_many;
  }
  static void infer(const node_facts& facts, std::span<value_facts> outputs) {
    outputs[0].type = facts.type(0);
    if (const shape* dims = facts.dims(0)) outputs[0].dims = *dims;
  }
  static void infer_backward(const node_facts&, std::span<const value_facts> outputs, std::span<value_facts> inputs) {
    if (outputs[0].dims && !inputs[0].dims) inputs[0].dims = outputs[0].dims;
  }
};

/// Requires that inputs from `first` to before `last`, as far as given, have an element for each channel (dim 1) of
/// input 0. Errors: shape_mismatch.
inline void require_channels(const node_facts& facts, std::size_t first, std::size_t last) {
  const shape* dims = facts.dims(0);
  if (dims == nullptr || dims->empty()) return;
  const index_expr channels = dims->size() > 1 ? (*dims)[1] : index_expr(1);
  for (std::size_t i = first; i < last; ++i)
    if (const shape* own = facts.dims(i))
      facts.require(guard_relation::equal, element_count(*own), channels, "a normalization's parameters and channels");
}

struct softmax_classes : aggregating_classes {
  static constexpr op_arity arity{1, 1};
  static constexpr computation_kind kind = computation_kind::softmax;
  static constexpr int since = 13;

  static void infer(const node_facts& facts, std::span<value_facts> outputs) {
    if (const shape* dims = facts.dims(0)) (void)normalize_axis(facts.attributes->get_int("axis", -1), dims->size());
    aggregating_classes::infer(facts, outputs);
  }
};
struct softmax_op : softmax_classes {
  static constexpr std::string_view name = "Softmax";
};
struct log_softmax_op : softmax_classes {
  static constexpr std::string_view name = "LogSoftmax";
};
struct hardmax_op : softmax_classes {
  static constexpr std::string_view name = "Hardmax";
};

/// Per-channel scale and shift with stored statistics; in training the statistics are computed.
struct batch_normalization_op : aggregating_classes {
  static constexpr std::string_view name = "BatchNormalization";
  static constexpr int since = 15;
  static constexpr op_arity arity{5, 5, 1, 3};
  static constexpr mapping_type mapping = mapping_type::one_to_one;
  static constexpr layout_class layout = layout_class::ili_variable;

  static bool is_training(const node_facts& facts) { return facts.attributes->get_int("training_mode", 0) != 0; }
  static mapping_type mapping_of(const node_facts& facts, std::size_t input, std::size_t) {
    if (input != 0) return mapping_type::one_to_many;
    return is_training(facts) ? mapping_type::many_to_many : mapping_type::one_to_one;
  }
  static layout_class layout_of(const node_facts& facts) {
    return is_training(facts) ? layout_class::ild_variable : layout_class::ili_variable;
  }
  static void infer(const node_facts& facts, std::span<value_facts> outputs) {
    aggregating_classes::infer(facts, outputs);
    require_channels(facts, 1, 5);
    for (std::size_t i = 1; i < outputs.size(); ++i) {
      outputs[i].type = facts.type(3);
      if (const shape* dims = facts.dims(i + 2)) outputs[i].dims = *dims;
    }
  }
};

struct instance_normalization_op : aggregating_classes {
  static constexpr std::string_view name = "InstanceNormalization";
  static constexpr int since = 22;
  static constexpr op_arity arity{3, 3};

  static void infer(const node_facts& facts, std::span<value_facts> outputs) {
    aggregating_classes::infer(facts, outputs);
    if (const shape* dims = facts.dims(0); dims != nullptr && dims->size() < 2)
      throw error(errc::shape_mismatch, "InstanceNormalization of " + to_string(*dims) + ", which has no channels");
    require_channels(facts, 1, 3);
  }
};

/// Requires that inputs from `first` to before `last`, as far as given, expand to input 0. Errors: shape_mismatch.
inline void require_expanding(const node_facts& facts, std::size_t first, std::size_t last) {
  const shape* dims = facts.dims(0);
  if (dims == nullptr) return;
  for (std::size_t i = first; i < last; ++i) {
    const shape* own = facts.dims(i);
    if (own == nullptr) continue;
    for (std::size_t back = 1; back <= std::min(own->size(), dims->size()); ++back)
      facts.require(guard_relation::expands, (*own)[own->size() - back], (*dims)[dims->size() - back],
                    "a normalization's parameters and its input");
  }
}

/// Outputs 1 and 2 are mean and inverse standard deviation, with ones for the normalized dims.
struct layer_normalization_op : aggregating_classes {
  static constexpr std::string_view name = "LayerNormalization";
  static constexpr int since = 17;
  static constexpr op_arity arity{2, 3, 1, 3};
  static constexpr bool normalizes_rows = true;

  static void infer(const node_facts& facts, std::span<value_facts> outputs) {
    aggregating_classes::infer(facts, outputs);
    require_expanding(facts, 1, 3);
    const shape* dims = facts.dims(0);
    for (std::size_t i = 1; i < outputs.size(); ++i) {
      outputs[i].type = static_cast<dtype>(facts.attributes->get_int("stash_type", 1));
      if (dims == nullptr) continue;
      outputs[i].dims = *dims;
      const std::size_t axis = normalize_axis(facts.attributes->get_int("axis", -1), dims->size());
      std::fill(outputs[i].dims->begin() + static_cast<std::ptrdiff_t>(axis), outputs[i].dims->end(), index_expr(1));
    }
  }
};

struct group_normalization_op : aggregating_classes {
  static constexpr std::string_view name = "GroupNormalization";
  static constexpr int since = 21;
  static constexpr op_arity arity{3, 3};

  static void infer(const node_facts& facts, std::span<value_facts> outputs) {
    aggregating_classes::infer(facts, outputs);
    const shape* dims = facts.dims(0);
    if (dims == nullptr) return;
    if (dims->size() < 2)
      throw error(errc::shape_mismatch, "GroupNormalization of " + to_string(*dims) + ", which has no channels");
    const auto groups = facts.attributes->require<std::int64_t>("num_groups");
    if (groups < 1) throw error(errc::bad_attribute, "attribute 'num_groups' is " + std::to_string(groups));
    facts.require(guard_relation::multiple, (*dims)[1], groups, "channels and groups of GroupNormalization");
  }
};
struct rms_normalization_op : aggregating_classes {
  static constexpr std::string_view name = "RMSNormalization";
  static constexpr int since = 23;
  static constexpr op_arity arity{2, 2};
  static constexpr bool normalizes_rows = true;

  static void infer(const node_facts& facts, std::span<value_facts> outputs) {
    aggregating_classes::infer(facts, outputs);
    require_expanding(facts, 1, 2);
  }
};
struct lrn_op : aggregating_classes {
  static constexpr std::string_view name = "LRN";
  static constexpr int since = 13;
  static constexpr op_arity arity{1, 1};

  static void infer(const node_facts& facts, std::span<value_facts> outputs) {
    const auto size = facts.attributes->require<std::int64_t>("size");
    if (size < 1) throw error(errc::bad_attribute, "attribute 'size' is " + std::to_string(size));
    if (const shape* dims = facts.dims(0); dims != nullptr && dims->size() < 2)
      throw error(errc::shape_mismatch, "LRN of " + to_string(*dims) + ", which has no channels");
    aggregating_classes::infer(facts, outputs);
  }
};
struct lp_normalization_op : aggregating_classes {
  static constexpr std::string_view name = "LpNormalization";
  static constexpr int since = 22;
  static constexpr op_arity arity{1, 1};
};
struct mean_variance_normalization_op : aggregating_classes {
  static constexpr std::string_view name = "MeanVarianceNormalization";
  static constexpr int since = 13;
  static constexpr op_arity arity{1, 1};
};

/// Adds softmax and its kin and ONNX's normalizations.
inline void add_normalization(op_set& set) {
  set.add<softmax_op, log_softmax_op, hardmax_op, batch_normalization_op, instance_normalization_op,
          layer_normalization_op, group_normalization_op, rms_normalization_op, lrn_op, lp_normalization_op,
          mean_variance_normalization_op>();
}

static_assert(Operator<softmax_op> && Operator<log_softmax_op> && Operator<hardmax_op>);
static_assert(Operator<batch_normalization_op> && Operator<instance_normalization_op>);
static_assert(Operator<layer_normalization_op> && Operator<group_normalization_op> && Operator<rms_normalization_op>);
static_assert(Operator<lrn_op> && Operator<lp_normalization_op> && Operator<mean_variance_normalization_op>);

}  // namespace dnnopt::ops

#endif  // DNNOPT_OPS_NORMALIZATION_HPP

// Owns the operators on sequences and optional values.
#ifndef DNNOPT_OPS_CONTAINER_HPP
#define DNNOPT_OPS_CONTAINER_HPP

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include <dnnopt/ops/generator.hpp>

namespace dnnopt::ops {

/// What container operators share: they hold and hand on whole tensors, whose number only execution tells.
struct container_traits {
  static constexpr mapping_type mapping = mapping_type::many_to_many;
  static constexpr layout_class layout = layout_class::ili_fixed;
  static constexpr dynamism_class dynamism = dynamism_class::edo;
  static constexpr computation_kind kind = computation_kind::container;

  /// Output 0 is a container of the element type of input `element`.
  static void infer_container(const node_facts& facts, std::span<value_facts> outputs, value_kind kind_of_output,
                              std::size_t element) {
    outputs[0].kind = kind_of_output;
    set_type(outputs, 0, facts.type(element));
  }
};

struct sequence_construct_op : container_traits {
  static constexpr std::string_view name = "SequenceConstruct";
  static constexpr int since = 11;
  static constexpr op_arity arity{1, variadic};
  static void infer(const node_facts& facts, std::span<value_facts> outputs) {
    infer_container(facts, outputs, value_kind::sequence, 0);
  }
};
struct sequence_empty_op : container_traits {
  static constexpr std::string_view name = "SequenceEmpty";
  static constexpr int since = 11;
  static constexpr op_arity arity{0, 0};
  static void infer(const node_facts& facts, std::span<value_facts> outputs) {
    outputs[0].kind = value_kind::sequence;
    set_type(outputs, 0, type_attribute(*facts.attributes, "dtype", dtype::float32));
  }
};
struct sequence_insert_op : container_traits {
  static constexpr std::string_view name = "SequenceInsert";
  static constexpr int since = 11;
  static constexpr op_arity arity{2, 3};
  static void infer(const node_facts& facts, std::span<value_facts> outputs) {
    infer_container(facts, outputs, value_kind::sequence, 1);
  }
};
struct sequence_erase_op : container_traits {
  static constexpr std::string_view name = "SequenceErase";
  static constexpr int since = 11;
  static constexpr op_arity arity{1, 2};
  static void infer(const node_facts& facts, std::span<value_facts> outputs) {
    infer_container(facts, outputs, value_kind::sequence, 0);
  }
};
struct sequence_at_op : container_traits {
  static constexpr std::string_view name = "SequenceAt";
  static constexpr int since = 11;
  static constexpr op_arity arity{2, 2};
  static void infer(const node_facts& facts, std::span<value_facts> outputs) { set_type(outputs, 0, facts.type(0)); }
};
struct sequence_length_op : container_traits {
  static constexpr std::string_view name = "SequenceLength";
  static constexpr int since = 11;
  static constexpr op_arity arity{1, 1};
  static void infer(const node_facts&, std::span<value_facts> outputs) {
    set_type(outputs, 0, dtype::int64);
    set_dims(outputs, 0, {});
  }
};
struct split_to_sequence_op : container_traits {
  static constexpr std::string_view name = "SplitToSequence";
  static constexpr int since = 24;
  static constexpr op_arity arity{1, 2};
  static void infer(const node_facts& facts, std::span<value_facts> outputs) {
    infer_container(facts, outputs, value_kind::sequence, 0);
  }
};
/// ConcatFromSequence: with `new_axis` the tensors are stacked along an axis of their own.
struct concat_from_sequence_op : container_traits {
  static constexpr std::string_view name = "ConcatFromSequence";
  static constexpr int since = 11;
  static constexpr op_arity arity{1, 1};
  static void infer(const node_facts& facts, std::span<value_facts> outputs) { set_type(outputs, 0, facts.type(0)); }
};
struct optional_op : container_traits {
  static constexpr std::string_view name = "Optional";
  static constexpr int since = 28;
  static constexpr op_arity arity{0, 1};
  static void infer(const node_facts& facts, std::span<value_facts> outputs) {
    infer_container(facts, outputs, value_kind::optional, 0);
  }
};
/// OptionalGetElement: the element; a tensor or sequence that is not optional is handed on. What an optional holds only
/// the model's declaration tells.
struct optional_get_element_op : container_traits {
  static constexpr std::string_view name = "OptionalGetElement";
  static constexpr int since = 28;
  static constexpr op_arity arity{1, 1};
  static void infer(const node_facts& facts, std::span<value_facts> outputs) {
    if (!facts.has(0) || facts.inputs[0]->kind == value_kind::optional) return;
    set_type(outputs, 0, facts.type(0));
    outputs[0].kind = facts.inputs[0]->kind;
    if (facts.inputs[0]->dims) outputs[0].dims = facts.inputs[0]->dims;
  }
};
struct optional_has_element_op : container_traits {
  static constexpr std::string_view name = "OptionalHasElement";
  static constexpr int since = 28;
  static constexpr op_arity arity{0, 1};
  static void infer(const node_facts&, std::span<value_facts> outputs) {
    set_type(outputs, 0, dtype::boolean);
    set_dims(outputs, 0, {});
  }
};

}  // namespace dnnopt::ops

#endif  // DNNOPT_OPS_CONTAINER_HPP

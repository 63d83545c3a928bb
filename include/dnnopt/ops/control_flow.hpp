// Owns the operators that run subgraphs: If, Loop, Scan, SequenceMap.
#ifndef DNNOPT_OPS_CONTROL_FLOW_HPP
#define DNNOPT_OPS_CONTROL_FLOW_HPP

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include <dnnopt/ops/structure_transfer.hpp>

namespace dnnopt::ops {

/// What control flow shares. Types and shapes of outputs come from the bodies, which a pass over the graph follows; a row
/// of this table sees attributes only.
struct control_flow_traits {
  static constexpr mapping_type mapping = mapping_type::many_to_many;
  static constexpr layout_class layout = layout_class::ild_fixed;
  static constexpr dynamism_class dynamism = dynamism_class::edo;
  static constexpr computation_kind kind = computation_kind::control_flow;
};

/// If: the outputs of `then_branch` or `else_branch`.
struct if_op : control_flow_traits {
  static constexpr std::string_view name = "If";
  static constexpr int since = 25;
  static constexpr op_arity arity{1, 1, 1, variadic};

  static void infer(const node_facts& facts, std::span<value_facts>) {
    if (facts.type(0) != dtype::undefined && facts.type(0) != dtype::boolean)
      throw error(errc::type_mismatch, "If: the condition is " + std::string(name_of(facts.type(0))));
  }
};

/// Loop: `body` run until its condition is false or the trip count is reached; carried values, then stacked outputs.
struct loop_op : control_flow_traits {
  static constexpr std::string_view name = "Loop";
  static constexpr int since = 25;
  static constexpr op_arity arity{2, variadic, 1, variadic};

  static void infer(const node_facts& facts, std::span<value_facts> outputs) {
    // A carried value keeps its element type; its shape may change from one iteration to the next.
    for (std::size_t k = 2; k < facts.inputs.size() && k - 2 < outputs.size(); ++k) {
      if (!facts.has(k) || outputs[k - 2].type != dtype::undefined) continue;
      outputs[k - 2].kind = facts.inputs[k]->kind;
      set_type(outputs, k - 2, facts.type(k));
    }
  }
};

/// Scan: `body` run once per slice of the scanned inputs; final states, then stacked outputs.
struct scan_op : control_flow_traits {
  static constexpr std::string_view name = "Scan";
  static constexpr int since = 25;
  static constexpr op_arity arity{1, variadic, 1, variadic};

  static void infer(const node_facts& facts, std::span<value_facts> outputs) {
    const std::int64_t scanned = facts.attributes->require<std::int64_t>("num_scan_inputs");
    const auto count = static_cast<std::int64_t>(facts.inputs.size());
    if (scanned < 1 || scanned > count)
      throw error(errc::bad_attribute, "Scan: num_scan_inputs is " + std::to_string(scanned) + " of " + std::to_string(count) + " inputs");
    for (std::size_t k = 0; k < static_cast<std::size_t>(count - scanned) && k < outputs.size(); ++k) {
      set_type(outputs, k, facts.type(k));
      if (const shape* dims = facts.dims(k)) set_dims(outputs, k, *dims);
    }
  }
};

/// SequenceMap: `body` run once per element of the sequences.
struct sequence_map_op : control_flow_traits {
  static constexpr std::string_view name = "SequenceMap";
  static constexpr int since = 17;
  static constexpr op_arity arity{1, variadic, 1, variadic};

  static void infer(const node_facts&, std::span<value_facts> outputs) {
    for (value_facts& out : outputs) out.kind = value_kind::sequence;
  }
};

}  // namespace dnnopt::ops

#endif  // DNNOPT_OPS_CONTROL_FLOW_HPP

// Owns the operators that run subgraphs: If, Loop, Scan, SequenceMap.
#ifndef DNNOPT_OPS_CONTROL_FLOW_HPP
#define DNNOPT_OPS_CONTROL_FLOW_HPP

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include <dnnopt/ops/structure_transfer.hpp>

namespace dnnopt::ops {

/// What control flow shares. Types and shapes of outputs come from the bodies, which a pass over the graph follows; a
/// row of this table sees attributes only.
struct control_flow_traits {
  static constexpr mapping_type mapping = mapping_type::many_to_many;
  static constexpr layout_class layout = layout_class::ild_fixed;
  static constexpr dynamism_class dynamism = dynamism_class::edo;
  static constexpr computation_kind kind = computation_kind::control_flow;
};

/// If: the outputs of `then_branch` or `else_branch`.
struct if_op : control_flow_traits {
  static constexpr flow_form flow = flow_form::branches;
  static constexpr std::string_view name = "If";
  static constexpr input_set structural_inputs{0};
  static constexpr int since = 25;
  static constexpr op_arity arity{1, 1, 1, variadic};

  static void infer(const node_facts& facts, std::span<value_facts>) {
    if (facts.type(0) != dtype::undefined && facts.type(0) != dtype::boolean)
      throw error(errc::type_mismatch, "If: the condition is " + std::string(name_of(facts.type(0))));
  }
};

/// Loop: `body` run until its condition is false or the trip count is reached; carried values, then stacked outputs.
struct loop_op : control_flow_traits {
  static constexpr flow_form flow = flow_form::loop;
  static constexpr std::string_view name = "Loop";
  static constexpr int since = 25;
  static constexpr op_arity arity{2, variadic, 1, variadic};

  // Which inputs are carried and which are captured by the body, only the graph tells.
  static void infer(const node_facts& facts, std::span<value_facts>) {
    if (facts.type(1) != dtype::undefined && facts.type(1) != dtype::boolean)
      throw error(errc::type_mismatch, "Loop: the condition is " + std::string(name_of(facts.type(1))));
  }
};

/// Scan: `body` run once per slice of the scanned inputs; final states, then stacked outputs.
struct scan_op : control_flow_traits {
  static constexpr flow_form flow = flow_form::scan;
  static constexpr std::string_view name = "Scan";
  static constexpr int since = 25;
  static constexpr op_arity arity{1, variadic, 1, variadic};

  static void infer(const node_facts& facts, std::span<value_facts>) {
    const std::int64_t scanned = facts.attributes->require<std::int64_t>("num_scan_inputs");
    const auto count = static_cast<std::int64_t>(facts.inputs.size());
    if (scanned < 1 || scanned > count)
      throw error(errc::bad_attribute,
                  "Scan: num_scan_inputs is " + std::to_string(scanned) + " of " + std::to_string(count) + " inputs");
  }
};

/// SequenceMap: `body` run once per element of the sequences.
struct sequence_map_op : control_flow_traits {
  static constexpr flow_form flow = flow_form::map;
  static constexpr std::string_view name = "SequenceMap";
  static constexpr int since = 17;
  static constexpr op_arity arity{1, variadic, 1, variadic};

  // The element type comes from the body.
  static void infer(const node_facts&, std::span<value_facts> outputs) {
    for (value_facts& output : outputs) output.kind = value_kind::sequence;
  }
};

}  // namespace dnnopt::ops

#endif  // DNNOPT_OPS_CONTROL_FLOW_HPP

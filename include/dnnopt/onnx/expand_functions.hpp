// Owns the expansion of ONNX function operators into simpler ones where an operator list lacks them.
#ifndef DNNOPT_ONNX_EXPAND_FUNCTIONS_HPP
#define DNNOPT_ONNX_EXPAND_FUNCTIONS_HPP

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dnnopt/onnx/adapt_opset.hpp>
#include <dnnopt/onnx/node_emitter.hpp>

namespace dnnopt::onnx {

namespace detail {

/// Turns `n` into the last node of its expansion; the nodes before it are emitted.
using function_expander = void (*)(pending_node& n, node_emitter& e);

struct expander_row {
  std::string_view op_type;
  function_expander expand;
};

inline value_id number(const pending_node& n, node_emitter& e, std::string_view what, double v) {
  return e.constant(n, what, scalar_of(type_of(n, e, 0), v));
}
inline void become(pending_node& n, std::string_view op_type, std::vector<value_id> inputs,
                   attribute_map attributes = {}) {
  n.op_type = op_type;
  n.inputs = std::move(inputs);
  n.attributes = std::move(attributes);
}

inline constexpr expander_row expanders[] = {
    {"HardSwish",
     [](pending_node& n, node_emitter& e) {
       attribute_map slope;
       slope.set("alpha", 1.0f / 6.0f);
       slope.set("beta", 0.5f);
       become(n, "Mul", {n.input(0), e.emit(n, "HardSigmoid", {n.input(0)}, std::move(slope))});
     }},
    {"Swish",
     [](pending_node& n, node_emitter& e) {
       const float alpha = n.attributes.get_float("alpha", 1.0f);
       const value_id inner = alpha == 1.0f
                                  ? n.input(0)
                                  : e.emit(n, "Mul", {n.input(0), number(n, e, "alpha", static_cast<double>(alpha))});
       become(n, "Mul", {n.input(0), e.emit(n, "Sigmoid", {inner})});
     }},
    {"Mish",
     [](pending_node& n, node_emitter& e) {
       become(n, "Mul", {n.input(0), e.emit(n, "Tanh", {e.emit(n, "Softplus", {n.input(0)})})});
     }},
    {"Gelu",
     [](pending_node& n, node_emitter& e) {
       const value_id x = n.input(0);
       value_id inner = no_value;
       if (n.attributes.get_string("approximate", "none") == "tanh") {
         const value_id cube = e.emit(n, "Mul", {x, e.emit(n, "Mul", {x, x})});
         const value_id sum = e.emit(n, "Add", {x, e.emit(n, "Mul", {cube, number(n, e, "cubic", 0.044715)})});
         inner = e.emit(n, "Tanh", {e.emit(n, "Mul", {sum, number(n, e, "root", 0.7978845608028654)})});
       } else {
         inner = e.emit(n, "Erf", {e.emit(n, "Mul", {x, number(n, e, "root", 0.7071067811865476)})});
       }
       const value_id half = e.emit(n, "Mul", {x, number(n, e, "half", 0.5)});
       become(n, "Mul", {half, e.emit(n, "Add", {inner, number(n, e, "one", 1.0)})});
     }},
    {"ReduceL1",
     [](pending_node& n, node_emitter& e) {
       n.op_type = "ReduceSum";
       n.inputs[0] = e.emit(n, "Abs", {n.input(0)});
     }},
    {"ReduceSumSquare",
     [](pending_node& n, node_emitter& e) {
       n.op_type = "ReduceSum";
       n.inputs[0] = e.emit(n, "Mul", {n.input(0), n.input(0)});
     }},
    {"ReduceL2",
     [](pending_node& n, node_emitter& e) {
       std::vector<value_id> inputs = n.inputs;
       inputs[0] = e.emit(n, "Mul", {n.input(0), n.input(0)});
       become(n, "Sqrt", {e.emit(n, "ReduceSum", std::move(inputs), n.attributes)});
     }},
    {"ReduceLogSum",
     [](pending_node& n, node_emitter& e) { become(n, "Log", {e.emit(n, "ReduceSum", n.inputs, n.attributes)}); }},
    {"LessOrEqual", [](pending_node& n, node_emitter& e) { become(n, "Not", {e.emit(n, "Greater", n.inputs)}); }},
    {"GreaterOrEqual", [](pending_node& n, node_emitter& e) { become(n, "Not", {e.emit(n, "Less", n.inputs)}); }},
    {"Softsign",
     [](pending_node& n, node_emitter& e) {
       const value_id below = e.emit(n, "Add", {e.emit(n, "Abs", {n.input(0)}), number(n, e, "one", 1.0)});
       become(n, "Div", {n.input(0), below});
     }},
    {"LogSoftmax",
     [](pending_node& n, node_emitter& e) { become(n, "Log", {e.emit(n, "Softmax", n.inputs, n.attributes)}); }},
    {"RMSNormalization",
     [](pending_node& n, node_emitter& e) {
       const std::int64_t axis = n.attributes.get_int("axis", -1);
       const auto rank = e.rank_of(n, 0);
       if (!rank) throw error(errc::unsupported, "RMSNormalization of a tensor of unknown rank has no expansion");
       std::vector<std::int64_t> axes;
       for (std::size_t a = normalize_axis(axis, *rank); a < *rank; ++a) axes.push_back(static_cast<std::int64_t>(a));
       const value_id mean =
           e.emit(n, "ReduceMean", {e.emit(n, "Mul", {n.input(0), n.input(0)}), e.integers(n, "axes", axes)});
       const value_id root = e.emit(
           n, "Sqrt",
           {e.emit(n, "Add",
                   {mean, number(n, e, "epsilon", static_cast<double>(n.attributes.get_float("epsilon", 1e-5f)))})});
       become(n, "Mul", {e.emit(n, "Div", {n.input(0), root}), n.input(1)});
     }},
};

}  // namespace detail

/// Expands `n` where its operator is known as a function of others and adds it; false where it is not.
inline bool expand_function(pending_node& n, node_emitter& emitter) {
  for (const detail::expander_row& row : detail::expanders)
    if (row.op_type == n.op_type) {
      row.expand(n, emitter);
      emitter.add(std::move(n));
      return true;
    }
  return false;
}

}  // namespace dnnopt::onnx

#endif  // DNNOPT_ONNX_EXPAND_FUNCTIONS_HPP

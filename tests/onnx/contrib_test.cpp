// com.microsoft's operators become standard nodes; what has no expansion is refused by name. What the nodes compute is
// held against ONNX Runtime by bench/contrib/cases.
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include <dnnopt/graph_io.hpp>
#include <dnnopt/onnx/import.hpp>
#include <dnnopt/ops/activation.hpp>
#include <dnnopt/ops/standard.hpp>

#include <support/onnx_writer.hpp>

namespace {

using namespace dnnopt_tests;
using dnnopt::errc;

dnnopt::graph imported(const message& g, const dnnopt::op_set& ops = dnnopt::standard_ops()) {
  message m = model(g);
  m.with(8, opset(1, "com.microsoft"));
  const auto bytes = std::as_bytes(std::span(m.data));
  return dnnopt::import_onnx(bytes, ".", {ops, {}, {}});
}

message one(const std::string& op, const std::vector<std::string>& inputs, std::initializer_list<message> attributes,
            const std::vector<message>& values) {
  return graph({node(op, inputs, {"y"}, attributes, "com.microsoft")}, values, {untyped("y")});
}

/// A user's own operator of a name that has an expansion.
struct own_gelu : dnnopt::ops::gelu_op {
  static constexpr std::string_view domain = "com.microsoft";
};

struct refused {
  const char* name;
  message body;
  errc code;
  const char* text;  // that the message holds
};

std::vector<refused> refusals() {
  const message x = info("x", 1, {"2", "3", "8"});
  const message image = info("x", 1, {"1", "4", "5", "5"});
  const message weights = info("w", 1, {"4", "4", "1", "1"});
  return {
      {"a mixture of experts", one("MoE", {"x", "x", "x"}, {}, {x}), errc::unsupported, "which experts"},
      {"a decoding loop", one("BeamSearch", {"x"}, {}, {x}), errc::unsupported, "loop over tokens"},
      {"an unknown operator", one("Nowhere", {"x"}, {}, {x}), errc::unknown_operator, "Nowhere"},
      {"too many inputs", one("Gelu", {"x", "x"}, {}, {x}), errc::bad_arity, "2 inputs"},
      {"shared buffers of Attention",
       one("Attention", {"x", "x"}, {int_attribute("num_heads", 2), int_attribute("past_present_share_buffer", 1)},
           {x}),
       errc::unsupported, "past_present_share_buffer = 1"},
      {"causal attention over other keys",
       one("MultiHeadAttention", {"x", "k", "k"}, {int_attribute("num_heads", 2), int_attribute("unidirectional", 1)},
           {x, info("k", 1, {"2", "4", "8"})}),
       errc::unsupported, "3 queries over 4 keys"},
      {"attention of a matrix",
       one("Attention", {"m", "m"}, {int_attribute("num_heads", 2), int_attribute("unidirectional", 1)},
           {info("m", 1, {"24", "24"})}),
       errc::unsupported, "of shape"},
      {"a pool over a number",
       one("QLinearGlobalAveragePool", {"q", "s", "z", "s", "z"}, {int_attribute("channels_last", 1)},
           {info("q", 2, {}), info("s", 1, {}), info("z", 2, {})}),
       errc::unsupported, "'X' of shape"},
      {"a count of 63 bits",
       one("MatMulNBits", {"x", "b", "s"},
           {int_attribute("K", std::int64_t{1} << 62), int_attribute("N", 2), int_attribute("block_size", 16)},
           {x, info("b", 2, {"2", "1", "8"}), info("s", 1, {"2", "1"})}),
       errc::bad_attribute, "K is"},
      {"weights that are no constant",
       one("MatMulNBits", {"x", "b", "s"},
           {int_attribute("K", 8), int_attribute("N", 2), int_attribute("block_size", 16)},
           {x, info("b", 2, {"2", "1", "8"}), info("s", 1, {"2", "1"})}),
       errc::unsupported, "no constant"},
      {"an order of columns",
       one("MatMulNBits", {"x", "x", "x", "", "x"},
           {int_attribute("K", 8), int_attribute("N", 2), int_attribute("block_size", 16)}, {x}),
       errc::unsupported, "g_idx"},
      {"an unknown activation",
       one("FusedConv", {"x", "w"}, {string_attribute("activation", "Softmax")}, {image, weights}), errc::unsupported,
       "'Softmax'"},
  };
}

}  // namespace

TEST_CASE("an operator of com.microsoft is standard nodes after import", "[onnx]") {
  const message x = info("x", 1, {"batch", "3", "8"});
  const dnnopt::graph g = imported(graph({node("SkipLayerNormalization", {"x", "x", "w"}, {"y", "", "", "sum"},
                                               {float_attribute("epsilon", 0.5F)}, "com.microsoft")},
                                         {x, info("w", 1, {"8"})}, {untyped("y"), untyped("sum")}));
  const std::string text = to_string(g);
  INFO(text);
  CHECK(text.find("%sum float32[batch, 3, 8] = Add(%x, %x)") != std::string::npos);
  CHECK(text.find("= LayerNormalization(%sum, %w) {axis=-1, epsilon=0.5}") != std::string::npos);
}

TEST_CASE("an operator that the caller has is not expanded", "[onnx]") {
  dnnopt::op_set ops = dnnopt::standard_ops();
  ops.add<own_gelu>();
  const message body = one("Gelu", {"x"}, {}, {info("x", 1, {"4"})});
  const dnnopt::graph g = imported(body, ops);
  CHECK(g.node_at(g.topological_order().front()).op == &dnnopt::op_row<own_gelu>);
  CHECK(imported(body).node_at(imported(body).topological_order().front()).op == &dnnopt::op_row<dnnopt::ops::gelu_op>);
}

TEST_CASE("what has no expansion is refused by name", "[onnx]") {
  for (const refused& r : refusals()) {
    INFO(r.name);
    try {
      (void)imported(r.body);
      FAIL_CHECK("accepted");
    } catch (const dnnopt::error& e) {
      INFO(e.what());
      CHECK(e.code() == r.code);
      CHECK(std::string(e.what()).find(r.text) != std::string::npos);
    }
  }
}

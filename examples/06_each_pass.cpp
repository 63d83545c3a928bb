// Prints a small graph before and after each pass of dnnopt: the examples of docs/concepts/passes/.
#include <dnnopt/dnnopt.hpp>
#include <dnnopt/graph_io.hpp>
#include <dnnopt/passes/verify.hpp>
#include <dnnopt/reference/evaluate_node.hpp>

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace {

using dnnopt::value_id;
using integers = std::vector<std::int64_t>;

/// A graph that grows by operator names.
struct drawing {
  dnnopt::op_set ops = dnnopt::standard_ops();
  dnnopt::graph g;

  dnnopt::index_expr symbol(std::string_view name) { return g.expressions().symbol(name, {1, 4096}); }
  value_id input(std::string name, dnnopt::shape dims) {
    return g.add_input(std::move(name), dnnopt::dtype::float32, std::move(dims));
  }
  /// Weights: their numbers do not matter here.
  value_id weights(std::string name, dnnopt::dim_list dims, float content = 0.5F) {
    dnnopt::tensor t(dnnopt::dtype::float32, std::move(dims));
    for (float& number : t.mutable_data<float>()) number = content;
    return g.add_constant(std::move(name), std::move(t));
  }
  value_id number(std::string name, float content) {
    return g.add_constant(std::move(name), dnnopt::tensor::scalar(content));
  }
  value_id list(std::string name, integers content) {
    return g.add_constant(std::move(name),
                          dnnopt::tensor::of<std::int64_t>({static_cast<std::int64_t>(content.size())}, content));
  }
  value_id node(std::string_view op, std::string out, std::vector<value_id> inputs,
                dnnopt::attribute_map attributes = {}) {
    const value_id made = g.add_value(out);
    g.add_node(ops.at("", op), std::move(out), std::move(inputs), {made}, std::move(attributes));
    return made;
  }
};

dnnopt::attribute_map with(std::string name, dnnopt::attribute held) {
  dnnopt::attribute_map map;
  map.set(std::move(name), std::move(held));
  return map;
}

void known_shapes(drawing& d) {
  const value_id x = d.input("x", {d.symbol("batch"), d.symbol("length")});
  const value_id y = d.input("y", {d.symbol("batch"), d.symbol("length"), 768});
  const value_id length = d.node("Gather", "length", {d.node("Shape", "dims", {x}), d.list("one", {1})});
  const value_id wanted = d.node("Concat", "wanted", {d.list("front", {0}), length, d.list("rest", {12, 64})},
                                 with("axis", std::int64_t{0}));
  d.g.add_output(d.node("Reshape", "heads", {y, wanted}));
}

void constants(drawing& d) {
  const value_id x = d.input("x", {d.symbol("batch"), 4});
  const value_id factor = d.node("Add", "factor", {d.number("half", 0.5F), d.number("rest", 1.5F)});
  d.g.add_output(d.node("Mul", "scaled", {x, factor}));
}

void branch(drawing& d) {
  const value_id x = d.input("x", {1, 4});
  const auto body = [&](std::string_view op) {
    auto made = std::make_shared<dnnopt::graph>(d.g.shared_expressions());
    made->name = std::string(op);
    const value_id in = made->add_input("in", dnnopt::dtype::float32, dnnopt::shape{1, 4});
    const value_id out = made->add_value("out");
    made->add_node(d.ops.at("", op), std::string(op), {in}, {out});
    made->add_output(out);
    return dnnopt::subgraph(made);
  };
  dnnopt::attribute_map branches;
  branches.set("then_branch", body("Relu"));
  branches.set("else_branch", body("Tanh"));
  const value_id condition = d.g.add_constant("condition", dnnopt::tensor::scalar(true));
  const value_id y = d.g.add_value("y");
  const dnnopt::node_id made = d.g.add_node(d.ops.at("", "If"), "choice", {condition, x}, {y}, branches);
  d.g.set_captured_begin(made, 1);
  d.g.add_output(y);
}

void identities(drawing& d) {
  const value_id x = d.input("x", {d.symbol("batch"), 4, 4});
  const value_id same = d.node("Transpose", "same", {x}, with("perm", integers{0, 1, 2}));
  const value_id again = d.node("Reshape", "again", {same, d.list("dims", {0, 4, 4})});
  d.g.add_output(d.node("Relu", "y", {again}));
}

void normalized_convolution(drawing& d) {
  const value_id x = d.input("x", {1, 8, 14, 14});
  const value_id filtered = d.node("Conv", "filtered", {x, d.weights("W", {16, 8, 1, 1})});
  d.g.add_output(d.node(
      "BatchNormalization", "y",
      {filtered, d.weights("scale", {16}), d.weights("B", {16}), d.weights("mean", {16}), d.weights("var", {16})}));
}

void transposed_convolution(drawing& d) {
  const value_id x = d.input("x", {1, 16, 14, 14});
  d.g.add_output(d.node("ConvTranspose", "y", {x, d.weights("W", {16, 8, 2, 2})}, with("strides", integers{2, 2})));
}

void dynamic_quantization(drawing& d) {
  const value_id x = d.input("x", {d.symbol("batch"), 384});
  const value_id y = d.g.add_value("y"), scale = d.g.add_value("y_scale"), zero = d.g.add_value("y_zero_point");
  d.g.add_node(d.ops.at("", "DynamicQuantizeLinear"), "y", {x}, {y, scale, zero});
  for (const value_id out : {y, scale, zero}) d.g.add_output(out);
}

void padded_convolution(drawing& d) {
  const value_id x = d.input("x", {1, 8, 14, 14});
  const value_id padded = d.node("Pad", "padded", {x, d.list("amounts", {0, 0, 1, 1, 0, 0, 1, 1})});
  d.g.add_output(d.node("Conv", "y", {padded, d.weights("W", {16, 8, 3, 3})}));
}

void equal_nodes(drawing& d) {
  const value_id x = d.input("x", {d.symbol("batch"), 4});
  d.g.add_output(d.node("Mul", "y", {d.node("Exp", "e", {x}), d.node("Exp", "f", {x})}));
}

void wide_sum(drawing& d) {
  const value_id x = d.input("x", {d.symbol("batch"), 4});
  d.g.add_output(d.node("Sum", "y", std::vector<value_id>(66, x)));
}

void written_out_gelu(drawing& d) {
  const value_id x = d.input("x", {d.symbol("batch"), 4});
  const value_id erf = d.node("Erf", "erf", {d.node("Div", "part", {x, d.number("root", 1.41421356F)})});
  const value_id sum = d.node("Add", "sum", {erf, d.number("one", 1.0F)});
  d.g.add_output(d.node("Mul", "y", {d.node("Mul", "twice", {x, sum}), d.number("half", 0.5F)}));
}

void quantized_product(drawing& d) {
  const auto bytes = [&](std::string name, dnnopt::dtype type, dnnopt::dim_list dims) {
    return d.g.add_constant(std::move(name), dnnopt::tensor(type, std::move(dims)));
  };
  const value_id zero = bytes("zero", dnnopt::dtype::uint8, {});
  const value_id step = d.number("step", 0.5F);
  const value_id x = d.node("QuantizeLinear", "x8", {d.input("x", {16, 64}), step, zero});
  const value_id w = bytes("w8", dnnopt::dtype::int8, {64, 32});
  d.g.add_output(
      d.node("MatMul", "y",
             {d.node("DequantizeLinear", "xf", {x, step, zero}),
              d.node("DequantizeLinear", "wf", {w, d.number("fine", 0.25F), bytes("none", dnnopt::dtype::int8, {})})}));
}

void moved_codes(drawing& d) {
  const value_id zero = d.g.add_constant("zero", dnnopt::tensor(dnnopt::dtype::uint8, {}));
  const value_id step = d.number("step", 0.5F);
  const value_id x = d.g.add_input("x", dnnopt::dtype::uint8, dnnopt::shape{16, 64});
  const value_id turned = d.node("Transpose", "turned", {d.node("DequantizeLinear", "meant", {x, step, zero})});
  d.g.add_output(d.node("QuantizeLinear", "y", {turned, step, zero}));
}

void function_of_codes(drawing& d) {
  const value_id zero = d.g.add_constant("zero", dnnopt::tensor(dnnopt::dtype::uint8, {}));
  const value_id step = d.number("step", 0.5F);
  const value_id x = d.g.add_input("x", dnnopt::dtype::uint8, dnnopt::shape{16, 64});
  const value_id meant = d.node("DequantizeLinear", "meant", {x, step, zero});
  const value_id gate = d.node("QuantizeLinear", "gate", {d.node("Sigmoid", "s", {meant}), step, zero});
  const value_id product = d.node("Mul", "product", {meant, d.node("DequantizeLinear", "g", {gate, step, zero})});
  d.g.add_output(d.node("QuantizeLinear", "y", {product, step, zero}));
}

void rotated(drawing& d) {
  const value_id x = d.input("x", {1, 2, 16, 8});
  const value_id front = d.node("Slice", "front", {x, d.list("zero", {0}), d.list("middle", {4}), d.list("axis", {3})});
  const value_id back = d.node("Slice", "back", {x, d.list("from", {4}), d.list("end", {8}), d.list("last", {3})});
  const value_id turned =
      d.node("Concat", "turned", {d.node("Neg", "minus", {back}), front}, with("axis", std::int64_t{-1}));
  const value_id kept = d.node("Mul", "kept", {x, d.weights("cosines", {1, 1, 16, 8})});
  const value_id moved = d.node("Mul", "moved", {turned, d.weights("sines", {1, 1, 16, 8})});
  d.g.add_output(d.node("Add", "y", {kept, moved}));
}

void written_out_attention(drawing& d) {
  const dnnopt::shape dims{1, 2, 16, 8};
  const value_id q = d.input("q", dims);
  const value_id k = d.input("k", dims);
  const value_id v = d.input("v", dims);
  const value_id turned = d.node("Transpose", "turned", {k}, with("perm", integers{0, 1, 3, 2}));
  const value_id scores =
      d.node("Div", "scores", {d.node("MatMul", "products", {q, turned}), d.number("root", 2.828427F)});
  const value_id shares = d.node("Softmax", "shares", {scores}, with("axis", std::int64_t{-1}));
  d.g.add_output(d.node("MatMul", "y", {shares, v}));
}

void common_factor(drawing& d) {
  const dnnopt::shape dims{d.symbol("batch"), 4};
  const value_id a = d.input("A", dims);
  const value_id b = d.input("B", dims);
  const value_id c = d.input("C", dims);
  d.g.add_output(d.node("Add", "y", {d.node("Mul", "ab", {a, b}), d.node("Mul", "ac", {a, c})}));
}

void siblings(drawing& d) {
  const value_id x = d.input("x", {d.symbol("batch"), 16});
  const value_id q = d.node("Add", "q", {d.node("MatMul", "xQ", {x, d.weights("Q", {16, 8})}), d.weights("q0", {8})});
  const value_id k = d.node("Add", "k", {d.node("MatMul", "xK", {x, d.weights("K", {16, 8})}), d.weights("k0", {8})});
  d.g.add_output(d.node("Mul", "y", {q, k}));
}

void dead_nodes(drawing& d) {
  const value_id x = d.input("x", {d.symbol("batch"), 4});
  (void)d.node("Shape", "dims", {x});
  d.g.add_output(d.node("Relu", "y", {x}));
}

/// A product between a scale and a bias, cut into heads, and a softmax of these.
void layer(drawing& d) {
  const value_id x = d.input("x", {1, 64, 32});
  const value_id scaled = d.node("Mul", "scaled", {x, d.weights("scale", {32})});
  const value_id product = d.node("MatMul", "product", {scaled, d.weights("W", {32, 32})});
  const value_id moved = d.node("Add", "moved", {product, d.weights("bias", {32})});
  const value_id cut = d.node("Reshape", "cut", {moved, d.list("dims", {1, 64, 4, 8})});
  const value_id heads = d.node("Transpose", "heads", {cut}, with("perm", integers{0, 2, 1, 3}));
  d.g.add_output(d.node("Softmax", "y", {heads}, with("axis", std::int64_t{-1})));
}

struct example {
  const char* pass;
  void (*draw)(drawing& d);
};

constexpr example examples[] = {
    {"rdp", known_shapes},
    {"fold_constants", constants},
    {"inline_branches", branch},
    {"remove_identity", identities},
    {"fold_batch_normalization", normalized_convolution},
    {"split_transposed_convolution", transposed_convolution},
    {"share_reductions", dynamic_quantization},
    {"fold_padding", padded_convolution},
    {"cancel_quantization", moved_codes},
    {"look_up_codes", function_of_codes},
    {"merge_equal", equal_nodes},
    {"recognize", written_out_gelu},
    {"recognize_integer_products", quantized_product},
    {"recognize_rotary", rotated},
    {"recognize_attention", written_out_attention},
    {"rewrite", common_factor},
    {"merge_siblings", siblings},
    {"remove_dead", dead_nodes},
    {"split_wide", wide_sum},
    {"fuse_epilogue", layer},
    {"fuse_published", layer},
    {"fuse_operators", layer},
    {"fuse_views", layer},
    {"fuse", layer},
};

}  // namespace

int main() {
  dnnopt::pass_environment environment;
  environment.evaluate = &dnnopt::reference::evaluate_node;
  environment.integer_products = true;  // as on a device that multiplies bytes
  for (const example& one : examples) {
    drawing d;
    d.g.name = one.pass;
    one.draw(d);
    // What later passes see has shapes.
    if (one.pass != std::string_view("rdp")) (void)dnnopt::run_passes(d.g, {"rdp"}, environment);
    std::printf("== %s\n%s", one.pass, dnnopt::to_string(d.g).c_str());
    const std::vector<dnnopt::pass_report> reports = dnnopt::run_passes(d.g, {one.pass}, environment);
    dnnopt::verify(d.g, one.pass);
    std::printf("-- %zu edits\n", reports.front().edits);
    // A fusion plan stands beside the graph, which it leaves as it is.
    if (d.g.blocks().empty()) {
      std::printf("%s", dnnopt::to_string(d.g).c_str());
      continue;
    }
    for (const dnnopt::fused_block& block : d.g.blocks()) {
      std::printf("  one kernel:");
      for (const dnnopt::node_id id : block.members) std::printf(" %s", std::string(d.g.node_at(id).op->name).c_str());
      std::printf(" -> ");
      for (const value_id out : block.outputs) std::printf("%%%s", d.g.value_at(out).name.c_str());
      std::printf("\n");
      for (const std::string& why : block.why_not) std::printf("    alone: %s\n", why.c_str());
    }
  }
}

// Owns small networks, one for each operator and each family of kernels, whose dims are letters: a letter can be 0.
#ifndef DNNOPT_TESTS_PROPERTY_EMPTY_NETWORKS_HPP
#define DNNOPT_TESTS_PROPERTY_EMPTY_NETWORKS_HPP

#include <algorithm>
#include <cstdint>
#include <map>
#include <random>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <dnnopt/graph.hpp>
#include <dnnopt/model.hpp>
#include <dnnopt/named_tensors.hpp>
#include <dnnopt/ops/standard.hpp>

namespace testing {

using ints = std::vector<std::int64_t>;

/// Attributes by name.
[[nodiscard]] inline dnnopt::attribute_map with(std::vector<std::pair<std::string, dnnopt::attribute>> held) {
  dnnopt::attribute_map a;
  for (auto& [name, value] : held) a.set(name, std::move(value));
  return a;
}

/// One operator: `reads` and `writes` are names, "" for what is absent.
struct lettered_node {
  std::string op;
  std::vector<std::string> reads;
  std::vector<std::string> writes;
  dnnopt::attribute_map attributes{};
};

/// A network. Inputs are "name: type dims", where a dim is a number or a letter ("x: f a b 3"); constants are
/// "name= integers" or "name~ dims" (floats). All that the last node writes are outputs.
struct lettered_network {
  std::string name;
  std::vector<std::string> values;
  std::vector<lettered_node> nodes;

  struct input {
    std::string name;
    dnnopt::dtype type;
    std::vector<std::string> dims;
  };

  [[nodiscard]] std::vector<input> inputs() const {
    std::vector<input> found;
    for (const std::string& text : values) {
      const std::size_t colon = text.find(':');
      if (colon == std::string::npos) continue;
      std::istringstream words(text.substr(colon + 1));
      input one{text.substr(0, colon), dnnopt::dtype::undefined, {}};
      std::string word;
      words >> word;
      one.type = types().at(word);
      while (words >> word) one.dims.push_back(word);
      found.push_back(std::move(one));
    }
    return found;
  }
  [[nodiscard]] static bool is_letter(const std::string& dim) { return dim[0] >= 'a' && dim[0] <= 'z'; }
  [[nodiscard]] std::vector<std::string> letters() const {
    std::vector<std::string> found;
    for (const input& one : inputs())
      for (const std::string& dim : one.dims)
        if (is_letter(dim) && std::find(found.begin(), found.end(), dim) == found.end()) found.push_back(dim);
    return found;
  }
  /// Extents of all letters: odd, and not equal to each other.
  [[nodiscard]] std::map<std::string, std::int64_t> usual() const {
    std::map<std::string, std::int64_t> sizes;
    std::int64_t next = 3;
    for (const std::string& letter : letters()) sizes[letter] = next, next += 2;
    return sizes;
  }

  /// The model with the extents that `sizes` has; other letters are symbols.
  [[nodiscard]] dnnopt::model model(const std::map<std::string, std::int64_t>& sizes) const {
    dnnopt::op_set ops = dnnopt::standard_ops();
    dnnopt::graph g;
    g.name = name;
    g.opsets[""] = 23;
    std::map<std::string, dnnopt::value_id> named{{"", dnnopt::no_value}};
    for (const input& one : inputs()) {
      dnnopt::shape dims;
      for (const std::string& dim : one.dims) {
        const auto size = sizes.find(dim);
        dims.push_back(!is_letter(dim)       ? dnnopt::index_expr(std::stoll(dim))
                       : size != sizes.end() ? dnnopt::index_expr(size->second)
                                             : g.expressions().symbol(dim));
      }
      named[one.name] = g.add_input(one.name, one.type, dims);
    }
    for (const std::string& text : values)
      if (const std::size_t at = text.find_first_of("=~"); at != std::string::npos) {
        std::istringstream words(text.substr(at + 1));
        ints numbers;
        for (std::int64_t number = 0; words >> number;) numbers.push_back(number);
        const std::string constant = text.substr(0, at);
        named[constant] = g.add_constant(
            constant, text[at] == '='
                          ? dnnopt::tensor::of<std::int64_t>({static_cast<std::int64_t>(numbers.size())}, numbers)
                          : filled(dnnopt::dtype::float32, numbers, 7));
      }
    for (const lettered_node& n : nodes) {
      std::vector<dnnopt::value_id> reads;
      std::vector<dnnopt::value_id> writes;
      for (const std::string& r : n.reads) reads.push_back(named.at(r));
      for (const std::string& w : n.writes) writes.push_back(w.empty() ? dnnopt::no_value : named[w] = g.add_value(w));
      g.add_node(ops.at("", n.op), n.op + "_" + n.writes[0], std::move(reads), std::move(writes), n.attributes);
    }
    for (const std::string& w : nodes.back().writes)
      if (!w.empty()) g.add_output(named.at(w));
    return {std::move(g), std::move(ops), {}, {}, {}, 0};
  }

  /// Inputs of those extents.
  [[nodiscard]] dnnopt::named_tensors tensors(const std::map<std::string, std::int64_t>& sizes) const {
    dnnopt::named_tensors made;
    std::uint32_t seed = 1;
    for (const input& one : inputs()) {
      dnnopt::dim_list dims;
      for (const std::string& dim : one.dims) dims.push_back(is_letter(dim) ? sizes.at(dim) : std::stoll(dim));
      made.add(one.name, filled(one.type, std::move(dims), seed++));
    }
    return made;
  }

 private:
  [[nodiscard]] static const std::map<std::string, dnnopt::dtype>& types() {
    static const std::map<std::string, dnnopt::dtype> known{{"f", dnnopt::dtype::float32},
                                                            {"l", dnnopt::dtype::int64},
                                                            {"i", dnnopt::dtype::int32},
                                                            {"u", dnnopt::dtype::uint8},
                                                            {"b", dnnopt::dtype::boolean}};
    return known;
  }
  /// Floats of both signs; integers, which may be indices, are 0 and 1.
  [[nodiscard]] static dnnopt::tensor filled(dnnopt::dtype type, dnnopt::dim_list dims, std::uint32_t seed) {
    dnnopt::tensor t(type, std::move(dims));
    std::mt19937 engine(seed);
    const auto bytes = t.mutable_bytes();
    const std::size_t width = dnnopt::size_of(type);
    for (std::size_t i = 0; i * width < bytes.size(); ++i) {
      if (type == dnnopt::dtype::float32)
        t.mutable_data<float>()[i] = static_cast<float>(static_cast<int>(engine() % 64) - 32) / 16.0f;
      else
        bytes[i * width] = static_cast<std::byte>(engine() % 2);
    }
    return t;
  }
};

/// One network for each operator with a kernel and for each family of kernels.
[[nodiscard]] inline std::vector<lettered_network> lettered_networks() {
  std::vector<lettered_network> all;
  const auto add = [&](std::string name, std::vector<std::string> values, std::vector<lettered_node> nodes) {
    all.push_back({std::move(name), std::move(values), std::move(nodes)});
  };
  const auto one = [&](const std::string& op, std::vector<std::string> values, dnnopt::attribute_map attributes = {},
                       std::vector<std::string> writes = {"y"}) {
    std::vector<std::string> reads;
    for (const std::string& text : values) reads.push_back(text.substr(0, text.find_first_of(":=~")));
    add(op, std::move(values), {{op, std::move(reads), std::move(writes), std::move(attributes)}});
  };
  // Element-wise operators.
  for (const char* op : {"Relu", "Exp", "Gelu", "Cast", "Identity"})
    one(op, {"x: f a b"}, std::string(op) == "Cast" ? with({{"to", std::int64_t{7}}}) : dnnopt::attribute_map());
  one("Add", {"x: f a b", "z: f b"});
  one("Where", {"c: b a b", "x: f b", "z: f a 1"});
  one("Max", {"x: f a b", "z: f b", "w: f a 1"});
  one("Mean", {"x: f a b", "z: f b", "w: f a 1"});
  one("PRelu", {"x: f a b c", "z: f b 1"});
  // Views and reads by index.
  one("Transpose", {"x: f a b c"}, with({{"perm", ints{2, 0, 1}}}));
  one("Flatten", {"x: f a b c"}, with({{"axis", std::int64_t{2}}}));
  one("Reshape", {"x: f a b 4", "to= 0 0 2 2"});
  one("Unsqueeze", {"x: f a b", "axes= 1"});
  one("Concat", {"x: f a c", "z: f b c", "w: f 2 c"}, with({{"axis", std::int64_t{0}}}));
  one("Slice", {"x: f a b", "starts= 1", "ends= 100", "axes= 1", "steps= 2"});
  one("Pad", {"x: f a b", "pads= 1 0 2 0"});
  one("Expand", {"x: f a 1", "to= 1 3"});
  one("Tile", {"x: f a b", "repeats= 2 3"});
  one("DepthToSpace", {"x: f a 8 b c"}, with({{"blocksize", std::int64_t{2}}}));
  one("SpaceToDepth", {"x: f a b 2 4"}, with({{"blocksize", std::int64_t{2}}}));
  one("Split", {"x: f a b", "parts= 0 2 3"}, with({{"axis", std::int64_t{1}}}), {"y", "z", "w"});
  one("Gather", {"x: f a 3", "i: l c"}, with({{"axis", std::int64_t{1}}}));
  one("GatherElements", {"x: f a 3", "i: l a b"}, with({{"axis", std::int64_t{1}}}));
  one("GatherND", {"x: f 2 3 a", "i: l b 2"});
  one("ScatterElements", {"x: f 3 a", "i: l b a", "u: f b a"});
  one("ScatterND", {"x: f 3 a", "i: l b 1", "u: f b a"});
  one("Trilu", {"x: f a b c"});
  one("OneHot", {"x: l a", "depth= 3", "values= 0 1"});
  add("view chain", {"x: f a b c", "to= 0 -1"},
      {{"Transpose", {"x"}, {"t"}, with({{"perm", ints{0, 2, 1}}})},
       {"Relu", {"t"}, {"r"}},
       {"Flatten", {"r"}, {"y"}, with({{"axis", std::int64_t{1}}})}});
  // Products.
  one("MatMul", {"x: f a b", "z: f b c"});
  one("Gemm", {"x: f a b", "z: f c b", "w: f c"}, with({{"transB", std::int64_t{1}}}));
  one("MatMulInteger", {"x: u a b", "z: u b c"});
  one("Einsum", {"x: f a b", "z: f b c"}, with({{"equation", std::string("ij,jk->ik")}}));
  add("batched product with bias", {"x: f d a b", "z: f b c", "w: f c"},
      {{"MatMul", {"x", "z"}, {"m"}}, {"Add", {"m", "w"}, {"n"}}, {"Relu", {"n"}, {"y"}}});
  add("product of constant weights", {"x: f a b 16", "z~ 16 24", "w~ 24"},
      {{"MatMul", {"x", "z"}, {"m"}}, {"Add", {"m", "w"}, {"y"}}});
  add("chain of products", {"x: f a 32", "z~ 32 64", "w~ 64 32"},
      {{"MatMul", {"x", "z"}, {"m"}}, {"Relu", {"m"}, {"r"}}, {"MatMul", {"r", "w"}, {"y"}}});
  add("attention by hand", {"q: f d a 8", "k: f d 8 b", "v: f d b 8"},
      {{"MatMul", {"q", "k"}, {"s"}}, {"Softmax", {"s"}, {"p"}}, {"MatMul", {"p", "v"}, {"y"}}});
  one("Attention", {"q: f d 2 a 8", "k: f d 2 b 8", "v: f d 2 b 8"});
  // Convolutions and windows.
  const dnnopt::attribute_map window = with({{"kernel_shape", ints{3, 3}}, {"pads", ints{1, 1, 1, 1}}});
  one("Conv", {"x: f a 4 b c", "w~ 8 4 3 3", "z~ 8"}, window);
  add("depthwise convolution", {"x: f a 8 b c", "w~ 8 1 3 3"},
      {{"Conv",
        {"x", "w"},
        {"m"},
        with({{"kernel_shape", ints{3, 3}}, {"pads", ints{1, 1, 1, 1}}, {"group", std::int64_t{8}}})},
       {"Relu", {"m"}, {"y"}}});
  add("pointwise convolution", {"x: f a 8 b c", "w~ 16 8 1 1"},
      {{"Conv", {"x", "w"}, {"m"}, with({{"kernel_shape", ints{1, 1}}})}, {"Relu", {"m"}, {"y"}}});
  one("ConvTranspose", {"x: f a 4 b c", "w~ 4 3 3 3"}, with({{"strides", ints{2, 2}}}));
  one("MaxPool", {"x: f a d b c"}, window);
  one("AveragePool", {"x: f a d b c"}, window);
  one("LpPool", {"x: f a d b c"}, window);
  for (const char* op : {"GlobalAveragePool", "GlobalMaxPool"}) one(op, {"x: f a d 4 4"});
  add("Resize", {"x: f a d 4 4", "s~ 0", "sizes= 1 1"},
      {{"Resize", {"x", "", "", "sizes"}, {"y"}, with({{"mode", std::string("nearest")}, {"axes", ints{2, 3}}})}});
  add("Resize by a line", {"x: f a d 4 4", "sizes= 7 9"},
      {{"Resize", {"x", "", "", "sizes"}, {"y"}, with({{"mode", std::string("linear")}, {"axes", ints{2, 3}}})}});
  one("GlobalLpPool", {"x: f a d 4 4"});
  one("ConvInteger", {"x: u a 4 b c", "w: u 8 4 3 3"}, window);
  one("GridSample", {"x: f a d 4 4", "g: f a b c 2"});
  // Rows.
  for (const char* op : {"ReduceSum", "ReduceMean", "ReduceProd", "ReduceMax", "ReduceMin", "ReduceL1", "ReduceL2",
                         "ReduceSumSquare", "ReduceLogSum", "ReduceLogSumExp"}) {
    one(op, {"x: f a b c", "axes= 1"});
    add(std::string(op) + " of all", {"x: f a b c"}, {{op, {"x"}, {"y"}, with({{"keepdims", std::int64_t{0}}})}});
  }
  for (const char* op : {"ArgMax", "ArgMin"}) one(op, {"x: f a b c"}, with({{"axis", std::int64_t{1}}}));
  one("CumSum", {"x: f a b", "axis= 1"});
  for (const char* op : {"Softmax", "LogSoftmax", "Hardmax"})
    one(op, {"x: f a b c"}, with({{"axis", std::int64_t{1}}}));
  one("LayerNormalization", {"x: f a b c", "s: f c", "t: f c"});
  one("RMSNormalization", {"x: f a b c", "s: f c"});
  one("InstanceNormalization", {"x: f a b c", "s: f b", "t: f b"});
  one("GroupNormalization", {"x: f a 4 c", "s~ 4", "t~ 4"}, with({{"num_groups", std::int64_t{2}}}));
  one("BatchNormalization", {"x: f a b c", "s: f b", "t: f b", "m: f b", "v: f b"});
  one("LRN", {"x: f a b c 2"}, with({{"size", std::int64_t{3}}}));
  one("LpNormalization", {"x: f a b"});
  one("MeanVarianceNormalization", {"x: f a b c d"});
  add("softmax of a sum", {"x: f a b", "z: f a b"},
      {{"Add", {"x", "z"}, {"s"}}, {"Softmax", {"s"}, {"p"}}, {"Mul", {"p", "x"}, {"y"}}});
  // What holds state, sorts or generates.
  one("LSTM", {"x: f a b 4", "w~ 1 12 4", "r~ 1 12 3"}, with({{"hidden_size", std::int64_t{3}}}), {"y", "h", "c"});
  one("GRU", {"x: f a b 4", "w~ 1 9 4", "r~ 1 9 3"}, with({{"hidden_size", std::int64_t{3}}}), {"y", "h"});
  one("RNN", {"x: f a b 4", "w~ 1 3 4", "r~ 1 3 3"}, with({{"hidden_size", std::int64_t{3}}}), {"y", "h"});
  one("TopK", {"x: f a 4", "k= 2"}, {}, {"y", "i"});
  add("TopK of none", {"x: f a b", "k= 0"}, {{"TopK", {"x", "k"}, {"y", "i"}}});
  one("CumProd", {"x: f a b", "axis= 1"});
  one("Det", {"x: f a b 3 3"});
  one("DFT", {"x: f a b 2", "", "axis= 1"});
  one("ReverseSequence", {"x: f a b c", "lengths: l b"});
  one("NegativeLogLikelihoodLoss", {"x: f a 3 b", "t: l a b"}, with({{"reduction", std::string("none")}}));
  one("SoftmaxCrossEntropyLoss", {"x: f a 3 b", "t: l a b"}, with({{"reduction", std::string("sum")}}));
  one("RotaryEmbedding", {"x: f a 2 b 8", "cos: f a b 4", "sin: f a b 4"});
  one("NonZero", {"x: f a b"});
  one("Compress", {"x: f a b", "c: b a"}, with({{"axis", std::int64_t{0}}}));
  one("EyeLike", {"x: f a b"});
  one("DynamicQuantizeLinear", {"x: f a b"}, {}, {"y", "s", "z"});
  add("Shape and reshape", {"x: f a b c", "first= 0", "rest= -1"},
      {{"Shape", {"x"}, {"s"}},
       {"Gather", {"s", "first"}, {"n"}},
       {"Concat", {"n", "rest"}, {"to"}, with({{"axis", std::int64_t{0}}})},
       {"Relu", {"x"}, {"r"}},
       {"Reshape", {"r", "to"}, {"y"}}});
  return all;
}

}  // namespace testing

#endif  // DNNOPT_TESTS_PROPERTY_EMPTY_NETWORKS_HPP

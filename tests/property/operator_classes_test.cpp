// Perturbs elements of inputs in the reference backend and checks that outputs depend on them as operators' mapping
// types and layout classes claim.
#include <cstdint>
#include <limits>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <catch2/catch.hpp>

#include <dnnopt/ops/mapping_table.hpp>
#include <dnnopt/ops/standard.hpp>
#include <dnnopt/reference/table.hpp>

namespace {

using dnnopt::attribute;
using dnnopt::dim_list;
using dnnopt::dtype;
using dnnopt::mapping_type;
using dnnopt::tensor;
using ints = std::vector<std::int64_t>;

/// An operator with attributes and inputs.
struct instance {
  std::string_view name;
  std::vector<tensor> inputs;
  std::vector<std::pair<std::string, attribute>> attributes = {};
};

class sample {
 public:
  explicit sample(std::uint32_t seed) : random_(seed) {}
  /// Floats between 0.2 and 0.8, where every function of one operand is smooth or defined as NaN throughout.
  tensor reals(dim_list dims) {
    tensor t(dtype::float32, std::move(dims));
    for (float& v : t.mutable_data<float>()) v = std::uniform_real_distribution<float>(0.2F, 0.8F)(random_);
    return t;
  }
  tensor flags(dim_list dims) {
    tensor t(dtype::boolean, std::move(dims));
    for (bool& v : t.mutable_data<bool>()) v = std::uniform_int_distribution<int>(0, 1)(random_) != 0;
    return t;
  }
  tensor bytes(dim_list dims) {
    tensor t(dtype::uint8, std::move(dims));
    for (std::uint8_t& v : t.mutable_data<std::uint8_t>())
      v = static_cast<std::uint8_t>(std::uniform_int_distribution<int>(1, 200)(random_));
    return t;
  }

 private:
  std::mt19937 random_;
};

tensor numbers(ints values) {
  const auto count = static_cast<std::int64_t>(values.size());
  return tensor::of<std::int64_t>({count}, values);
}

/// The tensor with element `at` changed.
tensor changed(const tensor& t, std::size_t at) {
  tensor result = t;
  if (t.type() == dtype::float32)
    result.mutable_data<float>()[at] += 0.125F;
  else if (t.type() == dtype::boolean)
    result.mutable_data<bool>()[at] = !result.mutable_data<bool>()[at];
  else
    result.mutable_data<std::uint8_t>()[at] =
        static_cast<std::uint8_t>(result.mutable_data<std::uint8_t>()[at] ^ 0x2BU);
  return result;
}

/// Elements of output 0 that differ.
std::vector<std::size_t> differences(const tensor& a, const tensor& b) {
  REQUIRE(a.dims() == b.dims());
  std::vector<std::size_t> result;
  const std::size_t size = dnnopt::size_of(a.type());
  for (std::size_t i = 0; i < static_cast<std::size_t>(a.size()); ++i)
    if (!std::ranges::equal(a.bytes().subspan(i * size, size), b.bytes().subspan(i * size, size))) result.push_back(i);
  return result;
}

/// What a run of perturbations showed of one operator.
struct evidence {
  bool aggregates = false;  ///< an output element depends on several elements of one input
};

/// Checks every pair of an input that holds data and output 0.
evidence check(const dnnopt::op_set& set, const instance& i) {
  CAPTURE(i.name);
  const dnnopt::op_info& op = set.at("", i.name);
  dnnopt::attribute_map attributes;
  for (const auto& [name, value] : i.attributes) attributes.set(name, value);
  const auto evaluate = [&](const std::vector<tensor>& inputs) {
    return dnnopt::reference::evaluate_operator(op, attributes, inputs, op.arity.least_outputs).at(0);
  };
  dnnopt::expr_context expressions;
  std::vector<dnnopt::value_facts> values(i.inputs.size());
  std::vector<const dnnopt::value_facts*> pointers;
  for (std::size_t k = 0; k < values.size(); ++k) {
    values[k].type = i.inputs[k].type();
    values[k].dims = dnnopt::to_shape(i.inputs[k].dims());
    if (i.inputs[k].type() == dtype::int64) values[k].constant = i.inputs[k];
    pointers.push_back(i.inputs[k].empty() ? nullptr : &values[k]);
  }
  dnnopt::node_facts facts;
  facts.attributes = &attributes;
  facts.inputs = pointers;
  facts.output_count = 1;
  facts.expressions = &expressions;
  facts.scope = "node";

  const tensor before = evaluate(i.inputs);
  evidence seen;
  for (std::size_t k = 0; k < i.inputs.size(); ++k) {
    if (i.inputs[k].empty() || i.inputs[k].type() == dtype::int64) continue;  // absent, or indices and sizes: no data
    CAPTURE(k);
    const mapping_type claim = dnnopt::mapping_of(op, facts, k, 0);
    std::vector<std::size_t> sources(static_cast<std::size_t>(before.size()), 0);
    for (std::size_t at = 0; at < static_cast<std::size_t>(i.inputs[k].size()); ++at) {
      std::vector<tensor> inputs = i.inputs;
      inputs[k] = changed(inputs[k], at);
      const auto reached = differences(before, evaluate(inputs));
      for (const std::size_t to : reached) ++sources[to];
      CAPTURE(at, reached);
      // One-to-One, Reorganize and Shuffle pair elements; the other two let an input element reach many.
      if (claim != mapping_type::one_to_many && claim != mapping_type::many_to_many) CHECK(reached.size() <= 1);
      // A free layout and no dependence on the input's: the element at the same index, whatever the strides are.
      if (dnnopt::layout_of(op, facts) == dnnopt::layout_class::ili_variable && claim == mapping_type::one_to_one)
        for (const std::size_t to : reached) CHECK(to == at);
    }
    for (const std::size_t count : sources) {
      if (claim != mapping_type::many_to_many) CHECK(count <= 1);
      seen.aggregates = seen.aggregates || count > 1;
    }
  }
  return seen;
}

}  // namespace

TEST_CASE("element-wise operators depend on the element at the same index only") {
  const dnnopt::op_set set = dnnopt::standard_ops();
  sample data(Catch::rngSeed());
  int checked = 0;
  for (const dnnopt::op_info* op : set.rows()) {
    if (op->kind != dnnopt::computation_kind::element_wise || op->scalar.empty() || op->arity.least_inputs > 2)
      continue;
    if (op->name == "Cast") continue;  // needs an attribute; below
    const bool logical = op->name == "And" || op->name == "Or" || op->name == "Xor" || op->name == "Not";
    const bool bitwise = op->name.starts_with("Bit");
    std::vector<tensor> inputs;
    for (std::size_t k = 0; k < op->arity.least_inputs; ++k)
      inputs.push_back(logical ? data.flags({2, 3}) : bitwise ? data.bytes({2, 3}) : data.reals({2, 3}));
    std::vector<std::pair<std::string, attribute>> attributes;
    if (op->name == "BitShift") {
      attributes.emplace_back("direction", std::string("LEFT"));
      inputs[1] = tensor::of<std::uint8_t>({2, 3}, std::vector<std::uint8_t>{0, 1, 2, 3, 1, 2});
    }
    check(set, {op->name, inputs, attributes});
    ++checked;
    // The same with a broadcast operand.
    if (inputs.size() < 2 || op->name == "SwiGLU" || op->name == "CastLike" || op->name == "BitShift") continue;
    inputs[1] = logical ? data.flags({3}) : bitwise ? data.bytes({3}) : data.reals({3});
    check(set, {op->name, inputs, attributes});
  }
  CHECK(checked > 60);
  check(set, {"Cast", {data.reals({2, 3})}, {{"to", std::int64_t{11}}}});
  check(set, {"Where", {data.flags({2, 3}), data.reals({3}), data.reals({2, 1})}});
  check(set, {"Clip", {data.reals({2, 3}), tensor::scalar(0.3F), tensor::scalar(0.7F)}});
  check(set, {"Max", {data.reals({2, 3}), data.reals({3}), data.reals({1})}});
  check(set, {"BatchNormalization",
              {data.reals({2, 3, 2}), data.reals({3}), data.reals({3}), data.reals({3}), data.reals({3})}});
  check(set, {"QuantizeLinear", {data.reals({2, 3}), data.reals({3})}});
  check(set, {"DequantizeLinear", {data.bytes({2, 3}), data.reals({3})}});
}

TEST_CASE("operators that move elements pair them as their mapping type claims") {
  const dnnopt::op_set set = dnnopt::standard_ops();
  sample data(Catch::rngSeed());
  const std::vector<instance> instances{
      {"Identity", {data.reals({2, 3})}},
      {"Reshape", {data.reals({2, 3}), numbers({3, 2})}},
      {"Flatten", {data.reals({2, 3, 2})}},
      {"Squeeze", {data.reals({2, 1, 3}), numbers({1})}},
      {"Unsqueeze", {data.reals({2, 3}), numbers({0})}},
      {"Transpose", {data.reals({2, 3, 2})}, {{"perm", ints{2, 0, 1}}}},
      {"DepthToSpace", {data.reals({1, 4, 2, 2})}, {{"blocksize", std::int64_t{2}}}},
      {"SpaceToDepth", {data.reals({1, 1, 4, 4})}, {{"blocksize", std::int64_t{2}}}},
      {"Concat", {data.reals({2, 3}), data.reals({2, 1})}, {{"axis", std::int64_t{1}}}},
      {"Slice", {data.reals({4, 3}), numbers({1}), numbers({4}), numbers({0}), numbers({2})}},
      {"Expand", {data.reals({2, 1}), numbers({2, 3})}},
      {"Tile", {data.reals({2, 3}), numbers({2, 1})}},
      {"Pad", {data.reals({2, 3}), numbers({1, 0, 0, 2})}},
      {"Gather", {data.reals({4, 2}), numbers({3, 1, 3})}},
      {"Trilu", {data.reals({3, 3})}},
  };
  for (const instance& i : instances) check(set, i);
}

TEST_CASE("operators that claim Many-to-Many aggregate elements") {
  const dnnopt::op_set set = dnnopt::standard_ops();
  sample data(Catch::rngSeed());
  const std::vector<instance> instances{
      {"ArgMax", {data.reals({2, 3})}},
      {"AveragePool", {data.reals({1, 2, 4})}, {{"kernel_shape", ints{3}}}},
      {"BatchNormalization",
       {data.reals({2, 3, 2}), data.reals({3}), data.reals({3}), data.reals({3}), data.reals({3})},
       {{"training_mode", std::int64_t{1}}}},
      {"Conv", {data.reals({1, 2, 3, 3}), data.reals({2, 2, 2, 2}), data.reals({2})}},
      {"ConvTranspose", {data.reals({1, 2, 3}), data.reals({2, 2, 2}), data.reals({2})}},
      {"CumSum", {data.reals({2, 3}), numbers({1}).reshaped({})}},
      {"Det", {data.reals({2, 3, 3})}},
      {"Einsum", {data.reals({2, 3}), data.reals({3, 2})}, {{"equation", std::string("ij,jk->ik")}}},
      {"Gemm", {data.reals({2, 3}), data.reals({3, 2}), data.reals({2})}},
      {"GlobalAveragePool", {data.reals({1, 2, 2, 2})}},
      {"GroupNormalization",
       {data.reals({1, 4, 2}), data.reals({4}), data.reals({4})},
       {{"num_groups", std::int64_t{2}}}},
      {"InstanceNormalization", {data.reals({1, 2, 3}), data.reals({2}), data.reals({2})}},
      {"LRN", {data.reals({1, 3, 2})}, {{"size", std::int64_t{3}}, {"alpha", 1.0F}}},
      {"LayerNormalization", {data.reals({2, 3}), data.reals({3}), data.reals({3})}},
      {"LogSoftmax", {data.reals({2, 3})}},
      {"LpNormalization", {data.reals({2, 3})}},
      {"LpPool", {data.reals({1, 2, 4})}, {{"kernel_shape", ints{3}}}},
      {"MatMul", {data.reals({2, 3}), data.reals({3, 2})}},
      {"MaxPool", {data.reals({1, 2, 4})}, {{"kernel_shape", ints{2}}}},
      {"MeanVarianceNormalization", {data.reals({2, 2, 2, 2})}},
      {"RMSNormalization", {data.reals({2, 3}), data.reals({3})}},
      {"ReduceL1", {data.reals({2, 3})}},
      {"ReduceL2", {data.reals({2, 3})}},
      {"ReduceLogSum", {data.reals({2, 3})}},
      {"ReduceLogSumExp", {data.reals({2, 3})}},
      {"ReduceMean", {data.reals({2, 3}), numbers({1})}},
      {"ReduceProd", {data.reals({2, 3})}},
      {"ReduceSum", {data.reals({2, 3}), numbers({0})}},
      {"ReduceSumSquare", {data.reals({2, 3})}},
      {"Softmax", {data.reals({2, 3})}},
      {"Attention", {data.reals({1, 1, 2, 3}), data.reals({1, 1, 2, 3}), data.reals({1, 1, 2, 3})}},
      {"RotaryEmbedding", {data.reals({1, 1, 2, 4}), data.reals({1, 2, 2}), data.reals({1, 2, 2})}},
  };
  for (const instance& i : instances) {
    CAPTURE(i.name);
    const evidence seen = check(set, i);
    // An element that wins a maximum may hide the others; everything else shows what it aggregates.
    if (i.name != "ArgMax" && i.name != "MaxPool") CHECK(seen.aggregates);
    const auto& op = set.at("", i.name);
    if (i.name != "BatchNormalization") CHECK(op.layout == dnnopt::layout_class::ild_variable);
  }
}

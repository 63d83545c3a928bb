// Runs structure operators on random shapes and attributes: inference and index maps must agree with the reference
// evaluation, whether inputs are constants, known by their dims only, or of symbolic dims.
#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <catch2/catch.hpp>

#include <dnnopt/ops/extend.hpp>
#include <dnnopt/ops/gather.hpp>
#include <dnnopt/ops/generator.hpp>
#include <dnnopt/ops/permute.hpp>
#include <dnnopt/ops/reshape.hpp>
#include <dnnopt/ops/resize.hpp>
#include <dnnopt/ops/scatter.hpp>
#include <dnnopt/ops/shape_query.hpp>
#include <dnnopt/ops/slice.hpp>
#include <dnnopt/reference/generator.hpp>
#include <dnnopt/reference/indexing.hpp>
#include <dnnopt/reference/resize.hpp>
#include <dnnopt/reference/view.hpp>

#include "support/operator_checks.hpp"

namespace {

using dnnopt::attribute_map;
using dnnopt::dim_list;
using dnnopt::dtype;
using dnnopt::tensor;
using ints = std::vector<std::int64_t>;

/// One random operator: its row, attributes, inputs and number of outputs.
struct random_case {
  const dnnopt::op_info* op = nullptr;
  attribute_map attributes;
  std::vector<tensor> inputs;
  std::size_t outputs = 1;
};

class draw {
 public:
  explicit draw(std::uint32_t seed) : random_(seed) {}
  std::int64_t number(std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(random_);
  }
  bool coin() { return number(0, 1) == 1; }
  template <class T>
  T one_of(std::vector<T> choices) {
    return choices[static_cast<std::size_t>(number(0, static_cast<std::int64_t>(choices.size()) - 1))];
  }
  dim_list dims(std::size_t least, std::size_t most, std::int64_t smallest = 1) {
    dim_list d(static_cast<std::size_t>(number(static_cast<std::int64_t>(least), static_cast<std::int64_t>(most))));
    for (std::int64_t& dim : d) dim = number(smallest, 4);
    return d;
  }
  /// A tensor whose elements all differ, so that an element tells where it came from.
  tensor distinct(dim_list d) {
    const dtype type = one_of<dtype>({dtype::float32, dtype::int64, dtype::int16, dtype::float64});
    tensor t(type, std::move(d));
    std::vector<std::int64_t> order(static_cast<std::size_t>(t.size()));
    for (std::size_t k = 0; k < order.size(); ++k) order[k] = static_cast<std::int64_t>(k) + 1;
    return dnnopt::reference::store_all<std::int64_t>(type, t.dims(), order);
  }
  ints permutation(std::size_t rank) {
    ints p(rank);
    for (std::size_t k = 0; k < rank; ++k) p[k] = static_cast<std::int64_t>(k);
    std::shuffle(p.begin(), p.end(), random_);
    return p;
  }
  std::int64_t maybe_negative(std::int64_t index, std::int64_t dim) { return coin() ? index - dim : index; }

 private:
  std::mt19937 random_;
};

tensor list(const ints& values) { return tensor::of<std::int64_t>({static_cast<std::int64_t>(values.size())}, values); }

template <class Op>
random_case of(std::vector<tensor> inputs) {
  random_case c;
  c.op = &dnnopt::op_row<Op>;
  c.inputs = std::move(inputs);
  return c;
}

std::vector<random_case> cases(std::uint32_t seed) {
  namespace ops = dnnopt::ops;
  draw d(seed);
  std::vector<random_case> all;
  const auto rank_of = [](const tensor& t) { return static_cast<std::int64_t>(t.rank()); };

  all.push_back(of<ops::identity_op>({d.distinct(d.dims(0, 4))}));
  {
    all.push_back(of<ops::shape_op>({d.distinct(d.dims(0, 4))}));
    all.back().attributes.set("start", d.number(-3, 3));
    if (d.coin()) all.back().attributes.set("end", d.number(-3, 5));
  }
  {  // Reshape: the factors of the dims dealt out anew, with a 0 and a -1 where they fit
    const tensor x = d.distinct(d.dims(1, 4));
    ints wanted;
    std::int64_t rest = x.size();
    while (rest > 1 && wanted.size() < 3) {
      ints divisors;
      for (std::int64_t k = 1; k <= rest; ++k)
        if (rest % k == 0) divisors.push_back(k);
      wanted.push_back(d.one_of(divisors));
      rest /= wanted.back();
    }
    wanted.push_back(rest);
    if (d.coin()) wanted[static_cast<std::size_t>(d.number(0, static_cast<std::int64_t>(wanted.size()) - 1))] = -1;
    if (wanted[0] == x.dims()[0] && d.coin()) wanted[0] = 0;
    all.push_back(of<ops::reshape_op>({x, list(wanted)}));
  }
  {  // Reshape that merges or splits whole dims, as networks do
    const dim_list dims = d.dims(3, 4);
    const tensor x = d.distinct(dims);
    ints wanted = dims;
    if (d.coin()) {
      const auto at = static_cast<std::size_t>(d.number(0, static_cast<std::int64_t>(dims.size()) - 2));
      wanted[at] *= wanted[at + 1];
      wanted.erase(wanted.begin() + static_cast<std::ptrdiff_t>(at) + 1);
      if (d.coin()) wanted[at] = -1;
    } else {
      wanted.insert(wanted.begin() + d.number(0, static_cast<std::int64_t>(dims.size())), 1);
    }
    all.push_back(of<ops::reshape_op>({x, list(wanted)}));
  }
  {
    const tensor x = d.distinct(d.dims(0, 4));
    all.push_back(of<ops::flatten_op>({x}));
    all.back().attributes.set("axis", d.number(-rank_of(x), rank_of(x)));
  }
  {
    dim_list dims = d.dims(2, 4);
    dims[0] = 1;
    dims[dims.size() - 1] = 1;
    const auto rank = static_cast<std::int64_t>(dims.size());
    all.push_back(of<ops::squeeze_op>({d.distinct(dims), list({0, d.maybe_negative(rank - 1, rank)})}));
    all.push_back(of<ops::squeeze_op>({d.distinct(dims)}));
    all.push_back(of<ops::unsqueeze_op>({d.distinct(d.dims(1, 3)), list({0, -1})}));
  }
  {
    const tensor x = d.distinct(d.dims(1, 4));
    all.push_back(of<ops::transpose_op>({x}));
    if (d.coin()) all.back().attributes.set("perm", d.permutation(x.rank()));
  }
  {
    const std::int64_t block = d.number(1, 3);
    const auto mode = d.one_of<std::string>({"DCR", "CRD"});
    all.push_back(of<ops::depth_to_space_op>(
        {d.distinct({d.number(1, 2), block * block * d.number(1, 3), d.number(1, 3), d.number(1, 3)})}));
    all.back().attributes.set("blocksize", block);
    all.back().attributes.set("mode", mode);
    all.push_back(of<ops::space_to_depth_op>(
        {d.distinct({d.number(1, 2), d.number(1, 3), block * d.number(1, 3), block * d.number(1, 3)})}));
    all.back().attributes.set("blocksize", block);
    all.back().attributes.set("mode", mode);
  }
  {
    const tensor x = d.distinct(d.dims(2, 4));
    const std::int64_t time = d.number(0, 1);
    ints lengths;
    for (std::int64_t k = 0; k < x.dims()[static_cast<std::size_t>(1 - time)]; ++k)
      lengths.push_back(d.number(0, x.dims()[static_cast<std::size_t>(time)]));
    all.push_back(of<ops::reverse_sequence_op>({x, list(lengths)}));
    all.back().attributes.set("time_axis", time);
    all.back().attributes.set("batch_axis", 1 - time);
  }
  {
    const tensor x = d.distinct(d.dims(1, 4));
    ints axes = d.permutation(x.rank());
    axes.resize(static_cast<std::size_t>(d.number(1, rank_of(x))));
    ints starts;
    ints ends;
    ints steps;
    for (std::int64_t& axis : axes) {
      const ints bounds{-100, -5, -4, -3, -2, -1, 0, 1, 2, 3, 4, 5, 2147483647, 9223372036854775807};
      starts.push_back(d.one_of(bounds));
      ends.push_back(d.one_of(bounds));
      steps.push_back(d.one_of<std::int64_t>({-3, -2, -1, 1, 1, 2, 3}));
      axis = d.maybe_negative(axis, rank_of(x));
    }
    all.push_back(of<ops::slice_op>({x, list(starts), list(ends), list(axes), list(steps)}));
  }
  {
    const tensor x = d.distinct(d.dims(1, 3, 3));
    const std::int64_t axis = d.number(0, rank_of(x) - 1);
    const std::int64_t dim = x.dims()[static_cast<std::size_t>(axis)];
    const std::int64_t cut = d.number(0, dim);
    all.push_back(of<ops::split_op>({x, list({cut, dim - cut})}));
    all.back().outputs = 2;
    all.back().attributes.set("axis", axis - rank_of(x));
    all.push_back(of<ops::split_op>({x}));
    all.back().outputs = 2;
    all.back().attributes.set("axis", axis);
    all.back().attributes.set("num_outputs", std::int64_t{2});
  }
  {
    const tensor x = d.distinct(d.dims(1, 3));
    ints wanted;
    for (std::size_t k = 0; k < x.rank(); ++k) wanted.push_back(d.number(1, 7));
    all.push_back(of<ops::center_crop_pad_op>({x, list(wanted)}));
  }
  {
    const tensor x = d.distinct(d.dims(2, 3));
    all.push_back(of<ops::trilu_op>({x, tensor::scalar(d.number(-3, 3))}));
    all.back().attributes.set("upper", d.number(0, 1));
  }
  {
    const tensor x = d.distinct(d.dims(1, 3));
    const std::int64_t axis = d.number(0, rank_of(x) - 1);
    dim_list other = x.dims();
    other[static_cast<std::size_t>(axis)] = d.number(0, 3);
    all.push_back(of<ops::concat_op>(
        {x,
         dnnopt::reference::store_all<std::int64_t>(
             x.type(), other, std::vector<std::int64_t>(static_cast<std::size_t>(dnnopt::element_count(other)), 99)),
         x}));
    all.back().attributes.set("axis", d.maybe_negative(axis, rank_of(x)));
  }
  {
    dim_list dims = d.dims(1, 3);
    ints wanted = dims;
    for (std::size_t k = 0; k < dims.size(); ++k) {
      if (d.coin()) dims[k] = 1;
      if (d.coin()) wanted[k] = dims[k] == 1 ? d.number(1, 3) : 1;
    }
    if (d.coin()) wanted.insert(wanted.begin(), d.number(1, 2));
    all.push_back(of<ops::expand_op>({d.distinct(dims), list(wanted)}));
    ints repeats;
    for (std::size_t k = 0; k < dims.size(); ++k) repeats.push_back(d.number(0, 3));
    all.push_back(of<ops::tile_op>({d.distinct(dims), list(repeats)}));
  }
  {
    const tensor x = d.distinct(d.dims(1, 3));
    const auto mode = d.one_of<std::string>({"constant", "edge", "reflect", "wrap"});
    ints pads;
    for (std::size_t k = 0; k < 2 * x.rank(); ++k) pads.push_back(d.number(mode == "constant" ? -1 : 0, 5));
    for (std::size_t k = 0; k < x.rank(); ++k)
      if (x.dims()[k] + pads[k] + pads[x.rank() + k] < 0) pads[k] = 0, pads[x.rank() + k] = 0;
    all.push_back(of<ops::pad_op>({x, list(pads)}));
    if (mode == "constant" && d.coin())
      all.back().inputs.push_back(dnnopt::reference::store_all<std::int64_t>(x.type(), {}, ints{77}));
    all.back().attributes.set("mode", mode);
  }
  const auto indices = [&d](dim_list dims, std::int64_t dim) {
    tensor t(dtype::int64, std::move(dims));
    for (std::int64_t& v : t.mutable_data<std::int64_t>()) v = d.maybe_negative(d.number(0, dim - 1), dim);
    return t;
  };
  {
    const tensor x = d.distinct(d.dims(1, 3));
    const std::int64_t axis = d.number(0, rank_of(x) - 1);
    const std::int64_t dim = x.dims()[static_cast<std::size_t>(axis)];
    all.push_back(of<ops::gather_op>({x, indices(d.dims(0, 2), dim)}));
    all.back().attributes.set("axis", d.maybe_negative(axis, rank_of(x)));
    dim_list shorter = x.dims();
    for (std::int64_t& s : shorter) s = d.number(1, s);
    all.push_back(of<ops::gather_elements_op>({x, indices(shorter, dim)}));
    all.back().attributes.set("axis", axis);
    const dim_list square{3, 3, 3};
    const std::int64_t batch = d.number(0, 1);
    all.push_back(of<ops::gather_nd_op>({d.distinct(square), indices({3, 2, d.number(1, 3 - batch)}, 3)}));
    all.back().attributes.set("batch_dims", batch);
  }
  {
    const tensor cache = d.distinct({2, d.number(3, 5), 2});
    const std::int64_t length = d.number(1, 3);
    const tensor update = dnnopt::reference::store_all<std::int64_t>(cache.type(), {2, length, 2},
                                                                     ints(static_cast<std::size_t>(4 * length), 88));
    const auto mode = d.one_of<std::string>({"linear", "circular"});
    const std::int64_t last = mode == "linear" ? cache.dims()[1] - length : cache.dims()[1] - 1;
    all.push_back(of<ops::tensor_scatter_op>({cache, update, list({d.number(0, last), d.number(0, last)})}));
    all.back().attributes.set("mode", mode);
  }
  {
    all.push_back(of<ops::constant_of_shape_op>({list(d.dims(1, 3, 0))}));
    all.push_back(
        of<ops::one_hot_op>({indices(d.dims(0, 2), 4), tensor::scalar<std::int64_t>(d.number(1, 4)), list({5, 6})}));
    all.back().attributes.set("axis", d.one_of<std::int64_t>({-1, 0}));
    all.push_back(of<ops::range_op>({tensor::scalar(d.number(-3, 3)), tensor::scalar(d.number(-3, 8)),
                                     tensor::scalar(d.one_of<std::int64_t>({-2, 1, 3}))}));
  }
  {
    const tensor x = d.distinct({1, d.number(1, 2), d.number(1, 4), d.number(1, 4)});
    const bool by_size = d.coin();
    if (by_size) {
      const ints sizes{x.dims()[0], x.dims()[1], d.number(1, 7), d.number(1, 7)};
      all.push_back(of<ops::resize_op>({x, tensor(), tensor(), list(sizes)}));
    } else {
      const std::vector<float> scales{1.0F, 1.0F, d.one_of<float>({0.5F, 1.0F, 1.5F, 2.0F, 3.0F}),
                                      d.one_of<float>({0.5F, 2.0F, 4.0F})};
      all.push_back(of<ops::resize_op>({x, tensor(), tensor::of<float>({4}, scales)}));
    }
    all.back().attributes.set(
        "coordinate_transformation_mode",
        d.one_of<std::string>({"half_pixel", "asymmetric", "pytorch_half_pixel", "align_corners"}));
    all.back().attributes.set("nearest_mode",
                              d.one_of<std::string>({"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"}));
  }
  return all;
}

dnnopt::evaluate_function evaluation_of(std::string_view name) {
  const auto find = [name](const auto& rows) -> dnnopt::evaluate_function {
    for (const auto& row : rows)
      if (row.name == name) return row.evaluate;
    return nullptr;
  };
  namespace reference = dnnopt::reference;
  if (const auto f = find(reference::view_rows)) return f;
  if (const auto f = find(reference::indexing_rows)) return f;
  if (const auto f = find(reference::generator_rows)) return f;
  return find(reference::resize_rows);
}

}  // namespace

TEST_CASE("inference and index maps of structure operators agree with the reference") {
  const std::uint32_t base = Catch::rngSeed();
  std::size_t maps = 0;
  std::size_t instances = 0;
  for (std::uint32_t round = 0; round < 150; ++round) {
    for (const random_case& c : cases(base + round)) {
      std::string about = std::string(c.op->name) + ", seed " + std::to_string(base + round) + ", inputs";
      for (const tensor& t : c.inputs) about += " " + (t.empty() ? std::string("-") : dnnopt::to_string(t.dims()));
      INFO(about);
      std::vector<tensor> outputs(c.outputs);
      const dnnopt::evaluate_function evaluate = evaluation_of(c.op->name);
      REQUIRE(evaluate != nullptr);
      try {
        evaluate(c.attributes, c.inputs, outputs);
      } catch (const dnnopt::error&) {
        // Some draws are illegal (a resize to no elements); inference may or may not see it.
        continue;
      }
      ++instances;
      const test::operator_instance instance{c.op, &c.attributes, c.inputs, outputs};
      for (const test::knowledge level :
           {test::knowledge::constants, test::knowledge::dims, test::knowledge::symbolic_constants}) {
        INFO("knowledge " << static_cast<int>(level));
        CHECK(test::inference_fault(instance, level).value_or("") == "");
        if (c.op->view == nullptr) continue;
        bool refused = false;
        CHECK(test::view_fault(instance, level, refused).value_or("") == "");
        if (!refused) ++maps;
        // With constants every view but an interpolating or fractional one can be stated.
        if (level == test::knowledge::constants && c.op->kind != dnnopt::computation_kind::resampling)
          CHECK_FALSE(refused);
      }
    }
  }
  CHECK(instances > 3000);
  CHECK(maps > 6000);
}

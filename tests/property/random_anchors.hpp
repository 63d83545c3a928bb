// Owns the products, convolutions, windows, reductions and normalizations that random graphs grow by.
#ifndef DNNOPT_TESTS_PROPERTY_RANDOM_ANCHORS_HPP
#define DNNOPT_TESTS_PROPERTY_RANDOM_ANCHORS_HPP

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "property/random_layout.hpp"

namespace testing {

/// A real value whose last dim is a number.
inline std::optional<drawn> rows_of_numbers(random_graph& r, std::size_t least_rank, std::size_t most_rank = 9) {
  return r.find([&](const drawn& v) {
    return is_real(v) && v.dims.size() >= least_rank && v.dims.size() <= most_rank && v.dims.back().is_constant();
  });
}
inline std::int64_t last_dim(const drawn& v) { return v.dims.back().constant(); }

/// Products with weights of one value: one, or several that could be one.
inline void grow_product(random_graph& r) {
  const auto x = rows_of_numbers(r, 1);
  if (!x) return;
  for (int siblings = r.rarely(4) ? r.pick(2, 3) : 1; siblings > 0; --siblings) {
    const std::int64_t columns = r.extent();
    const drawn made = r.add_inner("MatMul", {x->id, r.constant({last_dim(*x), columns})});
    switch (r.pick(0, 3)) {
      case 0:
        r.add("Add", {made.id, r.constant({columns})});
        break;
      case 1:
        r.add("Add", {r.constant({columns}), made.id});
        break;
      case 2:
        r.add("Relu", {r.add_inner("Add", {made.id, r.constant({columns})}).id});
        break;
      default:
        r.add("Identity", {made.id});
        break;
    }
  }
}

/// Products of two values, batched ones, and those of vectors.
inline void grow_product_of_values(random_graph& r) {
  const auto x = r.real(2, 4);
  if (!x) return;
  const std::size_t rank = x->dims.size();
  switch (r.pick(0, 4)) {
    case 0:
    case 1: {
      ints perm;
      for (std::size_t k = 0; k < rank; ++k) perm.push_back(static_cast<std::int64_t>(k));
      std::swap(perm[rank - 1], perm[rank - 2]);
      const value_id turned = r.add_inner("Transpose", {x->id}, {{"perm", perm}}).id;
      if (r.coin())
        r.add("MatMul", {x->id, turned});
      else
        r.add("MatMul", {turned, x->id});
      return;
    }
    case 2: {  // weights of each batch element, or with more batch dims
      if (!x->dims.back().is_constant()) return;
      dnnopt::dim_list dims{last_dim(*x), r.extent()};
      if (rank > 2)
        dims.insert(dims.begin(), x->dims[rank - 3].is_constant() && r.coin() ? x->dims[rank - 3].constant() : 1);
      if (r.rarely(3)) dims.insert(dims.begin(), rank <= 2 ? 2 : 1);
      r.add("MatMul", {x->id, r.constant(dims)});
      return;
    }
    case 3:
      if (x->dims.back().is_constant() && r.coin())
        r.add("MatMul", {x->id, r.constant({last_dim(*x)})});
      else if (x->dims[rank - 2].is_constant())
        r.add("MatMul", {r.constant({3, x->dims[rank - 2].constant()}), x->id});
      return;
    default: {
      const auto y = r.find([&](const drawn& v) {
        return is_real(v) && v.dims.size() == rank && v.dims[rank - 2] == x->dims[rank - 1] &&
               std::equal(v.dims.begin(), v.dims.end() - 2, x->dims.begin());
      });
      if (y) r.add("MatMul", {x->id, y->id});
      return;
    }
  }
}

inline void grow_gemm(random_graph& r) {
  const auto x = r.find([](const drawn& v) {
    return is_real(v) && v.dims.size() == 2 && v.dims[0].is_constant() && v.dims[1].is_constant();
  });
  if (!x) return;
  const bool turned = r.coin();
  const bool turned_weights = r.coin();
  const std::int64_t inner = x->dims[turned ? 0 : 1].constant();
  const std::int64_t rows = x->dims[turned ? 1 : 0].constant();
  const std::int64_t columns = r.extent();
  std::vector<value_id> inputs{
      x->id, r.constant(turned_weights ? dnnopt::dim_list{columns, inner} : dnnopt::dim_list{inner, columns})};
  switch (r.pick(0, 4)) {
    case 0:
      inputs.push_back(r.constant({columns}));
      break;
    case 1:
      inputs.push_back(r.constant({rows, 1}));
      break;
    case 2:
      inputs.push_back(r.constant({rows, columns}));
      break;
    case 3:
      inputs.push_back(r.number(0.5F));
      break;
    default:
      break;
  }
  r.add("Gemm", inputs,
        {{"alpha", r.one_of({1.0F, 0.5F})},
         {"beta", r.one_of({1.0F, 2.0F})},
         {"transA", std::int64_t{turned}},
         {"transB", std::int64_t{turned_weights}}});
}

inline void grow_einsum(random_graph& r) {
  const auto x = r.real(3, 4);
  if (!x) return;
  if (x->dims.size() == 3) {
    switch (r.pick(0, 3)) {
      case 0:
        r.add("Einsum", {x->id, x->id}, {{"equation", "bij,bkj->bik"}});
        return;
      case 1:
        if (x->dims.back().is_constant())
          r.add("Einsum", {x->id, r.constant({last_dim(*x), 5})}, {{"equation", "bij,jk->bik"}});
        return;
      case 2:
        r.add("Einsum", {x->id}, {{"equation", "bij->jb"}});
        return;
      default:
        r.add("Einsum", {x->id, x->id}, {{"equation", "bij,bij->bi"}});
        return;
    }
  }
  r.add("Einsum", {x->id, x->id}, {{"equation", r.coin() ? "bhqd,bhkd->bhqk" : "bhqd,bhkd->bqhk"}});
}

/// Convolutions of one to three spatial dims, with what may stand before and behind them.
inline void grow_convolution(random_graph& r) {
  const auto x = r.find([](const drawn& v) {
    return is_real(v) && v.dims.size() >= 3 && v.dims.size() <= 5 && v.dims[1].is_constant() &&
           v.dims[1].constant() <= 32;
  });
  if (!x) return;
  const std::size_t spatial = x->dims.size() - 2;
  const std::int64_t channels = x->dims[1].constant();
  std::int64_t group = 1;
  if (r.rarely(3))
    group = channels;
  else if (channels % 2 == 0 && r.rarely(4))
    group = 2;
  const std::int64_t outputs = group * (group == channels ? r.pick(1, 2) : r.pick(1, 5));
  ints kernel, pads(2 * spatial), strides, dilations;
  value_id source = x->id;
  const bool padded_before = r.rarely(6);
  ints outer(2 * x->dims.size(), 0);
  for (std::size_t k = 0; k < spatial; ++k) {
    const std::int64_t size = r.one_of<std::int64_t>({1, 1, 2, 3, 3, 5});
    kernel.push_back(size);
    dilations.push_back(r.rarely(5) ? 2 : 1);
    strides.push_back(r.rarely(3) ? 2 : 1);
    const std::int64_t reach = (size - 1) * dilations[k] + 1;
    const bool same = r.coin();
    pads[k] = same ? reach / 2 : r.pick(0, static_cast<int>(std::min<std::int64_t>(size - 1, 2)));
    pads[k + spatial] = same ? (reach - 1) / 2 : r.pick(0, static_cast<int>(std::min<std::int64_t>(size - 1, 2)));
    std::int64_t extent = r.least(*x, k + 2) + pads[k] + pads[k + spatial];
    if (padded_before) {
      outer[k + 2] = 1;
      outer[k + 2 + x->dims.size()] = r.pick(0, 2);
      extent += outer[k + 2] + outer[k + 2 + x->dims.size()];
    }
    if (extent < reach) kernel[k] = 1, dilations[k] = 1;
  }
  if (padded_before) source = r.add_inner("Pad", {x->id, r.integers(outer)}).id;
  dnnopt::dim_list weights{outputs, channels / group};
  weights.insert(weights.end(), kernel.begin(), kernel.end());
  std::vector<value_id> inputs{source, r.constant(weights)};
  if (r.coin()) inputs.push_back(r.constant({outputs}));
  random_graph::attribute_list attributes{{"group", group}, {"kernel_shape", kernel}, {"strides", strides}};
  if (r.rarely(8) && std::all_of(dilations.begin(), dilations.end(), [](auto d) { return d == 1; }))
    attributes.emplace_back("auto_pad", r.one_of<std::string>({"SAME_UPPER", "SAME_LOWER"}));
  else
    attributes.emplace_back("pads", pads), attributes.emplace_back("dilations", dilations);
  if (r.rarely(5)) {
    const drawn made = r.add_inner("Conv", inputs, attributes);
    r.add("BatchNormalization", {made.id, r.constant({outputs}, 0.5F, 1.5F), r.constant({outputs}),
                                 r.constant({outputs}), r.constant({outputs}, 0.5F, 1.0F)});
    return;
  }
  const drawn made = r.add("Conv", inputs, attributes)[0];
  dnnopt::dim_list of_channels(spatial + 1, 1);
  of_channels[0] = outputs;
  switch (r.pick(0, 7)) {
    case 0:
      r.add("Relu", {made.id});
      return;
    case 1:
      r.add("Mul", {made.id, r.constant(of_channels)});
      return;
    case 2:
      r.add("Add", {made.id, r.constant(of_channels)});
      return;
    case 3:
      if (const auto y = r.find([&](const drawn& v) { return is_real(v) && v.dims == made.dims; }))
        r.add("Add", {y->id, made.id});
      return;
    default:
      return;
  }
}

inline void grow_transposed_convolution(random_graph& r) {
  const auto x = r.find([](const drawn& v) {
    return is_real(v) && (v.dims.size() == 3 || v.dims.size() == 4) && v.dims[1].is_constant() &&
           v.dims[1].constant() <= 12;
  });
  if (!x) return;
  const std::size_t spatial = x->dims.size() - 2;
  const std::int64_t channels = x->dims[1].constant();
  const std::int64_t group = channels % 2 == 0 && r.rarely(3) ? 2 : 1;
  const std::int64_t outputs = r.pick(1, 3);
  ints kernel, strides, pads, added;
  for (std::size_t k = 0; k < spatial; ++k) {
    kernel.push_back(r.pick(1, 3));
    strides.push_back(r.pick(1, 2));
    added.push_back(strides[k] == 2 ? r.pick(0, 1) : 0);
  }
  dnnopt::dim_list weights{channels, outputs};
  weights.insert(weights.end(), kernel.begin(), kernel.end());
  std::vector<value_id> inputs{x->id, r.constant(weights)};
  if (r.coin()) inputs.push_back(r.constant({outputs * group}));
  r.add("ConvTranspose", inputs,
        {{"group", group}, {"kernel_shape", kernel}, {"strides", strides}, {"output_padding", added}});
}

inline void grow_pooling(random_graph& r) {
  const auto x = r.real(3, 5);
  if (!x) return;
  if (r.rarely(3)) {
    const auto op =
        r.one_of<std::string_view>({"GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool", "GlobalAveragePool"});
    r.add(op, {x->id});
    return;
  }
  const std::size_t spatial = x->dims.size() - 2;
  ints kernel, strides, pads(2 * spatial, 0), dilations(spatial, 1);
  const bool whole = r.rarely(6);
  const auto op = r.one_of<std::string_view>({"MaxPool", "MaxPool", "AveragePool", "AveragePool", "LpPool"});
  const bool ceil = r.rarely(4);
  for (std::size_t k = 0; k < spatial; ++k) {
    const std::int64_t extent = r.least(*x, k + 2);
    kernel.push_back(std::min<std::int64_t>(extent, whole ? extent : r.pick(1, 3)));
    strides.push_back(r.pick(1, 2));
    if (kernel[k] > 1) pads[k] = r.pick(0, 1), pads[k + spatial] = r.pick(0, 1);
    if (op == "MaxPool" && kernel[k] == 2 && extent >= 3 && r.rarely(4))
      dilations[k] = 2, pads[k] = 0, pads[k + spatial] = 0;
  }
  random_graph::attribute_list attributes{{"kernel_shape", kernel}, {"strides", strides}, {"pads", pads}};
  if (ceil) attributes.emplace_back("ceil_mode", std::int64_t{1});
  if (op != "LpPool") attributes.emplace_back("dilations", dilations);
  if (op == "AveragePool") attributes.emplace_back("count_include_pad", std::int64_t{r.pick(0, 1)});
  r.add(op, {x->id}, attributes);
}

inline void grow_reduction(random_graph& r) {
  const auto x = r.real();
  if (!x) return;
  const int rank = static_cast<int>(x->dims.size());
  const auto op = r.one_of<std::string_view>({"ReduceMean", "ReduceMean", "ReduceSum", "ReduceSum", "ReduceMax",
                                              "ReduceMin", "ReduceL1", "ReduceL2", "ReduceSumSquare", "ReduceProd",
                                              "ReduceLogSumExp", "ReduceLogSum"});
  std::vector<value_id> inputs{x->id};
  random_graph::attribute_list attributes{{"keepdims", std::int64_t{r.pick(0, 1)}}};
  ints axes;
  for (int k = 0; k < rank; ++k)
    if (r.rarely(3)) axes.push_back(r.rarely(3) ? k - rank : k);
  if (axes.empty() && rank > 0 && !r.rarely(3)) axes.push_back(rank - 1);
  if (!axes.empty()) {
    inputs.push_back(r.integers(axes));
  } else if (r.rarely(3)) {
    attributes.emplace_back("noop_with_empty_axes", std::int64_t{1});
  }
  r.add(op, inputs, attributes);
}

inline void grow_index_reduction(random_graph& r) {
  const auto x = r.real(1);
  if (!x) return;
  const int rank = static_cast<int>(x->dims.size());
  const std::int64_t axis = r.pick(-rank, rank - 1);
  switch (r.pick(0, 3)) {
    case 0:
      r.add(r.coin() ? "ArgMax" : "ArgMin", {x->id},
            {{"axis", axis},
             {"keepdims", std::int64_t{r.pick(0, 1)}},
             {"select_last_index", std::int64_t{r.pick(0, 1)}}});
      return;
    case 1:
      r.add("Hardmax", {x->id}, {{"axis", axis}});
      return;
    case 2: {
      const auto k = static_cast<std::size_t>(axis < 0 ? axis + rank : axis);
      if (!x->dims[k].is_constant()) return;
      r.add("TopK",
            {x->id, r.integers({r.pick(1, static_cast<int>(std::min<std::int64_t>(x->dims[k].constant(), 4)))})},
            {{"axis", axis}, {"largest", std::int64_t{r.pick(0, 1)}}}, 2);
      return;
    }
    default:
      r.add("CumSum", {x->id, r.hold(dnnopt::tensor::scalar(axis))},
            {{"exclusive", std::int64_t{r.pick(0, 1)}}, {"reverse", std::int64_t{r.pick(0, 1)}}});
      return;
  }
}

inline void grow_softmax(random_graph& r) {
  const auto x = r.real(1);
  if (!x) return;
  const int rank = static_cast<int>(x->dims.size());
  r.add(r.rarely(4) ? "LogSoftmax" : "Softmax", {x->id},
        {{"axis", std::int64_t{r.rarely(3) ? r.pick(-rank, rank - 1) : -1}}});
}

inline void grow_row_normalization(random_graph& r) {
  const auto x = rows_of_numbers(r, 1);
  if (!x) return;
  std::int64_t axis = -1;
  dnnopt::dim_list dims{last_dim(*x)};
  if (x->dims.size() > 2 && x->dims[x->dims.size() - 2].is_constant() && r.rarely(4)) {
    axis = -2;
    dims.insert(dims.begin(), x->dims[x->dims.size() - 2].constant());
  }
  std::vector<value_id> inputs{x->id, r.constant(dims, 0.5F, 1.5F)};
  const bool root = r.rarely(3);
  if (!root && !r.rarely(4)) inputs.push_back(r.constant(dims));
  const drawn made = r.add(root ? "RMSNormalization" : "LayerNormalization", inputs,
                           {{"axis", axis}, {"epsilon", r.one_of({1e-5F, 1e-2F})}})[0];
  // What transformers do with it.
  if (r.coin()) r.add("MatMul", {made.id, r.constant({last_dim(*x), r.one_of<std::int64_t>({1, 6, 16})})});
}

inline void grow_plane_normalization(random_graph& r) {
  const auto x = r.find([](const drawn& v) { return is_real(v) && v.dims.size() >= 3 && v.dims[1].is_constant(); });
  if (!x) return;
  const std::int64_t channels = x->dims[1].constant();
  switch (r.pick(0, 5)) {
    case 0:
      r.add("InstanceNormalization", {x->id, r.constant({channels}, 0.5F, 1.5F), r.constant({channels})});
      return;
    case 1:
      r.add("GroupNormalization", {x->id, r.constant({channels}, 0.5F, 1.5F), r.constant({channels})},
            {{"num_groups", std::int64_t{channels % 2 == 0 ? 2 : 1}}});
      return;
    case 2:
      r.add("BatchNormalization", {x->id, r.constant({channels}, 0.5F, 1.5F), r.constant({channels}),
                                   r.constant({channels}), r.constant({channels}, 0.5F, 1.0F)});
      return;
    case 3:
      if (x->dims.size() == 4) r.add("LRN", {x->id}, {{"size", std::int64_t{3}}, {"alpha", 0.1F}});
      return;
    case 4:
      r.add("LpNormalization", {x->id}, {{"axis", std::int64_t{r.pick(-1, 1)}}, {"p", std::int64_t{r.pick(1, 2)}}});
      return;
    default:
      if (x->dims.size() == 4) r.add("MeanVarianceNormalization", {x->id});
      return;
  }
}

inline void grow_resize(random_graph& r) {
  const auto x = r.find([](const drawn& v) { return is_real(v) && v.dims.size() == 4; });
  if (!x) return;
  const auto mode = r.one_of<std::string>({"nearest", "linear", "cubic"});
  random_graph::attribute_list attributes{{"mode", mode}};
  // Where positions fall between two elements, rounding decides: whole factors only.
  if (mode == "nearest")
    attributes.emplace_back("coordinate_transformation_mode", "asymmetric"),
        attributes.emplace_back("nearest_mode", "floor");
  else if (r.coin())
    attributes.emplace_back("coordinate_transformation_mode", r.coin() ? "half_pixel" : "align_corners");
  if (r.rarely(3) && x->dims[2].is_constant() && x->dims[3].is_constant()) {
    const std::int64_t rows = x->dims[2].constant() * r.pick(1, 2);
    const std::int64_t columns = x->dims[3].constant() * r.pick(1, 2);
    const value_id batch = r.integers(ints{-1});
    if (x->dims[0].is_constant() && x->dims[1].is_constant())
      r.add("Resize",
            {x->id, dnnopt::no_value, dnnopt::no_value,
             r.integers({x->dims[0].constant(), x->dims[1].constant(), rows, columns})},
            attributes);
    (void)batch;
    return;
  }
  const std::vector<float> scales{1, 1, r.one_of({1.0F, 2.0F}), r.one_of({1.0F, 2.0F, 3.0F})};
  r.add("Resize", {x->id, dnnopt::no_value, r.hold(dnnopt::tensor::of<float>({4}, scales))}, attributes);
}

inline constexpr std::array anchor_rows{
    growth_row{"product", 7, grow_product},
    growth_row{"product of values", 4, grow_product_of_values},
    growth_row{"gemm", 2, grow_gemm},
    growth_row{"einsum", 1, grow_einsum},
    growth_row{"convolution", 9, grow_convolution},
    growth_row{"transposed convolution", 1, grow_transposed_convolution},
    growth_row{"pooling", 4, grow_pooling},
    growth_row{"reduction", 5, grow_reduction},
    growth_row{"index reduction", 2, grow_index_reduction},
    growth_row{"softmax", 3, grow_softmax},
    growth_row{"row normalization", 4, grow_row_normalization},
    growth_row{"plane normalization", 2, grow_plane_normalization},
    growth_row{"resize", 2, grow_resize},
};

}  // namespace testing

#endif  // DNNOPT_TESTS_PROPERTY_RANDOM_ANCHORS_HPP

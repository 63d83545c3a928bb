// Owns what quantizers write, by which random graphs grow: operators between QuantizeLinear and DequantizeLinear, those
// that take codes, products of integers behind dynamic scales, and weights in blocks.
#ifndef DNNOPT_TESTS_PROPERTY_RANDOM_QUANTIZED_HPP
#define DNNOPT_TESTS_PROPERTY_RANDOM_QUANTIZED_HPP

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "property/random_anchors.hpp"

namespace testing {

/// What makes codes of numbers; no zero point is 0.
struct quantizer {
  value_id scale = dnnopt::no_value;
  value_id zero = dnnopt::no_value;
  dtype type = dtype::uint8;
};

inline dnnopt::tensor codes(random_graph& r, dtype type, const dnnopt::dim_list& dims, int low, int high) {
  dnnopt::tensor t(type, dims);
  for (std::int64_t i = 0; i < t.size(); ++i) {
    const int code = r.pick(low, high);
    const auto at = static_cast<std::size_t>(i);
    if (type == dtype::uint8)
      t.mutable_data<std::uint8_t>()[at] = static_cast<std::uint8_t>(code);
    else if (type == dtype::int8)
      t.mutable_data<std::int8_t>()[at] = static_cast<std::int8_t>(code);
    else if (type == dtype::uint16)
      t.mutable_data<std::uint16_t>()[at] = static_cast<std::uint16_t>(code);
    else if (type == dtype::int16)
      t.mutable_data<std::int16_t>()[at] = static_cast<std::int16_t>(code);
    else
      t.mutable_data<std::int32_t>()[at] = code;
  }
  return t;
}

/// For numbers up to `largest`: some saturate, some leave most codes out. `bytes`: no wider codes.
inline quantizer quantizer_of(random_graph& r, double largest, bool bytes = false) {
  quantizer q;
  q.type = bytes || !r.rarely(8) ? r.one_of({dtype::uint8, dtype::uint8, dtype::int8})
                                 : r.one_of({dtype::uint16, dtype::int16});
  const bool wide = q.type == dtype::uint16 || q.type == dtype::int16;
  const bool natural = q.type == dtype::uint8 || q.type == dtype::uint16;
  const float steps = (natural ? 1.0F : 0.5F) * (wide ? 65535.0F : 255.0F);
  const float share = r.one_of({0.4F, 1.1F, 2.1F, 3.0F}) * (1.0F + 0.01F * static_cast<float>(r.pick(0, 90)));
  q.scale = r.number(std::max(static_cast<float>(largest), 1e-2F) * share / steps);
  const int middle = wide ? 32768 : 128;
  if (!r.rarely(5))
    q.zero = r.hold(codes(r, q.type, {}, natural ? 0 : -middle / 4, natural ? (r.coin() ? 0 : middle) : middle / 4));
  return q;
}

inline drawn quantized(random_graph& r, value_id x, const quantizer& q) {
  std::vector<value_id> inputs{x, q.scale};
  random_graph::attribute_list attributes;
  if (q.zero != dnnopt::no_value)
    inputs.push_back(q.zero);
  else if (q.type != dtype::uint8)
    attributes.emplace_back("output_dtype", std::int64_t{q.type == dtype::int8 ? 3 : q.type == dtype::uint16 ? 4 : 5});
  return r.add_inner("QuantizeLinear", inputs, attributes);
}
inline std::vector<value_id> of_codes(value_id x, const quantizer& q) {
  std::vector<value_id> inputs{x, q.scale};
  if (q.zero != dnnopt::no_value) inputs.push_back(q.zero);
  return inputs;
}
/// Through codes and back.
inline drawn rounded(random_graph& r, const drawn& x, quantizer& q) {
  q = quantizer_of(r, x.largest, !r.rarely(6));
  return r.add_inner("DequantizeLinear", of_codes(quantized(r, x.id, q).id, q));
}
inline drawn rounded(random_graph& r, const drawn& x) {
  quantizer q;
  return rounded(r, x, q);
}
/// What stands behind a quantized operator: nothing, an activation, codes as they are, codes and back.
inline void give_rounded(random_graph& r, drawn made) {
  if (r.rarely(3)) made = r.add_inner(r.one_of<std::string_view>({"Relu", "Sigmoid", "HardSwish", "Gelu"}), {made.id});
  if (r.rarely(6)) {
    r.add("Identity", {made.id});
    return;
  }
  const quantizer q = quantizer_of(r, made.largest);
  std::vector<value_id> inputs{made.id, q.scale};
  if (q.zero == dnnopt::no_value) {
    r.add("DequantizeLinear", of_codes(quantized(r, made.id, q).id, q));
    return;
  }
  inputs.push_back(q.zero);
  const value_id code = r.add("QuantizeLinear", inputs)[0].id;
  if (!r.rarely(4)) r.add("DequantizeLinear", of_codes(code, q));
}

/// Constants as codes: by one scale or one for each place of `axis`.
inline value_id rounded_weights(random_graph& r, const dnnopt::dim_list& dims, std::int64_t axis, quantizer& q) {
  q.type = r.rarely(3) ? dtype::uint8 : dtype::int8;
  const std::int64_t count = dims[static_cast<std::size_t>(axis)];
  const bool each = r.coin();
  const dnnopt::dim_list own = each ? dnnopt::dim_list{count} : dnnopt::dim_list{};
  q.scale = r.hold(r.reals(own, 0.001F, 0.008F));
  const bool natural = q.type == dtype::uint8;
  const int low = natural ? 0 : -127;
  const int high = natural ? 255 : 127;
  if (natural || r.coin()) q.zero = r.hold(codes(r, q.type, own, natural ? 100 : r.coin() ? 0 : -9, natural ? 140 : 0));
  random_graph::attribute_list attributes;
  if (each) attributes.emplace_back("axis", axis);
  if (r.rarely(4)) {
    // Floats that folding rounds.
    const value_id exact = r.hold(r.reals(dims, -0.5F, 0.5F));
    const value_id made = q.zero == dnnopt::no_value
                              ? r.hold(codes(r, q.type, dims, low, high))
                              : r.add_inner("QuantizeLinear", {exact, q.scale, q.zero}, attributes).id;
    return r.add_inner("DequantizeLinear", of_codes(made, q), attributes).id;
  }
  return r.add_inner("DequantizeLinear", of_codes(r.hold(codes(r, q.type, dims, low, high)), q), attributes).id;
}
/// A bias in floats, or in int32 by the product of both scales, as quantizers write it.
inline value_id rounded_bias(random_graph& r, std::int64_t count, const quantizer& x, const quantizer& w) {
  if (r.coin()) return r.constant({count});
  const dnnopt::tensor& each = r.content(w.scale);
  dnnopt::tensor scale(dtype::float32, each.dims());
  for (std::size_t i = 0; i < each.data<float>().size(); ++i)
    scale.mutable_data<float>()[i] = each.data<float>()[i] * r.content(x.scale).data<float>()[0];
  random_graph::attribute_list attributes;
  if (each.rank() == 1) attributes.emplace_back("axis", std::int64_t{0});
  return r
      .add_inner("DequantizeLinear", {r.hold(codes(r, dtype::int32, {count}, -3000, 3000)), r.hold(std::move(scale))},
                 attributes)
      .id;
}

inline void grow_rounded_product(random_graph& r) {
  const auto x = rows_of_numbers(r, 2);
  if (!x) return;
  quantizer qx;
  quantizer qw;
  const drawn a = rounded(r, *x, qx);
  const std::int64_t inner = last_dim(*x);
  const std::int64_t columns = r.extent();
  if (x->dims.size() == 2 && r.coin()) {
    const bool turned = r.coin();
    const value_id w = rounded_weights(r, turned ? dnnopt::dim_list{columns, inner} : dnnopt::dim_list{inner, columns},
                                       turned ? 0 : 1, qw);
    std::vector<value_id> inputs{a.id, w};
    if (r.coin()) inputs.push_back(rounded_bias(r, columns, qx, qw));
    give_rounded(r, r.add_inner("Gemm", inputs, {{"transB", std::int64_t{turned}}, {"alpha", r.one_of({1.0F, 0.5F})}}));
    return;
  }
  drawn made = r.add_inner("MatMul", {a.id, rounded_weights(r, {inner, columns}, 1, qw)});
  if (r.coin()) made = r.add_inner("Add", {made.id, rounded_bias(r, columns, qx, qw)});
  give_rounded(r, made);
}

/// Both factors are computed: scores of attention.
inline void grow_rounded_product_of_values(random_graph& r) {
  const auto x = r.real(2, 4);
  if (!x) return;
  ints perm;
  for (std::size_t k = 0; k < x->dims.size(); ++k) perm.push_back(static_cast<std::int64_t>(k));
  std::swap(perm[perm.size() - 1], perm[perm.size() - 2]);
  const drawn a = rounded(r, *x);
  const drawn b = rounded(r, r.add_inner("Transpose", {x->id}, {{"perm", perm}}));
  give_rounded(r, r.add_inner("MatMul", {a.id, b.id}));
}

struct drawn_window {
  ints kernel, pads, strides, dilations;
};
inline drawn_window window_in(random_graph& r, const drawn& x) {
  drawn_window w;
  const std::size_t spatial = x.dims.size() - 2;
  w.pads.resize(2 * spatial);
  for (std::size_t k = 0; k < spatial; ++k) {
    const std::int64_t size = r.one_of<std::int64_t>({1, 1, 2, 3, 3, 5});
    w.kernel.push_back(size);
    w.dilations.push_back(r.rarely(6) ? 2 : 1);
    w.strides.push_back(r.rarely(3) ? 2 : 1);
    for (const std::size_t side : {k, k + spatial}) w.pads[side] = r.pick(0, static_cast<int>(size / 2));
    const std::int64_t reach = (size - 1) * w.dilations[k] + 1;
    if (r.least(x, k + 2) + w.pads[k] + w.pads[k + spatial] < reach) w.kernel[k] = 1, w.dilations[k] = 1;
  }
  return w;
}
inline std::optional<drawn> an_image(random_graph& r) {
  return r.find([](const drawn& v) {
    return is_real(v) && v.dims.size() >= 3 && v.dims.size() <= 5 && v.dims[1].is_constant() &&
           v.dims[1].constant() <= 32;
  });
}

inline void grow_rounded_convolution(random_graph& r) {
  const auto x = an_image(r);
  if (!x) return;
  const std::int64_t channels = x->dims[1].constant();
  const std::int64_t group = r.rarely(3) ? channels : channels % 2 == 0 && r.rarely(4) ? 2 : 1;
  const std::int64_t outputs = group * (group == channels ? r.pick(1, 2) : r.pick(1, 9));
  const drawn_window window = window_in(r, *x);
  dnnopt::dim_list dims{outputs, channels / group};
  dims.insert(dims.end(), window.kernel.begin(), window.kernel.end());
  random_graph::attribute_list attributes{{"group", group},
                                          {"kernel_shape", window.kernel},
                                          {"strides", window.strides},
                                          {"pads", window.pads},
                                          {"dilations", window.dilations}};
  if (!r.rarely(3)) {
    quantizer qx;
    quantizer qw;
    const drawn a = rounded(r, *x, qx);
    std::vector<value_id> inputs{a.id, rounded_weights(r, dims, 0, qw)};
    if (r.coin()) inputs.push_back(rounded_bias(r, outputs, qx, qw));
    give_rounded(r, r.add_inner("Conv", inputs, attributes));
    return;
  }
  if (r.coin()) {
    // Sums of bytes behind a scale that the data tell.
    const std::vector<drawn> a = r.add("DynamicQuantizeLinear", {x->id}, {}, 3);
    const value_id w = r.hold(codes(r, r.coin() ? dtype::uint8 : dtype::int8, dims, 0, 120));
    const drawn sums = r.add_inner("ConvInteger", {a[0].id, w, a[2].id}, attributes);
    const drawn scaled = r.add_inner("Mul", {r.add_inner("Cast", {sums.id}, {{"to", std::int64_t{1}}}).id,
                                             r.add_inner("Mul", {a[1].id, r.number(0.004F)}).id});
    dnnopt::dim_list bias(x->dims.size() - 1, 1);
    bias[0] = outputs;
    r.add("Add", {scaled.id, r.constant(bias)});
    return;
  }
  quantizer qx = quantizer_of(r, x->largest, true);
  if (qx.zero == dnnopt::no_value) qx.zero = r.hold(codes(r, qx.type, {}, 0, 0));
  const bool each = r.coin();
  const dtype stored = r.coin() ? dtype::int8 : qx.type;
  const dnnopt::dim_list own = each ? dnnopt::dim_list{outputs} : dnnopt::dim_list{};
  const float reach =
      static_cast<float>(x->largest) * 0.5F * std::sqrt(static_cast<float>(dnnopt::element_count(dims)));
  const quantizer qy = quantizer_of(r, static_cast<double>(reach), true);
  const dtype given = qx.type;  // codes of one type go in and come out
  std::vector<value_id> inputs{quantized(r, x->id, qx).id,
                               qx.scale,
                               qx.zero,
                               r.hold(codes(r, stored, dims, stored == dtype::int8 ? -127 : 0, 127)),
                               r.hold(r.reals(own, 0.001F, 0.008F)),
                               r.hold(codes(r, stored, own, 0, r.coin() ? 0 : 7)),
                               qy.scale,
                               r.hold(codes(r, given, {}, 0, 100))};
  if (r.coin()) inputs.push_back(r.hold(codes(r, dtype::int32, {outputs}, -3000, 3000)));
  const value_id y = r.add("QLinearConv", inputs, attributes)[0].id;
  r.add("DequantizeLinear", {y, inputs[6], inputs[7]});
}

/// As quantize_dynamic writes products.
inline void grow_dynamic_product(random_graph& r) {
  const auto x = rows_of_numbers(r, 2);
  if (!x) return;
  const std::int64_t columns = r.extent();
  const std::vector<drawn> a = r.add("DynamicQuantizeLinear", {x->id}, {}, 3);
  const dtype stored = r.coin() ? dtype::uint8 : dtype::int8;
  const bool each = r.coin();
  const dnnopt::dim_list own = each ? dnnopt::dim_list{columns} : dnnopt::dim_list{};
  std::vector<value_id> inputs{a[0].id, r.hold(codes(r, stored, {last_dim(*x), columns}, 0, 127)), a[2].id};
  if (r.coin()) inputs.push_back(r.hold(codes(r, stored, own, 0, 60)));
  const drawn sums = r.add_inner("MatMulInteger", inputs);
  const value_id real = r.add_inner("Cast", {sums.id}, {{"to", std::int64_t{1}}}).id;
  const value_id scale = r.add_inner("Mul", {a[1].id, r.hold(r.reals(own, 0.001F, 0.008F))}).id;
  const drawn scaled = r.add_inner("Mul", {real, scale});
  if (r.coin())
    r.add("Add", {scaled.id, r.constant({columns})});
  else
    r.add("Identity", {scaled.id});
}

inline void grow_product_of_codes(random_graph& r) {
  const auto x = rows_of_numbers(r, 2, 4);
  if (!x) return;
  quantizer qx = quantizer_of(r, x->largest, true);
  if (qx.zero == dnnopt::no_value) qx.zero = r.hold(codes(r, qx.type, {}, 0, 0));
  const std::int64_t columns = r.extent();
  const bool each = r.coin();
  const dtype stored = r.coin() ? dtype::int8 : qx.type;
  const dnnopt::dim_list own = each ? dnnopt::dim_list{columns} : dnnopt::dim_list{};
  const float reach = static_cast<float>(x->largest) * 0.5F * std::sqrt(static_cast<float>(last_dim(*x)));
  const value_id scale = quantizer_of(r, static_cast<double>(reach), true).scale;
  const value_id zero = r.hold(codes(r, qx.type, {}, 0, 100));
  const value_id y =
      r.add("QLinearMatMul",
            {quantized(r, x->id, qx).id, qx.scale, qx.zero, r.hold(codes(r, stored, {last_dim(*x), columns}, 0, 127)),
             r.hold(r.reals(own, 0.001F, 0.008F)), r.hold(codes(r, stored, own, 0, r.coin() ? 0 : 60)), scale, zero})[0]
          .id;
  r.add("DequantizeLinear", {y, scale, zero});
}

/// MatMulNBits as the importer writes it: codes [K, N] with scales and zero points for blocks along K; or for blocks
/// along N, which no quantizer writes. Every other matrix is too large to be folded.
inline void grow_product_by_blocks(random_graph& r) {
  const auto x = rows_of_numbers(r, 2);
  if (!x || last_dim(*x) < 2) return;
  const std::int64_t inner = last_dim(*x);
  constexpr std::int64_t folded = 4096;  // elements, of which fold_constants makes floats on every device
  const bool large = r.coin();
  const std::int64_t columns = r.extent() + (large ? folded / inner : 0);
  const std::int64_t axis = r.pick(0, 2) == 0 ? 1 : 0;
  const std::int64_t extent = axis == 0 ? inner : columns;
  const std::int64_t block = r.pick(1, static_cast<int>(std::min<std::int64_t>(extent, 8)));
  dnnopt::dim_list scales{inner, columns};
  scales[static_cast<std::size_t>(axis)] = (extent + block - 1) / block;
  std::vector<value_id> inputs{r.hold(codes(r, dtype::uint8, {inner, columns}, 0, r.coin() ? 15 : 255)),
                               r.hold(r.reals(scales, 0.005F, 0.05F)), r.hold(codes(r, dtype::uint8, scales, 6, 10))};
  const drawn w = r.add_inner("DequantizeLinear", inputs, {{"axis", axis}, {"block_size", block}});
  const drawn made = r.add_inner("MatMul", {x->id, w.id});
  if (large)
    r.add("MatMul", {made.id, r.constant({columns, r.extent()})});
  else if (r.coin())
    r.add("Add", {made.id, r.constant({columns})});
  else
    r.add("Identity", {made.id});
}

/// Pools, layouts and element-wise operators between codes, where quantizers keep them as codes.
inline void grow_rounded_moves(random_graph& r) {
  const auto x = r.real(1, 4);
  if (!x) return;
  const drawn a = rounded(r, *x);
  const std::size_t rank = x->dims.size();
  switch (r.pick(0, 6)) {
    case 0: {
      const auto y = r.find([&](const drawn& v) { return is_real(v) && r.broadcast(v, *x); });
      return give_rounded(r, r.add_inner(r.coin() ? "Add" : "Mul", {a.id, rounded(r, *y).id}));
    }
    case 1:
      if (rank < 3) return;
      return give_rounded(r, r.add_inner("GlobalAveragePool", {a.id}));
    case 2: {
      if (rank < 3) return;
      const drawn_window w = window_in(r, *x);
      random_graph::attribute_list attributes{{"kernel_shape", w.kernel}, {"strides", w.strides}, {"pads", w.pads}};
      if (std::any_of(w.pads.begin(), w.pads.end(), [](std::int64_t p) { return p > 0; }))
        for (std::size_t k = 0; k < w.kernel.size(); ++k)
          if (w.pads[k] >= w.kernel[k] || w.pads[k + w.kernel.size()] >= w.kernel[k]) return;
      return give_rounded(r, r.add_inner(r.coin() ? "MaxPool" : "AveragePool", {a.id}, attributes));
    }
    case 3:
      return give_rounded(r, r.add_inner("Transpose", {a.id}, {{"perm", r.permutation(rank)}}));
    case 4:
      return give_rounded(r, r.add_inner("Concat", {a.id, rounded(r, *x).id}, {{"axis", std::int64_t{0}}}));
    case 5:
      return give_rounded(r, r.add_inner("Softmax", {a.id}, {{"axis", std::int64_t{-1}}}));
    default:
      return give_rounded(r,
                          r.add_inner("Flatten", {a.id}, {{"axis", std::int64_t{r.pick(0, static_cast<int>(rank))}}}));
  }
}

inline constexpr std::array quantized_rows{
    growth_row{"product between codes", 4, grow_rounded_product},
    growth_row{"product of two rounded values", 1, grow_rounded_product_of_values},
    growth_row{"convolution between codes", 5, grow_rounded_convolution},
    growth_row{"dynamic product", 2, grow_dynamic_product},
    growth_row{"product of codes", 2, grow_product_of_codes},
    growth_row{"product by blocks", 2, grow_product_by_blocks},
    growth_row{"moves between codes", 4, grow_rounded_moves},
};

}  // namespace testing

#endif  // DNNOPT_TESTS_PROPERTY_RANDOM_QUANTIZED_HPP

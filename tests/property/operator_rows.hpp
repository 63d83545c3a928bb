// Owns the table of operators that random models of one operator are drawn from: element-wise ones, reductions,
// layouts.
#ifndef DNNOPT_TESTS_PROPERTY_OPERATOR_ROWS_HPP
#define DNNOPT_TESTS_PROPERTY_OPERATOR_ROWS_HPP

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "property/operator_drawer.hpp"

namespace testing {

inline void draw_function(operator_drawer& d) {
  d.op(d.one_of<std::string_view>({"Abs",
                                   "Neg",
                                   "Relu",
                                   "Sigmoid",
                                   "Tanh",
                                   "Erf",
                                   "HardSwish",
                                   "Softplus",
                                   "Gelu",
                                   "Mish",
                                   "Softsign",
                                   "Exp",
                                   "Ceil",
                                   "Floor",
                                   "Round",
                                   "Sign",
                                   "Identity",
                                   "Sin",
                                   "Cos",
                                   "Atan",
                                   "Asinh",
                                   "Sinh",
                                   "Cosh",
                                   "IsNaN",
                                   "IsInf",
                                   "Selu",
                                   "Elu",
                                   "Celu",
                                   "LeakyRelu",
                                   "HardSigmoid",
                                   "ThresholdedRelu",
                                   "Shrink",
                                   "Reciprocal",
                                   "Swish"}));
  d.data(d.real_type(), d.dims(d.rank(0, 5)));
}
inline void draw_positive_function(operator_drawer& d) {
  d.op(d.one_of<std::string_view>({"Sqrt", "Log", "Reciprocal", "Acosh"}));
  d.data(d.real_type(), d.dims(d.rank(0, 4)), 1.01, 3);
}
inline void draw_integer_function(operator_drawer& d) {
  d.op(d.one_of<std::string_view>({"Abs", "Neg", "Relu", "Sign", "Identity", "BitwiseNot"}));
  d.data(d.one_of({dtype::int64, dtype::int32, dtype::int16, dtype::int8}), d.dims(d.rank(0, 4)));
}
inline void draw_binary(operator_drawer& d) {
  d.op(d.one_of<std::string_view>(
      {"Add", "Sub", "Mul", "Add", "Sub", "Mul", "Less", "Greater", "LessOrEqual", "GreaterOrEqual", "Equal"}));
  const dtype type = d.number_type();
  const dim_list whole = d.dims(d.rank(0, 5));
  d.data(type, d.coin() ? whole : d.broadcast_with(whole));
  d.weights(type, d.broadcast_with(whole));
}
inline void draw_division(operator_drawer& d) {
  d.tame();
  d.op(d.one_of<std::string_view>({"Div", "Pow", "Mod"}));
  const bool power = d.made.op == "Pow";
  const dtype type = power ? d.real_type() : d.number_type();
  if (d.made.op == "Mod" &&
      (type == dtype::float32 || type == dtype::float16 || type == dtype::bfloat16 || type == dtype::float64))
    d.set("fmod", std::int64_t{1});
  const dim_list whole = d.dims(d.rank(0, 4));
  if (power && d.rarely(3)) {
    // A power of integers is cut to an integer: a base of 0 would have none for an exponent below 0.
    const dtype base = d.one_of({dtype::int32, dtype::int64});
    d.given(d.integers(base, d.broadcast_with(whole), 1, 6));
    if (d.coin())
      d.given(d.integers(base, d.broadcast_with(whole), 0, 4));
    else
      d.weights(dtype::float32, d.broadcast_with(whole), -2, 3);
    return;
  }
  if (power) {
    d.data(type, d.broadcast_with(whole), 0.5, 2);
    d.weights(d.coin() ? type : d.one_of({dtype::float32, dtype::int64, dtype::int32}), d.broadcast_with(whole), -2.5,
              2);
    return;
  }
  d.data(type, d.broadcast_with(whole));
  tensor by = d.numbers(type, d.broadcast_with(whole), false, 0.5, 3);
  if (std::none_of(
          std::initializer_list<dtype>{dtype::float32, dtype::float64, dtype::float16, dtype::bfloat16}.begin(),
          std::initializer_list<dtype>{dtype::float32, dtype::float64, dtype::float16, dtype::bfloat16}.end(),
          [&](dtype t) { return t == type; }))
    by = d.integers(type, by.dims(), 1, 5);
  d.given(std::move(by));
}
inline void draw_logic(operator_drawer& d) {
  const dim_list whole = d.dims(d.rank(0, 4));
  const bool bits = d.coin();
  d.op(bits ? d.one_of<std::string_view>({"BitwiseAnd", "BitwiseOr", "BitwiseXor"})
            : d.one_of<std::string_view>({"And", "Or", "Xor"}));
  const dtype type = bits ? d.integer_type() : dtype::boolean;
  d.data(type, d.broadcast_with(whole));
  d.weights(type, d.broadcast_with(whole));
}
inline void draw_shift(operator_drawer& d) {
  d.op("BitShift");
  d.set("direction", d.name_of({"LEFT", "RIGHT"}));
  const dtype type = d.one_of({dtype::uint8, dtype::uint16, dtype::uint32, dtype::uint64});
  const dim_list whole = d.dims(d.rank(0, 3));
  d.data(type, d.broadcast_with(whole));
  d.given(d.integers(type, d.broadcast_with(whole), 0, 7));
}
inline void draw_variadic(operator_drawer& d) {
  d.op(d.one_of<std::string_view>({"Sum", "Mean", "Max", "Min"}));
  const dtype type = d.made.op == "Max" || d.made.op == "Min" ? d.number_type() : d.real_type();
  const dim_list whole = d.dims(d.rank(0, 4));
  for (int k = d.pick(1, 5); k > 0; --k) d.data(type, d.broadcast_with(whole));
}
inline void draw_where(operator_drawer& d) {
  d.op("Where");
  const dtype type = d.rarely(5) ? dtype::boolean : d.number_type();
  const dim_list whole = d.dims(d.rank(0, 4));
  d.data(dtype::boolean, d.broadcast_with(whole));
  d.data(type, d.broadcast_with(whole));
  d.weights(type, d.broadcast_with(whole));
}
inline void draw_clip(operator_drawer& d) {
  d.op("Clip");
  const dtype type = d.number_type();
  d.data(type, d.dims(d.rank(0, 4)));
  if (d.coin())
    d.scalar(type, d.one_of({0, 1}));
  else
    d.absent();
  if (d.coin()) d.scalar(type, d.one_of({1, 2}));
  while (!d.made.inputs.empty() && d.made.inputs.back().content.empty()) d.made.inputs.pop_back();
}
inline void draw_cast(operator_drawer& d) {
  d.tame();
  const dtype from = d.rarely(5) ? dtype::boolean : d.number_type();
  // What a negative number becomes without a sign is not defined.
  const dtype to = d.rarely(5) ? dtype::boolean
                               : d.one_of({dtype::float32, dtype::float16, dtype::bfloat16, dtype::float64,
                                           dtype::int64, dtype::int32, dtype::int16, dtype::int8});
  const dim_list whole = d.dims(d.rank(0, 4));
  d.data(from, whole);
  if (d.coin()) {
    d.op("Cast");
    d.set("to", static_cast<std::int64_t>(to));
  } else {
    d.op("CastLike");
    d.data(to, d.dims(d.rank(0, 2)));
  }
}
inline void draw_prelu(operator_drawer& d) {
  d.op("PRelu");
  const dtype type = d.real_type();
  const dim_list whole = d.dims(d.rank(1, 4));
  d.data(type, whole);
  dim_list slope = whole;
  for (std::int64_t& e : slope)
    if (d.coin()) e = 1;
  d.weights(type, slope);
}

inline void draw_reduction(operator_drawer& d) {
  d.tame();
  d.op(d.one_of<std::string_view>({"ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1",
                                   "ReduceL2", "ReduceSumSquare", "ReduceLogSum", "ReduceLogSumExp"}));
  const bool positive = d.made.op == "ReduceLogSum";
  const dtype type = d.rarely(6) && !positive ? d.one_of({dtype::int64, dtype::int32}) : d.real_type();
  const std::size_t rank = d.rank(0, 5);
  d.data(type, d.dims(rank), positive ? 0.5 : -1.5, 1.5);
  if (rank > 0 && !d.rarely(4)) d.settings(d.some_axes(rank));
  d.maybe("keepdims", std::int64_t{d.pick(0, 1)});
  if (d.rarely(5)) d.set("noop_with_empty_axes", std::int64_t{1});
}
inline void draw_arg(operator_drawer& d) {
  d.tame();
  d.op(d.coin() ? "ArgMax" : "ArgMin");
  const std::size_t rank = d.rank(1, 4);
  d.data(d.number_type(), d.dims(rank));
  d.maybe("axis", d.axis(rank));
  d.maybe("keepdims", std::int64_t{d.pick(0, 1)});
  d.maybe("select_last_index", std::int64_t{d.pick(0, 1)});
}
inline void draw_cumulation(operator_drawer& d) {
  d.tame();
  d.op("CumSum");
  const std::size_t rank = d.rank(1, 4);
  d.data(d.one_of({dtype::float32, dtype::float64, dtype::int32, dtype::int64}), d.dims(rank));
  d.scalar(dtype::int64, static_cast<double>(d.axis(rank)));
  d.maybe("exclusive", std::int64_t{d.pick(0, 1)});
  d.maybe("reverse", std::int64_t{d.pick(0, 1)});
}
inline void draw_softmax(operator_drawer& d) {
  d.tame();
  d.op(d.one_of<std::string_view>({"Softmax", "LogSoftmax", "Softmax", "Hardmax"}));
  const std::size_t rank = d.rank(1, 5);
  d.data(d.real_type(), d.dims(rank));
  d.maybe("axis", d.axis(rank));
}
inline void draw_layer_normalization(operator_drawer& d) {
  d.tame();
  const bool rms = d.coin();
  d.op(rms ? "RMSNormalization" : "LayerNormalization");
  const dtype type = d.one_of({dtype::float32, dtype::float32, dtype::float16, dtype::bfloat16});
  const std::size_t rank = d.rank(1, 4);
  const dim_list whole = d.dims(rank);
  const std::int64_t axis = d.axis(rank);
  d.data(type, whole);
  d.set("axis", axis);
  const dim_list normalized(whole.begin() + (axis < 0 ? axis + static_cast<std::int64_t>(rank) : axis), whole.end());
  d.weights(rms && d.rarely(3) ? d.real_type() : type, d.rarely(4) ? dim_list(normalized.size(), 1) : normalized);
  if (!rms && d.coin()) d.weights(type, normalized);
  d.maybe("epsilon", 1e-3F);
}
inline void draw_channel_normalization(operator_drawer& d) {
  d.tame();
  const dtype type = d.one_of({dtype::float32, dtype::float32, dtype::float16});
  const int which = d.pick(0, 4);
  const std::size_t rank = d.rank(3, 5);
  dim_list whole = d.dims(rank);
  const std::int64_t groups = d.pick(1, 4);
  if (which == 1) whole[1] *= groups;
  d.data(type, whole);
  switch (which) {
    case 0:
      d.op("InstanceNormalization");
      d.weights(type, {whole[1]});
      d.weights(type, {whole[1]});
      return;
    case 1:
      d.op("GroupNormalization");
      d.set("num_groups", groups);
      d.weights(type, {whole[1]});
      d.weights(type, {whole[1]});
      return;
    case 2: {
      d.op("BatchNormalization");
      // Parameters and statistics may be of other types than the data.
      const dtype parameters = d.rarely(3) ? d.real_type() : type;
      const dtype statistics = d.rarely(3) ? d.real_type() : type;
      for (int k = 0; k < 2; ++k) d.weights(parameters, {whole[1]});
      d.weights(statistics, {whole[1]});
      d.weights(statistics, {whole[1]}, 0.5, 1.5);
      return;
    }
    case 3:
      d.op("LRN");
      d.set("size", d.one_of<std::int64_t>({1, 3, 5}));
      return;
    default:
      d.op("LpNormalization");
      d.set("axis", d.axis(rank));
      d.set("p", std::int64_t{d.pick(1, 2)});
      return;
  }
}

inline void draw_transpose(operator_drawer& d) {
  d.op("Transpose");
  const std::size_t rank = d.rank(0, 6);
  d.data(d.rarely(3) ? d.integer_type() : d.real_type(), d.dims(rank));
  if (rank > 0 && !d.rarely(5)) d.set("perm", d.permutation(rank));
}
inline void draw_reshape(operator_drawer& d) {
  d.op("Reshape");
  const dim_list whole = d.dims(d.rank(0, 5));
  d.data(d.number_type(), whole);
  switch (d.pick(0, 3)) {
    case 0:
      d.settings({-1});
      return;
    case 1: {  // two dims joined
      if (whole.size() < 2) return d.settings(whole);
      const auto k = static_cast<std::size_t>(d.pick(0, static_cast<int>(whole.size()) - 2));
      ints to(whole.begin(), whole.end());
      to[k] = -1;
      to.erase(to.begin() + static_cast<std::ptrdiff_t>(k) + 1);
      for (std::size_t i = 0; i < k; ++i)
        if (d.coin()) to[i] = 0;
      return d.settings(to);
    }
    case 2: {
      ints to(whole.begin(), whole.end());
      to.insert(to.begin() + d.pick(0, static_cast<int>(to.size())), 1);
      if (d.rarely(3)) d.set("allowzero", std::int64_t{1});
      return d.settings(to);
    }
    default:
      return d.settings(ints(whole.begin(), whole.end()));
  }
}
inline void draw_ranks(operator_drawer& d) {
  const std::size_t rank = d.rank(1, 4);
  dim_list whole = d.dims(rank);
  switch (d.pick(0, 2)) {
    case 0:
      d.op("Flatten");
      d.data(d.number_type(), whole);
      d.maybe("axis", std::int64_t{d.pick(-static_cast<int>(rank), static_cast<int>(rank))});
      return;
    case 1: {
      d.op("Unsqueeze");
      d.data(d.number_type(), whole);
      ints axes = d.some_axes(std::min<std::size_t>(rank, 2));
      for (std::int64_t& a : axes)
        if (a < 0) a = -1 - (a + 2);
      std::sort(axes.begin(), axes.end());
      axes.erase(std::unique(axes.begin(), axes.end()), axes.end());
      d.settings(axes);
      return;
    }
    default: {
      d.op("Squeeze");
      const ints axes = d.some_axes(rank);
      for (const std::int64_t a : axes)
        whole[static_cast<std::size_t>(a < 0 ? a + static_cast<std::int64_t>(rank) : a)] = 1;
      d.data(d.number_type(), whole);
      if (!d.rarely(5)) d.settings(axes);
      return;
    }
  }
}
inline void draw_slice(operator_drawer& d) {
  d.op("Slice");
  const std::size_t rank = d.rank(1, 4);
  d.data(d.number_type(), d.dims(rank));
  const ints axes = d.some_axes(rank);
  ints from, to, steps;
  for (std::size_t k = 0; k < axes.size(); ++k) {
    const bool back = d.rarely(3);
    steps.push_back(back ? -d.pick(1, 3) : d.pick(1, 3));
    from.push_back(d.one_of<std::int64_t>({0, 1, 2, -1, -2, -3, 5, 100, -100}));
    to.push_back(d.one_of<std::int64_t>({0, 1, 3, -1, -2, 7, 9223372036854775807, -9223372036854775807, 100, -100}));
  }
  d.settings(from);
  d.settings(to);
  d.settings(axes);
  if (!d.rarely(4)) d.settings(steps);
}
inline void draw_concat(operator_drawer& d) {
  d.op("Concat");
  const std::size_t rank = d.rank(1, 5);
  const dtype type = d.number_type();
  const dim_list whole = d.dims(rank);
  const std::int64_t axis = d.axis(rank);
  for (int k = d.pick(1, 5); k > 0; --k) {
    dim_list own = whole;
    own[static_cast<std::size_t>(axis < 0 ? axis + static_cast<std::int64_t>(rank) : axis)] = d.extent();
    d.data(type, own);
  }
  d.set("axis", axis);
}
inline void draw_split(operator_drawer& d) {
  const std::size_t rank = d.rank(1, 4);
  const std::int64_t axis = d.axis(rank);
  const int parts = d.pick(1, 4);
  d.op("Split", static_cast<std::size_t>(parts));
  dim_list whole = d.dims(rank);
  d.set("axis", axis);
  std::int64_t& along = whole[static_cast<std::size_t>(axis < 0 ? axis + static_cast<std::int64_t>(rank) : axis)];
  if (d.coin()) {
    along = parts * d.extent(1) - (d.coin() ? 0 : d.pick(0, parts - 1));
    d.set("num_outputs", std::int64_t{parts});
    d.data(d.number_type(), whole);
    return;
  }
  ints sizes;
  for (int k = 0; k < parts; ++k) sizes.push_back(d.pick(0, 3));
  along = 0;
  for (const std::int64_t s : sizes) along += s;
  d.data(d.number_type(), whole);
  d.settings(sizes);
}
inline void draw_pad(operator_drawer& d) {
  d.op("Pad");
  const std::string mode = d.name_of({"constant", "constant", "reflect", "edge", "wrap"});
  const std::size_t rank = d.rank(1, 4);
  const dtype type = d.number_type();
  d.data(type, d.dims(rank, mode == "constant" ? 0 : 3));
  ints pads;
  for (std::size_t k = 0; k < 2 * rank; ++k) pads.push_back(d.rarely(2) ? d.pick(mode == "constant" ? -1 : 0, 2) : 0);
  d.settings(pads);
  if (mode == "constant" && d.coin()) d.scalar(type, 1);
  d.set("mode", mode);
}
inline void draw_repetition(operator_drawer& d) {
  const std::size_t rank = d.rank(1, 4);
  if (d.coin()) {
    d.op("Tile");
    d.data(d.number_type(), d.dims(rank));
    ints repeats;
    for (std::size_t k = 0; k < rank; ++k) repeats.push_back(d.pick(d.rarely(8) ? 0 : 1, 3));
    d.settings(repeats);
    return;
  }
  d.op("Expand");
  const dim_list whole = d.dims(rank);
  d.data(d.number_type(), d.broadcast_with(whole));
  dim_list to = whole;
  if (d.rarely(3)) to.insert(to.begin(), d.pick(1, 3));
  d.settings(ints(to.begin(), to.end()));
}
inline void draw_triangle(operator_drawer& d) {
  d.op("Trilu");
  d.data(d.number_type(), d.dims(d.rank(2, 4)));
  if (d.coin()) d.scalar(dtype::int64, d.pick(-4, 4));
  d.maybe("upper", std::int64_t{d.pick(0, 1)});
}
inline void draw_pixels(operator_drawer& d) {
  dim_list whole = d.dims(4);
  const std::int64_t block = d.pick(1, 3);
  if (d.coin()) {
    d.op("DepthToSpace");
    whole[1] *= block * block;
    d.maybe("mode", d.name_of({"DCR", "CRD"}));
  } else {
    d.op("SpaceToDepth");
    whole[2] *= block;
    whole[3] *= block;
  }
  d.set("blocksize", block);
  d.data(d.real_type(), whole);
}

inline constexpr std::array layout_operator_rows{
    operator_row{"function", 6, draw_function},
    operator_row{"positive function", 1, draw_positive_function},
    operator_row{"integer function", 1, draw_integer_function},
    operator_row{"binary", 10, draw_binary},
    operator_row{"division", 5, draw_division},
    operator_row{"logic", 2, draw_logic},
    operator_row{"shift", 1, draw_shift},
    operator_row{"variadic", 3, draw_variadic},
    operator_row{"where", 4, draw_where},
    operator_row{"clip", 2, draw_clip},
    operator_row{"cast", 3, draw_cast},
    operator_row{"prelu", 1, draw_prelu},
    operator_row{"reduction", 8, draw_reduction},
    operator_row{"arg", 3, draw_arg},
    operator_row{"cumulation", 2, draw_cumulation},
    operator_row{"softmax", 4, draw_softmax},
    operator_row{"layer normalization", 3, draw_layer_normalization},
    operator_row{"channel normalization", 4, draw_channel_normalization},
    operator_row{"transpose", 4, draw_transpose},
    operator_row{"reshape", 4, draw_reshape},
    operator_row{"ranks", 3, draw_ranks},
    operator_row{"slice", 5, draw_slice},
    operator_row{"concat", 4, draw_concat},
    operator_row{"split", 4, draw_split},
    operator_row{"pad", 4, draw_pad},
    operator_row{"repetition", 4, draw_repetition},
    operator_row{"triangle", 2, draw_triangle},
    operator_row{"pixels", 2, draw_pixels},
};

}  // namespace testing

#endif  // DNNOPT_TESTS_PROPERTY_OPERATOR_ROWS_HPP

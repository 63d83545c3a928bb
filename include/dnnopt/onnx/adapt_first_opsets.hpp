// Owns the change of nodes of opsets 1 to 6, and of operators that ONNX gave up, to the form of opset 7.
#ifndef DNNOPT_ONNX_ADAPT_FIRST_OPSETS_HPP
#define DNNOPT_ONNX_ADAPT_FIRST_OPSETS_HPP

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <dnnopt/dtype.hpp>
#include <dnnopt/error.hpp>
#include <dnnopt/onnx/adapter_row.hpp>
#include <dnnopt/onnx/node_emitter.hpp>
#include <dnnopt/tensor.hpp>

namespace dnnopt::onnx::detail {

/// The rank of input `i`. Errors: unsupported where it is not known.
[[nodiscard]] inline std::size_t known_rank(const pending_node& n, const node_emitter& e, std::size_t i) {
  const std::optional<std::size_t> rank = e.rank_of(n, i);
  if (!rank)
    throw error(errc::unsupported, n.op_type + " of opset " + std::to_string(n.version) + " needs the rank of input " +
                                       std::to_string(i) + ", which is not known");
  return *rank;
}
/// Input `i` with `count` dims of 1 behind its own.
[[nodiscard]] inline value_id with_trailing_ones(const pending_node& n, node_emitter& e, std::size_t i,
                                                 std::size_t count) {
  std::vector<std::int64_t> axes(count, 0);
  for (std::size_t k = 0; k < count; ++k) axes[k] = static_cast<std::int64_t>(known_rank(n, e, i) + k);
  return e.emit(n, "Unsqueeze", {n.input(i), e.integers(n, "axes", axes)});
}

/// Before 7 the second operand is broadcast only where `broadcast` is set: its dims are those of the first from `axis`
/// on, by default the last ones.
inline void adapt_broadcast_7(pending_node& n, node_emitter& e) {
  const bool broadcast = n.attributes.get_int("broadcast", 0) != 0;
  if (broadcast && n.attributes.contains("axis") && n.input(0) != no_value && n.input(1) != no_value) {
    const auto rank = static_cast<std::int64_t>(known_rank(n, e, 0));
    const auto own = static_cast<std::int64_t>(known_rank(n, e, 1));
    std::int64_t axis = n.attributes.require<std::int64_t>("axis");
    if (axis < 0) axis += rank;
    if (axis < 0 || axis + own > rank)
      throw error(errc::bad_attribute, n.op_type + ": axis " + std::to_string(axis) + " for ranks " +
                                           std::to_string(rank) + " and " + std::to_string(own));
    if (own != 0 && axis + own < rank)
      n.inputs[1] = with_trailing_ones(n, e, 1, static_cast<std::size_t>(rank - axis - own));
  }
  n.attributes.erase("broadcast");
  n.attributes.erase("axis");
}

/// Before 7 a slope of one dim belongs to the channels.
inline void adapt_prelu_7(pending_node& n, node_emitter& e) {
  const value_facts* slope = e.facts_of(n, 1);
  if (slope == nullptr || !slope->dims || slope->dims->size() != 1 || (*slope->dims)[0] == index_expr(1)) return;
  const std::size_t rank = known_rank(n, e, 0);
  if (rank > 2) n.inputs[1] = with_trailing_ones(n, e, 1, rank - 2);
}

inline void adapt_gemm_7(pending_node& n, node_emitter&) { n.attributes.erase("broadcast"); }

/// Without is_test it is a training step, which no engine runs for inference.
inline void adapt_batch_normalization_7(pending_node& n, node_emitter&) {
  if (n.attributes.get_int("is_test", 0) == 0)
    throw error(errc::unsupported, "BatchNormalization of opset " + std::to_string(n.version) +
                                       " without is_test, which asks for a training step");
  n.attributes.erase("is_test");
}
inline void adapt_dropout_7(pending_node& n, node_emitter&) { n.attributes.erase("is_test"); }

/// Before 6 the type has its name.
inline void adapt_cast_6(pending_node& n, node_emitter&) {
  const attribute* to = n.attributes.find("to");
  const auto* name = to == nullptr ? nullptr : std::get_if<std::string>(to);
  if (name == nullptr) return;
  std::string lower = *name;
  for (char& c : lower)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  constexpr std::array<std::pair<std::string_view, dtype>, 4> other{
      {{"float", dtype::float32}, {"double", dtype::float64}, {"bool", dtype::boolean}, {"string", dtype::string}}};
  std::optional<dtype> type;
  for (const auto& [key, value] : other)
    if (key == lower) type = value;
  for (std::size_t i = 1; i < dtype_table.size(); ++i)
    if (name_of(static_cast<dtype>(i)) == lower) type = static_cast<dtype>(i);
  if (!type) throw error(errc::bad_attribute, "Cast: to is '" + *name + "'");
  n.attributes.set("to", static_cast<std::int64_t>(*type));
}

inline void adapt_concat_4(pending_node& n, node_emitter&) {
  if (!n.attributes.contains("axis")) n.attributes.set("axis", std::int64_t{1});
}
/// Before 2 the norm's exponent is a float.
inline void adapt_lp_pool_2(pending_node& n, node_emitter&) {
  const attribute* p = n.attributes.find("p");
  const auto* real = p == nullptr ? nullptr : std::get_if<float>(p);
  if (real == nullptr) return;
  const auto whole = static_cast<std::int64_t>(*real);
  if (static_cast<float>(whole) != *real)
    throw error(errc::unsupported, n.op_type + " with p = " + std::to_string(*real));
  n.attributes.set("p", whole);
}
inline void adapt_pad_2(pending_node& n, node_emitter&) {
  if (!n.attributes.contains("paddings")) return;
  n.attributes.set("pads", n.attributes.require<std::vector<std::int64_t>>("paddings"));
  n.attributes.erase("paddings");
}
inline void adapt_reshape_5(pending_node& n, node_emitter& e) {
  if (!n.attributes.contains("shape")) throw error(errc::bad_attribute, "attribute 'shape' is missing");
  list_to_input(n, e, "shape", 1);
}
inline void adapt_recurrent_7(pending_node& n, node_emitter&) { n.attributes.erase("output_sequence"); }

/// Before 6 one axis is repeated: inputs 1 and 2 are the number and the axis.
inline void adapt_tile_6(pending_node& n, node_emitter& e) {
  const std::size_t rank = known_rank(n, e, 0);
  const auto constant = [&](std::size_t slot) {
    const value_facts* f = e.facts_of(n, slot);
    if (f == nullptr || !f->is_constant() || f->constant.size() != 1)
      throw error(errc::unsupported,
                  "Tile of opset " + std::to_string(n.version) + " with a computed input " + std::to_string(slot));
    return is_floating(f->constant.type()) ? static_cast<std::int64_t>(f->constant.data<float>()[0])
                                           : integers_of(f->constant)[0];
  };
  std::vector<std::int64_t> repeats(rank, 1);
  const std::int64_t axis = constant(2);
  if (axis < 0 || static_cast<std::size_t>(axis) >= rank)
    throw error(errc::bad_attribute, "Tile: axis " + std::to_string(axis) + " of rank " + std::to_string(rank));
  repeats[static_cast<std::size_t>(axis)] = constant(1);
  n.inputs = {n.input(0), e.integers(n, "repeats", repeats)};
}
inline void adapt_upsample_7(pending_node& n, node_emitter&) {
  if (n.attributes.contains("scales")) return;
  n.attributes.set("scales", std::vector<float>{1, 1, n.attributes.require<float>("height_scale"),
                                                n.attributes.require<float>("width_scale")});
  n.attributes.erase("height_scale");
  n.attributes.erase("width_scale");
}

/// Before 9 the axes are all but that of the channels, or all with `across_channels`.
inline void adapt_mean_variance_normalization_9(pending_node& n, node_emitter& e) {
  std::vector<std::int64_t> axes;
  const bool across = n.attributes.get_int("across_channels", 0) != 0;
  for (std::size_t k = 0; k < known_rank(n, e, 0); ++k)
    if (across || k != 1) axes.push_back(static_cast<std::int64_t>(k));
  const bool variance = n.attributes.get_int("normalize_variance", 1) != 0;
  n.attributes = {};
  if (variance) {
    n.attributes.set("axes", axes);
    return;
  }
  const value_id mean = e.emit(n, "ReduceMean", {n.input(0), e.integers(n, "axes", axes)});
  n.op_type = "Sub";
  n.inputs = {n.input(0), mean};
  n.version = newest_opset;
}

// --- operators that ONNX gave up; ONNX Runtime still runs them ---

inline value_id real(const pending_node& n, node_emitter& e, const char* name, float fallback) {
  return e.constant(n, name, scalar_of(type_of(n, e, 0), static_cast<double>(n.attributes.get_float(name, fallback))));
}
inline void become(pending_node& n, const char* op_type, std::vector<value_id> inputs) {
  n.op_type = op_type;
  n.inputs = std::move(inputs);
  n.attributes = {};
  n.version = newest_opset;
}
inline void adapt_affine(pending_node& n, node_emitter& e) {
  const value_id scaled = e.emit(n, "Mul", {n.input(0), real(n, e, "alpha", 1)});
  become(n, "Add", {scaled, real(n, e, "beta", 0)});
}
inline void adapt_scaled_tanh(pending_node& n, node_emitter& e) {
  const value_id inner = e.emit(n, "Tanh", {e.emit(n, "Mul", {n.input(0), real(n, e, "beta", 1)})});
  become(n, "Mul", {inner, real(n, e, "alpha", 1)});
}
inline void adapt_parametric_softplus(pending_node& n, node_emitter& e) {
  const value_id inner = e.emit(n, "Softplus", {e.emit(n, "Mul", {n.input(0), real(n, e, "beta", 1)})});
  become(n, "Mul", {inner, real(n, e, "alpha", 1)});
}
/// ImageScaler: a factor for all elements, then a bias per channel.
inline void adapt_image_scaler(pending_node& n, node_emitter& e) {
  const std::vector<float> bias = n.attributes.get_floats("bias");
  const value_id scaled = e.emit(n, "Mul", {n.input(0), real(n, e, "scale", 1)});
  become(n, "Add",
         {scaled, e.constant(n, "bias", tensor::of<float>({static_cast<std::int64_t>(bias.size()), 1, 1}, bias))});
}
/// Crop: `border` (left, top, right, bottom) taken off; with `scale`, so many rows and columns from there.
inline void adapt_crop(pending_node& n, node_emitter& e) {
  const auto border = n.attributes.require<std::vector<std::int64_t>>("border");
  const std::vector<std::int64_t> scale = n.attributes.get_ints("scale");
  if (border.size() != 4 || (!scale.empty() && scale.size() != 2))
    throw error(errc::bad_attribute, "Crop: border has " + std::to_string(border.size()) + " numbers, scale " +
                                         std::to_string(scale.size()));
  constexpr std::int64_t to_the_end = std::numeric_limits<std::int64_t>::max();
  const auto end = [&](std::int64_t off, std::int64_t from, std::size_t axis) {
    return scale.empty() ? (off == 0 ? to_the_end : -off) : from + scale[axis];
  };
  become(n, "Slice",
         {n.input(0), e.integers(n, "starts", {border[1], border[0]}),
          e.integers(n, "ends", {end(border[3], border[1], 0), end(border[2], border[0], 1)}),
          e.integers(n, "axes", {2, 3})});
}

/// Changes of form up to opset 7, and operators without a later form. Rows of one operator ascend.
inline constexpr adapter_row first_adapters[] = {
    {"Add", 7, adapt_broadcast_7},
    {"Affine", newest_opset + 1, adapt_affine},
    {"And", 7, adapt_broadcast_7},
    {"BatchNormalization", 7, adapt_batch_normalization_7},
    {"Cast", 6, adapt_cast_6},
    {"Concat", 4, adapt_concat_4},
    {"Crop", newest_opset + 1, adapt_crop},
    {"Div", 7, adapt_broadcast_7},
    {"Dropout", 7, adapt_dropout_7},
    {"Equal", 7, adapt_broadcast_7},
    {"GRU", 7, adapt_recurrent_7},
    {"Gemm", 7, adapt_gemm_7},
    {"GlobalLpPool", 2, adapt_lp_pool_2},
    {"Greater", 7, adapt_broadcast_7},
    {"ImageScaler", newest_opset + 1, adapt_image_scaler},
    {"LSTM", 7, adapt_recurrent_7},
    {"Less", 7, adapt_broadcast_7},
    {"LpPool", 2, adapt_lp_pool_2},
    {"MeanVarianceNormalization", 9, adapt_mean_variance_normalization_9},
    {"Mul", 7, adapt_broadcast_7},
    {"Or", 7, adapt_broadcast_7},
    {"PRelu", 7, adapt_prelu_7},
    {"Pad", 2, adapt_pad_2},
    {"ParametricSoftplus", newest_opset + 1, adapt_parametric_softplus},
    {"Pow", 7, adapt_broadcast_7},
    {"RNN", 7, adapt_recurrent_7},
    {"Reshape", 5, adapt_reshape_5},
    {"ScaledTanh", newest_opset + 1, adapt_scaled_tanh},
    {"Sub", 7, adapt_broadcast_7},
    {"Tile", 6, adapt_tile_6},
    {"Upsample", 7, adapt_upsample_7},
    {"Xor", 7, adapt_broadcast_7},
};

}  // namespace dnnopt::onnx::detail

#endif  // DNNOPT_ONNX_ADAPT_FIRST_OPSETS_HPP

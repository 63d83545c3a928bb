// Owns the expansion of recurrent networks whose weights are integers.
#ifndef DNNOPT_ONNX_CONTRIB_RECURRENT_HPP
#define DNNOPT_ONNX_CONTRIB_RECURRENT_HPP

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include <dnnopt/onnx/contrib/expansion.hpp>

namespace dnnopt::onnx::contrib {

/// `a` by its least and greatest element as 8-bit integers, times integers with zero points and scales: a scalar or an
/// element per column each.
inline value_id add_dynamic_product(expansion& x, value_id a, value_id weights, value_id zero_point, value_id scale) {
  const std::vector<value_id> codes = x.add_many("DynamicQuantizeLinear", {a}, {}, {no_value, no_value, no_value});
  const value_id sums = x.add("MatMulInteger", {codes[0], weights, codes[2], zero_point});
  return x.add("Mul", {x.cast(sums, dtype::float32), x.add("Mul", {codes[1], scale})});
}

/// An LSTM that quantizes all of its input at once, and the state of each step by that step's least and greatest
/// element. Inputs: X, W and R (directions, rows, 4 hidden), B, lengths, both states, P, then scale and zero point of W
/// and of R. Source: ONNX Runtime's contrib operators; its LSTM splits a large batch among threads and quantizes each
/// part's state by itself, here it is one.
inline void expand_dynamic_quantize_lstm(expansion& x) {
  x.refuse_input(4, "sequence_lens");
  if (x.attributes().find("clip") != nullptr) x.refuse("clip has no expansion");
  for (const char* name : {"activations", "activation_alpha", "activation_beta"})
    if (x.attributes().find(name) != nullptr) x.refuse(std::string(name) + " has no expansion");
  const std::string direction = x.attributes().get_string("direction", "forward");
  const bool coupled = x.attributes().get_int("input_forget", 0) != 0;
  const std::int64_t hidden = x.count_attribute("hidden_size");
  const std::size_t directions = direction == "bidirectional" ? 2 : 1;
  std::vector<value_id> all, last_h, last_c;
  for (std::size_t d = 0; d < directions; ++d) {
    const auto at = static_cast<std::int64_t>(d);
    const auto own = [&](std::size_t input) { return x.pick(x.in(input), 0, at); };
    const auto state = [&](std::size_t input) {
      if (x.has(input)) return own(input);
      return x.add("Expand",
                   {x.constant("zero", tensor::scalar(0.0F)), x.list({x.dim(x.in(0), 1), x.integers({hidden})})});
    };
    value_id gates = add_dynamic_product(x, x.in(0), own(1), own(9), own(8));
    if (x.has(3))
      for (const value_id bias : x.split(own(3), 0, 2)) gates = x.add("Add", {gates, bias});
    std::vector<value_id> captured{own(2), own(11), own(10)};
    if (x.has(7)) captured.push_back(own(7));
    const auto step = [&](expansion& b, const std::vector<value_id>& v) -> std::vector<value_id> {
      const value_id c = v[1];
      const value_id sums = b.add("Add", {v[2], add_dynamic_product(b, v[0], v[3], v[4], v[5])});
      const std::vector<value_id> part = b.split(sums, 1, 4);  // input, output, forget, cell
      const std::vector<value_id> look = v.size() > 6 ? b.split(v[6], 0, 3) : std::vector<value_id>();
      const auto gate = [&](std::size_t i, value_id cell) {
        const value_id open = look.empty() ? part[i] : b.add("Add", {part[i], b.add("Mul", {look[i], cell})});
        return b.add("Sigmoid", {open});
      };
      const value_id in = gate(0, c);
      const value_id forget = coupled ? b.add("Sub", {b.constant("one", tensor::scalar(1.0F)), in}) : gate(2, c);
      const value_id next = b.add("Add", {b.add("Mul", {forget, c}), b.add("Mul", {in, b.add("Tanh", {part[3]})})});
      const value_id h = b.add("Mul", {gate(1, next), b.add("Tanh", {next})});
      return {h, next, b.add("Identity", {h})};
    };
    const bool reverse = direction == "reverse" || d == 1;
    const std::vector<value_id> out = x.scan({state(5), state(6)}, {gates}, captured, reverse, step);
    last_h.push_back(out[0]);
    last_c.push_back(out[1]);
    all.push_back(out[2]);
  }
  const auto give = [&](std::size_t output, const std::vector<value_id>& parts, std::int64_t axis) {
    if (x.out(output) == no_value) return;
    if (parts.size() == 1) {
      x.give(output, "Unsqueeze", {parts[0], x.integers({axis})});
      return;
    }
    std::vector<value_id> wide;
    for (const value_id part : parts) wide.push_back(x.unsqueeze(part, {axis}));
    x.give(output, "Concat", wide, with({{"axis", axis}}));
  };
  give(0, all, 1);
  give(1, last_h, 0);
  give(2, last_c, 0);
}

inline constexpr std::array recurrent_rows{
    contrib_row{"com.microsoft", "DynamicQuantizeLSTM", {12, 12, 0, 3}, expand_dynamic_quantize_lstm},
};

}  // namespace dnnopt::onnx::contrib

#endif  // DNNOPT_ONNX_CONTRIB_RECURRENT_HPP

// Owns the reference evaluation of the recurrent layers RNN, GRU and LSTM.
#ifndef DNNOPT_REFERENCE_RECURRENT_HPP
#define DNNOPT_REFERENCE_RECURRENT_HPP

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dnnopt/ops/facts.hpp>
#include <dnnopt/ops/recurrent_cells.hpp>
#include <dnnopt/reference/element_copy.hpp>
#include <dnnopt/reference/elements.hpp>
#include <dnnopt/reference/reference_row.hpp>

namespace dnnopt::reference {

namespace recurrent {

/// An activation of x, computed in double.
[[nodiscard]] inline double apply(const recurrent_activation& activation, double x) {
  const double a = activation.alpha;
  const double b = activation.beta;
  switch (activation.function) {
    case recurrent_function::relu:
      return std::max(x, 0.0);
    case recurrent_function::tanh:
      return std::tanh(x);
    case recurrent_function::sigmoid:
      return 1.0 / (1.0 + std::exp(-x));
    case recurrent_function::softsign:
      return x / (1.0 + std::fabs(x));
    case recurrent_function::softplus:
      return std::log1p(std::exp(-std::fabs(x))) + std::max(x, 0.0);
    case recurrent_function::leaky_relu:
      return x >= 0.0 ? x : a * x;
    case recurrent_function::thresholded_relu:
      return x > a ? x : 0.0;
    case recurrent_function::elu:
      return x >= 0.0 ? x : a * std::expm1(x);
    case recurrent_function::affine:
      return a * x + b;
    case recurrent_function::scaled_tanh:
      return a * std::tanh(b * x);
    case recurrent_function::hard_sigmoid:
      return std::clamp(a * x + b, 0.0, 1.0);
  }
  return x;
}

/// Everything that the cells of one direction read; matrices are row-major, one row per gate and hidden unit.
struct direction_data {
  std::span<const double> w;
  std::span<const double> r;
  std::vector<double> input_bias;
  std::vector<double> recurrent_bias;
  std::span<const double> peepholes;  ///< LSTM: of input, output and forget gate; may be empty
  std::span<const recurrent_activation> functions;
  std::size_t inputs;
  std::size_t hidden;
  double clip;   ///< 0: none
  bool variant;  ///< LSTM: coupled input and forget gate; GRU: linear before reset

  [[nodiscard]] double limited(double x) const { return clip > 0.0 ? std::clamp(x, -clip, clip) : x; }
  [[nodiscard]] double from_input(std::size_t row, const double* x) const {
    double total = input_bias[row];
    for (std::size_t k = 0; k < inputs; ++k) total += w[row * inputs + k] * x[k];
    return total;
  }
  [[nodiscard]] double from_state(std::size_t row, const double* h) const {
    double total = recurrent_bias[row];
    for (std::size_t k = 0; k < hidden; ++k) total += r[row * hidden + k] * h[k];
    return total;
  }
};

/// Advances hidden state `h` (and cell state `c`) by one time step.
using cell_function = void (*)(const direction_data& data, const double* x, std::vector<double>& h,
                               std::vector<double>& c);

inline void rnn_cell(const direction_data& data, const double* x, std::vector<double>& h, std::vector<double>&) {
  std::vector<double> next(data.hidden);
  for (std::size_t u = 0; u < data.hidden; ++u)
    next[u] = apply(data.functions[0], data.limited(data.from_input(u, x) + data.from_state(u, h.data())));
  h = std::move(next);
}

inline void gru_cell(const direction_data& data, const double* x, std::vector<double>& h, std::vector<double>&) {
  const std::size_t n = data.hidden;
  std::vector<double> update(n);
  std::vector<double> reset(n);
  std::vector<double> gated(n);
  for (std::size_t u = 0; u < n; ++u) {
    update[u] = apply(data.functions[0], data.limited(data.from_input(u, x) + data.from_state(u, h.data())));
    reset[u] = apply(data.functions[0], data.limited(data.from_input(n + u, x) + data.from_state(n + u, h.data())));
    gated[u] = reset[u] * h[u];
  }
  std::vector<double> next(n);
  for (std::size_t u = 0; u < n; ++u) {
    const double state =
        data.variant ? reset[u] * data.from_state(2 * n + u, h.data()) : data.from_state(2 * n + u, gated.data());
    const double candidate = apply(data.functions[1], data.limited(data.from_input(2 * n + u, x) + state));
    next[u] = (1.0 - update[u]) * candidate + update[u] * h[u];
  }
  h = std::move(next);
}

inline void lstm_cell(const direction_data& data, const double* x, std::vector<double>& h, std::vector<double>& c) {
  const std::size_t n = data.hidden;
  const auto gate = [&](std::size_t g, std::size_t u) {
    return data.from_input(g * n + u, x) + data.from_state(g * n + u, h.data());
  };
  const auto peephole = [&](std::size_t g, std::size_t u) {
    return data.peepholes.empty() ? 0.0 : data.peepholes[g * n + u];
  };
  std::vector<double> next(n);
  for (std::size_t u = 0; u < n; ++u) {
    const double input = apply(data.functions[0], data.limited(gate(0, u) + peephole(0, u) * c[u]));
    const double forget =
        data.variant ? 1.0 - input : apply(data.functions[0], data.limited(gate(2, u) + peephole(2, u) * c[u]));
    const double cell = forget * c[u] + input * apply(data.functions[1], data.limited(gate(3, u)));
    const double output = apply(data.functions[0], data.limited(gate(1, u) + peephole(1, u) * cell));
    c[u] = cell;
    next[u] = output * apply(data.functions[2], cell);
  }
  h = std::move(next);
}

/// Runs a layer of `cell`, one time step by `step`. Outputs are Y, Y_h and, where it has a second state, Y_c.
inline void run_layer(const attribute_map& attributes, std::span<const tensor> inputs, std::span<tensor> outputs,
                      const recurrent_cell& cell, cell_function step) {
  const std::size_t gates = cell.gates;
  const bool cell_state = cell.states > 1;
  const bool batch_first = attributes.get_int("layout", 0) != 0;
  const std::string direction = attributes.get_string("direction", "forward");
  if (direction != "forward" && direction != "reverse" && direction != "bidirectional")
    throw error(errc::bad_attribute, "direction '" + direction + "'");
  const std::size_t directions = direction == "bidirectional" ? 2 : 1;
  const dim_list& xd = inputs[0].dims();
  const dim_list& rd = inputs[2].dims();
  if (xd.size() != 3 || rd.size() != 3 || inputs[1].rank() != 3)
    throw error(errc::shape_mismatch, "a recurrent layer of input " + to_string(xd));
  const auto steps = static_cast<std::size_t>(xd[batch_first ? 1 : 0]);
  const auto batch = static_cast<std::size_t>(xd[batch_first ? 0 : 1]);
  const auto width = static_cast<std::size_t>(xd[2]);
  const auto hidden = static_cast<std::size_t>(rd[2]);
  const auto n = [](std::size_t v) { return static_cast<std::int64_t>(v); };
  if (inputs[1].dims() != dim_list{n(directions), n(gates * hidden), n(width)} ||
      rd != dim_list{n(directions), n(gates * hidden), n(hidden)})
    throw error(errc::shape_mismatch, "a recurrent layer of input " + to_string(xd) + " with weights " +
                                          to_string(inputs[1].dims()) + " and " + to_string(rd));
  const std::vector<double> x = load_all<double>(inputs[0]);
  const std::vector<double> w = load_all<double>(inputs[1]);
  const std::vector<double> r = load_all<double>(inputs[2]);
  const auto optional = [&](std::size_t i, std::size_t count) {
    if (!has_input(inputs, i)) return std::vector<double>();
    if (inputs[i].size() != n(count))
      throw error(errc::shape_mismatch,
                  "input " + std::to_string(i) + " of a recurrent layer is " + to_string(inputs[i].dims()));
    return load_all<double>(inputs[i]);
  };
  const std::vector<double> bias = optional(3, directions * 2 * gates * hidden);
  const std::vector<double> initial_h = optional(5, directions * batch * hidden);
  const std::vector<double> initial_c = cell_state ? optional(6, directions * batch * hidden) : std::vector<double>();
  const std::vector<double> peepholes = cell_state ? optional(7, directions * 3 * hidden) : std::vector<double>();
  std::vector<std::int64_t> lengths(batch, n(steps));
  if (has_input(inputs, 4)) lengths = integers_of(inputs[4]);
  if (lengths.size() != batch)
    throw error(errc::shape_mismatch,
                std::to_string(lengths.size()) + " sequence lengths for a batch of " + std::to_string(batch));
  const std::vector<recurrent_activation> functions = recurrent_activations_of(attributes, directions, cell);
  const std::size_t per_direction = cell.functions().size();

  // Y is [steps, directions, batch, hidden] and the final states are [directions, batch, hidden], unless the batch
  // comes first.
  std::vector<double> y(steps * directions * batch * hidden, 0.0);
  std::vector<double> last_h(directions * batch * hidden, 0.0);
  std::vector<double> last_c(directions * batch * hidden, 0.0);
  const auto state_place = [&](std::size_t d, std::size_t b) {
    return (batch_first ? b * directions + d : d * batch + b) * hidden;
  };
  for (std::size_t d = 0; d < directions; ++d) {
    direction_data data{};
    const std::size_t rows = gates * hidden;
    data.w = std::span<const double>(w).subspan(d * rows * width, rows * width);
    data.r = std::span<const double>(r).subspan(d * rows * hidden, rows * hidden);
    data.input_bias.assign(rows, 0.0);
    data.recurrent_bias.assign(rows, 0.0);
    if (!bias.empty()) {
      const auto first = bias.begin() + n(d * 2 * rows);
      data.input_bias.assign(first, first + n(rows));
      data.recurrent_bias.assign(first + n(rows), first + n(2 * rows));
    }
    if (!peepholes.empty()) data.peepholes = std::span<const double>(peepholes).subspan(d * 3 * hidden, 3 * hidden);
    data.functions = std::span<const recurrent_activation>(functions).subspan(d * per_direction, per_direction);
    data.inputs = width;
    data.hidden = hidden;
    data.clip = static_cast<double>(attributes.get_float("clip", 0.0F));
    data.variant = !cell.variant.empty() && attributes.get_int(cell.variant, 0) != 0;
    const bool backwards = direction == "reverse" || d == 1;
    for (std::size_t b = 0; b < batch; ++b) {
      const auto length = static_cast<std::size_t>(std::clamp<std::int64_t>(lengths[b], 0, n(steps)));
      std::vector<double> h(hidden, 0.0);
      std::vector<double> c(hidden, 0.0);
      const std::size_t place = state_place(d, b);
      if (!initial_h.empty()) std::copy_n(initial_h.begin() + n(place), hidden, h.begin());
      if (!initial_c.empty()) std::copy_n(initial_c.begin() + n(place), hidden, c.begin());
      for (std::size_t k = 0; k < length; ++k) {
        const std::size_t t = backwards ? length - 1 - k : k;
        step(data, x.data() + (batch_first ? b * steps + t : t * batch + b) * width, h, c);
        const std::size_t row = batch_first ? (b * steps + t) * directions + d : (t * directions + d) * batch + b;
        std::copy(h.begin(), h.end(), y.begin() + n(row * hidden));
      }
      std::copy(h.begin(), h.end(), last_h.begin() + n(place));
      std::copy(c.begin(), c.end(), last_c.begin() + n(place));
    }
  }
  const dtype type = inputs[0].type();
  const dim_list states =
      batch_first ? dim_list{n(batch), n(directions), n(hidden)} : dim_list{n(directions), n(batch), n(hidden)};
  if (!outputs.empty())
    outputs[0] = store_all<double>(type,
                                   batch_first ? dim_list{n(batch), n(steps), n(directions), n(hidden)}
                                               : dim_list{n(steps), n(directions), n(batch), n(hidden)},
                                   y);
  if (outputs.size() > 1) outputs[1] = store_all<double>(type, states, last_h);
  if (outputs.size() > 2) outputs[2] = store_all<double>(type, states, last_c);
}

inline void rnn(const attribute_map& attributes, std::span<const tensor> inputs, std::span<tensor> outputs) {
  run_layer(attributes, inputs, outputs, *find_recurrent_cell("RNN"), rnn_cell);
}
inline void gru(const attribute_map& attributes, std::span<const tensor> inputs, std::span<tensor> outputs) {
  run_layer(attributes, inputs, outputs, *find_recurrent_cell("GRU"), gru_cell);
}
inline void lstm(const attribute_map& attributes, std::span<const tensor> inputs, std::span<tensor> outputs) {
  run_layer(attributes, inputs, outputs, *find_recurrent_cell("LSTM"), lstm_cell);
}

}  // namespace recurrent

inline constexpr std::array recurrent_rows{
    reference_row{"", "RNN", recurrent::rnn},
    reference_row{"", "GRU", recurrent::gru},
    reference_row{"", "LSTM", recurrent::lstm},
};

}  // namespace dnnopt::reference

#endif  // DNNOPT_REFERENCE_RECURRENT_HPP

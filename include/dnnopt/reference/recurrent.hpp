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

/// A number of elements as dims and iterators count them.
[[nodiscard]] constexpr std::int64_t as_signed(std::size_t count) noexcept { return static_cast<std::int64_t>(count); }

/// The extents of a layer, and where in its tensors its elements lie. Y is [steps, directions, batch, hidden] and the
/// final states are [directions, batch, hidden], unless the batch comes first.
struct layer_extents {
  bool batch_first;
  bool reverse;
  std::size_t directions;
  std::size_t steps;
  std::size_t batch;
  std::size_t width;  ///< of the input
  std::size_t hidden;
  std::size_t rows;  ///< of a direction's weights: gates * hidden

  /// Whether direction `d` takes the last step first.
  [[nodiscard]] bool goes_backwards(std::size_t d) const { return reverse || d == 1; }
  /// Where the input of step `t` of batch entry `b` begins.
  [[nodiscard]] std::size_t input_place(std::size_t b, std::size_t t) const {
    return (batch_first ? b * steps + t : t * batch + b) * width;
  }
  /// Where the hidden state after step `t` begins in Y.
  [[nodiscard]] std::size_t output_place(std::size_t d, std::size_t b, std::size_t t) const {
    return (batch_first ? (b * steps + t) * directions + d : (t * directions + d) * batch + b) * hidden;
  }
  /// Where a first or final state begins.
  [[nodiscard]] std::size_t state_place(std::size_t d, std::size_t b) const {
    return (batch_first ? b * directions + d : d * batch + b) * hidden;
  }
  /// How many elements the first or final states have.
  [[nodiscard]] std::size_t state_count() const { return directions * batch * hidden; }
  /// The dims of Y.
  [[nodiscard]] dim_list output_dims() const {
    return batch_first ? dim_list{as_signed(batch), as_signed(steps), as_signed(directions), as_signed(hidden)}
                       : dim_list{as_signed(steps), as_signed(directions), as_signed(batch), as_signed(hidden)};
  }
  /// The dims of first or final states.
  [[nodiscard]] dim_list state_dims() const {
    return batch_first ? dim_list{as_signed(batch), as_signed(directions), as_signed(hidden)}
                       : dim_list{as_signed(directions), as_signed(batch), as_signed(hidden)};
  }
};

/// The extents of a layer of `cell`. Errors: bad_attribute, shape_mismatch where input and weights do not fit.
[[nodiscard]] inline layer_extents extents_of(const attribute_map& attributes, std::span<const tensor> inputs,
                                              const recurrent_cell& cell) {
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
  const std::size_t rows = cell.gates * hidden;
  if (inputs[1].dims() != dim_list{as_signed(directions), as_signed(rows), as_signed(width)} ||
      rd != dim_list{as_signed(directions), as_signed(rows), as_signed(hidden)})
    throw error(errc::shape_mismatch, "a recurrent layer of input " + to_string(xd) + " with weights " +
                                          to_string(inputs[1].dims()) + " and " + to_string(rd));
  return {batch_first, direction == "reverse", directions, steps, batch, width, hidden, rows};
}

/// The numbers of an input, none where it is left out. Errors: shape_mismatch where they are not `count`.
[[nodiscard]] inline std::vector<double> optional_input(std::span<const tensor> inputs, std::size_t i,
                                                        std::size_t count) {
  if (!has_input(inputs, i)) return {};
  if (inputs[i].size() != as_signed(count))
    throw error(errc::shape_mismatch,
                "input " + std::to_string(i) + " of a recurrent layer is " + to_string(inputs[i].dims()));
  return load_all<double>(inputs[i]);
}

/// What a layer computes with, of all directions; what is left out is empty.
struct layer_data {
  std::vector<double> x;
  std::vector<double> w;
  std::vector<double> r;
  std::vector<double> bias;
  std::vector<double> initial_h;
  std::vector<double> initial_c;
  std::vector<double> peepholes;
  std::vector<std::int64_t> lengths;  ///< by batch entry
  std::vector<recurrent_activation> functions;
};

/// What a layer of `cell` computes with. Errors: shape_mismatch, and as recurrent_activations_of.
[[nodiscard]] inline layer_data data_of(const attribute_map& attributes, std::span<const tensor> inputs,
                                        const recurrent_cell& cell, const layer_extents& extents) {
  const bool cell_state = cell.states > 1;
  layer_data data;
  data.x = load_all<double>(inputs[0]);
  data.w = load_all<double>(inputs[1]);
  data.r = load_all<double>(inputs[2]);
  data.bias = optional_input(inputs, 3, extents.directions * 2 * extents.rows);
  data.initial_h = optional_input(inputs, 5, extents.state_count());
  if (cell_state) data.initial_c = optional_input(inputs, 6, extents.state_count());
  if (cell_state) data.peepholes = optional_input(inputs, 7, extents.directions * 3 * extents.hidden);
  data.lengths.assign(extents.batch, as_signed(extents.steps));
  if (has_input(inputs, 4)) data.lengths = integers_of(inputs[4]);
  if (data.lengths.size() != extents.batch)
    throw error(errc::shape_mismatch, std::to_string(data.lengths.size()) + " sequence lengths for a batch of " +
                                          std::to_string(extents.batch));
  data.functions = recurrent_activations_of(attributes, extents.directions, cell);
  return data;
}

/// What the cells of direction `d` read. Precondition: `layer` outlives it.
[[nodiscard]] inline direction_data direction_of(const attribute_map& attributes, const recurrent_cell& cell,
                                                 const layer_extents& extents, const layer_data& layer, std::size_t d) {
  const std::size_t width = extents.width;
  const std::size_t hidden = extents.hidden;
  const std::size_t rows = extents.rows;
  const std::size_t own_functions = cell.functions().size();
  direction_data data{};
  data.w = std::span<const double>(layer.w).subspan(d * rows * width, rows * width);
  data.r = std::span<const double>(layer.r).subspan(d * rows * hidden, rows * hidden);
  data.input_bias.assign(rows, 0.0);
  data.recurrent_bias.assign(rows, 0.0);
  if (!layer.bias.empty()) {
    const auto first = layer.bias.begin() + as_signed(d * 2 * rows);
    data.input_bias.assign(first, first + as_signed(rows));
    data.recurrent_bias.assign(first + as_signed(rows), first + as_signed(2 * rows));
  }
  if (!layer.peepholes.empty())
    data.peepholes = std::span<const double>(layer.peepholes).subspan(d * 3 * hidden, 3 * hidden);
  data.functions = std::span<const recurrent_activation>(layer.functions).subspan(d * own_functions, own_functions);
  data.inputs = width;
  data.hidden = hidden;
  data.clip = static_cast<double>(attributes.get_float("clip", 0.0F));
  data.variant = !cell.variant.empty() && attributes.get_int(cell.variant, 0) != 0;
  return data;
}

/// The outputs of a layer while its sequences run.
class layer_results {
 public:
  /// Outputs of zeros. Precondition: `extents` outlives them.
  explicit layer_results(const layer_extents& extents)
      : extents_(extents),
        y_(extents.steps * extents.state_count(), 0.0),
        last_h_(extents.state_count(), 0.0),
        last_c_(extents.state_count(), 0.0) {}

  /// Runs the sequence of batch entry `b` in direction `d`, one time step by `step`.
  void run_sequence(const layer_data& layer, const direction_data& data, cell_function step, std::size_t d,
                    std::size_t b) {
    const std::size_t hidden = extents_.hidden;
    const auto length =
        static_cast<std::size_t>(std::clamp<std::int64_t>(layer.lengths[b], 0, as_signed(extents_.steps)));
    std::vector<double> h(hidden, 0.0);
    std::vector<double> c(hidden, 0.0);
    const std::int64_t place = as_signed(extents_.state_place(d, b));
    if (!layer.initial_h.empty()) std::copy_n(layer.initial_h.begin() + place, hidden, h.begin());
    if (!layer.initial_c.empty()) std::copy_n(layer.initial_c.begin() + place, hidden, c.begin());
    for (std::size_t k = 0; k < length; ++k) {
      const std::size_t t = extents_.goes_backwards(d) ? length - 1 - k : k;
      step(data, layer.x.data() + extents_.input_place(b, t), h, c);
      std::copy(h.begin(), h.end(), y_.begin() + as_signed(extents_.output_place(d, b, t)));
    }
    std::copy(h.begin(), h.end(), last_h_.begin() + place);
    std::copy(c.begin(), c.end(), last_c_.begin() + place);
  }

  /// Stores those of Y, Y_h and Y_c that are asked for.
  void store(dtype type, std::span<tensor> outputs) const {
    if (!outputs.empty()) outputs[0] = store_all<double>(type, extents_.output_dims(), y_);
    if (outputs.size() > 1) outputs[1] = store_all<double>(type, extents_.state_dims(), last_h_);
    if (outputs.size() > 2) outputs[2] = store_all<double>(type, extents_.state_dims(), last_c_);
  }

 private:
  const layer_extents& extents_;
  std::vector<double> y_;
  std::vector<double> last_h_;
  std::vector<double> last_c_;
};

/// Runs a layer of `cell`, one time step by `step`. Outputs are Y, Y_h and, where it has a second state, Y_c.
inline void run_layer(const attribute_map& attributes, std::span<const tensor> inputs, std::span<tensor> outputs,
                      const recurrent_cell& cell, cell_function step) {
  const layer_extents extents = extents_of(attributes, inputs, cell);
  const layer_data layer = data_of(attributes, inputs, cell, extents);
  layer_results results(extents);
  for (std::size_t d = 0; d < extents.directions; ++d) {
    const direction_data data = direction_of(attributes, cell, extents, layer, d);
    for (std::size_t b = 0; b < extents.batch; ++b) results.run_sequence(layer, data, step, d, b);
  }
  results.store(inputs[0].type(), outputs);
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

// Owns what RNN, GRU and LSTM are made of: gates, and the activation functions that a node names, with parameters.
#ifndef DNNOPT_OPS_RECURRENT_CELLS_HPP
#define DNNOPT_OPS_RECURRENT_CELLS_HPP

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <dnnopt/attribute.hpp>
#include <dnnopt/error.hpp>

namespace dnnopt {

/// A recurrent layer as ONNX defines it.
struct recurrent_cell {
  std::string_view op;
  std::size_t gates;                         ///< matrices stacked in W and R
  std::array<std::string_view, 3> defaults;  ///< activations f, g, h; empty: the cell has none
  std::size_t states;                        ///< carried from step to step: Y_h, then Y_c
  std::string_view variant;                  ///< the attribute that chooses its other form; empty: there is none

  /// Its activations where a node names none, in order.
  [[nodiscard]] constexpr std::span<const std::string_view> functions() const noexcept {
    std::size_t count = 0;
    while (count < defaults.size() && !defaults[count].empty()) ++count;
    return std::span<const std::string_view>(defaults).first(count);
  }
};
inline constexpr std::array recurrent_cells{
    recurrent_cell{"RNN", 1, {"Tanh", "", ""}, 1, ""},
    recurrent_cell{"GRU", 3, {"Sigmoid", "Tanh", ""}, 1, "linear_before_reset"},
    recurrent_cell{"LSTM", 4, {"Sigmoid", "Tanh", "Tanh"}, 2, "input_forget"},
};

/// The cell of an operator of ONNX's own domain; null for any other.
[[nodiscard]] constexpr const recurrent_cell* find_recurrent_cell(std::string_view op) noexcept {
  for (const recurrent_cell& cell : recurrent_cells)
    if (cell.op == op) return &cell;
  return nullptr;
}

/// The functions that ONNX's RNN, GRU and LSTM may name in `activations`.
enum class recurrent_function : std::uint8_t {
  relu,
  tanh,
  sigmoid,
  softsign,
  softplus,
  leaky_relu,
  thresholded_relu,
  elu,
  affine,
  scaled_tanh,
  hard_sigmoid,
};

/// One of them as a node uses it.
struct recurrent_activation {
  recurrent_function function;
  double alpha = 0.0;
  double beta = 0.0;
};

/// A name with the parameters that stand where a node gives none. The operators' text in ONNX is vague about defaults;
/// these are those of the operators of the same names.
struct recurrent_activation_row {
  std::string_view name;
  recurrent_activation usual;
  int parameters = 0;  ///< how many of alpha and beta it takes from the node's lists
};
inline constexpr std::array recurrent_activation_rows{
    recurrent_activation_row{"Relu", {recurrent_function::relu}},
    recurrent_activation_row{"Tanh", {recurrent_function::tanh}},
    recurrent_activation_row{"Sigmoid", {recurrent_function::sigmoid}},
    recurrent_activation_row{"Softsign", {recurrent_function::softsign}},
    recurrent_activation_row{"Softplus", {recurrent_function::softplus}},
    recurrent_activation_row{"LeakyRelu", {recurrent_function::leaky_relu, 0.01}, 1},
    recurrent_activation_row{"ThresholdedRelu", {recurrent_function::thresholded_relu, 1.0}, 1},
    recurrent_activation_row{"Elu", {recurrent_function::elu, 1.0}, 1},
    recurrent_activation_row{"Affine", {recurrent_function::affine, 1.0}, 2},
    recurrent_activation_row{"ScaledTanh", {recurrent_function::scaled_tanh, 1.0, 1.0}, 2},
    recurrent_activation_row{"HardSigmoid", {recurrent_function::hard_sigmoid, 0.2, 0.5}, 2},
};

/// The functions of a node that is such a cell, those of one direction after the other; the defaults where it names
/// none. Parameters are taken from `activation_alpha` and `activation_beta` in order by the functions that have
/// any. Errors: bad_attribute for an unknown name or another number of them.
[[nodiscard]] inline std::vector<recurrent_activation> recurrent_activations_of(const attribute_map& attributes,
                                                                                std::size_t directions,
                                                                                const recurrent_cell& cell) {
  const std::span<const std::string_view> defaults = cell.functions();
  const std::size_t wanted = directions * defaults.size();
  std::vector<std::string> names = attributes.get<std::vector<std::string>>("activations", {});
  if (names.empty())
    for (std::size_t d = 0; d < directions; ++d) names.insert(names.end(), defaults.begin(), defaults.end());
  if (names.size() != wanted)
    throw error(errc::bad_attribute, std::to_string(names.size()) + " activations of " + std::to_string(wanted));
  const std::vector<float> alphas = attributes.get_floats("activation_alpha");
  const std::vector<float> betas = attributes.get_floats("activation_beta");
  std::size_t alpha = 0;
  std::size_t beta = 0;
  std::vector<recurrent_activation> result;
  for (const std::string& name : names) {
    const auto row = std::find_if(recurrent_activation_rows.begin(), recurrent_activation_rows.end(),
                                  [&](const recurrent_activation_row& known) { return known.name == name; });
    if (row == recurrent_activation_rows.end()) throw error(errc::bad_attribute, "activation '" + name + "'");
    recurrent_activation made = row->usual;
    if (row->parameters > 0 && alpha < alphas.size()) made.alpha = static_cast<double>(alphas[alpha++]);
    if (row->parameters > 1 && beta < betas.size()) made.beta = static_cast<double>(betas[beta++]);
    result.push_back(made);
  }
  return result;
}

}  // namespace dnnopt

#endif  // DNNOPT_OPS_RECURRENT_CELLS_HPP

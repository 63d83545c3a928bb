// Owns the kernel of recurrent layers: RNN, GRU and LSTM, all steps in one launch.
#ifndef DNNOPT_BACKEND_CODEGEN_FRAMES_RECURRENT_EMIT_HPP
#define DNNOPT_BACKEND_CODEGEN_FRAMES_RECURRENT_EMIT_HPP

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dnnopt/backend/codegen/elements/element_site.hpp>
#include <dnnopt/backend/codegen/frames/recurrent/choose.hpp>
#include <dnnopt/backend/codegen/frames/recurrent/parameters.hpp>
#include <dnnopt/backend/codegen/frames/sources.hpp>
#include <dnnopt/ops/recurrent_cells.hpp>

namespace dnnopt::codegen {

/// An activation over x in OpenCL C; $a and $b stand for its alpha and beta.
[[nodiscard]] constexpr std::string_view recurrent_expression(recurrent_function function) noexcept {
  switch (function) {
    case recurrent_function::relu:
      return "fmax(x, 0.0f)";
    case recurrent_function::tanh:
      return "tanh(x)";
    case recurrent_function::sigmoid:
      return "1.0f / (1.0f + exp(-x))";
    case recurrent_function::softsign:
      return "x / (1.0f + fabs(x))";
    case recurrent_function::softplus:
      return "log1p(exp(-fabs(x))) + fmax(x, 0.0f)";
    case recurrent_function::leaky_relu:
      return "x >= 0.0f ? x : $a * x";
    case recurrent_function::thresholded_relu:
      return "x > $a ? x : 0.0f";
    case recurrent_function::elu:
      return "x >= 0.0f ? x : $a * expm1(x)";
    case recurrent_function::affine:
      return "$a * x + $b";
    case recurrent_function::scaled_tanh:
      return "$a * tanh($b * x)";
    case recurrent_function::hard_sigmoid:
      return "clamp($a * x + $b, 0.0f, 1.0f)";
  }
  return "x";
}

/// Defines dnnopt_f, dnnopt_g and dnnopt_h, those that the cell has. Errors: as recurrent_activations_of.
inline void define_recurrent_activations(kernel_builder& b, const attribute_map& attributes, const recurrent_cell& cell,
                                         std::size_t directions) {
  const std::size_t own = cell.functions().size();
  std::vector<std::string> expressions;
  for (const recurrent_activation& one : recurrent_activations_of(attributes, directions, cell)) {
    std::string text(recurrent_expression(one.function));
    for (const auto& [mark, value] : {std::pair<std::string_view, double>{"$a", one.alpha}, {"$b", one.beta}})
      for (std::size_t at = text.find(mark); at != std::string::npos; at = text.find(mark))
        text.replace(at, mark.size(), "(" + literal(compute_type::real, value) + ")");
    expressions.push_back(std::move(text));
  }
  constexpr std::string_view letters = "fgh";
  for (std::size_t i = 0; i < own; ++i) {
    std::string text = "(" + expressions[i] + ")";
    if (directions == 2) text = "d == 0 ? " + text + " : (" + expressions[own + i] + ")";
    b.add_function("static inline float dnnopt_" + std::string(1, letters[i]) +
                   "(const int d, const float x) { return " + text + "; }\n");
  }
}

namespace detail {

/// Writes the kernel of a recurrent layer: its constants, the loads of its inputs and the stores of its outputs.
class recurrent_kernel {
 public:
  /// Precondition: the site's anchor is a recurrent layer whose weights have constant dims; the site outlives this.
  explicit recurrent_kernel(const lowering_site& site)
      : site_(site),
        n_(site.anchor_node()),
        cell_(*find_recurrent_cell(n_.op->name)),
        b_(site.block, site.options.emitters),
        s_(b_, site.anchor, 0, {}),
        batch_first_(s_.attributes().get_int("layout", 0) != 0),
        direction_(s_.attributes().get_string("direction", "forward")),
        steps_(s_.dims(0)[batch_first_ ? 1 : 0]),
        batch_(s_.dims(0)[batch_first_ ? 0 : 1]),
        inputs_(s_.dims(1)[2].constant()),
        hidden_(s_.dims(2)[2].constant()),
        directions_(direction_ == "bidirectional" ? 2 : 1),
        gates_(static_cast<std::int64_t>(cell_.gates)),
        rows_(gates_ * hidden_),
        t_(b_.index("t", steps_)),
        z_(b_.index("z", batch_)),
        d_(b_.index("d", directions_)),
        j_(b_.index("j", hidden_)),
        k_(b_.index("k", inputs_)),
        g_(b_.index("g", rows_)) {}

  /// The kernel of what was chosen. Precondition: called once. Errors: as recurrent_activations_of.
  [[nodiscard]] kernel_plan written(const choice& chosen) {
    define_constants();
    define_loads();
    define_stores();
    const auto group = static_cast<std::size_t>(chosen["group"]);
    kernel_plan plan = b_.finish(kernels::prelude, recurrent_groups_frame, "recurrent_groups");
    plan.global = {static_cast<std::int64_t>(group), batch_, directions_};
    plan.local = {group, 1, 1};
    plan.flops = steps_ * batch_ * (directions_ * rows_ * (inputs_ + hidden_) * 2);
    return plan;
  }

 private:
  using names = std::vector<std::string>;

  /// Defines the layer's extents and variants, its limit and its activations.
  void define_constants() {
    b_.define("DNNOPT_GATES", gates_);
    b_.define("DNNOPT_HIDDEN", hidden_);
    b_.define("DNNOPT_INPUTS", inputs_);
    b_.define("DNNOPT_STEPS", steps_);
    b_.define("DNNOPT_BACKWARDS(d)", direction_ == "reverse" ? "1" : "((d) == 1)");
    b_.define("DNNOPT_VARIANT", !cell_.variant.empty() && s_.attributes().get_int(cell_.variant, 0) != 0 ? 1 : 0);
    const double clip = static_cast<double>(s_.attributes().get_float("clip", 0.0F));
    const std::string limit = literal(compute_type::real, clip);
    b_.add_function("static inline float dnnopt_limit(const float x) { return " +
                    (clip > 0.0 ? "clamp(x, -(" + limit + "), " + limit + ")" : std::string("x")) + "; }\n");
    define_recurrent_activations(b_, s_.attributes(), cell_, static_cast<std::size_t>(directions_));
  }

  /// Defines the loads of the input, the weights, first states, and sequence lengths.
  void define_loads() {
    b_.define_load("dnnopt_load_x", n_.inputs[0],
                   batch_first_ ? std::vector<index_expr>{z_, t_, k_} : std::vector<index_expr>{t_, z_, k_},
                   names{"t", "z", "k"});
    b_.define_load("dnnopt_load_w", n_.inputs[1], std::vector<index_expr>{d_, g_, k_}, names{"d", "g", "k"});
    b_.define_load("dnnopt_load_r", n_.inputs[2], std::vector<index_expr>{d_, g_, j_}, names{"d", "g", "j"});
    define_optional_load("dnnopt_load_bias", 3, {d_, b_.index("q", 2 * rows_)}, {"d", "q"});
    define_optional_load("dnnopt_first_state", 5, state_index(), {"d", "z", "j"});
    define_optional_load("dnnopt_first_cell", 6, state_index(), {"d", "z", "j"});
    define_optional_load("dnnopt_peephole", 7, {d_, b_.index("p", 3 * hidden_)}, {"d", "p"});
    if (s_.has(4))
      b_.define_load("dnnopt_load_length", n_.inputs[4], std::vector<index_expr>{z_}, names{"z"});
    else
      b_.define_function("dnnopt_load_length", compute_type::integer, names{"z"}, [&] { return index_source(steps_); });
  }

  /// Defines the load of input `i`, which is 0 where the layer has no such input.
  void define_optional_load(std::string_view name, std::size_t i, const std::vector<index_expr>& at, const names& own) {
    if (s_.has(i))
      b_.define_load(name, n_.inputs[i], at, own);
    else
      b_.define_function(name, compute_type::real, own, [] { return std::string("0.0f"); });
  }

  /// Defines the stores of the outputs Y, Y_h and Y_c.
  void define_stores() {
    define_optional_store(
        0, "DNNOPT_STORE_Y", "dnnopt_store_y",
        batch_first_ ? std::vector<index_expr>{z_, t_, d_, j_} : std::vector<index_expr>{t_, d_, z_, j_},
        {"t", "d", "z", "j"}, "t, d, z, j");
    define_optional_store(1, "DNNOPT_STORE_STATE", "dnnopt_store_state", state_index(), {"d", "z", "j"}, "d, z, j");
    define_optional_store(2, "DNNOPT_STORE_CELL", "dnnopt_store_cell", state_index(), {"d", "z", "j"}, "d, z, j");
  }

  /// Defines the macro that stores an element of an output, which does nothing where the block does not store that.
  void define_optional_store(std::size_t output, std::string_view macro, std::string_view function,
                             const std::vector<index_expr>& at, const names& own, const std::string& called) {
    const std::vector<value_id>& wanted = site_.block.outputs;
    const bool stored = output < n_.outputs.size() && n_.outputs[output] != no_value &&
                        std::find(wanted.begin(), wanted.end(), n_.outputs[output]) != wanted.end();
    if (stored) b_.define_store(function, n_.outputs[output], at, own);
    b_.define(
        std::string(macro) + "(" + called + ", value)",
        stored ? std::string(function) + "(DNNOPT_ARGUMENTS, " + called + ", value)" : std::string("(void)(value)"));
  }

  /// Where an element of a state lies, first or last.
  [[nodiscard]] std::vector<index_expr> state_index() const {
    return batch_first_ ? std::vector<index_expr>{z_, d_, j_} : std::vector<index_expr>{d_, z_, j_};
  }

  const lowering_site& site_;
  const node& n_;
  const recurrent_cell& cell_;
  kernel_builder b_;
  element_site s_;
  bool batch_first_;
  std::string direction_;
  index_expr steps_;
  index_expr batch_;
  std::int64_t inputs_;
  std::int64_t hidden_;
  std::int64_t directions_;
  std::int64_t gates_;
  std::int64_t rows_;  ///< of a direction's weights
  // Indices have the letters that they have in the kernel.
  index_expr t_;  ///< of steps
  index_expr z_;  ///< of images
  index_expr d_;  ///< of directions
  index_expr j_;  ///< of hidden units
  index_expr k_;  ///< of elements of the input
  index_expr g_;  ///< of rows of the weights
};

}  // namespace detail

/// One work-group per image and direction. Work: steps one after the other, each reading all weights.
[[nodiscard]] inline lowered_node emit_recurrent(const lowering_site& site, const choice& chosen) {
  lowered_node result;
  result.kernels.push_back(detail::recurrent_kernel(site).written(chosen));
  return result;
}

}  // namespace dnnopt::codegen

#endif  // DNNOPT_BACKEND_CODEGEN_FRAMES_RECURRENT_EMIT_HPP

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

/// One work-group per image and direction. Work: steps one after the other, each reading all weights.
[[nodiscard]] inline lowered_node emit_recurrent(const lowering_site& site, const choice& chosen) {
  const node& n = site.anchor_node();
  const recurrent_cell& cell = *find_recurrent_cell(n.op->name);
  kernel_builder b(site.block, site.options.emitters);
  const element_site s(b, site.anchor, 0, {});
  const bool batch_first = s.attributes().get_int("layout", 0) != 0;
  const std::string direction = s.attributes().get_string("direction", "forward");
  const shape x_dims = s.dims(0);
  const index_expr steps = x_dims[batch_first ? 1 : 0];
  const index_expr batch = x_dims[batch_first ? 0 : 1];
  const std::int64_t inputs = s.dims(1)[2].constant();
  const std::int64_t hidden = s.dims(2)[2].constant();
  const std::int64_t directions = direction == "bidirectional" ? 2 : 1;
  const auto gates = static_cast<std::int64_t>(cell.gates);
  const std::int64_t rows = gates * hidden;
  const index_expr t = b.index("t", steps);
  const index_expr z = b.index("z", batch);
  const index_expr d = b.index("d", directions);
  const index_expr j = b.index("j", hidden);
  const index_expr k = b.index("k", inputs);
  const index_expr g = b.index("g", rows);
  b.define("DNNOPT_GATES", gates);
  b.define("DNNOPT_HIDDEN", hidden);
  b.define("DNNOPT_INPUTS", inputs);
  b.define("DNNOPT_STEPS", steps);
  b.define("DNNOPT_BACKWARDS(d)", direction == "reverse" ? "1" : "((d) == 1)");
  b.define("DNNOPT_VARIANT", !cell.variant.empty() && s.attributes().get_int(cell.variant, 0) != 0 ? 1 : 0);
  const double clip = static_cast<double>(s.attributes().get_float("clip", 0.0F));
  const std::string limit = literal(compute_type::real, clip);
  b.add_function("static inline float dnnopt_limit(const float x) { return " +
                 (clip > 0.0 ? "clamp(x, -(" + limit + "), " + limit + ")" : std::string("x")) + "; }\n");
  define_recurrent_activations(b, s.attributes(), cell, static_cast<std::size_t>(directions));

  using names = std::vector<std::string>;
  b.define_load("dnnopt_load_x", n.inputs[0],
                batch_first ? std::vector<index_expr>{z, t, k} : std::vector<index_expr>{t, z, k},
                names{"t", "z", "k"});
  b.define_load("dnnopt_load_w", n.inputs[1], std::vector<index_expr>{d, g, k}, names{"d", "g", "k"});
  b.define_load("dnnopt_load_r", n.inputs[2], std::vector<index_expr>{d, g, j}, names{"d", "g", "j"});
  const std::vector<index_expr> state =
      batch_first ? std::vector<index_expr>{z, d, j} : std::vector<index_expr>{d, z, j};
  const auto optional_load = [&](std::string_view name, std::size_t i, const std::vector<index_expr>& at,
                                 const names& own) {
    if (s.has(i))
      b.define_load(name, n.inputs[i], at, own);
    else
      b.define_function(name, compute_type::real, own, [] { return std::string("0.0f"); });
  };
  optional_load("dnnopt_load_bias", 3, {d, b.index("q", 2 * rows)}, {"d", "q"});
  optional_load("dnnopt_first_state", 5, state, {"d", "z", "j"});
  optional_load("dnnopt_first_cell", 6, state, {"d", "z", "j"});
  optional_load("dnnopt_peephole", 7, {d, b.index("p", 3 * hidden)}, {"d", "p"});
  if (s.has(4))
    b.define_load("dnnopt_load_length", n.inputs[4], std::vector<index_expr>{z}, names{"z"});
  else
    b.define_function("dnnopt_load_length", compute_type::integer, names{"z"}, [&] { return index_source(steps); });

  const auto optional_store = [&](std::size_t output, std::string_view macro, std::string_view function,
                                  const std::vector<index_expr>& at, const names& own, const std::string& called) {
    const bool stored =
        output < n.outputs.size() && n.outputs[output] != no_value &&
        std::find(site.block.outputs.begin(), site.block.outputs.end(), n.outputs[output]) != site.block.outputs.end();
    if (stored) b.define_store(function, n.outputs[output], at, own);
    b.define(
        std::string(macro) + "(" + called + ", value)",
        stored ? std::string(function) + "(DNNOPT_ARGUMENTS, " + called + ", value)" : std::string("(void)(value)"));
  };
  optional_store(0, "DNNOPT_STORE_Y", "dnnopt_store_y",
                 batch_first ? std::vector<index_expr>{z, t, d, j} : std::vector<index_expr>{t, d, z, j},
                 {"t", "d", "z", "j"}, "t, d, z, j");
  optional_store(1, "DNNOPT_STORE_STATE", "dnnopt_store_state", state, {"d", "z", "j"}, "d, z, j");
  optional_store(2, "DNNOPT_STORE_CELL", "dnnopt_store_cell", state, {"d", "z", "j"}, "d, z, j");

  const auto group = static_cast<std::size_t>(chosen["group"]);
  kernel_plan plan = b.finish(kernels::prelude, recurrent_groups_frame, "recurrent_groups");
  plan.global = {static_cast<std::int64_t>(group), batch, directions};
  plan.local = {group, 1, 1};
  plan.flops = steps * batch * (directions * rows * (inputs + hidden) * 2);
  lowered_node result;
  result.kernels.push_back(std::move(plan));
  return result;
}

}  // namespace dnnopt::codegen

#endif  // DNNOPT_BACKEND_CODEGEN_FRAMES_RECURRENT_EMIT_HPP

// Owns the element expressions of softmax and of normalizations: each output element computes its statistics itself.
#ifndef DNNOPT_BACKEND_CODEGEN_ELEMENTS_NORMALIZATION_HPP
#define DNNOPT_BACKEND_CODEGEN_ELEMENTS_NORMALIZATION_HPP

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <dnnopt/backend/codegen/elements/element_site.hpp>

namespace dnnopt::codegen {

/// A type in which statistics are computed: the element's own, or float for integers.
[[nodiscard]] inline compute_type statistics_type(compute_type type) {
  return type == compute_type::real64 ? type : compute_type::real;
}

/// Mean and the reciprocal of the standard deviation over some axes, as C names.
struct moments {
  std::string mean;
  std::string inverse_deviation;
};

/// Emits the moments of `read(at)` over loops of `extents`; the variance is taken around the mean in a second pass.
template <class Read>
[[nodiscard]] moments emit_moments(const element_site& s, compute_type type, std::span<const index_expr> extents,
                                   double epsilon, Read&& read) {
  kernel_builder& b = s.b;
  const std::string count = index_source(element_count(shape(extents.begin(), extents.end())));
  const std::string sum = b.variable(type, "0");
  s.loops("r", extents, [&](const std::vector<index_expr>& at) { b.line(sum + " += " + read(at) + ";"); });
  moments m;
  m.mean = b.let(type, sum + " / " + count);
  const std::string squares = b.variable(type, "0");
  s.loops("r", extents, [&](const std::vector<index_expr>& at) {
    const std::string d = b.let(type, read(at) + " - " + m.mean);
    b.line(squares + " += " + d + " * " + d + ";");
  });
  m.inverse_deviation = b.let(type, "1 / sqrt(" + squares + " / " + count + " + " + literal(type, epsilon) + ")");
  return m;
}

/// 1 at the first greatest element of a row, 0 elsewhere.
inline std::string emit_hardmax(kernel_builder& b, node_id id, std::size_t output, std::span<const index_expr> index) {
  const element_site s(b, id, output, index);
  const compute_type type = s.compute();
  const std::size_t axis = normalize_axis(s.attributes().get_int("axis", -1), s.dims(0).size());
  std::vector<index_expr> at = s.index;
  at[axis] = 0;
  const std::string best = b.variable(type, s.read(0, at));
  const std::string where = b.variable(compute_type::integer, "0");
  s.loop("r", s.dims(0)[axis], [&](const index_expr& r) {
    at[axis] = r;
    const std::string x = s.read(0, at);
    b.line("if (" + x + " > " + best + ") { " + best + " = " + x + "; " + where + " = " + index_source(r) + "; }");
  });
  return b.let(type, where + " == " + index_source(s.index[axis]) + " ? 1 : 0");
}

/// Shares of a row's exponentials, or their logarithms.
template <bool logarithms>
std::string emit_softmax(kernel_builder& b, node_id id, std::size_t output, std::span<const index_expr> index) {
  const element_site s(b, id, output, index);
  const compute_type type = s.compute();
  const std::size_t axis = normalize_axis(s.attributes().get_int("axis", -1), s.dims(0).size());
  const index_expr extent = s.dims(0)[axis];
  std::vector<index_expr> at = s.index;
  const std::string top = b.variable(type, "-INFINITY");
  s.loop("r", extent, [&](const index_expr& r) {
    at[axis] = r;
    b.line(top + " = fmax(" + top + ", " + s.read(0, at) + ");");
  });
  const std::string sum = b.variable(type, "0");
  s.loop("r", extent, [&](const index_expr& r) {
    at[axis] = r;
    b.line(sum + " += exp(" + s.read(0, at) + " - " + top + ");");
  });
  const std::string x = s.read(0, s.index);
  if (logarithms) return b.let(type, x + " - " + top + " - log(" + sum + ")");
  return b.let(type, "exp(" + x + " - " + top + ") / " + sum);
}

/// LayerNormalization, and RMSNormalization, which is not `centered` around the mean.
template <bool centered>
std::string emit_layer_normalization(kernel_builder& b, node_id id, std::size_t output,
                                     std::span<const index_expr> index) {
  const element_site s(b, id, output, index);
  const compute_type type = statistics_type(s.input_compute());
  const shape& d = s.dims(0);
  const std::size_t axis = normalize_axis(s.attributes().get_int("axis", -1), d.size());
  const shape extents(d.begin() + static_cast<std::ptrdiff_t>(axis), d.end());
  const double epsilon = static_cast<double>(s.attributes().get_float("epsilon", 1e-5f));
  const auto read = [&](const std::vector<index_expr>& inner) {
    std::vector<index_expr> at(s.index.begin(), s.index.begin() + static_cast<std::ptrdiff_t>(axis));
    at.insert(at.end(), inner.begin(), inner.end());
    return s.read(0, at);
  };
  if (const auto* known = b.moments_of(id, s.index)) {
    const std::string shift = s.has(2) ? " + " + s.read_broadcast(2, s.index) : "";
    return s.result("(" + s.read(0, s.index) + (centered ? " - " + known->first : std::string()) + ") * " +
                    known->second + " * " + s.read_broadcast(1, s.index) + shift);
  }
  if (!centered) {
    const std::string squares = b.variable(type, "0");
    s.loops("r", extents, [&](const std::vector<index_expr>& at) {
      const std::string x = read(at);
      b.line(squares + " += " + x + " * " + x + ";");
    });
    const std::string scale = b.let(type, "1 / sqrt(" + squares + " / " + index_source(element_count(extents)) + " + " +
                                              literal(type, epsilon) + ")");
    return s.result(s.read(0, s.index) + " * " + scale + " * " + s.read_broadcast(1, s.index));
  }
  const moments m = emit_moments(s, type, extents, epsilon, read);
  if (output == 1) return m.mean;
  if (output == 2) return m.inverse_deviation;
  const std::string shift = s.has(2) ? " + " + s.read_broadcast(2, s.index) : "";
  return s.result("(" + s.read(0, s.index) + " - " + m.mean + ") * " + m.inverse_deviation + " * " +
                  s.read_broadcast(1, s.index) + shift);
}

inline std::string emit_instance_normalization(kernel_builder& b, node_id id, std::size_t output,
                                               std::span<const index_expr> index) {
  const element_site s(b, id, output, index);
  const compute_type type = statistics_type(s.compute());
  const shape& d = s.dims(0);
  const shape extents(d.begin() + 2, d.end());
  const moments m = emit_moments(s, type, extents, static_cast<double>(s.attributes().get_float("epsilon", 1e-5f)),
                                 [&](const std::vector<index_expr>& inner) {
                                   std::vector<index_expr> at{s.index[0], s.index[1]};
                                   at.insert(at.end(), inner.begin(), inner.end());
                                   return s.read(0, at);
                                 });
  return s.result("(" + s.read(0, s.index) + " - " + m.mean + ") * " + m.inverse_deviation + " * " +
                  s.read(1, {s.index[1]}) + " + " + s.read(2, {s.index[1]}));
}

inline std::string emit_group_normalization(kernel_builder& b, node_id id, std::size_t output,
                                            std::span<const index_expr> index) {
  const element_site s(b, id, output, index);
  const compute_type type = statistics_type(s.compute());
  const shape& d = s.dims(0);
  const std::int64_t groups = s.attributes().require<std::int64_t>("num_groups");
  const index_expr per_group = floordiv(d[1], groups);
  const index_expr first = floordiv(s.index[1], per_group) * per_group;
  shape extents{per_group};
  extents.insert(extents.end(), d.begin() + 2, d.end());
  const moments m = emit_moments(s, type, extents, static_cast<double>(s.attributes().get_float("epsilon", 1e-5f)),
                                 [&](const std::vector<index_expr>& inner) {
                                   std::vector<index_expr> at{s.index[0], first + inner[0]};
                                   at.insert(at.end(), inner.begin() + 1, inner.end());
                                   return s.read(0, at);
                                 });
  return s.result("(" + s.read(0, s.index) + " - " + m.mean + ") * " + m.inverse_deviation + " * " +
                  s.read(1, {s.group_parameter(1, s.index[1], per_group)}) + " + " +
                  s.read(2, {s.group_parameter(2, s.index[1], per_group)}));
}

inline std::string emit_batch_normalization(kernel_builder& b, node_id id, std::size_t output,
                                            std::span<const index_expr> index) {
  const element_site s(b, id, output, index);
  const compute_type type = statistics_type(s.compute());
  const shape& d = s.dims(0);
  const double epsilon = static_cast<double>(s.attributes().get_float("epsilon", 1e-5f));
  if (d.empty() || (output != 0 && s.index.size() != 1)) throw s.refuse("there is no dim of channels");
  const index_expr channel = output != 0 ? s.index[0] : d.size() > 1 ? s.index[1] : index_expr(0);
  std::string mean;
  std::string variance;
  if (s.attributes().get_int("training_mode", 0) == 0) {
    if (output != 0) throw s.refuse("running statistics are outputs of training mode only");
    mean = s.read(3, {channel});
    variance = s.read(4, {channel});
  } else {
    shape extents{d[0]};
    if (d.size() > 2) extents.insert(extents.end(), d.begin() + 2, d.end());
    const auto read = [&](const std::vector<index_expr>& inner) {
      std::vector<index_expr> at{inner[0]};
      if (d.size() > 1) at.push_back(channel);
      at.insert(at.end(), inner.begin() + 1, inner.end());
      return s.read(0, at);
    };
    const std::string count = index_source(element_count(extents));
    const std::string sum = b.variable(type, "0");
    s.loops("r", extents, [&](const std::vector<index_expr>& at) { b.line(sum + " += " + read(at) + ";"); });
    mean = b.let(type, sum + " / " + count);
    const std::string squares = b.variable(type, "0");
    s.loops("r", extents, [&](const std::vector<index_expr>& at) {
      const std::string difference = b.let(type, read(at) + " - " + mean);
      b.line(squares + " += " + difference + " * " + difference + ";");
    });
    variance = b.let(type, squares + " / " + count);
    if (output != 0) {
      const std::string momentum = literal(type, static_cast<double>(s.attributes().get_float("momentum", 0.9f)));
      const std::string old = s.read(output == 1 ? 3 : 4, {channel});
      return s.result(old + " * " + momentum + " + " + (output == 1 ? mean : variance) + " * (1 - " + momentum + ")");
    }
  }
  const std::string scale =
      b.let(type, s.read(1, {channel}) + " / sqrt(" + variance + " + " + literal(type, epsilon) + ")");
  return s.result("(" + s.read(0, s.index) + " - " + mean + ") * " + scale + " + " + s.read(2, {channel}));
}

inline std::string emit_local_response_normalization(kernel_builder& b, node_id id, std::size_t output,
                                                     std::span<const index_expr> index) {
  const element_site s(b, id, output, index);
  const compute_type type = s.compute();
  const std::int64_t size = s.attributes().require<std::int64_t>("size");
  const auto number = [&](std::string_view name, float fallback) {
    return literal(type, static_cast<double>(s.attributes().get_float(name, fallback)));
  };
  const std::string squares = b.variable(type, "0");
  s.loop("r", size, [&](const index_expr& r) {
    const index_expr channel = s.index[1] + r - (size - 1) / 2;
    s.when(kernel_builder::within(channel, s.dims(0)[1]), [&] {
      std::vector<index_expr> at = s.index;
      at[1] = b.define_index("c", channel, s.dims(0)[1]);
      const std::string x = s.read(0, at);
      b.line(squares + " += " + x + " * " + x + ";");
    });
  });
  return s.result(s.read(0, s.index) + " / pow(" + number("bias", 1.0f) + " + " + number("alpha", 1e-4f) + " / " +
                  std::to_string(size) + " * " + squares + ", " + number("beta", 0.75f) + ")");
}

inline std::string emit_lp_normalization(kernel_builder& b, node_id id, std::size_t output,
                                         std::span<const index_expr> index) {
  const element_site s(b, id, output, index);
  const compute_type type = s.compute();
  const std::int64_t p = s.attributes().get_int("p", 2);
  if (p != 1 && p != 2) throw s.refuse("p is neither 1 nor 2");
  const std::size_t axis = normalize_axis(s.attributes().get_int("axis", -1), s.dims(0).size());
  const std::string sum = b.variable(type, "0");
  std::vector<index_expr> at = s.index;
  s.loop("r", s.dims(0)[axis], [&](const index_expr& r) {
    at[axis] = r;
    const std::string x = s.read(0, at);
    b.line(sum + " += " + (p == 1 ? "fabs(" + x + ")" : x + " * " + x) + ";");
  });
  const std::string norm = b.let(type, p == 1 ? sum : "sqrt(" + sum + ")");
  // A row of zeros stays zero.
  return s.result(norm + " == 0 ? 0 : " + s.read(0, s.index) + " / " + norm);
}

inline std::string emit_mean_variance_normalization(kernel_builder& b, node_id id, std::size_t output,
                                                    std::span<const index_expr> index) {
  const element_site s(b, id, output, index);
  const compute_type type = s.compute();
  const shape& d = s.dims(0);
  std::vector<bool> over(d.size(), false);
  for (const std::int64_t a : s.attributes().get_ints("axes", {0, 2, 3})) over[normalize_axis(a, d.size())] = true;
  shape extents;
  for (std::size_t k = 0; k < d.size(); ++k)
    if (over[k]) extents.push_back(d[k]);
  const auto read = [&](const std::vector<index_expr>& inner) {
    std::vector<index_expr> at = s.index;
    std::size_t r = 0;
    for (std::size_t k = 0; k < d.size(); ++k)
      if (over[k]) at[k] = inner[r++];
    return s.read(0, at);
  };
  const std::string count = index_source(element_count(extents));
  const std::string sum = b.variable(type, "0");
  s.loops("r", extents, [&](const std::vector<index_expr>& at) { b.line(sum + " += " + read(at) + ";"); });
  const std::string mean = b.let(type, sum + " / " + count);
  const std::string squares = b.variable(type, "0");
  s.loops("r", extents, [&](const std::vector<index_expr>& at) {
    const std::string difference = b.let(type, read(at) + " - " + mean);
    b.line(squares + " += " + difference + " * " + difference + ";");
  });
  // ONNX's function body adds 1e-9 to the deviation.
  return s.result("(" + s.read(0, s.index) + " - " + mean + ") / (sqrt(" + squares + " / " + count + ") + " +
                  literal(type, 1e-9) + ")");
}

inline constexpr std::array normalization_emitters{
    emitter_row{"", "Softmax", emit_softmax<false>},
    emitter_row{"", "LogSoftmax", emit_softmax<true>},
    emitter_row{"", "Hardmax", emit_hardmax},
    emitter_row{"", "LayerNormalization", emit_layer_normalization<true>},
    emitter_row{"", "RMSNormalization", emit_layer_normalization<false>},
    emitter_row{"", "InstanceNormalization", emit_instance_normalization},
    emitter_row{"", "GroupNormalization", emit_group_normalization},
    emitter_row{"", "BatchNormalization", emit_batch_normalization},
    emitter_row{"", "LRN", emit_local_response_normalization},
    emitter_row{"", "LpNormalization", emit_lp_normalization},
    emitter_row{"", "MeanVarianceNormalization", emit_mean_variance_normalization},
};

}  // namespace dnnopt::codegen

#endif  // DNNOPT_BACKEND_CODEGEN_ELEMENTS_NORMALIZATION_HPP

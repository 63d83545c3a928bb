// Owns how many products a convolution sums up for one element, on average over its output.
#ifndef DNNOPT_ZOO_SUMMED_TERMS_HPP
#define DNNOPT_ZOO_SUMMED_TERMS_HPP

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include <dnnopt/graph.hpp>
#include <dnnopt/shape.hpp>

namespace dnnopt::onnx::detail {

/// A dim as a number; a typical one where it is symbolic.
[[nodiscard]] inline double number(const index_expr& d) {
  return d.as_constant() ? static_cast<double>(std::max<std::int64_t>(*d.as_constant(), 1)) : 64.0;
}

/// The product of dims [from, to).
[[nodiscard]] inline double product(const shape& s, std::size_t from, std::size_t to) {
  double p = 1;
  for (std::size_t i = from; i < to && i < s.size(); ++i) p *= number(s[i]);
  return p;
}

/// Taps of a convolution that fall into the input, on average over the output's positions, times channels.
[[nodiscard]] inline double convolution_terms(const graph& g, const node& n) {
  const auto dims = [&](value_id id) { return id == no_value || !g.facts(id).dims ? nullptr : &*g.facts(id).dims; };
  const shape* w = dims(n.inputs.size() > 1 ? n.inputs[1] : no_value);
  const shape* x = dims(n.inputs[0]);
  if (w == nullptr || w->size() < 2) return 64;
  double terms = number((*w)[1]);
  const std::size_t spatial = w->size() - 2;
  // A transposed convolution has its input channels first and sees each tap only at every stride-th position.
  const bool transposed = n.op->name == "ConvTranspose";
  if (transposed)
    terms = number((*w)[0]) / static_cast<double>(std::max<std::int64_t>(n.attributes.get_int("group", 1), 1));
  const auto strides = n.attributes.get_ints("strides", std::vector<std::int64_t>(spatial, 1));
  const auto pads = n.attributes.get_ints("pads", std::vector<std::int64_t>(2 * spatial, 0));
  const auto dilations = n.attributes.get_ints("dilations", std::vector<std::int64_t>(spatial, 1));
  for (std::size_t d = 0; d < spatial; ++d) {
    const double taps = number((*w)[d + 2]);
    const auto size = x != nullptr && x->size() == w->size() ? (*x)[d + 2].as_constant() : std::nullopt;
    const auto out = dims(n.outputs[0]) != nullptr && dims(n.outputs[0])->size() == w->size()
                         ? (*dims(n.outputs[0]))[d + 2].as_constant()
                         : std::nullopt;
    if (transposed) {
      terms *= std::max(1.0, taps / static_cast<double>(std::max<std::int64_t>(strides[d], 1)));
    } else if (!size || !out || *out <= 0 || *out > 4096 || n.attributes.contains("auto_pad")) {
      terms *= taps;
    } else {
      std::int64_t inside = 0;
      for (std::int64_t o = 0; o < *out; ++o)
        for (std::int64_t k = 0; k < static_cast<std::int64_t>(taps); ++k) {
          const std::int64_t at = o * strides[d] - pads[d] + k * dilations[d];
          inside += static_cast<std::int64_t>(at >= 0 && at < *size);
        }
      terms *= std::max(static_cast<double>(inside) / static_cast<double>(*out), 1.0);
    }
  }
  return terms;
}

}  // namespace dnnopt::onnx::detail

#endif  // DNNOPT_ZOO_SUMMED_TERMS_HPP

// Owns the element expressions of generators and of losses: Range, EyeLike, windows, Dropout's mask, label losses.
#ifndef DNNOPT_BACKEND_CODEGEN_ELEMENTS_GENERATOR_HPP
#define DNNOPT_BACKEND_CODEGEN_ELEMENTS_GENERATOR_HPP

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <dnnopt/backend/codegen/elements/element_site.hpp>

namespace dnnopt::codegen {

inline std::string emit_range(kernel_builder& b, node_id id, std::size_t output, std::span<const index_expr> index) {
  const element_site s(b, id, output, index);
  return s.result(s.read_scalar(0) + " + " + index_source(s.index[0]) + " * " + s.read_scalar(2));
}

inline std::string emit_eye_like(kernel_builder& b, node_id id, std::size_t output, std::span<const index_expr> index) {
  const element_site s(b, id, output, index);
  return b.let(s.compute(), index_source(s.index[1] - s.index[0]) +
                                " == " + std::to_string(s.attributes().get_int("k", 0)) + " ? 1 : 0");
}

/// Dropout outside training: the input, and a mask of ones. Errors: unsupported in training, where chance decides.
inline std::string emit_dropout(kernel_builder& b, node_id id, std::size_t output, std::span<const index_expr> index) {
  const element_site s(b, id, output, index);
  bool training = false;
  if (s.has(2)) {
    const auto mode = s.integers(2);
    training = mode && !mode->empty() && mode->front() != 0;
  }
  if (training) {
    const auto ratio = s.has(1) ? s.numbers(1) : std::vector<double>{0.5};
    if (!ratio || ratio->empty() || ratio->front() != 0) throw s.refuse("training drops elements by chance");
  }
  return output == 0 ? s.read(0, s.index) : std::string("1L");
}

/// Window functions by the first three terms of their cosine series.
enum class window_function : std::uint8_t { hann, hamming, blackman };
template <window_function window>
std::string emit_window(kernel_builder& b, node_id id, std::size_t output, std::span<const index_expr> index) {
  const element_site s(b, id, output, index);
  const bool periodic = s.attributes().get_int("periodic", 1) != 0;
  const std::string length = index_source(s.out_dims()[0]);
  const std::string angle = b.let(compute_type::real, "6.283185307f * " + index_source(s.index[0]) + " / (float)" +
                                                          (periodic ? length : "(" + length + " - 1)"));
  if (window == window_function::hann) return s.result("0.5f - 0.5f * cos(" + angle + ")");
  if (window == window_function::hamming) return s.result("0.54347826087f - 0.45652173913f * cos(" + angle + ")");
  return s.result("0.42f - 0.5f * cos(" + angle + ") + 0.08f * cos(2 * " + angle + ")");
}

/// The logarithm of softmax over axis 1, at `at`.
[[nodiscard]] inline std::string log_probability(const element_site& s, std::span<const index_expr> at,
                                                 const std::string& element) {
  kernel_builder& b = s.b;
  const compute_type type = s.input_compute();
  std::vector<index_expr> own(at.begin(), at.end());
  const std::string top = b.variable(type, "-INFINITY");
  s.loop("r", s.dims(0)[1], [&](const index_expr& r) {
    own[1] = r;
    b.line(top + " = fmax(" + top + ", " + s.read(0, own) + ");");
  });
  const std::string sum = b.variable(type, "0");
  s.loop("r", s.dims(0)[1], [&](const index_expr& r) {
    own[1] = r;
    b.line(sum + " += exp(" + s.read(0, own) + " - " + top + ");");
  });
  return b.let(type, element + " - " + top + " - log(" + sum + ")");
}

/// NegativeLogLikelihoodLoss, and SoftmaxCrossEntropyLoss, which takes the logarithm of `softmax` first.
template <bool softmax>
std::string emit_label_loss(kernel_builder& b, node_id id, std::size_t output, std::span<const index_expr> index) {
  const element_site s(b, id, output, index);
  const compute_type type = s.compute();
  if (output == 1) return log_probability(s, s.index, s.read(0, s.index));
  const std::string reduction = s.attributes().get_string("reduction", "mean");
  const std::int64_t* ignored = s.attributes().find_as<std::int64_t>("ignore_index");
  // The loss of one label and the label's weight, assigned to variables declared outside.
  const auto one = [&](std::span<const index_expr> at, const std::string& loss, const std::string& weight) {
    const std::string label = s.read(1, at);
    const std::string test = ignored == nullptr ? "" : label + " != " + std::to_string(*ignored);
    b.line(loss + " = 0;");
    b.line(weight + " = 0;");
    s.when(test, [&] {
      std::vector<index_expr> own{at[0], b.define_integer("g", label, {0, s.dims(0)[1].range().high - 1})};
      own.insert(own.end(), at.begin() + 1, at.end());
      const std::string element = s.read(0, own);
      const std::string score = softmax ? log_probability(s, own, element) : element;
      b.line(weight + " = " + (s.has(2) ? s.read(2, {own[1]}) : std::string("1")) + ";");
      b.line(loss + " = -" + score + " * " + weight + ";");
    });
  };
  const std::string loss = b.variable(type, "0");
  const std::string weight = b.variable(type, "0");
  if (reduction == "none") {
    one(s.index, loss, weight);
    return loss;
  }
  const std::string sum = b.variable(type, "0");
  const std::string weights = b.variable(type, "0");
  s.loops("l", s.dims(1), [&](const std::vector<index_expr>& at) {
    one(at, loss, weight);
    b.line(sum + " += " + loss + ";");
    b.line(weights + " += " + weight + ";");
  });
  return s.result(reduction == "mean" ? sum + " / " + weights : sum);
}

/// The one number that input `i` holds. Errors: unsupported where it is not known, or is not one.
[[nodiscard]] inline std::int64_t known_number(const element_site& s, std::size_t i, std::string_view what) {
  const auto known = s.integers(i);
  if (!known || known->size() != 1) throw s.refuse(std::string(what) + " is no one known number");
  return known->front();
}

/// DFT by its sum. Source: ONNX operator documentation, DFT.
inline std::string emit_dft(kernel_builder& b, node_id id, std::size_t output, std::span<const index_expr> index) {
  const element_site s(b, id, output, index);
  const shape& x = s.dims(0);
  std::int64_t position = s.attributes().get_int("axis", -2);
  if (s.has(2)) position = known_number(s, 2, "its axis");
  const std::size_t axis = normalize_axis(position, x.size());
  const bool inverse = s.attributes().get_int("inverse", 0) != 0;
  const bool one_sided = s.attributes().get_int("onesided", 0) != 0;
  // Of a real signal's spectrum the other half is the conjugate of the given one.
  const bool mirrored = one_sided && inverse;
  index_expr length = mirrored ? (x[axis] - 1) * 2 : x[axis];
  if (s.has(1)) length = known_number(s, 1, "its length");
  const compute_type type = s.compute();
  const std::string real(name_of(type));
  const std::string sum_real = b.variable(type, "0");
  const std::string sum_imaginary = b.variable(type, "0");
  const std::string n = index_source(length);
  std::vector<index_expr> at = s.index;
  const index_expr terms = mirrored ? length
                           : length.is_constant() && x[axis].is_constant()
                               ? index_expr(std::min(length.constant(), x[axis].constant()))
                               : min(length, x[axis]);
  s.loop("k", terms, [&](const index_expr& k) {
    std::string test;
    at[axis] = k;
    if (mirrored) {
      const index_expr given = min(k, length - k);
      test = kernel_builder::within(given, x[axis]);
      if (!test.empty()) b.open("if (" + test + ") {");
      at[axis] = b.define_index("x", given, x[axis]);
    }
    at.back() = 0;
    const std::string re = s.read(0, at);
    std::string im = s.imaginary_part(0, at);
    if (mirrored) im = "(2 * " + index_source(k) + " > " + n + " ? -" + im + " : " + im + ")";
    const std::string angle =
        b.let(type, std::string(inverse ? "2" : "-2") + " * (" + real + ")(((long)" + index_source(k) + " * " +
                        index_source(s.index[axis]) + ") % " + n + ") / " + n);
    b.line(sum_real + " += " + re + " * cospi(" + angle + ") - " + im + " * sinpi(" + angle + ");");
    b.line(sum_imaginary + " += " + re + " * sinpi(" + angle + ") + " + im + " * cospi(" + angle + ");");
    if (mirrored && !test.empty()) b.close();
  });
  const std::string part =
      mirrored ? sum_real : "(" + index_source(s.index.back()) + " == 0 ? " + sum_real + " : " + sum_imaginary + ")";
  return s.result(inverse ? part + " / " + n : part);
}

inline std::string emit_stft(kernel_builder& b, node_id id, std::size_t output, std::span<const index_expr> index) {
  const element_site s(b, id, output, index);
  const shape& x = s.dims(0);
  const std::int64_t step = known_number(s, 1, "its step");
  index_expr length;
  if (s.has(3))
    length = known_number(s, 3, "its frame length");
  else if (s.has(2) && s.dims(2).size() == 1)
    length = s.dims(2)[0];
  else
    throw s.refuse("neither a window nor a frame length");
  const compute_type type = s.compute();
  const std::string real(name_of(type));
  const std::string sum_real = b.variable(type, "0");
  const std::string sum_imaginary = b.variable(type, "0");
  s.loop("k", length, [&](const index_expr& k) {
    std::vector<index_expr> at{s.index[0], s.index[1] * step + k};
    if (x.size() == 3) at.emplace_back(0);
    const std::string window = s.has(2) ? " * " + s.read(2, {k}) : "";
    const std::string re = b.let(type, s.read(0, at) + window);
    const std::string im = x.size() == 3 ? b.let(type, s.imaginary_part(0, at) + window) : "0";
    const std::string n = index_source(length);
    const std::string angle = b.let(type, "-2 * (" + real + ")(((long)" + index_source(k) + " * " +
                                              index_source(s.index[2]) + ") % " + n + ") / " + n);
    b.line(sum_real + " += " + re + " * cospi(" + angle + ") - " + im + " * sinpi(" + angle + ");");
    b.line(sum_imaginary + " += " + re + " * sinpi(" + angle + ") + " + im + " * cospi(" + angle + ");");
  });
  return s.result(index_source(s.index[3]) + " == 0 ? " + sum_real + " : " + sum_imaginary);
}

inline constexpr std::array generator_emitters{
    emitter_row{"", "Range", emit_range},
    emitter_row{"", "EyeLike", emit_eye_like},
    emitter_row{"", "Dropout", emit_dropout},
    emitter_row{"", "HannWindow", emit_window<window_function::hann>},
    emitter_row{"", "HammingWindow", emit_window<window_function::hamming>},
    emitter_row{"", "BlackmanWindow", emit_window<window_function::blackman>},
    emitter_row{"", "NegativeLogLikelihoodLoss", emit_label_loss<false>},
    emitter_row{"", "SoftmaxCrossEntropyLoss", emit_label_loss<true>},
    emitter_row{"", "DFT", emit_dft},
    emitter_row{"", "STFT", emit_stft},
};

}  // namespace dnnopt::codegen

#endif  // DNNOPT_BACKEND_CODEGEN_ELEMENTS_GENERATOR_HPP

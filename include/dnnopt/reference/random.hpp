// Owns the reference evaluation of the operators that draw random numbers.
#ifndef DNNOPT_REFERENCE_RANDOM_HPP
#define DNNOPT_REFERENCE_RANDOM_HPP

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <dnnopt/ops/conversion.hpp>
#include <dnnopt/reference/elements.hpp>
#include <dnnopt/reference/reference_row.hpp>
#include <dnnopt/reference/uniform_stream.hpp>

namespace dnnopt::reference {

namespace random {

/// The stream of a node: seeded by its attribute `seed` (whole numbers as themselves, others by their bits), else by 0,
/// so that every run of a model draws the same numbers.
[[nodiscard]] inline uniform_stream stream_of(const attribute_map& attributes) {
  const float seed = attributes.get_float("seed", 0.0F);
  const bool whole = seed >= 0.0F && seed < 4294967296.0F && seed == std::floor(seed);
  return uniform_stream(whole ? static_cast<std::uint32_t>(seed) : std::bit_cast<std::uint32_t>(seed));
}

/// `count` numbers of the standard normal distribution (Box and Muller).
[[nodiscard]] inline std::vector<double> normal_numbers(uniform_stream stream, std::size_t count) {
  constexpr double two_pi = 6.28318530717958647693;
  std::vector<double> result;
  while (result.size() < count) {
    const double radius = std::sqrt(-2.0 * std::log(1.0 - stream.next()));
    const double turn = two_pi * stream.next();
    result.push_back(radius * std::cos(turn));
    result.push_back(radius * std::sin(turn));
  }
  result.resize(count);
  return result;
}

inline tensor normal(const attribute_map& attributes, dtype type, const dim_list& dims) {
  std::vector<double> values = normal_numbers(stream_of(attributes), static_cast<std::size_t>(element_count(dims)));
  const auto mean = static_cast<double>(attributes.get_float("mean", 0.0F));
  const auto scale = static_cast<double>(attributes.get_float("scale", 1.0F));
  for (double& v : values) v = mean + scale * v;
  return store_all<double>(type, dims, values);
}

inline tensor uniform(const attribute_map& attributes, dtype type, const dim_list& dims) {
  uniform_stream stream = stream_of(attributes);
  const auto low = static_cast<double>(attributes.get_float("low", 0.0F));
  const auto high = static_cast<double>(attributes.get_float("high", 1.0F));
  std::vector<double> values(static_cast<std::size_t>(element_count(dims)));
  for (double& v : values) v = low + (high - low) * stream.next();
  return store_all<double>(type, dims, values);
}

inline void random_normal(const attribute_map& attributes, std::span<const tensor>, std::span<tensor> outputs) {
  outputs[0] =
      normal(attributes, ops::type_attribute(attributes, "dtype", dtype::float32), attributes.get_ints("shape"));
}
inline void random_uniform(const attribute_map& attributes, std::span<const tensor>, std::span<tensor> outputs) {
  outputs[0] =
      uniform(attributes, ops::type_attribute(attributes, "dtype", dtype::float32), attributes.get_ints("shape"));
}
inline void random_normal_like(const attribute_map& attributes, std::span<const tensor> inputs,
                               std::span<tensor> outputs) {
  outputs[0] = normal(attributes, ops::type_attribute(attributes, "dtype", inputs[0].type()), inputs[0].dims());
}
inline void random_uniform_like(const attribute_map& attributes, std::span<const tensor> inputs,
                                std::span<tensor> outputs) {
  outputs[0] = uniform(attributes, ops::type_attribute(attributes, "dtype", inputs[0].type()), inputs[0].dims());
}
inline void bernoulli(const attribute_map& attributes, std::span<const tensor> inputs, std::span<tensor> outputs) {
  uniform_stream stream = stream_of(attributes);
  std::vector<double> values = load_all<double>(inputs[0]);
  for (double& v : values) v = stream.next() < v ? 1.0 : 0.0;
  outputs[0] = store_all<double>(ops::type_attribute(attributes, "dtype", inputs[0].type()), inputs[0].dims(), values);
}
inline void multinomial(const attribute_map& attributes, std::span<const tensor> inputs, std::span<tensor> outputs) {
  if (inputs[0].rank() != 2)
    throw error(errc::shape_mismatch, "Multinomial of rank " + std::to_string(inputs[0].rank()));
  const auto rows = static_cast<std::size_t>(inputs[0].dims()[0]);
  const auto classes = static_cast<std::size_t>(inputs[0].dims()[1]);
  const std::int64_t samples = attributes.get_int("sample_size", 1);
  const std::vector<double> logits = load_all<double>(inputs[0]);
  uniform_stream stream = stream_of(attributes);
  std::vector<double> values;
  for (std::size_t row = 0; row < rows; ++row) {
    const std::span<const double> own = std::span<const double>(logits).subspan(row * classes, classes);
    if (own.empty()) throw error(errc::shape_mismatch, "Multinomial over no classes");
    const double largest = *std::max_element(own.begin(), own.end());
    std::vector<double> totals;
    for (const double logit : own) totals.push_back((totals.empty() ? 0.0 : totals.back()) + std::exp(logit - largest));
    for (std::int64_t k = 0; k < samples; ++k) {
      const auto at = std::upper_bound(totals.begin(), totals.end() - 1, stream.next() * totals.back());
      values.push_back(static_cast<double>(at - totals.begin()));
    }
  }
  outputs[0] =
      store_all<double>(ops::type_attribute(attributes, "dtype", dtype::int32), {inputs[0].dims()[0], samples}, values);
}

}  // namespace random

inline constexpr std::array random_rows{
    reference_row{"", "RandomNormal", random::random_normal},
    reference_row{"", "RandomUniform", random::random_uniform},
    reference_row{"", "RandomNormalLike", random::random_normal_like},
    reference_row{"", "RandomUniformLike", random::random_uniform_like},
    reference_row{"", "Bernoulli", random::bernoulli},
    reference_row{"", "Multinomial", random::multinomial},
};

}  // namespace dnnopt::reference

#endif  // DNNOPT_REFERENCE_RANDOM_HPP

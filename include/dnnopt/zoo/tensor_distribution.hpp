// Owns the distribution of the elements of a constant.
#ifndef DNNOPT_ZOO_TENSOR_DISTRIBUTION_HPP
#define DNNOPT_ZOO_TENSOR_DISTRIBUTION_HPP

#include <cmath>
#include <cstdint>

#include <dnnopt/dtype.hpp>
#include <dnnopt/ops/facts.hpp>
#include <dnnopt/small_float.hpp>
#include <dnnopt/tensor.hpp>
#include <dnnopt/zoo/distribution.hpp>

namespace dnnopt::onnx::detail {

/// Mean and variance of the elements of a constant; huge ones, which mask, do not count.
inline distribution distribution_of(const tensor& t, std::uint64_t source) {
  double sum = 0;
  double squares = 0;
  double count = 0;
  const auto take = [&](double v) {
    if (!(std::abs(v) < 1e4)) return;
    sum += v;
    squares += v * v;
    ++count;
  };
  switch (t.type()) {
    case dtype::float32:
      for (const float v : t.data<float>()) take(static_cast<double>(v));
      break;
    case dtype::float64:
      for (const double v : t.data<double>()) take(v);
      break;
    case dtype::float16:
      for (const float16 v : t.data<float16>()) take(static_cast<double>(static_cast<float>(v)));
      break;
    case dtype::boolean:
    case dtype::int64:
    case dtype::int32:
      for (const std::int64_t v : integers_of(t)) take(static_cast<double>(v));
      break;
    default:
      break;
  }
  if (count == 0) return distribution(0.0);
  const double mean = sum / count;
  const double variance = squares / count - mean * mean;
  return variance <= 1e-9 * mean * mean ? distribution(mean) : distribution(mean, variance, source);
}

}  // namespace dnnopt::onnx::detail

#endif  // DNNOPT_ZOO_TENSOR_DISTRIBUTION_HPP

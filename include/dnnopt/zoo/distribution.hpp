// Owns the estimate of how the elements of a tensor are distributed: a function of one Gaussian, and its arithmetic.
#ifndef DNNOPT_ZOO_DISTRIBUTION_HPP
#define DNNOPT_ZOO_DISTRIBUTION_HPP

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>

namespace dnnopt::onnx {

/// The elements of a tensor, taken as f(z) of one standard normal variable z that `source` names, with f known on a
/// grid.
///
/// Two values of one source (x and its sigmoid) combine point by point, so products such as SiLU's are exact; values of
/// different sources combine as independent ones and become a new Gaussian of the right mean and variance.
class distribution {
 public:
  static constexpr std::size_t points = 65;
  using grid = std::array<double, points>;

  /// The constant `value`.
  explicit distribution(double value = 0) { f_.fill(value); }
  /// Normal with that mean and variance, of a source of its own.
  distribution(double mean, double variance, std::uint64_t source) : source_(source) {
    const double deviation = std::sqrt(std::max(variance, 0.0));
    for (std::size_t i = 0; i < points; ++i) f_[i] = mean + deviation * z(i);
  }

  [[nodiscard]] double mean() const {
    double sum = 0;
    for (std::size_t i = 0; i < points; ++i) sum += weights()[i] * f_[i];
    return sum;
  }
  /// The mean of squares.
  [[nodiscard]] double power() const {
    double sum = 0;
    for (std::size_t i = 0; i < points; ++i) sum += weights()[i] * f_[i] * f_[i];
    return sum;
  }
  [[nodiscard]] double variance() const {
    const double m = mean();
    return std::max(power() - m * m, 0.0);
  }
  [[nodiscard]] bool is_constant() const { return source_ == 0; }
  [[nodiscard]] std::uint64_t source() const noexcept { return source_; }

  /// g of every element.
  template <class G>
  [[nodiscard]] distribution map(G&& g) const {
    distribution result = *this;
    for (double& v : result.f_) v = bounded(g(v));
    return result;
  }
  /// Whether elements of `a` and `b` belong together one by one.
  [[nodiscard]] static bool together(const distribution& a, const distribution& b) {
    return a.source_ == b.source_ || a.is_constant() || b.is_constant();
  }
  /// g of elements that belong together. Precondition: together(a, b).
  template <class G>
  [[nodiscard]] static distribution zip(const distribution& a, const distribution& b, G&& g) {
    distribution result = a.is_constant() ? b : a;
    for (std::size_t i = 0; i < points; ++i) result.f_[i] = bounded(g(a.f_[i], b.f_[i]));
    return result;
  }

 private:
  static constexpr double bounded(double v) { return v == v ? std::clamp(v, -1e6, 1e6) : 0.0; }
  static constexpr double z(std::size_t i) { return (static_cast<double>(i) - 32.0) / 6.0; }
  // Normalized values of the normal density on the grid.
  static const grid& weights() {
    static const grid table = [] {
      grid w{};
      double sum = 0;
      for (std::size_t i = 0; i < points; ++i) sum += w[i] = std::exp(-0.5 * z(i) * z(i));
      for (double& v : w) v /= sum;
      return w;
    }();
    return table;
  }

  grid f_{};
  std::uint64_t source_ = 0;  // 0: a constant
};

}  // namespace dnnopt::onnx

#endif  // DNNOPT_ZOO_DISTRIBUTION_HPP

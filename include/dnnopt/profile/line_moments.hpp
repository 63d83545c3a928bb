// Owns the least-squares line through weighted points, kept as moments that merge and fade.
#ifndef DNNOPT_PROFILE_LINE_MOMENTS_HPP
#define DNNOPT_PROFILE_LINE_MOMENTS_HPP

namespace dnnopt::profile {

/// Weighted least squares of y = a + b x from moments about their means. Closed form instead of a matrix solver: two
/// unknowns have one division each, moments of groups merge and fade without their samples being kept, and a fit then
/// costs nanoseconds and no allocation, which the hot path's budget asks for.
struct line_moments {
  double weight = 0.0;
  double mean_x = 0.0;
  double mean_y = 0.0;
  double sxx = 0.0;
  double sxy = 0.0;

  void add(double x, double y, double w = 1.0) noexcept { merge({w, x, y, 0.0, 0.0}); }
  void merge(const line_moments& other) noexcept {
    if (other.weight <= 0.0) return;
    const double total = weight + other.weight;
    const double dx = other.mean_x - mean_x;
    const double dy = other.mean_y - mean_y;
    const double shared = weight * other.weight / total;
    sxx += other.sxx + dx * dx * shared;
    sxy += other.sxy + dx * dy * shared;
    mean_x += dx * other.weight / total;
    mean_y += dy * other.weight / total;
    weight = total;
  }
  /// Multiplies the influence of all that was seen.
  void fade(double factor) noexcept {
    weight *= factor;
    sxx *= factor;
    sxy *= factor;
  }
  [[nodiscard]] double slope() const noexcept { return sxx > 0.0 ? sxy / sxx : 0.0; }
  [[nodiscard]] double at(double x) const noexcept { return mean_y + slope() * (x - mean_x); }
};

}  // namespace dnnopt::profile

#endif  // DNNOPT_PROFILE_LINE_MOMENTS_HPP

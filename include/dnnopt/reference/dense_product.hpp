// Owns the one dense matrix product of the reference backend, on Eigen in double; a single instantiation keeps
// compiling short.
#ifndef DNNOPT_REFERENCE_DENSE_PRODUCT_HPP
#define DNNOPT_REFERENCE_DENSE_PRODUCT_HPP

#include <algorithm>
#include <cstdint>
#include <vector>

#include <Eigen/Core>

namespace dnnopt::reference {

/// Row-major `c` [rows, columns] becomes `a` [rows, inner] times `b` [inner, columns]; `c` overlaps neither operand.
inline void dense_product(const double* a, const double* b, double* c, std::int64_t rows, std::int64_t inner,
                          std::int64_t columns) {
  using matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  if (inner == 0) {
    std::fill(c, c + rows * columns, 0.0);
    return;
  }
  if (rows == 1) {
    // A single row (depthwise convolution, decoding) gains nothing from the blocked product.
    std::fill(c, c + columns, 0.0);
    for (std::int64_t k = 0; k < inner; ++k)
      for (std::int64_t j = 0; j < columns; ++j) c[j] += a[k] * b[k * columns + j];
    return;
  }
  Eigen::Map<matrix>(c, rows, columns).noalias() =
      Eigen::Map<const matrix>(a, rows, inner) * Eigen::Map<const matrix>(b, inner, columns);
}

/// The transpose of row-major `a` [rows, columns].
[[nodiscard]] inline std::vector<double> transposed(const double* a, std::int64_t rows, std::int64_t columns) {
  std::vector<double> result(static_cast<std::size_t>(rows * columns));
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t c = 0; c < columns; ++c) result[static_cast<std::size_t>(c * rows + r)] = a[r * columns + c];
  return result;
}

}  // namespace dnnopt::reference

#endif  // DNNOPT_REFERENCE_DENSE_PRODUCT_HPP

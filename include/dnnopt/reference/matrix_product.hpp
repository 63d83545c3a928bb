// Owns the reference evaluation of matrix products (MatMul, Gemm, Einsum, quantized ones) and Det, on Eigen where
// floating point.
#ifndef DNNOPT_REFERENCE_MATRIX_PRODUCT_HPP
#define DNNOPT_REFERENCE_MATRIX_PRODUCT_HPP

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <dnnopt/ops/einsum_equation.hpp>
#include <dnnopt/reference/broadcast.hpp>
#include <dnnopt/reference/conversion.hpp>
#include <dnnopt/reference/dense_product.hpp>
#include <dnnopt/reference/reference_row.hpp>

namespace dnnopt::reference {

/// A row-major matrix of a wide type.
template <class C>
struct wide_matrix {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::vector<C> data;

  void resize(std::int64_t height, std::int64_t width) {
    rows = height;
    columns = width;
    data.resize(static_cast<std::size_t>(height * width));
  }
  [[nodiscard]] const C* row(std::int64_t r) const { return data.data() + r * columns; }
};

/// The product of two matrices; integers wrap.
template <class C>
void product_of(const wide_matrix<C>& a, const wide_matrix<C>& b, wide_matrix<C>& c) {
  c.resize(a.rows, b.columns);
  if constexpr (std::is_same_v<C, double>) {
    dense_product(a.data.data(), b.data.data(), c.data.data(), a.rows, a.columns, b.columns);
  } else {
    for (std::int64_t r = 0; r < a.rows; ++r)
      for (std::int64_t j = 0; j < b.columns; ++j) {
        std::uint64_t total = 0;
        for (std::int64_t k = 0; k < a.columns; ++k)
          total += static_cast<std::uint64_t>(a.row(r)[k]) * static_cast<std::uint64_t>(b.row(k)[j]);
        c.data[static_cast<std::size_t>(r * b.columns + j)] = static_cast<C>(total);
      }
  }
}

/// A matrix that lies in a tensor's storage.
struct matrix_view {
  const std::byte* data;
  dtype type;
  std::int64_t offset;
  std::int64_t row_stride;
  std::int64_t column_stride;
};

/// Rows [row, row + rows) and columns [column, column + columns) of a view, widened.
template <class C>
void load_block(const matrix_view& view, std::int64_t row, std::int64_t rows, std::int64_t column, std::int64_t columns,
                wide_matrix<C>& out) {
  out.resize(rows, columns);
  const load_function<C> load = loader<C>(view.type);
  for (std::int64_t r = 0; r < rows; ++r)
    load(view.data, view.offset + (row + r) * view.row_stride + column * view.column_stride, view.column_stride,
         static_cast<std::size_t>(columns), out.data.data() + r * columns);
}

/// Multiplies `count` pairs of matrices, a(i) of rows x inner and b(i) of inner x columns, and gives blocks of each
/// product to `sink(i, row, column, block)`. Calls come from several threads, each element of each product once.
template <class C, class A, class B, class Sink>
void multiply_blocks(std::int64_t count, std::int64_t rows, std::int64_t inner, std::int64_t columns, const A& a,
                     const B& b, const Sink& sink) {
  constexpr std::int64_t block_rows = 256;
  const std::int64_t block_columns = std::clamp<std::int64_t>((columns + 1) / 2, 1, 256);
  const std::int64_t column_blocks = (columns + block_columns - 1) / block_columns;
  const std::int64_t work = std::max<std::int64_t>(1, rows * inner * block_columns);
  parallel_ranges(count * column_blocks, std::max<std::int64_t>(1, (1 << 20) / work),
                  [&](std::int64_t begin, std::int64_t end) {
                    wide_matrix<C> left;
                    wide_matrix<C> right;
                    wide_matrix<C> product;
                    for (std::int64_t task = begin; task < end; ++task) {
                      const std::int64_t i = task / column_blocks;
                      const std::int64_t column = task % column_blocks * block_columns;
                      const std::int64_t width = std::min(block_columns, columns - column);
                      load_block<C>(b(i), 0, inner, column, width, right);
                      for (std::int64_t row = 0; row < rows; row += block_rows) {
                        const std::int64_t height = std::min(block_rows, rows - row);
                        load_block<C>(a(i), row, height, 0, inner, left);
                        product_of(left, right, product);
                        sink(i, row, column, product);
                      }
                    }
                  });
}

namespace matrix {
using inputs = std::span<const tensor>;
using outputs = std::span<tensor>;

/// numpy's matmul: the product's elements have `type`. Errors: shape_mismatch.
template <class C>
[[nodiscard]] tensor matmul(const tensor& a, const tensor& b, dtype type) {
  if (a.rank() == 0 || b.rank() == 0)
    throw error(errc::shape_mismatch, "a matrix product needs operands of rank 1 or more");
  dim_list a_dims = a.dims();
  dim_list b_dims = b.dims();
  if (a_dims.size() == 1) a_dims.insert(a_dims.begin(), 1);
  if (b_dims.size() == 1) b_dims.push_back(1);
  const std::int64_t rows = a_dims[a_dims.size() - 2];
  const std::int64_t inner = a_dims.back();
  const std::int64_t columns = b_dims.back();
  if (b_dims[b_dims.size() - 2] != inner)
    throw error(errc::shape_mismatch, "the matrix product of " + to_string(a.dims()) + " and " + to_string(b.dims()));
  const dim_list batch_a(a_dims.begin(), a_dims.end() - 2);
  const dim_list batch_b(b_dims.begin(), b_dims.end() - 2);
  const dim_list batch = broadcast_dims(batch_a, batch_b);
  // Which matrix of each operand belongs to a batch entry, found by broadcasting their numbers.
  const auto numbers = [&](const dim_list& own) {
    std::vector<std::int64_t> all(static_cast<std::size_t>(element_count(own)));
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::int64_t>(i);
    const tensor source = tensor::of<std::int64_t>(own, all);
    std::vector<std::int64_t> result(static_cast<std::size_t>(element_count(batch)));
    broadcast_reader<std::int64_t>(source, batch).read(0, result.size(), result.data());
    return result;
  };
  const auto at_a = numbers(batch_a);
  const auto at_b = numbers(batch_b);
  dim_list dims = batch;
  if (a.rank() > 1) dims.push_back(rows);
  if (b.rank() > 1) dims.push_back(columns);
  tensor result(type, dims);
  std::byte* const out = result.mutable_bytes().data();
  const store_function<C> store = storer<C>(type);
  const auto view = [](const tensor& t, std::int64_t number, std::int64_t height, std::int64_t width) {
    return matrix_view{t.bytes().data(), t.type(), number * height * width, width, 1};
  };
  multiply_blocks<C>(
      static_cast<std::int64_t>(at_a.size()), rows, inner, columns,
      [&](std::int64_t i) { return view(a, at_a[static_cast<std::size_t>(i)], rows, inner); },
      [&](std::int64_t i) { return view(b, at_b[static_cast<std::size_t>(i)], inner, columns); },
      [&](std::int64_t i, std::int64_t row, std::int64_t column, const wide_matrix<C>& product) {
        for (std::int64_t r = 0; r < product.rows; ++r)
          store(out, (i * rows + row + r) * columns + column, static_cast<std::size_t>(product.columns),
                product.row(r));
      });
  return result;
}

inline void evaluate_matmul(const attribute_map&, inputs x, outputs y) {
  y[0] = is_floating(x[0].type()) ? matmul<double>(x[0], x[1], x[0].type())
                                  : matmul<std::int64_t>(x[0], x[1], x[0].type());
}

template <class C>
[[nodiscard]] tensor gemm(const attribute_map& attributes, inputs x) {
  const tensor& a = x[0];
  const tensor& b = x[1];
  if (a.rank() != 2 || b.rank() != 2)
    throw error(errc::shape_mismatch, "Gemm of " + to_string(a.dims()) + " and " + to_string(b.dims()));
  const bool transposed_a = attributes.get_int("transA", 0) != 0;
  const bool transposed_b = attributes.get_int("transB", 0) != 0;
  const double alpha = attributes.get_float("alpha", 1.0F);
  const double beta = attributes.get_float("beta", 1.0F);
  const std::int64_t rows = a.dims()[transposed_a ? 1 : 0];
  const std::int64_t inner = a.dims()[transposed_a ? 0 : 1];
  const std::int64_t columns = b.dims()[transposed_b ? 0 : 1];
  if (b.dims()[transposed_b ? 1 : 0] != inner)
    throw error(errc::shape_mismatch, "Gemm of " + to_string(a.dims()) + " and " + to_string(b.dims()));
  const auto view = [](const tensor& t, bool transposed) {
    const std::int64_t width = t.dims()[1];
    return matrix_view{t.bytes().data(), t.type(), 0, transposed ? 1 : width, transposed ? width : 1};
  };
  tensor result(a.type(), {rows, columns});
  std::byte* const out = result.mutable_bytes().data();
  const store_function<C> store = storer<C>(a.type());
  std::optional<broadcast_reader<C>> addend;
  if (has_input(x, 2)) {
    (void)broadcast_dims(result.dims(), x[2].dims());
    addend.emplace(x[2], result.dims());
  }
  multiply_blocks<C>(
      1, rows, inner, columns, [&](std::int64_t) { return view(a, transposed_a); },
      [&](std::int64_t) { return view(b, transposed_b); },
      [&](std::int64_t, std::int64_t row, std::int64_t column, const wide_matrix<C>& product) {
        std::vector<C> line(static_cast<std::size_t>(product.columns));
        std::vector<C> added(line.size(), C{});
        for (std::int64_t r = 0; r < product.rows; ++r) {
          const std::int64_t at = (row + r) * columns + column;
          if (addend) addend->read(at, added.size(), added.data());
          for (std::size_t c = 0; c < line.size(); ++c)
            line[c] =
                static_cast<C>(alpha * static_cast<double>(product.row(r)[c]) + beta * static_cast<double>(added[c]));
          store(out, at, line.size(), line.data());
        }
      });
  return result;
}
inline void evaluate_gemm(const attribute_map& attributes, inputs x, outputs y) {
  y[0] = is_floating(x[0].type()) ? gemm<double>(attributes, x) : gemm<std::int64_t>(attributes, x);
}

/// Elements less their zero point; a zero point of rank 1 goes along `axis` from the end (2: rows, 1: columns).
[[nodiscard]] inline tensor less_zero_point(const tensor& x, inputs all, std::size_t zero_input,
                                            std::size_t axis_from_end) {
  tensor zero = tensor::scalar<float>(0.0F);
  if (has_input(all, zero_input)) {
    zero = all[zero_input];
    if (zero.size() == 1)
      zero = zero.reshaped({});
    else if (zero.rank() == 1 && axis_from_end == 2)
      zero = zero.reshaped({zero.size(), 1});
  }
  return map_scalars<double>(dtype::float64, x.dims(), std::array<const tensor*, 2>{&x, &zero},
                             [](double v, double z) { return v - z; });
}
inline void matmul_integer(const attribute_map&, inputs x, outputs y) {
  // Products and sums of 8-bit integers are exact in double.
  y[0] = matmul<double>(less_zero_point(x[0], x, 2, 2), less_zero_point(x[1], x, 3, 1), dtype::int32);
}

/// A scale or zero point of a matrix operand, shaped to go along rows (2) or columns (1) of the product.
[[nodiscard]] inline tensor along(const tensor& parameter, std::size_t axis_from_end) {
  if (parameter.size() == 1) return parameter.reshaped({});
  return parameter.rank() == 1 && axis_from_end == 2 ? parameter.reshaped({parameter.size(), 1}) : parameter;
}
inline void qlinear_matmul(const attribute_map&, inputs x, outputs y) {
  const tensor product = matmul<double>(less_zero_point(x[0], x, 2, 2), less_zero_point(x[3], x, 5, 1), dtype::float64);
  const tensor scale_a = along(x[1], 2);
  const tensor scale_b = along(x[4], 1);
  const tensor scale_y = along(x[6], 2);
  // In the order and precision of engines: they decide what a sum becomes that lies between two codes.
  const tensor scale =
      map_scalars<float>(dtype::float32, broadcast_dims(broadcast_dims(scale_a.dims(), scale_b.dims()), scale_y.dims()),
                         std::array<const tensor*, 3>{&scale_a, &scale_b, &scale_y},
                         [](float sa, float sb, float sy) { return sa * sb / sy; });
  const tensor zero_y = along(x[7], 2);
  const auto [low, high] = conversion::limits_of(x[7].type());
  y[0] = map_scalars<double>(x[7].type(), product.dims(), std::array<const tensor*, 3>{&product, &scale, &zero_y},
                             [low = low, high = high](double v, double s, double z) {
                               const float scaled = static_cast<float>(v) * static_cast<float>(s);
                               return std::clamp(static_cast<double>(std::nearbyint(scaled)) + z, low, high);
                             });
}

template <class C>
[[nodiscard]] tensor einsum(const attribute_map& attributes, inputs x) {
  std::vector<std::size_t> ranks;
  for (const tensor& t : x) ranks.push_back(t.rank());
  const einsum_equation equation = parse_einsum(attributes.require<std::string>("equation"), ranks);
  std::map<int, std::int64_t> extents;
  for (std::size_t i = 0; i < x.size(); ++i)
    for (std::size_t d = 0; d < ranks[i]; ++d) {
      std::int64_t& extent = extents.emplace(equation.operands[i][d], 1).first->second;
      const std::int64_t own = x[i].dims()[d];
      if (extent != 1 && own != 1 && extent != own)
        throw error(errc::shape_mismatch,
                    "Einsum dims " + std::to_string(extent) + " and " + std::to_string(own) + " share a label");
      if (extent == 1) extent = own;
    }
  // Loop order: output labels, then the labels that are summed.
  std::vector<int> order = equation.output;
  for (const auto& [label, extent] : extents)
    if (std::find(order.begin(), order.end(), label) == order.end()) order.push_back(label);
  std::vector<std::vector<std::int64_t>> steps(x.size(), std::vector<std::int64_t>(order.size(), 0));
  for (std::size_t i = 0; i < x.size(); ++i) {
    std::int64_t stride = 1;
    for (std::size_t d = ranks[i]; d-- > 0;) {
      const auto at =
          static_cast<std::size_t>(std::find(order.begin(), order.end(), equation.operands[i][d]) - order.begin());
      if (x[i].dims()[d] != 1) steps[i][at] += stride;
      stride *= x[i].dims()[d];
    }
  }
  dim_list dims;
  for (const int label : equation.output) dims.push_back(extents.at(label));
  std::vector<std::int64_t> loop;
  for (const int label : order) loop.push_back(extents.at(label));
  const std::int64_t outer = element_count(dims);
  std::int64_t summed = 1;
  for (std::size_t i = dims.size(); i < loop.size(); ++i) summed *= loop[i];
  std::vector<std::vector<C>> values;
  for (const tensor& t : x) values.push_back(load_all<C>(t));
  std::vector<C> result(static_cast<std::size_t>(outer));
  parallel_ranges(outer, std::max<std::int64_t>(1, (1 << 16) / std::max<std::int64_t>(1, summed)),
                  [&](std::int64_t begin, std::int64_t end) {
                    std::vector<std::int64_t> base(x.size());
                    std::vector<std::int64_t> offset(x.size());
                    std::vector<std::int64_t> index(loop.size());
                    for (std::int64_t flat = begin; flat < end; ++flat) {
                      std::int64_t rest = flat;
                      std::fill(base.begin(), base.end(), 0);
                      for (std::size_t d = dims.size(); d-- > 0;) {
                        for (std::size_t i = 0; i < x.size(); ++i) base[i] += rest % loop[d] * steps[i][d];
                        rest /= loop[d];
                      }
                      C total{};
                      offset = base;
                      std::fill(index.begin(), index.end(), 0);
                      for (std::int64_t s = 0; s < summed; ++s) {
                        C product = values[0][static_cast<std::size_t>(offset[0])];
                        for (std::size_t i = 1; i < x.size(); ++i)
                          product *= values[i][static_cast<std::size_t>(offset[i])];
                        total += product;
                        for (std::size_t d = loop.size(); d-- > dims.size();) {
                          for (std::size_t i = 0; i < x.size(); ++i) offset[i] += steps[i][d];
                          if (++index[d] < loop[d]) break;
                          for (std::size_t i = 0; i < x.size(); ++i) offset[i] -= steps[i][d] * loop[d];
                          index[d] = 0;
                        }
                      }
                      result[static_cast<std::size_t>(flat)] = total;
                    }
                  });
  return store_all<C>(x[0].type(), dims, result);
}
inline void evaluate_einsum(const attribute_map& attributes, inputs x, outputs y) {
  y[0] = is_floating(x[0].type()) ? einsum<double>(attributes, x) : einsum<std::int64_t>(attributes, x);
}

/// The determinant of a row-major matrix by elimination with row exchange; the matrix is overwritten.
[[nodiscard]] inline double determinant(double* m, std::int64_t n) {
  double result = 1.0;
  for (std::int64_t k = 0; k < n; ++k) {
    std::int64_t pivot = k;
    for (std::int64_t r = k + 1; r < n; ++r)
      if (std::fabs(m[r * n + k]) > std::fabs(m[pivot * n + k])) pivot = r;
    if (m[pivot * n + k] == 0.0) return 0.0;
    if (pivot != k) {
      std::swap_ranges(m + k * n, m + (k + 1) * n, m + pivot * n);
      result = -result;
    }
    result *= m[k * n + k];
    for (std::int64_t r = k + 1; r < n; ++r) {
      const double factor = m[r * n + k] / m[k * n + k];
      for (std::int64_t c = k; c < n; ++c) m[r * n + c] -= factor * m[k * n + c];
    }
  }
  return result;
}

inline void det(const attribute_map&, inputs x, outputs y) {
  const dim_list& dims = x[0].dims();
  if (dims.size() < 2 || dims[dims.size() - 1] != dims[dims.size() - 2])
    throw error(errc::shape_mismatch, "the determinant of " + to_string(dims));
  const std::int64_t n = dims.back();
  dim_list batch(dims.begin(), dims.end() - 2);
  std::vector<double> values = load_all<double>(x[0]);
  std::vector<double> result(static_cast<std::size_t>(element_count(batch)), 1.0);
  for (std::size_t i = 0; i < result.size(); ++i)
    result[i] = determinant(values.data() + static_cast<std::int64_t>(i) * n * n, n);
  y[0] = store_all<double>(x[0].type(), std::move(batch), result);
}
}  // namespace matrix

/// Evaluations of matrix products and Det.
inline constexpr std::array matrix_product_rows{
    reference_row{"", "Det", matrix::det},
    reference_row{"", "Einsum", matrix::evaluate_einsum},
    reference_row{"", "Gemm", matrix::evaluate_gemm},
    reference_row{"", "MatMul", matrix::evaluate_matmul},
    reference_row{"", "MatMulInteger", matrix::matmul_integer},
    reference_row{"", "QLinearMatMul", matrix::qlinear_matmul},
};

}  // namespace dnnopt::reference

#endif  // DNNOPT_REFERENCE_MATRIX_PRODUCT_HPP

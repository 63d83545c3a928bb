// Owns the evaluation of scalar functions over broadcast tensors, block by block in a wide type.
#ifndef DNNOPT_REFERENCE_BROADCAST_HPP
#define DNNOPT_REFERENCE_BROADCAST_HPP

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <dnnopt/reference/elements.hpp>
#include <dnnopt/reference/parallel.hpp>

namespace dnnopt::reference {

/// ONNX's multidirectional broadcasting of numbers. Errors: shape_mismatch.
[[nodiscard]] inline dim_list broadcast_dims(const dim_list& a, const dim_list& b) {
  dim_list result = a.size() >= b.size() ? a : b;
  const dim_list& shorter = a.size() >= b.size() ? b : a;
  const std::size_t offset = result.size() - shorter.size();
  for (std::size_t i = 0; i < shorter.size(); ++i) {
    std::int64_t& dim = result[offset + i];
    if (dim == shorter[i] || shorter[i] == 1) continue;
    if (dim != 1)
      throw error(errc::shape_mismatch, "dims " + to_string(a) + " and " + to_string(b) + " do not broadcast");
    dim = shorter[i];
  }
  return result;
}

/// The dims of all given (not empty) inputs broadcast together.
[[nodiscard]] inline dim_list broadcast_dims(std::span<const tensor> inputs) {
  dim_list result;
  for (const tensor& input : inputs)
    if (!input.empty()) result = broadcast_dims(result, input.dims());
  return result;
}

/// Reads a tensor in the element order of larger dims that it broadcasts to.
template <class C>
class broadcast_reader {
 public:
  /// `source` must outlive the reader. Errors: shape_mismatch where it does not broadcast to `dims`.
  broadcast_reader(const tensor& source, const dim_list& dims)
      : data_(source.bytes().data()), load_(loader<C>(source.type())) {
    // Dims of 1 in front of more than there are say nothing.
    std::size_t first = 0;
    while (source.rank() - first > dims.size() && source.dims()[first] == 1) ++first;
    const auto refuse = [&] {
      throw error(errc::shape_mismatch, to_string(source.dims()) + " does not broadcast to " + to_string(dims));
    };
    if (source.rank() - first > dims.size()) refuse();
    // Runs of dims that are all read or all repeated count as one dim.
    const std::size_t offset = dims.size() - (source.rank() - first);
    std::int64_t stride = 1;
    for (std::size_t i = dims.size(); i-- > 0;) {
      const std::int64_t own = i < offset ? 1 : source.dims()[first + i - offset];
      if (own != 1 && own != dims[i]) refuse();
      const std::int64_t step = own == 1 ? 0 : stride;
      stride *= own;
      if (dims[i] == 1) continue;
      if (!extents_.empty() && step == steps_.back() * extents_.back())
        extents_.back() *= dims[i];
      else
        extents_.push_back(dims[i]), steps_.push_back(step);
    }
    if (extents_.empty()) extents_.push_back(1), steps_.push_back(1);
  }

  /// The elements from `first` on of the larger tensor.
  void read(std::int64_t first, std::size_t count, C* out) const {
    std::int64_t at = first;
    while (count > 0) {
      const std::int64_t inner = at % extents_[0];
      const auto run = std::min(count, static_cast<std::size_t>(extents_[0] - inner));
      std::int64_t offset = inner * steps_[0];
      std::int64_t rest = at / extents_[0];
      for (std::size_t i = 1; i < extents_.size(); ++i) {
        offset += rest % extents_[i] * steps_[i];
        rest /= extents_[i];
      }
      load_(data_, offset, steps_[0], run, out);
      out += run;
      at += static_cast<std::int64_t>(run);
      count -= run;
    }
  }

 private:
  const std::byte* data_;
  load_function<C> load_;
  std::vector<std::int64_t> extents_;  // innermost first
  std::vector<std::int64_t> steps_;
};

/// Computes a block of results from blocks of operands.
template <class C>
struct block_function {
  const void* state;
  void (*call)(const void* state, std::size_t count, const C* const* operands, C* result);
};

/// A tensor of `type` and `dims` whose elements `function` computes from the operands broadcast to `dims`.
/// Errors: as visit_type. Complexity: elements times operands.
template <class C>
[[nodiscard]] tensor map_blocks(dtype type, const dim_list& dims, std::span<const tensor* const> operands,
                                block_function<C> function) {
  constexpr std::size_t block = 512;
  tensor result(type, dims);
  std::vector<broadcast_reader<C>> readers;
  for (const tensor* operand : operands) readers.emplace_back(*operand, dims);
  std::byte* const out = result.mutable_bytes().data();
  const store_function<C> store = storer<C>(type);
  parallel_ranges(result.size(), 1 << 16, [&](std::int64_t begin, std::int64_t end) {
    std::vector<C> storage((readers.size() + 1) * block);
    std::vector<const C*> pointers;
    for (std::size_t i = 0; i < readers.size(); ++i) pointers.push_back(storage.data() + i * block);
    C* const values = storage.data() + readers.size() * block;
    for (std::int64_t at = begin; at < end; at += block) {
      const auto count = std::min(block, static_cast<std::size_t>(end - at));
      for (std::size_t i = 0; i < readers.size(); ++i) readers[i].read(at, count, storage.data() + i * block);
      function.call(function.state, count, pointers.data(), values);
      store(out, at, count, values);
    }
  });
  return result;
}

/// As map_blocks, with a scalar function of as many arguments as there are operands.
template <class C, class F, std::size_t N>
[[nodiscard]] tensor map_scalars(dtype type, const dim_list& dims, const std::array<const tensor*, N>& operands,
                                 const F& f) {
  const block_function<C> function{&f, [](const void* state, std::size_t count, const C* const* x, C* y) {
                                     const F& scalar = *static_cast<const F*>(state);
                                     for (std::size_t i = 0; i < count; ++i) {
                                       if constexpr (N == 1)
                                         y[i] = static_cast<C>(scalar(x[0][i]));
                                       else if constexpr (N == 2)
                                         y[i] = static_cast<C>(scalar(x[0][i], x[1][i]));
                                       else
                                         y[i] = static_cast<C>(scalar(x[0][i], x[1][i], x[2][i]));
                                     }
                                   }};
  return map_blocks<C>(type, dims, operands, function);
}

/// One operand of a floating-point type; `f` maps double to double. Errors: type_mismatch for other types.
template <class F>
[[nodiscard]] tensor map_floating(const tensor& x, const F& f) {
  if (!is_floating(x.type()))
    throw error(errc::type_mismatch, "a floating-point operand is needed, got " + std::string(name_of(x.type())));
  return map_scalars<double>(x.type(), x.dims(), std::array{&x}, f);
}

/// Operands of one type broadcast together; `f` is generic over double, int64 and uint64. The result has `type`.
/// Errors: type_mismatch where operand types differ, shape_mismatch.
template <class F, std::size_t N>
[[nodiscard]] tensor map_numbers(dtype type, const std::array<const tensor*, N>& operands, const F& f) {
  dim_list dims;
  for (const tensor* operand : operands) {
    dims = broadcast_dims(dims, operand->dims());
    if (operand->type() != operands[0]->type())
      throw error(errc::type_mismatch, "operands of types " + std::string(name_of(operands[0]->type())) + " and " +
                                           std::string(name_of(operand->type())));
  }
  if (is_floating(operands[0]->type())) return map_scalars<double>(type, dims, operands, f);
  if (operands[0]->type() == dtype::uint64) return map_scalars<std::uint64_t>(type, dims, operands, f);
  return map_scalars<std::int64_t>(type, dims, operands, f);
}

/// Operands of one integer or boolean type; `f` is over int64 and uint64. Errors: type_mismatch, shape_mismatch.
template <class F, std::size_t N>
[[nodiscard]] tensor map_integers(dtype type, const std::array<const tensor*, N>& operands, const F& f) {
  dim_list dims;
  for (const tensor* operand : operands) {
    dims = broadcast_dims(dims, operand->dims());
    if (operand->type() != operands[0]->type() || is_floating(operand->type()))
      throw error(errc::type_mismatch,
                  "integer operands of one type are needed, got " + std::string(name_of(operand->type())));
  }
  if (operands[0]->type() == dtype::uint64) return map_scalars<std::uint64_t>(type, dims, operands, f);
  return map_scalars<std::int64_t>(type, dims, operands, f);
}

}  // namespace dnnopt::reference

#endif  // DNNOPT_REFERENCE_BROADCAST_HPP

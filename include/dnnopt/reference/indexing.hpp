// Owns the reference evaluation of operators that read or write at indices held in tensors: the gathers, the scatters,
// ReverseSequence, Compress, OneHot.
#ifndef DNNOPT_REFERENCE_INDEXING_HPP
#define DNNOPT_REFERENCE_INDEXING_HPP

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <dnnopt/ops/facts.hpp>
#include <dnnopt/reference/element_copy.hpp>
#include <dnnopt/reference/elements.hpp>
#include <dnnopt/reference/reference_row.hpp>

namespace dnnopt::reference {

namespace indexing {

inline void gather(const attribute_map& attributes, std::span<const tensor> inputs, std::span<tensor> outputs) {
  const tensor& x = inputs[0];
  const std::size_t axis = axis_at(attributes.get_int("axis", 0), x.rank());
  const std::vector<std::int64_t> indices = integers_of(inputs[1]);
  const auto cut = x.dims().begin() + static_cast<std::ptrdiff_t>(axis);
  const dim_list outer_dims(x.dims().begin(), cut);
  const dim_list inner_dims(cut + 1, x.dims().end());
  dim_list dims = outer_dims;
  dims.insert(dims.end(), inputs[1].dims().begin(), inputs[1].dims().end());
  dims.insert(dims.end(), inner_dims.begin(), inner_dims.end());
  const std::int64_t outer = element_count(outer_dims);
  const std::int64_t inner = element_count(inner_dims);
  const std::int64_t dim = *cut;
  tensor result(x.type(), dims);
  const auto count = static_cast<std::int64_t>(indices.size());
  for (std::int64_t k = 0; k < count; ++k) {
    const std::int64_t at = index_at(indices[static_cast<std::size_t>(k)], dim);
    if (result.size() == 0) continue;
    copy_elements(x, result, {{outer, inner}, {dim * inner, 1}, at * inner, {count * inner, 1}, k * inner});
  }
  outputs[0] = std::move(result);
}

/// For each element of `indices`, the position in a tensor of `dims` at its own coordinates with that along `axis`
/// replaced by the index.
[[nodiscard]] inline std::vector<std::int64_t> element_positions(const tensor& indices, const dim_list& dims,
                                                                 std::size_t axis) {
  if (indices.rank() != dims.size())
    throw error(errc::shape_mismatch, "indices " + to_string(indices.dims()) + " into " + to_string(dims));
  std::vector<std::int64_t> positions = integers_of(indices);
  const dim_list strides = row_major_strides(dims);
  for (std::size_t k = 0; k < positions.size(); ++k) {
    auto rest = static_cast<std::int64_t>(k);
    std::int64_t position = index_at(positions[k], dims[axis]) * strides[axis];
    for (std::size_t a = dims.size(); a-- > 0; rest /= indices.dims()[a]) {
      const std::int64_t own = rest % indices.dims()[a];
      if (a == axis) continue;
      if (own >= dims[a])
        throw error(errc::shape_mismatch, "indices " + to_string(indices.dims()) + " reach beyond " + to_string(dims));
      position += own * strides[a];
    }
    positions[k] = position;
  }
  return positions;
}

inline void gather_elements(const attribute_map& attributes, std::span<const tensor> inputs,
                            std::span<tensor> outputs) {
  const std::size_t axis = axis_at(attributes.get_int("axis", 0), inputs[0].rank());
  tensor result(inputs[0].type(), inputs[1].dims());
  pick_elements(inputs[0], result, element_positions(inputs[1], inputs[0].dims(), axis));
  outputs[0] = std::move(result);
}

/// The positions of slices that the index tuples in the last axis of `indices` name, after `batch` common axes; and the
/// number of elements of one slice.
struct tuple_positions {
  std::vector<std::int64_t> starts;
  std::int64_t slice = 1;
  std::int64_t tuple = 0;
};
[[nodiscard]] inline tuple_positions slice_positions(const tensor& indices, const dim_list& dims, std::size_t batch) {
  if (indices.rank() == 0) throw error(errc::shape_mismatch, "index tuples have rank 0");
  tuple_positions result;
  result.tuple = indices.dims().back();
  if (result.tuple < 0 || batch + static_cast<std::size_t>(result.tuple) > dims.size() || batch >= indices.rank())
    throw error(errc::shape_mismatch, "index tuples " + to_string(indices.dims()) + " into " + to_string(dims));
  const dim_list strides = row_major_strides(dims);
  for (std::size_t k = batch + static_cast<std::size_t>(result.tuple); k < dims.size(); ++k) result.slice *= dims[k];
  const std::vector<std::int64_t> values = integers_of(indices);
  std::int64_t batches = 1;
  for (std::size_t k = 0; k < batch; ++k) {
    if (indices.dims()[k] != dims[k])
      throw error(errc::shape_mismatch, "batch dims of " + to_string(indices.dims()) + " and " + to_string(dims));
    batches *= dims[k];
  }
  std::int64_t tuples = 1;
  for (std::size_t k = 0; k + 1 < indices.rank(); ++k) tuples *= indices.dims()[k];
  const std::int64_t batch_stride = batch == 0 ? 0 : strides[batch - 1];
  for (std::int64_t t = 0; t < tuples; ++t) {
    std::int64_t start = batch == 0 ? 0 : t / (tuples / batches) * batch_stride;
    for (std::int64_t k = 0; k < result.tuple; ++k) {
      const std::size_t axis = batch + static_cast<std::size_t>(k);
      start += index_at(values[static_cast<std::size_t>(t * result.tuple + k)], dims[axis]) * strides[axis];
    }
    result.starts.push_back(start);
  }
  return result;
}

inline void gather_nd(const attribute_map& attributes, std::span<const tensor> inputs, std::span<tensor> outputs) {
  const tensor& x = inputs[0];
  const auto batch = static_cast<std::size_t>(attributes.get_int("batch_dims", 0));
  const tuple_positions at = slice_positions(inputs[1], x.dims(), batch);
  dim_list dims(inputs[1].dims().begin(), inputs[1].dims().end() - 1);
  dims.insert(dims.end(), x.dims().begin() + static_cast<std::ptrdiff_t>(batch) + at.tuple, x.dims().end());
  tensor result(x.type(), dims);
  if (result.size() != 0)
    for (std::size_t k = 0; k < at.starts.size(); ++k)
      copy_run(x, at.starts[k], result, static_cast<std::int64_t>(k) * at.slice, at.slice);
  outputs[0] = std::move(result);
}

/// Sum and product that wrap where integers overflow.
template <class C>
[[nodiscard]] C add_wrapped(C a, C b) {
  if constexpr (std::is_integral_v<C>)
    return static_cast<C>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
  else
    return a + b;
}
template <class C>
[[nodiscard]] C multiply_wrapped(C a, C b) {
  if constexpr (std::is_integral_v<C>)
    return static_cast<C>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
  else
    return a * b;
}

/// Joins update k into element positions[k] of `result`, in order, by the operator's `reduction`.
/// Errors: bad_attribute for an unknown reduction, unsupported where the type has no such arithmetic.
inline void scatter_updates(const tensor& updates, tensor& result, std::span<const std::int64_t> positions,
                            const std::string& reduction) {
  if (updates.type() != result.type())
    throw error(errc::type_mismatch,
                "updates of " + std::string(name_of(updates.type())) + " into " + std::string(name_of(result.type())));
  if (static_cast<std::size_t>(updates.size()) != positions.size())
    throw error(errc::shape_mismatch,
                std::to_string(updates.size()) + " updates for " + std::to_string(positions.size()) + " positions");
  if (reduction == "none") {
    detail::with_storage(updates, result, [positions](const auto* from, auto* to) {
      for (std::size_t k = 0; k < positions.size(); ++k) to[positions[k]] = from[k];
    });
    return;
  }
  const auto join = [&](auto wide) {
    using C = decltype(wide);
    C (*combine)(C, C) = nullptr;
    if (reduction == "add") combine = [](C a, C b) { return add_wrapped(a, b); };
    if (reduction == "mul") combine = [](C a, C b) { return multiply_wrapped(a, b); };
    if (reduction == "max") combine = [](C a, C b) { return b > a || b != b ? b : a; };
    if (reduction == "min") combine = [](C a, C b) { return b < a || b != b ? b : a; };
    if (combine == nullptr) throw error(errc::bad_attribute, "reduction '" + reduction + "'");
    // Each step rounds to the element type, as a sequence of updates does.
    const auto load = loader<C>(result.type());
    const auto store = storer<C>(result.type());
    const std::byte* from = updates.bytes().data();
    std::byte* to = result.mutable_bytes().data();
    for (std::size_t k = 0; k < positions.size(); ++k) {
      C held{};
      C update{};
      load(to, positions[k], 1, 1, &held);
      load(from, static_cast<std::int64_t>(k), 1, 1, &update);
      const C joined = combine(held, update);
      store(to, positions[k], 1, &joined);
    }
  };
  if (is_floating(result.type()))
    join(double{});
  else if (result.type() == dtype::uint64)
    join(std::uint64_t{});
  else
    join(std::int64_t{});
}

inline void scatter_elements(const attribute_map& attributes, std::span<const tensor> inputs,
                             std::span<tensor> outputs) {
  const std::size_t axis = axis_at(attributes.get_int("axis", 0), inputs[0].rank());
  tensor result = inputs[0];
  scatter_updates(inputs[2], result, element_positions(inputs[1], inputs[0].dims(), axis),
                  attributes.get_string("reduction", "none"));
  outputs[0] = std::move(result);
}

inline void scatter_nd(const attribute_map& attributes, std::span<const tensor> inputs, std::span<tensor> outputs) {
  const tuple_positions at = slice_positions(inputs[1], inputs[0].dims(), 0);
  std::vector<std::int64_t> positions;
  for (const std::int64_t start : at.starts)
    for (std::int64_t k = 0; k < at.slice; ++k) positions.push_back(start + k);
  tensor result = inputs[0];
  scatter_updates(inputs[2], result, positions, attributes.get_string("reduction", "none"));
  outputs[0] = std::move(result);
}

inline void tensor_scatter(const attribute_map& attributes, std::span<const tensor> inputs, std::span<tensor> outputs) {
  const tensor& update = inputs[1];
  tensor result = inputs[0];
  const dim_list& dims = inputs[0].dims();
  const std::size_t axis = axis_at(attributes.get_int("axis", -2), dims.size());
  const bool circular = attributes.get_string("mode", "linear") == "circular";
  if (axis == 0 || update.rank() != dims.size())
    throw error(errc::shape_mismatch,
                "TensorScatter: an update " + to_string(update.dims()) + " of " + to_string(dims));
  const std::vector<std::int64_t> starts =
      has_input(inputs, 2) ? integers_of(inputs[2]) : std::vector<std::int64_t>(static_cast<std::size_t>(dims[0]), 0);
  if (static_cast<std::int64_t>(starts.size()) != dims[0])
    throw error(errc::shape_mismatch, "TensorScatter: " + std::to_string(starts.size()) + " write indices");
  const dim_list strides = row_major_strides(dims);
  const dim_list own = row_major_strides(update.dims());
  std::vector<std::int64_t> positions;
  for (std::int64_t k = 0; k < update.size(); ++k) {
    std::int64_t position = 0;
    for (std::size_t a = 0; a < dims.size(); ++a) {
      std::int64_t at = k / own[a] % update.dims()[a];
      if (a == axis) {
        at += starts[static_cast<std::size_t>(k / own[0])];
        if (circular) at %= dims[a];
      }
      position += index_at(at, dims[a]) * strides[a];
    }
    positions.push_back(position);
  }
  scatter_updates(update, result, positions, "none");
  outputs[0] = std::move(result);
}

inline void reverse_sequence(const attribute_map& attributes, std::span<const tensor> inputs,
                             std::span<tensor> outputs) {
  const tensor& x = inputs[0];
  const std::size_t time = axis_at(attributes.get_int("time_axis", 0), x.rank());
  const std::size_t batch = axis_at(attributes.get_int("batch_axis", 1), x.rank());
  const std::vector<std::int64_t> lengths = integers_of(inputs[1]);
  if (time == batch || static_cast<std::int64_t>(lengths.size()) != x.dims()[batch])
    throw error(errc::shape_mismatch,
                "ReverseSequence: " + std::to_string(lengths.size()) + " lengths for " + to_string(x.dims()));
  const dim_list strides = row_major_strides(x.dims());
  std::vector<std::int64_t> positions;
  for (std::int64_t k = 0; k < x.size(); ++k) {
    const std::int64_t t = k / strides[time] % x.dims()[time];
    const std::int64_t length = lengths[static_cast<std::size_t>(k / strides[batch] % x.dims()[batch])];
    if (length < 0 || length > x.dims()[time])
      throw error(errc::invalid_argument, "ReverseSequence: length " + std::to_string(length));
    positions.push_back(t < length ? k + (length - 1 - 2 * t) * strides[time] : k);
  }
  tensor result(x.type(), x.dims());
  pick_elements(x, result, positions);
  outputs[0] = std::move(result);
}

inline void compress(const attribute_map& attributes, std::span<const tensor> inputs, std::span<tensor> outputs) {
  const bool flat = !attributes.contains("axis");
  const tensor x = flat ? inputs[0].reshaped({inputs[0].size()}) : inputs[0];
  const std::size_t axis = flat ? 0 : axis_at(attributes.get_int("axis", 0), x.rank());
  const std::vector<std::int64_t> conditions = integers_of(inputs[1]);
  std::vector<std::int64_t> kept;
  for (std::size_t k = 0; k < conditions.size(); ++k)
    if (conditions[k] != 0) kept.push_back(index_at(static_cast<std::int64_t>(k), x.dims()[axis]));
  std::int64_t outer = 1;
  std::int64_t inner = 1;
  for (std::size_t a = 0; a < axis; ++a) outer *= x.dims()[a];
  for (std::size_t a = axis + 1; a < x.rank(); ++a) inner *= x.dims()[a];
  dim_list dims = x.dims();
  const auto count = static_cast<std::int64_t>(kept.size());
  dims[axis] = count;
  tensor result(x.type(), dims);
  for (std::int64_t k = 0; k < count && result.size() != 0; ++k)
    copy_elements(x, result,
                  {{outer, inner},
                   {x.dims()[axis] * inner, 1},
                   kept[static_cast<std::size_t>(k)] * inner,
                   {count * inner, 1},
                   k * inner});
  outputs[0] = std::move(result);
}

inline void one_hot(const attribute_map& attributes, std::span<const tensor> inputs, std::span<tensor> outputs) {
  const std::vector<double> indices = load_all<double>(inputs[0]);
  const auto depth = integer_or(inputs, 1, 0);
  if (depth < 1) throw error(errc::invalid_argument, "OneHot: depth " + std::to_string(depth));
  if (inputs[2].size() != 2)
    throw error(errc::shape_mismatch, "OneHot: " + std::to_string(inputs[2].size()) + " values");
  dim_list dims = inputs[0].dims();
  const std::size_t axis = axis_at(attributes.get_int("axis", -1), dims.size() + 1);
  std::int64_t inner = 1;
  for (std::size_t a = axis; a < dims.size(); ++a) inner *= dims[a];
  dims.insert(dims.begin() + static_cast<std::ptrdiff_t>(axis), depth);
  tensor result(inputs[2].type(), dims);
  std::vector<std::int64_t> positions(static_cast<std::size_t>(result.size()), 0);
  for (std::size_t k = 0; k < indices.size(); ++k) {
    auto at = static_cast<std::int64_t>(indices[k]);
    if (at < -depth || at >= depth) continue;
    if (at < 0) at += depth;
    const auto place = static_cast<std::int64_t>(k);
    positions[static_cast<std::size_t>((place / inner * depth + at) * inner + place % inner)] = 1;
  }
  pick_elements(inputs[2], result, positions);
  outputs[0] = std::move(result);
}

}  // namespace indexing

inline constexpr std::array indexing_rows{
    reference_row{"", "Gather", indexing::gather},
    reference_row{"", "GatherElements", indexing::gather_elements},
    reference_row{"", "GatherND", indexing::gather_nd},
    reference_row{"", "Scatter", indexing::scatter_elements},
    reference_row{"", "ScatterElements", indexing::scatter_elements},
    reference_row{"", "ScatterND", indexing::scatter_nd},
    reference_row{"", "TensorScatter", indexing::tensor_scatter},
    reference_row{"", "ReverseSequence", indexing::reverse_sequence},
    reference_row{"", "Compress", indexing::compress},
    reference_row{"", "OneHot", indexing::one_hot},
};

}  // namespace dnnopt::reference

#endif  // DNNOPT_REFERENCE_INDEXING_HPP

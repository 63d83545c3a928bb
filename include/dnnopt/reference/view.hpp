// Owns the reference evaluation of operators that move or repeat elements by position: reshapes, permutations, slices,
// Concat, Expand, Tile, Pad, and the queries Shape and Size.
#ifndef DNNOPT_REFERENCE_VIEW_HPP
#define DNNOPT_REFERENCE_VIEW_HPP

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <dnnopt/ops/facts.hpp>
#include <dnnopt/reference/element_copy.hpp>
#include <dnnopt/reference/reference_row.hpp>

namespace dnnopt::reference {

namespace view {

/// The integers of input `i`, or `fallback` where it is absent.
[[nodiscard]] inline std::vector<std::int64_t> list_of(std::span<const tensor> inputs, std::size_t i,
                                                       std::vector<std::int64_t> fallback = {}) {
  return i < inputs.size() && !inputs[i].empty() ? integers_of(inputs[i]) : fallback;
}

/// 0, 1, ..., rank - 1.
[[nodiscard]] inline std::vector<std::int64_t> all_axes(std::size_t rank) {
  std::vector<std::int64_t> axes(rank);
  for (std::size_t k = 0; k < rank; ++k) axes[k] = static_cast<std::int64_t>(k);
  return axes;
}

inline void shape(const attribute_map& attributes, std::span<const tensor> inputs, std::span<tensor> outputs) {
  const auto rank = static_cast<std::int64_t>(inputs[0].rank());
  const auto bound = [rank](std::int64_t v) { return std::clamp<std::int64_t>(v < 0 ? v + rank : v, 0, rank); };
  const std::int64_t first = bound(attributes.get_int("start", 0));
  const std::int64_t last = std::max(first, bound(attributes.get_int("end", rank)));
  const std::vector<std::int64_t> dims(inputs[0].dims().begin() + first, inputs[0].dims().begin() + last);
  outputs[0] = tensor::of<std::int64_t>({last - first}, dims);
}

inline void size(const attribute_map&, std::span<const tensor> inputs, std::span<tensor> outputs) {
  outputs[0] = tensor::scalar<std::int64_t>(inputs[0].size());
}

inline void identity(const attribute_map&, std::span<const tensor> inputs, std::span<tensor> outputs) {
  outputs[0] = inputs[0];
}

inline void reshape(const attribute_map& attributes, std::span<const tensor> inputs, std::span<tensor> outputs) {
  dim_list dims = integers_of(inputs[1]);
  const bool allow_zero = attributes.get_int("allowzero", 0) != 0;
  std::int64_t known = 1;
  std::int64_t* free = nullptr;
  for (std::size_t k = 0; k < dims.size(); ++k) {
    if (dims[k] == -1) {
      if (free != nullptr) throw error(errc::shape_mismatch, "Reshape: -1 is given twice");
      free = &dims[k];
      continue;
    }
    if (dims[k] == 0 && !allow_zero) {
      if (k >= inputs[0].rank())
        throw error(errc::shape_mismatch, "Reshape: a dim is copied from beyond the input's rank");
      dims[k] = inputs[0].dims()[k];
    }
    if (dims[k] < 0) throw error(errc::shape_mismatch, "Reshape: dim " + std::to_string(dims[k]));
    known *= dims[k];
  }
  if (free != nullptr) {
    if (known == 0 || inputs[0].size() % known != 0)
      throw error(errc::shape_mismatch,
                  "Reshape: " + std::to_string(inputs[0].size()) + " elements in rows of " + std::to_string(known));
    *free = inputs[0].size() / known;
  }
  outputs[0] = inputs[0].reshaped(std::move(dims));
}

inline void flatten(const attribute_map& attributes, std::span<const tensor> inputs, std::span<tensor> outputs) {
  const auto rank = static_cast<std::int64_t>(inputs[0].rank());
  std::int64_t axis = attributes.get_int("axis", 1);
  if (axis < -rank || axis > rank) throw error(errc::bad_attribute, "Flatten: axis " + std::to_string(axis));
  if (axis < 0) axis += rank;
  dim_list dims{1, 1};
  for (std::int64_t k = 0; k < rank; ++k) dims[k < axis ? 0 : 1] *= inputs[0].dims()[static_cast<std::size_t>(k)];
  outputs[0] = inputs[0].reshaped(std::move(dims));
}

inline void squeeze(const attribute_map&, std::span<const tensor> inputs, std::span<tensor> outputs) {
  const tensor& x = inputs[0];
  std::vector<bool> dropped(x.rank(), false);
  if (inputs.size() > 1 && !inputs[1].empty()) {
    for (const std::int64_t axis : integers_of(inputs[1])) dropped[axis_at(axis, x.rank())] = true;
  } else {
    for (std::size_t k = 0; k < x.rank(); ++k) dropped[k] = x.dims()[k] == 1;
  }
  dim_list dims;
  for (std::size_t k = 0; k < x.rank(); ++k)
    if (!dropped[k]) dims.push_back(x.dims()[k]);
  outputs[0] = x.reshaped(std::move(dims));
}

inline void unsqueeze(const attribute_map&, std::span<const tensor> inputs, std::span<tensor> outputs) {
  const std::vector<std::int64_t> axes = integers_of(inputs[1]);
  dim_list dims(inputs[0].rank() + axes.size(), -1);
  for (const std::int64_t axis : axes) dims[axis_at(axis, dims.size())] = 1;
  std::size_t next = 0;
  for (std::int64_t& dim : dims)
    if (dim == -1) {
      if (next == inputs[0].rank()) throw error(errc::bad_attribute, "Unsqueeze: an axis is given twice");
      dim = inputs[0].dims()[next++];
    }
  outputs[0] = inputs[0].reshaped(std::move(dims));
}

/// The tensor with axis k of the result being axis perm[k] of `x`.
[[nodiscard]] inline tensor permuted(const tensor& x, std::span<const std::size_t> perm) {
  const dim_list strides = row_major_strides(x.dims());
  strided_box box;
  for (const std::size_t axis : perm) {
    box.dims.push_back(x.dims()[axis]);
    box.read_strides.push_back(strides[axis]);
  }
  tensor result(x.type(), box.dims);
  box.write_strides = row_major_strides(box.dims);
  if (x.size() != 0) copy_elements(x, result, box);
  return result;
}

inline void transpose(const attribute_map& attributes, std::span<const tensor> inputs, std::span<tensor> outputs) {
  const std::size_t rank = inputs[0].rank();
  std::vector<std::size_t> perm(rank);
  for (std::size_t k = 0; k < rank; ++k) perm[k] = rank - 1 - k;
  if (attributes.contains("perm")) {
    const auto given = attributes.get_ints("perm");
    if (given.size() != rank)
      throw error(errc::bad_attribute,
                  "Transpose: perm has " + std::to_string(given.size()) + " axes for rank " + std::to_string(rank));
    for (std::size_t k = 0; k < rank; ++k) perm[k] = axis_at(given[k], rank);
  }
  outputs[0] = permuted(inputs[0], perm);
}

inline void depth_to_space(const attribute_map& attributes, std::span<const tensor> inputs, std::span<tensor> outputs) {
  const std::int64_t b = attributes.require<std::int64_t>("blocksize");
  const dim_list d = inputs[0].dims();
  if (d.size() != 4 || b < 1 || d[1] % (b * b) != 0)
    throw error(errc::shape_mismatch, "DepthToSpace of " + to_string(d));
  const std::int64_t channels = d[1] / (b * b);
  tensor moved;
  if (attributes.get_string("mode", "DCR") == "DCR")
    moved =
        permuted(inputs[0].reshaped({d[0], b, b, channels, d[2], d[3]}), std::array<std::size_t, 6>{0, 3, 4, 1, 5, 2});
  else
    moved =
        permuted(inputs[0].reshaped({d[0], channels, b, b, d[2], d[3]}), std::array<std::size_t, 6>{0, 1, 4, 2, 5, 3});
  outputs[0] = moved.reshaped({d[0], channels, d[2] * b, d[3] * b});
}

inline void space_to_depth(const attribute_map& attributes, std::span<const tensor> inputs, std::span<tensor> outputs) {
  const std::int64_t b = attributes.require<std::int64_t>("blocksize");
  const dim_list d = inputs[0].dims();
  if (d.size() != 4 || b < 1 || d[2] % b != 0 || d[3] % b != 0)
    throw error(errc::shape_mismatch, "SpaceToDepth of " + to_string(d));
  const tensor blocks = inputs[0].reshaped({d[0], d[1], d[2] / b, b, d[3] / b, b});
  const bool block_outer = attributes.get_string("mode", "DCR") == "DCR";
  const auto order =
      block_outer ? std::array<std::size_t, 6>{0, 3, 5, 1, 2, 4} : std::array<std::size_t, 6>{0, 1, 3, 5, 2, 4};
  outputs[0] = permuted(blocks, order).reshaped({d[0], d[1] * b * b, d[2] / b, d[3] / b});
}

inline void slice(const attribute_map&, std::span<const tensor> inputs, std::span<tensor> outputs) {
  const tensor& x = inputs[0];
  const std::vector<std::int64_t> starts = integers_of(inputs[1]);
  const std::vector<std::int64_t> ends = integers_of(inputs[2]);
  const std::vector<std::int64_t> axes = list_of(inputs, 3, all_axes(starts.size()));
  const std::vector<std::int64_t> steps = list_of(inputs, 4, std::vector<std::int64_t>(starts.size(), 1));
  if (ends.size() != starts.size() || axes.size() != starts.size() || steps.size() != starts.size())
    throw error(errc::shape_mismatch, "Slice: lists of different lengths");
  const dim_list strides = row_major_strides(x.dims());
  strided_box box;
  box.dims = x.dims();
  box.read_strides = strides;
  for (std::size_t k = 0; k < axes.size(); ++k) {
    const std::size_t axis = axis_at(axes[k], x.rank());
    const std::int64_t dim = x.dims()[axis];
    const std::int64_t step = steps[k];
    if (step == 0) throw error(errc::shape_mismatch, "Slice: a step is 0");
    const std::int64_t low = step > 0 ? 0 : -1;
    const std::int64_t high = step > 0 ? dim : dim - 1;
    // What lies beyond the largest magnitude of a dim is clamped before it is wrapped, so that nothing overflows.
    const auto bound = [dim, high](std::int64_t v, std::int64_t least) {
      if (v < 0) v = v < -dim ? std::numeric_limits<std::int64_t>::min() / 2 : v + dim;
      return std::max(least, std::min(v, high));
    };
    const std::int64_t start = std::min(bound(starts[k], 0), high);
    const std::int64_t end = bound(ends[k], low);
    const std::int64_t distance = step > 0 ? end - start : start - end;
    // A step beyond the dim takes one element, however large it is.
    const std::int64_t stride = std::clamp(step, -dim - 1, dim + 1);
    box.dims[axis] = distance > 0 ? (distance - 1) / (stride < 0 ? -stride : stride) + 1 : 0;
    box.read_offset += start * strides[axis];
    box.read_strides[axis] = strides[axis] * stride;
  }
  tensor result(x.type(), box.dims);
  box.write_strides = row_major_strides(box.dims);
  if (result.size() != 0) copy_elements(x, result, box);
  outputs[0] = std::move(result);
}

/// Elements [start, start + count) of an axis.
[[nodiscard]] inline tensor axis_part(const tensor& x, std::size_t axis, std::int64_t start, std::int64_t count) {
  strided_box box;
  box.dims = x.dims();
  box.dims[axis] = count;
  box.read_strides = row_major_strides(x.dims());
  box.read_offset = start * box.read_strides[axis];
  box.write_strides = row_major_strides(box.dims);
  tensor result(x.type(), box.dims);
  if (result.size() != 0) copy_elements(x, result, box);
  return result;
}

inline void split(const attribute_map& attributes, std::span<const tensor> inputs, std::span<tensor> outputs) {
  const tensor& x = inputs[0];
  const std::size_t axis = axis_at(attributes.get_int("axis", 0), x.rank());
  const std::int64_t dim = x.dims()[axis];
  const auto parts = static_cast<std::int64_t>(outputs.size());
  std::vector<std::int64_t> sizes = list_of(inputs, 1);
  if (sizes.empty()) {
    const std::int64_t part = (dim + parts - 1) / parts;
    sizes.assign(outputs.size(), part);
    sizes.back() = dim - part * (parts - 1);
  }
  std::int64_t total = 0;
  for (const std::int64_t size : sizes) total += size;
  if (sizes.size() != outputs.size() || total != dim ||
      std::any_of(sizes.begin(), sizes.end(), [](std::int64_t s) { return s < 0; }))
    throw error(errc::shape_mismatch, "Split: " + std::to_string(sizes.size()) + " parts of together " +
                                          std::to_string(total) + " of " + std::to_string(dim));
  std::int64_t start = 0;
  for (std::size_t o = 0; o < outputs.size(); start += sizes[o], ++o) outputs[o] = axis_part(x, axis, start, sizes[o]);
}

inline void center_crop_pad(const attribute_map& attributes, std::span<const tensor> inputs,
                            std::span<tensor> outputs) {
  const tensor& x = inputs[0];
  const std::vector<std::int64_t> targets = integers_of(inputs[1]);
  const std::vector<std::int64_t> axes = attributes.contains("axes") ? attributes.get_ints("axes") : all_axes(x.rank());
  if (axes.size() != targets.size()) throw error(errc::shape_mismatch, "CenterCropPad: lists of different lengths");
  const dim_list strides = row_major_strides(x.dims());
  dim_list dims = x.dims();
  strided_box box;
  box.dims = x.dims();
  box.read_strides = strides;
  dim_list offsets(x.rank(), 0);
  for (std::size_t k = 0; k < axes.size(); ++k) {
    const std::size_t axis = axis_at(axes[k], x.rank());
    const std::int64_t dim = x.dims()[axis];
    dims[axis] = targets[k];
    box.dims[axis] = std::min(dim, targets[k]);
    if (targets[k] < dim)
      box.read_offset += (dim - targets[k]) / 2 * strides[axis];
    else
      offsets[axis] = (targets[k] - dim) / 2;
  }
  tensor result(x.type(), dims);
  box.write_strides = row_major_strides(dims);
  for (std::size_t k = 0; k < dims.size(); ++k) box.write_offset += offsets[k] * box.write_strides[k];
  if (element_count(box.dims) != 0) copy_elements(x, result, box);
  outputs[0] = std::move(result);
}

inline void trilu(const attribute_map& attributes, std::span<const tensor> inputs, std::span<tensor> outputs) {
  const tensor& x = inputs[0];
  if (x.rank() < 2) throw error(errc::shape_mismatch, "Trilu: the input has rank " + std::to_string(x.rank()));
  const std::vector<std::int64_t> shifts = list_of(inputs, 1, {0});
  const std::int64_t shift = shifts.at(0);
  const bool upper = attributes.get_int("upper", 1) != 0;
  const std::int64_t rows = x.dims()[x.rank() - 2];
  const std::int64_t columns = x.dims()[x.rank() - 1];
  std::vector<std::int64_t> positions(static_cast<std::size_t>(x.size()), -1);
  for (std::int64_t at = 0; at < x.size(); ++at) {
    const std::int64_t diagonal = at % columns - at / columns % rows;
    if (upper ? diagonal >= shift : diagonal <= shift) positions[static_cast<std::size_t>(at)] = at;
  }
  tensor result(x.type(), x.dims());
  pick_elements(x, result, positions);
  outputs[0] = std::move(result);
}

inline void concat(const attribute_map& attributes, std::span<const tensor> inputs, std::span<tensor> outputs) {
  const std::size_t axis = axis_at(attributes.require<std::int64_t>("axis"), inputs[0].rank());
  dim_list dims = inputs[0].dims();
  dims[axis] = 0;
  for (const tensor& x : inputs) {
    dim_list expected = dims;
    if (x.rank() == dims.size()) expected[axis] = x.dims()[axis];
    if (x.dims() != expected)
      throw error(errc::shape_mismatch, "Concat: " + to_string(x.dims()) + " beside " + to_string(inputs[0].dims()));
    dims[axis] += x.dims()[axis];
  }
  tensor result(inputs[0].type(), dims);
  strided_box box;
  box.write_strides = row_major_strides(dims);
  for (const tensor& x : inputs) {
    box.dims = x.dims();
    box.read_strides = row_major_strides(x.dims());
    if (x.size() != 0) copy_elements(x, result, box);
    box.write_offset += x.dims()[axis] * box.write_strides[axis];
  }
  outputs[0] = std::move(result);
}

/// `x` broadcast to `dims`. Errors: shape_mismatch.
[[nodiscard]] inline tensor broadcast_to(const tensor& x, const dim_list& dims) {
  strided_box box;
  box.dims = dims;
  box.read_strides.assign(dims.size(), 0);
  const dim_list strides = row_major_strides(x.dims());
  const std::size_t offset = dims.size() - x.rank();
  for (std::size_t k = 0; k < x.rank(); ++k) {
    if (x.dims()[k] == 1) continue;
    if (x.dims()[k] != dims[offset + k])
      throw error(errc::shape_mismatch, to_string(x.dims()) + " does not broadcast to " + to_string(dims));
    box.read_strides[offset + k] = strides[k];
  }
  tensor result(x.type(), dims);
  box.write_strides = row_major_strides(dims);
  if (result.size() != 0) copy_elements(x, result, box);
  return result;
}

inline void expand(const attribute_map&, std::span<const tensor> inputs, std::span<tensor> outputs) {
  const std::vector<std::int64_t> wanted = integers_of(inputs[1]);
  const std::size_t rank = std::max(wanted.size(), inputs[0].rank());
  dim_list dims(rank, 1);
  std::copy(wanted.begin(), wanted.end(), dims.end() - static_cast<std::ptrdiff_t>(wanted.size()));
  for (std::size_t k = 0; k < inputs[0].rank(); ++k) {
    std::int64_t& dim = dims[rank - inputs[0].rank() + k];
    if (dim == 1) dim = inputs[0].dims()[k];
  }
  outputs[0] = broadcast_to(inputs[0], dims);
}

inline void tile(const attribute_map&, std::span<const tensor> inputs, std::span<tensor> outputs) {
  const tensor& x = inputs[0];
  const std::vector<std::int64_t> repeats = integers_of(inputs[1]);
  if (repeats.size() != x.rank())
    throw error(errc::shape_mismatch,
                "Tile: " + std::to_string(repeats.size()) + " repeats for rank " + std::to_string(x.rank()));
  const dim_list strides = row_major_strides(x.dims());
  dim_list dims;
  strided_box box;
  for (std::size_t k = 0; k < x.rank(); ++k) {
    dims.push_back(x.dims()[k] * repeats[k]);
    box.dims.insert(box.dims.end(), {repeats[k], x.dims()[k]});
    box.read_strides.insert(box.read_strides.end(), {0, strides[k]});
  }
  tensor result(x.type(), dims);
  box.write_strides = row_major_strides(box.dims);
  if (result.size() != 0) copy_elements(x, result, box);
  outputs[0] = std::move(result);
}

inline void pad(const attribute_map& attributes, std::span<const tensor> inputs, std::span<tensor> outputs) {
  const tensor& x = inputs[0];
  const std::string mode = attributes.get_string("mode", "constant");
  const std::vector<std::int64_t> pads = integers_of(inputs[1]);
  const std::vector<std::int64_t> axes = list_of(inputs, 3, all_axes(x.rank()));
  if (pads.size() != 2 * axes.size())
    throw error(errc::shape_mismatch,
                "Pad: " + std::to_string(pads.size()) + " pads for " + std::to_string(axes.size()) + " axes");
  dim_list dims = x.dims();
  dim_list before(x.rank(), 0);
  dim_list after(x.rank(), 0);
  for (std::size_t k = 0; k < axes.size(); ++k) {
    const std::size_t axis = axis_at(axes[k], x.rank());
    before[axis] = pads[k];
    after[axis] = pads[axes.size() + k];
    dims[axis] += before[axis] + after[axis];
    if (dims[axis] < 0) throw error(errc::shape_mismatch, "Pad: a dim becomes " + std::to_string(dims[axis]));
  }
  // Per axis and output index, the input index, or -1 in a constant frame.
  std::vector<std::vector<std::int64_t>> sources(x.rank());
  for (std::size_t axis = 0; axis < x.rank(); ++axis) {
    // Negative pads crop first: a frame repeats what is left.
    const std::int64_t low = std::max<std::int64_t>(-before[axis], 0);
    const std::int64_t dim = x.dims()[axis] - low - std::max<std::int64_t>(-after[axis], 0);
    for (std::int64_t o = 0; o < dims[axis]; ++o) {
      std::int64_t at = o - before[axis] - low;
      if (at < 0 || at >= dim) {
        if (mode == "constant") {
          sources[axis].push_back(-1);
          continue;
        }
        if (dim <= 0) {
          throw error(errc::shape_mismatch, "Pad: mode '" + mode + "' of a dim of 0");
        } else if (mode == "edge") {
          at = at < 0 ? 0 : dim - 1;
        } else if (mode == "wrap") {
          at = (at % dim + dim) % dim;
        } else if (mode == "reflect") {
          const std::int64_t period = std::max<std::int64_t>(1, 2 * (dim - 1));
          at = (at % period + period) % period;
          if (at >= dim) at = period - at;
        } else {
          throw error(errc::bad_attribute, "Pad: mode '" + mode + "'");
        }
      }
      sources[axis].push_back(at + low);
    }
  }
  tensor result(x.type(), dims);
  if (mode == "constant" && inputs.size() > 2 && !inputs[2].empty() && result.size() != 0)
    fill_elements(inputs[2], result);
  const dim_list strides = row_major_strides(x.dims());
  std::vector<std::int64_t> positions(static_cast<std::size_t>(result.size()), 0);
  for (std::size_t at = 0; at < positions.size(); ++at) {
    auto rest = static_cast<std::int64_t>(at);
    std::int64_t position = 0;
    for (std::size_t axis = x.rank(); axis-- > 0; rest /= dims[axis]) {
      const std::int64_t source = sources[axis][static_cast<std::size_t>(rest % dims[axis])];
      position = source < 0 || position < 0 ? -1 : position + source * strides[axis];
    }
    positions[at] = position;
  }
  pick_elements(x, result, positions);
  outputs[0] = std::move(result);
}

}  // namespace view

inline constexpr std::array view_rows{
    reference_row{"", "Shape", view::shape},
    reference_row{"", "Size", view::size},
    reference_row{"", "Identity", view::identity},
    reference_row{"", "Reshape", view::reshape},
    reference_row{"", "Flatten", view::flatten},
    reference_row{"", "Squeeze", view::squeeze},
    reference_row{"", "Unsqueeze", view::unsqueeze},
    reference_row{"", "Transpose", view::transpose},
    reference_row{"", "DepthToSpace", view::depth_to_space},
    reference_row{"", "SpaceToDepth", view::space_to_depth},
    reference_row{"", "Slice", view::slice},
    reference_row{"", "Split", view::split},
    reference_row{"", "CenterCropPad", view::center_crop_pad},
    reference_row{"", "Trilu", view::trilu},
    reference_row{"", "Concat", view::concat},
    reference_row{"", "Expand", view::expand},
    reference_row{"", "Tile", view::tile},
    reference_row{"", "Pad", view::pad},
};

}  // namespace dnnopt::reference

#endif  // DNNOPT_REFERENCE_VIEW_HPP

// Owns the reference evaluation of NonZero, TopK, Unique, NonMaxSuppression.
#ifndef DNNOPT_REFERENCE_SELECTION_HPP
#define DNNOPT_REFERENCE_SELECTION_HPP

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <dnnopt/ops/facts.hpp>
#include <dnnopt/reference/element_copy.hpp>
#include <dnnopt/reference/elements.hpp>
#include <dnnopt/reference/reference_row.hpp>

namespace dnnopt::reference {

namespace selection {

/// A number for each element that orders as the elements do: equal for equal elements. NaN comes last.
[[nodiscard]] inline std::vector<std::int64_t> order_of(const tensor& x) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(x.size()));
  const auto rank = [&order](const auto& values, auto less) {
    std::vector<std::size_t> sorted(order.size());
    std::iota(sorted.begin(), sorted.end(), std::size_t{0});
    std::sort(sorted.begin(), sorted.end(), [&](std::size_t a, std::size_t b) { return less(values[a], values[b]); });
    std::int64_t place = 0;
    for (std::size_t k = 0; k < sorted.size(); ++k) {
      if (k > 0 && less(values[sorted[k - 1]], values[sorted[k]])) ++place;
      order[sorted[k]] = place;
    }
  };
  if (x.type() == dtype::string)
    rank(x.strings(), [](const std::string& a, const std::string& b) { return a < b; });
  else if (is_floating(x.type()))
    rank(load_all<double>(x), [](double a, double b) { return a < b || (std::isnan(b) && !std::isnan(a)); });
  else if (x.type() == dtype::uint64)
    rank(load_all<std::uint64_t>(x), [](std::uint64_t a, std::uint64_t b) { return a < b; });
  else
    rank(load_all<std::int64_t>(x), [](std::int64_t a, std::int64_t b) { return a < b; });
  return order;
}

inline void non_zero(const attribute_map&, std::span<const tensor> inputs, std::span<tensor> outputs) {
  const tensor& x = inputs[0];
  const std::vector<double> values = load_all<double>(x);
  std::vector<std::int64_t> found;
  for (std::size_t k = 0; k < values.size(); ++k)
    if (values[k] != 0.0) found.push_back(static_cast<std::int64_t>(k));
  const dim_list dims = x.rank() == 0 ? dim_list{1} : x.dims();
  const dim_list strides = row_major_strides(dims);
  std::vector<std::int64_t> coordinates;
  for (std::size_t axis = 0; axis < dims.size(); ++axis)
    for (const std::int64_t at : found) coordinates.push_back(at / strides[axis] % dims[axis]);
  outputs[0] = tensor::of<std::int64_t>(
      {static_cast<std::int64_t>(dims.size()), static_cast<std::int64_t>(found.size())}, coordinates);
}

inline void top_k(const attribute_map& attributes, std::span<const tensor> inputs, std::span<tensor> outputs) {
  const tensor& x = inputs[0];
  const std::size_t axis = axis_at(attributes.get_int("axis", -1), x.rank());
  const bool largest = attributes.get_int("largest", 1) != 0;
  const std::vector<std::int64_t> counts = integers_of(inputs[1]);
  const std::int64_t k = counts.size() == 1 ? counts[0] : -1;
  const std::int64_t dim = x.dims()[axis];
  if (k < 0 || k > dim)
    throw error(errc::invalid_argument, "TopK: " + std::to_string(k) + " of " + std::to_string(dim) + " elements");
  const std::vector<std::int64_t> order = order_of(x);
  dim_list dims = x.dims();
  dims[axis] = k;
  const std::int64_t inner = row_major_strides(x.dims())[axis];
  const std::int64_t outer = dim == 0 ? 0 : x.size() / (dim * std::max<std::int64_t>(inner, 1));
  std::vector<std::int64_t> positions(static_cast<std::size_t>(element_count(dims)));
  std::vector<std::int64_t> indices(positions.size());
  std::vector<std::int64_t> candidates(static_cast<std::size_t>(dim));
  for (std::int64_t o = 0; o < outer; ++o)
    for (std::int64_t i = 0; i < inner; ++i) {
      const std::int64_t base = o * dim * inner + i;
      std::iota(candidates.begin(), candidates.end(), std::int64_t{0});
      // Of equal elements the one with the smaller index comes first.
      std::partial_sort(candidates.begin(), candidates.begin() + k, candidates.end(),
                        [&](std::int64_t a, std::int64_t b) {
                          const std::int64_t left = order[static_cast<std::size_t>(base + a * inner)];
                          const std::int64_t right = order[static_cast<std::size_t>(base + b * inner)];
                          if (left == right) return a < b;
                          return largest ? left > right : left < right;
                        });
      for (std::int64_t n = 0; n < k; ++n) {
        const auto at = static_cast<std::size_t>((o * k + n) * inner + i);
        indices[at] = candidates[static_cast<std::size_t>(n)];
        positions[at] = base + indices[at] * inner;
      }
    }
  tensor values(x.type(), dims);
  pick_elements(x, values, positions);
  outputs[0] = std::move(values);
  if (outputs.size() > 1) outputs[1] = tensor::of<std::int64_t>(dims, indices);
}

inline void unique(const attribute_map& attributes, std::span<const tensor> inputs, std::span<tensor> outputs) {
  const bool flat = !attributes.contains("axis");
  const tensor x = flat ? inputs[0].reshaped({inputs[0].size()}) : inputs[0];
  const std::size_t axis = flat ? 0 : axis_at(attributes.get_int("axis", 0), x.rank());
  const std::int64_t dim = x.dims()[axis];
  const std::int64_t inner = std::max<std::int64_t>(1, row_major_strides(x.dims())[axis]);
  const std::int64_t outer = x.size() == 0 ? 0 : x.size() / (dim * inner);
  const std::vector<std::int64_t> order = order_of(x);
  const auto compare = [&](std::int64_t a, std::int64_t b) {
    for (std::int64_t o = 0; o < outer; ++o)
      for (std::int64_t i = 0; i < inner; ++i) {
        const std::int64_t left = order[static_cast<std::size_t>((o * dim + a) * inner + i)];
        const std::int64_t right = order[static_cast<std::size_t>((o * dim + b) * inner + i)];
        if (left != right) return left < right ? -1 : 1;
      }
    return 0;
  };
  std::vector<std::int64_t> sorted(static_cast<std::size_t>(dim));
  std::iota(sorted.begin(), sorted.end(), std::int64_t{0});
  std::stable_sort(sorted.begin(), sorted.end(), [&](std::int64_t a, std::int64_t b) { return compare(a, b) < 0; });
  std::vector<std::vector<std::int64_t>> groups;
  for (const std::int64_t slice : sorted) {
    if (groups.empty() || compare(groups.back().front(), slice) != 0) groups.emplace_back();
    groups.back().push_back(slice);
  }
  if (attributes.get_int("sorted", 1) == 0)
    std::sort(groups.begin(), groups.end(), [](const auto& a, const auto& b) { return a.front() < b.front(); });
  std::vector<std::int64_t> first;
  std::vector<std::int64_t> inverse(static_cast<std::size_t>(dim));
  std::vector<std::int64_t> counts;
  for (std::size_t g = 0; g < groups.size(); ++g) {
    first.push_back(groups[g].front());
    counts.push_back(static_cast<std::int64_t>(groups[g].size()));
    for (const std::int64_t slice : groups[g]) inverse[static_cast<std::size_t>(slice)] = static_cast<std::int64_t>(g);
  }
  const auto found = static_cast<std::int64_t>(groups.size());
  dim_list dims = x.dims();
  dims[axis] = found;
  tensor result(x.type(), dims);
  if (result.size() != 0)
    for (std::int64_t g = 0; g < found; ++g)
      copy_elements(x, result,
                    {{outer, inner},
                     {dim * inner, 1},
                     first[static_cast<std::size_t>(g)] * inner,
                     {found * inner, 1},
                     g * inner});
  outputs[0] = std::move(result);
  if (outputs.size() > 1) outputs[1] = tensor::of<std::int64_t>({found}, first);
  if (outputs.size() > 2) outputs[2] = tensor::of<std::int64_t>({dim}, inverse);
  if (outputs.size() > 3) outputs[3] = tensor::of<std::int64_t>({found}, counts);
}

/// A box by its corners, in single precision as engines compare them.
struct corners {
  float low_y;
  float low_x;
  float high_y;
  float high_x;
};

[[nodiscard]] inline bool overlap_exceeds(const corners& a, const corners& b, float threshold) {
  const float height = std::min(a.high_y, b.high_y) - std::max(a.low_y, b.low_y);
  const float width = std::min(a.high_x, b.high_x) - std::max(a.low_x, b.low_x);
  if (height <= 0.0F || width <= 0.0F) return false;
  const float common = height * width;
  const float area_a = (a.high_y - a.low_y) * (a.high_x - a.low_x);
  const float area_b = (b.high_y - b.low_y) * (b.high_x - b.low_x);
  const float united = area_a + area_b - common;
  if (area_a <= 0.0F || area_b <= 0.0F || united <= 0.0F) return false;
  return common / united > threshold;
}

inline void non_max_suppression(const attribute_map& attributes, std::span<const tensor> inputs,
                                std::span<tensor> outputs) {
  const dim_list& box_dims = inputs[0].dims();
  const dim_list& score_dims = inputs[1].dims();
  if (box_dims.size() != 3 || score_dims.size() != 3 || box_dims[2] != 4 || box_dims[0] != score_dims[0] ||
      box_dims[1] != score_dims[2])
    throw error(errc::shape_mismatch,
                "NonMaxSuppression: boxes " + to_string(box_dims) + " with scores " + to_string(score_dims));
  const bool centered = attributes.get_int("center_point_box", 0) != 0;
  const std::int64_t most = has_input(inputs, 2) ? integers_of(inputs[2]).at(0) : 0;
  const auto overlap = static_cast<float>(scalar_or(inputs, 3, 0.0));
  const bool limited = has_input(inputs, 4);
  const auto least = static_cast<float>(scalar_or(inputs, 4, 0.0));
  const auto boxes = inputs[0].data<float>();
  const auto scores = inputs[1].data<float>();
  const std::int64_t count = box_dims[1];
  const auto box = [&](std::int64_t batch, std::int64_t at) {
    const auto p = static_cast<std::size_t>((batch * count + at) * 4);
    const float a = boxes[p];
    const float b = boxes[p + 1];
    const float c = boxes[p + 2];
    const float d = boxes[p + 3];
    if (centered) return corners{b - d / 2.0F, a - c / 2.0F, b + d / 2.0F, a + c / 2.0F};
    return corners{std::min(a, c), std::min(b, d), std::max(a, c), std::max(b, d)};
  };
  std::vector<std::int64_t> rows;
  for (std::int64_t batch = 0; batch < score_dims[0]; ++batch)
    for (std::int64_t label = 0; label < score_dims[1]; ++label) {
      const std::span<const float> own = scores.subspan(
          static_cast<std::size_t>((batch * score_dims[1] + label) * count), static_cast<std::size_t>(count));
      std::vector<std::int64_t> candidates;
      for (std::int64_t at = 0; at < count; ++at)
        if (!limited || own[static_cast<std::size_t>(at)] > least) candidates.push_back(at);
      std::stable_sort(candidates.begin(), candidates.end(), [&](std::int64_t a, std::int64_t b) {
        const float first = own[static_cast<std::size_t>(a)];
        const float second = own[static_cast<std::size_t>(b)];
        // What is no number comes last.
        return std::isnan(second) ? !std::isnan(first) : first > second;
      });
      std::vector<corners> kept;
      for (const std::int64_t at : candidates) {
        if (static_cast<std::int64_t>(kept.size()) >= most) break;
        const corners candidate = box(batch, at);
        if (std::any_of(kept.begin(), kept.end(),
                        [&](const corners& k) { return overlap_exceeds(k, candidate, overlap); }))
          continue;
        kept.push_back(candidate);
        rows.insert(rows.end(), {batch, label, at});
      }
    }
  outputs[0] = tensor::of<std::int64_t>({static_cast<std::int64_t>(rows.size() / 3), 3}, rows);
}

}  // namespace selection

inline constexpr std::array selection_rows{
    reference_row{"", "NonZero", selection::non_zero},
    reference_row{"", "TopK", selection::top_k},
    reference_row{"", "Unique", selection::unique},
    reference_row{"", "NonMaxSuppression", selection::non_max_suppression},
};

}  // namespace dnnopt::reference

#endif  // DNNOPT_REFERENCE_SELECTION_HPP

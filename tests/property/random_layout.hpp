// Owns the layout operators, gathers and shape arithmetic that random graphs grow by.
#ifndef DNNOPT_TESTS_PROPERTY_RANDOM_LAYOUT_HPP
#define DNNOPT_TESTS_PROPERTY_RANDOM_LAYOUT_HPP

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "property/random_element_wise.hpp"

namespace testing {

/// A dim of a reshaped value: the product of some axes' dims and a number.
struct reshaped_dim {
  ints axes;
  std::int64_t factor = 1;
};

/// x under other dims, with the new shape as a constant (where -1 and 0 say what is symbolic) or computed from
/// Shape(x).
inline drawn reshape(random_graph& r, const drawn& x, const std::vector<reshaped_dim>& to, bool inner = false) {
  const auto done = [&](value_id shape) {
    return inner ? r.add_inner("Reshape", {x.id, shape}) : r.add("Reshape", {x.id, shape})[0];
  };
  ints numbers;
  int computed = 0;
  for (std::size_t k = 0; k < to.size(); ++k) {
    dnnopt::index_expr dim = to[k].factor;
    for (const std::int64_t axis : to[k].axes) dim *= x.dims[static_cast<std::size_t>(axis)];
    const bool same = k < x.dims.size() && dim == x.dims[k];
    if (dim.is_constant())
      numbers.push_back(same && dim != dnnopt::index_expr(0) && r.rarely(6) ? 0 : dim.constant());
    else if (same)
      numbers.push_back(0);
    else
      numbers.push_back(-1), ++computed;
  }
  if (computed <= 1 && !r.rarely(4)) {
    if (computed == 0 && !numbers.empty() && r.rarely(4))
      numbers[static_cast<std::size_t>(r.pick(0, static_cast<int>(numbers.size()) - 1))] = -1;
    return done(r.integers(numbers));
  }
  // What exporters write.
  const value_id shape = r.add_inner("Shape", {x.id}).id;
  std::vector<value_id> parts;
  for (const reshaped_dim& dim : to) {
    std::optional<value_id> part;
    for (const std::int64_t axis : dim.axes) {
      value_id one = dnnopt::no_value;
      if (r.coin())
        one =
            r.add_inner(
                 "Unsqueeze",
                 {r.add_inner("Gather", {shape, r.hold(dnnopt::tensor::scalar(axis))}, {{"axis", std::int64_t{0}}}).id,
                  r.integers({0})})
                .id;
      else
        one = r.add_inner("Slice", {shape, r.integers({axis}), r.integers({axis + 1}), r.integers({0})}).id;
      part = part ? r.add_inner("Mul", {*part, one}).id : one;
    }
    if (part && dim.factor != 1) part = r.add_inner("Mul", {*part, r.integers({dim.factor})}).id;
    parts.push_back(part ? *part : r.integers({dim.factor}));
  }
  if (parts.empty()) return done(r.integers(ints{}));
  return done(r.add_inner("Concat", parts, {{"axis", std::int64_t{0}}}).id);
}

/// The dims of `x`, each by itself.
inline std::vector<reshaped_dim> own_dims(const drawn& x) {
  std::vector<reshaped_dim> dims;
  for (std::size_t k = 0; k < x.dims.size(); ++k) {
    if (x.dims[k].is_constant())
      dims.push_back({{}, x.dims[k].constant()});
    else
      dims.push_back({{static_cast<std::int64_t>(k)}, 1});
  }
  return dims;
}

inline void join(std::vector<reshaped_dim>& dims, std::size_t k) {
  dims[k].factor *= dims[k + 1].factor;
  dims[k].axes.insert(dims[k].axes.end(), dims[k + 1].axes.begin(), dims[k + 1].axes.end());
  dims.erase(dims.begin() + static_cast<std::ptrdiff_t>(k) + 1);
}

inline void grow_transpose(random_graph& r) {
  const auto x = r.real(1);
  if (!x) return;
  if (r.rarely(8))
    r.add("Transpose", {x->id});
  else
    r.add("Transpose", {x->id}, {{"perm", r.permutation(x->dims.size())}});
}

/// Neighbouring dims joined, or one cut in two, or all constant dims cut anew.
inline void grow_reshape(random_graph& r) {
  const auto x = r.real(1);
  if (!x) return;
  std::vector<reshaped_dim> dims = own_dims(*x);
  for (int steps = r.pick(1, 3); steps > 0; --steps) {
    const auto k = static_cast<std::size_t>(r.pick(0, static_cast<int>(dims.size()) - 1));
    if (r.coin() && k + 1 < dims.size()) {
      join(dims, k);
    } else if (dims.size() < 6) {
      const std::int64_t part = dims[k].factor % 2 == 0 ? 2 : dims[k].factor % 3 == 0 ? 3 : 1;
      dims[k].factor /= part;
      dims.insert(dims.begin() + static_cast<std::ptrdiff_t>(k) + r.pick(0, 1), {{}, part});
    }
  }
  reshape(r, *x, dims);
}

inline void grow_flatten(random_graph& r) {
  const auto x = r.real();
  if (!x) return;
  const int rank = static_cast<int>(x->dims.size());
  switch (r.pick(0, 2)) {
    case 0:
      r.add("Flatten", {x->id}, {{"axis", std::int64_t{r.pick(0, rank)}}});
      return;
    case 1: {
      if (rank > 4) return;
      const std::int64_t axis = r.pick(0, rank);
      r.add("Unsqueeze", {x->id, r.integers(r.coin() ? ints{axis} : ints{-1})});
      return;
    }
    default: {
      ints axes;
      for (int k = 0; k < rank; ++k)
        if (x->dims[static_cast<std::size_t>(k)] == dnnopt::index_expr(1) && r.coin())
          axes.push_back(r.coin() ? k : k - rank);
      if (!axes.empty()) r.add("Squeeze", {x->id, r.integers(axes)});
      return;
    }
  }
}

inline void grow_slice(random_graph& r) {
  const auto x = r.find([](const drawn& v) { return !v.dims.empty(); });
  if (!x) return;
  ints begins, ends, axes, steps;
  for (std::size_t k = 0; k < x->dims.size(); ++k) {
    const std::int64_t extent = r.least(*x, k);
    if (extent < 2 || !r.coin()) continue;
    axes.push_back(static_cast<std::int64_t>(k));
    const int last = static_cast<int>(extent) - 1;
    switch (r.pick(0, 3)) {
      case 0:  // backwards
        begins.push_back(r.coin() ? -1 : last);
        ends.push_back(-100000);
        steps.push_back(-r.pick(1, 2));
        break;
      case 1:
        begins.push_back(-r.pick(1, last));
        ends.push_back(std::int64_t{1} << 40);
        steps.push_back(r.pick(1, 3));
        break;
      default:
        begins.push_back(r.pick(0, last));
        ends.push_back(r.coin() ? r.pick(static_cast<int>(begins.back()) + 1, last + 1) : 9223372036854775807);
        steps.push_back(r.pick(1, 2));
    }
  }
  if (axes.empty()) return;
  const bool plain = std::all_of(steps.begin(), steps.end(), [](std::int64_t s) { return s == 1; });
  if (plain && r.coin())
    r.add("Slice", {x->id, r.integers(begins), r.integers(ends), r.integers(axes)});
  else
    r.add("Slice", {x->id, r.integers(begins), r.integers(ends), r.integers(axes), r.integers(steps)});
}

inline void grow_concat(random_graph& r) {
  const auto x = r.find([](const drawn& v) { return !v.dims.empty(); });
  if (!x) return;
  const auto axis = static_cast<std::size_t>(r.pick(0, static_cast<int>(x->dims.size()) - 1));
  std::vector<value_id> parts{x->id};
  for (int k = r.pick(0, 3); k > 0; --k) {
    if (is_real(*x) && x->dims[axis].is_constant() && r.rarely(5)) {
      dnnopt::dim_list dims;
      bool fixed = true;
      for (const auto& d : x->dims)
        fixed = fixed && d.is_constant(), dims.push_back(d.is_constant() ? d.constant() : 1);
      if (fixed) parts.push_back(r.constant(dims));
      continue;
    }
    const auto y = r.find([&](const drawn& v) {
      bool fits = v.type == x->type && v.dims.size() == x->dims.size();
      for (std::size_t i = 0; fits && i < v.dims.size(); ++i) fits = i == axis || v.dims[i] == x->dims[i];
      return fits;
    });
    parts.push_back(y->id);
  }
  std::swap(parts[0], parts[static_cast<std::size_t>(r.pick(0, static_cast<int>(parts.size()) - 1))]);
  r.add("Concat", parts, {{"axis", static_cast<std::int64_t>(axis)}});
}

inline void grow_split(random_graph& r) {
  const auto x = r.real(1);
  if (!x) return;
  const auto axis = static_cast<std::size_t>(r.pick(0, static_cast<int>(x->dims.size()) - 1));
  if (!x->dims[axis].is_constant() || x->dims[axis].constant() < 2) return;
  const std::int64_t extent = x->dims[axis].constant();
  const auto at = static_cast<std::int64_t>(r.coin() ? axis : axis - x->dims.size());
  if (r.coin()) {
    // Equal parts, the last one smaller.
    const std::int64_t parts = r.pick(2, static_cast<int>(std::min<std::int64_t>(extent, 4)));
    if ((extent + parts - 1) / parts * (parts - 1) >= extent) return;
    r.add("Split", {x->id}, {{"axis", at}, {"num_outputs", parts}}, static_cast<std::size_t>(parts));
  } else {
    const std::int64_t first = r.pick(1, static_cast<int>(extent) - 1);
    r.add("Split", {x->id, r.integers({first, extent - first})}, {{"axis", at}}, 2);
  }
}

inline void grow_pad(random_graph& r) {
  const auto x = r.real(1);
  if (!x) return;
  const std::size_t rank = x->dims.size();
  const auto mode = r.one_of<std::string_view>({"constant", "constant", "constant", "reflect", "edge", "wrap"});
  ints pads(2 * rank, 0);
  for (std::size_t k = 0; k < rank; ++k) {
    if (!r.rarely(static_cast<int>(rank))) continue;
    const int most = mode == "constant" ? 2 : static_cast<int>(std::min<std::int64_t>(r.least(*x, k) - 1, 2));
    if (most < 0) continue;
    pads[k] = r.pick(0, most);
    pads[k + rank] = r.pick(mode == "constant" && r.least(*x, k) > 2 ? -1 : 0, most);
  }
  std::vector<value_id> inputs{x->id, r.integers(pads)};
  if (mode == "constant" && r.coin()) inputs.push_back(r.number(r.one_of({0.0F, 0.5F})));
  r.add("Pad", inputs, {{"mode", std::string(mode)}});
}

inline void grow_gather(random_graph& r) {
  const auto x = r.real(1);
  if (!x) return;
  const int rank = static_cast<int>(x->dims.size());
  const int axis = r.pick(0, rank - 1);
  const auto extent = static_cast<int>(r.least(*x, static_cast<std::size_t>(axis)));
  const auto index = [&] { return std::int64_t{r.pick(r.rarely(4) ? -extent : 0, extent - 1)}; };
  const std::int64_t at = r.coin() ? axis : axis - rank;
  switch (r.pick(0, 5)) {
    case 0:
      r.add("Gather", {x->id, r.hold(dnnopt::tensor::scalar(index()))}, {{"axis", at}});
      return;
    case 1:
      r.add("Gather", {x->id, r.integers({2, 2}, {index(), index(), index(), index()})}, {{"axis", at}});
      return;
    case 2: {  // elements by indices of the data's rank
      ints indices;
      dnnopt::dim_list dims(static_cast<std::size_t>(rank), 1);
      dims[static_cast<std::size_t>(axis)] = 3;
      for (int i = 0; i < 3; ++i) indices.push_back(index());
      r.add("GatherElements", {x->id, r.integers(dims, indices)}, {{"axis", at}});
      return;
    }
    case 3: {
      ints indices;
      for (int i = 0; i < 2; ++i) indices.push_back(r.pick(0, static_cast<int>(r.least(*x, 0)) - 1));
      r.add("GatherND", {x->id, r.integers({2, 1}, indices)});
      return;
    }
    case 4:
      if (const auto by = r.find(is_int64)) {
        const value_id inside = r.add_inner("Mod", {by->id, r.hold(dnnopt::tensor::scalar(std::int64_t{extent}))}).id;
        r.add("Gather", {x->id, inside}, {{"axis", at}});
      }
      return;
    default: {
      ints indices;
      for (int i = r.pick(1, 4); i > 0; --i) indices.push_back(index());
      r.add("Gather", {x->id, r.integers(indices)}, {{"axis", at}});
      return;
    }
  }
}

inline void grow_scatter(random_graph& r) {
  const auto x = r.real(1, 4);
  if (!x || !std::all_of(x->dims.begin(), x->dims.end(), [](const auto& d) { return d.is_constant(); })) return;
  dnnopt::dim_list dims = r.extents(*x);
  if (r.coin()) {
    const std::int64_t row = r.pick(0, static_cast<int>(dims[0]) - 1);
    dims[0] = 1;
    r.add("ScatterND", {x->id, r.integers({1, 1}, {row}), r.constant(dims)},
          {{"reduction", r.coin() ? "none" : "add"}});
  } else {
    const std::int64_t row = r.pick(0, static_cast<int>(dims[0]) - 1);
    dims[0] = 1;
    r.add("ScatterElements",
          {x->id, r.integers(dims, ints(static_cast<std::size_t>(dnnopt::element_count(dims)), row)), r.constant(dims)},
          {{"axis", std::int64_t{0}}, {"reduction", r.coin() ? "none" : "add"}});
  }
}

inline void grow_expand(random_graph& r) {
  const auto x = r.real(0, 4);
  if (!x) return;
  const int rank = static_cast<int>(x->dims.size());
  switch (r.pick(0, 3)) {
    case 0: {
      ints dims;
      for (int k = 0; k < rank; ++k)
        dims.push_back(x->dims[static_cast<std::size_t>(k)] == dnnopt::index_expr(1) && r.coin() ? r.pick(1, 4) : 1);
      if (r.rarely(3)) dims.insert(dims.begin(), r.pick(1, 3));
      r.add("Expand", {x->id, r.integers(dims)});
      return;
    }
    case 1: {
      ints repeats;
      for (int k = 0; k < rank; ++k) repeats.push_back(r.rarely(3) ? r.pick(1, 3) : 1);
      if (rank > 0) r.add("Tile", {x->id, r.integers(repeats)});
      return;
    }
    case 2: {  // to the shape of another value
      const auto y = r.find([&](const drawn& v) { return r.broadcast(v, *x); });
      r.add("Expand", {x->id, r.add_inner("Shape", {y->id}).id});
      return;
    }
    default: {  // zeros or positions of this shape
      if (rank == 0) return;
      const value_id shape = r.add_inner("Shape", {x->id}).id;
      if (r.coin()) {
        r.add("Add", {x->id, r.add_inner("ConstantOfShape", {shape},
                                         {{"value", dnnopt::tensor::of<float>({1}, std::vector<float>{0.5F})}})
                                 .id});
        return;
      }
      const value_id count = r.add_inner("Gather", {shape, r.hold(dnnopt::tensor::scalar<std::int64_t>(rank - 1))}).id;
      const value_id range = r.add_inner("Range", {r.hold(dnnopt::tensor::scalar<std::int64_t>(0)), count,
                                                   r.hold(dnnopt::tensor::scalar<std::int64_t>(1))})
                                 .id;
      r.add("Mul", {x->id, r.add_inner("Cast", {range}, {{"to", std::int64_t{1}}}).id});
      return;
    }
  }
}

inline void grow_blocks_of_pixels(random_graph& r) {
  const auto x = r.find([](const drawn& v) { return is_real(v) && v.dims.size() == 4 && v.dims[1].is_constant(); });
  if (!x) return;
  const std::int64_t channels = x->dims[1].constant();
  if (channels % 4 == 0 && r.coin()) {
    r.add("DepthToSpace", {x->id}, {{"blocksize", std::int64_t{2}}, {"mode", r.coin() ? "DCR" : "CRD"}});
  } else if (x->dims[2].is_constant() && x->dims[3].is_constant() && x->dims[2].constant() % 2 == 0 &&
             x->dims[3].constant() % 2 == 0) {
    r.add("SpaceToDepth", {x->id}, {{"blocksize", std::int64_t{2}}});
  }
}

/// Channel shuffles, cyclic shifts, windows, patches: chains of layout operators as networks have them.
inline void grow_layout_chain(random_graph& r) {
  const auto x = r.real(2, 5);
  if (!x) return;
  const std::size_t rank = x->dims.size();
  const auto k = static_cast<std::size_t>(r.pick(0, static_cast<int>(rank) - 1));
  const bool even = x->dims[k].is_constant() && x->dims[k].constant() % 2 == 0;
  switch (r.pick(0, 3)) {
    case 0: {  // a cyclic shift
      const std::int64_t extent = r.least(*x, k);
      if (extent < 2) return;
      const std::int64_t cut = r.pick(1, static_cast<int>(extent) - 1);
      const value_id axis = r.integers({static_cast<std::int64_t>(k)});
      const value_id head = r.add_inner("Slice", {x->id, r.integers({0}), r.integers({cut}), axis}).id;
      const value_id tail = r.add_inner("Slice", {x->id, r.integers({cut}), r.integers({1 << 30}), axis}).id;
      r.add("Concat", {tail, head}, {{"axis", static_cast<std::int64_t>(k)}});
      return;
    }
    case 1: {  // a shuffle of the halves of an axis
      if (!even || rank > 4) return;
      std::vector<reshaped_dim> dims = own_dims(*x);
      dims[k].factor /= 2;
      dims.insert(dims.begin() + static_cast<std::ptrdiff_t>(k), {{}, 2});
      ints perm;
      for (std::size_t i = 0; i <= rank; ++i) perm.push_back(static_cast<std::int64_t>(i));
      std::swap(perm[k], perm[k + 1]);
      const drawn cut = reshape(r, *x, dims, true);
      const drawn turned = r.add_inner("Transpose", {cut.id}, {{"perm", perm}});
      std::vector<reshaped_dim> back = own_dims(turned);
      join(back, k);
      reshape(r, turned, back);
      return;
    }
    case 2: {  // every second element and the others, joined
      if (!even) return;
      const value_id axis = r.integers({static_cast<std::int64_t>(k)});
      const value_id ends = r.integers({1 << 30});
      const value_id first = r.add_inner("Slice", {x->id, r.integers({0}), ends, axis, r.integers({2})}).id;
      const value_id second = r.add_inner("Slice", {x->id, r.integers({1}), ends, axis, r.integers({2})}).id;
      r.add("Concat", {first, second}, {{"axis", static_cast<std::int64_t>(r.pick(0, static_cast<int>(rank) - 1))}});
      return;
    }
    default: {  // windows of 2x2, something in them, and back
      if (rank != 4 || !x->dims[1].is_constant() || !x->dims[2].is_constant() || x->dims[1].constant() % 2 != 0 ||
          x->dims[2].constant() % 2 != 0)
        return;
      std::vector<reshaped_dim> dims = own_dims(*x);
      const std::int64_t rows = dims[1].factor / 2;
      const std::int64_t columns = dims[2].factor / 2;
      const drawn cut = reshape(r, *x, {dims[0], {{}, rows}, {{}, 2}, {{}, columns}, {{}, 2}, dims[3]}, true);
      const drawn windows = r.add_inner("Transpose", {cut.id}, {{"perm", ints{0, 1, 3, 2, 4, 5}}});
      std::vector<reshaped_dim> joined = own_dims(windows);
      join(joined, 0);
      join(joined, 0);
      join(joined, 1);
      drawn inside = reshape(r, windows, joined, true);
      if (r.coin() && x->dims[3].is_constant())
        inside = r.add_inner("MatMul", {inside.id, r.constant({x->dims[3].constant(), x->dims[3].constant()})});
      if (r.coin()) inside = r.add_inner("Softmax", {inside.id}, {{"axis", std::int64_t{1}}});
      if (!x->dims[0].is_constant()) return;
      const drawn opened =
          reshape(r, inside, {dims[0], {{}, rows}, {{}, columns}, {{}, 2}, {{}, 2}, own_dims(inside)[2]}, true);
      const drawn turned = r.add_inner("Transpose", {opened.id}, {{"perm", ints{0, 1, 3, 2, 4, 5}}});
      std::vector<reshaped_dim> back = own_dims(turned);
      join(back, 1);
      join(back, 2);
      reshape(r, turned, back);
      return;
    }
  }
}

inline void grow_triangle(random_graph& r) {
  const auto x = r.real(2, 4);
  if (!x) return;
  if (r.coin())
    r.add("Trilu", {x->id}, {{"upper", std::int64_t{r.pick(0, 1)}}});
  else
    r.add("Trilu", {x->id, r.hold(dnnopt::tensor::scalar<std::int64_t>(r.pick(-2, 2)))},
          {{"upper", std::int64_t{r.pick(0, 1)}}});
}

inline constexpr std::array layout_rows{
    growth_row{"transpose", 6, grow_transpose},
    growth_row{"reshape", 7, grow_reshape},
    growth_row{"flatten", 3, grow_flatten},
    growth_row{"slice", 4, grow_slice},
    growth_row{"concat", 4, grow_concat},
    growth_row{"split", 3, grow_split},
    growth_row{"pad", 3, grow_pad},
    growth_row{"gather", 3, grow_gather},
    growth_row{"scatter", 1, grow_scatter},
    growth_row{"expand", 4, grow_expand},
    growth_row{"pixels", 2, grow_blocks_of_pixels},
    growth_row{"chain", 5, grow_layout_chain},
    growth_row{"triangle", 1, grow_triangle},
};

}  // namespace testing

#endif  // DNNOPT_TESTS_PROPERTY_RANDOM_LAYOUT_HPP

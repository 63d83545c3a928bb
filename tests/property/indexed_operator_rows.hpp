// Owns the table of operators that random models of one operator are drawn from: indices, selections, resampling.
#ifndef DNNOPT_TESTS_PROPERTY_INDEXED_OPERATOR_ROWS_HPP
#define DNNOPT_TESTS_PROPERTY_INDEXED_OPERATOR_ROWS_HPP

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "property/operator_drawer.hpp"

namespace testing {

inline void draw_gather(operator_drawer& d) {
  const std::size_t rank = d.rank(1, 4);
  const dim_list whole = d.dims(rank, 1);
  const std::int64_t axis = d.axis(rank);
  const std::int64_t least = *std::min_element(whole.begin(), whole.end());
  const std::int64_t extent = whole[static_cast<std::size_t>(axis < 0 ? axis + static_cast<std::int64_t>(rank) : axis)];
  d.data(d.number_type(), whole);
  const dtype type = d.one_of({dtype::int64, dtype::int32});
  switch (d.pick(0, 2)) {
    case 0:
      d.op("Gather");
      d.given(d.integers(type, d.dims(d.rank(0, 3)), -extent, extent - 1), 3);
      d.maybe("axis", std::int64_t{0});
      if (!d.made.attributes.empty() || d.coin())
        d.made.attributes = {{"axis", axis}};
      else
        d.made.inputs[1].content = d.integers(type, d.made.inputs[1].content.dims(), -whole[0], whole[0] - 1);
      return;
    case 1: {
      d.op("GatherElements");
      dim_list taken = whole;
      for (std::int64_t& e : taken) e = std::max<std::int64_t>(0, e - d.varying(0, 1));
      taken[static_cast<std::size_t>(axis < 0 ? axis + static_cast<std::int64_t>(rank) : axis)] = d.extent();
      d.given(d.integers(type, taken, -extent, extent - 1), 3);
      d.set("axis", axis);
      return;
    }
    default: {
      d.op("GatherND");
      const std::size_t batch = d.rarely(3) ? d.rank(0, static_cast<int>(rank) - 1) : 0;
      dim_list of(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(batch));
      for (std::size_t k = d.rank(0, 2); k > 0; --k) of.push_back(d.extent());
      of.push_back(d.pick(1, static_cast<int>(rank - batch)));
      d.given(d.integers(dtype::int64, of, -least, least - 1), 3);
      d.set("batch_dims", static_cast<std::int64_t>(batch));
      return;
    }
  }
}
inline void draw_scatter(operator_drawer& d) {
  d.tame();
  const std::size_t rank = d.rank(1, 3);
  const dim_list whole = d.dims(rank, 1);
  const dtype type = d.one_of({dtype::float32, dtype::float32, dtype::int32, dtype::int64});
  const std::string reduction = d.name_of({"none", "add", "mul", "max", "min"});
  d.data(type, whole);
  if (d.coin()) {
    d.op("ScatterElements");
    const std::int64_t axis = d.axis(rank);
    const auto along = static_cast<std::size_t>(axis < 0 ? axis + static_cast<std::int64_t>(rank) : axis);
    dim_list taken = whole;
    for (std::int64_t& e : taken) e = std::max<std::int64_t>(1, e - d.varying(0, 1));
    // Without a reduction no element may be written twice.
    tensor indices(dtype::int64, taken);
    std::int64_t inner = 1;
    for (std::size_t k = along + 1; k < rank; ++k) inner *= taken[k];
    const std::int64_t first = d.varying(0, whole[along] - 1);
    for (std::int64_t i = 0; i < indices.size(); ++i)
      indices.mutable_data<std::int64_t>()[static_cast<std::size_t>(i)] =
          (first + i / inner % taken[along]) % whole[along];
    if (reduction != "none" && d.coin()) indices = d.integers(dtype::int64, taken, -whole[along], whole[along] - 1);
    d.given(std::move(indices), 3);
    d.data(type, taken);
    d.set("axis", axis);
  } else {
    d.op("ScatterND");
    const std::int64_t rows = std::min<std::int64_t>(whole[0], d.extent());
    tensor indices(dtype::int64, {rows, 1});
    const std::int64_t first = d.varying(0, whole[0] - 1);
    for (std::int64_t i = 0; i < rows; ++i)
      indices.mutable_data<std::int64_t>()[static_cast<std::size_t>(i)] = (first + i) % whole[0];
    d.given(std::move(indices), 3);
    dim_list updates = whole;
    updates[0] = rows;
    d.data(type, updates);
  }
  if (reduction != "none") d.set("reduction", reduction);
}
inline void draw_selection(operator_drawer& d) {
  d.tame();
  const std::size_t rank = d.rank(1, 3);
  const dim_list whole = d.dims(rank);
  switch (d.pick(0, 5)) {
    case 0: {
      d.op("TopK", 2);
      const std::int64_t axis = d.axis(rank);
      d.data(d.one_of({dtype::float32, dtype::float32, dtype::float16, dtype::int64, dtype::int32}), whole);
      d.settings({std::min<std::int64_t>(
          d.pick(0, 3), whole[static_cast<std::size_t>(axis < 0 ? axis + static_cast<std::int64_t>(rank) : axis)])});
      d.set("axis", axis);
      d.maybe("largest", std::int64_t{d.pick(0, 1)});
      return;
    }
    case 1:
      d.op("NonZero");
      d.data(d.rarely(3) ? dtype::boolean : d.number_type(), whole);
      return;
    case 2:
      d.op("Compress");
      d.data(d.number_type(), whole);
      if (d.coin()) d.set("axis", d.axis(rank));
      d.given(d.integers(dtype::boolean, {d.extent(1)}, 0, 1), 3);
      return;
    case 3:
      d.op("OneHot");
      d.data(d.one_of({dtype::int64, dtype::int32}), whole);
      d.scalar(dtype::int64, d.pick(1, 6));
      d.given(d.numbers(d.one_of({dtype::float32, dtype::int64}), {2}), 2);
      d.maybe("axis", std::int64_t{d.pick(-static_cast<int>(rank) - 1, static_cast<int>(rank))});
      return;
    case 4: {
      d.op("ReverseSequence");
      const dim_list of = d.dims(d.rank(2, 4), 1);
      const bool first = d.coin();
      d.data(d.real_type(), of);
      d.given(d.integers(dtype::int64, {of[first ? 1 : 0]}, 1, of[first ? 0 : 1]), 3);
      d.set("time_axis", std::int64_t{first ? 0 : 1});
      d.set("batch_axis", std::int64_t{first ? 1 : 0});
      return;
    }
    default:
      d.op("Unique", 4);
      d.data(d.one_of({dtype::float32, dtype::int64}), whole);
      d.maybe("sorted", std::int64_t{d.pick(0, 1)});
      return;
  }
}
inline void draw_generator(operator_drawer& d) {
  switch (d.pick(0, 3)) {
    case 0: {
      d.op("Range");
      const dtype type = d.one_of({dtype::int64, dtype::int32, dtype::float32});
      d.scalar(type, d.pick(-3, 3));
      d.scalar(type, d.pick(-6, 12));
      d.scalar(type, d.one_of({1, 2, 3, -1, -2}));
      return;
    }
    case 1: {
      d.op("ConstantOfShape");
      const dim_list whole = d.dims(d.rank(0, 4));
      d.settings(ints(whole.begin(), whole.end()));
      if (d.coin()) d.set("value", d.numbers(d.number_type(), {1}, true));
      return;
    }
    case 2:
      d.op("EyeLike");
      d.data(d.number_type(), d.dims(2));
      d.maybe("k", std::int64_t{d.pick(-3, 3)});
      return;
    default:
      d.op(d.coin() ? "Shape" : "Size");
      d.data(d.number_type(), d.dims(d.rank(0, 4)));
      if (d.made.op == "Shape" && d.coin()) d.set("start", std::int64_t{d.pick(-3, 3)});
      if (d.made.op == "Shape" && d.coin()) d.set("end", std::int64_t{d.pick(-3, 3)});
      return;
  }
}

inline void draw_resize(operator_drawer& d) {
  d.tame();
  d.op("Resize");
  const std::string mode = d.name_of({"nearest", "linear", "cubic"});
  const std::size_t rank = mode == "cubic" || d.coin() ? 4 : d.rank(1, 4);
  const dim_list whole = d.dims(rank, 1);
  d.data(d.one_of({dtype::float32, dtype::float32, dtype::float16}), whole);
  d.absent();
  std::vector<float> scales;
  ints sizes;
  for (std::size_t k = 0; k < rank; ++k) {
    const bool kept = rank == 4 && k < 2;
    scales.push_back(kept ? 1.0F : d.one_of({0.5F, 2.0F, 1.0F, 1.5F, 0.6F, 3.0F, 0.25F, 1.7F}));
    sizes.push_back(kept ? whole[k] : d.pick(1, 9));
  }
  if (d.coin()) {
    d.settings(tensor::of<float>({static_cast<std::int64_t>(rank)}, scales));
  } else {
    d.absent();
    d.settings(sizes);
  }
  d.set("mode", mode);
  d.maybe("coordinate_transformation_mode", d.name_of({"half_pixel", "half_pixel_symmetric", "pytorch_half_pixel",
                                                       "align_corners", "asymmetric", "tf_half_pixel_for_nn"}));
  if (mode == "nearest")
    d.maybe("nearest_mode", d.name_of({"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"}));
  if (mode == "cubic") d.maybe("cubic_coeff_a", -0.5F);
  if (mode == "cubic" || mode == "linear") d.maybe("exclude_outside", std::int64_t{d.pick(0, 1)});
  if (mode != "nearest" && d.rarely(3)) d.set("antialias", std::int64_t{1});
}
inline void draw_grid_sample(operator_drawer& d) {
  d.tame();
  d.op("GridSample");
  const std::string mode = d.name_of({"linear", "nearest", "cubic"});
  const std::size_t spatial = mode == "cubic" ? 2 : d.rank(1, 3);
  dim_list whole = d.dims(spatial + 2, 1);
  dim_list grid = d.dims(spatial + 2, 1);
  grid[0] = whole[0];
  grid[spatial + 1] = static_cast<std::int64_t>(spatial);
  d.data(dtype::float32, whole);
  d.data(dtype::float32, grid, -1.4, 1.4);
  d.set("mode", mode);
  d.maybe("padding_mode", d.name_of({"zeros", "border", "reflection"}));
  d.maybe("align_corners", std::int64_t{d.pick(0, 1)});
}
inline constexpr std::array indexed_operator_rows{
    operator_row{"gather", 6, draw_gather},       operator_row{"scatter", 4, draw_scatter},
    operator_row{"selection", 6, draw_selection}, operator_row{"generator", 3, draw_generator},
    operator_row{"resize", 5, draw_resize},       operator_row{"grid sample", 3, draw_grid_sample},
};

}  // namespace testing

#endif  // DNNOPT_TESTS_PROPERTY_INDEXED_OPERATOR_ROWS_HPP

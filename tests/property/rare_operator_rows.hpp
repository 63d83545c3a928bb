// Owns the table of operators that random models of one operator are drawn from: boxes, windows put back, crops and
// norms.
#ifndef DNNOPT_TESTS_PROPERTY_RARE_OPERATOR_ROWS_HPP
#define DNNOPT_TESTS_PROPERTY_RARE_OPERATOR_ROWS_HPP

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>

#include "property/operator_drawer.hpp"

namespace testing {

inline void draw_boxes(operator_drawer& d) {
  d.tame();
  d.op("NonMaxSuppression");
  const std::int64_t batch = d.extent(), boxes = d.extent(), classes = d.extent();
  d.data(dtype::float32, {batch, boxes, 4}, 0, 4);
  d.data(dtype::float32, {batch, classes, boxes}, 0, 1);
  d.maybe("center_point_box", std::int64_t{d.pick(0, 1)});
  if (d.rarely(5)) return;
  d.scalar(dtype::int64, d.pick(0, 4));
  d.scalar(dtype::float32, d.one_of({0.0, 0.3, 0.5, 1.0}));
  if (d.coin()) d.scalar(dtype::float32, d.one_of({0.0, 0.4, 0.9}));
}
inline void draw_affine_grid(operator_drawer& d) {
  d.tame();
  d.op("AffineGrid");
  const std::size_t spatial = d.rank(2, 3);
  const std::int64_t batch = d.pick(1, 3);
  const auto wide = static_cast<std::int64_t>(spatial);
  d.data(d.one_of({dtype::float32, dtype::float32, dtype::float64}), {batch, wide, wide + 1});
  ints size{batch, d.pick(1, 3)};
  for (std::size_t k = 0; k < spatial; ++k) size.push_back(d.pick(1, 6));
  d.settings(size);
  d.maybe("align_corners", std::int64_t{d.pick(0, 1)});
}
inline void draw_columns(operator_drawer& d) {
  d.tame();
  d.op("Col2Im");
  const std::size_t spatial = d.rank(1, 3);
  ints image, block, strides, dilations, pads(2 * spatial, 0);
  std::int64_t taps = 1, places = 1;
  for (std::size_t k = 0; k < spatial; ++k) {
    image.push_back(d.pick(5, 9));
    block.push_back(d.pick(1, 3));
    strides.push_back(d.pick(1, 3));
    dilations.push_back(d.pick(1, 2));
    pads[k] = d.pick(0, 1);
    pads[k + spatial] = d.pick(0, 1);
    taps *= block[k];
    places *= (image[k] + pads[k] + pads[k + spatial] - dilations[k] * (block[k] - 1) - 1) / strides[k] + 1;
  }
  d.data(d.real_type(), {d.extent(), d.extent(1) * taps, places});
  d.settings(image);
  d.settings(block);
  d.set("strides", strides);
  d.set("dilations", dilations);
  d.set("pads", pads);
}
inline void draw_crop(operator_drawer& d) {
  d.op("CenterCropPad");
  const std::size_t rank = d.rank(1, 4);
  const ints axes = d.some_axes(rank);
  d.data(d.number_type(), d.dims(rank));
  ints size;
  for (std::size_t k = 0; k < axes.size(); ++k) size.push_back(d.pick(0, 9));
  d.settings(size);
  d.set("axes", axes);
}
inline void draw_unpooling(operator_drawer& d) {
  d.op("MaxUnpool");
  const std::size_t spatial = d.rank(1, 3);
  const dim_list whole = d.dims(spatial + 2, 1);
  const std::int64_t step = d.pick(1, 3);
  d.data(dtype::float32, whole);
  // Each element goes to the first place of its window, which no other has.
  tensor places(dtype::int64, whole);
  for (std::int64_t i = 0; i < places.size(); ++i) {
    std::int64_t left = i, at = 0, stride = 1;
    for (std::size_t k = whole.size(); k-- > 0;) {
      const std::int64_t grown = k < 2 ? 1 : step;
      at += left % whole[k] * grown * stride;
      left /= whole[k];
      stride *= whole[k] * grown;
    }
    places.mutable_data<std::int64_t>()[static_cast<std::size_t>(i)] = at;
  }
  d.given(std::move(places));
  d.set("kernel_shape", ints(spatial, step));
  d.set("strides", ints(spatial, step));
}
inline void draw_norm(operator_drawer& d) {
  d.tame();
  d.op(d.one_of<std::string_view>({"ReduceL1", "ReduceL2", "ReduceSumSquare", "ReduceSum"}));
  const std::size_t rank = d.rank(0, 4);
  d.data(d.one_of({dtype::float32, dtype::float32, dtype::float16, dtype::float64, dtype::int32, dtype::int64}),
         d.dims(rank));
  if (d.coin()) d.settings(rank == 0 ? ints{} : d.some_axes(rank));
  d.maybe("keepdims", std::int64_t{d.pick(0, 1)});
  d.maybe("noop_with_empty_axes", std::int64_t{d.pick(0, 1)});
}

inline constexpr std::array rare_operator_rows{
    operator_row{"boxes", 3, draw_boxes},
    operator_row{"affine grid", 1, draw_affine_grid},
    operator_row{"columns of windows", 2, draw_columns},
    operator_row{"crop", 2, draw_crop},
    operator_row{"unpooling", 2, draw_unpooling},
    operator_row{"norm", 3, draw_norm},
};

}  // namespace testing

#endif  // DNNOPT_TESTS_PROPERTY_RARE_OPERATOR_ROWS_HPP

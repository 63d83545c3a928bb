// Copies of boxes of elements, and the storage of tensors that they are written to.
#include <catch2/catch.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include <dnnopt/reference/element_copy.hpp>
#include <dnnopt/reference/view.hpp>
#include <dnnopt/tensor.hpp>

using namespace dnnopt;
using namespace dnnopt::reference;

namespace {

/// The offset of each element of the box by its own index, which no walk shares with another.
std::vector<std::pair<std::int64_t, std::int64_t>> positions_of(const strided_box& box) {
  std::vector<std::pair<std::int64_t, std::int64_t>> positions;
  const std::int64_t count = element_count(box.dims);
  for (std::int64_t linear = 0; linear < count; ++linear) {
    std::int64_t rest = linear;
    std::int64_t read = box.read_offset;
    std::int64_t write = box.write_offset;
    for (std::size_t axis = box.dims.size(); axis-- > 0;) {
      read += rest % box.dims[axis] * box.read_strides[axis];
      write += rest % box.dims[axis] * box.write_strides[axis];
      rest /= box.dims[axis];
    }
    positions.emplace_back(read, write);
  }
  return positions;
}

}  // namespace

TEST_CASE("a box of any strides is copied element by element", "[reference]") {
  std::mt19937 random(7);
  const auto draw = [&](int low, int high) { return std::uniform_int_distribution<std::int64_t>(low, high)(random); };
  for (int round = 0; round < 300; ++round) {
    dim_list dims;
    for (std::int64_t rank = draw(0, 4); rank > 0; --rank) dims.push_back(draw(rank == 1 ? 0 : 1, rank < 3 ? 37 : 5));
    std::shuffle(dims.begin(), dims.end(), random);
    // Read by strides of another order of the axes, some of them backwards or not at all.
    std::vector<std::size_t> order(dims.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::shuffle(order.begin(), order.end(), random);
    strided_box box{dims, dim_list(dims.size()), 0, row_major_strides(dims), 0};
    std::int64_t size = 1;
    for (const std::size_t axis : order) {
      box.read_strides[axis] = size;
      size *= std::max<std::int64_t>(dims[axis], 1);
    }
    for (std::size_t axis = 0; axis < dims.size(); ++axis) {
      const std::int64_t way = draw(0, 5);
      if (way == 0) {
        box.read_offset += box.read_strides[axis] * std::max<std::int64_t>(dims[axis] - 1, 0);
        box.read_strides[axis] *= -1;
      } else if (way == 1) {
        box.read_strides[axis] = 0;
      }
    }
    tensor from(round % 2 == 0 ? dtype::int32 : dtype::string, {size});
    for (std::size_t i = 0; i < static_cast<std::size_t>(size); ++i) {
      if (round % 2 == 0)
        from.mutable_data<std::int32_t>()[i] = static_cast<std::int32_t>(i) + 1;
      else
        from.mutable_strings()[i] = std::to_string(i + 1);
    }
    tensor to(from.type(), dims);
    copy_elements(from, to, box);
    bool equal = true;
    for (const auto& [read, write] : positions_of(box)) {
      const auto r = static_cast<std::size_t>(read);
      const auto w = static_cast<std::size_t>(write);
      equal = equal && (round % 2 == 0 ? to.data<std::int32_t>()[w] == from.data<std::int32_t>()[r]
                                       : to.strings()[w] == from.strings()[r]);
    }
    CAPTURE(round, to_string(dims));
    CHECK(equal);
  }
}

TEST_CASE("a new tensor is zero and lies where a device reads it in place", "[reference]") {
  for (const std::int64_t count : {0, 1, 31, 1000, 100000, 3000000}) {
    for (int round = 0; round < 3; ++round) {
      tensor t(dtype::float32, {count});
      CHECK(reinterpret_cast<std::uintptr_t>(t.bytes().data()) % 128 == 0);
      CHECK(std::ranges::all_of(t.data<float>(), [](float e) { return e == 0.0F; }));
      std::ranges::fill(t.mutable_data<float>(), 3.0F);
    }
  }
}

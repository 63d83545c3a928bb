// An operator that only the host has: it brings its own evaluation and no kernel.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include <dnnopt/ops/selection.hpp>
#include <dnnopt/tensor.hpp>

namespace dnnopt::testing {

/// NonZero of float32 under another name: the indices (rank, count) of elements other than zero.
struct host_non_zero_op : ops::non_zero_op {
  static constexpr std::string_view name = "HostNonZero";

  static void evaluate(const attribute_map&, std::span<const tensor> inputs, std::span<tensor> outputs) {
    const auto x = inputs[0].data<float>();
    const dim_list& dims = inputs[0].dims();
    std::vector<std::int64_t> at;
    for (std::size_t i = 0; i < x.size(); ++i)
      if (x[i] != 0) at.push_back(static_cast<std::int64_t>(i));
    const std::size_t count = at.size();
    outputs[0] = tensor(dtype::int64, {static_cast<std::int64_t>(dims.size()), static_cast<std::int64_t>(count)});
    auto out = outputs[0].mutable_data<std::int64_t>();
    for (std::size_t axis = dims.size(); axis-- > 0;)
      for (std::size_t k = 0; k < count; ++k) {
        out[axis * count + k] = at[k] % dims[axis];
        at[k] /= dims[axis];
      }
  }
};

}  // namespace dnnopt::testing

// Tensors of seeded normal deviates.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include <dnnopt/counter_random.hpp>
#include <dnnopt/tensor.hpp>

namespace dnnopt::testing {

/// float32 elements, the same for a seed.
inline tensor noise(dim_list dims, std::uint64_t seed) {
  tensor t(dtype::float32, std::move(dims));
  const counter_random random(seed, 0);
  auto data = t.mutable_data<float>();
  for (std::size_t i = 0; i < data.size(); ++i) data[i] = random.normal(i);
  return t;
}

}  // namespace dnnopt::testing

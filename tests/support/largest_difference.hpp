// How far a result is from what is wanted, over all of its elements.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>

#include <dnnopt/backend/codegen/builder/literal.hpp>
#include <dnnopt/tensor.hpp>

namespace dnnopt::testing {

/// The largest difference over the largest magnitude of all that is wanted. (relative_difference looks at those that
/// differ alone, of which sums that cancel may be the only ones.)
inline double largest_difference(const tensor& got, const tensor& want) {
  double top = 1e-30;
  for (std::size_t i = 0; i < static_cast<std::size_t>(want.size()); ++i)
    top = std::max(top, std::fabs(codegen::number_at(want, i)));
  double worst = 0;
  for (std::size_t i = 0; i < static_cast<std::size_t>(want.size()); ++i) {
    const double difference = std::fabs(codegen::number_at(got, i) - codegen::number_at(want, i));
    worst = difference <= worst ? worst : difference;
  }
  return worst / top;
}

}  // namespace dnnopt::testing

// Owns the reference evaluation of reductions, ArgMax, ArgMin and running totals.
#ifndef DNNOPT_REFERENCE_REDUCTION_HPP
#define DNNOPT_REFERENCE_REDUCTION_HPP

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <dnnopt/ops/reduction.hpp>
#include <dnnopt/reference/elements.hpp>
#include <dnnopt/reference/parallel.hpp>
#include <dnnopt/reference/reference_row.hpp>

namespace dnnopt::reference {

namespace reduction {
using inputs = std::span<const tensor>;
using outputs = std::span<tensor>;

/// Flat offsets of all positions along the dims whose flag is `chosen`, in row-major order.
[[nodiscard]] inline std::vector<std::int64_t> offsets_along(const dim_list& dims, const std::vector<bool>& flags,
                                                             bool chosen) {
  std::vector<std::int64_t> offsets{0};
  std::int64_t stride = element_count(dims);
  for (std::size_t d = 0; d < dims.size(); ++d) {
    stride = dims[d] == 0 ? 0 : stride / dims[d];
    if (flags[d] != chosen) continue;
    std::vector<std::int64_t> next;
    next.reserve(offsets.size() * static_cast<std::size_t>(dims[d]));
    for (const std::int64_t base : offsets)
      for (std::int64_t i = 0; i < dims[d]; ++i) next.push_back(base + i * stride);
    offsets = std::move(next);
  }
  return offsets;
}

/// The output dims of a reduction.
[[nodiscard]] inline dim_list kept_dims(const dim_list& dims, const std::vector<bool>& reduced, bool keepdims) {
  dim_list result;
  for (std::size_t d = 0; d < dims.size(); ++d) {
    if (!reduced[d])
      result.push_back(dims[d]);
    else if (keepdims)
      result.push_back(1);
  }
  return result;
}

/// Reads the reduced elements of one output element.
template <class C>
struct slice {
  const C* data;
  std::span<const std::int64_t> offsets;
  [[nodiscard]] std::size_t size() const { return offsets.size(); }
  [[nodiscard]] C operator[](std::size_t i) const { return data[offsets[i]]; }
};

/// Reduces dims that input 1 names with `f(slice) -> C`.
template <class C, class F>
[[nodiscard]] tensor reduce_as(const attribute_map& attributes, inputs x, const F& f) {
  std::optional<std::vector<std::int64_t>> axes;
  if (has_input(x, 1)) axes = integers_of(x[1]);
  const bool keepdims = attributes.get_int("keepdims", 1) != 0;
  const bool noop = attributes.get_int("noop_with_empty_axes", 0) != 0;
  const std::vector<bool> reduced = ops::reduced_dims(axes, x[0].rank(), noop);
  const std::vector<C> data = load_all<C>(x[0]);
  const auto bases = offsets_along(x[0].dims(), reduced, false);
  const auto offsets = offsets_along(x[0].dims(), reduced, true);
  std::vector<C> result(bases.size());
  parallel_ranges(
      static_cast<std::int64_t>(bases.size()),
      std::max<std::int64_t>(1, (1 << 16) / std::max<std::int64_t>(1, static_cast<std::int64_t>(offsets.size()))),
      [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i)
          result[static_cast<std::size_t>(i)] =
              static_cast<C>(f(slice<C>{data.data() + bases[static_cast<std::size_t>(i)], offsets}));
      });
  return store_all<C>(x[0].type(), kept_dims(x[0].dims(), reduced, keepdims), result);
}

/// In double for floating point, in 64-bit integers otherwise.
template <class F>
void reduce(const attribute_map& attributes, inputs x, outputs y, const F& f) {
  if (is_floating(x[0].type()))
    y[0] = reduce_as<double>(attributes, x, f);
  else if (x[0].type() == dtype::uint64)
    y[0] = reduce_as<std::uint64_t>(attributes, x, f);
  else
    y[0] = reduce_as<std::int64_t>(attributes, x, f);
}

inline void sum(const attribute_map& a, inputs x, outputs y) {
  reduce(a, x, y, []<class C>(const slice<C>& s) {
    C total{};
    for (std::size_t i = 0; i < s.size(); ++i) total += s[i];
    return total;
  });
}
inline void prod(const attribute_map& a, inputs x, outputs y) {
  reduce(a, x, y, []<class C>(const slice<C>& s) {
    C total(1);
    for (std::size_t i = 0; i < s.size(); ++i) total *= s[i];
    return total;
  });
}
inline void mean(const attribute_map& a, inputs x, outputs y) {
  reduce(a, x, y, []<class C>(const slice<C>& s) {
    C total{};
    for (std::size_t i = 0; i < s.size(); ++i) total += s[i];
    if constexpr (!std::is_floating_point_v<C>)
      if (s.size() == 0) return total;
    return total / static_cast<C>(s.size());
  });
}
inline void sum_square(const attribute_map& a, inputs x, outputs y) {
  reduce(a, x, y, []<class C>(const slice<C>& s) {
    C total{};
    for (std::size_t i = 0; i < s.size(); ++i) total += s[i] * s[i];
    return total;
  });
}
inline void l1(const attribute_map& a, inputs x, outputs y) {
  reduce(a, x, y, []<class C>(const slice<C>& s) {
    C total{};
    for (std::size_t i = 0; i < s.size(); ++i) total += s[i] < 0 ? C{} - s[i] : s[i];
    return total;
  });
}
/// The value that a maximum (`sign` 1) or minimum (-1) of no elements has.
template <class C>
[[nodiscard]] C extreme(int sign, dtype type) {
  if constexpr (std::is_floating_point_v<C>)
    return sign > 0 ? -std::numeric_limits<C>::infinity() : std::numeric_limits<C>::infinity();
  const expr_range range = ops::values_of(type);
  if (range == expr_range{}) return sign > 0 ? std::numeric_limits<C>::lowest() : std::numeric_limits<C>::max();
  return static_cast<C>(sign > 0 ? range.low : range.high);
}
inline void max(const attribute_map& a, inputs x, outputs y) {
  reduce(a, x, y, [type = x[0].type()]<class C>(const slice<C>& s) {
    C best = extreme<C>(1, type);
    for (std::size_t i = 0; i < s.size(); ++i)
      if (i == 0 || s[i] > best || s[i] != s[i]) best = s[i];
    return best;
  });
}
inline void min(const attribute_map& a, inputs x, outputs y) {
  reduce(a, x, y, [type = x[0].type()]<class C>(const slice<C>& s) {
    C best = extreme<C>(-1, type);
    for (std::size_t i = 0; i < s.size(); ++i)
      if (i == 0 || s[i] < best || s[i] != s[i]) best = s[i];
    return best;
  });
}
inline void l2(const attribute_map& a, inputs x, outputs y) {
  y[0] = reduce_as<double>(a, x, [](const slice<double>& s) {
    double total = 0;
    for (std::size_t i = 0; i < s.size(); ++i) total += s[i] * s[i];
    return std::sqrt(total);
  });
}
inline void log_sum(const attribute_map& a, inputs x, outputs y) {
  y[0] = reduce_as<double>(a, x, [](const slice<double>& s) {
    double total = 0;
    for (std::size_t i = 0; i < s.size(); ++i) total += s[i];
    return std::log(total);
  });
}
inline void log_sum_exp(const attribute_map& a, inputs x, outputs y) {
  y[0] = reduce_as<double>(a, x, [](const slice<double>& s) {
    double greatest = -std::numeric_limits<double>::infinity();
    for (std::size_t i = 0; i < s.size(); ++i) greatest = std::max(greatest, s[i]);
    if (std::isinf(greatest)) return greatest;
    double total = 0;
    for (std::size_t i = 0; i < s.size(); ++i) total += std::exp(s[i] - greatest);
    return greatest + std::log(total);
  });
}

/// The position of the element that `before(candidate, best)` prefers along attribute `axis`.
template <class Before>
void arg(const attribute_map& attributes, inputs x, outputs y, const Before& before) {
  std::vector<bool> reduced(x[0].rank(), false);
  reduced[normalize_axis(attributes.get_int("axis", 0), x[0].rank())] = true;
  const bool last = attributes.get_int("select_last_index", 0) != 0;
  const auto bases = offsets_along(x[0].dims(), reduced, false);
  const auto offsets = offsets_along(x[0].dims(), reduced, true);
  if (offsets.empty() && !bases.empty())
    throw error(errc::shape_mismatch, "ArgMax or ArgMin along an empty dim of " + to_string(x[0].dims()));
  const auto run = [&]<class C>(type_tag<C>) {
    const std::vector<C> data = load_all<C>(x[0]);
    std::vector<std::int64_t> result(bases.size(), 0);
    for (std::size_t i = 0; i < bases.size(); ++i) {
      const slice<C> s{data.data() + bases[i], offsets};
      std::size_t best = 0;
      for (std::size_t k = 1; k < s.size(); ++k)
        if (before(s[k], s[best]) || (last && s[k] == s[best])) best = k;
      result[i] = static_cast<std::int64_t>(best);
    }
    y[0] = tensor::of<std::int64_t>(kept_dims(x[0].dims(), reduced, attributes.get_int("keepdims", 1) != 0), result);
  };
  if (is_floating(x[0].type()))
    run(type_tag<double>{});
  else if (x[0].type() == dtype::uint64)
    run(type_tag<std::uint64_t>{});
  else
    run(type_tag<std::int64_t>{});
}
inline void arg_max(const attribute_map& a, inputs x, outputs y) {
  arg(a, x, y, [](auto candidate, auto best) { return candidate > best; });
}
inline void arg_min(const attribute_map& a, inputs x, outputs y) {
  arg(a, x, y, [](auto candidate, auto best) { return candidate < best; });
}

/// Running results of `f(total, element)` along the axis of input 1, starting from `start`.
template <class F>
void cumulate(const attribute_map& attributes, inputs x, outputs y, int start, const F& f) {
  const std::vector<std::int64_t> named = integers_of(x[1]);
  if (named.size() != 1) throw error(errc::shape_mismatch, "a running total needs one axis");
  std::vector<bool> along(x[0].rank(), false);
  along[normalize_axis(named[0], x[0].rank())] = true;
  const bool exclusive = attributes.get_int("exclusive", 0) != 0;
  const bool reverse = attributes.get_int("reverse", 0) != 0;
  const auto bases = offsets_along(x[0].dims(), along, false);
  auto offsets = offsets_along(x[0].dims(), along, true);
  if (reverse) std::reverse(offsets.begin(), offsets.end());
  const auto run = [&]<class C>(type_tag<C>) {
    const std::vector<C> data = load_all<C>(x[0]);
    std::vector<C> result(data.size());
    for (const std::int64_t base : bases) {
      C total(static_cast<C>(start));
      for (const std::int64_t offset : offsets) {
        const auto at = static_cast<std::size_t>(base + offset);
        const C next = f(total, data[at]);
        result[at] = exclusive ? total : next;
        total = next;
      }
    }
    y[0] = store_all<C>(x[0].type(), x[0].dims(), result);
  };
  if (is_floating(x[0].type()))
    run(type_tag<double>{});
  else
    run(type_tag<std::int64_t>{});
}
inline void cum_sum(const attribute_map& a, inputs x, outputs y) {
  cumulate(a, x, y, 0, [](auto total, auto v) { return total + v; });
}
inline void cum_prod(const attribute_map& a, inputs x, outputs y) {
  cumulate(a, x, y, 1, [](auto total, auto v) { return total * v; });
}
}  // namespace reduction

/// Evaluations of reductions and running totals.
inline constexpr std::array reduction_rows{
    reference_row{"", "ArgMax", reduction::arg_max},       reference_row{"", "ArgMin", reduction::arg_min},
    reference_row{"", "CumProd", reduction::cum_prod},     reference_row{"", "CumSum", reduction::cum_sum},
    reference_row{"", "ReduceL1", reduction::l1},          reference_row{"", "ReduceL2", reduction::l2},
    reference_row{"", "ReduceLogSum", reduction::log_sum}, reference_row{"", "ReduceLogSumExp", reduction::log_sum_exp},
    reference_row{"", "ReduceMax", reduction::max},        reference_row{"", "ReduceMean", reduction::mean},
    reference_row{"", "ReduceMin", reduction::min},        reference_row{"", "ReduceProd", reduction::prod},
    reference_row{"", "ReduceSum", reduction::sum},        reference_row{"", "ReduceSumSquare", reduction::sum_square},
};

}  // namespace dnnopt::reference

#endif  // DNNOPT_REFERENCE_REDUCTION_HPP

// Owns the expansions of operators that are, but for details of their inputs, standard ones.
#ifndef DNNOPT_ONNX_CONTRIB_ALIAS_HPP
#define DNNOPT_ONNX_CONTRIB_ALIAS_HPP

#include <array>
#include <cstdint>
#include <string>
#include <utility>

#include <dnnopt/onnx/contrib/expansion.hpp>

namespace dnnopt::onnx::contrib {

/// Distances of all rows of A to all rows of B.
inline void expand_distances(expansion& x) {
  const std::string metric = x.attributes().get_string("metric", "sqeuclidean");
  if (metric != "sqeuclidean" && metric != "euclidean") x.refuse("metric '" + metric + "'");
  const value_id apart = x.add("Sub", {x.unsqueeze(x.in(0), {1}), x.unsqueeze(x.in(1), {0})});
  const bool root = metric == "euclidean";
  const value_id sums = x.add("ReduceSum", {x.add("Mul", {apart, apart}), x.integers({2})},
                              with({{"keepdims", std::int64_t{0}}}), root ? no_value : x.out(0));
  if (root) x.give(0, "Sqrt", {sums});
}
inline void expand_expand_dims(expansion& x) {
  x.give(0, "Unsqueeze", {x.in(0), x.cast(x.reshape(x.in(1), {1}), dtype::int64)});
}
inline void expand_gather_nd(expansion& x) { x.give(0, "GatherND", {x.in(0), x.cast(x.in(1), dtype::int64)}); }
inline void expand_grid_sample(expansion& x) {
  attribute_map a = x.attributes();
  const std::string mode = a.get_string("mode", "bilinear");
  a.set("mode", std::string(mode == "bilinear" ? "linear" : mode == "bicubic" ? "cubic" : mode));
  x.give(0, "GridSample", {x.in(0), x.in(1)}, std::move(a));
}
inline void expand_pad(expansion& x) {
  const value_id value = x.has(2) ? x.reshape(x.in(2), {}) : no_value;
  x.give(0, "Pad", {x.in(0), x.reshape(x.in(1), {-1}), value}, x.attributes());
}
inline void expand_range(expansion& x) {
  const auto scalar = [&](value_id v) { return x.rank(v, "bound") == 0 ? v : x.reshape(v, {}); };
  x.give(0, "Range", {scalar(x.in(0)), scalar(x.in(1)), x.has(2) ? scalar(x.in(2)) : x.number(x.in(0), 1)});
}
/// The one-sided transform of the last dim; real and imaginary parts are a new last dim.
inline void expand_rfft(expansion& x) {
  x.refuse_attribute("signal_ndim", 1);
  x.refuse_attribute("normalized", 0);
  x.refuse_attribute("onesided", 1);
  const auto axis = static_cast<std::int64_t>(x.rank(x.in(0), "X")) - 1;
  x.give(0, "DFT", {x.unsqueeze(x.in(0), {axis + 1}), no_value, x.integer(axis)},
         with({{"onesided", std::int64_t{1}}}));
}
inline void expand_trilu(expansion& x) { x.give(0, "Trilu", {x.in(0), x.in(1)}, x.attributes()); }
/// Outputs: the distinct elements in the order of their first occurrence, where each element stands among them, and how
/// often each occurs.
inline void expand_unique(expansion& x) {
  (void)x.add_many("Unique", {x.in(0)}, with({{"sorted", std::int64_t{0}}}), {x.out(0), no_value, x.out(1), x.out(2)});
}

inline constexpr std::array alias_rows{
    contrib_row{"com.microsoft", "CDist", {2, 2}, expand_distances},
    contrib_row{"com.microsoft", "ExpandDims", {2, 2}, expand_expand_dims},
    contrib_row{"com.microsoft", "GatherND", {2, 2}, expand_gather_nd},
    contrib_row{"com.microsoft", "GridSample", {2, 2}, expand_grid_sample},
    contrib_row{"com.microsoft", "Pad", {2, 3}, expand_pad},
    contrib_row{"com.microsoft", "Range", {2, 3}, expand_range},
    contrib_row{"com.microsoft", "Rfft", {1, 1}, expand_rfft},
    contrib_row{"com.microsoft", "Trilu", {1, 2}, expand_trilu},
    contrib_row{"com.microsoft", "Unique", {1, 1, 3, 3}, expand_unique},
};

}  // namespace dnnopt::onnx::contrib

#endif  // DNNOPT_ONNX_CONTRIB_ALIAS_HPP

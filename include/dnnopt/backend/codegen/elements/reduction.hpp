// Owns the element expressions of reductions over axes, of ArgMax and ArgMin, and of running totals.
#ifndef DNNOPT_BACKEND_CODEGEN_ELEMENTS_REDUCTION_HPP
#define DNNOPT_BACKEND_CODEGEN_ELEMENTS_REDUCTION_HPP

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <dnnopt/backend/codegen/elements/element_site.hpp>

namespace dnnopt::codegen {

/// How a reduction starts, takes an element in, combines two partial results and ends. "$a" is the accumulator, "$x"
/// the element or the other partial result, "$n" the number of elements.
struct reduction_row {
  std::string_view name;
  std::string_view first;  ///< of real types; of integers where first_integer is empty
  std::string_view take;
  std::string_view combine;
  std::string_view finish;
  std::string_view finish_integer;  ///< where it differs
  bool finish_is_real = false;      ///< finish_integer gives a double, which the element type cuts
};

/// "lowest" and "highest" stand for the limits of the element type.
inline constexpr std::array reduction_table{
    reduction_row{"ReduceSum", "0", "$a + $x", "$a + $x", "$a", ""},
    reduction_row{"ReduceMean", "0", "$a + $x", "$a + $x", "$a / $n", "$n == 0 ? 0 : $a / $n"},
    reduction_row{"ReduceProd", "1", "$a * $x", "$a * $x", "$a", ""},
    reduction_row{"ReduceMax", "lowest", "$x > $a || $x != $x ? $x : $a", "$x > $a || $x != $x ? $x : $a", "$a", ""},
    reduction_row{"ReduceMin", "highest", "$x < $a || $x != $x ? $x : $a", "$x < $a || $x != $x ? $x : $a", "$a", ""},
    reduction_row{"ReduceL1", "0", "$a + ($x < 0 ? -$x : $x)", "$a + $x", "$a", ""},
    reduction_row{"ReduceL2", "0", "$a + $x * $x", "$a + $x", "sqrt($a)", "sqrt((double)$a)", true},
    reduction_row{"ReduceSumSquare", "0", "$a + $x * $x", "$a + $x", "$a", ""},
    reduction_row{"ReduceLogSum", "0", "$a + $x", "$a + $x", "log($a)", "log((double)$a)", true},
};

/// The row of an operator, or null.
[[nodiscard]] constexpr const reduction_row* find_reduction(std::string_view name) noexcept {
  for (const reduction_row& row : reduction_table)
    if (row.name == name) return &row;
  return nullptr;
}

/// `pattern` with "$a", "$x" and "$n" replaced.
[[nodiscard]] inline std::string fill_reduction(std::string_view pattern, std::string_view a, std::string_view x,
                                                std::string_view n) {
  std::string out;
  for (std::size_t at = 0; at < pattern.size(); ++at) {
    if (pattern[at] != '$') {
      out += pattern[at];
      continue;
    }
    const char which = pattern[++at];
    out += which == 'a' ? a : which == 'x' ? x : n;
  }
  return out;
}

/// The smallest (or largest) value of an element type in its compute type.
[[nodiscard]] inline std::string extreme_of(dtype type, bool lowest) {
  const compute_type compute = c_type_of(type).compute;
  if (compute == compute_type::real || compute == compute_type::real64) return lowest ? "(-INFINITY)" : "INFINITY";
  if (type == dtype::boolean) return lowest ? "0L" : "1L";
  const int bits = row_of(type).packed_bits;
  if (kind_of(type) == dtype_kind::unsigned_integer) {
    if (lowest) return "0";
    return bits == 64 ? "ULONG_MAX" : std::to_string((std::int64_t{1} << bits) - 1) + "L";
  }
  if (bits == 64) return lowest ? "LONG_MIN" : "LONG_MAX";
  const std::int64_t high = (std::int64_t{1} << (bits - 1)) - 1;
  return lowest ? "(" + std::to_string(-high - 1) + "L)" : std::to_string(high) + "L";
}

/// How a reduction starts in an element type.
[[nodiscard]] inline std::string first_of(const reduction_row& row, dtype type) {
  if (row.first == "lowest") return extreme_of(type, true);
  if (row.first == "highest") return extreme_of(type, false);
  return std::string(row.first);
}

/// Which axes of its first input a reduction removes. `noop_with_empty_axes` reduces none.
/// Errors: unsupported where the axes are not known before execution.
[[nodiscard]] inline std::vector<bool> reduced_axes(const element_site& s) {
  const std::size_t rank = s.dims(0).size();
  std::vector<bool> reduced(rank, false);
  const auto axes = s.integers(1);
  if (!axes || axes->empty()) {
    if (s.attributes().get_int("noop_with_empty_axes", 0) == 0) reduced.assign(rank, true);
    return reduced;
  }
  for (const std::int64_t a : *axes) reduced[normalize_axis(a, rank)] = true;
  return reduced;
}

/// The index of the input element of a reduction: from the output's index and one index per reduced axis, in order.
[[nodiscard]] inline std::vector<index_expr> unreduced_index(const std::vector<bool>& reduced, bool keepdims,
                                                             std::span<const index_expr> kept,
                                                             std::span<const index_expr> inner) {
  std::vector<index_expr> at;
  std::size_t k = 0;
  std::size_t r = 0;
  for (std::size_t axis = 0; axis < reduced.size(); ++axis) {
    at.push_back(reduced[axis] ? inner[r++] : kept[keepdims ? axis : k]);
    if (!reduced[axis]) ++k;
  }
  return at;
}

/// What a reduction at an element of its result runs over.
struct reduced_elements {
  explicit reduced_elements(const element_site& site)
      : reduced(reduced_axes(site)), keepdims(site.attributes().get_int("keepdims", 1) != 0) {
    for (std::size_t axis = 0; axis < reduced.size(); ++axis)
      if (reduced[axis]) extents.push_back(site.dims(0)[axis]);
  }
  [[nodiscard]] std::string read(const element_site& site, std::span<const index_expr> inner) const {
    return site.read(0, unreduced_index(reduced, keepdims, site.index, inner));
  }
  std::vector<bool> reduced;
  bool keepdims;
  std::vector<index_expr> extents;
};

/// A double as an element of what is reduced has it: infinity, the logarithm of nothing, is no number of integers.
[[nodiscard]] inline std::string cut_to_input(const element_site& s, const std::string& value) {
  if (element_site::is_real(s.input_compute())) return value;
  return fill_pattern(converted_pattern(s.type_of(0)), "", "", s.b.let(compute_type::real64, value));
}

/// ReduceLogSumExp, by the greatest element, so that no exponential overflows.
inline std::string emit_log_sum_exp(kernel_builder& b, node_id id, std::size_t output,
                                    std::span<const index_expr> index) {
  const element_site s(b, id, output, index);
  const reduced_elements elements(s);
  const compute_type type = s.input_compute();
  const compute_type sum_type = element_site::is_real(type) ? type : compute_type::real64;
  const std::string c(name_of(sum_type));
  const std::string top = b.variable(sum_type, "-INFINITY");
  s.loops("r", elements.extents, [&](const std::vector<index_expr>& at) {
    b.line(top + " = fmax(" + top + ", (" + c + ")" + elements.read(s, at) + ");");
  });
  const std::string base = b.let(sum_type, "isinf(" + top + ") ? 0 : " + top);
  const std::string sum = b.variable(sum_type, "0");
  s.loops("r", elements.extents, [&](const std::vector<index_expr>& at) {
    b.line(sum + " += exp((" + c + ")" + elements.read(s, at) + " - " + base + ");");
  });
  return s.result(cut_to_input(s, "(" + base + " + log(" + sum + "))"));
}

/// The reductions of the table above.
inline std::string emit_reduction(kernel_builder& b, node_id id, std::size_t output,
                                  std::span<const index_expr> index) {
  const element_site s(b, id, output, index);
  const reduced_elements elements(s);
  const compute_type type = s.input_compute();
  const reduction_row* row = find_reduction(s.n().op->name);
  if (row == nullptr) throw s.refuse("no such reduction");
  const std::string a = b.variable(type, first_of(*row, s.type_of(0)));
  s.loops("r", elements.extents, [&](const std::vector<index_expr>& at) {
    const std::string x = elements.read(s, at);
    b.line(a + " = " + fill_reduction(row->take, a, x, "") + ";");
  });
  const std::string_view finish =
      !element_site::is_real(type) && !row->finish_integer.empty() ? row->finish_integer : row->finish;
  const std::string finished = fill_reduction(finish, a, "", index_source(element_count(elements.extents)));
  return s.result(row->finish_is_real ? cut_to_input(s, finished) : finished);
}

/// ArgMax, or ArgMin: the place of the greatest or the least element.
template <bool greatest>
std::string emit_arg(kernel_builder& b, node_id id, std::size_t output, std::span<const index_expr> index) {
  const element_site s(b, id, output, index);
  const std::size_t rank = s.dims(0).size();
  const std::size_t axis = normalize_axis(s.attributes().get_int("axis", 0), rank);
  const bool keepdims = s.attributes().get_int("keepdims", 1) != 0;
  const bool last = s.attributes().get_int("select_last_index", 0) != 0;
  std::vector<bool> reduced(rank, false);
  reduced[axis] = true;
  if (s.dims(0)[axis] == index_expr(0))
    throw error(errc::invalid_argument, "node '" + s.n().name + "' (" + std::string(s.n().op->name) +
                                            "): no element along the empty axis " + std::to_string(axis));
  const std::string sign = greatest ? (last ? " >= " : " > ") : (last ? " <= " : " < ");
  const auto at = [&](const index_expr& i) {
    return unreduced_index(reduced, keepdims, s.index, std::span<const index_expr>(&i, 1));
  };
  const std::string best = b.variable(s.input_compute(), "0");
  const std::string where = b.variable(compute_type::integer, "0");
  s.loop("r", s.dims(0)[axis], [&](const index_expr& r) {
    const std::string x = s.read(0, at(r));
    b.line("if (" + index_source(r) + " == 0 || " + x + sign + best + ") { " + best + " = " + x + "; " + where + " = " +
           index_source(r) + "; }");
  });
  return where;
}

/// CumSum, or CumProd.
template <bool product>
std::string emit_cumulative(kernel_builder& b, node_id id, std::size_t output, std::span<const index_expr> index) {
  const element_site s(b, id, output, index);
  const auto axes = s.integers(1);
  if (!axes || axes->size() != 1) throw s.refuse("the axis is not known before execution");
  const std::size_t axis = normalize_axis((*axes)[0], s.dims(0).size());
  const bool exclusive = s.attributes().get_int("exclusive", 0) != 0;
  const bool reverse = s.attributes().get_int("reverse", 0) != 0;
  const std::string a = b.variable(s.compute(), product ? "1" : "0");
  std::vector<index_expr> at = s.index;
  const index_expr from = reverse ? s.index[axis] + (exclusive ? 1 : 0) : index_expr(0);
  const index_expr count = reverse ? s.dims(0)[axis] - from : s.index[axis] + (exclusive ? 0 : 1);
  s.loop("r", count, [&](const index_expr& r) {
    at[axis] = from + r;
    b.line(a + (product ? " *= " : " += ") + s.read(0, at) + ";");
  });
  return s.result(a);
}

inline constexpr std::array reduction_emitters{
    emitter_row{"", "ReduceSum", emit_reduction},      emitter_row{"", "ReduceMean", emit_reduction},
    emitter_row{"", "ReduceMax", emit_reduction},      emitter_row{"", "ReduceMin", emit_reduction},
    emitter_row{"", "ReduceProd", emit_reduction},     emitter_row{"", "ReduceL1", emit_reduction},
    emitter_row{"", "ReduceL2", emit_reduction},       emitter_row{"", "ReduceSumSquare", emit_reduction},
    emitter_row{"", "ReduceLogSum", emit_reduction},   emitter_row{"", "ReduceLogSumExp", emit_log_sum_exp},
    emitter_row{"", "ArgMax", emit_arg<true>},         emitter_row{"", "ArgMin", emit_arg<false>},
    emitter_row{"", "CumSum", emit_cumulative<false>}, emitter_row{"", "CumProd", emit_cumulative<true>},
};

}  // namespace dnnopt::codegen

#endif  // DNNOPT_BACKEND_CODEGEN_ELEMENTS_REDUCTION_HPP

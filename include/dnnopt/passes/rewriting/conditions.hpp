// Owns the conditions that rules name: what they ask of values, shapes, types and attributes.
#ifndef DNNOPT_PASSES_REWRITING_CONDITIONS_HPP
#define DNNOPT_PASSES_REWRITING_CONDITIONS_HPP

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <dnnopt/graph.hpp>
#include <dnnopt/ops/window.hpp>
#include <dnnopt/passes/rewriting/constants.hpp>
#include <dnnopt/passes/rewriting/matcher.hpp>

namespace dnnopt::rewriting {

/// What a condition looks at: a match and the arguments that the rule's text gives it.
struct condition_site {
  const graph& g;
  const compiled_rule& rule;
  const rule_match& match;
  std::span<const std::string_view> arguments;

  [[nodiscard]] value_id value(std::size_t i) const { return match.value_of(rule, arguments[i]); }
  [[nodiscard]] const value_facts& facts(std::size_t i) const { return g.facts(value(i)); }
  [[nodiscard]] const node& node_at(std::size_t i) const { return g.node_at(match.node_of(rule, arguments[i])); }
  [[nodiscard]] std::int64_t integer(std::size_t i) const {
    return std::strtoll(std::string(arguments[i]).c_str(), nullptr, 10);
  }
  [[nodiscard]] double real(std::size_t i) const { return std::strtod(std::string(arguments[i]).c_str(), nullptr); }
};

namespace detail {

/// The axes over which a reduction or softmax of known rank runs, or nothing where they are not known.
[[nodiscard]] inline std::optional<std::vector<std::size_t>> aggregated_axes(const graph& g, const node& n) {
  const value_facts& data = g.facts(n.inputs[0]);
  if (!data.dims) return std::nullopt;
  const std::size_t rank = data.dims->size();
  std::vector<std::size_t> axes;
  if (n.op->kind == computation_kind::softmax) {
    axes.push_back(normalize_axis(n.attributes.get_int("axis", -1), rank));
    return axes;
  }
  if (n.inputs.size() > 1 && n.inputs[1] != no_value) {
    const value_facts& given = g.facts(n.inputs[1]);
    if (!given.is_constant()) return std::nullopt;
    for (const std::int64_t axis : integers_of(given.constant)) axes.push_back(normalize_axis(axis, rank));
  }
  if (axes.empty() && n.attributes.get_int("noop_with_empty_axes", 0) == 0)
    for (std::size_t k = 0; k < rank; ++k) axes.push_back(k);
  std::sort(axes.begin(), axes.end());
  return axes;
}

/// Whether no dim is ever 0 from axis `from` on.
[[nodiscard]] inline bool never_empty(const value_facts& facts, std::size_t from = 0) {
  return facts.dims &&
         std::all_of(facts.dims->begin() + static_cast<std::ptrdiff_t>(std::min(from, facts.dims->size())),
                     facts.dims->end(), [](const index_expr& dim) { return dim.range().low >= 1; });
}

/// Whether each window of a pool has an element of the pool's input, whatever the dims are: none lies in the padding
/// alone. Windows that step over elements count as such that may.
[[nodiscard]] inline bool windows_meet_input(const graph& g, const node& pool) {
  const value_facts& data = g.facts(pool.inputs[0]);
  const std::vector<std::int64_t> kernel = pool.attributes.get_ints("kernel_shape");
  if (!data.dims || data.dims->size() < 3 || kernel.size() + 2 != data.dims->size()) return false;
  const bool beyond = pool.attributes.get_int("ceil_mode", 0) != 0;
  const bool automatic = dnnopt::detail::pads_automatically(pool.attributes.get_string("auto_pad", ""));
  const auto axes = windows(pool.attributes, std::span(*data.dims).subspan(2), kernel, beyond);
  return std::all_of(axes.begin(), axes.end(), [&](const window_axis& axis) {
    if (axis.dilation != 1) return false;
    // What auto_pad adds is less than a window, and nothing where nothing is there.
    if (automatic) return true;
    const std::int64_t begin = axis.pad_begin.constant();
    const std::int64_t end = axis.pad_end.constant();
    // The last window starts within the input, by the rule of ceil_mode or because the padding ends before.
    const bool meets = begin < axis.kernel && (beyond || end < axis.kernel);
    const bool none_of_nothing = axis.input.range().low >= 1 || (beyond ? begin == 0 : begin + end < axis.kernel);
    return meets && none_of_nothing;
  });
}

/// Whether every element of a value is known to be at least 0 (or above 0, where `strictly`), from constants and from
/// the operators that make it. NaN counts as either.
[[nodiscard]] inline bool known_sign(const graph& g, value_id id, bool strictly, int depth = 4) {
  const value_facts& facts = g.facts(id);
  if (facts.is_constant()) {
    const auto numbers = numbers_of(facts.constant);
    return numbers &&
           std::all_of(numbers->begin(), numbers->end(), [strictly](double v) { return strictly ? v > 0 : v >= 0; });
  }
  const node_id producer = g.value_at(id).producer;
  if (producer == no_node || depth == 0) return false;
  struct sign_row {
    std::string_view op;
    bool positive;  // above 0 whatever the input; else at least 0
    int through;    // inputs that must have the sign themselves: 0 none, 1 the first, 2 the first two
    /// What reduces nothing has the sign: always, where 0 has it, or not at all, for it gives the least number.
    enum { has, as_zero, lacks } of_nothing = has;
    /// What the sign of two inputs needs less for: one of them above 0 makes a sum so, and a square is never below.
    enum { nothing, of_one, of_square } less = nothing;
  };
  constexpr std::array rows{sign_row{"Exp", false, 0},
                            sign_row{"Sigmoid", false, 0},
                            sign_row{"Relu", false, 0},
                            sign_row{"Abs", false, 0},
                            sign_row{"Softmax", false, 0},
                            sign_row{"Sqrt", false, 0},
                            sign_row{"ReduceL1", false, 0},
                            sign_row{"ReduceL2", false, 0},
                            sign_row{"ReduceSumSquare", false, 0},
                            sign_row{"HardSigmoid", false, 0},
                            sign_row{"Softplus", false, 0},
                            sign_row{"Add", false, 2, sign_row::has, sign_row::of_one},
                            sign_row{"Mul", false, 2, sign_row::has, sign_row::of_square},
                            sign_row{"ReduceSum", false, 1, sign_row::as_zero},
                            sign_row{"ReduceMean", false, 1},
                            sign_row{"ReduceMax", false, 1, sign_row::lacks},
                            sign_row{"ReduceMin", false, 1},
                            sign_row{"Max", false, 2}};
  const node& n = g.node_at(producer);
  if (!n.op->domain.empty()) return false;
  for (const sign_row& row : rows) {
    if (row.op != n.op->name) continue;
    if (row.through == 0) return !strictly || row.positive;
    if (static_cast<int>(n.inputs.size()) < row.through || (row.through == 2 && n.inputs.size() != 2)) return false;
    if (!strictly && row.less == sign_row::of_square && n.inputs[0] == n.inputs[1]) return true;
    if (strictly && row.less == sign_row::of_one)
      return (known_sign(g, n.inputs[0], true, depth - 1) && known_sign(g, n.inputs[1], false, depth - 1)) ||
             (known_sign(g, n.inputs[1], true, depth - 1) && known_sign(g, n.inputs[0], false, depth - 1));
    const bool needs_elements = row.of_nothing == sign_row::lacks || (strictly && row.of_nothing == sign_row::as_zero);
    if (needs_elements && !never_empty(g.facts(n.inputs[0]))) return false;
    for (int i = 0; i < row.through; ++i)
      if (!known_sign(g, n.inputs[static_cast<std::size_t>(i)], strictly, depth - 1)) return false;
    return true;
  }
  return false;
}

/// Whether two attributes of numbers, lists of numbers or texts are equal; others count as different.
[[nodiscard]] inline bool same_attribute(const attribute& a, const attribute& b) {
  if (a.index() != b.index()) return false;
  if (const auto* v = std::get_if<std::int64_t>(&a)) return *v == std::get<std::int64_t>(b);
  if (const auto* v = std::get_if<float>(&a)) return *v == std::get<float>(b);
  if (const auto* v = std::get_if<std::string>(&a)) return *v == std::get<std::string>(b);
  if (const auto* v = std::get_if<std::vector<std::int64_t>>(&a)) return *v == std::get<std::vector<std::int64_t>>(b);
  return false;
}

[[nodiscard]] inline bool keeps_dims(const node& n) { return n.attributes.get_int("keepdims", 1) != 0; }

}  // namespace detail

/// A condition by name.
struct condition_row {
  std::string_view name;
  bool (*holds)(const condition_site& site);
};

/// The conditions that the standard tables use; arguments are variables, labels or numbers.
inline constexpr std::array condition_table{
    // constant(a): a is known before execution.
    condition_row{"constant", [](const condition_site& s) { return s.facts(0).is_constant(); }},
    // scalar(a): a constant whose elements are all one number.
    condition_row{"scalar", [](const condition_site& s) { return uniform_value(s.facts(0)).has_value(); }},
    // single(a): a has one element, known or not.
    condition_row{
        "single",
        [](const condition_site& s) { return s.facts(0).dims && element_count(*s.facts(0).dims) == index_expr(1); }},
    // nonempty(a): no dim of a is ever 0.
    condition_row{"nonempty", [](const condition_site& s) { return detail::never_empty(s.facts(0)); }},
    // filled_planes(a): no dim of a behind batch and channels is ever 0.
    condition_row{"filled_planes", [](const condition_site& s) { return detail::never_empty(s.facts(0), 2); }},
    // windows_meet(p): each window of pool p has an element of its input.
    condition_row{"windows_meet",
                  [](const condition_site& s) { return detail::windows_meet_input(s.g, s.node_at(0)); }},
    // above(a, n), below(a, n): every element of constant a is.
    condition_row{"above",
                  [](const condition_site& s) {
                    const auto v = numbers_of(s.facts(0).constant);
                    return v && std::all_of(v->begin(), v->end(), [&](double x) { return x > s.real(1); });
                  }},
    condition_row{"below",
                  [](const condition_site& s) {
                    const auto v = numbers_of(s.facts(0).constant);
                    return v && std::all_of(v->begin(), v->end(), [&](double x) { return x < s.real(1); });
                  }},
    // nonnegative(a), positive(a): known from constants and from the operators that make a.
    condition_row{"nonnegative", [](const condition_site& s) { return detail::known_sign(s.g, s.value(0), false); }},
    condition_row{"positive", [](const condition_site& s) { return detail::known_sign(s.g, s.value(0), true); }},
    // floating(a), integer(a), boolean(a): the element type.
    condition_row{"floating", [](const condition_site& s) { return is_floating(s.facts(0).type); }},
    condition_row{"integer", [](const condition_site& s) { return is_integer(s.facts(0).type); }},
    condition_row{"boolean", [](const condition_site& s) { return s.facts(0).type == dtype::boolean; }},
    // same_shape(a, b): dims are equal, symbols included.
    condition_row{"same_shape",
                  [](const condition_site& s) {
                    return s.facts(0).dims && s.facts(1).dims && *s.facts(0).dims == *s.facts(1).dims;
                  }},
    // rank(a, n).
    condition_row{"rank",
                  [](const condition_site& s) {
                    return s.facts(0).dims && static_cast<std::int64_t>(s.facts(0).dims->size()) == s.integer(1);
                  }},
    // last_axis(r): the reduction or softmax labelled r runs over the last axis alone and keeps the rank.
    condition_row{"last_axis",
                  [](const condition_site& s) {
                    const node& n = s.node_at(0);
                    const auto axes = detail::aggregated_axes(s.g, n);
                    return axes && axes->size() == 1 && axes->front() + 1 == s.g.facts(n.inputs[0]).dims->size() &&
                           detail::keeps_dims(n);
                  }},
    // spatial_axes(r): over all dims from the third on, and keeps the rank.
    condition_row{"spatial_axes",
                  [](const condition_site& s) {
                    const node& n = s.node_at(0);
                    const auto axes = detail::aggregated_axes(s.g, n);
                    if (!axes || axes->empty() || axes->front() != 2 || !detail::keeps_dims(n)) return false;
                    return axes->size() + 2 == s.g.facts(n.inputs[0]).dims->size();
                  }},
    // channel_axis(r): over dim 1 alone, and keeps the rank.
    condition_row{"channel_axis",
                  [](const condition_site& s) {
                    const node& n = s.node_at(0);
                    const auto axes = detail::aggregated_axes(s.g, n);
                    return axes && axes->size() == 1 && axes->front() == 1 && detail::keeps_dims(n);
                  }},
    // same_axes(r, q): two reductions over the same known axes, with keepdims alike.
    condition_row{"same_axes",
                  [](const condition_site& s) {
                    const auto a = detail::aggregated_axes(s.g, s.node_at(0));
                    const auto b = detail::aggregated_axes(s.g, s.node_at(1));
                    return a && b && *a == *b && detail::keeps_dims(s.node_at(0)) == detail::keeps_dims(s.node_at(1));
                  }},
    // same_attribute(r, q, key): two labelled nodes have an equal integer attribute.
    condition_row{"same_attribute",
                  [](const condition_site& s) {
                    const attribute* a = s.node_at(0).attributes.find(s.arguments[2]);
                    const attribute* b = s.node_at(1).attributes.find(s.arguments[2]);
                    return a != nullptr && b != nullptr && detail::same_attribute(*a, *b);
                  }},
    // same_attributes(r, q): two labelled nodes have equal attributes of numbers and texts.
    condition_row{"same_attributes",
                  [](const condition_site& s) {
                    const attribute_map& a = s.node_at(0).attributes;
                    const attribute_map& b = s.node_at(1).attributes;
                    if (a.size() != b.size()) return false;
                    for (const auto& [key, held] : a) {
                      const attribute* other = b.find(key);
                      if (other == nullptr || !detail::same_attribute(held, *other)) return false;
                    }
                    return true;
                  }},
    // row_of(w, a): w is a vector as long as a's last dim.
    condition_row{"row_of",
                  [](const condition_site& s) {
                    const auto& w = s.facts(0).dims;
                    const auto& a = s.facts(1).dims;
                    return w && a && w->size() == 1 && !a->empty() && (*w)[0] == a->back();
                  }},
    // channels_of(w, a): a constant of one element for each element of a's dim 1, laid out [c, 1, ...] or [1, c, 1,
    // ...].
    condition_row{"channels_of",
                  [](const condition_site& s) {
                    const auto& w = s.facts(0).dims;
                    const auto& a = s.facts(1).dims;
                    if (!w || !a || a->size() < 2 || w->size() > a->size() || w->size() + 1 < a->size()) return false;
                    const std::size_t channel = w->size() + 1 - a->size();
                    for (std::size_t k = 0; k < w->size(); ++k)
                      if (!((*w)[k] == (k == channel ? (*a)[1] : index_expr(1)))) return false;
                    return true;
                  }},
    // dim(a, k, n): dim k of a is the number n.
    condition_row{"dim",
                  [](const condition_site& s) {
                    const auto& a = s.facts(0).dims;
                    const auto k = static_cast<std::size_t>(s.integer(1));
                    return a && k < a->size() && (*a)[k] == index_expr(s.integer(2));
                  }},
    // known_dim(a, k): dim k of a is a number.
    condition_row{"known_dim",
                  [](const condition_site& s) {
                    const auto& a = s.facts(0).dims;
                    const auto k = static_cast<std::size_t>(s.integer(1));
                    return a && k < a->size() && (*a)[k].is_constant();
                  }},
    // same_dim(a, b, k): dim k of both is the same.
    condition_row{"same_dim",
                  [](const condition_site& s) {
                    const auto& a = s.facts(0).dims;
                    const auto& b = s.facts(1).dims;
                    const auto k = static_cast<std::size_t>(s.integer(2));
                    return a && b && k < a->size() && k < b->size() && (*a)[k] == (*b)[k];
                  }},
    // typed(a): the element type is known. signed(a): it is a floating or signed integer type.
    condition_row{"typed", [](const condition_site& s) { return s.facts(0).type != dtype::undefined; }},
    condition_row{"signed",
                  [](const condition_site& s) {
                    return is_floating(s.facts(0).type) || kind_of(s.facts(0).type) == dtype_kind::signed_integer;
                  }},
    // resizes_by_one(r): the labelled Resize takes every element from its own place.
    condition_row{"resizes_by_one",
                  [](const condition_site& s) {
                    const node& n = s.node_at(0);
                    if (n.attributes.get_string("coordinate_transformation_mode", "half_pixel") == "tf_crop_and_resize")
                      return false;
                    if (n.inputs.size() < 3 || n.inputs[2] == no_value) return true;
                    if (s.g.facts(n.inputs[2]).is_constant() && s.g.facts(n.inputs[2]).constant.size() == 0)
                      return true;
                    return uniform_value(s.g.facts(n.inputs[2])) == 1.0;
                  }},
    // told(a): each element of the integer vector is known as an expression before execution.
    condition_row{"told", [](const condition_site& s) { return s.facts(0).elements || s.facts(0).is_constant(); }},
    // filled(c): the labelled ConstantOfShape's value is not 0.
    condition_row{"filled",
                  [](const condition_site& s) {
                    const attribute* value = s.node_at(0).attributes.find("value");
                    const tensor* held = value == nullptr ? nullptr : std::get_if<tensor>(value);
                    const auto numbers = held == nullptr ? std::nullopt : numbers_of(*held);
                    return numbers && numbers->size() == 1 && numbers->front() != 0;
                  }},
    // misplaced(a, b): a is constant and b is not, so that b ought to come first.
    condition_row{"misplaced",
                  [](const condition_site& s) { return s.facts(0).is_constant() && !s.facts(1).is_constant(); }},
    // one_reader(a): nothing else reads what the labelled node makes.
    condition_row{"one_reader",
                  [](const condition_site& s) {
                    return s.g.value_at(s.value(0)).uses.size() == 1 && !s.g.is_output(s.value(0));
                  }},
    // swaps_last(t): the labelled Transpose moves the last two dims only.
    condition_row{"swaps_last",
                  [](const condition_site& s) {
                    const std::vector<std::int64_t> perm = s.node_at(0).attributes.get_ints("perm");
                    for (std::size_t k = 0; k < perm.size(); ++k) {
                      const std::size_t from = k + 2 < perm.size() ? k : k + 2 == perm.size() ? k + 1 : k - 1;
                      if (perm[k] != static_cast<std::int64_t>(from)) return false;
                    }
                    return perm.size() >= 2;
                  }},
};

/// Whether all conditions of a rule hold for a match. Errors: invalid_argument for a name that no table has.
[[nodiscard]] inline bool conditions_hold(const graph& g, const compiled_rule& rule, const rule_match& match) {
  for (const condition_term& wanted : rule.conditions) {
    const auto row = std::find_if(condition_table.begin(), condition_table.end(),
                                  [&](const condition_row& r) { return r.name == wanted.name; });
    if (row == condition_table.end())
      throw error(errc::invalid_argument, "rule '" + std::string(rule.rule->name) + "' asks for '" +
                                              std::string(wanted.name) + "', which is no condition");
    if (row->holds({g, rule, match, wanted.arguments}) == wanted.negated) return false;
  }
  return true;
}

}  // namespace dnnopt::rewriting

#endif  // DNNOPT_PASSES_REWRITING_CONDITIONS_HPP

// Owns the check of drawn operators: as models at several shapes, on a device in each form of kernels, against the
// reference backend.
#ifndef DNNOPT_TESTS_PROPERTY_OPERATOR_CASES_HPP
#define DNNOPT_TESTS_PROPERTY_OPERATOR_CASES_HPP

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <dnnopt/backend/codegen/builder/literal.hpp>
#include <dnnopt/backend/measure/opened_device.hpp>
#include <dnnopt/graph.hpp>
#include <dnnopt/model.hpp>
#include <dnnopt/ops/standard.hpp>
#include <dnnopt/reference/evaluate_node.hpp>
#include <dnnopt/session.hpp>

#include "property/anchor_operator_rows.hpp"
#include "property/indexed_operator_rows.hpp"
#include "property/operator_rows.hpp"
#include "property/quantized_operator_rows.hpp"
#include "property/rare_operator_rows.hpp"

namespace testing {

inline constexpr std::uint64_t most_variants = 3;

/// Which dims of what a run is given are symbols.
enum class symbol_policy { none, each_its_own, equal_ones_shared, some };

/// An operator at one or several shapes: everything beside extents and contents is the same.
struct operator_case {
  std::uint64_t seed = 0;
  std::string row;
  std::vector<drawn_operator> variants;
  symbol_policy symbols = symbol_policy::none;
  std::string before;  ///< an operator on the first real input, or nothing
  std::string behind;  ///< an operator on the first output where that is real, or nothing
};

namespace detail {

inline bool same(const tensor& a, const tensor& b) {
  const auto x = a.bytes();
  const auto y = b.bytes();
  return a.type() == b.type() && a.dims() == b.dims() && std::equal(x.begin(), x.end(), y.begin(), y.end());
}
inline bool same(const dnnopt::attribute& a, const dnnopt::attribute& b) {
  if (a.index() != b.index()) return false;
  if (const auto* t = std::get_if<tensor>(&a)) return same(*t, std::get<tensor>(b));
  if (const auto* i = std::get_if<std::int64_t>(&a)) return *i == std::get<std::int64_t>(b);
  if (const auto* f = std::get_if<float>(&a)) return *f == std::get<float>(b);
  if (const auto* s = std::get_if<std::string>(&a)) return *s == std::get<std::string>(b);
  if (const auto* n = std::get_if<ints>(&a)) return *n == std::get<ints>(b);
  return false;
}
/// Whether both are one model at two shapes.
inline bool same_model(const drawn_operator& a, const drawn_operator& b) {
  if (a.op != b.op || a.outputs != b.outputs || a.inputs.size() != b.inputs.size() ||
      a.attributes.size() != b.attributes.size())
    return false;
  for (std::size_t i = 0; i < a.attributes.size(); ++i)
    if (a.attributes[i].first != b.attributes[i].first || !same(a.attributes[i].second, b.attributes[i].second))
      return false;
  for (std::size_t i = 0; i < a.inputs.size(); ++i) {
    const drawn_input& x = a.inputs[i];
    const drawn_input& y = b.inputs[i];
    if (x.constant != y.constant || x.content.type() != y.content.type() || x.content.rank() != y.content.rank() ||
        (x.constant && !same(x.content, y.content)))
      return false;
  }
  return true;
}
inline bool is_real(dtype t) {
  return t == dtype::float32 || t == dtype::float16 || t == dtype::bfloat16 || t == dtype::float64;
}

}  // namespace detail

/// The rows of all tables whose name holds `part`.
[[nodiscard]] inline std::vector<const operator_row*> rows_named(std::string_view part) {
  std::vector<const operator_row*> found;
  for (const operator_row& row : layout_operator_rows)
    if (row.name.find(part) != std::string_view::npos) found.push_back(&row);
  for (const operator_row& row : anchor_operator_rows)
    if (row.name.find(part) != std::string_view::npos) found.push_back(&row);
  for (const operator_row& row : indexed_operator_rows)
    if (row.name.find(part) != std::string_view::npos) found.push_back(&row);
  for (const operator_row& row : quantized_operator_rows)
    if (row.name.find(part) != std::string_view::npos) found.push_back(&row);
  for (const operator_row& row : rare_operator_rows)
    if (row.name.find(part) != std::string_view::npos) found.push_back(&row);
  return found;
}

/// The case of a seed, from the rows whose name holds `part`. Precondition: there are some.
[[nodiscard]] inline operator_case drawn_case(std::uint64_t seed, std::string_view part = "") {
  const std::vector<const operator_row*> rows = rows_named(part);
  int all = 0;
  for (const operator_row* row : rows) all += row->weight;
  operator_case made;
  made.seed = seed;
  for (std::uint64_t variant = 0; variant < most_variants; ++variant) {
    operator_drawer d(seed, variant);
    int at = d.pick(0, all - 1);
    const auto chosen =
        *std::find_if(rows.begin(), rows.end(), [&](const operator_row* row) { return (at -= row->weight) < 0; });
    const auto symbols = static_cast<symbol_policy>(d.one_of({0, 1, 1, 2, 3, 3}));
    std::string before = d.rarely(3) ? d.name_of({"Neg", "Abs", "Identity", "Relu"}) : "";
    std::string behind = d.rarely(3) ? d.name_of({"Neg", "Abs", "Relu", "Identity"}) : "";
    chosen->draw(d);
    if (variant == 0) {
      made.row = chosen->name;
      made.symbols = symbols;
      made.before = std::move(before);
      made.behind = std::move(behind);
    } else if (!detail::same_model(made.variants[0], d.made)) {
      continue;
    }
    made.variants.push_back(std::move(d.made));
    if (symbols == symbol_policy::none) break;
  }
  return made;
}

/// What a graph of one or several cases asks for and gives.
struct case_ports {
  std::vector<std::size_t> inputs;  ///< numbers of the case's inputs that a run is given, in the graph's order
  std::vector<dnnopt::value_id> outputs;
};

/// Adds a case to a graph, with names of its own.
[[nodiscard]] inline case_ports add_case(dnnopt::graph& g, const dnnopt::op_set& ops, const operator_case& c) {
  const drawn_operator& first = c.variants[0];
  const std::string own = "s" + std::to_string(c.seed) + "_";
  std::mt19937_64 chance(c.seed + 7);
  case_ports ports;
  std::map<std::vector<std::int64_t>, dnnopt::index_expr> shared;
  const auto dim_of = [&](std::size_t input, std::size_t k) {
    std::vector<std::int64_t> extents;
    for (const drawn_operator& v : c.variants) extents.push_back(v.inputs[input].content.dims()[k]);
    const bool constant = std::all_of(extents.begin(), extents.end(), [&](std::int64_t e) { return e == extents[0]; });
    if (c.symbols == symbol_policy::none || (constant && c.symbols == symbol_policy::some && chance() % 2 == 0))
      return dnnopt::index_expr(extents[0]);
    if (c.symbols == symbol_policy::equal_ones_shared) {
      const auto known = shared.find(extents);
      if (known != shared.end()) return known->second;
    }
    const dnnopt::index_expr symbol = g.expressions().symbol(own + std::to_string(input) + "_" + std::to_string(k));
    shared.emplace(extents, symbol);
    return symbol;
  };
  const auto element_wise = [&](const std::string& op, dnnopt::value_id v) {
    const dnnopt::value_id out = g.add_value(own + op + std::to_string(v));
    g.add_node(ops.at("", op), own + op + std::to_string(v), {v}, {out}, {});
    return out;
  };
  std::vector<dnnopt::value_id> inputs;
  bool led = c.before.empty();
  for (std::size_t i = 0; i < first.inputs.size(); ++i) {
    const drawn_input& in = first.inputs[i];
    if (in.content.empty()) {
      inputs.push_back(dnnopt::no_value);
      continue;
    }
    const std::string name = own + "x" + std::to_string(i);
    if (in.constant) {
      inputs.push_back(g.add_constant(name, in.content));
      continue;
    }
    dnnopt::shape dims;
    for (std::size_t k = 0; k < in.content.rank(); ++k) dims.push_back(dim_of(i, k));
    inputs.push_back(g.add_input(name, in.content.type(), dims));
    ports.inputs.push_back(i);
    if (!led && detail::is_real(in.content.type())) {
      inputs.back() = element_wise(c.before, inputs.back());
      led = true;
    }
  }
  dnnopt::attribute_map attributes;
  for (const auto& [key, value] : first.attributes) attributes.set(key, value);
  for (std::size_t o = 0; o < first.outputs; ++o) ports.outputs.push_back(g.add_value(own + "y" + std::to_string(o)));
  g.add_node(ops.at("", first.op), own + first.op, inputs, ports.outputs, std::move(attributes));
  static constexpr std::string_view booleans_or_integers[] = {
      "IsNaN",  "IsInf",  "Less",   "Greater",  "LessOrEqual",    "GreaterOrEqual",        "Equal",
      "ArgMax", "ArgMin", "Cast",   "CastLike", "Range",          "ConstantOfShape",       "EyeLike",
      "Shape",  "Size",   "OneHot", "NonZero",  "QuantizeLinear", "DynamicQuantizeLinear", "MatMulInteger",
      "And",    "Or",     "Xor"};
  if (!c.behind.empty() && !first.inputs.empty() && detail::is_real(first.inputs[0].content.type()) &&
      std::find(std::begin(booleans_or_integers), std::end(booleans_or_integers), first.op) ==
          std::end(booleans_or_integers))
    ports.outputs[0] = element_wise(c.behind, ports.outputs[0]);
  for (const dnnopt::value_id v : ports.outputs) g.add_output(v);
  return ports;
}

/// The inputs of a case at a variant, by the names that add_case gives.
inline void add_inputs(const operator_case& c, std::size_t variant, dnnopt::named_tensors& to) {
  const drawn_operator& of = c.variants[std::min(variant, c.variants.size() - 1)];
  for (std::size_t i = 0; i < of.inputs.size(); ++i)
    if (!of.inputs[i].constant && !of.inputs[i].content.empty())
      to.add("s" + std::to_string(c.seed) + "_x" + std::to_string(i), of.inputs[i].content);
}

/// As many digits as tell floats apart.
[[nodiscard]] inline std::string shortest(double number) {
  char text[32];
  std::snprintf(text, sizeof text, "%.9g", number);
  return text;
}

/// Where `found` is not `expected` within what rounding to the type and sums in float allow; empty where it is.
[[nodiscard]] inline std::string difference_of(const tensor& expected, const tensor& found) {
  if (expected.type() != found.type())
    return "type " + std::string(dnnopt::name_of(found.type())) + ", not " +
           std::string(dnnopt::name_of(expected.type()));
  if (expected.dims() != found.dims())
    return "dims " + dnnopt::to_string(found.dims()) + ", not " + dnnopt::to_string(expected.dims());
  const bool real = detail::is_real(expected.type());
  const double relative = expected.type() == dtype::float16 ? 6e-3 : expected.type() == dtype::bfloat16 ? 5e-2 : 1e-3;
  const double share = relative / 5;
  double largest = 0;
  const auto count = static_cast<std::size_t>(expected.size());
  if (!real) {
    for (std::size_t i = 0; i < count; ++i)
      if (dnnopt::codegen::number_at(expected, i) != dnnopt::codegen::number_at(found, i))
        return "element " + std::to_string(i) + " is " + std::to_string(dnnopt::codegen::number_at(found, i)) +
               ", not " + std::to_string(dnnopt::codegen::number_at(expected, i));
    return "";
  }
  for (std::size_t i = 0; i < count; ++i)
    if (const double e = std::fabs(dnnopt::codegen::number_at(expected, i)); std::isfinite(e))
      largest = std::max(largest, e);
  for (std::size_t i = 0; i < count; ++i) {
    const double e = dnnopt::codegen::number_at(expected, i);
    const double a = dnnopt::codegen::number_at(found, i);
    if (a == e || (std::isnan(a) && std::isnan(e))) continue;
    if (!std::isfinite(a) || !std::isfinite(e) || std::fabs(a - e) > relative * std::fabs(e) + share * largest + 1e-30)
      return "element " + std::to_string(i) + " is " + shortest(a) + ", not " + shortest(e);
  }
  return "";
}

/// What became of cases.
struct case_counts {
  std::size_t cases = 0;    ///< that were compared
  std::size_t runs = 0;     ///< shapes of them, times forms
  std::size_t refused = 0;  ///< drawn, but the reference refuses the base shape
  std::size_t on_host = 0;  ///< runs with an operator on the host
  std::size_t wrong = 0;
};

/// Compiles and runs cases, many in one model for speed, and one by one where that model fails.
class case_checker {
 public:
  /// `tell` gets a line for each fault.
  case_checker(std::shared_ptr<dnnopt::opened_device> device, std::vector<dnnopt::kernel_form> forms,
               std::function<void(const std::string&)> tell)
      : device_(std::move(device)), forms_(std::move(forms)), tell_(std::move(tell)), ops_(dnnopt::standard_ops()) {}

  void check(const std::vector<operator_case>& drawn) {
    std::vector<operator_case> cases;
    for (const operator_case& c : drawn) {
      operator_case kept = c;
      kept.variants.clear();
      std::vector<std::vector<tensor>> expected;
      for (const drawn_operator& v : c.variants) {
        operator_case one = c;
        one.symbols = symbol_policy::none;
        one.variants = {v};
        if (auto results = evaluated(one)) {
          kept.variants.push_back(v);
          expected.push_back(std::move(*results));
        } else if (kept.variants.empty()) {
          break;
        }
      }
      if (kept.variants.empty()) {
        ++counts.refused;
        continue;
      }
      ++counts.cases;
      expected_[c.seed] = std::move(expected);
      cases.push_back(std::move(kept));
    }
    for (const dnnopt::kernel_form form : forms_) compare(cases, form);
    expected_.clear();
  }

  case_counts counts;
  std::string integer_dots = "automatic";  ///< what multiplies bytes, as in compile_options
  std::string matrix_steps = "automatic";  ///< what multiplies in steps, as in compile_options

 private:
  [[nodiscard]] std::optional<std::vector<tensor>> evaluated(const operator_case& one) const {
    try {
      dnnopt::graph g;
      (void)add_case(g, ops_, one);
      std::vector<tensor> given;
      for (const drawn_input& in : one.variants[0].inputs)
        if (!in.constant && !in.content.empty()) given.push_back(in.content);
      return dnnopt::reference::evaluate(g, given);
    } catch (const dnnopt::error&) {
      return std::nullopt;
    }
  }

  /// Faults of several cases in one model are told only once they show alone as well, or where none does.
  void compare(const std::vector<operator_case>& cases, dnnopt::kernel_form form) {
    if (cases.empty()) return;
    const std::string fault = fault_of(cases, form);
    if (fault.empty()) return;
    if (cases.size() == 1) {
      ++counts.wrong;
      tell_(fault);
      return;
    }
    const std::size_t before = counts.wrong;
    for (const operator_case& one : cases) compare({one}, form);
    if (counts.wrong != before) return;
    ++counts.wrong;
    tell_("only together: " + fault);
  }

  [[nodiscard]] std::string fault_of(const std::vector<operator_case>& cases, dnnopt::kernel_form form) {
    std::string where = "seed " + std::to_string(cases[0].seed) + " (" + cases[0].row + ", " + cases[0].variants[0].op +
                        ", symbols " + std::to_string(static_cast<int>(cases[0].symbols)) + ") --form " +
                        std::string(dnnopt::name_of(form));
    try {
      dnnopt::model m;
      m.ops = ops_;
      std::size_t variants = 1;
      for (const operator_case& c : cases) {
        (void)add_case(m.main, ops_, c);
        variants = std::max(variants, c.variants.size());
      }
      dnnopt::compile_options options;
      options.opened = device_;
      options.form = form;
      options.integer_dots = integer_dots;
      options.matrix_steps = matrix_steps;
      dnnopt::session session = dnnopt::compile(m, options);
      for (std::size_t v = 0; v < variants; ++v) {
        dnnopt::named_tensors inputs;
        for (const operator_case& c : cases) add_inputs(c, v, inputs);
        const dnnopt::named_tensors found = session.run(inputs);
        counts.runs += cases.size();
        counts.on_host += session.host_ops() != 0 ? cases.size() : 0;
        std::size_t at = 0;
        for (const operator_case& c : cases) {
          const auto& expected = expected_.at(c.seed)[std::min(v, c.variants.size() - 1)];
          for (std::size_t o = 0; o < expected.size(); ++o, ++at)
            if (const std::string difference = difference_of(expected[o], found[at]); !difference.empty())
              return where + " shape " + std::to_string(v) + " output " + std::to_string(o) + ": " + difference +
                     dims_text(c, v);
        }
      }
    } catch (const std::exception& e) {
      return where + ": " + e.what() + dims_text(cases[0], 0);
    }
    return "";
  }
  static std::string dims_text(const operator_case& c, std::size_t variant) {
    std::string text = "; inputs";
    for (const drawn_input& in : c.variants[std::min(variant, c.variants.size() - 1)].inputs)
      text += in.content.empty() ? " -"
                                 : " " + std::string(dnnopt::name_of(in.content.type())) +
                                       dnnopt::to_string(in.content.dims()) + (in.constant ? "c" : "");
    return text;
  }

  std::shared_ptr<dnnopt::opened_device> device_;
  std::vector<dnnopt::kernel_form> forms_;
  std::function<void(const std::string&)> tell_;
  dnnopt::op_set ops_;
  std::map<std::uint64_t, std::vector<std::vector<tensor>>> expected_;
};

}  // namespace testing

#endif  // DNNOPT_TESTS_PROPERTY_OPERATOR_CASES_HPP

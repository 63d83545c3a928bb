// Owns the shorthands that element emitters share: reading inputs of a node, loops over extents, accumulators.
#ifndef DNNOPT_BACKEND_CODEGEN_ELEMENTS_ELEMENT_SITE_HPP
#define DNNOPT_BACKEND_CODEGEN_ELEMENTS_ELEMENT_SITE_HPP

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dnnopt/backend/codegen/builder/kernel_builder.hpp>
#include <dnnopt/inexpressible.hpp>

namespace dnnopt::codegen {

/// One element of one output of a node while its statements are written.
class element_site {
 public:
  element_site(kernel_builder& builder, node_id node, std::size_t output_number, std::span<const index_expr> at)
      : b(builder), id(node), output(output_number), index(at.begin(), at.end()) {}

  kernel_builder& b;
  node_id id;
  std::size_t output;
  std::vector<index_expr> index;

  [[nodiscard]] const node& n() const { return b.node_at(id); }
  [[nodiscard]] const attribute_map& attributes() const { return n().attributes; }
  [[nodiscard]] bool has(std::size_t i) const { return i < n().inputs.size() && n().inputs[i] != no_value; }
  [[nodiscard]] const shape& dims(std::size_t i) const { return b.dims(n().inputs.at(i)); }
  [[nodiscard]] const shape& out_dims() const { return b.dims(n().outputs.at(output)); }
  [[nodiscard]] dtype type_of(std::size_t i) const { return b.g().facts(n().inputs.at(i)).type; }
  [[nodiscard]] compute_type input_compute(std::size_t i = 0) const { return b.computed_as(n().inputs.at(i)); }
  [[nodiscard]] compute_type compute() const { return b.computed_as(n().outputs.at(output)); }
  [[nodiscard]] static bool is_real(compute_type t) { return t == compute_type::real || t == compute_type::real64; }

  /// The element of input `i` at `at`.
  [[nodiscard]] std::string read(std::size_t i, std::span<const index_expr> at) const {
    return b.emit(n().inputs.at(i), at);
  }
  [[nodiscard]] std::string read(std::size_t i, std::initializer_list<index_expr> at) const {
    return b.emit(n().inputs.at(i), at);
  }
  /// The only element of an input of one element, of whatever rank.
  [[nodiscard]] std::string read_scalar(std::size_t i) const {
    return read(i, std::vector<index_expr>(dims(i).size(), index_expr(0)));
  }
  /// An integer element read for use as an index into a dim, kept inside of it (kernel_builder::wrap_index).
  [[nodiscard]] index_expr read_index(std::size_t i, std::span<const index_expr> at, const index_expr& dim) const {
    constexpr std::int64_t largest = (std::int64_t{1} << 31) - 1;
    const std::int64_t high = dim.range().high >= unbounded ? largest : std::max<std::int64_t>(dim.range().high, 1);
    return b.wrap_index(b.define_integer("g", read(i, at), {-high, high}), dim);
  }
  /// The element of input `i` that is broadcast to `at` of a result of dims `whole` (aligned at the last dim).
  [[nodiscard]] std::string read_broadcast(std::size_t i, const shape& whole, std::span<const index_expr> at) const {
    return read(i, kernel_builder::broadcast_index(dims(i), whole, at));
  }
  /// The same where the result is the output.
  [[nodiscard]] std::string read_broadcast(std::size_t i, std::span<const index_expr> at) const {
    return read_broadcast(i, out_dims(), at);
  }
  /// The element of input `i` that holds one number for all, or one for each of `extent` things, of which `at` counts.
  [[nodiscard]] std::string read_one_or_each(std::size_t i, const index_expr& extent, const index_expr& at) const {
    if (dims(i).size() != 1) return read_scalar(i);
    return read(i, {kernel_builder::broadcast_index(dims(i)[0], extent, at)});
  }
  /// The second element along the last dim of input `i` (the others as in `at`), or 0 where that dim is 1: a complex
  /// number's imaginary part, where a real number has none.
  [[nodiscard]] std::string imaginary_part(std::size_t i, std::vector<index_expr> at) const {
    const index_expr& parts = dims(i).back();
    if (parts == index_expr(1)) return "0";
    at.back() = min(index_expr(1), parts - 1);
    const std::string element = read(i, at);
    return parts.range().low > 1 ? element : "(" + index_source(parts) + " == 1 ? 0 : " + element + ")";
  }
  /// The index of channel `channel` in parameter `slot` of GroupNormalization: one for each channel or, before opset
  /// 21, one for each group of `per_group` channels.
  [[nodiscard]] index_expr group_parameter(std::size_t slot, const index_expr& channel,
                                           const index_expr& per_group) const {
    const index_expr& own = dims(slot)[0];
    const index_expr& channels = dims(0)[1];
    if (own == channels) return channel;
    const index_expr group = floordiv(channel, per_group);
    if (own.is_constant() && channels.is_constant()) return group;
    return b.define_integer("g",
                            index_source(own) + " == " + index_source(channels) + " ? " + index_source(channel) +
                                " : " + index_source(group),
                            channel.range());
  }
  /// The integers of an input known before execution; nothing where it is left out. Errors: unsupported where the input
  /// is not known.
  [[nodiscard]] std::optional<std::vector<std::int64_t>> integers(std::size_t i) const {
    if (!has(i)) return std::nullopt;
    std::vector<const value_facts*> storage;
    const node_facts facts = b.facts_of(id, storage);
    auto known = facts.integers(i);
    if (!known) throw refuse("input " + std::to_string(i) + " is not known before execution");
    return known;
  }
  /// The numbers of an input that is constant. Errors: unsupported where it is not.
  [[nodiscard]] std::optional<std::vector<double>> numbers(std::size_t i) const {
    if (!has(i)) return std::nullopt;
    const tensor& c = b.g().facts(n().inputs[i]).constant;
    if (c.empty()) throw refuse("input " + std::to_string(i) + " is not a constant");
    std::vector<double> out;
    for (std::size_t k = 0; k < static_cast<std::size_t>(c.size()); ++k) out.push_back(number_at(c, k));
    return out;
  }
  [[nodiscard]] inexpressible refuse(std::string_view why) const {
    return inexpressible("node '" + n().name + "' (" + std::string(n().op->name) + "): " + std::string(why));
  }
  /// A number as a literal of a compute type.
  [[nodiscard]] static std::string number(compute_type type, double v) { return literal(type, v); }
  /// `expression` as the output's element type holds it.
  [[nodiscard]] std::string result(std::string_view expression) const {
    const c_type_row& row = c_type_of(b.g().facts(n().outputs.at(output)).type);
    return b.let(row.compute, fill_pattern(row.narrow, "", "", "(" + std::string(expression) + ")"));
  }

  /// Runs `body` inside loops over `extents` (none for extents of 1), with the indices.
  template <class Body>
  void loops(std::string_view prefix, std::span<const index_expr> extents, Body&& body) const {
    std::vector<index_expr> at;
    std::size_t opened = 0;
    for (const index_expr& e : extents) {
      if (e == index_expr(1)) {
        at.emplace_back(0);
        continue;
      }
      at.push_back(b.open_loop(prefix, e));
      ++opened;
    }
    body(std::as_const(at));
    for (std::size_t i = 0; i < opened; ++i) b.close();
  }
  template <class Body>
  void loop(std::string_view prefix, const index_expr& extent, Body&& body) const {
    loops(prefix, std::span<const index_expr>(&extent, 1), [&](const std::vector<index_expr>& at) { body(at[0]); });
  }
  /// Runs `body` inside `if (test)`; without a test where it is empty, not at all where it is kernel_builder::nowhere.
  template <class Body>
  void when(std::string_view test, Body&& body) const {
    if (test == kernel_builder::nowhere) return;
    if (test.empty()) {
      body();
      return;
    }
    b.open("if (" + std::string(test) + ") {");
    body();
    b.close();
  }
};

/// "a && b" of two tests, either of which may be empty or kernel_builder::nowhere.
[[nodiscard]] inline std::string both(std::string a, const std::string& b) {
  if (a.empty() || b == kernel_builder::nowhere) return b;
  if (a == kernel_builder::nowhere) return a;
  return b.empty() ? a : a + " && " + b;
}

}  // namespace dnnopt::codegen

#endif  // DNNOPT_BACKEND_CODEGEN_ELEMENTS_ELEMENT_SITE_HPP

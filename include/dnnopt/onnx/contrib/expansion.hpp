// Owns what expansions of contrib operators are written with: one node's inputs and outputs, and the standard nodes
// that take its place.
#ifndef DNNOPT_ONNX_CONTRIB_EXPANSION_HPP
#define DNNOPT_ONNX_CONTRIB_EXPANSION_HPP

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <dnnopt/onnx/adapt_opset.hpp>
#include <dnnopt/onnx/expand_functions.hpp>
#include <dnnopt/onnx/node_emitter.hpp>
#include <dnnopt/ops/op_info.hpp>

namespace dnnopt::onnx::contrib {

/// Attributes by name.
[[nodiscard]] inline attribute_map with(std::initializer_list<std::pair<const char*, attribute>> list) {
  attribute_map result;
  for (const auto& [name, held] : list) result.set(name, held);
  return result;
}

/// A node that is replaced by nodes of ai.onnx in their newest form. The last of them write the node's own outputs.
class expansion {
 public:
  /// Both outlive the expansion.
  expansion(const pending_node& n, node_emitter& e) : node_(n), emitter_(e) {}

  [[nodiscard]] const attribute_map& attributes() const noexcept { return node_.attributes; }
  /// Input `i`, or no_value where it is absent.
  [[nodiscard]] value_id in(std::size_t i) const { return node_.input(i); }
  [[nodiscard]] bool has(std::size_t i) const { return in(i) != no_value; }
  [[nodiscard]] std::size_t input_count() const noexcept { return node_.inputs.size(); }
  [[nodiscard]] std::size_t output_count() const noexcept { return node_.outputs.size(); }
  /// Output `i` of the node, or no_value where nobody reads it.
  [[nodiscard]] value_id out(std::size_t i) const { return i < node_.outputs.size() ? node_.outputs[i] : no_value; }

  // --- what is known of values ---

  [[nodiscard]] const value_facts& facts(value_id v) const { return emitter_.facts(v); }
  /// The element type, or undefined where it is not known.
  [[nodiscard]] dtype type(value_id v) const { return facts(v).type; }
  /// The shape. Errors: unsupported where the rank is not known.
  [[nodiscard]] const shape& dims(value_id v, std::string_view what) const {
    if (!facts(v).dims) refuse("'" + std::string(what) + "' of unknown rank");
    return *facts(v).dims;
  }
  /// Errors: unsupported where the rank is not known, or below `least`.
  [[nodiscard]] std::size_t rank(value_id v, std::string_view what, std::size_t least = 0) const {
    const shape& all = dims(v, what);
    if (all.size() < least) refuse("'" + std::string(what) + "' of shape " + to_string(all));
    return all.size();
  }
  /// Dim `axis`. Errors: unsupported where the rank is not known, or lower.
  [[nodiscard]] const index_expr& extent(value_id v, std::size_t axis, std::string_view what) const {
    const shape& all = dims(v, what);
    if (axis >= all.size()) refuse("'" + std::string(what) + "' of shape " + to_string(all));
    return all[axis];
  }
  /// Dim `axis` as a number. Errors: unsupported where only execution tells it.
  [[nodiscard]] std::int64_t fixed_dim(value_id v, std::size_t axis, std::string_view what) const {
    const auto number = extent(v, axis, what).as_constant();
    if (!number)
      refuse("dim " + std::to_string(axis) + " of '" + std::string(what) + "' is not known before execution");
    return *number;
  }
  /// Whether dim `axis` is known to be `n`.
  [[nodiscard]] bool dim_is(value_id v, std::size_t axis, std::int64_t n) const {
    const auto& all = facts(v).dims;
    return all && axis < all->size() && (*all)[axis] == index_expr(n);
  }

  /// Errors: unsupported, naming what the operator does not do.
  [[noreturn]] void refuse(const std::string& what) const {
    throw error(errc::unsupported,
                (node_.domain.empty() ? "ai.onnx" : node_.domain) + "'s " + node_.op_type + ": " + what);
  }
  /// Refuses input `i` where it is given.
  void refuse_input(std::size_t i, std::string_view what) const {
    if (has(i)) refuse("input '" + std::string(what) + "' has no expansion");
  }
  /// Refuses attribute `name` unless it is absent or `harmless`.
  void refuse_attribute(const char* name, std::int64_t harmless) const {
    if (const std::int64_t v = attributes().get_int(name, harmless); v != harmless)
      refuse(std::string(name) + " = " + std::to_string(v) + " has no expansion");
  }
  /// A required attribute of at least 1, and of at most 31 bits, so that the product of two is a number. Errors:
  /// bad_attribute.
  [[nodiscard]] std::int64_t count_attribute(const char* name) const {
    constexpr std::int64_t most = (std::int64_t{1} << 31) - 1;
    const auto count = attributes().require<std::int64_t>(name);
    if (count < 1 || count > most) throw error(errc::bad_attribute, std::string(name) + " is " + std::to_string(count));
    return count;
  }

  // --- constants ---

  [[nodiscard]] value_id constant(std::string_view what, tensor content) {
    return emitter_.constant(node_, what, std::move(content));
  }
  /// A constant of rank 1.
  [[nodiscard]] value_id integers(const std::vector<std::int64_t>& values) {
    return emitter_.integers(node_, "integers", values);
  }
  /// A constant of rank 0.
  [[nodiscard]] value_id integer(std::int64_t v) { return constant("integer", tensor::scalar(v)); }
  /// A scalar of the element type of `like`.
  [[nodiscard]] value_id number(value_id like, double v) {
    return constant("number", onnx::detail::scalar_of(type(like), v));
  }

  // --- nodes ---

  /// Adds a node and gives its output 0, which is `to` where that is given. Absent inputs at the end are dropped.
  value_id add(std::string_view op_type, std::vector<value_id> inputs, attribute_map attributes = {},
               value_id to = no_value) {
    return add_many(op_type, std::move(inputs), std::move(attributes), {to})[0];
  }
  /// The same for an output of the node itself.
  value_id give(std::size_t output, std::string_view op_type, std::vector<value_id> inputs,
                attribute_map attributes = {}) {
    return add(op_type, std::move(inputs), std::move(attributes), out(output));
  }
  /// A node of several outputs, all of which become values; those that are no_value in `to` become new ones.
  std::vector<value_id> add_many(std::string_view op_type, std::vector<value_id> inputs, attribute_map attributes,
                                 std::vector<value_id> to) {
    while (!inputs.empty() && inputs.back() == no_value) inputs.pop_back();
    pending_node n;
    n.op_type = op_type;
    n.name = !to.empty() && to[0] != no_value && to[0] == out(0)
                 ? node_.name
                 : emitter_.unique_name(node_.name + "/" + std::string(op_type));
    n.inputs = std::move(inputs);
    n.attributes = std::move(attributes);
    for (value_id& v : to)
      if (v == no_value) v = emitter_.target().add_value(emitter_.unique_name(node_.name + "/" + std::string(op_type)));
    n.outputs = to;
    if (emitter_.ops().find("", n.op_type) != nullptr || !expand_function(n, emitter_)) emitter_.add(std::move(n));
    return to;
  }

  /// The result of the subgraph that attribute `name` holds on `argument`; `argument` where there is none. The node's
  /// inputs from `formal` on are what its subgraphs capture. Precondition: the subgraph has one input of its own and
  /// one output. Errors: bad_arity.
  [[nodiscard]] value_id apply_body(const char* name, value_id argument, std::size_t formal) {
    const attribute* held = attributes().find(name);
    const subgraph* body = held == nullptr ? nullptr : std::get_if<subgraph>(held);
    if (body == nullptr) return argument;
    pending_node n;
    n.op_type = "If";
    n.name = emitter_.unique_name(node_.name + "/" + name);
    n.inputs = {constant("always", tensor::scalar(true)), argument};
    n.inputs.insert(n.inputs.end(), node_.inputs.begin() + static_cast<std::ptrdiff_t>(std::min(formal, input_count())),
                    node_.inputs.end());
    if ((*body)->inputs().size() + 1 != n.inputs.size() || (*body)->outputs().size() != 1)
      throw error(errc::bad_arity, std::string(name) + " takes one tensor and gives one");
    n.captured_begin = 1;
    n.attributes = with({{"then_branch", *body}, {"else_branch", *body}});
    n.outputs = {add_value()};
    const value_id out = n.outputs[0];
    emitter_.add(std::move(n));
    return out;
  }

  /// A Scan over dim 0 of `scanned`, from the end where `reverse` says so, whose outputs are the last states and,
  /// stacked in the order of `scanned`, what else the body gives. `fill(body, values)` adds the body's nodes, given the
  /// states, the slices and what is captured, and returns the next states and one element of each stack.
  template <class Fill>
  std::vector<value_id> scan(const std::vector<value_id>& states, const std::vector<value_id>& scanned,
                             const std::vector<value_id>& captured, bool reverse, Fill&& fill) {
    auto body = std::make_shared<graph>(emitter_.target().shared_expressions());
    body->name = emitter_.unique_name(node_.name + "/step");
    node_emitter inside = emitter_.for_body(*body);
    std::vector<value_id> values;
    pending_node n;
    n.op_type = "Scan";
    n.name = emitter_.unique_name(node_.name + "/Scan");
    const auto declare = [&](value_id outer, bool slice) {
      std::optional<shape> of = facts(outer).dims;
      if (slice && of) {
        if (of->empty()) refuse("a sequence of rank 0");
        of->erase(of->begin());
      }
      values.push_back(
          body->add_input(inside.unique_name(emitter_.target().value_at(outer).name), type(outer), std::move(of)));
      n.inputs.push_back(outer);
    };
    for (const value_id v : states) declare(v, false);
    for (const value_id v : scanned) declare(v, true);
    n.captured_begin = static_cast<std::uint32_t>(n.inputs.size());
    for (const value_id v : captured) declare(v, false);
    expansion within(node_, inside);
    const std::vector<value_id> results = fill(within, values);
    for (const value_id v : results) body->add_output(v);
    const std::vector<std::int64_t> forward(scanned.size(), reverse ? 1 : 0);
    const std::vector<std::int64_t> stacked(results.size() - states.size(), reverse ? 1 : 0);
    n.attributes = with({{"body", subgraph(std::move(body))},
                         {"num_scan_inputs", static_cast<std::int64_t>(scanned.size())},
                         {"scan_input_directions", forward},
                         {"scan_output_directions", stacked}});
    for (std::size_t i = 0; i < results.size(); ++i) n.outputs.push_back(add_value());
    const std::vector<value_id> out = n.outputs;
    emitter_.add(std::move(n));
    return out;
  }

  /// A value that no node writes yet.
  [[nodiscard]] value_id add_value() { return emitter_.target().add_value(emitter_.unique_name(node_.name + "/part")); }

  // --- shape arithmetic ---

  /// Dim `axis` as int64 of one element; a constant where it is known. Precondition: axis is not negative.
  [[nodiscard]] value_id dim(value_id v, std::size_t axis) {
    const auto& all = facts(v).dims;
    if (all && axis < all->size() && (*all)[axis].is_constant()) return integers({(*all)[axis].constant()});
    const auto at = static_cast<std::int64_t>(axis);
    return add("Shape", {v}, with({{"start", at}, {"end", at + 1}}));
  }
  /// int64 of one element.
  [[nodiscard]] value_id one_integer(std::int64_t v) { return integers({v}); }
  /// The elements of several int64 tensors of rank 1, one behind the other.
  [[nodiscard]] value_id list(std::vector<value_id> parts) {
    std::vector<std::int64_t> known;
    for (const value_id part : parts) {
      if (!facts(part).is_constant()) return add("Concat", std::move(parts), with({{"axis", std::int64_t{0}}}));
      const std::vector<std::int64_t> numbers = integers_of(facts(part).constant);
      known.insert(known.end(), numbers.begin(), numbers.end());
    }
    return integers(known);
  }

  // --- common pieces ---

  value_id cast(value_id v, dtype to, value_id target = no_value) {
    if (type(v) == to && target == no_value) return v;
    return add("Cast", {v}, with({{"to", static_cast<std::int64_t>(to)}}), target);
  }
  value_id reshape(value_id v, const std::vector<std::int64_t>& to, value_id target = no_value) {
    return add("Reshape", {v, integers(to)}, {}, target);
  }
  value_id transpose(value_id v, std::vector<std::int64_t> perm, value_id target = no_value) {
    return add("Transpose", {v}, with({{"perm", std::move(perm)}}), target);
  }
  /// Moves the last dim behind the first one.
  value_id channels_first(value_id v, std::string_view what) {
    const auto r = static_cast<std::int64_t>(rank(v, what, 2));
    std::vector<std::int64_t> perm{0, r - 1};
    for (std::int64_t a = 1; a + 1 < r; ++a) perm.push_back(a);
    return transpose(v, std::move(perm));
  }
  /// The inverse of channels_first.
  value_id channels_last(value_id v, std::string_view what, value_id target) {
    const auto r = static_cast<std::int64_t>(rank(v, what, 2));
    std::vector<std::int64_t> perm{0};
    for (std::int64_t a = 2; a < r; ++a) perm.push_back(a);
    perm.push_back(1);
    return transpose(v, std::move(perm), target);
  }
  value_id unsqueeze(value_id v, const std::vector<std::int64_t>& axes) {
    return add("Unsqueeze", {v, integers(axes)});
  }
  /// Element `index` along `axis`, which is dropped.
  value_id pick(value_id v, std::int64_t axis, std::int64_t index, value_id target = no_value) {
    return add("Gather", {v, integer(index)}, with({{"axis", axis}}), target);
  }
  /// Consecutive parts along `axis`; `sizes` is int64 of rank 1, or no_value for equal parts.
  std::vector<value_id> split(value_id v, std::int64_t axis, std::size_t parts, value_id sizes = no_value) {
    attribute_map a = with({{"axis", axis}});
    if (sizes == no_value) a.set("num_outputs", static_cast<std::int64_t>(parts));
    return add_many("Split", {v, sizes}, std::move(a), std::vector<value_id>(parts, no_value));
  }
  /// 0, 1, ..., count - 1 in int64; `count` is int64 of one element.
  value_id counting(value_id count) {
    return add("Range", {integer(0), add("Squeeze", {count, integers({0})}), integer(1)});
  }
  /// `v` in float32 where it is of a shorter floating-point type, in which sums would lose digits that ONNX Runtime
  /// keeps.
  value_id widened(value_id v) {
    return type(v) == dtype::float16 || type(v) == dtype::bfloat16 ? cast(v, dtype::float32) : v;
  }

 private:
  const pending_node& node_;
  node_emitter& emitter_;
};

/// One operator: how many inputs and outputs it takes, and what stands in its place.
struct contrib_row {
  std::string_view domain;
  std::string_view op_type;
  op_arity arity{};
  void (*expand)(expansion& x) = nullptr;
};

}  // namespace dnnopt::onnx::contrib

#endif  // DNNOPT_ONNX_CONTRIB_EXPANSION_HPP

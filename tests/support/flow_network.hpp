// A network with control flow that a test writes down: scopes in scopes, in which values of the scopes around are
// captured when they are used.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dnnopt/model.hpp>
#include <dnnopt/ops/standard.hpp>

namespace dnnopt::testing {

class flow_scope;

/// A value and the scope that it belongs to.
struct flow_value {
  flow_scope* scope = nullptr;
  value_id id = no_value;
};

using flow_values = std::vector<flow_value>;

/// A graph under construction: the model's, or that of a body. Names are unique in the model.
class flow_scope {
 public:
  flow_scope() : ops_(std::make_shared<op_set>(standard_ops())), names_(std::make_shared<int>(0)) {}

  [[nodiscard]] graph& inner() noexcept { return g_; }
  [[nodiscard]] const op_set& ops() const noexcept { return *ops_; }

  flow_value input(dtype type = dtype::float32, std::optional<shape> dims = std::nullopt, std::string name = {}) {
    return {this, g_.add_input(name.empty() ? fresh("in") : std::move(name), type, std::move(dims))};
  }
  flow_value constant(tensor content) { return {this, g_.add_constant(fresh("c"), std::move(content))}; }
  flow_value number(std::int64_t content) { return constant(tensor::scalar(content)); }
  flow_value list(const std::vector<std::int64_t>& content) {
    return constant(tensor::of<std::int64_t>({static_cast<std::int64_t>(content.size())}, content));
  }
  flow_value scalar(float content) { return constant(tensor::scalar(content)); }
  flow_value node(std::string_view op, const flow_values& inputs, attribute_map attributes = {}) {
    return nodes(op, inputs, 1, std::move(attributes))[0];
  }
  flow_values nodes(std::string_view op, const flow_values& inputs, std::size_t outputs,
                    attribute_map attributes = {}) {
    std::vector<value_id> ids;
    for (const flow_value& in : inputs) ids.push_back(use(in));
    return add(op, std::move(ids), outputs, std::move(attributes)).second;
  }
  void output(const flow_value& v) {
    // One value may be several outputs, and a captured one an output: an operator between them as exporters write it.
    const flow_value own =
        v.scope == this && !g_.is_output(v.id) && g_.value_at(v.id).producer != no_node ? v : node("Identity", {v});
    g_.add_output(own.id);
  }

  using filling = std::function<void(flow_scope&)>;

  /// If: each filling declares as many outputs.
  flow_values branches(const flow_value& condition, std::size_t outputs, const filling& then_branch,
                       const filling& else_branch) {
    auto chosen = body(then_branch);
    auto other = body(else_branch);
    return close("If", {use(condition)}, {{"then_branch", chosen}, {"else_branch", other}}, outputs, {});
  }
  /// Loop: the filling gets the body's scope, whose inputs (turn, condition, carried values) it declares itself.
  flow_values loop(const flow_value& trips, const flow_value& condition, const flow_values& carried,
                   std::size_t outputs, const filling& fill) {
    std::vector<value_id> formal{trips.scope == nullptr ? no_value : use(trips),
                                 condition.scope == nullptr ? no_value : use(condition)};
    for (const flow_value& v : carried) formal.push_back(use(v));
    return close("Loop", std::move(formal), {{"body", body(fill)}}, outputs, {});
  }
  /// Scan: the filling declares states and slices.
  flow_values scan(const flow_values& states, const flow_values& scanned, std::size_t outputs, const filling& fill,
                   attribute_map attributes = {}) {
    std::vector<value_id> formal;
    for (const flow_value& v : states) formal.push_back(use(v));
    for (const flow_value& v : scanned) formal.push_back(use(v));
    attributes.set("num_scan_inputs", static_cast<std::int64_t>(scanned.size()));
    return close("Scan", std::move(formal), {{"body", body(fill)}}, outputs, std::move(attributes));
  }

  [[nodiscard]] model finish() {
    g_.name = "flow";
    model m;
    m.main = g_;
    m.ops = *ops_;
    return m;
  }

 private:
  using named_body = std::pair<std::string, std::shared_ptr<flow_scope>>;

  explicit flow_scope(flow_scope& outer)
      : g_(outer.g_.shared_expressions()), ops_(outer.ops_), names_(outer.names_), outer_(&outer) {}

  std::string fresh(std::string_view stem) { return std::string(stem) + std::to_string((*names_)++); }

  std::shared_ptr<flow_scope> body(const filling& fill) {
    std::shared_ptr<flow_scope> made(new flow_scope(*this));
    fill(*made);
    return made;
  }

  /// The value in this scope: captured where it is one of a scope around.
  value_id use(const flow_value& v) {
    if (v.scope == this) return v.id;
    const value_id around = outer_->use(v);
    for (const auto& [from, to] : captures_)
      if (from == around) return to;
    const value_id made = g_.add_value(fresh("captured"));
    g_.facts(made).type = outer_->g_.facts(around).type;
    captures_.emplace_back(around, made);
    return made;
  }

  std::pair<node_id, flow_values> add(std::string_view op, std::vector<value_id> inputs, std::size_t outputs,
                                      attribute_map attributes) {
    const std::string name = fresh(op);
    std::vector<value_id> ids;
    flow_values made;
    for (std::size_t i = 0; i < outputs; ++i) {
      ids.push_back(g_.add_value(name + "." + std::to_string(i)));
      made.push_back({this, ids.back()});
    }
    const node_id id = g_.add_node(ops_->at("", op), name, std::move(inputs), std::move(ids), std::move(attributes));
    return {id, std::move(made)};
  }

  flow_values close(std::string_view op, std::vector<value_id> inputs, const std::vector<named_body>& bodies,
                    std::size_t outputs, attribute_map attributes) {
    std::vector<value_id> captured;
    for (const auto& [key, scope] : bodies)
      for (const auto& [from, to] : scope->captures_)
        if (std::find(captured.begin(), captured.end(), from) == captured.end()) captured.push_back(from);
    const auto formal = static_cast<std::uint32_t>(inputs.size());
    inputs.insert(inputs.end(), captured.begin(), captured.end());
    for (const auto& [key, scope] : bodies) {
      std::vector<value_id> ids = scope->g_.inputs();
      for (const value_id from : captured) {
        value_id to = no_value;
        for (const auto& [outside, inside] : scope->captures_)
          if (outside == from) to = inside;
        if (to == no_value) {
          to = scope->g_.add_value(fresh("unread"));
          scope->g_.facts(to).type = g_.facts(from).type;
        }
        ids.push_back(to);
      }
      scope->g_.set_inputs(std::move(ids));
      attributes.set(key, subgraph(std::make_shared<const graph>(scope->g_)));
    }
    auto [id, made] = add(op, std::move(inputs), outputs, std::move(attributes));
    g_.set_captured_begin(id, formal);
    return made;
  }

  graph g_;
  std::shared_ptr<op_set> ops_;
  std::shared_ptr<int> names_;
  flow_scope* outer_ = nullptr;
  std::vector<std::pair<value_id, value_id>> captures_;
};

}  // namespace dnnopt::testing

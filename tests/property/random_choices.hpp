// Owns the If by which random graphs grow: conditions that folding, sizes or data decide, and the bodies of both
// branches.
#ifndef DNNOPT_TESTS_PROPERTY_RANDOM_CHOICES_HPP
#define DNNOPT_TESTS_PROPERTY_RANDOM_CHOICES_HPP

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "property/random_quantized.hpp"

namespace testing {

/// A body under construction, with the shapes of its values; it captures what it reads of the graph around.
class random_branch {
 public:
  explicit random_branch(random_graph& r) : r_(&r), body_(r.empty_body()) {}

  value_id use(value_id outer) {
    for (const auto& [from, to] : captures_)
      if (from == outer) return to;
    const value_id made = body_.add_value(r_->name("b"));
    body_.facts(made).type = r_->facts(outer).type;
    body_.facts(made).dims = r_->facts(outer).dims;
    captures_.emplace_back(outer, made);
    return made;
  }
  value_id hold(dnnopt::tensor content) { return body_.add_constant(r_->name("c"), std::move(content)); }
  value_id node(std::string_view op, const std::vector<value_id>& inputs,
                const random_graph::attribute_list& attributes = {}) {
    dnnopt::attribute_map map;
    for (const auto& [key, value] : attributes) map.set(key, value);
    const value_id out = body_.add_value(r_->name("b"));
    const dnnopt::node_id id = body_.add_node(r_->ops().at("", op), r_->name(op), inputs, {out}, std::move(map));
    const dnnopt::facts_of_node facts(body_, id);
    std::vector<dnnopt::value_facts> told(1);
    body_.node_at(id).op->infer(*facts, told);
    body_.facts(out) = told[0];
    return out;
  }
  void give(value_id v) { body_.add_output(v); }

  [[nodiscard]] const dnnopt::value_facts& facts(value_id v) const { return body_.facts(v); }
  [[nodiscard]] const std::vector<std::pair<value_id, value_id>>& captures() const { return captures_; }

  /// The body that is given `captured` in this order.
  [[nodiscard]] dnnopt::subgraph finished(const std::vector<value_id>& captured) {
    std::vector<value_id> inputs;
    for (const value_id v : captured) inputs.push_back(use(v));
    body_.set_inputs(std::move(inputs));
    return std::make_shared<const dnnopt::graph>(body_);
  }

 private:
  random_graph* r_;
  dnnopt::graph body_;
  std::vector<std::pair<value_id, value_id>> captures_;
};

/// A scalar truth value, and what it is where that follows from constants.
struct drawn_condition {
  value_id id = dnnopt::no_value;
  std::optional<bool> decided;
};

inline drawn_condition condition_of(random_graph& r, const drawn& x) {
  const auto truth = [&](value_id v) { return r.content(v).data<bool>()[0]; };
  switch (r.pick(0, 5)) {
    case 0: {
      const bool held = r.coin();
      return {r.hold(dnnopt::tensor::scalar(held)), held};
    }
    case 1: {
      // What the passes fold before they see an If.
      const value_id sum = r.add_inner("Add", {r.number(0.25F), r.number(r.coin() ? 0.5F : -0.5F)}).id;
      const value_id made = r.add_inner("Less", {sum, r.number(0.0F)}).id;
      return {made, truth(made)};
    }
    case 2:
    case 3: {
      // Exporters ask whether a dim is 1; a symbol is so in some runs.
      if (x.dims.empty()) break;
      const std::int64_t axis = r.pick(0, static_cast<int>(x.dims.size()) - 1);
      const value_id dim =
          r.add_inner("Gather", {r.add_inner("Shape", {x.id}).id, r.hold(dnnopt::tensor::scalar(axis))},
                      {{"axis", std::int64_t{0}}})
              .id;
      const std::int64_t with = r.one_of<std::int64_t>({1, 2, 4});
      const value_id made = r.add_inner(r.coin() ? "Equal" : "Greater", {dim, r.hold(dnnopt::tensor::scalar(with))}).id;
      if (!x.dims[static_cast<std::size_t>(axis)].is_constant()) return {made, std::nullopt};
      return {made, truth(made)};
    }
    default:
      break;
  }
  const value_id all = r.add_inner(r.one_of<std::string_view>({"ReduceSum", "ReduceMax", "ReduceMean"}),
                                   {r.add_inner("Tanh", {x.id}).id}, {{"keepdims", std::int64_t{0}}})
                           .id;
  return {r.add_inner("Less", {all, r.number(0.01F * static_cast<float>(r.pick(-60, 60)))}).id, std::nullopt};
}

/// Some operators that keep the dims.
inline value_id filled(random_graph& r, random_branch& b, const drawn& x) {
  value_id v = b.use(x.id);
  for (int steps = r.pick(0, 4); steps > 0; --steps) {
    const std::int64_t last = x.dims.empty() || !x.dims.back().is_constant() ? 0 : x.dims.back().constant();
    switch (r.pick(0, 6)) {
      case 0:
        v = b.node("Mul", {v, b.hold(dnnopt::tensor::scalar(0.75F))});
        break;
      case 1:
        if (const auto y = r.find([&](const drawn& w) { return is_real(w) && w.dims == x.dims; }))
          v = b.node("Add", {v, b.use(y->id)});
        break;
      case 2:
        if (last != 0) v = b.node("Add", {b.hold(r.reals({last}, -0.5F, 0.5F)), v});
        break;
      case 3:
        if (last != 0 && x.dims.size() > 1) v = b.node("MatMul", {v, b.hold(r.reals({last, last}, -0.5F, 0.5F))});
        break;
      case 4:
        if (!x.dims.empty()) v = b.node("Softmax", {v}, {{"axis", std::int64_t{-1}}});
        break;
      default:
        v = b.node(r.one_of<std::string_view>({"Relu", "Sigmoid", "Tanh", "Neg", "Abs", "Softplus"}), {v});
        break;
    }
  }
  // A body gives what one of its operators makes.
  return v == b.use(x.id) ? b.node("Identity", {v}) : v;
}

/// An If of one or two outputs. The branch that is never taken may give another rank, as squeezes of exporters do.
inline void grow_choice(random_graph& r) {
  const auto x = r.real(0, 4);
  if (!x) return;
  const drawn_condition condition = condition_of(r, *x);
  random_branch branches[2] = {random_branch(r), random_branch(r)};
  const auto y = r.rarely(3) ? r.real(0, 4) : std::nullopt;
  std::vector<dnnopt::value_facts> told;
  const int taken = condition.decided ? (*condition.decided ? 0 : 1) : 0;
  const bool other_rank = condition.decided && r.rarely(3);
  const ints perm = r.permutation(x->dims.size());
  const bool turned = r.rarely(3) && x->dims.size() > 1;
  for (int k = 0; k < 2; ++k) {
    random_branch& b = branches[k];
    value_id v = filled(r, b, *x);
    if (turned) v = b.node("Transpose", {v}, {{"perm", perm}});
    if (other_rank && k != taken)
      v = b.node("Unsqueeze", {v, b.hold(dnnopt::tensor::of<std::int64_t>({1}, std::vector<std::int64_t>{0}))});
    b.give(v);
    if (k == taken) told.push_back(b.facts(v));
    if (!y) continue;
    const value_id w = filled(r, b, *y);
    b.give(w == v ? b.node("Identity", {w}) : w);
    if (k == taken) told.push_back(b.facts(w));
  }
  std::vector<value_id> captured;
  for (const random_branch& b : branches)
    for (const auto& [from, to] : b.captures())
      if (std::find(captured.begin(), captured.end(), from) == captured.end()) captured.push_back(from);
  std::vector<value_id> inputs{condition.id};
  inputs.insert(inputs.end(), captured.begin(), captured.end());
  const std::vector<drawn> made = r.add_flow(
      "If", std::move(inputs), 1,
      {{"then_branch", branches[0].finished(captured)}, {"else_branch", branches[1].finished(captured)}}, told);
  if (r.coin()) r.add("Add", {made[0].id, r.number(0.125F)});
}

inline constexpr std::array choice_rows{
    growth_row{"choice", 3, grow_choice},
};

}  // namespace testing

#endif  // DNNOPT_TESTS_PROPERTY_RANDOM_CHOICES_HPP

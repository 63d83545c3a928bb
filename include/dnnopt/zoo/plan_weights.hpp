// Owns the choice of how each missing weight of a model is distributed, so that signals keep their size through the
// graph.
#ifndef DNNOPT_ZOO_PLAN_WEIGHTS_HPP
#define DNNOPT_ZOO_PLAN_WEIGHTS_HPP

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include <dnnopt/graph.hpp>
#include <dnnopt/zoo/distribution.hpp>
#include <dnnopt/zoo/scalar_functions.hpp>
#include <dnnopt/zoo/summed_terms.hpp>
#include <dnnopt/zoo/tensor_distribution.hpp>
#include <dnnopt/zoo/weight_plan.hpp>

namespace dnnopt::onnx::detail {

/// Walks the graph once in order, keeps a distribution per value, and decides each weight where it is read first.
/// Bodies of control flow are walked where their node stands, with what it hands them.
class weight_planner {
 public:
  /// The number of the weight that a constant is; nothing where it is none.
  using weight_lookup = std::function<std::optional<std::size_t>(const value_facts&)>;

  /// `g` and `weight_of` must outlive it.
  weight_planner(const graph& g, const weight_lookup& weight_of, std::size_t weights, const weight_targets& targets)
      : graph_(g),
        weight_of_(weight_of),
        targets_(targets),
        plans_(weights),
        values_(g.value_count()),
        feeds_softmax_(g.value_count(), false) {
    for (value_id id = 0; id < g.value_count(); ++id)
      weights_.push_back(g.facts(id).is_constant() ? weight_of(g.facts(id)) : std::nullopt);
  }

  std::vector<weight_plan> run() {
    walk();
    return plans_;
  }
  /// What a value was taken to be; for reports.
  [[nodiscard]] const distribution& estimate(value_id id) { return at(id); }

 private:
  void walk() {
    const std::vector<node_id> order = graph_.topological_order();
    for (auto id = order.rbegin(); id != order.rend(); ++id) mark_scores(graph_.node_at(*id));
    for (const node_id id : order)
      normalizes_ = normalizes_ || graph_.node_at(id).op->kind == computation_kind::normalization ||
                    graph_.node_at(id).op->kind == computation_kind::reduction;
    for (const node_id id : order) visit(graph_.node_at(id));
  }
  [[nodiscard]] std::optional<std::size_t> weight(value_id id) const {
    return id == no_value ? std::nullopt : weights_[id];
  }
  [[nodiscard]] bool undecided(value_id id) const {
    return weight(id) && plans_[*weights_[id]].role == weight_role::unread;
  }
  std::uint64_t fresh() { return ++sources_; }

  const distribution& at(value_id id) {
    auto& held = values_[id];
    const auto w = weights_[id];
    if (w) {
      const weight_plan& plan = plans_[*w];
      held = distribution(static_cast<double>(plan.mean),
                          static_cast<double>(plan.deviation) * static_cast<double>(plan.deviation), fresh());
    } else if (!held) {
      const value_facts& facts = graph_.facts(id);
      if (facts.is_constant())
        held = distribution_of(facts.constant, fresh());
      else if (is_floating(facts.type))
        held = distribution(0, 1, fresh());
      else
        held = distribution(1.0);  // masks are ones; ids only choose rows
    }
    return *held;
  }
  void decide(value_id id, weight_role role, double mean, double deviation) {
    if (!undecided(id)) return;
    // Few bits, so that the last one of another machine's math library does not show.
    const auto rounded = [](double v) {
      int exponent = 0;
      const double fraction = std::frexp(v, &exponent);
      return static_cast<float>(std::ldexp(std::round(fraction * 1024), exponent - 10));
    };
    plans_[*weights_[id]] = {role, rounded(mean), rounded(deviation), 0, 0};
  }
  void set(const node& n, std::size_t output, distribution d) {
    if (output < n.outputs.size() && n.outputs[output] != no_value) values_[n.outputs[output]] = std::move(d);
  }
  void set_all(const node& n, const distribution& d) {
    for (std::size_t i = 0; i < n.outputs.size(); ++i) set(n, i, d);
  }

  [[nodiscard]] const shape* dims(value_id id) const {
    return id == no_value || !graph_.facts(id).dims ? nullptr : &*graph_.facts(id).dims;
  }
  [[nodiscard]] double elements(value_id id) const {
    return dims(id) == nullptr ? 64.0 : product(*dims(id), 0, dims(id)->size());
  }
  // The variance of a mean of `n` elements of one feature over that of one element: they have a part in common.
  static double share_of_mean(double n) { return common_part + (1 - common_part) / n; }

  // --- scores ---

  void mark_scores(const node& n) {
    const auto mark = [&](value_id id) {
      if (id != no_value) feeds_softmax_[id] = true;
    };
    if (n.op->kind == computation_kind::softmax) {
      mark(n.inputs[0]);
      return;
    }
    const bool marked =
        std::any_of(n.outputs.begin(), n.outputs.end(), [&](value_id v) { return v != no_value && feeds_softmax_[v]; });
    if (!marked) return;
    if (n.op->kind == computation_kind::view || n.op->kind == computation_kind::element_wise)
      for (const value_id v : n.inputs) mark(v);
  }
  [[nodiscard]] bool feeds_gate(value_id id) const {
    const auto& uses = graph_.value_at(id).uses;
    return !uses.empty() && std::all_of(uses.begin(), uses.end(), [&](const value_use& use) {
      const std::string_view name = graph_.node_at(use.node).op->name;
      return name == "Sigmoid" || name == "HardSigmoid";
    });
  }
  [[nodiscard]] double target(const node& n) const {
    if (n.outputs[0] != no_value && feeds_softmax_[n.outputs[0]]) return targets_.score_power;
    if (n.outputs[0] != no_value && feeds_gate(n.outputs[0])) return targets_.gate_power;
    if (n.op->kind == computation_kind::convolution) return targets_.convolution_power;
    return normalizes_ ? targets_.power : targets_.linear_power;
  }

  // --- operators ---

  // What enters a body are the node's last inputs, for each of the body's: an If hands what its bodies capture, and
  // Loop and Scan what they begin with. What leaves it are the body's last outputs, for each of the node's.
  void walk_body(const node& n, const graph& body) {
    weight_planner inside(body, weight_of_, 0, targets_);
    inside.plans_ = std::move(plans_);
    inside.sources_ = sources_;
    inside.normalizes_ = normalizes_;
    const std::size_t entering = std::min(body.inputs().size(), n.inputs.size());
    for (std::size_t i = 1; i <= entering; ++i)
      if (const value_id from = n.inputs[n.inputs.size() - i]; from != no_value)
        inside.values_[body.inputs()[body.inputs().size() - i]] = at(from);
    inside.walk();
    const std::size_t leaving = std::min(body.outputs().size(), n.outputs.size());
    for (std::size_t o = 1; o <= leaving; ++o)
      set(n, n.outputs.size() - o, inside.at(body.outputs()[body.outputs().size() - o]));
    sources_ = inside.sources_;
    plans_ = std::move(inside.plans_);
  }

  void visit(const node& n) {
    bool enters = false;
    for (const auto& [key, held] : n.attributes)
      if (const auto* body = std::get_if<subgraph>(&held); body != nullptr && *body) {
        walk_body(n, **body);
        enters = true;
      }
    if (enters) return;
    if (n.inputs.empty() || n.inputs[0] == no_value || n.outputs.empty()) return;
    switch (n.op->kind) {
      case computation_kind::convolution:
        return convolution(n);
      case computation_kind::matrix_product:
        return matrix_product(n);
      case computation_kind::element_wise:
        return element_wise(n);
      case computation_kind::normalization:
        return normalization(n);
      case computation_kind::softmax:
        return softmax(n);
      case computation_kind::reduction:
        return reduction(n);
      case computation_kind::pooling:
        return pooling(n);
      case computation_kind::attention:
        return attention(n);
      case computation_kind::view:
        return view(n);
      case computation_kind::indexed_read:
      case computation_kind::resampling:
        if (undecided(n.inputs[0]) && n.op->kind == computation_kind::resampling) return pass_weight(n);
        decide(n.inputs[0], weight_role::table, 0, 1);
        return set_all(n, at(n.inputs[0]));
      case computation_kind::indexed_write:
        return set_all(n, at(n.inputs[n.inputs.size() > 2 && n.inputs[2] != no_value ? 2 : 0]));
      default:
        for (const value_id v : n.inputs)
          if (v != no_value)
            decide(v, weight_role::factors, 0,
                   1 / std::sqrt(dims(v) == nullptr || dims(v)->empty() ? 1.0 : number(dims(v)->back())));
        return set_all(n, at(n.inputs[0]));
    }
  }

  void pass_weight(const node& n) {
    for (const value_id v : n.outputs)
      if (v != no_value) weights_[v] = weights_[n.inputs[0]];
  }

  void convolution(const node& n) {
    const double terms = convolution_terms(graph_, n);
    const value_id bias = n.inputs.size() > 2 ? n.inputs[2] : no_value;
    const shape* w = n.inputs.size() > 1 ? dims(n.inputs[1]) : nullptr;
    const bool rows = w != nullptr && is_static(*w) && w->size() > 2 && undecided(n.inputs[1]) && n.op->name == "Conv";
    if (!rows) return product_of(n, terms, bias);
    // A depthwise row is a filter over neighbours, which without its mean would see edges only.
    const double center = number((*w)[1]) >= 16 ? targets_.center : 0.0;
    const distribution x = at(n.inputs[0]);
    const double power = x.variance() + (1 - center) * (1 - center) * x.mean() * x.mean();
    decide(n.inputs[1], weight_role::factors, 0, std::sqrt(target(n) / (terms * std::max(power, 1e-6))));
    weight_plan& plan = plans_[*weight(n.inputs[1])];
    plan.row = static_cast<std::int64_t>(product(*w, 1, w->size()));
    plan.center = static_cast<float>(center);
    add_bias(n, distribution(0, target(n), fresh()), bias);
  }

  void add_bias(const node& n, const distribution& result, value_id bias) {
    if (bias == no_value) return set_all(n, result);
    decide(bias, weight_role::bias, 0, targets_.bias * std::sqrt(result.variance()));
    const distribution added = at(bias);
    set_all(n, distribution(result.mean() + added.mean(), result.variance() + added.variance(), fresh()));
  }

  // Sums of `terms` products of the first two inputs; a weight among them is scaled so that the sums have the target's
  // power.
  void product_of(const node& n, double terms, value_id bias) {
    if (n.inputs.size() < 2 || n.inputs[1] == no_value) return;
    const double goal = target(n);
    for (const std::size_t slot : {std::size_t{1}, std::size_t{0}}) {
      const distribution other = at(n.inputs[1 - slot]);
      decide(n.inputs[slot], weight_role::factors, 0, std::sqrt(goal / (terms * std::max(other.power(), 1e-6))));
    }
    const distribution a = at(n.inputs[0]);
    const distribution b = at(n.inputs[1]);
    const double mean = terms * a.mean() * b.mean();
    double variance =
        terms * (a.variance() * b.variance() + a.variance() * b.mean() * b.mean() + b.variance() * a.mean() * a.mean());
    // Rows of shares, as attention has them, give means over tokens; deep in a network these are alike but for little.
    if (std::abs(terms * a.mean() - 1) < 0.01 && !weight(n.inputs[1])) variance = std::max(variance, b.variance());
    add_bias(n, distribution(mean, variance, fresh()), bias);
  }

  void matrix_product(const node& n) {
    // The summed dim, from the operand that states it as a number.
    const auto summed = [&](std::size_t slot, bool last) -> std::optional<std::int64_t> {
      const shape* s = slot < n.inputs.size() ? dims(n.inputs[slot]) : nullptr;
      if (s == nullptr || s->empty()) return std::nullopt;
      return (*s)[last ? s->size() - 1 : s->size() - std::min<std::size_t>(2, s->size())].as_constant();
    };
    const auto a = summed(0, n.attributes.get_int("transA", 0) == 0);
    const auto b = summed(1, n.attributes.get_int("transB", 0) != 0);
    const double terms = static_cast<double>(std::max<std::int64_t>(a ? *a : b.value_or(64), 1));
    product_of(n, terms, n.inputs.size() > 2 ? n.inputs[2] : no_value);
  }

  void element_wise(const node& n) {
    const std::string_view name = n.op->name;
    for (const scalar_row& row : scalar_functions)
      if (row.name == name) return set_all(n, at(n.inputs[0]).map([&](double x) { return row.f(x, n.attributes); }));
    if (name == "Where" && n.inputs.size() == 3) return set_all(n, mixture(n, 1));
    if (name == "Clip") return clip(n);
    for (const pair_row& row : pair_functions)
      if (row.name == name) return pairs(n, row);
    if (undecided(n.inputs[0])) return pass_weight(n);
    set_all(n, at(n.inputs[0]));
  }

  void clip(const node& n) {
    const auto bound = [&](std::size_t slot, double otherwise) {
      return slot < n.inputs.size() && n.inputs[slot] != no_value ? at(n.inputs[slot]).mean() : otherwise;
    };
    const double low = bound(1, -1e6);
    const double high = std::max(bound(2, 1e6), low);
    set_all(n, at(n.inputs[0]).map([&](double x) { return std::clamp(x, low, high); }));
  }

  void pairs(const node& n, const pair_row& row) {
    if (n.inputs.size() == 1) return set_all(n, at(n.inputs[0]));
    const bool scales = row.name == "Mul" || row.name == "Div";
    for (std::size_t slot = 0; slot < 2; ++slot) {
      const value_id v = n.inputs[slot];
      if (!undecided(v)) continue;
      const value_id other = n.inputs[1 - slot];
      if (scales) {
        decide(v, weight_role::scale, 1, normalizes_ ? targets_.scale : targets_.plain_scale);
        continue;
      }
      // A table of positions differs along more than the last dim: it is a signal of its own, not a bias.
      const shape* s = dims(v);
      const bool table = s != nullptr && std::count_if(s->begin(), s->end(),
                                                       [](const index_expr& d) { return !(d == index_expr(1)); }) > 1;
      const double deviation = std::sqrt(at(other).variance());
      decide(v, table ? weight_role::table : weight_role::bias, 0,
             (table ? 0.5 : targets_.bias) * (deviation > 0 ? deviation : 1.0));
    }
    distribution result = at(n.inputs[0]);
    for (std::size_t slot = 1; slot < n.inputs.size(); ++slot)
      if (n.inputs[slot] != no_value) result = combine(result, at(n.inputs[slot]), row, fresh());
    set_all(n, result);
  }

  // What a value is that takes its elements from several inputs.
  distribution mixture(const node& n, std::size_t from) {
    double mean = 0;
    double power = 0;
    double total = 0;
    const distribution* only = nullptr;
    for (std::size_t slot = from; slot < n.inputs.size(); ++slot) {
      const value_id v = n.inputs[slot];
      if (v == no_value) continue;
      decide(v, weight_role::table, 0, 1);
      const distribution& d = at(v);
      if (d.is_constant() && n.inputs.size() > from + 1) continue;  // padding and masks
      const double share = n.op->kind == computation_kind::view ? elements(v) : 1;
      mean += share * d.mean();
      power += share * d.power();
      total += share;
      only = &d;
    }
    if (only == nullptr) return at(n.inputs[from]);
    mean /= total;
    return distribution(mean, power / total - mean * mean, fresh());
  }

  void view(const node& n) {
    if (n.op->arity.most_inputs == variadic && n.inputs.size() > 1) return set_all(n, mixture(n, 0));
    if (weight(n.inputs[0])) return pass_weight(n);
    set_all(n, at(n.inputs[0]));
  }

  void normalization(const node& n) {
    const distribution x = at(n.inputs[0]);
    const auto slot = [&](std::size_t i) { return i < n.inputs.size() ? n.inputs[i] : no_value; };
    decide(slot(1), weight_role::scale, 1, targets_.scale);
    decide(slot(2), weight_role::shift, 0, targets_.bias);
    double mean = 0;
    double variance = 1;
    if (slot(4) != no_value) {  // with stored statistics
      const double v = std::max(x.variance() / targets_.convolution_power, 1e-4);
      decide(slot(4), weight_role::variance, v, 0.1 * v);
      decide(slot(3), weight_role::mean, 0, targets_.bias * std::sqrt(v));
      const double by = std::sqrt(std::max(at(slot(4)).mean(), 1e-4));
      mean = (x.mean() - at(slot(3)).mean()) / by;
      variance = (x.variance() + at(slot(3)).variance()) / (by * by);
    }
    if (slot(1) != no_value) {
      const distribution scale = at(slot(1));
      variance = variance * scale.power() + scale.variance() * mean * mean;
      mean *= scale.mean();
    }
    if (slot(2) != no_value) {
      variance += at(slot(2)).variance();
      mean += at(slot(2)).mean();
    }
    set_all(n, distribution(mean, variance, fresh()));
  }

  void softmax(const node& n) {
    const shape* s = dims(n.inputs[0]);
    double count = 64;
    if (s != nullptr && !s->empty()) {
      const std::int64_t axis = n.attributes.get_int("axis", -1);
      const auto rank = static_cast<std::int64_t>(s->size());
      if (axis >= -rank && axis < rank) count = number((*s)[static_cast<std::size_t>(axis < 0 ? axis + rank : axis)]);
    }
    const double mean = 1 / count;
    const double power = std::min(std::exp(std::min(at(n.inputs[0]).variance(), 20.0)) * mean * mean, mean);
    if (n.op->name == "LogSoftmax") return set_all(n, at(n.inputs[0]));
    set_all(n, distribution(mean, power - mean * mean, fresh()));
  }

  void reduction(const node& n) {
    const distribution x = at(n.inputs[0]);
    const double count = std::max(elements(n.inputs[0]) / std::max(elements(n.outputs[0]), 1.0), 1.0);
    const std::string_view name = n.op->name;
    if (name == "ReduceSum") return set_all(n, distribution(count * x.mean(), count * x.variance(), fresh()));
    if (name == "ReduceL2") return set_all(n, distribution(std::sqrt(count * x.power())));
    if (name == "ReduceSumSquare") return set_all(n, distribution(count * x.power()));
    if (name == "ReduceMax" || name == "ReduceMin") return largest(n, x, count, name == "ReduceMax");
    // A mean over the last axis is a normalization's, over features that differ; over others it is over neighbours.
    const shape* in = dims(n.inputs[0]);
    const shape* out = dims(n.outputs[0]);
    const bool features = in != nullptr && out != nullptr && in->size() == out->size() && !in->empty() &&
                          !(in->back() == out->back()) && std::equal(in->begin(), in->end() - 1, out->begin());
    set_all(n, distribution(x.mean(), x.variance() * (features ? 1 / count : share_of_mean(count)), fresh()));
  }
  // The extreme of `count` neighbours.
  void largest(const node& n, const distribution& x, double count, bool maximum) {
    const double far = 0.5 * std::sqrt(1.5 * std::log(std::max(count, 1.5)) * x.variance());
    set_all(n, distribution(x.mean() + (maximum ? far : -far), 1.5 * x.variance(), fresh()));
  }

  void pooling(const node& n) {
    const distribution x = at(n.inputs[0]);
    double count = 1;
    for (const std::int64_t k : n.attributes.get_ints("kernel_shape"))
      count *= static_cast<double>(std::max<std::int64_t>(k, 1));
    const shape* s = dims(n.inputs[0]);
    if (!n.attributes.contains("kernel_shape")) count = s == nullptr ? 49 : product(*s, 2, s->size());
    if (n.op->name.find("Max") != std::string_view::npos) return largest(n, x, count, true);
    set_all(n, distribution(x.mean(), x.variance() * share_of_mean(count), fresh()));
  }

  void attention(const node& n) {
    const value_id v = n.inputs.size() > 2 ? n.inputs[2] : n.inputs[0];
    for (const value_id input : n.inputs)
      if (input != no_value) decide(input, weight_role::factors, 0, 1);
    const distribution d = at(v);
    set_all(n, distribution(d.mean(), d.variance() / 4, fresh()));
  }

  // Of neighbouring pixels' or tokens' variance, on average over the zoo's networks with random weights.
  static constexpr double common_part = 0.35;

  const graph& graph_;
  const weight_lookup& weight_of_;
  weight_targets targets_;
  std::vector<std::optional<std::size_t>> weights_;  // by value: the weight that it views
  std::vector<weight_plan> plans_;
  std::vector<std::optional<distribution>> values_;
  std::vector<bool> feeds_softmax_;
  bool normalizes_ = false;
  std::uint64_t sources_ = 0;
};

}  // namespace dnnopt::onnx::detail

#endif  // DNNOPT_ZOO_PLAN_WEIGHTS_HPP

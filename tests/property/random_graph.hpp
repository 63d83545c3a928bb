// Owns the growth of random graphs: values drawn so far, and operators added to them under the rule that rounding must
// not decide what comes out.
#ifndef DNNOPT_TESTS_PROPERTY_RANDOM_GRAPH_HPP
#define DNNOPT_TESTS_PROPERTY_RANDOM_GRAPH_HPP

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <random>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dnnopt/graph.hpp>
#include <dnnopt/model.hpp>
#include <dnnopt/ops/standard.hpp>
#include <dnnopt/reference/evaluate_node.hpp>

namespace testing {

using dnnopt::dtype;
using dnnopt::value_id;
using ints = std::vector<std::int64_t>;

/// A value that operators may read.
struct drawn {
  value_id id = dnnopt::no_value;
  dtype type = dtype::undefined;
  dnnopt::shape dims;
  double largest = 0;  ///< the largest magnitude in any trial
};

/// One set of inputs: numbers for the symbols, and what every value is under them.
struct trial {
  dnnopt::symbol_values symbols;
  std::vector<dnnopt::tensor> plain;  ///< by value
  std::vector<dnnopt::tensor> noisy;  ///< the same where every operator rounds some ten times worse than it does
};

/// A graph that grows operator by operator. Every value is computed at once, with and without noise of the size that
/// other orders of summation have; where the noise grows beyond 3e-5 of the largest element, or a comparison, a
/// rounding or an index changes, nothing may read the value and no output is it: two right programs could differ there.
class random_graph {
 public:
  explicit random_graph(std::uint32_t seed) : random_(seed), ops_(dnnopt::standard_ops()) {
    g_.name = "random_" + std::to_string(seed);
    g_.opsets[""] = 21;
    const bool symbolic = rarely(4);
    trials_.resize(symbolic ? 2 : 1);
    std::vector<dnnopt::index_expr> symbols;
    for (int k = 0; symbolic && k < pick(1, 2); ++k) {
      symbols.push_back(g_.expressions().symbol("n" + std::to_string(k)));
      for (trial& t : trials_) t.symbols.bind(*symbols.back().as_symbol(), one_of({1, 2, 3, 4, 5, 6, 8}));
    }
    const int count = pick(1, 3);
    for (int i = 0; i < count; ++i) add_real_input(symbols);
    if (rarely(3)) add_integer_input(symbols);
  }

  // --- chance ---

  int pick(int low, int high) { return std::uniform_int_distribution<int>(low, high)(random_); }
  bool coin() { return pick(0, 1) == 1; }
  bool rarely(int one_in) { return pick(1, one_in) == 1; }
  template <class T>
  T one_of(std::initializer_list<T> choices) {
    return choices.begin()[pick(0, static_cast<int>(choices.size()) - 1)];
  }
  template <class T>
  T one_of(const std::vector<T>& choices) {
    return choices[static_cast<std::size_t>(pick(0, static_cast<int>(choices.size()) - 1))];
  }
  std::int64_t extent() { return one_of<std::int64_t>({1, 2, 3, 4, 5, 7, 8, 12}); }
  ints permutation(std::size_t rank) {
    ints perm;
    for (std::size_t k = 0; k < rank; ++k) perm.push_back(static_cast<std::int64_t>(k));
    std::shuffle(perm.begin(), perm.end(), random_);
    return perm;
  }

  // --- values ---

  /// A value for which `fits` holds. Later ones are likelier, so that chains grow; now and then an early one makes a
  /// branch.
  template <class Fits>
  std::optional<drawn> find(const Fits& fits) {
    std::vector<std::size_t> found;
    for (std::size_t i = 0; i < values_.size(); ++i)
      if (fits(values_[i])) found.push_back(i);
    if (found.empty()) return std::nullopt;
    const int last = static_cast<int>(found.size()) - 1;
    return values_[found[static_cast<std::size_t>(rarely(3) ? pick(0, last) : pick(std::max(0, last - 2), last))]];
  }
  std::optional<drawn> real(std::size_t least_rank = 0, std::size_t most_rank = 9) {
    return find([&](const drawn& v) {
      return v.type == dtype::float32 && v.dims.size() >= least_rank && v.dims.size() <= most_rank;
    });
  }
  /// The extents of a value in one trial, and the least and the largest extent of one of its axes.
  [[nodiscard]] dnnopt::dim_list extents(const drawn& v, std::size_t of_trial = 0) const {
    return dnnopt::evaluate(v.dims, trials_[of_trial].symbols);
  }
  [[nodiscard]] std::int64_t least(const drawn& v, std::size_t axis) const {
    std::int64_t found = extents(v)[axis];
    for (std::size_t t = 1; t < trials_.size(); ++t) found = std::min(found, extents(v, t)[axis]);
    return found;
  }
  /// Whether both broadcast together; `by_numbers`: in every trial, though the expressions need not tell.
  [[nodiscard]] bool broadcast(const drawn& a, const drawn& b, bool by_numbers = false) const {
    const std::size_t common = std::min(a.dims.size(), b.dims.size());
    for (std::size_t k = 1; k <= common; ++k) {
      const dnnopt::index_expr& x = a.dims[a.dims.size() - k];
      const dnnopt::index_expr& y = b.dims[b.dims.size() - k];
      if (x == y || x == dnnopt::index_expr(1) || y == dnnopt::index_expr(1)) continue;
      if (!by_numbers || x.is_constant() || y.is_constant()) return false;
      for (const trial& t : trials_) {
        const std::int64_t p = x.evaluate(t.symbols);
        const std::int64_t q = y.evaluate(t.symbols);
        if (p != q && p != 1 && q != 1) return false;
      }
    }
    return true;
  }
  /// Whether `a` broadcasts to the dims of `to`.
  [[nodiscard]] static bool spreads(const drawn& a, const drawn& to) {
    bool fits = a.dims.size() <= to.dims.size();
    for (std::size_t k = 1; fits && k <= a.dims.size(); ++k) {
      const dnnopt::index_expr& x = a.dims[a.dims.size() - k];
      fits = x == dnnopt::index_expr(1) || x == to.dims[to.dims.size() - k];
    }
    return fits;
  }
  [[nodiscard]] const dnnopt::tensor& content(value_id id) const { return trials_[0].plain[id]; }

  /// Some dims of `v` for a constant that spreads over it: ones where `v` is symbolic, and by chance.
  dnnopt::dim_list spread_dims(const drawn& v) {
    dnnopt::dim_list dims;
    for (const dnnopt::index_expr& d : v.dims) dims.push_back(d.is_constant() && coin() ? d.constant() : 1);
    while (!dims.empty() && dims[0] == 1 && coin()) dims.erase(dims.begin());
    if (rarely(12) && dims.size() < 5) dims.insert(dims.begin(), 1);
    return dims;
  }
  /// A constant; now and then one that is used already, an alias of it, or one that constants are computed from.
  value_id constant(const dnnopt::dim_list& dims, float low = -0.5F, float high = 0.5F) {
    if (rarely(4))
      for (const auto& [id, from] : shared_)
        if (from == low && content(id).dims() == dims && coin()) {
          if (!rarely(3)) return id;
          return add_inner("Identity", {id}).id;
        }
    const value_id id = hold(reals(dims, low, high));
    shared_.emplace_back(id, low);
    if (dims.size() == 2 && rarely(6)) {
      const value_id turned = hold(reals({dims[1], dims[0]}, low, high));
      return add_inner("Transpose", {turned}, {{"perm", ints{1, 0}}}).id;
    }
    return id;
  }
  value_id number(float value) { return hold(dnnopt::tensor::scalar(value)); }
  value_id number_of_rank(float value, std::size_t rank) {
    return hold(dnnopt::tensor::of<float>(dnnopt::dim_list(rank, 1), std::vector<float>{value}));
  }
  value_id integers(const ints& values) {
    return hold(dnnopt::tensor::of<std::int64_t>({static_cast<std::int64_t>(values.size())}, values));
  }
  value_id integers(dnnopt::dim_list dims, const ints& values) {
    return hold(dnnopt::tensor::of<std::int64_t>(std::move(dims), values));
  }
  /// A constant of any content.
  value_id hold(dnnopt::tensor content) {
    const value_id id = g_.add_constant(name("c"), content);
    keep(id, 0, content, content);
    return id;
  }
  dnnopt::tensor reals(const dnnopt::dim_list& dims, float low, float high) {
    dnnopt::tensor t(dtype::float32, dims);
    for (float& v : t.mutable_data<float>()) v = std::uniform_real_distribution<float>(low, high)(random_);
    return t;
  }

  // --- operators ---

  using attribute_list = std::vector<std::pair<std::string, dnnopt::attribute>>;

  /// A new operator; its outputs may be read by all that follows, where they are well conditioned.
  /// Errors: std::logic_error where what inference says is not what evaluation gives.
  std::vector<drawn> add(std::string_view op, std::vector<value_id> inputs, const attribute_list& attributes = {},
                         std::size_t outputs = 1) {
    return add_node(op, std::move(inputs), attributes, outputs, true);
  }
  /// An operator in the middle of a pattern: seldom read by what follows.
  drawn add_inner(std::string_view op, std::vector<value_id> inputs, const attribute_list& attributes = {}) {
    return add_node(op, std::move(inputs), attributes, 1, rarely(8))[0];
  }

  /// An operator with bodies, whose outputs have the facts that the caller tells from them; what its bodies capture
  /// begins at `captured` among the inputs.
  std::vector<drawn> add_flow(std::string_view op, std::vector<value_id> inputs, std::uint32_t captured,
                              const attribute_list& attributes, const std::vector<dnnopt::value_facts>& told) {
    std::vector<value_id> made;
    for (std::size_t i = 0; i < told.size(); ++i) made.push_back(g_.add_value(name("v")));
    const dnnopt::node_id id = place(op, std::move(inputs), made, attributes);
    g_.set_captured_begin(id, captured);
    for (std::size_t i = 0; i < told.size(); ++i) g_.facts(made[i]) = told[i];
    return finished(id, made, true);
  }
  /// For bodies.
  std::string name(std::string_view prefix) { return std::string(prefix) + std::to_string(counter_++); }
  [[nodiscard]] const dnnopt::value_facts& facts(value_id id) const { return g_.facts(id); }
  [[nodiscard]] dnnopt::graph empty_body() const { return dnnopt::graph(g_.shared_expressions()); }
  [[nodiscard]] const dnnopt::op_set& ops() const { return ops_; }

  /// Operators whose results may be read.
  [[nodiscard]] int accepted() const { return accepted_; }

  // --- the end ---

  /// What nobody reads is an output, and some of what somebody does; most of what no output needs is removed.
  void finish() {
    for (const drawn& v : values_) {
      const dnnopt::value& held = g_.value_at(v.id);
      if (held.producer == dnnopt::no_node) continue;
      if (held.uses.empty() || rarely(15)) g_.add_output(v.id);
    }
    if (g_.outputs().empty()) g_.add_output(add_node("Relu", {values_[0].id}, {}, 1, true)[0].id);
    if (!rarely(6)) remove_unread();
    // An importer knows nothing of intermediate values.
    const bool forget = coin();
    for (value_id v = 0; v < g_.value_count(); ++v)
      if (forget && g_.value_at(v).producer != dnnopt::no_node) g_.facts(v) = {};
  }

  [[nodiscard]] dnnopt::model model() const { return {g_, ops_, {}, {}, {}, 0}; }
  [[nodiscard]] const dnnopt::graph& made() const { return g_; }
  [[nodiscard]] const std::vector<trial>& trials() const { return trials_; }

 private:
  void add_real_input(const std::vector<dnnopt::index_expr>& symbols) {
    dnnopt::shape dims;
    const int rank = one_of({1, 2, 2, 3, 3, 3, 4, 4, 4, 4, 5});
    for (int k = 0; k < rank; ++k)
      dims.push_back(!symbols.empty() && rarely(3) ? one_of(symbols) : dnnopt::index_expr(extent()));
    // Coarse numbers are often equal.
    const bool coarse = rarely(4);
    add_input(dtype::float32, dims, [&](const dnnopt::dim_list& extents) {
      dnnopt::tensor t = reals(extents, -1.0F, 1.0F);
      if (coarse)
        for (float& v : t.mutable_data<float>()) v = std::round(v * 4) / 4;
      return t;
    });
  }
  void add_integer_input(const std::vector<dnnopt::index_expr>& symbols) {
    dnnopt::shape dims;
    const int rank = pick(1, 2);
    for (int k = 0; k < rank; ++k)
      dims.push_back(!symbols.empty() && coin() ? one_of(symbols) : dnnopt::index_expr(extent()));
    add_input(dtype::int64, dims, [&](const dnnopt::dim_list& extents) {
      dnnopt::tensor t(dtype::int64, extents);
      for (std::int64_t& v : t.mutable_data<std::int64_t>()) v = pick(0, 7);
      return t;
    });
  }
  template <class Make>
  void add_input(dtype type, const dnnopt::shape& dims, const Make& make) {
    const value_id id = g_.add_input(name("x"), type, dims);
    for (std::size_t t = 0; t < trials_.size(); ++t) {
      const dnnopt::tensor made = make(dnnopt::evaluate(dims, trials_[t].symbols));
      keep(id, t, made, made);
    }
    values_.push_back({id, type, dims, 7});
  }

  // Constants are kept for the first trial and read from there by all.
  void keep(value_id id, std::size_t of_trial, dnnopt::tensor plain, dnnopt::tensor noisy) {
    trial& t = trials_[of_trial];
    t.plain.resize(std::max<std::size_t>(t.plain.size(), id + 1));
    t.noisy.resize(std::max<std::size_t>(t.noisy.size(), id + 1));
    t.plain[id] = std::move(plain);
    t.noisy[id] = std::move(noisy);
  }
  [[nodiscard]] const dnnopt::tensor& held(value_id id, const trial& t, bool noisy) const {
    const trial& from = g_.facts(id).is_constant() ? trials_[0] : t;
    return noisy ? from.noisy[id] : from.plain[id];
  }

  std::vector<drawn> add_node(std::string_view op, std::vector<value_id> inputs, const attribute_list& attributes,
                              std::size_t outputs, bool readable) {
    std::vector<value_id> made;
    for (std::size_t i = 0; i < outputs; ++i) made.push_back(g_.add_value(name("v")));
    const dnnopt::node_id id = place(op, std::move(inputs), made, attributes);
    const dnnopt::facts_of_node facts(g_, id);
    std::vector<dnnopt::value_facts> told(outputs);
    g_.node_at(id).op->infer(*facts, told);
    for (std::size_t i = 0; i < outputs; ++i) g_.facts(made[i]) = told[i];
    return finished(id, made, readable);
  }
  dnnopt::node_id place(std::string_view op, std::vector<value_id> inputs, const std::vector<value_id>& outputs,
                        const attribute_list& attributes) {
    dnnopt::attribute_map map;
    for (const auto& [key, value] : attributes) map.set(key, value);
    return g_.add_node(ops_.at("", op), name(op), std::move(inputs), outputs, std::move(map));
  }
  std::vector<drawn> finished(dnnopt::node_id id, const std::vector<value_id>& made, bool readable) {
    for (std::size_t t = 0; t < trials_.size(); ++t) evaluate(id, t);
    std::vector<drawn> result;
    bool counted = false;
    for (const value_id v : made) {
      result.push_back(judged(v, id));
      if (!readable || !well_conditioned(v)) continue;
      values_.push_back(result.back());
      counted = true;
    }
    accepted_ += counted ? 1 : 0;
    return result;
  }

  void evaluate(dnnopt::node_id id, std::size_t of_trial) {
    const dnnopt::node& n = g_.node_at(id);
    const trial& t = trials_[of_trial];
    std::vector<dnnopt::tensor> results[2];
    for (const bool noisy : {false, true}) results[noisy ? 1 : 0] = evaluated(id, t, noisy ? 1 : 0, 0);
    // What rounds to integers must do so by a margin: noise in either direction, four times as large, changes no code.
    for (const float way : {-1.0F, 1.0F})
      if (rounds(n)) {
        const std::vector<dnnopt::tensor> moved = evaluated(id, t, 4 * way, 2e-6F * way);
        for (std::size_t i = 0; i < moved.size(); ++i)
          if (moved[i].type() != dtype::float32 && !same_bytes(moved[i], results[0][i])) results[1][i] = moved[i];
      }
    const bool moves = n.op->kind == dnnopt::computation_kind::view ||
                       n.op->kind == dnnopt::computation_kind::indexed_read || n.op->name == "Cast";
    for (std::size_t i = 0; i < n.outputs.size(); ++i) {
      if (!moves) add_noise(results[1][i]);
      keep(n.outputs[i], of_trial, std::move(results[0][i]), std::move(results[1][i]));
    }
  }
  [[nodiscard]] static bool same_bytes(const dnnopt::tensor& a, const dnnopt::tensor& b) {
    return std::equal(a.bytes().begin(), a.bytes().end(), b.bytes().begin(), b.bytes().end());
  }
  /// Whether a node computes in reals and gives integers.
  [[nodiscard]] static bool rounds(const dnnopt::node& n) {
    return n.op->name == "QuantizeLinear" || n.op->name == "DynamicQuantizeLinear" || n.op->name == "QLinearConv" ||
           n.op->name == "QLinearMatMul";
  }
  /// A node's results where its arguments have `noise` times their noise, and the first real one is larger by a share.
  [[nodiscard]] std::vector<dnnopt::tensor> evaluated(dnnopt::node_id id, const trial& t, float noise,
                                                      float share) const {
    std::vector<dnnopt::tensor> arguments;
    bool grown = share == 0;
    for (const value_id v : g_.node_at(id).inputs) {
      if (v == dnnopt::no_value) {
        arguments.emplace_back();
        continue;
      }
      const dnnopt::tensor& plain = held(v, t, false);
      const dnnopt::tensor& noisy = held(v, t, true);
      arguments.push_back(noise == 0 ? plain : noisy);
      if (noise == 0 || noise == 1 || plain.type() != dtype::float32) continue;
      dnnopt::tensor moved(dtype::float32, plain.dims());
      for (std::size_t i = 0; i < moved.data<float>().size(); ++i) {
        const float p = plain.data<float>()[i];
        moved.mutable_data<float>()[i] = (p + noise * (noisy.data<float>()[i] - p)) * (grown ? 1.0F : 1.0F + share);
      }
      grown = true;
      arguments.back() = std::move(moved);
    }
    return dnnopt::reference::evaluate_node(g_, id, arguments);
  }
  void add_noise(dnnopt::tensor& t) {
    if (t.type() != dtype::float32) return;
    float largest = 0;
    for (const float v : t.data<float>()) largest = std::max(largest, std::abs(v));
    std::uniform_real_distribution<float> one(-1.0F, 1.0F);
    for (float& v : t.mutable_data<float>()) v += one(random_) * (1e-6F * v + 2e-7F * largest);
  }

  drawn judged(value_id v, dnnopt::node_id id) const {
    const dnnopt::value_facts& facts = g_.facts(v);
    drawn result{v, facts.type, {}, 0};
    if (!facts.dims) throw std::logic_error("no shape of " + g_.node_at(id).name);
    result.dims = *facts.dims;
    for (const trial& t : trials_) {
      const dnnopt::tensor& content = t.plain[v];
      if (content.type() != facts.type || content.dims() != dnnopt::evaluate(*facts.dims, t.symbols))
        throw std::logic_error(g_.node_at(id).name + ": inferred " + std::string(dnnopt::name_of(facts.type)) + " " +
                               dnnopt::to_string(*facts.dims) + ", computed " +
                               std::string(dnnopt::name_of(content.type())) + " " + dnnopt::to_string(content.dims()));
      if (content.type() == dtype::float32)
        for (const float x : content.data<float>())
          result.largest = std::max(result.largest, static_cast<double>(std::abs(x)));
    }
    return result;
  }

  /// Not large, not empty, and as good as free of noise in every trial.
  [[nodiscard]] bool well_conditioned(value_id v) const {
    for (const trial& t : trials_) {
      const dnnopt::tensor& plain = t.plain[v];
      const dnnopt::tensor& noisy = t.noisy[v];
      if (plain.size() == 0 || plain.size() > 20000) return false;
      if (plain.type() != dtype::float32) {
        if (!same_bytes(plain, noisy)) return false;
        if (plain.type() != dtype::boolean)
          for (const std::int64_t x : dnnopt::integers_of(plain))
            if (std::abs(x) > 1000000) return false;
        continue;
      }
      float largest = 1e-3F;
      float apart = 0;
      for (std::size_t i = 0; i < plain.data<float>().size(); ++i) {
        const float x = plain.data<float>()[i];
        if (!(std::abs(x) <= 300)) return false;
        largest = std::max(largest, std::abs(x));
        apart = std::max(apart, std::abs(x - noisy.data<float>()[i]));
      }
      if (!(apart <= 3e-5F * largest)) return false;
    }
    return true;
  }

  void remove_unread() {
    const std::vector<dnnopt::node_id> order = g_.topological_order();
    for (auto id = order.rbegin(); id != order.rend(); ++id) {
      bool wanted = false;
      for (const value_id v : g_.node_at(*id).outputs)
        wanted = wanted || g_.is_output(v) || !g_.value_at(v).uses.empty();
      if (!wanted) g_.remove_node(*id);
    }
  }

  std::mt19937 random_;
  dnnopt::op_set ops_;
  dnnopt::graph g_;
  std::vector<trial> trials_;
  std::vector<drawn> values_;
  std::vector<std::pair<value_id, float>> shared_;  // constants and their least element
  std::size_t counter_ = 0;
  int accepted_ = 0;
};

}  // namespace testing

#endif  // DNNOPT_TESTS_PROPERTY_RANDOM_GRAPH_HPP

// Owns common subexpressions: nodes that compute the same from the same, and equal small constants, become one.
#ifndef DNNOPT_PASSES_MERGE_EQUAL_HPP
#define DNNOPT_PASSES_MERGE_EQUAL_HPP

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <dnnopt/graph.hpp>
#include <dnnopt/passes/pass.hpp>

namespace dnnopt {

/// Before: two nodes of one operator with equal attributes that read the same values.
/// After: readers of the second read the first; the second is gone. Constants of up to `largest_constant` elements
/// that are equal are merged first, and those of up to `largest_choice` elements that are only compared or chosen from;
/// others are weights, on whose values no edit may depend. Conditions: the
/// operator is deterministic and has no bodies; an output that is a graph output keeps its node. O(V + E) expected.
struct merge_equal {
  static constexpr std::string_view name = "merge_equal";
  std::int64_t largest_constant = 63;
  std::int64_t largest_choice = 4096;

  pass_result run(graph& g) const {
    pass_result result;
    merge_constants(g, result);
    const std::vector<node_id> order = g.topological_order();
    first_of_equals seen;
    for (const node_id id : order) {
      const auto key = key_of(g, id);
      if (!key) continue;
      const node_id first = seen.find_or_add(*key, id, [&](node_id one) { return same_nodes(g, one, id); });
      if (first == id) continue;
      const std::vector<value_id> outputs = g.node_at(id).outputs;
      const std::vector<value_id> kept = g.node_at(first).outputs;
      bool possible = outputs.size() == kept.size();
      for (std::size_t i = 0; possible && i < outputs.size(); ++i)
        possible = (outputs[i] == no_value || (kept[i] != no_value && !g.is_output(outputs[i])));
      if (!possible) continue;
      for (std::size_t i = 0; i < outputs.size(); ++i)
        if (outputs[i] != no_value) {
          if (g.facts(kept[i]).dims) g.learn_dims(outputs[i], *g.facts(kept[i]).dims);
          g.replace_uses(outputs[i], kept[i]);
        }
      g.remove_node(id);
      ++result.edits;
    }
    return result;
  }

 private:
  /// The first of equal things, by their keys: a flat table with open addressing, for of large graphs a chained one
  /// waits for memory at every link.
  class first_of_equals {
   public:
    /// The thing of an equal key that `is_equal` accepts, or `id`, which is then one of them. O(1) expected, amortized.
    template <class Equal>
    [[nodiscard]] std::uint32_t find_or_add(std::size_t key, std::uint32_t id, const Equal& is_equal) {
      if (2 * (count_ + 1) > rows_.size()) grow();
      std::size_t at = place_of(key);
      for (; rows_[at].id != nothing; at = next(at))
        if (rows_[at].key == key && is_equal(rows_[at].id)) return rows_[at].id;
      rows_[at] = {key, id};
      ++count_;
      return id;
    }

   private:
    static constexpr std::uint32_t nothing = std::numeric_limits<std::uint32_t>::max();
    struct row {
      std::size_t key = 0;
      std::uint32_t id = nothing;
    };

    // The upper half of a product depends on all bits below it.
    [[nodiscard]] std::size_t place_of(std::size_t key) const {
      return ((key * 0x9E3779B97F4A7C15ULL) >> 32) & (rows_.size() - 1);
    }
    [[nodiscard]] std::size_t next(std::size_t at) const { return (at + 1) & (rows_.size() - 1); }
    void grow() {
      std::vector<row> old(rows_.size() * 2);
      std::swap(old, rows_);
      for (const row& one : old) {
        if (one.id == nothing) continue;
        std::size_t at = place_of(one.key);
        while (rows_[at].id != nothing) at = next(at);
        rows_[at] = one;
      }
    }

    std::vector<row> rows_ = std::vector<row>(64);
    std::size_t count_ = 0;
  };

  void merge_constants(graph& g, pass_result& result) const {
    const auto count = static_cast<value_id>(g.value_count());
    first_of_equals seen;
    for (value_id id = 0; id < count; ++id) {
      const value_facts& facts = g.facts(id);
      if (!facts.is_constant() || facts.type == dtype::string || g.value_at(id).uses.empty()) continue;
      const std::int64_t size = facts.constant.size();
      const auto [least, most] = std::minmax(largest_constant, largest_choice);
      if (size > most || (size > least && size > (is_choice(g, id) ? largest_choice : largest_constant))) continue;
      if (g.is_output(id)) continue;
      std::size_t key = mixed(static_cast<std::size_t>(facts.type), hash_of(text_of(facts.constant)));
      for (const std::int64_t dim : facts.constant.dims()) key = mixed(key, hash_of(dim));
      const value_id first = seen.find_or_add(key, id, [&](value_id one) {
        const tensor& other = g.facts(one).constant;
        return other.type() == facts.constant.type() && other.dims() == facts.constant.dims() &&
               text_of(other) == text_of(facts.constant);
      });
      if (first == id) continue;
      g.replace_uses(id, first);
      ++result.edits;
    }
  }

  /// Whether only element-wise operators without algebraic properties read a constant (Where, comparisons): what is
  /// learned is added or multiplied.
  static bool is_choice(const graph& g, value_id id) {
    const auto& uses = g.value_at(id).uses;
    return std::all_of(uses.begin(), uses.end(), [&](const value_use& use) {
      const op_info& op = *g.node_at(use.node).op;
      return op.kind == computation_kind::element_wise && op.properties == algebra::none;
    });
  }

  static std::string_view text_of(const tensor& t) {
    return {reinterpret_cast<const char*>(t.bytes().data()), t.bytes().size()};
  }
  template <class T>
  static std::size_t hash_of(const T& v) {
    return std::hash<T>{}(v);
  }
  static std::size_t mixed(std::size_t seed, std::size_t next) {
    return (seed ^ next) * 0x9E3779B97F4A7C15ULL + (seed >> 7);
  }

  /// A number that equal nodes share; nothing for nodes that are never merged. Texts as keys would cost a page of
  /// memory per ten nodes.
  static std::optional<std::size_t> key_of(const graph& g, node_id id) {
    const node& n = g.node_at(id);
    if (n.op->random || n.op->kind == computation_kind::random || n.op->kind == computation_kind::control_flow)
      return std::nullopt;
    std::size_t key = mixed(hash_of(n.op), n.outputs.size());
    for (const value_id in : n.inputs) key = mixed(key, hash_of(in));
    std::size_t attributes = 0;  // a sum, for their order says nothing
    for (const auto& [attribute_name, held] : n.attributes) {
      // Bodies are not compared, nor are tensors, which may be large.
      if (std::holds_alternative<subgraph>(held) || std::holds_alternative<tensor>(held) ||
          std::holds_alternative<std::vector<tensor>>(held))
        return std::nullopt;
      std::size_t content = held.index();
      if (const auto* one = std::get_if<std::int64_t>(&held)) content = mixed(content, hash_of(*one));
      if (const auto* many = std::get_if<std::vector<std::int64_t>>(&held))
        for (const std::int64_t v : *many) content = mixed(content, hash_of(v));
      attributes += mixed(hash_of(std::string_view(attribute_name)), content);
    }
    return mixed(key, attributes);
  }

  static bool same_content(const std::vector<float>& a, const std::vector<float>& b) {
    // By their bits: zeros of two signs are two values.
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](float x, float y) {
      return std::bit_cast<std::uint32_t>(x) == std::bit_cast<std::uint32_t>(y);
    });
  }
  static bool same_content(float a, float b) {
    return std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b);
  }
  template <class T>
  static bool same_content(const T& a, const T& b) {
    return a == b;
  }
  template <class T>
  static bool both_hold(const attribute& a, const attribute& b) {
    const T* one = std::get_if<T>(&a);
    const T* other = std::get_if<T>(&b);
    return one != nullptr && other != nullptr && same_content(*one, *other);
  }
  static bool covers(const attribute_map& some, const attribute_map& all) {
    for (const auto& [key, held] : some) {
      const attribute* other = all.find(key);
      if (other == nullptr ||
          !(both_hold<std::int64_t>(held, *other) || both_hold<float>(held, *other) ||
            both_hold<std::string>(held, *other) || both_hold<std::vector<std::int64_t>>(held, *other) ||
            both_hold<std::vector<float>>(held, *other) || both_hold<std::vector<std::string>>(held, *other)))
        return false;
    }
    return true;
  }
  static bool same_nodes(const graph& g, node_id a, node_id b) {
    const node& x = g.node_at(a);
    const node& y = g.node_at(b);
    return x.op == y.op && x.inputs == y.inputs && x.outputs.size() == y.outputs.size() &&
           covers(x.attributes, y.attributes) && covers(y.attributes, x.attributes);
  }
};

static_assert(Pass<merge_equal>);

}  // namespace dnnopt

#endif  // DNNOPT_PASSES_MERGE_EQUAL_HPP

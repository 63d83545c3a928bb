// Owns identity removal: views whose output is their input, element by element, in the same shape.
#ifndef DNNOPT_PASSES_REMOVE_IDENTITY_HPP
#define DNNOPT_PASSES_REMOVE_IDENTITY_HPP

#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include <dnnopt/graph.hpp>
#include <dnnopt/ops/state_view.hpp>
#include <dnnopt/passes/pass.hpp>

namespace dnnopt {

namespace detail {
/// Records a view's only piece, if it has just one without conditions and without loads.
class single_piece final : public view_builder {
 public:
  void piece(std::size_t input, std::vector<index_expr> indices, std::vector<condition> conditions) override {
    valid = valid && !found && conditions.empty();
    found.emplace(input, std::move(indices));
  }
  void fill_from(std::size_t) override { valid = false; }
  void fill(double) override { valid = false; }
  index_expr load(std::size_t, std::span<const index_expr>, expr_range) override {
    valid = false;
    return 0;
  }
  index_expr wrap_negative(const index_expr& index, const index_expr&) override {
    if (index.range().low < 0) valid = false;
    return index;
  }
  bool valid = true;
  std::optional<std::pair<std::size_t, std::vector<index_expr>>> found;
};

}  // namespace detail

/// Before: y = View(x) where the index map is the identity and the shapes are equal (Identity, a Transpose that moves
/// nothing, a Reshape to the same shape, a Concat of one, a Slice of all, a Resize by one where it is a view).
/// After: readers of y read x. A view between a graph input or constant and a graph output stays, for both have names.
struct remove_identity {
  static constexpr std::string_view name = "remove_identity";

  pass_result run(graph& g) const {
    pass_result result;
    for (const node_id id : g.topological_order()) {
      const node& n = g.node_at(id);
      if (n.op->view == nullptr || n.outputs.size() != 1 || n.outputs[0] == no_value) continue;
      const value_id out = n.outputs[0];
      if (!g.facts(out).dims) continue;
      bool known = true;
      for (const value_id in : n.inputs) known = known && (in == no_value || g.facts(in).dims.has_value());
      if (!known) continue;
      const auto source = identity_source(g, id);
      if (!source) continue;
      const value& from = g.value_at(*source);
      if (g.is_output(out) && (from.producer == no_node || g.is_output(*source))) continue;
      if (g.is_output(out)) {
        // The output keeps its name: the producer of the source writes it directly.
        g.remove_node(id);
        g.move_output(*source, out);
        g.replace_uses(*source, out);
      } else {
        g.replace_uses(out, *source);
        g.remove_node(id);
      }
      ++result.edits;
    }
    return result;
  }

 private:
  static std::optional<value_id> identity_source(const graph& g, node_id id) {
    const node& n = g.node_at(id);
    const shape& dims = *g.facts(n.outputs[0]).dims;
    const facts_of_node facts(g, id);
    std::vector<index_expr> index;
    for (std::size_t k = 0; k < dims.size(); ++k) {
      const expr_range r = dims[k].range();
      // Symbols of equal range share a name, so that repeated runs do not grow the context.
      const std::int64_t last = r.high >= unbounded ? unbounded : (r.high > 0 ? r.high - 1 : 0);
      index.push_back(dims[k] == index_expr(1)
                          ? index_expr(0)
                          : g.expressions().symbol("i" + std::to_string(k) + "<" + std::to_string(last), {0, last},
                                                   symbol_kind::index));
    }
    detail::single_piece view;
    if (!detail::state_view(view, *n.op, *facts, 0, index)) return std::nullopt;
    if (!view.valid || !view.found) return std::nullopt;
    const value_id source = n.inputs.at(view.found->first);
    if (source == no_value || g.facts(source).dims != dims || view.found->second.size() != index.size())
      return std::nullopt;
    for (std::size_t k = 0; k < index.size(); ++k)
      if (!(view.found->second[k] == index[k]) && !(dims[k] == index_expr(1))) return std::nullopt;
    return source;
  }
};

static_assert(Pass<remove_identity>);

}  // namespace dnnopt

#endif  // DNNOPT_PASSES_REMOVE_IDENTITY_HPP

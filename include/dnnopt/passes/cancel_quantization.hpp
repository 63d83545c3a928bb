// Owns the removal of pairs of DequantizeLinear and QuantizeLinear between which elements are only moved.
#ifndef DNNOPT_PASSES_CANCEL_QUANTIZATION_HPP
#define DNNOPT_PASSES_CANCEL_QUANTIZATION_HPP

#include <algorithm>
#include <cstddef>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include <dnnopt/graph.hpp>
#include <dnnopt/ops/gather.hpp>
#include <dnnopt/ops/slice.hpp>
#include <dnnopt/passes/pass.hpp>
#include <dnnopt/passes/remove_dead.hpp>
#include <dnnopt/passes/rewriting/edit.hpp>

namespace dnnopt {

/// Before: y = QuantizeLinear(View(DequantizeLinear(x, scale, zero)), scale, zero), as quantizers write it around every
/// operator that moves elements; or the same without a view.
/// After:  y = View(x), or x.
/// Conditions: one scale between 1e-30 and 1e30 and one zero point, both constant and the same before and behind; codes
/// of at most 16 bits, of one type. Then (code - zero) * scale / scale rounds to code - zero whatever is rounded on the
/// way, for a quotient errs by less than a part in 2^22. A view with several outputs has each of them quantized alike.
/// O(V log V + E).
struct cancel_quantization {
  static constexpr std::string_view name = "cancel_quantization";

  pass_result run(graph& g) const {
    pass_result result;
    std::set<node_id> gone;
    for (const node_id id : g.topological_order()) {
      if (gone.contains(id)) continue;
      if (cancel_pair(g, id) || cancel_around_view(g, id, gone)) ++result.edits;
    }
    if (result.edits != 0) (void)remove_dead{}.run(g);
    return result;
  }

 private:
  /// Whether output elements of the operator are elements of input 0, all of them, whatever they are.
  static bool moves_elements(const op_info& op) {
    return op.unview != nullptr || &op == &op_row<ops::slice_op> || &op == &op_row<ops::split_op> ||
           &op == &op_row<ops::gather_op>;
  }

  /// Whether both are one constant number each, the same one, or neither is there.
  static bool same_number(const graph& g, value_id a, value_id b) {
    if (a == no_value || b == no_value) return a == b;
    const value_facts& first = g.facts(a);
    const value_facts& second = g.facts(b);
    return first.is_constant() && second.is_constant() && first.type == second.type && first.constant.size() == 1 &&
           second.constant.size() == 1 && std::ranges::equal(first.constant.bytes(), second.constant.bytes());
  }
  static value_id zero_of(const node& n) { return n.inputs.size() > 2 ? n.inputs[2] : no_value; }

  /// Whether what `dequantizer` gives is quantized by `quantizer` to the codes that it had.
  static bool gives_back(const graph& g, const node& dequantizer, const node& quantizer) {
    if (!dequantizer.op->dequantizes || !quantizer.op->quantizes) return false;
    const value_facts& codes = g.facts(dequantizer.inputs[0]);
    if (codes.type != g.facts(quantizer.outputs[0]).type || !is_integer(codes.type)) return false;
    if (row_of(codes.type).packed_bits > 16) return false;
    const value_facts& scale = g.facts(quantizer.inputs[1]);
    if (!scale.is_constant() || scale.type != dtype::float32 || scale.constant.size() != 1) return false;
    const float number = scale.constant.data<float>()[0];
    return number > 1e-30F && number < 1e30F && same_number(g, dequantizer.inputs[1], quantizer.inputs[1]) &&
           same_number(g, zero_of(dequantizer), zero_of(quantizer)) &&
           g.facts(dequantizer.outputs[0]).type == dtype::float32;
  }

  static const node* producer_of(const graph& g, value_id v) {
    const node_id made = v == no_value ? no_node : g.value_at(v).producer;
    return made == no_node ? nullptr : &g.node_at(made);
  }

  /// `id` quantizes what was dequantized.
  static bool cancel_pair(graph& g, node_id id) {
    const node& n = g.node_at(id);
    if (!n.op->quantizes || g.is_output(n.outputs[0])) return false;
    const node* const made = producer_of(g, n.inputs[0]);
    if (made == nullptr || !gives_back(g, *made, n)) return false;
    const value_id codes = made->inputs[0];
    const value_id out = n.outputs[0];
    if (g.facts(codes).dims) g.learn_dims(out, *g.facts(codes).dims);
    g.replace_uses(out, codes);
    g.remove_node(id);
    return true;
  }

  /// `id` is a view of what was dequantized, and only quantized again. The quantizers are `gone` then.
  static bool cancel_around_view(graph& g, node_id id, std::set<node_id>& gone) {
    const node n = g.node_at(id);
    if (!moves_elements(*n.op) || n.inputs.empty()) return false;
    const node* const made = producer_of(g, n.inputs[0]);
    if (made == nullptr || !made->op->dequantizes) return false;
    const value_id codes = made->inputs[0];
    std::vector<node_id> quantizers;
    for (const value_id out : n.outputs) {
      quantizers.push_back(no_node);
      if (out == no_value) continue;
      if (!rewriting::has_one_reader(g, out)) return false;
      const node_id reader = g.value_at(out).uses.front().node;
      if (g.node_at(reader).inputs[0] != out || !gives_back(g, *made, g.node_at(reader))) return false;
      quantizers.back() = reader;
    }
    std::vector<value_id> outputs;
    for (const node_id quantizer : quantizers) {
      outputs.push_back(quantizer == no_node ? no_value : g.node_at(quantizer).outputs[0]);
      if (quantizer == no_node) continue;
      g.remove_node(quantizer);
      gone.insert(quantizer);
    }
    g.remove_node(id);
    std::vector<value_id> inputs = n.inputs;
    inputs[0] = codes;
    g.add_node(*n.op, n.name, std::move(inputs), std::move(outputs), n.attributes);
    return true;
  }
};

static_assert(Pass<cancel_quantization>);

}  // namespace dnnopt

#endif  // DNNOPT_PASSES_CANCEL_QUANTIZATION_HPP

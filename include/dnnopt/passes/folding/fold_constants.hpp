// Owns constant folding: values that constants or RDP's value map determine become constants.
#ifndef DNNOPT_PASSES_FOLDING_FOLD_CONSTANTS_HPP
#define DNNOPT_PASSES_FOLDING_FOLD_CONSTANTS_HPP

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <dnnopt/error.hpp>
#include <dnnopt/graph.hpp>
#include <dnnopt/passes/graph_views.hpp>
#include <dnnopt/passes/pass.hpp>

namespace dnnopt {

/// Before: a node whose inputs are all constants, or whose integer outputs RDP knows element by element.
/// After: the outputs are constants, the node is gone, readers are unchanged.
/// Conditions: the node is deterministic; its outputs are not larger than `growth_limit` bytes unless they are no
/// larger than its inputs (an Expand of a scalar stays); codes that matrix products read, which take them as they are,
/// become floats up to a 64th of it, and stay codes with `keep_codes`, those of convolutions too. A node that the
/// evaluator refuses stays, with a remark.
struct fold_constants {
  static constexpr std::string_view name = "fold_constants";
  node_evaluator evaluate = nullptr;
  std::size_t growth_limit = std::size_t{1} << 20;
  bool keep_codes = false;

  pass_result run(graph& g) const {
    pass_result result;
    for (const node_id id : g.topological_order()) {
      const node& n = g.node_at(id);
      if (n.op->random || n.outputs.empty()) continue;
      if (fold_known_elements(g, id)) {
        ++result.edits;
        continue;
      }
      bool constant = true;
      std::size_t input_bytes = 0;
      std::vector<tensor> inputs;
      for (const value_id in : n.inputs) {
        if (in == no_value) {
          inputs.emplace_back();
          continue;
        }
        const value_facts& facts = g.facts(in);
        constant = constant && facts.is_constant();
        if (!constant) break;
        inputs.push_back(facts.constant);
        input_bytes += facts.constant.byte_size();
      }
      if (!constant || evaluate == nullptr || has_subgraph(n) || grows(g, n, input_bytes)) continue;
      if (keep_codes && feeds_products(g, n, true)) continue;
      try {
        replace(g, id, evaluate(g, id, inputs));
        ++result.edits;
      } catch (const error& e) {
        if (e.code() != errc::unsupported) throw;
        result.remarks.push_back(std::string("not folded: ") + e.what());
      }
    }
    return result;
  }

 private:
  static bool has_subgraph(const node& n) {
    for (const auto& [key, held] : n.attributes)
      if (std::holds_alternative<subgraph>(held)) return true;
    return false;
  }

  bool grows(const graph& g, const node& n, std::size_t input_bytes) const {
    double output_bytes = 0;
    for (const value_facts& facts : n.outputs | views::present | views::facts_in(g)) {
      if (!facts.dims) continue;
      // What the content of a constant decides is bounded by its ranges.
      auto most = static_cast<double>(size_of(facts.type));
      for (const index_expr& dim : *facts.dims) {
        if (dim.range().high >= unbounded) return true;
        most *= static_cast<double>(dim.range().high);
      }
      output_bytes += most;
    }
    const std::size_t limit = feeds_products(g, n, false) ? growth_limit / 64 : growth_limit;
    return output_bytes > static_cast<double>(std::max(limit, input_bytes));
  }

  /// Whether a node dequantizes matrices of integer codes for matrix products alone; or, with `convolutions`, codes of
  /// any rank for those or for convolutions of one group.
  static bool feeds_products(const graph& g, const node& n, bool convolutions) {
    if (!n.op->dequantizes || g.is_output(n.outputs[0])) return false;
    const value_facts& codes = g.facts(n.inputs[0]);
    if (!is_integer(codes.type) || row_of(codes.type).packed_bits > 8 || !codes.dims) return false;
    if (!convolutions && codes.dims->size() != 2) return false;
    const auto& uses = g.value_at(n.outputs[0]).uses;
    return std::all_of(uses.begin(), uses.end(), [&](const value_use& use) {
      const node& reader = g.node_at(use.node);
      return reader.op->kind == computation_kind::matrix_product ||
             (convolutions && reader.op->kind == computation_kind::convolution &&
              reader.attributes.get_int("group", 1) == 1);
    });
  }

  static bool fold_known_elements(graph& g, node_id id) {
    const node& n = g.node_at(id);
    std::vector<tensor> known;
    for (const value_id out : n.outputs) {
      if (out == no_value) {
        known.emplace_back();
        continue;
      }
      const value_facts& facts = g.facts(out);
      if (!facts.elements || !facts.dims) return false;
      const auto dims = static_dims(*facts.dims);
      if (!dims) return false;
      std::vector<std::int64_t> numbers;
      for (const index_expr& e : *facts.elements) {
        if (!e.is_constant()) return false;
        numbers.push_back(e.constant());
      }
      if (static_cast<std::int64_t>(numbers.size()) != element_count(*dims)) return false;
      if (facts.type == dtype::int64) {
        known.push_back(tensor::of<std::int64_t>(*dims, numbers));
      } else if (facts.type == dtype::int32) {
        known.push_back(tensor::of<std::int32_t>(*dims, std::vector<std::int32_t>(numbers.begin(), numbers.end())));
      } else if (facts.type == dtype::boolean) {
        tensor t(dtype::boolean, *dims);
        auto data = t.mutable_data<bool>();
        for (std::size_t i = 0; i < numbers.size(); ++i) data[i] = numbers[i] != 0;
        known.push_back(std::move(t));
      } else {
        return false;
      }
    }
    replace(g, id, std::move(known));
    return true;
  }

  static void replace(graph& g, node_id id, std::vector<tensor> contents) {
    const std::vector<value_id> outputs = g.node_at(id).outputs;
    for (std::size_t i = 0; i < outputs.size(); ++i)
      if (outputs[i] != no_value && !contents.at(i).empty()) g.learn_dims(outputs[i], to_shape(contents[i].dims()));
    g.remove_node(id);
    for (std::size_t i = 0; i < outputs.size(); ++i)
      if (outputs[i] != no_value && !contents.at(i).empty()) g.make_constant(outputs[i], std::move(contents[i]));
  }
};

static_assert(Pass<fold_constants>);

}  // namespace dnnopt

#endif  // DNNOPT_PASSES_FOLDING_FOLD_CONSTANTS_HPP

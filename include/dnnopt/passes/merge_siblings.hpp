// Owns the merging of matrix products and 1x1 convolutions that read one input: their constant weights are joined.
#ifndef DNNOPT_PASSES_MERGE_SIBLINGS_HPP
#define DNNOPT_PASSES_MERGE_SIBLINGS_HPP

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include <dnnopt/graph.hpp>
#include <dnnopt/graph_io.hpp>
#include <dnnopt/ops/arithmetic.hpp>
#include <dnnopt/ops/convolution.hpp>
#include <dnnopt/ops/matrix_product.hpp>
#include <dnnopt/ops/slice.hpp>
#include <dnnopt/passes/graph_views.hpp>
#include <dnnopt/passes/pass.hpp>
#include <dnnopt/passes/rewriting/edit.hpp>

namespace dnnopt {

/// Before: y_i = x W_i + b_i for several constant matrices W_i [size, n_i] (or Gemms, or 1x1 convolutions of x with
/// weights [n_i, channels, 1, ...]), each followed by the same activation or by none.
/// After:  Split(activation(x [W_1 W_2 ...] + [b_1 b_2 ...])): one product, whose parts are views.
/// Weights may be dequantized from constant codes, of matrix products by scales for each column or for blocks along the
/// other dim: codes, scales and zero points are joined, and one node dequantizes them.
/// Conditions: equal attributes; a bias has one element per output channel; the product has no other reader.
struct merge_siblings {
  static constexpr std::string_view name = "merge_siblings";

  pass_result run(graph& g) const {
    pass_result result;
    joined_tensors joined;
    const auto values = static_cast<value_id>(g.value_count());
    for (value_id x = 0; x < values; ++x) {
      if (g.value_at(x).uses.size() < 2 || g.facts(x).is_constant()) continue;
      std::map<std::string, std::vector<branch>> groups;
      std::vector<node_id> readers;
      for (const value_use& use : g.value_at(x).uses)
        if (use.slot == 0) readers.push_back(use.node);
      std::sort(readers.begin(), readers.end());
      for (const node_id id : readers)
        if (auto found = branch_of(g, id)) groups[found->key].push_back(std::move(*found));
      for (const auto& [key, branches] : groups)
        if (branches.size() > 1) {
          merge(g, x, branches, joined);
          result.edits += branches.size() - 1;
        }
    }
    return result;
  }

 private:
  struct branch {
    node_id product = no_node;
    node_id sum = no_node;          ///< an Add of a constant bias behind a matrix product
    node_id activation = no_node;   ///< a unary element-wise operator behind
    value_id weights = no_value;    ///< constant, or codes
    node_id dequantizer = no_node;  ///< makes the weights of codes
    value_id bias = no_value;
    value_id last = no_value;  ///< what readers of the branch read
    bool convolves = false;
    bool takes_bias = false;  ///< as an input of its own
    std::size_t axis = 1;     ///< the dim of the weights that is the output channels
    std::int64_t count = 0;   ///< output channels
    std::string key;          ///< equal for branches that can be one
  };
  /// By the parts, their counts (those of absent ones nothing else tells) and the axis.
  using joined_tensors = std::map<std::tuple<std::vector<value_id>, std::vector<std::int64_t>, std::size_t>, value_id>;

  static std::string text_of(const attribute_map& attributes) {
    std::vector<std::string> rows;
    for (const auto& [key, held] : attributes) rows.push_back(key + "=" + to_string(held));
    std::sort(rows.begin(), rows.end());
    std::string text;
    for (const std::string& row : rows) text += row + ";";
    return text;
  }

  static bool is_vector(const graph& g, value_id id, std::int64_t count, dtype type) {
    const tensor& t = g.facts(id).constant;
    return !t.empty() && t.type() == type && t.size() == count && t.rank() >= 1 && t.dims().back() == count;
  }

  static std::optional<branch> branch_of(const graph& g, node_id id) {
    const node& n = g.node_at(id);
    branch b;
    b.product = id;
    b.convolves = n.op == &op_row<ops::conv_op>;
    const bool adds = n.op == &op_row<ops::gemm_op>;
    b.takes_bias = b.convolves || adds;
    if (!b.takes_bias && n.op != &op_row<ops::matmul_op>) return std::nullopt;
    b.weights = n.inputs[1];
    const dtype type = g.facts(b.weights).type;
    const node_id producer = g.value_at(b.weights).producer;
    if (producer != no_node && g.node_at(producer).op->dequantizes) {
      b.dequantizer = producer;
      b.weights = g.node_at(producer).inputs[0];
    }
    const tensor& w = g.facts(b.weights).constant;
    if (w.empty() || !g.facts(n.inputs[0]).dims) return std::nullopt;
    b.last = n.outputs[0];
    if (b.convolves) {
      if (n.attributes.get_int("group", 1) != 1 || w.rank() < 3) return std::nullopt;
      if (std::any_of(w.dims().begin() + 2, w.dims().end(), [](std::int64_t d) { return d != 1; })) return std::nullopt;
      b.axis = 0;
    } else {
      if (w.rank() != 2 || g.facts(n.inputs[0]).dims->size() < 2) return std::nullopt;
      if (adds) {
        if (n.attributes.get_int("transA", 0) != 0) return std::nullopt;
        b.axis = n.attributes.get_int("transB", 0) != 0 ? 0 : 1;
      }
    }
    b.count = w.dims()[b.axis];
    if (b.takes_bias) {
      if (n.inputs.size() > 2 && n.inputs[2] != no_value) {
        if (!is_vector(g, n.inputs[2], b.count, type) || g.facts(n.inputs[2]).constant.rank() != 1) return std::nullopt;
        b.bias = n.inputs[2];
      }
    } else {
      if (rewriting::has_one_reader(g, b.last)) {
        const node_id reader = g.value_at(b.last).uses[0].node;
        const node& sum = g.node_at(reader);
        if (sum.op == &op_row<ops::add_op>) {
          const value_id other = sum.inputs[sum.inputs[0] == b.last ? 1 : 0];
          if (is_vector(g, other, b.count, type) && g.facts(other).constant.rank() == 1) {
            b.sum = reader;
            b.bias = other;
            b.last = sum.outputs[0];
          }
        }
      }
    }
    if (b.count < 1) return std::nullopt;
    std::string after;
    if (rewriting::has_one_reader(g, b.last)) {
      const node_id reader = g.value_at(b.last).uses[0].node;
      const node& next = g.node_at(reader);
      if (next.op->kind == computation_kind::element_wise && next.inputs.size() == 1 && next.outputs.size() == 1 &&
          g.facts(next.outputs[0]).type == type) {
        b.activation = reader;
        after = std::string(next.op->name) + "{" + text_of(next.attributes) + "}";
        b.last = next.outputs[0];
      }
    }
    b.key = std::string(n.op->name) + " " + text_of(n.attributes) + std::string(name_of(type)) + after;
    if (b.dequantizer != no_node && !add_codes(g, b)) return std::nullopt;
    return b;
  }

  /// Adds what is equal for codes that can be joined to a branch's key. Returns whether they can be at all: constants
  /// whose scales differ along the output channels.
  static bool add_codes(const graph& g, branch& b) {
    const node& n = g.node_at(b.dequantizer);
    const tensor& codes = g.facts(b.weights).constant;
    const std::int64_t axis = n.attributes.get_int("axis", 1);
    const std::int64_t block = n.attributes.get_int("block_size", 0);
    const auto own = static_cast<std::int64_t>(b.axis);
    if (b.convolves || codes.rank() != 2 || axis < 0 || axis > 1 || (block > 0) == (axis == own)) return false;
    b.key += " " + std::string(name_of(codes.type())) + text_of(n.attributes);
    for (std::size_t slot = 1; slot < n.inputs.size(); ++slot) {
      if (n.inputs[slot] == no_value) continue;
      const tensor& each = g.facts(n.inputs[slot]).constant;
      const std::size_t rank = block > 0 ? 2 : 1;
      if (each.empty() || each.rank() != rank || each.dims()[block > 0 ? b.axis : 0] != b.count) return false;
      b.key += " " + std::to_string(slot) + std::string(name_of(each.type()));
    }
    return true;
  }

  /// The node's weights, joined; codes with what dequantizes them.
  static value_id join_weights(graph& g, const std::vector<branch>& branches, const std::vector<std::int64_t>& counts,
                               joined_tensors& known) {
    const branch& first = branches.front();
    const auto join_all = [&](auto&& part_of) {
      std::vector<value_id> parts;
      for (const branch& b : branches) parts.push_back(part_of(b));
      const tensor& one = g.facts(parts.front()).constant;
      return join(g, parts, counts, one.rank() == 1 ? 0 : first.axis, one.type(), known);
    };
    const value_id weights = join_all([](const branch& b) { return b.weights; });
    if (first.dequantizer == no_node) return weights;
    const node dequantizer = g.node_at(first.dequantizer);
    std::vector<value_id> inputs{weights};
    for (std::size_t slot = 1; slot < dequantizer.inputs.size(); ++slot)
      inputs.push_back(dequantizer.inputs[slot] == no_value ? no_value : join_all([&](const branch& b) {
        return g.node_at(b.dequantizer).inputs[slot];
      }));
    return rewriting::append(g, *dequantizer.op, g.value_at(dequantizer.outputs[0]).name, std::move(inputs),
                             dequantizer.attributes);
  }

  /// Constants joined along `axis`, once for each list. Where one is absent, zeros of its count stand in.
  static value_id join(graph& g, const std::vector<value_id>& parts, const std::vector<std::int64_t>& counts,
                       std::size_t axis, dtype type, joined_tensors& known) {
    const joined_tensors::key_type key{parts, counts, axis};
    if (const auto found = known.find(key); found != known.end()) return found->second;
    dim_list dims{0};
    value_id named = no_value;
    for (const value_id part : parts | views::present) {
      dims = g.facts(part).constant.dims();
      named = part;
    }
    if (axis == 0 && dims.size() != 1) axis = 0;
    if (std::find(parts.begin(), parts.end(), no_value) != parts.end()) dims = {0};
    dims[axis] = 0;
    for (const std::int64_t count : counts) dims[axis] += count;
    tensor whole(type, dims);
    std::size_t rows = 1;
    std::size_t row_bytes = size_of(type);
    for (std::size_t k = 0; k < dims.size(); ++k) (k < axis ? rows : row_bytes) *= static_cast<std::size_t>(dims[k]);
    const auto to = whole.mutable_bytes();
    std::size_t offset = 0;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const std::size_t bytes = row_bytes / static_cast<std::size_t>(dims[axis]) * static_cast<std::size_t>(counts[i]);
      if (parts[i] != no_value) {
        const auto from = g.facts(parts[i]).constant.bytes();
        for (std::size_t r = 0; r < rows; ++r)
          std::memcpy(to.data() + r * row_bytes + offset, from.data() + r * bytes, bytes);
      }
      offset += bytes;
    }
    const value_id made =
        g.add_constant(rewriting::fresh_value_name(g, g.value_at(named).name + ".joined"), std::move(whole));
    known.emplace(key, made);
    return made;
  }

  static void merge(graph& g, value_id x, const std::vector<branch>& branches, joined_tensors& known) {
    const branch& first = branches.front();
    const dtype type = g.facts(g.node_at(first.product).inputs[1]).type;
    std::vector<value_id> biases;
    std::vector<std::int64_t> counts;
    bool has_bias = false;
    for (const branch& b : branches) {
      biases.push_back(b.bias);
      counts.push_back(b.count);
      has_bias = has_bias || b.bias != no_value;
    }
    const std::string prefix = g.value_at(first.last).name;
    const value_id all_weights = join_weights(g, branches, counts, known);
    const value_id all_biases = has_bias ? join(g, biases, counts, 0, type, known) : no_value;
    const node product = g.node_at(first.product);
    std::vector<value_id> inputs{x, all_weights};
    if (first.takes_bias && has_bias) inputs.push_back(all_biases);
    value_id made = rewriting::append(g, *product.op, prefix, std::move(inputs), product.attributes);
    if (!first.takes_bias && has_bias) made = rewriting::append(g, op_row<ops::add_op>, prefix, {made, all_biases});
    if (first.activation != no_node) {
      const node activation = g.node_at(first.activation);
      made = rewriting::append(g, *activation.op, prefix, {made}, activation.attributes);
    }
    std::vector<value_id> outputs;
    for (const branch& b : branches) {
      for (const node_id id : {b.activation, b.sum, b.product})
        if (id != no_node) g.remove_node(id);
      if (b.dequantizer != no_node) {
        const value_id read_before = g.node_at(b.dequantizer).outputs[0];
        if (g.value_at(read_before).uses.empty() && !g.is_output(read_before)) g.remove_node(b.dequantizer);
      }
      outputs.push_back(b.last);
    }
    attribute_map attributes;
    attributes.set("axis", static_cast<std::int64_t>(first.convolves ? 1 : g.facts(made).dims->size() - 1));
    g.add_node(op_row<ops::split_op>, product.name + ".split", {made, rewriting::add_integers(g, prefix, counts)},
               std::move(outputs), std::move(attributes));
  }
};

static_assert(Pass<merge_siblings>);

}  // namespace dnnopt

#endif  // DNNOPT_PASSES_MERGE_SIBLINGS_HPP

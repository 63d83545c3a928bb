// Owns the folding of Pad into the convolution or pool that reads it.
#ifndef DNNOPT_PASSES_FOLDING_FOLD_PADDING_HPP
#define DNNOPT_PASSES_FOLDING_FOLD_PADDING_HPP

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dnnopt/graph.hpp>
#include <dnnopt/ops/convolution.hpp>
#include <dnnopt/ops/extend.hpp>
#include <dnnopt/ops/pooling.hpp>
#include <dnnopt/passes/pass.hpp>
#include <dnnopt/passes/remove_dead.hpp>
#include <dnnopt/passes/rewriting/constants.hpp>
#include <dnnopt/passes/rewriting/edit.hpp>

namespace dnnopt {

/// Before: y = Window(Pad(x)) with constant padding of the spatial dims by the number that the window ignores.
/// After:  y = Window(x) with the amounts added to its attribute pads.
/// Conditions by operator: a convolution ignores 0; an average that counts padding, or had none, ignores 0 and counts
/// it from then on; a maximum ignores minus infinity. Amounts are not negative, auto_pad is not used.
struct fold_padding {
  static constexpr std::string_view name = "fold_padding";

  pass_result run(graph& g) const {
    pass_result result;
    for (const node_id id : g.topological_order()) {
      const window_row* row = nullptr;
      for (const window_row& one : windows)
        if (g.node_at(id).op == one.op) row = &one;
      // Of several Pads in a row the last one is folded first.
      while (row != nullptr && fold(g, id, *row)) ++result.edits;
    }
    if (result.edits != 0) (void)remove_dead{}.run(g);
    return result;
  }

 private:
  struct window_row {
    const op_info* op;
    double ignored;
    bool averages;
  };
  static constexpr std::array windows{
      window_row{&op_row<ops::conv_op>, 0.0, false},
      window_row{&op_row<ops::average_pool_op>, 0.0, true},
      window_row{&op_row<ops::max_pool_op>, -std::numeric_limits<double>::infinity(), false},
  };

  /// The amounts before and after each spatial dim, or nothing where the Pad does something else.
  static std::optional<std::vector<std::int64_t>> amounts_of(const graph& g, const node& pad, std::size_t rank,
                                                             double ignored) {
    if (pad.attributes.get_string("mode", "constant") != "constant" || pad.inputs.size() < 2) return std::nullopt;
    const tensor& given = g.facts(pad.inputs[1]).constant;
    if (given.empty()) return std::nullopt;
    double filled = 0;
    if (pad.inputs.size() > 2 && pad.inputs[2] != no_value) {
      const auto number = rewriting::uniform_value(g.facts(pad.inputs[2]));
      if (!number) return std::nullopt;
      filled = *number;
    }
    const auto lowest = static_cast<double>(std::numeric_limits<float>::lowest());
    if (filled != ignored && !(ignored < lowest && filled <= lowest)) return std::nullopt;
    const std::vector<std::int64_t> list = integers_of(given);
    std::vector<std::size_t> axes;
    if (pad.inputs.size() > 3 && pad.inputs[3] != no_value) {
      if (!g.facts(pad.inputs[3]).is_constant()) return std::nullopt;
      for (const std::int64_t axis : integers_of(g.facts(pad.inputs[3]).constant))
        axes.push_back(normalize_axis(axis, rank));
    } else {
      for (std::size_t k = 0; k < rank; ++k) axes.push_back(k);
    }
    if (list.size() != 2 * axes.size()) return std::nullopt;
    const std::size_t spatial = rank - 2;
    std::vector<std::int64_t> amounts(2 * spatial, 0);
    for (std::size_t i = 0; i < axes.size(); ++i)
      for (const std::size_t end : {std::size_t{0}, std::size_t{1}}) {
        const std::int64_t amount = list[end * axes.size() + i];
        if (amount < 0 || (axes[i] < 2 && amount != 0)) return std::nullopt;
        if (axes[i] >= 2) amounts[end * spatial + axes[i] - 2] += amount;
      }
    return amounts;
  }

  static bool fold(graph& g, node_id id, const window_row& row) {
    const node& n = g.node_at(id);
    const node* pad = rewriting::made_by(g, n.inputs[0], op_row<ops::pad_op>);
    if (pad == nullptr || !g.facts(pad->inputs[0]).dims || n.outputs.size() != 1) return false;
    const std::size_t rank = g.facts(pad->inputs[0]).dims->size();
    if (rank < 3 || n.attributes.get_string("auto_pad", "NOTSET") != "NOTSET") return false;
    const auto amounts = amounts_of(g, *pad, rank, row.ignored);
    if (!amounts) return false;
    std::vector<std::int64_t> pads = n.attributes.get_ints("pads", std::vector<std::int64_t>(amounts->size(), 0));
    if (pads.size() != amounts->size()) return false;
    if (row.averages) {
      const bool had_none = std::all_of(pads.begin(), pads.end(), [](std::int64_t p) { return p == 0; });
      if (n.attributes.get_int("count_include_pad", 0) == 0 && !had_none) return false;
      if (n.attributes.get_int("ceil_mode", 0) != 0) return false;
    }
    for (std::size_t k = 0; k < pads.size(); ++k) pads[k] += (*amounts)[k];
    // Pools take paddings below the window's extent only.
    if (row.op->kind == computation_kind::pooling) {
      const std::vector<std::int64_t> extents = n.attributes.get_ints("kernel_shape");
      for (std::size_t k = 0; k < pads.size(); ++k)
        if (extents.empty() || pads[k] >= extents[k % extents.size()]) return false;
    }
    attribute_map attributes = n.attributes;
    attributes.set("pads", pads);
    if (row.averages) attributes.set("count_include_pad", std::int64_t{1});
    const value_id source = pad->inputs[0];
    g.set_node_op(id, *row.op, std::move(attributes));
    g.set_node_input(id, 0, source);
    return true;
  }
};

static_assert(Pass<fold_padding>);

}  // namespace dnnopt

#endif  // DNNOPT_PASSES_FOLDING_FOLD_PADDING_HPP

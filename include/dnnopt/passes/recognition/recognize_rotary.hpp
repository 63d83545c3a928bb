// Owns the recognition of rotary position embedding from halves that are negated, swapped and weighted.
#ifndef DNNOPT_PASSES_RECOGNITION_RECOGNIZE_ROTARY_HPP
#define DNNOPT_PASSES_RECOGNITION_RECOGNIZE_ROTARY_HPP

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include <dnnopt/graph.hpp>
#include <dnnopt/ops/arithmetic.hpp>
#include <dnnopt/ops/attention.hpp>
#include <dnnopt/ops/extend.hpp>
#include <dnnopt/ops/reshape.hpp>
#include <dnnopt/ops/slice.hpp>
#include <dnnopt/ops/unary_math.hpp>
#include <dnnopt/passes/pass.hpp>
#include <dnnopt/passes/remove_dead.hpp>
#include <dnnopt/passes/rewriting/constants.hpp>
#include <dnnopt/passes/rewriting/edit.hpp>

namespace dnnopt {

/// Before: x * cos + concat(-x[half:], x[:half]) * sin over the last dim of x [1, head, position, size], with constant
/// cos and sin whose halves are equal; where x is a slice from the front, also the Concat that puts the rest behind.
/// After: RotaryEmbedding(x, cos[:half], sin[:half]) (ONNX, since opset 23).
struct recognize_rotary {
  static constexpr std::string_view name = "recognize_rotary";

  pass_result run(graph& g) const {
    pass_result result;
    half_tables halves;
    for (const node_id id : g.topological_order())
      if (!g.node_at(id).removed && g.node_at(id).op == &op_row<ops::add_op> && rewrite(g, id, halves)) ++result.edits;
    if (result.edits != 0) (void)remove_dead{}.run(g);
    return result;
  }

 private:
  using half_tables = std::map<value_id, value_id>;

  /// Whether `id` is concat(-x[half:], x[:half]).
  static bool is_turned(const graph& g, value_id id, value_id x, std::int64_t size) {
    const node* joined = rewriting::made_by(g, id, op_row<ops::concat_op>);
    if (joined == nullptr || joined->inputs.size() != 2) return false;
    const std::size_t last = g.facts(x).dims->size() - 1;
    if (normalize_axis(joined->attributes.get_int("axis", -1), last + 1) != last) return false;
    const node* negated = rewriting::made_by(g, joined->inputs[0], op_row<ops::neg_op>);
    if (negated == nullptr) return false;
    const auto high = rewriting::slice_of(g, negated->inputs[0], op_row<ops::slice_op>);
    const auto low = rewriting::slice_of(g, joined->inputs[1], op_row<ops::slice_op>);
    return high && low && high->source == x && low->source == x && high->axis == last && low->axis == last &&
           low->begin == 0 && low->end == size / 2 && high->begin == size / 2 && high->end == size;
  }

  /// The first half of each row of a constant [1, ..., position, size] whose halves are equal, as [1, position, half].
  static std::optional<value_id> half_of(graph& g, value_id id, std::int64_t positions, std::int64_t size,
                                         half_tables& known) {
    if (const auto found = known.find(id); found != known.end()) return found->second;
    const tensor& table = g.facts(id).constant;
    if (table.empty() || table.rank() < 2 || table.size() != positions * size || table.dims().back() != size)
      return std::nullopt;
    const auto numbers = rewriting::numbers_of(table);
    if (!numbers) return std::nullopt;
    const auto width = static_cast<std::size_t>(size);
    std::vector<double> halves;
    for (std::size_t row = 0; row < numbers->size(); row += width)
      for (std::size_t i = 0; i < width / 2; ++i) {
        if ((*numbers)[row + i] != (*numbers)[row + width / 2 + i]) return std::nullopt;
        halves.push_back((*numbers)[row + i]);
      }
    const value_id made = g.add_constant(rewriting::fresh_value_name(g, g.value_at(id).name),
                                         rewriting::tensor_of(table.type(), {1, positions, size / 2}, halves));
    known.emplace(id, made);
    return made;
  }

  static bool rewrite(graph& g, node_id id, half_tables& halves) {
    const value_id out = g.node_at(id).outputs[0];
    const auto dims = g.facts(out).dims;
    if (!dims || dims->size() != 4 || !((*dims)[0] == index_expr(1))) return false;
    const auto positions = (*dims)[2].as_constant();
    const auto size = (*dims)[3].as_constant();
    if (!positions || !size || *size % 2 != 0) return false;
    for (const std::size_t side : {0U, 1U}) {
      const node* straight = rewriting::made_by(g, g.node_at(id).inputs[side], op_row<ops::mul_op>);
      const node* turned = rewriting::made_by(g, g.node_at(id).inputs[1 - side], op_row<ops::mul_op>);
      if (straight == nullptr || turned == nullptr) continue;
      for (const std::size_t a : {0U, 1U})
        for (const std::size_t b : {0U, 1U}) {
          const value_id x = straight->inputs[a];
          if (g.facts(x).dims != dims || !is_turned(g, turned->inputs[b], x, *size)) continue;
          const value_id cosine_table = straight->inputs[1 - a];
          const value_id sine_table = turned->inputs[1 - b];
          const auto cosine = half_of(g, cosine_table, *positions, *size, halves);
          const auto sine = half_of(g, sine_table, *positions, *size, halves);
          if (!cosine || !sine) return false;
          replace(g, id, x, *cosine, *sine, *size);
          return true;
        }
    }
    return false;
  }

  static void replace(graph& g, node_id id, value_id x, value_id cosine, value_id sine, std::int64_t size) {
    value_id out = g.node_at(id).outputs[0];
    attribute_map attributes;
    const auto front = rewriting::slice_of(g, x, op_row<ops::slice_op>);
    const value& sum = g.value_at(out);
    if (front && front->axis == 3 && front->begin == 0 && front->end == size && rewriting::has_one_reader(g, out)) {
      // The slice behind is joined again: the operator itself leaves it as it is.
      const node_id reader = sum.uses[0].node;
      const node& joined = g.node_at(reader);
      if (joined.op == &op_row<ops::concat_op> && joined.inputs.size() == 2 && joined.inputs[0] == out &&
          normalize_axis(joined.attributes.get_int("axis", -1), 4) == 3) {
        const auto rest = rewriting::slice_of(g, joined.inputs[1], op_row<ops::slice_op>);
        const auto& whole = g.facts(front->source).dims;
        if (rest && rest->source == front->source && rest->axis == 3 && rest->begin == size &&
            (*whole)[3] == index_expr(rest->end)) {
          attributes.set("rotary_embedding_dim", size);
          const value_id source = front->source;
          const std::string node_name = joined.name;
          out = joined.outputs[0];
          g.remove_node(reader);
          g.add_node(op_row<ops::rotary_embedding_op>, node_name, {source, cosine, sine}, {out}, std::move(attributes));
          return;
        }
      }
    }
    const std::string node_name = g.node_at(id).name;
    g.remove_node(id);
    g.add_node(op_row<ops::rotary_embedding_op>, node_name, {x, cosine, sine}, {out}, std::move(attributes));
  }
};

static_assert(Pass<recognize_rotary>);

}  // namespace dnnopt

#endif  // DNNOPT_PASSES_RECOGNITION_RECOGNIZE_ROTARY_HPP

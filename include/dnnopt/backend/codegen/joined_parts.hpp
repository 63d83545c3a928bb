// Owns the recognition of concatenations by their index map: inputs that follow one another along one axis.
#ifndef DNNOPT_BACKEND_CODEGEN_JOINED_PARTS_HPP
#define DNNOPT_BACKEND_CODEGEN_JOINED_PARTS_HPP

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <dnnopt/backend/codegen/builder/kernel_builder.hpp>
#include <dnnopt/ops/state_view.hpp>

namespace dnnopt::codegen {

namespace detail {

/// Collects all pieces of a view; not `valid` where it loads indices or fills.
class all_pieces final : public view_builder {
 public:
  struct piece_row {
    std::size_t input;
    std::vector<index_expr> indices;
    std::vector<condition> conditions;
  };

  void piece(std::size_t input, std::vector<index_expr> indices, std::vector<condition> conditions) override {
    pieces.push_back({input, std::move(indices), std::move(conditions)});
  }
  void fill_from(std::size_t) override { valid = false; }
  void fill(double) override { valid = false; }
  index_expr load(std::size_t, std::span<const index_expr>, expr_range) override {
    valid = false;
    return 0;
  }
  index_expr wrap_negative(const index_expr& index, const index_expr&) override {
    valid = valid && index.range().low >= 0;
    return index;
  }
  bool valid = true;
  std::vector<piece_row> pieces;
};

}  // namespace detail

/// Where the inputs of a concatenation stand in its output.
struct joined_parts {
  std::size_t axis = 0;
  std::vector<std::int64_t> begins;  ///< of each input along the axis; the first is 0
};

/// The parts of a view of at least two inputs and constant dims whose output is its inputs, none of them empty, one
/// after another along one axis; nothing where it is anything else. A concatenation is recognized by its index map,
/// never by its name. O(inputs * rank).
[[nodiscard]] inline std::optional<joined_parts> joined_parts_of(const graph& g, node_id id) {
  const node& n = g.node_at(id);
  if (n.op->view == nullptr || n.outputs.size() != 1 || n.outputs[0] == no_value || n.inputs.size() < 2)
    return std::nullopt;
  for (const value_id v : n.inputs)
    if (v == no_value || !g.facts(v).dims || !is_static(*g.facts(v).dims)) return std::nullopt;
  if (!g.facts(n.outputs[0]).dims || !is_static(*g.facts(n.outputs[0]).dims)) return std::nullopt;
  const block_view block{g, {id}, {n.outputs[0]}};
  kernel_builder b(block, {});
  const shape out = b.dims(n.outputs[0]);
  std::vector<index_expr> index;
  for (std::size_t k = 0; k < out.size(); ++k) index.push_back(b.index("i" + std::to_string(k), out[k]));
  std::vector<const value_facts*> storage;
  const node_facts facts = b.facts_of(id, storage);
  detail::all_pieces view;
  if (!dnnopt::detail::state_view(view, *n.op, facts, 0, index) || !view.valid || view.pieces.size() != n.inputs.size())
    return std::nullopt;
  // The axis is the one along which the first input is shorter than the output.
  joined_parts made;
  const shape& first = b.dims(n.inputs[0]);
  if (first.size() != out.size()) return std::nullopt;
  while (made.axis < out.size() && first[made.axis] == out[made.axis]) ++made.axis;
  if (made.axis == out.size()) return std::nullopt;
  std::int64_t next = 0;
  for (std::size_t i = 0; i < view.pieces.size(); ++i) {
    const detail::all_pieces::piece_row& piece = view.pieces[i];
    const shape& from = b.dims(n.inputs[i]);
    if (piece.input != i || piece.indices.size() != out.size() || from.size() != out.size()) return std::nullopt;
    for (std::size_t k = 0; k < out.size(); ++k)
      if (k != made.axis && !(piece.indices[k] == index[k] && from[k] == out[k])) return std::nullopt;
    if (!(index[made.axis] - piece.indices[made.axis] == index_expr(next))) return std::nullopt;
    const std::int64_t end = next + from[made.axis].constant();
    if (end == next) return std::nullopt;
    for (const auto& c : piece.conditions)
      if (!(c.value == index[made.axis] && c.low == index_expr(next) && c.high == index_expr(end))) return std::nullopt;
    made.begins.push_back(next);
    next = end;
  }
  if (!(out[made.axis] == index_expr(next))) return std::nullopt;
  return made;
}

}  // namespace dnnopt::codegen

#endif  // DNNOPT_BACKEND_CODEGEN_JOINED_PARTS_HPP

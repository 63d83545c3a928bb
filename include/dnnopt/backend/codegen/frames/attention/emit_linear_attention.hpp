// Owns the kernel of linear attention: one work-item per column of a head's state goes through all positions.
#ifndef DNNOPT_BACKEND_CODEGEN_FRAMES_ATTENTION_EMIT_LINEAR_ATTENTION_HPP
#define DNNOPT_BACKEND_CODEGEN_FRAMES_ATTENTION_EMIT_LINEAR_ATTENTION_HPP

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <dnnopt/backend/codegen/frames/attention/choose.hpp>
#include <dnnopt/backend/codegen/frames/sources.hpp>

namespace dnnopt::codegen {

/// Columns of a state do not depend on each other: column j takes value element j of each position, and gives element j
/// of its results. Work: as in the recurrence, key elements times value elements for each position and head.
[[nodiscard]] inline lowered_node emit_linear_attention(const lowering_site& site, const choice&) {
  const node& n = site.anchor_node();
  kernel_builder b(site.block, site.options.emitters);
  const element_site s(b, site.anchor, 0, {});
  const std::string rule = s.attributes().get_string("update_rule", "gated_delta");
  const std::int64_t query_heads = s.attributes().require<std::int64_t>("q_num_heads");
  const std::int64_t heads = s.attributes().require<std::int64_t>("kv_num_heads");
  const std::int64_t size = s.dims(0).back().constant() / query_heads;
  const std::int64_t value_size = s.dims(2).back().constant() / heads;
  const double stated = static_cast<double>(s.attributes().get_float("scale", 0.0F));
  const double scale = stated == 0 ? 1.0 / std::sqrt(static_cast<double>(size)) : stated;
  const compute_type type = s.compute();
  const auto is_stored = [&](std::size_t output) {
    return output < n.outputs.size() && std::find(site.block.outputs.begin(), site.block.outputs.end(),
                                                  n.outputs[output]) != site.block.outputs.end();
  };
  const shape items{s.dims(0)[0], heads, value_size};
  const index_expr count = element_count(items);
  const index_expr i = b.index("i", count);
  b.begin({i});
  const std::vector<index_expr> own = b.index_at(items, i);
  const index_expr& batch = own[0];
  const index_expr& head = own[1];
  const index_expr& column = own[2];
  const auto element_of_state = [&](const index_expr& k) { return "state[" + index_source(k) + "]"; };
  b.line(std::string(name_of(type)) + " state[" + std::to_string(size) + "];");
  s.loop("k", size, [&](const index_expr& k) {
    b.line(element_of_state(k) + " = " + (s.has(3) ? s.read(3, {batch, head, k, column}) : std::string("0")) + ";");
  });
  s.loop("t", s.dims(0)[1], [&](const index_expr& t) {
    if (s.has(4)) {
      const bool per_head = s.dims(4).back().constant() == heads;
      s.loop("k", size, [&](const index_expr& k) {
        const std::string decay = s.read(4, {batch, t, per_head ? head : head * size + k});
        b.line(element_of_state(k) + " *= exp(" + decay + ");");
      });
    }
    const std::string value = b.variable(type, s.read(2, {batch, t, head * value_size + column}));
    if (s.has(5)) {
      const std::string known = b.variable(type, "0");
      s.loop("k", size, [&](const index_expr& k) {
        b.line(known + " += " + s.read(1, {batch, t, head * size + k}) + " * " + element_of_state(k) + ";");
      });
      const std::string beta = s.read(5, {batch, t, s.dims(5).back() == index_expr(1) ? index_expr(0) : head});
      b.line(value + " = " + beta + " * (" + value + " - " + known + ");");
    }
    s.loop("k", size, [&](const index_expr& k) {
      b.line(element_of_state(k) + " += " + s.read(1, {batch, t, head * size + k}) + " * " + value + ";");
    });
    s.loop("g", query_heads / heads, [&](const index_expr& g) {
      const index_expr query = head * (query_heads / heads) + g;
      const std::string sum = b.variable(type, "0");
      s.loop("k", size, [&](const index_expr& k) {
        b.line(sum + " += " + s.read(0, {batch, t, query * size + k}) + " * " + element_of_state(k) + ";");
      });
      if (is_stored(0))
        b.store(n.outputs[0], b.offset_of(n.outputs[0], std::vector<index_expr>{batch, t, query * value_size + column}),
                sum + " * " + literal(type, scale));
    });
  });
  if (is_stored(1))
    s.loop("k", size, [&](const index_expr& k) {
      b.store(n.outputs[1], b.offset_of(n.outputs[1], std::vector<index_expr>{batch, head, k, column}),
              element_of_state(k));
    });
  const std::string statements = b.take();
  kernel_plan plan = b.finish_items(kernels::prelude, statements, i, count, "linear_attention");
  lowered_node result;
  result.kernels.push_back(std::move(plan));
  return result;
}

}  // namespace dnnopt::codegen

#endif  // DNNOPT_BACKEND_CODEGEN_FRAMES_ATTENTION_EMIT_LINEAR_ATTENTION_HPP

// Owns the kernels of attention: one launch for the result, further ones for what else a node may output.
#ifndef DNNOPT_BACKEND_CODEGEN_FRAMES_ATTENTION_EMIT_HPP
#define DNNOPT_BACKEND_CODEGEN_FRAMES_ATTENTION_EMIT_HPP

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dnnopt/backend/codegen/builder/four_neighbours.hpp>
#include <dnnopt/backend/codegen/frames/attention/choose.hpp>
#include <dnnopt/backend/codegen/frames/attention/parameters.hpp>
#include <dnnopt/backend/codegen/frames/sources.hpp>

namespace dnnopt::codegen {

/// A kernel for the present keys (output 1), the present values (2) or the scores (3).
[[nodiscard]] inline kernel_plan attention_output(const lowering_site& site, std::size_t output) {
  const node& n = site.anchor_node();
  kernel_builder b(site.block, site.options.emitters);
  const value_id out = n.outputs[output];
  const index_expr count = element_count(b.dims(out));
  const index_expr i = b.index("i", count);
  b.begin({i});
  const attention_site a(b, site.anchor);
  const std::vector<index_expr> at = b.index_at(b.dims(out), i);
  if (output < 3) {
    b.store(out, i, a.key_or_value(output, at[0], at[1], at[2], at[3]));
  } else {
    const index_expr z = at[0] * a.e.query_heads + at[1];
    const std::int64_t mode = a.s.attributes().get_int("qk_matmul_output_mode", 0);
    const auto score = [&](const index_expr& j, std::int64_t stage) {
      const std::string product = b.variable(compute_type::real, "0");
      a.s.loop("d", a.e.size, [&](const index_expr& d) {
        const std::string q = a.query(z, at[2], d);
        b.line(product + " += " + q + " * " + a.key_or_value(1, at[0], a.key_head(z), j, d) + ";");
      });
      return a.score(z, at[2], j, product, stage);
    };
    if (mode < 3) {
      b.store(out, i, score(at[3], mode));
    } else {
      const std::string top = b.variable(compute_type::real, "-INFINITY");
      a.s.loop("k", a.e.keys, [&](const index_expr& j) { b.line(top + " = fmax(" + top + ", " + score(j, 2) + ");"); });
      const std::string sum = b.variable(compute_type::real, "0");
      a.s.loop("k", a.e.keys, [&](const index_expr& j) {
        const std::string s = score(j, 2);
        b.line(sum + " += " + s + " == -INFINITY ? 0.0f : exp(" + s + " - " + top + ");");
      });
      const std::string own = score(at[3], 2);
      b.store(out, i, "(" + own + " == -INFINITY ? 0.0f : exp(" + own + " - " + top + ") / " + sum + ")");
    }
  }
  const std::string statements = b.take();
  return b.finish_items(kernels::prelude, statements, i, count, "attention_output");
}

/// Defines for attention_tiles.cl the loads of four neighbours where they are such in memory, and the store of
/// one or of four elements.
inline void define_attention_vectors(kernel_builder& b, const attention_site& a, const node& n) {
  const index_expr z = b.index("z", a.e.batch * a.e.query_heads);
  const index_expr i = b.index("i", a.e.queries);
  const index_expr j = b.index("j", a.e.keys);
  const auto width = [&](std::string_view name, std::size_t slot, const index_expr& size, std::string_view row,
                         std::string_view quarter, auto&& element) {
    if (size.constant() % 4 != 0) return 1;
    const index_expr at = b.index(quarter, size.constant() / 4) * 4;
    return define_four_neighbours(b, name, n.inputs[slot],
                                  std::vector<std::string>{"z", std::string(row), std::string(quarter)},
                                  [&](std::int64_t k) { return element(at + k); });
  };
  b.define("DNNOPT_QUERY_WIDTH", width("dnnopt_load4_query", 0, a.e.size, "i", "size_quarter",
                                       [&](const index_expr& d) { return a.query(z, i, d); }));
  const auto of_keys = [&](std::size_t slot) {
    return [&, slot](const index_expr& d) { return a.key_or_value(slot, a.batch(z), a.key_head(z), j, d); };
  };
  b.define("DNNOPT_KEY_WIDTH", width("dnnopt_load4_key", 1, a.e.size, "j", "size_quarter", of_keys(1)));
  b.define("DNNOPT_VALUE_WIDTH", width("dnnopt_load4_value", 2, a.e.value_size, "j", "value_quarter", of_keys(2)));
  if (a.e.value_size.constant() % 4 != 0) {
    b.define_store("dnnopt_store", n.outputs[0], result_index(a, z, i, b.index("v", a.e.value_size)),
                   std::vector<std::string>{"z", "i", "v"});
    return;
  }
  const index_expr quarter = b.index("value_quarter", a.e.value_size.constant() / 4);
  four_results four;
  for (std::size_t k = 0; k < 4; ++k) four.at[k] = result_index(a, z, i, quarter * 4 + static_cast<std::int64_t>(k));
  b.define("DNNOPT_STORE_WIDTH", 4);
  b.define_store4("dnnopt_store4", n.outputs[0], four, std::vector<std::string>{"z", "i", "value_quarter"},
                  [](std::size_t) { return std::string("value"); });
}

/// Defines what frames of attention read and call: four neighbours at a time where memory and the frame allow it.
inline void define_attention(kernel_builder& b, const kernel_frame& frame, const attention_site& a, const node& n) {
  const index_expr heads = a.e.batch * a.e.query_heads;
  const index_expr z = b.index("z", heads);
  const index_expr i = b.index("i", a.e.queries);
  const index_expr j = b.index("j", a.e.keys);
  const index_expr d = b.index("d", a.e.size);
  const index_expr v = b.index("v", a.e.value_size);
  if (frame.find("DNNOPT_QUERY_COUNT") != nullptr) b.define("DNNOPT_QUERY_COUNT", a.e.queries);
  b.define("DNNOPT_KEY_COUNT", a.e.keys);
  b.define("DNNOPT_SIZE", a.e.size);
  b.define("DNNOPT_VALUE_SIZE", a.e.value_size);
  b.define_function("dnnopt_load_query", compute_type::real, std::vector<std::string>{"z", "i", "d"},
                    [&] { return a.query(z, i, d); });
  b.define_function("dnnopt_load_key", compute_type::real, std::vector<std::string>{"z", "j", "d"},
                    [&] { return a.key_or_value(1, a.batch(z), a.key_head(z), j, d); });
  b.define_function("dnnopt_load_value", compute_type::real, std::vector<std::string>{"z", "j", "v"},
                    [&] { return a.key_or_value(2, a.batch(z), a.key_head(z), j, v); });
  b.define_scalar_function("dnnopt_score", std::vector<std::string>{"z", "i", "j"}, compute_type::real,
                           [&] { return a.score(z, i, j, "value", 2); });
  if (frame.find("DNNOPT_QUERY_WIDTH") != nullptr)
    define_attention_vectors(b, a, n);
  else
    b.define_store("dnnopt_store", n.outputs[0], result_index(a, z, i, v), std::vector<std::string>{"z", "i", "v"});
}

/// The plan of the result, and plans of what else the block stores of the node.
[[nodiscard]] inline lowered_node with_attention_outputs(const lowering_site& site, const attention_site& a,
                                                         kernel_plan plan) {
  const node& n = site.anchor_node();
  lowered_node result;
  plan.flops = a.e.batch * a.e.query_heads * a.e.queries * a.e.keys * (a.e.size + a.e.value_size) * 2;
  result.kernels.push_back(std::move(plan));
  for (std::size_t o = 1; o < n.outputs.size(); ++o)
    if (n.outputs[o] != no_value &&
        std::find(site.block.outputs.begin(), site.block.outputs.end(), n.outputs[o]) != site.block.outputs.end())
      result.kernels.push_back(attention_output(site, o));
  return result;
}

/// The kernel of a frame of attention, which is named as its version is, without its launch.
[[nodiscard]] inline kernel_plan attention_plan(kernel_builder& b, const kernel_frame& frame, const attention_site& a,
                                                const lowering_site& site, const choice& chosen) {
  define_attention(b, frame, a, site.anchor_node());
  define_sizes(b, frame, chosen);
  kernel_plan plan = b.finish(kernels::prelude, frame, frame.name);
  plan.tuning = chosen.tuning;
  return plan;
}

[[nodiscard]] inline lowered_node emit_attention_items(const lowering_site& site, const choice& chosen) {
  kernel_builder b(site.block, site.options.emitters);
  const attention_site a(b, site.anchor);
  kernel_plan plan = attention_plan(b, attention_items_frame, a, site, chosen);
  plan.global = {ceildiv(a.e.queries, chosen["queries"]), a.e.batch * a.e.query_heads, index_expr(1)};
  plan.local = {1, 1, 1};
  return with_attention_outputs(site, a, std::move(plan));
}

[[nodiscard]] inline lowered_node emit_attention_tiles(const lowering_site& site, const choice& chosen) {
  kernel_builder b(site.block, site.options.emitters);
  const attention_site a(b, site.anchor);
  kernel_plan plan = attention_plan(b, attention_tiles_frame, a, site, chosen);
  const std::int64_t items = chosen["rows"] * 2 * chosen["splits"];
  plan.global = {ceildiv(a.e.queries, chosen["rows"]) * items, a.e.batch * a.e.query_heads, index_expr(1)};
  plan.local = {static_cast<std::size_t>(items), 1, 1};
  return with_attention_outputs(site, a, std::move(plan));
}

[[nodiscard]] inline lowered_node emit_attention_groups(const lowering_site& site, const choice& chosen) {
  kernel_builder b(site.block, site.options.emitters);
  const attention_site a(b, site.anchor);
  kernel_plan plan = attention_plan(b, attention_groups_frame, a, site, chosen);
  plan.global = {a.e.queries * chosen["group"], a.e.batch * a.e.query_heads, index_expr(1)};
  plan.local = {static_cast<std::size_t>(chosen["group"]), 1, 1};
  return with_attention_outputs(site, a, std::move(plan));
}

}  // namespace dnnopt::codegen

#endif  // DNNOPT_BACKEND_CODEGEN_FRAMES_ATTENTION_EMIT_HPP

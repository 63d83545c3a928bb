// Owns attention in matrix steps: how it is chosen, and its kernel.
#ifndef DNNOPT_BACKEND_CODEGEN_FRAMES_STEPS_ATTENTION_HPP
#define DNNOPT_BACKEND_CODEGEN_FRAMES_STEPS_ATTENTION_HPP

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <dnnopt/backend/codegen/frames/attention/emit.hpp>
#include <dnnopt/backend/codegen/frames/steps/emit.hpp>

namespace dnnopt::codegen {

namespace detail {

/// What attention's three operands are called, in the frame and in a choice.
struct attention_operand {
  const char* name;
  const char* size_name;  ///< of the choice
  const char* row;
  const char* along;
};
inline constexpr std::array attention_operands{
    attention_operand{"query", "query_copy", "i", "d"},
    attention_operand{"key", "key_copy", "j", "d"},
    attention_operand{"value", "value_copy", "j", "v"},
};

/// An operand of attention: its elements at (head of the queries, row, element of the row).
[[nodiscard]] inline step_operand attention_step_operand(const attention_site& a, const node& n, std::size_t which) {
  step_operand o;
  o.id = n.inputs[which];
  o.emit = [&a, which](const index_expr& z, const index_expr& row, const index_expr& d, std::string_view) {
    return which == 0 ? a.query(z, row, d) : a.key_or_value(which, a.batch(z), a.key_head(z), row, d);
  };
  return o;
}

/// Where neighbours of an operand's rows lie in memory.
[[nodiscard]] inline step_address attention_address(kernel_builder& b, const attention_site& a, const node& n,
                                                    std::size_t which) {
  const attention_operand& own = attention_operands[which];
  const index_expr& size = which < 2 ? a.e.size : a.e.value_size;
  const index_expr along = b.index(own.along, size);
  const index_expr z = b.index("z", a.e.batch * a.e.query_heads);
  const index_expr row = b.index(own.row, which == 0 ? a.e.queries : a.e.keys);
  return address_of(b, attention_step_operand(a, n, which), dtype::float16, z, row, along, along, size, own.name);
}

/// Bytes of local memory of attention_steps.cl.
[[nodiscard]] constexpr std::int64_t attention_step_bytes(const matrix_step& step, std::int64_t waves,
                                                          std::int64_t keys, std::int64_t size,
                                                          std::int64_t value_size) {
  const auto line = [](std::int64_t s) { return s <= 16 ? 32 : s <= 32 ? 64 : s <= 64 ? 128 : 256; };
  const std::int64_t value_steps = (value_size + 15) / 16;
  const std::int64_t tiles = waves * 16 * line(size) + 2 * keys * (line(size) + line(value_size));
  const std::int64_t kept = waves * 16 * (value_steps * 16 + 8) * 4;
  return std::max(tiles, kept) + waves * step.items * (1 + std::max(value_steps, keys / 16)) * step.exchange_bytes;
}

}  // namespace detail

/// How attention runs in matrix steps: the waves of a work-group, so that few rows and heads still fill the device, and
/// the keys of a block.
[[nodiscard]] inline choice_or_reason choose_attention_steps(const lowering_site& site) {
  if (site.options.steps.of_waves == nullptr) return "the device has no matrix steps for halves";
  if (site.prefers_vectors()) return "the device prefers wide vectors";
  if (std::string why = reject_attention(site); !why.empty()) return why;
  const matrix_step& step = *site.options.steps.of_waves;
  const node& n = site.anchor_node();
  for (std::size_t i = 0; i < 3; ++i)
    if (std::string why = reject_operand(site.block, n.inputs[i]); !why.empty()) return why;
  for (const std::size_t i : {std::size_t{4}, std::size_t{5}})
    if (site.has_input(i))
      if (std::string why = reject_operand(site.block, n.inputs[i]); !why.empty()) return why;
  for (const value_id out : site.block.outputs)
    if (site.block.g.facts(out).texels) return "'" + site.block.g.value_at(out).name + "' holds texels";
  kernel_builder b(site.block, site.options.emitters);
  const attention_site a(b, site.anchor);
  const std::int64_t size = a.e.size.constant();
  const std::int64_t value_size = a.e.value_size.constant();
  if (size > 128 || value_size > 128) return "keys or values of more than 128 elements";
  const index_expr heads = a.e.batch * a.e.query_heads;
  const std::int64_t query_count = std::max<std::int64_t>(a.e.queries.as_constant().value_or(64), 1);
  const std::int64_t key_count = a.e.keys.as_constant().value_or(64);
  const std::int64_t head_count = heads.as_constant().value_or(16);
  const auto fits = [&](std::int64_t waves, std::int64_t keys) {
    return waves * step.items <= static_cast<std::int64_t>(site.work_group()) &&
           detail::attention_step_bytes(step, waves, keys, size, value_size) <=
               static_cast<std::int64_t>(site.local_memory());
  };
  std::int64_t waves = 4;
  const auto groups = [&] { return head_count * ((query_count + waves * 16 - 1) / (waves * 16)); };
  while (waves > 1 && (groups() < site.compute_units() || (waves - 1) * 16 >= query_count)) waves /= 2;
  std::int64_t keys = key_count > 32 && size <= 64 && value_size <= 64 ? 64 : 32;
  const std::string shape =
      shape_class("attention_steps", std::array{heads, a.e.queries, a.e.keys, a.e.size, a.e.value_size});
  if (const auto* values = site.tuned(shape); values != nullptr && fits((*values)[0], (*values)[1])) {
    waves = (*values)[0];
    keys = (*values)[1];
  }
  while (waves > 1 && !fits(waves, keys)) waves /= 2;
  if (!fits(waves, keys)) keys = 32;
  if (!fits(waves, keys)) return "the device has no room for its blocks";
  choice chosen("attention_steps");
  chosen.with("waves", waves).with("keys", keys);
  for (std::size_t which = 0; which < 3; ++which) {
    const int width = detail::attention_address(b, a, n, which).width;
    chosen.with(detail::attention_operands[which].size_name, width);
  }
  chosen.with("store_width", value_size % 4 == 0 ? 4 : 1);
  chosen.local_bytes = static_cast<std::uint64_t>(detail::attention_step_bytes(step, waves, keys, size, value_size));
  chosen.tuning = shape;
  return chosen;
}

/// The kernel of choose_attention_steps, and those of further outputs.
[[nodiscard]] inline lowered_node emit_attention_steps(const lowering_site& site, const choice& chosen) {
  const matrix_step& step = *site.options.steps.of_waves;
  const node& n = site.anchor_node();
  kernel_builder b(site.block, site.options.emitters);
  const attention_site a(b, site.anchor);
  const index_expr heads = a.e.batch * a.e.query_heads;
  const index_expr z = b.index("z", heads);
  const index_expr i = b.index("i", a.e.queries);
  const index_expr j = b.index("j", a.e.keys);
  b.define("DNNOPT_QUERY_COUNT", a.e.queries);
  b.define("DNNOPT_KEY_COUNT", a.e.keys);
  b.define("DNNOPT_SIZE", a.e.size);
  b.define("DNNOPT_VALUE_SIZE", a.e.value_size);
  for (std::size_t which = 0; which < 3; ++which) {
    const detail::attention_operand& own = detail::attention_operands[which];
    const std::vector<std::string> names{"z", own.row, own.along};
    if (chosen[own.size_name] > 0) {
      const step_address found = detail::attention_address(b, a, n, which);
      b.add_function("static inline __global const half* dnnopt_address_" + std::string(own.name) +
                     "(DNNOPT_PARAMETERS, const int z, const int " + own.row + ", const int " + own.along + ") {\n" +
                     found.statements + "  return " + b.pointer(found.stored, false) + " + " +
                     b.offset_source(found.stored, found.offset) + ";\n}\n");
      continue;
    }
    const step_operand o = detail::attention_step_operand(a, n, which);
    b.define_function("dnnopt_load_" + std::string(own.name), compute_type::real, names, [&] {
      return o.emit(z, which == 0 ? i : j, b.index(own.along, which < 2 ? a.e.size : a.e.value_size), "0");
    });
  }
  b.define_scalar_function("dnnopt_score", std::vector<std::string>{"z", "i", "j"}, compute_type::real,
                           [&] { return a.score(z, i, j, "value", 2); });
  if (chosen["store_width"] == 4) {
    const index_expr quarter = b.index("value_quarter", a.e.value_size.constant() / 4);
    four_results four;
    for (std::size_t k = 0; k < 4; ++k) four.at[k] = result_index(a, z, i, quarter * 4 + static_cast<std::int64_t>(k));
    b.define_store4("dnnopt_store4", n.outputs[0], four, std::vector<std::string>{"z", "i", "value_quarter"},
                    [](std::size_t) { return std::string("value"); });
  } else {
    b.define_store("dnnopt_store", n.outputs[0], result_index(a, z, i, b.index("v", a.e.value_size)),
                   std::vector<std::string>{"z", "i", "v"});
  }
  define_sizes(b, attention_steps_frame, chosen);
  kernel_plan plan = b.finish(std::string(kernels::prelude) + std::string(step.places) + std::string(step.text),
                              attention_steps_frame, "attention_steps");
  const std::int64_t waves = chosen["waves"];
  plan.global = {ceildiv(a.e.queries, waves * step.rows) * (waves * step.items), heads, index_expr(1)};
  plan.local = {static_cast<std::size_t>(waves * step.items), 1, 1};
  plan.tuning = chosen.tuning;
  plan.step = step.name;
  return with_attention_outputs(site, a, std::move(plan));
}

}  // namespace dnnopt::codegen

#endif  // DNNOPT_BACKEND_CODEGEN_FRAMES_STEPS_ATTENTION_HPP

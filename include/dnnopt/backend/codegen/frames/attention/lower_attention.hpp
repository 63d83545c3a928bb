// Owns the kernels of attention: one launch for the result, further ones for what else a node may output.
#ifndef DNNOPT_BACKEND_CODEGEN_FRAMES_ATTENTION_LOWER_ATTENTION_HPP
#define DNNOPT_BACKEND_CODEGEN_FRAMES_ATTENTION_LOWER_ATTENTION_HPP

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <dnnopt/backend/codegen/builder/four_neighbours.hpp>
#include <dnnopt/backend/codegen/elements/element_site.hpp>
#include <dnnopt/backend/codegen/frames/products/matrix_frame.hpp>
#include <dnnopt/backend/codegen/frames/sources.hpp>
#include <dnnopt/backend/codegen/lowering_row.hpp>
#include <dnnopt/ops/attention.hpp>

namespace dnnopt::codegen {

/// An Attention node in a kernel's symbols: where its operands are read, and how scores are scaled and masked.
class attention_site {
 public:
  attention_site(kernel_builder& b, node_id id) : s(b, id, 0, {}) {
    std::vector<const value_facts*> storage;
    e = ops::attention_op::extents_of(b.facts_of(id, storage));
    packed = s.dims(0).size() == 3;
    past = s.has(4) ? s.dims(4)[2] : index_expr(0);
  }

  element_site s;
  ops::attention_op::extents e;
  bool packed = false;
  index_expr past;

  [[nodiscard]] index_expr batch(const index_expr& z) const { return floordiv(z, e.query_heads); }
  [[nodiscard]] index_expr head(const index_expr& z) const { return mod(z, e.query_heads); }
  [[nodiscard]] index_expr key_head(const index_expr& z) const {
    return floordiv(head(z), floordiv(e.query_heads, e.key_heads));
  }

  [[nodiscard]] std::string query(const index_expr& z, const index_expr& i, const index_expr& d) const {
    return element(0, batch(z), head(z), i, d, e.size);
  }
  /// The key (slot 1) or value (slot 2) at position j, of the past where j is before it.
  [[nodiscard]] std::string key_or_value(std::size_t slot, const index_expr& n, const index_expr& h,
                                         const index_expr& j, const index_expr& d) const {
    const index_expr size = slot == 1 ? e.size : e.value_size;
    if (!s.has(slot + 3)) return element(slot, n, h, j, d, size);
    const std::string result = s.b.variable(s.input_compute(slot), "0");
    const std::string test = kernel_builder::within(j, past);
    s.b.open("if (" + (test.empty() ? std::string("1") : test) + ") {");
    s.b.line(result + " = " + s.read(slot + 3, {n, h, s.b.define_index("j", j, past), d}) + ";");
    s.b.close();
    s.b.open("else {");
    const index_expr present = s.b.define_integer("j", index_source(j - past),
                                                  {0, std::max<std::int64_t>((e.keys - past).range().high - 1, 0)});
    s.b.line(result + " = " + element(slot, n, h, present, d, size) + ";");
    s.b.close();
    return result;
  }
  /// The score of a product as one of the four stages of the fourth output: scaled, soft-capped, masked.
  [[nodiscard]] std::string score(const index_expr& z, const index_expr& i, const index_expr& j,
                                  const std::string& product, std::int64_t stage) const {
    kernel_builder& b = s.b;
    const attribute_map& a = s.attributes();
    std::string scale;
    if (a.contains("scale"))
      scale = literal(compute_type::real, static_cast<double>(a.get_float("scale", 1.0f)));
    else if (e.size.is_constant())
      scale = literal(compute_type::real, 1.0 / std::sqrt(static_cast<double>(e.size.constant())));
    else
      scale = "(1.0f / sqrt((float)" + index_source(e.size) + "))";
    std::string text = b.let(compute_type::real, product + " * " + scale);
    const float cap = a.get_float("softcap", 0.0f);
    if (stage >= 1 && cap > 0) {
      const std::string limit = literal(compute_type::real, static_cast<double>(cap));
      text = b.let(compute_type::real, limit + " * tanh(" + text + " / " + limit + ")");
    }
    if (stage < 2) return text;
    std::string hidden;
    const auto hide = [&](const std::string& test) { hidden += (hidden.empty() ? "" : " || ") + test; };
    std::string length;
    if (s.has(6)) length = s.read(6, {batch(z)});
    const std::string at =
        s.has(4) || length.empty()
            ? index_source(past + i)
            : b.let(compute_type::integer, length + " - " + index_source(e.queries) + " + " + index_source(i));
    if (a.get_int("is_causal", 0) != 0) hide(index_source(j) + " > " + at);
    if (const std::int64_t left = a.get_int("left_window_size", -1); left >= 0)
      hide(index_source(j) + " < " + at + " - " + std::to_string(left));
    if (const std::int64_t right = a.get_int("right_window_size", -1); right >= 0)
      hide(index_source(j) + " > " + at + " + " + std::to_string(right));
    if (!length.empty()) hide(index_source(j) + " >= " + length);
    const std::string result = b.variable(compute_type::real, text);
    if (!hidden.empty()) b.line("if (" + hidden + ") " + result + " = -INFINITY;");
    if (s.has(3)) {
      const shape& mask = s.dims(3);
      const shape whole_dims{e.batch, e.query_heads, e.queries, e.keys};
      const std::vector<index_expr> whole{batch(z), head(z), i, j};
      // Keys beyond the mask are hidden; a mask of one key is for all of them, which a symbolic dim tells only in a
      // run.
      const bool spans = mask.empty() || mask.back() == index_expr(1) || mask.back() == e.keys;
      std::string test = spans ? "" : kernel_builder::within(j, mask.back());
      if (!test.empty() && mask.back().range().low <= 1) test += " || " + index_source(mask.back()) + " == 1";
      s.when(test, [&] {
        std::vector<index_expr> own = whole;
        if (!spans) own[3] = b.define_index("j", min(j, mask.back() - 1), mask.back());
        std::vector<index_expr> at_mask;
        for (std::size_t k = 0; k < mask.size(); ++k) {
          const std::size_t w = 4 - mask.size() + k;
          at_mask.push_back(w == 3 && !spans ? own[3]
                                             : kernel_builder::broadcast_index(mask[k], whole_dims[w], own[w]));
        }
        const std::string element = s.read(3, at_mask);
        b.line(s.type_of(3) == dtype::boolean ? "if (!" + element + ") " + result + " = -INFINITY;"
                                              : result + " += " + element + ";");
      });
      if (!test.empty()) b.line("if (!(" + test + ")) " + result + " = -INFINITY;");
    }
    return result;
  }

 private:
  [[nodiscard]] std::string element(std::size_t slot, const index_expr& n, const index_expr& h, const index_expr& at,
                                    const index_expr& d, const index_expr& size) const {
    return packed ? s.read(slot, {n, at, h * size + d}) : s.read(slot, {n, h, at, d});
  }
};

[[nodiscard]] inline std::string reject_attention(const lowering_site& site) {
  const node& n = site.anchor_node();
  if (n.op->name != "Attention") return "no kernel for this kind of attention";
  if (std::string why = reject_element_types(site, 3); !why.empty()) return why;
  kernel_builder b(site.block, site.options.emitters);
  const attention_site a(b, site.anchor);
  if (!a.e.size.is_constant() || !a.e.value_size.is_constant())
    return "the sizes of keys and values are not known before execution";
  if (a.e.size.constant() > 512 || a.e.value_size.constant() > 512) return "keys or values of more than 512 elements";
  return {};
}

/// A kernel for the present keys (output 1), the present values (2) or the scores (3).
[[nodiscard]] inline kernel_plan attention_output(const lowering_site& site, std::size_t output) {
  const node& n = site.anchor_node();
  kernel_builder b(site.block, site.options.emitters);
  const value_id out = n.outputs[output];
  const index_expr count = element_count(b.dims(out));
  const index_expr i = b.index("i", count);
  b.begin();
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

/// The index of the result's element v of row i of head z.
[[nodiscard]] inline std::vector<index_expr> result_index(const attention_site& a, const index_expr& z,
                                                          const index_expr& i, const index_expr& v) {
  if (a.packed) return {a.batch(z), i, a.head(z) * a.e.value_size + v};
  return {a.batch(z), a.head(z), i, v};
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

/// The frames of attention kernels: attention_items.cl, attention_tiles.cl and attention_groups.cl.
enum class attention_frame : std::uint8_t { items, tiles, groups };

[[nodiscard]] inline lowered_node lower_attention(const lowering_site& site, attention_frame frame) {
  const node& n = site.anchor_node();
  kernel_builder b(site.block, site.options.emitters);
  const attention_site a(b, site.anchor);
  const index_expr heads = a.e.batch * a.e.query_heads;
  const index_expr z = b.index("z", heads);
  const index_expr i = b.index("i", a.e.queries);
  const index_expr j = b.index("j", a.e.keys);
  const index_expr d = b.index("d", a.e.size);
  const index_expr v = b.index("v", a.e.value_size);
  b.define("DNNOPT_QUERY_COUNT", a.e.queries);
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
  if (frame == attention_frame::tiles)
    define_attention_vectors(b, a, n);
  else
    b.define_store("dnnopt_store", n.outputs[0], result_index(a, z, i, v), std::vector<std::string>{"z", "i", "v"});
  lowered_node result;
  kernel_plan plan;
  if (frame == attention_frame::items) {
    const std::int64_t local = site.options.device->local_memory_bytes == 0
                                   ? 32768
                                   : static_cast<std::int64_t>(site.options.device->local_memory_bytes);
    // All keys in one block where they are few, so that nothing is rescaled; as many queries as the local memory holds
    // beside them, and as leave every core some work.
    const std::int64_t size = a.e.size.constant();
    const std::int64_t value_pitch = round_up(a.e.value_size.constant(), 16);
    const std::int64_t key_count = std::max<std::int64_t>(a.e.keys.as_constant().value_or(1024), 1);
    const std::int64_t query_count = std::max<std::int64_t>(a.e.queries.as_constant().value_or(96), 1);
    const std::int64_t rows = query_count < 4 ? 2 : query_count < 9 ? 4 : 12;
    std::int64_t keys = key_count <= 256 ? round_up(key_count, 32) : 128;
    std::int64_t queries = round_up(std::min<std::int64_t>(query_count, 96), rows);
    const auto bytes = [&] { return 4 * (queries * (size + keys + value_pitch) + keys * (size + value_pitch)); };
    const std::int64_t units = std::max<std::int64_t>(site.options.device->compute_units, 1);
    while (queries > rows && heads.as_constant().value_or(16) * ((query_count + queries - 1) / queries) < 3 * units)
      queries = round_up(queries / 2, rows);
    const std::string shape_name =
        shape_class("attention_items", std::array{heads, a.e.queries, a.e.keys, a.e.size, a.e.value_size});
    if (const auto* values = site.tuned(shape_name); values != nullptr) {
      queries = round_up(std::min((*values)[0], query_count), rows);
      keys = std::min((*values)[1], round_up(key_count, 32));
    }
    while (bytes() > local && keys > 32) keys = round_up(keys / 2, 32);
    while (bytes() > local && queries > rows) queries = round_up(queries / 2, rows);
    if (bytes() > local) throw error(errc::unsupported, "a block of keys takes more than the local memory");
    b.define("DNNOPT_ROWS", rows);
    b.define("DNNOPT_QUERIES", queries);
    b.define("DNNOPT_KEYS", keys);
    plan = b.finish(kernels::prelude, kernels::attention_items, "attention_items");
    plan.tuning = shape_name;
    plan.global = {ceildiv(a.e.queries, queries), heads, index_expr(1)};
    plan.local = {1, 1, 1};
  } else if (frame == attention_frame::tiles) {
    // Rows of queries, of keys or values, and of scores, a vector of four longer than what they hold.
    const std::int64_t size = a.e.size.constant();
    const std::int64_t value_pitch = (a.e.value_size.constant() + 31) / 32 * 32 + 4;
    const auto bytes = [&](std::int64_t rows, std::int64_t splits) {
      return 4 * (size * (rows + 4) + splits * (std::max(size * 36, 32 * value_pitch) + 32 * (rows + 4) + 9 * rows));
    };
    const device_info* device = site.options.device;
    const std::int64_t local = device == nullptr || device->local_memory_bytes == 0
                                   ? 16384
                                   : static_cast<std::int64_t>(device->local_memory_bytes);
    const std::int64_t most = device == nullptr || device->max_work_group_size == 0
                                  ? 256
                                  : static_cast<std::int64_t>(device->max_work_group_size);
    const auto fits = [&](std::int64_t rows, std::int64_t splits) {
      return bytes(rows, splits) <= local && rows * 2 * splits <= most;
    };
    if (a.e.value_size.constant() > 256) throw error(errc::unsupported, "rows of values take more than the registers");
    if (!fits(32, 1) && !fits(16, 1))
      throw error(errc::unsupported, "a block takes more than the local memory or work-groups");
    // Few rows and heads are spread over more work-groups, and keys over teams, until every core has some.
    const std::int64_t units = device == nullptr ? 16 : std::max<std::int64_t>(device->compute_units, 1);
    const std::int64_t query_count = std::max<std::int64_t>(a.e.queries.as_constant().value_or(64), 1);
    const std::int64_t key_blocks = (std::max<std::int64_t>(a.e.keys.as_constant().value_or(64), 1) + 31) / 32;
    const std::int64_t head_count = heads.as_constant().value_or(16);
    const auto groups = [&](std::int64_t rows) { return head_count * ((query_count + rows - 1) / rows); };
    std::int64_t rows = !fits(32, 1) || query_count <= 16 || groups(32) < 2 * units ? 16 : 32;
    std::int64_t splits = 1;
    while (splits < std::min<std::int64_t>(key_blocks, 4) && groups(rows) * splits < 4 * units &&
           fits(rows, splits + 1))
      ++splits;
    // As few teams as take the blocks in as many turns.
    const std::int64_t turns = (key_blocks + splits - 1) / splits;
    splits = (key_blocks + turns - 1) / turns;
    const std::string shape_name =
        shape_class("attention_tiles", std::array{heads, a.e.queries, a.e.keys, a.e.size, a.e.value_size});
    if (const auto* values = site.tuned(shape_name); values != nullptr && fits((*values)[0], (*values)[1])) {
      rows = (*values)[0];
      splits = (*values)[1];
    }
    b.define("DNNOPT_ROWS", rows);
    b.define("DNNOPT_SPLITS", splits);
    plan = b.finish(kernels::prelude, kernels::attention_tiles, "attention_tiles");
    plan.tuning = shape_name;
    plan.global = {ceildiv(a.e.queries, rows) * (rows * 2 * splits), heads, index_expr(1)};
    plan.local = {static_cast<std::size_t>(rows * 2 * splits), 1, 1};
  } else {
    const std::size_t most = site.options.device == nullptr || site.options.device->max_work_group_size == 0
                                 ? 256
                                 : site.options.device->max_work_group_size;
    const std::size_t group = std::min<std::size_t>(64, std::bit_floor(most));
    b.define("DNNOPT_GROUP", static_cast<std::int64_t>(group));
    plan = b.finish(kernels::prelude, kernels::attention_groups, "attention_groups");
    plan.global = {a.e.queries * static_cast<std::int64_t>(group), heads, index_expr(1)};
    plan.local = {group, 1, 1};
  }
  plan.flops = heads * a.e.queries * a.e.keys * (a.e.size + a.e.value_size) * 2;
  result.kernels.push_back(std::move(plan));
  for (std::size_t o = 1; o < n.outputs.size(); ++o)
    if (n.outputs[o] != no_value &&
        std::find(site.block.outputs.begin(), site.block.outputs.end(), n.outputs[o]) != site.block.outputs.end())
      result.kernels.push_back(attention_output(site, o));
  return result;
}

[[nodiscard]] inline std::string reject_attention_items(const lowering_site& site) {
  return site.prefers_vectors() ? reject_attention(site) : "the device does not prefer wide vectors";
}
[[nodiscard]] inline lowered_node lower_attention_items(const lowering_site& site) {
  return lower_attention(site, attention_frame::items);
}
[[nodiscard]] inline lowered_node lower_attention_tiles(const lowering_site& site) {
  return lower_attention(site, attention_frame::tiles);
}
[[nodiscard]] inline lowered_node lower_attention_groups(const lowering_site& site) {
  return lower_attention(site, attention_frame::groups);
}

}  // namespace dnnopt::codegen

#endif  // DNNOPT_BACKEND_CODEGEN_FRAMES_ATTENTION_LOWER_ATTENTION_HPP

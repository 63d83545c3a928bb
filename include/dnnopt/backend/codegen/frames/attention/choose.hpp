// Owns the sizes of the kernels of attention: queries and keys of a block, teams, and the kernels that fit a device.
#ifndef DNNOPT_BACKEND_CODEGEN_FRAMES_ATTENTION_CHOOSE_HPP
#define DNNOPT_BACKEND_CODEGEN_FRAMES_ATTENTION_CHOOSE_HPP

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include <dnnopt/backend/codegen/choice.hpp>
#include <dnnopt/backend/codegen/frames/attention/attention_site.hpp>
#include <dnnopt/backend/codegen/lowering_row.hpp>

namespace dnnopt::codegen {

/// Why no frame takes an attention; empty where some may. Precondition: the anchor is an Attention.
[[nodiscard]] inline std::string reject_attention(const lowering_site& site) {
  if (std::string why = reject_element_types(site, 3); !why.empty()) return why;
  kernel_builder b(site.block, site.options.emitters);
  const attention_site a(b, site.anchor);
  if (!a.e.size.is_constant() || !a.e.value_size.is_constant())
    return "the sizes of keys and values are not known before execution";
  if (a.e.size.constant() > 512 || a.e.value_size.constant() > 512) return "keys or values of more than 512 elements";
  return {};
}

/// The shape class of an attention for a kernel family.
[[nodiscard]] inline std::string attention_class(std::string_view family, const attention_site& a) {
  return shape_class(family, std::array{a.e.batch * a.e.query_heads, a.e.queries, a.e.keys, a.e.size, a.e.value_size});
}

/// Blocks of queries and keys for processors, whose work-items have the local memory for themselves.
[[nodiscard]] inline choice_or_reason choose_attention_items(const lowering_site& site) {
  if (!site.prefers_vectors()) return "the device does not prefer wide vectors";
  if (std::string why = reject_attention(site); !why.empty()) return why;
  kernel_builder b(site.block, site.options.emitters);
  const attention_site a(b, site.anchor);
  const index_expr heads = a.e.batch * a.e.query_heads;
  const auto local = static_cast<std::int64_t>(site.local_memory());
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
  const std::int64_t units = site.compute_units();
  while (queries > rows && heads.as_constant().value_or(16) * ((query_count + queries - 1) / queries) < 3 * units)
    queries = round_up(queries / 2, rows);
  choice made("attention_items");
  made.tuning = attention_class("attention_items", a);
  if (const auto* values = site.tuned(made.tuning); values != nullptr) {
    queries = round_up(std::min((*values)[0], query_count), rows);
    keys = std::min((*values)[1], round_up(key_count, 32));
  }
  while (bytes() > local && keys > 32) keys = round_up(keys / 2, 32);
  while (bytes() > local && queries > rows) queries = round_up(queries / 2, rows);
  if (bytes() > local) return "a block of keys takes more than the local memory";
  made.with("rows", rows).with("queries", queries).with("keys", keys);
  made.local_bytes = static_cast<std::uint64_t>(bytes());
  return made;
}

/// Queries and teams of a work-group. Few rows and heads are spread over more work-groups, and keys over teams, until
/// every core has some.
[[nodiscard]] inline choice_or_reason choose_attention_tiles(const lowering_site& site) {
  if (std::string why = reject_attention(site); !why.empty()) return why;
  kernel_builder b(site.block, site.options.emitters);
  const attention_site a(b, site.anchor);
  const index_expr heads = a.e.batch * a.e.query_heads;
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
  const auto most = static_cast<std::int64_t>(site.work_group());
  const auto fits = [&](std::int64_t rows, std::int64_t splits) {
    return bytes(rows, splits) <= local && rows * 2 * splits <= most;
  };
  if (a.e.value_size.constant() > 256) return "rows of values take more than the registers";
  if (!fits(32, 1) && !fits(16, 1)) return "a block takes more than the local memory or work-groups";
  const std::int64_t units = device == nullptr ? 16 : std::max<std::int64_t>(device->compute_units, 1);
  const std::int64_t query_count = std::max<std::int64_t>(a.e.queries.as_constant().value_or(64), 1);
  const std::int64_t key_blocks = (std::max<std::int64_t>(a.e.keys.as_constant().value_or(128), 1) + 31) / 32;
  const std::int64_t head_count = heads.as_constant().value_or(16);
  const auto groups = [&](std::int64_t rows) { return head_count * ((query_count + rows - 1) / rows); };
  std::int64_t rows = !fits(32, 1) || query_count <= 16 || groups(32) < 2 * units ? 16 : 32;
  std::int64_t splits = 1;
  while (splits < std::min<std::int64_t>(key_blocks, 4) && groups(rows) * splits < 4 * units && fits(rows, splits + 1))
    ++splits;
  // As few teams as take the blocks in as many turns.
  const std::int64_t turns = (key_blocks + splits - 1) / splits;
  splits = (key_blocks + turns - 1) / turns;
  choice made("attention_tiles");
  made.tuning = attention_class("attention_tiles", a);
  if (const auto* values = site.tuned(made.tuning); values != nullptr && fits((*values)[0], (*values)[1])) {
    rows = (*values)[0];
    splits = (*values)[1];
  }
  made.with("rows", rows).with("splits", splits);
  made.local_bytes = static_cast<std::uint64_t>(bytes(rows, splits));
  return made;
}

/// A work-group of some work-items for each query.
[[nodiscard]] inline choice_or_reason choose_attention_groups(const lowering_site& site) {
  if (std::string why = reject_attention(site); !why.empty()) return why;
  const auto group = static_cast<std::int64_t>(std::min<std::size_t>(64, std::bit_floor(site.work_group())));
  choice made("attention_groups");
  made.with("group", group);
  kernel_builder b(site.block, site.options.emitters);
  made.local_bytes = static_cast<std::uint64_t>(4 * (attention_site(b, site.anchor).e.size.constant() + group));
  return made;
}

/// A column of the state is kept in private memory: at most so many key elements.
inline constexpr std::int64_t most_key_elements = 1024;

/// Attention as a recurrence over its state. Precondition: the anchor is a LinearAttention.
[[nodiscard]] inline choice_or_reason choose_linear_attention(const lowering_site& site) {
  const node& n = site.anchor_node();
  if (site.block.members.size() != 1) return "something is joined to it";
  for (const std::size_t i : {std::size_t{0}, std::size_t{1}, std::size_t{2}})
    if (!site.input(i).dims || site.input(i).dims->size() != 3) return "other than three dims";
  if (!site.input(0).dims->back().is_constant() || !site.input(2).dims->back().is_constant())
    return "the heads' sizes are not known before execution";
  const std::int64_t size = site.input(0).dims->back().constant() / n.attributes.get_int("q_num_heads", 1);
  if (size < 1 || size > most_key_elements)
    return "key elements: none, or more than " + std::to_string(most_key_elements);
  if (site.has_input(4)) {
    const auto& decay = site.input(4).dims;
    if (!decay || decay->size() != 3 || !decay->back().is_constant()) return "the decay's shape is not known";
  }
  return choice("linear_attention");
}

}  // namespace dnnopt::codegen

#endif  // DNNOPT_BACKEND_CODEGEN_FRAMES_ATTENTION_CHOOSE_HPP

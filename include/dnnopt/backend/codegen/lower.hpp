// Owns the choice of how a block becomes kernels: the first row of a table of lowerings that fits.
#ifndef DNNOPT_BACKEND_CODEGEN_LOWER_HPP
#define DNNOPT_BACKEND_CODEGEN_LOWER_HPP

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <dnnopt/backend/codegen/lowering_row.hpp>
#include <dnnopt/backend/codegen/versions.hpp>
#include <dnnopt/detail/implementation.hpp>
#include <dnnopt/device_info.hpp>
#include <dnnopt/inexpressible.hpp>

#if DNNOPT_IMPLEMENT_LOWERING
#include <dnnopt/backend/codegen/lowering_table.hpp>
#endif

namespace dnnopt::codegen {

/// Defaults: dnnopt's own emitters and no lowerings besides dnnopt's own.
[[nodiscard]] lower_options default_lower_options(const device_info* device = nullptr);

/// The kernels of a block: those of the first row that fits, of `options.rows` first and then of dnnopt's own table.
/// Outputs that have no elements for any values of the symbols are not stored, and a block of such outputs alone has no
/// kernels. Where a member reads such an operand, element expressions come before frames: their loops have no trips,
/// while frames divide work by extents.
/// Errors: unsupported with the reason of each row that was tried, or where something that the block stores, or that
/// its anchor reads, is no tensor; shape_mismatch where the rank of one of these is not known (symbols are allowed as
/// dims).
[[nodiscard]] lowered_node lower(const block_view& block, const lower_options& options = default_lower_options());

/// The kernels of a block, or why it has none.
struct lowering {
  std::optional<lowered_node> made;
  std::string why{};
};

/// The same as a value, for those who go on without kernels. A block whose ranks are not known, whose dims contradict
/// each other or depend on what nobody binds has none either. Errors: those of the graph and the device.
[[nodiscard]] lowering try_lower(const block_view& block, const lower_options& options = default_lower_options());

#if DNNOPT_IMPLEMENT_LOWERING
DNNOPT_BODY lower_options default_lower_options(const device_info* device) {
  lower_options options;
  options.device = device;
  options.emitters = element_emitters;
  return options;
}

namespace detail {

/// Whether a value has no elements, whatever the symbols are.
[[nodiscard]] inline bool is_empty(const graph& g, value_id v) {
  return g.facts(v).dims && element_count(*g.facts(v).dims) == index_expr(0);
}

/// Why the arguments of a kernel are too many for the device (CL_DEVICE_MAX_PARAMETER_SIZE; OpenCL promises 1024
/// bytes); empty where they fit.
[[nodiscard]] inline std::string too_many_arguments(const lowered_node& made, const device_info* device) {
  constexpr std::size_t promised = 1024;
  const std::size_t most =
      device == nullptr || device->max_parameter_bytes == 0 ? promised : device->max_parameter_bytes;
  for (const auto* plans : {&made.prepare, &made.kernels})
    for (const kernel_plan& plan : *plans) {
      std::size_t bytes = plan.pointers.size() * sizeof(std::uint64_t);
      bytes += plan.divisors.size() * sizeof(std::int64_t);
      for (const bool is_long : plan.parameter_is_long) bytes += is_long ? sizeof(std::int64_t) : sizeof(std::int32_t);
      if (bytes > most) return std::to_string(bytes) + " bytes of arguments, the device takes " + std::to_string(most);
    }
  return {};
}

/// Whether a member of the block reads a value without elements.
[[nodiscard]] inline bool reads_empty(const block_view& block) {
  return std::any_of(block.members.begin(), block.members.end(), [&](node_id id) {
    const auto& inputs = block.g.node_at(id).inputs;
    return std::any_of(inputs.begin(), inputs.end(),
                       [&](value_id in) { return in != no_value && is_empty(block.g, in); });
  });
}

/// Whether a member of the block reads or makes bytes, whose scales and zero points differ from layer to layer.
[[nodiscard]] inline bool has_bytes(const block_view& block) {
  const auto holds = [&](value_id v) { return v != no_value && is_byte(block.g.facts(v).type); };
  return std::any_of(block.members.begin(), block.members.end(), [&](node_id id) {
    const node& n = block.g.node_at(id);
    return std::any_of(n.inputs.begin(), n.inputs.end(), holds) ||
           std::any_of(n.outputs.begin(), n.outputs.end(), holds);
  });
}

/// Adds what the program of a plan is built with where its own text divides so that the quotient decides a rounding.
inline void set_build_options(kernel_plan& plan, const lower_options& options) {
  if (options.device == nullptr || !options.device->rounded_division) return;
  const std::string& text = plan.source;
  const std::size_t prelude = text.find(kernels::prelude);
  if (text.find("dnnopt_quotient", prelude == std::string::npos ? 0 : prelude + kernels::prelude.size()) ==
      std::string::npos)
    return;
  if (!plan.options.empty()) plan.options += ' ';
  plan.options += "-cl-fp32-correctly-rounded-divide-sqrt -DDNNOPT_ROUNDED_DIVISION";
}

}  // namespace detail

namespace detail {

/// lower() with its reasons as a value; what lower() says of ranks is thrown.
[[nodiscard]] inline lowering lower_by_rows(const block_view& whole, const lower_options& options) {
  block_view block = whole;
  std::erase_if(block.outputs, [&](value_id out) { return detail::is_empty(block.g, out); });
  if (block.outputs.empty() && !whole.outputs.empty()) return {lowered_node{}};
  const lowering_site site = make_lowering_site(block, options);
  // Compilers for processors hold what they broadcast of arguments through the loops of products, and spill sums for
  // it.
  block.divides_once = !site.prefers_vectors();
  block.numbers_as_arguments = !site.prefers_vectors() && detail::has_bytes(block);
  std::string no_tensor;
  const auto require_rank = [&](value_id v) {
    const value& one = block.g.value_at(v);
    if (one.facts.kind != value_kind::tensor)
      no_tensor = "'" + one.name + "' is no tensor";
    else if (!one.facts.dims)
      throw error(errc::shape_mismatch, "the rank of '" + one.name + "' is not known");
  };
  for (const value_id out : block.outputs) require_rank(out);
  if (site.anchor != no_node)
    for (const value_id in : site.anchor_node().inputs)
      if (in != no_value) require_rank(in);
  if (!no_tensor.empty()) return {std::nullopt, std::move(no_tensor)};
  std::vector<std::string> passed_over;
  const auto attempt = [&](const lowering_row& row) -> std::optional<lowered_node> {
    if (!row.is_for(site.anchor == no_node ? nullptr : &site.anchor_node())) return std::nullopt;
    const choice_or_reason chosen = choice_of_row(site, row);
    std::string why = chosen.reason();
    if (chosen) {
      // What an element expression cannot say is found out while it is written.
      try {
        lowered_node made = row.emit(site, *chosen);
        // The best version is added last: where it runs, none of those before does.
        for (auto version = chosen->narrower.rbegin(); version != chosen->narrower.rend(); ++version)
          add_version(made, row.emit(site, *version), version->guards);
        why = detail::too_many_arguments(made, options.device);
        for (auto* plans : {&made.prepare, &made.kernels})
          for (kernel_plan& plan : *plans) detail::set_build_options(plan, options);
        if (why.empty()) {
          made.passed_over = std::move(passed_over);
          return made;
        }
      } catch (const inexpressible& e) {
        why = e.what();
      }
    }
    passed_over.push_back(std::string(row.version) + ": " + why);
    return std::nullopt;
  };
  if (detail::reads_empty(block)) {
    for (const lowering_row& row : lowering_table)
      if (!row.kind && row.version == "map")
        if (auto made = attempt(row)) return {std::move(made)};
  }
  for (const lowering_row& row : options.rows)
    if (auto made = attempt(row)) return {std::move(made)};
  for (const lowering_row& row : lowering_table)
    if (auto made = attempt(row)) return {std::move(made)};
  std::string reasons;
  for (const std::string& why : passed_over) reasons += (reasons.empty() ? "" : "; ") + why;
  return {std::nullopt, "no kernel (" + reasons + ")"};
}

}  // namespace detail

DNNOPT_BODY lowered_node lower(const block_view& block, const lower_options& options) {
  lowering found = detail::lower_by_rows(block, options);
  if (!found.made) throw error(errc::unsupported, found.why);
  return std::move(*found.made);
}

DNNOPT_BODY lowering try_lower(const block_view& block, const lower_options& options) {
  try {
    return detail::lower_by_rows(block, options);
  } catch (const inexpressible& e) {
    // A row that looks at what only a run knows while it chooses.
    return {std::nullopt, e.what()};
  } catch (const error& e) {
    if (e.code() != errc::shape_mismatch && e.code() != errc::unbound_symbol) throw;
    return {std::nullopt, e.what()};
  }
}
#endif

/// Why a block has no kernels; nothing where it has. As costly as lowering it.
[[nodiscard]] inline std::optional<std::string> why_not_lowered(
    const block_view& block, const lower_options& options = default_lower_options()) {
  lowering found = try_lower(block, options);
  return found.made ? std::nullopt : std::optional(std::move(found.why));
}

/// Whether a block has kernels.
[[nodiscard]] inline bool can_lower(const block_view& block, const lower_options& options = default_lower_options()) {
  return !why_not_lowered(block, options);
}

}  // namespace dnnopt::codegen

#endif  // DNNOPT_BACKEND_CODEGEN_LOWER_HPP

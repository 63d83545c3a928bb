// Owns what is decided about recurrent layers: the work-items of a layer's work-group.
#ifndef DNNOPT_BACKEND_CODEGEN_FRAMES_RECURRENT_CHOOSE_HPP
#define DNNOPT_BACKEND_CODEGEN_FRAMES_RECURRENT_CHOOSE_HPP

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>

#include <dnnopt/backend/codegen/choice.hpp>
#include <dnnopt/backend/codegen/frames/products/matrix_frame.hpp>
#include <dnnopt/backend/codegen/lowering_row.hpp>
#include <dnnopt/ops/recurrent_cells.hpp>

namespace dnnopt::codegen {

/// States of one image are kept in local memory: at most so many hidden units.
inline constexpr std::int64_t most_hidden_units = 2048;

/// Units that follow each other read the same state; a processor's work-item takes all of them.
[[nodiscard]] inline choice_or_reason choose_recurrent(const lowering_site& site) {
  const node& n = site.anchor_node();
  const recurrent_cell* const cell = n.op->domain.empty() ? find_recurrent_cell(n.op->name) : nullptr;
  if (cell == nullptr) return "no kernel for this kind of loop";
  if (site.block.members.size() != 1) return "something is joined to the layer";
  // Input 4 counts steps, in integers.
  for (std::size_t i = 0; i < n.inputs.size(); ++i)
    if (i != 4)
      if (std::string why = reject_input_type(site, i); !why.empty()) return why;
  for (const std::size_t i : {std::size_t{0}, std::size_t{1}, std::size_t{2}})
    if (!site.input(i).dims || site.input(i).dims->size() != 3) return "other than three dims";
  for (const std::size_t i : {std::size_t{1}, std::size_t{2}})
    for (const index_expr& dim : *site.input(i).dims)
      if (!dim.is_constant()) return "the sizes of the weights are not known before execution";
  const shape& r = *site.input(2).dims;
  if (r[2].constant() < 1 || r[2].constant() > most_hidden_units)
    return "hidden units: none, or more than " + std::to_string(most_hidden_units);
  std::size_t group = 1;
  if (site.options.device != nullptr && !site.prefers_vectors())
    group = std::min<std::size_t>(
        std::bit_ceil(static_cast<std::size_t>(r[2].constant())),
        std::bit_floor(std::clamp<std::size_t>(site.options.device->max_work_group_size, 1, 256)));
  return choice("recurrent_groups").with("group", static_cast<std::int64_t>(group));
}

}  // namespace dnnopt::codegen

#endif  // DNNOPT_BACKEND_CODEGEN_FRAMES_RECURRENT_CHOOSE_HPP

// Owns the load of four neighbouring elements in one access, through the views of a block.
#ifndef DNNOPT_BACKEND_CODEGEN_BUILDER_FOUR_NEIGHBOURS_HPP
#define DNNOPT_BACKEND_CODEGEN_BUILDER_FOUR_NEIGHBOURS_HPP

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <dnnopt/backend/codegen/builder/kernel_builder.hpp>
#include <dnnopt/backend/codegen/builder/texel_access.hpp>

namespace dnnopt::codegen {

/// Defines `float4 <name>(DNNOPT_PARAMETERS, int <names>...)`, which loads four elements of `id` in one access, and
/// returns 4; returns 1, and defines nothing, where they can't be. `element(j)` emits the j-th of them in the symbols
/// of `names`. They can be where views alone lead from `id` to one value of float32 or float16 in rows of memory, in
/// which the four stand side by side from a multiple of four on, whatever the symbols are.
template <class Element>
[[nodiscard]] int define_four_neighbours(kernel_builder& b, std::string_view name, value_id id,
                                         std::span<const std::string> names, Element&& element) {
  if (!b.are_stored_reals(id)) return 1;
  b.begin();
  const std::size_t before = b.loads().size();
  const std::size_t depth = b.depth();
  for (std::int64_t j = 0; j < 4; ++j) (void)element(j);
  const std::string statements = b.take();
  const std::vector<element_load> loads(b.loads().begin() + static_cast<std::ptrdiff_t>(before), b.loads().end());
  // A statement beside the loads is a test or an index that is read itself.
  if (loads.size() != 4 || std::count(statements.begin(), statements.end(), '\n') != 4) return 1;
  std::array<index_expr, 4> offsets;
  for (std::size_t j = 0; j < 4; ++j) {
    if (loads[j].id != loads[0].id || loads[j].depth != depth || !b.views_lead_to(id, loads[j].id)) return 1;
    offsets[j] = b.offset_of(loads[j].id, loads[j].index);
  }
  if (!are_four_neighbours(offsets) || !b.fits_offset(loads[0].id, offsets[3])) return 1;
  std::string text = "static inline float4 " + std::string(name) + "(DNNOPT_PARAMETERS";
  for (const std::string& n : names) text += ", const int " + n;
  const std::string at = b.pointer(loads[0].id, false) + " + " + b.offset_source(loads[0].id, offsets[0]);
  b.add_function(text + (b.g().facts(loads[0].id).type == dtype::float32
                             ? ") { return *(__global const float4*)(" + at + "); }\n"
                             : ") { return dnnopt_load_half4(0, " + at + "); }\n"));
  return 4;
}

}  // namespace dnnopt::codegen

#endif  // DNNOPT_BACKEND_CODEGEN_BUILDER_FOUR_NEIGHBOURS_HPP

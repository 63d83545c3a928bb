// Owns how a kernel reads and writes texels: elements as components, and what lies between them.
#ifndef DNNOPT_BACKEND_CODEGEN_BUILDER_EMIT_TEXELS_HPP
#define DNNOPT_BACKEND_CODEGEN_BUILDER_EMIT_TEXELS_HPP

#include <algorithm>
#include <array>

#include <dnnopt/backend/codegen/builder/kernel_builder.hpp>

namespace dnnopt::codegen {

inline std::string kernel_builder::read_texel(value_id id, std::span<const index_expr> index) {
  std::pair<value_id, std::vector<index_expr>> key{id, {index.begin(), index.end()}};
  for (auto nested = scopes_.rbegin(); nested != scopes_.rend(); ++nested)
    for (const auto& [known, name] : nested->texels)
      if (known == key) return name;
  const texel_layout layout = block_.g.facts(id).texels.value();
  const std::size_t argument = arguments_.pointer_to(block_.g, id, false);
  arguments_.accesses().add_unknown(argument, false);
  const texel_place at = place_in(texel_dims(dims(id), layout.packed), index);
  std::string name = fresh("t");
  std::string read = texel_read("b" + std::to_string(argument), at, layout.object, layout.layer_rows,
                                block_.g.facts(id).type, offset_width(id, at.linear()));
  // What lies beyond the dim in texels of the caller may be anything: the alpha of a picture, say.
  if (const index_expr& extent = dims(id)[layout.packed];
      block_.g.is_input(id) && !(mod(extent, texel_width) == index_expr(0)))
    read = "select((float4)(0.0f), " + read + ", (int4)(0, 1, 2, 3) < (int4)(" +
           index_source(extent - index[layout.packed] * texel_width) + "))";
  line("const float4 " + name + " = " + read + ";");
  scopes_.back().texels.emplace_back(std::move(key), name);
  return name;
}

inline void kernel_builder::write_texel(value_id id, std::span<const index_expr> index, std::string_view value) {
  const texel_layout layout = block_.g.facts(id).texels.value();
  const std::size_t argument = arguments_.pointer_to(block_.g, id, true);
  arguments_.accesses().add_unknown(argument, true);
  const texel_place at = place_in(texel_dims(dims(id), layout.packed), index);
  line(texel_write("b" + std::to_string(argument), at, layout.object, layout.layer_rows, block_.g.facts(id).type, value,
                   offset_width(id, at.linear())));
}

inline bool kernel_builder::planes_apart(value_id id) {
  const shape& own = dims(id);
  const auto& texels = block_.g.facts(id).texels;
  if (!texels || is_member_value(id) || own.size() < 2 || texels->packed + 2 == own.size()) return false;
  const std::size_t rows = own.size() - 2;
  if (texels->object == memory_object::image2d_array) return own[rows] == index_expr(texels->layer_rows);
  const shape groups = texel_dims(own, texels->packed);
  return texels->object == memory_object::image2d &&
         std::all_of(groups.begin(), groups.begin() + static_cast<std::ptrdiff_t>(rows),
                     [](const index_expr& extent) { return extent == index_expr(1); });
}

template <class Coordinates>
std::string kernel_builder::read_between(value_id id, value_id result, std::span<const index_expr> index,
                                         Coordinates&& coordinates) {
  // Nobody reads the texels of a result, so that its index names what is read for it.
  std::pair<value_id, std::vector<index_expr>> key{result, {index.begin(), index.end()}};
  for (auto nested = scopes_.rbegin(); nested != scopes_.rend(); ++nested)
    for (const auto& [known, name] : nested->texels)
      if (known == key) return name;
  const texel_layout layout = block_.g.facts(id).texels.value();
  const std::pair<std::string, std::string> at = coordinates();
  const std::size_t argument = arguments_.pointer_to(block_.g, id, false);
  arguments_.pointer(argument).ends_rows = true;
  arguments_.pointer(argument).ends_planes = true;
  arguments_.accesses().add_unknown(argument, false);
  const texel_place place = place_in(texel_dims(dims(id), layout.packed), index);
  std::string name = fresh("t");
  line("const float4 " + name + " = " +
       texel_between("b" + std::to_string(argument), at.first + " + 0.5f", at.second + " + 0.5f", place.plane,
                     layout.object) +
       ";");
  scopes_.back().texels.emplace_back(std::move(key), name);
  return name;
}

inline kernel_builder::border_test kernel_builder::within_or_zero(value_id id, std::size_t d, const index_expr& e,
                                                                  index_width width) {
  const shape& own = dims(id);
  const auto& texels = block_.g.facts(id).texels;
  const auto has_border = [&] {
    // Indices along dims of one are dropped, and four along the packed dim are one texel.
    if (!texels || is_member_value(id) || d == texels->packed || own[d].range().low <= 1) return false;
    if (texels->object != memory_object::image2d && texels->object != memory_object::image2d_array) return false;
    return d + 1 == own.size() || (d + 2 == own.size() && planes_apart(id));
  };
  if (always_within(e, own[d]) || arguments_.is_index_of(e, own[d])) return {};
  if (!has_border()) return {within(e, own[d], width), true};
  pointer_argument& argument = arguments_.pointer(arguments_.pointer_to(block_.g, id, false));
  if ((own[d] - e).range().low <= 0) (d + 1 == own.size() ? argument.ends_rows : argument.ends_planes) = true;
  return {"", false};
}

inline std::string kernel_builder::load_element(value_id id, std::span<const index_expr> index) {
  const auto& layout = block_.g.facts(id).texels;
  if (!layout) {
    loads_.push_back(
        {id, std::vector<index_expr>(index.begin(), index.end()), scopes_.size(), scopes_.back().text.size()});
    return load(id, offset_of(id, index));
  }
  std::vector<index_expr> at(index.begin(), index.end());
  const index_expr component = mod(at[layout->packed], texel_width);
  at[layout->packed] = floordiv(at[layout->packed], texel_width);
  const std::string texel = read_texel(id, at);
  return component.is_constant()
             ? texel + ".s" + std::to_string(component.constant())
             : let(compute_type::real, "dnnopt_component(" + texel + ", " + index_source(component) + ")");
}

}  // namespace dnnopt::codegen

#endif  // DNNOPT_BACKEND_CODEGEN_BUILDER_EMIT_TEXELS_HPP

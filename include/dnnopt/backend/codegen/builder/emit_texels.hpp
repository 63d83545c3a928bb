// Owns how a kernel reads and writes texels: elements as components, four results of a frame as one texel.
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
  std::string read =
      texel_read("b" + std::to_string(argument), at, layout.object, layout.layer_rows, block_.g.facts(id).type);
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
  line(texel_write("b" + std::to_string(argument), place_in(texel_dims(dims(id), layout.packed), index), layout.object,
                   layout.layer_rows, block_.g.facts(id).type, value));
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

inline kernel_builder::border_test kernel_builder::within_or_zero(value_id id, std::size_t d, const index_expr& e) {
  const shape& own = dims(id);
  const auto& texels = block_.g.facts(id).texels;
  const auto has_border = [&] {
    // Indices along dims of one are dropped, and four along the packed dim are one texel.
    if (!texels || is_member_value(id) || d == texels->packed || own[d].range().low <= 1) return false;
    if (texels->object != memory_object::image2d && texels->object != memory_object::image2d_array) return false;
    return d + 1 == own.size() || (d + 2 == own.size() && planes_apart(id));
  };
  if (always_within(e, own[d])) return {};
  if (!has_border()) return {within(e, own[d]), true};
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

inline void kernel_builder::store_four(value_id id, const std::array<index_expr, 4>& offsets, std::string_view four) {
  refuse_texels(id);
  std::string buffer;
  for (const index_expr& offset : offsets) buffer = access(id, true, offset);
  const std::string name(four);
  std::string held = name;
  if (block_.g.facts(id).narrowed) {
    held = "(float4)(";
    for (const char* const part : {".x", ".y", ".z", ".w"})
      held += (part[1] == 'x' ? "" : ", ") + ("dnnopt_within_half(" + name + part + ")");
    held += ")";
  }
  const std::string where = buffer + " + " + index_source(offsets[0]);
  line(block_.g.facts(id).type == dtype::float16 ? "dnnopt_store_half4(" + held + ", 0, " + where + ");"
                                                 : "*(__global float4*)(" + where + ") = " + held + ";");
}

template <class Finish>
void kernel_builder::define_store4(std::string_view name, value_id anchor, const four_results& four,
                                   std::span<const std::string> names, Finish&& finish) {
  struct gathered {
    std::string name;
    std::array<std::vector<index_expr>, 4> at;
  };
  // Where all four are elements, those of rows wait for each other too: what stands side by side is one access.
  const bool all = std::all_of(four.within.begin(), four.within.end(), [](const auto& test) { return test.empty(); });
  std::map<value_id, gathered> gathers;
  begin();
  if (all) arguments_.accesses().runs_once();
  for (const value_id out : block_.outputs) {
    const value_facts& facts = block_.g.facts(out);
    if (!facts.texels && !(all && (facts.type == dtype::float32 || facts.type == dtype::float16))) continue;
    const std::string held = fresh("o");
    line("float4 " + held + " = (float4)(0.0f);");
    gathers[out].name = held;
  }
  // What is stored after the four lies outside of their scopes, and so do the names of its indices. Elements are not
  // asked for here: the anchor's is bound within the scopes.
  for (std::size_t j = 0; j < 4; ++j) {
    const auto keep = [&](value_id out, const std::vector<index_expr>& at) {
      if (const auto found = gathers.find(out); found != gathers.end()) found->second.at[j] = at;
    };
    for_each_output(anchor, four.at[j], keep, no_value, true);
  }
  for (std::size_t j = 0; j < 4; ++j) {
    open(four.within[j].empty() ? "{" : "if (" + four.within[j] + ") {");
    line("const float value = four.s" + std::to_string(j) + ";");
    bind(anchor, four.at[j], finish(j));
    for_each_output(anchor, four.at[j], [&](value_id out, const std::vector<index_expr>& at) {
      const std::string element = emit(out, at);
      const auto found = gathers.find(out);
      if (found == gathers.end()) {
        store(out, offset_of(out, at), element);
        return;
      }
      const bool narrow = block_.g.facts(out).texels && block_.g.facts(out).narrowed;
      line(found->second.name + ".s" + std::to_string(j) + " = " +
           (narrow ? "dnnopt_within_half(" + element + ")" : element) + ";");
    });
    close();
  }
  for (auto& [out, held] : gathers) {
    if (!block_.g.facts(out).texels) {
      if (held.at[0].size() != dims(out).size()) continue;  // stored by a function of its own
      std::array<index_expr, 4> offsets;
      for (std::size_t j = 0; j < 4; ++j) offsets[j] = offset_of(out, held.at[j]);
      if (are_four_neighbours(offsets))
        store_four(out, offsets, held.name);
      else
        for (std::size_t j = 0; j < 4; ++j) store(out, offsets[j], held.name + ".s" + std::to_string(j));
      continue;
    }
    const std::size_t packed = block_.g.facts(out).texels->packed;
    if (!are_one_texel(held.at, packed))
      throw error(errc::unsupported, "the frame's four results are no texel of '" + block_.g.value_at(out).name + "'");
    held.at[0][packed] = floordiv(held.at[0][packed], texel_width);
    write_texel(out, held.at[0], held.name);
  }
  functions_ += "static inline void " + std::string(name) + "(DNNOPT_PARAMETERS" + arguments_of(names) +
                ", float4 four) {\n" + take() + "}\n";
}

}  // namespace dnnopt::codegen

#endif  // DNNOPT_BACKEND_CODEGEN_BUILDER_EMIT_TEXELS_HPP

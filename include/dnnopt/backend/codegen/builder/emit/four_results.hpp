// Owns how four results of a frame are finished and stored at once: as a texel, or as neighbours in one access.
#ifndef DNNOPT_BACKEND_CODEGEN_BUILDER_EMIT_FOUR_RESULTS_HPP
#define DNNOPT_BACKEND_CODEGEN_BUILDER_EMIT_FOUR_RESULTS_HPP

#include <algorithm>
#include <array>
#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <dnnopt/backend/codegen/builder/kernel_builder.hpp>
#include <dnnopt/inexpressible.hpp>

namespace dnnopt::codegen {

inline std::string kernel_builder::four_stored(value_id id, const std::array<index_expr, 4>& offsets,
                                               std::string_view four) {
  const std::string name(four);
  std::string held = name;
  if (block_.g.facts(id).narrowed) {
    held = "(float4)(";
    for (const char* const part : {".x", ".y", ".z", ".w"})
      held += (part[1] == 'x' ? "" : ", ") + ("dnnopt_within_half(" + name + part + ")");
    held += ")";
  }
  const std::string where =
      kernel_arguments::name_of(arguments_.pointer_to(block_.g, id, true)) + " + " + offset_source(id, offsets[0]);
  return fill_pattern(find_four(block_.g.facts(id).type)->store, where, "", held);
}

inline void kernel_builder::store_four(value_id id, const std::array<index_expr, 4>& offsets, std::string_view four) {
  refuse_texels(id);
  for (const index_expr& offset : offsets) (void)access(id, true, offset);
  line(four_stored(id, offsets, four));
}

template <class Finish>
void kernel_builder::finish_fourth(value_id anchor, const four_results& four, std::size_t j, Finish&& finish) {
  line("const float value = four.s" + std::to_string(j) + ";");
  bind(anchor, four.at[j], finish(j));
}

template <class Finish>
void kernel_builder::hold_four_loads(value_id anchor, const four_results& four, std::span<const std::string> names,
                                     Finish&& finish) {
  const std::size_t before = loads_.size();
  const std::size_t text = scopes_.back().text.size();
  std::array<std::vector<element_load>, 4> found;
  for (std::size_t j = 0; j < 4; ++j) {
    const std::size_t begin = loads_.size();
    open("{");
    finish_fourth(anchor, four, j, finish);
    for_each_output(anchor, four.at[j], [&](value_id out, const std::vector<index_expr>& at) { (void)emit(out, at); });
    close();
    found[j].assign(loads_.begin() + static_cast<std::ptrdiff_t>(begin), loads_.end());
  }
  scopes_.back().text.resize(text);
  loads_.resize(before);
  const auto sole_load = [&](std::size_t j, value_id id) -> const element_load* {
    const auto of_id = [id](const element_load& one) { return one.id == id; };
    const auto first = std::find_if(found[j].begin(), found[j].end(), of_id);
    const bool sole = first != found[j].end() && std::count_if(first, found[j].end(), of_id) == 1;
    return sole && first->depth == scopes_.size() + 1 ? &*first : nullptr;
  };
  for (const element_load& load : found[0]) {
    const four_row* const type = find_four(block_.g.facts(load.id).type);
    if (type == nullptr) continue;
    std::array<const element_load*, 4> four_loads;
    for (std::size_t j = 0; j < 4; ++j) four_loads[j] = sole_load(j, load.id);
    if (std::find(four_loads.begin(), four_loads.end(), nullptr) != four_loads.end()) continue;
    std::array<index_expr, 4> offsets;
    for (std::size_t j = 0; j < 4; ++j) offsets[j] = offset_of(load.id, four_loads[j]->index);
    if (!are_four_neighbours(offsets) || !fits_offset(load.id, offsets[3]) || !named_outside(offsets[0], names))
      continue;
    std::string buffer;
    for (const index_expr& offset : offsets) buffer = access(load.id, false, offset);
    const std::string where = buffer + " + " + offset_source(load.id, offsets[0]);
    const std::string held = fresh("w");
    line("const " + std::string(type->held) + " " + held + " = " + fill_pattern(type->load, where, "", "") + ";");
    for (std::size_t j = 0; j < 4; ++j)
      remember(load.id, four_loads[j]->index, fill_pattern(type->part, "", "", held + ".s" + std::to_string(j)));
  }
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
    const four_row* const row = facts.texels ? &four_table[0] : find_four(facts.type);
    if (row == nullptr || !(facts.texels || all)) continue;
    const std::string held = fresh("o");
    const std::string type(row->held);
    line(type + " " + held + " = (" + type + ")(0);");
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
  if (all) hold_four_loads(anchor, four, names, finish);
  for (std::size_t j = 0; j < 4; ++j) {
    if (four.within[j] == nowhere) continue;
    open(four.within[j].empty() ? "{" : "if (" + four.within[j] + ") {");
    finish_fourth(anchor, four, j, finish);
    for_each_output(anchor, four.at[j], [&](value_id out, const std::vector<index_expr>& at) {
      const std::string element = emit(out, at);
      const auto found = gathers.find(out);
      if (found == gathers.end()) {
        store(out, offset_of(out, at), element);
        return;
      }
      const value_facts& facts = block_.g.facts(out);
      line(found->second.name + ".s" + std::to_string(j) + " = " +
           (!facts.texels    ? fill_pattern(find_four(facts.type)->made, "", "", element)
            : facts.narrowed ? "dnnopt_within_half(" + element + ")"
                             : element) +
           ";");
    });
    close();
  }
  const std::string parameters = "(DNNOPT_PARAMETERS" + arguments_of(names) + ", float4 four)";
  for (auto& [out, held] : gathers) {
    if (!block_.g.facts(out).texels) {
      if (held.at[0].size() != dims(out).size()) continue;  // stored by a function of its own
      std::array<index_expr, 4> offsets;
      for (std::size_t j = 0; j < 4; ++j) offsets[j] = offset_of(out, held.at[j]);
      if (are_four_neighbours(offsets)) {
        const std::size_t finished = scopes_.back().text.size();
        store_four(out, offsets, held.name);
        if (block_.outputs.size() > 1 || !named_outside(offsets[0], names) || arguments_.overwrites().empty()) continue;
        scopes_.back().text.resize(finished);
        line("return " + held.name + ";");
        define_halves_of_store4(name, names, find_four(block_.g.facts(out).type)->held, take(),
                                four_stored(out, offsets, "four"));
        return;
      }
      for (std::size_t j = 0; j < 4; ++j) store(out, offsets[j], held.name + ".s" + std::to_string(j));
      continue;
    }
    const std::size_t packed = block_.g.facts(out).texels->packed;
    if (!are_one_texel(held.at, packed))
      throw inexpressible("the frame's four results are no texel of '" + block_.g.value_at(out).name + "'");
    held.at[0][packed] = floordiv(held.at[0][packed], texel_width);
    write_texel(out, held.at[0], held.name);
  }
  functions_ += "static inline void " + std::string(name) + parameters + " {\n" + take() + "}\n";
}

inline void kernel_builder::define_halves_of_store4(std::string_view name, std::span<const std::string> names,
                                                    std::string_view held, const std::string& finished,
                                                    const std::string& put) {
  const auto parameters_with = [&](std::string_view of) {
    return "(DNNOPT_PARAMETERS" + arguments_of(names) + ", " + std::string(of) + " four)";
  };
  std::string site = "(DNNOPT_ARGUMENTS";
  for (const std::string& each : names) site += ", " + each;
  functions_ += "#define DNNOPT_EPILOGUE4 1\n#define DNNOPT_FINISHED4 " + std::string(held) + "\n";
  add_store_function(std::string(held) + " dnnopt_epilogue4" + parameters_with("float4"), finished);
  add_store_function("void dnnopt_put4" + parameters_with(held), "  " + put + "\n");
  add_store_function("void " + std::string(name) + parameters_with("float4"),
                     "  dnnopt_put4" + site + ", dnnopt_epilogue4" + site + ", four));\n");
}

}  // namespace dnnopt::codegen

#endif  // DNNOPT_BACKEND_CODEGEN_BUILDER_EMIT_FOUR_RESULTS_HPP

// Owns the functions through which a frame stores what a block makes of its results: the epilogue, and the way from the
// anchor's element to those of the outputs.
#ifndef DNNOPT_BACKEND_CODEGEN_BUILDER_EMIT_STORES_HPP
#define DNNOPT_BACKEND_CODEGEN_BUILDER_EMIT_STORES_HPP

#include <algorithm>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dnnopt/backend/codegen/builder/kernel_builder.hpp>
#include <dnnopt/inexpressible.hpp>

namespace dnnopt::codegen {

template <class Finish>
void kernel_builder::define_store(std::string_view name, value_id anchor, std::span<const index_expr> index,
                                  std::span<const std::string> names, compute_type type, Finish&& finish,
                                  value_id total, value_id planes) {
  if (total == no_value && block_.outputs.size() == 1) {
    define_sole_store(name, anchor, index, names, type, finish);
    return;
  }
  const auto store_outputs = [&] {
    arguments_.accesses().runs_once();
    bind(anchor, index, finish());
    for_each_output(
        anchor, index,
        [&](value_id out, const std::vector<index_expr>& at) { store(out, offset_of(out, at), emit(out, at)); }, total);
  };
  if (total == no_value) {
    define_procedure(name, names, type, store_outputs);
    return;
  }
  define_scalar_function(name, names, type, [&] {
    store_outputs();
    return emit(planes, index_from_anchor(anchor, index, planes));
  });
}

template <class Finish>
void kernel_builder::define_sole_store(std::string_view name, value_id anchor, std::span<const index_expr> index,
                                       std::span<const std::string> names, compute_type type, Finish&& finish) {
  begin();
  arguments_.accesses().runs_once();
  bind(anchor, index, finish());
  std::string whole;
  std::string finished;
  std::string put;
  compute_type made = type;
  for_each_output(anchor, index, [&](value_id out, const std::vector<index_expr>& at) {
    refuse_texels(out);
    const index_expr offset = offset_of(out, at);
    finished = emit(out, at);
    const std::string buffer = access(out, true, offset);
    whole = store_statement(out, buffer, offset, finished);
    const bool held = computed_as(out) == compute_type::real ||
                      (computed_as(out) == compute_type::integer && size_of(block_.g.facts(out).type) <= 4);
    if (held && (type == compute_type::integer || (type == compute_type::real && computed_as(out) == type)) &&
        named_outside(offset, names) && !arguments_.overwrites().empty()) {
      put = store_statement(out, buffer, offset, "value");
      made = computed_as(out);
    }
  });
  const auto parameters_with = [&](compute_type of) {
    return "(DNNOPT_PARAMETERS" + arguments_of(names) + ", " + std::string(name_of(of)) + " value)";
  };
  const std::string parameters = parameters_with(type);
  if (put.empty()) {
    if (!whole.empty()) line(whole);
    add_store_function("void " + std::string(name) + parameters, take());
    return;
  }
  line("return " + finished + ";");
  std::string site = "(DNNOPT_ARGUMENTS";
  for (const std::string& each : names) site += ", " + each;
  functions_ += "#define DNNOPT_EPILOGUE 1\n";
  if (made == compute_type::real) functions_ += "#define DNNOPT_EPILOGUE_REAL 1\n";
  add_store_function(std::string(name_of(made)) + " dnnopt_epilogue" + parameters, take());
  add_store_function("void dnnopt_put" + parameters_with(made), "  " + put + "\n");
  add_store_function("void " + std::string(name) + parameters,
                     "  dnnopt_put" + site + ", dnnopt_epilogue" + site + ", value));\n");
}

inline std::string kernel_builder::store_statement(value_id id, std::string_view buffer, const index_expr& offset,
                                                   std::string_view expression) {
  // The model's float32 has no infinity where fp16 would make one.
  const std::string held =
      block_.g.facts(id).narrowed ? "dnnopt_within_half(" + std::string(expression) + ")" : std::string(expression);
  return fill_pattern(c_type_of(block_.g.facts(id).type).store, buffer, offset_source(id, offset), held);
}

inline bool kernel_builder::named_outside(const index_expr& e, std::span<const std::string> names) {
  bool all = true;
  (void)substitute(e, [&](const index_expr& symbol) {
    const bool named =
        std::find(names.begin(), names.end(), expressions().symbol_name(*symbol.as_symbol())) != names.end();
    all = all && (named || arguments_.is_integer(symbol));
    return symbol;
  });
  return all;
}

inline std::vector<index_expr> kernel_builder::index_from_anchor(value_id anchor, std::span<const index_expr> index,
                                                                 value_id out, bool places_alone) {
  if (anchor == out) return {index.begin(), index.end()};
  // The path from the anchor to the output, walked from the output upwards.
  const node& n = node_at(block_.g.value_at(out).producer);
  for (std::size_t i = 0; i < n.inputs.size(); ++i) {
    if (n.inputs[i] == no_value || !reaches(anchor, n.inputs[i])) continue;
    const std::vector<index_expr> inner = index_from_anchor(anchor, index, n.inputs[i], places_alone);
    std::vector<index_expr> at = forward_index(n, i, out, inner);
    for (index_expr& e : at) e = named(e);
    // The view's element is known by the way it came: the index map need not be inverted back.
    if (!places_alone && n.op->kind != computation_kind::element_wise) remember(out, at, emit(n.inputs[i], inner));
    return at;
  }
  throw inexpressible("output '" + block_.g.value_at(out).name + "' does not depend on the anchor of its block");
}

inline std::vector<index_expr> kernel_builder::forward_index(const node& n, std::size_t input, value_id out,
                                                             const std::vector<index_expr>& inner) {
  const shape& from = dims(n.inputs[input]);
  const shape& to = dims(out);
  const auto refuse = [&](std::string_view why) {
    return inexpressible("node '" + n.name + "' (" + std::string(n.op->name) +
                         ") can't follow an anchor: " + std::string(why));
  };
  if (n.op->kind == computation_kind::element_wise) {
    if (from.size() > to.size()) throw refuse("rank grows");
    const std::size_t lead = to.size() - from.size();
    std::vector<index_expr> at(to.size(), index_expr(0));
    for (std::size_t k = 0; k < to.size(); ++k) {
      if (k < lead ? !(to[k] == index_expr(1)) : !(to[k] == from[k - lead]))
        throw refuse("it broadcasts the anchor's result");
      if (k >= lead) at[k] = inner[k - lead];
    }
    return at;
  }
  if (n.op->unview != nullptr && input == 0) {
    std::vector<const value_facts*> storage;
    return n.op->unview(facts_of(block_.g.value_at(out).producer, storage), to, inner);
  }
  throw refuse("its index map has no inverse here");
}

}  // namespace dnnopt::codegen

#endif  // DNNOPT_BACKEND_CODEGEN_BUILDER_EMIT_STORES_HPP

// Owns what dims and elements tell each other in a run: symbols from the dims that tensors have, and elements that are
// expressions of them.
#ifndef DNNOPT_BACKEND_RUN_VALUES_HPP
#define DNNOPT_BACKEND_RUN_VALUES_HPP

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>

#include <dnnopt/error.hpp>
#include <dnnopt/graph.hpp>
#include <dnnopt/tensor.hpp>

namespace dnnopt {

/// The one symbol of a dim that is a multiple of it, and the number with which the dim has an extent.
struct solved_dim {
  std::uint32_t symbol = 0;
  std::optional<std::int64_t> value;  ///< nothing where no integer gives the extent
};

/// Solves a dim for its symbol; nothing where it is no multiple of one symbol.
[[nodiscard]] inline std::optional<solved_dim> solve_dim(const index_expr& dim, std::int64_t extent) {
  if (const auto symbol = dim.as_symbol()) return solved_dim{*symbol, extent};
  if (dim.is_constant() || dim.op() != expr_op::sum || dim.node()->terms.size() != 1) return std::nullopt;
  const detail::linear_term& term = dim.node()->terms.front();
  const auto symbol = index_expr::from_node(term.atom).as_symbol();
  if (!symbol) return std::nullopt;
  const std::int64_t rest = extent - dim.node()->value;
  if (rest % term.coefficient != 0) return solved_dim{*symbol, std::nullopt};
  return solved_dim{*symbol, rest / term.coefficient};
}

/// Binds symbols that are dims of a value to the numbers there, and checks the other dims and the symbols' ranges.
/// Errors: shape_mismatch.
inline void bind_symbols(const value& v, const dim_list& dims, symbol_values& symbols) {
  if (!v.facts.dims) return;
  const auto refuse = [&] {
    return error(errc::shape_mismatch,
                 "'" + v.name + "' has shape " + to_string(dims) + ", not " + to_string(*v.facts.dims));
  };
  if (dims.size() != v.facts.dims->size()) throw refuse();
  for (std::size_t k = 0; k < dims.size(); ++k) {
    const index_expr& dim = (*v.facts.dims)[k];
    if (const expr_range range = dim.range(); !dim.is_constant() && (dims[k] < range.low || dims[k] > range.high))
      throw error(errc::shape_mismatch, "dim " + std::to_string(k) + " of '" + v.name + "' is " +
                                            std::to_string(dims[k]) + ", outside of its range " +
                                            std::to_string(range.low) + " to " + std::to_string(range.high));
    if (const auto solved = solve_dim(dim, dims[k]); solved && !symbols.find(solved->symbol)) {
      if (!solved->value) throw refuse();
      symbols.bind(solved->symbol, *solved->value);
    } else if (const auto value = dim.try_evaluate(symbols); value && *value != dims[k]) {
      throw refuse();
    }
  }
}

/// The same for a tensor given as the value. Errors: type_mismatch; shape_mismatch.
inline void bind_symbols(const value& v, const tensor& t, symbol_values& symbols) {
  if (v.facts.type != dtype::undefined && t.type() != v.facts.type)
    throw error(errc::type_mismatch, "'" + v.name + "' is " + std::string(name_of(t.type())) + ", not " +
                                         std::string(name_of(v.facts.type)));
  bind_symbols(v, t.dims(), symbols);
}

/// Binds the symbols that elements of an input are. Precondition: `t` was accepted as its value.
inline void bind_elements(const value& v, const tensor& t, symbol_values& symbols) {
  if (!v.facts.elements || t.size() != static_cast<std::int64_t>(v.facts.elements->size())) return;
  for (std::size_t i = 0; i < v.facts.elements->size(); ++i) {
    const index_expr& element = (*v.facts.elements)[i];
    const auto symbol = element.as_symbol();
    if (symbol && element.kind() == symbol_kind::element) symbols.bind(*symbol, integers_of(t)[i]);
  }
}

/// A value whose elements are expressions of symbols (value_facts::elements must be there), as numbers. Errors:
/// unsupported for elements that are neither integers nor booleans; as index_expr::evaluate.
[[nodiscard]] inline tensor evaluate_elements(const value& v, const symbol_values& symbols) {
  tensor out(v.facts.type, evaluate(*v.facts.dims, symbols));
  const auto fill = [&](auto data) {
    for (std::size_t i = 0; i < data.size(); ++i)
      data[i] = static_cast<std::remove_reference_t<decltype(data[i])>>((*v.facts.elements)[i].evaluate(symbols));
  };
  // Of what is empty everything is known, whatever its type.
  if (out.size() == 0) return out;
  switch (v.facts.type) {
    case dtype::int64:
      fill(out.mutable_data<std::int64_t>());
      break;
    case dtype::int32:
      fill(out.mutable_data<std::int32_t>());
      break;
    case dtype::int16:
      fill(out.mutable_data<std::int16_t>());
      break;
    case dtype::int8:
      fill(out.mutable_data<std::int8_t>());
      break;
    case dtype::uint64:
      fill(out.mutable_data<std::uint64_t>());
      break;
    case dtype::uint32:
      fill(out.mutable_data<std::uint32_t>());
      break;
    case dtype::uint16:
      fill(out.mutable_data<std::uint16_t>());
      break;
    case dtype::uint8:
      fill(out.mutable_data<std::uint8_t>());
      break;
    case dtype::boolean:
      fill(out.mutable_data<bool>());
      break;
    default:
      throw error(errc::unsupported, "'" + v.name + "' holds dims as " + std::string(name_of(v.facts.type)));
  }
  return out;
}

}  // namespace dnnopt

#endif  // DNNOPT_BACKEND_RUN_VALUES_HPP

// Owns how one element of a value becomes statements: constants, loads, scalar expressions and the pieces of views.
#ifndef DNNOPT_BACKEND_CODEGEN_BUILDER_EMIT_ELEMENT_HPP
#define DNNOPT_BACKEND_CODEGEN_BUILDER_EMIT_ELEMENT_HPP

#include <algorithm>
#include <bit>
#include <cmath>

#include <dnnopt/backend/codegen/builder/kernel_builder.hpp>
#include <dnnopt/inexpressible.hpp>
#include <dnnopt/small_float.hpp>

namespace dnnopt::codegen {

/// Collects the pieces of a view while its operator states them; loads of indices append statements at once.
class kernel_builder::piece_builder final : public view_builder {
 public:
  struct piece_row {
    std::size_t input;
    std::vector<index_expr> indices;
    std::vector<condition> conditions;
  };

  piece_builder(kernel_builder& b, const node& n) : b_(b), n_(n) {}

  void piece(std::size_t input, std::vector<index_expr> indices, std::vector<condition> conditions) override {
    pieces.push_back({input, std::move(indices), std::move(conditions)});
  }
  void fill_from(std::size_t input) override { fill_input = input; }
  void fill(double number) override { fill_number = number; }
  index_expr load(std::size_t input, std::span<const index_expr> indices, expr_range range) override {
    const std::string element = b_.emit(n_.inputs.at(input), indices);
    const std::string name = b_.fresh("g");
    // What is built on the symbol takes its range for granted.
    const std::string held = range.low < 0 || range.high >= unbounded
                                 ? element
                                 : "clamp((long)" + element + ", (long)" + std::to_string(range.low) + ", (long)" +
                                       std::to_string(std::max(range.low, range.high)) + ")";
    b_.line(std::string(fits_int(range) ? "const int " : "const long ") + name + " = " +
            (fits_int(range) ? "(int)" : "") + held + ";");
    return b_.expressions().symbol(name, range);
  }
  index_expr wrap_negative(const index_expr& index, const index_expr& dim) override {
    return b_.wrap_index(index, dim);
  }

  std::vector<piece_row> pieces;
  std::optional<std::size_t> fill_input;
  double fill_number = 0;

 private:
  kernel_builder& b_;
  const node& n_;
};

/// The C name of an argument for the first element of a constant, where numbers shall be such: of bytes, and of floats
/// that are no multiples of 1/1024. Those of models (a half, an epsilon's power of two, the number of elements of a
/// mean) stay literals, from which compilers learn; scales tell kernels apart that are alike else.
inline std::optional<std::string> kernel_builder::argument_for(const tensor& t) {
  if (!block_.numbers_as_arguments) return std::nullopt;
  if (is_byte(t.type())) {
    const std::optional<std::string> name = arguments_.number(static_cast<std::int32_t>(number_at(t, 0)));
    return name ? std::optional("((long)" + *name + ")") : std::nullopt;
  }
  if (t.type() != dtype::float32 || half_load_ == half_bits_load) return std::nullopt;
  constexpr float steps = 1024;
  const float value = t.data<float>()[0];
  if (!std::isfinite(value) || std::rint(value * steps) == value * steps) return std::nullopt;
  return number(value);
}

inline std::string kernel_builder::number(float value) {
  const std::optional<std::string> name =
      block_.numbers_as_arguments ? arguments_.number(std::bit_cast<std::int32_t>(value)) : std::nullopt;
  return name ? "as_float(" + *name + ")" : literal(compute_type::real, value);
}

inline std::string kernel_builder::emit_new(value_id id, std::span<const index_expr> index) {
  const value_facts& facts = local_facts(id);
  const compute_type type = computed_as(id);
  const bool integer = type == compute_type::integer || type == compute_type::natural;
  if (facts.is_constant() && (facts.constant.size() == 1 || is_one_byte_all_over(facts.constant))) {
    const std::optional<std::string> argument = argument_for(facts.constant);
    return argument ? *argument : literal_of(facts.constant, 0);
  }
  // Operators check ranks where shapes are propagated; what one of them forgets ends here.
  if (facts.dims && facts.dims->size() != index.size())
    throw error(errc::shape_mismatch, "'" + block_.g.value_at(id).name + "' " + to_string(*facts.dims) +
                                          " is read by " + std::to_string(index.size()) + " indices");
  if (integer && facts.elements && !bound_.contains(id)) {
    const index_expr offset = offset_of(id, index);
    if (offset.is_constant() && offset.constant() < static_cast<std::int64_t>(facts.elements->size()))
      return "((" + std::string(name_of(type)) + ")" +
             index_source((*facts.elements)[static_cast<std::size_t>(offset.constant())]) + ")";
    if (facts.elements->size() == 1)
      return "((" + std::string(name_of(type)) + ")" + index_source(facts.elements->front()) + ")";
    if (!facts.elements->empty() && facts.elements->size() <= largest_table) {
      const std::string table = fresh("t");
      std::string row;
      for (const index_expr& e : *facts.elements) row += (row.empty() ? "" : ", ") + index_source(e);
      line("const " + std::string(name_of(type)) + " " + table + "[] = {" + row + "};");
      return let(type, table + "[" + index_source(divided_where_tested(offset)) + "]");
    }
  }
  if (facts.is_constant() && facts.constant.size() <= static_cast<std::int64_t>(largest_table)) {
    const index_expr offset = offset_of(id, index);
    if (offset.is_constant()) {
      if (offset.constant() < 0 || offset.constant() >= facts.constant.size())
        throw error(errc::shape_mismatch, "element " + to_string(offset) + " is read of '" +
                                              block_.g.value_at(id).name + "', which has " +
                                              std::to_string(facts.constant.size()));
      return literal_of(facts.constant, static_cast<std::size_t>(offset.constant()));
    }
  }
  if (!is_member_value(id)) return load_element(id, index);
  if (bound_.contains(id))
    throw inexpressible("element " + to_string(offset_of(id, index)) + " of the anchor's result '" +
                        block_.g.value_at(id).name + "' is read where another one is computed");
  const value& v = block_.g.value_at(id);
  const node& n = node_at(v.producer);
  for (const emitter_row& row : emitters_) {
    if (row.name != n.op->name || row.domain != n.op->domain) continue;
    // An emitter may write its index as a number.
    std::vector<index_expr> at;
    for (const index_expr& e : index) at.push_back(divided_where_tested(e));
    return row.emit(*this, v.producer, v.output_index, at);
  }
  std::vector<const value_facts*> storage;
  const bool plain =
      v.output_index == 0 && mapping_of(*n.op, facts_of(v.producer, storage)) != mapping_type::many_to_many;
  if (plain && n.op->kind == computation_kind::element_wise && !n.op->scalar.empty())
    return emit_element_wise(v.producer, v.output_index, index);
  if (n.op->view != nullptr) return emit_view(v.producer, v.output_index, index);
  throw inexpressible("node '" + n.name + "' (" + std::string(n.op->name) + ") has no element expression");
}

template <class Test>
bool kernel_builder::are_views_of(value_id id, Test&& test) {
  if (!is_member_value(id)) return test(block_.g.facts(id));
  const auto is_real = [&](value_id v) { return v != no_value && computed_as(v) == compute_type::real; };
  const node& n = node_at(block_.g.value_at(id).producer);
  const auto has_own = [&](const emitter_row& row) { return row.name == n.op->name && row.domain == n.op->domain; };
  if (n.op->view == nullptr || !n.op->scalar.empty() || bound_.contains(id) ||
      std::any_of(emitters_.begin(), emitters_.end(), has_own))
    return false;
  return std::any_of(n.inputs.begin(), n.inputs.end(), is_real) &&
         std::all_of(n.inputs.begin(), n.inputs.end(),
                     [&](value_id v) { return !is_real(v) || are_views_of(v, test); });
}

inline std::string kernel_builder::literal_of(dtype type, double number) const {
  const compute_type computed = c_type_of(type).compute;
  if (computed != compute_type::real || half_load_ != half_bits_load) return literal(computed, number);
  // Beside halves that a graph of floats is stored in, too large a number is the largest half, as in a store.
  const auto value = static_cast<float>(number);
  const float16 half = type == dtype::float16 || std::isinf(value) ? float16(value) : float16::saturated(value);
  return "as_float((uint)" + std::to_string(half.bits) + ")";
}

inline std::string kernel_builder::literal_of(const tensor& t, std::size_t i) const {
  if (t.type() == dtype::int64) return "((long)" + std::to_string(t.data<std::int64_t>()[i]) + "L)";
  if (t.type() == dtype::uint64) return "((ulong)" + std::to_string(t.data<std::uint64_t>()[i]) + "UL)";
  return literal_of(t.type(), number_at(t, i));
}

inline std::string kernel_builder::substitute_scalar(const node& n, std::string_view pattern,
                                                     const std::vector<std::string>& operands, std::size_t fold) {
  std::string out;
  for (std::size_t at = 0; at < pattern.size();) {
    const char c = pattern[at];
    if (c == '{') {
      const std::size_t end = pattern.find('}', at);
      std::string_view name = pattern.substr(at + 1, end - at - 1);
      at = end + 1;
      if (name.starts_with("has") && name.size() > 3 && name[3] >= '0' && name[3] <= '9') {
        const std::size_t i = static_cast<std::size_t>(std::atoi(std::string(name.substr(3)).c_str()));
        out += i < n.inputs.size() && n.inputs[i] != no_value ? "1" : "0";
        continue;
      }
      if (name == "operand") {
        out += std::to_string(fold);
        continue;
      }
      if (name == "operands") {
        out += std::to_string(n.inputs.size());
        continue;
      }
      if (name == "lowest" || name == "highest") {
        out += finite_limit_of(g().facts(n.outputs[0]).type, name == "lowest");
        continue;
      }
      if (name == "bits") {
        out += std::to_string(row_of(g().facts(n.outputs[0]).type).packed_bits);
        continue;
      }
      std::string_view fallback;
      if (const std::size_t twice = name.find("=="); twice != std::string_view::npos) {
        const attribute* held = n.attributes.find(name.substr(0, twice));
        const std::string* text = held == nullptr ? nullptr : std::get_if<std::string>(held);
        out += text != nullptr && *text == name.substr(twice + 2) ? "1" : "0";
        continue;
      }
      if (const std::size_t equals = name.find('='); equals != std::string_view::npos) {
        fallback = name.substr(equals + 1);
        name = name.substr(0, equals);
      }
      const attribute* held = n.attributes.find(name);
      if (held == nullptr) {
        if (fallback.empty())
          throw error(errc::bad_attribute, "node '" + n.name + "' lacks attribute '" + std::string(name) + "'");
        out += fallback.find_first_of(".e") == std::string_view::npos ? std::string(fallback)
                                                                      : std::string(fallback) + "f";
      } else if (const float* f = std::get_if<float>(held)) {
        out += literal(compute_type::real, static_cast<double>(*f));
      } else if (const std::int64_t* i = std::get_if<std::int64_t>(held)) {
        out += "(" + std::to_string(*i) + ")";
      } else {
        throw error(errc::bad_attribute,
                    "attribute '" + std::string(name) + "' of node '" + n.name + "' is not a number");
      }
      continue;
    }
    const bool starts =
        at == 0 || !(std::isalnum(static_cast<unsigned char>(pattern[at - 1])) || pattern[at - 1] == '_');
    if (c == 'x' && starts && at + 1 < pattern.size() && std::isdigit(static_cast<unsigned char>(pattern[at + 1]))) {
      std::size_t end = at + 1;
      while (end < pattern.size() && std::isdigit(static_cast<unsigned char>(pattern[end]))) ++end;
      const auto i = static_cast<std::size_t>(std::atoi(std::string(pattern.substr(at + 1, end - at - 1)).c_str()));
      out += i < operands.size() && !operands[i].empty() ? operands[i] : "0";
      at = end;
      continue;
    }
    out += c;
    ++at;
  }
  return out;
}

inline std::string kernel_builder::emit_element_wise(node_id id, std::size_t output,
                                                     std::span<const index_expr> index) {
  const node& n = node_at(id);
  std::vector<std::string> operands;
  bool real = false;
  bool wide = false;
  for (const value_id in : n.inputs) {
    if (in == no_value) continue;
    real = real || is_floating(g().facts(in).type);
    wide = wide || g().facts(in).type == dtype::float64;
  }
  const value_id out = n.outputs[output];
  const dtype type = g().facts(out).type;
  const bool cuts = real && !n.op->scalar_to_integer.empty() && (type == dtype::int32 || type == dtype::int64);
  const std::string_view pattern = cuts                                     ? n.op->scalar_to_integer
                                   : !real && !n.op->scalar_integer.empty() ? n.op->scalar_integer
                                                                            : n.op->scalar;
  for (std::size_t i = 0; i < n.inputs.size(); ++i) {
    const value_id in = n.inputs[i];
    // An input that only lends its element type or shape (CastLike) is not read.
    const bool read =
        n.op->arity.most_inputs == variadic || pattern.find("x" + std::to_string(i)) != std::string_view::npos;
    if (in == no_value || !read) {
      operands.emplace_back();
      continue;
    }
    const shape d = dims(in);
    const std::vector<index_expr> at = broadcast_index(d, dims(n.outputs[output]), index);
    operands.push_back(emit(in, at));
    // OpenCL's functions take operands of one type.
    const compute_type common = wide ? compute_type::real64 : compute_type::real;
    if (real && computed_as(in) != common && !(cuts && !is_floating(g().facts(in).type)))
      operands.back() = "((" + std::string(name_of(common)) + ")" + operands.back() + ")";
  }
  const c_type_row& row = c_type_of(type);
  std::string expression;
  if (n.op->arity.most_inputs == variadic && operands.size() != 2) {
    // A pattern may hold its operand several times: each step has a name, or the text would double with each.
    const compute_type step = !real ? row.compute : wide ? compute_type::real64 : compute_type::real;
    expression = operands[0];
    for (std::size_t i = 1; i < operands.size(); ++i)
      expression = let(step, substitute_scalar(n, pattern, {expression, operands[i]}, i));
  } else {
    expression = substitute_scalar(n, pattern, operands, 1);
  }
  if (type == dtype::boolean) return let(row.compute, "(" + expression + ") != 0");
  if (cuts) return let(row.compute, type == dtype::int32 ? "dnnopt_cut_to_int(" + expression + ")" : expression);
  bool converts = false;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const dtype given = operands[i].empty() ? type : g().facts(n.inputs[i]).type;
    converts = converts || (given != type && given != dtype::boolean);
  }
  const std::string_view conversion = converts && (real || is_floating(type)) ? converted_pattern(type) : "$v";
  if (conversion != "$v")
    expression =
        fill_pattern(conversion, "", "", let(wide ? compute_type::real64 : compute_type::real, std::move(expression)));
  return let(row.compute, fill_pattern(row.narrow, "", "", row.narrow == "$v" ? expression : "(" + expression + ")"));
}

inline std::string kernel_builder::emit_view(node_id id, std::size_t output, std::span<const index_expr> index) {
  const node& n = node_at(id);
  std::vector<const value_facts*> storage;
  const node_facts facts = facts_of(id, storage);
  piece_builder pieces(*this, n);
  n.op->view(pieces, facts, output, index);
  for (auto& piece : pieces.pieces) {
    for (index_expr& at : piece.indices) at = settled(at);
    for (auto& c : piece.conditions) c = {divided_outside(settled(c.value)), settled(c.low), settled(c.high)};
  }
  if (pieces.pieces.size() == 1 && pieces.pieces[0].conditions.empty())
    return emit(n.inputs.at(pieces.pieces[0].input), pieces.pieces[0].indices);
  const compute_type type = computed_as(n.outputs.at(output));
  const std::string result = fresh("v");
  line(std::string(name_of(type)) + " " + result + ";");
  bool first = true;
  bool closed = false;
  for (const auto& piece : pieces.pieces) {
    std::string test;
    bool never = false;
    for (const auto& c : piece.conditions) {
      // Only the sides that ranges leave open are tested.
      if ((c.value - c.low).range().low < 0) {
        if ((c.value - c.low).range().high < 0) never = true;
        test += (test.empty() ? "" : " && ") + index_source(c.value) + " >= " + index_source(c.low);
      }
      if ((c.high - c.value).range().low <= 0) {
        if ((c.high - c.value).range().high <= 0) never = true;
        test += (test.empty() ? "" : " && ") + index_source(c.value) + " < " + index_source(c.high);
      }
    }
    if (never) continue;
    if (test.empty() && first) {
      line(result + " = " + emit(n.inputs.at(piece.input), piece.indices) + ";");
      closed = true;
      break;
    }
    open(test.empty() ? std::string("else {") : std::string(first ? "if (" : "else if (") + test + ") {");
    line(result + " = " + emit(n.inputs.at(piece.input), piece.indices) + ";");
    close();
    first = false;
    if (test.empty()) {
      closed = true;
      break;
    }
  }
  if (!closed) {
    if (!first) open("else {");
    std::string fill = literal_of(g().facts(n.outputs.at(output)).type, pieces.fill_number);
    if (pieces.fill_input) {
      const value_id from = n.inputs.at(*pieces.fill_input);
      fill = emit(from, std::vector<index_expr>(dims(from).size(), index_expr(0)));
    }
    line(result + " = " + fill + ";");
    if (!first) close();
  }
  return result;
}

}  // namespace dnnopt::codegen

#endif  // DNNOPT_BACKEND_CODEGEN_BUILDER_EMIT_ELEMENT_HPP

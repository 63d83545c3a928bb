// Owns the evaluation of scalar expressions on the host: an operator of a user's own that states one needs no
// evaluation for the reference backend (docs/reference/scalar_expressions.md).
#ifndef DNNOPT_REFERENCE_SCALAR_EXPRESSION_HPP
#define DNNOPT_REFERENCE_SCALAR_EXPRESSION_HPP

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <dnnopt/attribute.hpp>
#include <dnnopt/error.hpp>
#include <dnnopt/ops/op_info.hpp>
#include <dnnopt/reference/broadcast.hpp>
#include <dnnopt/reference/conversion.hpp>

namespace dnnopt::reference {

namespace detail {

using expression_function = double (*)(double, double, double);

/// A function of up to three numbers, or an operator of C by how it is written.
struct expression_row {
  std::string_view name;
  std::size_t arguments;
  expression_function call;
};

[[nodiscard]] inline std::int64_t whole(double x) { return static_cast<std::int64_t>(x); }

inline const std::array expression_rows{
    expression_row{"sin", 1, [](double x, double, double) { return std::sin(x); }},
    expression_row{"cos", 1, [](double x, double, double) { return std::cos(x); }},
    expression_row{"tan", 1, [](double x, double, double) { return std::tan(x); }},
    expression_row{"asin", 1, [](double x, double, double) { return std::asin(x); }},
    expression_row{"acos", 1, [](double x, double, double) { return std::acos(x); }},
    expression_row{"atan", 1, [](double x, double, double) { return std::atan(x); }},
    expression_row{"atan2", 2, [](double x, double y, double) { return std::atan2(x, y); }},
    expression_row{"sinh", 1, [](double x, double, double) { return std::sinh(x); }},
    expression_row{"cosh", 1, [](double x, double, double) { return std::cosh(x); }},
    expression_row{"tanh", 1, [](double x, double, double) { return std::tanh(x); }},
    expression_row{"asinh", 1, [](double x, double, double) { return std::asinh(x); }},
    expression_row{"acosh", 1, [](double x, double, double) { return std::acosh(x); }},
    expression_row{"atanh", 1, [](double x, double, double) { return std::atanh(x); }},
    expression_row{"exp", 1, [](double x, double, double) { return std::exp(x); }},
    expression_row{"exp2", 1, [](double x, double, double) { return std::exp2(x); }},
    expression_row{"expm1", 1, [](double x, double, double) { return std::expm1(x); }},
    expression_row{"log", 1, [](double x, double, double) { return std::log(x); }},
    expression_row{"log2", 1, [](double x, double, double) { return std::log2(x); }},
    expression_row{"log10", 1, [](double x, double, double) { return std::log10(x); }},
    expression_row{"log1p", 1, [](double x, double, double) { return std::log1p(x); }},
    expression_row{"sqrt", 1, [](double x, double, double) { return std::sqrt(x); }},
    expression_row{"rsqrt", 1, [](double x, double, double) { return 1.0 / std::sqrt(x); }},
    expression_row{"cbrt", 1, [](double x, double, double) { return std::cbrt(x); }},
    expression_row{"erf", 1, [](double x, double, double) { return std::erf(x); }},
    expression_row{"erfc", 1, [](double x, double, double) { return std::erfc(x); }},
    expression_row{"fabs", 1, [](double x, double, double) { return std::fabs(x); }},
    expression_row{"abs", 1, [](double x, double, double) { return std::fabs(x); }},
    expression_row{"floor", 1, [](double x, double, double) { return std::floor(x); }},
    expression_row{"ceil", 1, [](double x, double, double) { return std::ceil(x); }},
    expression_row{"rint", 1, [](double x, double, double) { return std::nearbyint(x); }},
    expression_row{"round", 1, [](double x, double, double) { return std::round(x); }},
    expression_row{"trunc", 1, [](double x, double, double) { return std::trunc(x); }},
    expression_row{"sign", 1, [](double x, double, double) { return x > 0   ? 1.0
                                                                    : x < 0 ? -1.0
                                                                            : x; }},
    expression_row{"isnan", 1, [](double x, double, double) { return std::isnan(x) ? 1.0 : 0.0; }},
    expression_row{"isinf", 1, [](double x, double, double) { return std::isinf(x) ? 1.0 : 0.0; }},
    expression_row{"isfinite", 1, [](double x, double, double) { return std::isfinite(x) ? 1.0 : 0.0; }},
    expression_row{"pow", 2, [](double x, double y, double) { return std::pow(x, y); }},
    expression_row{"hypot", 2, [](double x, double y, double) { return std::hypot(x, y); }},
    expression_row{"fmod", 2, [](double x, double y, double) { return std::fmod(x, y); }},
    expression_row{"copysign", 2, [](double x, double y, double) { return std::copysign(x, y); }},
    expression_row{"fmin", 2, [](double x, double y, double) { return std::fmin(x, y); }},
    expression_row{"fmax", 2, [](double x, double y, double) { return std::fmax(x, y); }},
    expression_row{"min", 2, [](double x, double y, double) { return y < x ? y : x; }},
    expression_row{"max", 2, [](double x, double y, double) { return x < y ? y : x; }},
    expression_row{"step", 2, [](double edge, double x, double) { return x < edge ? 0.0 : 1.0; }},
    expression_row{"fma", 3, [](double x, double y, double z) { return x * y + z; }},
    expression_row{"mad", 3, [](double x, double y, double z) { return x * y + z; }},
    expression_row{"mix", 3, [](double x, double y, double a) { return x + (y - x) * a; }},
    expression_row{"clamp", 3, [](double x, double low, double high) { return std::fmin(std::fmax(x, low), high); }},
    expression_row{"select", 3, [](double no, double yes, double c) { return c != 0 ? yes : no; }},
    expression_row{"dnnopt_clip", 3,
                   [](double x, double low, double high) {
                     const double raised = x < low ? low : x;
                     return raised > high ? high : raised;
                   }},
    expression_row{"dnnopt_softplus", 1,
                   [](double x, double, double) { return std::fmax(x, 0.0) + std::log1p(std::exp(-std::fabs(x))); }},
    expression_row{"dnnopt_quotient", 2, [](double x, double y, double) { return x / y; }},
    expression_row{"dnnopt_floor_modulo", 2, [](double x, double y, double) { return x - y * std::floor(x / y); }},
    expression_row{"dnnopt_integer_divide", 2,
                   [](double x, double y, double) { return y == 0 ? 0.0 : std::trunc(x / y); }},
    expression_row{"!", 1, [](double x, double, double) { return x == 0 ? 1.0 : 0.0; }},
    expression_row{"~", 1, [](double x, double, double) { return static_cast<double>(~whole(x)); }},
    expression_row{"-", 1, [](double x, double, double) { return -x; }},
    expression_row{"+", 2, [](double x, double y, double) { return x + y; }},
    expression_row{"-", 2, [](double x, double y, double) { return x - y; }},
    expression_row{"*", 2, [](double x, double y, double) { return x * y; }},
    expression_row{"/", 2, [](double x, double y, double) { return x / y; }},
    expression_row{"%", 2, [](double x, double y, double) { return y == 0 ? 0.0 : std::fmod(x, y); }},
    expression_row{"<", 2, [](double x, double y, double) { return x < y ? 1.0 : 0.0; }},
    expression_row{">", 2, [](double x, double y, double) { return x > y ? 1.0 : 0.0; }},
    expression_row{"<=", 2, [](double x, double y, double) { return x <= y ? 1.0 : 0.0; }},
    expression_row{">=", 2, [](double x, double y, double) { return x >= y ? 1.0 : 0.0; }},
    expression_row{"==", 2, [](double x, double y, double) { return x == y ? 1.0 : 0.0; }},
    expression_row{"!=", 2, [](double x, double y, double) { return x != y ? 1.0 : 0.0; }},
    expression_row{"&&", 2, [](double x, double y, double) { return x != 0 && y != 0 ? 1.0 : 0.0; }},
    expression_row{"||", 2, [](double x, double y, double) { return x != 0 || y != 0 ? 1.0 : 0.0; }},
    expression_row{"&", 2, [](double x, double y, double) { return static_cast<double>(whole(x) & whole(y)); }},
    expression_row{"|", 2, [](double x, double y, double) { return static_cast<double>(whole(x) | whole(y)); }},
    expression_row{"^", 2, [](double x, double y, double) { return static_cast<double>(whole(x) ^ whole(y)); }},
    expression_row{"(int)", 1, [](double x, double, double) { return std::trunc(x); }},
    expression_row{"(long)", 1, [](double x, double, double) { return std::trunc(x); }},
    expression_row{"(float)", 1, [](double x, double, double) { return static_cast<double>(static_cast<float>(x)); }},
    expression_row{"(double)", 1, [](double x, double, double) { return x; }},
};

}  // namespace detail

/// The part of OpenCL C that scalar expressions are written in: numbers, operands `x0`, `x1`, ..., operators of C
/// without assignment, and functions of numbers. Numbers are computed as double; integers are numbers without a
/// fraction.
class scalar_expression {
 public:
  /// Errors: unsupported where the text is none of these or calls an unknown function, naming both.
  explicit scalar_expression(std::string text) : text_(std::move(text)) {
    root_ = conditional();
    if (token() != end_of_text) fail("'" + std::string(1, token()) + "' is left over");
  }

  [[nodiscard]] double operator()(std::span<const double> operands) const { return value_of(root_, operands); }

 private:
  using function = detail::expression_function;
  using row = detail::expression_row;
  struct part {
    char kind = '#';  // '#' a number, 'x' an operand, 'f' a function, '?' a choice
    double number = 0;
    std::size_t operand = 0;
    function call = nullptr;
    std::array<std::size_t, 3> of{};
  };
  static constexpr char end_of_text = '\0';

  [[noreturn]] void fail(const std::string& why) const {
    throw error(errc::unsupported, "the reference backend does not compute the expression '" + text_ + "': " + why);
  }

  /// Functions by name, and operators by how they are written.
  static const row* find(std::string_view name, std::size_t arguments) {
    for (const row& one : detail::expression_rows)
      if (one.name == name && one.arguments == arguments) return &one;
    return nullptr;
  }

  void skip_space() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_])) != 0) ++at_;
  }
  char token() {
    skip_space();
    return at_ < text_.size() ? text_[at_] : end_of_text;
  }
  bool take(std::string_view what) {
    skip_space();
    if (!std::string_view(text_).substr(at_).starts_with(what)) return false;
    at_ += what.size();
    return true;
  }
  std::size_t add(part made) {
    parts_.push_back(made);
    return parts_.size() - 1;
  }
  std::size_t call(std::string_view name, const std::vector<std::size_t>& of) {
    const row* const found = find(name, of.size());
    if (found == nullptr)
      fail("'" + std::string(name) + "' of " + std::to_string(of.size()) + " numbers is not known here");
    part made{'f', 0, 0, found->call, {}};
    std::copy(of.begin(), of.end(), made.of.begin());
    return add(made);
  }

  std::size_t conditional() {
    const std::size_t condition = binary(0);
    if (!take("?")) return condition;
    const std::size_t yes = conditional();
    if (!take(":")) fail("a ':' is missing");
    const std::size_t no = conditional();
    return add({'?', 0, 0, nullptr, {condition, yes, no}});
  }

  std::size_t binary(std::size_t level) {
    // From those that bind least; longer ones stand before those that they begin with.
    static constexpr std::array<std::array<std::string_view, 4>, 9> levels{
        {{"||"}, {"&&"}, {"|"}, {"^"}, {"&"}, {"==", "!="}, {"<=", ">=", "<", ">"}, {"+", "-"}, {"*", "/", "%"}}};
    if (level == levels.size()) return unary();
    std::size_t left = binary(level + 1);
    while (true) {
      std::string_view found;
      skip_space();
      const std::string_view rest = std::string_view(text_).substr(at_);
      for (const std::string_view one : levels[level])
        if (found.empty() && !one.empty() && rest.starts_with(one)) found = one;
      // '|' and '&' begin '||' and '&&', which bind less.
      if (found.empty() || (found.size() == 1 && (found == "|" || found == "&") && rest.substr(1).starts_with(found)))
        return left;
      at_ += found.size();
      left = call(found, {left, binary(level + 1)});
    }
  }

  std::size_t unary() {
    for (const std::string_view cast : {"(float)", "(int)", "(long)", "(double)"})
      if (take(cast)) return call(cast, {unary()});
    if (take("-")) return call("-", {unary()});
    if (take("+")) return unary();
    if (take("!")) return call("!", {unary()});
    if (take("~")) return call("~", {unary()});
    return primary();
  }

  std::size_t primary() {
    if (take("(")) {
      const std::size_t inside = conditional();
      if (!take(")")) fail("a ')' is missing");
      return inside;
    }
    const char first = token();
    if (std::isdigit(static_cast<unsigned char>(first)) != 0 || first == '.') return number();
    std::string name;
    while (at_ < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[at_])) != 0 || text_[at_] == '_'))
      name += text_[at_++];
    if (name.empty()) fail("an operand is missing");
    if (name == "NAN") return add({'#', std::numeric_limits<double>::quiet_NaN()});
    if (name == "INFINITY") return add({'#', std::numeric_limits<double>::infinity()});
    if (name.size() > 1 && name[0] == 'x' &&
        std::all_of(name.begin() + 1, name.end(), [](unsigned char c) { return std::isdigit(c) != 0; }))
      return add({'x', 0, static_cast<std::size_t>(std::stoul(name.substr(1)))});
    if (!take("(")) fail("'" + name + "' is not known here");
    std::vector<std::size_t> of;
    if (!take(")")) {
      do of.push_back(conditional());
      while (take(","));
      if (!take(")")) fail("a ')' is missing");
    }
    return call(name, of);
  }

  std::size_t number() {
    double value = 0;
    const char* const begin = text_.data() + at_;
    const auto [end, problem] = std::from_chars(begin, text_.data() + text_.size(), value);
    if (problem != std::errc()) fail("a number is malformed");
    at_ += static_cast<std::size_t>(end - begin);
    while (at_ < text_.size() && std::string_view("fFlLuU").find(text_[at_]) != std::string_view::npos) ++at_;
    return add({'#', value});
  }

  [[nodiscard]] double value_of(std::size_t at, std::span<const double> operands) const {
    const part& p = parts_[at];
    switch (p.kind) {
      case '#':
        return p.number;
      case 'x':
        return p.operand < operands.size() ? operands[p.operand] : 0.0;
      case '?':
        return value_of(p.of[value_of(p.of[0], operands) != 0 ? 1 : 2], operands);
      default:
        // Parts before this one: 0 where a function takes fewer.
        return p.call(value_of(p.of[0], operands), value_of(p.of[1], operands), value_of(p.of[2], operands));
    }
  }

  std::string text_;
  std::size_t at_ = 0;
  std::vector<part> parts_{part{}};  // the first one is the number 0
  std::size_t root_ = 0;
};

/// An expression with what stands in braces replaced by attributes and facts of the node. Errors: bad_attribute;
/// unsupported for what only a kernel knows.
[[nodiscard]] inline std::string substitute_expression(std::string_view pattern, const attribute_map& attributes,
                                                       std::span<const tensor> inputs) {
  std::string out;
  for (std::size_t at = 0; at < pattern.size();) {
    if (pattern[at] != '{') {
      out += pattern[at++];
      continue;
    }
    const std::size_t end = std::min(pattern.find('}', at), pattern.size());
    std::string_view name = pattern.substr(at + 1, end - at - 1);
    at = end + 1;
    if (name.starts_with("has") && name.size() > 3 && std::isdigit(static_cast<unsigned char>(name[3])) != 0) {
      const auto i = static_cast<std::size_t>(std::stoul(std::string(name.substr(3))));
      out += i < inputs.size() && !inputs[i].empty() ? "1" : "0";
      continue;
    }
    if (name == "operands") {
      out += std::to_string(inputs.size());
      continue;
    }
    if (name == "operand" || name == "lowest" || name == "highest" || name == "bits")
      throw error(errc::unsupported, "the reference backend does not know '{" + std::string(name) + "}' of '" +
                                         std::string(pattern) + "'");
    if (const std::size_t twice = name.find("=="); twice != std::string_view::npos) {
      const attribute* held = attributes.find(name.substr(0, twice));
      const std::string* text = held == nullptr ? nullptr : std::get_if<std::string>(held);
      out += text != nullptr && *text == name.substr(twice + 2) ? "1" : "0";
      continue;
    }
    std::string_view fallback;
    if (const std::size_t equals = name.find('='); equals != std::string_view::npos) {
      fallback = name.substr(equals + 1);
      name = name.substr(0, equals);
    }
    const attribute* held = attributes.find(name);
    std::array<char, 40> digits{};
    const auto write = [&](auto number) {
      const auto end_of = std::to_chars(digits.data(), digits.data() + digits.size(), number);
      out += "(" + std::string(digits.data(), end_of.ptr) + ")";
    };
    if (held == nullptr && fallback.empty())
      throw error(errc::bad_attribute, "attribute '" + std::string(name) + "' is missing");
    if (held == nullptr)
      out += "(" + std::string(fallback) + ")";
    else if (const float* f = std::get_if<float>(held))
      write(static_cast<double>(*f));
    else if (const std::int64_t* i = std::get_if<std::int64_t>(held))
      write(*i);
    else
      throw error(errc::bad_attribute, "attribute '" + std::string(name) + "' is not a number");
  }
  return out;
}

/// The output of an operator that states an expression and no evaluation, as type `to`. Inputs are broadcast.
/// Errors: those of scalar_expression, bad_attribute, shape_mismatch, and unsupported for variadic operators.
[[nodiscard]] inline tensor evaluate_expression(const op_info& op, const attribute_map& attributes,
                                                std::span<const tensor> inputs, dtype to) {
  bool real = false;
  std::vector<tensor> wide;
  for (const tensor& input : inputs) {
    real = real || (!input.empty() && is_floating(input.type()));
    wide.push_back(input.empty() ? input : conversion::cast(input, dtype::float64));
  }
  const bool cuts = real && !op.scalar_to_integer.empty() && (to == dtype::int32 || to == dtype::int64);
  const std::string_view pattern = cuts                                  ? op.scalar_to_integer
                                   : !real && !op.scalar_integer.empty() ? op.scalar_integer
                                                                         : op.scalar;
  const scalar_expression compute(substitute_expression(pattern, attributes, inputs));
  const dim_list whole = broadcast_dims(inputs);
  tensor result(dtype::float64, whole);
  const auto out = result.mutable_data<double>();
  std::vector<double> operands(inputs.size());
  for (std::size_t i = 0; i < out.size(); ++i) {
    for (std::size_t k = 0; k < inputs.size(); ++k) {
      if (inputs[k].empty()) continue;
      // The element of a broadcast input: dims of one stay at their first place.
      const dim_list& own = inputs[k].dims();
      std::size_t rest = i, place = 0, stride = 1;
      for (std::size_t d = 0; d < own.size(); ++d) {
        const auto extent = static_cast<std::size_t>(whole[whole.size() - 1 - d]);
        const auto mine = static_cast<std::size_t>(own[own.size() - 1 - d]);
        if (mine != 1) place += rest % extent * stride;
        rest /= extent;
        stride *= mine;
      }
      operands[k] = wide[k].data<double>()[place];
    }
    const double value = compute(operands);
    out[i] = real || cuts ? value : std::trunc(value);
  }
  return conversion::cast(result, to);
}

}  // namespace dnnopt::reference

#endif  // DNNOPT_REFERENCE_SCALAR_EXPRESSION_HPP

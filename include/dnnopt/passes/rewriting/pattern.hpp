// Owns the text of rewriting rules: terms such as "Mul(Add(a, b), c)" and their parser.
#ifndef DNNOPT_PASSES_REWRITING_PATTERN_HPP
#define DNNOPT_PASSES_REWRITING_PATTERN_HPP

#include <cctype>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dnnopt/error.hpp>

namespace dnnopt::rewriting {

/// One attribute of a term. In a pattern `key=value` asks for that value and `key?=value` takes an absent one too; in a
/// replacement it sets the attribute.
struct attribute_term {
  enum class form : std::uint8_t { integer, real, text, integers, call };

  std::string_view key;
  form kind = form::integer;
  bool or_absent = false;
  std::int64_t integer = 0;
  double real = 0;
  std::vector<std::int64_t> integers;
  std::string_view text;                    ///< of a text, or the name of a call
  std::vector<std::string_view> arguments;  ///< of a call: what it is computed from
};

/// One node of a term. Children come before their parents in a `term`'s list.
struct term_node {
  enum class form : std::uint8_t { variable, number, integers, operation };

  form kind = form::variable;
  std::string_view name;   ///< of the variable or operator
  std::string_view label;  ///< names the matched node, so that a replacement can take its attributes
  bool optional = false;   ///< a variable that stands for an absent input too
  bool ordered = false;    ///< operands are not commuted
  double number = 0;
  std::vector<std::int64_t> integers;  ///< of a list, which a replacement makes an int64 constant
  std::vector<std::size_t> children;
  std::vector<attribute_term> attributes;
};

/// A parsed term; the root is the last node. The text that it was parsed from must outlive it.
struct term {
  std::vector<term_node> nodes;

  [[nodiscard]] std::size_t root() const noexcept { return nodes.size() - 1; }
};

/// One condition: `name(argument, ...)`, with `!` in front where it must not hold.
struct condition_term {
  std::string_view name;
  std::vector<std::string_view> arguments;
  bool negated = false;
};

namespace detail {

class term_parser {
 public:
  explicit term_parser(std::string_view text) : text_(text) {}

  term parse_term() {
    (void)parse_node();
    expect_end();
    return std::move(result_);
  }

  std::vector<condition_term> parse_conditions() {
    std::vector<condition_term> conditions;
    while (!at_end()) {
      condition_term one;
      one.negated = take('!');
      one.name = word();
      one.arguments = arguments();
      conditions.push_back(std::move(one));
      if (!at_end()) expect(',');
    }
    return conditions;
  }

 private:
  [[noreturn]] void fail(std::string_view what) const {
    throw error(errc::invalid_argument, "a rewriting rule's text '" + std::string(text_) + "' has " +
                                            std::string(what) + " at position " + std::to_string(at_));
  }
  void skip() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }
  bool at_end() {
    skip();
    return at_ == text_.size();
  }
  bool take(char c) {
    skip();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    if (!take(c)) fail("no '" + std::string(1, c) + "'");
  }
  void expect_end() {
    if (!at_end()) fail("more than one term");
  }
  static bool in_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }
  std::string_view word() {
    skip();
    const std::size_t begin = at_;
    while (at_ < text_.size() && in_word(text_[at_])) ++at_;
    if (at_ == begin) fail("no name");
    return text_.substr(begin, at_ - begin);
  }
  bool starts_number() {
    skip();
    const auto digit = [&](std::size_t i) {
      return i < text_.size() && std::isdigit(static_cast<unsigned char>(text_[i])) != 0;
    };
    return digit(at_) ||
           (at_ < text_.size() && text_[at_] == '-' && (digit(at_ + 1) || text_.substr(at_, 4) == "-inf"));
  }
  std::string_view number_text() {
    const std::size_t begin = at_;
    if (text_.substr(at_, 4) == "-inf") {
      at_ += 4;
      return text_.substr(begin, 4);
    }
    ++at_;
    while (at_ < text_.size() && (std::isdigit(static_cast<unsigned char>(text_[at_])) != 0 || text_[at_] == '.' ||
                                  text_[at_] == 'e' || (text_[at_] == '-' && text_[at_ - 1] == 'e')))
      ++at_;
    return text_.substr(begin, at_ - begin);
  }
  static double to_real(std::string_view text) { return std::strtod(std::string(text).c_str(), nullptr); }
  static bool is_real(std::string_view text) { return text.find_first_of(".ein") != std::string_view::npos; }
  std::int64_t to_integer(std::string_view text) {
    std::int64_t value = 0;
    if (std::from_chars(text.data(), text.data() + text.size(), value).ec != std::errc()) fail("a bad integer");
    return value;
  }

  std::vector<std::string_view> arguments() {
    std::vector<std::string_view> list;
    expect('(');
    while (!take(')')) {
      if (!list.empty()) expect(',');
      list.push_back(starts_number() ? number_text() : word());
    }
    return list;
  }

  /// What follows the opening bracket of a list.
  std::vector<std::int64_t> integers() {
    std::vector<std::int64_t> list;
    while (!take(']')) {
      if (!list.empty()) expect(',');
      if (!starts_number()) fail("no integer in a list");
      list.push_back(to_integer(number_text()));
    }
    return list;
  }

  attribute_term parse_attribute() {
    attribute_term one;
    one.key = word();
    one.or_absent = take('?');
    expect('=');
    if (take('$')) {
      one.kind = attribute_term::form::call;
      one.text = word();
      one.arguments = arguments();
    } else if (take('"')) {
      one.kind = attribute_term::form::text;
      const std::size_t begin = at_;
      while (at_ < text_.size() && text_[at_] != '"') ++at_;
      one.text = text_.substr(begin, at_ - begin);
      expect('"');
    } else if (take('[')) {
      one.kind = attribute_term::form::integers;
      one.integers = integers();
    } else if (starts_number()) {
      const std::string_view text = number_text();
      one.kind = is_real(text) ? attribute_term::form::real : attribute_term::form::integer;
      if (is_real(text))
        one.real = to_real(text);
      else
        one.integer = to_integer(text);
    } else {
      fail("no attribute value");
    }
    return one;
  }

  std::size_t parse_node() {
    term_node node;
    if (starts_number()) {
      node.kind = term_node::form::number;
      node.number = to_real(number_text());
      return add(std::move(node));
    }
    if (take('[')) {
      node.kind = term_node::form::integers;
      node.integers = integers();
      return add(std::move(node));
    }
    node.optional = take('?');
    node.name = word();
    if (std::isupper(static_cast<unsigned char>(node.name[0])) == 0) return add(std::move(node));
    node.kind = term_node::form::operation;
    node.ordered = take('!');
    if (take(':')) node.label = word();
    if (take('{'))
      while (!take('}')) {
        if (!node.attributes.empty()) expect(',');
        node.attributes.push_back(parse_attribute());
      }
    expect('(');
    while (!take(')')) {
      if (!node.children.empty()) expect(',');
      node.children.push_back(parse_node());
    }
    return add(std::move(node));
  }
  std::size_t add(term_node node) {
    result_.nodes.push_back(std::move(node));
    return result_.nodes.size() - 1;
  }

  std::string_view text_;
  std::size_t at_ = 0;
  term result_;
};

}  // namespace detail

/// Parses a term:
///
///     term      := number | '[' integers ']' | ['?'] variable | Operator ['!'] [':' label] ['{' attributes '}'] '('
///     terms ')' attribute := key ['?'] '=' (integer | real | "text" | '[' integers ']' | '$' function '(' names ')')
///
/// "!" keeps operands from being commuted. Operators begin with a capital letter and are those of ai.onnx, variables
/// with a small one; a variable that occurs twice stands for one value. Errors: invalid_argument with the position.
[[nodiscard]] inline term parse_term(std::string_view text) { return detail::term_parser(text).parse_term(); }

/// Parses conditions "name(argument, ...), !name(...)"; the empty text has none. Errors: invalid_argument.
[[nodiscard]] inline std::vector<condition_term> parse_conditions(std::string_view text) {
  return detail::term_parser(text).parse_conditions();
}

}  // namespace dnnopt::rewriting

#endif  // DNNOPT_PASSES_REWRITING_PATTERN_HPP

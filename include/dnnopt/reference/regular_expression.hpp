// Owns the matching of whole strings against regular expressions in RE2's syntax, as RegexFullMatch needs it.
#ifndef DNNOPT_REFERENCE_REGULAR_EXPRESSION_HPP
#define DNNOPT_REFERENCE_REGULAR_EXPRESSION_HPP

#include <bitset>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dnnopt/error.hpp>

namespace dnnopt::reference {

/// A compiled expression: literals, `.`, classes with ranges, negation and \d \w \s \D \W \S (also inside classes),
/// escapes \n \t \r \f \v \xHH, groups `( )` and `(?: )`, `|`, `* + ? {m} {m,} {m,n}` also followed by `?`, `^ $ \b \B
/// \A \z`. Bytes outside ASCII match as themselves and `.` takes one byte. Matching is linear in the text (set of
/// states).
class regular_expression {
 public:
  /// Errors: bad_attribute for a malformed expression, unsupported for other syntax.
  explicit regular_expression(std::string_view pattern) : pattern_(pattern) {
    const fragment whole = alternatives();
    if (at_ != pattern_.size()) bad("an unmatched ')'");
    const std::size_t end = add({operation::match});
    patch(whole, end);
    start_ = whole.first;
  }

  /// Whether the expression matches all of `text`. O(text * expression).
  [[nodiscard]] bool matches(std::string_view text) const {
    std::vector<std::size_t> current;
    std::vector<bool> seen(program_.size(), false);
    follow(start_, text, 0, current, seen);
    for (std::size_t at = 0; at < text.size(); ++at) {
      std::vector<std::size_t> next;
      std::vector<bool> next_seen(program_.size(), false);
      for (const std::size_t state : current) {
        const instruction& i = program_[state];
        if (i.op == operation::take && i.accepted[static_cast<unsigned char>(text[at])])
          follow(i.next, text, at + 1, next, next_seen);
      }
      current = std::move(next);
    }
    for (const std::size_t state : current)
      if (program_[state].op == operation::match) return true;
    return false;
  }

 private:
  enum class operation : std::uint8_t { take, split, begin, end, boundary, no_boundary, pass, match };
  using byte_set = std::bitset<256>;
  struct instruction {
    operation op;
    byte_set accepted = {};
    std::size_t next = 0;
    std::size_t other = 0;
  };
  // A part of the program with one entry, and the instructions whose `next` (false) or `other` (true) leads out of it.
  struct fragment {
    std::size_t first = 0;
    std::vector<std::pair<std::size_t, bool>> exits;
  };
  static constexpr std::size_t most_instructions = 100000;
  static constexpr std::size_t most_nesting = 200;

  [[noreturn]] void bad(const std::string& why) const {
    throw error(errc::bad_attribute, "regular expression '" + std::string(pattern_) + "': " + why);
  }
  std::size_t add(instruction i) {
    if (program_.size() >= most_instructions) bad("it is too large");
    program_.push_back(i);
    return program_.size() - 1;
  }
  void patch(const fragment& f, std::size_t target) {
    for (const auto& [at, other] : f.exits) (other ? program_[at].other : program_[at].next) = target;
  }
  [[nodiscard]] bool more() const { return at_ < pattern_.size(); }
  [[nodiscard]] char peek() const { return pattern_[at_]; }
  bool accept(char c) {
    if (!more() || peek() != c) return false;
    ++at_;
    return true;
  }

  fragment alternatives() {
    if (++nesting_ > most_nesting) bad("it is nested too deeply");
    fragment result = sequence();
    while (accept('|')) {
      const fragment right = sequence();
      const std::size_t fork = add({operation::split, {}, result.first, right.first});
      result.first = fork;
      result.exits.insert(result.exits.end(), right.exits.begin(), right.exits.end());
    }
    --nesting_;
    return result;
  }
  fragment sequence() {
    fragment result = single({operation::pass});
    while (more() && peek() != '|' && peek() != ')') {
      const fragment next = repeated();
      patch(result, next.first);
      result.exits = next.exits;
    }
    return result;
  }
  fragment single(instruction i) {
    const std::size_t at = add(i);
    return {at, {{at, false}}};
  }
  fragment repeated() {
    const std::size_t begin = at_;
    const fragment item = atom();
    std::size_t least = 0;
    std::size_t most = unlimited;
    if (!repetition(least, most)) return item;
    accept('?');  // lazy and greedy accept the same texts
    const std::size_t after = at_;
    const fragment result = times(item, begin, least, most);
    at_ = after;
    if (repetition(least, most)) bad("a repetition of a repetition");
    return result;
  }
  bool repetition(std::size_t& least, std::size_t& most) {
    if (!more()) return false;
    least = 0;
    most = unlimited;
    if (accept('*')) return true;
    if (accept('+')) {
      least = 1;
      return true;
    }
    if (accept('?')) {
      most = 1;
      return true;
    }
    return peek() == '{' && counted(least, most);
  }
  bool counted(std::size_t& least, std::size_t& most) {
    const std::size_t begin = at_;
    ++at_;
    const auto number = [this](std::size_t& value) {
      const std::size_t first = at_;
      value = 0;
      while (more() && peek() >= '0' && peek() <= '9' && value <= 1000)
        value = value * 10 + static_cast<std::size_t>(pattern_[at_++] - '0');
      return at_ != first;
    };
    if (!number(least)) {
      at_ = begin;
      return false;
    }
    most = least;
    if (accept(',') && !number(most)) most = unlimited;
    if (!accept('}')) {
      at_ = begin;
      return false;
    }
    if (least > 1000 || (most != unlimited && (most > 1000 || most < least))) bad("a repetition out of range");
    return true;
  }
  // The atom at `begin` is compiled again for each further copy.
  fragment times(const fragment& item, std::size_t begin, std::size_t least, std::size_t most) {
    fragment result = single({operation::pass});
    const auto join = [&](const fragment& next) {
      patch(result, next.first);
      result.exits = next.exits;
    };
    bool first = true;
    const auto take = [&] {
      if (std::exchange(first, false)) return item;
      at_ = begin;
      return atom();
    };
    for (std::size_t k = 0; k < least; ++k) join(take());
    if (most == unlimited) {
      const fragment body = take();
      const std::size_t fork = add({operation::split, {}, body.first, 0});
      patch(body, fork);
      patch(result, fork);
      result.exits = {{fork, true}};
      return result;
    }
    std::vector<std::pair<std::size_t, bool>> skips;
    for (std::size_t k = least; k < most; ++k) {
      const fragment body = take();
      const std::size_t fork = add({operation::split, {}, body.first, 0});
      patch(result, fork);
      skips.emplace_back(fork, true);
      result.exits = body.exits;
    }
    result.exits.insert(result.exits.end(), skips.begin(), skips.end());
    return result;
  }
  fragment atom() {
    const char c = pattern_[at_++];
    switch (c) {
      case '(': {
        if (accept('?')) {
          if (!accept(':'))
            throw error(errc::unsupported, "regular expression '" + std::string(pattern_) + "': a group with options");
        }
        fragment inner = alternatives();
        if (!accept(')')) bad("an unclosed '('");
        return inner;
      }
      case '[':
        return taking(char_class());
      case '.': {
        byte_set any;
        any.set();
        any.reset('\n');
        return taking(any);
      }
      case '^':
        return single({operation::begin});
      case '$':
        return single({operation::end});
      case '*':
      case '+':
      case '?':
        bad("nothing to repeat");
      case '\\':
        return escaped();
      default:
        return taking(only(c));
    }
  }
  fragment taking(const byte_set& accepted) { return single({operation::take, accepted}); }
  static byte_set only(char c) {
    byte_set set;
    set.set(static_cast<unsigned char>(c));
    return set;
  }
  fragment escaped() {
    if (!more()) bad("a trailing backslash");
    switch (peek()) {
      case 'b':
        ++at_;
        return single({operation::boundary});
      case 'B':
        ++at_;
        return single({operation::no_boundary});
      case 'A':
        ++at_;
        return single({operation::begin});
      case 'z':
        ++at_;
        return single({operation::end});
      default:
        return taking(escaped_set());
    }
  }
  static bool is_word(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  }
  byte_set escaped_set() {
    const char c = pattern_[at_++];
    byte_set set;
    switch (c) {
      case 'd':
      case 'D':
        for (char k = '0'; k <= '9'; ++k) set.set(static_cast<unsigned char>(k));
        return c == 'd' ? set : ~set;
      case 'w':
      case 'W':
        for (std::size_t k = 0; k < 128; ++k) set.set(k, is_word(static_cast<char>(k)));
        return c == 'w' ? set : ~set;
      case 's':
      case 'S':
        for (const char k : {' ', '\t', '\n', '\r', '\f'}) set.set(static_cast<unsigned char>(k));
        return c == 's' ? set : ~set;
      case 'n':
        return only('\n');
      case 't':
        return only('\t');
      case 'r':
        return only('\r');
      case 'f':
        return only('\f');
      case 'v':
        return only('\v');
      case 'x': {
        unsigned code = 0;
        for (int k = 0; k < 2; ++k) {
          if (!more()) bad("\\x needs two digits");
          const char h = pattern_[at_++];
          const int digit = h >= '0' && h <= '9'   ? h - '0'
                            : h >= 'a' && h <= 'f' ? h - 'a' + 10
                            : h >= 'A' && h <= 'F' ? h - 'A' + 10
                                                   : -1;
          if (digit < 0) bad("\\x needs two digits");
          code = code * 16 + static_cast<unsigned>(digit);
        }
        return only(static_cast<char>(code));
      }
      default:
        if (is_word(c))
          throw error(errc::unsupported, "regular expression '" + std::string(pattern_) + "': \\" + std::string(1, c));
        return only(c);
    }
  }
  byte_set char_class() {
    const bool negated = accept('^');
    byte_set set;
    bool first = true;
    while (true) {
      if (!more()) bad("an unclosed '['");
      if (peek() == ']' && !first) break;
      first = false;
      if (peek() == '[' && at_ + 1 < pattern_.size() && pattern_[at_ + 1] == ':')
        throw error(errc::unsupported, "regular expression '" + std::string(pattern_) + "': a named class");
      const std::size_t begin = at_;
      byte_set low;
      if (accept('\\')) {
        if (!more()) bad("a trailing backslash");
        low = escaped_set();
      } else {
        low = only(pattern_[at_++]);
      }
      if (low.count() == 1 && more() && peek() == '-' && at_ + 1 < pattern_.size() && pattern_[at_ + 1] != ']') {
        ++at_;
        byte_set high;
        if (accept('\\'))
          high = escaped_set();
        else
          high = only(pattern_[at_++]);
        if (high.count() != 1) bad("a range with a class at its end");
        const std::size_t from = low._Find_first();
        const std::size_t to = high._Find_first();
        if (from > to) bad("a range that runs backwards at " + std::to_string(begin));
        for (std::size_t k = from; k <= to; ++k) set.set(k);
      } else {
        set |= low;
      }
    }
    ++at_;
    return negated ? ~set : set;
  }

  void follow(std::size_t state, std::string_view text, std::size_t at, std::vector<std::size_t>& into,
              std::vector<bool>& seen) const {
    std::vector<std::size_t> pending{state};
    while (!pending.empty()) {
      const std::size_t s = pending.back();
      pending.pop_back();
      if (seen[s]) continue;
      seen[s] = true;
      const instruction& i = program_[s];
      const bool before = at > 0 && is_word(text[at - 1]);
      const bool after = at < text.size() && is_word(text[at]);
      switch (i.op) {
        case operation::split:
          pending.push_back(i.next);
          pending.push_back(i.other);
          break;
        case operation::pass:
          pending.push_back(i.next);
          break;
        case operation::begin:
          if (at == 0) pending.push_back(i.next);
          break;
        case operation::end:
          if (at == text.size()) pending.push_back(i.next);
          break;
        case operation::boundary:
          if (before != after) pending.push_back(i.next);
          break;
        case operation::no_boundary:
          if (before == after) pending.push_back(i.next);
          break;
        case operation::take:
        case operation::match:
          into.push_back(s);
          break;
      }
    }
  }

  static constexpr std::size_t unlimited = static_cast<std::size_t>(-1);

  std::string_view pattern_;
  std::size_t at_ = 0;
  std::size_t nesting_ = 0;
  std::vector<instruction> program_;
  std::size_t start_ = 0;
};

}  // namespace dnnopt::reference

#endif  // DNNOPT_REFERENCE_REGULAR_EXPRESSION_HPP

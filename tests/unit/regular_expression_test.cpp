// Regular expressions against whole strings: one row per expression and text.
#include <string>
#include <string_view>

#include <catch2/catch.hpp>

#include <dnnopt/reference/regular_expression.hpp>

namespace {

struct row {
  std::string_view expression;
  std::string_view text;
  bool matches;
};

constexpr row rows[] = {
    {"", "", true},
    {"", "a", false},
    {"abc", "abc", true},
    {"abc", "abcd", false},
    {"a.c", "abc", true},
    {"a.c", "a\nc", false},
    {"a*", "", true},
    {"a*", "aaab", false},
    {"a+", "", false},
    {"ab?c", "ac", true},
    {"ab??c", "abc", true},
    {"a{3}", "aa", false},
    {"a{3}", "aaa", true},
    {"a{2,}", "aaaaa", true},
    {"a{1,2}", "aaa", false},
    {"a{0}b", "b", true},
    {"a{,2}", "a{,2}", true},
    {"(a{2}){3}", "aaaaaa", true},
    {"(a{2}){3}", "aaaaa", false},
    {"(ab|cd)+", "abcdab", true},
    {"(?:ab|cd)+", "abc", false},
    {"a|", "", true},
    {"[a-c]x", "bx", true},
    {"[^a-c]x", "bx", false},
    {"[]a]", "]", true},
    {"[a-]", "-", true},
    {"[\\d.]+", "3.14", true},
    {"\\w+\\s\\w+", "two words", true},
    {"\\D\\W\\S", "a-b", true},
    {"\\x41\\t", "A\t", true},
    {"a\\.b", "axb", false},
    {"^ab$", "ab", true},
    {"a^b", "ab", false},
    {"www\\.[\\w.-]+\\.\\bcom\\b", "www.hello-world.com", true},
    {"www\\.[\\w.-]+\\.\\bcom\\b", "www.hello-world.community", false},
    {"(\\W|^)[\\w.\\-]{0,25}@(yahoo|gmail)\\.com(\\W|$)", "account@gmail.com", true},
    {"(\\W|^)[\\w.\\-]{0,25}@(yahoo|gmail)\\.com(\\W|$)", "account@hotmail.com", false},
    {"a\\Bb", "ab", true},
    {"\xC3\xA9+", "\xC3\xA9", true},
};

dnnopt::errc code_of(std::string_view expression) {
  try {
    (void)dnnopt::reference::regular_expression(expression);
  } catch (const dnnopt::error& e) {
    return e.code();
  }
  return dnnopt::errc::usage;
}

}  // namespace

TEST_CASE("regular expressions match whole strings") {
  for (const row& r : rows) {
    INFO(std::string(r.expression) << " on " << std::string(r.text));
    CHECK(dnnopt::reference::regular_expression(r.expression).matches(r.text) == r.matches);
  }
}

TEST_CASE("malformed regular expressions are errors") {
  for (const std::string_view bad : {"(", "(a", "a)", "[a", "*", "a**", "a{2}{3}", "[c-a]", "\\", "a{5,2}", "\\xg0"}) {
    INFO(std::string(bad));
    CHECK(code_of(bad) == dnnopt::errc::bad_attribute);
  }
  for (const std::string_view other : {"(?i)a", "\\pL", "[[:alpha:]]"}) {
    INFO(std::string(other));
    CHECK(code_of(other) == dnnopt::errc::unsupported);
  }
  CHECK(code_of(std::string(1000, '(')) == dnnopt::errc::bad_attribute);
  CHECK(code_of("((a{1000}){1000}){1000}") == dnnopt::errc::bad_attribute);
}

TEST_CASE("matching time is linear where backtracking is exponential") {
  const dnnopt::reference::regular_expression nested("(a?){100}a{100}");
  CHECK(nested.matches(std::string(150, 'a')));
  CHECK_FALSE(nested.matches(std::string(99, 'a')));
}

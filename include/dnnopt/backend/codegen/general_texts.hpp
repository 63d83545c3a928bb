// Owns kernels that serve several launches with other numbers: texts that differ in numbers alone become one text,
// which is given the numbers as arguments.
//
// A network's kernels that move elements about differ in extents. With the extents as literals a compiler divides by
// constants, which is what an optimized kernel is for; of kernels that serve the first inferences alone, fewer are
// better: a driver's compiler and linker take some 0.05 s for each (PoCL 3.1).
#ifndef DNNOPT_BACKEND_CODEGEN_GENERAL_TEXTS_HPP
#define DNNOPT_BACKEND_CODEGEN_GENERAL_TEXTS_HPP

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <dnnopt/backend/codegen/builder/kernel_plan.hpp>
#include <dnnopt/backend/codegen/frames/sources.hpp>

namespace dnnopt::codegen {

/// A kernel's text, and the int arguments that it takes behind those of its plan.
struct general_text {
  std::string source;
  std::vector<std::int32_t> numbers;
};

namespace general {

/// A text cut at its decimal integers: pieces[0] numbers[0] pieces[1] ... pieces.back().
struct text_around_numbers {
  std::vector<std::string> pieces{std::string()};
  std::vector<std::int32_t> numbers;

  void add(std::string_view text) { pieces.back() += text; }
  void add_number(std::int32_t number) {
    numbers.push_back(number);
    pieces.emplace_back();
  }
};

/// The definitions that every kernel has: the parameters of functions, those of the kernel, and the arguments.
inline constexpr std::array<std::string_view, 3> lists = {
    "#define DNNOPT_PARAMETERS ", "#define DNNOPT_KERNEL_PARAMETERS ", "#define DNNOPT_ARGUMENTS "};

[[nodiscard]] inline bool continues_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.';
}

/// The length of the preprocessing number or the identifier at the begin of `text`; 1 where neither is there.
[[nodiscard]] inline std::size_t word_at(std::string_view text) {
  const auto is_digit = [](char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; };
  if (!continues_word(text[0])) return 1;
  const bool number = is_digit(text[0]) || text[0] == '.';
  std::size_t end = 1;
  while (end < text.size()) {
    const bool exponent = number && (text[end] == '+' || text[end] == '-') &&
                          std::string_view("eEpP").find(text[end - 1]) != std::string_view::npos;
    if (!exponent && !(continues_word(text[end]) && (number || text[end] != '.'))) break;
    ++end;
  }
  return end;
}

/// The number that a word is as a plain decimal int; nothing for another word.
[[nodiscard]] inline std::optional<std::int32_t> int_of(std::string_view word) {
  std::int32_t number = 0;
  const auto [end, failure] = std::from_chars(word.data(), word.data() + word.size(), number);
  const bool plain = std::isdigit(static_cast<unsigned char>(word[0])) != 0 && (word.size() == 1 || word[0] != '0');
  if (!plain || failure != std::errc() || end != word.data() + word.size()) return std::nullopt;
  return number;
}

/// Whether a number in this line may be the value of a variable as well. No where the language asks for a constant: an
/// array's extent, a case, an attribute; and not in what its function gets no arguments for.
[[nodiscard]] inline bool takes_variables(std::string_view line) {
  constexpr std::array<std::string_view, 5> constants = {"case ", "enum ", "__constant", "__builtin", "asm"};
  if (std::ranges::any_of(constants, [&](std::string_view word) { return line.find(word) != std::string_view::npos; }))
    return false;
  if (line.starts_with("static inline ") && line.find("(DNNOPT_PARAMETERS") == std::string_view::npos) return false;
  // "type name[": a declaration. An index follows a name behind an operator or a bracket.
  bool type = false;
  bool name = false;
  while (!line.empty()) {
    const std::size_t length = word_at(line);
    const char first = line[0];
    const bool is_name = std::isalpha(static_cast<unsigned char>(first)) != 0 || first == '_';
    if (first == '[' && type && name) return false;
    if (is_name) {
      type = name && line.substr(0, length) != "return";
      name = line.substr(0, length) != "return";
    } else if (first != ' ' && first != '*') {
      type = name = false;
    }
    line.remove_prefix(length);
  }
  return true;
}

/// `body`, what follows the prelude of a kernel's text, cut at the numbers that may be arguments; nothing where it has
/// a directive but the definitions that every kernel has, or a place for constants alone. The kernel and its functions
/// take DNNOPT_KERNEL_PARAMETERS and DNNOPT_PARAMETERS, and hand on DNNOPT_ARGUMENTS.
[[nodiscard]] inline std::optional<text_around_numbers> cut_at_numbers(std::string_view body) {
  text_around_numbers result;
  std::array<bool, lists.size()> defined{};
  while (!body.empty()) {
    const std::size_t end = std::min(body.find('\n'), body.size() - 1) + 1;
    std::string_view line = body.substr(0, end);
    body.remove_prefix(end);
    if (line.starts_with('#')) {
      const auto list = std::ranges::find_if(lists, [&](std::string_view define) { return line.starts_with(define); });
      if (list != lists.end())
        defined[static_cast<std::size_t>(list - lists.begin())] = true;
      else if (!line.starts_with("#define dnnopt_kernel "))
        return std::nullopt;
      result.add(line);
      continue;
    }
    if (line.find("__attribute__") != std::string_view::npos) {
      // The kernel's own line: its work-group size, and no expression.
      if (!line.starts_with("__kernel ") || line.find(';') != std::string_view::npos) return std::nullopt;
      result.add(line);
      continue;
    }
    if (!takes_variables(line)) return std::nullopt;
    while (!line.empty()) {
      const std::size_t length = word_at(line);
      const std::string_view word = line.substr(0, length);
      line.remove_prefix(length);
      if (const std::optional<std::int32_t> number = int_of(word))
        result.add_number(*number);
      else
        result.add(word);
    }
  }
  if (std::ranges::find(defined, false) != defined.end()) return std::nullopt;
  return result;
}

/// `text` with `parameters` at the ends of the two lists of parameters, and `arguments` at that of arguments.
[[nodiscard]] inline std::string with_arguments(std::string text, const std::string& parameters,
                                                const std::string& arguments) {
  for (const std::string_view define : lists)
    text.insert(text.find('\n', text.find(define)), define == lists.back() ? arguments : parameters);
  return text;
}

/// Makes the texts of one group, whose pieces are equal, one; `cuts` are those of the texts `members`.
inline void make_general(const std::vector<std::size_t>& members, const std::vector<text_around_numbers>& cuts,
                         std::string_view head, std::vector<general_text>& texts) {
  const text_around_numbers& first = cuts[members.front()];
  // Numbers that are equal in every member stay; those that are equal in each are one argument.
  std::map<std::vector<std::int32_t>, std::string> names;
  std::vector<std::vector<std::int32_t>> arguments(members.size());
  std::string parameters;
  std::string handed;
  std::string body = first.pieces[0];
  for (std::size_t i = 0; i < first.numbers.size(); ++i) {
    std::vector<std::int32_t> values;
    for (const std::size_t member : members) values.push_back(cuts[member].numbers[i]);
    if (std::ranges::all_of(values, [&](std::int32_t value) { return value == values[0]; })) {
      body += std::to_string(values[0]) + first.pieces[i + 1];
      continue;
    }
    const auto [place, fresh] = names.try_emplace(values, "dnnopt_number_" + std::to_string(names.size()));
    if (fresh) {
      parameters += ", const int " + place->second;
      handed += ", " + place->second;
      for (std::size_t m = 0; m < members.size(); ++m) arguments[m].push_back(values[m]);
    }
    body += place->second + first.pieces[i + 1];
  }
  const std::string whole = std::string(head) + with_arguments(std::move(body), parameters, handed);
  for (std::size_t m = 0; m < members.size(); ++m) texts[members[m]] = {whole, std::move(arguments[m])};
}

}  // namespace general

/// The texts of `plans`, in which those that differ in numbers alone are one where that is possible: where no number is
/// part of a directive, a type or an extent of memory. A kernel does the same with an int from an argument as with the
/// literal in its place. O(characters).
[[nodiscard]] inline std::vector<general_text> general_texts(const std::vector<const kernel_plan*>& plans) {
  std::vector<general_text> texts;
  std::vector<general::text_around_numbers> cuts(plans.size());
  std::map<std::vector<std::string>, std::vector<std::size_t>> groups;  // by all that is no number
  for (std::size_t i = 0; i < plans.size(); ++i) {
    const std::string& text = plans[i]->source;
    texts.push_back({text, {}});
    const std::size_t prelude = text.find(kernels::prelude);
    if (prelude == std::string::npos) continue;
    const std::size_t head = prelude + kernels::prelude.size();
    auto cut = general::cut_at_numbers(std::string_view(text).substr(head));
    if (!cut) continue;
    cuts[i] = std::move(*cut);
    std::vector<std::string> key = cuts[i].pieces;
    key.push_back(text.substr(0, prelude));
    key.push_back(plans[i]->options);
    key.push_back(plans[i]->entry);
    groups[std::move(key)].push_back(i);
  }
  for (const auto& [key, members] : groups) {
    const std::string& first = plans[members.front()]->source;
    if (std::ranges::all_of(members, [&](std::size_t i) { return plans[i]->source.str() == first; })) continue;
    const std::size_t head = first.find(kernels::prelude) + kernels::prelude.size();
    general::make_general(members, cuts, std::string_view(first).substr(0, head), texts);
  }
  return texts;
}

}  // namespace dnnopt::codegen

#endif  // DNNOPT_BACKEND_CODEGEN_GENERAL_TEXTS_HPP

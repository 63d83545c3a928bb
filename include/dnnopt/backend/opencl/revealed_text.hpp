// Owns the revealing of instructions in a program's text between the two halves of a driver's compiler.
//
// Some drivers compile OpenCL C to a text (NVIDIA's: PTX, which is also what CL_PROGRAM_BINARIES gives) and that to the
// device's code. The first half names a target of the family, which may lack instructions that the device has: wgmma
// needs sm_90a where the text says sm_90. A kernel hides such instructions from the first build in comments, /*+ and
// +*/, which inline assembly carries along with its operands; then they are revealed, the target is renamed, and the
// text is built as a binary.
#ifndef DNNOPT_BACKEND_OPENCL_REVEALED_TEXT_HPP
#define DNNOPT_BACKEND_OPENCL_REVEALED_TEXT_HPP

#include <cctype>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace dnnopt::opencl {

/// The target that a program's build options ask its text to be revealed for (-DDNNOPT_REVEALED_FOR=sm_90a: "sm_90a");
/// empty where they ask for nothing.
[[nodiscard]] inline std::string_view revealed_target(std::string_view options) {
  constexpr std::string_view option = "-DDNNOPT_REVEALED_FOR=";
  const std::size_t at = options.find(option);
  if (at == std::string_view::npos) return {};
  const std::string_view rest = options.substr(at + option.size());
  return rest.substr(0, rest.find(' '));
}

/// The text with what is hidden revealed and its target named `target`; nothing where the text names another one than
/// `target` without the letter at its end, or names none. O(length).
[[nodiscard]] inline std::optional<std::string> revealed_text(std::string_view text, std::string_view target) {
  constexpr std::string_view directive = ".target ";
  const std::string_view family = target.substr(0, target.find_last_not_of("abcdefghijklmnopqrstuvwxyz") + 1);
  const std::size_t at = text.find(directive);
  if (at == std::string_view::npos) return std::nullopt;
  const std::size_t begin = at + directive.size();
  std::size_t end = begin;
  while (end < text.size() && (std::isalnum(static_cast<unsigned char>(text[end])) != 0 || text[end] == '_')) ++end;
  const std::string_view named = text.substr(begin, end - begin);
  if (named != family && named != target) return std::nullopt;
  std::string made(text.substr(0, begin));
  made += target;
  // Texts end with a zero in some drivers' binaries; one is enough.
  std::string_view rest = text.substr(end);
  while (!rest.empty() && rest.back() == '\0') rest.remove_suffix(1);
  for (std::size_t next = 0; next < rest.size();) {
    const std::string_view three = rest.substr(next, 3);
    if (three == "/*+" || three == "+*/") {
      next += 3;
      continue;
    }
    made += rest[next++];
  }
  return made;
}

}  // namespace dnnopt::opencl

#endif  // DNNOPT_BACKEND_OPENCL_REVEALED_TEXT_HPP

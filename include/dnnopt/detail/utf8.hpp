// Owns the test of text from files: whether it is UTF-8.
#ifndef DNNOPT_DETAIL_UTF8_HPP
#define DNNOPT_DETAIL_UTF8_HPP

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace dnnopt::detail {

/// Whether bytes are UTF-8 (RFC 3629: no overlong forms, no surrogates, nothing above U+10FFFF), as JSON and printed
/// names need. O(bytes).
[[nodiscard]] inline bool is_utf8(std::string_view s) {
  for (std::size_t i = 0; i < s.size();) {
    const auto lead = static_cast<unsigned char>(s[i]);
    const std::size_t more = lead < 0x80                   ? 0
                             : lead >= 0xC2 && lead < 0xE0 ? 1
                             : (lead & 0xF0u) == 0xE0      ? 2
                             : lead >= 0xF0 && lead < 0xF5 ? 3
                                                           : s.size();
    if (more >= s.size() - i) return false;
    std::uint32_t code = more == 0 ? lead : lead & (0x3Fu >> more);
    for (std::size_t k = 1; k <= more; ++k) {
      const auto next = static_cast<unsigned char>(s[i + k]);
      if ((next & 0xC0u) != 0x80) return false;
      code = code << 6 | (next & 0x3Fu);
    }
    if ((more == 2 && code < 0x800) || (more == 3 && (code < 0x10000 || code > 0x10FFFF)) ||
        (code >= 0xD800 && code < 0xE000))
      return false;
    i += more + 1;
  }
  return true;
}

}  // namespace dnnopt::detail

#endif  // DNNOPT_DETAIL_UTF8_HPP

// Owns the WordPiece tokenizer of BERT-like networks: text in, token ids out.
#ifndef DNNOPT_EXAMPLES_WORDPIECE_HPP
#define DNNOPT_EXAMPLES_WORDPIECE_HPP

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <istream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace examples {

/// Splits text as uncased BERT does (Devlin et al. 2019, its published tokenizer): control characters dropped, CJK
/// ideographs and punctuation set apart, lower case, accents stripped; then each word greedily into the longest pieces
/// of the vocabulary, continuations marked `##`.
///
/// Case and accents follow Unicode for Latin letters (all letters of U+00C0..U+017F and U+1E00..U+1EFF whose base is an
/// ASCII letter) and for Greek and Cyrillic capitals; other scripts pass unchanged.
class wordpiece {
 public:
  /// One piece per line, the id is the line's number from 0. Throws std::runtime_error when [UNK], [CLS] or [SEP] is
  /// missing.
  explicit wordpiece(std::istream& vocabulary) {
    for (std::string line; std::getline(vocabulary, line);) {
      if (!line.empty() && line.back() == '\r') line.pop_back();
      ids_.emplace(std::move(line), static_cast<std::int64_t>(ids_.size()));
    }
    unknown_ = required("[UNK]");
    first_ = required("[CLS]");
    last_ = required("[SEP]");
  }

  /// [CLS], the pieces of `text`, [SEP]; pieces beyond `longest` ids are cut. `text` is UTF-8, bytes that are not
  /// decode to U+FFFD and are dropped. Precondition: longest >= 2.
  [[nodiscard]] std::vector<std::int64_t> encode(std::string_view text, std::size_t longest = 256) const {
    std::vector<std::int64_t> result{first_};
    for (const std::string& word : words(text)) append_pieces(word, result);
    result.resize(std::min(result.size(), longest - 1));
    result.push_back(last_);
    return result;
  }

 private:
  /// BERT gives up on a longer word; it bounds the quadratic search.
  static constexpr std::size_t longest_word = 100;

  struct range {
    char32_t first;
    char32_t last;
  };

  template <std::size_t count>
  static constexpr bool within(const std::array<range, count>& ranges, char32_t c) {
    return std::any_of(ranges.begin(), ranges.end(), [c](range r) { return r.first <= c && c <= r.last; });
  }

  static constexpr bool is_punctuation(char32_t c) {
    // ASCII: every printable character that is neither letter nor digit; beyond: Unicode's category P as far as
    // U+FFFF's common scripts go.
    constexpr std::array<range, 23> ranges{
        {{0x21, 0x2F},     {0x3A, 0x40},     {0x5B, 0x60},     {0x7B, 0x7E},     {0xA1, 0xA1},     {0xA7, 0xA7},
         {0xAB, 0xAB},     {0xB6, 0xB7},     {0xBB, 0xBB},     {0xBF, 0xBF},     {0x2010, 0x2027}, {0x2030, 0x2043},
         {0x2045, 0x2051}, {0x2053, 0x205E}, {0x2308, 0x230B}, {0x2329, 0x232A}, {0x3001, 0x3003}, {0x3008, 0x3011},
         {0x3014, 0x301F}, {0x30FB, 0x30FB}, {0xFF01, 0xFF03}, {0xFF05, 0xFF0F}, {0xFF1A, 0xFF20}}};
    // The last two ranges contain the full-width signs + < = >, which are symbols.
    return within(ranges, c) && c != 0xFF0B && !(0xFF1C <= c && c <= 0xFF1E);
  }

  static constexpr bool is_ideograph(char32_t c) {
    constexpr std::array<range, 8> ranges{{{0x4E00, 0x9FFF},
                                           {0x3400, 0x4DBF},
                                           {0x20000, 0x2A6DF},
                                           {0x2A700, 0x2B73F},
                                           {0x2B740, 0x2B81F},
                                           {0x2B920, 0x2CEAF},
                                           {0xF900, 0xFAFF},
                                           {0x2F800, 0x2FA1F}}};
    return within(ranges, c);
  }

  static constexpr bool is_space(char32_t c) {
    return c == ' ' || (0x09 <= c && c <= 0x0D) || c == 0x85 || c == 0xA0 || c == 0x1680 ||
           (0x2000 <= c && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
  }

  static constexpr bool is_dropped(char32_t c) {
    constexpr std::array<range, 9> ranges{{{0x00, 0x08},
                                           {0x0E, 0x1F},
                                           {0x7F, 0x9F},
                                           {0xAD, 0xAD},
                                           {0x200B, 0x200F},
                                           {0x202A, 0x202E},
                                           {0x2060, 0x2064},
                                           {0xFEFF, 0xFEFF},
                                           {0xFFFD, 0xFFFD}}};
    // Combining marks are what stripping accents leaves over.
    constexpr std::array<range, 3> marks{{{0x0300, 0x036F}, {0x1DC0, 0x1DFF}, {0x20D0, 0x20F0}}};
    return within(ranges, c) || within(marks, c);
  }

  /// The lower-case base letter: canonical decomposition without its marks.
  static constexpr char32_t folded(char32_t c) {
    // One column per code point; a dot marks a letter without an ASCII base.
    constexpr std::string_view latin =  // U+00C0..U+017F
        "aaaaaa.ceeeeiiii.nooooo..uuuuy..aaaaaa.ceeeeiiii.nooooo..uuuuy.y"
        "aaaaaaccccccccdd..eeeeeeeeeegggggggghh..iiiiiiiii...jjkk.llllll."
        "...nnnnnn...oooooo..rrrrrrsssssssstttt..uuuuuuuuuuuuwwyyyzzzzzz.";
    constexpr std::string_view additional =  // U+1E00..U+1EFF
        "aabbbbbbccddddddddddeeeeeeeeeeffgghhhhhhhhhhiiiikkkkkkllllllllmm"
        "mmmmnnnnnnnnoooooooopppprrrrrrrrssssssssssttttttttuuuuuuuuuuvvvv"
        "wwwwwwwwwwxxxxyyzzzzzzhtwy......aaaaaaaaaaaaaaaaaaaaaaaaeeeeeeee"
        "eeeeeeeeiiiioooooooooooooooooooooooouuuuuuuuuuuuuuyyyyyyyy......";
    const auto base = [c](std::string_view table, char32_t from) -> char32_t {
      const char letter = c - from < table.size() ? table[c - from] : '.';
      return letter == '.' ? c : static_cast<char32_t>(letter);
    };
    if ('A' <= c && c <= 'Z') return c + 32;
    if (c < 0xC0) return c;
    if (c <= 0x17F) {
      const char32_t letter = base(latin, 0xC0);
      if (letter != c) return letter;
      if (c == 0xC6 || c == 0xD0 || c == 0xD8 || c == 0xDE) return c + 32;
      if (c == 0x110 || c == 0x126 || c == 0x132 || c == 0x13F || c == 0x141 || c == 0x14A || c == 0x152 || c == 0x166)
        return c + 1;
      return c;
    }
    if (0x1E00 <= c && c <= 0x1EFF) c = base(additional, 0x1E00);
    if (0x391 <= c && c <= 0x3A9) return c + 32;
    if (0x410 <= c && c <= 0x42F) c += 32;
    if (0x400 <= c && c <= 0x40F) c += 80;
    switch (c) {
      case 0x439:
      case 0x45D:
        return 0x438;
      case 0x450:
      case 0x451:
        return 0x435;
      case 0x453:
        return 0x433;
      case 0x457:
        return 0x456;
      case 0x45C:
        return 0x43A;
      case 0x45E:
        return 0x443;
      case 0x1E9E:
        return 0xDF;
      default:
        return c;
    }
  }

  /// The code point at `at`, which moves behind it; U+FFFD for what is not UTF-8.
  static char32_t decode(std::string_view text, std::size_t& at) {
    const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
    const unsigned char lead = byte(at++);
    if (lead < 0x80) return lead;
    const std::size_t more = lead >= 0xF0 ? 3 : lead >= 0xE0 ? 2 : 1;
    if (lead < 0xC2 || lead > 0xF4 || text.size() - at < more) return 0xFFFD;
    char32_t value = lead & (0x3FU >> more);
    for (std::size_t i = 0; i < more; ++i) {
      if ((byte(at) & 0xC0) != 0x80) return 0xFFFD;
      value = value << 6 | (byte(at++) & 0x3FU);
    }
    return value;
  }

  static void append_utf8(char32_t c, std::string& out) {
    const auto put = [&](char32_t byte) { out.push_back(static_cast<char>(static_cast<unsigned char>(byte))); };
    if (c < 0x80) {
      put(c);
    } else if (c < 0x800) {
      put(0xC0 | c >> 6), put(0x80 | (c & 0x3F));
    } else if (c < 0x10000) {
      put(0xE0 | c >> 12), put(0x80 | (c >> 6 & 0x3F)), put(0x80 | (c & 0x3F));
    } else {
      put(0xF0 | c >> 18), put(0x80 | (c >> 12 & 0x3F)), put(0x80 | (c >> 6 & 0x3F)), put(0x80 | (c & 0x3F));
    }
  }

  static std::vector<std::string> words(std::string_view text) {
    std::vector<std::string> result;
    bool open = false;
    for (std::size_t at = 0; at < text.size();) {
      const char32_t c = decode(text, at);
      if (is_space(c)) {
        open = false;
      } else if (is_punctuation(c) || is_ideograph(c)) {
        append_utf8(c, result.emplace_back());
        open = false;
      } else if (!is_dropped(c)) {
        if (!open) result.emplace_back();
        append_utf8(folded(c), result.back());
        open = true;
      }
    }
    return result;
  }

  void append_pieces(std::string_view word, std::vector<std::int64_t>& out) const {
    const auto starts_character = [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; };
    const std::size_t before = out.size();
    const bool too_long =
        static_cast<std::size_t>(std::count_if(word.begin(), word.end(), starts_character)) > longest_word;
    for (std::size_t begin = 0; begin < word.size();) {
      std::size_t end = too_long ? begin : word.size();
      auto found = ids_.end();
      for (; end > begin; --end) {
        if (end < word.size() && !starts_character(word[end])) continue;
        found = ids_.find((begin == 0 ? "" : "##") + std::string(word.substr(begin, end - begin)));
        if (found != ids_.end()) break;
      }
      if (found == ids_.end()) {
        out.resize(before);
        out.push_back(unknown_);
        return;
      }
      out.push_back(found->second);
      begin = end;
    }
  }

  [[nodiscard]] std::int64_t required(const std::string& piece) const {
    const auto found = ids_.find(piece);
    if (found == ids_.end()) throw std::runtime_error("the vocabulary has no " + piece);
    return found->second;
  }

  std::unordered_map<std::string, std::int64_t> ids_;
  std::int64_t unknown_;
  std::int64_t first_;
  std::int64_t last_;
};

}  // namespace examples

#endif  // DNNOPT_EXAMPLES_WORDPIECE_HPP

// Owns the number and string formatting that the profile's writers share; the same text on every machine and locale.
#ifndef DNNOPT_PROFILE_REPORT_TEXT_HPP
#define DNNOPT_PROFILE_REPORT_TEXT_HPP

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace dnnopt::profile::text {

/// A number with a fixed count of decimals, without locale. Not finite: "-".
[[nodiscard]] inline std::string fixed(double value, int decimals) {
  if (!std::isfinite(value)) return "-";
  std::array<char, 352> buffer;
  const auto end =
      std::to_chars(buffer.data(), buffer.data() + buffer.size(), value, std::chars_format::fixed, decimals);
  return {buffer.data(), end.ptr};
}

/// The shortest text that reads back to the same double. Not finite: "0", for JSON has no infinities.
[[nodiscard]] inline std::string shortest(double value) {
  if (!std::isfinite(value)) return "0";
  std::array<char, 32> buffer;
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value);
  return {buffer.data(), end.ptr};
}

/// Three significant digits with a unit prefix: 1.23G, 45.6M, 789, 0 as "0".
[[nodiscard]] inline std::string scaled(double value) {
  constexpr std::array<char, 6> prefixes{' ', 'k', 'M', 'G', 'T', 'P'};
  if (!std::isfinite(value) || value <= 0.0) return "0";
  std::size_t prefix = 0;
  while (value >= 999.5 && prefix + 1 < prefixes.size()) {
    value /= 1000.0;
    ++prefix;
  }
  std::string result = fixed(value, value < 9.995 ? 2 : value < 99.95 ? 1 : 0);
  if (prefix > 0) result += prefixes[prefix];
  return result;
}

/// Text as the inside of a JSON string; bytes that are no ASCII pass as they are (UTF-8).
[[nodiscard]] inline std::string json_escaped(std::string_view raw) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string result;
  result.reserve(raw.size());
  for (const char c : raw) {
    switch (c) {
      case '"':
        result += "\\\"";
        break;
      case '\\':
        result += "\\\\";
        break;
      case '\n':
        result += "\\n";
        break;
      case '\t':
        result += "\\t";
        break;
      case '\r':
        result += "\\r";
        break;
      default:
        if (static_cast<unsigned char>(c) < 0x20) {
          result += "\\u00";
          result += digits[static_cast<unsigned char>(c) >> 4];
          result += digits[static_cast<unsigned char>(c) & 15];
        } else {
          result += c;
        }
    }
  }
  return result;
}

/// A quoted JSON string.
[[nodiscard]] inline std::string json_quoted(std::string_view raw) {
  std::string result = "\"";
  result += json_escaped(raw);
  result += '"';
  return result;
}

/// A CSV field (RFC 4180): quoted where it holds a comma, a quote or a line break.
[[nodiscard]] inline std::string csv_field(std::string_view raw) {
  if (raw.find_first_of(",\"\n\r") == std::string_view::npos) return std::string(raw);
  std::string result = "\"";
  for (const char c : raw) {
    if (c == '"') result += '"';
    result += c;
  }
  result += '"';
  return result;
}

/// Splits CSV text (RFC 4180) into records of fields. A quote that is never closed ends with the text.
[[nodiscard]] inline std::vector<std::vector<std::string>> csv_records(std::string_view all) {
  std::vector<std::vector<std::string>> records;
  std::vector<std::string> record;
  std::string field;
  bool quoted = false;
  bool any = false;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const char c = all[i];
    if (quoted) {
      if (c != '"') {
        field += c;
      } else if (i + 1 < all.size() && all[i + 1] == '"') {
        field += c;
        ++i;
      } else {
        quoted = false;
      }
      continue;
    }
    if (c == '"') {
      quoted = true;
      any = true;
    } else if (c == ',') {
      record.push_back(std::move(field));
      field.clear();
      any = true;
    } else if (c == '\n') {
      if (any || !field.empty()) {
        record.push_back(std::move(field));
        records.push_back(std::move(record));
      }
      field.clear();
      record.clear();
      any = false;
    } else if (c != '\r') {
      field += c;
    }
  }
  if (any || !field.empty()) {
    record.push_back(std::move(field));
    records.push_back(std::move(record));
  }
  return records;
}

/// Names joined by a separator.
[[nodiscard]] inline std::string joined(const std::vector<std::string>& parts, std::string_view separator) {
  std::string result;
  for (const std::string& part : parts) {
    if (!result.empty()) result += separator;
    result += part;
  }
  return result;
}

/// Pads with spaces to a width in bytes; positive widths on the left (numbers), negative on the right (names). Names
/// longer than the column are cut in their middle, so that both the path and the leaf of a node's name stay readable.
[[nodiscard]] inline std::string padded(std::string value, int width) {
  const auto size = static_cast<std::size_t>(width < 0 ? -width : width);
  if (value.size() > size && width < 0 && size > 8) {
    const std::size_t head = (size - 2) / 2;
    value = value.substr(0, head) + ".." + value.substr(value.size() - (size - 2 - head));
  }
  if (value.size() >= size) return value;
  const std::string space(size - value.size(), ' ');
  return width < 0 ? value + space : space + value;
}

/// Names that fit a column of `width` bytes, at least 8, and stay apart: one that is too long loses its beginning, for
/// nodes of a network differ at their ends. Where two would look alike, the part in which they differ stands before the
/// end; where no cut tells them apart, a number does. Names that are the same stay the same.
[[nodiscard]] inline std::vector<std::string> shortened(const std::vector<std::string>& names, std::size_t width) {
  const std::size_t room = width - 2;
  const auto end_of = [](const std::string& name, std::size_t size) { return name.substr(name.size() - size); };
  std::map<std::string, std::vector<std::string>> alike;  // names by what would be shown of them
  for (const std::string& name : names) {
    std::vector<std::string>& group = alike[name.size() <= width ? name : ".." + end_of(name, room)];
    if (std::find(group.begin(), group.end(), name) == group.end()) group.push_back(name);
  }
  std::map<std::string, std::string> shown;
  std::set<std::string> taken;
  for (const auto& entry : alike) {
    const auto& [plain, listed] = entry;
    const std::vector<std::string>& group = listed;
    std::size_t same = 0;
    while (group.size() > 1 && std::all_of(group.begin(), group.end(), [&](const std::string& name) {
             return same < name.size() && name[same] == group.front()[same];
           }))
      ++same;
    for (const std::string& name : group) {
      std::string cut = plain;
      if (group.size() > 1 && name.size() > width) {
        const std::size_t part = (room - 2) / 2;
        cut = (same == 0 ? "" : "..") + name.substr(same, part) + ".." + end_of(name, room - 2 - part);
      }
      for (std::size_t number = 2; !taken.insert(cut).second; ++number) {
        const std::string ending = "#" + std::to_string(number);
        cut = cut.substr(0, width - ending.size()) + ending;
      }
      shown[name] = cut;
    }
  }
  std::vector<std::string> result;
  for (const std::string& name : names) result.push_back(shown.at(name));
  return result;
}

}  // namespace dnnopt::profile::text

#endif  // DNNOPT_PROFILE_REPORT_TEXT_HPP

// Owns reading and writing usage records as MiniMalloc's CSV.
#ifndef DNNOPT_MEMORY_MEMORY_CSV_HPP
#define DNNOPT_MEMORY_MEMORY_CSV_HPP

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <dnnopt/detail/utf8.hpp>
#include <dnnopt/memory/usage.hpp>

namespace dnnopt::memory {

/// Usage records with their names, and the offsets of a plan where the file had them (empty otherwise).
struct named_usages {
  std::vector<std::string> ids;
  std::vector<buffer_usage> usages;
  std::vector<std::int64_t> offsets;
};

namespace detail {

[[nodiscard]] inline std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t' || text.back() == '\r')) text.remove_suffix(1);
  return text;
}

[[nodiscard]] inline std::vector<std::string_view> split(std::string_view line, char separator) {
  std::vector<std::string_view> cells;
  for (std::size_t begin = 0;;) {
    const std::size_t end = line.find(separator, begin);
    cells.push_back(trimmed(line.substr(begin, end == std::string_view::npos ? end : end - begin)));
    if (end == std::string_view::npos) return cells;
    begin = end + 1;
  }
}

[[nodiscard]] inline std::int64_t csv_integer(std::string_view cell, std::string_view column, std::size_t line) {
  std::int64_t value = 0;
  const auto [end, status] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
  if (status != std::errc{} || end != cell.data() + cell.size()) {
    throw error(errc::bad_file, "line " + std::to_string(line) + ": '" + std::string(cell) + "' in column '" +
                                    std::string(column) + "' is not a 64-bit integer");
  }
  return value;
}

}  // namespace detail

/// Reads `id,lower,upper,size[,alignment][,gaps][,offset][,hint]`: a header that names the columns in any order, then
/// one row per buffer, lifetimes half-open (MiniMalloc, README). `start`/`end` are accepted for lower/upper and
/// `buffer`/`buffer_id` for id. Hints are ignored: they do not change what a plan may be. Errors: bad_file
/// naming the line for a missing column, text that is not UTF-8, a non-integer, a row of another length, or a row with
/// gaps (a buffer that is not needed for part of its lifetime; records here have none); records are validated.
[[nodiscard]] inline named_usages read_usages_csv(std::string_view text) {
  enum column { id, lower, upper, size, alignment, gaps, offset, hint, columns };
  constexpr std::string_view names[columns] = {"id", "lower", "upper", "size", "alignment", "gaps", "offset", "hint"};
  constexpr std::size_t absent = static_cast<std::size_t>(-1);
  std::size_t position[columns];
  for (std::size_t& p : position) p = absent;
  named_usages result;
  std::size_t line_number = 0;
  std::size_t width = 0;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    const std::string_view line = detail::trimmed(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    ++line_number;
    if (line.empty()) continue;
    if (!dnnopt::detail::is_utf8(line))
      throw error(errc::bad_file, "usage CSV: line " + std::to_string(line_number) + " is not UTF-8");
    const auto cells = detail::split(line, ',');
    if (width == 0) {
      width = cells.size();
      for (std::size_t c = 0; c < cells.size(); ++c) {
        std::string_view name = cells[c];
        if (name == "start" || name == "begin") name = "lower";
        if (name == "end") name = "upper";
        if (name == "buffer" || name == "buffer_id") name = "id";
        for (std::size_t k = 0; k < columns; ++k) {
          if (name == names[k]) position[k] = c;
        }
      }
      for (const column needed : {lower, upper, size}) {
        if (position[needed] == absent) {
          throw error(errc::bad_file, "usage CSV: header '" + std::string(line) + "' has no column '" +
                                          std::string(names[needed]) + "'");
        }
      }
      continue;
    }
    if (cells.size() != width) {
      throw error(errc::bad_file, "usage CSV: line " + std::to_string(line_number) + " has " +
                                      std::to_string(cells.size()) + " cells, the header " + std::to_string(width));
    }
    const auto integer = [&](column c) { return detail::csv_integer(cells[position[c]], names[c], line_number); };
    if (position[gaps] != absent && !cells[position[gaps]].empty()) {
      throw error(errc::bad_file, "usage CSV: line " + std::to_string(line_number) + " has gaps '" +
                                      std::string(cells[position[gaps]]) + "'; lifetimes with gaps are not planned");
    }
    buffer_usage usage{integer(lower), integer(upper), integer(size), 1};
    if (position[alignment] != absent && !cells[position[alignment]].empty()) usage.alignment = integer(alignment);
    result.ids.push_back(position[id] == absent ? std::to_string(result.usages.size())
                                                : std::string(cells[position[id]]));
    result.usages.push_back(usage);
    if (position[offset] != absent && !cells[position[offset]].empty()) result.offsets.push_back(integer(offset));
  }
  if (width == 0) throw error(errc::bad_file, "usage CSV: no header line");
  if (!result.offsets.empty() && result.offsets.size() != result.usages.size()) {
    throw error(errc::bad_file, "usage CSV: " + std::to_string(result.offsets.size()) + " of " +
                                    std::to_string(result.usages.size()) + " rows have an offset");
  }
  validate(result.usages);
  return result;
}

/// Writes records in the form that read_usages_csv reads; a column of offsets when `records.offsets` is not empty, a
/// column of alignments when one differs from 1.
[[nodiscard]] inline std::string write_usages_csv(const named_usages& records) {
  bool aligned = false;
  for (const buffer_usage& usage : records.usages) aligned = aligned || usage.alignment != 1;
  std::string text = "id,lower,upper,size";
  if (aligned) text += ",alignment";
  if (!records.offsets.empty()) text += ",offset";
  text += '\n';
  for (std::size_t i = 0; i < records.usages.size(); ++i) {
    const buffer_usage& usage = records.usages[i];
    text += i < records.ids.size() ? records.ids[i] : std::to_string(i);
    text += ',' + std::to_string(usage.lower) + ',' + std::to_string(usage.upper) + ',' + std::to_string(usage.size);
    if (aligned) text += ',' + std::to_string(usage.alignment);
    if (!records.offsets.empty()) text += ',' + std::to_string(records.offsets[i]);
    text += '\n';
  }
  return text;
}

}  // namespace dnnopt::memory

#endif  // DNNOPT_MEMORY_MEMORY_CSV_HPP

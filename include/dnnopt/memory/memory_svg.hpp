// Owns the drawing of a memory plan as SVG: time across, bytes up, one rectangle per buffer, the bound as a line.
#ifndef DNNOPT_MEMORY_MEMORY_SVG_HPP
#define DNNOPT_MEMORY_MEMORY_SVG_HPP

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <initializer_list>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <dnnopt/memory/bounds.hpp>
#include <dnnopt/memory/usage.hpp>

namespace dnnopt::memory {

/// What to draw beside the plan itself.
struct svg_options {
  std::string title;                        ///< above the drawing; empty: none
  std::span<const std::string> names = {};  ///< per record; missing ones are numbered
  std::string time_label = "step";
  double width = 1100.0;  ///< of the whole picture in pixels; the height follows
  double height = 560.0;
};

namespace detail {

[[nodiscard]] inline std::string xml_text(std::string_view text) {
  std::string result;
  for (const char c : text) {
    switch (c) {
      case '&':
        result += "&amp;";
        break;
      case '<':
        result += "&lt;";
        break;
      case '>':
        result += "&gt;";
        break;
      case '"':
        result += "&quot;";
        break;
      default:
        // Control characters are not XML at all.
        result += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
    }
  }
  return result;
}

[[nodiscard]] inline std::string decimal(double value, int digits = 2) {
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "%.*f", digits, value);
  return text.data();
}

/// Bytes for people: 1.50 MiB.
[[nodiscard]] inline std::string readable_bytes(std::int64_t bytes) {
  constexpr std::array<std::string_view, 5> units{"B", "KiB", "MiB", "GiB", "TiB"};
  auto value = static_cast<double>(bytes);
  std::size_t unit = 0;
  while (value >= 1024.0 && unit + 1 < units.size()) {
    value /= 1024.0;
    ++unit;
  }
  return decimal(value, unit == 0 ? 0 : 2) + " " + std::string(units[unit]);
}

/// A step of 1, 2 or 5 times a power of ten, about `count` of them below `range`.
[[nodiscard]] inline std::int64_t tick_step(std::int64_t range, std::int64_t count) {
  std::int64_t step = 1;
  for (;;) {
    for (const std::int64_t factor : {1, 2, 5}) {
      if (range / (step * factor) <= count) return step * factor;
    }
    step *= 10;
  }
}

/// Steps of memory: powers of two times 1 KiB at least.
[[nodiscard]] inline std::int64_t byte_step(std::int64_t range, std::int64_t count) {
  std::int64_t step = 1;
  while (range / step > count) step *= 2;
  return step;
}

}  // namespace detail

/// Draws a plan. Buffers alive at the peak (the first time of the largest live sum) are dark and listed by name and
/// size under the drawing, largest first; every rectangle has a tooltip with name, lifetime, offset and size, and its
/// name where there is room. Precondition: `plan` belongs to `usages`. Errors: invalid_argument when the lengths
/// differ. O(n log n).
[[nodiscard]] inline std::string draw_memory_plan(std::span<const buffer_usage> usages, const offset_plan& plan,
                                                  const svg_options& options = {}) {
  if (plan.offsets.size() != usages.size()) {
    throw error(errc::invalid_argument, "a drawing of " + std::to_string(usages.size()) + " buffers with " +
                                            std::to_string(plan.offsets.size()) + " offsets");
  }
  using detail::decimal;
  using detail::readable_bytes;
  const auto name_of = [&](std::size_t i) {
    return i < options.names.size() && !options.names[i].empty() ? options.names[i] : "#" + std::to_string(i);
  };
  std::int64_t begin = 0;
  std::int64_t end = 1;
  bool any = false;
  std::size_t count = 0;
  for (const buffer_usage& usage : usages) {
    count += usage.size > 0 ? 1U : 0U;
    begin = any ? std::min(begin, usage.lower) : usage.lower;
    end = any ? std::max(end, usage.upper) : usage.upper;
    any = true;
  }
  std::vector<std::size_t> peak = peak_buffers(usages);
  std::stable_sort(peak.begin(), peak.end(),
                   [&](std::size_t a, std::size_t b) { return usages[a].size > usages[b].size; });
  std::vector<char> at_peak(usages.size(), 0);
  std::int64_t peak_begin = std::numeric_limits<std::int64_t>::min();
  std::int64_t peak_end = std::numeric_limits<std::int64_t>::max();
  for (const std::size_t i : peak) {
    at_peak[i] = 1;
    peak_begin = std::max(peak_begin, usages[i].lower);
    peak_end = std::min(peak_end, usages[i].upper);
  }

  constexpr double left = 96.0;
  constexpr double right = 172.0;
  constexpr double above = 64.0;
  constexpr double below = 48.0;
  constexpr std::size_t most_listed = 24;
  constexpr std::size_t columns = 3;
  const std::size_t listed = std::min(peak.size(), most_listed);
  const std::size_t rows = (listed + columns - 1) / columns;
  const double list_height = peak.empty() ? 0.0 : 40.0 + 18.0 * static_cast<double>(rows);
  const double plot_width = options.width - left - right;
  const double plot_height = options.height - above - below;
  const std::int64_t most = std::max<std::int64_t>({plan.bytes, plan.lower_bound, 1});
  const double per_step = plot_width / static_cast<double>(end - begin);
  const double per_byte = plot_height / (static_cast<double>(most) * 1.04);
  const auto x = [&](std::int64_t time) { return left + static_cast<double>(time - begin) * per_step; };
  const auto y = [&](std::int64_t bytes) { return above + plot_height - static_cast<double>(bytes) * per_byte; };

  std::string svg;
  const auto put = [&](std::initializer_list<std::string_view> parts) {
    for (const std::string_view part : parts) svg += part;
    svg += '\n';
  };
  const std::string total_height = decimal(options.height + list_height, 0);
  const std::string total_width = decimal(options.width, 0);
  put({R"(<svg xmlns="http://www.w3.org/2000/svg" width=")", total_width, R"(" height=")", total_height,
       R"(" viewBox="0 0 )", total_width, " ", total_height,
       R"(" role="img" font-family="sans-serif" font-size="12">)"});
  put({"<title>", detail::xml_text(options.title.empty() ? "Memory plan" : options.title), "</title>"});
  put(
      {"<style>.b{fill:#c3d4e8;stroke:#56779c;stroke-width:.6}.p{fill:#2f6690;stroke:#16324a;stroke-width:.6}"
       ".b:hover,.p:hover{fill:#f2a541}.g{stroke:#dddddd;stroke-width:1}.a{stroke:#333333;stroke-width:1}"
       ".t{fill:#333333}.n{fill:#16324a;pointer-events:none}.w{fill:#ffffff;pointer-events:none}</style>"});
  put({R"(<rect width="100%" height="100%" fill="#ffffff"/>)"});
  put({R"(<text class="t" x=")", decimal(left), R"(" y="24" font-size="16" font-weight="bold">)",
       detail::xml_text(options.title), "</text>"});
  const double ratio =
      plan.lower_bound > 0 ? static_cast<double>(plan.bytes) / static_cast<double>(plan.lower_bound) : 1.0;
  put({R"(<text class="t" x=")", decimal(left), R"(" y="44">)", detail::xml_text(plan.strategy), ": ",
       readable_bytes(plan.bytes), " for ", std::to_string(count), " buffers, bound ", readable_bytes(plan.lower_bound),
       " (ratio ", decimal(ratio, 3), plan.proved ? ", proved" : "", ")</text>"});

  for (std::int64_t bytes = 0, step = detail::byte_step(most, 8); bytes <= most; bytes += step) {
    put({R"(<line class="g" x1=")", decimal(left), R"(" x2=")", decimal(left + plot_width), R"(" y1=")",
         decimal(y(bytes)), R"(" y2=")", decimal(y(bytes)), R"("/><text class="t" text-anchor="end" x=")",
         decimal(left - 8.0), R"(" y=")", decimal(y(bytes) + 4.0), R"(">)", readable_bytes(bytes), "</text>"});
  }
  const std::int64_t step = detail::tick_step(end - begin, 10);
  for (std::int64_t time = begin % step == 0 ? begin : begin - begin % step + (begin > 0 ? step : 0); time <= end;
       time += step) {
    put({R"(<line class="a" x1=")", decimal(x(time)), R"(" x2=")", decimal(x(time)), R"(" y1=")",
         decimal(above + plot_height), R"(" y2=")", decimal(above + plot_height + 5.0),
         R"("/><text class="t" text-anchor="middle" x=")", decimal(x(time)), R"(" y=")",
         decimal(above + plot_height + 19.0), R"(">)", std::to_string(time), "</text>"});
  }
  put({R"(<text class="t" text-anchor="middle" x=")", decimal(left + plot_width / 2.0), R"(" y=")",
       decimal(above + plot_height + 38.0), R"(">)", detail::xml_text(options.time_label), "</text>"});

  for (std::size_t i = 0; i < usages.size(); ++i) {
    const buffer_usage& usage = usages[i];
    if (usage.size == 0) continue;
    const double width = static_cast<double>(usage.upper - usage.lower) * per_step;
    const double height = static_cast<double>(usage.size) * per_byte;
    const std::string name = name_of(i);
    put({R"(<rect class=")",
         at_peak[i] != 0 ? "p" : "b",
         R"(" x=")",
         decimal(x(usage.lower)),
         R"(" y=")",
         decimal(y(plan.offsets[i] + usage.size)),
         R"(" width=")",
         decimal(width),
         R"(" height=")",
         decimal(height),
         R"("><title>)",
         detail::xml_text(name),
         ": steps ",
         std::to_string(usage.lower),
         " to ",
         std::to_string(usage.upper - 1),
         ", offset ",
         std::to_string(plan.offsets[i]),
         ", ",
         std::to_string(usage.size),
         " bytes</title></rect>"});
    // Seven pixels a letter is wide enough for a sans-serif of 11 pixels.
    const auto letters = static_cast<std::size_t>(std::max(0.0, (width - 8.0) / 7.0));
    if (height < 13.0 || letters < std::min<std::size_t>(name.size(), 7)) continue;
    const std::string label = name.size() <= letters ? name : name.substr(0, letters - 2) + "..";
    put({R"(<text class=")", at_peak[i] != 0 ? "w" : "n", R"(" font-size="11" x=")", decimal(x(usage.lower) + 4.0),
         R"(" y=")", decimal(y(plan.offsets[i] + usage.size) + height / 2.0 + 4.0), R"(">)", detail::xml_text(label),
         "</text>"});
  }
  put({R"(<path class="a" fill="none" d="M)", decimal(left), " ", decimal(above), "V", decimal(above + plot_height),
       "H", decimal(left + plot_width), R"("/>)"});
  const bool apart = plan.bytes != plan.lower_bound;
  const auto mark = [&](std::int64_t bytes, std::string_view colour, std::string_view dashes, std::string_view text,
                        double shift) {
    put({R"(<line x1=")",
         decimal(left),
         R"(" x2=")",
         decimal(left + plot_width),
         R"(" y1=")",
         decimal(y(bytes)),
         R"(" y2=")",
         decimal(y(bytes)),
         R"(" stroke=")",
         colour,
         R"(" stroke-width="1.5" stroke-dasharray=")",
         dashes,
         R"("/><text fill=")",
         colour,
         R"(" x=")",
         decimal(left + plot_width + 6.0),
         R"(" y=")",
         decimal(y(bytes) + shift),
         R"(">)",
         text,
         "</text>"});
  };
  if (apart) mark(plan.bytes, "#333333", "2 3", "arena " + readable_bytes(plan.bytes), -2.0);
  mark(plan.lower_bound, "#c0392b", "7 4", (apart ? "bound " : "arena = bound ") + readable_bytes(plan.lower_bound),
       apart ? 12.0 : -4.0);
  if (!peak.empty()) {
    put({R"(<rect x=")", decimal(x(peak_begin)), R"(" y=")", decimal(above), R"(" width=")",
         decimal(std::max(1.0, static_cast<double>(peak_end - peak_begin) * per_step)), R"(" height=")",
         decimal(plot_height), R"(" fill="#c0392b" opacity="0.12" pointer-events="none"/>)"});
    put({R"(<text class="t" font-weight="bold" x=")", decimal(left), R"(" y=")", decimal(options.height + 16.0),
         R"(">The peak at )", detail::xml_text(options.time_label), " ", std::to_string(peak_begin), ": ",
         std::to_string(peak.size()), " buffers", peak.size() > listed ? ", the largest " + std::to_string(listed) : "",
         "</text>"});
    for (std::size_t k = 0; k < listed; ++k) {
      const double column = (options.width - left) / static_cast<double>(columns);
      const auto letters = static_cast<std::size_t>(std::max(12.0, column / 7.0 - 14.0));
      std::string name = name_of(peak[k]);
      if (name.size() > letters) name = name.substr(0, letters - 2) + "..";
      put({R"(<text class="t" x=")", decimal(left + column * static_cast<double>(k / rows)), R"(" y=")",
           decimal(options.height + 38.0 + 18.0 * static_cast<double>(k % rows)), R"(">)", detail::xml_text(name), ", ",
           readable_bytes(usages[peak[k]].size), "</text>"});
    }
  }
  svg += "</svg>\n";
  return svg;
}

}  // namespace dnnopt::memory

#endif  // DNNOPT_MEMORY_MEMORY_SVG_HPP

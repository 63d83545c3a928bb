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
#include <utility>
#include <vector>

#include <dnnopt/error.hpp>
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

/// What a drawing's width stands for.
struct time_range {
  std::int64_t begin = 0;
  std::int64_t end = 1;
};

/// From the first time of the buffers to their last; one step where there are none.
[[nodiscard]] inline time_range times_of(std::span<const buffer_usage> usages) {
  time_range times;
  bool any = false;
  for (const buffer_usage& usage : usages) {
    times.begin = any ? std::min(times.begin, usage.lower) : usage.lower;
    times.end = any ? std::max(times.end, usage.upper) : usage.upper;
    any = true;
  }
  return times;
}

/// The buffers that are alive at the peak, and the times at which all of them are.
struct memory_peak {
  std::vector<std::size_t> buffers;  ///< largest first
  std::vector<char> has;             ///< by buffer
  std::int64_t begin = std::numeric_limits<std::int64_t>::min();
  std::int64_t end = std::numeric_limits<std::int64_t>::max();
};

/// The peak of the buffers; without any where all are empty. O(n log n).
[[nodiscard]] inline memory_peak peak_of(std::span<const buffer_usage> usages) {
  memory_peak peak;
  peak.buffers = peak_buffers(usages);
  std::stable_sort(peak.buffers.begin(), peak.buffers.end(),
                   [&](std::size_t a, std::size_t b) { return usages[a].size > usages[b].size; });
  peak.has.assign(usages.size(), 0);
  for (const std::size_t i : peak.buffers) {
    peak.has[i] = 1;
    peak.begin = std::max(peak.begin, usages[i].lower);
    peak.end = std::min(peak.end, usages[i].upper);
  }
  return peak;
}

/// A drawing of a plan in the making: the scales of its axes, and what has been written of it.
class memory_drawing {
 public:
  /// Precondition: `plan` belongs to `usages`, and all three outlive the drawing.
  memory_drawing(std::span<const buffer_usage> usages, const offset_plan& plan, const svg_options& options)
      : usages_(usages),
        plan_(plan),
        options_(options),
        times_(times_of(usages)),
        peak_(peak_of(usages)),
        listed_(std::min(peak_.buffers.size(), most_listed)),
        rows_((listed_ + columns - 1) / columns),
        plot_width_(options.width - left - right),
        plot_height_(options.height - above - below),
        most_bytes_(std::max<std::int64_t>({plan.bytes, plan.lower_bound, 1})),
        per_step_(plot_width_ / static_cast<double>(times_.end - times_.begin)),
        per_byte_(plot_height_ / (static_cast<double>(most_bytes_) * 1.04)) {}

  /// The whole drawing. Precondition: it is asked for once.
  [[nodiscard]] std::string draw() {
    draw_page();
    draw_heading();
    draw_byte_axis();
    draw_time_axis();
    for (std::size_t i = 0; i < usages_.size(); ++i) draw_buffer(i);
    draw_frame();
    draw_levels();
    if (!peak_.buffers.empty()) {
      mark_peak();
      list_peak();
    }
    svg_ += "</svg>\n";
    return std::move(svg_);
  }

 private:
  static constexpr double left = 96.0;
  static constexpr double right = 172.0;
  static constexpr double above = 64.0;
  static constexpr double below = 48.0;
  static constexpr std::size_t most_listed = 24;
  static constexpr std::size_t columns = 3;

  /// Pixels from the left of a time.
  [[nodiscard]] double x(std::int64_t time) const noexcept {
    return left + static_cast<double>(time - times_.begin) * per_step_;
  }
  /// Pixels from above of an offset in bytes.
  [[nodiscard]] double y(std::int64_t bytes) const noexcept {
    return above + plot_height_ - static_cast<double>(bytes) * per_byte_;
  }

  /// A buffer's name, or its number where it has none.
  [[nodiscard]] std::string name_of(std::size_t i) const {
    return i < options_.names.size() && !options_.names[i].empty() ? options_.names[i] : "#" + std::to_string(i);
  }

  /// Writes a line.
  void put(std::initializer_list<std::string_view> parts) {
    for (const std::string_view part : parts) svg_ += part;
    svg_ += '\n';
  }

  /// Opens the picture: its size, its style and its ground.
  void draw_page() {
    const double list_height = peak_.buffers.empty() ? 0.0 : 40.0 + 18.0 * static_cast<double>(rows_);
    const std::string total_height = decimal(options_.height + list_height, 0);
    const std::string total_width = decimal(options_.width, 0);
    put({R"(<svg xmlns="http://www.w3.org/2000/svg" width=")", total_width, R"(" height=")", total_height,
         R"(" viewBox="0 0 )", total_width, " ", total_height,
         R"(" role="img" font-family="sans-serif" font-size="12">)"});
    put({"<title>", xml_text(options_.title.empty() ? "Memory plan" : options_.title), "</title>"});
    put(
        {"<style>.b{fill:#c3d4e8;stroke:#56779c;stroke-width:.6}.p{fill:#2f6690;stroke:#16324a;stroke-width:.6}"
         ".b:hover,.p:hover{fill:#f2a541}.g{stroke:#dddddd;stroke-width:1}.a{stroke:#333333;stroke-width:1}"
         ".t{fill:#333333}.n{fill:#16324a;pointer-events:none}.w{fill:#ffffff;pointer-events:none}</style>"});
    put({R"(<rect width="100%" height="100%" fill="#ffffff"/>)"});
  }

  /// The title, and the plan's numbers in one line.
  void draw_heading() {
    put({R"(<text class="t" x=")", decimal(left), R"(" y="24" font-size="16" font-weight="bold">)",
         xml_text(options_.title), "</text>"});
    const double ratio =
        plan_.lower_bound > 0 ? static_cast<double>(plan_.bytes) / static_cast<double>(plan_.lower_bound) : 1.0;
    const auto count =
        std::count_if(usages_.begin(), usages_.end(), [](const buffer_usage& usage) { return usage.size > 0; });
    put({R"(<text class="t" x=")", decimal(left), R"(" y="44">)", xml_text(plan_.strategy), ": ",
         readable_bytes(plan_.bytes), " for ", std::to_string(count), " buffers, bound ",
         readable_bytes(plan_.lower_bound), " (ratio ", decimal(ratio, 3), plan_.proved ? ", proved" : "", ")</text>"});
  }

  /// Lines across the drawing at round numbers of bytes.
  void draw_byte_axis() {
    for (std::int64_t bytes = 0, step = byte_step(most_bytes_, 8); bytes <= most_bytes_; bytes += step) {
      put({R"(<line class="g" x1=")", decimal(left), R"(" x2=")", decimal(left + plot_width_), R"(" y1=")",
           decimal(y(bytes)), R"(" y2=")", decimal(y(bytes)), R"("/><text class="t" text-anchor="end" x=")",
           decimal(left - 8.0), R"(" y=")", decimal(y(bytes) + 4.0), R"(">)", readable_bytes(bytes), "</text>"});
    }
  }

  /// Ticks under the drawing at round times, and what the times are.
  void draw_time_axis() {
    const std::int64_t begin = times_.begin;
    const std::int64_t step = tick_step(times_.end - begin, 10);
    for (std::int64_t time = begin % step == 0 ? begin : begin - begin % step + (begin > 0 ? step : 0);
         time <= times_.end; time += step) {
      put({R"(<line class="a" x1=")", decimal(x(time)), R"(" x2=")", decimal(x(time)), R"(" y1=")",
           decimal(above + plot_height_), R"(" y2=")", decimal(above + plot_height_ + 5.0),
           R"("/><text class="t" text-anchor="middle" x=")", decimal(x(time)), R"(" y=")",
           decimal(above + plot_height_ + 19.0), R"(">)", std::to_string(time), "</text>"});
    }
    put({R"(<text class="t" text-anchor="middle" x=")", decimal(left + plot_width_ / 2.0), R"(" y=")",
         decimal(above + plot_height_ + 38.0), R"(">)", xml_text(options_.time_label), "</text>"});
  }

  /// A buffer's rectangle with its tooltip, and its name where there is room; nothing of an empty buffer.
  void draw_buffer(std::size_t i) {
    const buffer_usage& usage = usages_[i];
    if (usage.size == 0) return;
    const double width = static_cast<double>(usage.upper - usage.lower) * per_step_;
    const double height = static_cast<double>(usage.size) * per_byte_;
    const std::string name = name_of(i);
    put({R"(<rect class=")",
         peak_.has[i] != 0 ? "p" : "b",
         R"(" x=")",
         decimal(x(usage.lower)),
         R"(" y=")",
         decimal(y(plan_.offsets[i] + usage.size)),
         R"(" width=")",
         decimal(width),
         R"(" height=")",
         decimal(height),
         R"("><title>)",
         xml_text(name),
         ": steps ",
         std::to_string(usage.lower),
         " to ",
         std::to_string(usage.upper - 1),
         ", offset ",
         std::to_string(plan_.offsets[i]),
         ", ",
         std::to_string(usage.size),
         " bytes</title></rect>"});
    // Seven pixels a letter is wide enough for a sans-serif of 11 pixels.
    const auto letters = static_cast<std::size_t>(std::max(0.0, (width - 8.0) / 7.0));
    if (height < 13.0 || letters < std::min<std::size_t>(name.size(), 7)) return;
    const std::string label = name.size() <= letters ? name : name.substr(0, letters - 2) + "..";
    put({R"(<text class=")", peak_.has[i] != 0 ? "w" : "n", R"(" font-size="11" x=")", decimal(x(usage.lower) + 4.0),
         R"(" y=")", decimal(y(plan_.offsets[i] + usage.size) + height / 2.0 + 4.0), R"(">)", xml_text(label),
         "</text>"});
  }

  /// The lines of the two axes.
  void draw_frame() {
    put({R"(<path class="a" fill="none" d="M)", decimal(left), " ", decimal(above), "V", decimal(above + plot_height_),
         "H", decimal(left + plot_width_), R"("/>)"});
  }

  /// A dashed line across the drawing with its text on the right, `shift` pixels below the line.
  void draw_level(std::int64_t bytes, std::string_view colour, std::string_view dashes, std::string_view text,
                  double shift) {
    put({R"(<line x1=")",
         decimal(left),
         R"(" x2=")",
         decimal(left + plot_width_),
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
         decimal(left + plot_width_ + 6.0),
         R"(" y=")",
         decimal(y(bytes) + shift),
         R"(">)",
         text,
         "</text>"});
  }

  /// The levels of the arena and of the bound; one where they are the same.
  void draw_levels() {
    const bool apart = plan_.bytes != plan_.lower_bound;
    if (apart) draw_level(plan_.bytes, "#333333", "2 3", "arena " + readable_bytes(plan_.bytes), -2.0);
    draw_level(plan_.lower_bound, "#c0392b", "7 4",
               (apart ? "bound " : "arena = bound ") + readable_bytes(plan_.lower_bound), apart ? 12.0 : -4.0);
  }

  /// The times of the peak as a band over the drawing. Precondition: some buffer is alive at the peak.
  void mark_peak() {
    put({R"(<rect x=")", decimal(x(peak_.begin)), R"(" y=")", decimal(above), R"(" width=")",
         decimal(std::max(1.0, static_cast<double>(peak_.end - peak_.begin) * per_step_)), R"(" height=")",
         decimal(plot_height_), R"(" fill="#c0392b" opacity="0.12" pointer-events="none"/>)"});
  }

  /// The peak's largest buffers under the drawing, in columns. Precondition: some buffer is alive at the peak.
  void list_peak() {
    const std::vector<std::size_t>& peak = peak_.buffers;
    put({R"(<text class="t" font-weight="bold" x=")", decimal(left), R"(" y=")", decimal(options_.height + 16.0),
         R"(">The peak at )", xml_text(options_.time_label), " ", std::to_string(peak_.begin), ": ",
         std::to_string(peak.size()), " buffers",
         peak.size() > listed_ ? ", the largest " + std::to_string(listed_) : "", "</text>"});
    for (std::size_t k = 0; k < listed_; ++k) {
      const double column = (options_.width - left) / static_cast<double>(columns);
      const auto letters = static_cast<std::size_t>(std::max(12.0, column / 7.0 - 14.0));
      std::string name = name_of(peak[k]);
      if (name.size() > letters) name = name.substr(0, letters - 2) + "..";
      put({R"(<text class="t" x=")", decimal(left + column * static_cast<double>(k / rows_)), R"(" y=")",
           decimal(options_.height + 38.0 + 18.0 * static_cast<double>(k % rows_)), R"(">)", xml_text(name), ", ",
           readable_bytes(usages_[peak[k]].size), "</text>"});
    }
  }

  std::span<const buffer_usage> usages_;
  const offset_plan& plan_;
  const svg_options& options_;
  time_range times_;
  memory_peak peak_;
  std::size_t listed_;  // of the peak's buffers
  std::size_t rows_;    // of their list
  double plot_width_;
  double plot_height_;
  std::int64_t most_bytes_;
  double per_step_;
  double per_byte_;
  std::string svg_;
};

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
  return detail::memory_drawing(usages, plan, options).draw();
}

}  // namespace dnnopt::memory

#endif  // DNNOPT_MEMORY_MEMORY_SVG_HPP

// Owns the contract of a hand-written kernel: the parameters that its text reads, and whether those that it is given
// fit.
#ifndef DNNOPT_BACKEND_CODEGEN_BUILDER_FRAME_HPP
#define DNNOPT_BACKEND_CODEGEN_BUILDER_FRAME_HPP

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace dnnopt::codegen {

/// Who settles a frame's parameter.
enum class parameter_source : std::uint8_t {
  site,    ///< the block: extents, attributes, pieces of source
  chosen,  ///< the family's chooser (choice::sizes)
  tuned    ///< the family's chooser, or a tuner (tuning_spaces)
};

/// The bound of a number that has none of its own.
inline constexpr std::int64_t no_bound = std::numeric_limits<std::int64_t>::max();

/// A macro that a frame's text reads: a number within bounds, or a piece of source.
struct frame_parameter {
  std::string_view name;       ///< with "DNNOPT_"
  std::string_view arguments;  ///< "(a, x)" of a macro that has some
  std::string_view meaning;    ///< one line for people
  bool is_number = false;
  std::int64_t low = 0;  ///< of a number
  std::int64_t high = no_bound;
  parameter_source source = parameter_source::site;
  bool is_optional = false;
  std::string_view fallback{};  ///< what it is where it is optional and not given

  /// The same parameter, which need not be given.
  [[nodiscard]] constexpr frame_parameter otherwise(std::string_view value) const {
    frame_parameter made = *this;
    made.is_optional = true;
    made.fallback = value;
    return made;
  }
};

/// A number that the site gives.
[[nodiscard]] constexpr frame_parameter site_number(std::string_view name, std::int64_t low, std::int64_t high,
                                                    std::string_view meaning) {
  return {name, {}, meaning, true, low, high};
}
/// An extent, stride or distance that the site gives.
[[nodiscard]] constexpr frame_parameter site_extent(std::string_view name, std::string_view meaning) {
  return site_number(name, 0, no_bound, meaning);
}
/// A yes or no that the site gives; no where it does not.
[[nodiscard]] constexpr frame_parameter site_flag(std::string_view name, std::string_view meaning) {
  return site_number(name, 0, 1, meaning).otherwise("0");
}
/// A piece of source that the site gives.
[[nodiscard]] constexpr frame_parameter site_text(std::string_view name, std::string_view meaning) {
  return {name, {}, meaning};
}
/// A macro with arguments that the site gives.
[[nodiscard]] constexpr frame_parameter site_macro(std::string_view name, std::string_view arguments,
                                                   std::string_view meaning) {
  return {name, arguments, meaning};
}
/// A number that the family's chooser settles.
[[nodiscard]] constexpr frame_parameter chosen_number(std::string_view name, std::int64_t low, std::int64_t high,
                                                      std::string_view meaning) {
  return {name, {}, meaning, true, low, high, parameter_source::chosen};
}
/// A number that the family's chooser or a tuner settles.
[[nodiscard]] constexpr frame_parameter tuned_number(std::string_view name, std::int64_t low, std::int64_t high,
                                                     std::string_view meaning) {
  return {name, {}, meaning, true, low, high, parameter_source::tuned};
}

/// Tables of parameters as one.
template <std::size_t... Sizes>
[[nodiscard]] constexpr auto joined(const std::array<frame_parameter, Sizes>&... tables) {
  std::array<frame_parameter, (Sizes + ...)> made{};
  std::size_t at = 0;
  const auto append = [&](const auto& table) {
    for (const frame_parameter& one : table) made[at++] = one;
  };
  (append(tables), ...);
  return made;
}

/// What the builder itself defines for every frame, and what a frame's text may read besides its own parameters.
inline constexpr std::array<std::string_view, 8> parameters_of_all_frames{
    "DNNOPT_PARAMETERS",    "DNNOPT_KERNEL_PARAMETERS", "DNNOPT_ARGUMENTS", "DNNOPT_EPILOGUE",
    "DNNOPT_EPILOGUE_REAL", "DNNOPT_EPILOGUE4",         "DNNOPT_FINISHED4", "DNNOPT_ROUNDED_DIVISION"};

/// A hand-written kernel.
struct kernel_frame {
  std::string_view name;  ///< of its file, without ".cl"
  std::string_view text;
  std::span<const frame_parameter> parameters;

  /// The parameter of that name; null where the frame has none.
  [[nodiscard]] constexpr const frame_parameter* find(std::string_view parameter) const noexcept {
    for (const frame_parameter& one : parameters)
      if (one.name == parameter) return &one;
    return nullptr;
  }
  /// The parameter that a choice's size of that name settles; null where it settles the launch alone.
  [[nodiscard]] constexpr const frame_parameter* find_size(std::string_view size) const noexcept {
    constexpr std::string_view prefix = "DNNOPT_";
    const auto lowered = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; };
    for (const frame_parameter& one : parameters) {
      const std::string_view own = one.name.substr(prefix.size());
      if (std::equal(own.begin(), own.end(), size.begin(), size.end(), [&](char a, char b) { return lowered(a) == b; }))
        return &one;
    }
    return nullptr;
  }
};

/// A macro as it was given: its name without arguments, and its value.
using given_parameter = std::pair<std::string, std::string>;

/// What is wrong with the macros that a frame was given: one that it does not know, one that it needs and did not get,
/// one that was given twice, and a number out of its range. One line each; empty where all fit.
[[nodiscard]] inline std::vector<std::string> faults_of(const kernel_frame& frame,
                                                        std::span<const given_parameter> given) {
  std::vector<std::string> faults;
  const auto fault = [&](std::string_view parameter, std::string_view what) {
    faults.push_back("frame " + std::string(frame.name) + ": " + std::string(parameter) + " " + std::string(what));
  };
  const auto of_all = [](std::string_view name) {
    return std::find(parameters_of_all_frames.begin(), parameters_of_all_frames.end(), name) !=
           parameters_of_all_frames.end();
  };
  std::vector<bool> present(frame.parameters.size(), false);
  for (const auto& [name, value] : given) {
    if (of_all(name)) continue;
    const frame_parameter* const own = frame.find(name);
    if (own == nullptr) {
      fault(name, "is no parameter of it");
      continue;
    }
    const auto at = static_cast<std::size_t>(own - frame.parameters.data());
    if (present[at]) fault(name, "is given twice");
    present[at] = true;
    std::int64_t number = 0;
    const char* const end = value.data() + value.size();
    // What is no literal depends on the symbols, which only a run knows.
    const auto read = std::from_chars(value.data(), end, number);
    if (own->is_number && read.ec == std::errc() && read.ptr == end && (number < own->low || number > own->high))
      fault(name, "is " + value + ", not " + std::to_string(own->low) + " to " + std::to_string(own->high));
  }
  for (std::size_t i = 0; i < frame.parameters.size(); ++i)
    if (!present[i] && !frame.parameters[i].is_optional) fault(frame.parameters[i].name, "is not given");
  return faults;
}

}  // namespace dnnopt::codegen

#endif  // DNNOPT_BACKEND_CODEGEN_BUILDER_FRAME_HPP

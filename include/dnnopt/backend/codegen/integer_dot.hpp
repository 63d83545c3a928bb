// Owns the dot products of bytes that kernels may be written over: which instructions of a processor multiply four
// pairs of bytes and add them up, and the OpenCL C text that asks for them.
//
// A row of the table below is one way to reach such an instruction. Which rows work on a device is a fact that
// backend/measure/facts/dot_facts.hpp finds out; kernels ask for a dot product, never for a vendor.
#ifndef DNNOPT_BACKEND_CODEGEN_INTEGER_DOT_HPP
#define DNNOPT_BACKEND_CODEGEN_INTEGER_DOT_HPP

#include <array>
#include <string>
#include <string_view>

namespace dnnopt::kernels {

inline constexpr std::string_view dot_plain =
    "#ifdef __cplusplus\n"
#include <dnnopt/backend/codegen/frames/dots/dot_plain.cl>
    "#endif\n";

inline constexpr std::string_view dot_vnni =
    "#ifdef __cplusplus\n"
#include <dnnopt/backend/codegen/frames/dots/dot_vnni.cl>
    "#endif\n";

}  // namespace dnnopt::kernels

namespace dnnopt::codegen {

/// A provider of dot products of bytes (dot_plain.cl says what its text defines).
struct integer_dot {
  std::string_view name;
  std::string_view text;
  /// What a processor must have: a name that the host's own processor can be asked for, for a device that is the host's
  /// processor. Empty: every device.
  std::string_view feature{};
  /// Whether a dot product costs less than the four products of floats that it takes the place of.
  bool pays = true;
};

/// All providers, the best first. The last one is plain OpenCL C: it runs everywhere, and tests hold the others against
/// it.
inline constexpr std::array integer_dot_table{
    integer_dot{"vnni", kernels::dot_vnni, "avx512vnni"},
    integer_dot{"plain", kernels::dot_plain, "", false},
};

inline constexpr const integer_dot& plain_dot = integer_dot_table.back();

/// The provider of a name, or null.
[[nodiscard]] constexpr const integer_dot* find_integer_dot(std::string_view name) noexcept {
  for (const integer_dot& dot : integer_dot_table)
    if (dot.name == name) return &dot;
  return nullptr;
}

/// The names of all providers, each after `separator`.
[[nodiscard]] inline std::string integer_dot_names(std::string_view separator) {
  std::string names;
  for (const integer_dot& dot : integer_dot_table) names += std::string(separator) + std::string(dot.name);
  return names;
}

}  // namespace dnnopt::codegen

#endif  // DNNOPT_BACKEND_CODEGEN_INTEGER_DOT_HPP

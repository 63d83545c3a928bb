// Owns the library's version; CMake reads the same three numbers from here.
#ifndef DNNOPT_VERSION_HPP
#define DNNOPT_VERSION_HPP

#define DNNOPT_VERSION_MAJOR 0
#define DNNOPT_VERSION_MINOR 1
#define DNNOPT_VERSION_PATCH 0

namespace dnnopt {

/// The version as three numbers, ordered as in semantic versioning.
struct version_number {
  int major_number;
  int minor_number;
  int patch_number;
};

/// The version of the headers that this translation unit was compiled with.
inline constexpr version_number version{DNNOPT_VERSION_MAJOR, DNNOPT_VERSION_MINOR, DNNOPT_VERSION_PATCH};

}  // namespace dnnopt

#endif  // DNNOPT_VERSION_HPP

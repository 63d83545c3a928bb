// Owns what a tuner may choose: the parameters of each kernel family, and the table of what was chosen by shape class.
#ifndef DNNOPT_BACKEND_CODEGEN_TUNING_HPP
#define DNNOPT_BACKEND_CODEGEN_TUNING_HPP

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dnnopt/error.hpp>
#include <dnnopt/index_expr.hpp>

namespace dnnopt::codegen {

/// One parameter of a kernel family and the values that a tuner tries.
struct tunable_parameter {
  std::string_view name;
  std::array<std::int64_t, 17> values{};
  std::size_t count = 0;

  [[nodiscard]] constexpr std::span<const std::int64_t> choices() const noexcept { return {values.data(), count}; }
};

/// A kernel family and its parameters, in the order in which a table's rows hold their values.
struct tuning_space {
  std::string_view family;
  std::array<tunable_parameter, 6> parameters{};
  std::size_t count = 0;

  [[nodiscard]] constexpr std::span<const tunable_parameter> choices() const noexcept {
    return {parameters.data(), count};
  }
};

/// Every family that has parameters. Values that do not fit a shape or a device leave the default choice in place.
inline constexpr std::array tuning_spaces{
    tuning_space{"matrix_tiles",
                 {tunable_parameter{"tile", {0, 1, 2, 3, 4, 5, 6, 7}, 8},
                  tunable_parameter{"splits", {1, 2, 3, 4, 6, 8, 12, 16}, 8}, tunable_parameter{"teams", {1, 2, 4}, 3}},
                 3},
    tuning_space{"matrix_steps",
                 {tunable_parameter{"tile", {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}, 17},
                  tunable_parameter{"splits", {1, 2, 3, 4, 6, 8, 12, 16}, 8}},
                 2},
    // The rows of the same table that are of floats.
    tuning_space{"float_steps",
                 {tunable_parameter{"tile", {17, 18, 19, 20, 21, 22}, 6},
                  tunable_parameter{"splits", {1, 2, 3, 4, 6, 8, 12, 16}, 8}},
                 2},
    // And those of bytes.
    tuning_space{"byte_steps",
                 {tunable_parameter{"tile", {23, 24, 25, 26, 27, 28, 29, 30}, 8},
                  tunable_parameter{"splits", {1, 2, 3, 4, 6, 8, 12, 16}, 8}},
                 2},
    tuning_space{"matrix_panels",
                 {tunable_parameter{"rows", {1, 2, 4, 6, 8, 12}, 6}, tunable_parameter{"vectors", {1, 2, 3, 4}, 4},
                  tunable_parameter{"block_rows", {24, 48, 96, 192, 384, 768}, 6},
                  tunable_parameter{"block_columns", {32, 64, 128, 256, 512}, 5},
                  tunable_parameter{"block_inner", {64, 128, 256, 512, 1024}, 5}},
                 5},
    tuning_space{"convolution_shifts",
                 {tunable_parameter{"rows", {1, 2, 4, 6, 8, 12}, 6}, tunable_parameter{"vectors", {1, 2, 3, 4}, 4},
                  tunable_parameter{"block_rows", {24, 48, 96, 192, 384, 768}, 6},
                  tunable_parameter{"block_columns", {32, 64, 128, 256, 512, 1024}, 6},
                  tunable_parameter{"staging", {0, 1, 2}, 3}},
                 5},
    // Tiles of 0 are convolution_shifts; where Winograd's tiles are taken, `rows` counts tiles and `vectors` output
    // channels.
    tuning_space{
        "convolution_winograd",
        {tunable_parameter{"tile", {0, 2, 4}, 3}, tunable_parameter{"rows", {1, 2, 4, 6, 8, 12}, 6},
         tunable_parameter{"vectors", {1, 2, 3, 4}, 4}, tunable_parameter{"block_rows", {24, 48, 96, 192, 384, 768}, 6},
         tunable_parameter{"block_columns", {32, 64, 128, 256, 512, 1024}, 6},
         tunable_parameter{"staging", {0, 1, 2}, 3}},
        6},
    tuning_space{"window_planes",
                 {tunable_parameter{"rows", {1, 2, 4, 8, 16, 32, 64}, 7},
                  tunable_parameter{"planes", {1, 2, 4, 8, 16}, 5}, tunable_parameter{"unroll", {1, 2, 3, 4, 6}, 5}},
                 3},
    tuning_space{"row_groups",
                 {tunable_parameter{"group", {8, 16, 32, 64, 128, 256}, 6},
                  tunable_parameter{"group_rows", {1, 2, 4, 8, 16, 32}, 6}, tunable_parameter{"vector", {1, 4}, 2}},
                 3},
    tuning_space{"row_items", {tunable_parameter{"rows_per_item", {1, 2, 4, 8, 16, 64}, 6}}, 1},
    tuning_space{
        "attention_tiles", {tunable_parameter{"rows", {16, 32}, 2}, tunable_parameter{"splits", {1, 2, 3, 4}, 4}}, 2},
    tuning_space{
        "attention_steps", {tunable_parameter{"waves", {1, 2, 4}, 3}, tunable_parameter{"keys", {32, 64}, 2}}, 2},
    tuning_space{"attention_items",
                 {tunable_parameter{"queries", {12, 24, 48, 96}, 4}, tunable_parameter{"keys", {32, 64, 128, 256}, 4}},
                 2},
};

[[nodiscard]] constexpr const tuning_space* find_tuning_space(std::string_view family) noexcept {
  for (const tuning_space& space : tuning_spaces)
    if (space.family == family) return &space;
  return nullptr;
}

/// The name of a shape class: the family, then extents, "s" for those that are not known before execution.
[[nodiscard]] inline std::string shape_class(std::string_view family, std::span<const index_expr> extents) {
  std::string text(family);
  for (const index_expr& e : extents) text += e.is_constant() ? " " + std::to_string(e.constant()) : std::string(" s");
  return text;
}

/// Values by shape class, each row as many as the family has parameters.
class tuning_table {
 public:
  /// Errors: invalid_argument where the family (the text before the first space) is unknown, or values are not among
  /// its choices.
  void set(std::string_view shape, std::vector<std::int64_t> values) {
    const tuning_space* space = find_tuning_space(shape.substr(0, shape.find(' ')));
    if (space == nullptr) throw error(errc::invalid_argument, "no kernel family tunes '" + std::string(shape) + "'");
    bool known = values.size() == space->count;
    for (std::size_t i = 0; known && i < values.size(); ++i) {
      const std::span<const std::int64_t> choices = space->parameters[i].choices();
      known = std::find(choices.begin(), choices.end(), values[i]) != choices.end();
    }
    if (!known)
      throw error(errc::invalid_argument,
                  "values of '" + std::string(shape) + "' are not among the choices of " + std::string(space->family));
    rows_.insert_or_assign(std::string(shape), std::move(values));
  }
  void erase(std::string_view shape) {
    if (const auto found = rows_.find(shape); found != rows_.end()) rows_.erase(found);
  }
  /// The values of a shape class; null where it is not tuned.
  [[nodiscard]] const std::vector<std::int64_t>* find(std::string_view shape) const {
    const auto found = rows_.find(shape);
    return found == rows_.end() ? nullptr : &found->second;
  }
  [[nodiscard]] const std::map<std::string, std::vector<std::int64_t>, std::less<>>& rows() const noexcept {
    return rows_;
  }

 private:
  std::map<std::string, std::vector<std::int64_t>, std::less<>> rows_;
};

}  // namespace dnnopt::codegen

#endif  // DNNOPT_BACKEND_CODEGEN_TUNING_HPP

// Owns how the positions of a convolution are counted along the rows of a staged image (convolution_shifts.cl),
// and what of the image a block stages.
#ifndef DNNOPT_BACKEND_CODEGEN_FRAMES_CONVOLUTIONS_STAGED_SHIFTED_IMAGE_HPP
#define DNNOPT_BACKEND_CODEGEN_FRAMES_CONVOLUTIONS_STAGED_SHIFTED_IMAGE_HPP

#include <algorithm>
#include <array>
#include <cstdint>
#include <numeric>
#include <optional>
#include <utility>

#include <dnnopt/backend/codegen/frames/convolutions/convolution_shape.hpp>
#include <dnnopt/backend/codegen/frames/windows/window_totals.hpp>

namespace dnnopt::codegen {

/// Where the elements that a window reads are staged, and how positions count along rows. There are three ways to have
/// little between the end of a row of positions and the start of the next, where results are computed and not stored:
/// rows follow one another as they are staged (what columns of the window read beyond a row lies between), rows begin
/// with a vector of their own, or each column of the window is staged apart, in rows as long as the result's.
struct shifted_image {
  bool columns_apart = false;
  std::int64_t row_vectors = 0;  ///< of a row of positions that begins with a vector; 0: rows follow one another
  std::int64_t row_columns = 1;  ///< positions from a row to the next
  std::int64_t pitch = 1;        ///< elements of a staged row
  std::int64_t rows = 1;         ///< of positions, up to the last that is stored
  std::int64_t positions = 1;    ///< up to the last that is stored, plus one
  std::int64_t reach = 0;        ///< what the last window element is shifted by
  std::int64_t phases = 1;       ///< planes that a channel is staged in
  bool strided = false;          ///< neighbours that are staged are no neighbours in the image
};

/// Positions that are stored; nothing where extents are not known or the result is empty.
[[nodiscard]] inline std::optional<std::int64_t> useful_positions(const convolution_shape& c) {
  std::int64_t useful = 1;
  for (const window_axis& a : c.axes) {
    if (!a.output.is_constant() || !a.input.is_constant() || !a.pad_begin.is_constant() || a.output.constant() < 1)
      return std::nullopt;
    useful *= a.output.constant();
  }
  if (!c.channels.is_constant() || !c.outputs.is_constant()) return std::nullopt;
  return useful;
}

/// A convolution whose extents are numbers as it is; of one whose image only a run tells, with a usual image that the
/// symbols' ranges allow: what depends on extents is chosen for that one. Nothing where the padding is not known or the
/// result is empty.
[[nodiscard]] inline std::optional<convolution_shape> with_usual_image(convolution_shape c) {
  constexpr std::int64_t usual = 56;
  if (!c.batch.is_constant()) c.batch = std::clamp<std::int64_t>(1, c.batch.range().low, c.batch.range().high);
  for (window_axis& a : c.axes) {
    if (!a.pad_begin.is_constant()) return std::nullopt;
    if (!a.output.is_constant()) {
      const expr_range r = a.output.range();
      a.output = std::clamp(usual, std::max<std::int64_t>(r.low, 1), std::max<std::int64_t>(r.high, 1));
    }
    if (!a.input.is_constant()) a.input = a.output * a.stride;
  }
  return useful_positions(c) ? std::optional(std::move(c)) : std::nullopt;
}

/// Rows that follow one another, or that begin with one of `row_vectors` vectors of `vector` elements if that is not 0.
/// Preconditions: useful_positions gives a number.
[[nodiscard]] inline shifted_image shifted_image_of(const convolution_shape& c, bool columns_apart,
                                                    std::int64_t row_vectors, std::int64_t vector) {
  const auto& [depth, height, width] = c.axes;
  const auto shifts = [](const window_axis& a) { return (a.extent() - 1) / a.stride; };
  const auto phases = [](const window_axis& a) { return a.kernel > 1 ? a.stride : 1; };
  const std::int64_t across = columns_apart ? 0 : shifts(width);
  shifted_image s;
  s.columns_apart = columns_apart;
  s.row_vectors = row_vectors;
  s.pitch = width.output.constant() + across;
  s.row_columns = row_vectors > 0 ? row_vectors * vector : s.pitch;
  const std::int64_t plane_rows = height.output.constant() + shifts(height);
  s.rows = (depth.output.constant() - 1) * plane_rows + height.output.constant();
  s.positions = (s.rows - 1) * s.row_columns + width.output.constant();
  s.reach = (shifts(depth) * plane_rows + shifts(height)) * s.pitch + across;
  s.phases = phases(depth) * phases(height) * (columns_apart ? width.kernel : phases(width));
  s.strided = width.stride > 1;
  return s;
}

/// The three ways to stage, in the order of shifted_image's description, which a tuner numbers from 0. Preconditions as
/// for shifted_image_of.
[[nodiscard]] inline std::array<shifted_image, 3> shifted_images(const convolution_shape& c, std::int64_t vector) {
  const std::int64_t row_vectors = blocks_of(c.axes[2].output.constant(), vector);
  return {shifted_image_of(c, false, 0, vector), shifted_image_of(c, false, row_vectors, vector),
          shifted_image_of(c, true, 0, vector)};
}

/// What a block has a whole number of: panels, rows of positions, or rows of windows.
struct position_unit {
  std::int64_t positions = 1;
  std::int64_t count = 1;  ///< in all planes of a result
};

[[nodiscard]] inline position_unit position_unit_of(const shifted_image& image, const panel_sizes& p,
                                                    const std::optional<window_total>& windows) {
  if (windows) return {windows->rows * image.row_columns, windows->run_rows};
  if (image.row_vectors == 0) return {p.columns(), blocks_of(image.positions, p.columns())};
  const std::int64_t rows = std::lcm(image.row_vectors, p.vectors) / image.row_vectors;
  return {rows * image.row_columns, blocks_of(image.rows, rows)};
}

/// Elements that a block of `positions` stages per channel, with what fills a vector at the end.
[[nodiscard]] inline std::int64_t staged_elements(const shifted_image& image, const panel_sizes& p,
                                                  std::int64_t positions) {
  const std::int64_t end = image.row_vectors > 0 ? (positions / image.row_columns - 1) * image.pitch + image.row_columns
                                                 : round_up(positions, p.columns());
  return image.phases * (end + image.reach + p.vector);
}

}  // namespace dnnopt::codegen

#endif  // DNNOPT_BACKEND_CODEGEN_FRAMES_CONVOLUTIONS_STAGED_SHIFTED_IMAGE_HPP

// Owns the finding out of which matrix steps work on a device, and the small file that keeps it per device and driver.
#ifndef DNNOPT_BACKEND_MEASURE_FACTS_STEP_FACTS_HPP
#define DNNOPT_BACKEND_MEASURE_FACTS_STEP_FACTS_HPP

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dnnopt/backend/codegen/frames/sources.hpp>
#include <dnnopt/backend/codegen/frames/steps/parameters.hpp>
#include <dnnopt/backend/codegen/matrix_step.hpp>
#include <dnnopt/backend/measure/facts/identified_file.hpp>
#include <dnnopt/backend/opencl/context.hpp>
#include <dnnopt/backend/opencl/kernel_launch.hpp>
#include <dnnopt/backend/opencl/program_cache.hpp>
#include <dnnopt/small_float.hpp>

namespace dnnopt::opencl {

namespace detail {

/// One wave copies four matrices of 16 rows or columns by a step's inner elements, the first chunk by chunk, the others
/// in narrower pieces too, zeros at the end of the last, holds its shares of them along and across lines, and
/// multiplies two by two. What it holds and sums is stored. Steps of bytes know no lines across.
inline constexpr std::string_view step_probe = R"CLC(
#ifdef DNNOPT_STEP_BYTES
#define DNNOPT_ACROSS_LINE 2
#define dnnopt_step_a_across dnnopt_step_a
#define dnnopt_step_b_across dnnopt_step_b
#else
#define DNNOPT_ACROSS_LINE (16 / DNNOPT_CHUNK_ELEMENTS)
#define dnnopt_sum float
#endif
#define DNNOPT_MATRIX (32 * DNNOPT_CHUNK_ELEMENTS)
#define DNNOPT_COPY_PIECES(matrix, chunk_of, line_chunks, width, count)                                              \
  for (int i = lane; i < DNNOPT_MATRIX / (width); i += 32) {                                                        \
    const int at = i * (width);                                                                                     \
    const int chunk = at / DNNOPT_CHUNK_ELEMENTS;                                                                   \
    const int place = chunk_of(chunk / (line_chunks), chunk % (line_chunks), line_chunks) * DNNOPT_CHUNK_ELEMENTS + \
                      at % DNNOPT_CHUNK_ELEMENTS;                                                                   \
    dnnopt_copy(tiles, (matrix) * DNNOPT_MATRIX + place, from + (matrix) * DNNOPT_MATRIX + at, width, i < (count)); \
  }
__kernel __attribute__((reqd_work_group_size(32, 1, 1))) void dnnopt_probe(__global const dnnopt_element* restrict from, __global uint4* restrict shares, __global dnnopt_sum* restrict sums) {
  __local uint4 memory[128];
#if DNNOPT_STEP_EXCHANGES
  __local uint4 exchange[32 * 4];
#endif
  const int item = (int)get_local_id(0);
  const int lane = item;
  dnnopt_tiles tiles = dnnopt_tiles_at(memory);
  DNNOPT_COPY_PIECES(0, dnnopt_chunk, 2, DNNOPT_CHUNK_ELEMENTS, 32)
  dnnopt_end_copies();
  DNNOPT_COPY_PIECES(1, dnnopt_chunk_across, DNNOPT_ACROSS_LINE, DNNOPT_CHUNK_ELEMENTS / 2, 64)
  DNNOPT_COPY_PIECES(2, dnnopt_chunk, 2, DNNOPT_CHUNK_ELEMENTS / 4, 128)
  dnnopt_end_copies();
  DNNOPT_COPY_PIECES(3, dnnopt_chunk_across, DNNOPT_ACROSS_LINE, DNNOPT_CHUNK_ELEMENTS, 29)
  dnnopt_end_copies();
  dnnopt_await_copies(0);
  barrier(CLK_LOCAL_MEM_FENCE);
  uint4 a[2];
  uint4 b[2];
  a[0] = dnnopt_step_a(tiles, 0, 0, 0, 2, lane);
  a[1] = dnnopt_step_a_across(tiles, 32, 0, 0, DNNOPT_ACROSS_LINE, lane);
  b[0] = dnnopt_step_b(tiles, 64, 0, 0, 2, lane);
  b[1] = dnnopt_step_b_across(tiles, 96, 0, 0, DNNOPT_ACROSS_LINE, lane);
  dnnopt_sum sum[2][2][8];
  for (int i = 0; i < 2; ++i)
    for (int j = 0; j < 2; ++j)
      for (int s = 0; s < 8; ++s) sum[i][j][s] = (dnnopt_sum)(i + 2 * j - s);
#ifdef DNNOPT_STEP_CUTS
  float (*const parts)[2][2][8] = &sum;
  DNNOPT_MULTIPLY_STEPS(parts, a, b, 2, 2)
#else
  DNNOPT_MULTIPLY_STEPS(sum, a, b, 2, 2)
#endif
  for (int i = 0; i < 2; ++i) {
    shares[lane * 4 + i] = a[i];
    shares[lane * 4 + 2 + i] = b[i];
  }
  for (int i = 0; i < 2; ++i)
    for (int j = 0; j < 2; ++j)
      for (int s = 0; s < 8; ++s) sums[((lane * 2 + i) * 2 + j) * 8 + s] = sum[i][j][s];
}
)CLC";

/// What the probe of steps reads: whole numbers, so that every sum is exact in whatever order it is taken. Of floats
/// one of each product's factors, a's at even inner elements and b's at odd ones, has more bits than tf32, unless
/// operands are rounded to fewer.
[[nodiscard]] inline std::vector<std::byte> probed_elements(const codegen::matrix_step& step) {
  const auto count = static_cast<std::size_t>(4 * 16 * step.inner);
  const auto small = [](std::size_t i) { return static_cast<float>(static_cast<int>(i * i * 7 % 23) - 11); };
  std::vector<std::byte> bytes(count * static_cast<std::size_t>(step.element_bytes()));
  if (step.operands == dtype::int8) {
    for (std::size_t i = 0; i < count; ++i) bytes[i] = static_cast<std::byte>(i * i * 7 % 251);
    return bytes;
  }
  if (step.operands == dtype::float16) {
    std::vector<float16> halves(count);
    for (std::size_t i = 0; i < count; ++i) halves[i] = float16(small(i));
    std::copy_n(std::as_bytes(std::span(halves)).begin(), bytes.size(), bytes.begin());
    return bytes;
  }
  std::vector<float> floats(count);
  const auto inner = static_cast<std::size_t>(step.inner);
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t matrix = i / (16 * inner);
    const std::size_t at = i % (16 * inner);
    const std::size_t k = matrix % 2 == 0 ? at % inner : at / 16;  // the second of each pair lies across
    const bool wide = !step.rounds && k % 2 == matrix / 2;
    floats[i] = wide ? 2051.0f + 2 * small(i) : small(i);
  }
  std::copy_n(std::as_bytes(std::span(floats)).begin(), bytes.size(), bytes.begin());
  return bytes;
}

/// What the probe stores with a provider that gets such elements: shares, then sums. `defines` stand before its text.
/// Errors: those of building and running it.
[[nodiscard]] inline std::vector<std::byte> probed(context& where, const codegen::matrix_step& step,
                                                   std::span<const std::byte> elements, std::string_view defines) {
  program_cache programs(where, {.on_disk = false, .folder = {}});
  const cl::Program program =
      programs.build({"matrix step",
                      std::string(kernels::prelude) + std::string(defines) + std::string(step.places) +
                          std::string(step.text) + std::string(step_probe),
                      ""});
  constexpr std::size_t share_bytes = std::size_t{32} * 4 * 16;
  constexpr std::size_t sum_bytes = std::size_t{32} * 4 * 8 * 4;
  std::vector<std::byte> got(share_bytes + sum_bytes);
  command_queue queue = where.make_queue();
  const device_buffer from = where.memory().allocate(elements.size(), "matrix step");
  const device_buffer shares = where.memory().allocate(share_bytes, "matrix step");
  const device_buffer sums = where.memory().allocate(sum_bytes, "matrix step");
  queue.upload(from, elements, 0, true);
  prepared_launch launch(program, where.where(), "dnnopt_probe");
  launch.set(0, from);
  launch.set(1, shares);
  launch.set(2, sums);
  launch.set_size({1, {32, 1, 1}, {32, 1, 1}});
  launch.enqueue(queue);
  queue.download(shares, std::span(got).first(share_bytes));
  queue.download(sums, std::span(got).subspan(share_bytes));
  queue.finish();
  return got;
}

}  // namespace detail

namespace detail {

/// Around matrix_steps.cl: operands and result in memory of their own, rows or columns one after the other.
inline constexpr std::string_view tile_probe = R"CLC(
#define DNNOPT_PARAMETERS __global const half* b0, __global const half* b1, __global float* b2
#define DNNOPT_KERNEL_PARAMETERS DNNOPT_PARAMETERS
#define DNNOPT_ARGUMENTS b0, b1, b2
#define DNNOPT_A_INNER_FIRST (1 - DNNOPT_ACROSS)
#define DNNOPT_B_INNER_FIRST DNNOPT_ACROSS
#define DNNOPT_A_COPY 8
#define DNNOPT_B_COPY 8
#define DNNOPT_FROM_TILES 1
#define dnnopt_within_half(value) clamp(value, -65504.0f, 65504.0f)
static inline __global const half* dnnopt_address_a(DNNOPT_PARAMETERS, const int z, const int m, const int k) { return b0 + (DNNOPT_ACROSS ? k * DNNOPT_M + m : m * DNNOPT_K + k); }
static inline __global const half* dnnopt_address_b(DNNOPT_PARAMETERS, const int z, const int k, const int n) { return b1 + (DNNOPT_ACROSS ? n * DNNOPT_K + k : k * DNNOPT_N + n); }
static inline void dnnopt_store(DNNOPT_PARAMETERS, const int z, const int m, const int n, float value) { b2[m * DNNOPT_N + n] = value; }
)CLC";

/// Whether products of small matrices, read along and across lines, are exact with a provider of tiles. Errors: those
/// of building and running them.
[[nodiscard]] inline bool multiplies_tiles(context& where, const codegen::matrix_step& step) {
  program_cache programs(where, {.on_disk = false, .folder = {}});
  command_queue queue = where.make_queue();
  constexpr std::size_t m = 144;
  constexpr std::size_t n = 136;
  constexpr std::size_t k = 88;
  std::vector<float16> a(m * k);
  std::vector<float16> b(k * n);
  // Whole numbers, so that every sum is exact in whatever order it is taken.
  for (std::size_t i = 0; i < a.size(); ++i) a[i] = float16(static_cast<float>(static_cast<int>(i * i * 7 % 23) - 11));
  for (std::size_t i = 0; i < b.size(); ++i) b[i] = float16(static_cast<float>(static_cast<int>(i * i * 5 % 19) - 9));
  const device_buffer first = where.memory().allocate(a.size() * 2, "matrix step");
  const device_buffer second = where.memory().allocate(b.size() * 2, "matrix step");
  const device_buffer result = where.memory().allocate(m * n * 4, "matrix step");
  queue.upload(first, std::as_bytes(std::span(a)), 0, true);
  queue.upload(second, std::as_bytes(std::span(b)), 0, true);
  for (const bool across : {false, true}) {
    const codegen::step_tile tile =
        across ? codegen::step_tile{8, 1, 1, 4, 32, 3, true} : codegen::step_tile{4, 1, 1, 8, 64, 2, true};
    std::string defines;
    const auto define = [&](std::string_view name, std::size_t value) {
      defines += "#define DNNOPT_" + std::string(name) + " " + std::to_string(value) + "\n";
    };
    const auto size = [](std::int64_t value) { return static_cast<std::size_t>(value); };
    define("M", m);
    define("N", n);
    define("K", k);
    define("ACROSS", across ? 1 : 0);
    define("WAVE_ROWS", size(tile.wave_rows));
    define("WAVE_COLUMNS", size(tile.wave_columns));
    define("ROW_STEPS", size(tile.row_steps));
    define("COLUMN_STEPS", size(tile.column_steps));
    define("TILE_INNER", size(tile.inner));
    define("STAGES", size(tile.stages));
    const cl::Program program =
        programs.build({"matrix step",
                        std::string(kernels::prelude) + std::string(step.places) + std::string(step.text) + defines +
                            std::string(tile_probe) + std::string(kernels::matrix_steps),
                        std::string(step.options)});
    prepared_launch launch(program, where.where(), "dnnopt_kernel");
    launch.set(0, first);
    launch.set(1, second);
    launch.set(2, result);
    const std::size_t items = size(tile.items(step));
    const std::size_t columns = (n + size(tile.columns(step)) - 1) / size(tile.columns(step));
    const std::size_t rows = (m + size(tile.rows(step)) - 1) / size(tile.rows(step));
    launch.set_size({3, {columns * items, rows, 1}, {items, 1, 1}});
    launch.enqueue(queue);
    std::vector<float> got(m * n);
    queue.download(result, std::as_writable_bytes(std::span(got)));
    queue.finish();
    for (std::size_t i = 0; i < m; ++i)
      for (std::size_t j = 0; j < n; ++j) {
        float want = 0;
        for (std::size_t e = 0; e < k; ++e)
          want += static_cast<float>(a[across ? e * m + i : i * k + e]) *
                  static_cast<float>(b[across ? j * k + e : e * n + j]);
        if (got[i * n + j] != want) return false;
      }
  }
  return true;
}

}  // namespace detail

/// Whether a provider works on the device: its text may be given to the compiler, builds, and does what the plain one
/// of its type does, or gives the products that it should. Builds two small kernels, of bytes eight.
[[nodiscard]] inline bool step_works(context& where, const codegen::matrix_step& step) {
  if (!step.extension.empty() && !where.info().has_extension(step.extension)) return false;
  try {
    if (step.from_tiles()) return detail::multiplies_tiles(where, step);
    const codegen::matrix_step& plain = step.operands == dtype::float32 ? codegen::plain_floats
                                        : step.operands == dtype::int8  ? codegen::plain_bytes
                                                                        : codegen::plain_step;
    const std::vector<std::byte> elements = detail::probed_elements(step);
    const auto alike = [&](std::string_view defines) {
      return detail::probed(where, step, elements, defines) == detail::probed(where, plain, elements, defines);
    };
    if (step.operands != dtype::int8) return alike("");
    // Codes of either sign on either side.
    return alike("#define DNNOPT_A_NATURAL 0\n#define DNNOPT_B_NATURAL 0\n") &&
           alike("#define DNNOPT_A_NATURAL 0\n#define DNNOPT_B_NATURAL 1\n") &&
           alike("#define DNNOPT_A_NATURAL 1\n#define DNNOPT_B_NATURAL 0\n") &&
           alike("#define DNNOPT_A_NATURAL 1\n#define DNNOPT_B_NATURAL 1\n");
  } catch (const error&) {
    return false;
  }
}

/// The best providers of each kind that work on the device, of those that are not plain and round nothing; null where
/// there is none.
[[nodiscard]] inline codegen::step_providers measure_steps(context& where) {
  codegen::step_providers found;
  for (const codegen::matrix_step& step : codegen::matrix_step_table) {
    const codegen::matrix_step*& one = found.place_of(step);
    if (one == nullptr && !is_plain(step) && !step.rounds && step_works(where, step)) one = &step;
  }
  return found;
}

namespace detail {

/// Names of providers, "none" for null, with a space between them; and what such a text names, where it does.
[[nodiscard]] inline std::string text_of(const codegen::step_providers& steps) {
  const auto name = [](const codegen::matrix_step* step) {
    return step == nullptr ? std::string("none") : std::string(step->name);
  };
  return name(steps.of_waves) + " " + name(steps.of_tiles) + " " + name(steps.of_floats) + " " + name(steps.of_bytes);
}

[[nodiscard]] inline std::optional<codegen::step_providers> steps_in(const std::string& text) {
  std::istringstream names(text);
  codegen::step_providers found;
  std::string name;
  for (const codegen::matrix_step** const one : {&found.of_waves, &found.of_tiles, &found.of_floats, &found.of_bytes}) {
    if (!(names >> name)) return std::nullopt;
    *one = codegen::find_matrix_step(name);
    if (*one == nullptr ? name != "none" : &found.place_of(**one) != one) return std::nullopt;
  }
  return names >> name ? std::nullopt : std::optional(found);
}

}  // namespace detail

/// The same from the file in `folder` when it was measured before with the same driver and library version, else
/// measured now and written there. An empty folder, or one that cannot be written, measures each time.
[[nodiscard]] inline codegen::step_providers steps_of(context& where, const std::filesystem::path& folder) {
  const identified_file file(where.info(), folder, "steps", 5);
  if (const auto text = file.read(); text && text->ends_with('\n'))
    if (const auto kept = detail::steps_in(*text)) return *kept;
  const codegen::step_providers found = measure_steps(where);
  file.write(detail::text_of(found) + "\n");
  return found;
}

}  // namespace dnnopt::opencl

#endif  // DNNOPT_BACKEND_MEASURE_FACTS_STEP_FACTS_HPP

// Owns the finding out of which matrix steps work on a device, and the small file that keeps it per device and driver.
#ifndef DNNOPT_BACKEND_MEASURE_STEP_FACTS_HPP
#define DNNOPT_BACKEND_MEASURE_STEP_FACTS_HPP

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <span>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dnnopt/backend/codegen/frames/sources.hpp>
#include <dnnopt/backend/codegen/matrix_step.hpp>
#include <dnnopt/backend/opencl/context.hpp>
#include <dnnopt/backend/opencl/kernel_launch.hpp>
#include <dnnopt/backend/opencl/program_cache.hpp>
#include <dnnopt/small_float.hpp>

namespace dnnopt::opencl {

namespace detail {

/// One wave copies four matrices of 16 x 16 halves in each width, zeros at the end of the last, holds its shares of
/// them along and across lines, and multiplies two by two. What it holds and sums is stored.
inline constexpr std::string_view step_probe = R"CLC(
__kernel __attribute__((reqd_work_group_size(32, 1, 1))) void dnnopt_probe(__global const half* restrict from, __global uint4* restrict shares, __global float* restrict sums) {
  __local uint4 memory[128];
#if DNNOPT_STEP_EXCHANGES
  __local uint4 exchange[32 * 4];
#endif
  const int item = (int)get_local_id(0);
  const int lane = item;
  dnnopt_tiles tiles = dnnopt_tiles_at(memory);
  dnnopt_copy(tiles, dnnopt_chunk(lane / 2, lane % 2, 2) * 8, from + lane * 8, 8, true);
  dnnopt_end_copies();
  for (int i = lane; i < 64; i += 32) dnnopt_copy(tiles, 256 + dnnopt_chunk(i / 4, i % 4 / 2, 2) * 8 + i % 2 * 4, from + 256 + i * 4, 4, true);
  for (int i = lane; i < 128; i += 32) dnnopt_copy(tiles, 512 + dnnopt_chunk(i / 8, i % 8 / 4, 2) * 8 + i % 4 * 2, from + 512 + i * 2, 2, true);
  dnnopt_end_copies();
  dnnopt_copy(tiles, 768 + dnnopt_chunk(lane / 2, lane % 2, 2) * 8, from + 768 + lane * 8, 8, lane < 29);
  dnnopt_end_copies();
  dnnopt_await_copies(0);
  barrier(CLK_LOCAL_MEM_FENCE);
  uint4 a[2];
  uint4 b[2];
  a[0] = dnnopt_step_a(tiles, 0, 0, 0, 2, lane);
  a[1] = dnnopt_step_a_across(tiles, 32, 0, 0, 2, lane);
  b[0] = dnnopt_step_b(tiles, 64, 0, 0, 2, lane);
  b[1] = dnnopt_step_b_across(tiles, 96, 0, 0, 2, lane);
  float sum[2][2][8];
  for (int i = 0; i < 2; ++i)
    for (int j = 0; j < 2; ++j)
      for (int s = 0; s < 8; ++s) sum[i][j][s] = (float)(i + 2 * j - s);
  DNNOPT_MULTIPLY_STEPS(sum, a, b, 2, 2)
  for (int i = 0; i < 2; ++i) {
    shares[lane * 4 + i] = a[i];
    shares[lane * 4 + 2 + i] = b[i];
  }
  for (int i = 0; i < 2; ++i)
    for (int j = 0; j < 2; ++j)
      for (int s = 0; s < 8; ++s) sums[((lane * 2 + i) * 2 + j) * 8 + s] = sum[i][j][s];
}
)CLC";

/// What the probe stores with a provider: shares, then sums. Errors: those of building and running it.
[[nodiscard]] inline std::vector<std::byte> probed(context& where, const codegen::matrix_step& step) {
  program_cache programs(where, {.on_disk = false, .folder = {}});
  const cl::Program program = programs.build(
      {"matrix step",
       std::string(kernels::prelude) + std::string(step.places) + std::string(step.text) + std::string(step_probe),
       ""});
  // Whole numbers, so that every sum is exact in whatever order it is taken.
  std::vector<float16> halves(1024);
  for (std::size_t i = 0; i < halves.size(); ++i)
    halves[i] = float16(static_cast<float>(static_cast<int>(i * i * 7 % 23) - 11));
  constexpr std::size_t share_bytes = std::size_t{32} * 4 * 16;
  constexpr std::size_t sum_bytes = std::size_t{32} * 4 * 8 * 4;
  std::vector<std::byte> got(share_bytes + sum_bytes);
  command_queue queue = where.make_queue();
  const device_buffer from = where.memory().allocate(halves.size() * 2, "matrix step");
  const device_buffer shares = where.memory().allocate(share_bytes, "matrix step");
  const device_buffer sums = where.memory().allocate(sum_bytes, "matrix step");
  queue.upload(from, std::as_bytes(std::span(halves)), 0, true);
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

/// Whether a provider works on the device: its text may be given to the compiler, builds, and does what the plain one
/// does. Builds two small kernels.
[[nodiscard]] inline bool step_works(context& where, const codegen::matrix_step& step) {
  if (!step.extension.empty() && !where.info().has_extension(step.extension)) return false;
  try {
    return detail::probed(where, step) == detail::probed(where, codegen::plain_step);
  } catch (const error&) {
    return false;
  }
}

/// The best provider that multiplies halves on the device; null where only the plain one does.
[[nodiscard]] inline const codegen::matrix_step* measure_half_step(context& where) {
  for (const codegen::matrix_step& step : codegen::matrix_step_table)
    if (&step != &codegen::plain_step && step.operands == dtype::float16 && step_works(where, step)) return &step;
  return nullptr;
}

/// The same from the file in `folder` when it was measured before with the same driver and library version, else
/// measured now and written there. An empty folder, or one that cannot be written, measures each time.
[[nodiscard]] inline const codegen::matrix_step* half_step_of(context& where, const std::filesystem::path& folder) {
  if (folder.empty()) return measure_half_step(where);
  constexpr std::string_view none = "none";
  const std::string identity = program_cache::identity_of(where.info()) + "steps 2\n";
  char name[64];
  std::snprintf(name, sizeof(name), "steps-%016llx.txt", static_cast<unsigned long long>(hash_bytes(identity)));
  const std::filesystem::path path = folder / name;
  {
    std::ifstream in(path, std::ios::binary);
    std::ostringstream text;
    if (in && text << in.rdbuf()) {
      const std::string whole = text.str();
      if (whole.starts_with(identity) && whole.ends_with('\n')) {
        const std::string kept = whole.substr(identity.size(), whole.size() - identity.size() - 1);
        const codegen::matrix_step* step = codegen::find_matrix_step(kept);
        if (kept == none || step != nullptr) return step;
      }
    }
  }
  const codegen::matrix_step* found = measure_half_step(where);
  std::error_code problem;
  std::filesystem::create_directories(folder, problem);
  const std::filesystem::path temporary = path.string() + ".tmp";
  bool whole = false;
  {
    std::ofstream out(temporary, std::ios::binary);
    out << identity << (found == nullptr ? none : found->name) << '\n';
    out.close();
    whole = static_cast<bool>(out);
  }
  if (whole) std::filesystem::rename(temporary, path, problem);
  if (!whole || problem) std::filesystem::remove(temporary, problem);
  return found;
}

}  // namespace dnnopt::opencl

#endif  // DNNOPT_BACKEND_MEASURE_STEP_FACTS_HPP

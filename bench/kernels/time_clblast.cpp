// Times CLBlast's matrix product, found at run time, as a peer of dnnopt's own: time_clblast SPEC REPEATS MxNxK...
//
// A, B and C are row-major fp32 buffers on the device. Each line: MxNxK, the least and the median microseconds of one
// product (REPEATS enqueued one after the other between two finishes), GFLOP/s of the least.
#include <dlfcn.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <stdexcept>
#include <string>
#include <vector>

#include <dnnopt/backend/opencl/context.hpp>

namespace {

using namespace dnnopt;
using steady = std::chrono::steady_clock;

// CLBlast's C interface (clblast_c.h): row-major is 101, no transposition 111.
using sgemm_function = int (*)(int layout, int a_transpose, int b_transpose, std::size_t m, std::size_t n,
                               std::size_t k, float alpha, cl_mem a, std::size_t a_offset, std::size_t a_row, cl_mem b,
                               std::size_t b_offset, std::size_t b_row, float beta, cl_mem c, std::size_t c_offset,
                               std::size_t c_row, cl_command_queue* queue, cl_event* event);

sgemm_function find_sgemm() {
  void* const library = ::dlopen("libclblast.so.1", RTLD_NOW);
  void* const found = library == nullptr ? nullptr : ::dlsym(library, "CLBlastSgemm");
  if (found == nullptr) throw std::runtime_error("libclblast.so.1 (Debian: libclblast1) is not installed");
  return reinterpret_cast<sgemm_function>(found);
}

struct product {
  std::size_t m = 0, n = 0, k = 0;
};

product parse(const std::string& text) {
  product p;
  if (std::sscanf(text.c_str(), "%zux%zux%zu", &p.m, &p.n, &p.k) != 3)
    throw std::invalid_argument("'" + text + "' is not MxNxK");
  return p;
}

void measure(opencl::context& where, opencl::command_queue& queue, sgemm_function sgemm, const product& p,
             int repeats) {
  const auto filled = [&](std::size_t rows, std::size_t columns) {
    opencl::device_buffer made = where.memory().allocate(rows * columns * sizeof(float));
    const std::vector<float> ones(rows * columns, 0.5F);
    queue.upload(made, std::as_bytes(std::span<const float>(ones)), 0, true);
    return made;
  };
  const opencl::device_buffer a = filled(p.m, p.k), b = filled(p.k, p.n), c = filled(p.m, p.n);
  cl_command_queue raw = queue.handle();
  const auto once = [&] {
    const int status = sgemm(101, 111, 111, p.m, p.n, p.k, 1.0F, a.handle(), 0, p.k, b.handle(), 0, p.n, 0.0F,
                             c.handle(), 0, p.n, &raw, nullptr);
    if (status != 0) throw std::runtime_error("CLBlastSgemm returns " + std::to_string(status));
  };
  once();
  queue.finish();
  std::vector<double> times;
  const auto start = steady::now();
  for (int round = 0; round < 9 || (round < 400 && steady::now() - start < std::chrono::milliseconds(400)); ++round) {
    const auto begin = steady::now();
    for (int i = 0; i < repeats; ++i) once();
    queue.finish();
    times.push_back(std::chrono::duration<double, std::micro>(steady::now() - begin).count() / repeats);
  }
  std::sort(times.begin(), times.end());
  const double flops = 2.0 * static_cast<double>(p.m) * static_cast<double>(p.n) * static_cast<double>(p.k);
  std::printf("%zux%zux%zu min %.2f median %.2f us %.1f GFLOP/s\n", p.m, p.n, p.k, times.front(),
              times[times.size() / 2], flops / times.front() * 1e-3);
  std::fflush(stdout);
}

}  // namespace

int main(int count, char** arguments) {
  if (count < 4) {
    std::fprintf(stderr, "time_clblast SPEC REPEATS MxNxK...\n");
    return 2;
  }
  try {
    opencl::context where(opencl::select_device(arguments[1]));
    opencl::command_queue queue = where.make_queue();
    std::printf("%s\n", where.info().name.c_str());
    const sgemm_function sgemm = find_sgemm();
    for (int i = 3; i < count; ++i) measure(where, queue, sgemm, parse(arguments[i]), std::stoi(arguments[2]));
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
  return 0;
}

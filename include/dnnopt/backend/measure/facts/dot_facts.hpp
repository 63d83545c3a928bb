// Owns the finding out of which dot products of bytes work on a device.
#ifndef DNNOPT_BACKEND_MEASURE_FACTS_DOT_FACTS_HPP
#define DNNOPT_BACKEND_MEASURE_FACTS_DOT_FACTS_HPP

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <dnnopt/backend/codegen/frames/sources.hpp>
#include <dnnopt/backend/codegen/integer_dot.hpp>
#include <dnnopt/backend/opencl/context.hpp>
#include <dnnopt/backend/opencl/kernel_launch.hpp>
#include <dnnopt/backend/opencl/program_cache.hpp>

namespace dnnopt::opencl {

namespace detail {

/// Whether the host's processor has a feature, and its system keeps the registers for it. An instruction that a
/// processor lacks ends the process, so it must be asked before.
[[nodiscard]] inline bool host_has(std::string_view feature) {
#if (defined(__x86_64__) || defined(__i386__)) && defined(__GNUC__)
  if (feature == "avx512vnni")
    return __builtin_cpu_supports("avx512vnni") && __builtin_cpu_supports("avx512vl") &&
           __builtin_cpu_supports("avx512f");
#endif
  return feature.empty();
}

inline constexpr std::string_view dot_probe = R"CLC(
__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void dnnopt_probe(__global const int* restrict from, __global int* restrict to) {
  vstore4(dnnopt_dot4(vload4(0, from), vload4(4, from), vload4(8, from)), 0, to);
  vstore8(dnnopt_dot8(vload8(0, from), vload8(2, from), vload8(4, from)), 0, to + 4);
  vstore16(dnnopt_dot16(vload16(0, from), vload16(1, from), vload16(2, from)), 0, to + 12);
}
)CLC";

/// What the probe stores with a provider. Errors: those of building and running it.
[[nodiscard]] inline std::vector<std::int32_t> probed_dots(context& where, program_cache& programs,
                                                           const codegen::integer_dot& dot) {
  const program_request request{"integer dot " + std::string(dot.name),
                                std::string(kernels::prelude) + std::string(dot.text) + std::string(dot_probe), ""};
  const cl::Program program = programs.build(request);
  std::vector<std::int32_t> from(48);
  for (std::size_t i = 0; i < from.size(); ++i)
    from[i] = static_cast<std::int32_t>(static_cast<std::uint32_t>(i) * 2654435761U + 12345U);
  std::vector<std::int32_t> got(28);
  command_queue queue = where.make_queue();
  const device_buffer source = where.memory().allocate(from.size() * 4, "integer dot");
  const device_buffer target = where.memory().allocate(got.size() * 4, "integer dot");
  queue.upload(source, std::as_bytes(std::span(from)), 0, true);
  prepared_launch launch(program, where.where(), "dnnopt_probe");
  launch.set(0, source);
  launch.set(1, target);
  launch.set_size({1, {1, 1, 1}, {1, 1, 1}});
  launch.enqueue(queue);
  queue.download(target, std::as_writable_bytes(std::span(got)));
  queue.finish();
  programs.served({&request, 1});
  return got;
}

}  // namespace detail

/// Whether a provider works on the device: the processor has what it names, where the device is the host's processor
/// and computes in the widest vectors, its text builds, and it does what the plain one does. Builds two small kernels,
/// which `programs` keeps.
[[nodiscard]] inline bool dot_works(context& where, program_cache& programs, const codegen::integer_dot& dot) {
  if (!dot.feature.empty()) {
    const device_info& info = where.info();
    if (info.type != device_type::cpu || info.native_widths.float_width < 16 || !detail::host_has(dot.feature))
      return false;
  }
  try {
    return detail::probed_dots(where, programs, dot) == detail::probed_dots(where, programs, codegen::plain_dot);
  } catch (const error&) {
    return false;
  }
}

/// The best provider that works on the device; the plain one where no other does.
[[nodiscard]] inline const codegen::integer_dot& measure_integer_dot(context& where, program_cache& programs) {
  for (const codegen::integer_dot& dot : codegen::integer_dot_table)
    if (&dot == &codegen::plain_dot || dot_works(where, programs, dot)) return dot;
  return codegen::plain_dot;
}

}  // namespace dnnopt::opencl

#endif  // DNNOPT_BACKEND_MEASURE_FACTS_DOT_FACTS_HPP

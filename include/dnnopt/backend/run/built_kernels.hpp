// Owns the kernels of a program as OpenCL objects: how they are built, given arguments and sized.
#ifndef DNNOPT_BACKEND_RUN_BUILT_KERNELS_HPP
#define DNNOPT_BACKEND_RUN_BUILT_KERNELS_HPP

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dnnopt/backend/codegen/general_texts.hpp>
#include <dnnopt/backend/opencl/command_queue.hpp>
#include <dnnopt/backend/opencl/program_cache.hpp>
#include <dnnopt/backend/opencl/status.hpp>
#include <dnnopt/backend/program/program.hpp>
#include <dnnopt/backend/program/weight_packing.hpp>
#include <dnnopt/backend/run/combine_sources.hpp>

namespace dnnopt {

/// A kernel in a program that is compiled.
struct built_kernel {
  cl::Program program;
  std::string entry;
  std::vector<std::int32_t> numbers{};  ///< int arguments behind those of its plan (general_texts.hpp)

  /// A kernel object of its own. Errors: opencl.
  [[nodiscard]] cl::Kernel make() const {
    cl_int status = CL_SUCCESS;
    cl::Kernel kernel(::clCreateKernel(program(), entry.c_str(), &status), false);
    opencl::check(status, "clCreateKernel", [&] { return entry; });
    return kernel;
  }
};

/// All kernels of a program, by step and number.
struct built_kernels {
  std::vector<std::vector<built_kernel>> launched;  ///< as lowered_node::kernels
  std::vector<std::vector<built_kernel>> prepare;   ///< as lowered_node::prepare
  std::vector<opencl::program_request> requests;    ///< what they were built from
  bool quick = false;                               ///< some were built without the driver's optimizer
};

/// OpenCL's option that leaves the driver's optimizer out.
inline constexpr std::string_view quick_build_option = " -cl-opt-disable";

/// Makes those of the requests whose programs are in no cache quick ones, if `may_be_quick`; whether there are any. One
/// that the driver is noted to have is built first, for where it lost one it lost all. Errors: kernel_build.
[[nodiscard]] inline bool make_quick(opencl::program_cache& programs, std::span<opencl::program_request> requests,
                                     const std::function<bool()>& may_be_quick) {
  const auto has = [&](const opencl::program_request& request) { return programs.has(request); };
  const auto first = std::find_if(requests.begin(), requests.end(), has);
  if (first != requests.end()) (void)programs.build(*first);
  if (std::all_of(requests.begin(), requests.end(), has) || !may_be_quick()) return false;
  for (opencl::program_request& request : requests)
    if (!has(request)) {
      request.options += quick_build_option;
      request.passing = true;
    }
  return true;
}

/// A program's kernels as the joined programs that hold them, before anything is built.
struct kernels_to_build {
  std::vector<const codegen::kernel_plan*> plans;  ///< of all steps, those launched before those that prepare
  std::vector<joined_kernel> places;               ///< by plan
  std::vector<std::vector<std::int32_t>> numbers;  ///< by plan: built_kernel::numbers
  std::vector<opencl::program_request> requests;
  std::size_t packing = 0;  ///< as many of the requests, the first ones, hold what packs much, and are never quick
};

/// Bytes of weights from which on a kernel that packs them takes longer without the driver's optimizer than with it and
/// its optimizer: PoCL packs some 0.2 GB/s in place of 2, and optimizes such a kernel in 0.05 s.
inline constexpr std::uint64_t much_to_pack = std::uint64_t{8} << 20;

/// The kernels of `p`; with `general`, those that differ in numbers alone are one, but for those that pack much.
[[nodiscard]] inline kernels_to_build kernels_of(const program& p, bool general = false) {
  kernels_to_build result;
  std::map<std::string_view, std::uint64_t> packed;  // by text of the kernel
  const symbol_values symbols = symbols_of_packing(*p.g);
  for (const placed_node& step : p.steps) {
    for (const codegen::kernel_plan& plan : step.lowered.kernels) result.plans.push_back(&plan);
    for (const codegen::kernel_plan& plan : step.lowered.prepare) {
      result.plans.push_back(&plan);
      packed[plan.source.str()] += packed_bytes_of(step, symbols) / step.lowered.prepare.size();
    }
  }
  const auto packs_much = [&](const codegen::kernel_plan* plan) {
    const auto held = packed.find(plan->source.str());
    return held != packed.end() && held->second >= much_to_pack;
  };
  std::vector<const codegen::kernel_plan*> ordered = result.plans;
  const auto rest = std::stable_partition(ordered.begin(), ordered.end(), packs_much);
  const auto join = [&](const std::vector<const codegen::kernel_plan*>& plans) {
    joined_programs joined = join_sources(plans);
    for (joined_program& one : joined.programs)
      result.requests.push_back({"kernels of " + p.g->name, std::move(one.source), std::move(one.options)});
    return std::move(joined.kernels);
  };
  const std::vector<joined_kernel> packing = join({ordered.begin(), rest});
  result.packing = result.requests.size();
  std::vector<const codegen::kernel_plan*> others(rest, ordered.end());
  std::vector<codegen::general_text> texts;
  std::vector<codegen::kernel_plan> stand_ins(general ? others.size() : 0);
  if (general) {
    texts = codegen::general_texts(others);
    for (std::size_t i = 0; i < others.size(); ++i) {
      stand_ins[i].source = std::move(texts[i].source);
      stand_ins[i].options = others[i]->options;
      stand_ins[i].entry = others[i]->entry;
      others[i] = &stand_ins[i];
    }
  }
  const std::vector<joined_kernel> joined = join(others);
  std::size_t next_packing = 0;
  std::size_t next = 0;
  for (const codegen::kernel_plan* plan : result.plans) {
    if (packs_much(plan)) {
      result.places.push_back(packing[next_packing++]);
      result.numbers.emplace_back();
      continue;
    }
    result.places.push_back({joined[next].program + result.packing, joined[next].entry});
    result.numbers.push_back(general ? std::move(texts[next].numbers) : std::vector<std::int32_t>());
    ++next;
  }
  return result;
}

/// The kernels by step, out of the `built` programs of the requests.
[[nodiscard]] inline built_kernels kernels_by_step(const program& p, kernels_to_build of,
                                                   const std::vector<cl::Program>& built) {
  built_kernels result;
  std::size_t next = 0;
  const auto take = [&](std::size_t count) {
    std::vector<built_kernel> taken;
    for (; count != 0; --count, ++next)
      taken.push_back({built[of.places[next].program], of.places[next].entry, std::move(of.numbers[next])});
    return taken;
  };
  for (const placed_node& step : p.steps) {
    result.launched.push_back(take(step.lowered.kernels.size()));
    result.prepare.push_back(take(step.lowered.prepare.size()));
  }
  result.requests = std::move(of.requests);
  return result;
}

/// Quick kernels of a program that is in no cache: few, because those that differ in numbers alone are one. Nothing
/// where the driver refuses them, so that the error comes from kernels as they were planned.
[[nodiscard]] inline std::optional<built_kernels> build_general(opencl::program_cache& programs, const program& p) {
  kernels_to_build wanted = kernels_of(p, true);
  for (opencl::program_request& request : std::span(wanted.requests).subspan(wanted.packing)) {
    request.options += quick_build_option;
    request.passing = true;
  }
  try {
    const std::vector<cl::Program> built = programs.build_all(wanted.requests);
    return kernels_by_step(p, std::move(wanted), built);
  } catch (const error& e) {
    if (e.code() != errc::kernel_build) throw;
    return std::nullopt;
  }
}

/// Builds all kernels of a program, joined into few programs and in parallel, from the cache where it has them. Where
/// `may_be_quick` (asked only if a program is in no cache; null: no) says so, programs that are in no cache are built
/// without the driver's optimizer. Where joined ones fail, kernels are built one by one, so that the error names the
/// right one. Errors: kernel_build.
[[nodiscard]] inline built_kernels build_kernels(opencl::program_cache& programs, const program& p,
                                                 const std::function<bool()>& may_be_quick = nullptr) {
  kernels_to_build wanted = kernels_of(p);
  bool quick = false;
  std::vector<cl::Program> built;
  try {
    const auto others = std::span(wanted.requests).subspan(wanted.packing);
    quick = may_be_quick && make_quick(programs, others, may_be_quick);
    if (quick && std::ranges::all_of(others, [](const opencl::program_request& one) { return one.passing; }))
      if (std::optional<built_kernels> general = build_general(programs, p)) {
        general->quick = true;
        return std::move(*general);
      }
    built = programs.build_all(wanted.requests);
  } catch (const error& e) {
    if (e.code() != errc::kernel_build) throw;
    std::vector<opencl::program_request> single;
    for (const codegen::kernel_plan* plan : wanted.plans)
      single.push_back({plan->version, plan->source, plan->options});
    (void)programs.build_all(single);
    throw;
  }
  built_kernels result = kernels_by_step(p, std::move(wanted), built);
  result.quick = quick;
  return result;
}

/// Refuses a run in which a kernel would count more than its int holds. `name` is its node's. Errors: overflow.
inline void check_counts(const codegen::kernel_plan& plan, const std::string& name, const symbol_values& symbols) {
  for (const index_expr& extent : plan.counted)
    if (const std::int64_t count = extent.evaluate(symbols); count > codegen::largest_count)
      throw error(errc::overflow, "node '" + name + "': its kernel counts in 32 bits, and " + to_string(extent) +
                                      " is " + std::to_string(count));
}

/// Sets a kernel's arguments: pointers, each as `memory_of` gives it (an argument_memory), then the parameters' values
/// and the divisors' reciprocals, then `numbers` (built_kernel::numbers). `name` is its node's. Errors: opencl;
/// overflow for a dim beyond the parameter's type, and those of check_counts.
template <class MemoryOf>
void set_arguments(const cl::Kernel& kernel, const codegen::kernel_plan& plan, const std::string& name,
                   const std::vector<std::int32_t>& numbers, const symbol_values& symbols, MemoryOf&& memory_of) {
  check_counts(plan, name, symbols);
  cl_uint argument = 0;
  const auto succeeded = [&](cl_int status) {
    opencl::check(status, "clSetKernelArg",
                  [&] { return "argument " + std::to_string(argument) + " of '" + name + "'"; });
    ++argument;
  };
  const auto set = [&](std::size_t bytes, const void* content) {
    succeeded(::clSetKernelArg(kernel(), argument, bytes, content));
  };
  for (const codegen::pointer_argument& pointer : plan.pointers) succeeded(memory_of(pointer).set(kernel(), argument));
  for (std::size_t i = 0; i < plan.parameters.size(); ++i) {
    const std::int64_t value = plan.parameters[i].evaluate(symbols);
    if (plan.parameter_is_long[i]) {
      const cl_long wide = value;
      set(sizeof wide, &wide);
      continue;
    }
    if (value != static_cast<cl_int>(value))
      throw error(errc::overflow, "node '" + name + "': a dim of " + std::to_string(value) + " exceeds 32 bits");
    const cl_int narrow = static_cast<cl_int>(value);
    set(sizeof narrow, &narrow);
  }
  for (const index_expr& divisor : plan.divisors) {
    const cl_long reciprocal = codegen::reciprocal_of(divisor.evaluate(symbols));
    set(sizeof reciprocal, &reciprocal);
  }
  for (const cl_int number : numbers) set(sizeof number, &number);
}

/// Work-items and work-groups of a launch for the symbols that `plan.bind` gave; an empty size where there is nothing
/// to compute. Where the plan leaves the work-group open, a one-dimensional launch gets the largest power of two below
/// its items and what the kernel object allows; where symbols decide its items it gets one size for all of them, for
/// some drivers (PoCL) compile a kernel anew for each size of work-groups. The rest is the driver's choice. Errors:
/// opencl.
[[nodiscard]] inline opencl::launch_size work_size(const codegen::kernel_plan& plan, const symbol_values& own,
                                                   cl_kernel kernel, cl_device_id device) {
  constexpr std::size_t preferred_group = 256;
  opencl::launch_size size;
  size.dimensions = 1;
  for (std::size_t d = 0; d < 3; ++d) {
    size.global[d] = static_cast<std::size_t>(std::max<std::int64_t>(plan.global[d].evaluate(own), 0));
    if (size.global[d] > 1 || plan.local[d] > 1) size.dimensions = static_cast<cl_uint>(d + 1);
  }
  if (size.empty()) return size;
  if (plan.local[0] != 0) {
    for (std::size_t d = 0; d < 3; ++d) {
      size.local[d] = std::max<std::size_t>(plan.local[d], 1);
      size.global[d] = (size.global[d] + size.local[d] - 1) / size.local[d] * size.local[d];
    }
    return size;
  }
  if (size.dimensions != 1) return size;
  std::size_t most = 0;
  opencl::check(::clGetKernelWorkGroupInfo(kernel, device, CL_KERNEL_WORK_GROUP_SIZE, sizeof most, &most, nullptr),
                "clGetKernelWorkGroupInfo");
  std::size_t local = std::min<std::size_t>(most == 0 ? 1 : most, preferred_group);
  if (plan.global[0].is_constant())
    while (local > 1 && local / 2 >= size.global[0]) local /= 2;
  size.local = {local, 1, 1};
  size.global[0] = (size.global[0] + local - 1) / local * local;
  return size;
}

}  // namespace dnnopt

#endif  // DNNOPT_BACKEND_RUN_BUILT_KERNELS_HPP

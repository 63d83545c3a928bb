// Owns what compile tells of its work.
#ifndef DNNOPT_COMPILE_REPORT_HPP
#define DNNOPT_COMPILE_REPORT_HPP

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <dnnopt/backend/program/memory_options.hpp>
#include <dnnopt/kernel_form.hpp>
#include <dnnopt/layout.hpp>
#include <dnnopt/passes/pipeline.hpp>
#include <dnnopt/storage.hpp>
#include <dnnopt/warning.hpp>

namespace dnnopt {

/// What compile did.
struct compile_report {
  std::size_t nodes_imported = 0;
  std::size_t nodes_folded = 0;   ///< nodes that constant folding and shape propagation took away
  std::vector<warning> warnings;  ///< the model's (model::warnings), then what passes found
  std::vector<pass_report> passes;
  double pass_seconds = 0;
  double lower_seconds = 0;
  memory_report memory;  ///< order and parts; seconds in memory.schedule
  double build_seconds = 0;
  dnnopt::memory_objects memory_objects = dnnopt::memory_objects::buffers;  ///< what `automatic` became
  storage_figures storage;
  std::uint64_t builds = 0;                ///< programs compiled from source, not taken from the cache
  kernel_form form = kernel_form::native;  ///< of the kernels that were made
  /// Nodes whose kernels allow fewer work-items than they were first lowered for (backend/run/refused_work_groups.hpp).
  std::vector<std::string> smaller_work_groups;
  /// Small inputs whose values (axes, sizes, counts, flags) decide structure, so that operators would run on the host
  /// while they are unknown: a run compiles a program for the values that it is given, in which they are constants, and
  /// keeps it. With memory bound to an input or output the general program runs.
  std::vector<std::string> specialized_inputs;
  /// Conditions of branches that dims of inputs decide, as expressions of value 0 or 1: a run compiles a program with
  /// the branches that its dims take, and keeps it for all dims that take the same ones.
  std::vector<std::string> decided_conditions;
  std::size_t specialized_programs = 0;  ///< programs made for such values and answers so far
  std::size_t body_programs = 0;         ///< programs of control flow's bodies, each made when a run first entered it
};

}  // namespace dnnopt

#endif  // DNNOPT_COMPILE_REPORT_HPP

// Owns how versions of a node's kernels become one list, of which a run takes what its dims allow.
#ifndef DNNOPT_BACKEND_CODEGEN_VERSIONS_HPP
#define DNNOPT_BACKEND_CODEGEN_VERSIONS_HPP

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <dnnopt/backend/codegen/builder/kernel_plan.hpp>
#include <dnnopt/backend/codegen/choice.hpp>
#include <dnnopt/index_expr_io.hpp>

namespace dnnopt::codegen {

/// 1 where all guards hold, else 0.
[[nodiscard]] inline index_expr all_hold(std::span<const choice_guard> guards) {
  index_expr all = 1;
  for (const choice_guard& guard : guards) all = all * min(max(guard.slack + 1, 0), 1);
  return all;
}

/// The guards for people: "0 <= n - 32, ...".
[[nodiscard]] inline std::string text_of(std::span<const choice_guard> guards) {
  std::string text;
  for (const choice_guard& guard : guards) text += (text.empty() ? "0 <= " : ", 0 <= ") + to_string(guard.slack);
  return text;
}

namespace detail {

/// The scratch buffer that `made` has in place of the one that `plan` prepares: by the same source from the same
/// values. Nothing where it has none.
[[nodiscard]] inline std::optional<std::size_t> prepared_like(const lowered_node& made, const kernel_plan& plan) {
  const auto equal = [](const pointer_argument& a, const pointer_argument& b) {
    return a.held == b.held && a.written == b.written && a.type == b.type && a.object == b.object;
  };
  for (const kernel_plan& other : made.prepare) {
    if (other.source.str() != plan.source.str() || other.options != plan.options ||
        !std::equal(other.pointers.begin(), other.pointers.end(), plan.pointers.begin(), plan.pointers.end(), equal))
      continue;
    for (const pointer_argument& pointer : other.pointers)
      if (pointer.held == no_value && pointer.written) return pointer.scratch;
  }
  return std::nullopt;
}

}  // namespace detail

/// Adds kernels that run in place of those of `made` where `guards` hold. What both prepare alike is prepared once.
/// Returns whether it could: kernels that compute sizes have no versions.
inline bool add_version(lowered_node& made, lowered_node version, std::span<const choice_guard> guards) {
  if (made.size || version.size || made.versions >= most_versions) return false;
  const index_expr when = all_hold(guards);
  for (kernel_plan& plan : made.kernels) plan.when = plan.when * (1 - when);
  for (scratch_buffer& buffer : made.scratch)
    if (!buffer.persistent) buffer.bytes = buffer.bytes * (1 - when);
  std::vector<std::optional<std::size_t>> number(version.scratch.size());
  std::vector<kernel_plan> prepare;
  for (kernel_plan& plan : version.prepare) {
    const auto written = std::find_if(plan.pointers.begin(), plan.pointers.end(), [](const pointer_argument& pointer) {
      return pointer.held == no_value && pointer.written;
    });
    if (written != plan.pointers.end()) number.at(written->scratch) = detail::prepared_like(made, plan);
    if (written == plan.pointers.end() || !number[written->scratch]) prepare.push_back(std::move(plan));
  }
  for (std::size_t i = 0; i < number.size(); ++i) {
    if (number[i]) continue;
    number[i] = made.scratch.size();
    scratch_buffer& buffer = version.scratch[i];
    if (!buffer.persistent) buffer.bytes = buffer.bytes * when;
    made.scratch.push_back(std::move(buffer));
  }
  const auto renumber = [&](std::vector<kernel_plan>& plans) {
    for (kernel_plan& plan : plans)
      for (pointer_argument& pointer : plan.pointers)
        if (pointer.held == no_value) pointer.scratch = *number.at(pointer.scratch);
  };
  renumber(prepare);
  renumber(version.kernels);
  for (kernel_plan& plan : version.kernels) {
    plan.when = when;
    plan.guard = text_of(guards);
    plan.alternative = made.versions;
  }
  std::move(prepare.begin(), prepare.end(), std::back_inserter(made.prepare));
  std::move(version.kernels.begin(), version.kernels.end(), std::back_inserter(made.kernels));
  ++made.versions;
  return true;
}

}  // namespace dnnopt::codegen

#endif  // DNNOPT_BACKEND_CODEGEN_VERSIONS_HPP

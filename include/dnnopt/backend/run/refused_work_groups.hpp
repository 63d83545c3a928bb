// Owns what is done where a kernel object allows fewer work-items than its kernel was lowered for: registers and local
// memory of a compiled kernel can leave room for less than the device's limit (Adreno, Mali, NVIDIA).
#ifndef DNNOPT_BACKEND_RUN_REFUSED_WORK_GROUPS_HPP
#define DNNOPT_BACKEND_RUN_REFUSED_WORK_GROUPS_HPP

#include <algorithm>
#include <bit>
#include <cstddef>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <dnnopt/backend/opencl/status.hpp>
#include <dnnopt/backend/program/program.hpp>
#include <dnnopt/backend/run/built_kernels.hpp>
#include <dnnopt/error.hpp>

namespace dnnopt {

/// A kernel whose object allows fewer work-items.
struct refused_work_group {
  node_id id = no_node;     ///< placed_node::id of its step
  std::string version;      ///< as kernel_plan::version
  std::size_t wanted = 0;   ///< work-items of a work-group as lowered
  std::size_t allowed = 0;  ///< CL_KERNEL_WORK_GROUP_SIZE
};

/// Thrown before anything is launched; kernel_build with all such kernels in its text.
class work_groups_refused : public error {
 public:
  work_groups_refused(const std::string& text, std::vector<refused_work_group> rows)
      : error(errc::kernel_build, text), rows_(std::move(rows)) {}

  [[nodiscard]] const std::vector<refused_work_group>& rows() const noexcept { return rows_; }

 private:
  std::vector<refused_work_group> rows_;
};

/// `built`, once each of its kernels that states a work-group of more than one work-item has been found to allow it on
/// `device`. Each kernel of each program is asked once. Errors: work_groups_refused; opencl_call.
[[nodiscard]] inline built_kernels with_allowed_work_groups(built_kernels built, const program& p,
                                                            cl_device_id device) {
  std::vector<refused_work_group> refused;
  std::string text;
  std::map<std::pair<cl_program, std::string>, std::size_t> known;
  const auto allowed_by = [&](const built_kernel& kernel) {
    const auto [place, fresh] = known.try_emplace({kernel.program(), kernel.entry}, 0);
    if (fresh)
      opencl::check(::clGetKernelWorkGroupInfo(kernel.make()(), device, CL_KERNEL_WORK_GROUP_SIZE, sizeof place->second,
                                               &place->second, nullptr),
                    "clGetKernelWorkGroupInfo");
    return place->second;
  };
  const auto look = [&](node_id id, const codegen::kernel_plan& plan, const built_kernel& kernel) {
    std::size_t wanted = 1;
    for (const std::size_t items : plan.local) wanted *= items == 0 ? 1 : items;
    if (wanted == 1) return;
    const std::size_t allowed = allowed_by(kernel);
    if (wanted <= allowed) return;
    text += "\n  node '" + p.g->node_at(id).name + "': '" + plan.version + "' needs " + std::to_string(wanted) +
            " work-items in a work-group, its kernel object allows " + std::to_string(allowed);
    refused.push_back({id, plan.version, wanted, allowed});
  };
  for (std::size_t s = 0; s < p.steps.size(); ++s) {
    const codegen::lowered_node& lowered = p.steps[s].lowered;
    for (std::size_t k = 0; k < lowered.kernels.size(); ++k)
      look(p.steps[s].id, lowered.kernels[k], built.launched[s][k]);
    for (std::size_t k = 0; k < lowered.prepare.size(); ++k)
      look(p.steps[s].id, lowered.prepare[k], built.prepare[s][k]);
  }
  if (!refused.empty())
    throw work_groups_refused("work-groups too large for their kernels:" + text, std::move(refused));
  return built;
}

/// Lowers `limits` (codegen::lower_options::work_group_limits) to what was found to be allowed, in powers of two, with
/// a note for each of `g`'s nodes. Whether another lowering may do: no where a kernel took no notice of its limit.
[[nodiscard]] inline bool lower_limits(std::map<node_id, std::size_t>& limits, const work_groups_refused& found,
                                       const graph& g, std::vector<std::string>& notes) {
  const std::map<node_id, std::size_t> before = limits;
  for (const refused_work_group& row : found.rows()) {
    const auto stood = before.find(row.id);
    if (row.allowed == 0 || (stood != before.end() && row.wanted > stood->second)) return false;
    const std::size_t most = std::bit_floor(row.allowed);
    std::size_t& limit = limits.try_emplace(row.id, most).first->second;
    limit = std::min(limit, most);
    notes.push_back("'" + g.node_at(row.id).name + "' runs in work-groups of at most " + std::to_string(most) +
                    " work-items: its kernel '" + row.version + "' allows no more (" + std::to_string(row.wanted) +
                    " were to be)");
  }
  return true;
}

}  // namespace dnnopt

#endif  // DNNOPT_BACKEND_RUN_REFUSED_WORK_GROUPS_HPP

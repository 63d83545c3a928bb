// Owns the measuring of joins on a device: both plans of a question lowered, built and timed with memory of their own.
#ifndef DNNOPT_BACKEND_MEASURE_JOIN_TIMER_HPP
#define DNNOPT_BACKEND_MEASURE_JOIN_TIMER_HPP

#include <algorithm>
#include <limits>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <dnnopt/backend/measure/opened_device.hpp>
#include <dnnopt/backend/measure/tuner.hpp>
#include <dnnopt/backend/measure/tuning_store.hpp>
#include <dnnopt/passes/fusion/join_judge.hpp>

namespace dnnopt {

/// Times both plans of a join on one device, in one form of kernels; hand it to a join_judge. Copies share the device.
/// Sizes that are not known when a model is compiled are not measured.
class join_timer {
 public:
  explicit join_timer(std::shared_ptr<opened_device> device, kernel_form form = kernel_form::native)
      : shared_(std::make_shared<state>(std::move(device), form)) {}

  /// Errors: out_of_device_memory; those of the device.
  [[nodiscard]] std::optional<fusion::join_times> operator()(const fusion::join_question& q) const {
    for (const node_id id : q.joined.members) {
      const node& n = q.g.node_at(id);
      for (const auto* held : {&n.inputs, &n.outputs})
        for (const value_id v : *held)
          if (v != no_value && (!q.g.facts(v).dims || !is_static(*q.g.facts(v).dims))) return std::nullopt;
    }
    fusion::join_times times;
    std::vector<detail::timed_block> apart;
    for (const fused_block& block : q.apart)
      if (!has_kernels(q.g, block, apart)) return std::nullopt;
    std::vector<detail::timed_block> joined;
    if (!has_kernels(q.g, q.joined, joined)) times.joined_us = fusion::join_times::no_kernel;
    times.apart_us = std::numeric_limits<double>::max();
    if (!joined.empty()) times.joined_us = std::numeric_limits<double>::max();
    // In turns, so that a slow moment of the machine meets both.
    for (int round = 0; round < rounds; ++round) {
      double sum = 0;
      for (detail::timed_block& block : apart) sum += block.least();
      times.apart_us = std::min(times.apart_us, sum);
      if (!joined.empty()) times.joined_us = std::min(times.joined_us, joined.front().least());
    }
    return times;
  }

 private:
  static constexpr int rounds = 3;

  struct state {
    state(std::shared_ptr<opened_device> opened, kernel_form form)
        : device(std::move(opened)),
          seen(with_form(device->context.info(), form)),
          queue(device->context.make_queue()) {}
    std::shared_ptr<opened_device> device;
    device_info seen;
    opencl::command_queue queue;
  };

  /// Adds the kernels of a block where it has some and the driver builds them.
  [[nodiscard]] bool has_kernels(const graph& g, const fused_block& block,
                                 std::vector<detail::timed_block>& into) const {
    opencl::context& where = shared_->device->context;
    const codegen::block_view view{g, block.members, block.outputs, block.anchor};
    codegen::lowering found = codegen::try_lower(view, codegen::default_lower_options(&shared_->seen));
    if (!found.made) return false;
    try {
      into.emplace_back(where, shared_->device->programs, shared_->queue, view, std::move(*found.made),
                        symbol_values{});
    } catch (const error& e) {
      if (e.code() != errc::kernel_build) throw;
      return false;
    }
    return true;
  }

  std::shared_ptr<state> shared_;
};

/// A judge over a device's part of a database, for kernels of one form. With `measure` what the database lacks is
/// measured on the device and kept there.
[[nodiscard]] inline std::shared_ptr<fusion::join_judge> make_join_judge(
    const std::shared_ptr<fusion::profile_database>& database, const std::shared_ptr<opened_device>& device,
    bool measure, kernel_form form = kernel_form::native) {
  // The table lives in the database, which the judge keeps alive.
  std::shared_ptr<fusion::profile_table> table(
      database, &database->table_of(tuning_store::key_of(with_form(device->context.info(), form))));
  return std::make_shared<fusion::join_judge>(
      std::move(table), measure ? fusion::join_judge::timer(join_timer(device, form)) : fusion::join_judge::timer());
}

}  // namespace dnnopt

#endif  // DNNOPT_BACKEND_MEASURE_JOIN_TIMER_HPP

// Owns how control flow runs on a device: which bodies are entered, what is handed to them, and what becomes of it.
// Only conditions and counts are read back.
#ifndef DNNOPT_BACKEND_FLOW_CONTROL_FLOW_HPP
#define DNNOPT_BACKEND_FLOW_CONTROL_FLOW_HPP

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dnnopt/backend/flow/handed_value.hpp>
#include <dnnopt/backend/flow/turn_stack.hpp>
#include <dnnopt/graph.hpp>
#include <dnnopt/passes/enter_body.hpp>

namespace dnnopt {

/// What control flow asks of the executor whose step it is.
class body_caller {
 public:
  virtual ~body_caller() = default;
  /// The outputs of the body in attribute `key`, for all its arguments (separate_body::arguments has their order).
  [[nodiscard]] virtual std::vector<handed_value> enter(std::string_view key,
                                                        std::span<const handed_value> arguments) = 0;
  /// A value of one element, read back where the device has it.
  [[nodiscard]] virtual std::int64_t number(const handed_value& value) = 0;
  /// A new stack.
  [[nodiscard]] virtual turn_stack stack(std::int64_t axis, bool backwards, std::optional<std::size_t> turns) = 0;
  /// Output `o` of the node where no turn gives a part of it; `axis` is that of the turns.
  [[nodiscard]] virtual handed_value empty_stack(std::size_t o, std::int64_t axis) = 0;
};

namespace detail {

inline void require_outputs(const std::vector<handed_value>& results, std::size_t wanted) {
  if (results.size() < wanted)
    throw error(errc::bad_arity,
                "a body gives " + std::to_string(results.size()) + " outputs of " + std::to_string(wanted));
}

[[nodiscard]] inline std::vector<handed_value> run_branches(const node& n, std::span<const handed_value> inputs,
                                                            body_caller& caller) {
  const std::string_view key = caller.number(inputs[0]) != 0 ? "then_branch" : "else_branch";
  std::vector<handed_value> results = caller.enter(key, inputs.subspan(n.formal_inputs()));
  require_outputs(results, n.outputs.size());
  results.resize(n.outputs.size());
  return results;
}

/// Carried values after the last turn, and stacks.
class turns {
 public:
  turns(const node& n, std::span<const handed_value> inputs, body_caller& caller)
      : layout_(layout_of_bodies(n)), caller_(caller) {
    const auto first = inputs.begin() + static_cast<std::ptrdiff_t>(layout_.first);
    carried_.assign(first, first + static_cast<std::ptrdiff_t>(layout_.carried));
  }
  [[nodiscard]] const body_layout& layout() const noexcept { return layout_; }
  void add_stack(std::int64_t axis, bool backwards, std::optional<std::size_t> count) {
    axes_.push_back(axis);
    stacks_.push_back(caller_.stack(axis, backwards, count));
  }
  /// One turn; `before` are the arguments before the carried values, `behind` those after. Gives the condition output.
  [[nodiscard]] handed_value run(std::span<const handed_value> before, std::span<const handed_value> behind) {
    std::vector<handed_value> arguments(before.begin(), before.end());
    // What a turn has taken in is free as soon as its commands are: the next one may write there.
    for (handed_value& value : carried_) arguments.push_back(std::exchange(value, {}));
    arguments.insert(arguments.end(), behind.begin(), behind.end());
    std::vector<handed_value> results = caller_.enter("body", arguments);
    arguments.clear();
    require_outputs(results, layout_.conditions + layout_.carried + stacks_.size());
    for (std::size_t k = 0; k < layout_.carried; ++k) carried_[k] = std::move(results[layout_.conditions + k]);
    for (std::size_t k = 0; k < stacks_.size(); ++k) stacks_[k].add(results[layout_.conditions + layout_.carried + k]);
    return layout_.conditions == 0 ? handed_value() : std::move(results[0]);
  }
  [[nodiscard]] std::vector<handed_value> results(std::size_t wanted) {
    std::vector<handed_value> all = std::move(carried_);
    for (std::size_t k = 0; k < stacks_.size(); ++k)
      all.push_back(stacks_[k].count() == 0 ? caller_.empty_stack(layout_.carried + k, axes_[k]) : stacks_[k].result());
    all.resize(wanted);
    return all;
  }

 private:
  body_layout layout_;
  body_caller& caller_;
  std::vector<handed_value> carried_;
  std::vector<turn_stack> stacks_;
  std::vector<std::int64_t> axes_;
};

[[nodiscard]] inline std::vector<handed_value> run_loop(const node& n, std::span<const handed_value> inputs,
                                                        body_caller& caller) {
  turns running(n, inputs, caller);
  const std::int64_t most = inputs[0].absent() ? std::numeric_limits<std::int64_t>::max() : caller.number(inputs[0]);
  bool proceed = inputs[1].absent() || caller.number(inputs[1]) != 0;
  for (std::size_t k = 0; k < running.layout().stacks; ++k) running.add_stack(0, false, std::nullopt);
  const std::span<const handed_value> captured = inputs.subspan(running.layout().captured_begin);
  for (std::int64_t turn = 0; turn < most && proceed; ++turn) {
    const handed_value counters[] = {handed_value(tensor::scalar(turn)), handed_value(tensor::scalar(true))};
    const handed_value condition = running.run(counters, captured);
    // Whether there would be another turn is asked only where there may be one.
    if (turn + 1 < most) proceed = caller.number(condition) != 0;
  }
  return running.results(n.outputs.size());
}

[[nodiscard]] inline std::vector<handed_value> run_scan(const node& n, std::span<const handed_value> inputs,
                                                        body_caller& caller) {
  turns running(n, inputs, caller);
  const body_layout& l = running.layout();
  const std::vector<std::int64_t> axes = scan_numbers(n, "scan_input_axes", l.scanned);
  std::int64_t length = -1;
  for (std::size_t k = 0; k < l.scanned; ++k) {
    const dim_list& dims = inputs[l.carried + k].dims;
    const std::int64_t own = dims.at(ops::axis_of(axes[k], dims.size(), n.op->name));
    if (length >= 0 && own != length)
      throw error(errc::shape_mismatch,
                  "scanned inputs of " + std::to_string(length) + " and " + std::to_string(own) + " elements");
    length = own;
  }
  const std::vector<std::int64_t> out_axes = scan_numbers(n, "scan_output_axes", l.stacks);
  const std::vector<std::int64_t> backwards = scan_numbers(n, "scan_output_directions", l.stacks);
  for (std::size_t k = 0; k < l.stacks; ++k)
    running.add_stack(out_axes[k], backwards[k] != 0, static_cast<std::size_t>(length));
  const std::span<const handed_value> whole = inputs.subspan(l.carried);
  for (std::int64_t turn = 0; turn < length; ++turn) {
    std::vector<handed_value> behind(whole.begin(), whole.end());
    behind.emplace_back(tensor::scalar(turn));
    behind.emplace_back(tensor::scalar(length - 1 - turn));
    (void)running.run({}, behind);
  }
  return running.results(n.outputs.size());
}

}  // namespace detail

/// Runs a node whose bodies are programs: its outputs, for its inputs with captured values last. Errors: bad_arity,
/// bad_attribute or shape_mismatch of what the node says of its bodies; unsupported for a form that has no programs;
/// those of the bodies.
[[nodiscard]] inline std::vector<handed_value> run_control_flow(const node& n, std::span<const handed_value> inputs,
                                                                body_caller& caller) {
  switch (n.op->flow) {
    case flow_form::branches:
      return detail::run_branches(n, inputs, caller);
    case flow_form::loop:
      return detail::run_loop(n, inputs, caller);
    case flow_form::scan:
      return detail::run_scan(n, inputs, caller);
    default:
      throw error(errc::unsupported, "bodies of this operator are no programs");
  }
}

}  // namespace dnnopt

#endif  // DNNOPT_BACKEND_FLOW_CONTROL_FLOW_HPP

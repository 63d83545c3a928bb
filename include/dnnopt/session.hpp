// Owns compile and session: a model made ready for one device, and its inferences.
#ifndef DNNOPT_SESSION_HPP
#define DNNOPT_SESSION_HPP

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dnnopt/backend/arrange_memory.hpp>
#include <dnnopt/backend/opencl_executor.hpp>
#include <dnnopt/detail/compiled.hpp>
#include <dnnopt/model.hpp>
#include <dnnopt/passes/pipeline.hpp>

#if DNNOPT_BODIES_SESSION
#include <dnnopt/reference/evaluate_node.hpp>
#endif

namespace dnnopt {

/// How floats are stored on the device; sums are always in fp32 or wider.
enum class precision : std::uint8_t { fp32, fp16 };

/// An OpenCL device made ready: its context and its programs. Sessions may share one.
struct opened_device {
  explicit opened_device(std::string_view spec, opencl::program_cache_options programs_options = {})
      : context(opencl::select_device(spec)), programs(context, std::move(programs_options)) {}

  opencl::context context;
  opencl::program_cache programs;
};

/// What compile is told.
struct compile_options {
  std::string device = "opencl";  ///< "reference", "opencl", "opencl:N" or "opencl:part of a name"
  dnnopt::precision precision = dnnopt::precision::fp32;
  bool require_device = false;     ///< a host fallback is an error naming the operators
  std::string passes = "default";  ///< "default", "none", "epilogue", or names separated by commas
  dim_bindings dims{};             ///< values for symbolic dims; what stays symbolic is bound by each run's inputs
  std::map<std::string, dim_list> shapes{};  ///< shapes of inputs, binding the symbols in them
  std::uint64_t memory_limit = 0;            ///< bytes of device memory; 0: none
  opencl::program_cache_options programs{};
  std::shared_ptr<opened_device> opened{};  ///< a device to share; null: the session opens `device` for itself
  memory_options memory{};                  ///< how intermediate tensors are ordered and placed
  std::function<void(const graph&, const pass_report&)> after_pass{};  ///< sees every pass
};

/// What compile did.
struct compile_report {
  std::size_t nodes_imported = 0;
  std::size_t nodes_folded = 0;  ///< nodes that constant folding and shape propagation took away
  std::vector<pass_report> passes;
  double pass_seconds = 0;
  double lower_seconds = 0;
  memory_report memory;  ///< order and parts; seconds in memory.schedule
  double build_seconds = 0;
  std::uint64_t builds = 0;  ///< programs compiled from source, not taken from the cache
};

/// Tensors by name, in the order of a graph's inputs or outputs.
class named_tensors {
 public:
  named_tensors() = default;
  named_tensors(std::initializer_list<std::pair<std::string, tensor>> rows) : rows_(rows) {}
  explicit named_tensors(std::vector<std::pair<std::string, tensor>> rows) : rows_(std::move(rows)) {}

  void add(std::string name, tensor content) { rows_.emplace_back(std::move(name), std::move(content)); }
  [[nodiscard]] std::size_t size() const noexcept { return rows_.size(); }
  /// The tensor at a position. Errors: invalid_argument.
  [[nodiscard]] const tensor& operator[](std::size_t i) const {
    if (i >= rows_.size())
      throw error(errc::invalid_argument,
                  "there is no tensor " + std::to_string(i) + " of " + std::to_string(rows_.size()));
    return rows_[i].second;
  }
  /// The tensor of that name. Errors: missing_input.
  [[nodiscard]] const tensor& operator[](std::string_view name) const {
    const tensor* found = find(name);
    if (found == nullptr) throw error(errc::missing_input, "there is no tensor '" + std::string(name) + "'");
    return *found;
  }
  /// The tensor of that name, or null.
  [[nodiscard]] const tensor* find(std::string_view name) const {
    for (const auto& [key, content] : rows_)
      if (key == name) return &content;
    return nullptr;
  }
  [[nodiscard]] auto begin() const { return rows_.begin(); }
  [[nodiscard]] auto end() const { return rows_.end(); }

 private:
  std::vector<std::pair<std::string, tensor>> rows_;
};

/// Where a node runs, for people.
struct placement_row {
  std::string node;
  std::string op;
  std::string where;
  std::string reason;
};

/// A model compiled for one device. Move-only; one thread runs it at a time, and sessions are independent of each
/// other.
class session {
 public:
  session(session&&) noexcept = default;
  session& operator=(session&& other) noexcept {
    std::swap(graph_, other.graph_);
    std::swap(device_, other.device_);
    std::swap(executor_, other.executor_);
    std::swap(report_, other.report_);
    std::swap(saved_, other.saved_);
    return *this;
  }
  /// Keeps the programs that this session compiled for the next start; blocks while the driver hands out binaries.
  ~session() { (void)save_programs(); }

  /// Writes compiled programs to the cache now instead of at the end. Some drivers compile at the first launch, so that
  /// a call before the first inference would miss their work. Whether nothing had to be written or it was written.
  bool save_programs() noexcept {
    if (!device_ || report_.builds == 0 || saved_) return true;
    saved_ = true;
    try {
      // A cache that cannot be written costs the next start its builds, nothing else.
      (void)device_->programs.save();
      return true;
    } catch (const std::exception&) {
      return false;
    }
  }

  /// One inference. Inputs are found by name. Errors: missing_input, type_mismatch, shape_mismatch, and those of
  /// devices.
  [[nodiscard]] DNNOPT_INLINE named_tensors run(const named_tensors& inputs, run_observer* observer = nullptr);

  /// The optimized graph.
  [[nodiscard]] const graph& optimized() const noexcept { return *graph_; }
  [[nodiscard]] const compile_report& report() const noexcept { return report_; }
  /// The executor on an OpenCL device, or null on the reference backend.
  [[nodiscard]] opencl_executor* executor() const noexcept { return executor_.get(); }
  /// The device, or null on the reference backend.
  [[nodiscard]] const opencl::context* context() const noexcept { return device_ ? &device_->context : nullptr; }
  /// Device commands of the last run (on the reference backend: 0).
  [[nodiscard]] std::size_t kernels() const { return executor_ ? executor_->figures().kernels : 0; }
  /// Operators that ran on the host in the last run; on the reference backend all of them.
  [[nodiscard]] std::size_t host_ops() const {
    return executor_ ? executor_->figures().host_ops : graph_->node_count();
  }
  /// Where every node runs and why.
  [[nodiscard]] std::vector<placement_row> placements() const {
    std::vector<placement_row> rows;
    if (!executor_) {
      for (const node_id id : graph_->nodes()) {
        const node& n = graph_->node_at(id);
        rows.push_back({n.name, std::string(n.op->name), "host", "the reference backend was asked for"});
      }
      return rows;
    }
    for (const placed_node& step : executor_->executed().steps)
      for (const node_id id : step.members) {
        const node& n = graph_->node_at(id);
        rows.push_back({n.name, std::string(n.op->name), std::string(name_of(step.where)), step.reason});
      }
    return rows;
  }

 private:
  friend session compile(const model& source, const compile_options& options);
  session() = default;

  std::shared_ptr<const graph> graph_;
  std::shared_ptr<opened_device> device_;
  std::unique_ptr<opencl_executor> executor_;
  compile_report report_;
  bool saved_ = false;
};

/// The graph of a model after binding and passes, with a report: compile without a device.
/// Errors: those of passes; unknown_pass.
[[nodiscard]] DNNOPT_INLINE graph optimize(const model& source, const compile_options& options, compile_report& report);

/// Makes a session: the composition of the public passes, lowering, and the device's preparation.
/// Errors: unknown_device, opencl_unavailable, no_kernel (with require_device), kernel_build, out_of_device_memory,
/// memory_limit, and those of passes.
[[nodiscard]] DNNOPT_INLINE session compile(const model& source, const compile_options& options = {});

#if DNNOPT_BODIES_SESSION
DNNOPT_INLINE named_tensors session::run(const named_tensors& inputs, run_observer* observer) {
  std::vector<tensor> ordered;
  for (const value_id id : graph_->inputs()) {
    const std::string& name = graph_->value_at(id).name;
    const tensor* given = inputs.find(name);
    if (given == nullptr) throw error(errc::missing_input, "input '" + name + "' is not given");
    ordered.push_back(*given);
  }
  for (const auto& [name, content] : inputs) {
    bool known = false;
    for (const value_id id : graph_->inputs()) known = known || graph_->value_at(id).name == name;
    if (!known) throw error(errc::missing_input, "the model has no input '" + name + "'");
  }
  std::vector<tensor> outputs = executor_ ? executor_->run(ordered, observer) : reference::evaluate(*graph_, ordered);
  named_tensors result;
  for (std::size_t i = 0; i < outputs.size(); ++i)
    result.add(graph_->value_at(graph_->outputs()[i]).name, std::move(outputs[i]));
  return result;
}

DNNOPT_INLINE graph optimize(const model& source, const compile_options& options, compile_report& report) {
  graph g = source.main;
  bind_dims(g, options.dims);
  for (const auto& [input, dims] : options.shapes) bind_input_shape(g, input, dims);
  report.nodes_imported = g.node_count() + source.constant_nodes;
  const auto begin = std::chrono::steady_clock::now();
  pass_environment environment;
  environment.evaluate = &reference::evaluate_node;
  report.passes = run_passes(g, pass_names(options.passes), environment, options.after_pass);
  g.compact();
  report.pass_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  for (const pass_report& pass : report.passes)
    if (pass.name == fold_constants::name) report.nodes_folded += pass.edits;
  report.nodes_folded += source.constant_nodes;
  return g;
}

DNNOPT_INLINE session compile(const model& source, const compile_options& options) {
  if (options.precision != precision::fp32)
    throw error(errc::unsupported, "storage in fp16 is not available in this version; compile with fp32");
  session result;
  result.graph_ = std::make_shared<const graph>(optimize(source, options, result.report_));
  if (options.device == "reference") return result;
  auto began = std::chrono::steady_clock::now();
  const auto lap = [&began] {
    const auto now = std::chrono::steady_clock::now();
    return std::chrono::duration<double>(now - std::exchange(began, now)).count();
  };
  result.device_ = options.opened ? options.opened : std::make_shared<opened_device>(options.device, options.programs);
  opened_device& device = *result.device_;
  if (options.memory_limit != 0) device.context.memory().set_limit(options.memory_limit);
  const codegen::lower_options lowering = codegen::default_lower_options(&device.context.info());
  auto made = std::make_shared<program>(make_program(result.graph_, lowering, options.require_device));
  result.report_.lower_seconds = lap();
  memory_options arranging = options.memory;
  if (!arranging.store) arranging.store = std::make_shared<memory::plan_store>();
  result.report_.memory = arrange_memory(*made, device.context.info().base_address_alignment_bytes, arranging,
                                         static_cast<std::int64_t>(options.memory_limit));
  (void)lap();
  const std::uint64_t built_before = device.programs.figures().builds;
  result.executor_ = std::make_unique<opencl_executor>(device.context, device.programs, std::move(made),
                                                       &reference::evaluate_node, planner_of(arranging));
  result.report_.build_seconds = lap();
  result.report_.builds = device.programs.figures().builds - built_before;
  return result;
}
#endif

}  // namespace dnnopt

#endif  // DNNOPT_SESSION_HPP

// Owns a program's constants on the device: as they are where kernels read them so, and packed once for frames.
#ifndef DNNOPT_BACKEND_RUN_DEVICE_WEIGHTS_HPP
#define DNNOPT_BACKEND_RUN_DEVICE_WEIGHTS_HPP

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include <dnnopt/backend/opencl/context.hpp>
#include <dnnopt/backend/program/program.hpp>
#include <dnnopt/backend/program/texel_images.hpp>
#include <dnnopt/backend/program/weight_packing.hpp>
#include <dnnopt/backend/run/built_kernels.hpp>

namespace dnnopt {

/// Constants that stay on the device from run to run.
///
/// The context and the program given to `prepare` must outlive it.
class device_weights {
 public:
  /// Uploads constants that kernels read, and packs weights by the kernels `prepare` (by step), batch by batch: what
  /// only packing reads leaves the device with its batch. All is done when it returns.
  /// Errors: out_of_device_memory; memory_limit.
  device_weights(opencl::context& where, opencl::command_queue& queue, const program& p,
                 const std::vector<std::vector<built_kernel>>& prepare)
      : where_(&where), program_(&p) {
    const weight_packing packing = plan_weight_packing(p);
    packed_in_ = packing.packed_in;
    same_as_ = packing.same_as;
    const symbol_values symbols = symbols_of_packing(*p.g);
    std::map<value_id, opencl::device_buffer> originals;
    try {
      for (const value_id v : packing.early_constants) hold(queue, v);
      packed_.resize(p.steps.size());
      for (const packing_batch& batch : packing.batches) {
        for (const value_id v : batch.originals) provide(queue, originals, v, true);
        for (const std::size_t s : batch.steps) pack(queue, s, symbols, originals, prepare[s], packed_[s], [] {});
        queue.finish();
        originals.clear();
      }
      for (const value_id v : packing.late_constants) hold(queue, v);
      queue.finish();
    } catch (...) {
      // Commands under way use what is about to end: buffers here, and contents of the caller's graph.
      (void)::clFinish(queue.handle());
      throw;
    }
  }

  /// Launches `prepare`, other builds of the kernels that packed these weights, on a queue of the caller's; what they
  /// write is dropped batch by batch. `before_launch` comes before each launch, when those before it are done; what it
  /// throws ends this. Others may use the weights meanwhile. Errors: as of the constructor.
  void rehearse(opencl::command_queue& queue, const std::vector<std::vector<built_kernel>>& prepare,
                const std::function<void()>& before_launch) const {
    const symbol_values symbols = symbols_of_packing(*program_->g);
    std::map<value_id, opencl::device_buffer> originals;
    std::vector<std::vector<packed_weights>> dropped;
    try {
      for (const packing_batch& batch : plan_weight_packing(*program_).batches) {
        for (const value_id v : batch.originals) provide(queue, originals, v, true);
        for (const std::size_t s : batch.steps)
          pack(queue, s, symbols, originals, prepare[s], dropped.emplace_back(), [&] {
            queue.finish();
            before_launch();
          });
        queue.finish();
        originals.clear();
        dropped.clear();
      }
    } catch (...) {
      (void)::clFinish(queue.handle());
      throw;
    }
  }

  /// The buffer of a constant that kernels read as it is, or null.
  [[nodiscard]] const opencl::device_buffer* find(value_id constant) const {
    const auto same = same_as_.find(constant);
    const auto held = constants_.find(same == same_as_.end() ? constant : same->second);
    return held == constants_.end() ? nullptr : &held->second;
  }

  /// What step `s` reads as its scratch memory number `scratch`, packed by it or by a step with the same weights.
  [[nodiscard]] argument_memory packed(std::size_t s, std::size_t scratch) const {
    return packed_[packed_in_[s]].at(scratch).memory();
  }

  /// Bytes on the device.
  [[nodiscard]] std::uint64_t bytes() const {
    std::uint64_t bytes = 0;
    for (const auto& [id, buffer] : constants_) bytes += buffer.bytes();
    for (const auto& step : packed_)
      for (const packed_weights& one : step) bytes += one.buffer.bytes() + one.image.bytes();
    return bytes;
  }

 private:
  /// Weights in the form that kernels read; one of the two is empty.
  struct packed_weights {
    opencl::device_buffer buffer;
    opencl::device_image image;

    [[nodiscard]] argument_memory memory() const noexcept {
      return image.empty() ? argument_memory(buffer) : argument_memory(image);
    }
  };

  /// Puts a constant into a buffer of `into`; `in_place`: of its own bytes, where the device reads them so.
  void provide(opencl::command_queue& queue, std::map<value_id, opencl::device_buffer>& into, value_id v,
               bool in_place) const {
    const graph& g = *program_->g;
    const std::span<const std::byte> content = g.facts(v).constant.bytes();
    const std::string& name = g.value_at(v).name;
    if (in_place && where_->memory().reads_in_place(content)) {
      into.emplace(v, where_->memory().lend(content, name));
      return;
    }
    const auto made =
        into.emplace(v, where_->memory().allocate(static_cast<std::size_t>(bytes_of_constant(g, v)), name));
    queue.upload(made.first->second, content);
  }

  /// Keeps a constant that kernels read in every run. In place lies what they read a part of, for they read all of the
  /// others, sooner from the pages of a buffer (huge_pages.hpp) than from those of a file.
  void hold(opencl::command_queue& queue, value_id v) {
    const graph& g = *program_->g;
    const auto& uses = g.value_at(v).uses;
    const bool picked = std::all_of(uses.begin(), uses.end(), [&](const value_use& use) {
      return g.node_at(use.node).op->kind == computation_kind::indexed_read && use.slot == 0;
    });
    provide(queue, constants_, v, picked);
    if (picked) contents_.push_back(g.facts(v).constant);
  }

  /// Packs the weights of step `s` into `packed`.
  template <class BeforeLaunch>
  void pack(opencl::command_queue& queue, std::size_t s, const symbol_values& symbols,
            const std::map<value_id, opencl::device_buffer>& originals, const std::vector<built_kernel>& prepare,
            std::vector<packed_weights>& packed, const BeforeLaunch& before_launch) const {
    const codegen::lowered_node& lowered = program_->steps[s].lowered;
    const std::string& name = program_->g->node_at(program_->steps[s].id).name;
    packed.resize(lowered.scratch.size());
    for (std::size_t j = 0; j < lowered.scratch.size(); ++j) {
      const codegen::scratch_buffer& scratch = lowered.scratch[j];
      if (!scratch.persistent) continue;
      if (scratch.image.object != memory_object::buffer)
        packed[j].image = where_->memory().allocate_image(image_shape_of(scratch.image, symbols), name);
      else
        packed[j].buffer = where_->memory().allocate(
            static_cast<std::size_t>(std::max<std::int64_t>(scratch.bytes.evaluate(symbols), 1)), name);
    }
    for (std::size_t k = 0; k < lowered.prepare.size(); ++k) {
      const codegen::kernel_plan& plan = lowered.prepare[k];
      const cl::Kernel kernel = prepare[k].make();
      const auto memory_of = [&](const codegen::pointer_argument& pointer) -> argument_memory {
        if (pointer.held == no_value) return packed.at(pointer.scratch).memory();
        const value_id root = program_->roots[pointer.held];
        const opencl::device_buffer* const kept = find(root);
        return kept != nullptr ? *kept : originals.at(root);
      };
      set_arguments(kernel, plan, name, prepare[k].numbers, symbols, memory_of);
      before_launch();
      queue.launch(kernel(), work_size(plan, plan.bind(symbols), kernel(), where_->where().handle()), name);
    }
  }

  opencl::context* where_;
  const program* program_;
  std::vector<tensor> contents_;  // that buffers of constants_ may lie over
  std::map<value_id, opencl::device_buffer> constants_;
  std::vector<std::vector<packed_weights>> packed_;  // by step
  std::vector<std::size_t> packed_in_;               // by step: whose packed weights it reads
  std::unordered_map<value_id, value_id> same_as_;   // constants that equal one of constants_
};

}  // namespace dnnopt

#endif  // DNNOPT_BACKEND_RUN_DEVICE_WEIGHTS_HPP

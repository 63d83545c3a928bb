// Owns the traits of ONNX's pools: sliding, global, inverted and over regions.
#ifndef DNNOPT_OPS_POOLING_HPP
#define DNNOPT_OPS_POOLING_HPP

#include <span>
#include <string_view>
#include <vector>

#include <dnnopt/ops/element_wise.hpp>
#include <dnnopt/ops/window.hpp>

namespace dnnopt::ops {

struct pooling_classes {
  static constexpr mapping_type mapping = mapping_type::many_to_many;
  static constexpr layout_class layout = layout_class::ild_variable;
  static constexpr dynamism_class dynamism = dynamism_class::isdos;
  static constexpr computation_kind kind = computation_kind::pooling;
};

/// Pools whose window slides over the spatial dims of [batch, channel, ...].
struct sliding_pool_classes : pooling_classes {
  static constexpr op_arity arity{1, 1};
  static constexpr int since = 22;

  static void infer(const node_facts& facts, std::span<value_facts> outputs) {
    outputs[0].type = facts.type(0);
    const shape* data = facts.dims(0);
    if (data == nullptr) return;
    if (data->size() < 3) throw error(errc::shape_mismatch, "a pool slides over " + to_string(*data));
    shape dims{(*data)[0], (*data)[1]};
    const bool ceil_mode = facts.attributes->get_int("ceil_mode", 0) != 0;
    const auto kernel = facts.attributes->require<std::vector<std::int64_t>>("kernel_shape");
    for (const window_axis& axis : windows(*facts.attributes, std::span(*data).subspan(2), kernel, ceil_mode)) {
      require_window(facts, axis);
      dims.push_back(axis.output);
    }
    outputs[0].dims = dims;
    if (outputs.size() > 1) outputs[1].dims = std::move(dims);
  }
};

struct average_pool_op : sliding_pool_classes {
  static constexpr std::string_view name = "AveragePool";
  static constexpr std::string_view window_reduction = "ReduceMean";
};
struct lp_pool_op : sliding_pool_classes {
  static constexpr std::string_view name = "LpPool";
};
/// Output 1 is the flat index of each greatest element within the whole input.
struct max_pool_op : sliding_pool_classes {
  static constexpr std::string_view name = "MaxPool";
  static constexpr std::string_view window_reduction = "ReduceMax";
  static constexpr op_arity arity{1, 1, 1, 2};

  static void infer(const node_facts& facts, std::span<value_facts> outputs) {
    sliding_pool_classes::infer(facts, outputs);
    if (outputs.size() > 1) outputs[1].type = dtype::int64;
  }
};

/// Pools over all spatial dims.
struct global_pool_classes : pooling_classes {
  static constexpr bool reduces_planes = true;
  static constexpr op_arity arity{1, 1};
  static constexpr int since = 22;

  static void infer(const node_facts& facts, std::span<value_facts> outputs) {
    outputs[0].type = facts.type(0);
    const shape* data = facts.dims(0);
    if (data == nullptr) return;
    if (data->size() < 2) throw error(errc::shape_mismatch, "a global pool over " + to_string(*data));
    shape dims(data->size(), index_expr(1));
    dims[0] = (*data)[0];
    dims[1] = (*data)[1];
    outputs[0].dims = std::move(dims);
  }
};
struct global_average_pool_op : global_pool_classes {
  static constexpr std::string_view name = "GlobalAveragePool";
};
struct global_lp_pool_op : global_pool_classes {
  static constexpr std::string_view name = "GlobalLpPool";
};
struct global_max_pool_op : global_pool_classes {
  static constexpr std::string_view name = "GlobalMaxPool";
};

/// Writes each element to the flat index that input 1 gives and zeros elsewhere; input 2 may give the output's dims.
struct max_unpool_op : pooling_classes {
  static constexpr std::string_view name = "MaxUnpool";
  static constexpr input_set structural_inputs{2};
  static constexpr int since = 22;
  static constexpr op_arity arity{2, 3};
  static constexpr dynamism_class dynamism = dynamism_class::isvdos;
  static constexpr computation_kind kind = computation_kind::indexed_write;

  static dynamism_class dynamism_of(const node_facts& facts) {
    return !facts.has(2) || facts.integers(2) ? dynamism_class::isdos : dynamism_class::isvdos;
  }
  static void infer(const node_facts& facts, std::span<value_facts> outputs) {
    outputs[0].type = facts.type(0);
    const shape* data = facts.dims(0);
    if (data == nullptr) return;
    const auto kernel = facts.attributes->require<std::vector<std::int64_t>>("kernel_shape");
    if (data->size() < 3 || kernel.size() + 2 != data->size())
      throw error(errc::shape_mismatch,
                  "MaxUnpool of " + to_string(*data) + " by a window of " + std::to_string(kernel.size()) + " dims");
    // Also where the output is given, for it says how windows lay in what was pooled.
    const std::vector<window_axis> axes = transposed_windows(*facts.attributes, std::span(*data).subspan(2), kernel);
    if (facts.has(2)) {
      const auto wanted = facts.elements(2);
      if (wanted && wanted->size() != data->size())
        throw error(errc::shape_mismatch,
                    "MaxUnpool of " + to_string(*data) + " to " + std::to_string(wanted->size()) + " dims");
      shape dims;
      for (std::size_t i = 0; i < data->size(); ++i) dims.push_back(wanted ? wanted->at(i) : facts.data_dim(0, i));
      outputs[0].dims = std::move(dims);
      return;
    }
    shape dims{(*data)[0], (*data)[1]};
    for (const window_axis& axis : axes) dims.push_back(axis.output);
    outputs[0].dims = std::move(dims);
  }
};

/// One pooled patch [channel, ...] per region of interest.
struct region_pool_classes : pooling_classes {
  static constexpr int since = 22;

  /// `columns` numbers describe a region.
  static void infer_patches(const node_facts& facts, std::span<value_facts> outputs,
                            const std::vector<std::int64_t>& patch, std::int64_t columns) {
    outputs[0].type = facts.type(0);
    if (patch.size() != 2)
      throw error(errc::bad_attribute, "a patch of " + std::to_string(patch.size()) + " dims, not 2");
    const shape* data = facts.dims(0);
    const shape* regions = facts.dims(1);
    if (data == nullptr || regions == nullptr) return;
    if (data->size() != 4 || regions->size() != 2)
      throw error(errc::shape_mismatch, "regions " + to_string(*regions) + " of " + to_string(*data));
    facts.require(guard_relation::equal, (*regions)[1], columns, "numbers of a region and what describes one");
    shape dims{(*regions)[0], (*data)[1]};
    dims.insert(dims.end(), patch.begin(), patch.end());
    outputs[0].dims = std::move(dims);
  }
};
struct max_roi_pool_op : region_pool_classes {
  static constexpr std::string_view name = "MaxRoiPool";
  static constexpr op_arity arity{2, 2};

  static void infer(const node_facts& facts, std::span<value_facts> outputs) {
    infer_patches(facts, outputs, facts.attributes->require<std::vector<std::int64_t>>("pooled_shape"), 5);
  }
};
struct roi_align_op : region_pool_classes {
  static constexpr std::string_view name = "RoiAlign";
  static constexpr op_arity arity{3, 3};

  static void infer(const node_facts& facts, std::span<value_facts> outputs) {
    infer_patches(facts, outputs,
                  {facts.attributes->get_int("output_height", 1), facts.attributes->get_int("output_width", 1)}, 4);
    const shape* regions = facts.dims(1);
    const shape* entries = facts.dims(2);
    if (regions == nullptr || entries == nullptr) return;
    if (entries->size() != 1)
      throw error(errc::shape_mismatch,
                  "RoiAlign: batch indices " + to_string(*entries) + " for regions " + to_string(*regions));
    facts.require(guard_relation::equal, (*entries)[0], (*regions)[0], "batch indices and regions of RoiAlign");
  }
};

/// Adds ONNX's pools.
inline void add_pooling(op_set& set) {
  set.add<average_pool_op, lp_pool_op, max_pool_op, global_average_pool_op, global_lp_pool_op, global_max_pool_op,
          max_unpool_op, max_roi_pool_op, roi_align_op>();
}

static_assert(Operator<average_pool_op> && Operator<lp_pool_op> && Operator<max_pool_op>);
static_assert(Operator<global_average_pool_op> && Operator<global_lp_pool_op> && Operator<global_max_pool_op>);
static_assert(Operator<max_unpool_op> && Operator<max_roi_pool_op> && Operator<roi_align_op>);

}  // namespace dnnopt::ops

#endif  // DNNOPT_OPS_POOLING_HPP

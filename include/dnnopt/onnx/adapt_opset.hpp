// Owns the change of nodes of older opsets to the newest form of their operators: one adapter per changed form, in a
// table.
#ifndef DNNOPT_ONNX_ADAPT_OPSET_HPP
#define DNNOPT_ONNX_ADAPT_OPSET_HPP

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dnnopt/error.hpp>
#include <dnnopt/onnx/adapt_first_opsets.hpp>
#include <dnnopt/onnx/adapt_scan.hpp>
#include <dnnopt/onnx/adapter_row.hpp>
#include <dnnopt/onnx/node_emitter.hpp>
#include <dnnopt/small_float.hpp>
#include <dnnopt/tensor.hpp>

namespace dnnopt::onnx {

namespace detail {

inline void adapt_clip_11(pending_node& n, node_emitter& e) {
  number_to_input(n, e, "min", 1);
  number_to_input(n, e, "max", 2);
}
inline void adapt_pad_11(pending_node& n, node_emitter& e) {
  if (!n.attributes.contains("pads")) throw error(errc::bad_attribute, "attribute 'pads' is missing");
  list_to_input(n, e, "pads", 1);
  number_to_input(n, e, "value", 2);
}
inline void adapt_slice_10(pending_node& n, node_emitter& e) {
  for (const char* name : {"starts", "ends"})
    if (!n.attributes.contains(name))
      throw error(errc::bad_attribute, std::string("attribute '") + name + "' is missing");
  list_to_input(n, e, "starts", 1);
  list_to_input(n, e, "ends", 2);
  list_to_input(n, e, "axes", 3);
}
inline void adapt_split_13(pending_node& n, node_emitter& e) { list_to_input(n, e, "split", 1); }
inline void adapt_split_18(pending_node& n, node_emitter&) {
  if (n.input(1) == no_value) n.attributes.set("num_outputs", static_cast<std::int64_t>(n.outputs.size()));
}
inline void adapt_unsqueeze_13(pending_node& n, node_emitter& e) {
  if (!n.attributes.contains("axes")) throw error(errc::bad_attribute, "attribute 'axes' is missing");
  axes_to_input(n, e);
}
inline void adapt_top_k_10(pending_node& n, node_emitter& e) {
  n.set_input(1, e.integers(n, "k", {n.attributes.require<std::int64_t>("k")}));
  n.attributes.erase("k");
}

/// Before 10 the mask has the type of the data.
inline void adapt_dropout_10(pending_node& n, node_emitter& e) {
  if (n.outputs.size() < 2 || n.outputs[1] == no_value) return;
  const dtype type = type_of(n, e, 0);
  const value_id mask = e.target().add_value(e.unique_name(n.name + "/mask"));
  const value_id all_kept = std::exchange(n.outputs[1], mask);
  // The cast reads what this node has yet to write, which the graph allows: edges follow when the producer is added.
  pending_node cast;
  cast.op_type = "Cast";
  cast.name = e.unique_name(n.name + "/Cast");
  cast.inputs = {mask};
  cast.outputs = {all_kept};
  cast.attributes.set("to", static_cast<std::int64_t>(type == dtype::undefined ? dtype::float32 : type));
  e.target().facts(mask).type = dtype::boolean;
  if (const value_facts* x = e.facts_of(n, 0)) e.target().facts(mask).dims = x->dims;
  e.add(std::move(cast));
}
/// Before 12 Dropout has no training mode: the ratio changes nothing, but stays readable.
inline void adapt_dropout_12(pending_node& n, node_emitter& e) {
  if (!n.attributes.contains("ratio")) return;
  n.set_input(1, e.constant(n, "ratio", tensor::scalar(n.attributes.require<float>("ratio"))));
  n.attributes.erase("ratio");
}

/// Before 9 `spatial` = 0 has statistics of their own for every element of a row; no newer form has.
inline void adapt_batch_normalization_9(pending_node& n, node_emitter& e) {
  const bool each_element = n.attributes.get_int("spatial", 1) == 0;
  n.attributes.erase("spatial");
  if (!each_element) return;
  if (n.outputs.size() > 1) throw error(errc::unsupported, "a training step of BatchNormalization with spatial = 0");
  const double epsilon = static_cast<double>(n.attributes.get_float("epsilon", 1e-5f));
  const value_id variance =
      e.emit(n, "Add", {n.input(4), e.constant(n, "epsilon", scalar_of(type_of(n, e, 0), epsilon))});
  const value_id factor = e.emit(n, "Div", {n.input(1), e.emit(n, "Sqrt", {variance})});
  const value_id centred = e.emit(n, "Sub", {n.input(0), n.input(3)});
  become(n, "Add", {e.emit(n, "Mul", {centred, factor}), n.input(2)});
}
/// Before 14 more than one output means training; saved mean and variance served its backward step alone.
inline void adapt_batch_normalization_14(pending_node& n, node_emitter&) {
  if (n.outputs.size() > 3) throw error(errc::unsupported, "BatchNormalization with saved mean and variance");
  if (n.outputs.size() > 1) n.attributes.set("training_mode", std::int64_t{1});
}

inline void adapt_dft_20(pending_node& n, node_emitter& e) {
  n.set_input(2, e.constant(n, "axis", tensor::scalar(n.attributes.get_int("axis", 1))));
  n.attributes.erase("axis");
}

/// Before 13 the softmax family works on the input seen as a matrix of the dims before and from `axis` (default 1).
inline void adapt_softmax_13(pending_node& n, node_emitter& e) {
  const std::int64_t axis = n.attributes.get_int("axis", 1);
  const value_facts* x = e.facts_of(n, 0);
  if (x != nullptr && x->dims) {
    const std::size_t at =
        normalize_axis(axis, x->dims->size() + (axis == static_cast<std::int64_t>(x->dims->size()) ? 1 : 0));
    const bool one_axis =
        at < x->dims->size() && std::all_of(x->dims->begin() + static_cast<std::ptrdiff_t>(at) + 1, x->dims->end(),
                                            [](const index_expr& d) { return d == index_expr(1); });
    if (one_axis) {
      n.attributes.set("axis", static_cast<std::int64_t>(at));
      return;
    }
  }
  attribute_map flatten;
  flatten.set("axis", axis);
  attribute_map last;
  last.set("axis", std::int64_t{-1});
  const value_id matrix = e.emit(n, "Flatten", {n.input(0)}, std::move(flatten));
  const value_id result = e.emit(n, n.op_type, {matrix}, std::move(last));
  const value_id dims = e.emit(n, "Shape", {n.input(0)});
  n.op_type = "Reshape";
  n.inputs = {result, dims};
  n.attributes = {};
  // A dim of 0 in the input stays 0; it does not mean "copy".
  n.attributes.set("allowzero", std::int64_t{1});
}

/// Before 20 the modes have the names of two dimensions.
inline void adapt_grid_sample_20(pending_node& n, node_emitter&) {
  const std::string mode = n.attributes.get_string("mode", "bilinear");
  n.attributes.set("mode", mode == "bilinear"  ? std::string("linear")
                           : mode == "bicubic" ? std::string("cubic")
                                               : mode);
}

/// Before 21 scale and bias have one element per group; repeats each for the channels of its group.
inline void adapt_group_normalization_21(pending_node& n, node_emitter& e) {
  const std::int64_t groups = n.attributes.require<std::int64_t>("num_groups");
  if (groups <= 0) throw error(errc::bad_attribute, "num_groups is " + std::to_string(groups));
  attribute_map channel_axis;
  channel_axis.set("start", std::int64_t{1});
  channel_axis.set("end", std::int64_t{2});
  const value_id channels = e.emit(n, "Shape", {n.input(0)}, std::move(channel_axis));
  const value_id per_group = e.emit(n, "Div", {channels, e.integers(n, "groups", {groups})});
  attribute_map first;
  first.set("axis", std::int64_t{0});
  const value_id dims = e.emit(n, "Concat", {e.integers(n, "one", {1}), per_group}, std::move(first));
  for (const std::size_t slot : {std::size_t{1}, std::size_t{2}}) {
    const value_id column = e.emit(n, "Unsqueeze", {n.input(slot), e.integers(n, "column", {1})});
    const value_id repeated = e.emit(n, "Expand", {column, dims});
    n.set_input(slot, e.emit(n, "Reshape", {repeated, e.integers(n, "flat", {-1})}));
  }
}

inline void adapt_roi_align_16(pending_node& n, node_emitter&) {
  n.attributes.set("coordinate_transformation_mode", std::string("output_half_pixel"));
}

/// Resize 10 takes corners as origin; its nearest is the floor where it enlarges and the ceiling where it shrinks.
inline void adapt_resize_11(pending_node& n, node_emitter& e) {
  const value_id scales = n.input(1);
  n.attributes.set("coordinate_transformation_mode", std::string("asymmetric"));
  n.inputs = {n.input(0), no_value, scales};
  if (n.attributes.get_string("mode", "nearest") != "nearest") return;
  n.attributes.set("nearest_mode", std::string("floor"));
  if (scales == no_value) return;
  attribute_map first = n.attributes;
  first.set("nearest_mode", std::string("ceil"));
  if (!e.facts(scales).is_constant()) {
    const value_id one = e.constant(n, "one", tensor::of<float>({1}, {1.0f}));
    const value_id shrink = e.emit(n, "Min", {scales, one});
    const value_id enlarge = e.emit(n, "Max", {scales, one});
    n.inputs = {e.emit(n, "Resize", {n.input(0), no_value, shrink}, std::move(first)), no_value, enlarge};
    return;
  }
  const tensor content = e.facts(scales).constant;
  std::vector<float> shrink;
  std::vector<float> enlarge;
  for (const float s : content.data<float>()) {
    shrink.push_back(std::min(s, 1.0f));
    enlarge.push_back(std::max(s, 1.0f));
  }
  const auto changes = [](const std::vector<float>& v) {
    return std::any_of(v.begin(), v.end(), [](float s) { return s != 1.0f; });
  };
  if (!changes(shrink)) return;
  if (!changes(enlarge)) {
    n.attributes.set("nearest_mode", std::string("ceil"));
    return;
  }
  const value_id smaller =
      e.emit(n, "Resize", {n.input(0), no_value, e.constant(n, "shrink", tensor::of<float>(content.dims(), shrink))},
             std::move(first));
  n.inputs = {smaller, no_value, e.constant(n, "enlarge", tensor::of<float>(content.dims(), enlarge))};
}
inline void adapt_upsample_9(pending_node& n, node_emitter& e) {
  const auto& scales = n.attributes.require<std::vector<float>>("scales");
  n.set_input(1, e.constant(n, "scales", tensor::of<float>({static_cast<std::int64_t>(scales.size())}, scales)));
  n.attributes.erase("scales");
}
/// Upsample ends at 9; it is Resize 10 under another name.
inline void adapt_upsample_10(pending_node& n, node_emitter& e) {
  n.op_type = "Resize";
  const std::string mode = n.attributes.get_string("mode", "nearest");
  n.attributes.set("mode", mode == "bilinear" ? std::string("linear") : mode);
  adapt_resize_11(n, e);
  n.version = newest_opset;
}
/// Exporters write an absent input as an empty constant.
inline void drop_empty_resize_inputs(pending_node& n, node_emitter& e) {
  for (const std::size_t slot : {std::size_t{1}, std::size_t{2}, std::size_t{3}}) {
    const value_facts* f = e.facts_of(n, slot);
    if (f != nullptr && f->is_constant() && f->constant.size() == 0) n.inputs[slot] = no_value;
  }
  while (!n.inputs.empty() && n.inputs.back() == no_value) n.inputs.pop_back();
}

inline void adapt_scatter_11(pending_node& n, node_emitter&) { n.op_type = "ScatterElements"; }

/// Every change of form from opset 7 on that a node can show; other changes only added element types or
/// attributes whose default is the former behaviour. Rows of one operator ascend.
inline constexpr adapter_row adapters[] = {
    {"BatchNormalization", 9, adapt_batch_normalization_9},
    {"BatchNormalization", 14, adapt_batch_normalization_14},
    {"Clip", 11, adapt_clip_11},
    {"DFT", 20, adapt_dft_20},
    {"Dropout", 10, adapt_dropout_10},
    {"Dropout", 12, adapt_dropout_12},
    {"GridSample", 20, adapt_grid_sample_20},
    {"GroupNormalization", 21, adapt_group_normalization_21},
    {"Hardmax", 13, adapt_softmax_13},
    {"LogSoftmax", 13, adapt_softmax_13},
    {"Pad", 11, adapt_pad_11},
    {"ReduceL1", 18, axes_to_input},
    {"ReduceL2", 18, axes_to_input},
    {"ReduceLogSum", 18, axes_to_input},
    {"ReduceLogSumExp", 18, axes_to_input},
    {"ReduceMax", 18, axes_to_input},
    {"ReduceMean", 18, axes_to_input},
    {"ReduceMin", 18, axes_to_input},
    {"ReduceProd", 18, axes_to_input},
    {"ReduceSum", 13, axes_to_input},
    {"ReduceSumSquare", 18, axes_to_input},
    {"Resize", 11, adapt_resize_11},
    {"Resize", newest_opset + 1, drop_empty_resize_inputs},
    {"RoiAlign", 16, adapt_roi_align_16},
    {"Scan", 9, adapt_scan_9},
    {"Scatter", 11, adapt_scatter_11},
    {"Slice", 10, adapt_slice_10},
    {"Softmax", 13, adapt_softmax_13},
    {"Split", 13, adapt_split_13},
    {"Split", 18, adapt_split_18},
    {"Squeeze", 13, axes_to_input},
    {"TopK", 10, adapt_top_k_10},
    {"Unsqueeze", 13, adapt_unsqueeze_13},
    {"Upsample", 9, adapt_upsample_9},
    {"Upsample", 10, adapt_upsample_10},
};

}  // namespace detail

/// Changes an ai.onnx node to the newest form of its operator, emitting helper nodes before it where one node does not
/// do. Errors: bad_attribute where an attribute of the older form is missing, unsupported for forms that have no newer
/// one.
inline void adapt_to_newest(pending_node& n, node_emitter& emitter) {
  const std::string op_type = n.op_type;
  // What an implementation may overwrite is no business of a graph's reader.
  if (n.version < 6) n.attributes.erase("consumed_inputs");
  for (const std::span<const adapter_row> rows :
       {std::span<const adapter_row>(detail::first_adapters), std::span<const adapter_row>(detail::adapters)})
    for (const adapter_row& row : rows)
      if (row.op_type == op_type && n.version < row.below) row.adapt(n, emitter);
  n.version = newest_opset;
}

}  // namespace dnnopt::onnx

#endif  // DNNOPT_ONNX_ADAPT_OPSET_HPP

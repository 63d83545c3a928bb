// Owns the change of Scan of opset 8, which has a batch dimension and sequence lengths, to two Scans of opset 9 in each
// other.
#ifndef DNNOPT_ONNX_ADAPT_SCAN_HPP
#define DNNOPT_ONNX_ADAPT_SCAN_HPP

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <dnnopt/error.hpp>
#include <dnnopt/graph.hpp>
#include <dnnopt/onnx/adapter_row.hpp>
#include <dnnopt/onnx/node_emitter.hpp>

namespace dnnopt::onnx::detail {

/// The inner Scan of one batch element, in the body of the outer one.
class batch_element {
 public:
  /// `states` values of the body's inputs (behind the length, where there is one) are states, `scans` are scanned.
  batch_element(node_emitter& e, const pending_node& outer, std::vector<value_id> inputs, value_id length)
      : e_(e), outer_(outer), inputs_(std::move(inputs)), length_(length) {}

  /// Adds the nodes and makes their results the body's outputs.
  void build(std::size_t states, std::size_t scans, const std::vector<value_id>& captured) {
    if (length_ != no_value) full_ = extent(inputs_.at(states));
    pending_node inner;
    inner.op_type = "Scan";
    inner.name = e_.unique_name(outer_.name + "/sequence");
    for (std::size_t k = 0; k < states + scans; ++k) inner.inputs.push_back(k < states ? inputs_[k] : cut(inputs_[k]));
    inner.captured_begin = static_cast<std::uint32_t>(inner.inputs.size());
    inner.inputs.insert(inner.inputs.end(), captured.begin(), captured.end());
    graph& body = e_.target();
    for (std::size_t o = 0; o < outer_.outputs.size(); ++o)
      inner.outputs.push_back(body.add_value(e_.unique_name(outer_.name + "/result_" + std::to_string(o))));
    const std::vector<value_id> results = inner.outputs;
    inner.attributes.set("body", outer_.attributes.require<subgraph>("body"));
    inner.attributes.set("num_scan_inputs", static_cast<std::int64_t>(scans));
    if (outer_.attributes.contains("directions"))
      inner.attributes.set("scan_input_directions", outer_.attributes.get_ints("directions"));
    inner.version = newest_opset;
    e_.add(std::move(inner));
    for (std::size_t o = 0; o < results.size(); ++o) body.add_output(o < states ? results[o] : filled_up(results[o]));
  }

 private:
  value_id one_integer(const char* what, std::int64_t v) { return e_.integers(outer_, what, {v}); }
  // The first dim of `v` as a vector of one.
  value_id extent(value_id v) {
    attribute_map first;
    first.set("start", std::int64_t{0});
    first.set("end", std::int64_t{1});
    return e_.emit(outer_, "Shape", {v}, std::move(first));
  }
  // What lies within the sequence's own length.
  value_id cut(value_id scanned) {
    if (length_ == no_value) return scanned;
    return e_.emit(outer_, "Slice", {scanned, one_integer("begin", 0), own_length(), one_integer("axis", 0)});
  }
  // Zeros behind the sequence's own length.
  value_id filled_up(value_id stacked) {
    if (length_ == no_value) return stacked;
    attribute_map along;
    along.set("axis", std::int64_t{0});
    const value_id missing = e_.emit(outer_, "Sub", {full_, own_length()});
    const value_id pads = e_.emit(outer_, "Concat", {one_integer("before", 0), missing}, std::move(along));
    return e_.emit(outer_, "Pad", {stacked, pads, no_value, one_integer("axis", 0)});
  }
  value_id own_length() { return e_.emit(outer_, "Reshape", {length_, one_integer("one", 1)}); }

  node_emitter& e_;
  const pending_node& outer_;
  std::vector<value_id> inputs_;
  value_id length_;
  value_id full_ = no_value;
};

/// Before 9 input 0 holds the length of each sequence (absent: all are as long as the tensors), every input and output
/// has a batch dimension in front, and the sequence is dim 1. What lies behind a sequence's length in an output is 0.
inline void adapt_scan_9(pending_node& n, node_emitter& e) {
  const std::size_t formal = std::min<std::size_t>(n.inputs.size(), n.captured_begin);
  const auto scans =
      static_cast<std::size_t>(std::max<std::int64_t>(n.attributes.require<std::int64_t>("num_scan_inputs"), 0));
  if (formal < 2 || scans < 1 || scans > formal - 1)
    throw error(errc::bad_attribute,
                "Scan: num_scan_inputs is " + std::to_string(scans) + " of " + std::to_string(formal) + " inputs");
  const std::size_t states = formal - 1 - scans;
  auto body = std::make_shared<graph>(e.target().shared_expressions());
  body->name = n.name + "/batch";
  node_emitter inside = e.for_body(*body);
  const auto add = [&](value_id outer, const std::string& name, bool element) {
    const value_facts& facts = e.facts(outer);
    std::optional<shape> dims = facts.dims;
    if (element && dims && dims->empty()) throw error(errc::shape_mismatch, "Scan: an input has no batch dimension");
    if (element && dims) dims->erase(dims->begin());
    return body->add_input(inside.unique_name(name), facts.type, std::move(dims));
  };
  std::vector<value_id> given;
  for (std::size_t k = 0; k < formal; ++k)
    if (n.inputs[k] != no_value) given.push_back(n.inputs[k]);
  const bool lengths = n.inputs[0] != no_value;
  if (given.size() != formal - (lengths ? 0 : 1)) throw error(errc::bad_arity, "Scan: a state or a sequence is absent");
  std::vector<value_id> elements;
  for (std::size_t k = 0; k < given.size(); ++k)
    elements.push_back(add(given[k], "element_" + std::to_string(k), true));
  std::vector<value_id> captured;
  for (std::size_t k = formal; k < n.inputs.size(); ++k) {
    captured.push_back(add(n.inputs[k], e.target().value_at(n.inputs[k]).name, false));
    given.push_back(n.inputs[k]);
  }
  const value_id length = lengths ? elements.front() : no_value;
  if (lengths) elements.erase(elements.begin());
  batch_element(inside, n, std::move(elements), length).build(states, scans, captured);
  n.attributes = {};
  n.attributes.set("body", subgraph(std::move(body)));
  n.attributes.set("num_scan_inputs", static_cast<std::int64_t>(given.size() - captured.size()));
  n.captured_begin = static_cast<std::uint32_t>(given.size() - captured.size());
  n.inputs = std::move(given);
}

}  // namespace dnnopt::onnx::detail

#endif  // DNNOPT_ONNX_ADAPT_SCAN_HPP

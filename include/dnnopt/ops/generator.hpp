// Owns the operators that make tensors from parameters and dims: Constant, ConstantOfShape, Range, EyeLike, OneHot.
#ifndef DNNOPT_OPS_GENERATOR_HPP
#define DNNOPT_OPS_GENERATOR_HPP

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dnnopt/ops/conversion.hpp>
#include <dnnopt/ops/structure_transfer.hpp>

namespace dnnopt::ops {

/// The first element of a tensor of numbers. Errors: type_mismatch for strings and complex numbers; shape_mismatch
/// where there is no element.
[[nodiscard]] inline double first_number(const tensor& t) {
  if (t.size() == 0) throw error(errc::shape_mismatch, "a scalar is read from a tensor without elements");
  switch (t.type()) {
    case dtype::float32:
      return static_cast<double>(t.data<float>()[0]);
    case dtype::float64:
      return t.data<double>()[0];
    case dtype::float16:
      return static_cast<double>(float(t.data<float16>()[0]));
    case dtype::bfloat16:
      return static_cast<double>(float(t.data<bfloat16>()[0]));
    case dtype::float8e4m3fn:
      return static_cast<double>(float(t.data<float8e4m3fn>()[0]));
    case dtype::float8e4m3fnuz:
      return static_cast<double>(float(t.data<float8e4m3fnuz>()[0]));
    case dtype::float8e5m2:
      return static_cast<double>(float(t.data<float8e5m2>()[0]));
    case dtype::float8e5m2fnuz:
      return static_cast<double>(float(t.data<float8e5m2fnuz>()[0]));
    default:
      return static_cast<double>(integers_of(t.reshaped({t.size()}))[0]);
  }
}

/// The tensor that a Constant node holds in one of its attributes. Errors: bad_attribute where it has none.
[[nodiscard]] inline tensor constant_value(const attribute_map& attributes) {
  for (const auto& [key, held] : attributes) {
    if (key == "value" || key == "sparse_value") {
      if (const auto* t = std::get_if<tensor>(&held)) return *t;
    } else if (key == "value_float") {
      if (const auto* v = std::get_if<float>(&held)) return tensor::scalar(*v);
    } else if (key == "value_int") {
      if (const auto* v = std::get_if<std::int64_t>(&held)) return tensor::scalar(*v);
    } else if (key == "value_floats") {
      if (const auto* v = std::get_if<std::vector<float>>(&held))
        return tensor::of<float>({static_cast<std::int64_t>(v->size())}, *v);
    } else if (key == "value_ints") {
      if (const auto* v = std::get_if<std::vector<std::int64_t>>(&held))
        return tensor::of<std::int64_t>({static_cast<std::int64_t>(v->size())}, *v);
    } else if (key == "value_string") {
      if (const auto* v = std::get_if<std::string>(&held)) {
        tensor text(dtype::string, {});
        text.mutable_strings()[0] = *v;
        return text;
      }
    } else if (key == "value_strings") {
      if (const auto* v = std::get_if<std::vector<std::string>>(&held)) {
        tensor text(dtype::string, {static_cast<std::int64_t>(v->size())});
        text.mutable_strings() = *v;
        return text;
      }
    }
  }
  throw error(errc::bad_attribute, "Constant: no value attribute");
}

/// What generators share: an output element depends on few or no input elements and one input element reaches many
/// outputs.
struct generator_traits {
  static constexpr mapping_type mapping = mapping_type::one_to_many;
  static constexpr layout_class layout = layout_class::ili_fixed;
  static constexpr computation_kind kind = computation_kind::generator;
};

/// Constant: the tensor in its attribute.
struct constant_op : generator_traits {
  static constexpr std::string_view name = "Constant";
  static constexpr int since = 25;
  static constexpr op_arity arity{0, 0};
  static constexpr dynamism_class dynamism = dynamism_class::isdo;

  static void infer(const node_facts& facts, std::span<value_facts> outputs) {
    if (outputs[0].is_constant()) return;
    tensor content = constant_value(*facts.attributes);
    outputs[0].type = content.type();
    outputs[0].dims = to_shape(content.dims());
    outputs[0].constant = std::move(content);
  }
};

/// ConstantOfShape: one value (attribute `value`, 0 of float32 by default) at every place of the dims in input 0.
struct constant_of_shape_op : generator_traits {
  static constexpr std::string_view name = "ConstantOfShape";
  static constexpr input_set structural_inputs{0};
  static constexpr int since = 25;
  static constexpr op_arity arity{1, 1};
  // SoD2 Table 2 lists it so; it holds where the dims come from shapes, which dynamism_of checks.
  static constexpr dynamism_class dynamism = dynamism_class::isdo;

  static dynamism_class dynamism_of(const node_facts& facts) {
    return determined_by(facts, {0}) == dynamism_class::isdos ? dynamism : dynamism_class::isvdos;
  }
  static void infer(const node_facts& facts, std::span<value_facts> outputs) {
    const tensor value = value_of(facts);
    set_type(outputs, 0, value.type());
    if (const auto wanted = facts.elements(0)) {
      for (const index_expr& dim : *wanted)
        if (dim.range().high < 0) throw error(errc::shape_mismatch, "ConstantOfShape: a dim is " + to_string(dim));
      set_dims(outputs, 0, *wanted);
    } else if (const auto rank = length_of(facts, 0)) {
      set_dims(outputs, 0, data_dims(facts, 0, *rank));
    }
    if (!outputs[0].dims || !(is_integer(value.type()) || value.type() == dtype::boolean)) return;
    const index_expr count = element_count(*outputs[0].dims);
    if (count.is_constant() && count.constant() <= largest_symbolic_value)
      outputs[0].elements =
          std::vector<index_expr>(static_cast<std::size_t>(count.constant()), integers_of(value).at(0));
  }
  static void view(view_builder& builder, const node_facts& facts, std::size_t, std::span<const index_expr>) {
    builder.fill(first_number(value_of(facts)));
  }

 private:
  static tensor value_of(const node_facts& facts) {
    tensor value = facts.attributes->get<tensor>("value", tensor::scalar(0.0F));
    if (value.size() != 1)
      throw error(errc::bad_attribute,
                  "ConstantOfShape: the value has " + std::to_string(value.size()) + " elements, not 1");
    return value;
  }
};

/// Range: start, start + delta, ... before limit.
struct range_op : generator_traits {
  static constexpr std::string_view name = "Range";
  static constexpr input_set structural_inputs{0, 1, 2};
  static constexpr int since = 27;
  static constexpr op_arity arity{3, 3};
  static constexpr dynamism_class dynamism = dynamism_class::isvdos;

  static dynamism_class dynamism_of(const node_facts& facts) { return determined_by(facts, {0, 1, 2}); }

  static void infer(const node_facts& facts, std::span<value_facts> outputs) {
    for (std::size_t i = 0; i < 3; ++i) set_type(outputs, 0, facts.type(i));
    const auto start = facts.elements(0);
    const auto limit = facts.elements(1);
    const auto delta = facts.elements(2);
    if (start && limit && delta && start->size() == 1 && limit->size() == 1 && delta->size() == 1 &&
        delta->front().is_constant()) {
      const std::int64_t step = delta->front().constant();
      if (step == 0) throw error(errc::shape_mismatch, "Range: delta is 0");
      const index_expr span = step > 0 ? limit->front() - start->front() : start->front() - limit->front();
      const index_expr count = max(ceildiv(span, step > 0 ? step : -step), 0);
      set_dims(outputs, 0, {count});
      if (!count.is_constant() || count.constant() > largest_symbolic_value) return;
      std::vector<index_expr> elements;
      for (std::int64_t k = 0; k < count.constant(); ++k) elements.push_back(start->front() + k * step);
      outputs[0].elements = std::move(elements);
      return;
    }
    if (facts.constant(0) != nullptr && facts.constant(1) != nullptr && facts.constant(2) != nullptr) {
      const double first = first_number(*facts.constant(0));
      const double last = first_number(*facts.constant(1));
      const double step = first_number(*facts.constant(2));
      const double count = step == 0.0 ? -1.0 : std::ceil((last - first) / step);
      if (std::isfinite(count) && step != 0.0 && count < 9.0e15) {
        set_dims(outputs, 0, {static_cast<std::int64_t>(count < 0.0 ? 0.0 : count)});
        return;
      }
      throw error(errc::shape_mismatch, "Range: from " + std::to_string(first) + " to " + std::to_string(last) +
                                            " by " + std::to_string(step));
    }
    set_dims(outputs, 0, {facts.data_dim(0, 0)});
  }
};

/// EyeLike: ones on the k-th diagonal of a matrix of input 0's dims.
struct eye_like_op : generator_traits {
  static constexpr std::string_view name = "EyeLike";
  static constexpr int since = 22;
  static constexpr op_arity arity{1, 1};
  static constexpr dynamism_class dynamism = dynamism_class::isdo;

  static void infer(const node_facts& facts, std::span<value_facts> outputs) {
    set_type(outputs, 0, type_attribute(*facts.attributes, "dtype", facts.type(0)));
    const shape* dims = facts.dims(0);
    if (dims == nullptr) return;
    if (dims->size() != 2)
      throw error(errc::shape_mismatch, "EyeLike: the input " + to_string(*dims) + " is no matrix");
    set_dims(outputs, 0, *dims);
  }
};

/// OneHot: along a new axis of `depth` places the second of `values` where the place equals the index, else the first.
struct one_hot_op : generator_traits {
  static constexpr std::string_view name = "OneHot";
  static constexpr input_set structural_inputs{1};
  static constexpr int since = 28;
  static constexpr op_arity arity{3, 3};
  static constexpr dynamism_class dynamism = dynamism_class::isvdos;

  static dynamism_class dynamism_of(const node_facts& facts) { return determined_by(facts, {1}); }

  static void infer(const node_facts& facts, std::span<value_facts> outputs) {
    set_type(outputs, 0, facts.type(2));
    const shape* indices = facts.dims(0);
    if (indices == nullptr) return;
    shape result = *indices;
    const std::size_t axis = axis_of(facts.attributes->get_int("axis", -1), result.size() + 1, name);
    result.insert(result.begin() + static_cast<std::ptrdiff_t>(axis),
                  depth_of(facts).value_or(facts.data_dim(0, axis)));
    set_dims(outputs, 0, std::move(result));
    // Exporters write how often each dim is repeated so. Indices of other types have no view.
    if (is_integer(facts.type(0))) carry_elements(facts, outputs, &one_hot_op::view);
  }
  static void view(view_builder& builder, const node_facts& facts, std::size_t, std::span<const index_expr> index) {
    if (!is_integer(facts.type(0))) no_view(name, "its indices are no integers");
    const std::size_t axis = axis_of(facts.attributes->get_int("axis", -1), index.size(), name);
    std::vector<index_expr> at(index.begin(), index.end());
    at.erase(at.begin() + static_cast<std::ptrdiff_t>(axis));
    const auto known = depth_of(facts);
    if (!known && !is_integer(facts.type(1))) no_view(name, "its depth is no integer");
    const index_expr depth = known ? *known : element_of(builder, facts, 1, 0, {0, unbounded});
    // An index outside of -depth and depth - 1 marks no place.
    const index_expr place = builder.load(0, at, {-unbounded, unbounded});
    builder.piece(2, {index_expr(1)}, {{place, index[axis], index[axis] + 1}});
    builder.piece(2, {index_expr(1)}, {{place + depth, index[axis], index[axis] + 1}});
    builder.fill_from(2);
  }

 private:
  static std::optional<index_expr> depth_of(const node_facts& facts) {
    if (const auto known = facts.elements(1); known && known->size() == 1) return known->front();
    if (const tensor* held = facts.constant(1)) return index_expr(static_cast<std::int64_t>(first_number(*held)));
    return std::nullopt;
  }
};

}  // namespace dnnopt::ops

#endif  // DNNOPT_OPS_GENERATOR_HPP

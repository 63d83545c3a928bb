// Owns the conversion of attribute messages to attributes, and of a Constant's attributes to its tensor.
#ifndef DNNOPT_ONNX_CONVERT_ATTRIBUTE_HPP
#define DNNOPT_ONNX_CONVERT_ATTRIBUTE_HPP

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <dnnopt/attribute.hpp>
#include <dnnopt/error.hpp>
#include <dnnopt/onnx/model_proto.hpp>
#include <dnnopt/onnx/tensor_proto.hpp>

namespace dnnopt::onnx {

/// ONNX's text of a type, for example "seq(tensor(float32))".
[[nodiscard]] inline std::string to_string(const type_proto& type) {
  using kind = type_proto::kind;
  const auto around = [&](const char* name) {
    return name + ("(" + (type.element ? to_string(*type.element) : std::string()) + ")");
  };
  switch (type.held) {
    case kind::tensor:
      return "tensor(" +
             std::string(name_of(type.element_type < 0 || type.element_type > 255
                                     ? dtype::undefined
                                     : static_cast<dtype>(type.element_type))) +
             ")";
    case kind::sequence:
      return around("seq");
    case kind::optional:
      return around("optional");
    case kind::map:
      return around("map");
    case kind::sparse_tensor:
      return "sparse_tensor";
    default:
      return "undefined";
  }
}

/// The value of an attribute other than a graph. Types are their text, sparse tensors are made dense.
/// Errors: bad_attribute where the type is unknown or its value is missing; those of tensors.
[[nodiscard]] inline attribute convert_attribute(const attribute_proto& a, const tensor_source& source) {
  const auto bad = [&](const std::string& why) {
    return error(errc::bad_attribute,
                 "attribute '" + std::string(a.name) + "' at byte " + std::to_string(a.position) + " " + why);
  };
  switch (a.type) {
    case attribute_type::float_value:
      return a.f;
    case attribute_type::int_value:
      return a.i;
    case attribute_type::string:
      return std::string(a.s);
    case attribute_type::tensor:
      if (!a.t) throw bad("holds no tensor");
      return to_tensor(*a.t, source);
    case attribute_type::floats:
      return a.floats;
    case attribute_type::ints:
      return a.ints;
    case attribute_type::strings:
      return std::vector<std::string>(a.strings.begin(), a.strings.end());
    case attribute_type::tensors: {
      std::vector<tensor> all;
      for (const tensor_proto& t : a.tensors) all.push_back(to_tensor(t, source));
      return all;
    }
    case attribute_type::sparse_tensor:
      if (!a.sparse) throw bad("holds no sparse tensor");
      return to_tensor(*a.sparse, source);
    case attribute_type::type:
      if (!a.tp) throw bad("holds no type");
      return to_string(*a.tp);
    case attribute_type::graph:
      throw bad("is a graph where none is taken");
    default:
      throw bad("has type " + std::to_string(static_cast<std::int64_t>(a.type)) +
                ", which no operator of ai.onnx takes");
  }
}

/// The tensor that a Constant's attributes state. Errors: bad_attribute where none or several do, or of another type.
[[nodiscard]] inline tensor constant_content(const attribute_map& attributes) {
  if (attributes.size() != 1)
    throw error(errc::bad_attribute, "a Constant has one attribute, this one has " + std::to_string(attributes.size()));
  const auto only = *attributes.begin();
  const std::string& key = only.first;
  if (key == "value" || key == "sparse_value") return attributes.require<tensor>(key);
  if (key == "value_float") return tensor::scalar(attributes.require<float>(key));
  if (key == "value_int") return tensor::scalar(attributes.require<std::int64_t>(key));
  if (key == "value_floats") {
    const auto& v = attributes.require<std::vector<float>>(key);
    return tensor::of<float>({static_cast<std::int64_t>(v.size())}, v);
  }
  if (key == "value_ints") {
    const auto& v = attributes.require<std::vector<std::int64_t>>(key);
    return tensor::of<std::int64_t>({static_cast<std::int64_t>(v.size())}, v);
  }
  if (key == "value_string") {
    tensor t(dtype::string, {});
    t.mutable_strings()[0] = attributes.require<std::string>(key);
    return t;
  }
  if (key == "value_strings") {
    const auto& v = attributes.require<std::vector<std::string>>(key);
    tensor t(dtype::string, {static_cast<std::int64_t>(v.size())});
    t.mutable_strings() = v;
    return t;
  }
  throw error(errc::bad_attribute, "a Constant has no attribute '" + key + "'");
}

}  // namespace dnnopt::onnx

#endif  // DNNOPT_ONNX_CONVERT_ATTRIBUTE_HPP

// Owns the operators of ai.onnx.ml on categories and maps: LabelEncoder, OneHotEncoder, CategoryMapper, ZipMap,
// DictVectorizer.
#ifndef DNNOPT_OPS_ML_ENCODER_HPP
#define DNNOPT_OPS_ML_ENCODER_HPP

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <dnnopt/ops/structure_transfer.hpp>

namespace dnnopt::ops::ml {

struct encoder_traits {
  static constexpr std::string_view domain = "ai.onnx.ml";
  static constexpr mapping_type mapping = mapping_type::one_to_one;
  static constexpr layout_class layout = layout_class::ili_variable;
  static constexpr dynamism_class dynamism = dynamism_class::isdos;
  static constexpr computation_kind kind = computation_kind::other;
};

/// LabelEncoder: each element's value in a table of keys, or the default. In its first form strings and their positions
/// stand for each other.
struct label_encoder_op : encoder_traits {
  static constexpr std::string_view name = "LabelEncoder";
  static constexpr int since = 4;
  static constexpr op_arity arity{1, 1};
  static void infer(const node_facts& facts, std::span<value_facts> outputs) {
    const attribute_map& a = *facts.attributes;
    if (const tensor* values = a.find_as<tensor>("values_tensor"))
      set_type(outputs, 0, values->type());
    else if (a.contains("values_strings"))
      set_type(outputs, 0, dtype::string);
    else if (a.contains("values_int64s"))
      set_type(outputs, 0, dtype::int64);
    else if (a.contains("values_floats"))
      set_type(outputs, 0, dtype::float32);
    else if (facts.type(0) != dtype::undefined)
      set_type(outputs, 0, facts.type(0) == dtype::string ? dtype::int64 : dtype::string);
    if (const shape* dims = facts.dims(0)) set_dims(outputs, 0, *dims);
  }
};

/// CategoryMapper: strings to their integers, or integers to their strings.
struct category_mapper_op : encoder_traits {
  static constexpr std::string_view name = "CategoryMapper";
  static constexpr op_arity arity{1, 1};
  static void infer(const node_facts& facts, std::span<value_facts> outputs) {
    if (facts.type(0) != dtype::undefined)
      set_type(outputs, 0, facts.type(0) == dtype::string ? dtype::int64 : dtype::string);
    if (const shape* dims = facts.dims(0)) set_dims(outputs, 0, *dims);
  }
};

/// OneHotEncoder: a new last axis with 1 at the element's category. An element of no category is an error, or zeros
/// where attribute `zeros` is set.
struct one_hot_encoder_op : encoder_traits {
  static constexpr std::string_view name = "OneHotEncoder";
  static constexpr op_arity arity{1, 1};
  static constexpr mapping_type mapping = mapping_type::one_to_many;
  static void infer(const node_facts& facts, std::span<value_facts> outputs) {
    set_type(outputs, 0, dtype::float32);
    const shape* dims = facts.dims(0);
    if (dims == nullptr) return;
    shape result = *dims;
    result.emplace_back(
        static_cast<std::int64_t>(facts.attributes->get_ints("cats_int64s").size() +
                                  facts.attributes->get<std::vector<std::string>>("cats_strings", {}).size()));
    set_dims(outputs, 0, std::move(result));
  }
};

/// ZipMap: a sequence with one map per row, from class labels to the row's numbers.
struct zip_map_op : encoder_traits {
  static constexpr std::string_view name = "ZipMap";
  static constexpr op_arity arity{1, 1};
  static constexpr mapping_type mapping = mapping_type::many_to_many;
  static constexpr computation_kind kind = computation_kind::container;
  static void infer(const node_facts&, std::span<value_facts> outputs) {
    outputs[0].kind = value_kind::sequence;
    set_type(outputs, 0, dtype::float32);
  }
};

/// DictVectorizer: a map's values in the order of a vocabulary, zero where the map lacks a key: [1, vocabulary].
struct dict_vectorizer_op : encoder_traits {
  static constexpr std::string_view name = "DictVectorizer";
  static constexpr op_arity arity{1, 1};
  static constexpr mapping_type mapping = mapping_type::many_to_many;
  static constexpr computation_kind kind = computation_kind::container;
  static void infer(const node_facts& facts, std::span<value_facts> outputs) {
    const auto words =
        static_cast<std::int64_t>(facts.attributes->get_ints("int64_vocabulary").size() +
                                  facts.attributes->get<std::vector<std::string>>("string_vocabulary", {}).size());
    set_dims(outputs, 0, {1, words});
  }
};

}  // namespace dnnopt::ops::ml

#endif  // DNNOPT_OPS_ML_ENCODER_HPP

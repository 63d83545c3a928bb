// Owns the operators on strings and n-grams, and ImageDecoder: StringConcat, StringSplit, StringNormalizer,
// RegexFullMatch, TfIdfVectorizer.
#ifndef DNNOPT_OPS_TEXT_HPP
#define DNNOPT_OPS_TEXT_HPP

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dnnopt/ops/generator.hpp>

namespace dnnopt::ops {

/// Errors: type_mismatch where input `i` is known not to hold strings.
inline void require_strings(const node_facts& facts, std::size_t i, std::string_view op) {
  const dtype type = facts.type(i);
  if (type != dtype::undefined && type != dtype::string)
    throw error(errc::type_mismatch, std::string(op) + ": input " + std::to_string(i) + " is " +
                                         std::string(name_of(type)) + ", not string");
}

/// StringConcat: strings joined pair by pair, broadcast.
struct string_concat_op {
  static constexpr std::string_view name = "StringConcat";
  static constexpr int since = 20;
  static constexpr op_arity arity{2, 2};
  static constexpr mapping_type mapping = mapping_type::one_to_one;
  static constexpr layout_class layout = layout_class::ili_variable;
  static constexpr dynamism_class dynamism = dynamism_class::isdos;
  static constexpr computation_kind kind = computation_kind::element_wise;
  static constexpr algebra properties = algebra::associative;

  static mapping_type mapping_of(const node_facts& facts, std::size_t input, std::size_t) {
    const shape* own = facts.dims(input);
    const shape* other = facts.dims(1 - std::min<std::size_t>(input, 1));
    return own != nullptr && other != nullptr && !(broadcast(*own, *other) == *own) ? mapping_type::one_to_many
                                                                                    : mapping;
  }
  static void infer(const node_facts& facts, std::span<value_facts> outputs) {
    require_strings(facts, 0, name);
    require_strings(facts, 1, name);
    set_type(outputs, 0, dtype::string);
    if (facts.dims(0) != nullptr && facts.dims(1) != nullptr)
      set_dims(outputs, 0, broadcast(*facts.dims(0), *facts.dims(1)));
  }
};

/// StringSplit: the parts of each string along a new last axis, and their number.
struct string_split_op {
  static constexpr std::string_view name = "StringSplit";
  static constexpr int since = 20;
  static constexpr op_arity arity{1, 1, 2, 2};
  static constexpr mapping_type mapping = mapping_type::one_to_many;
  static constexpr layout_class layout = layout_class::ili_fixed;
  static constexpr dynamism_class dynamism = dynamism_class::edo;
  static constexpr computation_kind kind = computation_kind::other;

  static void infer(const node_facts& facts, std::span<value_facts> outputs) {
    require_strings(facts, 0, name);
    set_type(outputs, 0, dtype::string);
    set_type(outputs, 1, dtype::int64);
    const shape* dims = facts.dims(0);
    if (dims == nullptr) return;
    shape parts = *dims;
    parts.push_back(facts.data_dim(0, dims->size()));
    set_dims(outputs, 0, std::move(parts));
    set_dims(outputs, 1, *dims);
  }
};

/// StringNormalizer: case changed and stop words removed.
struct string_normalizer_op {
  static constexpr std::string_view name = "StringNormalizer";
  static constexpr int since = 10;
  static constexpr op_arity arity{1, 1};
  static constexpr mapping_type mapping = mapping_type::many_to_many;
  static constexpr layout_class layout = layout_class::ili_fixed;
  static constexpr dynamism_class dynamism = dynamism_class::edo;
  static constexpr computation_kind kind = computation_kind::other;

  static void infer(const node_facts& facts, std::span<value_facts> outputs) {
    require_strings(facts, 0, name);
    set_type(outputs, 0, dtype::string);
    const shape* dims = facts.dims(0);
    if (dims == nullptr || dims->empty()) return;
    shape result = *dims;
    result.back() = facts.data_dim(0, dims->size() - 1);
    set_dims(outputs, 0, std::move(result));
  }
};

/// RegexFullMatch: whether each string as a whole matches the pattern (RE2 syntax).
struct regex_full_match_op {
  static constexpr std::string_view name = "RegexFullMatch";
  static constexpr int since = 20;
  static constexpr op_arity arity{1, 1};
  static constexpr mapping_type mapping = mapping_type::one_to_one;
  static constexpr layout_class layout = layout_class::ili_variable;
  static constexpr dynamism_class dynamism = dynamism_class::isdos;
  static constexpr computation_kind kind = computation_kind::element_wise;

  static void infer(const node_facts& facts, std::span<value_facts> outputs) {
    require_strings(facts, 0, name);
    set_type(outputs, 0, dtype::boolean);
    if (const shape* dims = facts.dims(0)) set_dims(outputs, 0, *dims);
  }
};

/// TfIdfVectorizer: counts of the n-grams in the pool per row, weighted by `mode`.
struct tf_idf_vectorizer_op {
  static constexpr std::string_view name = "TfIdfVectorizer";
  static constexpr int since = 9;
  static constexpr op_arity arity{1, 1};
  static constexpr mapping_type mapping = mapping_type::many_to_many;
  static constexpr layout_class layout = layout_class::ild_fixed;
  static constexpr dynamism_class dynamism = dynamism_class::isdos;
  static constexpr computation_kind kind = computation_kind::other;

  static void infer(const node_facts& facts, std::span<value_facts> outputs) {
    set_type(outputs, 0, dtype::float32);
    const shape* dims = facts.dims(0);
    if (dims == nullptr) return;
    if (dims->size() > 2)
      throw error(errc::shape_mismatch, "TfIdfVectorizer: the input " + to_string(*dims) + " has rank above 2");
    std::int64_t width = 0;
    for (const std::int64_t place : facts.attributes->get_ints("ngram_indexes")) width = std::max(width, place + 1);
    shape result;
    if (dims->size() == 2) result.push_back((*dims)[0]);
    result.emplace_back(width);
    set_dims(outputs, 0, std::move(result));
  }
};

/// ImageDecoder: the pixels [height, width, channels] of an encoded image.
struct image_decoder_op {
  static constexpr std::string_view name = "ImageDecoder";
  static constexpr int since = 20;
  static constexpr op_arity arity{1, 1};
  static constexpr mapping_type mapping = mapping_type::many_to_many;
  static constexpr layout_class layout = layout_class::ild_fixed;
  static constexpr dynamism_class dynamism = dynamism_class::edo;
  static constexpr computation_kind kind = computation_kind::other;

  static void infer(const node_facts& facts, std::span<value_facts> outputs) {
    set_type(outputs, 0, dtype::uint8);
    const bool gray = facts.attributes->get_string("pixel_format", "RGB") == "Grayscale";
    set_dims(outputs, 0, {facts.data_dim(0, 0), facts.data_dim(0, 1), gray ? 1 : 3});
  }
};

}  // namespace dnnopt::ops

#endif  // DNNOPT_OPS_TEXT_HPP

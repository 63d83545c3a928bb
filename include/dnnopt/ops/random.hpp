// Owns the operators that draw random numbers: RandomNormal, RandomUniform, their Like forms, Bernoulli, Multinomial.
#ifndef DNNOPT_OPS_RANDOM_HPP
#define DNNOPT_OPS_RANDOM_HPP

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include <dnnopt/ops/generator.hpp>

namespace dnnopt::ops {

/// RandomNormal and RandomUniform: dims and type are attributes.
struct random_traits : generator_traits {
  static constexpr computation_kind kind = computation_kind::random;
  static constexpr int since = 22;
  static constexpr op_arity arity{0, 0};
  static constexpr dynamism_class dynamism = dynamism_class::isdo;

  static void infer(const node_facts& facts, std::span<value_facts> outputs) {
    set_type(outputs, 0, type_attribute(*facts.attributes, "dtype", dtype::float32));
    const auto& dims = facts.attributes->require<std::vector<std::int64_t>>("shape");
    for (const std::int64_t dim : dims)
      if (dim < 0) throw error(errc::bad_attribute, "a random tensor has a negative dim");
    set_dims(outputs, 0, to_shape(dims));
  }
};
struct random_normal_op : random_traits {
  static constexpr std::string_view name = "RandomNormal";
};
struct random_uniform_op : random_traits {
  static constexpr std::string_view name = "RandomUniform";
};

/// The Like forms and Bernoulli: dims are the input's, the type too unless `dtype` says otherwise.
struct random_like_traits : generator_traits {
  static constexpr computation_kind kind = computation_kind::random;
  static constexpr int since = 22;
  static constexpr op_arity arity{1, 1};
  static constexpr dynamism_class dynamism = dynamism_class::isdo;

  static void infer(const node_facts& facts, std::span<value_facts> outputs) {
    set_type(outputs, 0, type_attribute(*facts.attributes, "dtype", facts.type(0)));
    if (const shape* dims = facts.dims(0)) set_dims(outputs, 0, *dims);
  }
};
struct random_normal_like_op : random_like_traits {
  static constexpr std::string_view name = "RandomNormalLike";
};
struct random_uniform_like_op : random_like_traits {
  static constexpr std::string_view name = "RandomUniformLike";
};

/// Bernoulli: 1 with the probability that the input element states, else 0.
struct bernoulli_op : random_like_traits {
  static constexpr std::string_view name = "Bernoulli";
  static constexpr mapping_type mapping = mapping_type::one_to_one;
  static constexpr dynamism_class dynamism = dynamism_class::isdos;
};

/// Multinomial: `sample_size` classes drawn for each row of unnormalized log-probabilities.
struct multinomial_op : generator_traits {
  static constexpr computation_kind kind = computation_kind::random;
  static constexpr std::string_view name = "Multinomial";
  static constexpr int since = 22;
  static constexpr op_arity arity{1, 1};
  static constexpr mapping_type mapping = mapping_type::many_to_many;
  static constexpr dynamism_class dynamism = dynamism_class::isdos;

  static void infer(const node_facts& facts, std::span<value_facts> outputs) {
    set_type(outputs, 0, type_attribute(*facts.attributes, "dtype", dtype::int32));
    const shape* dims = facts.dims(0);
    if (dims == nullptr) return;
    if (dims->size() != 2)
      throw error(errc::shape_mismatch, "Multinomial: the input " + to_string(*dims) + " is no matrix");
    set_dims(outputs, 0, {(*dims)[0], facts.attributes->get_int("sample_size", 1)});
  }
};

}  // namespace dnnopt::ops

#endif  // DNNOPT_OPS_RANDOM_HPP

// Owns the reference evaluation of Constant, ConstantOfShape, Range, EyeLike.
#ifndef DNNOPT_REFERENCE_GENERATOR_HPP
#define DNNOPT_REFERENCE_GENERATOR_HPP

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <dnnopt/ops/generator.hpp>
#include <dnnopt/reference/element_copy.hpp>
#include <dnnopt/reference/elements.hpp>
#include <dnnopt/reference/reference_row.hpp>

namespace dnnopt::reference {

namespace generator {

inline void constant(const attribute_map& attributes, std::span<const tensor>, std::span<tensor> outputs) {
  outputs[0] = ops::constant_value(attributes);
}

inline void constant_of_shape(const attribute_map& attributes, std::span<const tensor> inputs,
                              std::span<tensor> outputs) {
  const tensor value = attributes.get<tensor>("value", tensor::scalar(0.0F));
  tensor result(value.type(), integers_of(inputs[0]));
  if (result.size() != 0) fill_elements(value, result);
  outputs[0] = std::move(result);
}

inline void range(const attribute_map&, std::span<const tensor> inputs, std::span<tensor> outputs) {
  const dtype type = inputs[0].type();
  for (const tensor& input : inputs)
    if (input.size() != 1 || input.type() != type)
      throw error(errc::type_mismatch, "Range: three scalars of one type are needed");
  const auto run = [&](auto wide) {
    using C = decltype(wide);
    const C start = load_all<C>(inputs[0])[0];
    const C limit = load_all<C>(inputs[1])[0];
    const C delta = load_all<C>(inputs[2])[0];
    const double exact = std::ceil(static_cast<double>(limit - start) / static_cast<double>(delta));
    if (delta == C{0} || !std::isfinite(exact)) throw error(errc::invalid_argument, "Range: delta is 0 or not finite");
    const auto count = static_cast<std::int64_t>(std::max(exact, 0.0));
    std::vector<C> values;
    for (std::int64_t k = 0; k < count; ++k) values.push_back(static_cast<C>(start + static_cast<C>(k) * delta));
    outputs[0] = store_all<C>(type, {count}, values);
  };
  if (is_floating(type))
    run(double{});
  else
    run(std::int64_t{});
}

inline void eye_like(const attribute_map& attributes, std::span<const tensor> inputs, std::span<tensor> outputs) {
  if (inputs[0].rank() != 2)
    throw error(errc::shape_mismatch, "EyeLike: the input has rank " + std::to_string(inputs[0].rank()));
  const dtype type = ops::type_attribute(attributes, "dtype", inputs[0].type());
  const std::int64_t shift = attributes.get_int("k", 0);
  const std::int64_t columns = inputs[0].dims()[1];
  std::vector<double> values(static_cast<std::size_t>(inputs[0].size()), 0.0);
  for (std::size_t at = 0; at < values.size(); ++at) {
    const auto place = static_cast<std::int64_t>(at);
    if (place % columns - place / columns == shift) values[at] = 1.0;
  }
  outputs[0] = store_all<double>(type, inputs[0].dims(), values);
}

}  // namespace generator

inline constexpr std::array generator_rows{
    reference_row{"", "Constant", generator::constant},
    reference_row{"", "ConstantOfShape", generator::constant_of_shape},
    reference_row{"", "Range", generator::range},
    reference_row{"", "EyeLike", generator::eye_like},
};

}  // namespace dnnopt::reference

#endif  // DNNOPT_REFERENCE_GENERATOR_HPP

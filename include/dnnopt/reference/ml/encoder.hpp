// Owns the reference evaluation of ai.onnx.ml's encoders of categories.
#ifndef DNNOPT_REFERENCE_ML_ENCODER_HPP
#define DNNOPT_REFERENCE_ML_ENCODER_HPP

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <dnnopt/attribute.hpp>
#include <dnnopt/error.hpp>
#include <dnnopt/ops/facts.hpp>
#include <dnnopt/reference/elements.hpp>
#include <dnnopt/reference/reference_row.hpp>
#include <dnnopt/tensor.hpp>

namespace dnnopt::reference::ml {

/// A tensor of strings with these elements.
[[nodiscard]] inline tensor string_tensor(dim_list dims, std::vector<std::string> values) {
  tensor result(dtype::string, std::move(dims));
  result.mutable_strings() = std::move(values);
  return result;
}

/// The list that attribute `name`_tensor, _strings, _int64s or _floats holds, or nothing.
[[nodiscard]] inline std::optional<tensor> list_of_attribute(const attribute_map& a, const std::string& name) {
  if (const tensor* held = a.find_as<tensor>(name + "_tensor")) return *held;
  const auto count = [](const auto& list) { return dim_list{static_cast<std::int64_t>(list.size())}; };
  if (const auto* held = a.find_as<std::vector<std::string>>(name + "_strings"))
    return string_tensor(count(*held), *held);
  if (a.contains(name + "_int64s")) {
    const std::vector<std::int64_t> list = a.get_ints(name + "_int64s");
    return tensor::of<std::int64_t>(count(list), list);
  }
  if (a.contains(name + "_floats")) {
    const std::vector<float> list = a.get_floats(name + "_floats");
    return tensor::of<float>(count(list), list);
  }
  return std::nullopt;
}

/// Finds the position of elements in a list of keys: the last of equal keys; NaN is equal to NaN.
class key_positions {
 public:
  explicit key_positions(const tensor& keys) {
    for (std::size_t k = 0; k < static_cast<std::size_t>(keys.size()); ++k) {
      if (keys.type() == dtype::string)
        strings_[keys.strings()[k]] = k;
      else if (!is_floating(keys.type()))
        integers_[integers_of(keys)[k]] = k;
      else if (const double number = load_all<double>(keys)[k]; std::isnan(number))
        nan_ = k;
      else
        numbers_[number] = k;
    }
  }
  /// Of every element of `x`. Errors: type_mismatch where keys and elements are of different kinds.
  [[nodiscard]] std::vector<std::optional<std::size_t>> of(const tensor& x) const {
    std::vector<std::optional<std::size_t>> found;
    const auto look = [&](const auto& table, const auto& key) {
      const auto at = table.find(key);
      found.push_back(at == table.end() ? std::nullopt : std::optional(at->second));
    };
    if (x.type() == dtype::string) {
      for (const std::string& s : x.strings()) look(strings_, s);
    } else if (is_floating(x.type())) {
      for (const double v : load_all<double>(x)) {
        if (std::isnan(v))
          found.push_back(nan_);
        else
          look(numbers_, v);
      }
    } else {
      for (const std::int64_t v : integers_of(x)) look(integers_, v);
    }
    return found;
  }

 private:
  std::map<std::string, std::size_t> strings_;
  std::map<std::int64_t, std::size_t> integers_;
  std::map<double, std::size_t> numbers_;
  std::optional<std::size_t> nan_;
};

/// Elements of `values` at `positions`, `fallback` (of one element) where there is none. Errors: bad_attribute where a
/// position lies behind the values.
[[nodiscard]] inline tensor picked(const std::vector<std::optional<std::size_t>>& positions, const tensor& values,
                                   const tensor& fallback, const dim_list& dims) {
  if (fallback.size() < 1 || fallback.type() != values.type())
    throw error(errc::type_mismatch, "the default is " + std::string(name_of(fallback.type())) + ", the values are " +
                                         std::string(name_of(values.type())));
  tensor result(values.type(), dims);
  for (std::size_t i = 0; i < positions.size(); ++i) {
    const std::size_t at = positions[i].value_or(0);
    const tensor& from = positions[i] ? values : fallback;
    if (at >= static_cast<std::size_t>(from.size()))
      throw error(errc::bad_attribute, "key " + std::to_string(at) + " has no value");
    if (values.type() == dtype::string) {
      result.mutable_strings()[i] = from.strings()[at];
      continue;
    }
    const std::size_t width = size_of(values.type());
    const auto element = from.bytes().subspan(at * width, width);
    std::copy(element.begin(), element.end(), result.mutable_bytes().begin() + static_cast<std::ptrdiff_t>(i * width));
  }
  return result;
}

[[nodiscard]] inline tensor default_value(const attribute_map& a, dtype type) {
  if (const tensor* held = a.find_as<tensor>("default_tensor"))
    if (held->size() != 0) return *held;
  if (type == dtype::string) return string_tensor({}, {a.get_string("default_string", "_Unused")});
  if (is_floating(type))
    return store_all<double>(type, {}, std::vector<double>{static_cast<double>(a.get_float("default_float", -0.0F))});
  return store_all<std::int64_t>(type, {}, std::vector<std::int64_t>{a.get_int("default_int64", -1)});
}

/// 0, 1, ..., count - 1.
[[nodiscard]] inline tensor counting(std::int64_t count) {
  std::vector<std::int64_t> numbers;
  for (std::int64_t k = 0; k < count; ++k) numbers.push_back(k);
  return tensor::of<std::int64_t>({count}, numbers);
}

inline void label_encoder(const attribute_map& a, std::span<const tensor> inputs, std::span<tensor> outputs) {
  const tensor& x = inputs[0];
  std::optional<tensor> keys = list_of_attribute(a, "keys");
  std::optional<tensor> values = list_of_attribute(a, "values");
  if (const auto* classes = a.find_as<std::vector<std::string>>("classes_strings")) {
    const auto count = static_cast<std::int64_t>(classes->size());
    keys = string_tensor({count}, *classes);
    values = counting(count);
    if (x.type() != dtype::string) std::swap(keys, values);
  }
  if (!keys || !values) throw error(errc::bad_attribute, "LabelEncoder without keys or values");
  if (keys->size() != values->size())
    throw error(errc::bad_attribute, "LabelEncoder with " + std::to_string(keys->size()) + " keys and " +
                                         std::to_string(values->size()) + " values");
  if ((x.type() == dtype::string) != (keys->type() == dtype::string))
    throw error(errc::type_mismatch, "LabelEncoder with keys of " + std::string(name_of(keys->type())) + " for " +
                                         std::string(name_of(x.type())));
  outputs[0] = picked(key_positions(*keys).of(x), *values, default_value(a, values->type()), x.dims());
}

inline void category_mapper(const attribute_map& a, std::span<const tensor> inputs, std::span<tensor> outputs) {
  const auto& strings = a.require<std::vector<std::string>>("cats_strings");
  const std::vector<std::int64_t> integers = a.require<std::vector<std::int64_t>>("cats_int64s");
  if (strings.size() != integers.size())
    throw error(errc::bad_attribute, "CategoryMapper with " + std::to_string(strings.size()) + " strings and " +
                                         std::to_string(integers.size()) + " integers");
  tensor keys = string_tensor({static_cast<std::int64_t>(strings.size())}, strings);
  tensor values = tensor::of<std::int64_t>(keys.dims(), integers);
  if (inputs[0].type() != dtype::string) std::swap(keys, values);
  outputs[0] = picked(key_positions(keys).of(inputs[0]), values, default_value(a, values.type()), inputs[0].dims());
}

inline void one_hot_encoder(const attribute_map& a, std::span<const tensor> inputs, std::span<tensor> outputs) {
  const std::optional<tensor> cats = list_of_attribute(a, "cats");
  if (!cats) throw error(errc::bad_attribute, "OneHotEncoder without categories");
  tensor x = inputs[0];
  if (is_floating(x.type())) x = store_all<double>(dtype::int64, x.dims(), load_all<double>(x));
  if ((x.type() == dtype::string) != (cats->type() == dtype::string))
    throw error(errc::type_mismatch, "OneHotEncoder with categories of " + std::string(name_of(cats->type())) +
                                         " for " + std::string(name_of(inputs[0].type())));
  const std::vector<std::optional<std::size_t>> found = key_positions(*cats).of(x);
  const auto width = static_cast<std::size_t>(cats->size());
  dim_list dims = x.dims();
  dims.push_back(cats->size());
  tensor result(dtype::float32, std::move(dims));
  const auto to = result.mutable_data<float>();
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (found[i])
      to[i * width + *found[i]] = 1.0F;
    else if (a.get_int("zeros", 1) == 0)
      throw error(errc::invalid_argument, "OneHotEncoder: element " + std::to_string(i) + " is of no category");
  }
  outputs[0] = std::move(result);
}

inline constexpr std::array encoder_rows{
    reference_row{"ai.onnx.ml", "CategoryMapper", category_mapper},
    reference_row{"ai.onnx.ml", "LabelEncoder", label_encoder},
    reference_row{"ai.onnx.ml", "OneHotEncoder", one_hot_encoder},
};

}  // namespace dnnopt::reference::ml

#endif  // DNNOPT_REFERENCE_ML_ENCODER_HPP

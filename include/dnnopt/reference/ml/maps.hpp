// Owns the reference evaluation of ai.onnx.ml's operators on maps.
#ifndef DNNOPT_REFERENCE_ML_MAPS_HPP
#define DNNOPT_REFERENCE_ML_MAPS_HPP

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <dnnopt/reference/container.hpp>
#include <dnnopt/reference/host_value.hpp>
#include <dnnopt/reference/ml/encoder.hpp>
#include <dnnopt/reference/ml/scores.hpp>
#include <dnnopt/reference/view.hpp>

namespace dnnopt::reference::ml {

/// One map per row of [rows, labels] (or for [labels]): the labels and the row's numbers. Errors: shape_mismatch where
/// rows have not as many numbers as there are labels.
inline void zip_map(const attribute_map& a, std::span<const host_value> inputs, std::span<host_value> outputs) {
  const tensor& x = inputs[0].as_tensor();
  const class_labels labels = labels_of(a, "classlabels_int64s");
  const auto count = static_cast<std::int64_t>(labels.size());
  if (x.rank() < 1 || x.rank() > 2 || x.dims().back() != count)
    throw error(errc::shape_mismatch, "ZipMap of " + to_string(x.dims()) + " for " + std::to_string(count) + " labels");
  const tensor keys = labels.strings.empty() ? tensor::of<std::int64_t>({count}, labels.integers)
                                             : string_tensor({count}, labels.strings);
  const tensor rows = x.reshaped({x.rank() == 1 ? 1 : x.dims()[0], count});
  std::vector<tensor> maps;
  for (std::int64_t r = 0; r < rows.dims()[0]; ++r) {
    maps.push_back(keys);
    maps.push_back(view::axis_part(rows, 0, r, 1).reshaped({count}));
  }
  outputs[0] = host_value::sequence_of_maps(std::move(maps), x.type());
}

inline void dict_vectorizer(const attribute_map& a, std::span<const host_value> inputs, std::span<host_value> outputs) {
  const auto& [keys, values] = inputs[0].as_map();
  tensor words;
  if (a.contains("string_vocabulary")) {
    const auto& list = a.require<std::vector<std::string>>("string_vocabulary");
    words = string_tensor({static_cast<std::int64_t>(list.size())}, list);
  } else {
    const auto& list = a.require<std::vector<std::int64_t>>("int64_vocabulary");
    words = tensor::of<std::int64_t>({static_cast<std::int64_t>(list.size())}, list);
  }
  if ((words.type() == dtype::string) != (keys.type() == dtype::string))
    throw error(errc::type_mismatch, "DictVectorizer with a vocabulary of " + std::string(name_of(words.type())) +
                                         " for keys of " + std::string(name_of(keys.type())));
  const tensor none(values.type(), {});
  outputs[0] = picked(key_positions(keys).of(words), values, none, {1, words.size()});
}

inline constexpr std::array map_rows{
    container_row{"DictVectorizer", dict_vectorizer},
    container_row{"ZipMap", zip_map},
};

}  // namespace dnnopt::reference::ml

#endif  // DNNOPT_REFERENCE_ML_MAPS_HPP

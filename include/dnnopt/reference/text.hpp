// Owns the reference evaluation of the operators on strings and n-grams.
#ifndef DNNOPT_REFERENCE_TEXT_HPP
#define DNNOPT_REFERENCE_TEXT_HPP

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dnnopt/reference/broadcast.hpp>
#include <dnnopt/reference/elements.hpp>
#include <dnnopt/reference/reference_row.hpp>
#include <dnnopt/reference/regular_expression.hpp>
#include <dnnopt/reference/view.hpp>

namespace dnnopt::reference {

namespace text {

inline tensor strings_of(dim_list dims, std::vector<std::string> values) {
  tensor result(dtype::string, std::move(dims));
  result.mutable_strings() = std::move(values);
  return result;
}

inline void string_concat(const attribute_map&, std::span<const tensor> inputs, std::span<tensor> outputs) {
  const dim_list dims = broadcast_dims(inputs[0].dims(), inputs[1].dims());
  tensor result = view::broadcast_to(inputs[0], dims);
  const tensor right = view::broadcast_to(inputs[1], dims);
  std::vector<std::string>& joined = result.mutable_strings();
  for (std::size_t k = 0; k < joined.size(); ++k) joined[k] += right.strings()[k];
  outputs[0] = std::move(result);
}

[[nodiscard]] inline bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

/// The parts of `s` between delimiters, at most `most` cuts; an empty delimiter stands for runs of ASCII white space,
/// which also disappear at the begin and, unless the last part is cut short, at the end.
[[nodiscard]] inline std::vector<std::string> split_string(std::string_view s, std::string_view delimiter,
                                                           std::size_t most) {
  std::vector<std::string> parts;
  if (!delimiter.empty()) {
    std::size_t from = 0;
    for (std::size_t cut = 0; parts.size() < most && (cut = s.find(delimiter, from)) != std::string_view::npos;
         from = cut + delimiter.size())
      parts.emplace_back(s.substr(from, cut - from));
    parts.emplace_back(s.substr(from));
    return parts;
  }
  std::size_t at = 0;
  while (true) {
    while (at < s.size() && is_space(s[at])) ++at;
    if (at == s.size()) return parts;
    if (parts.size() == most) {
      parts.emplace_back(s.substr(at));
      return parts;
    }
    const std::size_t from = at;
    while (at < s.size() && !is_space(s[at])) ++at;
    parts.emplace_back(s.substr(from, at - from));
  }
}

inline void string_split(const attribute_map& attributes, std::span<const tensor> inputs, std::span<tensor> outputs) {
  const std::string delimiter = attributes.get_string("delimiter", "");
  const std::int64_t limit = attributes.get_int("maxsplit", -1);
  const std::size_t most = limit < 0 ? std::numeric_limits<std::size_t>::max() : static_cast<std::size_t>(limit);
  std::vector<std::vector<std::string>> all;
  std::vector<std::int64_t> counts;
  std::size_t width = 0;
  for (const std::string& s : inputs[0].strings()) {
    all.push_back(split_string(s, delimiter, most));
    counts.push_back(static_cast<std::int64_t>(all.back().size()));
    width = std::max(width, all.back().size());
  }
  std::vector<std::string> parts;
  for (std::vector<std::string>& own : all) {
    own.resize(width);
    parts.insert(parts.end(), own.begin(), own.end());
  }
  dim_list dims = inputs[0].dims();
  dims.push_back(static_cast<std::int64_t>(width));
  outputs[0] = strings_of(std::move(dims), std::move(parts));
  if (outputs.size() > 1) outputs[1] = tensor::of<std::int64_t>(inputs[0].dims(), counts);
}

/// The string in lower or upper case. Errors: unsupported for letters outside ASCII, whose case depends on the locale.
[[nodiscard]] inline std::string in_case(std::string s, bool upper) {
  for (char& c : s) {
    if ((static_cast<unsigned char>(c) & 0x80U) != 0)
      throw error(errc::unsupported, "the case of '" + s + "' is not ASCII's");
    if (upper && c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
    if (!upper && c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return s;
}

inline void string_normalizer(const attribute_map& attributes, std::span<const tensor> inputs,
                              std::span<tensor> outputs) {
  const dim_list& dims = inputs[0].dims();
  if (dims.empty() || dims.size() > 2 || (dims.size() == 2 && dims[0] != 1))
    throw error(errc::shape_mismatch, "StringNormalizer of " + to_string(dims));
  const bool sensitive = attributes.get_int("is_case_sensitive", 0) != 0;
  const std::string action = attributes.get_string("case_change_action", "NONE");
  if (action != "NONE" && action != "LOWER" && action != "UPPER")
    throw error(errc::bad_attribute, "StringNormalizer: case_change_action '" + action + "'");
  std::vector<std::string> stop = attributes.get<std::vector<std::string>>("stopwords", {});
  if (!sensitive)
    for (std::string& word : stop) word = in_case(std::move(word), false);
  std::vector<std::string> kept;
  for (const std::string& word : inputs[0].strings()) {
    if (!stop.empty() && std::find(stop.begin(), stop.end(), sensitive ? word : in_case(word, false)) != stop.end())
      continue;
    kept.push_back(action == "NONE" ? word : in_case(word, action == "UPPER"));
  }
  if (kept.empty()) kept.emplace_back();
  const auto count = static_cast<std::int64_t>(kept.size());
  outputs[0] = strings_of(dims.size() == 2 ? dim_list{1, count} : dim_list{count}, std::move(kept));
}

inline void regex_full_match(const attribute_map& attributes, std::span<const tensor> inputs,
                             std::span<tensor> outputs) {
  const regular_expression expression(attributes.require<std::string>("pattern"));
  tensor result(dtype::boolean, inputs[0].dims());
  const auto matched = result.mutable_data<bool>();
  for (std::size_t k = 0; k < matched.size(); ++k) matched[k] = expression.matches(inputs[0].strings()[k]);
  outputs[0] = std::move(result);
}

/// Counts n-grams of `items`; `Item` is a string or an integer.
template <class Item>
void count_grams(const attribute_map& attributes, const std::vector<Item>& pool, const std::vector<Item>& items,
                 std::size_t row_length, std::size_t width, std::vector<double>& counts) {
  const std::vector<std::int64_t> starts = attributes.require<std::vector<std::int64_t>>("ngram_counts");
  const std::vector<std::int64_t> places = attributes.require<std::vector<std::int64_t>>("ngram_indexes");
  const auto shortest = static_cast<std::size_t>(attributes.require<std::int64_t>("min_gram_length"));
  const auto longest = static_cast<std::size_t>(attributes.require<std::int64_t>("max_gram_length"));
  const auto skips = static_cast<std::size_t>(attributes.require<std::int64_t>("max_skip_count"));
  // The pool lists the 1-grams, then the 2-grams, ..., each beginning where ngram_counts says; columns run on over all.
  std::map<std::vector<Item>, std::size_t> columns;
  std::size_t next = 0;
  for (std::size_t n = 1; n <= starts.size(); ++n) {
    const auto begin = static_cast<std::size_t>(starts[n - 1]);
    const std::size_t end = n < starts.size() ? static_cast<std::size_t>(starts[n]) : pool.size();
    if (begin > end || end > pool.size() || (end - begin) % n != 0)
      throw error(errc::bad_attribute, "TfIdfVectorizer: ngram_counts");
    for (std::size_t at = begin; at < end; at += n) {
      if (next >= places.size()) throw error(errc::bad_attribute, "TfIdfVectorizer: fewer ngram_indexes than n-grams");
      const auto gram = pool.begin() + static_cast<std::ptrdiff_t>(at);
      columns[std::vector<Item>(gram, gram + static_cast<std::ptrdiff_t>(n))] =
          static_cast<std::size_t>(places[next++]);
    }
  }
  const std::size_t rows = row_length == 0 ? 0 : items.size() / row_length;
  for (std::size_t row = 0; row < rows; ++row)
    for (std::size_t n = shortest; n <= longest; ++n)
      for (std::size_t skip = 0; skip <= (n == 1 ? 0 : skips); ++skip)
        for (std::size_t at = 0; at + (n - 1) * (skip + 1) < row_length; ++at) {
          std::vector<Item> gram;
          for (std::size_t k = 0; k < n; ++k) gram.push_back(items[row * row_length + at + k * (skip + 1)]);
          if (const auto found = columns.find(gram); found != columns.end()) counts[row * width + found->second] += 1.0;
        }
}

inline void tf_idf_vectorizer(const attribute_map& attributes, std::span<const tensor> inputs,
                              std::span<tensor> outputs) {
  const tensor& x = inputs[0];
  if (x.rank() > 2) throw error(errc::shape_mismatch, "TfIdfVectorizer of rank " + std::to_string(x.rank()));
  const std::vector<std::int64_t> places = attributes.require<std::vector<std::int64_t>>("ngram_indexes");
  std::size_t width = 0;
  for (const std::int64_t place : places) {
    if (place < 0) throw error(errc::bad_attribute, "TfIdfVectorizer: a negative index");
    width = std::max(width, static_cast<std::size_t>(place) + 1);
  }
  const auto row_length = static_cast<std::size_t>(x.rank() == 2 ? x.dims()[1] : x.size());
  const std::size_t rows = x.rank() == 2 ? static_cast<std::size_t>(x.dims()[0]) : 1;
  std::vector<double> counts(rows * width, 0.0);
  if (x.type() == dtype::string)
    count_grams(attributes, attributes.get<std::vector<std::string>>("pool_strings", {}), x.strings(), row_length,
                width, counts);
  else
    count_grams(attributes, attributes.get_ints("pool_int64s"), integers_of(x), row_length, width, counts);
  const std::string mode = attributes.require<std::string>("mode");
  if (mode != "TF" && mode != "IDF" && mode != "TFIDF")
    throw error(errc::bad_attribute, "TfIdfVectorizer: mode '" + mode + "'");
  if (mode != "TF") {
    std::vector<double> weights(width, 1.0);
    const std::vector<float> given = attributes.get_floats("weights");
    if (!given.empty() && given.size() != places.size())
      throw error(errc::bad_attribute, "TfIdfVectorizer: " + std::to_string(given.size()) + " weights");
    for (std::size_t k = 0; k < given.size(); ++k)
      weights[static_cast<std::size_t>(places[k])] = static_cast<double>(given[k]);
    for (std::size_t k = 0; k < counts.size(); ++k)
      counts[k] = (mode == "IDF" ? (counts[k] > 0.0 ? 1.0 : 0.0) : counts[k]) * weights[k % width];
  }
  const auto columns = static_cast<std::int64_t>(width);
  outputs[0] =
      store_all<double>(dtype::float32, x.rank() == 2 ? dim_list{x.dims()[0], columns} : dim_list{columns}, counts);
}

inline void image_decoder(const attribute_map&, std::span<const tensor>, std::span<tensor>) {
  throw error(errc::unsupported, "ImageDecoder: the reference backend holds no decoders of image formats");
}

}  // namespace text

inline constexpr std::array text_rows{
    reference_row{"", "StringConcat", text::string_concat},
    reference_row{"", "StringSplit", text::string_split},
    reference_row{"", "StringNormalizer", text::string_normalizer},
    reference_row{"", "RegexFullMatch", text::regex_full_match},
    reference_row{"", "TfIdfVectorizer", text::tf_idf_vectorizer},
    reference_row{"", "ImageDecoder", text::image_decoder},
};

}  // namespace dnnopt::reference

#endif  // DNNOPT_REFERENCE_TEXT_HPP

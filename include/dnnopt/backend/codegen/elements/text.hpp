// Owns the element expression of TfIdfVectorizer: how often n-grams of a pool occur in rows of integers.
#ifndef DNNOPT_BACKEND_CODEGEN_ELEMENTS_TEXT_HPP
#define DNNOPT_BACKEND_CODEGEN_ELEMENTS_TEXT_HPP

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include <dnnopt/backend/codegen/elements/element_site.hpp>

namespace dnnopt::codegen {

/// The most numbers of a pool that are written into a kernel's source.
inline constexpr std::size_t largest_pool = 4096;

namespace detail {

/// The n-grams of attribute pool_int64s with their columns; of equal ones the last counts. Errors: bad_attribute.
[[nodiscard]] inline std::map<std::vector<std::int64_t>, std::int64_t> grams_of(const element_site& s) {
  const std::vector<std::int64_t> pool = s.attributes().get_ints("pool_int64s");
  const std::vector<std::int64_t> starts = s.attributes().get_ints("ngram_counts");
  const std::vector<std::int64_t> places = s.attributes().get_ints("ngram_indexes");
  std::map<std::vector<std::int64_t>, std::int64_t> columns;
  std::size_t next = 0;
  for (std::size_t n = 1; n <= starts.size(); ++n) {
    const auto begin = static_cast<std::size_t>(starts[n - 1]);
    const std::size_t end = n < starts.size() ? static_cast<std::size_t>(starts[n]) : pool.size();
    if (begin > end || end > pool.size() || (end - begin) % n != 0 || next + (end - begin) / n > places.size())
      throw error(errc::bad_attribute, "TfIdfVectorizer: ngram_counts");
    for (std::size_t at = begin; at < end; at += n) {
      const auto gram = pool.begin() + static_cast<std::ptrdiff_t>(at);
      columns[std::vector<std::int64_t>(gram, gram + static_cast<std::ptrdiff_t>(n))] = places[next++];
    }
  }
  return columns;
}

/// "const <type> <name>[] = {...};"
inline std::string table_source(std::string_view type, std::string_view name, const std::vector<std::string>& numbers) {
  std::string text = "const " + std::string(type) + " " + std::string(name) + "[] = {";
  for (std::size_t i = 0; i < numbers.size(); ++i) text += (i == 0 ? "" : ", ") + numbers[i];
  return text + "};";
}

}  // namespace detail

/// TfIdfVectorizer over integers: each work-item counts the n-grams of one column in one row.
inline std::string emit_gram_counts(kernel_builder& b, node_id id, std::size_t output,
                                    std::span<const index_expr> index) {
  const element_site s(b, id, output, index);
  if (!is_integer(s.type_of(0))) throw s.refuse("counts n-grams of " + std::string(dnnopt::name_of(s.type_of(0))));
  const auto columns = detail::grams_of(s);
  const std::int64_t shortest = s.attributes().require<std::int64_t>("min_gram_length");
  const std::int64_t longest = s.attributes().require<std::int64_t>("max_gram_length");
  std::vector<std::string> pool;
  std::vector<std::string> begins;
  std::vector<std::string> lengths;
  std::vector<std::string> places;
  for (const auto& [gram, place] : columns) {
    if (static_cast<std::int64_t>(gram.size()) < shortest || static_cast<std::int64_t>(gram.size()) > longest) continue;
    begins.push_back(std::to_string(pool.size()));
    lengths.push_back(std::to_string(gram.size()));
    places.push_back(std::to_string(place));
    for (const std::int64_t item : gram) pool.push_back(std::to_string(item) + "L");
  }
  if (pool.size() > largest_pool) throw s.refuse("the pool has more than " + std::to_string(largest_pool) + " numbers");
  const std::string mode = s.attributes().get_string("mode", "TF");
  const std::string count = b.variable(compute_type::real, "0");
  if (!pool.empty()) {
    const std::string own = b.fresh("t");
    b.line(detail::table_source("long", own + "_pool", pool));
    b.line(detail::table_source("int", own + "_begin", begins));
    b.line(detail::table_source("int", own + "_length", lengths));
    b.line(detail::table_source("int", own + "_place", places));
    const index_expr row_length = s.dims(0).empty() ? index_expr(1) : s.dims(0).back();
    const std::string length = index_source(row_length);
    b.open("for (int q = 0; q < " + std::to_string(begins.size()) + "; ++q) {");
    b.open("if (" + own + "_place[q] == " + index_source(s.index.back()) + ") {");
    const std::string skips = std::to_string(s.attributes().require<std::int64_t>("max_skip_count"));
    b.open("for (int step = 1; step <= (" + own + "_length[q] == 1 ? 1 : " + skips + " + 1); ++step) {");
    b.open("for (int first = 0; first + (" + own + "_length[q] - 1) * step < " + length + "; ++first) {");
    b.line("int same = 1;");
    b.open("for (int k = 0; k < " + own + "_length[q] && same; ++k) {");
    std::vector<index_expr> at;
    if (s.dims(0).size() == 2) at.push_back(s.index[0]);
    if (!s.dims(0).empty())
      at.push_back(
          b.define_index("x", b.define_integer("x", "first + k * step", {0, (std::int64_t{1} << 31) - 1}), row_length));
    b.line("same = " + s.read(0, at) + " == " + own + "_pool[" + own + "_begin[q] + k];");
    b.close();
    b.line(count + " += (float)same;");
    for (int i = 0; i < 4; ++i) b.close();
  }
  if (mode == "TF") return count;
  const std::string held = mode == "IDF" ? "(" + count + " > 0 ? 1.0f : 0.0f)" : count;
  const std::vector<float> given = s.attributes().get_floats("weights");
  if (given.empty()) return s.result(held);
  const std::vector<std::int64_t> columns_of = s.attributes().get_ints("ngram_indexes");
  if (given.size() != columns_of.size()) throw error(errc::bad_attribute, "TfIdfVectorizer: weights");
  std::vector<std::string> weights(static_cast<std::size_t>(s.out_dims().back().constant()), "1.0f");
  for (std::size_t k = 0; k < given.size(); ++k)
    weights.at(static_cast<std::size_t>(columns_of[k])) = literal(compute_type::real, static_cast<double>(given[k]));
  const std::string table = b.fresh("t");
  b.line(detail::table_source("float", table, weights));
  return s.result(held + " * " + table + "[" + index_source(s.index.back()) + "]");
}

inline constexpr std::array text_emitters{
    emitter_row{"", "TfIdfVectorizer", emit_gram_counts},
};

}  // namespace dnnopt::codegen

#endif  // DNNOPT_BACKEND_CODEGEN_ELEMENTS_TEXT_HPP

// Owns operator attributes: their value types, and the map from names to values with checked access.
#ifndef DNNOPT_ATTRIBUTE_HPP
#define DNNOPT_ATTRIBUTE_HPP

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <dnnopt/error.hpp>
#include <dnnopt/tensor.hpp>

namespace dnnopt {

class graph;

/// A subgraph held by an attribute; immutable and shared between copies of a graph. A pass replaces it as a whole.
using subgraph = std::shared_ptr<const graph>;

/// The value of one attribute.
using attribute = std::variant<std::int64_t, float, std::string, tensor, subgraph, std::vector<std::int64_t>,
                               std::vector<float>, std::vector<std::string>, std::vector<tensor>>;

/// Attributes of one node by name, in order of insertion.
class attribute_map {
 public:
  /// Sets or replaces.
  void set(std::string name, attribute value) {
    for (auto& [key, held] : rows_)
      if (key == name) {
        held = std::move(value);
        return;
      }
    rows_.emplace_back(std::move(name), std::move(value));
  }
  /// Removes; whether it was there.
  bool erase(std::string_view name) {
    return std::erase_if(rows_, [name](const auto& row) { return row.first == name; }) != 0;
  }
  /// The value, or null.
  [[nodiscard]] const attribute* find(std::string_view name) const {
    for (const auto& [key, held] : rows_)
      if (key == name) return &held;
    return nullptr;
  }
  [[nodiscard]] bool contains(std::string_view name) const { return find(name) != nullptr; }

  /// The value as `T` (one of the alternatives of `attribute`), or `fallback` where it is absent.
  /// Errors: bad_attribute where it is of another type.
  template <class T>
  [[nodiscard]] T get(std::string_view name, T fallback) const {
    const attribute* held = find(name);
    if (held == nullptr) return fallback;
    return as<T>(name, *held);
  }
  /// The value as `T`. Errors: bad_attribute where it is absent or of another type.
  template <class T>
  [[nodiscard]] const T& require(std::string_view name) const {
    const attribute* held = find(name);
    if (held == nullptr) throw error(errc::bad_attribute, "attribute '" + std::string(name) + "' is missing");
    return as<T>(name, *held);
  }
  /// Shorthands of get for the common types.
  [[nodiscard]] std::int64_t get_int(std::string_view name, std::int64_t fallback) const { return get<std::int64_t>(name, fallback); }
  [[nodiscard]] float get_float(std::string_view name, float fallback) const { return get<float>(name, fallback); }
  [[nodiscard]] std::string get_string(std::string_view name, std::string fallback) const {
    return get<std::string>(name, std::move(fallback));
  }
  [[nodiscard]] std::vector<std::int64_t> get_ints(std::string_view name, std::vector<std::int64_t> fallback = {}) const {
    return get<std::vector<std::int64_t>>(name, std::move(fallback));
  }
  [[nodiscard]] std::vector<float> get_floats(std::string_view name, std::vector<float> fallback = {}) const {
    return get<std::vector<float>>(name, std::move(fallback));
  }

  [[nodiscard]] auto begin() const { return rows_.begin(); }
  [[nodiscard]] auto end() const { return rows_.end(); }
  [[nodiscard]] std::size_t size() const { return rows_.size(); }

 private:
  template <class T>
  static const T& as(std::string_view name, const attribute& held) {
    const T* value = std::get_if<T>(&held);
    if (value == nullptr) throw error(errc::bad_attribute, "attribute '" + std::string(name) + "' has another type than the operator needs");
    return *value;
  }

  std::vector<std::pair<std::string, attribute>> rows_;
};

}  // namespace dnnopt

#endif  // DNNOPT_ATTRIBUTE_HPP

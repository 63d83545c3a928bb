// Owns operator attributes: their value types, and the map from names to values with checked access.
#ifndef DNNOPT_ATTRIBUTE_HPP
#define DNNOPT_ATTRIBUTE_HPP

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <dnnopt/detail/implementation.hpp>
#include <dnnopt/error.hpp>
#include <dnnopt/tensor.hpp>

namespace dnnopt {

class graph;

/// A subgraph held by an attribute; immutable and shared between copies of a graph. A pass replaces it as a whole.
using subgraph = std::shared_ptr<const graph>;

/// The value of one attribute.
using attribute = std::variant<std::int64_t, float, std::string, tensor, subgraph, std::vector<std::int64_t>,
                               std::vector<float>, std::vector<std::string>, std::vector<tensor>>;

/// Attributes of one node by name, in order of insertion. Copies share the values, which never change in place.
class attribute_map {
  // Values are shared, not copied: a variant's assignments cost every includer 0.4 s of compile time.
  using named_value = std::pair<std::string, std::shared_ptr<const attribute>>;

 public:
  /// Visits pairs of name and value.
  class const_iterator {
   public:
    using value_type = std::pair<const std::string&, const attribute&>;
    using difference_type = std::ptrdiff_t;
    const_iterator() = default;
    explicit const_iterator(std::vector<named_value>::const_iterator at) : at_(at) {}
    value_type operator*() const;
    const_iterator& operator++() {
      ++at_;
      return *this;
    }
    const_iterator operator++(int) { return const_iterator(at_++); }
    friend bool operator==(const const_iterator&, const const_iterator&) = default;

   private:
    std::vector<named_value>::const_iterator at_;
  };

  /// Sets or replaces.
  void set(std::string name, attribute value);
  /// Removes; whether it was there.
  bool erase(std::string_view name);
  /// The value, or null.
  [[nodiscard]] const attribute* find(std::string_view name) const;
  [[nodiscard]] bool contains(std::string_view name) const { return find(name) != nullptr; }

  /// The value as `T` (one of the alternatives of `attribute`), or `fallback` where it is absent.
  /// Errors: bad_attribute where it is of another type.
  template <class T>
  [[nodiscard]] T get(std::string_view name, T fallback) const {
    const attribute* held = find(name);
    if (held == nullptr) return fallback;
    return as<T>(name, *held);
  }
  /// The value as `T`, or null where it is absent. Errors: bad_attribute where it is of another type.
  template <class T>
  [[nodiscard]] const T* find_as(std::string_view name) const {
    const attribute* held = find(name);
    return held == nullptr ? nullptr : &as<T>(name, *held);
  }
  /// The value as `T`. Errors: bad_attribute where it is absent or of another type.
  template <class T>
  [[nodiscard]] const T& require(std::string_view name) const {
    const attribute* held = find(name);
    if (held == nullptr) refuse(name, "is missing");
    return as<T>(name, *held);
  }
  /// Shorthands of get for the common types.
  [[nodiscard]] std::int64_t get_int(std::string_view name, std::int64_t fallback) const;
  [[nodiscard]] float get_float(std::string_view name, float fallback) const;
  [[nodiscard]] std::string get_string(std::string_view name, std::string fallback) const;
  [[nodiscard]] std::vector<std::int64_t> get_ints(std::string_view name,
                                                   std::vector<std::int64_t> fallback = {}) const;
  [[nodiscard]] std::vector<float> get_floats(std::string_view name, std::vector<float> fallback = {}) const;

  [[nodiscard]] const_iterator begin() const { return const_iterator(rows_.begin()); }
  [[nodiscard]] const_iterator end() const { return const_iterator(rows_.end()); }
  [[nodiscard]] std::size_t size() const { return rows_.size(); }

 private:
  template <class T>
  static const T& as(std::string_view name, const attribute& held) {
    const T* value = std::get_if<T>(&held);
    if (value == nullptr) refuse(name, "has another type than the operator needs");
    return *value;
  }
  [[noreturn]] static void refuse(std::string_view name, std::string_view why);

  std::vector<named_value> rows_;
};

#if DNNOPT_IMPLEMENT_GRAPH
DNNOPT_BODY attribute_map::const_iterator::value_type attribute_map::const_iterator::operator*() const {
  return {at_->first, *at_->second};
}

DNNOPT_BODY void attribute_map::set(std::string name, attribute value) {
  for (auto& [key, held] : rows_)
    if (key == name) {
      held = std::make_shared<const attribute>(std::move(value));
      return;
    }
  rows_.emplace_back(std::move(name), std::make_shared<const attribute>(std::move(value)));
}

DNNOPT_BODY bool attribute_map::erase(std::string_view name) {
  return std::erase_if(rows_, [name](const auto& held) { return held.first == name; }) != 0;
}

DNNOPT_BODY const attribute* attribute_map::find(std::string_view name) const {
  for (const auto& [key, held] : rows_)
    if (key == name) return held.get();
  return nullptr;
}

DNNOPT_BODY std::int64_t attribute_map::get_int(std::string_view name, std::int64_t fallback) const {
  return get<std::int64_t>(name, fallback);
}
DNNOPT_BODY float attribute_map::get_float(std::string_view name, float fallback) const {
  return get<float>(name, fallback);
}
DNNOPT_BODY std::string attribute_map::get_string(std::string_view name, std::string fallback) const {
  return get<std::string>(name, std::move(fallback));
}
DNNOPT_BODY std::vector<std::int64_t> attribute_map::get_ints(std::string_view name,
                                                              std::vector<std::int64_t> fallback) const {
  return get<std::vector<std::int64_t>>(name, std::move(fallback));
}
DNNOPT_BODY std::vector<float> attribute_map::get_floats(std::string_view name, std::vector<float> fallback) const {
  return get<std::vector<float>>(name, std::move(fallback));
}

DNNOPT_BODY void attribute_map::refuse(std::string_view name, std::string_view why) {
  throw error(errc::bad_attribute, "attribute '" + std::string(name) + "' " + std::string(why));
}
#endif

}  // namespace dnnopt

#endif  // DNNOPT_ATTRIBUTE_HPP

// Owns tensors by name: the inputs and outputs of an inference.
#ifndef DNNOPT_NAMED_TENSORS_HPP
#define DNNOPT_NAMED_TENSORS_HPP

#include <cstddef>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dnnopt/error.hpp>
#include <dnnopt/tensor.hpp>

namespace dnnopt {

/// Tensors by name, in the order of a graph's inputs or outputs.
class named_tensors {
 public:
  named_tensors() = default;
  named_tensors(std::initializer_list<std::pair<std::string, tensor>> rows) : rows_(rows) {}
  explicit named_tensors(std::vector<std::pair<std::string, tensor>> rows) : rows_(std::move(rows)) {}

  void add(std::string name, tensor content) { rows_.emplace_back(std::move(name), std::move(content)); }
  [[nodiscard]] std::size_t size() const noexcept { return rows_.size(); }
  /// The tensor at a position. Errors: invalid_argument.
  [[nodiscard]] const tensor& operator[](std::size_t i) const {
    if (i >= rows_.size())
      throw error(errc::invalid_argument,
                  "there is no tensor " + std::to_string(i) + " of " + std::to_string(rows_.size()));
    return rows_[i].second;
  }
  /// The tensor of that name. Errors: missing_input.
  [[nodiscard]] const tensor& operator[](std::string_view name) const {
    const tensor* found = find(name);
    if (found == nullptr) throw error(errc::missing_input, "there is no tensor '" + std::string(name) + "'");
    return *found;
  }
  /// The tensor of that name, or null.
  [[nodiscard]] const tensor* find(std::string_view name) const {
    for (const auto& [key, content] : rows_)
      if (key == name) return &content;
    return nullptr;
  }
  [[nodiscard]] auto begin() const { return rows_.begin(); }
  [[nodiscard]] auto end() const { return rows_.end(); }

 private:
  std::vector<std::pair<std::string, tensor>> rows_;
};

}  // namespace dnnopt

#endif  // DNNOPT_NAMED_TENSORS_HPP

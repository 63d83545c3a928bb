// Owns immutable texts that copies share, and the pool that makes equal ones one.
#ifndef DNNOPT_BACKEND_CODEGEN_BUILDER_SHARED_TEXT_HPP
#define DNNOPT_BACKEND_CODEGEN_BUILDER_SHARED_TEXT_HPP

#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

namespace dnnopt::codegen {

/// An immutable text; copies share it, and it reads as a std::string.
class shared_text {
 public:
  shared_text() : shared_text(std::string()) {}
  shared_text(std::string text) : held_(std::make_shared<const std::string>(std::move(text))) {}  // NOLINT: is a text

  [[nodiscard]] const std::string& str() const noexcept { return *held_; }
  operator const std::string&() const noexcept { return *held_; }  // NOLINT: is a text

 private:
  std::shared_ptr<const std::string> held_;
};

/// Texts of which equal ones are held once: kernels of a network's repeated blocks have equal sources.
class text_pool {
 public:
  /// The text held since an equal one was first asked for. O(length).
  [[nodiscard]] const shared_text& shared(const shared_text& text) {
    return texts_.try_emplace(std::string_view(text.str()), text).first->second;
  }

 private:
  std::unordered_map<std::string_view, shared_text> texts_;  // keys are views of the texts
};

}  // namespace dnnopt::codegen

#endif  // DNNOPT_BACKEND_CODEGEN_BUILDER_SHARED_TEXT_HPP

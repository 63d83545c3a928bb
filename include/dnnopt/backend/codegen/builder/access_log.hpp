// Owns the loads and stores that one kernel's source holds, and which output may take the memory of an input.
#ifndef DNNOPT_BACKEND_CODEGEN_BUILDER_ACCESS_LOG_HPP
#define DNNOPT_BACKEND_CODEGEN_BUILDER_ACCESS_LOG_HPP

#include <algorithm>
#include <cstddef>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <dnnopt/backend/codegen/builder/c_types.hpp>
#include <dnnopt/backend/codegen/builder/kernel_plan.hpp>

namespace dnnopt::codegen {

/// Loads and stores by argument, offset and section: a section is the body of one function, or of the kernel.
class access_log {
 public:
  /// Opens a section within the open ones.
  void begin_section() { open_.push_back(++count_); }
  /// Closes the section opened last.
  void end_section() {
    closed_ = open_.back();
    open_.pop_back();
  }
  /// The open section runs once for each element of what it stores.
  void runs_once() { once_.emplace(open_.back(), std::nullopt); }
  /// The section closed last runs once for each value of `offset`.
  void ran_once(const index_expr& offset) { once_.emplace(closed_, offset); }
  /// A load or a store of the element at `offset` of an argument's buffer, in the open section.
  void add(std::size_t argument, const index_expr& offset, bool written) {
    rows_.push_back({argument, offset, open_.empty() ? unknown : open_.back(), written});
  }
  /// A use of an argument's pointer that is not looked into.
  void add_unknown(std::size_t argument, bool written) { rows_.push_back({argument, 0, unknown, written}); }

  /// Inputs whose every load stands before the stores of an output, in the section of these, which runs once for each
  /// element of the output, at the offset of one of them, and with the same type of element. O(inputs * outputs *
  /// accesses).
  [[nodiscard]] std::vector<overwrite_pair> overwrites(std::span<const pointer_argument> pointers) const {
    std::vector<overwrite_pair> pairs;
    for (std::size_t out = 0; out < pointers.size(); ++out) {
      if (!pointers[out].written || pointers[out].held == no_value) continue;
      const auto is_out = [out](const row& a) { return a.argument == out; };
      const auto store = std::find_if(rows_.begin(), rows_.end(), is_out);
      if (store == rows_.end()) continue;
      const auto stored = std::count_if(rows_.begin(), rows_.end(), is_out);
      if (std::count_if(rows_.begin(), rows_.end(),
                        [&](const row& a) { return is_out(a) && a.section == store->section; }) != stored)
        continue;
      const auto once = once_.find(store->section);
      if (once == once_.end() || (once->second && (stored != 1 || !(*once->second == store->offset)))) continue;
      for (std::size_t in = 0; in < pointers.size(); ++in) {
        if (pointers[in].written || pointers[in].held == no_value) continue;
        if (c_type_of(pointers[in].type).storage != c_type_of(pointers[out].type).storage) continue;
        bool same = false;
        bool other = false;
        for (auto a = rows_.begin(); a != rows_.end(); ++a) {
          if (a->argument != in) continue;
          const bool fits =
              a->section == store->section && a < store &&
              std::any_of(store, rows_.end(), [&](const row& b) { return is_out(b) && b.offset == a->offset; });
          same = same || fits;
          other = other || !fits;
        }
        if (same && !other) pairs.push_back({in, out});
      }
    }
    return pairs;
  }

 private:
  static constexpr std::size_t unknown = 0;

  struct row {
    std::size_t argument;
    index_expr offset;
    std::size_t section;
    bool written;
  };

  std::vector<row> rows_;
  std::vector<std::size_t> open_;
  std::map<std::size_t, std::optional<index_expr>> once_;  ///< sections, some only for stores at one offset
  std::size_t count_ = unknown;
  std::size_t closed_ = unknown;
};

}  // namespace dnnopt::codegen

#endif  // DNNOPT_BACKEND_CODEGEN_BUILDER_ACCESS_LOG_HPP

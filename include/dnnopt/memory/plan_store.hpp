// Owns plans that were made once: offsets by their records and orders by their graph, checked before they are used.
#ifndef DNNOPT_MEMORY_PLAN_STORE_HPP
#define DNNOPT_MEMORY_PLAN_STORE_HPP

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <dnnopt/memory/bounds.hpp>
#include <dnnopt/memory/order/order_graph.hpp>
#include <dnnopt/memory/plan_check.hpp>
#include <dnnopt/memory/usage.hpp>

namespace dnnopt::memory {

/// A digest of numbers: FNV-1a over their bytes, twice with different starts.
class plan_digest {
 public:
  plan_digest& add(std::int64_t number) noexcept {
    auto bits = static_cast<std::uint64_t>(number);
    for (int i = 0; i < 8; ++i, bits >>= 8U) {
      low_ = (low_ ^ (bits & 0xFFU)) * 0x100000001B3ULL;
      high_ = (high_ ^ (bits & 0xFFU) ^ 0x5CU) * 0x100000001B3ULL;
    }
    return *this;
  }
  /// 32 hexadecimal digits.
  [[nodiscard]] std::string text() const {
    constexpr char digits[] = "0123456789abcdef";
    std::string result;
    for (const std::uint64_t word : {high_, low_})
      for (int shift = 60; shift >= 0; shift -= 4) result += digits[(word >> static_cast<unsigned>(shift)) & 0xFU];
    return result;
  }

 private:
  std::uint64_t low_ = 0xCBF29CE484222325ULL;
  std::uint64_t high_ = 0x9E3779B97F4A7C15ULL;
};

/// Plans by what they were made for. A plan is found by a digest and used only when the checker accepts it for the
/// records at hand, so that neither a foreign file nor two inputs of one digest can do harm. Sessions share one
/// (session::clone, or one in the options of several), so any thread may call it at any time.
///
/// Each new shape of a session brings offsets: of those only `most_bytes` are kept, the ones that were asked for last.
/// Orders are one for each graph, and stay.
class plan_store {
 public:
  explicit plan_store(std::size_t most_bytes = std::size_t{16} << 20U) : most_bytes_(most_bytes) {}

  struct stored_offsets {
    std::vector<std::int64_t> offsets;
    std::string strategy;
    bool proved = false;
  };
  struct stored_order {
    std::vector<std::uint32_t> order;
    bool proved = false;
  };

  /// The plan kept for these records, or nothing. O(n log n).
  [[nodiscard]] std::optional<offset_plan> find(std::span<const buffer_usage> usages) const {
    const std::optional<stored_offsets> found = kept_offsets(key_of(usages));
    if (!found || found->offsets.size() != usages.size()) return std::nullopt;
    offset_plan plan;
    plan.offsets = found->offsets;
    plan.bytes = arena_bytes(usages, plan.offsets);
    if (find_offset_fault(usages, plan.offsets, plan.bytes)) return std::nullopt;
    plan.lower_bound = largest_live_sum(usages);
    plan.strategy = found->strategy;
    plan.proved = found->proved || plan.bytes == plan.lower_bound;
    return plan;
  }
  /// Keeps a plan; of two for the same records the smaller, or either where two threads bring them at once.
  void add(std::span<const buffer_usage> usages, const offset_plan& plan) {
    const auto known = find(usages);
    if (known && known->bytes <= plan.bytes) return;
    put(key_of(usages), stored_offsets{plan.offsets, plan.strategy, plan.proved});
  }
  /// The order kept for this graph, or nothing. O(nodes + edges).
  [[nodiscard]] std::optional<stored_order> find(const order_graph& graph) const {
    std::optional<stored_order> found = kept_order(key_of(graph));
    if (found && !is_execution_order(graph, found->order)) found.reset();
    return found;
  }
  void add(const order_graph& graph, std::vector<std::uint32_t> order, bool proved) {
    put(key_of(graph), stored_order{std::move(order), proved});
  }

  /// All that is kept, for writing to a file and reading from it (memory_io.hpp).
  [[nodiscard]] std::map<std::string, stored_offsets> offsets() const {
    std::map<std::string, stored_offsets> all;
    const std::lock_guard held(lock_);
    for (const auto& [key, one] : offsets_) all.emplace(key, one.plan);
    return all;
  }
  [[nodiscard]] std::map<std::string, stored_order> orders() const {
    const std::lock_guard held(lock_);
    return orders_;
  }
  /// Keeps offsets; the longest unused go where all exceed the bytes that are kept. O(log n), and now and then O(n).
  void put(std::string key, stored_offsets plan) {
    const std::lock_guard held(lock_);
    const auto [place, fresh] = offsets_.try_emplace(std::move(key));
    if (!fresh) bytes_ -= bytes_of(*place);
    place->second = {std::move(plan), ++uses_};
    bytes_ += bytes_of(*place);
    if (bytes_ > most_bytes_) forget_half();
  }
  void put(std::string key, stored_order order) {
    const std::lock_guard held(lock_);
    orders_.insert_or_assign(std::move(key), std::move(order));
  }

 private:
  struct used_offsets {
    stored_offsets plan;
    mutable std::uint64_t used = 0;  ///< the number of its last use
  };
  [[nodiscard]] std::optional<stored_offsets> kept_offsets(const std::string& key) const {
    const std::lock_guard held(lock_);
    const auto found = offsets_.find(key);
    if (found == offsets_.end()) return std::nullopt;
    found->second.used = ++uses_;
    return found->second.plan;
  }
  [[nodiscard]] std::optional<stored_order> kept_order(const std::string& key) const {
    const std::lock_guard held(lock_);
    const auto found = orders_.find(key);
    return found == orders_.end() ? std::nullopt : std::optional(found->second);
  }
  [[nodiscard]] static std::size_t bytes_of(const std::pair<const std::string, used_offsets>& one) {
    return sizeof(one) + one.first.size() + one.second.plan.strategy.size() +
           one.second.plan.offsets.size() * sizeof(std::int64_t);
  }
  /// Forgets the half that was not used for longest, but never the plan that was used last.
  void forget_half() {
    std::vector<std::uint64_t> uses;
    for (const auto& [key, one] : offsets_) uses.push_back(one.used);
    const auto middle = uses.begin() + static_cast<std::ptrdiff_t>(uses.size() / 2);
    std::nth_element(uses.begin(), middle, uses.end());
    std::erase_if(offsets_, [&, first_kept = *middle](const auto& one) {
      const bool goes = one.second.used < first_kept;
      if (goes) bytes_ -= bytes_of(one);
      return goes;
    });
  }
  static std::string key_of(std::span<const buffer_usage> usages) {
    plan_digest digest;
    for (const buffer_usage& u : usages) digest.add(u.lower).add(u.upper).add(u.size).add(u.alignment);
    return digest.text();
  }
  static std::string key_of(const order_graph& graph) {
    plan_digest digest;
    for (const std::int64_t bytes : graph.bytes) digest.add(bytes);
    for (const order_operation& operation : graph.operations) {
      digest.add(-1);
      for (const std::uint32_t before : operation.after) digest.add(before);
      digest.add(-2);
      for (const std::uint32_t storage : operation.storages) digest.add(storage);
      digest.add(-3);
      for (const in_place_pair pair : operation.in_place) digest.add(pair.from).add(pair.to);
    }
    return digest.text();
  }

  std::size_t most_bytes_;
  mutable std::mutex lock_;  ///< of what follows
  mutable std::uint64_t uses_ = 0;
  std::size_t bytes_ = 0;  ///< of `offsets_`
  std::map<std::string, used_offsets> offsets_;
  std::map<std::string, stored_order> orders_;
};

}  // namespace dnnopt::memory

#endif  // DNNOPT_MEMORY_PLAN_STORE_HPP

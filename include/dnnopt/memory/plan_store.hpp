// Owns plans that were made once: offsets by their records and orders by their graph, checked before they are used.
#ifndef DNNOPT_MEMORY_PLAN_STORE_HPP
#define DNNOPT_MEMORY_PLAN_STORE_HPP

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
class plan_store {
 public:
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
    const std::optional<stored_offsets> found = kept(offsets_, key_of(usages));
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
    std::optional<stored_order> found = kept(orders_, key_of(graph));
    if (found && !is_execution_order(graph, found->order)) found.reset();
    return found;
  }
  void add(const order_graph& graph, std::vector<std::uint32_t> order, bool proved) {
    put(key_of(graph), stored_order{std::move(order), proved});
  }

  /// All that is kept, for writing to a file and reading from it (memory_io.hpp).
  [[nodiscard]] std::map<std::string, stored_offsets> offsets() const {
    const std::lock_guard held(lock_);
    return offsets_;
  }
  [[nodiscard]] std::map<std::string, stored_order> orders() const {
    const std::lock_guard held(lock_);
    return orders_;
  }
  void put(std::string key, stored_offsets plan) {
    const std::lock_guard held(lock_);
    offsets_.insert_or_assign(std::move(key), std::move(plan));
  }
  void put(std::string key, stored_order order) {
    const std::lock_guard held(lock_);
    orders_.insert_or_assign(std::move(key), std::move(order));
  }

 private:
  template <class Kept>
  [[nodiscard]] std::optional<Kept> kept(const std::map<std::string, Kept>& all, const std::string& key) const {
    const std::lock_guard held(lock_);
    const auto found = all.find(key);
    return found == all.end() ? std::nullopt : std::optional(found->second);
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

  mutable std::mutex lock_;  ///< of what follows
  std::map<std::string, stored_offsets> offsets_;
  std::map<std::string, stored_order> orders_;
};

}  // namespace dnnopt::memory

#endif  // DNNOPT_MEMORY_PLAN_STORE_HPP

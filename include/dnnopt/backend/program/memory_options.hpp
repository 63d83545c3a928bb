// Owns how a user steers the memory of intermediate tensors, and the report of what was decided.
#ifndef DNNOPT_BACKEND_PROGRAM_MEMORY_OPTIONS_HPP
#define DNNOPT_BACKEND_PROGRAM_MEMORY_OPTIONS_HPP

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace dnnopt {

namespace memory {
class plan_store;
}

/// How intermediate tensors are ordered and placed.
struct memory_options {
  /// "default": exact within the budget where all sizes are known before a run, quick for shapes that come up at run
  /// time; or the name of one of memory::offset_strategies or memory::object_strategy_names for both. By the latter
  /// tensors lie in shared objects, each a memory object of its own, and images are shared by the strategy of that name
  /// where there is one (image_strategy_of).
  std::string strategy = "default";
  double budget = 0.25;        ///< seconds for order and exact plan together; with a limit that is not met yet, 10
  bool reorder = true;         ///< search for an execution order of less memory than the graph's own
  bool write_in_place = true;  ///< let concatenations be written by who makes their inputs
  std::shared_ptr<memory::plan_store> store{};  ///< plans from before; receives the new ones
};

/// How an order was chosen.
enum class order_decision : std::uint8_t {
  kept,       ///< the graph's own order is as good as any that was found
  searched,   ///< all sizes are known: the search's order
  symbolic,   ///< needs no more than any other candidate for all values of the symbols, as their expressions tell
  scenarios,  ///< the least worst ratio over several values of the symbols
};

/// "kept", "searched", "symbolic" or "scenarios".
[[nodiscard]] constexpr std::string_view name_of(order_decision decision) noexcept {
  constexpr std::string_view names[] = {"kept", "searched", "symbolic", "scenarios"};
  return names[static_cast<unsigned>(decision)];
}

/// What scheduling did. Bytes are live sums of intermediates and scratch; with unbound symbols they hold for the first
/// scenario.
struct program_schedule {
  order_decision decision = order_decision::kept;
  std::int64_t peak_before = 0;
  std::int64_t peak = 0;
  std::int64_t lower_bound = 0;  ///< no order has a smaller peak
  bool proved = false;           ///< peak == lower_bound
  double seconds = 0;
};

/// What place_parts did.
struct parts_report {
  std::size_t joined = 0;  ///< steps that need no kernel any more
  std::size_t kept = 0;    ///< steps that could do without, but whose output would raise the peak of memory
};

/// What was decided.
struct memory_report {
  program_schedule schedule;
  parts_report parts;
};

}  // namespace dnnopt

#endif  // DNNOPT_BACKEND_PROGRAM_MEMORY_OPTIONS_HPP

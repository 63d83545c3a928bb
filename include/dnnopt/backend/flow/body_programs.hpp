// Owns the programs of the bodies of control flow: each is made when it is first entered, and kept.
#ifndef DNNOPT_BACKEND_FLOW_BODY_PROGRAMS_HPP
#define DNNOPT_BACKEND_FLOW_BODY_PROGRAMS_HPP

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <dnnopt/error.hpp>
#include <dnnopt/graph.hpp>
#include <dnnopt/passes/enter_body.hpp>

namespace dnnopt {

class opencl_executor;

/// A body that is a program.
struct body_program {
  std::shared_ptr<opencl_executor> executor;  ///< null: a program for exact dims would leave less on the host
  std::vector<std::size_t> arguments;         ///< as separate_body has them
};

/// Makes the program of the body in attribute `key` of node `id`. With `may_be_exact` it may leave the program of a
/// general entry to ones for exact dims. Errors: those of make_separate_body and compile.
using body_maker = std::function<body_program(const graph& g, node_id id, std::string_view key, const body_entry& entry,
                                              bool may_be_exact)>;

/// What happened to one body since its session was made.
struct body_figures {
  node_id node = no_node;
  std::string key;  ///< the attribute that holds it
  std::size_t programs =
      0;                    ///< one, or one for each set of ranks or dims that needs its own; none before it is entered
  std::size_t entered = 0;  ///< turns of a Loop or Scan count each
  std::uint64_t kernels = 0;   ///< device commands of all entries, those of bodies inside included
  std::uint64_t host_ops = 0;  ///< operators on the host of all entries, the same
};

/// The bodies of one program's nodes.
class body_programs {
 public:
  /// Programs for exact dims that one body keeps. More: the general one runs, or where that may not be, the one that
  /// was not entered for longest makes room.
  static constexpr std::size_t kept_exact = 8;

  /// A body with its programs.
  struct entry {
    body_figures figures;
    std::list<std::pair<body_entry, body_program>> made;  ///< the last one entered first
  };

  explicit body_programs(body_maker maker) : maker_(std::move(maker)) {}

  /// Whether bodies can be programs at all.
  [[nodiscard]] bool any() const noexcept { return maker_ != nullptr; }

  /// Knows a node's bodies, none of which has a program.
  void add(const graph& g, node_id id) {
    for (const auto& [key, held] : g.node_at(id).attributes)
      if (std::holds_alternative<subgraph>(held)) entries_[{id, key}].figures = {id, key, 0, 0, 0, 0};
  }

  /// The body's entry, with the program for a turn at its front; made now where there is none. `general` has the turn's
  /// ranks, `exact` its dims too. What makes room goes to `ended`, for its commands may be under way. Errors: those of
  /// the maker. O(programs of the body).
  [[nodiscard]] entry& at(const graph& g, node_id id, std::string_view key, const body_entry& general,
                          const body_entry& exact, std::vector<std::shared_ptr<const void>>& ended) {
    entry& body = entries_[{id, std::string(key)}];
    const auto is_exact = [](const auto& one) { return one.first.is_exact(); };
    const bool known =
        std::any_of(body.made.begin(), body.made.end(), [&](const auto& one) { return one.first == exact; });
    if (!known && brought_to_front(body, general, g, id, true).executor) return body;
    const bool full =
        static_cast<std::size_t>(std::count_if(body.made.begin(), body.made.end(), is_exact)) >= kept_exact;
    if (full && !known) {
      try {
        // At the front is the general entry that has no program yet.
        body.made.front().second = maker_(g, id, key, general, false);
        ++body.figures.programs;
        return body;
      } catch (const error& e) {
        if (e.code() != errc::no_kernel) throw;
      }
      const auto oldest = std::prev(std::find_if(body.made.rbegin(), body.made.rend(), is_exact).base());
      ended.push_back(std::move(oldest->second.executor));
      body.made.erase(oldest);
    }
    (void)brought_to_front(body, exact, g, id, false);
    return body;
  }

  /// All bodies by node and attribute.
  [[nodiscard]] const std::map<std::pair<node_id, std::string>, entry>& all() const noexcept { return entries_; }

 private:
  body_program& brought_to_front(entry& body, const body_entry& wanted, const graph& g, node_id id, bool may_be_exact) {
    const auto found =
        std::find_if(body.made.begin(), body.made.end(), [&](const auto& one) { return one.first == wanted; });
    if (found == body.made.end()) {
      body.made.emplace_front(wanted, maker_(g, id, body.figures.key, wanted, may_be_exact));
      body.figures.programs += body.made.front().second.executor ? 1 : 0;
    } else {
      body.made.splice(body.made.begin(), body.made, found);
    }
    return body.made.front().second;
  }

  body_maker maker_;
  std::map<std::pair<node_id, std::string>, entry> entries_;
};

}  // namespace dnnopt

#endif  // DNNOPT_BACKEND_FLOW_BODY_PROGRAMS_HPP

// Owns what a kernel family decides about a block before any kernel is written: a value, or the reason why there is
// none.
#ifndef DNNOPT_BACKEND_CODEGEN_CHOICE_HPP
#define DNNOPT_BACKEND_CODEGEN_CHOICE_HPP

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dnnopt/error.hpp>
#include <dnnopt/expr_symbols.hpp>
#include <dnnopt/index_expr.hpp>

namespace dnnopt::codegen {

/// A number that a choice settles. Names are literals: those of the frame's parameters in small letters and without
/// "DNNOPT_", which are a tuner's names too; what a launch alone needs has a name of its own.
struct chosen_size {
  std::string_view name;
  std::int64_t value = 0;

  friend bool operator==(const chosen_size&, const chosen_size&) = default;
};

/// A condition over the graph's symbols under which a choice holds: `slack` is not negative.
struct choice_guard {
  index_expr slack;
  std::string otherwise;  ///< the reason against the choice where `slack` is negative

  /// Whether it holds for all values of the symbols.
  [[nodiscard]] bool is_settled() const { return slack.range().low >= 0; }
  friend bool operator==(const choice_guard&, const choice_guard&) = default;
};

/// The least that an extent is in a run that computes something: each symbol counts as 1 or the least of its range. 0
/// where that is not told. Precondition: the extent grows with its symbols.
[[nodiscard]] inline std::int64_t least_extent(const index_expr& extent) {
  symbol_values least;
  for (const std::uint32_t symbol : symbols_of(extent)) {
    least.bind(symbol, std::max<std::int64_t>(extent.context()->symbol_at(symbol).range().low, 1));
  }
  return extent.try_evaluate(least).value_or(0);
}

/// How a frame takes an operand.
enum class operand_form : std::uint8_t {
  elements,  ///< singly, computed on the way where members of the block compute them
  vectors,   ///< some neighbours at a time, from where they lie
  straight,  ///< whole rows from where they lie
  packed,    ///< from a copy in the frame's order, which is made once
  codes,     ///< the same of codes of few bits, which are dequantized on the way
  texels     ///< in vectors of four, from texels
};

[[nodiscard]] constexpr std::string_view name_of(operand_form form) noexcept {
  constexpr std::string_view names[] = {"elements", "vectors", "straight", "packed", "codes", "texels"};
  return names[static_cast<std::size_t>(form)];
}

/// An input of the anchor that a frame takes in another way than by elements.
struct taken_operand {
  std::size_t input = 0;
  operand_form form = operand_form::elements;

  friend bool operator==(const taken_operand&, const taken_operand&) = default;
};

/// Versions of a launch that a program may hold.
inline constexpr std::size_t most_versions = 8;

/// What a family decides about a block: which kernel, in which sizes, from which storage. It depends on the site alone
/// (shapes, types, facts of the device, a tuner's table, the limits that lower_options hold), and making it writes no
/// source. Equal choices at one site give equal kernels.
struct choice {
  std::string_view version;          ///< of the main kernel: one of kernel_versions
  std::vector<chosen_size> sizes;    ///< in the order in which the frame's parameters are defined
  std::vector<taken_operand> taken;  ///< sorted by input
  std::uint64_t local_bytes = 0;     ///< of local memory that a work-group takes; 0: none, or few that are not counted
  std::uint64_t kept_bytes = 0;      ///< of memory that lasts as long as the weights, for operands in another form
  double weight_growth = 1;          ///< kept_bytes over those of the operands as they are; 1 where nothing is kept
  std::vector<choice_guard> guards;  ///< all must hold; one that is settled against the choice is a reason instead
  std::string tuning;                ///< shape class that a tuning_table may hold; empty where nothing is to choose
  /// Versions that are better where their guards hold, the best first: a run takes the first that its dims allow, and
  /// the choice itself where none is. At most most_versions of a launch in all.
  std::vector<choice> narrower;

  choice() = default;
  /// A choice without anything to decide besides the kernel. Precondition: `kernel` is a literal.
  explicit choice(std::string_view kernel) : version(kernel) {}

  /// Adds a size and returns the choice. Precondition: `name` is a literal that the choice does not have yet.
  choice& with(std::string_view name, std::int64_t value) {
    sizes.push_back({name, value});
    return *this;
  }
  /// The size of that name, or nothing.
  [[nodiscard]] std::optional<std::int64_t> find(std::string_view name) const {
    const auto found = std::find_if(sizes.begin(), sizes.end(), [&](const chosen_size& s) { return s.name == name; });
    return found == sizes.end() ? std::nullopt : std::optional(found->value);
  }
  /// The size of that name. Errors: invalid_argument where the choice has none.
  [[nodiscard]] std::int64_t operator[](std::string_view name) const {
    if (const auto found = find(name)) return *found;
    throw error(errc::invalid_argument,
                "the choice of " + std::string(version) + " has no size '" + std::string(name) + "'");
  }
  /// How an input of the anchor is taken.
  [[nodiscard]] operand_form form_of(std::size_t input) const {
    for (const taken_operand& one : taken)
      if (one.input == input) return one.form;
    return operand_form::elements;
  }
  friend bool operator==(const choice&, const choice&) = default;
};

/// One line for people: "row_groups group=64 group_rows=2, 512 bytes of local memory".
[[nodiscard]] inline std::string to_string(const choice& c) {
  std::string text(c.version);
  for (const chosen_size& size : c.sizes) text += " " + std::string(size.name) + "=" + std::to_string(size.value);
  for (const taken_operand& one : c.taken)
    text += ", input " + std::to_string(one.input) + " in " + std::string(name_of(one.form));
  if (c.local_bytes != 0) text += ", " + std::to_string(c.local_bytes) + " bytes of local memory";
  if (c.kept_bytes != 0) text += ", " + std::to_string(c.kept_bytes) + " bytes kept";
  for (const choice_guard& guard : c.guards) text += ", unless " + guard.otherwise;
  for (const choice& version : c.narrower) text += "; or " + to_string(version);
  return text;
}

/// A choice, or the reason why a family does not take a block. That a block does not match is no error.
class choice_or_reason {
 public:
  choice_or_reason(choice made) : choice_(std::move(made)) {}           // NOLINT: both are what a chooser returns
  choice_or_reason(std::string reason) : reason_(std::move(reason)) {}  // NOLINT
  choice_or_reason(const char* reason) : reason_(reason) {}             // NOLINT

  [[nodiscard]] explicit operator bool() const noexcept { return choice_.has_value(); }
  /// Precondition: there is a choice.
  [[nodiscard]] const choice& operator*() const { return *choice_; }
  [[nodiscard]] const choice* operator->() const { return &*choice_; }
  /// Empty where there is a choice.
  [[nodiscard]] const std::string& reason() const noexcept { return reason_; }

 private:
  std::optional<choice> choice_;
  std::string reason_;
};

}  // namespace dnnopt::codegen

#endif  // DNNOPT_BACKEND_CODEGEN_CHOICE_HPP

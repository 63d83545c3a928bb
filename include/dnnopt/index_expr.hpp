// Owns the one symbolic integer type: constants, symbols with ranges, + - * floordiv mod min max, hash-consed and
// simplified by a rule table. Dims, memory sizes, work sizes and kernel index arithmetic are all this type.
#ifndef DNNOPT_INDEX_EXPR_HPP
#define DNNOPT_INDEX_EXPR_HPP

#include <compare>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include <dnnopt/detail/implementation.hpp>

namespace dnnopt {

class expr_context;
class index_expr;

/// The largest magnitude that a range states; at it a bound means "unknown".
inline constexpr std::int64_t unbounded = std::int64_t{1} << 62;

/// The kinds of expression nodes. `sum` holds a constant and terms coefficient * atom; every other node is an atom.
enum class expr_op : std::uint8_t { constant, symbol, sum, product, floordiv, mod, min, max };

/// What a symbol stands for. It is told where the symbol is made and never follows from how its name is spelled.
enum class symbol_kind : std::uint8_t {
  dim,       ///< a dim that the model declares: of an input, or of a value whose operator does not tell it
  part,      ///< such a dim within a stated range, divided by what the dim is a multiple of
  data_dim,  ///< a dim of an operator's output that only the data of a run decide
  body_dim,  ///< a dim in a body of control flow that the node outside does not tell, or that turns change
  turn,      ///< the number of a body's turn
  element,   ///< an element of an input, where nothing but branches depends on it
  index,     ///< an index of an element
  argument   ///< an integer that a run gives to a kernel
};

/// Whether symbols of that kind get their values only while a run computes, and not from the shapes of its inputs.
[[nodiscard]] constexpr bool is_decided_in_runs(symbol_kind kind) noexcept {
  return kind == symbol_kind::data_dim || kind == symbol_kind::body_dim || kind == symbol_kind::turn;
}

/// Inclusive bounds of a value.
struct expr_range {
  std::int64_t low = -unbounded;
  std::int64_t high = unbounded;
  friend bool operator==(const expr_range&, const expr_range&) = default;
};

namespace detail {

struct expr_node;

struct linear_term {
  std::int64_t coefficient;
  const expr_node* atom;
  friend bool operator==(const linear_term&, const linear_term&) = default;
};

struct expr_node {
  expr_op op = expr_op::constant;
  symbol_kind kind = symbol_kind::dim;    // symbol only
  std::int64_t value = 0;                 // sum: its constant; symbol: its number
  std::vector<linear_term> terms;         // sum only, sorted by precedes
  std::vector<const expr_node*> factors;  // product only, sorted by precedes
  const expr_node* left = nullptr;        // floordiv, mod, min, max; null where the operand is a constant
  const expr_node* right = nullptr;
  std::int64_t left_constant = 0;
  std::int64_t right_constant = 0;
  expr_range range;
  std::uint32_t size = 1;  // as index_expr::size
  std::uint32_t id = 0;
  expr_context* owner = nullptr;
};

/// The order of terms, factors and operands: symbols by number, before what is made of them, which is compared by what
/// it is made of. Which expression was made first, a compiler's choice among arguments, has no part in it.
[[nodiscard]] bool precedes(const expr_node& a, const expr_node& b);
[[nodiscard]] int order_of(const expr_node* a, const expr_node* b);

[[nodiscard]] constexpr std::int64_t floor_divide(std::int64_t a, std::int64_t b) {
  const std::int64_t q = a / b;
  return q - static_cast<std::int64_t>(a % b != 0 && ((a < 0) != (b < 0)));
}

[[noreturn]] void refuse_constant();

// Range arithmetic needs more than 64 bits before it clamps.
__extension__ typedef __int128 wide_int;

[[nodiscard]] constexpr std::int64_t clamp_bound(wide_int v) {
  return v < -unbounded ? -unbounded : v > unbounded ? unbounded : static_cast<std::int64_t>(v);
}

}  // namespace detail

/// Values of symbols for evaluation, by symbol number.
class symbol_values {
 public:
  /// Binds the symbol of that number; a later binding replaces an earlier one.
  void bind(std::uint32_t symbol, std::int64_t value);
  /// The bound value, or nothing.
  [[nodiscard]] std::optional<std::int64_t> find(std::uint32_t symbol) const {
    return symbol < values_.size() ? values_[symbol] : std::nullopt;
  }
  friend bool operator==(const symbol_values& a, const symbol_values& b);

 private:
  std::vector<std::optional<std::int64_t>> values_;
};

/// An immutable integer expression in canonical form; 16 bytes, copied freely.
///
/// Non-constant expressions live in the expr_context that made their symbols and must not outlive it; mixing two
/// contexts is errc::invalid_argument. Arithmetic is on mathematical integers; constants that leave 64 bits are
/// errc::overflow. floordiv and mod round towards minus infinity and need a divisor other than zero; expressions state
/// this as a precondition, so `(x * y) floordiv y` is x only where y's range excludes 0.
/// Equality is structural on the canonical form: equal expressions have equal values; the converse holds for
/// polynomials and is best effort for floordiv, mod, min and max.
class index_expr {
 public:
  /// The constant `value`.
  index_expr(std::int64_t value = 0) : constant_(value) {}  // NOLINT: numbers are expressions

  [[nodiscard]] bool is_constant() const noexcept { return node_ == nullptr; }
  /// The value of a constant. Errors: unbound_symbol where it is none.
  [[nodiscard]] std::int64_t constant() const {
    if (node_ != nullptr) detail::refuse_constant();
    return constant_;
  }
  /// The value of a constant, or nothing.
  [[nodiscard]] std::optional<std::int64_t> as_constant() const {
    return node_ == nullptr ? std::optional<std::int64_t>(constant_) : std::nullopt;
  }
  [[nodiscard]] expr_op op() const noexcept { return node_ == nullptr ? expr_op::constant : node_->op; }
  /// The number of a symbol, or nothing.
  [[nodiscard]] std::optional<std::uint32_t> as_symbol() const {
    return op() == expr_op::symbol ? std::optional(static_cast<std::uint32_t>(node_->value)) : std::nullopt;
  }
  /// What a symbol stands for. Precondition: as_symbol().
  [[nodiscard]] symbol_kind kind() const noexcept { return node_->kind; }
  /// Inclusive bounds that hold for all values of the symbols within their ranges.
  [[nodiscard]] expr_range range() const { return node_ == nullptr ? expr_range{constant_, constant_} : node_->range; }
  /// Operators and operands of the expression written out in full: 1 for constants and symbols. Shared parts count each
  /// time, so that this bounds the length of its text; it saturates.
  [[nodiscard]] std::uint32_t size() const noexcept { return node_ == nullptr ? 1 : node_->size; }
  /// The canonical node; null for a constant. For printers and code generators.
  [[nodiscard]] const detail::expr_node* node() const noexcept { return node_; }
  /// The context that owns the expression; null for a constant.
  [[nodiscard]] expr_context* context() const noexcept { return node_ == nullptr ? nullptr : node_->owner; }
  /// The expression of a node or, where the node is null, the constant.
  [[nodiscard]] static index_expr from_node(const detail::expr_node* node, std::int64_t constant = 0) {
    index_expr e(constant);
    if (node != nullptr) e.node_ = node, e.constant_ = 0;
    return e;
  }

  /// The value under bindings. Errors: unbound_symbol, division_by_zero, overflow.
  [[nodiscard]] std::int64_t evaluate(const symbol_values& values) const;
  /// The value under bindings, or nothing where a symbol is unbound or a divisor is 0. Errors: overflow.
  [[nodiscard]] std::optional<std::int64_t> try_evaluate(const symbol_values& values) const;

  friend bool operator==(const index_expr& a, const index_expr& b) noexcept {
    return a.node_ == b.node_ && a.constant_ == b.constant_;
  }

  friend index_expr operator+(const index_expr& a, const index_expr& b);
  friend index_expr operator-(const index_expr& a, const index_expr& b);
  friend index_expr operator*(const index_expr& a, const index_expr& b);
  index_expr& operator+=(const index_expr& b) { return *this = *this + b; }
  index_expr& operator-=(const index_expr& b) { return *this = *this - b; }
  index_expr& operator*=(const index_expr& b) { return *this = *this * b; }

  friend std::size_t hash_value(const index_expr& e) noexcept {
    return e.node_ == nullptr ? std::hash<std::int64_t>{}(e.constant_) : std::hash<const void*>{}(e.node_);
  }

 private:
  const detail::expr_node* node_ = nullptr;
  std::int64_t constant_ = 0;
};

/// Rounds a / b towards minus infinity. Errors: division_by_zero for a constant zero divisor.
[[nodiscard]] index_expr floordiv(const index_expr& a, const index_expr& b);
/// a - b * floordiv(a, b): has the sign of b. Errors: division_by_zero for a constant zero divisor.
[[nodiscard]] index_expr mod(const index_expr& a, const index_expr& b);
[[nodiscard]] index_expr min(const index_expr& a, const index_expr& b);
[[nodiscard]] index_expr max(const index_expr& a, const index_expr& b);
/// Rounds a / b towards plus infinity; b positive.
[[nodiscard]] inline index_expr ceildiv(const index_expr& a, const index_expr& b) { return floordiv(a + b - 1, b); }

/// Whether a < b as an expression of value 0 or 1; a number where the ranges of the two decide it. Errors: overflow.
[[nodiscard]] inline index_expr is_less(const index_expr& a, const index_expr& b) {
  const index_expr difference = b - a;
  const expr_range range = difference.range();
  if (range.low > 0) return 1;
  if (range.high <= 0) return 0;
  return min(max(difference, 0), 1);
}

/// Whether two expressions are equal, as an expression of value 0 or 1; a number where their ranges decide it. Errors:
/// overflow.
[[nodiscard]] inline index_expr is_equal(const index_expr& a, const index_expr& b) {
  if (a == b) return 1;
  const index_expr difference = a - b;
  const expr_range range = difference.range();
  if (range.low > 0 || range.high < 0) return 0;
  if (range.low == 0 && range.high == 0) return 1;
  // Of a magnitude no range is known to be above 0 where its sides are unbounded.
  return 1 - min(max(max(difference, 0 - difference), 0), 1);
}

/// `e` with every symbol s replaced by `replacement(s)` (an index_expr, of any one context), simplified anew. Shared
/// parts are replaced once.
/// Errors: division_by_zero where a divisor becomes 0.
[[nodiscard]] index_expr substitute(const index_expr& e,
                                    const std::function<index_expr(const index_expr& symbol)>& replacement);

/// `e` with every atom a that sums and products of it are made of (a symbol, a quotient, a remainder, a minimum or a
/// maximum) replaced by `replacement(a)`, an index_expr of any one context, simplified anew. An atom for which that is
/// nothing is replaced within; a symbol must have a replacement. Shared parts are replaced once.
/// Errors: division_by_zero where a divisor becomes 0.
[[nodiscard]] index_expr substitute_atoms(
    const index_expr& e, const std::function<std::optional<index_expr>(const index_expr& atom)>& replacement);

/// Whether `e` has a value for all values of its symbols: each divisor in it is above 0 by its range.
[[nodiscard]] bool always_has_value(const index_expr& e);

/// `e` with the greater of 1 and the divisor in place of each divisor that is 0 or more: its value wherever `e` has
/// one, and some number where one of those divisors is 0.
[[nodiscard]] index_expr divided_by_one_at_least(const index_expr& e);

/// Owns symbols and the nodes of expressions over them. Not copyable. Several threads may make and evaluate expressions
/// at once, as sessions of one model do while they are compiled.
class expr_context {
 public:
  expr_context();
  ~expr_context();
  expr_context(const expr_context&) = delete;
  expr_context& operator=(const expr_context&) = delete;

  /// The symbol of that name, made on first use with the range and kind given then. A dim's range starts at 0.
  [[nodiscard]] index_expr symbol(std::string_view name, expr_range range = {0, unbounded},
                                  symbol_kind kind = symbol_kind::dim);
  /// The dim along `axis` of output number `output` of the node that `scope` names, which data decide: made on first
  /// use with the range given then, of kind data_dim. Its name, which is for messages, is "<scope>.<output>.<axis>", or
  /// a new one that begins so where that is the name of another symbol.
  [[nodiscard]] index_expr data_dim(std::string_view scope, std::size_t output, std::size_t axis,
                                    expr_range range = {0, unbounded});
  /// Whether `e` is the symbol that data_dim gives for these; makes none.
  [[nodiscard]] bool is_data_dim(const index_expr& e, std::string_view scope, std::size_t output,
                                 std::size_t axis) const;
  /// A symbol of a name not used before: `prefix` followed by a number.
  [[nodiscard]] index_expr fresh(std::string_view prefix, expr_range range = {0, unbounded});
  /// The symbol of that number. Precondition: it is below symbol_count().
  [[nodiscard]] index_expr symbol_at(std::uint32_t number) const;
  /// The number of the symbol of that name, or nothing.
  [[nodiscard]] std::optional<std::uint32_t> find(std::string_view name) const;
  [[nodiscard]] std::size_t symbol_count() const;
  /// Values that bind every symbol to `value`. Linear in their count.
  [[nodiscard]] symbol_values all_bound_to(std::int64_t value) const;
  [[nodiscard]] const std::string& symbol_name(std::uint32_t number) const;
  /// The number of `divisor` among those that were noted, from 0: whoever writes expressions as text notes by what it
  /// divides, and whoever hands the text on finds them all in noted_divisors(). O(noted ones).
  [[nodiscard]] std::size_t note_divisor(const index_expr& divisor);
  [[nodiscard]] std::vector<index_expr> noted_divisors() const;

  // Node constructors, used by the operators below; operands are canonical.
  [[nodiscard]] index_expr make_sum(std::int64_t constant, std::vector<detail::linear_term> terms);
  [[nodiscard]] index_expr make_product(std::vector<const detail::expr_node*> factors);
  [[nodiscard]] index_expr make_binary(expr_op op, const index_expr& a, const index_expr& b);

 private:
  struct symbol_row {
    std::string name;
    const detail::expr_node* node;
  };
  struct data_dim_key {
    std::string scope;
    std::size_t output;
    std::size_t axis;
    friend auto operator<=>(const data_dim_key&, const data_dim_key&) = default;
  };

  /// Preconditions of these: the lock is held; the node and the name are not known.
  index_expr add_symbol(std::string_view name, expr_range range, symbol_kind kind);
  index_expr add_fresh(std::string_view prefix, expr_range range, symbol_kind kind);
  const detail::expr_node* add(detail::expr_node node);
  const detail::expr_node* intern(detail::expr_node node);
  static std::size_t hash_of(const detail::expr_node& node);
  static bool same(const detail::expr_node& a, const detail::expr_node& b);

  mutable std::mutex lock_;  ///< of all that follows; nodes and rows stay where they are once made
  std::vector<std::unique_ptr<detail::expr_node>> nodes_;
  std::unordered_multimap<std::size_t, const detail::expr_node*> interned_;
  std::deque<symbol_row> symbols_;
  std::map<std::string, std::uint32_t, std::less<>> by_name_;
  std::map<data_dim_key, std::uint32_t> data_dims_;
  std::vector<index_expr> divisors_;
  std::size_t fresh_ = 0;
};

namespace detail {

/// Splits a sum into the part whose coefficients (and constant) are multiples of `by`, divided by it, and the rest.
[[nodiscard]] std::pair<index_expr, index_expr> split_multiples(const index_expr& e, std::int64_t by);
/// If every term of `e` has `divisor` (a product or atom, not a sum) as a factor, the quotient.
[[nodiscard]] std::optional<index_expr> exact_quotient(const index_expr& e, const index_expr& divisor);

}  // namespace detail

}  // namespace dnnopt

#if DNNOPT_IMPLEMENT_GRAPH
#include <dnnopt/detail/index_expr_rules.hpp>
#include <dnnopt/detail/index_expr_sums.hpp>
#include <dnnopt/detail/index_expr_symbols.hpp>
#include <dnnopt/detail/index_expr_walks.hpp>
#endif

#endif  // DNNOPT_INDEX_EXPR_HPP

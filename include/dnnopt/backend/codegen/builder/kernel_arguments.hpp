// Owns the arguments of one kernel: its pointers, the integers that a run evaluates for it, and their text in its
// source.
#ifndef DNNOPT_BACKEND_CODEGEN_BUILDER_KERNEL_ARGUMENTS_HPP
#define DNNOPT_BACKEND_CODEGEN_BUILDER_KERNEL_ARGUMENTS_HPP

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dnnopt/backend/codegen/builder/access_log.hpp>
#include <dnnopt/backend/codegen/builder/c_types.hpp>
#include <dnnopt/backend/codegen/builder/index_source.hpp>
#include <dnnopt/backend/codegen/builder/kernel_plan.hpp>
#include <dnnopt/backend/codegen/builder/texel_access.hpp>
#include <dnnopt/error.hpp>
#include <dnnopt/graph.hpp>
#include <dnnopt/index_expr.hpp>

namespace dnnopt::codegen {

/// The arguments of one kernel, each taken up where it is first asked for: pointers b0, b1, ... come before integers
/// p0, p1, ... The kernel's expressions have symbols of their own: these integers, and the indices of its loops.
class kernel_arguments {
 public:
  /// What only a run tells to be of how many elements is taken to have no more than these, so that index arithmetic
  /// keeps to 32 bits: a run of more is refused (kernel_plan::counted).
  static constexpr std::int64_t largest_dim = largest_count;

  [[nodiscard]] const std::shared_ptr<expr_context>& expressions() const noexcept { return context_; }

  /// What an index along a dim of that extent may be.
  [[nodiscard]] static expr_range below(const index_expr& extent) {
    const std::int64_t last = std::max<std::int64_t>(extent.range().high - 1, 0);
    return {0, extent.is_constant() ? last : std::min(last, largest_dim)};
  }
  /// An index named `name` with values 0 .. extent - 1. Errors: invalid_argument where the name stands for an index of
  /// another extent already.
  [[nodiscard]] index_expr index(std::string_view name, const index_expr& extent) {
    const expr_range range = below(extent);
    const index_expr made = context_->symbol(name, range);
    if (!(made.range() == range))
      throw error(errc::invalid_argument, "index '" + std::string(name) + "' has another extent already");
    (void)counts_in_int(extent);
    if (!is_index_of(made, extent)) indices_.emplace_back(made, extent);
    return made;
  }
  /// Whether an expression is an index of that extent, and so below it in every run. O(indices).
  [[nodiscard]] bool is_index_of(const index_expr& e, const index_expr& extent) const {
    return std::any_of(indices_.begin(), indices_.end(),
                       [&](const auto& index) { return index.first == e && index.second == extent; });
  }
  /// Whether the kernel may take a count for one that fits an int: what it may be tells, or only a run does, which is
  /// refused where it is more (kernel_plan::counted). O(counts).
  bool counts_in_int(const index_expr& count) {
    if (fits_int(count.range())) return true;
    if (std::find(counted_.begin(), counted_.end(), count) != counted_.end()) return true;
    if (count.is_constant() || !is_of_integers(count)) return false;
    counted_.push_back(count);
    return true;
  }

  // --- integers ---

  /// The argument that holds an expression over the graph's symbols. O(arguments).
  [[nodiscard]] index_expr integer(const index_expr& outer) {
    for (std::size_t i = 0; i < integers_.size(); ++i)
      if (integers_[i] == outer) return symbol_of(i);
    integers_.push_back(outer);
    return context_->symbol("p" + std::to_string(integers_.size() - 1), bounds_of(outer), symbol_kind::argument);
  }
  /// The C name of an argument that is `bits` in every run: a number that would tell kernels apart which are alike but
  /// for it. Nothing where there are so many already that arguments would not fit.
  [[nodiscard]] std::optional<std::string> number(std::int32_t bits) {
    constexpr std::size_t most = 48;
    const auto is_it = [&](std::size_t i) { return integers_[i] == index_expr(bits); };
    for (const std::size_t i : numbers_)
      if (is_it(i)) return "p" + std::to_string(i);
    if (numbers_.size() >= most) return std::nullopt;
    numbers_.push_back(integers_.size());
    integers_.emplace_back(bits);
    std::string name = "p" + std::to_string(numbers_.back());
    (void)context_->symbol(name, {std::numeric_limits<std::int32_t>::min(), std::numeric_limits<std::int32_t>::max()});
    return name;
  }
  /// An expression over the graph's symbols in the kernel's own symbols. Each symbol becomes an argument, and so does
  /// each quotient, remainder, minimum and maximum of them: a run evaluates it once, a kernel would for each of its
  /// work-items, and what has its parts in common with others would be too long when written out. A launch without
  /// work-items must not be refused for a size that is 0, so that a divisor counts as 1 there. What may divide by
  /// numbers below 0 stays an expression. Where the bounds of the whole follow from how its parts depend on each other
  /// (x - min(x, y) is not negative), it is one argument.
  [[nodiscard]] index_expr translate(const index_expr& whole) {
    const index_expr e = divided_by_one_at_least(whole);
    const index_expr made = substitute_atoms(e, [this](const index_expr& atom) -> std::optional<index_expr> {
      if (!atom.as_symbol() && !always_has_value(atom)) return std::nullopt;
      return integer(atom);
    });
    const expr_range bounds = bounds_of(e);
    const bool looser = made.range().low < bounds.low || made.range().high > bounds.high;
    return looser && always_has_value(e) ? integer(e) : made;
  }
  /// An expression of the kernel with each quotient, remainder, minimum and maximum that is made of its integers alone
  /// as one more integer, as translate() has them: operators' traits make such parts of dims that are integers already
  /// (how far a window or a crop is moved). What takes no values in a run for certain stays an expression.
  [[nodiscard]] index_expr with_known_parts(const index_expr& e) {
    return substitute_atoms(e, [this](const index_expr& atom) -> std::optional<index_expr> {
      if (atom.as_symbol()) return atom;
      if (!is_of_integers(atom)) return std::nullopt;
      const index_expr outer = divided_by_one_at_least(translate_back(atom));
      return always_has_value(outer) ? std::optional(integer(outer)) : std::nullopt;
    });
  }
  /// The other way round: an expression over arguments in the graph's symbols. Precondition: it names no index.
  [[nodiscard]] index_expr translate_back(const index_expr& e) {
    return substitute(e, [this](const index_expr& symbol) {
      for (std::size_t i = 0; i < integers_.size(); ++i)
        if (symbol_of(i) == symbol) return integers_[i];
      return symbol;
    });
  }
  /// Whether a symbol is one of the integers.
  [[nodiscard]] bool is_integer(const index_expr& symbol) {
    for (std::size_t i = 0; i < integers_.size(); ++i)
      if (symbol == symbol_of(i)) return true;
    return false;
  }

  /// Whether an expression of the kernel names nothing but integers and `others`.
  [[nodiscard]] bool is_of_integers(const index_expr& e, std::span<const index_expr> others = {}) {
    bool all = true;
    (void)substitute(e, [&](const index_expr& symbol) {
      all = all && (is_integer(symbol) || std::find(others.begin(), others.end(), symbol) != others.end());
      return symbol;
    });
    return all;
  }

  // --- pointers ---

  /// The C name of a pointer.
  [[nodiscard]] static std::string name_of(std::size_t pointer) { return "b" + std::to_string(pointer); }
  [[nodiscard]] pointer_argument& pointer(std::size_t number) { return pointers_[number]; }
  /// The number of the pointer to a value; `written` from now on where that says so.
  [[nodiscard]] std::size_t pointer_to(const graph& g, value_id id, bool written) {
    pointer_argument argument;
    argument.held = id;
    argument.type = g.facts(id).type;
    if (const auto& texels = g.facts(id).texels) argument.object = texels->object;
    return number_of(argument, written);
  }
  /// The same of scratch memory.
  [[nodiscard]] std::size_t pointer_to_scratch(std::size_t number, dtype type, bool written) {
    pointer_argument argument;
    argument.scratch = number;
    argument.type = type;
    return number_of(argument, written);
  }
  /// The loads and stores of the source, by pointer.
  [[nodiscard]] access_log& accesses() noexcept { return accesses_; }
  /// Outputs that may be given the memory of an input.
  [[nodiscard]] std::vector<overwrite_pair> overwrites() const { return accesses_.overwrites(pointers_); }

  /// The kernel with these arguments: `prelude`, then the argument lists as DNNOPT_KERNEL_PARAMETERS, DNNOPT_PARAMETERS
  /// and DNNOPT_ARGUMENTS, `functions`, and `body`, whose dnnopt_kernel is named after `version`. Of the kernel's own
  /// pointers those that are read alone are declared `restrict`, which says already that no store changes what they
  /// point to. Functions take the same pointers without it: the promise holds for all that is inlined into the kernel,
  /// and promises of inlined functions, or of what is written, are what compilers get wrong (Intel's,
  /// docs/measurements/random_models.md).
  [[nodiscard]] kernel_plan plan(std::string_view prelude, std::string_view functions, std::string_view body,
                                 std::string_view version) {
    kernel_plan made;
    made.overwrites = overwrites();
    texts lists;
    for (std::size_t i = 0; i < pointers_.size(); ++i) add_pointer(lists, i, made.overwrites);
    for (std::size_t i = 0; i < integers_.size(); ++i) {
      const bool is_long = !fits_int(symbol_of(i).range());
      lists.add(is_long ? "const long" : "const int", "", "p" + std::to_string(i));
      made.parameters.push_back(integers_[i]);
      made.parameter_is_long.push_back(is_long);
      made.parameter_symbols.push_back(*symbol_of(i).as_symbol());
    }
    for (const index_expr& extent : counted_) made.counted.push_back(translate_back(extent));
    const std::vector<index_expr> divisors = context_->noted_divisors();
    for (std::size_t i = 0; i < divisors.size(); ++i) {
      lists.add("const long", "", reciprocal_name(i));
      made.divisors.push_back(translate_back(divisors[i]));
    }
    const bool doubles =
        std::any_of(pointers_.begin(), pointers_.end(), [](const auto& p) { return p.type == dtype::float64; });
    made.version = version;
    made.entry = "dnnopt_" + made.version;
    made.source = std::string(doubles ? "#pragma OPENCL EXTENSION cl_khr_fp64 : enable\n" : "") + std::string(prelude) +
                  "#define DNNOPT_PARAMETERS " + lists.parameters + "\n#define DNNOPT_KERNEL_PARAMETERS " +
                  lists.of_kernel + "\n#define DNNOPT_ARGUMENTS " + lists.arguments + "\n" + std::string(functions) +
                  "#define dnnopt_kernel " + made.entry + "\n" + std::string(body);
    made.pointers = pointers_;
    made.expressions = context_;
    return made;
  }

 private:
  /// Argument lists as they grow.
  struct texts {
    std::string parameters;
    std::string of_kernel;
    std::string arguments;

    void add(const std::string& declaration, std::string_view qualifier, const std::string& name) {
      const std::string between = parameters.empty() ? "" : ", ";
      parameters.append(between).append(declaration).append(" ").append(name);
      of_kernel.append(between).append(declaration).append(qualifier).append(" ").append(name);
      arguments.append(between).append(name);
    }
  };

  void add_pointer(texts& lists, std::size_t i, const std::vector<overwrite_pair>& overwrites) const {
    const pointer_argument& pointer = pointers_[i];
    if (pointer.object != memory_object::buffer) {
      lists.add(
          std::string(pointer.written ? "__write_only " : "__read_only ") + std::string(image_type(pointer.object)), "",
          name_of(i));
      return;
    }
    // What may be one buffer must not be declared apart.
    const bool shared = std::any_of(overwrites.begin(), overwrites.end(),
                                    [i](const overwrite_pair& o) { return o.input == i || o.output == i; });
    lists.add(std::string(pointer.written ? "__global " : "__global const ") +
                  std::string(c_type_of(pointer.type).storage) + "*",
              shared || pointer.written ? "" : " restrict", name_of(i));
  }

  [[nodiscard]] std::size_t number_of(const pointer_argument& wanted, bool written) {
    for (std::size_t i = 0; i < pointers_.size(); ++i)
      if (pointers_[i].held == wanted.held && (wanted.held != no_value || pointers_[i].scratch == wanted.scratch)) {
        pointers_[i].written = pointers_[i].written || written;
        return i;
      }
    pointers_.push_back(wanted);
    pointers_.back().written = written;
    return pointers_.size() - 1;
  }

  [[nodiscard]] index_expr symbol_of(std::size_t integer) { return context_->symbol("p" + std::to_string(integer)); }

  /// The range of an expression over the graph's symbols, of which a run refuses what is above `largest_dim`.
  [[nodiscard]] expr_range bounds_of(const index_expr& outer) {
    return substitute(outer,
                      [this](const index_expr& symbol) {
                        expr_range own = symbol.range();
                        if (own.high >= unbounded) own.high = largest_dim;
                        return context_->symbol("outer_" + std::to_string(*symbol.as_symbol()), own);
                      })
        .range();
  }

  std::shared_ptr<expr_context> context_ = std::make_shared<expr_context>();
  std::vector<index_expr> integers_;                        ///< over the graph's symbols
  std::vector<std::size_t> numbers_;                        ///< those of them that number() made
  std::vector<std::pair<index_expr, index_expr>> indices_;  ///< with their extents
  std::vector<index_expr> counted_;                         ///< extents of indices that are taken to fit an int
  std::vector<pointer_argument> pointers_;
  access_log accesses_;
};

}  // namespace dnnopt::codegen

#endif  // DNNOPT_BACKEND_CODEGEN_BUILDER_KERNEL_ARGUMENTS_HPP

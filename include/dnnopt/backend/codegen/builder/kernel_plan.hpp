// Owns the description of one device kernel before it meets a device: source, arguments and work sizes as expressions.
#ifndef DNNOPT_BACKEND_CODEGEN_BUILDER_KERNEL_PLAN_HPP
#define DNNOPT_BACKEND_CODEGEN_BUILDER_KERNEL_PLAN_HPP

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dnnopt/backend/codegen/builder/shared_text.hpp>
#include <dnnopt/dtype.hpp>
#include <dnnopt/graph.hpp>
#include <dnnopt/index_expr.hpp>
#include <dnnopt/layout.hpp>

namespace dnnopt::codegen {

/// A buffer argument. `scratch` buffers belong to one plan list and hold what passes between its kernels.
struct pointer_argument {
  value_id held = no_value;  ///< the value of the graph, or no_value for scratch
  std::size_t scratch = 0;   ///< index into lowered_node::scratch where `held` is no_value
  bool written = false;
  dtype type = dtype::float32;
  memory_object object = memory_object::buffer;
  /// Of an image: reads beyond the value's last texel of a row, or beyond the last row of its planes, must find the
  /// image's border, so the image may be no larger than the value in that direction.
  bool ends_rows = false;
  bool ends_planes = false;
};

/// Permission to give an output the memory of an input (both index kernel_plan::pointers): element i of the input is
/// read by nobody but who stores element i of the output, and before the store.
struct overwrite_pair {
  std::size_t input = 0;
  std::size_t output = 0;
};

/// What an image of texels needs to be made.
struct texel_storage {
  memory_object object = memory_object::buffer;
  texel_extents extents;        ///< over the graph's symbols
  std::int64_t layer_rows = 0;  ///< as texel_layout
  dtype type = dtype::float32;  ///< float32 or float16
};

/// Memory between the kernels of one lowered node.
struct scratch_buffer {
  index_expr bytes;         ///< over the graph's symbols
  bool persistent = false;  ///< written by `prepare` kernels and kept as long as the weights
  texel_storage image{};    ///< what it is where it is no buffer; images are persistent
};

/// The most that an int of a kernel counts.
inline constexpr std::int64_t largest_count = (std::int64_t{1} << 31) - 1;

/// What a kernel multiplies by to divide numbers of 31 bits by `divisor` (dnnopt_over in the prelude): with
/// 2^(shift - 1) < divisor <= 2^shift, ceil(2^(31 + shift) / divisor) in the low 32 bits and the shift above them. The
/// quotient is exact, for what the rounding adds stays below 1 / divisor (Granlund and Montgomery, Division by
/// Invariant Integers using Multiplication, 1994, theorem 4.2). 0, which makes every quotient 0, of what is not above 0
/// or has more than 31 bits.
[[nodiscard]] constexpr std::int64_t reciprocal_of(std::int64_t divisor) noexcept {
  if (divisor <= 0 || divisor > largest_count) return 0;
  const auto shift = static_cast<std::uint64_t>(std::bit_width(static_cast<std::uint64_t>(divisor - 1)));
  const std::uint64_t by = static_cast<std::uint64_t>(divisor);
  const std::uint64_t factor = ((std::uint64_t{1} << (31 + shift)) + by - 1) / by;
  return static_cast<std::int64_t>(factor | shift << 32U);
}

/// One kernel launch. Pointer arguments come first in the argument list, then one integer per parameter, then a long,
/// reciprocal_of, per divisor.
struct kernel_plan {
  shared_text source;
  std::string options;
  std::string entry = "dnnopt_kernel";
  std::vector<pointer_argument> pointers;
  std::vector<overwrite_pair> overwrites;
  std::vector<index_expr> parameters;   ///< over the graph's symbols, in argument order
  std::vector<bool> parameter_is_long;  ///< a long argument, else int
  std::vector<index_expr> counted;      ///< over the graph's symbols: what an int of the kernel counts
  std::vector<index_expr> divisors;     ///< over the graph's symbols: made of parameters, by which the kernel divides
  /// Work sizes over the kernel's own symbols; bind parameter i to symbol `parameter_symbols[i]` and evaluate.
  std::array<index_expr, 3> global{index_expr(1), index_expr(1), index_expr(1)};
  std::array<std::size_t, 3> local{0, 0, 0};  ///< 0: the launch chooses
  std::vector<std::uint32_t> parameter_symbols;
  std::shared_ptr<expr_context> expressions;  ///< keeps the kernel's own symbols alive
  index_expr flops = 0;                       ///< over the kernel's own symbols
  bool adds_partials = false;                 ///< whether it adds the sums of splits, which another kernel kept
  bool half_products = false;                 ///< whether products are of halves, and summed in them for a while
  std::string_view step;                      ///< provider of the matrix steps that it multiplies in; empty: none
  std::vector<std::string> notes;             ///< what an image would have given the kernel and could not, and why
  /// 1 in runs of which the launch is part, 0 where another version of it is; over the graph's symbols.
  index_expr when = 1;
  std::string guard;            ///< `when` for people; empty of the version that serves where no other does
  std::size_t alternative = 0;  ///< its version among those of its step
  std::string tuning;           ///< shape class that a tuning_table may hold; empty where nothing is to choose
  std::string version;          ///< name of the kernel family and version, for logs and tests

  /// The kernel's own symbols bound to the values of its parameters under `values` of the graph's symbols.
  [[nodiscard]] symbol_values bind(const symbol_values& values) const {
    symbol_values own;
    for (std::size_t i = 0; i < parameters.size(); ++i) own.bind(parameter_symbols[i], parameters[i].evaluate(values));
    return own;
  }
};

/// A size that kernels compute: when kernel `after` has run, scratch buffer `scratch` holds it as one int64, and the
/// dims (value and number) of which it is the size are known for the kernels that follow.
struct computed_size {
  std::size_t after = 0;
  std::size_t scratch = 0;
  std::vector<std::pair<value_id, std::size_t>> dims;
};

/// What one node (or block) becomes: kernels in launch order and the memory between them.
struct lowered_node {
  /// Run once when the weights are there, before any of `kernels`: they read only constants and write only persistent
  /// scratch (weights packed for the kernels). A constant that only they read may be released afterwards.
  std::vector<kernel_plan> prepare;
  std::vector<kernel_plan> kernels;  ///< run for each inference, in order
  std::vector<scratch_buffer> scratch;
  std::optional<computed_size> size;  ///< where data decide dims of the outputs
  std::vector<std::string> notes;     ///< what lies in other memory than was asked for, and why
  std::size_t versions = 1;           ///< of the node: kernels of one `alternative` run, those of the others don't
  /// Operands in rows that the kernels would read sooner as texels in a buffer.
  std::vector<value_id> sooner_as_texels;
  std::vector<std::string> passed_over;  ///< "version: why" of each row of the table that did not take the block
};

/// What tells kernel `k` of a node from those that run beside it: nothing where it is alone, else "#" and its number.
[[nodiscard]] inline std::string part_of_node(const lowered_node& lowered, std::size_t k) {
  std::size_t before = 0;
  std::size_t all = 0;
  for (std::size_t i = 0; i < lowered.kernels.size(); ++i) {
    if (lowered.kernels[i].alternative != lowered.kernels[k].alternative) continue;
    ++all;
    before += i < k ? 1U : 0U;
  }
  return all <= 1 ? std::string() : "#" + std::to_string(before);
}

}  // namespace dnnopt::codegen

#endif  // DNNOPT_BACKEND_CODEGEN_BUILDER_KERNEL_PLAN_HPP

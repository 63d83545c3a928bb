// Owns what an operator type must state (concept Operator), its type-erased row (op_info) and lists of rows (op_set).
#ifndef DNNOPT_OPS_OP_INFO_HPP
#define DNNOPT_OPS_OP_INFO_HPP

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <dnnopt/detail/implementation.hpp>
#include <dnnopt/ops/classes.hpp>
#include <dnnopt/ops/exact_quotient.hpp>
#include <dnnopt/ops/facts.hpp>

namespace dnnopt {

/// No upper limit on the number of inputs or outputs.
inline constexpr std::uint16_t variadic = std::numeric_limits<std::uint16_t>::max();

/// The numbers of inputs and outputs that an operator takes; an absent optional input in the middle counts.
struct op_arity {
  std::uint16_t least_inputs;
  std::uint16_t most_inputs;
  std::uint16_t least_outputs = 1;
  std::uint16_t most_outputs = 1;
};

/// Raises what is known about outputs from what is known about inputs (shape and value, forward).
/// `outputs` has node_facts::output_count entries. Errors: shape_mismatch, type_mismatch, bad_attribute.
using infer_function = void (*)(const node_facts& facts, std::span<value_facts> outputs);
/// Raises what is known about inputs from what is known about outputs (backward); entries of absent inputs are ignored.
using infer_backward_function = void (*)(const node_facts& facts, std::span<const value_facts> outputs,
                                         std::span<value_facts> inputs);
/// States where element `index` of `output` comes from. Precondition: shapes of all inputs are known.
using view_function = void (*)(view_builder& builder, const node_facts& facts, std::size_t output,
                               std::span<const index_expr> index);
/// Where element `index` of input 0 stands in output 0, whose dims are `to`: the inverse of a view that moves each
/// element to one place. Precondition: shapes of all inputs are known.
using unview_function = std::vector<index_expr> (*)(const node_facts& facts, const shape& to,
                                                    std::span<const index_expr> index);
/// What an element is exactly, of one element of each input; nothing where it cannot be told.
using quotient_function = std::optional<exact_quotient> (*)(std::span<const exact_quotient> inputs);
/// Computes outputs on the host: the reference evaluation that a user's operator brings along.
using evaluate_function = void (*)(const attribute_map& attributes, std::span<const tensor> inputs,
                                   std::span<tensor> outputs);

/// The type-erased row of an operator type: everything that passes and backends ask. Made by `op_row<Op>`.
struct op_info {
  std::string_view domain;  ///< "" is ai.onnx
  std::string_view name;    ///< ONNX's name
  int since = 1;            ///< the opset version whose form the row describes
  op_arity arity{};
  mapping_type mapping{};
  layout_class layout{};
  dynamism_class dynamism{};
  computation_kind kind{};
  algebra properties = algebra::none;
  /// Each output element is an element of an input, or zero: whatever type holds the inputs holds the output exactly.
  bool selects = false;
  /// Scalar OpenCL C expression of output 0 over x0, x1, ..., elements of the inputs as ONNX broadcasts them; empty
  /// where an output element is no such expression. docs/reference/scalar_expressions.md has the types, the
  /// substitutions ("{alpha=0.01}", "{has1}", ...) and the functions that it may call. It holds only while
  /// mapping_of(input 0, output 0) is not Many-to-Many.
  std::string_view scalar;
  std::string_view scalar_integer;  ///< the same for nodes whose inputs are all integer or boolean, where it differs
  /// The same for int32 and int64 results of inputs some of which are floating, where float would lose what the result
  /// holds: integer operands come as long, and the expression is a long, cut as a double is to 64 bits.
  std::string_view scalar_to_integer;

  mapping_type (*mapping_of)(const node_facts&, std::size_t input, std::size_t output) = nullptr;
  layout_class (*layout_of)(const node_facts&) = nullptr;
  dynamism_class (*dynamism_of)(const node_facts&) = nullptr;
  infer_function infer = nullptr;
  infer_backward_function infer_backward = nullptr;
  view_function view = nullptr;
  unview_function unview = nullptr;                 ///< null: the view has no inverse, or none that is an index map
  index_expr (*macs)(const node_facts&) = nullptr;  ///< multiply-accumulates; null: none
  evaluate_function evaluate = nullptr;             ///< null: the reference backend has it
  /// Where a kind without an element expression by itself has one: about what one element costs next to an addition. 0:
  /// the kind says it.
  int element_cost = 0;
  /// Output 0 is input 0 less its mean (or as it is), times the reciprocal of its deviation over the dims from
  /// attribute "axis" on, times input 1, plus input 2 where given: two numbers per row tell all that a reader needs to
  /// know.
  bool normalizes_rows = false;
  /// Output 0 reduces every plane of input 0, all dims from the third on, to one element.
  bool reduces_planes = false;
  /// Output 0 is input 0, codes, less input 2 where given, times input 1: one of these for all elements, for each entry
  /// of the dim of attribute "axis", or for each block of "block_size" entries of it.
  bool dequantizes = false;
  /// Output 0 is the code of input 0 by scale 1 and zero point 2, where given.
  bool quantizes = false;
  /// Output 0 is input 0 in another type.
  bool converts = false;
  /// What an element of output 0 is exactly where those of the inputs are quotients of integers
  /// (ops/exact_quotient.hpp), or nothing; null: nobody says.
  quotient_function exact = nullptr;
  /// Output 0 reduces every window of input 0 (attributes kernel_shape, strides, pads) to one element, as the operator
  /// of this name reduces dims; empty: it does not.
  std::string_view window_reduction;
  flow_form flow = flow_form::none;  ///< how it runs its subgraphs
  bool random = false;               ///< two evaluations differ, so it is never folded or merged
  /// Inputs whose values, not only their shapes, decide rank, dims or form of the computation (axes, sizes, counts,
  /// flags): a kernel is written for values that are known, or expressions of dims.
  input_set structural_inputs;
};

namespace detail {
template <class Op>
concept StatesName = requires {
  { Op::name } -> std::convertible_to<std::string_view>;
};
template <class Op>
concept StatesArity = requires {
  { Op::arity } -> std::convertible_to<op_arity>;
};
template <class Op>
concept StatesMapping = requires {
  { Op::mapping } -> std::convertible_to<mapping_type>;
};
template <class Op>
concept StatesLayout = requires {
  { Op::layout } -> std::convertible_to<layout_class>;
};
template <class Op>
concept StatesDynamism = requires {
  { Op::dynamism } -> std::convertible_to<dynamism_class>;
};
template <class Op>
concept StatesKind = requires {
  { Op::kind } -> std::convertible_to<computation_kind>;
};
template <class Op>
concept StatesInfer = requires {
  infer_function{&Op::infer};
};
}  // namespace detail

/// An operator type: a struct with static members `name`, `arity`, `mapping`, `layout`, `dynamism`, `kind` and `infer`,
/// and optionally `domain`, `since`, `properties`, `selects`, `scalar`, `scalar_integer`, `scalar_to_integer`,
/// `mapping_of`, `layout_of`, `dynamism_of`, `infer_backward`, `view`, `unview`, `macs`, `evaluate`,
/// `structural_inputs` (see op_info for each one's meaning).
template <class Op>
concept Operator = detail::StatesName<Op> && detail::StatesArity<Op> && detail::StatesMapping<Op> &&
    detail::StatesLayout<Op> && detail::StatesDynamism<Op> && detail::StatesKind<Op> && detail::StatesInfer<Op>;

namespace detail {
template <class Op>
consteval op_info make_op_info() {
  static_assert(StatesName<Op>, "an operator type must state its ONNX name: static constexpr std::string_view name");
  static_assert(StatesArity<Op>, "an operator type must state its arity: static constexpr op_arity arity");
  static_assert(StatesMapping<Op>,
                "an operator type must state its mapping type: static constexpr mapping_type mapping");
  static_assert(StatesLayout<Op>, "an operator type must state its layout class: static constexpr layout_class layout");
  static_assert(StatesDynamism<Op>,
                "an operator type must state its dynamism class: static constexpr dynamism_class dynamism");
  static_assert(StatesKind<Op>,
                "an operator type must state its computation kind: static constexpr computation_kind kind");
  static_assert(
      StatesInfer<Op>,
      "an operator type must state its shape transfer: static void infer(const node_facts&, std::span<value_facts>)");
  op_info row;
  if constexpr (Operator<Op>) {
    row.name = Op::name;
    row.arity = Op::arity;
    row.mapping = Op::mapping;
    row.layout = Op::layout;
    row.dynamism = Op::dynamism;
    row.kind = Op::kind;
    row.infer = &Op::infer;
    if constexpr (requires { Op::domain; }) row.domain = Op::domain;
    if constexpr (requires { Op::since; }) row.since = Op::since;
    if constexpr (requires { Op::properties; }) row.properties = Op::properties;
    if constexpr (requires { Op::selects; }) row.selects = Op::selects;
    if constexpr (requires { Op::scalar; }) row.scalar = Op::scalar;
    if constexpr (requires { Op::scalar_integer; }) row.scalar_integer = Op::scalar_integer;
    if constexpr (requires { Op::scalar_to_integer; }) row.scalar_to_integer = Op::scalar_to_integer;
    if constexpr (requires { &Op::mapping_of; }) row.mapping_of = &Op::mapping_of;
    if constexpr (requires { &Op::layout_of; }) row.layout_of = &Op::layout_of;
    if constexpr (requires { &Op::dynamism_of; }) row.dynamism_of = &Op::dynamism_of;
    if constexpr (requires { &Op::infer_backward; }) row.infer_backward = &Op::infer_backward;
    if constexpr (requires { &Op::view; }) row.view = &Op::view;
    if constexpr (requires { &Op::unview; }) row.unview = &Op::unview;
    if constexpr (requires { &Op::macs; }) row.macs = &Op::macs;
    if constexpr (requires { &Op::evaluate; }) row.evaluate = &Op::evaluate;
    if constexpr (requires { Op::element_cost; }) row.element_cost = Op::element_cost;
    if constexpr (requires { Op::normalizes_rows; }) row.normalizes_rows = Op::normalizes_rows;
    if constexpr (requires { Op::reduces_planes; }) row.reduces_planes = Op::reduces_planes;
    if constexpr (requires { Op::dequantizes; }) row.dequantizes = Op::dequantizes;
    if constexpr (requires { Op::quantizes; }) row.quantizes = Op::quantizes;
    if constexpr (requires { Op::converts; }) row.converts = Op::converts;
    if constexpr (requires { &Op::exact; }) row.exact = &Op::exact;
    if constexpr (requires { Op::window_reduction; }) row.window_reduction = Op::window_reduction;
    if constexpr (requires { Op::flow; }) row.flow = Op::flow;
    if constexpr (requires { Op::random; }) row.random = Op::random;
    if constexpr (requires { Op::structural_inputs; }) row.structural_inputs = Op::structural_inputs;
  }
  return row;
}
}  // namespace detail

/// The row of operator type `Op`; one object per program, so that its address identifies the operator.
template <class Op>
inline constexpr op_info op_row = detail::make_op_info<Op>();

/// The operators that a model may use: rows by domain and name. A value; users append their own rows.
class op_set {
 public:
  op_set() = default;

  /// Adds rows; a row of the same domain and name replaces the former. Rows must outlive the set (op_row does).
  template <class... Ops>
  op_set& add() {
    (add(op_row<Ops>), ...);
    return *this;
  }
  op_set& add(const op_info& row);

  /// The row, or null. Domain "ai.onnx" is "".
  [[nodiscard]] const op_info* find(std::string_view domain, std::string_view name) const;
  /// The row. Errors: unknown_operator.
  [[nodiscard]] const op_info& at(std::string_view domain, std::string_view name) const;
  [[nodiscard]] std::span<const op_info* const> rows() const;

 private:
  std::vector<const op_info*> rows_;
  // The keys are the rows' own domains and names.
  std::map<std::pair<std::string_view, std::string_view>, std::size_t> by_name_;
};

/// The mapping type of one input/output pair of a node; the row's class where the operator does not refine it.
[[nodiscard]] inline mapping_type mapping_of(const op_info& op, const node_facts& facts, std::size_t input = 0,
                                             std::size_t output = 0) {
  return op.mapping_of != nullptr ? op.mapping_of(facts, input, output) : op.mapping;
}
/// The layout class of a node.
[[nodiscard]] inline layout_class layout_of(const op_info& op, const node_facts& facts) {
  return op.layout_of != nullptr ? op.layout_of(facts) : op.layout;
}
/// The dynamism class of a node; constant inputs can make it less dynamic (SoD2 section 3).
[[nodiscard]] inline dynamism_class dynamism_of(const op_info& op, const node_facts& facts) {
  return op.dynamism_of != nullptr ? op.dynamism_of(facts) : op.dynamism;
}

#if DNNOPT_IMPLEMENT_GRAPH
DNNOPT_BODY op_set& op_set::add(const op_info& row) {
  const auto [at, inserted] = by_name_.emplace(std::pair(row.domain, row.name), rows_.size());
  if (inserted)
    rows_.push_back(&row);
  else
    rows_[at->second] = &row;
  return *this;
}

DNNOPT_BODY const op_info* op_set::find(std::string_view domain, std::string_view name) const {
  const auto found = by_name_.find({domain == "ai.onnx" ? std::string_view{} : domain, name});
  return found == by_name_.end() ? nullptr : rows_[found->second];
}

DNNOPT_BODY std::span<const op_info* const> op_set::rows() const { return rows_; }

DNNOPT_BODY const op_info& op_set::at(std::string_view domain, std::string_view name) const {
  const op_info* row = find(domain, name);
  if (row == nullptr)
    throw error(errc::unknown_operator,
                "operator '" + std::string(name) + "' of domain '" + std::string(domain) + "' is not known");
  return *row;
}
#endif

}  // namespace dnnopt

#endif  // DNNOPT_OPS_OP_INFO_HPP

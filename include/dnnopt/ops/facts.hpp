// Owns what operator traits may ask about a node: element types, shapes, constants and symbolic values of its inputs.
#ifndef DNNOPT_OPS_FACTS_HPP
#define DNNOPT_OPS_FACTS_HPP

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dnnopt/attribute.hpp>
#include <dnnopt/detail/implementation.hpp>
#include <dnnopt/dtype.hpp>
#include <dnnopt/error.hpp>
#include <dnnopt/guard.hpp>
#include <dnnopt/index_expr.hpp>
#include <dnnopt/layout.hpp>
#include <dnnopt/shape.hpp>
#include <dnnopt/tensor.hpp>

namespace dnnopt {

/// Whether a value is a tensor or one of ONNX's containers.
enum class value_kind : std::uint8_t { tensor, sequence, optional, map };

/// Who vouches for a value's dims: operators and graph inputs; only the file's declaration, which gives way to what an
/// operator computes; or an operator that was told such declared dims.
enum class dims_origin : std::uint8_t { computed, declared, from_declared };

/// What is known about a value before it is computed. RDP raises it from nothing to what the graph tells.
struct value_facts {
  value_kind kind = value_kind::tensor;
  dtype type = dtype::undefined;  ///< undefined: not known yet
  std::optional<shape> dims;      ///< nothing: rank not known yet
  tensor constant;                ///< the value itself where it is constant (else empty())
  std::optional<std::vector<index_expr>>
      elements;                                ///< integer tensors of few elements: each as an expression, row-major
  dims_origin origin = dims_origin::computed;  ///< of `dims`
  bool narrowed = false;  ///< float16 by our choice where the model says float32 (backend/storage/narrow.hpp)
  std::optional<texel_layout>
      texels;  ///< packed, by our choice (backend/storage/pack.hpp) or the caller's (exchange_texels.hpp); else rows

  [[nodiscard]] bool is_constant() const noexcept { return !constant.empty(); }
};

/// Integer tensors up to this many elements carry their elements as expressions.
inline constexpr std::int64_t largest_symbolic_value = 1024;

/// The elements of an integer or boolean tensor as 64-bit numbers. Errors: type_mismatch for other types.
[[nodiscard]] std::vector<std::int64_t> integers_of(const tensor& t);

/// A node as its traits see it. Absent optional inputs are null pointers.
struct node_facts {
  const attribute_map* attributes = nullptr;
  std::span<const value_facts* const> inputs;
  std::size_t output_count = 0;
  expr_context* expressions = nullptr;  ///< makes symbols; never null when `infer` is called
  std::string_view scope;               ///< a name unique to the node in its model; prefix of its own symbols
  /// Where `infer` leaves conditions on dims that nothing proves before execution; null: nobody asks.
  std::vector<guard>* guards = nullptr;

  /// Whether input `i` is given.
  [[nodiscard]] bool has(std::size_t i) const noexcept { return i < inputs.size() && inputs[i] != nullptr; }
  /// The element type of input `i`; undefined where absent or unknown.
  [[nodiscard]] dtype type(std::size_t i) const noexcept { return has(i) ? inputs[i]->type : dtype::undefined; }
  /// The shape of input `i`, or null where absent or of unknown rank.
  [[nodiscard]] const shape* dims(std::size_t i) const noexcept {
    return has(i) && inputs[i]->dims ? &*inputs[i]->dims : nullptr;
  }
  /// The constant of input `i`, or null.
  [[nodiscard]] const tensor* constant(std::size_t i) const noexcept {
    return has(i) && inputs[i]->is_constant() ? &inputs[i]->constant : nullptr;
  }
  /// The elements of integer input `i` as expressions (from its constant or symbolic value), or nothing.
  [[nodiscard]] std::optional<std::vector<index_expr>> elements(std::size_t i) const;
  /// The elements of integer input `i` as numbers where all are constants, or nothing.
  [[nodiscard]] std::optional<std::vector<std::int64_t>> integers(std::size_t i) const;
  /// States that two dims (or a dim and a limit) must stand in `relation`: where nothing proves it, a guard is left,
  /// and each run checks it. `what` names the sides in error texts. Errors: shape_mismatch where it can never hold.
  void require(guard_relation relation, const index_expr& left, const index_expr& right, std::string_view what) const;
  /// The dim that two broadcast to, required to do so. Errors: shape_mismatch.
  [[nodiscard]] index_expr broadcast_dims(const index_expr& a, const index_expr& b, std::string_view what) const;
  /// The shape that two broadcast to, required to do so. Errors: shape_mismatch naming both.
  [[nodiscard]] shape broadcast_shapes(const shape& a, const shape& b) const;
  /// The symbol that stands for a dim only execution tells; the same one at every call.
  [[nodiscard]] index_expr data_dim(std::size_t output, std::size_t axis, expr_range range = {0, unbounded}) const;
};

/// Receives where an output element of a view comes from; code generation and the layout pass each implement it.
class view_builder {
 public:
  /// A condition low <= value < high.
  struct condition {
    index_expr value;
    index_expr low;
    index_expr high;
  };

  virtual ~view_builder() = default;
  /// The output element is the element of `input` at `indices` where all conditions hold; of several pieces the first
  /// whose conditions hold counts.
  virtual void piece(std::size_t input, std::vector<index_expr> indices, std::vector<condition> conditions = {}) = 0;
  /// Where no piece holds, the element is the first element of `input`.
  virtual void fill_from(std::size_t input) = 0;
  /// Where no piece holds, the element is this number.
  virtual void fill(double number) = 0;
  /// The integer element of `input` at `indices`, as a symbol of that range.
  [[nodiscard]] virtual index_expr load(std::size_t input, std::span<const index_expr> indices, expr_range range) = 0;
  /// `index` where it is not negative, else `index + dim`: ONNX's negative indices.
  [[nodiscard]] virtual index_expr wrap_negative(const index_expr& index, const index_expr& dim) = 0;
};

#if DNNOPT_IMPLEMENT_GRAPH
DNNOPT_BODY std::vector<std::int64_t> integers_of(const tensor& t) {
  std::vector<std::int64_t> out;
  out.reserve(static_cast<std::size_t>(t.size()));
  const auto append = [&out](auto values) {
    for (const auto v : values) out.push_back(static_cast<std::int64_t>(v));
  };
  switch (t.type()) {
    case dtype::int64:
      append(t.data<std::int64_t>());
      break;
    case dtype::int32:
      append(t.data<std::int32_t>());
      break;
    case dtype::int16:
      append(t.data<std::int16_t>());
      break;
    case dtype::int8:
    case dtype::int4:
    case dtype::int2:
      append(t.data<std::int8_t>());
      break;
    case dtype::uint64:
      append(t.data<std::uint64_t>());
      break;
    case dtype::uint32:
      append(t.data<std::uint32_t>());
      break;
    case dtype::uint16:
      append(t.data<std::uint16_t>());
      break;
    case dtype::uint8:
    case dtype::uint4:
    case dtype::uint2:
      append(t.data<std::uint8_t>());
      break;
    case dtype::boolean:
      append(t.data<bool>());
      break;
    default:
      throw error(errc::type_mismatch, "integers are read from a " + std::string(name_of(t.type())) + " tensor");
  }
  return out;
}

DNNOPT_BODY std::optional<std::vector<index_expr>> node_facts::elements(std::size_t i) const {
  if (!has(i)) return std::nullopt;
  if (inputs[i]->elements) return inputs[i]->elements;
  const tensor& c = inputs[i]->constant;
  if (c.empty() || c.size() > largest_symbolic_value || !(is_integer(c.type()) || c.type() == dtype::boolean))
    return std::nullopt;
  const std::vector<std::int64_t> values = integers_of(c);
  return std::vector<index_expr>(values.begin(), values.end());
}

DNNOPT_BODY std::optional<std::vector<std::int64_t>> node_facts::integers(std::size_t i) const {
  const auto e = elements(i);
  if (!e) return std::nullopt;
  std::vector<std::int64_t> out;
  for (const index_expr& v : *e) {
    if (!v.is_constant()) return std::nullopt;
    out.push_back(v.constant());
  }
  return out;
}

DNNOPT_BODY void node_facts::require(guard_relation relation, const index_expr& left, const index_expr& right,
                                     std::string_view what) const {
  const std::optional<bool> known = guard::proved(relation, left, right);
  if (known && *known) return;
  guard made{relation, left, right, std::string(what), {}};
  if (known) throw error(errc::shape_mismatch, made.what + ": " + to_string(made) + " does not hold");
  if (guards != nullptr) guards->push_back(std::move(made));
}

DNNOPT_BODY index_expr node_facts::broadcast_dims(const index_expr& a, const index_expr& b,
                                                  std::string_view what) const {
  require(guard_relation::broadcasts, a, b, what);
  return broadcast_dim(a, b);
}

DNNOPT_BODY shape node_facts::broadcast_shapes(const shape& a, const shape& b) const {
  shape result = broadcast(a, b);
  const std::size_t shared = std::min(a.size(), b.size());
  for (std::size_t back = 1; back <= shared; ++back)
    require(guard_relation::broadcasts, a[a.size() - back], b[b.size() - back], "dims that broadcast");
  return result;
}

DNNOPT_BODY index_expr node_facts::data_dim(std::size_t output, std::size_t axis, expr_range range) const {
  return expressions->data_dim(scope, output, axis, range);
}
#endif

}  // namespace dnnopt

#endif  // DNNOPT_OPS_FACTS_HPP

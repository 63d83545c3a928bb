// Owns what the shape transfer of structure operators shares: axes, wrapped indices, values carried through views.
#ifndef DNNOPT_OPS_STRUCTURE_TRANSFER_HPP
#define DNNOPT_OPS_STRUCTURE_TRANSFER_HPP

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dnnopt/inexpressible.hpp>
#include <dnnopt/ops/facts.hpp>
#include <dnnopt/ops/op_info.hpp>

namespace dnnopt::ops {

/// An axis of a tensor of that rank, counted from the end where negative. Errors: bad_attribute naming the operator.
[[nodiscard]] inline std::size_t axis_of(std::int64_t axis, std::size_t rank, std::string_view op) {
  const auto r = static_cast<std::int64_t>(rank);
  if (axis < -r || axis >= r)
    throw error(errc::bad_attribute,
                std::string(op) + ": axis " + std::to_string(axis) + " is outside rank " + std::to_string(rank));
  return static_cast<std::size_t>(axis < 0 ? axis + r : axis);
}

/// The axes as a list of distinct positions, in the order given. Errors: bad_attribute, also for one given twice.
[[nodiscard]] inline std::vector<std::size_t> axes_of(std::span<const std::int64_t> axes, std::size_t rank,
                                                      std::string_view op) {
  std::vector<std::size_t> result;
  std::vector<bool> seen(rank, false);
  for (const std::int64_t axis : axes) {
    const std::size_t at = axis_of(axis, rank, op);
    if (seen[at])
      throw error(errc::bad_attribute, std::string(op) + ": axis " + std::to_string(axis) + " is given twice");
    seen[at] = true;
    result.push_back(at);
  }
  return result;
}

/// `index` where it is not negative, else `index + dim`, without a conditional: the comparison is max(min(index, 0),
/// -1).
[[nodiscard]] inline index_expr wrapped(const index_expr& index, const index_expr& dim) {
  if (index.range().low >= 0) return index;
  if (index.range().high < 0) return index + dim;
  return index - dim * max(min(index, 0), -1);
}

/// a / b where every factor of b divides a, else the floor of it. Precondition: b is not zero when it is evaluated.
[[nodiscard]] inline index_expr quotient(const index_expr& a, const index_expr& b) {
  if (a == b) return 1;
  if (b == index_expr(0)) throw error(errc::shape_mismatch, "a shape divides by a dim of zero");
  if (!a.is_constant() && !b.is_constant())
    if (auto exact = dnnopt::detail::exact_quotient(a, b)) return *exact;
  return floordiv(a, b);
}

/// The class of an operator whose output shape is determined by the values of the inputs listed: ISDOS where all of
/// them are known from constants or input shapes, else ISVDOS (SoD2 section 3, degradation by constant propagation).
[[nodiscard]] inline dynamism_class determined_by(const node_facts& facts, std::initializer_list<std::size_t> inputs) {
  for (const std::size_t i : inputs)
    if (facts.has(i) && facts.constant(i) == nullptr && !facts.elements(i)) return dynamism_class::isvdos;
  return dynamism_class::isdos;
}

/// Sets an element type that is known.
inline void set_type(std::span<value_facts> outputs, std::size_t i, dtype type) {
  if (i < outputs.size() && type != dtype::undefined) outputs[i].type = type;
}
/// Sets dims.
inline void set_dims(std::span<value_facts> outputs, std::size_t i, shape dims) {
  if (i < outputs.size()) outputs[i].dims = std::move(dims);
}

/// Dims of `rank` axes that only execution tells.
[[nodiscard]] inline shape data_dims(const node_facts& facts, std::size_t output, std::size_t rank) {
  shape dims;
  for (std::size_t axis = 0; axis < rank; ++axis) dims.push_back(facts.data_dim(output, axis));
  return dims;
}

/// The number of elements of a rank-1 input where it is known: the rank that a shape input states.
[[nodiscard]] inline std::optional<std::size_t> length_of(const node_facts& facts, std::size_t i) {
  const shape* dims = facts.dims(i);
  if (dims == nullptr) return std::nullopt;
  if (dims->size() != 1)
    throw error(errc::shape_mismatch, "a list input has rank " + std::to_string(dims->size()) + ", not 1");
  const auto length = (*dims)[0].as_constant();
  return length ? std::optional(static_cast<std::size_t>(*length)) : std::nullopt;
}

/// Errors: unsupported, naming the operator and the input whose value an index map needs.
[[noreturn]] inline void no_view(std::string_view op, std::string_view reason) {
  throw inexpressible(std::string(op) + ": no index map, " + std::string(reason));
}

/// The dims of input `i`. Precondition of every view; errors: unsupported.
[[nodiscard]] inline const shape& viewed_dims(const node_facts& facts, std::size_t i, std::string_view op) {
  const shape* dims = facts.dims(i);
  if (dims == nullptr) no_view(op, "the shape of input " + std::to_string(i) + " is not known");
  return *dims;
}

/// Element `k` of the rank-1 integer input `i`: its expression where known, else loaded by the kernel.
[[nodiscard]] inline index_expr element_of(view_builder& builder, const node_facts& facts, std::size_t i, std::size_t k,
                                           expr_range range = {-unbounded, unbounded}) {
  if (const auto known = facts.elements(i); known && k < known->size()) return (*known)[k];
  std::vector<index_expr> at(facts.dims(i) == nullptr ? 1 : facts.dims(i)->size(), index_expr(0));
  if (!at.empty()) at.back() = static_cast<std::int64_t>(k);
  return builder.load(i, at, range);
}

/// Follows one output element of a view to a known element of an input.
class element_resolver final : public view_builder {
 public:
  explicit element_resolver(const node_facts& facts) : facts_(&facts), elements_(facts.inputs.size()) {
    for (std::size_t i = 0; i < elements_.size(); ++i) elements_[i] = facts.elements(i);
  }

  /// Forgets the element followed last.
  void restart() { found_.reset(), fill_.reset(), failed_ = false; }
  /// The element, or nothing where it is not known.
  [[nodiscard]] std::optional<index_expr> result() const {
    if (failed_) return std::nullopt;
    return found_ ? found_ : fill_;
  }

  void piece(std::size_t input, std::vector<index_expr> indices, std::vector<condition> conditions) override {
    if (found_ || failed_) return;
    for (const condition& c : conditions) {
      const expr_range above = (c.value - c.low).range();
      const expr_range below = (c.high - c.value).range();
      if (above.high < 0 || below.high <= 0) return;
      if (above.low < 0 || below.low <= 0) {
        failed_ = true;
        return;
      }
    }
    found_ = at(input, indices);
    failed_ = failed_ || !found_;
  }
  void fill_from(std::size_t input) override {
    const shape* dims = facts_->dims(input);
    fill_ = at(input, std::vector<index_expr>(dims == nullptr ? 0 : dims->size(), index_expr(0)));
  }
  void fill(double number) override { fill_ = index_expr(static_cast<std::int64_t>(number)); }
  [[nodiscard]] index_expr load(std::size_t input, std::span<const index_expr> indices, expr_range) override {
    const auto loaded = at(input, indices);
    failed_ = failed_ || !loaded;
    return loaded.value_or(index_expr(0));
  }
  [[nodiscard]] index_expr wrap_negative(const index_expr& index, const index_expr& dim) override {
    return wrapped(index, dim);
  }

 private:
  [[nodiscard]] std::optional<index_expr> at(std::size_t input, std::span<const index_expr> indices) const {
    const shape* dims = facts_->dims(input);
    if (dims == nullptr || input >= elements_.size() || !elements_[input] || dims->size() != indices.size())
      return std::nullopt;
    index_expr offset = 0;
    for (std::size_t axis = 0; axis < indices.size(); ++axis) offset = offset * (*dims)[axis] + indices[axis];
    const auto known = offset.as_constant();
    if (!known || *known < 0 || static_cast<std::size_t>(*known) >= elements_[input]->size()) return std::nullopt;
    return (*elements_[input])[static_cast<std::size_t>(*known)];
  }

  const node_facts* facts_;
  std::vector<std::optional<std::vector<index_expr>>> elements_;
  std::optional<index_expr> found_;
  std::optional<index_expr> fill_;
  bool failed_ = false;
};

/// Carries symbolic integer values through an operator that only moves elements: each output element that its view
/// leads to a known input element. Outputs of other than integer or boolean type, of symbolic dims or of more than
/// largest_symbolic_value elements stay as they are. O(elements of the outputs).
inline void carry_elements(const node_facts& facts, std::span<value_facts> outputs, view_function view) {
  bool any_known = false;
  for (std::size_t i = 0; i < facts.inputs.size(); ++i) {
    if (!facts.has(i)) continue;
    if (facts.dims(i) == nullptr) return;
    any_known = any_known || facts.inputs[i]->elements || facts.inputs[i]->is_constant();
  }
  if (!any_known) return;
  std::optional<element_resolver> resolver;
  for (std::size_t o = 0; o < outputs.size(); ++o) {
    value_facts& out = outputs[o];
    if (out.elements || !out.dims || !(is_integer(out.type) || out.type == dtype::boolean)) continue;
    const auto dims = static_dims(*out.dims);
    if (!dims) continue;
    bool small = true;
    std::int64_t count = 1;
    for (const std::int64_t dim : *dims) {
      small = small && dim >= 0 && dim <= largest_symbolic_value;
      if (small) count *= dim;
      small = small && count <= largest_symbolic_value;
    }
    if (!small) continue;
    if (!resolver) resolver.emplace(facts);
    std::vector<index_expr> elements;
    std::vector<index_expr> index(dims->size(), index_expr(0));
    for (std::int64_t k = 0; k < count; ++k) {
      std::int64_t rest = k;
      for (std::size_t axis = dims->size(); axis-- > 0; rest /= (*dims)[axis]) index[axis] = rest % (*dims)[axis];
      resolver->restart();
      view(*resolver, facts, o, index);
      const auto element = resolver->result();
      if (!element) break;
      elements.push_back(*element);
    }
    if (static_cast<std::int64_t>(elements.size()) == count) out.elements = std::move(elements);
  }
}

}  // namespace dnnopt::ops

#endif  // DNNOPT_OPS_STRUCTURE_TRANSFER_HPP

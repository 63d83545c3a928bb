// Owns checks of one operator on concrete tensors: its inference and its index map against its reference evaluation.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <dnnopt/ops/op_info.hpp>

#include "view_recorder.hpp"

namespace test {

/// What inference is told about the inputs.
enum class knowledge {
  constants,  ///< dims, and all elements of inputs after the first (of all, where the first is an integer list)
  dims,       ///< dims only
  symbolic_constants,  ///< each dim of 1 as itself, the others as symbols; elements as in `constants`
};

/// An operator with concrete inputs and what the reference computed from them.
struct operator_instance {
  const dnnopt::op_info* op;
  const dnnopt::attribute_map* attributes;
  std::span<const dnnopt::tensor> inputs;
  std::span<const dnnopt::tensor> outputs;
};

/// The facts of an instance at a level of knowledge, with the values of the symbols that stand for its dims.
class instance_facts {
 public:
  instance_facts(const operator_instance& instance, knowledge level) {
    held_.resize(instance.inputs.size());
    for (std::size_t i = 0; i < held_.size(); ++i) {
      const dnnopt::tensor& t = instance.inputs[i];
      pointers_.push_back(t.empty() ? nullptr : &held_[i]);
      if (t.empty()) continue;
      held_[i].type = t.type();
      dnnopt::shape dims;
      for (std::size_t axis = 0; axis < t.rank(); ++axis) {
        const std::int64_t dim = t.dims()[axis];
        const bool data = i == 0 || t.rank() != 1;
        if (level == knowledge::symbolic_constants && dim > 1 && data) {
          const dnnopt::index_expr symbol =
              context_.symbol("d" + std::to_string(i) + "_" + std::to_string(axis), {1, dnnopt::unbounded});
          values_.bind(*symbol.as_symbol(), dim);
          dims.push_back(symbol);
        } else {
          dims.emplace_back(dim);
        }
      }
      held_[i].dims = dims;
      if (level != knowledge::dims && (i > 0 || (t.rank() <= 1 && dnnopt::is_integer(t.type()))) &&
          dnnopt::is_static(dims))
        held_[i].constant = t;
    }
    facts_.attributes = instance.attributes;
    facts_.inputs = pointers_;
    facts_.output_count = instance.outputs.size();
    facts_.expressions = &context_;
    facts_.scope = "out";
  }
  [[nodiscard]] const dnnopt::node_facts& facts() const { return facts_; }
  [[nodiscard]] dnnopt::expr_context& context() { return context_; }
  [[nodiscard]] const dnnopt::symbol_values& values() const { return values_; }

 private:
  dnnopt::expr_context context_;
  dnnopt::symbol_values values_;
  std::vector<dnnopt::value_facts> held_;
  std::vector<const dnnopt::value_facts*> pointers_;
  dnnopt::node_facts facts_;
};

/// Why inference disagrees with what was computed, or nothing. What inference leaves open is no disagreement.
inline std::optional<std::string> inference_fault(const operator_instance& instance, knowledge level) {
  instance_facts known(instance, level);
  std::vector<dnnopt::value_facts> found(instance.outputs.size());
  instance.op->infer(known.facts(), found);
  for (std::size_t o = 0; o < found.size(); ++o) {
    const dnnopt::tensor& computed = instance.outputs[o];
    if (computed.empty()) continue;
    const std::string where = "output " + std::to_string(o) + ": ";
    if (found[o].type != dnnopt::dtype::undefined && found[o].type != computed.type())
      return where + "type " + std::string(dnnopt::name_of(found[o].type)) + " inferred, " +
             std::string(dnnopt::name_of(computed.type())) + " computed";
    if (!found[o].dims) continue;
    if (found[o].dims->size() != computed.rank())
      return where + dnnopt::to_string(*found[o].dims) + " inferred, " + dnnopt::to_string(computed.dims()) +
             " computed";
    for (std::size_t axis = 0; axis < computed.rank(); ++axis) {
      const auto dim = (*found[o].dims)[axis].try_evaluate(known.values());
      const dnnopt::expr_range range = (*found[o].dims)[axis].range();
      if ((dim && *dim != computed.dims()[axis]) || computed.dims()[axis] < range.low ||
          computed.dims()[axis] > range.high)
        return where + dnnopt::to_string(*found[o].dims) + " inferred, " + dnnopt::to_string(computed.dims()) +
               " computed";
    }
    if (!found[o].elements) continue;
    const std::vector<std::int64_t> elements = dnnopt::integers_of(computed);
    if (elements.size() != found[o].elements->size()) return where + "another number of elements inferred";
    for (std::size_t k = 0; k < elements.size(); ++k) {
      const auto element = (*found[o].elements)[k].try_evaluate(known.values());
      if (element && *element != elements[k])
        return where + "element " + std::to_string(k) + " inferred as " + std::to_string(*element) + ", computed " +
               std::to_string(elements[k]);
    }
  }
  return std::nullopt;
}

/// Whether element `a` of `x` and element `b` of `y`, of one type, are the same bytes (or the same string).
inline bool same_element(const dnnopt::tensor& x, std::int64_t a, const dnnopt::tensor& y, std::int64_t b) {
  if (x.type() != y.type()) return false;
  if (x.type() == dnnopt::dtype::string)
    return x.strings()[static_cast<std::size_t>(a)] == y.strings()[static_cast<std::size_t>(b)];
  const auto size = static_cast<std::int64_t>(dnnopt::size_of(x.type()));
  const auto left = x.bytes().subspan(static_cast<std::size_t>(a * size), static_cast<std::size_t>(size));
  const auto right = y.bytes().subspan(static_cast<std::size_t>(b * size), static_cast<std::size_t>(size));
  return std::equal(left.begin(), left.end(), right.begin());
}

/// Why the operator's index map disagrees with what was computed, or nothing. `refused` is set where the map says that
/// it cannot be stated (error unsupported), which is no disagreement.
inline std::optional<std::string> view_fault(const operator_instance& instance, knowledge level, bool& refused) {
  refused = false;
  for (std::size_t o = 0; o < instance.outputs.size(); ++o) {
    const dnnopt::tensor& computed = instance.outputs[o];
    if (computed.empty() || computed.size() > 4096) continue;
    instance_facts known(instance, level);
    std::vector<dnnopt::index_expr> index;
    for (std::size_t axis = 0; axis < computed.rank(); ++axis)
      index.push_back(known.context().symbol(
          "i" + std::to_string(axis),
          {0, level == knowledge::symbolic_constants ? dnnopt::unbounded
                                                     : std::max<std::int64_t>(0, computed.dims()[axis] - 1)}));
    view_recorder recorder(known.context(), instance.inputs, "r");
    try {
      instance.op->view(recorder, known.facts(), o, index);
    } catch (const dnnopt::error& e) {
      if (e.code() != dnnopt::errc::unsupported) throw;
      refused = true;
      return std::nullopt;
    }
    dnnopt::symbol_values values = known.values();
    // Dims that only execution tells have their value from it.
    for (std::size_t p = 0; p < instance.outputs.size(); ++p)
      for (std::size_t axis = 0; axis < instance.outputs[p].rank(); ++axis)
        if (const auto symbol = known.context().find("out." + std::to_string(p) + "." + std::to_string(axis)))
          values.bind(*symbol, instance.outputs[p].dims()[axis]);
    for (std::int64_t k = 0; k < computed.size(); ++k) {
      std::int64_t rest = k;
      for (std::size_t axis = computed.rank(); axis-- > 0; rest /= computed.dims()[axis])
        values.bind(*index[axis].as_symbol(), rest % computed.dims()[axis]);
      const std::string where = "output " + std::to_string(o) + ", element " + std::to_string(k) + ": ";
      try {
        const auto source = recorder.source_of(values);
        if (!source) return where + "no piece holds";
        bool same = false;
        if (source->input) {
          same = same_element(computed, k, instance.inputs[*source->input], source->position);
        } else {
          dnnopt::tensor number(computed.type(), {1});
          if (source->number == 0)
            same = same_element(computed, k, number, 0);
          else
            same = std::string(dnnopt::name_of(computed.type())) != "string";
        }
        if (!same) return where + "another element than the view says";
      } catch (const std::string& fault) {
        return where + fault;
      }
    }
  }
  return std::nullopt;
}

}  // namespace test

// Owns a view_builder that records an index map as expressions and reads single elements through it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <dnnopt/ops/op_info.hpp>

namespace test {

/// Where an output element of a view comes from: element `position` of `input`, or a number.
struct view_source {
  std::optional<std::size_t> input;
  std::int64_t position = 0;
  double number = 0;
};

/// Records what `view` states for symbolic indices; `source_of` then binds them. Loads and wrapped indices are symbols
/// of their own that are computed from the tensors, as a kernel does.
class view_recorder final : public dnnopt::view_builder {
 public:
  /// `tensors` are the inputs that loads read; they outlive the recorder. A name distinguishes its symbols.
  view_recorder(dnnopt::expr_context& context, std::span<const dnnopt::tensor> tensors, std::string name)
      : context_(&context), tensors_(tensors), name_(std::move(name)) {}

  void piece(std::size_t input, std::vector<dnnopt::index_expr> indices, std::vector<condition> conditions) override {
    pieces_.push_back({input, std::move(indices), std::move(conditions)});
  }
  void fill_from(std::size_t input) override { fill_ = view_source{input, 0, 0}; }
  void fill(double number) override { fill_ = view_source{std::nullopt, 0, number}; }
  [[nodiscard]] dnnopt::index_expr load(std::size_t input, std::span<const dnnopt::index_expr> indices,
                                        dnnopt::expr_range range) override {
    const dnnopt::index_expr symbol = context_->fresh(name_ + "_load", range);
    steps_.push_back({*symbol.as_symbol(), input, {indices.begin(), indices.end()}, range});
    return symbol;
  }
  [[nodiscard]] dnnopt::index_expr wrap_negative(const dnnopt::index_expr& index,
                                                 const dnnopt::index_expr& dim) override {
    const dnnopt::index_expr symbol = context_->fresh(name_ + "_wrap", {0, dim.range().high});
    steps_.push_back({*symbol.as_symbol(), std::nullopt, {index, dim}, {}});
    return symbol;
  }

  [[nodiscard]] std::size_t pieces() const { return pieces_.size(); }

  /// The source of the element at the bound indices; nothing where no piece holds and nothing fills.
  /// Throws std::string, naming the fault, for an index outside its tensor or a load outside the range it states.
  [[nodiscard]] std::optional<view_source> source_of(dnnopt::symbol_values values) const {
    for (const step& s : steps_) {
      if (!s.input) {
        const std::int64_t index = s.indices[0].evaluate(values);
        values.bind(s.symbol, index < 0 ? index + s.indices[1].evaluate(values) : index);
        continue;
      }
      const dnnopt::tensor& t = tensors_[*s.input];
      const std::int64_t loaded = dnnopt::integers_of(t)[static_cast<std::size_t>(flat(t, s.indices, values))];
      if (loaded < s.range.low || loaded > s.range.high)
        throw std::string("a load leaves the range that the view states");
      values.bind(s.symbol, loaded);
    }
    for (const piece_row& p : pieces_) {
      bool holds = true;
      for (const condition& c : p.conditions) {
        const std::int64_t v = c.value.evaluate(values);
        holds = holds && v >= c.low.evaluate(values) && v < c.high.evaluate(values);
      }
      if (holds) return view_source{p.input, flat(tensors_[p.input], p.indices, values), 0};
    }
    return fill_;
  }

 private:
  struct piece_row {
    std::size_t input;
    std::vector<dnnopt::index_expr> indices;
    std::vector<condition> conditions;
  };
  struct step {
    std::uint32_t symbol;
    std::optional<std::size_t> input;  // nothing: wrap indices[0] by indices[1]
    std::vector<dnnopt::index_expr> indices;
    dnnopt::expr_range range;
  };

  static std::int64_t flat(const dnnopt::tensor& t, std::span<const dnnopt::index_expr> indices,
                           const dnnopt::symbol_values& values) {
    if (indices.size() != t.rank())
      throw std::string("a view gives another number of indices than the tensor has axes");
    std::int64_t position = 0;
    for (std::size_t axis = 0; axis < indices.size(); ++axis) {
      const std::int64_t at = indices[axis].evaluate(values);
      if (at < 0 || at >= t.dims()[axis])
        throw "index " + std::to_string(at) + " of axis " + std::to_string(axis) + " is outside " +
            dnnopt::to_string(t.dims());
      position = position * t.dims()[axis] + at;
    }
    return position;
  }

  dnnopt::expr_context* context_;
  std::span<const dnnopt::tensor> tensors_;
  std::string name_;
  std::vector<piece_row> pieces_;
  std::vector<step> steps_;
  std::optional<view_source> fill_;
};

}  // namespace test

// Owns how MatMul, Gemm and two-operand Einsum are one contraction over labelled dims.
#ifndef DNNOPT_BACKEND_CODEGEN_FRAMES_PRODUCTS_CONTRACTION_HPP
#define DNNOPT_BACKEND_CODEGEN_FRAMES_PRODUCTS_CONTRACTION_HPP

#include <algorithm>
#include <array>
#include <cstddef>
#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <dnnopt/backend/codegen/elements/element_site.hpp>
#include <dnnopt/backend/codegen/frames/products/matrix_frame.hpp>
#include <dnnopt/ops/einsum_equation.hpp>

namespace dnnopt::codegen {

/// A product of two operands over labelled dims. A label of both operands and the output is batch, of both operands
/// only is summed over, and of one operand and the output is a row (first operand) or a column (second).
struct contraction {
  std::array<std::vector<int>, 2> operands;  ///< a label per dim; -1 where the dim is 1 and broadcasts
  std::vector<int> output;
  std::array<std::size_t, 2> slots{0, 1};  ///< inputs of the node that the operands are
  std::map<int, index_expr> extents;
  std::vector<int> batch, rows, columns, inner;

  [[nodiscard]] shape extents_of(const std::vector<int>& labels) const {
    shape out;
    for (const int label : labels) out.push_back(extents.at(label));
    return out;
  }
  /// The element of operand `which` where the four groups stand at these linear indices.
  [[nodiscard]] std::vector<index_expr> operand_index(kernel_builder& b, std::size_t which, const index_expr& z,
                                                      const index_expr& i, const index_expr& k) const {
    return at(operands[which], b, {{&batch, z}, {which == 0 ? &rows : &columns, i}, {&inner, k}});
  }
  [[nodiscard]] std::vector<index_expr> output_index(kernel_builder& b, const index_expr& z, const index_expr& m,
                                                     const index_expr& n) const {
    return at(output, b, {{&batch, z}, {&rows, m}, {&columns, n}});
  }

 private:
  using placed = std::pair<const std::vector<int>*, index_expr>;
  [[nodiscard]] std::vector<index_expr> at(const std::vector<int>& labels, kernel_builder& b,
                                           std::initializer_list<placed> groups) const {
    std::map<int, index_expr> where;
    for (const auto& [group, linear] : groups) {
      const std::vector<index_expr> own = b.index_at(extents_of(*group), linear);
      for (std::size_t i = 0; i < own.size(); ++i) where[(*group)[i]] = own[i];
    }
    std::vector<index_expr> out;
    for (const int label : labels) out.push_back(label < 0 ? index_expr(0) : where.at(label));
    return out;
  }
};

/// The contraction that a node computes, or nothing where it is none. `b` translates shapes into the kernel's symbols.
[[nodiscard]] inline std::optional<contraction> contraction_of(kernel_builder& b, const lowering_site& site) {
  const node& n = site.anchor_node();
  if (n.inputs.size() < 2 || n.outputs.empty()) return std::nullopt;
  contraction c;
  const shape& x = b.dims(n.inputs[0]);
  const shape& y = b.dims(n.inputs[1]);
  const shape& out = b.dims(n.outputs[0]);
  int summed = -1;  // of Einsum, whose summed dims may broadcast, none
  if (const std::string* equation = n.attributes.find_as<std::string>("equation")) {
    if (n.inputs.size() != 2) return std::nullopt;
    const std::array<std::size_t, 2> ranks{x.size(), y.size()};
    const einsum_equation e = parse_einsum(*equation, ranks);
    c.operands = {e.operands[0], e.operands[1]};
    c.output = e.output;
  } else if (n.attributes.contains("transA") || n.attributes.contains("transB") || n.op->arity.most_inputs == 3) {
    c.operands[0] = n.attributes.get_int("transA", 0) != 0 ? std::vector<int>{2, 0} : std::vector<int>{0, 2};
    c.operands[1] = n.attributes.get_int("transB", 0) != 0 ? std::vector<int>{1, 2} : std::vector<int>{2, 1};
    c.output = {0, 1};
    summed = 2;
  } else {
    // Inputs behind the operands of a product of integers are zero points.
    if (n.op->arity.most_inputs != 2 && b.g().facts(n.outputs[0]).type != dtype::int32) return std::nullopt;
    summed = 1000;
    for (std::size_t d = 0; d < out.size(); ++d) c.output.push_back(static_cast<int>(d));
    const std::size_t matrix_dims = (x.size() > 1 ? 1U : 0U) + (y.size() > 1 ? 1U : 0U);
    const std::size_t batch = out.size() - matrix_dims;
    const auto batch_labels = [&](const shape& d, std::vector<int>& labels) {
      for (std::size_t i = 0; i + 2 < d.size(); ++i) labels.push_back(static_cast<int>(batch - (d.size() - 2) + i));
    };
    batch_labels(x, c.operands[0]);
    batch_labels(y, c.operands[1]);
    if (x.size() > 1) c.operands[0].push_back(static_cast<int>(batch));
    c.operands[0].push_back(summed);
    c.operands[1].push_back(summed);
    if (y.size() > 1) c.operands[1].push_back(static_cast<int>(out.size()) - 1);
  }
  for (std::size_t o = 0; o < 2; ++o) {
    const shape& d = o == 0 ? x : y;
    if (d.size() != c.operands[o].size()) return std::nullopt;
    for (std::size_t i = 0; i < d.size(); ++i) {
      index_expr& extent = c.extents.emplace(c.operands[o][i], 1).first->second;
      if (extent == index_expr(1) || (c.operands[o][i] == summed && d[i].is_constant())) extent = d[i];
    }
  }
  for (std::size_t o = 0; o < 2; ++o) {
    const shape& d = o == 0 ? x : y;
    for (std::size_t i = 0; i < d.size(); ++i) {
      // The inner dims of a matrix product are equal, whatever symbols stand for them: a guard sees to it.
      if (c.operands[o][i] == summed) continue;
      // A dim that may or may not be 1 would read beyond its operand.
      if (d[i] == index_expr(1) || !(d[i] == c.extents.at(c.operands[o][i]))) {
        if (!(d[i] == index_expr(1))) return std::nullopt;
        if (!(c.extents.at(c.operands[o][i]) == index_expr(1))) c.operands[o][i] = -1;
      }
    }
    // A diagonal is no dim of a matrix.
    for (std::size_t i = 0; i < c.operands[o].size(); ++i)
      for (std::size_t j = i + 1; j < c.operands[o].size(); ++j)
        if (c.operands[o][i] >= 0 && c.operands[o][i] == c.operands[o][j]) return std::nullopt;
  }
  const auto has = [](const std::vector<int>& labels, int label) {
    return std::find(labels.begin(), labels.end(), label) != labels.end();
  };
  for (const int label : c.output) {
    const bool in_first = has(c.operands[0], label);
    const bool in_second = has(c.operands[1], label);
    if (in_first && in_second)
      c.batch.push_back(label);
    else
      (in_second ? c.columns : c.rows).push_back(label);
  }
  // Summed dims in the order of the second operand, whose panels are read along columns.
  for (const int label : c.operands[1])
    if (label >= 0 && !has(c.output, label)) c.inner.push_back(label);
  for (const int label : c.operands[0])
    if (label >= 0 && !has(c.output, label) && !has(c.inner, label)) c.inner.push_back(label);
  for (const int label : c.inner)
    if (!has(c.operands[0], label) || !has(c.operands[1], label)) return std::nullopt;
  return c;
}

/// Makes the operand with more columns the second one.
inline void orient(contraction& c) {
  const index_expr rows = element_count(c.extents_of(c.rows));
  const index_expr columns = element_count(c.extents_of(c.columns));
  const bool thin = columns.is_constant() && columns.constant() < 8;
  const bool fat = !rows.is_constant() || rows.constant() > columns.as_constant().value_or(0);
  if (!(thin && fat)) return;
  std::swap(c.operands[0], c.operands[1]);
  std::swap(c.slots[0], c.slots[1]);
  std::swap(c.rows, c.columns);
}

/// Whether neighbours in the summed index are neighbours in the operand.
[[nodiscard]] inline bool inner_first(const contraction& c, std::size_t which) {
  return !c.operands[which].empty() && !c.inner.empty() && c.operands[which].back() == c.inner.back();
}

/// Why a node is no product that frames compute; empty where it is one.
[[nodiscard]] inline std::string reject_matrix_product(const lowering_site& site) {
  if (std::string why = reject_element_types(site, site.anchor_node().inputs.size()); !why.empty()) return why;
  kernel_builder b(site.block, site.options.emitters);
  const auto c = contraction_of(b, site);
  if (!c) return "no product of two operands over whole dims";
  if (c->inner.empty()) return "nothing is summed";
  return {};
}

/// The anchor's element from the sum of that name: Gemm's factors and third operand.
[[nodiscard]] inline std::string finished_product(kernel_builder& b, const lowering_site& site,
                                                  const std::vector<index_expr>& at, const std::string& sum = "value") {
  const node& n = site.anchor_node();
  const element_site s(b, site.anchor, 0, at);
  std::string text = sum;
  const float alpha = n.attributes.get_float("alpha", 1.0f);
  if (alpha != 1.0f) text = literal(compute_type::real, static_cast<double>(alpha)) + " * " + text;
  if (n.op->arity.most_inputs == 3 && s.has(2)) {
    const float beta = n.attributes.get_float("beta", 1.0f);
    text += " + " + (beta == 1.0f ? "" : literal(compute_type::real, static_cast<double>(beta)) + " * ") +
            s.read_broadcast(2, at);
  }
  return text == sum ? text : b.let(compute_type::real, text);
}

/// A product as a frame sees it, in the symbols of a builder.
struct framed_product {
  contraction c;
  product_extents e;

  [[nodiscard]] value_id operand(const node& n, std::size_t which) const { return n.inputs[c.slots[which]]; }
  /// The matrices of an operand: one where it does not depend on the batch.
  [[nodiscard]] index_expr batch_of(std::size_t which) const {
    for (const int label : c.operands[which])
      if (std::find(c.batch.begin(), c.batch.end(), label) != c.batch.end()) return e.batch;
    return 1;
  }
};

/// The product of a site; `oriented`: with more columns than rows. Precondition: reject_matrix_product is empty.
[[nodiscard]] inline framed_product product_of(kernel_builder& b, const lowering_site& site, bool oriented) {
  contraction c = contraction_of(b, site).value();
  if (oriented) orient(c);
  product_extents e{element_count(c.extents_of(c.batch)), element_count(c.extents_of(c.rows)),
                    element_count(c.extents_of(c.columns)), element_count(c.extents_of(c.inner))};
  return {std::move(c), e};
}

}  // namespace dnnopt::codegen

#endif  // DNNOPT_BACKEND_CODEGEN_FRAMES_PRODUCTS_CONTRACTION_HPP

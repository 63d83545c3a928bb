// Owns the kernels of matrix products: MatMul, Gemm and two-operand Einsum as one contraction over labelled dims.
#ifndef DNNOPT_BACKEND_CODEGEN_FRAMES_PRODUCTS_LOWER_MATRIX_PRODUCT_HPP
#define DNNOPT_BACKEND_CODEGEN_FRAMES_PRODUCTS_LOWER_MATRIX_PRODUCT_HPP

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <dnnopt/backend/codegen/frames/products/tile_frame.hpp>
#include <dnnopt/backend/codegen/frames/rows/row_operators.hpp>
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
  if (const attribute* equation = n.attributes.find("equation"); equation != nullptr) {
    if (n.inputs.size() != 2) return std::nullopt;
    const std::array<std::size_t, 2> ranks{x.size(), y.size()};
    const einsum_equation e = parse_einsum(std::get<std::string>(*equation), ranks);
    c.operands = {e.operands[0], e.operands[1]};
    c.output = e.output;
  } else if (n.attributes.contains("transA") || n.attributes.contains("transB") || n.op->arity.most_inputs == 3) {
    c.operands[0] = n.attributes.get_int("transA", 0) != 0 ? std::vector<int>{2, 0} : std::vector<int>{0, 2};
    c.operands[1] = n.attributes.get_int("transB", 0) != 0 ? std::vector<int>{1, 2} : std::vector<int>{2, 1};
    c.output = {0, 1};
    summed = 2;
  } else {
    if (n.op->arity.most_inputs != 2) return std::nullopt;
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
inline void orient(contraction& c, bool first_is_constant) {
  const index_expr rows = element_count(c.extents_of(c.rows));
  const index_expr columns = element_count(c.extents_of(c.columns));
  const bool thin = columns.is_constant() && columns.constant() < 8;
  const bool fat = !rows.is_constant() || rows.constant() > columns.as_constant().value_or(0);
  if (!(thin && fat)) return;
  (void)first_is_constant;
  std::swap(c.operands[0], c.operands[1]);
  std::swap(c.slots[0], c.slots[1]);
  std::swap(c.rows, c.columns);
}

/// Whether neighbours in the summed index are neighbours in the operand.
[[nodiscard]] inline bool inner_first(const contraction& c, std::size_t which) {
  return !c.operands[which].empty() && !c.inner.empty() && c.operands[which].back() == c.inner.back();
}

[[nodiscard]] inline std::string reject_matrix_product(const lowering_site& site) {
  if (std::string why = reject_element_types(site, site.anchor_node().inputs.size()); !why.empty()) return why;
  kernel_builder b(site.block, site.options.emitters);
  const auto c = contraction_of(b, site);
  if (!c) return "no product of two operands over whole dims";
  if (c->inner.empty()) return "nothing is summed";
  return {};
}

/// The anchor's element from the sum `value`: Gemm's factors and third operand.
[[nodiscard]] inline std::string finished_product(kernel_builder& b, const lowering_site& site,
                                                  const std::vector<index_expr>& at) {
  const node& n = site.anchor_node();
  const element_site s(b, site.anchor, 0, at);
  std::string text = "value";
  const float alpha = n.attributes.get_float("alpha", 1.0f);
  if (alpha != 1.0f) text = literal(compute_type::real, static_cast<double>(alpha)) + " * " + text;
  if (n.op->arity.most_inputs == 3 && s.has(2)) {
    const float beta = n.attributes.get_float("beta", 1.0f);
    text += " + " + (beta == 1.0f ? "" : literal(compute_type::real, static_cast<double>(beta)) + " * ") +
            s.read_broadcast(2, at);
  }
  return text == "value" ? text : b.let(compute_type::real, text);
}

/// The member that normalizes rows before an operand of the anchor; no_node where there is none.
[[nodiscard]] inline node_id row_normalization_in(const block_view& block) {
  for (const node_id id : block.members)
    if (id != block.anchor && block.g.node_at(id).op->normalizes_rows) return id;
  return no_node;
}

/// Defines the load of rows that are normalized first: dnnopt_load_a(z, m, k, moments) and dnnopt_row_load(z, m, k),
/// the element before normalization, from which the frame takes the moments of a row once. Errors: unsupported where a
/// row of the product is no row of the normalization.
inline void define_normalized_rows(kernel_builder& b, node_id norm, value_id operand, std::span<const index_expr> index,
                                   const index_expr& k, std::span<const std::string> names) {
  const node& n = b.node_at(norm);
  const auto refuse = [&](std::string_view why) {
    return error(errc::unsupported, "node '" + n.name + "' can't stand before the product: " + std::string(why));
  };
  const shape d = b.dims(n.inputs[0]);
  if (normalize_axis(n.attributes.get_int("axis", -1), d.size()) + 1 != d.size())
    throw refuse("it spans more than the last dim");
  const row_operator* row = find_row_operator(n.op->domain, n.op->name);
  if (row == nullptr || (row->family != row_family::centered && row->family != row_family::root_mean_square))
    throw refuse("the frame knows no moments of its rows");
  b.bind_moments(norm, "moments.x", "moments.y");
  b.define_load("dnnopt_load_a", operand, index, names, ", const float2 moments");
  std::vector<index_expr> at = b.row_asked();
  if (at.empty()) throw refuse("the first operand does not read it");
  if (!(at.back() == k)) throw refuse("what is summed over is not its row");
  const std::uint32_t summed = *k.as_symbol();
  for (std::size_t i = 0; i + 1 < at.size(); ++i) {
    bool foreign = false;
    (void)substitute(at[i], [&](const index_expr& symbol) {
      const std::string& held = b.expressions().symbol_name(*symbol.as_symbol());
      const bool own = std::find(names.begin(), names.end(), held) != names.end() || held.front() == 'p';
      foreign = foreign || *symbol.as_symbol() == summed || !own;
      return symbol;
    });
    if (foreign) throw refuse("its rows depend on more than the row of the product");
    // Rows in padding are read nowhere, but their moments are computed.
    if (!kernel_builder::always_within(at[i], d[i])) at[i] = max(index_expr(0), min(at[i], d[i] - 1));
  }
  b.define_load("dnnopt_row_load", n.inputs[0], at, names);
  b.define("DNNOPT_ROW_MOMENTS", row->family == row_family::centered ? 1 : 2);
  b.define("DNNOPT_EPSILON",
           literal(compute_type::real, static_cast<double>(n.attributes.get_float("epsilon", 1e-5f))));
}

inline const std::vector<std::string> product_names_a{"z", "m", "k"};
inline const std::vector<std::string> product_names_b{"z", "k", "n"};
inline const std::vector<std::string> product_names_store{"z", "m", "n"};
inline const std::vector<std::string> product_names_store_panel{"z", "m", "panel", "lane"};

[[nodiscard]] inline lowered_node lower_product(const lowering_site& site, bool panels) {
  const node& n = site.anchor_node();
  kernel_builder b(site.block, site.options.emitters);
  contraction c = contraction_of(b, site).value();
  if (panels) orient(c, is_constant_in(site.block, n.inputs[0]));
  const product_extents e{element_count(c.extents_of(c.batch)), element_count(c.extents_of(c.rows)),
                          element_count(c.extents_of(c.columns)), element_count(c.extents_of(c.inner))};
  if (!fits_int((e.rows * e.columns).range()) && e.rows.is_constant() && e.columns.is_constant())
    throw error(errc::unsupported, "the result has more elements than 32 bits count");
  const value_id first = n.inputs[c.slots[0]];
  const value_id second = n.inputs[c.slots[1]];
  const index_expr z = b.index("z", e.batch);
  const index_expr m = b.index("m", e.rows);
  const index_expr k = b.index("k", e.inner);
  const index_expr col = b.index("n", e.columns);
  lowered_node result;
  const auto packable = [&](value_id id, const index_expr& extent) {
    return panels && packs_constant(site.block, id) && extent.is_constant() && e.inner.is_constant();
  };
  const auto batch_of = [&](std::size_t which) {
    // A constant that does not depend on the batch is packed once.
    for (const int label : c.operands[which])
      if (std::find(c.batch.begin(), c.batch.end(), label) != c.batch.end()) return e.batch;
    return index_expr(1);
  };
  const bool a_packed = packable(first, e.rows) && batch_of(0).is_constant() && !packable(second, e.columns);
  const bool b_packed = packable(second, e.columns) && batch_of(1).is_constant();
  panel_sizes p;
  if (panels) {
    p = choose_panels(site, e, a_packed, b_packed);
    const std::size_t which = b_packed ? 1 : 0;
    if (a_packed || b_packed) {
      const std::int64_t extent = (b_packed ? e.columns : e.rows).constant();
      const std::int64_t width = b_packed ? p.columns() : p.rows;
      const std::int64_t batch = batch_of(which).constant();
      result.scratch.push_back({batch * round_up(extent, width) * e.inner.constant() * 4, true});
      result.prepare.push_back(
          pack_kernel(site, 0, batch, extent, e.inner.constant(), width,
                      [&](kernel_builder& own, const index_expr& pz, const index_expr& i, const index_expr& pk) {
                        contraction again = contraction_of(own, site).value();
                        orient(again, false);
                        return own.emit(n.inputs[again.slots[which]], again.operand_index(own, which, pz, i, pk));
                      }));
      const std::string pointer = b.scratch(0, dtype::float32, false);
      b.define(b_packed ? "DNNOPT_B_PACKED" : "DNNOPT_A_PACKED", 1);
      b.define(b_packed ? "DNNOPT_B" : "DNNOPT_A", pointer);
      b.define(b_packed ? "DNNOPT_B_BATCH" : "DNNOPT_A_BATCH", batch == 1 ? "0" : "z");
    }
    define_panels(b, p, e);
    b.define("DNNOPT_B_INNER_FIRST", inner_first(c, 1) ? 1 : 0);
  }
  const node_id norm = row_normalization_in(site.block);
  if (norm != no_node) {
    if (a_packed) throw error(errc::unsupported, "constants are normalized before execution");
    define_normalized_rows(b, norm, first, c.operand_index(b, 0, z, m, k), k, product_names_a);
  }
  // What tiles read as texels that were packed once.
  const auto in_texels = [&](std::size_t which, value_id id, const index_expr& extent) {
    return !panels && site.packs_texels() && is_constant_in(site.block, id) && extent.is_constant() &&
           e.inner.is_constant() && batch_of(which).is_constant() && is_floating(b.g().facts(id).type);
  };
  const bool a_texels = in_texels(0, first, e.rows);
  const bool b_texels = in_texels(1, second, e.columns) && !a_texels;
  bool a_bits = !panels && !a_texels && fetches_bits(site, b, first);
  bool b_bits = !panels && !b_texels && fetches_bits(site, b, second);
  if (!a_packed && !a_texels && norm == no_node) {
    b.load_halves_as_bits(a_bits);
    b.define_load("dnnopt_load_a", first, c.operand_index(b, 0, z, m, k), product_names_a);
  }
  b.load_halves_as_bits(b_bits);
  if (!b_packed && !b_texels) b.define_load("dnnopt_load_b", second, c.operand_index(b, 1, z, col, k), product_names_b);
  b.load_halves_as_bits(false);
  store_direction along = store_direction::single;
  const auto define_store = [&](kernel_builder& own) {
    contraction again = contraction_of(own, site).value();
    if (panels) orient(again, false);
    const product_extents x{element_count(again.extents_of(again.batch)), element_count(again.extents_of(again.rows)),
                            element_count(again.extents_of(again.columns)),
                            element_count(again.extents_of(again.inner))};
    if (along != store_direction::single) {
      const four_results four =
          results_along(own, along, x.rows, x.columns, [&](const index_expr& row, const index_expr& column) {
            return again.output_index(own, own.index("z", x.batch), row, column);
          });
      own.define_store4("dnnopt_store4", n.outputs[0], four, names_of_store4(along),
                        [&](std::size_t j) { return finished_product(own, site, four.at[j]); });
      return x;
    }
    // Whole panels: n < N says no more than the ranges of both numbers do.
    const bool by_panel = panels && x.columns.is_constant() && x.columns.constant() % p.columns() == 0;
    if (by_panel) own.define("DNNOPT_STORE_BY_PANEL", 1);
    const index_expr column =
        by_panel ? own.index("panel", x.columns.constant() / p.columns()) * p.columns() + own.index("lane", p.columns())
                 : own.index("n", x.columns);
    const std::vector<index_expr> at = again.output_index(own, own.index("z", x.batch), own.index("m", x.rows), column);
    own.define_store("dnnopt_store", n.outputs[0], at, by_panel ? product_names_store_panel : product_names_store,
                     compute_type::real, [&] { return finished_product(own, site, at); });
    return x;
  };
  if (!panels) {
    if (norm != no_node) throw error(errc::unsupported, "tiles do not normalize rows");
    const auto width = [&](std::size_t which, std::string_view name, value_id id, const index_expr& outer,
                           const index_expr& extent, std::span<const std::string> names, bool bits) {
      const bool by_inner = inner_first(c, which);
      if (reads_texels(site.block, id))
        return define_emitted_load4(b, name, id,
                                    by_inner     ? "k"
                                    : which == 0 ? "m"
                                                 : "n",
                                    by_inner ? e.inner : extent, names, [&](const index_expr& i) {
                                      return c.operand_index(b, which, z, by_inner ? outer : i, by_inner ? i : k);
                                    });
      return define_load4(b, name, id, b.offset_of(id, c.operand_index(b, which, z, outer, k)), by_inner ? k : outer,
                          by_inner ? e.inner : extent, names, bits);
    };
    const auto packed = [&](std::size_t which, std::string_view name, value_id id, const index_expr& outer,
                            const index_expr& extent, std::span<const std::string> names, bool& bits) {
      const std::int64_t batch = batch_of(which).constant();
      bits = define_texel_constant(
          result, b, site, {id, batch, extent.constant(), e.inner.constant()}, name, names,
          batch == 1 ? index_expr(0) : z, outer, k,
          [&](kernel_builder& own, const index_expr& pz, const index_expr& i, const index_expr& pk) {
            const contraction again = contraction_of(own, site).value();
            return own.emit(id, again.operand_index(own, which, pz, i, pk));
          },
          !multiplies_halves(site, b));
      return 4;
    };
    b.define("DNNOPT_A_INNER_FIRST", inner_first(c, 0) && !a_texels ? 1 : 0);
    b.define("DNNOPT_B_INNER_FIRST", inner_first(c, 1) && !b_texels ? 1 : 0);
    b.define("DNNOPT_A_WIDTH", a_texels ? packed(0, "dnnopt_load4_a", first, m, e.rows, product_names_a, a_bits)
                                        : width(0, "dnnopt_load4_a", first, m, e.rows, product_names_a, a_bits));
    b.define("DNNOPT_B_WIDTH", b_texels ? packed(1, "dnnopt_load4_b", second, col, e.columns, product_names_b, b_bits)
                                        : width(1, "dnnopt_load4_b", second, col, e.columns, product_names_b, b_bits));
    b.define("DNNOPT_A_BITS", a_bits ? 1 : 0);
    b.define("DNNOPT_B_BITS", b_bits ? 1 : 0);
    along = direction_of_texels(
        b, site.block, n.outputs[0], e.rows, e.columns,
        [&](const index_expr& row, const index_expr& column) { return c.output_index(b, z, row, column); });
    const tile_sizes tiles = choose_tiles(site, e);
    if (along == store_direction::single) along = direction_of_rows(tiles, e);
    finish_tiles(result, b, site, tiles, e, "matrix_tiles", define_store, along);
    return result;
  }
  (void)define_store(b);
  kernel_plan plan = b.finish(kernels::prelude, kernels::matrix_panels,
                              a_packed || b_packed ? "matrix_panels_packed" : "matrix_panels");
  launch_panels(plan, p, e, a_packed, b_packed);
  result.kernels.push_back(std::move(plan));
  return result;
}

[[nodiscard]] inline std::string reject_product_panels(const lowering_site& site) {
  return site.prefers_vectors() ? reject_matrix_product(site) : "the device does not prefer wide vectors";
}
[[nodiscard]] inline lowered_node lower_product_panels(const lowering_site& site) { return lower_product(site, true); }
[[nodiscard]] inline lowered_node lower_product_tiles(const lowering_site& site) { return lower_product(site, false); }

}  // namespace dnnopt::codegen

#endif  // DNNOPT_BACKEND_CODEGEN_FRAMES_PRODUCTS_LOWER_MATRIX_PRODUCT_HPP

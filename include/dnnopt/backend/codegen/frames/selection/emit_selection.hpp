// Owns the kernels of NonZero, Compress and Unique: what is chosen is found and counted, the count is read, and outputs
// of that size are computed.
#ifndef DNNOPT_BACKEND_CODEGEN_FRAMES_SELECTION_EMIT_SELECTION_HPP
#define DNNOPT_BACKEND_CODEGEN_FRAMES_SELECTION_EMIT_SELECTION_HPP

#include <cstddef>
#include <string>
#include <vector>

#include <dnnopt/backend/codegen/frames/selection/selected.hpp>

namespace dnnopt::codegen {

[[nodiscard]] inline lowered_node emit_non_zero(const lowering_site& site, const choice&) {
  const node& n = site.anchor_node();
  const graph& g = site.block.g;
  lowered_node result;
  const auto count_of = [](const element_site& s) { return element_count(s.dims(0)); };
  const selected_places chosen = keep_chosen(
      site, result, *bounded_count(g, n.inputs[0]), count_of,
      [](const element_site& s, const index_expr& c) { return s.read(0, s.b.index_at(s.dims(0), c)) + " != 0"; });
  result.size = computed_size{chosen.after, chosen.count, {{n.outputs[0], 1}}};
  add_output_kernel(
      site, result, 0, "select_coordinates", [&](const element_site& s, const std::vector<index_expr>& at) {
        const index_expr place = place_at(s, chosen.places, at[1], element_count(s.dims(0)));
        const std::vector<index_expr> index = s.b.index_at(s.dims(0), place);
        const std::string row = index_source(at[0]);
        std::string text = "0";
        for (std::size_t k = index.size(); k-- > 0;)
          text = row + " == " + std::to_string(k) + " ? (long)(" + index_source(index[k]) + ") : (" + text + ")";
        return s.b.let(compute_type::integer, text);
      });
  return result;
}

[[nodiscard]] inline lowered_node emit_compress(const lowering_site& site, const choice&) {
  const node& n = site.anchor_node();
  lowered_node result;
  const bool flat = !n.attributes.contains("axis");
  const std::size_t axis = flat ? 0 : normalize_axis(n.attributes.get_int("axis", 0), site.input(0).dims->size());
  const auto count_of = [](const element_site& s) { return s.dims(1)[0]; };
  const selected_places chosen =
      keep_chosen(site, result, *bounded_count(site.block.g, n.inputs[1]), count_of,
                  [](const element_site& s, const index_expr& c) { return s.read(1, {c}) + " != 0"; });
  result.size = computed_size{chosen.after, chosen.count, {{n.outputs[0], axis}}};
  add_output_kernel(site, result, 0, "select_slices", [&](const element_site& s, const std::vector<index_expr>& at) {
    const index_expr length = flat ? element_count(s.dims(0)) : s.dims(0)[axis];
    const index_expr place = place_at(s, chosen.places, at[axis], length);
    if (flat) return s.read(0, s.b.index_at(s.dims(0), place));
    std::vector<index_expr> from = at;
    from[axis] = place;
    return s.read(0, from);
  });
  return result;
}

namespace detail {

/// The slices of Unique: along an axis, or single elements.
struct unique_slices {
  const element_site& s;
  bool flat;
  std::size_t axis;

  [[nodiscard]] index_expr length() const { return flat ? element_count(s.dims(0)) : s.dims(0)[axis]; }
  /// The C name of an int that is negative where slice `a` comes before `c`, 0 where they are equal. NaN comes last.
  [[nodiscard]] std::string compare(const index_expr& a, const index_expr& c) const {
    const std::string order = s.b.fresh("order");
    s.b.line("int " + order + " = 0;");
    shape rest = flat ? shape{} : s.dims(0);
    if (!flat) rest[axis] = 1;
    s.loops("e", rest, [&](const std::vector<index_expr>& at) {
      const auto element = [&](const index_expr& slice) {
        if (flat) return s.read(0, s.b.index_at(s.dims(0), slice));
        std::vector<index_expr> from = at;
        from[axis] = slice;
        return s.read(0, from);
      };
      const std::string x = element(a);
      const std::string y = element(c);
      const auto before = [&](const std::string& p, const std::string& q) {
        return element_site::is_real(s.input_compute())
                   ? "(" + p + " < " + q + " || (" + q + " != " + q + " && " + p + " == " + p + "))"
                   : "(" + p + " < " + q + ")";
      };
      s.b.line("if (" + order + " == 0) " + order + " = " + before(x, y) + " ? -1 : " + before(y, x) + " ? 1 : 0;");
    });
    return order;
  }
};

/// Adds a kernel of one work-item per slice: `body(slices, i)` writes its statements.
template <class Body>
void add_slice_kernel(const lowering_site& site, lowered_node& to, bool flat, std::size_t axis, const char* version,
                      Body&& body) {
  kernel_builder b(site.block, site.options.emitters);
  const element_site s(b, site.anchor, 0, {});
  const unique_slices slices{s, flat, axis};
  if (slices.length() == index_expr(0)) return;
  const index_expr i = b.index("i", slices.length());
  b.begin();
  body(slices, i);
  const std::string statements = b.take();
  to.kernels.push_back(b.finish_items(kernels::prelude, statements, i, slices.length(), version));
}

}  // namespace detail

/// Each slice finds the first one that equals it; these are kept in the order of their values, or as they come.
[[nodiscard]] inline lowered_node emit_unique(const lowering_site& site, const choice&) {
  const node& n = site.anchor_node();
  const graph& g = site.block.g;
  lowered_node result;
  const bool flat = !n.attributes.contains("axis");
  const bool sorted = n.attributes.get_int("sorted", 1) != 0;
  const std::size_t axis = flat ? 0 : normalize_axis(n.attributes.get_int("axis", 0), site.input(0).dims->size());
  const index_expr most = *bounded_count(g, n.inputs[0]);
  const std::size_t first = add_scratch(result, most, 4);   // of each slice, the first equal one
  const std::size_t ranks = add_scratch(result, most, 4);   // of each first one, its place in the output
  const std::size_t places = add_scratch(result, most, 4);  // of each place in the output, its slice
  const std::size_t count = add_scratch(result, 1, 8);
  detail::add_slice_kernel(
      site, result, flat, axis, "unique_first", [&](const detail::unique_slices& slices, const index_expr& i) {
        kernel_builder& b = slices.s.b;
        const std::string found = b.variable(compute_type::integer, "i");
        slices.s.loop("j", slices.length(), [&](const index_expr& j) {
          b.open("if (" + index_source(j) + " < " + found + ") {");
          b.line("if (" + slices.compare(j, i) + " == 0) " + found + " = " + index_source(j) + ";");
          b.close();
        });
        b.line(b.scratch(first, dtype::int32, true) + "[i] = (int)" + found + ";");
      });
  detail::add_slice_kernel(
      site, result, flat, axis, "unique_order", [&](const detail::unique_slices& slices, const index_expr& i) {
        kernel_builder& b = slices.s.b;
        const std::string from = b.scratch(first, dtype::int32, false);
        b.open("if (" + from + "[i] == i) {");
        const std::string rank = b.variable(compute_type::integer, "0");
        slices.s.loop("j", slices.length(), [&](const index_expr& j) {
          const std::string other = index_source(j);
          b.open("if (" + from + "[" + other + "] == " + other + ") {");
          b.line("if (" + (sorted ? slices.compare(j, i) + " < 0" : other + " < i") + ") ++" + rank + ";");
          b.close();
        });
        b.line(b.scratch(ranks, dtype::int32, true) + "[i] = (int)" + rank + ";");
        b.line(b.scratch(places, dtype::int32, true) + "[" + rank + "] = i;");
        b.close();
      });
  {
    kernel_builder b(site.block, site.options.emitters);
    const element_site s(b, site.anchor, 0, {});
    const index_expr i = b.index("i", 1);
    b.begin();
    const std::string from = b.scratch(first, dtype::int32, false);
    const std::string total = b.variable(compute_type::integer, "0");
    s.loop("j", detail::unique_slices{s, flat, axis}.length(), [&](const index_expr& j) {
      b.line(total + " += " + from + "[" + index_source(j) + "] == " + index_source(j) + ";");
    });
    b.line(b.scratch(count, dtype::int64, true) + "[0] = " + total + ";");
    const std::string statements = b.take();
    result.kernels.push_back(b.finish_items(kernels::prelude, statements, i, 1, "unique_count"));
  }
  result.size = computed_size{result.kernels.size() - 1, count, {{n.outputs[0], axis}}};
  for (const std::size_t o : {std::size_t{1}, std::size_t{3}})
    if (stores_output(site.block, n, o)) result.size->dims.emplace_back(n.outputs[o], 0);
  add_output_kernel(site, result, 0, "unique_slices", [&](const element_site& s, const std::vector<index_expr>& at) {
    const detail::unique_slices slices{s, flat, axis};
    const index_expr place = place_at(s, places, at[axis], slices.length());
    if (flat) return s.read(0, s.b.index_at(s.dims(0), place));
    std::vector<index_expr> from = at;
    from[axis] = place;
    return s.read(0, from);
  });
  add_output_kernel(site, result, 1, "unique_numbers", [&](const element_site& s, const std::vector<index_expr>& at) {
    return s.b.let(compute_type::integer, s.b.scratch(places, dtype::int32, false) + "[" + index_source(at[0]) + "]");
  });
  add_output_kernel(site, result, 2, "unique_numbers", [&](const element_site& s, const std::vector<index_expr>& at) {
    const std::string rank_of = s.b.scratch(ranks, dtype::int32, false);
    const std::string first_of = s.b.scratch(first, dtype::int32, false);
    return s.b.let(compute_type::integer, rank_of + "[" + first_of + "[" + index_source(at[0]) + "]]");
  });
  add_output_kernel(site, result, 3, "unique_numbers", [&](const element_site& s, const std::vector<index_expr>& at) {
    const std::string own =
        s.b.let(compute_type::integer, s.b.scratch(places, dtype::int32, false) + "[" + index_source(at[0]) + "]");
    const std::string total = s.b.variable(compute_type::integer, "0");
    const std::string from = s.b.scratch(first, dtype::int32, false);
    s.loop("j", detail::unique_slices{s, flat, axis}.length(),
           [&](const index_expr& j) { s.b.line(total + " += " + from + "[" + index_source(j) + "] == " + own + ";"); });
    return total;
  });
  return result;
}

}  // namespace dnnopt::codegen

#endif  // DNNOPT_BACKEND_CODEGEN_FRAMES_SELECTION_EMIT_SELECTION_HPP

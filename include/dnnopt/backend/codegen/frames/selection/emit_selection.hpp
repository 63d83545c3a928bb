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
  /// The element of slice `slice` that lies at `at` of it, whose entry along the axis does not count.
  [[nodiscard]] std::string element(const index_expr& slice, const std::vector<index_expr>& at) const {
    if (flat) return s.read(0, s.b.index_at(s.dims(0), slice));
    std::vector<index_expr> from = at;
    from[axis] = slice;
    return s.read(0, from);
  }
  /// The C name of an int that is negative where slice `a` comes before `c`, 0 where they are equal. NaN comes last.
  [[nodiscard]] std::string compare(const index_expr& a, const index_expr& c) const {
    const std::string order = s.b.fresh("order");
    s.b.line("int " + order + " = 0;");
    shape rest = flat ? shape{} : s.dims(0);
    if (!flat) rest[axis] = 1;
    s.loops("e", rest, [&](const std::vector<index_expr>& at) {
      const std::string x = element(a, at);
      const std::string y = element(c, at);
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
  b.begin({i});
  body(slices, i);
  const std::string statements = b.take();
  to.kernels.push_back(b.finish_items(kernels::prelude, statements, i, slices.length(), version));
}

/// Adds the kernels of Unique to a lowered node, with the memory between them.
class unique_kernels {
 public:
  /// Precondition: the site's anchor is a Unique of bounded size; `site` and `to` outlive this.
  unique_kernels(const lowering_site& site, lowered_node& to)
      : site_(site),
        n_(site.anchor_node()),
        to_(to),
        flat_(!n_.attributes.contains("axis")),
        sorted_(n_.attributes.get_int("sorted", 1) != 0),
        axis_(flat_ ? 0 : normalize_axis(n_.attributes.get_int("axis", 0), site.input(0).dims->size())),
        most_(*bounded_count(site.block.g, n_.inputs[0])),
        first_(add_scratch(to, most_, 4)),
        ranks_(add_scratch(to, most_, 4)),
        places_(add_scratch(to, most_, 4)),
        count_(add_scratch(to, 1, 8)) {}

  /// Of each slice finds the first one that equals it.
  void find_first() {
    const auto body = [&](const unique_slices& slices, const index_expr& i) {
      kernel_builder& b = slices.s.b;
      const std::string found = b.variable(compute_type::integer, "i");
      slices.s.loop("j", slices.length(), [&](const index_expr& j) {
        b.open("if (" + index_source(j) + " < " + found + ") {");
        b.line("if (" + slices.compare(j, i) + " == 0) " + found + " = " + index_source(j) + ";");
        b.close();
      });
      b.line(b.scratch(first_, dtype::int32, true) + "[i] = (int)" + found + ";");
    };
    add_slice_kernel(site_, to_, flat_, axis_, "unique_first", body);
  }

  /// Gives the first ones their places in the output: in the order of their values, or as they come.
  void rank_first() {
    const auto body = [&](const unique_slices& slices, const index_expr& i) {
      kernel_builder& b = slices.s.b;
      const std::string from = b.scratch(first_, dtype::int32, false);
      b.open("if (" + from + "[i] == i) {");
      const std::string rank = b.variable(compute_type::integer, "0");
      slices.s.loop("j", slices.length(), [&](const index_expr& j) {
        const std::string other = index_source(j);
        b.open("if (" + from + "[" + other + "] == " + other + ") {");
        b.line("if (" + (sorted_ ? slices.compare(j, i) + " < 0" : other + " < i") + ") ++" + rank + ";");
        b.close();
      });
      b.line(b.scratch(ranks_, dtype::int32, true) + "[i] = (int)" + rank + ";");
      b.line(b.scratch(places_, dtype::int32, true) + "[" + rank + "] = i;");
      b.close();
    };
    add_slice_kernel(site_, to_, flat_, axis_, "unique_order", body);
  }

  /// Counts the first ones, which settles the outputs' size.
  void count_first() {
    kernel_builder b(site_.block, site_.options.emitters);
    const element_site s(b, site_.anchor, 0, {});
    const index_expr i = b.index("i", 1);
    b.begin();
    const std::string from = b.scratch(first_, dtype::int32, false);
    const std::string total = b.variable(compute_type::integer, "0");
    s.loop("j", slices_of(s).length(), [&](const index_expr& j) {
      b.line(total + " += " + from + "[" + index_source(j) + "] == " + index_source(j) + ";");
    });
    b.line(b.scratch(count_, dtype::int64, true) + "[0] = " + total + ";");
    const std::string statements = b.take();
    to_.kernels.push_back(b.finish_items(kernels::prelude, statements, i, 1, "unique_count"));
    to_.size = computed_size{to_.kernels.size() - 1, count_, {{n_.outputs[0], axis_}}};
    for (const std::size_t o : {std::size_t{1}, std::size_t{3}})
      if (stores_output(site_.block, n_, o)) to_.size->dims.emplace_back(n_.outputs[o], 0);
  }

  /// Writes the outputs: the slices, their numbers in the input, those of the input's slices in the output, and how
  /// many equal each.
  void write_outputs() {
    using indices = std::vector<index_expr>;
    add_output_kernel(site_, to_, 0, "unique_slices", [&](const element_site& s, const indices& at) {
      const unique_slices slices = slices_of(s);
      return slices.element(place_at(s, places_, at[axis_], slices.length()), at);
    });
    add_output_kernel(site_, to_, 1, "unique_numbers",
                      [&](const element_site& s, const indices& at) { return slice_number(s, at[0]); });
    add_output_kernel(site_, to_, 2, "unique_numbers", [&](const element_site& s, const indices& at) {
      const std::string rank_of = s.b.scratch(ranks_, dtype::int32, false);
      const std::string first_of = s.b.scratch(first_, dtype::int32, false);
      return s.b.let(compute_type::integer, rank_of + "[" + first_of + "[" + index_source(at[0]) + "]]");
    });
    add_output_kernel(site_, to_, 3, "unique_numbers", [&](const element_site& s, const indices& at) {
      const std::string own = slice_number(s, at[0]);
      const std::string total = s.b.variable(compute_type::integer, "0");
      const std::string from = s.b.scratch(first_, dtype::int32, false);
      s.loop("j", slices_of(s).length(), [&](const index_expr& j) {
        s.b.line(total + " += " + from + "[" + index_source(j) + "] == " + own + ";");
      });
      return total;
    });
  }

 private:
  /// The slices of the input, while a kernel of the site's node is written.
  [[nodiscard]] unique_slices slices_of(const element_site& s) const { return {s, flat_, axis_}; }
  /// The C name of the number in the input of the slice at `place` of the output.
  [[nodiscard]] std::string slice_number(const element_site& s, const index_expr& place) const {
    return s.b.let(compute_type::integer, s.b.scratch(places_, dtype::int32, false) + "[" + index_source(place) + "]");
  }

  const lowering_site& site_;
  const node& n_;
  lowered_node& to_;
  bool flat_;
  bool sorted_;
  std::size_t axis_;
  index_expr most_;  ///< slices, over the graph's symbols
  // Numbers of scratch buffers.
  std::size_t first_;   ///< of each slice, the first equal one
  std::size_t ranks_;   ///< of each first one, its place in the output
  std::size_t places_;  ///< of each place in the output, its slice
  std::size_t count_;   ///< how many places there are
};

}  // namespace detail

/// Each slice finds the first one that equals it; these are kept in the order of their values, or as they come.
[[nodiscard]] inline lowered_node emit_unique(const lowering_site& site, const choice&) {
  lowered_node result;
  detail::unique_kernels unique(site, result);
  unique.find_first();
  unique.rank_first();
  unique.count_first();
  unique.write_outputs();
  return result;
}

}  // namespace dnnopt::codegen

#endif  // DNNOPT_BACKEND_CODEGEN_FRAMES_SELECTION_EMIT_SELECTION_HPP

// Owns what all kernels of attention share: where operands and results are, and how scores are scaled and masked.
#ifndef DNNOPT_BACKEND_CODEGEN_FRAMES_ATTENTION_ATTENTION_SITE_HPP
#define DNNOPT_BACKEND_CODEGEN_FRAMES_ATTENTION_ATTENTION_SITE_HPP

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <dnnopt/backend/codegen/elements/element_site.hpp>
#include <dnnopt/backend/codegen/frames/products/matrix_frame.hpp>
#include <dnnopt/backend/codegen/lowering_row.hpp>
#include <dnnopt/ops/attention.hpp>

namespace dnnopt::codegen {

/// An Attention node in a kernel's symbols: where its operands are read, and how scores are scaled and masked.
class attention_site {
 public:
  attention_site(kernel_builder& b, node_id id) : s(b, id, 0, {}) {
    std::vector<const value_facts*> storage;
    e = ops::attention_op::extents_of(b.facts_of(id, storage));
    packed = s.dims(0).size() == 3;
    past = s.has(4) ? s.dims(4)[2] : index_expr(0);
  }

  element_site s;
  ops::attention_op::extents e;
  bool packed = false;
  index_expr past;

  [[nodiscard]] index_expr batch(const index_expr& z) const { return floordiv(z, e.query_heads); }
  [[nodiscard]] index_expr head(const index_expr& z) const { return mod(z, e.query_heads); }
  [[nodiscard]] index_expr key_head(const index_expr& z) const {
    return floordiv(head(z), floordiv(e.query_heads, e.key_heads));
  }

  [[nodiscard]] std::string query(const index_expr& z, const index_expr& i, const index_expr& d) const {
    return element(0, batch(z), head(z), i, d, e.size);
  }
  /// The key (slot 1) or value (slot 2) at position j, of the past where j is before it.
  [[nodiscard]] std::string key_or_value(std::size_t slot, const index_expr& n, const index_expr& h,
                                         const index_expr& j, const index_expr& d) const {
    const index_expr size = slot == 1 ? e.size : e.value_size;
    if (!s.has(slot + 3)) return element(slot, n, h, j, d, size);
    const std::string result = s.b.variable(s.input_compute(slot), "0");
    const std::string test = kernel_builder::within(j, past);
    s.b.open("if (" + (test.empty() ? std::string("1") : test) + ") {");
    s.b.line(result + " = " + s.read(slot + 3, {n, h, s.b.define_index("j", j, past), d}) + ";");
    s.b.close();
    s.b.open("else {");
    const index_expr present = s.b.define_integer("j", index_source(j - past),
                                                  {0, std::max<std::int64_t>((e.keys - past).range().high - 1, 0)});
    s.b.line(result + " = " + element(slot, n, h, present, d, size) + ";");
    s.b.close();
    return result;
  }
  /// The score of a product as one of the four stages of the fourth output: scaled, soft-capped, masked.
  [[nodiscard]] std::string score(const index_expr& z, const index_expr& i, const index_expr& j,
                                  const std::string& product, std::int64_t stage) const {
    kernel_builder& b = s.b;
    const attribute_map& a = s.attributes();
    std::string scale;
    if (a.contains("scale"))
      scale = literal(compute_type::real, static_cast<double>(a.get_float("scale", 1.0f)));
    else if (e.size.is_constant())
      scale = literal(compute_type::real, 1.0 / std::sqrt(static_cast<double>(e.size.constant())));
    else
      scale = "(1.0f / sqrt((float)" + index_source(e.size) + "))";
    std::string text = b.let(compute_type::real, product + " * " + scale);
    const float cap = a.get_float("softcap", 0.0f);
    if (stage >= 1 && cap > 0) {
      const std::string limit = literal(compute_type::real, static_cast<double>(cap));
      text = b.let(compute_type::real, limit + " * tanh(" + text + " / " + limit + ")");
    }
    if (stage < 2) return text;
    std::string hidden;
    const auto hide = [&](const std::string& test) { hidden += (hidden.empty() ? "" : " || ") + test; };
    std::string length;
    if (s.has(6)) length = s.read(6, {batch(z)});
    const std::string at =
        s.has(4) || length.empty()
            ? index_source(past + i)
            : b.let(compute_type::integer, length + " - " + index_source(e.queries) + " + " + index_source(i));
    if (a.get_int("is_causal", 0) != 0) hide(index_source(j) + " > " + at);
    if (const std::int64_t left = a.get_int("left_window_size", -1); left >= 0)
      hide(index_source(j) + " < " + at + " - " + std::to_string(left));
    if (const std::int64_t right = a.get_int("right_window_size", -1); right >= 0)
      hide(index_source(j) + " > " + at + " + " + std::to_string(right));
    if (!length.empty()) hide(index_source(j) + " >= " + length);
    const std::string result = b.variable(compute_type::real, text);
    if (!hidden.empty()) b.line("if (" + hidden + ") " + result + " = -INFINITY;");
    if (s.has(3)) {
      const shape& mask = s.dims(3);
      const shape whole_dims{e.batch, e.query_heads, e.queries, e.keys};
      const std::vector<index_expr> whole{batch(z), head(z), i, j};
      // Keys beyond the mask are hidden; a mask of one key is for all of them, which a symbolic dim tells only in a
      // run.
      const bool spans = mask.empty() || mask.back() == index_expr(1) || mask.back() == e.keys;
      std::string test = spans ? "" : kernel_builder::within(j, mask.back());
      if (!test.empty() && mask.back().range().low <= 1) test += " || " + index_source(mask.back()) + " == 1";
      s.when(test, [&] {
        std::vector<index_expr> own = whole;
        if (!spans) own[3] = b.define_index("j", min(j, mask.back() - 1), mask.back());
        std::vector<index_expr> at_mask;
        for (std::size_t k = 0; k < mask.size(); ++k) {
          const std::size_t w = 4 - mask.size() + k;
          at_mask.push_back(w == 3 && !spans ? own[3]
                                             : kernel_builder::broadcast_index(mask[k], whole_dims[w], own[w]));
        }
        const std::string element = s.read(3, at_mask);
        b.line(s.type_of(3) == dtype::boolean ? "if (!" + element + ") " + result + " = -INFINITY;"
                                              : result + " += " + element + ";");
      });
      if (!test.empty()) b.line("if (!(" + test + ")) " + result + " = -INFINITY;");
    }
    return result;
  }

 private:
  [[nodiscard]] std::string element(std::size_t slot, const index_expr& n, const index_expr& h, const index_expr& at,
                                    const index_expr& d, const index_expr& size) const {
    return packed ? s.read(slot, {n, at, h * size + d}) : s.read(slot, {n, h, at, d});
  }
};

/// The index of the result's element v of row i of head z.
[[nodiscard]] inline std::vector<index_expr> result_index(const attention_site& a, const index_expr& z,
                                                          const index_expr& i, const index_expr& v) {
  if (a.packed) return {a.batch(z), i, a.head(z) * a.e.value_size + v};
  return {a.batch(z), a.head(z), i, v};
}

}  // namespace dnnopt::codegen

#endif  // DNNOPT_BACKEND_CODEGEN_FRAMES_ATTENTION_ATTENTION_SITE_HPP

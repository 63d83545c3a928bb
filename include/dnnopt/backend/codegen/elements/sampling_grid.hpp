// Owns the element expressions of sampling at computed coordinates: GridSample, AffineGrid.
#ifndef DNNOPT_BACKEND_CODEGEN_ELEMENTS_SAMPLING_GRID_HPP
#define DNNOPT_BACKEND_CODEGEN_ELEMENTS_SAMPLING_GRID_HPP

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <dnnopt/backend/codegen/elements/resampling.hpp>

namespace dnnopt::codegen {

inline std::string emit_grid_sample(kernel_builder& b, node_id id, std::size_t output,
                                    std::span<const index_expr> index) {
  const element_site s(b, id, output, index);
  const compute_type type = s.compute();
  const std::string real(name_of(type));
  const shape& x = s.dims(0);
  const std::size_t spatial = x.size() - 2;
  const bool align = s.attributes().get_int("align_corners", 0) != 0;
  const std::string mode = s.attributes().get_string("mode", "linear");
  const std::string padding = s.attributes().get_string("padding_mode", "zeros");
  const bool cubic = mode == "cubic" || mode == "bicubic";
  const bool nearest = mode == "nearest";
  if (!cubic && !nearest && mode != "linear" && mode != "bilinear") throw s.refuse("interpolation mode " + mode);
  const std::int64_t taps = nearest ? 1 : cubic ? 4 : 2;
  std::vector<std::string> positions;
  for (std::size_t k = 0; k < spatial; ++k) {
    // The last coordinate of the grid belongs to the last spatial dim's opposite end: x comes first.
    std::vector<index_expr> at{s.index[0]};
    at.insert(at.end(), s.index.begin() + 2, s.index.end());
    at.emplace_back(static_cast<std::int64_t>(spatial - 1 - k));
    const std::string g = s.read(1, at);
    const std::string extent = index_source(x[2 + k]);
    const std::string moved = "(" + g + " + 1)";
    positions.push_back(b.let(type, align ? moved + " / 2 * (" + real + ")(" + extent + " - 1)"
                                    : type == compute_type::real
                                        ? "dnnopt_rounded_product_sum(" + moved + ", (float)" + extent + ", -1.0f) / 2"
                                        : "(" + moved + " * " + extent + " - 1) / 2"));
  }
  const std::string sum = b.variable(type, "0");
  s.loops("t", std::vector<index_expr>(spatial, index_expr(taps)), [&](const std::vector<index_expr>& t) {
    std::string weight;
    std::string test;
    std::vector<index_expr> at{s.index[0], s.index[1]};
    for (std::size_t k = 0; k < spatial; ++k) {
      const std::string& p = positions[k];
      const std::string extent = "(int)" + index_source(x[2 + k]);
      const std::string q = b.fresh("q");
      // Far coordinates are clamped so that the conversion to int is defined; they stay outside.
      const std::string near =
          "clamp(" + (nearest ? "rint(" + p + ")" : p) + ", (" + real + ")-1.0e9f, (" + real + ")1.0e9f)";
      const std::string base = nearest ? "(int)" + near : "dnnopt_floor_to_int(" + near + ")";
      b.line("int " + q + " = " + base + (nearest ? "" : " + " + index_source(t[k]) + (cubic ? " - 1" : "")) + ";");
      if (!nearest) {
        const std::string d = b.let(type, "fabs(" + p + " - " + q + ")");
        if (!cubic)
          weight += " * (1 - " + d + ")";
        else
          weight += " * (" + d + " <= 1 ? (1.25f * " + d + " - 2.25f) * " + d + " * " + d + " + 1 : ((-0.75f * " + d +
                    " + 3.75f) * " + d + " - 6.0f) * " + d + " + 3.0f)";
      }
      if (padding == "zeros") {
        test += (test.empty() ? "" : " && ") + q + " >= 0 && " + q + " < " + extent;
      } else if (padding == "border") {
        b.line(q + " = clamp(" + q + ", 0, " + extent + " - 1);");
      } else if (padding == "reflection") {
        if (align) {
          b.line("if (" + extent + " == 1) " + q + " = 0; else { " + q + " = abs(" + q + ") % (2 * (" + extent +
                 " - 1)); if (" + q + " >= " + extent + ") " + q + " = 2 * (" + extent + " - 1) - " + q + "; }");
        } else {
          b.line(q + " = (" + q + " < 0 ? -" + q + " - 1 : " + q + ") % (2 * " + extent + "); if (" + q +
                 " >= " + extent + ") " + q + " = 2 * " + extent + " - 1 - " + q + ";");
        }
      } else {
        throw s.refuse("padding mode " + padding);
      }
      at.push_back(b.expressions().symbol(q, below(x[2 + k])));
    }
    s.when(test, [&] { b.line(sum + " += " + s.read(0, at) + weight + ";"); });
  });
  return s.result(sum);
}

inline std::string emit_affine_grid(kernel_builder& b, node_id id, std::size_t output,
                                    std::span<const index_expr> index) {
  const element_site s(b, id, output, index);
  const compute_type type = s.compute();
  const std::size_t spatial = s.out_dims().size() - 2;
  const bool align = s.attributes().get_int("align_corners", 0) != 0;
  const std::string real(name_of(type));
  // Coordinates are homogeneous, x first; extent 1 stands at the middle.
  std::vector<std::string> base;
  for (std::size_t k = 0; k < spatial; ++k) {
    const std::string at = index_source(s.index[spatial - k]);
    const std::string extent = index_source(s.out_dims()[spatial - k]);
    base.push_back(b.let(
        type, align ? extent + " == 1 ? -1 : (" + real + ")(2 * " + at + ") / (" + real + ")(" + extent + " - 1) - 1"
                    : "(" + real + ")(2 * " + at + " + 1) / (" + real + ")" + extent + " - 1"));
  }
  base.emplace_back("1");
  const index_expr row = s.index.back();
  std::string text;
  for (std::size_t k = 0; k < base.size(); ++k)
    text += (k == 0 ? "" : " + ") + s.read(0, {s.index[0], row, static_cast<std::int64_t>(k)}) + " * " + base[k];
  return s.result(text);
}

inline constexpr std::array sampling_grid_emitters{
    emitter_row{"", "GridSample", emit_grid_sample},
    emitter_row{"", "AffineGrid", emit_affine_grid},
};

}  // namespace dnnopt::codegen

#endif  // DNNOPT_BACKEND_CODEGEN_ELEMENTS_SAMPLING_GRID_HPP

// Owns the kernels of products and convolutions in matrix steps.
#ifndef DNNOPT_BACKEND_CODEGEN_FRAMES_STEPS_EMIT_HPP
#define DNNOPT_BACKEND_CODEGEN_FRAMES_STEPS_EMIT_HPP

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dnnopt/backend/codegen/frames/convolutions/emit_patches.hpp>
#include <dnnopt/backend/codegen/frames/products/emit.hpp>
#include <dnnopt/backend/codegen/frames/steps/choose.hpp>

namespace dnnopt::codegen {

namespace detail {

inline const std::array<std::vector<std::string>, 2> step_names{std::vector<std::string>{"z", "m", "k"},
                                                                std::vector<std::string>{"z", "k", "n"}};

/// By how much an offset grows with `k` + `step`, where that is the same for all k: nothing where it is not, or where
/// the offset names what statements compute, which may depend on k.
[[nodiscard]] inline std::optional<index_expr> advance_of(kernel_builder& b, const index_expr& offset,
                                                          const index_expr& k, std::int64_t step) {
  bool known = true;
  bool constant = true;
  const auto look = [&](const index_expr& e, auto&& test) {
    (void)substitute(e, [&](const index_expr& symbol) {
      test(b.expressions().symbol_name(*symbol.as_symbol()));
      return symbol;
    });
  };
  const auto is_parameter = [](const std::string& name) {
    return name.size() > 1 && name[0] == 'p' && name.find_first_not_of("0123456789", 1) == std::string::npos;
  };
  look(offset, [&](const std::string& name) {
    known = known && (name == "z" || name == "m" || name == "n" || name == "k" || is_parameter(name));
  });
  if (!known) return std::nullopt;
  const index_expr next = substitute(offset, [&](const index_expr& symbol) { return symbol == k ? k + step : symbol; });
  const index_expr advance = next - offset;
  look(advance, [&](const std::string& name) { constant = constant && is_parameter(name); });
  if (!constant || !fits_int(advance.range())) return std::nullopt;
  return advance;
}

/// Defines `name`_a(z, m, k) or `name`_b(z, k, n) with these statements.
inline void define_step_function(kernel_builder& b, const std::string& type, const std::string& name, std::size_t which,
                                 const std::string& statements) {
  std::string text = "static inline " + type + " " + name + (which == 0 ? "_a" : "_b") + "(DNNOPT_PARAMETERS";
  for (const std::string& one : step_names[which]) text += ", const int " + one;
  b.add_function(text + ") {\n" + statements + "}\n");
}

/// Defines dnnopt_address_a(z, m, k) or dnnopt_address_b(z, k, n), where elements of an operand lie in memory, which is
/// stored as `type`; of int8, where its codes lie.
inline void define_step_address(kernel_builder& b, const step_product& p, std::size_t which, dtype type,
                                bool inner_first, std::int64_t tile_inner) {
  const bool codes = type == dtype::int8;
  const step_operand operand = codes ? whole_codes(b, p.operands[which]).value() : p.operands[which];
  const dtype held = codes ? b.g().facts(operand.id).type : type;
  const index_expr& extent = which == 0 ? p.extents.rows : p.extents.columns;
  const index_expr outer = b.index(which == 0 ? "m" : "n", extent);
  const index_expr k = b.index("k", p.extents.inner);
  const step_address found =
      address_of(b, operand, held, b.index("z", p.extents.batch), outer, k, inner_first ? k : outer,
                 inner_first ? p.extents.inner : extent, which == 0 ? "a" : "b");
  const std::string pointer = (codes ? "(__global const dnnopt_element*)" : "") + b.pointer(found.stored, false);
  define_step_function(
      b, "__global const dnnopt_element*", "dnnopt_address", which,
      found.statements + "  return " + pointer + " + " + b.offset_source(found.stored, found.offset) + ";\n");
  if (const auto advance = advance_of(b, found.offset, k, tile_inner))
    b.define(which == 0 ? "DNNOPT_A_ADVANCE" : "DNNOPT_B_ADVANCE", *advance);
}

/// Defines dnnopt_address_a(z, m, k) or dnnopt_address_b(z, k, n), where elements lie of an operand whose codes are
/// turned once.
inline void define_turned_address(lowered_node& result, kernel_builder& b, const lowering_site& site,
                                  const step_product& p, std::size_t which, bool joined, std::int64_t tile_inner) {
  const std::size_t number = turn_codes(result, site, which, joined);
  const index_expr outer = b.index(which == 0 ? "m" : "n", which == 0 ? p.extents.rows : p.extents.columns);
  const index_expr offset = outer * p.extents.inner + b.index("k", p.extents.inner);
  define_step_function(b, "__global const dnnopt_element*", "dnnopt_address", which,
                       "  return (__global const dnnopt_element*)" + b.scratch(number, dtype::int8, false) + " + " +
                           index_source(offset) + ";\n");
  b.define(which == 0 ? "DNNOPT_A_ADVANCE" : "DNNOPT_B_ADVANCE", index_expr(tile_inner));
}

/// Defines dnnopt_address_a(z, m, k) and dnnopt_address_b(z, k, n) of a convolution whose image is brought to lines,
/// and adds the kernel that does.
inline void define_line_addresses(lowered_node& result, kernel_builder& b, const lowering_site& site,
                                  const step_product& p, const image_lines& lines, bool joined,
                                  std::int64_t tile_inner) {
  const convolution_shape c = convolution_of(element_site(b, site.anchor, 0, {}));
  const index_expr z = b.index("z", p.extents.batch);
  const index_expr k = b.index("k", lines.inner);
  const auto define = [&](std::size_t which, std::size_t number, const index_expr& place) {
    define_step_function(b, "__global const dnnopt_element*", "dnnopt_address", which,
                         "  return (__global const dnnopt_element*)" + b.scratch(number, dtype::int8, false) + " + " +
                             index_source(place) + ";\n");
  };
  const std::size_t image = add_image_lines(result, site);
  define(1, image, place_in_lines(b, c, lines, z, k, b.index("n", p.extents.columns), joined));
  const std::size_t weights = turn_weights_for_lines(result, site, lines);
  define(0, weights, (mod(z, c.group) * c.outputs + b.index("m", p.extents.rows)) * lines.inner + k);
  b.define("DNNOPT_A_ADVANCE", index_expr(tile_inner));
}

/// Defines dnnopt_address_b(z, k, n) and dnnopt_within_b(z, k, n), where four channels of a patch lie in the texels of
/// an image and whether they are no padding, and dnnopt_address_a(z, m, k), where four weights lie, which are packed
/// once in the order of the image's inner elements.
inline void define_texel_addresses(lowered_node& result, kernel_builder& b, const lowering_site& site,
                                   const step_product& p, bool joined, std::int64_t tile_inner) {
  const node& n = site.anchor_node();
  const element_site s(b, site.anchor, 0, {});
  const convolution_shape c = convolution_of(s);
  const index_expr z = b.index("z", p.extents.batch);
  const index_expr m = b.index("m", p.extents.rows);
  const index_expr k = b.index("k", p.extents.inner);
  const index_expr column = b.index("n", p.extents.columns);
  const auto define = [&](const char* type, const char* name, std::size_t which, const std::string& result_of) {
    define_step_function(b, type, name, which, "  return " + result_of + ";\n");
  };
  const auto advances = [&](const index_expr& offset, std::string_view macro) {
    if (const auto advance = advance_of(b, offset, k, tile_inner)) b.define(std::string(macro), *advance);
  };
  constexpr const char* halves = "__global const half*";
  const texel_of_patch patch = find_texel_of_patch(b, s, c, z, k, column, joined);
  define(halves, "dnnopt_address", 1, b.texel_pointer(n.inputs[0]) + " + " + index_source(patch.offset));
  define("bool", "dnnopt_within", 1, patch.within.empty() ? "true" : patch.within);
  advances(patch.offset, "DNNOPT_B_ADVANCE");

  const value_id weights = n.inputs[1];
  const constant_operand operand{weights, c.group, p.extents.rows.constant(), p.extents.inner.constant()};
  const packed_operand packed = pack_texel_constant(
      result, site, operand, dtype::float16,
      [&](kernel_builder& own, const index_expr& group, const index_expr& row, const index_expr& inner) {
        const element_site own_site(own, site.anchor, 0, {});
        return emit_weight_of_texels(own, own_site, convolution_of(own_site), weights, group, row, inner);
      });
  const index_expr offset = packed.place(operand, mod(z, c.group), m, k).linear() * texel_width;
  define(halves, "dnnopt_address", 0,
         "(__global const half*)" + b.scratch_texels(packed.scratch, packed.storage, false) + " + " +
             index_source(offset));
  advances(offset, "DNNOPT_A_ADVANCE");
}

/// Defines dnnopt_codes_a(z, m, k) or dnnopt_codes_b(z, k, n), where codes of an operand lie.
inline void define_step_codes(kernel_builder& b, const step_product& p, std::size_t which, bool inner_first) {
  const step_operand& meant = p.operands[which];
  const step_operand codes = whole_codes(b, meant).value();
  const index_expr& extent = which == 0 ? p.extents.rows : p.extents.columns;
  const index_expr outer = b.index(which == 0 ? "m" : "n", extent);
  const index_expr k = b.index("k", p.extents.inner);
  const step_address found =
      address_of(b, codes, b.g().facts(codes.id).type, b.index("z", p.extents.batch), outer, k, inner_first ? k : outer,
                 inner_first ? p.extents.inner : extent, which == 0 ? "ac" : "bc");
  define_step_function(b, "__global const void*", "dnnopt_codes", which,
                       found.statements + "  return " + b.pointer(found.stored, false) + " + " +
                           b.offset_source(found.stored, found.offset) + ";\n");
}

/// Defines dnnopt_gather_b(z, k, quarter), which returns the codes of four neighbouring columns, each loaded where its
/// own index says; the zero point where none is.
inline void define_gathered_codes(kernel_builder& b, const step_product& p) {
  const step_operand& o = p.operands[1];
  const std::string outside = "as_float(" + zero_code_of(b, o) + ")";
  const index_expr z = b.index("z", p.extents.batch);
  const index_expr k = b.index("k", p.extents.inner);
  const index_expr quarter = b.index("quarter", floordiv(p.extents.columns, 4));
  b.write_codes(o.dequantizer, kernel_builder::code_form::bits);
  b.begin();
  std::string codes;
  for (std::int64_t j = 0; j < 4; ++j) {
    const index_expr column = quarter * 4 + j;
    const std::string element = o.at ? b.emit(o.id, o.at(z, column, k)) : o.emit(z, column, k, outside);
    codes += (j == 0 ? "" : " | ") + ("(as_uint(" + element + ") & 0xffu) << " + std::to_string(8 * j));
  }
  const std::string statements = b.take();
  b.write_codes(no_node, kernel_builder::code_form::scaled);
  b.add_function(
      "static inline uint dnnopt_gather_b(DNNOPT_PARAMETERS, const int z, const int k, const int quarter) {\n" +
      statements + "  return " + codes + ";\n}\n");
}

/// Whether four channels at once would spare a convolution the index of each element, and where it has a window or
/// strides a test. Not where several elements of its image are `copied` at once already.
[[nodiscard]] inline bool reads_sooner_as_texels(kernel_builder& b, const lowering_site& site, const step_product& p,
                                                 bool copied) {
  if (copied || site.anchor_node().op->kind != computation_kind::convolution) return false;
  if (p.operands[1].dequantizer != no_node) return false;
  return may_ask_for_texels(b, site, convolution_of(element_site(b, site.anchor, 0, {})), p.extents.inner);
}

/// Defines dnnopt_load_a(z, m, k) or dnnopt_load_b(z, k, n), one element of an operand; as its code where `code`.
inline void define_step_load(kernel_builder& b, const step_product& p, std::size_t which, bool bits, bool code) {
  const step_operand& o = p.operands[which];
  const std::string outside = code ? "as_float(" + zero_code_of(b, o) + ")" : "0";
  const index_expr z = b.index("z", p.extents.batch);
  const index_expr outer = b.index(which == 0 ? "m" : "n", which == 0 ? p.extents.rows : p.extents.columns);
  const index_expr k = b.index("k", p.extents.inner);
  b.load_halves_as_bits(bits);
  b.write_codes(o.dequantizer, code ? kernel_builder::code_form::bits : kernel_builder::code_form::unscaled);
  b.define_function(which == 0 ? "dnnopt_load_a" : "dnnopt_load_b", compute_type::real, step_names[which], [&] {
    const std::string element = o.at ? b.emit(o.id, o.at(z, outer, k)) : o.emit(z, outer, k, outside);
    return bits && o.dequantizer != no_node ? "dnnopt_bits_of_code(" + element + ")" : element;
  });
  b.write_codes(no_node, kernel_builder::code_form::scaled);
  b.load_halves_as_bits(false);
}

/// Defines how an operand that is neither in texels nor in lines is loaded, as chosen.
inline void define_step_operand(lowered_node& result, kernel_builder& b, const lowering_site& site,
                                const step_product& p, std::size_t which, const choice& chosen, dtype type) {
  const auto of = [&](const char* first, const char* second) { return chosen[which == 0 ? first : second]; };
  const bool inner_first = of("a_inner_first", "b_inner_first") != 0;
  const std::int64_t codes = of("a_codes", "b_codes");
  if (of("a_turned", "b_turned") != 0)
    define_turned_address(result, b, site, p, which, chosen["joined_images"] != 0, chosen["tile_inner"]);
  else if (of("a_copy", "b_copy") > 0)
    define_step_address(b, p, which, type, inner_first, chosen["tile_inner"]);
  else if (which == 1 && chosen["b_gathered"] != 0)
    define_gathered_codes(b, p);
  else if (codes > 1)
    define_step_codes(b, p, which, inner_first);
  else
    define_step_load(b, p, which, of("a_bits", "b_bits") != 0, codes != 0);
}

/// Defines the store of a product's results, one by one or four along a direction, and returns the extents.
inline product_extents define_step_store(kernel_builder& b, const lowering_site& site, const choice& chosen) {
  const step_product p = step_product_of(b, site, chosen["joined_images"] != 0);
  const auto along = static_cast<store_direction>(chosen["store_along"]);
  const value_id result = site.anchor_node().outputs[0];
  const index_expr z = b.index("z", p.extents.batch);
  if (along != store_direction::single) {
    const four_results four =
        results_along(b, along, p.extents.rows, p.extents.columns,
                      [&](const index_expr& m, const index_expr& n) { return p.result_at(z, m, n); });
    b.define_store4("dnnopt_store4", result, four, names_of_store4(along),
                    [&](std::size_t j) { return p.finish(four.at[j]); });
    return p.extents;
  }
  const index_expr row = b.index("m", p.extents.rows);
  const std::vector<index_expr> at = p.result_at(z, row, b.index("n", p.extents.columns));
  b.define_store("dnnopt_store", result, at, std::vector<std::string>{"z", "m", "n"}, compute_type::real,
                 [&] { return p.finish(at); });
  return p.extents;
}

}  // namespace detail

/// The kernels of choose_steps: the product's, and that which adds the sums of splits; or those of a version in tiles.
[[nodiscard]] inline lowered_node emit_steps(const lowering_site& site, const choice& chosen) {
  if (chosen.version == std::string_view("matrix_tiles")) return emit_product_tiles(site, chosen);
  if (chosen.version == std::string_view("convolution_tiles")) return emit_convolution_tiles(site, chosen);
  const bool from_tiles = chosen["from_tiles"] != 0;
  const step_providers& known = site.options.steps;
  const matrix_step& step = chosen["element_bytes"] == 4   ? *known.of_floats
                            : chosen["element_bytes"] == 1 ? *known.of_bytes
                            : from_tiles                   ? *known.of_tiles
                                                           : *known.of_waves;
  const step_tile t{chosen["wave_rows"],  chosen["wave_columns"], chosen["row_steps"], chosen["column_steps"],
                    chosen["tile_inner"], chosen["stages"],       from_tiles,          step.operands};
  const std::int64_t splits = chosen["splits"];
  kernel_builder b(site.block, site.options.emitters);
  const bool joined = chosen["joined_images"] != 0;
  step_product p = step_product_of(b, site, joined);
  lowered_node result;
  const bool texels = chosen.form_of(0) == operand_form::texels;
  const bool lined = chosen["image_lines"] != 0;
  if (lined) {
    const image_lines lines = lines_of_image(b, site, chosen["a_shifted"] != 0 || chosen["b_shifted"] != 0).value();
    p.extents.inner = lines.inner;
    detail::define_line_addresses(result, b, site, p, lines, joined, t.inner);
  }
  const product_extents& e = p.extents;
  if (texels)
    detail::define_texel_addresses(result, b, site, p, joined, t.inner);
  else if (step.operands == dtype::float16 && detail::reads_sooner_as_texels(b, site, p, chosen["b_copy"] > 0))
    result.sooner_as_texels.push_back(site.anchor_node().inputs[0]);
  for (std::size_t which = 0; which < 2 && !texels; ++which) {
    const step_operand& operand = p.operands[which];
    if (!lined) detail::define_step_operand(result, b, site, p, which, chosen, step.operands);
    if (chosen[which == 0 ? "a_codes" : "b_codes"] == 0 && step.operands != dtype::int8) continue;
    b.define(which == 0 ? "DNNOPT_A_ZERO_CODE" : "DNNOPT_B_ZERO_CODE", std::string_view(zero_code_of(b, operand)));
    const dtype type = b.g().facts(b.g().node_at(operand.dequantizer).inputs[0]).type;
    b.define(which == 0 ? "DNNOPT_A_NATURAL" : "DNNOPT_B_NATURAL", type == dtype::uint8 ? 1 : 0);
  }
  b.define("DNNOPT_M", e.rows);
  b.define("DNNOPT_N", e.columns);
  b.define("DNNOPT_K", e.inner);
  define_sizes(b, matrix_steps_frame, chosen);
  const auto define_store = [&](kernel_builder& own) { return detail::define_step_store(own, site, chosen); };
  if (splits > 1)
    define_partial_store(result, b, e, splits);
  else
    (void)define_store(b);
  kernel_plan plan = b.finish(std::string(kernels::prelude) + std::string(step.places) + std::string(step.text),
                              matrix_steps_frame, chosen.version);
  plan.global = {ceildiv(e.columns, t.columns(step)) * t.items(step), ceildiv(e.rows, t.rows(step)), e.batch * splits};
  plan.local = {static_cast<std::size_t>(t.items(step)), 1, 1};
  plan.tuning = chosen.tuning;
  plan.step = step.name;
  if (!step.options.empty()) plan.options += (plan.options.empty() ? "" : " ") + std::string(step.options);
  plan.flops = e.batch * e.rows * e.columns * p.summed * 2;
  result.kernels.push_back(std::move(plan));
  if (splits > 1) add_partials(result, site, splits, define_store, static_cast<store_direction>(chosen["store_along"]));
  return result;
}

}  // namespace dnnopt::codegen

#endif  // DNNOPT_BACKEND_CODEGEN_FRAMES_STEPS_EMIT_HPP

// Owns the list of passes by name, and the order in which they run by default.
#ifndef DNNOPT_PASSES_PASS_TABLE_HPP
#define DNNOPT_PASSES_PASS_TABLE_HPP

#include <array>
#include <string_view>

#include <dnnopt/passes/cancel_quantization.hpp>
#include <dnnopt/passes/folding/fold_batch_normalization.hpp>
#include <dnnopt/passes/folding/fold_constants.hpp>
#include <dnnopt/passes/folding/fold_padding.hpp>
#include <dnnopt/passes/fuse.hpp>
#include <dnnopt/passes/fuse_published.hpp>
#include <dnnopt/passes/inline_branches.hpp>
#include <dnnopt/passes/look_up_codes.hpp>
#include <dnnopt/passes/merge_equal.hpp>
#include <dnnopt/passes/merge_siblings.hpp>
#include <dnnopt/passes/pass.hpp>
#include <dnnopt/passes/rdp.hpp>
#include <dnnopt/passes/recognition/recognize_attention.hpp>
#include <dnnopt/passes/recognition/recognize_integer_products.hpp>
#include <dnnopt/passes/recognition/recognize_rotary.hpp>
#include <dnnopt/passes/remove_dead.hpp>
#include <dnnopt/passes/remove_identity.hpp>
#include <dnnopt/passes/rewrite.hpp>
#include <dnnopt/passes/share_reductions.hpp>
#include <dnnopt/passes/split_transposed_convolution.hpp>
#include <dnnopt/passes/split_wide.hpp>

namespace dnnopt {

/// A pass by name.
struct pass_row {
  std::string_view name;
  pass_result (*run)(graph& g, const pass_environment& environment);
  /// A pass that must have run since nodes were edited; empty: none.
  std::string_view needs = rdp::name;
  bool only_learns = false;  ///< its edits are facts, not nodes: they give other passes nothing new to do by themselves
  bool plans = false;        ///< its edits are a fusion plan beside the graph: what is known of values stays
};

/// Stands in lists of passes for doing all before it once more, for as long as one of them edited nodes.
inline constexpr std::string_view repeat_passes = "repeat";
/// The most rounds of a repeated list. Rules lower the work, so lists end by themselves; this bounds what a user's own
/// pass may do.
inline constexpr std::size_t most_rounds = 10;

/// Every pass that `--passes` can name; passes of the user's own are called as objects.
inline constexpr std::array pass_table{
    pass_row{rdp::name, [](graph& g, const pass_environment&) { return rdp{}.run(g); }, {}, true},
    pass_row{fold_constants::name,
             [](graph& g, const pass_environment& e) {
               return fold_constants{.evaluate = e.evaluate, .keep_codes = e.code_products}.run(g);
             }},
    pass_row{inline_branches::name, [](graph& g, const pass_environment&) { return inline_branches{}.run(g); }},
    pass_row{remove_identity::name, [](graph& g, const pass_environment&) { return remove_identity{}.run(g); }, {}},
    pass_row{fold_batch_normalization::name,
             [](graph& g, const pass_environment&) { return fold_batch_normalization{}.run(g); }},
    pass_row{split_transposed_convolution::name,
             [](graph& g, const pass_environment&) { return split_transposed_convolution{}.run(g); }},
    pass_row{share_reductions::name, [](graph& g, const pass_environment&) { return share_reductions{}.run(g); }},
    pass_row{fold_padding::name, [](graph& g, const pass_environment&) { return fold_padding{}.run(g); }},
    pass_row{cancel_quantization::name, [](graph& g, const pass_environment&) { return cancel_quantization{}.run(g); }},
    pass_row{look_up_codes::name,
             [](graph& g, const pass_environment& e) {
               return look_up_codes{e.evaluate, e.code_products ? 16 : 24}.run(g);
             }},
    pass_row{merge_equal::name, [](graph& g, const pass_environment&) { return merge_equal{}.run(g); }, {}},
    pass_row{recognize::name,
             [](graph& g, const pass_environment& e) {
               return recognize{e.ops, e.rewriting}.run(g);
             }},
    pass_row{recognize_integer_products::name,
             [](graph& g, const pass_environment& e) {
               return e.integer_products ? recognize_integer_products{e.evaluate}.run(g) : pass_result{};
             }},
    pass_row{recognize_rotary::name, [](graph& g, const pass_environment&) { return recognize_rotary{}.run(g); }},
    pass_row{recognize_attention::name, [](graph& g, const pass_environment&) { return recognize_attention{}.run(g); }},
    pass_row{rewrite::name,
             [](graph& g, const pass_environment& e) {
               return rewrite{e.ops, e.rewriting}.run(g);
             }},
    // The same without rules that change overflow, infinities or NaN.
    pass_row{"recognize_exact",
             [](graph& g, const pass_environment& e) {
               return recognize{e.ops, {false}}.run(g);
             }},
    pass_row{"rewrite_exact",
             [](graph& g, const pass_environment& e) {
               return rewrite{e.ops, {false}}.run(g);
             }},
    pass_row{merge_siblings::name, [](graph& g, const pass_environment&) { return merge_siblings{}.run(g); }},
    pass_row{remove_dead::name, [](graph& g, const pass_environment&) { return remove_dead{}.run(g); }, {}},
    pass_row{split_wide::name, [](graph& g, const pass_environment&) { return split_wide{}.run(g); }},
    pass_row{fuse_blocks::name,
             [](graph& g, const pass_environment& e) {
               return fuse_blocks{{}, e.judge}.run(g);
             },
             rdp::name, false, true},
    // Rows of an ablation: what DNNFusion does alone, and index maps without storing for the reader.
    pass_row{"fuse_operators",
             [](graph& g, const pass_environment& e) {
               return fuse_blocks{{.views = false}, e.judge}.run(g);
             },
             rdp::name, false, true},
    pass_row{"fuse_views",
             [](graph& g, const pass_environment& e) {
               return fuse_blocks{{.stores = false}, e.judge}.run(g);
             },
             rdp::name, false, true},
    // The planner that DNNFusion publishes.
    pass_row{fuse_published::name, [](graph& g, const pass_environment& e) { return fuse_published{e.judge}.run(g); },
             rdp::name, false, true},
    pass_row{fuse_epilogue::name, [](graph& g, const pass_environment&) { return fuse_epilogue{}.run(g); }, rdp::name,
             false, true},
};

/// The order of the passes that `default` stands for.
inline constexpr std::array default_passes{
    // Shapes and constants; quantized weights are recognised before they become floats.
    rdp::name, recognize_integer_products::name, rdp::name, fold_constants::name, inline_branches::name, rdp::name,
    fold_constants::name, rdp::name,
    // One form for what exporters write, whole operators for what they take apart.
    remove_identity::name, fold_batch_normalization::name, split_transposed_convolution::name, share_reductions::name,
    fold_padding::name, cancel_quantization::name, look_up_codes::name, merge_equal::name, recognize::name,
    fold_constants::name, rdp::name, recognize_rotary::name, recognize_attention::name, remove_dead::name, rdp::name,
    // Fewer operations, then fewer products.
    rewrite::name, fold_constants::name, remove_identity::name, merge_siblings::name, merge_equal::name,
    remove_dead::name, rdp::name,
    // What one pass made another one may lower further: a bias that became constant, a Pad behind an operator that is
    // gone.
    repeat_passes,
    // What one kernel takes.
    split_wide::name, rdp::name,
    // Which of what is left runs as one kernel.
    fuse_blocks::name};

}  // namespace dnnopt

#endif  // DNNOPT_PASSES_PASS_TABLE_HPP

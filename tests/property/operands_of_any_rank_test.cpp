// Every operator is given operands of ranks, extents and types, and attributes, that nobody meant for it. Each ends in
// a result or in a dnnopt::error: shape propagation, passes, lowering in both forms of kernels, and evaluation.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <random>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <catch2/catch.hpp>

#include <dnnopt/backend/codegen/lower.hpp>
#include <dnnopt/backend/program/make_program.hpp>
#include <dnnopt/ops/standard.hpp>
#include <dnnopt/passes/pipeline.hpp>
#include <dnnopt/passes/rdp.hpp>
#include <dnnopt/passes/verify.hpp>
#include <dnnopt/reference/evaluate_node.hpp>
#include <dnnopt/zoo/generate_inputs.hpp>

#include "support/assumed_devices.hpp"

namespace {

using namespace dnnopt;

/// Draws one node of an operator in a graph of its own.
struct draw {
  std::mt19937_64 random;

  std::int64_t below(std::int64_t limit) {
    return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(limit));
  }
  bool one_in(std::int64_t n) { return below(n) == 0; }

  dim_list dims() {
    dim_list result(static_cast<std::size_t>(below(6)));
    for (std::int64_t& extent : result) extent = one_in(12) ? 0 : 1 + below(4);
    return result;
  }
  dtype type() {
    constexpr dtype usual[] = {dtype::float32, dtype::float32, dtype::float32, dtype::int64, dtype::int64,
                               dtype::int32,   dtype::boolean, dtype::uint8,   dtype::int8,  dtype::float16};
    return usual[below(std::ssize(usual))];
  }
  tensor content(dtype type, dim_list dims) {
    tensor t(type, std::move(dims));
    if (type == dtype::float32) {
      for (float& x : t.mutable_data<float>()) x = static_cast<float>(below(9)) - 4;
    } else if (type == dtype::int64) {
      for (std::int64_t& x : t.mutable_data<std::int64_t>()) x = below(7) - 2;
    }
    return t;
  }
  value_id operand(graph& g) {
    const std::string name = "x" + std::to_string(g.value_count());
    const dtype of = type();
    const dim_list extents = dims();
    // Shapes, axes, sizes and scales are constants as a rule.
    if (one_in(3)) return g.add_constant(name, content(of, extents));
    shape s;
    for (const std::int64_t extent : extents)
      s.push_back(one_in(6) ? g.expressions().symbol("s" + std::to_string(below(3))) : index_expr(extent));
    return g.add_input(name, of, std::move(s));
  }
  /// A value of any of the types that files hold.
  attribute any_attribute() {
    switch (below(7)) {
      case 0:
        return below(5) - 2;
      case 1:
        return static_cast<float>(below(9)) / 4;
      case 2:
        return std::string(one_in(2) ? "none" : "");
      case 3:
        return std::vector<std::int64_t>(static_cast<std::size_t>(below(4)), below(3));
      case 4:
        return std::vector<float>(static_cast<std::size_t>(below(4)), 0.5F);
      case 5:
        return std::vector<std::string>(static_cast<std::size_t>(below(3)), "none");
      default:
        return content(type(), dims());
    }
  }
  /// Attributes of names that operators read, of types that nobody meant for them.
  void set_any(attribute_map& a) {
    std::istringstream names(
        "activation_alpha activation_beta activations align_corners allowzero alpha antialias approximate "
        "auto_pad axes axis batch_axis batch_dims beta bias block_size blocksize ceil_mode center_point_box "
        "classes_strings clip coordinate_transformation_mode count_include_pad cubic_coeff_a default_float "
        "default_tensor detect_negative direction dtype end epsilon equation exclude_outside exclusive "
        "extrapolation_value fmod gamma group high ignore_index interleaved inverse is_causal k keepdims "
        "kernel_shape kernel_type keys_int64s keys_strings kv_num_heads largest low max_gram_length mean "
        "min_gram_length mode momentum nearest_mode new_axis ngram_counts nodes_modes nodes_splits "
        "noop_with_empty_axes num_groups num_heads num_outputs offset_group onesided output_dtype output_padding "
        "output_shape p padding_mode pads perm periodic pixel_format pooled_shape post_transform q_num_heads "
        "qk_matmul_output_mode reduction reverse rotary_embedding_dim round_mode sample_size sampling_ratio "
        "saturate scale seed shape share size softcap sorted spatial_scale start stash_type storage_order "
        "strides to transA transB training_mode update_rule upper value values_floats values_int64s "
        "values_strings values_tensor weights ");
    for (std::string name; names >> name;)
      if (one_in(16)) a.set(name, any_attribute());
  }
  attribute_map attributes() {
    attribute_map a;
    const auto numbers = [&](std::int64_t most) {
      std::vector<std::int64_t> result(static_cast<std::size_t>(below(5)));
      for (std::int64_t& one : result) one = below(most);
      return result;
    };
    if (one_in(2)) a.set("axis", below(7) - 3);
    for (const char* name : {"kernel_shape", "pooled_shape", "output_shape"})
      if (one_in(2)) a.set(name, numbers(4));
    for (const char* name : {"strides", "dilations", "pads", "output_padding", "perm", "axes"})
      if (one_in(5)) a.set(name, numbers(3));
    for (const char* name : {"group", "num_heads", "q_num_heads", "kv_num_heads", "hidden_size", "blocksize",
                             "block_size", "num_outputs", "keepdims", "batch_dims", "to", "dtype"})
      if (one_in(3)) a.set(name, below(4));
    for (const char* name : {"mode", "reduction", "auto_pad", "coordinate_transformation_mode", "direction"})
      if (one_in(4)) {
        constexpr const char* texts[] = {
            "linear",       "cubic", "reflect", "edge",       "wrap",  "add",           "mul",
            "max",          "none",  "mean",    "SAME_UPPER", "VALID", "align_corners", "tf_crop_and_resize",
            "bidirectional"};
        a.set(name, std::string(texts[below(std::ssize(texts))]));
      }
    if (one_in(3)) a.set("equation", std::string(one_in(2) ? "ij,jk->ik" : "...i,ij"));
    if (one_in(4)) set_any(a);
    return a;
  }
};

/// Runs `step`; false where it ends in an error of ours, which names something.
template <class Step>
bool runs(const Step& step) {
  try {
    step();
    return true;
  } catch (const error& e) {
    CHECK(e.code() != errc::verification_failed);
    return false;
  }
}

/// Takes a graph through all steps; true where the reference backend answers.
bool answers(const graph& g) {
  graph plain = g;
  if (!runs([&] { rdp{}.run(plain); })) return false;
  const symbol_values twos = plain.expressions().all_bound_to(2);
  for (value_id v = 0; v < plain.value_count(); ++v) {
    if (!plain.facts(v).dims) continue;
    const auto count = element_count(*plain.facts(v).dims).try_evaluate(twos);
    if (!count || *count < 0 || *count > 100000) return false;
  }
  graph optimized = g;
  pass_environment environment;
  environment.evaluate = &reference::evaluate_node;
  if (!runs([&] {
        (void)run_passes(optimized, pass_names("default"), environment,
                         [](const graph& now, const pass_report& pass) { verify(now, pass.name); });
      }))
    return false;
  optimized.compact();
  const auto shared = std::make_shared<const graph>(std::move(optimized));
  for (const device_info& device : testing::assumed_devices())
    (void)runs([&] { (void)make_program(shared, codegen::default_lower_options(&device), false); });
  return runs([&] {
    const std::vector<tensor> inputs = generate_inputs(g, 0, twos);
    (void)reference::evaluate(g, inputs);
  });
}

/// FNV-1a of a name: the same in every standard library, so that a printed seed draws the same node.
std::uint64_t number_of(std::string_view name) {
  std::uint64_t hash = 0xcbf29ce484222325U;
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  return hash;
}

std::uint64_t number_from(const char* name, std::uint64_t otherwise) {
  const char* const text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

}  // namespace

TEST_CASE("every operator answers or refuses operands of any rank, extent and type", "[property]") {
  const op_set ops = standard_ops();
  const std::uint64_t each = number_from("DNNOPT_RANK_DRAWS", 40);
  const std::uint64_t first = number_from("DNNOPT_FIRST_SEED", 1);
  const char* const only = std::getenv("DNNOPT_RANK_OPERATOR");
  std::uint64_t answered = 0;
  std::uint64_t drawn = 0;
  for (const op_info* op : ops.rows()) {
    if (op->flow != flow_form::none || (only != nullptr && op->name != only)) continue;
    for (std::uint64_t seed = first; seed < first + each; ++seed) {
      CAPTURE(op->name, seed);
      ++drawn;
      draw d{std::mt19937_64(seed * 1000003 + number_of(op->name))};
      graph g;
      const auto least = static_cast<std::int64_t>(op->arity.least_inputs);
      const auto most = std::min<std::int64_t>(static_cast<std::int64_t>(op->arity.most_inputs), least + 4);
      const std::int64_t count = least + (most > least ? d.below(most - least + 1) : 0);
      std::vector<value_id> inputs;
      for (std::int64_t i = 0; i < count; ++i) inputs.push_back(i >= least && d.one_in(8) ? no_value : d.operand(g));
      std::vector<value_id> outputs;
      const std::int64_t results =
          std::clamp<std::int64_t>(1 + d.below(2), op->arity.least_outputs, op->arity.most_outputs);
      for (std::int64_t i = 0; i < results; ++i) outputs.push_back(g.add_value("y" + std::to_string(i)));
      CHECK_NOTHROW((void)runs([&] {
        g.add_node(*op, "node", inputs, outputs, d.attributes());
        for (const value_id out : outputs) g.add_output(out);
        answered += answers(g) ? 1 : 0;
      }));
    }
  }
  // Draws that nothing answers would show nothing of kernels and evaluation.
  CAPTURE(drawn, answered);
  if (only == nullptr) CHECK(answered * 50 > drawn);
}

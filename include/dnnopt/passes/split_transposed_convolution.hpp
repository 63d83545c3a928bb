// Owns the replacement of transposed convolutions by convolutions whose channels are the positions between inputs.
#ifndef DNNOPT_PASSES_SPLIT_TRANSPOSED_CONVOLUTION_HPP
#define DNNOPT_PASSES_SPLIT_TRANSPOSED_CONVOLUTION_HPP

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dnnopt/graph.hpp>
#include <dnnopt/ops/convolution.hpp>
#include <dnnopt/ops/permute.hpp>
#include <dnnopt/ops/reshape.hpp>
#include <dnnopt/ops/slice.hpp>
#include <dnnopt/passes/pass.hpp>
#include <dnnopt/passes/rewriting/edit.hpp>

namespace dnnopt {

/// Before: y = ConvTranspose(x, W, b) with strides s, W constant float32.
/// After:  y = DepthToSpace(Conv(x, W', b')), then a Slice where the extent of y is no multiple of s. Output s q + r is
/// the sum over t of x[q + d] W[t] with d = (r + pad - t) / s wherever that is whole: a convolution over q for each r.
/// W' holds these side by side as channels, with zeros where a phase r has no t for an offset d.
/// Conditions: dilations 1, no auto_pad, no output_shape; strides that are alike, over one or two spatial dims, or 1;
/// along each dim at most twice the kernel's elements, zeros included; paddings that Conv can have.
/// Source: Shi et al. 2016, "Is the deconvolution layer the same as a convolutional layer?" (arXiv 1609.07009).
struct split_transposed_convolution {
  static constexpr std::string_view name = "split_transposed_convolution";

  pass_result run(graph& g) const {
    pass_result result;
    for (const node_id id : g.topological_order())
      if (g.node_at(id).op == &op_row<ops::conv_transpose_op> && split(g, id)) ++result.edits;
    return result;
  }

 private:
  /// One spatial dim of the convolution.
  struct axis {
    std::int64_t kernel = 0;   ///< of the transposed convolution
    std::int64_t pad = 0;      ///< its padding in front
    std::int64_t first = 0;    ///< the least offset d
    std::int64_t extent = 0;   ///< offsets of the convolution
    std::int64_t pad_end = 0;  ///< its padding behind; in front it is -first
    std::int64_t excess = 0;   ///< elements too many at the end, once phases are side by side
  };

  /// The dim by its numbers, or nothing where a convolution would take too many products or padding that is negative.
  static std::optional<axis> axis_of(std::int64_t kernel, std::int64_t stride, std::int64_t pad, std::int64_t pad_end,
                                     std::int64_t output_padding) {
    axis a;
    a.kernel = kernel;
    a.pad = pad;
    std::int64_t last = 0;
    for (std::int64_t r = 0; r < stride; ++r)
      for (std::int64_t t = 0; t < kernel; ++t) {
        if ((r + pad - t) % stride != 0) continue;
        a.first = std::min(a.first, (r + pad - t) / stride);
        last = std::max(last, (r + pad - t) / stride);
      }
    a.extent = last - a.first + 1;
    // y has stride * (input - 1) + rest elements, and as many phases are computed as hold these.
    const std::int64_t rest = kernel - pad - pad_end + output_padding;
    const std::int64_t more = rest - stride;  // beyond stride * input
    const std::int64_t positions = more >= 0 ? (more + stride - 1) / stride : -(-more / stride);
    a.pad_end = positions + a.extent - 1 + a.first;
    a.excess = stride * positions - more;
    const bool few = a.extent * stride <= 2 * kernel;
    return few && a.pad_end >= 0 && rest > 0 ? std::optional(a) : std::nullopt;
  }

  static std::vector<std::int64_t> ints_of(const attribute_map& attributes, const char* key, std::size_t count,
                                           std::int64_t otherwise) {
    std::vector<std::int64_t> held = attributes.get_ints(key);
    if (held.empty()) held.assign(count, otherwise);
    return held;
  }

  static bool split(graph& g, node_id id) {
    const node& n = g.node_at(id);
    const auto& dims = g.facts(n.inputs[0]).dims;
    const value_facts& held = g.facts(n.inputs[1]);
    if (!dims || !held.is_constant() || held.type != dtype::float32 || dims->size() != held.constant.rank())
      return false;
    const std::size_t spatial = dims->size() - 2;
    const attribute_map& attributes = n.attributes;
    if (attributes.get_string("auto_pad", "NOTSET") != "NOTSET" || !attributes.get_ints("output_shape").empty())
      return false;
    const std::vector<std::int64_t> strides = ints_of(attributes, "strides", spatial, 1);
    const std::vector<std::int64_t> dilations = ints_of(attributes, "dilations", spatial, 1);
    const std::vector<std::int64_t> pads = ints_of(attributes, "pads", 2 * spatial, 0);
    const std::vector<std::int64_t> outer = ints_of(attributes, "output_padding", spatial, 0);
    if (strides.size() != spatial || pads.size() != 2 * spatial || outer.size() != spatial) return false;
    const std::int64_t stride = strides.front();
    const auto is = [](std::int64_t number) { return [number](std::int64_t one) { return one == number; }; };
    if (!std::all_of(strides.begin(), strides.end(), is(stride)) ||
        !std::all_of(dilations.begin(), dilations.end(), is(1)) || (stride != 1 && spatial > 2))
      return false;
    const tensor& w = held.constant;
    std::vector<axis> axes;
    for (std::size_t k = 0; k < spatial; ++k) {
      const auto a = axis_of(w.dims()[k + 2], stride, pads[k], pads[k + spatial], outer[k]);
      if (!a) return false;
      axes.push_back(*a);
    }
    const std::int64_t group = attributes.get_int("group", 1);
    const std::int64_t phases = spatial == 2 ? stride * stride : stride;
    if (group < 1 || w.dims()[0] % group != 0) return false;
    std::optional<tensor> bias;
    if (n.inputs.size() > 2 && n.inputs[2] != no_value) {
      const value_facts& given = g.facts(n.inputs[2]);
      if (phases > 1 && (!given.is_constant() || given.type != dtype::float32)) return false;
      if (phases > 1) bias = repeated(given.constant, phases);
    }
    replace(g, id, stride, phases, group, axes, phases_of(w, stride, phases, group, axes), bias);
    return true;
  }

  /// The weights of all phases: [phases * out, in / group, offsets...], phases innermost.
  static tensor phases_of(const tensor& w, std::int64_t stride, std::int64_t phases, std::int64_t group,
                          const std::vector<axis>& axes) {
    const std::int64_t inputs = w.dims()[0] / group;
    const std::int64_t outputs = w.dims()[1];
    dim_list dims{group * outputs * phases, inputs};
    std::int64_t kernel = 1, window = 1;
    for (const axis& a : axes) {
      dims.push_back(a.extent);
      kernel *= a.kernel;
      window *= a.extent;
    }
    tensor result(dtype::float32, dims);
    const auto from = w.data<float>();
    const auto to = result.mutable_data<float>();
    // The weight that a phase has at an offset of the window; none where the tap lies outside.
    const auto tap_of = [&](std::int64_t phase, std::int64_t offset) -> std::optional<std::int64_t> {
      std::int64_t tap = 0, scale = 1;
      for (std::size_t k = axes.size(); k-- > 0;) {
        const axis& a = axes[k];
        const std::int64_t t = phase % stride + a.pad - stride * (a.first + offset % a.extent);
        if (t < 0 || t >= a.kernel) return std::nullopt;
        tap += t * scale;
        scale *= a.kernel;
        phase /= stride;
        offset /= a.extent;
      }
      return tap;
    };
    for (std::int64_t phase = 0; phase < phases; ++phase)
      for (std::int64_t offset = 0; offset < window; ++offset) {
        const auto tap = tap_of(phase, offset);
        for (std::int64_t out = 0; out < group * outputs; ++out)
          for (std::int64_t in = 0; in < inputs; ++in) {
            const std::int64_t row = out / outputs * inputs + in;
            to[static_cast<std::size_t>(((out * phases + phase) * inputs + in) * window + offset)] =
                tap ? from[static_cast<std::size_t>((row * outputs + out % outputs) * kernel + *tap)] : 0.0F;
          }
      }
    return result;
  }

  /// Each element `times` times.
  static tensor repeated(const tensor& bias, std::int64_t times) {
    tensor result(dtype::float32, {bias.size() * times});
    const auto from = bias.data<float>();
    const auto to = result.mutable_data<float>();
    for (std::size_t i = 0; i < to.size(); ++i) to[i] = from[i / static_cast<std::size_t>(times)];
    return result;
  }

  static void replace(graph& g, node_id id, std::int64_t stride, std::int64_t phases, std::int64_t group,
                      const std::vector<axis>& axes, tensor weights, std::optional<tensor> bias) {
    const node was = g.node_at(id);
    const value_id out = was.outputs[0];
    const value_facts facts = g.facts(out);
    const std::int64_t channels = weights.dims()[0] / phases;
    std::vector<value_id> inputs{
        was.inputs[0], g.add_constant(rewriting::fresh_value_name(g, was.name + ".weights"), std::move(weights))};
    if (bias)
      inputs.push_back(g.add_constant(rewriting::fresh_value_name(g, was.name + ".bias"), std::move(*bias)));
    else if (was.inputs.size() > 2 && was.inputs[2] != no_value)
      inputs.push_back(was.inputs[2]);
    attribute_map attributes;
    std::vector<std::int64_t> pads, extents, ends, along;
    for (const axis& a : axes) pads.push_back(-a.first), extents.push_back(a.extent);
    for (const axis& a : axes) pads.push_back(a.pad_end);
    attributes.set("kernel_shape", extents);
    attributes.set("pads", pads);
    attributes.set("group", group);
    for (std::size_t k = 0; k < axes.size(); ++k)
      if (axes[k].excess > 0) {
        along.push_back(static_cast<std::int64_t>(k) + 2);
        ends.push_back(-axes[k].excess);
      }
    g.remove_node(id);
    struct step {
      const op_info* op;
      std::vector<value_id> others;
      attribute_map attributes;
    };
    std::vector<step> steps{{&op_row<ops::conv_op>, {inputs.begin() + 1, inputs.end()}, std::move(attributes)}};
    if (phases > 1 && axes.size() == 2) {
      attribute_map block;
      block.set("blocksize", stride);
      block.set("mode", std::string("CRD"));
      steps.push_back({&op_row<ops::depth_to_space_op>, {}, std::move(block)});
    } else if (phases > 1) {
      // DepthToSpace knows two spatial dims alone.
      attribute_map order;
      order.set("perm", std::vector<std::int64_t>{0, 1, 3, 2});
      steps.push_back(
          {&op_row<ops::reshape_op>, {rewriting::add_integers(g, was.name, {0, channels, stride, -1})}, {}});
      steps.push_back({&op_row<ops::transpose_op>, {}, std::move(order)});
      steps.push_back({&op_row<ops::reshape_op>, {rewriting::add_integers(g, was.name, {0, channels, -1})}, {}});
    }
    if (!ends.empty())
      steps.push_back({&op_row<ops::slice_op>,
                       {rewriting::add_integers(g, was.name, std::vector<std::int64_t>(ends.size(), 0)),
                        rewriting::add_integers(g, was.name, ends), rewriting::add_integers(g, was.name, along)},
                       {}});
    value_id at = was.inputs[0];
    for (std::size_t i = 0; i < steps.size(); ++i) {
      std::vector<value_id> in{at};
      in.insert(in.end(), steps[i].others.begin(), steps[i].others.end());
      if (i + 1 < steps.size()) {
        at = rewriting::append(g, *steps[i].op, was.name, std::move(in), std::move(steps[i].attributes));
        continue;
      }
      g.add_node(*steps[i].op, was.name, std::move(in), {out}, std::move(steps[i].attributes));
      g.facts(out) = facts;
    }
  }
};

static_assert(Pass<split_transposed_convolution>);

}  // namespace dnnopt

#endif  // DNNOPT_PASSES_SPLIT_TRANSPOSED_CONVOLUTION_HPP

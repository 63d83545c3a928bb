// Owns the expansions of convolutions and pools with channels last, sums and activations.
#ifndef DNNOPT_ONNX_CONTRIB_CONVOLUTION_HPP
#define DNNOPT_ONNX_CONTRIB_CONVOLUTION_HPP

#include <array>
#include <utility>

#include <dnnopt/onnx/contrib/activation.hpp>
#include <dnnopt/onnx/contrib/expansion.hpp>

namespace dnnopt::onnx::contrib {

/// The attributes of Conv among those of the node.
[[nodiscard]] inline attribute_map convolution_attributes(const expansion& x) {
  attribute_map a = x.attributes();
  for (const char* own : {"activation", "activation_params", "channels_last"}) a.erase(own);
  return a;
}

/// Conv, the sum with input 3 where given, and the activation; with channels behind the other dims where `last`.
inline void add_fused_convolution(expansion& x, bool last) {
  value_id v = last ? x.channels_first(x.in(0), "X") : x.in(0);
  v = x.add("Conv", {v, x.in(1), x.in(2)}, convolution_attributes(x));
  if (last) v = x.channels_last(v, "Y", no_value);
  if (x.has(3)) v = x.add("Add", {v, x.in(3)});
  add_named_activation(x, x.attributes().get_string("activation", ""), x.attributes().get_floats("activation_params"),
                       v, x.out(0));
}
inline void expand_fused_conv(expansion& x) { add_fused_convolution(x, false); }
inline void expand_nhwc_conv(expansion& x) { add_fused_convolution(x, true); }
inline void expand_nhwc_max_pool(expansion& x) {
  x.channels_last(x.add("MaxPool", {x.channels_first(x.in(0), "x")}, x.attributes()), "y", x.out(0));
}
inline void expand_quantized_conv(expansion& x) {
  const bool last = x.attributes().get_int("channels_last", 0) != 0;
  const value_id data = last ? x.channels_first(x.in(0), "x") : x.in(0);
  const value_id result =
      x.add("QLinearConv", {data, x.in(1), x.in(2), x.in(3), x.in(4), x.in(5), x.in(6), x.in(7), x.in(8)},
            convolution_attributes(x), last ? no_value : x.out(0));
  if (last) x.channels_last(result, "y", x.out(0));
}

inline constexpr std::array convolution_rows{
    contrib_row{"com.microsoft", "FusedConv", {2, 4}, expand_fused_conv},
    contrib_row{"com.microsoft", "NhwcConv", {2, 3}, expand_nhwc_conv},
    contrib_row{"com.microsoft", "NhwcFusedConv", {2, 4}, expand_nhwc_conv},
    contrib_row{"com.microsoft", "NhwcMaxPool", {1, 1}, expand_nhwc_max_pool},
    contrib_row{"com.microsoft", "QLinearConv", {8, 9}, expand_quantized_conv},
};

}  // namespace dnnopt::onnx::contrib

#endif  // DNNOPT_ONNX_CONTRIB_CONVOLUTION_HPP

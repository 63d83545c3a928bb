// Owns the list of com.microsoft's operators that are known and refused, with the reason that the user reads.
#ifndef DNNOPT_ONNX_CONTRIB_REFUSAL_HPP
#define DNNOPT_ONNX_CONTRIB_REFUSAL_HPP

#include <string_view>

namespace dnnopt::onnx::contrib {

/// An operator without an expansion, and why it has none.
struct refusal_row {
  std::string_view op_type;
  std::string_view reason;
};

inline constexpr std::string_view decoding_loop =
    "it runs whole models in a loop over tokens; export the model without it and choose tokens outside";
inline constexpr std::string_view packed_batches =
    "it takes a batch whose padding was removed, by offsets of its tokens";
inline constexpr std::string_view other_codes = "its weights are in a code of its own, not in integers with a scale";
inline constexpr std::string_view routed_experts =
    "which experts a token goes to is data, and computing all of them for all tokens is no replacement";

inline constexpr refusal_row refusals[] = {
    {"BeamSearch", decoding_loop},
    {"DecoderAttention", "its cache is chosen by inputs at run time"},
    {"DecoderMaskedSelfAttention", "its keys lie in an order that only one execution provider writes"},
    {"GreedySearch", decoding_loop},
    {"Inverse", "no standard operator inverts matrices"},
    {"Irfft", "ONNX Runtime's CPU provider has no kernel that says how it is scaled"},
    {"LongformerAttention", "its attention is sparse, by a mask of global tokens"},
    {"MatMulFpQ4", other_codes},
    {"MoE", routed_experts},
    {"NGramRepeatBlock", "it belongs to the choice of tokens, outside of models"},
    {"PackedAttention", packed_batches},
    {"PackedMultiHeadAttention", packed_batches},
    {"PagedAttention", packed_batches},
    {"QMoE", routed_experts},
    {"Sampling", decoding_loop},
    {"SparseAttention", "its attention is sparse, by a layout of blocks"},
    {"WhisperBeamSearch", decoding_loop},
};

}  // namespace dnnopt::onnx::contrib

#endif  // DNNOPT_ONNX_CONTRIB_REFUSAL_HPP

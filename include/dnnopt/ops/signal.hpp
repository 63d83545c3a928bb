// Owns the signal operators: DFT, STFT, MelWeightMatrix and the window functions.
#ifndef DNNOPT_OPS_SIGNAL_HPP
#define DNNOPT_OPS_SIGNAL_HPP

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dnnopt/ops/generator.hpp>

namespace dnnopt::ops {

/// The single element of an integer input, or nothing.
[[nodiscard]] inline std::optional<index_expr> scalar_of(const node_facts& facts, std::size_t i) {
  const auto known = facts.elements(i);
  return known && known->size() == 1 ? std::optional(known->front()) : std::nullopt;
}

/// DFT: discrete Fourier transform along an axis; the last axis holds real and imaginary part (or the real part alone).
struct dft_op {
  static constexpr std::string_view name = "DFT";
  static constexpr input_set structural_inputs{1, 2};
  static constexpr int since = 20;
  static constexpr op_arity arity{1, 3};
  static constexpr mapping_type mapping = mapping_type::many_to_many;
  static constexpr layout_class layout = layout_class::ild_variable;
  static constexpr dynamism_class dynamism = dynamism_class::isvdos;
  static constexpr computation_kind kind = computation_kind::other;

  static dynamism_class dynamism_of(const node_facts& facts) { return determined_by(facts, {1, 2}); }

  static void infer(const node_facts& facts, std::span<value_facts> outputs) {
    set_type(outputs, 0, facts.type(0));
    const shape* dims = facts.dims(0);
    if (dims == nullptr) return;
    if (dims->size() < 2) throw error(errc::shape_mismatch, "DFT: the input " + to_string(*dims) + " has rank below 2");
    std::int64_t position = -2;
    if (facts.has(2)) {
      const auto given = facts.integers(2);
      if (!given || given->size() != 1) {
        set_dims(outputs, 0, data_dims(facts, 0, dims->size()));
        return;
      }
      position = given->front();
    }
    const std::size_t axis = axis_of(position, dims->size(), name);
    if (axis + 1 == dims->size()) throw error(errc::bad_attribute, "DFT: the axis is that of real and imaginary part");
    const bool one_sided = facts.attributes->get_int("onesided", 0) != 0;
    const bool inverse = facts.attributes->get_int("inverse", 0) != 0;
    index_expr length = one_sided && inverse ? ((*dims)[axis] - 1) * 2 : (*dims)[axis];
    if (facts.has(1)) length = scalar_of(facts, 1).value_or(facts.data_dim(0, axis));
    shape result = *dims;
    result[axis] = one_sided && !inverse ? floordiv(length, 2) + 1 : length;
    result.back() = one_sided && inverse ? 1 : 2;
    set_dims(outputs, 0, std::move(result));
  }
};

/// STFT: Fourier transforms of windowed frames of a signal.
struct stft_op {
  static constexpr std::string_view name = "STFT";
  static constexpr input_set structural_inputs{1, 3};
  static constexpr int since = 17;
  static constexpr op_arity arity{2, 4};
  static constexpr mapping_type mapping = mapping_type::many_to_many;
  static constexpr layout_class layout = layout_class::ild_variable;
  static constexpr dynamism_class dynamism = dynamism_class::isvdos;
  static constexpr computation_kind kind = computation_kind::other;

  static dynamism_class dynamism_of(const node_facts& facts) { return determined_by(facts, {1, 3}); }

  static void infer(const node_facts& facts, std::span<value_facts> outputs) {
    set_type(outputs, 0, facts.type(0));
    const shape* dims = facts.dims(0);
    if (dims == nullptr) return;
    if (dims->size() != 2 && dims->size() != 3)
      throw error(errc::shape_mismatch, "STFT: the signal " + to_string(*dims) + " does not have rank 2 or 3");
    if (dims->size() == 3 && (dims->back() == index_expr(0) || dims->back().range().low > 2))
      throw error(errc::shape_mismatch, "STFT: the signal " + to_string(*dims) + " has neither one part nor two");
    std::optional<index_expr> frame = facts.has(3) ? scalar_of(facts, 3) : std::nullopt;
    if (!facts.has(3) && facts.dims(2) != nullptr && facts.dims(2)->size() == 1) frame = facts.dims(2)->front();
    const auto step = scalar_of(facts, 1);
    shape result{(*dims)[0], facts.data_dim(0, 1), facts.data_dim(0, 2), 2};
    const bool one_sided = facts.attributes->get_int("onesided", 1) != 0;
    if (frame) result[2] = one_sided ? floordiv(*frame, 2) + 1 : *frame;
    if (frame && step && step->range().low > 0) result[1] = floordiv((*dims)[1] - *frame, *step) + 1;
    set_dims(outputs, 0, std::move(result));
  }
};

/// HannWindow, HammingWindow, BlackmanWindow: a window of input 0's length.
struct window_traits : generator_traits {
  static constexpr input_set structural_inputs{0};
  static constexpr int since = 17;
  static constexpr op_arity arity{1, 1};
  static constexpr dynamism_class dynamism = dynamism_class::isvdos;

  static dynamism_class dynamism_of(const node_facts& facts) { return determined_by(facts, {0}); }
  static void infer(const node_facts& facts, std::span<value_facts> outputs) {
    set_type(outputs, 0, type_attribute(*facts.attributes, "output_datatype", dtype::float32));
    set_dims(outputs, 0, {scalar_of(facts, 0).value_or(facts.data_dim(0, 0))});
  }
};
struct hann_window_op : window_traits {
  static constexpr std::string_view name = "HannWindow";
};
struct hamming_window_op : window_traits {
  static constexpr std::string_view name = "HammingWindow";
};
struct blackman_window_op : window_traits {
  static constexpr std::string_view name = "BlackmanWindow";
};

/// MelWeightMatrix: [dft_length / 2 + 1, num_mel_bins] triangular filters.
struct mel_weight_matrix_op : generator_traits {
  static constexpr std::string_view name = "MelWeightMatrix";
  static constexpr input_set structural_inputs{0, 1};
  static constexpr int since = 17;
  static constexpr op_arity arity{5, 5};
  static constexpr dynamism_class dynamism = dynamism_class::isvdos;

  static dynamism_class dynamism_of(const node_facts& facts) { return determined_by(facts, {0, 1}); }
  static void infer(const node_facts& facts, std::span<value_facts> outputs) {
    set_type(outputs, 0, type_attribute(*facts.attributes, "output_datatype", dtype::float32));
    const auto length = scalar_of(facts, 1);
    const index_expr bins = length ? floordiv(*length, 2) + 1 : facts.data_dim(0, 0);
    set_dims(outputs, 0, {bins, scalar_of(facts, 0).value_or(facts.data_dim(0, 1))});
  }
};

}  // namespace dnnopt::ops

#endif  // DNNOPT_OPS_SIGNAL_HPP

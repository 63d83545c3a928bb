// Owns the reference evaluation of the signal operators: DFT, STFT, MelWeightMatrix, the window functions.
#ifndef DNNOPT_REFERENCE_SIGNAL_HPP
#define DNNOPT_REFERENCE_SIGNAL_HPP

#include <algorithm>
#include <array>
#include <cmath>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <dnnopt/ops/conversion.hpp>
#include <dnnopt/reference/element_copy.hpp>
#include <dnnopt/reference/elements.hpp>
#include <dnnopt/reference/reference_row.hpp>

namespace dnnopt::reference {

namespace signal {

inline constexpr double pi = 3.14159265358979323846;

/// The Fourier transform of `count` values (those beyond the end of `values` are 0) at the first `bins` frequencies.
/// O(count * bins).
[[nodiscard]] inline std::vector<std::complex<double>> transform(std::span<const std::complex<double>> values,
                                                                 std::size_t count, std::size_t bins, bool inverse) {
  std::vector<std::complex<double>> turns(count);
  for (std::size_t k = 0; k < count; ++k)
    turns[k] = std::polar(1.0, (inverse ? 2.0 : -2.0) * pi * static_cast<double>(k) / static_cast<double>(count));
  std::vector<std::complex<double>> result(bins);
  for (std::size_t bin = 0; bin < bins; ++bin) {
    std::complex<double> total = 0.0;
    for (std::size_t k = 0; k < std::min(count, values.size()); ++k) total += values[k] * turns[bin * k % count];
    result[bin] = inverse ? total / static_cast<double>(count) : total;
  }
  return result;
}

inline void dft(const attribute_map& attributes, std::span<const tensor> inputs, std::span<tensor> outputs) {
  const tensor& x = inputs[0];
  if (x.rank() < 2) throw error(errc::shape_mismatch, "DFT of rank " + std::to_string(x.rank()));
  const bool inverse = attributes.get_int("inverse", 0) != 0;
  const bool one_sided = attributes.get_int("onesided", 0) != 0;
  const std::size_t axis = axis_at(integer_or(inputs, 2, -2), x.rank());
  const std::int64_t parts = x.dims().back();
  if (axis + 1 == x.rank() || (parts != 1 && parts != 2))
    throw error(errc::shape_mismatch, "DFT of " + to_string(x.dims()) + " along axis " + std::to_string(axis));
  if (one_sided && !inverse && parts != 1)
    throw error(errc::shape_mismatch, "DFT: a one-sided transform takes real numbers");
  const std::int64_t dim = x.dims()[axis];
  const auto length = integer_or(inputs, 1, one_sided && inverse ? 2 * (dim - 1) : dim);
  if (length < 1) throw error(errc::invalid_argument, "DFT of length " + std::to_string(length));
  const std::int64_t bins = one_sided && !inverse ? length / 2 + 1 : length;
  const std::int64_t out_parts = one_sided && inverse ? 1 : 2;
  std::int64_t outer = 1;
  std::int64_t inner = 1;
  for (std::size_t a = 0; a < axis; ++a) outer *= x.dims()[a];
  for (std::size_t a = axis + 1; a + 1 < x.rank(); ++a) inner *= x.dims()[a];
  dim_list dims = x.dims();
  dims[axis] = bins;
  dims.back() = out_parts;
  const std::vector<double> values = load_all<double>(x);
  std::vector<double> result(static_cast<std::size_t>(element_count(dims)));
  for (std::int64_t o = 0; o < outer; ++o)
    for (std::int64_t i = 0; i < inner; ++i) {
      std::vector<std::complex<double>> line;
      for (std::int64_t k = 0; k < dim; ++k) {
        const auto at = static_cast<std::size_t>(((o * dim + k) * inner + i) * parts);
        line.emplace_back(values[at], parts == 2 ? values[at + 1] : 0.0);
      }
      if (one_sided && inverse) {
        // The other half of a real signal's spectrum is the conjugate of this one.
        line.resize(static_cast<std::size_t>(length / 2 + 1));
        for (std::int64_t k = length / 2 + 1; k < length; ++k)
          line.push_back(std::conj(line[static_cast<std::size_t>(length - k)]));
      }
      const auto spectrum = transform(line, static_cast<std::size_t>(length), static_cast<std::size_t>(bins), inverse);
      for (std::int64_t k = 0; k < bins; ++k) {
        const auto at = static_cast<std::size_t>(((o * bins + k) * inner + i) * out_parts);
        result[at] = spectrum[static_cast<std::size_t>(k)].real();
        if (out_parts == 2) result[at + 1] = spectrum[static_cast<std::size_t>(k)].imag();
      }
    }
  outputs[0] = store_all<double>(x.type(), dims, result);
}

inline void stft(const attribute_map& attributes, std::span<const tensor> inputs, std::span<tensor> outputs) {
  const tensor& x = inputs[0];
  if (x.rank() != 2 && x.rank() != 3) throw error(errc::shape_mismatch, "STFT of rank " + std::to_string(x.rank()));
  const std::int64_t parts = x.rank() == 3 ? x.dims()[2] : 1;
  if (parts != 1 && parts != 2) throw error(errc::shape_mismatch, "STFT of " + to_string(x.dims()));
  const std::int64_t batch = x.dims()[0];
  const std::int64_t length = x.dims()[1];
  const bool one_sided = attributes.get_int("onesided", 1) != 0;
  const auto step = integer_or(inputs, 1, 0);
  const bool windowed = has_input(inputs, 2);
  const auto frame = integer_or(inputs, 3, windowed ? inputs[2].size() : 0);
  if (step < 1 || frame < 1 || frame > length || (windowed && inputs[2].size() != frame))
    throw error(errc::invalid_argument, "STFT: frames of " + std::to_string(frame) + " every " + std::to_string(step) +
                                            " of " + std::to_string(length));
  if (one_sided && parts == 2) throw error(errc::shape_mismatch, "STFT: a one-sided transform takes real numbers");
  const std::int64_t frames = (length - frame) / step + 1;
  const std::int64_t bins = one_sided ? frame / 2 + 1 : frame;
  const std::vector<double> values = load_all<double>(x);
  const std::vector<double> window =
      windowed ? load_all<double>(inputs[2]) : std::vector<double>(static_cast<std::size_t>(frame), 1.0);
  std::vector<double> result;
  for (std::int64_t b = 0; b < batch; ++b)
    for (std::int64_t f = 0; f < frames; ++f) {
      std::vector<std::complex<double>> line;
      for (std::int64_t k = 0; k < frame; ++k) {
        const auto at = static_cast<std::size_t>((b * length + f * step + k) * parts);
        line.push_back(window[static_cast<std::size_t>(k)] *
                       std::complex<double>(values[at], parts == 2 ? values[at + 1] : 0.0));
      }
      for (const std::complex<double>& bin : transform(line, line.size(), static_cast<std::size_t>(bins), false)) {
        result.push_back(bin.real());
        result.push_back(bin.imag());
      }
    }
  outputs[0] = store_all<double>(x.type(), {batch, frames, bins, 2}, result);
}

/// a0 - a1 cos(t) + a2 cos(2t) over one period.
inline void window(const attribute_map& attributes, std::span<const tensor> inputs, std::span<tensor> outputs,
                   double a0, double a1, double a2) {
  const auto size = integer_or(inputs, 0, 0);
  if (size < 0) throw error(errc::invalid_argument, "a window of " + std::to_string(size));
  const bool periodic = attributes.get_int("periodic", 1) != 0;
  const auto period = static_cast<double>(std::max<std::int64_t>(1, periodic ? size : size - 1));
  std::vector<double> values;
  for (std::int64_t k = 0; k < size; ++k) {
    const double turn = 2.0 * pi * static_cast<double>(k) / period;
    values.push_back(a0 - a1 * std::cos(turn) + a2 * std::cos(2.0 * turn));
  }
  outputs[0] = store_all<double>(ops::type_attribute(attributes, "output_datatype", dtype::float32), {size}, values);
}
inline void hann_window(const attribute_map& attributes, std::span<const tensor> inputs, std::span<tensor> outputs) {
  window(attributes, inputs, outputs, 0.5, 0.5, 0.0);
}
inline void hamming_window(const attribute_map& attributes, std::span<const tensor> inputs, std::span<tensor> outputs) {
  window(attributes, inputs, outputs, 25.0 / 46.0, 21.0 / 46.0, 0.0);
}
inline void blackman_window(const attribute_map& attributes, std::span<const tensor> inputs,
                            std::span<tensor> outputs) {
  window(attributes, inputs, outputs, 0.42, 0.5, 0.08);
}

inline void mel_weight_matrix(const attribute_map& attributes, std::span<const tensor> inputs,
                              std::span<tensor> outputs) {
  const auto filters = integer_or(inputs, 0, 0);
  const auto length = integer_or(inputs, 1, 0);
  const double rate = scalar_or(inputs, 2, 0);
  if (filters < 1 || length < 1 || rate <= 0.0)
    throw error(errc::invalid_argument,
                "MelWeightMatrix of " + std::to_string(filters) + " filters of length " + std::to_string(length));
  const auto mel = [](double hertz) { return 2595.0 * std::log10(1.0 + hertz / 700.0); };
  const double low = mel(scalar_or(inputs, 3, 0));
  const double step = (mel(scalar_or(inputs, 4, 0)) - low) / static_cast<double>(filters + 2);
  const std::int64_t bins = length / 2 + 1;
  std::vector<std::int64_t> edges;
  for (std::int64_t k = 0; k < filters + 2; ++k) {
    const double hertz = 700.0 * (std::pow(10.0, (static_cast<double>(k) * step + low) / 2595.0) - 1.0);
    edges.push_back(std::clamp<std::int64_t>(integer_below(static_cast<double>(length + 1) * hertz / rate), 0, bins));
  }
  std::vector<double> values(static_cast<std::size_t>(bins * filters), 0.0);
  const auto set = [&](std::int64_t bin, std::int64_t filter, double weight) {
    if (bin < bins) values[static_cast<std::size_t>(bin * filters + filter)] = weight;
  };
  for (std::int64_t filter = 0; filter < filters; ++filter) {
    const std::int64_t lower = edges[static_cast<std::size_t>(filter)];
    const std::int64_t center = edges[static_cast<std::size_t>(filter + 1)];
    const std::int64_t upper = edges[static_cast<std::size_t>(filter + 2)];
    if (center == lower) set(center, filter, 1.0);
    for (std::int64_t bin = lower; center > lower && bin <= center; ++bin)
      set(bin, filter, static_cast<double>(bin - lower) / static_cast<double>(center - lower));
    for (std::int64_t bin = center; bin < upper; ++bin)
      set(bin, filter, static_cast<double>(upper - bin) / static_cast<double>(upper - center));
  }
  outputs[0] =
      store_all<double>(ops::type_attribute(attributes, "output_datatype", dtype::float32), {bins, filters}, values);
}

}  // namespace signal

inline constexpr std::array signal_rows{
    reference_row{"", "DFT", signal::dft},
    reference_row{"", "STFT", signal::stft},
    reference_row{"", "HannWindow", signal::hann_window},
    reference_row{"", "HammingWindow", signal::hamming_window},
    reference_row{"", "BlackmanWindow", signal::blackman_window},
    reference_row{"", "MelWeightMatrix", signal::mel_weight_matrix},
};

}  // namespace dnnopt::reference

#endif  // DNNOPT_REFERENCE_SIGNAL_HPP

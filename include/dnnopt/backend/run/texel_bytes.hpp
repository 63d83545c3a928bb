// Owns the bytes of tensors as texels on the host: from rows and back.
#ifndef DNNOPT_BACKEND_RUN_TEXEL_BYTES_HPP
#define DNNOPT_BACKEND_RUN_TEXEL_BYTES_HPP

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <span>
#include <vector>

#include <dnnopt/layout.hpp>
#include <dnnopt/tensor.hpp>

namespace dnnopt {

namespace detail {

/// Calls `visit(byte among texels, byte of the tensor, bytes)` for each run of elements that are neighbours in both: an
/// element, or where the packed dim is the last, those of a texel.
template <class Visit>
void for_each_run_of_texels(const tensor& t, std::size_t packed, const Visit& visit) {
  const dim_list& dims = t.dims();
  const std::size_t size = size_of(t.type());
  const auto product = [&](std::size_t from, std::size_t to) {
    std::size_t count = 1;
    for (std::size_t d = from; d < to; ++d) count *= static_cast<std::size_t>(dims[d]);
    return count;
  };
  constexpr auto four = static_cast<std::size_t>(texel_width);
  const std::size_t outer = product(0, packed);
  const std::size_t extent = product(packed, packed + 1);
  const std::size_t inner = product(packed + 1, dims.size());
  const std::size_t slices = (extent + four - 1) / four;
  for (std::size_t o = 0; o < outer; ++o)
    for (std::size_t c = 0; c < extent;) {
      const std::size_t run = inner == 1 ? std::min(four - c % four, extent - c) : 1;
      for (std::size_t i = 0; i < inner; ++i)
        visit((((o * slices + c / four) * inner + i) * four + c % four) * size, ((o * extent + c) * inner + i) * size,
              run * size);
      c += run;
    }
}

}  // namespace detail

/// The elements of a tensor as `bytes` bytes of texels, packed along dim `packed` (layout.hpp), zero beyond its extent
/// and behind the last texel. Precondition: `bytes` are enough, packed is a dim. O(bytes).
[[nodiscard]] inline std::vector<std::byte> texels_of_rows(const tensor& rows, std::size_t packed, std::size_t bytes) {
  std::vector<std::byte> texels(bytes, std::byte{0});
  const std::byte* const from = rows.bytes().data();
  detail::for_each_run_of_texels(rows, packed, [&](std::size_t to, std::size_t at, std::size_t run) {
    std::memcpy(texels.data() + to, from + at, run);
  });
  return texels;
}

/// The other way round, into `rows`, whose type and dims say what the texels are. O(bytes of rows).
inline void rows_of_texels(std::span<const std::byte> texels, std::size_t packed, tensor& rows) {
  std::byte* const to = rows.mutable_bytes().data();
  detail::for_each_run_of_texels(rows, packed, [&](std::size_t from, std::size_t at, std::size_t run) {
    std::memcpy(to + at, texels.data() + from, run);
  });
}

}  // namespace dnnopt

#endif  // DNNOPT_BACKEND_RUN_TEXEL_BYTES_HPP

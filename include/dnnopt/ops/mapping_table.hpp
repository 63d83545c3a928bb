// Owns DNNFusion's table of operator pairs: what two mapping types fuse to, and whether fusing pays (Table 3).
#ifndef DNNOPT_OPS_MAPPING_TABLE_HPP
#define DNNOPT_OPS_MAPPING_TABLE_HPP

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include <dnnopt/ops/classes.hpp>
#include <dnnopt/ops/op_info.hpp>

namespace dnnopt {

/// The colour of a pair in DNNFusion's Table 3.
enum class fusion_verdict : std::uint8_t {
  through,  ///< green: fuse
  depends,  ///< yellow: fuse where a measurement or cost model says so
  never,    ///< red: do not fuse
};

/// What a pair of operators fuses to.
struct fused_mapping {
  fusion_verdict verdict;
  mapping_type result;  ///< the mapping type of the fused operator; of no meaning where the verdict is `never`
};

namespace detail {
inline constexpr std::size_t mapping_type_count = 5;

// Row: first operator; column: second; both in the order One-to-One, Reorganize, Shuffle, One-to-Many, Many-to-Many.
inline constexpr auto fusion_table = [] {
  constexpr auto o2o = mapping_type::one_to_one;
  constexpr auto reo = mapping_type::reorganize;
  constexpr auto shu = mapping_type::shuffle;
  constexpr auto o2m = mapping_type::one_to_many;
  constexpr auto m2m = mapping_type::many_to_many;
  constexpr auto g = fusion_verdict::through;
  constexpr auto y = fusion_verdict::depends;
  constexpr auto r = fusion_verdict::never;
  return std::array<std::array<fused_mapping, mapping_type_count>, mapping_type_count>{{
      {{{g, o2o}, {g, reo}, {g, shu}, {g, o2m}, {g, m2m}}},
      {{{g, reo}, {g, reo}, {g, reo}, {y, o2m}, {y, m2m}}},
      {{{g, shu}, {g, reo}, {g, shu}, {y, o2m}, {y, m2m}}},
      {{{g, o2m}, {y, o2m}, {y, o2m}, {y, o2m}, {r, m2m}}},
      {{{g, m2m}, {y, m2m}, {y, m2m}, {y, m2m}, {r, m2m}}},
  }};
}();
}  // namespace detail

/// The cell of DNNFusion's Table 3 for `first` followed by `second`.
[[nodiscard]] constexpr const fused_mapping& fuse(mapping_type first, mapping_type second) noexcept {
  return detail::fusion_table[static_cast<std::size_t>(first)][static_cast<std::size_t>(second)];
}

/// The mapping type of an operator whose input/output pairs have these two types: the more complex one (DNNFusion
/// section 3.1, footnote 1; the enumerators are in order of complexity).
[[nodiscard]] constexpr mapping_type more_complex(mapping_type a, mapping_type b) noexcept { return std::max(a, b); }

/// How much a mapping type resists fusion: One-to-One < Reorganize, Shuffle < One-to-Many, Many-to-Many (DNNFusion
/// section 3.2, "transformation impedance").
[[nodiscard]] constexpr int transformation_impedance(mapping_type m) noexcept {
  switch (m) {
    case mapping_type::one_to_one:
      return 0;
    case mapping_type::reorganize:
    case mapping_type::shuffle:
      return 1;
    case mapping_type::one_to_many:
    case mapping_type::many_to_many:
      return 2;
  }
  return 2;
}

/// The mapping type of a whole node: the most complex of its given inputs towards output 0. A node without inputs has
/// its operator's class.
[[nodiscard]] inline mapping_type node_mapping(const op_info& op, const node_facts& facts) {
  if (op.mapping_of == nullptr) return op.mapping;
  mapping_type result = mapping_type::one_to_one;
  bool any = false;
  for (std::size_t i = 0; i < facts.inputs.size(); ++i) {
    if (!facts.has(i)) continue;
    result = more_complex(result, op.mapping_of(facts, i, 0));
    any = true;
  }
  return any ? result : op.mapping;
}

/// "through", "depends" or "never".
[[nodiscard]] constexpr std::string_view name_of(fusion_verdict verdict) noexcept {
  switch (verdict) {
    case fusion_verdict::through:
      return "through";
    case fusion_verdict::depends:
      return "depends";
    case fusion_verdict::never:
      return "never";
  }
  return "";
}

}  // namespace dnnopt

#endif  // DNNOPT_OPS_MAPPING_TABLE_HPP

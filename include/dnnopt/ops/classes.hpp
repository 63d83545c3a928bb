// Owns the classes that operators are sorted into: mapping type, layout class, dynamism class, computation kind,
// algebra.
#ifndef DNNOPT_OPS_CLASSES_HPP
#define DNNOPT_OPS_CLASSES_HPP

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string_view>

namespace dnnopt {

/// How output elements depend on input elements, in DNNFusion's order of complexity (section 3.1, Table 2).
enum class mapping_type : std::uint8_t { one_to_one, reorganize, shuffle, one_to_many, many_to_many };

/// SmartMem's operator class: does the computation depend on the input layout (ILD or ILI), and is the output layout
/// free (variable) or forced (fixed) (section 3.1, Table 3).
enum class layout_class : std::uint8_t { ild_variable, ili_variable, ild_fixed, ili_fixed };

/// SoD2's dynamism class (section 3, Table 2).
enum class dynamism_class : std::uint8_t {
  isdo,    ///< input shape determined output
  isdos,   ///< input shape determined output shape
  isvdos,  ///< input shape and value determined output shape
  edo,     ///< execution determined output
};

/// What an operator computes; tells apart anchors that share a mapping type.
enum class computation_kind : std::uint8_t {
  element_wise,   ///< output element = scalar function of input elements at (broadcast) equal indices
  view,           ///< output elements are input elements moved or repeated; an index map says which
  indexed_read,   ///< as view, with indices read from a tensor (Gather and its family)
  indexed_write,  ///< scatters updates into a copy
  convolution,
  matrix_product,
  reduction,
  softmax,
  normalization,
  pooling,
  attention,
  resampling,    ///< interpolation between input elements (Resize, GridSample)
  scan,          ///< running totals and recurrences along an axis
  sorting,       ///< order statistics (TopK, Unique)
  generator,     ///< outputs made from shapes and parameters (Range, ConstantOfShape)
  random,        ///< draws random numbers: neither folded nor shared between equal nodes
  shape_query,   ///< outputs that are shapes or sizes
  control_flow,  ///< runs subgraphs
  container,     ///< sequences, optionals, maps
  other,
};

/// How an operator runs its subgraphs.
enum class flow_form : std::uint8_t {
  none,      ///< it has none, or they are not run in turn
  branches,  ///< one of them, which the first input chooses (If): SoD2's Switch and Combine in one node
  loop,      ///< one, until its condition is false or the count of the first input is reached (Loop)
  scan,      ///< one, for each slice of the last inputs (Scan)
  map,       ///< one, for each element of sequences (SequenceMap)
};

/// Algebraic properties that rewriting uses (DNNFusion section 4.2); a set of flags.
enum class algebra : std::uint8_t {
  none = 0,
  associative = 1,
  commutative = 2,
  distributive = 4,  ///< takes part in a distributive law
};
[[nodiscard]] constexpr algebra operator|(algebra a, algebra b) noexcept {
  return static_cast<algebra>(static_cast<unsigned>(a) | static_cast<unsigned>(b));
}
/// Whether `set` holds every flag of `flags`.
[[nodiscard]] constexpr bool has(algebra set, algebra flags) noexcept {
  return (static_cast<unsigned>(set) & static_cast<unsigned>(flags)) == static_cast<unsigned>(flags);
}

/// The papers' spelling of a class.
[[nodiscard]] constexpr std::string_view name_of(mapping_type m) noexcept {
  switch (m) {
    case mapping_type::one_to_one:
      return "One-to-One";
    case mapping_type::reorganize:
      return "Reorganize";
    case mapping_type::shuffle:
      return "Shuffle";
    case mapping_type::one_to_many:
      return "One-to-Many";
    case mapping_type::many_to_many:
      return "Many-to-Many";
  }
  return "";
}
[[nodiscard]] constexpr std::string_view name_of(layout_class c) noexcept {
  switch (c) {
    case layout_class::ild_variable:
      return "ILD-Variable";
    case layout_class::ili_variable:
      return "ILI-Variable";
    case layout_class::ild_fixed:
      return "ILD-Fixed";
    case layout_class::ili_fixed:
      return "ILI-Fixed";
  }
  return "";
}
[[nodiscard]] constexpr std::string_view name_of(dynamism_class c) noexcept {
  switch (c) {
    case dynamism_class::isdo:
      return "ISDO";
    case dynamism_class::isdos:
      return "ISDOS";
    case dynamism_class::isvdos:
      return "ISVDOS";
    case dynamism_class::edo:
      return "EDO";
  }
  return "";
}
/// A set of an operator's inputs by their numbers, which are below 32.
class input_set {
 public:
  constexpr input_set() = default;
  constexpr input_set(std::initializer_list<unsigned> inputs) {
    for (const unsigned i : inputs) bits_ |= std::uint32_t{1} << i;
  }
  [[nodiscard]] constexpr bool contains(std::size_t i) const noexcept { return i < 32 && ((bits_ >> i) & 1U) != 0; }
  [[nodiscard]] constexpr bool empty() const noexcept { return bits_ == 0; }

 private:
  std::uint32_t bits_ = 0;
};

[[nodiscard]] constexpr std::string_view name_of(computation_kind k) noexcept {
  constexpr std::string_view names[] = {"element-wise",   "view",        "indexed read", "indexed write", "convolution",
                                        "matrix product", "reduction",   "softmax",      "normalization", "pooling",
                                        "attention",      "resampling",  "scan",         "sorting",       "generator",
                                        "random",         "shape query", "control flow", "container",     "other"};
  return names[static_cast<unsigned>(k)];
}

}  // namespace dnnopt

#endif  // DNNOPT_OPS_CLASSES_HPP

// Holds DNNFusion's combination table to the paper's Table 3, cell by cell in the paper's order.
#include <catch2/catch.hpp>

#include <dnnopt/ops/mapping_table.hpp>

namespace {

using enum dnnopt::mapping_type;
using enum dnnopt::fusion_verdict;

consteval bool cell(dnnopt::mapping_type first, dnnopt::mapping_type second, dnnopt::fusion_verdict verdict,
                    dnnopt::mapping_type result) {
  const auto& found = dnnopt::fuse(first, second);
  return found.verdict == verdict && found.result == result;
}
consteval bool is_never(dnnopt::mapping_type first, dnnopt::mapping_type second) {
  return dnnopt::fuse(first, second).verdict == dnnopt::fusion_verdict::never;
}

static_assert(cell(one_to_one, one_to_one, through, one_to_one));
static_assert(cell(one_to_one, one_to_many, through, one_to_many));
static_assert(cell(one_to_one, many_to_many, through, many_to_many));
static_assert(cell(one_to_one, reorganize, through, reorganize));
static_assert(cell(one_to_one, shuffle, through, shuffle));
static_assert(cell(one_to_many, one_to_one, through, one_to_many));
static_assert(cell(one_to_many, one_to_many, depends, one_to_many));
static_assert(is_never(one_to_many, many_to_many));
static_assert(cell(one_to_many, reorganize, depends, one_to_many));
static_assert(cell(one_to_many, shuffle, depends, one_to_many));
static_assert(cell(many_to_many, one_to_one, through, many_to_many));
static_assert(cell(many_to_many, one_to_many, depends, many_to_many));
static_assert(is_never(many_to_many, many_to_many));
static_assert(cell(many_to_many, reorganize, depends, many_to_many));
static_assert(cell(many_to_many, shuffle, depends, many_to_many));
static_assert(cell(reorganize, one_to_one, through, reorganize));
static_assert(cell(reorganize, one_to_many, depends, one_to_many));
static_assert(cell(reorganize, many_to_many, depends, many_to_many));
static_assert(cell(reorganize, reorganize, through, reorganize));
static_assert(cell(reorganize, shuffle, through, reorganize));
static_assert(cell(shuffle, one_to_one, through, shuffle));
static_assert(cell(shuffle, one_to_many, depends, one_to_many));
static_assert(cell(shuffle, many_to_many, depends, many_to_many));
static_assert(cell(shuffle, reorganize, through, reorganize));
static_assert(cell(shuffle, shuffle, through, shuffle));

// The paper counts 23 code generation rules: 13 green and 10 yellow cells.
consteval int count(dnnopt::fusion_verdict verdict) {
  int total = 0;
  for (const auto first : {one_to_one, one_to_many, many_to_many, reorganize, shuffle})
    for (const auto second : {one_to_one, one_to_many, many_to_many, reorganize, shuffle})
      total += dnnopt::fuse(first, second).verdict == verdict ? 1 : 0;
  return total;
}
static_assert(count(through) == 13);
static_assert(count(depends) == 10);
static_assert(count(dnnopt::fusion_verdict::never) == 2);

// Footnote 1: the order of complexity.
static_assert(dnnopt::more_complex(one_to_one, reorganize) == reorganize);
static_assert(dnnopt::more_complex(reorganize, shuffle) == shuffle);
static_assert(dnnopt::more_complex(shuffle, one_to_many) == one_to_many);
static_assert(dnnopt::more_complex(one_to_many, many_to_many) == many_to_many);

// "One-to-one < (Reorganize, Shuffle) < (One-to-many, many-to-one)".
static_assert(dnnopt::transformation_impedance(one_to_one) < dnnopt::transformation_impedance(reorganize));
static_assert(dnnopt::transformation_impedance(reorganize) == dnnopt::transformation_impedance(shuffle));
static_assert(dnnopt::transformation_impedance(shuffle) < dnnopt::transformation_impedance(one_to_many));
static_assert(dnnopt::transformation_impedance(one_to_many) == dnnopt::transformation_impedance(many_to_many));

}  // namespace

TEST_CASE("a fused pair resists fusion as much as its more resisting operator") {
  for (const auto first : {one_to_one, one_to_many, many_to_many, reorganize, shuffle})
    for (const auto second : {one_to_one, one_to_many, many_to_many, reorganize, shuffle}) {
      const auto& found = dnnopt::fuse(first, second);
      if (found.verdict == dnnopt::fusion_verdict::never) continue;
      CAPTURE(dnnopt::name_of(first), dnnopt::name_of(second));
      CHECK(dnnopt::transformation_impedance(found.result) ==
            std::max(dnnopt::transformation_impedance(first), dnnopt::transformation_impedance(second)));
    }
}

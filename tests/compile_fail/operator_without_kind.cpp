// build error: an operator type must state its computation kind: static constexpr computation_kind kind
#include <dnnopt/ops/op_info.hpp>

namespace {

struct doubled {
  static constexpr std::string_view domain = "user";
  static constexpr std::string_view name = "Doubled";
  static constexpr dnnopt::op_arity arity{1, 1};
  static constexpr dnnopt::mapping_type mapping = dnnopt::mapping_type::one_to_one;
  static constexpr dnnopt::layout_class layout = dnnopt::layout_class::ili_variable;
  static constexpr dnnopt::dynamism_class dynamism = dnnopt::dynamism_class::isdos;
#ifdef DNNOPT_CORRECTED
  static constexpr dnnopt::computation_kind kind = dnnopt::computation_kind::element_wise;
#endif
  static void infer(const dnnopt::node_facts&, std::span<dnnopt::value_facts>) {}
};

}  // namespace

int main() { return dnnopt::op_row<doubled>.since; }

// build error: an operator type must state its mapping type: static constexpr mapping_type mapping
#include <dnnopt/ops/op_info.hpp>

namespace {

struct doubled {
  static constexpr std::string_view domain = "user";
  static constexpr std::string_view name = "Doubled";
  static constexpr dnnopt::op_arity arity{1, 1};
#ifdef DNNOPT_CORRECTED
  static constexpr dnnopt::mapping_type mapping = dnnopt::mapping_type::one_to_one;
#endif
  static constexpr dnnopt::layout_class layout = dnnopt::layout_class::ili_variable;
  static constexpr dnnopt::dynamism_class dynamism = dnnopt::dynamism_class::isdos;
  static constexpr dnnopt::computation_kind kind = dnnopt::computation_kind::element_wise;
  static void infer(const dnnopt::node_facts&, std::span<dnnopt::value_facts>) {}
};

}  // namespace

int main() { return dnnopt::op_row<doubled>.since; }

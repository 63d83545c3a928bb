// Owns asking an operator for its index map, where not every node of an operator with views has one.
#ifndef DNNOPT_OPS_STATE_VIEW_HPP
#define DNNOPT_OPS_STATE_VIEW_HPP

#include <cstddef>
#include <span>

#include <dnnopt/error.hpp>
#include <dnnopt/inexpressible.hpp>
#include <dnnopt/ops/op_info.hpp>

namespace dnnopt::detail {

/// States the view of an operator that has one; false where the node's attributes leave it without an index map (an
/// interpolating Resize), or a dim of 0 does (there is no element to map, and maps divide by dims).
[[nodiscard]] inline bool state_view(view_builder& builder, const op_info& op, const node_facts& facts,
                                     std::size_t output, std::span<const index_expr> index) {
  if (op.view == nullptr) return false;
  try {
    op.view(builder, facts, output, index);
  } catch (const inexpressible&) {
    return false;
  } catch (const error& e) {
    if (e.code() == errc::division_by_zero) return false;
    throw;
  }
  return true;
}

}  // namespace dnnopt::detail

#endif  // DNNOPT_OPS_STATE_VIEW_HPP

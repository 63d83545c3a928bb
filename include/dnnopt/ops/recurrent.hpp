// Owns the recurrent layers: RNN, GRU, LSTM.
#ifndef DNNOPT_OPS_RECURRENT_HPP
#define DNNOPT_OPS_RECURRENT_HPP

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <dnnopt/ops/structure_transfer.hpp>

namespace dnnopt::ops {

/// What the recurrent layers share; `Gates` is the number of gate matrices stacked in W and R.
template <std::int64_t Gates>
struct recurrent_traits {
  static constexpr int since = 22;
  static constexpr mapping_type mapping = mapping_type::many_to_many;
  static constexpr layout_class layout = layout_class::ild_variable;
  static constexpr dynamism_class dynamism = dynamism_class::isdos;
  static constexpr computation_kind kind = computation_kind::scan;

  /// Y is [sequence, directions, batch, hidden], Y_h and Y_c are [directions, batch, hidden]; with `layout` 1 the batch
  /// comes first.
  static void infer(const node_facts& facts, std::span<value_facts> outputs) {
    for (std::size_t o = 0; o < outputs.size(); ++o) set_type(outputs, o, facts.type(0));
    const shape* x = facts.dims(0);
    const shape* r = facts.dims(2);
    if (x == nullptr || r == nullptr) return;
    if (x->size() != 3 || r->size() != 3)
      throw error(errc::shape_mismatch,
                  "a recurrent layer of input " + to_string(*x) + " and recurrence " + to_string(*r));
    facts.require(guard_relation::equal, (*r)[1], (*r)[2] * Gates, "gates and hidden elements of a recurrence");
    const bool batch_first = facts.attributes->get_int("layout", 0) != 0;
    const index_expr& steps = (*x)[batch_first ? 1 : 0];
    const index_expr& batch = (*x)[batch_first ? 0 : 1];
    const index_expr directions = facts.attributes->get_string("direction", "forward") == "bidirectional" ? 2 : 1;
    const index_expr& hidden = (*r)[2];
    facts.require(guard_relation::equal, (*r)[0], directions, "directions of a recurrent layer and its recurrence");
    if (const shape* w = facts.dims(1); w != nullptr && w->size() == 3) {
      facts.require(guard_relation::equal, (*w)[2], (*x)[2], "elements of a recurrent layer's input and its weights");
      facts.require(guard_relation::equal, (*w)[1], (*r)[1], "gates of a recurrent layer's weights and recurrence");
    }
    if (const shape* lengths = facts.dims(4); lengths != nullptr && lengths->size() == 1)
      facts.require(guard_relation::equal, lengths->front(), batch, "lengths and batch of a recurrent layer");
    for (const std::size_t i : {std::size_t{5}, std::size_t{6}})
      if (const shape* first = facts.dims(i); first != nullptr && first->size() == 3) {
        facts.require(guard_relation::equal, (*first)[batch_first ? 0 : 1], batch,
                      "batches of a recurrent layer's input and first state");
        facts.require(guard_relation::equal, (*first)[2], hidden, "elements of a recurrent layer's first state");
      }
    set_dims(outputs, 0,
             batch_first ? shape{batch, steps, directions, hidden} : shape{steps, directions, batch, hidden});
    for (const std::size_t o : {std::size_t{1}, std::size_t{2}})
      set_dims(outputs, o, batch_first ? shape{batch, directions, hidden} : shape{directions, batch, hidden});
  }
  static index_expr macs(const node_facts& facts) {
    const shape* x = facts.dims(0);
    const shape* r = facts.dims(2);
    if (x == nullptr || r == nullptr || x->size() != 3 || r->size() != 3) return 0;
    return (*x)[0] * (*x)[1] * (*r)[0] * (*r)[1] * ((*x)[2] + (*r)[2]);
  }
};

struct rnn_op : recurrent_traits<1> {
  static constexpr std::string_view name = "RNN";
  static constexpr op_arity arity{3, 6, 0, 2};
};
struct gru_op : recurrent_traits<3> {
  static constexpr std::string_view name = "GRU";
  static constexpr op_arity arity{3, 6, 0, 2};
};
struct lstm_op : recurrent_traits<4> {
  static constexpr std::string_view name = "LSTM";
  static constexpr op_arity arity{3, 8, 0, 3};
};

}  // namespace dnnopt::ops

#endif  // DNNOPT_OPS_RECURRENT_HPP

// Owns what a kernel knows of its block: nodes, values and indices in the kernel's own symbols.
#ifndef DNNOPT_BACKEND_CODEGEN_BUILDER_KERNEL_FACTS_HPP
#define DNNOPT_BACKEND_CODEGEN_BUILDER_KERNEL_FACTS_HPP

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include <dnnopt/backend/codegen/builder/c_types.hpp>
#include <dnnopt/backend/codegen/builder/index_source.hpp>
#include <dnnopt/backend/codegen/builder/kernel_arguments.hpp>
#include <dnnopt/graph.hpp>
#include <dnnopt/inexpressible.hpp>

namespace dnnopt::codegen {

/// The nodes that one kernel computes, in the graph that holds them.
struct block_view {
  const graph& g;
  std::vector<node_id> members;   ///< in topological order
  std::vector<value_id> outputs;  ///< values of members that the kernel stores
  node_id anchor = no_node;       ///< the member that the others surround; no_node: the only one that needs a frame
  /// Whether scales and zero points are arguments of the kernel rather than literals of its text.
  bool numbers_as_arguments = false;
  /// Whether quotients that become codes are taken by the inverse of their divisor, on devices where a division is many
  /// instructions. Processors divide whole vectors by one.
  bool divides_once = false;
};

/// The block of one kernel, and what its graph says of it in the kernel's own symbols: those of the graph that a kernel
/// needs are its arguments.
class kernel_facts {
 public:
  kernel_facts(const kernel_facts&) = delete;
  kernel_facts& operator=(const kernel_facts&) = delete;

  [[nodiscard]] const graph& g() const noexcept { return block_.g; }
  [[nodiscard]] const node& node_at(node_id id) const { return block_.g.node_at(id); }
  [[nodiscard]] const block_view& block() const noexcept { return block_; }
  [[nodiscard]] expr_context& expressions() noexcept { return *arguments_.expressions(); }

  /// Whether a member node of the block produces the value.
  [[nodiscard]] bool is_member_value(value_id id) const {
    const node_id producer = block_.g.value_at(id).producer;
    return producer != no_node && members_.contains(producer);
  }

  /// Whether members compute `from` from `anchor`.
  [[nodiscard]] bool reaches(value_id anchor, value_id from) {
    if (anchor == from) return true;
    if (!is_member_value(from)) return false;
    const std::pair key{anchor, from};
    if (const auto known = reached_.find(key); known != reached_.end()) return known->second;
    const auto& inputs = node_at(block_.g.value_at(from).producer).inputs;
    const bool reached =
        std::any_of(inputs.begin(), inputs.end(), [&](value_id in) { return in != no_value && reaches(anchor, in); });
    reached_.emplace(key, reached);
    return reached;
  }

  // --- symbols ---

  /// A loop or work-item index named `name` with values 0 .. extent - 1; the name must be declared in the source as int
  /// (long where the extent needs it).
  /// Errors: invalid_argument where the name stands for an index of another extent already.
  [[nodiscard]] index_expr index(std::string_view name, const index_expr& extent) {
    return arguments_.index(name, extent);
  }
  /// An expression over the graph's symbols in the kernel's own symbols (kernel_arguments::translate).
  [[nodiscard]] index_expr translate(const index_expr& e) { return arguments_.translate(e); }
  /// An expression over the graph's symbols as an argument even where it is a number: the same source serves kernels
  /// that differ by it alone.
  [[nodiscard]] index_expr argument(const index_expr& outer) { return arguments_.integer(outer); }
  /// The other way round: an expression over the kernel's arguments in the graph's symbols. Precondition: it names no
  /// index.
  [[nodiscard]] index_expr translate_back(const index_expr& e) { return arguments_.translate_back(e); }
  /// The shape of a value in the kernel's own symbols. Errors: shape_mismatch where the rank is unknown.
  [[nodiscard]] const shape& dims(value_id id) { return *local_facts(id).dims; }
  /// What is known about a value, in the kernel's own symbols.
  [[nodiscard]] const value_facts& local_facts(value_id id) {
    const auto found = facts_.find(id);
    if (found != facts_.end()) return *found->second;
    const value& v = block_.g.value_at(id);
    if (!v.facts.dims) throw error(errc::shape_mismatch, "the rank of '" + v.name + "' is not known");
    auto made = std::make_unique<value_facts>();
    made->kind = v.facts.kind;
    made->type = v.facts.type;
    made->constant = v.facts.constant;
    made->dims.emplace();
    for (const index_expr& d : *v.facts.dims) made->dims->push_back(translate(d));
    if (v.facts.elements) {
      made->elements.emplace();
      for (const index_expr& e : *v.facts.elements) made->elements->push_back(translate(e));
    }
    return *facts_.emplace(id, std::move(made)).first->second;
  }
  /// The compute type of a value. Errors: unsupported.
  [[nodiscard]] compute_type computed_as(value_id id) const { return c_type_of(block_.g.facts(id).type).compute; }
  /// The node's facts in the kernel's own symbols, for calls of operator traits.
  [[nodiscard]] node_facts facts_of(node_id id, std::vector<const value_facts*>& storage) {
    const node& n = node_at(id);
    storage.clear();
    for (const value_id v : n.inputs) storage.push_back(v == no_value ? nullptr : &local_facts(v));
    node_facts facts;
    facts.attributes = &n.attributes;
    facts.inputs = storage;
    facts.output_count = n.outputs.size();
    facts.expressions = arguments_.expressions().get();
    facts.scope = !n.outputs.empty() && n.outputs[0] != no_value
                      ? std::string_view(block_.g.value_at(n.outputs[0]).name)
                      : std::string_view(n.name);
    return facts;
  }
  /// An expression that operator traits built in the kernel's own symbols: dims that depend on data, which traits name
  /// anew, become the arguments that hold them, and so does what a run knows of the rest
  /// (kernel_arguments::with_known_parts). Errors: unsupported where the graph has no such dim.
  [[nodiscard]] index_expr settled(const index_expr& e) {
    const index_expr named_by_graph = substitute(e, [this](const index_expr& symbol) {
      const std::string& name = expressions().symbol_name(*symbol.as_symbol());
      // Only names of data_dim hold a dot: every other symbol is a C identifier.
      if (name.find('.') == std::string::npos) return symbol;
      const auto outer = block_.g.expressions().find(name);
      if (!outer) throw inexpressible("dim '" + name + "' depends on data that are not known");
      return arguments_.integer(block_.g.expressions().symbol(name));
    });
    return arguments_.with_known_parts(named_by_graph);
  }

  // --- indices ---

  /// The index in a value's dims of a row-major offset.
  [[nodiscard]] std::vector<index_expr> index_at(const shape& d, const index_expr& offset) {
    std::vector<index_expr> out(d.size(), index_expr(0));
    index_expr stride = 1;
    for (std::size_t k = d.size(); k-- > 0;) {
      // An empty dim has no index; any one serves, for no work-item gets past the count of elements.
      if (d[k] == index_expr(1) || d[k] == index_expr(0)) continue;
      // The outermost index needs no remainder: the offset is in range.
      bool outermost = true;
      for (std::size_t j = 0; j < k; ++j) outermost = outermost && d[j] == index_expr(1);
      const index_expr q = floordiv(offset, stride);
      out[k] = outermost ? q : mod(q, d[k]);
      stride *= d[k];
    }
    return out;
  }
  /// The index along a dim of an operand that is broadcast to `whole`, where the result stands at `at` of it. A dim
  /// that only a run tells to be 1 or not keeps its last index as the bound; guards see to it that it is one of both.
  [[nodiscard]] static index_expr broadcast_index(const index_expr& dim, const index_expr& whole,
                                                  const index_expr& at) {
    if (dim == index_expr(1)) return 0;
    if (dim == whole || dim.range().low > 1) return at;
    return min(at, dim - 1);
  }
  /// The index of an operand that is broadcast to dims `whole` (aligned at the last one), where the result stands at
  /// `at`. What it has more dims than that is 1 (a bound of Clip). Errors: shape_mismatch.
  [[nodiscard]] static std::vector<index_expr> broadcast_index(const shape& dims, const shape& whole,
                                                               std::span<const index_expr> at) {
    std::vector<index_expr> own;
    for (std::size_t k = 0; k < dims.size(); ++k) {
      if (k + whole.size() < dims.size()) {
        if (!(dims[k] == index_expr(1)))
          throw error(errc::shape_mismatch, to_string(dims) + " does not broadcast to " + to_string(whole));
        own.emplace_back(0);
        continue;
      }
      const std::size_t w = whole.size() - dims.size() + k;
      own.push_back(broadcast_index(dims[k], whole[w], at[w]));
    }
    return own;
  }
  /// Whether 0 <= e < extent by their ranges.
  [[nodiscard]] static bool always_within(const index_expr& e, const index_expr& extent) {
    return e.range().low >= 0 && (extent - e).range().low > 0;
  }
  /// The test that nothing passes: what stands behind it is not emitted.
  static constexpr std::string_view nowhere = "false";
  /// The test 0 <= e < extent in OpenCL C, computed in so many bits, without the sides that ranges settle; empty where
  /// both are settled, `nowhere` where one never holds.
  [[nodiscard]] static std::string within(const index_expr& e, const index_expr& extent,
                                          index_width width = index_width::by_range) {
    if (e.range().high < 0 || (extent - e).range().high <= 0) return std::string(nowhere);
    std::string test;
    if (e.range().low < 0) test = index_source(e, width) + " >= 0";
    if ((extent - e).range().low <= 0)
      test += (test.empty() ? "" : " && ") + index_source(e, width) + " < " + index_source(extent);
    return test;
  }
  /// Whether an offset of an element of a value fits an int: by its range, or by the value's size, of which a run that
  /// tells of more is refused.
  [[nodiscard]] bool fits_offset(value_id id, const index_expr& offset) {
    return fits_int(offset.range()) || arguments_.counts_in_int(element_count(dims(id)));
  }
  /// The source of such an offset, of type int where that holds it. Terms of an offset may pass 32 bits where their sum
  /// does not, by how far a window reaches beyond the value: only where the value is all but as large as an int counts.
  [[nodiscard]] std::string offset_source(value_id id, const index_expr& offset) {
    return index_source(offset, offset_width(id, offset));
  }
  /// In how many bits such an offset, or that of a texel, is computed.
  [[nodiscard]] index_width offset_width(value_id id, const index_expr& offset) {
    return fits_offset(id, offset) ? index_width::int32 : index_width::by_range;
  }
  /// In how many bits an expression is computed that is never above `count` (kernel_arguments::counts_in_int).
  [[nodiscard]] index_width width_below(const index_expr& e, const index_expr& count) {
    return fits_int(e.range()) || !arguments_.counts_in_int(count) ? index_width::by_range : index_width::int32;
  }
  /// The same without the test of an index that was made for that extent (kernel_arguments::index).
  [[nodiscard]] std::string within_dim(const index_expr& e, const index_expr& extent, index_width width) const {
    return arguments_.is_index_of(e, extent) ? std::string() : within(e, extent, width);
  }

 protected:
  /// Precondition: shapes of all values that the kernel touches are known.
  explicit kernel_facts(const block_view& block)
      : block_(block), members_(block.members.begin(), block.members.end()) {}
  ~kernel_facts() = default;

  block_view block_;
  kernel_arguments arguments_;
  std::set<node_id> members_;

 private:
  std::unordered_map<value_id, std::unique_ptr<value_facts>> facts_;
  std::map<std::pair<value_id, value_id>, bool> reached_;
};

}  // namespace dnnopt::codegen

#endif  // DNNOPT_BACKEND_CODEGEN_BUILDER_KERNEL_FACTS_HPP

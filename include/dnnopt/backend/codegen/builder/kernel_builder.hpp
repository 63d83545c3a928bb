// Owns the writing of one kernel from a set of graph nodes: element expressions, loads and stores.
//
// The builder walks data-flow trees backwards from what is asked (DNNFusion section 4.4.1): `emit(v, index)` appends
// statements that compute one element of value v and returns its name. Element-wise operators substitute their scalar
// expression, views only change the index, and what lies outside the block is loaded. Equal subtrees at equal indices
// are emitted once.
#ifndef DNNOPT_BACKEND_CODEGEN_BUILDER_KERNEL_BUILDER_HPP
#define DNNOPT_BACKEND_CODEGEN_BUILDER_KERNEL_BUILDER_HPP

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dnnopt/backend/codegen/builder/c_types.hpp>
#include <dnnopt/backend/codegen/builder/index_source.hpp>
#include <dnnopt/backend/codegen/builder/kernel_arguments.hpp>
#include <dnnopt/backend/codegen/builder/kernel_plan.hpp>
#include <dnnopt/backend/codegen/builder/kernel_statements.hpp>
#include <dnnopt/backend/codegen/builder/literal.hpp>
#include <dnnopt/backend/codegen/builder/texel_access.hpp>
#include <dnnopt/graph.hpp>
#include <dnnopt/inexpressible.hpp>
#include <dnnopt/row_major.hpp>

namespace dnnopt::codegen {

class kernel_builder;

/// Writes one element of `output` of a node at `index` and returns the name or literal that holds it.
using element_emitter = std::string (*)(kernel_builder& b, node_id id, std::size_t output,
                                        std::span<const index_expr> index);

/// Binds an operator to its emitter; looked up by domain and name.
struct emitter_row {
  std::string_view domain;
  std::string_view name;
  element_emitter emit;
};

/// A load that element expressions asked for.
struct element_load {
  value_id id;
  std::vector<index_expr> index;
  std::size_t depth;  ///< scopes that were open
  std::size_t place;  ///< of its statement in the innermost of them
};

/// Writes one kernel. Not copyable; `finish` ends it.
class kernel_builder : public kernel_statements {
 public:
  /// Precondition: shapes of all values that the kernel touches are known.
  kernel_builder(const block_view& block, std::span<const emitter_row> emitters)
      : kernel_statements(block), emitters_(emitters) {}

  // --- elements ---

  /// A test that an entry of an index lies within its dim, and whether what it leaves open is still such an index.
  struct border_test {
    std::string text;     ///< empty: nothing to test
    bool bounded = true;  ///< false: entries outside pass it, and the border of an image answers them
  };
  /// The test that entry `e` of an index in `id` lies within dim `d`, for reads that shall give zero outside: without
  /// the sides on which the value's image has its border, which is (0, 0, 0, 0) of CL_RGBA (of channel orders without
  /// alpha it would be 1 in alpha). Rows of an image end at a border; the rows of a plane do where planes are layers of
  /// an image2d_array, or where there is one plane. Which ends were relied on is noted at the argument. The test is
  /// computed in so many bits.
  [[nodiscard]] border_test within_or_zero(value_id id, std::size_t d, const index_expr& e,
                                           index_width width = index_width::by_range);
  /// The loads of single elements written so far, without those of texels.
  [[nodiscard]] std::span<const element_load> loads() const noexcept { return loads_; }
  /// The element of value `id` at `index` (as many entries as its rank), of its compute type. Statements are appended
  /// to the current scope. Errors: unsupported where a member can't be written as an element expression.
  [[nodiscard]] std::string emit(value_id id, std::span<const index_expr> index) {
    // No work-item asks for an element of a value without any: the statement stands in a loop or test that never runs.
    if (has_empty_dim(dims(id))) return literal_of(block_.g.facts(id).type, 0);
    std::pair<value_id, std::vector<index_expr>> key{id, canonical(id, index)};
    for (index_expr& e : key.second) e = named(e);
    for (auto nested = scopes_.rbegin(); nested != scopes_.rend(); ++nested)
      for (const auto& [known, name] : nested->known)
        if (known == key) return name;
    std::string name = emit_new(id, key.second);
    scopes_.back().known.emplace_back(key, name);
    return name;
  }
  /// An expression of bounded length for an index: a long one becomes a constant of the source, declared once in a
  /// scope. An index that goes through many views would else grow with each.
  [[nodiscard]] index_expr named(const index_expr& e) {
    if (!names_indices_ || e.size() <= longest_index) return e;
    for (auto nested = scopes_.rbegin(); nested != scopes_.rend(); ++nested)
      for (const auto& [known, name] : nested->indices)
        if (known == e) return name;
    const index_expr name = define_integer("at", index_source(divided_where_tested(e)), e.range());
    scopes_.back().indices.emplace_back(e, name);
    return name;
  }
  /// What named() gave the name `e` to; `e` where it is no such name.
  [[nodiscard]] index_expr unnamed(const index_expr& e) const {
    for (auto nested = scopes_.rbegin(); nested != scopes_.rend(); ++nested)
      for (const auto& [known, name] : nested->indices)
        if (name == e) return known;
    return e;
  }
  [[nodiscard]] std::string emit(value_id id, std::initializer_list<index_expr> index) {
    return emit(id, std::span<const index_expr>(index.begin(), index.size()));
  }
  /// The element of an output of a node by its index map, whether or not the operator has an emitter.
  /// Errors: unsupported where it is no view.
  [[nodiscard]] std::string emit_by_view(node_id id, std::size_t output, std::span<const index_expr> index) {
    return emit_view(id, output, index);
  }
  /// The element of the output of an element-wise node by its scalar expression, whether or not it has an emitter.
  [[nodiscard]] std::string emit_by_scalar(node_id id, std::size_t output, std::span<const index_expr> index) {
    return emit_element_wise(id, output, index);
  }
  /// From here on expressions stand whole however long they are: for a frame that asks where elements lie in one place
  /// and reads them in another, in which names of their parts would not be known.
  void write_indices_whole() noexcept { names_indices_ = false; }
  /// The row-major offset of an index in a value's own dims, at which there is an element.
  [[nodiscard]] index_expr offset_of(value_id id, std::span<const index_expr> index) {
    const shape& d = dims(id);
    if (!is_static(d)) {
      std::vector<index_expr> whole;
      for (const index_expr& e : index) whole.push_back(unnamed(e));
      const index_expr joined = row_major_offset(d, whole);
      if (joined.size() <= longest_index) return joined;
    }
    return row_major_offset(d, index);
  }
  /// Loads an element from the memory of a value, whatever produces it. Of a texel that neighbours need too only one
  /// read is written.
  [[nodiscard]] std::string load_element(value_id id, std::span<const index_expr> index);
  /// Reads the texel of a value at an index whose packed entry counts texels.
  [[nodiscard]] std::string read_texel(value_id id, std::span<const index_expr> index);
  /// Whether planes of a value lie apart from each other in an image, so that neither a row's end nor a plane's has
  /// another one's texels beside it where the image ends with the value.
  [[nodiscard]] bool planes_apart(value_id id);
  /// Reads between the texels of a value by the image's linear filter, clamped to the edges, for the element of
  /// `result` at `index` (packed entry counting texels; dims before the last two are those of `id`). `coordinates()`
  /// returns where in its plane, as floats in OpenCL C: along a row, and the row (0 in the middle of the first). One
  /// read is written for elements of one texel. Precondition: planes_apart(id).
  template <class Coordinates>
  [[nodiscard]] std::string read_between(value_id id, value_id result, std::span<const index_expr> index,
                                         Coordinates&& coordinates);
  /// Writes the float4 `value` to the texel of a value at an index whose packed entry counts texels.
  void write_texel(value_id id, std::span<const index_expr> index, std::string_view value);
  /// The C name of a scratch argument that holds texels.
  [[nodiscard]] std::string scratch_texels(std::size_t number, const texel_storage& storage, bool written) {
    const std::size_t i = arguments_.pointer_to_scratch(number, storage.type, written);
    arguments_.pointer(i).object = storage.object;
    return kernel_arguments::name_of(i);
  }
  /// Loads an element from the buffer of a value, whatever produces it. Errors: unsupported where it holds texels.
  [[nodiscard]] std::string load(value_id id, const index_expr& offset) {
    refuse_texels(id);
    const c_type_row& type = c_type_of(block_.g.facts(id).type);
    return let(type.compute,
               fill_pattern(block_.g.facts(id).type == dtype::float16 ? half_load_ : type.load,
                            access(id, false, offset), offset_source(id, divided_where_tested(offset)), ""));
  }
  /// The bits of an element in the buffer of a value as a ulong. Errors: unsupported where it holds texels.
  [[nodiscard]] std::string load_bits(value_id id, const index_expr& offset) {
    refuse_texels(id);
    const std::size_t bytes = size_of(block_.g.facts(id).type);
    const std::string_view type = bytes == 1 ? "uchar" : bytes == 2 ? "ushort" : bytes == 4 ? "uint" : "ulong";
    return let(compute_type::natural, "((__global const " + std::string(type) + "*)" + access(id, false, offset) +
                                          ")[" + offset_source(id, divided_where_tested(offset)) + "]");
  }
  /// Whether elements of the value are halves in rows of memory, to which views alone lead. Members may be of float32:
  /// where storage is narrowed, types of values within a block are what they were.
  [[nodiscard]] bool are_stored_halves(value_id id) { return are_stored_as(id, dtype::float16); }
  /// The same for a type.
  [[nodiscard]] bool are_stored_as(value_id id, dtype type) {
    return are_views_of(id, [type](const value_facts& facts) { return facts.type == type && !facts.texels; });
  }
  /// The same for floats or halves.
  [[nodiscard]] bool are_stored_reals(value_id id) {
    return are_views_of(id, [](const value_facts& facts) {
      return (facts.type == dtype::float32 || facts.type == dtype::float16) && !facts.texels;
    });
  }
  /// Whether views lead from a value to elements of `stored`, so that a load of these is the value's element: it is an
  /// index of a view where they do not, and the element then stands in the source.
  [[nodiscard]] bool views_lead_to(value_id id, value_id stored) {
    const value_facts* const wanted = &block_.g.facts(stored);
    bool found = false;
    (void)are_views_of(id, [&](const value_facts& facts) { return found = found || &facts == wanted, true; });
    return found;
  }
  /// From now on, elements of which `are_stored_halves` says so are loaded by `half_bits_load`, or no longer: then
  /// whoever uses them widens them, later.
  void load_halves_as_bits(bool on) noexcept { half_load_ = on ? half_bits_load : c_type_of(dtype::float16).load; }
  /// How elements of what a node dequantizes are written.
  enum class code_form : std::uint8_t {
    scaled,    ///< what they mean
    unscaled,  ///< the code less its zero point: whoever sums such elements multiplies the sum by the scale
    bits       ///< the code itself, as the bits of a float: whoever loads such elements knows their one zero point
  };
  /// From now on elements of what this node dequantizes are written so; no_node: of none. Its element expression asks
  /// form_of_codes().
  void write_codes(node_id dequantizer, code_form form) noexcept {
    coded_node_ = dequantizer;
    code_form_ = form;
  }
  [[nodiscard]] code_form form_of_codes(node_id dequantizer) const noexcept {
    return coded_node_ == dequantizer ? code_form_ : code_form::scaled;
  }
  /// Stores an element into the buffer of a value. Errors: unsupported where it holds texels, which are written whole.
  void store(value_id id, const index_expr& offset, std::string_view expression) {
    refuse_texels(id);
    line(store_statement(id, access(id, true, offset), offset, expression));
  }
  /// Stores the components of `four` at offsets that are_four_neighbours, in one access. Precondition: the value's type
  /// has a row in four_table, of which `four` is what it holds. Errors: as store.
  void store_four(value_id id, const std::array<index_expr, 4>& offsets, std::string_view four);
  /// From now on, element `index` of `id` is the C name `name` (an anchor's result inside its store function).
  void bind(value_id id, std::span<const index_expr> index, std::string name) {
    // What members make of it is computed of what the model's type holds, as if it had been stored.
    const value_facts& facts = block_.g.facts(id);
    const c_type_row& row = c_type_of(facts.type);
    const auto reads = [&](node_id m) {
      const auto& inputs = block_.g.node_at(m).inputs;
      return std::find(inputs.begin(), inputs.end(), id) != inputs.end();
    };
    if (row.compute == compute_type::real && row.narrow != "$v" && !facts.narrowed &&
        std::any_of(block_.members.begin(), block_.members.end(), reads))
      name = fill_pattern(row.narrow, "", "", name);
    remember(id, index, std::move(name));
    bound_.insert(id);
  }
  /// A number that would tell kernels apart which are alike but for it, as an argument of the kernel where there may be
  /// one more and numbers shall be such, else as a literal.
  [[nodiscard]] std::string number(float value);
  /// Whether elements of a value are known by names that were bound (bind).
  [[nodiscard]] bool is_bound(value_id id) const { return bound_.contains(id); }
  /// From now on, node `id`, which normalizes rows, does not compute its mean and the reciprocal of its deviation: they
  /// are these C names. Where an element of it is asked for is kept for `row_asked`.
  void bind_moments(node_id id, std::string mean, std::string inverse_deviation) {
    moments_ = row_moments{id, std::move(mean), std::move(inverse_deviation), {}};
  }
  /// The names that bind_moments gave for the node, or null; notes the index that is asked for.
  [[nodiscard]] const std::pair<std::string, std::string>* moments_of(node_id id, std::span<const index_expr> index) {
    if (!moments_ || moments_->id != id) return nullptr;
    if (moments_->asked.empty()) moments_->asked.assign(index.begin(), index.end());
    if (!std::equal(index.begin(), index.end(), moments_->asked.begin(), moments_->asked.end()))
      throw inexpressible("rows of '" + node_at(id).name + "' are read by two index maps");
    return &moments_->names;
  }
  /// The index at which an element of the node of bind_moments was asked for; empty where none was.
  [[nodiscard]] std::vector<index_expr> row_asked() const {
    return moments_ ? moments_->asked : std::vector<index_expr>();
  }
  /// The C name of the buffer argument of a value, for any use of it: outputs are not given its memory.
  [[nodiscard]] std::string pointer(value_id id, bool written) {
    refuse_texels(id);
    return any_use(id, written);
  }
  /// The same of a value that holds texels, in whatever object: reads address them by place_in().
  [[nodiscard]] std::string texel_pointer(value_id id) { return any_use(id, false); }
  /// The C name of a scratch buffer argument.
  [[nodiscard]] std::string scratch(std::size_t number, dtype type, bool written) {
    return kernel_arguments::name_of(arguments_.pointer_to_scratch(number, type, written));
  }
  /// Defines a function as above that returns the element of `id` at `index`; `more` are further parameters.
  void define_load(std::string_view name, value_id id, std::span<const index_expr> index,
                   std::span<const std::string> names, std::string_view more = "") {
    define_function(
        name, computed_as(id), names, [&] { return emit(id, index); }, more);
  }
  /// Defines `void <name>(DNNOPT_PARAMETERS, int <names>..., <type> value)` that stores what the block computes from
  /// one element of the anchor: the epilogue. The frame calls it once for each element. Values before the anchor that
  /// the block outputs too are stored where the anchor's element stands, so their dims must be those of `anchor`.
  /// `finish()` returns the anchor's element at `index` made from `value` (a bias added, say). Outputs of the anchor's
  /// node other than `anchor` are stored by functions of their own. Every other block output is reached from the anchor
  /// by element-wise operators and invertible views. Errors: unsupported where one is not.
  /// With `total` the function returns the element of `planes`, which the frame reduces to elements of `total`.
  /// Where the only output may be given the memory of what its epilogue reads, the function's halves are defined too:
  /// `float dnnopt_epilogue(..., value)` computes what `void dnnopt_put(..., value)` stores, and DNNOPT_EPILOGUE is 1.
  /// Where `type` is that of integers, it may be a float or an integer of at most 32 bits that is stored, and
  /// DNNOPT_EPILOGUE_REAL is 1 where it is a float.
  /// A frame that calls the one for several elements before the other leaves no store between loads of the same memory,
  /// which would keep compilers from taking the elements as a vector.
  template <class Finish>
  void define_store(std::string_view name, value_id anchor, std::span<const index_expr> index,
                    std::span<const std::string> names, compute_type type, Finish&& finish, value_id total = no_value,
                    value_id planes = no_value);
  void define_store(std::string_view name, value_id anchor, std::span<const index_expr> index,
                    std::span<const std::string> names) {
    define_store(name, anchor, index, names, computed_as(anchor), [] { return std::string("value"); });
  }
  /// The same for four results of a frame at once, `void <name>(DNNOPT_PARAMETERS, int <names>..., float4 four)`:
  /// outputs that hold texels get one, others four elements, in one access where they stand side by side. `finish(j)`
  /// returns the anchor's element at `four.at[j]` made from `value`. What the four read beside them where it stands
  /// side by side is one access too. Where halves are defined, they are `DNNOPT_FINISHED4 dnnopt_epilogue4(..., four)`
  /// and `void dnnopt_put4(..., four)` of what that returns, and DNNOPT_EPILOGUE4 is 1. Errors: unsupported as well
  /// where the four are no texel of an output.
  template <class Finish>
  void define_store4(std::string_view name, value_id anchor, const four_results& four,
                     std::span<const std::string> names, Finish&& finish);
  /// The index of block output `out` whose element is computed from the anchor's element at `index`. Elements that
  /// views pass on to there are known from then on, and emitted for it, so the anchor's must be bound, but for
  /// `places_alone`.
  [[nodiscard]] std::vector<index_expr> index_from_anchor(value_id anchor, std::span<const index_expr> index,
                                                          value_id out, bool places_alone = false);

 private:
  /// Values of at most so many known elements stand in the source instead of being loaded.
  static constexpr std::size_t largest_table = 64;

  /// Operators and operands of an index that stands in the source as it is. Indices of real networks stay below, so
  /// that frames see how they depend on their own.
  static constexpr std::uint32_t longest_index = 64;

  class piece_builder;

  /// Whether no values of the symbols give the shape elements.
  [[nodiscard]] static bool has_empty_dim(const shape& d) {
    return std::any_of(d.begin(), d.end(), [](const index_expr& extent) { return extent == index_expr(0); });
  }

  struct row_moments {
    row_moments(node_id node, std::string mean, std::string inverse, std::vector<index_expr> at)
        : id(node), names(std::move(mean), std::move(inverse)), asked(std::move(at)) {}
    node_id id;
    std::pair<std::string, std::string> names;
    std::vector<index_expr> asked;
  };

  /// An index with 0 for every dim of 1, so that equal elements have equal indices.
  std::vector<index_expr> canonical(value_id id, std::span<const index_expr> index) {
    std::vector<index_expr> at(index.begin(), index.end());
    if (at.empty()) return at;
    const shape& d = dims(id);
    for (std::size_t k = 0; k < at.size() && k < d.size(); ++k)
      if (d[k] == index_expr(1)) at[k] = 0;
    return at;
  }
  void remember(value_id id, std::span<const index_expr> index, std::string name) {
    std::vector<index_expr> at = canonical(id, index);
    for (index_expr& e : at) e = named(e);
    scopes_.back().known.emplace_back(std::pair<value_id, std::vector<index_expr>>{id, std::move(at)}, std::move(name));
  }

  void refuse_texels(value_id id) const {
    if (block_.g.facts(id).texels)
      throw inexpressible("the texels of '" + block_.g.value_at(id).name + "' are not addressed singly");
  }

  /// The C name of a value's pointer, for a load or a store at `offset`.
  std::string access(value_id id, bool written, const index_expr& offset) {
    const std::size_t i = arguments_.pointer_to(block_.g, id, written);
    arguments_.accesses().add(i, offset, written);
    return kernel_arguments::name_of(i);
  }
  /// The same for uses that are not looked into.
  std::string any_use(value_id id, bool written) {
    const std::size_t i = arguments_.pointer_to(block_.g, id, written);
    arguments_.accesses().add_unknown(i, written);
    return kernel_arguments::name_of(i);
  }

  /// The store of `expression` to the element at `offset` of a value whose buffer is the C name `buffer`.
  [[nodiscard]] std::string store_statement(value_id id, std::string_view buffer, const index_expr& offset,
                                            std::string_view expression);
  /// define_store of a block's only output.
  template <class Finish>
  void define_sole_store(std::string_view name, value_id anchor, std::span<const index_expr> index,
                         std::span<const std::string> names, compute_type type, Finish&& finish);
  /// The statement of store_four.
  [[nodiscard]] std::string four_stored(value_id id, const std::array<index_expr, 4>& offsets, std::string_view four);
  /// Names result j of a frame `value`, and binds the anchor's element that is made of it.
  template <class Finish>
  void finish_fourth(value_id anchor, const four_results& four, std::size_t j, Finish&& finish);
  /// Loads what each of four results reads once, from neighbours, in one access, before they are finished.
  template <class Finish>
  void hold_four_loads(value_id anchor, const four_results& four, std::span<const std::string> names, Finish&& finish);
  void define_halves_of_store4(std::string_view name, std::span<const std::string> names, std::string_view held,
                               const std::string& finished, const std::string& put);
  /// Whether an expression names nothing but `names` and the kernel's parameters.
  [[nodiscard]] bool named_outside(const index_expr& e, std::span<const std::string> names);

  /// Calls `store(out, at)` for each block output that a frame's store function stores with the anchor's element at
  /// `index`; for `total` nothing. With `places_alone` the anchor's element need not be bound.
  template <class Store>
  void for_each_output(value_id anchor, std::span<const index_expr> index, Store&& store_one, value_id total = no_value,
                       bool places_alone = false) {
    for (const value_id out : block_.outputs) {
      if (out == total) continue;
      if (out != anchor && block_.g.value_at(out).producer == block_.g.value_at(anchor).producer) continue;
      std::vector<index_expr> at(index.begin(), index.end());
      if (reaches(anchor, out))
        at = index_from_anchor(anchor, index, out, places_alone);
      else if (!(dims(out) == dims(anchor)))
        throw inexpressible("output '" + block_.g.value_at(out).name + "' stands before the anchor with other dims");
      store_one(out, std::as_const(at));
    }
  }

  std::vector<index_expr> forward_index(const node& n, std::size_t input, value_id out,
                                        const std::vector<index_expr>& inner);

  /// Whether views alone lead from a value to elements that are computed as reals, of values that pass `test(facts)`.
  template <class Test>
  [[nodiscard]] bool are_views_of(value_id id, Test&& test);
  std::string emit_new(value_id id, std::span<const index_expr> index);
  [[nodiscard]] std::string literal_of(const tensor& t, std::size_t i) const;
  [[nodiscard]] std::optional<std::string> argument_for(const tensor& t);
  /// A number as an element of a type stands in the source.
  [[nodiscard]] std::string literal_of(dtype type, double number) const;
  std::string emit_element_wise(node_id id, std::size_t output, std::span<const index_expr> index);
  std::string emit_view(node_id id, std::size_t output, std::span<const index_expr> index);
  std::string substitute_scalar(const node& n, std::string_view pattern, const std::vector<std::string>& operands,
                                std::size_t fold);

  std::span<const emitter_row> emitters_;
  std::set<value_id> bound_;
  std::vector<element_load> loads_;
  std::string_view half_load_ = c_type_of(dtype::float16).load;
  node_id coded_node_ = no_node;
  code_form code_form_ = code_form::scaled;
  bool names_indices_ = true;
  std::optional<row_moments> moments_;
};

}  // namespace dnnopt::codegen

#include <dnnopt/backend/codegen/builder/emit/element.hpp>
#include <dnnopt/backend/codegen/builder/emit/four_results.hpp>
#include <dnnopt/backend/codegen/builder/emit/stores.hpp>
#include <dnnopt/backend/codegen/builder/emit/texels.hpp>

#endif  // DNNOPT_BACKEND_CODEGEN_BUILDER_KERNEL_BUILDER_HPP

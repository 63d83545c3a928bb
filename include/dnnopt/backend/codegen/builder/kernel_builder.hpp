// Owns the writing of one kernel from a set of graph nodes: element expressions, loads, stores and index maps.
//
// The builder walks data-flow trees backwards from what is asked (DNNFusion section 4.4.1): `emit(v, index)` appends
// statements that compute one element of value v and returns its name. Element-wise operators substitute their scalar
// expression, views only change the index, and what lies outside the block is loaded. Equal subtrees at equal indices
// are emitted once.
#ifndef DNNOPT_BACKEND_CODEGEN_BUILDER_KERNEL_BUILDER_HPP
#define DNNOPT_BACKEND_CODEGEN_BUILDER_KERNEL_BUILDER_HPP

#include <algorithm>
#include <array>
#include <cctype>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include <dnnopt/backend/codegen/builder/c_types.hpp>
#include <dnnopt/backend/codegen/builder/frame.hpp>
#include <dnnopt/backend/codegen/builder/index_source.hpp>
#include <dnnopt/backend/codegen/builder/kernel_arguments.hpp>
#include <dnnopt/backend/codegen/builder/kernel_plan.hpp>
#include <dnnopt/backend/codegen/builder/literal.hpp>
#include <dnnopt/backend/codegen/builder/texel_access.hpp>
#include <dnnopt/graph.hpp>
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

/// The nodes that one kernel computes, in the graph that holds them.
struct block_view {
  const graph& g;
  std::vector<node_id> members;   ///< in topological order
  std::vector<value_id> outputs;  ///< values of members that the kernel stores
  node_id anchor = no_node;       ///< the member that the others surround; no_node: the only one that needs a frame
  /// Whether scales and zero points are arguments of the kernel rather than literals of its text.
  bool numbers_as_arguments = false;
};

/// A load that element expressions asked for.
struct element_load {
  value_id id;
  std::vector<index_expr> index;
  std::size_t depth;  ///< scopes that were open
  std::size_t place;  ///< of its statement in the innermost of them
};

/// Writes one kernel. Not copyable; `finish` ends it.
class kernel_builder {
 public:
  /// Precondition: shapes of all values that the kernel touches are known.
  kernel_builder(const block_view& block, std::span<const emitter_row> emitters)
      : block_(block), emitters_(emitters), members_(block.members.begin(), block.members.end()) {
    scopes_.emplace_back();
  }
  kernel_builder(const kernel_builder&) = delete;
  kernel_builder& operator=(const kernel_builder&) = delete;

  [[nodiscard]] const graph& g() const noexcept { return block_.g; }
  [[nodiscard]] const node& node_at(node_id id) const { return block_.g.node_at(id); }
  [[nodiscard]] const block_view& block() const noexcept { return block_; }
  [[nodiscard]] expr_context& expressions() noexcept { return *arguments_.expressions(); }

  // --- names and facts in the kernel's own symbols ---

  /// A loop or work-item index named `name` with values 0 .. extent - 1; the name must be declared in the source as int
  /// (long where the extent needs it).
  /// Errors: invalid_argument where the name stands for an index of another extent already.
  [[nodiscard]] index_expr index(std::string_view name, const index_expr& extent) {
    return arguments_.index(name, extent);
  }
  /// A fresh variable name.
  [[nodiscard]] std::string fresh(std::string_view prefix) { return std::string(prefix) + std::to_string(counter_++); }
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
      if (!outer) throw error(errc::unsupported, "dim '" + name + "' depends on data that are not known");
      return arguments_.integer(block_.g.expressions().symbol(name));
    });
    return arguments_.with_known_parts(named_by_graph);
  }

  // --- statements ---

  /// Appends one statement or line.
  /// Errors: unsupported where the source outgrows what its members explain: elements that many others read at
  /// different indices are computed anew by each, so that sources of a few members could double with each of them.
  void line(std::string_view text) {
    const std::size_t indent = std::min<std::size_t>(scopes_.size() * 2, 32);
    written_ += indent + text.size() + 1;
    if (written_ > most_text + most_text_of_member * members_.size())
      throw error(errc::unsupported, "the source of one kernel grows beyond " + std::to_string(written_) +
                                         " characters: its members compute elements again at many indices");
    scopes_.back().text.append(indent, ' ').append(text).append("\n");
  }
  /// Opens a nested scope: `head` is a line ending in "{". Names emitted inside are forgotten at close().
  void open(std::string_view head) {
    line(head);
    scopes_.emplace_back();
  }
  /// Closes the scope with `tail`.
  void close(std::string_view tail = "}") {
    const std::string inner = std::move(scopes_.back().text);
    scopes_.pop_back();
    scopes_.back().text += inner;
    line(tail);
  }
  /// Opens a loop over a fresh index of that extent and returns it.
  [[nodiscard]] index_expr open_loop(std::string_view prefix, const index_expr& extent) {
    const std::string name = fresh(prefix);
    const index_expr i = index(name, extent);
    const char* const type = fits_int(i.range()) ? "int " : "long ";
    open("for (" + std::string(type) + name + " = 0; " + name + " < " + index_source(extent) + "; ++" + name + ") {");
    return i;
  }
  /// How many scopes are open.
  [[nodiscard]] std::size_t depth() const noexcept { return scopes_.size(); }
  /// The loads of single elements written so far, without those of texels.
  [[nodiscard]] std::span<const element_load> loads() const noexcept { return loads_; }
  /// Starts collecting statements apart; `take` returns them.
  void begin() {
    arguments_.accesses().begin_section();
    held_.push_back(std::move(scopes_));
    scopes_.clear();
    scopes_.emplace_back();
  }
  [[nodiscard]] std::string take() {
    std::string text = std::move(scopes_.front().text);
    scopes_ = std::move(held_.back());
    held_.pop_back();
    arguments_.accesses().end_section();
    return text;
  }
  /// Declares a constant of the compute type and returns its name.
  std::string let(compute_type type, std::string_view expression) {
    const std::string name = fresh("v");
    line("const " + std::string(name_of(type)) + " " + name + " = " + std::string(expression) + ";");
    return name;
  }

  /// Declares a variable that statements change and returns its name.
  std::string variable(compute_type type, std::string_view first) {
    const std::string name = fresh("a");
    line(std::string(name_of(type)) + " " + name + " = " + std::string(first) + ";");
    return name;
  }
  /// Declares a constant integer that holds `expression` (OpenCL C) and returns it as a symbol of that range.
  [[nodiscard]] index_expr define_integer(std::string_view prefix, std::string_view expression, expr_range range) {
    const std::string name = fresh(prefix);
    line(std::string(fits_int(range) ? "const int " : "const long ") + name + " = " +
         (fits_int(range) ? "(int)(" : "(long)(") + std::string(expression) + ");");
    return expressions().symbol(name, range);
  }
  /// An index that data gave into a dim, as a symbol below `dim`: negative ones count from its end, and what is outside
  /// is the nearest place inside. An index that is never negative must be known to be inside.
  [[nodiscard]] index_expr wrap_index(const index_expr& index, const index_expr& dim) {
    if (index.range().low >= 0) return index;
    const expr_range inside = kernel_arguments::below(dim);
    const bool narrow = fits_int(index.range()) && fits_int(inside);
    return define_integer("g",
                          std::string(narrow ? "dnnopt_wrapped_index(" : "dnnopt_wrapped_index_long(") +
                              index_source(index) + ", " + index_source(dim) + ")",
                          inside);
  }
  /// Names the value of `e`, so that what is built on it takes it for an index below `extent`: the statements that use
  /// the result must stand where a test (see `within`) made that true.
  [[nodiscard]] index_expr define_index(std::string_view prefix, const index_expr& e, const index_expr& extent) {
    if (always_within(e, extent)) return e;
    return define_integer(prefix, index_source(e), kernel_arguments::below(extent));
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
  /// `at`.
  [[nodiscard]] static std::vector<index_expr> broadcast_index(const shape& dims, const shape& whole,
                                                               std::span<const index_expr> at) {
    std::vector<index_expr> own;
    for (std::size_t k = 0; k < dims.size(); ++k) {
      const std::size_t w = whole.size() - dims.size() + k;
      own.push_back(broadcast_index(dims[k], whole[w], at[w]));
    }
    return own;
  }
  /// Whether 0 <= e < extent by their ranges.
  [[nodiscard]] static bool always_within(const index_expr& e, const index_expr& extent) {
    return e.range().low >= 0 && (extent - e).range().low > 0;
  }
  /// The test 0 <= e < extent in OpenCL C, without the sides that ranges settle; empty where both are settled.
  [[nodiscard]] static std::string within(const index_expr& e, const index_expr& extent) {
    std::string test;
    if (e.range().low < 0) test = index_source(e) + " >= 0";
    if ((extent - e).range().low <= 0)
      test += (test.empty() ? "" : " && ") + index_source(e) + " < " + index_source(extent);
    return test;
  }

  /// A test that an entry of an index lies within its dim, and whether what it leaves open is still such an index.
  struct border_test {
    std::string text;     ///< empty: nothing to test
    bool bounded = true;  ///< false: entries outside pass it, and the border of an image answers them
  };
  /// The test that entry `e` of an index in `id` lies within dim `d`, for reads that shall give zero outside: without
  /// the sides on which the value's image has its border, which is (0, 0, 0, 0) of CL_RGBA (of channel orders without
  /// alpha it would be 1 in alpha). Rows of an image end at a border; the rows of a plane do where planes are layers of
  /// an image2d_array, or where there is one plane. Which ends were relied on is noted at the argument.
  [[nodiscard]] border_test within_or_zero(value_id id, std::size_t d, const index_expr& e);

  // --- elements ---

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
    const index_expr name = define_integer("at", index_source(e), e.range());
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
  /// Adds to kernel_plan::notes, once.
  void note(std::string text) {
    if (std::find(notes_.begin(), notes_.end(), text) == notes_.end()) notes_.push_back(std::move(text));
  }
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
    return let(type.compute, fill_pattern(block_.g.facts(id).type == dtype::float16 ? half_load_ : type.load,
                                          access(id, false, offset), index_source(offset), ""));
  }
  /// The bits of an element in the buffer of a value as a ulong. Errors: unsupported where it holds texels.
  [[nodiscard]] std::string load_bits(value_id id, const index_expr& offset) {
    refuse_texels(id);
    const std::size_t bytes = size_of(block_.g.facts(id).type);
    const std::string_view type = bytes == 1 ? "uchar" : bytes == 2 ? "ushort" : bytes == 4 ? "uint" : "ulong";
    return let(compute_type::natural, "((__global const " + std::string(type) + "*)" + access(id, false, offset) +
                                          ")[" + index_source(offset) + "]");
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
  /// Stores the components of the float4 `four` at offsets that are_four_neighbours, in one access. Precondition: the
  /// value is float32 or float16. Errors: as store.
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
      throw error(errc::unsupported, "rows of '" + node_at(id).name + "' are read by two index maps");
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
  /// Whether a member node of the block produces the value.
  [[nodiscard]] bool is_member_value(value_id id) const {
    const node_id producer = block_.g.value_at(id).producer;
    return producer != no_node && members_.contains(producer);
  }

  // --- functions around a hand-written frame ---

  /// Adds a function text before the kernel (complete, with newline).
  void add_function(std::string text) { functions_ += text; }
  /// Adds a function that stores: its declaration without "static inline", and its statements. Compilers leave a long
  /// one as a call, and then a loop over elements that calls it is not taken as vectors, so that it asks to be inlined.
  void add_store_function(std::string_view declaration, std::string_view statements) {
    constexpr std::size_t longest_inlined_anyway = 800;
    if (statements.size() > longest_inlined_anyway) functions_ += "__attribute__((always_inline))\n";
    functions_ += "static inline " + std::string(declaration) + " {\n" + std::string(statements) + "}\n";
  }
  /// Adds `#define <name> <value>` before the kernel.
  void define(std::string_view name, std::string_view value) {
    given_.emplace_back(name.substr(0, name.find('(')), value);
    functions_ += "#define " + std::string(name) + " " + std::string(value) + "\n";
  }
  void define(std::string_view name, std::int64_t value) { define(name, std::to_string(value)); }
  /// The same with an index expression; it may name the kernel's parameters, which the place of use must have in scope.
  /// Frames count in int; what only its symbols' ranges make wide is narrowed, for the executor refuses dims beyond
  /// int. What names parameters alone and takes more than sums and products of them is a parameter itself.
  void define(std::string_view name, const index_expr& value) {
    index_expr own = value;
    if (takes_division(value) && arguments_.is_of_integers(value))
      if (const index_expr outer = divided_by_one_at_least(translate_back(value)); always_has_value(outer))
        own = arguments_.integer(outer);
    // An int may come of long terms (a quotient), so a range that fits does not make the source an int.
    define(name, own.is_constant() ? index_source(own) : "(int)(" + index_source(own) + ")");
  }
  /// Defines `<type> <name>(DNNOPT_PARAMETERS, int <names>...)` whose statements `body()` emits, returning the C name
  /// of the result; callers pass DNNOPT_ARGUMENTS first. The names are indices made by index().
  template <class Body>
  void define_function(std::string_view name, compute_type type, std::span<const std::string> names, Body&& body,
                       std::string_view more = "") {
    begin();
    const std::string result = body();
    line("return " + result + ";");
    functions_ += "static inline " + std::string(name_of(type)) + " " + std::string(name) + "(DNNOPT_PARAMETERS" +
                  arguments_of(names) + std::string(more) + ") {\n" + take() + "}\n";
  }
  /// Defines a function as above that returns the element of `id` at `index`; `more` are further parameters.
  void define_load(std::string_view name, value_id id, std::span<const index_expr> index,
                   std::span<const std::string> names, std::string_view more = "") {
    define_function(
        name, computed_as(id), names, [&] { return emit(id, index); }, more);
  }
  /// Defines `<type> <name>(DNNOPT_PARAMETERS, int <names>..., <type> value)`; `body()` returns the C name of the
  /// result.
  template <class Body>
  void define_scalar_function(std::string_view name, std::span<const std::string> names, compute_type type,
                              Body&& body) {
    begin();
    const std::string result = body();
    line("return " + result + ";");
    const std::string c_type(name_of(type));
    add_store_function(
        c_type + " " + std::string(name) + "(DNNOPT_PARAMETERS" + arguments_of(names) + ", " + c_type + " value)",
        take());
  }
  /// Defines `void <name>(DNNOPT_PARAMETERS, int <names>..., <type> value)` whose statements `body()` emits.
  template <class Body>
  void define_procedure(std::string_view name, std::span<const std::string> names, compute_type type, Body&& body) {
    begin();
    body();
    add_store_function("void " + std::string(name) + "(DNNOPT_PARAMETERS" + arguments_of(names) + ", " +
                           std::string(name_of(type)) + " value)",
                       take());
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
  /// side by side is one access too. Where halves are defined, they are `float4 dnnopt_epilogue4(..., four)` and `void
  /// dnnopt_put4(..., four)`, and DNNOPT_EPILOGUE4 is 1. Errors: unsupported as well where the four are no texel of an
  /// output.
  template <class Finish>
  void define_store4(std::string_view name, value_id anchor, const four_results& four,
                     std::span<const std::string> names, Finish&& finish);
  /// The index of block output `out` whose element is computed from the anchor's element at `index`. Elements that
  /// views pass on to there are known from then on, and emitted for it, so the anchor's must be bound, but for
  /// `places_alone`.
  [[nodiscard]] std::vector<index_expr> index_from_anchor(value_id anchor, std::span<const index_expr> index,
                                                          value_id out, bool places_alone = false);

  /// The whole source: typedefs, parameters, functions, then the kernel. `body` is the kernel's text with
  /// DNNOPT_KERNEL_PARAMETERS as its parameter list; the prelude comes first (kernel_arguments::plan).
  ///
  /// The kernel that the body calls dnnopt_kernel is named after `version`, for profiles and logs.
  [[nodiscard]] kernel_plan finish(std::string_view prelude, std::string_view body, std::string_view version) {
    kernel_plan plan = arguments_.plan(prelude, functions_, body, version);
    plan.notes = notes_;
    return plan;
  }
  /// The same for a hand-written kernel, which is given what it needs and nothing else.
  /// Errors: invalid_argument where what was defined is not what the frame's parameters are (faults_of).
  [[nodiscard]] kernel_plan finish(std::string_view prelude, const kernel_frame& frame, std::string_view version) {
    if (const std::vector<std::string> faults = faults_of(frame, given_); !faults.empty())
      throw error(errc::invalid_argument, faults.front());
    return finish(prelude, frame.text, version);
  }
  /// A kernel of `statements` (what begin() and take() collected last) for each i below `count`, where `i` was made by
  /// index("i", count).
  [[nodiscard]] kernel_plan finish_items(std::string_view prelude, std::string_view statements, const index_expr& i,
                                         const index_expr& count, std::string_view version) {
    const std::string declared = fits_int(i.range()) ? "int i = (int)" : "long i = ";
    arguments_.accesses().ran_once(i);
    kernel_plan plan = finish(prelude,
                              "__kernel void dnnopt_kernel(DNNOPT_KERNEL_PARAMETERS) {\n  const " + declared +
                                  "get_global_id(0);\n  if (i >= " + index_source(count) + ") return;\n" +
                                  std::string(statements) + "}\n",
                              version);
    plan.global[0] = count;
    return plan;
  }

 private:
  /// Values of at most so many known elements stand in the source instead of being loaded.
  static constexpr std::size_t largest_table = 64;

  /// Operators and operands of an index that stands in the source as it is. Indices of real networks stay below, so
  /// that frames see how they depend on their own.
  static constexpr std::uint32_t longest_index = 64;

  /// Characters of a kernel's statements, and what each member adds.
  static constexpr std::size_t most_text = std::size_t{1} << 18U;
  static constexpr std::size_t most_text_of_member = 1024;

  struct scope {
    std::string text;
    std::vector<std::pair<std::pair<value_id, std::vector<index_expr>>, std::string>> known;
    std::vector<std::pair<std::pair<value_id, std::vector<index_expr>>, std::string>> texels;
    std::vector<std::pair<index_expr, index_expr>> indices;  ///< long expressions and the constants that hold them
  };

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
      throw error(errc::unsupported, "the texels of '" + block_.g.value_at(id).name + "' are not addressed singly");
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

  static std::string arguments_of(std::span<const std::string> names) {
    std::string text;
    for (const std::string& name : names) text += ", const int " + name;
    return text;
  }

  /// The store of `expression` to the element at `offset` of a value whose buffer is the C name `buffer`.
  [[nodiscard]] std::string store_statement(value_id id, std::string_view buffer, const index_expr& offset,
                                            std::string_view expression) const;
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
  void define_halves_of_store4(std::string_view name, std::span<const std::string> names, const std::string& parameters,
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
        throw error(errc::unsupported,
                    "output '" + block_.g.value_at(out).name + "' stands before the anchor with other dims");
      store_one(out, std::as_const(at));
    }
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

  block_view block_;
  std::span<const emitter_row> emitters_;
  kernel_arguments arguments_;
  std::set<node_id> members_;
  std::set<value_id> bound_;
  std::unordered_map<value_id, std::unique_ptr<value_facts>> facts_;
  std::string functions_;
  std::vector<given_parameter> given_;
  std::vector<scope> scopes_;
  std::vector<std::vector<scope>> held_;
  std::vector<element_load> loads_;
  std::string_view half_load_ = c_type_of(dtype::float16).load;
  node_id coded_node_ = no_node;
  code_form code_form_ = code_form::scaled;
  std::vector<std::string> notes_;
  std::size_t counter_ = 0;
  std::size_t written_ = 0;
  bool names_indices_ = true;
  std::map<std::pair<value_id, value_id>, bool> reached_;
  std::optional<row_moments> moments_;
};

}  // namespace dnnopt::codegen

#include <dnnopt/backend/codegen/builder/emit_element.hpp>
#include <dnnopt/backend/codegen/builder/emit_four_results.hpp>
#include <dnnopt/backend/codegen/builder/emit_stores.hpp>
#include <dnnopt/backend/codegen/builder/emit_texels.hpp>

#endif  // DNNOPT_BACKEND_CODEGEN_BUILDER_KERNEL_BUILDER_HPP

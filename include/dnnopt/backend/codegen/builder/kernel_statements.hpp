// Owns the text of one kernel: statements in nested scopes, functions around a hand-written frame, the whole source.
#ifndef DNNOPT_BACKEND_CODEGEN_BUILDER_KERNEL_STATEMENTS_HPP
#define DNNOPT_BACKEND_CODEGEN_BUILDER_KERNEL_STATEMENTS_HPP

#include <algorithm>
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
#include <dnnopt/backend/codegen/builder/frame.hpp>
#include <dnnopt/backend/codegen/builder/index_source.hpp>
#include <dnnopt/backend/codegen/builder/kernel_arguments.hpp>
#include <dnnopt/backend/codegen/builder/kernel_facts.hpp>
#include <dnnopt/backend/codegen/builder/kernel_plan.hpp>
#include <dnnopt/graph.hpp>
#include <dnnopt/inexpressible.hpp>

namespace dnnopt::codegen {

/// Collects the text of one kernel.
class kernel_statements : public kernel_facts {
 public:
  // --- statements ---

  /// A fresh variable name.
  [[nodiscard]] std::string fresh(std::string_view prefix) { return std::string(prefix) + std::to_string(counter_++); }
  /// Appends one statement or line.
  /// Errors: unsupported where the source outgrows what its members explain: elements that many others read at
  /// different indices are computed anew by each, so that sources of a few members could double with each of them.
  void line(std::string_view text) {
    const std::size_t indent = std::min<std::size_t>(scopes_.size() * 2, 32);
    written_ += indent + text.size() + 1;
    if (written_ > most_text + most_text_of_member * members_.size())
      throw inexpressible("the source of one kernel grows beyond " + std::to_string(written_) +
                          " characters: its members compute elements again at many indices");
    scopes_.back().text.append(indent, ' ').append(text).append("\n");
  }
  /// Opens a nested scope: `head` is a line ending in "{". Names emitted inside are forgotten at close().
  void open(std::string_view head) {
    line(head);
    const bool tested = scopes_.back().tested || !head.starts_with("for ");
    scopes_.emplace_back();
    scopes_.back().tested = tested;
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
  /// Starts collecting statements apart; `take` returns them. They may use `given` from their beginning, beside the
  /// kernel's integers.
  void begin(std::initializer_list<index_expr> given = {}) {
    arguments_.accesses().begin_section();
    held_.push_back(std::move(scopes_));
    scopes_.clear();
    scopes_.emplace_back();
    scopes_.front().given = given;
  }
  [[nodiscard]] std::string take() {
    std::string text = std::move(scopes_.front().beginning) + std::move(scopes_.front().text);
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
    line(declaration_of(name, expression, range));
    return expressions().symbol(name, range);
  }
  /// An expression for what stands behind a test, or is one: each quotient and remainder by what only a run tells, of
  /// what is given from the beginning, becomes a constant that is declared there, but for those that are written as
  /// multiplications. LLVM's vectorizer computes a quotient that it finds behind a test, and that is the same for all
  /// elements of a vector, only where the first element passes the test, and loads the others' by it all the same
  /// (docs/measurements/random_models.md).
  [[nodiscard]] index_expr divided_outside(const index_expr& e) {
    if (scopes_.front().given.empty() || !takes_division(e)) return e;
    return substitute_atoms(e, [this](const index_expr& atom) -> std::optional<index_expr> {
      const expr_op op = atom.node()->op;
      if (op == expr_op::symbol) return atom;
      if ((op != expr_op::floordiv && op != expr_op::mod) || !arguments_.is_of_integers(atom, scopes_.front().given))
        return std::nullopt;
      if (index_expr::from_node(atom.node()->right, atom.node()->right_constant).is_constant() ||
          multiplies(*atom.node()))
        return std::nullopt;
      for (const auto& [known, name] : scopes_.front().divided)
        if (known == atom) return name;
      const std::string value = source_outside(atom);
      if (value.empty()) return std::nullopt;
      const std::string name = fresh("at");
      scopes_.front().beginning += "  " + declaration_of(name, value, atom.range()) + "\n";
      scopes_.front().divided.emplace_back(atom, expressions().symbol(name, atom.range()));
      return scopes_.front().divided.back().second;
    });
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
  [[nodiscard]] index_expr define_index(std::string_view prefix, const index_expr& e, const index_expr& extent,
                                        index_width width = index_width::by_range) {
    if (always_within(e, extent) || arguments_.is_index_of(e, extent)) return e;
    return define_integer(prefix, index_source(divided_where_tested(e), width), kernel_arguments::below(extent));
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
    define(name, own.is_constant() ? index_source(own) : "(int)(" + index_source(own, index_width::int32) + ")");
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

  // --- the source ---

  /// Adds to kernel_plan::notes, once.
  void note(std::string text) {
    if (std::find(notes_.begin(), notes_.end(), text) == notes_.end()) notes_.push_back(std::move(text));
  }
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

 protected:
  explicit kernel_statements(const block_view& block) : kernel_facts(block) { scopes_.emplace_back(); }
  ~kernel_statements() = default;

  /// Statements, and what is known in them: elements by value and index.
  struct scope {
    std::string text;
    std::vector<std::pair<std::pair<value_id, std::vector<index_expr>>, std::string>> known;
    std::vector<std::pair<std::pair<value_id, std::vector<index_expr>>, std::string>> texels;
    std::vector<std::pair<index_expr, index_expr>> indices;  ///< long expressions and the constants that hold them
    bool tested = false;                                     ///< stands behind a test

    // Of the outermost scope alone:
    std::vector<index_expr> given;                           ///< names that hold from the beginning on
    std::string beginning;                                   ///< statements before `text`
    std::vector<std::pair<index_expr, index_expr>> divided;  ///< what these declare
  };

  static std::string arguments_of(std::span<const std::string> names) {
    std::string text;
    for (const std::string& name : names) text += ", const int " + name;
    return text;
  }

  /// The statement that declares a constant integer of that range.
  static std::string declaration_of(std::string_view name, std::string_view expression, const expr_range& range) {
    const std::string type = fits_int(range) ? "int" : "long";
    return "const " + type + " " + std::string(name) + " = (" + type + ")(" + std::string(expression) + ");";
  }
  /// The source of a quotient or remainder outside of the tests that it stands behind, where its divisor may be 0 (or
  /// below, of sizes without known bounds) and is 1 then; empty where a part of it has no such source.
  [[nodiscard]] std::string source_outside(const index_expr& atom) {
    const index_expr value = divided_by_one_at_least(atom);
    if (always_has_value(value)) return index_source(value);
    const detail::expr_node& n = *atom.node();
    const index_expr left = divided_outside(index_expr::from_node(n.left, n.left_constant));
    const index_expr right = divided_outside(index_expr::from_node(n.right, n.right_constant));
    if (!always_has_value(left) || !always_has_value(right)) return {};
    const std::string divisor = index_source(right);
    return std::string(n.op == expr_op::floordiv ? "dnnopt_floordiv(" : "dnnopt_floormod(") + index_source(left) +
           ", " + divisor + " == 0 ? 1 : " + divisor + ")";
  }
  /// divided_outside() where a test stands around.
  [[nodiscard]] index_expr divided_where_tested(const index_expr& e) {
    return scopes_.back().tested ? divided_outside(e) : e;
  }

  std::string functions_;
  std::vector<scope> scopes_;

 private:
  /// Characters of a kernel's statements, and what each member adds.
  static constexpr std::size_t most_text = std::size_t{1} << 18U;
  static constexpr std::size_t most_text_of_member = 1024;

  std::vector<given_parameter> given_;
  std::vector<std::vector<scope>> held_;
  std::vector<std::string> notes_;
  std::size_t counter_ = 0;
  std::size_t written_ = 0;
};

}  // namespace dnnopt::codegen

#endif  // DNNOPT_BACKEND_CODEGEN_BUILDER_KERNEL_STATEMENTS_HPP

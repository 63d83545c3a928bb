// Owns memory of the caller in place of a session's own: which buffer or image is bound to which input or output of a
// program, whether kernels can use it as it is, and what forbids it.
//
// What a session exchanges with its caller is stored dense, row-major and in the model's own type, whatever precision
// and memory objects the session has inside (narrow_storage and pack_storage leave such values alone), or as the texels
// that were stated when it was compiled (exchange_texels.hpp). Memory of that layout is all that can be bound, and
// nothing here ever converts it.
#ifndef DNNOPT_BACKEND_RUN_BOUND_MEMORY_HPP
#define DNNOPT_BACKEND_RUN_BOUND_MEMORY_HPP

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dnnopt/backend/opencl/context.hpp>
#include <dnnopt/backend/program/program.hpp>
#include <dnnopt/backend/program/storages.hpp>
#include <dnnopt/backend/program/texel_images.hpp>
#include <dnnopt/bound_value.hpp>

namespace dnnopt {

/// The memory that is bound to the inputs and outputs of one program.
///
/// The context and the program must outlive it. It keeps OpenCL's objects alive until they are unbound or replaced.
class bound_memory {
 public:
  bound_memory(const opencl::context& where, const program& p) : where_(&where), program_(&p) {
    const graph& g = *p.g;
    inputs_.resize(g.inputs().size());
    outputs_.resize(g.outputs().size());
    for (const placed_node& step : p.steps) {
      for (const codegen::kernel_plan& plan : step.lowered.kernels)
        for (const codegen::pointer_argument& argument : plan.pointers)
          if (argument.held != no_value)
            (argument.written ? written_by_kernel_ : read_by_kernel_).insert(p.roots[argument.held]);
      if (step.where == placement::bodies)
        for (const value_id out : g.node_at(step.id).outputs)
          if (out != no_value) body_writer_.emplace(p.roots[out], step.id);
      if (!is_on_host(step.where)) continue;
      for (const value_id in : g.node_at(step.id).inputs)
        if (in != no_value) host_reader_.emplace(p.roots[in], step.id);
      for (const value_id out : g.node_at(step.id).outputs)
        if (out != no_value) host_writer_.emplace(p.roots[out], step.id);
    }
  }

  /// Puts `memory` in the place of the input or output `name`; what was bound there before is let go. `dims` is the
  /// shape that an input with symbolic dims has in it; without it other inputs must tell those symbols at each run.
  ///
  /// A value that the caller exchanges as texels takes a buffer of them, or an image of the kind and extents stated:
  /// kernels read and write any texel type that opencl::texel_type names as floats.
  ///
  /// Errors: missing_input, no input or output has that name; unsupported, the name is an input and an output, or its
  /// elements are no numbers of a known rank; invalid_argument, no buffer (or image, where that was stated), one of
  /// another context, without the access that kernels need (inputs are read, outputs in buffers are read and written: a
  /// frame may keep sums there), that begins where kernels cannot read vectors, is too small, an image of another kind
  /// or other extents, one of integers that a host operator would have to read, and `dims` for an output;
  /// shape_mismatch, `dims` contradict the model's.
  bound_value bind(std::string_view name, cl_mem memory, std::optional<dim_list> dims = std::nullopt) {
    const place at = find(name);
    const value& v = value_of(at);
    refuse_kind(v);
    if (dims) refuse_dims(at, v, *dims);
    held made;
    made.dims = std::move(dims);
    if (lies_in_image(v.facts)) {
      made.image = where_->memory().wrap_image(memory, name);
      refuse_image(at, made.image);
    } else {
      refuse_stray_image(v, memory);
      made.memory = where_->memory().wrap(memory, name);
      refuse_access(v.name, made.memory, at.output);
      refuse_start(v.name, made.memory);
      if (is_static(*v.facts.dims)) refuse_size(v, made.memory, symbol_values());
    }
    slot(at) = std::move(made);
    settle();
    return row_of(at);
  }

  /// Gives the value its session's own memory again. Whether something was bound. Errors: missing_input.
  bool unbind(std::string_view name) {
    std::optional<held>& at = slot(find(name));
    if (!at) return false;
    at.reset();
    settle();
    return true;
  }

  /// All that is bound: inputs, then outputs, in the graph's order.
  [[nodiscard]] std::vector<bound_value> rows() const {
    std::vector<bound_value> all;
    for (const bool output : {false, true})
      for (std::size_t i = 0; i < (output ? outputs_ : inputs_).size(); ++i)
        if ((output ? outputs_ : inputs_)[i]) all.push_back(row_of({output, i}));
    return all;
  }

  [[nodiscard]] bool is_input_bound(std::size_t i) const { return inputs_.at(i).has_value(); }
  [[nodiscard]] bool is_output_bound(std::size_t i) const { return outputs_.at(i).has_value(); }
  /// The buffer bound to an input or an output. Precondition: one is, and no image.
  [[nodiscard]] const opencl::device_buffer& input(std::size_t i) const { return inputs_.at(i).value().memory; }
  [[nodiscard]] const opencl::device_buffer& output(std::size_t i) const { return outputs_.at(i).value().memory; }
  /// Whether kernels write a bound output in its own memory. Precondition: it is bound.
  [[nodiscard]] bool has_in_place(std::size_t i) const {
    const auto used = by_root_.find(program_->roots[program_->g->outputs()[i]]);
    return used != by_root_.end() && used->second == &outputs_.at(i).value();
  }
  /// The dims that were stated for a bound input, or null.
  [[nodiscard]] const dim_list* stated_dims(std::size_t i) const {
    return inputs_.at(i) && inputs_[i]->dims ? &*inputs_[i]->dims : nullptr;
  }
  /// The bound buffer that kernels use for a root, or null where they use the session's own or an image.
  [[nodiscard]] const opencl::device_buffer* of_root(value_id root) const {
    const auto found = by_root_.find(root);
    return found == by_root_.end() || !found->second->image.empty() ? nullptr : &found->second->memory;
  }
  /// The bound image that kernels use for a root, or null.
  [[nodiscard]] const opencl::device_image* image_of_root(value_id root) const {
    const auto found = by_root_.find(root);
    return found == by_root_.end() || found->second->image.empty() ? nullptr : &found->second->image;
  }

  /// Roots whose memory is another one since the last call: arguments set before are of no use.
  [[nodiscard]] std::set<value_id> take_changed() { return std::exchange(changed_, {}); }

  /// What can only be seen when all is bound and a run knows its sizes; before anything is enqueued.
  /// Errors: invalid_argument, an output's memory is that of another bound value (inputs may share theirs), the host
  /// must copy but may not, or the memory is too small for this run; unbound_symbol, nothing tells an input's dims.
  void check(const symbol_values& symbols) {
    if (unchecked_) {
      refuse_overlaps();
      for_each_bound([&](place at, const held&) { refuse_host_access(at); });
      unchecked_ = false;
    }
    if (!symbolic_) return;
    for_each_bound([&](place at, const held& bound) {
      const value& v = value_of(at);
      if (is_static(*v.facts.dims)) return;  // bind() saw to it, and to images
      if (known_dims(*v.facts.dims, symbols))
        refuse_size(v, bound.memory, symbols);
      else if (!at.output)
        throw error(errc::unbound_symbol, "input '" + v.name + "' is bound without dims, and no other input tells " +
                                              to_string(*v.facts.dims));
    });
  }

  /// As check() of one root, for a size that the run itself tells. Errors: invalid_argument.
  void check_late(value_id root, const symbol_values& symbols) const {
    for_each_bound([&](place at, const held& bound) {
      const value& v = value_of(at);
      if (program_->roots[id_of(at)] == root && !is_static(*v.facts.dims)) refuse_size(v, bound.memory, symbols);
    });
  }

  /// A run came to its end with these values of the symbols; rows() tells dims by them.
  void ran(const symbol_values& symbols) {
    if (symbolic_) last_ = symbols;
  }

 private:
  struct place {
    bool output = false;
    std::size_t position = 0;
  };
  struct held {
    opencl::device_buffer memory;
    opencl::device_image image;  ///< in place of `memory` where the value lies in one
    std::optional<dim_list> dims;

    [[nodiscard]] cl_mem handle() const { return image.empty() ? memory.handle() : image.handle(); }
  };
  /// Why a value is copied, by whom; nothing where kernels use the memory itself.
  struct copy_reason {
    std::string text;
    bool through_host = false;
  };
  /// Frames read four neighbours of a row as one vector, which OpenCL wants aligned to its size.
  static constexpr std::size_t vector_bytes = 16;

  [[nodiscard]] place find(std::string_view name) const {
    const graph& g = *program_->g;
    std::optional<place> found;
    for (const bool output : {false, true}) {
      const auto& ids = output ? g.outputs() : g.inputs();
      for (std::size_t i = 0; i < ids.size(); ++i) {
        if (g.value_at(ids[i]).name != name) continue;
        if (found && !found->output && output)
          throw error(errc::unsupported, "'" + std::string(name) + "' is an input and an output of the model");
        if (!found) found = place{output, i};
      }
    }
    if (!found) throw error(errc::missing_input, "the model has no input or output '" + std::string(name) + "'");
    return *found;
  }
  [[nodiscard]] value_id id_of(place at) const {
    return at.output ? program_->g->outputs()[at.position] : program_->g->inputs()[at.position];
  }
  [[nodiscard]] const value& value_of(place at) const { return program_->g->value_at(id_of(at)); }
  [[nodiscard]] std::optional<held>& slot(place at) { return (at.output ? outputs_ : inputs_)[at.position]; }
  [[nodiscard]] const std::optional<held>& slot(place at) const {
    return (at.output ? outputs_ : inputs_)[at.position];
  }

  template <class Call>
  void for_each_bound(const Call& call) const {
    for (const bool output : {false, true})
      for (std::size_t i = 0; i < (output ? outputs_ : inputs_).size(); ++i)
        if (const auto& bound = slot({output, i})) call(place{output, i}, *bound);
  }

  /// The dims under `symbols`, or nothing where one is not known.
  [[nodiscard]] static std::optional<dim_list> known_dims(const shape& dims, const symbol_values& symbols) {
    dim_list known;
    for (const index_expr& dim : dims) {
      const auto number = dim.try_evaluate(symbols);
      if (!number) return std::nullopt;
      known.push_back(*number);
    }
    return known;
  }

  static void refuse_kind(const value& v) {
    const value_facts& facts = v.facts;
    if (facts.kind == value_kind::tensor && facts.dims && facts.type != dtype::undefined && facts.type != dtype::string)
      return;
    throw error(errc::unsupported, "'" + v.name + "' cannot lie in a buffer: it is " +
                                       (facts.kind != value_kind::tensor ? std::string("no tensor")
                                        : !facts.dims                    ? std::string("of unknown rank")
                                                      : "of type " + std::string(name_of(facts.type))));
  }

  static void refuse_dims(place at, const value& v, const dim_list& dims) {
    if (at.output)
      throw error(errc::invalid_argument, "dims for the output '" + v.name + "': they follow from the inputs");
    bool fits = dims.size() == v.facts.dims->size();
    for (std::size_t k = 0; fits && k < dims.size(); ++k) {
      const auto wanted = (*v.facts.dims)[k].as_constant();
      fits = dims[k] >= 0 && (!wanted || *wanted == dims[k]);
    }
    if (!fits)
      throw error(errc::shape_mismatch,
                  "'" + v.name + "' is bound with shape " + to_string(dims) + ", not " + to_string(*v.facts.dims));
  }

  static cl_mem_flags flags_of(cl_mem memory) {
    cl_mem_flags flags = 0;
    opencl::check(::clGetMemObjectInfo(memory, CL_MEM_FLAGS, sizeof flags, &flags, nullptr), "clGetMemObjectInfo");
    return flags;
  }

  static void refuse_access(const std::string& name, const opencl::device_buffer& memory, bool output) {
    const cl_mem_flags flags = flags_of(memory.handle());
    if ((flags & CL_MEM_WRITE_ONLY) != 0)
      throw error(errc::invalid_argument, "the buffer for " + std::string(output ? "output '" : "input '") + name +
                                              "' is CL_MEM_WRITE_ONLY: kernels read it");
    if (output && (flags & CL_MEM_READ_ONLY) != 0)
      throw error(errc::invalid_argument, "the buffer for output '" + name + "' is CL_MEM_READ_ONLY: kernels write it");
  }

  /// The image must be what was stated when the session was compiled, so that kernels find its border where they expect
  /// it, and the access that they need.
  void refuse_image(place at, const opencl::device_image& image) const {
    const value& v = value_of(at);
    const opencl::image_shape wanted = image_shape_of(texel_storage_of(v.facts), symbol_values());
    opencl::image_shape given = image.shape();
    const opencl::texel_type texel = std::exchange(given.texel, wanted.texel);
    const auto refuse = [&](const std::string& why) {
      return error(errc::invalid_argument, "the image for '" + v.name + "' " + why);
    };
    if (!(given == wanted))
      throw refuse("is an " + opencl::device_memory::describe(image.shape()) + ", not an " +
                   opencl::device_memory::describe(wanted));
    const auto reader = host_reader_.find(program_->roots[id_of(at)]);
    if (texel != wanted.texel && reader != host_reader_.end())
      throw refuse("has " + std::string(name_of(texel)) + " texels, but " + host_operator(reader->second) +
                   " reads it: " + std::string(name_of(wanted.texel)) + " are needed");
    const cl_mem_flags flags = flags_of(image.handle());
    const bool read = !at.output || read_by_kernel_.contains(program_->roots[id_of(at)]);
    if (read && (flags & CL_MEM_WRITE_ONLY) != 0) throw refuse("is CL_MEM_WRITE_ONLY: kernels read it");
    if (at.output && (flags & CL_MEM_READ_ONLY) != 0) throw refuse("is CL_MEM_READ_ONLY: kernels write it");
  }

  /// An image for a value in rows is a wish that compile was not told.
  static void refuse_stray_image(const value& v, cl_mem memory) {
    cl_mem_object_type type = CL_MEM_OBJECT_BUFFER;
    if (memory == nullptr || ::clGetMemObjectInfo(memory, CL_MEM_TYPE, sizeof type, &type, nullptr) != CL_SUCCESS ||
        type == CL_MEM_OBJECT_BUFFER)
      return;
    throw error(errc::invalid_argument, "the caller's memory object is no buffer ('" + v.name +
                                            "'), and compile_options::texels states no image for it");
  }

  void refuse_start(const std::string& name, const opencl::device_buffer& memory) const {
    const std::size_t alignment = where_->info().base_address_alignment_bytes;
    if (alignment != 0 && memory.offset() % alignment != 0)
      throw error(errc::invalid_argument,
                  "the buffer for '" + name + "' begins at byte " + std::to_string(memory.offset()) +
                      " of another: the device needs a multiple of " + std::to_string(alignment));
    void* host = nullptr;
    opencl::check(::clGetMemObjectInfo(memory.handle(), CL_MEM_HOST_PTR, sizeof host, &host, nullptr),
                  "clGetMemObjectInfo");
    if (reinterpret_cast<std::uintptr_t>(host) % vector_bytes != 0)
      throw error(errc::invalid_argument, "the buffer for '" + name +
                                              "' is host memory that begins at no multiple of " +
                                              std::to_string(vector_bytes) + " bytes");
  }

  static void refuse_size(const value& v, const opencl::device_buffer& memory, const symbol_values& symbols) {
    const auto needed = static_cast<std::uint64_t>(detail::bytes_of(v.facts)->evaluate(symbols));
    if (needed > memory.bytes())
      throw error(errc::invalid_argument, "the buffer for '" + v.name + "' has " + std::to_string(memory.bytes()) +
                                              " bytes, " + std::string(name_of(v.facts.type)) + " of shape " +
                                              to_string(evaluate(*v.facts.dims, symbols)) + " needs " +
                                              std::to_string(needed));
  }

  /// Whether two are one memory object, or parts of one buffer; an image over a buffer is not seen.
  [[nodiscard]] static bool overlap(const held& a, const held& b) {
    if (a.image.empty() && b.image.empty()) return a.memory.overlaps(b.memory);
    return a.handle() == b.handle();
  }

  void refuse_overlaps() const {
    for_each_bound([&](place at, const held& written) {
      if (!at.output) return;
      for_each_bound([&](place other, const held& memory) {
        const bool same = other.output && other.position == at.position;
        if (!same && overlap(written, memory))
          throw error(errc::invalid_argument, "output '" + value_of(at).name + "' and " +
                                                  (other.output ? "output '" : "input '") + value_of(other).name +
                                                  "' are bound to the same memory");
      });
    });
  }

  void refuse_host_access(place at) const {
    if (!slot(at)) return;
    const auto reason = why_copied(at);
    if (!reason || !reason->through_host) return;
    const cl_mem_flags forbidden = CL_MEM_HOST_NO_ACCESS | (at.output ? cl_mem_flags{CL_MEM_HOST_READ_ONLY}
                                                                      : cl_mem_flags{CL_MEM_HOST_WRITE_ONLY});
    if ((flags_of(slot(at)->handle()) & forbidden) != 0)
      throw error(errc::invalid_argument, "the flags of the memory for '" + value_of(at).name +
                                              "' forbid the host to copy it, but " + reason->text);
  }

  [[nodiscard]] std::string host_operator(node_id id) const {
    const node& n = program_->g->node_at(id);
    return "host operator '" + n.name + "' (" + std::string(n.op->name) + ")";
  }

  [[nodiscard]] bool is_on_device_only(value_id out) const {
    const value_id root = program_->roots[out];
    const graph& g = *program_->g;
    return written_by_kernel_.contains(root) && !host_writer_.contains(root) && !body_writer_.contains(root) &&
           !g.facts(out).is_constant() && !g.facts(out).elements;
  }

  [[nodiscard]] std::optional<copy_reason> why_copied(place at) const {
    const graph& g = *program_->g;
    const value_id id = id_of(at);
    const value_id root = program_->roots[id];
    if (!at.output) {
      const auto reader = host_reader_.find(root);
      if (reader == host_reader_.end()) return std::nullopt;
      return copy_reason{host_operator(reader->second) + " reads it: downloaded at every inference", true};
    }
    if (g.facts(id).is_constant() || g.facts(root).is_constant())
      return copy_reason{"it is a constant: uploaded at every inference", true};
    if (const auto writer = host_writer_.find(root); writer != host_writer_.end())
      return copy_reason{host_operator(writer->second) + " computes it: uploaded at every inference", true};
    if (const auto writer = body_writer_.find(root); writer != body_writer_.end())
      return copy_reason{"a body of '" + g.node_at(writer->second).name + "' hands it over: copied at every inference",
                         false};
    if (g.facts(id).elements)
      return copy_reason{"its elements are expressions of dims: uploaded at every inference", true};
    for (std::size_t i = 0; i < inputs_.size(); ++i)
      if (g.inputs()[i] == root)
        return copy_reason{"it is input '" + g.value_at(root).name + "' under another shape: copied at every inference",
                           !inputs_[i].has_value()};
    if (has_in_place(at.position)) return std::nullopt;
    return copy_reason{"its memory is that of another bound output too: copied at every inference", false};
  }

  [[nodiscard]] bound_value row_of(place at) const {
    const value& v = value_of(at);
    const held& bound = *slot(at);
    bound_value row;
    row.name = v.name;
    row.is_output = at.output;
    row.type = v.facts.type;
    if (auto reason = why_copied(at)) {
      row.use = bound_use::copied;
      row.reason = std::move(reason->text);
    }
    row.bytes = bound.image.empty() ? bound.memory.bytes() : bound.image.bytes();
    row.dims = known_dims(*v.facts.dims, last_.value_or(symbol_values()));
    if (!row.dims) row.dims = bound.dims;
    return row;
  }

  /// Which memory kernels use from now on. Of bound outputs that are one memory in the program, the first has it.
  void settle() {
    std::map<value_id, const held*> now;
    symbolic_ = false;
    for_each_bound([&](place at, const held& bound) {
      const value_id id = id_of(at);
      symbolic_ = symbolic_ || !is_static(*program_->g->facts(id).dims);
      if (!at.output || is_on_device_only(id)) now.try_emplace(program_->roots[id], &bound);
    });
    std::map<value_id, cl_mem> handles;
    for (const auto& [root, used] : now) handles.emplace(root, used->handle());
    for (const auto& [root, handle] : handles)
      if (const auto old = handles_.find(root); old == handles_.end() || old->second != handle) changed_.insert(root);
    for (const auto& [root, handle] : handles_)
      if (!now.contains(root)) changed_.insert(root);
    by_root_ = std::move(now);
    handles_ = std::move(handles);
    unchecked_ = true;
    last_.reset();
  }

  const opencl::context* where_;
  const program* program_;
  std::set<value_id> written_by_kernel_;  // roots
  std::set<value_id> read_by_kernel_;
  std::map<value_id, node_id> host_reader_;  // by root
  std::map<value_id, node_id> host_writer_;
  std::map<value_id, node_id> body_writer_;
  std::vector<std::optional<held>> inputs_;  // by position in the graph
  std::vector<std::optional<held>> outputs_;
  std::map<value_id, const held*> by_root_;
  std::map<value_id, cl_mem> handles_;  // of by_root_, whose memory may be another one by now
  std::set<value_id> changed_;
  std::optional<symbol_values> last_;
  bool symbolic_ = false;   // something bound has symbolic dims
  bool unchecked_ = false;  // what is bound changed since check()
};

}  // namespace dnnopt

#endif  // DNNOPT_BACKEND_RUN_BOUND_MEMORY_HPP

// The C interface: handles around the C++ library, errors as codes and texts.
#define DNNOPT_BUILDING 1
#include <dnnopt.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include <dnnopt/backend/measure/profile_runs.hpp>
#include <dnnopt/backend/opencl/device.hpp>
#include <dnnopt/device_info_json.hpp>
#include <dnnopt/dnnopt.hpp>
#include <dnnopt/half_io.hpp>
#include <dnnopt/onnx/export.hpp>
#include <dnnopt/profile/report/report_json.hpp>
#include <dnnopt/reference/parse_value.hpp>

struct dnnopt_options {
  dnnopt::compile_options compiling;
  std::vector<std::string> overridden_inputs;
  std::map<std::string, std::string> values;  ///< of inputs by name; a model tells their types
  bool exchanges_halves = false;
  dnnopt_log_callback log = nullptr;
  void* user = nullptr;
};

struct dnnopt_model {
  dnnopt::model held;
};

namespace {

/// An input or output as the interface tells it.
struct port {
  std::string name;
  dnnopt_type type = DNNOPT_UNDEFINED;
  std::int32_t rank = -1;
  std::vector<std::int64_t> dims;      ///< -1 where a run tells it
  std::vector<std::string> dim_names;  ///< empty where the dim is a number
};

}  // namespace

struct dnnopt_session {
  dnnopt::session held;
  std::vector<port> ports[2];  ///< by dnnopt_side
};

struct dnnopt_outputs {
  std::vector<std::pair<std::string, dnnopt::tensor>> rows;
  std::vector<std::vector<const char*>> texts;  ///< of string tensors, by position; empty for others
};

struct dnnopt_buffer {
  cl::Context context;
  cl::CommandQueue queue;
  cl::Buffer memory;
  std::size_t bytes = 0;
};

namespace {

thread_local std::string last_error;

/// Runs `work`, and turns what it throws into a code and the thread's text.
template <class Work>
dnnopt_status guarded(Work&& work) noexcept {
  const auto fail = [](dnnopt_status status, const char* text) noexcept {
    try {
      last_error = text;
    } catch (...) {
      last_error.clear();
    }
    return status;
  };
  try {
    work();
    return DNNOPT_OK;
  } catch (const dnnopt::error& e) {
    return fail(static_cast<dnnopt_status>(e.code()), e.what());
  } catch (const std::bad_alloc&) {
    return fail(DNNOPT_OUT_OF_MEMORY, "the host has no memory left");
  } catch (const std::exception& e) {
    return fail(DNNOPT_INTERNAL, e.what());
  } catch (...) {
    return fail(DNNOPT_INTERNAL, "an error without a text");
  }
}

[[noreturn]] void refuse(const std::string& text) { throw dnnopt::error(dnnopt::errc::invalid_argument, text); }

/// Refuses NULL where a pointer is needed.
void need(const void* pointer, const char* what) {
  if (pointer == nullptr) refuse(std::string(what) + " is NULL");
}

char* text_of(const std::string& text) {
  char* const copy = static_cast<char*>(std::malloc(text.size() + 1));
  if (copy == nullptr) throw std::bad_alloc();
  std::memcpy(copy, text.c_str(), text.size() + 1);
  return copy;
}

void tell(const dnnopt_options* options, const std::vector<dnnopt::warning>& warnings, std::size_t first = 0) {
  if (options == nullptr || options->log == nullptr) return;
  for (std::size_t i = first; i < warnings.size(); ++i)
    options->log(options->user, std::string(dnnopt::name_of(warnings[i].code)).c_str(), warnings[i].text.c_str());
}

// --- memory on the device ---

dnnopt_buffer buffer_in(const dnnopt::session& session, std::size_t bytes) {
  if (session.context() == nullptr)
    throw dnnopt::error(dnnopt::errc::unsupported, "the reference backend has no device memory");
  cl_int failed = CL_SUCCESS;
  dnnopt_buffer made;
  made.bytes = bytes;
  made.context = cl::Context(session.context()->handle(), true);
  made.queue = cl::CommandQueue(made.context, cl::Device(session.context()->where().handle(), true),
                                cl_command_queue_properties{0}, &failed);
  dnnopt::opencl::check(failed, "clCreateCommandQueue");
  made.memory = cl::Buffer(made.context, CL_MEM_READ_WRITE, bytes, nullptr, &failed);
  dnnopt::opencl::check(failed, "clCreateBuffer");
  return made;
}

void copy_with(const dnnopt_buffer& buffer, const void* from, void* to, std::size_t bytes) {
  if (from != nullptr)
    dnnopt::opencl::check(buffer.queue.enqueueWriteBuffer(buffer.memory, CL_TRUE, 0, bytes, from),
                          "clEnqueueWriteBuffer");
  if (to != nullptr)
    dnnopt::opencl::check(buffer.queue.enqueueReadBuffer(buffer.memory, CL_TRUE, 0, bytes, to), "clEnqueueReadBuffer");
}

// --- options ---

std::int64_t number_of(std::string_view name, std::string_view text) {
  std::int64_t number = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (failed != std::errc() || end != text.data() + text.size() || number < 0)
    refuse("option " + std::string(name) + ": '" + std::string(text) + "' is no number of 0 or more");
  return number;
}

std::vector<std::int64_t> numbers_of(std::string_view name, std::string_view text, char separator) {
  std::vector<std::int64_t> numbers;
  for (std::size_t cut = 0; cut != std::string_view::npos;) {
    cut = text.find(separator);
    numbers.push_back(number_of(name, text.substr(0, cut)));
    if (cut != std::string_view::npos) text.remove_prefix(cut + 1);
  }
  return numbers;
}

/// What `find` makes of a text. Errors: invalid_argument where it knows none of that name.
template <class Find>
auto named(std::string_view option, std::string_view value, Find&& find) {
  const auto found = find(value);
  if (!found) refuse("option " + std::string(option) + " does not take '" + std::string(value) + "'");
  return *found;
}

using setter = void (*)(dnnopt_options&, std::string_view name, const std::string& value);
struct option_row {
  std::string_view name;  ///< with ':' at its end where a name of the model follows
  setter set;
};

constexpr option_row option_table[] = {
    {"device", [](dnnopt_options& o, std::string_view, const std::string& v) { o.compiling.device = v; }},
    {"require_device", [](dnnopt_options& o, std::string_view name,
                          const std::string& v) { o.compiling.require_device = number_of(name, v) != 0; }},
    {"precision", [](dnnopt_options& o, std::string_view name,
                     const std::string& v) { o.compiling.precision = named(name, v, dnnopt::find_precision); }},
    {"form", [](dnnopt_options& o, std::string_view name,
                const std::string& v) { o.compiling.form = named(name, v, dnnopt::find_kernel_form); }},
    {"wait", [](dnnopt_options& o, std::string_view name,
                const std::string& v) { o.compiling.wait = named(name, v, dnnopt::find_wait_mode); }},
    {"first_start", [](dnnopt_options& o, std::string_view name,
                       const std::string& v) { o.compiling.first_start = named(name, v, dnnopt::find_first_start); }},
    {"passes", [](dnnopt_options& o, std::string_view, const std::string& v) { o.compiling.passes = v; }},
    {"memory_objects",
     [](dnnopt_options& o, std::string_view name, const std::string& v) {
       o.compiling.memory_objects = named(name, v, dnnopt::find_memory_objects);
     }},
    {"memory_strategy",
     [](dnnopt_options& o, std::string_view, const std::string& v) { o.compiling.memory.strategy = v; }},
    {"io_types",
     [](dnnopt_options& o, std::string_view name, const std::string& v) {
       if (v != "model" && v != "float16")
         refuse("option " + std::string(name) + ": '" + v + "' is none of model, float16");
       o.exchanges_halves = v == "float16";
     }},
    {"memory_limit",
     [](dnnopt_options& o, std::string_view name, const std::string& v) {
       o.compiling.memory_limit = static_cast<std::uint64_t>(number_of(name, v));
     }},
    {"program_folder",
     [](dnnopt_options& o, std::string_view, const std::string& v) {
       o.compiling.programs.folder = v;
       o.compiling.programs.on_disk = !v.empty();
     }},
    {"overridden_input",
     [](dnnopt_options& o, std::string_view, const std::string& v) { o.overridden_inputs.push_back(v); }},
    {"dim:", [](dnnopt_options& o, std::string_view name,
                const std::string& v) { o.compiling.dims[std::string(name)] = number_of(name, v); }},
    {"shape:", [](dnnopt_options& o, std::string_view name,
                  const std::string& v) { o.compiling.shapes[std::string(name)] = numbers_of(name, v, 'x'); }},
    {"value:", [](dnnopt_options& o, std::string_view name, const std::string& v) { o.values[std::string(name)] = v; }},
    {"range:",
     [](dnnopt_options& o, std::string_view name, const std::string& v) {
       const auto numbers = numbers_of(name, v, ':');
       if (numbers.size() < 2 || numbers.size() > 3) refuse("option range:NAME takes LOW:HIGH or LOW:HIGH:MULTIPLE");
       o.compiling.ranges[std::string(name)] = {numbers[0], numbers[1], numbers.size() == 3 ? numbers[2] : 1};
     }},
};

void set_option(dnnopt_options& options, std::string_view name, const std::string& value) {
  std::string all;
  for (const option_row& row : option_table) {
    const bool takes_name = row.name.back() == ':';
    if (takes_name ? name.starts_with(row.name) && name.size() > row.name.size() : name == row.name)
      return row.set(options, takes_name ? name.substr(row.name.size()) : name, value);
    all += (all.empty() ? "" : ", ") + std::string(row.name) + (takes_name ? "NAME" : "");
  }
  refuse("there is no option '" + std::string(name) + "'; there are " + all);
}

// --- models and sessions ---

/// The model with inputs and outputs in halves, where the options ask for that.
std::optional<dnnopt::model> in_halves(const dnnopt_options* options, const dnnopt::model& model) {
  if (options == nullptr || !options->exchanges_halves) return std::nullopt;
  dnnopt::model halves = model;
  dnnopt::exchange_halves(halves);
  return halves;
}

dnnopt::load_options loading_of(const dnnopt_options* options) {
  dnnopt::load_options loading;
  if (options != nullptr) loading.overridden_inputs = options->overridden_inputs;
  return loading;
}

/// Errors: missing_input for a value of an unknown input; usage where it is no number.
dnnopt::compile_options compiling_of(const dnnopt_options* options, const dnnopt::model& model) {
  if (options == nullptr) return {};
  dnnopt::compile_options compiling = options->compiling;
  for (const auto& [name, text] : options->values) {
    dnnopt::value_facts facts;  // an unknown name is told when the value is bound
    for (const dnnopt::value_id id : model.main.inputs())
      if (model.main.value_at(id).name == name) facts = model.main.facts(id);
    compiling.values[name] = dnnopt::reference::parse_value(facts, text);
  }
  return compiling;
}

port port_of(const dnnopt::value& value) {
  port result;
  result.name = value.name;
  const dnnopt::value_facts& facts = value.facts;
  if (facts.kind == dnnopt::value_kind::tensor) result.type = static_cast<dnnopt_type>(facts.type);
  if (!facts.dims) return result;
  result.rank = static_cast<std::int32_t>(facts.dims->size());
  for (const dnnopt::index_expr& dim : *facts.dims) {
    result.dims.push_back(dim.as_constant().value_or(-1));
    result.dim_names.push_back(dim.is_constant() ? std::string() : dnnopt::to_string(dim));
  }
  return result;
}

const port* find_port(const dnnopt_session* session, dnnopt_side side, std::size_t index) noexcept {
  if (session == nullptr || (side != DNNOPT_INPUTS && side != DNNOPT_OUTPUTS)) return nullptr;
  const std::vector<port>& all = session->ports[side];
  return index < all.size() ? &all[index] : nullptr;
}

dnnopt::tensor tensor_of(const dnnopt_tensor& given) {
  const std::string subject = "input '" + std::string(given.name) + "'";
  if (given.type <= 0 || static_cast<std::size_t>(given.type) >= dnnopt::dtype_table.size())
    refuse(subject + " has an unknown element type, " + std::to_string(given.type));
  if (given.rank < 0 || (given.rank > 0 && given.dims == nullptr)) refuse(subject + " has no dims");
  const auto type = static_cast<dnnopt::dtype>(given.type);
  dnnopt::dim_list dims(given.dims, given.dims + given.rank);
  const auto count = static_cast<std::size_t>(dnnopt::element_count(dims));
  const bool is_text = type == dnnopt::dtype::string;
  const std::size_t each = is_text ? sizeof(char*) : dnnopt::dtype_table[static_cast<std::size_t>(given.type)].bytes;
  if (each == 0 || given.bytes / each != count || given.bytes % each != 0 || (count != 0 && given.data == nullptr))
    refuse(subject + " has " + std::to_string(given.bytes) + " bytes where " + dnnopt::to_string(dims) + " of " +
           std::string(dnnopt::name_of(type)) + " needs " + std::to_string(count * each));
  if (!is_text)
    return dnnopt::tensor::view(type, std::move(dims), {static_cast<const std::byte*>(given.data), given.bytes}, {});
  dnnopt::tensor result(type, std::move(dims));
  const auto* const texts = static_cast<const char* const*>(given.data);
  for (std::size_t i = 0; i < count; ++i) {
    need(texts[i], "a string of an input");
    result.mutable_strings()[i] = texts[i];
  }
  return result;
}

dnnopt::named_tensors inputs_of(const dnnopt_tensor* inputs, std::size_t count) {
  if (count != 0) need(inputs, "inputs");
  dnnopt::named_tensors result;
  for (std::size_t i = 0; i < count; ++i) {
    need(inputs[i].name, "the name of an input");
    if (result.find(inputs[i].name) != nullptr) refuse("input '" + std::string(inputs[i].name) + "' is given twice");
    result.add(inputs[i].name, tensor_of(inputs[i]));
  }
  return result;
}

/// An output that lies in memory of its own: where it shares that of an input, which is the caller's, it is copied.
dnnopt::tensor owned(const dnnopt::tensor& output, const dnnopt_tensor* inputs, std::size_t count) {
  if (output.type() == dnnopt::dtype::string || output.byte_size() == 0) return output;
  const std::less<const void*> before;
  const std::byte* const data = output.bytes().data();
  for (std::size_t i = 0; i < count; ++i) {
    const auto* const begin = static_cast<const std::byte*>(inputs[i].data);
    if (begin == nullptr || before(data, begin) || !before(data, begin + inputs[i].bytes)) continue;
    dnnopt::tensor copy = output;
    (void)copy.mutable_bytes();
    return copy;
  }
  return output;
}

nlohmann::json report_of(const dnnopt::session& session) {
  const dnnopt::compile_report& report = session.report();
  nlohmann::json result;
  result["device"] = session.context() == nullptr ? "reference" : session.context()->info().name;
  result["kernels"] = session.kernels();
  result["host_ops"] = session.host_ops();
  result["builds"] = report.builds;
  result["pass_seconds"] = report.pass_seconds;
  result["build_seconds"] = report.build_seconds;
  result["warnings"] = nlohmann::json::array();
  for (const dnnopt::warning& row : report.warnings)
    result["warnings"].push_back({{"code", dnnopt::name_of(row.code)}, {"node", row.node}, {"text", row.text}});
  result["placements"] = nlohmann::json::array();
  for (const dnnopt::placement_row& row : session.placements())
    result["placements"].push_back({{"node", row.node}, {"op", row.op}, {"where", row.where}, {"reason", row.reason}});
  return result;
}

static_assert(DNNOPT_INVALID_ARGUMENT == static_cast<int>(dnnopt::errc::invalid_argument));
static_assert(DNNOPT_TYPE_MISMATCH == static_cast<int>(dnnopt::errc::type_mismatch));
static_assert(DNNOPT_SHAPE_MISMATCH == static_cast<int>(dnnopt::errc::shape_mismatch));
static_assert(DNNOPT_FILE_NOT_FOUND == static_cast<int>(dnnopt::errc::file_not_found));
static_assert(DNNOPT_MALFORMED_PROTOBUF == static_cast<int>(dnnopt::errc::malformed_protobuf));
static_assert(DNNOPT_MALFORMED_MODEL == static_cast<int>(dnnopt::errc::malformed_model));
static_assert(DNNOPT_UNKNOWN_OPERATOR == static_cast<int>(dnnopt::errc::unknown_operator));
static_assert(DNNOPT_OPENCL_UNAVAILABLE == static_cast<int>(dnnopt::errc::opencl_unavailable));
static_assert(DNNOPT_UNKNOWN_DEVICE == static_cast<int>(dnnopt::errc::unknown_device));
static_assert(DNNOPT_OUT_OF_DEVICE_MEMORY == static_cast<int>(dnnopt::errc::out_of_device_memory));
static_assert(DNNOPT_NO_KERNEL == static_cast<int>(dnnopt::errc::no_kernel));
static_assert(DNNOPT_UNSUPPORTED == static_cast<int>(dnnopt::errc::unsupported));
static_assert(DNNOPT_MISSING_INPUT == static_cast<int>(dnnopt::errc::missing_input));
static_assert(DNNOPT_MEMORY_LIMIT == static_cast<int>(dnnopt::errc::memory_limit));
static_assert(DNNOPT_FLOAT32 == static_cast<int>(dnnopt::dtype::float32));
static_assert(DNNOPT_STRING == static_cast<int>(dnnopt::dtype::string));
static_assert(DNNOPT_BOOL == static_cast<int>(dnnopt::dtype::boolean));
static_assert(DNNOPT_BFLOAT16 == static_cast<int>(dnnopt::dtype::bfloat16));

}  // namespace

#define DNNOPT_TEXT(x) #x
#define DNNOPT_VERSION_TEXT(a, b, c) DNNOPT_TEXT(a) "." DNNOPT_TEXT(b) "." DNNOPT_TEXT(c)

const char* dnnopt_version() {
  return DNNOPT_VERSION_TEXT(DNNOPT_VERSION_MAJOR, DNNOPT_VERSION_MINOR, DNNOPT_VERSION_PATCH);
}
const char* dnnopt_last_error() { return last_error.c_str(); }
void dnnopt_text_release(char* text) { std::free(text); }

dnnopt_status dnnopt_devices(char** json) {
  return guarded([&] {
    need(json, "json");
    nlohmann::json result{{"devices", nlohmann::json::array()}, {"why_none", nullptr}};
    try {
      for (const dnnopt::opencl::device& d : dnnopt::opencl::list_devices()) result["devices"].push_back(d.info);
    } catch (const dnnopt::error& e) {
      if (e.code() != dnnopt::errc::opencl_unavailable) throw;
      result["why_none"] = e.what();
    }
    *json = text_of(result.dump());
  });
}

dnnopt_status dnnopt_options_create(dnnopt_options** options) {
  return guarded([&] {
    need(options, "options");
    *options = new dnnopt_options();
  });
}
void dnnopt_options_release(dnnopt_options* options) { delete options; }
dnnopt_status dnnopt_options_set(dnnopt_options* options, const char* name, const char* value) {
  return guarded([&] {
    need(options, "options");
    need(name, "the name of an option");
    need(value, "the value of an option");
    set_option(*options, name, value);
  });
}
dnnopt_status dnnopt_options_set_log(dnnopt_options* options, dnnopt_log_callback log, void* user) {
  return guarded([&] {
    need(options, "options");
    options->log = log;
    options->user = user;
  });
}

dnnopt_status dnnopt_model_load(const char* path, const dnnopt_options* options, dnnopt_model** model) {
  return guarded([&] {
    need(path, "path");
    need(model, "model");
    auto made = std::make_unique<dnnopt_model>(dnnopt_model{dnnopt::load(path, loading_of(options))});
    tell(options, made->held.warnings);
    *model = made.release();
  });
}
dnnopt_status dnnopt_model_load_bytes(const void* bytes, size_t size, const char* folder, const dnnopt_options* options,
                                      dnnopt_model** model) {
  return guarded([&] {
    if (size != 0) need(bytes, "bytes");
    need(model, "model");
    auto made = std::make_unique<dnnopt_model>(dnnopt_model{dnnopt::load(
        std::span(static_cast<const std::byte*>(bytes), size),
        folder == nullptr ? std::filesystem::path() : std::filesystem::path(folder), loading_of(options))});
    tell(options, made->held.warnings);
    *model = made.release();
  });
}
void dnnopt_model_release(dnnopt_model* model) { delete model; }
dnnopt_status dnnopt_model_optimize(const dnnopt_model* model, const dnnopt_options* options, const char* path) {
  return guarded([&] {
    need(model, "model");
    need(path, "path");
    dnnopt::compile_report report;
    const std::optional<dnnopt::model> halves = in_halves(options, model->held);
    const dnnopt::model& given = halves ? *halves : model->held;
    const dnnopt::graph optimized = dnnopt::optimize(given, compiling_of(options, given), report);
    tell(options, report.warnings, model->held.warnings.size());
    dnnopt::export_onnx(optimized, path);
  });
}

dnnopt_status dnnopt_session_create(const dnnopt_model* model, const dnnopt_options* options,
                                    dnnopt_session** session) {
  return guarded([&] {
    need(model, "model");
    need(session, "session");
    const std::optional<dnnopt::model> halves = in_halves(options, model->held);
    const dnnopt::model& given = halves ? *halves : model->held;
    auto made =
        std::make_unique<dnnopt_session>(dnnopt_session{dnnopt::compile(given, compiling_of(options, given)), {}});
    tell(options, made->held.report().warnings, model->held.warnings.size());
    const dnnopt::graph& g = made->held.optimized();
    for (const dnnopt::value_id id : g.inputs()) made->ports[DNNOPT_INPUTS].push_back(port_of(g.value_at(id)));
    for (const dnnopt::value_id id : g.outputs()) made->ports[DNNOPT_OUTPUTS].push_back(port_of(g.value_at(id)));
    *session = made.release();
  });
}
dnnopt_status dnnopt_session_clone(dnnopt_session* session, dnnopt_session** clone) {
  return guarded([&] {
    need(session, "session");
    need(clone, "clone");
    auto made = std::make_unique<dnnopt_session>(dnnopt_session{session->held.clone(), {}});
    std::copy(std::begin(session->ports), std::end(session->ports), std::begin(made->ports));
    *clone = made.release();
  });
}
void dnnopt_session_release(dnnopt_session* session) { delete session; }

size_t dnnopt_session_count(const dnnopt_session* session, dnnopt_side side) {
  if (session == nullptr || (side != DNNOPT_INPUTS && side != DNNOPT_OUTPUTS)) return 0;
  return session->ports[side].size();
}
const char* dnnopt_session_name(const dnnopt_session* session, dnnopt_side side, size_t index) {
  const port* const found = find_port(session, side, index);
  return found == nullptr ? nullptr : found->name.c_str();
}
dnnopt_type dnnopt_session_type(const dnnopt_session* session, dnnopt_side side, size_t index) {
  const port* const found = find_port(session, side, index);
  return found == nullptr ? DNNOPT_UNDEFINED : found->type;
}
int32_t dnnopt_session_rank(const dnnopt_session* session, dnnopt_side side, size_t index) {
  const port* const found = find_port(session, side, index);
  return found == nullptr ? -1 : found->rank;
}
int64_t dnnopt_session_dim(const dnnopt_session* session, dnnopt_side side, size_t index, size_t axis) {
  const port* const found = find_port(session, side, index);
  return found == nullptr || axis >= found->dims.size() ? -1 : found->dims[axis];
}
const char* dnnopt_session_dim_name(const dnnopt_session* session, dnnopt_side side, size_t index, size_t axis) {
  const port* const found = find_port(session, side, index);
  return found == nullptr || axis >= found->dims.size() || found->dim_names[axis].empty()
             ? nullptr
             : found->dim_names[axis].c_str();
}

dnnopt_status dnnopt_session_run(dnnopt_session* session, const dnnopt_tensor* inputs, size_t input_count,
                                 const char* const* names, size_t name_count, dnnopt_outputs** outputs) {
  return guarded([&] {
    need(session, "session");
    need(outputs, "outputs");
    if (name_count != 0) need(names, "names");
    for (std::size_t i = 0; i < name_count; ++i) {
      need(names[i], "the name of an output");
      const auto& all = session->ports[DNNOPT_OUTPUTS];
      if (std::none_of(all.begin(), all.end(), [&](const port& one) { return one.name == names[i]; }))
        refuse("the model has no output '" + std::string(names[i]) + "'");
    }
    const dnnopt::named_tensors computed = session->held.run(inputs_of(inputs, input_count));
    auto made = std::make_unique<dnnopt_outputs>();
    if (name_count == 0)
      for (const auto& [name, content] : computed) made->rows.emplace_back(name, owned(content, inputs, input_count));
    for (std::size_t i = 0; i < name_count; ++i)
      made->rows.emplace_back(names[i], owned(computed[names[i]], inputs, input_count));
    made->texts.resize(made->rows.size());
    for (std::size_t i = 0; i < made->rows.size(); ++i)
      if (made->rows[i].second.type() == dnnopt::dtype::string)
        for (const std::string& text : made->rows[i].second.strings()) made->texts[i].push_back(text.c_str());
    *outputs = made.release();
  });
}
size_t dnnopt_outputs_count(const dnnopt_outputs* outputs) { return outputs == nullptr ? 0 : outputs->rows.size(); }
dnnopt_status dnnopt_outputs_get(const dnnopt_outputs* outputs, size_t index, dnnopt_tensor* tensor) {
  return guarded([&] {
    need(outputs, "outputs");
    need(tensor, "tensor");
    if (index >= outputs->rows.size())
      refuse("there is no output " + std::to_string(index) + " of " + std::to_string(outputs->rows.size()));
    const auto& [name, content] = outputs->rows[index];
    const bool is_text = content.type() == dnnopt::dtype::string;
    const void* const data = is_text ? static_cast<const void*>(outputs->texts[index].data()) : content.bytes().data();
    *tensor = {name.c_str(),
               static_cast<dnnopt_type>(content.type()),
               static_cast<std::int32_t>(content.rank()),
               content.dims().data(),
               data,
               is_text ? outputs->texts[index].size() * sizeof(char*) : content.byte_size()};
  });
}
void dnnopt_outputs_release(dnnopt_outputs* outputs) { delete outputs; }

dnnopt_status dnnopt_buffer_copy(dnnopt_session* session, dnnopt_buffer** buffer, const void* from, void* to,
                                 size_t bytes) {
  return guarded([&] {
    need(session, "session");
    need(buffer, "buffer");
    if (bytes == 0) refuse("a buffer of no bytes");
    if (*buffer == nullptr) {
      auto made = std::make_unique<dnnopt_buffer>(buffer_in(session->held, bytes));
      copy_with(*made, from, to, bytes);
      *buffer = made.release();
      return;
    }
    if (bytes > (*buffer)->bytes)
      refuse(std::to_string(bytes) + " bytes of a buffer that has " + std::to_string((*buffer)->bytes));
    copy_with(**buffer, from, to, bytes);
  });
}
void dnnopt_buffer_release(dnnopt_buffer* buffer) { delete buffer; }
dnnopt_status dnnopt_session_bind(dnnopt_session* session, const char* name, dnnopt_buffer* buffer, const int64_t* dims,
                                  int32_t rank) {
  return guarded([&] {
    need(session, "session");
    need(name, "name");
    if (buffer == nullptr) {
      (void)session->held.unbind(name);
      return;
    }
    std::optional<dnnopt::dim_list> stated;
    if (dims != nullptr) {
      if (rank < 0) refuse("'" + std::string(name) + "' has rank " + std::to_string(rank));
      stated.emplace(dims, dims + rank);
    }
    (void)session->held.bind(name, buffer->memory, std::move(stated));
  });
}

dnnopt_status dnnopt_session_report(const dnnopt_session* session, char** json) {
  return guarded([&] {
    need(session, "session");
    need(json, "json");
    *json = text_of(report_of(session->held).dump());
  });
}
dnnopt_status dnnopt_session_profile(dnnopt_session* session, const dnnopt_tensor* inputs, size_t input_count,
                                     size_t runs, char** json) {
  return guarded([&] {
    need(session, "session");
    need(json, "json");
    const dnnopt::named_tensors given = inputs_of(inputs, input_count);
    dnnopt::session& held = session->held;
    if (held.context() == nullptr)
      throw dnnopt::error(dnnopt::errc::unsupported, "the reference backend has no device commands to profile");
    (void)held.run(given);
    dnnopt::profile::profile_report report = dnnopt::profile_runs(
        *held.context(), held.executor()->executed(),
        [&](dnnopt::run_observer* observer) { (void)held.run(given, observer); }, runs);
    report.kernels = held.kernels();
    *json = text_of(dnnopt::profile::to_json(report).dump());
  });
}

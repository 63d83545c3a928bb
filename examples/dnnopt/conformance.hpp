// Owns the run of ONNX's backend tests: finding them, reading their data, comparing outputs, counting outcomes.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include <dnnopt/graph.hpp>
#include <dnnopt/mapped_file.hpp>
#include <dnnopt/onnx/import.hpp>
#include <dnnopt/onnx/tensor_proto.hpp>
#include <dnnopt/onnx/wire_reader.hpp>
#include <dnnopt/ops/standard.hpp>
#include <dnnopt/reference/elements.hpp>
#include <dnnopt/reference/evaluator.hpp>

namespace tool {

/// What a runner made of one data set.
struct conformance_outcome {
  std::vector<dnnopt::reference::host_value> outputs;
  bool fell_back = false;  ///< some operator ran on the host though a device was asked for
};

/// Runs an imported model on inputs in the order of its graph inputs; an absent value stands for one that is not given.
/// What it cannot run it reports as error unsupported or no_kernel.
using conformance_runner = std::function<conformance_outcome(const dnnopt::graph& model,
                                                             const std::vector<dnnopt::reference::host_value>& inputs)>;

enum class conformance_verdict { passed, failed, unsupported };

struct conformance_result {
  std::string name;
  conformance_verdict verdict = conformance_verdict::passed;
  bool fell_back = false;
  std::string reason;                     ///< why not passed
  std::vector<dnnopt::warning> warnings;  ///< of the model
};

struct conformance_report {
  std::vector<conformance_result> results;
  std::size_t passed = 0;
  std::size_t failed = 0;
  std::size_t unsupported = 0;
  std::size_t fallback = 0;  ///< of those passed: with an operator on the host
};

namespace detail {

/// The keys and the values, one scalar each, of a MapProto. `read_tensor` reads a TensorProto.
template <class ReadTensor>
std::vector<dnnopt::tensor> read_map(dnnopt::onnx::wire_reader in, const ReadTensor& read_tensor) {
  std::vector<std::int64_t> integers;
  std::vector<std::string> strings;
  std::vector<double> values;
  dnnopt::dtype type = dnnopt::dtype::float32;
  while (in.next()) {
    if (in.field() == 3) {
      in.integers(integers);
    } else if (in.field() == 4) {
      const auto bytes = in.bytes();
      strings.emplace_back(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    } else if (in.field() == 5) {
      dnnopt::onnx::wire_reader items = in.message();
      while (items.next()) {
        if (items.field() != 3) {
          items.skip();
          continue;
        }
        const dnnopt::tensor one = read_tensor(items.message());
        type = one.type();
        values.push_back(dnnopt::reference::load_all<double>(one).at(0));
      }
    } else {
      in.skip();
    }
  }
  const auto count = static_cast<std::int64_t>(values.size());
  dnnopt::tensor keys = dnnopt::tensor::of<std::int64_t>({strings.empty() ? count : 0}, integers);
  if (!strings.empty()) {
    keys = dnnopt::tensor(dnnopt::dtype::string, {count});
    keys.mutable_strings() = strings;
  }
  return {std::move(keys), dnnopt::reference::store_all<double>(type, {count}, values)};
}

/// Reads a TensorProto, SequenceProto, MapProto or OptionalProto, as the declared kind of value says.
inline dnnopt::reference::host_value read_value(const std::filesystem::path& path, dnnopt::value_kind kind,
                                                dnnopt::dtype type) {
  using dnnopt::reference::host_value;
  const auto file = dnnopt::mapped_file::open(path);
  dnnopt::onnx::tensor_source source;
  source.keep_alive = file;
  const auto read_tensor = [&](dnnopt::onnx::wire_reader in) {
    dnnopt::tensor t = dnnopt::onnx::to_tensor(dnnopt::onnx::read_tensor_proto(std::move(in)), source);
    // Suites of onnx before 1.18 were written by a NumPy without bfloat16 and hold the bits as uint16.
    if (type == dnnopt::dtype::bfloat16 && t.type() == dnnopt::dtype::uint16)
      t = dnnopt::tensor::view(type, t.dims(), t.bytes(), std::make_shared<const dnnopt::tensor>(t));
    return t;
  };
  const auto read_sequence = [&](dnnopt::onnx::wire_reader in) {
    std::vector<dnnopt::tensor> items;
    bool maps = false;
    while (in.next()) {
      if (in.field() == 3) {
        items.push_back(read_tensor(in.message()));
      } else if (in.field() == 6) {
        maps = true;
        for (dnnopt::tensor& part : read_map(in.message(), read_tensor)) items.push_back(std::move(part));
      } else if (in.field() == 1 || in.field() == 2) {
        in.skip();
      } else {
        throw dnnopt::error(dnnopt::errc::unsupported, "a sequence of other things than tensors and maps");
      }
    }
    return maps ? host_value::sequence_of_maps(std::move(items), type) : host_value::sequence(std::move(items), type);
  };
  dnnopt::onnx::wire_reader whole(file->bytes(), file->bytes().data());
  if (kind == dnnopt::value_kind::tensor) return read_tensor(std::move(whole));
  if (kind == dnnopt::value_kind::sequence) return read_sequence(std::move(whole));
  if (kind == dnnopt::value_kind::map) {
    std::vector<dnnopt::tensor> parts = read_map(std::move(whole), read_tensor);
    return host_value::map(std::move(parts[0]), std::move(parts[1]));
  }
  // Some data sets hold the element itself where the model declares an optional.
  std::optional<host_value> element;
  bool is_optional = false;
  try {
    while (whole.next()) {
      if (whole.field() == 2) {
        const std::int64_t element_type = whole.integer();
        is_optional = element_type >= 0 && element_type <= 5;
      } else if (whole.field() == 3) {
        element = read_tensor(whole.message());
      } else if (whole.field() == 5) {
        element = read_sequence(whole.message());
      } else {
        whole.skip();
      }
    }
  } catch (const dnnopt::error&) {
    element.reset();
    is_optional = false;
  }
  if (element) return host_value::optional_of(std::move(*element));
  if (is_optional || file->bytes().empty()) return host_value::empty_optional();
  return host_value::optional_of(read_tensor(dnnopt::onnx::wire_reader(file->bytes(), file->bytes().data())));
}

/// Why `got` is not `expected` within tolerance, or nothing. Numbers: |got - expected| <= atol + rtol * |expected|, NaN
/// equal to NaN; integers, booleans and strings: equal.
inline std::optional<std::string> difference(const dnnopt::tensor& got, const dnnopt::tensor& expected, double rtol,
                                             double atol) {
  if (got.type() != expected.type())
    return "element type " + std::string(dnnopt::name_of(got.type())) + ", expected " +
           std::string(dnnopt::name_of(expected.type()));
  if (got.dims() != expected.dims())
    return "dims " + dnnopt::to_string(got.dims()) + ", expected " + dnnopt::to_string(expected.dims());
  if (got.type() == dnnopt::dtype::string) {
    for (std::size_t k = 0; k < got.strings().size(); ++k)
      if (got.strings()[k] != expected.strings()[k])
        return "'" + got.strings()[k] + "', expected '" + expected.strings()[k] + "'";
    return std::nullopt;
  }
  if (dnnopt::kind_of(got.type()) == dnnopt::dtype_kind::complex) {
    const bool same = std::equal(got.bytes().begin(), got.bytes().end(), expected.bytes().begin());
    return same ? std::nullopt : std::optional<std::string>("complex elements differ");
  }
  const std::vector<double> a = dnnopt::reference::load_all<double>(got);
  const std::vector<double> e = dnnopt::reference::load_all<double>(expected);
  const bool real = dnnopt::is_floating(got.type());
  if (got.type() == dnnopt::dtype::bfloat16) rtol = std::max(rtol, 1.0 / 64.0);
  for (std::size_t k = 0; k < a.size(); ++k) {
    if (a[k] == e[k] || (std::isnan(a[k]) && std::isnan(e[k]))) continue;
    if (real && std::isfinite(e[k]) && std::fabs(a[k] - e[k]) <= atol + rtol * std::fabs(e[k])) continue;
    char text[96];
    std::snprintf(text, sizeof text, "element %zu is %.9g, expected %.9g", k, a[k], e[k]);
    return std::string(text);
  }
  return std::nullopt;
}

inline std::optional<std::string> difference(const dnnopt::reference::host_value& got,
                                             const dnnopt::reference::host_value& expected, double rtol, double atol) {
  using dnnopt::value_kind;
  if (expected.kind == value_kind::optional) {
    // A runner may give the element itself.
    if (got.kind == value_kind::optional && got.present != expected.present)
      return std::string("an optional with and one without element");
    if (!expected.present)
      return got.kind == value_kind::optional ? std::nullopt
                                              : std::optional<std::string>("an element where none is expected");
  }
  const value_kind kind = expected.kind == value_kind::optional ? expected.element : expected.kind;
  const value_kind own = got.kind == value_kind::optional ? got.element : got.kind;
  if (kind != own) return std::string("a value of another kind");
  if (kind == value_kind::tensor) return difference(got.content, expected.content, rtol, atol);
  if (got.items.size() != expected.items.size())
    return "a sequence of " + std::to_string(got.items.size()) + ", expected " + std::to_string(expected.items.size());
  for (std::size_t k = 0; k < got.items.size(); ++k)
    if (auto d = difference(got.items[k], expected.items[k], rtol, atol))
      return "item " + std::to_string(k) + ": " + *d;
  return std::nullopt;
}

/// Why a data set does not fit the model that it is for, or nothing: a tensor whose dims are not the declared ones.
inline std::optional<std::string> contradiction(const dnnopt::graph& g,
                                                const std::vector<dnnopt::reference::host_value>& inputs) {
  for (std::size_t k = 0; k < inputs.size() && k < g.inputs().size(); ++k) {
    const dnnopt::value& declared = g.value_at(g.inputs()[k]);
    if (inputs[k].kind != dnnopt::value_kind::tensor || !declared.facts.dims) continue;
    const dnnopt::dim_list& given = inputs[k].content.dims();
    bool fits = given.size() == declared.facts.dims->size();
    for (std::size_t axis = 0; fits && axis < given.size(); ++axis) {
      const auto dim = (*declared.facts.dims)[axis].as_constant();
      fits = !dim || *dim == given[axis];
    }
    if (!fits)
      return "the data set contradicts its model: input '" + declared.name + "' is declared " +
             dnnopt::to_string(*declared.facts.dims) + ", the data is " + dnnopt::to_string(given);
  }
  return std::nullopt;
}

/// The first operator of the graph, bodies included, that draws random numbers; empty where there is none.
inline std::string random_operator(const dnnopt::graph& g) {
  for (const dnnopt::node_id id : g.nodes()) {
    const dnnopt::node& n = g.node_at(id);
    if (n.op->kind == dnnopt::computation_kind::random) return std::string(n.op->name);
    for (const auto& [name, held] : n.attributes)
      if (const auto* body = std::get_if<dnnopt::subgraph>(&held); body != nullptr && *body)
        if (std::string inner = random_operator(**body); !inner.empty()) return inner;
  }
  return {};
}

inline bool means_unsupported(dnnopt::errc code) {
  using dnnopt::errc;
  return code == errc::unsupported || code == errc::no_kernel || code == errc::unknown_operator ||
         code == errc::unsupported_opset;
}

}  // namespace detail

/// The absolute tolerance of a test of ONNX's: 1e-7, and 1e-6 where its stored outputs are transforms in single
/// precision, which hold rounding noise in the place of zeros. Source: onnx/test/test_backend_reference.py.
[[nodiscard]] inline double absolute_tolerance(std::string_view test) noexcept {
  constexpr std::string_view transforms[] = {
      "test_dft",        "test_dft_axis", "test_dft_axis_opset19", "test_dft_inverse", "test_dft_inverse_opset19",
      "test_dft_opset19"};
  return std::find(std::begin(transforms), std::end(transforms), test) != std::end(transforms) ? 1e-6 : 1e-7;
}

/// Why the stored outputs of a test of ONNX's contradict the text of its specification; empty where they do not. ONNX
/// Runtime leaves these tests out too.
[[nodiscard]] inline std::string_view contradiction(std::string_view test) noexcept {
  const bool fractional = test == "test_resize_downsample_scales_linear_align_corners" ||
                          test == "test_resize_downsample_scales_cubic_align_corners";
  return fractional
             ? "the stored outputs align corners by a length of 2.4 or 3.2 elements, the text by the output's own"
             : "";
}

/// Runs the test in `folder`: model.onnx on each test_data_set_*. `rtol` and `atol` are those of ONNX's own runner
/// unless the folder's data.json says otherwise. Never throws for what the test or the runner does.
inline conformance_result run_conformance_test(const std::filesystem::path& folder, const conformance_runner& runner) {
  namespace fs = std::filesystem;
  conformance_result result;
  result.name = folder.filename().string();
  double rtol = 1e-3;
  double atol = absolute_tolerance(result.name);
  std::string random;
  try {
    if (fs::exists(folder / "data.json")) {
      std::ifstream in(folder / "data.json");
      const nlohmann::json data = nlohmann::json::parse(in);
      rtol = data.value("rtol", rtol);
      atol = data.value("atol", atol);
    }
    dnnopt::import_options importing;
    importing.ops = dnnopt::standard_ops();
    dnnopt::imported_model imported = dnnopt::import_model(folder / "model.onnx", importing);
    result.warnings = std::move(imported.warnings);
    const dnnopt::graph& model = imported.main;
    random = detail::random_operator(model);
    std::vector<fs::path> sets;
    for (const auto& entry : fs::directory_iterator(folder))
      if (entry.is_directory() && entry.path().filename().string().starts_with("test_data_set_"))
        sets.push_back(entry.path());
    std::sort(sets.begin(), sets.end());
    if (sets.empty()) throw dnnopt::error(dnnopt::errc::bad_file, "no test_data_set_* in " + folder.string());
    for (const fs::path& set : sets) {
      const auto read = [&](const char* kind, const std::vector<dnnopt::value_id>& ids) {
        std::vector<dnnopt::reference::host_value> values;
        for (std::size_t k = 0; k < ids.size(); ++k) {
          const fs::path file = set / (std::string(kind) + "_" + std::to_string(k) + ".pb");
          if (!fs::exists(file)) break;
          const dnnopt::value_facts& facts = model.facts(ids[k]);
          values.push_back(detail::read_value(file, facts.kind, facts.type));
        }
        return values;
      };
      const std::vector<dnnopt::reference::host_value> expected = read("output", model.outputs());
      const std::vector<dnnopt::reference::host_value> inputs = read("input", model.inputs());
      if (auto why = detail::contradiction(model, inputs)) throw dnnopt::error(dnnopt::errc::unsupported, *why);
      conformance_outcome outcome = runner(model, inputs);
      result.fell_back = result.fell_back || outcome.fell_back;
      if (outcome.outputs.size() < expected.size())
        throw dnnopt::error(dnnopt::errc::bad_arity, "fewer outputs than expected");
      for (std::size_t k = 0; k < expected.size(); ++k)
        if (auto d = detail::difference(outcome.outputs[k], expected[k], rtol, atol)) {
          const std::string_view contradicts = contradiction(result.name);
          const bool comparable = random.empty() && contradicts.empty();
          result.verdict = comparable ? conformance_verdict::failed : conformance_verdict::unsupported;
          result.reason = comparable ? "output " + std::to_string(k) + ": " + *d
                          : random.empty()
                              ? std::string(contradicts)
                              : random + " draws random numbers: the stored ones come from another generator";
          return result;
        }
    }
  } catch (const dnnopt::error& e) {
    result.verdict =
        detail::means_unsupported(e.code()) ? conformance_verdict::unsupported : conformance_verdict::failed;
    result.reason = e.what();
  } catch (const std::exception& e) {
    result.verdict = conformance_verdict::failed;
    result.reason = e.what();
  }
  return result;
}

/// Runs every test folder directly under `folder` (or `folder` itself where it holds a model.onnx), in order of names.
/// `observer`, where given, is told each result as it comes. Errors: file_not_found where there is no test.
inline conformance_report run_conformance(const std::filesystem::path& folder, const conformance_runner& runner,
                                          const std::function<void(const conformance_result&)>& observer = {}) {
  namespace fs = std::filesystem;
  std::vector<fs::path> tests;
  if (fs::exists(folder / "model.onnx")) tests.push_back(folder);
  if (tests.empty() && fs::is_directory(folder))
    for (const auto& entry : fs::directory_iterator(folder))
      if (entry.is_directory() && fs::exists(entry.path() / "model.onnx")) tests.push_back(entry.path());
  if (tests.empty())
    throw dnnopt::error(dnnopt::errc::file_not_found, "no folder with a model.onnx under " + folder.string());
  std::sort(tests.begin(), tests.end());
  conformance_report report;
  for (const fs::path& test : tests) {
    conformance_result result = run_conformance_test(test, runner);
    report.passed += result.verdict == conformance_verdict::passed ? 1 : 0;
    report.failed += result.verdict == conformance_verdict::failed ? 1 : 0;
    report.unsupported += result.verdict == conformance_verdict::unsupported ? 1 : 0;
    report.fallback += result.verdict == conformance_verdict::passed && result.fell_back ? 1 : 0;
    if (observer) observer(result);
    report.results.push_back(std::move(result));
  }
  return report;
}

/// The runner of the reference backend.
[[nodiscard]] inline conformance_runner reference_runner() {
  return [](const dnnopt::graph& model, const std::vector<dnnopt::reference::host_value>& inputs) {
    return conformance_outcome{dnnopt::reference::evaluator().run(model, inputs), false};
  };
}

/// The report as the tool's JSON: counts, and every test that did not pass with its reason.
[[nodiscard]] inline nlohmann::ordered_json to_json(const conformance_report& report) {
  nlohmann::ordered_json result{{"passed", report.passed},
                                {"failed", report.failed},
                                {"unsupported", report.unsupported},
                                {"fallback", report.fallback},
                                {"failures", nlohmann::ordered_json::array()},
                                {"warnings", nlohmann::ordered_json::array()}};
  for (const conformance_result& row : report.results)
    for (const dnnopt::warning& w : row.warnings)
      result["warnings"].push_back(
          {{"name", row.name}, {"code", dnnopt::name_of(w.code)}, {"node", w.node}, {"text", w.text}});
  for (const conformance_result& row : report.results)
    if (row.verdict != conformance_verdict::passed)
      result["failures"].push_back(
          {{"name", row.name},
           {"reason", row.reason},
           {"verdict", row.verdict == conformance_verdict::failed ? "failed" : "unsupported"}});
  return result;
}

}  // namespace tool

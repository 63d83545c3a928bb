// dnnopt verify
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>

#include <dnnopt/backend/codegen/builder/kernel_builder.hpp>
#include <dnnopt/onnx/test_data.hpp>

#include "rounding_steps.hpp"
#include "support.hpp"

namespace tool {

namespace {

struct difference {
  double absolute = 0;  ///< largest |got - expected|
  double relative = 0;  ///< the same over the largest magnitude expected
  double energy = 0;    ///< root of the squares' sum of the differences over that of what is expected
  bool equal = true;    ///< within the tolerance; integers exactly, codes but for a step
  step_counts steps;    ///< of a quantized value
};

/// |got - expected| at most `relative` of the element and `absolute` of the tensor's largest magnitude together.
struct tolerance {
  double relative = 1e-3;
  double absolute = 1e-4;
};

/// Storage in fp16 rounds every tensor on the way: 2% of the largest magnitude.
tolerance tolerance_of(const dnnopt::compile_options& compiling) {
  return dnnopt::stores_halves(compiling.precision) ? tolerance{0, 0.02} : tolerance{};
}

/// `step`: what one code more is, for a quantized value.
difference compare(const dnnopt::tensor& got, const dnnopt::tensor& expected, const tolerance& within,
                   std::optional<double> step) {
  difference d;
  if (got.type() != expected.type() || got.dims() != expected.dims()) {
    d.absolute = d.relative = d.energy = std::numeric_limits<double>::infinity();
    d.equal = false;
    return d;
  }
  if (got.type() == dnnopt::dtype::string) {
    d.equal = got.strings() == expected.strings();
    d.absolute = d.relative = d.energy = d.equal ? 0 : 1;
    return d;
  }
  const bool real = dnnopt::is_floating(got.type());
  double magnitude = 0;
  double wanted = 0;
  double errors = 0;
  const auto count = static_cast<std::size_t>(got.size());
  for (std::size_t i = 0; i < count; ++i) {
    const double e = dnnopt::codegen::number_at(expected, i);
    if (!std::isfinite(e)) continue;
    magnitude = std::max(magnitude, std::fabs(e));
    wanted += e * e;
  }
  for (std::size_t i = 0; i < count; ++i) {
    const double e = dnnopt::codegen::number_at(expected, i);
    const double a = dnnopt::codegen::number_at(got, i);
    if (a == e || (std::isnan(a) && std::isnan(e))) continue;
    const double error =
        std::isfinite(a) && std::isfinite(e) ? std::fabs(a - e) : std::numeric_limits<double>::infinity();
    d.absolute = std::max(d.absolute, error);
    errors += error * error;
    if (real && error <= within.relative * std::fabs(e) + within.absolute * magnitude) continue;
    if (!step) d.equal = false;
    ++d.steps.differing;
    d.steps.largest = std::max(d.steps.largest, step && *step > 0 ? error / *step : error);
  }
  d.energy = std::sqrt(wanted > 0 ? errors / wanted : errors);
  if (!step) d.steps = {};
  if (step) d.steps.elements = count;
  d.equal = d.equal && d.steps.within();
  d.relative = magnitude > 0 ? d.absolute / magnitude : d.absolute;
  return d;
}

std::string text_of(const step_counts& steps) {
  if (steps.differing == 0) return "";
  return ", " + std::to_string(steps.differing) + " of " + std::to_string(steps.elements) +
         " quantized elements differ, by " + std::to_string(steps.largest) + " steps at most";
}

/// The first node, in execution order, whose output on the device differs from the reference: every intermediate value
/// is made a graph output and compared.
std::string first_bad_node(const dnnopt::model& m, const dnnopt::compile_options& compiling,
                           const dnnopt::named_tensors& inputs) {
  dnnopt::compile_report report;
  const dnnopt::graph optimized = dnnopt::optimize(m, compiling, report);
  dnnopt::model all = m;
  all.main = optimized;
  for (const dnnopt::node_id id : optimized.topological_order())
    for (const dnnopt::value_id out : optimized.node_at(id).outputs)
      if (out != dnnopt::no_value && !all.main.is_output(out)) all.main.add_output(out);
  dnnopt::compile_options plain = compiling;
  plain.passes = "none";
  plain.dims.clear();
  plain.shapes.clear();
  plain.values.clear();
  dnnopt::compile_options reference = plain;
  reference.device = "reference";
  const dnnopt::named_tensors got = dnnopt::compile(all, plain).run(inputs);
  const dnnopt::named_tensors expected = dnnopt::compile(all, reference).run(inputs);
  const std::vector<std::optional<double>> steps = rounding_steps(all.main);
  for (const dnnopt::node_id id : all.main.topological_order())
    for (const dnnopt::value_id out : all.main.node_at(id).outputs) {
      if (out == dnnopt::no_value) continue;
      const std::string& name = all.main.value_at(out).name;
      const dnnopt::tensor* a = got.find(name);
      const dnnopt::tensor* e = expected.find(name);
      if (a != nullptr && e != nullptr && !compare(*a, *e, tolerance_of(compiling), steps[out]).equal)
        return all.main.node_at(id).name;
    }
  return {};
}

/// What a model that rounds to codes does between them.
struct parts_report {
  bool checked = false;
  bool passed = false;
  step_counts steps;
  std::string first_bad_node;
};

std::string text_of(const parts_report& parts) {
  if (!parts.checked) return "";
  return std::string("; each part by itself ") + (parts.passed ? "passes" : "does not pass") + ", " +
         std::to_string(parts.steps.differing) + " of " + std::to_string(parts.steps.elements) + " codes differ";
}

/// Runs each part of the model on the reference backend's own codes: every value that data rounds to codes is an output
/// of what makes it, and an input of what reads it. So one code more in an early layer does not grow on its way.
parts_report check_parts(const dnnopt::model& m, const dnnopt::compile_options& compiling,
                         const dnnopt::compile_options& reference, const dnnopt::named_tensors& inputs) {
  parts_report report;
  const std::vector<dnnopt::value_id> codes = computed_codes(m.main);
  if (codes.empty()) return report;
  dnnopt::model all = m;
  for (const dnnopt::value_id v : codes)
    if (!all.main.is_output(v)) all.main.add_output(v);
  try {
    const dnnopt::named_tensors expected = dnnopt::compile(all, reference).run(inputs);
    dnnopt::model cut = all;
    dnnopt::named_tensors given;
    for (const auto& [name, content] : inputs) given.add(name, content);
    for (const dnnopt::value_id v : codes) {
      const std::string& name = all.main.value_at(v).name;
      const dnnopt::tensor& content = expected[name];
      const std::string own = name + ".given";
      cut.main.replace_uses(v, cut.main.add_input(own, content.type(), dnnopt::to_shape(content.dims())));
      given.add(own, content);
    }
    cut.main.set_outputs(all.main.outputs());
    const dnnopt::named_tensors got = dnnopt::compile(cut, compiling).run(given);
    const std::vector<std::optional<double>> steps = rounding_steps(cut.main);
    report.checked = report.passed = true;
    // Codes in execution order, then the model's own outputs.
    std::vector<dnnopt::value_id> compared = codes;
    for (const dnnopt::value_id v : m.main.outputs())
      if (std::find(codes.begin(), codes.end(), v) == codes.end()) compared.push_back(v);
    for (const dnnopt::value_id v : compared) {
      const dnnopt::value& made = cut.main.value_at(v);
      const difference d = compare(got[made.name], expected[made.name], tolerance_of(compiling), steps[v]);
      report.steps.add(d.steps);
      if (!d.equal && report.passed && made.producer != dnnopt::no_node)
        report.first_bad_node = cut.main.node_at(made.producer).name;
      report.passed = report.passed && d.equal;
    }
  } catch (const dnnopt::error&) {
    // What cannot be given to a run, such as codes of four bits on some devices, leaves the whole to be judged.
    return {};
  }
  return report;
}

}  // namespace

int verify(const options& o) {
  const dnnopt::model m = load_model(o);
  const dnnopt::compile_options compiling = compile_options_of(o, m);
  json result;
  dnnopt::named_tensors inputs;
  std::vector<dnnopt::tensor> expected;
  if (o.data.empty()) {
    inputs = inputs_of(m, o, &result);
  } else {
    dnnopt::test_data_set data = dnnopt::read_test_data_set(o.data, m.main);
    inputs = dnnopt::named_tensors(std::move(data.inputs));
    for (auto& [name, content] : data.outputs) expected.push_back(std::move(content));
  }
  dnnopt::session session = dnnopt::compile(m, compiling);
  tell_warnings(o, m, session.report(), result);
  const dnnopt::named_tensors got = first_run(o, session, inputs);
  dnnopt::compile_options reference = compiling;
  reference.device = "reference";
  reference.require_device = false;
  reference.passes = "none";
  if (expected.empty()) {
    for (const auto& [name, content] : dnnopt::compile(m, reference).run(inputs)) expected.push_back(content);
  }
  bool passed = got.size() == expected.size();
  double absolute = 0;
  double relative = 0;
  double energy = 0;
  step_counts steps;
  const std::vector<std::optional<double>> quantized = rounding_steps(m.main);
  for (std::size_t i = 0; i < std::min(got.size(), expected.size()); ++i) {
    const difference d = compare(got[i], expected[i], tolerance_of(compiling), quantized[m.main.outputs()[i]]);
    steps.add(d.steps);
    passed = passed && d.equal;
    absolute = std::max(absolute, d.absolute);
    relative = std::max(relative, d.relative);
    energy = std::max(energy, d.energy);
  }
  parts_report parts;
  if (!passed && o.data.empty() && got.size() == expected.size() && energy <= largest_energy_of_steps) {
    parts = check_parts(m, compiling, reference, inputs);
    passed = parts.passed;
  }
  result["form"] = form_of(o);
  result["passed"] = passed;
  // JSON has no infinity; a difference in shape or type, or a NaN on one side, prints as the largest number.
  result["max_abs_error"] = std::min(absolute, std::numeric_limits<double>::max());
  result["max_rel_error"] = std::min(relative, std::numeric_limits<double>::max());
  if (steps.elements != 0)
    result["steps"] = {{"elements", steps.elements},
                       {"differing", steps.differing},
                       {"largest", std::min(steps.largest, std::numeric_limits<double>::max())}};
  if (parts.checked)
    result["parts"] = {
        {"passed", parts.passed}, {"elements", parts.steps.elements}, {"differing", parts.steps.differing}};
  result["first_bad_node"] = nullptr;
  if (parts.checked && !parts.passed) {
    result["first_bad_node"] = parts.first_bad_node;
  } else if (!passed) {
    const std::string bad = first_bad_node(m, compiling, inputs);
    if (!bad.empty()) result["first_bad_node"] = bad;
  }
  say(o, std::string(passed ? "passed" : "FAILED") + form_text(o) + ": largest error " + short_number(absolute) + ", " +
             short_number(relative) + " of the largest magnitude" + text_of(steps) + text_of(parts) +
             (passed ? "" : ", first node that differs: " + result["first_bad_node"].dump()) + "\n");
  write_json(o, result);
  keep_programs(o, session);
  return passed ? 0 : 1;
}

}  // namespace tool

// dnnopt conformance
#include "conformance.hpp"

#include <dnnopt/backend/measure/opened_device.hpp>

#include "support.hpp"

namespace tool {

namespace {

/// Runs each test's graph as a session on one shared OpenCL device.
conformance_runner device_runner(const options& o) {
  dnnopt::compile_options compiling = compile_options_of(o, dnnopt::model());
  dnnopt::opencl::program_cache_options programs;
  programs.on_disk = false;
  compiling.opened = std::make_shared<dnnopt::opened_device>(o.device, programs);
  return [compiling](const dnnopt::graph& g, const std::vector<dnnopt::reference::host_value>& inputs) {
    dnnopt::model m;
    m.main = g;
    m.ops = dnnopt::standard_ops();
    dnnopt::named_tensors named;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (inputs[i].kind != dnnopt::value_kind::tensor)
        throw dnnopt::error(dnnopt::errc::unsupported, "an input is a sequence or an optional");
      named.add(g.value_at(g.inputs()[i]).name, inputs[i].content);
    }
    dnnopt::session session = dnnopt::compile(m, compiling);
    conformance_outcome outcome;
    for (const auto& [name, content] : session.run(named)) outcome.outputs.emplace_back(content);
    outcome.fell_back = session.host_ops() != 0;
    return outcome;
  };
}

}  // namespace

int conformance(const options& o) {
  const conformance_runner runner = o.device == "reference" ? reference_runner() : device_runner(o);
  const conformance_report report = run_conformance(o.model, runner, [&](const conformance_result& row) {
    if (row.verdict == conformance_verdict::failed) say(o, "FAILED " + row.name + ": " + row.reason + "\n");
  });
  for (const conformance_result& row : report.results)
    for (const dnnopt::warning& w : row.warnings)
      note(o, "warning (" + std::string(dnnopt::name_of(w.code)) + ") of " + row.name + ": " + w.text);
  for (const conformance_result& row : report.results)
    if (row.verdict == conformance_verdict::unsupported) say(o, "unsupported " + row.name + ": " + row.reason + "\n");
  say(o, std::to_string(report.fallback) + " passed with an operator on the host, " +
             std::to_string(report.unsupported) + " unsupported" + form_text(o) + "\n" + std::to_string(report.passed) +
             " passed, " + std::to_string(report.failed) + " failed\n");
  json result = to_json(report);
  result["form"] = form_of(o);
  write_json(o, result);
  return report.failed == 0 ? 0 : 1;
}

}  // namespace tool

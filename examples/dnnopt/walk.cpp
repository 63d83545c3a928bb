// dnnopt walk: one session through a list of shapes, and what each costs where it is new.
#include <chrono>
#include <fstream>
#include <sstream>

#include <dnnopt/backend/opencl/context.hpp>
#include <dnnopt/backend/run/executor.hpp>

#include "support.hpp"

namespace tool {

namespace {

using clock = std::chrono::steady_clock;

/// The flags of one point of the walk: those of the command line with the point's dims, shapes and files added.
/// Errors: usage, naming what the point holds.
options at_point(const options& o, const json& point) {
  options result = o;
  const auto refuse = [&](const std::string& why) {
    return dnnopt::error(dnnopt::errc::usage, "--walk " + o.walk + ": " + why + " in " + point.dump());
  };
  if (!point.is_object() || point.empty()) throw refuse("a point is no object of dims");
  for (const auto& [name, value] : point.items()) {
    if (name == "shapes" && value.is_object()) {
      for (const auto& [input, dims] : value.items()) {
        std::string text;
        if (!dims.is_array()) throw refuse("'" + input + "' has no list of dims");
        for (const json& dim : dims) {
          if (!dim.is_number_integer()) throw refuse("a dim of '" + input + "' is no integer");
          text += (text.empty() ? "" : "x") + std::to_string(dim.get<std::int64_t>());
        }
        result.shapes.push_back(input + "=" + text);
      }
    } else if (name == "inputs" && value.is_object()) {
      for (const auto& [input, file] : value.items()) {
        if (!file.is_string()) throw refuse("'" + input + "' has no file");
        result.inputs.push_back(input + "=" + file.get<std::string>());
      }
    } else if (name == "outputs" && value.is_string()) {
      result.output_dir = value.get<std::string>();
    } else if (value.is_number_integer()) {
      result.dims.push_back(name + "=" + std::to_string(value.get<std::int64_t>()));
    } else {
      throw refuse("'" + name + "' is no integer");
    }
  }
  return result;
}

json points_of(const options& o) {
  std::ifstream file(o.walk);
  if (!file) throw dnnopt::error(dnnopt::errc::file_io, "cannot read '" + o.walk + "'");
  std::stringstream text;
  text << file.rdbuf();
  json points = json::parse(text.str(), nullptr, false);
  if (points.is_discarded() || !points.is_array() || points.empty())
    throw dnnopt::error(dnnopt::errc::bad_file, "'" + o.walk + "' holds no list of shapes");
  return points;
}

/// Branches of conditional nodes: those that runs took, and those that they left out.
struct branch_counts {
  std::size_t run = 0;
  std::size_t skipped = 0;
};

/// Counted on a device; on the reference backend, which runs each node of the model once, by the graph.
branch_counts branches_of(const dnnopt::session& session, std::size_t runs) {
  branch_counts counts;
  for (const dnnopt::body_row& row : session.bodies()) {
    if (row.alternatives == 0) continue;
    counts.run += row.entered;
    counts.skipped += row.entered * row.alternatives;
  }
  if (session.executor() != nullptr) return counts;
  const dnnopt::graph& g = session.optimized();
  for (const dnnopt::node_id id : g.nodes()) {
    std::size_t bodies = 0;
    for (const auto& [name, held] : g.node_at(id).attributes)
      bodies += std::holds_alternative<dnnopt::subgraph>(held) ? 1 : 0;
    if (bodies < 2) continue;
    counts.run += runs;
    counts.skipped += runs * (bodies - 1);
  }
  return counts;
}

}  // namespace

int walk(const options& o) {
  const dnnopt::model m = load_model(o);
  const json points = points_of(o);
  const dnnopt::compile_options compiling = compile_options_of(o, m);
  const auto init = clock::now();
  dnnopt::session session = dnnopt::compile(m, compiling);
  keep_profiles(o, compiling);
  json result;
  result["device"] = session.context() == nullptr ? "reference" : session.context()->info().name;
  result["form"] = form_of(o);
  result["init_ms"] = std::chrono::duration<double, std::milli>(clock::now() - init).count();
  tell_warnings(o, m, session.report(), result);
  result["points"] = json::array();
  text_table table({"dims", "first ms", "second", "evaluate", "plan", "allocate", "bind", "infer", "builds", "kernels",
                    "host ops", "arena bytes", "bound", "device bytes"});
  for (const json& point : points) {
    const options here = at_point(o, point);
    const dnnopt::named_tensors inputs = inputs_of(m, here);
    const std::uint64_t built = session.report().builds;
    double ms[2] = {};
    dnnopt::run_parts parts;
    for (int turn = 0; turn < 2; ++turn) {
      const auto begin = clock::now();
      const dnnopt::named_tensors outputs = session.run(inputs);
      ms[turn] = std::chrono::duration<double, std::milli>(clock::now() - begin).count();
      if (turn == 0 && session.executor() != nullptr) parts = session.executor()->figures().parts;
      if (turn == 1) (void)write_outputs(here.output_dir, outputs);
    }
    if (session.executor() == nullptr) parts.infer = ms[0] * 1e-3;
    const bool on_device = session.executor() != nullptr;
    json row;
    row["dims"] = point;
    row["first_ms"] = ms[0];
    row["second_ms"] = ms[1];
    row["parts_ms"] = {{"evaluate", parts.evaluate * 1e3},
                       {"plan", parts.plan * 1e3},
                       {"allocate", parts.allocate * 1e3},
                       {"bind", parts.bind * 1e3},
                       {"infer", parts.infer * 1e3}};
    row["builds"] = session.report().builds - built;
    row["kernels"] = session.kernels();
    row["host_ops"] = session.host_ops();
    row["arena_bytes"] = on_device ? session.executor()->memory().arena_bytes : 0;
    row["lower_bound_bytes"] = on_device ? session.executor()->memory().lower_bound_bytes : 0;
    row["device_bytes"] = on_device ? session.context()->memory().figures().live_bytes : 0;
    table.add({point.dump(), fixed(ms[0], 3), fixed(ms[1], 3), fixed(parts.evaluate * 1e3, 3),
               fixed(parts.plan * 1e3, 3), fixed(parts.allocate * 1e3, 3), fixed(parts.bind * 1e3, 3),
               fixed(parts.infer * 1e3, 3), row["builds"].dump(), row["kernels"].dump(), row["host_ops"].dump(),
               row["arena_bytes"].dump(), row["lower_bound_bytes"].dump(), row["device_bytes"].dump()});
    result["points"].push_back(std::move(row));
  }
  const branch_counts branches = branches_of(session, 2 * points.size());
  const std::string control_flow = control_flow_of(session, result);
  result["branches_run"] = branches.run;
  result["branches_skipped"] = branches.skipped;
  say(o, "device " + result["device"].get<std::string>() + form_text(o) + ", init " +
             fixed(result["init_ms"].get<double>(), 1) + " ms; parts are of the first run\n" + table.str() +
             (branches.run == 0 ? ""
                                : std::to_string(branches.run) + " branches run, " + std::to_string(branches.skipped) +
                                      " skipped\n") +
             control_flow);
  keep_plans(o, *compiling.memory.store);
  write_json(o, result);
  return 0;
}

}  // namespace tool

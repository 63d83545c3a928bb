// dnnopt run
#include <algorithm>
#include <filesystem>
#include <map>

#include <dnnopt/backend/run/executor.hpp>
#include <dnnopt/npy.hpp>

#include "support.hpp"

namespace tool {

namespace {

/// A file name from a value's name: characters that folders or shells dislike become '_'.
std::string file_name_of(const std::string& name, std::size_t position) {
  std::string safe;
  for (const char c : name)
    safe += std::isalnum(static_cast<unsigned char>(c)) || c == '.' || c == '-' || c == '_' ? c : '_';
  if (safe.empty() || safe == "." || safe == "..") safe = "output_" + std::to_string(position);
  return safe + ".npy";
}

}  // namespace

std::vector<std::string> write_outputs(const std::string& folder, const dnnopt::named_tensors& outputs) {
  std::vector<std::string> files;
  if (!folder.empty()) std::filesystem::create_directories(folder);
  for (const auto& [name, content] : outputs) {
    const std::size_t position = files.size();
    files.emplace_back();
    if (folder.empty()) continue;
    std::string file = (std::filesystem::path(folder) / file_name_of(name, position)).string();
    // Two names may differ only in characters that files cannot carry.
    if (std::find(files.begin(), files.end(), file) != files.end())
      file = (std::filesystem::path(folder) / ("output_" + std::to_string(position) + ".npy")).string();
    dnnopt::write_npy(file, content);
    files.back() = std::move(file);
  }
  return files;
}

int run(const options& o) {
  const dnnopt::model m = load_model(o);
  json result;
  const dnnopt::named_tensors inputs = inputs_of(m, o, &result);
  result["inputs"] = json::array();
  for (const auto& [name, content] : inputs)
    result["inputs"].push_back({{"name", name}, {"dtype", dnnopt::name_of(content.type())}, {"shape", content.dims()}});
  dnnopt::compile_options compiling = compile_options_of(o, m);
  compiling.poison_freed = o.poison_freed;
  dnnopt::session session = dnnopt::compile(m, compiling);
  keep_profiles(o, compiling);
  tell_warnings(o, m, session.report(), result);
  const dnnopt::named_tensors outputs = first_run(o, session, inputs);

  result["outputs"] = json::array();
  std::string text;
  const std::vector<std::string> files = write_outputs(o.output_dir, outputs);
  std::size_t position = 0;
  for (const auto& [name, content] : outputs) {
    const std::string& file = files.at(position);
    result["outputs"].push_back(
        {{"name", name}, {"dtype", dnnopt::name_of(content.type())}, {"shape", content.dims()}, {"file", file}});
    text += "output  " + name + "  " + std::string(dnnopt::name_of(content.type())) + " " +
            dnnopt::to_string(content.dims()) + (file.empty() ? "" : "  -> " + file) + "\n";
    ++position;
  }
  // Who states layouts wants to know what converts them.
  if (!o.texels.empty()) {
    result["conversions"] = session.report().storage.conversions;
    for (const std::string& note : session.report().storage.notes) text += note + "\n";
  }
  text += smaller_work_groups_of(session, result);
  text += specialization_of(session, result);
  text += control_flow_of(session, result);
  result["form"] = form_of(o);
  result["wait"] = wait_of(session);
  result["kernels"] = session.kernels();
  result["host_ops"] = session.host_ops();
  result["placements"] = json::array();
  std::map<std::string, std::size_t> counts;
  for (const dnnopt::placement_row& row : session.placements()) {
    result["placements"].push_back({{"node", row.node}, {"op", row.op}, {"where", row.where}, {"reason", row.reason}});
    ++counts[row.where];
    if (row.where == "host" && o.device != "reference")
      text += "on the host: " + row.op + " '" + row.node + "': " + row.reason + "\n";
  }
  if (session.executor() != nullptr) {
    result["crossings"] = session.executor()->executed().crossings;
    const auto where = [&](const char* place, const char* what) {
      return counts[place] == 0 ? "" : ", " + std::to_string(counts[place]) + what;
    };
    text += std::to_string(session.kernels()) + " device commands, " + std::to_string(counts["device"]) +
            " nodes on the device, " + std::to_string(counts["host"]) + " on the host" +
            where("sizes", " there to learn sizes") + where("bodies", " with bodies of their own") + ", " +
            std::to_string(counts["known"] + counts["alias"]) + " without computation, " + result["crossings"].dump() +
            " crossings" + form_text(o) + "\n";
  }
  const bool quick = session.executor() != nullptr && session.executor()->figures().quick_kernels;
  result["quick_kernels"] = quick;
  keep_plans(o, *compiling.memory.store);
  say(o, text);
  write_json(o, result);
  // Nobody waits behind the output for what the next start would have of it.
  if (quick)
    note(o, "the kernels were compiled quickly, without the driver's optimizer, and run slowly; `dnnopt build '" +
                o.model + "'` with the same flags compiles optimized ones for later starts");
  else
    keep_programs(o, session);
  return 0;
}

}  // namespace tool

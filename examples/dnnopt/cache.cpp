// The file that --cache names: a JSON object in which each part of the tool keeps its own key.
#include <filesystem>
#include <fstream>

#include <dnnopt/passes/memory/memory_io.hpp>

#include "support.hpp"

namespace tool {

namespace {

constexpr const char* plans_key = "memory_plans";

/// The file's object, or an empty one where there is no file yet. Errors: bad_file.
nlohmann::json read_cache(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return nlohmann::json::object();
  nlohmann::json document = nlohmann::json::parse(file, nullptr, false);
  if (!document.is_object()) throw dnnopt::error(dnnopt::errc::bad_file, "'" + path + "' is not a cache of dnnopt");
  return document;
}

}  // namespace

std::shared_ptr<dnnopt::memory::plan_store> plans_of(const options& o) {
  auto plans = std::make_shared<dnnopt::memory::plan_store>();
  if (o.cache.empty()) return plans;
  const nlohmann::json document = read_cache(o.cache);
  if (document.contains(plans_key)) dnnopt::memory::plans_from_json(document[plans_key], *plans);
  return plans;
}

void keep_plans(const options& o, const dnnopt::memory::plan_store& plans) {
  if (o.cache.empty()) return;
  nlohmann::json document = read_cache(o.cache);
  document[plans_key] = dnnopt::memory::plans_to_json(plans);
  // Another process may read the file meanwhile.
  const std::string written = o.cache + ".new";
  std::ofstream file(written, std::ios::binary);
  file << document.dump() << "\n";
  file.close();
  std::error_code failed;
  if (file) std::filesystem::rename(written, o.cache, failed);
  if (!file || failed) throw dnnopt::error(dnnopt::errc::file_io, "cannot write '" + o.cache + "'");
}

}  // namespace tool

// The file that --cache names: a JSON object in which each part of the tool keeps its own key.
#include <cstdio>
#include <filesystem>
#include <fstream>

#include <dnnopt/backend/measure/join_timer.hpp>
#include <dnnopt/backend/measure/tuning_store.hpp>
#include <dnnopt/backend/opencl/device.hpp>
#include <dnnopt/memory/memory_io.hpp>

#include "support.hpp"

namespace tool {

namespace {

constexpr const char* plans_key = "memory_plans";
constexpr const char* tuned_key = "tuned";
constexpr const char* profiles_key = "fusion_profiles";

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

std::shared_ptr<dnnopt::tuning_store> tuned_of(const options& o) {
  auto tuned = std::make_shared<dnnopt::tuning_store>();
  if (o.cache.empty()) return tuned;
  const nlohmann::json document = read_cache(o.cache);
  if (!document.contains(tuned_key)) return tuned;
  const std::size_t left_out = dnnopt::tuned_from_json(document[tuned_key], *tuned);
  if (left_out != 0)
    note(o, std::to_string(left_out) + " tuning results of '" + o.cache + "' are of another version and were left out");
  return tuned;
}

namespace {

/// Replaces one key of the file, or makes the file. Errors: bad_file, file_io.
void write_cache(const options& o, const char* key, nlohmann::json content) {
  nlohmann::json document = read_cache(o.cache);
  document[key] = std::move(content);
  // Another process may read the file meanwhile.
  const std::string written = o.cache + ".new";
  std::ofstream file(written, std::ios::binary);
  file << document.dump() << "\n";
  file.close();
  std::error_code failed;
  if (file) std::filesystem::rename(written, o.cache, failed);
  if (!file || failed) throw dnnopt::error(dnnopt::errc::file_io, "cannot write '" + o.cache + "'");
}

}  // namespace

void keep_plans(const options& o, const dnnopt::memory::plan_store& plans) {
  if (!o.cache.empty()) write_cache(o, plans_key, dnnopt::memory::plans_to_json(plans));
}

void use_profiles(const options& o, dnnopt::compile_options& compiling) {
  if (o.measure && o.device == "reference")
    throw dnnopt::error(dnnopt::errc::usage, "--measure: the reference backend has no kernels to time");
  auto database = std::make_shared<dnnopt::fusion::profile_database>();
  if (!o.cache.empty()) {
    const nlohmann::json document = read_cache(o.cache);
    if (document.contains(profiles_key)) dnnopt::fusion::profiles_from_json(document[profiles_key], *database);
  }
  if (o.device == "reference" || (!o.measure && database->size() == 0)) return;
  if (!compiling.opened)
    compiling.opened = std::make_shared<dnnopt::opened_device>(compiling.device, compiling.programs);
  compiling.judge = dnnopt::make_join_judge(database, compiling.opened, o.measure, compiling.form);
}

void keep_profiles(const options& o, const dnnopt::compile_options& compiling) {
  if (o.cache.empty() || !compiling.judge || compiling.judge->figures().measured == 0) return;
  dnnopt::fusion::profile_database database;
  const nlohmann::json document = read_cache(o.cache);
  if (document.contains(profiles_key)) dnnopt::fusion::profiles_from_json(document[profiles_key], database);
  database.table_of(dnnopt::tuning_store::key_of(dnnopt::with_form(compiling.opened->context.info(), compiling.form))) =
      compiling.judge->table();
  write_cache(o, profiles_key, dnnopt::fusion::profiles_to_json(database));
}

json profile_figures(const dnnopt::compile_options& compiling) {
  const dnnopt::fusion::judge_figures figures =
      compiling.judge ? compiling.judge->figures() : dnnopt::fusion::judge_figures{};
  return {{"asked", figures.asked},
          {"known", figures.known},
          {"measured", figures.measured},
          {"against_default", figures.against_default},
          {"entries", compiling.judge ? compiling.judge->table().size() : 0}};
}

void keep_tuned(const options& o, const dnnopt::tuning_store& tuned) {
  if (!o.cache.empty()) write_cache(o, tuned_key, dnnopt::tuned_to_json(tuned));
}

}  // namespace tool

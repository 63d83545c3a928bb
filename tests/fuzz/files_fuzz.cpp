// Feeds arbitrary bytes to the readers of files that dnnopt writes or is handed beside models: caches, tables, .npy,
// plans. Each gives a value or a dnnopt::error. The first byte chooses the reader.
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <unistd.h>

#include <nlohmann/json.hpp>

#include <dnnopt/backend/measure/facts/stored_facts.hpp>
#include <dnnopt/backend/measure/tuning_store.hpp>
#include <dnnopt/backend/opencl/program_file.hpp>
#include <dnnopt/memory/memory_io.hpp>
#include <dnnopt/npy.hpp>
#include <dnnopt/passes/fusion/profile_database.hpp>
#include <dnnopt/profile/report/compare.hpp>
#include <dnnopt/profile/report/latency_table.hpp>
#include <dnnopt/profile/report/latency_table_json.hpp>

namespace {

using namespace dnnopt;

/// A file with the bytes, for readers of files.
std::filesystem::path written(std::string_view bytes) {
  static const std::filesystem::path path =
      std::filesystem::temp_directory_path() / ("dnnopt_files_fuzz_" + std::to_string(::getpid()));
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
  return path;
}
/// JSON as the tool reads it: what is none is refused before a reader sees it.
template <class Read>
void with_json(std::string_view bytes, const Read& read) {
  const nlohmann::json document = nlohmann::json::parse(bytes, nullptr, false);
  if (!document.is_discarded()) read(document);
}

using reader = void (*)(std::string_view);
constexpr reader readers[] = {
    [](std::string_view bytes) { (void)read_npy(written(bytes)); },
    [](std::string_view bytes) { (void)memory::read_usages(bytes); },
    [](std::string_view bytes) { (void)memory::read_usages_csv(bytes); },
    [](std::string_view bytes) {
      with_json(bytes, [](const nlohmann::json& json) {
        memory::plan_store store;
        memory::plans_from_json(json, store);
      });
    },
    [](std::string_view bytes) {
      with_json(bytes, [](const nlohmann::json& json) {
        tuning_store store;
        (void)tuned_from_json(json, store);
      });
    },
    [](std::string_view bytes) {
      with_json(bytes, [](const nlohmann::json& json) {
        fusion::profile_database database;
        fusion::profiles_from_json(json, database);
      });
    },
    [](std::string_view bytes) { (void)opencl::parse_facts(bytes); },
    [](std::string_view bytes) { (void)profile::latency_table_from_csv(bytes); },
    [](std::string_view bytes) {
      with_json(bytes, [](const nlohmann::json& json) { (void)profile::latency_table_from_json(json); });
    },
    [](std::string_view bytes) {
      with_json(bytes, [](const nlohmann::json& json) { (void)profile::saved_profile_from_json(json); });
    },
    [](std::string_view bytes) {
      opencl::program_file file(written(bytes), "identity");
      std::string payload;
      (void)file.find(opencl::key_of("source", "options"), payload);
      (void)file.write({{opencl::key_of("source", "options"), "binary"}}, {}, 1 << 16);
    },
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  try {
    readers[data[0] % std::size(readers)](bytes);
  } catch (const dnnopt::error&) {
    return 0;
  }
  return 0;
}

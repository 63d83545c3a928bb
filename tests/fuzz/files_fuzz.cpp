// Feeds arbitrary bytes to the readers of files that dnnopt writes or is handed beside models: caches, tables, .npy,
// plans. Each gives a value or a dnnopt::error, and what is written from a value reads back as the same. The first byte
// chooses the reader.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
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

std::filesystem::path path_of(std::string_view what) {
  return std::filesystem::temp_directory_path() /
         ("dnnopt_files_fuzz_" + std::to_string(::getpid()) + "_" + std::string(what));
}

/// A file with the bytes, for readers of files.
std::filesystem::path written(std::string_view bytes) {
  static const std::filesystem::path path = path_of("given");
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
  return path;
}
/// Ends the run where what was written from what was read does not read back as the same.
template <class T>
void expect_same(const T& read, const T& again) {
  if (read != again) std::abort();
}

/// JSON as the tool reads it: what is none is refused before a reader sees it. `read` gives what it read as JSON once
/// more, which reads back.
template <class Read>
void with_json(std::string_view bytes, const Read& read) {
  const nlohmann::json document = nlohmann::json::parse(bytes, nullptr, false);
  if (document.is_discarded()) return;
  const nlohmann::json rewritten = read(document);
  expect_same(rewritten, read(rewritten));
}

opencl::program_key program_key() { return opencl::key_of("source", "options"); }

/// Looks for a program in the file at `path`, and adds one.
void read_programs(const std::filesystem::path& path) {
  opencl::program_file file(path, "identity");
  std::string payload;
  (void)file.find(program_key(), payload);
  (void)file.write({{program_key(), "binary"}}, {program_key()}, 1 << 16);
}

using reader = void (*)(std::string_view);
constexpr reader readers[] = {
    [](std::string_view bytes) {
      const tensor t = read_npy(written(bytes));
      // A file of its own: the tensor's memory may be the file that it was read from.
      const std::filesystem::path path = path_of("again");
      write_npy(path, t);
      const tensor again = read_npy(path);
      expect_same(t.dims(), again.dims());
      if (t.type() != again.type() || !std::ranges::equal(t.bytes(), again.bytes())) std::abort();
    },
    [](std::string_view bytes) {
      const nlohmann::json rewritten = memory::usages_to_json(memory::read_usages(bytes));
      expect_same(rewritten, memory::usages_to_json(memory::read_usages(rewritten.dump())));
    },
    [](std::string_view bytes) {
      const std::string rewritten = memory::write_usages_csv(memory::read_usages_csv(bytes));
      expect_same(rewritten, memory::write_usages_csv(memory::read_usages_csv(rewritten)));
    },
    [](std::string_view bytes) {
      with_json(bytes, [](const nlohmann::json& json) {
        memory::plan_store store;
        memory::plans_from_json(json, store);
        return memory::plans_to_json(store);
      });
    },
    [](std::string_view bytes) {
      with_json(bytes, [](const nlohmann::json& json) {
        tuning_store store;
        (void)tuned_from_json(json, store);
        return tuned_to_json(store);
      });
    },
    [](std::string_view bytes) {
      with_json(bytes, [](const nlohmann::json& json) {
        fusion::profile_database database;
        fusion::profiles_from_json(json, database);
        return fusion::profiles_to_json(database);
      });
    },
    [](std::string_view bytes) {
      // Nine digits may round a number once more.
      if (const auto facts = opencl::parse_facts(bytes))
        if (!opencl::parse_facts(opencl::print_facts(*facts))) std::abort();
    },
    [](std::string_view bytes) {
      const std::string rewritten = profile::to_csv(profile::latency_table_from_csv(bytes));
      expect_same(rewritten, profile::to_csv(profile::latency_table_from_csv(rewritten)));
    },
    [](std::string_view bytes) {
      with_json(bytes,
                [](const nlohmann::json& json) { return profile::to_json(profile::latency_table_from_json(json)); });
    },
    [](std::string_view bytes) {
      const nlohmann::json document = nlohmann::json::parse(bytes, nullptr, false);
      if (document.is_discarded()) return;
      const profile::saved_profile read = profile::saved_profile_from_json(document);
      (void)profile::compare(read, read);
    },
    [](std::string_view bytes) { read_programs(written(bytes)); },
    [](std::string_view bytes) {
      // A file whose hashes are right, but for what the bytes put over it at the place that the first two name.
      const std::filesystem::path path = written("");
      (void)opencl::program_file(path, "identity").write({{program_key(), std::string(200, 'b')}}, {}, 1 << 16);
      if (bytes.size() > 2) {
        const auto at = static_cast<unsigned char>(bytes[0]) * 256U + static_cast<unsigned char>(bytes[1]);
        std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
        file.seekp(static_cast<std::streamoff>(at % std::filesystem::file_size(path))) << bytes.substr(2);
      }
      read_programs(path);
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

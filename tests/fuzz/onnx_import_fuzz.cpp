// Feeds arbitrary bytes to the ONNX importer: it gives a graph that the verifier accepts, or a dnnopt::error.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>

#include <unistd.h>

#include <dnnopt/onnx/import.hpp>
#include <dnnopt/ops/standard.hpp>
#include <dnnopt/passes/verify.hpp>

namespace {

/// A folder with a small data file, for models that refer to one.
struct data_folder {
  std::filesystem::path path = std::filesystem::temp_directory_path() / ("dnnopt_fuzz_" + std::to_string(::getpid()));
  data_folder() {
    std::filesystem::create_directories(path);
    std::ofstream(path / "data.bin") << std::string(64, '\1');
  }
  data_folder(const data_folder&) = delete;
  data_folder& operator=(const data_folder&) = delete;
  ~data_folder() { std::filesystem::remove_all(path); }
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const data_folder folder;
  static const dnnopt::import_options options = [] {
    dnnopt::import_options o;
    o.ops = dnnopt::standard_ops();
    // Expansion of function operators is code of the importer too, so some of them have no row here.
    dnnopt::op_set fewer;
    for (const dnnopt::op_info* row : o.ops.rows())
      if (row->name != "HardSwish" && row->name != "Gelu" && row->name != "ReduceL2" && row->name != "Mish")
        fewer.add(*row);
    o.ops = fewer;
    o.limits.nodes = 20000;
    o.limits.dense_bytes = std::size_t{16} << 20;
    return o;
  }();
  try {
    dnnopt::verify(dnnopt::import_onnx({reinterpret_cast<const std::byte*>(data), size}, folder.path, options),
                   "import");
  } catch (const dnnopt::error& e) {
    if (e.code() == dnnopt::errc::verification_failed) {
      std::fprintf(stderr, "%s\n", e.what());
      std::abort();
    }
  }
  return 0;
}

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

/// The code of the error that the bytes give, or usage, which no import gives, where they are a model.
dnnopt::errc import_and_verify(std::span<const std::byte> bytes, const std::filesystem::path& folder,
                               const dnnopt::import_options& options) {
  try {
    dnnopt::verify(dnnopt::import_onnx(bytes, folder, options), "import");
  } catch (const dnnopt::error& e) {
    if (e.code() == dnnopt::errc::verification_failed) {
      std::fprintf(stderr, "%s\n", e.what());
      std::abort();
    }
    return e.code();
  }
  return dnnopt::errc::usage;
}

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
  const std::span<const std::byte> bytes(reinterpret_cast<const std::byte*>(data), size);
  const dnnopt::errc code = import_and_verify(bytes, folder.path, options);
  // The zoo's graphs come without their data; with zeros in its place they are read to their end.
  if (code == dnnopt::errc::external_data_missing) {
    dnnopt::import_options with_zeros = options;
    with_zeros.missing_data = dnnopt::onnx::missing_data::zeros;
    import_and_verify(bytes, folder.path, with_zeros);
  }
  return 0;
}

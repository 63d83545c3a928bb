// Owns the reading of .onnx files into graphs: the functions that programs call.
#ifndef DNNOPT_ONNX_IMPORT_HPP
#define DNNOPT_ONNX_IMPORT_HPP

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <vector>

#include <dnnopt/detail/implementation.hpp>
#include <dnnopt/graph.hpp>
#include <dnnopt/onnx/import_options.hpp>
#include <dnnopt/warning.hpp>

#if DNNOPT_IMPLEMENT_IMPORT
#include <memory>
#include <utility>

#include <dnnopt/error.hpp>
#include <dnnopt/mapped_file.hpp>
#include <dnnopt/onnx/build_graph.hpp>
#include <dnnopt/onnx/external_data.hpp>
#include <dnnopt/onnx/model_proto.hpp>
#endif

namespace dnnopt {

/// What the importer is told.
struct import_options {
  op_set ops;  ///< the operators that models may use
  onnx::missing_data missing_data =
      onnx::missing_data::fail;  ///< zeros: external data that does not exist reads as zeros
  onnx::import_limits limits;
  /// Graph inputs with a default value (an initializer) that the caller will give: they stay inputs.
  std::vector<std::string> overridden_inputs{};
};

/// A graph, and what its file says besides.
struct imported_model {
  graph main;
  std::vector<onnx::external_file> files;            ///< data files that the model refers to
  std::vector<onnx::external_reference> references;  ///< tensors that lie in them
  std::vector<std::string> default_inputs;           ///< graph inputs with a default value; they became constants
  std::size_t constant_nodes = 0;                    ///< Constant nodes; they became constants without a node
  std::vector<onnx::dead_node> dead_nodes;           ///< nodes that were left out
  std::vector<warning> warnings;                     ///< where the file contradicts itself, and how it was read
  /// The opsets that the file states, by domain ("" is ai.onnx); the graph's own are those that it was adapted to.
  std::map<std::string, std::int64_t> file_opsets{};
};

/// Reads the model at `path`. The graph is in the newest opset: older forms are adapted, functions are inlined,
/// Constant nodes are constants, operators with bodies take captured values as inputs, and shapes are inferred as far
/// as one forward walk tells. Tensors view the mapped file and its external data files; these must not change
/// meanwhile.
///
/// What leads to no output need not be known. Where the file contradicts itself it is read as ONNX Runtime does, with a
/// warning (docs/reference/models_as_found.md).
///
/// Errors: every errc of the hundreds 1 and 2; the text names the node or the byte of the file. O(bytes + nodes log
/// nodes).
[[nodiscard]] imported_model import_model(const std::filesystem::path& path, const import_options& options);
/// The same for a model in memory, which is copied; external data is looked for in `base_folder`.
[[nodiscard]] imported_model import_model(std::span<const std::byte> model, const std::filesystem::path& base_folder,
                                          const import_options& options);

#if DNNOPT_IMPLEMENT_IMPORT
namespace onnx::detail {
inline imported_model import_bytes(std::span<const std::byte> bytes, std::shared_ptr<const void> keep_alive,
                                   const std::filesystem::path& folder, const import_options& options) {
  model_reader reader(options.limits.nesting);
  const model_proto model = reader.read_model(bytes);
  external_files external(folder, options.missing_data);
  tensor_source source;
  source.keep_alive = std::move(keep_alive);
  source.external = &external;
  source.largest_dense_bytes = options.limits.dense_bytes;
  graph_builder builder(model, options.ops, source, options.limits, options.overridden_inputs);
  imported_model result;
  result.main = builder.build();
  result.files = external.files();
  result.references = external.references();
  result.default_inputs = builder.notes().default_inputs;
  result.constant_nodes = builder.notes().constant_nodes;
  result.dead_nodes = builder.notes().dead_nodes;
  result.warnings = builder.notes().warnings;
  for (const opset_proto& o : model.opsets) {
    const std::string domain(o.domain == "ai.onnx" ? std::string_view() : std::string_view(o.domain));
    result.file_opsets[domain] = o.version;
  }
  return result;
}
}  // namespace onnx::detail

DNNOPT_BODY imported_model import_model(const std::filesystem::path& path, const import_options& options) {
  const std::shared_ptr<const mapped_file> file = mapped_file::open(path);
  try {
    return onnx::detail::import_bytes(file->bytes(), file, path.parent_path(), options);
  } catch (const error& e) {
    throw error(e.code(), path.string() + ": " + onnx::text_of(e));
  }
}
DNNOPT_BODY imported_model import_model(std::span<const std::byte> model, const std::filesystem::path& base_folder,
                                        const import_options& options) {
  const auto copy = std::make_shared<const std::vector<std::byte>>(model.begin(), model.end());
  return onnx::detail::import_bytes(*copy, copy, base_folder, options);
}
#endif

/// The graph of import_model alone.
[[nodiscard]] inline graph import_onnx(const std::filesystem::path& path, const import_options& options) {
  return import_model(path, options).main;
}
[[nodiscard]] inline graph import_onnx(std::span<const std::byte> model, const std::filesystem::path& base_folder,
                                       const import_options& options) {
  return import_model(model, base_folder, options).main;
}

}  // namespace dnnopt

#endif  // DNNOPT_ONNX_IMPORT_HPP

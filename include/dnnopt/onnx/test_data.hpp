// Owns ONNX's test data: tensors in .pb files, and the test_data_set_* folders beside a model.
#ifndef DNNOPT_ONNX_TEST_DATA_HPP
#define DNNOPT_ONNX_TEST_DATA_HPP

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dnnopt/error.hpp>
#include <dnnopt/graph.hpp>
#include <dnnopt/mapped_file.hpp>
#include <dnnopt/onnx/node_emitter.hpp>
#include <dnnopt/onnx/tensor_proto.hpp>
#include <dnnopt/tensor.hpp>

namespace dnnopt {

/// Reads the TensorProto in the file at `path`.
/// Errors: file_not_found, file_io, malformed_protobuf, and those of onnx::to_tensor; each names the file.
[[nodiscard]] inline tensor read_tensor_pb(const std::filesystem::path& path) {
  const auto file = mapped_file::open(path);
  try {
    onnx::tensor_source source;
    source.keep_alive = file;
    return onnx::to_tensor(onnx::read_tensor_proto(onnx::wire_reader(file->bytes(), file->bytes().data())), source);
  } catch (const error& e) {
    throw error(e.code(), path.string() + ": " + onnx::text_of(e));
  }
}

/// What a test folder gives to a model and expects of it, by the model's names.
struct test_data_set {
  std::vector<std::pair<std::string, tensor>> inputs;
  std::vector<std::pair<std::string, tensor>> outputs;
};

/// Reads `input_<i>.pb` and `output_<i>.pb` of `folder` for the inputs and outputs of `g`, in order, as many as exist.
/// Errors: unsupported where one of them is a sequence, optional or map; those of read_tensor_pb.
[[nodiscard]] inline test_data_set read_test_data_set(const std::filesystem::path& folder, const graph& g) {
  if (!std::filesystem::is_directory(folder)) throw error(errc::file_not_found, "no folder '" + folder.string() + "'");
  const auto read = [&](std::string_view kind, const std::vector<value_id>& ids) {
    std::vector<std::pair<std::string, tensor>> result;
    for (std::size_t i = 0; i < ids.size(); ++i) {
      const auto path = folder / (std::string(kind) + "_" + std::to_string(i) + ".pb");
      if (!std::filesystem::exists(path)) break;
      const value& v = g.value_at(ids[i]);
      if (v.facts.kind != value_kind::tensor)
        throw error(errc::unsupported,
                    path.string() + ": '" + v.name + "' is a sequence, optional or map, which is not read");
      result.emplace_back(v.name, read_tensor_pb(path));
    }
    return result;
  };
  return {read("input", g.inputs()), read("output", g.outputs())};
}

}  // namespace dnnopt

#endif  // DNNOPT_ONNX_TEST_DATA_HPP

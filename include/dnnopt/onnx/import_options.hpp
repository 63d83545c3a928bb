// Owns what the importer is told about limits and missing data, and what it tells about the data files of a model.
#ifndef DNNOPT_ONNX_IMPORT_OPTIONS_HPP
#define DNNOPT_ONNX_IMPORT_OPTIONS_HPP

#include <cstddef>
#include <memory>
#include <span>
#include <string>

namespace dnnopt {
class mapped_file;
}

namespace dnnopt::onnx {

/// How much a file may ask for, so that a small file cannot exhaust memory or stack.
struct import_limits {
  std::size_t nesting = 64;                        ///< graphs, types and function calls in each other
  std::size_t nodes = std::size_t{1} << 22;        ///< after inlining
  std::size_t dense_bytes = std::size_t{1} << 31;  ///< of a sparse tensor made dense
};

/// What to do about an external data file that does not exist.
enum class missing_data { fail, zeros };

/// A data file of a model.
struct external_file {
  std::string location;  ///< relative to the model's folder, as the model writes it
  std::shared_ptr<const mapped_file> file;
  bool missing = false;  ///< the file does not exist, its tensors are zeros; `file` is null
};

/// A node that leads to no output and could not be imported: it was left out.
struct dead_node {
  std::string name;
  std::string op_type;
  std::string domain;  ///< "" is ai.onnx
  std::string reason;
};

/// One reference of the model to external data.
struct external_reference {
  std::string tensor;
  std::size_t file = 0;  ///< index among the model's external files
  std::size_t offset = 0;
  std::span<const std::byte> data;  ///< what the tensor views; zeros where the file is missing
};

}  // namespace dnnopt::onnx

#endif  // DNNOPT_ONNX_IMPORT_OPTIONS_HPP

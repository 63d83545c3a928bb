// Owns models out of messages that tests write.
#ifndef DNNOPT_TESTS_SUPPORT_WRITTEN_MODEL_HPP
#define DNNOPT_TESTS_SUPPORT_WRITTEN_MODEL_HPP

#include <dnnopt/dnnopt.hpp>
#include <dnnopt/ops/standard.hpp>

#include <support/onnx_writer.hpp>

namespace dnnopt_tests {

/// The model of a written file, with ONNX's operators.
[[nodiscard]] inline dnnopt::model loaded(const message& written) {
  dnnopt::import_options how;
  how.ops = dnnopt::standard_ops();
  dnnopt::model result;
  result.main = dnnopt::import_model(written.bytes(), {}, how).main;
  result.ops = dnnopt::standard_ops();
  return result;
}

}  // namespace dnnopt_tests

#endif  // DNNOPT_TESTS_SUPPORT_WRITTEN_MODEL_HPP

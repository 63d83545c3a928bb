// dnnopt weights
#include <dnnopt/ops/standard.hpp>
#include <dnnopt/zoo/generate_weights.hpp>

#include "support.hpp"

namespace tool {

int weights(const options& o) {
  dnnopt::import_options import;
  import.ops = dnnopt::standard_ops();
  dnnopt::weight_options writing;
  writing.seed = o.seed;
  dnnopt::load_options loading;
  loading.missing_data = dnnopt::onnx::missing_data::zeros;
  const dnnopt::model m = load_model(o, std::move(loading));
  const std::uint64_t bytes = dnnopt::generate_weights(o.model, import, writing);
  say(o, bytes == 0 ? std::string("no external data is missing\n") : std::to_string(bytes) + " bytes written\n");
  write_json(o, {{"bytes", bytes}, {"warnings", to_json(m.warnings)}});
  return 0;
}

}  // namespace tool

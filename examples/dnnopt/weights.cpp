// dnnopt weights
#include <dnnopt/ops/standard.hpp>
#include <dnnopt/zoo/generate_weights.hpp>

#include "command.hpp"

namespace tool {

int weights(const options& o) {
  dnnopt::import_options import;
  import.ops = dnnopt::standard_ops();
  dnnopt::weight_options writing;
  writing.seed = o.seed;
  const std::uint64_t bytes = dnnopt::generate_weights(o.model, import, writing);
  say(o, bytes == 0 ? std::string("no external data is missing\n") : std::to_string(bytes) + " bytes written\n");
  write_json(o, {{"bytes", bytes}});
  return 0;
}

}  // namespace tool

// The kernels that networks get on three devices of stated facts, against a list that is kept: results stay right when
// a block falls to a weaker family, so nothing else would say so. And what a store may not hold.
#include "choose_fixture.hpp"

#include <catch2/catch.hpp>

#include <cstdlib>
#include <fstream>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include <dnnopt/backend/codegen/matrix_step.hpp>
#include <dnnopt/backend/program/make_program.hpp>
#include <dnnopt/backend/storage/narrow.hpp>
#include <dnnopt/session.hpp>

using namespace dnnopt;
using namespace dnnopt::testing;

namespace {

const std::vector<std::string> networks{
    "bert_base", "efficientnet_b0", "efficientvit_b2",         "gpt2",
    "resnet50",  "resnext50_32x4d", "mobilenetv2_100",         "ssdlite320",
    "s3d",       "conformer",       "dynamic/swin_tiny_batch", "vit_base_patch16_224"};

struct setting {
  std::string name;
  device_info device;
  precision stored = precision::fp32;
};

std::vector<setting> settings() {
  return {{"vectors", cpu_device()}, {"groups", gpu_device()}, {"groups fp16", gpu_device(), precision::fp16}};
}

program program_of(const std::string& network, const setting& s) {
  compile_options options;
  options.precision = s.stored;
  compile_report report;
  const model source = load(std::string(DNNOPT_SOURCE_DIR) + "/bench/zoo/" + network + ".onnx",
                            load_options{.missing_data = onnx::missing_data::zeros});
  auto g = std::make_shared<const graph>(optimize(source, options, report));
  codegen::lower_options lowering = codegen::default_lower_options(&s.device);
  if (s.stored == precision::fp16) {
    lowering.steps = {&codegen::plain_step, nullptr};
    g = narrow_storage(g, lowering).g;
  }
  return make_program(g, lowering, false);
}

/// The text of the function whose first line begins so, of those that are made for a block; empty where there is none.
std::string function_text(std::string_view source, std::string_view head) {
  source = source.substr(0, source.find("#ifndef DNNOPT_PARAMETERS"));  // what follows is the frame's own text
  const std::size_t begin = source.find(head);
  if (begin == std::string_view::npos) return {};
  return std::string(source.substr(begin, source.find("\n}\n", begin) - begin));
}

}  // namespace

TEST_CASE("kernels of networks are those of the list", "[kernels][unsimulated]") {
  std::ostringstream got;
  for (const setting& s : settings())
    for (const std::string& network : networks) {
      std::map<std::string, int> versions;
      for (const placed_node& step : program_of(network, s).steps) {
        if (step.where == placement::host) ++versions["(host)"];
        for (const codegen::kernel_plan& plan : step.lowered.kernels) {
          ++versions[plan.version];
          // What a frame hands to its store is done: a loop there computes an operand's product once more.
          for (const std::string_view head :
               {"static inline void dnnopt_store4(", "static inline void dnnopt_store("}) {
            INFO(network << ", " << s.name << ", " << plan.version);
            CHECK(function_text(std::string(plan.source), head).find("for (") == std::string::npos);
          }
        }
      }
      got << s.name << ", " << network << ":";
      for (const auto& [name, count] : versions) got << ' ' << name << ' ' << count;
      got << '\n';
    }
  const std::string kept_in = std::string(DNNOPT_SOURCE_DIR) + "/tests/kernels/zoo_kernels.txt";
  if (std::getenv("DNNOPT_WRITE_LIST") != nullptr) std::ofstream(kept_in) << got.str();
  std::ostringstream kept;
  kept << std::ifstream(kept_in).rdbuf();
  // A change that is meant is written by DNNOPT_WRITE_LIST=1, looked at, and committed with its reason.
  std::istringstream got_lines(got.str());
  std::istringstream kept_lines(kept.str());
  std::string mine;
  std::string listed;
  while (std::getline(got_lines, mine)) {
    REQUIRE(std::getline(kept_lines, listed));
    CHECK(mine == listed);
  }
  CHECK_FALSE(std::getline(kept_lines, listed));
}

// Writes random graphs with planted patterns, quantized operators and symbolic dims as seeds of model_fuzz, so that its
// inputs reach what passes recognize: write_graphs FOLDER [COUNT]
#include <cstdint>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <string>

#include <dnnopt/onnx/export.hpp>

#include "property/random_patterns.hpp"

int main(int count, char** texts) {
  try {
    if (count < 2) {
      std::fprintf(stderr, "usage: write_graphs FOLDER [COUNT]\n");
      return 2;
    }
    const std::filesystem::path folder = texts[1];
    const unsigned long graphs = count > 2 ? std::stoul(texts[2]) : 300;
    for (std::uint32_t seed = 1; seed <= graphs; ++seed)
      dnnopt::export_onnx(testing::grown_graph(seed).model().main,
                          folder / ("grown_" + std::to_string(seed) + ".onnx"));
    std::printf("%lu random graphs\n", graphs);
    return 0;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "write_graphs: %s\n", e.what());
    return 1;
  }
}

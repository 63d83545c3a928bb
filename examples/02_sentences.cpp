// Embeds the lines of a text file with a sentence network and prints which of them are alike.
//   02_sentences MODEL.onnx SENTENCES.txt [--profile | --fp16]
// MODEL.onnx and the vocab.txt beside it are what tools/minilm_weights.py writes. --profile prints where the time of
// this very inference went; --fp16 also stores weights and intermediate values in half the memory and tells whether
// that moves a similarity by more than 0.01.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <dnnopt/backend/measure/profiled_run.hpp>
#include <dnnopt/dnnopt.hpp>
#include <dnnopt/profile/report/table.hpp>

#include "wordpiece.hpp"

namespace {

std::ifstream opened(const std::filesystem::path& path) {
  std::ifstream file(path);
  if (!file) throw std::runtime_error("cannot open " + path.string());
  return file;
}

// Two sentences are alike from here on; unrelated ones stay below 0.2.
constexpr float alike = 0.5F;

int run(const std::filesystem::path& model_path, const std::filesystem::path& text_path, std::string_view option) {
  const bool profile = option == "--profile";
  std::ifstream vocabulary = opened(model_path.parent_path() / "vocab.txt");
  const examples::wordpiece tokenizer(vocabulary);

  std::vector<std::string> sentences;
  std::vector<std::vector<std::int64_t>> tokens;
  std::ifstream text = opened(text_path);
  for (std::string line; std::getline(text, line);) {
    tokens.push_back(tokenizer.encode(line));
    sentences.push_back(line);
  }
  if (sentences.empty()) throw std::runtime_error(text_path.string() + " has no line");

  // One batch: shorter sentences are padded with 0, which the mask hides.
  const auto count = static_cast<std::int64_t>(sentences.size());
  std::size_t longest = 0;
  for (const auto& row : tokens) longest = std::max(longest, row.size());
  const dnnopt::dim_list dims{count, static_cast<std::int64_t>(longest)};
  dnnopt::tensor ids(dnnopt::dtype::int64, dims);
  dnnopt::tensor mask(dnnopt::dtype::int64, dims);
  for (std::size_t row = 0; row < tokens.size(); ++row) {
    std::ranges::copy(tokens[row], ids.mutable_data<std::int64_t>().subspan(row * longest).begin());
    std::ranges::fill(mask.mutable_data<std::int64_t>().subspan(row * longest, tokens[row].size()), 1);
  }

  auto model = dnnopt::load(model_path);
  auto session = dnnopt::compile(model, {.device = "opencl"});
  const dnnopt::named_tensors inputs{{"input_ids", ids}, {"attention_mask", mask}};
  dnnopt::named_tensors outputs;
  std::string table;
  if (profile) {
    // What the first inference of a shape prepares is no part of a table of kernels.
    (void)session.run(inputs);
    dnnopt::profile::profiler profiler;
    dnnopt::profiled_run observer(profiler, session.executor()->executed());
    observer.begin();
    outputs = session.run(inputs, &observer);
    observer.end();
    table = dnnopt::profile::to_table(profiler.report());
  } else {
    outputs = session.run(inputs);
  }
  const std::span<const float> unit_vectors = outputs[0].data<float>();

  const std::size_t width = unit_vectors.size() / sentences.size();
  const auto similarity_in = [&](std::span<const float> vectors, std::size_t a, std::size_t b) {
    const auto first = vectors.subspan(a * width, width);
    return std::inner_product(first.begin(), first.end(), vectors.subspan(b * width).begin(), 0.0F);
  };
  const auto similarity = [&](std::size_t a, std::size_t b) { return similarity_in(unit_vectors, a, b); };
  for (std::size_t a = 0; a < sentences.size(); ++a) {
    std::printf("%zu", a + 1);
    for (std::size_t b = 0; b < sentences.size(); ++b)
      b < a ? std::printf("        ") : std::printf("  %6.3f", static_cast<double>(similarity(a, b)));
    std::printf("  %s\n", sentences[a].c_str());
  }
  for (std::size_t a = 0; a < sentences.size(); ++a)
    for (std::size_t b = a + 1; b < sentences.size(); ++b)
      if (similarity(a, b) >= alike)
        std::printf("alike: \"%s\" and \"%s\"\n", sentences[a].c_str(), sentences[b].c_str());
  if (option == "--fp16") {
    auto narrow = dnnopt::compile(model, {.device = "opencl", .precision = dnnopt::precision::fp16});
    const dnnopt::named_tensors halves = narrow.run(inputs);
    float moved = 0.0F;
    for (std::size_t a = 0; a < sentences.size(); ++a)
      for (std::size_t b = a; b < sentences.size(); ++b) {
        const float by = std::fabs(similarity_in(halves[0].data<float>(), a, b) - similarity(a, b));
        if (by > moved || std::isnan(by)) moved = by;
      }
    const bool small = moved <= 0.01F;
    std::printf("stored in fp16, similarities move by %s\n", small ? "no more than 0.01" : "MORE THAN 0.01");
    std::fprintf(stderr, "by %.5f at most\n", static_cast<double>(moved));
    if (!small) return 1;
  }
  std::printf("%s", table.empty() ? "" : ("\n" + table).c_str());
  return 0;
}

}  // namespace

int main(int count, char** arguments) {
  const std::string_view option = count == 4 ? arguments[3] : "";
  if ((count != 3 && count != 4) || (count == 4 && option != "--profile" && option != "--fp16")) {
    std::fprintf(stderr, "usage: %s MODEL.onnx SENTENCES.txt [--profile | --fp16]\n", arguments[0]);
    return 2;
  }
  try {
    return run(arguments[1], arguments[2], option);
  } catch (const std::exception& problem) {
    std::fprintf(stderr, "%s\n", problem.what());
    return 2;
  }
}

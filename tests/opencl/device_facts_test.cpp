// Measured facts of a device and the file that keeps them.
#include <dnnopt/backend/measure/facts/stored_facts.hpp>

#include <catch2/catch.hpp>

#include <fstream>
#include <iterator>

#include "runtime_fixture.hpp"

using namespace dnnopt;
using namespace dnnopt::opencl;

namespace {

device_facts counted_facts() {
  device_facts facts;
  double value = 1.0 / 3.0;
  for (const opencl::detail::fact_field& field : opencl::detail::fact_fields) facts.*field.member = value *= 1.7;
  facts.wave_size = 32;
  return facts;
}

}  // namespace

TEST_CASE("facts survive their text") {
  const device_facts facts = counted_facts();
  const std::string text = print_facts(facts);
  const auto back = parse_facts(text);
  REQUIRE(back);
  for (const opencl::detail::fact_field& field : opencl::detail::fact_fields) {
    CHECK((*back).*field.member == Approx(facts.*field.member).epsilon(1e-8));
  }
  CHECK(back->wave_size == 32);
  CHECK(std::size(opencl::detail::fact_fields) * sizeof(double) + sizeof(std::size_t) == sizeof(device_facts));
}

TEST_CASE("a damaged text gives no facts") {
  const std::string text = print_facts(counted_facts());
  CHECK(!parse_facts(""));
  for (std::size_t n = 0; n < text.size(); n += 7) CHECK(!parse_facts(std::string_view(text).substr(0, n)));
  std::string changed = text;
  changed.replace(changed.find("fma_gflops ") + 11, 1, "x");
  CHECK(!parse_facts(changed));
  changed = text;
  changed.replace(changed.find("fma_gflops ") + 11, 1, "-1");
  CHECK(!parse_facts(changed));
  changed = text;
  changed.replace(changed.find("upload_gbs"), 10, "unload_gbs");
  CHECK(!parse_facts(changed));
}

TEST_CASE("images are fast when they keep up with buffers") {
  device_facts facts;
  CHECK(!facts.images_fast(false));
  facts.buffer_copy_gbs = 4000;
  facts.buffer_window_gbs = 9000;
  facts.image_copy_fp32_gbs = 3900;
  facts.image_window_gbs = 9500;
  CHECK(facts.images_fast(false));
  CHECK(!facts.images_fast(true));
  facts.image_window_gbs = 8000;
  CHECK(!facts.images_fast(false));
  facts.buffer_window_fp16_gbs = 5000;
  facts.image_window_fp16_gbs = 5000;
  facts.image_copy_fp16_gbs = 3000;
  CHECK(facts.images_fast(true));
}

TEST_CASE("a device is measured once, then its file is read") {
  const testing::temporary_folder folder;
  context where = testing::first_context();
  const device_facts measured = facts_of(where, folder.path());
  for (const opencl::detail::fact_field& field : opencl::detail::fact_fields) {
    CAPTURE(std::string(field.name), measured.*field.member);
    const bool image = field.name.starts_with("image");
    const bool recorded = field.name == "recorded_launch_us";
    if ((image && !where.info().images.supported) || recorded) continue;
    CHECK(measured.*field.member > 0);
  }
  CHECK((measured.recorded_launch_us > 0) == (offered_method(where.info()) != recording_method::plain));
  CHECK(measured.wave_size >= 1);
  CHECK(where.memory().figures().live_bytes == 0);

  std::vector<std::filesystem::path> files(std::filesystem::directory_iterator(folder.path()), {});
  REQUIRE(files.size() == 1);
  std::ifstream in(files[0]);
  std::string text(std::istreambuf_iterator<char>(in), {});
  const std::size_t at = text.find("fma_gflops ") + 11;
  text.replace(at, text.find('\n', at) - at, "12345");
  std::ofstream(files[0], std::ios::trunc) << text;
  CHECK(facts_of(where, folder.path()).fma_gflops == 12345);
  CHECK(facts_of(where, folder.path()).launch_us == Approx(measured.launch_us));
  // A damaged file is measured anew and replaced.
  std::ofstream(files[0], std::ios::trunc) << text.substr(0, text.size() / 2);
  CHECK(facts_of(where, folder.path()).fma_gflops != 12345);
  CHECK(std::filesystem::file_size(files[0]) > text.size() / 2);
}

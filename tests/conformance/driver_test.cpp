// The conformance driver on folders written here: each verdict, tolerances, containers, and data that contradicts its
// model.
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include <unistd.h>

#include <catch2/catch.hpp>
#include <protozero/pbf_writer.hpp>

#include "dnnopt/conformance.hpp"

namespace {

namespace fs = std::filesystem;
using protozero::pbf_writer;

/// A folder that disappears with the object.
class scratch_folder {
 public:
  scratch_folder() : path_(fs::temp_directory_path() / ("dnnopt_conformance_" + std::to_string(::getpid()))) {
    fs::create_directories(path_);
  }
  ~scratch_folder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  scratch_folder(const scratch_folder&) = delete;
  scratch_folder& operator=(const scratch_folder&) = delete;
  [[nodiscard]] const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

void write(const fs::path& file, const std::string& content) {
  fs::create_directories(file.parent_path());
  std::ofstream(file, std::ios::binary) << content;
}

/// A TensorProto of float32.
std::string tensor_proto(const std::vector<std::int64_t>& dims, const std::vector<float>& values) {
  std::string bytes;
  pbf_writer tensor(bytes);
  for (const std::int64_t dim : dims) tensor.add_int64(1, dim);
  tensor.add_int32(2, 1);
  tensor.add_packed_float(4, values.begin(), values.end());
  return bytes;
}

/// A ValueInfoProto: a float tensor of one dim, or a sequence of float tensors.
void value_info(pbf_writer& graph, std::uint32_t field, const std::string& name, std::int64_t dim, bool sequence) {
  pbf_writer info(graph, field);
  info.add_string(1, name);
  pbf_writer type(info, 2);
  const auto tensor = [&](pbf_writer& parent) {
    pbf_writer t(parent, 1);
    t.add_int32(1, 1);
    if (sequence) return;
    pbf_writer shape(t, 2);
    pbf_writer d(shape, 1);
    d.add_int64(1, dim);
  };
  if (sequence) {
    pbf_writer s(type, 4);
    pbf_writer element(s, 1);
    tensor(element);
  } else {
    tensor(type);
  }
}

/// A model of one node from x (float tensors of two elements) to y.
std::string model(const std::string& op, const std::string& domain = "", bool sequence_output = false) {
  std::string bytes;
  pbf_writer m(bytes);
  m.add_int64(1, 8);
  {
    pbf_writer graph(m, 7);
    {
      pbf_writer node(graph, 1);
      node.add_string(1, "x");
      node.add_string(2, "y");
      node.add_string(4, op);
      if (!domain.empty()) node.add_string(7, domain);
    }
    graph.add_string(2, "g");
    value_info(graph, 11, "x", 2, false);
    value_info(graph, 12, "y", 2, sequence_output);
  }
  {
    pbf_writer opset(m, 8);
    opset.add_int64(2, 17);
  }
  if (!domain.empty()) {
    pbf_writer opset(m, 8);
    opset.add_string(1, domain);
    opset.add_int64(2, 1);
  }
  return bytes;
}

struct expectation {
  std::string name;
  tool::conformance_verdict verdict;
  std::string_view reason;  // a part of it
};

}  // namespace

TEST_CASE("the conformance driver tells passed, failed and unsupported apart") {
  const scratch_folder scratch;
  const auto test = [&](const std::string& name, const std::string& bytes, const std::string& input,
                        const std::string& output) {
    write(scratch.path() / name / "model.onnx", bytes);
    write(scratch.path() / name / "test_data_set_0" / "input_0.pb", input);
    write(scratch.path() / name / "test_data_set_0" / "output_0.pb", output);
  };
  const std::string x = tensor_proto({2}, {1, -2});
  const std::string y = tensor_proto({2}, {-1, 2});
  test("a_right", model("Neg"), x, y);
  test("b_within", model("Neg"), x, tensor_proto({2}, {-1.0005F, 2}));
  test("c_wrong", model("Neg"), x, tensor_proto({2}, {-1.002F, 2}));
  test("d_looser", model("Neg"), x, tensor_proto({2}, {-1.002F, 2}));
  write(scratch.path() / "d_looser" / "data.json", R"({"rtol": 0.01, "atol": 0})");
  test("e_unknown", model("Thing", "com.example"), x, y);
  test("f_random", model("RandomUniformLike"), x, y);
  test("g_contradicted", model("Neg"), tensor_proto({3}, {1, 2, 3}), y);
  test("h_damaged", model("Neg").substr(0, 20), x, y);
  std::string sequence;
  {
    pbf_writer s(sequence);
    s.add_int32(2, 1);
    s.add_message(3, x);
  }
  test("i_sequence", model("SequenceConstruct", "", true), x, sequence);
  fs::create_directories(scratch.path() / "j_no_model");

  using verdict = tool::conformance_verdict;
  const std::vector<expectation> expected{
      {"a_right", verdict::passed, ""},
      {"b_within", verdict::passed, ""},
      {"c_wrong", verdict::failed, "output 0: element 0 is -1, expected -1.00"},
      {"d_looser", verdict::passed, ""},
      {"e_unknown", verdict::unsupported, "Thing"},
      {"f_random", verdict::unsupported, "RandomUniformLike draws random numbers"},
      {"g_contradicted", verdict::unsupported, "contradicts its model"},
      {"h_damaged", verdict::failed, "[dnnopt.203]"},
      {"i_sequence", verdict::passed, ""},
  };
  std::size_t told = 0;
  const tool::conformance_report report =
      tool::run_conformance(scratch.path(), tool::reference_runner(), [&](const tool::conformance_result&) { ++told; });
  REQUIRE(report.results.size() == expected.size());
  CHECK(told == expected.size());
  for (std::size_t k = 0; k < expected.size(); ++k) {
    INFO(expected[k].name << ": " << report.results[k].reason);
    CHECK(report.results[k].name == expected[k].name);
    CHECK(report.results[k].verdict == expected[k].verdict);
    CHECK(report.results[k].reason.find(expected[k].reason) != std::string::npos);
    CHECK((report.results[k].verdict == verdict::passed) == report.results[k].reason.empty());
  }
  CHECK(report.passed == 4);
  CHECK(report.failed == 2);
  CHECK(report.unsupported == 3);
  const auto json = tool::to_json(report);
  CHECK(json["passed"] == 4);
  CHECK(json["failures"].size() == 5);
  CHECK(json["failures"][0]["name"] == "c_wrong");
}

TEST_CASE("a folder without tests is an error; a test folder itself is one test") {
  const scratch_folder scratch;
  CHECK_THROWS_AS(tool::run_conformance(scratch.path(), tool::reference_runner()), dnnopt::error);
  write(scratch.path() / "model.onnx", model("Neg"));
  const auto report = tool::run_conformance(scratch.path(), tool::reference_runner());
  REQUIRE(report.results.size() == 1);
  CHECK(report.results[0].reason.find("test_data_set_") != std::string::npos);
}

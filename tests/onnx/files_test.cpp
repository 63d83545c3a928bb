// .npy files and ONNX's test data: read back what was written, refuse what is damaged.
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>

#include <unistd.h>

#include <catch2/catch.hpp>

#include <dnnopt/graph_io.hpp>
#include <dnnopt/npy.hpp>
#include <dnnopt/onnx/test_data.hpp>

#include <support/onnx_writer.hpp>

namespace {

using namespace dnnopt;

struct folder {
  std::filesystem::path path = std::filesystem::temp_directory_path() / ("dnnopt_files_" + std::to_string(::getpid()));
  folder() { std::filesystem::create_directories(path); }
  folder(const folder&) = delete;
  folder& operator=(const folder&) = delete;
  ~folder() { std::filesystem::remove_all(path); }

  [[nodiscard]] std::string write(const std::string& name, const std::string& content) const {
    std::ofstream(path / name, std::ios::binary) << content;
    return (path / name).string();
  }
};

std::string npy(const std::string& header, const std::string& data) {
  std::string text = header + std::string(117 - header.size(), ' ') + "\n";
  return std::string("\x93NUMPY\x01\x00", 8) + static_cast<char>(text.size()) + '\0' + text + data;
}

}  // namespace

TEST_CASE("every numeric type survives a .npy file", "[npy]") {
  const folder f;
  const auto round_trip = [&](const tensor& t) {
    write_npy(f.path / "t.npy", t);
    return read_npy(f.path / "t.npy");
  };
  const auto same = [&](const tensor& t) {
    const tensor back = round_trip(t);
    CHECK(back.type() == t.type());
    CHECK(back.dims() == t.dims());
    CHECK(std::equal(back.bytes().begin(), back.bytes().end(), t.bytes().begin(), t.bytes().end()));
  };
  same(tensor::of<float>({2, 3}, {1, 2, 3, 4, 5, -6.5f}));
  same(tensor::of<double>({1}, {0.1}));
  same(tensor::of<float16>({2}, std::vector{float16(1.5f), float16(-2)}));
  same(tensor::of<std::int8_t>({2}, {-1, 1}));
  same(tensor::of<std::int16_t>({2}, {-1, 1}));
  same(tensor::of<std::int32_t>({2}, {-1, 1}));
  same(tensor::of<std::int64_t>({2}, {-1, 1}));
  same(tensor::of<std::uint8_t>({2}, {255, 1}));
  same(tensor::of<std::uint16_t>({2}, {65535, 1}));
  same(tensor::of<std::uint32_t>({2}, {1u << 31, 1}));
  same(tensor::of<std::uint64_t>({2}, {std::uint64_t{1} << 63, 1}));
  same(tensor::scalar(true));
  same(tensor(dtype::complex64, {2}));
  same(tensor(dtype::complex128, {2}));
  same(tensor(dtype::float32, {0, 4}));
  CHECK(to_string(round_trip(tensor::of<bfloat16>({1}, std::vector{bfloat16(2.5f)}))) == "float32 1 [2.5]");
  CHECK(to_string(round_trip(tensor::of<float8e4m3fn>({1}, std::vector{float8e4m3fn(0.5f)}))) == "float32 1 [0.5]");
  CHECK(to_string(round_trip(tensor::of<float4e2m1>({1}, std::vector{float4e2m1(6)}))) == "float32 1 [6]");
  CHECK(round_trip(tensor(dtype::int4, {3})).type() == dtype::int8);
  CHECK_THROWS_AS(write_npy(f.path / "t.npy", tensor(dtype::string, {1})), error);
  CHECK_THROWS_AS(write_npy(f.path / "none" / "t.npy", tensor::scalar(1.0f)), error);
}

TEST_CASE("column order, other byte orders and later formats of .npy are read", "[npy]") {
  const folder f;
  // [[1, 2, 3], [4, 5, 6]] by columns.
  const std::string columns = npy("{'descr': '<i2', 'fortran_order': True, 'shape': (2, 3), }",
                                  dnnopt_tests::raw<std::int16_t>({1, 4, 2, 5, 3, 6}));
  CHECK(to_string(read_npy(f.write("f.npy", columns))) == "int16 2x3 [1, 2, 3, 4, 5, 6]");
  const std::string big =
      npy("{'descr': '>i4', 'fortran_order': False, 'shape': (2,), }", std::string("\0\0\0\1\0\0\1\0", 8));
  CHECK(to_string(read_npy(f.write("b.npy", big))) == "int32 2 [1, 256]");
  std::string second = npy("{\"descr\": \"|u1\", \"fortran_order\": False, \"shape\": ()}", "\x07");
  second[6] = 2;
  second.insert(10, 2, '\0');
  CHECK(to_string(read_npy(f.write("s.npy", second))) == "uint8 scalar [7]");
  CHECK(to_string(read_npy(f.write("bool.npy", npy("{'descr': '|b1', 'fortran_order': False, 'shape': (2,), }",
                                                   "\x05\x01")))) == "bool 2 [true, true]");
}

TEST_CASE("damaged .npy files are refused", "[npy]") {
  const folder f;
  const auto code_of = [&](const std::string& content) {
    try {
      (void)read_npy(f.write("bad.npy", content));
    } catch (const error& e) {
      CHECK_THAT(e.what(), Catch::Contains("bad.npy"));
      return e.code();
    }
    return errc::usage;
  };
  CHECK(code_of("") == errc::bad_file);
  CHECK(code_of("no numbers at all") == errc::bad_file);
  CHECK(code_of(std::string("\x93NUMPY\x01\x00\xff\xff", 10)) == errc::bad_file);
  CHECK(code_of(npy("{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }", "1234")) == errc::bad_file);
  CHECK(code_of(npy("{'descr': '<f4', 'fortran_order': False, 'shape': (x,), }", "1234")) == errc::bad_file);
  CHECK(code_of(npy("{'descr': '<f4', 'fortran_order': False, 'shape': (-1,), }", "1234")) == errc::bad_file);
  CHECK(code_of(npy("{'descr': '<f4', 'fortran_order': Maybe, 'shape': (1,), }", "1234")) == errc::bad_file);
  CHECK(code_of(npy("{'descr': '<U4', 'fortran_order': False, 'shape': (1,), }", "1234")) == errc::bad_file);
  CHECK(code_of(npy("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,), }", "1234")) == errc::bad_file);
  CHECK(code_of(npy("{'fortran_order': False, 'shape': (1,), }", "1234")) == errc::bad_file);
  CHECK(code_of(npy("{'descr': '<f4', 'fortran_order': False, 'shape': 1, }", "1234")) == errc::bad_file);
  CHECK_THROWS_AS(read_npy(f.path / "none.npy"), error);
}

TEST_CASE("test data goes to inputs and outputs in order", "[test data]") {
  const folder f;
  graph g;
  g.add_input("a", dtype::float32, shape{2});
  g.add_input("b", dtype::int64, shape{1});
  g.add_output(g.inputs()[0]);
  (void)f.write("input_0.pb", dnnopt_tests::float_tensor("", {2}, {1, 2}).data);
  (void)f.write("input_1.pb", dnnopt_tests::int_tensor("", {3}).data);
  (void)f.write("output_0.pb", dnnopt_tests::float_tensor("", {2}, {5, 6}).data);
  const test_data_set set = read_test_data_set(f.path, g);
  REQUIRE(set.inputs.size() == 2);
  CHECK(set.inputs[0].first == "a");
  CHECK(to_string(set.inputs[1].second) == "int64 1 [3]");
  REQUIRE(set.outputs.size() == 1);
  CHECK(to_string(set.outputs[0].second) == "float32 2 [5, 6]");
  g.facts(g.inputs()[1]).kind = value_kind::sequence;
  try {
    (void)read_test_data_set(f.path, g);
    FAIL("a sequence was read");
  } catch (const error& e) {
    CHECK(e.code() == errc::unsupported);
  }
  CHECK_THROWS_AS(read_tensor_pb(f.write("bad.pb", "\xff\xff\xff")), error);
}

// Bad input of every kind gives an error of its code that names the byte of the file or the node.
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <vector>

#include <unistd.h>

#include <catch2/catch.hpp>

#include <dnnopt/counter_random.hpp>
#include <dnnopt/onnx/import.hpp>
#include <dnnopt/ops/standard.hpp>

#include <support/onnx_writer.hpp>

namespace {

using namespace dnnopt_tests;
using dnnopt::errc;

const dnnopt::import_options& options() {
  static const dnnopt::import_options held = [] {
    dnnopt::import_options o;
    o.ops = dnnopt::standard_ops();
    return o;
  }();
  return held;
}

/// A folder with data.bin of 8 bytes, and a link out of it.
struct model_folder {
  std::filesystem::path path = std::filesystem::temp_directory_path() / ("dnnopt_import_" + std::to_string(::getpid()));
  model_folder() {
    std::filesystem::create_directories(path / "inside" / "folder");
    std::ofstream(path / "inside" / "data.bin") << "12345678";
    std::ofstream(path / "outside.bin") << "12345678";
    std::filesystem::create_directories(path / "other");
    std::ofstream(path / "other" / "data.bin") << "12345678";
    std::filesystem::create_symlink(path / "outside.bin", path / "inside" / "link.bin");
    std::filesystem::create_symlink(path / "other", path / "inside" / "linked");
    std::filesystem::create_symlink(path / "new.bin", path / "inside" / "dangling.bin");
  }
  model_folder(const model_folder&) = delete;
  model_folder& operator=(const model_folder&) = delete;
  ~model_folder() { std::filesystem::remove_all(path); }
};

message relu(const std::vector<message>& initializers = {}, const std::vector<message>& nodes = {}) {
  std::vector<message> all = nodes;
  all.push_back(node("Relu", {"x"}, {"y"}));
  return graph(all, {info("x")}, {info("y")}, initializers);
}
message with_external(std::initializer_list<message> entries) {
  return model(relu({external_tensor("w", {2}, entries)}));
}

struct bad_input {
  const char* name;
  std::string file;
  errc code;
  const char* text;  // that the message holds
};

std::string cut(const message& m, std::size_t bytes) { return m.data.substr(0, m.data.size() - bytes); }

message nested(int depth) {
  message inner = graph({node("Relu", {"x"}, {"inner"})}, {}, {untyped("inner")});
  for (int i = 0; i < depth; ++i) {
    const std::string out = "v" + std::to_string(i);
    inner = graph(
        {node("If", {"c"}, {out},
              {graph_attribute("then_branch", inner),
               graph_attribute("else_branch", graph({node("Relu", {"x"}, {"e" + out})}, {}, {untyped("e" + out)}))})},
        {}, {untyped(out)});
  }
  return inner;
}

std::vector<bad_input> bad_inputs() {
  const message good = model(relu());
  message wrong_wire;
  wrong_wire.number(1, 8).with(8, opset(21)).number(7, 5);
  message no_graph;
  no_graph.number(1, 8).with(8, opset(21));
  const message group{"\x0b"};
  message sparse = message{}.with(1, float_tensor("s", {1}, {1})).with(2, int_tensor("", {9})).number(3, 4);
  message dense_bomb =
      message{}.with(1, float_tensor("s", {1}, {1})).with(2, int_tensor("", {9})).number(3, std::int64_t{1} << 40);
  message self_calling = model(graph({node("F", {"x"}, {"y"}, {}, "f")}, {info("x")}, {info("y")}));
  self_calling.with(8, opset(1, "f"))
      .with(25, function("f", "F", {"a"}, {"b"}, {}, {node("F", {"a"}, {"b"}, {}, "f")}));
  message too_many_arguments = model(graph({node("F", {"x", "x"}, {"y"}, {}, "f")}, {info("x")}, {info("y")}));
  too_many_arguments.with(25, function("f", "F", {"a"}, {"b"}, {}, {node("Relu", {"a"}, {"b"})}));
  message twice_defined_function = model(relu());
  for (int i = 0; i < 2; ++i)
    twice_defined_function.with(25, function("f", "F", {"a"}, {"b"}, {}, {node("Relu", {"a"}, {"b"})}));
  const message then_branch = graph({node("Relu", {"nowhere"}, {"t"})}, {}, {untyped("t")});
  const message else_branch = graph({node("Relu", {"x"}, {"e"})}, {}, {untyped("e")});
  const message gives_one = graph({node("Relu", {"x"}, {"one"})}, {}, {untyped("one")});
  const auto training = [](const message& g) { return model(g).with(8, opset(1, "ai.onnx.preview.training")); };

  return {
      {"an empty file", "", errc::malformed_model, "ir_version"},
      {"a truncated file", cut(good, 3), errc::malformed_protobuf, "at byte"},
      {"random bytes", "\x8f\x13\xd2\x99\x01\xff\xff\xff\xff\xff\xff\xff", errc::malformed_protobuf, "at byte"},
      {"a group, which protobuf gave up", group.data, errc::malformed_protobuf, "at byte 0"},
      {"a graph as a number", wrong_wire.data, errc::malformed_protobuf, "wire type 0"},
      {"a packed list of half a float",
       model(graph({node("Relu", {"x"}, {"y"}, {message{}.text(1, "a").text(7, "123").number(20, 6)})}, {info("x")},
                   {info("y")}))
           .data,
       errc::malformed_protobuf, "3 bytes"},
      {"a name that is not UTF-8", model(graph({node("Relu", {"x\xc3"}, {"y"})}, {info("x")}, {info("y")})).data,
       errc::malformed_protobuf, "UTF-8"},
      {"graphs in each other too deep",
       model(graph({node("If", {"c"}, {"y"},
                         {graph_attribute("then_branch", nested(80)), graph_attribute("else_branch", nested(1))})},
                   {info("x"), info("c", 9, {})}, {info("y")}))
           .data,
       errc::malformed_protobuf, "deep"},
      {"a model without a graph", no_graph.data, errc::malformed_model, "no graph"},
      {"a node without an operator", model(graph({message{}.text(1, "x").text(2, "y")}, {info("x")}, {info("y")})).data,
       errc::malformed_model, "at byte"},
      {"an input without a type", model(graph({node("Relu", {"x"}, {"y"})}, {untyped("x")}, {info("y")})).data,
       errc::malformed_model, "no type"},
      {"an input of an unknown element type",
       model(graph({node("Relu", {"x"}, {"y"})}, {info("x", 99)}, {info("y")})).data, errc::malformed_model,
       "element type 99"},
      {"an input whose dims overflow",
       model(graph({node("Relu", {"x"}, {"y"})}, {info("x", 1, {"4611686018427387904", "4"})}, {info("y")})).data,
       errc::overflow, ""},
      {"a cycle",
       model(graph({node("Add", {"x", "b"}, {"a"}), node("Relu", {"a"}, {"b"})}, {info("x")}, {info("b")})).data,
       errc::graph_cycle, "Add"},
      {"a node that reads itself", model(graph({node("Add", {"x", "y"}, {"y"})}, {info("x")}, {info("y")})).data,
       errc::graph_cycle, "Add"},
      {"a value defined twice", model(relu({}, {node("Abs", {"x"}, {"y"})})).data, errc::duplicate_name, "'y'"},
      {"a node that defines an input", model(graph({node("Relu", {"x"}, {"x"})}, {info("x")}, {info("x")})).data,
       errc::duplicate_name, "'x'"},
      {"an input listed twice", model(graph({node("Relu", {"x"}, {"y"})}, {info("x"), info("x")}, {info("y")})).data,
       errc::duplicate_name, "listed twice"},
      {"a function defined twice", twice_defined_function.data, errc::duplicate_name, "'F'"},
      {"a value that nothing defines", model(graph({node("Relu", {"q"}, {"y"})}, {info("x")}, {info("y")})).data,
       errc::missing_name, "'q'"},
      {"an output that nothing defines", model(graph({node("Relu", {"x"}, {"y"})}, {info("x")}, {info("z")})).data,
       errc::missing_name, "'z'"},
      {"a body that reads what nothing defines",
       model(graph({node("If", {"c"}, {"y"},
                         {graph_attribute("then_branch", then_branch), graph_attribute("else_branch", else_branch)})},
                   {info("x"), info("c", 9, {})}, {info("y")}))
           .data,
       errc::missing_name, "'nowhere'"},
      {"an input without a name", model(graph({node("Relu", {"x"}, {"y"})}, {info("x"), info("")}, {info("y")})).data,
       errc::missing_name, "no name"},
      {"an initializer of another type than its input",
       model(
           graph({node("Relu", {"x"}, {"y"})}, {info("x", int64_type)}, {info("y")}, {float_tensor("x", {2}, {1, 2})}))
           .data,
       errc::type_mismatch, "int64"},
      {"an initializer of another rank than its input",
       model(graph({node("Relu", {"x"}, {"y"})}, {info("x", 1, {"2", "1"})}, {info("y")},
                   {float_tensor("x", {2}, {1, 2})}))
           .data,
       errc::shape_mismatch, "[2, 1]"},
      {"an output declared of another type",
       model(graph({node("Relu", {"x"}, {"y"})}, {info("x")}, {info("y", int64_type)})).data, errc::type_mismatch,
       "Relu"},
      {"inputs that do not broadcast",
       model(graph({node("Add", {"x", "z"}, {"y"})}, {info("x"), info("z", 1, {"3"})}, {info("y")})).data,
       errc::shape_mismatch, "Add"},
      {"sizes that are computed negative",
       model(graph({node("ConstantOfShape", {"s"}, {"y"})}, {}, {untyped("y")},
                   {tensor_of("s", int64_type, {2}).packed(7, {3, -2})}))
           .data,
       errc::shape_mismatch, "ConstantOfShape"},
      {"a tensor whose dims overflow",
       model(relu({tensor_of("w", float_type, {std::int64_t{1} << 40, std::int64_t{1} << 40})})).data, errc::overflow,
       "'w'"},
      {"a tensor with a negative dim", model(relu({float_tensor("w", {-1}, {1})})).data, errc::bad_tensor_data, "-1"},
      {"a tensor of an unknown type", model(relu({tensor_of("w", 77, {1})})).data, errc::bad_tensor_data, "77"},
      {"data shorter than its dims", model(relu({float_tensor("w", {3}, {1, 2})})).data, errc::bad_tensor_data,
       "8 bytes"},
      {"data longer than its dims", model(relu({float_tensor("w", {1}, {1, 2})})).data, errc::bad_tensor_data, "'w'"},
      {"typed data shorter than its dims", model(relu({tensor_of("w", float_type, {3}).packed_floats(4, {1, 2})})).data,
       errc::bad_tensor_data, "'w'"},
      {"typed data longer than its dims", model(relu({tensor_of("w", float_type, {1}).packed_floats(4, {1, 2})})).data,
       errc::bad_tensor_data, "'w'"},
      {"integers longer than their dims", model(relu({tensor_of("w", int64_type, {1}).packed(7, {1, 2})})).data,
       errc::bad_tensor_data, "'w'"},
      {"a large tensor without data", model(relu({tensor_of("w", float_type, {std::int64_t{1} << 33})})).data,
       errc::bad_tensor_data, "too few"},
      {"an element that its type cannot hold", model(relu({tensor_of("w", 3, {1}).packed(5, {300})})).data,
       errc::bad_tensor_data, "300"},
      {"strings fewer than their dims", model(relu({tensor_of("w", 8, {2}).text(6, "one")})).data,
       errc::bad_tensor_data, "1 strings"},
      {"a segmented tensor", model(relu({tensor_of("w", float_type, {1}).with(3, message{})})).data,
       errc::bad_tensor_data, "segmented"},
      {"a sparse index out of range", model(relu().with(15, sparse)).data, errc::bad_tensor_data, "out of range: 9"},
      {"a sparse tensor of a terabyte", model(relu().with(15, dense_bomb)).data, errc::memory_limit, "'s'"},
      {"external data that does not exist", with_external({entry("location", "none.bin")}).data,
       errc::external_data_missing, "none.bin"},
      {"external data without a location", with_external({entry("offset", "0")}).data, errc::bad_tensor_data,
       "location"},
      {"external data that is too short", with_external({entry("location", "data.bin"), entry("offset", "4")}).data,
       errc::external_data_short, "8 bytes"},
      {"external data of another length", with_external({entry("location", "data.bin"), entry("length", "4")}).data,
       errc::bad_tensor_data, "4 bytes"},
      {"external data at no number", with_external({entry("location", "data.bin"), entry("offset", "-4")}).data,
       errc::bad_tensor_data, "offset"},
      {"external data past the address space",
       with_external({entry("location", "data.bin"), entry("offset", "18446744073709551615")}).data, errc::overflow,
       "'w'"},
      {"external data at an absolute path", with_external({entry("location", "/etc/hostname")}).data,
       errc::external_data_path, "absolute"},
      {"external data above the folder", with_external({entry("location", "../outside.bin")}).data,
       errc::external_data_path, "leaves"},
      {"external data above the folder by a detour",
       with_external({entry("location", "folder/../../outside.bin")}).data, errc::external_data_path, "leaves"},
      {"external data behind a link", with_external({entry("location", "link.bin")}).data, errc::external_data_path,
       "symbolic link"},
      {"external data behind a linked folder", with_external({entry("location", "linked/data.bin")}).data,
       errc::external_data_path, "symbolic link"},
      {"external data behind a link to nothing", with_external({entry("location", "dangling.bin")}).data,
       errc::external_data_path, "link to nothing"},
      {"external data with a key of nobody's",
       with_external({entry("location", "data.bin"), entry("__class__", "os")}).data, errc::bad_tensor_data,
       "'__class__'"},
      {"external data at two places",
       with_external({entry("location", "none.bin"), entry("location", "data.bin")}).data, errc::bad_tensor_data,
       "twice"},
      {"external data of a length that nothing holds",
       with_external({entry("location", "data.bin"), entry("length", "9223372036854775807")}).data,
       errc::bad_tensor_data, "9223372036854775807 bytes"},
      {"external data of a tensor larger than any file",
       model(relu({external_tensor("w", {std::int64_t{1} << 40}, {entry("location", "data.bin")})})).data,
       errc::external_data_short, "8 bytes"},
      {"external data at a number that is too large",
       with_external({entry("location", "data.bin"), entry("offset", "99999999999999999999999")}).data,
       errc::bad_tensor_data, "offset"},
      {"external data that is a folder", with_external({entry("location", "folder")}).data, errc::external_data_path,
       "regular"},
      {"an opset too new", model(relu(), 29).data, errc::unsupported_opset, "29"},
      {"an opset too old", model(relu(), 0).data, errc::unsupported_opset, "opset 0"},
      {"no opset", message{}.number(1, 8).with(7, relu()).data, errc::unsupported_opset, "imports no opset"},
      {"others that are unknown too are told",
       model(graph({node("Frobnicate", {"x"}, {"a"}, {}, "com.example"),
                    node("Mystery", {"a"}, {"b"}, {}, "org.example"), node("Mystery", {"b"}, {"y"}, {}, "org.example")},
                   {info("x")}, {info("y")}))
           .data,
       errc::unknown_operator, "nor are 'Mystery' of domain 'org.example' (2 nodes)"},
      {"an unknown operator", model(graph({node("Frobnicate", {"x"}, {"y"})}, {info("x")}, {info("y")})).data,
       errc::unknown_operator, "Frobnicate"},
      {"an unknown domain",
       model(graph({node("Relu", {"x"}, {"y"}, {}, "com.example")}, {info("x")}, {info("y")})).data,
       errc::unknown_operator, "com.example"},
      {"too many inputs", model(graph({node("Relu", {"x", "x"}, {"y"})}, {info("x")}, {info("y")})).data,
       errc::bad_arity, "2 inputs"},
      {"too few inputs", model(graph({node("Add", {"x"}, {"y"})}, {info("x")}, {info("y")})).data, errc::bad_arity,
       "1 inputs"},
      {"an absent required input", model(graph({node("Add", {"", "x"}, {"y"})}, {info("x")}, {info("y")})).data,
       errc::bad_arity, "input 0"},
      {"too many outputs", model(graph({node("Relu", {"x"}, {"y", "z"})}, {info("x")}, {info("y")})).data,
       errc::bad_arity, "2 outputs"},
      {"a branch that gives less than is taken",
       model(graph({node("If", {"c"}, {"y", "z"},
                         {graph_attribute("then_branch", gives_one), graph_attribute("else_branch", gives_one)})},
                   {info("x"), info("c", 9, {})}, {info("y")}))
           .data,
       errc::bad_arity, "takes 1 values and gives 1 where 1 are handed to it and 2 taken"},
      {"an If without its condition",
       model(graph({node("If", {"", "x"}, {"y"},
                         {graph_attribute("then_branch", gives_one), graph_attribute("else_branch", gives_one)})},
                   {info("x")}, {info("y")}))
           .data,
       errc::bad_arity, ""},
      {"a loop's body without the turn and its condition",
       model(
           graph({node("Loop", {"", "", "x"}, {"y"}, {graph_attribute("body", gives_one)})}, {info("x")}, {info("y")}))
           .data,
       errc::bad_arity, "body 'body'"},
      {"training with fewer outputs than states",
       training(graph({node("Momentum", {"r", "t", "x", "x", "x"}, {"y"}, {string_attribute("mode", "standard")},
                            "ai.onnx.preview.training")},
                      {info("r", 1, {}), info("t", int64_type, {}), info("x")}, {info("y")}))
           .data,
       errc::bad_arity, "1 outputs of 2"},
      {"a function called with too much", too_many_arguments.data, errc::bad_arity, "'F'"},
      {"a function that calls itself", self_calling.data, errc::malformed_model, "calls itself"},
      {"an attribute without a name",
       model(graph({node("Relu", {"x"}, {"y"}, {int_attribute("", 1)})}, {info("x")}, {info("y")})).data,
       errc::bad_attribute, "no name"},
      {"an attribute given twice",
       model(graph({node("Flatten", {"x"}, {"y"}, {int_attribute("axis", 1), int_attribute("axis", 1)})}, {info("x")},
                   {untyped("y")}))
           .data,
       errc::bad_attribute, "twice"},
      {"an attribute of another type",
       model(graph({node("Flatten", {"x"}, {"y"}, {string_attribute("axis", "one")})}, {info("x")}, {untyped("y")}))
           .data,
       errc::bad_attribute, "Flatten"},
      {"an attribute of another type that evaluation alone reads",
       model(graph({node("NegativeLogLikelihoodLoss", {"x", "l"}, {"y"}, {string_attribute("ignore_index", "one")})},
                   {info("x", 1, {"2", "3"}), info("l", int64_type)}, {untyped("y")}))
           .data,
       errc::bad_attribute, "ignore_index"},
      {"an attribute of an unknown type",
       model(graph({node("Relu", {"x"}, {"y"}, {message{}.text(1, "a").number(20, 55)})}, {info("x")}, {info("y")}))
           .data,
       errc::bad_attribute, "55"},
      {"axes of a reduction as an attribute where they are an input",
       model(graph({node("ReduceSum", {"x"}, {"y"}, {ints_attribute("axes", {0})})}, {info("x")}, {untyped("y")})).data,
       errc::bad_attribute, "axes"},
      {"a required attribute missing",
       model(graph({node("Concat", {"x", "x"}, {"y"})}, {info("x")}, {untyped("y")})).data, errc::bad_attribute,
       "axis"},
      {"a Constant without a value", model(graph({node("Constant", {}, {"y"})}, {}, {untyped("y")})).data,
       errc::bad_attribute, "Constant"},
  };
}

}  // namespace

TEST_CASE("bad input is refused with its code and place", "[import]") {
  const model_folder folder;
  for (const bad_input& bad : bad_inputs()) {
    INFO(bad.name);
    try {
      (void)dnnopt::import_onnx(message{bad.file}.bytes(), folder.path / "inside", options());
      FAIL_CHECK("was accepted");
    } catch (const dnnopt::error& e) {
      INFO(e.what());
      CHECK(static_cast<int>(e.code()) == static_cast<int>(bad.code));
      CHECK_THAT(e.what(), Catch::Contains(bad.text));
    }
  }
}

TEST_CASE("a file that is not there, or is a folder, is refused by its path", "[import]") {
  const auto code_of = [](const std::filesystem::path& path) {
    try {
      (void)dnnopt::import_onnx(path, options());
    } catch (const dnnopt::error& e) {
      CHECK_THAT(e.what(), Catch::Contains(path.string()));
      return e.code();
    }
    return errc::usage;
  };
  CHECK(code_of("/no/such/model.onnx") == errc::file_not_found);
  CHECK(code_of("/tmp") == errc::file_io);
}

TEST_CASE("limits hold for what functions blow up to", "[import]") {
  // Each function calls the next one twice: 2^20 nodes from a small file.
  message m = model(graph({node("F0", {"x"}, {"y"}, {}, "f")}, {info("x")}, {info("y")}));
  for (int i = 0; i < 20; ++i) {
    const std::string next = i == 19 ? "Relu" : "F" + std::to_string(i + 1);
    const std::string domain = i == 19 ? "" : "f";
    m.with(25, function("f", "F" + std::to_string(i), {"a"}, {"c"}, {},
                        {node(next, {"a"}, {"b"}, {}, domain), node(next, {"b"}, {"c"}, {}, domain)}));
  }
  dnnopt::import_options limited = options();
  limited.limits.nodes = 1000;
  try {
    (void)dnnopt::import_onnx(m.bytes(), {}, limited);
    FAIL("was accepted");
  } catch (const dnnopt::error& e) {
    CHECK(e.code() == errc::memory_limit);
  }
}

TEST_CASE("damaged files give errors or graphs, never more", "[import]") {
  const message then_branch = graph({node("Relu", {"x"}, {"t"})}, {}, {untyped("t")});
  message file =
      model(graph({node("If", {"c"}, {"i"},
                        {graph_attribute("then_branch", then_branch), graph_attribute("else_branch", then_branch)}),
                   node("Conv", {"i", "w"}, {"k"}, {ints_attribute("kernel_shape", {1, 1})}),
                   node("F", {"k"}, {"y"}, {}, "f")},
                  {info("x", 1, {"batch", "2", "4", "4"}), info("c", 9, {})}, {info("y", 1, {"batch", "2", "4", "4"})},
                  {float_tensor("w", {2, 2, 1, 1}, {1, 2, 3, 4}), tensor_of("b", 16, {3}).packed(5, {1, 2, 3})}),
            13);
  file.with(25, function("f", "F", {"a"}, {"b"}, {}, {node("Softmax", {"a"}, {"b"}, {int_attribute("axis", 1)})}));
  REQUIRE_NOTHROW(dnnopt::import_onnx(file.bytes(), {}, options()));
  std::size_t refused = 0;
  const auto damage = [&](const std::string& bytes) {
    try {
      (void)dnnopt::import_onnx(std::as_bytes(std::span(bytes)), {}, options());
    } catch (const dnnopt::error&) {
      ++refused;
    }
  };
  for (std::size_t length = 0; length < file.data.size(); ++length) damage(file.data.substr(0, length));
  CHECK(refused > file.data.size() / 2);
  const dnnopt::counter_random random(Catch::rngSeed(), 1);
  for (std::uint64_t round = 0; round < 2000; ++round) {
    std::string bytes = file.data;
    for (std::uint64_t flip = 0; flip <= round % 3; ++flip) {
      const auto at = static_cast<std::size_t>(random.below(4 * round + flip, static_cast<std::int64_t>(bytes.size())));
      bytes[at] = static_cast<char>(bytes[at] ^ (1 << (random.bits(4 * round + flip) & 7)));
    }
    damage(bytes);
  }
  CHECK(refused > file.data.size());
}

// The contract of every frame in both directions: its text reads the parameters of its table and no others, and what
// C++ gives is what the table knows.
#include <catch2/catch.hpp>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <dnnopt/backend/codegen/builder/kernel_builder.hpp>
#include <dnnopt/backend/codegen/frames/all_frames.hpp>
#include <dnnopt/backend/codegen/tuning.hpp>
#include <dnnopt/backend/run/combine_sources.hpp>

using namespace dnnopt;
using codegen::frame_parameter;
using codegen::kernel_frame;

namespace {

/// What a frame's text says about macros.
struct frame_text {
  std::set<std::string> read;                   ///< named anywhere outside of what stands alone
  std::set<std::string> made;                   ///< defined by the text for itself
  std::map<std::string, std::string> defaults;  ///< what stands under #ifndef of a parameter
};

/// The macro that begins at `at` of a line.
std::string macro_at(std::string_view line, std::size_t at) {
  std::size_t end = at;
  while (end < line.size() && (std::isalnum(static_cast<unsigned char>(line[end])) != 0 || line[end] == '_')) ++end;
  return std::string(line.substr(at, end - at));
}

/// Reads a text whose parameters are those of `frame`: what it defines under its own #ifndef, or that of another
/// parameter, is a default, and what it defines else is its own.
frame_text read_text(const kernel_frame& frame) {
  frame_text told;
  std::vector<std::string> open;  // conditionals: "#ifndef NAME", or another one
  const auto within = [&](std::string_view head) {
    return std::any_of(open.begin(), open.end(), [&](const std::string& one) { return one == head; });
  };
  std::string_view rest = frame.text;
  while (!rest.empty()) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
    if (line.starts_with("#if")) open.emplace_back(line);
    if (line.starts_with("#el")) open.back() = "else";
    if (line.starts_with("#endif")) open.pop_back();
    if (within("#ifndef DNNOPT_PARAMETERS") || line.starts_with("#ifndef ")) continue;
    std::string_view code = line.substr(0, line.find("//"));
    if (constexpr std::string_view define = "#define "; code.starts_with(define)) {
      const std::string name = macro_at(code, define.size());
      const bool is_default = !open.empty() && (open.back() == "#ifndef " + name ||
                                                (open.back().starts_with("#ifndef DNNOPT_") && frame.find(name)));
      std::string_view value = code.substr(define.size() + name.size());
      if (value.starts_with('(')) value.remove_prefix(value.find(')') + 1);
      while (value.starts_with(' ')) value.remove_prefix(1);
      if (is_default)
        told.defaults[name] = value;
      else
        told.made.insert(name);
      code = value;
    }
    for (std::size_t at = code.find("DNNOPT_"); at != std::string_view::npos; at = code.find("DNNOPT_", at + 1))
      if (at == 0 || (std::isalnum(static_cast<unsigned char>(code[at - 1])) == 0 && code[at - 1] != '_'))
        told.read.insert(macro_at(code, at));
  }
  return told;
}

/// What is wrong between a frame's text and its table.
std::vector<std::string> text_faults(const kernel_frame& frame) {
  std::vector<std::string> faults;
  const frame_text told = read_text(frame);
  const auto& all = codegen::parameters_of_all_frames;
  for (const std::string& name : told.read)
    if (frame.find(name) == nullptr && !told.made.contains(name) &&
        std::find(all.begin(), all.end(), name) == all.end())
      faults.push_back(name + " is read and stands in no table");
  for (const frame_parameter& one : frame.parameters) {
    const std::string name(one.name);
    if (!told.read.contains(name)) faults.push_back(name + " is read nowhere");
    if (told.made.contains(name)) faults.push_back(name + " is made by the text itself");
    const auto found = told.defaults.find(name);
    if (one.is_optional && found != told.defaults.end() && found->second != one.fallback)
      faults.push_back(name + " is " + found->second + " where it is not given, and the table says " +
                       std::string(one.fallback));
  }
  return faults;
}

const kernel_frame& rows = codegen::row_groups_frame;

/// What row_groups needs for a softmax.
std::vector<codegen::given_parameter> given_rows() {
  return {{"DNNOPT_FAMILY", "0"}, {"DNNOPT_ROWS", "p0"},      {"DNNOPT_LENGTH", "100"}, {"DNNOPT_GROUP", "64"},
          {"DNNOPT_OWN", "2"},    {"DNNOPT_GROUP_ROWS", "1"}, {"DNNOPT_VECTOR", "1"}};
}

}  // namespace

TEST_CASE("no frame takes a name of the prelude from the kernels that follow it in a program") {
  const detail::defined_names prelude = detail::names_defined_in(kernels::prelude);
  REQUIRE(prelude.macros.contains("dnnopt_quotient"));
  for (const kernel_frame* frame : codegen::all_frames) {
    INFO(frame->name);
    codegen::kernel_plan plan;
    plan.entry = "dnnopt_frame";
    plan.source = std::string(kernels::prelude) + std::string(frame->text);
    const joined_programs joined = join_sources({&plan});
    REQUIRE(joined.programs.size() == 1);
    for (const std::string& name : prelude.macros) {
      CAPTURE(name);
      CHECK(joined.programs[0].source.find("#undef " + name + "\n") == std::string::npos);
    }
    for (const std::string& name : prelude.functions) {
      CAPTURE(name);
      CHECK(joined.programs[0].source.find("#define " + name + " " + name + "_0\n") == std::string::npos);
    }
  }
}

TEST_CASE("the text of every frame reads the parameters of its table, and no others") {
  for (const kernel_frame* frame : codegen::all_frames) {
    INFO(frame->name);
    const std::vector<std::string> faults = text_faults(*frame);
    for (const std::string& fault : faults) UNSCOPED_INFO(fault);
    CHECK(faults.empty());
    std::set<std::string_view> names;
    for (const frame_parameter& one : frame->parameters) {
      CAPTURE(one.name);
      CHECK(one.name.starts_with("DNNOPT_"));
      CHECK(names.insert(one.name).second);
      CHECK_FALSE(one.meaning.empty());
      CHECK(one.low <= one.high);
    }
  }
}

TEST_CASE("what a frame's text or table lacks is found") {
  const auto changed = [](std::string_view from, std::string_view to) {
    std::string text(rows.text);
    const std::size_t at = text.find(from);
    REQUIRE(at != std::string::npos);
    text.replace(at, from.size(), to);
    return text;
  };
  // A parameter that the text misspells is unknown there.
  const std::string misspelt = changed("row < DNNOPT_ROWS ?", "row < DNNOPT_ROW ?");
  CHECK(text_faults({rows.name, misspelt, rows.parameters}) ==
        std::vector<std::string>{"DNNOPT_ROW is read and stands in no table"});
  const std::string other_default = changed("#define DNNOPT_OWN 0", "#define DNNOPT_OWN 1");
  std::vector<frame_parameter> table(rows.parameters.begin(), rows.parameters.end());
  for (frame_parameter& one : table)
    if (one.name == "DNNOPT_OWN") one = one.otherwise("0");
  CHECK(text_faults({rows.name, other_default, table}).size() == 1);
  table.push_back(codegen::site_flag("DNNOPT_UNREAD", "nothing"));
  CHECK(text_faults({rows.name, rows.text, table}) == std::vector<std::string>{"DNNOPT_UNREAD is read nowhere"});
  table.erase(table.begin());
  CHECK(text_faults({rows.name, rows.text, table}).front() == "DNNOPT_FAMILY is read and stands in no table");
}

TEST_CASE("a macro that is misspelt, missing, given twice or out of range is a fault of whoever gives it") {
  std::vector<codegen::given_parameter> given = given_rows();
  CHECK(faults_of(rows, given).empty());
  SECTION("misspelt") {
    given[3].first = "DNNOPT_GRUOP";
    CHECK(faults_of(rows, given) == std::vector<std::string>{"frame row_groups: DNNOPT_GRUOP is no parameter of it",
                                                             "frame row_groups: DNNOPT_GROUP is not given"});
  }
  SECTION("missing") {
    given.pop_back();
    CHECK(faults_of(rows, given) == std::vector<std::string>{"frame row_groups: DNNOPT_VECTOR is not given"});
  }
  SECTION("of another frame") {
    given.emplace_back("DNNOPT_ROWS_PER_ITEM", "1");
    CHECK(faults_of(rows, given) ==
          std::vector<std::string>{"frame row_groups: DNNOPT_ROWS_PER_ITEM is no parameter of it"});
  }
  SECTION("twice") {
    given.push_back(given.front());
    CHECK(faults_of(rows, given) == std::vector<std::string>{"frame row_groups: DNNOPT_FAMILY is given twice"});
  }
  SECTION("out of range") {
    given.front().second = "6";
    CHECK(faults_of(rows, given) == std::vector<std::string>{"frame row_groups: DNNOPT_FAMILY is 6, not 0 to 5"});
  }
  SECTION("what the builder gives to all") {
    given.emplace_back("DNNOPT_EPILOGUE", "1");
    CHECK(faults_of(rows, given).empty());
  }
}

TEST_CASE("a kernel is not finished with a macro that its frame does not know") {
  graph g;
  const value_id x = g.add_input("x", dtype::float32, shape{4, 100});
  const codegen::block_view block{g, {}, {x}};
  const bool misspelt = GENERATE(false, true);
  codegen::kernel_builder b(block, {});
  for (const auto& [name, value] : given_rows())
    b.define(misspelt && name == "DNNOPT_OWN" ? std::string("DNNOPT_OWNS") : name, value);
  if (misspelt)
    CHECK_THROWS_AS(b.finish("", rows, "row_groups"), error);
  else
    CHECK(b.finish("", rows, "row_groups").source.str().find(rows.text) != std::string::npos);
}

TEST_CASE("a tuner tries the parameters that the frames call tuned") {
  // Numbers of a table that stand for several parameters at once.
  const std::set<std::string_view> together{"tile", "staging", "block_columns"};
  for (const kernel_frame* frame : codegen::all_frames) {
    const codegen::tuning_space* const space = codegen::find_tuning_space(frame->name);
    for (const frame_parameter& one : frame->parameters) {
      if (one.source != codegen::parameter_source::tuned) continue;
      INFO(frame->name << " " << one.name);
      REQUIRE(space != nullptr);
      CHECK(std::any_of(space->choices().begin(), space->choices().end(),
                        [&](const codegen::tunable_parameter& p) { return frame->find_size(p.name) == &one; }));
    }
    if (space == nullptr) continue;
    for (const codegen::tunable_parameter& p : space->choices()) {
      INFO(frame->name << " " << p.name);
      const frame_parameter* const own = frame->find_size(p.name);
      CHECK((together.contains(p.name) || (own != nullptr && own->source == codegen::parameter_source::tuned)));
    }
  }
}

namespace {

/// The page that docs/reference holds of the tables.
std::string page_of_frames() {
  std::string page =
      "# Parameters of frames\n\n"
      "A frame is a hand-written kernel. It reads the macros below, which a table of its family lists (such as\n"
      "`frames/rows/parameters.hpp`), and what every frame is given: its arguments (`DNNOPT_PARAMETERS` of functions,\n"
      "`DNNOPT_KERNEL_PARAMETERS`, `DNNOPT_ARGUMENTS`), `DNNOPT_EPILOGUE`, and what the prelude reads. The site gives\n"
      "extents, attributes and pieces of source; a chooser settles sizes, and a tuner those that are tuned\n"
      "([kernels.md](kernels.md)). This\n"
      "page is written by\n"
      "`DNNOPT_WRITE_PAGES=1 bin/dnnopt_kernels_tests \"the page of frames*\"`, and the same test holds it current.\n";
  for (const kernel_frame* frame : codegen::all_frames) {
    page += "\n## " + std::string(frame->name) +
            "\n\n| parameter | value | where it is not given | by | meaning |\n|---|---|---|---|---|\n";
    for (const frame_parameter& one : frame->parameters) {
      const auto bound = [](std::int64_t value) {
        return value == codegen::no_bound ? std::string("any") : std::to_string(value);
      };
      std::string value = "source";
      if (one.is_number && one.low == -codegen::no_bound)
        value = "any number";
      else if (one.is_number)
        value = bound(one.low) + " to " + bound(one.high);
      const std::string fallback = !one.is_optional       ? "must be given"
                                   : one.fallback.empty() ? "nothing"
                                                          : "`" + std::string(one.fallback) + "`";
      const std::string_view by = one.source == codegen::parameter_source::site     ? "site"
                                  : one.source == codegen::parameter_source::chosen ? "chooser"
                                                                                    : "chooser, tuner";
      page += "| `" + std::string(one.name) + std::string(one.arguments) + "` | " + value + " | " + fallback + " | " +
              std::string(by) + " | " + std::string(one.meaning) + " |\n";
    }
  }
  return page;
}

}  // namespace

TEST_CASE("the page of frames' parameters is what the tables say") {
  const std::string path = std::string(DNNOPT_SOURCE_DIR) + "/docs/reference/frame_parameters.md";
  const std::string expected = page_of_frames();
  if (std::getenv("DNNOPT_WRITE_PAGES") != nullptr) std::ofstream(path) << expected;
  std::ifstream file(path);
  const std::string held{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  CHECK(held == expected);
}

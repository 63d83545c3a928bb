// The drawing of a plan: well formed, one rectangle per buffer, the bound, the peak named, hostile names.
#include <catch2/catch.hpp>

#include "dnnopt/memory/memory_svg.hpp"
#include "dnnopt/memory/plan.hpp"
#include "memory_data.hpp"

using namespace dnnopt::memory;

namespace {

std::size_t count_of(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

/// Whether every element is closed in order and no raw `&` or `<` stands in text; enough XML for our own output.
bool well_formed(const std::string& text) {
  std::vector<std::string> open;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '&') {
      const auto end = text.find(';', at);
      if (end == std::string::npos || end - at > 5) return false;
    }
    if (text[at] != '<') continue;
    const auto end = text.find('>', at);
    if (end == std::string::npos) return false;
    const std::string tag = text.substr(at + 1, end - at - 1);
    if (tag.find('<') != std::string::npos || count_of(tag, "\"") % 2 != 0) return false;
    const std::string name = tag.substr(0, tag.find_first_of(" /", 1));
    if (tag[0] == '/') {
      if (open.empty() || "/" + open.back() != tag) return false;
      open.pop_back();
    } else if (tag.back() != '/') {
      open.push_back(name);
    }
    at = end;
  }
  return open.empty();
}

}  // namespace

TEST_CASE("a plan is drawn with rectangles, bound and peak", "[memory]") {
  const std::vector<buffer_usage> usages{{0, 3, 1024}, {2, 5, 2048}, {2, 4, 512}, {4, 6, 256}, {0, 6, 0}};
  const auto plan = plan_offsets(usages);
  const std::vector<std::string> names{"a<b>&\"c\"\n", "second", "third", "fourth", "empty"};
  svg_options options;
  options.title = "<plan> & \"more\"";
  options.names = names;
  const auto svg = draw_memory_plan(usages, plan, options);
  CHECK(well_formed(svg));
  CHECK(count_of(svg, "bytes</title></rect>") == 4);
  CHECK(count_of(svg, "class=\"p\"") == 3);
  CHECK(svg.find("arena = bound 3.50 KiB") != std::string::npos);
  CHECK(svg.find("The peak at step 2: 3 buffers") != std::string::npos);
  CHECK(svg.find(">second, 2.00 KiB<") != std::string::npos);
  CHECK(svg.find("a<b>") == std::string::npos);
  CHECK(svg.find("second: steps 2 to 4, offset ") != std::string::npos);
}

TEST_CASE("a plan above its bound shows both; empty and wrong plans", "[memory]") {
  const std::vector<buffer_usage> usages{{0, 2, 4096}, {3, 5, 4096}};
  offset_plan plan{{0, 4096}, 8192, 4096, false, 0.0, "naive"};
  const auto svg = draw_memory_plan(usages, plan);
  CHECK(well_formed(svg));
  CHECK(svg.find("arena 8.00 KiB") != std::string::npos);
  CHECK(svg.find("bound 4.00 KiB") != std::string::npos);
  CHECK(svg.find("ratio 2.000)") != std::string::npos);
  CHECK(well_formed(draw_memory_plan({}, offset_plan{})));
  plan.offsets.pop_back();
  CHECK_THROWS_AS(draw_memory_plan(usages, plan), dnnopt::error);
}

TEST_CASE("large plans are drawn", "[memory]") {
  const auto records = memory_data::csv("minimalloc/K.1048576.csv");
  const auto plan = plan_offsets(records.usages, {offset_strategy::quick});
  svg_options options;
  options.names = records.ids;
  const auto svg = draw_memory_plan(records.usages, plan, options);
  CHECK(well_formed(svg));
  CHECK(count_of(svg, "bytes</title></rect>") == records.usages.size());
}

// A graph is placed once: storage, smaller forms of weights and limits of work-groups lower again what they change, and
// what that gives is what a placement of the changed graph would.
#include <catch2/catch.hpp>

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <dnnopt/backend/program/make_program.hpp>
#include <dnnopt/backend/storage/stored_program.hpp>

#include "kernels/choose_fixture.hpp"

using namespace dnnopt;
using namespace dnnopt::testing;

namespace {

std::size_t placements = 0;

/// Counts how often a kernel is looked for of the node that has none: once for each placement, for it is never lowered
/// again.
const codegen::lowering_row counting{
    std::nullopt, "counting",
    [](const codegen::lowering_site& site) -> codegen::choice_or_reason {
      for (const node_id id : site.block.members)
        placements += site.block.g.node_at(id).op->name == "RegexFullMatch" ? 1 : 0;
      return "it only counts";
    },
    [](const codegen::lowering_site&, const codegen::choice&) { return codegen::lowered_node{}; }};

/// Two convolutions, a view that shares memory, and a node of strings, which is the host's.
std::shared_ptr<const graph> network() {
  chooser c;
  const value_id x = c.input({1, 16, 24, 24});
  const value_id first = c.add("Relu", {c.add("Conv", {x, c.constant({32, 16, 3, 3})},
                                              attribute_of("pads", std::vector<std::int64_t>{1, 1, 1, 1}))});
  const value_id second = c.add("Conv", {first, c.constant({64, 32, 1, 1})});
  const value_id flat = c.add("Flatten", {second});
  const value_id matched =
      c.add("RegexFullMatch", {c.input({3}, dtype::string)}, attribute_of("pattern", std::string("a.*")));
  for (const value_id out : {flat, matched}) c.g.add_output(out);
  rdp{}.run(c.g);
  fuse_blocks{}.run(c.g);
  return std::make_shared<const graph>(std::move(c.g));
}

/// The sources of a program's kernels by the node of their step.
std::map<node_id, std::vector<std::string>> sources_of(const program& p) {
  std::map<node_id, std::vector<std::string>> sources;
  for (const placed_node& step : p.steps)
    for (const auto* plans : {&step.lowered.prepare, &step.lowered.kernels})
      for (const codegen::kernel_plan& plan : *plans) sources[step.id].emplace_back(plan.source);
  return sources;
}

}  // namespace

TEST_CASE("a graph is placed once, whatever its tensors are stored in") {
  const std::shared_ptr<const graph> g = network();
  const precision stored = GENERATE(precision::fp32, precision::fp16, precision::fp16_arithmetic);
  const memory_objects memory = GENERATE(memory_objects::buffers, memory_objects::automatic, memory_objects::packed);
  const bool exchanges = GENERATE(false, true);
  const bool processor = GENERATE(false, true);
  CAPTURE(name_of(stored), name_of(memory), exchanges, processor);
  device_info device = processor ? cpu_device() : gpu_device();
  device.fp16 = true;
  std::map<node_id, std::size_t> limits;
  codegen::lower_options options = codegen::default_lower_options(&device);
  options.memory = memory;
  options.rows = std::span(&counting, 1);
  options.work_group_limits = &limits;
  std::map<std::string, texel_layout> exchanged;
  if (exchanges) exchanged.emplace("x1", texel_layout{1, memory_object::buffer, 0, 0});
  placements = 0;

  stored_program_maker maker(g, stored, options, false, exchanged);
  const stored_program usual = maker.usual();
  CHECK(placements == 1);
  CHECK(usual.placed.host_count() == 1);
  CHECK((usual.figures.narrowed_intermediates > 0) == (stored != precision::fp32));
  CHECK((usual.figures.narrowed_constants > 0) == (stored != precision::fp32));
  CHECK((usual.figures.packed_values > 0) == (memory == memory_objects::packed));
  CHECK(usual.figures.exchanged_values == (exchanges ? 1U : 0U));
  const program anew = make_program(usual.placed.g, maker.options(), false);
  CHECK(sources_of(usual.placed) == sources_of(anew));
  CHECK(usual.placed.roots == anew.roots);
  CHECK(usual.placed.steps.size() == anew.steps.size());
  CHECK(usual.placed.crossings == anew.crossings);

  // Smaller forms of weights, and what a driver allows of work-groups.
  placements = 0;
  codegen::lower_options small = maker.options();
  small.weight_growth = 1;
  const stored_program smaller = maker.with_growth(1);
  CHECK(placements == 0);
  CHECK(sources_of(smaller.placed) == sources_of(make_program(smaller.placed.g, small, false)));
  placements = 0;
  for (const placed_node& step : usual.placed.steps)
    if (step.where == placement::device) limits[step.id] = 8;
  maker.follow_limits();
  CHECK(placements == 0);
  CHECK(sources_of(maker.placed()) == sources_of(make_program(maker.placed().g, maker.options(), false)));
}

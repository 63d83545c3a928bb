#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>
#include <protozero/pbf_reader.hpp>

#include <dnnopt/profile/report/html_report.hpp>
#include <dnnopt/profile/report/perfetto_trace.hpp>

#include "simulated_executor.hpp"

using namespace dnnopt::profile;

namespace {

profile_report sample_report() {
  profiler profile;
  simulated_executor executor(profile);
  for (int i = 0; i < 6; ++i) executor.run();
  profile_report report = profile.report();
  report.model = "m</script><b>";
  report.memory = {{"x", 0, 1, 0, 4096}, {"y", 1, 2, 4096, 1024}};
  report.arena_bytes = 5120;
  return report;
}

}  // namespace

TEST_CASE("the Perfetto trace has a clock of the device's own, slices that nest, and flows", "[profile][perfetto]") {
  const profile_report report = sample_report();
  const std::string bytes = to_perfetto(report);
  std::map<std::uint64_t, int> open;
  std::set<std::uint64_t> starts, ends;
  std::size_t snapshots = 0, device_slices = 0;
  std::vector<std::uint64_t> device_times;
  protozero::pbf_reader trace(bytes);
  while (trace.next(1)) {
    protozero::pbf_reader packet = trace.get_message();
    std::uint64_t at = 0;
    std::uint32_t clock = 0;
    while (packet.next()) {
      switch (packet.tag()) {
        case 8:
          at = packet.get_uint64();
          break;
        case 58:
          clock = packet.get_uint32();
          break;
        case 6:
          ++snapshots;
          packet.skip();
          break;
        case 11: {
          protozero::pbf_reader event = packet.get_message();
          int type = 0;
          std::uint64_t track = 0;
          while (event.next()) {
            switch (event.tag()) {
              case 9:
                type = event.get_enum();
                break;
              case 11:
                track = event.get_uint64();
                break;
              case 47:
                starts.insert(event.get_fixed64());
                break;
              case 48:
                ends.insert(event.get_fixed64());
                break;
              default:
                event.skip();
            }
          }
          if (type == 1) {
            CHECK(open[track]++ == 0);
            if (clock == 128) {
              ++device_slices;
              device_times.push_back(at);
            }
          }
          if (type == 2) CHECK(--open[track] == 0);
          break;
        }
        default:
          packet.skip();
      }
    }
  }
  CHECK(device_slices == 6 * 5);
  CHECK(snapshots == 6);
  CHECK(starts == ends);
  CHECK(starts.size() == device_slices);
  std::size_t i = 0;
  for (const kernel_event& event : report.events)
    if (has_device_stamps(event.kind)) CHECK(device_times.at(i++) == static_cast<std::uint64_t>(event.device_start_ns));
}

TEST_CASE("the HTML report is one file whose data cannot end its script", "[profile][html]") {
  const profile_report report = sample_report();
  const std::string page = to_html(report);
  CHECK(page.find("http://") == page.find("http://www.w3.org/2000/svg"));
  CHECK(page.find("https://") == std::string::npos);
  const std::string_view opening = "id=\"data\">";
  const std::size_t from = page.find(opening) + opening.size();
  const std::size_t to = page.find("</script>", from);
  const nlohmann::json data = nlohmann::json::parse(page.substr(from, to - from));
  CHECK(data.at("model") == "m</script><b>");
  CHECK(data.at("events").size() == report.events.size());
  CHECK(data.at("operators").size() == 5);
  CHECK(data.at("kernel_rows").at(0).at("ops").size() == 2);
  CHECK(data.at("memory").at(1).at(4) == 1024);
  CHECK(data.at("runs").size() == 6);
  CHECK(data.at("clock").at("violations") == 0);
  for (const auto& event : data.at("events")) {
    CHECK(event.at(4).get<double>() <= event.at(6).get<double>());
    CHECK(event.at(6).get<double>() <= event.at(7).get<double>());
  }
}

TEST_CASE("the HTML report keeps the newest events when there are too many", "[profile][html]") {
  const profile_report report = sample_report();
  const std::string page = to_html(report, {.events = 7});
  const std::string_view opening = "id=\"data\">";
  const std::size_t from = page.find(opening) + opening.size();
  const nlohmann::json data = nlohmann::json::parse(page.substr(from, page.find("</script>", from) - from));
  CHECK(data.at("events").size() == 7);
  CHECK(data.at("runs").size() == 1);
}

// Usage records: bounds, plan checker, CSV and JSON.
#include <catch2/catch.hpp>

#include "dnnopt/memory/bounds.hpp"
#include "dnnopt/memory/memory_csv.hpp"
#include "dnnopt/memory/memory_io.hpp"
#include "dnnopt/memory/plan_check.hpp"
#include "memory_data.hpp"

using namespace dnnopt::memory;

namespace {

dnnopt::errc code_of(const std::string& text) {
  try {
    static_cast<void>(read_usages(text));
  } catch (const dnnopt::error& fault) {
    return fault.code();
  }
  FAIL("no error for: " << text);
  return dnnopt::errc::usage;
}

}  // namespace

TEST_CASE("the largest live sum follows half-open lifetimes", "[memory]") {
  CHECK(largest_live_sum(std::vector<buffer_usage>{}) == 0);
  CHECK(largest_live_sum(std::vector<buffer_usage>{{0, 2, 10}, {2, 4, 20}}) == 20);
  CHECK(largest_live_sum(std::vector<buffer_usage>{{0, 3, 10}, {2, 4, 20}}) == 30);
  CHECK(largest_live_sum(std::vector<buffer_usage>{{0, 3, 10, 16}, {2, 4, 20, 16}}) == 36);
  CHECK(largest_live_sum(memory_data::csv("minimalloc/C.1048576.csv").usages) == 1039360);
  CHECK(largest_live_sum(memory_data::csv("minimalloc/D.1048576.csv").usages) == 986112);
  CHECK(largest_live_sum(memory_data::csv("large/resnet50.csv").usages) == 1515472556);
  CHECK(largest_live_sum(memory_data::csv("large/Y_1.csv").usages) == 497261190115);
}

TEST_CASE("bounds equal TensorFlow Lite's", "[memory]") {
  std::size_t rows = 0;
  const auto document = memory_data::json_of(memory_data::folder() / "tflite_cases.json");
  for (const auto& test : document.at("cases")) {
    if (!test.contains("bounds")) continue;
    const auto usages = usages_from_json(test).usages;
    const auto& bounds = test.at("bounds");
    CHECK(largest_live_sum(usages) == bounds.at("offset_lower_bound_max_breadth").get<std::int64_t>());
    CHECK(positional_maxima(usages) == bounds.at("positional_maximums").get<std::vector<std::int64_t>>());
    CHECK(shared_objects_lower_bound(usages) == bounds.at("shared_objects_lower_bound").get<std::int64_t>());
    ++rows;
  }
  CHECK(rows == 4);
}

TEST_CASE("the peak names the buffers alive at it", "[memory]") {
  const std::vector<buffer_usage> usages{{0, 2, 5}, {1, 3, 7}, {2, 4, 3}, {3, 5, 8}};
  CHECK(peak_buffers(usages) == std::vector<std::size_t>{0, 1});
}

TEST_CASE("the plan checker finds each kind of fault", "[memory]") {
  const std::vector<buffer_usage> usages{{0, 3, 10}, {2, 4, 20, 4}, {3, 5, 10}};
  using offsets = std::vector<std::int64_t>;
  CHECK_FALSE(find_offset_fault(usages, offsets{0, 12, 0}, 32));
  CHECK(find_offset_fault(usages, offsets{0, 12, 0}, 31));
  CHECK(find_offset_fault(usages, offsets{0, 10, 0}, 32));
  CHECK(find_offset_fault(usages, offsets{0, 8, 0}, 32));
  CHECK(find_offset_fault(usages, offsets{-1, 12, 0}, 32));
  CHECK(find_offset_fault(usages, offsets{0, 12}, 32));
  CHECK(find_offset_fault(usages, offsets{0, 12, 31}, 50));
  using ids = std::vector<std::size_t>;
  CHECK_FALSE(find_object_fault(usages, ids{0, 1, 0}, offsets{10, 20}));
  CHECK(find_object_fault(usages, ids{0, 0, 1}, offsets{20, 20}));
  CHECK(find_object_fault(usages, ids{0, 1, 0}, offsets{10, 19}));
  CHECK(find_object_fault(usages, ids{0, 2, 0}, offsets{10, 20}));
  offset_plan plan{{0, 12, 0}, 33, 0, false, 0.0, "test"};
  CHECK_THROWS_AS(check_plan(usages, plan), dnnopt::error);
  plan.bytes = 32;
  CHECK_NOTHROW(check_plan(usages, plan));
}

TEST_CASE("the plan checker agrees with comparing all pairs", "[memory][property]") {
  int faulty = 0;
  for (unsigned seed = 0; seed < 300; ++seed) {
    const auto usages = memory_data::random_usages(8, 8, 8, seed);
    std::mt19937 random(seed);
    std::vector<std::int64_t> offsets;
    for (std::size_t i = 0; i < usages.size(); ++i) offsets.push_back(static_cast<std::int64_t>(random() % 40));
    bool overlap = false;
    for (std::size_t i = 0; i < usages.size(); ++i) {
      for (std::size_t j = 0; j < i; ++j) {
        overlap = overlap || (conflict(usages[i], usages[j]) && offsets[i] < offsets[j] + usages[j].size &&
                              offsets[j] < offsets[i] + usages[i].size);
      }
    }
    faulty += overlap ? 1 : 0;
    CHECK(find_offset_fault(usages, offsets, 1000).has_value() == overlap);
  }
  CHECK(faulty > 30);
  CHECK(faulty < 270);
}

TEST_CASE("CSV keeps records, names, alignments and offsets", "[memory]") {
  const auto first = read_usages_csv("size,id,upper,lower,alignment,hint\n8,a,3,0,4,\n\n16,b c,5,2,,7\r\n");
  CHECK(first.ids == std::vector<std::string>{"a", "b c"});
  CHECK(first.usages == std::vector<buffer_usage>{{0, 3, 8, 4}, {2, 5, 16, 1}});
  CHECK(first.offsets.empty());
  auto with_plan = first;
  with_plan.offsets = {0, 8};
  const auto second = read_usages_csv(write_usages_csv(with_plan));
  CHECK(second.usages == first.usages);
  CHECK(second.ids == first.ids);
  CHECK(second.offsets == with_plan.offsets);
  const auto third = usages_from_json(usages_to_json(with_plan));
  CHECK(third.usages == first.usages);
  CHECK(third.ids == first.ids);
  CHECK(third.offsets == with_plan.offsets);
}

TEST_CASE("malformed records are refused with a code", "[memory]") {
  using dnnopt::errc;
  CHECK(code_of("") == errc::bad_file);
  CHECK(code_of("id,lower,upper\n0,1,2\n") == errc::bad_file);
  CHECK(code_of("id,lower,upper,size\n0,1,2\n") == errc::bad_file);
  CHECK(code_of("id,lower,upper,size\n0,1,2,x\n") == errc::bad_file);
  CHECK(code_of("id,lower,upper,size\n0,1,2,99999999999999999999\n") == errc::bad_file);
  CHECK(code_of("id,lower,upper,size\nbuffer\xc0,1,2,4\n") == errc::bad_file);
  CHECK(code_of("id,lower,upper,size,gaps\n0,1,9,4,3-5\n") == errc::bad_file);
  CHECK(code_of("id,lower,upper,size,offset\n0,1,9,4,\n1,1,9,4,0\n") == errc::bad_file);
  CHECK(code_of("id,lower,upper,size\n0,2,2,4\n") == errc::invalid_argument);
  CHECK(code_of("id,lower,upper,size\n0,1,2,-4\n") == errc::invalid_argument);
  CHECK(code_of("id,lower,upper,size\n0,1,2,9223372036854775807\n") == errc::overflow);
  CHECK(code_of("{") == errc::bad_file);
  CHECK(code_of("{\"usage_records\":[{\"size\":1}]}") == errc::bad_file);
  CHECK(code_of("[{\"size\":\"4\",\"lower\":0,\"upper\":1}]") == errc::bad_file);
}

TEST_CASE("numbers of usage records in JSON are integers that 64 bits hold") {
  const auto record = [](const std::string& size, const std::string& last) {
    return R"([{"size": )" + size + R"(, "first_task": 0, "last_task": )" + last + "}]";
  };
  CHECK(read_usages(record("8.0", "3")).usages.front().size == 8);
  for (const char* const size : {"1e98", "8.5", "18446744073709551615", "-1e300", "null"})
    CHECK(code_of(record(size, "3")) == dnnopt::errc::bad_file);
  CHECK(code_of(record("8", "9223372036854775807")) == dnnopt::errc::bad_file);
}

#include <cmath>
#include <filesystem>
#include <fstream>
#include <memory>
#include <random>
#include <string>

#include <catch2/catch.hpp>

#include <dnnopt/profile/injected_copies.hpp>
#include <dnnopt/profile/long_run.hpp>
#include <dnnopt/profile/telemetry.hpp>

#include "simulated_executor.hpp"

using namespace dnnopt::profile;

TEST_CASE("a rolling window forgets the oldest", "[profile][long_run]") {
  rolling_window window(4);
  CHECK(window.quantile(0.5) == 0.0);
  for (int i = 1; i <= 6; ++i) window.add(i);
  CHECK(window.size() == 4);
  CHECK(window.quantile(0.0) == 3.0);
  CHECK(window.quantile(1.0) == 6.0);
}

TEST_CASE("a steady series with outliers has no shift", "[profile][long_run]") {
  std::mt19937_64 random(2);
  std::normal_distribution<double> noise(100.0, 2.0);
  std::uniform_real_distribution<double> uniform(0.0, 1.0);
  int shifts = 0;
  for (int series = 0; series < 20; ++series) {
    shift_detector detector;
    for (int i = 0; i < 5000; ++i) shifts += detector.add(uniform(random) < 0.01 ? 500.0 : noise(random)).has_value();
  }
  CHECK(shifts <= 1);
}

TEST_CASE("a shift is found soon, with its size, and again when it goes", "[profile][long_run]") {
  const double factor = GENERATE(1.15, 1.9, 0.7);
  std::mt19937_64 random(3);
  std::normal_distribution<double> noise(0.0, 2.0);
  shift_detector detector;
  for (int i = 0; i < 400; ++i) REQUIRE_FALSE(detector.add(100.0 + noise(random)).has_value());
  int after = 0;
  std::optional<shift_detector::shift> found;
  while (!found && after < 200) {
    ++after;
    found = detector.add(100.0 * factor + noise(random));
  }
  REQUIRE(found.has_value());
  CHECK(after <= 30);
  CHECK(found->before == Approx(100.0).epsilon(0.02));
  CHECK(found->after == Approx(100.0 * factor).epsilon(0.03));
  for (int i = 0; i < 100; ++i) REQUIRE_FALSE(detector.add(100.0 * factor + noise(random)).has_value());
  found.reset();
  for (after = 0; !found && after < 200; ++after) found = detector.add(100.0 + noise(random));
  REQUIRE(found.has_value());
  CHECK(found->after == Approx(100.0).epsilon(0.03));
}

TEST_CASE("the monitor of long runs names the kernel that moved and when", "[profile][long_run]") {
  int read = 0;
  long_run_monitor monitor({}, [&] {
    ++read;
    telemetry_sample sample;
    sample.gpu_clock_mhz = 345.0;
    return sample;
  });
  const launch_info steady{.name = "steady"};
  const launch_info moving{.name = "moving"};
  for (std::uint32_t run = 0; run < 300; ++run) {
    kernel_event event;
    event.run = run;
    event.start_ns = 1000 * run;
    event.end_ns = event.start_ns + 500;
    monitor.on_kernel(event, steady);
    event.end_ns = event.start_ns + (run < 200 ? 100 : 190);
    monitor.on_kernel(event, moving);
    monitor.on_run({run, 1000 * run, 1000 * run + 700});
  }
  const auto shifts = monitor.shifts();
  REQUIRE(shifts.size() == 1);
  CHECK(shifts[0].name == "moving");
  CHECK(shifts[0].run >= 200);
  CHECK(shifts[0].run <= 210);
  CHECK(shifts[0].before_ns == Approx(100.0));
  CHECK(shifts[0].after_ns == Approx(190.0));
  CHECK(shifts[0].telemetry.gpu_clock_mhz.value() == 345.0);
  CHECK(read == 1);
  CHECK(monitor.quantile("moving", 0.5) == 190.0);
  CHECK(monitor.quantile("steady", 0.9) == 500.0);
  CHECK(monitor.quantile("end to end", 0.5) == 700.0);
  CHECK(monitor.quantile("unknown", 0.5) == 0.0);
}

TEST_CASE("telemetry reads the files of several kinds of GPU", "[profile][telemetry]") {
  namespace fs = std::filesystem;
  const fs::path root = fs::temp_directory_path() / ("dnnopt_sysfs_" + std::to_string(host_now_ns()));
  const auto put = [&](const char* file, const char* text) {
    fs::create_directories((root / file).parent_path());
    std::ofstream(root / file) << text << '\n';
  };
  SECTION("Adreno") {
    put("class/kgsl/kgsl-3d0/gpuclk", "585000000");
    put("class/kgsl/kgsl-3d0/temp", "41500");
    telemetry_sample sample;
    sysfs_reader(root).read(sample);
    CHECK(sample.gpu_clock_mhz.value() == Approx(585.0));
    CHECK(sample.gpu_temperature_c.value() == Approx(41.5));
    CHECK_FALSE(sample.gpu_power_w.has_value());
  }
  SECTION("Mali beside a CPU") {
    put("class/devfreq/ff9a0000.gpu/cur_freq", "800000000");
    put("class/thermal/thermal_zone0/type", "soc-thermal");
    put("class/thermal/thermal_zone0/temp", "55000");
    put("class/thermal/thermal_zone1/type", "gpu-thermal");
    put("class/thermal/thermal_zone1/temp", "52000");
    put("devices/system/cpu/cpu0/cpufreq/scaling_cur_freq", "1416000");
    telemetry_sample sample;
    sysfs_reader(root).read(sample);
    CHECK(sample.gpu_clock_mhz.value() == Approx(800.0));
    CHECK(sample.gpu_temperature_c.value() == Approx(52.0));
    CHECK(sample.cpu_temperature_c.value() == Approx(55.0));
    CHECK(sample.cpu_clock_mhz.value() == Approx(1416.0));
  }
  SECTION("AMD") {
    put("class/drm/card0/device/hwmon/hwmon3/freq1_input", "2100000000");
    put("class/drm/card0/device/hwmon/hwmon3/power1_average", "95000000");
    put("class/drm/card0/device/hwmon/hwmon3/temp1_input", "no number");
    telemetry_sample sample;
    sysfs_reader(root).read(sample);
    CHECK(sample.gpu_clock_mhz.value() == Approx(2100.0));
    CHECK(sample.gpu_power_w.value() == Approx(95.0));
    CHECK_FALSE(sample.gpu_temperature_c.has_value());
  }
  SECTION("nothing") {
    telemetry_sample sample;
    sysfs_reader(root / "absent").read(sample);
    CHECK_FALSE(sample.gpu_clock_mhz.has_value());
    CHECK_FALSE(sample.cpu_energy_j.has_value());
  }
  fs::remove_all(root);
}

TEST_CASE("telemetry of this machine does not fail", "[profile][telemetry]") {
  const telemetry_reader reader;
  const telemetry_sample sample = reader.read();
  if (sample.gpu_temperature_c) CHECK(*sample.gpu_temperature_c > -50.0);
  if (sample.cpu_clock_mhz) CHECK(*sample.cpu_clock_mhz > 0.0);
  const nvml_reader absent("no such device");
  CHECK_FALSE(absent.available());
}

TEST_CASE("the slope over injected copies is the kernel's time", "[profile][copies]") {
  std::mt19937_64 random(9);
  std::exponential_distribution<double> noise(1.0 / 3000.0);
  double drift = 0.0;
  const auto inference = [&](double per_copy) {
    return [&, per_copy](std::size_t copies) {
      drift += 5.0;  // the device warms up: later inferences take longer
      return 1e6 + per_copy * static_cast<double>(copies) + drift + noise(random);
    };
  };
  const copy_slope kernel = measure_copy_slope(inference(12000.0));
  const copy_slope empty = measure_copy_slope(inference(2500.0));
  CHECK(kernel.ns_per_copy == Approx(12000.0).margin(200.0));
  CHECK(kernel.low_ns < 12000.0 + 200.0);
  CHECK(kernel.high_ns > 12000.0 - 200.0);
  CHECK(true_kernel_ns(kernel, empty) == Approx(9500.0).margin(300.0));
  CHECK(true_kernel_ns(kernel, empty, true) == Approx(12000.0).margin(200.0));
  CHECK_THROWS_AS(measure_copy_slope(inference(1.0), {.most_copies = 2}), dnnopt::error);
}

TEST_CASE("slopes of pairs are the kernel's time whatever drifts and however large outliers are", "[profile][copies]") {
  std::mt19937_64 random(11);
  std::exponential_distribution<double> noise(1.0 / 3000.0);
  double drift = 0.0;
  std::vector<std::size_t> times(21);
  const auto inference = [&](std::size_t copies) {
    ++times.at(copies);
    drift += 5.0;
    const double outlier = random() % 20 == 0 ? 1e6 : 0.0;
    return 1e6 + 12000.0 * static_cast<double>(copies) + drift + noise(random) + outlier;
  };
  std::vector<double> slopes;
  for (int turn = 0; turn < 40; ++turn) measure_pair_slopes(inference, 20, random, slopes);
  CHECK(slopes.size() == 400);
  CHECK(times[0] == 0);
  for (std::size_t copies = 1; copies <= 20; ++copies) CHECK(times[copies] == 40);
  const location found = pseudo_median(slopes);
  CHECK(found.value == Approx(12000.0).margin(120.0));
  CHECK(found.half_width() < 120.0);
  CHECK_THROWS_AS(measure_pair_slopes(inference, 5, random, slopes), dnnopt::error);
}

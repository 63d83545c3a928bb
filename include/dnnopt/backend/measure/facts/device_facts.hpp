// Owns the measurement of device_facts, and the small file that keeps them per device and driver.
//
// The kernels are a few lines each, sizes follow the device's caches, times are the best of several repeats (a fact is
// a property of the device, not of what else ran meanwhile). Takes about a second on a GPU, a few on a CPU, once.
#ifndef DNNOPT_BACKEND_MEASURE_FACTS_DEVICE_FACTS_HPP
#define DNNOPT_BACKEND_MEASURE_FACTS_DEVICE_FACTS_HPP

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dnnopt/backend/opencl/context.hpp>
#include <dnnopt/backend/opencl/kernel_launch.hpp>
#include <dnnopt/backend/opencl/program_cache.hpp>
#include <dnnopt/backend/opencl/recording.hpp>
#include <dnnopt/device_info.hpp>
#include <dnnopt/small_float.hpp>

namespace dnnopt::opencl {

namespace detail {

/// Kernels that measure. VEC is a float vector of WIDTH components; the image kernels need image support.
inline constexpr std::string_view fact_kernels = R"CLC(
kernel void nothing(global float* out) {
  if (get_global_id(0) == 0x7fffffff) out[0] = 0.0f;
}

kernel void copy_buffer(global const float4* in, global float4* out) {
  out[get_global_id(0)] = in[get_global_id(0)];
}

// Sum of the 3 x 3 neighbourhood, rows of `width` vectors with a border of one.
kernel void window_buffer(global const float4* in, global float4* out, int width) {
  int x = get_global_id(0), y = get_global_id(1);
  float4 sum = 0.0f;
  for (int dy = 0; dy < 3; ++dy)
    for (int dx = 0; dx < 3; ++dx) sum += in[(y + dy) * width + x + dx];
  out[y * width + x] = sum;
}

kernel void window_buffer_half(global const ushort4* in, global ushort4* out, int width) {
  int x = get_global_id(0), y = get_global_id(1);
  float4 sum = 0.0f;
  for (int dy = 0; dy < 3; ++dy)
    for (int dx = 0; dx < 3; ++dx) {
      const ushort4 bits = in[(y + dy) * width + x + dx];
      sum += vloada_half4(0, (const private half*)&bits);
    }
  ushort4 bits;
  vstorea_half4(sum, 0, (private half*)&bits);
  out[y * width + x] = bits;
}

// Every work-group reads the same `length` vectors (a power of two) `rounds` times.
kernel void cached_read(global const float4* in, global float* out, int length, int rounds) {
  float4 sum = 0.0f;
  int at = get_local_id(0);
  for (int i = 0; i < rounds; ++i) {
    sum += in[at & (length - 1)];
    at += get_local_size(0);
  }
  out[get_global_id(0)] = sum.x + sum.y + sum.z + sum.w;
}

kernel void multiply_add(global float* out, float a, int rounds) {
  VEC s0 = a, s1 = a + 1.0f, s2 = a + 2.0f, s3 = a + 3.0f, s4 = a + 4.0f, s5 = a + 5.0f, s6 = a + 6.0f, s7 = a + 7.0f;
  VEC m = a * 0.5f;
  for (int i = 0; i < rounds; ++i) {
    s0 = fma(s0, m, m); s1 = fma(s1, m, m); s2 = fma(s2, m, m); s3 = fma(s3, m, m);
    s4 = fma(s4, m, m); s5 = fma(s5, m, m); s6 = fma(s6, m, m); s7 = fma(s7, m, m);
  }
  VEC sum = s0 + s1 + s2 + s3 + s4 + s5 + s6 + s7;
  out[get_global_id(0)] = sum.s0 + sum.s1 + sum.s2 + sum.s3;
}

#ifdef IMAGES
constant sampler_t nearest = CLK_NORMALIZED_COORDS_FALSE | CLK_ADDRESS_CLAMP | CLK_FILTER_NEAREST;

kernel void copy_image(read_only image2d_t in, write_only image2d_t out) {
  int2 at = (int2)(get_global_id(0), get_global_id(1));
  write_imagef(out, at, read_imagef(in, nearest, at));
}

kernel void window_image(read_only image2d_t in, write_only image2d_t out) {
  int2 at = (int2)(get_global_id(0), get_global_id(1));
  float4 sum = 0.0f;
  for (int dy = 0; dy < 3; ++dy)
    for (int dx = 0; dx < 3; ++dx) sum += read_imagef(in, nearest, at + (int2)(dx, dy));
  write_imagef(out, at, sum);
}
#endif
)CLC";

/// Apart from the others: a driver that lacks the filter may refuse it, and is measured all the same.
inline constexpr std::string_view filter_kernel = R"CLC(
constant sampler_t between = CLK_NORMALIZED_COORDS_FALSE | CLK_ADDRESS_CLAMP_TO_EDGE | CLK_FILTER_LINEAR;

kernel void between_texels(read_only image2d_array_t in, global const float2* at, global float4* out) {
  int i = get_global_id(0);
  out[i] = read_imagef(in, between, (float4)(at[i], 1.0f, 0.0f));
}
)CLC";

/// One measurement of a device: kernels, a queue, and the sizes that go with its caches.
class fact_meter {
 public:
  explicit fact_meter(context& where)
      : where_(where), queue_(where.make_queue()), programs_(where, {.on_disk = false, .folder = {}}) {
    const device_info& info = where.info();
    const cl_uint width = std::clamp<cl_uint>(info.native_widths.float_width, 4, 16);
    width_ = width >= 16 ? 16 : width >= 8 ? 8 : 4;
    std::string options = "-DVEC=float" + std::to_string(width_);
    if (info.images.supported) options += " -DIMAGES";
    program_ = programs_.build({"device facts", std::string(fact_kernels), options});
    // Four times the cache, so that a pass finds nothing of the pass before; rows of 2048 vectors. The least is for
    // drivers that tell the size of a smaller cache than their last.
    const std::uint64_t wanted = std::clamp<std::uint64_t>(4 * info.global_cache_bytes, 128u << 20, 256u << 20);
    const std::uint64_t most = std::min(info.max_allocation_bytes, info.global_memory_bytes / 8);
    rows_ = static_cast<std::size_t>(std::max<std::uint64_t>(64, std::min(wanted, most) / (row_vectors * 16)));
    if (info.images.supported) rows_ = std::min(rows_, info.images.max_height_2d);
  }

  [[nodiscard]] device_facts measure() {
    device_facts facts;
    measure_launches(facts);
    measure_buffers(facts);
    measure_transfers(facts);
    measure_arithmetic(facts);
    const image_limits& images = where_.info().images;
    if (images.supported && images.max_array_layers >= 3) {
      if (images.rgba_fp32) facts.image_filter_bits_fp32 = filter_bits<float>(texel_type::rgba_fp32);
      if (images.rgba_fp16) facts.image_filter_bits_fp16 = filter_bits<float16>(texel_type::rgba_fp16);
    }
    if (images.supported && images.max_width_2d >= row_vectors) {
      if (images.rgba_fp32) {
        const auto [copy, window] = measure_images(texel_type::rgba_fp32);
        facts.image_copy_fp32_gbs = copy;
        facts.image_window_gbs = window;
      }
      if (images.rgba_fp16) {
        const auto [copy, window] = measure_images(texel_type::rgba_fp16);
        facts.image_copy_fp16_gbs = copy;
        facts.image_window_fp16_gbs = window;
      }
    }
    return facts;
  }

 private:
  using clock = std::chrono::steady_clock;
  static constexpr std::size_t row_vectors = 2048;

  static double seconds_since(clock::time_point start) {
    return std::chrono::duration<double>(clock::now() - start).count();
  }

  prepared_launch kernel(std::string_view entry) const { return {program_, where_.where(), entry}; }

  /// Seconds of one launch among up to 32 back to back, so that the way to the device and back, which is paid once,
  /// does not count; best of several, and few when one takes long. The first is not counted.
  double best_time(const prepared_launch& launch) {
    const auto time_of = [&](int launches) {
      const clock::time_point start = clock::now();
      for (int i = 0; i < launches; ++i) launch.enqueue(queue_);
      queue_.finish();
      return std::max(seconds_since(start), 1e-9);
    };
    (void)time_of(1);
    const int launches = static_cast<int>(std::clamp(0.02 / time_of(1), 1.0, 32.0));
    double best = std::numeric_limits<double>::infinity();
    const clock::time_point begin = clock::now();
    for (int i = 0; i < 8 && (i < 2 || seconds_since(begin) < 0.15); ++i)
      best = std::min(best, time_of(launches) / launches);
    return best;
  }

  /// Rate in 1e9 bytes per second of a kernel over `rows` rows of vectors; rows are few when a probe says it is slow.
  template <class Make>
  double rate(std::size_t bytes_per_vector, const Make& make) {
    const std::size_t probe = std::max<std::size_t>(8, rows_ / 64);
    const double slow = best_time(make(probe));
    const std::size_t rows = slow > 0.01 ? probe : rows_;
    const double seconds = rows == probe ? slow : best_time(make(rows));
    return static_cast<double>(rows * row_vectors * bytes_per_vector) / seconds * 1e-9;
  }

  /// Work-groups of 64 along a row.
  static launch_size rows_of_vectors(std::size_t rows) { return {2, {row_vectors, rows, 1}, {64, 1, 1}}; }

  void measure_launches(device_facts& facts) {
    constexpr int count = 400;
    device_buffer out = where_.memory().allocate(64);
    std::vector<prepared_launch> launches;
    for (int i = 0; i < count; ++i) {
      launches.push_back(kernel("nothing"));
      launches.back().set(0, out);
      launches.back().set_size({1, {64, 1, 1}, {64, 1, 1}});
    }
    facts.wave_size = launches.front().limits().preferred_multiple;
    struct keeping_sink : event_sink {
      std::vector<cl::Event> events;
      void on_command(const command_record&, cl::Event event) override { events.push_back(std::move(event)); }
    };
    const auto per_launch = [&](command_queue& queue, const auto& enqueue_all) {
      double best = std::numeric_limits<double>::infinity();
      for (int round = 0; round < 6; ++round) {
        const clock::time_point start = clock::now();
        enqueue_all();
        const double seconds = seconds_since(start);
        queue.finish();
        if (round > 0) best = std::min(best, seconds);
      }
      return best / count * 1e6;
    };
    facts.launch_us = per_launch(queue_, [&] {
      for (const prepared_launch& launch : launches) launch.enqueue(queue_);
    });
    if (where_.info().profiling) {
      command_queue profiled = where_.make_queue({.profiling = true, .flush_interval = 0});
      facts.launch_with_event_us = per_launch(profiled, [&] {
        keeping_sink sink;
        sink.events.reserve(count);
        for (const prepared_launch& launch : launches) launch.enqueue(profiled, &sink);
      });
    }
    if (const recording_method method = offered_method(where_.info()); method != recording_method::plain) {
      try {
        command_recorder recorder;
        for (const prepared_launch& launch : launches) recorder.add(launch);
        recording sequence = recorder.finish(where_, queue_, method);
        facts.recorded_launch_us = per_launch(queue_, [&] { sequence.replay(queue_); });
      } catch (const error&) {
        facts.recorded_launch_us = 0;  // the driver offers what it does not do; plain enqueues remain
        queue_.finish();
      }
    }
    double best = std::numeric_limits<double>::infinity();
    for (int i = 0; i < 50; ++i) {
      const clock::time_point start = clock::now();
      launches.front().enqueue(queue_);
      queue_.finish();
      best = std::min(best, seconds_since(start));
    }
    facts.round_trip_us = best * 1e6;
  }

  void measure_buffers(device_facts& facts) {
    const std::size_t bytes = (rows_ + 2) * row_vectors * 16 + 64;
    const device_buffer in = zeroed(bytes);
    const device_buffer out = zeroed(bytes);
    facts.buffer_copy_gbs = rate(32, [&](std::size_t rows) {
      prepared_launch launch = kernel("copy_buffer");
      launch.set(0, in);
      launch.set(1, out);
      launch.set_size({1, {rows * row_vectors, 1, 1}, {64, 1, 1}});
      return launch;
    });
    const auto window = [&](std::string_view entry) {
      return [&, entry](std::size_t rows) {
        prepared_launch launch = kernel(entry);
        launch.set(0, in);
        launch.set(1, out);
        launch.set(2, cl_int{row_vectors});
        launch.set_size(rows_of_vectors(rows));
        return launch;
      };
    };
    facts.buffer_window_gbs = rate(9 * 16, window("window_buffer"));
    facts.buffer_window_fp16_gbs = rate(9 * 8, window("window_buffer_half"));

    constexpr cl_int length = (128 << 10) / 16;
    constexpr cl_int rounds = 256;
    const std::size_t groups = std::size_t{16} * std::max(1u, where_.info().compute_units);
    prepared_launch launch = kernel("cached_read");
    launch.set(0, in);
    launch.set(1, out);
    launch.set(2, length);
    launch.set(3, rounds);
    launch.set_size({1, {groups * 64, 1, 1}, {64, 1, 1}});
    facts.cached_read_gbs = static_cast<double>(groups * 64 * rounds * 16) / best_time(launch) * 1e-9;
  }

  std::pair<double, double> measure_images(texel_type texel) {
    const image_shape shape{image_kind::image2d, texel, row_vectors, rows_, 1};
    const device_image in = where_.memory().allocate_image(shape, "device facts");
    const device_image out = where_.memory().allocate_image(shape, "device facts");
    queue_.fill(in, {0.0f, 0.0f, 0.0f, 0.0f});
    const auto over = [&](std::string_view entry) {
      return [&, entry](std::size_t rows) {
        prepared_launch launch = kernel(entry);
        launch.set(0, in);
        launch.set(1, out);
        // Blocks, as kernels on images use them, where the device runs many work-items together.
        launch.set_size({2, {row_vectors, rows, 1}, {16, rows % 4 == 0 ? 4u : 1u, 1}});
        return launch;
      };
    };
    return {rate(2 * texel_bytes(texel), over("copy_image")), rate(9 * texel_bytes(texel), over("window_image"))};
  }

  /// device_facts::image_filter_bits_fp32 of the middle one of three layers, on and beyond its edges too: texels from 0
  /// to 1 at 512 places, against interpolation in double of the same coordinates. 0 where the device has no such
  /// filter.
  template <class Element>
  double filter_bits(texel_type texel) {
    constexpr int width = 13;
    constexpr int height = 7;
    constexpr int places = 512;
    std::vector<Element> texels(std::size_t{3} * width * height * 4);
    for (std::size_t i = 0; i < texels.size(); ++i)
      texels[i] = Element(std::fmod(0.37F * static_cast<float>(i * i % 1009), 1.0F));
    std::vector<float> at(std::size_t{2} * places);
    for (int i = 0; i < places; ++i) {
      at[static_cast<std::size_t>(2 * i)] = width * std::fmod(static_cast<float>(i) * 0.7548776662F, 1.0F);
      at[static_cast<std::size_t>(2 * i + 1)] = height * std::fmod(static_cast<float>(i) * 0.5698402910F, 1.0F);
    }
    std::vector<float> got(std::size_t{4} * places);
    try {
      const cl::Program program = programs_.build({"device facts", std::string(filter_kernel), ""});
      const device_image in = where_.memory().allocate_image({image_kind::image2d_array, texel, width, height, 3});
      queue_.upload_image(in, std::as_bytes(std::span(texels)), true);
      const device_buffer from = where_.memory().allocate(at.size() * 4);
      queue_.upload(from, std::as_bytes(std::span(at)), 0, true);
      const device_buffer to = where_.memory().allocate(got.size() * 4);
      prepared_launch launch(program, where_.where(), "between_texels");
      launch.set(0, in);
      launch.set(1, from);
      launch.set(2, to);
      launch.set_size({1, {places, 1, 1}, {0, 0, 0}});
      launch.enqueue(queue_);
      queue_.download(to, std::as_writable_bytes(std::span(got)));
    } catch (const error&) {
      return 0;
    }
    double worst = 0;
    for (std::size_t i = 0; i < places; ++i)
      for (std::size_t c = 0; c < 4; ++c) {
        const double x = static_cast<double>(at[2 * i]) - 0.5;
        const double y = static_cast<double>(at[2 * i + 1]) - 0.5;
        const auto texel_at = [&](double column, double row) {
          const auto across = static_cast<std::size_t>(std::clamp(column, 0.0, width - 1.0));
          const auto down = static_cast<std::size_t>(std::clamp(row, 0.0, height - 1.0));
          return static_cast<double>(static_cast<float>(texels[((height + down) * width + across) * 4 + c]));
        };
        const double low_x = std::floor(x);
        const double low_y = std::floor(y);
        const auto mixed = [&](double row) {
          return texel_at(low_x, row) + (x - low_x) * (texel_at(low_x + 1, row) - texel_at(low_x, row));
        };
        const double want = mixed(low_y) + (y - low_y) * (mixed(low_y + 1) - mixed(low_y));
        const double difference = std::fabs(static_cast<double>(got[4 * i + c]) - want);
        worst = std::isfinite(difference) ? std::max(worst, difference) : 1.0;
      }
    return std::clamp(-std::log2(std::max(worst, 0x1p-24)), 0.0, 24.0);
  }

  void measure_transfers(device_facts& facts) {
    std::vector<std::byte> host(16u << 20);
    const device_buffer buffer = zeroed(host.size());
    const auto best_rate = [&](const auto& transfer) {
      double best = std::numeric_limits<double>::infinity();
      for (int i = 0; i < 5; ++i) {
        const clock::time_point start = clock::now();
        transfer();
        best = std::min(best, seconds_since(start));
      }
      return static_cast<double>(host.size()) / best * 1e-9;
    };
    facts.upload_gbs = best_rate([&] { queue_.upload(buffer, host, 0, true); });
    facts.download_gbs = best_rate([&] { queue_.download(buffer, host); });
  }

  void measure_arithmetic(device_facts& facts) {
    const device_info& info = where_.info();
    const std::size_t group = std::min<std::size_t>(256, std::max<std::size_t>(1, info.max_work_group_size));
    const std::size_t items =
        group * std::max<std::size_t>(info.type == device_type::cpu ? 4 : 64, 1) * std::max(1u, info.compute_units);
    constexpr cl_int rounds = 512;
    const device_buffer out = where_.memory().allocate(items * 4);
    prepared_launch launch = kernel("multiply_add");
    const std::size_t local = fit_work_group({group, 1, 1}, launch.limits())[0];
    launch.set(0, out);
    launch.set(1, cl_float{0.25f});
    launch.set(2, rounds);
    launch.set_size({1, {items / local * local, 1, 1}, {local, 1, 1}});
    const double operations = 2.0 * 8.0 * width_ * rounds * static_cast<double>(items / local * local);
    facts.fma_gflops = operations / best_time(launch) * 1e-9;
  }

  device_buffer zeroed(std::size_t bytes) {
    device_buffer buffer = where_.memory().allocate(bytes, "device facts");
    const float zero = 0.0f;
    queue_.fill(buffer, std::as_bytes(std::span(&zero, 1)), 0, bytes / 4 * 4);
    return buffer;
  }

  context& where_;
  command_queue queue_;
  program_cache programs_;
  cl::Program program_;
  std::size_t rows_ = 0;
  cl_uint width_ = 4;
};

}  // namespace detail

/// Measures `where`'s device now. Allocates two buffers or images at a time, each of four
/// times its cache, 128 to 256 MiB, and at most an eighth of the device's memory.
[[nodiscard]] inline device_facts measure_facts(context& where) { return detail::fact_meter(where).measure(); }

}  // namespace dnnopt::opencl

#endif  // DNNOPT_BACKEND_MEASURE_FACTS_DEVICE_FACTS_HPP

// Owns what the kernel tests share: running the lowering of one node on the device, and comparing with the reference.
#ifndef DNNOPT_TESTS_KERNELS_KERNEL_FIXTURE_HPP
#define DNNOPT_TESTS_KERNELS_KERNEL_FIXTURE_HPP

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <dnnopt/backend/codegen/lower.hpp>
#include <dnnopt/backend/opencl/context.hpp>
#include <dnnopt/backend/opencl/kernel_launch.hpp>
#include <dnnopt/backend/opencl/program_cache.hpp>
#include <dnnopt/backend/program/texel_images.hpp>
#include <dnnopt/ops/standard.hpp>
#include <dnnopt/passes/rdp.hpp>
#include <dnnopt/reference/table.hpp>

namespace dnnopt::testing {

/// Whether kernels run under Oclgrind (tests/oclgrind.sh), where what takes a processor milliseconds takes minutes.
[[nodiscard]] inline bool is_simulated() { return std::getenv("DNNOPT_TEST_SIMULATED") != nullptr; }

/// Whether a case is left out under Oclgrind, for it is `long_to_simulate` there: which is said, so that it is counted.
[[nodiscard]] inline bool left_out(bool long_to_simulate) {
  const bool is = long_to_simulate && is_simulated();
  if (is) std::printf("left out a case\n");
  return is;
}

/// What a run on the device gave.
struct kernel_run {
  std::vector<tensor> outputs;
  std::vector<std::string> versions;  ///< of the kernels, `prepare` included, in launch order
  std::vector<std::string> tuning;    ///< shape classes of those kernels that a tuner may choose
};

/// A node by itself: inputs given as tensors, some of them constants of the graph.
struct node_case {
  std::string op;
  std::vector<tensor> inputs;
  std::vector<bool> constant;  ///< missing entries: not constant
  attribute_map attributes;
  std::size_t outputs = 1;
  std::vector<std::optional<texel_layout>> texels{};         ///< of inputs; missing entries: row-major
  std::vector<std::optional<texel_layout>> result_texels{};  ///< of outputs
};

/// Device facts that make the lowering choose its form for CPUs (wide vectors) or for GPUs (work-groups).
enum class device_form { vectors, groups };

class kernel_bench {
 public:
  kernel_bench()
      : where_(opencl::select_device("opencl")),
        queue_(where_.make_queue()),
        cache_(where_, in_memory()),
        ops_(standard_ops()) {
    images = where_.info().images;
  }

  [[nodiscard]] const op_set& ops() const { return ops_; }
  [[nodiscard]] opencl::context& where() { return where_; }

  const codegen::tuning_table* tuned = nullptr;     ///< what the next runs are lowered with
  std::vector<std::string> shape_classes;           ///< of the last run
  memory_objects memory = memory_objects::buffers;  ///< what the next runs are lowered with
  bool half_products = false;                       ///< what the next runs are lowered with
  std::vector<std::string> passed_over;       ///< of the last run: rows of the lowering table that declined, and why
  codegen::step_providers providers{};        ///< what the next runs are lowered with
  const codegen::integer_dot* dot = nullptr;  ///< what the next runs are lowered with
  image_limits images;                        ///< the device's unless a test changes them
  std::uint32_t compute_units = 0;            ///< the device's unless a test changes them
  std::uint64_t local_memory = 0;             ///< bytes, where a test wants less than the device has
  std::size_t work_group = 64;                ///< most work-items; few, for processors take them one by one
  bool divides_correctly = true;              ///< false: programs are built as for devices that do not
  bool symbolic = false;                      ///< dims of inputs behind the second are symbols in the next runs
  std::vector<std::string> notes;             ///< of the last run's lowering
  std::vector<codegen::kernel_plan> plans;    ///< of the last run, without `prepare`

  [[nodiscard]] device_info info(device_form form) const {
    device_info info = where_.info();
    info.type = form == device_form::vectors ? device_type::cpu : device_type::gpu;
    info.max_work_group_size = std::min(info.max_work_group_size, work_group);
    info.images = images;
    if (compute_units != 0) info.compute_units = compute_units;
    info.rounded_division = info.rounded_division && divides_correctly;
    if (local_memory != 0) info.local_memory_bytes = std::min(info.local_memory_bytes, local_memory);
    return info;
  }

  /// A tensor as the texels of a layout: zero beyond the packed dim, in the order of an image's rows.
  [[nodiscard]] static std::vector<std::byte> texels_of(const tensor& t, std::size_t packed) {
    std::vector<std::byte> bytes;
    for_each_texel_element(t, packed, [&](std::size_t at, std::size_t i, std::size_t total) {
      bytes.resize(total * t.byte_size() / static_cast<std::size_t>(t.size()));
      const std::size_t size = t.byte_size() / static_cast<std::size_t>(t.size());
      std::copy_n(t.bytes().begin() + static_cast<std::ptrdiff_t>(i * size), size,
                  bytes.begin() + static_cast<std::ptrdiff_t>(at * size));
    });
    return bytes;
  }
  /// The other way round. Errors the test where what lies beyond the packed dim is not zero.
  static void from_texels(const std::vector<std::byte>& bytes, std::size_t packed, tensor& t) {
    const std::size_t size = t.byte_size() / static_cast<std::size_t>(t.size());
    std::vector<bool> taken(bytes.size() / size, false);
    for_each_texel_element(t, packed, [&](std::size_t at, std::size_t i, std::size_t) {
      taken.at(at) = true;
      std::copy_n(bytes.begin() + static_cast<std::ptrdiff_t>(at * size), size,
                  t.mutable_bytes().begin() + static_cast<std::ptrdiff_t>(i * size));
    });
    for (std::size_t at = 0; at < taken.size(); ++at)
      for (std::size_t k = 0; !taken[at] && k < size; ++k)
        if (bytes[at * size + k] != std::byte{0}) throw error(errc::invalid_argument, "padding of texels is not zero");
  }

  /// Lowers a block and runs its kernels. `values` holds a tensor for each value that the block reads or writes; those
  /// of block outputs give type and dims and receive the result. Scratch and outputs start as garbage.
  std::vector<std::string> run(const codegen::block_view& block, device_form form,
                               std::vector<std::pair<value_id, tensor>>& values, const symbol_values& symbols = {}) {
    const device_info facts = info(form);
    codegen::lower_options options = codegen::default_lower_options(&facts);
    options.tuned = tuned;
    options.memory = memory;
    options.half_products = half_products;
    options.steps = providers;
    options.dot = dot;
    const codegen::lowered_node lowered = codegen::lower(block, options);
    shape_classes.clear();
    for (const codegen::kernel_plan& plan : lowered.kernels)
      if (!plan.tuning.empty()) shape_classes.push_back(plan.tuning);
    notes = lowered.notes;
    passed_over = lowered.passed_over;
    plans = lowered.kernels;
    std::vector<std::pair<value_id, held_memory>> buffers;
    for (const auto& [id, content] : values) {
      const auto& texels = block.g.facts(id).texels;
      std::vector<std::byte> packed = texels ? texels_of(content, texels->packed) : std::vector<std::byte>();
      held_memory held;
      if (texels && texels->object != memory_object::buffer)
        held.image = where_.memory().allocate_image(image_shape_of(texel_storage_of(block.g.facts(id)), symbols));
      else
        held.buffer = where_.memory().allocate(std::max<std::size_t>(texels ? packed.size() : content.byte_size(), 4));
      // The last layer of an array may have rows to spare.
      if (!held.image.empty()) packed.resize(held.image.bytes());
      const std::span<const std::byte> bytes = texels ? std::span<const std::byte>(packed) : content.bytes();
      if (is_output(block, id))
        fill_with_garbage(held);
      else if (!held.image.empty())
        queue_.upload_image(held.image, bytes, true);
      else
        queue_.upload(held.buffer, bytes, 0, true);
      buffers.emplace_back(id, std::move(held));
    }
    std::vector<held_memory> scratch;
    for (const codegen::scratch_buffer& s : lowered.scratch) {
      held_memory held;
      if (s.image.object != memory_object::buffer)
        held.image = where_.memory().allocate_image(image_shape_of(s.image, symbols));
      else
        held.buffer =
            where_.memory().allocate(std::max<std::size_t>(static_cast<std::size_t>(s.bytes.evaluate(symbols)), 4));
      fill_with_garbage(held);
      scratch.push_back(std::move(held));
    }
    std::vector<std::string> versions;
    for (const auto* list : {&lowered.prepare, &lowered.kernels})
      for (const codegen::kernel_plan& plan : *list) {
        if (plan.when.evaluate(symbols) == 0) continue;
        launch(plan, buffers, scratch, symbols);
        versions.push_back(plan.version);
      }
    for (auto& [id, content] : values) {
      if (!is_output(block, id)) continue;
      const held_memory& held = memory_of(buffers, id);
      if (const auto& texels = block.g.facts(id).texels; texels) {
        std::vector<std::byte> bytes = texels_of(content, texels->packed);
        const std::size_t own = bytes.size();
        if (!held.image.empty()) bytes.resize(held.image.bytes());
        if (held.image.empty())
          queue_.download(held.buffer, bytes);
        else
          queue_.download_image(held.image, bytes);
        queue_.finish();
        bytes.resize(own);
        from_texels(bytes, texels->packed, content);
      } else {
        queue_.download(held.buffer, content.mutable_bytes());
      }
    }
    queue_.finish();
    // tests/oclgrind.sh counts these lines.
    if (std::getenv("DNNOPT_TEST_PRINT_VERSIONS") != nullptr)
      for (const std::string& one : versions) std::printf("\nran dnnopt_%s\n", one.c_str());
    return versions;
  }

  kernel_run run(const node_case& c, device_form form, const std::vector<tensor>& expected) {
    graph g;
    std::vector<value_id> in;
    std::vector<value_id> out;
    std::vector<std::pair<value_id, tensor>> values;
    symbol_values symbols;
    for (std::size_t i = 0; i < c.inputs.size(); ++i) {
      const tensor& t = c.inputs[i];
      if (t.empty()) {
        in.push_back(no_value);
        continue;
      }
      const bool constant = i < c.constant.size() && c.constant[i];
      shape dims = to_shape(t.dims());
      for (std::size_t k = 2; symbolic && !constant && k < dims.size(); ++k) {
        const std::int64_t held = dims[k].constant();
        dims[k] = g.expressions().symbol("x" + std::to_string(i) + "_" + std::to_string(k));
        symbols.bind(*dims[k].as_symbol(), held);
      }
      in.push_back(constant ? g.add_constant("x" + std::to_string(i), t)
                            : g.add_input("x" + std::to_string(i), t.type(), std::move(dims)));
      values.emplace_back(in.back(), t);
      if (i < c.texels.size()) g.facts(in.back()).texels = c.texels[i];
    }
    for (std::size_t o = 0; o < c.outputs; ++o) {
      out.push_back(symbolic ? g.add_value("y" + std::to_string(o))
                             : g.add_value("y" + std::to_string(o), expected[o].type(), to_shape(expected[o].dims())));
      values.emplace_back(out.back(), tensor(expected[o].type(), expected[o].dims()));
      if (o < c.result_texels.size()) g.facts(out.back()).texels = c.result_texels[o];
    }
    const node_id n = g.add_node(ops_.at("", c.op), c.op, in, out, c.attributes);
    if (symbolic) {
      for (const value_id o : out) g.add_output(o);
      rdp{}.run(g);
    }
    const codegen::block_view block{g, {n}, out};
    kernel_run result;
    result.versions = run(block, form, values, symbols);
    result.tuning = shape_classes;
    for (const auto& [id, content] : values)
      if (is_output(block, id)) result.outputs.push_back(content);
    return result;
  }

  [[nodiscard]] std::vector<tensor> expect(const node_case& c) const {
    return reference::evaluate_operator(ops_.at("", c.op), c.attributes, c.inputs, c.outputs);
  }

 private:
  static opencl::program_cache_options in_memory() {
    opencl::program_cache_options options;
    options.on_disk = false;
    return options;
  }
  static bool is_output(const codegen::block_view& block, value_id id) {
    return std::find(block.outputs.begin(), block.outputs.end(), id) != block.outputs.end();
  }
  /// One of the two is empty.
  struct held_memory {
    opencl::device_buffer buffer;
    opencl::device_image image;
  };
  static const held_memory& memory_of(const std::vector<std::pair<value_id, held_memory>>& buffers, value_id id) {
    for (const auto& [held, memory_of_value] : buffers)
      if (held == id) return memory_of_value;
    throw error(errc::invalid_argument, "no memory for value " + std::to_string(id));
  }
  /// Calls `visit(place among texel components, row-major place, number of components)` for each element.
  template <class Visit>
  static void for_each_texel_element(const tensor& t, std::size_t packed, Visit&& visit) {
    dim_list dims = t.dims();
    const std::int64_t extent = dims.at(packed);
    std::int64_t inner = 1;
    for (std::size_t d = packed + 1; d < dims.size(); ++d) inner *= dims[d];
    const std::int64_t slices = (extent + 3) / 4;
    const std::int64_t outer = t.size() / extent / inner;
    for (std::int64_t i = 0; i < t.size(); ++i) {
      const std::int64_t c = i / inner % extent;
      const std::int64_t texel = (i / inner / extent * slices + c / 4) * inner + i % inner;
      visit(static_cast<std::size_t>(texel * 4 + c % 4), static_cast<std::size_t>(i),
            static_cast<std::size_t>(outer * slices * inner * 4));
    }
  }
  void fill_with_garbage(const held_memory& held) {
    if (held.image.empty()) {
      fill_with_garbage(held.buffer);
      return;
    }
    const std::vector<std::byte> garbage(held.image.bytes(), std::byte{0x5A});
    queue_.upload_image(held.image, garbage, true);
  }
  void fill_with_garbage(const opencl::device_buffer& buffer) {
    const std::vector<std::byte> garbage(buffer.bytes(), std::byte{0x5A});
    queue_.upload(buffer, garbage, 0, true);
  }
  void launch(const codegen::kernel_plan& plan, const std::vector<std::pair<value_id, held_memory>>& buffers,
              const std::vector<held_memory>& scratch, const symbol_values& symbols) {
    const cl::Program program = cache_.build({plan.version, plan.source, plan.options});
    opencl::prepared_launch kernel(program, where_.where(), plan.entry);
    cl_uint at = 0;
    for (const codegen::pointer_argument& p : plan.pointers) {
      const held_memory& held = p.held == no_value ? scratch.at(p.scratch) : memory_of(buffers, p.held);
      if (held.image.empty())
        kernel.set(at++, held.buffer);
      else
        kernel.set(at++, held.image);
    }
    const symbol_values own = plan.bind(symbols);
    for (std::size_t i = 0; i < plan.parameters.size(); ++i) {
      const std::int64_t value = plan.parameters[i].evaluate(symbols);
      if (plan.parameter_is_long[i])
        kernel.set(at++, static_cast<cl_long>(value));
      else
        kernel.set(at++, static_cast<cl_int>(value));
    }
    for (const index_expr& divisor : plan.divisors)
      kernel.set(at++, static_cast<cl_long>(codegen::reciprocal_of(divisor.evaluate(symbols))));
    opencl::launch_size size;
    size.dimensions = 3;
    for (std::size_t i = 0; i < 3; ++i) {
      size.global[i] = static_cast<std::size_t>(plan.global[i].evaluate(own));
      size.local[i] = plan.local[i];
      if (size.global[i] == 0) return;
    }
    if (size.local[0] == 0) size.local = {0, 0, 0};
    kernel.set_size(size);
    kernel.enqueue(queue_);
    queue_.finish();
  }

  opencl::context where_;
  opencl::command_queue queue_;
  opencl::program_cache cache_;
  op_set ops_;
};

/// Normal deviates as a tensor of a floating-point type; integers from -4 to 4 (0 to 8 unsigned) for the others.
[[nodiscard]] inline tensor random_tensor(dtype type, dim_list dims, std::uint32_t seed) {
  tensor t(type, std::move(dims));
  std::mt19937 engine(seed);
  std::normal_distribution<float> deviate;
  const auto count = static_cast<std::size_t>(t.size());
  const auto fill = [&](auto tag, auto next) {
    using T = decltype(tag);
    for (T& v : t.mutable_data<T>()) v = T(next());
  };
  const auto small = [&] { return static_cast<int>(engine() % 9) - 4; };
  const auto natural = [&] { return static_cast<unsigned>(engine() % 9); };
  const auto real = [&] { return deviate(engine); };
  (void)count;
  switch (type) {
    case dtype::float32:
      fill(float{}, real);
      break;
    case dtype::float64:
      fill(double{}, real);
      break;
    case dtype::float16:
      fill(float16{}, real);
      break;
    case dtype::bfloat16:
      fill(bfloat16{}, real);
      break;
    case dtype::int64:
      fill(std::int64_t{}, small);
      break;
    case dtype::int32:
      fill(std::int32_t{}, small);
      break;
    case dtype::int16:
      fill(std::int16_t{}, small);
      break;
    case dtype::int8:
      fill(std::int8_t{}, small);
      break;
    case dtype::uint64:
      fill(std::uint64_t{}, natural);
      break;
    case dtype::uint32:
      fill(std::uint32_t{}, natural);
      break;
    case dtype::uint16:
      fill(std::uint16_t{}, natural);
      break;
    case dtype::uint8:
      fill(std::uint8_t{}, natural);
      break;
    default:
      throw error(errc::unsupported, "no random values of that type");
  }
  return t;
}

/// Chooses values of convolution_shifts' parameters for a class of convolutions, of those that Winograd's tiles compute
/// too without them.
inline void set_shifts(codegen::tuning_table& table, const std::string& shape, std::vector<std::int64_t> values) {
  if (shape.starts_with("convolution_winograd ")) values.insert(values.begin(), 0);
  table.set(shape, std::move(values));
}

/// The largest difference over the largest magnitude of `want`; infinite where a NaN or infinity stands on one side
/// only.
[[nodiscard]] inline double relative_difference(const tensor& got, const tensor& want) {
  double top = 1e-30;
  double difference = 0;
  for (std::size_t i = 0; i < static_cast<std::size_t>(want.size()); ++i) {
    const double a = codegen::number_at(got, i);
    const double b = codegen::number_at(want, i);
    if (a == b || (std::isnan(a) && std::isnan(b))) continue;
    if (!std::isfinite(a) || !std::isfinite(b)) return std::numeric_limits<double>::infinity();
    difference = std::max(difference, std::fabs(a - b));
    top = std::max(top, std::fabs(b));
  }
  return difference == 0 ? 0 : difference / top;
}

/// What rounding to the element type and sums in float allow.
[[nodiscard]] inline double tolerance_of(dtype type) {
  switch (type) {
    case dtype::float16:
      return 2e-3;
    case dtype::bfloat16:
      return 1.6e-2;
    case dtype::float32:
      return 2e-5;
    case dtype::float64:
      return 1e-12;
    default:
      return 0;
  }
}

}  // namespace dnnopt::testing

#endif  // DNNOPT_TESTS_KERNELS_KERNEL_FIXTURE_HPP

// Times the kernels of single operators on a device: time_kernels SPEC FORM REPEATS CASE [CASE ...]
//
// SPEC is a device as the command line names one (opencl, opencl:NVIDIA); FORM is auto (the device's own facts),
// vectors or groups. A case is OP:DIMS[:DIMS...][:NAME=VALUES...], inputs from normal deviates, all but the first
// constant where the operator has weights:
//
//   Conv:1x64x56x56:64x64x3x3:64:pads=1,1,1,1      MatMul:197x768:768x3072      Softmax:2364x197
//
// "MatMul*" makes both operands inputs. Each case prints its kernels, the fastest, the median and the processor's time
// of a launch of all of them (REPEATS enqueued one after the other between two finishes, for some tenths of a second),
// GFLOP/s and GB/s of its operands. With DNNOPT_CHECK=1 in the environment the result is compared with the reference
// backend, with DNNOPT_DUMP=1 the source is printed. DNNOPT_COLD=160 makes launches take turns among so many copies of
// the weights that these are 160 MB, so that no cache holds them, as in a network with many layers;
// DNNOPT_WEIGHT_GROWTH=2 is lower_options::weight_growth. "DNNOPT_VALUES=1,4;5,4" times each case with each of these
// values of its family's tunable parameters (codegen/tuning.hpp), DNNOPT_FAMILY=float_steps with those of that family
// in place of the default choice's; DNNOPT_STEPS=none leaves out matrix steps. DNNOPT_BUILD_OPTIONS=-cl-nv-verbose
// gives the compiler more options and prints its log, in which some tell a kernel's registers. DNNOPT_FP16=1 makes
// operands float16, and DNNOPT_BINARIES=FOLDER writes what the compiler made of each kernel there (NVIDIA's is PTX).
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <span>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include <dnnopt/backend/codegen/lower.hpp>
#include <dnnopt/backend/measure/facts/step_facts.hpp>
#include <dnnopt/backend/measure/tuner.hpp>
#include <dnnopt/backend/opencl/context.hpp>
#include <dnnopt/backend/opencl/kernel_launch.hpp>
#include <dnnopt/backend/opencl/program_cache.hpp>
#include <dnnopt/ops/standard.hpp>
#include <dnnopt/reference/table.hpp>

namespace {

using namespace dnnopt;
using steady = std::chrono::steady_clock;

/// Processor time of this process, all threads, in microseconds: what a busy machine leaves comparable.
double processor_us() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto us = [](const timeval& t) { return static_cast<double>(t.tv_sec) * 1e6 + static_cast<double>(t.tv_usec); };
  return us(usage.ru_utime) + us(usage.ru_stime);
}

std::vector<std::string> split(const std::string& text, char by) {
  std::vector<std::string> parts;
  std::istringstream in(text);
  for (std::string part; std::getline(in, part, by);) parts.push_back(part);
  return parts;
}

template <class T>
void fill_by_deviates(std::span<T> values, std::uint32_t seed) {
  std::uint32_t state = seed * 2654435761U + 1;
  for (T& v : values) {
    float sum = 0;
    for (int i = 0; i < 4; ++i) {
      state = state * 1664525U + 1013904223U;
      sum += static_cast<float>(state >> 8U) / 16777216.0f - 0.5f;
    }
    v = static_cast<T>(sum * 1.7f);
  }
}

tensor deviates(dim_list dims, std::uint32_t seed) {
  const bool halves = std::getenv("DNNOPT_FP16") != nullptr;
  tensor t(halves ? dtype::float16 : dtype::float32, std::move(dims));
  if (halves)
    fill_by_deviates(t.mutable_data<float16>(), seed);
  else
    fill_by_deviates(t.mutable_data<float>(), seed);
  return t;
}

/// An element of a tensor of float32 or float16.
double element(const tensor& t, std::size_t i) {
  return t.type() == dtype::float16 ? static_cast<double>(static_cast<float>(t.data<float16>()[i]))
                                    : static_cast<double>(t.data<float>()[i]);
}

struct kernel_case {
  std::string op;
  std::vector<tensor> inputs;
  attribute_map attributes;
  bool constants = true;
};

kernel_case parse(const std::string& text) {
  kernel_case c;
  const std::vector<std::string> parts = split(text, ':');
  c.op = parts.at(0);
  if (c.op.back() == '*') {
    c.op.pop_back();
    c.constants = false;
  }
  for (std::size_t i = 1; i < parts.size(); ++i) {
    if (const std::size_t equal = parts[i].find('='); equal != std::string::npos) {
      const std::string name = parts[i].substr(0, equal);
      std::vector<std::int64_t> values;
      for (const std::string& v : split(parts[i].substr(equal + 1), ',')) values.push_back(std::stoll(v));
      const bool list = name == "pads" || name == "strides" || name == "dilations" || name == "kernel_shape" ||
                        name == "perm" || name == "axes";
      if (list)
        c.attributes.set(name, values);
      else
        c.attributes.set(name, values.at(0));
    } else {
      dim_list dims;
      for (const std::string& d : split(parts[i], 'x')) dims.push_back(std::stoll(d));
      c.inputs.push_back(deviates(dims, static_cast<std::uint32_t>(i)));
    }
  }
  return c;
}

struct launched {
  codegen::kernel_plan plan;
  opencl::prepared_launch kernel;
};

class bench {
 public:
  bench(const std::string& spec, std::string form)
      : where_(opencl::select_device(spec)),
        queue_(where_.make_queue()),
        cache_(where_,
               [] {
                 opencl::program_cache_options o;
                 o.on_disk = false;
                 return o;
               }()),
        ops_(standard_ops()),
        form_(std::move(form)),
        steps_(opencl::measure_steps(where_)) {
    std::printf("%s\n", where_.info().name.c_str());
  }

  /// `tried`: what a tuner would choose, separated by commas; empty: the default choice.
  void run(const std::string& text, int repeats, const std::string& tried = {}) {
    const kernel_case c = parse(text);
    const std::vector<tensor> want = shapes(c);
    graph g;
    std::vector<value_id> in;
    double bytes = 0;
    for (std::size_t i = 0; i < c.inputs.size(); ++i) {
      const tensor& t = c.inputs[i];
      bytes += static_cast<double>(t.byte_size());
      shape dims;
      for (const auto d : t.dims()) dims.emplace_back(d);
      const std::string name = "x" + std::to_string(i);
      in.push_back(i > 0 && c.constants ? g.add_constant(name, t) : g.add_input(name, t.type(), dims));
    }
    shape out_dims;
    for (const auto d : want[0].dims()) out_dims.emplace_back(d);
    bytes += static_cast<double>(want[0].byte_size());
    const value_id out = g.add_value("y", want[0].type(), out_dims);
    const node_id n = g.add_node(ops_.at("", c.op), c.op, in, {out}, c.attributes);
    const codegen::block_view block{g, {n}, {out}};
    const device_info facts = with_form(where_.info(), find_kernel_form(form_).value_or(kernel_form::native));
    codegen::lower_options lowering = codegen::default_lower_options(&facts);
    const char* const steps = std::getenv("DNNOPT_STEPS");
    if (!facts.prefers_vectors() && (steps == nullptr || std::string_view(steps) != "none")) lowering.steps = steps_;
    if (const char* const growth = std::getenv("DNNOPT_WEIGHT_GROWTH")) lowering.weight_growth = std::atof(growth);
    codegen::lowered_node lowered = codegen::lower(block, lowering);
    codegen::tuning_table chosen;
    if (!tried.empty()) {
      std::vector<std::int64_t> row;
      for (const std::string& v : split(tried, ',')) row.push_back(std::stoll(v));
      const char* const family = std::getenv("DNNOPT_FAMILY");
      for (const auto& plan : lowered.kernels)
        if (!plan.tuning.empty())
          chosen.set(family == nullptr ? plan.tuning : family + plan.tuning.substr(plan.tuning.find(' ')), row);
      lowering.tuned = &chosen;
      lowered = codegen::lower(block, lowering);
      std::printf("%-12s ", tried.c_str());
    }

    // What launches that take turns have of their own: constants and scratch.
    struct turn {
      std::vector<opencl::device_buffer> constants;
      std::vector<opencl::device_buffer> scratch;
      std::vector<opencl::prepared_launch> kernels;
    };
    std::vector<opencl::device_buffer> buffers;
    const auto filled = [&](const tensor& t) {
      opencl::device_buffer buffer = where_.memory().allocate(std::max<std::size_t>(t.byte_size(), 4));
      queue_.upload(buffer, t.bytes(), 0, true);
      return buffer;
    };
    const auto is_constant = [&](std::size_t i) { return i > 0 && c.constants; };
    for (std::size_t i = 0; i < in.size(); ++i)
      if (!is_constant(i)) buffers.push_back(filled(c.inputs[i]));
    buffers.push_back(where_.memory().allocate(want[0].byte_size()));
    const auto buffer_of = [&](turn& own, value_id id) -> opencl::device_buffer& {
      if (id == out) return buffers.back();
      const auto i = static_cast<std::size_t>(std::find(in.begin(), in.end(), id) - in.begin());
      return is_constant(i) ? own.constants.at(i - 1) : buffers.at(i);
    };
    const auto prepare = [&](turn& own, const codegen::kernel_plan& plan) {
      if (std::getenv("DNNOPT_DUMP") != nullptr) std::printf("%s\n", plan.source.str().c_str());
      const char* const more = std::getenv("DNNOPT_BUILD_OPTIONS");
      const cl::Program program =
          cache_.build({plan.version, plan.source, plan.options + (more == nullptr ? "" : " " + std::string(more))});
      if (more != nullptr)
        std::printf("%s\n", program.getBuildInfo<CL_PROGRAM_BUILD_LOG>(where_.where().handle).c_str());
      if (const char* const folder = std::getenv("DNNOPT_BINARIES"); folder != nullptr)
        for (const std::vector<unsigned char>& binary : program.getInfo<CL_PROGRAM_BINARIES>()) {
          const std::string path = std::string(folder) + "/" + std::to_string(binaries_++) + "_" + plan.version;
          std::ofstream(path, std::ios::binary)
              .write(reinterpret_cast<const char*>(binary.data()), static_cast<std::streamsize>(binary.size()));
          std::printf("%s\n", path.c_str());
        }
      opencl::prepared_launch kernel(program, where_.where(), plan.entry);
      cl_uint at = 0;
      for (const auto& p : plan.pointers)
        kernel.set(at++, p.held == no_value ? own.scratch.at(p.scratch) : buffer_of(own, p.held));
      for (std::size_t i = 0; i < plan.parameters.size(); ++i) {
        const std::int64_t value = plan.parameters[i].evaluate({});
        if (plan.parameter_is_long[i])
          kernel.set(at++, static_cast<cl_long>(value));
        else
          kernel.set(at++, static_cast<cl_int>(value));
      }
      for (const index_expr& divisor : plan.divisors)
        kernel.set(at++, static_cast<cl_long>(codegen::reciprocal_of(divisor.evaluate({}))));
      opencl::launch_size size;
      size.dimensions = 3;
      const symbol_values symbols = plan.bind({});
      for (std::size_t i = 0; i < 3; ++i) {
        size.global[i] = static_cast<std::size_t>(plan.global[i].evaluate(symbols));
        size.local[i] = plan.local[i];
      }
      if (size.local[0] == 0) size.local = {0, 0, 0};
      kernel.set_size(size);
      return kernel;
    };
    double weight_bytes = 0;
    for (std::size_t i = 0; i < in.size(); ++i)
      if (is_constant(i)) weight_bytes += static_cast<double>(c.inputs[i].byte_size());
    for (const auto& s : lowered.scratch)
      if (s.persistent) weight_bytes = std::max(weight_bytes, static_cast<double>(s.bytes.evaluate({})));
    const char* const cold = std::getenv("DNNOPT_COLD");
    const double turns_wanted = cold == nullptr ? 1 : std::ceil(std::atof(cold) * 1e6 / std::max(weight_bytes, 4.0));
    std::vector<turn> turns(static_cast<std::size_t>(std::clamp(turns_wanted, 1.0, 400.0)));
    for (turn& own : turns) {
      for (std::size_t i = 0; i < in.size(); ++i)
        if (is_constant(i)) own.constants.push_back(filled(c.inputs[i]));
      for (const auto& s : lowered.scratch)
        own.scratch.push_back(
            where_.memory().allocate(std::max<std::size_t>(static_cast<std::size_t>(s.bytes.evaluate({})), 4)));
      for (const auto& plan : lowered.prepare) prepare(own, plan).enqueue(queue_);
      queue_.finish();
      for (const auto& plan : lowered.kernels) own.kernels.push_back(prepare(own, plan));
    }
    std::string versions;
    double flops = 0;
    for (const auto& plan : lowered.kernels) {
      versions += (versions.empty() ? "" : "+") + plan.version;
      flops += static_cast<double>(plan.flops.evaluate(plan.bind({})));
    }
    std::size_t next = 0;
    const auto once = [&] {
      for (auto& kernel : turns[next++ % turns.size()].kernels) kernel.enqueue(queue_);
    };
    once();
    queue_.finish();
    std::vector<double> times;
    const auto start = steady::now();
    // Many values are held against each other by the least of fewer times.
    const std::chrono::milliseconds window(tried.empty() ? 400 : 40);
    const double processor_begin = processor_us();
    for (int round = 0; round < 9 || (round < 400 && steady::now() - start < window); ++round) {
      const auto begin = steady::now();
      for (int i = 0; i < repeats; ++i) once();
      queue_.finish();
      times.push_back(std::chrono::duration<double, std::micro>(steady::now() - begin).count() / repeats);
    }
    const double processor =
        (processor_us() - processor_begin) / (static_cast<double>(times.size()) * static_cast<double>(repeats));
    std::sort(times.begin(), times.end());
    std::printf("%-66s %-26s min %9.1f median %9.1f processor %9.1f us %8.1f GFLOP/s (%6.1f by processor) %7.1f GB/s",
                text.c_str(), versions.c_str(), times.front(), times[times.size() / 2], processor,
                flops / times.front() * 1e-3, flops / processor * 1e-3, bytes / times.front() * 1e-3);
    if (std::getenv("DNNOPT_CHECK") != nullptr) {
      const tensor expected = reference::evaluate_operator(ops_.at("", c.op), c.attributes, c.inputs, 1)[0];
      tensor got(want[0].type(), want[0].dims());
      queue_.download(buffers.back(), got.mutable_bytes());
      queue_.finish();
      double difference = 0;
      double top = 0;
      for (std::size_t i = 0; i < static_cast<std::size_t>(got.size()); ++i) {
        const double e = element(expected, i);
        difference = std::max(difference, std::abs(element(got, i) - e));
        top = std::max(top, std::abs(e));
      }
      std::printf("  error %.1e", difference / top);
    }
    std::printf("\n");
    if (const char* const seconds = std::getenv("DNNOPT_TUNE"); seconds != nullptr) {
      tuner_options options;
      options.seconds = std::atof(seconds);
      codegen::tuning_table table;
      const tuning_result tuned =
          kernel_tuner(where_, options).tune({block}, codegen::default_lower_options(&facts), {}, table);
      std::printf("  %zu tried, %.1f us before, %.1f after\n", tuned.tried, tuned.before_us, tuned.after_us);
      for (const auto& [shape, values] : table.rows()) {
        std::printf("  %s:", shape.c_str());
        const codegen::tuning_space& space = *codegen::find_tuning_space(shape.substr(0, shape.find(' ')));
        for (std::size_t v = 0; v < values.size(); ++v)
          std::printf(" %.*s=%lld", static_cast<int>(space.parameters[v].name.size()), space.parameters[v].name.data(),
                      static_cast<long long>(values[v]));
        std::printf("\n");
      }
    }
    std::fflush(stdout);
  }

 private:
  /// The output's type and dims; computed by the shape function on constants.
  std::vector<tensor> shapes(const kernel_case& c) {
    std::vector<value_facts> facts(c.inputs.size());
    std::vector<const value_facts*> pointers;
    for (std::size_t i = 0; i < c.inputs.size(); ++i) {
      facts[i].type = c.inputs[i].type();
      facts[i].dims.emplace();
      for (const auto d : c.inputs[i].dims()) facts[i].dims->emplace_back(d);
      if (i > 0) facts[i].constant = c.inputs[i];
      pointers.push_back(&facts[i]);
    }
    expr_context expressions;
    node_facts n;
    n.attributes = &c.attributes;
    n.inputs = pointers;
    n.output_count = 1;
    n.expressions = &expressions;
    std::vector<value_facts> out(1);
    ops_.at("", c.op).infer(n, out);
    dim_list dims;
    for (const auto& d : *out.at(0).dims) dims.push_back(d.constant());
    std::vector<tensor> made;
    made.emplace_back(out.at(0).type, dims);
    return made;
  }

  opencl::context where_;
  opencl::command_queue queue_;
  opencl::program_cache cache_;
  op_set ops_;
  std::string form_;
  codegen::step_providers steps_;  ///< what multiplies on the device in matrix steps
  std::size_t binaries_ = 0;
};

}  // namespace

int main(int count, char** arguments) {
  if (count < 5) {
    std::fprintf(stderr, "time_kernels SPEC auto|vectors|groups REPEATS CASE [CASE ...]\n");
    return 2;
  }
  try {
    bench b(arguments[1], arguments[2]);
    const char* const values = std::getenv("DNNOPT_VALUES");
    const std::vector<std::string> tried = values == nullptr ? std::vector<std::string>{""} : split(values, ';');
    for (int i = 4; i < count; ++i)
      for (const std::string& row : tried) b.run(arguments[i], std::stoi(arguments[3]), row);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
  return 0;
}

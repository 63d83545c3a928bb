// Owns the genetic search over kernel parameters on a device: blocks are lowered, built and timed with memory of their
// own.
#ifndef DNNOPT_BACKEND_MEASURE_TUNER_HPP
#define DNNOPT_BACKEND_MEASURE_TUNER_HPP

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dnnopt/backend/codegen/lower.hpp>
#include <dnnopt/backend/opencl/context.hpp>
#include <dnnopt/backend/opencl/kernel_launch.hpp>
#include <dnnopt/backend/opencl/program_cache.hpp>

namespace dnnopt {

/// What a tuner reports after each shape class.
struct tuning_progress {
  std::string shape;  ///< shape class
  std::size_t done = 0;
  std::size_t all = 0;
  double before_us = 0;  ///< of the default choice
  double after_us = 0;   ///< of what the table holds now
};

struct tuner_options {
  double seconds = 60;  ///< for all blocks; a measurement under way is finished
  std::uint32_t seed = 0;
  std::size_t population = 10;
  double gain = 0.03;  ///< share of the time that a choice must save to replace the default; below 0 slower ones do too
  std::function<void(const tuning_progress&)> progress{};
};

/// What a search did.
struct tuning_result {
  std::size_t tried = 0;  ///< configurations built and timed
  double before_us = 0;   ///< sum over shape classes, each as often as it occurs, of the default choices' times
  double after_us = 0;    ///< the same with the table
};

namespace detail {

/// A block's kernels on a device with memory of their own, ready to be timed. Constants and inputs hold small numbers:
/// time does not depend on them.
class timed_block {
 public:
  timed_block(opencl::context& where, opencl::program_cache& programs, opencl::command_queue& queue,
              const codegen::block_view& block, const codegen::lowered_node& lowered, const symbol_values& symbols)
      : queue_(queue) {
    for (const auto& s : lowered.scratch) scratch_.push_back(make(where, s.bytes.evaluate(symbols)));
    for (const auto* plans : {&lowered.prepare, &lowered.kernels})
      for (const codegen::kernel_plan& plan : *plans) {
        if (plan.when.evaluate(symbols) == 0) continue;
        opencl::prepared_launch launch(programs.build({plan.version, plan.source, plan.options}), where.where(),
                                       plan.entry);
        cl_uint at = 0;
        for (const codegen::pointer_argument& p : plan.pointers)
          launch.set(at++, p.held == no_value ? scratch_.at(p.scratch) : buffer_of(where, block, p.held, symbols));
        for (std::size_t i = 0; i < plan.parameters.size(); ++i) {
          const std::int64_t value = plan.parameters[i].evaluate(symbols);
          if (plan.parameter_is_long[i])
            launch.set(at++, static_cast<cl_long>(value));
          else
            launch.set(at++, static_cast<cl_int>(value));
        }
        for (const index_expr& divisor : plan.divisors)
          launch.set(at++, static_cast<cl_long>(codegen::reciprocal_of(divisor.evaluate(symbols))));
        opencl::launch_size size;
        size.dimensions = 3;
        const symbol_values own = plan.bind(symbols);
        bool empty = false;
        for (std::size_t i = 0; i < 3; ++i) {
          size.global[i] = static_cast<std::size_t>(plan.global[i].evaluate(own));
          size.local[i] = plan.local[i];
          empty = empty || size.global[i] == 0;
        }
        if (empty) continue;
        if (size.local[0] == 0) size.local = {0, 0, 0};
        launch.set_size(size);
        if (plans == &lowered.prepare)
          launch.enqueue(queue_);
        else
          launches_.push_back(std::move(launch));
      }
    run(1);
  }

  /// Microseconds of one run of the kernels, of `count` enqueued one after the other.
  double run(std::size_t count) {
    const auto begin = std::chrono::steady_clock::now();
    for (std::size_t i = 0; i < count; ++i)
      for (opencl::prepared_launch& launch : launches_) launch.enqueue(queue_);
    queue_.finish();
    return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count() /
           static_cast<double>(count);
  }

  /// The least of some runs, each long enough for the clock: what else ran meanwhile only adds.
  double least() {
    const double first = run(1);
    const auto count = static_cast<std::size_t>(std::clamp(2000.0 / std::max(first, 1.0), 1.0, 100.0));
    double best = first;
    for (int i = 0; i < 4; ++i) best = std::min(best, run(count));
    return best;
  }

 private:
  opencl::device_buffer make(opencl::context& where, std::int64_t bytes) {
    opencl::device_buffer buffer = where.memory().allocate(std::max<std::size_t>(static_cast<std::size_t>(bytes), 16));
    const std::vector<std::byte> zeros(buffer.bytes());
    queue_.upload(buffer, zeros, 0, true);
    return buffer;
  }
  const opencl::device_buffer& buffer_of(opencl::context& where, const codegen::block_view& block, value_id id,
                                         const symbol_values& symbols) {
    for (const auto& [held, buffer] : buffers_)
      if (held == id) return buffer;
    const value_facts& facts = block.g.facts(id);
    std::int64_t count = 1;
    for (const index_expr& d : *facts.dims) count *= d.evaluate(symbols);
    buffers_.emplace_back(id, make(where, count * 8));
    return buffers_.back().second;
  }

  opencl::command_queue& queue_;
  std::vector<std::pair<value_id, opencl::device_buffer>> buffers_;
  std::vector<opencl::device_buffer> scratch_;
  std::vector<opencl::prepared_launch> launches_;
};

}  // namespace detail

/// Searches for each shape class of the blocks that it is given, and keeps what is faster in a table.
///
/// A configuration is a value for each parameter of the class's family (codegen/tuning.hpp). The population starts with
/// random ones; parents win tournaments of two, children take each value from either parent and change one now and
/// then, and replace the slowest. In the end the best is timed in turns with the default choice, and kept where its
/// median is less by `gain`.
class kernel_tuner {
 public:
  kernel_tuner(opencl::context& where, tuner_options options)
      : where_(where),
        queue_(where.make_queue()),
        programs_(where, {.on_disk = false, .folder = {}}),
        options_(std::move(options)),
        random_(options_.seed) {}

  /// Precondition: `symbols` binds every symbol of the blocks. `options.tuned` is not read.
  /// Errors: those of lowering with the default choices, kernel_build, out_of_device_memory.
  tuning_result tune(const std::vector<codegen::block_view>& blocks, const codegen::lower_options& options,
                     const symbol_values& symbols, codegen::tuning_table& table) {
    using clock = std::chrono::steady_clock;
    struct shape_block {
      std::string shape;
      const codegen::block_view* block;
      std::size_t uses;
      double us = 0;  // of all uses, with the default choice
    };
    std::vector<shape_block> shapes;
    for (const codegen::block_view& block : blocks) {
      codegen::lower_options plain = options;
      plain.tuned = nullptr;
      for (const codegen::kernel_plan& plan : codegen::lower(block, plain).kernels) {
        if (plan.tuning.empty()) continue;
        const auto known =
            std::find_if(shapes.begin(), shapes.end(), [&](const auto& s) { return s.shape == plan.tuning; });
        if (known == shapes.end())
          shapes.push_back({plan.tuning, &block, 1});
        else
          ++known->uses;
      }
    }
    tuning_result result;
    const auto end =
        clock::now() + std::chrono::duration_cast<clock::duration>(std::chrono::duration<double>(options_.seconds));
    // The time goes where it can save most: the classes that take longest come first and get a share by their time.
    double left = 0;
    for (shape_block& one : shapes) {
      one.us = prepare(*one.block, options, symbols, nullptr).least() * static_cast<double>(one.uses);
      left += one.us;
    }
    std::stable_sort(shapes.begin(), shapes.end(), [](const auto& a, const auto& b) { return a.us > b.us; });
    for (std::size_t i = 0; i < shapes.size(); ++i) {
      const double part = left > 0 ? std::min(shapes[i].us / left, 1.0) : 1.0;
      left -= shapes[i].us;
      const auto share = std::chrono::duration_cast<clock::duration>((end - clock::now()) * part);
      const tuning_progress done =
          tune_shape(*shapes[i].block, {shapes[i].shape, 0, 0, shapes[i].us / static_cast<double>(shapes[i].uses), 0},
                     options, symbols, clock::now() + share, table, result.tried);
      result.before_us += done.before_us * static_cast<double>(shapes[i].uses);
      result.after_us += done.after_us * static_cast<double>(shapes[i].uses);
      if (options_.progress) options_.progress({done.shape, i + 1, shapes.size(), done.before_us, done.after_us});
    }
    return result;
  }

 private:
  struct individual {
    std::vector<std::int64_t> values;
    double us = std::numeric_limits<double>::infinity();
  };

  [[nodiscard]] std::size_t below(std::size_t count) {
    return std::uniform_int_distribution<std::size_t>(0, count - 1)(random_);
  }

  /// A block with `table`'s choice, or with the default one in work-groups as large as its kernel objects allow, as
  /// compile makes it (refused_work_groups.hpp).
  [[nodiscard]] detail::timed_block prepare(const codegen::block_view& block, const codegen::lower_options& options,
                                            const symbol_values& symbols, const codegen::tuning_table* table) {
    codegen::lower_options chosen = options;
    chosen.tuned = table;
    device_info limited = options.device == nullptr ? where_.info() : *options.device;
    while (true) {
      try {
        return detail::timed_block(where_, programs_, queue_, block, codegen::lower(block, chosen), symbols);
      } catch (const error& e) {
        if (table != nullptr || e.code() != errc::invalid_argument || limited.max_work_group_size <= 1) throw;
        // No default has more than 256 work-items.
        limited.max_work_group_size = std::min<std::size_t>(limited.max_work_group_size / 2, 256);
        chosen.device = &limited;
      }
    }
  }

  /// A shape class, and what its block is lowered and timed with.
  struct searched_shape {
    const std::string& name;
    const codegen::tuning_space& space;
    const codegen::block_view& block;
    const codegen::lower_options& options;
    const symbol_values& symbols;
  };

  /// Whether `a` takes less time than `b`.
  [[nodiscard]] static bool is_faster(const individual& a, const individual& b) noexcept { return a.us < b.us; }

  /// Times a configuration; its time stays infinite where the driver refuses it.
  void measure(const searched_shape& searched, individual& candidate, std::size_t& tried) {
    codegen::tuning_table one;
    one.set(searched.name, candidate.values);
    ++tried;
    try {
      candidate.us = prepare(searched.block, searched.options, searched.symbols, &one).least();
    } catch (const error& e) {
      // A driver may refuse a configuration (registers, local memory, work-group size): it has no time.
      if (e.code() != errc::kernel_build && e.code() != errc::opencl_call && e.code() != errc::invalid_argument) throw;
    }
  }

  /// One of a parameter's choices, all as likely.
  [[nodiscard]] std::int64_t random_value(const codegen::tuning_space& space, std::size_t parameter) {
    const auto choices = space.parameters[parameter].choices();
    return choices[below(choices.size())];
  }

  /// A random choice for each parameter.
  [[nodiscard]] std::vector<std::int64_t> random_values(const codegen::tuning_space& space) {
    std::vector<std::int64_t> values;
    for (std::size_t p = 0; p < space.count; ++p) values.push_back(random_value(space, p));
    return values;
  }

  /// The winner of a tournament of two. Precondition: the population has individuals.
  [[nodiscard]] const individual& parent_of(const std::vector<individual>& population) {
    const individual& a = population[below(population.size())];
    const individual& b = population[below(population.size())];
    return is_faster(a, b) ? a : b;
  }

  /// A child's values: each of either parent, and now and then one changed. Precondition: the population has
  /// individuals.
  [[nodiscard]] std::vector<std::int64_t> child_values(const codegen::tuning_space& space,
                                                       const std::vector<individual>& population) {
    const individual& mother = parent_of(population);
    const individual& father = parent_of(population);
    std::vector<std::int64_t> values;
    for (std::size_t p = 0; p < space.count; ++p) values.push_back((below(2) == 0 ? mother : father).values[p]);
    if (below(3) != 0) {
      const std::size_t p = below(space.count);
      values[p] = random_value(space, p);
    }
    return values;
  }

  /// The population as it is at `end`, or when configurations repeat.
  [[nodiscard]] std::vector<individual> search(const searched_shape& searched,
                                               std::chrono::steady_clock::time_point end, std::size_t& tried) {
    std::vector<individual> population;
    std::size_t repeats = 0;
    // However short the time, something is tried.
    while ((std::chrono::steady_clock::now() < end || tried == 0) && repeats < 32) {
      individual child;
      const bool seeding = population.size() < options_.population;
      child.values = seeding ? random_values(searched.space) : child_values(searched.space, population);
      if (std::any_of(population.begin(), population.end(),
                      [&](const individual& known) { return known.values == child.values; })) {
        ++repeats;
        continue;
      }
      repeats = 0;
      measure(searched, child, tried);
      if (population.size() < 2 * options_.population) {
        population.push_back(std::move(child));
        continue;
      }
      const auto slowest = std::max_element(population.begin(), population.end(), is_faster);
      if (child.us < slowest->us) *slowest = std::move(child);
    }
    return population;
  }

  /// Microseconds of a shape class's default choice and of another.
  struct compared_times {
    double usual;
    double other;
  };

  /// Medians of times that are taken in turns, so that both meet the same state of the device.
  [[nodiscard]] compared_times compare(const searched_shape& searched, const std::vector<std::int64_t>& values) {
    codegen::tuning_table one;
    one.set(searched.name, values);
    detail::timed_block usual = prepare(searched.block, searched.options, searched.symbols, nullptr);
    detail::timed_block other = prepare(searched.block, searched.options, searched.symbols, &one);
    std::vector<double> before;
    std::vector<double> after;
    for (int i = 0; i < 7; ++i) {
      before.push_back(usual.least());
      after.push_back(other.least());
    }
    std::sort(before.begin(), before.end());
    std::sort(after.begin(), after.end());
    return {before[3], after[3]};
  }

  /// Searches one shape class until `end`. `done` comes with the shape class and the time of the default choice.
  tuning_progress tune_shape(const codegen::block_view& block, tuning_progress done,
                             const codegen::lower_options& options, const symbol_values& symbols,
                             std::chrono::steady_clock::time_point end, codegen::tuning_table& table,
                             std::size_t& tried) {
    const codegen::tuning_space& space =
        *codegen::find_tuning_space(std::string_view(done.shape).substr(0, done.shape.find(' ')));
    const searched_shape searched{done.shape, space, block, options, symbols};
    done.after_us = done.before_us;
    const std::vector<individual> population = search(searched, end, tried);
    if (population.empty()) return done;
    const auto best = std::min_element(population.begin(), population.end(), is_faster);
    if (!(best->us < done.before_us * (1 - options_.gain))) return done;
    const compared_times times = compare(searched, best->values);
    done.before_us = times.usual;
    done.after_us = times.usual;
    if (times.other < times.usual * (1 - options_.gain)) {
      table.set(searched.name, best->values);
      done.after_us = times.other;
    }
    return done;
  }

  opencl::context& where_;
  opencl::command_queue queue_;
  opencl::program_cache programs_;
  tuner_options options_;
  std::mt19937 random_;
};

}  // namespace dnnopt

#endif  // DNNOPT_BACKEND_MEASURE_TUNER_HPP

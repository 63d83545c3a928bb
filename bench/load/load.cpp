// A model under load: load MODEL.onnx [--sessions N] [--threads N] [--seconds S] [--remake N] [--device SPEC] [--cache
// FOLDER] [--clones 1] [--contexts shared|own|both]
//
// First N sessions of the model at once on one device, each run and compared; with --clones clones of the first. Then
// for S seconds as many threads, each with a session that it runs, compares and makes anew after some inferences.
// Sessions share one context of the device, or each has its own, whose programs the driver builds anew; "both" takes
// turns. With PoCL 3.1 memory grows there by what its compiler notes of programs (docs/measurements/opencl_runtime.md).
// Prints a curve of resident, allocated and device memory, and every result that is not that of the reference backend.
// Exit status 1 where one was wrong, an error came up, or memory still grew by more than 1% between the second and the
// last third of the time. load.py adds processes that share a cache and are killed while they write it.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <malloc.h>
#include <unistd.h>

#include <dnnopt/backend/measure/opened_device.hpp>
#include <dnnopt/dnnopt.hpp>
#include <dnnopt/zoo/generate_inputs.hpp>

namespace {

using clock_type = std::chrono::steady_clock;

struct arguments {
  std::string model;
  std::size_t sessions = 200;
  std::size_t threads = 8;
  double seconds = 600;
  std::size_t remake = 20;
  std::string device = "opencl";
  std::string cache;
  bool clones = false;
  std::string contexts = "both";
  [[nodiscard]] bool shares_context(std::size_t turn) const {
    return contexts == "shared" || (contexts == "both" && turn % 2 == 0);
  }
};

arguments parsed(int count, char** texts) {
  if (count < 2) throw std::runtime_error("usage: load MODEL.onnx [--sessions N] [--threads N] [--seconds S] ...");
  arguments a;
  a.model = texts[1];
  for (int i = 2; i < count; ++i) {
    const std::string flag = texts[i];
    if (++i == count) throw std::runtime_error(flag + " wants a value");
    const std::string value = texts[i];
    if (flag == "--sessions")
      a.sessions = std::stoul(value);
    else if (flag == "--threads")
      a.threads = std::stoul(value);
    else if (flag == "--seconds")
      a.seconds = std::stod(value);
    else if (flag == "--remake")
      a.remake = std::max<std::size_t>(1, std::stoul(value));
    else if (flag == "--device")
      a.device = value;
    else if (flag == "--cache")
      a.cache = value;
    else if (flag == "--clones")
      a.clones = value != "0";
    else if (flag == "--contexts" && (value == "shared" || value == "own" || value == "both"))
      a.contexts = value;
    else
      throw std::runtime_error("unknown flag " + flag);
  }
  return a;
}

double resident_mib() {
  std::ifstream file("/proc/self/statm");
  double whole = 0;
  double resident = 0;
  file >> whole >> resident;
  return resident * static_cast<double>(::sysconf(_SC_PAGESIZE)) / (1 << 20);
}

/// What the allocator has handed out and not got back; the rest of what is resident are its gaps, libraries and caches.
double allocated_mib() {
  const struct mallinfo2 held = ::mallinfo2();
  return static_cast<double>(held.uordblks + held.hblkhd) / (1 << 20);
}

/// A model, its inputs and what the reference backend makes of them.
class judged_model {
 public:
  explicit judged_model(const std::string& path) : model_(dnnopt::load(path)) {
    const dnnopt::symbol_values twos = model_.main.expressions().all_bound_to(2);
    const std::vector<dnnopt::tensor> generated = dnnopt::generate_inputs(model_.main, 0, twos);
    for (std::size_t i = 0; i < generated.size(); ++i)
      inputs_.add(model_.main.value_at(model_.main.inputs()[i]).name, generated[i]);
    dnnopt::compile_options reference;
    reference.device = "reference";
    want_ = dnnopt::compile(model_, reference).run(inputs_);
  }
  [[nodiscard]] const dnnopt::model& get() const { return model_; }
  [[nodiscard]] bool runs_right(dnnopt::session& session) const {
    const dnnopt::named_tensors got = session.run(inputs_);
    for (std::size_t i = 0; i < want_.size(); ++i) {
      if (got[i].dims() != want_[i].dims() || got[i].type() != want_[i].type()) return false;
      if (want_[i].type() != dnnopt::dtype::float32) continue;
      float largest = 0;
      for (const float v : want_[i].data<float>()) largest = std::max(largest, std::fabs(v));
      for (std::size_t k = 0; k < want_[i].data<float>().size(); ++k)
        if (!(std::fabs(got[i].data<float>()[k] - want_[i].data<float>()[k]) <= 1e-3F * largest + 1e-6F)) return false;
    }
    return true;
  }

 private:
  dnnopt::model model_;
  dnnopt::named_tensors inputs_;
  dnnopt::named_tensors want_;
};

std::atomic<std::size_t> inferences{0};
std::atomic<std::size_t> made{0};
std::atomic<std::size_t> faults{0};

void fault(const std::string& text) {
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  ++faults;
  std::printf("FAULT %s\n", text.c_str());
  std::fflush(stdout);
}

void many_sessions(const judged_model& m, dnnopt::compile_options options, const arguments& a) {
  options.opened = std::make_shared<dnnopt::opened_device>(a.device, options.programs);
  std::vector<dnnopt::session> sessions;
  std::printf("%8s %12s %12s\n", "sessions", "resident MiB", "device MiB");
  for (std::size_t i = 0; i < a.sessions; ++i) {
    sessions.push_back(a.clones && i > 0 ? sessions.front().clone() : dnnopt::compile(m.get(), options));
    if (!m.runs_right(sessions.back())) fault("session " + std::to_string(i) + " is wrong");
    if ((i + 1) % std::max<std::size_t>(1, a.sessions / 8) == 0)
      std::printf("%8zu %12.1f %12.1f\n", i + 1, resident_mib(),
                  static_cast<double>(options.opened->context.memory().figures().live_bytes) / (1 << 20));
    std::fflush(stdout);
  }
  for (std::size_t i = 0; i < sessions.size(); ++i)
    if (!m.runs_right(sessions[i])) fault("session " + std::to_string(i) + " of many is wrong");
  sessions.clear();
  std::printf("%8d %12.1f %12.1f\n", 0, resident_mib(),
              static_cast<double>(options.opened->context.memory().figures().live_bytes) / (1 << 20));
}

/// A session that never runs, of which any thread makes clones; none unless clones are asked for.
class cloned_session {
 public:
  cloned_session(const judged_model& m, dnnopt::compile_options options, std::shared_ptr<dnnopt::opened_device> device,
                 bool wanted) {
    options.opened = std::move(device);
    if (wanted) held_.emplace(dnnopt::compile(m.get(), options));
  }
  [[nodiscard]] bool any() const { return held_.has_value(); }
  [[nodiscard]] dnnopt::session clone() {
    const std::lock_guard lock(mutex_);
    return held_->clone();
  }

 private:
  std::mutex mutex_;
  std::optional<dnnopt::session> held_;
};

/// Sessions of one thread, one after the other, each in the shared context or in its own; those of the shared one are
/// clones where these are asked for.
void one_thread(const judged_model& m, dnnopt::compile_options options, const arguments& a, clock_type::time_point end,
                std::shared_ptr<dnnopt::opened_device> shared, cloned_session& origin) {
  try {
    for (std::size_t turn = 0; clock_type::now() < end; ++turn) {
      options.opened = a.shares_context(turn) ? shared : nullptr;
      dnnopt::session session =
          options.opened != nullptr && origin.any() ? origin.clone() : dnnopt::compile(m.get(), options);
      ++made;
      for (std::size_t i = 0; i < a.remake && clock_type::now() < end; ++i) {
        if (!m.runs_right(session)) fault("a result under load is wrong");
        ++inferences;
      }
    }
  } catch (const std::exception& e) {
    fault(e.what());
  }
}

bool under_load(const judged_model& m, const dnnopt::compile_options& options, const arguments& a) {
  const auto shared =
      a.contexts == "own" ? nullptr : std::make_shared<dnnopt::opened_device>(a.device, options.programs);
  cloned_session origin(m, options, shared, a.clones && shared != nullptr);
  const auto begin = clock_type::now();
  const auto end = begin + std::chrono::duration_cast<clock_type::duration>(std::chrono::duration<double>(a.seconds));
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < a.threads; ++t)
    threads.emplace_back([&] { one_thread(m, options, a, end, shared, origin); });
  std::vector<double> curve;
  std::printf("%8s %12s %13s %10s %10s\n", "s", "resident MiB", "allocated MiB", "inferences", "sessions");
  constexpr int points = 60;
  for (int i = 0; i < points; ++i) {
    std::this_thread::sleep_until(begin + (end - begin) * (i + 1) / points);
    curve.push_back(resident_mib());
    std::printf("%8.0f %12.1f %13.1f %10zu %10zu\n", a.seconds * (i + 1) / points, curve.back(), allocated_mib(),
                inferences.load(), made.load());
    std::fflush(stdout);
  }
  for (std::thread& t : threads) t.join();
  const auto third = curve.begin() + points / 3;
  const double before = *std::max_element(third, third + points / 3);
  const double after = *std::max_element(third + points / 3, curve.end());
  std::printf("most resident: second third %.1f MiB, last third %.1f MiB (%+.2f%%)\n", before, after,
              100 * (after / before - 1));
  return after <= 1.01 * before;
}

}  // namespace

int main(int count, char** texts) {
  try {
    const arguments a = parsed(count, texts);
    const judged_model m(a.model);
    dnnopt::compile_options options;
    options.device = a.device;
    options.programs.on_disk = !a.cache.empty();
    options.programs.folder = a.cache;
    if (a.sessions > 0) many_sessions(m, options, a);
    const bool flat = a.seconds <= 0 || under_load(m, options, a);
    std::printf("%zu inferences, %zu sessions made under load, %zu faults%s\n", inferences.load(), made.load(),
                faults.load(), flat ? "" : ", memory grows");
    return faults == 0 && flat ? 0 : 1;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "load: %s\n", e.what());
    return 2;
  }
}

// Owns the trial of a model on an OpenCL library in which one call fails (failing_opencl.cpp): for every call of
// opening, compiling and running once, what became of it.
#ifndef DNNOPT_TESTS_SUPPORT_FAILING_CALLS_HPP
#define DNNOPT_TESTS_SUPPORT_FAILING_CALLS_HPP

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <exception>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dlfcn.h>

#include <dnnopt/backend/measure/opened_device.hpp>
#include <dnnopt/dnnopt.hpp>

namespace testing {

/// The failing library's functions. To be made before anything loads OpenCL, with the path that
/// DNNOPT_OPENCL_LIBRARY names.
class failing_library {
 public:
  explicit failing_library(const char* path) {
    void* const opened = ::dlopen(path, RTLD_NOW | RTLD_LOCAL);
    const auto find = [&](auto*& function, const char* name) {
      function = opened == nullptr
                     ? nullptr
                     : reinterpret_cast<std::remove_reference_t<decltype(function)>>(::dlsym(opened, name));
      if (function == nullptr) throw dnnopt::error(dnnopt::errc::file_not_found, std::string(path) + " has no " + name);
    };
    find(fail, "failing_opencl_fail");
    find(calls, "failing_opencl_calls");
    find(failed, "failing_opencl_failed");
    find(references, "failing_opencl_references");
  }
  void (*fail)(long) = nullptr;
  long (*calls)() = nullptr;
  const char* (*failed)() = nullptr;
  long (*references)(int) = nullptr;

  /// Kinds of objects with references to them, as "memory 2 events 1"; empty where there is none.
  [[nodiscard]] std::string held() const {
    static constexpr std::array<std::string_view, 8> kinds{"contexts", "queues", "memory", "programs",
                                                           "kernels",  "events", "maps",   "addresses"};
    std::string text;
    for (std::size_t k = 0; k < kinds.size(); ++k)
      if (const long n = references(static_cast<int>(k)); n != 0)
        text += (text.empty() ? "" : " ") + std::string(kinds[k]) + " " + std::to_string(n);
    return text;
  }
};

/// What became of a failed call.
enum class call_outcome {
  unnoticed,        ///< everything was right all the same: what failed is not needed
  refused_compile,  ///< an error before the first run
  refused_run,      ///< an error of the run; the same session was right afterwards
  dead_session,     ///< an error of the run, and one again of each further run of that session
  wrong,            ///< a result that is not right, an error of another kind, or a next session that fails
  unclear,          ///< an error that does not name the call
  leaked,           ///< references to objects are left
};
inline constexpr std::array<std::string_view, 7> call_outcome_names{
    "unnoticed", "refused compile", "refused run", "dead session", "wrong", "unclear", "leaked"};

/// Counts of outcomes by function, and a line for each fault.
struct call_table {
  std::map<std::string, std::array<std::size_t, 7>> rows;
  std::vector<std::string> faults;
  std::size_t calls = 0;

  [[nodiscard]] std::string str() const {
    std::string text = "| call |";
    for (const std::string_view name : call_outcome_names) text += " " + std::string(name) + " |";
    text += "\n|---|---|---|---|---|---|---|---|\n";
    for (const auto& [name, counts] : rows) {
      text += "| `" + name + "` |";
      for (const std::size_t n : counts) text += " " + std::to_string(n) + " |";
      text += "\n";
    }
    return text;
  }
};

/// A model with inputs and what it gives for them, tried call by call.
class failing_calls {
 public:
  /// Precondition: `library` is the one that OpenCL is loaded from. Two outputs are equal within 1e-4 of the largest
  /// element.
  failing_calls(const failing_library& library, const dnnopt::model& m, dnnopt::named_tensors inputs,
                dnnopt::compile_options options)
      : library_(library), model_(m), inputs_(std::move(inputs)), options_(std::move(options)) {
    dnnopt::compile_options reference;
    reference.device = "reference";
    want_ = dnnopt::compile(model_, reference).run(inputs_);
  }

  /// Calls that can fail from opening the device to the end of a second run.
  [[nodiscard]] long count() const {
    library_.fail(0);
    {
      dnnopt::session s = opened();
      (void)s.run(inputs_);
      (void)s.run(inputs_);
    }
    return library_.calls();
  }

  /// Fails call `n` of 1 ... count() and adds what became of it.
  void fail(long n, call_table& table) const {
    library_.fail(n);
    call_outcome outcome = call_outcome::unnoticed;
    std::string why;
    std::string told;
    {
      std::optional<dnnopt::session> s;
      bool running = false;
      try {
        s.emplace(opened());
        running = true;
        for (int run = 0; run < 2; ++run)
          if (!right(s->run(inputs_))) outcome = call_outcome::wrong, why = "a result is wrong";
      } catch (const dnnopt::error& e) {
        told = e.what();
        outcome = running ? call_outcome::refused_run : call_outcome::refused_compile;
      } catch (const std::exception& e) {
        outcome = call_outcome::wrong;
        why = std::string("another kind of error: ") + e.what();
      }
      const char* const name = library_.failed();
      failed_ = name == nullptr ? "nothing" : name;
      library_.fail(0);
      if (outcome == call_outcome::refused_run) {
        try {
          if (!right(s->run(inputs_))) outcome = call_outcome::wrong, why = "after '" + told + "' the session is wrong";
        } catch (const dnnopt::error&) {
          outcome = call_outcome::dead_session;
        }
      }
    }
    if (outcome != call_outcome::wrong && !told.empty() && told.find("cl") == std::string::npos)
      outcome = call_outcome::unclear, why = told;
    if (const std::string held = library_.held(); outcome != call_outcome::wrong && !held.empty())
      outcome = call_outcome::leaked, why = held;
    try {
      if (!right(opened().run(inputs_))) outcome = call_outcome::wrong, why = "the next session is wrong";
    } catch (const std::exception& e) {
      outcome = call_outcome::wrong;
      why = std::string("the next session: ") + e.what();
    }
    ++table.calls;
    ++table.rows[failed_][static_cast<std::size_t>(outcome)];
    if (!why.empty()) table.faults.push_back("call " + std::to_string(n) + ", " + failed_ + ": " + why);
  }

 private:
  [[nodiscard]] dnnopt::session opened() const { return dnnopt::compile(model_, options_); }
  [[nodiscard]] bool right(const dnnopt::named_tensors& got) const {
    if (got.size() != want_.size()) return false;
    for (std::size_t i = 0; i < want_.size(); ++i) {
      if (got[i].type() != want_[i].type() || got[i].dims() != want_[i].dims()) return false;
      if (want_[i].type() != dnnopt::dtype::float32) {
        const auto a = got[i].bytes();
        const auto b = want_[i].bytes();
        if (!std::equal(a.begin(), a.end(), b.begin())) return false;
        continue;
      }
      const auto a = got[i].data<float>();
      const auto b = want_[i].data<float>();
      float largest = 0;
      for (const float v : b) largest = std::max(largest, std::fabs(v));
      for (std::size_t k = 0; k < b.size(); ++k)
        if (!(std::fabs(a[k] - b[k]) <= 1e-4F * largest + 1e-6F)) return false;
    }
    return true;
  }

  const failing_library& library_;
  const dnnopt::model& model_;
  dnnopt::named_tensors inputs_;
  dnnopt::compile_options options_;
  dnnopt::named_tensors want_;
  mutable std::string failed_;
};

}  // namespace testing

#endif  // DNNOPT_TESTS_SUPPORT_FAILING_CALLS_HPP

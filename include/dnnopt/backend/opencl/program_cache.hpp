// Owns compiled programs: builds each source once, keeps it in memory and on disk, compiles many in parallel.
//
// Use: build() or build_all() at start-up; save() once the first inference is done. Not earlier: several drivers
// compile when a kernel is created or first launched, and only then does the program's binary hold the result (PoCL
// compiles per work-group size at the launch, Mali at clCreateKernel). Where a driver keeps what it compiled and would
// compile anew to give a binary (program_cache_options::driver_keeps; PoCL), the file has a note instead: that an
// inference ran on the program's kernels, so that the driver has them. save() may take as long as the build where
// neither holds, so it belongs behind the first output; it may run in a thread of its own.
#ifndef DNNOPT_BACKEND_OPENCL_PROGRAM_CACHE_HPP
#define DNNOPT_BACKEND_OPENCL_PROGRAM_CACHE_HPP

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <dnnopt/backend/opencl/context.hpp>
#include <dnnopt/backend/opencl/loader.hpp>
#include <dnnopt/backend/opencl/program_cache_options.hpp>
#include <dnnopt/backend/opencl/program_file.hpp>
#include <dnnopt/backend/opencl/revealed_text.hpp>
#include <dnnopt/backend/opencl/status.hpp>
#include <dnnopt/error.hpp>
#include <dnnopt/version.hpp>

namespace dnnopt::opencl {

/// A program to build. `name` appears in errors and stands for the kernels inside; it is no part of the key. Options
/// with a revealed_target() have its text revealed for it (revealed_text.hpp).
struct program_request {
  std::string name;
  std::string source;
  std::string options;
  bool passing = false;  ///< soon replaced by another one: never written to disk
};

/// What a cache has done since it was made.
struct program_cache_figures {
  std::uint64_t builds = 0;  ///< compiled from source
  std::uint64_t memory_hits = 0;
  std::uint64_t disk_hits = 0;
  std::uint64_t driver_hits = 0;  ///< given to the driver as text, which it had compiled, as the file notes
  std::uint64_t lost = 0;         ///< the same, but it compiled anew: it lost what it had
  std::uint64_t refused = 0;      ///< stored, but the driver did not take the binary: rebuilt
  std::uint64_t damaged = 0;      ///< parts of the file that failed their checks: rebuilt
  double build_seconds = 0;       ///< sum over the threads
  double load_seconds = 0;
};

/// The programs of one context. All functions may be called from several threads; `where` must outlive the cache.
class program_cache {
 public:
  explicit program_cache(const context& where, program_cache_options options = {})
      : where_(&where), options_(std::move(options)) {
    if (options_.on_disk && !options_.folder.empty()) {
      const std::string identity = identity_of(where.info());
      char name[64];
      std::snprintf(name, sizeof(name), "programs-%016llx.bin", static_cast<unsigned long long>(hash_bytes(identity)));
      file_.emplace(options_.folder / name, identity);
    }
  }

  /// The text that a stored program is bound to: a change of any part makes all programs of the file unusable.
  [[nodiscard]] static std::string identity_of(const device_info& info) {
    return "dnnopt " + std::to_string(DNNOPT_VERSION_MAJOR) + "." + std::to_string(DNNOPT_VERSION_MINOR) + "." +
           std::to_string(DNNOPT_VERSION_PATCH) + "\n" + info.platform + "\n" + info.platform_version + "\n" +
           info.vendor + "\n" + info.name + "\n" + info.version + "\n" + info.driver_version + "\n" +
           std::to_string(info.address_bits) + "\n";
  }

  /// The built program: from memory, else from disk, else compiled. A program that another thread is building is waited
  /// for. Errors: kernel_build with name, options and the compiler's log.
  [[nodiscard]] cl::Program build(const program_request& request) {
    const program_key key = key_of(request.source, request.options);
    {
      std::unique_lock lock(mutex_);
      for (;;) {
        const auto [place, fresh] = programs_.try_emplace(key);
        if (fresh) break;
        if (place->second.ready) {
          ++figures_.memory_hits;
          return place->second.program;
        }
        changed_.wait(lock);
      }
    }
    // This thread owns the slot of `key` until it is ready or gone.
    try {
      slot made = load(key);
      if (made.program() == nullptr) compile(request, made);
      made.ready = true;
      made.passing = request.passing;
      const std::lock_guard lock(mutex_);
      programs_[key] = made;
      changed_.notify_all();
      return made.program;
    } catch (...) {
      const std::lock_guard lock(mutex_);
      programs_.erase(key);
      changed_.notify_all();
      throw;
    }
  }

  /// build() of every request, in as many threads as the options say; results in the order of the requests. Errors: the
  /// first failure by that order, after all are done, or what the options' progress threw.
  [[nodiscard]] std::vector<cl::Program> build_all(std::span<const program_request> requests) {
    std::vector<cl::Program> programs(requests.size());
    std::vector<std::exception_ptr> failures(requests.size());
    std::atomic<std::size_t> next{0};
    std::mutex telling;
    std::size_t ready = 0;
    std::exception_ptr ended;
    const auto tell = [&] {
      if (!options_.progress) return true;
      const std::lock_guard lock(telling);
      if (ended != nullptr) return false;
      try {
        options_.progress(ready, requests.size());
        return true;
      } catch (...) {
        ended = std::current_exception();
        return false;
      }
    };
    const auto work = [&] {
      for (std::size_t i = next.fetch_add(1); i < requests.size() && tell(); i = next.fetch_add(1)) {
        try {
          programs[i] = build(requests[i]);
        } catch (...) {
          failures[i] = std::current_exception();
        }
        const std::lock_guard lock(telling);
        ++ready;
      }
    };
    const std::size_t wanted =
        options_.threads != 0 ? options_.threads : std::max(1u, std::thread::hardware_concurrency());
    {
      std::vector<std::jthread> pool;
      for (std::size_t i = 1; i < std::min(wanted, requests.size()); ++i) pool.emplace_back(work);
      work();
    }
    if (ended != nullptr) std::rethrow_exception(ended);
    for (const std::exception_ptr& failure : failures) {
      if (failure != nullptr) std::rethrow_exception(failure);
    }
    return programs;
  }

  /// Whether build() of the request makes nobody wait: an inference ran on its program in this process, its binary is
  /// in the file, or the file notes that the driver keeps it, and it kept what it was asked for so far.
  [[nodiscard]] bool has(const program_request& request) {
    const program_key key = key_of(request.source, request.options);
    const std::lock_guard lock(mutex_);
    const auto place = programs_.find(key);
    if (place != programs_.end() && place->second.ready) return place->second.stored || place->second.served;
    return figures_.lost == 0 && file_ && file_->contains(key);
  }

  /// Tells that an inference ran on all kernels of these programs, so that the driver has compiled all of them.
  void served(std::span<const program_request> requests) {
    const std::lock_guard lock(mutex_);
    for (const program_request& request : requests) {
      const auto place = programs_.find(key_of(request.source, request.options));
      if (place != programs_.end()) place->second.served = true;
    }
  }

  /// Writes the binaries of the programs compiled since the last save() to disk, in one replacement of the file. With
  /// `all`, also those that came from disk, whose binaries may have grown by work-group sizes that are new. Where the
  /// driver keeps programs itself, writes a note on each that served(). Does nothing without a disk cache or without
  /// news. Problems of the file system are told in the result, never thrown.
  program_file_result save(bool all = false) {
    std::vector<std::pair<program_key, slot>> news;
    std::vector<program_key> used;
    {
      const std::lock_guard lock(mutex_);
      if (!file_) return {false, 0, 0, "the program cache is not kept on disk"};
      for (const auto& [key, one] : programs_) {
        if (!one.ready || one.passing) continue;
        used.push_back(key);
        if (all || !one.stored) news.emplace_back(key, one);
      }
    }
    if (news.empty()) return {};
    const bool notes = options_.driver_keeps && options_.driver_keeps();
    if (notes) std::erase_if(news, [](const auto& one) { return !one.second.served; });
    if (news.empty()) return {};
    std::vector<program_file::entry> entries;
    for (const auto& [key, one] : news) {
      std::string payload = notes ? note_of(one.seconds) : binary_of(one.program);
      if (!payload.empty()) entries.push_back({key, std::move(payload)});
    }
    const std::lock_guard lock(mutex_);
    program_file_result result = file_->write(entries, used, options_.max_bytes);
    if (result.written) {
      for (const auto& [key, one] : news) programs_[key].stored = true;
    }
    return result;
  }

  /// Forgets the programs in memory; those in use live on by their handles. The file stays.
  void clear_memory() {
    const std::lock_guard lock(mutex_);
    std::erase_if(programs_, [](const auto& one) { return one.second.ready; });
  }

  [[nodiscard]] program_cache_figures figures() const {
    const std::lock_guard lock(mutex_);
    program_cache_figures figures = figures_;
    if (file_) figures.damaged = file_->damaged();
    return figures;
  }

  /// The file of this device; empty without a disk cache.
  [[nodiscard]] std::filesystem::path file() const { return file_ ? file_->path() : std::filesystem::path(); }

 private:
  struct slot {
    cl::Program program{};
    bool ready = false;
    bool stored = false;   ///< the file has it, or a note on it
    bool served = false;   ///< an inference ran on its kernels
    bool passing = false;  ///< program_request::passing
    double seconds = 0;    ///< that building it took, now or when the note on it was written
  };
  using clock = std::chrono::steady_clock;

  static double seconds_since(clock::time_point start) {
    return std::chrono::duration<double>(clock::now() - start).count();
  }

  static constexpr std::string_view note_start = "dnnopt: the driver keeps this program, which it built in seconds: ";

  static std::string note_of(double seconds) { return std::string(note_start) + std::to_string(seconds); }

  /// What the file has for a key: a program, or a note on one; neither when there is nothing or the driver refuses it.
  slot load(const program_key& key) {
    const clock::time_point start = clock::now();
    slot found;
    std::string binary;
    {
      const std::lock_guard lock(mutex_);
      if (!file_ || !file_->find(key, binary)) return found;
    }
    if (binary.starts_with(note_start)) {
      found.stored = true;
      found.seconds = std::strtod(binary.c_str() + note_start.size(), nullptr);
      return found;
    }
    const auto [program, status] = from_binary(binary.data(), binary.size());
    const std::lock_guard lock(mutex_);
    if (status != CL_SUCCESS) {
      ++figures_.refused;
      return found;
    }
    ++figures_.disk_hits;
    figures_.load_seconds += seconds_since(start);
    found.program = program;
    found.stored = true;
    return found;
  }

  /// The program of a binary, and what creating and building it gave.
  [[nodiscard]] std::pair<cl::Program, cl_int> from_binary(const char* binary, std::size_t size) const {
    const cl_device_id id = where_->where().handle();
    const auto* bytes = reinterpret_cast<const unsigned char*>(binary);
    cl_int loaded = CL_SUCCESS;
    cl_int status = CL_SUCCESS;
    cl::Program program(::clCreateProgramWithBinary(where_->handle(), 1, &id, &size, &bytes, &loaded, &status), false);
    if (status == CL_SUCCESS) status = loaded;
    if (status == CL_SUCCESS) status = ::clBuildProgram(program(), 1, &id, nullptr, nullptr, nullptr);
    return {std::move(program), status};
  }

  /// Makes the program of `into` from its text. What a note says the driver has is there in a part of the time.
  void compile(const program_request& request, slot& into) {
    const clock::time_point start = clock::now();
    const cl_device_id id = where_->where().handle();
    const char* text = request.source.data();
    const std::size_t size = request.source.size();
    cl_int status = CL_SUCCESS;
    cl::Program program(::clCreateProgramWithSource(where_->handle(), 1, &text, &size, &status), false);
    check(status, "clCreateProgramWithSource", [&] { return "program '" + request.name + "'"; });
    // OpenCL's option against warnings is no part of what a program is known by.
    const std::string options = request.options + (options_.driver_warnings ? "" : " -w");
    status = ::clBuildProgram(program(), 1, &id, options.c_str(), nullptr, nullptr);
    if (status != CL_SUCCESS) refuse(request, std::string(status_name(status)), status, log_of(program));
    if (const std::string_view target = revealed_target(request.options); !target.empty())
      program = reveal(request, program, target);
    into.program = program;
    const double seconds = seconds_since(start);
    const std::lock_guard lock(mutex_);
    figures_.build_seconds += seconds;
    if (into.stored && (seconds < options_.least_loss || seconds < into.seconds / 2)) {
      into.served = true;
      ++figures_.driver_hits;
      return;
    }
    figures_.lost += into.stored ? 1 : 0;
    into.stored = false;
    into.seconds = seconds;
    ++figures_.builds;
  }

  [[noreturn]] void refuse(const program_request& request, const std::string& why, cl_int status,
                           const std::string& log) const {
    throw error(errc::kernel_build, "program '" + request.name + "' with options '" + request.options +
                                        "' does not build (clBuildProgram) on '" + where_->info().name + "': " + why +
                                        " (" + std::to_string(status) + ")\n" + log);
  }

  /// The program of the revealed text of one that is built.
  cl::Program reveal(const program_request& request, const cl::Program& hidden, std::string_view target) const {
    const std::optional<std::string> text = revealed_text(binary_of(hidden), target);
    if (!text) refuse(request, "its text is not one for " + std::string(target), CL_INVALID_BINARY, {});
    auto [program, status] = from_binary(text->c_str(), text->size() + 1);
    if (status != CL_SUCCESS)
      refuse(request, std::string(status_name(status)), status, program() == nullptr ? std::string() : log_of(program));
    return std::move(program);
  }

  std::string log_of(const cl::Program& program) const {
    return detail::query_text(
        [&](cl_uint which, std::size_t size, void* value, std::size_t* returned) {
          return ::clGetProgramBuildInfo(program(), where_->where().handle(), which, size, value, returned);
        },
        CL_PROGRAM_BUILD_LOG);
  }

  /// The binary of a program; empty when the driver gives none.
  static std::string binary_of(const cl::Program& program) {
    std::size_t size = 0;
    if (::clGetProgramInfo(program(), CL_PROGRAM_BINARY_SIZES, sizeof(size), &size, nullptr) != CL_SUCCESS) return {};
    std::string binary(size, '\0');
    auto* bytes = reinterpret_cast<unsigned char*>(binary.data());
    if (size == 0 || ::clGetProgramInfo(program(), CL_PROGRAM_BINARIES, sizeof(bytes), &bytes, nullptr) != CL_SUCCESS) {
      return {};
    }
    return binary;
  }

  const context* where_;
  program_cache_options options_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<program_file> file_;
  std::map<program_key, slot> programs_;
  program_cache_figures figures_;
};

}  // namespace dnnopt::opencl

#endif  // DNNOPT_BACKEND_OPENCL_PROGRAM_CACHE_HPP

// Program cache: memory, disk, damage, concurrency, errors.
#include <dnnopt/backend/opencl/program_cache.hpp>

#include <catch2/catch.hpp>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <iterator>
#include <stdexcept>

#include "runtime_fixture.hpp"

#if !defined(_WIN32)
#include <sys/wait.h>
#endif

using namespace dnnopt;
using namespace dnnopt::opencl;
using testing::code;
using testing::code_of;
using testing::writable_bytes_of;

namespace {

program_request scale_by(int factor) {
  return {"scale",
          "kernel void scale(global float* x) { x[get_global_id(0)] *= " + std::to_string(factor) + ".0f + BIAS; }",
          "-DBIAS=0.5f"};
}

/// Runs the kernel of `program` on 1.0 and gives what came out.
float run(context& where, const cl::Program& program) {
  command_queue queue = where.make_queue();
  const device_buffer buffer = where.memory().allocate(4);
  const std::vector<float> one{1.0f};
  queue.upload(buffer, testing::bytes_of(one));
  cl_int status = CL_SUCCESS;
  const cl::Kernel kernel(clCreateKernel(program(), "scale", &status), false);
  REQUIRE(status == CL_SUCCESS);
  cl_mem argument = buffer.handle();
  REQUIRE(clSetKernelArg(kernel(), 0, sizeof(argument), &argument) == CL_SUCCESS);
  queue.launch(kernel(), {}, "scale");
  std::vector<float> out(1);
  queue.download(buffer, writable_bytes_of(out));
  return out[0];
}

std::string contents(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(in), {});
}

void overwrite(const std::filesystem::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

}  // namespace

TEST_CASE("the key depends on source and options") {
  const program_key key = key_of("abc", "-x");
  CHECK(key == key_of("abc", "-x"));
  CHECK(key != key_of("abd", "-x"));
  CHECK(key != key_of("abc", "-y"));
  CHECK(key != key_of("abc-x", ""));
  CHECK(key != key_of("", "abc-x"));
  // No prefix, extension by zeros or single changed byte goes unnoticed.
  const std::string text(100, '\0');
  std::vector<std::uint64_t> hashes;
  for (std::size_t n = 0; n <= text.size(); ++n) hashes.push_back(hash_bytes(std::string_view(text).substr(0, n)));
  for (std::size_t i = 0; i < text.size(); ++i) {
    std::string changed = text;
    changed[i] = '\1';
    hashes.push_back(hash_bytes(changed));
  }
  std::sort(hashes.begin(), hashes.end());
  CHECK(std::adjacent_find(hashes.begin(), hashes.end()) == hashes.end());
}

TEST_CASE("the default folder follows the environment") {
  const char* cache = std::getenv("XDG_CACHE_HOME");
  const std::string before = cache == nullptr ? "" : cache;
  ::setenv("XDG_CACHE_HOME", "/some/cache", 1);
  CHECK(default_cache_folder() == std::filesystem::path("/some/cache/dnnopt"));
  ::setenv("XDG_CACHE_HOME", "relative", 1);
  if (const char* home = std::getenv("HOME"); home != nullptr) {
    CHECK(default_cache_folder() == std::filesystem::path(home) / ".cache" / "dnnopt");
  }
  cache == nullptr ? ::unsetenv("XDG_CACHE_HOME") : ::setenv("XDG_CACHE_HOME", before.c_str(), 1);
}

TEST_CASE("a program is built once, then comes from memory, then from disk") {
  const testing::temporary_folder folder;
  context where = testing::first_context();
  {
    program_cache cache(where, {.folder = folder.path()});
    const cl::Program first = cache.build(scale_by(2));
    const cl::Program again = cache.build(scale_by(2));
    CHECK(first() == again());
    CHECK(run(where, first) == 2.5f);
    CHECK(run(where, cache.build(scale_by(3))) == 3.5f);
    const program_cache_figures figures = cache.figures();
    CHECK(figures.builds == 2);
    CHECK(figures.memory_hits == 1);
    CHECK(figures.disk_hits == 0);
    const program_file_result result = cache.save();
    CHECK(result.failure == "");
    CHECK(result.written);
    CHECK(result.entries == 2);
    CHECK(std::filesystem::file_size(cache.file()) == result.bytes);
    CHECK(!cache.save().written);
  }
  context second = testing::first_context();
  program_cache cache(second, {.folder = folder.path()});
  CHECK(run(second, cache.build(scale_by(2))) == 2.5f);
  CHECK(run(second, cache.build(scale_by(3))) == 3.5f);
  // An edited source and other options are other programs.
  program_request edited = scale_by(2);
  edited.options = "-DBIAS=0.25f";
  CHECK(run(second, cache.build(edited)) == 2.25f);
  const program_cache_figures figures = cache.figures();
  CHECK(figures.disk_hits == 2);
  CHECK(figures.builds == 1);
  CHECK(figures.damaged == 0);
  CHECK(cache.save().entries == 3);
}

TEST_CASE("without a disk cache nothing is written") {
  const testing::temporary_folder folder;
  context where = testing::first_context();
  program_cache cache(where, {.on_disk = false, .folder = folder.path()});
  CHECK(run(where, cache.build(scale_by(2))) == 2.5f);
  CHECK(!cache.save().written);
  CHECK(cache.file().empty());
  CHECK(std::filesystem::is_empty(folder.path()));
}

TEST_CASE("a damaged file is rebuilt, whatever the damage") {
  const testing::temporary_folder folder;
  std::filesystem::path file;
  {
    context where = testing::first_context();
    program_cache cache(where, {.folder = folder.path()});
    file = cache.file();
    (void)cache.build(scale_by(2));
    REQUIRE(cache.save().written);
  }
  const std::string whole = contents(file);
  std::vector<std::string> damages{"",
                                   whole.substr(0, 7),
                                   whole.substr(0, 40),
                                   whole.substr(0, whole.size() / 2),
                                   whole.substr(0, whole.size() - 1),
                                   std::string(whole.size(), 'x')};
  for (const std::size_t at : {std::size_t{0}, std::size_t{9}, std::size_t{35}, whole.size() - 1, whole.size() / 2}) {
    damages.push_back(whole);
    damages.back()[at] = static_cast<char>(damages.back()[at] ^ 0x10);
  }
  for (std::size_t i = 0; i < damages.size(); ++i) {
    CAPTURE(i);
    overwrite(file, damages[i]);
    context where = testing::first_context();
    program_cache cache(where, {.folder = folder.path()});
    CHECK(run(where, cache.build(scale_by(2))) == 2.5f);
    CHECK(cache.figures().builds == 1);
    CHECK(cache.figures().disk_hits == 0);
    CHECK(cache.figures().damaged == 1);
    REQUIRE(cache.save().written);
    program_cache repaired(where, {.folder = folder.path()});
    (void)repaired.build(scale_by(2));
    CHECK(repaired.figures().disk_hits == 1);
  }
}

TEST_CASE("entries before the damage survive, a binary that the driver refuses is rebuilt") {
  const testing::temporary_folder folder;
  const std::filesystem::path path = folder.path() / "programs.bin";
  program_file file(path, "identity");
  REQUIRE(file.write({{{1, 2}, "first"}, {{3, 4}, "second"}}, {}, 1 << 20).entries == 2);
  const std::string whole = contents(path);
  overwrite(path, whole.substr(0, whole.size() - 1));
  program_file cut(path, "identity");
  std::string payload;
  CHECK(cut.find({1, 2}, payload));
  CHECK(payload == "first");
  CHECK(!cut.find({3, 4}, payload));
  CHECK(cut.damaged() == 1);

  context where = testing::first_context();
  program_cache cache(where, {.folder = folder.path()});
  const program_request request = scale_by(4);
  program_file forged(cache.file(), program_cache::identity_of(where.info()));
  REQUIRE(forged.write({{key_of(request.source, request.options), "no binary"}}, {}, 1 << 20).written);
  program_cache refusing(where, {.folder = folder.path()});
  CHECK(run(where, refusing.build(request)) == 4.5f);
  CHECK(refusing.figures().refused == 1);
  CHECK(refusing.figures().builds == 1);
}

TEST_CASE("another device, driver or version has another file") {
  device_info info = testing::first_context().info();
  const std::string identity = program_cache::identity_of(info);
  info.driver_version += "1";
  CHECK(program_cache::identity_of(info) != identity);
  const testing::temporary_folder folder;
  const std::filesystem::path path = folder.path() / "programs.bin";
  REQUIRE(program_file(path, identity).write({{{1, 2}, "payload"}}, {}, 1 << 20).written);
  std::string payload;
  CHECK(program_file(path, identity).find({1, 2}, payload));
  CHECK(!program_file(path, program_cache::identity_of(info)).find({1, 2}, payload));
}

TEST_CASE("a write keeps what others wrote and drops the longest unused when it is full") {
  const testing::temporary_folder folder;
  const std::filesystem::path path = folder.path() / "programs.bin";
  program_file first(path, "identity");
  program_file second(path, "identity");
  REQUIRE(first.write({{{1, 1}, std::string(1000, 'a')}}, {}, 1 << 20).entries == 1);
  // `second` has not seen that write.
  REQUIRE(second.write({{{2, 2}, std::string(1000, 'b')}}, {}, 1 << 20).entries == 2);
  // {1, 1} is in use, so {2, 2} leaves.
  const program_file_result result = first.write({{{3, 3}, std::string(1000, 'c')}}, {{1, 1}}, 2500);
  CHECK(result.entries == 2);
  std::string payload;
  CHECK(first.find({1, 1}, payload));
  CHECK(!first.find({2, 2}, payload));
  CHECK(first.find({3, 3}, payload));
  CHECK(payload == std::string(1000, 'c'));
  // The newest of one key wins.
  REQUIRE(first.write({{{3, 3}, "new"}}, {}, 1 << 20).entries == 2);
  CHECK(program_file(path, "identity").find({3, 3}, payload));
  CHECK(payload == "new");
}

TEST_CASE("a folder that cannot be written is told, not thrown") {
  context where = testing::first_context();
  program_cache cache(where, {.folder = "/dev/null/no"});
  CHECK(run(where, cache.build(scale_by(2))) == 2.5f);
  const program_file_result result = cache.save();
  CHECK(!result.written);
  CHECK(result.failure.find("/dev/null/no") != std::string::npos);
}

TEST_CASE("hidden instructions are revealed in the text of their target alone") {
  CHECK(opencl::revealed_target("-cl-mad-enable -DDNNOPT_REVEALED_FOR=sm_90a -DX").compare("sm_90a") == 0);
  CHECK(opencl::revealed_target("-cl-mad-enable").empty());
  const std::string text = ".version 9.0\n.target sm_90, texmode_independent\n{ /*+ wgmma.fence; +*/ }\n/* kept */";
  CHECK(opencl::revealed_text(text + std::string(2, '\0'), "sm_90a") ==
        ".version 9.0\n.target sm_90a, texmode_independent\n{  wgmma.fence;  }\n/* kept */");
  // A driver's text that is revealed already, of another device, and no text at all.
  CHECK(opencl::revealed_text(".target sm_90a\n", "sm_90a") == ".target sm_90a\n");
  CHECK_FALSE(opencl::revealed_text(".target sm_100, texmode_independent\n", "sm_90a"));
  CHECK_FALSE(opencl::revealed_text(".target sm_9\n", "sm_90a"));
  CHECK_FALSE(
      opencl::revealed_text("\x7f"
                            "ELF",
                            "sm_90a"));
}

TEST_CASE("a program whose text is not one of the target does not build") {
  opencl::context where(opencl::select_device("opencl"));
  opencl::program_cache programs(where, {.on_disk = false, .folder = {}});
  const opencl::program_request request{"hidden", "__kernel void k(__global int* a) { a[0] = 1; }",
                                        "-DDNNOPT_REVEALED_FOR=nobody"};
  CHECK_THROWS_WITH(programs.build(request), Catch::Contains("its text is not one for nobody"));
}

TEST_CASE("a program that does not build tells log, options and name") {
  context where = testing::first_context();
  program_cache cache(where, {.on_disk = false});
  std::string text;
  const program_request broken{"my_kernel", "kernel void f(global float* x) { x[0] = undeclared_thing; }", "-DQ=1"};
  CHECK(code_of([&] { (void)cache.build(broken); }, &text) == code(errc::kernel_build));
  CHECK(text.find("my_kernel") != std::string::npos);
  CHECK(text.find("-DQ=1") != std::string::npos);
  CHECK(text.find("undeclared_thing") != std::string::npos);
  // The failure is not kept: the next try builds again.
  CHECK(code_of([&] { (void)cache.build(broken); }) == code(errc::kernel_build));
}

TEST_CASE("many programs build in parallel, each once") {
  context where = testing::first_context();
  program_cache cache(where, {.on_disk = false, .threads = 4});
  std::vector<program_request> requests;
  for (int i = 0; i < 12; ++i) requests.push_back(scale_by(i % 4));
  const std::vector<cl::Program> programs = cache.build_all(requests);
  CHECK(cache.figures().builds == 4);
  CHECK(cache.figures().memory_hits == 8);
  for (int i = 0; i < 12; ++i) {
    CHECK(programs[static_cast<std::size_t>(i)]() == programs[static_cast<std::size_t>(i % 4)]());
  }
  CHECK(run(where, programs[3]) == 3.5f);
  requests[5].source = "kernel void scale( {";
  CHECK(code_of([&] { (void)cache.build_all(requests); }) == code(errc::kernel_build));
}

TEST_CASE("who waits for many programs is told how many are ready, and may end it") {
  context where = testing::first_context();
  std::vector<program_request> requests;
  for (int i = 0; i < 6; ++i) requests.push_back(scale_by(i + 1));
  std::vector<std::size_t> told;
  program_cache_options options{.on_disk = false, .threads = 2};
  options.progress = [&](std::size_t ready, std::size_t all) {
    CHECK(all == 6);
    told.push_back(ready);
  };
  CHECK(program_cache(where, options).build_all(requests).size() == 6);
  CHECK(told.size() == 6);
  CHECK(std::is_sorted(told.begin(), told.end()));
  CHECK(told.back() >= 4);
  options.progress = [](std::size_t ready, std::size_t) {
    if (ready >= 1) throw std::runtime_error("no longer wanted");
  };
  // Of programs that it has seen before a driver may have all at once.
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const auto unseen = static_cast<int>(std::chrono::duration_cast<std::chrono::milliseconds>(now).count() % 8000000);
  for (int i = 0; i < 6; ++i) requests[static_cast<std::size_t>(i)] = scale_by(unseen + 7 + i);
  program_cache ended(where, options);
  CHECK_THROWS_WITH(ended.build_all(requests), "no longer wanted");
  CHECK(ended.figures().builds < 6);
  // What was ended can be begun again.
  CHECK(ended.build(requests[5])() != nullptr);
}

#if !defined(_WIN32)
TEST_CASE("processes that write at once lose nothing") {
  const testing::temporary_folder folder;
  const std::filesystem::path path = folder.path() / "programs.bin";
  constexpr std::uint64_t processes = 6;
  constexpr std::uint64_t rounds = 8;
  std::vector<pid_t> children;
  for (std::uint64_t p = 0; p < processes; ++p) {
    const pid_t child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) {
      for (std::uint64_t r = 0; r < rounds; ++r) {
        program_file file(path, "identity");
        if (!file.write({{{p, r}, std::string(500 + p, static_cast<char>('a' + r))}}, {}, 1 << 20).written) ::_exit(1);
      }
      ::_exit(0);
    }
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int state = 0;
    REQUIRE(::waitpid(child, &state, 0) == child);
    CHECK(state == 0);
  }
  program_file file(path, "identity");
  for (std::uint64_t p = 0; p < processes; ++p) {
    for (std::uint64_t r = 0; r < rounds; ++r) {
      std::string payload;
      CHECK(file.find({p, r}, payload));
      CHECK(payload == std::string(500 + p, static_cast<char>('a' + r)));
    }
  }
  CHECK(file.damaged() == 0);
}
#endif

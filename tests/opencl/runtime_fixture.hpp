// Owns what the tests of the OpenCL layer share: a context on the first device and temporary folders.
#ifndef DNNOPT_TESTS_OPENCL_RUNTIME_FIXTURE_HPP
#define DNNOPT_TESTS_OPENCL_RUNTIME_FIXTURE_HPP

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <dnnopt/backend/opencl/context.hpp>
#include <dnnopt/backend/opencl/program_cache_options.hpp>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace dnnopt::opencl::testing {

/// A context on the first OpenCL device.
inline context first_context() { return context(select_device("opencl")); }

/// An empty folder that disappears with the object.
class temporary_folder {
 public:
  temporary_folder() {
    std::string name = (std::filesystem::temp_directory_path() / "dnnopt_test_XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("no temporary folder: " + name);
    path_ = name;
  }
  ~temporary_folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  temporary_folder(const temporary_folder&) = delete;
  temporary_folder& operator=(const temporary_folder&) = delete;
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

/// Programs in `folder` that the driver keeps, by what the file there notes, and does not lose: how long one takes to
/// be built is no sign of it on a machine that runs other tests beside this one.
inline program_cache_options kept_by_driver(const temporary_folder& folder) {
  return {.folder = folder.path(), .driver_keeps = [] { return true; }, .least_loss = 3600};
}

template <class T>
std::span<const std::byte> bytes_of(const std::vector<T>& values) {
  return std::as_bytes(std::span(values));
}

template <class T>
std::span<std::byte> writable_bytes_of(std::vector<T>& values) {
  return std::as_writable_bytes(std::span(values));
}

/// The code of the dnnopt::error that `call` throws; 0 when it throws none. The text goes to `text`.
template <class Call>
int code_of(const Call& call, std::string* text = nullptr) {
  try {
    call();
  } catch (const error& failure) {
    if (text != nullptr) *text = failure.what();
    return static_cast<int>(failure.code());
  }
  return 0;
}

constexpr int code(errc value) { return static_cast<int>(value); }

}  // namespace dnnopt::opencl::testing

#endif  // DNNOPT_TESTS_OPENCL_RUNTIME_FIXTURE_HPP

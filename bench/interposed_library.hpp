// Owns the opening of a library that stands before libOpenCL, and the look-up of what it offers besides.
#ifndef DNNOPT_BENCH_INTERPOSED_LIBRARY_HPP
#define DNNOPT_BENCH_INTERPOSED_LIBRARY_HPP

#include <dlfcn.h>

#include <stdexcept>
#include <string>

/// A library opened for the whole run of the program. To be opened before anything loads OpenCL.
class interposed_library {
 public:
  /// Throws std::runtime_error with the loader's own words.
  explicit interposed_library(const char* path) : path_(path), opened_(::dlopen(path, RTLD_NOW | RTLD_LOCAL)) {
    if (opened_ == nullptr) throw std::runtime_error(::dlerror());
  }
  /// Sets `function` to the library's function of that name. Throws std::runtime_error where it has none.
  template <class Function>
  void find(Function*& function, const char* name) const {
    function = reinterpret_cast<Function*>(::dlsym(opened_, name));
    if (function == nullptr) throw std::runtime_error(path_ + " has no " + name);
  }

 private:
  std::string path_;
  void* opened_;
};

#endif  // DNNOPT_BENCH_INTERPOSED_LIBRARY_HPP

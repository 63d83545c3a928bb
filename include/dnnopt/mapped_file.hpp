// Owns read-only memory maps: of a file, and of zeros that take no memory until they are written elsewhere.
#ifndef DNNOPT_MAPPED_FILE_HPP
#define DNNOPT_MAPPED_FILE_HPP

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <dnnopt/error.hpp>

namespace dnnopt {

/// A read-only view of a whole file. Whoever keeps a span of it keeps the shared pointer as well.
///
/// The file must keep its size while it is mapped: reading a page past the end of a truncated file is a bus error.
class mapped_file {
 public:
  /// Maps the file at `path`.
  /// Errors: file_not_found where it cannot be opened, file_io where it is no regular file or cannot be mapped.
  [[nodiscard]] static std::shared_ptr<const mapped_file> open(const std::filesystem::path& path) {
    const descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    if (file.number < 0)
      throw error(errc::file_not_found, "cannot open '" + path.string() + "': " + std::strerror(errno));
    struct stat status {};
    if (::fstat(file.number, &status) != 0 || !S_ISREG(status.st_mode))
      throw error(errc::file_io, "'" + path.string() + "' is not a regular file");
    return map(static_cast<std::size_t>(status.st_size), MAP_PRIVATE, file.number, path.string());
  }

  /// `size` zero bytes that take address space but no memory.
  /// Errors: file_io where the address space is exhausted.
  [[nodiscard]] static std::shared_ptr<const mapped_file> zeros(std::size_t size) {
    return map(size, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, "zeros");
  }

  mapped_file(const mapped_file&) = delete;
  mapped_file& operator=(const mapped_file&) = delete;
  ~mapped_file() {
    if (data_ != nullptr) ::munmap(data_, size_);
  }

  [[nodiscard]] std::span<const std::byte> bytes() const noexcept {
    return {static_cast<const std::byte*>(data_), size_};
  }
  /// Whether `part` lies in the map.
  [[nodiscard]] bool contains(std::span<const std::byte> part) const noexcept {
    const auto* begin = static_cast<const std::byte*>(data_);
    const std::less_equal<const std::byte*> before;
    return begin != nullptr && before(begin, part.data()) && before(part.data() + part.size(), begin + size_);
  }

 private:
  struct descriptor {
    explicit descriptor(int opened) noexcept : number(opened) {}
    descriptor(const descriptor&) = delete;
    descriptor& operator=(const descriptor&) = delete;
    ~descriptor() {
      if (number >= 0) ::close(number);
    }
    int number;
  };

  mapped_file(void* data, std::size_t size) noexcept : data_(data), size_(size) {}

  static std::shared_ptr<const mapped_file> map(std::size_t size, int flags, int file, const std::string& name) {
    void* data = nullptr;
    if (size != 0) {
      data = ::mmap(nullptr, size, PROT_READ, flags, file, 0);
      if (data == MAP_FAILED)
        throw error(errc::file_io,
                    "cannot map " + std::to_string(size) + " bytes of '" + name + "': " + std::strerror(errno));
    }
    return std::shared_ptr<const mapped_file>(new mapped_file(data, size));
  }

  void* data_;
  std::size_t size_;
};

}  // namespace dnnopt

#endif  // DNNOPT_MAPPED_FILE_HPP

// Owns the file in which compiled programs are kept: its format, its checks and its replacement.
//
// One file holds the programs of one device, driver and library version; it opens with the text that names those. Then
// come entries {key, size, checksums, payload}. Whatever is damaged (truncated, overwritten, of another format) is left
// out when reading, so that the caller rebuilds it. Writers of several processes take turns by a lock on a file beside
// it, merge what the others wrote, write a temporary file and rename it, so readers see the old file or the new one.
#ifndef DNNOPT_BACKEND_OPENCL_PROGRAM_FILE_HPP
#define DNNOPT_BACKEND_OPENCL_PROGRAM_FILE_HPP

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#if !defined(_WIN32)
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>
#endif

namespace dnnopt::opencl {

/// 64-bit hash of bytes, word by word; not cryptographic. The same on every little-endian machine. O(bytes).
[[nodiscard]] inline std::uint64_t hash_bytes(std::string_view bytes, std::uint64_t seed = 0) noexcept {
  constexpr std::uint64_t multiplier = 0x9e3779b97f4a7c15ull;
  std::uint64_t hash = (seed + bytes.size()) * multiplier + 0x632be59bd9b4e019ull;
  const auto mix = [&](std::uint64_t word) {
    hash = (hash ^ word) * multiplier;
    hash ^= hash >> 29;
  };
  std::size_t at = 0;
  for (; at + 8 <= bytes.size(); at += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data() + at, 8);
    mix(word);
  }
  std::uint64_t tail = 0;
  if (at < bytes.size()) std::memcpy(&tail, bytes.data() + at, bytes.size() - at);
  mix(tail);
  mix(hash >> 32);
  return hash;
}

/// Name of a program: hashes of its source and its build options.
struct program_key {
  std::uint64_t high = 0;
  std::uint64_t low = 0;
  friend constexpr bool operator==(const program_key&, const program_key&) = default;
  friend constexpr auto operator<=>(const program_key&, const program_key&) = default;
};

/// The key of a source built with options; any difference in either gives another key (to 2^-128).
[[nodiscard]] inline program_key key_of(std::string_view source, std::string_view options) noexcept {
  return {hash_bytes(options, hash_bytes(source, 1)), hash_bytes(source, hash_bytes(options, 2))};
}

/// What a write came to.
struct program_file_result {
  bool written = false;
  std::size_t entries = 0;  ///< in the file afterwards
  std::uint64_t bytes = 0;
  std::string failure;  ///< why nothing was written
};

class program_file {
 public:
  struct entry {
    program_key key;
    std::string payload;
  };

  /// The file at `path` for the device that `identity` names. Opens and indexes it; a file of another identity or
  /// format counts as empty.
  program_file(std::filesystem::path path, std::string identity)
      : path_(std::move(path)), identity_(std::move(identity)) {
    index(stream_, rows_);
  }

  /// The payload stored for `key`; false when there is none or it is damaged (counted). The checksum of the payload is
  /// looked at here. O(payload) after O(entries).
  bool find(const program_key& key, std::string& payload) {
    // The newest comes last.
    for (auto place = rows_.rbegin(); place != rows_.rend(); ++place) {
      if (place->key != key) continue;
      if (read(stream_, *place, payload)) return true;
      ++damaged_;
      rows_.erase(std::next(place).base());
      return false;
    }
    return false;
  }

  /// Whether there is an entry for `key`, whatever its payload is worth. O(entries).
  [[nodiscard]] bool contains(const program_key& key) const noexcept {
    return std::any_of(rows_.begin(), rows_.end(), [&](const row& one) { return one.key == key; });
  }

  /// Entries and tails of the file that were found damaged so far.
  [[nodiscard]] std::size_t damaged() const noexcept { return damaged_; }
  [[nodiscard]] const std::filesystem::path& path() const noexcept { return path_; }

  /// Adds `added` to the file (newer entries win), after those of other processes. The oldest entries that are not in
  /// `used` leave when the file would exceed `max_bytes`. Never throws for reasons of the file system: see failure.
  program_file_result write(const std::vector<entry>& added, const std::vector<program_key>& used,
                            std::uint64_t max_bytes) {
    program_file_result result;
    std::error_code problem;
    std::filesystem::create_directories(path_.parent_path(), problem);
    if (problem) {
      result.failure = "folder " + path_.parent_path().string() + ": " + problem.message();
      return result;
    }
    const file_lock lock(path_.string() + ".lock");
    remove_left_overs();

    std::ifstream current;
    std::vector<row> rows;
    index(current, rows);
    const auto is_added = [&](const program_key& key) {
      return std::any_of(added.begin(), added.end(), [&](const entry& one) { return one.key == key; });
    };
    std::erase_if(rows, [&](const row& old) { return is_added(old.key); });
    // Used ones go to the end, so that the front holds what has been out of use longest.
    std::stable_partition(rows.begin(), rows.end(),
                          [&](const row& old) { return std::find(used.begin(), used.end(), old.key) == used.end(); });
    std::uint64_t total = 0;
    for (const row& one : rows) total += one.size + sizeof(entry_header);
    for (const entry& one : added) total += one.payload.size() + sizeof(entry_header);
    std::size_t first = 0;
    while (total > max_bytes && first < rows.size()) total -= rows[first++].size + sizeof(entry_header);

    const std::string temporary = path_.string() + "." + std::to_string(process_id()) + "." +
                                  std::to_string(reinterpret_cast<std::uintptr_t>(this)) + temporary_suffix;
    {
      std::ofstream out(temporary, std::ios::binary | std::ios::trunc);
      put(out, file_header{magic, format, identity_.size(), hash_bytes(identity_)});
      out.write(identity_.data(), static_cast<std::streamsize>(identity_.size()));
      std::string payload;
      for (std::size_t i = first; i < rows.size(); ++i) {
        if (!read(current, rows[i], payload)) continue;
        put_entry(out, rows[i].key, payload);
        ++result.entries;
      }
      for (const entry& one : added) {
        put_entry(out, one.key, one.payload);
        ++result.entries;
      }
      result.bytes = static_cast<std::uint64_t>(std::max<std::streamoff>(0, out.tellp()));
      out.close();
      if (!out) {
        std::filesystem::remove(temporary, problem);
        result.failure = "writing " + temporary + " failed (no room, or not permitted)";
        return result;
      }
    }
    std::filesystem::rename(temporary, path_, problem);
    if (problem) {
      result.failure = "renaming " + temporary + ": " + problem.message();
      std::filesystem::remove(temporary, problem);
      return result;
    }
    result.written = true;
    index(stream_, rows_);
    return result;
  }

 private:
  static constexpr std::uint64_t magic = 0x31474f52504e4e44ull;  // "DNNPROG1"
  static constexpr std::uint64_t format = 1;
  static constexpr std::uint64_t entry_magic = 0x5952544e45504e44ull;
  static constexpr const char* temporary_suffix = ".tmp";

  struct file_header {
    std::uint64_t magic, format, identity_bytes, identity_hash;
  };
  struct entry_header {
    std::uint64_t magic, key_high, key_low, bytes, payload_hash, header_hash;
    [[nodiscard]] std::uint64_t own_hash() const noexcept {
      return hash_bytes({reinterpret_cast<const char*>(this), sizeof(*this) - sizeof(header_hash)}, 3);
    }
  };
  struct row {
    program_key key;
    std::uint64_t offset = 0;
    std::uint64_t size = 0;
    std::uint64_t hash = 0;
  };

  /// A lock between processes that lasts as long as the object; none where the file cannot be made, for losing another
  /// process's entries is no error.
  class file_lock {
   public:
#if defined(_WIN32)
    explicit file_lock(const std::string&) {}
#else
    explicit file_lock(const std::string& path)
        : descriptor_(::open(path.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0644)) {
      if (descriptor_ >= 0) ::flock(descriptor_, LOCK_EX);
    }
    ~file_lock() {
      if (descriptor_ >= 0) ::close(descriptor_);
    }

   private:
    int descriptor_;

   public:
#endif
    file_lock(const file_lock&) = delete;
    file_lock& operator=(const file_lock&) = delete;
  };

  static unsigned long process_id() noexcept {
#if defined(_WIN32)
    return static_cast<unsigned long>(std::chrono::steady_clock::now().time_since_epoch().count());
#else
    return static_cast<unsigned long>(::getpid());
#endif
  }

  template <class T>
  static void put(std::ofstream& out, const T& value) {
    out.write(reinterpret_cast<const char*>(&value), sizeof(value));
  }

  template <class T>
  static bool get(std::ifstream& in, T& value) {
    return static_cast<bool>(in.read(reinterpret_cast<char*>(&value), sizeof(value)));
  }

  static void put_entry(std::ofstream& out, const program_key& key, const std::string& payload) {
    entry_header header{entry_magic, key.high, key.low, payload.size(), hash_bytes(payload), 0};
    header.header_hash = header.own_hash();
    put(out, header);
    out.write(payload.data(), static_cast<std::streamsize>(payload.size()));
  }

  /// Reads the headers of all entries, up to the first that is damaged.
  void index(std::ifstream& in, std::vector<row>& rows) {
    rows.clear();
    in.close();
    in.clear();
    in.open(path_, std::ios::binary | std::ios::ate);
    if (!in) return;
    const auto file_bytes = static_cast<std::uint64_t>(std::max<std::streamoff>(0, in.tellg()));
    in.seekg(0);
    file_header header{};
    if (!get(in, header) || header.magic != magic || header.format != format ||
        header.identity_bytes != identity_.size() || header.identity_hash != hash_bytes(identity_)) {
      ++damaged_;
      return;
    }
    std::string identity(identity_.size(), '\0');
    if (!in.read(identity.data(), static_cast<std::streamsize>(identity.size())) || identity != identity_) {
      ++damaged_;
      return;
    }
    std::uint64_t at = sizeof(header) + identity.size();
    while (at < file_bytes) {
      entry_header one{};
      in.seekg(static_cast<std::streamoff>(at));
      if (!get(in, one) || one.magic != entry_magic || one.header_hash != one.own_hash() ||
          one.bytes > file_bytes - at - sizeof(one)) {
        ++damaged_;
        in.clear();
        return;
      }
      rows.push_back({{one.key_high, one.key_low}, at + sizeof(one), one.bytes, one.payload_hash});
      at += sizeof(one) + one.bytes;
    }
  }

  static bool read(std::ifstream& in, const row& one, std::string& payload) {
    payload.resize(one.size);
    in.clear();
    in.seekg(static_cast<std::streamoff>(one.offset));
    return in.read(payload.data(), static_cast<std::streamsize>(one.size)) && hash_bytes(payload) == one.hash;
  }

  /// Temporary files of processes that died while writing.
  void remove_left_overs() const {
    std::error_code problem;
    const std::string stem = path_.filename().string() + ".";
    const auto old = std::filesystem::file_time_type::clock::now() - std::chrono::hours(1);
    for (const auto& file : std::filesystem::directory_iterator(path_.parent_path(), problem)) {
      const std::string name = file.path().filename().string();
      if (!name.starts_with(stem) || !name.ends_with(temporary_suffix)) continue;
      const auto time = file.last_write_time(problem);
      if (!problem && time < old) std::filesystem::remove(file.path(), problem);
    }
  }

  std::filesystem::path path_;
  std::string identity_;
  std::ifstream stream_;
  std::vector<row> rows_;
  std::size_t damaged_ = 0;
};

}  // namespace dnnopt::opencl

#endif  // DNNOPT_BACKEND_OPENCL_PROGRAM_FILE_HPP

// Owns the small files beside the programs that keep what was found out about a device with one driver.
#ifndef DNNOPT_BACKEND_MEASURE_FACTS_IDENTIFIED_FILE_HPP
#define DNNOPT_BACKEND_MEASURE_FACTS_IDENTIFIED_FILE_HPP

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <system_error>

#include <dnnopt/backend/opencl/program_cache.hpp>
#include <dnnopt/device_info.hpp>

namespace dnnopt::opencl {

/// A file of one kind of facts about a device, which says what it is about: device, driver, this version of dnnopt and
/// the form of the facts. With an empty folder there is none: nothing is found and nothing kept.
class identified_file {
 public:
  /// `kind` names the facts, as in the file's name; `form` goes up when what they mean or how they are written changes.
  identified_file(const device_info& info, const std::filesystem::path& folder, std::string_view kind, int form)
      : identity_(program_cache::identity_of(info) + std::string(kind) + " " + std::to_string(form) + "\n") {
    if (folder.empty()) return;
    char number[32];
    std::snprintf(number, sizeof(number), "%016llx", static_cast<unsigned long long>(hash_bytes(identity_)));
    path_ = folder / (std::string(kind) + "-" + number + ".txt");
  }

  /// The text that write() was given last; nothing where there is no file, or one about something else.
  [[nodiscard]] std::optional<std::string> read() const {
    if (path_.empty()) return std::nullopt;
    std::ifstream in(path_, std::ios::binary);
    std::ostringstream text;
    if (!in || !(text << in.rdbuf())) return std::nullopt;
    std::string whole = text.str();
    if (!whole.starts_with(identity_)) return std::nullopt;
    return whole.substr(identity_.size());
  }

  /// Puts `text` into the file, in one step for whoever reads meanwhile. A folder that cannot be written keeps nothing,
  /// so that the next process finds the facts out again.
  void write(std::string_view text) const {
    if (path_.empty()) return;
    std::error_code problem;
    std::filesystem::create_directories(path_.parent_path(), problem);
    const std::filesystem::path temporary =
        path_.string() + "." + std::to_string(std::chrono::steady_clock::now().time_since_epoch().count()) + ".tmp";
    bool whole = false;
    {
      std::ofstream out(temporary, std::ios::binary);
      out << identity_ << text;
      out.close();
      whole = static_cast<bool>(out);
    }
    if (whole) std::filesystem::rename(temporary, path_, problem);
    if (!whole || problem) std::filesystem::remove(temporary, problem);
  }

  /// Empty without a folder.
  [[nodiscard]] const std::filesystem::path& path() const noexcept { return path_; }

 private:
  std::string identity_;
  std::filesystem::path path_;
};

}  // namespace dnnopt::opencl

#endif  // DNNOPT_BACKEND_MEASURE_FACTS_IDENTIFIED_FILE_HPP

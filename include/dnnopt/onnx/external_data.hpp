// Owns the external data of a model: locations checked against the model's folder, files mapped once.
#ifndef DNNOPT_ONNX_EXTERNAL_DATA_HPP
#define DNNOPT_ONNX_EXTERNAL_DATA_HPP

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <dnnopt/error.hpp>
#include <dnnopt/mapped_file.hpp>
#include <dnnopt/onnx/import_options.hpp>
#include <dnnopt/onnx/tensor_proto.hpp>

namespace dnnopt::onnx {

/// Opens a model's external data files on first use and hands out parts of them.
///
/// A location must be a relative path that stays in the model's folder, also when symbolic links are followed.
class external_files final : public external_source {
 public:
  external_files(std::filesystem::path folder, missing_data when_missing)
      : folder_(std::move(folder)), when_missing_(when_missing) {}

  /// Errors: bad_tensor_data (keys missing, unknown, given twice or not numbers, length other than the dims need),
  /// external_data_path, external_data_missing, external_data_short.
  [[nodiscard]] std::pair<std::span<const std::byte>, std::shared_ptr<const void>> read(const tensor_proto& t,
                                                                                        std::size_t size) override {
    std::string_view location;
    std::size_t offset = 0;
    std::optional<std::size_t> length;
    check_keys(t);
    for (const auto& [key, value] : t.external_data) {
      if (key == "location") location = value;
      if (key == "offset") offset = number(t, key, value);
      if (key == "length") length = number(t, key, value);
    }
    if (location.empty()) detail::fail(t, errc::bad_tensor_data, "external data without a location");
    if (length && *length != size)
      detail::fail(t, errc::bad_tensor_data,
                   "external data of " + std::to_string(*length) + " bytes where " + detail::dims_text(t) + " needs " +
                       std::to_string(size));
    std::size_t end = 0;
    if (__builtin_add_overflow(offset, size, &end))
      detail::fail(t, errc::overflow, "external data past the address space");
    const std::size_t index = open(t, location);
    external_file& found = files_[index];
    if (found.missing) {
      if (size > largest_missing)
        detail::fail(t, errc::memory_limit,
                     "missing external data of " + std::to_string(size) + " bytes is not replaced by zeros");
      const auto zeros = mapped_file::zeros(size);
      references_.push_back({std::string(t.name), index, offset, zeros->bytes()});
      return {zeros->bytes(), zeros};
    }
    const auto all = found.file->bytes();
    if (end > all.size())
      detail::fail(t, errc::external_data_short,
                   "'" + std::string(location) + "' has " + std::to_string(all.size()) + " bytes, the tensor ends at " +
                       std::to_string(end));
    references_.push_back({std::string(t.name), index, offset, all.subspan(offset, size)});
    return {all.subspan(offset, size), found.file};
  }

  [[nodiscard]] const std::vector<external_file>& files() const noexcept { return files_; }
  [[nodiscard]] const std::vector<external_reference>& references() const noexcept { return references_; }

 private:
  static constexpr std::size_t largest_missing = std::size_t{1} << 36;

  /// ONNX's keys, and those that ONNX Runtime writes beside them. What they say besides place and length is not read.
  static void check_keys(const tensor_proto& t) {
    constexpr std::array<std::string_view, 5> known{"location", "offset", "length", "checksum", "basepath"};
    for (std::size_t i = 0; i < t.external_data.size(); ++i) {
      const std::string_view key = t.external_data[i].first;
      if (std::find(known.begin(), known.end(), key) == known.end() && !key.starts_with("prepacked_"))
        detail::fail(t, errc::bad_tensor_data, "external data has an unknown key '" + std::string(key) + "'");
      for (std::size_t j = 0; j < i; ++j)
        if (t.external_data[j].first == key)
          detail::fail(t, errc::bad_tensor_data, "external data gives '" + std::string(key) + "' twice");
    }
  }

  static std::size_t number(const tensor_proto& t, std::string_view key, std::string_view value) {
    std::size_t n = 0;
    const auto [end, status] = std::from_chars(value.data(), value.data() + value.size(), n);
    if (status != std::errc{} || end != value.data() + value.size() || value.empty())
      detail::fail(t, errc::bad_tensor_data,
                   "external data's " + std::string(key) + " is no number: '" + std::string(value) + "'");
    return n;
  }

  std::size_t open(const tensor_proto& t, std::string_view location) {
    const auto known =
        std::find_if(files_.begin(), files_.end(), [&](const external_file& f) { return f.location == location; });
    if (known != files_.end()) return static_cast<std::size_t>(known - files_.begin());
    const std::filesystem::path relative{std::string(location)};
    const auto refuse = [&](const char* why) {
      detail::fail(t, errc::external_data_path, "external data location '" + std::string(location) + "' " + why);
    };
    if (location.find('\0') != std::string_view::npos) refuse("holds a zero byte");
    if (relative.is_absolute()) refuse("is absolute");
    for (const auto& part : relative)
      if (part == "..") refuse("leaves the model's folder");
    std::error_code failed;
    const auto folder = std::filesystem::canonical(folder_.empty() ? std::filesystem::path(".") : folder_, failed);
    if (failed)
      detail::fail(t, errc::external_data_missing, "the model's folder '" + folder_.string() + "' does not exist");
    // A link to nothing is no part of a canonical path, but who writes missing data would follow it.
    std::filesystem::path part = folder;
    for (const auto& name : relative) {
      part /= name;
      const bool link = std::filesystem::is_symlink(std::filesystem::symlink_status(part, failed));
      if (link && !std::filesystem::exists(part, failed)) refuse("is a symbolic link to nothing");
    }
    const auto target = std::filesystem::weakly_canonical(folder / relative, failed);
    if (failed) refuse("cannot be resolved");
    const auto [in_folder, rest] = std::mismatch(folder.begin(), folder.end(), target.begin(), target.end());
    if (in_folder != folder.end()) refuse("leaves the model's folder by a symbolic link");
    external_file made{std::string(location), nullptr, false};
    const auto status = std::filesystem::status(target, failed);
    if (std::filesystem::exists(status)) {
      if (!std::filesystem::is_regular_file(status)) refuse("is not a regular file");
      made.file = mapped_file::open(target);
    } else if (when_missing_ == missing_data::zeros) {
      made.missing = true;
    } else {
      detail::fail(t, errc::external_data_missing, "external data file '" + target.string() + "' does not exist");
    }
    files_.push_back(std::move(made));
    return files_.size() - 1;
  }

  std::filesystem::path folder_;
  missing_data when_missing_;
  std::vector<external_file> files_;
  std::vector<external_reference> references_;
};

}  // namespace dnnopt::onnx

#endif  // DNNOPT_ONNX_EXTERNAL_DATA_HPP

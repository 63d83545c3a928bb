// Owns the checked reading of protobuf messages: every wire type is tested, every error names its position in the file.
#ifndef DNNOPT_ONNX_WIRE_READER_HPP
#define DNNOPT_ONNX_WIRE_READER_HPP

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include <protozero/exception.hpp>
#include <protozero/pbf_reader.hpp>

#include <dnnopt/detail/utf8.hpp>
#include <dnnopt/error.hpp>

namespace dnnopt::onnx {

/// Reads the fields of one protobuf message in order. Views into the message live as long as the file's bytes.
///
/// Errors of every member: malformed_protobuf naming the byte of the file.
class wire_reader {
 public:
  /// A reader of `message`, which lies in the file that starts at `file_begin`.
  wire_reader(std::span<const std::byte> message, const std::byte* file_begin)
      : reader_(reinterpret_cast<const char*>(message.data()), message.size()),
        begin_(file_begin),
        field_(message.data()),
        end_(message.data() + message.size()) {}

  /// Moves to the next field; false at the end of the message.
  [[nodiscard]] bool next() {
    field_ = here();
    return checked([&] { return reader_.next(); });
  }
  /// The number of the field.
  [[nodiscard]] std::uint32_t field() const noexcept { return reader_.tag(); }
  /// The byte of the file at which the field starts.
  [[nodiscard]] std::size_t position() const noexcept { return static_cast<std::size_t>(field_ - begin_); }

  void skip() {
    checked([&] {
      reader_.skip();
      return true;
    });
  }
  [[nodiscard]] std::int64_t integer() {
    need(protozero::pbf_wire_type::varint, "a varint");
    return checked([&] { return reader_.get_int64(); });
  }
  [[nodiscard]] float float32() {
    need(protozero::pbf_wire_type::fixed32, "32 bits");
    return checked([&] { return reader_.get_float(); });
  }
  [[nodiscard]] std::span<const std::byte> bytes() {
    need(protozero::pbf_wire_type::length_delimited, "a length-delimited field");
    const auto view = checked([&] { return reader_.get_view(); });
    return {reinterpret_cast<const std::byte*>(view.data()), view.size()};
  }
  /// A string field; names of the model must be UTF-8, else they could not be printed.
  [[nodiscard]] std::string_view text() {
    const auto content = bytes();
    const std::string_view view(reinterpret_cast<const char*>(content.data()), content.size());
    if (!dnnopt::detail::is_utf8(view)) fail("a string is not UTF-8");
    return view;
  }
  [[nodiscard]] wire_reader message() { return {bytes(), begin_}; }

  /// The encoded elements of a repeated number field, packed or single; appends one span a call.
  void elements(protozero::pbf_wire_type element, std::vector<std::span<const std::byte>>& chunks) {
    if (reader_.has_wire_type(protozero::pbf_wire_type::length_delimited)) {
      chunks.push_back(bytes());
      return;
    }
    need(element, "an element or a packed list");
    const std::byte* first = here();
    skip();
    chunks.emplace_back(first, here());
  }
  /// Appends the integers of a repeated varint field.
  void integers(std::vector<std::int64_t>& out) {
    std::vector<std::span<const std::byte>> chunks;
    elements(protozero::pbf_wire_type::varint, chunks);
    for_each_varint(chunks, [&](std::int64_t v) { out.push_back(v); });
  }
  /// Appends the numbers of a repeated float field.
  void floats(std::vector<float>& out) {
    std::vector<std::span<const std::byte>> chunks;
    elements(protozero::pbf_wire_type::fixed32, chunks);
    for (const auto chunk : chunks) {
      if (chunk.size() % 4 != 0) fail("a packed list of floats has " + std::to_string(chunk.size()) + " bytes");
      const std::size_t first = out.size();
      out.resize(first + chunk.size() / 4);
      if (!chunk.empty()) std::memcpy(out.data() + first, chunk.data(), chunk.size());
    }
  }
  /// Calls `take` with each varint of `chunks`.
  template <class Take>
  void for_each_varint(std::span<const std::span<const std::byte>> chunks, Take&& take) const {
    for (const auto chunk : chunks) {
      const char* at = reinterpret_cast<const char*>(chunk.data());
      const char* const end = at + chunk.size();
      while (at != end) take(static_cast<std::int64_t>(checked([&] { return protozero::decode_varint(&at, end); })));
    }
  }

  [[noreturn]] void fail(const std::string& why) const {
    throw error(errc::malformed_protobuf, "at byte " + std::to_string(position()) + ": " + why);
  }

 private:
  static_assert(std::endian::native == std::endian::little, "tensor data of ONNX files is little-endian and viewed");

  [[nodiscard]] const std::byte* here() const { return reinterpret_cast<const std::byte*>(reader_.data().data()); }

  void need(protozero::pbf_wire_type type, const char* what) const {
    if (!reader_.has_wire_type(type))
      fail("field " + std::to_string(reader_.tag()) + " has wire type " +
           std::to_string(static_cast<unsigned>(reader_.wire_type())) + " where " + what + " is expected");
  }
  template <class F>
  std::invoke_result_t<F> checked(F&& read) const {
    try {
      return read();
    } catch (const protozero::end_of_buffer_exception&) {
      fail("damaged or truncated field" + missing_bytes());
    } catch (const protozero::exception& e) {
      fail(std::string("damaged or truncated field (") + e.what() + ")");
    }
  }

  /// How many bytes a field that states its length lacks; nothing where it states none.
  [[nodiscard]] std::string missing_bytes() const {
    const char* at = reinterpret_cast<const char*>(field_);
    const char* const end = reinterpret_cast<const char*>(end_);
    try {
      const std::uint64_t key = protozero::decode_varint(&at, end);
      if ((key & 7U) != static_cast<unsigned>(protozero::pbf_wire_type::length_delimited)) return "";
      const std::uint64_t size = protozero::decode_varint(&at, end);
      const auto there = static_cast<std::uint64_t>(end - at);
      return size <= there ? ""
                           : " of " + std::to_string(size) + " bytes, " + std::to_string(size - there) + " are missing";
    } catch (const protozero::exception&) {
      return "";
    }
  }

  protozero::pbf_reader reader_;
  const std::byte* begin_;
  const std::byte* field_;
  const std::byte* end_;
};

}  // namespace dnnopt::onnx

#endif  // DNNOPT_ONNX_WIRE_READER_HPP

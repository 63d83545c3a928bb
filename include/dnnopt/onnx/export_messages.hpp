// Owns the messages of an ONNX model that need no more than the facts they tell: bytes of tensors, types,
// opsets and plain nodes.
#ifndef DNNOPT_ONNX_EXPORT_MESSAGES_HPP
#define DNNOPT_ONNX_EXPORT_MESSAGES_HPP

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <protozero/pbf_writer.hpp>

#include <dnnopt/dtype.hpp>
#include <dnnopt/error.hpp>
#include <dnnopt/index_expr_io.hpp>
#include <dnnopt/ops/facts.hpp>
#include <dnnopt/shape.hpp>
#include <dnnopt/tensor.hpp>

namespace dnnopt::onnx::detail {

/// Elements as ONNX files hold them: those of 4 and 2 bits packed, lowest bits first.
[[nodiscard]] inline std::string file_bytes_of(const tensor& t) {
  const auto from = t.bytes();
  const unsigned bits = row_of(t.type()).packed_bits;
  if (bits >= 8) return std::string(reinterpret_cast<const char*>(from.data()), from.size());
  const unsigned per_byte = 8 / bits;
  std::string packed((from.size() + per_byte - 1) / per_byte, '\0');
  for (std::size_t i = 0; i < from.size(); ++i) {
    const unsigned v = (std::to_integer<unsigned>(from[i]) & ((1u << bits) - 1)) << (bits * (i % per_byte));
    packed[i / per_byte] = static_cast<char>(static_cast<unsigned char>(packed[i / per_byte]) | v);
  }
  return packed;
}

/// The bytes of file_bytes_of.
[[nodiscard]] inline std::size_t file_size_of(const tensor& t) {
  return (static_cast<std::size_t>(t.size()) * row_of(t.type()).packed_bits + 7) / 8;
}

/// A TensorShapeProto: symbolic dims by their text.
[[nodiscard]] inline std::string shape_message(const shape& dims) {
  std::string message;
  protozero::pbf_writer out(message);
  for (const index_expr& dim : dims) {
    std::string one;
    protozero::pbf_writer fields(one);
    if (dim.is_constant())
      fields.add_int64(1, dim.constant());
    else
      fields.add_string(2, to_string(dim));
    out.add_message(1, one);
  }
  return message;
}

/// A ValueInfoProto; without a type where none is known.
[[nodiscard]] inline std::string value_info(const value_facts& facts, const std::string& value_name) {
  std::string message;
  protozero::pbf_writer out(message);
  out.add_string(1, value_name);
  if (facts.kind == value_kind::map || facts.type == dtype::undefined) return message;
  std::string type;
  {
    protozero::pbf_writer fields(type);
    std::string content;
    protozero::pbf_writer tensor_fields(content);
    tensor_fields.add_int32(1, static_cast<std::int32_t>(facts.type));
    if (facts.kind == value_kind::tensor && facts.dims) tensor_fields.add_message(2, shape_message(*facts.dims));
    fields.add_message(1, content);
  }
  if (facts.kind != value_kind::tensor) {
    std::string element;
    protozero::pbf_writer(element).add_message(1, type);
    type.clear();
    protozero::pbf_writer(type).add_message(facts.kind == value_kind::sequence ? 4 : 9, element);
  }
  out.add_message(2, type);
  return message;
}

/// A TypeProto from its text, as convert_attribute writes it.
[[nodiscard]] inline std::string type_message(std::string_view text) {
  const auto inside = [&](std::string_view head) { return text.substr(head.size(), text.size() - head.size() - 1); };
  std::string message;
  protozero::pbf_writer out(message);
  if (text.starts_with("tensor(")) {
    const auto row = std::find_if(dtype_table.begin(), dtype_table.end(),
                                  [&](const dtype_row& r) { return r.name == inside("tensor("); });
    std::string content;
    if (row != dtype_table.end()) protozero::pbf_writer(content).add_int32(1, static_cast<std::int32_t>(row->type));
    out.add_message(1, content);
    return message;
  }
  for (const auto& [head, field] : {std::pair<std::string_view, protozero::pbf_tag_type>("seq(", 4), {"optional(", 9}})
    if (text.starts_with(head)) {
      std::string element;
      protozero::pbf_writer(element).add_message(1, type_message(inside(head)));
      out.add_message(field, element);
    }
  return message;
}

/// An OperatorSetIdProto.
[[nodiscard]] inline std::string opset_entry(const std::string& domain, std::int64_t version) {
  std::string entry;
  protozero::pbf_writer fields(entry);
  fields.add_string(1, domain);
  fields.add_int64(2, version);
  return entry;
}

/// Writes the parts one after the other; the file appears whole or not at all. Errors: file_io.
inline void write_file(const std::filesystem::path& path, const std::vector<std::string>& parts) {
  std::filesystem::path partial = path;
  partial += ".partial";
  {
    std::ofstream out(partial, std::ios::binary | std::ios::trunc);
    for (const std::string& part : parts) out.write(part.data(), static_cast<std::streamsize>(part.size()));
    out.close();
    if (!out) throw error(errc::file_io, "cannot write '" + partial.string() + "'");
  }
  std::error_code failed;
  std::filesystem::rename(partial, path, failed);
  if (failed) throw error(errc::file_io, "cannot rename '" + partial.string() + "': " + failed.message());
}

/// The NodeProto of an operator of ai.onnx without a name and with one output; its attributes, if any, are integers or
/// one list of integers, `value_ints`.
[[nodiscard]] inline std::string plain_node(std::string_view op, const std::vector<std::string>& inputs,
                                            const std::string& output,
                                            const std::vector<std::pair<std::string, std::int64_t>>& numbers = {},
                                            const std::vector<std::int64_t>& list = {}) {
  std::string message;
  protozero::pbf_writer fields(message);
  for (const std::string& in : inputs) fields.add_string(1, in);
  fields.add_string(2, output);
  fields.add_string(4, std::string(op));
  for (const auto& [key, number] : numbers) {
    std::string held;
    protozero::pbf_writer held_out(held);
    held_out.add_string(1, key);
    held_out.add_int64(3, number);
    held_out.add_int32(20, 2);
    fields.add_message(5, held);
  }
  if (!list.empty()) {
    std::string held;
    protozero::pbf_writer held_out(held);
    held_out.add_string(1, "value_ints");
    for (const std::int64_t i : list) held_out.add_int64(8, i);
    held_out.add_int32(20, 7);
    fields.add_message(5, held);
  }
  return message;
}

/// The NodeProto of a Constant, whose elements are a TensorProto.
[[nodiscard]] inline std::string constant_node(const std::string& elements, const std::string& output) {
  std::string message;
  protozero::pbf_writer fields(message);
  fields.add_string(2, output);
  fields.add_string(4, "Constant");
  std::string held;
  protozero::pbf_writer held_out(held);
  held_out.add_string(1, "value");
  held_out.add_message(5, elements);
  held_out.add_int32(20, 4);
  fields.add_message(5, held);
  return message;
}

}  // namespace dnnopt::onnx::detail

#endif  // DNNOPT_ONNX_EXPORT_MESSAGES_HPP

// Owns the writing of small ONNX files for tests, right and wrong ones, field by field.
#ifndef DNNOPT_TESTS_SUPPORT_ONNX_WRITER_HPP
#define DNNOPT_TESTS_SUPPORT_ONNX_WRITER_HPP

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <protozero/pbf_writer.hpp>

namespace dnnopt_tests {

/// A protobuf message under construction.
struct message {
  std::string data;

  message& number(std::uint32_t field, std::int64_t v) {
    protozero::pbf_writer(data).add_int64(field, v);
    return *this;
  }
  message& real(std::uint32_t field, float v) {
    protozero::pbf_writer(data).add_float(field, v);
    return *this;
  }
  message& text(std::uint32_t field, std::string_view v) {
    protozero::pbf_writer(data).add_string(field, v.data(), v.size());
    return *this;
  }
  message& with(std::uint32_t field, const message& v) { return text(field, v.data); }
  message& packed(std::uint32_t field, const std::vector<std::int64_t>& v) {
    protozero::pbf_writer(data).add_packed_int64(field, v.begin(), v.end());
    return *this;
  }
  message& packed_floats(std::uint32_t field, const std::vector<float>& v) {
    protozero::pbf_writer(data).add_packed_float(field, v.begin(), v.end());
    return *this;
  }
  message& packed_doubles(std::uint32_t field, const std::vector<double>& v) {
    protozero::pbf_writer(data).add_packed_double(field, v.begin(), v.end());
    return *this;
  }

  /// The bytes to import. Where DNNOPT_WRITE_CORPUS names a folder they are written there as well, for the fuzzer.
  [[nodiscard]] std::span<const std::byte> bytes() const {
    if (const char* const folder = std::getenv("DNNOPT_WRITE_CORPUS"))
      std::ofstream(std::string(folder) + "/test_" + std::to_string(std::hash<std::string>()(data)) + ".onnx",
                    std::ios::binary)
          << data;
    return {reinterpret_cast<const std::byte*>(data.data()), data.size()};
  }
};

/// Element types by ONNX's numbers.
inline constexpr std::int64_t float_type = 1;
inline constexpr std::int64_t int64_type = 7;

template <class T>
std::string raw(const std::vector<T>& values) {
  std::string bytes(values.size() * sizeof(T), '\0');
  if (!values.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

/// TensorProto without its data.
inline message tensor_of(std::string_view name, std::int64_t type, const std::vector<std::int64_t>& dims) {
  message t;
  for (const std::int64_t d : dims) t.number(1, d);
  return t.number(2, type).text(8, name);
}
inline message float_tensor(std::string_view name, const std::vector<std::int64_t>& dims,
                            const std::vector<float>& values) {
  return tensor_of(name, float_type, dims).text(9, raw(values));
}
inline message int_tensor(std::string_view name, const std::vector<std::int64_t>& values) {
  return tensor_of(name, int64_type, {static_cast<std::int64_t>(values.size())}).text(9, raw(values));
}
inline message entry(std::string_view key, std::string_view value) { return message{}.text(1, key).text(2, value); }
inline message external_tensor(std::string_view name, const std::vector<std::int64_t>& dims,
                               std::initializer_list<message> entries) {
  message t = tensor_of(name, float_type, dims);
  for (const message& e : entries) t.with(13, e);
  return t.number(14, 1);
}

/// ValueInfoProto of a tensor; dims are numbers, or names where they do not start with a digit or '-'; "?" is unknown.
inline message info(std::string_view name, std::int64_t type = float_type,
                    const std::vector<std::string>& dims = {"2"}) {
  message shape;
  for (const std::string& d : dims) {
    message dim;
    if (d[0] == '-' || (d[0] >= '0' && d[0] <= '9'))
      dim.number(1, std::stoll(d));
    else if (d != "?")
      dim.text(2, d);
    shape.with(1, dim);
  }
  return message{}.text(1, name).with(2, message{}.with(1, message{}.number(1, type).with(2, shape)));
}
inline message untyped(std::string_view name) { return message{}.text(1, name); }

// AttributeProto of the common types.
inline message int_attribute(std::string_view name, std::int64_t v) {
  return message{}.text(1, name).number(3, v).number(20, 2);
}
inline message float_attribute(std::string_view name, float v) {
  return message{}.text(1, name).real(2, v).number(20, 1);
}
inline message string_attribute(std::string_view name, std::string_view v) {
  return message{}.text(1, name).text(4, v).number(20, 3);
}
inline message ints_attribute(std::string_view name, const std::vector<std::int64_t>& v) {
  return message{}.text(1, name).packed(8, v).number(20, 7);
}
inline message floats_attribute(std::string_view name, const std::vector<float>& v) {
  return message{}.text(1, name).packed_floats(7, v).number(20, 6);
}
inline message tensor_attribute(std::string_view name, const message& t) {
  return message{}.text(1, name).with(5, t).number(20, 4);
}
inline message graph_attribute(std::string_view name, const message& g) {
  return message{}.text(1, name).with(6, g).number(20, 5);
}
inline message reference(std::string_view name, std::string_view of, std::int64_t type) {
  return message{}.text(1, name).text(21, of).number(20, type);
}

inline message node(std::string_view op, const std::vector<std::string>& inputs,
                    const std::vector<std::string>& outputs, std::initializer_list<message> attributes = {},
                    std::string_view domain = {}) {
  message n;
  for (const std::string& i : inputs) n.text(1, i);
  for (const std::string& o : outputs) n.text(2, o);
  n.text(4, op);
  for (const message& a : attributes) n.with(5, a);
  if (!domain.empty()) n.text(7, domain);
  return n;
}

/// GraphProto.
inline message graph(const std::vector<message>& nodes, const std::vector<message>& inputs,
                     const std::vector<message>& outputs, const std::vector<message>& initializers = {},
                     const std::vector<message>& values = {}) {
  message g;
  g.text(2, "test");
  for (const message& m : nodes) g.with(1, m);
  for (const message& m : initializers) g.with(5, m);
  for (const message& m : inputs) g.with(11, m);
  for (const message& m : outputs) g.with(12, m);
  for (const message& m : values) g.with(13, m);
  return g;
}
inline message opset(std::int64_t version, std::string_view domain = {}) {
  return message{}.text(1, domain).number(2, version);
}
inline message model(const message& g, std::int64_t version = 21) {
  return message{}.number(1, 8).with(8, opset(version)).with(7, g);
}
inline message function(std::string_view domain, std::string_view name, const std::vector<std::string>& inputs,
                        const std::vector<std::string>& outputs, const std::vector<std::string>& attributes,
                        const std::vector<message>& nodes, std::int64_t version = 21) {
  message f;
  f.text(1, name).text(10, domain);
  for (const auto& i : inputs) f.text(4, i);
  for (const auto& o : outputs) f.text(5, o);
  for (const auto& a : attributes) f.text(6, a);
  for (const auto& n : nodes) f.with(7, n);
  return f.with(9, opset(version));
}

}  // namespace dnnopt_tests

#endif  // DNNOPT_TESTS_SUPPORT_ONNX_WRITER_HPP

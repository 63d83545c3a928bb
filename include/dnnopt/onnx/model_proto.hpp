// Owns ONNX's model messages as plain structs, and their reading from the file.
#ifndef DNNOPT_ONNX_MODEL_PROTO_HPP
#define DNNOPT_ONNX_MODEL_PROTO_HPP

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dnnopt/error.hpp>
#include <dnnopt/onnx/tensor_proto.hpp>
#include <dnnopt/onnx/wire_reader.hpp>

namespace dnnopt::onnx {

/// TensorShapeProto.Dimension: a number, a name, or neither.
struct dim_proto {
  std::optional<std::int64_t> value;
  std::string_view param;
};

/// TypeProto.
struct type_proto {
  enum class kind { none, tensor, sequence, map, optional, sparse_tensor, opaque };
  kind held = kind::none;
  std::int64_t element_type = 0;               ///< tensors; maps: the key's
  std::optional<std::vector<dim_proto>> dims;  ///< tensors
  std::shared_ptr<const type_proto> element;   ///< sequences, optionals, maps
};

/// ValueInfoProto.
struct value_info_proto {
  std::string_view name;
  type_proto type;
  std::size_t position = 0;
};

struct graph_proto;

/// AttributeProto::type.
enum class attribute_type : std::int64_t {
  undefined,
  float_value,
  int_value,
  string,
  tensor,
  graph,
  floats,
  ints,
  strings,
  tensors,
  graphs,
  sparse_tensor,
  sparse_tensors,
  type,
  types
};

/// AttributeProto.
struct attribute_proto {
  std::string_view name;
  std::string_view ref_attr_name;
  attribute_type type = attribute_type::undefined;
  float f = 0;
  std::int64_t i = 0;
  std::string_view s;  // bytes: not necessarily UTF-8
  std::optional<tensor_proto> t;
  std::shared_ptr<const graph_proto> g;
  std::vector<float> floats;
  std::vector<std::int64_t> ints;
  std::vector<std::string_view> strings;
  std::vector<tensor_proto> tensors;
  std::optional<sparse_tensor_proto> sparse;
  std::optional<type_proto> tp;
  std::size_t position = 0;
};

/// NodeProto.
struct node_proto {
  std::string_view name;
  std::string_view op_type;
  std::string_view domain;
  std::string_view overload;
  std::vector<std::string_view> inputs;
  std::vector<std::string_view> outputs;
  std::vector<attribute_proto> attributes;
  std::size_t position = 0;
};

/// GraphProto.
struct graph_proto {
  std::string_view name;
  std::vector<node_proto> nodes;
  std::vector<tensor_proto> initializers;
  std::vector<sparse_tensor_proto> sparse_initializers;
  std::vector<value_info_proto> inputs;
  std::vector<value_info_proto> outputs;
  std::vector<value_info_proto> values;
  std::size_t position = 0;
};

/// OperatorSetIdProto.
struct opset_proto {
  std::string_view domain;
  std::int64_t version = 0;
};

/// FunctionProto.
struct function_proto {
  std::string_view name;
  std::string_view domain;
  std::string_view overload;
  std::vector<std::string_view> inputs;
  std::vector<std::string_view> outputs;
  std::vector<std::string_view> attributes;
  std::vector<attribute_proto> attribute_defaults;
  std::vector<node_proto> nodes;
  std::vector<opset_proto> opsets;
  std::size_t position = 0;
};

/// ModelProto. Training information is left unread: it takes no part in inference.
struct model_proto {
  std::optional<std::int64_t> ir_version;
  std::string_view producer_name;
  std::vector<opset_proto> opsets;
  std::optional<graph_proto> graph;
  std::vector<function_proto> functions;
  std::vector<std::pair<std::string_view, std::string_view>> metadata;
};

/// Reads a model's messages. Errors: malformed_protobuf and malformed_model, naming the position.
class model_reader {
 public:
  /// `deepest` is the number of graphs and types that may lie in each other.
  explicit model_reader(std::size_t deepest = 64) : deepest_(deepest) {}

  [[nodiscard]] model_proto read_model(std::span<const std::byte> file) {
    model_proto m;
    wire_reader in(file, file.data());
    while (in.next()) {
      switch (in.field()) {
        case 1:
          m.ir_version = in.integer();
          break;
        case 2:
          m.producer_name = in.text();
          break;
        case 7:
          m.graph = read_graph(in.message(), in.position());
          break;
        case 8:
          m.opsets.push_back(read_opset(in.message()));
          break;
        case 14:
          m.metadata.push_back(read_entry(in.message()));
          break;
        case 25:
          m.functions.push_back(read_function(in.message(), in.position()));
          break;
        default:
          in.skip();
      }
    }
    return m;
  }

  [[nodiscard]] type_proto read_type(wire_reader in) {
    const deeper level(*this, in);
    type_proto t;
    while (in.next()) {
      switch (in.field()) {
        case 1:
          t.held = type_proto::kind::tensor;
          read_tensor_type(in.message(), t);
          break;
        case 4:
          t.held = type_proto::kind::sequence;
          t.element = read_element_type(in.message(), 1);
          break;
        case 5:
          t.held = type_proto::kind::map;
          t.element = read_element_type(in.message(), 2);
          break;
        case 7:
          t.held = type_proto::kind::opaque;
          in.skip();
          break;
        case 8:
          t.held = type_proto::kind::sparse_tensor;
          read_tensor_type(in.message(), t);
          break;
        case 9:
          t.held = type_proto::kind::optional;
          t.element = read_element_type(in.message(), 1);
          break;
        default:
          in.skip();
      }
    }
    return t;
  }

 private:
  // Counts how deep messages lie in each other, so that a file cannot exhaust the stack.
  class deeper {
   public:
    deeper(model_reader& reader, const wire_reader& in) : reader_(reader) {
      if (++reader_.depth_ > reader_.deepest_)
        in.fail("graphs or types lie in each other more than " + std::to_string(reader_.deepest_) + " deep");
    }
    deeper(const deeper&) = delete;
    deeper& operator=(const deeper&) = delete;
    ~deeper() { --reader_.depth_; }

   private:
    model_reader& reader_;
  };

  static opset_proto read_opset(wire_reader in) {
    opset_proto o;
    while (in.next()) {
      if (in.field() == 1)
        o.domain = in.text();
      else if (in.field() == 2)
        o.version = in.integer();
      else
        in.skip();
    }
    if (o.domain == "ai.onnx") o.domain = {};
    return o;
  }

  static void read_tensor_type(wire_reader in, type_proto& t) {
    while (in.next()) {
      if (in.field() == 1) {
        t.element_type = in.integer();
      } else if (in.field() == 2) {
        t.dims.emplace();
        wire_reader dims = in.message();
        while (dims.next()) {
          if (dims.field() == 1)
            t.dims->push_back(read_dim(dims.message()));
          else
            dims.skip();
        }
      } else {
        in.skip();
      }
    }
  }
  static dim_proto read_dim(wire_reader in) {
    dim_proto d;
    while (in.next()) {
      if (in.field() == 1)
        d.value = in.integer();
      else if (in.field() == 2)
        d.param = in.text();
      else
        in.skip();
    }
    return d;
  }
  std::shared_ptr<const type_proto> read_element_type(wire_reader in, std::uint32_t field) {
    auto element = std::make_shared<type_proto>();
    while (in.next()) {
      if (in.field() == field)
        *element = read_type(in.message());
      else
        in.skip();
    }
    return element;
  }

  value_info_proto read_value_info(wire_reader in, std::size_t position) {
    value_info_proto v;
    v.position = position;
    while (in.next()) {
      if (in.field() == 1)
        v.name = in.text();
      else if (in.field() == 2)
        v.type = read_type(in.message());
      else
        in.skip();
    }
    return v;
  }

  attribute_proto read_attribute(wire_reader in, std::size_t position) {
    attribute_proto a;
    a.position = position;
    const auto bytes_of = [](std::span<const std::byte> b) {
      return std::string_view(reinterpret_cast<const char*>(b.data()), b.size());
    };
    auto seen = attribute_type::undefined;  // files of the first IR versions leave the type out
    while (in.next()) {
      switch (in.field()) {
        case 1:
          a.name = in.text();
          break;
        case 2:
          a.f = in.float32();
          seen = attribute_type::float_value;
          break;
        case 3:
          a.i = in.integer();
          seen = attribute_type::int_value;
          break;
        case 4:
          a.s = bytes_of(in.bytes());
          seen = attribute_type::string;
          break;
        case 5:
          a.t = read_tensor_proto(in.message());
          seen = attribute_type::tensor;
          break;
        case 6:
          a.g = std::make_shared<graph_proto>(read_graph(in.message(), in.position()));
          seen = attribute_type::graph;
          break;
        case 7:
          in.floats(a.floats);
          seen = attribute_type::floats;
          break;
        case 8:
          in.integers(a.ints);
          seen = attribute_type::ints;
          break;
        case 9:
          a.strings.push_back(bytes_of(in.bytes()));
          seen = attribute_type::strings;
          break;
        case 10:
          a.tensors.push_back(read_tensor_proto(in.message()));
          seen = attribute_type::tensors;
          break;
        case 14:
          a.tp = read_type(in.message());
          seen = attribute_type::type;
          break;
        case 20:
          a.type = static_cast<attribute_type>(in.integer());
          break;
        case 21:
          a.ref_attr_name = in.text();
          break;
        case 22:
          a.sparse = read_sparse_tensor_proto(in.message());
          seen = attribute_type::sparse_tensor;
          break;
        default:
          in.skip();
      }
    }
    if (a.type == attribute_type::undefined) a.type = seen;
    if (a.name.empty())
      throw error(errc::bad_attribute, "at byte " + std::to_string(position) + ": an attribute has no name");
    return a;
  }

  node_proto read_node(wire_reader in, std::size_t position) {
    node_proto n;
    n.position = position;
    while (in.next()) {
      switch (in.field()) {
        case 1:
          n.inputs.push_back(in.text());
          break;
        case 2:
          n.outputs.push_back(in.text());
          break;
        case 3:
          n.name = in.text();
          break;
        case 4:
          n.op_type = in.text();
          break;
        case 5:
          n.attributes.push_back(read_attribute(in.message(), in.position()));
          break;
        case 7:
          n.domain = in.text();
          break;
        case 8:
          n.overload = in.text();
          break;
        default:
          in.skip();
      }
    }
    if (n.domain == "ai.onnx") n.domain = {};
    if (n.op_type.empty())
      throw error(errc::malformed_model, "at byte " + std::to_string(position) + ": a node has no operator");
    return n;
  }

  graph_proto read_graph(wire_reader in, std::size_t position) {
    const deeper level(*this, in);
    graph_proto g;
    g.position = position;
    while (in.next()) {
      switch (in.field()) {
        case 1:
          g.nodes.push_back(read_node(in.message(), in.position()));
          break;
        case 2:
          g.name = in.text();
          break;
        case 5:
          g.initializers.push_back(read_tensor_proto(in.message()));
          break;
        case 11:
          g.inputs.push_back(read_value_info(in.message(), in.position()));
          break;
        case 12:
          g.outputs.push_back(read_value_info(in.message(), in.position()));
          break;
        case 13:
          g.values.push_back(read_value_info(in.message(), in.position()));
          break;
        case 15:
          g.sparse_initializers.push_back(read_sparse_tensor_proto(in.message()));
          break;
        default:
          in.skip();
      }
    }
    return g;
  }

  function_proto read_function(wire_reader in, std::size_t position) {
    function_proto f;
    f.position = position;
    while (in.next()) {
      switch (in.field()) {
        case 1:
          f.name = in.text();
          break;
        case 4:
          f.inputs.push_back(in.text());
          break;
        case 5:
          f.outputs.push_back(in.text());
          break;
        case 6:
          f.attributes.push_back(in.text());
          break;
        case 7:
          f.nodes.push_back(read_node(in.message(), in.position()));
          break;
        case 9:
          f.opsets.push_back(read_opset(in.message()));
          break;
        case 10:
          f.domain = in.text();
          break;
        case 11:
          f.attribute_defaults.push_back(read_attribute(in.message(), in.position()));
          break;
        case 13:
          f.overload = in.text();
          break;
        default:
          in.skip();
      }
    }
    if (f.domain == "ai.onnx") f.domain = {};
    return f;
  }

  std::size_t deepest_;
  std::size_t depth_ = 0;
};

}  // namespace dnnopt::onnx

#endif  // DNNOPT_ONNX_MODEL_PROTO_HPP

"""Draws of models that are wholly of one type: float16, bfloat16 or float64 in inputs, weights, bodies and outputs. They are
drawn in float32, rounded to the type, and judged by what ONNX Runtime computes in float32."""
import dataclasses

import onnx
from onnx import numpy_helper

import draw_arithmetic  # noqa: F401: their draws are typed here
import draw_layers  # noqa: F401
import draw_programs
import draw_resampling  # noqa: F401
import draw_structure  # noqa: F401
from draw_core import *  # noqa: F403
from draw_opsets import allows, forms, parameter

BFLOAT16 = helper.tensor_dtype_to_np_dtype(TensorProto.BFLOAT16)
# The part of an element, and of the largest one, that roundings between the operators of a small model make.
PARTS = {np.dtype(np.float64): 1e-3, np.dtype(np.float16): 2e-2, np.dtype(BFLOAT16): 8e-2}
# Draws whose results do not jump where a sum is rounded.
CONTINUOUS = ("conv", "conv_transpose", "pool", "global_pool", "lrn", "normalization", "recurrent", "products", "losses", "softmax", "reduce", "cum_sum",
              "einsum", "attention", "rotary", "resize", "upsample", "grid_sample", "roi_align", "pad", "scatter", "gather", "where", "concat", "split")


def of_type(node, kind):
    """A node whose tensors of float32 are of another type, in its bodies as well."""
    copy = onnx.NodeProto()
    copy.CopyFrom(node)
    for attribute in copy.attribute:
        if attribute.name in ("to", "dtype") and attribute.i == TensorProto.FLOAT:
            attribute.i = onnx_type(kind)
        if attribute.HasField("t") and attribute.t.data_type == TensorProto.FLOAT:
            attribute.t.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(attribute.t).astype(kind)))
        if attribute.HasField("g"):
            for value in (*attribute.g.input, *attribute.g.output, *attribute.g.value_info):
                if value.type.tensor_type.elem_type == TensorProto.FLOAT:
                    value.type.tensor_type.elem_type = onnx_type(kind)
            held = [of_type(n, kind) for n in attribute.g.node]
            del attribute.g.node[:]
            attribute.g.node.extend(held)
    return copy


def typed(case, kind):
    """The case in another type; it is judged by the case itself, whose values are rounded to that type."""
    schema = None if case.nodes else onnx.defs.get_schema(case.op, case.opset, "")
    floating = [x is not None and np.asarray(x).dtype == np.float32 and k not in case.kept and not (schema and parameter(schema, k) == "tensor(float)")
                for k, x in enumerate(case.inputs)]
    rounded = [np.asarray(x).astype(kind) if f else x for x, f in zip(case.inputs, floating)]
    nodes = case.nodes and [of_type(n if isinstance(n, onnx.NodeProto) else helper.make_node(n[0], list(n[1]), list(n[2]), **n[3]), kind) for n in case.nodes]
    equal = dataclasses.replace(case, inputs=[x.astype(np.float32) if f else x if x is None else np.asarray(x) for x, f in zip(rounded, floating)])
    return dataclasses.replace(case, inputs=rounded, nodes=nodes, equal=equal, part=PARTS[np.dtype(kind)])


# Operators all of whose inputs and outputs are of the model's type.
OF_ONE_TYPE = ("MatMul", "Add", "Mul", "Softmax", "LogSoftmax", "LayerNormalization", "RMSNormalization", "Gelu", "Relu", "Swish", "Softplus", "Conv", "BatchNormalization",
               "InstanceNormalization", "GlobalAveragePool", "Gemm", "Tanh", "Sigmoid", "ConvTranspose", "MaxPool", "AveragePool")


def with_islands(r, case, kind):
    """Some operators are computed in another type between casts, as converters keep what rounds badly in float32."""
    nodes = []
    for k, node in enumerate(case.nodes):
        if node.op_type not in OF_ONE_TYPE or not chance(r, 0.3):
            nodes.append(node)
            continue
        other = pick(r, TensorProto.FLOAT, TensorProto.FLOAT, TensorProto.DOUBLE)
        reads = [name and f"i{k}_{n}" for n, name in enumerate(node.input)]
        nodes += [helper.make_node("Cast", [name], [cast], to=other) for name, cast in zip(node.input, reads) if name]
        island = onnx.NodeProto()
        island.CopyFrom(node)
        island.input[:], island.output[:] = reads, [f"i{k}_y"]
        nodes += [island, helper.make_node("Cast", [f"i{k}_y"], [node.output[0]], to=onnx_type(kind))]
    return dataclasses.replace(case, nodes=nodes)


class Network:
    """Nodes and inputs of a model that is drawn from its input to its output."""

    def __init__(self, r):
        self.r, self.nodes, self.inputs, self.fixed, self.kept = r, [], [], [], []

    def input(self, x, constant=True):
        self.inputs.append(np.asarray(x))
        if constant:
            self.fixed.append(len(self.inputs) - 1)
        return f"x{len(self.inputs) - 1}"

    def weight(self, *shape):
        return self.input(real(self.r, list(shape), spread=0.5), chance(self.r, 0.9))

    def scales(self, *numbers):
        self.kept.append(len(self.inputs))
        return self.input(np.float32(numbers))

    def ints(self, *numbers):
        return self.input(np.array(numbers, np.int64))

    def __call__(self, op, *reads, outputs=1, **attributes):
        out = [f"v{len(self.nodes)}_{k}" for k in range(outputs)]
        self.nodes.append(helper.make_node(op, list(reads), out, **attributes))
        return out[0] if outputs == 1 else out

    def case(self, *results, opset=23, symbolic=False):
        self.nodes += [helper.make_node("Identity", [v], [f"y{k}"]) for k, v in enumerate(results)]
        return Case("+".join(n.op_type for n in self.nodes)[:60], opset, self.inputs, {}, len(results), tuple(self.fixed), self.nodes, symbolic=symbolic, kept=tuple(self.kept))


def of_images(r):
    net, c, o = Network(r), pick(r, 1, 3, 4), pick(r, 4, 6, 8)
    x = net.input(real(r, [dim(r, 2, 0), c, 9, 8]), False)
    x = net("Conv", x, net.weight(o, c, 3, 3), net.weight(o), pads=[1, 1, 1, 1], strides=[pick(r, 1, 2), 1])
    x = net("BatchNormalization", x, net.weight(o), net.weight(o), net.weight(o), net.input(np.abs(real(r, [o])) + np.float32(0.5)))
    x = net(pick(r, "Relu", "HardSwish", "Elu", "Mish", "LeakyRelu", "Sigmoid"), x)
    if chance(r, 0.5):
        x = net("Add", x, net("Conv", x, net.weight(o, 1, 3, 3), group=o, pads=[1, 1, 1, 1]))
    if chance(r, 0.4):
        x = net("ConvTranspose", x, net.weight(o, o, 2, 2), strides=[2, 2])
    if chance(r, 0.5):
        x = net("Resize", x, "", net.scales(1, 1, 2, pick(r, 1.5, 2)), mode=pick(r, "nearest", "linear"))
    if chance(r, 0.5):
        x = net(pick(r, "MaxPool", "AveragePool"), x, kernel_shape=[2, 2], strides=[2, 2])
    if chance(r, 0.4):
        x = net("InstanceNormalization", x, net.weight(o), net.weight(o), epsilon=0.1)
    if chance(r, 0.4):
        x = net("Pad", x, net.ints(0, 0, 1, 0, 0, 0, 1, 2), mode=pick(r, "constant", "reflect", "edge"))
    if chance(r, 0.3):
        return net.case(x)
    x = net("Flatten", net("GlobalAveragePool", x))
    x = net("Gemm", x, net.weight(5, o), net.weight(5), transB=1)
    return net.case(net(pick(r, "Softmax", "LogSoftmax", "Tanh"), x))


def of_tokens(r):
    net, heads, size, batch, length = Network(r), pick(r, 1, 2), pick(r, 2, 4), dim(r, 2, 0), dim(r, 5, 0)
    width = heads * size
    x = net("Gather", net.weight(9, width), net.input(integer(r, [batch, length], np.int64, low=0, high=8), False))
    norm = lambda v: net("LayerNormalization", v, net.weight(width), net.weight(width), axis=-1) if chance(r, 0.6) else net("RMSNormalization", v, net.weight(width))  # noqa: E731
    for _ in range(int(r.integers(1, 3))):
        h = norm(x)
        parts = []
        for perm in ([0, 2, 1, 3], [0, 2, 3, 1], [0, 2, 1, 3]):
            v = net("Add", net("MatMul", h, net.weight(width, width)), net.weight(width))
            parts.append(net("Transpose", net("Reshape", v, net.ints(0, 0, heads, size)), perm=perm))
        scores = net("Mul", net("MatMul", parts[0], parts[1]), net.input(np.float32(size ** -0.5)))
        if chance(r, 0.5):
            shape = net("Shape", scores)
            mask = net("Trilu", net("ConstantOfShape", shape, value=numpy_helper.from_array(np.float32([1]))), upper=0)
            scores = net("Where", net("Cast", mask, to=TensorProto.BOOL), scores, net.input(np.float32(-1e4)))
        v = net("MatMul", net("Softmax", scores, axis=-1), parts[2])
        v = net("Reshape", net("Transpose", v, perm=[0, 2, 1, 3]), net.ints(0, 0, width))
        x = net("Add", x, net("MatMul", v, net.weight(width, width)))
        h = net(pick(r, "Gelu", "Relu", "Swish", "Softplus"), net("MatMul", norm(x), net.weight(width, 2 * width)))
        x = net("Add", x, net("MatMul", h, net.weight(2 * width, width)))
    if chance(r, 0.5):
        x = net(pick(r, "ReduceMean", "ReduceMax", "ReduceL2", "ReduceLogSumExp", "ReduceSum"), x, net.ints(1), keepdims=int(r.integers(2)))
    return net.case(x, opset=24)


def of_steps(r):
    net, op = Network(r), pick(r, "RNN", "GRU", "LSTM")
    gates, steps, batch, width, hidden = {"RNN": 1, "GRU": 3, "LSTM": 4}[op], int(r.integers(1, 5)), dim(r, 3, 0), dim(r, 4, 0), dim(r, 4, 0)
    direction = pick(r, "forward", "reverse", "bidirectional")
    d = 2 if direction == "bidirectional" else 1
    x = net.input(real(r, [steps, batch, width]), False)
    for _ in range(int(r.integers(1, 3))):
        reads = [x, net.weight(d, gates * hidden, width), net.weight(d, gates * hidden, hidden), net.weight(d, 2 * gates * hidden) if chance(r, 0.7) else ""]
        if chance(r, 0.4):
            reads += [net.input(integer(r, [batch], np.int32, low=1, high=steps), False) if chance(r, 0.5) else "", net.weight(d, batch, hidden)]
        extra = {"linear_before_reset": int(r.integers(2))} if op == "GRU" else {}
        y = net(op, *reads, outputs=2, hidden_size=hidden, direction=direction, **extra)
        x, width = net("Reshape", net("Transpose", y[0], perm=[0, 2, 1, 3]), net.ints(0, 0, d * hidden)), d * hidden
    return net.case(net("Add", net("MatMul", x, net.weight(width, 3)), net.weight(3)), y[1])


@draws
def draw_typed(r):
    """A layer, a network or nested control flow, in float16, bfloat16 or float64."""
    kind = pick(r, np.float16, BFLOAT16, BFLOAT16, np.float64)
    symbolic = chance(r, 0.3)
    what = pick(r, "layer", "layer", of_images, of_tokens, of_steps, "flow")
    if what == "flow":
        case = draw_programs.draw_flow(r)
        case.opset = 23
        return typed(case, kind)
    if what != "layer":
        case = dataclasses.replace(typed(what(r), kind), symbolic=symbolic)
        return with_islands(r, case, kind) if chance(r, 0.4) else case
    for _ in range(200):
        case = DRAWS[pick(r, *CONTINUOUS)](r)
        if case.nodes or case.inputs[0] is None or np.asarray(case.inputs[0]).dtype != np.float32 or not np.isfinite(case.inputs[0]).all():
            continue
        if kind != np.float64:
            newest = [(first, last) for first, last, s in forms(case.op) if last >= 22 and allows(s, case)]
            if not newest or case.op in ("ReduceProd", "Det", "LpPool"):
                continue
            case.opset = max(case.opset, min(23, newest[-1][1]), newest[-1][0])
        return dataclasses.replace(typed(case, kind), symbolic=symbolic)
    raise AssertionError("no draw of 200 is of numbers that can be typed")

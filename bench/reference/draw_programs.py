"""Draws of what the other families leave out: structure by inputs, control flow with nested bodies, attention, quantized
graphs and chains of operators that fuse."""
from onnx import numpy_helper

from draw_core import *  # noqa: F403


def of_nodes(nodes, inputs, outputs=1, opset=21, constant=(), loose=0.0, name=""):
    return Case(name or "+".join(n[0] for n in nodes)[:60], opset, inputs, {}, outputs, constant, nodes, loose)


@draws
def draw_split(r):
    rank = int(r.integers(1, 4))
    shape = dims(r, rank, 7, 0)
    axis = int(r.integers(-rank, rank))
    x = values(r, shape, pick(r, np.float32, np.int64, np.bool_, np.float16))
    n = int(r.integers(1, 4))
    cuts = np.sort(r.integers(0, shape[axis] + 1, n - 1))
    sizes = np.diff(np.concatenate([[0], cuts, [shape[axis]]])).astype(np.int64)
    if chance(r, 0.3):
        return Case("Split", pick(r, 18, 21), [x], {"axis": axis, "num_outputs": min(n, shape[axis])}, min(n, shape[axis]))
    if chance(r, 0.2):
        return Case("Split", 11, [x], {"axis": axis, "split": sizes.tolist()}, n)
    return Case("Split", pick(r, 13, 18), [x, sizes], {"axis": axis}, n, (1,) if chance(r, 0.5) else ())


@draws
def draw_concat(r):
    rank = int(r.integers(1, 5))
    shape = dims(r, rank, 5)
    axis = int(r.integers(-rank, rank))
    dtype = pick(r, np.float32, np.int64, np.float64, np.bool_, np.uint8, np.float16)
    parts = []
    for _ in range(int(r.integers(1, 6))):
        own = list(shape)
        own[axis] = dim(r, 4, 0.15)
        parts.append(values(r, own, dtype))
    return Case("Concat", 13, parts, {"axis": axis}, constant=tuple(k for k in range(1, len(parts)) if chance(r, 0.2)))


@draws
def draw_reshape(r):
    shape = dims(r, int(r.integers(0, 4)), 6, 0.06)
    x = values(r, shape, pick(r, np.float32, np.int64, np.float64))
    kind = pick(r, "reshape", "reshape", "squeeze", "unsqueeze", "flatten", "shape", "zero")
    constant = (1,) if chance(r, 0.5) else ()
    if kind == "squeeze":
        ones = [k for k, d in enumerate(shape) if d == 1]
        axes = [k if chance(r, 0.5) else k - len(shape) for k in ones if chance(r, 0.7)]
        return Case("Squeeze", 13, [x] + ([np.array(axes, np.int64)] if axes or chance(r, 0.3) and False else []), constant=constant if axes else ())
    if kind == "unsqueeze":
        count = int(r.integers(0, 3))
        rank = len(shape) + count
        axes = r.permutation(rank)[:count]
        return Case("Unsqueeze", 13, [x, np.where(r.random(count) < 0.5, axes, axes - rank).astype(np.int64)], constant=constant)
    if kind == "flatten":
        return Case("Flatten", 13, [x], {"axis": int(r.integers(-len(shape), len(shape) + 1))})
    if kind == "shape":
        attributes = {k: int(r.integers(-5, 6)) for k in ("start", "end") if chance(r, 0.7)}
        return Case("Shape", pick(r, 15, 19), [x], attributes)
    flat = list(shape)
    if flat and chance(r, 0.5):
        cut = int(r.integers(0, len(flat)))
        flat = flat[:cut] + [int(np.prod(flat[cut:]))]
    if chance(r, 0.4):
        flat.insert(int(r.integers(0, len(flat) + 1)), 1)
    for k in range(len(flat)):
        if k < len(shape) and flat[k] == shape[k] and chance(r, 0.3) and kind != "zero":
            flat[k] = 0
    if flat and 0 not in shape and chance(r, 0.5):
        flat[int(r.integers(0, len(flat)))] = -1
    return Case("Reshape", pick(r, 13, 19), [x, np.array(flat, np.int64)], {"allowzero": 1} if kind == "zero" else {}, constant=constant)


@draws
def draw_where(r):
    shape = dims(r, int(r.integers(0, 5)), 4)
    def part():
        own = [1 if chance(r, 0.3) else d for d in shape]
        return own[int(r.integers(0, len(own) + 1)):] if chance(r, 0.3) else own
    dtype = pick(r, np.float32, np.float64, np.int64, np.uint8, np.bool_, np.int32, np.float16)
    if dtype in (np.bool_, np.float16, np.float64) and chance(r, 0.8):
        dtype = np.float32
    return Case("Where", 16, [values(r, part(), np.bool_), values(r, part(), dtype, 0.2), values(r, part(), dtype, 0.2)])


@draws
def draw_generated(r):
    kind = pick(r, "Range", "ConstantOfShape", "EyeLike", "Range")
    if kind == "Range":
        dtype = pick(r, np.int64, np.int32, np.float32, np.float64, np.int16)
        start, delta = dtype(int(r.integers(-5, 6))), dtype(pick(r, 1, 2, -1, -3, 3))
        limit = dtype(int(r.integers(-9, 10)))
        if np.issubdtype(dtype, np.floating):
            start, delta, limit = dtype(start + 0.25), dtype(delta * 0.3), dtype(limit)
        return Case("Range", 11, [start, limit, delta], constant=tuple(k for k in range(3) if chance(r, 0.4)))
    if kind == "EyeLike":
        x = values(r, dims(r, 2, 6), pick(r, np.float32, np.int64))
        return Case("EyeLike", 9, [x], {"k": int(r.integers(-6, 7))} | ({"dtype": onnx_type(pick(r, np.float32, np.int32, np.uint8, np.float64))} if chance(r, 0.5) else {}))
    dtype = pick(r, np.float32, np.int64, np.bool_, np.float16, np.int8)
    return Case(kind, pick(r, 9, 20), [np.array(dims(r, int(r.integers(0, 4)), 4, 0.1), np.int64)],
                {"value": numpy_helper.from_array(values(r, [1], dtype))} if chance(r, 0.8) else {}, constant=(0,) if chance(r, 0.4) else ())


@draws
def draw_attention(r):
    batch, heads, group = pick(r, 1, 2, 3), pick(r, 1, 2, 4), pick(r, 1, 1, 2)
    q_heads, size, v_size = heads * group, pick(r, 1, 4, 8), pick(r, 4, 8, 3)
    queries, keys, past = pick(r, 1, 3, 5, 9), pick(r, 1, 4, 7), pick(r, 0, 0, 3)
    attributes, flat = {}, chance(r, 0.4)
    if flat:
        attributes = {"q_num_heads": q_heads, "kv_num_heads": heads}
        q, k, v = real(r, [batch, queries, q_heads * size]), real(r, [batch, keys, heads * size]), real(r, [batch, keys, heads * v_size])
    else:
        q, k, v = real(r, [batch, q_heads, queries, size]), real(r, [batch, heads, keys, size]), real(r, [batch, heads, keys, v_size])
    total = keys + past
    mask = None
    if chance(r, 0.6):
        shape = pick(r, [queries, total], [1, 1, queries, total], [batch, 1, queries, total], [batch, q_heads, queries, total])
        mask = real(r, shape) if chance(r, 0.5) else r.random(shape) < 0.8
        if mask.dtype == bool:
            mask[..., 0] = True
    if chance(r, 0.4):
        attributes["is_causal"] = 1
    if chance(r, 0.4):
        attributes["scale"] = float(pick(r, 0.3, 1.0))
    if chance(r, 0.3):
        attributes["softcap"] = 2.0
    outputs = 1
    inputs = [q, k, v, mask]
    if past:
        inputs += [real(r, [batch, heads, past, size]), real(r, [batch, heads, past, v_size])]
        outputs = 3
    if chance(r, 0.2) and past:
        outputs = 4
        attributes["qk_matmul_output_mode"] = int(r.integers(0, 4))
    return Case("Attention", pick(r, 23, 24), inputs, attributes, outputs, loose=2e-3)


@draws
def draw_rotary(r):
    batch, heads, length, size = pick(r, 1, 2), pick(r, 1, 3), pick(r, 1, 4, 6), pick(r, 4, 8, 16)
    rotated = pick(r, 0, 0, size // 2)
    half = (rotated or size) // 2
    attributes = {"interleaved": int(r.integers(2))} | ({"rotary_embedding_dim": rotated} if rotated else {})
    flat = chance(r, 0.5)
    if flat:
        attributes["num_heads"] = heads
    x = real(r, [batch, length, heads * size] if flat else [batch, heads, length, size])
    if chance(r, 0.5):
        return Case("RotaryEmbedding", 23, [x, real(r, [10, half]), real(r, [10, half]), integer(r, [batch, length], low=0, high=9)], attributes)
    return Case("RotaryEmbedding", 23, [x, real(r, [batch, length, half]), real(r, [batch, length, half])], attributes)


# Bodies: values are floats of one shape, or scalars; each body is grown from what it may read.
def small_node(r, names, made):
    op = pick(r, "Add", "Sub", "Mul", "Max", "Neg", "Abs", "Tanh", "Sigmoid", "Where", "Identity", "Relu")
    a, b = pick(r, *names), pick(r, *names)
    if op == "Where":
        flag = f"{made}_c"
        return [helper.make_node("Less", [a, b], [flag]), helper.make_node("Where", [flag, b, a], [made])]
    return [helper.make_node(op, [a, b] if op in ("Add", "Sub", "Mul", "Max") else [a], [made])]


def info(name, kind=TensorProto.FLOAT, shape=None):
    return helper.make_tensor_value_info(name, kind, shape) if shape is not None else helper.make_value_info(name, helper.make_tensor_type_proto(kind, None))


def grown(r, names, prefix, depth, wanted):
    """Nodes over `names`, and the names of `wanted` results of the same shape (as far as broadcasting keeps it)."""
    nodes, known = [], list(names)
    for k in range(int(r.integers(1, 4))):
        made = f"{prefix}n{k}"
        kind = pick(r, "small", "small", "small", "if", "loop", "scan") if depth else "small"
        if kind == "small":
            nodes += small_node(r, known, made)
        elif kind == "if":
            flag = f"{made}_f"
            nodes += [helper.make_node("ReduceMean", [pick(r, *known)], [f"{made}_m"], keepdims=0),
                      helper.make_node("Greater", [f"{made}_m", "zero"], [flag])]
            branches = []
            for side in "te":
                body, out = grown(r, known, f"{made}{side}", depth - 1, 1)
                branches.append(helper.make_graph(body, f"{made}{side}", [], [info(out[0])]))
            nodes.append(helper.make_node("If", [flag], [made], then_branch=branches[0], else_branch=branches[1]))
        elif kind == "loop":
            inner = [f"{made}_i", f"{made}_c", f"{made}_v"]
            body, out = grown(r, known + [inner[2]], f"{made}l", depth - 1, 1)
            if chance(r, 0.5):
                body += [helper.make_node("ReduceMax", [out[0]], [f"{made}_x"], keepdims=0), helper.make_node("Less", [f"{made}_x", "big"], [f"{made}_go"])]
            else:
                body += [helper.make_node("Identity", [inner[1]], [f"{made}_go"])]
            stacked = chance(r, 0.5)
            outs = [info(f"{made}_go", TensorProto.BOOL), info(out[0])]
            if stacked:
                body.append(helper.make_node("Neg", [out[0]], [f"{made}_s"]))
                outs.append(info(f"{made}_s"))
            graph = helper.make_graph(body, f"{made}l", [info(inner[0], TensorProto.INT64, []), info(inner[1], TensorProto.BOOL, []), info(inner[2])], outs)
            names_out = [f"{made}_o"] + ([f"{made}_all"] if stacked else [])
            nodes.append(helper.make_node("Loop", [pick(r, "trips", "trips1"), pick(r, "yes", ""), pick(r, *known)], names_out, body=graph))
            if stacked:
                nodes += [helper.make_node("ReduceSum", [f"{made}_all", "axis0"], [f"{made}_r"], keepdims=0), helper.make_node("Add", [f"{made}_o", f"{made}_r"], [made])]
            else:
                nodes.append(helper.make_node("Identity", [f"{made}_o"], [made]))
        else:
            source, start = pick(r, *known), pick(r, *known)
            body, out = grown(r, ["zero", f"{made}_a", f"{made}_e"], f"{made}s", 0, 2)
            graph = helper.make_graph(body, f"{made}s", [info(f"{made}_a"), info(f"{made}_e")], [info(out[0]), info(out[1])])
            axis, way = int(r.integers(0, 2)), int(r.integers(0, 2))
            nodes += [helper.make_node("Gather", [start, "index0"], [f"{made}_0"], axis=axis),
                      helper.make_node("Scan", [f"{made}_0", source], [f"{made}_l", made], body=graph, num_scan_inputs=1,
                                       scan_input_axes=[axis], scan_output_axes=[axis], scan_input_directions=[way], scan_output_directions=[int(r.integers(0, 2))])]
        known.append(made)
    results = []
    for k in range(wanted):
        nodes.append(helper.make_node("Add", [known[-1 - k % len(known)], known[0]], [f"{prefix}o{k}"]))
        results.append(f"{prefix}o{k}")
    return nodes, results


@draws
def draw_flow(r):
    shape = [dim(r, 4, 0), dim(r, 4, 0)]
    inputs = {"x0": real(r, shape), "x1": real(r, shape), "zero": np.float32(0), "big": np.float32(3), "trips": np.int64(r.integers(0, 4)),
              "trips1": np.int64(2), "yes": np.bool_(True), "axis0": np.array([0], np.int64), "index0": np.int64(0)}
    nodes, results = grown(r, ["x0", "x1"], "t", 2, 2)
    names = {name: f"x{k}" for k, name in enumerate(inputs)}
    def renamed(node):
        copy = type(node)()
        copy.CopyFrom(node)
        copy.input[:] = [names.get(i, i) for i in node.input]
        for attribute in copy.attribute:
            if attribute.HasField("g"):
                held = [renamed(n) for n in attribute.g.node]
                del attribute.g.node[:]
                attribute.g.node.extend(held)
        return copy
    made = [renamed(n) for n in nodes]
    made += [helper.make_node("Identity", [results[k]], [f"y{k}"]) for k in range(2)]
    fixed = tuple(k for k, name in enumerate(inputs) if k > 1 and (name not in ("trips", "yes") or chance(r, 0.4)))
    return Case("flow", int(r.integers(13, 26)), list(inputs.values()), {}, 2, fixed, made)


@draws
def draw_quantized_graph(r):
    """DequantizeLinear, an operator, QuantizeLinear, as quantize_static writes them."""
    kind = pick(r, "Conv", "MatMul", "Gemm", "Add", "AveragePool", "Relu", "Concat", "Resize", "Softmax", "MaxPool", "Reshape", "Sigmoid", "Mul", "Transpose")
    code = pick(r, np.uint8, np.int8)
    size = lambda: np.float32(pick(r, 0.01, 0.02, 0.05, 0.1))  # noqa: E731
    point = lambda: code(pick(r, 0, 0, 3, 117 if code == np.uint8 else -7))  # noqa: E731
    inputs, nodes = [], []
    def value(x, constant=False):
        inputs.append(np.asarray(x))
        if constant:
            fixed.append(len(inputs) - 1)
        return f"x{len(inputs) - 1}"
    fixed = []
    def dequantized(shape, constant=False, axis=None, dtype=None):
        dtype = dtype or code
        x = value(integer(r, shape, dtype, low=np.iinfo(dtype).min, high=np.iinfo(dtype).max), constant)
        if axis is None:
            s, z = value(size(), True), value(dtype(0) if constant and dtype == np.int8 else point() if dtype == code else dtype(0), True)
        else:
            s, z = value(r.uniform(0.005, 0.05, shape[axis]).astype(np.float32), True), value(np.zeros(shape[axis], dtype), True)
        out = f"d{len(nodes)}"
        nodes.append(("DequantizeLinear", [x, s, z], [out], {} if axis is None else {"axis": axis}))
        return out
    b, c, h, w = dim(r, 3, 0), pick(r, 1, 3, 4, 8), pick(r, 3, 5, 8), pick(r, 3, 6)
    attributes, reads = {}, []
    if kind == "Conv":
        group = pick(r, 1, 1, c)
        out = pick(r, 1, 4, 5) * group
        reads = [dequantized([b, c, h, w]), dequantized([out, c // group, 3, 3], True, pick(r, None, 0), np.int8)]
        attributes = {"group": group, "pads": [1, 0, 1, 2], "strides": [1, pick(r, 1, 2)]}
    elif kind == "MatMul":
        reads = [dequantized([b, h, c]), dequantized([c, w], True, pick(r, None, 1), np.int8)]
    elif kind == "Gemm":
        reads = [dequantized([h, c]), dequantized([w, c], True, None, np.int8)]
        attributes = {"transB": 1}
    elif kind in ("Add", "Mul"):
        reads = [dequantized([b, c, h, w]), dequantized(pick(r, [b, c, h, w], [c, 1, 1], [1]), chance(r, 0.3))]
    elif kind == "Concat":
        reads, attributes = [dequantized([b, k, h]) for k in (c, 2, 1)], {"axis": 1}
    elif kind == "Resize":
        reads, attributes = [dequantized([1, c, h, w]), "", value(np.array([1, 1, 2, 2], np.float32), True)], {"mode": pick(r, "nearest", "linear")}
    elif kind == "Reshape":
        reads = [dequantized([b, c, h]), value(np.array([0, -1], np.int64), True)]
    else:
        reads = [dequantized([b, c, h, w])]
        if kind in ("AveragePool", "MaxPool"):
            attributes = {"kernel_shape": [2, 3], "strides": [1, 2], "pads": [1, 1, 0, 1]}
            if kind == "AveragePool" and chance(r, 0.5):
                attributes["count_include_pad"] = 1
        if kind == "Transpose":
            attributes = {"perm": [0, 2, 3, 1]}
    nodes.append((kind, reads, ["m"], attributes))
    last = "m"
    if chance(r, 0.3):
        nodes.append(("Relu", ["m"], ["n"], {}))
        last = "n"
    s, z = value(size(), True), value(point(), True)
    nodes.append(("QuantizeLinear", [last, s, z], ["q"], {}))
    nodes.append(("DequantizeLinear", ["q", s, z], ["y0"], {}))
    return of_nodes(nodes, inputs, 1, pick(r, 13, 19, 21), tuple(fixed))


@draws
def draw_chain(r):
    """Chains of a few operators over one tensor of any type, which passes rewrite and fuse."""
    dtype = pick(r, np.float32, np.float32, np.float32, np.float64, np.float16, np.int64, np.int32, np.uint8)
    floating = np.issubdtype(dtype, np.floating)
    shape = dims(r, int(r.integers(1, 5)), 5, 0.02)
    inputs, nodes, fixed = [values(r, shape, dtype)], [], []
    current, now = "x0", list(shape)
    def operand(x, constant=0.6):
        inputs.append(np.asarray(x))
        if chance(r, constant):
            fixed.append(len(inputs) - 1)
        return f"x{len(inputs) - 1}"
    for k in range(int(r.integers(2, 9))):
        op = pick(r, "binary", "binary", "unary", "unary", "transpose", "reshape", "slice", "reduce", "concat", "softmax", "matmul", "pad", "gather", "cast", "expand",
                  "layer", "cumsum", "tile", "square", "clip", "split", "flip")
        out, before = f"v{k}", current
        rank = len(now)
        if op == "binary":
            own = [1 if chance(r, 0.5) else d for d in now]
            own = own[int(r.integers(0, rank + 1)):]
            y = values(r, own, dtype)
            name = pick(r, "Add", "Sub", "Mul", "Max", "Min", "Div" if floating else "Add")
            if dtype in (np.uint8, np.float16) and name in ("Max", "Min"):
                name = "Add"
            if name == "Div":
                y = (np.abs(y) + dtype(1)).astype(dtype)
            other = before if chance(r, 0.1) else operand(y)
            nodes.append((name, [before, other] if chance(r, 0.6) or name == "Div" else [other, before], [out], {}))
        elif op == "unary":
            name = pick(r, "Relu", "Tanh", "Sigmoid", "Abs", "Neg", "Exp", "Erf", "Softplus", "LeakyRelu", "Floor", "Round", "Sqrt") if dtype == np.float32 else "Abs"
            if name == "Sqrt":
                nodes.append(("Abs", [before], [f"{out}a"], {}))
                before = f"{out}a"
            if name == "Exp":
                nodes.append(("Tanh", [before], [f"{out}a"], {}))
                before = f"{out}a"
            nodes.append((name, [before], [out], {}))
        elif op == "transpose" and rank > 1:
            perm = [int(p) for p in r.permutation(rank)]
            nodes.append(("Transpose", [before], [out], {"perm": perm}))
            now = [now[p] for p in perm]
        elif op == "reshape" and rank:
            cut = int(r.integers(0, rank))
            total = int(np.prod(now[cut:]))
            now = now[:cut] + pick(r, [total], [1, total], [total, 1])
            nodes.append(("Reshape", [before, operand(np.array(now, np.int64), 0.7)], [out], {"allowzero": 1}))
        elif op == "slice" and rank:
            axis = int(r.integers(0, rank))
            start, step = int(r.integers(0, now[axis] + 1)), pick(r, 1, 1, 2, -1)
            end = now[axis] if step > 0 else -now[axis] - 5
            nodes.append(("Slice", [before] + [operand(np.array([v], np.int64), 0.8) for v in (start, end, axis, step)], [out], {}))
            now = now[:axis] + [len(range(now[axis])[start:None:step])] + now[axis + 1:]
        elif op == "reduce" and rank and dtype in (np.float32, np.float64, np.int64, np.int32):
            axis, keep = int(r.integers(-rank, rank)), int(r.integers(2))
            if now[axis] == 0:
                continue
            nodes.append((pick(r, "ReduceSum", "ReduceMax", "ReduceMean" if floating else "ReduceSum"), [before, operand(np.array([axis], np.int64), 1)], [out], {"keepdims": keep}))
            axis %= rank
            now = now[:axis] + ([1] if keep else []) + now[axis + 1:]
        elif op == "concat" and rank and sum(now) < 40:
            axis = int(r.integers(0, rank))
            other = list(now)
            other[axis] = dim(r, 3, 0.1)
            nodes.append(("Concat", [before, operand(values(r, other, dtype), 0.4), before][: pick(r, 2, 3)], [out], {"axis": axis}))
            count = len(nodes[-1][1])
            now = list(now)
            now[axis] = now[axis] * (count - 1) + other[axis]
        elif op == "softmax" and rank and floating and dtype != np.float16:
            nodes.append(("Softmax", [before], [out], {"axis": int(r.integers(-rank, rank))}))
        elif op == "layer" and rank and dtype == np.float32 and now[-1] > 1:
            nodes.append(("LayerNormalization", [before, operand(real(r, [now[-1]])), operand(real(r, [now[-1]]))], [out], {"axis": -1}))
        elif op == "matmul" and rank >= 2 and floating and dtype != np.float16:
            y = real(r, [now[-1], dim(r, 5, 0)], dtype)
            nodes.append(("MatMul", [before, operand(y)], [out], {}))
            now = now[:-1] + [y.shape[1]]
        elif op == "pad" and rank and floating and dtype != np.float16 and sum(now) < 40:
            pads = r.integers(-1, 3, 2 * rank)
            pads = np.array([max(p, 0) if now[k % rank] < 3 else p for k, p in enumerate(pads)], np.int64)
            nodes.append(("Pad", [before, operand(pads, 0.8)], [out], {}))
            now = [d + int(pads[k] + pads[k + rank]) for k, d in enumerate(now)]
        elif op == "gather" and rank:
            axis = int(r.integers(0, rank))
            if now[axis] == 0:
                continue
            index = integer(r, dims(r, int(r.integers(0, 2)), 4, 0), np.int64, low=-now[axis], high=now[axis] - 1)
            nodes.append(("Gather", [before, operand(index)], [out], {"axis": axis}))
            now = now[:axis] + list(index.shape) + now[axis + 1:]
        elif op == "cast":
            nodes.append(("Cast", [before], [f"{out}c"], {"to": onnx_type(pick(r, np.float64, np.int64) if not floating else np.float64)}))
            nodes.append(("Cast", [f"{out}c"], [out], {"to": onnx_type(dtype)}))
        elif op == "expand":
            target = [dim(r, 3, 0)] + [d if d != 1 or chance(r, 0.5) else 3 for d in now]
            if rank >= 4:
                continue
            nodes.append(("Expand", [before, operand(np.array(target, np.int64), 0.7)], [out], {}))
            now = target
        elif op == "cumsum" and rank and dtype in (np.float32, np.int64, np.int32, np.float64):
            nodes.append(("CumSum", [before, operand(np.int64(r.integers(-rank, rank)), 0.8)], [out], {"exclusive": int(r.integers(2)), "reverse": int(r.integers(2))}))
        elif op == "tile" and rank and sum(now) < 30:
            repeats = r.integers(1, 3, rank)
            nodes.append(("Tile", [before, operand(repeats.astype(np.int64), 0.8)], [out], {}))
            now = [d * int(n) for d, n in zip(now, repeats)]
        elif op == "square":
            nodes.append(("Mul", [before, before], [out], {}) if not floating or chance(r, 0.5) else ("Pow", [before, operand(dtype(2), 1)], [out], {}))
            if dtype == np.float32:
                nodes[-1] = (nodes[-1][0], nodes[-1][1], [f"{out}s"], {})
                nodes.append(("Tanh", [f"{out}s"], [out], {}))
        elif op == "clip" and dtype != np.float16:
            nodes.append(("Clip", [before, operand(dtype(1)), operand(dtype(3))], [out], {}))
        elif op == "split" and rank and now[-1] >= 2:
            first = int(r.integers(1, now[-1]))
            nodes.append(("Split", [before, operand(np.array([first, now[-1] - first], np.int64), 0.8)], [out, f"{out}b"], {"axis": -1}))
            now = now[:-1] + [first]
        elif op == "flip" and rank:
            axis = int(r.integers(0, rank))
            nodes.append(("Slice", [before] + [operand(np.array([v], np.int64), 1) for v in (-1, -2**31, axis, -1)], [out], {}))
        else:
            continue
        current = out
    nodes.append(("Identity", [current], ["y0"], {}))
    return of_nodes(nodes, inputs, 1, pick(r, 18, 20, 21), tuple(k for k in fixed if k), loose=1e-2 if dtype == np.float16 else 2e-3)

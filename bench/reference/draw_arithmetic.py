"""Draws of element-wise operators, casts, quantization, reductions and selections."""
from draw_core import *  # noqa: F403


def broadcast_pair(r):
    shape = dims(r, int(r.integers(0, 4)), 4)
    def part(s):
        own = [1 if chance(r, 0.2) else d for d in s]
        return own[int(r.integers(0, len(own) + 1)):] if chance(r, 0.3) else own
    return part(shape), part(shape)


@draws
def draw_binary(r):
    op = pick(r, "Add", "Sub", "Mul", "Div", "Max", "Min", "Mod", "Pow", "Equal", "Less", "Greater", "LessOrEqual", "GreaterOrEqual", "PRelu", "Mean", "Sum")
    dtype = pick(r, np.float32, np.float32, np.float64, np.float16, np.int32, np.int64, np.int8, np.uint8, np.int16, np.uint16, np.uint32, np.uint64)
    floating = np.issubdtype(dtype, np.floating)
    a, b = broadcast_pair(r)
    x, y = values(r, a, dtype, 0.2), values(r, b, dtype, 0.2)
    attributes = {}
    if op == "Mod":
        attributes["fmod"] = 1 if floating else int(r.integers(2))
    if op in ("Div", "Mod") and not floating:
        y = np.where(y == 0, dtype(3), y).astype(dtype)
        if np.issubdtype(dtype, np.signedinteger):
            y = np.where((y == -1) & chance(r, 0.9), dtype(5), y).astype(dtype)
            x = np.where(x == np.iinfo(dtype).min, dtype(-7), x).astype(dtype)
    if op == "PRelu":
        if len(b) > len(a):
            y = values(r, [1], dtype)
        shape = np.broadcast_shapes(x.shape, y.shape) if x.size or True else None
        if shape != x.shape:
            y = values(r, [1] * min(1, x.ndim), dtype)
    if op == "Pow" and not floating:
        y = np.abs(y) % dtype(5)
    return Case(op, pick(r, 13, 16, 21) if op != "Pow" else pick(r, 13, 15), [x, y.astype(dtype)], attributes)


@draws
def draw_pow_mixed(r):
    first = pick(r, np.float32, np.float64, np.int32, np.int64, np.float16)
    second = pick(r, np.float32, np.float64, np.int32, np.int64)
    a, b = broadcast_pair(r)
    y = values(r, b, second)
    y = (np.abs(y) if np.issubdtype(first, np.integer) else y).astype(second)
    y = np.clip(y, -4, 4).astype(second)
    return Case("Pow", pick(r, 12, 13, 15), [values(r, a, first), y])


@draws
def draw_bits(r):
    op = pick(r, "BitShift", "BitShift", "BitwiseAnd", "BitwiseOr", "BitwiseXor")
    dtype = pick(r, *UNSIGNED) if op == "BitShift" else pick(r, *INTEGER)
    a, b = broadcast_pair(r)
    y = integer(r, b, dtype, 0.1)
    if op == "BitShift":
        y = (y % dtype(np.iinfo(dtype).bits)).astype(dtype)
    return Case(op, 18, [integer(r, a, dtype, 0.3), y], {"direction": pick(r, "LEFT", "RIGHT")} if op == "BitShift" else {})


UNARY = {"Abs": 13, "Neg": 13, "Floor": 13, "Ceil": 13, "Round": 11, "Sqrt": 13, "Reciprocal": 13, "Exp": 13, "Log": 13, "Sign": 13,
         "Relu": 14, "Sigmoid": 13, "Tanh": 13, "Erf": 13, "Softplus": 1, "Softsign": 1, "Sin": 7, "Cos": 7, "Tan": 7, "Asin": 7,
         "Acos": 7, "Atan": 7, "Sinh": 9, "Cosh": 9, "Asinh": 9, "Acosh": 9, "Atanh": 9, "IsNaN": 13, "IsInf": 10, "HardSwish": 14,
         "Mish": 18, "LeakyRelu": 16, "Elu": 6, "Selu": 6, "Celu": 12, "ThresholdedRelu": 10, "HardSigmoid": 6, "Shrink": 9, "Gelu": 20,
         "Identity": 13, "Not": 1, "BitwiseNot": 18}


@draws
def draw_unary(r):
    op = pick(r, *UNARY)
    dtype = pick(r, np.float32, np.float32, np.float64, np.float16)
    if op in ("Abs", "Neg", "Sign", "Shrink", "Relu") and chance(r, 0.4):
        dtype = pick(r, np.int8, np.int32, np.int64)
    if op == "Not":
        dtype = np.bool_
    if op == "BitwiseNot":
        dtype = pick(r, *INTEGER)
    attributes = {}
    if op in ("LeakyRelu", "Elu", "Celu", "ThresholdedRelu", "Selu") and chance(r, 0.6):
        attributes["alpha"] = float(pick(r, 0.5, 2.0, 0.1))
    if op == "Shrink":
        attributes = {"bias": float(pick(r, 0.0, 1.0)), "lambd": float(pick(r, 0.5, 1.0))}
    if op == "IsInf":
        attributes = {"detect_negative": int(r.integers(2)), "detect_positive": int(r.integers(2))}
        dtype = np.float32
    if op == "Gelu":
        attributes = {"approximate": pick(r, "none", "tanh")}
    return Case(op, max(UNARY[op], pick(r, 8, 13, 20)), [values(r, dims(r, int(r.integers(0, 4))), dtype, 0.3)], attributes)


@draws
def draw_clip(r):
    dtype = pick(r, np.float32, np.float32, np.float64, np.float16, np.int8, np.int32, np.int64, np.uint8)
    opset = 6 if dtype == np.float32 and chance(r, 0.2) else pick(r, 11, 12, 13) if dtype == np.float32 else 13
    low, high = values(r, [], dtype, 0.1), values(r, [], dtype, 0.1)
    if chance(r, 0.7) and low > high:
        low, high = high, low
    x = values(r, dims(r, int(r.integers(0, 3))), dtype, 0.2)
    if opset == 6:
        if not (np.isfinite(low) and np.isfinite(high)):
            low, high = np.float32(-1), np.float32(1)
        return Case("Clip", 7, [x], {"min": float(low), "max": float(high)})
    inputs = [x, low if chance(r, 0.8) else None, high if chance(r, 0.8) else None]
    return Case("Clip", opset, inputs, constant=(1, 2) if chance(r, 0.5) else ())


@draws
def draw_cast(r):
    first = pick(r, np.float32, np.float32, np.float64, np.float16, np.bool_, *INTEGER)
    second = pick(r, np.float32, np.float64, np.float16, np.bool_, *INTEGER)
    x = values(r, dims(r, int(r.integers(0, 3)), 5), first, 0.3)
    if np.issubdtype(first, np.floating) and chance(r, 0.5):
        x = (x * first(pick(r, 100, 1000, 1.0))).astype(first)
    if chance(r, 0.2):
        return Case("CastLike", 15, [x, values(r, [1], second)])
    return Case("Cast", pick(r, 9, 13, 19), [x], {"to": onnx_type(second)})


@draws
def draw_cast_small(r):
    """To a float of 8 bits or bfloat16 and back, which ONNX Runtime does inside of a graph."""
    kind = pick(r, TensorProto.FLOAT8E4M3FN, TensorProto.FLOAT8E4M3FNUZ, TensorProto.FLOAT8E5M2, TensorProto.FLOAT8E5M2FNUZ, TensorProto.BFLOAT16)
    dtype = pick(r, np.float32, np.float16)
    x = (real(r, dims(r, int(r.integers(0, 3)), 9), dtype, 0.2) * dtype(pick(r, 0.001, 0.01, 1, 30, 300))).astype(dtype)
    attributes = {"to": kind}
    if kind != TensorProto.BFLOAT16:
        attributes["saturate"] = int(r.integers(2))
    return Case("Cast", 19, [x], nodes=[("Cast", ["x0"], ["m"], attributes), ("Cast", ["m"], ["y0"], {"to": TensorProto.FLOAT})])


@draws
def draw_quantize_linear(r):
    opset = pick(r, 10, 13, 19, 21, 23)
    kinds = [np.uint8, np.int8] + ([np.uint16, np.int16] if opset >= 21 else [])
    kind = pick(r, *kinds)
    shape = dims(r, int(r.integers(1, 4)), 6)
    style = "tensor" if opset == 10 else pick(r, "tensor", "axis", "block" if opset >= 21 else "axis")
    attributes = {}
    scale_shape = []
    if style != "tensor":
        axis = int(r.integers(len(shape)))
        attributes["axis"] = axis - len(shape) if chance(r, 0.3) else axis
        if style == "axis":
            scale_shape = [shape[axis]]
        else:
            block = int(r.integers(1, 4))
            attributes["block_size"] = block
            scale_shape = list(shape)
            scale_shape[axis] = -(-shape[axis] // block)
    scale = np.asarray(r.uniform(0.01, 0.3, size=scale_shape), np.float32)
    if chance(r, 0.4):
        scale = np.asarray(np.float32(np.round(scale * 8 + 1) / 8), np.float32)
    x = (real(r, shape, np.float32, 0.05) * np.float32(pick(r, 1, 10, 1000))).astype(np.float32)
    x = np.where(np.isnan(x), np.float32(0), x)
    if chance(r, 0.5):
        x = (np.round(x * 4) / 4).astype(np.float32)
    inputs = [x, scale]
    if kind != np.uint8 or chance(r, 0.7):
        inputs.append(integer(r, scale_shape, kind, 0.1))
    if chance(r, 0.5):
        q = integer(r, shape, kind, 0.2, low=np.iinfo(kind).min, high=np.iinfo(kind).max)
        if chance(r, 0.1) and style == "tensor":
            q = integer(r, shape, np.int32, 0.1, low=-10**8, high=10**8)
            return Case("DequantizeLinear", opset, [q, scale], attributes)
        return Case("DequantizeLinear", opset, [q, scale] + [z.astype(kind) for z in inputs[2:]], attributes)
    return Case("QuantizeLinear", opset, inputs, attributes)


@draws
def draw_dynamic_quantize_linear(r):
    x = real(r, dims(r, int(r.integers(1, 3)), 9), spread=pick(r, 0.01, 1, 100))
    if chance(r, 0.3):
        x = np.abs(x) * np.float32(pick(r, -1, 1))
    if chance(r, 0.1):
        x = np.zeros_like(x)
    return Case("DynamicQuantizeLinear", 11, [x], outputs=3)


@draws
def draw_quantized_products(r):
    op = pick(r, "QLinearMatMul", "QLinearConv", "MatMulInteger", "ConvInteger")
    a_type = pick(r, np.uint8, np.int8) if op != "ConvInteger" else np.uint8
    b_type = pick(r, np.uint8, np.int8) if a_type == np.uint8 else np.int8
    def whole(shape, dtype):
        return integer(r, shape, dtype, low=np.iinfo(dtype).min, high=np.iinfo(dtype).max)
    if "MatMul" in op:
        m, k, n = dim(r, 5, 0), dim(r, 9, 0), dim(r, 5, 0)
        batch = dims(r, int(r.integers(0, 2)), 3, 0)
        a, b = whole(batch + [m, k], a_type), whole([k, n], b_type)
        channel = n
    else:
        n, c, o = 1, dim(r, 3, 0), dim(r, 4, 0)
        a, b = whole([n, c, int(r.integers(3, 7)), int(r.integers(3, 7))], a_type), whole([o, c, int(r.integers(1, 4)), int(r.integers(1, 4))], b_type)
        channel = o
    def scale(shape):
        return np.asarray(r.uniform(0.002, 0.05, size=shape), np.float32)
    per = [channel] if chance(r, 0.5) else []
    za, zb = whole([], a_type), whole(per, b_type)
    if "Conv" in op and b_type == np.int8:
        zb = np.zeros(per, b_type)
    if op == "MatMulInteger":
        return Case(op, 10, [a, b, za, zb][: int(r.integers(2, 5))], constant=(1, 3))
    if op == "ConvInteger":
        return Case(op, 10, [a, b, za, whole([], b_type)][: int(r.integers(2, 5))], {"pads": [1, 0, 1, 1]} if chance(r, 0.5) else {})
    # ONNX Runtime wants one zero point for all channels of a weight of uint8.
    if "Conv" in op and b_type == np.uint8:
        zb = np.full(per, int(zb.reshape(-1)[0]), b_type)
    inputs = [a, scale([]), za, b, scale(per), zb, scale([]) * np.float32(20), whole([], a_type)]
    if op == "QLinearConv" and chance(r, 0.5):
        inputs.append(integer(r, [channel], np.int32, low=-1000, high=1000))
    return Case(op, pick(r, 10, 21) if op == "QLinearMatMul" else 10, inputs, {"pads": [1, 0, 1, 1]} if "Conv" in op and chance(r, 0.5) else {},
                constant=tuple(range(1, 9)) if chance(r, 0.5) else ())


@draws
def draw_reduce(r):
    op = pick(r, "ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2", "ReduceSumSquare", "ReduceLogSum", "ReduceLogSumExp")
    dtype = pick(r, np.float32, np.float32, np.float64, np.int32, np.int64)
    if op in ("ReduceMax", "ReduceMin"):
        dtype = pick(r, np.float32, np.float32, np.float64, np.int32, np.int64, np.int8, np.uint8)
    if op == "ReduceLogSum":
        dtype = np.float32
    rank = int(r.integers(0, 5))
    shape = dims(r, rank, 5, 0.05)
    x = values(r, shape, dtype, 0.1 if chance(r, 0.3) and np.issubdtype(dtype, np.floating) else 0.0)
    if op == "ReduceLogSum":
        x = np.abs(x)
    if op == "ReduceMean" and 0 in shape:
        op = "ReduceSum"  # a mean of nothing is undefined
    if op == "ReduceLogSumExp" and np.issubdtype(dtype, np.integer):
        x = x.astype(np.float32)  # ONNX Runtime takes logarithms of integers in integers
    if op in ("ReduceL2", "ReduceSumSquare"):
        x = np.where(np.abs(x) > 1e20, dtype(0), x).astype(x.dtype)  # squares beyond single precision
    axes = [int(k) - (rank if chance(r, 0.3) else 0) for k in range(rank) if chance(r, 0.5)]
    if chance(r, 0.3):
        axes = axes[::-1]
    opset = pick(r, 11, 13, 18, 20)
    attributes = {"keepdims": int(r.integers(2))} if chance(r, 0.8) else {}
    as_input = opset >= 18 or (op == "ReduceSum" and opset >= 13)
    if as_input:
        if chance(r, 0.3):
            attributes["noop_with_empty_axes"] = int(r.integers(2))
        inputs = [x] + ([np.int64(axes)] if chance(r, 0.8) else [])
        return Case(op, opset, inputs, attributes, constant=(1,))
    if axes:
        attributes["axes"] = axes
    return Case(op, opset, [x], attributes)


@draws
def draw_arg(r):
    rank = int(r.integers(1, 4))
    shape = dims(r, rank, 5, 0)
    dtype = pick(r, np.float32, np.float32, np.float64, np.int32, np.int8, np.uint8)
    x = values(r, shape, dtype, 0.2 if chance(r, 0.3) else 0.0)
    if chance(r, 0.5):
        x = np.round(x)
    axis = int(r.integers(-rank, rank))
    return Case(pick(r, "ArgMax", "ArgMin"), pick(r, 12, 13), [x.astype(dtype)],
                {"axis": axis, "keepdims": int(r.integers(2)), "select_last_index": int(r.integers(2))})


@draws
def draw_top_k(r):
    rank = int(r.integers(1, 4))
    shape = dims(r, rank, 7, 0)
    axis = int(r.integers(-rank, rank))
    dtype = pick(r, np.float32, np.float32, np.float64, np.int32, np.int64)
    x = values(r, shape, dtype)
    if chance(r, 0.6):
        x = np.round(x)
    k = int(r.integers(0 if chance(r, 0.1) else 1, shape[axis] + 1))
    return Case("TopK", pick(r, 11, 24) if False else 11, [x.astype(dtype), np.int64([k])],
                {"axis": axis, "largest": int(r.integers(2)), "sorted": 1}, outputs=2, constant=(1,) if chance(r, 0.7) else ())


@draws
def draw_softmax(r):
    op = pick(r, "Softmax", "LogSoftmax", "Hardmax")
    rank = int(r.integers(1, 5))
    x = real(r, dims(r, rank, 5, 0.03), pick(r, np.float32, np.float32, np.float64) if op != "Hardmax" else np.float32)
    if chance(r, 0.2):
        x = real(r, x.shape, x.dtype.type, 0.3)
        x[np.isnan(x) | (x == np.inf)] = -np.inf
    if chance(r, 0.1):
        x[:] = -np.inf
    if op == "Hardmax" and chance(r, 0.5):
        x = np.round(x)
    return Case(op, pick(r, 7, 11, 13), [x], {"axis": int(r.integers(0, rank))} if chance(r, 0.7) else {})


@draws
def draw_cum_sum(r):
    rank = int(r.integers(1, 4))
    dtype = pick(r, np.float32, np.float64, np.int32, np.int64)
    axis = np.asarray(int(r.integers(-rank, rank)), pick(r, np.int32, np.int64))
    return Case("CumSum", pick(r, 11, 14), [values(r, dims(r, rank, 6), dtype), axis], {"exclusive": int(r.integers(2)), "reverse": int(r.integers(2))},
                constant=(1,))

"""Draws of every operator at every opset whose form of it takes the case, in every type that the form allows, and of the
forms that later opsets gave up: attributes that became inputs, broadcasting by axis, types by name."""
import dataclasses
import functools

import onnx
from onnx import numpy_helper

import draw_arithmetic  # noqa: F401: their draws are lifted here
import draw_layers  # noqa: F401
import draw_programs  # noqa: F401
import draw_resampling  # noqa: F401
import draw_structure  # noqa: F401
from draw_core import *  # noqa: F403

NEWEST = onnx.defs.onnx_opset_version()
NUMPY = {f"tensor({name})": kind for name, kind in
         dict(float=np.float32, double=np.float64, float16=np.float16, bool=np.bool_, string=np.object_,
              **{np.dtype(k).name: k for k in INTEGER}).items()}
# Draws of graphs, which have no one operator to lift, and those whose form no opset but their own has.
NOT_LIFTED = ("flow", "quantized_graph", "chain", "cast_small", "fused_products", "quantized_contrib", "blocks_of_codes",
              "layers_of_transformers", "opsets", "first_forms", "typed", "ml_features", "ml_labels", "ml_linear", "ml_trees",
              "ml_machines")


@functools.cache
def forms(op):
    """[(first opset, last opset, schema)] of an operator of ai.onnx."""
    found = sorted((s for s in onnx.defs.get_all_schemas_with_history() if s.domain == "" and s.name == op), key=lambda s: s.since_version)
    ends = [s.since_version - 1 for s in found[1:]] + [NEWEST]
    return [(s.since_version, end, s) for s, end in zip(found, ends) if not s.deprecated]


def allows(schema, case):
    """Whether a form of an operator has the case's attributes, inputs and outputs."""
    if any(name not in schema.attributes for name in case.attributes):
        return False
    if any(a.required and name not in case.attributes for name, a in schema.attributes.items()):
        return False
    count = len(case.inputs)
    return schema.min_input <= count <= schema.max_input and schema.min_output <= case.outputs <= schema.max_output


def parameter(schema, k):
    return schema.inputs[min(k, len(schema.inputs) - 1)].type_str


def kinds(schema, name):
    """The types of numpy that a type parameter of a form, or a type itself, allows."""
    for constraint in schema.type_constraints:
        if constraint.type_param_str == name:
            return [NUMPY[t] for t in constraint.allowed_type_strs if t in NUMPY]
    return [NUMPY[name]] if name in NUMPY else []


def of_kind(x, kind):
    """The values of x in another type: a word for each number where that is a string."""
    if kind == np.object_:
        return np.array([f"w{v}" for v in np.asarray(x).reshape(-1)], object).reshape(np.shape(x))
    if np.issubdtype(kind, np.unsignedinteger):
        x = np.abs(np.nan_to_num(np.asarray(x, np.float64) if x.dtype.kind == "f" else x))
    elif np.issubdtype(kind, np.integer):
        x = np.nan_to_num(np.asarray(x, np.float64)) if x.dtype.kind == "f" else x
    with np.errstate(all="ignore"):
        return np.asarray(np.clip(x, -100, 100) if np.issubdtype(kind, np.integer) and x.dtype.kind in "fiu" else x).astype(kind)


# Their integers are codes, whose extents the draws know.
OF_CODES = ("Cast", "QuantizeLinear", "DequantizeLinear", "QLinearConv", "QLinearMatMul", "OneHot", "BitShift")


def retyped(r, schema, case):
    """Gives each type parameter of the case another type that the form allows, often the first one's alone."""
    given = [k for k, x in enumerate(case.inputs) if x is not None]
    names = {k: parameter(schema, k) for k in given}
    floating = []
    for name in dict.fromkeys(names.values()):
        typed = [k for k in given if names[k] == name]
        now, known = np.asarray(case.inputs[typed[0]]).dtype.type, kinds(schema, name)
        if case.op in OF_CODES or case.op == "GridSample":
            known = [k for k in known if k in REAL] if now in REAL else []
        if case.op in ("Resize", "Upsample"):  # whether other integers are rounded is open
            known = [k for k in known if k in (*REAL, np.int32, np.int8, np.uint8)]
        if not known or now in known and chance(r, 0.4 if 0 in typed else 0.7):
            continue
        kind = pick(r, *known)
        for k in typed:
            case.inputs[k] = of_kind(np.asarray(case.inputs[k]), kind)
        if kind in REAL:
            floating += typed
        if kind == np.float16:
            case.loose = max(case.loose, 1e-2)
    if floating:
        case.equal = dataclasses.replace(case, inputs=[np.asarray(x, np.float32) if k in floating else x for k, x in enumerate(case.inputs)])


@draws
def draw_opsets(r):
    """An operator of another draw, at any opset whose form of it takes the case, in any type of the form."""
    names = [n for n in DRAWS if n not in NOT_LIFTED]
    for _ in range(50):
        case = DRAWS[pick(r, *names)](r)
        if case.nodes or case.attributes.get("domain"):
            continue
        taken = [(first, last, s) for first, last, s in forms(case.op) if last >= 5 and allows(s, case)]
        if not taken:
            continue
        first, last, schema = pick(r, *taken)
        case.opset = int(r.integers(max(first, 5), last + 1))
        with np.errstate(all="ignore"):
            retyped(r, schema, case)
        if case.equal is not None or case.opset < 7:
            lowest = next((f for f, e, _ in taken if e >= 7), 7)
            case.equal = dataclasses.replace(case.equal or case, opset=max(case.opset, lowest, 7), equal=None)
        case.symbolic = chance(r, 0.4)
        return case
    raise AssertionError("no draw of 50 has a form")


def by_axis(r, case_op, opset, dtype):
    """A binary operator of opsets 1 to 6: the second input's dims stand at an axis of the first."""
    shape = dims(r, int(r.integers(1, 5)), 4, 0)
    count = int(r.integers(0, len(shape) + 1))
    axis = int(r.integers(0, len(shape) - count + 1))
    attributes = {"broadcast": 1}
    if count and axis + count < len(shape) or chance(r, 0.3):
        attributes["axis"] = axis if axis < len(shape) else len(shape) - 1
        if not count:
            attributes.pop("axis")
    if chance(r, 0.2):
        return Case(case_op, opset, [values(r, shape, dtype), values(r, shape, dtype)], {})
    x, y = values(r, shape, dtype), values(r, shape[axis: axis + count] or [1], dtype)
    # onnx.reference broadcasts as later opsets do.
    aligned = y.reshape(y.shape + (1,) * (len(shape) - attributes["axis"] - y.ndim)) if "axis" in attributes else y
    return Case(case_op, opset, [x, y], attributes, equal=Case(case_op, 14, [x, aligned]))


def old_pad(r):
    shape = dims(r, int(r.integers(1, 5)), 4, 0)
    mode = pick(r, "constant", "edge", "reflect")
    pads = [int(r.integers(0, max(1, d) if mode != "constant" else 3)) for d in shape * 2]
    attributes = {"pads": pads, "mode": mode} | ({"value": float(pick(r, 0.0, 1.5, -2.0))} if chance(r, 0.5) else {})
    return Case("Pad", pick(r, *range(2, 11)), [values(r, shape, pick(r, np.float32, np.float64))], attributes)


def old_slice(r):
    shape = dims(r, int(r.integers(1, 4)), 6)
    axes = [int(k) for k in r.permutation(len(shape)) if chance(r, 0.7)] or [0]
    if chance(r, 0.3):
        axes = list(range(len(axes)))
    far = 2**31 - 1
    attributes = {"starts": [int(pick(r, *r.integers(-8, 9, 3), -far)) for _ in axes], "ends": [int(pick(r, *r.integers(-8, 9, 3), far)) for _ in axes]}
    if axes != list(range(len(axes))) or chance(r, 0.6):
        attributes["axes"] = [k - len(shape) if chance(r, 0.3) else k for k in axes]
    return Case("Slice", pick(r, *range(1, 10)), [values(r, shape, pick(r, np.float32, np.int64))], attributes)


def old_shapes(r):
    op = pick(r, "Squeeze", "Unsqueeze", "Split", "Upsample", "Tile")
    shape = dims(r, int(r.integers(1, 4)), 4, 0)
    if op == "Squeeze":
        ones = [k for k, d in enumerate(shape) if d == 1]
        opset = pick(r, *range(1, 13))
        axes = [k - len(shape) if opset >= 11 and chance(r, 0.4) else k for k in ones if chance(r, 0.7)]
        return Case(op, opset, [values(r, shape, pick(r, np.float32, np.int64, np.bool_))], {"axes": axes} if axes else {})
    if op == "Unsqueeze":
        opset, rank = pick(r, *range(1, 13)), len(shape) + int(r.integers(1, 3))
        axes = [int(k) for k in r.permutation(rank)[: rank - len(shape)]]
        return Case(op, opset, [values(r, shape, pick(r, np.float32, np.int64, np.bool_))], {"axes": [k - rank if opset >= 11 and chance(r, 0.4) else k for k in axes]})
    if op == "Split":
        opset, axis = pick(r, *range(2, 13)), int(r.integers(0, len(shape)))
        parts = int(r.integers(1, 4))
        attributes = {"axis": axis - len(shape) if opset >= 11 and chance(r, 0.4) else axis}
        if chance(r, 0.6):
            cuts = np.sort(r.integers(0, shape[axis] + 1, parts - 1))
            attributes["split"] = [int(d) for d in np.diff(np.concatenate([[0], cuts, [shape[axis]]]))]
        else:
            shape[axis] = parts * int(r.integers(1, 3))
        if axis == 0 and chance(r, 0.5):
            attributes.pop("axis")
        return Case(op, opset, [values(r, shape, pick(r, np.float32, np.int32))], attributes, parts)
    if op == "Upsample":
        scales = [1.0, 1.0] + [float(pick(r, 1, 2, 3, 1.5, 2.5)) for _ in range(2)]
        return Case(op, pick(r, 7, 8), [real(r, [dim(r, 2, 0), dim(r, 3, 0), dim(r, 4, 0), dim(r, 4, 0)])], {"scales": scales} | ({"mode": pick(r, "nearest", "linear")} if chance(r, 0.8) else {}))
    return Case(op, pick(r, *range(6, 29)), [values(r, shape, pick(r, np.float32, np.int64)), r.integers(0, 4, len(shape)).astype(np.int64)], constant=(1,) if chance(r, 0.6) else ())


def old_top_k(r):
    shape = dims(r, int(r.integers(1, 4)), 6, 0)
    axis = int(r.integers(-1, len(shape)))
    opset = pick(r, *range(1, 11))
    k = int(r.integers(1, shape[axis] + 1))
    x = np.round(values(r, shape, pick(r, np.float32, np.float64) if opset == 10 else np.float32))
    if opset < 10:
        return Case("TopK", opset, [x], {"axis": axis, "k": k}, 2)
    return Case("TopK", 10, [x, np.int64([k])], {"axis": axis}, 2, (1,) if chance(r, 0.6) else ())


def dropout(r):
    opset = pick(r, *range(7, 29))
    x = values(r, dims(r, int(r.integers(0, 4)), 4), pick(r, np.float32, np.float64, np.float16) if opset >= 10 else np.float32)
    outputs = int(r.integers(1, 3))
    if opset < 12:  # what the mask is that leaves all is open
        return Case("Dropout", opset, [x], {"ratio": float(pick(r, 0.1, 0.5, 0.0))} if chance(r, 0.7) else {})
    training = pick(r, None, False, True)
    ratio = np.array(0.0 if training else pick(r, 0.0, 0.3), pick(r, np.float32, np.float64)) if training or chance(r, 0.6) else None
    inputs = [x, ratio] + ([] if training is None else [np.bool_(training)])
    return Case("Dropout", opset, inputs, {"seed": 3} if chance(r, 0.3) else {}, outputs, pick(r, (), (1,), (1, 2), (2,)))


def batch_normalization(r):
    opset = pick(r, *range(7, 29))
    shape = [dim(r, 3, 0), dim(r, 4, 0)] + dims(r, int(r.integers(0, 4)), 3, 0)
    kind = pick(r, np.float32, np.float32, np.float64, np.float16)
    own = [shape[1]]
    attributes = {"epsilon": 1e-3} if chance(r, 0.5) else {}
    if chance(r, 0.4):
        attributes["momentum"] = float(pick(r, 0.5, 0.9, 0.0))
    if opset < 9 and chance(r, 0.5):
        attributes["spatial"] = int(r.integers(2))
        if not attributes["spatial"]:
            own = shape[1:]
    outputs = 1
    if opset >= 14 and chance(r, 0.4):
        attributes["training_mode"], outputs = 1, 3
    inputs = [real(r, shape, kind), real(r, own, kind), real(r, own, kind), real(r, own, kind), (np.abs(real(r, own, kind)) + kind(0.1)).astype(kind)]
    if opset >= 15 and chance(r, 0.4):
        other = pick(r, np.float32, np.float64)
        inputs[3:] = [x.astype(other) for x in inputs[3:]]
        if chance(r, 0.3):
            inputs[1:3] = [x.astype(other) for x in inputs[1:3]]
    return Case("BatchNormalization", opset, inputs, attributes, outputs, (1, 2, 3, 4) if chance(r, 0.6) else (), loose=2e-2 if kind == np.float16 else 1e-3)


def old_element_wise(r):
    op = pick(r, "Clip", "Cast", "ReduceSum", "ReduceMean", "ReduceMax", "ReduceL2", "ReduceLogSumExp", "Softmax", "LogSoftmax", "Hardmax", "LeakyRelu", "Gemm", "Reshape",
              "Gather", "Concat", "ArgMax", "ArgMin", "Flatten", "Identity", "Constant", "ConstantOfShape", "Shape", "Size", "Scatter", "DepthToSpace", "Sum", "Max", "Min", "Mean")
    shape = dims(r, int(r.integers(1, 5)), 4, 0)
    x, rank = real(r, shape), len(shape)
    if op == "Clip":
        attributes = {k: float(v) for k, v in (("min", -1), ("max", 1.5)) if chance(r, 0.7)}
        return Case(op, pick(r, *range(6, 11)), [x.astype(pick(r, np.float32, np.float32, np.float64, np.float16))], attributes)
    if op == "Cast":
        kind = pick(r, *REAL, np.bool_, *INTEGER)
        return Case(op, pick(r, *range(6, 29)), [of_kind(np.round(x * np.float32(3)), kind)], {"to": onnx_type(pick(r, *REAL, np.bool_, *INTEGER))})
    if op.startswith("Reduce"):
        axes = [int(k) for k in r.permutation(rank) if chance(r, 0.5)]
        opset = pick(r, *range(1, 13))
        attributes = {"axes": [k - rank if opset >= 11 and chance(r, 0.4) else k for k in axes]} if axes else {}
        return Case(op, opset, [x], attributes | ({"keepdims": int(r.integers(2))} if chance(r, 0.7) else {}))
    if op in ("Softmax", "LogSoftmax", "Hardmax"):
        opset = pick(r, *range(1, 29))
        return Case(op, opset, [x], {"axis": int(r.integers(-rank if opset >= 11 else 0, rank))} if chance(r, 0.7) else {})
    if op == "Gemm":
        m, k, n = dim(r, 4, 0), dim(r, 4, 0), dim(r, 4, 0)
        ta, tb = int(r.integers(2)), int(r.integers(2))
        return Case(op, pick(r, 7, 8, 9, 10), [real(r, [k, m] if ta else [m, k]), real(r, [n, k] if tb else [k, n]), real(r, pick(r, [m, n], [n], [1, n], [m, 1], [1]))],
                    {"transA": ta, "transB": tb, "alpha": float(pick(r, 1, 0.5)), "beta": float(pick(r, 1, 0.5, 0))}, constant=pick(r, (), (1, 2), (0,)))
    if op == "Reshape":
        target = np.int64(pick(r, [-1], [0, -1], [1] * 2 + [-1], list(shape)))
        return Case(op, pick(r, *range(5, 29)), [x, target], constant=(1,) if chance(r, 0.6) else ())
    if op == "Gather":
        axis = int(r.integers(0, rank))
        return Case(op, pick(r, *range(1, 29)), [x, integer(r, dims(r, int(r.integers(0, 3)), 3), pick(r, np.int32, np.int64), low=0, high=shape[axis] - 1)], {"axis": axis} if axis or chance(r, 0.5) else {})
    if op == "Concat":
        axis = int(r.integers(0, rank))
        return Case(op, pick(r, *range(4, 29)), [x, real(r, shape), x][: int(r.integers(1, 4))], {"axis": axis})
    if op in ("ArgMax", "ArgMin"):
        opset = pick(r, *range(1, 29))
        attributes = {"axis": int(r.integers(-rank if opset >= 11 else 0, rank))} if chance(r, 0.7) else {}
        return Case(op, opset, [np.round(x)], attributes | ({"keepdims": int(r.integers(2))} if chance(r, 0.6) else {}) | ({"select_last_index": int(r.integers(2))} if opset >= 12 and chance(r, 0.5) else {}))
    if op == "Flatten":
        return Case(op, pick(r, *range(1, 29)), [x], {"axis": int(r.integers(0, rank + 1))} if chance(r, 0.7) else {})
    if op == "Scatter":
        axis = int(r.integers(0, rank))
        index = np.argsort(r.random(shape), axis=axis).astype(pick(r, np.int32, np.int64))
        return Case(op, pick(r, 9, 10), [x, index, real(r, shape)], {"axis": axis} if axis or chance(r, 0.5) else {})
    if op == "DepthToSpace":
        b = int(r.integers(1, 4))
        return Case(op, pick(r, *range(1, 11)), [real(r, [dim(r, 2, 0), b * b * dim(r, 3, 0), dim(r, 3, 0), dim(r, 3, 0)])], {"blocksize": b})
    if op == "Constant":
        opset = pick(r, *range(7, 29))
        what = pick(r, "value", "value_int", "value_ints", "value_float", "value_floats", "value_string", "value_strings") if opset >= 12 else "value"
        value = {"value": numpy_helper.from_array(of_kind(np.round(x), pick(r, np.float32, np.float64, np.float16, np.int8, np.uint64, np.bool_, np.object_))), "value_int": 3, "value_ints": [1, -2], "value_float": 1.5,
                 "value_floats": [0.5, 2.0, -1.0], "value_string": "word", "value_strings": ["a", "bc"]}[what]
        return Case(op, opset, [], {what: value})
    if op == "ConstantOfShape":
        opset = pick(r, *range(9, 29))
        attributes = {"value": numpy_helper.from_array(of_kind(np.float32([3]), pick(r, *REAL, np.bool_, *INTEGER)))} if chance(r, 0.7) else {}
        return Case(op, opset, [np.int64(dims(r, int(r.integers(0, 4)), 4, 0.1))], attributes, constant=(0,) if chance(r, 0.5) else ())
    if op in ("Sum", "Max", "Min", "Mean"):
        opset = pick(r, *range(6, 29))
        parts = [values(r, shape if opset < 8 else [1 if chance(r, 0.3) else d for d in shape][int(r.integers(0, rank)):], np.float32) for _ in range(int(r.integers(1, 5)))]
        return Case(op, opset, parts)
    if op in ("Shape", "Identity", "Size"):
        kind = pick(r, np.float32, np.float16, np.float64, np.bool_, np.object_, *INTEGER)
        opset = pick(r, *range(1, 29))
        attributes = {k: int(r.integers(-rank - 1, rank + 2)) for k in ("start", "end") if op == "Shape" and opset >= 15 and chance(r, 0.5)}
        return Case(op, opset, [of_kind(x, kind)], attributes)
    return Case(op, pick(r, 6, 13, 16), [x], {"alpha": 0.2} if chance(r, 0.5) else {})


@draws
def draw_first_forms(r):
    """The forms that later opsets gave up, and attributes that no other draw gives."""
    kind = pick(r, old_pad, old_slice, old_shapes, old_shapes, old_top_k, dropout, batch_normalization, old_element_wise, old_element_wise, old_element_wise, old_element_wise, "axis")
    if kind == "axis":
        op = pick(r, "Add", "Sub", "Mul", "Div", "Pow", "Less", "Greater", "Equal", "And", "Or", "Xor")
        dtype = np.bool_ if op in ("And", "Or", "Xor") else np.int32 if op == "Equal" else np.float32
        case = by_axis(r, op, pick(r, 6, 1) if op in ("Add", "Sub", "Mul", "Div") else pick(r, 1, 6), dtype)
    else:
        case = kind(r)
    case.symbolic = chance(r, 0.4)
    return case

"""Draws of indexing, scattering and shape operators, and of Einsum."""
from draw_core import *  # noqa: F403


@draws
def draw_einsum(r):
    letters = "abcdef"[: int(r.integers(1, 5))]
    size = {c: dim(r, 4, 0.02) for c in letters}
    terms, arrays = [], []
    ellipsis = chance(r, 0.3)
    extra = dims(r, int(r.integers(0, 3)), 3, 0) if ellipsis else []
    dtype = pick(r, np.float32, np.float32, np.float64, np.int32, np.int64)
    for _ in range(int(r.integers(1, 4))):
        own = "".join(pick(r, *letters) for _ in range(int(r.integers(0, 4))))
        shape = [1 if size[c] != 0 and chance(r, 0.05) else size[c] for c in own]
        if ellipsis and chance(r, 0.8):
            at = int(r.integers(0, len(own) + 1))
            lead = [1 if chance(r, 0.2) else d for d in extra]
            shape = shape[:at] + lead + shape[at:]
            own = own[:at] + "..." + own[at:]
        terms.append(own)
        arrays.append(values(r, shape, dtype))
    used = sorted(set("".join(terms)) - {"."})
    out = [c for c in used if chance(r, 0.5)]
    r.shuffle(out)
    text = "".join(out)
    has = any("..." in t for t in terms)
    if has:
        at = int(r.integers(0, len(text) + 1))
        text = text[:at] + "..." + text[at:]
    equation = ",".join(terms) + ("->" + text if chance(r, 0.8) else "")
    return Case("Einsum", 12, arrays, {"equation": equation})


def index_of(r, extent, shape, dtype=np.int64):
    return integer(r, shape, dtype, low=-extent, high=extent - 1)


@draws
def draw_gather(r):
    op = pick(r, "Gather", "GatherElements", "GatherND")
    rank = int(r.integers(1, 4))
    shape = dims(r, rank, 5, 0)
    dtype = pick(r, np.float32, np.int32, np.int64, np.bool_, np.uint8)
    x = values(r, shape, dtype)
    kind = pick(r, np.int32, np.int64)
    if op == "Gather":
        axis = int(r.integers(-rank, rank))
        return Case(op, pick(r, 11, 13), [x, index_of(r, shape[axis], dims(r, int(r.integers(0, 3)), 4), kind)], {"axis": axis})
    if op == "GatherElements":
        axis = int(r.integers(-rank, rank))
        own = [int(r.integers(1, d + 1)) for d in shape]
        own[axis] = dim(r, 5)
        return Case(op, pick(r, 11, 13), [x, index_of(r, shape[axis], own, kind)], {"axis": axis})
    batch = int(r.integers(0, rank))
    depth = int(r.integers(1, rank - batch + 1))
    own = shape[:batch] + dims(r, int(r.integers(0, 3)), 3)
    index = np.stack([index_of(r, shape[batch + k], own) for k in range(depth)], axis=-1)
    return Case(op, pick(r, 12, 13), [x, index], {"batch_dims": batch})


@draws
def draw_scatter(r):
    op = pick(r, "ScatterElements", "ScatterND")
    rank = int(r.integers(1, 4))
    shape = dims(r, rank, 5, 0)
    opset = pick(r, 11, 13, 16, 18)
    dtype = pick(r, np.float32, np.float32, np.int32, np.int64)
    reduction = "none" if opset < 16 else pick(r, "none", "add", "mul", *(["max", "min"] if opset >= 18 else []))
    attributes = {"reduction": reduction} if opset >= 16 else {}
    x = values(r, shape, dtype)
    if op == "ScatterElements":
        axis = int(r.integers(-rank, rank))
        own = [int(r.integers(1, d + 1)) for d in shape]
        if reduction != "none":
            own[axis] = dim(r, 6)
            index = index_of(r, shape[axis], own)
        else:
            index = np.argsort(r.random(shape), axis=axis)[tuple(slice(0, d) for d in own)].astype(np.int64)
            index = np.where(r.random(own) < 0.3, index - shape[axis], index)
        attributes["axis"] = axis
        return Case(op, opset, [x, index, values(r, own, dtype)], attributes)
    depth = int(r.integers(1, rank + 1))
    total = int(np.prod(shape[:depth]))
    if reduction != "none":
        flat = r.integers(0, total, size=dim(r, 6))
    else:
        flat = r.permutation(total)[: int(r.integers(0, total + 1))]
    index = np.stack(np.unravel_index(flat, shape[:depth]), axis=-1).astype(np.int64)
    index = np.where(r.random(index.shape) < 0.3, index - np.int64(shape[:depth]), index)
    return Case(op, opset, [x, index, values(r, list(index.shape[:-1]) + shape[depth:], dtype)], attributes)


@draws
def draw_one_hot(r):
    rank = int(r.integers(0, 3))
    depth = int(r.integers(1, 6))
    index = integer(r, dims(r, rank, 4), np.int64, low=-depth - 2, high=depth + 1)
    if chance(r, 0.3):
        index = index.astype(np.float32)
    hot = pick(r, np.float32, np.int64)
    axis = int(r.integers(-rank - 1, rank + 1))
    return Case("OneHot", 11, [index, np.asarray(pick(r, depth, [depth]), np.int64), values(r, [2], hot)], {"axis": axis}, constant=(1,) if chance(r, 0.8) else ())


@draws
def draw_trilu(r):
    shape = dims(r, int(r.integers(2, 4)), 5)
    inputs = [values(r, shape, pick(r, np.float32, np.int64, np.float64))]
    if chance(r, 0.8):
        inputs.append(np.asarray(int(r.integers(-7, 8)), np.int64))
    return Case("Trilu", 14, inputs, {"upper": int(r.integers(2))}, constant=(1,) if chance(r, 0.5) else ())


@draws
def draw_center_crop_pad(r):
    rank = int(r.integers(1, 4))
    axes = sorted({int(r.integers(rank)) for _ in range(2)})
    attributes = {"axes": [k - rank if chance(r, 0.3) else k for k in axes]} if chance(r, 0.5) else {}
    count = len(attributes.get("axes", range(rank)))
    return Case("CenterCropPad", 18, [values(r, dims(r, rank, 6, 0), pick(r, np.float32, np.int64)), np.int64([int(r.integers(1, 9)) for _ in range(count)])],
                attributes, constant=(1,))


@draws
def draw_col2im(r):
    spatial = 2  # of one or three ONNX Runtime adds up other elements than the text says
    block = [int(r.integers(1, 4)) for _ in range(spatial)]
    dilations = [int(r.integers(1, 3)) for _ in range(spatial)]
    strides = [int(r.integers(1, 3)) for _ in range(spatial)]
    pads = [int(r.integers(0, 2)) for _ in range(2 * spatial)]
    image = [max(1, (b - 1) * d + 1 - pads[k] - pads[k + spatial]) + int(r.integers(0, 5)) for k, (b, d) in enumerate(zip(block, dilations))]
    blocks = [(image[k] + pads[k] + pads[k + spatial] - (block[k] - 1) * dilations[k] - 1) // strides[k] + 1 for k in range(spatial)]
    if min(blocks) < 1:
        return draw_col2im(r)
    c = int(r.integers(1, 3))
    return Case("Col2Im", 18, [real(r, [int(r.integers(1, 3)), c * int(np.prod(block)), int(np.prod(blocks))]), np.int64(image), np.int64(block)],
                {"dilations": dilations, "strides": strides, "pads": pads}, constant=(1, 2))


@draws
def draw_unique(r):
    shape = dims(r, int(r.integers(1, 4)), 4)
    attributes = {"sorted": int(r.integers(2))}
    if chance(r, 0.6):
        attributes["axis"] = int(r.integers(-len(shape), len(shape)))
    return Case("Unique", 11, [np.round(values(r, shape, pick(r, np.float32, np.int64)))], attributes, outputs=int(r.integers(1, 5)))


@draws
def draw_pad(r):
    rank = int(r.integers(1, 4))
    shape = dims(r, rank, 5, 0)
    mode = pick(r, "constant", "constant", "edge", "reflect", "wrap")
    opset = 19 if mode == "wrap" else pick(r, 11, 13, 18, 19)
    axes = [k for k in range(rank) if chance(r, 0.6)] if opset >= 18 and chance(r, 0.4) else None
    own = list(range(rank)) if axes is None else axes
    if not own:
        own = axes = [0]
    begin = [int(r.integers(-1 if mode == "constant" and shape[k] > 2 else 0, shape[k] if mode != "constant" else 3)) for k in own]
    end = [int(r.integers(-1 if mode == "constant" and shape[k] > 2 else 0, shape[k] if mode != "constant" else 3)) for k in own]
    x = values(r, shape, pick(r, np.float32, np.int64, np.int32))
    inputs = [x, np.int64(begin + end)]
    if mode == "constant" and chance(r, 0.5):
        inputs.append(values(r, [], x.dtype.type))
    if axes is not None:
        inputs += [None] * (3 - len(inputs)) + [np.int64([k - rank if chance(r, 0.3) else k for k in axes])]
    return Case("Pad", opset, inputs, {"mode": mode}, constant=(1, 2, 3))


@draws
def draw_slice(r):
    rank = int(r.integers(1, 4))
    shape = dims(r, rank, 6)
    axes = [k for k in range(rank) if chance(r, 0.7)] or [0]
    inputs = [values(r, shape, pick(r, np.float32, np.int64))]
    far = np.iinfo(np.int64).max
    inputs.append(np.int64([int(pick(r, r.integers(-8, 9), 0, far, -far)) for _ in axes]))
    inputs.append(np.int64([int(pick(r, r.integers(-8, 9), far, -far, -1)) for _ in axes]))
    inputs.append(np.int64([k - rank if chance(r, 0.3) else k for k in axes]))
    inputs.append(np.int64([int(pick(r, 1, 1, 2, -1, -2, 3)) for _ in axes]))
    # ONNX Runtime takes the largest integer as the end in either direction.
    inputs[2] = np.where((inputs[4] < 0) & (inputs[2] == far), 7, inputs[2])
    return Case("Slice", pick(r, 10, 11, 13), inputs, constant=(1, 2, 3, 4))


@draws
def draw_rearrange(r):
    op = pick(r, "DepthToSpace", "SpaceToDepth", "Tile", "Expand", "Transpose", "ReverseSequence", "Compress", "NonZero", "EyeLike", "Size", "Flatten")
    dtype = pick(r, np.float32, np.int32, np.int64, np.uint8)
    if op == "DepthToSpace":
        b = int(r.integers(1, 3))
        return Case(op, pick(r, 11, 13), [real(r, [1, b * b * dim(r, 3, 0), dim(r, 4, 0), dim(r, 4, 0)])], {"blocksize": b, "mode": pick(r, "DCR", "CRD")})
    if op == "SpaceToDepth":
        b = int(r.integers(1, 3))
        return Case(op, 13, [real(r, [1, dim(r, 3, 0), b * dim(r, 3, 0), b * dim(r, 3, 0)])], {"blocksize": b})
    shape = dims(r, int(r.integers(1, 4)), 4)
    x = values(r, shape, dtype)
    if op == "Tile":
        return Case(op, 13, [x, np.int64([int(r.integers(0 if chance(r, 0.1) else 1, 4)) for _ in shape])], constant=(1,))
    if op == "Expand":
        target = [int(r.integers(1, 4)) if d == 1 else pick(r, d, 1) for d in shape]
        target = dims(r, int(r.integers(0, 2)), 3) + target[int(r.integers(0, len(shape))) if chance(r, 0.2) else 0:]
        return Case(op, 13, [x, np.int64(target)], constant=(1,))
    if op == "Transpose":
        return Case(op, 13, [x], {"perm": [int(k) for k in r.permutation(len(shape))]} if chance(r, 0.8) else {})
    if op == "ReverseSequence":
        x = real(r, dims(r, int(r.integers(2, 4)), 4, 0))
        time = int(r.integers(2))
        return Case(op, 10, [x, integer(r, [x.shape[1 - time]], np.int64, low=1, high=x.shape[time])], {"time_axis": time, "batch_axis": 1 - time})
    if op == "Compress":
        attributes = {"axis": int(r.integers(-len(shape), len(shape)))} if chance(r, 0.6) else {}
        extent = shape[attributes["axis"]] if attributes else int(np.prod(shape))
        return Case(op, 11, [x, values(r, [int(r.integers(0, extent + 1))], np.bool_)], attributes)
    if op == "EyeLike":
        return Case(op, 9, [values(r, dims(r, 2, 5), np.float32)], {"k": int(r.integers(-5, 6)), **({"dtype": onnx_type(np.int32)} if chance(r, 0.3) else {})})
    if op == "Flatten":
        return Case(op, 13, [x], {"axis": int(r.integers(-len(shape), len(shape) + 1))})
    return Case(op, 13, [np.round(x).astype(dtype)])

"""Draws of convolutions, pools, normalizations, recurrences, transforms."""
from draw_core import *  # noqa: F403


def window(r, spatial, with_dilation=True):
    """kernel_shape, attributes and the least extents that the window needs. With SAME padding nothing is dilated: ONNX
    Runtime refuses it or pads as if the window were not."""
    kernel = [int(r.integers(1, 4)) for _ in range(spatial)]
    attributes = {}
    dilations = [1] * spatial
    if with_dilation and chance(r, 0.4):
        dilations = [int(r.integers(1, 4)) for _ in range(spatial)]
        attributes["dilations"] = dilations
    if chance(r, 0.7):
        attributes["strides"] = [int(r.integers(1, 4)) for _ in range(spatial)]
    pads = [0] * (2 * spatial)
    style = pick(r, "none", "pads", "pads", "SAME_UPPER", "SAME_LOWER", "VALID")
    if style == "pads":
        pads = [int(r.integers(0, kernel[k % spatial])) for k in range(2 * spatial)]
        attributes["pads"] = pads
    elif style != "none":
        attributes["auto_pad"] = style
        if style != "VALID":
            attributes.pop("dilations", None)
            dilations = [1] * spatial
    least = [max(1, (kernel[k] - 1) * dilations[k] + 1 - pads[k] - pads[k + spatial]) for k in range(spatial)]
    return kernel, attributes, least


@draws
def draw_conv(r):
    spatial = pick(r, 1, 2, 2, 3)
    kernel, attributes, least = window(r, spatial)
    groups = pick(r, 1, 1, 2, 3)
    c, o = groups * int(r.integers(1, 3)), groups * int(r.integers(1, 3))
    x = real(r, [dim(r, 2, 0.02), c] + [k + int(r.integers(0, 5)) for k in least])
    w = real(r, [o, c // groups] + kernel)
    attributes.update(group=groups)
    if chance(r, 0.5):
        attributes["kernel_shape"] = kernel
    inputs = [x, w] + ([real(r, [o])] if chance(r, 0.5) else [])
    return Case("Conv", pick(r, 7, 11, 22), inputs, attributes, constant=(1, 2) if chance(r, 0.6) else (), loose=1e-3)


@draws
def draw_conv_transpose(r):
    spatial = pick(r, 1, 2, 2, 3)
    kernel, attributes, _ = window(r, spatial)
    groups = pick(r, 1, 1, 2)
    c, o = groups * int(r.integers(1, 3)), groups * int(r.integers(1, 3))
    x = real(r, [dim(r, 2, 0), c] + [int(r.integers(2, 5)) for _ in kernel])
    w = real(r, [c, o // groups] + kernel)
    strides = attributes.get("strides", [1] * spatial)
    dilations = attributes.get("dilations", [1] * spatial)
    attributes.update(group=groups)
    if "SAME" in attributes.get("auto_pad", "") and any(k < s for k, s in zip(kernel, strides)):
        attributes.pop("auto_pad")  # padding would be negative, which ONNX Runtime drops
    if "auto_pad" not in attributes and chance(r, 0.4):
        attributes["output_padding"] = [int(r.integers(0, max(s, d))) for s, d in zip(strides, dilations)]
    if chance(r, 0.3):
        attributes.pop("pads", None)
        attributes["output_shape"] = [(x.shape[2 + k] - 1) * strides[k] + (kernel[k] - 1) * dilations[k] + 1 - int(r.integers(0, kernel[k])) for k in range(spatial)]
    inputs = [x, w] + ([real(r, [o])] if chance(r, 0.5) else [])
    return Case("ConvTranspose", pick(r, 7, 11, 22), inputs, attributes, constant=(1, 2) if chance(r, 0.6) else (), loose=1e-3)


@draws
def draw_pool(r):
    op = pick(r, "MaxPool", "MaxPool", "AveragePool", "AveragePool", "LpPool")
    opset = {"MaxPool": pick(r, 8, 10, 11, 12, 22), "AveragePool": pick(r, 7, 10, 11, 19, 22), "LpPool": pick(r, 7, 11, 18, 22)}[op]
    spatial = pick(r, 1, 2, 2, 3)
    dilated = (op == "MaxPool" and opset >= 10) or (op == "AveragePool" and opset >= 19) or (op == "LpPool" and opset >= 18)
    kernel, attributes, least = window(r, spatial, dilated)
    attributes["kernel_shape"] = kernel
    # Padding of fewer than no elements is refused by ONNX Runtime in some versions and counted in others.
    if "SAME" in attributes.get("auto_pad", "") and any(k < q for k, q in zip(kernel, attributes.get("strides", kernel))):
        attributes.pop("auto_pad")
    if (op != "LpPool" and opset >= 10 or opset >= 18) and chance(r, 0.5):
        attributes["ceil_mode"] = 1
    if op == "AveragePool" and chance(r, 0.5):
        attributes["count_include_pad"] = 1
    if op == "LpPool" and chance(r, 0.6):
        attributes["p"] = pick(r, 1, 2, 3)
    dtype = pick(r, np.float32, np.float32, np.float64) if op == "MaxPool" else np.float32
    if op == "MaxPool" and opset >= 12 and chance(r, 0.2):
        dtype = pick(r, np.int8, np.uint8)
    x = values(r, [dim(r, 2, 0.02), int(r.integers(1, 3))] + [k + int(r.integers(0, 5)) for k in least], dtype)
    outputs = 2 if op == "MaxPool" and chance(r, 0.4) else 1
    if outputs == 2 and chance(r, 0.4):
        attributes["storage_order"] = 1
    return Case(op, opset, [x], attributes, outputs=outputs)


@draws
def draw_global_pool(r):
    op = pick(r, "GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool")
    x = real(r, [dim(r, 2, 0), dim(r, 3, 0)] + dims(r, int(r.integers(1, 4)), 4, 0))
    return Case(op, 7 if op == "GlobalLpPool" else pick(r, 7, 22), [x], {"p": pick(r, 1, 2, 3)} if op == "GlobalLpPool" else {})


@draws
def draw_max_unpool(r):
    spatial = pick(r, 1, 2, 2)
    kernel = [int(r.integers(1, 4)) for _ in range(spatial)]
    strides = [int(r.integers(1, 4)) for _ in range(spatial)]
    shape = [int(r.integers(1, 3)), int(r.integers(1, 3))] + [int(r.integers(1, 4)) for _ in range(spatial)]
    out = [(shape[2 + k] - 1) * strides[k] + kernel[k] for k in range(spatial)]
    # Within each plane as MaxPool writes them; a larger output_shape moves them in ONNX's tests, not in ONNX Runtime.
    plane, count = int(np.prod(out)), int(np.prod(shape[2:]))
    planes = shape[0] * shape[1]
    index = np.stack([np.sort(r.permutation(plane)[:count]) + k * plane for k in range(planes)]).reshape(shape).astype(np.int64)
    inputs = [real(r, shape), index]
    if chance(r, 0.3):
        inputs.append(np.int64(shape[:2] + out))
    return Case("MaxUnpool", pick(r, 9, 11, 22), inputs, {"kernel_shape": kernel, "strides": strides}, constant=(2,))


@draws
def draw_lrn(r):
    x = real(r, [dim(r, 2, 0), dim(r, 7, 0), dim(r, 3, 0), dim(r, 3, 0)])
    return Case("LRN", 13, [x], {"size": int(pick(r, 1, 3, 5, 7)), "alpha": float(pick(r, 1e-4, 0.5)), "beta": 0.75, "bias": float(pick(r, 1.0, 2.0))})


@draws
def draw_normalization(r):
    op = pick(r, "BatchNormalization", "InstanceNormalization", "LayerNormalization", "LpNormalization", "MeanVarianceNormalization", "GroupNormalization", "RMSNormalization")
    rank = int(r.integers(3, 5))
    shape = [dim(r, 3, 0)] + dims(r, rank - 1, 5, 0)
    x = real(r, shape)
    c = shape[1]
    if op == "BatchNormalization":
        return Case(op, pick(r, 7, 9, 14, 15), [x, real(r, [c]), real(r, [c]), real(r, [c]), np.abs(real(r, [c]))], {"epsilon": 1e-3} if chance(r, 0.5) else {})
    if op == "InstanceNormalization":
        if min(shape[2:]) == 1:  # ONNX Runtime leaves noise of the mean where there is one element
            x = real(r, shape[:2] + [3] * (rank - 2))
        return Case(op, pick(r, 7, 22), [x, real(r, [c]), real(r, [c])], {"epsilon": float(pick(r, 1e-5, 1e-2))})
    if op in ("LayerNormalization", "RMSNormalization"):
        axis = int(r.integers(-rank, rank))
        own = shape[axis % rank:]
        inputs = [x, real(r, own)] + ([real(r, own)] if chance(r, 0.5) and op[0] == "L" else [])
        return Case(op, 17 if op[0] == "L" else 23, inputs, {"axis": axis, "epsilon": float(pick(r, 1e-5, 1e-2))}, outputs=3 if op[0] == "L" and chance(r, 0.3) else 1)
    if op == "LpNormalization":
        return Case(op, pick(r, 7, 22), [x], {"axis": int(r.integers(-rank, rank)), "p": pick(r, 1, 2)})
    if op == "GroupNormalization":
        g = pick(r, *[d for d in range(1, c + 1) if c % d == 0])
        opset = pick(r, 18, 21)
        return Case(op, opset, [x, real(r, [c if opset == 21 else g]), real(r, [c if opset == 21 else g])], {"num_groups": g})
    x = real(r, [2, 3, 2, 3])
    return Case(op, pick(r, 9, 13), [x], {"axes": [0, 2, 3]} if chance(r, 0.5) else {})


@draws
def draw_recurrent(r):
    op = pick(r, "RNN", "GRU", "LSTM")
    gates = {"RNN": 1, "GRU": 3, "LSTM": 4}[op]
    steps, batch, width, hidden = int(r.integers(1, 5)), int(r.integers(1, 4)), int(r.integers(1, 4)), int(r.integers(1, 4))
    direction = pick(r, "forward", "reverse", "bidirectional")
    d = 2 if direction == "bidirectional" else 1
    opset = pick(r, 7, 14, 22)
    attributes = {"hidden_size": hidden, "direction": direction}
    inputs = [real(r, [steps, batch, width]), real(r, [d, gates * hidden, width], spread=0.7), real(r, [d, gates * hidden, hidden], spread=0.7),
              real(r, [d, 2 * gates * hidden]) if chance(r, 0.6) else None,
              integer(r, [batch], np.int32, low=1, high=steps) if chance(r, 0.4) else None,
              real(r, [d, batch, hidden]) if chance(r, 0.5) else None]
    if op == "LSTM":
        inputs += [real(r, [d, batch, hidden]) if chance(r, 0.5) else None, real(r, [d, 3 * hidden]) if chance(r, 0.4) else None]
    if op == "GRU":
        attributes["linear_before_reset"] = int(r.integers(2))
    if op == "LSTM" and chance(r, 0.2):
        attributes["input_forget"] = 1
    if chance(r, 0.3):
        attributes["clip"] = float(pick(r, 0.5, 2.0))
    if chance(r, 0.3):
        names = ["Tanh", "Sigmoid", "Relu", "LeakyRelu", "HardSigmoid", "Elu", "Softsign", "Softplus", "Affine", "ThresholdedRelu", "ScaledTanh"]
        count = {"RNN": 1, "GRU": 2, "LSTM": 3}[op] * d
        attributes["activations"] = [pick(r, *names[: pick(r, 3, 8)]) for _ in range(count)]
    if opset >= 14 and chance(r, 0.2):
        attributes["layout"] = 1
        for k in (0, 5, 6):
            if k < len(inputs) and inputs[k] is not None:
                inputs[k] = np.ascontiguousarray(np.swapaxes(inputs[k], 0, 1))
    return Case(op, opset, inputs, attributes, outputs=3 if op == "LSTM" else 2, constant=(1, 2, 3), loose=1e-3)


@draws
def draw_fourier(r):
    if chance(r, 0.4):
        length = int(r.integers(1, 9))
        step = int(r.integers(1, 4))
        signal = real(r, [int(r.integers(1, 3)), length + int(r.integers(0, 9)), 1 if chance(r, 0.7) else 2])
        onesided = int(signal.shape[2] == 1 and chance(r, 0.6))
        inputs = [signal, np.asarray(step, np.int64), real(r, [length]) if chance(r, 0.7) else None, np.asarray(length, np.int64)]
        return Case("STFT", 17, inputs, {"onesided": onesided}, constant=(1, 3), loose=1e-3)
    rank = int(r.integers(2, 5))
    shape = [dim(r, 3, 0)] + [dim(r, 7, 0) for _ in range(rank - 2)] + [pick(r, 1, 2)]
    opset = pick(r, 17, 20)
    axis = int(r.integers(0, rank - 1))
    axis = axis - rank if chance(r, 0.3) else axis
    inverse = int(chance(r, 0.3))
    onesided = int(not inverse and shape[-1] == 1 and chance(r, 0.5))
    length = np.asarray(int(r.integers(1, 9)), np.int64) if chance(r, 0.4) else None
    attributes = {"inverse": inverse, "onesided": onesided}
    x = real(r, shape, pick(r, np.float32, np.float32, np.float64))
    if opset == 17:
        attributes["axis"] = axis
        return Case("DFT", 17, [x, length], attributes, constant=(1,), loose=1e-3)
    return Case("DFT", 20, [x, length, np.asarray(axis, np.int64)], attributes, constant=(1, 2), loose=1e-3)


@draws
def draw_products(r):
    op = pick(r, "Gemm", "MatMul", "Det")
    if op == "Det":
        n = int(r.integers(1, 5))
        return Case(op, 11, [real(r, dims(r, int(r.integers(0, 3)), 3) + [n, n])], loose=1e-3)
    m, k, n = dim(r, 6), dim(r, 6), dim(r, 6)
    dtype = pick(r, np.float32, np.float32, np.float64, np.int32)
    if op == "MatMul":
        a, b = [m, k], [k, n]
        if chance(r, 0.2):
            a = [k]
        elif chance(r, 0.2):
            b = [k]
        else:
            batch = dims(r, int(r.integers(0, 3)), 3)
            a = [1 if chance(r, 0.2) else d for d in batch] + a
            b = [1 if chance(r, 0.2) else d for d in batch][int(r.integers(0, len(batch) + 1)):] + b
        return Case(op, pick(r, 9, 13), [values(r, a, dtype), values(r, b, dtype)], loose=1e-3)
    dtype = np.float32
    ta, tb = int(r.integers(2)), int(r.integers(2))
    inputs = [values(r, [k, m] if ta else [m, k], dtype), values(r, [n, k] if tb else [k, n], dtype)]
    opset = pick(r, 9, 11, 13)
    if opset < 11 or chance(r, 0.7):
        inputs.append(values(r, pick(r, [m, n], [n], [1, n], [m, 1], [1], [] if opset >= 11 else [1]), dtype))
    return Case(op, opset, inputs, {"transA": ta, "transB": tb, "alpha": float(pick(r, 1.0, 0.5)), "beta": float(pick(r, 1.0, 2.0, 0.0))}, loose=1e-3)


@draws
def draw_losses(r):
    op = pick(r, "NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss")
    classes = int(r.integers(1, 5))
    shape = [dim(r, 3, 0)] + dims(r, int(r.integers(0, 3)), 3, 0)
    x = real(r, [shape[0], classes] + shape[1:])
    attributes = {"reduction": pick(r, "none", "mean", "sum")}
    label = integer(r, shape, np.int64, low=0, high=classes - 1)
    if chance(r, 0.4):
        attributes["ignore_index"] = pick(r, -1, 0, classes)
        label = np.where(r.random(shape) < 0.2, attributes["ignore_index"], label)
        if attributes["reduction"] == "mean" and (label == attributes["ignore_index"]).all():
            attributes["reduction"] = "sum"
    inputs = [x, label] + ([np.abs(real(r, [classes])) + np.float32(0.1)] if chance(r, 0.5) else [])
    return Case(op, pick(r, 12, 13), inputs, attributes, outputs=2 if op[0] == "S" and chance(r, 0.4) else 1)

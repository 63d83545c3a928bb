"""Draws of operators of com.microsoft that ONNX Runtime's CPU provider computes."""
from draw_core import *  # noqa: F403

MS = "com.microsoft"


def contrib(op, inputs, attributes=None, outputs=1, constant=(), loose=2e-3):
    return Case(op, 17, inputs, {"domain": MS} | (attributes or {}), outputs, constant, None, loose)


def codes(r, shape, dtype):
    return integer(r, shape, dtype, low=np.iinfo(dtype).min, high=np.iinfo(dtype).max)


@draws
def draw_fused_products(r):
    kind = pick(r, "FusedMatMul", "FusedMatMul", "FusedGemm", "FusedConv", "TransposeMatMul")
    activation = pick(r, "Relu", "Tanh", "Sigmoid", "LeakyRelu")
    if kind == "FusedGemm":
        m, k, n = dim(r, 6, 0), dim(r, 6, 0), dim(r, 6, 0)
        a, b = int(r.integers(2)), int(r.integers(2))
        x, y = real(r, [k, m] if a else [m, k]), real(r, [n, k] if b else [k, n])
        c = pick(r, None, real(r, pick(r, [n], [m, n], [1, n], [m, 1], [1])))
        return contrib(kind, [x, y, c], {"transA": a, "transB": b, "alpha": float(pick(r, 1.0, 0.5)), "beta": float(pick(r, 1.0, 2.0)), "activation": activation}, constant=(1,) if chance(r, 0.5) else ())
    if kind == "FusedConv":
        group, c, out = pick(r, 1, 2), 2 * dim(r, 3, 0), 2 * dim(r, 3, 0)
        x, w = real(r, [dim(r, 2, 0), c, pick(r, 4, 7), pick(r, 5, 8)]), real(r, [out, c // group, 3, pick(r, 1, 3)])
        return contrib(kind, [x, w, pick(r, None, real(r, [out]))], {"group": group, "pads": [1, 0, 1, 1], "strides": [1, pick(r, 1, 2)], "activation": activation}
                       | ({"activation_params": [0.2]} if activation == "LeakyRelu" else {}), constant=(1,) if chance(r, 0.6) else ())
    m, k, n = dim(r, 6, 0), dim(r, 6, 0), dim(r, 6, 0)
    batch = dims(r, int(r.integers(0, 3)), 3, 0)
    a, b = int(r.integers(2)), int(r.integers(2))
    left = batch + ([k, m] if a else [m, k])
    right = (batch if chance(r, 0.6) else [1] * len(batch)) + ([n, k] if b else [k, n])
    attributes = {"transA": a, "transB": b, "alpha": float(pick(r, 1.0, 0.125, 2.0))}
    if kind == "FusedMatMul" and len(batch) and chance(r, 0.3):
        # A batch transposed: the first dims go behind the rows.
        attributes["transBatchA"] = 1
        left = [left[-2]] + left[:-2] + left[-1:]
    return contrib(kind, [real(r, left), real(r, right)], attributes, constant=(1,) if chance(r, 0.4) else ())


@draws
def draw_quantized_contrib(r):
    kind = pick(r, "QLinearAdd", "QLinearMul", "QLinearLeakyRelu", "QLinearSigmoid", "QLinearConcat", "QLinearGlobalAveragePool", "QLinearAveragePool",
                "DynamicQuantizeMatMul", "MatMulIntegerToFloat", "QGemm", "QLinearSoftmax", "QLinearWhere", "NhwcMaxPool")
    code = pick(r, np.uint8, np.int8)
    def step():
        return [np.float32(r.uniform(0.01, 0.1)), code(pick(r, 0, 3, 100 if code == np.uint8 else -9))]
    shape = dims(r, int(r.integers(1, 5)), 5, 0)
    if kind in ("QLinearAdd", "QLinearMul"):
        other = [1 if chance(r, 0.3) else d for d in shape][int(r.integers(0, len(shape))):]
        return contrib(kind, [codes(r, shape, code), *step(), codes(r, other, code), *step(), *step()], constant=(1, 2, 4, 5, 6, 7) + ((3,) if chance(r, 0.3) else ()))
    if kind in ("QLinearLeakyRelu", "QLinearSigmoid"):
        return contrib(kind, [codes(r, shape, code), *step(), *step()], {"alpha": 0.1} if kind == "QLinearLeakyRelu" else {}, constant=(1, 2, 3, 4))
    if kind == "QLinearSoftmax":
        return contrib(kind, [codes(r, shape, code), *step(), np.float32(1 / 256), code(0 if code == np.uint8 else -128)], {"axis": -1, "opset": 13}, constant=(1, 2, 3, 4))
    if kind == "QLinearWhere":
        return contrib(kind, [r.random(shape) < 0.5, codes(r, shape, code), *step(), codes(r, shape[-1:], code), *step(), *step()], constant=(2, 3, 5, 6, 7, 8))
    if kind == "QLinearConcat":
        axis = int(r.integers(0, len(shape)))
        inputs = step()
        for _ in range(int(r.integers(1, 4))):
            own = list(shape)
            own[axis] = dim(r, 3, 0)
            inputs += [codes(r, own, code), *step()]
        return contrib(kind, inputs, {"axis": axis}, constant=tuple(k for k in range(len(inputs)) if k < 2 or (k - 2) % 3))
    if kind == "QLinearGlobalAveragePool":
        last = int(r.integers(2))
        return contrib(kind, [codes(r, dims(r, 4, 5, 0), code), *step(), *step()], {"channels_last": last}, constant=(1, 2, 3, 4))
    if kind == "QLinearAveragePool":
        x = codes(r, [dim(r, 2, 0), dim(r, 4, 0), pick(r, 4, 5, 7), pick(r, 5, 6)], code)
        return contrib(kind, [x, *step(), *step()], {"kernel_shape": [pick(r, 1, 2, 3), 2], "strides": [pick(r, 1, 2), 1], "pads": [0, 1, 0, 1], "count_include_pad": int(r.integers(2)),
                                                      "ceil_mode": int(r.integers(2))}, constant=(1, 2, 3, 4))
    if kind == "NhwcMaxPool":
        return contrib(kind, [codes(r, [dim(r, 2, 0), pick(r, 4, 5), pick(r, 4, 7), dim(r, 5, 0)], code)], {"kernel_shape": [2, 3], "strides": [1, 2], "pads": [0, 1, 1, 1]})
    m, k, n = dim(r, 6, 0), pick(r, 1, 3, 8, 17), dim(r, 6, 0)
    if kind == "QGemm":
        return contrib(kind, [codes(r, [m, k], np.uint8), np.float32(0.02), np.uint8(7), codes(r, [k, n], np.int8), np.float32(0.03), np.int8(0), pick(r, None, integer(r, [n], np.int32)),
                              *([np.float32(0.2), np.uint8(100)] if chance(r, 0.6) else [])], {"alpha": float(pick(r, 1.0, 0.5))}, constant=(1, 2, 3, 4, 5))
    second = pick(r, np.int8, np.uint8)
    columns = chance(r, 0.5)
    scale = r.uniform(0.01, 0.1, [n] if columns else []).astype(np.float32)
    point = codes(r, [n] if columns else [], second)
    bias = pick(r, None, real(r, [n]))
    if kind == "DynamicQuantizeMatMul":
        return contrib(kind, [real(r, dims(r, int(r.integers(0, 2)), 3, 0) + [m, k]), codes(r, [k, n], second), scale, pick(r, None, point), bias], constant=(1, 2, 3), loose=2e-2)
    return contrib(kind, [codes(r, [m, k], np.uint8), codes(r, [k, n], second), np.float32(0.05), scale, pick(r, None, np.uint8(9)), pick(r, None, point), bias], constant=(1, 3, 5))


@draws
def draw_blocks_of_codes(r):
    if chance(r, 0.35):
        bits, block, axis = 4, 16, 1
        rows, width = dim(r, 6, 0), 16 * dim(r, 3, 0)
        data = codes(r, [rows, width // 2], np.uint8)
        scale = r.uniform(0.01, 0.1, [rows, width // block]).astype(np.float32)
        point = codes(r, [rows, (width // block + 1) // 2], np.uint8) if chance(r, 0.5) else None
        index = integer(r, dims(r, int(r.integers(0, 3)), 4), pick(r, np.int64, np.int32), low=-rows, high=rows - 1)
        return contrib("GatherBlockQuantized", [data, index, scale, point], {"bits": bits, "block_size": block, "gather_axis": 0, "quantize_axis": axis}, constant=(0, 2, 3))
    n, k, block, bits = pick(r, 1, 5, 16, 33), pick(r, 16, 32, 40, 96, 130), pick(r, 16, 32, 64), pick(r, 4, 4, 4, 8, 2)
    blocks = -(-k // block)
    per = 8 // bits
    b = codes(r, [n, blocks, block // per], np.uint8)
    scale = r.uniform(0.01, 0.1, [n, blocks] if chance(r, 0.5) else [n * blocks]).astype(np.float32)
    point = None
    if chance(r, 0.5):
        point = codes(r, [n, -(-blocks // per)] if scale.ndim == 2 else [n * -(-blocks // per)], np.uint8)
    bias = real(r, [n]) if chance(r, 0.3) else None
    x = real(r, dims(r, int(r.integers(0, 2)), 3, 0) + [pick(r, 1, 1, 2, 7, 9, 20), k])
    return contrib("MatMulNBits", [x, b, scale, point, None, bias], {"K": k, "N": n, "bits": bits, "block_size": block}, constant=(1, 2, 3, 5))


@draws
def draw_layers_of_transformers(r):
    kind = pick(r, "SkipLayerNormalization", "SkipSimplifiedLayerNormalization", "BiasGelu", "FastGelu", "QuickGelu", "Gelu", "MultiHeadAttention", "GroupQueryAttention", "RotaryEmbedding", "BiasAdd")
    batch, length, wide = dim(r, 3, 0), pick(r, 1, 3, 6), pick(r, 8, 16)
    x = real(r, [batch, length, wide])
    if kind.startswith("Skip"):
        skip = pick(r, x, real(r, [batch, length, wide]), real(r, [1, length, wide]) if batch > 1 else real(r, [batch, length, wide]))
        plain = kind == "SkipLayerNormalization"
        inputs = [x, skip, real(r, [wide])] + ([pick(r, None, real(r, [wide]))] if plain else []) + [pick(r, None, real(r, [wide]))]
        return contrib(kind, inputs, {"epsilon": 1e-5}, 1)
    if kind in ("BiasGelu", "FastGelu"):
        return contrib(kind, [x, real(r, [wide])])
    if kind == "BiasAdd":
        return contrib("BiasGelu", [x, real(r, [wide])], constant=(1,))
    if kind in ("QuickGelu", "Gelu"):
        return contrib(kind, [x], {"alpha": 1.702} if kind == "QuickGelu" else {})
    heads = pick(r, 1, 2, 4)
    if kind == "RotaryEmbedding":
        size = wide // pick(r, 1, 2)
        count = wide // size
        flat = chance(r, 0.5)
        x = x if flat else real(r, [batch, count, length, size])
        position = integer(r, [batch, length], low=0, high=9) if chance(r, 0.6) else np.array([int(r.integers(0, 4))], np.int64)
        return contrib(kind, [x, position, real(r, [20, size // 2]), real(r, [20, size // 2])], {"interleaved": int(r.integers(2))} | ({"num_heads": count, "rotary_embedding_dim": 0} if flat and count > 1 else {}))
    if kind == "MultiHeadAttention":
        keys = pick(r, length, 5)
        bias = pick(r, None, real(r, [3 * wide]))
        mask = pick(r, None, np.full([batch], keys, np.int32), (r.random([batch, keys]) < 0.9).astype(np.int32))
        score = pick(r, None, real(r, [1, heads, length, keys]), real(r, [batch, heads, length, keys]))
        return contrib(kind, [x, real(r, [batch, keys, wide]), real(r, [batch, keys, wide]), bias, mask, score], {"num_heads": heads} | ({"scale": 0.3} if chance(r, 0.3) else {})
                       | ({"unidirectional": 1} if keys == length and chance(r, 0.3) else {}))
    groups = pick(r, 1, 2)
    size, past = pick(r, 8, 16), pick(r, 0, 3)
    length = 1 if past and chance(r, 0.7) else length
    inputs = [real(r, [batch, length, heads * groups * size]), real(r, [batch, length, heads * size]), real(r, [batch, length, heads * size]),
              real(r, [batch, heads, past, size]), real(r, [batch, heads, past, size]), np.full([batch], past + length - 1, np.int32), np.array(past + length, np.int32)]
    attributes = {"num_heads": heads * groups, "kv_num_heads": heads}
    if chance(r, 0.5):
        attributes |= {"do_rotary": 1, "rotary_interleaved": int(r.integers(2))}
        inputs += [real(r, [32, size // 2]), real(r, [32, size // 2])]
    if chance(r, 0.3):
        attributes["local_window_size"] = int(r.integers(1, 6))
    if chance(r, 0.3):
        attributes["softcap"] = 3.0
    return contrib(kind, inputs, attributes, 3)

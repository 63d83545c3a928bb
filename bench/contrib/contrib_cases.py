"""Small models of one operator of com.microsoft each, by family: what write_contrib_tests.py writes.

A case is (name, operator, inputs, attributes, options). Inputs are arrays, or None where one is absent. Options: `outputs`, how
many the node has, or a list of which are asked for; `constants`, the indices of inputs that are initializers; `expected`, a
function of the inputs for operators without a kernel in ONNX Runtime's CPU provider; `domain`; `symbolic`, whether all dims of
inputs that are not constants are symbols.
"""
import numpy as np

MS = "com.microsoft"
cases = []
random = np.random.default_rng(28)


def case(name, op, inputs, attributes=None, **options):
    cases.append((name, op, inputs, attributes or {}, options))


def f32(*dims, scale=1.0):
    return (random.standard_normal(dims) * scale).astype(np.float32)


def f16(*dims):
    return random.standard_normal(dims).astype(np.float16)


def u8(*dims):
    return random.integers(0, 256, dims).astype(np.uint8)


def i8(*dims):
    return random.integers(-128, 128, dims).astype(np.int8)


def i32(values):
    return np.array(values, dtype=np.int32)


def i64(values):
    return np.array(values, dtype=np.int64)


def number(v, kind=np.float32):
    return np.array(v, dtype=kind)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def erf(x):
    import math

    return np.vectorize(math.erf)(x.astype(np.float64))


def gelu(x):
    return x * 0.5 * (1 + erf(x / np.sqrt(2.0)))


# --- activations ---
case("gelu", "Gelu", [f32(2, 3, 5, scale=3)])
case("gelu_of_no_rows", "Gelu", [f32(0, 4)])
case("bias_gelu", "BiasGelu", [f32(2, 3, 8), f32(8)])
case("fast_gelu", "FastGelu", [f32(3, 8, scale=3)])
case("fast_gelu_bias", "FastGelu", [f32(2, 3, 8), f32(8)])
case("quick_gelu", "QuickGelu", [f32(4, 6, scale=3)])
case("quick_gelu_alpha", "QuickGelu", [f32(4, 6)], {"alpha": 0.7})
case("bias_add", "BiasAdd", [f32(2, 4, 6), f32(6), f32(2, 4, 6)], expected=lambda x, b, s: x + b + s)
case("bias_split_gelu", "BiasSplitGelu", [f32(2, 3, 8), f32(8)],
     expected=lambda x, b: ((x + b)[..., :4] * gelu((x + b)[..., 4:])).astype(np.float32))
case("bias_dropout", "BiasDropout", [f32(2, 3, 8), f32(8), f32(2, 3, 8), number(0.4)], constants=[3],
     expected=lambda x, b, r, _: x + b + r)
case("gated_add", "GatedAdd", [f32(2, 3, 8), f32(2, 3, 8), f32(2, 3, 1)])

# --- normalizations ---
for suffix, domain in (("", ""), ("_ms", MS)):
    case("simplified_layer_normalization" + suffix, "SimplifiedLayerNormalization", [f32(2, 3, 8), f32(8)],
         {"axis": -1, "epsilon": 1e-6}, domain=domain,
         expected=lambda x, s: (x / np.sqrt((x.astype(np.float64) ** 2).mean(-1, keepdims=True) + 1e-6) * s).astype(np.float32))
case("simplified_layer_normalization_axis", "SimplifiedLayerNormalization", [f32(2, 3, 8), f32(3, 8)],
     {"axis": 1, "epsilon": 1e-3, "stash_type": 1}, domain="", outputs=2)
case("simplified_layer_normalization_mixed", "SimplifiedLayerNormalization", [f32(2, 8), f16(8)], domain="")
for name, x, skip in (("", (2, 3, 8), (2, 3, 8)), ("_one_batch", (2, 3, 8), (1, 3, 8)), ("_rank2", (2, 3, 8), (3, 8)),
                      ("_tokens", (5, 8), (5, 8))):
    case("skip_layer_normalization" + name, "SkipLayerNormalization", [f32(*x), f32(*skip), f32(8), f32(8)],
         {"epsilon": 1e-5})
case("skip_layer_normalization_bias", "SkipLayerNormalization", [f32(2, 3, 8), f32(2, 3, 8), f32(8), f32(8), f32(8)],
     outputs=[0, 3])
case("skip_layer_normalization_no_beta", "SkipLayerNormalization", [f32(2, 3, 8), f32(2, 3, 8), f32(8), None, f32(8)])
case("skip_layer_normalization_f16", "SkipLayerNormalization", [f16(2, 3, 8), f16(2, 3, 8), f16(8), f16(8), f16(8)],
     {"epsilon": 1e-5}, outputs=[0, 3])
case("skip_layer_normalization_symbolic", "SkipLayerNormalization", [f32(2, 3, 8), f32(2, 3, 8), f32(8), f32(8)],
     constants=[2, 3], symbolic=True, outputs=[0, 3])
case("skip_simplified_layer_normalization", "SkipSimplifiedLayerNormalization", [f32(2, 3, 8), f32(2, 3, 8), f32(8)],
     {"epsilon": 1e-6}, outputs=[0, 3])
case("skip_simplified_layer_normalization_bias", "SkipSimplifiedLayerNormalization",
     [f32(5, 8), f32(5, 8), f32(8), f32(8)])
case("skip_simplified_layer_normalization_f16", "SkipSimplifiedLayerNormalization", [f16(2, 3, 8), f16(2, 3, 8), f16(8)],
     {"epsilon": 1e-6}, outputs=[0, 3])
ids, segments = i32(random.integers(0, 7, (2, 4))), i32(random.integers(0, 2, (2, 4)))
mask = i32([[1, 1, 1, 0], [1, 1, 0, 0]])
tables = [f32(7, 8), f32(9, 8), f32(2, 8), f32(8), f32(8)]
case("embed_layer_normalization", "EmbedLayerNormalization", [ids, segments, *tables, mask], outputs=2)
case("embed_layer_normalization_no_segments", "EmbedLayerNormalization", [ids, None, *tables[:2], None, *tables[3:]],
     {"epsilon": 1e-5}, outputs=2)
case("embed_layer_normalization_sum", "EmbedLayerNormalization", [ids, segments, *tables], outputs=3)
case("embed_layer_normalization_positions", "EmbedLayerNormalization",
     [ids, segments, *tables, None, i32([[3, 2, 1, 0]])], outputs=2)
case("embed_layer_normalization_symbolic", "EmbedLayerNormalization", [ids, segments, *tables, mask], outputs=2,
     constants=[2, 3, 4, 5, 6], symbolic=True)
for name, kind, low, masked in (("u8", np.uint8, 0, True), ("i8", np.int8, -128, False)):
    own = np.random.default_rng(31)
    codes = [own.integers(low, low + 256, t.shape).astype(kind) for t in tables]
    scales = [number(s) for s in (0.02, 0.01, 0.015, 0.008, 0.005)]
    zeros = [number(z, kind) for z in own.integers(low, low + 256, 5)]
    if not masked:
        codes[2] = scales[2] = zeros[2] = None
    case(f"qembed_layer_normalization_{name}", "QEmbedLayerNormalization",
         [ids, segments if masked else None, *codes, mask if masked else None, *scales, *zeros], {"epsilon": 1e-5},
         outputs=2, symbolic=masked, constants=[*range(2, 7), *range(8, 18)])


def group_norm(x, gamma, beta, groups, epsilon, silu, last=True):
    x = x.astype(np.float64)
    c = np.moveaxis(x, -1, 1) if last else x
    g = c.reshape(c.shape[0], groups, -1)
    g = (g - g.mean(-1, keepdims=True)) / np.sqrt(g.var(-1, keepdims=True) + epsilon)
    c = g.reshape(c.shape) * gamma[:, None, None] + beta[:, None, None]
    c = c * sigmoid(c) if silu else c
    return (np.moveaxis(c, 1, -1) if last else c).astype(np.float32)


for silu in (0, 1):
    case(f"group_norm_{silu}", "GroupNorm", [f32(2, 3, 5, 8), f32(8), f32(8)], {"groups": 4, "activation": silu},
         expected=lambda x, g, b, silu=silu: group_norm(x, g, b, 4, 1e-5, silu))
case("group_norm_channels_first", "GroupNorm", [f32(2, 8, 3, 5), f32(8), f32(8)],
     {"groups": 2, "activation": 1, "channels_last": 0, "epsilon": 1e-3},
     expected=lambda x, g, b: group_norm(x, g, b, 2, 1e-3, 1, False))
for name, dims in (("", (2, 3, 5, 8)), ("_ones", (2, 1, 1, 8)), ("_rank2", (2, 8))):
    case("skip_group_norm" + name, "SkipGroupNorm", [f32(2, 3, 5, 8), f32(8), f32(8), f32(*dims), f32(8)],
         {"groups": 4, "activation": 1}, outputs=2,
         expected=lambda x, g, b, s, c: (
             group_norm(x + s.reshape(s.shape if s.ndim == 4 else (2, 1, 1, 8)) + c, g, b, 4, 1e-5, 1),
             x + s.reshape(s.shape if s.ndim == 4 else (2, 1, 1, 8)) + c))

# --- rotary embeddings ---
caches = [f32(16, 4), f32(16, 4)]
positions = i64([[0, 1, 2], [5, 6, 7]])
for interleaved in (0, 1):
    case(f"rotary_rank4_{interleaved}", "RotaryEmbedding", [f32(2, 3, 3, 8), positions, *caches],
         {"interleaved": interleaved}, constants=[2, 3])
    case(f"rotary_rank3_{interleaved}", "RotaryEmbedding", [f32(2, 3, 24), positions, *caches],
         {"interleaved": interleaved}, constants=[2, 3])
    case(f"rotary_partial_{interleaved}", "RotaryEmbedding", [f32(2, 3, 32), positions, *caches],
         {"interleaved": interleaved, "num_heads": 2, "rotary_embedding_dim": 8}, constants=[2, 3])
case("rotary_offset", "RotaryEmbedding", [f32(2, 3, 24), i64([4]), *caches], constants=[2, 3])
case("rotary_offset_symbolic", "RotaryEmbedding", [f32(2, 3, 4, 8), i64([2]), *caches], constants=[2, 3])
case("rotary_f16", "RotaryEmbedding", [f16(2, 3, 24), positions, f16(16, 4), f16(16, 4)], constants=[2, 3])


def gemma(emb, q, qr, k, kr):
    c, s = np.cos(emb)[:, None].astype(np.float16), np.sin(emb)[:, None].astype(np.float16)
    return q * c + qr * s, k * c + kr * s


case("gemma_rotary", "GemmaRotaryEmbedding", [np.abs(f32(2, 3, 8, scale=0.3)), *(np.abs(f16(2, 2, 3, 8)) for _ in range(4))], outputs=2,
     expected=gemma)

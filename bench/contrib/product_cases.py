"""Products, convolutions and operators on quantized tensors; see contrib_cases.py."""
import numpy as np

from contrib_cases import MS, case, f16, f32, gelu, i8, i32, i64, number, random, sigmoid, u8

# --- products ---
for ta in (0, 1):
    for tb in (0, 1):
        case(f"fused_matmul_{ta}{tb}", "FusedMatMul", [f32(2, *((4, 3) if ta else (3, 4))), f32(*((5, 4) if tb else (4, 5)))],
             {"transA": ta, "transB": tb, "alpha": 0.5})
        case(f"fused_matmul_batch_{ta}{tb}", "FusedMatMul",
             [f32(*((4, 2, 3) if ta else (3, 2, 4))), f32(*((5, 2, 4) if tb else (4, 2, 5)))],
             {"transBatchA": 1, "transBatchB": 1, "transA": ta, "transB": tb})
case("fused_matmul_vector", "FusedMatMul", [f32(4), f32(2, 4, 5)], {"transA": 1, "alpha": 2.0})
case("fused_matmul_rank4", "FusedMatMul", [f32(2, 2, 3, 4), f32(2, 2, 5, 4)], {"transB": 1, "alpha": 0.125})
case("fused_matmul_double", "FusedMatMul", [f32(3, 4).astype(np.float64), f32(4, 2).astype(np.float64)], {"alpha": 0.3})
case("fused_matmul_symbolic", "FusedMatMul", [f32(2, 3, 4), f32(2, 5, 4)], {"transB": 1, "alpha": 0.5}, symbolic=True)
case("transpose_matmul", "TransposeMatMul", [f32(2, 4, 3), f32(2, 5, 4)], {"transA": 1, "transB": 1, "alpha": 0.5})
case("fused_matmul_activation", "FusedMatMulActivation", [f32(3, 4), f32(5, 4)], {"transB": 1, "activation": "Relu"},
     expected=lambda a, b: np.maximum(a @ b.T, 0))
case("fused_matmul_activation_leaky", "FusedMatMulActivation", [f32(3, 4), f32(4, 5)],
     {"activation": "LeakyRelu", "activation_alpha": 0.3, "alpha": 0.5},
     expected=lambda a, b: np.where(a @ b > 0, 0.5 * (a @ b), 0.15 * (a @ b)))
for name, extra in (("Relu", {}), ("Tanh", {}), ("Sigmoid", {}), ("LeakyRelu", {"activation_alpha": 0.2}),
                    ("HardSigmoid", {"activation_alpha": 0.3, "activation_beta": 0.4})):
    case(f"fused_gemm_{name}", "FusedGemm", [f32(4, 3), f32(5, 4), f32(5)],
         {"transA": 1, "transB": 1, "alpha": 0.5, "beta": 2.0, "activation": name, **extra})
case("fused_gemm_no_c", "FusedGemm", [f32(3, 4), f32(4, 5)], {"activation": "Relu"})
case("gemm_fast_gelu", "GemmFastGelu", [f32(2, 3, 4), f32(4, 5), f32(5)],
     expected=lambda x, w, b: (lambda h: (0.5 * h * (1 + np.tanh(0.7978845608 * (h + 0.044715 * h ** 3)))))(x @ w + b))


# --- weights in blocks ---
def n_bits(name, m, n, k, block, bits, zeros=None, bias=False, kind=f32, **options):
    blocks = -(-k // block)
    inputs = [kind(*m, k), u8(n, blocks, block * bits // 8), np.abs(kind(n, blocks)) / kind(1).dtype.type(8)]
    if zeros == "packed":
        inputs.append(u8(n * -(-blocks * bits // 8)) if options.pop("flat", False) else u8(n, -(-blocks * bits // 8)))
    elif zeros == "float":
        inputs.append((np.abs(kind(n, blocks)) * 4).astype(inputs[2].dtype))
    if bias:
        inputs += [None] * (5 - len(inputs)) + [kind(n)]
    case("matmul_n_bits_" + name, "MatMulNBits", inputs, {"K": k, "N": n, "block_size": block, "bits": bits},
         constants=list(range(1, len(inputs))), **options)


n_bits("4", (2, 3), 8, 32, 16, 4)
n_bits("4_one_block", (3,), 8, 32, 32, 4)
n_bits("4_zero_points", (3,), 8, 96, 32, 4, zeros="packed")
n_bits("4_float_zero_points", (3,), 8, 64, 32, 4, zeros="float")
n_bits("4_bias", (2, 1), 8, 64, 32, 4, zeros="packed", bias=True)
n_bits("4_ragged", (3,), 5, 40, 16, 4, zeros="packed")
n_bits("4_flat_scales", (3,), 4, 32, 16, 4)
n_bits("4_f16", (3,), 8, 32, 16, 4, zeros="packed", kind=f16)
n_bits("8", (3,), 8, 64, 32, 8)
n_bits("8_zero_points", (3,), 8, 64, 32, 8, zeros="packed")
n_bits("8_bias", (3,), 8, 48, 16, 8, zeros="packed", bias=True)
n_bits("2", (3,), 8, 64, 32, 2)
n_bits("2_zero_points", (3,), 8, 96, 32, 2, zeros="packed")
n_bits("4_symbolic", (2, 3), 8, 32, 16, 4, symbolic=True, fixed={0: [2]})


def gather_blocks(name, rows, columns, block, bits, zeros=False, indices=None, kind=f32, **attributes):
    indices = i64([[0, 3], [rows - 1, 1]]) if indices is None else indices
    blocks = columns // block
    inputs = [u8(rows, columns * bits // 8), indices, np.abs(kind(rows, blocks))]
    if zeros:
        inputs.append(u8(rows, -(-blocks * bits // 8)))
    case("gather_blocks_" + name, "GatherBlockQuantized", inputs, {"bits": bits, "block_size": block, **attributes},
         constants=[0, 2, 3])


gather_blocks("4", 6, 64, 16, 4)
gather_blocks("4_zero_points", 6, 96, 32, 4, zeros=True)
gather_blocks("4_negative", 6, 64, 16, 4, zeros=True, indices=i32([-1, 2]))
gather_blocks("8", 6, 64, 16, 8, zeros=True)
gather_blocks("8_scalar", 6, 64, 32, 8, indices=i64(3))
gather_blocks("2", 6, 64, 16, 2)
gather_blocks("4_f16", 6, 64, 16, 4, kind=f16)
for signed in (False, True):
    for axis in (0, 1):
        kind = "int4" if signed else "uint4"
        low, high = (-8, 8) if signed else (0, 16)
        case(f"gather_blocks_{kind}_{axis}", "GatherBlockQuantized",
             [random.integers(low, high, (6, 4, 32)), i64([1, 0, 3]), np.abs(f32(6, 4, 2)),
              random.integers(low, high, (6, 4, 2))],
             {"block_size": 16, "quantize_axis": 2, "gather_axis": axis}, constants=[0, 2, 3], narrow={0: kind, 3: kind})

for name, kind, n, k, block in (("fp4", 0, 8, 32, 16), ("nf4", 1, 6, 64, 32), ("ragged", 1, 5, 9, 16)):
    own = np.random.default_rng(n)
    case(f"matmul_bnb4_{name}", "MatMulBnb4",
         [own.standard_normal((2, 3, k)).astype(np.float32), own.integers(0, 256, (n * k + 1) // 2).astype(np.uint8),
          own.uniform(0.1, 2, -(-n * k // block)).astype(np.float32)],
         {"N": n, "K": k, "block_size": block, "quant_type": kind}, constants=[1, 2])

# Blocks along the gathered dim: each row has the scales of its own block. Numbers of their own, so that those of the
# cases behind stay what they are.
along = np.random.default_rng(29)
for name, low, axis, data, scales, indices, kind in (
        ("uint4", 0, 0, (35, 8), (3, 8), i64([[0, -1], [34, 16], [15, -20]]), np.float32),
        ("int4", -8, 1, (4, 35, 2), (4, 3, 2), i32(-3), np.float16)):
    case(f"gather_blocks_along_{name}", "GatherBlockQuantized",
         [along.integers(low, low + 16, data), indices, np.abs(along.standard_normal(scales)).astype(kind),
          along.integers(low, low + 16, scales)],
         {"block_size": 16, "quantize_axis": axis, "gather_axis": axis}, constants=[0, 2, 3], narrow={0: name, 3: name})

# --- convolutions ---
conv = {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}
image, weights = f32(1, 4, 6, 6), f32(8, 4, 3, 3)
for name, extra in (("Relu", {}), ("Tanh", {}), ("Sigmoid", {}), ("LeakyRelu", {"activation_params": [0.2]}),
                    ("Clip", {"activation_params": [-0.5, 0.5]}), ("HardSigmoid", {"activation_params": [0.3, 0.4]})):
    case(f"fused_conv_{name}", "FusedConv", [image, weights, f32(8)], {**conv, "activation": name, **extra})
case("fused_conv_sum", "FusedConv", [image, weights, f32(8), f32(1, 8, 6, 6)], {**conv, "activation": "Relu"})
case("fused_conv_groups", "FusedConv", [image, f32(4, 1, 3, 3)], {"group": 4, "strides": [2, 2], "activation": "Relu"})
case("fused_conv_1d", "FusedConv", [f32(2, 4, 9), f32(6, 4, 3), f32(6)], {"auto_pad": "SAME_UPPER", "activation": "Relu"})


def convolve(x, w, b):
    """3x3 over x [1, H, W, C] with padding 1."""
    p = np.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0)))
    rows = [[np.einsum("abc,oabc->o", p[0, i:i + 3, j:j + 3], np.moveaxis(w, 1, -1)) + b for j in range(x.shape[2])]
            for i in range(x.shape[1])]
    return np.array(rows, np.float32)[None]


case("nhwc_conv", "NhwcConv", [f32(1, 6, 5, 4), weights, f32(8)], conv, expected=convolve)
case("nhwc_fused_conv", "NhwcFusedConv", [f32(1, 6, 5, 4), weights, f32(8), f32(1, 6, 5, 8)],
     {**conv, "activation": "Relu"}, expected=lambda x, w, b, z: np.maximum(convolve(x, w, b) + z, 0))
case("nhwc_max_pool", "NhwcMaxPool", [u8(1, 6, 6, 4)], {"kernel_shape": [2, 2], "strides": [2, 2]})
case("nhwc_max_pool_i8", "NhwcMaxPool", [i8(1, 5, 6, 3)], {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]})
for last in (0, 1):
    dims = (1, 6, 5, 4) if last else (1, 4, 6, 5)
    case(f"qlinear_conv_{last}", "QLinearConv",
         [u8(*dims), number(0.03), number(120, np.uint8), i8(8, 4, 3, 3), np.abs(f32(8, scale=0.01)), np.zeros(8, np.int8),
          number(0.2), number(110, np.uint8), i32(random.integers(-500, 500, 8))],
         {**conv, "channels_last": last}, constants=list(range(1, 9)))

"""Operators on quantized tensors; see contrib_cases.py."""
import numpy as np

from contrib_cases import case, f32, i8, i32, number, random, sigmoid, u8


def parameters(scale, zero, kind=np.uint8):
    return [number(scale), number(zero, kind)]


for op in ("QLinearAdd", "QLinearMul"):
    for name, a, b in (("", (2, 37), (2, 37)), ("_row", (3, 4, 5), (5,)), ("_scalar", (2, 3), ()), ("_both", (3, 1), (1, 4))):
        case(op + name, op, [u8(*a), *parameters(0.013, 120), u8(*b), *parameters(0.02, 7), *parameters(0.031, 99)],
             constants=[1, 2, 4, 5, 6, 7])
    case(op + "_i8", op, [i8(2, 37), *parameters(0.013, -3, np.int8), i8(2, 37), *parameters(0.02, 7, np.int8),
                          *parameters(0.031, 9, np.int8)])
    case(op + "_no_zero_points", op, [u8(2, 8), number(0.013), None, u8(2, 8), number(0.02), None, *parameters(0.05, 3)],
         expected=lambda a, sa, b, sb, sc, zc, op=op: np.clip(
             np.rint((sa * a + sb * b if op == "QLinearAdd" else sa * a * (sb * b)) / sc) + zc, 0, 255).astype(np.uint8))

for op in ("QLinearAdd", "QLinearMul"):
    for zero in (0, 1):
        one = op == "QLinearMul"
        case(f"{op}_halves_{zero}", op, [np.arange(40, dtype=np.uint8), *parameters(1, 0),
                                         np.full(40, one, np.uint8), *parameters(1, 0), *parameters(2, zero)])
case("QLinearGlobalAveragePool_halves", "QLinearGlobalAveragePool",
     [np.array([np.arange(40), np.zeros(40)], np.uint8).T.reshape(1, 40, 2, 1), *parameters(1, 0), *parameters(1, 1)])
case("QLinearAveragePool_halves", "QLinearAveragePool",
     [np.array([np.arange(40), np.zeros(40)], np.uint8).T.reshape(1, 40, 2, 1), *parameters(1, 0), *parameters(1, 1)],
     {"kernel_shape": [2, 1]})
case("QLinearSigmoid", "QLinearSigmoid", [u8(4, 64), *parameters(0.05, 128), *parameters(1 / 256, 0)],
     constants=[1, 2, 3, 4])
case("QLinearSigmoid_i8", "QLinearSigmoid", [i8(4, 64), *parameters(0.04, 5, np.int8), *parameters(0.0042, -128, np.int8)])
case("QLinearLeakyRelu", "QLinearLeakyRelu", [u8(4, 64), *parameters(0.05, 100), *parameters(0.04, 20)], {"alpha": 0.1},
     constants=[1, 2, 3, 4])
case("QLinearLeakyRelu_i8", "QLinearLeakyRelu", [i8(4, 64), *parameters(0.05, 0, np.int8), *parameters(0.06, 3, np.int8)])
for opset, axis in ((13, -1), (13, 1), (12, 1), (12, 2)):
    case(f"QLinearSoftmax_{opset}_{axis}", "QLinearSoftmax",
         [u8(2, 3, 16), *parameters(0.07, 120), *parameters(1 / 256, 0)], {"opset": opset, "axis": axis},
         constants=[1, 2, 3, 4])
case("QLinearSoftmax_i8", "QLinearSoftmax", [i8(2, 24), *parameters(0.03, 3, np.int8), *parameters(1 / 256, -128, np.int8)],
     {"opset": 13, "axis": -1}, constants=[1, 2, 3, 4])
# ONNX Runtime takes the whole number below 1 / scale. Numbers of their own, so that those of the cases behind stay.
own = np.random.default_rng(30)
for name, scale, constants in (("255", 1 / 255, [1, 2, 3, 4]), ("100", 1 / 100.7, [1, 2, 3, 4]), ("computed", 1 / 255, [])):
    case(f"QLinearSoftmax_{name}", "QLinearSoftmax",
         [own.integers(0, 256, (9, 12)).astype(np.uint8), *parameters(0.03, 120), *parameters(scale, 3)],
         {"opset": 13, "axis": -1}, constants=constants)
pool = {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]}
case("QLinearAveragePool", "QLinearAveragePool", [u8(1, 4, 7, 7), *parameters(0.0517, 100), *parameters(0.0413, 90)], pool,
     constants=[1, 2, 3, 4])
case("QLinearAveragePool_with_pads", "QLinearAveragePool",
     [u8(1, 4, 7, 7), *parameters(0.0517, 100), *parameters(0.0413, 90)], {**pool, "count_include_pad": 1})
case("QLinearAveragePool_last", "QLinearAveragePool", [i8(1, 7, 7, 4), *parameters(0.0517, 3, np.int8),
                                                       *parameters(0.0413, 2, np.int8)],
     {**pool, "channels_last": 1, "ceil_mode": 1})
own = np.random.default_rng(32)
for name, dims, options in (("", (2, 3, 6, 5), {}), ("_symbolic", (1, 2, 5, 6), {"symbolic": True, "fixed": {0: [1]}})):
    case(f"QLinearAveragePool_whole_windows{name}", "QLinearAveragePool",
         [own.integers(0, 256, dims).astype(np.uint8), *parameters(0.0517, 100), *parameters(0.0413, 90)],
         {"kernel_shape": [3, 2], "strides": [2, 2], "pads": [0, 1, 0, 0], "ceil_mode": 1, "count_include_pad": 1},
         constants=[1, 2, 3, 4], **options)
case("QLinearAveragePool_quarters", "QLinearAveragePool",
     [own.integers(0, 256, (1, 4, 8, 8)).astype(np.uint8), *parameters(0.0517, 121), *parameters(0.0517, 91)],
     {"kernel_shape": [2, 2], "strides": [2, 2]}, constants=[1, 2, 3, 4])
for last in (0, 1):
    case(f"QLinearGlobalAveragePool_{last}", "QLinearGlobalAveragePool",
         [u8(2, 5, 7, 6), *parameters(0.0517, 100), *parameters(0.0213, 90)], {"channels_last": last}, constants=[1, 2, 3, 4])
case("QLinearConcat", "QLinearConcat",
     [*parameters(0.03, 90), u8(2, 3), *parameters(0.05, 100), u8(2, 4), *parameters(0.03, 90), u8(2, 1),
      *parameters(0.01, 3)], {"axis": 1}, constants=[0, 1, 3, 4, 6, 7, 9, 10])
case("QLinearConcat_i8", "QLinearConcat",
     [*parameters(0.03, 9, np.int8), i8(2, 3), *parameters(0.05, 10, np.int8), i8(3, 3), *parameters(0.04, -9, np.int8)],
     {"axis": 0})
case("QLinearWhere", "QLinearWhere",
     [random.integers(0, 2, (3, 8)).astype(bool), u8(3, 8), *parameters(0.05, 100), u8(8), *parameters(0.03, 9),
      *parameters(0.06, 80)], constants=[2, 3, 5, 6, 7, 8])
case("QLinearReduceMean", "QLinearReduceMean", [u8(2, 3, 4), *parameters(0.05, 100), *parameters(0.02, 90)],
     {"axes": [1, 2], "keepdims": 1},
     expected=lambda x, s, z, t, u: np.clip(np.rint(((x.astype(np.float32) - z) * s).mean((1, 2), keepdims=True) / t) + u,
                                            0, 255).astype(np.uint8))

# --- 16 bits ---
for kind in (np.uint16, np.int16, np.uint8, np.int8):
    zero = number(100, kind)
    case(f"quantize_{np.dtype(kind).name}", "QuantizeLinear", [f32(2, 3, 4, scale=40), number(0.02), zero])
    case(f"dequantize_{np.dtype(kind).name}", "DequantizeLinear",
         [random.integers(0, 120, (2, 3, 4)).astype(kind), number(0.02), zero])
    case(f"quantize_axis_{np.dtype(kind).name}", "QuantizeLinear",
         [f32(2, 3, 4, scale=40), np.abs(f32(3)), np.array([1, 2, 3], kind)], {"axis": 1})
case("quantize_no_zero_point", "QuantizeLinear", [np.abs(f32(2, 3)), number(0.02)])
case("dequantize_i32", "DequantizeLinear", [i32(random.integers(-5000, 5000, (2, 8))), number(0.01)])
case("dequantize_axis_u16", "DequantizeLinear",
     [random.integers(0, 65536, (2, 3, 4)).astype(np.uint16), np.abs(f32(3)), np.array([1, 2, 3], np.uint16)], {"axis": -2})

# --- integer products ---
for name, b, zero in (("i8", i8(8, 5), np.int8), ("u8", u8(8, 5), np.uint8)):
    case(f"dynamic_quantize_matmul_{name}", "DynamicQuantizeMatMul", [f32(3, 8), b, number(0.02), number(3, zero)],
         constants=[1, 2, 3])
    case(f"dynamic_quantize_matmul_columns_{name}", "DynamicQuantizeMatMul",
         [f32(2, 3, 8), b, np.abs(f32(5, scale=0.1)), np.arange(5).astype(zero), f32(5)], constants=[1, 2, 3, 4])
    case(f"matmul_integer_to_float_{name}", "MatMulIntegerToFloat",
         [u8(2, 3, 8), b, number(0.01), number(0.02), number(120, np.uint8), number(3, zero), f32(5)],
         constants=[1, 2, 3, 4, 5, 6])
case("dynamic_quantize_matmul_no_zero_point", "DynamicQuantizeMatMul", [f32(3, 8), i8(8, 5), number(0.02)])
case("matmul_integer_to_float_signed", "MatMulIntegerToFloat",
     [i8(3, 8), i8(8, 5), number(0.01), np.abs(f32(5, scale=0.1)), number(4, np.int8), np.zeros(5, np.int8)])
case("matmul_integer_to_float_symbolic", "MatMulIntegerToFloat",
     [u8(2, 3, 8), i8(8, 5), number(0.01), number(0.02), number(120, np.uint8)], constants=[1, 2, 3, 4], symbolic=True)
gemm = [u8(3, 8), *parameters(0.02, 120), i8(5, 8), number(0.01), number(0, np.int8), i32(random.integers(-900, 900, 5))]
case("qgemm", "QGemm", [*gemm, *parameters(0.05, 110)], {"transB": 1}, constants=list(range(1, 9)))
case("qgemm_halves", "QGemm", [np.arange(40, dtype=np.uint8)[:, None], *parameters(1, 0), u8(1, 1) * 0 + 1,
                               *parameters(1, 0), None, *parameters(2, 1)])
case("qgemm_float", "QGemm", gemm, {"transB": 1, "alpha": 0.5})
case("qgemm_columns", "QGemm",
     [u8(8, 3), *parameters(0.02, 120), u8(8, 5), np.abs(f32(5, scale=0.02)), np.arange(5).astype(np.uint8), None,
      *parameters(0.05, 110)], {"transA": 1}, constants=list(range(1, 9)))
case("qgemm_i8", "QGemm",
     [i8(3, 8), *parameters(0.02, 12, np.int8), i8(8, 5), number(0.01), number(3, np.int8), None,
      *parameters(0.05, -4, np.int8)])


def lstm(directions, width, hidden, kind=np.uint8, columns=False, past=False, peepholes=False):
    """X of 5 steps and 2 sequences, weights in 8 bits with a scale and zero point per direction or column, and the rest."""
    shape = (directions, 4 * hidden) if columns else (directions,)
    draw = u8 if kind == np.uint8 else i8
    zero = np.zeros(shape, kind) if columns else np.full(shape, 128 if kind == np.uint8 else 3, kind)
    weights = [draw(directions, n, 4 * hidden) for n in (width, hidden)]
    scales = [np.abs(f32(*shape, scale=0.002)) + np.float32(0.004) for _ in weights]
    states = [f32(directions, 2, hidden), f32(directions, 2, hidden)] if past else [None, None]
    return [f32(5, 2, width), *weights, f32(directions, 8 * hidden), None, *states,
            f32(directions, 3 * hidden) if peepholes else None, scales[0], zero, scales[1], zero]


CODES = [1, 2, 3, 8, 9, 10, 11]
case("dynamic_quantize_lstm", "DynamicQuantizeLSTM", lstm(2, 6, 4), {"hidden_size": 4, "direction": "bidirectional"},
     constants=CODES, outputs=3)
case("dynamic_quantize_lstm_past", "DynamicQuantizeLSTM", lstm(1, 6, 4, np.int8, past=True),
     {"hidden_size": 4, "direction": "reverse"}, constants=CODES, outputs=3)
case("dynamic_quantize_lstm_columns", "DynamicQuantizeLSTM", lstm(2, 3, 5, np.int8, columns=True, past=True),
     {"hidden_size": 5, "direction": "bidirectional"}, constants=CODES, outputs=[0, 2], symbolic=True)
case("dynamic_quantize_lstm_peepholes", "DynamicQuantizeLSTM", lstm(1, 3, 5, peepholes=True),
     {"hidden_size": 5, "input_forget": 0}, constants=[*CODES, 7], outputs=3)

#!/usr/bin/env python3
"""Products of few rows with weights in codes: what one takes, and what share of a device's copies its bytes are.

weight_only.py EXE DEVICE [--rows N ...] [--columns N ...] [--inner N] [--runs N] [--copy GB_PER_SECOND] [--peer]

Makes models of one product in a temporary folder: `MatMulNBits` of four bits in blocks of 32, `DequantizeLinear` of int8
with a scale for each column, and plain weights, of float32 and float16 activations each. DEVICE is what `EXE bench
--device` takes. The kernels' time is that of `bench` (gpu_ms). Bytes are those of codes, scales and weights; --copy is
the rate of the device's copies, in bytes read and written, as `EXE profile --roofline` measures it. With --peer ONNX
Runtime runs the same models on two threads of the processor.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile
import time

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

BLOCK = 32
TYPES = {"float32": (TensorProto.FLOAT, np.float32), "float16": (TensorProto.FLOAT16, np.float16)}


def model_of(kind, rows, inner, columns, name, path):
    """Writes the model of one product and gives the bytes of its weights."""
    tensor_type, numpy_type = TYPES[name]
    random = np.random.default_rng(1)
    opsets = [helper.make_opsetid("", 21)]
    if kind == "int4":
        blocks = (inner + BLOCK - 1) // BLOCK
        held = [numpy_helper.from_array(random.integers(0, 256, (columns, blocks, BLOCK // 2), dtype=np.uint8), "w"),
                numpy_helper.from_array((random.random((columns, blocks)) * 0.02).astype(numpy_type), "s")]
        nodes = [helper.make_node("MatMulNBits", ["x", "w", "s"], ["y"], domain="com.microsoft", N=columns, K=inner,
                                  bits=4, block_size=BLOCK)]
        opsets.append(helper.make_opsetid("com.microsoft", 1))
    elif kind == "int8":
        held = [numpy_helper.from_array(random.integers(-127, 128, (inner, columns)).astype(np.int8), "w"),
                numpy_helper.from_array((random.random(columns) * 0.01).astype(numpy_type), "s")]
        nodes = [helper.make_node("DequantizeLinear", ["w", "s"], ["d"], axis=1),
                 helper.make_node("MatMul", ["x", "d"], ["y"])]
    else:
        held = [numpy_helper.from_array((random.random((inner, columns)) - 0.5).astype(numpy_type), "w")]
        nodes = [helper.make_node("MatMul", ["x", "w"], ["y"])]
    graph = helper.make_graph(nodes, "product", [helper.make_tensor_value_info("x", tensor_type, [rows, inner])],
                              [helper.make_tensor_value_info("y", tensor_type, [rows, columns])], held)
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=10), path)
    return sum(len(t.raw_data) for t in held)


def milliseconds_of_peer(path, runs):
    import onnxruntime
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 2
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    given = session.get_inputs()[0]
    x = np.ones(given.shape, np.float16 if "16" in given.type else np.float32)
    taken = []
    for _ in range(runs + 5):
        begin = time.perf_counter()
        session.run(None, {given.name: x})
        taken.append((time.perf_counter() - begin) * 1e3)
    return sorted(taken[5:])[runs // 2]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("exe")
    parser.add_argument("device")
    parser.add_argument("--rows", type=int, nargs="+", default=[1, 8])
    parser.add_argument("--columns", type=int, nargs="+", default=[4096, 11008])
    parser.add_argument("--inner", type=int, default=4096)
    parser.add_argument("--runs", type=int, default=40)
    parser.add_argument("--copy", type=float, default=0)
    parser.add_argument("--peer", action="store_true")
    given = parser.parse_args()
    heads = ["weights", "type", "rows", "columns", "kernels us", "end to end us", "GB/s"]
    heads += ["share of copies"] if given.copy else []
    heads += ["ONNX Runtime us"] if given.peer else []
    print("| " + " | ".join(heads) + " |\n|" + "---|" * len(heads))
    with tempfile.TemporaryDirectory() as folder:
        path, figures = os.path.join(folder, "product.onnx"), os.path.join(folder, "figures.json")
        for kind in ("int4", "int8", "plain"):
            for name in TYPES:
                for rows in given.rows:
                    for columns in given.columns:
                        bytes_read = model_of(kind, rows, given.inner, columns, name, path)
                        subprocess.run([given.exe, "bench", path, "--device", given.device, "--runs", str(given.runs),
                                        "--json", figures, "--quiet"], check=True, stdout=subprocess.DEVNULL)
                        with open(figures, encoding="utf-8") as made:
                            taken = json.load(made)
                        rate = bytes_read / taken["gpu_ms"] * 1e-6
                        row = [kind, name, str(rows), str(columns), f"{taken['gpu_ms'] * 1e3:.1f}",
                               f"{taken['latency_ms']['median'] * 1e3:.1f}", f"{rate:.0f}"]
                        row += [f"{rate / given.copy:.2f}"] if given.copy else []
                        row += [f"{milliseconds_of_peer(path, given.runs) * 1e3:.1f}"] if given.peer else []
                        print("| " + " | ".join(row) + " |", flush=True)


if __name__ == "__main__":
    sys.exit(main())

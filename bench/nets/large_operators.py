#!/usr/bin/env python3
"""Runs single operators on some hundred thousand elements, and prints those that take unreasonably long.

large_operators.py EXE [--device opencl:0] [--limit SECONDS] [--only NAME ...]

Random operators are small, so that what grows with the square of elements, or is compiled for minutes, does not show
there. Each row is a model of one operator with constants from no seed; one that takes more than SECONDS (20 unless
told) from start to end, of which compiling is a part, is named. The last line is 'N passed, M failed'.

Needs onnx and numpy from PyPI.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile
import time

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


def ints(*numbers):
    return np.array(numbers, np.int64)


def ones(*dims):
    return np.ones(dims, np.float32)


# Operator, dims of its input, attributes, other inputs (constants in their order), outputs.
ROWS = [
    ("CumSum", [1000000], {}, [np.array(0, np.int64)], 1),
    ("CumSum", [4, 250000], {"reverse": 1}, [np.array(1, np.int64)], 1),
    ("Softmax", [1, 1000000], {}, [], 1),
    ("Softmax", [100000, 10], {"axis": 0}, [], 1),
    ("LogSoftmax", [1, 1000000], {}, [], 1),
    ("Hardmax", [1, 1000000], {}, [], 1),
    ("LpNormalization", [100000, 10], {"axis": 0}, [], 1),
    ("MeanVarianceNormalization", [1, 3, 500, 500], {"axes": [0, 2, 3]}, [], 1),
    ("LayerNormalization", [1, 1000000], {}, [ones(1000000)], 1),
    ("InstanceNormalization", [1, 2, 700, 700], {}, [ones(2), ones(2)], 1),
    ("GroupNormalization", [1, 4, 500, 500], {"num_groups": 2}, [ones(4), ones(4)], 1),
    ("BatchNormalization", [16, 4, 100, 100], {"training_mode": 1}, [ones(4)] * 4, 3),
    ("LRN", [1, 64, 128, 128], {"size": 5}, [], 1),
    ("GlobalLpPool", [1, 2, 700, 700], {}, [], 1),
    ("LpPool", [1, 8, 200, 200], {"kernel_shape": [7, 7]}, [], 1),
    ("AveragePool", [1, 8, 200, 200], {"kernel_shape": [31, 31]}, [], 1),
    ("MaxPool", [1, 8, 200, 200], {"kernel_shape": [1, 150]}, [], 1),
    ("MaxPool", [1, 8, 200, 200], {"kernel_shape": [7, 7]}, [], 2),
    ("MaxUnpool", [1, 8, 100, 100], {"kernel_shape": [2, 2], "strides": [2, 2]},
     [ints(*range(0, 320000, 4)).reshape(1, 8, 100, 100)], 1),
    ("ReduceMin", [1, 1000000], {"keepdims": 0}, [], 1),
    ("ReduceLogSumExp", [100000, 10], {}, [ints(0)], 1),
    ("ArgMax", [100000, 10], {"axis": 0}, [], 1),
    ("TopK", [1, 1000000], {}, [ints(100)], 2),
    ("TopK", [1, 100000], {}, [ints(50000)], 2),
    ("Unique", [100000], {}, [], 1),
    ("NonZero", [1, 1000000], {}, [], 1),
    ("Compress", [1000000], {}, [np.arange(1000000) % 3 == 0], 1),
    ("ScatterElements", [100000], {"reduction": "add"}, [np.arange(100000) % 1000, ones(100000)], 1),
    ("ScatterND", [100000, 4], {"reduction": "add"}, [np.arange(50000)[:, None], ones(50000, 4)], 1),
    ("ReverseSequence", [1000, 100, 10], {}, [np.full(100, 1000)], 1),
    ("DynamicQuantizeLinear", [1000, 1000], {}, [], 3),
    ("Det", [2000, 8, 8], {}, [], 1),
    ("Einsum", [32, 32, 32], {"equation": "abc,bd,ce->ade"}, [ones(32, 32), ones(32, 32)], 1),
    ("Col2Im", [1, 72, 10000], {}, [ints(102, 102), ints(3, 3)], 1),
    ("DFT", [1, 4096, 1], {}, [np.array(4096, np.int64), np.array(1, np.int64)], 1),
    ("STFT", [1, 16000, 1], {}, [np.array(160, np.int64), ones(400)], 1),
    ("GatherElements", [1000000], {}, [np.arange(1000000) * 7 % 1000000], 1),
    ("LSTM", [500, 1, 64], {"hidden_size": 64}, [ones(1, 256, 64) / 100] * 2, 1),
]


def model_of(row):
    op, dims, attributes, constants, outputs = row
    names = [f"c{i}" for i in range(len(constants))]
    node = helper.make_node(op, ["x", *names], [f"y{i}" for i in range(outputs)], **attributes)
    graph = helper.make_graph(
        [node], op, [helper.make_tensor_value_info("x", TensorProto.FLOAT, dims)],
        [onnx.ValueInfoProto(name=name) for name in node.output],
        [numpy_helper.from_array(held, name) for name, held in zip(names, constants)])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("exe")
    arguments.add_argument("--device", default="opencl:0")
    arguments.add_argument("--limit", type=float, default=20)
    arguments.add_argument("--only", nargs="*", default=[])
    o = arguments.parse_args()
    failed = passed = 0
    with tempfile.TemporaryDirectory() as folder:
        for row in ROWS:
            if o.only and row[0] not in o.only:
                continue
            path = pathlib.Path(folder) / "model.onnx"
            onnx.save(model_of(row), path)
            name = f"{row[0]} {row[1]} {row[2] or ''}"
            begin = time.monotonic()
            try:
                done = subprocess.run([o.exe, "bench", str(path), "--device", o.device, "--runs", "3", "--warmup", "1",
                                       "--json", "-"], capture_output=True, text=True, timeout=o.limit)
                said = done.stderr.strip().splitlines()
                text = ("" if done.returncode else f"{json.loads(done.stdout)['latency_ms']['median']:.2f} ms"
                        ) or f"exit status {done.returncode}: {said[-1] if said else ''}"
                is_good = done.returncode == 0
            except subprocess.TimeoutExpired:
                text, is_good = f"more than {o.limit:.0f} s", False
            passed, failed = passed + is_good, failed + (not is_good)
            print(f"{'' if is_good else 'FAILED '}{name}: {text}, {time.monotonic() - begin:.1f} s in all", flush=True)
    print(f"{passed} passed, {failed} failed")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())

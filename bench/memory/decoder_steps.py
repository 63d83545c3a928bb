#!/usr/bin/env python3
"""Runs a decoder token by token in one session and prints what time and memory do: decoder_steps.py EXE [--steps N]

The decoder is written here: LAYERS layers of attention over keys and values of the past, which come as inputs and go as
outputs one longer, and a gated product; random weights. `EXE walk` runs it with a past of 0, 1, 2, ... N - 1 tokens, a
new shape each time, twice each. Every tenth of a second the resident memory of the process is read from /proc.

The table has ten rows of N / 10 steps each: medians of the second run and of planning, bytes on the device at the row's
end, and resident memory at its end. Time per step grows with the past that is attended to: `beside the line` is the
largest ratio of a row's median to the straight line through the first and the last row. Needs PyPI's onnx and numpy.
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import tempfile
import threading
import time

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

LAYERS, HEADS, SIZE = 4, 4, 32
WIDTH = HEADS * SIZE


def decoder(path):
    rng = np.random.default_rng(1)
    nodes, constants, inputs, outputs = [], [], [], []

    def weights(name, *dims):
        constants.append(numpy_helper.from_array((rng.standard_normal(dims) / dims[0] ** 0.5).astype(np.float32), name))
        return name

    def add(op, of, to, **attributes):
        nodes.append(helper.make_node(op, of, [to], **attributes))
        return to

    constants.append(numpy_helper.from_array(np.array([1, 1, HEADS, SIZE], np.int64), "heads"))
    constants.append(numpy_helper.from_array(np.array([1, 1, WIDTH], np.int64), "joined"))
    constants.append(numpy_helper.from_array(np.array(SIZE ** -0.5, np.float32), "scale"))
    x = "x"
    inputs.append(helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 1, WIDTH]))
    for layer in range(LAYERS):
        name = f"{layer}."
        part = {}
        for one in "qkv":
            flat = add("MatMul", [x, weights(name + "w" + one, WIDTH, WIDTH)], name + one)
            part[one] = add("Transpose", [add("Reshape", [flat, "heads"], name + one + "4")], name + one + "h",
                            perm=[0, 2, 1, 3])
        for one in "kv":
            past = name + "past_" + one
            inputs.append(helper.make_tensor_value_info(past, TensorProto.FLOAT, [1, HEADS, "past", SIZE]))
            whole = add("Concat", [past, part[one]], name + "present_" + one, axis=2)
            outputs.append(helper.make_tensor_value_info(whole, TensorProto.FLOAT, [1, HEADS, "present", SIZE]))
            part[one] = whole
        scores = add("MatMul", [part["q"], add("Transpose", [part["k"]], name + "kt", perm=[0, 1, 3, 2])], name + "s")
        weighed = add("Softmax", [add("Mul", [scores, "scale"], name + "m")], name + "p", axis=-1)
        seen = add("Transpose", [add("MatMul", [weighed, part["v"]], name + "o")], name + "ot", perm=[0, 2, 1, 3])
        flat = add("Reshape", [seen, "joined"], name + "of")
        x = add("Add", [x, add("MatMul", [flat, weights(name + "wo", WIDTH, WIDTH)], name + "proj")], name + "a")
        up = add("MatMul", [x, weights(name + "up", WIDTH, 2 * WIDTH)], name + "u")
        gated = add("Mul", [up, add("Sigmoid", [up], name + "g")], name + "ug")
        x = add("Add", [x, add("MatMul", [gated, weights(name + "down", 2 * WIDTH, WIDTH)], name + "d")], name + "x")
    outputs.append(helper.make_tensor_value_info(x, TensorProto.FLOAT, [1, 1, WIDTH]))
    graph = helper.make_graph(nodes, "decoder", inputs, outputs, constants)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


def resident_kib(process):
    try:
        for line in pathlib.Path(f"/proc/{process.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1])
    except OSError:
        pass
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("exe")
    parser.add_argument("--device", default="opencl:0")
    parser.add_argument("--steps", type=int, default=4000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        model, points, result = (pathlib.Path(folder) / name for name in ("decoder.onnx", "points.json", "result.json"))
        decoder(model)
        points.write_text(json.dumps([{"past": past} for past in range(options.steps)]))
        process = subprocess.Popen([options.exe, "walk", str(model), "--walk", str(points), "--device", options.device,
                                    "--json", str(result), "-q"])
        memory = []

        def watch():
            while process.poll() is None:
                if (held := resident_kib(process)) is not None:
                    memory.append((time.monotonic(), held))
                time.sleep(0.1)

        watcher = threading.Thread(target=watch)
        begin = time.monotonic()
        watcher.start()
        status = process.wait()
        watcher.join()
        if status != 0:
            raise SystemExit(f"{options.exe} walk ended with {status}")
        whole = json.loads(result.read_text())
        walked = whole["points"]
    each = max(1, options.steps // 10)
    first = begin + whole["init_ms"] * 1e-3
    share = (memory[-1][0] - first) / sum(p["first_ms"] + p["second_ms"] for p in walked)
    print(f"| steps | ms | plan, ms | device, MB | resident, MB |\n|---|---|---|---|---|")
    rows, spent = [], 0.0
    for at in range(0, options.steps, each):
        row = walked[at:at + each]
        spent += sum(p["first_ms"] + p["second_ms"] for p in row)
        until = first + spent * share
        held = [kib for when, kib in memory if when <= until][-1]
        rows.append(statistics.median(p["second_ms"] for p in row))
        print(f"| {at + len(row)} | {rows[-1]:.3f} | {statistics.median(p['parts_ms']['plan'] for p in row):.3f} | "
              f"{row[-1]['device_bytes'] / 1e6:.1f} | {held / 1024:.1f} |")
    line = [rows[0] + (rows[-1] - rows[0]) * i / max(1, len(rows) - 1) for i in range(len(rows))]
    print(f"beside the line: {max(a / b for a, b in zip(rows, line)):.2f}; "
          f"programs built during the walk: {sum(p['builds'] for p in walked)}")


if __name__ == "__main__":
    main()

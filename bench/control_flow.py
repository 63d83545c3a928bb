#!/usr/bin/env python3
"""What control flow costs: a gated residual network with a share of its blocks taken, and models from files.

  bench/control_flow.py [--runs N] [--model FILE --shape NAME=DIMS ...] DNNOPT [DNNOPT ...]

The network is made here, after SkipNet's idea (a gate before each residual block, computed from the features, decides
whether the block runs); its weights are seeded and nothing is kept. For each share of taken blocks every program
DNNOPT (the `dnnopt` tool, of one version or several) and ONNX Runtime with two threads run it in turn; a row has the
median latency, the operators that ran on the host, and device commands. The last column is how far the first program
is from the line between none and all blocks. With --model the same is done for a file, with generated inputs.
"""
import argparse
import json
import pathlib
import subprocess
import tempfile
import time

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

BLOCKS = 16


def gated_network(taken, channels=64, extent=28):
    """A network whose first `taken` of 16 gates, in an order that spreads them, are open."""
    random = np.random.default_rng(7)
    nodes, constants = [], []

    def constant(name, value):
        constants.append(numpy_helper.from_array(np.asarray(value), name))
        return name

    half = constant("half", np.float32(0.5))
    little = constant("little", np.float32(1e-6))
    open_gates = {(i * 7) % BLOCKS for i in range(taken)}
    x = "x"
    for i in range(BLOCKS):
        weights = [constant(f"w{i}{k}", (random.standard_normal((channels, channels, 3, 3)) * 0.03).astype(np.float32))
                   for k in "ab"]
        gate = constant(f"gate{i}", np.float32(i in open_gates))
        # Of the features, so that nothing but a run can tell.
        nodes += [helper.make_node("ReduceMean", [x], [f"mean{i}"], keepdims=0),
                  helper.make_node("Mul", [f"mean{i}", little], [f"share{i}"]),
                  helper.make_node("Add", [f"share{i}", gate], [f"score{i}"]),
                  helper.make_node("Greater", [f"score{i}", half], [f"open{i}"])]
        block = helper.make_graph(
            [helper.make_node("Conv", [x, weights[0]], [f"c{i}"], pads=[1] * 4),
             helper.make_node("Relu", [f"c{i}"], [f"r{i}"]),
             helper.make_node("Conv", [f"r{i}", weights[1]], [f"d{i}"], pads=[1] * 4),
             helper.make_node("Add", [f"d{i}", x], [f"s{i}"]),
             helper.make_node("Relu", [f"s{i}"], [f"t{i}"])],
            "block", [], [helper.make_tensor_value_info(f"t{i}", TensorProto.FLOAT, None)])
        skip = helper.make_graph([helper.make_node("Identity", [x], [f"k{i}"])], "skip", [],
                                 [helper.make_tensor_value_info(f"k{i}", TensorProto.FLOAT, None)])
        nodes.append(helper.make_node("If", [f"open{i}"], [f"y{i}"], then_branch=block, else_branch=skip))
        x = f"y{i}"
    dims = [1, channels, extent, extent]
    graph = helper.make_graph(nodes, "gated", [helper.make_tensor_value_info("x", TensorProto.FLOAT, dims)],
                              [helper.make_tensor_value_info(x, TensorProto.FLOAT, dims)], constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def by_dnnopt(tool, file, shapes, runs):
    with tempfile.NamedTemporaryFile(suffix=".json") as out:
        subprocess.run([tool, "bench", file, "--device", "opencl", "--warmup", "5", "--runs", str(runs), "--json",
                        out.name, *[f for shape in shapes for f in ("--shape", shape)]],
                       check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        result = json.load(open(out.name))
    return result["latency_ms"]["median"], result["host_ops"], result["kernels"]


def by_onnxruntime(file, shapes, runs):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 2
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(file, options, providers=["CPUExecutionProvider"])
    stated = {name: [int(d) for d in dims.split("x")] for name, dims in (s.split("=") for s in shapes)}
    types = {"tensor(float)": np.float32, "tensor(int64)": np.int64, "tensor(bool)": np.bool_}
    feeds = {}
    for value in session.get_inputs():
        dims = stated.get(value.name, value.shape)
        feeds[value.name] = (np.random.default_rng(0).random(dims) if dims else np.float64(0)).astype(types[value.type])
    times = []
    for _ in range(runs + 5):
        begin = time.perf_counter()
        session.run(None, feeds)
        times.append((time.perf_counter() - begin) * 1e3)
    return float(np.median(times[5:]))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("tools", nargs="+")
    parser.add_argument("--runs", type=int, default=30)
    parser.add_argument("--model")
    parser.add_argument("--shape", action="append", default=[])
    flags = parser.parse_args()

    def row(name, file):
        found = [by_dnnopt(tool, file, flags.shape, flags.runs) for tool in flags.tools]
        ort = by_onnxruntime(file, flags.shape, flags.runs)
        print(f"{name:24}" + "".join(f"{ms:10.3f} ms {host:4} host {kernels:4} commands" for ms, host, kernels in found)
              + f"   ONNX Runtime {ort:8.3f} ms", end="")
        return found[0][0]

    if flags.model:
        row(pathlib.Path(flags.model).name, flags.model)
        print()
        return
    medians = {}
    with tempfile.TemporaryDirectory() as folder:
        for taken in (0, BLOCKS, BLOCKS // 4, BLOCKS // 2, 3 * BLOCKS // 4):
            file = str(pathlib.Path(folder) / f"gated{taken}.onnx")
            onnx.save(gated_network(taken), file)
            medians[taken] = row(f"{100 * taken // BLOCKS}% of {BLOCKS} blocks", file)
            if 0 < taken < BLOCKS:
                line = medians[0] + (medians[BLOCKS] - medians[0]) * taken / BLOCKS
                print(f"   {100 * (medians[taken] / line - 1):+.1f}% of the line", end="")
            print(flush=True)


if __name__ == "__main__":
    main()

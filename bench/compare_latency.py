#!/usr/bin/env python3
"""Latency and start beside ONNX Runtime on a CPU: dnnopt on its first OpenCL device, ONNX Runtime with as many threads.

compare_latency.py EXE [MODEL.onnx ...] [--rounds N] [--runs N] [--threads N] [--json FILE]

Same weights; inputs of the same shapes, each engine's own. The engines take turns, a process of dnnopt and a session of
ONNX Runtime in each of N rounds (3, at least 2 for the two starts), and a figure is the median over rounds of each one's median over N inferences (20) after 5. A start is what lies before the
first result: loading, compilation, first inference. Before both of dnnopt's starts the driver's own cache is emptied
(XDG_CACHE_HOME is a new folder, of which only dnnopt's part is kept for the second). Ends with the geometric mean and the
worst of the ratios. Needs onnx, onnxruntime, numpy.
"""
import argparse
import json
import math
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

import onnx
import onnxruntime as ort

from zoo_inputs import make_inputs

HERE = os.path.dirname(os.path.abspath(__file__))
DEFAULT = [
    "mobilenetv2_100", "squeezenet1_0", "resnet50", "efficientnet_b0", "convnext_tiny", "swin_tiny_patch4_window7_224",
    "vit_base_patch16_224", "bert_base",
]


def bench(exe, model, cache, runs):
    """The JSON of `bench`, with the driver's part of the cache emptied before."""
    for entry in os.listdir(cache):
        if entry != "dnnopt":
            shutil.rmtree(os.path.join(cache, entry))
    environment = {key: held for key, held in os.environ.items() if key != "POCL_CACHE_DIR"}
    done = subprocess.run(
        [exe, "bench", model, "--require-device", "--warmup", "5", "--runs", str(runs), "--json", "-"],
        capture_output=True, text=True, env={**environment, "XDG_CACHE_HOME": cache},
    )
    if done.returncode != 0:
        sys.exit(f"{model}: {done.stderr.strip()[-500:]}")
    return json.loads(done.stdout[done.stdout.index("{") :])


def onnxruntime_latency(model, threads, runs):
    """Median in ms."""
    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    session = ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    feeds = make_inputs(onnx.load(model, load_external_data=False), 1, {})
    times = []
    for i in range(5 + runs):
        began = time.perf_counter()
        session.run(None, feeds)
        if i >= 5:
            times.append((time.perf_counter() - began) * 1e3)
    return statistics.median(times)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("exe")
    parser.add_argument("models", nargs="*")
    parser.add_argument("--rounds", type=int, default=3, choices=range(2, 100), metavar="N")
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--json", default="")
    a = parser.parse_args()
    models = a.models or [os.path.join(HERE, "zoo", f"{name}.onnx") for name in DEFAULT]
    print(f"ONNX Runtime {ort.__version__}, {a.threads} threads; median of {a.rounds} rounds of {a.runs} inferences each, ms")
    print(f"{'model':32s}{'dnnopt':>10s}{'ONNX Runtime':>14s}{'ratio':>8s}{'first start, s':>16s}{'second':>9s}{'ratio':>8s}", flush=True)
    table = {}
    for path in models:
        name = os.path.splitext(os.path.basename(path))[0]
        with tempfile.TemporaryDirectory() as folder:
            model = shutil.copy(path, folder)
            subprocess.run([a.exe, "weights", model], check=True, stdout=subprocess.DEVNULL)
            cache = os.path.join(folder, "cache")
            os.mkdir(cache)
            rounds = [(bench(a.exe, model, cache, a.runs), onnxruntime_latency(model, a.threads, a.runs)) for _ in range(a.rounds)]
        ours = statistics.median(own["latency_ms"]["median"] for own, _ in rounds)
        theirs = statistics.median(other for _, other in rounds)
        starts = [(own["init_ms"] + own["first_ms"]) / 1000 for own, _ in rounds[:2]]
        table[name] = {"dnnopt_ms": ours, "onnxruntime_ms": theirs, "ratio": ours / theirs, "starts_s": starts}
        print(f"{name:32s}{ours:10.2f}{theirs:14.2f}{ours / theirs:8.2f}{starts[0]:16.2f}{starts[1]:9.2f}{starts[1] / starts[0]:8.2f}", flush=True)
    ratios = [row["ratio"] for row in table.values()]
    print(f"dnnopt / ONNX Runtime: geometric mean {math.exp(sum(map(math.log, ratios)) / len(ratios)):.2f} over {len(ratios)}, worst {max(ratios):.2f}")
    if a.json:
        with open(a.json, "w") as file:
            json.dump(table, file, indent=1)
    return 0


if __name__ == "__main__":
    sys.exit(main())

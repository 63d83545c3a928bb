#!/usr/bin/env python3
"""The networks of bench/zoo/sod2 through walks of inputs, beside ONNX Runtime: answers, latency, memory, gates.

dynamic_zoo.py DNNOPT [--models NAME,...] [--points N] [--most-side N] [--gates] [--seed N] [--folder FOLDER]

For each network N inputs (50 in SoD2, section 5.1) are drawn in the paper's ranges: sides from 224 to 640, for YOLOv6
multiples of 32, for the encoder of Stable Diffusion 64 to 224, 32 to 384 tokens; --most-side cuts the ranges short for
small machines. Which gates are open is drawn too. `dnnopt walk` and ONNX Runtime (two threads, one session, its arena
on) go through the same inputs; rows are

  equal      largest difference over largest magnitude, over all points; 'WRONG' above 1e-3
  first      milliseconds of a point's first run over those of its second: median and 90th percentile, the second time
             through the points in one session, when all is built (and a shape is new again where it left the cache)
  ms         latency of the second runs, least and largest, of both
  built      programs built the second time, and operators on the host in a point
  blocks     branches that runs took and left out
  arena MiB  the largest arena of the walk, of bodies none, and how much that is of its lower bound of live sets; beside
             it what ONNX Runtime's process grew by in its walk

The exit status is 1 where an answer is wrong or a network fails.

--gates is another table: latency with 0, 25, 50, 75 and 100 % of the gates steered open, the blocks that ran, and how far
each share is from the line between the first and the last by these blocks (what an image scores opens some gates as well,
or closes them). Blocks cost unequally: of each share four choices run, each a gate further, so that every gate is open as
often, and a number is the mean of the least of each. Needs numpy, onnx and onnxruntime from PyPI.
"""
import argparse
import json
import os
import pathlib
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np
import onnx

ZOO = pathlib.Path(__file__).resolve().parent / "zoo" / "sod2"
# What is drawn for each network: sides (least, most, multiple), or tokens.
RANGES = {
    "skipnet": ("sides", 224, 640, 1),
    "convnet_aig": ("sides", 224, 640, 1),
    "blockdrop": ("sides", 224, 640, 1),
    "ranet": ("sides", 224, 640, 1),
    "dgnet": ("sides", 224, 224, 1),
    "yolov6n": ("sides", 224, 640, 32),
    "sd_vae_encoder": ("sides", 64, 224, 8),
    "codebert_dynamic": ("tokens", 32, 384, 1),
}
OPEN, CLOSED = 8.0, -8.0


def gate_count(path):
    model = onnx.load(path, load_external_data=False)
    return next((i.type.tensor_type.shape.dim[0].dim_value for i in model.graph.input if i.name == "steer"), 0)


def steer_of(gates, count, random=None, turn=0):
    """Scores that open `count` of the gates, spread evenly (`turn` gates further) or drawn."""
    places = random.permutation(gates)[:count] if random is not None else [(i * gates // count + turn) % gates for i in range(count)]
    steer = np.full(gates, CLOSED, np.float32)
    steer[list(places)] = OPEN
    return steer


def inputs_of(name, gates, random, most, share=None, turn=0):
    kind, low, high, multiple = RANGES[name]
    high = max(low, min(high, most))
    draw = lambda: int(random.integers(-(-low // multiple), high // multiple + 1)) * multiple
    if kind == "tokens":
        length = draw()
        mask = np.ones((1, length), np.int64)
        mask[0, int(random.integers(length // 2, length + 1)):] = 0
        return {"input_ids": random.integers(2, 50000, (1, length), dtype=np.int64), "attention_mask": mask}
    height, width = (draw(), draw()) if share is None else (low, low)
    made = {"image": random.standard_normal((1, 3, height, width), dtype=np.float32)}
    if gates:
        made["steer"] = steer_of(gates, int(random.integers(0, gates + 1)), random) if share is None else steer_of(gates, share, turn=turn)
    return made


def resident():
    return int(open("/proc/self/statm").read().split()[1]) * resource.getpagesize()


def onnxruntime_walk(path, folder, count):
    """In a process of its own: outputs beside the inputs, and JSON on standard output."""
    import onnxruntime

    how = onnxruntime.SessionOptions()
    how.intra_op_num_threads = 2
    session = onnxruntime.InferenceSession(path, how, providers=["CPUExecutionProvider"])
    before = resident()
    ms = []
    for i in range(count):
        names = [n.name for n in session.get_inputs()]
        inputs = {n: np.load(f"{folder}/{i}/{n}.npy") for n in names}
        turns = []
        for _ in range(2):
            begin = time.perf_counter()
            outputs = session.run(None, inputs)
            turns.append(1e3 * (time.perf_counter() - begin))
        ms.append(turns)
        for n, content in zip(session.get_outputs(), outputs):
            np.save(f"{folder}/{i}/want_{n.name}.npy", content)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(json.dumps({"ms": ms, "grown": peak - before}))


def walk(tool, path, points, *more):
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file, tempfile.NamedTemporaryFile(suffix=".json") as told:
        json.dump(points, file)
        file.flush()
        done = subprocess.run([tool, "walk", path, "--walk", file.name, "--device", "opencl", "--json", told.name, *more], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        if done.returncode:
            raise RuntimeError(done.stderr.strip().splitlines()[-1])
        return json.load(open(told.name))


def prepared(a, name, folder):
    path = shutil.copy(ZOO / f"{name}.onnx", folder)
    subprocess.run([a.dnnopt, "weights", path], check=True, stdout=subprocess.DEVNULL)
    return path


def kept(folder, i, inputs):
    here = f"{folder}/{i}"
    os.makedirs(here)
    for name, content in inputs.items():
        np.save(f"{here}/{name}.npy", content)
    return {"inputs": {name: f"{here}/{name}.npy" for name in inputs}, "outputs": f"{here}/got"}


def difference(folder, count):
    most = 0.0
    for i in range(count):
        for want in pathlib.Path(folder, str(i)).glob("want_*.npy"):
            right, got = np.load(want), np.load(f"{folder}/{i}/got/{want.name[5:]}")
            if right.shape != got.shape or not (np.isfinite(right).all() and np.isfinite(got).all()):
                return float("inf")
            most = max(most, float(np.abs(right - got).max() / max(np.abs(right).max(), 1e-30)))
    return most


def compare(a, name):
    """Prints a network's row; whether its answers are right."""
    random = np.random.default_rng(a.seed)
    with tempfile.TemporaryDirectory(dir=a.folder) as folder:
        path = prepared(a, name, folder)
        gates = gate_count(path)
        points = [kept(folder, i, inputs_of(name, gates, random, a.most_side)) for i in range(a.points)]
        told = walk(a.dnnopt, path, points + points)
        judge = json.loads(subprocess.run([sys.executable, __file__, "--onnxruntime", path, folder, str(a.points)], check=True, stdout=subprocess.PIPE, text=True).stdout)
        wrong = difference(folder, a.points)
    # The first time through the points builds what is built, bodies among it.
    rows = told["points"][a.points:]
    ratio = sorted(r["first_ms"] / r["second_ms"] for r in rows[1:] or rows)
    theirs = sorted(first / second for first, second in judge["ms"][1:] or judge["ms"])
    at = lambda values, share: values[min(len(values) - 1, int(share * len(values)))]
    second, other = [r["second_ms"] for r in rows], [m[1] for m in judge["ms"]]
    arena, bound = max(r["arena_bytes"] for r in rows), max(r["lower_bound_bytes"] for r in rows)
    print(f"| {name} | {'WRONG ' if wrong > 1e-3 else ''}{wrong:.1e} | {statistics.median(ratio):.2f} / {at(ratio, 0.9):.2f} | {statistics.median(theirs):.2f} / {at(theirs, 0.9):.2f} "
          f"| {min(second):.0f} to {max(second):.0f} | {min(other):.0f} to {max(other):.0f} | {sum(r['builds'] for r in rows)} / {max(r['host_ops'] for r in rows)} "
          f"| {told['branches_run']} / {told['branches_skipped']} | {arena / 2**20:.1f} ({arena / max(bound, 1):.3f}) | {judge['grown'] / 2**20:.0f} |", flush=True)
    return wrong <= 1e-3


def gates_table(a, name):
    with tempfile.TemporaryDirectory(dir=a.folder) as folder:
        path = prepared(a, name, folder)
        gates = gate_count(path)
        shares = [0, 25, 50, 75, 100]
        cases = [(s, turn) for turn in range(4) for s in shares]
        inputs = lambda s, turn: inputs_of(name, gates, np.random.default_rng(a.seed), a.most_side, round(s * gates / 100), turn)
        points = {case: kept(folder, i, inputs(*case)) for i, case in enumerate(cases)}
        order = cases * max(a.points // len(cases), 3)
        rows = walk(a.dnnopt, path, [points[case] for case in order])["points"]
        best = {case: min(min(r["second_ms"], r["first_ms"]) for r, o in zip(rows, order) if o == case) for case in cases}
        ms = {s: statistics.mean(best[s, turn] for turn in range(4)) for s in shares}
        told = {s: walk(a.dnnopt, path, [points[s, turn] for turn in range(4)])["control_flow"] for s in shares}
    # Each of the four points runs twice.
    blocks = {s: sum(r["entered"] for r in told[s] if r["body"] == "then_branch") / 8 for s in shares}
    line = lambda s: ms[0] + (ms[100] - ms[0]) * (blocks[s] - blocks[0]) / (blocks[100] - blocks[0])
    print(f"| {name} | " + " | ".join(f"{ms[s]:.1f}, {blocks[s]:g} blocks ({100 * (ms[s] / line(s) - 1):+.0f} %)" for s in shares) + " |", flush=True)


def main():
    if sys.argv[1:2] == ["--onnxruntime"]:
        return onnxruntime_walk(sys.argv[2], sys.argv[3], int(sys.argv[4]))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dnnopt")
    parser.add_argument("--models", default=",".join(RANGES))
    parser.add_argument("--points", type=int, default=50)
    parser.add_argument("--most-side", type=int, default=640)
    parser.add_argument("--gates", action="store_true")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--folder")
    a = parser.parse_args()
    if a.gates:
        print("| network | 0 % | 25 % | 50 % | 75 % | 100 % |\n|---|---|---|---|---|---|")
    else:
        print("| network | equal | first | ONNX Runtime | ms | ONNX Runtime | built / host | blocks run / left out | arena MiB (of bound) | ONNX Runtime MiB |\n|" + "---|" * 10)
    failed = False
    for name in a.models.split(","):
        try:
            if not a.gates:
                failed = not compare(a, name) or failed
            elif gate_count(ZOO / f"{name}.onnx") > 2:
                gates_table(a, name)
        except (RuntimeError, subprocess.CalledProcessError) as why:
            failed = True
            print(f"| {name} | FAILED: {why} |", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

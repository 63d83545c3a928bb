#!/usr/bin/env python3
"""Shows that no pass is needed for right outputs: each pass left out alone, and passes in orders drawn from seeds.

Per model: weights and inputs from a seed, the outputs of `--passes none` on the reference backend once, then one run per
row: `default`, `default,-NAME` for each pass, and `--orders` shuffled lists (the plan of `fuse` is forgotten when nodes
are edited, so it stays last). A float output passes when every element lies within rtol 1e-3 and atol 1e-4 of the
output's largest magnitude; integer outputs must be equal; boxes of detectors are matched by label within 0.05 pixels.
The reference backend computes what `optimize -o` writes, the fused blocks in it too, so a list whose file and weights
equal those of a list that passed is not run again there; the number of different graphs is printed.

usage: check_pass_orders.py DNNOPT [--device reference] [--orders 3] [--seconds N] [MODEL.onnx ...]
needs: onnx, numpy from PyPI, onnxruntime (imported by compare_onnxruntime.py)
"""
import argparse
import glob
import hashlib
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time

import onnx

from compare_onnxruntime import DYNAMIC, compare, compare_detections, detections, run_dnnopt
from zoo_inputs import make_inputs

HERE = os.path.dirname(os.path.abspath(__file__))


def default_passes(exe, path):
    """Names of the default order, each once."""
    done = subprocess.run([exe, "optimize", path, "--json", "-"], capture_output=True, text=True, check=True)
    return list(dict.fromkeys(p["name"] for p in json.loads(done.stdout[done.stdout.index("{"):])["passes"]))


def lists_of_passes(names, orders):
    lists = ["default"] + [f"default,-{name}" for name in names]
    for seed in range(1, orders + 1):
        shuffled = [name for name in names if name != "fuse"]
        random.Random(seed).shuffle(shuffled)
        lists.append(",".join(shuffled + ["fuse"]))
    return lists


def digest_of(exe, path, passes, folder):
    """A hash of the graph that the passes leave, and of the weights they made."""
    exported = os.path.join(folder, "optimized.onnx")
    for old in glob.glob(os.path.join(folder, "optimized*")):
        os.remove(old)
    subprocess.run([exe, "optimize", path, "--passes", passes, "-o", exported], check=True, capture_output=True)
    digest = hashlib.sha256()
    for name in sorted(glob.glob(os.path.join(folder, "optimized*"))):
        with open(name, "rb") as file:
            while block := file.read(1 << 24):
                digest.update(block)
    return digest.hexdigest()


def differs(got, expected):
    """The worst output's error and why it fails, or None."""
    if detections(expected) is not None and detections(got) is not None:
        return compare_detections(detections(got), detections(expected))
    worst, reason = 0.0, None
    for name, value in expected.items():
        error, why = compare(got[name], value)
        worst = max(worst, error)
        reason = reason or (f"{name}: {why}" if why else None)
    return worst, reason


def check(a, source):
    """Rows that failed, and the number of rows."""
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        path = shutil.copy(source, folder)
        subprocess.run([a.dnnopt, "weights", path, "--seed", "0"], check=True, capture_output=True)
        name = os.path.splitext(os.path.basename(source))[0]
        feeds = make_inputs(onnx.load(path, load_external_data=False), 0, DYNAMIC.get(name, [{}])[-1])
        began = time.time()
        expected = run_dnnopt(a.dnnopt, path, feeds, "reference", folder, ["--passes", "none"])[0]
        lists = lists_of_passes(default_passes(a.dnnopt, path), a.orders)
        worst = 0.0
        right = set()
        for passes in lists:
            try:
                graph = digest_of(a.dnnopt, path, passes, folder) if a.device == "reference" else passes
                if graph in right:
                    continue
                why = "did not run"
                got, _, _ = run_dnnopt(a.dnnopt, path, feeds, a.device, folder, ["--passes", passes])
                error, why = differs(got, expected)
                worst = max(worst, error)
            except Exception as problem:
                why = " ".join(str(problem).split())[-300:]
            if not why:
                right.add(graph)
            else:
                failed += 1
                print(f"  FAILED {name} on {a.device} with {passes}: {why}", flush=True)
        print(f"{name:32} {len(lists) - failed} of {len(lists)} lists right, {len(right)} different graphs, worst {worst:.2g}, {time.time() - began:.0f} s", flush=True)
    return failed, len(lists)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("dnnopt")
    p.add_argument("models", nargs="*")
    p.add_argument("--device", default="reference")
    p.add_argument("--orders", type=int, default=3)
    p.add_argument("--seconds", type=float, default=float("inf"), help="starts no further model after that time")
    a = p.parse_args()
    models = a.models
    if not models:
        for folder in (os.path.join(HERE, "zoo"), os.path.join(HERE, "zoo", "dynamic")):
            models += sorted(os.path.join(folder, f) for f in os.listdir(folder) if f.endswith(".onnx"))
    began, rows, bad, skipped = time.time(), 0, 0, []
    for source in models:
        if time.time() - began > a.seconds:
            skipped.append(os.path.basename(source))
            continue
        failed, count = check(a, source)
        rows, bad = rows + count, bad + failed
    if skipped:
        print("not run for want of time: " + ", ".join(skipped))
    print(f"{rows - bad} passed, {bad} failed")
    sys.exit(bad > 0)


if __name__ == "__main__":
    main()

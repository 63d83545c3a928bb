#!/usr/bin/env python3
"""Shows that ONNX Runtime runs what `dnnopt optimize -o` writes and gets the original's outputs.

Per model: the exported file passes onnx.checker, loads, and every float output agrees with the original's within rtol
1e-3 and atol 1e-4 of the output's largest magnitude (detectors: boxes and scores sorted by score, 98% of them); integer
outputs are equal. Optimizations of ONNX Runtime are off, so that differences are the exported graph's.

usage: check_export.py [--dnnopt PROGRAM] [--passes LIST] [--seed N] [MODEL.onnx ...]
needs: onnx, onnxruntime, numpy from PyPI
"""
import argparse
import pathlib
import shutil
import subprocess
import sys
import tempfile

import numpy as np
import onnx

from check_weights import DETECTORS, DIMS, ZOO, session
from zoo_inputs import make_inputs


def agree(a, b):
    """Whether two outputs agree, and their largest difference over the largest magnitude."""
    if a.shape != b.shape:
        return False, np.inf
    if not np.issubdtype(a.dtype, np.floating):
        return bool((a == b).all()), 0.0
    if a.size == 0:
        return True, 0.0
    a, b = a.astype(np.float64), b.astype(np.float64)
    largest = np.abs(a).max()
    difference = np.abs(a - b)
    return bool((difference <= 1e-3 * np.abs(a) + 1e-4 * largest).all()), float(difference.max() / max(largest, 1e-30))


def boxes_agree(first, second):
    """Matches boxes by label and coordinates: near-ties may change their order."""
    (boxes, labels, *_), (others, other_labels, *_) = ([o for o in sorted(r, key=lambda o: -o.ndim)] for r in (first, second))
    free = list(range(len(others)))
    matched = 0
    for i, box in enumerate(boxes):
        for j in free:
            if np.abs(box - others[j]).max() <= 0.05:
                free.remove(j)
                matched += 1
                break
    return len(boxes) > 0 and matched >= 0.98 * len(boxes) and len(others) >= 0.98 * len(boxes), 1 - matched / max(len(boxes), 1)


def check(arguments, source, folder):
    path, exported = folder / source.name, folder / ("exported_" + source.name)
    shutil.copyfile(source, path)
    subprocess.run([arguments.dnnopt, "weights", str(path), "--seed", str(arguments.seed)], check=True, stdout=subprocess.DEVNULL)
    command = [arguments.dnnopt, "optimize", str(path), "-o", str(exported)]
    if arguments.passes:
        command += ["--passes", arguments.passes]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    onnx.checker.check_model(str(exported))
    model = onnx.load(path, load_external_data=False)
    inputs = make_inputs(model, 100, DIMS)
    first = session(path, False).run(None, inputs)
    second = session(exported, False).run(None, inputs)
    if any(name in source.name for name in DETECTORS):
        good, difference = boxes_agree(first, second)
    else:
        results = [agree(a, b) for a, b in zip(first, second)]
        good, difference = len(first) == len(second) and all(r[0] for r in results), max(r[1] for r in results)
    nodes = [len(onnx.load(p, load_external_data=False).graph.node) for p in (path, exported)]
    print(f"{source.stem:32} nodes {nodes[0]:5} to {nodes[1]:5}  difference {difference:9.3g}  {'ok' if good else 'BAD'}", flush=True)
    return good


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dnnopt", default=str(ZOO.parent.parent / "build/release/bin/dnnopt"))
    parser.add_argument("--passes", help="as `dnnopt optimize` takes it")
    parser.add_argument("--seed", default=0)
    parser.add_argument("models", nargs="*", type=pathlib.Path)
    arguments = parser.parse_args()
    models = arguments.models or sorted(ZOO.glob("*.onnx")) + sorted((ZOO / "dynamic").glob("*.onnx"))
    failed = 0
    for source in models:
        with tempfile.TemporaryDirectory() as folder:
            try:
                failed += not check(arguments, source, pathlib.Path(folder))
            except Exception as problem:
                print(f"{source.stem:32} {str(problem).splitlines()[0][:200]}  BAD", flush=True)
                failed += 1
    print(f"{len(models) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

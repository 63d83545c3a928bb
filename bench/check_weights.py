#!/usr/bin/env python3
"""Shows that generated weights make comparisons mean something: runs ONNX Runtime on the zoo with weights of three seeds.

Per model and seed: the largest magnitude of each float output (1e-2 to 1e3), how much of it changes from one input to
another (1% or more), boxes of detectors, and how far ONNX Runtime with its optimizations agrees with itself without
(as a share of rtol 1e-4 and atol 1e-5 of the largest magnitude; 1 or less).

usage: check_weights.py [--dnnopt PROGRAM] [--seeds 0,1,2] [--work FOLDER] [MODEL.onnx ...]
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
import onnxruntime

from zoo_inputs import make_inputs

ZOO = pathlib.Path(__file__).resolve().parent / "zoo"
DETECTORS = ("fasterrcnn", "ssdlite")
DIMS = {"batch": 2, "sequence": 32, "time": 96, "height": 192, "width": 160}


def session(path, optimized):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    level = onnxruntime.GraphOptimizationLevel
    options.graph_optimization_level = level.ORT_ENABLE_ALL if optimized else level.ORT_DISABLE_ALL
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def disagreement(a, b):
    """The largest difference over what is allowed; infinite where the shapes differ."""
    if a.shape != b.shape:
        return np.inf
    if a.size == 0:
        return 0.0
    b = b.astype(np.float64)
    allowed = 1e-4 * np.abs(b) + 1e-5 * np.abs(b).max() + 1e-30
    return float((np.abs(a - b) / allowed).max())


def change(a, b):
    """The largest difference of two outputs over the largest magnitude; outputs of different shapes do differ."""
    if a.shape != b.shape:
        return 1.0
    return float(np.abs(a - b).max() / max(np.abs(a).max(), np.abs(b).max(), 1e-30)) if a.size else 0.0


def check(path, seed):
    model = onnx.load(path, load_external_data=False)
    inputs = [make_inputs(model, s, DIMS) for s in (100, 101)]
    optimized = session(path, True)
    first, second = (optimized.run(None, i) for i in inputs)
    del optimized
    plain = session(path, False).run(None, inputs[0])
    detector = any(name in path.name for name in DETECTORS)
    floats = [i for i, o in enumerate(first) if np.issubdtype(o.dtype, np.floating)]
    sizes = [float(np.abs(first[i]).max()) if first[i].size else 0.0 for i in floats]
    finite = all(np.isfinite(o[i]).all() for o in (first, second) for i in floats)
    changes = [change(first[i], second[i]) for i in floats]
    boxes = min(len(o[0]) for o in (first, second)) if detector else None
    # The order of a detector's boxes at near-ties is free: sets of boxes are compared by the comparison of engines.
    apart = 0.0 if detector else max(disagreement(first[i], plain[i]) for i in floats)
    good = finite and min(sizes) >= 1e-2 and max(sizes) <= 1e3 and min(changes) >= 0.01 and apart <= 1
    good = good and (boxes is None or boxes > 0)
    print(f"{path.stem:32} seed {seed}  largest {min(sizes):9.3g} to {max(sizes):9.3g}  change {min(changes):7.2%}  "
          f"itself {apart:6.3f}  {'' if boxes is None else f'{boxes} boxes  '}{'ok' if good else 'BAD'}", flush=True)
    return good


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dnnopt", default=str(ZOO.parent.parent / "build/release/bin/dnnopt"))
    parser.add_argument("--seeds", default="0,1,2")
    parser.add_argument("--work", help="folder for the weights; a temporary one where it is not given")
    parser.add_argument("models", nargs="*", type=pathlib.Path)
    arguments = parser.parse_args()
    models = arguments.models or sorted(ZOO.glob("*.onnx")) + sorted((ZOO / "dynamic").glob("*.onnx"))
    failed = 0
    with tempfile.TemporaryDirectory(dir=arguments.work) as folder:
        for source in models:
            for seed in (int(s) for s in arguments.seeds.split(",")):
                path = pathlib.Path(folder) / source.name
                shutil.copyfile(source, path)
                try:
                    subprocess.run([arguments.dnnopt, "weights", str(path), "--seed", str(seed)], check=True, stdout=subprocess.DEVNULL)
                    failed += not check(path, seed)
                except Exception as problem:
                    print(f"{source.stem:32} seed {seed}  {str(problem).splitlines()[0][:150]}  BAD", flush=True)
                    failed += 1
                for made in pathlib.Path(folder).iterdir():
                    made.unlink()
    print(f"{len(models)} models, {failed} bad rows")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

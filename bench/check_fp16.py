#!/usr/bin/env python3
"""Storage in fp16 against fp32 on the zoo: errors, top-1 agreement, device memory.

check_fp16.py EXE [MODEL.onnx ...] [--device SPEC] [--seed N]

Each model runs once in fp32 and once in fp16 on the same generated weights and inputs. A row fails when an output whose
largest magnitude is below 1e3 errs by more than 2% of it, when fp16 has a NaN where fp32 has none, or when the peak of
device memory (weights, intermediates, the caller's tensors; `bench`'s peak_device_bytes) is above 0.55 of fp32's.
Detectors choose by sorting near-ties: their rows show figures and judge NaN and memory alone. top-1: the share of rows
along the last axis of the first output whose largest element is the same. The last line is 'N passed, M failed'.
Needs numpy.
"""
import argparse
import glob
import json
import os
import shutil
import subprocess
import sys
import tempfile

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
DETECTORS = ("fasterrcnn_mbv3", "ssdlite320")


def tool(*arguments):
    done = subprocess.run(arguments, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(done.stderr.strip()[-300:])


def outputs_of(exe, model, folder, arguments):
    os.makedirs(folder)
    tool(exe, "run", model, "--output-dir", folder, *arguments)
    return {os.path.basename(path): np.load(path) for path in sorted(glob.glob(os.path.join(folder, "*.npy")))}


def peak_of(exe, model, arguments):
    with tempfile.NamedTemporaryFile(suffix=".json") as target:
        tool(exe, "bench", model, "--warmup", "1", "--runs", "1", "--json", target.name, *arguments)
        return json.load(open(target.name))["peak_device_bytes"]


def check(exe, path, arguments):
    name = os.path.splitext(os.path.basename(path))[0]
    with tempfile.TemporaryDirectory() as folder:
        model = os.path.join(folder, os.path.basename(path))
        shutil.copy(path, model)
        tool(exe, "weights", model)
        wide = outputs_of(exe, model, os.path.join(folder, "wide"), arguments)
        half = outputs_of(exe, model, os.path.join(folder, "half"), [*arguments, "--precision", "fp16"])
        ratio = peak_of(exe, model, [*arguments, "--precision", "fp16"]) / peak_of(exe, model, arguments)
    judged = name not in DETECTORS
    faults = []
    worst = 0.0
    top = None
    for key, a in wide.items():
        b = half[key]
        if a.shape != b.shape:
            if judged:
                faults.append(f"{key}: shape {b.shape} for {a.shape}")
            continue
        if not np.issubdtype(a.dtype, np.floating):
            continue
        if np.isnan(b).any() and not np.isnan(a).any():
            faults.append(f"{key}: NaN")
        finite = np.isfinite(a)
        magnitude = float(np.abs(a[finite]).max()) if finite.any() else 0.0
        if magnitude > 0 and magnitude < 1e3:
            worst = max(worst, float(np.abs(a - b)[finite].max()) / magnitude)
        if top is None and a.ndim > 0 and a.shape[-1] > 1:
            top = float((a.argmax(-1) == b.argmax(-1)).mean())
    if judged and worst > 0.02:
        faults.append(f"an error of {worst:.4f}")
    if ratio > 0.55:
        faults.append(f"memory {ratio:.3f}")
    print(f"{name:32s} error {worst:8.5f}   top-1 {'-' if top is None else f'{top:.4f}'}   memory {ratio:.3f}   {'; '.join(faults) or 'ok'}", flush=True)
    return not faults


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("exe")
    parser.add_argument("models", nargs="*")
    parser.add_argument("--device", default="opencl")
    parser.add_argument("--seed", default="0")
    arguments = parser.parse_args()
    models = arguments.models or sorted(glob.glob(os.path.join(HERE, "zoo", "*.onnx")))
    passed = failed = 0
    for path in models:
        try:
            good = check(arguments.exe, path, ["--device", arguments.device, "--seed", arguments.seed])
        except RuntimeError as fault:
            print(f"{os.path.basename(path):32s} {fault}", flush=True)
            good = False
        passed += good
        failed += not good
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

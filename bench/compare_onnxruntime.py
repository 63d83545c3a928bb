#!/usr/bin/env python3
"""Compares dnnopt with ONNX Runtime on the zoo: same weights, same inputs, every output.

compare_onnxruntime.py EXE [MODEL.onnx ...] [--zoo DIR] [--devices reference,opencl] [--require-device] [--seed N]
                       [--cache FOLDER]

Each model is copied to a temporary folder, `EXE weights` writes its weights, inputs are drawn from the seed
(zoo_inputs.py), and both engines run. A float output passes when every element lies within rtol 1e-3 and atol 1e-4 of the
output's largest magnitude; integer outputs must be equal. Detectors (outputs boxes, labels, scores) are matched by label
and coordinates within 0.05 of a pixel; 98% must match. Models of dynamic/ run at three shapes.

With --require-device an operator that runs on the host fails the row, except in detectors, whose host operators are listed.
The conditions on the weights stand beside each row, over all float outputs: the largest magnitudes, the least change from
one input to another, and ONNX Runtime's disagreement with itself (optimizations on and off) in tenths of the tolerance;
a row with NaN or an infinity in an output fails. The last line is 'N passed, M failed'; a row counts once per model.

ONNX Runtime's outputs are kept in --cache, by the hash of model, weights, inputs, its version and its setting.
Needs onnx, onnxruntime, numpy from PyPI.
"""
import argparse
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

import numpy as np
import onnx
import onnxruntime as ort

from zoo_inputs import make_inputs

RTOL, ATOL = 1e-3, 1e-4
HERE = os.path.dirname(os.path.abspath(__file__))

# Shapes of the models with symbolic dims.
DYNAMIC = {
    "bert_base_dynamic": [{"batch": 1, "sequence": 128}, {"batch": 2, "sequence": 37}, {"batch": 3, "sequence": 5}],
    "gpt2_dynamic": [{"batch": 1, "sequence": 64}, {"batch": 2, "sequence": 33}, {"batch": 3, "sequence": 7}],
    "conformer_dynamic": [{"batch": 1, "time": 200}, {"batch": 2, "time": 77}, {"batch": 3, "time": 31}],
    "mobilenetv2_100_dynamic": [{"batch": 1, "height": 224, "width": 224}, {"batch": 2, "height": 160, "width": 192}, {"batch": 3, "height": 97, "width": 65}],
    "deeplabv3_dynamic": [{"batch": 1, "height": 224, "width": 224}, {"batch": 2, "height": 128, "width": 160}, {"batch": 1, "height": 97, "width": 129}],
    "swin_tiny_batch": [{"batch": 1}, {"batch": 2}, {"batch": 3}],
    "vit_base_batch": [{"batch": 1}, {"batch": 2}, {"batch": 3}],
    "minilm_l6_dynamic": [{"batch": 1, "sequence": 16}, {"batch": 4, "sequence": 9}, {"batch": 2, "sequence": 33}],
}


class judge:
    """ONNX Runtime on one model; its answers are kept by the hash of all that they depend on."""

    def __init__(self, path, folder):
        self.path, self.folder, self.digest = path, folder, None
        if folder:
            os.makedirs(folder, exist_ok=True)
            self.digest = hashlib.sha256()
            self.add_file(path)
            weights = os.path.splitext(path)[0] + ".weights"
            if os.path.exists(weights):
                self.add_file(weights)
            self.digest.update(ort.__version__.encode())

    def add_file(self, path):
        with open(path, "rb") as file:
            while block := file.read(1 << 24):
                self.digest.update(block)

    def run(self, feeds, optimized=True):
        kept = None
        if self.folder:
            digest = self.digest.copy()
            digest.update(b"optimized" if optimized else b"plain")
            for name, array in feeds.items():
                digest.update(f"{name} {array.dtype} {array.shape}".encode())
                digest.update(array.tobytes())
            kept = os.path.join(self.folder, digest.hexdigest() + ".npz")
            if os.path.exists(kept):
                with np.load(kept) as file:
                    return {name[1:]: file[name] for name in file.files}
        options = ort.SessionOptions()
        options.log_severity_level = 3
        if not optimized:
            options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
        session = ort.InferenceSession(self.path, options, providers=["CPUExecutionProvider"])
        names = [o.name for o in session.get_outputs()]
        outputs = dict(zip(names, session.run(names, feeds)))
        if kept:
            # A letter before each name, for a parameter of savez may be called so too.
            partial = kept + f".{os.getpid()}.npz"
            np.savez(partial, **{"o" + name: array for name, array in outputs.items()})
            os.replace(partial, kept)
        return outputs


def run_dnnopt(exe, path, feeds, device, folder, extra):
    arguments = [exe, "run", path, "--device", device, "--output-dir", os.path.join(folder, "out"), "--json", os.path.join(folder, "run.json"), *extra]
    for i, (name, array) in enumerate(feeds.items()):
        file = os.path.join(folder, f"in_{i}.npy")
        np.save(file, array)
        arguments += ["--input", f"{name}={file}"]
    began = time.time()
    done = subprocess.run(arguments, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(done.stderr.strip()[-300:])
    with open(os.path.join(folder, "run.json")) as f:
        result = json.load(f)
    return {o["name"]: np.load(o["file"]) for o in result["outputs"]}, result, time.time() - began


def compare(got, expected):
    """Largest error over largest magnitude, and the reason of a failure or None."""
    if got.shape != expected.shape or got.dtype != expected.dtype:
        return float("inf"), f"{got.dtype}{list(got.shape)} instead of {expected.dtype}{list(expected.shape)}"
    if not np.issubdtype(expected.dtype, np.floating):
        different = int((got != expected).sum())
        return float(different), f"{different} integers differ" if different else None
    if expected.size == 0:
        return 0.0, None
    if not np.array_equal(np.isnan(got), np.isnan(expected)):
        return float("inf"), "NaN on one side"
    got, expected = np.nan_to_num(got.astype(np.float64)), np.nan_to_num(expected.astype(np.float64))
    magnitude = np.abs(expected).max()
    error = np.abs(got - expected)
    bad = error > RTOL * np.abs(expected) + ATOL * magnitude
    worst = float(error.max() / magnitude) if magnitude > 0 else float(error.max())
    return worst, f"{int(bad.sum())} of {bad.size} elements off, largest {worst:.2g} of the magnitude" if bad.any() else None


def detections(outputs):
    """(boxes, labels) of a detector's outputs, or None."""
    boxes = [v for v in outputs.values() if v.ndim == 2 and v.shape[1] == 4 and np.issubdtype(v.dtype, np.floating)]
    labels = [v for v in outputs.values() if v.ndim == 1 and np.issubdtype(v.dtype, np.integer)]
    return (boxes[0], labels[0]) if len(boxes) == 1 and len(labels) == 1 and len(outputs) == 3 else None


def compare_detections(got, expected):
    boxes, labels = expected
    if len(boxes) == 0:
        return float("inf"), "ONNX Runtime finds no box: nothing is compared"
    free = list(range(len(got[0])))
    matched = 0
    for box, label in zip(boxes, labels):
        for i in free:
            if got[1][i] == label and np.abs(got[0][i] - box).max() <= 0.05:
                free.remove(i)
                matched += 1
                break
    share = matched / max(len(boxes), len(got[0]))
    return 1 - share, None if share >= 0.98 else f"{matched} of {len(boxes)} boxes found, {len(got[0])} given"


def conditions(expected, other, plain):
    """The conditions on the weights as text."""
    floats = [k for k, v in expected.items() if np.issubdtype(v.dtype, np.floating) and v.size]
    sizes = [float(np.abs(expected[k]).max()) for k in floats]
    changes = [1.0 if other[k].shape != expected[k].shape else float(np.abs(other[k] - expected[k]).max() / max(size, 1e-30))
               for k, size in zip(floats, sizes)]
    found = detections(expected)
    text = f"weights: largest {min(sizes, default=0):.3g} to {max(sizes, default=0):.3g}, change {min(changes, default=0):.2g}"
    if found is not None:
        share, _ = compare_detections(detections(plain), found)
        return text + f", {len(found[0])} boxes, itself {1 - share:.0%} of boxes"
    apart = 0.0
    for k in floats:
        value = expected[k].astype(np.float64)
        allowed = 0.1 * (RTOL * np.abs(value) + ATOL * np.abs(value).max()) + 1e-30
        apart = max(apart, float((np.abs(plain[k] - value) / allowed).max()))
    return text + f", itself {apart:.2g}"


def compare_model(a, source):
    """(faults, notes) of one model."""
    name = os.path.splitext(os.path.basename(source))[0]
    faults, notes = [], []
    with tempfile.TemporaryDirectory() as folder:
        path = shutil.copy(source, folder)
        done = subprocess.run([a.exe, "weights", path, "--seed", str(a.seed)], capture_output=True, text=True)
        if done.returncode != 0:
            return ["weights: " + done.stderr.strip()[-200:]], notes
        model = onnx.load(path, load_external_data=False)
        reference = judge(path, a.cache)
        for number, dims in enumerate(DYNAMIC.get(name, [{}])):
            where = "".join(f" {k}={v}" for k, v in dims.items())
            feeds = make_inputs(model, 2 * (a.seed + number), dims)
            try:
                expected = reference.run(feeds)
                if not a.no_conditions:
                    other = reference.run(make_inputs(model, 2 * (a.seed + number) + 1, dims))
                    notes.append(conditions(expected, other, reference.run(feeds, optimized=False)))
                for key, value in expected.items():
                    if np.issubdtype(value.dtype, np.floating) and not np.isfinite(value).all():
                        faults.append(f"ONNX Runtime{where} {key}: NaN or infinity")
            except Exception as fault:
                faults.append(f"ONNX Runtime{where} {type(fault).__name__}: {str(fault)[-300:]}")
                continue
            boxes = detections(expected)
            for device in a.devices.split(","):
                extra = ["--passes", a.passes]
                if a.require_device and device != "reference" and boxes is None:
                    extra.append("--require-device")
                try:
                    got, result, seconds = run_dnnopt(a.exe, path, feeds, device, folder, extra)
                except Exception as fault:
                    faults.append(f"{device}{where} {type(fault).__name__}: {str(fault)[-300:]}")
                    continue
                worst = 0.0
                if boxes is not None and detections(got) is not None:
                    worst, why = compare_detections(detections(got), boxes)
                    if why:
                        faults.append(f"{device}: {why}")
                    notes.append(f"{device} {1 - worst:.0%} of boxes")
                    host = [p["op"] for p in result["placements"] if p["where"] == "host"]
                    if device != "reference":
                        notes.append("on the host " + (", ".join(f"{host.count(op)} {op}" for op in sorted(set(host))) or "nothing"))
                else:
                    for key, value in expected.items():
                        if key not in got:
                            faults.append(f"{device}{where}: no output {key}")
                            continue
                        error, why = compare(got[key], value)
                        worst = max(worst, error)
                        if why:
                            faults.append(f"{device}{where} {key}: {why}")
                    notes.append(f"{device}{where} err {worst:.1g}")
                notes.append(f"{result['kernels']} kernels, {result['host_ops']} host, {seconds:.1f} s")
    return faults, notes


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("exe")
    p.add_argument("models", nargs="*")
    p.add_argument("--zoo", default=os.path.join(HERE, "zoo"))
    p.add_argument("--devices", default="reference,opencl")
    p.add_argument("--seed", type=int, default=0)
    p.add_argument("--require-device", action="store_true", help="host operators fail a row, except in detectors")
    p.add_argument("--no-conditions", action="store_true", help="skip the conditions on weights (faster)")
    p.add_argument("--cache", help="folder that keeps ONNX Runtime's outputs from one run to the next")
    p.add_argument("--passes", default="default")
    a = p.parse_args()
    models = a.models
    if not models:
        for folder in (a.zoo, os.path.join(a.zoo, "dynamic")):
            models += sorted(os.path.join(folder, f) for f in os.listdir(folder) if f.endswith(".onnx"))
    passed = failed = 0
    for source in models:
        name = os.path.splitext(os.path.basename(source))[0]
        try:
            faults, notes = compare_model(a, source)
        except Exception as fault:
            faults, notes = [f"{type(fault).__name__}: {str(fault)[-300:]}"], []
        # A row is one line, whatever a driver's message holds.
        text = " ".join("; ".join(faults + notes).split())
        print(f"{'FAILED' if faults else 'passed'} {name}: {text}", flush=True)
        passed, failed = (passed, failed + 1) if faults else (passed + 1, failed)
    print(f"{passed} passed, {failed} failed")
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Compares dnnopt with ONNX Runtime on the zoo: same weights, same inputs, every output.

compare_onnxruntime.py EXE [MODEL.onnx ...] [--zoo DIR] [--devices reference,opencl] [--seed N] [--require-device]

Each model is copied to a temporary folder, `EXE weights` writes its weights, inputs are drawn from the seed, and both
engines run. A float output passes when every element lies within rtol 1e-3 and atol 1e-4 of the output's largest
magnitude; integer outputs must be equal. Detectors (outputs boxes, labels, scores) are matched by label and coordinates
within 0.05 of the image's pixels; 98% must match. Models of dynamic/ run at three shapes. The conditions on the weights
stand beside each row: largest magnitude of the first output, change from one input to another, and how far ONNX Runtime
disagrees with itself with its optimizations off. The last line is 'N passed, M failed'; a row counts once per model.
Needs onnx, onnxruntime, numpy from PyPI.
"""
import argparse, json, os, shutil, subprocess, sys, tempfile, time

import numpy as np
import onnx
import onnxruntime as ort

RTOL, ATOL = 1e-3, 1e-4
HERE = os.path.dirname(os.path.abspath(__file__))

# Shapes of the models with symbolic dims; conformer's lengths have their largest equal to time.
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


def inputs_for(model, dims, rng):
    """Inputs from a generator: ids, masks of ones, lengths whose largest is `time`, normal floats (0..1 for detectors)."""
    vocabulary = 1000
    feeds = {}
    constants = {i.name for i in model.graph.initializer}
    for value in model.graph.input:
        if value.name in constants:
            continue
        shape = [d.dim_value if d.HasField("dim_value") else dims.get(d.dim_param, 1) for d in value.type.tensor_type.shape.dim]
        kind = onnx.helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type)
        if np.issubdtype(kind, np.floating):
            feeds[value.name] = rng.standard_normal(shape).astype(kind)
        elif "mask" in value.name:
            feeds[value.name] = np.ones(shape, kind)
        elif "length" in value.name:
            lengths = rng.integers(1, dims.get("time", 2) + 1, shape)
            lengths.flat[0] = dims.get("time", 2)
            feeds[value.name] = lengths.astype(kind)
        elif "token_type" in value.name or "segment" in value.name:
            feeds[value.name] = np.zeros(shape, kind)
        else:
            feeds[value.name] = rng.integers(1, vocabulary, shape).astype(kind)
    return feeds


def run_onnxruntime(path, feeds, optimized=True, cache={}):
    options = ort.SessionOptions()
    options.log_severity_level = 3
    if not optimized:
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    names = [o.name for o in session.get_outputs()]
    return dict(zip(names, session.run(names, feeds)))


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


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("exe")
    p.add_argument("models", nargs="*")
    p.add_argument("--zoo", default=os.path.join(HERE, "zoo"))
    p.add_argument("--devices", default="reference,opencl")
    p.add_argument("--seed", type=int, default=0)
    p.add_argument("--require-device", action="store_true", help="for models without host operators")
    p.add_argument("--no-conditions", action="store_true", help="skip the rows on weights (faster)")
    p.add_argument("--passes", default="default")
    a = p.parse_args()
    models = a.models
    if not models:
        for folder in (a.zoo, os.path.join(a.zoo, "dynamic")):
            models += sorted(os.path.join(folder, f) for f in os.listdir(folder) if f.endswith(".onnx"))
    passed = failed = 0
    for source in models:
        name = os.path.splitext(os.path.basename(source))[0]
        faults, notes = [], []
        with tempfile.TemporaryDirectory() as folder:
            path = shutil.copy(source, folder)
            done = subprocess.run([a.exe, "weights", path, "--seed", str(a.seed)], capture_output=True, text=True)
            if done.returncode != 0:
                faults.append("weights: " + done.stderr.strip()[-200:])
            model = onnx.load(path, load_external_data=False)
            for dims in DYNAMIC.get(name, [{}]) if not faults else []:
                where = " ".join(f"{k}={v}" for k, v in dims.items())
                rng = np.random.default_rng(a.seed + 1)
                feeds = inputs_for(model, dims, rng)
                try:
                    expected = run_onnxruntime(path, feeds)
                    if not a.no_conditions:
                        other = run_onnxruntime(path, inputs_for(model, dims, rng))
                        plain = run_onnxruntime(path, feeds, optimized=False)
                        for key, value in expected.items():
                            if np.issubdtype(value.dtype, np.floating) and value.size:
                                top = float(np.abs(value).max())
                                change = float(np.abs(other[key] - value).max() / top) if other[key].shape == value.shape and top > 0 else float("nan")
                                self_error = compare(plain[key], value)[0]
                                notes.append(f"|{key[:12]}| {top:.3g} change {change:.2g} self {self_error:.1g}")
                                break
                    for device in a.devices.split(","):
                        extra = ["--passes", a.passes] + (["--require-device"] if a.require_device and device != "reference" and detections(expected) is None else [])
                        got, result, seconds = run_dnnopt(a.exe, path, feeds, device, folder, extra)
                        worst = 0.0
                        if detections(expected) is not None and detections(got) is not None:
                            worst, why = compare_detections(detections(got), detections(expected))
                            if why:
                                faults.append(f"{device}: {why}")
                        else:
                            for key, value in expected.items():
                                if key not in got:
                                    faults.append(f"{device} {where}: no output {key}")
                                    continue
                                error, why = compare(got[key], value)
                                worst = max(worst, error)
                                if why:
                                    faults.append(f"{device} {where} {key}: {why}")
                        notes.append(f"{device} {where} err {worst:.1g}, {result['kernels']} kernels, {result['host_ops']} host, {seconds:.1f} s")
                except Exception as fault:
                    faults.append(f"{where} {type(fault).__name__}: {str(fault)[-300:]}")
        print(f"{'FAILED' if faults else 'passed'} {name}: {'; '.join(faults + notes)}", flush=True)
        passed, failed = (passed, failed + 1) if faults else (passed + 1, failed)
    print(f"{passed} passed, {failed} failed")
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()

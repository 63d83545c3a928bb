"""Compares dnnopt with ONNX Runtime on models that ONNX Runtime's own tools made.

usage: check_tools.py DNNOPT [--device D]... [--zoo MODEL.onnx]...

Small networks (tool_models.py), and those given by --zoo with generated weights, go through the transformers optimizer, a session
that saves what it optimized, static quantization in both forms, with 16 bits, dynamic quantization, and 4- and 8-bit MatMulNBits; a decoder
in the form of the GenAI builder runs a prompt and two tokens. Each row names the operators of com.microsoft that the tool wrote and the
greatest difference over the greatest magnitude, of all outputs. Float models pass within 1e-3, quantized ones within 0.03: one code more or less
where a value lies between two of them moves everything behind it.
"""
import argparse
import collections
import logging
import pathlib
import shutil
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime as ort
from onnxruntime import quantization as q
from onnxruntime.quantization import matmul_nbits_quantizer as n_bits
from onnxruntime.transformers import optimizer

import tool_models


def session(path, level=ort.GraphOptimizationLevel.ORT_DISABLE_ALL, save=None):
    options = ort.SessionOptions()
    options.graph_optimization_level = level
    options.log_severity_level = 3
    if save:
        options.optimized_model_filepath = str(save)
    return ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


class reader(q.CalibrationDataReader):
    def __init__(self, feeds):
        random = np.random.default_rng(7)
        self.rows = iter([feeds(random) for _ in range(4)])

    def get_next(self):
        return next(self.rows, None)


def run_dnnopt(exe, device, model, feeds, folder):
    flags = []
    for i, (name, array) in enumerate(feeds.items()):
        np.save(folder / f"in{i}.npy", np.ascontiguousarray(array))
        flags += ["--input", f"{name}={folder / f'in{i}.npy'}"]
    out = folder / "out"
    shutil.rmtree(out, ignore_errors=True)
    done = subprocess.run([exe, "run", str(model), "--device", device, "--output-dir", str(out), *flags], text=True,
                          capture_output=True)
    if done.returncode != 0:
        raise RuntimeError((done.stderr or done.stdout).strip().splitlines()[-1][:300])
    return {p.stem: np.load(p) for p in out.glob("*.npy")}


def compare(exe, devices, model, steps, tolerance):
    """The greatest difference per device; `steps(random, run)` calls run with the inputs of each step."""
    judge = session(model)
    names = [o.name for o in judge.get_outputs()]
    result = {}
    with tempfile.TemporaryDirectory() as folder:
        for device in devices:
            worst = [0.0]

            def run(feeds):
                wanted = dict(zip(names, judge.run(None, feeds)))
                got = run_dnnopt(exe, device, model, feeds, pathlib.Path(folder))
                for name, y in wanted.items():
                    mine = got.get(name, got.get(name.replace("/", "_")))
                    if mine is None or mine.shape != y.shape:
                        raise RuntimeError(f"output {name}: {None if mine is None else mine.shape} for {y.shape}")
                    if y.size:
                        worst[0] = max(worst[0], float(np.abs(mine.astype(np.float64) - y).max() / max(np.abs(y).max(), 1e-30)))
                return wanted

            try:
                steps(np.random.default_rng(5), run)
                result[device] = f"{worst[0]:.1e} {'ok' if worst[0] <= tolerance else 'FAILED'}"
            except Exception as fault:
                result[device] = f"FAILED {str(fault)[:250]}"
    return result


def contrib_operators(path):
    count = collections.Counter(n.op_type for n in onnx.load(path, load_external_data=False).graph.node
                                if n.domain == "com.microsoft" or n.op_type == "SimplifiedLayerNormalization")
    return " ".join(f"{k}*{v}" for k, v in sorted(count.items())) or "-"


def tools(path, feeds, kind, folder):
    """Pairs of a name and a function that writes the model; a float model first."""
    made = {}

    def file(name):
        made[name] = folder / f"{name}.onnx"
        return made[name]

    def optimize():
        options = {"model_type": kind[0], "num_heads": kind[1], "hidden_size": kind[2]}
        optimizer.optimize_model(str(path), opt_level=0, **options).save_model_to_file(str(file("optimized")))

    if kind:
        yield "optimize_model", 1e-3, "optimized", optimize
    extended = ort.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
    yield "session, extended", 1e-3, "extended", lambda: session(path, extended, file("extended"))
    static = lambda name, source, **options: q.quantize_static(str(source), str(file(name)), reader(feeds), **options)
    yield "static, QDQ", 3e-2, "qdq", lambda: static("qdq", path, quant_format=q.QuantFormat.QDQ)
    yield "static, QDQ, session", 3e-2, "qdq_extended", lambda: session(made["qdq"], extended, file("qdq_extended"))
    yield "static, QOperator", 3e-2, "qoperator", lambda: static("qoperator", path, quant_format=q.QuantFormat.QOperator)
    yield "static, QDQ, 16 bits", 3e-2, "qdq16", lambda: static(
        "qdq16", path, quant_format=q.QuantFormat.QDQ, activation_type=q.QuantType.QUInt16, weight_type=q.QuantType.QInt8,
        extra_options={"UseQDQContribOps": True})
    yield "dynamic", 3e-2, "dynamic", lambda: q.quantize_dynamic(str(path), str(file("dynamic")), per_channel=True)
    yield "dynamic, session", 3e-2, "dynamic_extended", lambda: session(made["dynamic"], extended, file("dynamic_extended"))
    if kind:
        yield "optimize_model, dynamic", 3e-2, "optimized_dynamic", lambda: q.quantize_dynamic(
            str(made["optimized"]), str(file("optimized_dynamic")), weight_type=q.QuantType.QUInt8,
            extra_options={"DefaultTensorType": onnx.TensorProto.FLOAT})
    for bits, symmetric in ((4, True), (4, False), (8, False)):
        name = f"n_bits_{bits}_{symmetric}"

        def blocks(bits=bits, symmetric=symmetric, name=name):
            quantizer = n_bits.MatMulNBitsQuantizer(onnx.load(path), bits=bits, block_size=32, is_symmetric=symmetric)
            quantizer.process()
            quantizer.model.save_model_to_file(str(file(name)), False)

        yield f"MatMulNBits, {bits} bits, {'symmetric' if symmetric else 'zero points'}", 1e-3, name, blocks


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("exe")
    parser.add_argument("--device", action="append")
    parser.add_argument("--zoo", action="append", default=[])
    given = parser.parse_args()
    logging.disable(logging.WARNING)
    devices = given.device or ["reference", "opencl"]
    failed = 0

    def row(network, tool, model, steps, tolerance):
        nonlocal failed
        found = compare(given.exe, devices, model, steps, tolerance)
        failed += sum("FAILED" in v for v in found.values())
        print(f"{network} | {tool} | {contrib_operators(model)} | " + " | ".join(f"{d}: {v}" for d, v in found.items()), flush=True)

    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        networks = [("image", folder / "image.onnx", tool_models.image_network, None),
                    ("text", folder / "text.onnx", tool_models.text_network, ("bert", 4, 64))]
        for name, path, make, kind in networks:
            feeds = make(path)
            for tool, tolerance, made, write in tools(path, feeds, kind, folder):
                try:
                    write()
                except Exception as fault:
                    print(f"{name} | {tool} | the tool failed: {str(fault).strip().splitlines()[-1][:200]}")
                    continue
                row(name, tool, folder / f"{made}.onnx", lambda random, run: run(feeds(random)), tolerance)
        for window in (-1, 3):
            steps = tool_models.decoder_network(folder / "decoder.onnx", window=window)
            row(f"decoder, window {window}", "GenAI builder's form", folder / "decoder.onnx", steps, 1e-3)
            quantizer = n_bits.MatMulNBitsQuantizer(onnx.load(folder / "decoder.onnx"), block_size=32, is_symmetric=True)
            quantizer.process()
            quantizer.model.save_model_to_file(str(folder / "decoder4.onnx"), False)
            row(f"decoder, window {window}", "the same, 4 bits", folder / "decoder4.onnx", steps, 1e-3)
        for zoo in given.zoo:
            source = folder / pathlib.Path(zoo).name
            shutil.copy(zoo, source)
            subprocess.run([given.exe, "weights", str(source)], check=True, capture_output=True)
            ids = {i.name: [d if isinstance(d, int) else 2 for d in i.shape] for i in session(source).get_inputs()}
            feeds = lambda random: {n: np.ones(d, np.int64) if "mask" in n else random.integers(0, 100 if "input" in n else 1, d)
                                    for n, d in ids.items()}
            target = folder / f"{source.stem}_optimized.onnx"
            optimizer.optimize_model(str(source), "bert", opt_level=0).save_model_to_file(str(target))
            row(source.stem, "optimize_model", target, lambda random, run: run(feeds(random)), 1e-3)
    print(f"{failed} failed")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())

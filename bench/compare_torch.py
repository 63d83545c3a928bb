#!/usr/bin/env python3
"""Latency beside PyTorch on one GPU: dnnopt, dnnopt tuned, eager, TorchInductor, TorchInductor with CUDA graphs.

compare_torch.py EXE DEVICE [MODEL.onnx ...] [--batches N ...] [--dim NAME=N ...] [--precision fp32|fp16]
                 [--engines NAME ...] [--tune SECONDS] [--warmup N] [--runs N] [--rounds N] [--json FILE]

DEVICE is what `EXE bench --device` takes. Each model's row is made in one go: fp32, tf32 off, cudnn.benchmark on, under
no_grad, medians of N runs after warm-up, in milliseconds. PyTorch's input lies on the GPU already and its output stays
there; dnnopt's figure is end to end, with upload and download, and `bound` is with inputs and outputs on the GPU too
(`bench --bind-io`). Weights are random on both sides. A model that PyTorch lacks here (timm for images, transformers for
text) has a row of dnnopt alone that says so. With --batches each model, whose inputs have the symbol `batch` as first dim
(symbolic_batch.py makes it), has a row for each batch. --dim gives other symbols of models that have them a value, on both
sides. --precision fp16 stores halves on our side and makes PyTorch's module one of halves; inputs and outputs are halves
for it, and for `bound`, whatever they are for dnnopt. --engines leaves engines of PyTorch out. With --rounds each figure,
ours too, is the least of N such medians: the pace of a host that others share, which bounds most rows, varies by a third
from second to second; PyTorch's are a second apart, as ours are, which start a process each. Ends with the geometric means
of TorchInductor / dnnopt and of TorchInductor with CUDA graphs / bound.
"""
import argparse
import gc
import json
import math
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
DEFAULT = [
    "swin_tiny_patch4_window7_224", "vit_base_patch16_224", "convnext_tiny", "resnext50_32x4d", "regnety_032", "resnet50",
    "mobilenetv2_100", "efficientnet_b0", "efficientvit_b2", "bert_base", "gpt2",
]


# Names of models that are one network of DEFAULT with symbolic dims.
SAME = {"swin_tiny_batch": "swin_tiny_patch4_window7_224", "vit_base_batch": "vit_base_patch16_224", "resnet50_batch": "resnet50",
        "bert_base_dynamic": "bert_base", "gpt2_dynamic": "gpt2"}
PEERS = ["eager", "inductor", "inductor + graphs"]


def torch_model(name, shapes):
    """A module in evaluation mode and its inputs on the GPU. ImportError where the package is missing."""
    import torch

    name = SAME.get(name, name)
    if name in ("bert_base", "gpt2"):
        import transformers

        config = transformers.BertConfig() if name == "bert_base" else transformers.GPT2Config(use_cache=False)
        made = (transformers.BertModel if name == "bert_base" else transformers.GPT2Model)(config)
        ids = torch.randint(0, 1000, next(iter(shapes.values())), device="cuda")
        return made.eval().cuda(), (ids,)
    import timm

    return timm.create_model(name).eval().cuda(), (torch.randn(next(iter(shapes.values())), device="cuda"),)


def torch_latency(call, inputs, warmup, runs):
    """Median in ms of a call that ends when the GPU is done."""
    import torch

    times = []
    gc.disable()  # as timeit does: a collection is no part of an inference
    with torch.no_grad():
        for i in range(warmup + runs):
            torch.cuda.synchronize()
            began = time.perf_counter()
            call(*inputs)
            torch.cuda.synchronize()
            if i >= warmup:
                times.append((time.perf_counter() - began) * 1e3)
    gc.enable()
    return statistics.median(times)


def least_latency(call, inputs, warmup, runs, rounds):
    """The least of `rounds` medians that are a second apart."""
    least = torch_latency(call, inputs, warmup, runs)
    for _ in range(rounds - 1):
        time.sleep(1.0)
        least = min(least, torch_latency(call, inputs, warmup, runs))
    return least


def torch_rows(name, shapes, warmup, runs, rounds, engines, precision):
    """Latencies by engine; the text of what failed in place of a figure."""
    import torch

    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    torch.backends.cudnn.benchmark = True
    torch.set_float32_matmul_precision("highest")
    module, inputs = torch_model(name, shapes)
    if precision == "fp16":
        module = module.half()
        inputs = tuple(one.half() if one.is_floating_point() else one for one in inputs)
    rows = {}
    for engine, make in (
        ("eager", lambda: module),
        ("inductor", lambda: torch.compile(module)),
        ("inductor + graphs", lambda: torch.compile(module, mode="reduce-overhead")),
    ):
        if engine not in engines:
            continue
        torch._dynamo.reset()
        try:
            call = make()
            rows[engine] = least_latency(call, inputs, warmup, runs, rounds)
        except Exception as fault:  # a peer that fails is a row that says so, not the end
            rows[engine] = f"{type(fault).__name__}: {str(fault).splitlines()[0][:80]}"
    return rows


def run_tool(exe, *arguments):
    """The JSON that a subcommand writes."""
    with tempfile.NamedTemporaryFile(suffix=".json") as target:
        subprocess.run([exe, *arguments, "--json", target.name], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        return json.load(open(target.name))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("exe")
    parser.add_argument("device")
    parser.add_argument("models", nargs="*")
    parser.add_argument("--batches", nargs="*", type=int, default=[0])
    parser.add_argument("--dim", action="append", default=[])
    parser.add_argument("--precision", choices=("fp32", "fp16"), default="fp32")
    parser.add_argument("--engines", nargs="*", choices=PEERS, default=PEERS)
    parser.add_argument("--tune", type=float, default=0, help="seconds; 0: no tuned column")
    parser.add_argument("--warmup", type=int, default=10)
    parser.add_argument("--runs", type=int, default=50)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--json", default="")
    arguments = parser.parse_args()
    models = arguments.models or [os.path.join(HERE, "zoo", f"{name}.onnx") for name in DEFAULT]

    try:
        import torch

        print(f"PyTorch {torch.__version__}, {torch.cuda.get_device_name() if torch.cuda.is_available() else 'no GPU'}")
    except ImportError:
        print("PyTorch is not installed: rows of dnnopt alone")
    engines = ["dnnopt", "bound", "tuned"] + arguments.engines
    print(f"{'model':32s}" + "".join(f"{engine:>19s}" for engine in engines) + f"{'inductor/dnnopt':>19s}", flush=True)
    table = {}
    for path, batch in ((path, batch) for path in models for batch in arguments.batches):
        name = os.path.splitext(os.path.basename(path))[0]
        with tempfile.TemporaryDirectory() as folder:
            model = os.path.join(folder, os.path.basename(path))
            shutil.copy(path, model)
            subprocess.run([arguments.exe, "weights", model], check=True, stdout=subprocess.DEVNULL)
            info = run_tool(arguments.exe, "info", model)
            shapes = {one["name"]: one["shape"] for one in info["inputs"]}
            given = [f"batch={batch}"] * bool(batch) + arguments.dim
            symbols = {dim for dims in shapes.values() for dim in dims}
            values = {key: int(value) for key, value in (one.split("=") for one in given) if key in symbols}
            shapes = {key: [values.get(dim, dim) for dim in dims] for key, dims in shapes.items()}
            sized = [word for key, value in values.items() for word in ("--dim", f"{key}={value}")]
            common = [*sized, "--device", arguments.device, "--precision", arguments.precision, "--warmup", str(arguments.warmup), "--runs", str(arguments.runs)]

            def latency(*options):
                return min(run_tool(arguments.exe, "bench", model, *common, *options)["latency_ms"]["median"] for _ in range(arguments.rounds))

            halves = ["--io-types", "float16"] if arguments.precision == "fp16" else []
            row = {"dnnopt": latency(), "bound": latency("--bind-io", *halves)}
            if arguments.tune > 0:
                cache = os.path.join(folder, "cache")
                tuned = run_tool(arguments.exe, "tune", model, "--device", arguments.device, "--budget", str(arguments.tune), "--cache", cache, *sized)
                row["tuned"] = latency("--cache", cache)
                row["tried"] = tuned["tried"]
            try:
                row.update(torch_rows(name, shapes, arguments.warmup, arguments.runs, arguments.rounds, arguments.engines, arguments.precision))
            except (ImportError, AssertionError, RuntimeError) as fault:
                row["missing"] = str(fault).splitlines()[0]
        name += f" batch {batch}" if batch else ""
        inductor = row.get("inductor")
        row["ratio"] = inductor / row["dnnopt"] if isinstance(inductor, float) else None
        table[name] = row
        cells = "".join(f"{row[e]:19.3f}" if isinstance(row.get(e), float) else f"{'-':>19s}" for e in engines)
        print(f"{name:32s}{cells}" + (f"{row['ratio']:19.2f}" if row["ratio"] else f"{'-':>19s}"), flush=True)
        for engine in engines + ["missing"]:
            if isinstance(row.get(engine), str):
                print(f"    {engine}: {row[engine]}")
    for peer, own in (("inductor", "dnnopt"), ("inductor + graphs", "bound")):
        ratios = [row[peer] / row[own] for row in table.values() if isinstance(row.get(peer), float)]
        if ratios:
            mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
            print(f"{peer} / {own}: geometric mean {mean:.2f} over {len(ratios)}, least {min(ratios):.2f}")
    if arguments.json:
        json.dump(table, open(arguments.json, "w"), indent=1)
    return 0


if __name__ == "__main__":
    sys.exit(main())

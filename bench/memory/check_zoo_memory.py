#!/usr/bin/env python3
"""Recomputes the memory bound of every zoo model from the lifetimes that `optimize` writes, and judges the arena by it.

The bound is the largest sum of bytes alive at one step, without rounding to alignments; overlaps of live tensors are
looked for as well. With --run each model also runs once as it is and once with freed memory poisoned: outputs must be
equal, and the device memory that the allocator counts besides weights, inputs and outputs must equal the arena.

usage: check_zoo_memory.py [--dnnopt PROGRAM] [--run FOLDER] [MODEL.onnx ...]
       FOLDER holds the models beside their weights (or receives copies and generated weights)
exit status: 0 when the ratio is 1.000 for at least 26 of 30 models and at most 1.02 for all, and nothing else is wrong
"""
import argparse
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

ZOO = pathlib.Path(__file__).resolve().parents[1] / "zoo"


def result_of(arguments):
    done = subprocess.run([str(a) for a in arguments] + ["--json", "-"], capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(map(str, arguments))}: {done.stderr.strip()[-400:]}")
    return json.loads(done.stdout)


def largest_live_sum(records):
    change = {}
    for r in records:
        change[r["lower"]] = change.get(r["lower"], 0) + r["size"]
        change[r["upper"]] = change.get(r["upper"], 0) - r["size"]
    live = most = 0
    for time in sorted(change):
        live += change[time]
        most = max(most, live)
    return most


def faults(records, arena):
    """Pairs of records that are alive together and share bytes, and records that leave the arena."""
    found = []
    live = []
    for r in sorted(records, key=lambda r: r["lower"]):
        live = [other for other in live if other["upper"] > r["lower"]]
        begin, end = r["offset"], r["offset"] + r["size"]
        if begin < 0 or end > arena or begin % r.get("alignment", 1) != 0:
            found.append(f"'{r['id']}' at {begin} of {arena}")
        for other in live:
            if begin < other["offset"] + other["size"] and other["offset"] < end:
                found.append(f"'{r['id']}' over '{other['id']}'")
        live.append(r)
    return found


def files_of(folder):
    return {path.name: path.read_bytes() for path in sorted(pathlib.Path(folder).glob("*.npy"))}


def run_check(program, model, folder):
    """What is wrong with a poisoned run and with the allocator's count; nothing where all is well."""
    here = pathlib.Path(folder) / model.name
    if not here.exists():
        shutil.copy(model, here)
    if not here.with_suffix(".weights").exists():
        result_of([program, "weights", here])
    with tempfile.TemporaryDirectory() as plain, tempfile.TemporaryDirectory() as poisoned:
        result_of([program, "run", here, "--output-dir", plain])
        result_of([program, "run", here, "--output-dir", poisoned, "--poison-freed"])
        outputs = files_of(plain)
        if not outputs or outputs != files_of(poisoned):
            return "poisoned memory changes the outputs"
    counted = result_of([program, "bench", here, "--warmup", 1, "--runs", 1])
    if counted["intermediate_device_bytes"] != counted["arena_bytes"]:
        return f"allocated {counted['intermediate_device_bytes']}, planned {counted['arena_bytes']}"
    return ""


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--dnnopt", default="build/release/bin/dnnopt")
    parser.add_argument("--run")
    parser.add_argument("models", nargs="*", type=pathlib.Path)
    options = parser.parse_args()
    models = options.models or sorted(ZOO.glob("*.onnx"))
    ratios = []
    wrong = []
    print(f"{'model':32} {'records':>7} {'one each':>12} {'arena':>11} {'bound':>11} {'ratio':>7}  order, plan s")
    for model in models:
        try:
            r = result_of([options.dnnopt, "optimize", model])
            records = r["usage_records"]
            bound = largest_live_sum(records)
            ratio = r["arena_bytes"] / bound if bound else 1.0
            trouble = faults(records, r["arena_bytes"])
            if options.run:
                told = run_check(options.dnnopt, model, options.run)
                trouble += [told] if told else []
            order = r["order"]
            print(f"{model.stem:32} {len(records):7} {r['naive_bytes']:12} {r['arena_bytes']:11} {bound:11} {ratio:7.4f}  "
                  f"{order['decision']} {order['peak_bytes_before']} -> {order['peak_bytes']}"
                  f"{' proved' if order['proved'] else ''}, {order['joined_in_place']} in place, {r['plan_seconds']:.3f}"
                  + "".join(f"\n    {t}" for t in trouble[:4]), flush=True)
            ratios.append(ratio)
            wrong += trouble
        except (RuntimeError, KeyError, json.JSONDecodeError) as fault:
            print(f"{model.stem:32} {fault}", flush=True)
            wrong.append(str(fault))
    exact = sum(1 for ratio in ratios if round(ratio, 3) <= 1.0)
    most = max(ratios, default=0)
    print(f"{exact} of {len(models)} models at 1.000, the largest ratio is {most:.4f}, {len(wrong)} faults")
    sys.exit(0 if not wrong and exact >= len(models) - 4 and most <= 1.02 else 1)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Fusion with static knowledge alone next to fusion by rank and dimension propagation, as in SoD2's Fig. 7 and 8.

For the models with symbolic dims and the detectors: operators that run and bytes of intermediate results, as shares of
the imported graph's, and the share of subgraphs whose sizes are all known, mixed with 1, 2-4 or 5-8 execution plans, or
nac. known_shapes.cpp says what static knowledge is.

usage: compare_known_shapes.py [--program build/release/bin/known_shapes] [--zoo FOLDER]
exit status: 0 when propagation needs no more operators and bytes than static knowledge anywhere
"""
import argparse
import json
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
MODELS = {
    "dynamic/bert_base_dynamic": {"batch": 1, "sequence": 128},
    "dynamic/gpt2_dynamic": {"batch": 1, "sequence": 64},
    "dynamic/conformer_dynamic": {"batch": 1, "time": 200},
    "dynamic/mobilenetv2_100_dynamic": {"batch": 1, "height": 224, "width": 224},
    "dynamic/deeplabv3_dynamic": {"batch": 1, "height": 224, "width": 224},
    "dynamic/swin_tiny_batch": {"batch": 2},
    "dynamic/vit_base_batch": {"batch": 2},
    "dynamic/minilm_l6_dynamic": {"batch": 1, "sequence": 16},
    "fasterrcnn_mbv3": {},
    "ssdlite320": {},
}


def group(part):
    if part["sizes"] != "mixed":
        return part["sizes"]
    return "1" if part["versions"] <= 1 else "2-4" if part["versions"] <= 4 else "5-8"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", default=str(ROOT / "build/release/bin/known_shapes"))
    parser.add_argument("--zoo", default=str(ROOT / "bench/zoo"))
    a = parser.parse_args()
    worse = []
    print("| model | operators imported | static | RDP | shares | MiB imported | static | RDP | shares |"
          " known / mixed 1 / 2-4 / 5-8 / nac |")
    print("|" + "---|" * 10)
    for model, dims in MODELS.items():
        arguments = [a.program, f"{a.zoo}/{model}.onnx"] + [f"{name}={dim}" for name, dim in dims.items()]
        done = subprocess.run(arguments, capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"{model}: {done.stderr.strip()[-400:]}")
        told = json.loads(done.stdout)
        rows = [told[name] for name in ("imported", "static", "rdp")]
        operators = [row["operators"] for row in rows]
        bytes_of = [row["intermediate_bytes"] for row in rows]
        counts = {name: 0 for name in ("known", "1", "2-4", "5-8", "nac")}
        for part in told["subgraphs"]:
            counts[group(part)] += 1
        print(f"| {model.split('/')[-1]} | " + " | ".join(map(str, operators))
              + f" | {operators[1] / operators[0]:.2f} / {operators[2] / operators[0]:.2f} | "
              + " | ".join(f"{b / 2**20:.1f}" for b in bytes_of)
              + f" | {bytes_of[1] / bytes_of[0]:.2f} / {bytes_of[2] / bytes_of[0]:.2f} | "
              + " / ".join(map(str, counts.values())) + " |", flush=True)
        if operators[2] > operators[1] or bytes_of[2] > bytes_of[1]:
            worse.append(model)
    if worse:
        print("propagation is behind in: " + ", ".join(worse))
    sys.exit(1 if worse else 0)


if __name__ == "__main__":
    main()

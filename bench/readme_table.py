#!/usr/bin/env python3
"""Measures README's table: five networks on the first OpenCL device, first and second start.

usage: readme_table.py [--dnnopt PROGRAM] [--warmup N] [--runs N] [--models NAME,...] [--write]

The first start begins with empty program caches (dnnopt's and the driver's: XDG_CACHE_HOME is a new folder), the second
finds them filled. A start is what lies before the first result: loading, compilation and the first inference. Latencies are
of the second start: --warmup inferences (5), then the median of --runs (20) with the 90th percentile. Weights are generated.
With --write the table replaces what stands in README.md between its two `measured` comments,
or becomes a section of its own where there are none.
"""
import argparse
import json
import os
import pathlib
import platform
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
MODELS = ["squeezenet1_0", "mobilenetv2_100", "resnet50", "swin_tiny_patch4_window7_224", "bert_base"]
BEGIN, END = "<!-- measured -->", "<!-- measured: end -->"
BEFORE = "## What is needed"  # the section that the table goes before at first


def bench(a, path, cache):
    arguments = [a.dnnopt, "bench", path, "--warmup", str(a.warmup), "--runs", str(a.runs), "--require-device", "--json", "-"]
    done = subprocess.run(arguments, capture_output=True, text=True, env={**os.environ, "XDG_CACHE_HOME": cache})
    if done.returncode != 0:
        sys.exit(f"{path}: {done.stderr.strip()[-500:]}")
    return json.loads(done.stdout[done.stdout.index("{") :])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dnnopt", default=str(ROOT / "build/release/bin/dnnopt"))
    parser.add_argument("--warmup", type=int, default=5)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--write", action="store_true", help="put the table into README.md")
    a = parser.parse_args()

    lines = ["| network | kernels | first start, s | second start, s | latency, ms: median | p90 |", "|---|---|---|---|---|---|"]
    device = ""
    for name in a.models.split(","):
        with tempfile.TemporaryDirectory() as folder:
            path = shutil.copy(ROOT / "bench/zoo" / f"{name}.onnx", folder)
            subprocess.run([a.dnnopt, "weights", path], check=True, stdout=subprocess.DEVNULL)
            cache = os.path.join(folder, "cache")
            os.mkdir(cache)
            first, second = bench(a, path, cache), bench(a, path, cache)
        starts = [(row["init_ms"] + row["first_ms"]) / 1000 for row in (first, second)]
        latency = second["latency_ms"]
        device = second["device"]
        lines.append(f"| {name} | {second['kernels']} | {starts[0]:.1f} | {starts[1]:.2f} | {latency['median']:.1f} | {latency['p90']:.1f} |")
        print(lines[-1], file=sys.stderr, flush=True)
    lines.append("")
    lines.append(f"{device}, {os.cpu_count()} cores, {platform.system()}; {a.warmup} warm-up and {a.runs} measured inferences:")
    chosen = "" if a.models == ",".join(MODELS) else f" --models {a.models}"
    lines.append(f"`bench/readme_table.py{chosen}`.")
    text = "\n".join(lines)
    print(text)
    if a.write:
        readme = ROOT / "README.md"
        old = readme.read_text()
        table = f"{BEGIN}\n{text}\n{END}"
        if BEGIN in old:
            new, count = re.subn(re.escape(BEGIN) + ".*?" + re.escape(END), lambda _: table, old, flags=re.DOTALL)
        else:
            new, count = re.subn(f"(?m)^{BEFORE}$", lambda _: f"## Measured\n\n{table}\n\n{BEFORE}", old)
        if count != 1:
            sys.exit(f"README.md has {count} places for the table")
        readme.write_text(new)


if __name__ == "__main__":
    main()

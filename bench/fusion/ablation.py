"""What each step of the graph optimizer brings: launches and latency, as DNNFusion Fig. 7 and SmartMem Fig. 8.

Each row adds a step to the one above: nothing, element-wise epilogues, rewriting, fusion of expressions before frames,
layout elimination, layout selection. All rows of a model are timed in turns, so that a slow moment of the machine meets
all of them; a cell is the median over rounds of each process's median.

usage: ablation.py DNNOPT FOLDER [--models a,b] [--rounds N] [--runs N] [--only none,epilogue,...] [--json FILE]
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import tempfile

# The default order without its last pass.
REWRITING = "default,-fuse"
STEPS = {
    "none": "none",
    "epilogue": "epilogue",
    "rewriting": REWRITING + ",fuse_epilogue",
    "fusion": REWRITING + ",fuse_operators",
    "elimination": REWRITING + ",fuse_views",
    "selection": "default",
}
MODELS = "mobilenetv2_100,efficientnet_b0,resnet50,swin_tiny_patch4_window7_224,distilbert,gpt2"


def measured(tool, model, passes, arguments, folder):
    """The result of `bench` as JSON, or what the tool said."""
    target = pathlib.Path(folder) / "bench.json"
    command = [tool, "bench", str(model), "--passes", passes, "--json", str(target)]
    command += ["--warmup", str(arguments.warmup), "--runs", str(arguments.runs)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"{model.name} --passes {passes}: {done.stderr.strip()}")
    return json.loads(target.read_text())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tool")
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--models", default=MODELS)
    parser.add_argument("--only", default=",".join(STEPS))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--warmup", type=int, default=2)
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--json")
    arguments = parser.parse_args()
    steps = arguments.only.split(",")
    rows = {}
    print("| model | " + " | ".join(steps) + " |\n|---|" + "---|" * len(steps))
    with tempfile.TemporaryDirectory() as folder:
        for name in arguments.models.split(","):
            model = arguments.folder / f"{name}.onnx"
            times = {step: [] for step in steps}
            launches = {}
            for _ in range(arguments.rounds):
                for step in steps:
                    result = measured(arguments.tool, model, STEPS[step], arguments, folder)
                    times[step].append(result["latency_ms"]["median"])
                    launches[step] = result["kernels"]
            rows[name] = {s: {"launches": launches[s], "ms": statistics.median(times[s]), "all_ms": times[s]} for s in steps}
            cells = [f"{rows[name][s]['launches']}: {rows[name][s]['ms']:.1f}" for s in steps]
            print(f"| {name} | " + " | ".join(cells) + " |", flush=True)
    if arguments.json:
        pathlib.Path(arguments.json).write_text(json.dumps(rows, indent=2))


if __name__ == "__main__":
    main()

"""Owns what the commands of the five papers share: the list of figures, networks, runs of the tool, and tables.

A script of this folder has a list of `item`s, one for each table, figure and algorithm of its paper. An item with a
function has a flag (--table5, --figure7, --listing1); one without tells why it cannot be done. `main` reads the flags.
Only the papers' numbers are data here and in the scripts; ours come from runs made in the call.
"""
import argparse
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import textwrap
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
ZOO = ROOT / "bench/zoo"


class item:
    """One table, figure or algorithm: its `name` as the paper prints it, what it shows, and either the function that
    prints ours beside it, or the reason why there is none."""

    def __init__(self, name, shows, run=None, why=None, models=()):
        assert bool(run) != bool(why), name
        self.name, self.shows, self.run, self.why, self.models = name, shows, run, why, list(models)

    @property
    def flag(self):
        return "--" + self.name.lower().replace(" ", "").replace(".", "")


def network(name):
    """The file of a network without weights."""
    for folder in (ZOO, ZOO / "papers", ZOO / "dynamic"):
        if (folder / f"{name}.onnx").exists():
            return folder / f"{name}.onnx"
    raise SystemExit(f"there is no network {name} in {ZOO}")


class runs:
    """Runs of the tool on one device; weights are written once for each network of a call."""

    def __init__(self, arguments, folder):
        self.tool, self.device, self.form = arguments.dnnopt, arguments.device, arguments.form
        self.warmup, self.repeats = arguments.warmup, arguments.runs
        self.wanted = arguments.models.split(",") if arguments.models else None
        self.folder = pathlib.Path(folder)
        self.at = None

    def models(self, names):
        """Those of `names` that --models asks for; all without it."""
        return [n for n in names if self.wanted is None or n in self.wanted]

    def result(self, *arguments):
        """The JSON of a subcommand, or an error's text."""
        done = subprocess.run([str(a) for a in (self.tool, *arguments, "--json", "-")], capture_output=True, text=True)
        if "{" not in done.stdout:
            return done.stderr.strip()[-200:] or f"exit status {done.returncode}"
        return json.loads(done.stdout[done.stdout.index("{") :])

    def on_device(self, form=None):
        return ["--device", self.device, "--form", form or self.form]

    def info(self, name):
        return self.result("info", network(name))

    def optimize(self, name, *arguments, form=None):
        return self.result("optimize", network(name), *self.on_device(form), *arguments)

    def macs(self, name):
        """Multiply-accumulates of the optimized graph, whose sizes are known where exporters compute them."""
        return self.optimize(name)["macs_after"]

    def weighted(self, name):
        """The network with generated weights. One network's weights lie on the disk at a time."""
        path = self.folder / f"{name}.onnx"
        if self.at != name:
            for old in self.folder.glob("*.weights"):
                old.unlink()
            shutil.copy(network(name), path)
            subprocess.run([self.tool, "weights", str(path)], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            self.at = name
        return path

    def bench(self, name, *arguments, form=None, repeats=None):
        repeats = repeats or self.repeats
        return self.result("bench", self.weighted(name), *self.on_device(form), "--warmup", self.warmup, "--runs", repeats, *arguments)

    def profile(self, name, *arguments):
        return self.result("profile", self.weighted(name), *self.on_device(), "--warmup", self.warmup, "--runs", self.repeats, *arguments)

    def onnxruntime_ms(self, name, dims=None, optimized=True):
        """Median latency of ONNX Runtime on the processor with all its cores, or None where it is not installed."""
        try:
            import onnx
            import onnxruntime
        except ImportError:
            return None
        sys.path.insert(0, str(ROOT / "bench"))
        from zoo_inputs import make_inputs

        path = self.weighted(name)
        feeds = make_inputs(onnx.load(path, load_external_data=False), 0, dims)
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 3
        options.intra_op_num_threads = os.cpu_count()
        if not optimized:
            options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        times = []
        for i in range(self.warmup + self.repeats):
            began = time.perf_counter()
            session.run(None, feeds)
            if i >= self.warmup:
                times.append(1000 * (time.perf_counter() - began))
        return sorted(times)[len(times) // 2]

    def tests(self, program, *names):
        """Runs test cases by name and prints a row each: those that hold the graphs of a figure."""
        path = pathlib.Path(self.tool).with_name(f"dnnopt_{program}_tests")
        if not path.exists():
            raise SystemExit(f"{path.name} does not lie beside {self.tool}: build it first")
        rows = []
        for name in names:
            # A comma would end a name in Catch's specification.
            done = subprocess.run([str(path), name.replace(",", "\\,")], capture_output=True, text=True)
            said = re.search(r"All tests passed \((\d+) assertions?", done.stdout)
            rows.append([name, f"{said[1]} assertions hold" if done.returncode == 0 and said else "FAILED"])
        table(["test case", "result"], rows)


def latency(result):
    """Median in ms of a `bench`, or the error."""
    return result if isinstance(result, str) else result["latency_ms"]["median"]


def number(value, digits=None):
    if value is None:
        return "-"
    if isinstance(value, float):
        digits = digits if digits is not None else (0 if abs(value) >= 100 else 1 if abs(value) >= 10 else 2)
        return f"{value:,.{digits}f}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def table(head, rows):
    """Prints a table in Markdown."""
    print("| " + " | ".join(head) + " |\n|" + "---|" * len(head))
    for row in rows:
        print("| " + " | ".join(" ".join(number(cell).split()) for cell in row) + " |", flush=True)


class live_table:
    """A table whose rows appear as they are measured."""

    def __init__(self, head):
        print("| " + " | ".join(head) + " |\n|" + "---|" * len(head), flush=True)

    def row(self, *cells):
        print("| " + " | ".join(" ".join(number(cell).split()) for cell in cells) + " |", flush=True)


def say(text):
    """Prints a paragraph in lines of at most 116 columns."""
    print(textwrap.fill(" ".join(text.split()), 116, break_on_hyphens=False) + "\n")


def ratio(a, b):
    """a / b where both are numbers."""
    return a / b if isinstance(a, (int, float)) and isinstance(b, (int, float)) and b else None


def layers(result):
    """Operators of a file as papers count them: without constants, which importing or folding takes away."""
    return sum(n for op, n in result["operators"].items() if op not in ("Constant", "Identity"))


def main(paper, items, notes):
    """The command line of one paper. `notes` is what the script's head says."""
    parser = argparse.ArgumentParser(description=notes, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--list", action="store_true", help="every table and figure: its flag, or why it has none")
    parser.add_argument("--all", action="store_true", help="all that have a flag")
    for i in items:
        if i.run:
            parser.add_argument(i.flag, action="store_true", help=i.shows)
    parser.add_argument("--dnnopt", default=str(ROOT / "build/release/bin/dnnopt"), help="the tool; test programs lie beside it")
    parser.add_argument("--device", default="opencl:0")
    parser.add_argument("--form", default="native", choices=["native", "vectors", "groups"])
    parser.add_argument("--models", help="these networks alone, separated by commas")
    parser.add_argument("--warmup", type=int, default=2)
    parser.add_argument("--runs", type=int, default=5)
    a = parser.parse_args()
    if a.list:
        for i in items:
            print(f"{i.name} | {i.shows} | {i.flag if i.run else 'not done: ' + i.why}")
        return
    chosen = [i for i in items if i.run and (a.all or getattr(a, i.flag[2:]))]
    if not chosen:
        parser.error("which table or figure? --list names them")
    said = subprocess.run([a.dnnopt, "devices"], capture_output=True, text=True).stdout if os.path.exists(a.dnnopt) else None
    if said is None:
        parser.error(f"there is no {a.dnnopt}: build it, or name another with --dnnopt")
    with tempfile.TemporaryDirectory() as folder:
        t = runs(a, folder)
        named = t.optimize("squeezenet1_0")
        print(f"{paper}; device: {named if isinstance(named, str) else named['device'] or 'reference'}; form: {a.form}")
        for i in chosen:
            print(f"\n## {i.name}: {i.shows}\n", flush=True)
            i.run(t)

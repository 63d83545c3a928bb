"""Measures what including dnnopt costs, beside the libraries that it stands on.

usage: bench/compile_time/measure.py [--repeat N] [--compiler g++]

Each row is one translation unit that only includes: `COMPILER -std=c++20 -fsyntax-only`, CPU seconds (user and system) of
the best of N runs (5), runs of all rows interleaved, so that a slow minute of the machine meets every row. The ratios at
the end are the contract: the umbrella header at most 1.6 times the fixed list, graph.hpp at most 1.3 times its share. The
list does not depend on what the umbrella happens to include: the range-v3 views that any header of dnnopt uses, and four
headers that its parts are built on. The row with DNNOPT_IMPLEMENTATION is what the one file with the bodies pays.
Ends with 1 when a ratio is above its bound.
"""
import argparse
import pathlib
import re
import resource
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
INCLUDE = ROOT / "include"
DEFINITIONS = ["-DCL_HPP_MINIMUM_OPENCL_VERSION=200", "-DCL_HPP_TARGET_OPENCL_VERSION=300", "-DCL_TARGET_OPENCL_VERSION=300"]
IMPLEMENTED = "dnnopt/dnnopt.hpp with DNNOPT_IMPLEMENTATION"
# -isystem as CMake passes it for imported targets.
FLAGS = ["-std=c++20", "-fsyntax-only", f"-I{INCLUDE}", "-isystem", "/usr/include/eigen3"]


def views():
    """The range-v3 headers that headers of dnnopt include."""
    names = set()
    for file in sorted((INCLUDE / "dnnopt").rglob("*.hpp")):
        names |= set(re.findall(r"^ *# *include *<(range/v3/[^>]+)>", file.read_text(), re.MULTILINE))
    return sorted(names)


def cpu_seconds(compiler, unit):
    """User and system time of one compilation."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([compiler, *FLAGS, *DEFINITIONS, str(unit)], check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--compiler", default="g++")
    arguments = parser.parse_args()

    range_views = views()
    third_parties = ["boost/graph/adjacency_list.hpp", "Eigen/Core", "CL/opencl.hpp", "nlohmann/json.hpp"]
    rows = {
        "nothing": [],
        "range-v3's views that dnnopt uses": range_views,
        **{name: [name] for name in third_parties},
        "the fixed list": [*range_views, *third_parties],
        "adjacency_list and those views": [*range_views, "boost/graph/adjacency_list.hpp"],
        "dnnopt/graph.hpp": ["dnnopt/graph.hpp"],
        "dnnopt/dnnopt.hpp": ["dnnopt/dnnopt.hpp"],
        IMPLEMENTED: ["dnnopt/dnnopt.hpp"],
    }

    best = {}
    with tempfile.TemporaryDirectory() as folder:
        units = {}
        for index, (name, headers) in enumerate(rows.items()):
            units[name] = pathlib.Path(folder) / f"unit_{index}.cpp"
            define = "#define DNNOPT_IMPLEMENTATION\n" if name == IMPLEMENTED else ""
            units[name].write_text(define + "".join(f"#include <{header}>\n" for header in headers))
        for _ in range(arguments.repeat):
            for name, unit in units.items():
                seconds = cpu_seconds(arguments.compiler, unit)
                best[name] = min(seconds, best.get(name, seconds))

    version = subprocess.run([arguments.compiler, "-dumpfullversion", "-dumpversion"], capture_output=True, text=True)
    print(f"{arguments.compiler} {version.stdout.strip()}, best of {arguments.repeat}, CPU seconds")
    for name, seconds in best.items():
        print(f"  {seconds:6.2f}  {name}")
    print("range-v3's views:", " ".join(range_views) or "none")

    ok = True
    for name, base, bound in (
        ("dnnopt/dnnopt.hpp", "the fixed list", 1.6),
        ("dnnopt/graph.hpp", "adjacency_list and those views", 1.3),
    ):
        ratio = best[name] / best[base]
        ok = ok and ratio <= bound
        print(f"{name} / {base}: {ratio:.2f} (at most {bound})")
    return 0 if ok else 1


if __name__ == "__main__":
    sys.exit(main())

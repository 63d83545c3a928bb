"""Runs folders of ONNX backend tests on Oclgrind, in both forms of kernels, and reports invalid accesses and data races.

usage: oclgrind_suite.py DNNOPT FOLDER [--filter REGEX] [--sample N] [--seed N] [--seconds S] [--symbolic] [--random PROGRAM]

Each test runs in a process of its own. What Oclgrind logs, a wrong result that PoCL does not give, and a crash are faults; a test
that takes longer than S seconds on the simulator is counted as such. --sample draws N tests by a printed seed; --symbolic
rewrites each with a symbol for every dim first (symbolic_suite.py); --random runs N drawn operators of `random_nets` instead.
"""
import argparse
import os
import pathlib
import random
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import symbolic_suite  # noqa: E402


def library():
    for folder in ("/usr/lib", "/usr/local/lib"):
        for found in pathlib.Path(folder).rglob("liboclgrind-rt-icd.so"):
            return found
    sys.exit("Oclgrind is not installed (Debian: oclgrind)")


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("program")
    arguments.add_argument("folder", type=pathlib.Path)
    arguments.add_argument("--filter", default="")
    arguments.add_argument("--sample", type=int)
    arguments.add_argument("--seed", type=int, default=1)
    arguments.add_argument("--seconds", type=float, default=120)
    arguments.add_argument("--symbolic", action="store_true")
    arguments.add_argument("--random")
    chosen = arguments.parse_args()
    counts = {"clean": 0, "slow": 0, "faults": 0}
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "vendors").mkdir()
        (folder / "vendors" / "oclgrind.icd").write_text(f"{library()}\n")
        errors = folder / "errors"
        environment = dict(os.environ, OCL_ICD_VENDORS=str(folder / "vendors"), OCLGRIND_LOG=str(errors),
                           # Oclgrind lacks an intrinsic that inlining of restrict pointers leaves behind.
                           OCLGRIND_BUILD_OPTIONS="-cl-opt-disable", OCLGRIND_CHECK_API="1", OCLGRIND_DATA_RACES="1",
                           XDG_CACHE_HOME=str(folder / "cache"))
        if chosen.random:
            seeds = range(chosen.seed, chosen.seed + (chosen.sample or 100))
            work = [(f"seed {s} {form}", [chosen.random, "operators", "--first", str(s), "--count", "1", "--form", form])
                    for s in seeds for form in ("vectors", "groups")]
        else:
            tests = sorted(one.parent for one in chosen.folder.glob("*/model.onnx") if re.search(chosen.filter, one.parent.name))
            if chosen.sample:
                tests = sorted(random.Random(chosen.seed).sample(tests, min(chosen.sample, len(tests))))
            if chosen.symbolic:
                for test in tests:
                    symbolic_suite.write_symbolic(test, folder / "tests")
                tests = [folder / "tests" / test.name for test in tests]
            work = [(f"{test.name} {form}", [chosen.program, "conformance", test, "--device", "opencl", "--form", form])
                    for test in tests for form in ("vectors", "groups")]
        for what, command in work:
            errors.unlink(missing_ok=True)
            try:
                run = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=chosen.seconds)
                status = run.returncode
            except subprocess.TimeoutExpired:
                counts["slow"] += 1
                continue
            logged = errors.read_text(errors="replace").strip() if errors.exists() else ""
            if status == 0 and not logged:
                counts["clean"] += 1
                continue
            counts["faults"] += 1
            said = logged or (run.stdout + run.stderr).strip()[-300:]
            print(f"FAULT {what} (exit status {status}): {said[:600]}")
            sys.stdout.flush()
    print(f"{counts}; seed {chosen.seed}")
    return 1 if counts["faults"] else 0


if __name__ == "__main__":
    sys.exit(main())

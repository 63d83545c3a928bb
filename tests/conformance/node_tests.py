"""Runs ONNX's node tests through the command line and holds the counts to what the documentation states.

usage: node_tests.py DNNOPT FOLDER LEAST_PASSED [FLAGS of `dnnopt conformance`...]

Fails when a test fails or when fewer pass than stated; a test that is not supported must say why.
"""
import json
import subprocess
import sys


def main():
    program, folder, least, flags = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4:]
    run = subprocess.run([program, "conformance", folder, *flags, "--json", "-"], capture_output=True, text=True)
    try:
        result = json.loads(run.stdout[run.stdout.index("{") :])
    except ValueError:
        print(f"exit {run.returncode}, no JSON on standard output\n{run.stdout[-2000:]}\n{run.stderr[-2000:]}")
        return 1
    print({key: result[key] for key in ("passed", "failed", "unsupported", "fallback")})
    faults = [f"{row['name']}: {row['reason']}" for row in result["failures"]]
    faults += [f"{row['name']}: no reason" for row in result["failures"] if not row["reason"]]
    if result["failed"] != 0 or result["passed"] < least:
        print(f"wanted 0 failed and at least {least} passed", *faults, sep="\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Runs ONNX's node tests through the command line and holds the counts to what the documentation states.

usage: node_tests.py DNNOPT FOLDER LEAST_PASSED [FLAGS of `dnnopt conformance`...]

Fails when a test fails or when fewer pass than stated; a test that is not supported must say why. A test whose stored
model contradicts its stored outputs stands below with the one difference that is let pass, and is printed.
"""
import json
import subprocess
import sys

WRONG_AS_STORED = {
    # The outputs were computed with epsilon = 0.01, which the model states from onnx 1.14 on and lacks before.
    "test_adam_multiple": "element 0 is 0.755959332, expected 0.75913626",
}


def main():
    program, folder, least, flags = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4:]
    run = subprocess.run([program, "conformance", folder, *flags, "--json", "-"], capture_output=True, text=True)
    try:
        result = json.loads(run.stdout[run.stdout.index("{") :])
    except ValueError:
        print(f"exit {run.returncode}, no JSON on standard output\n{run.stdout[-2000:]}\n{run.stderr[-2000:]}")
        return 1
    print({key: result[key] for key in ("passed", "failed", "unsupported", "fallback")})
    failed, faults = result["failed"], []
    for row in result["failures"]:
        allowed = WRONG_AS_STORED.get(row["name"])
        if allowed and allowed in row["reason"]:
            print(f"not counted, its stored model contradicts its outputs: {row['name']}")
            failed -= 1
        else:
            faults.append(f"{row['name']}: {row['reason'] or 'no reason'}")
    if failed != 0 or result["passed"] < least:
        print(f"wanted 0 failed and at least {least} passed", *faults, sep="\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

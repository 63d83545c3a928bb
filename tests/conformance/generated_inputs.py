#!/usr/bin/env python3
"""Runs a model whose every input dim is a symbol without a flag: the tool chooses sizes, says which, and they are lawful.

generated_inputs.py EXE MODEL.onnx
"""
import json
import pathlib
import subprocess
import sys
import tempfile

from symbolic_suite import symbolic


def main():
    exe, model = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "model.onnx"
        file.write_bytes(symbolic(pathlib.Path(model).read_bytes()))
        for command in ("run", "verify", "bench"):
            flags = ["--warmup", "0", "--runs", "1"] if command == "bench" else []
            done = subprocess.run([exe, command, str(file), "--device", "reference", "--json", "-", *flags],
                                  capture_output=True, text=True)
            if done.returncode != 0:
                print(f"{command} fails: {done.stderr}")
                return 1
            told = json.loads(done.stdout)
            chosen = told.get("generated_dims", {})
            # A batch of 1, the channels that the first weights have, and sides that every window fits into.
            if list(chosen.values()) != [1, 3, 32, 32]:
                print(f"{command} chose {chosen}")
                return 1
            if any(f"{name}={number}" not in done.stderr for name, number in chosen.items()):
                print(f"{command} does not say what it chose: {done.stderr}")
                return 1
            if command == "run" and [row["shape"] for row in told["inputs"]] != [[1, 3, 32, 32]]:
                print(f"run tells other inputs: {told['inputs']}")
                return 1
        refused = subprocess.run([exe, "run", str(file), "--device", "reference", "--dim",
                                  f"{list(chosen)[1]}=4"], capture_output=True, text=True)
        if refused.returncode != 2 or list(chosen)[0] not in refused.stderr:
            print(f"a channel count that no weight has: {refused.returncode}, {refused.stderr}")
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""A run from empty caches is quick and says so; behind `build` it is not, and has nothing to say: build_ahead.py EXE"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

from walk_and_compare import model


def main(exe):
    wrong = 0
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "m.onnx").write_bytes(model())

        def call(command, *flags):
            file = folder / "result.json"
            done = subprocess.run([exe, command, folder / "m.onnx", "--json", file, *flags], capture_output=True,
                                  text=True, env={**os.environ, "XDG_CACHE_HOME": name})
            if done.returncode != 0:
                sys.exit(f"{command}: status {done.returncode}, {done.stderr}")
            return json.loads(file.read_text()), done

        def expect(what, holds):
            nonlocal wrong
            if not holds:
                print(what)
                wrong += 1

        first, told = call("run")
        expect("the first run is not quick", first["quick_kernels"])
        expect(f"the first run does not name `build`: {told.stderr}", "`dnnopt build" in told.stderr)
        again, _ = call("run")
        expect("quick kernels were kept", again["quick_kernels"])
        built, told = call("build")
        expect(f"build: {built}", built["builds"] > 0 and built["kept"] and built["kernels"] > 0)
        expect(f"build does not say what it did: {told.stdout}", "programs compiled for" in told.stdout)
        later, told = call("run")
        expect("the run behind `build` is quick", not later["quick_kernels"])
        expect(f"the run behind `build` has something to say: {told.stderr}", "build" not in told.stderr)
        expect("a run is quick that may not be", not call("run", "--first-start", "optimized")[0]["quick_kernels"])
        once_more, told = call("build")
        expect(f"build compiles again: {once_more}", once_more["builds"] == 0)
        expect(f"build does not say so: {told.stdout}", "all programs had been compiled before" in told.stdout)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

#!/usr/bin/env python3
"""What the tool says to somebody who asks for its version or mistypes: manners.py EXE SOURCE-FOLDER"""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile


def main():
    exe, source = sys.argv[1:]
    header = (pathlib.Path(source) / "include/dnnopt/version.hpp").read_text()
    version = ".".join(re.findall(r"#define DNNOPT_VERSION_(?:MAJOR|MINOR|PATCH) (\d+)", header))
    small, host = str(pathlib.Path(source) / "bindings/c/tests/small.onnx"), ["--device", "reference"]
    with tempfile.TemporaryDirectory() as folder:
        return tell(exe, version, small, host, *files_in(pathlib.Path(folder), pathlib.Path(source)))


def files_in(folder, source):
    """A model that is cut off, and one without its weights."""
    cut, zoo = folder / "cut.onnx", folder / "zoo.onnx"
    cut.write_bytes((source / "bench/light/light_squeezenet.onnx").read_bytes()[:3000])
    zoo.write_bytes((source / "bench/zoo/squeezenet1_0.onnx").read_bytes())
    return str(cut), str(zoo)


def tell(exe, version, small, host, cut, zoo):
    # Arguments, exit status, what is said, and where.
    rows = [(["--version"], 0, f"dnnopt {version}\n", "stdout"),
            (["bench", "x.onnx", "--devcie", "reference"], 2, "'--devcie' is unknown; did you mean '--device'?", "stderr"),
            (["run", "x.onnx", "--dims=batch=1"], 2, "'--dims' is unknown; did you mean '--dim'?", "stderr"),
            (["benhc", "x.onnx"], 2, "'benhc' is unknown; did you mean 'bench'?", "stderr"),
            ([], 2, "Subcommands:", "stderr"),
            (["run", small, *host, "--input", "z=z.npy"], 2, "no input 'z'; there are 'x', 's'", "stderr"),
            (["run", small, *host, "--dim", "z=2"], 2, "no symbolic dim 'z'; there are 'batch', 'n'", "stderr"),
            (["run", small, *host, "--shape", "z=2"], 2, "no input 'z'; there are 'x', 's'", "stderr"),
            (["verify", small, *host, "--data", "nothere"], 2, "no folder 'nothere'", "stderr"),
            (["profile", small, "--trace", "t.xyz"], 2, "ends in neither .json or .perfetto-trace", "stderr"),
            (["run", small, "--precision", "fp61"], 2, "'fp61' is none of {fp32,fp16,fp16-arithmetic}; did you mean 'fp32'?",
             "stderr"),
            (["bench", small, "--runs", "0"], 2, "'0' is no whole number of at least 1", "stderr"),
            (["run", small, "--matrix-steps", "mma"], 2, "no 'mma' multiplies halves; there are automatic, none, mma_sync",
             "stderr"),
            (["run", small, *host, "--value", "x=1k"], 2, "'1k' is no number", "stderr"),
            (["run", small, *host, "--value", "z=1"], 2, "no input 'z'; there are 'x', 's'", "stderr"),
            (["run", small, "--first-start", "quik"], 2, "'quik' is none of {optimized,quick}; did you mean 'quick'?", "stderr"),
            (["biuld", small], 2, "'biuld' is unknown; did you mean 'build'?", "stderr"),
            (["build", small, *host], 2, "the reference backend has no kernels to build; name an OpenCL device", "stderr"),
            (["run", small, "-q", "-v"], 2, "--quiet excludes --verbose", "stderr"),
            (["info", cut], 2, "of 15586 bytes, 12612 are missing", "stderr"),
            (["info", cut], 2, "the file may be cut off", "stderr"),
            (["run", zoo, *host], 2, "writes generated weights where no others are at hand", "stderr")]
    wrong = 0
    # What bash completes.
    for words, answer in ((["dnnopt", "ben"], "bench"), (["dnnopt", "bench", "--warm"], "--warmup"),
                          (["dnnopt", "plan-memory", "--strat"], "--strategy")):
        script = f'source <("$1" completion bash); shift; COMP_WORDS=("$@"); COMP_CWORD={len(words) - 1}; _dnnopt; echo ${{COMPREPLY[*]}}'
        done = subprocess.run(["bash", "-c", script, "bash", exe, *words], capture_output=True, text=True)
        if done.stdout.split() != [answer]:
            print(f"{words} is completed by {done.stdout}{done.stderr}")
            wrong += 1
    for arguments, status, text, where in rows:
        done = subprocess.run([exe, *arguments], capture_output=True, text=True)
        if done.returncode != status or text not in getattr(done, where):
            print(f"{arguments}: status {done.returncode}, {done.stdout}{done.stderr}")
            wrong += 1
    # What is nothing like a name gets no suggestion, and what is right none either.
    for arguments in (["qwertyuiop"], ["bench", "x.onnx", "--qwertyuiop"], ["bench", "--device", "reference"]):
        done = subprocess.run([exe, *arguments], capture_output=True, text=True)
        if done.returncode != 2 or "did you mean" in done.stderr:
            print(f"{arguments}: status {done.returncode}, {done.stderr}")
            wrong += 1
    # Nothing but errors is printed where quiet is asked for, and files are written all the same.
    done = subprocess.run([exe, "info", small, "--quiet", "--json", "-"], capture_output=True, text=True)
    if done.returncode != 0 or done.stderr or "inputs" not in json.loads(done.stdout):
        print(f"info --quiet: status {done.returncode}, {done.stdout}{done.stderr}")
        wrong += 1
    done = subprocess.run([exe, "devices"], capture_output=True, text=True, env={**os.environ, "DNNOPT_OPENCL_LIBRARY": "/none"})
    if done.returncode != 2 or done.stdout or "no OpenCL library" not in done.stderr:
        print(f"devices without OpenCL: status {done.returncode}, {done.stdout}{done.stderr}")
        wrong += 1
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

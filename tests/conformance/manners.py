#!/usr/bin/env python3
"""What the tool says to somebody who asks for its version or mistypes: manners.py EXE SOURCE-FOLDER"""
import pathlib
import re
import subprocess
import sys


def main():
    exe, source = sys.argv[1:]
    header = (pathlib.Path(source) / "include/dnnopt/version.hpp").read_text()
    version = ".".join(re.findall(r"#define DNNOPT_VERSION_(?:MAJOR|MINOR|PATCH) (\d+)", header))
    small, host = str(pathlib.Path(source) / "bindings/c/tests/small.onnx"), ["--device", "reference"]
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
            (["profile", small, "--trace", "t.xyz"], 2, "ends in neither .json or .perfetto-trace", "stderr")]
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
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

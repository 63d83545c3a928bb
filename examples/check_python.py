#!/usr/bin/env python3
"""Runs the examples in Python and compares what they print. Each is skipped where its wheel does not lie in the folder of
models, for tests download nothing; all skipped is status 77. check_python.py FOLDER"""
import importlib.util
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROWS = [("08_file_types.py", "magika-1.0.3-*.whl", ["README.md", "CMakeLists.txt", "tools/setup.sh"],
         "README.md  markdown  100%\nCMakeLists.txt  cmake  100%\ntools/setup.sh  shell  100%\n"),
        ("10_text_line.py", "rapidocr_onnxruntime-1.4.4-*.whl", ["--text", "Kernels of dnnopt: 42"],
         "Kernels of dnnopt: 42  98%\n")]


def main():
    folder = pathlib.Path(sys.argv[1])
    ran = wrong = 0
    for name, wheel, arguments, expected in ROWS:
        if not list(folder.glob(wheel)):
            print(f"skipped: {name}, {folder}/{wheel} is not there")
            continue
        if name.startswith("10") and importlib.util.find_spec("PIL") is None:
            print(f"skipped: {name}, Pillow is not installed")
            continue
        ran += 1
        done = subprocess.run([sys.executable, str(HERE / name), str(folder), *arguments], cwd=HERE.parent,
                              capture_output=True, text=True)
        if done.returncode != 0 or done.stdout != expected:
            print(f"{name}: status {done.returncode}, prints\n{done.stdout}{done.stderr}instead of\n{expected}")
            wrong += 1
    return 1 if wrong else 0 if ran else 77


if __name__ == "__main__":
    sys.exit(main())

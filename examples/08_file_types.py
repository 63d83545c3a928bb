#!/usr/bin/env python3
"""Says what kind of file each of its arguments is, by magika's network on the first OpenCL device.

08_file_types.py FOLDER FILE...

The network comes from the wheel of magika 1.0.3, which pip downloads into FOLDER once; nothing of it is installed or
run. The network looks at 1,024 bytes from a file's beginning and from its end, each without white space, padded by 256,
as the wheel's config says. All files go through it as one batch.
"""
import json
import pathlib
import subprocess
import sys
import zipfile

import numpy as np

import dnnopt

WHEEL = "magika==1.0.3"
INSIDE = "magika/models/standard_v3_3/"


def fetch(folder):
    """The network and its config, out of the wheel."""
    if not list(folder.glob("magika-1.0.3-*.whl")):
        subprocess.run([sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(folder), WHEEL],
                       check=True)
    with zipfile.ZipFile(next(folder.glob("magika-1.0.3-*.whl"))) as wheel:
        return wheel.read(INSIDE + "model.onnx"), json.loads(wheel.read(INSIDE + "config.min.json"))


def features(content, config):
    """What the network sees of a file: bytes as integers."""
    pad, block = config["padding_token"], config["block_size"]
    begin = list(content[:block].lstrip()[:config["beg_size"]])
    size = config["end_size"]
    end = list(content[-block:].rstrip()[-size:])
    return begin + [pad] * (config["beg_size"] - len(begin)) + [pad] * (size - len(end)) + end


def main():
    folder, files = pathlib.Path(sys.argv[1]), sys.argv[2:]
    network, config = fetch(folder)
    session = dnnopt.InferenceSession(network)
    batch = np.array([features(pathlib.Path(file).read_bytes(), config) for file in files], np.int32)
    shares, = session.run(["target_label"], {"bytes": batch})
    for file, row in zip(files, shares):
        print(f"{file}  {config['target_labels_space'][row.argmax()]}  {row.max():.0%}")


if __name__ == "__main__":
    sys.exit(main())

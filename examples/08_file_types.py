#!/usr/bin/env python3
"""Says what kind of file each of its arguments is, by magika's network on the first OpenCL device.

08_file_types.py FOLDER FILE...

The network comes from the wheel of magika 1.0.3, which pip downloads into FOLDER once; nothing of it is installed or
run. The network looks at 1,024 bytes from a file's beginning and from its end, each without white space, padded by 256,
as the wheel's config says. All files go through it as one batch.
"""
import json
import pathlib
import sys

import numpy as np

import dnnopt
import wheels

WHEEL = "magika==1.0.3"
INSIDE = "magika/models/standard_v3_3/"


def features(content, config):
    """What the network sees of a file: bytes as integers."""
    pad, block = config["padding_token"], config["block_size"]
    begin = list(content[:block].lstrip()[:config["beg_size"]])
    size = config["end_size"]
    end = list(content[-block:].rstrip()[-size:])
    return begin + [pad] * (config["beg_size"] - len(begin)) + [pad] * (size - len(end)) + end


def main():
    folder, files = sys.argv[1], sys.argv[2:]
    config = json.loads(wheels.read(folder, WHEEL, INSIDE + "config.min.json"))
    session = dnnopt.InferenceSession(wheels.read(folder, WHEEL, INSIDE + "model.onnx"))
    batch = np.array([features(pathlib.Path(file).read_bytes(), config) for file in files], np.int32)
    shares, = session.run(["target_label"], {"bytes": batch})
    for file, row in zip(files, shares):
        print(f"{file}  {config['target_labels_space'][row.argmax()]}  {row.max():.0%}")


if __name__ == "__main__":
    sys.exit(main())

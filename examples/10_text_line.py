#!/usr/bin/env python3
"""Reads a line of text in a picture, by PP-OCRv4's recognizer on the first OpenCL device.

10_text_line.py FOLDER PICTURE...     pictures of one line each
10_text_line.py FOLDER --text TEXT    a picture of that text, drawn here

The network comes from the wheel of rapidocr-onnxruntime 1.4.4, which pip downloads into FOLDER once; its characters are
in the file's metadata. Lines of any width go through one session, for the width is a symbol. Needs Pillow from PyPI.
"""
import sys

import numpy as np
from PIL import Image, ImageDraw, ImageFont

import dnnopt
import wheels

HEIGHT = 48


def drawn(text):
    font = ImageFont.load_default(size=32)
    left, top, right, bottom = font.getbbox(text)
    picture = Image.new("RGB", (right - left + 24, bottom - top + 20), "white")
    ImageDraw.Draw(picture).text((12 - left, 10 - top), text, "black", font)
    return picture


def prepared(picture):
    """A picture as the network sees it: 48 rows, blue before green before red, from -1 to 1."""
    picture = picture.convert("RGB")
    picture = picture.resize((max(1, round(picture.width * HEIGHT / picture.height)), HEIGHT), Image.Resampling.BILINEAR)
    return (np.asarray(picture, np.float32)[:, :, ::-1].transpose(2, 0, 1)[None] / 127.5 - 1).astype(np.float32)


def decoded(shares, characters):
    """The best character of each column; the same one twice is one, and class 0 stands between characters."""
    best = shares.argmax(-1)
    kept = [i for i, c in enumerate(best) if c != 0 and (i == 0 or best[i - 1] != c)]
    text = "".join(characters[best[i] - 1] for i in kept)
    return text.strip(), float(np.mean([shares[i, best[i]] for i in kept])) if kept else 0.0


def main():
    network = wheels.read(sys.argv[1], "rapidocr-onnxruntime==1.4.4", "rapidocr_onnxruntime/models/ch_PP-OCRv4_rec_infer.onnx")
    # The last class is the space.
    characters = wheels.metadata(network, "character").split("\n") + [" "]
    session = dnnopt.InferenceSession(network)
    pictures = [drawn(" ".join(sys.argv[3:]))] if sys.argv[2] == "--text" else map(Image.open, sys.argv[2:])
    for picture in pictures:
        shares, = session.run(None, {session.get_inputs()[0].name: prepared(picture)})
        text, share = decoded(shares[0], characters)
        print(f"{text}  {share:.0%}")


if __name__ == "__main__":
    sys.exit(main())

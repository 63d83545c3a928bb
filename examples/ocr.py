"""Owns what the examples of text share: PP-OCRv4's detector and recognizer, and what stands before and behind them.

Both networks take pictures of any size in one session, for their sizes are symbols. The wheel of rapidocr-onnxruntime
1.4.4 holds them; the recognizer's characters are in its file's metadata. Needs Pillow 10.1 or newer from PyPI.
"""
import numpy as np
from PIL import Image, ImageFont

import dnnopt
import wheels

WHEEL = "rapidocr-onnxruntime==1.4.4"
LINE_HEIGHT = 48          # of a line as the recognizer sees it
STEP = 32                 # sides of a picture are a multiple of it for the detector
IS_TEXT, SURE = 0.3, 0.5  # probabilities: of a pixel, and of a box in the mean
GROWTH = 1.6              # the detector marks the middle of a line: its box grows by this share of area over perimeter


def font(size):
    return ImageFont.load_default(size=size)


def pixels(picture):
    """A picture as the networks see it: blue before green before red, from -1 to 1."""
    return (np.asarray(picture.convert("RGB"), np.float32)[:, :, ::-1].transpose(2, 0, 1)[None] / 127.5 - 1).astype(np.float32)


def components(mask):
    """Boxes (left, top, right, bottom) of the connected parts of a mask: runs of each row, joined with those above."""
    parent, boxes, above = [], [], []

    def root(i):
        while parent[i] != i:
            parent[i] = parent[parent[i]]
            i = parent[i]
        return i
    for y, row in enumerate(mask):
        edges = np.flatnonzero(np.diff(np.concatenate(([False], row, [False])).astype(np.int8)))
        here = []
        for left, right in zip(edges[::2], edges[1::2]):
            own = len(parent)
            parent.append(own)
            boxes.append([left, y, right, y + 1])
            for other_left, other_right, other in above:
                # Corners that touch connect too.
                if other_left <= right and left <= other_right:
                    a, b = root(own), root(other)
                    parent[max(a, b)] = min(a, b)
            here.append((left, right, own))
        above = here
    joined = {}
    for i, (left, top, right, bottom) in enumerate(boxes):
        box = joined.setdefault(root(i), [left, top, right, bottom])
        box[:] = min(box[0], left), min(box[1], top), max(box[2], right), max(box[3], bottom)
    return list(joined.values())


class Detector:
    """Finds lines of text that are about level."""

    def __init__(self, folder, options=None):
        self.session = dnnopt.InferenceSession(
            wheels.read(folder, WHEEL, "rapidocr_onnxruntime/models/ch_PP-OCRv4_det_infer.onnx"), options)
        self.input = self.session.get_inputs()[0].name

    def boxes(self, shares, size):
        """Boxes on a picture of that size from the share of text in each pixel, in reading order."""
        height, width = shares.shape
        found = []
        for left, top, right, bottom in components(shares > IS_TEXT):
            if min(right - left, bottom - top) < 3 or shares[top:bottom, left:right].mean() < SURE:
                continue
            grown = (right - left) * (bottom - top) * GROWTH / (2 * (right - left + bottom - top))
            box = np.array([max(left - grown, 0), max(top - grown, 0), min(right + grown, width), min(bottom + grown, height)])
            found.append(np.rint(box * np.tile([size[0] / width, size[1] / height], 2)).astype(int).tolist())
        return sorted(found, key=lambda box: (box[1] // 8, box[0]))

    def __call__(self, picture):
        sides = [max(STEP, round(side / STEP) * STEP) for side in picture.size]
        shares, = self.session.run(None, {self.input: pixels(picture.resize(sides, Image.Resampling.BILINEAR))})
        return self.boxes(shares[0, 0], picture.size)


class Recognizer:
    """Reads a picture of one line: the text, and how sure it is."""

    def __init__(self, folder, options=None):
        network = wheels.read(folder, WHEEL, "rapidocr_onnxruntime/models/ch_PP-OCRv4_rec_infer.onnx")
        # The last class is the space.
        self.characters = wheels.metadata(network, "character").split("\n") + [" "]
        self.session = dnnopt.InferenceSession(network, options)
        self.input = self.session.get_inputs()[0].name

    def __call__(self, picture):
        width = max(1, round(picture.width * LINE_HEIGHT / picture.height))
        line = picture.convert("RGB").resize((width, LINE_HEIGHT), Image.Resampling.BILINEAR)
        shares = self.session.run(None, {self.input: pixels(line)})[0][0]
        # The best character of each column; the same one twice is one, and class 0 stands between characters.
        best = shares.argmax(-1)
        kept = [i for i, c in enumerate(best) if c != 0 and (i == 0 or best[i - 1] != c)]
        text = "".join(self.characters[best[i] - 1] for i in kept)
        return text.strip(), float(np.mean([shares[i, best[i]] for i in kept])) if kept else 0.0

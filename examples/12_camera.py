#!/usr/bin/env python3
"""Follows a sign through the frames of a camera, by PP-OCRv4's detector on the first OpenCL device.

12_camera.py FOLDER [FRAMES]

The camera is a thread that draws a moving sign. Two frames take turns: while the network looks at one, where it lies and
without a copy, the camera fills the other, so that a frame costs the longer of both and not their sum. A line a frame
tells where the middle of the sign is; the last one, on standard error, what a frame took. The network comes from the wheel
of rapidocr-onnxruntime 1.4.4, which pip downloads into FOLDER once (ocr.py). Needs Pillow from PyPI.
"""
import queue
import sys
import threading
import time

import numpy as np
from PIL import Image, ImageDraw

import ocr

WIDTH, HEIGHT = 320, 192


def camera(frames, empty, full):
    """Fills each frame that is given back, as a driver would by DMA."""
    for number in range(frames):
        picture = Image.new("RGB", (WIDTH, HEIGHT), "#31572c")
        draw = ImageDraw.Draw(picture)
        left, top = 20 + 12 * number, 20 + 8 * number
        draw.rectangle((left, top, left + 132, top + 44), fill="white")
        draw.text((left + 12, top + 6), "GATE 7", "black", ocr.font(30))
        frame = empty.get()
        frame[:] = ocr.pixels(picture)
        full.put((number, time.perf_counter(), frame))
    full.put(None)


def main():
    frames = int(sys.argv[2]) if len(sys.argv) > 2 else 8
    find = ocr.Detector(sys.argv[1])
    buffers = [np.zeros((1, 3, HEIGHT, WIDTH), np.float32) for _ in range(2)]
    find.session.run(None, {find.input: buffers[0]})  # in the first inference some drivers still compile
    empty, full = queue.Queue(), queue.Queue()
    for frame in buffers:
        empty.put(frame)
    threading.Thread(target=camera, args=(frames, empty, full), daemon=True).start()
    looked, waited, began = [], [], time.perf_counter()
    while (shot := full.get()) is not None:
        number, taken, frame = shot
        started = time.perf_counter()
        shares, = find.session.run(None, {find.input: frame})
        empty.put(frame)
        boxes = find.boxes(shares[0, 0], (WIDTH, HEIGHT))
        places = ", ".join(f"{(box[0] + box[2]) // 2} {(box[1] + box[3]) // 2}" for box in boxes)
        print(f"frame {number}: {'a sign at ' + places if boxes else 'no sign'}")
        ended = time.perf_counter()
        looked.append(ended - started)
        waited.append(ended - taken)
    whole = time.perf_counter() - began
    print(f"{frames / whole:.1f} frames a second; a frame: {1e3 * np.median(looked):.1f} ms of looking, "
          f"{1e3 * np.median(waited):.1f} ms from the camera to the answer", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())

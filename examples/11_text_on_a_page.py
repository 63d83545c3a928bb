#!/usr/bin/env python3
"""Finds the lines of text on a page and reads them, by PP-OCRv4's detector and recognizer on the first OpenCL device.

11_text_on_a_page.py FOLDER PICTURE [MARKED.png]    a picture; with a second file it is written with its boxes
11_text_on_a_page.py FOLDER --drawn [MARKED.png]    a page that is drawn here

A line of output is a line of text: left, top, right and bottom of its box in pixels, the text, and how sure the network
is. The networks come from the wheel of rapidocr-onnxruntime 1.4.4, which pip downloads into FOLDER once (ocr.py). Needs
Pillow from PyPI.
"""
import sys

from PIL import Image, ImageDraw

import ocr

PAGE = [(32, 24, 40, "Train timetable"), (32, 104, 26, "Berlin 08:15 Platform 4"), (32, 156, 26, "Hamburg 09:40 Platform 11"),
        (32, 208, 26, "Leipzig 10:05 Platform 7"), (360, 276, 20, "Have a good journey")]


def drawn():
    page = Image.new("RGB", (640, 320), "white")
    draw = ImageDraw.Draw(page)
    for left, top, size, text in PAGE:
        draw.text((left, top), text, "black", ocr.font(size))
    return page


def main():
    page = drawn() if sys.argv[2] == "--drawn" else Image.open(sys.argv[2]).convert("RGB")
    find, read = ocr.Detector(sys.argv[1]), ocr.Recognizer(sys.argv[1])
    marked = page.copy()
    for box in find(page):
        text, share = read(page.crop(box))
        print(*box, "", text, f" {share:.0%}")
        ImageDraw.Draw(marked).rectangle(box, outline="#d97706", width=2)
    if len(sys.argv) > 3:
        marked.save(sys.argv[3])


if __name__ == "__main__":
    sys.exit(main())

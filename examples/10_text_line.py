#!/usr/bin/env python3
"""Reads a line of text in a picture, by PP-OCRv4's recognizer on the first OpenCL device.

10_text_line.py FOLDER PICTURE...     pictures of one line each
10_text_line.py FOLDER --text TEXT    a picture of that text, drawn here

The network comes from the wheel of rapidocr-onnxruntime 1.4.4, which pip downloads into FOLDER once (ocr.py). Lines of
any width go through one session, for the width is a symbol. Needs Pillow from PyPI.
"""
import sys

from PIL import Image, ImageDraw

import ocr


def drawn(text):
    font = ocr.font(32)
    left, top, right, bottom = font.getbbox(text)
    picture = Image.new("RGB", (right - left + 24, bottom - top + 20), "white")
    ImageDraw.Draw(picture).text((12 - left, 10 - top), text, "black", font)
    return picture


def main():
    read = ocr.Recognizer(sys.argv[1])
    pictures = [drawn(" ".join(sys.argv[3:]))] if sys.argv[2] == "--text" else map(Image.open, sys.argv[2:])
    for picture in pictures:
        text, share = read(picture)
        print(f"{text}  {share:.0%}")


if __name__ == "__main__":
    sys.exit(main())

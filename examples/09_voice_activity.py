#!/usr/bin/env python3
"""Says when somebody speaks in a sound file, by Silero's network on the first OpenCL device.

09_voice_activity.py FOLDER SOUND.wav

The network comes from the wheel of silero-vad 6.2.3, which pip downloads into FOLDER once. It hears 32 milliseconds at a
time, behind the last four of those before, and hands a state from one piece to the next, as it would in a stream. A line
a sentence: from when to when, and how long one piece took.
"""
import sys
import time
import wave

import numpy as np

import dnnopt
import wheels

RATE, PIECE, BEFORE = 16000, 512, 64
SPEAKS, IS_SILENT, PAUSE = 0.5, 0.35, 8  # probabilities, and pieces of silence that end a sentence


def sound(path):
    """The samples of a file with 16 bits a sample, its channels averaged, at 16 kHz."""
    with wave.open(path) as file:
        if file.getsampwidth() != 2:
            sys.exit(f"{path}: samples of 16 bits are needed")
        samples = np.frombuffer(file.readframes(file.getnframes()), "<i2").reshape(-1, file.getnchannels()).mean(1) / 32768
        length = int(len(samples) * RATE / file.getframerate())
        return np.interp(np.arange(length) * file.getframerate() / RATE, np.arange(len(samples)), samples).astype(np.float32)


def main():
    network = wheels.read(sys.argv[1], "silero-vad==6.2.3", "silero_vad/data/silero_vad.onnx")
    samples = sound(sys.argv[2])
    session = dnnopt.InferenceSession(network)
    state, rate = np.zeros((2, 1, 128), np.float32), np.array(RATE, np.int64)
    heard = np.zeros(BEFORE, np.float32)
    begin, silent, times = None, 0, []
    for at in range(0, len(samples) - PIECE + 1, PIECE):
        piece = np.concatenate([heard, samples[at:at + PIECE]])
        heard = piece[-BEFORE:]
        started = time.perf_counter()
        probability, state = session.run(None, {"input": piece[None], "state": state, "sr": rate})
        times.append(time.perf_counter() - started)
        probability = probability.item()
        if probability > SPEAKS:
            begin, silent = at if begin is None else begin, 0
        elif begin is not None and probability < IS_SILENT:
            silent += 1
            if silent == PAUSE:
                print(f"{begin / RATE:.2f} s to {(at - (PAUSE - 1) * PIECE) / RATE:.2f} s")
                begin = None
    if begin is not None:
        print(f"{begin / RATE:.2f} s to the end")
    print(f"{1e3 * np.median(times):.2f} ms for 32 ms of sound", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())

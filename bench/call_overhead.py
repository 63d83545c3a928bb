#!/usr/bin/env python3
"""Times what a call from Python costs: a model of one operator on the host, by the package and by the C function alone.

PYTHONPATH=bindings/python DNNOPT_LIBRARY=LIBRARY call_overhead.py [RUNS]

`bare` is dnnopt_session_run with its arguments made once, as a program in C calls it (and ctypes' own call, some tenths of
a microsecond); `run` is InferenceSession.run. Medians of 21 rounds, in turns. Beside them ONNX Runtime's `run` of the same
model, where it is installed.
"""
import ctypes
import statistics
import sys
import time

import numpy as np

import dnnopt
from dnnopt._library import library


def relu():
    """The bytes of a model y = Relu(x) of float [1, 2]."""
    def held(number, content):
        return bytes([number << 3 | 2, len(content)]) + content

    def info(name):
        dims = held(1, b"\x08\x01") + held(1, b"\x08\x02")
        return held(1, name) + held(2, held(1, b"\x08\x01" + held(2, dims)))
    node = held(1, b"x") + held(2, b"y") + held(4, b"Relu")
    graph = held(1, node) + held(2, b"g") + held(11, info(b"x")) + held(12, info(b"y"))
    return b"\x08\x08" + held(7, graph) + held(8, b"\x0a\x00\x10\x0d")


def main():
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 2000
    model, feed = relu(), {"x": np.ones((1, 2), np.float32)}
    session = dnnopt.InferenceSession(model, {"device": "reference"})
    tensors, kept = session._tensors(feed)
    handle, release, execute = session._session.value, library.outputs_release, library.session_run

    def bare():
        outputs = ctypes.c_void_p()
        execute(handle, tensors, 1, None, 0, ctypes.byref(outputs))
        release(outputs)

    calls = {"bare": bare, "run": lambda: session.run(None, feed)}
    try:
        import onnxruntime
        other = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
        calls["ONNX Runtime"] = lambda: other.run(None, feed)
    except ImportError:
        pass
    times = {name: [] for name in calls}
    for _ in range(21):
        for name, call in calls.items():
            begin = time.perf_counter()
            for _ in range(runs):
                call()
            times[name].append((time.perf_counter() - begin) / runs * 1e6)
    medians = {name: statistics.median(all_of) for name, all_of in times.items()}
    print(", ".join(f"{name} {median:.2f} us" for name, median in medians.items()))
    print(f"the package's own part: {medians['run'] - medians['bare']:.2f} us, one input and one output")


if __name__ == "__main__":
    main()

"""Optimizes ONNX models, runs them through OpenCL or on the host, and shows where the time goes.

The classes have the names and the calls of ONNX Runtime, so that a program changes its import and little else::

    session = dnnopt.InferenceSession("model.onnx")
    outputs = session.run(None, {"input": image})

What differs: ``device`` in the options chooses where a model runs, not ``providers``.
"""
from __future__ import annotations

from ._binding import IOBinding, OrtValue
from ._library import Error
from ._session import InferenceSession, NodeArg, SessionOptions, devices, optimize, version

__version__ = version()
__all__ = ["Error", "IOBinding", "InferenceSession", "NodeArg", "OrtValue", "SessionOptions", "devices", "optimize", "__version__"]

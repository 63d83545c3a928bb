"""Owns element types: ONNX's numbers, ONNX Runtime's names and NumPy's types."""
from __future__ import annotations

from typing import Any

import numpy as np

# By ONNX's number of an element type: ONNX Runtime's name, and NumPy's type where it has one.
TYPES: dict[int, tuple[str, Any]] = {
    1: ("tensor(float)", np.float32), 2: ("tensor(uint8)", np.uint8), 3: ("tensor(int8)", np.int8),
    4: ("tensor(uint16)", np.uint16), 5: ("tensor(int16)", np.int16), 6: ("tensor(int32)", np.int32),
    7: ("tensor(int64)", np.int64), 8: ("tensor(string)", np.object_), 9: ("tensor(bool)", np.bool_),
    10: ("tensor(float16)", np.float16), 11: ("tensor(double)", np.float64), 12: ("tensor(uint32)", np.uint32),
    13: ("tensor(uint64)", np.uint64), 14: ("tensor(complex64)", np.complex64),
    15: ("tensor(complex128)", np.complex128), 16: ("tensor(bfloat16)", None),
}
NUMPY = {number: np.dtype(kind) for number, (_, kind) in TYPES.items() if kind is not None}
NUMBERS = {kind: number for number, kind in NUMPY.items()}
STRING = 8
# Codes of dnnopt.Error.
INVALID_ARGUMENT = 101
UNSUPPORTED = 407

"""What the drawing functions of compare_random.py share: a case, shapes, values."""
import dataclasses

import numpy as np
from onnx import TensorProto, helper

REAL = (np.float32, np.float64, np.float16)
SIGNED = (np.int8, np.int16, np.int32, np.int64)
UNSIGNED = (np.uint8, np.uint16, np.uint32, np.uint64)
INTEGER = SIGNED + UNSIGNED


@dataclasses.dataclass
class Case:
    """One model of one operator (or of `nodes`). `inputs` holds arrays or None where an optional input is absent;
    `constant` numbers the inputs that are initializers."""

    op: str
    opset: int
    inputs: list
    attributes: dict = dataclasses.field(default_factory=dict)
    outputs: int = 1
    constant: tuple = ()
    nodes: list = None  # (op, input names, output names, attributes), inputs named x0, x1, ..., outputs y0, y1, ...
    loose: float = 0.0  # relative tolerance where single precision sums are long
    symbolic: bool = False  # the inputs' dims are symbols, one for each
    ml: int = 3  # version of ai.onnx.ml
    kept: tuple = ()  # inputs whose type stays float32 in every model
    part: float = 0.0  # tolerance as a part of each element and of the largest one; `equal` is the judge then
    equal: "Case" = None  # what computes the same and has a judge


DRAWS = {}


def draws(function):
    """Registers a drawing function under its name without `draw_`."""
    DRAWS[function.__name__.removeprefix("draw_")] = function
    return function


def pick(r, *choices):
    return choices[int(r.integers(len(choices)))]


def chance(r, p):
    return bool(r.random() < p)


def dim(r, high=7, zero=0.03):
    if chance(r, zero):
        return 0
    return 1 if chance(r, 0.2) else int(r.integers(1, high + 1))


def dims(r, rank, high=7, zero=0.03):
    return [dim(r, high, zero) for _ in range(rank)]


def real(r, shape, dtype=np.float32, special=0.0, spread=2.0):
    x = (r.standard_normal(shape) * spread).astype(dtype)
    if special:
        flat = np.asarray(x).reshape(-1)
        for k in range(flat.size):
            if chance(r, special):
                flat[k] = pick(r, np.nan, np.inf, -np.inf, 0.0, -0.0, 0.5, -0.5, 1.5, 2.5, -1.5, 1e30 if dtype != np.float16 else 6e4)
        x = flat.reshape(np.shape(x))
    return x


def integer(r, shape, dtype=np.int64, extreme=0.0, low=None, high=None):
    info = np.iinfo(dtype)
    low = max(info.min, -20) if low is None else low
    high = min(info.max, 20) if high is None else high
    x = np.asarray(r.integers(low, high, size=shape, endpoint=True, dtype=dtype))
    if extreme:
        flat = x.reshape(-1)
        for k in range(flat.size):
            if chance(r, extreme):
                flat[k] = pick(r, info.min, info.max, 0, 1)
        x = flat.reshape(x.shape)
    return x


def values(r, shape, dtype, special=0.0):
    if dtype == np.bool_:
        return r.integers(0, 2, size=shape).astype(bool)
    if np.issubdtype(dtype, np.floating):
        return real(r, shape, dtype, special)
    return integer(r, shape, dtype, special)


def onnx_type(dtype):
    return helper.np_dtype_to_tensor_dtype(np.dtype(dtype))


__all__ = [n for n in dir() if not n.startswith("_")]
_ = TensorProto

"""Owns sessions: options, inputs and outputs as NumPy arrays, profiles and reports as data."""
from __future__ import annotations

import ctypes
import dataclasses
import functools
import json
import logging
import os
import struct
import threading
import warnings
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from ctypes import byref, c_int64, c_void_p
from typing import Any, Optional, Union

import numpy as np

from ._binding import IOBinding, OrtValue, array_of, bind
from ._library import LOG_CALLBACK, Error, check, library, text_of
from ._types import INVALID_ARGUMENT, NUMBERS, NUMPY, STRING, TYPES, UNSUPPORTED

_log = logging.getLogger("dnnopt")

_dims_of = functools.lru_cache(maxsize=None)(lambda rank: struct.Struct(f"{rank}q"))
_TENSOR = struct.Struct("@PiiPPN")  # dnnopt_tensor


def version() -> str:
    """The version of the library."""
    return library.version().decode()


def devices() -> list[dict[str, Any]]:
    """The OpenCL devices with their limits; ``spec`` of one is what ``SessionOptions.device`` takes. Empty where there
    is no OpenCL."""
    return json.loads(text_of(library.devices))["devices"]


@dataclasses.dataclass
class SessionOptions:
    """How a model is compiled and run. ``None`` leaves a choice to the library.

    device: ``"opencl"`` (the first one), ``"opencl:N"``, ``"opencl:part of a name"``, or ``"reference"`` (the host).
    require_device: an operator that would run on the host is an error that names it.
    precision: ``"fp32"``, ``"fp16"`` or ``"fp16-arithmetic"``.
    form: ``"native"``, ``"vectors"`` or ``"groups"``: which kernels the device gets.
    wait: ``"blocking"`` or ``"spinning"``: how a run waits for the device.
    first_start: ``"optimized"`` or ``"quick"``: what kernels that are in no cache are compiled as. Quick ones serve the
    first runs, until optimized ones, which a thread compiles, take over.
    passes: ``"default"``, ``"none"``, ``"epilogue"``, or names separated by commas.
    memory_strategy: ``"default"``, or the name of a planner of intermediate tensors, as ``dnnopt plan-memory`` knows it.
    io_types: ``"model"`` or ``"float16"``: whether float32 inputs and outputs are given and returned as float16.
    memory_limit: bytes of device memory.
    program_folder: where compiled programs are kept; ``""`` keeps them in memory.
    dims: values of symbolic dims by name. shapes: shapes of inputs by name. ranges: what symbolic dims may be, by name:
    (low, high) or (low, high, multiple). values: inputs whose values are known now, numbers or lists of them; they are
    no inputs any more.
    overridden_inputs: inputs with a default value that runs will give.
    """

    device: Optional[str] = None
    require_device: Optional[bool] = None
    precision: Optional[str] = None
    form: Optional[str] = None
    wait: Optional[str] = None
    first_start: Optional[str] = None
    passes: Optional[str] = None
    memory_objects: Optional[str] = None
    memory_strategy: Optional[str] = None
    io_types: Optional[str] = None
    memory_limit: Optional[int] = None
    program_folder: Optional[Union[str, os.PathLike[str]]] = None
    dims: Mapping[str, int] = dataclasses.field(default_factory=dict)
    shapes: Mapping[str, Sequence[int]] = dataclasses.field(default_factory=dict)
    ranges: Mapping[str, Sequence[int]] = dataclasses.field(default_factory=dict)
    values: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    overridden_inputs: Sequence[str] = ()

    def _pairs(self) -> list[tuple[str, str]]:
        """As names and texts of dnnopt_options_set."""
        plain = ("device", "precision", "form", "wait", "first_start", "passes", "memory_objects", "memory_strategy",
                 "io_types", "memory_limit", "program_folder")
        pairs = [(name, str(getattr(self, name))) for name in plain if getattr(self, name) is not None]
        if self.require_device is not None:
            pairs.append(("require_device", str(int(self.require_device))))
        pairs += [(f"dim:{name}", str(number)) for name, number in self.dims.items()]
        pairs += [(f"shape:{name}", "x".join(map(str, dims))) for name, dims in self.shapes.items()]
        pairs += [(f"range:{name}", ":".join(map(str, numbers))) for name, numbers in self.ranges.items()]
        pairs += [(f"value:{name}", ",".join(repr(+number) for number in np.ravel(value).tolist()))
                  for name, value in self.values.items()]
        return pairs + [("overridden_input", name) for name in self.overridden_inputs]


Options = Union[SessionOptions, Mapping[str, Any], None]
Model = Union[str, os.PathLike, bytes, bytearray, memoryview]


@LOG_CALLBACK
def _tell(_user: Any, code: bytes, text: bytes) -> None:
    _log.warning("%s: %s", code.decode(), text.decode(errors="replace"))


class _Handle:
    """A handle of the library, released with the object."""

    def __init__(self, release: Any) -> None:
        self.value = c_void_p()
        self._release = release

    def __del__(self) -> None:
        if self.value:
            self._release(self.value)


def _options(given: Options) -> _Handle:
    made = SessionOptions(**given) if isinstance(given, Mapping) else given or SessionOptions()
    handle = _Handle(library.options_release)
    check(library.options_create(byref(handle.value)))
    check(library.options_set_log(handle.value, _tell, None))
    for name, value in made._pairs():
        check(library.options_set(handle.value, name.encode(), value.encode()))
    return handle


def _model(given: Model, options: _Handle) -> _Handle:
    handle = _Handle(library.model_release)
    if isinstance(given, (bytes, bytearray, memoryview)):
        content = bytes(given)
        check(library.model_load_bytes(content, len(content), None, options.value, byref(handle.value)))
    else:
        check(library.model_load(os.fsencode(given), options.value, byref(handle.value)))
    return handle


def optimize(model: Model, path: Union[str, os.PathLike[str]], options: Options = None) -> None:
    """Writes the optimized graph of a model as an .onnx file that any engine reads.

    model: a path, or the content of a file. Raises Error.
    """
    held = _options(options)
    loaded = _model(model, held)
    check(library.model_optimize(loaded.value, held.value, os.fsencode(path)))


class NodeArg:
    """An input or output: ``name``, ``shape`` (numbers, and names of dims that a run tells) and ``type`` as ONNX Runtime
    names it, ``"tensor(float)"``."""

    def __init__(self, name: str, shape: Optional[list[Union[int, str]]], type: str) -> None:
        self.name, self.shape, self.type = name, shape, type

    def __repr__(self) -> str:
        return f"NodeArg(name={self.name!r}, type={self.type!r}, shape={self.shape!r})"


def _ports(session: c_void_p, side: int) -> list[NodeArg]:
    result = []
    for i in range(library.session_count(session, side)):
        rank = library.session_rank(session, side, i)
        shape: list[Union[int, str]] = []
        for k in range(rank):
            name = library.session_dim_name(session, side, i, k)
            shape.append(library.session_dim(session, side, i, k) if name is None else name.decode())
        number = library.session_type(session, side, i)
        kind = TYPES.get(number, (f"type {number}", None))[0]
        result.append(NodeArg(library.session_name(session, side, i).decode(), shape if rank >= 0 else None, kind))
    return result


class _Outputs:
    """The memory of a run's outputs, which lives as long as an array over it."""

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value = c_void_p()

    def __del__(self) -> None:
        if self.value:
            library.outputs_release(self.value)


class InferenceSession:
    """A model compiled for one device.

    model: a path, or the content of an .onnx file as bytes.
    options: a SessionOptions, or a mapping of its fields.
    providers: accepted for programs that were written for ONNX Runtime, and not used; ``options`` choose the device.

    Raises Error with the library's code and text. Several threads may call one session; its runs take turns. Those of
    clones (``clone()``) run at the same time.
    """

    def __init__(self, model: Model, options: Options = None, providers: Any = None, provider_options: Any = None, *,
                 sess_options: Options = None) -> None:
        if providers or provider_options:
            warnings.warn("dnnopt does not use providers; the option `device` says where a model runs", stacklevel=2)
        held = _options(sess_options if options is None else options)
        made = _Handle(library.session_release)
        loaded = _model(model, held)
        check(library.session_create(loaded.value, held.value, byref(made.value)))
        self._hold(made)

    def _hold(self, made: _Handle) -> None:
        self._session = made
        self._inputs = _ports(self._session.value, 0)
        self._outputs = _ports(self._session.value, 1)
        # What calls need again and again, by its address: names, dims, and blocks of dnnopt_tensor.
        self._texts = [ctypes.create_string_buffer(one.name.encode()) for one in self._inputs]
        self._names = {one.name: ctypes.addressof(text) for one, text in zip(self._inputs, self._texts)}
        self._lock = threading.Lock()
        self._dims: dict[tuple[int, ...], tuple[Any, int]] = {}
        self._buffers: dict[int, Any] = {}
        self._block = ctypes.create_string_buffer(_TENSOR.size * len(self._inputs))
        self._got = ctypes.create_string_buffer(_TENSOR.size)
        self._begun: Optional[ThreadPoolExecutor] = None
        self._bound: dict[str, tuple[Any, bool]] = {}  # what IOBinding left bound: its buffer, and whether of an output

    def clone(self) -> InferenceSession:
        """Another session of the same model on the same device, so that threads run at the same time: one copy of the
        weights and of the compiled programs serves both, and nothing is compiled or uploaded. Raises Error."""
        copy = InferenceSession.__new__(InferenceSession)
        made = _Handle(library.session_release)
        with self._lock:
            check(library.session_clone(self._session.value, byref(made.value)))
        copy._hold(made)
        return copy

    def get_inputs(self) -> list[NodeArg]:
        """The inputs that run() needs."""
        return list(self._inputs)

    def get_outputs(self) -> list[NodeArg]:
        """The outputs, in the model's order."""
        return list(self._outputs)

    def run(self, output_names: Optional[Sequence[str]], input_feed: Mapping[str, Any], run_options: Any = None,
            ) -> list[np.ndarray]:
        """One inference.

        output_names: the outputs wanted, in this order; ``None`` or empty for all.
        input_feed: arrays by name, of the model's element types. Contiguous ones are read in place.
        Returns arrays over the library's own memory: nothing is copied, and they stay valid without the session.
        """
        if self._bound:
            self._bind({}, set())
        return self._run(output_names, input_feed)

    def io_binding(self) -> IOBinding:
        """An empty binding of memory to inputs and outputs."""
        return IOBinding(self)

    def run_with_iobinding(self, iobinding: IOBinding, run_options: Any = None) -> None:
        """One inference on what is bound. ``iobinding.get_outputs()`` has what it gave."""
        iobinding._run()

    def run_with_ort_values(self, output_names: Optional[Sequence[str]], input_dict_ort_values: Mapping[str, OrtValue],
                            run_options: Any = None) -> list[OrtValue]:
        """One inference on values; what it gives lies on the host."""
        binding = IOBinding(self)
        for name, value in input_dict_ort_values.items():
            binding.bind_ortvalue_input(name, value)
        for name in output_names or [one.name for one in self._outputs]:
            binding.bind_output(name)
        binding._run()
        return binding.get_outputs()

    def _bind(self, values: Mapping[str, OrtValue], outputs: set[str]) -> None:
        """Binds values on the device, and unbinds what else was bound."""
        with self._lock:
            for name in [name for name in self._bound if name not in values]:
                bind(self._session.value, self._session, name, None, False)
                del self._bound[name]
            for name, value in values.items():
                if self._bound.get(name) != (value, name in outputs):
                    bind(self._session.value, self._session, name, value, name in outputs)
                    self._bound[name] = (value, name in outputs)

    def _run(self, output_names: Optional[Sequence[str]], input_feed: Mapping[str, Any]) -> list[np.ndarray]:
        names = [name.encode() for name in output_names] if output_names else []
        wanted = (ctypes.c_char_p * len(names))(*names) if names else None
        outputs = _Outputs()
        handle = outputs.value
        result = []
        with self._lock:
            tensors, kept = self._tensors(input_feed)
            status = library.session_run(self._session.value, tensors, len(kept), wanted, len(names), byref(handle))
            if status != 0:
                check(status)
            got = self._got
            for i in range(len(names) or library.outputs_count(handle)):
                library.outputs_get(handle, i, got)
                result.append(self._array(_TENSOR.unpack(got), outputs))
        return result

    def run_async(self, output_names: Optional[Sequence[str]], input_feed: Mapping[str, Any],
                  callback: Callable[[list[np.ndarray], Any, str], None], user_data: Any = None,
                  run_options: Any = None) -> None:
        """Begins an inference and returns at once. Those of a session run in the order of their beginning, on a thread
        of the session's own; Python's end waits for them.

        output_names, input_feed: as for run(). Arrays must not change before the inference ended.
        callback: called on that thread with the outputs, ``user_data`` and ``""``, or, where the inference fails, with
            no outputs, ``user_data`` and the error's text. What it raises is logged.
        """
        feed = dict(input_feed)

        def begun() -> None:
            outputs: list[np.ndarray] = []
            failure = ""
            try:
                outputs = self.run(output_names, feed, run_options)
            except Exception as error:  # whatever it is, somebody waits for it
                failure = str(error) or repr(error)
            try:
                callback(outputs, user_data, failure)
            except Exception:
                logging.getLogger("dnnopt").exception("the callback of run_async raised")

        with self._lock:
            if self._begun is None:
                self._begun = ThreadPoolExecutor(1, thread_name_prefix="dnnopt")
        self._begun.submit(begun)

    def profile(self, input_feed: Mapping[str, Any], runs: int = 10) -> dict[str, Any]:
        """Times inferences on an OpenCL device: what ``dnnopt profile --json`` writes, with ``operators``,
        ``kernel_rows``, ``kernel_events``, ``clock`` and more. Raises Error on the reference backend."""
        with self._lock:
            tensors, kept = self._tensors(input_feed)
            return json.loads(text_of(library.session_profile, self._session.value, tensors, len(kept), runs))

    def report(self) -> dict[str, Any]:
        """What compiling did and where each node ran: ``device``, ``kernels``, ``host_ops``, ``warnings``,
        ``placements`` and more."""
        with self._lock:
            return json.loads(text_of(library.session_report, self._session.value))

    def _tensors(self, feed: Mapping[str, Any]) -> tuple[Any, list[Any]]:
        """The inputs for the library, and what must stay alive while it reads them. The lock is held."""
        if len(self._block) < _TENSOR.size * len(feed):
            self._block = ctypes.create_string_buffer(_TENSOR.size * len(feed))
        block = self._block
        kept: list[Any] = []
        for i, (name, given) in enumerate(feed.items()):
            # Of rank 0 ascontiguousarray makes rank 1.
            array = np.asarray(array_of(given), order="C")
            number = NUMBERS.get(array.dtype)
            if number is None and array.dtype.kind in "US":
                number = STRING
            if number is None:
                raise Error(INVALID_ARGUMENT,
                            f"input '{name}' has an element type that dnnopt does not know: {array.dtype}")
            shape = array.shape
            dims = self._dims.get(shape)
            if dims is None:
                if len(self._dims) > 256:
                    self._dims.clear()
                numbers = (c_int64 * len(shape))(*shape)
                dims = self._dims[shape] = (numbers, ctypes.addressof(numbers))
            address = self._names.get(name)
            text = None
            if address is None:  # the library says that there is no such input
                text = ctypes.create_string_buffer(name.encode())
                address = ctypes.addressof(text)
            if number == STRING:
                texts = [one if isinstance(one, bytes) else str(one).encode() for one in array.reshape(-1).tolist()]
                pointers = (ctypes.c_char_p * len(texts))(*texts)
                data, size = ctypes.addressof(pointers), ctypes.sizeof(pointers)
                kept.append((pointers, texts, text, dims))
            else:
                data, size = array.__array_interface__["data"][0], array.nbytes
                kept.append((array, text, dims))
            _TENSOR.pack_into(block, i * _TENSOR.size, address, number, len(shape), dims[1], data, size)
        return block, kept

    def _array(self, got: tuple[Any, ...], outputs: _Outputs) -> np.ndarray:
        """An array over an output: the fields of its dnnopt_tensor, and what holds the memory."""
        name, number, rank, dims, data, size = got
        shape = _dims_of(rank).unpack(ctypes.string_at(dims, 8 * rank)) if rank else ()
        if number == STRING:
            count = size // ctypes.sizeof(ctypes.c_char_p)
            texts = (ctypes.c_char_p * count).from_address(data) if count else []
            return np.array([text.decode() for text in texts], dtype=np.object_).reshape(shape)
        kind = NUMPY.get(number)
        if kind is None:
            what = TYPES.get(number, ("of an unknown type",))[0]
            raise Error(UNSUPPORTED, f"output '{ctypes.string_at(name).decode()}' is {what}, which NumPy lacks")
        if size == 0:
            return np.empty(shape, kind)
        buffer_type = self._buffers.get(size)
        if buffer_type is None:
            if len(self._buffers) > 256:
                self._buffers.clear()
            buffer_type = self._buffers[size] = ctypes.c_char * size
        buffer = buffer_type.from_address(data)
        buffer._outputs = outputs  # the array holds the buffer, and the buffer the memory
        return np.ndarray(shape, kind, buffer)

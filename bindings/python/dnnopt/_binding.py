"""Owns values that are bound to a session's inputs and outputs, in memory of the host or of the device."""
from __future__ import annotations

import ctypes
from collections.abc import Sequence
from ctypes import byref, c_int64, c_void_p
from typing import Any, Optional

import numpy as np

from ._library import Error, check, library
from ._types import INVALID_ARGUMENT, NUMBERS, NUMPY, TYPES, UNSUPPORTED


def array_of(value: Any) -> np.ndarray:
    """The array that a value is, without a copy where NumPy or DLPack can share its memory."""
    if isinstance(value, np.ndarray):
        return value
    if not hasattr(value, "__array__") and hasattr(value, "__dlpack__"):
        return np.from_dlpack(value)
    return np.asarray(value)


def _kind_of(element_type: Any) -> np.dtype:
    """NumPy's type of a NumPy type or of ONNX's number."""
    if isinstance(element_type, int) and not isinstance(element_type, bool):
        if element_type not in NUMPY:
            raise Error(UNSUPPORTED, f"NumPy lacks ONNX's element type {element_type}")
        return NUMPY[element_type]
    return np.dtype(element_type)


class OrtValue:
    """A tensor in memory of the host (``"cpu"``) or of the device that a session runs on (any other ``device_type``).

    Which device that is, the session decides that the value is first bound to; until then the host keeps what it is made
    from. Sessions that share the device of that one, which are its clones, can take it too.
    """

    def __init__(self, array: Optional[np.ndarray], shape: tuple[int, ...], kind: np.dtype, on_device: bool) -> None:
        self._array, self._shape, self._kind, self._on_device = array, shape, kind, on_device
        self._buffer = c_void_p()
        self._session: Any = None

    def __del__(self) -> None:
        if self._buffer:
            library.buffer_release(self._buffer)

    @staticmethod
    def ortvalue_from_numpy(numpy_obj: Any, device_type: str = "cpu", device_id: int = 0) -> OrtValue:
        """A value of an array (or of anything that DLPack can hand over). On the host it shares the array's memory."""
        array = np.asarray(array_of(numpy_obj), order="C")
        return OrtValue(array, array.shape, array.dtype, device_type.lower() != "cpu")

    @staticmethod
    def ortvalue_from_shape_and_type(shape: Sequence[int], element_type: Any = np.float32, device_type: str = "cpu",
                                     device_id: int = 0) -> OrtValue:
        """A value of which the elements are not told: a place for an output."""
        dims, kind = tuple(int(dim) for dim in shape), _kind_of(element_type)
        on_device = device_type.lower() != "cpu"
        return OrtValue(None if on_device else np.empty(dims, kind), dims, kind, on_device)

    def numpy(self) -> np.ndarray:
        """The elements: the host's own memory, or a copy of the device's."""
        if not self._buffer:
            if self._array is None:
                raise Error(INVALID_ARGUMENT, "the value was never written")
            return self._array
        array = np.empty(self._shape, self._kind)
        if array.nbytes == 0:
            return array
        check(library.buffer_copy(self._session.value, byref(self._buffer), None, array.ctypes.data, array.nbytes))
        return array

    def update_inplace(self, np_arr: Any) -> None:
        """Writes other elements of the same shape and type. Raises Error where they differ."""
        array = np.asarray(array_of(np_arr), order="C")
        if array.shape != self._shape or array.dtype != self._kind:
            raise Error(INVALID_ARGUMENT, f"{array.dtype}{list(array.shape)} for a value of {self._kind}{list(self._shape)}")
        if self._buffer:
            if array.nbytes != 0:
                check(library.buffer_copy(self._session.value, byref(self._buffer), array.ctypes.data, None, array.nbytes))
        elif self._array is None:
            self._array = array.copy()
        else:
            np.copyto(self._array, array)

    def shape(self) -> list[int]:
        return list(self._shape)

    def element_type(self) -> int:
        """ONNX's number of the element type."""
        return NUMBERS[self._kind]

    def data_type(self) -> str:
        """``"tensor(float)"`` and the like."""
        return TYPES[NUMBERS[self._kind]][0]

    def device_name(self) -> str:
        """``"cpu"`` for memory of the host, else ``"opencl"``."""
        return "opencl" if self._on_device else "cpu"

    def is_tensor(self) -> bool:
        return True

    def has_value(self) -> bool:
        return self._array is not None or bool(self._buffer)

    def __array__(self, dtype: Any = None, copy: Optional[bool] = None) -> np.ndarray:
        return np.asarray(self.numpy(), dtype=dtype)

    def __dlpack__(self, **how: Any) -> Any:
        return self.numpy().__dlpack__(**how)

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)  # kDLCPU: what is on the device is handed over as a copy on the host

    def _on(self, session: Any) -> c_void_p:
        """The buffer on the device of `session`, made and written when it is first asked for."""
        if not self._buffer:
            size = int(np.prod(self._shape)) * self._kind.itemsize
            data = None if self._array is None or size == 0 else self._array.ctypes.data
            check(library.buffer_copy(session.value, byref(self._buffer), data, None, max(size, 1)))
            self._session, self._array = session, None
        return self._buffer


class IOBinding:
    """What takes the place of a session's inputs and outputs, for ``InferenceSession.run_with_iobinding``.

    A value on the device is neither uploaded nor downloaded by a run: an output of one run can be an input of the next.
    """

    def __init__(self, session: Any) -> None:
        self._session = session
        self._inputs: dict[str, OrtValue] = {}
        self._outputs: dict[str, Optional[OrtValue]] = {}
        self._wanted_on_device: set[str] = set()
        self._got: dict[str, OrtValue] = {}

    def bind_cpu_input(self, name: str, arr_on_cpu: Any) -> None:
        """Gives an input an array, which is read where it lies in each run."""
        self._inputs[name] = OrtValue.ortvalue_from_numpy(arr_on_cpu)

    def bind_input(self, name: str, device_type: str, device_id: int, element_type: Any, shape: Sequence[int],
                   buffer_ptr: int) -> None:
        """Gives an input memory of the host by its address. Raises Error for memory of a device, which has no address
        that OpenCL knows: OrtValue holds such memory."""
        self._inputs[name] = _at(device_type, element_type, shape, buffer_ptr)

    def bind_ortvalue_input(self, name: str, ortvalue: OrtValue) -> None:
        self._inputs[name] = ortvalue

    def bind_output(self, name: str, device_type: str = "cpu", device_id: int = 0, element_type: Any = None,
                    shape: Optional[Sequence[int]] = None, buffer_ptr: Optional[int] = None) -> None:
        """Wants an output: in memory of the host by its address, in new memory of the host, or on the device. There its
        dims must be known, from `shape` or from the model; an output of which a run tells them comes to the host."""
        self._wanted_on_device.discard(name)
        self._outputs[name] = None
        if buffer_ptr is not None:
            self._outputs[name] = _at(device_type, element_type, shape or (), buffer_ptr)
        elif device_type.lower() != "cpu":
            self._wanted_on_device.add(name)
            port = next((one for one in self._session.get_outputs() if one.name == name), None)
            dims = shape if shape is not None else port.shape if port is not None else None
            if dims is not None and all(isinstance(dim, int) for dim in dims):
                kind = element_type if element_type is not None else _kind_named(port)
                self._outputs[name] = OrtValue.ortvalue_from_shape_and_type(dims, kind, device_type, device_id)

    def bind_ortvalue_output(self, name: str, ortvalue: OrtValue) -> None:
        self._outputs[name] = ortvalue

    def clear_binding_inputs(self) -> None:
        self._inputs.clear()

    def clear_binding_outputs(self) -> None:
        self._outputs.clear()
        self._got.clear()

    def synchronize_inputs(self) -> None:
        """Nothing: copies to the device end before they return."""

    def synchronize_outputs(self) -> None:
        """Nothing: a run returns when its commands ended."""

    def get_outputs(self) -> list[OrtValue]:
        """The outputs of the last run, in the order in which they were bound."""
        return [self._got[name] for name in self._outputs if name in self._got]

    def copy_outputs_to_cpu(self) -> list[np.ndarray]:
        """The same as arrays."""
        return [value.numpy() for value in self.get_outputs()]

    def _run(self) -> None:
        session = self._session
        on_device = {name: value for name, value in self._outputs.items() if value is not None and value._on_device}
        bound = {name: value for name, value in self._inputs.items() if value._on_device}
        session._bind({**bound, **on_device}, set(on_device))
        feed = {name: value.numpy() for name, value in self._inputs.items() if not value._on_device}
        names = [name for name in self._outputs if name not in on_device]
        arrays = session._run(names, feed) if names or not on_device else session._run(None, feed)
        self._got = dict(on_device)
        for name, array in zip(names, arrays):
            place = self._outputs[name]
            if place is None:
                self._got[name] = OrtValue(array, array.shape, array.dtype, False)
                continue
            place.update_inplace(array)
            self._got[name] = place


def _kind_named(port: Any) -> np.dtype:
    """NumPy's type of an output."""
    for number, (name, _) in TYPES.items():
        if port is not None and name == port.type:
            return _kind_of(number)
    raise Error(INVALID_ARGUMENT, "the element type of the output is not known: state it")


def _at(device_type: str, element_type: Any, shape: Sequence[int], address: int) -> OrtValue:
    """A value over memory of the host."""
    if device_type.lower() != "cpu":
        raise Error(UNSUPPORTED, f"an address of '{device_type}' is no memory that OpenCL knows; OrtValue holds memory of the "
                                 "device")
    kind, dims = _kind_of(element_type), tuple(int(dim) for dim in shape)
    size = int(np.prod(dims)) * kind.itemsize
    memory = (ctypes.c_char * size).from_address(address) if size else b""
    array = np.frombuffer(memory, kind).reshape(dims)
    return OrtValue(array, dims, kind, False)


def bind(session: c_void_p, handle: Any, name: str, value: Optional[OrtValue], output: bool) -> None:
    """Binds a value on the device to an input or an output, or nothing."""
    if value is None:
        check(library.session_bind(session, name.encode(), None, None, 0))
        return
    rank = len(value._shape)
    dims = None if output else (c_int64 * max(rank, 1))(*value._shape)
    check(library.session_bind(session, name.encode(), value._on(handle), dims, rank))

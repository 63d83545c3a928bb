"""Owns the C library: where it is found, the types of its functions, and its errors as exceptions."""
from __future__ import annotations

import ctypes
import os
import pathlib
from ctypes import POINTER, byref, c_char_p, c_int32, c_int64, c_size_t, c_void_p
from typing import Any


class Error(RuntimeError):
    """An error of the library. ``code`` is its number (docs/reference/errors.md), the text has the values."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.code = code


LOG_CALLBACK = ctypes.CFUNCTYPE(None, c_void_p, c_char_p, c_char_p)

_FUNCTIONS: dict[str, tuple[Any, list[Any]]] = {
    "version": (c_char_p, []),
    "last_error": (c_char_p, []),
    "text_release": (None, [c_void_p]),
    "devices": (c_int32, [POINTER(c_void_p)]),
    "options_create": (c_int32, [POINTER(c_void_p)]),
    "options_release": (None, [c_void_p]),
    "options_set": (c_int32, [c_void_p, c_char_p, c_char_p]),
    "options_set_log": (c_int32, [c_void_p, LOG_CALLBACK, c_void_p]),
    "model_load": (c_int32, [c_char_p, c_void_p, POINTER(c_void_p)]),
    "model_load_bytes": (c_int32, [c_char_p, c_size_t, c_char_p, c_void_p, POINTER(c_void_p)]),
    "model_release": (None, [c_void_p]),
    "model_optimize": (c_int32, [c_void_p, c_void_p, c_char_p]),
    "session_create": (c_int32, [c_void_p, c_void_p, POINTER(c_void_p)]),
    "session_clone": (c_int32, [c_void_p, POINTER(c_void_p)]),
    "session_release": (None, [c_void_p]),
    "session_count": (c_size_t, [c_void_p, c_int32]),
    "session_name": (c_char_p, [c_void_p, c_int32, c_size_t]),
    "session_type": (c_int32, [c_void_p, c_int32, c_size_t]),
    "session_rank": (c_int32, [c_void_p, c_int32, c_size_t]),
    "session_dim": (c_int64, [c_void_p, c_int32, c_size_t, c_size_t]),
    "session_dim_name": (c_char_p, [c_void_p, c_int32, c_size_t, c_size_t]),
    "buffer_copy": (c_int32, [c_void_p, POINTER(c_void_p), c_void_p, c_void_p, c_size_t]),
    "buffer_release": (None, [c_void_p]),
    "session_bind": (c_int32, [c_void_p, c_char_p, c_void_p, c_void_p, c_int32]),
    "session_run": (c_int32, [c_void_p, c_void_p, c_size_t, c_void_p, c_size_t, c_void_p]),
    "outputs_count": (c_size_t, [c_void_p]),
    "outputs_get": (c_int32, [c_void_p, c_size_t, c_void_p]),
    "outputs_release": (None, [c_void_p]),
    "session_report": (c_int32, [c_void_p, POINTER(c_void_p)]),
    "session_profile": (c_int32, [c_void_p, c_void_p, c_size_t, c_size_t, POINTER(c_void_p)]),
}


def _find() -> str:
    """What DNNOPT_LIBRARY names, the library beside this file (wheels), or the system's."""
    named = os.environ.get("DNNOPT_LIBRARY")
    if named:
        return named
    beside = pathlib.Path(__file__).with_name("libdnnopt.so")
    return str(beside) if beside.exists() else "libdnnopt.so.0.1"


class _Library:
    def __init__(self) -> None:
        try:
            held = ctypes.CDLL(_find())
        except OSError as error:
            raise ImportError(f"{error}; install the C library (Debian: the package libdnnopt) or a wheel of dnnopt, or name "
                              "the library in DNNOPT_LIBRARY") from error
        for name, (result, arguments) in _FUNCTIONS.items():
            function = getattr(held, "dnnopt_" + name)
            function.restype, function.argtypes = result, arguments
            setattr(self, name, function)

    def __getattr__(self, name: str) -> Any:  # what __init__ set, for type checkers
        raise AttributeError(name)


library = _Library()


def check(status: int) -> None:
    """Raises what a status says. The text is that of the thread's last error."""
    if status != 0:
        raise Error(status, library.last_error().decode(errors="replace"))


def text_of(call: Any, *arguments: Any) -> str:
    """The text that a function gives as ``char**``."""
    text = c_void_p()
    check(call(*arguments, byref(text)))
    try:
        return ctypes.string_at(text).decode()  # type: ignore[arg-type]
    finally:
        library.text_release(text)

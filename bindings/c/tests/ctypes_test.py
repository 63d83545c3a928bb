#!/usr/bin/env python3
"""Calls the C library from Python's standard library alone: the interface as a foreign caller sees it.

ctypes_test.py LIBRARY SOURCE-FOLDER
"""
import ctypes
import json
import pathlib
import re
import sys
import unittest


class Tensor(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("type", ctypes.c_int32), ("rank", ctypes.c_int32),
                ("dims", ctypes.POINTER(ctypes.c_int64)), ("data", ctypes.c_void_p), ("bytes", ctypes.c_size_t)]


LIBRARY, SOURCE = sys.argv[1], pathlib.Path(sys.argv[2])
d = ctypes.CDLL(LIBRARY)
for name in ("version", "last_error"):
    getattr(d, "dnnopt_" + name).restype = ctypes.c_char_p
d.dnnopt_session_name.restype = d.dnnopt_session_dim_name.restype = ctypes.c_char_p
d.dnnopt_session_count.restype = d.dnnopt_outputs_count.restype = ctypes.c_size_t
d.dnnopt_session_dim.restype = ctypes.c_int64
for name in ("session_name", "session_type", "session_rank"):
    getattr(d, "dnnopt_" + name).argtypes = [ctypes.c_void_p, ctypes.c_int32, ctypes.c_size_t]
for name in ("session_dim", "session_dim_name"):
    getattr(d, "dnnopt_" + name).argtypes = [ctypes.c_void_p, ctypes.c_int32, ctypes.c_size_t, ctypes.c_size_t]
d.dnnopt_session_count.argtypes = [ctypes.c_void_p, ctypes.c_int32]
d.dnnopt_outputs_count.argtypes = [ctypes.c_void_p]
LOG = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p)


def text_of(call, *arguments):
    text = ctypes.c_void_p()
    status = call(*arguments, ctypes.byref(text))
    if status != 0:
        raise RuntimeError(d.dnnopt_last_error().decode())
    try:
        return json.loads(ctypes.string_at(text))
    finally:
        d.dnnopt_text_release(text)


class CInterface(unittest.TestCase):
    def session(self, path, device):
        options, model, session = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
        self.assertEqual(d.dnnopt_options_create(ctypes.byref(options)), 0)
        self.assertEqual(d.dnnopt_options_set(options, b"device", device), 0)
        self.assertEqual(d.dnnopt_options_set(options, b"program_folder", b""), 0)
        self.assertEqual(d.dnnopt_model_load(str(path).encode(), options, ctypes.byref(model)), 0,
                         d.dnnopt_last_error())
        self.assertEqual(d.dnnopt_session_create(model, options, ctypes.byref(session)), 0, d.dnnopt_last_error())
        d.dnnopt_model_release(model)
        d.dnnopt_options_release(options)
        return session

    def test_version_is_of_the_header(self):
        header = (SOURCE / "include/dnnopt/version.hpp").read_text()
        numbers = re.findall(r"#define DNNOPT_VERSION_(?:MAJOR|MINOR|PATCH) (\d+)", header)
        self.assertEqual(d.dnnopt_version().decode(), ".".join(numbers))

    def test_a_network_runs(self):
        session = self.session(SOURCE / "bench/light/light_squeezenet.onnx", b"reference")
        self.assertEqual(d.dnnopt_session_name(session, 0, 0), b"data_0")
        dims = (ctypes.c_int64 * 4)(*(d.dnnopt_session_dim(session, 0, 0, k) for k in range(4)))
        self.assertEqual(list(dims), [1, 3, 224, 224])
        data = (ctypes.c_float * (3 * 224 * 224))(*([0.5] * (3 * 224 * 224)))
        given = Tensor(b"data_0", 1, 4, dims, ctypes.cast(data, ctypes.c_void_p), ctypes.sizeof(data))
        outputs, got = ctypes.c_void_p(), Tensor()
        self.assertEqual(d.dnnopt_session_run(session, ctypes.byref(given), ctypes.c_size_t(1), None,
                                              ctypes.c_size_t(0), ctypes.byref(outputs)), 0, d.dnnopt_last_error())
        d.dnnopt_session_release(session)  # outputs outlive it
        self.assertEqual(d.dnnopt_outputs_count(outputs), 1)
        self.assertEqual(d.dnnopt_outputs_get(outputs, ctypes.c_size_t(0), ctypes.byref(got)), 0)
        self.assertEqual([got.dims[k] for k in range(got.rank)], [1, 1000, 1, 1])
        values = (ctypes.c_float * 1000).from_address(got.data)
        self.assertAlmostEqual(sum(values), 1.0, places=4)
        d.dnnopt_outputs_release(outputs)

    def test_errors_have_codes_and_texts(self):
        model = ctypes.c_void_p()
        self.assertEqual(d.dnnopt_model_load(b"nowhere.onnx", None, ctypes.byref(model)), 201)
        self.assertIn(b"[dnnopt.201]", d.dnnopt_last_error())
        self.assertIsNone(model.value)

    def test_warnings_reach_the_callback(self):
        told = []
        log = LOG(lambda user, code, text: told.append((code, text)))
        options, model = ctypes.c_void_p(), ctypes.c_void_p()
        d.dnnopt_options_create(ctypes.byref(options))
        d.dnnopt_options_set_log(options, log, None)
        # x, declared with a dim of -1 -> Relu -> y
        dims = bytes.fromhex("0a0b08ffffffffffffffffff01")
        shape = bytes([0x12, len(dims)]) + dims
        kind = bytes([0x0a, 2 + len(shape), 0x08, 0x01]) + shape
        info = b"\x0a\x01x" + bytes([0x12, len(kind)]) + kind
        node = b"\x0a\x01x\x12\x01y\x22\x04Relu"
        graph = bytes([0x0a, len(node)]) + node + b"\x12\x02go" + bytes([0x5a, len(info)]) + info
        graph += b"\x62\x05\x0a\x01y\x12\x00"
        content = b"\x08\x08" + bytes([0x3a, len(graph)]) + graph + b"\x42\x04\x0a\x00\x10\x0d"
        status = d.dnnopt_model_load_bytes(content, ctypes.c_size_t(len(content)), None, options, ctypes.byref(model))
        self.assertEqual(status, 0, d.dnnopt_last_error())
        self.assertEqual([code for code, _ in told], [b"negative_dim"])
        d.dnnopt_model_release(model)
        d.dnnopt_options_release(options)

    def test_devices_and_reports_are_json(self):
        found = text_of(d.dnnopt_devices)
        self.assertTrue(found["devices"] or found["why_none"])
        session = self.session(SOURCE / "bindings/c/tests/small.onnx", b"reference")
        report = text_of(d.dnnopt_session_report, session)
        self.assertEqual(report["device"], "reference")
        self.assertEqual({row["where"] for row in report["placements"]}, {"host"})
        d.dnnopt_session_release(session)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)

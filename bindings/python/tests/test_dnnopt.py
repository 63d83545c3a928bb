"""The package against models of the repository, on the host and on an OpenCL device.

DNNOPT_LIBRARY=libdnnopt.so PYTHONPATH=bindings/python python3 bindings/python/tests/test_dnnopt.py
"""
import gc
import logging
import os
import pathlib
import sys
import tempfile
import threading
import unittest
import warnings

import numpy as np

import dnnopt

SOURCE = pathlib.Path(__file__).resolve().parents[3]
SMALL = SOURCE / "bindings/c/tests/small.onnx"  # y = x + [1, 2], z = x, t = s
SQUEEZENET = SOURCE / "bench/light/light_squeezenet.onnx"
HOST = {"device": "reference"}
X = np.array([[1, 2], [3, 4]], np.float32)
WORDS = np.array(["one", "", "drei äöü"])


class Options(unittest.TestCase):
    def test_unknown_field(self):
        with self.assertRaises(TypeError):
            dnnopt.InferenceSession(SMALL, {"devise": "reference"})

    def test_wrong_value(self):
        with self.assertRaisesRegex(dnnopt.Error, "fp7") as caught:
            dnnopt.InferenceSession(SMALL, {"precision": "fp7"})
        self.assertEqual(caught.exception.code, 101)

    def test_unknown_device(self):
        with self.assertRaises(dnnopt.Error) as caught:
            dnnopt.InferenceSession(SMALL, {"device": "opencl:no such device"})
        self.assertIn(caught.exception.code, (401, 402))

    def test_dims_bind_symbols(self):
        session = dnnopt.InferenceSession(SMALL, dnnopt.SessionOptions(device="reference", dims={"batch": 2}))
        self.assertEqual(session.get_inputs()[0].shape, [2, 2])

    def test_shapes_bind_symbols(self):
        session = dnnopt.InferenceSession(SMALL, {"device": "reference", "shapes": {"x": (3, 2)}})
        self.assertEqual(session.get_outputs()[0].shape, [3, 2])

    def test_known_values_are_no_inputs(self):
        session = dnnopt.InferenceSession(SMALL, {"device": "reference", "values": {"x": [[5, 6]]}})
        self.assertEqual([one.name for one in session.get_inputs()], ["s"])
        np.testing.assert_array_equal(session.run(["y"], {"s": WORDS})[0], [[6, 8]])
        with self.assertRaises(dnnopt.Error) as caught:
            dnnopt.InferenceSession(SMALL, {"device": "reference", "values": {"q": 1}})
        self.assertEqual(caught.exception.code, 408)

    def test_halves_are_exchanged(self):
        for options in (HOST, {}):
            session = dnnopt.InferenceSession(SMALL, {**options, "io_types": "float16"})
            self.assertEqual([one.type for one in session.get_inputs()], ["tensor(float16)", "tensor(string)"])
            got = session.run(["y"], {"x": X.astype(np.float16), "s": WORDS})[0]
            self.assertEqual(got.dtype, np.float16)
            np.testing.assert_array_equal(got, X + [1, 2])
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "halves.onnx"
            dnnopt.optimize(SMALL, path, {"io_types": "float16"})
            self.assertEqual(dnnopt.InferenceSession(path, HOST).get_inputs()[0].type, "tensor(float16)")
        with self.assertRaisesRegex(dnnopt.Error, "float8"):
            dnnopt.InferenceSession(SMALL, {"io_types": "float8"})

    def test_a_strategy_of_memory(self):
        session = dnnopt.InferenceSession(SMALL, {"memory_strategy": "objects_greedy_by_size"})
        np.testing.assert_array_equal(session.run(["y"], {"x": X, "s": WORDS})[0], X + [1, 2])
        with self.assertRaisesRegex(dnnopt.Error, "best_guess"):
            dnnopt.InferenceSession(SMALL, {"memory_strategy": "best_guess"})

    def test_ranges_are_held(self):
        session = dnnopt.InferenceSession(SMALL, {"device": "reference", "ranges": {"batch": (1, 4)}})
        session.run(None, {"x": X, "s": WORDS})
        with self.assertRaises(dnnopt.Error):
            session.run(None, {"x": np.zeros((5, 2), np.float32), "s": WORDS})

    def test_options_by_the_name_that_onnx_runtime_has(self):
        session = dnnopt.InferenceSession(SMALL, sess_options=dnnopt.SessionOptions(device="reference"))
        self.assertEqual(session.report()["device"], "reference")

    def test_providers_are_said_to_be_unused(self):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            dnnopt.InferenceSession(SMALL, HOST, providers=["CPUExecutionProvider"])
        self.assertEqual(len(caught), 1)
        self.assertIn("device", str(caught[0].message))


class Binding(unittest.TestCase):
    """Values in place of inputs and outputs, as in ONNX Runtime's documentation."""

    def setUp(self):
        self.session = dnnopt.InferenceSession(SMALL)

    def test_outputs_come_to_the_host(self):
        binding = self.session.io_binding()
        binding.bind_cpu_input("x", X)
        binding.bind_cpu_input("s", WORDS)
        binding.bind_output("y")
        self.session.run_with_iobinding(binding)
        np.testing.assert_array_equal(binding.copy_outputs_to_cpu()[0], X + [1, 2])
        value = binding.get_outputs()[0]
        self.assertEqual((value.shape(), value.data_type(), value.device_name()), ([2, 2], "tensor(float)", "cpu"))

    def test_a_state_stays_on_the_device(self):
        before = dnnopt.OrtValue.ortvalue_from_numpy(X, "opencl", 0)
        after = dnnopt.OrtValue.ortvalue_from_shape_and_type([2, 2], np.float32, "opencl", 0)
        binding = self.session.io_binding()
        binding.bind_cpu_input("s", WORDS)
        for _ in range(3):
            binding.bind_ortvalue_input("x", before)
            binding.bind_ortvalue_output("y", after)
            self.session.run_with_iobinding(binding)
            before, after = after, before
        np.testing.assert_array_equal(before.numpy(), X + [3, 6])
        self.assertEqual(before.device_name(), "opencl")
        # A plain run has its own memory again.
        np.testing.assert_array_equal(self.session.run(["y"], {"x": X, "s": WORDS})[0], X + [1, 2])
        np.testing.assert_array_equal(before.numpy(), X + [3, 6])

    def test_an_output_beside_one_on_the_device(self):
        binding = self.session.io_binding()
        binding.bind_cpu_input("x", X)
        binding.bind_cpu_input("s", WORDS)
        binding.bind_output("z")
        binding.bind_output("y", "opencl", 0, np.float32, [2, 2])
        self.session.run_with_iobinding(binding)
        self.assertEqual([value.device_name() for value in binding.get_outputs()], ["cpu", "opencl"])
        np.testing.assert_array_equal(binding.copy_outputs_to_cpu(), [X, X + [1, 2]])

    def test_an_output_whose_dims_a_run_tells_comes_to_the_host(self):
        binding = self.session.io_binding()
        binding.bind_cpu_input("x", X)
        binding.bind_cpu_input("s", WORDS)
        binding.bind_output("y", "opencl")
        self.session.run_with_iobinding(binding)
        self.assertEqual(binding.get_outputs()[0].device_name(), "cpu")

    def test_memory_by_its_address(self):
        image, scores = X.copy(), np.zeros((2, 2), np.float32)
        binding = self.session.io_binding()
        binding.bind_cpu_input("s", WORDS)
        binding.bind_input("x", "cpu", 0, np.float32, image.shape, image.ctypes.data)
        binding.bind_output("y", "cpu", 0, np.float32, scores.shape, scores.ctypes.data)
        self.session.run_with_iobinding(binding)
        np.testing.assert_array_equal(scores, X + [1, 2])
        image[:] = 0
        self.session.run_with_iobinding(binding)
        np.testing.assert_array_equal(scores, [[1, 2], [1, 2]])
        with self.assertRaises(dnnopt.Error):
            binding.bind_input("x", "cuda", 0, np.float32, image.shape, image.ctypes.data)

    def test_values_without_a_binding(self):
        values = {"x": dnnopt.OrtValue.ortvalue_from_numpy(X), "s": dnnopt.OrtValue.ortvalue_from_numpy(WORDS)}
        got = self.session.run_with_ort_values(["y", "z"], values)
        np.testing.assert_array_equal(got[0].numpy(), X + [1, 2])
        np.testing.assert_array_equal(np.asarray(got[1]), X)

    def test_update_in_place(self):
        for place in ("cpu", "opencl"):
            value = dnnopt.OrtValue.ortvalue_from_numpy(X.copy(), place)
            binding = self.session.io_binding()
            binding.bind_ortvalue_input("x", value)
            binding.bind_cpu_input("s", WORDS)
            binding.bind_output("z")
            for factor in (1, 3):
                value.update_inplace(factor * X)
                self.session.run_with_iobinding(binding)
                np.testing.assert_array_equal(binding.copy_outputs_to_cpu()[0], factor * X)
            with self.assertRaises(dnnopt.Error):
                value.update_inplace(np.zeros((3, 2), np.float32))

    def test_clones_share_values(self):
        value = dnnopt.OrtValue.ortvalue_from_numpy(X, "opencl")
        for session in (self.session, self.session.clone()):
            binding = session.io_binding()
            binding.bind_ortvalue_input("x", value)
            binding.bind_cpu_input("s", WORDS)
            binding.bind_output("y")
            session.run_with_iobinding(binding)
            np.testing.assert_array_equal(binding.copy_outputs_to_cpu()[0], X + [1, 2])

    def test_what_is_wrong_is_refused(self):
        binding = self.session.io_binding()
        binding.bind_cpu_input("s", WORDS)
        binding.bind_ortvalue_input("q", dnnopt.OrtValue.ortvalue_from_numpy(X, "opencl"))
        with self.assertRaises(dnnopt.Error) as caught:
            self.session.run_with_iobinding(binding)
        self.assertEqual(caught.exception.code, 408)
        binding.clear_binding_inputs()
        binding.bind_cpu_input("s", WORDS)
        binding.bind_ortvalue_input("x", dnnopt.OrtValue.ortvalue_from_numpy(X, "opencl"))
        binding.bind_output("y", "opencl", 0, np.float32, [1, 2])  # too small for two rows
        with self.assertRaises(dnnopt.Error) as caught:
            self.session.run_with_iobinding(binding)
        self.assertEqual(caught.exception.code, 101)
        with self.assertRaises(dnnopt.Error):
            dnnopt.OrtValue.ortvalue_from_shape_and_type([2], np.float32, "opencl").numpy()

    def test_the_host_has_no_memory_of_a_device(self):
        session = dnnopt.InferenceSession(SMALL, HOST)
        binding = session.io_binding()
        binding.bind_cpu_input("x", X)
        binding.bind_cpu_input("s", WORDS)
        binding.bind_output("y")
        session.run_with_iobinding(binding)
        np.testing.assert_array_equal(binding.copy_outputs_to_cpu()[0], X + [1, 2])
        binding.bind_ortvalue_input("x", dnnopt.OrtValue.ortvalue_from_numpy(X, "opencl"))
        with self.assertRaises(dnnopt.Error) as caught:
            session.run_with_iobinding(binding)
        self.assertEqual(caught.exception.code, 407)

    def test_dlpack_in_and_out(self):
        class Lender:  # knows DLPack and nothing of NumPy
            def __init__(self, array):
                self.array = array

            def __dlpack__(self, **how):
                return self.array.__dlpack__(**how)

            def __dlpack_device__(self):
                return self.array.__dlpack_device__()

        given = X.copy()
        taken = dnnopt.OrtValue.ortvalue_from_numpy(Lender(given))
        self.assertTrue(np.shares_memory(taken.numpy(), given))
        got = self.session.run(["y"], {"x": Lender(given), "s": WORDS})[0]
        np.testing.assert_array_equal(got, X + [1, 2])
        self.assertTrue(np.shares_memory(np.from_dlpack(got), got))
        lent = dnnopt.OrtValue.ortvalue_from_numpy(given)
        self.assertTrue(np.shares_memory(np.from_dlpack(lent), given))


class Loading(unittest.TestCase):
    def test_from_bytes(self):
        session = dnnopt.InferenceSession(SMALL.read_bytes(), HOST)
        self.assertEqual([one.name for one in session.get_inputs()], ["x", "s"])

    def test_from_memoryview_and_str(self):
        dnnopt.InferenceSession(memoryview(bytearray(SMALL.read_bytes())), HOST)
        dnnopt.InferenceSession(str(SMALL), HOST)

    def test_missing_file(self):
        with self.assertRaisesRegex(dnnopt.Error, "nowhere.onnx") as caught:
            dnnopt.InferenceSession("nowhere.onnx", HOST)
        self.assertEqual(caught.exception.code, 201)

    def test_no_model(self):
        with self.assertRaises(dnnopt.Error) as caught:
            dnnopt.InferenceSession(b"\xff\xff", HOST)
        self.assertEqual(caught.exception.code, 203)

    def test_warnings_are_logged(self):
        # x, declared with a dim of -1 -> Relu -> y
        def held(number, content):
            return bytes([number << 3 | 2, len(content)]) + content
        dims = held(1, b"\x08" + b"\xff" * 9 + b"\x01")
        info = held(1, b"x") + held(2, held(1, b"\x08\x01" + held(2, dims)))
        graph = held(1, held(1, b"x") + held(2, b"y") + held(4, b"Relu")) + held(2, b"g") + held(11, info)
        graph += held(12, held(1, b"y"))
        with self.assertLogs("dnnopt", logging.WARNING) as caught:
            dnnopt.InferenceSession(b"\x08\x08" + held(7, graph) + held(8, b"\x0a\x00\x10\x0d"), HOST)
        self.assertIn("negative_dim", caught.output[0])


class Ports(unittest.TestCase):
    def setUp(self):
        self.session = dnnopt.InferenceSession(SMALL, HOST)

    def test_inputs(self):
        x, s = self.session.get_inputs()
        self.assertEqual((x.name, x.shape, x.type), ("x", ["batch", 2], "tensor(float)"))
        self.assertEqual((s.name, s.shape, s.type), ("s", ["n"], "tensor(string)"))

    def test_outputs(self):
        self.assertEqual([one.name for one in self.session.get_outputs()], ["y", "z", "t"])

    def test_text(self):
        self.assertEqual(repr(self.session.get_inputs()[0]),
                         "NodeArg(name='x', type='tensor(float)', shape=['batch', 2])")

    def test_lists_are_the_callers(self):
        self.session.get_inputs().clear()
        self.assertEqual(len(self.session.get_inputs()), 2)


class Running(unittest.TestCase):
    options = HOST

    def setUp(self):
        self.session = dnnopt.InferenceSession(SMALL, self.options)

    def run_all(self, x=X, s=WORDS):
        return self.session.run(None, {"x": x, "s": s})

    def test_all_outputs(self):
        y, z, t = self.run_all()
        np.testing.assert_array_equal(y, [[2, 4], [4, 6]])
        np.testing.assert_array_equal(z, X)
        self.assertEqual(t.tolist(), WORDS.tolist())
        self.assertEqual((y.dtype, t.dtype), (np.float32, np.object_))

    def test_some_outputs_in_order(self):
        t, y = self.session.run(["t", "y"], {"x": X, "s": WORDS})
        self.assertEqual(t[2], "drei äöü")
        self.assertEqual(y[1, 1], 6)
        self.assertEqual(len(self.session.run([], {"x": X, "s": WORDS})), 3)

    def test_unknown_output(self):
        with self.assertRaisesRegex(dnnopt.Error, "nothing"):
            self.session.run(["nothing"], {"x": X, "s": WORDS})

    def test_missing_input(self):
        with self.assertRaisesRegex(dnnopt.Error, "'s'") as caught:
            self.session.run(None, {"x": X})
        self.assertEqual(caught.exception.code, 408)

    def test_unknown_input(self):
        with self.assertRaisesRegex(dnnopt.Error, "'q'"):
            self.session.run(None, {"x": X, "s": WORDS, "q": X})

    def test_wrong_type(self):
        with self.assertRaises(dnnopt.Error) as caught:
            self.run_all(X.astype(np.float64))
        self.assertEqual(caught.exception.code, 103)

    def test_wrong_shape(self):
        with self.assertRaises(dnnopt.Error) as caught:
            self.run_all(np.zeros((2, 3), np.float32))
        self.assertEqual(caught.exception.code, 104)

    def test_type_without_number(self):
        with self.assertRaisesRegex(dnnopt.Error, "datetime64"):
            self.run_all(np.zeros((2, 2), "datetime64[s]"))

    def test_shapes_change(self):
        for batch in (1, 3, 2):
            y = self.run_all(np.full((batch, 2), batch, np.float32))[0]
            np.testing.assert_array_equal(y, [[batch + 1, batch + 2]] * batch)

    def test_not_contiguous(self):
        y = self.run_all(np.asfortranarray(X))[0]
        np.testing.assert_array_equal(y, [[2, 4], [4, 6]])
        y = self.run_all(np.repeat(X, 2, axis=1)[:, ::2])[0]
        np.testing.assert_array_equal(y, [[2, 4], [4, 6]])

    def test_empty(self):
        y, _, t = self.run_all(np.zeros((0, 2), np.float32), np.array([], dtype=np.str_))
        self.assertEqual((y.shape, t.shape), ((0, 2), (0,)))

    def test_outputs_have_memory_of_their_own(self):
        x = X.copy()
        _, z, _ = self.run_all(x)
        x[:] = -1
        np.testing.assert_array_equal(z, X)
        first = self.run_all()[0]
        self.run_all(X * 100)
        np.testing.assert_array_equal(first, [[2, 4], [4, 6]])

    def test_outputs_outlive_the_session(self):
        y = self.run_all()[0]
        del self.session
        gc.collect()
        np.testing.assert_array_equal(y, [[2, 4], [4, 6]])

    def test_outputs_are_not_copied(self):
        y = self.run_all()[0]
        self.assertFalse(y.flags.owndata)

    def test_threads_take_turns(self):
        wrong = []

        def work(number):
            for _ in range(20):
                y = self.run_all(np.full((number, 2), number, np.float32))[0]
                if y.shape != (number, 2) or (y[:, 0] != number + 1).any():
                    wrong.append(number)
        threads = [threading.Thread(target=work, args=(number,)) for number in (1, 2, 3, 4)]
        for one in threads:
            one.start()
        for one in threads:
            one.join()
        self.assertEqual(wrong, [])

    def test_clones(self):
        clone = self.session.clone()
        self.assertEqual([one.name for one in clone.get_inputs()], ["x", "s"])
        got = {}
        feed = {"x": X, "s": WORDS}

        def work(name, session):
            got[name] = [session.run(["y"], feed)[0] for _ in range(20)]

        threads = [threading.Thread(target=work, args=row) for row in (("one", self.session), ("other", clone))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for rows in got.values():
            for row in rows:
                np.testing.assert_array_equal(row, X + [1, 2])
        origin = dnnopt.InferenceSession(SMALL, self.options)
        left = origin.clone().clone()
        del origin
        gc.collect()
        np.testing.assert_array_equal(left.run(["y"], feed)[0], X + [1, 2])

    def test_begun_in_order(self):
        ended = []
        done = threading.Event()

        def hear(outputs, number, failure):
            ended.append((number, failure, [one.copy() for one in outputs]))
            if number == 9:
                done.set()
            if number == 5:
                raise ValueError("which is logged")

        with self.assertLogs("dnnopt", logging.ERROR):
            for number in range(10):
                feed = {"x": X + number, "s": WORDS} if number != 3 else {"x": X}
                self.session.run_async(["y"], feed, hear, number)
            self.assertTrue(done.wait(60))
        self.assertEqual([number for number, _, _ in ended], list(range(10)))
        for number, failure, outputs in ended:
            if number == 3:
                self.assertEqual(outputs, [])
                self.assertIn("'s'", failure)
                continue
            self.assertEqual(failure, "")
            np.testing.assert_array_equal(outputs[0], X + number + [1, 2])

    def test_report(self):
        self.run_all()
        report = self.session.report()
        self.assertEqual({row["op"] for row in report["placements"]} & {"Add"}, {"Add"})


@unittest.skipUnless(dnnopt.devices(), "no OpenCL device")
class RunningOnADevice(Running):
    options = {"device": "opencl", "program_folder": ""}

    def test_profile(self):
        told = self.session.profile({"x": X, "s": WORDS}, runs=2)
        self.assertEqual(told["runs"], 2)
        self.assertTrue(told["kernel_events"])

    def test_devices(self):
        self.assertIn(self.session.report()["device"], [one["name"] for one in dnnopt.devices()])


class Others(unittest.TestCase):
    def test_profile_on_the_host(self):
        session = dnnopt.InferenceSession(SMALL, HOST)
        with self.assertRaises(dnnopt.Error) as caught:
            session.profile({"x": X, "s": WORDS})
        self.assertEqual(caught.exception.code, 407)

    def test_a_network(self):
        session = dnnopt.InferenceSession(SQUEEZENET, HOST)
        feed = {session.get_inputs()[0].name: np.full((1, 3, 224, 224), 0.5, np.float32)}
        probabilities, = session.run(None, feed)
        self.assertEqual(probabilities.shape, (1, 1000, 1, 1))
        self.assertAlmostEqual(float(probabilities.sum()), 1, places=4)

    def test_optimize(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "optimized.onnx")
            dnnopt.optimize(SMALL.read_bytes(), path, {"dims": {"batch": 2}})
            session = dnnopt.InferenceSession(path, HOST)
            self.assertEqual(session.get_inputs()[0].shape, [2, 2])
            np.testing.assert_array_equal(session.run(["y"], {"x": X, "s": WORDS})[0], [[2, 4], [4, 6]])

    def test_version(self):
        self.assertRegex(dnnopt.__version__, r"^\d+\.\d+\.\d+$")

    def test_memory_is_given_back(self):
        import resource
        session = dnnopt.InferenceSession(SMALL, HOST)
        feed = {"x": np.zeros((1 << 18, 2), np.float32), "s": WORDS}
        session.run(None, feed)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        for _ in range(100):
            session.run(None, feed)
        # A hundred times four megabytes would be four hundred.
        self.assertLess(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before, 100 * 1024)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[1:], verbosity=1)

#!/usr/bin/env python3
"""Errors of fp32 matrix products on one GPU against float64: dnnopt beside cuBLAS's SGEMM.

product_errors.py EXE DEVICE [MxNxK ...] [--matrix-steps NAME ...]

Operands are normal random numbers. Each row: the largest error over all elements, over the largest magnitude of the
product, of SGEMM (PyTorch, tf32 off) and of dnnopt with each kind of matrix steps (`dnnopt run --matrix-steps`), and
ours over SGEMM's. The judge is the product in float64, on the GPU. Needs PyPI's numpy, onnx and torch.
"""
import argparse
import pathlib
import subprocess
import tempfile

import numpy as np
import onnx
import torch
from onnx import TensorProto, helper

PRODUCTS = ["1024x1024x1024", "2048x2048x2048", "4096x4096x4096", "197x768x768", "197x768x3072", "49x768x3072"]


def model_of(m, n, k):
    """One MatMul of two inputs."""
    def tensor(name, *dims):
        return helper.make_tensor_value_info(name, TensorProto.FLOAT, dims)

    node = helper.make_node("MatMul", ["a", "b"], ["c"])
    graph = helper.make_graph([node], "product", [tensor("a", m, k), tensor("b", k, n)], [tensor("c", m, n)])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("exe")
    parser.add_argument("device")
    parser.add_argument("products", nargs="*")
    parser.add_argument("--matrix-steps", nargs="*", default=["automatic", "none"])
    arguments = parser.parse_args()
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.set_float32_matmul_precision("highest")
    print(f"{'m x n x k':18}{'SGEMM':>12}" + "".join(f"{name:>16}{'':8}" for name in arguments.matrix_steps), flush=True)
    for text in arguments.products or PRODUCTS:
        m, n, k = map(int, text.split("x"))
        random = np.random.default_rng(m + n + k)
        a, b = (random.standard_normal(dims, dtype=np.float32) for dims in ((m, k), (k, n)))
        on_gpu = [torch.from_numpy(one).cuda() for one in (a, b)]
        right = (on_gpu[0].double() @ on_gpu[1].double()).cpu().numpy()
        scale = np.abs(right).max()

        def error(got):
            return np.abs(got - right).max() / scale

        peer = error((on_gpu[0] @ on_gpu[1]).cpu().numpy())
        row = f"{text:18}{peer:12.2e}"
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            onnx.save(model_of(m, n, k), str(folder / "product.onnx"))
            np.save(folder / "a.npy", a)
            np.save(folder / "b.npy", b)
            for steps in arguments.matrix_steps:
                command = [arguments.exe, "run", folder / "product.onnx", "--device", arguments.device, "--require-device",
                           "--matrix-steps", steps, "--input", f"a={folder}/a.npy", "--input", f"b={folder}/b.npy",
                           "--output-dir", folder, "--first-start", "optimized"]
                subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
                own = error(np.load(folder / "c.npy"))
                row += f"{own:16.2e} x{own / peer:5.2f} "
        print(row, flush=True)


if __name__ == "__main__":
    main()

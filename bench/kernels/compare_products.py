#!/usr/bin/env python3
"""fp32 matrix products of one GPU in one call: dnnopt, cuBLAS (through PyTorch, in a CUDA graph, tf32 off), CLBlast.

compare_products.py FOLDER DEVICE [MxNxK ...] [--repeats N]

FOLDER holds time_kernels and time_clblast (built with DNNOPT_BUILD_BENCH). Each figure is the least time of one product
of N enqueued back to back. dnnopt has two columns: both operands computed at run time, and B a constant, which is packed
once, as weights are. A peer that is missing has a column that says so. Ends with the geometric means.
"""
import argparse
import math
import os
import re
import subprocess
import time

PRODUCTS = ["1024x1024x1024", "2048x2048x2048", "4096x4096x4096", "197x768x768", "197x3072x768", "128x768x768",
            "3136x288x96", "49x768x3072"]


def least(command, pattern):
    """The least times in us by product; the text of what failed for all of them."""
    done = subprocess.run(command, capture_output=True, text=True)
    found = [float(f) for f in re.findall(pattern, done.stdout)]
    return found if done.returncode == 0 else (done.stderr.strip().splitlines() or ["failed"])[-1]


def cublas(products, repeats):
    try:
        import torch
    except ImportError:
        return "PyTorch is not installed"
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.set_float32_matmul_precision("highest")
    times = []
    for m, n, k in products:
        a, b = torch.randn(m, k, device="cuda"), torch.randn(k, n, device="cuda")
        c = torch.empty(m, n, device="cuda")
        torch.matmul(a, b, out=c)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            for _ in range(repeats):
                torch.matmul(a, b, out=c)
        rounds = []
        for _ in range(12):
            torch.cuda.synchronize()
            began = time.perf_counter()
            graph.replay()
            torch.cuda.synchronize()
            rounds.append((time.perf_counter() - began) * 1e6 / repeats)
        times.append(min(rounds))
    return times


def geometric_mean(values):
    return math.exp(sum(map(math.log, values)) / len(values))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder")
    parser.add_argument("device")
    parser.add_argument("products", nargs="*")
    parser.add_argument("--repeats", type=int, default=100)
    arguments = parser.parse_args()
    names = arguments.products or PRODUCTS
    sizes = [tuple(map(int, name.split("x"))) for name in names]

    def own(op):
        cases = [f"{op}:{m}x{k}:{k}x{n}" for m, n, k in sizes]
        return least([os.path.join(arguments.folder, "time_kernels"), arguments.device, "auto", str(arguments.repeats)] + cases,
                     r" min +([0-9.]+) median")

    columns = {
        "dnnopt": own("MatMul*"),
        "dnnopt, B constant": own("MatMul"),
        "cuBLAS": cublas(sizes, arguments.repeats),
        "CLBlast": least([os.path.join(arguments.folder, "time_clblast"), arguments.device, str(arguments.repeats)] + names,
                         r" min ([0-9.]+) median"),
    }
    print(f"{'m x n x k':18}" + "".join(f"{name:>20}" for name in columns) + "   us; TFLOP/s of dnnopt; cuBLAS / dnnopt")
    for i, (m, n, k) in enumerate(sizes):
        cells = [f"{times[i]:20.2f}" if isinstance(times, list) else f"{'-':>20}" for times in columns.values()]
        ours = columns["dnnopt"]
        text = f"   {2e-6 * m * n * k / ours[i]:.1f}" if isinstance(ours, list) else ""
        if isinstance(ours, list) and isinstance(columns["cuBLAS"], list):
            text += f"  {columns['cuBLAS'][i] / ours[i]:.2f}"
        print(f"{names[i]:18}" + "".join(cells) + text)
    for name, times in columns.items():
        if not isinstance(times, list):
            print(f"{name}: {times}")
    for mine in ("dnnopt", "dnnopt, B constant"):
        for peer in ("cuBLAS", "CLBlast"):
            if isinstance(columns[mine], list) and isinstance(columns[peer], list):
                ratios = [p / o for p, o in zip(columns[peer], columns[mine])]
                print(f"{peer} / {mine}: geometric mean {geometric_mean(ratios):.2f}, least {min(ratios):.2f}")


if __name__ == "__main__":
    main()

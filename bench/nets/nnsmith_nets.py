"""Writes models that NNSmith generates, with ONNX Runtime's outputs, as folders for `dnnopt conformance`.

usage: nnsmith_nets.py FOLDER [--first SEED] [--count N]

NNSmith (Liu et al., ASPLOS 2023) solves the constraints of operators' shapes and types with Z3, so that its graphs hold other
combinations than those of random_nets, which grow operator by operator. Needs NNSmith 0.1.0, onnx, onnxruntime and torch with
the exporter of scripts (`dynamo=False`). A graph is left out, with a line that says why, where the exporter or ONNX Runtime has
no form of an operator, or where an output is not finite.

A graph with another input than those of TYPES is left out too (KeyError): in halves the order of a sum decides how it rounds.
Where a graph takes the sine of large numbers, rounds what lies between two integers or divides by a small difference, a last
bit shows as well: read what differs.
"""
import argparse
import pathlib
import random
import shutil
import warnings

import numpy as np
import onnx
import onnxruntime
import torch
from nnsmith.graph_gen import model_gen
from nnsmith.materialize import Model

TYPES = {"tensor(float)": np.float32, "tensor(double)": np.float64, "tensor(int64)": np.int64, "tensor(int32)": np.int32,
         "tensor(bool)": np.bool_}


def exporter_of_scripts():
    """NNSmith 0.1.0 knows the exporter that traces scripts; newer releases of torch take another one unless asked."""
    export = torch.onnx.export

    def with_opset(*arguments, **named):
        return export(*arguments, **named | {"dynamo": False, "opset_version": 17})

    torch.onnx.export = with_opset


def contents(kind, dims, draw):
    if np.issubdtype(kind, np.floating):
        return draw.uniform(-1.5, 1.5, dims).astype(kind)
    return draw.integers(0, 2 if kind == np.bool_ else 6, dims).astype(kind)


def write(model_type, seed, folder):
    """One model and its data set. Errors: whatever NNSmith, the exporter or ONNX Runtime raises; ValueError."""
    random.seed(seed)
    torch.manual_seed(seed)
    generated = model_gen(opset=list(model_type.operators()), method="symbolic-cinit", seed=seed, max_elem_per_tensor=2**14,
                          max_nodes=random.randint(4, 24), timeout_ms=8000,
                          dtype_choices=["float32", "float64", "int32", "int64", "bool"])
    model = model_type.from_gir(generated.make_concrete())
    data = folder / "test_data_set_0"
    data.mkdir(parents=True)
    onnx.save(model.native_model, folder / "model.onnx")
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(folder / "model.onnx", options, providers=["CPUExecutionProvider"])
    draw = np.random.default_rng(seed)
    feeds = {value.name: contents(TYPES[value.type], value.shape, draw) for value in session.get_inputs()}
    results = session.run(None, feeds)
    if not all(np.isfinite(result).all() for result in results):
        raise ValueError("an output is not finite")
    for kind, named in (("input", feeds.items()), ("output", zip((o.name for o in session.get_outputs()), results))):
        for i, (name, content) in enumerate(named):
            message = onnx.numpy_helper.from_array(np.asarray(content), name)
            (data / f"{kind}_{i}.pb").write_bytes(message.SerializeToString())


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--count", type=int, default=1000)
    arguments = parser.parse_args()
    warnings.filterwarnings("ignore")
    exporter_of_scripts()
    model_type = Model.init("onnx", backend_target="cpu")
    model_type.add_seed_setter()
    made = 0
    for seed in range(arguments.first, arguments.first + arguments.count):
        folder = arguments.folder / str(seed)
        shutil.rmtree(folder, ignore_errors=True)
        try:
            write(model_type, seed, folder)
            made += 1
        except Exception as error:  # whatever three other projects raise
            shutil.rmtree(folder, ignore_errors=True)
            print(f"{seed}: {type(error).__name__}: {str(error).splitlines()[0][:160] if str(error) else ''}", flush=True)
    print(f"{made} models of {arguments.count} seeds")


if __name__ == "__main__":
    main()

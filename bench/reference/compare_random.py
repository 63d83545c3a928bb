"""Random models of one operator each: ONNX Runtime, unoptimized, against `dnnopt conformance`.

    compare_random.py --tool build/release/bin/dnnopt --device reference --count 2000 --seed 1 [--only resize,cast]

Each case is drawn from numpy's generator seeded by (seed, number of the drawing function, number of the case) and is
written as a folder of ONNX's backend tests; folders that differ are kept and named. What ONNX Runtime does not
implement is judged by onnx.reference. For each difference the answer of onnx.reference is named as well, for where the
two disagree the specification's text decides (docs/reference/reference_backend.md lists such decisions).
"""
import argparse
import collections
import json
import os
import pathlib
import pickle
import shutil
import subprocess
import sys
import tempfile
import warnings

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

import draw_arithmetic
import draw_contrib
import draw_layers
import draw_ml
import draw_opsets
import draw_programs
import draw_resampling
import draw_sequences
import draw_structure
import draw_typed
from draw_core import DRAWS

# What ONNX Runtime refuses though the specification allows it.
JUDGED_BY_ONNX = ("OneHot",)
CASES_OF_A_PROCESS = 100
FAMILIES = (draw_arithmetic, draw_contrib, draw_layers, draw_ml, draw_opsets, draw_programs, draw_resampling, draw_sequences, draw_structure, draw_typed)


def model_of(case):
    names = ["" if x is None else f"x{k}" for k, x in enumerate(case.inputs)]
    while names and names[-1] == "":
        names.pop()
    outputs = [f"y{k}" for k in range(case.outputs)]
    if case.nodes:
        nodes = [n if isinstance(n, onnx.NodeProto) else helper.make_node(n[0], list(n[1]), list(n[2]), **n[3]) for n in case.nodes]
    else:
        nodes = [helper.make_node(case.op, names, outputs, name="node", **case.attributes)]
    graph = helper.make_graph(
        nodes, "case",
        [helper.make_tensor_value_info(f"x{k}", helper.np_dtype_to_tensor_dtype(x.dtype), [f"x{k}_{a}" for a in range(x.ndim)] if case.symbolic else x.shape)
         for k, x in enumerate(case.inputs) if x is not None and k not in case.constant],
        [helper.make_empty_tensor_value_info(n) for n in outputs],
        [numpy_helper.from_array(x, f"x{k}") for k, x in enumerate(case.inputs) if x is not None and k in case.constant])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", case.opset), helper.make_opsetid("com.microsoft", 1), helper.make_opsetid("ai.onnx.ml", case.ml)], ir_version=10 if case.opset < 23 else 11 if case.opset < 25 else 12 if case.opset < 26 else 13)


def feeds_of(case):
    return {f"x{k}": x for k, x in enumerate(case.inputs) if x is not None and k not in case.constant}


def by_runtime(case, model):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return session.run(None, feeds_of(case))


def by_onnx(case, model):
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return ReferenceEvaluator(model).run(None, feeds_of(case))


def write(case, model, results, folder):
    for value, y in zip(model.graph.output, results):
        value.type.tensor_type.elem_type = helper.np_dtype_to_tensor_dtype(y.dtype)
    data = folder / "test_data_set_0"
    data.mkdir(parents=True)
    onnx.save(model, folder / "model.onnx")
    for k, x in enumerate(feeds_of(case).values()):
        (data / f"input_{k}.pb").write_bytes(numpy_helper.from_array(np.asarray(x)).SerializeToString())
    for k, y in enumerate(results):
        (data / f"output_{k}.pb").write_bytes(numpy_helper.from_array(np.asarray(y)).SerializeToString())
    if case.part:
        largest = max((float(np.max(np.abs(np.asarray(y, np.float64)[np.isfinite(np.asarray(y, np.float64))]), initial=0)) for y in results if y.dtype != object), default=0)
        (folder / "data.json").write_text(json.dumps({"rtol": case.part, "atol": case.part * largest}))
    elif case.loose:
        (folder / "data.json").write_text(json.dumps({"rtol": case.loose, "atol": 1e-4}))


def same(a, b):
    return len(a) == len(b) and all(
        np.shape(x) == np.shape(y) and np.asarray(x).dtype == np.asarray(y).dtype and
        np.allclose(np.asarray(x, np.float64), np.asarray(y, np.float64), rtol=1e-3, atol=1e-6, equal_nan=True) for x, y in zip(a, b))


def drawn(seed, names, number):
    name = names[number % len(names)]
    r = np.random.default_rng([seed, list(DRAWS).index(name), number])
    with np.errstate(all="ignore"):
        case = DRAWS[name](r)
    case.inputs = [None if x is None else np.asarray(x) for x in case.inputs]
    return case


def as_inferred(model, results):
    """Whether outputs have the types that ONNX infers for them; its evaluator computes some in another."""
    if any(y.dtype == object and not all(isinstance(word, str) for word in y.reshape(-1)) for y in results):
        return False
    inferred = onnx.shape_inference.infer_shapes(model).graph.output
    return all(value.type.tensor_type.elem_type in (0, helper.np_dtype_to_tensor_dtype(y.dtype)) for value, y in zip(inferred, results))


def as_declared(model, results):
    """Outputs of an equal model in the types that ONNX infers for the model's own."""
    kinds = [value.type.tensor_type.elem_type for value in onnx.shape_inference.infer_shapes(model).graph.output]
    known = {v.type.tensor_type.elem_type for v in model.graph.input} & {TensorProto.FLOAT16, TensorProto.BFLOAT16, TensorProto.DOUBLE}
    own = known.pop() if len(known) == 1 else 0
    kinds = [k or (own if np.asarray(y).dtype == np.float32 else 0) for k, y in zip(kinds, results)]
    return [np.asarray(y).astype(helper.tensor_dtype_to_np_dtype(k)) if k else np.asarray(y) for k, y in zip(kinds, results)]


def judged(seed, names, number):
    """(number, judge, outputs), or (number, "", why no judge takes the case)."""
    case = drawn(seed, names, number)
    model = model_of(case)
    try:
        if case.part:
            return number, "ONNX Runtime in float32", as_declared(model, by_runtime(case.equal, model_of(case.equal)))
        return number, "ONNX Runtime", [np.asarray(y) for y in by_runtime(case, model)]
    except Exception as problem:  # noqa: BLE001: whatever ONNX Runtime refuses
        if "NOT_IMPLEMENTED" not in str(problem) and case.op not in JUDGED_BY_ONNX:
            return number, "", str(problem)[:160]
    if case.equal is not None:
        try:
            return number, "ONNX Runtime, of an equal model", as_declared(model, by_runtime(case.equal, model_of(case.equal)))
        except Exception as problem:  # noqa: BLE001
            return number, "", f"of an equal model: {str(problem)[:160]}"
    try:
        results = [np.asarray(y) for y in by_onnx(case, model)]
        return (number, "onnx.reference", results) if as_inferred(model, results) else (number, "", "onnx.reference: a type that is not the text's")
    except Exception as other:  # noqa: BLE001
        return number, "", f"onnx.reference: {str(other)[:160]}"


def judged_apart(seed, names, numbers):
    """The judged cases, from a process of their own, for ONNX Runtime aborts on some; None where it does."""
    with tempfile.TemporaryFile() as file:
        process = os.fork()
        if process == 0:
            try:
                pickle.dump([judged(seed, names, n) for n in numbers], file)
                file.flush()
            finally:
                os._exit(0)
        os.waitpid(process, 0)
        file.seek(0)
        try:
            return pickle.load(file)
        except (EOFError, pickle.UnpicklingError):
            return None


def describe(case):
    inputs = [None if x is None else f"{np.asarray(x).dtype}{list(np.shape(x))}" + (f"={np.asarray(x).tolist()}" if np.size(x) <= 6 else "") for x in case.inputs]
    return f"{case.op}-{case.opset} {case.attributes} {inputs} constant {case.constant}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tool", required=True)
    parser.add_argument("--device", default="reference", help="as of dnnopt, with further options after blanks")
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", help="names of drawing functions, separated by commas")
    parser.add_argument("--folder", default="build/compare_random")
    parser.add_argument("--shown", type=int, default=5, help="differences described per drawing function")
    arguments = parser.parse_args()
    folder = pathlib.Path(arguments.folder)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    names = [n for n in DRAWS if not arguments.only or n in arguments.only.split(",")]
    cases, refused, judges = {}, collections.Counter(), {}
    for at in range(0, arguments.count, CASES_OF_A_PROCESS):
        numbers = range(at, min(arguments.count, at + CASES_OF_A_PROCESS))
        answers = judged_apart(arguments.seed, names, numbers)
        if answers is None:  # one of them ends the judge's process
            answers = [a for n in numbers for a in judged_apart(arguments.seed, names, [n]) or [(n, "", "the judge's process ended")]]
        for number, judge, results in answers:
            case = drawn(arguments.seed, names, number)
            if not judge:
                refused[f"{case.op}: {results}"] += 1
                continue
            key = f"{names[number % len(names)]}_{number}"
            judges[key] = judge
            cases[key] = (case, model_of(case), results)
            write(case, cases[key][1], results, folder / key)
    command = [arguments.tool, "conformance", str(folder), "--device", *arguments.device.split()]
    output = subprocess.run(command, capture_output=True, text=True, check=False)
    shown, failed, unsupported = collections.Counter(), collections.Counter(), collections.Counter()
    for line in output.stdout.splitlines():
        state, _, rest = line.partition(" ")
        key, _, why = rest.partition(": ")
        if key not in cases:
            continue
        name = key.rsplit("_", 1)[0]
        if state == "unsupported":
            unsupported[name + ": " + why.partition("): ")[2][:100]] += 1
        if state != "FAILED":
            continue
        failed[name] += 1
        shown[name] += 1
        if shown[name] > arguments.shown:
            continue
        case, model, results = cases[key]
        print(f"{key} (seed {arguments.seed}), judged by {judges[key]}: {why[:300]}\n    {describe(case)[:700]}")
        if judges[key] == "ONNX Runtime":
            try:
                print("    onnx.reference", "agrees with" if same(results, by_onnx(case, model)) else "DIFFERS from", "ONNX Runtime")
            except Exception as problem:  # noqa: BLE001
                print("    onnx.reference refuses:", str(problem)[:100])
    for text, count in sorted(unsupported.items()):
        print("unsupported", count, text)
    for text, count in sorted(refused.items()):
        print("refused by the judge", count, text)
    print(f"seed {arguments.seed}: {len(cases)} cases judged, {sum(failed.values())} differ {dict(failed)}, exit {output.returncode}")
    if output.returncode < 0 or not output.stdout:
        print(output.stderr[-2000:])
    return 1 if failed or output.returncode < 0 else 0


if __name__ == "__main__":
    sys.exit(main())

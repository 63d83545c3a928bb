"""Writes the node tests of the installed `onnx` package as folders that `dnnopt conformance` runs.

usage: write_node_tests.py FOLDER

Each test becomes FOLDER/<name> with model.onnx, test_data_set_<i> and, where its tolerances differ, data.json.
"""
import json
import pathlib
import sys

import ml_dtypes
import numpy
from onnx import TensorProto, numpy_helper
from onnx.backend.test.case.node import collect_testcases


def encoded(value, info):
    kind = info.type.WhichOneof("value")
    if isinstance(value, TensorProto):
        return value
    if kind == "sequence_type":
        return numpy_helper.from_list(value, info.name)
    if kind == "optional_type":
        return numpy_helper.from_optional(value, info.name)
    if kind == "map_type":
        return numpy_helper.from_dict(value, info.name)
    return numpy_helper.from_array(value, info.name)


def main():
    target = pathlib.Path(sys.argv[1])
    written = 0
    for case in collect_testcases(None):
        folder = target / case.name
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "model.onnx").write_bytes(case.model.SerializeToString())
        if (case.rtol, case.atol) != (1e-3, 1e-7):
            (folder / "data.json").write_text(json.dumps({"rtol": case.rtol, "atol": case.atol}))
        for i, (inputs, outputs) in enumerate(case.data_sets):
            data = folder / f"test_data_set_{i}"
            data.mkdir(exist_ok=True)
            graph = case.model.graph
            for kind, values, infos in (("input", inputs, graph.input), ("output", outputs, graph.output)):
                for k, (value, info) in enumerate(zip(values, infos)):
                    (data / f"{kind}_{k}.pb").write_bytes(encoded(value, info).SerializeToString())
        written += 1
    print(f"{written} tests written to {target}")
    # The text leaves open what -9 becomes in four bits. ONNX Runtime keeps the low bits, which are those of 7.
    with numpy.errstate(invalid="ignore"):
        kept = int(numpy.array([-9], numpy.float32).astype(ml_dtypes.int4)[0])
    if kept != 7:
        print(f"ml_dtypes {ml_dtypes.__version__} casts -9 to {kept} in four bits, where ONNX Runtime has 7 as ml_dtypes "
              "0.6.0 did: 24 tests of Cast and CastLike to 4 and 2 bits will fail")


if __name__ == "__main__":
    main()

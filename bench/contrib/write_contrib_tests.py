"""Writes the models of com.microsoft's operators with the outputs that ONNX Runtime's CPU provider gives, unoptimized, as
folders that `dnnopt conformance` reads. Operators without a kernel there have the output of a formula in numpy.

usage: write_contrib_tests.py FOLDER [REGULAR_EXPRESSION]

FOLDER is emptied of the cases that are written. REGULAR_EXPRESSION takes cases by name; "kept" takes those of cases/ beside this
file: the first of each operator and those named below. Needs onnx, onnxruntime and numpy. What was computed by a formula, and cases that ONNX Runtime refused, are printed.
"""
import pathlib
import re
import shutil
import sys

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

import alias_cases  # noqa: F401
import attention_cases  # noqa: F401
import product_cases  # noqa: F401
import quantized_cases  # noqa: F401
from contrib_cases import MS, cases

KEPT = """skip_layer_normalization_bias skip_layer_normalization_f16 embed_layer_normalization_no_segments
group_norm_channels_first rotary_rank3_0 rotary_partial_1 rotary_offset_symbolic attention_padding_past_causal
attention_ends_starts attention_symbolic_past mha_past_padding mha_symbolic_past mha_scores qattention_past
gqa_prompt_packed_rotary gqa_prompt_sink gqa_prompt_padded gqa_token_ragged gqa_token_window_bias_softcap
gqa_token_sink_bias_ragged gqa_chunk_shared_buffer gqa_symbolic_token fused_matmul_batch_11 matmul_n_bits_4_zero_points
matmul_n_bits_4_float_zero_points matmul_n_bits_4_ragged matmul_n_bits_8_bias matmul_n_bits_4_f16 gather_blocks_8_scalar
gather_blocks_4_zero_points gather_blocks_int4_1 gather_blocks_along_uint4 gather_blocks_along_int4 fused_conv_sum
matmul_bnb4_nf4 matmul_bnb4_ragged qlinear_conv_1 QLinearAdd_row QLinearSoftmax_12_1 QLinearSoftmax_255
QLinearAveragePool_last QLinearAveragePool_whole_windows QLinearAveragePool_quarters quantize_axis_uint16
dynamic_quantize_matmul_columns_i8 dynamic_quantize_lstm_columns qgemm_columns range_rank1""".split()


def tensor(name, array, narrow=None):
    if narrow is None:
        return numpy_helper.from_array(array, name)
    return helper.make_tensor(name, getattr(TensorProto, narrow.upper()), array.shape, array.flatten().tolist())


def make_model(op, inputs, attributes, options, types):
    """Without `types` outputs are untyped, which ONNX Runtime fills in; with them they have element types and ranks."""
    constants, narrow = options.get("constants", []), options.get("narrow", {})
    names = ["" if x is None else f"x{i}" for i, x in enumerate(inputs)]
    wanted = options.get("outputs", 1)
    wanted = list(range(wanted)) if isinstance(wanted, int) else wanted
    outputs = [f"y{i}" if i in wanted else "" for i in range(max(wanted) + 1)]
    node = helper.make_node(op, names, outputs, domain=options.get("domain", MS), **attributes)
    nodes, initializers, values = [node], [], []
    for i, x in enumerate(inputs):
        if x is None:
            continue
        if i in constants:
            initializers.append(tensor(names[i], x, narrow.get(i)))
            continue
        open_dims = options.get("symbolic", False)
        fixed = options.get("fixed", {}).get(i, [])
        dims = [n if not open_dims or a in fixed else f"x{i}_{a}" for a, n in enumerate(x.shape)]
        values.append(helper.make_tensor_value_info(names[i], helper.np_dtype_to_tensor_dtype(x.dtype), dims))
    for i, factor in options.get("factors", {}).items():
        node.output[i] = f"whole{i}"
        like = inputs[0].dtype
        initializers.append(numpy_helper.from_array(factor.astype(like), f"factor{i}"))
        nodes.append(helper.make_node("Mul", [f"whole{i}", f"factor{i}"], [f"y{i}"]))
    results = []
    for k, i in enumerate(wanted):
        kind = types[k].dtype if types else options.get("typed", {}).get(i)
        results.append(onnx.ValueInfoProto(name=f"y{i}") if kind is None else helper.make_tensor_value_info(
            f"y{i}", helper.np_dtype_to_tensor_dtype(np.dtype(kind)), [None] * types[k].ndim if types else None))
    graph = helper.make_graph(nodes, op, values, results, initializers)
    return helper.make_model(graph, ir_version=10,
                             opset_imports=[helper.make_opsetid("", 21), helper.make_opsetid(MS, 1)],
                             producer_name="bench/contrib")


def run(model, feeds):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    # With more, DynamicQuantizeLSTM splits a batch and quantizes the state of each part by itself.
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return session.run(None, feeds)


def chosen(pattern):
    operators = set()
    for name, op, inputs, attributes, options in cases:
        first = (op, options.get("domain", MS)) not in operators
        operators.add((op, options.get("domain", MS)))
        if first or name in KEPT if pattern == "kept" else re.search(pattern, name):
            yield name, op, inputs, attributes, options


def main(folder, pattern=""):
    written, by_formula, refused = 0, [], []
    for name, op, inputs, attributes, options in chosen(pattern):
        constants = options.get("constants", [])
        given = [i for i, x in enumerate(inputs) if x is not None and i not in constants]
        feeds = {f"x{i}": inputs[i] for i in given}
        try:
            if options.get("formula_only", False):
                raise RuntimeError("formula")
            results = run(make_model(op, inputs, attributes, options, None), feeds)
        except Exception as fault:
            if "expected" not in options:
                refused.append(f"{name}: {str(fault).strip().splitlines()[0][:300]}")
                continue
            results = options["expected"](*[x for x in inputs if x is not None])
            results = list(results) if isinstance(results, tuple) else [results]
            by_formula.append(name)
        results = [np.asarray(y).astype(np.float32) if np.asarray(y).dtype == np.float64 and
                   all(x is None or x.dtype != np.float64 for x in inputs) else np.asarray(y) for y in results]
        model = make_model(op, inputs, attributes, options, results)
        at = pathlib.Path(folder) / name
        shutil.rmtree(at, ignore_errors=True)
        (at / "test_data_set_0").mkdir(parents=True)
        onnx.save(model, at / "model.onnx")
        for k, i in enumerate(given):
            (at / "test_data_set_0" / f"input_{k}.pb").write_bytes(
                numpy_helper.from_array(inputs[i], f"x{i}").SerializeToString())
        for k, y in enumerate(results):
            (at / "test_data_set_0" / f"output_{k}.pb").write_bytes(
                numpy_helper.from_array(y, model.graph.output[k].name).SerializeToString())
        written += 1
    print(f"{written} written, by ONNX Runtime {onnxruntime.__version__}; of these by a formula: {' '.join(by_formula)}")
    for line in refused:
        print("refused by ONNX Runtime:", line)


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    main(*sys.argv[1:])

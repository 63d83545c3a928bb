#!/usr/bin/env python3
"""The tables and figures of SoD2 (Niu et al., ASPLOS 2024), the paper's numbers beside ours.

sod2.py --list | --all | --table5 --figure10 ... [--dnnopt PROGRAM] [--device SPEC] [--form FORM] [--models a,b]

Ours come from runs made in the call, of the graphs of bench/zoo/dynamic with generated weights. Of the paper's ten
networks CodeBERT is BERT with symbolic dims here and Conformer is the same; its others are not published as graphs, so
that convolutional networks of the zoo stand for them.
"""
import json
import random
import subprocess
import sys

import common
from common import item, latency, live_table, number, ratio, say

# Table 1: MNN's ms for shapes and layouts, schedule and tuning, allocation, inference, on CPU and GPU.
TABLE_1 = {"YOLO-V6": "6.9 1155 2.2 476; 0.8 1678 30605 102", "Conformer": "3.8 127 7.8 926; 3 1021 73170 1193", "CodeBERT": "2.3 253 2.8 370; 1 856 4568 498"}
TABLE_5 = ["StableDiffusion encoder 92/271", "SegmentAnything 16/22", "Conformer 49/58", "CodeBERT 21/41", "YOLO-V6 89/206", "SkipNet 18/86", "DGNet 23/29", "ConvNet-AIG 26/77", "RaNet 86/452", "BlockDrop 24/69"]
TABLE_6 = ["StableDiffusion encoder 152/733", "SegmentAnything 66/108", "Conformer 40/225", "CodeBERT 102/452", "YOLO-V6 118/546", "SkipNet 41/633", "DGNet 32/56", "ConvNet-AIG 46/526", "RaNet 63/403", "BlockDrop 79/668"]
# Our networks and the shapes that are drawn for them: the paper's images of 224 to 640, sequences of 32 to 384.
LINES = {
    "bert_base_dynamic": lambda r: {"batch": 1, "sequence": r.randrange(32, 385)},
    "conformer_dynamic": lambda r: {"batch": 1, "time": r.randrange(32, 385)},
    "mobilenetv2_100_dynamic": lambda r: dict(batch=1, **dict.fromkeys(("height", "width"), 32 * r.randrange(7, 21))),
    "deeplabv3_dynamic": lambda r: dict(batch=1, **dict.fromkeys(("height", "width"), 32 * r.randrange(7, 21))),
}


def shapes(name, count, seed=0):
    """`count` bindings of a network's dims, from the smallest inputs to the largest."""
    draw = random.Random(seed)
    return sorted((LINES[name](draw) for _ in range(count)), key=lambda dims: tuple(dims.values()))


def walk(t, name, points):
    file = t.folder / "walk.json"
    file.write_text(json.dumps(points))
    return t.result("walk", t.weighted(name), *t.on_device(), "--walk", file)


def table_1(t):
    print("Paper, ms of MNN for shapes and layouts, schedule and tuning, allocation, inference (CPU; GPU):")
    for name, said in TABLE_1.items():
        print(f"- {name}: {said}")
    print("\nOurs: the first inference of a new shape, its parts, and the second one, means over the shapes of a walk:\n")
    out = live_table(["network", "shapes", "first, ms", "evaluate", "plan", "allocate", "bind", "infer", "second, ms", "programs built"])
    for name in t.models(LINES):
        result = walk(t, name, shapes(name, 8))
        if isinstance(result, str):
            out.row(name, result, *[""] * 8)
            continue
        points = result["points"]
        mean = lambda key: sum(p[key] for p in points) / len(points)
        parts = [sum(p["parts_ms"].get(k, 0) for p in points) / len(points) for k in ("evaluate", "plan", "allocate", "bind", "infer")]
        out.row(name, len(points), mean("first_ms"), *(number(p, 3) for p in parts), mean("second_ms"), sum(p["builds"] for p in points))


def table_2(t):
    print("The lists of operators: docs/reference/operator_classes.md. Nodes of each class:\n")
    classes = ["ISDO", "ISDOS", "ISVDOS", "EDO"]
    out = live_table(["network", *classes])
    for name in t.models([*LINES, "gpt2_dynamic", "swin_tiny_batch", "fasterrcnn_mbv3", "ssdlite320", "maskrcnn_resnet50"]):
        found = t.info(name)["dynamism"]
        out.row(name, *(found.get(k, 0) for k in classes))


def table_5(t):
    say("Paper, MB of SoD2 on a CPU, least/most over the inputs: " + ", ".join(TABLE_5) + "; ONNX Runtime takes 3.64 times as much, MNN 1.37, TVM-Nimble 8.62. Ours, intermediate memory over 15 shapes:")
    out = live_table(["network", "MB: least", "most", "lower bound of the largest", "without sharing, of the largest", "without sharing / ours"])
    for name in t.models(LINES):
        points = shapes(name, 15)
        result = walk(t, name, points)
        if isinstance(result, str):
            out.row(name, result, "", "", "", "")
            continue
        arenas = [p["arena_bytes"] / 1e6 for p in result["points"]]
        bound = result["points"][-1]["lower_bound_bytes"] / 1e6
        dims = [x for k, v in points[-1].items() for x in ("--dim", f"{k}={v}")]
        naive = t.optimize(name, *dims)["naive_bytes"] / 1e6
        out.row(name, min(arenas), max(arenas), bound, naive, ratio(naive, max(arenas)))


def by_size(t, name, count):
    """Rows of dims, our second run in ms, and ONNX Runtime's median."""
    points = shapes(name, count)
    result = walk(t, name, points)
    if isinstance(result, str):
        return result
    return [(dims, p["first_ms"], p["second_ms"], t.onnxruntime_ms(name, dims)) for dims, p in zip(points, result["points"])]


def table_6(t):
    say("Paper, ms of SoD2 on a CPU, least/most: " + ", ".join(TABLE_6) + "; ONNX Runtime takes 2.5 times as long, MNN 1.7, TVM-Nimble 2.7. Here, over 8 shapes:")
    out = live_table(["network", "ours, ms: least", "most", "ONNX Runtime (processor), ms: least", "most", "ONNX Runtime / ours, geometric mean"])
    for name in t.models(LINES):
        rows = by_size(t, name, 8)
        if isinstance(rows, str):
            out.row(name, rows, "", "", "", "")
            continue
        ours, theirs = [r[2] for r in rows], [r[3] for r in rows]
        product = 1.0
        for a, b in zip(theirs, ours):
            product *= a / b if a else 1
        out.row(name, min(ours), max(ours), min(theirs, default=None), max(theirs, default=None), product ** (1 / len(rows)))


def table_7(t):
    print("YOLO-V6 by percentile of the input (1, 25, 50, 75, 100): ONNX Runtime / SoD2 1.43 1.66 1.95 2.33 2.52, MNN 1.41 1.44 1.50")
    print("1.58 1.65, TVM-Nimble 2.13 2.52 3.03 3.67 3.90. Here, ONNX Runtime / ours at the same percentiles of 9 shapes:\n")
    out = live_table(["network", "1", "25", "50", "75", "100"])
    for name in t.models(["deeplabv3_dynamic", "bert_base_dynamic"]):
        rows = by_size(t, name, 9)
        out.row(name, *([rows, "", "", "", ""] if isinstance(rows, str) else [ratio(rows[i][3], rows[i][2]) for i in (0, 2, 4, 6, 8)]))


def figure_5(t):
    print("Relative to no optimization, fusion / + order / + plan: SDE .65 .36 .33, CodeBERT .82 .60 .53, RaNet .69 .27 .22,")
    print("BlockDrop .76 .47 .43 (read from bars). Ours, MB at the largest of 15 shapes. The first column is the peak of live")
    print("tensors of the graph as it is, the next ones add fusion, the order of execution, and offsets as they are planned:\n")
    out = live_table(["network", "no fusion", "fusion", "+ order", "+ plan", "relative"])
    for name in t.models(LINES):
        dims = [x for k, v in shapes(name, 15)[-1].items() for x in ("--dim", f"{k}={v}")]
        none, whole = t.optimize(name, "--passes", "none", *dims), t.optimize(name, *dims)
        sizes = [none["order"]["peak_bytes_before"], whole["order"]["peak_bytes_before"], whole["order"]["peak_bytes"], whole["arena_bytes"]]
        out.row(name, *(s / 1e6 for s in sizes), " / ".join(f"{s / sizes[0]:.2f}" for s in sizes[1:]))


def figure_6(t):
    print("Cumulative on a CPU, fusion / + order / + plan / + versions: SDE 1.74 2.03 2.12 2.42, CodeBERT 1.46 1.74 1.82 2.39, RaNet")
    print("2.06 2.33 2.44 2.96, BlockDrop 1.33 1.54 1.65 2.14 (read from bars). Ours, ms at one shape; the order of execution and")
    print("the plan are switched off by a budget of 0 s and a strategy that shares nothing:\n")
    out = live_table(["network", "none", "fusion", "+ order", "+ plan", "times faster than none"])
    for name in t.models(LINES):
        dims = [x for k, v in shapes(name, 3)[1].items() for x in ("--dim", f"{k}={v}")]
        flags = [("--passes", "none", "--memory-strategy", "naive", "--memory-budget", 0), ("--memory-strategy", "naive", "--memory-budget", 0), ("--memory-strategy", "naive"), ()]
        ms = [latency(t.bench(name, *dims, *f)) for f in flags]
        out.row(name, *ms, " / ".join(number(ratio(ms[0], m)) for m in ms[1:]))


def figure_7(t):
    print("Layers, original = 1, static fusion / with RDP: SDE .74 .27, CodeBERT .38 .21, RaNet .64 .25, BlockDrop .55 .32; sizes .77")
    print(".37, .45 .32, .69 .33, .66 .42 (read from bars). Ours: fused with symbolic dims, and with all dims known. Fusion that")
    print("does not know shapes cannot be had, for every join asks what RDP found:\n")
    out = live_table(["network", "operators", "launches: epilogues alone", "symbolic", "all dims known", "relative", "MB of intermediate results: none", "known", "relative"])
    for name in t.models(LINES):
        dims = [x for k, v in shapes(name, 3)[1].items() for x in ("--dim", f"{k}={v}")]
        none, some, whole, known = t.optimize(name, "--passes", "none", *dims), t.optimize(name, "--passes", "epilogue"), t.optimize(name), t.optimize(name, *dims)
        n = none["kernels"]
        out.row(name, n, some["kernels"], whole["kernels"], known["kernels"], f"{some['kernels'] / n:.2f} / {whole['kernels'] / n:.2f}", none["ir_bytes_after"] / 1e6, known["ir_bytes_after"] / 1e6, known["ir_bytes_after"] / none["ir_bytes_after"])


def figure_8(t):
    print("Share of sub-graphs in % (all known / mixed, 1 version / 2-4 / 5-8 / nac): RaNet 2 12 71 7 9, BlockDrop 2 9 73 4 14 (read")
    print("from bars). Ours, parts that the program is planned in:\n")
    keys = ["known", "mixed_1", "mixed_2_4", "mixed_5_8", "nac"]
    out = live_table(["network", *keys])
    for name in t.models([*LINES, "gpt2_dynamic", "fasterrcnn_mbv3", "ssdlite320", "maskrcnn_resnet50"]):
        found = t.optimize(name)["subgraphs"]
        out.row(name, *(found[k] for k in keys))


def figure_9(t):
    print("The same path as MNN, times faster and smaller: SkipNet 1.91 1.22, RaNet 1.45 1.54, ConvNet-AIG 1.65 1.18, BlockDrop 2.15")
    print("1.32 (read from bars). Ours: a residual network with 16 gates (after SkipNet's idea), shares of blocks taken, beside ONNX")
    print("Runtime; the row of all blocks is the paper's case:\n")
    sys.stdout.flush()
    subprocess.run([sys.executable, str(common.ROOT / "bench/control_flow.py"), "--runs", str(4 * t.repeats), t.tool], check=False)


def figure_10(t):
    print("YOLO-V6 over 15 sizes, ms from first to last: MNN 168 to 315, SoD2 118 to 183 on a CPU (read from bars). Here:\n")
    out = live_table(["network", "dims", "ours: first run, ms", "second", "ONNX Runtime (processor), ms", "ratio to the second"])
    for name in t.models(["deeplabv3_dynamic"]):
        rows = by_size(t, name, 15)
        if isinstance(rows, str):
            out.row(name, rows, "", "", "", "")
            continue
        for dims, first, second, theirs in rows:
            out.row(name, " ".join(f"{k}={v}" for k, v in dims.items()), first, second, theirs, ratio(theirs, second))


def figure_12(t):
    print("Speed of SoD2 relative to DNNFusion on static models: SkipNet .97, RaNet .95 on a CPU, .94 .92 on a GPU. Ours: the same")
    print("network with symbolic dims, bound at run time, and with all dims known to the compiler:\n")
    out = live_table(["network", "dims", "symbolic, ms", "known, ms", "relative speed", "launches: symbolic", "known"])
    for name in t.models(LINES):
        dims = shapes(name, 3)[1]
        result = walk(t, name, [dims] * 5)
        known = t.bench(name, *(x for k, v in dims.items() for x in ("--dim", f"{k}={v}")))
        if isinstance(result, str) or isinstance(known, str):
            out.row(name, result if isinstance(result, str) else known, *[""] * 5)
            continue
        times = sorted(min(p["first_ms"], p["second_ms"]) for p in result["points"])
        symbolic = times[len(times) // 2]
        out.row(name, " ".join(f"{k}={v}" for k, v in dims.items()), symbolic, latency(known), ratio(latency(known), symbolic), result["points"][0]["kernels"], known["kernels"])


def figure_13(t):
    print("Another phone in the paper; its bars are not in its text. Ours: kernels of each form on --device, ms at one shape:\n")
    out = live_table(["network", "native", "vectors", "groups"])
    for name in t.models(LINES):
        dims = [x for k, v in shapes(name, 3)[1].items() for x in ("--dim", f"{k}={v}")]
        out.row(name, *(latency(t.bench(name, *dims, form=form)) for form in ("native", "vectors", "groups")))


RDP = ["SoD2 Fig. 3a: forward: a shape's smallest dim limits TopK", "SoD2 Fig. 3b: backward: a known end tells an unknown beginning"]
ITEMS = [
    item("Table 1", "what a new shape costs", table_1),
    item("Table 2", "operators by dynamism", table_2),
    item("Table 3", "transfer functions", lambda t: t.tests("golden", *RDP)),
    item("Table 4", "domain, direction, start and end of the analysis", why="a definition without numbers; docs/concepts/shapes.md describes ours"),
    item("Table 5", "memory of ten networks", table_5),
    item("Table 6", "latency of ten networks", table_6),
    item("Table 7", "speed by size of the input", table_7),
    item("Figure 1", "four sub-graphs of different dynamism", lambda t: t.tests("golden", "SoD2 Fig. 1a: Shape, Gather, Range, BiasAdd: values of shapes decide shapes", "SoD2 Fig. 1b: Conv, Reduce, ArgMax, GlobalPooling: shapes follow from shapes", "SoD2 Fig. 1c: TopK of a product, its k from data", "SoD2 Fig. 1d: Add, Switch, branches, Combine: equal branches merge, others are nac")),
    item("Figure 2", "the lattice of ranks and dims", why="a drawing without numbers; docs/concepts/shapes.md describes ours"),
    item("Figure 3", "propagation forward and backward", lambda t: t.tests("golden", *RDP)),
    item("Figure 4", "one fused version in place of eight", lambda t: t.tests("golden", "SoD2 Fig. 4: a known broadcast leaves one fused version")),
    item("Figure 5", "memory by optimization", figure_5),
    item("Figure 6", "latency by optimization", figure_6),
    item("Figure 7", "layers and sizes by fusion with and without RDP", figure_7),
    item("Figure 8", "sub-graphs by what is known of their shapes", figure_8),
    item("Figure 9", "the same path with control flow", figure_9),
    item("Figure 10", "latency over 15 sizes", figure_10),
    item("Figure 11", "against TFLite with as little memory", why="TFLite's runtime has no limit of memory to set, and the rematerialization that the paper added to it is not published"),
    item("Figure 12", "overhead on static models", figure_12),
    item("Figure 13", "another device", figure_13),
    item("Algorithm 1", "propagation of ranks and dims", lambda t: t.tests("golden", *RDP, "SoD2 Fig. 1d: Add, Switch, branches, Combine: equal branches merge, others are nac", "SoD2 section 4.3: a program is cut where only execution tells sizes")),
]

if __name__ == "__main__":
    common.main("SoD2", ITEMS, __doc__)

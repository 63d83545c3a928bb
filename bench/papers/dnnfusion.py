#!/usr/bin/env python3
"""The tables and figures of DNNFusion (Niu et al., PLDI 2021), the paper's numbers beside ours.

dnnfusion.py --list | --all | --table5 --figure7 ... [--dnnopt PROGRAM] [--device SPEC] [--form FORM] [--models a,b]

Ours come from runs made in the call. Networks are graphs of bench/zoo with generated weights. The paper's latencies are
those of a Galaxy S20; ours stand beside ONNX Runtime on this machine's processor.
"""
import resource
import time

import common
from common import item, latency, layers, live_table, ratio

# Table 1: layers, intermediate results in 1e6, FLOPs in 1e9, achieved GFLOP/s.
TABLE_1 = {
    "vgg16": (51, 161, 31.0, 320),
    "yolov4": (398, 329, 34.6, 135),
    "distilbert": (457, 540, 35.3, 78),
    "mobilebert": (2387, 744, 17.6, 44),
    "gpt2": (2533, 1389, 69.1, 62),
}
# Table 5: layers, MB of intermediate results, fused layers of MNN, TVM, TFLite, PyTorch and DNNFusion, MB after.
TABLE_5 = {
    "efficientnet_b0": (309, 108, 199, 195, 201, 210, 97, 26),
    "vgg16": (51, 161, 22, 22, 22, 22, 17, 52),
    "mobilenetv1_ssd": (202, 110, 138, 124, 138, 148, 71, 37),
    "yolov4": (398, 329, 198, 192, 198, 232, 135, 205),
    "c3d": (27, 195, 27, 27, None, 27, 16, 90),
    "s3d": (272, 996, None, None, None, 272, 98, 356),
    "unet": (292, 312, 241, 232, 234, None, 82, 158),
    "fasterrcnn_resnet50": (3640, 914, None, None, None, None, 942, 374),
    "maskrcnn_resnet50": (3999, 1524, None, None, None, None, 981, 543),
    "tinybert": (366, 183, None, 304, 322, None, 74, 55),
    "distilbert": (457, 540, None, 416, 431, None, 109, 197),
    "albert": (936, 1260, None, 746, 855, None, 225, 320),
    "bert_base": (976, 915, None, 760, 873, None, 216, 196),
    "mobilebert": (2387, 744, None, 1678, 2128, None, 510, 255),
    "gpt2": (2533, 1389, None, 2047, 2223, None, 254, 356),
}
# Table 6: ms on CPU / GPU of TFLite, of fixed-pattern fusion (OurB+) and of DNNFusion.
TABLE_6 = {
    "efficientnet_b0": ("52/30", "38/24", "16/10"),
    "vgg16": ("245/102", "231/97", "171/65"),
    "mobilenetv1_ssd": ("87/68", "61/39", "33/17"),
    "yolov4": ("560/288", "426/257", "235/117"),
    "c3d": ("-", "802/488", "582/301"),
    "s3d": ("-", "1279/705", "710/324"),
    "unet": ("302/117", "168/92", "99/52"),
    "fasterrcnn_resnet50": ("-", "1462/1974", "862/531"),
    "maskrcnn_resnet50": ("-", "3907/4768", "2471/1680"),
    "tinybert": ("97/-", "92/65", "51/30"),
    "distilbert": ("510/-", "467/457", "224/148"),
    "albert": ("974/-", "923/973", "386/312"),
    "bert_base": ("985/-", "948/1012", "394/293"),
    "mobilebert": ("342/-", "326/397", "170/102"),
    "gpt2": ("1102/-", "990/1106", "394/292"),
}
BREAKDOWN = ["efficientnet_b0", "yolov4", "s3d", "gpt2"]
# The steps of Fig. 7; each is the whole pipeline up to there. "epilogue" is what a framework of fixed patterns does.
STEPS = {
    "none": "none",
    "fixed patterns": "epilogue",
    "rewriting": "default,-fuse,fuse_epilogue",
    "fusion": "default,-fuse,fuse_operators",
    "all": "default",
}


def table_1(t):
    out = live_table(["network", "layers: paper", "ours", "IR, 1e6: paper", "ours", "FLOPs, 1e9: paper", "ours", "GFLOP/s: paper", "ours"])
    for name in t.models(TABLE_1):
        count, size, flops, rate = TABLE_1[name]
        info, plan = t.info(name), t.optimize(name)
        bench = t.bench(name)
        work = 2 * plan["macs_after"] / 1e9
        speed = bench if isinstance(bench, str) else work / (latency(bench) / 1000)
        out.row(name, count, layers(info), size, plan["ir_bytes_before"] / 4e6, flops, work, rate, speed)


def table_2(t):
    print("Table 2 lists operators by type; ours is docs/reference/operator_classes.md. Nodes of each type by network:\n")
    types = ["One-to-One", "One-to-Many", "Many-to-Many", "Reorganize", "Shuffle"]
    out = live_table(["network", *types])
    for name in t.models(TABLE_5):
        found = t.info(name)["mapping"]
        out.row(name, *(found.get(k, 0) for k in types))


def table_3(t):
    print("Each of the 25 cells is a static_assert of tests/static/mapping_table_test.cpp, which is compiled into this program:\n")
    t.tests("static", "a fused pair resists fusion as much as its more resisting operator")


def rewriting(t):
    out = live_table(["network", "rules that fired", "times", "the five that fired most"])
    for name in t.models(TABLE_5):
        plan = t.optimize(name)
        fired = plan["rules_fired"]
        most = sorted(fired.items(), key=lambda pair: -pair[1])[:5]
        out.row(name, len(fired), sum(fired.values()), ", ".join(f"{k} {n}" for k, n in most) or "none")


def table_4(t):
    t.tests("passes", "the families hold the rules that DNNFusion counts, under names of their own", "every rule fires on its example and both sides agree")
    print()
    rewriting(t)


def table_5(t):
    out = live_table(["network", "layers: paper", "ours", "fused: MNN", "TVM", "TFLite", "PyTorch", "DNNFusion", "ours, native", "ours, groups", "IR MB: paper before", "after", "ours before", "after"])
    for name in t.models(TABLE_5):
        count, before, mnn, tvm, tflite, torch, fused, after = TABLE_5[name]
        native, groups = t.optimize(name, form="native"), t.optimize(name, form="groups")
        out.row(name, count, layers(t.info(name)), mnn, tvm, tflite, torch, fused, native["kernels"], groups["kernels"], before, after, native["ir_bytes_before"] / 1e6, native["ir_bytes_after"] / 1e6)


def table_6(t):
    out = live_table(["network", "S20, ms CPU/GPU: TFLite", "fixed patterns", "DNNFusion", "here, ms: ONNX Runtime (processor)", "fixed patterns", "ours", "fixed patterns / ours"])
    for name in t.models(TABLE_6):
        fixed, ours = latency(t.bench(name, "--passes", "epilogue")), latency(t.bench(name))
        out.row(name, *TABLE_6[name], t.onnxruntime_ms(name), fixed, ours, ratio(fixed, ours))


def figure_7(t):
    print("Paper: on a CPU rewriting 1.2 to 1.5 times, fusion 1.6 to 2.2 more, the rest 1.3 to 1.8 more; on a GPU 1.3 to 1.5,")
    print("2.1 to 3.3 and 1.7 to 2.1. GPT-2: 310 fused layers without rewriting, 254 with it. Ours, launches: ms, and times faster")
    print("than the step before:\n")
    out = live_table(["network", *STEPS, "fusion without rewriting"])
    for name in t.models(BREAKDOWN):
        cells, last = [], None
        for passes in STEPS.values():
            result = t.bench(name, "--passes", passes)
            ms = latency(result)
            cells.append(ms if isinstance(ms, str) else f"{result['kernels']}: {ms:.1f}" + (f" ({last / ms:.2f})" if last else ""))
            last = ms if not isinstance(ms, str) else None
        alone = t.bench(name, "--passes", "default,-rewrite")
        cells.append(alone if isinstance(alone, str) else f"{alone['kernels']}: {latency(alone):.1f}")
        out.row(name, *cells)


def figure_8(t):
    print("The paper's bars are not in its text (YOLO-V4, counted by the phone's counters). Ours: bytes that the kernels of one")
    print("inference read and write by their own statement, and the plan's intermediate results, by step:\n")
    out = live_table(["network", "step", "launches", "MB read and written", "MB of intermediate results", "MB at once", "relative traffic"])
    for name in t.models(["yolov4"]):
        first = None
        for step, passes in STEPS.items():
            profile = t.profile(name, "--roofline", "--passes", passes)
            if isinstance(profile, str):
                out.row(name, step, profile, "", "", "", "")
                continue
            traffic = sum(r["bytes"] * r["calls"] for r in profile["roofline"]["rows"])
            first = first or traffic
            plan = t.optimize(name, "--passes", passes)
            out.row(name, step, profile["kernels"], traffic / 1e6, plan["ir_bytes_after"] / 1e6, plan["arena_bytes"] / 1e6, traffic / first)


def busy(t, name, passes):
    """Share of the processor's cores that inferences keep busy: two lengths of one benchmark, so that the start drops out."""
    path = t.weighted(name)
    spent = []
    for repeats in (t.repeats, 5 * t.repeats):
        before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        done = t.result("bench", path, *t.on_device(), "--passes", passes, "--warmup", 0, "--runs", repeats)
        after, wall = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter() - began
        if isinstance(done, str):
            return done
        spent.append((after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, wall))
    (cpu1, wall1), (cpu2, wall2) = spent
    return (cpu2 - cpu1) / (wall2 - wall1) / common.os.cpu_count()


def figure_9(t):
    print("(a) Utilisation; the paper's axis runs from 70 to 100%, its values are not in the text. Ours on a processor:\n")
    out = live_table(["network", "without fusion", "fixed patterns", "all"])
    for name in t.models(BREAKDOWN):
        t.bench(name, repeats=1)  # kernels of all three compile before the clock runs
        cells = [busy(t, name, passes) for passes in ("none", "epilogue", "default")]
        out.row(name, *(c if isinstance(c, str) else f"{c:.0%}" for c in cells))
    print("\n(b) Compilation of YOLO-V4; paper: TVM 4 h of tuning, DNNFusion 3 h without its profile database, 1 h with it:\n")
    out = live_table(["network", "passes, s", "joins asked", "measured, first", "s", "measured, again", "s"])
    for name in t.models(["yolov4"]):
        plain = t.optimize(name)
        cache, rows = t.folder / "database.json", []
        for _ in range(2):
            began = time.perf_counter()
            plan = t.optimize(name, "--measure", "--cache", cache)
            rows += [plan if isinstance(plan, str) else plan["profile"]["measured"], time.perf_counter() - began]
        out.row(name, plain["seconds"], plan if isinstance(plan, str) else plan["profile"]["asked"], *rows)
        cache.unlink(missing_ok=True)


def figure_10(t):
    print("The paper moves YOLO-V4 and GPT-2 to a Galaxy S10 and a Magic 2; its bars are not in its text. Ours: the same model")
    print("with the kernels of each form on the device that --device names, launches: ms:\n")
    out = live_table(["network", "native", "vectors", "groups"])
    for name in t.models(["yolov4", "gpt2"]):
        cells = []
        for form in ("native", "vectors", "groups"):
            result = t.bench(name, form=form)
            cells.append(result if isinstance(result, str) else f"{result['kernels']}: {latency(result):.1f}")
        out.row(name, *cells)


def listing_1(t):
    t.tests("golden", *LISTING_1)
    print("\nLaunches by the published planner and by ours, in both forms:\n")
    out = live_table(["network", "paper", "published: native", "groups", "ours: native", "groups"])
    for name in t.models(TABLE_5):
        counts = [t.optimize(name, "--passes", passes, form=form)["kernels"] for passes in ("default,-fuse,fuse_published", "default") for form in ("native", "groups")]
        out.row(name, TABLE_5[name][6], *counts)


LISTING_1 = ["DNNFusion Listing 1: the published planner makes the block of Fig. 3", "DNNFusion Listing 1: yellow pairs join where nothing is computed again"]
ITEMS = [
    item("Table 1", "layers, intermediate results, FLOPs and achieved speed of five networks", table_1),
    item("Table 2", "operators by mapping type", table_2),
    item("Table 3", "mapping types of two operators and of their fusion", table_3),
    item("Table 4", "rewriting by mathematical properties", table_4),
    item("Table 5", "layers and intermediate results before and after fusion", table_5),
    item("Table 6", "latency of 15 networks", table_6),
    item("Figure 1", "overview of the system", why="a drawing without numbers; docs/concepts/architecture.md has ours"),
    item("Figure 2", "two rewritten graphs", lambda t: t.tests("passes", "the graphs of DNNFusion's Fig. 2")),
    item("Figure 3", "a block grows from its seed", lambda t: t.tests("golden", LISTING_1[0], "DNNFusion Fig. 3: a block grows from its seed up to a red pair")),
    item("Figure 4", "code of a data-flow tree with a common subtree", lambda t: t.tests("golden", "DNNFusion Fig. 4: one kernel for the data-flow tree, its common subtree once")),
    item("Figure 5", "data movement that becomes an index", lambda t: t.tests("golden", "DNNFusion section 4.4.1: a product is written divided and in its transposed place")),
    item("Figure 6", "against TASO's graphs under TFLite", why="TASO is on no registry and builds only with CUDA 9 or 10 and its cuDNN; its rewritten graphs were not published"),
    item("Figure 7", "what rewriting, fusion and the rest bring", figure_7),
    item("Figure 8", "memory accesses and misses of YOLO-V4", figure_8),
    item("Figure 9", "utilisation, and compilation time with the profile database", figure_9),
    item("Figure 10", "portability", figure_10),
    item("Listing 1", "generation of the fusion plan", listing_1),
]

if __name__ == "__main__":
    common.main("DNNFusion", ITEMS, __doc__)

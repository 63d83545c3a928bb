#!/usr/bin/env python3
"""The tables and figures of TFLite GPU (Lee et al., 2019), the paper's numbers beside ours.

tflite_gpu.py --list | --all | --table3 --figure8 ... [--dnnopt PROGRAM] [--device SPEC] [--form FORM] [--models a,b]

Ours come from runs made in the call. Networks are graphs of bench/zoo with generated weights. The paper's latencies are
those of phones of 2017 and 2018.
"""
import json
import os
import pathlib
import subprocess
import sys

import common
from common import item, latency, live_table, ratio, table

# Table 2: best work-groups of conv_2d and depthwise_conv.
TABLE_2 = {"Adreno 630": ("4 8 4", "4 4 8"), "Adreno 540": ("8 2 2", "8 8 2"), "Adreno 510": ("8 4 4", "8 4 4"), "Adreno 509": ("8 4 8", "8 4 2"), "Adreno 50x/4xx": ("8 4 8", "8 4 8")}
# Table 3: MB in fp16 without a manager, greedy, and by minimum-cost flow.
TABLE_3 = {"mobilenetv1_100": (9.6, 2.3, 2.7), "mobilenetv2_100": (13.2, 4.0, 3.8), "deeplabv3_mobilenetv2": (24.3, 3.6, 4.2)}
# Table 5: ms of TFLite GPU, MACE and SNPE for MobileNet v1.
TABLE_5 = {"Galaxy S9": (13, 12, 6.9), "Mi8 SE": (35.9, 29.6, 20), "P20 Pro": (13.5, 45, None), "Pixel 2": (18, None, None), "Pixel 3": (12.5, None, None)}
SUSTAINED_SECONDS = 200


def table_1(t):
    print("Paper, GFLOP/s in fp32 on the CPU and fp16 on the GPU: Galaxy S5 79/300, S7 124/730, S9 270/730. Measured on the device:\n")
    profile = t.profile("squeezenet1_0", "--roofline")
    roof = profile["roofline"]
    table(["device", "GFLOP/s", "GB/s", "share reached by squeezenet1_0"], [[profile["device"], roof["flops_per_second"] / 1e9, roof["bytes_per_second"] / 1e9, f"{roof['share']:.0%}"]])


def table_2(t):
    print("The paper's table is chosen by a device's name here too, for kernels that read texels; other devices get a calculator's")
    print("choice. What each launch of a network gets on --device:\n")
    table(["GPU", "conv_2d", "depthwise_conv"], [[name, *sizes] for name, sizes in TABLE_2.items()])
    print()
    out = live_table(["network", "memory", "launches by size of work-group"])
    for name in t.models(["mobilenetv1_100"]):
        for kind in ("buffers", "packed"):
            profile = t.profile(name, "--memory-objects", kind)
            if isinstance(profile, str):
                out.row(name, kind, profile)
                continue
            sizes = {}
            for event in profile["kernel_events"]:
                if event["run"] == profile["kernel_events"][0]["run"]:
                    size = " ".join(str(n) for n in event["lws"])
                    sizes[size] = sizes.get(size, 0) + 1
            out.row(name, kind, ", ".join(f"{count} of ({size})" for size, count in sorted(sizes.items(), key=lambda p: -p[1])))


def planned(t, records, strategy):
    file = t.folder / "records.json"
    file.write_text(json.dumps(records))
    found = t.result("plan-memory", file, "--strategy", strategy, "--budget", 2)
    return found if isinstance(found, str) else next(found[k] for k in ("bytes", "total_bytes", "arena_bytes", "total") if k in found) / 2**20


def table_3(t):
    print("MiB of all intermediate tensors in fp16. Ours: lifetimes of the plan as fusion leaves it and, for comparison with the")
    print("paper, with epilogues alone; objects by the paper's two managers, and offsets as the default has them:\n")
    strategies = ["objects_naive", "objects_greedy_in_order", "objects_min_cost_flow", "exact"]
    out = live_table(["network", "paper: naive", "greedy", "flow", "passes", "naive", "greedy", "flow", "offsets"])
    for name in t.models(TABLE_3):
        for passes in ("epilogue", "default"):
            plan = t.optimize(name, "--passes", passes)
            records = [dict(r, size=r["size"] // 2) for r in plan["usage_records"]]
            out.row(name, *TABLE_3[name], passes, *(planned(t, records, s) for s in strategies))
    print("\nAllocated by a session in fp32, MiB, with each tensor in its object, objects by the paper's managers and by ours, and")
    print("one arena; whether its outputs are those of the reference backend:\n")
    strategies = ["objects_naive", "objects_equality", "objects_greedy_in_order", "objects_greedy_by_size_improved", "objects_min_cost_flow", "objects_search", "default"]
    out = live_table(["network", *(s.removeprefix("objects_") for s in strategies), "right"])
    for name in t.models(TABLE_3):
        runs = [t.bench(name, "--memory-strategy", s, repeats=1) for s in strategies]
        checked = [t.result("verify", t.weighted(name), *t.on_device(), "--memory-strategy", s) for s in strategies]
        out.row(name, *(r if isinstance(r, str) else r["intermediate_device_bytes"] / 2**20 for r in runs),
                ", ".join(s for s, c in zip(strategies, checked) if isinstance(c, str) or not c["passed"]) or "all")


def table_5(t):
    print("MobileNet v1, ms:\n")
    table(["phone", "TFLite GPU", "MACE", "SNPE"], [[name, *ms] for name, ms in TABLE_5.items()])
    print()
    out = live_table(["device", "ours, fp32", "fp16", "ONNX Runtime (processor)"])
    fp32, fp16 = t.bench("mobilenetv1_100"), t.bench("mobilenetv1_100", "--precision", "fp16")
    out.row(t.device if isinstance(fp32, str) else fp32["device"], latency(fp32), latency(fp16), t.onnxruntime_ms("mobilenetv1_100"))


def figure_1(t):
    print("What runs on the device and what is left to the host:\n")
    out = live_table(["network", "launches", "operators on the host", "parts"])
    for name in t.models(["mobilenetv1_100", "ssdlite320", "fasterrcnn_mbv3", "maskrcnn_resnet50"]):
        plan = t.optimize(name)
        out.row(name, plan["kernels"], plan["host_ops"], sum(plan["subgraphs"].values()))


def figure_3(t):
    print("Grids and work-groups of MobileNet v1's first launches:\n")
    profile = t.profile("mobilenetv1_100", "--memory-objects", "packed")
    first = [e for e in profile["kernel_events"] if e["run"] == profile["kernel_events"][0]["run"]][:8]
    table(["launch", "grid", "work-group"], [[e["name"], " ".join(map(str, e["gws"])), " ".join(map(str, e["lws"]))] for e in first])


def figure_7(t):
    print("The paper's bars are not in its text; it states 2 to 9 times over the CPU. Here, ms:\n")
    out = live_table(["network", "ours", "ONNX Runtime (processor)", "ratio"])
    for name in t.models(["mobilenetv1_100", "mobilenetv2_100", "deeplabv3_mobilenetv2", "mobilenetv2_ssd", "mnasnet_100", "squeezenet1_0"]):
        ours, theirs = latency(t.bench(name)), t.onnxruntime_ms(name)
        out.row(name, ours, theirs, ratio(theirs, ours))


def figure_8(t):
    program = pathlib.Path(t.tool).with_name("sustained_latency")
    if not program.exists():
        raise SystemExit(f"{program.name} does not lie beside {t.tool}: configure with DNNOPT_BUILD_BENCH=ON and build it")
    print(f"MobileNet v1 for {SUSTAINED_SECONDS} s without a pause; the paper's curves are not in its text:\n", flush=True)
    subprocess.run([str(program), t.device, str(SUSTAINED_SECONDS), str(t.weighted("mobilenetv1_100"))], check=False)


OBJECTS = ["greedy and flow differ as in TFLite GPU's Figure 5"]
ITEMS = [
    item("Table 1", "arithmetic of the device", table_1),
    item("Table 2", "work-groups", table_2),
    item("Table 3", "memory of intermediate tensors by manager", table_3),
    item("Table 4", "frameworks on iOS", why="needs an iPhone; OpenCL does not exist there"),
    item("Table 5", "frameworks on Android, MobileNet v1", table_5),
    item("Figure 1", "what the delegate takes", figure_1),
    item("Figure 2", "the layout PHWC4", lambda t: t.tests("golden", "SmartMem Fig. 5: texels of four along one reduction dimension, rows of texels along the other")),
    item("Figure 3", "grid and work-groups", figure_3),
    item("Figure 4", "neighbouring threads share a cache line", why="a drawing of hardware; nothing in it is measured"),
    item("Figure 5", "a network whose tensors share objects", lambda t: t.tests("memory", *OBJECTS)),
    item("Figure 6", "its flow network", lambda t: t.tests("memory", *OBJECTS, "shared objects equal TensorFlow Lite's unit tests")),
    item("Figure 7", "latency against the CPU", figure_7),
    item("Figure 8", "latency over a long time", figure_8),
    item("Algorithm 1", "greedy memory management", lambda t: t.tests("memory", "shared objects equal TensorFlow Lite's unit tests")),
]

if __name__ == "__main__":
    common.main("TFLite GPU", ITEMS, __doc__)

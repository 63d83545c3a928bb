#!/usr/bin/env python3
"""The tables and figures of nnPerf (Chu et al., SenSys 2023), the paper's numbers beside ours.

nnperf.py --list | --all | --table3 --figure11 ... [--dnnopt PROGRAM] [--device SPEC] [--form FORM] [--models a,b]

Ours come from runs made in the call. Networks are graphs of bench/zoo with generated weights. What the paper holds
against a phone's GPU inspector is held here against the slope of latency over injected copies of a kernel, and against
sessions that are not profiled.
"""
import multiprocessing
import os
import statistics

import common
from common import item, latency, live_table, number, ratio, table

# The eight networks of Fig. 10 and 11.
NETWORKS = ["mobilenetv3_small_100", "mnasnet_100", "squeezenet1_0", "efficientnet_b0", "resnetv2_101", "mobilebert", "mobilenetv2_ssd", "esrgan"]
# Table 3: ms for each inference, us for each kernel, % of the inference.
TABLE_3 = {"Pixel 3XL": (0.020, 0.201, 0.104), "Note10": (0.020, 0.227, 0.231), "Xiaomi 10": (0.017, 0.230, 0.116), "RK3399": (0.037, 0.241, 0.098)}


def spin(stop):
    while not stop.is_set():
        pass


def stream(stop):
    import numpy as np

    a, b = np.zeros(32 << 20, np.uint8), np.zeros(32 << 20, np.uint8)
    while not stop.is_set():
        b[:] = a


class beside:
    """Other work on the machine while a block runs: `count` processes of `work`."""

    def __init__(self, work, count):
        self.stop = multiprocessing.Event()
        self.processes = [multiprocessing.Process(target=work, args=(self.stop,), daemon=True) for _ in range(count)]

    def __enter__(self):
        for p in self.processes:
            p.start()

    def __exit__(self, *_):
        self.stop.set()
        for p in self.processes:
            p.join()


def overhead(t, names):
    out = live_table(["network", "launches", "off, ms", "monitor, ms", "full, ms", "monitor: %", "full: %", "full: us for each kernel"])
    for name in t.models(names):
        t.bench(name, repeats=1)
        rounds = {"off": [], "monitor": [], "full": []}
        kernels = None
        for _ in range(3):  # in turns, so that a slow moment meets all three
            plain = t.bench(name)
            if isinstance(plain, str):
                break
            kernels = plain["kernels"]
            rounds["off"].append(latency(plain))
            for mode in ("monitor", "full"):
                profile = t.profile(name, "--mode", mode)
                rounds[mode].append(profile["e2e"]["p50_us"] / 1000)
        if kernels is None:
            out.row(name, plain, *[""] * 6)
            continue
        off, monitor, full = (statistics.median(r) for r in rounds.values())
        out.row(name, kernels, off, monitor, full, 100 * (monitor / off - 1), 100 * (full / off - 1), 1000 * (full - off) / kernels)


def table_2(t):
    found = t.result("devices")["devices"]
    print("The paper's four phones; here:\n")
    table(["device", "platform", "driver", "compute units", "clock, MHz", "memory, MiB", "timer, ns"], [[d["spec"] + " " + d["name"], d["platform"], d["driver_version"], d["compute_units"], d["clock_mhz"], d["global_memory_bytes"] >> 20, d["timer_resolution_ns"]] for d in found])


def table_3(t):
    table(["phone", "ms for each inference", "us for each kernel", "%"], [[name, *cells] for name, cells in TABLE_3.items()])
    print("\nHere, medians of three turns:\n")
    overhead(t, ["squeezenet1_0", "mobilenetv3_small_100", "resnetv2_101"])


def figure_1(t):
    print("(a) A table of operators predicts latency badly (paper: 15.0 21.7 29.3 ms for 40.5 48.7 56.9 measured). (c), (d) The")
    print("operators that take longest differ by platform. Here, by form of the kernels:\n")
    out = live_table(["network", "form", "ms", "the three that take longest"])
    for name in t.models(["mobilenetv3_large_100"]):
        for form in ("vectors", "groups"):
            profile = t.result("profile", t.weighted(name), *t.on_device(form), "--warmup", t.warmup, "--runs", t.repeats)
            if isinstance(profile, str):
                out.row(name, form, profile, "")
                continue
            rows = sorted(profile["types"], key=lambda r: -r["total_us"])[:3]
            out.row(name, form, profile["e2e_ms"], ", ".join(f"{r['name']} {r['total_us'] / 1000:.2f} ms" for r in rows))


def figure_2(t):
    print("Paper: 12 ms alone, 30 to 50 ms beside other applications. Here beside processes that keep cores busy:\n")
    out = live_table(["network", "busy processes", "median, ms", "p90", "most"])
    for name in t.models(["mobilenetv3_large_100"]):
        for count in (0, 1, os.cpu_count()):
            with beside(spin, count):
                result = t.bench(name, repeats=10 * t.repeats)
            times = {} if isinstance(result, str) else result["latency_ms"]
            out.row(name, count, result if isinstance(result, str) else times["median"], times.get("p90"), times.get("max"))


def figure_3(t):
    print("(a) Paper: kernels up to 1.916 times slower at 90% memory load than at 50%. Here beside processes that copy memory.")
    print("(b) needs control over the clock of the device, which a virtual machine does not give.\n")
    out = live_table(["network", "copying processes", "kernels, ms", "relative", "slowest kernel, relative"])
    for name in t.models(["mobilenetv3_large_100"]):
        base = None
        for count in (0, 1, os.cpu_count()):
            with beside(stream, count):
                profile = t.profile(name)
            rows = {r["name"]: r["p50_us"] for r in profile["kernel_rows"]}
            total = sum(rows.values())
            base = base or (total, rows)
            out.row(name, count, total / 1000, total / base[0], max(rows[k] / base[1][k] for k in rows if base[1].get(k)))


def figure_5(t):
    print("Five kernels of one inference, us on one clock:\n")
    profile = t.profile("squeezenet1_0")
    rows = profile["kernel_events"][:5]
    table(["kernel", "queued", "submitted", "started", "ended"], [[e["name"], *(number(e[k], 1) for k in ("queued_us", "submit_us", "start_us", "end_us"))] for e in rows])


def clocks(t, names):
    out = live_table(["network", "way", "pairs", "offset moved, ppm", "outliers", "residual p50, us", "p90, us"])
    for name in t.models(names):
        profile = t.profile(name)
        for c in [profile["clock"]] + profile["clock"]["candidates"]:
            out.row(name, c["method"], c["pairs"], number(c["drift_ppm"], 3), c["outliers"], c["residual_p50_ns"] / 1000, c["residual_p90_ns"] / 1000)


def figure_6(t):
    print("Paper: the offset moves by -100 to 200 us in 114 s. Here the first row is the clock that is used:\n")
    clocks(t, ["squeezenet1_0"])


def figure_7(t):
    print("The paper's offsets are about normal. Here, residuals of the pairs of stamps:\n")
    clocks(t, ["squeezenet1_0", "resnetv2_101"])


def figure_13(t):
    print("Paper, 90th percentile of the time offset, us: Note10 5.9, Xiaomi 10 4.1, Pixel 8.2, RK3399 6.9. Here:\n")
    clocks(t, ["squeezenet1_0", "mobilenetv3_small_100"])


def checked(t, names, level):
    out = live_table(["network", level, "median error, %", "p90", "largest", "median, us", "right", "wrong"])
    for name in t.models(names):
        path = t.weighted(name)
        profile = t.result("profile", path, *t.on_device(), "--warmup", t.warmup, "--runs", t.repeats, "--check-kernels", "--check-seconds", 60)
        if isinstance(profile, str):
            out.row(name, profile, *[""] * 6)
            continue
        rows = [r for r in profile["check"][level] if r["pairs"] and r["slope_us"] > r["launch_us"]]
        apart = sorted(100 * abs(r["profiled_us"] - r["slope_us"] + r["launch_us"]) / max(r["slope_us"] - r["launch_us"], 1) for r in rows)
        micro = sorted(abs(r["profiled_us"] - r["slope_us"] + r["launch_us"]) for r in rows)
        if not rows:
            out.row(name, 0, *[""] * 6)
            continue
        out.row(name, len(rows), apart[len(apart) // 2], apart[int(0.9 * (len(apart) - 1))], apart[-1], micro[len(micro) // 2], sum(bool(r["right"]) for r in rows), sum(bool(r["wrong"]) for r in rows))


def figure_10(t):
    print("Paper: operators off by 0.014 ms in the mean. Here, time by events against the slope over 1 to 20 copies:\n")
    checked(t, NETWORKS[:4], "operators")


def figure_11(t):
    print("Paper: end to end off by 0.367 ms, 0.28% on the GPU, 1.84% on the CPU. Here, profiled sessions against others, in turns:\n")
    overhead(t, NETWORKS)


def figure_12(t):
    print("Paper, SqueezeNet's kernels: off by 0.001 ms (Note10), 0.012 (Xiaomi 10), 0.007 (Pixel). Here, against slopes:\n")
    checked(t, ["squeezenet1_0"], "kernels")


def figure_14(t):
    print("Paper, by version of the profiler: end to end 12.282, 2.799, 0.122, 0.037 ms; for each kernel 79.237, 18.063, 0.785,")
    print("0.241 us. Here in its two modes:\n")
    overhead(t, ["squeezenet1_0"])


def figure_15(t):
    print("(a) Whether tables of operators or of kernels predict a network. Here the sums of one session's profile by operator of")
    print("the graph without fusion, and by kernel, against another session's latency. (b) retrains a super-network, which is out of")
    print("reach; examples/latency_search.cpp searches with such a table.\n")
    out = live_table(["network", "measured, ms", "by operators, ms", "off, %", "by kernels, ms", "off, %"])
    for name in t.models(["mobilenetv3_large_100", "mobilenetv3_small_100", "mnasnet_100"]):
        apart, fused, measured = t.profile(name, "--passes", "none"), t.profile(name), latency(t.bench(name))
        if any(isinstance(r, str) for r in (apart, fused, measured)):
            out.row(name, *[str(r)[:60] for r in (measured, apart, fused) if isinstance(r, str)])
            continue
        by_operator, by_kernel = (sum(r["p50_us"] * r["calls"] for r in p["kernel_rows"]) / 1000 for p in (apart, fused))
        out.row(name, measured, by_operator, 100 * abs(by_operator / measured - 1), by_kernel, 100 * abs(by_kernel / measured - 1))


ITEMS = [
    item("Table 1", "features of profilers", why="compares what other programs offer; nothing in it is measured"),
    item("Table 2", "platforms", table_2),
    item("Table 3", "overhead of profiling", table_3),
    item("Table 4", "synchronization by clock frequency", why="needs control over the processor's frequency, which neither a virtual machine nor the lent GPUs give"),
    item("Figure 1", "prediction and what takes longest, by platform", figure_1),
    item("Figure 2", "other work on the machine", figure_2),
    item("Figure 3", "memory load", figure_3),
    item("Figure 4", "where kernels are stamped", why="a drawing without numbers; docs/concepts/profiler.md describes ours"),
    item("Figure 5", "the life of a kernel", figure_5),
    item("Figure 6", "offset of the two clocks", figure_6),
    item("Figure 7", "distribution of the offset, and a line through it", figure_7),
    item("Figure 8", "fit by number of injected kernels", lambda t: t.tests("profile", "three injected kernels give the first fit")),
    item("Figure 9", "parts of the implementation", why="a drawing without numbers; docs/concepts/profiler.md describes ours"),
    item("Figure 10", "accuracy of operators", figure_10),
    item("Figure 11", "accuracy end to end on eight networks", figure_11),
    item("Figure 12", "accuracy of kernels", figure_12),
    item("Figure 13", "time offset after synchronization", figure_13),
    item("Figure 14", "extra latency by version", figure_14),
    item("Figure 15", "tables of operators and of kernels", figure_15),
    item("Algorithm 1", "dynamic fitting", lambda t: t.tests("profile", "dynamic fitting follows a rough clock within a microsecond", "dynamic fitting recovers from a frequency step within two groups")),
]

if __name__ == "__main__":
    common.main("nnPerf", ITEMS, __doc__)

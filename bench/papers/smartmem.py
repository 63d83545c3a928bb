#!/usr/bin/env python3
"""The tables and figures of SmartMem (Niu et al., ASPLOS 2024), the paper's numbers beside ours.

smartmem.py --list | --all | --table7 --figure8 ... [--dnnopt PROGRAM] [--device SPEC] [--form FORM] [--models a,b]

Ours come from runs made in the call. Networks are graphs of bench/zoo with generated weights. The paper's latencies are
those of a Snapdragon 8 Gen 2 in fp16; ours are in fp32 unless the device and --form say otherwise.
"""
import common
from common import item, latency, layers, live_table, ratio, table

# Table 1 (MNN): MACs in 1e9, layout transformations, ms, % implicit, % explicit, % compute, GMACS.
TABLE_1 = {
    "resnet50": (4.1, 3, 14, 4.8, 0.2, 95, 293),
    "fast_style_transfer": (162, 32, 1506, 70.7, 1.8, 27.5, 108),
    "regnety_032": (3.2, 6, 57, 16.7, 0, 83.3, 56),
    "crossformer_small": (5.0, 208, 336, 15.3, 55.2, 29.5, 15),
    "swin_tiny_patch4_window7_224": (4.6, 242, 342, 14.7, 54.1, 31.2, 15.2),
    "autoformer_small": (4.7, 233, 335, 13.3, 54.2, 32.5, 14),
    "cswin_small": (6.9, 769, 703, 14.3, 50.2, 35.5, 10),
    "clip_text": (6.7, 183, 133, 15.1, 36.3, 48.6, 44),
    "sd_unet": (90, 533, 2172, 19.4, 42.1, 38.5, 42),
    "pythia_1b": (119, 385, 3034, 11.7, 31.7, 56.6, 39),
}
# Table 7: operators, parameters in 1e6, MACs in 1e9, operators after MNN, TVM, DNNFusion and SmartMem.
# Table 8: ms of MNN, TVM, DNNFusion and SmartMem, and SmartMem's GMACS.
TABLE_7_8 = {
    "autoformer_small": (546, 31.2, 4.7, 449, 302, 197, 148, 335, 184, 106, 40.2, 117),
    "biformer_small": (2042, 25.5, 4.5, 1189, 1029, 602, 474, 1736, 208, 186, 56.1, 81),
    "crossformer_small": (505, 31, 5, 453, 308, 196, 155, 336, 156, 121, 38.2, 130),
    "cswin_small": (3863, 34.7, 6.9, 1753, 1480, 933, 604, 703, 261, 225, 57.6, 120),
    "efficientvit_b2": (536, 51, 5.2, 489, 133, 113, 101, 208, 243, 112, 22.5, 232),
    "flatten_pvt_medium": (2016, 37.3, 7.2, 1558, 918, 665, 403, 492, 256, 210, 60.1, 119),
    "smt_small": (1406, 22.5, 4.9, 1905, 844, 469, 332, 510, 214, 143, 40, 124),
    "swin_tiny_patch4_window7_224": (765, 28.9, 4.6, 596, 374, 207, 158, 372, 158, 135, 30.6, 149),
    "vit_base_patch16_224": (444, 102.8, 21, 379, 289, 168, 112, 533, 1050, 277, 103, 204),
    "conformer": (665, 10, 12, 558, 356, 219, 163, 1736, 863, 284, 106, 113),
    "clip_text": (674, 123, 6.7, 601, 297, 101, 84, 153, 216, 73, 38, 176),
    "sd_unet": (1962, 860, 91, 1355, 889, 436, 322, 2172, 3969, 1108, 412, 219),
    "sd_vae_decoder": (287, 50, 312, 206, 156, 103, 95, 2730, 5663, 1596, 866, 360),
    "pythia_1b": (1853, 1121, 119, 809, 681, 525, 355, 3034, 6602, 1489, 663, 180),
    "convnext_tiny": (292, 28.6, 4.5, 321, 185, 96, 81, 271, 5543, 109, 33.4, 135),
    "regnety_032": (282, 19.4, 3.2, 197, 155, 122, 122, 61, 71, 31, 24.7, 129),
    "resnext50_32x4d": (122, 25, 4.3, 86, 58, 55, 55, 158, 106, 33, 15.7, 271),
    "yolov8n": (233, 3.2, 4.4, 176, 88, 75, 68, 32, 141, 26, 22, 200),
}
# Fig. 8: speed over DNNFusion after elimination, layout selection and the rest, read from the bars.
FIGURE_8 = {
    "autoformer_small": "2.7 / 3.8 / 4.0",
    "biformer_small": "2.3 / 3.6 / 4.6",
    "efficientvit_b2": "1.8 / 4.4 / 5.0",
    "cswin_small": "2.2 / 3.9 / 5.1",
    "vit_base_patch16_224": "1.5 / 2.9 / 3.8",
    "convnext_tiny": "1.4 / 2.4 / 3.3",
    "regnety_032": "1.1 / 1.7 / 1.9",
    "resnext50_32x4d": "1.1 / 1.8 / 2.1",
}
# Operators by fusion alone, then with views as index maps, then with stores as the reader wants them.
FUSION, ELIMINATION, SELECTION = "default,-fuse,fuse_operators", "default,-fuse,fuse_views", "default"
LAYOUT = {"Reshape", "Transpose", "Flatten", "Squeeze", "Unsqueeze", "DepthToSpace", "SpaceToDepth", "Slice", "Gather", "Concat", "Split", "Expand", "Pad", "Identity"}


def share_of_layout(profile):
    """Share of kernel time in launches that compute nothing but places."""
    types = profile["types"]
    total = sum(r["total_us"] for r in types) or 1
    return sum(r["total_us"] for r in types if set(r["name"].split("+")) <= LAYOUT) / total


def table_1(t):
    print("Ours: layout operators of the graph and of the plan, and the share of kernel time in launches that only move data,")
    print("without fusion and with all of it; what a driver does implicitly does not occur, for no kernel converts its inputs.\n")
    out = live_table(["network", "MACs, 1e9: paper", "ours", "transformations: paper", "ours before", "after", "% explicit: paper", "ours without", "with", "% implicit: paper", "ms: paper", "ours", "GMACS: paper", "ours"])
    for name in t.models(TABLE_1):
        macs, transforms, ms, implicit, explicit, _, speed = TABLE_1[name]
        plan = t.optimize(name)
        shares = []
        for passes in ("none", "default"):
            profile = t.profile(name, "--passes", passes)
            shares.append(profile if isinstance(profile, str) else 100 * share_of_layout(profile))
        ours = latency(t.bench(name))
        out.row(name, macs, t.macs(name) / 1e9, transforms, plan["layout_ops_before"], plan["layout_ops_after"], explicit, *shares, implicit, ms, ours, speed, ratio(t.macs(name) / 1e6, ours))


def table_2(t):
    print("The paper's table compares buffers and textures by property. What the device says of its images:\n")
    found = t.result("devices")["devices"]
    table(["device", "images", "widest", "highest", "layers", "texels of a buffer"], [[d["spec"] + " " + d["name"], "yes" if d["images"]["supported"] else "no", d["images"].get("max_width_2d"), d["images"].get("max_height_2d"), d["images"].get("max_array_layers"), d["images"].get("max_buffer_texels")] for d in found])
    print("\nLatency in ms with weights and packed tensors in each kind of memory (--memory-objects):\n")
    out = live_table(["network", "buffers", "packed", "images", "automatic"])
    for name in t.models(["resnext50_32x4d", "swin_tiny_patch4_window7_224"]):
        out.row(name, *(latency(t.bench(name, "--memory-objects", kind)) for kind in ("buffers", "packed", "images", "automatic")))


def table_3(t):
    print("Nodes of each class (the lists of operators: docs/reference/operator_classes.md):\n")
    classes = ["ILD-Variable", "ILI-Variable", "ILD-Fixed", "ILI-Fixed"]
    out = live_table(["network", *classes])
    for name in t.models(TABLE_7_8):
        found = t.info(name)["layout"]
        out.row(name, *(found.get(k, 0) for k in classes))


def table_5(t):
    t.tests("static", "operators with a fixed layout, and only they, are eliminated")


def table_6(t):
    t.tests("static", "a layout is searched where, and only where, something layout dependent remains")


def table_7(t):
    out = live_table(["network", "operators: paper", "ours", "params, 1e6: paper", "ours", "MACs, 1e9: paper", "ours", "after: MNN", "TVM", "DNNFusion", "SmartMem", "ours, native", "ours, groups"])
    for name in t.models(TABLE_7_8):
        ops, params, macs, *after = TABLE_7_8[name][:7]
        info = t.info(name)
        out.row(name, ops, layers(info), params, info["params"] / 1e6, macs, t.macs(name) / 1e9, *after, t.optimize(name, form="native")["kernels"], t.optimize(name, form="groups")["kernels"])


def table_8(t):
    out = live_table(["network", "phone, ms: MNN", "TVM", "DNNFusion", "SmartMem", "GMACS", "here, ms: ONNX Runtime (processor)", "ours", "GMACS"])
    for name in t.models(TABLE_7_8):
        ours = latency(t.bench(name))
        out.row(name, *TABLE_7_8[name][7:], t.onnxruntime_ms(name), ours, ratio(t.macs(name) / 1e6, ours))


def table_9(t):
    """PyTorch's Inductor and ours on one processor or GPU."""
    import statistics
    import sys
    import time

    try:
        import torch
    except ImportError:
        print("PyTorch is not installed: no figure")
        return
    sys.path.insert(0, str(common.ZOO / "export"))
    import attention
    import timm

    where = "cuda" if torch.cuda.is_available() else "cpu"
    made = {"swin_tiny_patch4_window7_224": lambda: timm.create_model("swin_tiny_patch4_window7_224"), "autoformer_small": attention.AutoFormer}
    paper = {"swin_tiny_patch4_window7_224": (7.5, 6.1), "autoformer_small": (5.1, 4.6)}
    out = live_table(["network", "V100, ms: Inductor", "SmartMem", f"here, ms: Inductor ({where})", "ours", "Inductor / ours"])
    for name in t.models(made):
        ours = latency(t.bench(name))
        model, image, times = torch.compile(made[name]().eval().to(where)), torch.rand(1, 3, 224, 224, device=where), []
        with torch.no_grad():
            for i in range(t.warmup + t.repeats):
                began = time.perf_counter()
                model(image).cpu()
                times.append(1000 * (time.perf_counter() - began))
        inductor = statistics.median(times[t.warmup :])
        out.row(name, *paper[name], inductor, ours, ratio(inductor, ours))


def figure_1(t):
    print("Chains of layout operators between two that compute, as exporters leave them, and what is left of them:\n")
    out = live_table(["network", "layout operators before", "after"])
    for name in t.models(TABLE_7_8):
        plan = t.optimize(name)
        out.row(name, plan["layout_ops_before"], plan["layout_ops_after"])


def traffic(t, names, steps):
    out = live_table(["network", "step", "launches", "MB read and written", "relative to all"])
    for name in t.models(names):
        rows = []
        for step, passes in steps.items():
            profile = t.profile(name, "--roofline", "--passes", passes)
            if isinstance(profile, str):
                rows.append((step, profile, None))
            else:
                rows.append((step, profile["kernels"], sum(r["bytes"] * r["calls"] for r in profile["roofline"]["rows"]) / 1e6))
        for step, kernels, size in rows:
            out.row(name, step, kernels, size, ratio(size, rows[-1][2]))


def figure_7(t):
    print("Accesses relative to SmartMem's: CSwin 3.15 (MNN), 1.65 (TVM), 1.47 (DNNFusion); ResNext 2.55, 1.27, 1.20. Misses: CSwin")
    print("3.47, 1.88, 1.55; ResNext 2.45, 1.18, 1.25. Virtual machines give no counters, so ours are the bytes that kernels state;")
    print("the first row stands for frameworks of fixed patterns:\n")
    traffic(t, ["cswin_small", "resnext50_32x4d"], {"fixed patterns": "epilogue", "fusion": FUSION, "all": SELECTION})


def figure_8(t):
    print("Times faster than fusion alone, each step with those before it. The last step is what `tune` finds in 20 s:\n")
    out = live_table(["network", "paper", "ours", "fusion, launches: ms", "elimination", "selection", "tuned"])
    for name in t.models(FIGURE_8):
        results = [t.bench(name, "--passes", passes) for passes in (FUSION, ELIMINATION, SELECTION)]
        cache = t.folder / "tuned.json"
        tuned = t.result("tune", t.weighted(name), *t.on_device(), "--cache", cache, "--budget", 20)
        results.append(tuned if isinstance(tuned, str) else t.bench(name, "--cache", cache))
        cache.unlink(missing_ok=True)
        ms = [latency(r) for r in results]
        faster = " / ".join(common.number(ratio(ms[0], m)) for m in ms[1:])
        out.row(name, FIGURE_8[name], faster, *(r if isinstance(r, str) else f"{r['kernels']}: {latency(r):.1f}" for r in results))


def figure_9(t):
    print("Relative to all of SmartMem, DNNFusion / elimination / layouts: accesses CSwin 1.69 / 1.47 / 1.15, ResNext 1.29 / 1.23 /")
    print("1.08; misses 1.48 / 1.37 / 1.12 and 1.25 / 1.19 / 1.06. Ours, bytes that kernels state:\n")
    traffic(t, ["cswin_small", "resnext50_32x4d"], {"fusion": FUSION, "elimination": ELIMINATION, "all": SELECTION})
    print("\nMemory against a plan of fusion alone; paper: 14% less for Swin, 15% for ViT:\n")
    out = live_table(["network", "arena MB, fusion", "all", "less"])
    for name in t.models(["swin_tiny_patch4_window7_224", "vit_base_patch16_224"]):
        fused, whole = (t.optimize(name, "--passes", passes)["arena_bytes"] for passes in (FUSION, SELECTION))
        out.row(name, fused / 1e6, whole / 1e6, f"{1 - whole / fused:.0%}")


def figure_10(t):
    print("Swin by batch; paper: 11.6 to 13.2 times faster than MNN, 4.8 to 5.9 than TVM, 4.1 to 4.7 than DNNFusion:\n")
    out = live_table(["batch", "ours, ms", "ONNX Runtime (processor), ms", "ONNX Runtime / ours"])
    for batch in (1, 2, 4, 8, 16):
        ours = latency(t.bench("swin_tiny_batch", "--dim", f"batch={batch}"))
        theirs = t.onnxruntime_ms("swin_tiny_batch", {"batch": batch})
        out.row(batch, ours, theirs, ratio(theirs, ours))


def figure_11(t):
    print("Two older phones in the paper; its bars but for four are not in its text. Ours: kernels of each form on --device, in fp32")
    print("and with storage in fp16, launches: ms:\n")
    out = live_table(["network", *(f"{form}, {precision}" for form in ("native", "vectors", "groups") for precision in ("fp32", "fp16"))])
    for name in t.models(["swin_tiny_patch4_window7_224", "convnext_tiny", "resnext50_32x4d", "yolov8n"]):
        cells = []
        for form in ("native", "vectors", "groups"):
            for precision in ("fp32", "fp16"):
                result = t.bench(name, "--precision", precision, form=form)
                cells.append(result if isinstance(result, str) else f"{result['kernels']}: {latency(result):.1f}")
        out.row(name, *cells)


def figure_12(t):
    print("Paper: 149, 204, 271 and 360 GMACs a second for Swin, ViT, ResNext and SD-VAEDecoder, 24, 27, 31 and 35% of the roof:\n")
    out = live_table(["network", "GMACs/s: paper", "% of the roof: paper", "ours: GMACs/s", "% of the roof", "device: GFLOP/s", "GB/s"])
    paper = {"swin_tiny_patch4_window7_224": (149, 24), "vit_base_patch16_224": (204, 27), "resnext50_32x4d": (271, 31), "sd_vae_decoder": (360, 35)}
    for name in t.models(paper):
        profile = t.profile(name, "--roofline")
        if isinstance(profile, str):
            out.row(name, *paper[name], profile, "", "", "")
            continue
        roof = profile["roofline"]
        out.row(name, *paper[name], t.macs(name) / roof["us"] / 1e3, 100 * roof["share"], roof["flops_per_second"] / 1e9, roof["bytes_per_second"] / 1e9)


ITEMS = [
    item("Table 1", "layout transformations and where the time goes", table_1),
    item("Table 2", "buffers and textures", table_2),
    item("Table 3", "operators by dependence on layouts", table_3),
    item("Table 4", "definitions of the four classes", why="formal definitions without numbers; the property tests perturb inputs of every operator to hold them"),
    item("Table 5", "what becomes of a pair", table_5),
    item("Table 6", "the class of a fused pair, and what is searched", table_6),
    item("Table 7", "operators of 18 networks before and after", table_7),
    item("Table 8", "latency and speed of 18 networks", table_8),
    item("Table 9", "against PyTorch's Inductor", table_9),
    item("Figure 1", "explicit and implicit transformations", figure_1),
    item("Figure 2", "overview of the system", why="a drawing without numbers; docs/concepts/architecture.md has ours"),
    item("Figure 3", "dependences of indices", lambda t: t.tests("golden", "SmartMem Fig. 3: Reshape and Transpose as identity, split and merge of indices")),
    item("Figure 4", "layouts by reduction dimensions", lambda t: t.tests("golden", "SmartMem Fig. 4: the product writes what three consumers read, its views are gone")),
    item("Figure 5", "tensors in textures", lambda t: t.tests("golden", "SmartMem Fig. 5: texels of four along one reduction dimension, rows of texels along the other")),
    item("Figure 6", "accesses of a product after a chain of views", lambda t: t.tests("golden", "SmartMem Fig. 6: a product reads a normalization's rows with stride 1")),
    item("Figure 7", "memory accesses and misses", figure_7),
    item("Figure 8", "what each step brings", figure_8),
    item("Figure 9", "memory accesses by step", figure_9),
    item("Figure 10", "Swin by batch", figure_10),
    item("Figure 11", "other devices", figure_11),
    item("Figure 12", "roofline", figure_12),
]

if __name__ == "__main__":
    common.main("SmartMem", ITEMS, __doc__)

"""Writes the corpus of files_fuzz: a small document for each reader of tests/fuzz/files_fuzz.cpp, and the usage records of
bench/data/memory that have at most 12 kB.

usage: write_documents.py FOLDER

The first byte of a file chooses the reader, in the order of the table `readers` there. Only Python's standard library is used.
"""
import json
import pathlib
import struct
import sys

DATA = pathlib.Path(__file__).resolve().parent.parent.parent / "bench" / "data" / "memory"
LARGEST = 12_000
FACTS = [
    "launch_us", "launch_with_event_us", "recorded_launch_us", "round_trip_us", "buffer_copy_gbs", "image_copy_fp32_gbs",
    "image_copy_fp16_gbs", "buffer_window_gbs", "image_window_gbs", "buffer_window_fp16_gbs", "image_window_fp16_gbs",
    "image_filter_bits_fp32", "image_filter_bits_fp16", "cached_read_gbs", "fma_gflops", "upload_gbs", "download_gbs",
]
NPY, USAGES, USAGES_CSV, PLANS, TUNED, PROFILES, FACT_LINES, TABLE_CSV, TABLE, PROFILE, PROGRAMS, DAMAGED_PROGRAMS = range(12)


def npy(description, order, dims, content, version=1):
    """A .npy file of the format's version 1 or 2."""
    header = f"{{'descr': '{description}', 'fortran_order': {order}, 'shape': ({dims}), }}\n".encode()
    length = struct.pack("<H" if version == 1 else "<I", len(header))
    return b"\x93NUMPY" + bytes([version, 0]) + length + header + content


def statistic(name):
    """A row of a saved profile."""
    times = {key: 1.5 for key in ("avg_us", "p50_us", "p90_us", "total_us", "mean_low_us", "mean_high_us")}
    return {"name": name, "type": "Conv", "ops": ["Conv", "Relu"], "count": 3, **times}


def latency_tables():
    """One table as CSV and as JSON."""
    times = {"mean_ns": 5.5, "min_ns": 4.0, "p50_ns": 5.0, "p90_ns": 7.0, "max_ns": 9.0}
    key = {"operators": "Conv,Relu", "attributes": "group=1", "shapes": "1x3x8x8", "layout": "rows", "device": "a \"device\""}
    parts = ["enqueue", "latency", "gap", "prologue", "epilogue", "input"]
    lines = ["level,operators,attributes,shapes,layout,device,count,mean_ns,min_ns,p50_ns,p90_ns,max_ns"]
    lines += [f"launch,{part},,,,,1,2,2,2,2,2" for part in parts]
    lines += [f'{level},"Conv,Relu",group=1,1x3x8x8,rows,"a ""device""",7,5.5,4,5,7,9' for level in ("kernel", "operator")]
    entries = [{"level": level, **key, "count": 7, **times} for level in ("kernel", "operator")]
    launches = {f"{part}_ns": 2.0 for part in parts}
    return "\n".join(lines) + "\n", json.dumps({"launches": launches, "entries": entries})


def documents():
    """(reader, name, content) of each document."""
    for kind, size in (("<f4", 4), ("<i8", 8), ("|u1", 1), ("|b1", 1), ("<f2", 2), ("<f8", 8), (">f4", 4), ("<u2", 2)):
        yield NPY, f"npy_{kind[1:]}_{kind[0] == '>'}", npy(kind, False, "2, 3", bytes(range(6 * size)))
    yield NPY, "npy_columns", npy("<f4", True, "3, 2", bytes(24), 2)
    yield NPY, "npy_scalar", npy("<f4", False, "", bytes(4))
    yield NPY, "npy_empty", npy("<f4", False, "0,", b"")
    records = [
        {"id": "a", "size": 64, "first_task": 0, "last_task": 2, "alignment": 4, "offset": 0},
        {"id": 7, "size": 16, "lower": 1, "upper": 3, "offset": 64},
    ]
    yield USAGES, "records", json.dumps({"usage_records": records, "alignment": 8})
    yield USAGES, "array", json.dumps([{"size": 64, "lower": 0, "upper": 2}])
    yield USAGES, "rows", "id,lower,upper,size\na,0,2,64\n"
    for path in sorted(DATA.rglob("*")):
        if path.suffix in (".csv", ".json") and path.stat().st_size <= LARGEST:
            yield USAGES, path.name, path.read_bytes()
            if path.suffix == ".csv":
                yield USAGES_CSV, path.name, path.read_bytes()
    plan = {"offsets": [0, 64], "strategy": "greedy_by_size", "proved": True}
    yield PLANS, "plans", json.dumps({"offsets": {"0f": plan}, "orders": {"1e": {"order": [1, 0], "proved": False}}})
    yield TUNED, "tuned", json.dumps({"a device": {"tiled_product 64x64x64 f32": [8, 8, 4, 1], "matrix_steps x": [1, 2]}})
    yield PROFILES, "joins", json.dumps({"a device": {"Conv + Relu": [3.5, 4.25]}})
    yield FACT_LINES, "facts", "".join(f"{name} 1.25\n" for name in FACTS) + "wave_size 32\n"
    table_csv, table_json = latency_tables()
    yield TABLE_CSV, "table", table_csv
    yield TABLE, "table", table_json
    rows = {"e2e": statistic("e2e"), "operators": [statistic("Conv_0")], "kernel_rows": [statistic("conv")]}
    yield PROFILE, "profile", json.dumps({"model": "m", "device": "d", "created": "2026-01-01", **rows})
    yield PROGRAMS, "none", b""
    for at in (0, 8, 16, 24, 32, 40, 48, 56, 64, 72, 80, 88, 120):
        yield DAMAGED_PROGRAMS, f"byte_{at}", bytes([0, at, 255])


def main(folder):
    target = pathlib.Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    count = 0
    for reader, name, content in documents():
        data = content.encode() if isinstance(content, str) else content
        (target / f"{reader}_{name}").write_bytes(bytes([reader]) + data)
        count += 1
    print(f"{count} documents")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])

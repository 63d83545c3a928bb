"""Holds what `dnnopt walk` and `dnnopt compare` tell to what they must, on a small model with a symbolic batch.

Usage: walk_and_compare.py DNNOPT DEVICE
"""
import json
import pathlib
import subprocess
import sys
import tempfile

from optimize_images import FLOAT, node, number, text, value_info, weights


def symbolic_info(name, symbol, dim):
    shape = text(1, text(2, symbol)) + text(1, number(1, dim))
    return text(1, name) + text(2, text(1, number(1, FLOAT) + text(2, shape)))


def model():
    nodes = [node("MatMul", ["x", "w"], "product"), node("Relu", ["product"], "y")]
    graph = b"".join(text(1, n) for n in nodes) + text(2, "walked") + text(5, weights("w", 8, 4))
    graph += text(11, symbolic_info("x", "batch", 8)) + text(12, symbolic_info("y", "batch", 4))
    return number(1, 8) + text(7, graph) + text(8, number(2, 17))


def main(exe, device):
    faults = []

    def expect(holds, fault):
        if not holds:
            faults.append(fault)

    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        path, result = folder / "walked.onnx", folder / "result.json"
        path.write_bytes(model())

        def call(*arguments, status=0):
            done = subprocess.run([exe, *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            expect(done.returncode == status, f"{arguments} ends with {done.returncode}: {done.stderr}")
            return done

        def walk(points, *flags, status=0):
            (folder / "points.json").write_text(points if isinstance(points, str) else json.dumps(points))
            return call("walk", path, "--walk", folder / "points.json", "--json", result, *flags, status=status)

        points = [{"batch": 3}, {"shapes": {"x": [300, 8]}}, {"batch": 1}, {"batch": 0}]
        walk(points, "--device", device)
        told = json.loads(result.read_text())
        expect([row["dims"] for row in told["points"]] == points, f"other points than those of the file: {told}")
        for row in told["points"]:
            parts = row["parts_ms"]
            expect(set(parts) == {"evaluate", "plan", "allocate", "bind", "infer"}, f"other parts: {parts}")
            expect(all(ms >= 0 for ms in parts.values()), f"a part below zero: {parts}")
            expect(sum(parts.values()) <= row["first_ms"], f"parts above the whole: {row}")
            expect(row["first_ms"] > 0 and row["second_ms"] > 0, f"no time passed: {row}")
            expect(row["host_ops"] == 0 and row["builds"] == 0, f"not on the device, or built anew: {row}")
        expect([row["kernels"] > 0 for row in told["points"]] == [True, True, True, False], "launches over nothing, or none")
        expect(told["points"][1]["device_bytes"] > told["points"][0]["device_bytes"], "a larger shape takes no memory")
        expect(told["branches_run"] == told["branches_skipped"] == 0, f"branches of nothing: {told}")
        walk(points[:1], "--device", "reference")
        told = json.loads(result.read_text())
        expect(told["device"] == "reference" and told["points"][0]["kernels"] == 0, f"not the reference backend: {told}")
        for bad in ("no list", [], [{}], [{"batch": "three"}], [{"shapes": {"x": 3}}], [{"other": 3}]):
            expect("dnnopt" in walk(bad, "--device", "reference", status=2).stderr, f"no word of {bad}")

        profiles = [folder / "a.json", folder / "b.json"]
        for at, profile in enumerate(profiles):
            call("profile", path, "--device", device, "--dim", f"batch={1 + 4000 * at}", "--runs", 5, "--json", profile)
        call("compare", *profiles, "--json", result)
        told = json.loads(result.read_text())
        expect(told["total"]["a_us"] > 0 and told["total"]["b_us"] > 0, f"no totals: {told}")
        rows = told["rows"]
        expect(rows and {row["level"] for row in rows} == {"operator", "kernel"}, f"not both levels: {rows}")
        for row in rows:
            expect(abs(row["b_us"] - row["a_us"] - row["difference_us"]) < 1e-6, f"no difference: {row}")
        for at, key in enumerate(("a_us", "b_us")):
            for level, list_of in (("operator", "operators"), ("kernel", "kernel_rows")):
                told_us = sum(row[key] for row in rows if row["level"] == level)
                held_us = sum(row["total_us"] for row in json.loads(profiles[at].read_text())[list_of])
                expect(abs(told_us - held_us) < 1e-6 * held_us, f"{level}s take {told_us} us, not {held_us}")
        sizes = [abs(row["difference_us"]) for row in rows]
        expect(sizes == sorted(sizes, reverse=True), f"not the largest first: {sizes}")
        call("compare", profiles[0], path, status=2)
        call("compare", profiles[0], folder / "missing.json", status=2)
    for fault in faults:
        print(fault)
    return 1 if faults else 0


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))

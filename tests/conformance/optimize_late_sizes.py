"""Holds that `dnnopt optimize` plans a model whose sizes the host tells, beside kernels with scratch memory.

NonZero's kernels keep places in scratch memory as long as the symbolic input; numbers drawn for what it finds have no
bound and run on the host.

Usage: optimize_late_sizes.py DNNOPT DEVICE
"""
import json
import pathlib
import subprocess
import sys
import tempfile

from optimize_images import FLOAT, node, number, text

INT = 2  # AttributeProto.INT


def info(name, *dims):
    shape = b"".join(text(1, text(2, d) if isinstance(d, str) else number(1, d)) for d in dims)
    return text(1, name) + text(2, text(1, number(1, FLOAT) + text(2, shape)))


def model():
    nodes = [
        node("NonZero", ["x"], "places"),
        node("Cast", ["places"], "found", text(1, "to") + number(3, FLOAT) + number(20, INT)),
        node("RandomNormalLike", ["found"], "y"),
    ]
    graph = b"".join(text(1, n) for n in nodes) + text(2, "late")
    graph += text(11, info("x", "rows", 7)) + text(12, info("y", 2, "found"))
    return number(1, 8) + text(7, graph) + text(8, number(2, 17))


def main(exe, device):
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "late.onnx"
        path.write_bytes(model())
        result = pathlib.Path(folder) / "result.json"
        done = subprocess.run([exe, "optimize", str(path), "--device", device, "--json", str(result)],
                              capture_output=True, text=True)
        if done.returncode != 0:
            print(done.stderr)
            return 1
        planned = json.loads(result.read_text())
    if planned["host_ops"] != 1 or not planned["launches"]:
        print(f"{planned['host_ops']} host operators, launches {planned['launches']}: nothing is tested")
        return 1
    return 0


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))

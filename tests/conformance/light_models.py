"""Runs the nine light models of ONNX against their stored outputs.

Each model gets the folder that `dnnopt conformance` reads: the model, its input as ONNX's own runner makes it (element i of
n is i / n, rounded to float32 from double), and the stored output. Counts are checked like those of the node tests.

Usage: light_models.py DNNOPT LIGHT_FOLDER [FLAGS of `dnnopt conformance`...]
"""
import array
import pathlib
import shutil
import subprocess
import sys
import tempfile

DIMS = (1, 3, 224, 224)  # of the one input of all nine


def varint(value):
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def ramp():
    """A float TensorProto: dims (1), data_type (2), raw_data (9)."""
    count = 1
    for dim in DIMS:
        count *= dim
    raw = array.array("f", (i / count for i in range(count)))
    if sys.byteorder == "big":
        raw.byteswap()
    dims = b"".join(b"\x08" + varint(dim) for dim in DIMS)
    return dims + b"\x10\x01" + b"\x4a" + varint(4 * count) + raw.tobytes()


def main(exe, source, *flags):
    models = sorted(pathlib.Path(source).glob("light_*.onnx"))
    with tempfile.TemporaryDirectory() as folder:
        for model in models:
            data = pathlib.Path(folder) / model.stem / "test_data_set_0"
            data.mkdir(parents=True)
            shutil.copy(model, data.parent / "model.onnx")
            shutil.copy(model.with_name(model.stem + "_output_0.pb"), data / "output_0.pb")
            (data / "input_0.pb").write_bytes(ramp())
        done = subprocess.run([exe, "conformance", folder, *flags], stdout=subprocess.PIPE, text=True)
    print(done.stdout, end="")
    counts = done.stdout.strip().splitlines()[-1:]
    if done.returncode != 0 or len(models) != 9 or counts != ["9 passed, 0 failed"]:
        print(f"{len(models)} models, exit {done.returncode}: wanted 9 passed, 0 failed")
        return 1
    return 0


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))

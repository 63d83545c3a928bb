"""Holds what `dnnopt optimize --memory-objects images` plans to what runs on the same device.

The model resamples between two convolutions, so that the plan hangs on what is measured of the device's images.

Usage: optimize_images.py DNNOPT DEVICE
"""
import json
import pathlib
import struct
import subprocess
import sys
import tempfile

FLOAT, STRING, INTS = 1, 3, 7  # TensorProto.FLOAT; AttributeProto.STRING and INTS


def varint(value):
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def number(field, value):
    return varint(field << 3) + varint(value)


def text(field, value):
    data = value if isinstance(value, bytes) else value.encode()
    return varint(field << 3 | 2) + varint(len(data)) + data


def tensor(name, dims, values):
    return b"".join(number(1, d) for d in dims) + number(2, FLOAT) + text(8, name) + text(
        9, struct.pack(f"<{len(values)}f", *values))


def weights(name, *dims):
    count = 1
    for d in dims:
        count *= d
    return tensor(name, dims, [(i * 37 % 101 - 50) / 500 for i in range(count)])


def node(op, inputs, output, *attributes):
    return b"".join(text(1, i) for i in inputs) + text(2, output) + text(3, output) + text(4, op) + b"".join(
        text(5, a) for a in attributes)


def padding():
    return text(1, "pads") + b"".join(number(8, 1) for _ in range(4)) + number(20, INTS)


def value_info(name, *dims):
    shape = b"".join(text(1, number(1, d)) for d in dims)
    return text(1, name) + text(2, text(1, number(1, FLOAT) + text(2, shape)))


def model():
    nodes = [
        node("Conv", ["x", "w0"], "first", padding()),
        node("Resize", ["first", "", "scales"], "larger", text(1, "mode") + text(4, "linear") + number(20, STRING)),
        node("Conv", ["larger", "w1"], "y", padding()),
    ]
    constants = [weights("w0", 8, 3, 3, 3), weights("w1", 4, 8, 3, 3), tensor("scales", [4], [1.0, 1.0, 2.0, 2.0])]
    graph = b"".join(text(1, n) for n in nodes) + text(2, "resampled") + b"".join(text(5, c) for c in constants)
    graph += text(11, value_info("x", 1, 3, 9, 11)) + text(12, value_info("y", 1, 4, 18, 22))
    return number(1, 8) + text(7, graph) + text(8, number(2, 17))


def main(exe, device):
    faults = []

    def expect(holds, fault):
        if not holds:
            faults.append(fault)

    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "resampled.onnx"
        path.write_bytes(model())
        result = pathlib.Path(folder) / "result.json"

        def call(command, where):
            arguments = [exe, command, str(path), "--device", where, "--memory-objects", "images", "--json", str(result)]
            done = subprocess.run(arguments, stdout=subprocess.PIPE, text=True, check=True)
            return json.loads(result.read_text()), done.stdout

        planned, printed = call("optimize", device)
        ran, _ = call("run", device)
        apart, said = call("optimize", "reference")
    notes = planned["storage"]["notes"]
    expect(planned.get("device"), "optimize does not name the device that it planned for")
    expect(planned["storage"]["image_values"] > 0, f"no tensor in an image: {notes}")
    # Either the filter interpolates, or it is known why not.
    expect(not any("is not known" in n or "without a device" in n for n in notes), f"planned without facts: {notes}")
    expect(all(n in printed for n in notes), "notes are not printed")
    expect(planned["kernels"] == ran["kernels"], f"planned {planned['kernels']} kernels, {ran['kernels']} ran")
    expect(apart.get("device", "") is None, "the reference backend has a device")
    for where in (apart["storage"]["notes"], [said]):
        expect(any("without a device" in n for n in where), f"no word of planning without a device: {where}")
    for fault in faults:
        print(fault)
    return 1 if faults else 0


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))

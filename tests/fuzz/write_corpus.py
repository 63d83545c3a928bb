"""Writes the importer's corpus: the graphs of the zoo, of the light models, of other domains' operators, and of ONNX's node tests,
these in older opsets too.

usage: write_corpus.py FOLDER [NODE_TESTS]   (default: Debian's libonnx-testdata)

A node test's model appears as it is, and once more as if it were of an opset from 7 to 20: most of these are models that the
importer must refuse or adapt. Only Python's standard library is used.
"""
import pathlib
import sys

BENCH = pathlib.Path(__file__).resolve().parent.parent.parent / "bench"
OPSET_IMPORT = 8  # of ModelProto
VERSION = 2  # of OperatorSetIdProto


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


def fields(data, at, end):
    """(field number, position of its content, position behind it) of one message."""
    while at < end:
        key, at = varint(data, at)
        kind = key & 7
        if kind == 0:
            begin, (_, at) = at, varint(data, at)
        elif kind == 2:
            length, begin = varint(data, at)
            at = begin + length
        else:
            begin, at = at, at + (8 if kind == 1 else 4)
        yield key >> 3, begin, at


def with_opset(data, version):
    """The model with every opset version of one byte set to `version`."""
    changed = bytearray(data)
    for number, begin, end in fields(data, 0, len(data)):
        if number == OPSET_IMPORT:
            for inner, first, last in fields(data, begin, end):
                if inner == VERSION and last == first + 1:
                    changed[first] = version
    return bytes(changed)


def main(folder, node_tests="/usr/share/libonnx-testdata/data/node"):
    target = pathlib.Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    graphs = [path for place in ("zoo", "zoo/dynamic", "light") for path in sorted((BENCH / place).glob("*.onnx"))]
    for path in graphs:
        (target / f"zoo_{path.name}").write_bytes(path.read_bytes())
    others = [path for place in ("contrib/cases", "ml/models") for path in sorted((BENCH / place).glob("*/model.onnx"))]
    for path in others:
        (target / f"other_{path.parent.name}.onnx").write_bytes(path.read_bytes())
    tests = sorted(pathlib.Path(node_tests).glob("*/model.onnx"))
    for index, path in enumerate(tests):
        data = path.read_bytes()
        (target / f"node_{path.parent.name}.onnx").write_bytes(data)
        (target / f"older_{path.parent.name}.onnx").write_bytes(with_opset(data, 7 + index % 14))
    print(f"{len(graphs)} graphs, {len(others)} of other domains, {len(tests)} node tests, twice each")


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    main(*sys.argv[1:])

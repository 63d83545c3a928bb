"""Runs ONNX's node tests once as they are and once with every dim of every input a symbol of its own and every output open.

usage: symbolic_suite.py DNNOPT FOLDER [--filter REGEX] [--jobs N] [--least SHARE] [--json FILE] [--keep FOLDER]
                         [--run "FLAGS of `dnnopt conformance`"]...

Without --run: the reference backend, and OpenCL with --require-device in both forms of kernels. A test that passes as it is
must pass with symbols, or be reported as not supported: whatever fails, crashes or takes longer than 60 seconds is a fault, and
the exit status is 1. --least is the share of what passes as it is that must pass with symbols. Needs nothing but Python: models
are rewritten on the level of protocol buffers.
"""
import argparse
import concurrent.futures
import json
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

CHUNK = 40  # tests in one process; what does not end well is run again one by one
SECONDS = 60  # of one test


def varint(value):
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def fields(message):
    """(number, wire type, content) of each field: content is an integer for varints, else bytes."""
    at = 0

    def read():
        nonlocal at
        value = shift = 0
        while True:
            byte = message[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while at < len(message):
        tag = read()
        number, kind = tag >> 3, tag & 7
        if kind == 0:
            yield number, kind, read()
            continue
        size = {1: 8, 5: 4}.get(kind) or read()
        yield number, kind, message[at : at + size]
        at += size


def message_of(rows):
    """Protocol-buffer bytes of rows as fields() gives them."""
    out = bytearray()
    for number, kind, content in rows:
        out += varint(number << 3 | kind)
        out += varint(content) if kind == 0 else (varint(len(content)) if kind == 2 else b"") + content
    return bytes(out)


def edited(message, number, change):
    """The message with `change` applied to each field of that number; where it gives None the field is left out."""
    rows = []
    for row in fields(message):
        if row[0] == number:
            content = change(row[2])
            if content is None:
                continue
            row = (row[0], row[1], content)
        rows.append(row)
    return message_of(rows)


class Symbols:
    """Names that no other dim has."""

    def __init__(self):
        self.count = 0

    def dim(self, _):
        self.count += 1
        return message_of([(2, 2, f"symbol_{self.count}".encode())])


def with_shape(type_proto, change):
    """TypeProto: the shape of tensors (1) and sparse tensors (8), within sequences (4) and optionals (9) too."""
    for tensor in (1, 8):
        type_proto = edited(type_proto, tensor, lambda one: edited(one, 2, change))
    for container in (4, 9):
        type_proto = edited(type_proto, container, lambda one: edited(one, 1, lambda held: with_shape(held, change)))
    return type_proto


def symbolic(model):
    """A ModelProto's bytes with symbols for the dims of inputs, and nothing said of other values' shapes."""
    symbols = Symbols()

    def name_of(value_or_tensor, number):
        return next((bytes(row[2]) for row in fields(value_or_tensor) if row[0] == number), b"")

    def graph(message):
        constants = {name_of(row[2], 8) for row in fields(message) if row[0] == 5}
        free = lambda value: edited(value, 2, lambda t: with_shape(t, lambda dims: edited(dims, 1, symbols.dim)))
        message = edited(message, 11, lambda value: value if name_of(value, 1) in constants else free(value))
        message = edited(message, 12, lambda value: edited(value, 2, lambda t: with_shape(t, lambda _: None)))
        return edited(message, 13, lambda _: None)

    return edited(model, 7, graph)


def write_symbolic(test, folder):
    made = folder / test.name
    made.mkdir(parents=True)
    (made / "model.onnx").write_bytes(symbolic((test / "model.onnx").read_bytes()))
    for other in test.iterdir():
        if other.name != "model.onnx":
            (made / other.name).symlink_to(other.resolve())


def linked(tests, folder):
    for test in tests:
        (folder / test.name).symlink_to(test.resolve())


def outcomes(program, tests, flags):
    """{name: (verdict, reason)} of the tests in one process, or in one each where that ends badly."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        linked(tests, folder)
        ended = "ran too long"
        try:
            run = subprocess.run([program, "conformance", folder, *flags, "--json", "-"], capture_output=True, text=True,
                                 timeout=SECONDS + 5 * len(tests))
            if run.returncode in (0, 1):
                rows = json.loads(run.stdout)["failures"]
                result = {test.name: ("passed", "") for test in tests}
                result.update({row["name"]: (row["verdict"], row["reason"]) for row in rows})
                return result
            ended = f"exit status {run.returncode}: {run.stderr.strip()[-200:]}"
        except subprocess.TimeoutExpired:
            pass
    if len(tests) == 1:
        return {tests[0].name: ("failed", ended)}
    result = {}
    for test in tests:
        result.update(outcomes(program, [test], flags))
    return result


def count(result):
    verdicts = [verdict for verdict, _ in result.values()]
    return {verdict: verdicts.count(verdict) for verdict in ("passed", "unsupported", "failed")}


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("program")
    arguments.add_argument("folder", type=pathlib.Path)
    arguments.add_argument("--filter", default="")
    arguments.add_argument("--jobs", type=int, default=1)
    arguments.add_argument("--least", type=float, default=0)
    arguments.add_argument("--json")
    arguments.add_argument("--keep", type=pathlib.Path)
    arguments.add_argument("--run", action="append")
    chosen = arguments.parse_args()
    tests = sorted(one.parent for one in chosen.folder.glob("*/model.onnx") if re.search(chosen.filter, one.parent.name))
    runs = chosen.run or ["--device reference"] + [
        f"--device opencl --require-device --form {form}" for form in ("vectors", "groups")
    ]
    report, right = [], bool(tests)
    with tempfile.TemporaryDirectory() as name, concurrent.futures.ThreadPoolExecutor(chosen.jobs) as pool:
        folder = chosen.keep or pathlib.Path(name)
        for test in tests:
            write_symbolic(test, folder)
        free = [folder / test.name for test in tests]
        for flags in runs:
            both = []
            for suite in (tests, free):
                chunks = [suite[at : at + CHUNK] for at in range(0, len(suite), CHUNK)]
                done = pool.map(lambda chunk: outcomes(chosen.program, chunk, shlex.split(flags)), chunks)
                both.append({key: value for one in done for key, value in one.items()})
            static, symbols = both
            lost = {
                key: symbols[key][1] for key in static if static[key][0] == "passed" != symbols[key][0]
            }
            faults = {key: symbols[key][1] for key in symbols if symbols[key][0] == "failed"}
            kept = 1 - len(lost) / max(1, count(static)["passed"])
            print(f"{flags}\n  as it is      {count(static)}\n  with symbols  {count(symbols)}, {kept:.3f} of what passed")
            for key, reason in sorted(lost.items()):
                print(f"  {'FAILED' if key in faults else 'unsupported'} {key}: {reason}")
            for key, reason in sorted(faults.items()):
                if key not in lost:
                    print(f"  FAILED as it is too {key}: {reason}")
            sys.stdout.flush()
            right = right and not (set(faults) & set(lost)) and kept >= chosen.least
            report.append({"flags": flags, "static": count(static), "symbolic": count(symbols), "kept": kept, "lost": lost})
    if chosen.json:
        pathlib.Path(chosen.json).write_text(json.dumps(report, indent=1))
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())

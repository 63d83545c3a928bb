#!/usr/bin/env python3
"""Holds what each subcommand writes with --json to its schema in docs/reference/json, on a small model.

Usage: json_schemas.py DNNOPT DEVICE SOURCE-FOLDER
A schema lets a reader meet keys that come later; here a key without a row in it is a fault too. Needs jsonschema
(Debian: python3-jsonschema); without it status 77.
"""
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

try:
    import jsonschema
except ImportError:
    print("skipped: no jsonschema (Debian: python3-jsonschema)")
    sys.exit(77)

from walk_and_compare import model


def closed(schema):
    """The schema with no other keys allowed in any object that lists its keys."""
    if isinstance(schema, list):
        return [closed(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    made = {key: closed(one) for key, one in schema.items()}
    if isinstance(schema.get("properties"), dict) and "type" in schema:
        made.setdefault("additionalProperties", False)
    return made


def main(exe, device, source):
    schemas = {path.name.split(".")[0]: path for path in (pathlib.Path(source) / "docs/reference/json").glob("*.json")}
    faults = 0
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "m.onnx").write_bytes(model())
        (folder / "walk.json").write_text('[{"batch": 2}]')
        (folder / "records.csv").write_text("id,lower,upper,size\na,0,3,100\nb,2,5,40\n")
        shutil.copytree(pathlib.Path(source) / "bench/ml/models/binarizer", folder / "conformance/binarizer")
        on, m = ["--device", device], folder / "m.onnx"
        profiling = ["profile", m, *on, "--runs", "2", "--warmup", "1"]
        calls = [["devices"], ["info", m], ["weights", m], ["optimize", m, *on, "--extended-graph"],
                 ["optimize", m, "--device", "reference"], ["run", m, *on], ["run", m, "--device", "reference"],
                 *([["build", m, *on]] if device != "reference" else []),
                 ["verify", m, *on], ["conformance", folder / "conformance", "--device", "reference"], ["bench", m, *on, "--runs", "2"],
                 # Only a device has memory of its own that inputs and outputs may lie in, and holds halves in it.
                 *([["bench", m, *on, "--runs", "2", "--bind-io", "--precision", "fp16", "--io-types", "float16"],
                    ["profile", m, *on, "--runs", "2", "--warmup", "1", "--bind-io"]] if device != "reference" else []),
                 ["walk", m, *on, "--walk", folder / "walk.json"], profiling, [*profiling, "--mode", "monitor"],
                 ["compare", folder / "profile.json", folder / "profile.json"],
                 # A search that keeps nothing writes fewer keys: the second keeps what it tried, slower or not.
                 *(["tune", m, *on, "--budget", "0.2", "--gain", gain, "--cache", folder / "cache"]
                   for gain in ("0.03", "-1000")),
                 ["plan-memory", folder / "records.csv"]]
        told = set()
        for call in calls:
            file = folder / f"{call[0]}.json"
            done = subprocess.run([exe, *map(str, call), "--json", str(file), "--quiet"], capture_output=True, text=True)
            if done.returncode != 0 or done.stdout or done.stderr:
                print(f"{call}: status {done.returncode}, prints {done.stdout}{done.stderr}")
                faults += 1
                continue
            schema = json.loads(schemas[call[0]].read_text())
            jsonschema.Draft202012Validator.check_schema(schema)
            for error in jsonschema.Draft202012Validator(closed(schema)).iter_errors(json.loads(file.read_text())):
                print(f"{call[0]}: {'/'.join(map(str, error.absolute_path))}: {error.message[:300]}")
                faults += 1
            told.add(call[0])
    for missing in sorted(set(schemas) - told):
        print(f"no call answers to {missing}.schema.json")
        faults += 1
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

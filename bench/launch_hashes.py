"""Lists a hash of every launch's source for the networks of the zoo, or compares two such lists.

usage: launch_hashes.py list DNNOPT [--device SPEC] [--forms native,groups] [--models REGEX] > HASHES.json
       launch_hashes.py compare BEFORE.json AFTER.json

A move of code leaves all hashes alone; a change of what is generated shows which launches of which networks it changes. The
networks with symbolic dims (bench/zoo/dynamic) are lowered with their symbols. Nothing is run: `dnnopt optimize` generates.
`compare` exits with 1 where something differs.
"""
import argparse
import json
import pathlib
import re
import subprocess
import sys
import tempfile

ZOO = pathlib.Path(__file__).resolve().parent / "zoo"


def launches(executable, model, device, form):
    with tempfile.NamedTemporaryFile(suffix=".json") as result:
        command = [executable, "optimize", str(model), "--device", device, "--json", result.name]
        if form != "native":
            command += ["--form", form]
        done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, timeout=600)
        if done.returncode != 0:
            return {"error": done.stderr.strip().splitlines()[-1] if done.stderr.strip() else str(done.returncode)}
        told = json.load(open(result.name))
    return {
        "kernels": told["kernels"],
        "host_ops": told["host_ops"],
        "seconds": told["seconds"],
        "launches": [[row["name"], row["version"], row.get("source_hash", "")] for row in told["launches"]],
    }


def list_hashes(options):
    found = {}
    models = sorted(ZOO.glob("*.onnx")) + sorted((ZOO / "dynamic").glob("*.onnx"))
    models = [model for model in models if re.search(options.models, model.stem)]
    for at, model in enumerate(models):
        print(f"{at + 1} of {len(models)}: {model.stem}", file=sys.stderr)
        for form in options.forms.split(","):
            found[f"{model.stem} {form}"] = launches(options.executable, model, options.device, form)
    json.dump(found, sys.stdout, indent=1)
    print()


def numbered(rows):
    """Rows by name and by which of that name they are: versions of a launch share its name."""
    seen = {}
    result = {}
    for row in rows:
        seen[row[0]] = seen.get(row[0], 0) + 1
        result[row[0], seen[row[0]]] = row
    return result


def compare(options):
    before, after = json.load(open(options.before)), json.load(open(options.after))
    changed = 0
    print("| network, form | launches before | after | changed sources | versions that changed |\n|---|---|---|---|---|")
    for name in sorted(before.keys() | after.keys()):
        old, new = before.get(name, {}), after.get(name, {})
        if "launches" not in old or "launches" not in new:
            print(f"| {name} | {old.get('error', '')} | {new.get('error', '')} | | |")
            changed += old != new
            continue
        rows = numbered(old["launches"])
        hashed = all(row[2] for row in old["launches"] + new["launches"])  # executables before 0.2 tell no hashes
        column = 2 if hashed else 1
        differing = {key: row for key, row in numbered(new["launches"]).items() if rows.get(key, [None] * 3)[column] != row[column]}
        versions = sorted({f"{rows[key][1] if key in rows else 'none'} to {row[1]}" for key, row in differing.items()})
        changed += bool(differing) or old["kernels"] != new["kernels"]
        print(f"| {name} | {old['kernels']} | {new['kernels']} | {len(differing)} | {', '.join(versions)} |")
    print(f"\n{changed} of {len(before.keys() | after.keys())} differ")
    return 1 if changed else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    listing = commands.add_parser("list")
    listing.add_argument("executable")
    listing.add_argument("--device", default="opencl")
    listing.add_argument("--forms", default="native,groups")
    listing.add_argument("--models", default="")
    comparing = commands.add_parser("compare")
    comparing.add_argument("before")
    comparing.add_argument("after")
    options = parser.parse_args()
    return list_hashes(options) if options.command == "list" else compare(options)


if __name__ == "__main__":
    sys.exit(main())

"""The scripts of the papers and docs/measurements/papers.md name the same tables and figures, with the same flags.

usage: papers.py SOURCE_FOLDER
"""
import pathlib
import re
import subprocess
import sys

PAPERS = {"dnnfusion": "DNNFusion", "smartmem": "SmartMem", "sod2": "SoD2", "tflite_gpu": "TFLite GPU", "nnperf": "nnPerf"}


def listed(root, script):
    """{table or figure: flag, or nothing where the script gives a reason}."""
    command = [sys.executable, "-B", str(root / f"bench/papers/{script}.py"), "--list"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    rows = [line.split(" | ") for line in done.stdout.splitlines()]
    return {row[0]: row[2] if row[2].startswith("--") else "" for row in rows}


def told(text, title):
    """The same of a section of the page; what is not done has a reason in place of a flag."""
    section = re.search(rf"^## {re.escape(title)}\n(.*?)(?=^## |\Z)", text, re.DOTALL | re.MULTILINE)
    if not section:
        return {}
    rows = re.findall(r"^\| ((?:Table|Figure|Listing|Algorithm) \d+) \| [^|]* \| ([^|]*) \| ([^|]*) \|$", section[1], re.MULTILINE)
    return {name: "" if flag == "none" else flag.strip("`") for name, flag, result in rows if result.strip()}


def main():
    root = pathlib.Path(sys.argv[1])
    text = (root / "docs/measurements/papers.md").read_text()
    faults, items, done = [], 0, 0
    for script, title in PAPERS.items():
        here, there = listed(root, script), told(text, title)
        items, done = items + len(here), done + sum(bool(flag) for flag in here.values())
        for name in sorted({*here, *there}):
            if here.get(name) != there.get(name):
                faults.append(f"{title} {name}: the script has {here.get(name)!r}, the page {there.get(name)!r}")
    counts = re.search(r"(\d+) of (\d+) have a command", text)
    if not counts or (int(counts[1]), int(counts[2])) != (done, items):
        faults.append(f"papers.md does not say that {done} of {items} have a command")
    for fault in faults:
        print(fault)
    print(f"{items} tables and figures, {done} with a command")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())

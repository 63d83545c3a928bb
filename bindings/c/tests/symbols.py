#!/usr/bin/env python3
"""Holds the symbols of libdnnopt.so against the list of the interface, the list against the header, and the program of
docs/how_to/c.md against example.c.

symbols.py NM LIBRARY FOLDER-OF-bindings/c

What symbols.txt lists is promised to programs: a line may be added, and none taken away within one SONAME.
"""
import pathlib
import re
import subprocess
import sys


def main():
    nm, library, folder = sys.argv[1:]
    folder = pathlib.Path(folder)
    promised = (folder / "symbols.txt").read_text().split()
    listing = subprocess.run([nm, "--dynamic", "--defined-only", library],
                             check=True, capture_output=True, text=True).stdout
    # nm prints the version itself as an absolute symbol.
    found = sorted(line.split()[2] for line in listing.splitlines() if line.split()[1] != "A")
    header = (folder / "include" / "dnnopt.h").read_text()
    declared = re.findall(r"^DNNOPT_API [^;(]*?(dnnopt_\w+)\(", header, re.MULTILINE)
    wrong = [f"only in the library: {name}" for name in found if name not in promised]
    wrong += [f"not in the library: {name}" for name in promised if name not in found]
    wrong += [f"not in the list: {name}" for name in declared if not any(p.startswith(name + "@@") for p in promised)]
    wrong += [f"not in the header: {name}" for name in promised if name.split("@")[0] not in declared]
    if (folder / "example.c").read_text() not in (folder.parent.parent / "docs/how_to/c.md").read_text():
        wrong.append("docs/how_to/c.md has another program than example.c")
    if len(declared) > 30:
        wrong.append(f"{len(declared)} functions, more than 30")
    print("\n".join(wrong) or f"{len(found)} symbols")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

"""Fails where a header decides by the code `unsupported` of an error: what has no form says so as a value, or by its type
(dnnopt::inexpressible).

usage: refusals.py ROOT
"""
import pathlib
import re
import sys

DECIDES = re.compile(r"code\(\)\s*[!=]=\s*errc::unsupported|errc::unsupported\s*[!=]=|case errc::unsupported")
# The reference backend evaluates what it can, for passes that do not include it: it tells what it lacks by an error.
EXEMPT = {"passes/folding/fold_constants.hpp"}


def main(root):
    headers = pathlib.Path(root) / "include" / "dnnopt"
    found = []
    seen = set()
    for path in sorted(headers.rglob("*.hpp")):
        name = path.relative_to(headers).as_posix()
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if not DECIDES.search(line):
                continue
            seen.add(name)
            if name not in EXEMPT:
                found.append(f"{name}:{number}: {line.strip()}")
    found += [f"{name} is exempt and decides by no such error" for name in sorted(EXEMPT - seen)]
    for line in found:
        print(line)
    print(f"{len(seen & EXEMPT)} exempt, {len(found)} to mend")
    return 1 if found else 0


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1]))

"""Every pass has a page in docs/concepts/passes/, which holds what examples/06_each_pass.cpp prints of it.

usage: passes.py SOURCE_FOLDER
"""
import pathlib
import re
import sys

root = pathlib.Path(sys.argv[1])
printed = (root / "examples/06_each_pass.output").read_text()
sections = {part.split("\n", 1)[0]: part.split("\n", 1)[1] for part in printed.split("== ")[1:]}
pages = {page.stem: page.read_text() for page in (root / "docs/concepts/passes").glob("*.md")}
table = (root / "include/dnnopt/passes/pass_table.hpp").read_text()
index = pages.get("index", "")
faults = []

for name, section in sections.items():
    before, after = re.split(r"^-- \d+ edits\n", section, flags=re.MULTILINE)
    for what, text in (("before", before), ("after", after)):
        if not any(text in page for page in pages.values()):
            faults.append(f"no page of docs/concepts/passes/ has the graph {what} {name} as 06_each_pass prints it")

# Passes by the names of their types, and rows that are named by text.
in_order = table[table.index("default_passes") :]
for name in sorted(set(re.findall(r"(\w+)::name", in_order))):
    name = "fuse" if name == "fuse_blocks" else name
    if name not in pages:
        faults.append(f"pass {name} has no page docs/concepts/passes/{name}.md")
    if name not in sections:
        faults.append(f"pass {name} is not in examples/06_each_pass.cpp")
for name in pages:
    if name != "index" and f"({name}.md)" not in index:
        faults.append(f"docs/concepts/passes/index.md does not name {name}.md")

print("\n".join(faults) if faults else f"{len(sections)} passes, {len(pages)} pages")
sys.exit(1 if faults else 0)

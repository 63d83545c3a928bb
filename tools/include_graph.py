#!/usr/bin/env python3
"""Draws which rooms of include/dnnopt include which, and checks that arrows go one way and rooms stay small.

usage: include_graph.py [--dot FILE] [--svg FILE] [SOURCE_FOLDER]

Rooms are the folders of include/dnnopt, and those of backend/ beneath it. Headers that lie beside the folders are three
rooms: `values` (what includes no room), `graph` (what includes ops/) and `top` (session.hpp and its kind). Bodies in
detail/ belong to the room of their header. Checked are:

- no way of arrows leads from a room back to it;
- only backend/ and `top` hold headers of the OpenCL layer, as cmake/layers.cmake finds it;
- the picture docs/concepts/rooms.svg has the arrows that --svg would draw;
- a folder holds at most 15 headers and kernels, and each has at most 450 lines. What is beyond either stands in a
  table below with its reason; a row that is not needed any more is a fault too.

An arrow that others imply is not drawn. Exits with 1 where something breaks this. --svg needs Graphviz.
"""
import argparse
import collections
import html
import pathlib
import re
import shutil
import subprocess
import sys

MOST_FILES = 15
MOST_LINES = 450
TOP = {"async_session.hpp", "bound_graph.hpp", "compile_options.hpp", "compile_report.hpp", "device_options.hpp",
       "dnnopt.hpp", "half_io.hpp", "model.hpp", "placed_graph.hpp", "session.hpp", "session_programs.hpp",
       "session_state.hpp", "tune.hpp"}

# Folders with more files, and why.
FULL_FOLDERS = {
    ".": "what programs include by name: the types that every room shares, and the top",
    "onnx": "a header for each step of the import and for each family of older opsets",
    "onnx/contrib": "a header for each family of ONNX Runtime's operators",
    "ops": "a header for each family of ONNX's operators",
    "passes": "a header for each pass that has no family",
    "passes/rewriting": "the tables of rules beside the engine that applies them",
    "reference": "a header for each family of ONNX's operators",
}
# Headers and kernels with more lines, and why.
LONG_FILES = {
    "memory/offsets/valley_search.hpp": "one search whose parts share its state",
    "onnx/model_proto.hpp": "a reader for each message of ONNX",
    "reference/view.hpp": "a function for each operator that moves elements",
}


def headers_of(root):
    """Every header and kernel by its path below root, with its text."""
    ours = (p for p in sorted(root.rglob("*")) if p.suffix in (".hpp", ".cl"))
    return {p.relative_to(root).as_posix(): p.read_text() for p in ours}


def includes_of(files):
    """By header, the headers and kernels of ours that it includes."""
    found = {}
    for name, text in files.items():
        named = re.findall(r'^\s*#\s*include\s*[<"]dnnopt/([^>"]+)[>"]', text, re.MULTILINE)
        found[name] = {other for other in named if other in files}
    return found


def reachable(edges, start):
    seen, work = set(), [start]
    while work:
        for other in edges.get(work.pop(), ()):
            if other not in seen:
                seen.add(other)
                work.append(other)
    return seen


def rooms_of(includes):
    """The room of each file."""
    room = {}
    for name in includes:
        parts = name.split("/")
        if parts[0] == "backend":
            room[name] = "/".join(parts[:2])
        elif len(parts) > 1 and parts[0] != "detail":
            room[name] = parts[0]
    flat = [name for name in includes if name not in room]
    for name in flat:
        header = re.sub(r"^detail/(\w+?)(_bodies)?\.hpp$", r"\1.hpp", name)
        if header in TOP:
            room[name] = "top"
        else:
            below = reachable(includes, header if header in includes else name)
            room[name] = "graph" if any(other.startswith("ops/") for other in below) else "values"
    return room


def opencl_layer(files, includes):
    """As cmake/layers.cmake: what lies in backend/, includes a header of OpenCL, or includes a header that does."""
    own = re.compile(r"^ *# *include *<CL/", re.MULTILINE)
    layer = {name for name, text in files.items() if name.startswith("backend/") or own.search(text)}
    grown = True
    while grown:
        more = {n for n in files if n not in layer and includes[n] & layer}
        grown = bool(more)
        layer |= more
    return layer


def room_edges(includes, room):
    """Between rooms, the includes that make an arrow."""
    edges = collections.defaultdict(list)
    for name, others in includes.items():
        for other in sorted(others):
            if room[name] != room[other]:
                edges[room[name], room[other]].append(f"{name} includes {other}")
    return edges


def faults_of(files, includes, room, edges):
    faults = []
    arrows = collections.defaultdict(set)
    for a, b in edges:
        arrows[a].add(b)
    for (a, b), causes in sorted(edges.items()):
        if a in reachable(arrows, b):
            more = f" and {len(causes) - 1} more" if causes[1:] else ""
            faults.append(f"{a} -> {b} is part of a circle: {causes[0]}{more}")
    for name in sorted(opencl_layer(files, includes)):
        if not name.startswith("backend/") and room[name] != "top":
            faults.append(f"{name} lies outside of backend/ and includes OpenCL, if not itself")
    count = collections.Counter(str(pathlib.PurePosixPath(name).parent) for name in files)
    for folder, files_there in sorted(count.items()):
        if files_there > MOST_FILES and folder not in FULL_FOLDERS:
            faults.append(f"{folder}/ holds {files_there} files, more than {MOST_FILES}")
    for name, text in files.items():
        lines = text.count("\n")
        if lines > MOST_LINES and name not in LONG_FILES:
            faults.append(f"{name} has {lines} lines, more than {MOST_LINES}")
    for folder in FULL_FOLDERS:
        if count[folder] <= MOST_FILES:
            faults.append(f"FULL_FOLDERS: {folder}/ holds {count[folder]} files and needs no row")
    for name in LONG_FILES:
        if files.get(name, "").count("\n") <= MOST_LINES:
            faults.append(f"LONG_FILES: {name} needs no row")
    return faults


def drawn_arrows(edges):
    """The arrows that no others imply."""
    arrows = collections.defaultdict(set)
    for a, b in edges:
        arrows[a].add(b)
    return [(a, b) for a in sorted(arrows) for b in sorted(arrows[a])
            if not any(b in reachable(arrows, c) for c in arrows[a] - {b})]


def dot_of(edges):
    look = 'fontname="sans-serif", fontsize=11'
    lines = ["digraph rooms {", "  rankdir=BT;", f"  node [shape=box, {look}];", "  edge [arrowsize=0.6];"]
    rooms = sorted({r for edge in edges for r in edge})
    lines += ["  subgraph cluster_backend {", f'    graph [label="backend (OpenCL)", {look}, style=dashed];']
    lines += [f'    "{r}" [label="{r.split("/")[1]}"];' for r in rooms if r.startswith("backend/")] + ["  }"]
    lines += [f'  "{r}";' for r in rooms if not r.startswith("backend/")]
    lines += [f'  "{a}" -> "{b}";' for a, b in drawn_arrows(edges)]
    return "\n".join(lines + ["}", ""])


def self_test():
    files = {"a.hpp": "", "ops/o.hpp": '#include <dnnopt/a.hpp>\n', "graph.hpp": "#include <dnnopt/ops/o.hpp>\n",
             "backend/x/k.hpp": "#include <CL/cl.h>\n#include <dnnopt/graph.hpp>\n",
             "passes/p.hpp": "#include <dnnopt/graph.hpp>\n", "session.hpp": "#include <dnnopt/backend/x/k.hpp>\n"}
    includes = includes_of(files)
    room = rooms_of(includes)
    assert [room[n] for n in files] == ["values", "ops", "graph", "backend/x", "passes", "top"], room
    own = [f for f in faults_of(files, includes, room, room_edges(includes, room)) if "needs no row" not in f]
    assert not own, own
    files["ops/o.hpp"] += "#include <dnnopt/passes/p.hpp>\n"
    files["passes/p.hpp"] += "#include <dnnopt/backend/x/k.hpp>\n" + "\n" * MOST_LINES
    includes = includes_of(files)
    room = rooms_of(includes)
    text = "\n".join(faults_of(files, includes, room, room_edges(includes, room)))
    assert "circle: ops/o.hpp includes passes/p.hpp" in text and "passes/p.hpp lies outside" in text, text
    assert f"passes/p.hpp has {MOST_LINES + 2} lines" in text, text


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("source", nargs="?", default=pathlib.Path(__file__).resolve().parent.parent, type=pathlib.Path)
    parser.add_argument("--dot", type=pathlib.Path, help="write the graph for Graphviz")
    parser.add_argument("--svg", type=pathlib.Path, help="draw it by Graphviz")
    a = parser.parse_args()
    self_test()
    files = headers_of(a.source / "include/dnnopt")
    includes = includes_of(files)
    room = rooms_of(includes)
    edges = room_edges(includes, room)
    if a.dot:
        a.dot.write_text(dot_of(edges))
    if a.svg:
        if not shutil.which("dot"):
            sys.exit("--svg needs Graphviz (Debian: graphviz)")
        drawn = subprocess.run(["dot", "-Tsvg"], input=dot_of(edges), capture_output=True, text=True, check=True).stdout
        a.svg.write_text(re.sub(r"<!--.*?-->\n?", "", drawn, flags=re.DOTALL))
    faults = faults_of(files, includes, room, edges)
    picture = a.source / "docs/concepts/rooms.svg"
    shown = re.findall(r"<title>([^<]+)</title>", picture.read_text()) if picture.exists() else []
    shown = {tuple(html.unescape(title).split("->")) for title in shown if "->" in html.unescape(title)}
    if shown != set(drawn_arrows(edges)):
        faults.append("other arrows than docs/concepts/rooms.svg shows; draw it again by --svg docs/concepts/rooms.svg")
    rooms = set(room.values())
    print("\n".join(faults) if faults else f"{len(files)} files in {len(rooms)} rooms, {len(edges)} arrows, one way")
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()

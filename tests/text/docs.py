"""What pages say about the tree holds: links, anchors, paths of files, widths, and counts that are cheap to take.

usage: docs.py SOURCE_FOLDER
       docs.py --self-test
"""
import collections
import pathlib
import re
import subprocess
import sys
import unicodedata

WIDTH = 120
# Dated logs tell what was so on a day: names of files there may be of files that have gone since.
DATED = ("docs/measurements/", "CHANGELOG.md")


def lines_outside_code(text):
    """Pairs of line number and line, without fenced code blocks and HTML comments."""
    fence = None
    for number, line in enumerate(text.split("\n"), 1):
        mark = re.match(r"\s*(```|~~~)", line)
        if mark:
            fence = None if fence == mark[1] else fence or mark[1]
        elif fence is None and not line.startswith("<!--"):
            yield number, line


def anchors(text):
    """The anchors that GitHub gives to the headings of a page."""
    found, seen = set(), {}
    for _, line in lines_outside_code(text):
        heading = re.match(r"#{1,6}\s+(.*?)\s*#*$", line)
        if not heading:
            continue
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading[1]).replace("`", "").replace("*", "").lower()
        kept = "".join(c for c in plain if c in " -_" or unicodedata.category(c)[0] in "LN")
        anchor = kept.replace(" ", "-")
        number = seen.get(anchor, 0)
        seen[anchor] = number + 1
        found.add(f"{anchor}-{number}" if number else anchor)
    return found


def links(text):
    """Pairs of line number and target of a page's links and images; code spans hold none."""
    for number, line in lines_outside_code(text):
        for target in re.findall(r"\]\(([^)\s]+)(?:\s+\"[^\"]*\")?\)", re.sub(r"`[^`]*`", "", line)):
            yield number, target


def too_long(line):
    """Whether a line could be broken: tables cannot, nor can one word (a link) that is longer than a line alone."""
    if len(line) <= WIDTH or line.lstrip().startswith("|"):
        return False
    longest = max(line.split(), key=len)
    return not (len(longest) > WIDTH - 20 and ("](" in longest or "://" in longest))


def faults_of_page(root, page, text, tree):
    """tree: all files of the repository as texts relative to the root."""
    faults = []
    name = page.relative_to(root).as_posix()
    for number, line in lines_outside_code(text):
        if too_long(line):
            faults.append(f"{name}:{number}: {len(line)} columns, more than {WIDTH}")
    for number, target in links(text):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        if not file.exists():
            faults.append(f"{name}:{number}: the link {target} leads to no file")
        elif anchor and (file.suffix != ".md" or anchor not in anchors(file.read_text())):
            faults.append(f"{name}:{number}: the link {target} leads to no heading")
    if not name.startswith(DATED):
        for number, line in enumerate(text.split("\n"), 1):
            for path in re.findall(r"`([\w./-]+\.(?:hpp|cpp|cl|py|sh|cmake))`", line):
                if not exists(path, tree):
                    faults.append(f"{name}:{number}: there is no file {path}")
    return faults


def exists(path, tree):
    return path.startswith("CL/") or any(file == path or file.endswith("/" + path) for file in tree)


def faults_of_references(root, tree):
    """Paths of pages in all texts exist, and paths of sources in the comments of headers and kernels."""
    faults = []
    for name in tree:
        if name.startswith(DATED) or not re.search(r"\.(md|hpp|cpp|cl|py|sh|cmake|txt)$|/run$", name):
            continue
        for number, line in enumerate((root / name).read_text(errors="replace").split("\n"), 1):
            for path in re.findall(r"(?<![\w/.])docs/[\w/]+\.md", line):
                if not (root / path).exists():
                    faults.append(f"{name}:{number}: there is no page {path}")
            if re.search(r"^include/.*\.(hpp|cl)$", name) and not line.lstrip().startswith("#"):
                for path in re.findall(r"(?<![\w<])([\w/]+\.(?:hpp|cl|cpp|py))\b", line):
                    if not exists(path, tree):
                        faults.append(f"{name}:{number}: there is no file {path}")
    return faults


def first(pattern, text, what):
    match = re.search(pattern, text, re.DOTALL)
    if not match:
        raise SystemExit(f"docs.py: {what} is not where this script looks for it")
    return match[1]


def page(root, name):
    """The text of the page of that name that is no log."""
    return next(p for p in (root / "docs").rglob(name) if "measurements" not in p.parts).read_text()


def error_codes(root):
    """errors.md has a section for each code."""
    header = (root / "include/dnnopt/error.hpp").read_text()
    listed = first(r"enum class errc[^{]*\{([^}]*)\}", header, "the list of error codes")
    for code in re.findall(r"^\s+(\w+)[ ,]", listed, re.MULTILINE):
        if not re.search(rf"^## \d+ {code}$", page(root, "errors.md"), re.MULTILINE):
            yield f"errors.md does not explain {code}"


def node_tests(root):
    """reference_backend.md tells as many node tests as CTest asks for."""
    tests = (root / "tests/CMakeLists.txt").read_text()
    for device, option in (("reference", "reference"), ("OpenCL", "opencl")):
        count = first(rf'"\$\{{folder\}}" (\d+) --device {option}', tests, f"how many node tests pass, {device}")
        if not re.search(rf"\b{int(count):,}\b|\b{count}\b", page(root, "reference_backend.md")):
            yield f"reference_backend.md does not say that {count} node tests pass ({device}; tests/CMakeLists.txt)"


def operators(root):
    """operators.md names every operator."""
    text = page(root, "operators.md")
    struct = re.compile(r'^struct \w+_op\b[^{;]*\{.*?\bname = "(\w+)"', re.DOTALL | re.MULTILINE)
    for header in sorted((root / "include/dnnopt/ops").rglob("*.hpp")):
        for name in struct.findall(header.read_text()):
            if not re.search(rf"\b{name}\b", text):
                yield f"operators.md lacks {name}"


def flags(root):
    """command_line.md names every flag of the tool."""
    text = page(root, "command_line.md")
    for source in sorted((root / "examples/dnnopt").glob("*.cpp")):
        for flag in re.findall(r'"(?:-\w,)?(--[a-z-]+)', source.read_text()):
            if not re.search(rf"{flag}(?![a-z-])", text):
                yield f"command_line.md lacks {flag}"


def kernels(root):
    """reference/kernels.md has every version and every parameter that a tuner chooses."""
    text = (root / "docs/reference/kernels.md").read_text()
    codegen = root / "include/dnnopt/backend/codegen"
    row = (codegen / "lowering_row.hpp").read_text()
    for version in re.findall(r'"(\w+)"', first(r"kernel_versions = .*?\(\{(.*?)\}\)", row, "the list of versions")):
        if f"`{version}`" not in text:
            yield f"reference/kernels.md lacks the version {version}"
    spaces = first(r"tuning_spaces\{(.*?\n)\};", (codegen / "tuning.hpp").read_text(), "what can be tuned")
    families = re.split(r'tuning_space\{\s*"(\w+)"', spaces)[1:]
    for family, space in zip(families[::2], families[1::2]):
        rows = re.search(rf"^\| `{family}` \|.*\n(\| \|.*\n)*", text.partition("## Parameters")[2], re.MULTILINE)
        for name in re.findall(r'tunable_parameter\{"(\w+)"', space):
            if not rows or f"`{name}`" not in rows[0]:
                yield f"reference/kernels.md lacks the parameter {name} of {family}"


def rules(root):
    """rewriting.md counts the rules of each family."""
    made = r"detail::(associative|distributive|commutative|recognition|canonical)\("
    counts = collections.Counter()
    for header in (root / "include/dnnopt/passes/rewriting").glob("*_rules.hpp"):
        counts.update(re.findall(made, header.read_text()))
    paper = ", ".join(str(counts[f]) for f in ("associative", "distributive")) + f" and {counts['commutative']} here"
    if paper not in page(root, "rewrite.md"):
        yield f"passes/rewrite.md does not say: {paper}"
    if f"({counts['canonical']} rules), recognition ({counts['recognition']})" not in page(root, "recognize.md"):
        yield "passes/recognize.md tells of other numbers of rules"
    for family, count in counts.items():
        row = rf"\n\| `{family}\w*_rules.hpp`[^|]*\| (\d+) \|"
        told = int(first(row, page(root, "rewriting.md"), f"how many {family} rules there are"))
        if told != count:
            yield f"rewriting.md tells of {told} {family} rules, there are {count}"


def ways(root):
    """Links lead from docs/index.md to every page."""
    reached, queue = set(), [root / "docs/index.md"]
    while queue:
        at = queue.pop()
        if at in reached or not at.exists():
            continue
        reached.add(at)
        for _, target in links(at.read_text()):
            path = target.partition("#")[0]
            if path.endswith(".md") and not re.match(r"[a-z]+:", target):
                queue.append((at.parent / path).resolve())
    for path in sorted((root / "docs").rglob("*.md")):
        if path not in reached:
            yield f"no way of links leads from docs/index.md to {path.relative_to(root)}"


def quotes(root):
    """C++ on how-to pages stands in an example letter by letter, so that it is compiled."""
    examples = [p.read_text() for p in (root / "examples").rglob("*.cpp")]
    for path in [root / "docs/start.md", *sorted((root / "docs/how_to").glob("*.md"))]:
        for block in re.findall(r"^```cpp\n(.*?)^```", path.read_text(), re.DOTALL | re.MULTILINE):
            if not any(block in text for text in examples):
                begin = block.splitlines()[0].strip()
                yield f"{path.relative_to(root)}: no example has the code that begins with {begin}"


def versions(root):
    """The version stands in version.hpp; what cannot read it there says the same."""
    header = (root / "include/dnnopt/version.hpp").read_text()
    parts = [re.search(rf"VERSION_{part} (\d+)", header)[1] for part in ("MAJOR", "MINOR", "PATCH")]
    for path, told in (("packaging/vcpkg/dnnopt/vcpkg.json", f'"version": "{".".join(parts)}"'),
                       ("bindings/python/dnnopt/_library.py", f'"libdnnopt.so.{".".join(parts[:2])}"'),
                       ("packaging/check_deb.sh", f'libdnnopt{".".join(parts[:2])} ')):
        if told not in (root / path).read_text():
            yield f"{path} does not say {told}"


def faults_of_counts(root):
    """Numbers and lists of pages that another file of the tree decides."""
    checks = (error_codes, node_tests, operators, flags, kernels, rules, ways, quotes, versions)
    return [fault for check in checks for fault in check(root)]


def self_test():
    text = "# A `b` (c), d\n## A b\n## A b\n```\n# no\n```\n[x](y.md#z) `[n](o)`\n"
    assert anchors(text) == {"a-b-c-d", "a-b", "a-b-1"}, anchors(text)
    assert list(links(text)) == [(7, "y.md#z")]
    assert too_long("word " * 30) and not too_long("| " + "cell " * 30) and not too_long("word")
    assert not too_long("[" + "x" * 60 + "](" + "y" * 60 + ")") and too_long("[x](y.md) " + "word " * 30)
    root = pathlib.Path("/nonexistent")
    assert len(faults_of_page(root, root / "p.md", "[a](b.md)\n`c.hpp`\n`d/e.hpp`\n", ["x/d/e.hpp"])) == 2


if sys.argv[1:] == ["--self-test"]:
    self_test()
    sys.exit(0)
self_test()
root = pathlib.Path(sys.argv[1]).resolve()
listed = subprocess.run(["git", "-C", str(root), "ls-files", "--cached", "--others", "--exclude-standard"],
                        capture_output=True, text=True)
skipped = {".git", "build"}
if listed.returncode == 0:
    tree = [name for name in listed.stdout.split("\n") if name and (root / name).is_file()]
else:  # an archive of the sources
    tree = [p.relative_to(root).as_posix() for p in root.rglob("*") if p.is_file() and not skipped & set(p.parts)]
pages = [root / name for name in tree if name.endswith(".md")]
faults = [fault for page in pages for fault in faults_of_page(root, page, page.read_text(), tree)]
faults += faults_of_references(root, tree) + faults_of_counts(root)
print("\n".join(faults) if faults else f"{len(pages)} pages")
sys.exit(1 if faults else 0)

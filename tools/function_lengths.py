#!/usr/bin/env python3
"""Functions of include/dnnopt that have more than 80 lines, and why.

usage: function_lengths.py [SOURCE_FOLDER]
       function_lengths.py --self-test

A function counts from the line of its opening brace to that of its closing one, as clang-format sets them. Those that
are longer stand in a table below with their lengths; it only shrinks: a function that grows beyond its row is a fault,
and so is a row that is longer than its function or is not needed any more. Exits with 1 where there is a fault.
"""
import pathlib
import re
import sys

MOST_LINES = 80

# Longer functions by header and name, with their lines.
LONG = {}


def without_text(source):
    """The source with comments, characters and strings blanked out; lines stay where they are."""
    blank = lambda found: re.sub(r"[^\n]", " ", found[0])
    pattern = r'R"(\w*)\(.*?\)\1"|//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\''
    source = re.sub(r"^#.*?[^\\]$", blank, re.sub(r"(?<=\d)'(?=\d)", "", source), flags=re.DOTALL | re.MULTILINE)
    return re.sub(pattern, blank, source, flags=re.DOTALL)


def name_of(head):
    """The name of the function whose text before its body is `head`; None where it is none."""
    head = " ".join(head.split())
    if re.match(r"(?:template ?<.*?> )?(?:inline )?(?:namespace|struct|class|enum|union|extern)\b", head):
        return None
    found = re.search(r"((?:\w+::)*(?:~?\w+|operator\W+)) ?\(", re.sub(r"\[\[[\w:, ()\"]*\]\]", "", head))
    if found is None or found[1] in ("if", "for", "while", "switch", "catch"):
        return None
    return found[1]


def functions_of(source):
    """Triples of name, first line and number of lines: functions that lie in no other function."""
    text = without_text(source)
    opened = []
    inside = 0
    start = 0
    for at, char in enumerate(text):
        if char == "{":
            # The braces of a default argument belong to the head.
            begins = None if text.count("(", start, at) > text.count(")", start, at) else at
            name = name_of(text[start:at]) if inside == 0 and begins is not None else None
            opened.append((name, begins))
            inside += name is not None or inside > 0
            start = start if begins is None else at + 1
        elif char == "}" and opened:
            name, begins = opened.pop()
            inside = max(inside - 1, 0)
            if name is not None:
                yield name, text.count("\n", 0, begins) + 1, text.count("\n", begins, at) + 1
            start = start if begins is None else at + 1
        elif char == ";":
            start = at + 1


def faults_of(lengths, allowed):
    """What is wrong with `lengths`, by header and name."""
    faults = []
    for key, lines in sorted(lengths.items()):
        most = allowed.get(key, MOST_LINES)
        if lines > most:
            faults.append(f"{key} has {lines} lines, more than {most}")
    for key, most in sorted(allowed.items()):
        lines = lengths.get(key, 0)
        if lines <= MOST_LINES:
            faults.append(f"{key} has {lines} lines: its row is not needed")
        elif lines < most:
            faults.append(f"{key} has {lines} lines: its row says {most}")
    return faults


def self_test():
    source = """// f() {
namespace a {
/// Text with a brace: {
class b {
  [[nodiscard]] int one(int x) const {
    if (x > 0) {
      return '{';
    }
    const auto inner = [&] {
      return "}";
    };
    return inner();
  }
  int value{1};
};
#if defined(__linux__)
template <class T>
inline std::vector<T> two(std::vector<T> given = {}) {
  return {};
}
#endif
}  // namespace a
"""
    found = list(functions_of(source))
    assert found == [("one", 5, 9), ("two", 18, 3)], found
    assert faults_of({"h: f": 81}, {}) == ["h: f has 81 lines, more than 80"]
    assert faults_of({"h: f": 80}, {}) == []
    assert faults_of({"h: f": 90}, {"h: f": 90}) == []
    assert faults_of({"h: f": 91}, {"h: f": 90}) == ["h: f has 91 lines, more than 90"]
    assert faults_of({"h: f": 89}, {"h: f": 90}) == ["h: f has 89 lines: its row says 90"]
    assert faults_of({"h: f": 70}, {"h: f": 90}) == ["h: f has 70 lines: its row is not needed"]
    assert faults_of({}, {"h: f": 90}) == ["h: f has 0 lines: its row is not needed"]


def main():
    self_test()
    if sys.argv[1:] == ["--self-test"]:
        return 0
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".") / "include/dnnopt"
    lengths = {}
    count = 0
    for header in sorted(root.rglob("*.hpp")):
        for name, _, lines in functions_of(header.read_text()):
            key = f"{header.relative_to(root).as_posix()}: {name}"
            lengths[key] = max(lengths.get(key, 0), lines)
            count += 1
    if count < 1000:
        print(f"only {count} functions were found in {root}")
        return 1
    faults = faults_of(lengths, LONG)
    for fault in faults:
        print(fault)
    if not faults:
        print(f"{count} functions, {len(LONG)} of more than {MOST_LINES} lines")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())

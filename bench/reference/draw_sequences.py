"""Draws of programs on sequences and optionals: made, extended, shortened, mapped, handed through branches and loops."""
from draw_core import *  # noqa: F403

KINDS = (np.float32, np.float32, np.int64, np.bool_, np.float64, np.object_)


class Program:
    """Nodes over one sequence whose length, and the shapes of whose parts, the draw knows."""

    def __init__(self, r, kind, width):
        self.r, self.kind, self.width = r, kind, width
        self.nodes, self.inputs, self.fixed, self.made = [], [], [], 0

    def input(self, x, constant=0.4):
        self.inputs.append(np.asarray(x))
        if chance(self.r, constant):
            self.fixed.append(len(self.inputs) - 1)
        return f"x{len(self.inputs) - 1}"

    def part(self, rows):
        shape = [rows, self.width]
        if self.kind == np.object_:
            return np.array([f"w{v}" for v in self.r.integers(0, 9, rows * self.width)], object).reshape(shape)
        return values(self.r, shape, self.kind)

    def name(self):
        self.made += 1
        return f"v{self.made}"

    def add(self, op, reads, nodes=None, **attributes):
        out = self.name()
        (self.nodes if nodes is None else nodes).append(helper.make_node(op, list(reads), [out], **attributes))
        return out

    def position(self, count, extra):
        """A position among `count` parts, or behind them where `extra` is 1, from either end; absent at times."""
        if chance(self.r, 0.3):
            return None, count - 1 + extra
        at = int(self.r.integers(0, count + extra))
        given = at - count if at < count and chance(self.r, 0.4) else at
        return self.input(np.asarray(given, pick(self.r, np.int64, np.int32))), at

    def sequence_info(self, name):
        return helper.make_tensor_sequence_value_info(name, onnx_type(self.kind), None)


def begun(p, r):
    """(name of a sequence, rows of its parts)."""
    how = pick(r, "construct", "construct", "split", "empty")
    if how == "construct":
        rows = [dim(r, 4, 0.1) for _ in range(int(r.integers(1, 4)))]
        return p.add("SequenceConstruct", [p.input(p.part(n), 0.2) for n in rows]), rows
    if how == "empty":
        return p.add("SequenceEmpty", [], dtype=onnx_type(p.kind)), []
    total = int(r.integers(1, 6))
    x = p.input(p.part(total), 0.1)
    if chance(r, 0.4):
        size = int(r.integers(1, total + 1))
        return p.add("SplitToSequence", [x, p.input(np.int64(size))], axis=pick(r, 0, -2)), [min(size, total - at) for at in range(0, total, size)]
    if chance(r, 0.5):
        cuts = np.sort(r.integers(0, total + 1, int(r.integers(0, 3))))
        rows = np.diff(np.concatenate([[0], cuts, [total]])).astype(np.int64)
        return p.add("SplitToSequence", [x, p.input(rows)], axis=pick(r, 0, -2)), [int(n) for n in rows]
    return p.add("SplitToSequence", [x], axis=0), [1] * total


def changed(p, r, sequence, rows, nodes=None):
    """One part more, or one less where there is one."""
    if rows and chance(r, 0.35):
        at, index = p.position(len(rows), 0)
        return p.add("SequenceErase", [sequence] + ([at] if at else []), nodes), rows[:index] + rows[index + 1:]
    n = dim(r, 3, 0.1)
    part = p.input(p.part(n), 0.2)
    at, index = p.position(len(rows), 1)
    if at is None:
        index = len(rows)
    return p.add("SequenceInsert", [sequence, part] + ([at] if at else []), nodes), rows[:index] + [n] + rows[index:]


def branched(p, r, sequence, rows):
    taken = chance(r, 0.5)
    branches, ways = [], []
    for _ in range(2):
        nodes = []
        out, after = changed(p, r, sequence, rows, nodes)
        branches.append(helper.make_graph(nodes, p.name(), [], [p.sequence_info(out)]))
        ways.append(after)
    flag = p.input(np.bool_(taken), 0.3)
    return p.add("If", [flag], then_branch=branches[0], else_branch=branches[1]), ways[0 if taken else 1]


def looped(p, r, sequence, rows):
    turns, part = int(r.integers(0, 4)), p.input(p.part(2), 0.2)
    step, going, held, kept = p.name(), p.name(), p.name(), p.name()
    nodes = [helper.make_node("Identity", [going], [kept])]
    out = p.add("SequenceInsert", [held, part] + ([step] if chance(r, 0.4) and not rows else []), nodes)
    body = helper.make_graph(nodes, p.name(), [helper.make_tensor_value_info(step, TensorProto.INT64, []), helper.make_tensor_value_info(going, TensorProto.BOOL, []), p.sequence_info(held)],
                             [helper.make_tensor_value_info(kept, TensorProto.BOOL, []), p.sequence_info(out)])
    return p.add("Loop", [p.input(np.int64(turns)), p.input(np.bool_(True)) if chance(r, 0.5) else "", sequence], body=body), rows + [2] * turns


def mapped(p, r, sequence, rows):
    nodes, element = [], p.name()
    out = p.add("Concat", [element, element], nodes, axis=0) if p.kind in (np.bool_, np.object_) or chance(r, 0.5) else p.add("Add", [element, element], nodes)
    times = 2 if nodes[0].op_type == "Concat" else 1
    body = helper.make_graph(nodes, p.name(), [helper.make_tensor_value_info(element, onnx_type(p.kind), None)], [helper.make_tensor_value_info(out, onnx_type(p.kind), None)])
    return p.add("SequenceMap", [sequence], body=body), [n * times for n in rows]


def handed(p, r, sequence, rows):
    if chance(r, 0.5):
        return p.add("Identity", [sequence]), rows
    return p.add("OptionalGetElement", [p.add("Optional", [sequence])]), rows


@draws
def draw_sequences(r):
    p = Program(r, pick(r, *KINDS), int(r.integers(1, 4)))
    sequence, rows = begun(p, r)
    for _ in range(int(r.integers(0, 5))):
        step = pick(r, changed, changed, branched, looped, mapped, handed)
        sequence, rows = step(p, r, sequence, rows)
    results = [p.add("SequenceLength", [sequence])]
    if rows:
        at, _ = p.position(len(rows), 0)
        at = at or p.input(np.int64(0))
        results.append(p.add("SequenceAt", [sequence, at]))
        if len(set(rows)) == 1 and chance(r, 0.5):
            results.append(p.add("ConcatFromSequence", [sequence], axis=int(r.integers(-3, 3)), new_axis=1))
        else:
            results.append(p.add("ConcatFromSequence", [sequence], axis=pick(r, 0, -2)))
    if chance(r, 0.3):
        results.append(p.add("OptionalHasElement", [p.add("Optional", [sequence])]))
    p.nodes += [helper.make_node("Identity", [v], [f"y{k}"]) for k, v in enumerate(results)]
    return Case("+".join(n.op_type for n in p.nodes)[:80], pick(r, 18, 19, 21, 23, 24), p.inputs, {}, len(results), tuple(p.fixed), p.nodes, symbolic=chance(r, 0.4))


@draws
def draw_unranked(r):
    """Chains behind a value whose rank the file does not tell: squeezed without axes, reshaped as an input says, or
    taken out of a sequence."""
    kind = pick(r, np.float32, np.float32, np.int64, np.float64)
    p = Program(r, kind, 1)
    shape = [1 if chance(r, 0.4) else pick(r, 2, 3, 160) for _ in range(int(r.integers(1, 4)))]
    x = p.input(values(r, shape, kind), 0)
    way = pick(r, "squeeze", "reshape", "part")
    if way == "squeeze":
        current, now = p.add("Squeeze", [x]), [d for d in shape if d != 1]
    elif way == "reshape":
        now = pick(r, [int(np.prod(shape))], [1] + shape, [*shape[:-1], shape[-1], 1])
        current = p.add("Reshape", [x, p.input(np.int64(now), 0)])
    else:
        current, now = p.add("SequenceAt", [p.add("SequenceInsert", [p.add("SequenceEmpty", [], dtype=onnx_type(kind)), x]), p.input(np.int64(0))]), shape
    results = []
    for _ in range(int(r.integers(1, 4))):
        op = pick(r, "Neg", "Add", "Mul", "Reshape", "Flatten", "ReduceSum", "Shape", "Size", "Concat", "Gather", "Cast", "MatMul", "Transpose", "Unsqueeze", "Expand", "Slice", "Identity", "CumSum", "TopK")
        if op in ("Neg", "Identity", "Transpose"):
            current, now = p.add(op, [current]), now[::-1] if op == "Transpose" else now
        elif op in ("Add", "Mul"):
            other = p.input(values(r, pick(r, [], [1], now), kind), 0.5)
            current = p.add(op, [current, other] if chance(r, 0.5) else [other, current])
            now = now or list(p.inputs[-1].shape)
        elif op == "Reshape":
            current, now = p.add(op, [current, p.input(np.int64([-1]), 0.8)]), [int(np.prod(now))]
        elif op == "Flatten" and now:
            current, now = p.add(op, [current], axis=1), [now[0], int(np.prod(now[1:]))]
        elif op == "ReduceSum":
            results.append(p.add(op, [current], keepdims=0))
        elif op in ("Shape", "Size"):
            results.append(p.add(op, [current]))
        elif op == "Concat" and now:
            current, now = p.add(op, [current, current], axis=0), [2 * now[0], *now[1:]]
        elif op == "Gather" and now:
            current, now = p.add(op, [current, p.input(np.int64([0, -1]))], axis=0), [2, *now[1:]]
        elif op == "Cast":
            results.append(p.add(op, [current], to=TensorProto.DOUBLE))
        elif op == "MatMul" and now and kind != np.int64:
            current, now = p.add(op, [current, p.input(values(r, [now[-1], 3], kind))]), [*now[:-1], 3]
        elif op == "Unsqueeze":
            current, now = p.add(op, [current, p.input(np.int64([0]), 0.8)]), [1, *now]
        elif op == "Expand":
            current = p.add(op, [current, p.input(np.int64([2, *([1] * len(now))]), 0.5)])
            now = [2, *now]
        elif op == "Slice" and now:
            current, now = p.add(op, [current, p.input(np.int64([0])), p.input(np.int64([1])), p.input(np.int64([0]))]), [1, *now[1:]]
        elif op == "CumSum" and now:
            current = p.add(op, [current, p.input(np.int64(-1))])
        elif op == "TopK" and now:
            out, index = p.name(), p.name()
            p.nodes.append(helper.make_node(op, [current, p.input(np.int64([1]))], [out, index]))
            current, now = out, [*now[:-1], 1]
    results.append(current)
    p.nodes += [helper.make_node("Identity", [v], [f"y{k}"]) for k, v in enumerate(results)]
    return Case("+".join(n.op_type for n in p.nodes)[:80], pick(r, 13, 18, 21, 24), p.inputs, {}, len(results), tuple(p.fixed), p.nodes, symbolic=chance(r, 0.7), loose=1e-3)

"""Owns inputs for the zoo's models: made from a seed by what the graph does with each input."""
import numpy as np
import onnx

VIEWS = {"Cast", "Identity", "Reshape", "Unsqueeze", "Squeeze", "Transpose", "Flatten", "Expand", "Slice"}
TYPES = {1: np.float32, 6: np.int32, 7: np.int64, 9: np.bool_, 10: np.float16, 11: np.float64}


def table_sizes(model):
    """Rows of the table that each graph input indexes, for those that index one."""
    readers, shapes = {}, {t.name: list(t.dims) for t in model.graph.initializer}
    for node in model.graph.node:
        if node.op_type == "Identity" and node.input[0] in shapes:
            shapes[node.output[0]] = shapes[node.input[0]]
        for slot, name in enumerate(node.input):
            readers.setdefault(name, []).append((node, slot))
    sizes = {}
    for value in model.graph.input:
        reached, work = set(), [value.name]
        while work:
            name = work.pop()
            for node, slot in readers.get(name, []):
                if node.op_type == "Gather" and slot == 1 and node.input[0] in shapes:
                    axis = next((a.i for a in node.attribute if a.name == "axis"), 0)
                    sizes[value.name] = min(sizes.get(value.name, 1 << 62), shapes[node.input[0]][axis])
                elif node.op_type in VIEWS and slot == 0:
                    for output in node.output:
                        if output not in reached:
                            reached.add(output)
                            work.append(output)
    return sizes


def image(shape, random):
    """Noise over waves of a few pixels to the whole image, so that neighbours are alike as in photographs."""
    total = 0.5 * random.standard_normal(shape)
    if len(shape) < 2 or shape[-1] < 8 or shape[-2] < 8:
        return total * 2
    y, x = np.meshgrid(np.linspace(0, 1, shape[-2]), np.linspace(0, 1, shape[-1]), indexing="ij")
    for plane in np.ndindex(*shape[:-2]):
        for _ in range(6):
            fy, fx, phase = random.uniform(-8, 8), random.uniform(-8, 8), random.uniform(0, 2 * np.pi)
            total[plane] += 0.5 * np.cos(2 * np.pi * (fy * y + fx * x) + phase)
    return total


def make_inputs(model, seed, dims=None):
    """Inputs by name. `dims` binds symbolic dims; unbound ones are 1 (the first) or 32."""
    random = np.random.default_rng(seed)
    sizes = table_sizes(model)
    initialized = {t.name for t in model.graph.initializer}
    inputs = {}
    for value in model.graph.input:
        if value.name in initialized:
            continue
        tensor = value.type.tensor_type
        shape = []
        for axis, dim in enumerate(tensor.shape.dim):
            if dim.HasField("dim_value"):
                shape.append(dim.dim_value)
            else:
                shape.append((dims or {}).get(dim.dim_param, 1 if axis == 0 else 32))
        dtype = TYPES[tensor.elem_type]
        if np.issubdtype(dtype, np.floating):
            inputs[value.name] = image(shape, random).astype(dtype)
        elif value.name in sizes:
            inputs[value.name] = random.integers(0, sizes[value.name], shape).astype(dtype)
        elif len(shape) == 1 and dtype != np.bool_:
            # Lengths along the second dim of the input before it; the first is the largest.
            longest = next(iter(inputs.values())).shape[1]
            lengths = random.integers(max(longest // 2, 1), longest + 1, shape)
            lengths[0] = longest
            inputs[value.name] = lengths.astype(dtype)
        else:
            inputs[value.name] = np.ones(shape, dtype)
    return inputs

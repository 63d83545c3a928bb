"""Small networks in the form that exporters give to ONNX Runtime's tools; see check_tools.py."""
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

MS = "com.microsoft"


class builder:
    """Nodes and weights of one graph."""

    def __init__(self, seed):
        self.random = np.random.default_rng(seed)
        self.nodes, self.weights = [], []

    def weight(self, *dims, scale=None):
        scale = 1 / np.sqrt(np.prod(dims[1:]) if len(dims) == 4 else dims[0]) if scale is None else scale
        return self.constant((self.random.standard_normal(dims) * scale).astype(np.float32))

    def constant(self, array):
        name = f"w{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def __call__(self, op, *inputs, outputs=None, **attributes):
        names = outputs or [f"{op.lower()}_{len(self.nodes)}"]
        domain = attributes.pop("domain", "")
        self.nodes.append(helper.make_node(op, inputs, names, name=f"{op}_{len(self.nodes)}", domain=domain, **attributes))
        return names[0] if len(names) == 1 else names

    def save(self, path, inputs, outputs):
        graph = helper.make_graph(self.nodes, "network", inputs, outputs, self.weights)
        onnx.save(helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17),
                                                                        helper.make_opsetid(MS, 1)]), path)


def value(name, dims, kind=TensorProto.FLOAT):
    return helper.make_tensor_value_info(name, kind, dims)


def image_network(path):
    """Convolutions, pools, a residual sum, a product, a concatenation and a classifier."""
    b = builder(1)
    conv = lambda x, o, i, k=3, **a: b("Conv", x, b.weight(o, i, k, k, scale=1.4 / np.sqrt(i * k * k)), b.weight(o),
                                       kernel_shape=[k, k], pads=[k // 2] * 4, **a)
    x = b("Relu", conv("image", 16, 3, strides=[2, 2]))
    y = b("LeakyRelu", conv(x, 16, 16), alpha=0.1)
    x = b("Add", conv(y, 16, 16), x)
    gate = b("Sigmoid", conv(b("GlobalAveragePool", x), 16, 16, 1))
    x = b("Mul", x, gate)
    x = b("Concat", b("MaxPool", x, kernel_shape=[2, 2], strides=[2, 2]),
          b("AveragePool", x, kernel_shape=[2, 2], strides=[2, 2]), axis=1)
    x = b("Relu", conv(x, 32, 32, group=1))
    x = b("Flatten", b("GlobalAveragePool", x))
    b("Softmax", b("Gemm", x, b.weight(32, 10), b.weight(10)), outputs=["scores"], axis=-1)
    b.save(path, [value("image", [1, 3, 32, 32])], [value("scores", [1, 10])])
    return lambda random: {"image": random.standard_normal((1, 3, 32, 32)).astype(np.float32)}


def text_network(path, layers=2, hidden=64, heads=4, words=100, sequence=12):
    """A BERT-like encoder as PyTorch exports it: embeddings, attention by Reshape and Transpose, GELU by Erf."""
    b = builder(2)
    size = hidden // heads
    norm = lambda x: b("LayerNormalization", x, b.weight(hidden, scale=1.0), b.weight(hidden, scale=0.1), axis=-1)
    line = lambda x, i, o: b("Add", b.weight(o, scale=0.1), b("MatMul", x, b.weight(i, o)))
    ids = b("Add", b("Gather", b.weight(words, hidden, scale=1.0), "input_ids"),
            b("Gather", b.weight(2, hidden, scale=1.0), "token_type_ids"))
    places = b.constant(np.arange(sequence)[None])
    x = norm(b("Add", ids, b("Gather", b.weight(64, hidden, scale=1.0), places)))
    mask = b("Cast", b("Unsqueeze", b("Unsqueeze", "attention_mask", b.constant(np.array([1]))), b.constant(np.array([2]))), to=TensorProto.FLOAT)
    mask = b("Mul", b("Sub", b.constant(np.float32(1)), mask), b.constant(np.float32(-10000)))
    split = b.constant(np.array([0, 0, heads, size]))
    joined = b.constant(np.array([0, 0, hidden]))
    for _ in range(layers):
        q, k, v = (b("Reshape", line(x, hidden, hidden), split) for _ in range(3))
        q = b("Transpose", q, perm=[0, 2, 1, 3])
        k = b("Transpose", k, perm=[0, 2, 3, 1])
        v = b("Transpose", v, perm=[0, 2, 1, 3])
        scores = b("Div", b("MatMul", q, k), b.constant(np.float32(np.sqrt(size))))
        probabilities = b("Softmax", b("Add", scores, mask), axis=-1)
        y = b("Transpose", b("MatMul", probabilities, v), perm=[0, 2, 1, 3])
        y = line(b("Reshape", y, joined), hidden, hidden)
        x = norm(b("Add", y, x))
        h = line(x, hidden, 4 * hidden)
        e = b("Erf", b("Div", h, b.constant(np.float32(np.sqrt(2)))))
        h = b("Mul", b("Mul", h, b("Add", e, b.constant(np.float32(1)))), b.constant(np.float32(0.5)))
        x = norm(b("Add", line(h, 4 * hidden, hidden), x))
    b("Identity", x, outputs=["hidden"])
    dims = ["batch", sequence]
    b.save(path, [value(n, dims, TensorProto.INT64) for n in ("input_ids", "token_type_ids", "attention_mask")],
           [value("hidden", ["batch", sequence, hidden])])

    def feeds(random):
        mask = np.ones((2, sequence), np.int64)
        mask[1, sequence - 3:] = 0
        return {"input_ids": random.integers(0, words, (2, sequence)), "token_type_ids": random.integers(0, 2, (2, sequence)),
                "attention_mask": mask}

    return feeds


def decoder_network(path, layers=2, hidden=64, heads=4, key_heads=2, size=16, words=96, window=-1):
    """A LLaMA-like decoder as the GenAI builder writes it; `steps` are a prompt and two tokens, each with the cache that the
    step before gave."""
    b = builder(3)
    norm = lambda: b.weight(hidden, scale=1.0)
    as_int = lambda x: b("Cast", x, to=TensorProto.INT32)
    lengths = as_int(b("Sub", b("ReduceSum", "attention_mask", b.constant(np.array([1])), keepdims=0),
                       b.constant(np.array([1]))))
    total = as_int(b("Gather", b("Shape", "attention_mask"), b.constant(np.int64(1)), axis=0))
    angles = np.outer(np.arange(64), 1 / 10000 ** (np.arange(size // 2) / (size // 2)))
    cosines, sines = b.constant(np.cos(angles).astype(np.float32)), b.constant(np.sin(angles).astype(np.float32))
    x = b("Gather", b.weight(words, hidden, scale=1.0), "input_ids")
    y = b("SimplifiedLayerNormalization", x, norm(), axis=-1, epsilon=1e-5, stash_type=1)
    line = lambda x, i, o: b("MatMul", x, b.weight(i, o))
    presents = []
    for layer in range(layers):
        q, k, v = line(y, hidden, heads * size), line(y, hidden, key_heads * size), line(y, hidden, key_heads * size)
        a, *present = b("GroupQueryAttention", q, k, v, f"past_key_values.{layer}.key", f"past_key_values.{layer}.value",
                        lengths, total, cosines, sines, domain=MS, num_heads=heads, kv_num_heads=key_heads, do_rotary=1,
                        scale=float(1 / np.sqrt(size)), local_window_size=window,
                        outputs=[f"attention_{layer}", f"present.{layer}.key", f"present.{layer}.value"])
        presents += present
        y, _, _, x = b("SkipSimplifiedLayerNormalization", x, line(a, heads * size, hidden), norm(), domain=MS, epsilon=1e-5,
                       outputs=[f"norm_{layer}_1", "", "", f"sum_{layer}_1"])
        gate = line(y, hidden, 2 * hidden)
        h = b("Mul", b("Mul", gate, b("Sigmoid", gate)), line(y, hidden, 2 * hidden))
        y, _, _, x = b("SkipSimplifiedLayerNormalization", x, line(h, 2 * hidden, hidden), norm(), domain=MS, epsilon=1e-5,
                       outputs=[f"norm_{layer}_2", "", "", f"sum_{layer}_2"])
    b("MatMul", y, b.weight(hidden, words), outputs=["logits"])
    cache = lambda name, length: value(name, ["batch_size", key_heads, length, size])
    names = [f"{layer}.{part}" for layer in range(layers) for part in ("key", "value")]
    b.save(path, [value("input_ids", ["batch_size", "sequence_length"], TensorProto.INT64),
                  value("attention_mask", ["batch_size", "total_sequence_length"], TensorProto.INT64),
                  *[cache("past_key_values." + n, "past_sequence_length") for n in names]],
           [value("logits", ["batch_size", "sequence_length", words]),
            *[cache("present." + n, "total_sequence_length") for n in names]])

    def steps(random, run):
        past = {f"past_key_values.{n}": np.zeros((2, key_heads, 0, size), np.float32) for n in names}
        length = 0
        for new in (5, 1, 1):
            length += new
            feeds = {"input_ids": random.integers(0, words, (2, new)), "attention_mask": np.ones((2, length), np.int64), **past}
            outputs = run(feeds)
            past = {f"past_key_values.{n}": outputs[f"present.{n}"] for n in names}

    return steps

"""Draws of the operators of ai.onnx.ml with all their attributes, in each version of the domain that ONNX Runtime has."""
from draw_core import *  # noqa: F403

ML = "ai.onnx.ml"
TRANSFORMS = ("NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO", "PROBIT")
WORDS = np.array(["a", "bc", "", "ä", "dog", "Dog"], object)


def ml(r, op, inputs, attributes, outputs=1, version=3, loose=1e-3):
    return Case(op, 17, inputs, {"domain": ML} | attributes, outputs, loose=loose, ml=version, symbolic=chance(r, 0.3))


def rows(r, features=None, kinds=(np.float32, np.float32, np.float64, np.int64, np.int32)):
    shape = [dim(r, 5, 0), features or dim(r, 5, 0)]
    kind = pick(r, *kinds)
    return values(r, shape, kind) if np.issubdtype(kind, np.floating) else integer(r, shape, kind, low=-3, high=4)


def floats(r, count, spread=1.0):
    return [float(np.float32(v)) for v in r.standard_normal(count) * spread]


def labels(r, count):
    return {"classlabels_strings": [str(w) for w in ("x", "yy", "", "z", "w")[:count]]} if chance(r, 0.4) else \
        {"classlabels_ints": [int(v) for v in r.permutation(9)[:count]]}


@draws
def draw_ml_features(r):
    op = pick(r, "Scaler", "Normalizer", "Binarizer", "Imputer", "FeatureVectorizer", "ArrayFeatureExtractor", "LinearRegressor", "OneHotEncoder")
    x = rows(r)
    n = x.shape[1]
    if op == "Scaler":
        count = pick(r, 1, n)
        return ml(r, op, [x], {"offset": floats(r, count), "scale": floats(r, pick(r, count))}, version=pick(r, 1, 2, 3, 4, 5))
    if op == "Normalizer":
        return ml(r, op, [x], {"norm": pick(r, "MAX", "L1", "L2")} if chance(r, 0.8) else {})
    if op == "Binarizer":
        return ml(r, op, [x.astype(np.float32)], {"threshold": float(pick(r, 0.0, 0.5, -1.0, 2.0))} if chance(r, 0.8) else {})
    if op == "Imputer":
        x = x if x.dtype in (np.float32, np.int64) else x.astype(np.float32)
        count = pick(r, 1, n)
        if x.dtype == np.int64:
            return ml(r, op, [x], {"imputed_value_int64s": [int(v) for v in r.integers(-5, 6, count)], "replaced_value_int64": int(pick(r, 0, 1, -2))})
        x = np.where(r.random(x.shape) < 0.3, np.float32(pick(r, np.nan, 2.0)), x)
        return ml(r, op, [x], {"imputed_value_floats": floats(r, count), "replaced_value_float": pick(r, float("nan"), 2.0)})
    if op == "FeatureVectorizer":
        parts = [values(r, [x.shape[0], dim(r, 4, 0)], x.dtype.type) for _ in range(int(r.integers(1, 4)))]
        return ml(r, op, parts, {"inputdimensions": [p.shape[1] for p in parts]})
    if op == "ArrayFeatureExtractor":
        x = values(r, dims(r, int(r.integers(1, 4)), 4, 0), pick(r, np.float32, np.int64, np.float64, np.int32))
        x = np.take(WORDS, integer(r, x.shape, np.int64, low=0, high=5)) if chance(r, 0.3) else x
        return ml(r, op, [x, integer(r, [1, dim(r, 4, 0)][int(r.integers(0, 2)):], np.int64, low=0, high=x.shape[-1] - 1)], {})
    if op == "LinearRegressor":
        targets = int(r.integers(1, 4))
        attributes = {"targets": targets, "coefficients": floats(r, targets * n), "post_transform": pick(r, *TRANSFORMS)}
        return ml(r, op, [x.astype(np.float32)], attributes | ({"intercepts": floats(r, targets)} if chance(r, 0.6) else {}))
    known = [int(v) for v in r.permutation(8)[: int(r.integers(1, 5))]]
    shape = dims(r, int(r.integers(1, 3)), 4, 0)
    zeros = int(r.integers(2))
    if chance(r, 0.4):
        x = np.take(WORDS, integer(r, shape, np.int64, low=0, high=5))
        return ml(r, op, [x], {"cats_strings": [str(w) for w in WORDS[[k % 6 for k in sorted({k % 6 for k in known})]]], "zeros": 1})
    x = integer(r, shape, np.int64, low=0, high=8 if zeros else 0) if zeros else np.take(np.int64(known), integer(r, shape, np.int64, low=0, high=len(known) - 1))
    return ml(r, op, [np.asarray(x).astype(pick(r, np.int64, np.float32, np.int32, np.float64))], {"cats_int64s": known, "zeros": zeros})


@draws
def draw_ml_labels(r):
    version = pick(r, 1, 2, 2, 4)
    shape = dims(r, int(r.integers(1, 3)), 4, 0)
    if chance(r, 0.2):
        x = np.take(WORDS, integer(r, shape, np.int64, low=0, high=5)) if chance(r, 0.5) else integer(r, shape, np.int64, low=0, high=6)
        return ml(r, "CategoryMapper", [x], {"cats_strings": [str(w) for w in WORDS[:4]], "cats_int64s": [3, 1, 0, 7]} | ({"default_string": "none", "default_int64": 9} if chance(r, 0.5) else {}))
    if version == 1:
        x = np.take(WORDS, integer(r, shape, np.int64, low=0, high=5)) if chance(r, 0.5) else integer(r, shape, np.int64, low=0, high=6)
        return ml(r, "LabelEncoder", [x], {"classes_strings": [str(w) for w in WORDS[:4]]} | ({"default_string": "none", "default_int64": 9} if chance(r, 0.5) else {}), version=1)
    first, second = pick(r, "strings", "int64s", "floats"), pick(r, "strings", "int64s", "floats")
    count = int(r.integers(1, 5))
    def list_of(kind, distinct):
        if kind == "strings":
            return [str(w) for w in WORDS[r.permutation(6)[:count]]]
        numbers = r.permutation(6)[:count] if distinct and chance(r, 0.7) else r.integers(-5, 6, count)
        return [float(v) for v in numbers] if kind == "floats" else [int(v) for v in numbers]
    keys = list_of(first, True)
    # Before version 4 ONNX Runtime finds no NaN, though the text compares bits.
    if first == "floats" and version == 4 and chance(r, 0.3):
        keys[0] = float("nan")
    attributes = {f"keys_{first}": keys, f"values_{second}": list_of(second, False)}
    if chance(r, 0.6):
        attributes |= {"strings": {"default_string": "none"}, "int64s": {"default_int64": 9}, "floats": {"default_float": 1.5}}[second]
    index = integer(r, shape, np.int64, low=0, high=6)
    x = np.take(WORDS, index % 6) if first == "strings" else index if first == "int64s" else index.astype(np.float32)
    if first == "floats":
        x = np.where(r.random(shape) < 0.2, np.float32(np.nan), x)
    return ml(r, "LabelEncoder", [x], attributes, version=version)


@draws
def draw_ml_linear(r):
    x = rows(r)
    classes, n = int(r.integers(2, 5)), x.shape[1]
    scores = 1 if classes == 2 and chance(r, 0.5) else classes
    names = labels(r, classes)
    names = {("classlabels_strings" if k == "classlabels_strings" else "classlabels_ints"): v for k, v in names.items()}
    attributes = {"coefficients": floats(r, scores * n), "intercepts": floats(r, scores), "multi_class": int(r.integers(2)), "post_transform": pick(r, "NONE", "LOGISTIC", "SOFTMAX")}
    return ml(r, "LinearClassifier", [x], attributes | names, 2)


def grown(r, features, tree, missing):
    """Lists of one random tree's nodes, and the ids of its leaves."""
    nodes, leaves = [], []
    def node(depth):
        at = len(nodes)
        nodes.append(None)
        if depth == 0 or chance(r, 0.2):
            nodes[at] = ("LEAF", 0, 0.0, 0, 0, 0)
            leaves.append(at)
            return at
        mode = pick(r, "BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ") if chance(r, 0.3) else "BRANCH_LEQ"
        feature, split = int(r.integers(0, features)), float(np.float32(np.round(r.standard_normal() * 2)) / 2)
        yes = node(depth - 1)
        no = node(depth - 1)
        nodes[at] = (mode, feature, split, yes, no, int(missing and chance(r, 0.5)))
        return at
    node(int(r.integers(0, 4)))
    return {"nodes_treeids": [tree] * len(nodes), "nodes_nodeids": list(range(len(nodes))), "nodes_modes": [n[0] for n in nodes], "nodes_featureids": [n[1] for n in nodes], "nodes_values": [n[2] for n in nodes],
            "nodes_truenodeids": [n[3] for n in nodes], "nodes_falsenodeids": [n[4] for n in nodes], "nodes_missing_value_tracks_true": [n[5] for n in nodes]}, leaves


@draws
def draw_ml_trees(r):
    features, classifier = int(r.integers(1, 5)), chance(r, 0.5)
    x = np.round(real(r, [dim(r, 6, 0), features], pick(r, np.float32, np.float32, np.float64)) * 2) / 2
    if chance(r, 0.3):
        x = np.where(r.random(x.shape) < 0.2, np.nan, x).astype(x.dtype)
    elif chance(r, 0.2):
        x = x.astype(pick(r, np.int64, np.int32) if classifier else np.float32)
    targets = int(r.integers(2, 5)) if classifier else int(r.integers(1, 4))
    what = "class" if classifier else "target"
    voted = [0] if classifier and targets == 2 and chance(r, 0.7) else list(range(targets))
    if classifier and targets == 2 and len(voted) > 1:
        targets, voted = 3, [0, 1, 2]  # of two classes that both have votes ONNX Runtime's answer is no label
    attributes, positive, all_vote = {}, chance(r, 0.6), chance(r, 0.4)
    missing = chance(r, 0.5)
    for tree in range(int(r.integers(1, 5))):
        lists, leaves = grown(r, features, tree, missing)
        votes = [(tree, leaf, t) for leaf in leaves for t in voted if all_vote or t == voted[0] or chance(r, 0.7)]
        weights = [abs(w) / 4 if positive else w for w in floats(r, len(votes))]
        lists |= {f"{what}_treeids": [v[0] for v in votes], f"{what}_nodeids": [v[1] for v in votes], f"{what}_ids": [v[2] for v in votes], f"{what}_weights": weights}
        for name, part in lists.items():
            attributes[name] = attributes.get(name, []) + part
    if not missing and chance(r, 0.5):
        attributes.pop("nodes_missing_value_tracks_true")
    attributes["post_transform"] = pick(r, "NONE", "NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO") if targets > 1 else "NONE"
    # A target that no leaf votes for has its base value by the text, and 0 in ONNX Runtime.
    if chance(r, 0.3) and {*voted} == {*attributes[f"{what}_ids"]} and all_vote:
        attributes["base_values"] = floats(r, targets if not classifier or targets > 2 else 1)
    if classifier:
        names = labels(r, targets)
        attributes |= {("classlabels_strings" if "strings" in k else "classlabels_int64s"): v for k, v in names.items()}
        return ml(r, "TreeEnsembleClassifier", [x], attributes, 2, pick(r, 1, 3))
    attributes["n_targets"] = targets
    if chance(r, 0.5):
        attributes["aggregate_function"] = pick(r, "SUM", "AVERAGE", "MIN", "MAX")
    return ml(r, "TreeEnsembleRegressor", [x.astype(np.float32) if x.dtype == np.float64 else x], attributes, 1, pick(r, 1, 3))


@draws
def draw_ml_machines(r):
    features, vectors = int(r.integers(1, 4)), int(r.integers(1, 5))
    x = rows(r, features, (np.float32, np.float32, np.int64))
    kernel = pick(r, "LINEAR", "POLY", "RBF", "SIGMOID")
    attributes = {"kernel_type": kernel, "kernel_params": [float(pick(r, 0.3, 1.0)), float(pick(r, 0.0, 0.5)), float(pick(r, 2.0, 3.0))]}
    if chance(r, 0.4):
        attributes |= {"n_supports": vectors, "support_vectors": floats(r, vectors * features), "coefficients": floats(r, vectors), "rho": floats(r, 1)}
        if chance(r, 0.3):
            attributes["one_class"] = 1
        return ml(r, "SVMRegressor", [x.astype(np.float32)], attributes)
    classes = int(r.integers(2, 5))
    own = [int(r.integers(1, 4)) for _ in range(classes)]
    pairs = classes * (classes - 1) // 2
    attributes |= {"vectors_per_class": own, "support_vectors": floats(r, sum(own) * features), "coefficients": floats(r, sum(own) * (classes - 1)), "rho": floats(r, pairs), "post_transform": "NONE"}
    if chance(r, 0.4):
        attributes |= {"prob_a": floats(r, pairs), "prob_b": floats(r, pairs)}
    return ml(r, "SVMClassifier", [x], attributes | labels(r, classes), 2)

#!/usr/bin/env python3
"""Trains small scikit-learn, LightGBM and XGBoost models, converts them with skl2onnx and onnxmltools, and writes each as
an ONNX backend test with ONNX Runtime's outputs.

usage: write_models.py FOLDER [--small] [--all]

Then: dnnopt conformance FOLDER --device reference (or opencl). --small writes those that bench/ml/models keeps. --all
writes those of rarer_models.py too, and each model of float features in float64 and at an older opset as well.
Needs scikit-learn, skl2onnx, onnxruntime; onnxmltools with lightgbm and xgboost where they are installed.
"""
import argparse
import pathlib
import warnings

import numpy as np
import onnx
import onnxruntime
from onnx import numpy_helper
from skl2onnx import to_onnx
from skl2onnx.common.data_types import (DoubleTensorType, FloatTensorType, Int64TensorType, StringTensorType)
from sklearn import (cluster, decomposition, discriminant_analysis, ensemble, impute, linear_model, naive_bayes,
                     neighbors, neural_network, pipeline, preprocessing, svm, tree)
from sklearn.compose import ColumnTransformer

import rarer_models

warnings.filterwarnings("ignore")
OPSET = {"": 17, "ai.onnx.ml": 3}
ROWS, FEATURES = 60, 5
random = np.random.RandomState(0)
X = random.randn(ROWS, FEATURES).astype(np.float32)
TWO = (X[:, 0] + X[:, 1] * X[:, 2] > 0).astype(np.int64)
THREE = (np.digitize(X[:, 0] + X[:, 3], [-0.7, 0.7])).astype(np.int64)
NAMES = np.array(["blue", "green", "red"])[THREE]
REAL = (X @ random.randn(FEATURES) + np.abs(X[:, 0])).astype(np.float32)
REALS = np.stack([REAL, X[:, 1] - REAL], axis=1).astype(np.float32)
HOLES = X.copy()
HOLES[random.rand(*X.shape) < 0.2] = np.nan
WORDS = np.array([["a", "x"], ["b", "y"], ["c", "x"], ["a", "z"]] * (ROWS // 4))
COUNTS = random.randint(0, 4, (ROWS, 2)).astype(np.int64)


def sklearn_models():
    """(name, fitted model, inputs, options of the converter)."""
    small_forest = {"n_estimators": 4, "max_depth": 3, "random_state": 0}
    plain = {"zipmap": False}
    yield "tree_regressor", tree.DecisionTreeRegressor(max_depth=3).fit(X, REAL), X, None
    yield "tree_regressor_2_targets", tree.DecisionTreeRegressor(max_depth=3).fit(X, REALS), X, None
    yield "forest_regressor", ensemble.RandomForestRegressor(**small_forest).fit(X, REAL), X, None
    yield "extra_trees_regressor", ensemble.ExtraTreesRegressor(**small_forest).fit(X, REALS), X, None
    yield "boosting_regressor", ensemble.GradientBoostingRegressor(**small_forest).fit(X, REAL), X, None
    yield "tree_classifier", tree.DecisionTreeClassifier(max_depth=3).fit(X, TWO), X, plain
    yield "tree_classifier_names", tree.DecisionTreeClassifier(max_depth=3).fit(X, NAMES), X, plain
    yield "forest_classifier", ensemble.RandomForestClassifier(**small_forest).fit(X, TWO), X, plain
    yield "forest_classifier_3", ensemble.RandomForestClassifier(**small_forest).fit(X, THREE), X, plain
    yield "forest_classifier_zipmap", ensemble.RandomForestClassifier(**small_forest).fit(X, NAMES), X, {"zipmap": True}
    yield "boosting_classifier", ensemble.GradientBoostingClassifier(**small_forest).fit(X, TWO), X, plain
    yield "boosting_classifier_3", ensemble.GradientBoostingClassifier(**small_forest).fit(X, THREE), X, plain
    yield "adaboost_classifier", ensemble.AdaBoostClassifier(n_estimators=3).fit(X, THREE), X, plain
    yield "bagging_classifier", ensemble.BaggingClassifier(tree.DecisionTreeClassifier(max_depth=2), n_estimators=3).fit(X, TWO), X, plain
    yield "isolation_forest", ensemble.IsolationForest(n_estimators=3, max_samples=16, random_state=0).fit(X), X, None
    yield "linear_regression", linear_model.LinearRegression().fit(X, REAL), X, None
    yield "linear_regression_2_targets", linear_model.LinearRegression().fit(X, REALS), X, None
    yield "ridge_int64", linear_model.Ridge().fit(COUNTS, REAL), COUNTS, None
    yield "elastic_net", linear_model.ElasticNet(alpha=0.01).fit(X, REAL), X, None
    yield "poisson", linear_model.PoissonRegressor().fit(X, np.abs(REAL)), X, None
    yield "logistic_regression", linear_model.LogisticRegression().fit(X, TWO), X, plain
    yield "logistic_regression_3", linear_model.LogisticRegression().fit(X, NAMES), X, plain
    yield "logistic_regression_zipmap", linear_model.LogisticRegression().fit(X, TWO), X, {"zipmap": True}
    yield "linear_svc", svm.LinearSVC().fit(X, THREE), X, None
    yield "sgd_classifier", linear_model.SGDClassifier(loss="modified_huber", random_state=0).fit(X, TWO), X, plain
    yield "perceptron", linear_model.Perceptron().fit(X, THREE), X, None
    yield "lda", discriminant_analysis.LinearDiscriminantAnalysis().fit(X, THREE), X, plain
    yield "svr_rbf", svm.SVR(C=0.5).fit(X, REAL), X, None
    yield "svr_poly", svm.SVR(kernel="poly", degree=2, coef0=1.0).fit(X, REAL), X, None
    yield "nu_svr_sigmoid", svm.NuSVR(kernel="sigmoid").fit(X, REAL), X, None
    yield "one_class_svm", svm.OneClassSVM(nu=0.2).fit(X), X, None
    yield "svc_2", svm.SVC(probability=False).fit(X, TWO), X, None
    yield "svc_3", svm.SVC(probability=False, kernel="linear").fit(X, NAMES), X, None
    yield "svc_2_probability", svm.SVC(probability=True, random_state=0).fit(X, TWO), X, plain
    yield "svc_3_probability", svm.SVC(probability=True, random_state=0).fit(X, THREE), X, plain
    yield "gaussian_nb", naive_bayes.GaussianNB().fit(X, THREE), X, plain
    yield "bernoulli_nb", naive_bayes.BernoulliNB().fit(X, THREE), X, plain
    yield "k_neighbors", neighbors.KNeighborsClassifier(3).fit(X, THREE), X, plain
    yield "k_means", cluster.KMeans(3, n_init=1, random_state=0).fit(X), X, None
    yield "pca", decomposition.PCA(2).fit(X), X, None
    yield "mlp_classifier", neural_network.MLPClassifier((4,), max_iter=20, random_state=0).fit(X, THREE), X, plain
    yield "standard_scaler", preprocessing.StandardScaler().fit(X), X, None
    yield "min_max_scaler", preprocessing.MinMaxScaler().fit(X), X, None
    yield "robust_scaler", preprocessing.RobustScaler().fit(X), X, None
    yield "max_abs_scaler_int64", preprocessing.MaxAbsScaler().fit(COUNTS), COUNTS, None
    for norm in ("l1", "l2", "max"):
        yield "normalizer_" + norm, preprocessing.Normalizer(norm).fit(np.abs(X)), np.abs(X), None
    yield "binarizer", preprocessing.Binarizer(threshold=0.3).fit(X), X, None
    yield "imputer", impute.SimpleImputer().fit(HOLES), HOLES, None
    yield "one_hot_words", preprocessing.OneHotEncoder(handle_unknown="ignore").fit(WORDS), WORDS, None
    yield "one_hot_counts", preprocessing.OneHotEncoder().fit(COUNTS), COUNTS, None
    yield "ordinal_words", preprocessing.OrdinalEncoder().fit(WORDS), WORDS, None
    yield "ordinal_counts", preprocessing.OrdinalEncoder().fit(COUNTS), COUNTS, None
    yield "label_encoder", preprocessing.LabelEncoder().fit(WORDS[:, 0]), WORDS[:, :1], None
    yield "label_binarizer", preprocessing.LabelBinarizer().fit(COUNTS[:, 0]), COUNTS[:, :1], None
    yield "polynomial", preprocessing.PolynomialFeatures(2).fit(X), X, None
    yield "bins", preprocessing.KBinsDiscretizer(3, encode="onehot-dense", strategy="uniform").fit(X), X, None
    columns = ColumnTransformer([("scaled", preprocessing.StandardScaler(), [0, 1]), ("kept", "passthrough", [3])])
    yield "columns_then_logistic", pipeline.make_pipeline(columns, linear_model.LogisticRegression()).fit(X, TWO), X, plain
    yield "imputed_forest", pipeline.make_pipeline(impute.SimpleImputer(), preprocessing.StandardScaler(),
                                                   ensemble.RandomForestClassifier(**small_forest)).fit(HOLES, NAMES), HOLES, plain


def boosted_models():
    """(name, converted model, inputs) of LightGBM and XGBoost."""
    try:
        import lightgbm
        import onnxmltools
        import xgboost
        from onnxmltools.convert.common.data_types import FloatTensorType as Floats
    except ImportError as missing:
        print("left out:", missing)
        return
    kind = [("input", Floats([None, FEATURES]))]
    light = {"n_estimators": 4, "num_leaves": 5, "min_child_samples": 5, "verbose": -1}
    for name, model in (("lightgbm_regressor", lightgbm.LGBMRegressor(**light).fit(X, REAL)),
                        ("lightgbm_classifier", lightgbm.LGBMClassifier(**light).fit(X, TWO)),
                        ("lightgbm_classifier_3", lightgbm.LGBMClassifier(**light).fit(X, THREE))):
        yield name, onnxmltools.convert_lightgbm(model, initial_types=kind, target_opset=15, zipmap=False), X
    shallow = {"n_estimators": 4, "max_depth": 3}
    for name, model in (("xgboost_regressor", xgboost.XGBRegressor(**shallow).fit(HOLES, REAL)),
                        ("xgboost_classifier", xgboost.XGBClassifier(**shallow).fit(HOLES, TWO)),
                        ("xgboost_classifier_3", xgboost.XGBClassifier(**shallow).fit(HOLES, THREE))):
        yield name, onnxmltools.convert_xgboost(model, initial_types=kind, target_opset=15), HOLES


SMALL = ("tree_regressor", "forest_regressor", "tree_classifier", "tree_classifier_names",
         "forest_classifier_3", "forest_classifier_zipmap", "boosting_classifier", "linear_regression_2_targets", "logistic_regression", "logistic_regression_3", "svr_poly", "svc_2", "svc_3_probability",
         "one_class_svm", "standard_scaler", "normalizer_l1", "normalizer_max", "binarizer", "imputer", "one_hot_words", "one_hot_counts", "ordinal_words", "label_encoder", "bins", "columns_then_logistic",
         "imputed_forest", "lightgbm_classifier", "lightgbm_classifier_3", "xgboost_regressor", "xgboost_classifier_3")


def input_types(inputs):
    width = [None, inputs.shape[1]]
    if inputs.dtype.kind in "US":
        return [("input", StringTensorType(width))]
    kinds = {np.dtype(np.int64): Int64TensorType, np.dtype(np.float64): DoubleTensorType}
    return [("input", kinds.get(inputs.dtype, FloatTensorType)(width))]


def forms(name, inputs, every):
    """(name, inputs, opsets) of the forms of a model that are written."""
    yield name, inputs, OPSET
    if every and inputs.dtype == np.float32:
        yield name + "_double", inputs.astype(np.float64), {"": 21, "ai.onnx.ml": 3}
        yield name + "_old", inputs, {"": 12, "ai.onnx.ml": 1}


def as_proto(value):
    """A tensor, or a sequence of maps as ZipMap gives it."""
    if not isinstance(value, list):
        return numpy_helper.from_array(np.asarray(value, dtype=object) if value.dtype.kind in "US" else value)
    sequence = onnx.SequenceProto(elem_type=onnx.SequenceProto.MAP)
    for row in value:
        one = sequence.map_values.add()
        strings = isinstance(next(iter(row)), str)
        one.key_type = onnx.TensorProto.STRING if strings else onnx.TensorProto.INT64
        if strings:
            one.string_keys.extend(key.encode() for key in row)
        else:
            one.keys.extend(row)
        one.values.elem_type = onnx.SequenceProto.TENSOR
        one.values.tensor_values.extend(numpy_helper.from_array(np.float32(v)) for v in row.values())
    return sequence


def write(folder, name, model, inputs):
    inputs = inputs[:9]
    fed = inputs.astype(object) if inputs.dtype.kind in "US" else inputs
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    outputs = session.run(None, {session.get_inputs()[0].name: fed})
    data = folder / name / "test_data_set_0"
    data.mkdir(parents=True, exist_ok=True)
    (folder / name / "model.onnx").write_bytes(model.SerializeToString())
    (data / "input_0.pb").write_bytes(as_proto(fed).SerializeToString())
    for i, output in enumerate(outputs):
        (data / f"output_{i}.pb").write_bytes(as_proto(output).SerializeToString())


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("folder", type=pathlib.Path)
    arguments.add_argument("--small", action="store_true")
    arguments.add_argument("--all", action="store_true")
    arguments = arguments.parse_args()
    onnxruntime.set_default_logger_severity(4)

    def converted():
        known = [(name, lambda model=model: model, inputs, options) for name, model, inputs, options in sklearn_models()]
        if arguments.all:
            known += rarer_models.rows(X, TWO, THREE, NAMES, REAL, REALS, HOLES, WORDS, COUNTS)
        for name, make, features, options in known:
            if arguments.small and name not in SMALL:
                continue
            for form, inputs, opsets in forms(name, features, arguments.all):
                try:
                    model = make()
                    yield form, to_onnx(model, initial_types=input_types(inputs), target_opset=opsets,
                                        options=None if options is None else {id(model): options}), inputs
                except Exception as why:  # what a converter refuses is told, and is no fault of ours
                    print("not converted:", form, (str(why).splitlines() or [""])[0][:120])
        for name, model, inputs in boosted_models():
            if not arguments.small or name in SMALL:
                yield name, model, inputs

    written = 0
    for name, model, inputs in converted():
        try:
            write(arguments.folder, name, model, inputs)
            written += 1
        except Exception as why:
            print("not run:", name, str(why).splitlines()[0][:160])
    print(written, "models written")


if __name__ == "__main__":
    main()

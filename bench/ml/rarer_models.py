"""Scikit-learn models beyond those that write_models.py keeps: what skl2onnx has a converter for, words as features,
several inputs, and options of converters. Each row makes its model when it is asked for."""
import numpy as np
from sklearn import (base, calibration, cluster, cross_decomposition, decomposition, discriminant_analysis, ensemble,
                     feature_extraction, feature_selection, gaussian_process, impute, linear_model, mixture, multiclass,
                     multioutput, naive_bayes, neighbors, neural_network, pipeline, preprocessing, random_projection,
                     svm, tree)
from sklearn.compose import ColumnTransformer
from sklearn.model_selection import GridSearchCV

SENTENCES = np.array(["the cat sat on the mat", "a dog ran", "the dog and the cat", "Birds fly high", "no words here"] * 12)


def rows(X, TWO, THREE, NAMES, REAL, REALS, HOLES, WORDS, COUNTS):
    """(name, function that gives a fitted model, inputs, options of the converter)."""
    positive, plain = np.abs(X), {"zipmap": False}
    trees = {"n_estimators": 4, "max_depth": 3, "random_state": 0}
    raw = {"zipmap": False, "raw_scores": True}
    classifiers = {
        "adaboost": ensemble.AdaBoostClassifier(n_estimators=3), "extra_trees": ensemble.ExtraTreesClassifier(**trees),
        "forest": ensemble.RandomForestClassifier(**trees), "boosting": ensemble.GradientBoostingClassifier(**trees),
        "histogram": ensemble.HistGradientBoostingClassifier(max_iter=4, max_leaf_nodes=5), "tree": tree.DecisionTreeClassifier(max_depth=4),
        "extra_tree": tree.ExtraTreeClassifier(max_depth=4), "bagged_logistic": ensemble.BaggingClassifier(linear_model.LogisticRegression(), n_estimators=3),
        "soft_voting": ensemble.VotingClassifier([("a", linear_model.LogisticRegression()), ("b", tree.DecisionTreeClassifier(max_depth=2))], voting="soft"),
        "hard_voting": ensemble.VotingClassifier([("a", linear_model.LogisticRegression()), ("b", tree.DecisionTreeClassifier(max_depth=2)), ("c", naive_bayes.GaussianNB())]),
        "stacking": ensemble.StackingClassifier([("a", linear_model.LogisticRegression()), ("b", tree.DecisionTreeClassifier(max_depth=2))]),
        "calibrated_sigmoid": calibration.CalibratedClassifierCV(linear_model.LogisticRegression(), method="sigmoid", cv=2),
        "calibrated_isotonic": calibration.CalibratedClassifierCV(linear_model.LogisticRegression(), method="isotonic", cv=2),
        "logistic_balanced": linear_model.LogisticRegression(class_weight="balanced"), "logistic_cv": linear_model.LogisticRegressionCV(cv=2),
        "sgd_log": linear_model.SGDClassifier(loss="log_loss", random_state=0), "sgd_hinge": linear_model.SGDClassifier(random_state=0),
        "ridge": linear_model.RidgeClassifier(), "passive": linear_model.PassiveAggressiveClassifier(random_state=0),
        "linear_svc": svm.LinearSVC(), "svc_poly": svm.SVC(kernel="poly", degree=3), "svc_sigmoid": svm.SVC(kernel="sigmoid", probability=True),
        "nu_svc": svm.NuSVC(nu=0.3, probability=True), "svc_one_to_rest": svm.SVC(decision_function_shape="ovr"), "svc_one_to_one": svm.SVC(decision_function_shape="ovo"),
        "lda": discriminant_analysis.LinearDiscriminantAnalysis(), "qda": discriminant_analysis.QuadraticDiscriminantAnalysis(reg_param=0.1),
        "gaussian": naive_bayes.GaussianNB(), "bernoulli": naive_bayes.BernoulliNB(binarize=0.2), "knn": neighbors.KNeighborsClassifier(4),
        "knn_distance": neighbors.KNeighborsClassifier(4, weights="distance"), "knn_manhattan": neighbors.KNeighborsClassifier(3, metric="manhattan"),
        "radius": neighbors.RadiusNeighborsClassifier(3.0), "mlp_relu": neural_network.MLPClassifier((4,), max_iter=20, random_state=0),
        "mlp_tanh": neural_network.MLPClassifier((4, 3), "tanh", max_iter=20, random_state=0), "mlp_logistic": neural_network.MLPClassifier((4,), "logistic", max_iter=20, random_state=0),
        "one_to_rest": multiclass.OneVsRestClassifier(linear_model.LogisticRegression()), "one_to_one": multiclass.OneVsOneClassifier(linear_model.LogisticRegression()),
        "gaussian_process": gaussian_process.GaussianProcessClassifier(), "search": GridSearchCV(linear_model.LogisticRegression(), {"C": [0.1, 1.0]}, cv=2),
        "chosen_then_tree": pipeline.make_pipeline(feature_selection.SelectKBest(k=2), tree.DecisionTreeClassifier(max_depth=3)),
        "powers_then_svc": pipeline.make_pipeline(preprocessing.PowerTransformer(), svm.SVC(probability=True)),
        "near_components_then_knn": pipeline.make_pipeline(neighbors.NeighborhoodComponentsAnalysis(random_state=0), neighbors.KNeighborsClassifier(3)),
    }
    has_raw = ("forest", "boosting", "logistic_balanced", "mlp_relu", "svc_poly", "sgd_hinge", "tree")
    for name, model in classifiers.items():
        for kind, labels in (("2", TWO), ("3", THREE), ("names", NAMES)):
            yield f"classifier_{name}_{kind}", (lambda m=model, y=labels: base.clone(m).fit(X, y)), X, plain
        if name in has_raw:
            yield f"classifier_{name}_raw", (lambda m=model: base.clone(m).fit(X, THREE)), X, raw
    for name, model in (("multinomial", naive_bayes.MultinomialNB()), ("complement", naive_bayes.ComplementNB()), ("categorical", naive_bayes.CategoricalNB())):
        yield f"classifier_{name}", (lambda m=model: m.fit(COUNTS, THREE)), COUNTS, plain
    yield "many_outputs_classifier", lambda: multioutput.MultiOutputClassifier(linear_model.LogisticRegression()).fit(X, np.stack([TWO, THREE], 1)), X, plain
    yield "many_labels_tree", lambda: tree.DecisionTreeClassifier(max_depth=3).fit(X, np.stack([TWO, THREE], 1)), X, plain
    yield "many_labels_forest", lambda: ensemble.RandomForestClassifier(**trees).fit(X, np.stack([TWO, 1 - TWO], 1)), X, plain
    yield "many_labels_knn", lambda: neighbors.KNeighborsClassifier(3).fit(X, np.stack([TWO, THREE], 1)), X, plain
    yield "many_labels_mlp", lambda: neural_network.MLPClassifier((4,), max_iter=20, random_state=0).fit(X, np.stack([TWO, 1 - TWO], 1)), X, plain
    yield "paths_of_tree", lambda: tree.DecisionTreeClassifier(max_depth=3).fit(X, THREE), X, {"zipmap": False, "decision_path": True, "decision_leaf": True}
    yield "paths_of_forest", lambda: ensemble.RandomForestRegressor(**trees).fit(X, REAL), X, {"decision_path": True, "decision_leaf": True}
    yield "columns_of_zipmap", lambda: linear_model.LogisticRegression().fit(X, NAMES), X, {"zipmap": "columns"}
    yield "scores_of_isolation", lambda: ensemble.IsolationForest(n_estimators=3, max_samples=16, random_state=0).fit(X), X, {"score_samples": True}
    regressors = {
        "adaboost": ensemble.AdaBoostRegressor(n_estimators=3, random_state=0), "bagging": ensemble.BaggingRegressor(n_estimators=3, random_state=0), "bayesian": linear_model.BayesianRidge(),
        "ard": linear_model.ARDRegression(), "gamma": pipeline.make_pipeline(preprocessing.StandardScaler(), linear_model.LinearRegression()), "histogram": ensemble.HistGradientBoostingRegressor(max_iter=4, max_leaf_nodes=5),
        "histogram_holes": ensemble.HistGradientBoostingRegressor(max_iter=4), "huber": linear_model.HuberRegressor(), "lasso_lars": linear_model.LassoLars(alpha=0.01), "lars": linear_model.Lars(),
        "knn": neighbors.KNeighborsRegressor(3), "knn_distance": neighbors.KNeighborsRegressor(3, weights="distance"), "radius": neighbors.RadiusNeighborsRegressor(3.0), "svr_linear": svm.SVR(kernel="linear"),
        "svr_sigmoid": svm.SVR(kernel="sigmoid"), "linear_svr": svm.LinearSVR(), "mlp": neural_network.MLPRegressor((4,), "tanh", max_iter=20, random_state=0), "mlp_identity": neural_network.MLPRegressor((4,), "identity", max_iter=20, random_state=0),
        "gaussian_process": gaussian_process.GaussianProcessRegressor(), "gaussian_process_sum": gaussian_process.GaussianProcessRegressor(gaussian_process.kernels.DotProduct() + gaussian_process.kernels.WhiteKernel()),
        "gaussian_process_matern": gaussian_process.GaussianProcessRegressor(gaussian_process.kernels.ConstantKernel(2.0) * gaussian_process.kernels.Matern(nu=1.5)),
        "gaussian_process_quadratic": gaussian_process.GaussianProcessRegressor(gaussian_process.kernels.RationalQuadratic()), "gaussian_process_periodic": gaussian_process.GaussianProcessRegressor(gaussian_process.kernels.ExpSineSquared()),
        "pls": cross_decomposition.PLSRegression(2), "quantile": linear_model.QuantileRegressor(), "ransac": linear_model.RANSACRegressor(random_state=0), "theil_sen": linear_model.TheilSenRegressor(random_state=0),
        "voting": ensemble.VotingRegressor([("a", linear_model.Ridge()), ("b", tree.DecisionTreeRegressor(max_depth=2))]), "stacking": ensemble.StackingRegressor([("a", linear_model.Ridge()), ("b", tree.DecisionTreeRegressor(max_depth=2))]),
        "extra_tree": tree.ExtraTreeRegressor(max_depth=4), "sgd": linear_model.SGDRegressor(random_state=0), "orthogonal": linear_model.OrthogonalMatchingPursuit(),
    }
    for name, model in regressors.items():
        inputs = HOLES if name == "histogram_holes" else X
        yield f"regressor_{name}", (lambda m=model, x=inputs: m.fit(x, REAL)), inputs, None
    for name, model in (("tweedie", linear_model.TweedieRegressor(power=1.5)), ("gamma", linear_model.GammaRegressor())):
        yield f"regressor_{name}_positive", (lambda m=model: m.fit(X, np.abs(REAL) + 0.1)), X, None
    yield "regressor_deviation", lambda: gaussian_process.GaussianProcessRegressor(alpha=0.1).fit(X, REAL), X, {"return_std": True}
    for name, model in (("forest", ensemble.RandomForestRegressor(**trees)), ("knn", neighbors.KNeighborsRegressor(3)), ("mlp", neural_network.MLPRegressor((4,), max_iter=20, random_state=0)),
                        ("multi_task", linear_model.MultiTaskLasso(alpha=0.01)), ("many", multioutput.MultiOutputRegressor(svm.SVR())), ("pls", cross_decomposition.PLSRegression(2))):
        yield f"regressor_{name}_2_targets", (lambda m=model: m.fit(X, REALS)), X, None
    transforms = {
        "power": preprocessing.PowerTransformer(), "power_plain": preprocessing.PowerTransformer(standardize=False), "quantile": preprocessing.QuantileTransformer(n_quantiles=9),
        "polynomial_3": preprocessing.PolynomialFeatures(3, interaction_only=True), "polynomial_no_bias": preprocessing.PolynomialFeatures(2, include_bias=False), "bins_quantile": preprocessing.KBinsDiscretizer(4, encode="ordinal", strategy="quantile"),
        "bins_kmeans": preprocessing.KBinsDiscretizer(3, encode="onehot", strategy="kmeans"), "robust_plain": preprocessing.RobustScaler(with_centering=False), "min_max_clip": preprocessing.MinMaxScaler(clip=True, feature_range=(0.2, 0.7)),
        "kernel_pca": decomposition.KernelPCA(2, kernel="rbf"), "kernel_pca_cosine": decomposition.KernelPCA(2, kernel="cosine"), "incremental_pca": decomposition.IncrementalPCA(2), "whitened_pca": decomposition.PCA(2, whiten=True),
        "truncated_svd": decomposition.TruncatedSVD(2), "random_projection": random_projection.GaussianRandomProjection(3, random_state=0), "k_means_batches": cluster.MiniBatchKMeans(3, n_init=1, random_state=0),
        "mixture": mixture.GaussianMixture(3, random_state=0), "mixture_tied": mixture.GaussianMixture(2, covariance_type="tied", random_state=0), "mixture_diag": mixture.GaussianMixture(2, covariance_type="diag", random_state=0),
        "mixture_spherical": mixture.GaussianMixture(2, covariance_type="spherical", random_state=0), "mixture_bayesian": mixture.BayesianGaussianMixture(n_components=2, random_state=0),
        "outliers": neighbors.LocalOutlierFactor(5, novelty=True), "neighbors": neighbors.NearestNeighbors(n_neighbors=3), "neighbor_graph": neighbors.KNeighborsTransformer(n_neighbors=3), "variance": feature_selection.VarianceThreshold(0.5),
        "embedding": ensemble.RandomTreesEmbedding(n_estimators=3, max_depth=2, random_state=0), "sgd_one_class": linear_model.SGDOneClassSVM(random_state=0),
        "union": pipeline.FeatureUnion([("a", preprocessing.StandardScaler()), ("b", decomposition.PCA(2))]), "union_weighted": pipeline.FeatureUnion([("a", preprocessing.MinMaxScaler()), ("b", preprocessing.Normalizer())], transformer_weights={"a": 2.0, "b": 0.5}),
        "function": preprocessing.FunctionTransformer(), "kernel_center": preprocessing.KernelCenterer(),
    }
    for name, model in transforms.items():
        yield f"transform_{name}", (lambda m=model: m.fit(X)), X, None
    yield "transform_box_cox", lambda: preprocessing.PowerTransformer("box-cox").fit(positive + 0.1), positive + np.float32(0.1), None
    for strategy in ("median", "most_frequent", "constant"):
        yield f"imputer_{strategy}", (lambda s=strategy: impute.SimpleImputer(strategy=s, **({"fill_value": 2.0} if s == "constant" else {})).fit(HOLES)), HOLES, None
    yield "imputer_knn", lambda: impute.KNNImputer(n_neighbors=2).fit(HOLES), HOLES, None
    yield "imputer_marks", lambda: impute.SimpleImputer(add_indicator=True).fit(HOLES), HOLES, None
    yield "imputer_words", lambda: impute.SimpleImputer(strategy="most_frequent", missing_values="a").fit(WORDS.astype(object)), WORDS, None
    for name, chooser in (("best", feature_selection.SelectKBest(k=2)), ("percentile", feature_selection.SelectPercentile(percentile=50)), ("fdr", feature_selection.SelectFdr(alpha=0.9)),
                          ("by_model", feature_selection.SelectFromModel(linear_model.LogisticRegression())), ("eliminated", feature_selection.RFE(linear_model.LogisticRegression(), n_features_to_select=2)),
                          ("generic", feature_selection.GenericUnivariateSelect(mode="k_best", param=3))):
        yield f"chosen_{name}", (lambda c=chooser: c.fit(X, THREE)), X, None
    for name, words in (("count", feature_extraction.text.CountVectorizer()), ("count_pairs", feature_extraction.text.CountVectorizer(ngram_range=(1, 2))), ("binary", feature_extraction.text.CountVectorizer(binary=True)),
                        ("tfidf", feature_extraction.text.TfidfVectorizer()), ("tfidf_pairs", feature_extraction.text.TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True)), ("tfidf_l1", feature_extraction.text.TfidfVectorizer(norm="l1", use_idf=False)),
                        ("stopped", feature_extraction.text.TfidfVectorizer(stop_words=["the", "a"])), ("cased", feature_extraction.text.CountVectorizer(lowercase=False)), ("letters", feature_extraction.text.CountVectorizer(analyzer="char", ngram_range=(2, 2)))):
        yield f"words_{name}", (lambda w=words: w.fit(SENTENCES)), SENTENCES.reshape(-1, 1), None
    yield "words_then_logistic", lambda: pipeline.make_pipeline(feature_extraction.text.TfidfVectorizer(), linear_model.LogisticRegression()).fit(SENTENCES, NAMES[: len(SENTENCES)]), SENTENCES.reshape(-1, 1), None
    yield "words_then_bayes", lambda: pipeline.make_pipeline(feature_extraction.text.CountVectorizer(), naive_bayes.MultinomialNB()).fit(SENTENCES, THREE[: len(SENTENCES)]), SENTENCES.reshape(-1, 1), None
    for name, encoder in (("infrequent", preprocessing.OneHotEncoder(min_frequency=20, handle_unknown="infrequent_if_exist")), ("dropped", preprocessing.OneHotEncoder(drop="first")), ("dense", preprocessing.OneHotEncoder(sparse_output=False)),
                          ("unknown", preprocessing.OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1)), ("target", preprocessing.TargetEncoder(cv=2, random_state=0))):
        yield f"encoded_{name}", (lambda e=encoder: e.fit(WORDS, TWO)), WORDS, None
        yield f"encoded_{name}_counts", (lambda e=encoder: base.clone(e).fit(COUNTS, TWO)), COUNTS, None
    yield "encoded_then_forest", lambda: pipeline.make_pipeline(preprocessing.OneHotEncoder(handle_unknown="ignore"), ensemble.RandomForestClassifier(**trees)).fit(WORDS, NAMES), WORDS, None
    yield "binarized_labels", lambda: preprocessing.LabelBinarizer(neg_label=-1, pos_label=2).fit(COUNTS[:, 0]), COUNTS[:, :1], None
    yield "encoded_labels", lambda: preprocessing.LabelEncoder().fit(COUNTS[:, 0]), COUNTS[:, :1], None
    mixed = ColumnTransformer([("a", pipeline.make_pipeline(impute.SimpleImputer(), preprocessing.StandardScaler()), [0, 1]), ("b", preprocessing.KBinsDiscretizer(3, encode="onehot-dense", strategy="uniform"), [2]), ("c", "drop", [3])], remainder="passthrough")
    yield "columns_mixed", lambda: pipeline.make_pipeline(mixed, linear_model.Ridge()).fit(X, REAL), X, None

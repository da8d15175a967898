"""Whatever users hold goes in, or is refused with a reason."""

import inspect

import numpy as np
import pytest
import scipy.sparse
from sklearn.neighbors import KNeighborsTransformer

import a2lp
from a2lp import A2LP, A2LPWarning, _native


def test_layouts_and_types_give_the_same_labels(stacked, tmp_path):
    X, y, _ = stacked
    plain = A2LP().fit(X, y)
    wide = np.zeros((len(X), 2 * X.shape[1]), dtype="f4")
    wide[:, ::2] = X
    read_only = X.copy()
    read_only.setflags(write=False)
    np.save(tmp_path / "x.npy", X)
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    for same in (np.asfortranarray(X), wide[:, ::2], read_only, mapped, X.astype("f8"), X.tolist()):
        model = A2LP().fit(same, y)
        np.testing.assert_array_equal(model.transduction_, plain.transduction_)
        np.testing.assert_array_equal(model.label_distributions_, plain.label_distributions_)
    half = A2LP().fit(X.astype("f2"), y)
    assert (half.transduction_ == plain.transduction_).mean() > 0.99
    assert read_only.flags.writeable is False


def test_rows_may_stand_in_any_order(stacked):
    X, y, _ = stacked
    plain = A2LP().fit(X, y)
    mixed = np.random.default_rng(1).permutation(len(X))
    model = A2LP().fit(X[mixed], y[mixed])
    assert (model.transduction_ == plain.transduction_[mixed]).mean() > 0.98
    assert (model.status_[y[mixed] >= 0] == "given").all()


def test_labels_of_every_kind(domains):
    source, ys, target, yt = domains
    X = np.concatenate([source, target])
    names = np.array(["mug", "bike", "bowl"])

    def accuracy(y, truth):
        model = A2LP().fit(X, y)
        return (model.transduction_[len(source) :] == truth).mean()

    gap = len(target)
    assert accuracy(np.concatenate([ys.astype(float), np.full(gap, np.nan)]), yt) > 0.9
    assert accuracy(list(names[ys]) + [None] * gap, names[yt]) > 0.9
    assert accuracy(list(names[ys]) + [float("nan")] * gap, names[yt]) > 0.9
    pandas = pytest.importorskip("pandas")
    series = pandas.Series(list(names[ys]) + [pandas.NA] * gap)
    model = A2LP().fit(pandas.DataFrame(X, columns=[f"f{i}" for i in range(X.shape[1])]), series)
    assert (model.transduction_[len(source) :] == names[yt]).mean() > 0.9
    assert list(model.feature_names_in_[:2]) == ["f0", "f1"]


def test_what_no_label_reaches_is_minus_one_or_none_and_said():
    # The last two rows are orthogonal to everything labelled.
    X = np.array([[1, 0, 0], [0.9, 0.1, 0], [0.1, 1, 0], [0, 0.8, 0.0], [0, 0, 1], [0, 0, 2]], dtype="f4")
    with pytest.warns(A2LPWarning, match="no path to any label"):
        model = A2LP(n_neighbors=2, method="a2lp").fit(X, [5, -1, 7, -1, -1, -1])
    assert model.transduction_.tolist() == [5, 5, 7, 7, -1, -1]
    assert model.reached_.tolist() == [True] * 4 + [False] * 2
    assert model.confidence_[4:].tolist() == [0, 0]
    np.testing.assert_allclose(model.label_distributions_[4:], 0.5)
    with pytest.warns(A2LPWarning):
        model = A2LP(n_neighbors=2, method="a2lp").fit(X, ["a", None, "b", None, None, None])
    assert model.transduction_.tolist() == ["a", "a", "b", "b", None, None]
    with pytest.warns(A2LPWarning, match="similar to no labelled one"):
        assert model.predict([[0, 0, 3], [1, 0, 0]]).tolist() == [None, "a"]


@pytest.mark.parametrize(
    ("wrong", "error", "message"),
    [
        (dict(n_neighbors=0), ValueError, "n_neighbors = 0: at least 1"),
        (dict(n_neighbors=2.5), TypeError, "n_neighbors = 2.5: a whole number"),
        (dict(n_neighbors=-3), ValueError, "n_neighbors = -3"),
        (dict(alpha=-1), ValueError, "alpha = -1: above 0"),
        (dict(alpha=2), ValueError, "the paper's ablation"),
        (dict(n_rounds=0), ValueError, "n_rounds = 0: at least 1"),
        (dict(tol=0), ValueError, "tol = 0: between 0 and 1"),
        (dict(max_iter=0), ValueError, "max_iter = 0"),
        (dict(metric="euclid"), ValueError, "metric = \"euclid\""),
        (dict(solver="fast"), ValueError, "'auto', 'cg', 'dense'"),
        (dict(min_confidence=3), ValueError, "min_confidence = 3"),
    ],
)
def test_parameters_out_of_range_are_named_as_python_users_know_them(stacked, wrong, error, message):
    X, y, _ = stacked
    with pytest.raises(error) as raised:
        A2LP(**wrong).fit(X, y)
    assert message in str(raised.value)


def test_bad_input_is_named_with_its_place(stacked):
    X, y, _ = stacked
    broken = X.copy()
    broken[17, 3] = np.nan
    with pytest.raises(ValueError, match="NaN: row 17, column 3"):
        A2LP().fit(broken, y)
    broken[17, 3] = np.inf
    with pytest.raises(ValueError, match=r"inf.*row 17, column 3"):
        A2LP().fit(broken, y)
    with pytest.raises(TypeError, match=r"(?i)sparse"):
        A2LP().fit(scipy.sparse.csr_matrix(X), y)
    with pytest.raises(TypeError, match="toarray"):
        a2lp.label(scipy.sparse.csr_matrix(X), y, X)
    with pytest.raises(ValueError, match="nothing to go by"):
        A2LP().fit(X, np.full(len(X), -1))
    with pytest.raises(ValueError, match="one label"):
        A2LP().fit(X, y[:-1])
    with pytest.raises(ValueError, match="sample_domain"):
        A2LP().fit(X, y, sample_domain=[1, -1])
    with pytest.raises(ValueError, match="same extractor"):
        a2lp.label(X, y, X[:, :3])


def test_graphs_of_any_origin(stacked):
    X, y, _ = stacked
    plain = A2LP(n_neighbors=12, method="a2lp").fit(X, y)
    graph = a2lp.neighbor_graph(X, n_neighbors=12)
    assert graph.shape == (len(X), len(X)) and (np.diff(graph.indptr) == 12).all()
    by_graph = A2LP(n_neighbors=12).fit(X, y, graph=graph)
    np.testing.assert_array_equal(by_graph.label_distributions_, plain.label_distributions_)
    # Rows in another order: the graph comes along in that order.
    mixed = np.random.default_rng(0).permutation(len(X))
    shuffled = A2LP(n_neighbors=12).fit(X[mixed], y[mixed], graph=graph[mixed][:, mixed])
    np.testing.assert_allclose(shuffled.label_distributions_, plain.label_distributions_[mixed], atol=1e-4)

    indices = graph.indices.reshape(len(X), 12)
    values = graph.data.reshape(len(X), 12)
    by_arrays = A2LP(n_neighbors=12).fit(X, y, graph=(indices, values))
    np.testing.assert_array_equal(by_arrays.label_distributions_, plain.label_distributions_)
    distances = KNeighborsTransformer(n_neighbors=12, metric="cosine", mode="distance").fit_transform(X)
    by_sklearn = A2LP(n_neighbors=12).fit(X, y, graph=distances)
    np.testing.assert_allclose(by_sklearn.label_distributions_, plain.label_distributions_, atol=1e-4)

    # The same formula, exp(-d²/2σ²), whether the distances are ours or the user's.
    gaussian = {"n_neighbors": 12, "metric": "gaussian", "gauss_sigma2": 20.0}
    plain = A2LP(**gaussian).fit(X, y)
    distances = KNeighborsTransformer(n_neighbors=12, mode="distance").fit_transform(X)
    by_sklearn = A2LP(**gaussian).fit(X, y, graph=distances)
    np.testing.assert_allclose(by_sklearn.label_distributions_, plain.label_distributions_, atol=1e-4)

    with pytest.raises(ValueError, match="shape"):
        A2LP().fit(X, y, graph=graph[:5, :5])
    with pytest.raises(ValueError, match="distances cannot"):
        A2LP(metric="dot3").fit(X, y, graph=graph, graph_values="distance")
    with pytest.raises(TypeError, match="sparse matrix or a pair"):
        A2LP().fit(X, y, graph="graph.npz")


def test_one_call(domains, tmp_path):
    source, ys, target, yt = domains
    ids = [f"item {i}" for i in range(len(target))]
    result = a2lp.label(source, ys, target, ids=ids, min_confidence=0.9)
    assert (result.labels == yt).mean() > 0.9 and len(result) == len(target)
    frame = result.to_frame()
    assert list(frame.columns) == ["label", "confidence", "margin", "status", "votes", "reach"] and frame.index[3] == "item 3"
    assert set(frame["status"]) <= {"labelled", "low-confidence"}
    page = tmp_path / "page.html"
    result.report(page, y_true=yt, title="Two <domains>")
    text = page.read_text()
    assert "Two &lt;domains&gt;" in text and "item 3" in text and "Calibration" in text and "Accuracy round by round" in text
    with pytest.raises(FileExistsError, match="force=True"):
        result.report(page)
    result.report(page, force=True, map="tsne")
    assert "t-SNE by cosine" in page.read_text()
    with pytest.raises(ValueError, match="one per row"):
        result.model.report(tmp_path / "other.html", ids=ids[:3])


def test_points_that_come_later_are_labelled_by_their_neighbours(domains):
    source, ys, target, yt = domains
    X = np.concatenate([source, target[::2]])
    model = A2LP(n_neighbors=9, n_rounds=3).fit(X, np.concatenate([ys, np.full(len(target[::2]), -1)]))
    new = target[1::2]
    assert (model.predict(new) == yt[1::2]).mean() > 0.9
    # By hand: the nine nearest of all nodes, anchors included, weighted by their cosine.
    nodes = np.concatenate([X, model.anchors_]).astype("f8")
    nodes /= np.linalg.norm(nodes, axis=1, keepdims=True)
    points = new / np.linalg.norm(new, axis=1, keepdims=True)
    cosine = points.astype("f8") @ nodes.T
    anchor_rows = model._model.parts()[3][len(X) :]
    distributions = np.concatenate([model.label_distributions_, anchor_rows])
    for row, similar in enumerate(cosine):
        nearest = np.argsort(-similar)[:9]
        p = np.maximum(similar[nearest], 0) @ distributions[nearest]
        np.testing.assert_allclose(model.predict_proba(new[row : row + 1])[0], p / p.sum(), atol=1e-5)


def test_pseudo_labeller_filters_as_training_goes_on(domains):
    source, ys, target, _yt = domains
    labeller = a2lp.PseudoLabeller(threshold=0.95, min_per_class=3)
    early, late = labeller(source, ys, target, training=0.0), labeller(source, ys, target, training=1.0)
    np.testing.assert_array_equal(early.labels, late.labels)
    assert early.keep.sum() < late.keep.sum() == len(target)
    np.testing.assert_array_equal(early.keep, early.weights > 0.95)
    few = a2lp.PseudoLabeller(threshold=0.0, min_per_class=len(target))(source, ys, target)
    assert not few.keep.any()
    with pytest.raises(ValueError, match="n_rounds = 0"):
        a2lp.PseudoLabeller(n_rounds=0)


def test_every_parameter_of_the_library_is_here():
    signature = inspect.signature(A2LP.__init__).parameters
    for name, default, about in _native.parameters():
        assert name in signature and f"    {name} :" in A2LP.__doc__, f"{name}: {about}"
        ours = signature[name].default
        # joblib says None for all cores, where the library says 0.
        ours = 0 if name == "n_jobs" and ours is None else ours
        assert ours == (type(ours)(default) if not isinstance(ours, bool) else default == "true"), name
    assert set(signature) - {"self", "progress"} == {name for name, _, _ in _native.parameters()}

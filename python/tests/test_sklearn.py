"""scikit-learn's contract."""

import pickle

import numpy as np
import pytest
from conftest import two_domains
from sklearn.base import clone, is_classifier
from sklearn.model_selection import GridSearchCV, PredefinedSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.semi_supervised import LabelSpreading
from sklearn.utils.estimator_checks import parametrize_with_checks

import a2lp
from a2lp import A2LP


def expected(estimator):
    return {"check_classifiers_classes": "it feeds -1 as a class, which here says that there is no label"}


@parametrize_with_checks([A2LP(), A2LP(n_neighbors=5, metric="gaussian", gauss_sigma2=10.0)], expected_failed_checks=expected)
def test_contract(estimator, check):
    check(estimator)


def test_string_labels_as_the_excepted_check_has_them():
    source, ys, target, yt = two_domains()
    names = np.array(["one", "two", "three"])
    model = A2LP().fit(source, names[ys])
    assert list(model.classes_) == ["one", "three", "two"]
    assert (model.predict(target) == names[yt]).mean() > 0.9
    with_missing = np.concatenate([names[ys].astype(object), np.full(len(target), None)])
    model = A2LP().fit(np.concatenate([source, target]), with_missing)
    assert (model.transduction_[len(source) :] == names[yt]).mean() > 0.9


def test_clone_pickle_and_parameters(stacked):
    X, y, _ = stacked
    model = A2LP(n_neighbors=7, alpha=0.3).fit(X, y)
    assert is_classifier(model) and isinstance(model, A2LP)
    assert "n_neighbors=7" in repr(model)
    copy = clone(model)
    assert copy.get_params() == model.get_params() and not hasattr(copy, "classes_")
    again = pickle.loads(pickle.dumps(model))
    assert type(again) is type(model)
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    np.testing.assert_array_equal(again.transduction_, model.transduction_)
    with pytest.raises(ValueError, match="pickled"):
        again.report("page.html")


def test_subclasses_are_estimators_too(stacked):
    X, y, _ = stacked
    model = Fewer().fit(X, y)
    assert clone(model).n_neighbors == 5
    assert type(pickle.loads(pickle.dumps(model))) is type(model)


class Fewer(A2LP):
    def __init__(self, n_neighbors=5):
        super().__init__(n_neighbors=n_neighbors)

    def _settings(self):
        return {"n_neighbors": self.n_neighbors}


def test_in_a_pipeline_and_a_grid_search(stacked):
    X, y, truth = stacked
    pipeline = make_pipeline(StandardScaler(), A2LP())
    assert (pipeline.fit(X, y).predict(X[y < 0]) == truth[y < 0]).mean() > 0.9
    # One split: fit on everything, score where the truth is known.
    fold = PredefinedSplit(np.where(np.arange(len(X)) % 5 == 0, 0, -1))
    grid = GridSearchCV(A2LP(), {"n_neighbors": [5, 20], "alpha": [0.3, 0.7]}, cv=fold, n_jobs=2).fit(X, truth)
    assert grid.best_score_ > 0.9 and set(grid.best_params_) == {"n_neighbors", "alpha"}


@pytest.mark.parametrize("alpha", [0.2, 0.5, 0.9])
def test_agrees_with_label_spreading_on_the_same_graph(stacked, alpha):
    """F = αSF + (1 − α)Y and (I − αS)F = Y have the same rows but for their scale."""
    X, y, _ = stacked
    graph = a2lp.neighbor_graph(X, n_neighbors=8, symmetric=True).toarray().astype(np.float64)
    theirs = LabelSpreading(kernel=lambda a, b: graph, alpha=alpha, max_iter=20_000, tol=1e-12).fit(X, y)
    ours = A2LP(n_neighbors=8, alpha=alpha, n_rounds=1, tol=1e-8).fit(X, y)
    np.testing.assert_allclose(ours.label_distributions_, theirs.label_distributions_, atol=1e-4)
    np.testing.assert_array_equal(ours.transduction_[y < 0], theirs.transduction_[y < 0])


def test_a_consensus_votes_and_its_quality_can_be_told():
    source, ys, target, yt = two_domains()
    result = a2lp.label(source, ys, target, method="consensus", views=2, quality=True)
    assert (result.labels == yt).mean() > 0.9
    assert set(result.votes) <= {0, 1, 2} and (result.votes == 2).mean() > 0.5
    assert "votes" in result.to_frame()
    assert 0 < result.model.quality_["score"] <= 1
    assert (result.model.predict(target) == yt).mean() > 0.9
    plain = a2lp.label(source, ys, target, method="a2lp")
    assert plain.votes is None and plain.model.quality_ is None
    with pytest.raises(ValueError, match="views = 4"):
        a2lp.label(source, ys, target, method="consensus", views=4)

"""Classes that the labelled rows lack, and the method that is used by default."""

import numpy as np
import pytest

import a2lp
from a2lp import A2LP, A2LPWarning


def clusters(source_axes, target_axes, seed=0):
    """Rows about axes; returns source, its labels, target and its truth."""
    rng = np.random.default_rng(seed)

    def rows(axes, shift):
        x = 0.3 + shift + 0.4 * rng.uniform(-1, 1, (len(axes), 8))
        x[np.arange(len(axes)), axes] += 2
        return x.astype("f4")

    source_axes, target_axes = np.asarray(source_axes), np.asarray(target_axes)
    return rows(source_axes, 0), source_axes, rows(target_axes, 0.1), target_axes


@pytest.fixture
def with_a_new_class():
    return clusters(np.arange(90) % 3, np.arange(120) % 4)


def test_unknown_rows_are_ranked_by_default(with_a_new_class):
    source, ys, target, yt = with_a_new_class
    with pytest.warns(A2LPWarning, match="match nothing in the source"):
        result = a2lp.label(source, ys, target)
    assert (result.labels >= 0).all() and result.verdict["verdict"] == "new"
    assert (result.unknown == (yt == 3)).mean() > 0.97
    assert result.reach[yt == 3].mean() < 0.3 * result.reach[yt != 3].mean()
    assert (yt[result.unknown_groups[0]] == 3).all()
    assert result.to_frame()["reach"].tolist() == result.reach.tolist()


def test_unknown_rows_are_flagged_when_asked(with_a_new_class):
    source, ys, target, _ = with_a_new_class
    X, y = np.concatenate([source, target]), np.concatenate([ys, np.full(len(target), -1)])
    model = A2LP(unknown="flag").fit(X, y)
    flagged = model.status_ == "unknown"
    assert (model.transduction_[flagged] == -1).all() and (flagged == model.unknown_).all()
    assert np.isnan(model.reach_[:90]).all() and not flagged[:90].any()
    assert all((group >= 90).all() for group in model.unknown_groups_)
    # An estimator predicts no class that it was not given.
    assert set(model.predict(target)) <= set(model.classes_)
    names = np.array(["mug", "bike", "bowl"], dtype=object)[ys]
    result = a2lp.label(source, names, target, unknown="flag")
    assert {result.labels[item] for item in np.flatnonzero(result.unknown)} == {None}
    assert set(result.nearest_labels[result.unknown]) <= {"mug", "bike", "bowl"}
    assert set(result.nearest_labels[~result.unknown]) == {None}
    assert "nearest_label" in result.to_frame()


def test_nothing_is_said_unless_it_was_measured(with_a_new_class):
    source, ys, target, _ = with_a_new_class
    result = a2lp.label(source, ys, target, unknown="off")
    assert result.reach is None and result.unknown is None and result.verdict is None and result.unknown_groups == []


def test_what_cannot_be_told_is_an_answer(with_a_new_class):
    source, ys, target, _ = with_a_new_class
    result = a2lp.label(source, ys, target[:5], unknown="flag")
    assert result.verdict["verdict"] == "cannot-tell" and "fewer than 20 rows" in result.verdict["message"]
    assert (result.labels >= 0).all()


def test_the_method_and_why(with_a_new_class):
    source, ys, target, _ = with_a_new_class

    def method(**settings):
        return a2lp.label(source, ys, target, unknown="off", **settings).model.method_

    assert method() == "consensus of 3 views (auto)"
    assert method(method="a2lp") == "a2lp"
    assert method(metric="gaussian") == "a2lp (auto: the consensus cannot use similarity gaussian)"
    with pytest.raises(ValueError, match="the paper's ablation, not a setting"):
        A2LP(alpha=3).check_settings()

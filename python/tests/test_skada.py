"""Inside skada, the real one."""

import numpy as np
import pytest
import sklearn
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.preprocessing import StandardScaler

skada = pytest.importorskip("skada")

from skada import make_da_pipeline, source_target_split  # noqa: E402
from skada.datasets import make_shifted_datasets  # noqa: E402
from skada.metrics import PredictionEntropyScorer, SoftNeighborhoodDensity  # noqa: E402
from skada.model_selection import SourceTargetShuffleSplit  # noqa: E402

from a2lp import A2LP  # noqa: E402


@pytest.fixture
def data():
    with sklearn.config_context(enable_metadata_routing=True):
        yield make_shifted_datasets(
            n_samples_source=20, n_samples_target=20, shift="covariate_shift", random_state=0, return_X_y=True
        )


def masked(y, domain):
    return np.where(domain < 0, -1, y)


def test_pipeline_with_sample_domain(data):
    X, y, domain = data
    pipeline = make_da_pipeline(StandardScaler(), A2LP(n_neighbors=10))
    pipeline.fit(X, masked(y, domain), sample_domain=domain)
    X_target, y_target = source_target_split(X, y, sample_domain=domain)[1::2]
    assert pipeline.score(X_target, y_target) > 0.7
    assert np.allclose(pipeline.predict_proba(X_target).sum(axis=1), 1)


def test_target_labels_are_not_looked_at(data):
    X, y, domain = data
    honest = A2LP(n_neighbors=10).fit(X, masked(y, domain), sample_domain=domain)
    told = A2LP(n_neighbors=10).fit(X, y, sample_domain=domain)
    np.testing.assert_array_equal(honest.transduction_, told.transduction_)
    np.testing.assert_array_equal(honest.label_distributions_, told.label_distributions_)


@pytest.mark.parametrize("scorer", [PredictionEntropyScorer(), SoftNeighborhoodDensity()])
def test_scorers(data, scorer):
    X, y, domain = data
    pipeline = make_da_pipeline(StandardScaler(), A2LP(n_neighbors=10))
    scores = cross_validate(
        pipeline,
        X,
        y,
        params={"sample_domain": domain},
        cv=SourceTargetShuffleSplit(n_splits=3, random_state=0),
        scoring=scorer,
        error_score="raise",
    )["test_score"]
    assert len(scores) == 3 and np.isfinite(scores).all()


def test_grid_search(data):
    X, y, domain = data
    pipeline = make_da_pipeline(StandardScaler(), A2LP())
    grid = GridSearchCV(
        pipeline,
        {"a2lp__n_neighbors": [5, 20]},
        cv=SourceTargetShuffleSplit(n_splits=2, random_state=0),
        scoring=PredictionEntropyScorer(),
        error_score="raise",
    )
    grid.fit(X, y, sample_domain=domain)
    assert grid.best_params_["a2lp__n_neighbors"] in (5, 20)

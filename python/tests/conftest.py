"""Data that every test file uses: three classes in two domains, the second moved and stretched."""

import numpy as np
import pytest


def two_domains(seed=0, per_class=40, columns=16, shift=0.6, noise=1.3):
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(3, columns)) + 1.0
    y = np.repeat(np.arange(3), per_class)
    source = centres[y] + noise * rng.normal(size=(len(y), columns))
    target = centres[y] * 1.2 + shift * rng.normal(size=columns) + noise * rng.normal(size=(len(y), columns))
    return source.astype("f4"), y, target.astype("f4"), y.copy()


@pytest.fixture
def domains():
    return two_domains()


@pytest.fixture
def stacked(domains):
    """X, y with -1 for the target, and the truth."""
    source, ys, target, yt = domains
    return np.concatenate([source, target]), np.concatenate([ys, np.full(len(target), -1)]), np.concatenate([ys, yt])

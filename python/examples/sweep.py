"""A sweep over settings that shares one neighbour search, and a choice without target labels."""

import numpy as np

import a2lp
from a2lp import A2LP

rng = np.random.default_rng(1)
centres = rng.normal(size=(5, 64)) + 0.3
y_source, y_target = rng.integers(0, 5, 500), rng.integers(0, 5, 500)
source = centres[y_source] + 2.0 * rng.normal(size=(500, 64))
target = centres[y_target] + 0.7 * rng.normal(size=64) + 2.5 * rng.normal(size=(500, 64))
X = np.concatenate([source, target])
y = np.concatenate([y_source, np.full(500, -1)])

graph = a2lp.neighbor_graph(X, n_neighbors=20)  # found once, used by every fit
print("alpha  rounds  accuracy  mean confidence")
for alpha in (0.3, 0.5, 0.7, 0.9):
    for rounds in (1, 5, 10):
        model = A2LP(alpha=alpha, n_rounds=rounds).fit(X, y, graph=graph)
        accuracy = (model.transduction_[500:] == y_target).mean()
        print(f"{alpha:5}  {rounds:6}  {accuracy:8.1%}  {model.confidence_[500:].mean():15.3f}")

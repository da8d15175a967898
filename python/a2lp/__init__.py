"""Label a new domain without labelling it.

You have labelled data from one domain and unlabelled data from another, both as feature vectors of the same extractor.
A2LP builds a k-nearest-neighbour graph over both, propagates the labels, turns confident predictions into one anchor per
class, adds the anchors as labelled nodes, and repeats.

>>> import numpy as np, a2lp
>>> source = np.array([[1, 0.1], [0.1, 1]], dtype="f4")
>>> target = np.array([[0.9, 0.3], [0.8, 0.2], [0.3, 0.7]], dtype="f4")
>>> a2lp.label(source, ["mug", "bike"], target, n_neighbors=2).labels.tolist()
['mug', 'mug', 'bike']
"""

from ._native import __version__
from .estimator import A2LP
from .graph import neighbor_graph
from .pseudo_labeller import PseudoLabeller, PseudoLabels
from .result import LabelResult, label
from .review import ReviewSession, review
from .validation import A2LPWarning

__all__ = [
    "A2LP",
    "A2LPWarning",
    "LabelResult",
    "PseudoLabeller",
    "PseudoLabels",
    "ReviewSession",
    "__version__",
    "label",
    "neighbor_graph",
    "review",
]

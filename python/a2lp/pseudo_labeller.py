"""Pseudo-labels for a training loop: call it between epochs with fresh features."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .estimator import A2LP
from .result import label


class PseudoLabels(NamedTuple):
    """Labels of the target items (-1: none), their weights (0 to 1), and which of them to train on."""

    labels: object
    weights: object
    keep: object


class PseudoLabeller:
    """Makes pseudo-labels from the features of the moment.

    Parameters
    ----------
    threshold : float
        Keep an item when its weight is above threshold · (1 − training), where `training` is how much of the training
        is over: strict at first, everything at the end. 0 keeps all that have a label.
    min_per_class : int
        Classes with fewer items kept are left out altogether.
    **settings
        Parameters of :class:`A2LP`, used at every call.

    Examples
    --------
    >>> import numpy as np, a2lp
    >>> labeller = a2lp.PseudoLabeller(threshold=0.5, min_per_class=1, n_neighbors=2)
    >>> labels, weights, keep = labeller([[1, 0], [0, 1]], [0, 1], [[0.9, 0.2], [0.1, 0.8]], training=0.25)
    >>> labels.tolist(), keep.tolist()
    ([0, 1], [True, True])
    """

    def __init__(self, *, threshold=0.7, min_per_class=3, **settings):
        if not 0 <= threshold <= 1:
            raise ValueError(f"threshold = {threshold}: between 0 and 1")
        # Reach is for people who look at the items.
        settings.setdefault("unknown", "off")
        A2LP(**settings).check_settings()
        self.threshold = threshold
        self.min_per_class = min_per_class
        self.settings = settings

    def __call__(self, source_features, source_labels, target_features, training=0.0) -> PseudoLabels:
        """Labels, weights and a keep-mask for the target items; tensors when the features are tensors."""
        if not 0 <= training <= 1:
            raise ValueError(f"training = {training}: the share of the training that is over, 0 to 1")
        result = label(source_features, source_labels, target_features, **self.settings)
        if result.classes.dtype.kind not in "iu":
            raise ValueError("class labels must be whole numbers here, as a loss needs them")
        reached = np.isin(result.status, ("labelled", "low-confidence"))
        keep = reached & (result.confidence > self.threshold * (1 - training) - (self.threshold == 0))
        labels = np.where(result.status == "unreached", -1, result.labels).astype(np.int64)
        for class_ in result.classes:
            if (keep & (labels == class_)).sum() < self.min_per_class:
                keep &= labels != class_
        weights = result.confidence.astype(np.float32)
        if hasattr(target_features, "detach"):
            import torch

            device = target_features.device
            return PseudoLabels(*(torch.as_tensor(part, device=device) for part in (labels, weights, keep)))
        return PseudoLabels(labels, weights, keep)

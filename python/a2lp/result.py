"""One call from features to labels."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from .estimator import A2LP
from .validation import as_features, read_labels


@dataclass
class LabelResult:
    """The labels of a target domain.

    ``labels`` is -1 (or None, for classes that are not numbers) where no label reaches. ``votes`` are the views of a consensus
    that gave the label. ``reach`` is small where the source has nothing like the item; ``verdict`` tells whether ``unknown``
    items can be told from the others, ``nearest_labels`` names the class that a flagged item looks most like, and
    ``unknown_groups`` lists rows of unknown items that look alike.
    """

    labels: np.ndarray
    confidence: np.ndarray
    margin: np.ndarray
    status: np.ndarray
    probabilities: np.ndarray
    classes: np.ndarray
    ids: np.ndarray | None = None
    votes: np.ndarray | None = None
    reach: np.ndarray | None = None
    unknown: np.ndarray | None = None
    nearest_labels: np.ndarray | None = None
    unknown_groups: list[np.ndarray] = field(default_factory=list, repr=False)
    verdict: dict | None = None
    model: A2LP | None = field(default=None, repr=False)
    # Source features, numbers of their labels, and target features: what a review runs on.
    _run: tuple | None = field(default=None, repr=False, compare=False)

    def to_frame(self):
        """A pandas DataFrame, one row per target item: the columns of the labels file."""
        import pandas

        columns = {"label": self.labels, "confidence": self.confidence, "margin": self.margin, "status": self.status}
        if self.votes is not None:
            columns["votes"] = self.votes
        if self.reach is not None:
            columns["reach"] = self.reach
        if self.nearest_labels is not None:
            columns["nearest_label"] = self.nearest_labels
        index = None if self.ids is None else pandas.Index(self.ids, name="id")
        return pandas.DataFrame(columns, index=index)

    def report(self, path, **options) -> None:
        """Write the run as one HTML page; see :meth:`A2LP.report`."""
        if self.model is None:
            raise ValueError("no run to report on: this result was not made by a2lp.label")
        self.model.report(path, ids=self.ids, **options)

    def __len__(self) -> int:
        return len(self.labels)


def label(source, source_labels, target, *, ids=None, **settings) -> LabelResult:
    """Label the rows of `target` by those of `source`.

    Parameters
    ----------
    source, target : arrays of shape (n, n_features)
        Features of both domains, by the same extractor.
    source_labels : array of n labels
        Numbers or strings; a row labelled -1 or None counts as unlabelled.
    ids : sequence, optional
        Names of the target items.
    **settings
        Parameters of :class:`A2LP`.

    Examples
    --------
    >>> import numpy as np, a2lp
    >>> result = a2lp.label([[1, 0], [0, 1]], [3, 7], [[0.9, 0.2], [0.1, 0.8]], n_neighbors=2)
    >>> result.labels.tolist()
    [3, 7]
    """
    source, target = as_features(source, "source"), as_features(target, "target")
    if source.shape[1] != target.shape[1]:
        raise ValueError(
            f"source has {source.shape[1]} columns, target {target.shape[1]}; both domains need features of the same "
            "extractor"
        )
    if ids is not None and len(ids) != len(target):
        raise ValueError(f"{len(ids)} ids for {len(target)} target rows; one per row is needed")
    model = A2LP(**settings)
    known, model.classes_ = read_labels(source_labels, len(source))
    model.n_features_in_ = source.shape[1]
    numbers = np.concatenate([known, np.full(len(target), -1)])
    model._fit_both([source, target], numbers, numbers >= 0)
    at = slice(len(source), None)
    return LabelResult(
        labels=model.transduction_[at],
        confidence=model.confidence_[at],
        margin=model.margin_[at],
        status=model.status_[at],
        probabilities=model.label_distributions_[at],
        classes=model.classes_,
        ids=None if ids is None else np.asarray(ids),
        votes=None if model.votes_ is None else model.votes_[at],
        reach=None if model.reach_ is None else model.reach_[at],
        unknown=None if model.unknown_ is None else model.unknown_[at],
        nearest_labels=None if model.nearest_labels_ is None else model.nearest_labels_[at],
        unknown_groups=[rows - len(source) for rows in (group[group >= len(source)] for group in model.unknown_groups_)],
        verdict=model.verdict_,
        model=model,
        _run=(source, known, target),
    )

"""A page where people check, correct and sign off the labels of a result."""

from __future__ import annotations

import json
import os

import numpy as np

from . import _native
from .progress import reporting
from .result import LabelResult
from .validation import named


class ReviewSession:
    """A review under way; made by :func:`a2lp.review`.

    In a notebook it shows the page in a frame. ``url`` opens it in any browser of this machine.
    """

    def __init__(self, server, classes):
        self._server = server
        self._classes = classes

    @property
    def url(self) -> str:
        """The address of the page, with its token."""
        return self._server.url

    @property
    def labels(self) -> np.ndarray:
        """The labels as they are now, with everything that people said; -1 or None where there is none."""
        numbers, _, _, _, names = self._server.labels()
        return named(numbers, self._all_classes(names))

    @property
    def confidence(self) -> np.ndarray:
        """The confidence of the labels; 1 where a person spoke."""
        return self._server.labels()[1]

    @property
    def origin(self) -> np.ndarray:
        """Where each label comes from: ``propagated`` or ``person``."""
        return np.array(self._server.labels()[3])

    @property
    def corrections(self) -> dict:
        """What people said: the label of each row that they spoke of."""
        back = dict(zip(map(str, self._classes), self._classes.tolist()))
        return {row: back.get(name, name) for row, name, _ in self._server.said()}

    @property
    def certificate(self) -> dict | None:
        """What the check has shown so far; None if nothing was checked."""
        return json.loads(self._server.certificate())

    def correct(self, labels) -> int:
        """Give labels to rows, ``{row: label}``; None takes a label back. Returns how many other labels changed."""
        return self._server.correct([(int(row), None if label is None else str(label)) for row, label in labels.items()])

    def undo(self) -> None:
        """Take the last correction or answer back."""
        self._server.undo()

    def doubtful(self, count: int = 10) -> list[int]:
        """The rows most worth a click, the one that repairs most first."""
        return self._server.doubtful(count)

    def export(self, path, *, force: bool = False, probabilities: bool = False) -> None:
        """Write the labels with the columns ``origin`` and ``accepted``, in the format that the ending names."""
        self._server.export(os.fspath(path), force, probabilities)

    def stop(self) -> None:
        """End the page. What was done is in the journal, if there is one."""
        self._server.stop()

    def __enter__(self) -> ReviewSession:
        return self

    def __exit__(self, *_) -> None:
        self.stop()

    def _all_classes(self, names):
        """The classes of the result, then those that people named."""
        new = names[len(self._classes) :]
        if not new:
            return self._classes
        return np.array([*self._classes.tolist(), *new], dtype=object)

    def _repr_html_(self) -> str:
        from html import escape

        return (
            f'<iframe src="{escape(self.url)}" width="100%" height="900" style="border:1px solid #ccc"></iframe>'
            f'<p>Or open it in a browser: <a href="{escape(self.url)}" target="_blank">{escape(self.url.split("#")[0])}</a></p>'
        )

    def __repr__(self) -> str:
        return f"ReviewSession({self.url})"


def review(
    result: LabelResult,
    images=None,
    *,
    texts=None,
    journal=None,
    port: int = 0,
    title: str = "a2lp review",
    full_runs: bool = True,
) -> ReviewSession:
    """Open a page where people check, correct and sign off the labels of a result.

    Parameters
    ----------
    result : LabelResult
        What :func:`a2lp.label` returned. Its method runs once more, to be corrected.
    images : sequence of paths, or array of 8-bit images (n × h × w or n × h × w × 3), optional
        What the target items look like.
    texts : sequence of strings, optional
        Texts of the target items.
    journal : path, optional
        A file that keeps everything as it happens, so that the same call goes on where it was. In memory only without it.
    port : int
        The port of the page; any free one by default. The page can be reached from this machine only.
    title : str
        What the page is called.
    full_runs : bool
        Run the full method with the corrections whenever the person pauses.

    Examples
    --------
    >>> import numpy as np, a2lp
    >>> result = a2lp.label([[1, 0], [0, 1]], ["mug", "bike"], [[0.9, 0.2], [0.1, 0.8]], n_neighbors=2)
    >>> with a2lp.review(result) as session:
    ...     changed = session.correct({1: "bowl"})
    ...     print(session.labels.tolist(), session.corrections)
    ['mug', 'bowl'] {1: 'bowl'}
    """
    if result.model is None or result._run is None:
        raise ValueError("no run to review: this result was not made by a2lp.label")
    source, known, target = result._run
    if (known < 0).any():
        raise ValueError("some source rows have no label, and a review needs all of them; leave them out of the source")
    for what, given in [("images", images), ("texts", texts)]:
        if given is not None and len(given) != len(target):
            raise ValueError(f"{len(given)} {what} for {len(target)} target rows; one per row is needed")
    if images is not None and not isinstance(images, np.ndarray):
        images = [None if path is None else os.fspath(path) for path in images]
    elif images is not None:
        images = np.ascontiguousarray(images) if images.dtype == np.uint8 else [os.fspath(path) for path in images.tolist()]
    with reporting(result.model.progress) as callback:
        server = _native.start_review(
            (source, target),
            known.astype(np.uint32),
            [str(name) for name in result.classes.tolist()],
            result.model._settings(),
            title,
            None if result.ids is None else [str(name) for name in result.ids],
            images,
            None if texts is None else [str(text) for text in texts],
            None if journal is None else os.fspath(journal),
            port,
            full_runs,
            callback,
        )
    return ReviewSession(server, result.classes)

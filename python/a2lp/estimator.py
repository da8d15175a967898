"""The estimator: scikit-learn's manners, without needing scikit-learn."""

from __future__ import annotations

import inspect
import json
import warnings
from typing import Callable

import numpy as np

from . import _native
from .graph import read_graph
from .progress import reporting
from .validation import A2LPWarning, as_features, check_finite, class_names, named, read_labels, with_uniform

# A2LP and its subclasses, joined with scikit-learn's base classes when the first instance is made.
_joined: dict = {}


def _join(cls):
    """`cls` with scikit-learn's base classes, if it is installed: importing it takes longer than all of a2lp."""
    if cls not in _joined:
        try:
            from sklearn.base import BaseEstimator, ClassifierMixin
        except ImportError:
            _joined[cls] = cls
        else:
            if issubclass(cls, BaseEstimator):
                _joined[cls] = cls
            else:
                body = {name: getattr(cls, name) for name in ("__module__", "__qualname__", "__doc__")}
                body["_plain"] = cls
                body["__signature__"] = _signature(cls)
                # skada hands sample_domain to whoever asks for it.
                body["__metadata_request__fit"] = {"sample_domain": True}
                _joined[cls] = type(cls.__name__, (ClassifierMixin, BaseEstimator, cls), body)
    return _joined[cls]


def _signature(cls):
    signature = inspect.signature(cls.__init__)
    return signature.replace(parameters=[p for name, p in signature.parameters.items() if name != "self"])


def _rebuild(cls):
    return cls.__new__(cls)


class _WithoutSklearn:
    """What scikit-learn's base classes would bring."""

    @classmethod
    def _get_param_names(cls):
        return sorted(name for name in inspect.signature(cls.__init__).parameters if name != "self")

    def get_params(self, deep=True):
        """The parameters by name."""
        return {name: getattr(self, name) for name in self._get_param_names()}

    def set_params(self, **params):
        """Change parameters."""
        for name, value in params.items():
            if name not in self._get_param_names():
                raise ValueError(f"Invalid parameter {name!r} for estimator {self!r}")
            setattr(self, name, value)
        return self

    def predict(self, X) -> np.ndarray:
        """Labels of rows; the estimator has it."""
        raise NotImplementedError

    def score(self, X, y, sample_weight=None):
        """Share of rows predicted correctly."""
        return float(np.average(self.predict(X) == np.asarray(y), weights=sample_weight))

    def __repr__(self):
        default = {n: p.default for n, p in inspect.signature(type(self).__init__).parameters.items()}
        changed = (f"{n}={v!r}" for n, v in self.get_params().items() if v is not default[n] and v != default[n])
        return f"{type(self).__name__}({', '.join(changed)})"


class A2LP(_WithoutSklearn):
    """Label propagation with augmented anchors.

    Labels unlabelled rows by labelled ones of another domain, and points that come later.

    Parameters
    ----------
    n_neighbors : int or 'all', default 20
        Neighbours of each node. Raise it when items stay unreached, lower it for classes with few items.
    alpha : float, default 0.5
        How far labels travel, between 0 and 1.
    n_rounds : int, default 10
        Propagations, with new anchors before each but the first; 1 is plain label propagation.
    method : 'auto', 'lp', 'a2lp' or 'consensus'
        Label propagation once; with anchors, as in the paper; or two or three differently built graphs that vote in every
        round: slower, and more reliable where the domains are far apart or the target has other classes or shares. 'auto' is
        the consensus, or a2lp if the consensus would take more than ten minutes on two cores or cannot use another setting.
    views : 2 or 3, default 3
        Graphs that vote in a consensus.
    mix : 'auto', 'same' or 'own'
        Class mix of the target that a consensus assumes: the source's, its own (classes may be absent), or the one of both that
        fits the graph better after three rounds.
    unknown : 'rank', 'flag' or 'off'
        Classes that the labelled rows lack: give every row its reach (unless there are so many that the search is pruned), or
        also take the labels of unknown rows away (-1 or None, status 'unknown'), or do neither.
    known_weight : float, default 3.0
        Weight of a person's label in a review (:func:`a2lp.review`), where a labelled row has 1.
    quality : bool, default False
        Measure how consistent the labels look, which takes another graph.
    guard : bool, default False
        Take the labels of plain label propagation instead if their quality score is higher by more than 0.01. Takes another
        run and the features a second time.
    metric : 'cosine', 'gaussian' or 'dot3'
        How alike two vectors are.
    gauss_sigma2 : float, default 1
        σ² of the Gaussian.
    graph_method : 'auto', 'exact', 'screened', 'pruned' or 'nndescent'
        How neighbours are searched for.
    source_nodes : 'all' or 'centres'
        Labelled rows that become nodes: all, or one centre per class.
    unreached : 'unlabelled' or 'nearest'
        What a row gets that no label reaches: nothing, or the label of the most similar labelled node.
    min_confidence : float, default 0
        Rows below it have status 'low-confidence'; they keep their label.
    solver : 'auto', 'cg' or 'dense'
    tol : float, default 1e-6
        Relative residual at which cg stops.
    max_iter : int, default 1000
    anchor_weights : 'entropy' or 'uniform'
    anchor_mode : 'add' or 'replace'
    anchor_space : 'unit' or 'raw'
    label_weight : 'none' or 'class-size'
    k_includes_self : bool, default False
    stop_when_stable : bool, default False
        End early when a round changes no label.
    random_state : int, default 0
        For pruned and nndescent only.
    n_jobs : int or None
        Threads; None and -1 are all cores. The answer does not depend on them.
    progress : bool or callable, default False
        A tqdm bar, or a function of (stage, done, total) with stage 'neighbors' or 'rounds'.

    Attributes
    ----------
    classes_ : the classes
    transduction_ : label of every row of X; -1 (None where classes are not numbers) where no label reaches
    label_distributions_ : probability of every class for every row of X
    confidence_ : 1 − entropy/ln K of every row; good for sorting, not a calibrated probability. 1 for labelled rows
    margin_ : first minus second probability
    status_ : 'labelled', 'low-confidence', 'weak', 'unreached' or 'unknown'; 'given' for rows that came with a label
    reached_ : does a path lead to a label?
    anchors_, anchor_classes_, anchor_rounds_ : the anchors' vectors, their classes, the round each was made after
    trace_ : one dict per round
    votes_ : views of a consensus that gave the row its label (0 for labelled rows); None for the other methods
    mix_ : dict of 'chosen' ('same' or 'own'), 'fit_same' and 'fit_own' for a consensus, else None
    method_ : the method that was used, and why
    reach_ : how much of the labelled rows points at each row: 1 on average, small where they have nothing like it; NaN for
        labelled rows, None where it was not measured
    unknown_ : does the row match nothing among the labelled ones? None where reach was not measured
    nearest_labels_ : with unknown='flag', the class that an unknown row looks most like, -1 (or None) for all others; else None
    unknown_groups_ : one array of rows for every group of unknown rows that look alike, the largest first, its most central
        rows first
    verdict_ : dict of 'verdict' ('none', 'new', 'unmatched' or 'cannot-tell'), 'message', 'threshold' and 'evidence'; None
        where reach was not measured
    guard_ : dict of 'method', 'score', 'lp_score' and 'fell_back' with guard=True, else None
    quality_ : dict of 'score', 'reverse' and 'coherence' with quality=True or guard=True, else None. Ranks runs on the
        same features; no estimate of the accuracy
    n_iter_ : most iterations that the solver took in a round, 1 if there was nothing to solve

    Examples
    --------
    >>> import numpy as np
    >>> from a2lp import A2LP
    >>> X = np.array([[1, 0.1], [0.1, 1], [0.9, 0.3], [0.8, 0.2], [0.3, 0.7]])
    >>> A2LP(n_neighbors=2).fit(X, [0, 1, -1, -1, -1]).transduction_.tolist()
    [0, 1, 0, 0, 1]
    """

    def __new__(cls, *args, **kwargs):
        return object.__new__(_join(cls))

    def __init__(
        self,
        n_neighbors: int | str = 20,
        alpha: float = 0.5,
        n_rounds: int = 10,
        *,
        method: str = "auto",
        views: int = 3,
        mix: str = "auto",
        unknown: str = "rank",
        known_weight: float = 3.0,
        quality: bool = False,
        guard: bool = False,
        metric: str = "cosine",
        gauss_sigma2: float = 1.0,
        graph_method: str = "auto",
        source_nodes: str = "all",
        unreached: str = "unlabelled",
        min_confidence: float = 0.0,
        solver: str = "auto",
        tol: float = 1e-6,
        max_iter: int = 1000,
        anchor_weights: str = "entropy",
        anchor_mode: str = "add",
        anchor_space: str = "unit",
        label_weight: str = "none",
        k_includes_self: bool = False,
        stop_when_stable: bool = False,
        random_state: int | None = 0,
        n_jobs: int | None = None,
        progress: bool | Callable[[str, int, int], object] = False,
    ):
        self.n_neighbors = n_neighbors
        self.alpha = alpha
        self.n_rounds = n_rounds
        self.method = method
        self.views = views
        self.mix = mix
        self.unknown = unknown
        self.known_weight = known_weight
        self.quality = quality
        self.guard = guard
        self.metric = metric
        self.gauss_sigma2 = gauss_sigma2
        self.graph_method = graph_method
        self.source_nodes = source_nodes
        self.unreached = unreached
        self.min_confidence = min_confidence
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.anchor_weights = anchor_weights
        self.anchor_mode = anchor_mode
        self.anchor_space = anchor_space
        self.label_weight = label_weight
        self.k_includes_self = k_includes_self
        self.stop_when_stable = stop_when_stable
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.progress = progress

    def _settings(self):
        return {name: getattr(self, name) for name in self._get_param_names() if name != "progress"}

    def check_settings(self) -> None:
        """Raise when a parameter is out of range."""
        _native.check_settings(self._settings())

    def fit(self, X, y, sample_domain=None, graph=None, *, graph_values: str = "auto") -> A2LP:
        """Propagate the labels.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)
        y : array of n_samples labels
            -1, None or NaN for rows without one.
        sample_domain : array of n_samples numbers, optional
            Rows of domains below 0 are the target: their labels are not looked at.
        graph : sparse matrix or (indices, values), optional
            Neighbours of the rows of X, instead of searching for them: a SciPy matrix of similarities (from
            :func:`neighbor_graph` or anyone), the output of scikit-learn's KNeighborsTransformer, or two arrays of shape
            (n_samples, k).
        graph_values : 'auto', 'similarity' or 'distance'
            What the graph holds. 'auto' takes a matrix with a stored diagonal of 0 for distances, all else for
            similarities.
        """
        X = self._features(X, reset=True)
        target = None
        if sample_domain is not None:
            sample_domain = np.asarray(sample_domain)
            if sample_domain.shape != (len(X),):
                raise ValueError(f"sample_domain has shape {sample_domain.shape}; one number per row of X is needed")
            target = sample_domain < 0
        ids, classes = read_labels(y, len(X), target)
        if graph_values not in ("auto", "similarity", "distance"):
            raise ValueError(f"graph_values = {graph_values!r}: one of 'auto', 'similarity', 'distance'")
        self.classes_ = classes
        labelled = ids >= 0
        if labelled.all():
            self._fit_labelled(X, ids)
        else:
            if graph is not None:
                graph = read_graph(graph, len(X), self.metric, self.gauss_sigma2, graph_values)
            self._fit_both([X], ids, labelled, graph)
        return self

    def _fit_labelled(self, X, ids):
        """Nothing to propagate to; the labelled rows are kept for points that come later."""
        self._fitted = None
        self._targets = np.array([], dtype=np.int64)
        self._model = _native.Predictor.of_labelled(X, ids.astype(np.uint32), class_names(self.classes_), self._settings())
        self.transduction_ = self.classes_[ids]
        self.label_distributions_ = self._model.distributions()
        self.confidence_ = np.ones(len(X), dtype=np.float32)
        self.margin_ = np.ones(len(X), dtype=np.float32)
        self.status_ = np.full(len(X), "given", dtype="U14")
        self.reached_ = np.ones(len(X), dtype=bool)
        self.anchors_ = np.empty((0, X.shape[1]), dtype=np.float32)
        self.anchor_classes_ = self.classes_[:0]
        self.anchor_rounds_ = np.array([], dtype=np.int64)
        self.votes_ = self.quality_ = self.guard_ = self.mix_ = None
        self.reach_ = self.unknown_ = self.verdict_ = self.nearest_labels_ = None
        self.unknown_groups_ = []
        self.method_ = "nothing to label"
        self.trace_ = []
        self.n_iter_ = 1

    def _fit_both(self, parts, ids, labelled, graph=None):
        """Propagate from labelled to unlabelled rows; rows may come in several arrays, so that nobody has to stack them."""
        rows = len(ids)
        sources, self._targets = np.flatnonzero(labelled), np.flatnonzero(~labelled)
        with reporting(self.progress) as callback:
            fitted = _native.fit(
                parts,
                np.concatenate([sources, self._targets]),
                ids[sources].astype(np.uint32),
                class_names(self.classes_),
                self._settings(),
                graph,
                callback,
            )
        self._fitted, self._model = fitted, fitted.model
        found, confidence, margin, status = fitted.targets()

        labels = ids.copy()
        labels[self._targets] = found
        self.transduction_ = named(labels, self.classes_)
        nodes = self._model.distributions()
        first = self._model.first_target
        distributions = np.zeros((rows, len(self.classes_)), dtype=np.float32)
        if first == len(sources):
            distributions[sources] = nodes[:first]
        else:  # centres stand for the labelled rows
            distributions[sources, ids[sources]] = 1.0
        distributions[self._targets] = nodes[first:]
        self.label_distributions_ = with_uniform(distributions)
        self.confidence_ = np.ones(rows, dtype=np.float32)
        self.confidence_[self._targets] = confidence
        self.margin_ = np.ones(rows, dtype=np.float32)
        self.margin_[self._targets] = margin
        self.status_ = np.full(rows, "given", dtype="U14")
        self.status_[self._targets] = status
        self.reached_ = self.status_ != "unreached"
        self.anchors_, about = fitted.anchors()
        self.anchor_classes_ = self.classes_[np.array([entry[0] for entry in about], dtype=np.int64)]
        self.anchor_rounds_ = np.array([entry[1] for entry in about], dtype=np.int64)
        self.quality_ = json.loads(fitted.quality())
        self.guard_ = json.loads(fitted.guard())
        self.mix_ = json.loads(fitted.mix())
        self.method_ = fitted.method()
        self._read_unknown(fitted, rows)
        self.votes_ = None
        if (votes := fitted.votes()) is not None:
            self.votes_ = np.zeros(rows, dtype=np.int64)
            self.votes_[self._targets] = votes
        self.trace_ = json.loads(fitted.rounds())
        self.n_iter_ = max(1, *(entry["solve"]["iterations"] for entry in self.trace_))
        for message in fitted.warnings():
            warnings.warn(message, A2LPWarning, stacklevel=4)

    def _read_unknown(self, fitted, rows):
        self.reach_ = self.unknown_ = self.verdict_ = self.nearest_labels_ = None
        self.unknown_groups_ = []
        if (nearest := fitted.nearest_labels()) is not None:
            numbers = np.full(rows, -1)
            numbers[self._targets] = nearest
            self.nearest_labels_ = named(numbers, self.classes_)
        if (found := fitted.unknown()) is not None:
            reach, unknown, about = found
            self.reach_ = np.full(rows, np.nan, dtype=np.float32)
            self.reach_[self._targets] = reach
            self.unknown_ = np.zeros(rows, dtype=bool)
            self.unknown_[self._targets] = unknown
            self.verdict_ = json.loads(about)
            self.unknown_groups_ = [self._targets[items] for items in self.verdict_.pop("groups")]

    def _features(self, X, reset):
        try:
            from sklearn.utils.validation import validate_data
        except ImportError:
            X = as_features(X)
            if reset:
                self.n_features_in_ = X.shape[1]
            elif X.shape[1] != self.n_features_in_:
                raise ValueError(
                    f"X has {X.shape[1]} features, but {type(self).__name__} is expecting {self.n_features_in_} features "
                    "as input."
                ) from None
            return X
        if hasattr(X, "detach"):
            X = X.detach().cpu().numpy()
        with np.errstate(over="ignore"):
            X = validate_data(self, X, reset=reset, dtype=np.float32, order="C", ensure_all_finite=False)
        check_finite(X, "X")
        return X

    def _predict(self, X):
        if not hasattr(self, "_model"):
            try:
                from sklearn.exceptions import NotFittedError as kind
            except ImportError:
                kind = ValueError
            raise kind(f"This {type(self).__name__} instance is not fitted yet; call fit first.")
        answers, probabilities = self._model.predict(self._features(X, reset=False), self._settings())
        ids = answers[0]
        lost = int((ids < 0).sum())
        if lost:
            warnings.warn(
                f"{lost} of {len(ids)} points are similar to no labelled one and stay unlabelled",
                A2LPWarning,
                stacklevel=3,
            )
        return ids, with_uniform(probabilities)

    def predict(self, X) -> np.ndarray:
        """Labels of points that were not there before, by their neighbours in the graph; -1 (or None) where none is
        similar at all."""
        return named(self._predict(X)[0], self.classes_)

    def predict_proba(self, X) -> np.ndarray:
        """Probability of every class; all alike for a point that is similar to none."""
        return self._predict(X)[1]

    def report(self, path, *, y_true=None, ids=None, title="A2LP", map="pca", force=False) -> None:
        """Write the run as one HTML page.

        Parameters
        ----------
        path : where it goes
        y_true : labels of the unlabelled rows, in the order of X, for comparison
        ids : names of the unlabelled rows, in the order of X
        map : 'pca', or 'tsne' for neighbours next to neighbours, which takes up to a minute
        force : replace a file that exists
        """
        if map not in ("pca", "tsne"):
            raise ValueError(f"map = {map!r}: 'pca' or 'tsne'")
        fitted = getattr(self, "_fitted", None)
        if fitted is None:
            reason = "there were no unlabelled rows" if hasattr(self, "_model") else "it is not fitted"
            if hasattr(self, "_model") and len(self._targets):
                reason = "a model that was pickled keeps what it needs to predict, not the run; fit again"
            raise ValueError(f"no run to report on: {reason}")
        texts = [None if part is None else [str(v) for v in np.asarray(part).tolist()] for part in (ids, y_true)]
        fitted.report(path, title, force, map == "tsne", *texts)

    # Pickled by the class that users import, and without what only a report needs.

    def __reduce__(self):
        state = {name: value for name, value in self.__dict__.items() if name not in ("_fitted", "_model")}
        if hasattr(self, "_model"):
            state["_parts"] = self._model.parts()
        return _rebuild, (getattr(type(self), "_plain", type(self)),), state

    def __setstate__(self, state):
        parts = state.pop("_parts", None)
        self.__dict__.update(state)
        if parts is not None:
            self._fitted = None
            base, anchors, first_target, probabilities, candidates = parts
            self._model = _native.Predictor.from_parts(
                base, anchors, first_target, probabilities, candidates, self._settings()
            )


setattr(A2LP, "__signature__", _signature(A2LP))  # noqa: B010, a name that type checkers do not know

"""Neighbour graphs, in and out."""

from __future__ import annotations

import warnings

import numpy as np

from . import _native
from .progress import reporting
from .validation import A2LPWarning, as_features


def neighbor_graph(
    X,
    n_neighbors=20,
    metric="cosine",
    *,
    gauss_sigma2=1.0,
    graph_method="auto",
    symmetric=False,
    random_state=0,
    n_jobs=None,
    progress=False,
):
    """The nearest neighbours of every row and their similarities, as a SciPy CSR matrix.

    Parameters
    ----------
    X : array of shape (n_samples, n_features)
    n_neighbors : int
        Neighbours of each row; the row itself does not count.
    metric : 'cosine', 'gaussian' or 'dot3'
        The similarity. Gaussian is exp(-d²/(2·gauss_sigma2)), dot3 the product cubed; negative ones count as 0.
    graph_method : 'auto', 'exact', 'screened', 'pruned' or 'nndescent'
        The last three may miss neighbours; a warning says so when they miss many.
    symmetric : bool
        A + Aᵀ instead, the matrix labels are propagated over.
    random_state : int
        For pruned and nndescent.
    n_jobs : int or None
        Threads; the answer does not depend on them.
    progress : bool or callable
        A tqdm bar, or a function of (stage, done, total).

    Examples
    --------
    >>> import numpy as np, a2lp
    >>> graph = a2lp.neighbor_graph(np.eye(4) + 0.5, n_neighbors=2)
    >>> graph.shape, graph.nnz
    ((4, 4), 8)
    """
    from scipy.sparse import csr_matrix

    X = as_features(X)
    settings = {
        "n_neighbors": n_neighbors,
        "metric": metric,
        "gauss_sigma2": gauss_sigma2,
        "graph_method": graph_method,
        "random_state": random_state,
        "n_jobs": n_jobs,
    }
    with reporting(progress) as callback:
        starts, columns, weights, _, warning = _native.neighbor_graph(X, settings, symmetric, callback)
    if warning:
        warnings.warn(warning, A2LPWarning, stacklevel=2)
    return csr_matrix((weights, columns, starts), shape=(len(X), len(X)))


def looks_like_distances(entries, own, rows: int) -> bool:
    """KNeighborsTransformer stores every row's distance to itself: 0, or nearly so where float32 rounds."""
    others = np.abs(entries[~own])
    if own.sum() != rows or not others.any():
        return False
    return bool(np.abs(entries[own]).max() <= 0.01 * np.median(others))


def read_graph(graph, rows: int, metric: str, gauss_sigma2: float, values: str):
    """A user's graph as row starts, columns and similarities."""
    if isinstance(graph, (tuple, list)) and len(graph) == 2:
        indices, entries = (np.asarray(part) for part in graph)
        if indices.shape != entries.shape or indices.ndim != 2 or len(indices) != rows:
            raise ValueError(
                f"graph=(indices, values): both need shape ({rows}, k), not {indices.shape} and {entries.shape}"
            )
        keep = (indices >= 0) & (indices != np.arange(rows)[:, None])  # no neighbour found; the row itself
        is_distance = values == "distance"
        starts = np.concatenate([[0], np.cumsum(keep.sum(axis=1))])
        indices, entries = indices[keep], entries[keep].astype(np.float64)
    elif hasattr(graph, "tocsr"):
        if graph.shape != (rows, rows):
            raise ValueError(f"graph has shape {graph.shape}; {(rows, rows)} is needed, one row and column per row of X")
        csr = graph.tocsr()
        source = np.repeat(np.arange(rows), np.diff(csr.indptr))
        own = source == csr.indices
        is_distance = values == "distance" or (values == "auto" and looks_like_distances(csr.data, own, rows))
        starts = np.concatenate([[0], np.cumsum(np.bincount(source[~own], minlength=rows))])
        indices, entries = csr.indices[~own], csr.data[~own].astype(np.float64)
    else:
        raise TypeError("graph must be a SciPy sparse matrix or a pair (indices, values)")
    if is_distance:
        entries = _native.weights_of_distances(entries, {"metric": metric, "gauss_sigma2": gauss_sigma2})
    return (
        np.ascontiguousarray(starts, dtype=np.int64),
        np.ascontiguousarray(indices, dtype=np.int64),
        np.ascontiguousarray(entries, dtype=np.float32),
    )

"""From what users hold to what the extension takes: float32 rows, and class numbers with -1 for "no label"."""

from __future__ import annotations

import numpy as np


class A2LPWarning(UserWarning):
    """Something about a result that deserves a look."""


def as_features(X, name: str = "X", dtype=np.float32) -> np.ndarray:
    """Rows of finite float32, contiguous in memory; copied only where they are not that already."""
    if hasattr(X, "toarray") and not isinstance(X, np.ndarray):
        raise TypeError(
            f"{name} is a sparse matrix; A2LP works on dense features: pass {name}.toarray(), or fewer columns "
            "(sklearn.decomposition.TruncatedSVD)"
        )
    if hasattr(X, "detach"):  # a torch tensor
        X = X.detach().cpu().numpy()
    X = np.asarray(X)
    if X.dtype.kind == "c":
        raise ValueError(f"Complex data not supported: {name} has dtype {X.dtype}")
    if X.ndim != 2:
        raise ValueError(
            f"Expected 2D array, got {X.ndim}D array instead: {name} has shape {X.shape}. Reshape your data: one row "
            "per item, one column per feature"
        )
    for axis, noun in ((0, "sample(s)"), (1, "feature(s)")):
        if X.shape[axis] == 0:
            raise ValueError(f"Found array with 0 {noun} (shape={X.shape}) while a minimum of 1 is required by A2LP.")
    try:
        with np.errstate(over="ignore"):
            X = np.ascontiguousarray(X, dtype=dtype)
    except (TypeError, ValueError) as error:
        raise type(error)(f"{name}: features must be numbers; {error}") from None
    check_finite(X, name)
    return X


def check_finite(X: np.ndarray, name: str) -> None:
    """Say where the first NaN or infinity is."""
    # A sum is finite only if all of it is; the rows are looked at one by one only when it is not.
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(X.sum(dtype=np.float64)):
            return
    for row in range(X.shape[0]):
        bad = ~np.isfinite(X[row])
        if bad.any():
            column = int(np.argmax(bad))
            what = "NaN" if np.isnan(X[row, column]) else "infinity (inf, or too large for float32)"
            raise ValueError(
                f"Input {name} contains {what}: row {row}, column {column} is {X[row, column]}; remove or repair such rows"
            )


def missing(value) -> bool:
    """Is this a label that is not there?"""
    if value is None or type(value).__name__ == "NAType":
        return True
    return isinstance(value, (float, np.floating)) and np.isnan(value)


def as_labels(y) -> np.ndarray:
    """An array of labels. NumPy would make the word 'nan' of a missing label among strings."""
    if hasattr(y, "detach"):  # a torch tensor
        return y.detach().cpu().numpy()
    array = np.asarray(y)
    if array.dtype.kind in "US" and not isinstance(y, np.ndarray) and array.ndim == 1:
        array = np.empty(len(array), dtype=object)
        array[:] = list(y)
    return array


def read_labels(y, rows: int, target=None):
    """Class numbers (-1: no label) and the classes. Rows where `target` is true have no label, whatever `y` says."""
    if y is None:
        raise ValueError("A2LP requires y to be passed, but the target y is None")
    y = as_labels(y)
    if y.ndim == 2 and y.shape[1] == 1:
        warn_column_vector()
        y = y.ravel()
    if y.ndim != 1:
        raise ValueError(f"y should be a 1d array, got an array of shape {y.shape} instead.")
    if len(y) != rows:
        raise ValueError(
            f"Found input variables with inconsistent numbers of samples: {rows} rows and {len(y)} labels; one label "
            "per row is needed"
        )
    if y.dtype.kind == "f":
        unlabelled = np.isnan(y) | (y == -1)
        known = y[~unlabelled]
        if not np.isfinite(known).all():
            raise ValueError(f"Input y contains infinity: label of row {int(np.argmax(np.isinf(y)))}")
        if (known != np.round(known)).any():
            raise ValueError(
                "Unknown label type: continuous. Maybe you are trying to fit a classifier, which expects discrete "
                "classes on a regression target with continuous values."
            )
    elif y.dtype.kind in "iu":
        unlabelled = y == -1
    elif y.dtype.kind == "O":
        unlabelled = np.array([missing(v) or (isinstance(v, (int, np.integer)) and v == -1) for v in y], dtype=bool)
    else:
        unlabelled = np.zeros(len(y), dtype=bool)
    if target is not None:
        unlabelled = unlabelled | target
    if unlabelled.all():
        raise ValueError("no row has a label, so there is nothing to go by; y is -1 (or None) everywhere")
    known = y[~unlabelled]
    if y.dtype.kind == "O":
        kinds = {type(v) for v in known}
        if all(issubclass(kind, (int, np.integer)) and not issubclass(kind, bool) for kind in kinds):
            known = known.astype(np.int64)
        elif all(issubclass(kind, str) for kind in kinds):
            known = known.astype(str)
    if known.dtype.kind == "O":
        classes = np.array(sorted(set(known), key=lambda v: (type(v).__name__, v)), dtype=object)
        number = {value: at for at, value in enumerate(classes)}
        codes = np.array([number[v] for v in known], dtype=np.int64)
    else:
        classes, codes = np.unique(known, return_inverse=True)
    ids = np.full(len(y), -1, dtype=np.int64)
    ids[~unlabelled] = codes.ravel()
    return ids, classes


def warn_column_vector() -> None:
    import warnings

    message = (
        "A column-vector y was passed when a 1d array was expected. Please change the shape of y to (n_samples, ), for "
        "example using ravel()."
    )
    try:
        from sklearn.exceptions import DataConversionWarning as kind
    except ImportError:
        kind = UserWarning
    warnings.warn(message, kind, stacklevel=4)


def class_names(classes: np.ndarray) -> list[str]:
    """Different names for different classes."""
    names = [str(c) for c in classes.tolist()]
    return names if len(set(names)) == len(names) else [repr(c) for c in classes.tolist()]


def named(ids: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """Labels by class number; where there is none -1 for numbers and None for everything else."""
    if (ids >= 0).all():
        return classes[ids]
    if classes.dtype.kind in "iuf":
        kind = np.int64 if classes.dtype.kind == "u" else classes.dtype
        return np.where(ids >= 0, classes[ids].astype(kind), np.asarray(-1, dtype=kind))
    labels = np.full(len(ids), None, dtype=object)
    labels[ids >= 0] = classes[ids[ids >= 0]]
    return labels


def with_uniform(probabilities: np.ndarray) -> np.ndarray:
    """Rows of 0, where no label reaches, say nothing: every class is as likely."""
    empty = ~probabilities.any(axis=1)
    probabilities[empty] = 1.0 / probabilities.shape[1]
    return probabilities

"""Which problem a checkpoint is of: everything but the data exactly, and a sample of the data."""

from __future__ import annotations

import dataclasses
import hashlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from atomlearn.core.problem.problem import Problem

Array = NDArray[np.float64]

#: Columns and rows of X that are compared.
_COLUMNS, _ROWS = 8, 64


def fingerprint(problem: Problem) -> str:
    """Return a digest of target, weights, loss, norm, form, amount, ridge, intercept and shape."""
    digest = hashlib.sha256()
    regularizer = problem.regularizer
    parts = (
        problem.loss,
        regularizer.norm,
        regularizer.form,
        float(regularizer.amount),
        problem.tau,
        problem.fit_intercept,
        problem.design.shape,
        problem.y,
        problem.weight,
    )
    for part in parts:
        _add(digest, part, 0)
    return digest.hexdigest()


def sample(problem: Problem) -> Array:
    """Return a few entries of X, spread out: what tells one X from another of the same shape."""
    n_samples, n_features = problem.design.shape
    columns = np.unique(np.linspace(0, n_features - 1, _COLUMNS).astype(np.int64))
    rows = np.unique(np.linspace(0, n_samples - 1, _ROWS).astype(np.int64))
    return np.asarray(problem.design.gather(columns).dense(), dtype=np.float64)[rows]


def _add(digest: Any, part: Any, depth: int) -> None:
    """Add a value to a digest by what it is, not by where in memory or in which order."""
    digest.update(type(part).__name__.encode() + b"(")
    if depth > 20:
        raise ValueError("a norm or loss refers to itself and has no fingerprint")
    if part is None or isinstance(part, (bool, int, float, str, bytes, np.generic)):
        digest.update(repr(part).encode())
    elif isinstance(part, np.ndarray) and part.dtype != object:
        digest.update(f"{part.dtype.str}{part.shape}".encode())
        digest.update(np.ascontiguousarray(part).tobytes())
    elif isinstance(part, dict):
        for key in sorted(part, key=repr):
            _add(digest, key, depth + 1)
            _add(digest, part[key], depth + 1)
    elif isinstance(part, (set, frozenset)):
        for item in sorted(part, key=repr):
            _add(digest, item, depth + 1)
    elif isinstance(part, (list, tuple)) or (isinstance(part, np.ndarray) and part.ndim):
        for item in part:
            _add(digest, item, depth + 1)
    elif callable(getattr(part, "tocsr", None)):
        X = part.tocsr()
        for piece in (X.shape, X.data, X.indices, X.indptr):
            _add(digest, np.asarray(piece), depth + 1)
    elif callable(getattr(part, "get_params", None)):
        _add(digest, part.get_params(deep=False), depth + 1)
    elif dataclasses.is_dataclass(part):
        for item in dataclasses.fields(part):
            _add(digest, getattr(part, item.name), depth + 1)
    elif callable(getattr(part, "to_numpy", None)):
        _add(digest, part.to_numpy(), depth + 1)
    else:
        # Functions and other objects: their name is all that lasts from run to run.
        digest.update(getattr(part, "__qualname__", type(part).__qualname__).encode())
    digest.update(b")")

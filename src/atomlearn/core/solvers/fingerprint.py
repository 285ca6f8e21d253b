"""Which problem a checkpoint is of: everything but the data exactly, and a sample of the data."""

from __future__ import annotations

import dataclasses
import hashlib
import inspect
from types import CodeType
from typing import Any

import numpy as np

from atomlearn.core.interfaces import Array, Norm
from atomlearn.core.problem.problem import Problem

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


class _Function(Exception):
    """A norm has a function among its parameters: no digest proves that two are equal."""


def same_norm(one: Norm, other: Norm) -> bool:
    """Return whether the two are one norm for sure: one object, or equal in every parameter."""
    if one is other:
        return True
    digests = []
    for norm in (one, other):
        digest = hashlib.sha256()
        try:
            _add(digest, norm, 0, functions=False)
        except _Function:
            return False
        digests.append(digest.digest())
    return digests[0] == digests[1]


def _add(digest: Any, part: Any, depth: int, functions: bool = True) -> None:
    """Add a value to a digest by what it is, not by where in memory or in which order."""
    digest.update(type(part).__name__.encode() + b"(")
    if depth > 20:
        raise ValueError("a norm or loss refers to itself and has no fingerprint")
    if part is None or isinstance(part, (bool, int, float, str, bytes, np.generic)):
        digest.update(repr(part).encode())
    elif isinstance(part, np.ndarray) and part.dtype != object:
        digest.update(f"{part.dtype.str}{part.shape}".encode())
        digest.update(np.ascontiguousarray(part).tobytes())
    else:
        for piece in _pieces(digest, part, functions):
            _add(digest, piece, depth + 1, functions)
    digest.update(b")")


def _pieces(digest: Any, part: Any, functions: bool) -> list[Any]:
    """Return what a value is made of; of objects without parts, add the name."""
    if isinstance(part, dict):
        return [piece for key in sorted(part, key=repr) for piece in (key, part[key])]
    if isinstance(part, (set, frozenset)):
        return sorted(part, key=repr)
    if isinstance(part, (list, tuple)) or (isinstance(part, np.ndarray) and part.ndim):
        return list(part)
    if isinstance(part, CodeType):
        return [part.co_code, part.co_names, list(part.co_consts)]
    if callable(getattr(part, "tocsr", None)):
        X = part.tocsr()
        return [np.asarray(piece) for piece in (X.shape, X.data, X.indices, X.indptr)]
    if callable(getattr(part, "get_params", None)):
        return [part.get_params(deep=False)]
    if dataclasses.is_dataclass(part):
        fields = [item.name for item in dataclasses.fields(part)]
        # A subclass may have a constructor of its own.
        own = {name: x for name, x in _parameters(part).items() if name not in fields}
        return [getattr(part, name) for name in fields] + ([own] if own else [])
    if callable(getattr(part, "to_numpy", None)):
        return [part.to_numpy()]
    digest.update(getattr(part, "__qualname__", type(part).__qualname__).encode())
    if inspect.isfunction(part) or inspect.ismethod(part) or inspect.isbuiltin(part):
        if not functions:
            raise _Function
        return _of_function(part)
    parameters = _parameters(part)
    return [parameters] if parameters else []


def _of_function(function: Any) -> list[Any]:
    """Return what a function computes by: its code, defaults, closure, and the object it is of."""
    if inspect.ismethod(function):
        return [function.__func__, function.__self__]
    if inspect.isbuiltin(function):
        return []
    held = [cell.cell_contents for cell in function.__closure__ or ()]
    return [function.__code__, function.__defaults__, function.__kwdefaults__, held]


def _parameters(part: Any) -> dict[str, Any]:
    """Return the parameters that an object holds, under their names in its constructor.

    What it holds beside them it may have computed, and remembers: that tells nothing of it.
    """
    try:
        names = inspect.signature(type(part)).parameters
    except (TypeError, ValueError):
        return {}
    held = {name: getattr(part, name, getattr(part, f"_{name}", None)) for name in names}
    return {name: value for name, value in held.items() if value is not None}

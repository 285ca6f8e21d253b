"""Which problem a checkpoint is of: everything but the data exactly, and a sample of the data."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable
from contextlib import suppress
from types import CodeType, FunctionType, MethodType
from typing import Any

import joblib
import numpy as np

from atomlearn.core.interfaces import Array, Loss, Norm
from atomlearn.core.norms.parameters import Parameters
from atomlearn.core.problem.problem import Problem

#: Columns and rows of X that are compared.
_COLUMNS, _ROWS = 8, 64


def fingerprint(problem: Problem) -> str:
    """Return a digest of target, weights, loss, norm, form, amount, ridge, intercept and shape."""
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
    return str(joblib.hash(_described(parts)))


def sample(problem: Problem) -> Array:
    """Return a few entries of X, spread out: what tells one X from another of the same shape."""
    n_samples, n_features = problem.design.shape
    columns = np.unique(np.linspace(0, n_features - 1, _COLUMNS).astype(np.int64))
    rows = np.unique(np.linspace(0, n_samples - 1, _ROWS).astype(np.int64))
    return np.asarray(problem.design.gather(columns).dense(), dtype=np.float64)[rows]


def _in_order(part: Any) -> list[Any]:
    return sorted(part, key=repr)


def _of_function(part: FunctionType) -> list[Any]:
    held = [cell.cell_contents for cell in part.__closure__ or ()]
    return [part.__code__, part.__defaults__, part.__kwdefaults__, held]


#: What makes parts of these types what they are: no order of keys, nothing remembered.
_PIECES: dict[type, Callable[[Any], list[Any]]] = {
    dict: lambda part: _in_order(part.items()),
    list: list,
    tuple: list,
    set: _in_order,
    frozenset: _in_order,
    CodeType: lambda part: [part.co_code, part.co_names, part.co_consts],
    MethodType: lambda part: [part.__func__, part.__self__],
    FunctionType: _of_function,
}


def _described(part: Any, depth: int = 0) -> Any:
    """Return what makes a part what it is, for joblib."""
    if depth > 20:
        raise ValueError("a norm or loss refers to itself and has no fingerprint")
    kind = type(part)
    if kind in _PIECES:
        pieces = _PIECES[kind](part)
    elif isinstance(part, Parameters):
        pieces = sorted(part.get_params(deep=False).items())
    elif isinstance(part, Loss | Norm) or dataclasses.is_dataclass(part):
        pieces = _parameters(part)
    elif part is None or kind in (bool, int, float, str, bytes):
        return part
    else:
        # By itself: joblib tells one object that stands twice from two that are equal.
        return joblib.hash(part)
    return kind.__qualname__, [_described(piece, depth + 1) for piece in pieces]


def _parameters(part: Any) -> list[tuple[str, Any]]:
    """Return what an object holds under the names in its constructor, or as fields.

    What it holds beside them it may have computed, and remembers: that tells nothing of it.
    """
    names = set(inspect.signature(type(part)).parameters)
    held: dict[str, Any] = {}
    state = part.__getstate__()
    if isinstance(state, list):  # of a data class with slots: its fields in their order
        names.update(item.name for item in dataclasses.fields(part))
        held.update(zip((item.name for item in dataclasses.fields(part)), state, strict=True))
    elif isinstance(state, tuple):
        held.update(state[1])
    with suppress(TypeError):  # slots alone
        held.update(vars(part))
    return [(name, held[name]) for name in sorted(held) if name.lstrip("_") in names]

"""Warm starts, checked before any arithmetic."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from atomlearn.core.interfaces import WarmStart
from atomlearn.core.problem.problem import Problem


def checked_warm_start(warm: object, problem: Problem) -> WarmStart:
    """Return the warm start as int64 columns and float64 weights, or say what is wrong with it.

    Atoms of another norm are left out: their weights do not bound the gauge of this one.
    """
    if not isinstance(warm, WarmStart):
        raise TypeError(
            "warm_start must be a Result or a WarmStart(columns, weights, intercept), got "
            f"{type(warm).__name__}"
        )
    n_features = problem.design.shape[1]
    columns, weights = np.asarray(warm.columns), np.asarray(warm.weights)
    if columns.dtype.kind not in "iu" and columns.size:
        raise TypeError(
            f"warm_start: columns must be whole numbers, got {columns.dtype}; use np.flatnonzero"
        )
    if weights.dtype.kind not in "iuf":
        raise TypeError(f"warm_start: weights must be real numbers, got {weights.dtype}")
    if columns.ndim != 1 or columns.shape != weights.shape:
        raise ValueError(
            "warm_start: columns and weights must be vectors of one length, got shapes "
            f"{columns.shape} and {weights.shape}"
        )
    columns = columns.astype(np.int64, copy=False)
    if columns.size and not 0 <= int(columns.min()) <= int(columns.max()) < n_features:
        raise ValueError(
            f"warm_start: columns must lie in [0, {n_features}), got values from "
            f"{columns.min()} to {columns.max()}; is it of a fit to other data?"
        )
    if np.unique(columns).size < columns.size:
        raise ValueError("warm_start: columns must be distinct; add up weights of one column")
    if not (np.isfinite(weights).all() and np.isfinite(warm.intercept)):
        raise ValueError("warm_start: weights and intercept must be finite; start without it")
    weights = weights.astype(np.float64, copy=False)
    parts = warm.matrix_parts
    if problem.free is not None:
        # What is free is minimized over at the penalized part of every point.
        others = ~np.isin(columns, problem.free)
        columns, weights = columns[others], weights[others]
        parts = None if parts is None else tuple(part for part in parts if part.norm is not None)
    norm = problem.regularizer.norm
    legal = not warm.atoms or warm.norm is None or warm.norm is norm or warm.norm == norm
    return replace(
        warm,
        columns=columns,
        weights=weights,
        intercept=float(warm.intercept),
        atoms=warm.atoms if legal else (),
        matrix_parts=parts,
    )

"""Refits of the selected columns without a penalty, blended with the penalized fit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from atomlearn.core.data.parts import dense_part
from atomlearn.core.interfaces import Array, Design
from atomlearn.core.losses.free_columns import FreeColumns, free_columns, plain_loss
from atomlearn.core.paths.path import PathResult
from atomlearn.core.problem.problem import Problem, center_targets
from atomlearn.core.problem.result import Result


def refitted(problem: Problem, result: Result) -> Result:
    """Return the relaxed fit: the coefficients that minimize f over the selected columns only.

    f is the loss of ``problem``, and ``result`` the penalized fit, from which Newton's method
    starts. A step costs O(n m^2) for m selected columns. If columns depend on each other, some keep
    their coefficients. ``objective`` and ``gap`` are not changed: they are of the penalized fit.

    References
    ----------
    N. Meinshausen 2007, Relaxed lasso, doi:10.1016/j.csda.2006.12.019.
    T. Hastie, R. Tibshirani, R. Tibshirani 2020, doi:10.1214/19-STS733 (the blended form).
    """
    if result.matrix_parts is not None:
        raise TypeError(
            "a refit needs selected columns, and a matrix norm gives a sum of factors; use relax=0"
        )
    whole = center_targets(problem)
    loss = plain_loss(whole.loss)
    free = free_columns(whole.loss)
    intercept = whole.fit_intercept or (free is not None and free.intercept)
    Z = dense_part(problem.design, result.columns)
    # The predictions of the penalized fit, for targets that are centered by ``origin``.
    start = Z @ result.weights + (result.intercept - whole.origin)
    # ``FreeColumns`` minimizes the loss over the coefficients of Z, added to fixed predictions.
    change, shift = FreeColumns(loss, Z, intercept).free_part(whole.y, start, whole.weight)
    # The terms of overlapping groups (``parts``) are those of the penalized fit only.
    return replace(
        result, weights=result.weights + change, intercept=result.intercept + shift, parts=None
    )


def relaxed(problem: Problem, result: Result, share: float) -> Result:
    """Return (1 - share) * ``result`` + share * its refit without penalty, see ``refitted``.

    ``problem`` is the problem of which ``result`` is the penalized solution.
    """
    if not share:
        return result
    refit = refitted(problem, result)
    return replace(
        refit,
        weights=(1.0 - share) * result.weights + share * refit.weights,
        intercept=(1.0 - share) * result.intercept + share * refit.intercept,
    )


def relaxed_predictions(
    problem: Problem, path: PathResult, design: Design, shares: Sequence[float]
) -> Array:
    """Return the predictions of a path at other samples, (n_shares, n_levels, n_samples).

    problem : the training problem of ``path``. design : the other samples. shares : the shares of
    a refit without penalty, see ``relaxed``.
    """
    plain = path.predict(design)
    if not any(shares):
        return np.broadcast_to(plain, (len(shares), *plain.shape))
    refits = replace(path, results=[refitted(problem, result) for result in path.results])
    change = refits.predict(design) - plain
    return np.stack([plain + share * change for share in shares])

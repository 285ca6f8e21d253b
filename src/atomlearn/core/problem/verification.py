"""Verification: both bounds on the optimum, computed again from X, y and the coefficients."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from atomlearn.core.interfaces import TINY, Array
from atomlearn.core.problem.problem import center_targets, enter, negative_gradient
from atomlearn.core.problem.proof import as_reported, prove


@dataclass(frozen=True, slots=True)
class Verification:
    """Bounds on the optimum F* of an objective F: lower <= F* <= upper.

    For the form "penalized" without a ridge term, v is scaled so that gauge°(X'v) <= level, and
    then -f*(-v) is itself a lower bound on F*.

    Attributes
    ----------
    upper : float
        F(w, b) at the point, with X w + b computed again.
    lower : float
        ``upper`` minus the duality gap. If a result has two dual points, the better one counts.
    rounding : float
        The part of the gap that bounds rounding errors.
    dual : (n_samples,) float64
        v = -f'(X w + b).
    """

    upper: float
    lower: float
    rounding: float
    dual: Array

    @property
    def gap(self) -> float:
        """The proved bound on F - F*."""
        return self.upper - self.lower

    def __repr__(self) -> str:
        """Return both bounds and the gap, one line each."""
        relative = self.gap / max(abs(self.upper), TINY)
        return (
            f"objective of these coefficients   {self.upper:.17g}\n"
            f"no coefficients have less than    {self.lower:.17g}\n"
            f"gap {self.gap:.3g}, relative {relative:.3g}; of it {self.rounding:.2g} for rounding"
        )


def verification(problem: Any, result: Any) -> Verification:
    """Return the bounds for a result, computed from the data and the coefficients only.

    ``problem`` has the data, and ``result`` is the Result of its fit. For a norm of latent groups,
    w is a sum of vectors z_B, and the coefficients of all z_B are used. If the result has a second
    point ``proved_by``, the better lower bound of the two points is used.
    """
    bounds = _verification(problem, result)
    if result.proved_by is None:
        return bounds
    other = _verification(problem, result.proved_by)
    if other.lower <= bounds.lower:
        return bounds
    # ``other.lower`` allows for rounding at the other point only. The objective of this point may
    # be off by ``bounds.rounding``, which is subtracted too, so that the gap includes both errors.
    lower = other.lower - bounds.rounding
    return Verification(bounds.upper, lower, bounds.rounding + other.rounding, other.dual)


def _verification(problem: Any, result: Any) -> Verification:
    """Return the bounds on the optimum of ``problem`` at the point of ``result`` itself."""
    if problem is None:
        raise ValueError(
            "this result does not hold its data (it is of an estimator, a path, or a pickle); "
            "verify a result of solve(X, y, ...)"
        )
    if problem.loss.smoothed(1.0) is not None:
        raise ValueError(
            f"the loss {problem.loss.name!r} has kinks: coefficients alone do not tell the dual "
            "point of its proof; the gap in the result is that of the solver's last step"
        )
    # The problem with centered targets, in the coordinates u of the solver if w = L u is lifted.
    # Coefficients of unpenalized columns are left out, since the loss fits them.
    inner, lift = enter(center_targets(problem), lifts=result.lifted is not None)
    columns, weights = (result.columns, result.weights) if lift is None else result.lifted
    if lift is None and problem.free is not None:
        is_penalized = ~np.isin(columns, problem.free)
        columns = columns[is_penalized]
        weights = weights[is_penalized]
    # Compute the predictions X w + b again.
    if result.matrix_parts is not None:
        # The coefficients of a matrix fit are a sum of terms: all columns are used.
        columns = None
        weights = result.coef.ravel()
        if problem.free is not None:
            weights[problem.free] = 0.0  # these are part of the loss
        prediction = inner.design.predict(weights)
    else:
        prediction = inner.design.gather(columns).predict(weights)
    if inner.fit_intercept:
        prediction = prediction + (result.intercept - inner.origin)
    # Compute the certificate by one pass over the data. For the form "penalized", the dual point is
    # feasible if gauge°(X'v) <= level, so it is scaled.
    price = prove(inner, columns, weights, prediction)
    certificate = as_reported(inner, price.certificate, result.intercept - inner.origin, prediction)
    dual = negative_gradient(inner, prediction)
    level = inner.regularizer.amount
    if inner.regularizer.form == "penalized" and not inner.tau:
        dual *= min(1.0, level / certificate.polar) if certificate.polar > 0 else 1.0
    return Verification(
        certificate.objective, certificate.objective - certificate.gap, certificate.rounding, dual
    )

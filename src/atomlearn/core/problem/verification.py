"""Verification: both bounds on the optimum, computed again from X, y and the coefficients."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from atomlearn.core.interfaces import TINY, Array
from atomlearn.core.problem.problem import center_targets, enter, negative_gradient
from atomlearn.core.problem.proof import given_back, prove


@dataclass(frozen=True, slots=True)
class Verification:
    """Two bounds: no w, b have an objective below ``lower``, and these have at most ``upper``.

    upper : F(w, b), of X w + b as it is computed now; lower : upper less the duality gap, by
    the better of two bounds at the dual point; rounding : how much of the gap is what floating
    point may have lost; dual : (n_samples,) v = -f'(X w + b), for "penalized" without ridge scaled
    until gauge°(X'v) <= level, so that -f*(-v) bounds F* by itself.
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
        """Return both bounds, one below the other."""
        relative = self.gap / max(abs(self.upper), TINY)
        return (
            f"objective of these coefficients   {self.upper:.17g}\n"
            f"no coefficients have less than    {self.lower:.17g}\n"
            f"gap {self.gap:.3g}, relative {relative:.3g}; of it {self.rounding:.2g} for rounding"
        )


def verification(problem: Any, result: Any) -> Verification:
    """Return the bounds of a result on its problem, from the data and the coefficients alone.

    Of norms with latent parts from the coefficients of the parts, whose sum these are.
    """
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
    inner, lift = enter(center_targets(problem), lifts=result.lifted is not None)
    columns, weights = (result.columns, result.weights) if lift is None else result.lifted
    if lift is None and problem.free is not None:
        kept = ~np.isin(columns, problem.free)
        columns = columns[kept]
        weights = weights[kept]
    if result.matrix_parts is not None:
        columns = None
        weights = result.coef.ravel()
        weights[[] if problem.free is None else problem.free] = 0.0  # the loss has those
        prediction = inner.design.predict(weights)
    else:
        prediction = inner.design.gather(columns).predict(weights)
    if inner.fit_intercept:
        prediction = prediction + (result.intercept - inner.origin)
    price = prove(inner, columns, weights, prediction)
    found = given_back(inner, price.certificate, result.intercept - inner.origin, prediction)
    dual = negative_gradient(inner, prediction)
    level = inner.regularizer.amount
    if inner.regularizer.form == "penalized" and not inner.tau:
        dual *= min(1.0, level / found.polar) if found.polar > 0 else 1.0
    return Verification(found.objective, found.objective - found.gap, found.rounding, dual)

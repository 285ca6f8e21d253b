"""Full conformal prediction intervals of a lasso, exact over all targets of a new row."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from atomlearn.core import (
    Array,
    as_compressed,
    as_design,
    check_share,
    is_quadratic,
    own_parameters,
    part_of,
    readable,
)
from atomlearn.estimators.checks import checked_design, encoded_rows, was_encoded
from atomlearn.findings.effects import line_of_lasso
from atomlearn.findings.given import Given
from atomlearn.findings.lasso_line import LassoLine
from atomlearn.storage.formats.format import stacked


@own_parameters
def full_conformal(
    estimator: Any, X: Any, y: ArrayLike, X_new: Any, confidence: float = 0.9
) -> tuple[Array, Array]:
    r"""Return full conformal prediction intervals of a lasso for new rows.

    A target t of a new row is in the set where, in a fit to all rows and (x_new, t) together,

        #{i : \|r_i(t)\| >= \|r_new(t)\|} + 1  >  (1 - confidence) (n + 1).

    The fit is piecewise linear in t and is followed from the prediction on, up to the largest and
    the smallest y and once their range beyond. Each piece is proved; between two pieces, residuals
    move by no more than t does, and t is left out only if that proves it. An interval is the
    smallest one that holds the set and the prediction. An end is infinite if the set reaches the
    last t.

    Parameters
    ----------
    estimator : fitted ``AtomicRegressor``
        Of the squared loss with an intercept and l1 at one alpha that was not chosen by these rows.
    X, y : (n_samples, n_features), (n_samples,)
        The data of the fit, each row with the same weight.
    X_new : (n_new, n_features)
        A handful of rows: each is about as much work as a path of the lasso over all rows.
    confidence : float, default=0.9
        Share of new targets that the intervals cover, on average over data and new rows, for any
        distribution of exchangeable rows. Targets beyond all of y and as far again, at most a
        share 2 / (n + 1), are not counted. The share may be lower at some x.

    Returns
    -------
    lower, upper : (n_new,)

    References
    ----------
    J. Lei. Fast exact conformalization of the lasso using piecewise linear homotopy. Biometrika
    106 (2019) 749-764. E. Ndiaye, I. Takeuchi. Computing full conformal prediction set with
    approximate homotopy. NeurIPS 32 (2019). W. Chen, Z. Wang, W. Ha, R. F. Barber. Trimmed
    conformal prediction for high-dimensional models. arXiv:1611.09933 (2016).

    Examples
    --------
    >>> import numpy as np
    >>> from atomlearn import AtomicRegressor
    >>> from atomlearn.findings import full_conformal
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((110, 30))
    >>> y = 2 * X[:, 3] + rng.standard_normal(110)
    >>> model = AtomicRegressor(alpha=0.2).fit(X[:100], y[:100])
    >>> lower, upper = full_conformal(model, X[:100], y[:100], X[100:])
    >>> bool(0.7 <= ((lower <= y[100:]) & (y[100:] <= upper)).mean() <= 1)
    True
    """
    check_share("confidence", confidence, 0.9)
    X = encoded_rows(estimator, X)
    data = Given.of(estimator, X, y, None, None)
    if not is_quadratic(data.loss):
        raise ValueError(f"full_conformal is of the squared loss and l1, got {data.loss.name!r}")
    new_rows = checked_design(estimator, X_new, reset=False)
    old = line_of_lasso(estimator, X, y, data)
    y = data.y
    width = np.ptp(data.y)
    every = np.arange(y.size)
    needed = int((1 - confidence) * (y.size + 1) + 1e-9)
    parts = X, X_new
    if was_encoded(X):
        parts = data.design.stored(), new_rows.stored()
    rows = as_design(stacked([as_compressed(readable(augmented)) for augmented in parts], "csr"))
    move = np.append(0.0 * y, 1.0)
    price = old.price * (1 + 1 / y.size)
    intervals = []
    for new, guess in enumerate(estimator.predict(X_new), y.size):
        augmented = part_of(rows, rows=np.append(every, new))
        augmented_data = replace(
            data, design=augmented, y=np.append(y, guess), weight=np.ones(y.size + 1)
        )
        line = LassoLine(augmented_data, price, old.first.used, old.first.signs)
        lower_reach = _largest_step(line, -move, needed, guess - y.min() + width)
        upper_reach = _largest_step(line, move, needed, y.max() + width - guess)
        intervals.append((guess - lower_reach, guess + upper_reach))
    lower, upper = np.reshape(intervals, (-1, 2)).T
    return lower, upper


def _largest_step(line: LassoLine, move: Array, needed: int, reach: float) -> float:
    """Return the largest t >= 0 at which the new row's target is in the conformal set, or infinity.

    line : the lasso of all rows and the new one, the last; move : (n + 1,) direction of the
    targets; needed : minimum number of rows with a residual at least as large as the new row's.
    """
    at = far = 0.0
    for piece in line.pieces(move, reach):
        low = piece.ends[0]
        high = min(piece.ends[1], reach)
        if low < high:
            values, slopes = line.residual_line(piece, move).T
            # The set is closed, and its ends are where the new residual equals another one in size.
            with np.errstate(divide="ignore", invalid="ignore"):
                t = np.ravel(
                    [(s * values[-1] - values) / (slopes - s * slopes[-1]) for s in (-1, 1)]
                )
            t = np.concatenate([[low], t[(t > low) & (t < high)], [high]])
            sizes = np.abs(values[:, None] + slopes[:, None] * t)
            # Within a piece, each residual may have moved by as much as t.
            as_large = sizes[:-1] >= sizes[-1] * (1 - 1e-9) - 2 * max(low - at, 0.0)
            far = float(np.max(t[np.sum(as_large, axis=0) >= needed], initial=far))
            at = high
    return far if far < reach <= at else np.inf

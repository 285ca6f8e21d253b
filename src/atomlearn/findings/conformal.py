"""Full conformal prediction intervals of a lasso, exact over all targets of a new row."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from atomlearn._support import check_share, own_parameters
from atomlearn.core import Array, as_compressed, as_design, is_quadratic, part_of, readable
from atomlearn.estimators.checks import checked_design, encoded_rows
from atomlearn.estimators.encoded import was_encoded
from atomlearn.findings.effects import line_of_lasso
from atomlearn.findings.lasso_line import LassoLine
from atomlearn.findings.one_step import FitData
from atomlearn.storage.formats.format import stacked


@own_parameters
def full_conformal(
    estimator: Any, X: Any, y: ArrayLike, X_new: Any, confidence: float = 0.9
) -> tuple[Array, Array]:
    r"""Return full conformal prediction intervals of a lasso for new rows.

    A target t of a new row is in the set where, in a fit to all rows and (x_new, t) together,

        #{i : \|r_i(t)\| >= \|r_new(t)\|} + 1  >  (1 - confidence) (n + 1).

    The fit is piecewise linear in t. It is followed from the prediction in both directions, until t
    is beyond all y by their range. Each linear piece is proved optimal up to rounding. In a gap
    between two proved pieces, each residual changes by at most the change of t. A target is
    excluded only if this proves that it is not in the set. An interval is the smallest one that
    contains the set and the prediction. An end is infinite if the set reaches the last t.

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
        distribution of exchangeable rows. It may be lower for some x. The guarantee leaves out
        targets that are beyond all y by more than the range of y, at most a share 2 / (n + 1).

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
    data = FitData.of(estimator, X, y, None, None)
    if not is_quadratic(data.loss):
        raise ValueError(f"full_conformal is of the squared loss and l1, got {data.loss.name!r}")
    # The path of the old rows gives the active columns from which each new path starts.
    new_rows = checked_design(estimator, X_new, reset=False)
    old_line = line_of_lasso(estimator, X, y, data)
    y = data.y
    width = np.ptp(data.y)
    old_rows = np.arange(y.size)
    # The number of old rows whose residual is at least as large as the new row's must be at least
    # this, so that the number + 1 > (1 - confidence) (n + 1).
    needed = int((1 - confidence) * (y.size + 1) + 1e-9)
    # All old and new rows in one design. A data frame is replaced by its numeric columns.
    tables = X, X_new
    if was_encoded(X):
        tables = data.design.stored(), new_rows.stored()
    rows = as_design(stacked([as_compressed(readable(table)) for table in tables], "csr"))
    # Only the target of the last row, the new one, moves.
    move = np.append(0.0 * y, 1.0)
    # The penalty of the sum of losses is alpha times the number of rows, now n + 1.
    price = old_line.price * (1 + 1 / y.size)
    intervals = []
    for new, guess in enumerate(estimator.predict(X_new), y.size):
        # The lasso of all old rows and this new row, at its predicted target and beyond it.
        augmented = part_of(rows, rows=np.append(old_rows, new))
        augmented_data = replace(
            data, design=augmented, y=np.append(y, guess), weight=np.ones(y.size + 1)
        )
        line = LassoLine(augmented_data, price, old_line.first.active, old_line.first.signs)
        lower_reach = _largest_step(line, -move, needed, guess - y.min() + width)
        upper_reach = _largest_step(line, move, needed, y.max() + width - guess)
        intervals.append((guess - lower_reach, guess + upper_reach))
    lower, upper = np.reshape(intervals, (-1, 2)).T
    return lower, upper


def _largest_step(line: LassoLine, move: Array, needed: int, reach: float) -> float:
    """Return the largest t >= 0 at which the target is in the conformal set, or infinity.

    line : the lasso of all old rows and the new row, which is the last one. move : (n + 1,)
    direction of the targets. needed : the target is in the set if at least this number of old rows
    have a residual at least as large as the new row's. reach : the t at which the search ends.
    Infinity means that the set reaches this end.
    """
    reached = largest_in_set = 0.0
    for piece in line.pieces(move, reach):
        start = piece.ends[0]
        end = min(piece.ends[1], reach)
        if start < end:
            values, slopes = line.residual_line(piece, move).T
            # The set is closed. Its ends are where the new residual equals another one up to the
            # sign s: value_i + slope_i t = s (value_new + slope_new t).
            with np.errstate(divide="ignore", invalid="ignore"):
                crossings = np.ravel(
                    [(s * values[-1] - values) / (slopes - s * slopes[-1]) for s in (-1, 1)]
                )
            crossings = np.concatenate(
                [[start], crossings[(crossings > start) & (crossings < end)], [end]]
            )
            # Which old residuals are at least as large as the new one, at each crossing.
            residual_sizes = np.abs(values[:, None] + slopes[:, None] * crossings)
            # Over a gap before this piece, both residuals may have changed by as much as t.
            as_large = residual_sizes[:-1] >= residual_sizes[-1] * (1 - 1e-9) - 2 * max(
                start - reached, 0.0
            )
            largest_in_set = float(
                np.max(crossings[np.sum(as_large, axis=0) >= needed], initial=largest_in_set)
            )
            reached = end
    return largest_in_set if largest_in_set < reach <= reached else np.inf

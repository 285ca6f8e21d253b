"""Score directions of hazard ratios: nodewise lasso in the metric of the partial likelihood."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy.linalg as la

from atomlearn.core import EPS, Array, Columns, as_design
from atomlearn.findings.given import Given
from atomlearn.findings.nodewise import directions


def hazard_directions(data: Given, prediction: Array, units: Sequence[Columns]) -> list[Array]:
    """Return the directions z_j of the columns of each unit, (n, size) per unit.

    They are those of ``directions`` with the metric H, the Hessian of the loss, in place of the
    diagonal of weights: D'D = X'HX for a matrix D with min(n, p) rows, and the residuals of the
    lasso of each column of D on the others are mapped back to rows. Constants are in the null space
    of H, so there is no intercept. H depends on the events, and residuals that follow it closely
    depend on them, too, which biases estimates away from zero: with the growth of ``directions`` a
    log hazard ratio of .9 of 500 columns and 290 events is estimated as 1.19, and as .90 without
    (400 rows, means of 8 samples). So each path ends at the bound of noise.
    """
    n_rows, n_columns = data.design.shape
    X = data.columns_of(np.arange(n_columns))
    X = X - X.mean(axis=0)
    if n_columns <= n_rows:
        D, back = _root(X.T @ data.weighed(prediction, X))
        back = X @ back
    else:
        root, back = _root(data.weighed(prediction, np.eye(n_rows)))
        D = root @ X
    lengths = np.linalg.norm(D, axis=0)
    price = np.where(lengths > 0, lengths, 1.0)
    n_events = int(data.y["event"].sum())  # type: ignore[call-overload]
    fits = directions(
        as_design(D),
        np.ones(len(D)),
        units,
        price,
        data.free,
        n_rows=n_events,
        fit_intercept=False,
        growth=1.0,
    )
    return [back @ residuals for residuals in fits]


def _root(square: Array) -> tuple[Array, Array]:
    """Return the symmetric root of a positive semidefinite matrix, and its pseudoinverse."""
    values, vectors = la.eigh(square)
    is_positive = values > EPS * len(values) * max(float(values[-1]), 0.0)
    roots = np.sqrt(values[is_positive])
    range_vectors = vectors[:, is_positive]
    return (range_vectors * roots) @ range_vectors.T, (range_vectors / roots) @ range_vectors.T

"""Score directions of hazard ratios: nodewise lasso in the metric of the partial likelihood."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy.linalg as la

from atomlearn._support import EPS
from atomlearn.core import Array, Columns, as_design
from atomlearn.findings.nodewise import directions
from atomlearn.findings.one_step import FitData


def hazard_directions(data: FitData, prediction: Array, units: Sequence[Columns]) -> list[Array]:
    """Return the directions z_j of the columns of each unit, (n, size) per unit.

    data : the data of the fit. prediction : (n,) its log hazards. units : arrays of column indices
    that are tested together. The directions are residuals of a lasso of one column on the others,
    as in ``directions``. The metric is H, the Hessian of the loss, in place of a diagonal matrix of
    weights. A matrix D with min(n, p) rows has D'D = X'HX. Each column of D is regressed on the
    others by a lasso, and the residuals are mapped back to rows. Constants are in the null space of
    H, so there is no intercept.

    Each path ends where the bias bound reaches that of noise. ``directions`` would continue until
    the standard error has grown by a quarter. But H depends on the events, and so do residuals of a
    smaller penalty; that biases estimates away from zero. With growth, a log hazard ratio of 0.9
    (500 columns, 290 events, 400 rows, means of 8 samples) was estimated as 1.19, and without
    growth as 0.90.
    """
    n_rows, n_columns = data.design.shape
    X = data.columns_of(np.arange(n_columns))
    X = X - X.mean(axis=0)
    # With the smaller one of both roots: D = (X'HX)^1/2, and X D^-1 maps to rows; or D = H^1/2 X,
    # and H^-1/2 maps to rows.
    if n_columns <= n_rows:
        metric_columns, map_to_rows = _root(X.T @ data.hessian_times(prediction, X))
        map_to_rows = X @ map_to_rows
    else:
        root, map_to_rows = _root(data.hessian_times(prediction, np.eye(n_rows)))
        metric_columns = root @ X
    lengths = np.linalg.norm(metric_columns, axis=0)
    price = np.where(lengths > 0, lengths, 1.0)
    n_events = int(data.y["event"].sum())  # type: ignore[call-overload]
    residuals_of_units = directions(
        as_design(metric_columns),
        np.ones(len(metric_columns)),
        units,
        price,
        data.free,
        n_rows=n_events,
        fit_intercept=False,
        growth=1.0,
    )
    return [map_to_rows @ residuals for residuals in residuals_of_units]


def _root(square: Array) -> tuple[Array, Array]:
    """Return the symmetric root R of a positive semidefinite matrix ``square`` = R R.

    The second result is the pseudoinverse of R.
    """
    values, vectors = la.eigh(square)
    is_positive = values > EPS * len(values) * max(float(values[-1]), 0.0)
    roots = np.sqrt(values[is_positive])
    range_vectors = vectors[:, is_positive]
    return (range_vectors * roots) @ range_vectors.T, (range_vectors / roots) @ range_vectors.T

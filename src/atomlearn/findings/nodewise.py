"""Nodewise lasso: the score vectors of the debiased lasso, from one l1 path per column."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from atomlearn._support import TINY
from atomlearn.core import (
    L1,
    Array,
    Columns,
    Design,
    Problem,
    Reached,
    Regularizer,
    Result,
    Settings,
    as_loss,
    dense_part,
    largest_useful_alpha,
)

#: Allowed growth of a standard error in exchange for a smaller bias: a quarter, as in Zhang and
#: Zhang.
MOST_GROWTH = 1.25
#: Penalty factor of an excluded column: large but finite, so that the fast l1 solvers apply.
BARRED = 1e6
#: Relative gap of the fits: the error of their residuals is then far below the noise.
GAP = 1e-4
#: Number of levels of a path, and the ratio of its last level to the first.
N_LEVELS = 30
LAST = 0.01


def directions(
    design: Design,
    weight: Array,
    units: Sequence[Columns],
    price: Array,
    free: Columns,
    *,
    n_rows: int | None = None,
    fit_intercept: bool = True,
    growth: float = MOST_GROWTH,
) -> list[Array]:
    """Return the nodewise lasso residuals of the columns of each unit, (n, size) per unit.

    A unit is an array of columns that are tested together. Its residuals are
    z_j = x_j - b - sum over k outside the unit of g_k x_k, where g minimizes
    1/2 sum_i w_i z_ij^2 + level sum_k price_k |g_k|. Then |x_k'W z_j| <= level price_k. A smaller
    level means a smaller bias from errors in other coefficients, but a larger standard error
    sigma sqrt(z_j'W z_j) / |z_j'W x_j|. The bias bound is level / sqrt(z_j'W z_j). At some level of
    the path it falls to that of pure noise, sqrt(2 log p / n). The path continues until the
    standard error exceeds the one at that level by a quarter. All paths share each pass over the
    data.

    Parameters
    ----------
    design, weight : Design, (n,) array
        X (n, p) and the weights w of its rows.
    units : list of arrays
        Columns that are left out together.
    price : (p,) array
        Lengths of the columns, by which their l1 penalties are multiplied.
    free : array
        Unpenalized columns, to which z_j becomes orthogonal.
    n_rows : int, optional
        Number of rows of the data, if ``design`` has others.
    fit_intercept : bool
        Whether there is a constant b.
    growth : float
        Factor by which a standard error may grow in exchange for a smaller bias.

    References
    ----------
    C.-H. Zhang, S. Zhang. Confidence intervals for low dimensional parameters in high dimensional
    linear models. JRSS B 76 (2014) 217-242, section 2.3.
    """
    tasks = []
    paths = list[list[Array]]()
    for unit in units:
        prices = np.where(np.isin(np.arange(price.size), unit), BARRED * price, price)
        penalty = Regularizer(L1(weights=prices), "penalized", 1.0)
        others = np.setdiff1d(free, unit)  # an unpenalized column would be fitted by itself
        for x in dense_part(design, unit).T:
            problem = Problem.build(
                design,
                x,
                as_loss("squared"),
                penalty,
                fit_intercept=fit_intercept,
                sample_weight=weight,
                unpenalized=others if others.size else None,
            )
            largest_alpha = largest_useful_alpha(problem)
            paths.append([x - np.average(x, weights=weight) if fit_intercept else x])
            levels = largest_alpha * np.geomspace(1.0, LAST, N_LEVELS)
            size = design.shape[0] if n_rows is None else n_rows
            tasks.append(
                (problem, levels, _path_observer(design, weight, x, size, growth, paths[-1]))
            )
    if tasks and Settings(tol=GAP).paths(tasks[0][0], tasks) is None:
        raise KeyboardInterrupt("interrupted before the directions of all columns were known")
    # The last residuals of each path, one column after another, are joined per unit.
    last_residuals = iter(residuals[-1] for residuals in paths)
    return [np.column_stack([next(last_residuals) for _ in unit]) for unit in units]


def _path_observer(
    design: Design, weight: Array, x: Array, n_rows: int, growth: float, residuals: list[Array]
) -> Reached:
    """Return the observer that ends a column's path when the standard error begins to grow.

    design, weight : X and the weights of its rows. x : (n,) the column. n_rows : number of rows for
    the noise level. growth : factor by which the standard error may grow. residuals : a list to
    which the residuals z (n,) of each level are appended, up to that end.
    """
    limit = np.inf

    def reached(problem: Problem, result: Result) -> bool:
        """Store the residuals z of a solution; return whether their standard error is too large.

        problem : the lasso at one level. result : its solution. The limit is set at the first level
        where the bias bound reaches that of noise.
        """
        nonlocal limit
        z = x - result.predict(design)
        # The standard error sqrt(z'W z) / z'W x, for a noise of variance 1.
        length = float(np.sqrt(weight @ z**2))
        slope = float((weight * z) @ x)
        error = length / slope if slope > 0 else np.inf
        if error > limit:
            return True
        residuals.append(z)
        noise = np.sqrt(2 * np.log(design.shape[1]) / n_rows)
        # A bound on the cosine of z and any other column; noise alone gives a cosine of about
        # ``noise``.
        bound = problem.regularizer.amount / max(length, TINY)
        if bound <= noise and limit == np.inf:
            limit = growth * error
        return False

    return reached

"""Nodewise lasso: the score vectors of the debiased lasso, from one l1 path per column."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from atomlearn.core import (
    L1,
    TINY,
    Array,
    Columns,
    Design,
    Pool,
    Problem,
    Reached,
    Regularizer,
    Result,
    Settings,
    as_loss,
    dense_part,
    drive,
    largest_useful_alpha,
)

#: By how much a standard error may grow for a smaller bias: a quarter, as Zhang and Zhang have it.
MOST_GROWTH = 1.25
#: Penalty factor of an excluded column: large but finite, so that the fast l1 solvers apply.
BARRED = 1e6
#: Gap of fits of which only the residuals count: their error is then far below their noise.
GAP = 1e-4
#: Levels of a path, and the last one as a share of the first.
N_LEVELS = 30
LAST = 0.01


def directions(
    design: Design, weight: Array, units: Sequence[Columns], price: Array, free: Columns
) -> list[Array]:
    """Return the nodewise lasso residuals of the columns of each unit, (n, size) per unit.

    z_j = x_j - b - sum over k outside the unit of g_k x_k, where g minimizes
    1/2 sum_i w_i z_ij^2 + level sum_k price_k |g_k|. Then |x_k'W z_j| <= level price_k: the smaller
    the level the less errors in other coefficients count, and the larger the standard error
    sigma sqrt(z_j'W z_j) / |z_j'W x_j|. Each path continues while that grows by no more than a
    quarter over the one at which the bound is that of noise, sqrt(2 log p / n). All paths share
    every reading of the data.

    Parameters
    ----------
    design, weight : X (n, p) and the weights w (n,) of its rows
    units : columns that are left out together
    price : (p,), lengths of the columns; free : columns that z_j has nothing in common with

    References
    ----------
    C.-H. Zhang, S. Zhang. Confidence intervals for low dimensional parameters in high dimensional
    linear models. JRSS B 76 (2014) 217-242, section 2.3.
    """
    tasks = []
    found = list[list[Array]]()
    settings = Settings(tol=GAP)
    for unit in units:
        prices = np.where(np.isin(np.arange(price.size), unit), BARRED * price, price)
        penalty = Regularizer(L1(weights=prices), "penalized", 1.0)
        for x in dense_part(design, unit).T:
            problem = Problem.build(
                design,
                x,
                as_loss("squared"),
                penalty,
                fit_intercept=True,
                sample_weight=weight,
                unpenalized=free if free.size else None,
            )
            first = largest_useful_alpha(problem)
            found.append([x - np.average(x, weights=weight)])
            levels = first * np.geomspace(1.0, LAST, N_LEVELS)
            tasks.append((problem, levels, _followed(design, weight, x, found[-1])))
    if tasks:
        pools = Pool(tasks[0][0]).of_each(len(tasks))
        waiting = [
            settings.task(problem, levels, pool, reached=reached)
            for (problem, levels, reached), pool in zip(tasks, pools, strict=True)
        ]
        if drive(design, waiting):
            raise KeyboardInterrupt("interrupted before the directions of all columns were known")
    last = iter(directions[-1] for directions in found)
    return [np.column_stack([next(last) for _ in unit]) for unit in units]


def _followed(design: Design, weight: Array, x: Array, found: list[Array]) -> Reached:
    """Return the observer of a column's path that ends it when its standard error begins to grow.

    ``found`` : the directions of the levels that were good.
    """
    limit = np.inf

    def reached(problem: Problem, result: Result) -> bool:
        nonlocal limit
        z = x - result.predict(design)
        length = float(np.sqrt(weight @ z**2))
        slope = float((weight * z) @ x)
        error = length / slope if slope > 0 else np.inf
        if error > limit:
            return True
        found.append(z)
        n_rows, n_columns = design.shape
        noise = np.sqrt(2 * np.log(n_columns) / n_rows)
        # A bound on the cosine of z and any column, of which noise has so much.
        bound = problem.regularizer.amount / max(length, TINY)
        if bound <= noise and limit == np.inf:
            limit = MOST_GROWTH * error
        return False

    return reached

"""Levels of a least-squares path solved together over the pool: one product of matrices for all.

A level is the strength of the penalty. The pool has the columns that are likely to be in use,
gathered in memory as a block. For the lasso, the solutions at the next levels come from one Gram
matrix of a working set, by block pivoting from level to level. Two products of matrices then give
the predictions of all of them, and their scores over the pool, which show the columns that the
working set lacks.
"""

from __future__ import annotations

import numpy as np

from atomlearn.core.data.cached_block import CachedBlock, GrowingGram
from atomlearn.core.interfaces import Array
from atomlearn.core.interfaces.loss import is_quadratic
from atomlearn.core.masters.sequential_qp import check_prices, prices_of
from atomlearn.core.masters.sign_pivoting import l1_quadratic
from atomlearn.core.paths.pool import Point
from atomlearn.core.problem.problem import Problem, negative_gradient, optimal_intercept

#: Levels that are solved between two products with the pool.
TOGETHER = 8
#: Most products for each level before the levels are left to a master.
ROUNDS = 3


def can_solve_ahead(problem: Problem, block: CachedBlock) -> bool:
    """Return whether ``solved_ahead`` applies to the problem restricted to the ``block``.

    It needs least squares with a weighted l1 penalty, without a ridge term, over columns that are
    stored as a dense array.
    """
    prices = prices_of(problem)
    return (
        prices is not None
        and prices.signed
        and problem.regularizer.form == "penalized"
        and not problem.tau
        and problem.metric is None
        and is_quadratic(problem.loss)
        and block.stored() is not None
        and not block.traits.is_sparse
        and block.traits.bytes_an_entry >= 4.0  # packed columns have another master
    )


def solved_ahead(
    problem: Problem, block: CachedBlock, levels: Array, start: Point | None, tolerance: float
) -> list[Point]:
    """Return the solutions over the block at the first of the levels, to a relative gap.

    Fewer are returned if more columns would be used than samples, exchanges cycle, or the time is
    over.

    Parameters
    ----------
    problem : Problem
        Restricted to the block; the level in it does not matter.
    block : CachedBlock
        Columns of the pool. It keeps the Gram matrix of the working set.
    levels : (n_levels,)
        Strengths of the penalty, decreasing.
    start : Point, optional
        Warm start, for example the solution of the level before. Default: w = 0.
    tolerance : float
        Relative duality gap over the columns of the block that each solution has to reach.

    Returns
    -------
    list of Point
        Solutions of the first levels, in order.

    Notes
    -----
    Each round solves up to ``TOGETHER`` levels over a working set. The working set has the columns
    in use, the columns that violated optimality in the last round, and the columns that the
    sequential strong rule keeps. The rule rates column j by |z_j| / price_j at the last solution,
    with the score z_j = x_j'v and the weight price_j of the column in the l1 norm. It keeps columns
    with a rating of at least 2 a - b, for the second a of the next levels and the largest rating b.
    Columns whose Gram matrix is known from earlier rounds are also included.

    Two products with the block then give the predictions, dual vectors V and scores Z for the
    weights W of these levels, and from them the gaps over all columns of the block. The dual vector
    v has the gap F max(max_j |z_j| / price_j / level - 1, 0), with the objective F, because the
    norm of an optimal w is at most F / level. The solutions before the first one whose gap is too
    large are returned. The next round starts at that one, or at the last of them.
    """
    price = check_prices(problem, grouped=False).price
    A = block.dense()
    weights = np.zeros(price.size)
    shift = 0.0 if start is None else start.shift
    if start is not None:
        weights[start.positions] = start.weights
    [dual] = _duals(problem, block.predict(weights)[None], shift)[2]  # at the start
    scores = block.scores(dual).full()
    n_weighted = int(np.count_nonzero(problem.weight))
    points: list[Point] = []
    violating = np.zeros(price.size, dtype=bool)  # columns, in the last round
    rounds = 0  # rounds since a level was solved
    while len(points) < levels.size and not problem.deadline.passed:
        batch = levels[len(points) : len(points) + TOGETHER]
        # Sequential strong rule for the second of these levels.
        ratings = np.abs(scores) / price
        least_rating = 2.0 * batch[min(1, batch.size - 1)] - np.max(ratings)
        ratings[violating | (weights != 0)] = np.inf
        # For distant levels the rule keeps nearly all columns; a solution uses n_weighted at most.
        likeliest = np.argsort(-ratings, kind="stable")[: 2 * n_weighted]
        chosen = np.sort(likeliest[ratings[likeliest] >= least_rating])
        working, gram = block.growing_part(
            chosen, problem.weight, None, problem.fit_intercept, GrowingGram
        )
        rows = l1_quadratic(
            gram.matrix,
            -scores[working],
            price[working],
            weights[working],
            batch,
            factor=gram.factor(0.0, 0.0, price[working]),
            most=n_weighted - 1 - problem.fit_intercept,  # more make the Gram matrix singular
            going=lambda: not problem.deadline.passed,
        )
        W = np.zeros((len(rows), price.size))
        W[:, working] = rows
        predictions, shifts, V = _duals(problem, W @ A.T)
        Z = np.array([z.full() for z in block.scores_many(V.T)])
        largest = (np.abs(Z) / price).max(axis=1)
        objectives = 0.5 * (problem.y - predictions) ** 2 @ problem.weight
        objectives += batch[: len(rows)] * (np.abs(W) @ price)
        # The gap at the dual vector v, for gauges (weighted l1 norms) up to objective / level.
        gaps = objectives * np.maximum(largest / batch[: len(rows)] - 1.0, 0.0)
        is_open = gaps > tolerance * objectives
        n_solved = int(np.argmax(is_open)) if is_open.any() else len(rows)
        for k in range(n_solved):
            used = np.flatnonzero(W[k])
            numbers = float(largest[k]), float(objectives[k])  # reference, objective
            points.append(Point(used, W[k, used], float(shifts[k]), predictions[k], V[k], *numbers))
        rounds = 0 if n_solved else rounds + 1
        if rounds > ROUNDS or not len(rows):
            break
        last = min(n_solved, len(rows) - 1)
        weights = W[last]
        scores = Z[last]
        violating = (np.abs(Z) > batch[: len(rows), None] * price)[n_solved:].any(axis=0)
    return points


def _duals(problem: Problem, linear: Array, start: float = 0.0) -> tuple[Array, Array, Array]:
    """Return predictions with optimal intercepts, the intercepts, and the dual vectors.

    The dual vectors are the negative gradients of the problem's loss at the predictions.
    ``linear``, (n_levels, n_samples), are the predictions without intercepts. ``start`` is where
    the search for each intercept starts.
    """
    shifts = np.array([optimal_intercept(problem, z, start) for z in linear])
    predictions = linear + shifts[:, None]
    return predictions, shifts, np.array([negative_gradient(problem, z) for z in predictions])

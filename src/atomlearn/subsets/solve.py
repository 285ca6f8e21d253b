"""The best k columns, or k groups of columns, with a proof: of one size, or of several."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from atomlearn._kernels import single_threaded_blas
from atomlearn.core import (
    EPS,
    Columns,
    Deadline,
    KSupport,
    Loss,
    Problem,
    Regularizer,
    as_design,
    growth,
    is_number,
    loss_value,
    negative_gradient,
    optimal_intercept,
    own_parameters,
    positive,
    whole_number,
    with_amount,
    with_norm,
)
from atomlearn.core.solve import checked_problem
from atomlearn.subsets.hunt import GAP, Hunt, Wanted
from atomlearn.subsets.norm import Choices
from atomlearn.subsets.result import SubsetRecord, SubsetResult, SubsetStatus

#: The default ridge, in units of the curvature of f along a column of usual length.
USUAL_RIDGE = 0.1
#: Number of subsets near the best one that are listed by default.
MOST_NEAR = 1000


@own_parameters
def solve_subset(
    X: object,
    y: object,
    *,
    n_features: int = 10,
    l2: float | None = None,
    loss: str | Loss = "squared",
    alpha: float | None = None,
    groups: Any = None,
    fit_intercept: bool = True,
    sample_weight: object = None,
    offset: object = None,
    unpenalized: object = None,
    tol: float = GAP,
    within: float | None = None,
    max_near: int = MOST_NEAR,
    time_limit: float | None = None,
    max_nodes: int | None = None,
    start: Iterable[object] = (),
    observers: Iterable[Callable[[SubsetRecord], object]] = (),
) -> SubsetResult:
    r"""Minimize the mean loss plus  (l2/2) ||w||^2  over all subsets of n_features columns.

    The mean loss is  sum_i s_i loss(y_i, x_i'w + b + o_i) / sum_i s_i. At most n_features entries
    of w are not zero (or w uses at most n_features groups): the *best subset* of columns, with a
    ridge. The lower bound holds for all subsets.

    Parameters
    ----------
    X : array, sparse matrix, data frame or Design, shape (n_samples, n_features_in)
        Data.
    y : array (n_samples,), or (n_samples, n_classes) of ones and zeros with losses.Multinomial
        Targets, as in ``solve``.
    n_features : int, default=10
        Largest number of columns of the subset.
    l2 : float > 0, optional
        Strength of the ridge. Without a ridge only a trial of all subsets proves anything; the
        weaker the ridge, the longer a proof takes. None: 0.1 times the curvature of the mean loss
        along a usual column, which is 0.1 for the squared loss and standardized columns.
    loss : str or Loss, default="squared"
        Any loss that is convex and smooth.
    alpha : float > 0, optional
        Adds alpha * (number of columns) to the objective, over all subsets of at most n_features.
    groups : index lists, label array or mapping, optional
        Disjoint groups of columns, of which n_features are selected. A column in no group is a
        group of one column.
    fit_intercept : bool, default=True
        Whether to fit an intercept, which is free of the ridge.
    sample_weight : array (n_samples,), optional
        Weights s_i >= 0, not all zero.
    offset : array (n_samples,), optional
        Numbers o_i added to the predictions.
    unpenalized : indices, mask or names of columns, optional
        Columns that are in every subset, free of the ridge, and not counted.
    tol : float, default=1e-4
        The search ends when no subset can be better by more than this share of the objective.
    within : float, optional
        List all subsets of n_features columns whose objective is within this share of the best.
    max_near : int, default=1000
        The search for such subsets ends when it knows more: ``near_complete`` is False then.
    time_limit : float, optional
        Seconds after which the best subset so far is returned with its proved gap.
    max_nodes : int, optional
        Largest number of branches. 0: the first subset, with the bound over all columns.
    start : iterable of sequences of columns, default=()
        Subsets to begin with (numbers of groups, if there are groups).
    observers : iterable of callables, default=()
        Called with a ``SubsetRecord`` after every few branches.

    Returns
    -------
    SubsetResult

    Raises
    ------
    ValueError, TypeError
        Before any arithmetic, naming what is wrong and the remedy.

    Notes
    -----
    *Best* is of the objective, on these samples: it is no statement about the world.

    For every v in the domain of f*, with z = X'v,

        f*-bound:  -f*(-v) - (1 / (2 ridge)) * (sum of the k largest z_j^2)

    bounds all subsets from below, and is largest at the solution of the problem under the squared
    k-support norm, the convex hull of "k columns and a ridge". A column j that were in would add
    (z_(k)^2 - z_j^2) / (2 ridge) to it, which proves most columns out at one pass over the data.
    Over those that are left, branch and bound: a column is in, or out, and the rest is relaxed.
    The first relaxation costs a few passes over X, O(n p) each; each branch one pass over the
    columns that are left and a re-fit of those in use. The number of branches is exponential in the
    worst case, and small where the ridge or the signal is strong.

    References
    ----------
    Argyriou, Foygel, Srebro (2012), Sparse prediction with the k-support norm, NeurIPS 25,
    arXiv:1204.5043 (the relaxation). Atamtürk, Gómez (2020), Safe screening rules for
    l0-regression from perspective relaxations, ICML (columns proved in and out). Hazimeh, Mazumder,
    Saab (2022), Sparse regression at scale: branch-and-bound rooted in first-order optimization,
    Mathematical Programming 196, doi:10.1007/s10107-021-01712-4.

    Examples
    --------
    >>> import numpy as np
    >>> from atomlearn.subsets import solve_subset
    >>> X = np.random.default_rng(0).standard_normal((100, 500))
    >>> y = X[:, 3] - X[:, 7] + 0.5 * np.random.default_rng(1).standard_normal(100)
    >>> result = solve_subset(X, y, n_features=2, l2=0.1)
    >>> result.columns.tolist(), result.gap <= 1e-4
    ([3, 7], True)
    """
    wanted = wanted_of(tol, within, max_near, time_limit, max_nodes, observers)
    price = None if alpha is None else positive("alpha", alpha, "for each column")
    with single_threaded_blas():
        problem = subset_problem(
            X, y, n_features, l2, loss, groups, fit_intercept, sample_weight, offset, unpenalized
        )
        starts = [np.unique(np.asarray(each, dtype=np.int64)) for each in start]
        if price is None:
            check_size(problem, n_features)
        return best_subset(problem, n_features, wanted, starts, price or 0.0)


def best_subset(
    problem: Problem,
    k: int,
    wanted: Wanted,
    starts: Sequence[Columns] = (),
    price: float = 0.0,
) -> SubsetResult:
    """Return the best k columns, or groups, of a problem under the squared k-support norm.

    With a ``price`` of each column, the best subset of at most k.
    """
    most = k
    units = Choices(problem)
    if price:
        zero = np.zeros(problem.y.size)
        # More of them cost more than is looked for, which is within reach of what none costs.
        none = loss_value(problem, zero + optimal_intercept(problem, zero))
        worth = (1.0 + (wanted.within or 0.0)) * none / price * (1.0 + 1e-9)
        most = max(1, int(min(k, units.count - units.n_free, worth)))
    problem = with_norm(problem, units.norm.replaced(k=most))
    return replace(Hunt(problem, wanted, price).run(starts), n_features=k)


def subset_problem(
    X: object,
    y: Any,
    k: int,
    l2: float | None,
    loss: str | Loss,
    groups: Any,
    fit_intercept: bool,
    sample_weight: object,
    offset: object,
    unpenalized: object,
) -> Problem:
    """Return the checked problem under the squared k-support norm; its weights add up to 1."""
    k = whole_number("solve_subset", "n_features", k)
    level = 1.0 if l2 is None else checked_ridge(l2)
    shape: tuple[int, ...] = getattr(y, "shape", ())
    if len(shape) == 2 and shape[1] > 1:
        groups = _rows_of_tasks(groups, as_design(X).shape[1], shape[1])
    penalty = Regularizer(KSupport(k, groups), "squared", level)
    problem = checked_problem(
        X, y, loss, penalty, 0.0, fit_intercept, sample_weight, offset, unpenalized
    )
    if problem.loss.smoothed(1.0) is not None:
        raise ValueError(
            f"the loss {problem.loss.name!r} has kinks: best subsets need a smooth loss, such as "
            "losses.Huber(), 'logistic' or 'squared_hinge'"
        )
    return problem if l2 is not None else with_amount(problem, usual_ridge(problem))


def wanted_of(
    tol: float,
    within: float | None,
    max_near: int,
    time_limit: float | None,
    max_nodes: int | None,
    observers: Iterable[Callable[[SubsetRecord], object]] = (),
) -> Wanted:
    """Return the checked settings of a search; its time begins now."""
    return Wanted(
        positive("tol", tol, "share of the objective, for example 1e-4"),
        None if within is None else positive("within", within, "share, for example 0.01"),
        whole_number("solve_subset", "max_near", max_near),
        math.inf if max_nodes is None else whole_number("solve_subset", "max_nodes", max_nodes, 0),
        Deadline.limited(time_limit),
        tuple(observers),
    )


def checked_ridge(l2: float) -> float:
    """Return the weight of the ridge, or say why it must be positive."""
    if is_number(l2) and l2 == 0:
        raise ValueError(
            "l2 must be above 0, got 0: without a ridge the bound over all subsets is that of no "
            "columns at all, so nothing can be proved; leave l2 out, and 0.1 times the curvature "
            "of the loss along a usual column is taken"
        )
    return positive("l2", l2, "weight of ||w||^2 / 2, for example 0.1")


def check_size(problem: Problem, k: int) -> None:
    """Raise where there are fewer columns, or groups, than a subset is to have."""
    units = Choices(problem)
    count = units.count - units.n_free
    free = units.n_free
    if k > count:
        what = "columns" if units.partition is None else "groups"
        left = f" ({free} columns are unpenalized and belong to every subset)" if free else ""
        raise ValueError(
            f"solve_subset: n_features={k}, but X has {count} {what} to choose from{left}; use "
            f"n_features={count} or less"
        )


def _rows_of_tasks(groups: Any, n_features: int, n_tasks: int) -> Columns:
    """Return the group of each entry of W, row after row: a column of X has one for each task."""
    labels = np.arange(n_features) if groups is None else np.asarray(groups)
    if labels.shape != (n_features,):
        raise ValueError(
            "solve_subset: with several targets, groups must be one label for each column of X, "
            f"got shape {labels.shape} for {n_features} columns"
        )
    return np.repeat(labels, n_tasks)


def usual_ridge(problem: Problem) -> float:
    """Return 0.1 times the median of x_j'C x_j over columns, C the curvature of f without columns.

    About the mean of a column where there is an intercept. One pass; of columns too many to be
    listed, those of the largest scores are taken for all.
    """
    zero = np.zeros(problem.y.size)
    linear = zero + optimal_intercept(problem, zero)
    curvature = problem.loss.curvature(problem.y, linear, problem.weight)
    at_zero = problem.loss.curvature(problem.y, zero, problem.weight)
    if curvature.sum() <= EPS * at_zero.sum():
        raise ValueError(
            "the intercept explains y in full (one class, or all counts 0), so no ridge can be "
            "taken from the curvature of the loss; pass one, for example l2=0.1"
        )
    design = problem.design
    if not design.listable:
        best = design.scores(negative_gradient(problem, linear)).top(1000)[0]
        design = design.gather(best)
    squares = plain = design.squared_norms(curvature)
    if problem.fit_intercept:
        sums = design.scores(np.asarray(curvature, dtype=np.float64)).full()
        squares = squares - sums**2 / float(curvature.sum())
    # Of a constant column a rounding may be left.
    varied = squares > growth(problem.y.size) * plain
    usual = float(np.median(squares[varied])) if np.any(varied) else 1.0
    return USUAL_RIDGE * usual


def chosen(result: SubsetResult) -> Columns:
    return result.columns if result.groups is None else result.groups


@own_parameters
def subset_path(
    X: object,
    y: object,
    *,
    n_features: Iterable[int] = range(1, 11),
    l2: float | None = None,
    loss: str | Loss = "squared",
    groups: Any = None,
    fit_intercept: bool = True,
    sample_weight: object = None,
    offset: object = None,
    unpenalized: object = None,
    tol: float = GAP,
    time_limit: float | None = None,
    max_nodes: int | None = None,
) -> list[SubsetResult]:
    """Return the best subsets of several sizes; each search begins at the subsets before it.

    Ctrl-C ends the path: the sizes that are finished are returned.

    Parameters
    ----------
    X, y, l2, loss, groups, fit_intercept, sample_weight, offset, unpenalized, tol, max_nodes
        As in ``solve_subset``.
    n_features : iterable of int, default=range(1, 11)
        Sizes, in any order; the results are in the order of increasing size.
    time_limit : float, optional
        Seconds for all sizes: each size gets an equal share of the time that is left.

    Returns
    -------
    list of SubsetResult
        One result a size.

    Raises
    ------
    ValueError, TypeError
        As ``solve_subset`` does.

    References
    ----------
    Argyriou, Foygel, Srebro (2012), Sparse prediction with the k-support norm, NeurIPS 25,
    arXiv:1204.5043.

    Examples
    --------
    >>> import numpy as np
    >>> from atomlearn.subsets import subset_path
    >>> X = np.random.default_rng(0).standard_normal((100, 50))
    >>> y = X[:, 3] - 2.0 * X[:, 7]
    >>> [result.columns.tolist() for result in subset_path(X, y, n_features=[1, 2], l2=0.1)]
    [[7], [3, 7]]
    """
    sizes = sorted({whole_number("subset_path", "n_features", k) for k in n_features})
    if not sizes:
        raise ValueError(
            "subset_path: n_features holds no size; pass n_features=range(1, 11), for example"
        )
    whole = Deadline.limited(time_limit)
    results: list[SubsetResult] = []
    with single_threaded_blas():
        problem = subset_problem(
            X, y, sizes[-1], l2, loss, groups, fit_intercept, sample_weight, offset, unpenalized
        )
        check_size(problem, sizes[-1])
        for left, k in zip(range(len(sizes), 0, -1), sizes, strict=True):
            share = None if time_limit is None else max(whole.left / left, 1e-3)
            wanted = wanted_of(tol, None, MOST_NEAR, share, max_nodes)
            starts = [chosen(result) for result in results[-1:]]
            results.append(best_subset(problem, k, wanted, starts))
            if results[-1].ended is SubsetStatus.INTERRUPTED:
                break
    return results

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
    positive,
    whole_number,
    with_amount,
    with_norm,
)
from atomlearn.core.solve import checked_problem
from atomlearn.subsets.hunt import GAP, Hunt, Wanted
from atomlearn.subsets.norm import Choices
from atomlearn.subsets.result import SubsetRecord, SubsetResult, SubsetStatus

#: The ridge, where none is given, in units of the curvature of f along a column of usual length.
USUAL_RIDGE = 0.1
#: Subsets within reach of the best one that are listed, where nobody says how many.
MOST_SETS = 1000


def solve_subset(
    X: object,
    y: object,
    *,
    k: int = 10,
    ridge: float | None = None,
    loss: str | Loss = "squared",
    penalty: float | None = None,
    groups: Any = None,
    intercept: bool = False,
    sample_weight: object = None,
    offset: object = None,
    unpenalized: object = None,
    gap: float = GAP,
    within: float | None = None,
    max_sets: int = MOST_SETS,
    time_limit: float | None = None,
    max_nodes: int | None = None,
    start: Iterable[object] = (),
    observers: Iterable[Callable[[SubsetRecord], object]] = (),
) -> SubsetResult:
    r"""Minimise  sum_i s_i loss(y_i, x_i'w + b + o_i) + (ridge/2) ||w||^2  over all k columns.

    w has at most k entries that are not zero (or lies in at most k groups): the *best subset* of
    columns, with a ridge. The bound from below holds for all subsets there are.

    Parameters
    ----------
    X : array, sparse matrix, data frame or Design, shape (n_samples, n_features)
    y : array (n_samples,), or (n_samples, n_classes) of ones and zeros with losses.Multinomial
    k : int >= 1
        Columns of the subset, at most.
    ridge : float > 0, optional
        Without a ridge nothing can be proved but by trying all subsets, and the weaker it is, the
        longer a proof takes. None: 0.1 times the curvature of f along a usual column, which is
        0.1 for the squared loss and columns of length 1.
    loss : name or Loss
        Any loss that is convex and smooth.
    penalty : float > 0, optional
        Minimise the above plus penalty * (number of columns) over all subsets of at most k columns.
    groups : index lists, label array or mapping, optional
        Disjoint groups of columns: k of them are looked for. A column in none is one by itself.
    intercept : bool
        Whether to fit an intercept, which is free of the ridge.
    sample_weight, offset : (n_samples,), optional
    unpenalized : indices, mask or names of columns, optional
        Columns that are in every subset, free of the ridge, and not counted.
    gap : float
        The search ends when no subset can be better by more than this share of the objective.
    within : float, optional
        List all subsets of k columns whose objective is within this share of the best one.
    max_sets : int
        Once more are known, no others are looked for: ``near_complete`` is False.
    time_limit : float, optional
        Seconds after which the best subset so far is returned with what is proved of it.
    max_nodes : int, optional
        Branches that are bounded, at most. 0: the first subset, with the bound over all columns.
    start : iterable of sequences of columns, optional
        Subsets to begin with (numbers of groups, where there are groups).
    observers : iterable of callables
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
    >>> result = solve_subset(X, y, k=2, ridge=10.0)
    >>> result.columns.tolist(), result.gap <= 1e-4
    ([3, 7], True)
    """
    wanted = wanted_of(gap, within, max_sets, time_limit, max_nodes, observers)
    price = None if penalty is None else positive("penalty", penalty, "for each column")
    with single_threaded_blas():
        problem = subset_problem(
            X, y, k, ridge, loss, groups, intercept, sample_weight, offset, unpenalized
        )
        starts = [np.unique(np.asarray(each, dtype=np.int64)) for each in start]
        if price is None:
            check_size(problem, k)
        return best_subset(problem, k, wanted, starts, price or 0.0)


def best_subset(
    problem: Problem,
    k: int,
    wanted: Wanted,
    starts: Sequence[Columns] = (),
    price: float = 0.0,
) -> SubsetResult:
    """Return the best k columns, or groups, of a problem under the squared k-support norm.

    price : of each; it is then the best of at most k.
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
    return replace(Hunt(problem, wanted, price).run(starts), k=k)


def subset_problem(
    X: object,
    y: Any,
    k: int,
    ridge: float | None,
    loss: str | Loss,
    groups: Any,
    intercept: bool,
    sample_weight: object,
    offset: object,
    unpenalized: object,
) -> Problem:
    """Return the problem under the squared k-support norm, checked."""
    k = whole_number("solve_subset", "k", k)
    level = 1.0 if ridge is None else checked_ridge(ridge)
    shape: tuple[int, ...] = getattr(y, "shape", ())
    if len(shape) == 2 and shape[1] > 1:
        groups = _rows_of_tasks(groups, as_design(X).shape[1], shape[1])
    penalty = Regularizer(KSupport(k, groups), "squared", level)
    problem = checked_problem(
        X, y, loss, penalty, 0.0, intercept, sample_weight, offset, unpenalized
    )
    if problem.loss.smoothed(1.0) is not None:
        raise ValueError(
            f"the loss {problem.loss.name!r} has kinks: best subsets need a smooth loss, such as "
            "losses.Huber(), 'logistic' or 'squared_hinge'"
        )
    return problem if ridge is not None else with_amount(problem, usual_ridge(problem))


def wanted_of(
    gap: float,
    within: float | None,
    max_sets: int,
    time_limit: float | None,
    max_nodes: int | None,
    observers: Iterable[Callable[[SubsetRecord], object]] = (),
) -> Wanted:
    """Return what a search is asked for, checked; its time begins now."""
    return Wanted(
        positive("gap", gap, "share of the objective, for example 1e-4"),
        None if within is None else positive("within", within, "share, for example 0.01"),
        whole_number("solve_subset", "max_sets", max_sets),
        math.inf if max_nodes is None else whole_number("solve_subset", "max_nodes", max_nodes, 0),
        Deadline.limited(time_limit),
        tuple(observers),
    )


def checked_ridge(ridge: float) -> float:
    """Return the ridge, or say why there must be one."""
    if is_number(ridge) and ridge == 0:
        raise ValueError(
            "ridge must be above 0, got 0: without a ridge the bound over all subsets is that of "
            "no columns at all, so nothing can be proved; leave ridge out, and 0.1 times the "
            "curvature of the loss along a usual column is taken"
        )
    return positive("ridge", ridge, "weight of ||w||^2 / 2, for example 0.1 * n_samples")


def check_size(problem: Problem, k: int) -> None:
    """Raise where there are fewer columns, or groups, than a subset is to have."""
    units = Choices(problem)
    count = units.count - units.n_free
    free = units.n_free
    if k > count:
        what = "columns" if units.partition is None else "groups"
        left = f" ({free} columns are unpenalized and belong to every subset)" if free else ""
        raise ValueError(
            f"solve_subset: k={k}, but X has {count} {what} to choose from{left}; use k={count} or "
            "less"
        )


def _rows_of_tasks(groups: Any, n_features: int, n_tasks: int) -> Columns:
    """Return the group of each entry of W, row after row: a column of X has one for each task."""
    labels = np.arange(n_features) if groups is None else np.asarray(groups)
    if labels.shape != (n_features,):
        raise ValueError(
            "solve_subset: with several targets, groups must be one label a column of X, got "
            f"shape {labels.shape} for {n_features} columns"
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
            "the intercept alone explains y in full (one class, or all counts 0), so no ridge can "
            "be taken from the curvature of the loss; name a ridge, for example 0.1 * n_samples"
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


def subset_path(
    X: object,
    y: object,
    *,
    ks: Iterable[int] = range(1, 11),
    ridge: float | None = None,
    loss: str | Loss = "squared",
    groups: Any = None,
    intercept: bool = False,
    sample_weight: object = None,
    offset: object = None,
    unpenalized: object = None,
    gap: float = GAP,
    time_limit: float | None = None,
    max_nodes: int | None = None,
) -> list[SubsetResult]:
    """Return the best subsets of several sizes, each search beginning at the sets before it.

    After Ctrl-C, those until then.

    Parameters
    ----------
    ks : iterable of int
        Sizes, in any order; the results are in the order of increasing size.
    time_limit : float, optional
        Seconds for all of them: each size gets an equal share of what is left.

    Others : see ``solve_subset``.

    Returns
    -------
    list of SubsetResult

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
    >>> [result.columns.tolist() for result in subset_path(X, y, ks=[1, 2], ridge=10.0)]
    [[7], [3, 7]]
    """
    sizes = sorted({whole_number("subset_path", "ks", k) for k in ks})
    if not sizes:
        raise ValueError("subset_path: ks holds no size; pass ks=range(1, 11), for example")
    whole = Deadline.limited(time_limit)
    results: list[SubsetResult] = []
    with single_threaded_blas():
        problem = subset_problem(
            X, y, sizes[-1], ridge, loss, groups, intercept, sample_weight, offset, unpenalized
        )
        check_size(problem, sizes[-1])
        for left, k in zip(range(len(sizes), 0, -1), sizes, strict=True):
            share = None if time_limit is None else max(whole.left / left, 1e-3)
            wanted = wanted_of(gap, None, MOST_SETS, share, max_nodes)
            starts = [chosen(result) for result in results[-1:]]
            results.append(best_subset(problem, k, wanted, starts))
            if results[-1].ended is SubsetStatus.INTERRUPTED:
                break
    return results

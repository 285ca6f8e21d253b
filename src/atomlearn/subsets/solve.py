"""Best-subset selection with a certificate of optimality, for one size k or several sizes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from atomlearn._kernels import single_threaded_blas
from atomlearn._support import (
    EPS,
    Deadline,
    growth,
    is_number,
    own_parameters,
    positive,
    whole_number,
)
from atomlearn.core import (
    Columns,
    KSupport,
    Loss,
    Problem,
    Regularizer,
    as_design,
    changed,
    checked_problem,
    loss_value,
    negative_gradient,
    optimal_intercept,
)
from atomlearn.subsets.hunt import GAP, Hunt, SearchSettings
from atomlearn.subsets.norm import Choices
from atomlearn.subsets.result import SubsetRecord, SubsetResult, SubsetStatus

#: The default l2, as a multiple of the median of x_j'C x_j over columns (see ``usual_ridge``).
USUAL_RIDGE = 0.1
#: Default of ``max_near``, the largest number of near-optimal subsets that are listed.
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
    r"""Solve the l0-constrained ridge problem (best-subset selection) by branch and bound.

    Minimizes  sum_i s_i loss(y_i, x_i'w + b + o_i) / sum_i s_i + (l2/2) ||w||^2  over the
    coefficients w and the intercept b. At most n_features entries of w (or groups of entries) may
    be nonzero. Here x_i is row i of X, s_i its sample weight and o_i its offset. The result has a
    lower bound on the objective of every such subset.

    Parameters
    ----------
    X : array, sparse matrix, data frame or Design, shape (n_samples, n_features_in)
        Data.
    y : array (n_samples,), or (n_samples, n_classes) of ones and zeros with losses.Multinomial
        Targets.
    n_features : int, default=10
        Largest number of columns (or groups) of the subset.
    l2 : float > 0, optional
        Strength of the ridge. A weaker ridge makes the bounds weaker and the search longer. None:
        0.1 times the median curvature of the mean loss along a column, which is 0.1 for the
        squared loss and standardized columns.
    loss : str or Loss, default="squared"
        A convex and smooth loss.
    alpha : float > 0, optional
        Adds the l0 penalty alpha * (number of selected columns) to the objective.
    groups : index lists, label array or mapping, optional
        Disjoint groups of columns, which are selected as a whole. A column in no group is a group
        of one column.
    fit_intercept : bool, default=True
        Whether to fit an intercept, which is not penalized.
    sample_weight : array (n_samples,), optional
        Weights s_i >= 0, not all zero.
    offset : array (n_samples,), optional
        Numbers o_i added to the predictions.
    unpenalized : indices, mask or names of columns, optional
        Columns that are in every subset, without a ridge, and that do not count toward n_features.
    tol : float, default=1e-4
        Relative gap at which the search ends: no subset is better by more than tol times the
        objective of the returned one.
    within : float, optional
        Also list all subsets of n_features columns whose objective is at most (1 + within) times
        the smallest one.
    max_near : int, default=1000
        If more than max_near such subsets are found, the search for them ends, and
        ``near_complete`` is False.
    time_limit : float, optional
        Seconds after which the best subset so far is returned with its proved gap.
    max_nodes : int, optional
        Largest number of branch-and-bound nodes. With 0 the result is the subset of the heuristic,
        with the bound of the relaxation over all columns.
    start : iterable of sequences of columns, default=()
        Subsets from which the local search also starts (numbers of groups, if there are groups).
    observers : iterable of callables, default=()
        Called with a ``SubsetRecord`` after each batch of nodes.

    Returns
    -------
    SubsetResult

    Raises
    ------
    ValueError, TypeError
        If an argument is invalid, before the search starts.

    Notes
    -----
    The subset is optimal for this objective and these samples only; this does not mean that its
    columns are the true ones.

    Let f be the mean loss as a function of the predictions, f* its convex conjugate and k =
    n_features. For every dual point v in the domain of f*, with the scores z = X'v,

        -f*(-v) - (1 / (2 l2)) * (sum of the k largest z_j^2)

    is a lower bound on the objective of all subsets. Its maximum over v is the optimum of the
    convex relaxation, the problem with the squared k-support norm. If column j must be selected,
    the bound grows by (z_(k)^2 - z_j^2) / (2 l2), where z_(k)^2 is the k-th largest square. If this
    exceeds the objective of a known subset, column j is in no best subset (safe screening); this
    eliminates most columns after one pass over the data. Branch and bound over the other columns
    fixes columns in or out and relaxes the rest. The first relaxation takes a few passes over X, of
    O(n_samples n_features_in) operations each. A node takes one pass over the remaining columns
    and a re-fit of the columns in use. The number of nodes is exponential in the worst case, and
    small if the ridge or the signal is strong.

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
    settings = search_settings(tol, within, max_near, time_limit, max_nodes, observers)
    # ``alpha`` is the price of a column in the objective.
    price = None if alpha is None else positive("alpha", alpha, "for each column")
    with single_threaded_blas():
        problem = subset_problem(
            X, y, n_features, l2, loss, groups, fit_intercept, sample_weight, offset, unpenalized
        )
        starts = [np.unique(np.asarray(columns, dtype=np.int64)) for columns in start]
        if price is None:
            check_size(problem, n_features)
        return best_subset(problem, n_features, settings, starts, price or 0.0)


def best_subset(
    problem: Problem,
    k: int,
    settings: SearchSettings,
    starts: Sequence[Columns] = (),
    price: float = 0.0,
) -> SubsetResult:
    """Return the best subset of at most k columns, or groups, found by branch and bound.

    Parameters
    ----------
    problem : Problem
        The mean loss with the squared k-support norm, whose amount is l2.
    k : int
        Largest number of columns, or groups, of a subset.
    settings : SearchSettings
        Tolerance, limits and observers of the search.
    starts : sequence of (m,) int64, default=()
        Subsets from which the local search starts: column numbers, or group numbers.
    price : float, default=0.0
        Added to the objective for each selected column, or group (an l0 penalty).
    """
    largest = k
    units = Choices(problem)
    if price:
        zero = np.zeros(problem.y.size)
        # The prices of a subset of more than ``affordable`` columns exceed the objective of the
        # empty subset times 1 + within, so it cannot be among the subsets that are sought.
        null_loss = loss_value(problem, zero + optimal_intercept(problem, zero))
        affordable = (1.0 + (settings.within or 0.0)) * null_loss / price * (1.0 + 1e-9)
        largest = max(1, int(min(k, units.count - units.n_free, affordable)))
    problem = changed(problem, norm=units.norm.replaced(k=largest))
    return replace(Hunt(problem, settings, price).run(starts), n_features=k)


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
    """Check the arguments of ``solve_subset`` and return them as a ``Problem``.

    The arguments are those of ``solve_subset``; ``k`` is its n_features. ``groups`` are disjoint
    groups of columns, ``offset`` is added to the predictions, and ``unpenalized`` columns are in
    every subset. ``fit_intercept`` requests an intercept. The penalty is l2 / 2 times the squared
    k-support norm, the convex relaxation of "at most k columns and a ridge". The sample weights are
    normalized to sum 1. If ``l2`` is None, it is computed by ``usual_ridge``.
    """
    k = whole_number("solve_subset", "n_features", k)
    level = 1.0 if l2 is None else checked_ridge(l2)
    # With several classes, a column of X has one coefficient for each; they are a group.
    shape: tuple[int, ...] = getattr(y, "shape", ())
    if len(shape) == 2 and shape[1] > 1:
        groups = _rows_of_tasks(groups, as_design(X).shape[1], shape[1])
    penalty = Regularizer(KSupport(k, groups), "squared", level)
    problem = checked_problem(
        X, y, loss, penalty, 0.0, fit_intercept, sample_weight, offset, unpenalized
    )
    # Only losses with kinks have a smoothed version.
    if problem.loss.smoothed(1.0) is not None:
        raise ValueError(
            f"the loss {problem.loss.name!r} has kinks: best subsets need a smooth loss, such as "
            "losses.Huber(), 'logistic' or 'squared_hinge'"
        )
    return problem if l2 is not None else changed(problem, amount=usual_ridge(problem))


def search_settings(
    tol: float,
    within: float | None,
    max_near: int,
    time_limit: float | None,
    max_nodes: int | None,
    observers: Iterable[Callable[[SubsetRecord], object]] = (),
) -> SearchSettings:
    """Check the settings of a search and return them as one object.

    The arguments are those of ``solve_subset``: the relative gap ``tol``; the share ``within`` and
    the number ``max_near`` for the list of near-optimal subsets; the limits ``time_limit`` in
    seconds, which start at this call, and ``max_nodes``, None for no limit; and the ``observers``.
    """
    return SearchSettings(
        positive("tol", tol, "share of the objective, for example 1e-4"),
        None if within is None else positive("within", within, "share, for example 0.01"),
        whole_number("solve_subset", "max_near", max_near),
        math.inf if max_nodes is None else whole_number("solve_subset", "max_nodes", max_nodes, 0),
        Deadline.limited(time_limit),
        tuple(observers),
    )


def checked_ridge(l2: float) -> float:
    """Return l2 as a float; raise ValueError if it is not positive."""
    if is_number(l2) and l2 == 0:
        raise ValueError(
            "l2 must be above 0, got 0: without a ridge the bound over all subsets is that of no "
            "columns at all, so nothing can be proved; leave l2 out, and 0.1 times the curvature "
            "of the loss along a usual column is taken"
        )
    return positive("l2", l2, "weight of ||w||^2 / 2, for example 0.1")


def check_size(problem: Problem, k: int) -> None:
    """Raise ValueError if k exceeds the number of penalized columns, or groups."""
    units = Choices(problem)
    count = units.count - units.n_free
    free = units.n_free
    if k > count:
        what = "columns" if units.partition is None else "groups"
        remark = f" ({free} columns are unpenalized and belong to every subset)" if free else ""
        raise ValueError(
            f"solve_subset: n_features={k}, but X has {count} {what} to choose from{remark}; use "
            f"n_features={count} or less"
        )


def _rows_of_tasks(groups: Any, n_features: int, n_tasks: int) -> Columns:
    """Return the group label of each entry of W (n_features, n_tasks), in row-major order.

    The n_tasks coefficients of a column of X have the same label, so that they are selected
    together. It is the label of the column in ``groups`` (n_features,), or the number of the column
    if ``groups`` is None.
    """
    labels = np.arange(n_features) if groups is None else np.asarray(groups)
    if labels.shape != (n_features,):
        raise ValueError(
            "solve_subset: with several targets, groups must be one label for each column of X, "
            f"got shape {labels.shape} for {n_features} columns"
        )
    return np.repeat(labels, n_tasks)


def usual_ridge(problem: Problem) -> float:
    """Return the default l2 of a problem: 0.1 times the median of x_j'C x_j over columns x_j of X.

    C is the diagonal matrix of the second derivatives of the weighted mean loss f at w = 0, with
    the best intercept. If an intercept is fitted, x_j is centered in the metric C first. Constant
    columns are left out. This takes one pass over X. If there are too many columns to list, only
    the 1000 columns with the largest scores |x_j'v|, v = -grad f, are used.
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
        # A thousand columns are enough for a median.
        best = design.scores(negative_gradient(problem, linear)).top(1000)[0]
        design = design.gather(best)
    # Centering subtracts (sum_i c_i x_ij)^2 / sum_i c_i from the weighted squares.
    squares = plain = design.squared_norms(curvature)
    if problem.fit_intercept:
        sums = design.scores(np.asarray(curvature, dtype=np.float64)).full()
        squares = squares - sums**2 / float(curvature.sum())
    # The centered square of a constant column is 0 only up to rounding.
    varied = squares > growth(problem.y.size) * plain
    usual = float(np.median(squares[varied])) if np.any(varied) else 1.0
    return USUAL_RIDGE * usual


def chosen(result: SubsetResult) -> Columns:
    """Return the numbers of the groups that ``result`` selects; without groups, of the columns."""
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
    """Solve the best-subset problem for several sizes, in increasing order, with warm starts.

    The local search of each size starts at the best subset of the previous size, among others.
    Ctrl-C ends the path: the result of the interrupted search is the last one in the list, with
    ``ended`` INTERRUPTED, and larger sizes are missing.

    Parameters
    ----------
    X : array, sparse matrix, data frame or Design, shape (n_samples, n_features_in)
        Data.
    y : array (n_samples,), or (n_samples, n_classes) of ones and zeros with losses.Multinomial
        Targets.
    n_features : iterable of int, default=range(1, 11)
        Sizes, in any order: largest numbers of columns (or groups) of a subset.
    l2 : float > 0, optional
        Strength of the ridge, the same for all sizes. None: 0.1 times the median curvature of the
        mean loss along a column.
    loss : str or Loss, default="squared"
        A convex and smooth loss.
    groups : index lists, label array or mapping, optional
        Disjoint groups of columns, which are selected as a whole. A column in no group is a group
        of one column.
    fit_intercept : bool, default=True
        Whether to fit an intercept, which is not penalized.
    sample_weight : array (n_samples,), optional
        Sample weights >= 0, not all zero.
    offset : array (n_samples,), optional
        Fixed terms that are added to the predictions.
    unpenalized : indices, mask or names of columns, optional
        Columns that are in every subset, without a ridge, and that do not count toward its size.
    tol : float, default=1e-4
        Relative gap at which the search of a size ends.
    time_limit : float, optional
        Seconds for all sizes. Each size gets an equal share of the remaining time.
    max_nodes : int, optional
        Largest number of branch-and-bound nodes for each size.

    Returns
    -------
    list of SubsetResult
        One result per size, in the order of increasing size.

    Raises
    ------
    ValueError, TypeError
        If an argument is invalid, before any search starts.

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
    deadline = Deadline.limited(time_limit)
    results: list[SubsetResult] = []
    with single_threaded_blas():
        # The problem of the largest size is used for all sizes.
        problem = subset_problem(
            X, y, sizes[-1], l2, loss, groups, fit_intercept, sample_weight, offset, unpenalized
        )
        check_size(problem, sizes[-1])
        for n_left, k in zip(range(len(sizes), 0, -1), sizes, strict=True):
            share = None if time_limit is None else max(deadline.left / n_left, 1e-3)
            settings = search_settings(tol, None, MOST_NEAR, share, max_nodes)
            starts = [chosen(result) for result in results[-1:]]
            results.append(best_subset(problem, k, settings, starts))
            if results[-1].ended is SubsetStatus.INTERRUPTED:
                break
    return results

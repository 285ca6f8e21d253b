"""subset_path: the best subsets of several sizes, each search beginning at the sets before it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from atomlearn._kernels import single_threaded_blas
from atomlearn.core.interfaces import Deadline, Loss, whole_number
from atomlearn.core.problem.checks import positive
from atomlearn.subsets.result import SubsetResult
from atomlearn.subsets.solve import (
    GAP,
    MOST_SETS,
    best_subset,
    check_size,
    chosen,
    subset_problem,
    wanted_of,
)


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
    whole = Deadline()
    if time_limit is not None:
        whole = Deadline.after(positive("time_limit", time_limit, "seconds, for example 60"))
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
    return results

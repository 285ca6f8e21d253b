"""Information criteria along a path: which level to take without held-out samples."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, get_args

import numpy as np
from scipy.special import gammaln

from atomlearn.core.data.convert import as_design
from atomlearn.core.interfaces import Array, Loss, Norm, Rows
from atomlearn.core.losses import as_loss
from atomlearn.core.paths.cross_validation import (
    Criterion,
    CrossValidation,
    cross_validate,
)
from atomlearn.core.paths.ends import End
from atomlearn.core.paths.path import PathResult
from atomlearn.core.paths.settings import Settings
from atomlearn.core.problem.checks import check_weight
from atomlearn.core.problem.problem import Problem

CRITERIA: tuple[Criterion, ...] = get_args(Criterion)


def information_criterion(
    found: PathResult,
    X: object,
    y: object,
    criterion: Criterion = "bic",
    *,
    loss: str | Loss = "squared",
    sample_weight: object = None,
    gamma: float = 1.0,
) -> Array:
    """Return AIC, BIC, EBIC or mBIC of each solution of a path, (n_levels,): the least is best.

    With k degrees of freedom, n samples, p columns and D the deviance,

        AIC   L + 2 k
        BIC   L + k log n
        EBIC  L + k log n + 2 gamma log C(p, k)
        mBIC  L + k log n + 2 k log(p / 4)

    where L = D for losses without an unknown dispersion (Poisson, logistic, Cox), n log(D / n) for
    those with one (the variance of least squares and of gamma, by its best value), and
    2 n log(D / n) for the pinball loss, whose density has the scale itself.

    Parameters
    ----------
    found : PathResult
        What ``paths.path`` gave for X, y, loss and weights.
    X, y, loss, sample_weight
        Those of the path. n is the sum of the weights (of Cox, the weight of the events).
    criterion : {"aic", "bic", "ebic", "mbic"}
        For many more columns than samples BIC lets in too many; the last two know p.
    gamma : float
        Of EBIC, between 0 (BIC) and 1.

    Notes
    -----
    The degrees of freedom are the number of coefficients that are not 0: for the lasso its exact
    expectation [1]_. For other norms, which shrink those that they keep, it is a bound from above
    as a rule, so that large models are chosen a little too seldom. The intercept is one more in
    each of them and changes no comparison.

    References
    ----------
    .. [1] H. Zou, T. Hastie, R. Tibshirani. On the "degrees of freedom" of the lasso. Annals of
       Statistics 35 (2007) 2173-2192, doi:10.1214/009053607000000127.
    .. [2] J. Chen, Z. Chen. Extended Bayesian information criteria for model selection with large
       model spaces. Biometrika 95 (2008) 759-771.
    .. [3] M. Bogdan, J. K. Ghosh, R. W. Doerge. Modifying the Schwarz Bayesian information
       criterion to locate multiple interacting quantitative trait loci. Genetics 167 (2004)
       989-999.

    Examples
    --------
    >>> import numpy as np
    >>> from atomlearn import paths
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((100, 200))
    >>> y = X[:, 0] - X[:, 1] + 0.5 * rng.standard_normal(100)
    >>> found = paths.path(X, y, n_levels=20, intercept=True)
    >>> best = np.argmin(paths.information_criterion(found, X, y, "ebic"))
    >>> found.results[best].columns[:2].tolist()
    [0, 1]
    """
    if criterion not in CRITERIA:
        raise ValueError(f"criterion must be one of {CRITERIA}, got {criterion!r}")
    if not 0.0 <= gamma <= 1.0:
        raise ValueError(f"gamma must be between 0 and 1, got {gamma!r}")
    the_loss = as_loss(loss)
    target: Any = the_loss.check_target(y)
    weight = check_weight(sample_weight, target.size)
    n = float(weight[target["event"]].sum() if the_loss.task == "survival" else weight.sum())
    predictions = found.predict(as_design(X))
    deviance = np.array([2.0 * the_loss.value(target, z, weight) for z in predictions])
    k, p = found.n_selected.astype(np.float64), found.n_features
    return _fit(the_loss, deviance, n) + _price(criterion, k, n, p, gamma)


def criterion_scores(
    problems: Sequence[Problem],
    norms: Sequence[Norm],
    levels: Array,
    criterion: Any,
    settings: Settings,
    relax: Sequence[float] = (0.0,),
    until: End | None = None,
) -> CrossValidation:
    """Return minus the criterion of every (norm, level), as of the one fold that is all rows.

    The arguments are those of ``cross_validate``, with one share of a refit. n is the number of
    samples with a weight (of Cox, of events), whatever their weights sum to.
    """
    if len(relax) != 1:
        raise ValueError(
            f"selection={criterion!r} does not choose the share of a refit, which has no price; "
            "pass one number as relax, or choose by cross-validation"
        )
    first: Any = problems[0]
    counted = first.weight > 0.0
    n = float(np.count_nonzero(counted))
    if first.loss.task == "survival":
        n = float(np.count_nonzero(first.y["event"][counted]))

    def fit(decisions: Array, test: Rows) -> float:
        total = 0.0
        for problem, z in zip(problems, decisions.T, strict=True):
            loss, weight = problem.loss.bare, problem.weight * (counted.sum() / first.weight.sum())
            total -= float(_fit(loss, np.array(2.0 * loss.value(problem.y, z, weight)), n))
        return total

    rows = np.arange(first.y.size)
    folds = [(rows, rows)]
    found = cross_validate(problems, norms, levels, folds, fit, settings, None, relax, until)
    k, p = found.n_selected.astype(np.float64), first.design.shape[1]
    return replace(found, scores=found.scores - _price(criterion, k, n, p, 1.0))


def _fit(loss: Loss, deviance: Array, n: float) -> Array:
    """Return minus twice the log-likelihood, but for a constant."""
    if not loss.dispersed:
        return deviance
    scale = 2.0 if loss.smoothed(1.0) is not None else 1.0
    return np.asarray(scale * n * np.log(np.maximum(deviance / n, 1e-300)))


def _price(criterion: Criterion, k: Array, n: float, p: int, gamma: float) -> Array:
    """Return what k degrees of freedom cost."""
    if criterion == "aic":
        return np.asarray(2.0 * k)
    cost = k * math.log(n)
    if criterion == "ebic":
        most = np.minimum(k, p)
        cost = cost + 2.0 * gamma * (
            gammaln(p + 1.0) - gammaln(most + 1.0) - gammaln(p - most + 1.0)
        )
    elif criterion == "mbic":
        cost = cost + 2.0 * k * math.log(max(p / 4.0, 1.0))
    return np.asarray(cost)

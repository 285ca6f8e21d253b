"""Twins: columns that could replace a selected feature, by correlation or by refits without it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from atomlearn.core import (
    TINY,
    Columns,
    Design,
    Problem,
    Result,
    WarmStart,
    column_moments,
    moments_of,
    part_of,
    restrict,
    together,
)
from atomlearn.estimators.checks import input_names


@dataclass(frozen=True, slots=True)
class Twins:
    """The columns that could replace one selected feature.

    Attributes
    ----------
    feature, name : int
        The selected column.
    correlated : tuple[tuple[str, float], ...]
        (name, correlation) of the columns nearest to it, selected or not.
    rise : float, optional
        The relative rise of the objective if the feature is forbidden and all others are fitted
        again (a bound below is 0: forbidding never helps), None if not computed.
    rise_error : float
        The part of it that the two gaps leave open.
    replaced_by : tuple[str, ...]
        Names of the columns whose coefficients grew the most then.
    """

    feature: int
    name: str
    correlated: tuple[tuple[str, float], ...]
    rise: float | None
    rise_error: float
    replaced_by: tuple[str, ...]

    @property
    def words(self) -> str:
        """The increase of the objective without the feature, and the columns that replace it."""
        if self.rise is None:
            return ""
        instead = f", instead: {self.replaced_by[0]}" if self.replaced_by else ""
        return f"without it: objective +{100 * self.rise:.2g}%{instead}"


def correlated_columns(
    design: Design, columns: Sequence[int], most: int = 3, least: float = 0.5
) -> list[list[tuple[int, float]]]:
    """Return the columns most correlated with each of ``columns``, by one pass for each."""
    deviations = column_moments(design)[1]
    chosen = np.asarray(columns, dtype=np.int64)
    means, own_deviations = moments_of(design, chosen)
    block = design.gather(chosen).dense()
    correlated = []
    for number, column in enumerate(chosen.tolist()):
        scale = design.shape[0] * own_deviations[number] * deviations
        z = design.scores(np.asarray(block[:, number] - means[number], dtype=np.float64)).full()
        r = np.divide(z, scale, out=np.zeros_like(z), where=scale > 0)
        r[column] = 0.0
        best = np.argsort(-np.abs(r), kind="stable")[:most]
        correlated.append([(int(j), float(r[j])) for j in best if abs(r[j]) >= least])
    return correlated


def twins(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    most: int = 20,
    correlated: int = 3,
    names: Callable[[int], str] | None = None,
) -> list[Twins]:
    """Return the twins of the selected features of a fitted estimator, the largest ones first.

    The model is fitted again without each of them, a certified solve that starts from the fit,
    unless columns cannot be taken away from its norm, such as latent groups.

    Parameters
    ----------
    estimator : fitted AtomicRegressor, AtomicClassifier or one of their CV variants
    X, y : the data of the fit
    most : int
        Features to look at.
    correlated : int
        Columns to name for each.
    names : function of a column, optional
        Its name; by default that of the estimator.

    Examples
    --------
    >>> import numpy as np
    >>> from atomlearn import AtomicRegressor
    >>> from atomlearn.findings import twins
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((100, 10))
    >>> X[:, 7] = X[:, 2] + 0.1 * rng.standard_normal(100)
    >>> model = AtomicRegressor(alpha=0.1).fit(X, X[:, 2] + X[:, 4])
    >>> found = {item.name: item for item in twins(model, X, X[:, 2] + X[:, 4])}
    >>> found["x2"].replaced_by[0], found["x2"].rise < 0.1 < found["x4"].rise
    ('x7', True)
    """
    data = estimator._checked(X, y, None)
    problems = estimator._problems(data, *estimator._regularized_by())
    results = estimator.results_
    design = problems[0].design
    chosen = _largest(results, design, most)
    correlated_with = correlated_columns(design, chosen, correlated)
    norm = problems[0].regularizer.norm
    n_columns = design.shape[1]
    possible = norm.restrict(np.arange(n_columns), n_columns) is not None
    pairs = []

    def named(some: Columns) -> list[str]:
        """Return the names of these columns."""
        if names is not None:
            return [names(j) for j in some.tolist()]
        return list(estimator.feature_map_.names(some, input_names(estimator)))

    for column, others in zip(chosen, correlated_with, strict=True):
        columns = np.array([column, *(j for j, _ in others)], dtype=np.int64)
        called = named(columns)
        near_to = tuple((name, r) for name, (_, r) in zip(called[1:], others, strict=True))
        rise = None
        error = 0.0
        instead = list[str]()
        if possible:
            rise, error, grown = _refits_without(estimator, problems, results, column)
            instead = named(grown) if grown.size else []
        pairs.append(Twins(column, called[0], near_to, rise, error, tuple(instead)))
    return pairs


def _largest(results: Sequence[Result], design: Design, most: int) -> list[int]:
    """Return the columns with the largest coefficients per standard deviation."""
    columns, weights = together(results)
    if not columns.size:
        return []
    size = np.abs(weights).max(axis=0) * moments_of(design, columns)[1]
    return [int(columns[index]) for index in np.argsort(-size, kind="stable")[:most]]


def _refits_without(
    estimator: Any, problems: Sequence[Problem], results: Sequence[Result], column: int
) -> tuple[float, float, Columns]:
    """Return the relative increase of the objective without a column, its error, and substitutes.

    Substitutes are the up to three columns whose absolute coefficients grew the most.
    """
    n_columns = problems[0].design.shape[1]
    others = np.delete(np.arange(n_columns), column)
    before = after = error = 0.0
    growth = np.zeros(n_columns)
    # Observers and checkpoints belong to the user's fit and must not receive these refits.
    settings = replace(estimator._settings(), observers=())
    for problem, result in zip(problems, results, strict=True):
        keep = result.columns != column
        columns = result.columns[keep]
        start = WarmStart(columns - (columns > column), result.weights[keep], result.intercept)
        reduced = restrict(problem, part_of(problem.design, columns=others), others)
        refit = settings.run(reduced, start)
        before = before + result.objective
        after = after + refit.objective
        error += result.gap + refit.gap
        growth[others[refit.columns]] += np.abs(refit.weights)
        growth[result.columns] -= np.abs(result.weights)
    scale = max(abs(before), TINY)
    grown = np.argsort(-growth, kind="stable")[:3]
    grown = grown[growth[grown] > 0.1 * max(growth.max(initial=0.0), 1e-300)]
    return max((after - before) / scale, 0.0), error / scale, grown.astype(np.int64)

"""Twins: columns that could replace a selected feature, by correlation or by refits without it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from atomlearn._support import TINY
from atomlearn.core import (
    Columns,
    Design,
    Problem,
    Result,
    WarmStart,
    column_moments,
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
    feature, name : int, str
        The index and the name of the selected column.
    correlated : tuple[tuple[str, float], ...]
        (name, correlation) of the columns nearest to it, selected or not.
    rise : float, optional
        The relative increase of the objective if the feature is left out and all others are fitted
        again; at least 0. None if not computed.
    rise_error : float
        The error of ``rise``: the sum of the duality gaps of both fits.
    replaced_by : tuple[str, ...]
        Names of the columns whose coefficients grew the most in the second fit.
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
    """Return the columns most correlated with each of ``columns``, as (column, correlation) pairs.

    design : X (n, p). most : maximum number of pairs for each column. least : minimum absolute
    correlation. One pass over X is made for each column.
    """
    deviations = column_moments(design)[1]
    chosen = np.asarray(columns, dtype=np.int64)
    means, own_deviations = column_moments(design, columns=chosen)
    chosen_columns = design.gather(chosen).dense()
    correlated = []
    # The scores of a centered column, divided by both standard deviations, are correlations.
    for number, column in enumerate(chosen.tolist()):
        scale = design.shape[0] * own_deviations[number] * deviations
        scores = design.scores(
            np.asarray(chosen_columns[:, number] - means[number], dtype=np.float64)
        ).full()
        correlations = np.divide(scores, scale, out=np.zeros_like(scores), where=scale > 0)
        correlations[column] = 0.0
        best = np.argsort(-np.abs(correlations), kind="stable")[:most]
        correlated.append(
            [(int(j), float(correlations[j])) for j in best if abs(correlations[j]) >= least]
        )
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

    Twins are columns that could replace a feature. The model is fitted again without each feature,
    warm-started from the fit, with a proved gap. There is no such refit for norms that cannot be
    restricted to fewer columns, such as latent groups.

    Parameters
    ----------
    estimator : fitted AtomicRegressor, AtomicClassifier or one of their CV variants
    X, y : the data of the fit
    most : int
        Maximum number of features.
    correlated : int
        Maximum number of correlated columns for each.
    names : function, optional
        Returns the name of a column from its index; by default the names of the estimator.

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
    # Some norms, such as latent groups, cannot be restricted to fewer columns.
    possible = norm.restrict(np.arange(n_columns), n_columns) is not None
    result = []

    def named(columns: Columns) -> list[str]:
        """Return the names of these columns, by ``names`` or by the estimator."""
        if names is not None:
            return [names(j) for j in columns.tolist()]
        return list(estimator.feature_map_.names(columns, input_names(estimator)))

    # For each selected column: its correlated columns, and a refit without it.
    for column, others in zip(chosen, correlated_with, strict=True):
        columns = np.array([column, *(j for j, _ in others)], dtype=np.int64)
        names_of_columns = named(columns)
        near_to = tuple(
            (name, r) for name, (_, r) in zip(names_of_columns[1:], others, strict=True)
        )
        rise = None
        error = 0.0
        substitutes = list[str]()
        if possible:
            rise, error, grown_columns = _refits_without(estimator, problems, results, column)
            substitutes = named(grown_columns) if grown_columns.size else []
        result.append(Twins(column, names_of_columns[0], near_to, rise, error, tuple(substitutes)))
    return result


def _largest(results: Sequence[Result], design: Design, most: int) -> list[int]:
    """Return the columns with the largest coefficients per standard deviation, at most ``most``.

    results : the fits of all outputs; a column counts by its largest coefficient. design : X.
    """
    columns, weights = together(results)
    if not columns.size:
        return []
    magnitudes = np.abs(weights).max(axis=0) * column_moments(design, columns=columns)[1]
    return [int(columns[index]) for index in np.argsort(-magnitudes, kind="stable")[:most]]


def _refits_without(
    estimator: Any, problems: Sequence[Problem], results: Sequence[Result], column: int
) -> tuple[float, float, Columns]:
    """Return the relative increase of the objective without a column, its error, and substitutes.

    estimator : the fitted model. problems, results : the problem and the fit of each output.
    Substitutes are the up to three columns whose absolute coefficients grew the most.
    """
    n_columns = problems[0].design.shape[1]
    others = np.delete(np.arange(n_columns), column)
    before = after = error = 0.0
    growth = np.zeros(n_columns)
    # Observers and checkpoints belong to the user's fit and must not receive these refits.
    settings = replace(estimator._settings(), observers=())
    for problem, result in zip(problems, results, strict=True):
        is_other = result.columns != column
        columns = result.columns[is_other]
        # The refit starts at the fit; columns beyond the missing one have an index less by 1.
        start = WarmStart(columns - (columns > column), result.weights[is_other], result.intercept)
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

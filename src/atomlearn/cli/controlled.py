"""Selection with error control: knockoffs (--fdr) or stability (--stability), then a ridge fit."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from atomlearn.cli.generating import Data
from atomlearn.cli.options import CommandError
from atomlearn.cli.plan import LIMITS, Plan
from atomlearn.core.interfaces import Array
from atomlearn.estimators.classifier import AtomicClassifier
from atomlearn.estimators.regressor import AtomicRegressor
from atomlearn.findings.knockoffs import KnockoffSelector
from atomlearn.findings.stability import StabilitySelector

#: Halves of ``--stability``, and levels of the path of each.
N_HALVES, N_LEVELS = 50, 10


@dataclass(frozen=True, slots=True)
class Controlled:
    """Columns that were selected, how sure that is, in words and numbers.

    in_python : the selector; stability : column -> share of halves that select it, empty for
    knockoffs.
    """

    columns: NDArray[np.int64]
    words: str
    notes: tuple[str, ...]
    in_python: str
    stability: dict[int, float] = field(default_factory=dict)


def select_columns(data: Data, plan: Plan) -> Controlled:
    """Return the columns of standardized features that --fdr or --stability lets through.

    Covariates are no candidates: what they explain of the others, and of a target of numbers, is
    taken off first.
    """
    design, target, y = data.design, data.target, data.y
    n_rows, n_columns = design.shape
    if not design.listable or n_rows * n_columns > LIMITS.large:
        raise CommandError(
            f"--fdr and --stability hold the features in memory, and {n_rows:,} x {n_columns:,} "
            "are too many; leave --interactions out, or select with --n-features first"
        )
    covariates = np.array(data.given.covariates, dtype=np.int64)
    candidates = np.setdiff1d(np.arange(n_columns), covariates)
    X = np.asarray(design.gather(np.arange(n_columns)).dense(), dtype=np.float64)
    if covariates.size:
        beside = np.column_stack([np.ones(n_rows), X[:, covariates]])
        X = _rest(X[:, candidates], beside)
        y = _rest(y, beside) if target.classes is None else y
    found = (_stable if plan.stability else _knocked)(X, y, data, plan)
    words = found.words + ("; given the covariates" if covariates.size else "")
    shares = {int(candidates[place]): share for place, share in found.stability.items()}
    return replace(found, columns=candidates[found.columns], stability=shares, words=words)


def _rest(values: Array, beside: Array) -> Array:
    """Return what least squares on ``beside`` leave of the values; rounding is nothing."""
    rest = values - beside @ np.linalg.lstsq(beside, values, rcond=None)[0]
    nothing = np.linalg.norm(rest, axis=0) <= 1e-10 * np.linalg.norm(values, axis=0)
    return np.asarray(np.where(nothing, 0.0, rest))


def _knocked(X: Array, y: NDArray[Any], data: Data, plan: Plan) -> Controlled:
    assert plan.fdr is not None
    loss, dependence = plan.loss_for(data.target.task), data.given.dependence
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        selector = KnockoffSelector(fdr=plan.fdr, rng=plan.seed, loss=loss)
        selector.fit(X, y, **dependence)
    notes = [str(item.message) for item in told if "correlated" in str(item.message)]
    columns = np.flatnonzero(selector.statistics_ >= selector.threshold_)
    if any(values is not None for values in dependence.values()):
        notes.append("--fdr counts rows as independent, and these are not: do not trust its share")
    if not columns.size:
        least = int(np.ceil(1 / plan.fdr))
        notes.append(
            f"knockoffs at --fdr {plan.fdr:g} select nothing, or at least {least} features: fewer "
            "than that cannot be told from chance in this way"
        )
    words = (
        f"knockoffs: of the features selected, on average at most {100 * plan.fdr:g}% are false "
        f"({selector.covariance_})"
    )
    return Controlled(columns, words, tuple(notes), in_words(selector))


def _stable(X: Array, y: NDArray[Any], data: Data, plan: Plan) -> Controlled:
    n_columns, target = X.shape[1], data.target
    kind = AtomicRegressor if target.classes is None else AtomicClassifier
    base = kind(tol=1e-3, loss=plan.loss_for(target.task))
    outputs = np.array(target.columns(y), dtype=np.float64)
    centered = outputs - outputs.mean(axis=1, keepdims=True)
    largest = float(np.abs(centered @ X).max()) / len(y) or 1.0
    alphas = largest * np.geomspace(0.9, 0.1, N_LEVELS)
    selector = StabilitySelector(base, N_HALVES, rng=plan.seed, alphas=alphas)
    # So many features a half that about one false one is expected, by the plainest bound.
    most = int(max(2, np.sqrt((2 * selector.threshold - 1) * n_columns)))
    selector.set_params(max_features=min(most, n_columns)).fit(X, y, **data.given.dependence)
    shares = selector.selection_probabilities_
    words = (
        f"stability: selected by at least {100 * selector.threshold:g}% of {N_HALVES} random "
        f"halves of the rows; at most {selector.expected_false_:.2g} of features no better than "
        "random are expected among them"
    )
    note = (
        "stability tells what would be selected again; neighbors of true features may be stable too"
    )
    columns, found = np.flatnonzero(shares >= selector.threshold), dict(enumerate(shares.tolist()))
    return Controlled(columns, words, (note,), in_words(selector), found)


def in_words(model: Any) -> str:
    """Return the estimator as it would be typed, on one line."""
    return " ".join(repr(model).split())

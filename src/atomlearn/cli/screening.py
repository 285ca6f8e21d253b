"""Screen columns with error control, by knockoffs or stability selection, before the fit."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from atomlearn.cli.estimators import ESTIMATORS, TrainingData
from atomlearn.cli.options import CommandError
from atomlearn.cli.settings import LARGE, SelectionSettings
from atomlearn.core import Array, Columns, dense_part
from atomlearn.findings.knockoffs import KnockoffSelector
from atomlearn.findings.power import power
from atomlearn.findings.stability import StabilitySelector
from atomlearn.reports.view import in_words


@dataclass(frozen=True)
class ScreenedColumns:
    """The columns that knockoffs or stability selection selected.

    ``selected`` holds their increasing indices, ``words`` the error guarantee in words,
    ``selector`` the Python code of the selector, and ``notes`` sentences for the report.
    ``stability`` maps a column to the share of random halves that select it. ``covariates`` are
    columns that stay in the model regardless.
    """

    selected: Columns
    words: str
    selector: str
    notes: Sequence[str]
    stability: dict[int, float] = field(default_factory=dict)
    covariates: Sequence[int] = ()

    @property
    def kept(self) -> Columns:
        """The columns of the final model: the selected ones and the covariates.

        If there are none of either, it is the first column, because a design needs at least one
        column.
        """
        columns = np.union1d(self.selected, np.array(self.covariates, dtype=np.int64))
        return columns if columns.size else np.arange(1)


def screen_columns(data: TrainingData, settings: SelectionSettings) -> ScreenedColumns:
    """Return the standardized columns that --fdr (knockoffs) or --stability selects.

    Covariates are not candidates. The other columns, and the target of a regression, are replaced
    by their least-squares residuals on the covariates. ``data`` are the rows of the fit and
    ``settings`` the options of the selection.
    """
    design = data.design
    target = data.target
    y = data.y
    n_rows, n_columns = design.shape
    if not design.listable or n_rows * n_columns > LARGE:
        raise CommandError(
            f"--fdr and --stability hold the features in memory, and {n_rows:,} x {n_columns:,} "
            "are too many; leave --interactions out, or select with --n-features first"
        )
    covariates = np.array(data.roles.covariates, dtype=np.int64)
    candidates = np.setdiff1d(np.arange(n_columns), covariates)
    X = dense_part(design, np.arange(n_columns))
    # The covariates are regressed out of the candidates, and of a numeric target.
    if covariates.size:
        regressors = np.column_stack([np.ones(n_rows), X[:, covariates]])
        X = _residuals(X[:, candidates], regressors)
        y = _residuals(y, regressors) if target.classes is None else y
    select = _select_stable if settings.stability else _select_by_knockoffs
    selection = select(X, y, data, settings)
    return replace(
        selection,
        words=selection.words + ("; given the covariates" if covariates.size else ""),
        selected=candidates[selection.selected],
        stability={
            int(candidates[position]): share for position, share in selection.stability.items()
        },
        covariates=data.roles.covariates,
    )


def _residuals(values: Array, regressors: Array) -> Array:
    """Return the least-squares residuals of ``values`` on ``regressors``.

    Columns whose residuals are at the level of rounding errors are set to zero.
    """
    residuals = values - regressors @ np.linalg.lstsq(regressors, values, rcond=None)[0]
    is_rounding = np.linalg.norm(residuals, axis=0) <= 1e-10 * np.linalg.norm(values, axis=0)
    return np.asarray(np.where(is_rounding, 0.0, residuals))


def _select_by_knockoffs(
    X: Array, y: NDArray[Any], data: TrainingData, settings: SelectionSettings
) -> ScreenedColumns:
    """Return the columns that knockoffs select at the false discovery rate --fdr.

    ``X`` holds the standardized candidate columns, and ``y`` the target or its residuals. ``data``
    are the rows of the fit and ``settings`` the options of the selection.
    """
    assert settings.fdr is not None
    loss = settings.loss_for(data.target.task)
    dependence = data.roles.dependence
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        selector = KnockoffSelector(fdr=settings.fdr, random_state=settings.seed, loss=loss)
        selector.fit(X, y, **dependence)
    notes = [str(item.message) for item in caught if "correlated" in str(item.message)]
    columns = np.flatnonzero(selector.get_support())
    if any(values is not None for values in dependence.values()):
        notes.append("--fdr counts rows as independent, and these are not: do not trust its share")
    if not columns.size:
        n_least = int(np.ceil(1 / settings.fdr))
        notes.append(
            f"knockoffs at --fdr {settings.fdr:g} select nothing, or at least {n_least} features: "
            "fewer than that cannot be distinguished from chance in this way"
        )
    # The power for as many true features as knockoffs can select at least, twice.
    if settings.power:
        unfitted = clone(selector).set_params(loss="auto")  # simulated targets are numeric
        n_true = min(int(np.ceil(2 / settings.fdr)), X.shape[1])
        curve = power(
            unfitted, X, n_true=n_true, classes=data.target.classes is not None, rng=settings.seed
        )
        notes.append("; ".join(str(curve).splitlines()))
    words = (
        f"knockoffs: of the features selected, on average at most {100 * settings.fdr:g}% are "
        f"false, {selector.condition}"
    )
    return ScreenedColumns(columns, words, in_words(selector), notes)


def _select_stable(
    X: Array, y: NDArray[Any], data: TrainingData, settings: SelectionSettings
) -> ScreenedColumns:
    """Return the columns that stability selection selects.

    They are selected in at least a threshold share of fits to random halves of the rows. ``X``
    holds the standardized candidate columns, and ``y`` the target or its residuals. ``data`` are
    the rows of the fit and ``settings`` the options of the selection.
    """
    target = data.target
    kind = ESTIMATORS[target.task][0]
    base = kind(tol=1e-3, loss=settings.loss_for(target.task))
    selector = StabilitySelector(base, random_state=settings.seed, alphas="auto")
    selector.fit(X, y, **data.roles.dependence)
    shares = selector.selection_probabilities_
    words = (
        f"stability: selected by at least {100 * selector.threshold:g}% of {selector.n_resamples} "
        f"random halves of the rows; at most {selector.expected_false_:.2g} of features no better "
        "than random are expected among them"
    )
    note = (
        "stability tells what would be selected again; neighbors of true features may be stable too"
    )
    selected = np.flatnonzero(shares >= selector.threshold)
    stability = dict(enumerate(shares.tolist()))
    return ScreenedColumns(selected, words, in_words(selector), [note], stability)

"""Intervals of covariates, which were named before the data was seen, and of selected features."""

from __future__ import annotations

from copy import copy
from typing import Any

import numpy as np

from atomlearn.cli.estimators import ESTIMATORS
from atomlearn.cli.fitting import FittedSelection
from atomlearn.cli.options import CommandError
from atomlearn.cli.settings import LARGE, SelectionSettings
from atomlearn.cli.source import Dataset
from atomlearn.core import as_design
from atomlearn.findings.effects import estimates
from atomlearn.findings.intervals import Estimates


def check_intervals(source: Dataset, settings: SelectionSettings) -> None:
    """Raise a CommandError if no intervals can be estimated from these data and options.

    ``source`` is the data that was read and ``settings`` are the options of the selection.
    """
    n_rows, n_columns = source.X.shape
    has_offset = source.roles.offset is not None
    if len(source.target.outputs) > 1 or has_offset or n_rows * n_columns > LARGE:
        raise CommandError(
            "--intervals are for one output, without an offset or exposure, and for data that fit "
            "into memory; leave them out"
        )
    is_special = settings.additive or settings.controls or settings.best_subset
    if not source.roles.covariates and (is_special or source.map.has_pairs):
        raise CommandError(
            "--intervals are of covariates, or of columns that --n-features or --norm selects; "
            "give --covariates NAMES, or leave --intervals out"
        )


def interval_estimates(
    source: Dataset, settings: SelectionSettings, fitted: FittedSelection
) -> dict[str, Estimates]:
    """Return estimates with intervals, by the name of the quantity; see ``findings.estimates``.

    ``fitted`` is the model of all rows. Covariates are estimated from all rows, given all other
    columns. Features are selected again on half of the rows, and estimated from the others.
    ``source`` is the data that was read and ``settings`` are the options of the selection.
    """
    roles = source.roles
    target = source.target
    y = target.values
    X = as_design(source.X)
    arguments: dict[str, Any] = {"sample_weight": roles.weight, "groups": roles.row_groups}
    if not roles.covariates:
        model = copy(fitted.model).set_params(
            observers=None, time_limit=None, standardize=settings.standardize
        )
        intervals = estimates(model, X, y, how="split", **arguments)
        return {"features that half of the rows select": intervals}
    covariates = np.array(roles.covariates, dtype=np.int64)
    model = ESTIMATORS[target.task][0](unpenalized=covariates)
    if not target.is_survival:
        model.set_params(loss=settings.loss_for(target.task))
    model.coef_ = np.zeros(X.shape[1])  # these belong to no fit: only the estimates are used
    return {"the covariates": estimates(model, X, y, covariates.tolist(), **arguments)}

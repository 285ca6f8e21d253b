"""Several outputs in one fit: multi-task regression and multinomial classification."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from atomlearn.core import Loss, Settings
from atomlearn.estimators.checks import norm_for, penalty_of, unpenalized_columns
from atomlearn.estimators.targets import Checked
from atomlearn.maps.feature_map import map_of
from atomlearn.matrices.norms.rows import over_tasks
from atomlearn.matrices.tasks import task_problem


def fit_tasks(estimator: Any, data: Checked, loss: Loss, settings: Settings) -> None:
    """Fit W (n_features, n_tasks) and one intercept a task; set coef_ = W' and the rest.

    loss : of all outputs together.
    """
    if np.any(estimator.relax):
        raise ValueError(
            "relax is for one target at a time; fit several by themselves, or use multi_class='ovr'"
        )
    design = data.design
    if map_of(design).implicit:
        raise ValueError(
            "several targets (and multi_class='multinomial') need columns that can be listed, not "
            "implicit products; use features='linear', or fit one target at a time"
        )
    Y = data.y
    offset = data.offset
    if data.classes is not None:
        Y = np.eye(data.classes.size)[data.codes]
    elif offset is not None:
        if not loss.translates:
            raise ValueError(
                f"an offset for several targets at once needs a loss of differences y - z such as "
                f"'squared', and loss is {loss.name!r}; fit one target at a time"
            )
        Y = Y - offset
        offset = None
    given, *amounts = estimator._regularized_by()
    norm = over_tasks(norm_for(estimator, given, design), design.shape[1], Y.shape[1])
    regularizer, tau = penalty_of(norm, estimator.form, *amounts)
    has_intercept = bool(estimator.fit_intercept)
    fitted = data.fitted_design
    task = task_problem(fitted, Y, data.weight, loss, regularizer, has_intercept, offset)
    task = replace(task, problem=replace(task.problem, tau=tau))
    free = unpenalized_columns(estimator, design)
    if free is not None:
        task = task.freed(free)
    starts = estimator._starts(1, task.problem.design.shape[1], data.classes)
    results = estimator._solve([task.problem], starts, settings)
    W = results[0].coef.reshape(design.shape[1], -1)
    coef = np.ascontiguousarray(W.T)
    intercepts = task.intercepts(W)
    if data.units is not None:
        coef, intercepts = data.units.to_data(np.arange(coef.shape[1]), coef, intercepts)
    estimator._take_coefficients(data, coef, intercepts)
    estimator._report(results)

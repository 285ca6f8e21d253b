"""The joint problem of several outputs: multi-task regression, multinomial classification."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from atomlearn.core import Array, Loss, Norm, Result
from atomlearn.estimators.checks import norm_for, penalty_of, unpenalized_columns
from atomlearn.estimators.targets import Checked
from atomlearn.maps.feature_map import map_of
from atomlearn.matrices.norms.rows import over_tasks
from atomlearn.matrices.tasks import TaskProblem, task_problem


def joint_problem(
    estimator: Any, data: Checked, loss: Loss, norm: str | Norm, amount: float, l1_ratio: float
) -> TaskProblem:
    """Return the problem over W (n_features, n_outputs), with one intercept for each output.

    data : the checked data; ``loss`` is the loss of all outputs together. norm, amount, l1_ratio :
    the penalty, as for ``penalty_of``. The norm of one output becomes a norm of matrices.
    ``estimator`` is one of this library.
    """
    if np.any(estimator.relax):
        raise ValueError(
            "relax is for one target at a time; fit each target in its own model, or use "
            "multi_class='ovr'"
        )
    design = data.design
    if map_of(design).implicit:
        raise ValueError(
            "several targets (and multi_class='multinomial') need columns that can be listed, not "
            "implicit products; use features='linear', or fit one target at a time"
        )
    # Targets as a matrix: numbers minus the offset, or 0/1 indicators of classes.
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
    joint_norm = over_tasks(norm_for(estimator, norm, design), design.shape[1], Y.shape[1])
    regularizer, tau = penalty_of(joint_norm, estimator._form_of(joint_norm), amount, l1_ratio)
    has_intercept = bool(estimator.fit_intercept)
    fitted_design = data.fitted_design
    task = task_problem(fitted_design, Y, data.weight, loss, regularizer, has_intercept, offset)
    task = replace(task, problem=replace(task.problem, tau=tau))
    free = unpenalized_columns(estimator, design)
    return task if free is None else task.freed(free)


def joint_coefficients(task: TaskProblem, result: Result, data: Checked) -> tuple[Array, Array]:
    """Return the coefficients (n_outputs, n_features) and the intercepts, in the units of X.

    task : the joint problem. result : its solution. ``data`` is the checked data.
    """
    W = result.coef.reshape(data.design.shape[1], -1)
    coef = np.ascontiguousarray(W.T)
    intercepts = task.intercepts(W)
    if data.units is None:
        return coef, intercepts
    return data.units.to_data(np.arange(coef.shape[1]), coef, intercepts)

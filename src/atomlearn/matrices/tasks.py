"""Several targets of the same samples, or several classes, with an intercept for each."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from atomlearn.core import (
    LIMITS,
    Array,
    Design,
    FreeColumns,
    Loss,
    Problem,
    Regularizer,
    RowAccess,
    Standardized,
    centered,
    changed,
    free_columns,
    free_part,
    is_quadratic,
)
from atomlearn.matrices.designs.tasks import Tasks


@dataclass(frozen=True, slots=True)
class TaskProblem:
    """min over W, b of sum_it s_i loss(Y_it, x_i'W_t + b_t) + R(W), as a problem over vec(W).

    Row i is a sample and column t a task (a target or a class). W_t is column t of W, and R is the
    regularizer.

    Attributes
    ----------
    problem : Problem
        The problem, over centered columns if X can be centered, which changes only b.
    means : (n_features,) float64
        Means subtracted from the columns.
    offsets : (n_tasks,) float64
        Means subtracted from the targets.
    """

    problem: Problem
    means: Array
    offsets: Array

    def freed(self, columns: NDArray[np.int64]) -> TaskProblem:
        """Return the problem in which these ``columns`` of X have no penalty, for all tasks."""
        n_tasks = self.offsets.size
        entries = columns[:, None] * n_tasks + np.arange(n_tasks)
        return replace(self, problem=changed(self.problem, unpenalized=entries.reshape(-1)))

    def intercepts(self, W: Array) -> Array:
        """Return the optimal intercepts (n_tasks,) at W (n_features, n_tasks), in one pass.

        They are intercepts for the columns before centering.
        """
        b = self.offsets - self.means @ W
        # Other losses are minimized over the intercepts of the centered columns, too.
        if free_columns(self.problem.loss) is not None:
            intercepts_at = task_intercepts(
                self.problem, self.problem.design.predict(W.reshape(-1))
            )
            b = b + intercepts_at if intercepts_at.size else b
        return np.asarray(b)


def task_problem(
    design: Design,
    Y: Array,
    weight: Array,
    loss: Loss,
    regularizer: Regularizer,
    fit_intercept: bool,
    offset: Array | None = None,
) -> TaskProblem:
    """Return the problem of fitting all targets Y (n_samples, n_tasks), after checks.

    ``design`` has the features, ``weight`` (n_samples,) the sample weights, and ``offset``
    (n_samples, n_tasks) is added to the predictions of a loss of classes. ``fit_intercept``
    requests an intercept for each task.

    The intercepts need no variables. For the squared loss the weighted mean of the residuals of
    each task is zero at the optimum. So centered columns and targets need no intercept, and the
    objectives are equal. Other losses are minimized over the intercepts at every point
    (``FreeColumns``). Centering the columns then changes only b.
    """
    n_tasks = Y.shape[1]
    means = np.zeros(design.shape[1])
    offsets = np.zeros(n_tasks)
    if fit_intercept:
        # ``shifted`` is None if sparse columns are not centered.
        shifted = _centered(design, weight, loss)
        if shifted is not None:
            design = shifted
            means = shifted.means
        if shifted is not None and is_quadratic(loss):
            offsets = weight @ Y / weight.sum()
            Y = Y - offsets
        else:
            loss = FreeColumns.of_tasks(loss, Y.shape[0], n_tasks)
    # Sample i * n_tasks + t of the problem is row i and task t.
    problem = Problem.build(
        Tasks(design, n_tasks),
        np.ascontiguousarray(Y).reshape(-1),
        loss,
        regularizer,
        sample_weight=np.repeat(weight, n_tasks),
        offset=None if offset is None else np.ascontiguousarray(offset).reshape(-1),
    )
    return TaskProblem(problem, means, offsets)


def several_targets(
    X: Any, y: Any, sample_weight: Any, loss: Loss, fit_intercept: bool
) -> tuple[object, object, object, Loss, bool]:
    """Return several targets y (n_samples, n_tasks) as a problem with one target, vec(y).

    The five results replace the five arguments: the design ``Tasks`` for X, vec(y), the sample
    weights of its samples, the loss, and ``fit_intercept``. The last one is False if the tasks
    have intercepts of their own, which the loss or the centered design provides.
    """
    n_samples, n_tasks = y.shape
    flat = np.asarray(y).reshape(-1)
    # A design of matrices has its own samples, in the order of vec(y).
    if isinstance(X, Design) and X.traits.matrix_shape is not None:
        if X.shape[0] != n_samples * n_tasks:
            raise ValueError(
                f"y has shape {y.shape} and the design {type(X).__name__} other samples; pass y as "
                "a vector with one target for each sample of the design"
            )
        return X, flat, sample_weight, loss, fit_intercept
    if getattr(sample_weight, "shape", ()) == (n_samples,):
        sample_weight = np.repeat(np.asarray(sample_weight), n_tasks)
    tasks = Tasks(X, n_tasks)
    if not fit_intercept:
        return tasks, flat, sample_weight, loss, False
    weight = np.ones(n_samples) if sample_weight is None else sample_weight[::n_tasks]
    # For the squared loss, centered columns and targets need no intercepts.
    Y = loss.check_target(flat).reshape(n_samples, n_tasks)
    can_center = tasks.base.shape[0] == n_samples and is_quadratic(loss)
    shifted = _centered(tasks.base, weight, loss) if can_center else None
    if shifted is None:
        return tasks, flat, sample_weight, FreeColumns.of_tasks(loss, n_samples, n_tasks), False
    offsets = weight @ Y / weight.sum()
    centered_tasks = Tasks(shifted, n_tasks)
    # Results get the intercepts from the means that were subtracted.
    centered_tasks.row_access = CenteredRows(shifted.means, offsets)
    return centered_tasks, (Y - offsets).reshape(-1), sample_weight, loss, False


def _centered(design: Design, weight: Array, loss: Loss) -> Standardized | None:
    """Return the design with centered columns; None if sparse columns would become dense.

    ``weight`` (n_samples,) are the weights of the means. The squared loss then needs no intercepts,
    which is worth it for a small sparse matrix even if its columns become dense.
    """
    (n_samples, n_features) = design.shape
    is_small = n_samples * n_features <= LIMITS.piece_entries
    if design.traits.is_sparse and is_small and is_quadratic(loss):
        return Standardized(design, scale=False, weight=weight)
    return centered(design, weight)


class CenteredRows(RowAccess):
    """Access to rows whose columns and targets were centered: results get intercepts of the tasks.

    Parameters
    ----------
    means : (n_features,) float64
        Means of the columns of X.
    offsets : (n_tasks,) float64
        Means of the targets.
    """

    def __init__(self, means: Array, offsets: Array) -> None:
        self.means = means
        self.offsets = offsets

    def reported(self, result: Any) -> Any:
        """Return ``result`` with the intercepts for columns that are not centered, (n_tasks,)."""
        W = result.coef.reshape(self.means.size, self.offsets.size)
        return replace(result, intercept=self.offsets - self.means @ W)


def task_intercepts(problem: Problem, prediction: Array) -> Array:
    """Return the optimal intercepts of the tasks at ``prediction``, (n_tasks,).

    ``prediction`` (n_samples,) has no intercepts. The result is empty for other problems.
    """
    coefficients, _ = free_part(problem, prediction) or (np.zeros(0), 0.0)
    # The coefficients of unpenalized columns come first.
    return np.asarray(coefficients[0 if problem.free is None else problem.free.size :])

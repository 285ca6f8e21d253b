"""Several targets of the same samples, or several classes, with an intercept for each."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from atomlearn.core import (
    Array,
    Design,
    FreeColumns,
    Loss,
    Problem,
    Regularizer,
    centered,
    free_columns,
    is_quadratic,
    task_intercepts,
    with_free,
)
from atomlearn.matrices.designs.tasks import Tasks


@dataclass(frozen=True, slots=True)
class TaskProblem:
    """min over W, b of sum_it s_i loss(Y_it, x_i'W_t + b_t) + R(W), as a problem over vec(W).

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
        """Return the problem in which these columns of X have no penalty, for all tasks."""
        n_tasks = self.offsets.size
        entries = columns[:, None] * n_tasks + np.arange(n_tasks)
        return replace(self, problem=with_free(self.problem, entries.reshape(-1)))

    def intercepts(self, W: Array) -> Array:
        """Return the optimal intercepts at W for the given columns, in one pass."""
        b = self.offsets - self.means @ W
        if free_columns(self.problem.loss) is not None:
            own = task_intercepts(self.problem, self.problem.design.predict(W.reshape(-1)))
            b = b + own if own.size else b
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
    """Return the problem of Y (n_samples, n_tasks), weight (n_samples,), after checks.

    ``offset`` (n_samples, n_tasks) is added to the predictions of a loss of classes.

    The intercepts need no variables. Squared loss: at the optimum the weighted mean of the
    residuals of each task is zero, so that centered columns and targets need no intercept, and the
    objectives are equal. Other losses are minimized over the intercepts at every point
    (``FreeColumns``), over centered columns, which changes only b.
    """
    n_tasks = Y.shape[1]
    means = np.zeros(design.shape[1])
    offsets = np.zeros(n_tasks)
    if fit_intercept:
        shifted = centered(design, weight)
        if shifted is not None:
            design = shifted
            means = shifted.means
        if shifted is not None and is_quadratic(loss):
            offsets = weight @ Y / weight.sum()
            Y = Y - offsets
        else:
            loss = FreeColumns.of_tasks(loss, Y.shape[0], n_tasks)
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
    X: Any, y: Any, sample_weight: Any, fit_intercept: bool
) -> tuple[object, object, object]:
    """Return targets y (n_samples, n_tasks) of the same samples as one: ``Tasks`` and vec(y)."""
    if isinstance(X, Design) and X.traits.matrix_shape is not None:
        if X.shape[0] != y.shape[0] * y.shape[1]:
            raise ValueError(
                f"y has shape {y.shape} and the design {type(X).__name__} other samples; pass y as "
                "a vector with one target for each sample of the design"
            )
        return X, np.asarray(y).reshape(-1), sample_weight
    if fit_intercept:
        raise ValueError(
            "fit_intercept=True fits one number for all targets of a 2-d y; use AtomicRegressor, "
            "which fits one intercept a target, or center y (and X) and pass fit_intercept=False"
        )
    if getattr(sample_weight, "shape", ()) == y.shape[:1]:
        sample_weight = np.repeat(np.asarray(sample_weight), y.shape[1])
    return Tasks(X, y.shape[1]), np.asarray(y).reshape(-1), sample_weight
